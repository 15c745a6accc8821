// SPDX-License-Identifier: Apache-2.0
// Reading what was registered: fields, methods and type attributes of any object.
//
//   reflection::FieldGetter get_x("demo.Point", "x");
//   int64_t x = get_x(point).cast<int64_t>();
//   reflection::FieldSetter("demo.Point", "x")(point, x + 1);
//   reflection::GetMethod("demo.Point", "norm")(point);
//
// Records live as long as the process. The arrays that hold them may move when more is registered,
// so a record's address is good for one use; a TypeAttrColumn may be kept.
#ifndef TVM_FFI_REFLECTION_ACCESSOR_H_
#define TVM_FFI_REFLECTION_ACCESSOR_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/native_function.h>
#include <tvm/ffi/type_traits.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tvm {
namespace ffi {
class EnumState;
class StructuralMutatorObj;
class StructuralVisitorObj;
class VisitInterrupt;
template <typename T>
class UnchangedOr;

namespace reflection {

// View of a NUL-terminated string.
constexpr TVMFFIByteArray AsByteArray(const char* text) {
  return TVMFFIByteArray{text, std::char_traits<char>::length(text)};
}

// The name of an attribute and the type of its values.
template <typename T>
struct AttrKey {
  using ValueType = T;
  const char* name;

