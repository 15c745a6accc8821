// SPDX-License-Identifier: Apache-2.0
// Values across the boundary: Python -> Any (arguments), Any -> Python (results), exceptions both
// ways.
#ifndef TETHER_PYTHON_CONVERT_H_
#define TETHER_PYTHON_CONVERT_H_

#include "wrapper.h"

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

#include <memory>
#include <vector>

#include "core/stack_room.h"

namespace tether_py {

// Py_EnterRecursiveCall, true on success, also where the interpreter counts on a larger stack than
// the thread has.
inline bool EnterRecursion(const char* where) {
  if (ffi::tether::IsStackLow()) {
    PyErr_Format(PyExc_RecursionError, "maximum recursion depth exceeded%s", where);
    return false;
  }
  return Py_EnterRecursiveCall(where) == 0;
}

// ---- Python -> Any ----

// What the arguments of a call say about where it works: the framework whose tensors came in, and
// the stream that is current for the first device that is not the CPU.
struct CallContext {
  const DLPackExchangeAPI* api;
  int32_t device_type;  // -1: none
  int32_t device_id;
  void* stream;

  void SetStream(DLDevice device, void* current) {
    device_type = device.device_type;
    device_id = device.device_id;
    stream = current;
  }
  void FillGapsFrom(const CallContext& other) {
    if (api == nullptr) api = other.api;
    if (device_type == -1) {
      device_type = other.device_type;
      device_id = other.device_id;
      stream = other.stream;
    }
  }
};

// Arguments of one call as borrowed values, and what must live until it returns. One of the two
// classes that derive from it.
class Arguments {
 public:
  Arguments() = default;
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // False with an error set.
  bool Reserve(Py_ssize_t n) { return TVM_FFI_PREDICT_TRUE(n <= capacity_) || ReserveMore(n); }
  bool Add(PyObject* arg);
  bool AddAll(PyObject* const* args, Py_ssize_t n);
  void AddPointer(void* pointer) {
    TVMFFIAny* out = &data_[size_++];
    out->type_index = ffi::TypeIndex::kTVMFFIOpaquePtr;
    out->zero_padding = 0;
    out->v_ptr = pointer;
  }
  TVMFFIAny* data() { return data_; }
  int32_t size() const { return size_; }

  // NULL when no argument was a tensor or held one, which is nearly always.
  CallContext* context() { return context_; }
  CallContext* MutableContext() {
    if (context_ == nullptr) {
      context_storage_ = CallContext{nullptr, -1, 0, nullptr};
      context_ = &context_storage_;
    }
    return context_;
  }

  // For conversions: keep a value or a Python object until the call is over.
  void Keep(TVMFFIObject* owned) {
    if (TVM_FFI_PREDICT_FALSE(num_kept_ == kInlineKept)) return KeepMore(owned);
    kept_[num_kept_++] = owned;
  }
  void Keep(const TVMFFIAny& owned) {
    if (owned.type_index >= ffi::TypeIndex::kTVMFFIStaticObjectBegin) Keep(owned.v_obj);
  }
  void Keep(Ref obj);
  void Hold(TVMFFIObject* h) {
    Engine::AddStrong(h);
    Keep(h);
  }
  // A slot the callee may take `w`'s object from; what it leaves goes back to `w`. NULL with an
  // error set.
  TVMFFIObject** MoveOut(Wrapper* w);

 protected:
  ~Arguments() = default;
  struct Moved {
    TVMFFIObject* object;
    Ref wrapper;
  };
  // What few calls have.
  struct Rest {
    TVMFFIAny* data = nullptr;  // of more arguments than there is room for in here
    std::vector<TVMFFIObject*> values;
    std::vector<Ref> objects;
    std::vector<std::unique_ptr<Moved>> moved;
    ~Rest();
  };
  bool HoldsSomething() const { return num_kept_ != 0; }
  Rest* MutableRest() {
    if (rest_ == nullptr) rest_ = new Rest();
    if (num_kept_ == 0) Keep(static_cast<TVMFFIObject*>(nullptr));  // says that there is something
    return rest_;
  }
  bool ReserveMore(Py_ssize_t n);
  void KeepMore(TVMFFIObject* owned);
  void LetGo();
  void LetGoOfAll();  // in function.cc: what SetCallable made is used again
  void LetGoOfRest();

