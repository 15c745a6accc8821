// SPDX-License-Identifier: Apache-2.0
// Making objects of a type that is known only by its key.
//
//   reflection::ObjectCreator make_point("demo.Point");
//   Any point = make_point(Map<String, Any>{{"x", 1}, {"y", 2}});
#ifndef TVM_FFI_REFLECTION_CREATOR_H_
#define TVM_FFI_REFLECTION_CREATOR_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/string.h>

#include <string_view>
#include <utility>

namespace tvm {
namespace ffi {
namespace tether {

// The type's `__ffi_new__` function; None when it has none.
inline AnyView NewFunctionOf(const TVMFFITypeInfo* type_info) {
  static reflection::TypeAttrColumn column(reflection::type_attr::kNew);
  AnyView entry = column[type_info->type_index];
  return entry.type_index() == kTVMFFIFunction ? entry : AnyView();
}

[[noreturn]] TVM_FFI_COLD_CODE inline void ThrowNotCreatable(const TVMFFITypeInfo* type_info,
                                                             const char* text) {
  TVM_FFI_THROW(RuntimeError) << "Type `" << ToView(type_info->type_key) << "` does not support "
                              << text;
}

[[noreturn]] TVM_FFI_COLD_CODE inline void ThrowFieldNotSet(const TVMFFITypeInfo* type_info,
                                                            std::string_view field) {
  TVM_FFI_THROW(TypeError) << "Required field `" << field << "` not set in type `"
                           << ToView(type_info->type_key) << "`";
}

[[noreturn]] TVM_FFI_COLD_CODE inline void ThrowUnknownField(const TVMFFITypeInfo* type_info,
                                                             std::string_view field) {
  TVM_FFI_THROW(TypeError) << "Type `" << ToView(type_info->type_key) << "` does not have field `"
                           << field << "`";
}

[[noreturn]] TVM_FFI_COLD_CODE inline void ThrowCannotConvert(AnyView value,
                                                              const std::string& target) {
  TVM_FFI_THROW(TypeError) << "Cannot cast from `" << value.GetTypeKey() << "` to `" << target
                           << "`";
}

}  // namespace tether

// Whether CreateEmptyObject can work for the type.
inline bool HasCreator(const TVMFFITypeInfo* type_info) {
  if (type_info->metadata != nullptr && type_info->metadata->creator != nullptr) return true;
  return tether::NewFunctionOf(type_info) != nullptr;
}

// A new object whose fields are still to be set.
inline ObjectPtr<Object> CreateEmptyObject(const TVMFFITypeInfo* type_info) {
  if (type_info->metadata != nullptr && type_info->metadata->creator != nullptr) {
    TVMFFIObjectHandle handle = nullptr;
    TVM_FFI_CHECK_SAFE_CALL(type_info->metadata->creator(&handle));
    return detail::ObjectUnsafe::ObjectPtrFromOwned<Object>(static_cast<TVMFFIObject*>(handle));
  }
  AnyView create = tether::NewFunctionOf(type_info);
  if (create == nullptr) {
    tether::ThrowNotCreatable(type_info,
                              "reflection creation (no native creator or __ffi_new__ type attr)");
  }
  ObjectRef made = create.cast<Function>()().cast<ObjectRef>();
  return detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(made));
}

namespace reflection {

// Makes objects of one type from named field values.
class ObjectCreator {
 public:
  explicit ObjectCreator(std::string_view type_key)
      : ObjectCreator(tether::TypeInfoOfKey(type_key)) {}
  explicit ObjectCreator(const TVMFFITypeInfo* type_info) : type_info_(type_info) {
    if (HasCreator(type_info_)) return;
    tether::ThrowNotCreatable(type_info_,
                              "default constructor, as a result cannot be created via reflection");
  }

  // Fields that are not given take their default; one without default must be given.
  Any operator()(const Map<String, Any>& fields) const {
    RejectUnknownFields(fields);
    ObjectPtr<Object> object = CreateEmptyObject(type_info_);
    ForEachFieldInfo(type_info_, [&](const TVMFFIFieldInfo* info) {
      void* address = tether::FieldAddress(object.get(), info);
      auto it = fields.find(String(info->name));
      if (it != fields.end()) {
        Any value = (*it).second;
        TVMFFIAny raw = AnyView(value).CopyToTVMFFIAny();
        TVM_FFI_CHECK_SAFE_CALL(CallFieldSetter(info, address, &raw));
      } else if ((info->flags & kTVMFFIFieldFlagBitMaskHasDefault) != 0) {
        SetFieldToDefault(info, address);
      } else {
        tether::ThrowFieldNotSet(type_info_, tether::ToView(info->name));
      }
    });
    return Any(ObjectRef(std::move(object)));
  }

 private:
  void RejectUnknownFields(const Map<String, Any>& fields) const {
    for (const auto& entry : fields) {
      const String& key = entry.first;
      std::string_view name(key.data(), key.size());
      bool known = ForEachFieldInfoWithEarlyStop(type_info_, [&](const TVMFFIFieldInfo* info) {
        return tether::ToView(info->name) == name;
      });
      if (!known) tether::ThrowUnknownField(type_info_, name);
    }
  }

  const TVMFFITypeInfo* type_info_;
};

namespace detail {

// Body of the `__ffi_convert__` attribute.
template <typename T>
inline T FFIConvertFromAnyViewToObjectRef(AnyView input) {
  TVMFFIAny raw = input.CopyToTVMFFIAny();
  std::optional<T> converted = TypeTraits<T>::TryCastFromAnyView(&raw);
  if (!converted.has_value()) tether::ThrowCannotConvert(input, TypeTraits<T>::TypeStr());
  return *std::move(converted);
}

}  // namespace detail
}  // namespace reflection
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_CREATOR_H_
