// SPDX-License-Identifier: Apache-2.0
// The Python class of each C++ type.
#include "python/wrap/class_table.h"
#include "python/base/entry.h"

#include <memory>
#include <mutex>

#include "python/wrap/drop.h"
#include "python/wrap/edges_of_type.h"
#include "python/wrap/python_hooks.h"
#include "python/wrap/upper_layers.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

namespace {

ShortLock class_table_lock;
std::atomic<PyTypeObject*> first_classes[128];
const ClassTable first_class_table{128, first_classes};

}  // namespace

std::atomic<const ClassTable*> class_table{&first_class_table};

namespace {

// The place of an index. With the lock held.
std::atomic<PyTypeObject*>* ClassPlace(size_t i) {
  const ClassTable* old = class_table.load(std::memory_order_relaxed);
  size_t old_size = old->size;
  if (i < old_size) return &old->classes[i];
  size_t size = old_size;
  while (size <= i) size *= 2;
  auto classes = std::make_unique<std::atomic<PyTypeObject*>[]>(size);
  auto* grown = new ClassTable{size, classes.get()};
  classes.release();
  for (size_t k = 0; k < old_size; ++k) {
    grown->classes[k].store(old->classes[k].load(std::memory_order_relaxed),
                            std::memory_order_relaxed);
  }
  class_table.store(grown, std::memory_order_release);
  return &grown->classes[i];
}

// The class that was there before, owned.
Ref ReplaceClassOfIndex(int32_t type_index, PyTypeObject* cls) {
  std::lock_guard<ShortLock> guard(class_table_lock);
  std::atomic<PyTypeObject*>* place = ClassPlace(static_cast<size_t>(type_index));
  Py_XINCREF(cls);
  PyTypeObject* old = place->exchange(cls, std::memory_order_acq_rel);
  return Ref::Steal(reinterpret_cast<PyObject*>(old));
}

// What depends on the body that the user wrote, so before fields and methods are added to it.
void PrepareClass(int32_t type_index, PyTypeObject* cls, bool is_python_defined) {
  std::lock_guard<ShortLock> guard(class_table_lock);
  bool has_fields = !is_python_defined || HasPythonFields(type_index);
  InstallDealloc(cls, type_index, has_fields);
  upper_layers.install_field_access(cls, is_python_defined);
}

void PublishClass(int32_t type_index, PyTypeObject* cls) {
  Ref old = ReplaceClassOfIndex(type_index, cls);
  // In a free-threaded build another thread may have just read it: a class that was replaced stays.
  if (kFreeThreaded) old.release();
}

}  // namespace

void SetClassOfIndex(int32_t type_index, PyTypeObject* cls, bool is_python_defined) {
  if (cls != nullptr) PrepareClass(type_index, cls, is_python_defined);
  PublishClass(type_index, cls);
}

namespace {

PyTypeObject* MakeClass(int32_t type_index) {
  if (hooks.make_class == nullptr) return types.object;
  Ref made = Ref::Steal(PyObject_CallFunction(hooks.make_class, "i", type_index));
  if (!made) return nullptr;
  if (!PyType_Check(made.get()) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(made.get()), types.object)) {
    PyErr_Format(PyExc_TypeError, "the class for type index %d must derive from CObject, got %R",
                 type_index, made.get());
    return nullptr;
  }
  SetClassOfIndex(type_index, reinterpret_cast<PyTypeObject*>(made.get()));
  return FindClassOfIndex(type_index);
}

}  // namespace

PyTypeObject* MakeClassOfIndex(int32_t type_index) { return Entry<MakeClass>(type_index); }

namespace {

bool IsWrapperClass(PyObject* cls) {
  return PyType_Check(cls) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), types.object);
}

// The third argument says of a class that its type is defined in Python; of None, that nobody can
// have looked at the class that was there. The fourth, that the class is prepared.
PyObject* PySetClassOfIndex(PyObject*, PyObject* args) {
  int index;
  PyObject* cls;
  int flag = 0;
  int is_prepared = 0;
  if (!PyArg_ParseTuple(args, "iO|pp", &index, &cls, &flag, &is_prepared)) return nullptr;
  if (index < 0) return PyErr_Format(PyExc_ValueError, "invalid type index %d", index);
  if (cls == Py_None) {
    if (flag != 0) {
      ReplaceClassOfIndex(index, nullptr);
    } else {
      SetClassOfIndex(index, nullptr);
    }
    Py_RETURN_NONE;
  }
  // Any other class may be registered for a type, but only wrappers can be handed out.
  if (IsWrapperClass(cls)) {
    auto* type = reinterpret_cast<PyTypeObject*>(cls);
    if (is_prepared == 0) PrepareClass(index, type, flag != 0);
    PublishClass(index, type);
  }
  Py_RETURN_NONE;
}

// Arguments (index, class, whether the type is defined in Python).
PyObject* PyPrepareClass(PyObject*, PyObject* args) {
  int index;
  PyObject* cls;
  int is_python_defined;
  if (!PyArg_ParseTuple(args, "iOp", &index, &cls, &is_python_defined)) return nullptr;
  if (index < 0) return PyErr_Format(PyExc_ValueError, "invalid type index %d", index);
  if (IsWrapperClass(cls)) {
    PrepareClass(index, reinterpret_cast<PyTypeObject*>(cls), is_python_defined != 0);
  }
  Py_RETURN_NONE;
}

PyObject* PyClassOfIndex(PyObject*, PyObject* arg) {
  long index = PyLong_AsLong(arg);
  if (index == -1 && PyErr_Occurred()) return nullptr;
  PyTypeObject* cls = FindClassOfIndex(static_cast<int32_t>(index));
  if (cls == nullptr) Py_RETURN_NONE;
  return Py_NewRef(reinterpret_cast<PyObject*>(cls));
}

PyMethodDef functions[] = {{"_set_class_of_index", Entry<PySetClassOfIndex>, METH_VARARGS, nullptr},
                           {"_prepare_class", Entry<PyPrepareClass>, METH_VARARGS, nullptr},
                           {"_class_of_index", Entry<PyClassOfIndex>, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitClassTable(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace tether_py
