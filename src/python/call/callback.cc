// SPDX-License-Identifier: Apache-2.0
// Python callables that C++ calls.
//
// Shared state:
//   spare_              the GIL; in a free-threaded build there is none (IsRecyclable)
//   python_vectorcall   set at import
#include "python/call/callback.h"
#include "python/base/entry.h"

#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/convert/exceptions.h"
#include "python/data/exchange_api.h"
#include "python/data/tensor.h"
#include "python/wrap/edges.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// How functions written in Python are called.
vectorcallfunc python_vectorcall = nullptr;

bool LearnVectorcall() {
  Ref globals = Ref::Steal(PyDict_New());
  Ref code = Ref::Steal(reinterpret_cast<PyObject*>(PyCode_NewEmpty("", "", 1)));
  if (!globals || !code) return false;
  Ref function = Ref::Steal(PyFunction_New(code.get(), globals.get()));
  if (!function) return false;
  python_vectorcall = reinterpret_cast<PyFunctionObject*>(function.get())->vectorcall;
  return true;
}

class PyCallback : public ffi::FunctionObj {
 public:
  PyCallback(PyObject* callable, const DLPackExchangeAPI* api)
      : callable_(Py_NewRef(callable)), api_(api) {
    safe_call = api == nullptr ? Call<false> : Call<true>;
  }
  ~PyCallback() { ReleaseFromAnyThread(callable_); }

  // NULL for a function of another kind.
  static PyCallback* From(TVMFFIObject* h) {
    TVMFFISafeCallType entry = TVMFFIFunctionGetCellPtr(h)->safe_call;
    return entry == Call<false> || entry == Call<true> ? Of(h) : nullptr;
  }
  PyObject* callable() const { return callable_; }
  // Once it is allocated: where the tie is, which then never changes.
  void RememberSlot() {
    tie::TieSlot* slot = Engine::FindSlot(ffi::details::ObjectUnsafe::GetHeader(this));
    if (slot != nullptr) slot_ = slot;
  }

  // Most callbacks end with the call they were made for. In a GIL build such an object is kept,
  // empty, for the next callback: never more of them than were arguments at one time. The link of
  // spare ones is where the callable was.

  static bool IsRecyclable(TVMFFIObject* h) {
    return !kFreeThreaded && TVMFFIFunctionGetCellPtr(h)->safe_call == Call<false> &&
           IsSpareWithSlot(h, Of(h)->slot_);
  }
  static void Recycle(TVMFFIObject* h) {
    PyCallback* self = Of(h);
    PyObject* callable = self->callable_;
    self->next_ = spare_;
    spare_ = self;
    Py_DECREF(callable);  // last: it may run Python code
  }
  static TVMFFIObject* Reuse(PyObject* callable) {
    PyCallback* self = spare_;
    if (TVM_FFI_PREDICT_FALSE(self == nullptr)) return nullptr;
    spare_ = self->next_;
    self->callable_ = Py_NewRef(callable);
    return ffi::details::ObjectUnsafe::GetHeader(self);
  }

 private:
  static PyCallback* Of(TVMFFIObject* h) {
    return ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<PyCallback>(h);
  }

  // The entry. Callbacks of one argument, which are the most frequent ones, have a function of
  // their own: there are no loops in it. kHasApi: tensors arrive as those of a framework.
  template <bool kHasApi>
  static int Call(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
    return num_args == 1 ? CallNumber<kHasApi, 1>(handle, args, 1, result)
                         : CallNumber<kHasApi, -1>(handle, args, num_args, result);
  }

  // kNumber: the number of arguments, if it is known.
  template <bool kHasApi, int32_t kNumber>
  TVM_FFI_NO_INLINE static int CallNumber(void* handle, const TVMFFIAny* args, int32_t num_args,
                                          TVMFFIAny* result) {
    UnwindStop stop;
    constexpr int32_t kInline = kNumber >= 0 ? kNumber : 8;
    if (kNumber >= 0) num_args = kNumber;
    // A thread that may touch Python may do so while the interpreter shuts down, too.
    PyThreadState* thread = AttachedState();
    if (TVM_FFI_PREDICT_FALSE(thread == nullptr || HasErrorSet(thread) || IsNestedDeeply(thread))) {
      return CallApart<kHasApi>(handle, args, num_args, result);
    }
    auto* self = static_cast<PyCallback*>(static_cast<ffi::Object*>(handle));
    if (kNumber < 0 && TVM_FFI_PREDICT_FALSE(num_args > kInline)) {
      return self->InvokeOnHeap<kHasApi>(args, num_args, result);
    }
    // One cell in front is the callee's to use, which spares bound methods a copy.
    PyObject* stack[kInline + 1];
    return self->InvokeOn<kHasApi>(stack + 1, args, num_args, result);
  }

