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
// Objects that refer to each other through C++ memory alone have dormant wrappers, and no Python
// reference is left to break the ring at. Objects of classes defined in Python are therefore looked
// into when they are shared or their wrapper is dormant, too, and a ring that turns out to be
// garbage is broken by emptying the fields that Python defined. That is done only in a collection
// that found no call without the GIL in progress, and never to objects of C++: threads of a library
// may be changing a shared list, and destructors may rely on their members. Dormant
// wrappers of such objects would make every collection longer, so they are hidden from it and shown
// to full ones only.
#include "wrapper.h"

#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/accessor.h>

#include <cstdlib>
#include <cstring>
#include <unordered_set>
#include <vector>

#include "tensor.h"

namespace tether_py {

InFlight flights{nullptr, 0, &flights, &flights, nullptr};
SharedCount flight_count;

namespace {

visitproc subtracting_visitor = nullptr;  // learned at import; NULL while unknown
bool learning = false;

// ---- calls in progress ----

bool Uses(const InFlight* flight, TVMFFIObject* h) {
  for (int32_t i = 0; i < flight->num_args; ++i) {
    const TVMFFIAny& arg = flight->args[i];
    if (arg.type_index >= ffi::TypeIndex::kTVMFFIStaticObjectBegin && arg.v_obj == h) return true;
  }
  return false;
}

bool IsAnyInFlight() { return flights.next != &flights || flight_count.Get() != 0; }

bool IsInFlight(TVMFFIObject* h) {
  // Threads that came back too late died with their flights, whose memory is gone.
  if (IsFinalizing()) return true;
  for (InFlight* f = flights.next; f != &flights; f = f->next) {
    if (Uses(f, h)) return true;
  }
  return false;
}

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

bool HoldsReferences(const TVMFFIFieldInfo* field) {
  return (field->flags & kTVMFFIFieldFlagBitMaskPlain) != 0 &&
         (field->field_static_type_index >= ffi::TypeIndex::kTVMFFIObject ||
          field->field_static_type_index == ffi::TypeIndex::kTVMFFIAny);
}

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
      if (HoldsReferences(&owner->fields[i]) && f(owner->fields[i])) return true;
    }
  }
  return false;
}

