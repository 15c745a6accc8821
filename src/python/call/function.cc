// SPDX-License-Identifier: Apache-2.0
// A call of a C++ function from Python.
//
// Shared state: release_gil_default: set when the extension is loaded, constant afterwards.
#include "python/call/function.h"

#include <cstdlib>
#include <vector>

#include "python/base/entry.h"
#include "python/call/call_environment.h"
#include "python/call/callback.h"
#include "python/call/parameters.h"
#include "python/convert/departures.h"
#include "python/convert/errors.h"
#include "python/data/tensor.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// The default of Function.release_gil, from the environment.
const bool release_gil_default = [] {
  const char* setting = std::getenv("TVM_FFI_RELEASE_GIL_BY_DEFAULT");
  return setting == nullptr || std::atoi(setting) != 0;
}();

// ---- calls ----

// What dies in a call that has released the GIL is left for an attached thread. That is this one
// when the call is over, so that what it dropped is gone when it returns. Not with an error on its
// way, which user code could replace.
TVM_FFI_INLINE void LetGoOfWhatDied() {
  Engine::list().Drain();
  DrainReleases();
}

TVM_FFI_INLINE int CallWithoutGIL(TVMFFIObject* func, CallArguments* args, TVMFFIAny* result) {
  UnwindStop stop;
  args->BeginDetached();
  PyThreadState* state = SaveThread();
  args->SetThread(state);
  int code = CallDirectly(func, args, result);
  RestoreThread(state);
  args->EndDetached();
  if (code == 0) LetGoOfWhatDied();
  return code;
}

// A function that keeps the GIL has its arguments to itself. Without a GIL the critical sections of
// the first two arguments give it that, which is all that a change of a container needs. The walks
// of the library lock one object after the other (core/object_lock.h) and would wait for
// themselves.
int CallKeepingGIL(TVMFFIObject* func, Arguments* args, TVMFFIAny* result, PyObject* const* objects,
                   Py_ssize_t nargs, bool walks) {
  if (kFreeThreaded && !walks && nargs > 0 && IsWrapper(objects[0])) {
    bool two = nargs > 1 && IsWrapper(objects[1]);
    CriticalSection2 sections(objects[0], objects[two ? 1 : 0]);
    return CallDirectly(func, args, result);
  }
  return CallDirectly(func, args, result);
}

TVM_FFI_NO_INLINE PyObject* CallFunctionInContext(TVMFFIObject* func, PyObject* const* args,
                                                  CallArguments* converted, bool release_gil,
                                                  bool walks) {
  TVMFFIAny result;
  tie::StoreNone(&result);
  bool done = InEnvironment(args, converted, &result, [&] {
    return release_gil ? CallWithoutGIL(func, converted, &result)
                       : CallKeepingGIL(func, converted, &result, args, converted->size(), walks);
  });
  if (!done) return nullptr;
  return result.type_index == TypeIndex::kTVMFFIDLTensorPtr
             ? FromTensorResult(static_cast<DLTensor*>(result.v_ptr), args, converted)
             : FromOwnedAny(result, converted->context()->api);
}

// For a parameter that is not used: compilers would drop it, and callers could not pass their
// registers through unchanged. Emits nothing.
TVM_FFI_INLINE void KeepParameter(PyObject* parameter) { __asm__ volatile("" : : "r"(parameter)); }

// What is known of the arguments: nothing; the first is a plain wrapper, and its ActiveObject is at
// hand; the same, and there is no other one; the same, and the other one is a small int, at hand.
enum class Known { kNothing, kSelf, kOnlySelf, kSelfAndInt };

template <Known kKnown>
TVM_FFI_INLINE bool Convert(CallArguments* converted, PyObject* const* args, Py_ssize_t nargs,
                            TVMFFIObject* first, int64_t number) {
  if (kKnown == Known::kNothing) return converted->AddAll(args, nargs);
  converted->AddSelf(first);
  if (kKnown == Known::kSelfAndInt) converted->AddInt(number);
  return kKnown != Known::kSelf || converted->AddAllAfterSelf(args, nargs);
}

