// SPDX-License-Identifier: Apache-2.0
// Registering functions, classes and type attributes so that every frontend sees them.
//
//   TVM_FFI_STATIC_INIT_BLOCK() {
//     namespace refl = tvm::ffi::reflection;
//     refl::GlobalDef().def("demo.add", [](int a, int b) { return a + b; }, "Adds two integers.");
//     refl::ObjectDef<PointObj>()
//         .def(refl::init<int64_t, int64_t>())
//         .def_rw("x", &PointObj::x, "Distance from the origin.", refl::default_value(0))
//         .def_ro("y", &PointObj::y)
//         .def("norm", &PointObj::Norm);
//   }
//
// What depends on a type is reduced to a few function pointers at once; everything else below is
// ordinary code, so a client pays little for each registration. Registration runs before the
// dynamic initialisers of its own file and therefore never reads a class's `_type_index`: it asks
// `_GetOrAllocRuntimeTypeIndex()`.
#ifndef TVM_FFI_REFLECTION_REGISTRY_H_
#define TVM_FFI_REFLECTION_REGISTRY_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/function_details.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/creator.h>
#include <tvm/ffi/string.h>
#include <tvm/ffi/type_traits.h>

#include <cstring>
#include <exception>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {
namespace reflection {

using _MetadataType = std::vector<std::pair<String, Any>>;

// A field record being built, with the user's metadata still as values.
struct FieldInfoBuilder : public TVMFFIFieldInfo {
  _MetadataType metadata_;
};

// A method or global function record being built.
struct MethodInfoBuilder : public TVMFFIMethodInfo {
  _MetadataType metadata_;
};

// Base of the extra arguments of `def*`: `Apply(builder*)` edits the record. A trait that has no
// `Apply` for a kind of record is ignored there.
struct InfoTrait {};

// Adds entries to the metadata; values are integers, booleans or strings.
class Metadata : public InfoTrait {
 public:
  Metadata(std::initializer_list<std::pair<String, Any>> dict) : dict_(dict) {}

  void Apply(FieldInfoBuilder* info) const { AppendTo(&info->metadata_); }
  void Apply(MethodInfoBuilder* info) const { AppendTo(&info->metadata_); }

 private:
  void AppendTo(_MetadataType* out) const { out->insert(out->end(), dict_.begin(), dict_.end()); }

  _MetadataType dict_;
};

// The value a field takes when none is given.
class DefaultValue : public InfoTrait {
 public:
  explicit DefaultValue(Any value) : value_(std::move(value)) {}

  void Apply(TVMFFIFieldInfo* info) const {
    info->default_value_or_factory = AnyView(value_).CopyToTVMFFIAny();
    info->flags |= kTVMFFIFieldFlagBitMaskHasDefault;
  }

 private:
  Any value_;
};

// A function without arguments that makes the default, anew for each object.
class DefaultFactory : public InfoTrait {
 public:
  explicit DefaultFactory(Function factory) : factory_(std::move(factory)) {}

  void Apply(TVMFFIFieldInfo* info) const {
    info->default_value_or_factory = AnyView(factory_).CopyToTVMFFIAny();
    info->flags |= kTVMFFIFieldFlagBitMaskHasDefault | kTVMFFIFieldFlagBitMaskDefaultFromFactory;
  }

 private:
  Function factory_;
};

class default_value : public DefaultValue {
 public:
  using DefaultValue::DefaultValue;
};

class default_factory : public DefaultFactory {
 public:
  using DefaultFactory::DefaultFactory;
};

// Sets a bit of TVMFFIFieldFlagBitMask.
class AttachFieldFlag : public InfoTrait {
 public:
  explicit AttachFieldFlag(int32_t flag) : flag_(flag) {}

  // The field defines variables, and so does everything below it.
  static AttachFieldFlag SEqHashDefRecursive() {
    return AttachFieldFlag(kTVMFFIFieldFlagBitMaskSEqHashDefRecursive);
  }
  // The field defines variables, what they refer to does not.
  static AttachFieldFlag SEqHashDefNonRecursive() {
    return AttachFieldFlag(kTVMFFIFieldFlagBitMaskSEqHashDefNonRecursive);
  }
  // Structural equality and hashing skip the field.
  static AttachFieldFlag SEqHashIgnore() {
    return AttachFieldFlag(kTVMFFIFieldFlagBitMaskSEqHashIgnore);
  }

