// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries as arguments: which way they take.
#include "python/data/exchange.h"

#include <tvm/ffi/container/tensor.h>

#include <cstdlib>
#include <cstring>

#include "python/base/python_api.h"
#include "python/data/capsules.h"
#include "python/data/exchange_api.h"
#include "python/data/from_dlpack.h"
#include "python/data/numpy.h"
#include "python/data/own_exchange.h"
#include "python/data/tensor_argument.h"
#include "python/data/torch.h"
#include "python/data/torch_signs.h"

namespace tether_py {

namespace {

bool SetByDLPack(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return StoreTensor(ImportFromMethod(obj, ImportOptions()), out, args);
}

// Of a class whose tensors say on which stream they are used: __tvm_ffi_env_stream__.
bool SetByDLPackWithStream(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  if (!SetByDLPack(obj, out, args)) return false;
  DLDevice device = TVMFFITensorGetDLTensorPtr(out->v_obj)->device;
  if (device.device_type == kDLCPU) return true;
  Ref stream = Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_env_stream__", nullptr));
  if (!stream) return false;
  void* address = PyLong_Check(stream.get()) ? PyLong_AsVoidPtr(stream.get()) : nullptr;
  if (!PyLong_Check(stream.get())) {
    PyErr_Format(PyExc_TypeError, "__tvm_ffi_env_stream__() of %s must return an int, got %s",
                 Py_TYPE(obj)->tp_name, Py_TYPE(stream.get())->tp_name);
  }
  if (PyErr_Occurred()) return false;
  args->MutableContext()->SetStream(device, address);
  return true;
}

bool SkipsExchangeAPI() {
  const char* setting = std::getenv("TVM_FFI_SKIP_DLPACK_C_EXCHANGE_API");
  return setting != nullptr && std::strcmp(setting, "1") == 0;
}

}  // namespace

int ResolveExchangeAPI(PyObject* obj, Setter* out) {
  PyTypeObject* type = Py_TYPE(obj);
  if (SkipsExchangeAPI()) return 0;
  if (!PrepareTorch(obj)) return -1;
  if (!HasAttribute(type, "__dlpack_c_exchange_api__")) return 0;
  if (!LearnExchangeAPI(type)) return -1;
  *out = SetByExchangeAPI;
  if (HasLazySigns(type)) *out = KnowsSignBits(type) ? SetWithSignBits : SetWithLazySigns;
  if (UsesAddon(type)) *out = SetByAddon;
  return 0;
}

int ResolveTorchTensor(PyObject* obj, Setter* out) {
  int is = IsInstanceOfLoaded(obj, "torch", "Tensor");
  if (is <= 0) return is;
  if (ResolveExchangeAPI(obj, out) < 0) return -1;  // it may have one by now
  if (*out == nullptr) *out = SetTorchTensor;
  return 0;
}

int ResolveDLPack(PyObject* obj, Setter* out) {
  if (!HasAttribute(Py_TYPE(obj), "__dlpack__")) return 0;
  if (Py_TYPE(obj) == FindNumpyArrayType()) {
    *out = SetNumpyArray;
  } else {
    bool has_stream = HasAttribute(Py_TYPE(obj), "__tvm_ffi_env_stream__");
    *out = has_stream ? SetByDLPackWithStream : SetByDLPack;
  }
  return 0;
}

int InitExchange(PyObject* module) {
  if (InitCapsules() < 0 || InitExchangeAPIs() < 0 || InitTorchSigns() < 0) return -1;
  if (PublishExchangeAPI(types.tensor, &own_exchange_api) < 0) return -1;
  Ref version = Ref::Steal(Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION));
  if (!version || PyModule_AddObjectRef(module, "__dlpack_version__", version.get()) < 0) return -1;
  return InitFromDLPack(module);
}

}  // namespace tether_py
