// SPDX-License-Identifier: Apache-2.0
// Errors that cross languages, and the macros that raise them.
//
//   if (axis >= ndim) TVM_FFI_THROW(IndexError) << "axis " << axis << " of " << ndim;
//   TVM_FFI_CHECK_EQ(a.size(), b.size(), ValueError) << "operands differ in length";
//   TVM_FFI_ICHECK(initialized);           // InternalError
//
//   try { f(x); } catch (const Error& e) { std::cerr << e.FullMessage(); }
#ifndef TVM_FFI_ERROR_H_
#define TVM_FFI_ERROR_H_

#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>

#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifndef TVM_FFI_USE_LIBBACKTRACE
#define TVM_FFI_USE_LIBBACKTRACE 1
#endif
#ifndef TVM_FFI_BACKTRACE_ON_SEGFAULT
#define TVM_FFI_BACKTRACE_ON_SEGFAULT 1
#endif
#ifndef TVM_FFI_ALWAYS_LOG_BEFORE_THROW
#define TVM_FFI_ALWAYS_LOG_BEFORE_THROW 0
#endif

// nvcc does not see that the destructor of ErrorBuilder never returns, and would warn about every
// [[noreturn]] function that ends in TVM_FFI_THROW, here and in the sources of users.
#if defined(__NVCC_DIAG_PRAGMA_SUPPORT__)
#pragma nv_diag_suppress 1305
#endif

namespace tvm {
namespace ffi {

class ErrorObj : public Object, public TVMFFIErrorCell {
 public:
  ErrorObj() {
    kind = message = backtrace = TVMFFIByteArray{nullptr, 0};
    update_backtrace = nullptr;
    cause_chain = nullptr;
    extra_context = nullptr;
  }
  ~ErrorObj() {
    detail::ObjectUnsafe::DecRefObjectHandle(cause_chain);
    detail::ObjectUnsafe::DecRefObjectHandle(extra_context);
  }

  static constexpr int32_t _type_index = TypeIndex::kTVMFFIError;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC(StaticTypeKey::kTVMFFIError, ErrorObj, Object);
};

namespace tether {

inline TVMFFIByteArray AsBytes(std::string_view s) { return TVMFFIByteArray{s.data(), s.size()}; }

// Made by the runtime, so that an error outlives the library that raised it.
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline ObjectPtr<Object> CreateError(
    std::string_view kind, std::string_view message, std::string_view backtrace,
    TVMFFIObjectHandle cause_chain, TVMFFIObjectHandle extra_context) {
  TVMFFIByteArray kind_bytes = AsBytes(kind);
  TVMFFIByteArray message_bytes = AsBytes(message);
  TVMFFIByteArray backtrace_bytes = AsBytes(backtrace);
  TVMFFIObjectHandle handle = nullptr;
  int code = TVMFFIErrorCreateWithCauseAndExtraContext(
      &kind_bytes, &message_bytes, &backtrace_bytes, cause_chain, extra_context, &handle);
  if (code != 0) throw std::bad_alloc();
  return detail::ObjectUnsafe::ObjectPtrFromOwned<Object>(static_cast<TVMFFIObject*>(handle));
}

}  // namespace tether

// The exception, and the reference to the error object that travels. Its layout and type identity
// are shared by every library of the process.
class TVM_FFI_DLL Error : public ObjectRef, public std::exception {
 public:
  Error(std::string kind, std::string message, std::string backtrace) {
    data_ = tether::CreateError(kind, message, backtrace, nullptr, nullptr);
  }
  Error(std::string kind, std::string message, const TVMFFIByteArray* backtrace)
      : Error(std::move(kind), std::move(message), std::string(backtrace->data, backtrace->size)) {}
  Error(std::string kind, std::string message, std::string backtrace,
        std::optional<Error> cause_chain, std::optional<ObjectRef> extra_context) {
    data_ = tether::CreateError(
        kind, message, backtrace,
        cause_chain ? detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(*cause_chain) : nullptr,
        extra_context ? detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(*extra_context)
                      : nullptr);
  }

  std::string kind() const { return ToString(get()->kind); }
  std::string message() const { return ToString(get()->message); }
  // Most recent call first, one frame a line.
  std::string backtrace() const { return ToString(get()->backtrace); }
  std::optional<Error> cause_chain() const {
    if (get()->cause_chain == nullptr) return std::nullopt;
    return detail::ObjectUnsafe::ObjectRefFromObjectPtr<Error>(Borrow(get()->cause_chain));
  }
  std::optional<ObjectRef> extra_context() const {
    if (get()->extra_context == nullptr) return std::nullopt;
    return ObjectRef(Borrow(get()->extra_context));
  }
  void UpdateBacktrace(const TVMFFIByteArray* backtrace_str, int32_t update_mode) {
    auto* obj = static_cast<ErrorObj*>(data_.get());
    obj->update_backtrace(obj, backtrace_str, update_mode);
  }

