// SPDX-License-Identifier: Apache-2.0
// Small helpers over CPython's API.
//
// Shared state: small_ints: set at import, constant afterwards. cache (CVoidP): an atomic, set on
// first use (FindOnce).
#include "python/base/python_api.h"

#include "python/base/locks.h"

namespace tether_py {

PyObject* small_ints[kNumSmallInts];

int InitSmallInts(PyObject*) {
  for (uint64_t i = 0; i < kNumSmallInts; ++i) {
    small_ints[i] = PyLong_FromLongLong(static_cast<int64_t>(i) + kLeastSmallInt);
    if (small_ints[i] == nullptr) return -1;
  }
  return 0;
}

void PassOver() {
  bool was_interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
  PyErr_Clear();
  if (was_interrupted) PyErr_SetInterrupt();
}

bool HasAttribute(PyTypeObject* type, const char* name) {
  Ref interned = Ref::Steal(PyUnicode_InternFromString(name));
  if (!interned) PyErr_Clear();
  return interned && _PyType_Lookup(type, interned.get()) != nullptr;
}

Ref FindInInstance(PyObject* self, PyObject* const* dict, const char* name) {
  Ref found;
  {
    CriticalSection section(self);
    found = Ref::Borrow(*dict);
  }
  Ref key = found ? Ref::Steal(PyUnicode_InternFromString(name)) : Ref();
  return key ? FindInDict(found.get(), key.get()) : Ref();
}

int SetInInstance(PyObject* self, const char* name, PyObject* value) {
  Ref dict = Ref::Steal(PyObject_GenericGetDict(self, nullptr));
  if (!dict) return -1;
  return value != nullptr ? PyDict_SetItemString(dict.get(), name, value)
                          : PyDict_DelItemString(dict.get(), name);
}

bool ReadKeywords(const char* function, PyObject* const* values, PyObject* kwnames,
                  PyObject* const* names, size_t count, size_t num_positional, PyObject** out) {
  Py_ssize_t given = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < given; ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    size_t at = 0;
    while (at < count && name != names[at]) ++at;  // interned, nearly always
    for (size_t j = 0; at == count && j < count; ++j) {
      if (PyUnicode_Compare(name, names[j]) == 0) at = j;
    }
    if (at == count) {
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R", function, name);
      return false;
    }
    if (at < num_positional) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument %R", function, name);
      return false;
    }
    out[at] = values[i];
  }
  return true;
}

Ref LoadedModule(const char* name) {
  Ref text = Ref::Steal(PyUnicode_FromString(name));
  Ref module = text ? Ref::Steal(PyImport_GetModule(text.get())) : Ref();
  if (!module) PassOver();
  return module;
}

int IsInstanceOfLoaded(PyObject* obj, const char* module, const char* name) {
  Ref mod = LoadedModule(module);
  Ref cls = mod ? Ref::Steal(PyObject_GetAttrString(mod.get(), name)) : Ref();
  if (!cls) {
    PassOver();  // not loaded, or another module of that name
    return 0;
  }
  return PyObject_IsInstance(obj, cls.get());
}

Ref TextOfInt(PyObject* number) {
  Ref text = Ref::Steal(PyLong_Type.tp_repr(number));
  if (text || !PyErr_ExceptionMatches(PyExc_ValueError)) return text;
  PyErr_Clear();
  Ref bits = Ref::Steal(PyObject_CallMethod(number, "bit_length", nullptr));
  return bits ? Ref::Steal(PyUnicode_FromFormat("<int of %S bits>", bits.get())) : Ref();
}

bool IntegerInRange(PyObject* obj, long long lowest, long long highest, const char* what,
                    long long* out) {
  if (!PyIndex_Check(obj)) {
    PyErr_Format(PyExc_TypeError, "an integer is required as %s, got %s", what,
                 Py_TYPE(obj)->tp_name);
    return false;
  }
  Ref number = Ref::Steal(PyNumber_Index(obj));
  if (!number) return false;
  int overflow = 0;
  *out = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (overflow == 0 && *out >= lowest && *out <= highest) return true;
  Ref text = TextOfInt(number.get());
  if (text) {
    PyErr_Format(PyExc_OverflowError, "%s %U is out of range [%lld, %lld]", what, text.get(),
                 lowest, highest);
  }
  return false;
}

bool ToInt32(PyObject* obj, const char* what, int32_t* out) {
  long long value;
  if (!IntegerInRange(obj, INT32_MIN, INT32_MAX, what, &value)) return false;
  *out = static_cast<int32_t>(value);
  return true;
}

PyTypeObject* AddType(PyObject* module, PyType_Spec* spec, PyTypeObject* base) {
  Ref bases = base != nullptr ? Ref::Steal(PyTuple_Pack(1, base)) : Ref();
  auto* type = reinterpret_cast<PyTypeObject*>(
      base != nullptr ? PyType_FromSpecWithBases(spec, bases.get()) : PyType_FromSpec(spec));
  if (type == nullptr || PyModule_AddType(module, type) < 0) return nullptr;
  return type;
}

bool CallAtExit(PyObject* hook) {
  Ref atexit = Ref::Steal(PyImport_ImportModule("atexit"));
  if (!atexit) return false;
  return static_cast<bool>(Ref::Steal(PyObject_CallMethod(atexit.get(), "register", "O", hook)));
}

PyObject* CVoidP() {
  static std::atomic<PyObject*> cache{nullptr};
  return FindOnce(&cache, []() -> PyObject* {
    Ref ctypes = Ref::Steal(PyImport_ImportModule("ctypes"));
    return ctypes ? PyObject_GetAttrString(ctypes.get(), "c_void_p") : nullptr;
  });
}

}  // namespace tether_py
