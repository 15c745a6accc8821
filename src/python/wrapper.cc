// SPDX-License-Identifier: Apache-2.0
// CObject: the base of every wrapper, and the engine's runtime.
#include "wrapper.h"

#include <tvm/ffi/function.h>
#include <unistd.h>

#include <mutex>
#include <unordered_map>
#include <vector>

#include "convert.h"
#include "core/object_lock.h"
#include "fields.h"

namespace tether_py {

Types types{};
PyObject* core_module = nullptr;
Counters counters;
const tie::AdoptedTable* Runtime::adopted_table = nullptr;

// ---- how many wrappers there are, by class ----

namespace {

// Counts by address, whoever lives there: a class cannot die while it has instances, so what an
// address has counted when another class comes to lie there is nothing. No class is kept, and a
// cell that holds zero is free for the next class that wants its place; classes whose place is
// taken are counted in a map. Without the GIL there are several cells per place, so that threads
// do not pass one cache line to and fro, and what an address has is the sum.
class ClassCounts {
 public:
  void Add(PyTypeObject* cls, int64_t n) {
    if (TVM_FFI_PREDICT_FALSE(!CellOf(cls, Row())->TryAdd(cls, n))) AddSlow(cls, n);
  }

  int64_t CountOf(PyTypeObject* cls) {
    std::lock_guard<ShortLock> guard(lock_);
    auto it = others_.find(cls);
    int64_t sum = it != others_.end() ? it->second : 0;
    for (size_t row = 0; row < kRows; ++row) sum += CellOf(cls, row)->CountOf(cls);
    return sum;
  }

  int64_t Total() {
    std::lock_guard<ShortLock> guard(lock_);
    int64_t sum = 0;
    for (const auto& [cls, n] : others_) sum += n;
    for (auto& row : cells_) {
      for (Cell& cell : row) sum += cell.Count();
    }
    return sum;
  }

 private:
  static constexpr size_t kRows = kFreeThreaded ? 8 : 1;
  static constexpr size_t kColumns = 256;
  static constexpr int kColumnShift = 5;

#ifdef Py_GIL_DISABLED
  // One word, so that a cell changes hands and counts in one step: above the count the bits of the
  // address that its column does not tell.
  class Cell {
   public:
    bool TryAdd(PyTypeObject* cls, int64_t n) {
      uint64_t word = word_.load(std::memory_order_relaxed);
      uint64_t next;
      do {
        int64_t count = CountIn(word) + n;
        bool is_free = (word & kCountMask) == 0;
        if ((!is_free && KeyIn(word) != KeyOf(cls)) || !Fits(cls, count)) return false;
        next = KeyOf(cls) << kCountBits | (static_cast<uint64_t>(count) & kCountMask);
      } while (!word_.compare_exchange_weak(word, next, std::memory_order_relaxed));
      return true;
    }
    int64_t CountOf(PyTypeObject* cls) const {
      uint64_t word = word_.load(std::memory_order_relaxed);
      return KeyIn(word) == KeyOf(cls) ? CountIn(word) : 0;
    }
    int64_t Count() const { return CountIn(word_.load(std::memory_order_relaxed)); }
    // Frees the cell: gives its count to f(cls, n).
    template <typename F>
    void Empty(size_t column, F&& f) {
      uint64_t word = word_.exchange(0, std::memory_order_relaxed);
      uintptr_t address = (KeyIn(word) * kColumns + column) << kColumnShift;
      if (CountIn(word) != 0) f(reinterpret_cast<PyTypeObject*>(address), CountIn(word));
    }

   private:
    static constexpr int kCountBits = 29;
    static constexpr uint64_t kCountMask = (uint64_t{1} << kCountBits) - 1;
    static uint64_t KeyOf(PyTypeObject* cls) {
      return (reinterpret_cast<uintptr_t>(cls) >> kColumnShift) / kColumns;
    }
    static uint64_t KeyIn(uint64_t word) { return word >> kCountBits; }
    static int64_t CountIn(uint64_t word) {
      return static_cast<int64_t>(word << (64 - kCountBits)) >> (64 - kCountBits);
    }
    static bool Fits(PyTypeObject* cls, int64_t count) {
      constexpr int64_t kLimit = int64_t{1} << (kCountBits - 1);
      return count < kLimit && count >= -kLimit && KeyOf(cls) >> (64 - kCountBits) == 0;
    }
    std::atomic<uint64_t> word_{0};
  };
#else
  class Cell {
   public:
    bool TryAdd(PyTypeObject* cls, int64_t n) {
      if (TVM_FFI_PREDICT_FALSE(cls_ != cls)) {
        if (count_ != 0) return false;
        cls_ = cls;
      }
      count_ += n;
      return true;
    }
    int64_t CountOf(PyTypeObject* cls) const { return cls_ == cls ? count_ : 0; }
    int64_t Count() const { return count_; }
    template <typename F>
    void Empty(size_t, F&& f) {
      if (count_ != 0) f(cls_, count_);
      count_ = 0;
    }

