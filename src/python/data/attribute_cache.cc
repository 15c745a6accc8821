// SPDX-License-Identifier: Apache-2.0
// Attributes of wrappers: what a name means to a class, remembered.
//
// Finding the descriptor of a field costs CPython more than reading the field does, and CPython has
// no shortcut for our descriptors. So the classes that are registered for C++ types look up their
// attributes here: what a name means to a class is remembered until the class changes. For methods,
// and whatever else is not a field, CPython has shortcuts, but only for classes with the general
// functions. A class that is asked for such an attribute therefore gets those back. Only
// object.__setattr__ behaves differently for the two (IsBodyEmpty).
//
// What assigns an attribute, by class (ChooseSetAttr):
//   PyObject_GenericSetAttr   instances have a __dict__ or slots, for which CPython has shortcuts
//   SetAttribute              registered, with an empty body
//   CObject.__setattr__       all others, through CPython's slot function: object.__setattr__ takes
//                             such objects. It says how to allow a new attribute. A class whose
//                             fields are set often gets the first one, which is faster.
//
// Shared state: known_fields: the GIL; free-threaded builds do not use the cache. An entry is
// right while its class has the version that is written in it. The rest is set at import.
#include "python/data/attribute_cache.h"
#include "python/base/entry.h"

#include <cstring>

#include "python/base/python_api.h"
#include "python/data/field_access.h"
#include "python/data/field_accessors.h"
#include "python/data/field_property.h"

namespace tether_py {

namespace {

struct KnownField {
  PyTypeObject* cls;
  unsigned int version;  // of the class
  int num_slow;          // assignments by CObject.__setattr__
  PyObject* name;        // owned: another name must not reuse its address
  const Field* read;
  const Field* write;  // NULL if assignment is not allowed, or means something else
};
constexpr size_t kKnownFields = 256;
KnownField known_fields[kKnownFields];

inline KnownField* KnownFieldOf(PyTypeObject* cls, PyObject* name) {
  auto bits = (reinterpret_cast<uintptr_t>(cls) >> 6) + (reinterpret_cast<uintptr_t>(name) >> 4);
  return &known_fields[bits % kKnownFields];
}

inline bool IsCurrent(const KnownField* known, PyTypeObject* cls, PyObject* name) {
  return known->name == name && known->cls == cls && known->version == TypeVersion(cls);
}

bool IsSpecialName(PyObject* name) {
  return PyUnicode_GET_LENGTH(name) > 2 && PyUnicode_READ_CHAR(name, 0) == '_' &&
         PyUnicode_READ_CHAR(name, 1) == '_';
}

// The field that `name` means to the class. NULL without an error if it is not a field, or one that
// cannot be remembered. `is_other`: it is an attribute that CPython may have a shortcut for.
TVM_FFI_NO_INLINE const KnownField* LearnField(PyTypeObject* cls, PyObject* name, bool* is_other) {
  *is_other = false;
  if (!PyUnicode_CheckExact(name)) return nullptr;
  PyObject* found = _PyType_Lookup(cls, name);
  if (found == nullptr || Py_TYPE(found) != types.field_property) {
    *is_other = !IsSpecialName(name) && (found != nullptr || HasInstanceDict(cls));
    return nullptr;
  }
  PropertyExtra* extra = ExtraOf(found);
  unsigned int version = TypeVersion(cls);
  if (extra->field == nullptr || version == 0 || !PyUnicode_CHECK_INTERNED(name)) return nullptr;
  bool is_plain = extra->writable && Py_TYPE(extra->write) == types.field_setter;
  KnownField* known = KnownFieldOf(cls, name);
  PyObject* old = known->name;
  *known = {
      cls, version, 0, Py_NewRef(name), extra->field, is_plain ? FieldOf(extra->write) : nullptr};
  Py_XDECREF(old);  // a str: runs no code
  return known;
}

PyObject* GetAttribute(PyObject* self, PyObject* name) {
  PyTypeObject* cls = Py_TYPE(self);
  const KnownField* known = KnownFieldOf(cls, name);
  if (TVM_FFI_PREDICT_TRUE(IsCurrent(known, cls, name))) return ReadQuickly(*known->read, self);
  bool is_other;
  known = LearnField(cls, name, &is_other);
  if (known != nullptr) return ReadField(*known->read, self);
  if (is_other && cls->tp_getattro == GetAttribute) cls->tp_getattro = PyObject_GenericGetAttr;
  return PyObject_GenericGetAttr(self, name);
}

int SetAttribute(PyObject* self, PyObject* name, PyObject* value);

// Whether instances have room for something besides the wrapper.
bool HasSlots(PyTypeObject* cls) { return cls->tp_basicsize != types.object->tp_basicsize; }

TVM_FFI_NO_INLINE int SetAttributeSlow(PyObject* self, PyObject* name, PyObject* value) {
  PyTypeObject* cls = Py_TYPE(self);
  bool is_other;
  LearnField(cls, name, &is_other);
  if (is_other && cls->tp_setattro == SetAttribute && HasSlots(cls)) {
    cls->tp_setattro = PyObject_GenericSetAttr;
  }
  // Looked up while no error is set: for some names CPython would take it for its own, and clear
  // it.
  bool is_unknown = value != nullptr && PyUnicode_Check(name) && !HasInstanceDict(cls) &&
                    _PyType_Lookup(cls, name) == nullptr;
  int done = PyObject_GenericSetAttr(self, name, value);
  if (done < 0 && is_unknown && PyErr_ExceptionMatches(PyExc_AttributeError) != 0) {
    PyErr_Format(PyExc_AttributeError,
                 "'%.100s' object has no attribute '%U'; for attributes of its own its class needs "
                 "__slots__ = (\"__dict__\",)",
                 cls->tp_name, name);
  }
  return done;
}

int SetAttribute(PyObject* self, PyObject* name, PyObject* value) {
  PyTypeObject* cls = Py_TYPE(self);
  const KnownField* known = KnownFieldOf(cls, name);
  bool is_known = IsCurrent(known, cls, name) && known->write != nullptr && value != nullptr;
  return TVM_FFI_PREDICT_TRUE(is_known) ? WriteQuickly(*known->write, self, value)
                                        : SetAttributeSlow(self, name, value);
}

// object.__setattr__ refuses objects whose class has its own C function for assignments, and that
// cannot be changed. So only classes with an empty body get ours, mainly those that the package
// makes for types that nobody registered: they have no code that could call object.__setattr__, and
// their instances have no attributes besides the fields.
bool IsBodyEmpty(PyTypeObject* cls) {
  if (HasInstanceDict(cls) || cls->tp_basicsize != cls->tp_base->tp_basicsize) return false;
  PyObject *name, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(cls->tp_dict, &position, &name, &value) != 0) {
    bool is_code = PyFunction_Check(value) || Py_TYPE(value) == &PyProperty_Type ||
                   Py_TYPE(value) == &PyStaticMethod_Type || Py_TYPE(value) == &PyClassMethod_Type;
    const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
    if (text == nullptr) PyErr_Clear();
    if (is_code || text == nullptr || std::strncmp(text, "__annot", 7) == 0) return false;
  }
  return true;
}

// CObject.__setattr__, and CPython's function for classes that have a __setattr__ in their dict.
PyObject* own_setattr = nullptr;
PyObject* setattr_name = nullptr;
setattrofunc set_by_lookup = nullptr;
constexpr int kOften = 1000;

PyObject* SetAttr(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs != 2) {
    return PyErr_Format(PyExc_TypeError,
                        "__setattr__() takes a name and a value, got %zd arguments", nargs);
  }
  PyTypeObject* cls = Py_TYPE(self);
  KnownField* known = KnownFieldOf(cls, args[0]);
  bool is_often = IsCurrent(known, cls, args[0]) && ++known->num_slow == kOften;
  if (is_often && cls->tp_setattro == set_by_lookup) cls->tp_setattro = PyObject_GenericSetAttr;
  return SetAttribute(self, args[0], args[1]) == 0 ? Py_NewRef(Py_None) : nullptr;
}

