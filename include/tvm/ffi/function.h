// SPDX-License-Identifier: Apache-2.0
// Functions that any language can make, store and call.
//
//   Function add = Function::FromTyped([](int a, int b) { return a + b; });
//   int three = add(1, 2).cast<int>();
//   TypedFunction<int(int, int)> typed = add;          // typed(1, 2) is an int
//   Function::SetGlobal("demo.add", add);
//   Function::GetGlobalRequired("demo.add")(1, 2);
//
//   int AddOne(int x) { return x + 1; }
//   TVM_FFI_DLL_EXPORT_TYPED_FUNC(add_one, AddOne)     // found by loading this library as a module
#ifndef TVM_FFI_FUNCTION_H_
#define TVM_FFI_FUNCTION_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/expected.h>
#include <tvm/ffi/function_detail.h>

#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// Whether exported functions carry their metadata and doc; set before this header is included.
#ifndef TVM_FFI_DLL_EXPORT_INCLUDE_METADATA
#define TVM_FFI_DLL_EXPORT_INCLUDE_METADATA 0
#endif

// Around the body of a C function that returns int: exceptions become a raised error and -1.
#define TVM_FFI_SAFE_CALL_BEGIN() \
  try {                           \
  (void)0
#define TVM_FFI_SAFE_CALL_END()                             \
  return 0;                                                 \
  }                                                         \
  catch (const ::tvm::ffi::Error& err) {                    \
    ::tvm::ffi::detail::SetSafeCallRaised(err);             \
    return -1;                                              \
  }                                                         \
  catch (const std::bad_alloc& ex) {                        \
    TVMFFIErrorSetRaisedFromCStr("MemoryError", ex.what()); \
    return -1;                                              \
  }                                                         \
  catch (const std::exception& ex) {                        \
    ::tvm::ffi::tether::RaiseInternalError(ex.what());      \
    return -1;                                              \
  }                                                         \
  TVM_FFI_SAFE_CALL_CATCH_REST_()                           \
  TVM_FFI_UNREACHABLE()

// Anything else that was thrown. The unwinding of a thread that is cancelled or ends itself is not
// an exception, and the C++ runtime aborts if it is not passed on.
#ifdef __GLIBCXX__
#define TVM_FFI_SAFE_CALL_CATCH_REST_()          \
  catch (::abi::__forced_unwind&) {              \
    throw;                                       \
  }                                              \
  catch (...) {                                  \
    ::tvm::ffi::tether::RaiseUnknownException(); \
    return -1;                                   \
  }
#else
#define TVM_FFI_SAFE_CALL_CATCH_REST_()          \
  catch (...) {                                  \
    ::tvm::ffi::tether::RaiseUnknownException(); \
    return -1;                                   \
  }
#endif

// Throws the raised error if a C function failed.
#define TVM_FFI_CHECK_SAFE_CALL(func)                                                           \
  do {                                                                                          \
    if (TVM_FFI_PREDICT_FALSE((func) != 0)) throw ::tvm::ffi::detail::MoveFromSafeCallRaised(); \
  } while (false)

namespace tvm {
namespace ffi {

namespace tether {

TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void RaiseInternalError(const char* what) noexcept {
  RaiseNew("InternalError", what);
}

// In a handler: raises what was caught.
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline int RaiseCaught() {
  TVM_FFI_SAFE_CALL_BEGIN();
  throw;
  TVM_FFI_SAFE_CALL_END();
}

// In a handler: the error for what was caught, the same as of a call that throws it. Needs no
// memory. Throws nothing but the unwinding of a thread that ends.
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline Error CaughtError() {
  RaiseCaught();
  return detail::MoveFromSafeCallRaised();
}

}  // namespace tether

class FunctionObj : public Object, public TVMFFIFunctionCell {
 public:
  using FCall = void (*)(const FunctionObj*, const AnyView*, int32_t, Any*);

