// SPDX-License-Identifier: Apache-2.0
// Function: C++ functions that Python calls, and Python callables that C++ calls.
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/call/function.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/data/exchange.h"
#include "python/data/tensor.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// The default of Function.release_gil, from the environment at import.
bool release_gil_default = true;

// ---- Python callables in C++ ----

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

  // ---- most callbacks end with the call they were made for. With the GIL such an object is kept,
  // empty, for the next callback.

  static bool IsSpare(TVMFFIObject* h) {
    if (kFreeThreaded || h->type_index != TypeIndex::kTVMFFIFunction ||
        TVMFFIFunctionGetCellPtr(h)->safe_call != Call) {
      return false;
    }
    // Nobody else has it, and there is no wrapper, not even a dormant one.
    if (tie::CountWord::LoadAcquire(&h->combined_ref_count) !=
        ffi::details::kCombinedRefCountBothOne) {
      return false;
    }
    tie::TieSlot* slot = Engine::FindSlot(h);
    return slot != nullptr && slot->word.load(std::memory_order_relaxed) == 0;
  }
  static bool Recycle(TVMFFIObject* h) {
    if (!IsSpare(h) || num_spare_ == kMaxSpare) return false;
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
      // What C++ lends ends with the call, also where Python kept it.
      if (args[made].type_index == TypeIndex::kTVMFFIDLTensorPtr) EndView(arg);
      Py_DECREF(arg);
    }
    return done;
  }

  // As PyObject_Vectorcall does it, which looks up the thread and sees to it that a callee returns
  // either a value or an error. Functions written in Python do, and are nearly all there is.
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

}  // namespace

bool SetCallable(PyObject* callable, TVMFFIAny* out, Arguments* args) {
  TVMFFIObject* h = PyCallback::Reuse(callable);
  if (TVM_FFI_PREDICT_FALSE(h == nullptr)) h = NewCallback(callable);
  if (TVM_FFI_PREDICT_FALSE(h == nullptr)) return false;
  tie::StoreObject(h, out);
  args->Keep(h);
  return true;
}

// ---- calls ----

namespace {

int CallWithoutGIL(TVMFFIObject* func, CallArguments* args, TVMFFIAny* result) {
  UnwindStop stop;
  args->BeginDetached();
  PyThreadState* state = SaveThread();
  args->SetThread(state);
  int code = CallDirectly(func, args, result);
  RestoreThread(state);
  args->EndDetached();
  return code;
}

// A function that keeps the GIL has its arguments to itself. Without one their critical sections
// give it that, for the first two, which is what a change of a container needs. The library's walks
// lock one object after the other (core/object_lock.h), and would have to wait for themselves.
int CallKeepingGIL(TVMFFIObject* func, Arguments* args, TVMFFIAny* result, PyObject* const* objects,
                   Py_ssize_t nargs, bool walks) {
  if (kFreeThreaded && !walks && nargs > 0 && IsWrapper(objects[0])) {
    bool two = nargs > 1 && IsWrapper(objects[1]);
    CriticalSection2 sections(objects[0], objects[two ? 1 : 0]);
    return CallDirectly(func, args, result);
  }
  return CallDirectly(func, args, result);
}

// The stream and the tensor allocator that the arguments of a call ask for, while it runs.
class CallEnvironment {
 public:
  explicit CallEnvironment(const CallContext& context) : context_(context) {}
  // Both: false with an error set.
  bool Enter() {
    if (context_.device_type != -1) {
      int code = TVMFFIEnvSetStream(context_.device_type, context_.device_id, context_.stream,
                                    &previous_stream_);
      if (code != 0) return RaiseFromCall(code) != nullptr;
    }
    if (allocator() == nullptr) return true;
    int code = TVMFFIEnvSetDLPackManagedTensorAllocator(allocator(), 0, &previous_allocator_);
    return code == 0 || RaiseFromCall(code) != nullptr;
  }
  bool Leave() {
    if (context_.device_type != -1 && previous_stream_ != context_.stream &&
        TVMFFIEnvSetStream(context_.device_type, context_.device_id, previous_stream_, nullptr)) {
      PyErr_SetString(PyExc_RuntimeError, "Failed to recover stream");
      return false;
    }
    if (allocator() != nullptr && previous_allocator_ != allocator() &&
        TVMFFIEnvSetDLPackManagedTensorAllocator(previous_allocator_, 0, nullptr)) {
      PyErr_SetString(PyExc_RuntimeError, "Failed to recover DLPack managed tensor allocator");
      return false;
    }
    return true;
  }