// What a call returned that has succeeded. The call stays on the list until this is done, but has
// no arguments any more where Python code may run.
TVM_FFI_INLINE PyObject* Finish(const TVMFFIAny& result, PyObject* const* args,
                                CallArguments* converted) {
  AfterSuccess();
  if (result.type_index >= TypeIndex::kTVMFFIDynObjectBegin) {
    LetGoAfterSuccess(converted);
    if (Wrapper* w = Engine::FetchLive(result.v_obj)) {
      Engine::DropStrong(result.v_obj);
      return AsObject(w);
    }
    converted->ForgetArguments();
    return WrapOwnedSlow(result.v_obj);
  }
  if (result.type_index == TypeIndex::kTVMFFIInt) {
    LetGoAfterSuccess(converted);
    return IntFromInt64(result.v_int64);
  }
  if (TVM_FFI_PREDICT_FALSE(result.type_index == TypeIndex::kTVMFFIDLTensorPtr)) {
    return FromTensorResult(static_cast<DLTensor*>(result.v_ptr), args, converted);
  }
  LetGoAfterSuccess(converted);
  converted->ForgetArguments();
  return FromOwnedAnySlow(result, nullptr);
}

// Calls and converts; if kReleasesGil, the C++ part has released the GIL. `func` was read from the
// wrapper `self` once: it lives until the call is over, even if it leaves the wrapper (TakeHandle).
template <bool kReleasesGil, Known kKnown>
TVM_FFI_INLINE PyObject* CallFunction(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                                      TVMFFIObject* func, TVMFFIObject* first = nullptr,
                                      int64_t number = 0) {
  // With a GIL there is nothing to lock.
  bool walks = kFreeThreaded && reinterpret_cast<FunctionWrapper*>(self)->walks;
  KeepParameter(self);
  TVMFFIAny result;
  tie::StoreNone(&result);
  CallArguments converted;
  if (TVM_FFI_PREDICT_FALSE(!Convert<kKnown>(&converted, args, nargs, first, number))) {
    return nullptr;
  }
  constexpr bool kMayHaveTensors = kKnown == Known::kNothing || kKnown == Known::kSelf;
  if (kMayHaveTensors && TVM_FFI_PREDICT_FALSE(converted.context() != nullptr)) {
    return CallFunctionInContext(func, args, &converted, kReleasesGil, walks);
  }
  int code = kReleasesGil ? CallWithoutGIL(func, &converted, &result)
                          : CallKeepingGIL(func, &converted, &result, args, nargs, walks);
  if (TVM_FFI_PREDICT_FALSE(code != 0)) return RaiseFromCall(code, args, nargs);
  return Finish(result, args, &converted);
}

// The entries of calls, by what is known of their arguments.
template <bool kReleasesGil>
TVM_FFI_INLINE PyObject* CallWithAny(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                                     TVMFFIObject* func) {
  return CallFunction<kReleasesGil, Known::kNothing>(self, args, nargs, func);
}
template <bool kReleasesGil>
TVM_FFI_INLINE PyObject* CallWithSelf(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                                      TVMFFIObject* func, TVMFFIObject* first) {
  return CallFunction<kReleasesGil, Known::kSelf>(self, args, nargs, func, first);
}
template <bool kReleasesGil>
TVM_FFI_INLINE PyObject* CallWithOnlySelf(PyObject* self, PyObject* const* args, TVMFFIObject* func,
                                          TVMFFIObject* first) {
  return CallFunction<kReleasesGil, Known::kOnlySelf>(self, args, 1, func, first);
}
template <bool kReleasesGil>
TVM_FFI_INLINE PyObject* CallWithSelfAndInt(PyObject* self, PyObject* const* args,
                                            TVMFFIObject* func, TVMFFIObject* first,
                                            int64_t number) {
  return CallFunction<kReleasesGil, Known::kSelfAndInt>(self, args, 2, func, first, number);
}

// By value, so the caller's result need not live in memory.
TVM_FFI_NO_INLINE PyObject* FromOwnedApart(TVMFFIAny result) {
  return FromOwnedAnySlow(result, nullptr);
}

// The same where the GIL is kept and the first argument is an int: often all are, and so is the
// result.
PyObject* CallWithInts(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                       TVMFFIObject* func) {
  KeepParameter(self);
  IntArguments ints;
  if (!ints.LoadAfterCheck(args, nargs)) return Entry<CallWithAny<false>>(self, args, nargs, func);
  TVMFFIAny result;
  tie::StoreNone(&result);
  int code = CallDirectly(func, ints.data(), static_cast<int32_t>(nargs), &result);
  if (TVM_FFI_PREDICT_FALSE(code != 0)) return RaiseFromCall(code, args, nargs);
  AfterSuccess();
  if (result.type_index == TypeIndex::kTVMFFIInt) return IntFromInt64(result.v_int64);
  if (result.type_index >= TypeIndex::kTVMFFIDynObjectBegin) return WrapOwned(result.v_obj);
  return FromOwnedApart(result);
}