  // The C++ entry lets exceptions through; without one the C entry is called and its error thrown.
  TVM_FFI_INLINE void CallPacked(const AnyView* args, int32_t num_args, Any* result) const {
    if (cpp_call != nullptr) {
      reinterpret_cast<FCall>(cpp_call)(this, args, num_args, result);
      return;
    }
    TVM_FFI_CHECK_SAFE_CALL(safe_call(const_cast<FunctionObj*>(this),
                                      reinterpret_cast<const TVMFFIAny*>(args), num_args,
                                      reinterpret_cast<TVMFFIAny*>(result)));
  }

  static constexpr int32_t _type_index = TypeIndex::kTVMFFIFunction;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC(StaticTypeKey::kTVMFFIFunction, FunctionObj, Object);

 protected:
  FunctionObj() {
    safe_call = nullptr;
    cpp_call = nullptr;
  }
};

static_assert(sizeof(void*) != 8 || sizeof(FunctionObj) == 40, "the cell is inlined in clients");

namespace tether {

// The caller of a safe call must pass a result without an object: it would leak.
[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowResultNotEmpty(
    const TVMFFIAny* result) {
  TVM_FFI_ICHECK_LT(result->type_index, TypeIndex::kTVMFFIStaticObjectBegin);
  TVM_FFI_UNREACHABLE();
}

// A function that owns a C++ callable of the packed form (args, num_args, result). Hidden, so that
// its code is in the library that made it: by its address the runtime knows whose it is.
template <typename TCallable>
class TVM_FFI_HIDDEN CallableFunction : public FunctionObj {
 public:
  template <typename... Args>
  explicit CallableFunction(std::in_place_t, Args&&... args)
      : callable_(std::forward<Args>(args)...) {
    safe_call = SafeCall;
    cpp_call = reinterpret_cast<void*>(static_cast<FCall>(Call));
  }
  TCallable* callable() const { return &callable_; }

 private:
  static void Call(const FunctionObj* self, const AnyView* args, int32_t num_args, Any* result) {
    static_cast<const CallableFunction*>(self)->callable_(args, num_args, result);
  }
  static int SafeCall(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
    TVM_FFI_SAFE_CALL_BEGIN();
    if (TVM_FFI_PREDICT_FALSE(result->type_index >= TypeIndex::kTVMFFIStaticObjectBegin)) {
      ThrowResultNotEmpty(result);
    }
    Call(static_cast<const FunctionObj*>(static_cast<Object*>(self)),
         reinterpret_cast<const AnyView*>(args), num_args, reinterpret_cast<Any*>(result));
    TVM_FFI_SAFE_CALL_END();
  }

  mutable TCallable callable_;
};

// A C function that is given the function object as its handle.
class CFunction : public FunctionObj {
 public:
  explicit CFunction(TVMFFISafeCallType call) { safe_call = call; }
};

// A C function with a context of its own.
class CFunctionWithContext : public FunctionObj {
 public:
  CFunctionWithContext(void* self, TVMFFISafeCallType call, void (*deleter)(void* self))
      : self_(self), call_(call), deleter_(deleter) {
    safe_call = Forward;
  }
  ~CFunctionWithContext() {
    if (deleter_ != nullptr) deleter_(self_);
  }

 private:
  static int Forward(void* func, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
    auto* self = static_cast<CFunctionWithContext*>(static_cast<Object*>(func));
    return self->call_(self->self_, args, num_args, result);
  }

  void* self_;
  TVMFFISafeCallType call_;
  void (*deleter_)(void* self);
};

// True for a type whose FFI form is a new object. A view could not own that, so such an argument is
// held in an Any during the call.
template <typename T>
inline constexpr bool passes_as_new_object_v = false;
template <typename... Args>
inline constexpr bool any_passes_as_new_object_v =
    (passes_as_new_object_v<std::remove_cv_t<std::remove_reference_t<Args>>> || ...);

template <typename T>
TVM_FFI_INLINE std::conditional_t<any_passes_as_new_object_v<T>, Any, T&&> HoldArgument(T&& arg) {
  return std::forward<T>(arg);
}

}  // namespace tether

// The arguments of a packed call.
class PackedArgs {
 public:
  PackedArgs(const AnyView* data, int32_t size) : data_(data), size_(size) {}
  int size() const { return size_; }
  const AnyView* data() const { return data_; }
  AnyView operator[](int i) const { return data_[i]; }
  // Arguments [begin, end); -1 for the end.
  PackedArgs Slice(int begin, int end = -1) const {
    return PackedArgs(data_ + begin, (end == -1 ? size_ : end) - begin);
  }
  // Views of args, which must stay alive.
  template <typename... Args>
  TVM_FFI_INLINE static void Fill(AnyView* data, Args&&... args) {
    detail::for_each([data](size_t i, auto&& arg) { data[i] = arg; }, std::forward<Args>(args)...);
  }

