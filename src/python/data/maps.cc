// SPDX-License-Identifier: Apache-2.0
// Map and Dict at C speed: length, lookup, iteration and the common mutations. The package's
// classes add the rest of the mapping protocol. What is shared: container_base.h.
#include "python/data/maps.h"

#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/map.h>

#include <utility>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/data/container_base.h"
#include "python/wrap/collector.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

ffi::MapBaseObj* AsMap(TVMFFIObject* h) {
  return h != nullptr ? ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<ffi::MapBaseObj>(h)
                      : nullptr;
}

ffi::MapBaseObj* UseMap(PyObject* self) {
  return AsMap(UseAs(self, TypeIndex::kTVMFFIMap, TypeIndex::kTVMFFIDict));
}

Py_ssize_t MapLength(PyObject* self) {
  CriticalSection section(self);
  ffi::MapBaseObj* map = UseMap(self);
  return map != nullptr ? static_cast<Py_ssize_t>(map->size()) : -1;
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

// UseHandle where the map has to be woken up, which may run Python code: `args` holds the key then.
TVM_FFI_NO_INLINE TVMFFIObject* WakeHoldingKey(PyObject* self, Arguments* args) {
  bool is_object = args->data()->type_index >= TypeIndex::kTVMFFIStaticObjectBegin;
  if (!kFreeThreaded && is_object) args->Hold(args->data()->v_obj);
  return UseHandle(AsWrapper(self));
}

// Calls found(value cell) or missing().
template <typename Found, typename Missing>
PyObject* MapLookup(PyObject* self, PyObject* key, const Found& found, const Missing& missing) {
  Conversion args;
  if (!args.Add(key)) return CannotBeElement(key) ? missing() : nullptr;
  CriticalSection section(self);
  TVMFFIObject* h = ActiveObject(self);
  if (TVM_FFI_PREDICT_FALSE(h == nullptr)) h = WakeHoldingKey(self, &args);
  ffi::MapBaseObj* map = AsMap(CheckIs(self, h, TypeIndex::kTVMFFIMap, TypeIndex::kTVMFFIDict));
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
  if (!PyArg_ParseTuple(args, "O|O:get", &key, &fallback)) return nullptr;
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
  CriticalSection section(self);
  ffi::MapBaseObj* map = UseMap(self);
  if (map == nullptr) return nullptr;
  TVMFFIObject* held = ffi::details::ObjectUnsafe::GetHeader(map);
  if (held->type_index == TypeIndex::kTVMFFIDict) {
    held = SnapshotOf(map);
  } else {
    Engine::AddStrong(held);
  }
  auto* it = PyObject_GC_New(MapIterator, map_iterator_type);
  if (it == nullptr) {
    Engine::DropStrong(held);
    return nullptr;
  }
  it->map = held;
  new (&it->position) ffi::MapBaseObj::iterator(
      ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<ffi::MapBaseObj>(held)->begin());
  it->part = part;
  PyObject_GC_Track(it);
  return reinterpret_cast<PyObject*>(it);
}

int MapIterClear(PyObject* self) {
  auto* it = reinterpret_cast<MapIterator*>(self);
  TVMFFIObject* held = it->map;
  it->map = nullptr;
  if (held != nullptr) Engine::DropStrong(held);
  return 0;
}

int MapIterTraverse(PyObject* self, visitproc visit, void* arg) {
  auto* it = reinterpret_cast<MapIterator*>(self);
  Py_VISIT(Py_TYPE(self));
  return it->map != nullptr ? VisitHeld(it->map, visit, arg) : 0;
}

PyObject* MapIterNext(PyObject* self) {
  auto* it = reinterpret_cast<MapIterator*>(self);
  CriticalSection section(self);
  if (it->map == nullptr) return nullptr;
  auto* map = ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<ffi::MapBaseObj>(it->map);
  if (it->position == map->end()) {
    MapIterClear(self);
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
  PyObject_GC_UnTrack(self);
  MapIterClear(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

PyType_Slot map_iterator_slots[] = {{Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                                    {Py_tp_iternext, Slot<MapIterNext>()},
                                    {Py_tp_traverse, reinterpret_cast<void*>(MapIterTraverse)},
                                    {Py_tp_clear, reinterpret_cast<void*>(MapIterClear)},
                                    {Py_tp_dealloc, reinterpret_cast<void*>(MapIterDealloc)},
                                    {0, nullptr}};
PyType_Spec map_iterator_spec = {
    "tvm_ffi.core._MapIterator", sizeof(MapIterator), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    map_iterator_slots};

PyObject* MapIter(PyObject* self) { return MakeMapIterator(self, Part::kKeys); }
PyObject* MapKeysIter(PyObject* self, PyObject*) { return MakeMapIterator(self, Part::kKeys); }
PyObject* MapValuesIter(PyObject* self, PyObject*) { return MakeMapIterator(self, Part::kValues); }
PyObject* MapItemsIter(PyObject* self, PyObject*) { return MakeMapIterator(self, Part::kItems); }

// The Dict behind `self`, held. Null with an error set.
ffi::ObjectPtr<ffi::MapBaseObj> HoldDict(PyObject* self) {
  TVMFFIObject* h = UseAs(self, TypeIndex::kTVMFFIDict, TypeIndex::kTVMFFIDict);
  return h != nullptr ? ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::MapBaseObj>(h)
                      : nullptr;
}

// An entry of a Dict, as it was found.
struct FoundEntry {
  uint64_t index = 0;
  HeldElement key, value;

  // False if the index is that of no entry.
  bool Hold(const ffi::MapBaseObj* dict, uint64_t i) {
    if (i == ffi::tether::MapOps::EndIndex(dict)) return false;
    index = i;
    const ffi::tether::MapEntry* entry = ffi::tether::MapOps::Entry(dict, i);
    key.Hold(entry->first);
    value.Hold(entry->second);
    return true;
  }
  bool IsStillIn(const ffi::MapBaseObj* dict) const {
    if (!ffi::tether::MapOps::IsOccupied(dict, index)) return false;
    const ffi::tether::MapEntry* entry = ffi::tether::MapOps::Entry(dict, index);
    return key.Is(entry->first) && value.Is(entry->second);
  }
};

// Takes an entry out of a Dict. What cannot be converted stays in, so the entry is converted first,
// which may run other code, and removed if it is still there and is_still_found(dict, index).
// Otherwise everything begins anew. find(dict) gives an index; convert(entry) or missing() makes
// the result.
template <typename Find, typename Again, typename Convert, typename Missing>
PyObject* DictTake(PyObject* self, const Find& find, const Again& is_still_found,
                   const Convert& convert, const Missing& missing) {
  for (int i = 0; i < ffi::tether::kMaxSearches; ++i) {
    FoundEntry entry;
    bool exists;
    {
      CriticalSection section(self);
      ffi::ObjectPtr<ffi::MapBaseObj> dict = HoldDict(self);
      if (dict == nullptr) return nullptr;
      exists = entry.Hold(dict.get(), find(dict.get()));
    }
    if (!exists) return missing();
    Ref result = Ref::Steal(convert(entry));
    if (!result) return nullptr;
    CriticalSection section(self);
    ffi::ObjectPtr<ffi::MapBaseObj> dict = HoldDict(self);
    if (dict == nullptr) return nullptr;
    if (!entry.IsStillIn(dict.get()) || !is_still_found(dict.get(), entry.index)) continue;
    ffi::tether::MapOps::EraseIndex(dict.get(), entry.index);
    return result.release();
  }
  return PyErr_Format(PyExc_RuntimeError,
                      "Dict changed whenever the entry to remove was converted");
}

uint64_t FindToErase(const ffi::MapBaseObj* dict, const ffi::Any& key) {
  return ffi::tether::MapOps::FindIndex(dict, key, "erase");
}

// False with an error set.
bool DictDelete(PyObject* self, PyObject* key) {
  ffi::Any wanted;
  bool can_be_there = ToOwnedAny(key, &wanted);
  if (!can_be_there && !CannotBeElement(key)) return false;
  FoundEntry entry;
  bool existed = false;
  if (can_be_there) {
    CriticalSection section(self);
    ffi::ObjectPtr<ffi::MapBaseObj> dict = HoldDict(self);
    if (dict == nullptr) return false;
    existed = entry.Hold(dict.get(), FindToErase(dict.get(), wanted));
    if (existed) ffi::tether::MapOps::EraseIndex(dict.get(), entry.index);
  }
  if (!existed) KeyErrorFor(key);
  return existed;
}

// Converts a key and a value that a Dict is to hold.
bool ConvertEntry(PyObject* self, PyObject* key, PyObject* value, ffi::Any* converted_key,
                  ffi::Any* converted_value) {
  Ref key_owner, value_owner;
  return FitElement(self, Put::kKey, &key, &key_owner) &&
         FitElement(self, Put::kElement, &value, &value_owner) && ToOwnedAny(key, converted_key) &&
         ToOwnedAny(value, converted_value);
}

int DictAssign(PyObject* self, PyObject* key, PyObject* value) {
  if (value == nullptr) return DictDelete(self, key) ? 0 : -1;
  ffi::Any converted_key, converted_value;
  if (!ConvertEntry(self, key, value, &converted_key, &converted_value)) return -1;
  CriticalSection section(self);
  TVMFFIObject* h = UseAs(self, TypeIndex::kTVMFFIDict, TypeIndex::kTVMFFIDict);
  if (h == nullptr) return -1;
  ffi::Dict<ffi::Any, ffi::Any> dict(Hold(h));
  dict.Set(converted_key, converted_value);
  return 0;
}

PyObject* FromOwnedValue(PyObject* self, ffi::Any* value) {
  return FromOwnedAny(ffi::details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(*value)), TagOf(self));
}

// setdefault(key[, default]), of which only one of several threads stores its default. A default
// that is not needed is not converted.
PyObject* DictSetDefault(PyObject* self, PyObject* args) {
  PyObject* key;
  PyObject* fallback = Py_None;
  if (!PyArg_ParseTuple(args, "O|O:setdefault", &key, &fallback)) return nullptr;
  PyObject* present = MapLookup(
      self, key, [self](const TVMFFIAny& value) { return FromBorrowedAny(value, TagOf(self)); },
      [] { return static_cast<PyObject*>(nullptr); });
  if (present != nullptr || PyErr_Occurred()) return present;
  ffi::Any converted_key, converted_value, stored;
  if (!ConvertEntry(self, key, fallback, &converted_key, &converted_value)) return nullptr;
  {
    CriticalSection section(self);
    TVMFFIObject* h = UseAs(self, TypeIndex::kTVMFFIDict, TypeIndex::kTVMFFIDict);
    if (h == nullptr) return nullptr;
    ffi::ObjectPtr<ffi::Object> hold = Hold(h);
    stored = ffi::tether::MapOps::SetDefault(static_cast<ffi::MapBaseObj*>(hold.get()),
                                             converted_key, converted_value);
  }
  return FromOwnedValue(self, &stored);
}

// Takes the first entry out of a Dict, which asks no key for anything.
PyObject* DictPopItem(PyObject* self, PyObject*) {
  return DictTake(
      self, ffi::tether::MapOps::FirstIndex,
      [](const ffi::MapBaseObj* dict, uint64_t index) {
        return ffi::tether::MapOps::FirstIndex(dict) == index;
      },
      [self](const FoundEntry& entry) -> PyObject* {
        Ref key = Ref::Steal(entry.key.ToPython(self));
        Ref value = key ? Ref::Steal(entry.value.ToPython(self)) : Ref();
        return value ? PyTuple_Pack(2, key.get(), value.get()) : nullptr;
      },
      [] { return PyErr_Format(PyExc_KeyError, "popitem(): this Dict is empty"); });
}

// pop(key[, default]). What is removed is what is returned, whatever other code does meanwhile.
PyObject* DictPop(PyObject* self, PyObject* args) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (n < 1 || n > 2) {
    return PyErr_Format(PyExc_TypeError, "pop expected at %s %d argument%s, got %zd",
                        n < 1 ? "least" : "most", n < 1 ? 1 : 2, n < 1 ? "" : "s", n);
  }
  PyObject* key = PyTuple_GET_ITEM(args, 0);
  PyObject* fallback = n == 2 ? PyTuple_GET_ITEM(args, 1) : nullptr;
  const auto missing = [key, fallback] {
    return fallback != nullptr ? Py_NewRef(fallback) : KeyErrorFor(key);
  };
  ffi::Any wanted;
  if (!ToOwnedAny(key, &wanted)) return CannotBeElement(key) ? missing() : nullptr;
  return DictTake(
      self, [&](const ffi::MapBaseObj* dict) { return FindToErase(dict, wanted); },
      [](const ffi::MapBaseObj*, uint64_t) { return true; },
      [self](const FoundEntry& entry) { return entry.value.ToPython(self); }, missing);
}

// ---- types ----

PyMethodDef map_methods[] = {
    {"_get_or", Entry<MapGetOr>, METH_VARARGS, "The value of a key, or a default."},
    {"_keys_iter", Entry<MapKeysIter>, METH_NOARGS, nullptr},
    {"_values_iter", Entry<MapValuesIter>, METH_NOARGS, nullptr},
    {"_items_iter", Entry<MapItemsIter>, METH_NOARGS, nullptr},
    {"_pop", Entry<DictPop>, METH_VARARGS, "For Dict only."},
    {"_pop_first", Entry<DictPopItem>, METH_NOARGS, "For Dict only."},
    {"_set_default", Entry<DictSetDefault>, METH_VARARGS, "For Dict only."},
    {nullptr, nullptr, 0, nullptr}};

#define TETHER_MAP_SLOTS                                                      \
  {Py_mp_length, Slot<MapLength>()}, {Py_mp_subscript, Slot<MapSubscript>()}, \
      {Py_sq_contains, Slot<MapContains>()}, {Py_tp_iter, Slot<MapIter>()}, { \
    Py_tp_methods, map_methods                                                \
  }

PyType_Slot map_slots[] = {TETHER_MAP_SLOTS, {0, nullptr}};
PyType_Slot dict_slots[] = {
    TETHER_MAP_SLOTS, {Py_mp_ass_subscript, Slot<DictAssign>()}, {0, nullptr}};

PyType_Spec map_spec = {"tvm_ffi.core.MapBase", sizeof(Wrapper), 0, kContainerFlags, map_slots};
PyType_Spec dict_spec = {"tvm_ffi.core.DictBase", sizeof(Wrapper), 0, kContainerFlags, dict_slots};

}  // namespace

int InitMapTypes(PyObject* module) {
  map_iterator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&map_iterator_spec));
  if (map_iterator_type == nullptr) return -1;
  types.map = AddType(module, &map_spec, types.container);
  types.dict = AddType(module, &dict_spec, types.container);
  return types.map != nullptr && types.dict != nullptr ? 0 : -1;
}

}  // namespace tether_py
