// SPDX-License-Identifier: Apache-2.0
// What a C++ callable looks like from outside: its argument types, its signature text, and how an
// array of views becomes a call.
#ifndef TVM_FFI_FUNCTION_DETAIL_H_
#define TVM_FFI_FUNCTION_DETAIL_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/error.h>

#include <initializer_list>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {
namespace tether {

// (0: int, 1: str) -> float
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline std::string Signature(
    TypeText result, std::initializer_list<TypeText> params) {
  std::string out = "(";
  size_t i = 0;
  for (TypeText param : params) {
    out.append(i == 0 ? "" : ", ").append(std::to_string(i)).append(": ").append(param());
    ++i;
  }
  return out.append(") -> ").append(result());
}

}  // namespace tether

namespace detail {

template <typename T>
struct TypeSchemaImpl {
  static std::string v() { return TypeTraits<T>::TypeSchema(); }
};
template <>
struct TypeSchemaImpl<void> {
  static std::string v() { return tether::Schema("None"); }
};
template <>
struct TypeSchemaImpl<Any> {
  static std::string v() { return tether::Schema("Any"); }
};
template <>
struct TypeSchemaImpl<AnyView> : public TypeSchemaImpl<Any> {};

// T, const T, const T& and T&&, but no reference through which the callee would write back.
template <typename T>
inline constexpr bool ArgTypeSupported =
    !std::is_lvalue_reference_v<T> || std::is_const_v<std::remove_reference_t<T>>;

template <typename T, typename Bare = std::remove_const_t<std::remove_reference_t<T>>>
inline constexpr bool ArgSupported = ArgTypeSupported<T> &&
                                     (std::is_same_v<Bare, Any> || std::is_same_v<Bare, AnyView> ||
                                      TypeTraits<Bare>::convert_enabled);

template <typename R>
inline constexpr bool RetSupported =
    std::is_same_v<R, Any> || std::is_void_v<R> || TypeTraits<R>::convert_enabled;

template <typename R, typename... Args>
struct FuncFunctorImpl {
  using FType = R(Args...);
  using ArgType = std::tuple<Args...>;
  using RetType = R;
  static constexpr size_t num_args = sizeof...(Args);
  static constexpr bool unpacked_supported = (ArgSupported<Args> && ...) && RetSupported<R>;

  static std::string Sig() { return tether::Signature(&Type2Str<R>::v, {&Type2Str<Args>::v...}); }
  static std::string TypeSchema() {
    return tether::FunctionSchema("ffi.Function", &detail::TypeSchema<R>::v,
                                  {&detail::TypeSchema<Args>::v...});
  }
};

template <typename T>
struct FunctionInfoHelper;
template <typename T, typename R, typename... Args>
struct FunctionInfoHelper<R (T::*)(Args...)> : FuncFunctorImpl<R, Args...> {};
template <typename T, typename R, typename... Args>
struct FunctionInfoHelper<R (T::*)(Args...) const> : FuncFunctorImpl<R, Args...> {};

// Signature of a functor with one operator(), a function, or a member function of an object or
// reference.
template <typename T, typename = void>
struct FunctionInfo : FunctionInfoHelper<decltype(&T::operator())> {};
template <typename R, typename... Args>
struct FunctionInfo<R(Args...), void> : FuncFunctorImpl<R, Args...> {};
template <typename R, typename... Args>
struct FunctionInfo<R (*)(Args...), void> : FuncFunctorImpl<R, Args...> {};
template <typename R, typename... Args>
struct FunctionInfo<R (&)(Args...), void> : FuncFunctorImpl<R, Args...> {};
template <typename Class, typename R, typename... Args>
struct FunctionInfo<R (Class::*)(Args...), std::enable_if_t<std::is_base_of_v<Object, Class>>>
    : FuncFunctorImpl<R, Class*, Args...> {};
template <typename Class, typename R, typename... Args>
struct FunctionInfo<R (Class::*)(Args...) const, std::enable_if_t<std::is_base_of_v<Object, Class>>>
    : FuncFunctorImpl<R, const Class*, Args...> {};
template <typename Class, typename R, typename... Args>
struct FunctionInfo<R (Class::*)(Args...), std::enable_if_t<std::is_base_of_v<ObjectRef, Class>>>
    : FuncFunctorImpl<R, Class, Args...> {};
template <typename Class, typename R, typename... Args>
struct FunctionInfo<R (Class::*)(Args...) const,
                    std::enable_if_t<std::is_base_of_v<ObjectRef, Class>>>
    : FuncFunctorImpl<R, Class, Args...> {};

using FGetFuncSignature = std::string (*)();

}  // namespace detail

