// SPDX-License-Identifier: Apache-2.0
// The methods of List: the changes that Python can make to it.
//
// As `list` does it: an index may be user code, which may change the list, so all of them are read
// before the length is. From there to the change nothing else can happen.
//
// Shared state: replace (ListSetSlice): set on first use, constant afterwards. The rest:
// container_base.h.
#include "python/data/list_methods.h"

#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map_ops.h>
#include <tvm/ffi/function.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "python/base/entry.h"
#include "python/data/sequences.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// The list behind `self`, held: assigning an element may drop Python objects that drop the list.
bool UseList(PyObject* self, ffi::List<ffi::Any>* out) {
  TVMFFIObject* h = UseAs(self, TypeIndex::kTVMFFIList, TypeIndex::kTVMFFIList);
  if (h == nullptr) return false;
  *out = ffi::List<ffi::Any>(Hold(h));
  return true;
}

PyObject* ListAppend(PyObject* self, PyObject* value) {
  Ref owner;
  if (!FitElement(self, Put::kElement, &value, &owner)) return nullptr;
  ffi::List<ffi::Any> list(ffi::UnsafeInit{});
  ffi::Any converted;
  if (!ToOwnedAny(value, &converted)) return nullptr;
  CriticalSection section(self);
  if (!UseList(self, &list)) return nullptr;
  list.push_back(converted);
  Py_RETURN_NONE;
}

// Without a value it is removed. False with an error set.
bool ListAssignItem(PyObject* self, Py_ssize_t index, PyObject* value) {
  Ref owner;
  if (value != nullptr && !FitElement(self, Put::kElement, &value, &owner)) return false;
  ffi::List<ffi::Any> list(ffi::UnsafeInit{});
  ffi::Any converted;
  if (value != nullptr && !ToOwnedAny(value, &converted)) return false;
  CriticalSection section(self);
  if (!UseList(self, &list)) return false;
  auto size = static_cast<Py_ssize_t>(list.size());
  Py_ssize_t at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) {
    IndexError(size, index);
    return false;
  }
  if (value != nullptr) {
    list.Set(at, converted);
  } else {
    list.erase(list.begin() + at);
  }
  return true;
}

// False with an error set.
bool ReadIndex(PyObject* arg, Py_ssize_t* index) {
  if (!PyIndex_Check(arg)) {
    PyErr_Format(PyExc_TypeError, "indices must be integers or slices, not %s",
                 Py_TYPE(arg)->tp_name);
    return false;
  }
  *index = PyNumber_AsSsize_t(arg, PyExc_IndexError);
  return *index != -1 || !PyErr_Occurred();
}