// What errors call the function, or NULL.
PyObject* NameOf(const FunctionWrapper* w) {
  if (w->origin == nullptr) return nullptr;
  return PyTuple_Check(w->origin) ? PyTuple_GET_ITEM(w->origin, 0) : w->origin;
}

// The first part of the text is fixed by the interface.
TVM_FFI_NO_INLINE PyObject* RaiseNoNames(const FunctionWrapper* w, PyObject* kwnames) {
  Ref name = Ref::Borrow(NameOf(w));
  if (!name) name = Ref::Steal(PyUnicode_FromString("this function"));
  if (!name) return nullptr;
  return PyErr_Format(PyExc_TypeError,
                      "__call__() got an unexpected keyword argument %R; the parameters of %U have "
                      "no names, pass the values by position",
                      PyTuple_GET_ITEM(kwnames, 0), name.get());
}

// ---- the entries: a few checks and a jump

// An entry does not throw; the compiler needs to be told, to jump to it.
template <typename... Args>
auto NotThrowing(PyObject* (*entry)(Args...)) {
  return reinterpret_cast<PyObject* (*)(Args...) noexcept>(entry);
}
template <auto F>
auto EntryOfCall() {
  return NotThrowing(Entry<F>);
}

// Whatever is not as usual: keywords, a wrapper that is dormant or empty, no function in it.
template <bool kReleasesGil>
TVM_FFI_NO_INLINE PyObject* VectorcallSlowly(PyObject* self, PyObject* const* args,
                                             Py_ssize_t nargs, PyObject* kwnames) noexcept {
  auto* w = reinterpret_cast<FunctionWrapper*>(self);
  if (kwnames != nullptr && PyTuple_GET_SIZE(kwnames) != 0) return RaiseNoNames(w, kwnames);
  TVMFFIObject* func = UseHandle(&w->base);
  if (func == nullptr) return nullptr;
  if (func->type_index != TypeIndex::kTVMFFIFunction) return RaiseNoFunction(self);
  return EntryOfCall<CallWithAny<kReleasesGil>>()(self, args, nargs, func);
}

// A function of its own, so that other calls do not make room for the integers.
TVM_FFI_NO_INLINE PyObject* VectorcallWithInts(PyObject* self, PyObject* const* args,
                                               Py_ssize_t nargs, TVMFFIObject* func) noexcept {
  return EntryOfCall<CallWithInts>()(self, args, nargs, func);
}

// Methods, whose first argument is a plain wrapper. Those with no other argument, and those with
// one int, have functions of their own, which save fewer registers. A wrapper that is not in use is
// treated as any argument.
template <bool kReleasesGil>
TVM_FFI_NO_INLINE PyObject* VectorcallWithSelf(PyObject* self, PyObject* const* args,
                                               Py_ssize_t nargs, TVMFFIObject* func) noexcept {
  TVMFFIObject* first = ActiveObject(args[0]);
  if (first == nullptr) return EntryOfCall<CallWithAny<kReleasesGil>>()(self, args, nargs, func);
  return EntryOfCall<CallWithSelf<kReleasesGil>>()(self, args, nargs, func, first);
}
template <bool kReleasesGil>
TVM_FFI_NO_INLINE PyObject* VectorcallWithOnlySelf(PyObject* self, PyObject* const* args,
                                                   TVMFFIObject* func) noexcept {
  TVMFFIObject* first = ActiveObject(args[0]);
  if (first == nullptr) return EntryOfCall<CallWithAny<kReleasesGil>>()(self, args, 1, func);
  return EntryOfCall<CallWithOnlySelf<kReleasesGil>>()(self, args, func, first);
}
template <bool kReleasesGil>
TVM_FFI_NO_INLINE PyObject* VectorcallWithSelfAndInt(PyObject* self, PyObject* const* args,
                                                     TVMFFIObject* func) noexcept {
  TVMFFIObject* first = ActiveObject(args[0]);
  int64_t number;
  if (first == nullptr || TVM_FFI_PREDICT_FALSE(!LoadCompactInt(args[1], &number))) {
    return EntryOfCall<CallWithAny<kReleasesGil>>()(self, args, 2, func);
  }
  return EntryOfCall<CallWithSelfAndInt<kReleasesGil>>()(self, args, func, first, number);
}

