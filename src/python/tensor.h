// SPDX-License-Identifier: Apache-2.0
// Data types, devices, shapes and tensors as Python values, and the setters of their arguments.
#ifndef TETHER_PYTHON_TENSOR_H_
#define TETHER_PYTHON_TENSOR_H_

#include "convert.h"

namespace tether_py {

// ---- data types

int InitDataType(PyObject* module);
PyObject* FromDataType(DLDataType dtype);
// Of a core.DataType or a tvm_ffi.dtype. False with an error set.
bool DataTypeOf(PyObject* obj, DLDataType* out);
// Resolve* give the setter of a type and leave *out alone for types that are something else.
// -1 with an error set, else 0.
int ResolveDataType(PyObject* obj, Setter* out);
// The types that come late in the order: of torch, of numpy, by protocol.
int ResolveForeignDataType(PyObject* obj, Setter* out);

// ---- devices and streams

int InitDevice(PyObject* module);
PyObject* FromDevice(DLDevice device);
bool IsDevice(PyObject* obj);
bool SetDevice(PyObject* obj, TVMFFIAny* out, Arguments* args);
// By __dlpack_device__().
bool SetDeviceProtocol(PyObject* obj, TVMFFIAny* out, Arguments* args);

// ---- shapes

// Takes over h.
PyObject* FromShape(TVMFFIObject* h);

// ---- tensors

int InitTensor(PyObject* module);
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
// False with an error set, also for a tensor that is only lent, which nobody can own.
bool CanBeExported(const TensorUse& t);
// Takes over h.
PyObject* FromTensor(TVMFFIObject* h, const DLPackExchangeAPI* api);
// The same, but a framework that refuses the tensor is an error.
PyObject* FromTensorStrict(TVMFFIObject* h, const DLPackExchangeAPI* api);
// A tensor that C++ lends; EndView takes it back, which leaves the Python object empty.
PyObject* FromTensorView(DLTensor* tensor);
void EndView(PyObject* obj);
// The result of a call that is a bare DLTensor*: the argument that it belongs to, if any.
PyObject* FromTensorResult(DLTensor* tensor, PyObject* const* args, Arguments* converted);

// ---- DLPack

int InitDLPack(PyObject* module);
// Types that speak DLPack, in three places of the order.
int ResolveExchangeAPI(PyObject* obj, Setter* out);
int ResolveTorchTensor(PyObject* obj, Setter* out);
int ResolveDLPack(PyObject* obj, Setter* out);
// The exchange API of a tensor class. NULL with an error set.
const DLPackExchangeAPI* ExchangeAPIOf(PyObject* cls);
// The Python object whose memory a tensor shows and keeps, borrowed, or NULL.
PyObject* MemoryOwnerOf(TVMFFIObject* tensor);
// A managed tensor for that framework. One that came from there is exported by the framework
// itself, so that the result depends on neither h nor the Python object that h keeps. NULL with an
// error set.
DLManagedTensorVersioned* ExportTo(const DLPackExchangeAPI* api, TVMFFIObject* h);
// Whether `api` is the one of Tensor itself, so that there is nothing to translate.
bool IsOwnExchangeAPI(const DLPackExchangeAPI* api);
// A container that came with a tag: passes on its API and the stream of its tensors.
bool SetTaggedContainer(PyObject* obj, const DLPackExchangeAPI* tag, TVMFFIAny* out,
                        Arguments* args);

// ---- what all of them use

// Frees what nobody consumed of a capsule: consumers rename it.
void DropCapsule(PyObject* capsule);
void DropVersionedCapsule(PyObject* capsule);
inline constexpr const char* kCapsule = "dltensor";
inline constexpr const char* kVersionedCapsule = "dltensor_versioned";
inline constexpr const char* kUsedCapsule = "used_dltensor";
inline constexpr const char* kUsedVersionedCapsule = "used_dltensor_versioned";

// False without an error when the class has no such attribute.
bool HasMethod(PyTypeObject* type, const char* name);
// The digits of an int, also of one that Python refuses to print. NULL with an error set.
Ref TextOfInt(PyObject* number);
// An integer of a C type. False with OverflowError or TypeError set that names `what`.
bool IntegerInRange(PyObject* obj, long long lowest, long long highest, const char* what,
                    long long* out);
// Keyword arguments of a fast call, by the order of `names`; those that are not given keep their
// value. False with an error set.
bool ReadKeywords(const char* function, PyObject* const* values, PyObject* kwnames,
                  PyObject* const* names, size_t count, PyObject** out);
// A module that is loaded already, else NULL without an error.
Ref LoadedModule(const char* name);
// 1 or 0, or -1 with an error set. A library that is not loaded has no instances.
int IsInstanceOfLoaded(PyObject* obj, const char* module, const char* name);

}  // namespace tether_py
#endif  // TETHER_PYTHON_TENSOR_H_
