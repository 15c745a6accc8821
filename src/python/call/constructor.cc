// SPDX-License-Identifier: Apache-2.0
// Classes whose __init__ only passes its arguments on to the type's C++ constructor.
//
// Such an __init__ is an Initializer. It goes from the arguments to C++ itself, also when a
// subclass calls it through super(), and leaves what is not simple, errors above all, to a function
// written in Python (_dunder.py), which it resembles. As long as it is the one a lookup would find,
// calling the class does not call it, but does the same at once.
//
// Shared state:
//   Constructors()         by constructors_mutex. Constructors are never freed.
//   recent                 lock-free; a cache of the above. A class whose constructor is replaced
//                          is taken out under the mutex.
//   Constructor::version   lock-free; the rest of a constructor is constant.
//   the interned names     set at import, constant afterwards.
#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/call/function.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// Never freed, like its class.
struct Constructor {
  PyTypeObject* cls;
  PyObject* init;       // what __init__ must be: the Initializer
  PyObject* in_python;  // what it stands for
  PyObject* type_info;  // what __tvm_ffi_type_info__ must be, or None
  TVMFFIObject* func;
  bool takes_keywords;  // in the form KWARGS, name, value, ...
  PyObject* names;      // of the positions: a tuple, empty if they have none
  PyObject* defaults;   // as many, MISSING where there is none; or empty: C++ knows them
  Py_ssize_t num_defaults;
  // The version of the class that was last found to be as above; 0 for none.
  std::atomic<unsigned int> version{0};
};

PyObject* init_name = nullptr;
PyObject* info_name = nullptr;

// All constructors, and a small table in front that answers nearly every time.
std::mutex constructors_mutex;
std::unordered_map<PyTypeObject*, Constructor*>& Constructors() {
  static auto* all = new std::unordered_map<PyTypeObject*, Constructor*>();
  return *all;
}
constexpr size_t kRecent = 256;
std::atomic<Constructor*> recent[kRecent];

std::atomic<Constructor*>& RecentOf(PyTypeObject* cls) {
  return recent[(reinterpret_cast<uintptr_t>(cls) >> 5) % kRecent];
}

TVM_FFI_NO_INLINE Constructor* FindSlow(PyTypeObject* cls) {
  std::lock_guard<std::mutex> lock(constructors_mutex);
  auto it = Constructors().find(cls);
  if (it == Constructors().end()) return nullptr;
  RecentOf(cls).store(it->second, std::memory_order_release);
  return it->second;
}

inline Constructor* Find(PyTypeObject* cls) {
  Constructor* found = RecentOf(cls).load(std::memory_order_acquire);
  return TVM_FFI_PREDICT_TRUE(found != nullptr && found->cls == cls) ? found : FindSlow(cls);
}

// Whether type.__call__ would end up in the recorded __init__. No error is left behind.
TVM_FFI_NO_INLINE bool Validate(Constructor* constructor) {
  PyTypeObject* cls = constructor->cls;
  if (cls->tp_new != types.object->tp_new) return false;
  if ((cls->tp_flags & Py_TPFLAGS_IS_ABSTRACT) != 0) return false;
  // Looking up gives the class a version, which any change of it or of a base takes away.
  if (_PyType_Lookup(cls, init_name) != constructor->init) return false;
  if (constructor->type_info != Py_None &&
      _PyType_Lookup(cls, info_name) != constructor->type_info) {
    return false;
  }
  constructor->version.store(TypeVersion(cls), std::memory_order_relaxed);
  return true;
}

inline bool IsCurrent(Constructor* constructor) {
  unsigned int version = constructor->version.load(std::memory_order_relaxed);
  if (TVM_FFI_PREDICT_FALSE(!CallsAsType(constructor->cls))) return false;
  return TVM_FFI_PREDICT_TRUE(version != 0 && version == TypeVersion(constructor->cls)) ||
         Validate(constructor);
}

// As type.__call__ does it.
TVM_FFI_NO_INLINE PyObject* ConstructByInit(PyObject* cls, PyObject* const* args, Py_ssize_t nargs,
                                            PyObject* kwnames) {
  Ref tuple = Ref::Steal(PyTuple_New(nargs));
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(args[i]));
  Ref kwargs;
  if (kwnames != nullptr && PyTuple_GET_SIZE(kwnames) != 0) {
    kwargs = Ref::Steal(PyDict_New());
    if (!kwargs) return nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i) {
      PyObject* name = PyTuple_GET_ITEM(kwnames, i);
      if (PyDict_SetItem(kwargs.get(), name, args[nargs + i]) < 0) return nullptr;
    }
  }
  // A metaclass with a __call__ of its own has replaced this one.
  return Py_TYPE(cls)->tp_call(cls, tuple.get(), kwargs.get());
}