  // Small, because nested lists have one of these on the stack for every level.
  static constexpr int32_t kInline = 8;
  static constexpr int32_t kInlineKept = 4;
  TVMFFIAny inline_[kInline];
  TVMFFIAny* data_ = inline_;
  int32_t capacity_ = kInline;
  int32_t size_ = 0;
  int32_t num_kept_ = 0;
  int32_t is_detached_ = 0;  // of a call that has let go of the GIL
  Rest* rest_ = nullptr;
  CallContext* context_ = nullptr;
  TVMFFIObject* kept_[kInlineKept];
  CallContext context_storage_;
};

// Of a conversion outside of a call, whose result is owned before any other Python code may run.
class Conversion final : public Arguments {
 public:
  ~Conversion() {
    if (TVM_FFI_PREDICT_FALSE(HoldsSomething())) LetGo();
  }
};

// Of a call; see "where user code may run" (wrapper.h). The list of calls is in here, on the stacks
// of their threads: calls end in the order of a stack, but for those of other threads. With the GIL
// only.
class CallArguments final : public Arguments {
 public:
  CallArguments() {
    if (kFreeThreaded) return;
    outer_ = innermost_;
    innermost_ = this;
  }
  ~CallArguments() {
    if (TVM_FFI_PREDICT_FALSE(HoldsSomething())) LetGo();
    if (kFreeThreaded) return;
    if (TVM_FFI_PREDICT_TRUE(innermost_ == this)) {
      innermost_ = outer_;
    } else {
      LeaveFromWithin();
    }
  }
  // At once, where the call has succeeded: no exception is pending, and this thread is attached.
  void LetGoAfterSuccess() {
    if (TVM_FFI_PREDICT_FALSE(HoldsSomething())) LetGoOfAll();
  }

  // While the call has let go of the GIL. Its thread is known only then.
  void BeginDetached() {
    if (kFreeThreaded) return CountDetached(1);
    thread_.store(nullptr, std::memory_order_relaxed);
    is_detached_ = 1;
  }
  void SetThread(PyThreadState* thread) { thread_.store(thread, std::memory_order_relaxed); }
  void EndDetached() {
    if (kFreeThreaded) return CountDetached(-1);
    is_detached_ = 0;
  }
  // Whether another thread is in a call without the GIL. Those of this one wait for the callback
  // that runs here.
  static bool IsAnyElsewhere();
  // Whether a call has h as an argument.
  static bool IsAnyBorrowing(TVMFFIObject* h);
  // Gives those calls a reference.
  static void HoldForAll(TVMFFIObject* h);
  static void ForgetOtherThreads();

 private:
  template <typename F>
  static CallArguments* Find(F&& f);
  bool Borrows(TVMFFIObject* h) const;
  void LeaveFromWithin();

