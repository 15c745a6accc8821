// SPDX-License-Identifier: Apache-2.0
// The class Tensor.
//
// Shared state: dlpack_keywords: set at import, constant afterwards.
#include "python/data/tensor_class.h"

#include <tvm/ffi/container/tensor.h>

#include "core/copy_tensor.h"
#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/data/device.h"
#include "python/data/dtype.h"
#include "python/data/shape.h"
#include "python/data/tensor.h"
#include "python/data/tensor_export.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// ---- members

PyObject* GetShape(PyObject* self, void*) {
  TensorUse t(self);
  return t ? TupleOf(t->shape, t->ndim) : nullptr;
}

PyObject* GetStrides(PyObject* self, void*) {
  TensorUse t(self);
  if (!t) return nullptr;
  if (t->strides == nullptr) return RowMajorStrides(t->shape, t->ndim);
  return TupleOf(t->strides, t->ndim);
}

PyObject* GetNdim(PyObject* self, void*) {
  TensorUse t(self);
  return t ? PyLong_FromLong(t->ndim) : nullptr;
}

PyObject* GetDType(PyObject* self, void*) {
  TensorUse t(self);
  return t ? FromDataType(t->dtype) : nullptr;
}

PyObject* GetDevice(PyObject* self, void*) {
  TensorUse t(self);
  return t ? FromDevice(t->device) : nullptr;
}

PyObject* GetNumel(PyObject* self, PyObject*) {
  TensorUse t(self);
  if (!t) return nullptr;
  return IntFromInt64(ffi::ShapeView(t->shape, static_cast<size_t>(t->ndim)).Product());
}

PyObject* GetSize(PyObject* self, PyObject* index) {
  if (!PyIndex_Check(index)) {
    return PyErr_Format(PyExc_TypeError, "the dimension must be an integer, not %s",
                        Py_TYPE(index)->tp_name);
  }
  Py_ssize_t i = PyNumber_AsSsize_t(index, PyExc_IndexError);  // may run Python code
  if (i == -1 && PyErr_Occurred()) return nullptr;
  TensorUse t(self);
  if (!t) return nullptr;
  Py_ssize_t at = i < 0 ? i + t->ndim : i;
  if (at < 0 || at >= t->ndim) {
    return PyErr_Format(PyExc_IndexError,
                        "Dimension %zd out of range for tensor with %d dimensions", i, t->ndim);
  }
  return IntFromInt64(t->shape[at]);
}

PyObject* IsContiguous(PyObject* self, PyObject*) {
  TensorUse t(self);
  return t ? PyBool_FromLong(ffi::IsContiguous(*t)) : nullptr;
}

PyObject* GetDataPointer(PyObject* self, PyObject*) {
  TensorUse t(self);
  if (!t) return nullptr;
  return PyLong_FromVoidPtr(static_cast<char*>(t->data) + t->byte_offset);
}

// ---- copies

// Another tensor over the same memory, read-only if this one is.
PyObject* CopyShallow(PyObject* self, PyObject*) {
  TVMFFIObjectHandle out = nullptr;
  {
    TensorUse t(self);
    DLManagedTensorVersioned* managed;
    if (!CanBeExported(t)) return nullptr;
    if (int code = TVMFFITensorToDLPackVersioned(t.object(), &managed)) return RaiseFromCall(code);
    if (int code = TVMFFITensorFromDLPackVersioned(managed, 0, 0, &out)) {
      managed->deleter(managed);
      return RaiseFromCall(code);
    }
  }
  return WrapOwned(static_cast<TVMFFIObject*>(out));
}

// A tensor with memory of its own.
PyObject* CopyDeep(PyObject* self, PyObject* /*memo*/) {
  return Guarded([&]() -> PyObject* {
    ffi::Tensor copy;
    {
      TensorUse t(self);
      if (!t) return nullptr;
      copy = ffi::tether::CopyTensor(*t);
    }
    return WrapOwned(ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(std::move(copy)));
  });
}

// ---- DLPack

PyObject* GetDLPackDevice(PyObject* self, PyObject*) {
  TensorUse t(self);
  if (!t) return nullptr;
  Ref type = Ref::Steal(IntFromInt64(t->device.device_type));
  Ref id = Ref::Steal(IntFromInt64(t->device.device_id));
  return type && id ? PyTuple_Pack(2, type.get(), id.get()) : nullptr;
}

// max_version, as far as it matters. False with an error set.
bool WantsVersioned(PyObject* max_version, bool* out) {
  *out = false;
  if (max_version == Py_None) return true;
  bool is_pair = PyTuple_Check(max_version) && PyTuple_GET_SIZE(max_version) > 0;
  PyObject* major = is_pair ? PyTuple_GET_ITEM(max_version, 0) : nullptr;
  if (!is_pair || !PyLong_Check(major)) {
    PyErr_Format(PyExc_TypeError, "max_version must be a tuple (major, minor), got %R",
                 max_version);
    return false;
  }
  int overflow;
  long value = PyLong_AsLongAndOverflow(major, &overflow);
  *out = overflow > 0 || value >= 1;
  return true;
}

// 1 or 0, or -1 with an error set.
int IsDeviceOf(PyObject* self, PyObject* dl_device) {
  Ref here = Ref::Steal(GetDLPackDevice(self, nullptr));
  return here ? PyObject_RichCompareBool(dl_device, here.get(), Py_EQ) : -1;
}

PyObject* dlpack_keywords[4];  // stream, max_version, dl_device, copy

