// SPDX-License-Identifier: Apache-2.0
// MethodDescriptor: what a class stores for a reflected method.
//
// A call checks the object and goes on in the function, whose first argument is that object. The
// interpreter calls descriptors of this kind without making a bound method first.
//
// Shared state: method_type: set at import. A descriptor does not change after it is made, but for
// plain_cls, an atomic that is set once.
#include "python/call/method.h"

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/call/function_class.h"
#include "python/convert/convert.h"

namespace tether_py {

namespace {

struct Method {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyTypeObject* cls;  // that the method was defined for
  std::atomic<PyTypeObject*>
      plain_cls;              // the same once its instances are known to be plain wrappers
  FunctionWrapper* function;  // takes the object first
  PyObject* name;
  PyObject* record;  // the TypeMethod, which knows the rest
  PyObject* weakrefs;
};

Method* AsMethod(PyObject* obj) { return reinterpret_cast<Method*>(obj); }

// An object of another class will do if its type's class is the right one: a class may have been
// registered after the object came to Python.
bool CheckObject(Method* m, PyObject* self) {
  if (PyObject_TypeCheck(self, m->cls)) return true;
  if (IsWrapper(self)) {
    TVMFFIObject* h = UseHandle(AsWrapper(self));
    if (h == nullptr) return false;
    PyTypeObject* cls = FindClassOfIndex(h->type_index);
    if (cls != nullptr && PyType_IsSubtype(cls, m->cls)) return true;
  }
  PyErr_Format(PyExc_TypeError, "%s.%U() must be called on an instance of '%s', not '%s'",
               m->cls->tp_name, m->name, m->cls->tp_name, Py_TYPE(self)->tp_name);
  return false;
}

// CheckAndCall and CallMethod do not throw, nor does the entry of the function that they end in. So
// CallMethod compiles to a check and a jump.

using FunctionEntry = PyObject* (*)(PyObject*, PyObject* const*, size_t, PyObject*) noexcept;

inline PyObject* CallChecked(Method* m, vectorcallfunc entry, PyObject* const* args, size_t nargs,
                             PyObject* kwnames) {
  auto call = reinterpret_cast<FunctionEntry>(entry);
  return call(reinterpret_cast<PyObject*>(m->function), args, nargs, kwnames);
}

// A class that was found plain stays plain: the setter found for a class is never replaced.
void LearnClass(Method* m, PyObject* self) {
  bool is_plain = Py_TYPE(self) == m->cls && IsPlainWrapper(self);
  if (is_plain) m->plain_cls.store(m->cls, std::memory_order_relaxed);
}

TVM_FFI_NO_INLINE PyObject* CheckAndCall(Method* m, PyObject* const* args, size_t nargs,
                                         PyObject* kwnames) noexcept {
  if (nargs == 0) {
    return PyErr_Format(PyExc_TypeError, "unbound method %s.%U() needs an argument",
                        m->cls->tp_name, m->name);
  }
  if (!CheckObject(m, args[0])) return nullptr;
  LearnClass(m, args[0]);
  return CallChecked(m, m->function->vectorcall, args, nargs, kwnames);
}

PyObject* CallMethod(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Method* m = AsMethod(self);
  auto nargs = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  bool is_right = nargs != 0 && Py_TYPE(args[0]) == m->plain_cls.load(std::memory_order_relaxed);
  return TVM_FFI_PREDICT_TRUE(is_right)
             ? CallChecked(m, m->function->call_with_self, args, nargs, kwnames)
             : CheckAndCall(m, args, nargs, kwnames);
}

PyObject* Repr(PyObject* self) {
  return PyUnicode_FromFormat("<method '%U' of '%s' objects>", AsMethod(self)->name,
                              AsMethod(self)->cls->tp_name);
}

// The module is that of the class. This and the signature cannot be descriptors of this type:
// CPython and inspect would find them where they look for the type's own.
PyObject* GetAttribute(PyObject* self, PyObject* name) {
  if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__module__") == 0) {
    return PyObject_GetAttr(reinterpret_cast<PyObject*>(AsMethod(self)->cls), name);
  }
  if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__signature__") == 0) {
    return Describe(self, "__signature__");
  }
  return PyObject_GenericGetAttr(self, name);
}

