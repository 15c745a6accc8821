// SPDX-License-Identifier: Apache-2.0
// Shapes as Python values: tuples that keep their FFI object.
//
// Shared state:
//   shape_class         lock-free; classes that were in use before are never freed.
//   cached_object_name  set at import, constant afterwards.
#include "python/data/shape.h"
#include "python/base/entry.h"

#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>

#include <vector>

#include "python/base/python_api.h"
#include "python/wrap/class_table.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// What FFI shapes become; NULL until the package defines it.
std::atomic<PyObject*> shape_class{nullptr};
PyObject* cached_object_name = nullptr;

PyObject* SetClassShape(PyObject*, PyObject* cls) {
  if (!PyType_Check(cls) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &PyTuple_Type)) {
    return PyErr_Format(PyExc_TypeError, "expected a subclass of tuple, got %R", cls);
  }
  shape_class.store(Py_NewRef(cls));
  Py_RETURN_NONE;
}

PyObject* ShapeTuple(PyObject*, PyObject* obj) {
  if (!IsWrapper(obj)) {
    return PyErr_Format(PyExc_TypeError, "expected an ffi.Shape, got %s", Py_TYPE(obj)->tp_name);
  }
  Using held(AsWrapper(obj));
  TVMFFIObject* h = held.get();
  if (h == nullptr) return nullptr;
  if (h->type_index != TypeIndex::kTVMFFIShape) {
    return PyErr_Format(PyExc_TypeError, "expected an ffi.Shape, got `%s`",
                        TVMFFIGetTypeInfo(h->type_index)->type_key.data);
  }
  TVMFFIShapeCell* cell = TVMFFIShapeGetCellPtr(h);
  return TupleOf(cell->data, static_cast<Py_ssize_t>(cell->size));
}

PyObject* MakeStridesFromShape(PyObject*, PyObject* shape) {
  Ref items = Ref::Steal(PySequence_Tuple(shape));
  if (!items) return nullptr;
  Py_ssize_t n = PyTuple_GET_SIZE(items.get());
  std::vector<int64_t> extents(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    long long extent;
    if (!IntegerInRange(PyTuple_GET_ITEM(items.get(), i), INT64_MIN, INT64_MAX, "shape extent",
                        &extent)) {
      return nullptr;
    }
    extents[static_cast<size_t>(i)] = extent;
  }
  return RowMajorStrides(extents.data(), n);
}

PyMethodDef shape_functions[] = {
    {"_set_class_shape", Entry<SetClassShape>, METH_O,
     "Choose the class of shapes that come from C++."},
    {"_shape_obj_get_py_tuple", Entry<ShapeTuple>, METH_O, "The extents of an ffi.Shape object."},
    {"_make_strides_from_shape", Entry<MakeStridesFromShape>, METH_O,
     "Strides of a row-major tensor without gaps."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* TupleOf(const int64_t* values, Py_ssize_t n) {
  Ref tuple = Ref::Steal(PyTuple_New(n));
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = IntFromInt64(values[i]);
    if (item == nullptr) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), i, item);
  }
  return tuple.release();
}

PyObject* RowMajorStrides(const int64_t* shape, Py_ssize_t n) {
  std::vector<int64_t> strides(static_cast<size_t>(n));
  ffi::details::FillStridesFromShape(ffi::ShapeView(shape, static_cast<size_t>(n)), strides.data());
  return TupleOf(strides.data(), n);
}

PyObject* FromShape(TVMFFIObject* h) {
  TVMFFIShapeCell* cell = TVMFFIShapeGetCellPtr(h);
  Ref content = Ref::Steal(TupleOf(cell->data, static_cast<Py_ssize_t>(cell->size)));
  Ref cached = Ref::Steal(
      content ? AsObject(AllocateWrapper(ClassOfIndex(TypeIndex::kTVMFFIObject))) : nullptr);
  if (!cached) {
    Engine::DropStrong(h);
    return nullptr;
  }
  // Shapes are values: their objects are not tied.
  Engine::Attach(AsWrapper(cached.get()), h, nullptr);
  PyObject* cls = shape_class.load();
  if (cls == nullptr) return cached.release();
  Ref args = Ref::Steal(PyTuple_Pack(1, content.get()));
  if (!args) return nullptr;
  Ref self =
      Ref::Steal(PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(cls), args.get(), nullptr));
  if (!self || PyObject_SetAttr(self.get(), cached_object_name, cached.get()) < 0) return nullptr;
  return self.release();
}

int InitShape(PyObject* module) {
  cached_object_name = PyUnicode_InternFromString("_tvm_ffi_cached_object");
  return cached_object_name != nullptr ? PyModule_AddFunctions(module, shape_functions) : -1;
}

}  // namespace tether_py
