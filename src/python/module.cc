// SPDX-License-Identifier: Apache-2.0
// The extension module tvm_ffi.core.
#include "python/base/abi_constants.h"
#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/base/signals.h"
#include "python/base/threads.h"
#include "python/call/callback.h"
#include "python/call/constructor.h"
#include "python/call/from_symbol.h"
#include "python/call/function.h"
#include "python/call/function_class.h"
#include "python/call/global_functions.h"
#include "python/call/initializer.h"
#include "python/call/main_module.h"
#include "python/call/metadata.h"
#include "python/call/method.h"
#include "python/call/rvalue_ref.h"
#include "python/convert/errors.h"
#include "python/convert/raised_exception.h"
#include "python/data/attribute_cache.h"
#include "python/data/container_base.h"
#include "python/data/data_type.h"
#include "python/data/device.h"
#include "python/data/dtype.h"
#include "python/data/exchange.h"
#include "python/data/field_accessors.h"
#include "python/data/field_property.h"
#include "python/data/fields.h"
#include "python/data/opaque_object.h"
#include "python/data/python_tensor.h"
#include "python/data/shape.h"
#include "python/data/stream.h"
#include "python/data/tensor_buffer.h"
#include "python/data/tensor_class.h"
#include "python/data/testing.h"
#include "python/data/text.h"
#include "python/data/travel.h"
#include "python/kinds/to_any.h"
#include "python/schema/schema.h"
#include "python/wrap/inspect.h"
#include "python/wrap/object_class.h"
#include "python/wrap/python_hooks.h"
#include "python/wrap/sentinels.h"
#include "python/wrap/tying.h"
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
  layers.kept_by = KeptBy;
  // kinds/
  layers.find_setter = FindSetter;
  return layers;
}
const UpperLayers upper_layers = MakeUpperLayers();

namespace {

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
      InitSignals,        InitSmallInts,       InitWrapperTypes,
      InitAttributeCache, InitPythonHooks,     AddABIConstants,
      InitRValueRefType,  InitOpaqueObject,    InitFunctionType,
      InitErrors,         InitDataType,        InitDType,
      InitDevice,         InitStreams,         InitShape,
      InitTensor,         InitExchange,        InitTestTensor,
      InitContainerTypes, InitFieldAccessors,  InitFieldProperty,
      InitReflection,     InitPyClass,         InitTypeConverter,
      InitCAny,           InitKinds,           InitTying,
      InitCallbacks,      InitGlobalFunctions, InitMetadata,
      InitConstructors,   InitInitializers,    InitMethods,
      InitText,           InitInspect,         InitTravel,
      InitTensorBuffer,   InitMainModule,      InitSentinels,
  };
  if (InitThreadExit() < 0) return -1;
  for (auto* init : kInits) {
    if (init(module) < 0) return -1;
  }
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