   private:
    PyTypeObject* cls_ = nullptr;
    int64_t count_ = 0;
  };
#endif

  static size_t Row() {
    if (!kFreeThreaded) return 0;
    static std::atomic<size_t> next{0};
    static thread_local size_t row = next.fetch_add(1, std::memory_order_relaxed) % kRows;
    return row;
  }
  Cell* CellOf(PyTypeObject* cls, size_t row) {
    return &cells_[row][(reinterpret_cast<uintptr_t>(cls) >> kColumnShift) % kColumns];
  }

  TVM_FFI_NO_INLINE void AddSlow(PyTypeObject* cls, int64_t n) {
    std::lock_guard<ShortLock> guard(lock_);
    others_[cls] += n;
    if (++num_slow_ % kSlowPerSweep == 0) Sweep();
  }

  // Moves all counts to the map, where those of one address come together, and drops the zeros.
  // The cells are free then for the classes that are busy now.
  void Sweep() {
    for (auto& row : cells_) {
      for (size_t i = 0; i < kColumns; ++i) {
        row[i].Empty(i, [this](PyTypeObject* cls, int64_t n) { others_[cls] += n; });
      }
    }
    for (auto it = others_.begin(); it != others_.end();) {
      it = it->second == 0 ? others_.erase(it) : std::next(it);
    }
  }

