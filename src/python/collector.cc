// SPDX-License-Identifier: Apache-2.0
// A wrapper and its object as one node of the garbage collector's graph.
//
// The collector subtracts, from each object's reference count, the references it finds inside the
// graph; what is left comes from outside. References that C++ holds to H count for W: when W is
// traversed by the subtracting visitor, H's other strong references are added to what W has. And
// where W is the only owner of H, the objects that H's memory holds are W's to report; each such
// edge takes one away again.
#include "wrapper.h"

#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/accessor.h>

#include <vector>

#include "convert.h"

namespace tether_py {
namespace {

visitproc subtracting_visitor = nullptr;  // learned at import; NULL while unknown
bool learning = false;

// ---- calls in progress
// ----------------------------------------------------------------------------------

InFlight flights{nullptr, 0, &flights, &flights, nullptr};

bool Uses(const InFlight* flight, TVMFFIObject* h) {
  for (int32_t i = 0; i < flight->num_args; ++i) {
    const TVMFFIAny& arg = flight->args[i];
    if (arg.type_index >= ffi::TypeIndex::kTVMFFIStaticObjectBegin && arg.v_obj == h) return true;
  }
  return false;
}

bool IsInFlight(TVMFFIObject* h) {
  // Threads that came back too late died with their flights, whose memory is gone.
  if (IsFinalizing()) return true;
  for (InFlight* f = flights.next; f != &flights; f = f->next) {
    if (Uses(f, h)) return true;
  }
  return false;
}

// ---- edges
// ------------------------------------------------------------------------------------------------

uint64_t CombinedCount(TVMFFIObject* h) {
  return __atomic_load_n(&h->combined_ref_count, __ATOMIC_ACQUIRE);
}
bool IsSoleOwned(TVMFFIObject* h) {
  return CombinedCount(h) == ffi::details::kCombinedRefCountBothOne;
}

// The wrapper of h if the collector knows it.
PyObject* TrackedWrapper(TVMFFIObject* h) {
  tie::TieSlot* slot = Engine::FindSlot(h);
  if (slot == nullptr) return nullptr;
  auto* w =
      reinterpret_cast<PyObject*>(slot->word.load(std::memory_order_relaxed) & ~tie::kWordTags);
  return w != nullptr && PyObject_GC_IsTracked(w) ? w : nullptr;
}

class EdgeWalk {
 public:
  EdgeWalk(visitproc visit, void* arg) : visit_(visit), arg_(arg) {}

  // Reports what the memory of `root`, which only its wrapper owns, refers to.
  int Run(TVMFFIObject* root) {
    pending_.push_back(root);
    while (!pending_.empty()) {
      TVMFFIObject* h = pending_.back();
      pending_.pop_back();
      if (int result = Children(h)) return result;
    }
    return 0;
  }

 private:
  int Edge(TVMFFIObject* child) {
    if (child == nullptr) return 0;
    if (PyObject* w = TrackedWrapper(child)) return visit_(w, arg_);
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
          if ((field->flags & kTVMFFIFieldFlagBitMaskPlain) == 0) return false;
          char* address = reinterpret_cast<char*>(h) + field->offset;
          if (field->field_static_type_index >= ffi::TypeIndex::kTVMFFIObject) {
            result = Edge(*reinterpret_cast<TVMFFIObject**>(address));
          } else if (field->field_static_type_index == ffi::TypeIndex::kTVMFFIAny) {
            result = Edge(*reinterpret_cast<TVMFFIAny*>(address));
          }
          return result != 0;
        });
    return result;
  }

  visitproc visit_;
  void* arg_;
  std::vector<TVMFFIObject*> pending_;
};

}  // namespace

void EnterFlight(InFlight* flight) {
  if (kFreeThreaded) return;
  flight->pins = nullptr;
  if (TVM_FFI_PREDICT_FALSE(IsFinalizing())) {  // alone, and the list is not to be touched
    flight->prev = flight->next = flight;
    return;
  }
  flight->prev = &flights;
  flight->next = flights.next;
  flights.next->prev = flight;
  flights.next = flight;
}

void LeaveFlight(InFlight* flight) {
  if (kFreeThreaded) return;
  flight->prev->next = flight->next;
  flight->next->prev = flight->prev;
  if (flight->pins == nullptr) return;
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

int TraverseWrapper(PyObject* self, visitproc visit, void* arg) {
  if (TVM_FFI_PREDICT_FALSE(learning) && subtracting_visitor == nullptr)
    subtracting_visitor = visit;
  Py_VISIT(Py_TYPE(self));
  if (IsFunctionClass(Py_TYPE(self))) {
    Py_VISIT(reinterpret_cast<FunctionWrapper*>(self)->dict);
  }
  bool counts = visit == subtracting_visitor && IsCollecting(self);
  uintptr_t handle = AsWrapper(self)->handle.load(std::memory_order_relaxed);
  if (tie::IsUsable(handle)) {
    TVMFFIObject* h = tie::ObjectOf(handle);
    uint64_t strong = CombinedCount(h) & ffi::details::kCombinedRefCountMaskUInt32;
    if (counts && strong > 1) AddGCRefs(self, static_cast<Py_ssize_t>(strong - 1));
    if (IsSoleOwned(h) && !IsInFlight(h)) return EdgeWalk(visit, arg).Run(h);
  } else if (tie::IsDormant(handle) && counts) {
    // The word's one reference stands for one of C++'s; the others count too.
    Engine::PeekDormant(AsWrapper(self), [self](TVMFFIObject* h) {
      uint64_t strong = CombinedCount(h) & ffi::details::kCombinedRefCountMaskUInt32;
      if (strong > 1) AddGCRefs(self, static_cast<Py_ssize_t>(strong - 1));
    });
  }
  return 0;
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
  if (alive.get() == Py_None) {
    // Another collector than the ones known: cycles with shared objects then lose weak references.
    subtracting_visitor = nullptr;
  }
  return true;
}

}  // namespace tether_py
