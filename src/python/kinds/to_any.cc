// SPDX-License-Identifier: Apache-2.0
// Python -> Any. How a value converts is decided once per exact type, in the order of Resolve, and
// cached.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/string.h>

#include <cstring>
#include <unordered_map>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/call/function.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/data/device.h"
#include "python/data/dtype.h"
#include "python/data/exchange.h"
#include "python/data/tensor.h"
#include "python/data/text.h"
#include "python/wrap/class_watch.h"
#include "python/wrap/notes.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

using ffi::TypeIndex;

// ---- one setter per kind of value ----

bool SetWrapper(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return StoreWrapper(obj, out, args);
}

namespace {

void Store(TVMFFIAny* out, int32_t index, int64_t value) {
  out->type_index = index;
  out->zero_padding = 0;
  out->v_int64 = value;
}

bool StoreOwned(ffi::Any value, TVMFFIAny* out, Arguments* args) {
  *out = ffi::details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(value));
  args->Keep(*out);
  return true;
}

// Runs a conversion that may throw. False with an error set.
template <typename F>
bool Try(F&& f) {
  Ref ok = Ref::Steal(Guarded([&]() -> PyObject* { return f() ? Py_NewRef(Py_True) : nullptr; }));
  return static_cast<bool>(ok);
}

bool SetNone(PyObject*, TVMFFIAny* out, Arguments*) {
  Store(out, TypeIndex::kTVMFFINone, 0);
  return true;
}

bool SetBool(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Store(out, TypeIndex::kTVMFFIBool, obj == Py_True);
  return true;
}

bool StoreInt(PyObject* number, TVMFFIAny* out) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (TVM_FFI_PREDICT_FALSE(overflow != 0)) {
    Ref text = TextOfInt(number);
    if (text) {
      PyErr_Format(PyExc_OverflowError, "Python int too large to convert to int64: %U", text.get());
    }
    return false;
  }
  if (TVM_FFI_PREDICT_FALSE(value == -1 && PyErr_Occurred())) return false;
  Store(out, TypeIndex::kTVMFFIInt, value);
  return true;
}

bool SetInt(PyObject* obj, TVMFFIAny* out, Arguments*) { return StoreInt(obj, out); }

bool SetIntegral(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Ref number = Ref::Steal(PyNumber_Long(obj));
  return number && StoreInt(number.get(), out);
}

bool StoreFloat(double value, TVMFFIAny* out) {
  if (value == -1.0 && PyErr_Occurred()) return false;
  Store(out, TypeIndex::kTVMFFIFloat, 0);
  out->v_float64 = value;
  return true;
}

bool SetFloat(PyObject* obj, TVMFFIAny* out, Arguments*) {
  return StoreFloat(PyFloat_AsDouble(obj), out);
}

bool StoreText(const char* data, Py_ssize_t size, TVMFFIAny* out, Arguments* args) {
  if (size < static_cast<Py_ssize_t>(sizeof(out->v_bytes))) {
    Store(out, TypeIndex::kTVMFFISmallStr, 0);
    out->small_str_len = static_cast<uint32_t>(size);
    std::memcpy(out->v_bytes, data, static_cast<size_t>(size));
    return true;
  }
  return Try([&] { return StoreOwned(ffi::String(data, static_cast<size_t>(size)), out, args); });
}

bool StoreBytes(const char* data, Py_ssize_t size, TVMFFIAny* out, Arguments* args) {
  return Try([&] { return StoreOwned(ffi::Bytes(data, static_cast<size_t>(size)), out, args); });
}

bool SetStr(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Py_ssize_t size;
  const char* data = PyUnicode_AsUTF8AndSize(obj, &size);
  return data != nullptr && StoreText(data, size, out, args);
}

bool SetBytes(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return StoreBytes(PyBytes_AS_STRING(obj), PyBytes_GET_SIZE(obj), out, args);
}

bool SetByteArray(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return StoreBytes(PyByteArray_AS_STRING(obj), PyByteArray_GET_SIZE(obj), out, args);
}

bool SetContainer(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  auto* tag = Notes::Get<const DLPackExchangeAPI>(obj);
  return TVM_FFI_PREDICT_TRUE(tag == nullptr) ? SetWrapper(obj, out, args)
                                              : SetTaggedContainer(obj, tag, out, args);
}