PyObject* ListSetIndex(PyObject* self, PyObject* args) {
  Py_ssize_t index;
  PyObject *position, *value;
  if (!PyArg_ParseTuple(args, "OO", &position, &value)) return nullptr;
  if (!ReadIndex(position, &index) || !ListAssignItem(self, index, value)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* ListDelIndex(PyObject* self, PyObject* arg) {
  Py_ssize_t index;
  if (!ReadIndex(arg, &index) || !ListAssignItem(self, index, nullptr)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* ListInsert(PyObject* self, PyObject* args) {
  PyObject *position, *value;
  if (!PyArg_ParseTuple(args, "OO:insert", &position, &value)) return nullptr;
  Py_ssize_t index = PyNumber_AsSsize_t(position, nullptr);  // clipped to the range of Py_ssize_t
  if (index == -1 && PyErr_Occurred()) return nullptr;
  Ref owner;
  if (!FitElement(self, Put::kElement, &value, &owner)) return nullptr;
  ffi::List<ffi::Any> list(ffi::UnsafeInit{});
  ffi::Any converted;
  if (!ToOwnedAny(value, &converted)) return nullptr;
  CriticalSection section(self);
  if (!UseList(self, &list)) return nullptr;
  auto size = static_cast<Py_ssize_t>(list.size());
  Py_ssize_t at = index < 0 ? std::max<Py_ssize_t>(index + size, 0) : std::min(index, size);
  list.insert(list.begin() + at, converted);
  Py_RETURN_NONE;
}

// The cells of a list, in its critical section.
TVMFFIAny* CellsOf(TVMFFISeqCell* seq) { return static_cast<TVMFFIAny*>(seq->data); }

// What is removed is dropped last: that may run user code.
PyObject* ListDelSlice(PyObject* self, PyObject* slice) {
  Py_ssize_t start, stop, step;
  if (!PySlice_Check(slice)) {
    return PyErr_Format(PyExc_TypeError, "_del_slice() expects a slice, got %.100s",
                        Py_TYPE(slice)->tp_name);
  }
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return nullptr;
  ffi::List<ffi::Any> list(ffi::UnsafeInit{});
  std::vector<ffi::Any> removed;
  CriticalSection section(self);
  if (!UseList(self, &list)) return nullptr;
  TVMFFISeqCell* seq = UseSeq(self);
  auto size = static_cast<Py_ssize_t>(seq->size);
  Py_ssize_t count = PySlice_AdjustIndices(size, &start, &stop, step);
  if (count <= 0) Py_RETURN_NONE;
  if (step < 0) {
    start += (count - 1) * step;
    step = -step;
  }
  removed.reserve(static_cast<size_t>(count));
  TVMFFIAny* cells = CellsOf(seq);
  Py_ssize_t kept = start;
  for (Py_ssize_t i = start; i < size; ++i) {
    bool goes = (i - start) % step == 0 && (i - start) / step < count;
    if (goes) {
      removed.push_back(ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(&cells[i]));
    } else {
      cells[kept++] = cells[i];
    }
  }
  seq->size = kept;
  Py_RETURN_NONE;
}

// `items` is a list that nobody else has.
PyObject* ListSetSlice(PyObject* self, PyObject* args) {
  PyObject *slice, *items;
  if (!PyArg_ParseTuple(args, "O!O!", &PySlice_Type, &slice, types.list, &items)) return nullptr;
  Ref owner;
  if (!FitElement(self, Put::kList, &items, &owner)) return nullptr;
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return nullptr;
  static const auto* replace =
      new ffi::Function(ffi::Function::GetGlobalRequired("ffi.ListReplaceSlice"));
  ffi::List<ffi::Any> list(ffi::UnsafeInit{}), values(ffi::UnsafeInit{});
  CriticalSection section(self);
  if (!UseList(self, &list) || !UseList(items, &values)) return nullptr;
  TVMFFISeqCell* seq = UseSeq(self);
  Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(seq->size), &start, &stop, step);
  if (step == 1) {
    (*replace)(list, start, std::max(start, stop), values);
    Py_RETURN_NONE;
  }
  auto size = static_cast<Py_ssize_t>(values.size());
  if (size != count) {
    return PyErr_Format(PyExc_ValueError,
                        "attempt to assign sequence of size %zd to extended slice of size %zd",
                        size, count);
  }
  // The old values leave with `items`.
  TVMFFIAny* given = CellsOf(UseSeq(items));
  for (Py_ssize_t i = 0; i < count; ++i) std::swap(CellsOf(seq)[start + i * step], given[i]);
  Py_RETURN_NONE;
}

// Cannot fail: without memory to put the elements aside, the list gives its storage away with them.
PyObject* ListClear(PyObject* self, PyObject*) {
  ffi::List<ffi::Any> list(ffi::UnsafeInit{});
  TVMFFISeqCell taken{};
  {
    CriticalSection section(self);
    if (!UseList(self, &list)) return nullptr;
    TVMFFISeqCell* seq = UseSeq(self);
    try {
      list.clear();
    } catch (const std::bad_alloc&) {
      taken = *seq;
      *seq = TVMFFISeqCell{nullptr, 0, 0, taken.data_deleter};  // the kind of storage stays
    }
  }
  auto* cells = static_cast<ffi::Any*>(taken.data);
  while (taken.size > 0) cells[--taken.size].~Any();
  if (taken.data_deleter != nullptr) taken.data_deleter(taken.data);
  Py_RETURN_NONE;
}

// What cannot be converted stays in, so the element is converted first, which may run other code,
// and removed if it is still there.
PyObject* ListPopIndex(PyObject* self, PyObject* arg) {
  Py_ssize_t index;
  if (!ReadIndex(arg, &index)) return nullptr;
  for (int i = 0; i < ffi::tether::kMaxSearches; ++i) {
    HeldElement item;
    ffi::List<ffi::Any> list(ffi::UnsafeInit{});
    {
      CriticalSection section(self);
      if (!UseList(self, &list)) return nullptr;
      auto size = static_cast<Py_ssize_t>(list.size());
      if (size == 0) return PyErr_Format(PyExc_IndexError, "pop from empty list");
      Py_ssize_t at = index < 0 ? index + size : index;
      if (at < 0 || at >= size) return IndexError(size, index);
      item.Hold(list[at]);
    }
    Ref result = Ref::Steal(item.ToPython(self));
    if (!result) return nullptr;
    ffi::List<ffi::Any> now(ffi::UnsafeInit{});
    CriticalSection section(self);
    if (!UseList(self, &now)) return nullptr;
    auto size = static_cast<Py_ssize_t>(now.size());
    Py_ssize_t at = index < 0 ? index + size : index;
    if (at < 0 || at >= size || !item.Is(now[at])) continue;
    now.erase(now.begin() + at);
    return result.release();
  }
  return PyErr_Format(PyExc_RuntimeError,
                      "List changed whenever the element to remove was converted");
}

PyObject* ListFill(PyObject* self, PyObject* items) { return SeqFill(self, items, true); }

}  // namespace

PyMethodDef list_methods[] = {
    {"_fill", Entry<ListFill>, METH_O, nullptr},
    {"append", Entry<ListAppend>, METH_O, "Append an element."},
    {"insert", Entry<ListInsert>, METH_VARARGS,
     "Insert before a position; positions beyond the ends mean the ends."},
    {"clear", Entry<ListClear>, METH_NOARGS, "Remove all elements."},
    {"_set_slice", Entry<ListSetSlice>, METH_VARARGS, nullptr},
    {"_del_slice", Entry<ListDelSlice>, METH_O, nullptr},
    {"_set_index", Entry<ListSetIndex>, METH_VARARGS, nullptr},
    {"_del_index", Entry<ListDelIndex>, METH_O, nullptr},
    {"_pop_index", Entry<ListPopIndex>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace tether_py
