// SPDX-License-Identifier: Apache-2.0
// Tensors over the memory of a Python object, which they keep alive.
//
// Shared state: python_tensor_deleter: lock-free; every thread that writes it writes the same
// value.
#include "python/data/python_tensor.h"

#include <tvm/ffi/container/tensor.h>

#include <algorithm>

#include "python/convert/errors.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

namespace {

// Shape and strides lie behind the object: those of `owner` may change.
class PythonTensorObj : public ffi::TensorObj {
 public:
  PythonTensorObj(PyObject* owner, const DLTensor& prototype) : owner_(Py_NewRef(owner)) {
    *static_cast<DLTensor*>(this) = prototype;
    auto* extents = reinterpret_cast<int64_t*>(this + 1);
    std::copy(prototype.shape, prototype.shape + ndim, extents);
    std::copy(prototype.strides, prototype.strides + ndim, extents + ndim);
    shape = extents;
    strides = extents + ndim;
  }
  ~PythonTensorObj() { ReleaseFromAnyThread(owner_); }

  PyObject* owner() const { return owner_; }

 private:
  PyObject* owner_;  // the memory is valid for as long as it lives
};

// The deleter that all objects of this class have, which tells them apart; NULL before the first.
std::atomic<decltype(TVMFFIObject::deleter)> python_tensor_deleter{nullptr};

}  // namespace

TVMFFIObject* TensorOver(PyObject* owner, const DLTensor& prototype) {
  TVMFFIObject* h = nullptr;
  Ref done = Ref::Steal(Guarded([&]() -> PyObject* {
    auto tensor = ffi::make_inplace_array_object<PythonTensorObj, int64_t>(
        static_cast<size_t>(prototype.ndim) * 2, owner, prototype);
    h = ffi::details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(tensor));
    python_tensor_deleter.store(h->deleter, std::memory_order_relaxed);
    return Py_NewRef(Py_None);
  }));
  return h;
}

PyObject* MemoryOwnerOf(TVMFFIObject* tensor) {
  if (tensor->deleter == nullptr || tensor->deleter != python_tensor_deleter.load()) return nullptr;
  return ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<PythonTensorObj>(tensor)->owner();
}

}  // namespace tether_py