PyObject* DLPack(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (nargs != 0)
    return PyErr_Format(PyExc_TypeError, "__dlpack__() takes no positional arguments");
  PyObject* given[4] = {Py_None, Py_None, Py_None, Py_None};
  if (!ReadKeywords("__dlpack__", args, kwnames, dlpack_keywords, 4, 0, given)) return nullptr;
  PyObject *max_version = given[1], *dl_device = given[2], *copy = given[3];
  bool versioned;
  if (!WantsVersioned(max_version, &versioned)) return nullptr;
  int here = dl_device == Py_None ? 1 : IsDeviceOf(self, dl_device);
  int wants_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
  if (here < 0 || wants_copy < 0) return nullptr;
  if (here == 0) {
    return PyErr_Format(PyExc_BufferError, "dl_device of different type not supported");
  }
  if (wants_copy != 0) return ToCapsuleOfCopy(self, versioned);
  return versioned ? ToVersionedCapsule(self) : ToCapsule(self);
}

PyObject* GetCapsule(PyObject* self, PyObject*) { return ToCapsule(self); }

PyObject* GetVersionedCapsule(PyObject* self, PyObject*) { return ToVersionedCapsule(self); }

// ---- the class

PyMethodDef tensor_methods[] = {
    {"numel", Entry<GetNumel>, METH_NOARGS, "numel($self, /)\n--\n\nNumber of elements."},
    {"size", Entry<GetSize>, METH_O,
     "size($self, dim, /)\n--\n\nExtent of one dimension; negative ones count from the end."},
    {"is_contiguous", Entry<IsContiguous>, METH_NOARGS,
     "is_contiguous($self, /)\n--\n\nWhether the elements are in memory in row-major order, "
     "without "
     "gaps."},
    {"data_ptr", Entry<GetDataPointer>, METH_NOARGS,
     "data_ptr($self, /)\n--\n\nAddress of the first element."},
    {"__copy__", Entry<CopyShallow>, METH_NOARGS,
     "__copy__($self, /)\n--\n\nAnother tensor over the same memory."},
    {"__deepcopy__", Entry<CopyDeep>, METH_O,
     "__deepcopy__($self, memo, /)\n--\n\nA tensor with a copy of the elements, on the CPU."},
    {"_to_dlpack", Entry<GetCapsule>, METH_NOARGS,
     "_to_dlpack($self, /)\n--\n\nA capsule 'dltensor'."},
    {"_to_dlpack_versioned", Entry<GetVersionedCapsule>, METH_NOARGS,
     "_to_dlpack_versioned($self, /)\n--\n\nA capsule 'dltensor_versioned'."},
    {"__dlpack_device__", Entry<GetDLPackDevice>, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nDevice type and index, as DLPack numbers them."},
    {"__dlpack__", EntryOfAnyKind<DLPack>(), METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A capsule of the memory or of a copy, versioned if the consumer understands that."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef tensor_getset[] = {
    {"shape", Entry<GetShape>, nullptr, "Extents, as a tuple.", nullptr},
    {"strides", Entry<GetStrides>, nullptr,
     "Distance of neighbours in each dimension, in elements.", nullptr},
    {"ndim", Entry<GetNdim>, nullptr, "Number of dimensions.", nullptr},
    {"dtype", Entry<GetDType>, nullptr, "Type of the elements.", nullptr},
    {"device", Entry<GetDevice>, nullptr, "Where the elements are.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot tensor_slots[] = {
    {Py_tp_doc,
     const_cast<char*>("An array that any framework may have made; its memory is shared.\n\n"
                       ">>> import numpy, tvm_ffi\n"
                       ">>> from tvm_ffi.testing import echo\n"
                       ">>> x = tvm_ffi.from_dlpack(numpy.ones((2, 3), \"float32\"))\n"
                       ">>> x.shape, x.dtype, x.device\n"
                       "((2, 3), dtype('float32'), device(type='cpu', index=0))\n"
                       ">>> echo(x) is x\n"
                       "True\n")},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_getset},
    {0, nullptr}};

PyType_Spec tensor_spec = {"tvm_ffi.core.Tensor", sizeof(Wrapper), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, tensor_slots};

PyObject* SetClassTensor(PyObject* module, PyObject* cls) {
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), types.tensor)) {
    return PyErr_Format(PyExc_TypeError, "expected a subclass of Tensor, got %R", cls);
  }
  SetClassOfIndex(TypeIndex::kTVMFFITensor, reinterpret_cast<PyTypeObject*>(cls));
  if (PyModule_AddObjectRef(module, "_CLASS_TENSOR", cls) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef tensor_functions[] = {{"_set_class_tensor", Entry<SetClassTensor>, METH_O,
                                   "Choose the class of tensors that come from C++."},
                                  {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitTensor(PyObject* module) {
  types.tensor = AddType(module, &tensor_spec, types.object);
  if (types.tensor == nullptr) return -1;
  const char* const keywords[] = {"stream", "max_version", "dl_device", "copy"};
  for (size_t i = 0; i < 4; ++i) {
    dlpack_keywords[i] = PyUnicode_InternFromString(keywords[i]);
    if (dlpack_keywords[i] == nullptr) return -1;
  }
  if (PyModule_AddFunctions(module, tensor_functions) < 0) return -1;
  Ref done = Ref::Steal(SetClassTensor(module, reinterpret_cast<PyObject*>(types.tensor)));
  return done ? 0 : -1;
}

}  // namespace tether_py