  // On a thread that has to be attached first; or where an exception is on its way: CPython drops
  // what a failing frame had while that is set, and the destructors of C++ may call Python; or
  // where there may be little stack left.
  template <bool kHasApi>
  TVM_FFI_NO_INLINE static int CallApart(void* handle, const TVMFFIAny* args, int32_t num_args,
                                         TVMFFIAny* result) {
    GILGuard gil;
    if (!gil) {
      TVMFFIErrorSetRaisedFromCStr("RuntimeError",
                                   "a Python function was called while the interpreter shuts down");
      return -1;
    }
    ErrorAside of_others;
    if (ffi::tether::IsStackLow()) {
      PyErr_SetString(PyExc_RecursionError,
                      "maximum recursion depth exceeded while C++ calls a Python function");
      RaiseToCaller();
      return -1;
    }
    auto* self = static_cast<PyCallback*>(static_cast<ffi::Object*>(handle));
    return self->InvokeOnHeap<kHasApi>(args, num_args, result);
  }

  template <bool kHasApi>
  TVM_FFI_NO_INLINE int InvokeOnHeap(const TVMFFIAny* args, int32_t num_args,
                                     TVMFFIAny* result) const {
    auto* stack = static_cast<PyObject**>(
        PyMem_Malloc((static_cast<size_t>(num_args) + 1) * sizeof(PyObject*)));
    if (stack == nullptr) {
      PyErr_NoMemory();
      RaiseToCaller();
      return -1;
    }
    int code = InvokeOn<kHasApi>(stack + 1, args, num_args, result);
    PyMem_Free(stack);
    return code;
  }

  // What a safe call does, on a stack with room for the arguments.
  template <bool kHasApi>
  TVM_FFI_INLINE int InvokeOn(PyObject** stack, const TVMFFIAny* args, int32_t num_args,
                              TVMFFIAny* result) const {
    int32_t made = 0;
    for (; made < num_args; ++made) {
      stack[made] = ToPython<kHasApi>(args[made]);
      if (TVM_FFI_PREDICT_FALSE(stack[made] == nullptr)) break;
    }
    bool done = made == num_args && CallPython(callable_, stack, args, num_args, result);
    if (TVM_FFI_PREDICT_FALSE(!done)) return Fail(stack, args, made);
    LetGo(stack, args, num_args);
    return 0;
  }

  // False with a Python error set.
  TVM_FFI_INLINE static bool CallPython(PyObject* callable, PyObject* const* stack,
                                        const TVMFFIAny* args, int32_t num_args,
                                        TVMFFIAny* result) {
    PyObject* value = CallHeld(callable, stack, num_args);
    if (TVM_FFI_PREDICT_FALSE(value == nullptr)) return false;
    bool done = StoreResult(value, args, num_args, result);
    Py_DECREF(value);
    return done;
  }

  TVM_FFI_INLINE static void LetGo(PyObject** stack, const TVMFFIAny* args, int32_t num_args) {
    while (num_args > 0) {
      PyObject* arg = stack[--num_args];
      // What C++ lends is valid during the call only, even if Python kept it.
      if (args[num_args].type_index == TypeIndex::kTVMFFIDLTensorPtr) EndView(arg);
      Py_DECREF(arg);
    }
  }

  // With a Python error set; `made` arguments exist. Not inlined: rarely needed.
  TVM_FFI_NO_INLINE static int Fail(PyObject** stack, const TVMFFIAny* args, int32_t made) {
    LetGo(stack, args, made);
    RaiseToCaller();
    return -1;
  }

  // The callable may drop the last reference to itself, so something has to hold it. Nearly all
  // callables are functions written in Python, and from 3.11 on the frame of such a function holds
  // it. Nor do these need PyObject_Vectorcall, which looks up the thread and checks that the callee
  // returned either a value or an error.
  static PyObject* CallHeld(PyObject* callable, PyObject* const* args, int32_t num_args) {
    size_t nargsf = static_cast<size_t>(num_args) | PY_VECTORCALL_ARGUMENTS_OFFSET;
    constexpr bool kFrameHolds = PY_VERSION_HEX >= 0x030B0000 && !kFreeThreaded;
    bool is_written_in_python =
        PyFunction_Check(callable) &&
        reinterpret_cast<PyFunctionObject*>(callable)->vectorcall == python_vectorcall;
    if (kFrameHolds && TVM_FFI_PREDICT_TRUE(is_written_in_python)) {
      return python_vectorcall(callable, args, nargsf, nullptr);
    }
    Py_INCREF(callable);
    PyObject* value = is_written_in_python ? python_vectorcall(callable, args, nargsf, nullptr)
                                           : PyObject_Vectorcall(callable, args, nargsf, nullptr);
    Py_DECREF(callable);
    return value;
  }

  static PyObject* ToFramework(const TVMFFIAny& arg, const DLPackExchangeAPI* api) {
    if (arg.type_index != TypeIndex::kTVMFFITensor) return FromArgument(arg, api);
    Engine::AddStrong(arg.v_obj);
    return FromTensorStrict(arg.v_obj, api);
  }