PyObject* GetName(PyObject* self, void*) { return Py_NewRef(AsMethod(self)->name); }

PyObject* GetQualName(PyObject* self, void*) {
  Method* m = AsMethod(self);
  Ref cls = Ref::Steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(m->cls), "__qualname__"));
  return cls ? PyUnicode_FromFormat("%S.%U", cls.get(), m->name) : nullptr;
}

PyObject* GetDoc(PyObject* self, void*) {
  return PyObject_GetAttrString(AsMethod(self)->record, "doc");
}

PyObject* GetTextSignature(PyObject* self, void*) { return Describe(self, "__text_signature__"); }

PyObject* Reduce(PyObject* self, PyObject*) {
  return ReduceToAttribute(AsMethod(self)->cls, AsMethod(self)->name);
}

// Without tp_clear, like CPython's own method descriptors: a ring through one goes through the
// class.
int Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(AsMethod(self)->cls);
  Py_VISIT(AsMethod(self)->function);
  Py_VISIT(AsMethod(self)->record);
  return 0;
}

void Dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Method* m = AsMethod(self);
  if (m->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  Py_CLEAR(m->cls);
  Py_CLEAR(m->function);
  Py_CLEAR(m->name);
  Py_CLEAR(m->record);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef method_methods[] = {{"__reduce__", Entry<Reduce>, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

PyGetSetDef method_getset[] = {
    {"__name__", Entry<GetName>, nullptr, nullptr, nullptr},
    {"__qualname__", Entry<GetQualName>, nullptr, nullptr, nullptr},
    {"__doc__", Entry<GetDoc>, nullptr, nullptr, nullptr},
    {"__text_signature__", Entry<GetTextSignature>, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef method_members[] = {
    {"__objclass__", T_OBJECT, offsetof(Method, cls), READONLY, nullptr},
    {"func", T_OBJECT, offsetof(Method, function), READONLY,
     "The function, which takes the object first."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Method, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Method, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot method_slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                              {Py_tp_descr_get, Slot<GetBound>()},
                              {Py_tp_repr, Slot<Repr>()},
                              {Py_tp_getattro, Slot<GetAttribute>()},
                              {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
                              {Py_tp_methods, method_methods},
                              {Py_tp_getset, method_getset},
                              {Py_tp_members, method_members},
                              {0, nullptr}};

PyType_Spec method_spec = {"tvm_ffi.core.MethodDescriptor", sizeof(Method), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                               Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_IMMUTABLETYPE |
                               Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           method_slots};

PyTypeObject* method_type = nullptr;

PyObject* MakeMethod(PyObject*, PyObject* args) {
  PyObject *cls, *name, *function, *record;
  if (!PyArg_ParseTuple(args, "O!UO!O", &PyType_Type, &cls, &name, types.function, &function,
                        &record)) {
    return nullptr;
  }
  auto* m = AsMethod(method_type->tp_alloc(method_type, 0));
  if (m == nullptr) return nullptr;
  m->vectorcall = Entry<CallMethod>;
  m->cls = reinterpret_cast<PyTypeObject*>(Py_NewRef(cls));
  m->function = reinterpret_cast<FunctionWrapper*>(Py_NewRef(function));
  m->name = Py_NewRef(name);
  m->record = Py_NewRef(record);
  return reinterpret_cast<PyObject*>(m);
}

PyMethodDef functions[] = {{"_make_method", Entry<MakeMethod>, METH_VARARGS,
                            "(class, name, function, record): what the class stores for a method."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* GetBound(PyObject* self, PyObject* obj, PyObject*) {
  if (obj == nullptr || obj == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, obj);
}

PyObject* ReduceToAttribute(PyTypeObject* cls, PyObject* name) {
  Ref builtins = Ref::Steal(PyImport_ImportModule("builtins"));
  Ref getattr = builtins ? Ref::Steal(PyObject_GetAttrString(builtins.get(), "getattr")) : Ref();
  return getattr ? Py_BuildValue("O(OO)", getattr.get(), cls, name) : nullptr;
}

int InitMethods(PyObject* module) {
  method_type = AddType(module, &method_spec, nullptr);
  return method_type != nullptr ? PyModule_AddFunctions(module, functions) : -1;
}

}  // namespace tether_py
