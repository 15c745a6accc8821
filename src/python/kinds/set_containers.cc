// SPDX-License-Identifier: Apache-2.0
// Setters of Python's own containers, which become an Array or a Map.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>

#include "python/base/python_api.h"
#include "python/data/tensor.h"
#include "python/kinds/setters.h"
#include "python/kinds/store.h"

namespace tether_py {

namespace {

// The context that the elements of a container give is used where the other arguments give none.
void TakeContext(Arguments* inside, Arguments* args) {
  if (CallContext* found = inside->context()) args->MutableContext()->FillGapsFrom(*found);
}

// Appends the leading elements that are plain small integers and floats, and returns how many. This
// runs no Python code.
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

// Appends the elements of `items` from `begin` on; `array` has room for all of them.
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

}  // namespace

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

bool ArrayFromItems(PyObject* items, ffi::Array<ffi::Any>* out, Arguments* inside) {
  // In a free-threaded build another thread may change a list at any time, so a copy is taken. A
  // subclass may iterate over other elements than those it stores.
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
  if (TVM_FFI_PREDICT_FALSE(view.type_index == ffi::TypeIndex::kTVMFFIDLTensorPtr)) {
    return RefuseLent() != nullptr;
  }
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

}  // namespace tether_py
