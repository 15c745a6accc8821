// SPDX-License-Identifier: Apache-2.0
// The extension module tvm_ffi.core.
//
// Shared state: main_thread: an atomic, set at import and in the child of a fork.
#include <pthread.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include "python/base/abi_constants.h"
#include "python/base/entry.h"
#include "python/call/callback.h"
#include "python/call/function.h"
#include "python/call/metadata.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/data/attribute_cache.h"
#include "python/data/containers.h"
#include "python/data/data_type.h"
#include "python/data/device.h"
#include "python/data/dtype.h"
#include "python/data/exchange.h"
#include "python/data/field_descriptors.h"
#include "python/data/fields.h"
#include "python/data/opaque_object.h"
#include "python/data/python_tensor.h"
#include "python/data/shape.h"
#include "python/data/stream.h"
#include "python/data/tensor.h"
#include "python/data/testing.h"
#include "python/data/text.h"
#include "python/data/travel.h"
#include "python/schema/schema.h"
#include "python/wrap/python_hooks.h"
#include "python/wrap/upper_layers.h"

// libtvm_ffi_testing is linked so that the testing.* functions exist after import.
extern "C" int TVMFFITestingDummyTarget();

namespace tether_py {

constexpr UpperLayers MakeUpperLayers() {
  UpperLayers layers{};
  // convert/
  layers.exception_in = ExceptionIn;
  layers.forget_unused_frames = ForgetUnusedFrames;
  // data/
  layers.memory_owner_of = MemoryOwnerOf;
  layers.recycle_tensor = RecycleTensor;
  layers.install_field_access = InstallFieldAccess;
  layers.forget_class = ForgetInFields;
  // call/
  layers.init_function = InitFunctionWrapper;
  layers.init_handle_by_constructor = InitHandleByConstructor;
  layers.recycle_callback = RecycleCallback;
  layers.drop_spares = [] {
    DropSpareCallbacks();
    DropSpareTensors();
  };
  layers.callable_of = CallableOf;
  // kinds/
  layers.find_setter = FindSetter;
  return layers;
}
const UpperLayers upper_layers = MakeUpperLayers();

namespace {

// The thread that handles signals.
std::atomic<unsigned long> main_thread{0};

// For C++ that runs long, from any thread. -1 with a Python error set.
int CheckSignals() {
  // Elsewhere there is nothing to do, and no reason to wait for the GIL.
  if (PyThread_get_thread_ident() != main_thread.load(std::memory_order_relaxed)) return 0;
  UnwindStop stop;
  GILGuard gil;
  // Handlers are Python code. They wait while an exception is on its way.
  return gil && !PyErr_Occurred() ? PyErr_CheckSignals() : 0;
}

// The library needs no other entry: this one acquires the GIL itself.
int RegisterInterpreter() {
  Ref threading = Ref::Steal(PyImport_ImportModule("threading"));
  if (!threading) return -1;
  Ref thread = Ref::Steal(PyObject_CallMethod(threading.get(), "main_thread", nullptr));
  Ref ident = thread ? Ref::Steal(PyObject_GetAttrString(thread.get(), "ident")) : Ref();
  if (!ident) return -1;
  unsigned long value = PyLong_AsUnsignedLong(ident.get());
  if (PyErr_Occurred() != nullptr) return -1;
  main_thread.store(value);
  // The thread that forks is the main thread of the child.
  pthread_atfork(nullptr, nullptr, [] { main_thread.store(PyThread_get_thread_ident()); });
  return TVMFFIEnvRegisterCAPI("PyErr_CheckSignals", reinterpret_cast<void*>(CheckSignals));
}

// NULL with an error set.
PyObject* MakeSentinel(PyObject* module, const char* name, const char* function) {
  TVMFFIObject* h = ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(
      ffi::Function::GetGlobalRequired(function)().cast<ffi::ObjectRef>());
  Ref made = Ref::Steal(WrapOwned(h));
  if (!made || PyModule_AddObjectRef(module, name, made.get()) < 0) return nullptr;
  return made.release();
}

PyObject* MakeSentinels(PyObject* module, PyObject*) {
  return Guarded([&]() -> PyObject* {
    sentinels.missing = MakeSentinel(module, "MISSING", "ffi.GetInvalidObject");
    if (sentinels.missing == nullptr) return nullptr;
    sentinels.kwargs = MakeSentinel(module, "KWARGS", "ffi.GetKwargsObject");
    if (sentinels.kwargs == nullptr) return nullptr;
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"_make_sentinels", Entry<MakeSentinels>, METH_NOARGS,
                            "Make MISSING and KWARGS, once there is a class for them."},
                           {nullptr, nullptr, 0, nullptr}};

int ExecUnguarded(PyObject* module) {
  // Not a static_assert: with UBSan the address of a function is not a constant.
  if (!upper_layers.IsComplete()) {
    PyErr_SetString(PyExc_SystemError, "UpperLayers lacks a function");
    return -1;
  }
  if (!IsMainInterpreter()) {
    PyErr_SetString(
        PyExc_ImportError,
        "tvm_ffi cannot be imported in a sub-interpreter: one Python object stands for one "
        "C++ object in the whole process");
    return -1;
  }
  TVMFFITestingDummyTarget();
  // A type comes after its base.
  constexpr int (*kInits[])(PyObject*) = {
      InitSmallInts,     InitWrapperTypes, InitAttributeCache,
      InitPythonHooks,   AddABIConstants,  InitRValueRefType,
      InitOpaqueObject,  InitFunctionType, InitErrors,
      InitDataType,      InitDType,        InitDevice,
      InitStreams,       InitShape,        InitTensor,
      InitExchange,      InitTestTensor,   InitContainerTypes,
      InitFieldTypes,    InitReflection,   InitPyClass,
      InitTypeConverter, InitCAny,         InitKinds,
      InitTying,         InitCallbacks,    InitGlobalFunctions,
      InitMetadata,      InitConstructors, InitInitializers,
      InitMethods,       InitText,         InitInspect,
      InitTravel,        InitMainModule,
  };
  if (InitThreadExit() < 0 || RegisterInterpreter() < 0) return -1;
  for (auto* init : kInits) {
    if (init(module) < 0) return -1;
  }
  if (PyModule_AddFunctions(module, functions) < 0) return -1;
  // The rest is written in Python. It adds its names to the module and calls _set_hooks.
  Ref python_part = Ref::Steal(PyImport_ImportModule("tvm_ffi._impl.install"));
  if (!python_part) return -1;
  Ref installed = Ref::Steal(PyObject_CallMethod(python_part.get(), "install", "O", module));
  return installed ? 0 : -1;
}

int Exec(PyObject* module) {
  Ref done = Ref::Steal(Guarded([&]() -> PyObject* {
    if (ExecUnguarded(module) < 0) return nullptr;
    Py_RETURN_NONE;
  }));
  if (done) return 0;
  if (!PyErr_Occurred())
    PyErr_SetString(PyExc_ImportError, "tvm_ffi.core could not be initialised");
  return -1;
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, Slot<Exec>()},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "tvm_ffi.core",
                          "The core of tvm_ffi: Python objects tied to C++ objects.",
                          0,
                          nullptr,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace tether_py

PyMODINIT_FUNC PyInit_core() { return PyModuleDef_Init(&tether_py::definition); }
