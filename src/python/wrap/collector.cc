// SPDX-License-Identifier: Apache-2.0
// A wrapper and its object as one node of the garbage collector's graph.
//
// The collector subtracts, from each object's reference count, the references it finds inside the
// graph; what is left comes from outside. References that C++ holds to H count for W: when W is
// traversed by the subtracting visitor, H's other strong references are added to what W has. And
// where W is the only owner of H, the objects that H's memory holds are W's to report; each such
// edge takes one away again.
//
// That is rule A. It needs to know the visitor and where the count is; where a check at import
// fails (another collector than those known), rule B takes over: the finaliser hands a wrapper
// whose object is shared over to it, as from dealloc, and every wrapper that somebody gets while a
// collection runs is on a guard list until it ends. Identity and state survive; weak references in
// garbage cycles are cleared by CPython before anybody is asked.
//
// What an object refers to is read
//   - if it never changes after construction: whoever shares the object (callable of a function,
//     owner of a tensor's memory, opaque Python object, module of a library's function);
//   - if only the wrapper owns the object, or a class in Python defined its fields: such rings have
//     dormant wrappers alone, and are broken by emptying the fields that Python defined;
//   - if all its owners are known: every strong reference to it is its wrapper's or was found in
//     memory that is read here. Other memory is C++'s, whose threads may be changing it.
// The second and third need a collection that finds no other thread in a call without the GIL. The
// subtracting pass finds out and remembers; all other visitors see the edges that it took away.
//
// Out of memory: nothing throws here. What cannot be remembered is not looked into, so references
// from there count as from outside, and a ring waits for a later collection. That is decided in the
// subtracting pass. An edge that it took away must be seen by the others, so those need no memory
// that it has not left for them (EdgeWalk).
//
// Dormant wrappers of objects that Python code defined would make every collection longer. Those
// that survive one are hidden, and shown to full ones only. CPython does not know of them, so we
// ask for full collections ourselves (Patience).
#include "python/wrap/collector.h"
#include "python/base/entry.h"

#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/accessor.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/field_kind.h"
#include "python/base/pointer_set.h"
#include "python/wrap/arguments.h"
#include "python/wrap/upper_layers.h"

namespace tether_py {

using ffi::tether::FieldKind;
using ffi::tether::HoldsReferences;
using ffi::tether::KindOfField;

namespace {

visitproc subtracting_visitor = nullptr;  // learned at import; NULL while unknown
bool learning = false;

// The module that a library's function keeps, or NULL.
TVMFFIObject* (*module_of_function)(TVMFFIObject* function) = nullptr;

// ---- edges ----

uint64_t CombinedCount(TVMFFIObject* h) {
  return __atomic_load_n(&h->combined_ref_count, __ATOMIC_ACQUIRE);
}
bool IsSoleOwned(TVMFFIObject* h) {
  return CombinedCount(h) == ffi::details::kCombinedRefCountBothOne;
}

uint64_t StrongCount(TVMFFIObject* h) {
  return CombinedCount(h) & ffi::details::kCombinedRefCountMaskUInt32;
}
bool HasWeakReferences(TVMFFIObject* h) { return CombinedCount(h) >> 32 != 1; }

// ---- objects that can be emptied ----

bool IsDefinedInPython(int32_t type_index) {
  static const ffi::reflection::TypeAttrColumn layouts("__tether_py_class_layout__");
  return layouts[type_index] != nullptr;
}

// Calls f(field) for the fields of references that Python defined, until it returns true.
template <typename F>
bool AnyPythonField(int32_t type_index, F&& f) {
  const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(type_index);
  for (int32_t depth = type->type_depth; depth >= 0; --depth) {
    const TVMFFITypeInfo* owner = depth == type->type_depth ? type : type->type_ancestors[depth];
    if (!IsDefinedInPython(owner->type_index)) return false;  // nor are its ancestors
    for (int32_t i = 0; i < owner->num_fields; ++i) {
      if (HoldsReferences(KindOfField(owner->fields[i])) && f(owner->fields[i])) return true;
    }
  }
  return false;
}

// Drops what the fields of h that Python defined refer to. That may die and run Python code.
void Empty(TVMFFIObject* h) {
  AnyPythonField(h->type_index, [h](const TVMFFIFieldInfo& field) {
    char* address = reinterpret_cast<char*>(h) + field.offset;
    // Moved out first: the storage is empty before anything can look at it again.
    if (KindOfField(field) == FieldKind::kAny) {
      ffi::Any old = std::move(*reinterpret_cast<ffi::Any*>(address));
    } else {
      auto old = std::move(*reinterpret_cast<ffi::ObjectPtr<ffi::Object>*>(address));
    }
    return false;
  });
}

// The collection in progress.
struct Collection {
  bool is_full = true;
  // No other thread is in a call without the GIL.
  bool is_quiet = false;
  // Objects of dormant wrappers that were looked into; held until it is over.
  PointerSet<TVMFFIObject> pins;
  // Dormant wrappers that are to be hidden at its end.
  PointerSet<Wrapper> shown;