template <bool kReleasesGil, bool kHasSelf>
PyObject* Vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  // A method has taken the flag out of the number already.
  Py_ssize_t nargs = kHasSelf ? static_cast<Py_ssize_t>(nargsf) : PyVectorcall_NARGS(nargsf);
  uintptr_t handle = AsWrapper(self)->handle.load(std::memory_order_relaxed);
  auto* func = reinterpret_cast<TVMFFIObject*>(handle);  // if it is usable
  if (TVM_FFI_PREDICT_FALSE(kwnames != nullptr || !tie::IsUsable(handle) ||
                            func->type_index != TypeIndex::kTVMFFIFunction)) {
    return VectorcallSlowly<kReleasesGil>(self, args, nargs, kwnames);
  }
  if (kHasSelf && nargs == 1) return VectorcallWithOnlySelf<kReleasesGil>(self, args, func);
  if (kHasSelf && nargs == 2 && PyLong_CheckExact(args[1])) {
    return VectorcallWithSelfAndInt<kReleasesGil>(self, args, func);
  }
  if (kHasSelf) return VectorcallWithSelf<kReleasesGil>(self, args, nargs, func);
  if (!kReleasesGil && nargs > 0 && PyLong_CheckExact(args[0])) {
    return VectorcallWithInts(self, args, nargs, func);
  }
  return EntryOfCall<CallWithAny<kReleasesGil>>()(self, args, nargs, func);
}

vectorcallfunc VectorcallOf(const FunctionWrapper* w) {
  return w->release_gil ? Entry<Vectorcall<true, false>> : Entry<Vectorcall<false, false>>;
}

// Of a function whose parameters have no names.
void SetEntries(FunctionWrapper* w) {
  w->vectorcall = VectorcallOf(w);
  w->call_with_self =
      w->release_gil ? Entry<Vectorcall<true, true>> : Entry<Vectorcall<false, true>>;
}

// ---- named parameters

PyObject* RaiseMisfit(const FunctionWrapper* w, const Misfit& misfit) {
  const char* format = misfit.reason == Misfit::kUnexpected
                           ? "got an unexpected keyword argument %R"
                       : misfit.reason == Misfit::kTwice ? "got multiple values for argument %R"
                                                         : "missing required argument: %R";
  Ref text = Ref::Steal(PyUnicode_FromFormat(format, misfit.name));
  PyObject* name = NameOf(w);
  if (text && name != nullptr) PyErr_Format(PyExc_TypeError, "%U() %U", name, text.get());
  if (text && name == nullptr) PyErr_SetObject(PyExc_TypeError, text.get());
  return nullptr;
}

// A call of a function whose parameters have names.
PyObject* VectorcallNamed(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* w = reinterpret_cast<FunctionWrapper*>(self);
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  bool has_keywords = kwnames != nullptr && PyTuple_GET_SIZE(kwnames) != 0;
  PyObject* names = PyTuple_GET_ITEM(w->parameters, 0);
  PyObject* defaults = PyTuple_GET_ITEM(w->parameters, 1);
  if (!has_keywords && nargs >= PyTuple_GET_SIZE(names)) {
    return VectorcallOf(w)(self, args, nargsf, nullptr);
  }
  std::vector<PyObject*> placed;
  if (Misfit misfit = Place(names, defaults, args, nargs, kwnames, &placed)) {
    return RaiseMisfit(w, misfit);
  }
  return VectorcallOf(w)(self, placed.data(), placed.size(), nullptr);
}

}  // namespace

PyObject* RaiseNoFunction(PyObject* wrapper) {
  return PyErr_Format(PyExc_TypeError, "%s object does not hold an ffi.Function",
                      Py_TYPE(wrapper)->tp_name);
}

void InitFunctionWrapper(FunctionWrapper* w) {
  w->release_gil = release_gil_default;
  SetEntries(w);
}

void SetReleaseGil(FunctionWrapper* w, bool value) {
  CriticalSection section(AsObject(&w->base));
  if (w->release_gil == value) return;  // others may be calling it: what stays is not written
  w->release_gil = value;
  if (w->parameters == nullptr) SetEntries(w);
}

void SetParameters(FunctionWrapper* w, PyObject* parameters) {
  Ref owned = Ref::Steal(parameters);
  CriticalSection section(AsObject(&w->base));
  if (w->parameters != nullptr) return;
  w->parameters = owned.release();
  w->vectorcall = w->call_with_self = Entry<VectorcallNamed>;
}

}  // namespace tether_py