  static constexpr uint64_t kSlowPerSweep = 1 << 14;
  Cell cells_[kRows][kColumns];
  ShortLock lock_;
  std::unordered_map<PyTypeObject*, int64_t> others_;
  uint64_t num_slow_ = 0;
};
ClassCounts& class_counts = *new ClassCounts();  // outlives the last wrapper

}  // namespace

// ---- the engine's runtime ----

namespace {

// State that a dormant wrapper must keep visible to the collector: a __dict__, slots of a subclass.
bool HasState(PyTypeObject* type) {
  if (HasInstanceDict(type)) return true;
  PyTypeObject* base = type;
  while ((base->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && base->tp_base != nullptr &&
         base->tp_basicsize == base->tp_base->tp_basicsize) {
    base = base->tp_base;
  }
  // The first type that added storage: one of ours, or a class with slots.
  return base != types.object && base != types.container && base != types.function &&
         base != types.tensor;
}

void DeallocWrapper(PyObject* self);

// Lets instances of a class that adds nothing to a wrapper die in DeallocWrapper itself, without
// the detour through CPython's general way for Python classes. Subclasses find it there as their
// base's. With the lock of the class table held: threads that make the first object of a type may
// come here with one class.
void InstallDealloc(PyTypeObject* cls) {
  if (cls->tp_dealloc == DeallocWrapper) return;
  bool by_cpython = (cls->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && cls->tp_finalize != nullptr;
  if (by_cpython && !IsFunctionClass(cls) && !HasState(cls)) cls->tp_dealloc = DeallocWrapper;
}

// Then it has no state either.
bool DiesByHand(PyTypeObject* cls) {
  return cls->tp_dealloc == DeallocWrapper && !IsFunctionClass(cls);
}

int DrainFromPendingCall(void*) {
  Engine::list().DrainRequested();
  DrainReleases();
  return 0;
}

}  // namespace

bool Runtime::RequestDrain() { return Py_AddPendingCall(DrainFromPendingCall, nullptr) == 0; }

void Runtime::Pause(int attempt) {
  // Detached, so that a stop-the-world request does not wait for this thread.
  Py_BEGIN_ALLOW_THREADS;
  if (attempt > 16) usleep(attempt < 100 ? 1 : 50);
  Py_END_ALLOW_THREADS;
}

// A dormant wrapper that has no state, and whose object cannot be part of a ring, costs the
// collector nothing and gc.get_objects() does not show it. Others wait for the next collection.
// Debug builds of CPython assert that an object is tracked when CPython's own dealloc finds it
// resurrected.
inline void Runtime::OnDormant(Wrapper* w) {
  counters.dormant.Add(1);
  PyTypeObject* type = Py_TYPE(AsObject(w));
  if (HasWeakRefs(w) || (!DiesByHand(type) && (kIsDebugBuild || HasState(type)))) return;
  TVMFFIObject* h = tie::ObjectOf(w->handle.load(std::memory_order_relaxed));
  if (TVM_FFI_PREDICT_TRUE(!CanBeEmptied(h->type_index))) {
    PyObject_GC_UnTrack(AsObject(w));
  } else if (TVM_FFI_PREDICT_FALSE(hides_at_once) && DiesByHand(type)) {
    HideAtOnce(w);
  }
}

bool IsHidable(Wrapper* w) {
#ifdef Py_DEBUG
  (void)w;
  return false;
#else
  return !kFreeThreaded && !HasWeakRefs(w) && DiesByHand(Py_TYPE(AsObject(w)));
#endif
}

inline void Runtime::OnGone(Wrapper* w) {
  Unhide(w);
  // CPython goes on to destroy it and takes it for tracked.
  if (!IsTracked(AsObject(w))) PyObject_GC_Track(AsObject(w));
}

// ---- classes by type index ----

namespace {

ShortLock class_table_lock;
PyObject* fallback_hook = nullptr;
std::atomic<PyTypeObject*> first_classes[128];
const ClassTable first_class_table{128, first_classes};

}  // namespace

std::atomic<const ClassTable*> class_table{&first_class_table};

namespace {

// The place of an index. With the lock held.
std::atomic<PyTypeObject*>* ClassPlace(size_t i) {
  const ClassTable* old = class_table.load(std::memory_order_relaxed);
  size_t old_size = old->size;
  if (i < old_size) return &old->classes[i];
  size_t size = old_size;
  while (size <= i) size *= 2;
  auto* grown = new ClassTable{size, new std::atomic<PyTypeObject*>[size]()};
  for (size_t k = 0; k < old_size; ++k) {
    grown->classes[k].store(old->classes[k].load(std::memory_order_relaxed),
                            std::memory_order_relaxed);
  }
  class_table.store(grown, std::memory_order_release);
  return &grown->classes[i];
}

}  // namespace

namespace {

// The class that was there before, owned.
Ref ReplaceClassOfIndex(int32_t type_index, PyTypeObject* cls) {
  Py_XINCREF(cls);
  std::lock_guard<ShortLock> guard(class_table_lock);
  std::atomic<PyTypeObject*>* place = ClassPlace(static_cast<size_t>(type_index));
  PyTypeObject* old = place->exchange(cls, std::memory_order_acq_rel);
  return Ref::Steal(reinterpret_cast<PyObject*>(old));
}

}  // namespace

void SetClassOfIndex(int32_t type_index, PyTypeObject* cls, bool is_python_defined) {
  if (cls != nullptr) {
    std::lock_guard<ShortLock> guard(class_table_lock);
    InstallDealloc(cls);
    InstallFieldAccess(cls, is_python_defined);
  }
  Ref old = ReplaceClassOfIndex(type_index, cls);
  // Without the GIL another thread may have just read it: a class that was replaced stays.
  if (kFreeThreaded) old.release();
}

PyTypeObject* MakeClassOfIndex(int32_t type_index) {
  if (fallback_hook == nullptr) return types.object;
  Ref made = Ref::Steal(PyObject_CallFunction(fallback_hook, "i", type_index));
  if (!made) return nullptr;
  if (!PyType_Check(made.get()) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(made.get()), types.object)) {
    PyErr_Format(PyExc_TypeError, "the class for type index %d must derive from CObject, got %R",
                 type_index, made.get());
    return nullptr;
  }
  SetClassOfIndex(type_index, reinterpret_cast<PyTypeObject*>(made.get()));
  return FindClassOfIndex(type_index);
}

namespace {

// Classes whose instances are a wrapper and nothing else share their memory.
bool IsPlain(PyTypeObject* cls) {
  return DiesByHand(cls) && cls->tp_basicsize == static_cast<Py_ssize_t>(sizeof(Wrapper));
}

}  // namespace

Wrapper* AllocateWrapper(PyTypeObject* cls) {
  PyObject* obj = IsPlain(cls) ? WrapperMemory::Take(cls, sizeof(Wrapper)) : nullptr;
  bool is_tracked = obj == nullptr;
  if (obj == nullptr) {
    bool is_due = !kFreeThreaded && counters.dormant.Get() > Runtime::dormant_limit;
    if (TVM_FFI_PREDICT_FALSE(is_due)) CollectNow();
    obj = cls->tp_alloc(cls, 0);
  }
  if (obj == nullptr) return nullptr;
  Wrapper* w = AsWrapper(obj);
  new (&w->handle) tie::Handle(tie::kEmpty);
  if (!is_tracked) PyObject_GC_Track(obj);
  class_counts.Add(cls, 1);
  if (IsFunctionClass(cls)) InitFunctionWrapper(reinterpret_cast<FunctionWrapper*>(w));
  return w;
}

PyObject* WrapBorrowedSlow(TVMFFIObject* h) {
  Engine::AddStrong(h);
  return AsObject(Engine::Fetch(h, MakeWrapper));
}

PyObject* WrapOwnedSlow(TVMFFIObject* h) { return AsObject(Engine::Fetch(h, MakeWrapper)); }

namespace {

// `w` is about to lose h. Calls that borrowed it as an argument, or run it, get a reference.
void KeepWhatCallsUse(Wrapper* w, TVMFFIObject* h) {
  CallArguments::HoldForAll(h);
  if (!IsFunctionClass(Py_TYPE(AsObject(w)))) return;
  auto* function = reinterpret_cast<FunctionWrapper*>(w);
  if (function->parked == nullptr) function->parked = new std::vector<TVMFFIObject*>();
  function->parked->push_back(h);
  Engine::AddStrong(h);
}

}  // namespace

TVMFFIObject* TakeHandle(Wrapper* w) {
  TVMFFIObject* h = Engine::Use(w);
  if (h == nullptr) return nullptr;
  KeepWhatCallsUse(w, h);
  return Engine::Take(w);
}

ffi::ObjectPtr<ffi::Object> TakeBefore(Wrapper* w) {
  CriticalSection section(AsObject(w));
  return ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::Object>(TakeHandle(w));
}

bool BindNew(Wrapper* w, TVMFFIObject* h) {
  ffi::ObjectPtr<ffi::Object> old;  // dropped last: that may run Python code
  {
    CriticalSection section(AsObject(w));
    if (TVM_FFI_PREDICT_FALSE(w->handle.load(std::memory_order_relaxed) != tie::kEmpty)) {
      old = ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::Object>(TakeHandle(w));
    }
    if (TVM_FFI_PREDICT_TRUE(w->handle.load(std::memory_order_relaxed) == tie::kEmpty)) {
      Engine::Attach(w, h, Engine::FindOrAdopt(h));
      return true;
    }
  }
  // A dead wrapper may still be on the reclaim list, linked through its handle.
  Engine::DropStrong(h);
  SetNoHandleError(w);
  return false;
}

TVMFFIObject* SetNoHandleError(Wrapper* w) {
  uintptr_t handle = w->handle.load(std::memory_order_relaxed);
  const char* name = Py_TYPE(AsObject(w))->tp_name;
  // Usable again: another thread has moved an object into it since we looked.
  if (handle == tie::kEmpty || tie::IsUsable(handle)) {
    PyErr_Format(PyExc_ValueError,
                 "%s object has no C++ object: it was moved from, or never initialised", name);
  } else {
    PyErr_Format(PyExc_ReferenceError, "the C++ object of this %s is gone", name);
  }
  return nullptr;
}

TVMFFIObject* UseDormant(Wrapper* w) {
  TVMFFIObject* h = Engine::Promote(w);
  return h != nullptr ? h : SetNoHandleError(w);
}

// ---- references that C++ holds to Python objects ----

namespace {

struct PendingRelease {
  void* what;
  void (*release)(void*);
  PendingRelease* next;
};
std::atomic<PendingRelease*> pending_releases{nullptr};
std::atomic<int64_t> num_pending_releases{0};
std::atomic<bool> interpreter_ended{false};

}  // namespace

void ReleaseWith(void* what, void (*release)(void*)) {
  if (interpreter_ended.load(std::memory_order_acquire)) return;  // leaked on purpose
  UnwindStop stop;
  if (AttachedHere()) return release(what);
  auto* node = static_cast<PendingRelease*>(std::malloc(sizeof(PendingRelease)));
  if (node == nullptr) return;  // one object is lost, the process is not
  // The gate: the interpreter may not end while this thread asks it for something.
  if (!Engine::list().Enter()) return std::free(node);
  node->what = what;
  node->release = release;
  num_pending_releases.fetch_add(1, std::memory_order_relaxed);
  node->next = pending_releases.load(std::memory_order_relaxed);
  while (!pending_releases.compare_exchange_weak(node->next, node, std::memory_order_release,
                                                 std::memory_order_relaxed)) {
  }
  Runtime::RequestDrain();
  Engine::list().Leave();
}

void ReleaseFromAnyThread(void* obj) {
  ReleaseWith(obj, [](void* o) { Py_DECREF(static_cast<PyObject*>(o)); });
}

void DrainReleases() {
  if (pending_releases.load(std::memory_order_relaxed) == nullptr) return;
  PendingRelease* node = pending_releases.exchange(nullptr, std::memory_order_acquire);
  while (node != nullptr) {
    PendingRelease pending = *node;
    std::free(node);
    num_pending_releases.fetch_sub(1, std::memory_order_relaxed);
    pending.release(pending.what);
    node = pending.next;
  }
}

// ---- looking at objects that other threads change ----

void LookAtObject::Enter(TVMFFIObject* h, bool may_run_user_code) {
  if (!AttachedHere()) return;
  for (;;) {
    if (may_run_user_code) {
      wrapper_ = AsWrapper(WrapBorrowed(h));
      if (wrapper_ == nullptr) PyErr_Clear();
    } else {
      wrapper_ = Engine::FetchLiveOrKeep(h, &kept_);
    }
    if (wrapper_ == nullptr) return;
    section_.emplace(AsObject(wrapper_));
    if (wrapper_->handle.load(std::memory_order_relaxed) == reinterpret_cast<uintptr_t>(h)) return;
    section_.reset();  // moved away meanwhile, perhaps to another wrapper
    Py_DECREF(AsObject(wrapper_));
  }
}

void LookAtObject::Leave() {
  section_.reset();
  Engine::StopKeeping(kept_);
  if (wrapper_ != nullptr) Py_DECREF(AsObject(wrapper_));
}

namespace {

// For walks of the library.
static_assert(sizeof(LookAtObject) <= tie::ObjectLockHooks::kStateSize);

constexpr tie::ObjectLockHooks object_lock_hooks{
    [](TVMFFIObject* h, bool may_run_user_code, void* state) {
      new (state) LookAtObject(h, may_run_user_code);
    },
    [](void* state) { static_cast<LookAtObject*>(state)->~LookAtObject(); }};

}  // namespace

// ---- what few wrappers have ----

namespace {

struct NoteTable {
  ShortLock lock;
  std::unordered_map<PyObject*, void*> notes;
};
NoteTable& note_table = *new NoteTable();  // outlives the last wrapper

}  // namespace

void* Notes::Find(PyObject* wrapper) {
  std::lock_guard<ShortLock> guard(note_table.lock);
  auto it = note_table.notes.find(wrapper);
  return it != note_table.notes.end() ? it->second : nullptr;
}

void Notes::Set(PyObject* wrapper, const void* note) {
  std::lock_guard<ShortLock> guard(note_table.lock);
  note_table.notes[wrapper] = const_cast<void*>(note);
  count_.store(note_table.notes.size(), std::memory_order_relaxed);
}

void Notes::Erase(PyObject* wrapper) {
  std::lock_guard<ShortLock> guard(note_table.lock);
  note_table.notes.erase(wrapper);
  count_.store(note_table.notes.size(), std::memory_order_relaxed);
}

// ---- slots of CObject ----

namespace {

// Lets object.__new__ say which methods are missing.
TVM_FFI_NO_INLINE PyObject* RefuseAbstract(PyTypeObject* cls) {
  Ref no_args = Ref::Steal(PyTuple_New(0));
  return no_args ? PyBaseObject_Type.tp_new(cls, no_args.get(), nullptr) : nullptr;
}

// For calls of a class. Objects that come from C++ get a wrapper of whatever class is registered.
PyObject* NewWrapper(PyTypeObject* cls, PyObject*, PyObject*) {
  if (TVM_FFI_PREDICT_FALSE((cls->tp_flags & Py_TPFLAGS_IS_ABSTRACT) != 0)) {
    return RefuseAbstract(cls);
  }
  return AsObject(AllocateWrapper(cls));
}

void FinalizeWrapper(PyObject* self) {
  // From the collector the mark is already set, from dealloc it is set afterwards.
  if (PyObject_GC_IsFinalized(self)) {
    if (!kCountsMayDip) EndCounting();
    Engine::DropFromCollector(AsWrapper(self));
  } else {
    Engine::Drop(AsWrapper(self));
  }
}

void ClearFunctionWrapper(FunctionWrapper* w) {
  Py_CLEAR(w->dict);
  if (w->parked == nullptr) return;
  for (TVMFFIObject* h : *w->parked) Engine::DropStrong(h);
  delete w->parked;
}

int ClearWrapper(PyObject* self) {
  if (IsFunctionClass(Py_TYPE(self))) Py_CLEAR(reinterpret_cast<FunctionWrapper*>(self)->dict);
  BreakRing(self);
  Engine::Discard(AsWrapper(self));
  return 0;
}

// The finaliser of an instance that dies by hand, unless its class has one of its own (__del__).
// True if it lives on: it is dormant, or __del__ kept it.
bool LivesOn(PyObject* self) {
  if (TVM_FFI_PREDICT_FALSE(Py_TYPE(self)->tp_finalize != FinalizeWrapper)) {
    return PyObject_CallFinalizerFromDealloc(self) < 0;
  }
  return FinalizeFromDealloc(self, [self] { Engine::Drop(AsWrapper(self)); });
}

void DeallocWrapper(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Wrapper* w = AsWrapper(self);
  // For other classes CPython has called the finaliser already.
  if (type->tp_dealloc == DeallocWrapper && LivesOn(self)) return;
  Unhide(w);
  PyObject_GC_UnTrack(self);
  if (HasWeakRefs(w)) PyObject_ClearWeakRefs(self);
  Engine::Discard(w);
  if (IsFunctionClass(type)) ClearFunctionWrapper(reinterpret_cast<FunctionWrapper*>(self));
  class_counts.Add(type, -1);
  Notes::Forget(self);
  // A handle is gone only if its wrapper was dormant when the object died.
  uintptr_t handle = w->handle.load(std::memory_order_relaxed);
  if (tie::IsDead(handle) && handle != tie::kEmpty) counters.dormant.Add(-1);
  if (!IsPlain(type) || !WrapperMemory::Give(self)) type->tp_free(self);
  Py_DECREF(type);
  Engine::list().Drain();
  DrainReleases();
}

PyObject* GetCHandle(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(PeekHandle(AsWrapper(self)));
}
PyObject* GetId(PyObject* self, void*) { return GetCHandle(self, nullptr); }

}  // namespace

PyObject* CVoidP() {
  static std::atomic<PyObject*> cache{nullptr};
  return FindOnce(&cache, []() -> PyObject* {
    Ref ctypes = Ref::Steal(PyImport_ImportModule("ctypes"));
    return ctypes ? PyObject_GetAttrString(ctypes.get(), "c_void_p") : nullptr;
  });
}

namespace {

PyObject* GetCtypesHandle(PyObject* self, PyObject*) {
  PyObject* c_void_p = CVoidP();
  if (c_void_p == nullptr) return nullptr;
  uintptr_t handle = PeekHandle(AsWrapper(self));
  if (handle == 0) return PyObject_CallFunction(c_void_p, "O", Py_None);
  return PyObject_CallFunction(c_void_p, "K", static_cast<unsigned long long>(handle));
}

bool SameHandle(PyObject* self, PyObject* other) {
  return self == other ||
         (IsWrapper(other) && PeekHandle(AsWrapper(self)) == PeekHandle(AsWrapper(other)));
}

PyObject* SameAs(PyObject* self, PyObject* other) {
  return PyBool_FromLong(SameHandle(self, other));
}

PyObject* CompareWrapper(PyObject* self, PyObject* other, int op) {
  if (op == Py_EQ) return PyBool_FromLong(SameHandle(self, other));
  if (op == Py_NE) return PyBool_FromLong(!SameHandle(self, other));
  Py_RETURN_NOTIMPLEMENTED;
}

Py_hash_t HashWrapper(PyObject* self) {
  auto hash = static_cast<Py_hash_t>(PeekHandle(AsWrapper(self)));
  return hash == -1 ? -2 : hash;
}

PyObject* ReprWrapper(PyObject* self) {
  Ref repr = Ref::Steal(PyObject_GetAttrString(core_module, "object_repr"));
  return repr ? PyObject_CallOneArg(repr.get(), self) : nullptr;
}

PyObject* MoveHandleFrom(PyObject* self, PyObject* other) {
  if (!IsWrapper(other)) {
    return PyErr_Format(PyExc_TypeError, "__move_handle_from__ expects a CObject, got %s",
                        Py_TYPE(other)->tp_name);
  }
  if (self == other) Py_RETURN_NONE;
  Wrapper* from = AsWrapper(other);
  CriticalSection2 sections(self, other);
  // A source without object leaves the target empty too.
  TVMFFIObject* h = Engine::Use(from);
  if (h == nullptr) Py_RETURN_NONE;
  KeepWhatCallsUse(from, h);
  if (!Engine::Rebind(from, AsWrapper(self))) {
    return PyErr_Format(PyExc_ValueError, "%s object already has a C++ object",
                        Py_TYPE(self)->tp_name);
  }
  Py_RETURN_NONE;
}

PyObject* SetFallbackHook(PyObject*, PyObject* hook) {
  Py_XSETREF(fallback_hook, Py_NewRef(hook));
  Py_RETURN_NONE;
}

// The third argument says of a class that its type is defined in Python; of None, that nobody can
// have looked at the class that was there.
PyObject* PySetClassOfIndex(PyObject*, PyObject* args) {
  int index;
  PyObject* cls;
  int flag = 0;
  if (!PyArg_ParseTuple(args, "iO|p", &index, &cls, &flag)) return nullptr;
  if (index < 0) return PyErr_Format(PyExc_ValueError, "invalid type index %d", index);
  if (cls == Py_None) {
    if (flag != 0) {
      ReplaceClassOfIndex(index, nullptr);
    } else {
      SetClassOfIndex(index, nullptr);
    }
    Py_RETURN_NONE;
  }
  // Any other class may be registered for a type, but only wrappers can be handed out.
  if (PyType_Check(cls) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), types.object)) {
    SetClassOfIndex(index, reinterpret_cast<PyTypeObject*>(cls), flag != 0);
  }
  Py_RETURN_NONE;
}

PyObject* PyClassOfIndex(PyObject*, PyObject* arg) {
  long index = PyLong_AsLong(arg);
  if (index == -1 && PyErr_Occurred()) return nullptr;
  PyTypeObject* cls = FindClassOfIndex(static_cast<int32_t>(index));
  if (cls == nullptr) Py_RETURN_NONE;
  return Py_NewRef(reinterpret_cast<PyObject*>(cls));
}

PyObject* PyKeepsItsModule(PyObject*, PyObject* obj) {
  bool is_function = IsWrapper(obj) && IsFunctionClass(Py_TYPE(obj));
  if (!is_function) return PyErr_Format(PyExc_TypeError, "expected a Function, got %R", obj);
  Using function(AsWrapper(obj));
  return function.get() != nullptr ? PyBool_FromLong(KeepsItsModule(function.get())) : nullptr;
}

PyObject* TieState(PyObject*, PyObject* obj) {
  if (!IsWrapper(obj)) {
    return PyErr_Format(PyExc_TypeError, "expected an FFI object, got %s", Py_TYPE(obj)->tp_name);
  }
  CriticalSection section(obj);
  uintptr_t handle = AsWrapper(obj)->handle.load(std::memory_order_relaxed);
  if (tie::IsDormant(handle)) return PyUnicode_FromString("dormant");
  if (handle == tie::kEmpty) return PyUnicode_FromString("empty");
  if (tie::IsDead(handle)) return PyUnicode_FromString("gone");
  TVMFFIObject* h = tie::ObjectOf(handle);
  tie::TieSlot* slot = Engine::FindSlot(h);
  bool tied =
      slot != nullptr && (slot->word.load() & ~tie::kWordTags) == reinterpret_cast<uintptr_t>(obj);
  return PyUnicode_FromString(tied ? "active" : "untied");
}

// Adds `cls` and the classes below it that have instances, and how many those are.
bool AddCounts(PyObject* cls, PyObject* by_type, PyObject* seen) {
  int known = PySet_Contains(seen, cls);  // through another base
  if (known != 0) return known > 0;
  int64_t n = class_counts.CountOf(reinterpret_cast<PyTypeObject*>(cls));
  Ref count = Ref::Steal(PyLong_FromLongLong(n));
  if (!count || PySet_Add(seen, cls) < 0) return false;
  if (n > 0 && PyDict_SetItem(by_type, cls, count.get()) < 0) return false;
  auto* type = reinterpret_cast<PyObject*>(&PyType_Type);
  Ref below = Ref::Steal(PyObject_CallMethod(type, "__subclasses__", "O", cls));
  if (!below) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(below.get()); ++i) {
    if (!AddCounts(PyList_GET_ITEM(below.get(), i), by_type, seen)) return false;
  }
  return true;
}

