// SPDX-License-Identifier: Apache-2.0
// The functions that registration makes for a class: methods that take their object as the first
// argument, creation, copy and conversion.
//
//   Function norm = Function::FromTyped(tether::ToCallable(&PointObj::Norm));
//   norm(point);
#ifndef TVM_FFI_REFLECTION_CLASS_FUNCTIONS_H_
#define TVM_FFI_REFLECTION_CLASS_FUNCTIONS_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/reflection/creator.h>
#include <tvm/ffi/reflection/records.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

namespace tether {

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowCalledOnNone(
    const char* type_key) {
  TVM_FFI_THROW(TypeError) << "a method of `" << type_key << "` was called on None";
}

// None arrives as a null object. A method cannot be called on it.
template <typename ObjectClass>
TVM_FFI_INLINE void RequireSelf(const void* self) {
  if (TVM_FFI_PREDICT_FALSE(self == nullptr)) ThrowCalledOnNone(ObjectClass::_type_key);
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
  detail::ObjectUnsafe::GetHeader(object.get())->type_index = Class::_GetOrAllocRuntimeTypeIndex();
  return object;
}

template <typename Class, typename... Args>
int CreateObject(TVMFFIObjectHandle* result) {
  TVM_FFI_SAFE_CALL_BEGIN();
  *result = detail::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(MakeRegistered<Class>(Args{}...));
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

TVM_FFI_COLD_CODE inline Function MakeShallowCopy(int32_t type_index, CopyObject copy,
                                                  std::string name) {
  auto call = [type_index, copy](const Object* source) {
    if (!detail::RuntimeTypeIndexMatch(source->type_index(), type_index)) {
      ThrowBadCopySource(type_index, source);
    }
    return ObjectRef(copy(source));
  };
  return Function::FromTyped(call, std::move(name));
}

TVM_FFI_COLD_CODE inline Function MakeNew(TVMFFIObjectCreator creator, std::string name) {
  auto call = [creator]() {
    TVMFFIObjectHandle handle = nullptr;
    TVM_FFI_CHECK_SAFE_CALL(creator(&handle));
    return ObjectRef(
        detail::ObjectUnsafe::ObjectPtrFromOwned<Object>(static_cast<TVMFFIObject*>(handle)));
  };
  return Function::FromTyped(call, std::move(name));
}

template <typename TSelf>
Any ConvertTo(AnyView value) {
  return Any(reflection::detail::FFIConvertFromAnyViewToObjectRef<TSelf>(value));
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
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void RegisterStandardAttrs(int32_t type_index,
                                                                      const char* type_key,
                                                                      CopyObject copy,
                                                                      TVMFFIObjectCreator creator,
                                                                      bool generate_init) {
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

}  // namespace tether

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_CLASS_FUNCTIONS_H_
