// SPDX-License-Identifier: Apache-2.0
// Python callables that C++ calls.
//
// Shared state: spare_, num_spare_: with the GIL only; without it they stay empty (Recycle).
#include "python/call/callback.h"
#include "python/base/entry.h"

#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/data/exchange_api.h"
#include "python/data/tensor.h"
#include "python/wrap/edges.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

class PyCallback : public ffi::FunctionObj {
 public:
  PyCallback(PyObject* callable, const DLPackExchangeAPI* api)
      : callable_(Py_NewRef(callable)), api_(api) {
    safe_call = Call;
  }
  ~PyCallback() {
    if (callable_ != nullptr) ReleaseFromAnyThread(callable_);
  }

  static int Call(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
    UnwindStop stop;
    auto* self = static_cast<PyCallback*>(static_cast<ffi::Object*>(handle));
    // A thread that may touch Python may do so while the interpreter shuts down, too.
    if (TVM_FFI_PREDICT_FALSE(!AttachedHere())) return CallDetached(handle, args, num_args, result);
    return self->CallAttached(args, num_args, result);
  }

  PyObject* callable() const { return callable_; }

  // Most callbacks end with the call they were made for. With the GIL such an object is kept,
  // empty, for the next callback.

  static bool Recycle(TVMFFIObject* h) {
    if (kFreeThreaded || num_spare_ == kMaxSpare ||
        TVMFFIFunctionGetCellPtr(h)->safe_call != Call || !IsSpare(h)) {
      return false;
    }
    auto* self = ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<PyCallback>(h);
    PyObject* callable = self->callable_;
    self->callable_ = nullptr;
    spare_[num_spare_++] = self;
    Py_DECREF(callable);  // last: it may run Python code
    return true;
  }
  static TVMFFIObject* Reuse(PyObject* callable) {
    if (num_spare_ == 0) return nullptr;
    PyCallback* self = spare_[--num_spare_];
    self->callable_ = Py_NewRef(callable);
    self->api_ = nullptr;
    return ffi::details::ObjectUnsafe::GetHeader(self);
  }

 private:
  TVM_FFI_NO_INLINE static int CallDetached(void* handle, const TVMFFIAny* args, int32_t num_args,
                                            TVMFFIAny* result) {
    GILGuard gil;
    if (!gil) {
      TVMFFIErrorSetRaisedFromCStr("RuntimeError",
                                   "a Python function was called while the interpreter shuts down");
      return -1;
    }
    return Call(handle, args, num_args, result);
  }

  TVM_FFI_INLINE int CallAttached(const TVMFFIAny* args, int32_t num_args,
                                  TVMFFIAny* result) const {
    constexpr int32_t kInline = 8;
    // One cell in front is the callee's to use, which spares bound methods a copy.
    PyObject* stack[kInline + 1];
    bool done = TVM_FFI_PREDICT_TRUE(num_args <= kInline)
                    ? InvokeOn(stack + 1, args, num_args, result)
                    : InvokeOnHeap(args, num_args, result);
    if (TVM_FFI_PREDICT_TRUE(done)) return 0;
    RaiseToCaller();
    return -1;
  }

  // Both: false with a Python error set.
  TVM_FFI_NO_INLINE bool InvokeOnHeap(const TVMFFIAny* args, int32_t num_args,
                                      TVMFFIAny* result) const {
    auto* stack = static_cast<PyObject**>(
        PyMem_Malloc((static_cast<size_t>(num_args) + 1) * sizeof(PyObject*)));
    if (stack == nullptr) {
      PyErr_NoMemory();
      return false;
    }
    bool done = InvokeOn(stack + 1, args, num_args, result);
    PyMem_Free(stack);
    return done;
  }
  TVM_FFI_INLINE bool InvokeOn(PyObject** stack, const TVMFFIAny* args, int32_t num_args,
                               TVMFFIAny* result) const {
    int32_t made = 0;
    for (; made < num_args; ++made) {
      stack[made] = ToPython(args[made]);
      if (TVM_FFI_PREDICT_FALSE(stack[made] == nullptr)) break;
    }
    bool done = made == num_args && CallPython(callable_, stack, num_args, result);
    while (made > 0) {
      PyObject* arg = stack[--made];
      // What C++ lends is valid during the call only, even if Python kept it.
      if (args[made].type_index == TypeIndex::kTVMFFIDLTensorPtr) EndView(arg);
      Py_DECREF(arg);
    }
    return done;
  }

  // PyObject_Vectorcall looks up the thread and checks that the callee returned either a value or
  // an error. Functions written in Python always do, and nearly all callables are such functions.
  static PyObject* Vectorcall(PyObject* callable, PyObject* const* args, int32_t num_args) {
    size_t nargsf = static_cast<size_t>(num_args) | PY_VECTORCALL_ARGUMENTS_OFFSET;
    if (TVM_FFI_PREDICT_TRUE(PyFunction_Check(callable))) {
      auto* function = reinterpret_cast<PyFunctionObject*>(callable);
      return function->vectorcall(callable, args, nargsf, nullptr);
    }
    return PyObject_Vectorcall(callable, args, nargsf, nullptr);
  }

