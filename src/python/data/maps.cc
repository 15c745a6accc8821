// SPDX-License-Identifier: Apache-2.0
// Map and Dict at C speed: length, lookup and iteration. The package's classes add the rest of the
// mapping protocol. What is shared: container_base.h.
#include "python/data/maps.h"

#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/map.h>

#include <utility>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/data/container_base.h"
#include "python/data/dict_methods.h"
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

bool CannotBeElement(PyObject* value) {
  if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
  if (!PyIndex_Check(value) && !PyTuple_Check(value) && !PyList_Check(value) &&
      !PyDict_Check(value)) {
    return false;
  }
  PyErr_Clear();
  return true;
}

PyObject* FindInMap(PyObject* self, PyObject* key) {
  return MapLookup(
      self, key, [self](const TVMFFIAny& value) { return FromBorrowedAny(value, TagOf(self)); },
      [] { return static_cast<PyObject*>(nullptr); });
}

int InitMapTypes(PyObject* module) {
  map_iterator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&map_iterator_spec));
  if (map_iterator_type == nullptr) return -1;
  types.map = AddType(module, &map_spec, types.container);
  types.dict = AddType(module, &dict_spec, types.container);
  return types.map != nullptr && types.dict != nullptr ? 0 : -1;
}

}  // namespace tether_py