  static inline CallArguments* innermost_ = nullptr;
  // Without the GIL: how many there are, and how many of them are this thread's.
  static inline SharedCount num_detached_;
  static inline thread_local int64_t num_own_detached_ = 0;
  static void CountDetached(int64_t n) {
    num_own_detached_ += n;
    num_detached_.Add(n);
  }
  CallArguments* outer_;
  std::atomic<PyThreadState*> thread_;
};

// Converts a value of the type it is for. False with an error set.
using Setter = bool (*)(PyObject* obj, TVMFFIAny* out, Arguments* args);

// A small table in front of all setters, which answers nearly every time.
struct RecentSetter {
  PyTypeObject* type;
  Setter setter;
};
// Memory per thread is scarce in a library that is loaded late.
inline constexpr size_t kRecentSetters = kFreeThreaded ? 32 : 256;
extern TETHER_PER_THREAD RecentSetter recent_setters[kRecentSetters];

// Without the GIL: counts the classes that died. A table that was filled before the last one is out
// of date, because another class may have come to lie at the address of the dead one.
extern std::atomic<uint64_t> class_epoch;
extern TETHER_PER_THREAD uint64_t recent_setters_epoch;
inline bool AreRecentSettersCurrent() {
  return !kFreeThreaded || recent_setters_epoch == class_epoch.load(std::memory_order_relaxed);
}
inline bool IsRecent(const RecentSetter* recent, PyTypeObject* type) {
  return recent->type == type && AreRecentSettersCurrent();
}

inline RecentSetter* RecentSetterOf(PyTypeObject* type) {
  return &recent_setters[(reinterpret_cast<uintptr_t>(type) >> 5) % kRecentSetters];
}

// For classes of wrappers that need nothing else, and for Python callables.
bool SetWrapper(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetCallable(PyObject* obj, TVMFFIAny* out, Arguments* args);

// Whether `obj` is known to be converted by SetWrapper, so that its handle is all there is to it.
inline bool IsPlainWrapper(PyObject* obj) {
  RecentSetter* recent = RecentSetterOf(Py_TYPE(obj));
  return IsRecent(recent, Py_TYPE(obj)) && recent->setter == SetWrapper;
}

// For a type that is not in that table.
bool ToAnySlow(PyObject* obj, TVMFFIAny* out, Arguments* args);

// The text of a str, borrowed from it. False with an error set.
inline bool Utf8(PyObject* text, TVMFFIByteArray* out) {
  Py_ssize_t size;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data == nullptr) return false;
  *out = TVMFFIByteArray{data, static_cast<size_t>(size)};
  return true;
}

// One borrowed value; temporaries go to `args`. False with an error set.
inline bool ToAny(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  RecentSetter* recent = RecentSetterOf(Py_TYPE(obj));
  return TVM_FFI_PREDICT_TRUE(IsRecent(recent, Py_TYPE(obj))) ? recent->setter(obj, out, args)
                                                              : ToAnySlow(obj, out, args);
}

// The most frequent kind of argument. False if it is of another kind.
inline bool ToCompactInt(PyObject* obj, TVMFFIAny* out) {
  int64_t value;
  if (!PyLong_CheckExact(obj) || !LoadCompactInt(obj, &value)) return false;
  out->type_index = ffi::TypeIndex::kTVMFFIInt;
  out->zero_padding = 0;
  out->v_int64 = value;
  return true;
}

// ToAny with that handled in line.
inline bool ToAnyInline(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return ToCompactInt(obj, out) || ToAny(obj, out, args);
}

inline bool Arguments::Add(PyObject* arg) {
  if (TVM_FFI_PREDICT_FALSE(!ToAnyInline(arg, &data_[size_], this))) return false;
  ++size_;
  return true;
}

inline bool Arguments::AddAll(PyObject* const* args, Py_ssize_t n) {
  if (!Reserve(n)) return false;
  TVMFFIAny* out = data_;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (ToCompactInt(args[i], out + i)) continue;
    size_ = static_cast<int32_t>(i);  // what is there so far must not go away meanwhile
    if (TVM_FFI_PREDICT_FALSE(!ToAny(args[i], out + i, this))) return false;
  }
  size_ = static_cast<int32_t>(n);
  return true;
}

// The object of a wrapper. With the GIL it is borrowed, and TakeHandle sees to the call that did;
// without it another thread may move it away at any time, so `args` gets a reference.
inline bool StoreWrapper(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  TVMFFIObject* h = kFreeThreaded ? HoldHandle(AsWrapper(obj)) : UseHandle(AsWrapper(obj));
  if (TVM_FFI_PREDICT_FALSE(h == nullptr)) return false;
  tie::StoreObject(h, out);
  if (kFreeThreaded) args->Keep(h);
  return true;
}

// One owned value. False with an error set. `nested_in`: of a container that is built for a call,
// which learns what the value says about the call's context.
bool ToOwnedAny(PyObject* obj, ffi::Any* out, Arguments* nested_in = nullptr);
// The converted elements of an iterable; `inside` learns what they say about the call's context.
// False with an error set; throws what C++ throws.
bool ArrayFromItems(PyObject* items, ffi::Array<ffi::Any>* out, Arguments* inside);

// ---- Any -> Python ----

// `api`: tensors become tensors of that framework, and containers will hand out such tensors.

// Everything that has a conversion of its own; the inline functions below come first.
PyObject* FromOwnedAnySlow(const TVMFFIAny& value, const DLPackExchangeAPI* api);
PyObject* FromBorrowedAnySlow(const TVMFFIAny& value, const DLPackExchangeAPI* api);