  TVM_FFI_COLD_CODE std::string TracebackMostRecentCallLast() const {
    std::string_view text(get()->backtrace.data, get()->backtrace.size);
    std::string out;
    // From the last line to the first; what no newline ends is not a line.
    size_t end = text.rfind('\n');
    while (end != std::string_view::npos && end != 0) {
      size_t before = text.rfind('\n', end - 1);
      size_t begin = before == std::string_view::npos ? 0 : before + 1;
      if (begin != end) out.append(text.substr(begin, end + 1 - begin));
      end = before;
    }
    return out;
  }
  TVM_FFI_COLD_CODE std::string FullMessage() const {
    const std::string traceback = TracebackMostRecentCallLast();
    return tether::Concat(
        {"Traceback (most recent call last):\n", traceback, kind(), ": ", message(), "\n"});
  }
  const char* what() const noexcept(true) override { return get()->message.data; }

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Error, ObjectRef, ErrorObj);

 private:
  static std::string ToString(const TVMFFIByteArray& bytes) {
    return std::string(bytes.data, bytes.size);
  }
  static ObjectPtr<Object> Borrow(TVMFFIObjectHandle handle) {
    return detail::ObjectUnsafe::ObjectPtrFromUnowned<Object>(static_cast<TVMFFIObject*>(handle));
  }
};

namespace tether {

// An error without a backtrace, for functions that throw nothing. Where there is no memory for it,
// it is the error that the runtime has ready for that.
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline Error NewError(std::string_view kind,
                                                          std::string_view message) noexcept {
  ObjectPtr<Object> error;
  try {
    error = CreateError(kind, message, "", nullptr, nullptr);
  } catch (const std::bad_alloc&) {
    TVMFFIErrorSetRaisedFromCStr("MemoryError", "std::bad_alloc");
    TVMFFIObjectHandle handle = nullptr;
    TVMFFIErrorMoveFromRaised(&handle);
    error = detail::ObjectUnsafe::ObjectPtrFromOwned<Object>(static_cast<TVMFFIObject*>(handle));
  }
  return detail::ObjectUnsafe::ObjectRefFromObjectPtr<Error>(std::move(error));
}

}  // namespace tether

// Says that the host language has an exception pending; frontends re-raise that one.
TVM_FFI_COLD_CODE inline Error EnvErrorAlreadySet() {
  return tether::NewError("EnvErrorAlreadySet", "");
}

namespace detail {

// The error a failed call left in this thread's slot.
TVM_FFI_COLD_CODE inline Error MoveFromSafeCallRaised() {
  TVMFFIObjectHandle handle = nullptr;
  TVMFFIErrorMoveFromRaised(&handle);
  // A failure with an empty slot comes from code that raised in the host language only.
  if (handle == nullptr) return EnvErrorAlreadySet();
  return ObjectUnsafe::ObjectRefFromObjectPtr<Error>(
      ObjectUnsafe::ObjectPtrFromOwned<Object>(static_cast<TVMFFIObject*>(handle)));
}

inline void SetSafeCallRaised(const Error& error) {
  TVMFFIErrorSetRaised(ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(error));
}

}  // namespace detail

namespace tether {

// Raises a new error without a backtrace.
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void RaiseNew(std::string_view kind,
                                                         std::string_view message) noexcept {
  detail::SetSafeCallRaised(NewError(kind, message));
}

TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void RaiseUnknownException() noexcept {
  RaiseNew("RuntimeError", kUnknownException);
}

// Collects the message of one throw expression; the destructor throws.
//
// Each frame between a throw and its handler costs, and one with something to destroy as much as
// another throw. So the function that the expression is in throws itself, nothing is left to
// destroy when it does, and the expression makes no temporaries but this.
class ErrorBuilder {
 public:
  TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE ErrorBuilder(const char* kind,
                                                   const TVMFFIByteArray* backtrace,
                                                   bool log_before_throw)
      : parts_(kind, std::string(backtrace->data, backtrace->size), log_before_throw) {}
  TVM_FFI_COLD_CODE ErrorBuilder(std::string kind, std::string backtrace, bool log_before_throw,
                                 std::optional<Error> cause_chain = std::nullopt,
                                 std::optional<ObjectRef> extra_context = std::nullopt)
      : parts_(std::move(kind), std::move(backtrace), log_before_throw) {
    if (cause_chain) parts_.cause_chain = *std::move(cause_chain);
    if (extra_context) parts_.extra_context = *std::move(extra_context);
  }
  TVM_FFI_COLD_CODE ErrorBuilder(std::string kind, const TVMFFIByteArray* backtrace,
                                 bool log_before_throw,
                                 std::optional<Error> cause_chain = std::nullopt,
                                 std::optional<ObjectRef> extra_context = std::nullopt)
      : ErrorBuilder(std::move(kind), std::string(backtrace->data, backtrace->size),
                     log_before_throw, std::move(cause_chain), std::move(extra_context)) {}
  ErrorBuilder(const ErrorBuilder&) = delete;
  ErrorBuilder& operator=(const ErrorBuilder&) = delete;

#ifdef _MSC_VER
#pragma warning(push)
#pragma warning(disable : 4722)
#endif
  [[noreturn]] TVM_FFI_INLINE ~ErrorBuilder() noexcept(false) { throw Finish(); }
#ifdef _MSC_VER
#pragma warning(pop)
#endif

