// SPDX-License-Identifier: Apache-2.0
// Expected<T>: a value or the Error that stands in its place, for code that does not throw.
//
//   Expected<int> Parse(const String& s) {
//     if (s.empty()) return Unexpected(Error("ValueError", "empty", ""));
//     return std::stoi(s);
//   }
//   int n = Parse(s).value_or(0);       // value() throws the contained error
#ifndef TVM_FFI_EXPECTED_H_
#define TVM_FFI_EXPECTED_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/error.h>

#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

template <typename E = Error>
class Unexpected {
  static_assert(std::is_base_of_v<Error, std::remove_cv_t<E>>,
                "Unexpected<E> requires E to be Error or a subclass of Error.");

 public:
  explicit Unexpected(E error) : error_(std::move(error)) {}
  const E& error() const& noexcept { return error_; }
  E& error() & noexcept { return error_; }
  const E&& error() const&& noexcept { return std::move(error_); }
  E&& error() && noexcept { return std::move(error_); }

 private:
  E error_;
};
template <typename E>
Unexpected(E) -> Unexpected<E>;

namespace details {
struct ExpectedUnsafe;
}  // namespace details

namespace tether {

// What Expected<T> and Expected<void> share: one value whose index says error or not.
class ExpectedBase {
 public:
  int32_t type_index() const noexcept { return data_.type_index(); }
  bool is_err() const noexcept { return data_.type_index() == TypeIndex::kTVMFFIError; }
  bool is_ok() const noexcept { return !is_err(); }
  bool has_value() const noexcept { return is_ok(); }
  Error error() const& {
    if (!is_err()) ThrowNoError();
    return details::AnyUnsafe::CopyFromAnyViewAfterCheck<Error>(data_);
  }
  Error error() && {
    if (!is_err()) ThrowNoError();
    return details::AnyUnsafe::MoveFromAnyAfterCheck<Error>(std::move(data_));
  }

 protected:
  ExpectedBase() = default;
  explicit ExpectedBase(Any data) : data_(std::move(data)) {}
  void ThrowIfError() const {
    if (is_err()) throw details::AnyUnsafe::CopyFromAnyViewAfterCheck<Error>(data_);
  }

  Any data_;

 private:
  [[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE static void ThrowNoError() {
    TVM_FFI_THROW(RuntimeError) << "Bad expected access: contains value, not error";
  }
  friend struct details::ExpectedUnsafe;
};

}  // namespace tether

template <typename T>
class Expected : public tether::ExpectedBase {
  static_assert(!std::is_void_v<T>,
                "Expected with a cv-qualified void success type is not allowed. Use "
                "Expected<void>.");
  static_assert(!std::is_same_v<std::remove_cv_t<T>, Error>,
                "Expected<Error> is not allowed. Use Error directly.");

 public:
  Expected(T value) : ExpectedBase(Any(std::move(value))) {}      // NOLINT(*)
  Expected(Error error) : ExpectedBase(Any(std::move(error))) {}  // NOLINT(*)
  template <typename E, typename = std::enable_if_t<std::is_base_of_v<Error, std::remove_cv_t<E>>>>
  Expected(Unexpected<E> unexpected)  // NOLINT(*)
      : ExpectedBase(Any(Error(std::move(unexpected).error()))) {}

  T value() const& {
    ThrowIfError();
    return details::AnyUnsafe::CopyFromAnyViewAfterCheck<T>(data_);
  }
  T value() && {
    ThrowIfError();
    return details::AnyUnsafe::MoveFromAnyAfterCheck<T>(std::move(data_));
  }
  template <typename U = std::remove_cv_t<T>>
  T value_or(U&& default_value) const& {
    return is_ok() ? value() : static_cast<T>(std::forward<U>(default_value));
  }
  template <typename U = std::remove_cv_t<T>>
  T value_or(U&& default_value) && {
    return is_ok() ? std::move(*this).value() : static_cast<T>(std::forward<U>(default_value));
  }

 private:
  Expected() = default;
  friend struct details::ExpectedUnsafe;
};

template <>
class Expected<void> : public tether::ExpectedBase {
 public:
  Expected() = default;
  Expected(Error error) : ExpectedBase(Any(std::move(error))) {}  // NOLINT(*)
  template <typename E, typename = std::enable_if_t<std::is_base_of_v<Error, std::remove_cv_t<E>>>>
  Expected(Unexpected<E> unexpected)  // NOLINT(*)
      : ExpectedBase(Any(Error(std::move(unexpected).error()))) {}