bool SetRValue(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Ref source = Ref::Steal(PyObject_GetAttrString(obj, "obj"));
  if (!source) return false;
  if (!IsWrapper(source.get())) {
    PyErr_Format(PyExc_TypeError, "ObjectRValueRef expects an FFI object, got %s",
                 Py_TYPE(source.get())->tp_name);
    return false;
  }
  TVMFFIObject** slot = args->MoveOut(AsWrapper(source.get()));
  if (slot == nullptr) return false;
  Store(out, TypeIndex::kTVMFFIObjectRValueRef, 0);
  out->v_ptr = slot;
  return true;
}

// A wrapper obtained from `obj`, kept for the call.
bool SetWrapperFrom(Ref wrapper, PyObject* obj, const char* how, TVMFFIAny* out, Arguments* args) {
  if (!wrapper) return false;
  if (!IsWrapper(wrapper.get())) {
    PyErr_Format(PyExc_TypeError, "%s of %s must return an FFI object, got %s", how,
                 Py_TYPE(obj)->tp_name, Py_TYPE(wrapper.get())->tp_name);
    return false;
  }
  bool done = SetWrapper(wrapper.get(), out, args);
  args->Keep(std::move(wrapper));
  return done;
}

bool SetFFIObject(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return SetWrapperFrom(Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_object__", nullptr)), obj,
                        "__tvm_ffi_object__()", out, args);
}

bool SetConvertible(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return SetWrapperFrom(Ref::Steal(PyObject_CallMethod(obj, "asobject", nullptr)), obj,
                        "asobject()", out, args);
}

// String, Bytes, Shape: the FFI object they came with, else their content.
bool SetNative(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Ref cached = Ref::Steal(PyObject_GetAttrString(obj, "_tvm_ffi_cached_object"));
  if (!cached) return false;
  if (cached.get() != Py_None) {
    return SetWrapperFrom(std::move(cached), obj, "_tvm_ffi_cached_object", out, args);
  }
  if (PyUnicode_Check(obj)) return SetStr(obj, out, args);
  if (PyBytes_Check(obj)) return SetBytes(obj, out, args);
  PyErr_Format(PyExc_ValueError, "_tvm_ffi_cached_object is None for %R", Py_TYPE(obj));
  return false;
}

// What the elements of a container say about the call counts where its other arguments are silent.
void TakeContext(Arguments* inside, Arguments* args) {
  if (CallContext* found = inside->context()) args->MutableContext()->FillGapsFrom(*found);
}

// Appends the leading elements that are plain small integers and floats, and says how many. Nothing
// else can happen meanwhile: converting those runs no Python code.
Py_ssize_t AppendNumbers(PyObject* const* items, Py_ssize_t n, ffi::ArrayObj* array) {
  for (Py_ssize_t i = 0; i < n; ++i) {
    int64_t value;
    if (PyLong_CheckExact(items[i]) && LoadCompactInt(items[i], &value)) {
      tie::SeqOps::Append(array, value);
    } else if (PyFloat_CheckExact(items[i])) {
      tie::SeqOps::Append(array, PyFloat_AS_DOUBLE(items[i]));
    } else {
      return i;
    }
  }
  return n;
}

// The elements of `items`, of which `array` has room for all, from `begin` on.
bool AppendItems(PyObject* items, Py_ssize_t begin, ffi::ArrayObj* array, Arguments* inside) {
  // A copy of the references: converting an element may run Python code that changes the list.
  Ref rest = Ref::Steal(PySequence_GetSlice(items, begin, PY_SSIZE_T_MAX));
  if (!rest) return false;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(rest.get());
  for (Py_ssize_t i = 0; i < n; ++i) {
    ffi::Any value;
    if (!ToOwnedAny(PySequence_Fast_GET_ITEM(rest.get(), i), &value, inside)) return false;
    tie::SeqOps::Append(array, std::move(value));
  }
  return true;
}

bool SetText(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  TVMFFIObject* h = HeldString(obj);
  if (h == nullptr) return SetNative(obj, out, args);
  tie::StoreObject(h, out);
  return true;
}

bool SetSequence(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  if (!EnterRecursion(" while converting a sequence to an FFI array")) return false;
  bool done = Try([&] {
    Conversion inside;
    ffi::Array<ffi::Any> array(ffi::UnsafeInit{});
    if (!ArrayFromItems(obj, &array, &inside)) return false;
    TakeContext(&inside, args);
    return StoreOwned(std::move(array), out, args);
  });
  Py_LeaveRecursiveCall();
  return done;
}