namespace tether {

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowArgMismatch(
    int32_t index, const std::string* name, detail::FGetFuncSignature sig,
    const std::string& expected, const std::string& actual) {
  TVM_FFI_THROW(TypeError) << "Mismatched type on argument #" << index << " when calling: `"
                           << (name != nullptr ? *name : std::string()) << sig() << "`. Expected `"
                           << expected << "` but got `" << actual << "`";
  TVM_FFI_UNREACHABLE();
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowResultMismatch(
    detail::FGetFuncSignature sig, const std::string& expected, const std::string& actual) {
  TVM_FFI_THROW(TypeError) << "Mismatched type of the result when calling back: `" << sig()
                           << "`. Expected `" << expected << "` but got `" << actual << "`";
  TVM_FFI_UNREACHABLE();
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowArgOutOfRange(
    int32_t index, const std::string* name, detail::FGetFuncSignature sig,
    const std::string& text) {
  TVM_FFI_THROW(OverflowError) << "Overflow on argument #" << index << " when calling: `"
                               << (name != nullptr ? *name : std::string()) << sig()
                               << "`. Integer value " << text;
  TVM_FFI_UNREACHABLE();
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowArgCountMismatch(
    const std::string* name, detail::FGetFuncSignature sig, size_t expected, int32_t actual) {
  TVM_FFI_THROW(TypeError) << "Mismatched number of arguments when calling: `"
                           << (name != nullptr ? *name : std::string()) << sig() << "`. Expected "
                           << expected << " but got " << actual << " arguments";
  TVM_FFI_UNREACHABLE();
}

template <typename T>
[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE void ThrowBadArg(int32_t index,
                                                                  const std::string* name,
                                                                  detail::FGetFuncSignature sig,
                                                                  const AnyView& arg) {
  TVMFFIAny data = arg.CopyToTVMFFIAny();
  if constexpr (is_narrow_integer_v<T>) {
    if (IsIntOrBool(&data)) {
      ThrowArgOutOfRange(index, name, sig, OutOfRangeText<T>(data.v_int64));
    }
  }
  ThrowArgMismatch(index, name, sig, detail::Type2Str<T>::v(),
                   TypeTraits<T>::GetMismatchTypeInfo(&data));
}

}  // namespace tether

namespace detail {

// Argument `arg_index`, converted to the parameter type when the call is made.
template <typename Type>
class ArgValueWithContext {
 public:
  using TypeWithoutCR = std::remove_const_t<std::remove_reference_t<Type>>;

  TVM_FFI_INLINE ArgValueWithContext(const AnyView* args, int32_t arg_index,
                                     const std::string* optional_name, FGetFuncSignature f_sig)
      : args_(args), arg_index_(arg_index), optional_name_(optional_name), f_sig_(f_sig) {}

  TVM_FFI_INLINE operator TypeWithoutCR() {  // NOLINT(*)
    if constexpr (std::is_same_v<TypeWithoutCR, AnyView>) {
      return args_[arg_index_];
    } else if constexpr (std::is_same_v<TypeWithoutCR, Any>) {
      return Any(args_[arg_index_]);
    } else {
      std::optional<TypeWithoutCR> value = args_[arg_index_].template try_cast<TypeWithoutCR>();
      if (TVM_FFI_PREDICT_FALSE(!value.has_value())) {
        tether::ThrowBadArg<TypeWithoutCR>(arg_index_, optional_name_, f_sig_, args_[arg_index_]);
      }
      return *std::move(value);
    }
  }

 private:
  const AnyView* args_;
  int32_t arg_index_;
  const std::string* optional_name_;
  FGetFuncSignature f_sig_;
};

// Checks the count, converts the arguments, calls f, stores a non-void result.
template <typename R, std::size_t... Is, typename F>
TVM_FFI_INLINE void unpack_call(std::index_sequence<Is...>, const std::string* optional_name,
                                const F& f, [[maybe_unused]] const AnyView* args, int32_t num_args,
                                [[maybe_unused]] Any* rv) {
  using FuncInfo = FunctionInfo<std::decay_t<F>>;
  using PackedArgTypes [[maybe_unused]] = typename FuncInfo::ArgType;
  FGetFuncSignature f_sig = FuncInfo::Sig;
  static_assert(FuncInfo::unpacked_supported, "The function signature do not support unpacked");
  constexpr size_t nargs = sizeof...(Is);
  if (TVM_FFI_PREDICT_FALSE(num_args != static_cast<int32_t>(nargs))) {
    tether::ThrowArgCountMismatch(optional_name, f_sig, nargs, num_args);
  }
  if constexpr (std::is_void_v<R>) {
    f(ArgValueWithContext<std::tuple_element_t<Is, PackedArgTypes>>(args, Is, optional_name,
                                                                    f_sig)...);
  } else {
    *rv = R(f(ArgValueWithContext<std::tuple_element_t<Is, PackedArgTypes>>(args, Is, optional_name,
                                                                            f_sig)...));
  }
}

}  // namespace detail
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_FUNCTION_DETAIL_H_
