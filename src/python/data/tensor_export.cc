// SPDX-License-Identifier: Apache-2.0
// Tensors in DLPack's capsules.
#include "python/data/tensor_export.h"

#include <tvm/ffi/container/tensor.h>

#include "core/copy_tensor.h"
#include "python/base/entry.h"
#include "python/convert/errors.h"
#include "python/data/capsules.h"
#include "python/data/tensor.h"

namespace tether_py {

namespace {

// Both take `managed` over.
PyObject* CapsuleOf(DLManagedTensor* managed) {
  PyObject* capsule = PyCapsule_New(managed, kCapsule, DropCapsule);
  if (capsule == nullptr) managed->deleter(managed);
  return capsule;
}

PyObject* CapsuleOf(DLManagedTensorVersioned* managed) {
  PyObject* capsule = PyCapsule_New(managed, kVersionedCapsule, DropVersionedCapsule);
  if (capsule == nullptr) managed->deleter(managed);
  return capsule;
}

}  // namespace

PyObject* ToCapsule(PyObject* self) {
  TensorUse t(self);
  DLManagedTensor* managed;
  if (!CanBeExported(t)) return nullptr;
  if (int code = TVMFFITensorToDLPack(t.object(), &managed)) return RaiseFromCall(code);
  return CapsuleOf(managed);
}

PyObject* ToVersionedCapsule(PyObject* self) {
  TensorUse t(self);
  DLManagedTensorVersioned* managed;
  if (!CanBeExported(t)) return nullptr;
  if (int code = TVMFFITensorToDLPackVersioned(t.object(), &managed)) return RaiseFromCall(code);
  return CapsuleOf(managed);
}

PyObject* ToCapsuleOfCopy(PyObject* self, bool versioned) {
  TensorUse t(self);
  if (!t) return nullptr;
  if (const char* obstacle = ffi::tether::FindCopyObstacle(*t)) {
    return PyErr_Format(PyExc_BufferError, "%s", obstacle);
  }
  return Guarded([&]() -> PyObject* {
    ffi::Tensor copy = ffi::tether::CopyTensor(*t);
    if (!versioned) return CapsuleOf(copy.ToDLPack());
    DLManagedTensorVersioned* managed = copy.ToDLPackVersioned();
    managed->flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
    return CapsuleOf(managed);
  });
}

}  // namespace tether_py