  void Apply(TVMFFIFieldInfo* info) const { info->flags |= flag_; }

 private:
  int32_t flag_;
};

// `repr(false)`: not shown in the repr.
class repr : public InfoTrait {
 public:
  explicit repr(bool show) : show_(show) {}
  void Apply(TVMFFIFieldInfo* info) const {
    if (!show_) info->flags |= kTVMFFIFieldFlagBitMaskReprOff;
  }

 private:
  bool show_;
};

// `compare(false)`: not part of recursive comparison.
class compare : public InfoTrait {
 public:
  explicit compare(bool enable) : enable_(enable) {}
  void Apply(TVMFFIFieldInfo* info) const {
    if (!enable_) info->flags |= kTVMFFIFieldFlagBitMaskCompareOff;
  }

 private:
  bool enable_;
};

// `hash(false)`: not part of recursive hashing.
class hash : public InfoTrait {
 public:
  explicit hash(bool enable) : enable_(enable) {}
  void Apply(TVMFFIFieldInfo* info) const {
    if (!enable_) info->flags |= kTVMFFIFieldFlagBitMaskHashOff;
  }

 private:
  bool enable_;
};

// `kw_only(true)`: a keyword-only parameter of the generated constructor.
class kw_only : public InfoTrait {
 public:
  explicit kw_only(bool enable) : enable_(enable) {}
  void Apply(TVMFFIFieldInfo* info) const {
    if (enable_) info->flags |= kTVMFFIFieldFlagBitMaskKwOnly;
  }

 private:
  bool enable_;
};

// `init<Args...>()` given to ObjectDef::def registers the constructor from Args. `init(false)` on
// a field keeps it out of the generated constructor, on the class there is no generated one.
template <typename... Args>
struct init : public InfoTrait {
  init() = default;
  explicit init(bool enable) : enabled(enable) {}

  void Apply(TVMFFIFieldInfo* info) const {
    if (!enabled) info->flags |= kTVMFFIFieldFlagBitMaskInitOff;
  }

  bool enabled = true;
};

init(bool)->init<>;

// Offset of a field from the object header, which need not be where the class begins.
template <typename Class, typename T>
inline int64_t GetFieldByteOffsetToObject(T Class::*field_ptr) {
  // A data member pointer is represented by its offset, in both the Itanium and the MSVC ABI.
  using Raw = std::conditional_t<sizeof(field_ptr) == sizeof(int64_t), int64_t, int32_t>;
  static_assert(sizeof(field_ptr) == sizeof(Raw), "unknown member pointer representation");
  Raw offset;
  std::memcpy(&offset, &field_ptr, sizeof(Raw));
  return offset - ffi::details::ObjectUnsafe::GetObjectOffsetToSubclass<Class>();
}

namespace details {

// See reflection::overload_cast.
template <typename... Args>
struct OverloadCastImpl {
  constexpr OverloadCastImpl() = default;

  template <typename R>
  constexpr auto operator()(R (*func)(Args...)) const noexcept -> decltype(func) {
    return func;
  }
  template <typename R, typename... Rest>
  constexpr auto operator()(R (*func)(Args..., Rest...)) const noexcept -> decltype(func) {
    return func;
  }
  template <typename R, typename Class>
  constexpr auto operator()(R (Class::*method)(Args...), std::false_type = {}) const noexcept
      -> decltype(method) {
    return method;
  }
  template <typename R, typename Class, typename... Rest>
  constexpr auto operator()(R (Class::*method)(Args..., Rest...),
                            std::false_type = {}) const noexcept -> decltype(method) {
    return method;
  }
  template <typename R, typename Class>
  constexpr auto operator()(R (Class::*method)(Args...) const, std::true_type) const noexcept
      -> decltype(method) {
    return method;
  }
  template <typename R, typename Class, typename... Rest>
  constexpr auto operator()(R (Class::*method)(Args..., Rest...) const,
                            std::true_type) const noexcept -> decltype(method) {
    return method;
  }
};

}  // namespace details

// `overload_cast<int>(&f)` is the overload of f whose parameters begin with int; for const member
// functions write `overload_cast<int>(&C::f, const_)`.
template <typename... Args>
inline constexpr details::OverloadCastImpl<Args...> overload_cast{};

inline constexpr auto const_ = std::true_type{};

}  // namespace reflection

