// SPDX-License-Identifier: Apache-2.0
//
// Classes defined in Python. The frontend lays out the fields and registers them, then calls
//
//   ffi._PyClassRegisterTypeAttrColumns(type_index, total_size)
//
// and from then on the type has a constructor, an allocator and a shallow copy like any C++ class.
// There is no C++ class for such an object: it is a block of zeros with a header, and the
// reflected fields say which parts of it hold references. Zero bytes are a None value, a null
// reference and a zero number at once, so a fresh block is a valid object.
#include <tvm/ffi/any.h>
#include <tvm/ffi/device.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/type_table.h"
#include "dataclass_internal.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

// Private column: the PyClassLayout of a type, as an opaque pointer.
constexpr const char* kLayoutAttr = "__tether_py_class_layout__";

enum class Storage : uint8_t { kPlain, kAny, kObject };

// The value of a key in a JSON text, as a string. Nothing if the text is not an object with it.
std::optional<String> StringInJSON(const String& text, const char* key) {
  String error;
  auto object = json::Parse(text, &error).as<json::Object>();
  if (!object.has_value()) return std::nullopt;
  auto value = object->Get(key);
  return value.has_value() ? (*value).as<String>() : std::nullopt;
}

// A field of static type Any and the size of a pointer is either an Optional<object>, which owns,
// or a plain C++ pointer to an object or a string, which does not. The schema tells them apart.
bool IsBorrowedPointer(const TVMFFIFieldInfo& field) {
  String metadata(field.metadata.data, field.metadata.size);
  std::optional<String> schema = StringInJSON(metadata, "type_schema");
  if (!schema.has_value()) return false;
  std::optional<String> type = StringInJSON(*schema, "type");
  return type.has_value() && *type != "Optional";
}

Storage StorageOf(const TVMFFITypeInfo* type, const TVMFFIFieldInfo& field) {
  int32_t index = field.field_static_type_index;
  if (index >= 0 && index < kTVMFFIStaticObjectBegin) return Storage::kPlain;
  if (index == kTVMFFIAny && field.size == sizeof(TVMFFIAny)) return Storage::kAny;
  if (field.size == sizeof(TVMFFIObject*)) {
    return index == kTVMFFIAny && IsBorrowedPointer(field) ? Storage::kPlain : Storage::kObject;
  }
  TVM_FFI_THROW(TypeError) << "Field \"" << ToView(field.name) << "\" of type \""
                           << ToView(type->type_key) << "\" holds a C++ object of " << field.size
                           << " bytes, which a Python-defined class cannot store";
  TVM_FFI_UNREACHABLE();
}

struct PyClassField {
  size_t offset;
  size_t size;
  Storage storage;
};

struct PyClassLayout {
  const TVMFFITypeInfo* type;
  size_t total_size;
  std::vector<PyClassField> fields;  // ancestors' included; two may name the same storage

  PyClassLayout(const TVMFFITypeInfo* type, int64_t total_size)
      : type(type), total_size(static_cast<size_t>(total_size)) {
    if (total_size < static_cast<int64_t>(sizeof(TVMFFIObject))) {
      TVM_FFI_THROW(ValueError) << "Type \"" << ToView(type->type_key)
                                << "\" cannot have a size of " << total_size
                                << " bytes, less than the object header";
    }
    reflection::ForEachFieldInfo(type, [&](const TVMFFIFieldInfo* field) {
      if (field->offset < static_cast<int64_t>(sizeof(TVMFFIObject)) || field->size < 0 ||
          field->size > total_size - field->offset) {
        TVM_FFI_THROW(ValueError) << "Field \"" << ToView(field->name)
                                  << "\" lies outside of type \"" << ToView(type->type_key)
                                  << "\", which has " << total_size << " bytes";
      }
      fields.push_back({static_cast<size_t>(field->offset), static_cast<size_t>(field->size),
                        StorageOf(type, *field)});
    });
  }
};

const PyClassLayout& LayoutOf(const TVMFFIObject* header) {
  static const reflection::TypeAttrColumn layouts(kLayoutAttr);
  TVMFFIAny entry = layouts[header->type_index].CopyToTVMFFIAny();
  return *static_cast<const PyClassLayout*>(entry.v_ptr);
}

template <typename T>
T* FieldAt(const void* object, const PyClassField& field) {
  return reinterpret_cast<T*>(static_cast<char*>(const_cast<void*>(object)) + field.offset);
}

// Leaves every reference empty, so that a second field over the same storage finds nothing to
// release.
void DropFields(void* self) {
  for (const PyClassField& field : LayoutOf(static_cast<TVMFFIObject*>(self)).fields) {
    if (field.storage == Storage::kAny) FieldAt<Any>(self, field)->reset();
    if (field.storage == Storage::kObject) FieldAt<ObjectPtr<Object>>(self, field)->reset();
  }
}

void DestroyPyObject(void* self, int flags) {
  DeleteInPhases(static_cast<TVMFFIObject*>(self), self, flags, [self] { DropFields(self); });
}

void* AllocateBody(const PyClassLayout& layout) {
  TVMFFICustomAllocator* allocator = TVMFFIGetCustomAllocator();
  void* body = allocator->allocate(layout.total_size, alignof(std::max_align_t),
                                   layout.type->type_index, allocator->context);
  if (body == nullptr) {
    TVM_FFI_THROW(RuntimeError) << "Failed to allocate " << layout.total_size << " bytes for type "
                                << ToView(layout.type->type_key);
  }
  return body;
}

