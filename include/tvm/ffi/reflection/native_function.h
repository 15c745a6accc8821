// SPDX-License-Identifier: Apache-2.0
// Hooks that C++ calls without packing arguments: a raw pointer where the hook is C++, a function
// object where it comes from another language.
//
//   Expected<int64_t> HashPoint(const Any& value) noexcept { ... }
//   using Hash = reflection::NativeFunctionView<int64_t(const Any&)>;
//   Hash hash = Hash::FromNative<&HashPoint>();
//   hash(point);                   // an int64_t, or throws
//   hash.CallExpected(point);      // an Expected<int64_t>
//
// In an Any it is an opaque pointer to `TVMFFIAny (*)(Args...) noexcept`, whose owned result is an
// R or an Error, or it is an ffi.Function.
#ifndef TVM_FFI_REFLECTION_NATIVE_FUNCTION_H_
#define TVM_FFI_REFLECTION_NATIVE_FUNCTION_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/expected.h>
#include <tvm/ffi/function.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

namespace reflection {

template <typename FType>
class NativeFunctionView;
template <typename FType>
class NativeFunction;

}  // namespace reflection

namespace tether {

// What native hooks may take, as it has to look the same in every binary.
template <typename T>
inline constexpr bool is_native_param_v = std::is_lvalue_reference_v<T> ||
                                          (!std::is_reference_v<T> &&
                                           std::is_standard_layout_v<T> &&
                                           std::is_trivially_copyable_v<T>);

template <typename F, typename R, typename... Args>
inline constexpr bool is_typed_as_v = std::is_same_v<F, TypedFunction<R(Args...)>> ||
                                      std::is_same_v<F, TypedFunction<Expected<R>(Args...)>>;

// Runs `call` in a function that must not throw: what is thrown becomes the error.
template <typename R, typename Call>
TVMFFIAny CallAsNative(Call&& call) noexcept {
  try {
    using Result = std::invoke_result_t<Call>;
    if constexpr (std::is_void_v<Result>) {
      call();
      return detail::AnyUnsafe::MoveAnyToTVMFFIAny(Any());
    } else {
      return detail::ExpectedUnsafe::MoveToTVMFFIAny(Expected<R>(call()));
    }
  } catch (...) {
    return detail::AnyUnsafe::MoveAnyToTVMFFIAny(Any(CaughtError()));
  }
}

inline Error HookMismatch(const char* text) noexcept { return NewError("TypeError", text); }

}  // namespace tether

namespace reflection {

// Borrows the function object, if it is one.
template <typename R, typename... Args>
class NativeFunctionView<R(Args...)> {
  static_assert((tether::is_native_param_v<Args> && ...),
                "parameters must be lvalue references or plain values");

 public:
  using FType = R(Args...);
  using NativeType = TVMFFIAny (*)(Args...) noexcept;

  NativeFunctionView() = delete;
  NativeFunctionView(std::nullptr_t) = delete;
  // From a TypedFunction<R(Args...)> or <Expected<R>(Args...)> that stays where it is.
  template <typename F, typename = std::enable_if_t<tether::is_typed_as_v<F, R, Args...>>>
  NativeFunctionView(const F& function) : cell_(Borrow(function.packed())) {}  // NOLINT(*)
  template <typename F, typename = std::enable_if_t<tether::is_typed_as_v<F, R, Args...>>>
  NativeFunctionView(F&& function) = delete;

  // `fn` returns an R or an Expected<R>.
  template <auto fn>
  static NativeFunctionView FromNative() {
    TVMFFIAny cell;
    NativeType adapter = &Adapter<fn>;
    TypeTraits<void*>::CopyToAnyView(reinterpret_cast<void*>(adapter), &cell);
    return NativeFunctionView(cell);
  }

  R operator()(Args... args) const { return CallExpected(std::forward<Args>(args)...).value(); }

  Expected<R> CallExpected(Args... args) const noexcept {
    if (TVM_FFI_PREDICT_TRUE(cell_.type_index == TypeIndex::kTVMFFIOpaquePtr)) {
      auto call = reinterpret_cast<NativeType>(cell_.v_ptr);
      TVMFFIAny raw = call(std::forward<Args>(args)...);
      if (TVM_FFI_PREDICT_TRUE(tether::ExpectedSuccess<R>::CheckAnyStrict(&raw) ||
                               raw.type_index == TypeIndex::kTVMFFIError)) {
        return ffi::detail::ExpectedUnsafe::MoveFromTVMFFIAny<R>(raw);
      }
      Any nonsense = ffi::detail::AnyUnsafe::MoveTVMFFIAnyRawToAny(raw);
      return tether::HookMismatch("Native hook result type mismatch");
    }
    return CallPacked(AnyView(args)...);
  }

 private:
  explicit NativeFunctionView(TVMFFIAny cell) : cell_(cell) {}

  static TVMFFIAny Borrow(const Function& function) {
    if (function == nullptr) {
      TVM_FFI_THROW(ValueError) << "NativeFunctionView requires a non-null typed function";
    }
    return AnyView(function).CopyToTVMFFIAny();
  }

  template <auto fn>
  static TVMFFIAny Adapter(Args... args) noexcept {
    return tether::CallAsNative<R>([&]() { return fn(std::forward<Args>(args)...); });
  }