PyObject* TieStats(PyObject*, PyObject*) {
  Ref by_type = Ref::Steal(PyDict_New());
  Ref seen = Ref::Steal(PySet_New(nullptr));
  if (!by_type || !seen) return nullptr;
  auto* root = reinterpret_cast<PyObject*>(types.object);
  if (!AddCounts(root, by_type.get(), seen.get())) return nullptr;
  int64_t wrappers = class_counts.Total();
  auto dormant = static_cast<long long>(counters.dormant.Get());
  size_t waiting = Engine::list().waiting() +
                   static_cast<size_t>(num_pending_releases.load(std::memory_order_relaxed));
  return Py_BuildValue("{s:L,s:L,s:n,s:n,s:O}", "live", static_cast<long long>(wrappers) - dormant,
                       "dormant", dormant, "adopted",
                       static_cast<Py_ssize_t>(Runtime::adopted_table->size()), "waiting",
                       static_cast<Py_ssize_t>(waiting), "by_type", by_type.get());
}

PyObject* DropLastRefWithoutThreadState(PyObject*, PyObject*) {
  PyObject* victim = PyDict_New();
  if (victim == nullptr) return nullptr;
  Py_BEGIN_ALLOW_THREADS;
  ReleaseFromAnyThread(victim);
  Py_END_ALLOW_THREADS;
  DrainReleases();
  Py_RETURN_NONE;
}

