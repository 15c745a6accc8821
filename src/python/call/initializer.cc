// SPDX-License-Identifier: Apache-2.0
// An __init__ that only passes its arguments on to the type's C++ constructor.
//
// It converts the arguments and calls C++ directly, also when a subclass calls it through super().
// Unusual cases, errors above all, go to a Python function (_dunder.py) with the same behaviour. As
// long as it is the one a lookup would find, calling the class does not call it, but does the same
// at once (constructor.cc).
//
// Shared state: initializer_type: set at import, constant afterwards.
#include "python/call/initializer.h"

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/call/constructor.h"
#include "python/call/method.h"

namespace tether_py {

namespace {

struct Initializer {
  PyObject_HEAD vectorcallfunc vectorcall;
  Constructor* constructor;
  PyObject* weakrefs;
};

Initializer* AsInitializer(PyObject* obj) { return reinterpret_cast<Initializer*>(obj); }

// Whether `self` is a new object of the class, or of a subclass that is not registered.
bool IsSimple(const Constructor* constructor, PyObject* self) {
  if (!PyObject_TypeCheck(self, constructor->cls)) return false;
  if (AsWrapper(self)->handle.load(std::memory_order_relaxed) != tie::kEmpty) return false;
  return constructor->type_info == Py_None ||
         _PyType_Lookup(Py_TYPE(self), info_name) == constructor->type_info;
}

PyObject* Initialize(PyObject* callee, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Constructor* constructor = AsInitializer(callee)->constructor;
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  if (TVM_FFI_PREDICT_FALSE(nargs == 0 || !IsSimple(constructor, args[0]))) {
    return PyObject_Vectorcall(constructor->in_python, args, nargs, kwnames);
  }
  return ConstructAny(constructor, AsWrapper(args[0]), args + 1, nargs - 1, kwnames);
}

PyObject* ReprInit(PyObject* self) {
  return PyObject_Repr(AsInitializer(self)->constructor->in_python);
}

// All attributes that do not concern calls come from the function written in Python.
PyObject* GetInitAttribute(PyObject* self, PyObject* name) {
  bool is_slot = _PyType_Lookup(Py_TYPE(self), name) != nullptr;
  bool is_module =
      PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__module__") == 0;
  return is_slot && !is_module
             ? PyObject_GenericGetAttr(self, name)
             : PyObject_GetAttr(AsInitializer(self)->constructor->in_python, name);
}

// A descriptor, because pydoc looks for it as object.__getattribute__ does.
PyObject* GetInitDoc(PyObject* self, void*) {
  return PyObject_GetAttrString(AsInitializer(self)->constructor->in_python, "__doc__");
}

int SetInitAttribute(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(AsInitializer(self)->constructor->in_python, name, value);
}

PyObject* ReduceInit(PyObject* self, PyObject*) {
  return ReduceToAttribute(AsInitializer(self)->constructor->cls, init_name);
}

PyMethodDef initializer_methods[] = {{"__reduce__", Entry<ReduceInit>, METH_NOARGS, nullptr},
                                     {nullptr, nullptr, 0, nullptr}};

PyGetSetDef initializer_getset[] = {{"__doc__", Entry<GetInitDoc>, nullptr, nullptr, nullptr},
                                    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef initializer_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Initializer, weakrefs), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Initializer, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot initializer_slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                   {Py_tp_descr_get, Slot<GetBound>()},
                                   {Py_tp_repr, Slot<ReprInit>()},
                                   {Py_tp_getattro, Slot<GetInitAttribute>()},
                                   {Py_tp_setattro, Slot<SetInitAttribute>()},
                                   {Py_tp_methods, initializer_methods},
                                   {Py_tp_getset, initializer_getset},
                                   {Py_tp_members, initializer_members},
                                   {0, nullptr}};

PyType_Spec initializer_spec = {"tvm_ffi.core.Initializer", sizeof(Initializer), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                    Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_IMMUTABLETYPE |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                initializer_slots};

PyTypeObject* initializer_type = nullptr;

PyObject* MakeInitializer(PyObject*, PyObject* args) {
  PyObject *cls, *in_python, *type_info, *func, *names, *defaults;
  int takes_keywords;
  if (!PyArg_ParseTuple(args, "O!OOO!pO!O!", &PyType_Type, &cls, &in_python, &type_info,
                        types.function, &func, &takes_keywords, &PyTuple_Type, &names,
                        &PyTuple_Type, &defaults)) {
    return nullptr;
  }
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  if (!PyType_IsSubtype(type, types.object) || IsFunctionClass(type)) return Py_NewRef(in_python);
  if (PyTuple_GET_SIZE(defaults) > PyTuple_GET_SIZE(names)) {
    return PyErr_Format(PyExc_ValueError, "more defaults than names");
  }
  TVMFFIObject* h = UseHandle(AsWrapper(func));
  if (h == nullptr) return nullptr;
  Ref init = Ref::Steal(initializer_type->tp_alloc(initializer_type, 0));
  if (!init) return nullptr;
  Engine::AddStrong(h);
  auto* made = new Constructor{type,
                               Py_NewRef(init.get()),
                               Py_NewRef(in_python),
                               Py_NewRef(type_info),
                               h,
                               takes_keywords != 0,
                               Py_NewRef(names),
                               Py_NewRef(defaults),
                               PyTuple_GET_SIZE(defaults)};
  Py_INCREF(cls);
  AsInitializer(init.get())->vectorcall = Entry<Initialize>;
  AsInitializer(init.get())->constructor = made;
  AddConstructor(made);
  return init.release();
}

PyMethodDef initializer_functions[] = {
    {"_make_initializer", Entry<MakeInitializer>, METH_VARARGS,
     "The __init__ of a class that only forwards to an FFI function."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitInitializers(PyObject* module) {
  initializer_type = AddType(module, &initializer_spec, nullptr);
  if (initializer_type == nullptr) return -1;
  return PyModule_AddFunctions(module, initializer_functions);
}

}  // namespace tether_py
