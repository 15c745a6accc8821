// SPDX-License-Identifier: Apache-2.0
// What changes a Dict. What is shared: container_base.h.
#include "python/data/dict_methods.h"

#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/map.h>

#include <utility>

#include "python/base/python_api.h"
#include "python/data/container_base.h"
#include "python/data/maps.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

PyObject* KeyErrorFor(PyObject* key) {
  // In a tuple, so that a tuple as key is not taken for several arguments.
  Ref args = Ref::Steal(PyTuple_Pack(1, key));
  if (args) PyErr_SetObject(PyExc_KeyError, args.get());
  return nullptr;
}

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

PyObject* FromOwnedValue(PyObject* self, ffi::Any* value) {
  return FromOwnedAny(ffi::details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(*value)), TagOf(self));
}

}  // namespace

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

PyObject* DictSetDefault(PyObject* self, PyObject* args) {
  PyObject* key;
  PyObject* fallback = Py_None;
  if (!PyArg_ParseTuple(args, "O|O:setdefault", &key, &fallback)) return nullptr;
  PyObject* present = FindInMap(self, key);
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

PyObject* DictPopItem(PyObject* self, PyObject*) {
  return DictTake(
      self, [](const ffi::MapBaseObj* dict) { return ffi::tether::MapOps::FirstIndex(dict); },
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

}  // namespace tether_py