PyMethodDef setattr_def = {"__setattr__", EntryOfAnyKind<SetAttr>(), METH_FASTCALL,
                           "__setattr__($self, name, value, /)\n--\n\n"
                           "Implement setattr(self, name, value)."};

// For a new class. object.__setattr__ looks at the bases too: it refuses a class that CPython's
// slot function serves if one of its bases has SetAttribute. So a class with code in its body takes
// SetAttribute away from its bases; its author is the one who needs the message. Any other class
// leaves its bases as they are and does without the slot function.
void ChooseSetAttr(PyTypeObject* cls) {
  bool is_own = _PyType_Lookup(cls, setattr_name) != own_setattr;
  bool is_bare = !HasInstanceDict(cls) && !HasSlots(cls);
  bool has_code = is_own || (is_bare && !IsBodyEmpty(cls));
  for (PyTypeObject* base = cls->tp_base; base != nullptr; base = base->tp_base) {
    if (base->tp_setattro != SetAttribute) continue;
    if (has_code) {
      base->tp_setattro = set_by_lookup;
    } else {
      is_bare = false;
    }
  }
  if (!is_own) cls->tp_setattro = is_bare ? set_by_lookup : PyObject_GenericSetAttr;
}

PyObject* ChooseSetAttr(PyObject*, PyObject* cls) {
  if (!kFreeThreaded && PyType_Check(cls)) ChooseSetAttr(reinterpret_cast<PyTypeObject*>(cls));
  Py_RETURN_NONE;
}

PyMethodDef cache_functions[] = {
    {"_choose_setattr", Entry<static_cast<PyCFunction>(ChooseSetAttr)>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void ForgetKnownAttributes() {
  for (KnownField& known : known_fields) Py_CLEAR(known.name);
}

void InstallFieldAccess(PyTypeObject* cls, bool is_python_defined) {
  if (kFreeThreaded || (cls->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return;
  // Tensors have no fields. Those who only exchange them use nothing but methods with special
  // names, for which a class does not get CPython's function back.
  bool may_have_fields = PyType_IsSubtype(cls, types.tensor) == 0;
  if (may_have_fields && cls->tp_getattro == PyObject_GenericGetAttr) {
    cls->tp_getattro = GetAttribute;
  }
  if (_PyType_Lookup(cls, setattr_name) != own_setattr) return;
  if (!is_python_defined && IsBodyEmpty(cls)) {
    cls->tp_setattro = SetAttribute;
  } else {
    ChooseSetAttr(cls);
  }
}

int InitAttributeCache(PyObject* module) {
  if (kFreeThreaded) return PyModule_AddFunctions(module, cache_functions);
  setattr_name = PyUnicode_InternFromString("__setattr__");
  own_setattr = PyDescr_NewMethod(types.object, &setattr_def);
  if (setattr_name == nullptr || own_setattr == nullptr) return -1;
  auto* cls = reinterpret_cast<PyObject*>(types.object);
  if (PyObject_SetAttr(cls, setattr_name, own_setattr) < 0) return -1;
  set_by_lookup = types.object->tp_setattro;
  return PyModule_AddFunctions(module, cache_functions);
}

}  // namespace tether_py