PyObject* AtExit(PyObject*, PyObject*) {
  Engine::list().Close();
  DrainReleases();
  interpreter_ended.store(true, std::memory_order_release);
  Py_RETURN_NONE;
}

PyMethodDef object_methods[] = {
    {"__chandle__", GetCHandle, METH_NOARGS, "Address of the C++ object, 0 when there is none."},
    {"__ctypes_handle__", GetCtypesHandle, METH_NOARGS, "The address as a ctypes.c_void_p."},
    {"same_as", SameAs, METH_O, "Whether both stand for the same C++ object."},
    {"is_", SameAs, METH_O, "Whether both stand for the same C++ object."},
    {"__move_handle_from__", MoveHandleFrom, METH_O,
     "Take over the C++ object of another wrapper, which becomes empty."},
    {"__init_handle_by_constructor__",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(InitHandleByConstructor)),
     METH_FASTCALL, "Call an FFI function and become the wrapper of the object it returns."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef object_getset[] = {
    {"id_", GetId, nullptr, "Address of the C++ object, 0 when there is none.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef object_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Wrapper, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot object_slots[] = {
    {Py_tp_doc, const_cast<char*>("Base of every Python object that stands for a C++ object.")},
    {Py_tp_new, reinterpret_cast<void*>(NewWrapper)},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocWrapper)},
    {Py_tp_finalize, reinterpret_cast<void*>(FinalizeWrapper)},
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseWrapper)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearWrapper)},
    {Py_tp_repr, reinterpret_cast<void*>(ReprWrapper)},
    {Py_tp_hash, reinterpret_cast<void*>(HashWrapper)},
    {Py_tp_richcompare, reinterpret_cast<void*>(CompareWrapper)},
    {Py_tp_methods, object_methods},
    {Py_tp_getset, object_getset},
    {Py_tp_members, object_members},
    {0, nullptr}};

