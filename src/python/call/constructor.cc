// SPDX-License-Identifier: Apache-2.0
// Calls of a class that go straight to its C++ constructor: those of a class whose __init__ only
// passes its arguments on (initializer.cc).
//
// Shared state:
//   Constructors()         by constructors_mutex. Constructors are never freed.
//   recent                 lock-free; a cache of the above. A class whose constructor is replaced
//                          is taken out under the mutex.
//   Constructor::version   lock-free; the rest of a constructor is constant.
//   the interned names     set at import, constant afterwards.
#include <mutex>
#include <unordered_map>

#include "python/base/entry.h"
#include "python/call/call_environment.h"
#include "python/call/constructor.h"
#include "python/call/function.h"
#include "python/call/parameters.h"
#include "python/convert/convert.h"
#include "python/convert/departures.h"
#include "python/convert/errors.h"
#include "python/wrap/sentinels.h"

namespace tether_py {

using ffi::TypeIndex;

PyObject* init_name = nullptr;
PyObject* info_name = nullptr;

namespace {

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

// CallConstructor where tensors among the arguments bring their stream and allocator.
TVM_FFI_NO_INLINE bool CallInContext(TVMFFIObject* func, PyObject* const* args,
                                     CallArguments* converted, TVMFFIAny* result) {
  return InEnvironment(args, converted, result,
                       [&] { return CallDirectly(func, converted, result); });
}

// Calls a constructor and keeps the GIL. `args` is what Python gave. False with an error set.
inline bool CallConstructor(TVMFFIObject* func, PyObject* const* args, CallArguments* converted,
                            TVMFFIAny* result) {
  if (TVM_FFI_PREDICT_FALSE(converted->context() != nullptr)) {
    return CallInContext(func, args, converted, result);
  }
  if (int code = CallDirectly(func, converted, result)) {
    RaiseFromCall(code, args, converted->size());
    return false;
  }
  AfterSuccess();
  return true;
}

// False with an error set.
TVM_FFI_NO_INLINE bool CallWithAny(Constructor* constructor, PyObject* const* args,
                                   Py_ssize_t nargs, TVMFFIAny* result) {
  CallArguments converted;
  return converted.AddAll(args, nargs) &&
         CallConstructor(constructor->func, args, &converted, result);
}

// The object that C++ makes, or NULL with an error set.
TVM_FFI_INLINE TVMFFIObject* MakeObject(Constructor* constructor, PyObject* const* args,
                                        Py_ssize_t nargs) {
  TVMFFIObject* func = constructor->func;
  TVMFFIAny result;
  tie::StoreNone(&result);
  IntArguments ints;
  if (ints.Load(args, nargs)) {
    int code = CallDirectly(func, ints.data(), static_cast<int32_t>(nargs), &result);
    if (TVM_FFI_PREDICT_FALSE(code != 0)) {
      RaiseFromCall(code, args, nargs);
      return nullptr;
    }
    AfterSuccess();
  } else if (!CallWithAny(constructor, args, nargs, &result)) {
    return nullptr;
  }
  if (TVM_FFI_PREDICT_TRUE(result.type_index >= TypeIndex::kTVMFFIStaticObjectBegin)) {
    return result.v_obj;
  }
  PyErr_Format(PyExc_TypeError, "the constructor of %s did not return an object",
               constructor->cls->tp_name);
  return nullptr;
}

TVM_FFI_INLINE PyObject* ConstructNew(Constructor* constructor, PyObject* const* args,
                                      Py_ssize_t nargs) {
  TVMFFIObject* h = MakeObject(constructor, args, nargs);
  if (TVM_FFI_PREDICT_FALSE(h == nullptr)) return nullptr;
  Wrapper* w = AllocateWrapper(constructor->cls);
  if (TVM_FFI_PREDICT_FALSE(w == nullptr)) {
    Engine::DropStrong(h);
    return nullptr;
  }
  BindFresh(w, h);
  return AsObject(w);
}

PyObject* Construct(PyObject* cls, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  Constructor* constructor = Find(reinterpret_cast<PyTypeObject*>(cls));
  if (TVM_FFI_PREDICT_FALSE(constructor == nullptr || !IsCurrent(constructor))) {
    return ConstructByInit(cls, args, nargs, kwnames);
  }
  if (TVM_FFI_PREDICT_FALSE(!AreInOrder(constructor, args, nargs, kwnames))) {
    return ConstructSlowly(constructor, nullptr, args, nargs, kwnames);
  }
  if (kwnames != nullptr) nargs += PyTuple_GET_SIZE(kwnames);
  return ConstructNew(constructor, args, nargs);
}

}  // namespace

PyObject* ConstructFrom(Constructor* constructor, Wrapper* self, PyObject* const* args,
                        Py_ssize_t nargs) {
  if (self == nullptr) return ConstructNew(constructor, args, nargs);
  TVMFFIObject* h = MakeObject(constructor, args, nargs);
  return h != nullptr && BindNew(self, h) ? Py_NewRef(Py_None) : nullptr;
}

PyObject* ConstructSlowly(Constructor* constructor, Wrapper* self, PyObject* const* args,
                          Py_ssize_t nargs, PyObject* kwnames) {
  std::vector<PyObject*> placed;
  if (Place(constructor->names, constructor->defaults, args, nargs, kwnames, &placed)) {
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

void AddConstructor(Constructor* constructor) {
  PyTypeObject* cls = constructor->cls;
  {
    std::lock_guard<std::mutex> lock(constructors_mutex);
    Constructors()[cls] = constructor;
    RecentOf(cls).store(nullptr, std::memory_order_release);
  }
  if (EnableVectorcall(cls)) cls->tp_vectorcall = Entry<Construct>;
}

PyObject* InitHandleByConstructor(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs < 1 || !PyObject_TypeCheck(args[0], types.function)) {
    return PyErr_Format(PyExc_TypeError,
                        "__init_handle_by_constructor__ expects an ffi.Function first");
  }
  Wrapper* w = AsWrapper(self);
  ffi::ObjectPtr<ffi::Object> before = TakeBefore(w);
  TVMFFIObject* func = UseHandle(AsWrapper(args[0]));
  if (func == nullptr) return nullptr;
  if (func->type_index != TypeIndex::kTVMFFIFunction) return RaiseNoFunction(args[0]);
  TVMFFIAny result;
  tie::StoreNone(&result);
  {
    CallArguments converted;
    if (!converted.AddAll(args + 1, nargs - 1)) return nullptr;
    if (!CallConstructor(func, args + 1, &converted, &result)) return nullptr;
  }
  if (result.type_index < TypeIndex::kTVMFFIStaticObjectBegin) {
    return PyErr_Format(PyExc_TypeError, "the constructor of %s did not return an object",
                        Py_TYPE(self)->tp_name);
  }
  if (!BindNew(w, result.v_obj)) return nullptr;
  Py_RETURN_NONE;
}

int InitConstructors(PyObject*) {
  init_name = PyUnicode_InternFromString("__init__");
  info_name = PyUnicode_InternFromString("__tvm_ffi_type_info__");
  return init_name != nullptr && info_name != nullptr ? 0 : -1;
}

}  // namespace tether_py
