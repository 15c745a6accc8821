// SPDX-License-Identifier: Apache-2.0
// The exchange API of tvm_ffi.Tensor, by which other frameworks take our tensors.
//
// Shared state: none; the API is constant.
#include "python/data/own_exchange.h"

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>

#include "core/copy_tensor.h"
#include "python/convert/errors.h"
#include "python/data/capsules.h"
#include "python/data/tensor.h"

namespace tether_py {

namespace {

// `obj` if it is a Tensor. NULL with an error set.
PyObject* CheckTensor(PyObject* obj) {
  if (PyObject_TypeCheck(obj, types.tensor)) return obj;
  PyErr_Format(PyExc_TypeError, "expected a tvm_ffi.Tensor, got %s", Py_TYPE(obj)->tp_name);
  return nullptr;
}

int OwnAllocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                void (*set_error)(void*, const char*, const char*)) {
  if (prototype->device.device_type != kDLCPU) {
    set_error(error_ctx, "RuntimeError", "tvm_ffi.Tensor can only be allocated on the CPU");
    return -1;
  }
  try {
    ffi::ShapeView shape(prototype->shape, static_cast<size_t>(prototype->ndim));
    ffi::Tensor tensor = ffi::Tensor::FromNDAlloc(ffi::tether::HostMemory(), shape,
                                                  prototype->dtype, prototype->device);
    *out = tensor.ToDLPackVersioned();
    return 0;
  } catch (const std::exception& error) {
    set_error(error_ctx, "MemoryError", error.what());
    return -1;
  }
}

int OwnToManaged(void* obj, DLManagedTensorVersioned** out) {
  PyObject* tensor = CheckTensor(static_cast<PyObject*>(obj));
  if (tensor == nullptr) return -1;
  TensorUse t(tensor);
  if (!CanBeExported(t)) return -1;
  if (int code = TVMFFITensorToDLPackVersioned(t.object(), out)) {
    RaiseFromCall(code);
    return -1;
  }
  return 0;
}

int OwnFromManaged(DLManagedTensorVersioned* managed, void** out) {
  TVMFFIObject* h = ImportManaged(managed, ImportOptions());
  if (h == nullptr) {
    DeleteManaged(managed);
    return -1;
  }
  *out = WrapOwned(h);
  return *out != nullptr ? 0 : -1;
}

int OwnToDLTensor(void* obj, DLTensor* out) {
  PyObject* tensor = CheckTensor(static_cast<PyObject*>(obj));
  if (tensor == nullptr) return -1;
  // Like an unversioned capsule, a DLTensor cannot say that it is read-only.
  DLManagedTensorVersioned* managed = nullptr;
  if (OwnToManaged(tensor, &managed) < 0) return -1;
  const bool read_only = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  DeleteManaged(managed);
  if (read_only) {
    PyErr_SetString(PyExc_BufferError, "a read-only tensor cannot be lent as a DLTensor");
    return -1;
  }
  TensorUse t(tensor);
  if (!t) return -1;
  *out = *t;
  return 0;
}

int OwnStream(DLDeviceType type, int32_t id, void** out) {
  *out = type != kDLCPU ? TVMFFIEnvGetStream(type, id) : nullptr;
  return 0;
}

}  // namespace

const DLPackExchangeAPI own_exchange_api = {{{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, nullptr},
                                            OwnAllocate,
                                            OwnToManaged,
                                            OwnFromManaged,
                                            OwnToDLTensor,
                                            OwnStream};

bool IsOwnExchangeAPI(const DLPackExchangeAPI* api) {
  return api->managed_tensor_to_py_object_no_sync == OwnFromManaged;
}

int PublishExchangeAPI(PyTypeObject* cls, const DLPackExchangeAPI* api) {
  Ref capsule = Ref::Steal(
      PyCapsule_New(const_cast<DLPackExchangeAPI*>(api), "dlpack_exchange_api", nullptr));
  if (!capsule) return -1;
  return PyObject_SetAttrString(reinterpret_cast<PyObject*>(cls), "__dlpack_c_exchange_api__",
                                capsule.get());
}

}  // namespace tether_py