 private:
  DLPackManagedTensorAllocator allocator() const {
    return context_.api != nullptr ? context_.api->managed_tensor_allocator : nullptr;
  }
  const CallContext& context_;
  TVMFFIStreamHandle previous_stream_ = nullptr;
  DLPackManagedTensorAllocator previous_allocator_ = nullptr;
};

// A call with tensors of a framework among its arguments.
TVM_FFI_NO_INLINE PyObject* CallInContext(TVMFFIObject* func, PyObject* const* args,
                                          CallArguments* converted, bool release_gil, bool walks) {
  TVMFFIAny result;
  tie::StoreNone(&result);
  CallEnvironment environment(*converted->context());
  if (!environment.Enter()) return nullptr;
  int code = release_gil ? CallWithoutGIL(func, converted, &result)
                         : CallKeepingGIL(func, converted, &result, args, converted->size(), walks);
  bool left = environment.Leave();
  if (code != 0) {
    if (!left) PyErr_Clear();  // the failure of the call says more
    return RaiseFromCall(code);
  }
  if (left) AfterSuccess();
  if (left) {
    return result.type_index == TypeIndex::kTVMFFIDLTensorPtr
               ? FromTensorResult(static_cast<DLTensor*>(result.v_ptr), args, converted)
               : FromOwnedAny(result, converted->context()->api);
  }
  ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(&result).reset();
  return nullptr;
}

// Calls and converts; `release_gil` around the C++ part.
TVM_FFI_INLINE PyObject* CallFunction(TVMFFIObject* func, PyObject* const* args, Py_ssize_t nargs,
                                      bool release_gil, bool walks) {
  TVMFFIAny result;
  tie::StoreNone(&result);
  {
    CallArguments converted;
    if (TVM_FFI_PREDICT_FALSE(!converted.AddAll(args, nargs))) return nullptr;
    if (TVM_FFI_PREDICT_FALSE(converted.context() != nullptr)) {
      return CallInContext(func, args, &converted, release_gil, walks);
    }
    int code = release_gil ? CallWithoutGIL(func, &converted, &result)
                           : CallKeepingGIL(func, &converted, &result, args, nargs, walks);
    if (TVM_FFI_PREDICT_FALSE(code != 0)) return RaiseFromCall(code);
    AfterSuccess();
    if (TVM_FFI_PREDICT_FALSE(result.type_index == TypeIndex::kTVMFFIDLTensorPtr)) {
      return FromTensorResult(static_cast<DLTensor*>(result.v_ptr), args, &converted);
    }
    converted.LetGoAfterSuccess();
  }
  return FromOwnedAny(result);
}

PyObject* Vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* w = reinterpret_cast<FunctionWrapper*>(self);
  if (kwnames != nullptr && PyTuple_GET_SIZE(kwnames) != 0) {
    return PyErr_Format(PyExc_TypeError, "__call__() got an unexpected keyword argument %R",
                        PyTuple_GET_ITEM(kwnames, 0));
  }
  TVMFFIObject* func = UseHandle(&w->base);
  if (func == nullptr) return nullptr;
  if (func->type_index != TypeIndex::kTVMFFIFunction) {
    return PyErr_Format(PyExc_TypeError, "%s object does not hold an ffi.Function",
                        Py_TYPE(self)->tp_name);
  }
  return CallFunction(func, args, PyVectorcall_NARGS(nargsf), w->release_gil, w->walks);
}

PyObject* GetReleaseGil(PyObject* self, void*) {
  return PyBool_FromLong(reinterpret_cast<FunctionWrapper*>(self)->release_gil);
}

int SetReleaseGil(PyObject* self, PyObject* value, void*) {
  if (value == nullptr) {
    PyErr_SetString(PyExc_AttributeError, "release_gil cannot be deleted");
    return -1;
  }
  int flag = PyObject_IsTrue(value);
  if (flag < 0) return -1;
  reinterpret_cast<FunctionWrapper*>(self)->release_gil = flag != 0;
  return 0;
}

PyObject* FunctionFromHandle(TVMFFIObjectHandle handle) {
  return WrapOwned(static_cast<TVMFFIObject*>(handle));
}

// Arguments (symbol: int, *, keep_alive_object=None) of the two constructors from symbols.
bool ParseSymbol(PyObject* args, PyObject* kwargs, const char* format, void** symbol,
                 PyObject** keep_alive) {
  static const char* names[] = {"c_symbol", "keep_alive_object", nullptr};
  PyObject* address;
  *keep_alive = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names), &address,
                                   keep_alive)) {
    return false;
  }
  *symbol = PyLong_AsVoidPtr(address);
  if (*symbol == nullptr) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the symbol must not be NULL");
    return false;
  }
  return true;
}