PyType_Spec object_spec = {"tvm_ffi.core.CObject", sizeof(Wrapper), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           object_slots};

PyMethodDef tying_functions[] = {
    {"_set_fallback_hook", SetFallbackHook, METH_O, nullptr},
    {"_set_class_of_index", PySetClassOfIndex, METH_VARARGS, nullptr},
    {"_class_of_index", PyClassOfIndex, METH_O, nullptr},
    {"_keeps_its_module", PyKeepsItsModule, METH_O,
     "Whether the collector sees that a function keeps the module it comes from."},
    {"_tie_state", TieState, METH_O, "State of the tie of an object's wrapper."},
    {"_tie_stats", TieStats, METH_NOARGS, "How many wrappers there are, by state."},
    {"_testing_drop_last_ref_without_thread_state", DropLastRefWithoutThreadState, METH_NOARGS,
     "Release a Python object on a thread that may not touch Python."},
    {"_at_exit", AtExit, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

TVMFFICustomAllocator allocator{Engine::Allocate, nullptr};

}  // namespace

int InitWrapperTypes(PyObject* module) {
  types.object = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&object_spec));
  if (types.object == nullptr) return -1;
  return PyModule_AddType(module, types.object);
}

int InitTying(PyObject* module) {
  std::optional<ffi::Function> get_table = ffi::Function::GetGlobal("ffi.tether.AdoptedTable");
  if (!get_table.has_value()) {
    PyErr_SetString(PyExc_ImportError,
                    "the libtvm_ffi.so in this process is not the one that tether-ffi installs");
    return -1;
  }
  Runtime::adopted_table = static_cast<const tie::AdoptedTable*>((*get_table)().cast<void*>());
  if (Runtime::adopted_table->version != tie::AdoptedTable::kVersion) {
    PyErr_SetString(
        PyExc_ImportError,
        "tvm_ffi.core and libtvm_ffi come from different releases; reinstall the package");
    return -1;
  }
  if (!Runtime::adopted_table->on_only_storage_left(&Engine::OnlyStorageIsLeft)) {
    PyErr_SetString(PyExc_ImportError, "too many frontends of libtvm_ffi in one process");
    return -1;
  }
  if (PyModule_AddFunctions(module, tying_functions) < 0) return -1;
  if (!LearnCollector()) return -1;
  // Before anything else at exit: what C++ drops from then on is leaked, not touched.
  Ref atexit = Ref::Steal(PyImport_ImportModule("atexit"));
  Ref hook = Ref::Steal(PyObject_GetAttrString(module, "_at_exit"));
  if (!atexit || !hook) return -1;
  Ref done = Ref::Steal(PyObject_CallMethod(atexit.get(), "register", "O", hook.get()));
  if (!done) return -1;
  pthread_atfork(nullptr, nullptr, [] {
    Engine::list().AfterForkInChild();
    CallArguments::ForgetOtherThreads();
  });
  TVMFFISetCustomAllocator(&allocator);
  if (kFreeThreaded) {
    ffi::Function::GetGlobalRequired("ffi.tether.SetObjectLock")(
        const_cast<void*>(static_cast<const void*>(&object_lock_hooks)));
  }
  return 0;
}

}  // namespace tether_py
