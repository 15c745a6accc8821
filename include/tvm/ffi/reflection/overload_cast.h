// SPDX-License-Identifier: Apache-2.0
// Picks one of several functions of the same name.
//
//   refl::GlobalDef().def("demo.f", refl::overload_cast<int>(&f));
//   refl::ObjectDef<C>().def("f", refl::overload_cast<int>(&C::f, refl::const_));
#ifndef TVM_FFI_REFLECTION_OVERLOAD_CAST_H_
#define TVM_FFI_REFLECTION_OVERLOAD_CAST_H_

#include <type_traits>

namespace tvm {
namespace ffi {

namespace reflection {

namespace detail {

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

}  // namespace detail

// `overload_cast<int>(&f)` is the overload of f whose parameters begin with int; for const member
// functions write `overload_cast<int>(&C::f, const_)`.
template <typename... Args>
inline constexpr detail::OverloadCastImpl<Args...> overload_cast{};

inline constexpr auto const_ = std::true_type{};

}  // namespace reflection

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_OVERLOAD_CAST_H_
