// SPDX-License-Identifier: Apache-2.0
// Array, List, Map and Dict at C speed: length, indexing, iteration, lookup and the common
// mutations. The package's classes add the rest of the sequence and mapping protocols.
//
// Shared state:
//   a container              without the GIL it is read and changed in the critical section of its
//                            wrapper.
//   an iterator              moves on in its own critical section, so threads that share one get
//                            each element whole.
//   the types of iterators   set at import, constant afterwards.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/data/containers.h"
#include "python/data/fields.h"
#include "python/wrap/notes.h"
#include "python/wrap/object_lock.h"
#include "python/wrap/upper_layers.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// The object behind a wrapper of a container class, to be used in its critical section. NULL with
// an error set when it is of another kind.
TVMFFIObject* UseAs(PyObject* self, int32_t index, int32_t other_index) {
  TVMFFIObject* h = UseHandle(AsWrapper(self));
  if (h == nullptr) return nullptr;
  if (TVM_FFI_PREDICT_FALSE(h->type_index != index && h->type_index != other_index)) {
    PyErr_Format(PyExc_TypeError, "%s object holds a `%s`", Py_TYPE(self)->tp_name,
                 TVMFFIGetTypeInfo(h->type_index)->type_key.data);
    return nullptr;
  }
  return h;
}

// ---- sequences ----

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

// The framework whose tensors a container hands out, or NULL.
const DLPackExchangeAPI* TagOf(PyObject* self) { return Notes::Get<const DLPackExchangeAPI>(self); }

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

ffi::ObjectPtr<ffi::Object> Hold(TVMFFIObject* h) {
  return ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::Object>(h);
}

// The list behind `self`, held: assigning an element may drop Python objects that drop the list.
bool UseList(PyObject* self, ffi::List<ffi::Any>* out) {
  TVMFFIObject* h = UseAs(self, TypeIndex::kTVMFFIList, TypeIndex::kTVMFFIList);
  if (h == nullptr) return false;
  *out = ffi::List<ffi::Any>(Hold(h));
  return true;
}

// What is put into a container: an element or a value, a key, or a list of elements.
enum class Put { kElement, kKey, kList };

TVM_FFI_NO_INLINE PyObject* ConvertElement(const Field* field, Put put, PyObject* value) {
  return PyObject_CallFunction(field->convert_element, "iO", static_cast<int>(put), value);
}

// `value` as the container takes it, which is nearly always as it is. `owner` keeps a converted
// one. False with an error set.
inline bool FitElement(PyObject* self, Put put, PyObject** value, Ref* owner) {
  const auto* field = ElementNotes::Get<const Field>(self);
  if (TVM_FFI_PREDICT_TRUE(field == nullptr)) return true;
  if (put == Put::kElement && Py_TYPE(*value) == field->element_class) return true;
  *owner = Ref::Steal(ConvertElement(field, put, *value));
  *value = owner->get();
  return *value != nullptr;
}

PyObject* ListAppend(PyObject* self, PyObject* value) {
  Ref owner;
  if (!FitElement(self, Put::kElement, &value, &owner)) return nullptr;
  return Guarded([&]() -> PyObject* {
    ffi::List<ffi::Any> list(ffi::UnsafeInit{});
    ffi::Any converted;
    if (!ToOwnedAny(value, &converted)) return nullptr;
    CriticalSection section(self);
    if (!UseList(self, &list)) return nullptr;
    list.push_back(converted);
    Py_RETURN_NONE;
  });
}

