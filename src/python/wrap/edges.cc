// SPDX-License-Identifier: Apache-2.0
// Fields that hold references: which they are, and how they are emptied.
#include "python/wrap/edges.h"

#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/function.h>

#include <unordered_map>

namespace tether_py {

using ffi::tether::FieldKind;
using ffi::tether::HoldsReferences;
using ffi::tether::KindOfField;

TVMFFIObject* (*module_of_function)(TVMFFIObject* function) = nullptr;

// ---- fields that Python defined ----

namespace {

bool IsDefinedInPython(int32_t type_index) {
  static const ffi::reflection::TypeAttrColumn layouts("__tether_py_class_layout__");
  return layouts[type_index] != nullptr;
}

// Calls f(field) for the fields of references that Python defined, until it returns true.
template <typename F>
bool AnyPythonField(int32_t type_index, F&& f) {
  const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(type_index);
  for (int32_t depth = type->type_depth; depth >= 0; --depth) {
    const TVMFFITypeInfo* owner = depth == type->type_depth ? type : type->type_ancestors[depth];
    if (!IsDefinedInPython(owner->type_index)) return false;  // nor are its ancestors
    for (int32_t i = 0; i < owner->num_fields; ++i) {
      if (HoldsReferences(KindOfField(owner->fields[i])) && f(owner->fields[i])) return true;
    }
  }
  return false;
}

}  // namespace

bool HasPythonFields(int32_t type_index) { return IsDefinedInPython(type_index); }

void Empty(TVMFFIObject* h) {
  AnyPythonField(h->type_index, [h](const TVMFFIFieldInfo& field) {
    char* address = reinterpret_cast<char*>(h) + field.offset;
    // Moved out first: the storage is empty before anything can look at it again.
    if (KindOfField(field) == FieldKind::kAny) {
      ffi::Any old = std::move(*reinterpret_cast<ffi::Any*>(address));
    } else {
      auto old = std::move(*reinterpret_cast<ffi::ObjectPtr<ffi::Object>*>(address));
    }
    return false;
  });
}

// ---- fields that do not say what they hold in memory ----
//
// Clients compiled against older headers do not mark fields as plain. What such a field declares
// tells a reference that counts from anything else in three cases:
//   8 bytes, static type of an object   raw pointers have no static type, standard containers are
//                                       larger
//   8 bytes, Optional of an object      std::optional of a reference has 16 bytes
//   16 bytes, Any
// Other fields are not read: std::optional and std::variant share schemas with types of ours that
// have another layout.

namespace {

// The value of a key in a JSON object; None where there is none.
ffi::json::Value Get(const ffi::json::Value& object, const char* key) {
  auto entries = object.as<ffi::json::Object>();
  if (!entries.has_value() || entries->count(key) == 0) return nullptr;
  return (*entries)[key];
}

ffi::String TypeName(const ffi::json::Value& schema) {
  auto name = Get(schema, "type").as<ffi::String>();
  return name.has_value() ? *name : ffi::String();
}

bool IsObjectType(const ffi::json::Value& schema) {
  ffi::String name = TypeName(schema);
  TVMFFIByteArray key{name.data(), name.size()};
  int32_t index = -1;
  if (TVMFFITypeKeyToIndex(&key, &index) != 0) {
    ffi::details::MoveFromSafeCallRaised();
    return false;
  }
  return index >= ffi::TypeIndex::kTVMFFIStaticObjectBegin;
}

// None where there is none. Throws where it cannot be read.
ffi::json::Value SchemaOf(const TVMFFIFieldInfo& field) {
  ffi::json::Value metadata =
      ffi::json::Parse(ffi::String(field.metadata.data, field.metadata.size));
  ffi::json::Value schema = Get(metadata, "type_schema");
  auto text = schema.as<ffi::String>();
  return text.has_value() ? ffi::json::Parse(*text) : schema;
}

// Throws where the schema cannot be read.
bool DeclaresReference(const TVMFFIFieldInfo& field) {
  ffi::json::Value schema = SchemaOf(field);
  ffi::String name = TypeName(schema);
  if (field.size == sizeof(TVMFFIAny)) return name == "Any";
  auto args = Get(schema, "args").as<ffi::json::Array>();
  return name == "Optional" && args.has_value() && args->size() == 1 && IsObjectType((*args)[0]);
}

// Answers of DeclaresReference by the address of the metadata, which stays.
struct KnownFields {
  std::unordered_map<const void*, bool> answers;
  ShortLock lock;  // a traversal while other threads run may ask
};
KnownFields& known_fields = *new KnownFields();

}  // namespace

bool OwnsObject(const TVMFFIFieldInfo& field) {
  bool is_pointer = field.size == sizeof(void*);
  if (field.field_static_type_index >= ffi::TypeIndex::kTVMFFIObject) return is_pointer;
  bool is_cell = is_pointer || field.size == sizeof(TVMFFIAny);
  if (field.field_static_type_index != ffi::TypeIndex::kTVMFFIAny || !is_cell) return false;
  {
    std::lock_guard<ShortLock> guard(known_fields.lock);
    auto it = known_fields.answers.find(field.metadata.data);
    if (it != known_fields.answers.end()) return it->second;
  }
  bool answer = false;
  try {
    answer = DeclaresReference(field);
  } catch (const std::bad_alloc&) {
    return false;
  } catch (const std::exception&) {  // no schema that we can read
  }
  // Out of memory is not an answer to cache. An uncached "yes" might become a "no" for the
  // next visitor, which has to see what this one saw.
  try {
    std::lock_guard<ShortLock> guard(known_fields.lock);
    return known_fields.answers.emplace(field.metadata.data, answer).first->second;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// ---- types whose fields hold no references ----

std::atomic<EdgesOfType> edges_of_type[kMaxLearned];

namespace {

// Of a field that Python defined. Its setter stores nothing else.
bool DeclaresText(const TVMFFIFieldInfo& field) {
  try {
    ffi::String name = TypeName(SchemaOf(field));
    return name == "str" || name == "bytes";
  } catch (const std::exception&) {  // no schema that we can read, or no memory
    return false;
  }
}

bool IsPlainValue(const TVMFFIFieldInfo& field, bool is_python_defined) {
  int32_t index = field.field_static_type_index;
  if (index == ffi::TypeIndex::kTVMFFIAny) return is_python_defined && DeclaresText(field);
  return index < ffi::TypeIndex::kTVMFFIStaticObjectBegin || index == ffi::TypeIndex::kTVMFFIStr ||
         index == ffi::TypeIndex::kTVMFFIBytes || index == ffi::TypeIndex::kTVMFFIShape;
}

}  // namespace

EdgesOfType LearnEdgesOfType(int32_t type_index) {
  bool is_python_defined = IsDefinedInPython(type_index);
  bool may_refer = ffi::reflection::ForEachFieldInfoWithEarlyStop(
      TVMFFIGetTypeInfo(type_index),
      [=](auto* field) { return !IsPlainValue(*field, is_python_defined); });
  bool is_static = type_index < ffi::TypeIndex::kTVMFFIDynObjectBegin;  // says nothing in fields
  EdgesOfType answer = EdgesOfType::kNone;
  if (may_refer || is_static) {
    bool by_python = AnyPythonField(type_index, [](const TVMFFIFieldInfo&) { return true; });
    answer = by_python ? EdgesOfType::kByPython : EdgesOfType::kOther;
  }
  edges_of_type[type_index].store(answer, std::memory_order_relaxed);
  return answer;
}

void LearnEdges() {
  IsDefinedInPython(0);  // finds the column, for which there must be memory
  void* module_of = ffi::Function::GetGlobalRequired("ffi.tether.ModuleOfFunction")().cast<void*>();
  module_of_function = reinterpret_cast<decltype(module_of_function)>(module_of);
}

}  // namespace tether_py
