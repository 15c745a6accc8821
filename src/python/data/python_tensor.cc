// SPDX-License-Identifier: Apache-2.0
// Tensors over the memory of a Python object, which they keep alive.
//
// Shared state:
//   python_tensor_deleter   lock-free; every thread that writes it writes the same value.
//   spare_, num_spare_      the GIL; in a free-threaded build they stay empty.
#include "python/data/python_tensor.h"

#include <tvm/ffi/container/tensor.h>

#include "python/base/entry.h"
#include "python/wrap/edges.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

namespace {

// The deleter that all objects of this class have, which tells them apart; NULL before the first.
std::atomic<decltype(TVMFFIObject::deleter)> python_tensor_deleter{nullptr};

// Shape and strides lie behind the object: those of `owner` may change.
class PythonTensorObj : public ffi::TensorObj {
 public:
  PythonTensorObj(PyObject* owner, const DLTensor& prototype) { Fill(owner, prototype); }
  ~PythonTensorObj() { ReleaseFromAnyThread(owner_); }

  PyObject* owner() const { return owner_; }
  // How many dimensions there must be room for.
  static int32_t RoomFor(int32_t ndim) { return ndim <= kUsualDims ? kUsualDims : ndim; }

  // Most of these end with the call they were made for. In a GIL build such an object is kept,
  // empty, for the next argument.

  static bool Recycle(TVMFFIObject* h) {
    if (kFreeThreaded || num_spare_ == kMaxSpare ||
        h->deleter != python_tensor_deleter.load(std::memory_order_relaxed)) {
      return false;
    }
    auto* self = ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<PythonTensorObj>(h);
    if (self->room_ != kUsualDims || !IsSpare(h)) return false;
    PyObject* owner = self->owner_;
    self->owner_ = nullptr;
    spare_[num_spare_++] = self;
    Py_DECREF(owner);  // last: it may run Python code
    return true;
  }
  static TVMFFIObject* Reuse(PyObject* owner, const DLTensor& prototype) {
    if (num_spare_ == 0 || prototype.ndim > kUsualDims) return nullptr;
    PythonTensorObj* self = spare_[--num_spare_];
    self->Fill(owner, prototype);
    return ffi::details::ObjectUnsafe::GetHeader(self);
  }

 private:
  void Fill(PyObject* owner, const DLTensor& prototype) {
    owner_ = Py_NewRef(owner);
    room_ = RoomFor(prototype.ndim);
    *static_cast<DLTensor*>(this) = prototype;
    shape = reinterpret_cast<int64_t*>(this + 1);
    strides = shape + room_;
    CopyExtents(prototype);
  }
  // Compilers make two calls of memcpy of such a loop, which take longer than the few numbers do.
  void CopyExtents(const DLTensor& prototype) {
    for (int32_t i = 0; i < ndim; ++i) {
      shape[i] = prototype.shape[i];
      strides[i] = prototype.strides[i];
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }

  static constexpr int32_t kUsualDims = 6;
  static constexpr int kMaxSpare = 16;
  static inline PythonTensorObj* spare_[kMaxSpare];
  static inline int num_spare_ = 0;

  PyObject* owner_;  // the memory is valid for as long as it lives
  int32_t room_;     // for so many dimensions
};

// NULL with an error set.
TVM_FFI_NO_INLINE TVMFFIObject* NewTensorOver(PyObject* owner, const DLTensor& prototype) {
  TVMFFIObject* h = nullptr;
  Ref done = Ref::Steal(Guarded([&]() -> PyObject* {
    auto tensor = ffi::make_inplace_array_object<PythonTensorObj, int64_t>(
        static_cast<size_t>(PythonTensorObj::RoomFor(prototype.ndim)) * 2, owner, prototype);
    h = ffi::details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(tensor));
    python_tensor_deleter.store(h->deleter, std::memory_order_relaxed);
    return Py_NewRef(Py_None);
  }));
  return h;
}

}  // namespace

TVMFFIObject* TensorOver(PyObject* owner, const DLTensor& prototype) {
  TVMFFIObject* h = PythonTensorObj::Reuse(owner, prototype);
  return TVM_FFI_PREDICT_TRUE(h != nullptr) ? h : NewTensorOver(owner, prototype);
}

bool RecycleTensor(TVMFFIObject* tensor) { return PythonTensorObj::Recycle(tensor); }

void DropSpareTensors() {
  while (TVMFFIObject* h = PythonTensorObj::Reuse(Py_None, DLTensor{})) Engine::DropStrong(h);
}

PyObject* MemoryOwnerOf(TVMFFIObject* tensor) {
  auto* deleter = tensor->deleter;
  // Made while another allocator was current, and adopted: the table has the deleter.
  if (auto* slot =
          tie::FindAdopted(Runtime::Table(), tensor, tie::LoadPadding<tie::NoHooks>(tensor))) {
    deleter = slot->original;
  }
  if (deleter == nullptr || deleter != python_tensor_deleter.load()) return nullptr;
  return ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<PythonTensorObj>(tensor)->owner();
}

}  // namespace tether_py