namespace tether {

// ---- Fields -------------------------------------------------------------------------------------

// Types that are one TVMFFIAny in memory.
template <typename T>
inline constexpr bool kIsAnyCell = false;
template <>
inline constexpr bool kIsAnyCell<Any> = true;
template <>
inline constexpr bool kIsAnyCell<String> = true;
template <>
inline constexpr bool kIsAnyCell<Bytes> = true;
template <typename... V>
inline constexpr bool kIsAnyCell<Variant<V...>> = true;
template <typename T>
inline constexpr bool kIsAnyCell<Optional<T>> =
    !use_object_ptr_optional_v<T> && TypeTraits<T>::storage_enabled;

// Types that are one object pointer in memory, null for None.
template <typename T>
inline constexpr bool kIsObjectCell = (std::is_base_of_v<ObjectRef, T> || is_object_ptr_type_v<T> ||
                                       is_arc_type_v<T>)&&sizeof(T) == sizeof(void*);
template <typename F>
inline constexpr bool kIsObjectCell<TypedFunction<F>> = true;

template <typename T, bool kIsEnum = std::is_enum_v<T>>
struct IntegerOf {
  using type = T;
};
template <typename T>
struct IntegerOf<T, true> {
  using type = std::underlying_type_t<T>;
};

// The Plain flags of a field. An 8-byte unsigned field has none: its getter rejects values above
// INT64_MAX. Nor has Optional of a reference: a pointer under the static type Any.
template <typename T>
constexpr int64_t PlainFlags() {
  constexpr int64_t kPlain = kTVMFFIFieldFlagBitMaskPlain;
  constexpr int32_t kIndex = TypeToFieldStaticTypeIndex<T>::value;
  if constexpr (kIndex == kTVMFFIAny) {
    return kIsAnyCell<T> ? kPlain : 0;
  } else if constexpr (kIndex >= kTVMFFIObject) {
    return kIsObjectCell<T> ? kPlain : 0;
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, StrictBool>) {
    return sizeof(T) == 1 ? kPlain : 0;
  } else if constexpr (kIndex == kTVMFFIInt && (std::is_integral_v<T> || std::is_enum_v<T>)) {
    if (std::is_signed_v<typename IntegerOf<T>::type>) return kPlain;
    return sizeof(T) < sizeof(int64_t) ? kPlain | kTVMFFIFieldFlagBitMaskPlainUnsigned : 0;
  } else if constexpr (kIndex == kTVMFFIFloat) {
    return std::is_same_v<T, float> || std::is_same_v<T, double> ? kPlain : 0;
  } else {
    return std::is_same_v<T, void*> || std::is_same_v<T, DLDataType> || std::is_same_v<T, DLDevice>
               ? kPlain
               : 0;
  }
}

template <typename T>
int ReadField(void* field, TVMFFIAny* result) {
  TVM_FFI_SAFE_CALL_BEGIN();
  *result = details::AnyUnsafe::MoveAnyToTVMFFIAny(Any(*static_cast<const T*>(field)));
  TVM_FFI_SAFE_CALL_END();
}

template <typename T>
int WriteField(void* field, const TVMFFIAny* value) {
  TVM_FFI_SAFE_CALL_BEGIN();
  if constexpr (std::is_same_v<T, Any>) {
    *static_cast<Any*>(field) = AnyView::CopyFromTVMFFIAny(*value);
  } else {
    *static_cast<T*>(field) = AnyView::CopyFromTVMFFIAny(*value).template cast<T>();
  }
  TVM_FFI_SAFE_CALL_END();
}

// All that reflection knows about the type of a field.
struct FieldType {
  int64_t plain_flags;
  int64_t size;
  int64_t alignment;
  TVMFFIFieldGetter getter;
  TVMFFIFieldSetter setter;
  int32_t static_type_index;
};

template <typename T>
inline constexpr FieldType kFieldType = {PlainFlags<T>(), sizeof(T),
                                         alignof(T),      &ReadField<T>,
                                         &WriteField<T>,  TypeToFieldStaticTypeIndex<T>::value};

// ---- Records ------------------------------------------------------------------------------------

template <typename Trait, typename Info, typename = void>
inline constexpr bool kAppliesTo = false;
template <typename Trait, typename Info>
inline constexpr bool kAppliesTo<
    Trait, Info, std::void_t<decltype(std::declval<const Trait&>().Apply(std::declval<Info*>()))>> =
    std::is_base_of_v<reflection::InfoTrait, Trait>;

template <typename T>
inline constexpr bool kIsCharArray =
    std::is_array_v<T>&& std::is_same_v<std::remove_cv_t<std::remove_extent_t<T>>, char>;

// One extra argument of `def*`: a string literal is the doc, a trait edits the record.
template <typename Info, typename Extra>
void ApplyExtra(Info* info, const Extra& extra) {
  if constexpr (kIsCharArray<Extra>) {
    info->doc = reflection::AsByteArray(extra);
  } else if constexpr (kAppliesTo<Extra, Info>) {
    extra.Apply(info);
  }
}

[[noreturn]] TVM_FFI_COLD_CODE inline void ThrowBadMetadata(const String& key, const Any& value) {
  TVM_FFI_LOG_AND_THROW(TypeError) << "Metadata can be only int, bool or string, but on key `"
                                   << key << "`, the type is " << value.GetTypeKey();
}

inline void AppendJSONString(std::string* out, const String& text) {
  String quoted = EscapeStringJSON(text);
  out->append(quoted.data(), quoted.size());
}

inline std::string MetadataToJSON(const std::string& schema,
                                  const reflection::_MetadataType& user_entries) {
  std::string out = "{\"type_schema\":";
  AppendJSONString(&out, schema);
  for (const auto& entry : user_entries) {
    out += ',';
    AppendJSONString(&out, entry.first);
    out += ':';
    const Any& value = entry.second;
    if (auto text = value.as<String>()) {
      AppendJSONString(&out, *text);
    } else if (auto flag = value.as<bool>()) {
      out += *flag ? "true" : "false";
    } else if (auto number = value.as<int64_t>()) {
      out += std::to_string(*number);
    } else {
      ThrowBadMetadata(entry.first, value);
    }
  }
  out += '}';
  return out;
}

inline void StartField(reflection::FieldInfoBuilder* info, const FieldType& type, const char* name,
                       int64_t offset, int64_t flags) {
  info->name = reflection::AsByteArray(name);
  info->doc = info->metadata = TVMFFIByteArray{nullptr, 0};
  info->flags = flags | type.plain_flags;
  info->size = type.size;
  info->alignment = type.alignment;
  info->offset = offset;
  info->getter = type.getter;
  info->setter = reinterpret_cast<void*>(type.setter);
  info->default_value_or_factory = AnyView().CopyToTVMFFIAny();
  info->field_static_type_index = type.static_type_index;
}

inline void FinishField(reflection::FieldInfoBuilder* info, int32_t type_index,
                        const std::string& schema) {
  std::string metadata = MetadataToJSON(schema, info->metadata_);
  info->metadata = TVMFFIByteArray{metadata.data(), metadata.size()};
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterField(type_index, info));
}

