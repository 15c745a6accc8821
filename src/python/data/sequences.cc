// SPDX-License-Identifier: Apache-2.0
// Array and List at C speed: length, indexing, iteration and the common mutations. The package's
// classes add the rest of the sequence protocol. What is shared: container_base.h.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/function.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/data/container_base.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// ---- both ----

TVMFFISeqCell* UseSeq(PyObject* self) {
  TVMFFIObject* h = UseAs(self, TypeIndex::kTVMFFIArray, TypeIndex::kTVMFFIList);
  return h != nullptr ? reinterpret_cast<TVMFFISeqCell*>(h + 1) : nullptr;
}

Py_ssize_t SeqLength(PyObject* self) {
  CriticalSection section(self);
  TVMFFISeqCell* seq = UseSeq(self);
  return seq != nullptr ? static_cast<Py_ssize_t>(seq->size) : -1;
}

PyObject* IndexError(Py_ssize_t size, Py_ssize_t index) {
  return PyErr_Format(PyExc_IndexError, "Index out of range. size: %zd, got index %zd", size,
                      index);
}

PyObject* SeqElement(PyObject* self, TVMFFISeqCell* seq, Py_ssize_t index) {
  return FromBorrowedAny(static_cast<const TVMFFIAny*>(seq->data)[index], TagOf(self));
}

TVM_FFI_NO_INLINE PyObject* SeqSlice(PyObject* self, PyObject* slice) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return nullptr;
  CriticalSection section(self);
  TVMFFISeqCell* seq = UseSeq(self);
  if (seq == nullptr) return nullptr;
  Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(seq->size), &start, &stop, step);
  Ref list = Ref::Steal(PyList_New(0));
  if (!list) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i, start += step) {
    // Making a wrapper may run Python code that shortens the list.
    seq = UseSeq(self);
    if (seq == nullptr) return nullptr;
    if (start >= seq->size) break;
    Ref item = Ref::Steal(SeqElement(self, seq, start));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

TVM_FFI_INLINE PyObject* SeqAt(PyObject* self, Py_ssize_t index) {
  CriticalSection section(self);
  TVMFFISeqCell* seq = UseSeq(self);
  if (seq == nullptr) return nullptr;
  auto size = static_cast<Py_ssize_t>(seq->size);
  Py_ssize_t at = index < 0 ? index + size : index;
  if (TVM_FFI_PREDICT_FALSE(at < 0 || at >= size)) return IndexError(size, index);
  return SeqElement(self, seq, at);
}

PyObject* SeqSubscript(PyObject* self, PyObject* key) {
  if (TVM_FFI_PREDICT_FALSE(!PyIndex_Check(key))) {
    if (PySlice_Check(key)) return SeqSlice(self, key);
    return PyErr_Format(PyExc_TypeError, "indices must be integers or slices, not %s",
                        Py_TYPE(key)->tp_name);
  }
  Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
  if (index == -1 && PyErr_Occurred()) return nullptr;
  return SeqAt(self, index);
}

PyObject* SeqItem(PyObject* self, Py_ssize_t index) {
  CriticalSection section(self);
  TVMFFISeqCell* seq = UseSeq(self);
  if (seq == nullptr) return nullptr;
  auto size = static_cast<Py_ssize_t>(seq->size);
  if (index < 0 || index >= size) return IndexError(size, index);
  return SeqElement(self, seq, index);
}

constexpr Py_ssize_t kExhausted = -1;

struct SeqIterator {
  PyObject_HEAD PyObject* owner;
  Py_ssize_t next;  // or kExhausted
  Py_ssize_t end;
};

PyTypeObject* seq_iterator_type = nullptr;

PyObject* SeqIter(PyObject* self) {
  Py_ssize_t size = SeqLength(self);
  if (size < 0) return nullptr;
  auto* it = PyObject_GC_New(SeqIterator, seq_iterator_type);
  if (it == nullptr) return nullptr;
  it->owner = Py_NewRef(self);
  it->next = 0;
  it->end = size;
  PyObject_GC_Track(reinterpret_cast<PyObject*>(it));
  return reinterpret_cast<PyObject*>(it);
}

PyObject* SeqIterNext(PyObject* self) {
  auto* it = reinterpret_cast<SeqIterator*>(self);
  CriticalSection2 sections(self, it->owner);
  if (it->next == kExhausted) return nullptr;
  TVMFFISeqCell* seq = UseSeq(it->owner);
  if (seq == nullptr) return nullptr;
  if (it->next < it->end && it->next < seq->size) return SeqElement(it->owner, seq, it->next++);
  it->next = kExhausted;
  return nullptr;
}

PyObject* SeqIterLengthHint(PyObject* self, PyObject*) {
  auto* it = reinterpret_cast<SeqIterator*>(self);
  CriticalSection section(self);
  return PyLong_FromSsize_t(it->next != kExhausted ? it->end - it->next : 0);
}

int SeqIterTraverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<SeqIterator*>(self)->owner);
  return 0;
}
void SeqIterDealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(reinterpret_cast<SeqIterator*>(self)->owner);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

