// SPDX-License-Identifier: Apache-2.0
//
// ReprPrint: the text of any value.
//
//   ReprPrint(Array<Any>{1, "a"})     ->  (1, "a")
//   ReprPrint(List<Any>{pair, pair})  ->  [demo.Pair(a=1, b=2), demo.Pair(a=1, b=2)]
//
// All text is appended to one growing string. The text of a finished object is remembered as a
// range of that string, not as a copy, so a deep chain needs memory for its text once, not once per
// level.
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/enum.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/reflection/registry.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <locale>
#include <sstream>
#include <string>
#include <vector>

#include "object_graph.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

struct Sentinels {
  ObjectRef missing = Function::GetGlobalRequired("ffi.GetInvalidObject")().cast<ObjectRef>();
  ObjectRef kwargs = Function::GetGlobalRequired("ffi.GetKwargsObject")().cast<ObjectRef>();

  static const Sentinels& Get() {
    static const Sentinels* instance = new Sentinels();
    return *instance;
  }
};

const char* DeviceName(int device_type) {
  switch (device_type) {
    case kDLCPU:
      return "cpu";
    case kDLCUDA:
      return "cuda";
    case kDLCUDAHost:
      return "cuda_host";
    case kDLOpenCL:
      return "opencl";
    case kDLVulkan:
      return "vulkan";
    case kDLMetal:
      return "metal";
    case kDLVPI:
      return "vpi";
    case kDLROCM:
      return "rocm";
    case kDLROCMHost:
      return "rocm_host";
    case kDLExtDev:
      return "ext_dev";
    case kDLCUDAManaged:
      return "cuda_managed";
    case kDLOneAPI:
      return "oneapi";
    case kDLWebGPU:
      return "webgpu";
    case kDLHexagon:
      return "hexagon";
    case kDLMAIA:
      return "maia";
    case kDLTrn:
      return "trn";
    default:
      return "unknown";
  }
}

std::string DeviceText(DLDevice device) {
  return std::string(DeviceName(device.device_type)) + ":" + std::to_string(device.device_id);
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  std::ostringstream os;
  os.imbue(std::locale::classic());
  os << value;
  return os.str();
}

std::string BytesText(const Bytes& bytes) {
  static const char* kHex = "0123456789abcdef";
  std::string text = "b\"";
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto c = static_cast<unsigned char>(bytes.data()[i]);
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
      text += static_cast<char>(c);
    } else {
      text += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
    }
  }
  return text + '"';
}

std::string DimsText(const int64_t* dims, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(dims[i]);
  }
  return text;
}

// A code that has no name must not cost the text of everything around it.
std::string DTypeText(DLDataType dtype) {
  TVMFFIAny text;
  if (TVMFFIDataTypeToString(&dtype, &text) == 0) {
    return TypeTraits<String>::MoveFromAnyAfterCheck(&text);
  }
  (void)detail::MoveFromSafeCallRaised();
  std::string lanes;
  if (dtype.lanes != 1) lanes = ", lanes " + std::to_string(static_cast<int16_t>(dtype.lanes));
  return "<dtype code " + std::to_string(dtype.code) + ", bits " + std::to_string(dtype.bits) +
         lanes + ">";
}

std::string TensorText(const TensorObj& tensor) {
  return DTypeText(tensor.dtype) + "[" + DimsText(tensor.shape, static_cast<size_t>(tensor.ndim)) +
         "]@" + DeviceText(tensor.device);
}

// Where the text of an object stands, once there is one.
struct Printed {
  enum State : uint8_t { kUnseen, kActive, kDone } state = kUnseen;
  uint32_t text = 0;  // index of the string that holds it
  size_t begin = 0;
  size_t size = 0;
};

class ReprWalk : public GraphWalk<ReprWalk, size_t> {  // frame data: where the node's text begins
 public:
  explicit ReprWalk(bool with_address) : with_address_(with_address) { texts_.emplace_back(); }

  std::string Run(const Any& root) {
    Print(root);
    Drain(0);
    return std::move(texts_[0]);
  }

  void VisitChild(size_t index) {
    const Frame& frame = frames_.back();
    Child& child = children_[index];
    size_t position = index - frame.first;
    switch (frame.kind) {
      case NodeKind::kSequence:
        if (position != 0) out() += ", ";
        break;
      case NodeKind::kMapping:
        if (position != 0) out() += position % 2 == 0 ? ", " : ": ";
        break;
      case NodeKind::kFields:
        if (IsRepeatedName(frame, index)) return;
        out() += position == 0 ? "(" : ", ";
        out().append(child.field->name.data, child.field->name.size);
        out() += '=';
        break;
    }
    Print(std::move(child.value));
  }

  void Leave(Frame& frame) {
    const Object* node = ObjectOf(frame.node);
    size_t count = frame.last - frame.first;
    switch (node->type_index()) {
      case kTVMFFIArray:
        out() += count == 1 ? ",)" : ")";
        break;
      case kTVMFFIList:
        out() += ']';
        break;
      case kTVMFFIMap:
      case kTVMFFIDict:
        out() += '}';
        break;
      default:
        if (count != 0) out() += ')';
        break;
    }
    if (frame.kind != NodeKind::kFields) AppendAddress(node);
    Finish(std::move(frame.node), frame.data);
  }

  void Abandon(const Frame& frame) { seen_[ObjectOf(frame.node)].state = Printed::kUnseen; }

  // What a hook calls for the parts of its object.
  String ReprOfPart(AnyView value) {
    size_t outer = current_;
    current_ = texts_.size();
    texts_.emplace_back();
    struct Restore {
      size_t* current;
      size_t outer;
      ~Restore() { *current = outer; }
    } restore{&current_, outer};
    Nested([&] { Print(Any(value)); });
    return String(out());
  }

