// SPDX-License-Identifier: Apache-2.0
// Macros and the stable hash that everything else is built on.
//
//   TVM_FFI_STATIC_INIT_BLOCK() {
//     // runs when the library is loaded
//   }
#ifndef TVM_FFI_BASE_DETAIL_H_
#define TVM_FFI_BASE_DETAIL_H_

#include <tvm/ffi/c_api.h>
#include <tvm/ffi/endian.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#if defined(_MSC_VER)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#ifdef ERROR
#undef ERROR
#endif
#define TVM_FFI_INLINE [[msvc::forceinline]] inline
#define TVM_FFI_NO_INLINE [[msvc::noinline]]
#define TVM_FFI_UNREACHABLE() __assume(false)
#define TVM_FFI_FUNC_SIG __FUNCSIG__
#else
#define TVM_FFI_INLINE [[gnu::always_inline]] inline
#define TVM_FFI_NO_INLINE [[gnu::noinline]]
#define TVM_FFI_UNREACHABLE() __builtin_unreachable()
#define TVM_FFI_FUNC_SIG __PRETTY_FUNCTION__
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TVM_FFI_COLD_CODE [[gnu::cold]]
#define TVM_FFI_HIDDEN __attribute__((visibility("hidden")))
#define TVM_FFI_PREDICT_FALSE(cond) (__builtin_expect(static_cast<bool>(cond), 0))
#define TVM_FFI_PREDICT_TRUE(cond) (__builtin_expect(static_cast<bool>(cond), 1))
#else
#define TVM_FFI_COLD_CODE
#define TVM_FFI_HIDDEN
#define TVM_FFI_PREDICT_FALSE(cond) (cond)
#define TVM_FFI_PREDICT_TRUE(cond) (cond)
#endif

// A promise to the optimizer, never checked: cond must hold and have no side effects.
#define TVM_FFI_UNSAFE_ASSUME(cond) \
  do {                              \
    if (!(cond)) {                  \
      TVM_FFI_UNREACHABLE();        \
    }                               \
  } while (false)

#define TVM_FFI_STR_CONCAT_(a, b) a##b
#define TVM_FFI_STR_CONCAT(a, b) TVM_FFI_STR_CONCAT_(a, b)

#if defined(__GNUC__) || defined(__clang__)
#define TVM_FFI_STATIC_INIT_BLOCK_DEF_(Fn)                                  \
  static void Fn();                                                         \
  __attribute__((constructor)) static void TVM_FFI_STR_CONCAT(Fn, _run)() { \
    ::tvm::ffi::tether::RunStaticInit(&Fn);                                 \
  }                                                                         \
  static void Fn()
#else
#define TVM_FFI_STATIC_INIT_BLOCK_DEF_(Fn)                          \
  static void Fn();                                                 \
  [[maybe_unused]] static const bool TVM_FFI_STR_CONCAT(Fn, _ran) = \
      (::tvm::ffi::tether::RunStaticInit(&Fn), true);               \
  static void Fn()
#endif
#define TVM_FFI_STATIC_INIT_BLOCK() \
  TVM_FFI_STATIC_INIT_BLOCK_DEF_(TVM_FFI_STR_CONCAT(TVMFFIStaticInit_, __COUNTER__))

#define TVM_FFI_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(TypeName) \
  TypeName(const TypeName& other) = default;                  \
  TypeName(TypeName&& other) noexcept = default;              \
  TypeName& operator=(const TypeName& other) = default;       \
  TypeName& operator=(TypeName&& other) noexcept = default