  TVM_FFI_INLINE static bool CallPython(PyObject* callable, PyObject* const* args, int32_t num_args,
                                        TVMFFIAny* result) {
    Py_INCREF(callable);  // it may drop the last reference to itself
    PyObject* value = Vectorcall(callable, args, num_args);
    Py_DECREF(callable);
    if (TVM_FFI_PREDICT_FALSE(value == nullptr)) return false;
    bool done = StoreResult(value, result);
    Py_DECREF(value);
    return done;
  }

  static PyObject* ToFramework(const TVMFFIAny& arg, const DLPackExchangeAPI* api) {
    if (arg.type_index != TypeIndex::kTVMFFITensor) return FromBorrowedAny(arg, api);
    Engine::AddStrong(arg.v_obj);
    return FromTensorStrict(arg.v_obj, api);
  }

  PyObject* ToPython(const TVMFFIAny& arg) const {
    if (TVM_FFI_PREDICT_TRUE(api_ == nullptr)) return FromBorrowedAny(arg);
    return Entry<ToFramework>(arg, api_);
  }

  TVM_FFI_INLINE static bool StoreResult(PyObject* value, TVMFFIAny* result) {
    if (!IsPlainWrapper(value)) return Entry<StoreAnyResult>(value, result);
    TVMFFIObject* h = HoldHandle(AsWrapper(value));
    if (TVM_FFI_PREDICT_FALSE(h == nullptr)) return false;
    tie::StoreObject(h, result);
    return true;
  }

  TVM_FFI_NO_INLINE static bool StoreAnyResult(PyObject* value, TVMFFIAny* result) {
    Conversion owned;
    TVMFFIAny view;
    if (!ToAnyInline(value, &view, &owned)) return false;
    if (view.type_index >= TypeIndex::kTVMFFIStaticObjectBegin) {
      Engine::AddStrong(view.v_obj);
      *result = view;
      return true;
    }
    // What a view borrows, such as raw text and moved objects, is made a value of its own.
    if (int code = TVMFFIAnyViewToOwnedAny(&view, result)) {
      RaiseFromCall(code);
      return false;
    }
    return true;
  }

  static constexpr int kMaxSpare = 16;
  static inline PyCallback* spare_[kMaxSpare];
  static inline int num_spare_ = 0;

  PyObject* callable_;
  const DLPackExchangeAPI* api_;  // tensors arrive as this framework's
};

}  // namespace

PyObject* CallableOf(TVMFFIObject* function) {
  if (TVMFFIFunctionGetCellPtr(function)->safe_call != PyCallback::Call) return nullptr;
  return ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<PyCallback>(function)->callable();
}

bool RecycleCallback(TVMFFIObject* function) { return PyCallback::Recycle(function); }

ffi::Function MakeCallback(PyObject* callable, const DLPackExchangeAPI* api) {
  return ffi::Function(
      ffi::ObjectPtr<ffi::FunctionObj>(ffi::make_object<PyCallback>(callable, api)));
}

PyObject* WrapCallable(PyObject* callable, const DLPackExchangeAPI* api) {
  return Guarded([&] {
    return WrapOwned(
        ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(MakeCallback(callable, api)));
  });
}

namespace {

// NULL with an error set.
TVM_FFI_NO_INLINE TVMFFIObject* NewCallback(PyObject* callable) {
  TVMFFIObject* h = nullptr;
  Ref done = Ref::Steal(Guarded([&] {
    h = ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(MakeCallback(callable, nullptr));
    return Py_NewRef(Py_None);
  }));
  return h;
}

PyObject* ConvertToFunc(PyObject*, PyObject* args) {
  PyObject* callable;
  PyObject* tensor_cls = Py_None;
  if (!PyArg_ParseTuple(args, "O|O", &callable, &tensor_cls)) return nullptr;
  const DLPackExchangeAPI* api = nullptr;
  if (tensor_cls != Py_None) {
    if (!PyObject_HasAttrString(tensor_cls, "__dlpack_c_exchange_api__")) {
      return PyErr_Format(PyExc_TypeError, "tensor_cls %R must expose __dlpack_c_exchange_api__",
                          tensor_cls);
    }
    api = ExchangeAPIOf(tensor_cls);
    if (api == nullptr) return nullptr;
  }
  return WrapCallable(callable, api);
}

// The Python callable inside a function, or None.
PyObject* CallableIn(PyObject*, PyObject* function) {
  if (!PyObject_TypeCheck(function, types.function)) Py_RETURN_NONE;
  Using used(AsWrapper(function));
  if (used.get() == nullptr) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  PyObject* callable = CallableOf(used.get());
  return Py_NewRef(callable != nullptr ? callable : Py_None);
}

PyMethodDef callback_functions[] = {{"_callable_in", Entry<CallableIn>, METH_O, nullptr},
                                    {"_convert_to_ffi_func", Entry<ConvertToFunc>, METH_VARARGS,
                                     "A Function around a Python callable."},
                                    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool SetCallable(PyObject* callable, TVMFFIAny* out, Arguments* args) {
  TVMFFIObject* h = PyCallback::Reuse(callable);
  if (TVM_FFI_PREDICT_FALSE(h == nullptr)) h = NewCallback(callable);
  if (TVM_FFI_PREDICT_FALSE(h == nullptr)) return false;
  tie::StoreObject(h, out);
  args->Keep(h);
  return true;
}

int InitCallbacks(PyObject* module) { return PyModule_AddFunctions(module, callback_functions); }

}  // namespace tether_py
