// SPDX-License-Identifier: Apache-2.0
// A call of a C++ function from Python.
//
// Shared state: release_gil_default: set when the extension is loaded, constant afterwards.
#include "python/call/function.h"
#include "python/base/entry.h"

#include <cstdlib>
#include <vector>

#include "python/call/call_environment.h"
#include "python/call/parameters.h"
#include "python/convert/errors.h"
#include "python/data/tensor.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// The default of Function.release_gil, from the environment.
const bool release_gil_default = [] {
  const char* setting = std::getenv("TVM_FFI_RELEASE_GIL_BY_DEFAULT");
  return setting == nullptr || std::atoi(setting) != 0;
}();

// ---- calls ----

TVM_FFI_INLINE int CallWithoutGIL(TVMFFIObject* func, CallArguments* args, TVMFFIAny* result) {
  UnwindStop stop;
  args->BeginDetached();
  PyThreadState* state = SaveThread();
  args->SetThread(state);
  int code = CallDirectly(func, args, result);
  RestoreThread(state);
  args->EndDetached();
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

// Calls and converts; without the GIL around the C++ part if kReleasesGil. `func` was read from the
// wrapper `self` once: it lives until the call is over, even if it leaves the wrapper (TakeHandle).
// kHasSelf: args[0] is a plain wrapper.
template <bool kReleasesGil, bool kHasSelf>
TVM_FFI_INLINE PyObject* CallFunction(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                                      TVMFFIObject* func) {
  // With a GIL there is nothing to lock.
  bool walks = kFreeThreaded && reinterpret_cast<FunctionWrapper*>(self)->walks;
  TVMFFIAny result;
  tie::StoreNone(&result);
  {
    CallArguments converted;
    bool is_complete = kHasSelf && converted.AddSelf(args[0]) && nargs == 1;
    if (!is_complete) {
      if (TVM_FFI_PREDICT_FALSE(!converted.AddAll(args, nargs))) return nullptr;
      if (TVM_FFI_PREDICT_FALSE(converted.context() != nullptr)) {
        return CallFunctionInContext(func, args, &converted, kReleasesGil, walks);
      }
    }
    int code = kReleasesGil ? CallWithoutGIL(func, &converted, &result)
                            : CallKeepingGIL(func, &converted, &result, args, nargs, walks);
    if (TVM_FFI_PREDICT_FALSE(code != 0)) return RaiseFromCall(code, args, nargs);
    AfterSuccess();
    if (TVM_FFI_PREDICT_FALSE(result.type_index == TypeIndex::kTVMFFIDLTensorPtr)) {
      return FromTensorResult(static_cast<DLTensor*>(result.v_ptr), args, &converted);
    }
    converted.LetGoAfterSuccess();
  }
  return FromOwnedAnyInline(result);
}

// The entry of calls of any kind.
template <bool kReleasesGil>
TVM_FFI_INLINE PyObject* CallWithAny(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                                     TVMFFIObject* func) {
  return CallFunction<kReleasesGil, false>(self, args, nargs, func);
}

// The same where the GIL is kept and the first argument is an int: often all are.
PyObject* CallWithInts(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                       TVMFFIObject* func) {
  IntArguments ints;
  if (!ints.Load(args, nargs)) return Entry<CallWithAny<false>>(self, args, nargs, func);
  TVMFFIAny result;
  tie::StoreNone(&result);
  int code = TVMFFIFunctionGetCellPtr(func)->safe_call(func, ints.data(),
                                                       static_cast<int32_t>(nargs), &result);
  if (TVM_FFI_PREDICT_FALSE(code != 0)) return RaiseFromCall(code, args, nargs);
  AfterSuccess();
  return FromOwnedAnyInline(result);
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
template <auto F>
auto EntryOfCall() {
  using DoesNotThrow =
      PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, TVMFFIObject*) noexcept;
  return reinterpret_cast<DoesNotThrow>(Entry<F>);
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

// Apart, so that other calls do not make room for the integers.
TVM_FFI_NO_INLINE PyObject* VectorcallWithInts(PyObject* self, PyObject* const* args,
                                               Py_ssize_t nargs, TVMFFIObject* func) noexcept {
  return EntryOfCall<CallWithInts>()(self, args, nargs, func);
}

template <bool kReleasesGil, bool kHasSelf>
PyObject* Vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  uintptr_t handle = AsWrapper(self)->handle.load(std::memory_order_relaxed);
  auto* func = reinterpret_cast<TVMFFIObject*>(handle);  // if it is usable
  if (TVM_FFI_PREDICT_FALSE(kwnames != nullptr || !tie::IsUsable(handle) ||
                            func->type_index != TypeIndex::kTVMFFIFunction)) {
    return VectorcallSlowly<kReleasesGil>(self, args, nargs, kwnames);
  }
  if (kHasSelf) return CallFunction<kReleasesGil, true>(self, args, nargs, func);
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

bool CallInContext(TVMFFIObject* func, PyObject* const* args, CallArguments* converted,
                   TVMFFIAny* result) {
  return InEnvironment(args, converted, result,
                       [&] { return CallDirectly(func, converted, result); });
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