ObjectPtr<Object> NewPyObject(const PyClassLayout& layout) {
  void* body = std::memset(AllocateBody(layout), 0, layout.total_size);
  auto* header = static_cast<TVMFFIObject*>(body);
  header->combined_ref_count = details::kCombinedRefCountBothOne;
  header->type_index = layout.type->type_index;
  header->__padding = kTVMFFIObjectAllocHeaderMark;
  header->deleter = DeleteNested<DestroyPyObject>;
  return details::ObjectUnsafe::ObjectPtrFromOwned<Object>(header);
}

ObjectRef CopyPyObject(const PyClassLayout& layout, const Object* source) {
  if (source->type_index() != layout.type->type_index) {
    TVM_FFI_THROW(TypeError) << "Expected an object of type `" << ToView(layout.type->type_key)
                             << "` but got `" << source->GetTypeKey() << "`";
  }
  ObjectPtr<Object> copy = NewPyObject(layout);
  for (const PyClassField& field : layout.fields) {
    switch (field.storage) {
      case Storage::kPlain:
        std::memcpy(FieldAt<char>(copy.get(), field), FieldAt<char>(source, field), field.size);
        break;
      // Assigned, not constructed: storage named twice is then counted once.
      case Storage::kAny:
        *FieldAt<Any>(copy.get(), field) = *FieldAt<Any>(source, field);
        break;
      case Storage::kObject:
        *FieldAt<ObjectPtr<Object>>(copy.get(), field) = *FieldAt<ObjectPtr<Object>>(source, field);
        break;
    }
  }
  return ObjectRef(std::move(copy));
}

void RegisterPyClass(int32_t type_index, int32_t total_size) {
  const TVMFFITypeInfo* type = RequireTypeInfo(type_index);
  auto owner = std::make_unique<PyClassLayout>(type, total_size);
  const PyClassLayout* layout = owner.get();
  RegisterAttr(type_index, reflection::type_attr::kInit,
               MakeInitFunction(type, [layout] { return NewPyObject(*layout); }));
  // From here on the type refers to its layout, which is never freed.
  RegisterAttr(type_index, kLayoutAttr, static_cast<void*>(owner.release()));
  RegisterAttr(type_index, reflection::type_attr::kNew,
               Function::FromTyped([layout] { return ObjectRef(NewPyObject(*layout)); }));
  RegisterAttr(type_index, reflection::type_attr::kShallowCopy,
               Function::FromTyped(
                   [layout](const Object* source) { return CopyPyObject(*layout, source); }));
}

template <typename T>
struct FieldOf {
  using type = T;
};

// Calls visit(FieldOf<T>) for the C++ type that a field of this static type holds.
template <typename Visit>
auto DispatchFieldType(int32_t type_index, const char* purpose, Visit visit) {
  if (type_index >= kTVMFFIStaticObjectBegin) return visit(FieldOf<ObjectRef>());
  switch (type_index) {
    case kTVMFFIAny:
    case kTVMFFINone:
      return visit(FieldOf<Any>());
    case kTVMFFIInt:
      return visit(FieldOf<int64_t>());
    case kTVMFFIBool:
      return visit(FieldOf<bool>());
    case kTVMFFIFloat:
      return visit(FieldOf<double>());
    case kTVMFFIOpaquePtr:
      return visit(FieldOf<void*>());
    case kTVMFFIDataType:
      return visit(FieldOf<DLDataType>());
    case kTVMFFIDevice:
      return visit(FieldOf<DLDevice>());
    default:
      TVM_FFI_THROW(ValueError) << "Unsupported field type index for " << purpose << ": "
                                << type_index;
  }
  TVM_FFI_UNREACHABLE();
}

int64_t MakeFieldGetter(int32_t type_index) {
  return DispatchFieldType(type_index, "getter", [](auto field_type) {
    TVMFFIFieldGetter getter = ReadField<typename decltype(field_type)::type>;
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(getter));
  });
}

// A frontend's conversion of a value to what the field declares; out is owned.
using FConvert = int (*)(void* converter, const TVMFFIAny* in, TVMFFIAny* out);

Any Convert(FConvert convert, void* converter, AnyView value) {
  TVMFFIAny in = value.CopyToTVMFFIAny();
  TVMFFIAny out = AnyView().CopyToTVMFFIAny();
  TVM_FFI_CHECK_SAFE_CALL(convert(converter, &in, &out));
  return details::AnyUnsafe::MoveTVMFFIAnyToAny(&out);
}

Function MakeFieldSetter(int32_t type_index, int64_t converter_address, int64_t convert_address) {
  auto* converter = reinterpret_cast<void*>(static_cast<intptr_t>(converter_address));
  auto convert = reinterpret_cast<FConvert>(static_cast<intptr_t>(convert_address));
  if (convert == nullptr) {
    TVM_FFI_THROW(ValueError) << "The address of the field converter must not be 0";
  }
  return DispatchFieldType(type_index, "setter", [=](auto field_type) {
    using T = typename decltype(field_type)::type;
    return Function::FromTyped([=](void* field, AnyView value) {
      Any converted = Convert(convert, converter, value);
      if constexpr (std::is_same_v<T, Any>) {
        *static_cast<Any*>(field) = std::move(converted);
      } else {
        *static_cast<T*>(field) = std::move(converted).template cast<T>();
      }
    });
  });
}

}  // namespace
}  // namespace tether

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::EnsureTypeAttrColumn(tether::kLayoutAttr);
  reflection::GlobalDef()
      .def("ffi._PyClassRegisterTypeAttrColumns", tether::RegisterPyClass)
      .def("ffi.MakeFieldGetter", tether::MakeFieldGetter)
      .def("ffi.MakeFieldSetter", tether::MakeFieldSetter);
}

}  // namespace ffi
}  // namespace tvm
