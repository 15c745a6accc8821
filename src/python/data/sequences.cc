// SPDX-License-Identifier: Apache-2.0
// Array and List at C speed: length, indexing and iteration. The package's classes add the rest of
// the sequence protocol, and list_methods.cc what changes a List.
#include "python/data/sequences.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/list.h>

#include <utility>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/data/list_methods.h"

namespace tether_py {

namespace {

Py_ssize_t SeqLength(PyObject* self) {
  CriticalSection section(self);
  TVMFFISeqCell* seq = UseSeq(self);
  return seq != nullptr ? static_cast<Py_ssize_t>(seq->size) : -1;
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

PyObject* ArrayFill(PyObject* self, PyObject* items) { return SeqFill(self, items, false); }

// ---- types ----

PyMethodDef array_methods[] = {{"_fill", Entry<ArrayFill>, METH_O, nullptr},
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

int InitSequenceTypes(PyObject* module) {
  seq_iterator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&seq_iterator_spec));
  if (seq_iterator_type == nullptr) return -1;
  types.array = AddType(module, &array_spec, types.container);
  types.list = AddType(module, &list_spec, types.container);
  return types.array != nullptr && types.list != nullptr ? 0 : -1;
}

}  // namespace tether_py