 private:
  const AnyView* data_;
  int32_t size_;
};

class Function : public ObjectRef {
 public:
  class Registry;

  Function(std::nullptr_t) {}  // NOLINT(*)
  template <typename TCallable,
            typename = std::enable_if_t<!std::is_base_of_v<ObjectRef, std::decay_t<TCallable>> &&
                                        !std::is_same_v<std::decay_t<TCallable>, UnsafeInit>>>
  explicit Function(TCallable&& callable) {
    *this = FromPacked(std::forward<TCallable>(callable));
  }

  // From void(const AnyView*, int32_t, Any*) or void(PackedArgs, Any*).
  template <typename TCallable>
  static Function FromPacked(TCallable callable) {
    static_assert(std::is_invocable_v<TCallable&, const AnyView*, int32_t, Any*> ||
                      std::is_invocable_v<TCallable&, PackedArgs, Any*>,
                  "tvm::ffi::Function::FromPacked requires input function signature to match "
                  "packed func format");
    if constexpr (std::is_invocable_v<TCallable&, PackedArgs, Any*>) {
      return FromCallable(
          [callable = std::move(callable)](const AnyView* args, int32_t num_args, Any* rv) mutable {
            callable(PackedArgs(args, num_args), rv);
          });
    } else {
      return FromCallable(std::move(callable));
    }
  }

  // The callable is built inside the function; the pointer to it lives as long as the function
  // does.
  template <typename TCallable, typename... Args>
  static auto FromPackedInplace(Args&&... args) {
    auto obj = make_object<tether::CallableFunction<TCallable>>(std::in_place,
                                                                std::forward<Args>(args)...);
    TCallable* callable = obj->callable();
    return std::make_tuple(Function(ObjectPtr<FunctionObj>(std::move(obj))), callable);
  }

  // From any callable with one signature of convertible types.
  template <typename TCallable>
  static Function FromTyped(TCallable callable) {
    using Info = detail::FunctionInfo<std::decay_t<TCallable>>;
    return FromCallable(
        [callable = std::move(callable)](const AnyView* args, int32_t num_args, Any* rv) {
          detail::unpack_call<typename Info::RetType>(std::make_index_sequence<Info::num_args>{},
                                                      nullptr, callable, args, num_args, rv);
        });
  }
  // With the name its argument errors mention.
  template <typename TCallable>
  static Function FromTyped(TCallable callable, std::string name) {
    using Info = detail::FunctionInfo<std::decay_t<TCallable>>;
    return FromCallable([callable = std::move(callable), name = std::move(name)](
                            const AnyView* args, int32_t num_args, Any* rv) {
      detail::unpack_call<typename Info::RetType>(std::make_index_sequence<Info::num_args>{}, &name,
                                                  callable, args, num_args, rv);
    });
  }

  static Function FromExternC(void* self, TVMFFISafeCallType safe_call,
                              void (*deleter)(void* self)) {
    if (self == nullptr && deleter == nullptr) {
      return Function(ObjectPtr<FunctionObj>(make_object<tether::CFunction>(safe_call)));
    }
    return Function(ObjectPtr<FunctionObj>(
        make_object<tether::CFunctionWithContext>(self, safe_call, deleter)));
  }

