// SPDX-License-Identifier: Apache-2.0
// Edges and types as text, for tvm_ffi.inspect.
#include "python/wrap/edge_text.h"

#include <algorithm>

namespace tether_py {

using ffi::TypeIndex;

namespace {

std::string Quoted(const char* data, size_t size) {
  constexpr size_t kMost = 40;
  std::string text(data, std::min(size, kMost));
  return "['" + text + (size > kMost ? "...']" : "']");
}

std::string TextOfKey(const TVMFFIAny& key) {
  switch (key.type_index) {
    case TypeIndex::kTVMFFIInt:
      return "[" + std::to_string(key.v_int64) + "]";
    case TypeIndex::kTVMFFIBool:
      return key.v_int64 != 0 ? "[True]" : "[False]";
    case TypeIndex::kTVMFFISmallStr: {
      TVMFFIByteArray text = TVMFFISmallBytesGetContentByteArray(&key);
      return Quoted(text.data, text.size);
    }
    case TypeIndex::kTVMFFIStr: {
      auto* cell = reinterpret_cast<TVMFFIByteArray*>(key.v_obj + 1);
      return Quoted(cell->data, cell->size);
    }
    default:
      return key.type_index >= TypeIndex::kTVMFFIStaticObjectBegin
                 ? "[a " + TypeKey(key.type_index) + "]"
                 : "[a key]";
  }
}

}  // namespace

std::string TypeKey(int32_t type_index) {
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(type_index);
  return std::string(info->type_key.data, info->type_key.size);
}

std::string TextOf(const EdgePlace& place) {
  switch (place.kind) {
    case EdgePlace::kItem:
      return "[" + std::to_string(place.index) + "]";
    case EdgePlace::kKey:
      return "key " + std::to_string(place.index);
    case EdgePlace::kValue:
      return TextOfKey(*place.key);
    case EdgePlace::kField:
      return "." + std::string(place.field->name.data, place.field->name.size);
    case EdgePlace::kCallable:
      return "calls";
    case EdgePlace::kKept:
      return "keeps";
    case EdgePlace::kModule:
      return "its module";
    case EdgePlace::kMemory:
      return "its memory";
    case EdgePlace::kException:
      return "its exception";
    case EdgePlace::kPythonObject:
      return "stands for";
  }
  return "";
}

}  // namespace tether_py