// For C functions that cannot return an error code: report it and end the process.
#define TVM_FFI_LOG_EXCEPTION_CALL_BEGIN() \
  try {                                    \
  (void)0
#define TVM_FFI_LOG_EXCEPTION_CALL_END(Name)                                      \
  }                                                                               \
  catch (const std::exception& err) {                                             \
    std::fprintf(stderr, "Exception caught during " #Name ":\n%s\n", err.what()); \
    exit(-1);                                                                     \
  }                                                                               \
  catch (...) {                                                                   \
    std::fprintf(stderr, "Exception caught during " #Name ":\n%s\n",              \
                 ::tvm::ffi::tether::kUnknownException);                          \
    exit(-1);                                                                     \
  }

#define TVM_FFI_CLEAR_PTR_PADDING_IN_FFI_ANY(result) \
  if constexpr (sizeof((result)->v_ptr) != sizeof((result)->v_int64)) (result)->v_int64 = 0

namespace tvm {
namespace ffi {

// The namespace was called `details` up to 0.1.14. Not an alias: sources of that time may reopen
// it.
namespace detail {}
namespace details {
using namespace detail;
}
namespace reflection {
namespace detail {}
namespace details {
using namespace detail;
}
}  // namespace reflection

// Our own names, which no other build of this interface uses: one process may contain inline code
// of several builds, and the linker merges equal names.
namespace tether {

TVM_FFI_INLINE uintptr_t StackAddress() {
#if defined(__GNUC__) || defined(__clang__)
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
#else
  char here;
  return reinterpret_cast<uintptr_t>(&here);
#endif
}

// The message of the error for an exception that is not derived from std::exception.
inline constexpr const char* kUnknownException =
    "an exception was thrown that is not a std::exception";

// From a handler: gives the exception to the load_module call that runs this initialiser. False if
// there is none.
inline bool TellLoader() {
  constexpr char kName[] = "ffi.tether.KeepInitError";
  TVMFFIByteArray name{kName, sizeof(kName) - 1};
  TVMFFIObjectHandle keep = nullptr;
  if (TVMFFIFunctionGetGlobal(&name, &keep) != 0 || keep == nullptr) return false;
  TVMFFIAny kept{};
  int code = TVMFFIFunctionCall(keep, nullptr, 0, &kept);
  TVMFFIObjectDecRef(keep);
  return code == 0 && kept.v_int64 != 0;
}

// Runs one block of static initialisation. An exception from there ends the process; while
// load_module runs, it becomes the error of that call instead.
inline void RunStaticInit(void (*block)()) {
  try {
    block();
  } catch (...) {
    if (!TellLoader()) throw;
  }
}

// Writes the name or the schema of a type. What is put together from several is given the
// functions, not the strings, so that client code makes and destroys none.
using TypeText = std::string (*)();

// All parts in one text. Written with operator+ it would be compiled inline, at great length.
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline std::string Concat(
    std::initializer_list<std::string_view> parts) {
  std::string out;
  for (std::string_view part : parts) out.append(part);
  return out;
}

// Appends the texts of `types`, separated.
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void AppendTexts(std::string* out,
                                                            std::initializer_list<TypeText> types,
                                                            const char* separator) {
  const char* sep = "";
  for (TypeText text : types) {
    out->append(sep).append(text());
    sep = separator;
  }
}

// {"type":"<name>"}
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline std::string Schema(const char* name) {
  return Concat({"{\"type\":\"", name, "\"}"});
}

// {"type":"<name>","args":[<args>]}
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline std::string Schema(const char* name,
                                                              std::initializer_list<TypeText> args,
                                                              const char* separator = ",") {
  std::string out = Concat({"{\"type\":\"", name, "\",\"args\":["});
  AppendTexts(&out, args, separator);
  return out.append("]}");
}

// {"type":"<name>","named_args":{"return":[<result>],"params":[<params>]}}
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline std::string FunctionSchema(
    const char* name, TypeText result, std::initializer_list<TypeText> params,
    const char* separator = ",") {
  std::string out =
      Concat({"{\"type\":\"", name, "\",\"named_args\":{\"return\":[", result(), "],\"params\":["});
  AppendTexts(&out, params, separator);
  return out.append("]}}");
}

}  // namespace tether

namespace detail {

// f(0, arg0), f(1, arg1), ... in order.
template <typename F, typename... Args>
void for_each(const F& f, Args&&... args) {
  size_t i = 0;
  (f(i++, std::forward<Args>(args)), ...);
  (void)i;
}

// JSON schema of T, specialised in function_detail.h.
template <typename T>
struct TypeSchemaImpl;
template <typename T>
using TypeSchema = TypeSchemaImpl<std::remove_const_t<std::remove_reference_t<T>>>;

template <typename T, typename = std::enable_if_t<std::is_convertible_v<T, uint64_t>>>
TVM_FFI_INLINE uint64_t StableHashCombine(uint64_t key, const T& value) {
  return key ^ (static_cast<uint64_t>(value) + 0x9e3779b9 + (key << 6) + (key >> 2));
}

// The same on every host and for every alignment: little-endian words, a zero-extended tail.
inline uint64_t StableHashBytes(const void* data, size_t size) {
  constexpr uint64_t kMultiplier = 1099511628211ULL;
  constexpr uint64_t kModulus = 2147483647ULL;
  const char* p = static_cast<const char*>(data);
  uint64_t hash = 0;
  auto absorb = [&](size_t n) {
    uint64_t word = 0;
    std::memcpy(&word, p, n);
    if constexpr (!TVM_FFI_LITTLE_ENDIAN) ByteSwap(&word, sizeof(word), 1);
    hash = (hash * kMultiplier + word) % kModulus;
  };
  for (; size >= 8; size -= 8, p += 8) absorb(8);
  if (size != 0) absorb(size);
  return hash;
}

// Equal to StableHashBytes of a small string's content, whose unused bytes are zero.
TVM_FFI_INLINE uint64_t StableHashSmallStrBytes(const TVMFFIAny* value) {
  if constexpr (TVM_FFI_LITTLE_ENDIAN) return value->v_uint64 % 2147483647ULL;
  return StableHashBytes(value->v_bytes, sizeof(value->v_bytes));
}

}  // namespace detail
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_BASE_DETAIL_H_