 private:
  std::string& out() { return texts_[current_]; }

  void AppendAddress(const Object* node) {
    if (!with_address_) return;
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), "@0x%llx",
                  static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(node)));
    out() += buffer;
  }

  // A field that a subclass registers again under the same name is shown once.
  bool IsRepeatedName(const Frame& frame, size_t index) const {
    const TVMFFIByteArray& name = children_[index].field->name;
    for (size_t i = frame.first; i < index; ++i) {
      const TVMFFIByteArray& earlier = children_[i].field->name;
      if (earlier.size == name.size && std::memcmp(earlier.data, name.data, name.size) == 0) {
        return true;
      }
    }
    return false;
  }

  void Print(Any value) {
    switch (value.type_index()) {
      case kTVMFFINone:
        out() += "None";
        return;
      case kTVMFFIBool:
        out() += value.cast<bool>() ? "True" : "False";
        return;
      case kTVMFFIInt:
        out() += std::to_string(value.cast<int64_t>());
        return;
      case kTVMFFIFloat:
        out() += FloatText(value.cast<double>());
        return;
      case kTVMFFIDataType:
        out() += DTypeText(value.cast<DLDataType>());
        return;
      case kTVMFFIDevice:
        out() += DeviceText(value.cast<DLDevice>());
        return;
      case kTVMFFISmallStr:
      case kTVMFFIStr: {
        String text = EscapedStringPy(value.cast<String>());
        out().append(text.data(), text.size());
        return;
      }
      case kTVMFFISmallBytes:
      case kTVMFFIBytes:
        out() += BytesText(value.cast<Bytes>());
        return;
      case kTVMFFITensor:
        out() += TensorText(*value.as<TensorObj>());
        AppendAddress(ObjectOf(value));
        return;
      case kTVMFFIShape: {
        const auto* shape = value.as<ShapeObj>();
        out() += "Shape(" + DimsText(shape->data, shape->size) + ")";
        return;
      }
      default:
        if (value.type_index() < kTVMFFIStaticObjectBegin) {
          out() += TypeKeyOf(value.type_index());
          return;
        }
        PrintObject(std::move(value));
    }
  }

  void PrintObject(Any value) {
    const Object* node = ObjectOf(value);
    if (node == Sentinels::Get().missing.get() || node == Sentinels::Get().kwargs.get()) {
      out() += node == Sentinels::Get().missing.get() ? "<MISSING>" : "<KWARGS>";
      return;
    }
    Printed& printed = seen_[node];
    if (printed.state == Printed::kActive) {
      out() += "...";
      AppendAddress(node);
      return;
    }
    if (printed.state == Printed::kDone) {
      out().append(texts_[printed.text], printed.begin, printed.size);
      return;
    }
    printed.state = Printed::kActive;
    size_t begin = out().size();
    static const reflection::TypeAttrColumn hooks(reflection::type_attr::kRepr);
    AnyView hook = hooks[node->type_index()];
    if (hook != nullptr) {
      PrintByHook(value, hook.cast<Function>());
      Finish(std::move(value), begin);
    } else if (const auto* member = value.as<EnumObj>()) {
      out() += TypeKeyOf(node->type_index());
      out() += '.';
      out().append(member->_str_index.data(), member->_str_index.size());
      AppendAddress(node);
      Finish(std::move(value), begin);
    } else {
      Open(node);
      Push(std::move(value), kTVMFFIFieldFlagBitMaskReprOff, begin);
    }
  }

  void PrintByHook(const Any& value, const Function& hook) {
    try {
      String text = callback_.Call<&ReprWalk::ReprOfPart>(hook, value).cast<String>();
      out().append(text.data(), text.size());
    } catch (...) {
      seen_[ObjectOf(value)].state = Printed::kUnseen;
      throw;
    }
  }

  void Open(const Object* node) {
    switch (node->type_index()) {
      case kTVMFFIArray:
        out() += '(';
        return;
      case kTVMFFIList:
        out() += '[';
        return;
      case kTVMFFIMap:
      case kTVMFFIDict:
        out() += '{';
        return;
      default:
        out() += TypeKeyOf(node->type_index());
        AppendAddress(node);
    }
  }

  void Finish(Any node, size_t begin) {
    seen_[ObjectOf(node)] = {Printed::kDone, static_cast<uint32_t>(current_), begin,
                             out().size() - begin};
    // A getter may have made this object just now. Held, so that its address is not reused.
    keep_alive_.push_back(std::move(node));
  }

  bool with_address_;
  // One string for the whole walk, and one for each part a hook asked for: the hook may
  // change that text, so it cannot become a piece of the outer string directly.
  std::deque<std::string> texts_;
  size_t current_ = 0;
  AddressMap<const Object*, Printed> seen_;
  std::vector<Any> keep_alive_;
  HookCallback<ReprWalk> callback_{this};
};

bool AddressesWanted() {
  const char* value = std::getenv("TVM_FFI_REPR_WITH_ADDR");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

}  // namespace
}  // namespace tether

String ReprPrint(const Any& value) {
  std::string text = tether::ReprWalk(tether::AddressesWanted()).Run(value);
  // Short text fits into the value; a string that is taken over is always an object.
  if (text.size() <= 7) return String(text.data(), text.size());
  return String(std::move(text));
}

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::EnsureTypeAttrColumn(reflection::type_attr::kRepr);
  reflection::GlobalDef().def("ffi.ReprPrint", [](Any value) { return ReprPrint(value); });
}

}  // namespace ffi
}  // namespace tvm
