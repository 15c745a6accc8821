// SPDX-License-Identifier: Apache-2.0
//
// json::Stringify. Containers being written are on an explicit stack.
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "object_graph.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

class JSONWriter {
 public:
  explicit JSONWriter(int indent) : indent_(indent) {}

  String Write(const Any& root) {
    Begin(root);
    while (!open_.empty()) WriteNext();
    return String(std::move(out_));
  }

 private:
  // A container and how far it is written. Nothing that is written runs user code, so the container
  // and its parts stay as they are.
  struct Open {
    const Object* node;
    const Any* item;          // of a sequence
    MapBaseObj::iterator it;  // of a map
    bool is_map;
    bool is_first;
  };

  // Writes a leaf, or the opening bracket of a container.
  void Begin(const Any& value) {
    const TVMFFIAny& cell = *details::AnyUnsafe::TVMFFIAnyPtrFromAny(value);
    switch (cell.type_index) {
      case kTVMFFINone:
        out_.append("null");
        return;
      case kTVMFFIBool:
        out_.append(cell.v_int64 != 0 ? "true" : "false");
        return;
      case kTVMFFIInt:
        WriteInt(cell.v_int64);
        return;
      case kTVMFFIFloat:
        WriteFloat(cell.v_float64);
        return;
      case kTVMFFISmallStr:
      case kTVMFFIStr:
        WriteString(value);
        return;
      case kTVMFFIList: {
        const SeqBaseObj* list = views_.Of(static_cast<const SeqBaseObj*>(ObjectOf(value)));
        bool& is_open = open_lists_[list];
        if (is_open) TVM_FFI_THROW(ValueError) << "Cycle detected: List contains itself";
        is_open = true;
        OpenSequence(list);
        return;
      }
      case kTVMFFIArray:
        OpenSequence(static_cast<const SeqBaseObj*>(ObjectOf(value)));
        return;
      case kTVMFFIMap: {
        const auto* map = static_cast<const MapBaseObj*>(ObjectOf(value));
        out_.push_back('{');
        open_.push_back({map, nullptr, map->begin(), true, true});
        return;
      }
      default:
        TVM_FFI_THROW(ValueError) << "Unsupported type: `" << value.GetTypeKey() << "`";
    }
  }

  void OpenSequence(const SeqBaseObj* seq) {
    out_.push_back('[');
    open_.push_back({seq, seq->begin(), {}, false, true});
  }

  // The next part of the innermost container, or its closing bracket.
  void WriteNext() {
    Open& top = open_.back();
    bool at_end = top.is_map ? top.it == static_cast<const MapBaseObj*>(top.node)->end()
                             : top.item == static_cast<const SeqBaseObj*>(top.node)->end();
    if (at_end) {
      Close();
      return;
    }
    if (!std::exchange(top.is_first, false)) out_.push_back(',');
    NewLine(open_.size());
    if (!top.is_map) {
      Begin(*top.item++);
      return;
    }
    const auto& [key, value] = *top.it;
    ++top.it;
    WriteKey(key);
    Begin(value);
  }

  void Close() {
    Open top = open_.back();
    open_.pop_back();
    NewLine(open_.size());
    out_.push_back(top.is_map ? '}' : ']');
    if (top.node->type_index() == kTVMFFIList) open_lists_[top.node] = false;
  }

  void NewLine(size_t depth) {
    if (indent_ == 0) return;
    out_.push_back('\n');
    if (indent_ > 0) out_.append(depth * static_cast<size_t>(indent_), ' ');
  }

  void WriteKey(const Any& key) {
    if (key.type_index() != kTVMFFISmallStr && key.type_index() != kTVMFFIStr) {
      TVM_FFI_THROW(ValueError) << "Expect key to be string, got `" << key.GetTypeKey() << "`";
    }
    WriteString(key);
    out_.append(indent_ == 0 ? ":" : ": ");
  }

  void WriteString(const Any& value) {
    const TVMFFIAny& cell = *details::AnyUnsafe::TVMFFIAnyPtrFromAny(value);
    TVMFFIByteArray text = cell.type_index == kTVMFFISmallStr
                               ? TVMFFISmallBytesGetContentByteArray(&cell)
                               : *TVMFFIBytesGetByteArrayPtr(cell.v_obj);
    AppendJSONString(std::string_view(text.data, text.size), &out_);
  }

  void WriteInt(int64_t value) {
    char text[24];
    out_.append(text, std::to_chars(text, text + sizeof(text), value).ptr);
  }

  void WriteFloat(double value) {
    constexpr double kTwo53 = 9007199254740992.0;
    if (std::isnan(value)) {
      out_.append("NaN");
    } else if (std::isinf(value)) {
      out_.append(value > 0 ? "Infinity" : "-Infinity");
    } else if (std::fabs(value) < kTwo53 && value == std::floor(value)) {
      if (std::signbit(value)) out_.push_back('-');
      WriteInt(static_cast<int64_t>(std::fabs(value)));
      out_.append(".0");
    } else {
      // 17 digits give back the same double; independent of the locale.
      char text[40];
      auto result = std::to_chars(text, text + sizeof(text), value, std::chars_format::general, 17);
      out_.append(text, result.ptr);
      // A whole number needs a point, or it comes back as an integer.
      auto marks_float = [](char c) { return c == '.' || c == 'e'; };
      if (std::none_of(text, result.ptr, marks_float)) out_.append(".0");
    }
  }

  int indent_;
  std::string out_;
  Views views_;
  std::vector<Open> open_;
  AddressMap<const Object*, bool> open_lists_;
};

}  // namespace
}  // namespace tether

namespace json {

String Stringify(const Value& value, const Optional<int>& indent) {
  return tether::JSONWriter(indent.value_or(0)).Write(value);
}

#if defined(__ELF__) && defined(__GNUC__)
// Clients built with releases up to 0.1.12 import the function under the name of a by-value indent,
// which was a std::optional<int> and is passed as the address of one.
TVM_FFI_EXTRA_CXX_API String
StringifyForOldClients(const Value& value, const std::optional<int>& indent) __asm__(
    "_ZN3tvm3ffi4json9StringifyERKNS0_3AnyENS0_8OptionalIivEE");

String StringifyForOldClients(const Value& value, const std::optional<int>& indent) {
  return tether::JSONWriter(indent.value_or(0)).Write(value);
}
#endif

}  // namespace json

TVM_FFI_STATIC_INIT_BLOCK() { reflection::GlobalDef().def("ffi.json.Stringify", json::Stringify); }

}  // namespace ffi
}  // namespace tvm