  void value() const { ThrowIfError(); }

 private:
  friend struct details::ExpectedUnsafe;
};

static_assert(sizeof(Expected<int>) == sizeof(TVMFFIAny) &&
              sizeof(Expected<void>) == sizeof(TVMFFIAny));

namespace details {

struct ExpectedUnsafe {
  template <typename T>
  TVM_FFI_INLINE static Expected<T> MoveFromTVMFFIAny(TVMFFIAny data) {
    Expected<T> result;
    result.data_ = AnyUnsafe::MoveTVMFFIAnyToAny(&data);
    return result;
  }
  template <typename T>
  TVM_FFI_INLINE static TVMFFIAny MoveToTVMFFIAny(Expected<T>&& expected) {
    return AnyUnsafe::MoveAnyToTVMFFIAny(std::move(expected.data_));
  }
  template <typename T>
  TVM_FFI_INLINE static const Any& GetData(const Expected<T>& expected) {
    return expected.data_;
  }
  template <typename T, typename U>
  TVM_FFI_INLINE static T ValueAs(const Expected<U>& expected) {
    return AnyUnsafe::CopyFromAnyViewAfterCheck<T>(expected.data_);
  }
};

}  // namespace details

namespace tether {

// What the success type contributes to the traits of Expected.
template <typename T>
struct ExpectedSuccess : public TypeTraits<T> {};
template <>
struct ExpectedSuccess<void> : public TypeTraits<std::nullptr_t> {
  static std::string TypeStr() { return "void"; }
};
template <>
struct ExpectedSuccess<Any> {
  static bool CheckAnyStrict(const TVMFFIAny*) { return true; }
  static std::optional<Any> TryCastFromAnyView(const TVMFFIAny* src) {
    return Any(AnyView::CopyFromTVMFFIAny(*src));
  }
  static std::string TypeStr() { return "Any"; }
  static std::string TypeSchema() { return Schema("Any"); }
};

}  // namespace tether

template <typename T>
struct TypeTraits<Expected<T>> : public TypeTraitsBase {
  using Success = tether::ExpectedSuccess<T>;

  TVM_FFI_INLINE static void CopyToAnyView(const Expected<T>& src, TVMFFIAny* result) {
    *result = *details::AnyUnsafe::TVMFFIAnyPtrFromAny(details::ExpectedUnsafe::GetData(src));
  }
  TVM_FFI_INLINE static void MoveToAny(Expected<T> src, TVMFFIAny* result) {
    *result = details::ExpectedUnsafe::MoveToTVMFFIAny(std::move(src));
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    return Success::CheckAnyStrict(src) || TypeTraits<Error>::CheckAnyStrict(src);
  }
  TVM_FFI_INLINE static Expected<T> CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    Any owned(AnyView::CopyFromTVMFFIAny(*src));
    return details::ExpectedUnsafe::MoveFromTVMFFIAny<T>(
        details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(owned)));
  }
  TVM_FFI_INLINE static Expected<T> MoveFromAnyAfterCheck(TVMFFIAny* src) {
    Any owned = details::AnyUnsafe::MoveTVMFFIAnyToAny(src);
    return details::ExpectedUnsafe::MoveFromTVMFFIAny<T>(
        details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(owned)));
  }
  static std::optional<Expected<T>> TryCastFromAnyView(const TVMFFIAny* src) {
    if (auto value = Success::TryCastFromAnyView(src)) {
      if constexpr (std::is_void_v<T>) {
        return Expected<T>();
      } else {
        return Expected<T>(*std::move(value));
      }
    }
    if (auto error = TypeTraits<Error>::TryCastFromAnyView(src))
      return Expected<T>(*std::move(error));
    return std::nullopt;
  }
  static std::string TypeStr() { return "Expected<" + Success::TypeStr() + ">"; }
  static std::string TypeSchema() {
    return tether::Schema("Expected", {Success::TypeSchema(), TypeTraits<Error>::TypeSchema()});
  }
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_EXPECTED_H_