  // The value in an entry; nullopt for None, TypeError for anything that is not a T.
  std::optional<T> ValueFrom(AnyView entry) const {
    if (entry == nullptr) return std::nullopt;
    return entry.template as_or_throw<T>();
  }
  // Up to 0.1.14 the names were strings.
  constexpr operator const char*() const { return name; }  // NOLINT(*)
};

}  // namespace reflection

// The attribute columns that have a meaning to the runtime. A hook of another signature can be
// registered under a name as well; it fails when it is called.
namespace type_attr {

using reflection::AttrKey;

// A fresh object to be filled through its setters.
inline constexpr AttrKey<TypedFunction<ObjectRef()>> kNew{"__ffi_new__"};
// `(*args [, KWARGS, key, value, ...]) -> obj`.
inline constexpr AttrKey<Function> kInit{"__ffi_init__"};
// Implicit conversion into the type.
inline constexpr AttrKey<TypedFunction<Any(AnyView)>> kConvert{"__ffi_convert__"};
// JSON schema of what kConvert accepts.
inline constexpr AttrKey<Any> kConvertTypeSchema{"__ffi_convert_type_schema__"};
// A copy that shares its children.
inline constexpr AttrKey<TypedFunction<ObjectRef(const Object*)>> kShallowCopy{
    "__ffi_shallow_copy__"};
// Whether the class is final.
inline constexpr AttrKey<bool> kTypeFinal{"__ffi_type_final__"};
// `(self, fn_repr)`.
inline constexpr AttrKey<
    TypedFunction<String(const Object*, const TypedFunction<String(AnyView)>&)>>
    kRepr{"__ffi_repr__"};
// `(self, fn_hash)`.
inline constexpr AttrKey<
    TypedFunction<int64_t(const Object*, const TypedFunction<int64_t(AnyView)>&)>>
    kHash{"__ffi_hash__"};
// `(lhs, rhs, fn_eq)`.
inline constexpr AttrKey<
    TypedFunction<bool(const Object*, const Object*, const TypedFunction<bool(AnyView, AnyView)>&)>>
    kEq{"__ffi_eq__"};
// `(lhs, rhs, fn_cmp)`: negative, zero or positive.
inline constexpr AttrKey<TypedFunction<int32_t(const Object*, const Object*,
                                               const TypedFunction<int32_t(AnyView, AnyView)>&)>>
    kCompare{"__ffi_compare__"};
// Hash as a container key.
inline constexpr AttrKey<reflection::NativeFunctionView<int64_t(const Any&)>> kAnyHash{
    "__any_hash__"};
// Key equality.
inline constexpr AttrKey<reflection::NativeFunctionView<bool(const Any&, const Any&)>> kAnyEqual{
    "__any_equal__"};
// `(self, init, callback)`: replaces the field walk of structural hashing. callback takes a value,
// the hash so far and the kind of region.
inline constexpr AttrKey<TypedFunction<int64_t(
    const Object*, int64_t, const TypedFunction<int64_t(AnyView, int64_t, int)>&)>>
    kSHash{"__s_hash__"};
// `(lhs, rhs, callback)`: replaces the field walk of structural equality. callback takes two
// values, the kind of region and the name of the part.
inline constexpr AttrKey<TypedFunction<bool(
    const Object*, const Object*, const TypedFunction<bool(AnyView, AnyView, int, AnyView)>&)>>
    kSEqual{"__s_equal__"};
// `(visitor, value)`: visits the parts of a value.
inline constexpr AttrKey<
    reflection::NativeFunctionView<Optional<VisitInterrupt>(StructuralVisitorObj*, AnyView)>>
    kStructuralVisit{"__s_visit__"};
// `(mutator, value)`: the value with its parts mutated.
inline constexpr AttrKey<
    reflection::NativeFunctionView<UnchangedOr<Any>(StructuralMutatorObj*, AnyView)>>
    kStructuralMutate{"__s_mutate__"};
// The same for a value that nobody else refers to, which may be changed in place.
inline constexpr AttrKey<
    reflection::NativeFunctionView<UnchangedOr<Any>(StructuralMutatorObj*, AnyView)>>
    kStructuralMaybeInplaceMutate{"__s_maybe_inplace_mutate__"};
// `(self) -> json value`.
inline constexpr AttrKey<TypedFunction<Any(AnyView)>> kDataToJson{"__data_to_json__"};
// `(json value) -> obj`.
inline constexpr AttrKey<TypedFunction<Any(AnyView)>> kDataFromJson{"__data_from_json__"};
// The state of an enum class.
inline constexpr AttrKey<EnumState> kEnumState{"__ffi_enum__"};

}  // namespace type_attr

namespace reflection {
// Where the names were up to 0.1.14.
namespace type_attr = ::tvm::ffi::type_attr;
}  // namespace reflection

namespace tether {

// A value of an attribute as its key wants it: converted where that is possible. What does not fit
// is reported when it is used.
template <typename T, typename V>
Any ToAttrValue(V&& value) {
  if constexpr (!std::is_same_v<T, Any> && std::is_convertible_v<V, T>) {
    return Any(static_cast<T>(std::forward<V>(value)));
  } else {
    return Any(std::forward<V>(value));
  }
}

inline std::string_view ToView(const TVMFFIByteArray& bytes) {
  return std::string_view(bytes.data, bytes.size);
}

// First record of that exact name, or nullptr.
template <typename Info>
const Info* FindRecord(const Info* records, int32_t count, std::string_view name) {
  for (int32_t i = 0; i < count; ++i) {
    if (ToView(records[i].name) == name) return records + i;
  }
  return nullptr;
}

inline const TVMFFITypeInfo* TypeInfoOfKey(std::string_view type_key) {
  return TVMFFIGetTypeInfo(TypeKeyToIndex(type_key));
}

inline void* FieldAddress(const Object* object, const TVMFFIFieldInfo* info) {
  return reinterpret_cast<char*>(detail::ObjectUnsafe::GetHeader(object)) + info->offset;
}

[[noreturn]] TVM_FFI_COLD_CODE inline void ThrowNoField(std::string_view type_key,
                                                        std::string_view name) {
  TVM_FFI_THROW(RuntimeError) << "Cannot find field  `" << name << "` in " << type_key;
}

[[noreturn]] TVM_FFI_COLD_CODE inline void ThrowNoMethod(std::string_view type_key,
                                                         std::string_view name) {
  TVM_FFI_THROW(RuntimeError) << "Cannot find method " << name << " in " << type_key;
}

[[noreturn]] TVM_FFI_COLD_CODE inline void ThrowNoTypeAttr(std::string_view name) {
  TVM_FFI_THROW(RuntimeError) << "Cannot find type attribute " << name;
}

}  // namespace tether

namespace reflection {

// Record of a field that the type itself (not an ancestor) registered.
inline const TVMFFIFieldInfo* GetFieldInfo(std::string_view type_key, const char* field_name) {
  const TVMFFITypeInfo* type = tether::TypeInfoOfKey(type_key);
  const TVMFFIFieldInfo* info = tether::FindRecord(type->fields, type->num_fields, field_name);
  if (info == nullptr) tether::ThrowNoField(type_key, field_name);
  return info;
}

// Record of the first method of that name that the type itself registered.
inline const TVMFFIMethodInfo* GetMethodInfo(std::string_view type_key, const char* method_name) {
  const TVMFFITypeInfo* type = tether::TypeInfoOfKey(type_key);
  const TVMFFIMethodInfo* info = tether::FindRecord(type->methods, type->num_methods, method_name);
  if (info == nullptr) tether::ThrowNoMethod(type_key, method_name);
  return info;
}

inline Function GetMethod(std::string_view type_key, const char* method_name) {
  const TVMFFIMethodInfo* info = GetMethodInfo(type_key, method_name);
  return AnyView::CopyFromTVMFFIAny(info->method).cast<Function>();
}

// Stores a value in the field at `field_addr`; 0, or -1 with the error raised.
inline int CallFieldSetter(const TVMFFIFieldInfo* info, void* field_addr, const TVMFFIAny* value) {
  if ((info->flags & kTVMFFIFieldFlagBitSetterIsFunctionObj) == 0) {
    return reinterpret_cast<TVMFFIFieldSetter>(info->setter)(field_addr, value);
  }
  TVMFFIAny args[2] = {AnyView(field_addr).CopyToTVMFFIAny(), *value};
  TVMFFIAny raw = AnyView().CopyToTVMFFIAny();
  int code = TVMFFIFunctionCall(info->setter, args, 2, &raw);
  Any discarded = ffi::detail::AnyUnsafe::MoveTVMFFIAnyToAny(&raw);
  return code;
}

// Reads one field of any object of the type it was made for.
class FieldGetter {
 public:
  explicit FieldGetter(const TVMFFIFieldInfo* field_info) : field_info_(field_info) {}
  explicit FieldGetter(std::string_view type_key, const char* field_name)
      : FieldGetter(GetFieldInfo(type_key, field_name)) {}