bool SetDict(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  if (!EnterRecursion(" while converting a dict to an FFI map")) return false;
  bool done = Try([&] {
    Ref items = Ref::Steal(PyDict_Items(obj));
    if (!items) return false;
    ffi::Map<ffi::Any, ffi::Any> map;
    Conversion inside;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* pair = PyList_GET_ITEM(items.get(), i);
      ffi::Any key, value;
      if (!ToOwnedAny(PyTuple_GET_ITEM(pair, 0), &key, &inside)) return false;
      if (!ToOwnedAny(PyTuple_GET_ITEM(pair, 1), &value, &inside)) return false;
      map.Set(key, value);
    }
    TakeContext(&inside, args);
    return StoreOwned(std::move(map), out, args);
  });
  Py_LeaveRecursiveCall();
  return done;
}

bool StorePointer(Ref address, TVMFFIAny* out) {
  if (!address) return false;
  Store(out, TypeIndex::kTVMFFIOpaquePtr, 0);
  if (!PyLong_Check(address.get())) {
    PyErr_SetString(PyExc_TypeError, "an integer is required");
    return false;
  }
  out->v_ptr = PyLong_AsVoidPtr(address.get());
  return out->v_ptr != nullptr || !PyErr_Occurred();
}

bool SetVoidPointer(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Ref address = Ref::Steal(PyObject_GetAttrString(obj, "value"));
  if (address.get() == Py_None) {  // ctypes' way to say NULL
    Store(out, TypeIndex::kTVMFFIOpaquePtr, 0);
    return true;
  }
  return StorePointer(std::move(address), out);
}

bool SetOpaquePointer(PyObject* obj, TVMFFIAny* out, Arguments*) {
  return StorePointer(Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_opaque_ptr__", nullptr)), out);
}

bool SetCudaStream(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Ref pair = Ref::Steal(PyObject_CallMethod(obj, "__cuda_stream__", nullptr));
  if (!pair) return false;
  if (!PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) < 2) {
    PyErr_Format(PyExc_TypeError, "__cuda_stream__() of %s must return a tuple of two",
                 Py_TYPE(obj)->tp_name);
    return false;
  }
  return StorePointer(Ref::Borrow(PyTuple_GET_ITEM(pair.get(), 1)), out);
}

// Of a torch that has no __cuda_stream__ yet.
bool SetTorchStream(PyObject* obj, TVMFFIAny* out, Arguments*) {
  return StorePointer(Ref::Steal(PyObject_GetAttrString(obj, "cuda_stream")), out);
}

// cuda.bindings.driver.CUstream.
bool SetCudaDriverStream(PyObject* obj, TVMFFIAny* out, Arguments*) {
  return StorePointer(Ref::Steal(PyNumber_Long(obj)), out);
}

bool SetIntProtocol(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Ref number = Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_int__", nullptr));
  if (!number) return false;
  Ref index = Ref::Steal(PyNumber_Index(number.get()));
  return index && StoreInt(index.get(), out);
}

bool SetFloatProtocol(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Ref number = Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_float__", nullptr));
  return number && StoreFloat(PyFloat_AsDouble(number.get()), out);
}

bool SetValueProtocol(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  // A value that gives itself, or a cycle, ends in RecursionError.
  if (!EnterRecursion(" in __tvm_ffi_value__()")) return false;
  bool done = Try([&] {
    Ref value = Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_value__", nullptr));
    if (!value || !ToAny(value.get(), out, args)) return false;
    args->Keep(std::move(value));
    return true;
  });
  Py_LeaveRecursiveCall();
  return done;
}

bool SetException(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return Try([&] { return StoreOwned(ErrorFromException(obj), out, args); });
}

bool SetOpaque(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  TVMFFIObjectHandle handle = nullptr;
  Py_INCREF(obj);
  int code = TVMFFIObjectCreateOpaque(obj, TypeIndex::kTVMFFIOpaquePyObject, ReleaseFromAnyThread,
                                      &handle);
  if (code != 0) {
    Py_DECREF(obj);
    RaiseFromCall(code);
    return false;
  }
  tie::StoreObject(static_cast<TVMFFIObject*>(handle), out);
  args->Keep(*out);
  return true;
}

// ---- which setter ----

// 1 or 0, or -1 with an error set.
int IsInstanceOf(PyObject* obj, const char* module, const char* name) {
  Ref mod = Ref::Steal(PyImport_ImportModule(module));
  if (!mod) return -1;
  Ref cls = Ref::Steal(PyObject_GetAttrString(mod.get(), name));
  return cls ? PyObject_IsInstance(obj, cls.get()) : -1;
}

