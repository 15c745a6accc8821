// SPDX-License-Identifier: Apache-2.0
// What the memory of an object refers to: the edges of the collector's graph.
//
// Nothing throws here. A field that cannot be read for lack of memory has no edge.
#ifndef TETHER_PYTHON_WRAP_EDGES_H_
#define TETHER_PYTHON_WRAP_EDGES_H_

#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>

#include <type_traits>

#include "python/wrap/edges_of_type.h"
#include "python/wrap/upper_layers.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

// ---- counts ----

inline uint64_t CombinedCount(TVMFFIObject* h) {
  return __atomic_load_n(&h->combined_ref_count, __ATOMIC_ACQUIRE);
}
inline bool IsSoleOwned(TVMFFIObject* h) {
  return CombinedCount(h) == ffi::details::kCombinedRefCountBothOne;
}
// Nobody else has it, and there is no wrapper, not even a dormant one: it can be used again.
inline bool IsSpareWithSlot(TVMFFIObject* h, const tie::TieSlot* slot) {
  return IsSoleOwned(h) && slot->word.load(std::memory_order_relaxed) == 0;
}
inline bool IsSpare(TVMFFIObject* h) {
  tie::TieSlot* slot = Engine::FindSlot(h);
  return slot != nullptr && IsSpareWithSlot(h, slot);
}

inline uint64_t StrongCount(TVMFFIObject* h) {
  return CombinedCount(h) & ffi::details::kCombinedRefCountMaskUInt32;
}
inline bool HasWeakReferences(TVMFFIObject* h) { return CombinedCount(h) >> 32 != 1; }

// ---- kinds of objects ----

// An edge that never changes: no thread can be writing it. Those of tensors and functions of other
// libraries are not known.
inline bool HasFixedEdges(int32_t type_index) {
  return type_index == ffi::TypeIndex::kTVMFFIFunction ||
         type_index == ffi::TypeIndex::kTVMFFITensor ||
         type_index == ffi::TypeIndex::kTVMFFIError ||
         type_index == ffi::TypeIndex::kTVMFFIOpaquePyObject;
}

// Not text, shapes and other values, which many share.
inline bool MayReferToOthers(int32_t type_index) {
  switch (type_index) {
    case ffi::TypeIndex::kTVMFFIArray:
    case ffi::TypeIndex::kTVMFFIList:
    case ffi::TypeIndex::kTVMFFIMap:
    case ffi::TypeIndex::kTVMFFIDict:
      return true;
    default:
      return HasFixedEdges(type_index) || (type_index >= ffi::TypeIndex::kTVMFFIDynObjectBegin &&
                                           FindEdgesOfType(type_index) != EdgesOfType::kNone);
  }
}

// ---- edges ----

// The object in a cell of `size` bytes, or NULL.
inline TVMFFIObject* ObjectInCell(const void* cell, int64_t size) {
  if (size == sizeof(void*)) return *static_cast<TVMFFIObject* const*>(cell);
  auto* any = static_cast<const TVMFFIAny*>(cell);
  return any->type_index >= ffi::TypeIndex::kTVMFFIStaticObjectBegin ? any->v_obj : nullptr;
}

// The module that a library's function keeps, or NULL.
extern TVMFFIObject* (*module_of_function)(TVMFFIObject* function);
inline bool KeepsItsModule(TVMFFIObject* function) {
  return module_of_function(function) != nullptr;
}

// Where an edge was found.
struct EdgePlace {
  enum Kind {
    kItem,          // index
    kKey,           // index, in the order of the map
    kValue,         // key
    kField,         // field
    kCallable,      // what a function of this frontend calls
    kKept,          // the keep_alive_object of a function
    kModule,        // of a library's function
    kMemory,        // the Python object whose memory a tensor shows
    kException,     // that an error carries
    kPythonObject,  // inside an opaque object
  };
  Kind kind;
  int64_t index = 0;
  const TVMFFIAny* key = nullptr;
  const TVMFFIFieldInfo* field = nullptr;
};