  static std::optional<Function> GetGlobal(std::string_view name) {
    TVMFFIByteArray name_bytes = tether::AsBytes(name);
    TVMFFIObjectHandle handle = nullptr;
    TVM_FFI_CHECK_SAFE_CALL(TVMFFIFunctionGetGlobal(&name_bytes, &handle));
    if (handle == nullptr) return std::nullopt;
    return Function(
        detail::ObjectUnsafe::ObjectPtrFromOwned<FunctionObj>(static_cast<TVMFFIObject*>(handle)));
  }
  static std::optional<Function> GetGlobal(const std::string& name) {
    return GetGlobal(std::string_view(name));
  }
  static std::optional<Function> GetGlobal(const String& name) {
    return GetGlobal(std::string_view(name.data(), name.size()));
  }
  static std::optional<Function> GetGlobal(const char* name) {
    return GetGlobal(std::string_view(name));
  }
  static Function GetGlobalRequired(std::string_view name) {
    std::optional<Function> func = GetGlobal(name);
    if (!func.has_value()) TVM_FFI_THROW(ValueError) << "Function " << name << " not found";
    return *std::move(func);
  }
  static Function GetGlobalRequired(const std::string& name) {
    return GetGlobalRequired(std::string_view(name));
  }
  static Function GetGlobalRequired(const String& name) {
    return GetGlobalRequired(std::string_view(name.data(), name.size()));
  }
  static Function GetGlobalRequired(const char* name) {
    return GetGlobalRequired(std::string_view(name));
  }
  static void SetGlobal(std::string_view name, Function func, bool override = false) {
    TVMFFIByteArray name_bytes = tether::AsBytes(name);
    TVM_FFI_CHECK_SAFE_CALL(TVMFFIFunctionSetGlobal(
        &name_bytes, detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(func), override));
  }
  static std::vector<String> ListGlobalNames() {
    Function name_at =
        GetGlobalRequired("ffi.FunctionListGlobalNamesFunctor")().template cast<Function>();
    auto count = name_at(-1).cast<int64_t>();
    std::vector<String> names;
    names.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) names.push_back(name_at(i).cast<String>());
    return names;
  }
  static void RemoveGlobal(const String& name) {
    GetGlobalRequired("ffi.FunctionRemoveGlobal")(name);
  }

  // Calls a C entry point directly.
  template <typename... Args>
  TVM_FFI_INLINE static Any InvokeExternC(void* handle, TVMFFISafeCallType safe_call,
                                          Args&&... args) {
    return InvokeC(handle, safe_call, tether::HoldArgument(std::forward<Args>(args))...);
  }

  template <typename... Args>
  TVM_FFI_INLINE Any operator()(Args&&... args) const {
    return Invoke(tether::HoldArgument(std::forward<Args>(args))...);
  }
  TVM_FFI_INLINE void CallPacked(const AnyView* args, int32_t num_args, Any* result) const {
    Callee()->CallPacked(args, num_args, result);
  }
  TVM_FFI_INLINE void CallPacked(PackedArgs args, Any* result) const {
    Callee()->CallPacked(args.data(), args.size(), result);
  }

  // A call that reports failure as a value.
  template <typename T = Any, typename... Args>
  Expected<T> CallExpected(Args&&... args) const {
    Any result;
    if (InvokeSafe(&result, tether::HoldArgument(std::forward<Args>(args))...) != 0) {
      return detail::MoveFromSafeCallRaised();
    }
    return ToExpected<T>(std::move(result));
  }

  bool operator==(std::nullptr_t) const { return data_ == nullptr; }
  bool operator!=(std::nullptr_t) const { return data_ != nullptr; }

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Function, ObjectRef, FunctionObj);

 private:
  template <typename... Args>
  static constexpr size_t kArraySize = sizeof...(Args) > 0 ? sizeof...(Args) : 1;