// Offset of a field of Class or of one of its bases.
template <typename Class, typename Base, typename T>
int64_t OffsetOf(T Base::*field) {
  static_assert(std::is_base_of_v<Base, Class>,
                "the field must belong to the class or a base of it");
  return reflection::GetFieldByteOffsetToObject<Class, T>(field);
}

template <typename T, typename... Extra>
void RegisterField(int32_t type_index, const char* name, int64_t offset, int64_t flags,
                   const Extra&... extra) {
  reflection::FieldInfoBuilder info;
  StartField(&info, kFieldType<T>, name, offset, flags);
  (ApplyExtra(&info, extra), ...);
  FinishField(&info, type_index, details::TypeSchema<T>::v());
}

inline void StartMethod(reflection::MethodInfoBuilder* info, const char* name, int64_t flags,
                        const Function& function) {
  info->name = reflection::AsByteArray(name);
  info->doc = info->metadata = TVMFFIByteArray{nullptr, 0};
  info->flags = flags;
  info->method = AnyView(function).CopyToTVMFFIAny();
}

// type_index of a global function.
inline constexpr int32_t kNoType = -1;

inline void FinishMethod(reflection::MethodInfoBuilder* info, int32_t type_index,
                         const std::string& schema) {
  std::string metadata = MetadataToJSON(schema, info->metadata_);
  info->metadata = TVMFFIByteArray{metadata.data(), metadata.size()};
  TVM_FFI_CHECK_SAFE_CALL(type_index == kNoType ? TVMFFIFunctionSetGlobalFromMethodInfo(info, 0)
                                                : TVMFFITypeRegisterMethod(type_index, info));
}