PyMethodDef seq_iterator_methods[] = {
    {"__length_hint__", Entry<SeqIterLengthHint>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot seq_iterator_slots[] = {{Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                                    {Py_tp_iternext, Slot<SeqIterNext>()},
                                    {Py_tp_traverse, reinterpret_cast<void*>(SeqIterTraverse)},
                                    {Py_tp_dealloc, reinterpret_cast<void*>(SeqIterDealloc)},
                                    {Py_tp_methods, seq_iterator_methods},
                                    {0, nullptr}};
PyType_Spec seq_iterator_spec = {
    "tvm_ffi.core._SequenceIterator", sizeof(SeqIterator), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    seq_iterator_slots};

// ---- List ----

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

// As `list` does it: an index may be user code, which may change the list, so all of them are read
// before the length is. From there to the change nothing else can happen.

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
  Py_ssize_t index = PyNumber_AsSsize_t(position, nullptr);  // clipped, as far as it is a number
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

PyObject* ListPopIndex(PyObject* self, PyObject* arg) {
  Py_ssize_t index;
  if (!ReadIndex(arg, &index)) return nullptr;
  ffi::List<ffi::Any> list(ffi::UnsafeInit{});
  ffi::Any item;
  {
    CriticalSection section(self);
    if (!UseList(self, &list)) return nullptr;
    auto size = static_cast<Py_ssize_t>(list.size());
    if (size == 0) return PyErr_Format(PyExc_IndexError, "pop from empty list");
    Py_ssize_t at = index < 0 ? index + size : index;
    if (at < 0 || at >= size) return IndexError(size, index);
    item = list[at];
    list.erase(list.begin() + at);
  }
  return FromOwnedAny(ffi::details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(item)), TagOf(self));
}

// ---- construction ----

// Array(iterable) and List(iterable). A failure leaves an empty object.
PyObject* SeqFill(PyObject* self, PyObject* items, bool is_list) {
  ffi::ObjectPtr<ffi::Object> before = TakeBefore(AsWrapper(self));
  Conversion inside;
  ffi::Array<ffi::Any> array(ffi::UnsafeInit{});
  if (!ArrayFromItems(items, &array, &inside)) return nullptr;
  ffi::ObjectRef filled = array;
  if (is_list) filled = ffi::List<ffi::Any>(array.begin(), array.end());
  array = ffi::Array<ffi::Any>(ffi::UnsafeInit{});
  TVMFFIObject* h = ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(std::move(filled));
  if (!BindNew(AsWrapper(self), h)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* ArrayFill(PyObject* self, PyObject* items) { return SeqFill(self, items, false); }
PyObject* ListFill(PyObject* self, PyObject* items) { return SeqFill(self, items, true); }

// ---- types ----

PyMethodDef array_methods[] = {{"_fill", Entry<ArrayFill>, METH_O, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
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
#define TETHER_SEQ_SLOTS                                                            \
  {Py_sq_length, Slot<SeqLength>()}, {Py_sq_item, Slot<SeqItem>()},                 \
      {Py_mp_length, Slot<SeqLength>()}, {Py_mp_subscript, Slot<SeqSubscript>()}, { \
    Py_tp_iter, Slot<SeqIter>()                                                     \
  }
PyType_Slot array_slots[] = {TETHER_SEQ_SLOTS, {Py_tp_methods, array_methods}, {0, nullptr}};
PyType_Slot list_slots[] = {TETHER_SEQ_SLOTS, {Py_tp_methods, list_methods}, {0, nullptr}};
PyType_Spec array_spec = {"tvm_ffi.core.ArrayBase", sizeof(Wrapper), 0, kContainerFlags,
                          array_slots};
PyType_Spec list_spec = {"tvm_ffi.core.ListBase", sizeof(Wrapper), 0, kContainerFlags, list_slots};

}  // namespace

int InitSequenceTypes(PyObject* module) {
  seq_iterator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&seq_iterator_spec));
  if (seq_iterator_type == nullptr) return -1;
  types.array = AddType(module, &array_spec, types.container);
  types.list = AddType(module, &list_spec, types.container);
  return types.array != nullptr && types.list != nullptr ? 0 : -1;
}

}  // namespace tether_py