  template <bool kHasApi>
  PyObject* ToPython(const TVMFFIAny& arg) const {
    return kHasApi ? Entry<ToFramework>(arg, api_) : FromArgument(arg);
  }

  TVM_FFI_INLINE static bool StoreResult(PyObject* value, const TVMFFIAny* args, int32_t num_args,
                                         TVMFFIAny* result) {
    if (!IsPlainWrapper(value)) return Entry<StoreAnyResult>(value, args, num_args, result);
    TVMFFIObject* h = HoldHandle(AsWrapper(value));
    if (TVM_FFI_PREDICT_FALSE(h == nullptr)) return false;
    tie::StoreObject(h, result);
    return true;
  }

  // Whether the caller lends that tensor itself: then it may have it back.
  static bool IsArgument(const DLTensor* tensor, const TVMFFIAny* args, int32_t num_args) {
    for (int32_t i = 0; i < num_args; ++i) {
      if (args[i].type_index == TypeIndex::kTVMFFIDLTensorPtr && args[i].v_ptr == tensor) {
        return true;
      }
    }
    return false;
  }

  TVM_FFI_NO_INLINE static bool StoreAnyResult(PyObject* value, const TVMFFIAny* args,
                                               int32_t num_args, TVMFFIAny* result) {
    Conversion owned;
    TVMFFIAny view;
    if (!ToAnyInline(value, &view, &owned)) return false;
    if (view.type_index >= TypeIndex::kTVMFFIStaticObjectBegin) {
      Engine::AddStrong(view.v_obj);
      *result = view;
      return true;
    }
    if (TVM_FFI_PREDICT_FALSE(view.type_index == TypeIndex::kTVMFFIDLTensorPtr) &&
        !IsArgument(static_cast<DLTensor*>(view.v_ptr), args, num_args)) {
      return RefuseLent() != nullptr;
    }
    // What a view borrows, such as raw text and moved objects, is made a value of its own.
    if (int code = TVMFFIAnyViewToOwnedAny(&view, result)) {
      RaiseFromCall(code);
      return false;
    }
    return true;
  }

  static inline PyCallback* spare_ = nullptr;
  // Of an object that cannot be recycled.
  static inline const tie::TieSlot no_slot_ = {{tie::kInactive}};

  union {
    PyObject* callable_;
    PyCallback* next_;  // of a spare one
  };
  const DLPackExchangeAPI* api_;  // of Call<true>
  const tie::TieSlot* slot_ = &no_slot_;
};

}  // namespace

PyObject* CallableOf(TVMFFIObject* function) {
  PyCallback* callback = PyCallback::From(function);
  return callback != nullptr ? callback->callable() : nullptr;
}

bool RecycleCallback(TVMFFIObject* function) {
  if (!PyCallback::IsRecyclable(function)) return false;
  PyCallback::Recycle(function);
  return true;
}

void DropSpareCallbacks() {
  while (TVMFFIObject* h = PyCallback::Reuse(Py_None)) Engine::DropStrong(h);
}

void LetGoOfKept(CallArguments* args) {
  TVMFFIObject* only = args->OnlyKept();
  if (only == nullptr) return args->LetGoOfAll();
  if (only->type_index == TypeIndex::kTVMFFIFunction && PyCallback::IsRecyclable(only)) {
    args->ForgetOnlyKept();
    return PyCallback::Recycle(only);
  }
  if (only->type_index == TypeIndex::kTVMFFITensor) return args->LetGoOfAll();
  args->ForgetOnlyKept();
  Engine::DropStrong(only);
}

ffi::Function MakeCallback(PyObject* callable, const DLPackExchangeAPI* api) {
  ffi::ObjectPtr<PyCallback> callback = ffi::make_object<PyCallback>(callable, api);
  callback->RememberSlot();
  return ffi::Function(ffi::ObjectPtr<ffi::FunctionObj>(std::move(callback)));
}

PyObject* WrapCallable(PyObject* callable, const DLPackExchangeAPI* api) {
  return Guarded([&] {
    return WrapOwned(
        ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(MakeCallback(callable, api)));
  });
}

namespace {

// Takes over the reference.
inline bool SetCallback(TVMFFIObject* h, TVMFFIAny* out, Arguments* args) {
  out->type_index = TypeIndex::kTVMFFIFunction;
  out->zero_padding = 0;
  out->v_obj = h;
  args->Keep(h);
  return true;
}

// Throws C++ exceptions.
TVM_FFI_NO_INLINE bool SetNewCallback(PyObject* callable, TVMFFIAny* out, Arguments* args) {
  return SetCallback(
      ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(MakeCallback(callable)), out,
      args);
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
  if (TVM_FFI_PREDICT_FALSE(h == nullptr)) return SetNewCallback(callable, out, args);
  return SetCallback(h, out, args);
}

int InitCallbacks(PyObject* module) {
  return LearnVectorcall() ? PyModule_AddFunctions(module, callback_functions) : -1;
}

}  // namespace tether_py