// Registers a method, or with kNoType a global function.
template <typename... Extra>
void RegisterMethod(int32_t type_index, const char* name, int64_t flags, const Function& function,
                    const std::string& schema, const Extra&... extra) {
  reflection::MethodInfoBuilder info;
  StartMethod(&info, name, flags, function);
  (ApplyExtra(&info, extra), ...);
  FinishMethod(&info, type_index, schema);
}

inline void RegisterAttr(int32_t type_index, const char* name, const Any& value) {
  TVMFFIByteArray name_bytes = reflection::AsByteArray(name);
  TVMFFIAny raw = AnyView(value).CopyToTVMFFIAny();
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterAttr(type_index, &name_bytes, &raw));
}

inline std::string QualifiedName(const char* type_key, const char* name) {
  std::string out = type_key;
  out += '.';
  out += name;
  return out;
}

// ---- Callables ----------------------------------------------------------------------------------

// None arrives as a null object. A method cannot be called on it.
template <typename ObjectClass>
TVM_FFI_INLINE void RequireSelf(const void* self) {
  if (TVM_FFI_PREDICT_TRUE(self != nullptr)) return;
  TVM_FFI_THROW(TypeError) << "a method of `" << ObjectClass::_type_key << "` was called on None";
}

// A member function as a callable that takes its object first.
template <typename Class, typename Method, typename R, typename... Args>
auto BindSelf(Method method) {
  static_assert(std::is_base_of_v<Object, Class> || std::is_base_of_v<ObjectRef, Class>,
                "only methods of Object and ObjectRef classes can be registered");
  constexpr bool kIsConst = std::is_invocable_v<Method, const Class&, Args...>;
  if constexpr (std::is_base_of_v<Object, Class>) {
    return [method](const Class* self, Args... args) -> R {
      RequireSelf<Class>(self);
      if constexpr (kIsConst) {
        return (self->*method)(std::forward<Args>(args)...);
      } else {
        return (const_cast<Class*>(self)->*method)(std::forward<Args>(args)...);
      }
    };
  } else if constexpr (kIsConst) {
    return [method](const Class& self, Args... args) -> R {
      RequireSelf<typename Class::ContainerType>(self.get());
      return (self.*method)(std::forward<Args>(args)...);
    };
  } else {
    return [method](Class self, Args... args) -> R {
      RequireSelf<typename Class::ContainerType>(self.get());
      return (self.*method)(std::forward<Args>(args)...);
    };
  }
}

template <typename Class, typename R, typename... Args>
auto BindMethod(R (Class::*method)(Args...)) {
  return BindSelf<Class, R (Class::*)(Args...), R, Args...>(method);
}
template <typename Class, typename R, typename... Args>
auto BindMethod(R (Class::*method)(Args...) const) {
  return BindSelf<Class, R (Class::*)(Args...) const, R, Args...>(method);
}

// What FromTyped takes for anything a user may register.
template <typename Func>
auto ToCallable(Func&& func) {
  if constexpr (std::is_member_function_pointer_v<std::decay_t<Func>>) {
    return BindMethod(func);
  } else {
    return std::decay_t<Func>(std::forward<Func>(func));
  }
}

// make_object that also works inside static-init blocks, where RuntimeTypeIndex() may not be
// initialised yet.
template <typename Class, typename... Args>
ObjectPtr<Object> MakeRegistered(Args&&... args) {
  ObjectPtr<Class> object = make_object<Class>(std::forward<Args>(args)...);
  details::ObjectUnsafe::GetHeader(object.get())->type_index = Class::_GetOrAllocRuntimeTypeIndex();
  return object;
}

template <typename Class, typename... Args>
int CreateObject(TVMFFIObjectHandle* result) {
  TVM_FFI_SAFE_CALL_BEGIN();
  *result = details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(MakeRegistered<Class>(Args{}...));
  TVM_FFI_SAFE_CALL_END();
}