// f(to, place), or f(to) where f does not ask for the place.
template <typename F, typename T>
inline int TellEdge(F& f, T* to, const EdgePlace& place) {
  if constexpr (std::is_invocable_v<F&, T*, const EdgePlace&>) {
    return f(to, place);
  } else {
    (void)place;
    return f(to);
  }
}

// Calls f(TVMFFIObject*) and f(PyObject*) for what the memory of h refers to, until it returns
// something else than 0, and returns that. f may take the EdgePlace too.
template <typename F>
int ForEachEdge(TVMFFIObject* h, F&& f) {
  auto in_cell = [&f](const TVMFFIAny& cell, const EdgePlace& place) {
    bool is_object = cell.type_index >= ffi::TypeIndex::kTVMFFIStaticObjectBegin;
    return is_object ? TellEdge(f, cell.v_obj, place) : 0;
  };
  switch (h->type_index) {
    case ffi::TypeIndex::kTVMFFIArray:
    case ffi::TypeIndex::kTVMFFIList: {
      auto* cell = reinterpret_cast<TVMFFISeqCell*>(h + 1);
      auto* items = static_cast<const TVMFFIAny*>(cell->data);
      for (int64_t i = 0; i < cell->size; ++i) {
        if (int result = in_cell(items[i], {EdgePlace::kItem, i})) return result;
      }
      return 0;
    }
    case ffi::TypeIndex::kTVMFFIMap:
    case ffi::TypeIndex::kTVMFFIDict: {
      auto cell_of = [](const ffi::Any& any) -> const TVMFFIAny& {
        return *ffi::details::AnyUnsafe::TVMFFIAnyPtrFromAny(any);
      };
      auto* map = ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<ffi::MapBaseObj>(h);
      int64_t i = 0;
      for (auto it = map->begin(); it != map->end(); ++it, ++i) {
        const TVMFFIAny& key = cell_of((*it).first);
        if (int result = in_cell(key, {EdgePlace::kKey, i})) return result;
        EdgePlace place{EdgePlace::kValue, i, &key};
        if (int result = in_cell(cell_of((*it).second), place)) return result;
      }
      return 0;
    }
    case ffi::TypeIndex::kTVMFFIFunction: {
      if (PyObject* callable = upper_layers.callable_of(h)) {
        return TellEdge(f, callable, {EdgePlace::kCallable});
      }
      if (PyObject* kept = upper_layers.kept_by(h)) return TellEdge(f, kept, {EdgePlace::kKept});
      TVMFFIObject* module = module_of_function(h);
      return module != nullptr ? TellEdge(f, module, {EdgePlace::kModule}) : 0;
    }
    case ffi::TypeIndex::kTVMFFITensor: {
      PyObject* owner = upper_layers.memory_owner_of(h);
      return owner != nullptr ? TellEdge(f, owner, {EdgePlace::kMemory}) : 0;
    }
    case ffi::TypeIndex::kTVMFFIError: {
      PyObject* exc = upper_layers.exception_in(h);
      return exc != nullptr ? TellEdge(f, exc, {EdgePlace::kException}) : 0;
    }
    case ffi::TypeIndex::kTVMFFIOpaquePyObject:
      return TellEdge(f, static_cast<PyObject*>(TVMFFIOpaqueObjectGetCellPtr(h)->handle),
                      {EdgePlace::kPythonObject});
    default:
      break;
  }
  for (const OwningField& field : FindOwningFields(h->type_index)->all) {
    TVMFFIObject* child = ObjectInCell(reinterpret_cast<char*>(h) + field.offset, field.size);
    if (child == nullptr) continue;
    if (int result = TellEdge(f, child, {EdgePlace::kField, 0, nullptr, field.info})) return result;
  }
  return 0;
}

inline bool HasEdges(TVMFFIObject* h) {
  return ForEachEdge(h, [](auto*) { return 1; }) != 0;
}

void LearnEdges();  // at import; throws

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_EDGES_H_