  // None arrives as a null function. Calling it is an error, but must not end the process.
  TVM_FFI_INLINE const FunctionObj* Callee() const {
    if (TVM_FFI_PREDICT_FALSE(data_ == nullptr)) ThrowNullCall();
    return get();
  }
  static constexpr const char* kNullCall = "a null ffi.Function (None) cannot be called";
  [[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE static void ThrowNullCall() {
    TVM_FFI_THROW(TypeError) << kNullCall;
    TVM_FFI_UNREACHABLE();
  }

  // The three ways to call, with arguments that live until it returns.
  template <typename... Args>
  TVM_FFI_INLINE Any Invoke(Args&&... args) const {
    AnyView packed[kArraySize<Args...>] = {AnyView(args)...};
    Any result;
    Callee()->CallPacked(packed, static_cast<int32_t>(sizeof...(Args)), &result);
    return result;
  }
  template <typename... Args>
  TVM_FFI_INLINE static Any InvokeC(void* handle, TVMFFISafeCallType safe_call, Args&&... args) {
    AnyView packed[kArraySize<Args...>] = {AnyView(args)...};
    Any result;
    TVM_FFI_CHECK_SAFE_CALL(safe_call(handle, reinterpret_cast<const TVMFFIAny*>(packed),
                                      static_cast<int32_t>(sizeof...(Args)),
                                      reinterpret_cast<TVMFFIAny*>(&result)));
    return result;
  }
  template <typename... Args>
  TVM_FFI_INLINE int InvokeSafe(Any* result, Args&&... args) const {
    AnyView packed[kArraySize<Args...>] = {AnyView(args)...};
    FunctionObj* func = const_cast<FunctionObj*>(get());
    if (TVM_FFI_PREDICT_FALSE(func == nullptr)) {
      TVMFFIErrorSetRaisedFromCStr("TypeError", kNullCall);
      return -1;
    }
    return func->safe_call(func, reinterpret_cast<const TVMFFIAny*>(packed),
                           static_cast<int32_t>(sizeof...(Args)),
                           reinterpret_cast<TVMFFIAny*>(result));
  }

  template <typename TCallable>
  static Function FromCallable(TCallable&& callable) {
    using Decayed = std::decay_t<TCallable>;
    return Function(ObjectPtr<FunctionObj>(make_object<tether::CallableFunction<Decayed>>(
        std::in_place, std::forward<TCallable>(callable))));
  }

  template <typename T>
  static Expected<T> ToExpected(Any result) {
    if constexpr (std::is_same_v<T, Any>) {
      return detail::ExpectedUnsafe::MoveFromTVMFFIAny<Any>(
          detail::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(result)));
    } else {
      if constexpr (std::is_void_v<T>) {
        if (result == nullptr) return {};
      } else {
        if (auto value = result.template try_cast<T>()) return *std::move(value);
      }
      if (auto error = result.template as<Error>()) return *std::move(error);
      try {
        return MismatchError(detail::Type2Str<T>::v(), result.GetTypeKey());
      } catch (const std::bad_alloc&) {  // callers rely on a value
        return tether::CaughtError();
      }
    }
  }
  static Error MismatchError(const std::string& expected, const std::string& actual) {
    return Error("TypeError",
                 "CallExpected: result type mismatch, expected " + expected + ", but got " + actual,
                 TVMFFIBacktrace(__FILE__, __LINE__, TVM_FFI_FUNC_SIG, 0));
  }
};

template <typename FType>
class TypedFunction;

// A Function with its signature known to the compiler.
template <typename R, typename... Args>
class TypedFunction<R(Args...)> {
 public:
  using TSelf = TypedFunction<R(Args...)>;

  TypedFunction() = default;
  TypedFunction(std::nullptr_t) {}                                // NOLINT(*)
  TypedFunction(Function packed) : packed_(std::move(packed)) {}  // NOLINT(*)
  template <typename F,
            typename = std::enable_if_t<std::is_convertible_v<F, std::function<R(Args...)>> &&
                                        !std::is_base_of_v<ObjectRef, std::decay_t<F>> &&
                                        !std::is_same_v<std::decay_t<F>, TypedFunction>>>
  TypedFunction(F typed_lambda)
      : packed_(Function::FromTyped(std::move(typed_lambda))) {}  // NOLINT(*)
  template <typename F,
            typename = std::enable_if_t<std::is_convertible_v<F, std::function<R(Args...)>> &&
                                        !std::is_base_of_v<ObjectRef, std::decay_t<F>> &&
                                        !std::is_same_v<std::decay_t<F>, TypedFunction>>>
  TypedFunction(F typed_lambda, std::string name)
      : packed_(Function::FromTyped(std::move(typed_lambda), std::move(name))) {}
  template <typename F,
            typename = std::enable_if_t<std::is_convertible_v<F, std::function<R(Args...)>> &&
                                        !std::is_base_of_v<ObjectRef, std::decay_t<F>> &&
                                        !std::is_same_v<std::decay_t<F>, TypedFunction>>>
  TypedFunction& operator=(F typed_lambda) {
    packed_ = Function::FromTyped(std::move(typed_lambda));
    return *this;
  }
  TypedFunction& operator=(Function packed) {
    packed_ = std::move(packed);
    return *this;
  }