PyObject* FromExternC(PyObject*, PyObject* args, PyObject* kwargs) {
  void* symbol;
  PyObject* keep_alive;
  if (!ParseSymbol(args, kwargs, "O|$O:__from_extern_c__", &symbol, &keep_alive)) return nullptr;
  bool kept = keep_alive != Py_None;
  if (kept) Py_INCREF(keep_alive);
  TVMFFIObjectHandle handle = nullptr;
  int code = TVMFFIFunctionCreate(kept ? keep_alive : nullptr,
                                  reinterpret_cast<TVMFFISafeCallType>(symbol),
                                  kept ? ReleaseFromAnyThread : nullptr, &handle);
  if (code != 0) {
    if (kept) Py_DECREF(keep_alive);
    return RaiseFromCall(code);
  }
  return FunctionFromHandle(handle);
}

// A function in the packed convention of MLIR: five pointers to handle, args, count, result, code.
class MLIRFunction : public ffi::FunctionObj {
 public:
  MLIRFunction(void (*symbol)(void**), PyObject* keep_alive)
      : symbol_(symbol), keep_alive_(Py_XNewRef(keep_alive)) {
    safe_call = Call;
  }
  ~MLIRFunction() {
    if (keep_alive_ != nullptr) ReleaseFromAnyThread(keep_alive_);
  }

 private:
  static int Call(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
    auto* self = static_cast<MLIRFunction*>(static_cast<ffi::Object*>(handle));
    void* no_handle = nullptr;
    int ret_code = 0;
    void* packed[] = {&no_handle, &args, &num_args, &result, &ret_code};
    self->symbol_(packed);
    return ret_code;
  }

  void (*symbol_)(void**);
  PyObject* keep_alive_;
};

PyObject* FromMLIR(PyObject*, PyObject* args, PyObject* kwargs) {
  void* symbol;
  PyObject* keep_alive;
  if (!ParseSymbol(args, kwargs, "O|$O:__from_mlir_packed_safe_call__", &symbol, &keep_alive)) {
    return nullptr;
  }
  return Guarded([&] {
    auto func = ffi::make_object<MLIRFunction>(reinterpret_cast<void (*)(void**)>(symbol),
                                               keep_alive != Py_None ? keep_alive : nullptr);
    return FunctionFromHandle(
        ffi::details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(func)));
  });
}

PyMethodDef function_methods[] = {
    {"__from_extern_c__", EntryOfAnyKind<FromExternC>(), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "A function from the address of a C function of the safe-call convention."},
    {"__from_mlir_packed_safe_call__", EntryOfAnyKind<FromMLIR>(),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "A function from the address of a C function of MLIR's packed convention."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef function_getset[] = {
    {"release_gil", Entry<GetReleaseGil>, Entry<SetReleaseGil>,
     "Whether other Python threads run during a call; turn it off for short functions.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef function_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(FunctionWrapper, dict), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionWrapper, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot function_slots[] = {
    {Py_tp_doc, const_cast<char*>("A function that any language may have made.\n\n"
                                  ">>> import tvm_ffi\n"
                                  ">>> tvm_ffi.convert(lambda x: x + 1)(1)\n"
                                  "2\n")},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_methods, function_methods},
    {Py_tp_getset, function_getset},
    {Py_tp_members, function_members},
    {0, nullptr}};

PyType_Spec function_spec = {"tvm_ffi.core.Function", sizeof(FunctionWrapper), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
                             function_slots};

// ---- an argument to be moved ----

struct RValueRefObject {
  PyObject_HEAD PyObject* obj;
};

int InitRValueRef(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"obj", nullptr};
  PyObject* obj;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(names), &obj)) return -1;
  Py_XSETREF(reinterpret_cast<RValueRefObject*>(self)->obj, Py_NewRef(obj));
  return 0;
}

int TraverseRValueRef(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<RValueRefObject*>(self)->obj);
  return 0;
}

int ClearRValueRef(PyObject* self) {
  Py_CLEAR(reinterpret_cast<RValueRefObject*>(self)->obj);
  return 0;
}

void DeallocRValueRef(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  ClearRValueRef(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef rvalue_members[] = {
    {"obj", T_OBJECT, offsetof(RValueRefObject, obj), 0, "The wrapper whose object is given away."},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot rvalue_slots[] = {
    {Py_tp_doc, const_cast<char*>("An argument whose object the callee may take over.")},
    {Py_tp_init, Slot<InitRValueRef>()},
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseRValueRef)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearRValueRef)},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocRValueRef)},
    {Py_tp_members, rvalue_members},
    {0, nullptr}};

