// SPDX-License-Identifier: Apache-2.0
// What the memory of objects of a type can refer to, and which of it Python defined.
#include "python/wrap/edges_of_type.h"

#include <tvm/ffi/any.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/reflection/accessor.h>

#include <memory>
#include <new>
#include <vector>

#include "core/field_kind.h"
#include "python/wrap/wrapper_object.h"

namespace tether_py {

using ffi::tether::FieldKind;
using ffi::tether::HoldsReferences;
using ffi::tether::KindOfField;

bool HasPythonFields(int32_t type_index) {
  static const ffi::reflection::TypeAttrColumn layouts("__tether_py_class_layout__");
  return layouts[type_index] != nullptr;
}

namespace {

// Calls f(field) for the fields of references that Python defined, until it returns true.
template <typename F>
bool AnyPythonField(int32_t type_index, F&& f) {
  const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(type_index);
  for (int32_t depth = type->type_depth; depth >= 0; --depth) {
    const TVMFFITypeInfo* owner = depth == type->type_depth ? type : type->type_ancestors[depth];
    if (!HasPythonFields(owner->type_index)) return false;  // nor are its ancestors
    for (int32_t i = 0; i < owner->num_fields; ++i) {
      if (HoldsReferences(KindOfField(owner->fields[i])) && f(owner->fields[i])) return true;
    }
  }
  return false;
}

}  // namespace

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

// ---- what fields declare

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

// Clients compiled against older headers do not mark fields as plain. What such a field declares
// tells a reference that counts from anything else in three cases:
//   8 bytes, static type of an object   raw pointers have no static type, standard containers are
//                                       larger
//   8 bytes, Optional of an object      std::optional of a reference has 16 bytes
//   16 bytes, Any
// Other fields are not read: std::optional and std::variant share schemas with types of ours that
// have another layout. Throws where the schema cannot be read or memory is short.
bool DeclaresReference(const TVMFFIFieldInfo& field) {
  bool is_pointer = field.size == sizeof(void*);
  if (field.field_static_type_index >= ffi::TypeIndex::kTVMFFIObject) return is_pointer;
  bool is_cell = is_pointer || field.size == sizeof(TVMFFIAny);
  if (field.field_static_type_index != ffi::TypeIndex::kTVMFFIAny || !is_cell) return false;
  ffi::json::Value schema = SchemaOf(field);
  ffi::String name = TypeName(schema);
  if (field.size == sizeof(TVMFFIAny)) return name == "Any";
  auto args = Get(schema, "args").as<ffi::json::Array>();
  return name == "Optional" && args.has_value() && args->size() == 1 && IsObjectType((*args)[0]);
}

bool OwnsObject(const TVMFFIFieldInfo& field) {
  if ((field.flags & kTVMFFIFieldFlagBitMaskPlain) != 0) {
    return HoldsReferences(KindOfField(field));
  }
  try {
    return DeclaresReference(field);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {  // no schema that we can read
    return false;
  }
}

}  // namespace

// ---- fields that own

std::atomic<OwningFieldsBlock*> owning_fields[kNumFieldsBlocks];

namespace {

const OwningFields& no_fields = *new OwningFields{};

// Of the thread that stores first. Throws bad_alloc.
OwningFieldsBlock* MakeBlock(std::atomic<OwningFieldsBlock*>* place) {
  auto made = std::make_unique<OwningFieldsBlock>();
  OwningFieldsBlock* found = nullptr;
  return place->compare_exchange_strong(found, made.get()) ? made.release() : found;
}

// Throws bad_alloc.
std::unique_ptr<OwningFields> ReadOwningFields(const TVMFFITypeInfo* type) {
  std::unique_ptr<OwningFields> made(new OwningFields{type, type->num_fields, {}, nullptr});
  ffi::reflection::ForEachFieldInfo(type, [&](const TVMFFIFieldInfo* field) {
    if (OwnsObject(*field)) made->all.push_back({field->offset, field->size, field});
  });
  return made;
}

}  // namespace

const OwningFields* LearnOwningFields(int32_t type_index) {
  auto i = static_cast<size_t>(type_index);
  if (i / kFieldsInBlock >= kNumFieldsBlocks) return &no_fields;
  try {
    std::atomic<OwningFieldsBlock*>& block_place = owning_fields[i / kFieldsInBlock];
    OwningFieldsBlock* block = block_place.load(std::memory_order_acquire);
    if (block == nullptr) block = MakeBlock(&block_place);
    std::atomic<const OwningFields*>& place = block->of[i % kFieldsInBlock];
    const OwningFields* found = place.load(std::memory_order_acquire);
    if (found != nullptr && found->IsUpToDate()) return found;  // another thread's
    std::unique_ptr<OwningFields> made = ReadOwningFields(TVMFFIGetTypeInfo(type_index));
    made->before = found;
    return place.compare_exchange_strong(found, made.get()) ? made.release() : found;
  } catch (const std::bad_alloc&) {
    return &no_fields;
  }
}

// ---- what is known of a type

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
  bool is_python_defined = HasPythonFields(type_index);
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

}  // namespace tether_py