  TVM_FFI_INLINE R operator()(Args... args) const {
    if constexpr (std::is_void_v<R>) {
      packed_(std::forward<Args>(args)...);
    } else if constexpr (std::is_same_v<R, Any>) {
      return packed_(std::forward<Args>(args)...);
    } else {
      Any result = packed_(std::forward<Args>(args)...);
      if constexpr (TypeTraits<R>::storage_enabled) {
        if (TVM_FFI_PREDICT_TRUE(
                TypeTraits<R>::CheckAnyStrict(detail::AnyUnsafe::TVMFFIAnyPtrFromAny(result)))) {
          return std::move(result).template cast<R>();
        }
      }
      std::optional<R> converted = result.template try_cast<R>();
      if (TVM_FFI_PREDICT_FALSE(!converted.has_value())) ThrowBadResult(result);
      return *std::move(converted);
    }
  }
  operator Function() const { return packed_; }  // NOLINT(*)
  const Function& packed() const& { return packed_; }
  Function&& packed() && { return std::move(packed_); }
  bool operator==(std::nullptr_t) const { return packed_ == nullptr; }
  bool operator!=(std::nullptr_t) const { return packed_ != nullptr; }
  static std::string TypeSchema() { return detail::FuncFunctorImpl<R, Args...>::TypeSchema(); }