  template <typename... Packed>
  Expected<R> CallPacked(Packed... args) const noexcept {
    AnyView packed[sizeof...(Packed) + 1] = {args..., AnyView()};
    TVMFFIFunctionCell* function = TVMFFIFunctionGetCellPtr(cell_.v_obj);
    Any result;
    if (function->safe_call(cell_.v_obj, reinterpret_cast<const TVMFFIAny*>(packed),
                            static_cast<int32_t>(sizeof...(Packed)),
                            reinterpret_cast<TVMFFIAny*>(&result)) != 0) {
      return ffi::detail::MoveFromSafeCallRaised();
    }
    if (auto error = result.template as<Error>()) return *std::move(error);
    const TVMFFIAny* raw = ffi::detail::AnyUnsafe::TVMFFIAnyPtrFromAny(result);
    try {
      if (auto value = tether::ExpectedSuccess<R>::TryCastFromAnyView(raw)) {
        if constexpr (std::is_void_v<R>) {
          return {};
        } else {
          return *std::move(value);
        }
      }
    } catch (...) {
      return tether::CaughtError();
    }
    return tether::HookMismatch("Packed hook result type mismatch");
  }

  template <typename, typename>
  friend struct ffi::TypeTraits;
  friend class NativeFunction<R(Args...)>;
  TVMFFIAny cell_;
};

static_assert(sizeof(NativeFunctionView<void()>) == sizeof(TVMFFIAny));

// Owns the function object, if it is one.
template <typename R, typename... Args>
class NativeFunction<R(Args...)> {
 public:
  using View = NativeFunctionView<R(Args...)>;

  explicit NativeFunction(const View& view) : data_(view) {}
  template <typename F, typename = std::enable_if_t<tether::is_typed_as_v<F, R, Args...>>>
  NativeFunction(const F& function) : NativeFunction(View(function)) {}  // NOLINT(*)
  static NativeFunction From(const View& view) { return NativeFunction(view); }
  template <auto fn>
  static NativeFunction FromNative() {
    return NativeFunction(View::template FromNative<fn>());
  }

  View view() const { return View(AnyView(data_).CopyToTVMFFIAny()); }
  R operator()(Args... args) const { return view()(std::forward<Args>(args)...); }
  Expected<R> CallExpected(Args... args) const noexcept {
    return view().CallExpected(std::forward<Args>(args)...);
  }

 private:
  explicit NativeFunction(Any data) : data_(std::move(data)) {}
  template <typename, typename>
  friend struct ffi::TypeTraits;
  Any data_;
};

}  // namespace reflection

namespace tether {

// What the traits of the two have in common.
template <typename FType>
struct NativeFunctionTraits : public TypeTraitsBase {
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    if (src->type_index == TypeIndex::kTVMFFIOpaquePtr) return src->v_ptr != nullptr;
    return src->type_index == TypeIndex::kTVMFFIFunction;
  }
  static std::string TypeStr() {
    return "Variant<void*, " + detail::FunctionInfo<FType>::Sig() + ">";
  }
  static std::string TypeSchema() {
    return Schema("Variant",
                  {&TypeTraits<void*>::TypeSchema, &detail::FunctionInfo<FType>::TypeSchema});
  }
};

}  // namespace tether

template <typename FType>
struct TypeTraits<reflection::NativeFunctionView<FType>>
    : public tether::NativeFunctionTraits<FType> {
  using Self = reflection::NativeFunctionView<FType>;
  static constexpr bool storage_enabled = false;

  TVM_FFI_INLINE static void CopyToAnyView(const Self& src, TVMFFIAny* result) {
    *result = tether::CopyCell(src.cell_);
  }
  TVM_FFI_INLINE static void MoveToAny(Self src, TVMFFIAny* result) {
    CopyToAnyView(src, result);
    detail::InplaceConvertAnyViewToAny(result);
  }
  TVM_FFI_INLINE static Self CopyFromAnyViewAfterCheck(const TVMFFIAny* src) { return Self(*src); }
  TVM_FFI_INLINE static std::optional<Self> TryCastFromAnyView(const TVMFFIAny* src) {
    if (!tether::NativeFunctionTraits<FType>::CheckAnyStrict(src)) return std::nullopt;
    return Self(*src);
  }
};

template <typename FType>
struct TypeTraits<reflection::NativeFunction<FType>> : public tether::NativeFunctionTraits<FType> {
  using Self = reflection::NativeFunction<FType>;

  TVM_FFI_INLINE static void CopyToAnyView(const Self& src, TVMFFIAny* result) {
    *result = AnyView(src.data_).CopyToTVMFFIAny();
  }
  TVM_FFI_INLINE static void MoveToAny(Self src, TVMFFIAny* result) {
    *result = detail::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(src.data_));
  }
  TVM_FFI_INLINE static Self CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return Self(Any(AnyView::CopyFromTVMFFIAny(*src)));
  }
  TVM_FFI_INLINE static Self MoveFromAnyAfterCheck(TVMFFIAny* src) {
    return Self(detail::AnyUnsafe::MoveTVMFFIAnyToAny(src));
  }
  TVM_FFI_INLINE static std::optional<Self> TryCastFromAnyView(const TVMFFIAny* src) {
    if (!tether::NativeFunctionTraits<FType>::CheckAnyStrict(src)) return std::nullopt;
    return CopyFromAnyViewAfterCheck(src);
  }
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_NATIVE_FUNCTION_H_