PyType_Spec rvalue_spec = {"tvm_ffi.core.ObjectRValueRef", sizeof(RValueRefObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           rvalue_slots};

// ---- module functions ----

// What a registration says about a new function in its metadata, a JSON object: "release_gil" is
// the first value of the attribute of that name.
void ReadMetadata(PyObject* function, std::string_view metadata) {
  constexpr std::string_view kKey = "\"release_gil\"";
  size_t at = metadata.find(kKey);
  if (at == std::string_view::npos) return;
  at = metadata.find_first_not_of(" \t\n", at + kKey.size());
  if (at == std::string_view::npos || metadata[at] != ':') return;  // somebody's value
  at = metadata.find_first_not_of(" \t\n", at + 1);
  if (at == std::string_view::npos) return;
  bool release = metadata[at] != 'f' && metadata[at] != '0';
  reinterpret_cast<FunctionWrapper*>(function)->release_gil = release;
}

// What the library itself does to its arguments keeps the GIL: it looks into objects that other
// Python threads may change. Not so modules, which run code of others, and that may wait for a
// thread that wants the GIL.
bool LooksIntoArguments(std::string_view name) {
  return name.substr(0, 4) == "ffi." && name.substr(4, 6) != "Module";
}

bool WalksThroughArguments(std::string_view name) {
  for (std::string_view walk :
       {"DeepCopy", "GetFirstStructuralMismatch", "Recursive", "ReprPrint", "StructuralEqual",
        "StructuralHash", "StructuralKey", "StructuralWalk", "ToJSONGraph", "json.Stringify"}) {
    if (name.substr(4, walk.size()) == walk) return true;
  }
  return false;
}

// The wrapper of a global function; a new one starts as its registration says.
PyObject* WrapGlobal(TVMFFIObject* h, PyObject* name) {
  static const auto* get_metadata =
      new ffi::Function(ffi::Function::GetGlobalRequired("ffi.GetGlobalFuncMetadata"));
  tie::TieSlot* slot = Engine::FindSlot(h);
  bool is_new = slot == nullptr || slot->word.load(std::memory_order_relaxed) == 0;
  Ref function = Ref::Steal(WrapOwned(h));
  if (!function || !is_new || !PyObject_TypeCheck(function.get(), types.function)) {
    return function.release();
  }
  return Guarded([&]() -> PyObject* {
    TVMFFIByteArray bytes;
    if (!Utf8(name, &bytes)) return nullptr;
    if (LooksIntoArguments({bytes.data, bytes.size})) {
      auto* w = reinterpret_cast<FunctionWrapper*>(function.get());
      w->release_gil = false;
      w->walks = WalksThroughArguments({bytes.data, bytes.size});
    }
    auto metadata = (*get_metadata)(ffi::String(bytes.data, bytes.size)).cast<ffi::String>();
    ReadMetadata(function.get(), std::string_view(metadata.data(), metadata.size()));
    return function.release();
  });
}

PyObject* GetGlobalFunc(PyObject*, PyObject* args) {
  PyObject* name;
  int allow_missing = 0;
  if (!PyArg_ParseTuple(args, "U|p", &name, &allow_missing)) return nullptr;
  TVMFFIByteArray bytes;
  if (!Utf8(name, &bytes)) return nullptr;
  TVMFFIObjectHandle handle = nullptr;
  if (int code = TVMFFIFunctionGetGlobal(&bytes, &handle)) return RaiseFromCall(code);
  if (handle != nullptr) {
    // Functions of C++ stay registered; one made in Python may be removed and must then die.
    bool stays = CallableOf(static_cast<TVMFFIObject*>(handle)) == nullptr;
    PyObject* function = WrapGlobal(static_cast<TVMFFIObject*>(handle), name);
    if (stays && function != nullptr) ShareForGood(function);
    return function;
  }
  if (allow_missing) Py_RETURN_NONE;
  return PyErr_Format(PyExc_ValueError, "Cannot find global function %U", name);
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
  return Guarded([&] {
    return FunctionFromHandle(
        ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(MakeCallback(callable, api)));
  });
}

PyObject* RegisterGlobalFunc(PyObject* module, PyObject* args) {
  PyObject* name;
  PyObject* func;
  int override = 0;
  if (!PyArg_ParseTuple(args, "UO|p", &name, &func, &override)) return nullptr;
  TVMFFIByteArray bytes;
  if (!Utf8(name, &bytes)) return nullptr;
  Ref made;
  if (PyObject_TypeCheck(func, types.function)) {
    made = Ref::Borrow(func);
  } else {
    Ref one = Ref::Steal(PyTuple_Pack(1, func));
    made = one ? Ref::Steal(ConvertToFunc(module, one.get())) : Ref();
  }
  if (!made) return nullptr;
  Using function(AsWrapper(made.get()));
  if (function.get() == nullptr) return nullptr;
  if (int code = TVMFFIFunctionSetGlobal(&bytes, function.get(), override)) {
    return RaiseFromCall(code);
  }
  return made.release();
}

PyMethodDef function_functions[] = {
    {"_get_global_func", Entry<GetGlobalFunc>, METH_VARARGS, nullptr},
    {"_register_global_func", Entry<RegisterGlobalFunc>, METH_VARARGS, nullptr},
    {"_convert_to_ffi_func", Entry<ConvertToFunc>, METH_VARARGS,
     "A Function around a Python callable."},
    {nullptr, nullptr, 0, nullptr}};

PyObject* GetHeldObject(PyObject* self, PyObject*) {
  Using object(AsWrapper(self));
  TVMFFIObject* h = object.get();
  if (h == nullptr) return nullptr;
  if (h->type_index != TypeIndex::kTVMFFIOpaquePyObject) {
    return PyErr_Format(PyExc_TypeError, "%s object does not hold a Python object",
                        Py_TYPE(self)->tp_name);
  }
  return Py_NewRef(static_cast<PyObject*>(TVMFFIOpaqueObjectGetCellPtr(h)->handle));
}

PyMethodDef opaque_methods[] = {
    {"pyobject", Entry<GetHeldObject>, METH_NOARGS, "The Python object that is held."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot opaque_slots[] = {
    {Py_tp_doc, const_cast<char*>("A Python object that C++ holds without looking inside.")},
    {Py_tp_methods, opaque_methods},
    {0, nullptr}};

PyType_Spec opaque_spec = {"tvm_ffi.core.OpaquePyObject", sizeof(Wrapper), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, opaque_slots};

}  // namespace

void ApplyMetadata(PyObject* function, const TVMFFIByteArray& metadata) {
  if (!PyObject_TypeCheck(function, types.function)) return;
  ReadMetadata(function, std::string_view(metadata.data, metadata.size));
}

void InitFunctionWrapper(FunctionWrapper* w) {
  w->vectorcall = Entry<Vectorcall>;
  w->release_gil = release_gil_default;
}

PyObject* InitHandleByConstructor(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs < 1 || !PyObject_TypeCheck(args[0], types.function)) {
    return PyErr_Format(PyExc_TypeError,
                        "__init_handle_by_constructor__ expects an ffi.Function first");
  }
  Wrapper* w = AsWrapper(self);
  ffi::ObjectPtr<ffi::Object> before = TakeBefore(w);
  TVMFFIObject* func = UseHandle(AsWrapper(args[0]));
  if (func == nullptr) return nullptr;
  TVMFFIAny result;
  tie::StoreNone(&result);
  {
    CallArguments converted;
    if (!converted.AddAll(args + 1, nargs - 1)) return nullptr;
    if (int code = TVMFFIFunctionCall(func, converted.data(), converted.size(), &result)) {
      return RaiseFromCall(code);
    }
  }
  if (result.type_index < TypeIndex::kTVMFFIStaticObjectBegin) {
    return PyErr_Format(PyExc_TypeError, "the constructor of %s did not return an object",
                        Py_TYPE(self)->tp_name);
  }
  if (!BindNew(w, result.v_obj)) return nullptr;
  Py_RETURN_NONE;
}

int InitFunctionType(PyObject* module) {
  const char* setting = std::getenv("TVM_FFI_RELEASE_GIL_BY_DEFAULT");
  release_gil_default = setting == nullptr || std::atoi(setting) != 0;
  types.rvalue_ref = AddType(module, &rvalue_spec, nullptr);
  types.opaque = AddType(module, &opaque_spec, types.object);
  types.function = AddType(module, &function_spec, types.object);
  if (types.function == nullptr || types.opaque == nullptr || types.rvalue_ref == nullptr)
    return -1;
  SetClassOfIndex(TypeIndex::kTVMFFIFunction, types.function);
  SetClassOfIndex(TypeIndex::kTVMFFIOpaquePyObject, types.opaque);
  return PyModule_AddFunctions(module, function_functions);
}

}  // namespace tether_py
