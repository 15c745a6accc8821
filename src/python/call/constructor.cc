// SPDX-License-Identifier: Apache-2.0
// Calling a class whose __init__ only passes its arguments on to the type's C++ constructor.
//
// The class keeps that __init__, for subclasses and for introspection. As long as it is the one a
// lookup would find, calling the class goes from the arguments to C++ without it.
//
// Shared state:
//   Constructors()         by constructors_mutex. Constructors are never freed.
//   recent                 lock-free; a cache of the above. A class whose constructor is replaced
//                          is taken out under the mutex.
//   Constructor::version   lock-free; the rest of a constructor is constant.
//   the names and markers  (Validate, ConstructWithKeywords) set on first use, constant afterwards.
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
  PyObject* init;       // what __init__ must be
  PyObject* type_info;  // what __tvm_ffi_type_info__ must be, or None
  TVMFFIObject* func;
  bool takes_keywords;  // in the form KWARGS, name, value, ...
  PyObject* names;      // of the positions: a tuple, empty if they have none
  // The version of the class that was last found to be as above; 0 for none.
  std::atomic<unsigned int> version{0};
};

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
  static PyObject* init_name = PyUnicode_InternFromString("__init__");
  static PyObject* info_name = PyUnicode_InternFromString("__tvm_ffi_type_info__");
  PyTypeObject* cls = constructor->cls;
  if (init_name == nullptr || info_name == nullptr || cls->tp_new != types.object->tp_new) {
    return false;
  }
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

PyObject* ConstructFrom(Constructor* constructor, PyObject* const* args, Py_ssize_t nargs) {
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
  Wrapper* w = AllocateWrapper(cls);
  if (TVM_FFI_PREDICT_FALSE(w == nullptr)) {
    Engine::DropStrong(result.v_obj);
    return nullptr;
  }
  BindNew(w, result.v_obj);  // a new one takes it
  return AsObject(w);
}

// Whether the keywords continue the positional arguments in order: then all of them lie as they
// would without names. Not where one of them is MISSING: that asks for the default. A name that is
// found is interned, as the constructor's are; others are left to the slower way.
inline bool AreKeywordsInOrder(const Constructor* constructor, PyObject* const* args,
                               Py_ssize_t nargs, PyObject* kwnames) {
  Py_ssize_t total = nargs + PyTuple_GET_SIZE(kwnames);
  if (total > PyTuple_GET_SIZE(constructor->names)) return false;
  for (Py_ssize_t i = nargs; i < total; ++i) {
    bool is_here = PyTuple_GET_ITEM(constructor->names, i) == PyTuple_GET_ITEM(kwnames, i - nargs);
    if (!is_here || args[i] == sentinels.missing) return false;
  }
  return true;
}

// Keywords that continue the positional arguments, in any order, are put into their positions. 0 if
// they do not, and where one of them is MISSING: that asks for the default.
Py_ssize_t PlaceKeywords(const Constructor* constructor, PyObject* const* args, Py_ssize_t nargs,
                         PyObject* kwnames, PyObject** placed, Py_ssize_t room) {
  Py_ssize_t nkw = PyTuple_GET_SIZE(kwnames);
  Py_ssize_t total = nargs + nkw;
  if (total > room || total > PyTuple_GET_SIZE(constructor->names)) return 0;
  std::fill(placed, placed + total, nullptr);
  std::copy(args, args + nargs, placed);
  for (Py_ssize_t i = 0; i < nkw; ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    Py_ssize_t place = nargs;
    while (place < total && PyTuple_GET_ITEM(constructor->names, place) != name) ++place;
    if (place == total || args[nargs + i] == sentinels.missing) return 0;
    placed[place] = args[nargs + i];
  }
  return std::find(placed, placed + total, nullptr) == placed + total ? total : 0;
}

// Positional arguments, KWARGS, and the names and values of those keywords that are not MISSING.
PyObject* ConstructWithKeywords(Constructor* constructor, PyObject* const* args, Py_ssize_t nargs,
                                PyObject* kwnames) {
  std::vector<PyObject*> packed(args, args + nargs);
  packed.push_back(sentinels.kwargs);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i) {
    if (args[nargs + i] == sentinels.missing) continue;
    packed.push_back(PyTuple_GET_ITEM(kwnames, i));
    packed.push_back(args[nargs + i]);
  }
  return ConstructFrom(constructor, packed.data(), static_cast<Py_ssize_t>(packed.size()));
}

PyObject* Construct(PyObject* cls, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  Constructor* constructor = Find(reinterpret_cast<PyTypeObject*>(cls));
  if (TVM_FFI_PREDICT_FALSE(constructor == nullptr || !IsCurrent(constructor))) {
    return ConstructByInit(cls, args, nargs, kwnames);
  }
  if (TVM_FFI_PREDICT_TRUE(kwnames == nullptr || PyTuple_GET_SIZE(kwnames) == 0)) {
    return ConstructFrom(constructor, args, nargs);
  }
  if (TVM_FFI_PREDICT_TRUE(AreKeywordsInOrder(constructor, args, nargs, kwnames))) {
    return ConstructFrom(constructor, args, nargs + PyTuple_GET_SIZE(kwnames));
  }
  constexpr Py_ssize_t kRoom = 16;
  PyObject* placed[kRoom];
  Py_ssize_t total = PlaceKeywords(constructor, args, nargs, kwnames, placed, kRoom);
  if (total != 0) return ConstructFrom(constructor, placed, total);
  if (!constructor->takes_keywords) return ConstructByInit(cls, args, nargs, kwnames);
  return ConstructWithKeywords(constructor, args, nargs, kwnames);
}

PyObject* SetConstructor(PyObject*, PyObject* args) {
  PyObject *cls, *init, *type_info, *func, *names;
  int takes_keywords;
  if (!PyArg_ParseTuple(args, "O!OOO!pO!", &PyType_Type, &cls, &init, &type_info, types.function,
                        &func, &takes_keywords, &PyTuple_Type, &names)) {
    return nullptr;
  }
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  if (!PyType_IsSubtype(type, types.object) || IsFunctionClass(type)) Py_RETURN_NONE;
  TVMFFIObject* h = UseHandle(AsWrapper(func));
  if (h == nullptr) return nullptr;
  Engine::AddStrong(h);
  auto* made = new Constructor{type, Py_NewRef(init),     Py_NewRef(type_info),
                               h,    takes_keywords != 0, Py_NewRef(names)};
  Py_INCREF(cls);
  {
    std::lock_guard<std::mutex> lock(constructors_mutex);
    Constructors()[type] = made;
    RecentOf(type).store(nullptr, std::memory_order_release);
  }
  if (EnableVectorcall(type)) type->tp_vectorcall = Entry<Construct>;
  Py_RETURN_NONE;
}

PyMethodDef constructor_functions[] = {
    {"_set_constructor", Entry<SetConstructor>, METH_VARARGS,
     "Let calls of a class skip an __init__ that only forwards to an FFI function."},
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
  return PyModule_AddFunctions(module, constructor_functions);
}

}  // namespace tether_py
