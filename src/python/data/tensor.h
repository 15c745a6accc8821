// SPDX-License-Identifier: Apache-2.0
// Tensors as Python values.
#ifndef TETHER_PYTHON_DATA_TENSOR_H_
#define TETHER_PYTHON_DATA_TENSOR_H_

#include "python/convert/convert.h"

namespace tether_py {

bool SetTensor(PyObject* obj, TVMFFIAny* out, Arguments* args);
// What a Tensor shows, for the length of a scope that runs no Python code: no other thread moves
// the object away meanwhile, and a lent tensor is not taken back. NULL with an error set.
class TensorUse {
 public:
  explicit TensorUse(PyObject* self);
  ~TensorUse();
  TensorUse(const TensorUse&) = delete;
  TensorUse& operator=(const TensorUse&) = delete;
  explicit operator bool() const { return tensor_ != nullptr; }
  const DLTensor* operator->() const { return tensor_; }
  const DLTensor& operator*() const { return *tensor_; }
  // The object behind it; NULL for a tensor that is only lent.
  TVMFFIObject* object() const { return object_; }

 private:
  CriticalSection section_;
  TVMFFIObject* object_ = nullptr;
  const DLTensor* tensor_ = nullptr;
};
// False with an error set, also for a tensor that is only lent, which cannot be owned.
bool CanBeExported(const TensorUse& t);
// Takes over h.
PyObject* FromTensor(TVMFFIObject* h, const DLPackExchangeAPI* api);
// The same, but a framework that refuses the tensor is an error.
PyObject* FromTensorStrict(TVMFFIObject* h, const DLPackExchangeAPI* api);
// A tensor that C++ lends; EndView takes it back, which leaves the Python object empty.
PyObject* FromTensorView(DLTensor* tensor);
void EndView(PyObject* obj);
// A DLTensor* that an owning value is to hold, or holds: nobody says until when it is valid. Sets
// an error.
PyObject* RefuseLent();
// The result of a call that is a bare DLTensor*: the argument that it belongs to. NULL with an
// error set, also if there is none.
PyObject* FromTensorResult(DLTensor* tensor, PyObject* const* args, Arguments* converted);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_TENSOR_H_