int IsInstanceOfCore(PyObject* obj, const char* name) {
  Ref cls = Ref::Steal(PyObject_GetAttrString(core_module, name));
  if (!cls) {
    PyErr_Clear();
    return 0;
  }
  return PyObject_IsInstance(obj, cls.get());
}

// NULL with an error set.
Setter Resolve(PyObject* obj) {
  PyTypeObject* type = Py_TYPE(obj);
  Setter found = nullptr;
  if (obj == Py_None) return SetNone;
  if (PyType_IsSubtype(type, types.tensor)) return SetTensor;
  if (PyType_IsSubtype(type, types.container)) return SetContainer;
  if (IsWrapper(obj)) return SetWrapper;
  if (PyType_IsSubtype(type, types.rvalue_ref)) return SetRValue;
  if (HasMethod(type, "__tvm_ffi_object__")) return SetFFIObject;
  if (ResolveExchangeAPI(obj, &found) < 0 || found != nullptr) return found;
  if (HasMethod(type, "__cuda_stream__")) return SetCudaStream;
  int is = IsInstanceOfLoaded(obj, "cuda.bindings.driver", "CUstream");
  if (is != 0) return is > 0 ? SetCudaDriverStream : nullptr;
  is = IsInstanceOfLoaded(obj, "torch.cuda", "Stream");
  if (is != 0) return is > 0 ? SetTorchStream : nullptr;
  if (ResolveTorchTensor(obj, &found) < 0 || found != nullptr) return found;
  if (ResolveDLPack(obj, &found) < 0 || found != nullptr) return found;
  if (PyBool_Check(obj)) return SetBool;
  if (PyLong_Check(obj)) return SetInt;
  if (PyFloat_Check(obj)) return SetFloat;
  is = IsInstanceOf(obj, "numbers", "Integral");
  if (is != 0) return is > 0 ? SetIntegral : nullptr;
  is = IsInstanceOf(obj, "numbers", "Real");
  if (is != 0) return is > 0 ? SetFloat : nullptr;
  if (ResolveDataType(obj, &found) < 0 || found != nullptr) return found;
  if (IsDevice(obj)) return SetDevice;
  if (IsText(obj)) return SetText;
  is = IsInstanceOfCore(obj, "PyNativeObject");
  if (is != 0) return is > 0 ? SetNative : nullptr;
  if (PyUnicode_Check(obj)) return SetStr;
  if (PyBytes_Check(obj)) return SetBytes;
  if (PyByteArray_Check(obj)) return SetByteArray;
  if (PyTuple_Check(obj) || PyList_Check(obj)) return SetSequence;
  if (PyDict_Check(obj)) return SetDict;
  is = IsInstanceOf(obj, "ctypes", "c_void_p");
  if (is != 0) return is > 0 ? SetVoidPointer : nullptr;
  if (HasMethod(type, "__tvm_ffi_opaque_ptr__")) return SetOpaquePointer;
  if (PyCallable_Check(obj)) return SetCallable;
  if (ResolveForeignDataType(obj, &found) < 0 || found != nullptr) return found;
  if (HasMethod(type, "__dlpack_device__")) return SetDeviceProtocol;
  if (HasMethod(type, "__tvm_ffi_int__")) return SetIntProtocol;
  if (HasMethod(type, "__tvm_ffi_float__")) return SetFloatProtocol;
  if (HasMethod(type, "__tvm_ffi_value__")) return SetValueProtocol;
  if (PyObject_IsInstance(obj, PyExc_Exception) > 0) return SetException;
  is = IsInstanceOfCore(obj, "ObjectConvertible");
  if (is != 0) return is > 0 ? SetConvertible : nullptr;
  return SetOpaque;
}

// Types seen so far, borrowed.
struct KnownSetters {
  ShortLock lock;
  std::unordered_map<PyTypeObject*, Setter> by_type;
};
KnownSetters& Known() {
  static auto* known = new KnownSetters();
  return *known;
}

PyObject* PrintDebugInfo(PyObject*, PyObject*) {
  std::lock_guard<ShortLock> guard(Known().lock);
  PySys_WriteStdout("TVMFFIPyGetArgDispatchMapSize: %zd\n",
                    static_cast<Py_ssize_t>(Known().by_type.size()));
  Py_RETURN_NONE;
}

}  // namespace

TETHER_PER_THREAD RecentSetter recent_setters[kRecentSetters];
TETHER_PER_THREAD uint64_t recent_setters_epoch;
std::atomic<uint64_t> class_epoch{0};