// Makes the object and binds it to `self`, then returns None; without a `self`, to a new wrapper.
PyObject* ConstructFrom(Constructor* constructor, Wrapper* self, PyObject* const* args,
                        Py_ssize_t nargs) {
  TVMFFIAny result;
  tie::StoreNone(&result);
  {
    CallArguments converted;
    if (!converted.AddAll(args, nargs)) return nullptr;
    if (int code = CallDirectly(constructor->func, &converted, &result)) {
      return RaiseFromCall(code, args, nargs);
    }
    AfterSuccess();
  }
  PyTypeObject* cls = constructor->cls;
  if (TVM_FFI_PREDICT_FALSE(result.type_index < TypeIndex::kTVMFFIStaticObjectBegin)) {
    return PyErr_Format(PyExc_TypeError, "the constructor of %s did not return an object",
                        cls->tp_name);
  }
  if (self != nullptr) return BindNew(self, result.v_obj) ? Py_NewRef(Py_None) : nullptr;
  Wrapper* w = AllocateWrapper(cls);
  if (TVM_FFI_PREDICT_FALSE(w == nullptr)) {
    Engine::DropStrong(result.v_obj);
    return nullptr;
  }
  BindNew(w, result.v_obj);  // a new one takes it
  return AsObject(w);
}

// Whether the arguments lie as C++ takes them: no keywords, or keywords that continue the
// positional arguments in order. Not where one of them is MISSING: that asks for the default. A
// name that is found is interned, as the constructor's are; others are left to the slower way.
inline bool AreInOrder(const Constructor* constructor, PyObject* const* args, Py_ssize_t nargs,
                       PyObject* kwnames) {
  if (TVM_FFI_PREDICT_TRUE(kwnames == nullptr)) return nargs >= constructor->num_defaults;
  Py_ssize_t total = nargs + PyTuple_GET_SIZE(kwnames);
  if (total < constructor->num_defaults) return false;
  if (total == nargs) return true;  // no keywords after all
  if (total > PyTuple_GET_SIZE(constructor->names)) return false;
  for (Py_ssize_t i = nargs; i < total; ++i) {
    bool is_here = PyTuple_GET_ITEM(constructor->names, i) == PyTuple_GET_ITEM(kwnames, i - nargs);
    if (!is_here || args[i] == sentinels.missing) return false;
  }
  return true;
}

// Puts keywords, in any order, and defaults into their positions, up to the last one that is given
// or filled. False if a position stays empty, and where a keyword is MISSING or not found.
bool Place(const Constructor* constructor, PyObject* const* args, Py_ssize_t nargs,
           PyObject* kwnames, std::vector<PyObject*>* placed) {
  Py_ssize_t nkw = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  Py_ssize_t total = std::max(nargs + nkw, constructor->num_defaults);
  if (total > PyTuple_GET_SIZE(constructor->names)) return false;
  placed->assign(args, args + nargs);
  placed->resize(total, nullptr);
  for (Py_ssize_t i = 0; i < nkw; ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    Py_ssize_t place = nargs;
    while (place < total && PyTuple_GET_ITEM(constructor->names, place) != name) ++place;
    if (place == total || args[nargs + i] == sentinels.missing) return false;
    (*placed)[place] = args[nargs + i];
  }
  for (Py_ssize_t i = nargs; i < total; ++i) {
    PyObject*& value = (*placed)[i];
    if (value == nullptr && i < constructor->num_defaults) {
      value = PyTuple_GET_ITEM(constructor->defaults, i);
    }
    if (value == nullptr || value == sentinels.missing) return false;
  }
  return true;
}

// Positional arguments, KWARGS, and the names and values of those keywords that are not MISSING.
void Pack(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
          std::vector<PyObject*>* packed) {
  packed->assign(args, args + nargs);
  packed->push_back(sentinels.kwargs);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i) {
    if (args[nargs + i] == sentinels.missing) continue;
    packed->push_back(PyTuple_GET_ITEM(kwnames, i));
    packed->push_back(args[nargs + i]);
  }
}