  Any operator()(const Object* obj_ptr) const {
    TVMFFIAny raw = AnyView().CopyToTVMFFIAny();
    TVM_FFI_CHECK_SAFE_CALL(field_info_->getter(tether::FieldAddress(obj_ptr, field_info_), &raw));
    return ffi::detail::AnyUnsafe::MoveTVMFFIAnyToAny(&raw);
  }
  Any operator()(const ObjectPtr<Object>& obj_ptr) const { return operator()(obj_ptr.get()); }
  Any operator()(const ObjectRef& obj) const { return operator()(obj.get()); }

 private:
  const TVMFFIFieldInfo* field_info_;
};

// Writes one field, also where the field is read-only to users.
class FieldSetter {
 public:
  explicit FieldSetter(const TVMFFIFieldInfo* field_info) : field_info_(field_info) {}
  explicit FieldSetter(std::string_view type_key, const char* field_name)
      : FieldSetter(GetFieldInfo(type_key, field_name)) {}

  void operator()(const Object* obj_ptr, AnyView value) const {
    TVMFFIAny raw = value.CopyToTVMFFIAny();
    TVM_FFI_CHECK_SAFE_CALL(
        CallFieldSetter(field_info_, tether::FieldAddress(obj_ptr, field_info_), &raw));
  }
  void operator()(const ObjectPtr<Object>& obj_ptr, AnyView value) const {
    operator()(obj_ptr.get(), value);
  }
  void operator()(const ObjectRef& obj, AnyView value) const { operator()(obj.get(), value); }

 private:
  const TVMFFIFieldInfo* field_info_;
};

// One attribute of all types.
class TypeAttrColumn {
 public:
  explicit TypeAttrColumn(std::string_view attr_name) {
    TVMFFIByteArray name{attr_name.data(), attr_name.size()};
    column_ = TVMFFIGetTypeAttrColumn(&name);
    if (column_ == nullptr) tether::ThrowNoTypeAttr(attr_name);
  }
  template <typename T>
  explicit TypeAttrColumn(AttrKey<T> key) : TypeAttrColumn(std::string_view(key.name)) {}

  // The type's entry, None when it has none.
  AnyView operator[](int32_t type_index) const {
    const TVMFFIAny* entry = tether::FindAttr(column_, type_index);
    return entry == nullptr ? AnyView() : AnyView::CopyFromTVMFFIAny(*entry);
  }

 private:
  const TVMFFITypeAttrColumn* column_;
};

// Stores the field's default, or a fresh value from its factory; the status is that of the setter.
inline int CallFieldSetterToDefault(const TVMFFIFieldInfo* field_info, void* field_addr) {
  AnyView stored = AnyView::CopyFromTVMFFIAny(field_info->default_value_or_factory);
  Any made;
  if ((field_info->flags & kTVMFFIFieldFlagBitMaskDefaultFromFactory) != 0) {
    made = stored.cast<Function>()();
    stored = made;
  }
  TVMFFIAny raw = stored.CopyToTVMFFIAny();
  return CallFieldSetter(field_info, field_addr, &raw);
}

// The same, throwing the error of the setter.
inline void SetFieldToDefault(const TVMFFIFieldInfo* field_info, void* field_addr) {
  TVM_FFI_CHECK_SAFE_CALL(CallFieldSetterToDefault(field_info, field_addr));
}

// Calls `callback(const TVMFFIFieldInfo*) -> bool` for inherited fields, outermost ancestor
// first, then the type's own; stops at the first true and returns whether there was one.
template <typename Callback>
inline bool ForEachFieldInfoWithEarlyStop(const TVMFFITypeInfo* type_info, Callback callback) {
  auto visit = [&callback](const TVMFFITypeInfo* type) {
    for (int32_t i = 0; i < type->num_fields; ++i) {
      if (callback(type->fields + i)) return true;
    }
    return false;
  };
  // The root, ffi.Object, has no fields.
  for (int32_t depth = 1; depth < type_info->type_depth; ++depth) {
    if (visit(type_info->type_ancestors[depth])) return true;
  }
  return visit(type_info);
}

// The same walk without early stop.
template <typename Callback>
inline void ForEachFieldInfo(const TVMFFITypeInfo* type_info, Callback callback) {
  ForEachFieldInfoWithEarlyStop(type_info, [&callback](const TVMFFIFieldInfo* info) {
    callback(info);
    return false;
  });
}

}  // namespace reflection
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_ACCESSOR_H_
