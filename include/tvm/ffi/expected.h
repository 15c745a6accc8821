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

#include <optional>
#include <ostream>
#include <sstream>
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

template <typename T>
class Expected;

namespace detail {
struct ExpectedUnsafe;
class UnexpectedBuilder;
}  // namespace detail

namespace tether {

// Types from which an Expected is not made as from a value.
template <typename U>
inline constexpr bool is_expected_like_v =
    std::is_base_of_v<Error, U> || std::is_same_v<U, detail::UnexpectedBuilder>;
template <typename U>
inline constexpr bool is_expected_like_v<Expected<U>> = true;
template <typename E>
inline constexpr bool is_expected_like_v<Unexpected<E>> = true;

// What Expected<T> and Expected<void> share: one value whose index says error or not.
class ExpectedBase {
 public:
  int32_t type_index() const noexcept { return data_.type_index(); }
  bool is_err() const noexcept { return data_.type_index() == TypeIndex::kTVMFFIError; }
  bool is_ok() const noexcept { return !is_err(); }
  bool has_value() const noexcept { return is_ok(); }
  Error error() const& {
    if (!is_err()) ThrowNoError();
    return detail::AnyUnsafe::CopyFromAnyViewAfterCheck<Error>(data_);
  }
  Error error() && {
    if (!is_err()) ThrowNoError();
    return detail::AnyUnsafe::MoveFromAnyAfterCheck<Error>(std::move(data_));
  }

 protected:
  ExpectedBase() = default;
  explicit ExpectedBase(Any data) : data_(std::move(data)) {}
  void ThrowIfError() const {
    if (is_err()) throw detail::AnyUnsafe::CopyFromAnyViewAfterCheck<Error>(data_);
  }

  Any data_;

 private:
  [[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE static void ThrowNoError() {
    TVM_FFI_THROW(RuntimeError) << "Bad expected access: contains value, not error";
    TVM_FFI_UNREACHABLE();
  }
  friend struct detail::ExpectedUnsafe;
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
  // Whatever converts to a T.
  template <typename U, typename Bare = std::remove_cv_t<std::remove_reference_t<U>>,
            typename = std::enable_if_t<!tether::is_expected_like_v<Bare> &&
                                        !std::is_same_v<Bare, T> && std::is_convertible_v<U, T>>>
  Expected(U&& value)  // NOLINT(*)
      : ExpectedBase(Any(static_cast<T>(std::forward<U>(value)))) {}
  template <typename U,
            typename = std::enable_if_t<!std::is_void_v<U> && !std::is_same_v<U, T> &&
                                        (type_subsumes_v<T, U> || std::is_convertible_v<U, T>)>>
  Expected(Expected<U> other)  // NOLINT(*)
      : ExpectedBase(Convert(std::move(other))) {}

  T value() const& {
    ThrowIfError();
    return detail::AnyUnsafe::CopyFromAnyViewAfterCheck<T>(data_);
  }
  T value() && {
    ThrowIfError();
    return detail::AnyUnsafe::MoveFromAnyAfterCheck<T>(std::move(data_));
  }
  template <typename U = std::remove_cv_t<T>>
  T value_or(U&& default_value) const& {
    return is_ok() ? value() : static_cast<T>(std::forward<U>(default_value));
  }
  template <typename U = std::remove_cv_t<T>>
  T value_or(U&& default_value) && {
    return is_ok() ? std::move(*this).value() : static_cast<T>(std::forward<U>(default_value));
  }

  // The value as a U without conversion, or a TypeError. An error stays the error it is. The &&
  // form moves the value out, on success only.
  template <typename U>
  Expected<U> as_or_error() const& {
    if (is_err()) return error();
    if (!detail::AnyUnsafe::CheckAnyStrict<U>(data_)) return CannotTreat<U>();
    return detail::AnyUnsafe::CopyFromAnyViewAfterCheck<U>(data_);
  }
  template <typename U>
  Expected<U> as_or_error() && {
    if (is_err()) return std::move(*this).error();
    if (!detail::AnyUnsafe::CheckAnyStrict<U>(data_)) return CannotTreat<U>();
    return detail::AnyUnsafe::MoveFromAnyAfterCheck<U>(std::move(data_));
  }

 private:
  Expected() = default;
  template <typename U>
  static Any Convert(Expected<U> other);
  template <typename U>
  Error CannotTreat() const {
    static_assert(!std::is_void_v<U> && !std::is_reference_v<U> && !std::is_same_v<U, Error>,
                  "as_or_error needs the type of a value");
    return Error(
        "TypeError",
        "Cannot treat type `" + data_.GetTypeKey() + "` as type `" + detail::Type2Str<U>::v() + "`",
        "");
  }
  friend struct detail::ExpectedUnsafe;
};

template <typename T, typename U>
inline constexpr bool type_subsumes_v<Expected<T>, Expected<U>> = type_subsumes_v<T, U>;

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
  friend struct detail::ExpectedUnsafe;
};

static_assert(sizeof(Expected<int>) == sizeof(TVMFFIAny) &&
              sizeof(Expected<void>) == sizeof(TVMFFIAny));

namespace detail {

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
  template <typename T>
  TVM_FFI_INLINE static Any&& GetData(Expected<T>& expected) {  // NOLINT(*)
    return std::move(expected.data_);
  }
  template <typename T, typename U>
  TVM_FFI_INLINE static T ValueAs(const Expected<U>& expected) {
    return AnyUnsafe::CopyFromAnyViewAfterCheck<T>(expected.data_);
  }
};

// The message of an error that is returned, not thrown. It becomes an Unexpected or any Expected:
//   return TVM_FFI_UNEXPECTED(ValueError) << "bad axis " << axis;
class UnexpectedBuilder {
 public:
  TVM_FFI_COLD_CODE UnexpectedBuilder(const char* kind, const char* file, int line,
                                      const char* function)
      : kind_(kind), file_(file), line_(line), function_(function) {}
  UnexpectedBuilder(const UnexpectedBuilder&) = delete;
  UnexpectedBuilder& operator=(const UnexpectedBuilder&) = delete;

