// SPDX-License-Identifier: Apache-2.0
// Arrays of numpy, read without a call into numpy.
//
// ndarray.__dlpack__ costs more than the rest of a call. The fields of an array have been at the
// same place in every release of numpy. How DLPack names an element type is learned from numpy
// itself: the first array of a type goes through __dlpack__.
//
// Shared state:
//   element_types   lock-free; entries are added and never removed, and own their descr.
//   found, refused  (FindNumpyArrayType) lock-free; set once. Threads that race find the same type.
#include <new>

#include "python/data/numpy.h"

#include "core/copy_tensor.h"
#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/data/python_tensor.h"
#include "python/data/tensor_argument.h"

namespace tether_py {

namespace {

struct ArrayFields {
  PyObject_HEAD char* data;
  int ndim;
  Py_ssize_t* shape;
  Py_ssize_t* strides;  // in bytes
  PyObject* base;
  PyObject* descr;
  int flags;
};
constexpr int kWriteable = 0x400;
constexpr int kMaxArrayDims = 64;
static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "shapes are copied as they are");

const ArrayFields* FieldsOf(PyObject* array) { return reinterpret_cast<const ArrayFields*>(array); }

// Element types seen so far.
class ElementTypes {
 public:
  bool Find(PyObject* descr, DLDataType* out) const {
    for (size_t i = Start(descr), n = 0; n < kProbes; ++n, ++i) {
      const Entry* entry = entries_[i % kEntries].load(std::memory_order_acquire);
      if (entry == nullptr) return false;
      if (entry->descr != descr) continue;
      *out = entry->dtype;
      return true;
    }
    return false;
  }
  void Add(PyObject* descr, DLDataType dtype) {
    auto* made = new (std::nothrow) Entry{descr, dtype};
    if (made == nullptr) return;
    for (size_t i = Start(descr), n = 0; n < kProbes; ++n, ++i) {
      Entry* none = nullptr;
      if (entries_[i % kEntries].compare_exchange_strong(none, made)) {
        Py_INCREF(descr);
        return;
      }
    }
    delete made;
  }

 private:
  static constexpr size_t kEntries = 128;
  static constexpr size_t kProbes = 8;
  struct Entry {
    PyObject* descr;
    DLDataType dtype;
  };
  static size_t Start(PyObject* descr) { return reinterpret_cast<uintptr_t>(descr) >> 4; }
  std::atomic<Entry*> entries_[kEntries] = {};
};

ElementTypes element_types;

TVMFFIObject* ImportArraySlow(PyObject* array, const ImportOptions& options) {
  TVMFFIObject* h = ImportFromMethod(array, options);
  if (h == nullptr) return nullptr;
  DLDataType dtype = TVMFFITensorGetDLTensorPtr(h)->dtype;
  bool whole_bytes = dtype.bits % 8 == 0 && dtype.bits != 0 && dtype.lanes == 1;
  if (whole_bytes) element_types.Add(FieldsOf(array)->descr, dtype);
  return h;
}

// Whether arrays have the layout of ArrayFields, tested on one with a gap and an offset.
bool KnowsArrayLayout(PyObject* numpy) {
  Ref probe = Ref::Steal(PyObject_CallMethod(numpy, "zeros", "((iii)s)", 3, 5, 7, "int16"));
  Ref index =
      Ref::Steal(Py_BuildValue("(NN)", PySlice_New(nullptr, nullptr, nullptr), PyLong_FromLong(2)));
  Ref view = probe && index ? Ref::Steal(PyObject_GetItem(probe.get(), index.get())) : Ref();
  if (!view) return false;
  Ref interface = Ref::Steal(PyObject_GetAttrString(view.get(), "__array_interface__"));
  Ref descr = Ref::Steal(PyObject_GetAttrString(view.get(), "dtype"));
  Ref flags = Ref::Steal(PyObject_GetAttrString(view.get(), "flags"));
  Ref bits = flags ? Ref::Steal(PyObject_GetAttrString(flags.get(), "num")) : Ref();
  if (!interface || !descr || !bits || !PyDict_Check(interface.get())) return false;
  PyObject* data = PyDict_GetItemString(interface.get(), "data");
  if (data == nullptr || !PyTuple_Check(data)) return false;
  const ArrayFields* a = FieldsOf(view.get());
  return PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0)) == a->data && a->ndim == 2 &&
         a->shape[0] == 3 && a->shape[1] == 7 && a->strides[0] == 70 && a->strides[1] == 2 &&
         a->base == probe.get() && a->descr == descr.get() &&
         PyLong_AsLong(bits.get()) == a->flags && (a->flags & kWriteable) != 0;
}

}  // namespace

// Anything unusual goes through __dlpack__, where numpy reports what is wrong with it.
TVMFFIObject* ImportArray(PyObject* array, const ImportOptions& options) {
  const ArrayFields* a = FieldsOf(array);
  DLDataType dtype;
  if (!element_types.Find(a->descr, &dtype) || (a->flags & kWriteable) == 0 ||
      a->ndim > kMaxArrayDims) {
    return ImportArraySlow(array, options);
  }
  int64_t strides[kMaxArrayDims];
  const Py_ssize_t itemsize = dtype.bits / 8;
  for (int i = 0; i < a->ndim; ++i) {
    if (a->strides[i] % itemsize != 0) return ImportArraySlow(array, options);
    strides[i] = a->strides[i] / itemsize;
  }
  DLTensor prototype{};
  prototype.data = a->data;
  prototype.device = DLDevice{kDLCPU, 0};
  prototype.ndim = a->ndim;
  prototype.dtype = dtype;
  prototype.shape = reinterpret_cast<int64_t*>(a->shape);
  prototype.strides = strides;
  if (options.require_alignment == 0 && !options.require_contiguous) {
    return TensorOver(array, prototype);
  }
  Ref fits = Ref::Steal(Guarded([&]() -> PyObject* {
    ffi::tether::CheckImport(prototype, static_cast<size_t>(options.require_alignment),
                             options.require_contiguous);
    return Py_NewRef(Py_None);
  }));
  return fits ? TensorOver(array, prototype) : nullptr;
}

// numpy's ndarray if it is loaded and its arrays can be looked into, decided once.
PyTypeObject* FindNumpyArrayType() {
  static std::atomic<PyTypeObject*> found{nullptr};
  static std::atomic<bool> refused{false};
  PyTypeObject* type = found.load();
  if (type != nullptr || refused.load()) return type;
  Ref numpy = LoadedModule("numpy");
  if (!numpy) return nullptr;
  Ref cls = Ref::Steal(PyObject_GetAttrString(numpy.get(), "ndarray"));
  if (!cls || !PyType_Check(cls.get())) {
    PassOver();  // still being imported
    return nullptr;
  }
  if (!KnowsArrayLayout(numpy.get())) {
    PassOver();
    refused.store(true);
    return nullptr;
  }
  type = reinterpret_cast<PyTypeObject*>(cls.release());
  found.store(type);
  return type;
}

bool SetNumpyArray(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return StoreTensor(ImportArray(obj, ImportOptions()), out, args);
}

}  // namespace tether_py