  std::ostringstream& stream() { return parts_.stream; }

 private:
  struct Parts {
    Parts(std::string kind, std::string backtrace, bool log_before_throw)
        : kind(std::move(kind)),
          backtrace(std::move(backtrace)),
          log_before_throw(log_before_throw) {}
    std::string kind;
    std::ostringstream stream;
    std::string backtrace;
    bool log_before_throw;
    ObjectRef cause_chain;
    ObjectRef extra_context;
  };

  // The error; destroys the parts.
  TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE Error Finish() {
    struct Destroy {
      Parts* parts;
      ~Destroy() { parts->~Parts(); }
    } destroy{&parts_};
    Error error = detail::ObjectUnsafe::ObjectRefFromObjectPtr<Error>(
        CreateError(parts_.kind, parts_.stream.str(), parts_.backtrace,
                    detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(parts_.cause_chain),
                    detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(parts_.extra_context)));
    if (parts_.log_before_throw) std::cerr << error.FullMessage();
    return error;
  }

  union {
    Parts parts_;
  };
};

}  // namespace tether

namespace detail {
using ErrorBuilder = ::tvm::ffi::tether::ErrorBuilder;
}  // namespace detail

#define TVM_FFI_THROW_WITH_LOG_(ErrorKind, Log)                                                   \
  ::tvm::ffi::tether::ErrorBuilder(#ErrorKind,                                                    \
                                   TVMFFIBacktrace(__FILE__, __LINE__, TVM_FFI_FUNC_SIG, 0), Log) \
      .stream()

// TVM_FFI_THROW(ValueError) << "message";
#define TVM_FFI_THROW(ErrorKind) \
  TVM_FFI_THROW_WITH_LOG_(ErrorKind, (TVM_FFI_ALWAYS_LOG_BEFORE_THROW != 0))

// The same, printed to stderr first: for places where the exception may not be caught.
#define TVM_FFI_LOG_AND_THROW(ErrorKind) TVM_FFI_THROW_WITH_LOG_(ErrorKind, true)

namespace tether {

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#endif

template <typename X, typename Y>
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE std::unique_ptr<std::string> CheckFailure(const X& x,
                                                                              const Y& y) {
  std::ostringstream os;
  os << " (" << x << " vs. " << y << ") ";
  return std::make_unique<std::string>(os.str());
}

// Null when `x Op y` holds, else " (vx vs. vy) ". The int overload keeps 0 and other literals ints.
#define TVM_FFI_DEFINE_CHECK_OP_(Name, Op)                                   \
  template <typename X, typename Y>                                          \
  TVM_FFI_INLINE std::unique_ptr<std::string> Name(const X& x, const Y& y) { \
    if (TVM_FFI_PREDICT_TRUE(x Op y)) return nullptr;                        \
    return CheckFailure(x, y);                                               \
  }                                                                          \
  TVM_FFI_INLINE std::unique_ptr<std::string> Name(int x, int y) { return Name<int, int>(x, y); }
TVM_FFI_DEFINE_CHECK_OP_(CheckLT, <)
TVM_FFI_DEFINE_CHECK_OP_(CheckGT, >)
TVM_FFI_DEFINE_CHECK_OP_(CheckLE, <=)
TVM_FFI_DEFINE_CHECK_OP_(CheckGE, >=)
TVM_FFI_DEFINE_CHECK_OP_(CheckEQ, ==)
TVM_FFI_DEFINE_CHECK_OP_(CheckNE, !=)
#undef TVM_FFI_DEFINE_CHECK_OP_

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#endif

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowNull(const char* kind,
                                                                       const char* expr,
                                                                       const char* file, int line,
                                                                       const char* func) {
  ErrorBuilder(kind, TVMFFIBacktrace(file, line, func, 0), TVM_FFI_ALWAYS_LOG_BEFORE_THROW != 0)
          .stream()
      << "Check not null: " << expr << ' ';
  TVM_FFI_UNREACHABLE();
}

template <typename T>
TVM_FFI_INLINE T&& CheckNotNull(T&& value, const char* kind, const char* expr, const char* file,
                                int line, const char* func) {
  if (TVM_FFI_PREDICT_FALSE(value == nullptr)) ThrowNull(kind, expr, file, line, func);
  return std::forward<T>(value);
}

}  // namespace tether

#define TVM_FFI_CHECK(cond, ErrorKind) \
  if (TVM_FFI_PREDICT_FALSE(!(cond)))  \
  TVM_FFI_THROW(ErrorKind) << "Check failed: (" #cond << ") is false: "

#define TVM_FFI_CHECK_OP_(Name, op, x, y, ErrorKind)                                           \
  if (auto tvm_ffi_check_failure_ = ::tvm::ffi::tether::Name(x, y))                            \
  TVM_FFI_THROW(ErrorKind) << "Check failed: " << #x " " #op " " #y << *tvm_ffi_check_failure_ \
                           << ": "

#define TVM_FFI_CHECK_LT(x, y, ErrorKind) TVM_FFI_CHECK_OP_(CheckLT, <, x, y, ErrorKind)
#define TVM_FFI_CHECK_GT(x, y, ErrorKind) TVM_FFI_CHECK_OP_(CheckGT, >, x, y, ErrorKind)
#define TVM_FFI_CHECK_LE(x, y, ErrorKind) TVM_FFI_CHECK_OP_(CheckLE, <=, x, y, ErrorKind)
#define TVM_FFI_CHECK_GE(x, y, ErrorKind) TVM_FFI_CHECK_OP_(CheckGE, >=, x, y, ErrorKind)
#define TVM_FFI_CHECK_EQ(x, y, ErrorKind) TVM_FFI_CHECK_OP_(CheckEQ, ==, x, y, ErrorKind)
#define TVM_FFI_CHECK_NE(x, y, ErrorKind) TVM_FFI_CHECK_OP_(CheckNE, !=, x, y, ErrorKind)
// An expression: the value of x, known not to be null.
#define TVM_FFI_CHECK_NOTNULL(x, ErrorKind) \
  (::tvm::ffi::tether::CheckNotNull((x), #ErrorKind, #x, __FILE__, __LINE__, TVM_FFI_FUNC_SIG))

#define TVM_FFI_ICHECK(x) TVM_FFI_CHECK(x, InternalError)
#define TVM_FFI_ICHECK_LT(x, y) TVM_FFI_CHECK_LT(x, y, InternalError)
#define TVM_FFI_ICHECK_GT(x, y) TVM_FFI_CHECK_GT(x, y, InternalError)
#define TVM_FFI_ICHECK_LE(x, y) TVM_FFI_CHECK_LE(x, y, InternalError)
#define TVM_FFI_ICHECK_GE(x, y) TVM_FFI_CHECK_GE(x, y, InternalError)
#define TVM_FFI_ICHECK_EQ(x, y) TVM_FFI_CHECK_EQ(x, y, InternalError)
#define TVM_FFI_ICHECK_NE(x, y) TVM_FFI_CHECK_NE(x, y, InternalError)
#define TVM_FFI_ICHECK_NOTNULL(x) TVM_FFI_CHECK_NOTNULL(x, InternalError)

// Checks of debug builds: compiled, but never evaluated, with NDEBUG.
#ifdef NDEBUG
#define TVM_FFI_DCHECK_GUARD_ while (false)
#define TVM_FFI_DCHECK_NOTNULL(x) (x)
#else
#define TVM_FFI_DCHECK_GUARD_
#define TVM_FFI_DCHECK_NOTNULL(x) TVM_FFI_ICHECK_NOTNULL(x)
#endif
#define TVM_FFI_DCHECK(x) TVM_FFI_DCHECK_GUARD_ TVM_FFI_ICHECK(x)
#define TVM_FFI_DCHECK_LT(x, y) TVM_FFI_DCHECK_GUARD_ TVM_FFI_ICHECK_LT(x, y)
#define TVM_FFI_DCHECK_GT(x, y) TVM_FFI_DCHECK_GUARD_ TVM_FFI_ICHECK_GT(x, y)
#define TVM_FFI_DCHECK_LE(x, y) TVM_FFI_DCHECK_GUARD_ TVM_FFI_ICHECK_LE(x, y)
#define TVM_FFI_DCHECK_GE(x, y) TVM_FFI_DCHECK_GUARD_ TVM_FFI_ICHECK_GE(x, y)
#define TVM_FFI_DCHECK_EQ(x, y) TVM_FFI_DCHECK_GUARD_ TVM_FFI_ICHECK_EQ(x, y)
#define TVM_FFI_DCHECK_NE(x, y) TVM_FFI_DCHECK_GUARD_ TVM_FFI_ICHECK_NE(x, y)

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_ERROR_H_