template <typename Class>
constexpr TVMFFIObjectCreator CreatorOf() {
  if constexpr (std::is_default_constructible_v<Class>) {
    return &CreateObject<Class>;
  } else if constexpr (std::is_constructible_v<Class, UnsafeInit>) {
    return &CreateObject<Class, UnsafeInit>;
  } else {
    return nullptr;
  }
}

using CopyObject = ObjectPtr<Object> (*)(const Object* source);

template <typename Class>
constexpr CopyObject CopierOf() {
  if constexpr (std::is_copy_constructible_v<Class>) {
    return [](const Object* source) {
      return MakeRegistered<Class>(*static_cast<const Class*>(source));
    };
  } else {
    return nullptr;
  }
}

[[noreturn]] TVM_FFI_COLD_CODE inline void ThrowBadCopySource(int32_t type_index,
                                                              const Object* source) {
  std::string key = TypeIndexToTypeKey(type_index);
  TVM_FFI_THROW(TypeError) << "Mismatched type on argument #0 when calling: `" << key << "."
                           << reflection::type_attr::kShallowCopy << "(0: " << key
                           << ") -> ffi.Object`. Expected `" << key << "` but got `"
                           << source->GetTypeKey() << "`";
}

inline Function MakeShallowCopy(int32_t type_index, CopyObject copy, std::string name) {
  auto call = [type_index, copy](const Object* source) {
    if (!details::RuntimeTypeIndexMatch(source->type_index(), type_index)) {
      ThrowBadCopySource(type_index, source);
    }
    return ObjectRef(copy(source));
  };
  return Function::FromTyped(call, std::move(name));
}

inline Function MakeNew(TVMFFIObjectCreator creator, std::string name) {
  auto call = [creator]() {
    TVMFFIObjectHandle handle = nullptr;
    TVM_FFI_CHECK_SAFE_CALL(creator(&handle));
    return ObjectRef(
        details::ObjectUnsafe::ObjectPtrFromOwned<Object>(static_cast<TVMFFIObject*>(handle)));
  };
  return Function::FromTyped(call, std::move(name));
}

template <typename TSelf>
Any ConvertTo(AnyView value) {
  return Any(reflection::details::FFIConvertFromAnyViewToObjectRef<TSelf>(value));
}

inline Function MakeConvert(Any (*convert)(AnyView), std::string name) {
  return Function::FromTyped(convert, std::move(name));
}

template <typename TSelf, typename = void>
struct ContainerOf {
  template <typename Class>
  static constexpr bool kIs = true;
};
template <typename TSelf>
struct ContainerOf<TSelf, std::void_t<typename TSelf::ContainerType>> {
  template <typename Class>
  static constexpr bool kIs = std::is_same_v<typename TSelf::ContainerType, Class>;
};

template <typename Class, typename TSelf>
void RegisterConvert(int32_t type_index) {
  static_assert(ContainerOf<TSelf>::template kIs<Class>,
                "def_convert<TSelf>() is called for another object class than TSelf's");
  using reflection::type_attr::kConvert;
  RegisterAttr(type_index, kConvert,
               MakeConvert(&ConvertTo<TSelf>, QualifiedName(Class::_type_key, kConvert)));
}

// A value is stored as it is, anything callable as a function.
template <typename T>
void RegisterAttrOrFunction(int32_t type_index, const char* type_key, const char* name, T&& value) {
  using Decayed = std::decay_t<T>;
  if constexpr (std::is_convertible_v<T, AnyView> || std::is_convertible_v<Decayed, AnyView>) {
    RegisterAttr(type_index, name, Any(static_cast<Decayed>(std::forward<T>(value))));
  } else {
    RegisterAttr(
        type_index, name,
        Function::FromTyped(ToCallable(std::forward<T>(value)), QualifiedName(type_key, name)));
  }
}

// Attributes every registered class gets: copy, creation, generated constructor.
inline void RegisterStandardAttrs(int32_t type_index, const char* type_key, CopyObject copy,
                                  TVMFFIObjectCreator creator, bool generate_init) {
  namespace attr = reflection::type_attr;
  if (copy != nullptr) {
    RegisterAttr(type_index, attr::kShallowCopy,
                 MakeShallowCopy(type_index, copy, QualifiedName(type_key, attr::kShallowCopy)));
  }
  if (creator == nullptr) return;
  RegisterAttr(type_index, attr::kNew, MakeNew(creator, QualifiedName(type_key, attr::kNew)));
  if (!generate_init) return;
  if (std::optional<Function> generate = Function::GetGlobal("ffi._RegisterFFIInit")) {
    (*generate)(type_index);
  }
}