// Takes over an owned value. NULL with an error set.
inline PyObject* FromOwnedAny(const TVMFFIAny& value, const DLPackExchangeAPI* api = nullptr) {
  if (value.type_index >= ffi::TypeIndex::kTVMFFIDynObjectBegin) return WrapOwned(value.v_obj);
  if (value.type_index == ffi::TypeIndex::kTVMFFIInt) return PyLong_FromLongLong(value.v_int64);
  return FromOwnedAnySlow(value, api);
}
// A value somebody else owns: arguments of a callback, elements of a container.
inline PyObject* FromBorrowedAny(const TVMFFIAny& value, const DLPackExchangeAPI* api = nullptr) {
  if (value.type_index >= ffi::TypeIndex::kTVMFFIDynObjectBegin) return WrapBorrowed(value.v_obj);
  if (value.type_index == ffi::TypeIndex::kTVMFFIInt) return PyLong_FromLongLong(value.v_int64);
  return FromBorrowedAnySlow(value, api);
}

// ---- class String ----

// The text of a string object, whose reference it takes over. NULL with an error set.
PyObject* FromText(TVMFFIObject* h);
bool IsText(PyObject* obj);
// The string object that a String came with, borrowed, or NULL: ask for its cached object.
TVMFFIObject* HeldString(PyObject* obj);
int InitText(PyObject* module);

// ---- functions ----

void InitFunctionWrapper(FunctionWrapper* w);
// Sets what a registration's metadata says about a function.
void ApplyMetadata(PyObject* function, const TVMFFIByteArray& metadata);
// As TVMFFIFunctionCall does, without the detour through the library.
inline int CallDirectly(TVMFFIObject* func, Arguments* args, TVMFFIAny* result) {
  return TVMFFIFunctionGetCellPtr(func)->safe_call(func, args->data(), args->size(), result);
}
// The Python callable inside a function made by this frontend, borrowed, or NULL.
PyObject* CallableOf(TVMFFIObject* function);
// A function object around a Python callable. NULL object with an error set.
ffi::Function MakeCallback(PyObject* callable, const DLPackExchangeAPI* api = nullptr);
PyObject* InitHandleByConstructor(PyObject* self, PyObject* const* args, Py_ssize_t nargs);

// ---- errors ----

// Raises in Python what a failed call left behind. Always returns NULL.
PyObject* RaiseFromCall(int code);
// The pending Python exception as an FFI error, which is then raised in this thread's slot.
void RaiseToCaller();
// An FFI error for an exception object that is not being raised.
ffi::Error ErrorFromException(PyObject* exc);
// The exception that a raised one carries through C++, borrowed, or NULL.
PyObject* ExceptionIn(TVMFFIObject* error);

// Whether an exception left Python for C++ in this thread and is not known to have ended. A call
// that succeeds looks here, in three instructions, and then asks SettleDepartures() what C++ keeps.
__attribute__((tls_model("initial-exec"))) inline thread_local bool any_departed = false;
// `arriving`: the error that the call ends with, which is not kept.
void SettleDepartures(TVMFFIObject* arriving = nullptr);
TVM_FFI_INLINE void AfterSuccess() {
  if (TVM_FFI_PREDICT_FALSE(any_departed)) SettleDepartures();
}
// At a collection: exceptions that C++ alone holds need no frames.
void ForgetUnusedFrames();

// Runs f, turning C++ exceptions into Python ones.
template <typename F>
PyObject* Guarded(F&& f) {
  try {
    return f();
  } catch (const ffi::Error& error) {
    // Raised below, where the C++ exception has let go of the error: then nobody keeps it.
    TVMFFIErrorSetRaised(ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(error));
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
#ifdef __GLIBCXX__
  } catch (abi::__forced_unwind&) {  // a thread that ends itself is no exception
    throw;
#endif
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, ffi::tether::kUnknownException);
    return nullptr;
  }
  return RaiseFromCall(-1);
}

int InitFunctionType(PyObject* module);
int InitConstructors(PyObject* module);
int InitErrorType(PyObject* module);
int InitFieldTypes(PyObject* module);
int InitContainerTypes(PyObject* module);
int InitReflection(PyObject* module);
int InitPyClass(PyObject* module);
int InitTypeConverter(PyObject* module);

// ---- schemas (type_converter.cc) ----

// Conversion for a field setter, from any thread; `converter` is a _TypeConverter.
int ConvertForField(void* converter, const TVMFFIAny* in, TVMFFIAny* out);
// Whether a _TypeConverter gives back every value of that type as it is; kTVMFFIAny: every value.
bool KeepsValuesOf(PyObject* converter, int32_t type_index);

// A type of the module deriving from `base`. Borrowed by types.*, owned by the module.
PyTypeObject* AddType(PyObject* module, PyType_Spec* spec, PyTypeObject* base);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_H_