// Arguments that are not in order.
TVM_FFI_NO_INLINE PyObject* ConstructSlowly(Constructor* constructor, Wrapper* self,
                                            PyObject* const* args, Py_ssize_t nargs,
                                            PyObject* kwnames) {
  std::vector<PyObject*> placed;
  if (!Place(constructor, args, nargs, kwnames, &placed)) {
    if (!constructor->takes_keywords || kwnames == nullptr) {
      // That __init__ calls the function in Python, as does what is called here.
      if (self == nullptr) {
        return ConstructByInit(reinterpret_cast<PyObject*>(constructor->cls), args, nargs, kwnames);
      }
      return PyObject_Vectorcall(constructor->in_python, args - 1, nargs + 1, kwnames);
    }
    Pack(args, nargs, kwnames, &placed);
  }
  return ConstructFrom(constructor, self, placed.data(), static_cast<Py_ssize_t>(placed.size()));
}

inline PyObject* ConstructAny(Constructor* constructor, Wrapper* self, PyObject* const* args,
                              Py_ssize_t nargs, PyObject* kwnames) {
  if (TVM_FFI_PREDICT_FALSE(!AreInOrder(constructor, args, nargs, kwnames))) {
    return ConstructSlowly(constructor, self, args, nargs, kwnames);
  }
  if (kwnames != nullptr) nargs += PyTuple_GET_SIZE(kwnames);
  return ConstructFrom(constructor, self, args, nargs);
}

PyObject* Construct(PyObject* cls, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  Constructor* constructor = Find(reinterpret_cast<PyTypeObject*>(cls));
  if (TVM_FFI_PREDICT_FALSE(constructor == nullptr || !IsCurrent(constructor))) {
    return ConstructByInit(cls, args, nargs, kwnames);
  }
  return ConstructAny(constructor, nullptr, args, nargs, kwnames);
}

// ---- __init__

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

// Whatever is not a matter of calls is the function's in Python.
PyObject* GetInitAttribute(PyObject* self, PyObject* name) {
  bool is_slot = _PyType_Lookup(Py_TYPE(self), name) != nullptr;
  bool is_text =
      PyUnicode_Check(name) && (PyUnicode_CompareWithASCIIString(name, "__doc__") == 0 ||
                                PyUnicode_CompareWithASCIIString(name, "__module__") == 0);
  return is_slot && !is_text ? PyObject_GenericGetAttr(self, name)
                             : PyObject_GetAttr(AsInitializer(self)->constructor->in_python, name);
}

int SetInitAttribute(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(AsInitializer(self)->constructor->in_python, name, value);
}

PyObject* ReduceInit(PyObject* self, PyObject*) {
  return ReduceToAttribute(AsInitializer(self)->constructor->cls, init_name);
}

PyMethodDef initializer_methods[] = {{"__reduce__", Entry<ReduceInit>, METH_NOARGS, nullptr},
                                     {nullptr, nullptr, 0, nullptr}};

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
  {
    std::lock_guard<std::mutex> lock(constructors_mutex);
    Constructors()[type] = made;
    RecentOf(type).store(nullptr, std::memory_order_release);
  }
  if (EnableVectorcall(type)) type->tp_vectorcall = Entry<Construct>;
  return init.release();
}

PyMethodDef constructor_functions[] = {
    {"_make_initializer", Entry<MakeInitializer>, METH_VARARGS,
     "The __init__ of a class that only forwards to an FFI function."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* InitHandleByConstructor(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs < 1 || !PyObject_TypeCheck(args[0], types.function)) {
    return PyErr_Format(PyExc_TypeError,
                        "__init_handle_by_constructor__ expects an ffi.Function first");
  }
  Wrapper* w = AsWrapper(self);
  ffi::ObjectPtr<ffi::Object> before = TakeBefore(w);
  TVMFFIObject* func = UseHandle(AsWrapper(args[0]));
  if (func == nullptr) return nullptr;
  TVMFFIAny result;
  tie::StoreNone(&result);
  {
    CallArguments converted;
    if (!converted.AddAll(args + 1, nargs - 1)) return nullptr;
    if (int code = TVMFFIFunctionCall(func, converted.data(), converted.size(), &result)) {
      return RaiseFromCall(code, args + 1, nargs - 1);
    }
  }
  if (result.type_index < TypeIndex::kTVMFFIStaticObjectBegin) {
    return PyErr_Format(PyExc_TypeError, "the constructor of %s did not return an object",
                        Py_TYPE(self)->tp_name);
  }
  if (!BindNew(w, result.v_obj)) return nullptr;
  Py_RETURN_NONE;
}

int InitConstructors(PyObject* module) {
  init_name = PyUnicode_InternFromString("__init__");
  info_name = PyUnicode_InternFromString("__tvm_ffi_type_info__");
  initializer_type = AddType(module, &initializer_spec, nullptr);
  if (init_name == nullptr || info_name == nullptr || initializer_type == nullptr) return -1;
  return PyModule_AddFunctions(module, constructor_functions);
}

}  // namespace tether_py