// Extra arguments of the ObjectDef constructor.
struct ClassExtras {
  TVMFFIByteArray doc{nullptr, 0};
  bool generate_init = true;

  template <typename Extra>
  void Add(const Extra& extra) {
    if constexpr (kIsCharArray<Extra>) {
      doc = reflection::AsByteArray(extra);
    } else if constexpr (std::is_same_v<Extra, reflection::init<>>) {
      generate_init = extra.enabled;
    }
  }
};

}  // namespace tether

namespace reflection {

// What the definition classes share.
class ReflectionDefBase {
 protected:
  // Free functions and lambdas pass through, member functions take their object first.
  template <typename Func>
  static auto WrapFunction(Func&& func) {
    return tether::ToCallable(std::forward<Func>(func));
  }

  // Registers a typed callable under `name`, its errors naming `full_name`.
  template <typename Func, typename... Extra>
  static void RegisterTyped(int32_t type_index, const char* name, std::string full_name,
                            int64_t flags, Func&& func, const Extra&... extra) {
    auto callable = WrapFunction(std::forward<Func>(func));
    std::string schema = ffi::details::FunctionInfo<decltype(callable)>::TypeSchema();
    tether::RegisterMethod(type_index, name, flags,
                           Function::FromTyped(std::move(callable), std::move(full_name)), schema,
                           extra...);
  }
};

// Registers global functions.
class GlobalDef : public ReflectionDefBase {
 public:
  // A typed function.
  template <typename Func, typename... Extra>
  GlobalDef& def(const char* name, Func&& func, Extra&&... extra) {
    RegisterTyped(tether::kNoType, name, name, 0, std::forward<Func>(func), extra...);
    return *this;
  }

  // A function that gets its arguments as they come: `void(PackedArgs, Any*)`.
  template <typename Func, typename... Extra>
  GlobalDef& def_packed(const char* name, Func func, Extra&&... extra) {
    static constexpr const char* kSchema = "{\"type\":\"ffi.Function\"}";
    if constexpr (std::is_base_of_v<Function, Func>) {
      tether::RegisterMethod(tether::kNoType, name, 0, func, kSchema, extra...);
    } else {
      tether::RegisterMethod(tether::kNoType, name, 0, Function::FromPacked(std::move(func)),
                             kSchema, extra...);
    }
    return *this;
  }

  // A member function, as a function of its object.
  template <typename Func, typename... Extra>
  GlobalDef& def_method(const char* name, Func&& func, Extra&&... extra) {
    return def(name, std::forward<Func>(func), extra...);
  }
};

// Registers a class; what the class is given automatically is added when this goes away.
template <typename Class>
class ObjectDef : public ReflectionDefBase {
 public:
  template <typename... Extra>
  explicit ObjectDef(Extra&&... extra) : type_index_(Class::_GetOrAllocRuntimeTypeIndex()) {
    tether::ClassExtras extras;
    (extras.Add(extra), ...);
    generate_init_ = extras.generate_init;
    TVMFFITypeMetadata metadata;
    metadata.doc = extras.doc;
    metadata.creator = tether::CreatorOf<Class>();
    metadata.total_size = sizeof(Class);
    metadata.structural_eq_hash_kind = Class::_type_s_eq_hash_kind;
    TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterMetadata(type_index_, &metadata));
  }

  ObjectDef(const ObjectDef&) = delete;
  ObjectDef& operator=(const ObjectDef&) = delete;
  ObjectDef(ObjectDef&&) = delete;
  ObjectDef& operator=(ObjectDef&&) = delete;

  ~ObjectDef() noexcept(false) {
    // A definition that failed half-way is not completed while its error unwinds.
    if (std::uncaught_exceptions() > exceptions_at_start_) return;
    tether::RegisterStandardAttrs(type_index_, Class::_type_key, tether::CopierOf<Class>(),
                                  tether::CreatorOf<Class>(), generate_init_);
  }