int ListAssignItem(PyObject* self, Py_ssize_t index, PyObject* value) {
  Ref owner;
  if (value != nullptr && !FitElement(self, Put::kElement, &value, &owner)) return -1;
  Ref done = Ref::Steal(Guarded([&]() -> PyObject* {
    ffi::List<ffi::Any> list(ffi::UnsafeInit{});
    ffi::Any converted;
    if (value != nullptr && !ToOwnedAny(value, &converted)) return nullptr;
    CriticalSection section(self);
    if (!UseList(self, &list)) return nullptr;
    auto size = static_cast<Py_ssize_t>(list.size());
    Py_ssize_t at = index < 0 ? index + size : index;
    if (at < 0 || at >= size) return IndexError(size, index);
    if (value != nullptr) {
      list.Set(at, converted);
    } else {
      list.erase(list.begin() + at);
    }
    Py_RETURN_NONE;
  }));
  return done ? 0 : -1;
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
  if (!ReadIndex(position, &index) || ListAssignItem(self, index, value) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* ListDelIndex(PyObject* self, PyObject* arg) {
  Py_ssize_t index;
  if (!ReadIndex(arg, &index) || ListAssignItem(self, index, nullptr) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* ListInsert(PyObject* self, PyObject* args) {
  PyObject *position, *value;
  if (!PyArg_ParseTuple(args, "OO:insert", &position, &value)) return nullptr;
  Py_ssize_t index = PyNumber_AsSsize_t(position, nullptr);  // clipped, as far as it is a number
  if (index == -1 && PyErr_Occurred()) return nullptr;
  Ref owner;
  if (!FitElement(self, Put::kElement, &value, &owner)) return nullptr;
  return Guarded([&]() -> PyObject* {
    ffi::List<ffi::Any> list(ffi::UnsafeInit{});
    ffi::Any converted;
    if (!ToOwnedAny(value, &converted)) return nullptr;
    CriticalSection section(self);
    if (!UseList(self, &list)) return nullptr;
    auto size = static_cast<Py_ssize_t>(list.size());
    Py_ssize_t at = index < 0 ? std::max<Py_ssize_t>(index + size, 0) : std::min(index, size);
    list.insert(list.begin() + at, converted);
    Py_RETURN_NONE;
  });
}

// The cells of a list, in its critical section.
TVMFFIAny* CellsOf(TVMFFISeqCell* seq) { return static_cast<TVMFFIAny*>(seq->data); }

// What is removed is dropped last: that may run user code.
PyObject* ListDelSlice(PyObject* self, PyObject* slice) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return nullptr;
  return Guarded([&]() -> PyObject* {
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
  });
}

// `items` is a list that nobody else has.
PyObject* ListSetSlice(PyObject* self, PyObject* args) {
  PyObject *slice, *items;
  if (!PyArg_ParseTuple(args, "O!O!", &PySlice_Type, &slice, types.list, &items)) return nullptr;
  Ref owner;
  if (!FitElement(self, Put::kList, &items, &owner)) return nullptr;
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return nullptr;
  return Guarded([&]() -> PyObject* {
    static const auto* replace =
        new ffi::Function(ffi::Function::GetGlobalRequired("ffi.ListReplaceSlice"));
    ffi::List<ffi::Any> list(ffi::UnsafeInit{}), values(ffi::UnsafeInit{});
    CriticalSection section(self);
    if (!UseList(self, &list) || !UseList(items, &values)) return nullptr;
    TVMFFISeqCell* seq = UseSeq(self);
    Py_ssize_t count =
        PySlice_AdjustIndices(static_cast<Py_ssize_t>(seq->size), &start, &stop, step);
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
  });
}

// Cannot fail: without memory to put the elements aside, the list gives its storage away with them.
PyObject* ListClear(PyObject* self, PyObject*) {
  return Guarded([&]() -> PyObject* {
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
  });
}

PyObject* ListPopIndex(PyObject* self, PyObject* arg) {
  Py_ssize_t index;
  if (!ReadIndex(arg, &index)) return nullptr;
  return Guarded([&]() -> PyObject* {
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
  });
}

// ---- maps ----

ffi::MapBaseObj* UseMap(PyObject* self) {
  TVMFFIObject* h = UseAs(self, TypeIndex::kTVMFFIMap, TypeIndex::kTVMFFIDict);
  return h != nullptr ? ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<ffi::MapBaseObj>(h)
                      : nullptr;
}

Py_ssize_t MapLength(PyObject* self) {
  CriticalSection section(self);
  ffi::MapBaseObj* map = UseMap(self);
  return map != nullptr ? static_cast<Py_ssize_t>(map->size()) : -1;
}

const TVMFFIAny& CellOf(const ffi::Any& any) {
  return *ffi::details::AnyUnsafe::TVMFFIAnyPtrFromAny(any);
}

// With the error of a failed conversion set: whether the value is one that no container can hold,
// an integer out of range or a collection with one inside. Such a value is simply not there; the
// error is cleared.
bool CannotBeElement(PyObject* value) {
  if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
  if (!PyIndex_Check(value) && !PyTuple_Check(value) && !PyList_Check(value) &&
      !PyDict_Check(value)) {
    return false;
  }
  PyErr_Clear();
  return true;
}

PyObject* KeyErrorFor(PyObject* key) {
  // In a tuple, so that a tuple as key is not taken for several arguments.
  Ref args = Ref::Steal(PyTuple_Pack(1, key));
  if (args) PyErr_SetObject(PyExc_KeyError, args.get());
  return nullptr;
}

// Whether hashing a key, or comparing it with others of its type, may run Python code.
bool MayRunHook(const TVMFFIAny& key) { return key.type_index > TypeIndex::kTVMFFIBytes; }

// Calls found(value cell) or missing().
template <typename Found, typename Missing>
PyObject* MapLookup(PyObject* self, PyObject* key, const Found& found, const Missing& missing) {
  return Guarded([&]() -> PyObject* {
    Conversion args;
    if (!args.Add(key)) return CannotBeElement(key) ? missing() : nullptr;
    CriticalSection section(self);
    ffi::MapBaseObj* map = UseMap(self);
    if (map == nullptr) return nullptr;
    // The hooks of an object are user code and may take the map away from its wrapper.
    if (TVM_FFI_PREDICT_FALSE(MayRunHook(*args.data()))) {
      args.Hold(ffi::details::ObjectUnsafe::GetHeader(map));
      args.Hold(args.data()->v_obj);
    }
    // A view has the layout of an owned value and is only looked at.
    const ffi::Any& wanted = *reinterpret_cast<const ffi::Any*>(args.data());
    const ffi::Any* value = ffi::tether::MapOps::FindValue(map, wanted);
    return value != nullptr ? found(CellOf(*value)) : missing();
  });
}

PyObject* MapSubscript(PyObject* self, PyObject* key) {
  return MapLookup(
      self, key, [self](const TVMFFIAny& value) { return FromBorrowedAny(value, TagOf(self)); },
      [self, key] {
        return PyErr_Format(PyExc_KeyError, "key is not in %s: %R",
                            PyObject_TypeCheck(self, types.dict) ? "Dict" : "Map", key);
      });
}

int MapContains(PyObject* self, PyObject* key) {
  Ref found = Ref::Steal(MapLookup(
      self, key, [](const TVMFFIAny&) { return Py_NewRef(Py_True); },
      [] { return Py_NewRef(Py_False); }));
  return found ? found.get() == Py_True : -1;
}

PyObject* MapGetOr(PyObject* self, PyObject* args) {
  PyObject* key;
  PyObject* fallback = Py_None;
  if (!PyArg_ParseTuple(args, "O|O", &key, &fallback)) return nullptr;
  return MapLookup(
      self, key, [self](const TVMFFIAny& value) { return FromBorrowedAny(value, TagOf(self)); },
      [fallback] { return Py_NewRef(fallback); });
}

// Iterates over a snapshot of a Dict, which may change meanwhile, and over a Map itself, which
// cannot while somebody holds it.
enum class Part { kKeys, kValues, kItems };

struct MapIterator {
  PyObject_HEAD TVMFFIObject* map;  // a strong reference; NULL when exhausted
  ffi::MapBaseObj::iterator position;
  Part part;
};

PyTypeObject* map_iterator_type = nullptr;

// Copies the table as it is, without asking any key for its hash.
TVMFFIObject* SnapshotOf(ffi::MapBaseObj* map) {
  return ffi::details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(ffi::tether::MapOps::Copy(map));
}

PyObject* MakeMapIterator(PyObject* self, Part part) {
  return Guarded([&]() -> PyObject* {
    CriticalSection section(self);
    ffi::MapBaseObj* map = UseMap(self);
    if (map == nullptr) return nullptr;
    TVMFFIObject* held = ffi::details::ObjectUnsafe::GetHeader(map);
    if (held->type_index == TypeIndex::kTVMFFIDict) {
      held = SnapshotOf(map);
    } else {
      Engine::AddStrong(held);
    }
    auto* it = PyObject_New(MapIterator, map_iterator_type);
    if (it == nullptr) {
      Engine::DropStrong(held);
      return nullptr;
    }
    it->map = held;
    new (&it->position) ffi::MapBaseObj::iterator(
        ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<ffi::MapBaseObj>(held)->begin());
    it->part = part;
    return reinterpret_cast<PyObject*>(it);
  });
}

PyObject* MapIterNext(PyObject* self) {
  auto* it = reinterpret_cast<MapIterator*>(self);
  CriticalSection section(self);
  if (it->map == nullptr) return nullptr;
  auto* map = ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<ffi::MapBaseObj>(it->map);
  if (it->position == map->end()) {
    TVMFFIObject* held = it->map;
    it->map = nullptr;
    Engine::DropStrong(held);
    return nullptr;
  }
  auto& entry = *it->position;
  ++it->position;
  if (it->part == Part::kKeys) return FromBorrowedAny(CellOf(entry.first));
  if (it->part == Part::kValues) return FromBorrowedAny(CellOf(entry.second));
  // Making the first may run Python code that lets another thread finish the iterator.
  ffi::ObjectPtr<ffi::Object> hold = Hold(it->map);
  Ref key = Ref::Steal(FromBorrowedAny(CellOf(entry.first)));
  Ref value = key ? Ref::Steal(FromBorrowedAny(CellOf(entry.second))) : Ref();
  return value ? PyTuple_Pack(2, key.get(), value.get()) : nullptr;
}

void MapIterDealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  auto* it = reinterpret_cast<MapIterator*>(self);
  if (it->map != nullptr) Engine::DropStrong(it->map);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyType_Slot map_iterator_slots[] = {{Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                                    {Py_tp_iternext, Slot<MapIterNext>()},
                                    {Py_tp_dealloc, reinterpret_cast<void*>(MapIterDealloc)},
                                    {0, nullptr}};
PyType_Spec map_iterator_spec = {"tvm_ffi.core._MapIterator", sizeof(MapIterator), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 map_iterator_slots};

PyObject* MapIter(PyObject* self) { return MakeMapIterator(self, Part::kKeys); }
PyObject* MapKeysIter(PyObject* self, PyObject*) { return MakeMapIterator(self, Part::kKeys); }
PyObject* MapValuesIter(PyObject* self, PyObject*) { return MakeMapIterator(self, Part::kValues); }
PyObject* MapItemsIter(PyObject* self, PyObject*) { return MakeMapIterator(self, Part::kItems); }

// Takes a key out of a Dict, in one search. Calls gone(value), which may take the value over, or
// missing().
template <typename Gone, typename Missing>
PyObject* DictTake(PyObject* self, PyObject* key, const Gone& gone, const Missing& missing) {
  return Guarded([&]() -> PyObject* {
    ffi::Any wanted, value;
    if (!ToOwnedAny(key, &wanted)) return CannotBeElement(key) ? missing() : nullptr;
    {
      CriticalSection section(self);
      TVMFFIObject* h = UseAs(self, TypeIndex::kTVMFFIDict, TypeIndex::kTVMFFIDict);
      if (h == nullptr) return nullptr;
      ffi::ObjectPtr<ffi::Object> hold = Hold(h);
      auto* dict = static_cast<ffi::MapBaseObj*>(hold.get());
      const uint64_t index = ffi::tether::MapOps::FindIndex(dict, wanted, "erase");
      if (index == ffi::tether::MapOps::EndIndex(dict)) return missing();
      value = ffi::tether::MapOps::Entry(dict, index)->second;
      ffi::tether::MapOps::EraseIndex(dict, index);
    }
    return gone(&value);
  });
}

int DictAssign(PyObject* self, PyObject* key, PyObject* value) {
  Ref done;
  if (value == nullptr) {
    const auto gone = [](ffi::Any*) { return Py_NewRef(Py_None); };
    done = Ref::Steal(DictTake(self, key, gone, [key] { return KeyErrorFor(key); }));
    return done ? 0 : -1;
  }
  Ref key_owner, value_owner;
  if (!FitElement(self, Put::kKey, &key, &key_owner) ||
      !FitElement(self, Put::kElement, &value, &value_owner)) {
    return -1;
  }
  done = Ref::Steal(Guarded([&]() -> PyObject* {
    ffi::Any converted_key, converted_value;
    if (!ToOwnedAny(key, &converted_key)) return nullptr;
    if (!ToOwnedAny(value, &converted_value)) return nullptr;
    CriticalSection section(self);
    TVMFFIObject* h = UseAs(self, TypeIndex::kTVMFFIDict, TypeIndex::kTVMFFIDict);
    if (h == nullptr) return nullptr;
    ffi::Dict<ffi::Any, ffi::Any> dict(Hold(h));
    dict.Set(converted_key, converted_value);
    Py_RETURN_NONE;
  }));
  return done ? 0 : -1;
}

// pop(key[, default]) in one step, so that no other code comes between the look and the change.
PyObject* DictPop(PyObject* self, PyObject* args) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (n < 1 || n > 2) {
    return PyErr_Format(PyExc_TypeError, "pop expected at %s %d argument%s, got %zd",
                        n < 1 ? "least" : "most", n < 1 ? 1 : 2, n < 1 ? "" : "s", n);
  }
  PyObject* key = PyTuple_GET_ITEM(args, 0);
  PyObject* fallback = n == 2 ? PyTuple_GET_ITEM(args, 1) : nullptr;
  return DictTake(
      self, key,
      [self](ffi::Any* value) {
        return FromOwnedAny(ffi::details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(*value)),
                            TagOf(self));
      },
      [key, fallback] { return fallback != nullptr ? Py_NewRef(fallback) : KeyErrorFor(key); });
}

// ---- construction ----

// Array(iterable) and List(iterable). A failure leaves an empty object.
PyObject* SeqFill(PyObject* self, PyObject* items, bool is_list) {
  return Guarded([&]() -> PyObject* {
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
  });
}

PyObject* ArrayFill(PyObject* self, PyObject* items) { return SeqFill(self, items, false); }
PyObject* ListFill(PyObject* self, PyObject* items) { return SeqFill(self, items, true); }

// ---- types ----

PyType_Slot container_slots[] = {{Py_tp_doc, const_cast<char*>("Base of the container wrappers.")},
                                 {0, nullptr}};

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
PyMethodDef map_methods[] = {
    {"_get_or", Entry<MapGetOr>, METH_VARARGS, "The value of a key, or a default."},
    {"_keys_iter", Entry<MapKeysIter>, METH_NOARGS, nullptr},
    {"_values_iter", Entry<MapValuesIter>, METH_NOARGS, nullptr},
    {"_items_iter", Entry<MapItemsIter>, METH_NOARGS, nullptr},
    {"_pop", Entry<DictPop>, METH_VARARGS, "For Dict only."},
    {nullptr, nullptr, 0, nullptr}};

#define TETHER_SEQ_SLOTS                                                            \
  {Py_sq_length, Slot<SeqLength>()}, {Py_sq_item, Slot<SeqItem>()},                 \
      {Py_mp_length, Slot<SeqLength>()}, {Py_mp_subscript, Slot<SeqSubscript>()}, { \
    Py_tp_iter, Slot<SeqIter>()                                                     \
  }
#define TETHER_MAP_SLOTS                                                      \
  {Py_mp_length, Slot<MapLength>()}, {Py_mp_subscript, Slot<MapSubscript>()}, \
      {Py_sq_contains, Slot<MapContains>()}, {Py_tp_iter, Slot<MapIter>()}, { \
    Py_tp_methods, map_methods                                                \
  }

PyType_Slot array_slots[] = {TETHER_SEQ_SLOTS, {Py_tp_methods, array_methods}, {0, nullptr}};
PyType_Slot list_slots[] = {TETHER_SEQ_SLOTS, {Py_tp_methods, list_methods}, {0, nullptr}};
PyType_Slot map_slots[] = {TETHER_MAP_SLOTS, {0, nullptr}};
PyType_Slot dict_slots[] = {
    TETHER_MAP_SLOTS, {Py_mp_ass_subscript, Slot<DictAssign>()}, {0, nullptr}};

constexpr unsigned int kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
PyType_Spec container_spec = {"tvm_ffi.core.CContainerBase", sizeof(Wrapper), 0, kFlags,
                              container_slots};
PyType_Spec array_spec = {"tvm_ffi.core.ArrayBase", sizeof(Wrapper), 0, kFlags, array_slots};
PyType_Spec list_spec = {"tvm_ffi.core.ListBase", sizeof(Wrapper), 0, kFlags, list_slots};
PyType_Spec map_spec = {"tvm_ffi.core.MapBase", sizeof(Wrapper), 0, kFlags, map_slots};
PyType_Spec dict_spec = {"tvm_ffi.core.DictBase", sizeof(Wrapper), 0, kFlags, dict_slots};

// ---- functions as keys ----

// Each time a Python callable crosses, a new function is made around it. As keys they are equal if
// they call the same one. Others go by their address, as they do without these hooks.
int64_t HashFunction(const ffi::Any& value) {
  TVMFFIObject* function = CellOf(value).v_obj;
  PyObject* callable = upper_layers.callable_of(function);
  return callable != nullptr ? reinterpret_cast<int64_t>(callable)
                             : reinterpret_cast<int64_t>(function);
}

bool EqualFunctions(const ffi::Any& lhs, const ffi::Any& rhs) {
  return HashFunction(lhs) == HashFunction(rhs);
}

// A Function, not a raw pointer: releases differ in how they call pointers.
bool RegisterKeyHook(const char* name, const ffi::Function& function) {
  const TVMFFIByteArray column{name, strlen(name)};
  TVMFFIAny hook;
  tie::StoreObject(ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(function), &hook);
  const TVMFFITypeAttrColumn* known = TVMFFIGetTypeAttrColumn(&column);
  // Another copy of this module may have been here.
  if (ffi::tether::FindAttr(known, TypeIndex::kTVMFFIFunction) != nullptr) return true;
  const int code = TVMFFITypeRegisterAttr(TypeIndex::kTVMFFIFunction, &column, &hook);
  if (code != 0) RaiseFromCall(code);
  return code == 0;
}

}  // namespace

int InitContainerTypes(PyObject* module) {
  if (!RegisterKeyHook("__any_hash__", ffi::Function::FromTyped(HashFunction)) ||
      !RegisterKeyHook("__any_equal__", ffi::Function::FromTyped(EqualFunctions))) {
    return -1;
  }
  seq_iterator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&seq_iterator_spec));
  map_iterator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&map_iterator_spec));
  if (seq_iterator_type == nullptr || map_iterator_type == nullptr) return -1;
  types.container = AddType(module, &container_spec, types.object);
  if (types.container == nullptr) return -1;
  types.array = AddType(module, &array_spec, types.container);
  types.list = AddType(module, &list_spec, types.container);
  types.map = AddType(module, &map_spec, types.container);
  types.dict = AddType(module, &dict_spec, types.container);
  return types.array != nullptr && types.list != nullptr && types.map != nullptr &&
                 types.dict != nullptr
             ? 0
             : -1;
}

}  // namespace tether_py