namespace {

// Of two types that want one place the first has it, and the second has the place beside.
RecentSetter* BesideRecent(RecentSetter* recent) {
  return &recent_setters[(recent - recent_setters) ^ 1];
}

// Adds the class to this thread's small table.
void MakeRecent(PyTypeObject* type, Setter setter) {
  if (kFreeThreaded && !AreRecentSettersCurrent()) {
    for (RecentSetter& recent : recent_setters) recent = {nullptr, nullptr};
    recent_setters_epoch = class_epoch.load(std::memory_order_relaxed);
  }
  RecentSetter* recent = RecentSetterOf(type);
  *(recent->type == nullptr ? recent : BesideRecent(recent)) = {type, setter};
}

TVM_FFI_NO_INLINE bool ToAnyUnknown(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  PyTypeObject* type = Py_TYPE(obj);
  Setter setter = nullptr;
  {
    std::lock_guard<ShortLock> guard(Known().lock);
    auto it = Known().by_type.find(type);
    if (it != Known().by_type.end()) setter = it->second;
  }
  if (setter != nullptr) {
    MakeRecent(type, setter);
    return setter(obj, out, args);
  }
  setter = Resolve(obj);
  if (setter == nullptr) return false;
  // Resolving, and watching too, may run Python code, which may give the object another class.
  if (Py_TYPE(obj) == type && WatchClass(type) && Py_TYPE(obj) == type) {
    try {
      std::lock_guard<ShortLock> guard(Known().lock);
      Known().by_type.emplace(type, setter);
    } catch (const std::bad_alloc&) {  // it is resolved again next time
    }
    MakeRecent(type, setter);
  }
  return setter(obj, out, args);
}

}  // namespace

bool ToAnySlow(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  RecentSetter* beside = BesideRecent(RecentSetterOf(Py_TYPE(obj)));
  return TVM_FFI_PREDICT_TRUE(IsRecent(beside, Py_TYPE(obj))) ? beside->setter(obj, out, args)
                                                              : ToAnyUnknown(obj, out, args);
}

void ForgetSetter(PyTypeObject* cls) {
  {
    std::lock_guard<ShortLock> guard(Known().lock);
    Known().by_type.erase(cls);
  }
  if (kFreeThreaded) {
    // The small tables of other threads: whoever looks next sees that they are out of date.
    class_epoch.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  for (RecentSetter* recent : {RecentSetterOf(cls), BesideRecent(RecentSetterOf(cls))}) {
    if (recent->type == cls) *recent = {nullptr, nullptr};
  }
}

bool ArrayFromItems(PyObject* items, ffi::Array<ffi::Any>* out, Arguments* inside) {
  // Without the GIL another thread may change a list at any time, so only a copy stands still. A
  // subclass may show elements that it does not store.
  Ref fixed = PyTuple_CheckExact(items) || (PyList_CheckExact(items) && !kFreeThreaded)
                  ? Ref::Borrow(items)
                  : Ref::Steal(PySequence_Tuple(items));
  if (!fixed) return false;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(fixed.get());
  ffi::ObjectPtr<ffi::ArrayObj> array = tie::ArrayOps::Empty(n);
  Py_ssize_t done = AppendNumbers(PySequence_Fast_ITEMS(fixed.get()), n, array.get());
  if (done < n && !AppendItems(fixed.get(), done, array.get(), inside)) return false;
  *out = ffi::Array<ffi::Any>(std::move(array));
  return true;
}

bool ToOwnedAny(PyObject* obj, ffi::Any* out, Arguments* nested_in) {
  Conversion args;
  TVMFFIAny view;
  if (!ToAny(obj, &view, &args)) return false;
  if (TVM_FFI_PREDICT_FALSE(args.context() != nullptr) && nested_in != nullptr) {
    CallContext* context = nested_in->MutableContext();
    if (args.context()->api != nullptr) context->api = args.context()->api;
    context->FillGapsFrom(*args.context());
  }
  return Try([&] {
    *out = ffi::AnyView::CopyFromTVMFFIAny(view);
    return true;
  });
}

namespace {

PyObject* ConvertToOpaque(PyObject*, PyObject* obj) {
  Conversion args;
  TVMFFIAny view;
  if (!SetOpaque(obj, &view, &args)) return nullptr;
  // Handed out as itself, not as the value it holds.
  return WrapBorrowed(view.v_obj);
}

PyMethodDef functions[] = {{"_print_debug_info", Entry<PrintDebugInfo>, METH_NOARGS, nullptr},
                           {"_convert_to_opaque_object", Entry<ConvertToOpaque>, METH_O,
                            "An OpaquePyObject that holds the given object."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitKinds(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace tether_py