  // A field that users may only read.
  template <typename T, typename BaseClass, typename... Extra>
  ObjectDef& def_ro(const char* name, T BaseClass::*field_ptr, Extra&&... extra) {
    tether::RegisterField<T>(type_index_, name, tether::OffsetOf<Class>(field_ptr), 0, extra...);
    return *this;
  }

  // A field that users may read and write.
  template <typename T, typename BaseClass, typename... Extra>
  ObjectDef& def_rw(const char* name, T BaseClass::*field_ptr, Extra&&... extra) {
    static_assert(Class::_type_mutable, "only classes with _type_mutable have writable fields");
    tether::RegisterField<T>(type_index_, name, tether::OffsetOf<Class>(field_ptr),
                             kTVMFFIFieldFlagBitMaskWritable, extra...);
    return *this;
  }

  // A method: a member function, or a function whose first argument is the object.
  template <typename Func, typename... Extra>
  ObjectDef& def(const char* name, Func&& func, Extra&&... extra) {
    RegisterTyped(type_index_, name, tether::QualifiedName(Class::_type_key, name), 0,
                  std::forward<Func>(func), extra...);
    return *this;
  }

  // A function that belongs to the class and takes no object.
  template <typename Func, typename... Extra>
  ObjectDef& def_static(const char* name, Func&& func, Extra&&... extra) {
    RegisterTyped(type_index_, name, tether::QualifiedName(Class::_type_key, name),
                  kTVMFFIFieldFlagBitMaskIsStaticMethod, std::forward<Func>(func), extra...);
    return *this;
  }

  // The constructor; replaces the generated one.
  template <typename... Args, typename... Extra>
  ObjectDef& def(init<Args...>, Extra&&... extra) {
    generate_init_ = false;
    auto construct = &ConstructFrom<Args...>;
    Function function =
        Function::FromTyped(construct, tether::QualifiedName(Class::_type_key, type_attr::kInit));
    tether::RegisterMethod(type_index_, type_attr::kInit, kTVMFFIFieldFlagBitMaskIsStaticMethod,
                           function, ffi::details::FunctionInfo<decltype(construct)>::TypeSchema(),
                           extra...);
    tether::RegisterAttr(type_index_, type_attr::kInit, function);
    return *this;
  }

  // A type attribute: a value, or a callable to be stored as a function.
  template <typename T>
  ObjectDef& def_type_attr(const char* name, T&& value) {
    tether::RegisterAttrOrFunction(type_index_, Class::_type_key, name, std::forward<T>(value));
    return *this;
  }

  // Lets frontends convert into TSelf, a reference to this class.
  template <typename TSelf>
  ObjectDef& def_convert() {
    tether::RegisterConvert<Class, TSelf>(type_index_);
    return *this;
  }

 protected:
  template <typename... Args>
  static ObjectRef ConstructFrom(Args... args) {
    return ObjectRef(tether::MakeRegistered<Class>(std::forward<Args>(args)...));
  }

  int32_t type_index_;
  bool generate_init_ = true;

 private:
  int exceptions_at_start_ = std::uncaught_exceptions();
};

// Adds attributes to a class that is, or will be, registered elsewhere.
template <typename Class>
class TypeAttrDef : public ReflectionDefBase {
 public:
  TypeAttrDef() : type_index_(Class::_GetOrAllocRuntimeTypeIndex()) {}

  // A value, or a callable to be stored as a function.
  template <typename T>
  TypeAttrDef& def(const char* name, T&& value) {
    tether::RegisterAttrOrFunction(type_index_, Class::_type_key, name, std::forward<T>(value));
    return *this;
  }

  // A value.
  template <typename T>
  TypeAttrDef& attr(const char* name, T value) {
    tether::RegisterAttr(type_index_, name, Any(std::move(value)));
    return *this;
  }

  // Lets frontends convert into TSelf, a reference to this class.
  template <typename TSelf>
  TypeAttrDef& def_convert() {
    tether::RegisterConvert<Class, TSelf>(type_index_);
    return *this;
  }

 private:
  int32_t type_index_;
};

// Makes sure that the column exists, so that it may be looked up before any entry is set.
inline void EnsureTypeAttrColumn(std::string_view name) {
  TVMFFIByteArray name_bytes{name.data(), name.size()};
  TVMFFIAny none = AnyView().CopyToTVMFFIAny();
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterAttr(kTVMFFINone, &name_bytes, &none));
}

}  // namespace reflection
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_REGISTRY_H_