  // Objects without a wrapper that reads them, by how many of their owners were found so far. Of
  // one pass: the collector makes another after finalisers have run.
  struct Owners {
    uint64_t found = 0;
    bool are_known = false;
    visitproc told = nullptr;      // the last visitor that has seen the edges
    TVMFFIObject* next = nullptr;  // in the list of an EdgeWalk
  };
  std::unordered_map<TVMFFIObject*, Owners> owners;
  // In a collection of young objects: those without a wrapper whose edges were taken away.
  PointerSet<TVMFFIObject> read;
  bool is_subtracting = false;
  bool has_run = false;  // 3.14 calls it a collection when it decides to do nothing
  // The stack of the walk that is under way. It keeps its room until the collection ends.
  std::vector<TVMFFIObject*> pending;
  std::atomic<bool> is_pending_used{false};
  bool is_out_of_memory = false;  // the stack could not grow, and does not until the next pass
  // Debug builds: whose count AddHeldByCpp has added to, in this pass over the objects.
  std::unordered_set<PyObject*> added;
};
// Never destroyed: wrappers die later than static objects.
Collection& collection = *new Collection();

// A wrapper without object that every collection visits, and finds alive: so the pass after the
// subtracting one is noticed even if all other wrappers are garbage.
PyObject* sentinel = nullptr;

// With the GIL only. A hidden wrapper has no weak references; that field says where it is in here.
std::vector<Wrapper*>& hidden = *new std::vector<Wrapper*>();

void ShowHidden() {
  if (!collection.shown.Reserve(collection.shown.size() + hidden.size())) return;
  for (Wrapper* w : hidden) {
    w->weakrefs = nullptr;
    PyObject_GC_Track(AsObject(w));
    collection.shown.Insert(w);
  }
  hidden.clear();
}

void HideShown() {
  PointerSet<Wrapper> shown;
  shown.Swap(&collection.shown);
  shown.ForEach([](Wrapper* w) {
    // Somebody may have found it in gc.get_objects().
    if (w->weakrefs == nullptr && Py_REFCNT(AsObject(w)) == 1) Hide(w);
  });
}

// An edge that never changes: no thread can be writing it. Those of tensors and functions of other
// libraries are not known.
bool HasFixedEdges(int32_t type_index) {
  return type_index == ffi::TypeIndex::kTVMFFIFunction ||
         type_index == ffi::TypeIndex::kTVMFFITensor ||
         type_index == ffi::TypeIndex::kTVMFFIError ||
         type_index == ffi::TypeIndex::kTVMFFIOpaquePyObject;
}

// Whether a shared object may be looked into now. Where the visitor is not known, nothing counts
// the references that are not found.
bool LooksIntoShared(TVMFFIObject* h, bool counts) {
  if (!Runtime::collecting || subtracting_visitor == nullptr) return false;
  // A thread may get hold of it at any time. What was looked into stays so in this collection.
  if (counts && HasWeakReferences(h)) return false;
  return HasFixedEdges(h->type_index) || (collection.is_quiet && CanBeEmptied(h->type_index));
}

// Strong references to h less the one that this collection took.
uint64_t OutsideCount(TVMFFIObject* h) {
  return StrongCount(h) - (collection.pins.Contains(h) ? 1 : 0);
}

// Rule B: wrappers that somebody got since the collection began, each with a reference.
struct GuardList {
  ShortLock lock;
  std::unordered_set<Wrapper*> wrappers;
  bool is_incomplete = false;  // out of memory: any wrapper may be one of them
} guards;
bool uses_rule_b = false;

void ReleaseGuards() {
  std::unordered_set<Wrapper*> released;
  {
    std::lock_guard<ShortLock> locked(guards.lock);
    released.swap(guards.wrappers);
    guards.is_incomplete = false;
  }
  for (Wrapper* w : released) Py_DECREF(AsObject(w));
}

// The wrapper of h if the collector knows it.
PyObject* TrackedWrapper(uintptr_t word) {
  auto* w = reinterpret_cast<PyObject*>(word & ~tie::kWordTags);
  return w != nullptr && PyObject_GC_IsTracked(w) ? w : nullptr;
}

// Not text, shapes and the like, which many share.
bool MayReferToOthers(int32_t type_index) {
  switch (type_index) {
    case ffi::TypeIndex::kTVMFFIArray:
    case ffi::TypeIndex::kTVMFFIList:
    case ffi::TypeIndex::kTVMFFIMap:
    case ffi::TypeIndex::kTVMFFIDict:
      return true;
    default:
      return HasFixedEdges(type_index) || type_index >= ffi::TypeIndex::kTVMFFIDynObjectBegin;
  }
}

// NULL when out of memory. Then the count never gets to the number of owners.
Collection::Owners* OwnersOf(TVMFFIObject* h) {
  try {
    return &collection.owners[h];
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// The subtracting visitor has found one more owner of `child`, whose wrapper is w or none that the
// collector knows. True if that was the last one: its edges are to be taken away now. Others
// are shown them by its wrapper, or, where it has none, by its owners.
bool FoundAllOwners(TVMFFIObject* child, uintptr_t word, PyObject* w) {
  if (!Runtime::collecting || !collection.is_quiet) return false;
  if (!MayReferToOthers(child->type_index) || HasWeakReferences(child)) return false;
  if (w != nullptr) {
    // A wrapper that reports its object in any case, or one that this collection does not visit.
    if (LooksIntoShared(child, true) || !IsCollecting(w)) return false;
  }
  Collection::Owners* owners = OwnersOf(child);
  if (owners == nullptr) return false;
  bool is_active = (word & ~tie::kWordTags) != 0 && (word & tie::kInactive) == 0;
  uint64_t in_memory = OutsideCount(child) - (is_active ? 1 : 0);
  return ++owners->found == in_memory;
}

// The edges of h are being taken away.
void KnowOwners(TVMFFIObject* h) {
  auto it = collection.owners.find(h);
  if (it != collection.owners.end()) it->second.are_known = true;
}

// Whether the edges of h were taken away because all its owners are known, and this visitor has yet
// to see them. One time is enough for all its owners: visitors mark what is alive.
bool AreOwnersKnown(TVMFFIObject* h, visitproc visit) {
  if (collection.owners.empty()) return false;
  auto it = collection.owners.find(h);
  if (it == collection.owners.end() || !it->second.are_known || it->second.told == visit) {
    return false;
  }
  it->second.told = visit;
  return true;
}

// ---- fields that do not say what they hold in memory ----
//
// Clients compiled against older headers do not mark fields as plain. What such a field declares
// tells a reference that counts from anything else in three cases:
//   8 bytes, static type of an object   raw pointers have no static type, standard containers are
//                                       larger
//   8 bytes, Optional of an object      std::optional of a reference has 16 bytes
//   16 bytes, Any
// Other fields are not read: std::optional and std::variant share schemas with types of ours that
// have another layout.

// The object in a cell of `size` bytes, or NULL.
TVMFFIObject* ObjectInCell(const void* cell, int64_t size) {
  if (size == sizeof(void*)) return *static_cast<TVMFFIObject* const*>(cell);
  auto* any = static_cast<const TVMFFIAny*>(cell);
  return any->type_index >= ffi::TypeIndex::kTVMFFIStaticObjectBegin ? any->v_obj : nullptr;
}

// The value of a key in a JSON object; None where there is none.
ffi::json::Value Get(const ffi::json::Value& object, const char* key) {
  auto entries = object.as<ffi::json::Object>();
  if (!entries.has_value() || entries->count(key) == 0) return nullptr;
  return (*entries)[key];
}

ffi::String TypeName(const ffi::json::Value& schema) {
  auto name = Get(schema, "type").as<ffi::String>();
  return name.has_value() ? *name : ffi::String();
}

bool IsObjectType(const ffi::json::Value& schema) {
  ffi::String name = TypeName(schema);
  TVMFFIByteArray key{name.data(), name.size()};
  int32_t index = -1;
  if (TVMFFITypeKeyToIndex(&key, &index) != 0) {
    ffi::details::MoveFromSafeCallRaised();
    return false;
  }
  return index >= ffi::TypeIndex::kTVMFFIStaticObjectBegin;
}

// Throws where the schema cannot be read.
bool DeclaresReference(const TVMFFIFieldInfo& field) {
  ffi::json::Value metadata =
      ffi::json::Parse(ffi::String(field.metadata.data, field.metadata.size));
  auto text = Get(metadata, "type_schema").as<ffi::String>();
  if (!text.has_value()) return false;
  ffi::json::Value schema = ffi::json::Parse(*text);
  ffi::String name = TypeName(schema);
  if (field.size == sizeof(TVMFFIAny)) return name == "Any";
  auto args = Get(schema, "args").as<ffi::json::Array>();
  return name == "Optional" && args.has_value() && args->size() == 1 && IsObjectType((*args)[0]);
}

// Answers of DeclaresReference by the address of the metadata, which stays.
struct KnownFields {
  std::unordered_map<const void*, bool> answers;
  ShortLock lock;  // a traversal while other threads run may ask
};
KnownFields& known_fields = *new KnownFields();

// Whether a field that is not marked owns the object that its memory refers to.
bool OwnsObject(const TVMFFIFieldInfo& field) {
  bool is_pointer = field.size == sizeof(void*);
  if (field.field_static_type_index >= ffi::TypeIndex::kTVMFFIObject) return is_pointer;
  bool is_cell = is_pointer || field.size == sizeof(TVMFFIAny);
  if (field.field_static_type_index != ffi::TypeIndex::kTVMFFIAny || !is_cell) return false;
  {
    std::lock_guard<ShortLock> guard(known_fields.lock);
    auto it = known_fields.answers.find(field.metadata.data);
    if (it != known_fields.answers.end()) return it->second;
  }
  bool answer = false;
  try {
    answer = DeclaresReference(field);
  } catch (const std::bad_alloc&) {
    return false;
  } catch (const std::exception&) {  // no schema that we can read
  }
  // Out of memory is no answer to keep. A "yes" that is not kept might be another answer to the
  // next visitor, which has to see what this one saw.
  try {
    std::lock_guard<ShortLock> guard(known_fields.lock);
    return known_fields.answers.emplace(field.metadata.data, answer).first->second;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Calls f(TVMFFIObject*) and f(PyObject*) for what the memory of h refers to, until it returns
// something else than 0, and returns that.
template <typename F>
int ForEachEdge(TVMFFIObject* h, F&& f) {
  auto in_cell = [&f](const TVMFFIAny& cell) {
    return cell.type_index >= ffi::TypeIndex::kTVMFFIStaticObjectBegin ? f(cell.v_obj) : 0;
  };
  switch (h->type_index) {
    case ffi::TypeIndex::kTVMFFIArray:
    case ffi::TypeIndex::kTVMFFIList: {
      auto* cell = reinterpret_cast<TVMFFISeqCell*>(h + 1);
      auto* items = static_cast<const TVMFFIAny*>(cell->data);
      for (int64_t i = 0; i < cell->size; ++i) {
        if (int result = in_cell(items[i])) return result;
      }
      return 0;
    }
    case ffi::TypeIndex::kTVMFFIMap:
    case ffi::TypeIndex::kTVMFFIDict: {
      auto cell_of = [](const ffi::Any& any) -> const TVMFFIAny& {
        return *ffi::details::AnyUnsafe::TVMFFIAnyPtrFromAny(any);
      };
      auto* map = ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<ffi::MapBaseObj>(h);
      for (auto it = map->begin(); it != map->end(); ++it) {
        if (int result = in_cell(cell_of((*it).first))) return result;
        if (int result = in_cell(cell_of((*it).second))) return result;
      }
      return 0;
    }
    case ffi::TypeIndex::kTVMFFIFunction: {
      if (PyObject* callable = upper_layers.callable_of(h)) return f(callable);
      TVMFFIObject* module = module_of_function(h);
      return module != nullptr ? f(module) : 0;
    }
    case ffi::TypeIndex::kTVMFFITensor: {
      PyObject* owner = upper_layers.memory_owner_of(h);
      return owner != nullptr ? f(owner) : 0;
    }
    case ffi::TypeIndex::kTVMFFIError: {
      PyObject* exc = upper_layers.exception_in(h);
      return exc != nullptr ? f(exc) : 0;
    }
    case ffi::TypeIndex::kTVMFFIOpaquePyObject:
      return f(static_cast<PyObject*>(TVMFFIOpaqueObjectGetCellPtr(h)->handle));
    default:
      break;
  }
  int result = 0;
  ffi::reflection::ForEachFieldInfoWithEarlyStop(
      TVMFFIGetTypeInfo(h->type_index), [&](const TVMFFIFieldInfo* field) {
        char* address = reinterpret_cast<char*>(h) + field->offset;
        bool is_plain = (field->flags & kTVMFFIFieldFlagBitMaskPlain) != 0;
        bool is_owner = is_plain ? HoldsReferences(KindOfField(*field)) : OwnsObject(*field);
        TVMFFIObject* child = is_owner ? ObjectInCell(address, field->size) : nullptr;
        if (child != nullptr) result = f(child);
        return result != 0;
      });
  return result;
}

// Adds what C++ holds to the count of a wrapper, beside the one reference that is there already.
// Edges may be reported before the wrapper they lead to is, so that its count is below zero in
// between. Debug builds do not allow that: there the first that comes to a wrapper adds.
void AddHeldByCpp(PyObject* w, uint64_t strong) {
  try {
    if (!kCountsMayDip && !collection.added.insert(w).second) return;
  } catch (const std::bad_alloc&) {  // added twice, it only lives on
  }
  if (strong > 1) AddGCRefs(w, static_cast<Py_ssize_t>(strong - 1));
}

class EdgeWalk {
 public:
  EdgeWalk(visitproc visit, void* arg)
      : visit_(visit), arg_(arg), subtracts_(visit == subtracting_visitor) {}

  // Reports what the memory of `root` refers to, and that of objects that no wrapper stands for.
  // Edges that are not reported count as references from outside, so the subtracting visitor of a
  // collection of young objects, which come by often, may stop early: others see what it saw.
  int Run(TVMFFIObject* root) {
    bool is_limited = subtracts_ && !collection.is_full;
    int64_t budget = is_limited ? kYoungBudget : INT64_MAX;
    int result = 0;
    for (TVMFFIObject* h = root; h != nullptr && result == 0 && --budget >= 0; h = Next()) {
      if (is_limited && h != root && !collection.read.Insert(h)) continue;
      if (subtracts_ && !collection.owners.empty()) KnowOwners(h);
      result = ForEachEdge(h, [this](auto* to) { return Edge(to); });
    }
    pending_.clear();
    return result;
  }
  ~EdgeWalk() {
    if (uses_shared_) collection.is_pending_used.store(false, std::memory_order_release);
  }
  EdgeWalk(const EdgeWalk&) = delete;
  EdgeWalk& operator=(const EdgeWalk&) = delete;

 private:
  static constexpr int64_t kYoungBudget = 100;

  // What is yet to be read: on a stack, but for objects whose owners are known, which wait in a
  // list that needs no memory until the stack is empty. So the stack holds nothing but what one
  // object owns alone, whoever leads there, and gets no higher for a later visitor than it did for
  // the subtracting one. Thus Push fails for that one, or for a visitor that is not of a
  // collection.
  bool Push(TVMFFIObject* h) {
    auto it = collection.owners.empty() ? collection.owners.end() : collection.owners.find(h);
    if (it != collection.owners.end()) {
      it->second.next = waiting_;
      waiting_ = h;
      return true;
    }
    if (collection.is_out_of_memory && pending_.size() == pending_.capacity()) return false;
    try {
      pending_.push_back(h);
      return true;
    } catch (const std::bad_alloc&) {
      if (subtracts_) collection.is_out_of_memory = true;
      return false;
    }
  }
  TVMFFIObject* Next() {
    TVMFFIObject* h = nullptr;
    if (!pending_.empty()) {
      h = pending_.back();
      pending_.pop_back();
    } else if (waiting_ != nullptr) {
      h = waiting_;
      waiting_ = collection.owners.find(h)->second.next;
    }
    return h;
  }

  // Whether the edges of `child`, whose wrapper is w if the collector knows one, are ours to show.
  bool IsOurs(TVMFFIObject* child, uintptr_t word, PyObject* w) {
    bool is_sole = w == nullptr && IsSoleOwned(child);
    if (subtracts_) return is_sole || FoundAllOwners(child, word, w);
    if (w != nullptr) return false;
    if (!collection.is_full && !collection.read.Contains(child)) return false;
    return is_sole || AreOwnersKnown(child, visit_);
  }

  int Edge(TVMFFIObject* child) {
    tie::TieSlot* slot = Engine::FindSlot(child);
    uintptr_t word = slot != nullptr ? slot->word.load(std::memory_order_relaxed) : 0;
    PyObject* w = TrackedWrapper(word);
    if (IsOurs(child, word, w)) Push(child);
    // Rule B adds nothing to the count of an active wrapper, so nothing may be taken away.
    bool counted = w != nullptr && (!uses_rule_b || (word & tie::kInactive) != 0);
    if (!kCountsMayDip && counted && subtracts_ && IsCollecting(w)) {
      AddHeldByCpp(w, OutsideCount(child));
    }
    return counted ? visit_(w, arg_) : 0;
  }
  int Edge(PyObject* obj) { return visit_(obj, arg_); }

  visitproc visit_;
  void* arg_;
  bool subtracts_;
  // Without the GIL several threads may ask for referents at a time, outside of a collection.
  bool uses_shared_ = !kFreeThreaded || !collection.is_pending_used.exchange(true);
  std::vector<TVMFFIObject*> own_pending_;
  std::vector<TVMFFIObject*>& pending_ = uses_shared_ ? collection.pending : own_pending_;
  TVMFFIObject* waiting_ = nullptr;
};

// Whether `self` is the wrapper that stands for h.
bool IsTied(PyObject* self, TVMFFIObject* h) {
  tie::TieSlot* slot = Engine::FindSlot(h);
  uintptr_t word = slot != nullptr ? slot->word.load(std::memory_order_relaxed) : 0;
  return (word & ~tie::kWordTags) == reinterpret_cast<uintptr_t>(self);
}

bool LooksInto(PyObject* self, TVMFFIObject* h, visitproc visit, bool counts) {
  if (IsSoleOwned(h)) return !CallArguments::IsAnyBorrowing(h);
  if (!IsTied(self, h)) return false;  // the edges are another wrapper's
  return LooksIntoShared(h, counts) || (!counts && AreOwnersKnown(h, visit));
}

// Counts the references to the object of a dormant wrapper, and holds it while it is looked into.
// NULL if it is not to be looked into.
TVMFFIObject* ObjectOfDormant(PyObject* self, visitproc visit, bool counts) {
  TVMFFIObject* found = nullptr;
  bool is_new = false;
  bool has_room = !counts || collection.pins.Reserve(collection.pins.size() + 1);
  Engine::PeekDormant(AsWrapper(self), [&](TVMFFIObject* h) {
    bool is_pinned = collection.pins.Contains(h);
    if (counts) {
      // The word's one reference stands for one of C++'s; the others count too.
      uint64_t strong = StrongCount(h) - (is_pinned ? 1 : 0);
      AddHeldByCpp(self, strong);
    }
    is_new = !is_pinned && counts && has_room && LooksIntoShared(h, counts) &&
             Engine::AddStrongIfAlive(h);
    // An object whose owners are known is held by them.
    if (is_pinned || is_new || (!counts && AreOwnersKnown(h, visit))) found = h;
  });
  if (is_new) {
    collection.pins.Insert(found);
    if (IsHidable(AsWrapper(self))) collection.shown.Insert(AsWrapper(self));
  }
  return found;
}

// ---- when to ask for a full collection ----

// Whether `root` leads back to itself, or to something that this walk does not follow: Python
// objects, and what C++ shares. A walk that gets lost says no.
bool MayBeInRing(TVMFFIObject* root) {
  constexpr int kBudget = 256;
  int budget = kBudget;
  PointerSet<TVMFFIObject> seen;
  TVMFFIObject* pending[kBudget] = {root};
  int num_pending = 1;
  auto follow = [&](auto* to) {
    if constexpr (!std::is_same_v<decltype(to), TVMFFIObject*>) {
      return 1;
    } else {
      bool is_readable =
          IsSoleOwned(to) || CanBeEmptied(to->type_index) || HasFixedEdges(to->type_index);
      if (to == root || !is_readable) return 1;
      if (--budget <= 0 || seen.Contains(to) || !seen.Insert(to)) return 0;
      pending[num_pending++] = to;
      return 0;
    }
  };
  while (num_pending != 0 && budget > 0) {
    TVMFFIObject* h = pending[--num_pending];
    if (ForEachEdge(h, follow) != 0) return true;
  }
  return false;
}

// CPython starts one when what is new has reached a quarter of what is old. It does not see hidden
// wrappers, and from 3.14 on it starts none at all. So we count the wrappers that only a full
// collection can judge, and ask for one by the same rule; less often while it finds nothing, and
// not at all while no ring turns up among some of the hidden ones.
class Patience {
 public:
  void AddHidden(size_t n) { hidden_ += n; }
  void AddClosed() { ++closed_; }  // tracked, but not looked into
  void SawWrapper() { ++alive_; }

  // A full collection begins, and has ended.
  void Begin() { alive_ = 0; }
  void End(size_t collected) {
    bool was_worth_it = collected >= (hidden_ + closed_) / 8;
    size_t alive = alive_ - std::min(alive_, collected);
    size_t others = AllocatedBlocks() / 16;  // about a quarter of CPython's own objects
    limit_ = std::max({kFloor, others, was_worth_it ? alive / 4 : alive * 3});
    check_at_ = limit_;
    hidden_ = closed_ = 0;
  }

  bool IsOver() {
    if (closed_ > limit_) return true;
    if (hidden_ <= check_at_) return false;
    if (AreRingsLikely()) return true;
    check_at_ = hidden_ + hidden_ / 2;
    return false;
  }

 private:
  static constexpr size_t kFloor = 10000;
  static constexpr int kSamples = 256;

  bool AreRingsLikely() {
    if (CallArguments::IsAnyElsewhere()) return false;
    bool found = false;
    for (int i = 0; i < kSamples && !found && !hidden.empty(); ++i) {
      random_ = random_ * 6364136223846793005 + 1442695040888963407;
      Wrapper* w = hidden[(random_ >> 33) % hidden.size()];
      // Held meanwhile: C++ may be about to drop it.
      TVMFFIObject* h = nullptr;
      Engine::PeekDormant(w, [&](TVMFFIObject* object) {
        if (Engine::AddStrongIfAlive(object)) h = object;
      });
      if (h == nullptr) continue;
      found = MayBeInRing(h);
      Engine::DropStrong(h);
    }
    return found;
  }

  static size_t AllocatedBlocks() {
    PyObject* count = PySys_GetObject("getallocatedblocks");  // borrowed
    Ref blocks = Ref::Steal(count != nullptr ? PyObject_CallNoArgs(count) : nullptr);
    Py_ssize_t n = blocks ? PyLong_AsSsize_t(blocks.get()) : 0;
    if (PyErr_Occurred()) PyErr_Clear();
    return n > 0 ? static_cast<size_t>(n) : 0;
  }

  size_t hidden_ = 0;  // since the last full collection, and so are these
  size_t closed_ = 0;
  size_t alive_ = 0;  // wrappers that it saw
  size_t limit_ = kFloor;
  size_t check_at_ = kFloor;
  uint64_t random_ = 0;
};
Patience patience;

// Wrappers that go to sleep are left to the next collection, which hides those that survive. Where
// that finds nothing time after time they are hidden at once, and only now and then left to it.
class YoungRings {
 public:
  void End(size_t looked_at, size_t survived) {
    if (Runtime::hides_at_once) {
      if (--rest_ == 0) Runtime::hides_at_once = false;
      return;
    }
    if (looked_at < kEnough) return;
    bool was_worth_it = looked_at - survived >= looked_at / 8;
    fruitless_ = was_worth_it ? 0 : fruitless_ + 1;
    if (fruitless_ < kTries) return;
    fruitless_ = kTries - 1;  // one try from now on
    rest_ = kRest;
    Runtime::hides_at_once = true;
  }

 private:
  static constexpr size_t kEnough = 50;
  static constexpr int kTries = 4;
  static constexpr int kRest = 15;
  int fruitless_ = 0;
  int rest_ = 0;
};
YoungRings young_rings;

// How many wrappers may go to sleep before a collection looks at them. CPython comes by more often,
// except where it thinks that enough was collected of late (3.14).
constexpr int64_t kMaxAsleep = 10000;
bool wants_full = false;
PyObject* gc_module = nullptr;

// Whether CPython may start collections by itself.
bool IsAutomatic() {
  if (!PyGC_IsEnabled()) return false;
  Ref thresholds = Ref::Steal(PyObject_CallMethod(gc_module, "get_threshold", nullptr));
  PyObject* first = thresholds ? PyTuple_GetItem(thresholds.get(), 0) : nullptr;
  bool answer = first != nullptr && PyObject_IsTrue(first) == 1;
  if (PyErr_Occurred()) PyErr_Clear();
  return answer;
}

long Number(PyObject* info, const char* key) {
  PyObject* number = PyDict_GetItemString(info, key);
  return number != nullptr && PyLong_Check(number) ? PyLong_AsLong(number) : 0;
}

void BeginCollection(PyObject* info) {
  upper_layers.forget_unused_frames();
  Runtime::collecting = true;
  // Without the GIL there are no generations.
  collection.is_full = kFreeThreaded || Number(info, "generation") >= 2;
  if (kFreeThreaded) return;
  PyObject_GC_UnTrack(sentinel);
  PyObject_GC_Track(sentinel);  // among the young, as far as there are any
  if (!collection.is_full || CallArguments::IsAnyElsewhere()) return;
  patience.Begin();
  ShowHidden();
}

void EndCollection(PyObject* info) {
  ReleaseGuards();
  size_t looked_at = collection.shown.size();
  PointerSet<TVMFFIObject> pins;
  pins.Swap(&collection.pins);
  pins.ForEach([](TVMFFIObject* h) { Engine::DropStrong(h); });
  size_t num_hidden = hidden.size();
  HideShown();
  size_t survived = hidden.size() - num_hidden;
  collection.owners.clear();
  collection.read.Clear();
  std::vector<TVMFFIObject*>().swap(collection.pending);
  collection.is_out_of_memory = false;
  EndCounting();
  bool judged_all = collection.is_full && collection.is_quiet;
  collection.is_subtracting = collection.is_quiet = false;
  collection.is_full = true;
  Runtime::collecting = false;
  bool has_run = collection.has_run;
  collection.has_run = false;
  if (kFreeThreaded || uses_rule_b || !has_run) return;
  Runtime::dormant_limit = counters.dormant.Get() + kMaxAsleep;
  wants_full = false;
  if (judged_all) return patience.End(static_cast<size_t>(Number(info, "collected")));
  patience.AddHidden(survived);
  young_rings.End(looked_at, survived);
  wants_full = patience.IsOver();
  if (wants_full) Runtime::dormant_limit = INT64_MIN;
}

PyObject* OnCollection(PyObject*, PyObject* args) {
  const char* phase;
  PyObject* info;
  if (!PyArg_ParseTuple(args, "sO!", &phase, &PyDict_Type, &info)) return nullptr;
  bool begins = std::strcmp(phase, "start") == 0;
  if (begins && IsFinalizing()) Py_RETURN_NONE;
  Runtime::guarding.store(uses_rule_b && begins);
  begins ? BeginCollection(info) : EndCollection(info);
  Py_RETURN_NONE;
}

PyMethodDef on_collection = {"_on_collection", Entry<OnCollection>, METH_VARARGS, nullptr};

// So that a collection is known to begin and to end.
bool WatchCollections(PyObject* gc) {
  sentinel = types.object->tp_alloc(types.object, 0);  // counts as nobody's wrapper
  if (sentinel == nullptr) return false;
  new (&AsWrapper(sentinel)->handle) tie::Handle(tie::kEmpty);
  gc_module = Py_NewRef(gc);
  Runtime::dormant_limit = kMaxAsleep;
  Ref callback = Ref::Steal(PyCFunction_New(&on_collection, nullptr));
  Ref callbacks = Ref::Steal(PyObject_GetAttrString(gc, "callbacks"));
  return callback && callbacks && PyList_Append(callbacks.get(), callback.get()) == 0;
}

}  // namespace

void Runtime::Guard(Wrapper* w) {
  std::lock_guard<ShortLock> locked(guards.lock);
  try {
    if (guards.wrappers.insert(w).second) Py_INCREF(AsObject(w));
  } catch (const std::bad_alloc&) {
    guards.is_incomplete = true;
  }
}

bool Runtime::IsGuarded(Wrapper* w) {
  if (!uses_rule_b) return false;
  std::lock_guard<ShortLock> locked(guards.lock);
  return guards.is_incomplete || guards.wrappers.count(w) != 0;
}

void CollectNow() {
  bool is_full = wants_full;
  wants_full = false;  // if nothing comes of it, the next collection asks again
  Runtime::dormant_limit = counters.dormant.Get() + kMaxAsleep;
  ErrorAside aside;
  if (Runtime::collecting || CallArguments::IsAnyElsewhere() || !IsAutomatic()) return;
  Ref done = Ref::Steal(PyObject_CallMethod(gc_module, "collect", "i", is_full ? 2 : 0));
  if (!done) PyErr_WriteUnraisable(gc_module);
}

void HideAtOnce(Wrapper* w) {
  patience.AddHidden(1);
  Hide(w);
}

void Hide(Wrapper* w) {
  try {
    hidden.push_back(w);
  } catch (const std::bad_alloc&) {  // it stays in sight
    return;
  }
  w->weakrefs = reinterpret_cast<PyObject*>(hidden.size());
  PyObject_GC_UnTrack(AsObject(w));
}

void UnhideSlow(Wrapper* w) {
  if (!IsTracked(AsObject(w)) && w->weakrefs != nullptr) {
    size_t position = reinterpret_cast<size_t>(w->weakrefs);
    Wrapper* last = hidden.back();
    hidden[position - 1] = last;
    last->weakrefs = reinterpret_cast<PyObject*>(position);
    hidden.pop_back();
    w->weakrefs = nullptr;
  } else {
    collection.shown.Erase(w);
  }
}

std::atomic<uint8_t> can_be_emptied[kMaxEmptiable];

bool LearnCanBeEmptied(int32_t type_index) {
  bool answer = AnyPythonField(type_index, [](const TVMFFIFieldInfo&) { return true; });
  can_be_emptied[type_index].store(answer ? 1 : 2, std::memory_order_relaxed);
  return answer;
}

bool KeepsItsModule(TVMFFIObject* function) { return module_of_function(function) != nullptr; }

void BreakRing(PyObject* self) {
  uintptr_t handle = AsWrapper(self)->handle.load(std::memory_order_relaxed);
  TVMFFIObject* h = nullptr;
  if (tie::IsUsable(handle)) {
    h = tie::ObjectOf(handle);
    if (StrongCount(h) == 1) return;  // dies with its wrapper
  } else if (tie::IsDormant(handle)) {
    h = ObjectOfDormant(self, nullptr, false);
  }
  if (h == nullptr || !Runtime::collecting || !CanBeEmptied(h->type_index)) return;
  Engine::AddStrong(h);
  Empty(h);
  Engine::DropStrong(h);
}

namespace {

// The collector begins to subtract, or is done with that. Only now are other threads certain to be
// stopped where there is no GIL.
void BeginPass(bool subtracts) {
  collection.is_subtracting = subtracts;
  if (!subtracts) return;
  collection.has_run = true;
  collection.owners.clear();
  collection.read.Clear();
  collection.is_out_of_memory = false;
  collection.is_quiet = !CallArguments::IsAnyElsewhere();
}

}  // namespace

void EndCounting() { collection.added.clear(); }

int TraverseWrapper(PyObject* self, visitproc visit, void* arg) {
  if (TVM_FFI_PREDICT_FALSE(learning) && subtracting_visitor == nullptr)
    subtracting_visitor = visit;
  Py_VISIT(Py_TYPE(self));
  if (IsFunctionClass(Py_TYPE(self))) {
    Py_VISIT(reinterpret_cast<FunctionWrapper*>(self)->dict);
  }
  bool counts = visit == subtracting_visitor && IsCollecting(self);
  if (!kCountsMayDip && !counts) EndCounting();
  if (counts != collection.is_subtracting && Runtime::collecting) BeginPass(counts);
  if (counts) patience.SawWrapper();
  uintptr_t handle = AsWrapper(self)->handle.load(std::memory_order_relaxed);
  if (handle == 0)
    return 0;  // fresh from tp_alloc, which tracks it, and in debug builds looks here
  if (tie::IsUsable(handle)) {
    TVMFFIObject* h = tie::ObjectOf(handle);
    uint64_t strong = StrongCount(h);
    if (counts) AddHeldByCpp(self, strong);
    if (LooksInto(self, h, visit, counts)) return EdgeWalk(visit, arg).Run(h);
    if (counts && kIsIncremental && !collection.is_full) patience.AddClosed();
    return 0;
  }
  if (!tie::IsDormant(handle)) return 0;
  TVMFFIObject* h = ObjectOfDormant(self, visit, counts);
  if (h != nullptr) return EdgeWalk(visit, arg).Run(h);
  if (counts && kIsIncremental && !collection.is_full) patience.AddClosed();
  return 0;
}

// Learns the visitor in a collection of young objects, then checks on a garbage cycle that the rule
// holds: a wrapper whose object C++ still has must survive, with its weak references.
bool LearnCollector() {
  Ref gc = Ref::Steal(PyImport_ImportModule("gc"));
  if (!gc) return false;
  IsDefinedInPython(0);  // finds the column, for which there must be memory
  void* module_of = ffi::Function::GetGlobalRequired("ffi.tether.ModuleOfFunction")().cast<void*>();
  module_of_function = reinterpret_cast<decltype(module_of_function)>(module_of);
  Ref probe = Ref::Steal(AsObject(AllocateWrapper(types.object)));
  if (!probe) return false;
  learning = true;
  Ref collected = Ref::Steal(PyObject_CallMethod(gc.get(), "collect", "i", 0));
  learning = false;
  if (!collected) return false;

  ffi::ObjectRef shared(ffi::make_object<ffi::Object>());
  Ref w =
      Ref::Steal(WrapBorrowed(ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(shared)));
  Ref cycle = Ref::Steal(PyList_New(0));
  if (!w || !cycle) return false;
  if (PyList_Append(cycle.get(), w.get()) < 0 || PyList_Append(cycle.get(), cycle.get()) < 0) {
    return false;
  }
  Ref weak = Ref::Steal(PyWeakref_NewRef(w.get(), nullptr));
  if (!weak) return false;
  w = nullptr;
  cycle = nullptr;
  collected = Ref::Steal(PyObject_CallMethod(gc.get(), "collect", "i", 0));
  if (!collected) return false;
  Ref alive = Ref::Steal(PyObject_CallNoArgs(weak.get()));
  if (!alive) return false;
  // The variable is for tests of rule B.
  if (alive.get() == Py_None || std::getenv("TETHER_COLLECTOR_RULE_B") != nullptr) {
    subtracting_visitor = nullptr;
    uses_rule_b = true;
  }
  return WatchCollections(gc.get());
}

}  // namespace tether_py
