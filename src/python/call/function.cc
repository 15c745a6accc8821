// SPDX-License-Identifier: Apache-2.0
// Function: C++ functions that Python calls.
//
// Shared state: release_gil_default: set at import, constant afterwards. release_gil of a function
// is a plain flag that any thread may set (FunctionWrapper).
#include "python/call/function.h"
#include "python/base/entry.h"

#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/memory.h>

#include <cstdlib>
#include <vector>

#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/data/tensor.h"
#include "python/wrap/python_hooks.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// The default of Function.release_gil, from the environment at import.
bool release_gil_default = true;

// ---- calls ----

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
    return RaiseFromCall(code, args, converted->size());
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
    if (TVM_FFI_PREDICT_FALSE(code != 0)) return RaiseFromCall(code, args, nargs);
    AfterSuccess();
    if (TVM_FFI_PREDICT_FALSE(result.type_index == TypeIndex::kTVMFFIDLTensorPtr)) {
      return FromTensorResult(static_cast<DLTensor*>(result.v_ptr), args, &converted);
    }
    converted.LetGoAfterSuccess();
  }
  return FromOwnedAnyInline(result);
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

// ---- named parameters

// What errors call the function.
PyObject* NameOf(const FunctionWrapper* w) {
  if (w->origin == nullptr) return nullptr;
  return PyTuple_Check(w->origin) ? PyTuple_GET_ITEM(w->origin, 0) : w->origin;
}

PyObject* RaiseBadCall(const FunctionWrapper* w, const char* format, PyObject* parameter) {
  Ref text = Ref::Steal(PyUnicode_FromFormat(format, parameter));
  PyObject* name = NameOf(w);
  if (text && name != nullptr) PyErr_Format(PyExc_TypeError, "%U() %U", name, text.get());
  if (text && name == nullptr) PyErr_SetObject(PyExc_TypeError, text.get());
  return nullptr;
}

// The place of a name in a tuple of names, or -1.
Py_ssize_t PlaceOf(PyObject* name, PyObject* names) {
  Py_ssize_t count = PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (PyTuple_GET_ITEM(names, i) == name) return i;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) == 0) return i;
  }
  return -1;
}

// A call of a function whose parameters have names: keywords and defaults become positions. Too
// many arguments are left to the function, which knows what to say.
PyObject* VectorcallNamed(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* w = reinterpret_cast<FunctionWrapper*>(self);
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  Py_ssize_t nkw = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  PyObject* names = PyTuple_GET_ITEM(w->parameters, 0);
  PyObject* defaults = PyTuple_GET_ITEM(w->parameters, 1);
  Py_ssize_t count = PyTuple_GET_SIZE(names);
  if (nkw == 0 && nargs >= count) return Vectorcall(self, args, nargsf, nullptr);
  std::vector<PyObject*> placed(args, args + nargs);
  if (nargs < count) placed.resize(count, nullptr);
  for (Py_ssize_t i = 0; i < nkw; ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    Py_ssize_t place = PlaceOf(name, names);
    if (place < 0) return RaiseBadCall(w, "got an unexpected keyword argument %R", name);
    if (placed[place] != nullptr) {
      return RaiseBadCall(w, "got multiple values for argument %R", name);
    }
    placed[place] = args[nargs + i];
  }
  for (Py_ssize_t i = nargs; i < count; ++i) {
    if (placed[i] == nullptr) placed[i] = PyTuple_GET_ITEM(defaults, i);
    if (placed[i] == sentinels.missing) {
      return RaiseBadCall(w, "missing required argument: %R", PyTuple_GET_ITEM(names, i));
    }
  }
  return Vectorcall(self, placed.data(), placed.size(), nullptr);
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

// The closure of these is the name of the attribute.
PyObject* GetDescribed(PyObject* self, void* name) {
  PyObject* dict = reinterpret_cast<FunctionWrapper*>(self)->dict;
  const char* attribute = static_cast<const char*>(name);
  PyObject* set = dict != nullptr ? PyDict_GetItemString(dict, attribute) : nullptr;
  return set != nullptr ? Py_NewRef(set) : Describe(self, attribute);
}

int SetDescribed(PyObject* self, PyObject* value, void* name) {
  Ref dict = Ref::Steal(PyObject_GenericGetDict(self, nullptr));
  if (!dict) return -1;
  const char* attribute = static_cast<const char*>(name);
  return value != nullptr ? PyDict_SetItemString(dict.get(), attribute, value)
                          : PyDict_DelItemString(dict.get(), attribute);
}

PyObject* ReprFunction(PyObject* self) { return Describe(self, "__repr__"); }

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
    {"__name__", Entry<GetDescribed>, Entry<SetDescribed>, nullptr, const_cast<char*>("__name__")},
    {"__qualname__", Entry<GetDescribed>, Entry<SetDescribed>, nullptr,
     const_cast<char*>("__qualname__")},
    {"__text_signature__", Entry<GetDescribed>, Entry<SetDescribed>, nullptr,
     const_cast<char*>("__text_signature__")},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef function_members[] = {
    {"_origin", T_OBJECT, offsetof(FunctionWrapper, origin), READONLY, nullptr},
    {"_parameters", T_OBJECT, offsetof(FunctionWrapper, parameters), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(FunctionWrapper, dict), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionWrapper, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot function_slots[] = {
    {Py_tp_doc, const_cast<char*>("A function that any language may have made.\n\n"
                                  ">>> import tvm_ffi\n"
                                  ">>> tvm_ffi.convert(lambda x: x + 1)(1)\n"
                                  "2\n")},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, Slot<ReprFunction>()},
    {Py_tp_methods, function_methods},
    {Py_tp_getset, function_getset},
    {Py_tp_members, function_members},
    {0, nullptr}};

PyType_Spec function_spec = {"tvm_ffi.core.Function", sizeof(FunctionWrapper), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
                             function_slots};

}  // namespace

PyObject* Describe(PyObject* described, const char* attribute) {
  return PyObject_CallFunction(hooks.describe, "Os", described, attribute);
}

void InitFunctionWrapper(FunctionWrapper* w) {
  w->vectorcall = Entry<Vectorcall>;
  w->release_gil = release_gil_default;
}

void SetParameters(FunctionWrapper* w, PyObject* parameters) {
  Ref owned = Ref::Steal(parameters);
  CriticalSection section(AsObject(&w->base));
  if (w->parameters != nullptr) return;
  w->parameters = owned.release();
  w->vectorcall = Entry<VectorcallNamed>;
}

int InitFunctionType(PyObject* module) {
  const char* setting = std::getenv("TVM_FFI_RELEASE_GIL_BY_DEFAULT");
  release_gil_default = setting == nullptr || std::atoi(setting) != 0;
  types.function = AddType(module, &function_spec, types.object);
  if (types.function == nullptr) return -1;
  SetClassOfIndex(TypeIndex::kTVMFFIFunction, types.function);
  return 0;
}

}  // namespace tether_py
