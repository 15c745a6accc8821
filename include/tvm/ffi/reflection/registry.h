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
// What depends on a type is reduced to a few function pointers at once; everything else is ordinary
// code, so a registration adds little to a client. Registration runs before the
// dynamic initialisers of its own file and therefore never reads a class's `_type_index`: it asks
// `_GetOrAllocRuntimeTypeIndex()`.
#ifndef TVM_FFI_REFLECTION_REGISTRY_H_
#define TVM_FFI_REFLECTION_REGISTRY_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/function_detail.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/class_functions.h>
#include <tvm/ffi/reflection/creator.h>
#include <tvm/ffi/reflection/field_type.h>
#include <tvm/ffi/reflection/info_traits.h>
#include <tvm/ffi/reflection/overload_cast.h>
#include <tvm/ffi/reflection/records.h>
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

namespace tether {

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

  // Registers a typed callable under `name`, its errors naming `full_name`. `kNumUnnamed`: of the
  // parameters that refl::arg does not name.
  template <size_t kNumUnnamed, typename Func, typename... Extra>
  TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE static void RegisterTyped(int32_t type_index,
                                                                const char* name,
                                                                std::string full_name,
                                                                int64_t flags, Func&& func,
                                                                const Extra&... extra) {
    auto callable = WrapFunction(std::forward<Func>(func));
    using Info = ffi::detail::FunctionInfo<decltype(callable)>;
    constexpr size_t kNamed = tether::kNumNamed<Extra...>;
    static_assert(kNamed == 0 || kNamed + kNumUnnamed == Info::num_args,
                  "name either every parameter with refl::arg, or none");
    tether::RegisterMethod(type_index, name, flags,
                           Function::FromTyped(std::move(callable), std::move(full_name)),
                           &Info::TypeSchema, extra...);
  }
};

// Registers global functions.
class GlobalDef : public ReflectionDefBase {
 public:
  // A typed function.
  template <typename Func, typename... Extra>
  GlobalDef& def(const char* name, Func&& func, Extra&&... extra) {
    RegisterTyped<0>(tether::kNoType, name, name, 0, std::forward<Func>(func), extra...);
    return *this;
  }

  // A function that gets its arguments unconverted: `void(PackedArgs, Any*)`.
  template <typename Func, typename... Extra>
  GlobalDef& def_packed(const char* name, Func func, Extra&&... extra) {
    constexpr tether::TypeText kSchema = [] { return tether::Schema("ffi.Function"); };
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

// Registers a class; its generated functions are added when this is destroyed.
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
    tether::RegisterAttr(type_index_, type_attr::kTypeFinal, Any(Class::_type_final));
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
    RegisterTyped<1>(type_index_, name, tether::QualifiedName(Class::_type_key, name), 0,
                     std::forward<Func>(func), extra...);
    return *this;
  }

  // A function that belongs to the class and takes no object.
  template <typename Func, typename... Extra>
  ObjectDef& def_static(const char* name, Func&& func, Extra&&... extra) {
    RegisterTyped<0>(type_index_, name, tether::QualifiedName(Class::_type_key, name),
                     kTVMFFIFieldFlagBitMaskIsStaticMethod, std::forward<Func>(func), extra...);
    return *this;
  }

  // The constructor; replaces the generated one.
  template <typename... Args, typename... Extra>
  ObjectDef& def(init<Args...>, Extra&&... extra) {
    constexpr size_t kNamed = tether::kNumNamed<Extra...>;
    static_assert(kNamed == 0 || kNamed == sizeof...(Args),
                  "name either every parameter with refl::arg, or none");
    generate_init_ = false;
    auto construct = &ConstructFrom<Args...>;
    Function function =
        Function::FromTyped(construct, tether::QualifiedName(Class::_type_key, type_attr::kInit));
    tether::RegisterMethod(type_index_, type_attr::kInit, kTVMFFIFieldFlagBitMaskIsStaticMethod,
                           function, &ffi::detail::FunctionInfo<decltype(construct)>::TypeSchema,
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
  // A value, converted to the type of the key.
  template <typename T, typename V>
  TypeAttrDef& attr(AttrKey<T> key, V&& value) {
    tether::RegisterAttr(type_index_, key.name, tether::ToAttrValue<T>(std::forward<V>(value)));
    return *this;
  }
  // A native hook: see native_function.h.
  template <auto fn, typename T>
  TypeAttrDef& native_fn_attr(AttrKey<T> key) {
    tether::RegisterAttr(type_index_, key.name, Any(T::template FromNative<fn>()));
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
template <typename T>
void EnsureTypeAttrColumn(AttrKey<T> key) {
  EnsureTypeAttrColumn(std::string_view(key.name));
}

}  // namespace reflection

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_REGISTRY_H_