  template <typename T>
  UnexpectedBuilder&& operator<<(const T& value) && {
    stream_ << value;
    return std::move(*this);
  }
  UnexpectedBuilder&& operator<<(std::ostream& (*manipulator)(std::ostream&)) && {
    stream_ << manipulator;
    return std::move(*this);
  }
  UnexpectedBuilder&& operator<<(std::ios_base& (*manipulator)(std::ios_base&)) && {
    stream_ << manipulator;
    return std::move(*this);
  }

  operator Unexpected<Error>() && { return Unexpected<Error>(Build()); }  // NOLINT(*)
  template <typename T>
  operator Expected<T>() && {  // NOLINT(*)
    return Expected<T>(Build());
  }

 private:
  Error Build() const {
    std::string frame = std::string("  File \"") + file_ + "\", line " + std::to_string(line_) +
                        ", in " + function_ + "\n";
    return Error(kind_, stream_.str(), std::move(frame));
  }

  const char* kind_;
  const char* file_;
  int line_;
  const char* function_;
  std::ostringstream stream_;
};

}  // namespace detail

template <typename T>
template <typename U>
Any Expected<T>::Convert(Expected<U> other) {
  if constexpr (type_subsumes_v<T, U>) {
    return Any(detail::ExpectedUnsafe::GetData(other));
  } else {
    if (other.is_err()) return Any(std::move(other).error());
    return Any(static_cast<T>(std::move(other).value()));
  }
}

// An error to return. It has one frame, this place: no stack is walked.
#define TVM_FFI_UNEXPECTED(ErrorKind) \
  ::tvm::ffi::detail::UnexpectedBuilder(#ErrorKind, __FILE__, __LINE__, TVM_FFI_FUNC_SIG)

// Checks that return the error. The switch keeps an `else` that follows where it belongs.
#define TVM_FFI_RET_CHECK(cond, ErrorKind) \
  switch (0)                               \
  case 0:                                  \
  default:                                 \
    if (TVM_FFI_PREDICT_TRUE(cond)) {      \
    } else /* NOLINT(*) */                 \
      return TVM_FFI_UNEXPECTED(ErrorKind) << "Check failed: (" #cond ") is false: "

#define TVM_FFI_RET_CHECK_OP_(Name, op, x, y, ErrorKind)              \
  switch (0)                                                          \
  case 0:                                                             \
  default:                                                            \
    if (auto tvm_ffi_check_failure_ = ::tvm::ffi::tether::Name(x, y); \
        TVM_FFI_PREDICT_TRUE(tvm_ffi_check_failure_ == nullptr)) {    \
    } else /* NOLINT(*) */                                            \
      return TVM_FFI_UNEXPECTED(ErrorKind)                            \
             << "Check failed: " #x " " #op " " #y << *tvm_ffi_check_failure_ << ": "

#define TVM_FFI_RET_CHECK_LT(x, y, ErrorKind) TVM_FFI_RET_CHECK_OP_(CheckLT, <, x, y, ErrorKind)
#define TVM_FFI_RET_CHECK_GT(x, y, ErrorKind) TVM_FFI_RET_CHECK_OP_(CheckGT, >, x, y, ErrorKind)
#define TVM_FFI_RET_CHECK_LE(x, y, ErrorKind) TVM_FFI_RET_CHECK_OP_(CheckLE, <=, x, y, ErrorKind)
#define TVM_FFI_RET_CHECK_GE(x, y, ErrorKind) TVM_FFI_RET_CHECK_OP_(CheckGE, >=, x, y, ErrorKind)
#define TVM_FFI_RET_CHECK_EQ(x, y, ErrorKind) TVM_FFI_RET_CHECK_OP_(CheckEQ, ==, x, y, ErrorKind)
#define TVM_FFI_RET_CHECK_NE(x, y, ErrorKind) TVM_FFI_RET_CHECK_OP_(CheckNE, !=, x, y, ErrorKind)

#define TVM_FFI_RET_ICHECK(x) TVM_FFI_RET_CHECK(x, InternalError)
#define TVM_FFI_RET_ICHECK_LT(x, y) TVM_FFI_RET_CHECK_LT(x, y, InternalError)
#define TVM_FFI_RET_ICHECK_GT(x, y) TVM_FFI_RET_CHECK_GT(x, y, InternalError)
#define TVM_FFI_RET_ICHECK_LE(x, y) TVM_FFI_RET_CHECK_LE(x, y, InternalError)
#define TVM_FFI_RET_ICHECK_GE(x, y) TVM_FFI_RET_CHECK_GE(x, y, InternalError)
#define TVM_FFI_RET_ICHECK_EQ(x, y) TVM_FFI_RET_CHECK_EQ(x, y, InternalError)
#define TVM_FFI_RET_ICHECK_NE(x, y) TVM_FFI_RET_CHECK_NE(x, y, InternalError)

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
    *result = *detail::AnyUnsafe::TVMFFIAnyPtrFromAny(detail::ExpectedUnsafe::GetData(src));
  }
  TVM_FFI_INLINE static void MoveToAny(Expected<T> src, TVMFFIAny* result) {
    *result = detail::ExpectedUnsafe::MoveToTVMFFIAny(std::move(src));
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    return Success::CheckAnyStrict(src) || TypeTraits<Error>::CheckAnyStrict(src);
  }
  TVM_FFI_INLINE static Expected<T> CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    Any owned(AnyView::CopyFromTVMFFIAny(*src));
    return detail::ExpectedUnsafe::MoveFromTVMFFIAny<T>(
        detail::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(owned)));
  }
  TVM_FFI_INLINE static Expected<T> MoveFromAnyAfterCheck(TVMFFIAny* src) {
    Any owned = detail::AnyUnsafe::MoveTVMFFIAnyToAny(src);
    return detail::ExpectedUnsafe::MoveFromTVMFFIAny<T>(
        detail::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(owned)));
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
    return tether::Schema("Expected", {&Success::TypeSchema, &TypeTraits<Error>::TypeSchema});
  }
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_EXPECTED_H_