 private:
  // A Python callback may return anything.
  [[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE static void ThrowBadResult(const Any& result) {
    const TVMFFIAny* cell = detail::AnyUnsafe::TVMFFIAnyPtrFromAny(result);
    tether::ThrowResultMismatch(detail::FuncFunctorImpl<R, Args...>::Sig, detail::Type2Str<R>::v(),
                                TypeTraits<R>::GetMismatchTypeInfo(cell));
  }

  Function packed_;
};

template <typename FType>
struct TypeTraits<TypedFunction<FType>> : public TypeTraitsBase {
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIFunction;

  TVM_FFI_INLINE static void CopyToAnyView(const TypedFunction<FType>& src, TVMFFIAny* result) {
    TypeTraits<Function>::CopyToAnyView(src.packed(), result);
  }
  TVM_FFI_INLINE static void MoveToAny(TypedFunction<FType> src, TVMFFIAny* result) {
    TypeTraits<Function>::MoveToAny(std::move(src).packed(), result);
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    return src->type_index == TypeIndex::kTVMFFIFunction;
  }
  TVM_FFI_INLINE static TypedFunction<FType> CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return TypedFunction<FType>(TypeTraits<Function>::CopyFromAnyViewAfterCheck(src));
  }
  TVM_FFI_INLINE static TypedFunction<FType> MoveFromAnyAfterCheck(TVMFFIAny* src) {
    return TypedFunction<FType>(TypeTraits<Function>::MoveFromAnyAfterCheck(src));
  }
  TVM_FFI_INLINE static std::optional<TypedFunction<FType>> TryCastFromAnyView(
      const TVMFFIAny* src) {
    if (auto func = TypeTraits<Function>::TryCastFromAnyView(src)) {
      return TypedFunction<FType>(*std::move(func));
    }
    return std::nullopt;
  }
  static std::string TypeStr() { return detail::FunctionInfo<FType>::Sig(); }
  static std::string TypeSchema() { return TypedFunction<FType>::TypeSchema(); }
};

inline int32_t TypeKeyToIndex(std::string_view type_key) {
  TVMFFIByteArray key = tether::AsBytes(type_key);
  int32_t type_index = 0;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeKeyToIndex(&key, &type_index));
  return type_index;
}

namespace tether {

// A string whose storage belongs to the runtime: the library that exports it may be unloaded first.
inline int ReturnRuntimeString(std::string_view text, TVMFFIAny* result) {
  TVMFFIByteArray bytes = AsBytes(text);
  return TVMFFIStringFromByteArray(&bytes, result);
}

template <typename F>
int ReturnMetadata(TVMFFIAny* result) {
  TVM_FFI_SAFE_CALL_BEGIN();
  String schema = EscapeStringJSON(String(detail::FunctionInfo<F>::TypeSchema()));
  std::string text = "{\"type_schema\":" + std::string(schema) + "}";
  TVM_FFI_CHECK_SAFE_CALL(ReturnRuntimeString(text, result));
  TVM_FFI_SAFE_CALL_END();
}

}  // namespace tether

#define TVM_FFI_DLL_EXPORT_TYPED_FUNC_IMPL_(ExportName, Function)                               \
  extern "C" {                                                                                  \
  TVM_FFI_DLL_EXPORT int __tvm_ffi_##ExportName(void*, const TVMFFIAny* args, int32_t num_args, \
                                                TVMFFIAny* result) {                            \
    using TVMFFIInfo_ = ::tvm::ffi::detail::FunctionInfo<std::decay_t<decltype(Function)>>;     \
    TVM_FFI_SAFE_CALL_BEGIN();                                                                  \
    static const std::string tvm_ffi_name_ = #ExportName;                                       \
    ::tvm::ffi::detail::unpack_call<typename TVMFFIInfo_::RetType>(                             \
        std::make_index_sequence<TVMFFIInfo_::num_args>{}, &tvm_ffi_name_, Function,            \
        reinterpret_cast<const ::tvm::ffi::AnyView*>(args), num_args,                           \
        reinterpret_cast<::tvm::ffi::Any*>(result));                                            \
    TVM_FFI_SAFE_CALL_END();                                                                    \
  }                                                                                             \
  }

// clang-format off
//   TVM_FFI_DLL_EXPORT_TYPED_FUNC(Name, Function)  exports a function or named constexpr functor as
//                                                  __tvm_ffi_<Name>, where load_module finds it
//   TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC(Name, Text)  gives it a docstring
// clang-format on
// With TVM_FFI_DLL_EXPORT_INCLUDE_METADATA the type schema is exported, too; without, the docstring
// is left out.
#if TVM_FFI_DLL_EXPORT_INCLUDE_METADATA
#define TVM_FFI_DLL_EXPORT_TYPED_FUNC(ExportName, Function)                                 \
  TVM_FFI_DLL_EXPORT_TYPED_FUNC_IMPL_(ExportName, Function)                                 \
  extern "C" {                                                                              \
  TVM_FFI_DLL_EXPORT int __tvm_ffi__metadata_##ExportName(void*, const TVMFFIAny*, int32_t, \
                                                          TVMFFIAny* result) {              \
    return ::tvm::ffi::tether::ReturnMetadata<std::decay_t<decltype(Function)>>(result);    \
  }                                                                                         \
  }
#define TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC(ExportName, DocString)                       \
  extern "C" {                                                                         \
  TVM_FFI_DLL_EXPORT int __tvm_ffi__doc_##ExportName(void*, const TVMFFIAny*, int32_t, \
                                                     TVMFFIAny* result) {              \
    return ::tvm::ffi::tether::ReturnRuntimeString(DocString, result);                 \
  }                                                                                    \
  }
#else
#define TVM_FFI_DLL_EXPORT_TYPED_FUNC(ExportName, Function) \
  TVM_FFI_DLL_EXPORT_TYPED_FUNC_IMPL_(ExportName, Function)
#define TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC(ExportName, DocString)
#endif

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_FUNCTION_H_