// Drops what the fields of h that Python defined refer to. That may die and run Python code.
void Empty(TVMFFIObject* h) {
  AnyPythonField(h->type_index, [h](const TVMFFIFieldInfo& field) {
    char* address = reinterpret_cast<char*>(h) + field.offset;
    // Moved out first: the storage is empty before anything can look at it again.
    if (field.field_static_type_index == ffi::TypeIndex::kTVMFFIAny) {
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
  // Objects of dormant wrappers that were looked into; held until it is over.
  std::unordered_set<TVMFFIObject*> pins;
  // Wrappers that were hidden before it, and are dormant still.
  std::unordered_set<Wrapper*> shown;
  // Debug builds: whose count AddHeldByCpp has added to, in this pass over the objects.
  std::unordered_set<PyObject*> added;
};
// Never destroyed: wrappers die later than static objects.
Collection& collection = *new Collection();

// With the GIL only. A hidden wrapper has no weak references; that field says where it is in here.
std::vector<Wrapper*>& hidden = *new std::vector<Wrapper*>();

void ShowHidden() {
  collection.shown.reserve(hidden.size());
  for (Wrapper* w : hidden) {
    w->weakrefs = nullptr;
    PyObject_GC_Track(AsObject(w));
    collection.shown.insert(w);
  }
  hidden.clear();
}

void HideShown() {
  std::unordered_set<Wrapper*> shown;
  shown.swap(collection.shown);
  for (Wrapper* w : shown) {
    // Somebody may have found it in gc.get_objects().
    if (w->weakrefs == nullptr && Py_REFCNT(AsObject(w)) == 1) Hide(w);
  }
}

// Whether a shared object may be looked into now. Where the visitor is not known, nothing counts
// the references that are not found.
bool LooksIntoShared(TVMFFIObject* h) {
  return Runtime::collecting && subtracting_visitor != nullptr && !IsAnyInFlight() &&
         !HasWeakReferences(h) && CanBeEmptied(h->type_index);
}

// Rule B: wrappers that somebody got since the collection began, each with a reference.
struct GuardList {
  ShortLock lock;
  std::unordered_set<Wrapper*> wrappers;
} guards;
bool uses_rule_b = false;

void ReleaseGuards() {
  std::unordered_set<Wrapper*> released;
  {
    std::lock_guard<ShortLock> locked(guards.lock);
    released.swap(guards.wrappers);
  }
  for (Wrapper* w : released) Py_DECREF(AsObject(w));
}

// The wrapper of h if the collector knows it.
PyObject* TrackedWrapper(uintptr_t word) {
  auto* w = reinterpret_cast<PyObject*>(word & ~tie::kWordTags);
  return w != nullptr && PyObject_GC_IsTracked(w) ? w : nullptr;
}

// Adds what C++ holds to the count of a wrapper, beside the one reference that is there already.
// Edges may be reported before the wrapper they lead to is, so that its count is below zero in
// between. Debug builds do not allow that: there the first that comes to a wrapper adds.
void AddHeldByCpp(PyObject* w, uint64_t strong) {
  if (!kCountsMayDip && !collection.added.insert(w).second) return;
  if (strong > 1) AddGCRefs(w, static_cast<Py_ssize_t>(strong - 1));
}

class EdgeWalk {
 public:
  EdgeWalk(visitproc visit, void* arg) : visit_(visit), arg_(arg) {}

  // Reports what the memory of `root`, which only its wrapper owns, refers to. Edges that are not
  // reported count as references from outside, so a collection of young objects, which come by
  // often, may stop early: at the same place every time.
  int Run(TVMFFIObject* root) {
    int64_t budget = collection.is_full ? INT64_MAX : kYoungBudget;
    pending_.push_back(root);
    while (!pending_.empty() && --budget >= 0) {
      TVMFFIObject* h = pending_.back();
      pending_.pop_back();
      if (int result = Children(h)) return result;
    }
    return 0;
  }

 private:
  static constexpr int64_t kYoungBudget = 100;

  int Edge(TVMFFIObject* child) {
    if (child == nullptr) return 0;
    tie::TieSlot* slot = Engine::FindSlot(child);
    uintptr_t word = slot != nullptr ? slot->word.load(std::memory_order_relaxed) : 0;
    if (PyObject* w = TrackedWrapper(word)) {
      // Rule B adds nothing to the count of an active wrapper, so nothing may be taken away.
      bool counted = !uses_rule_b || (word & tie::kInactive) != 0;
      if (!kCountsMayDip && visit_ == subtracting_visitor && IsCollecting(w)) {
        AddHeldByCpp(w, StrongCount(child) - collection.pins.count(child));
      }
      return counted ? visit_(w, arg_) : 0;
    }
    // No wrapper to stand for it: if nobody else owns it, its edges are ours.
    if (IsSoleOwned(child)) pending_.push_back(child);
    return 0;
  }
  int Edge(const TVMFFIAny& cell) {
    return cell.type_index >= ffi::TypeIndex::kTVMFFIStaticObjectBegin ? Edge(cell.v_obj) : 0;
  }

  int Children(TVMFFIObject* h) {
    switch (h->type_index) {
      case ffi::TypeIndex::kTVMFFIArray:
      case ffi::TypeIndex::kTVMFFIList: {
        auto* cell = reinterpret_cast<TVMFFISeqCell*>(h + 1);
        auto* items = static_cast<const TVMFFIAny*>(cell->data);
        for (int64_t i = 0; i < cell->size; ++i) {
          if (int result = Edge(items[i])) return result;
        }
        return 0;
      }
      case ffi::TypeIndex::kTVMFFIMap:
      case ffi::TypeIndex::kTVMFFIDict: {
        auto* map = ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<ffi::MapBaseObj>(h);
        for (auto it = map->begin(); it != map->end(); ++it) {
          if (int result = Edge(Cell((*it).first))) return result;
          if (int result = Edge(Cell((*it).second))) return result;
        }
        return 0;
      }
      case ffi::TypeIndex::kTVMFFIFunction: {
        PyObject* callable = CallableOf(h);
        return callable != nullptr ? visit_(callable, arg_) : 0;
      }
      case ffi::TypeIndex::kTVMFFITensor: {
        PyObject* owner = MemoryOwnerOf(h);
        return owner != nullptr ? visit_(owner, arg_) : 0;
      }
      case ffi::TypeIndex::kTVMFFIOpaquePyObject:
        return visit_(static_cast<PyObject*>(TVMFFIOpaqueObjectGetCellPtr(h)->handle), arg_);
      default:
        return Fields(h);
    }
  }

  static const TVMFFIAny& Cell(const ffi::Any& any) {
    return *ffi::details::AnyUnsafe::TVMFFIAnyPtrFromAny(any);
  }

  // Reflected fields whose memory says what they hold; a field behind a getter is not looked into.
  int Fields(TVMFFIObject* h) {
    int result = 0;
    ffi::reflection::ForEachFieldInfoWithEarlyStop(
        TVMFFIGetTypeInfo(h->type_index), [&](const TVMFFIFieldInfo* field) {
          if (!HoldsReferences(field)) return false;
          char* address = reinterpret_cast<char*>(h) + field->offset;
          if (field->field_static_type_index == ffi::TypeIndex::kTVMFFIAny) {
            result = Edge(*reinterpret_cast<TVMFFIAny*>(address));
          } else {
            result = Edge(*reinterpret_cast<TVMFFIObject**>(address));
          }
          return result != 0;
        });
    return result;
  }

  visitproc visit_;
  void* arg_;
  std::vector<TVMFFIObject*> pending_;
};

bool LooksInto(TVMFFIObject* h) { return IsSoleOwned(h) ? !IsInFlight(h) : LooksIntoShared(h); }

// Counts the references to the object of a dormant wrapper, and holds it while it is looked into.
// NULL if it is not to be looked into.
TVMFFIObject* ObjectOfDormant(PyObject* self, bool counts) {
  TVMFFIObject* found = nullptr;
  Engine::PeekDormant(AsWrapper(self), [&](TVMFFIObject* h) {
    bool is_pinned = collection.pins.count(h) != 0;
    if (counts) {
      // The word's one reference stands for one of C++'s; the others count too.
      uint64_t strong = StrongCount(h) - (is_pinned ? 1 : 0);
      AddHeldByCpp(self, strong);
    }
    bool may_pin = counts && LooksIntoShared(h);
    if (is_pinned || (may_pin && Engine::AddStrongIfAlive(h))) found = h;
  });
  if (found != nullptr) collection.pins.insert(found);
  return found;
}

bool IsFull(PyObject* info) {
  PyObject* generation = PyDict_GetItemString(info, "generation");
  return generation != nullptr && PyLong_Check(generation) && PyLong_AsLong(generation) >= 2;
}

PyObject* OnCollection(PyObject*, PyObject* args) {
  const char* phase;
  PyObject* info;
  if (!PyArg_ParseTuple(args, "sO!", &phase, &PyDict_Type, &info)) return nullptr;
  bool begins = std::strcmp(phase, "start") == 0;
  if (begins && IsFinalizing()) Py_RETURN_NONE;
  Runtime::guarding.store(uses_rule_b && begins);
  if (begins) {
    Runtime::collecting = true;
    collection.is_full = IsFull(info);
    if (collection.is_full && !IsAnyInFlight()) ShowHidden();
    Py_RETURN_NONE;
  }
  ReleaseGuards();
  std::unordered_set<TVMFFIObject*> pins;
  pins.swap(collection.pins);
  for (TVMFFIObject* h : pins) Engine::DropStrong(h);
  HideShown();
  Runtime::collecting = false;
  collection.is_full = true;
  EndCounting();
  Py_RETURN_NONE;
}

PyMethodDef on_collection = {"_on_collection", OnCollection, METH_VARARGS, nullptr};

// So that a collection is known to begin and to end.
bool WatchCollections(PyObject* gc) {
  Ref callback = Ref::Steal(PyCFunction_New(&on_collection, nullptr));
  Ref callbacks = Ref::Steal(PyObject_GetAttrString(gc, "callbacks"));
  return callback && callbacks && PyList_Append(callbacks.get(), callback.get()) == 0;
}

}  // namespace

void Runtime::Guard(Wrapper* w) {
  std::lock_guard<ShortLock> locked(guards.lock);
  if (guards.wrappers.insert(w).second) Py_INCREF(AsObject(w));
}

bool Runtime::IsGuarded(Wrapper* w) {
  if (!uses_rule_b) return false;
  std::lock_guard<ShortLock> locked(guards.lock);
  return guards.wrappers.count(w) != 0;
}

void Hide(Wrapper* w) {
  hidden.push_back(w);
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
    collection.shown.erase(w);
  }
}

std::atomic<uint8_t> can_be_emptied[kMaxEmptiable];

bool LearnCanBeEmptied(int32_t type_index) {
  bool answer = AnyPythonField(type_index, [](const TVMFFIFieldInfo&) { return true; });
  can_be_emptied[type_index].store(answer ? 1 : 2, std::memory_order_relaxed);
  return answer;
}

void BreakRing(PyObject* self) {
  uintptr_t handle = AsWrapper(self)->handle.load(std::memory_order_relaxed);
  TVMFFIObject* h = nullptr;
  if (tie::IsUsable(handle)) {
    h = tie::ObjectOf(handle);
    if (StrongCount(h) == 1) return;  // dies with its wrapper
  } else if (tie::IsDormant(handle)) {
    h = ObjectOfDormant(self, false);
  }
  if (h == nullptr || !Runtime::collecting || !CanBeEmptied(h->type_index)) return;
  Engine::AddStrong(h);
  Empty(h);
  Engine::DropStrong(h);
}

void EnterFlightAmongOthers(InFlight* flight) {
  if (TVM_FFI_PREDICT_FALSE(IsFinalizing())) {  // alone, and the list is not to be touched
    flight->prev = flight->next = flight;
    return;
  }
  flight->prev = &flights;
  flight->next = flights.next;
  flights.next->prev = flight;
  flights.next = flight;
}

void DropPins(InFlight* flight) {
  for (TVMFFIObject* h : *flight->pins) Engine::DropStrong(h);
  delete flight->pins;
}

void PinInFlight(TVMFFIObject* h) {
  if (IsFinalizing()) return;
  for (InFlight* f = flights.next; f != &flights; f = f->next) {
    if (!Uses(f, h)) continue;
    if (f->pins == nullptr) f->pins = new std::vector<TVMFFIObject*>();
    f->pins->push_back(h);
    Engine::AddStrong(h);
  }
}

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
  uintptr_t handle = AsWrapper(self)->handle.load(std::memory_order_relaxed);
  if (handle == 0) return 0;  // fresh from tp_alloc, which tracks it, and in debug builds looks here
  if (tie::IsUsable(handle)) {
    TVMFFIObject* h = tie::ObjectOf(handle);
    uint64_t strong = StrongCount(h);
    if (counts) AddHeldByCpp(self, strong);
    return LooksInto(h) ? EdgeWalk(visit, arg).Run(h) : 0;
  }
  if (!tie::IsDormant(handle)) return 0;
  TVMFFIObject* h = ObjectOfDormant(self, counts);
  return h != nullptr ? EdgeWalk(visit, arg).Run(h) : 0;
}

// Learns the visitor in a collection of young objects, then checks on a garbage cycle that the rule
// holds: a wrapper whose object C++ still has must survive, with its weak references.
bool LearnCollector() {
  Ref gc = Ref::Steal(PyImport_ImportModule("gc"));
  if (!gc) return false;
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
