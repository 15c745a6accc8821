// SPDX-License-Identifier: Apache-2.0
// Everything that differs between CPython versions, and between builds with and without the GIL.
// Nothing else in this folder looks inside a PyObject.
#ifndef TETHER_PYTHON_COMPAT_H_
#define TETHER_PYTHON_COMPAT_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
#include <structmember.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define TETHER_HAS_SINGLE_THREADED
#endif

#if PY_VERSION_HEX < 0x030A0000
#error "CPython 3.10 or newer is required"
#endif

namespace tether_py {

#ifdef Py_DEBUG
inline constexpr bool kIsDebugBuild = true;
#else
inline constexpr bool kIsDebugBuild = false;
#endif

// TETHER_PER_THREAD: a cache that the GIL protects; without it each thread has its own.
#ifdef Py_GIL_DISABLED
inline constexpr bool kFreeThreaded = true;
#define TETHER_PER_THREAD __thread
#else
inline constexpr bool kFreeThreaded = false;
#define TETHER_PER_THREAD
#endif

// ---- references ----

// An owned reference.
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT(*)
  static Ref Steal(PyObject* obj) {
    Ref ref;
    ref.obj_ = obj;
    return ref;
  }
  static Ref Borrow(PyObject* obj) { return Steal(Py_XNewRef(obj)); }
  Ref(Ref&& other) noexcept : obj_(other.obj_) { other.obj_ = nullptr; }
  Ref(const Ref& other) : obj_(Py_XNewRef(other.obj_)) {}
  Ref& operator=(Ref other) noexcept {
    PyObject* old = obj_;
    obj_ = other.obj_;
    other.obj_ = old;
    return *this;
  }
  ~Ref() { Py_XDECREF(obj_); }
  PyObject* get() const { return obj_; }
  PyObject* release() {
    PyObject* obj = obj_;
    obj_ = nullptr;
    return obj;
  }
  explicit operator bool() const { return obj_ != nullptr; }

 private:
  PyObject* obj_ = nullptr;
};

// Puts the pending exception aside: code that runs meanwhile must neither see nor replace it.
class ErrorAside {
 public:
  ErrorAside() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ErrorAside(const ErrorAside&) = delete;
  ErrorAside& operator=(const ErrorAside&) = delete;
  ~ErrorAside() { PyErr_Restore(type_, value_, traceback_); }

 private:
  PyObject* type_;
  PyObject* value_;
  PyObject* traceback_;
};

#ifdef Py_GIL_DISABLED
#if PY_VERSION_HEX >= 0x030E0000
inline bool TryIncRef(PyObject* obj) { return PyUnstable_TryIncRef(obj) != 0; }
inline void EnableTryIncRef(PyObject* obj) { PyUnstable_EnableTryIncRef(obj); }
#else
// What 3.14 does, on the fields of 3.13: a local count of the owning thread, and a shared one whose
// low bits say whether it may be raised from zero.
inline bool TryIncRef(PyObject* obj) {
  uint32_t local = _Py_atomic_load_uint32_relaxed(&obj->ob_ref_local);
  if (local == _Py_IMMORTAL_REFCNT_LOCAL) return true;
  if (_Py_IsOwnedByCurrentThread(obj)) {
    if (local == 0) return false;
    _Py_atomic_store_uint32_relaxed(&obj->ob_ref_local, local + 1);
    return true;
  }
  Py_ssize_t shared = _Py_atomic_load_ssize_relaxed(&obj->ob_ref_shared);
  for (;;) {
    if (shared == 0 || shared == _Py_REF_MERGED) return false;
    if (_Py_atomic_compare_exchange_ssize(&obj->ob_ref_shared, &shared,
                                          shared + (1 << _Py_REF_SHARED_SHIFT))) {
      return true;
    }
  }
}
inline void EnableTryIncRef(PyObject* obj) {
  Py_ssize_t shared = _Py_atomic_load_ssize_relaxed(&obj->ob_ref_shared);
  while ((shared & _Py_REF_SHARED_FLAG_MASK) == 0) {
    if (_Py_atomic_compare_exchange_ssize(&obj->ob_ref_shared, &shared,
                                          shared | _Py_REF_MAYBE_WEAKREF)) {
      return;
    }
  }
}
#endif
// For an object that every thread uses all the time and that stays as long as the process: its
// count is no longer kept, which would pass its cache line to and fro. The caller has a reference.
inline void ShareForGood(PyObject* obj) {
#if PY_VERSION_HEX >= 0x030E0000
  PyUnstable_Object_EnableDeferredRefcount(obj);
#else
  // Only the owning thread changes the local count, so nobody can overwrite this.
  if (!_Py_IsOwnedByCurrentThread(obj)) return;
  _Py_atomic_store_uint32_relaxed(&obj->ob_ref_local, _Py_IMMORTAL_REFCNT_LOCAL);
#endif
}
// CPython ends a resurrection by merging the counts.
inline bool IsResurrectionOver(PyObject* obj) {
  return (_Py_atomic_load_ssize_acquire(&obj->ob_ref_shared) & _Py_REF_SHARED_FLAG_MASK) ==
         _Py_REF_MERGED;
}
#else
inline bool TryIncRef(PyObject* obj) {
  if (Py_REFCNT(obj) == 0) return false;
  Py_INCREF(obj);
  return true;
}
inline void EnableTryIncRef(PyObject*) {}
inline void ShareForGood(PyObject*) {}
inline bool IsResurrectionOver(PyObject*) { return true; }
#endif

// ---- the collector ----

#ifdef Py_GIL_DISABLED
inline void ClearFinalized(PyObject* obj) {
  _Py_atomic_and_uint8(&obj->ob_gc_bits, static_cast<uint8_t>(~2));
}
inline void AddGCRefs(PyObject* obj, Py_ssize_t n) {
  // During a collection the thread id field holds the count.
  obj->ob_tid += static_cast<uintptr_t>(n);
}
// Whether the collection in progress visits it: not what is frozen, or known to be alive (3.14).
inline bool IsCollecting(PyObject* obj) {
  constexpr int kSkipped = PY_VERSION_HEX >= 0x030E0000 ? 8 | 32 : 8;
  return (obj->ob_gc_bits & kSkipped) == 0;
}
inline bool IsTracked(PyObject* obj) { return PyObject_GC_IsTracked(obj) != 0; }
#else
// The two words before a GC object: next, and prev with two flag bits (finalized, collecting) below
// the collector's count.
inline uintptr_t* GCPrev(PyObject* obj) { return reinterpret_cast<uintptr_t*>(obj) - 1; }
inline void ClearFinalized(PyObject* obj) { *GCPrev(obj) &= ~static_cast<uintptr_t>(1); }
inline bool IsCollecting(PyObject* obj) { return (*GCPrev(obj) & 2) != 0; }
inline bool IsTracked(PyObject* obj) { return reinterpret_cast<uintptr_t*>(obj)[-2] != 0; }
inline void AddGCRefs(PyObject* obj, Py_ssize_t n) {
  *GCPrev(obj) += static_cast<uintptr_t>(n) << 2;
}
#endif

// Automatic collections look at a part of the old objects, and are never full.
inline constexpr bool kIsIncremental = PY_VERSION_HEX >= 0x030E0000 && !kFreeThreaded;

// Whether the collector's count of an object may be below zero in passing. Debug builds assert that
// it is not.
inline constexpr bool kCountsMayDip = kFreeThreaded || !kIsDebugBuild;

// Runs finalize(), which may resurrect obj, as CPython would from tp_dealloc. True if obj lives on.
// With the GIL by hand: a third of the instructions, and no mark that this object was finalised.
template <typename Finalize>
inline bool FinalizeFromDealloc(PyObject* obj, Finalize&& finalize) {
#if defined(Py_GIL_DISABLED) || defined(Py_TRACE_REFS)
  (void)finalize;
  return PyObject_CallFinalizerFromDealloc(obj) < 0;
#else
  Py_SET_REFCNT(obj, 1);
  finalize();
  Py_ssize_t others = Py_REFCNT(obj) - 1;
  Py_SET_REFCNT(obj, others);
  return others != 0;
#endif
}

// Memory of dead wrappers for the next ones, all of one size and with the collector's head in
// front: the collector counts them as alive meanwhile, as it does CPython's own free lists. With
// the GIL only.
class WrapperMemory {
 public:
  static constexpr bool kEnabled = !kFreeThreaded;

  // An object of class `cls` that the collector does not know yet; NULL if there is no memory kept.
  static PyObject* Take(PyTypeObject* cls, size_t size) {
    PyObject* obj = first_;
    if (!kEnabled || obj == nullptr) return nullptr;
    first_ = Next(obj);
    --length_;
    __builtin_memset(reinterpret_cast<void**>(obj) - 2, 0, 2 * sizeof(void*) + size);
    return PyObject_Init(obj, cls);
  }
  // False if the caller must free it.
  static bool Give(PyObject* obj) {
    if (!kEnabled || length_ == kMaxLength) return false;
    Next(obj) = first_;
    first_ = obj;
    ++length_;
    return true;
  }

 private:
  static constexpr int kMaxLength = 256;
  static PyObject*& Next(PyObject* obj) { return *reinterpret_cast<PyObject**>(obj); }
  static inline PyObject* first_ = nullptr;
  static inline int length_ = 0;
};

// ---- threads ----

// Whether this thread may touch Python objects now.
inline bool AttachedHere() {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked() != nullptr;
#elif PY_VERSION_HEX >= 0x030C0000
  return _PyThreadState_UncheckedGet() != nullptr;
#else
  // There it is the thread that holds the GIL, which need not be this one.
  PyThreadState* current = _PyThreadState_UncheckedGet();
  return current != nullptr && current == PyGILState_GetThisThreadState();
#endif
}

// Whether the process has never had a second thread.
inline bool OneThread() {
#ifdef TETHER_HAS_SINGLE_THREADED
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

inline bool IsFinalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// In every function through which C++ enters Python: its frame gets an entry that the unwinder
// looks at, so that a thread which CPython ends stops there (thread_exit.cc), and no frame of
// others further out is unwound.
class UnwindStop {
 public:
  UnwindStop() = default;
  UnwindStop(const UnwindStop&) = delete;
  UnwindStop& operator=(const UnwindStop&) = delete;
  ~UnwindStop() { __asm__ volatile(""); }  // no instruction, but something to be done
};

// Ends a thread that has no business in the interpreter any more. Does not return then.
void StopIfFinalizing();

// At exit, free-threaded CPython 3.13 frees the states of threads that are just leaving or about to
// come, and may let a thread in that came while it stopped all threads for the last time.
inline constexpr bool kFreesStatesInUse = kFreeThreaded && PY_VERSION_HEX < 0x030E0000;

// PyEval_SaveThread and PyEval_RestoreThread.
PyThreadState* SaveThreadGuarded();
inline PyThreadState* SaveThread() {
  return kFreesStatesInUse ? SaveThreadGuarded() : PyEval_SaveThread();
}
inline void RestoreThread(PyThreadState* state) {
  if (kFreesStatesInUse) StopIfFinalizing();
  PyEval_RestoreThread(state);
  if (kFreesStatesInUse) StopIfFinalizing();
}

// Gives a detached thread the GIL. False while the interpreter shuts down.
bool EnterInterpreter(PyGILState_STATE* state);
int InitThreadExit();  // at import: -1 with an error set

// Attaches a thread that C++ came in on, for as long as it lives; false when the interpreter shuts
// down and does not let it in.
class GILGuard {
 public:
  GILGuard() : attached_(AttachedHere()) {
    if (!attached_) entered_ = EnterInterpreter(&state_);
  }
  GILGuard(const GILGuard&) = delete;
  GILGuard& operator=(const GILGuard&) = delete;
  ~GILGuard() {
    if (entered_) PyGILState_Release(state_);
  }
  explicit operator bool() const { return attached_ || entered_; }

 private:
  bool attached_;
  bool entered_ = false;
  PyGILState_STATE state_{};
};

inline bool IsMainInterpreter() { return PyInterpreterState_Get() == PyInterpreterState_Main(); }

// ---- objects ----

// The value of an exact int of one digit. False: ask PyLong_AsLongLongAndOverflow.
inline bool LoadCompactInt(PyObject* obj, int64_t* out) {
  auto* number = reinterpret_cast<PyLongObject*>(obj);
#if PY_VERSION_HEX >= 0x030C0000
  if (!PyUnstable_Long_IsCompact(number)) return false;
  *out = PyUnstable_Long_CompactValue(number);
#else
  Py_ssize_t size = Py_SIZE(obj);
  if (size < -1 || size > 1) return false;
  *out = size == 0 ? 0 : size * static_cast<int64_t>(number->ob_digit[0]);
#endif
  return true;
}

// An instance of a str subclass, `fixed_size` bytes large, with ASCII text right behind it: one
// allocation, and no str made first only to be copied. Undone by ForgetInlineText in tp_dealloc.
inline PyObject* NewInlineAsciiText(PyTypeObject* cls, size_t fixed_size, const char* data,
                                    size_t n) {
  if (n > PY_SSIZE_T_MAX - fixed_size - 1) return PyErr_NoMemory();
  auto* obj = static_cast<PyObject*>(PyObject_Malloc(fixed_size + n + 1));
  if (obj == nullptr) return PyErr_NoMemory();
  PyObject_Init(obj, cls);
  char* text = reinterpret_cast<char*>(obj) + fixed_size;
  __builtin_memcpy(text, data, n);
  text[n] = '\0';
  auto* self = reinterpret_cast<PyUnicodeObject*>(obj);
  PyASCIIObject* head = &self->_base._base;
  head->length = static_cast<Py_ssize_t>(n);
  head->hash = -1;
  __builtin_memset(&head->state, 0, sizeof(head->state));
  head->state.kind = PyUnicode_1BYTE_KIND;
  head->state.ascii = 1;
#if PY_VERSION_HEX < 0x030C0000
  head->state.ready = 1;
  head->wstr = nullptr;
  self->_base.wstr_length = 0;
#endif
  self->_base.utf8 = text;
  self->_base.utf8_length = static_cast<Py_ssize_t>(n);
  self->data.any = text;
  return obj;
}
inline void ForgetInlineText(PyObject* obj, size_t fixed_size) {
  auto* self = reinterpret_cast<PyUnicodeObject*>(obj);
  if (self->data.any != reinterpret_cast<char*>(obj) + fixed_size) return;
  self->data.any = nullptr;
  self->_base.utf8 = nullptr;
}

// Whether instances carry a __dict__.
inline bool HasInstanceDict(PyTypeObject* type) {
  if (type->tp_dictoffset != 0) return true;
#ifdef Py_TPFLAGS_MANAGED_DICT
  return (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0;
#else
  return false;
#endif
}

// A number that changes with every change of a class or of one of its bases; 0 for none.
inline unsigned int TypeVersion(PyTypeObject* cls) {
#if PY_VERSION_HEX < 0x030C0000
  if (!PyType_HasFeature(cls, Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return __atomic_load_n(&cls->tp_version_tag, __ATOMIC_RELAXED);
}

// Lets calls of `cls` go to its tp_vectorcall. False where its metaclass does not allow that.
inline bool EnableVectorcall(PyTypeObject* cls) {
  PyTypeObject* meta = Py_TYPE(cls);
  if (meta->tp_call != PyType_Type.tp_call) return false;
#if PY_VERSION_HEX < 0x030C0000
  // Classes written in Python, as metaclasses are, do not inherit the flag yet.
  if (meta->tp_vectorcall_offset != PyType_Type.tp_vectorcall_offset) return false;
  meta->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
#endif
  return PyType_HasFeature(meta, Py_TPFLAGS_HAVE_VECTORCALL);
}

// Whether a call of `cls` still means what type.__call__ does: from 3.12 on CPython takes the flag
// away when the metaclass gets a __call__.
inline bool CallsAsType(PyTypeObject* cls) {
#if PY_VERSION_HEX < 0x030C0000
  return Py_TYPE(cls)->tp_call == PyType_Type.tp_call;
#else
  (void)cls;
  return true;
#endif
}

// ---- locks without the GIL ----

// The critical section of an object, for the length of a scope; nothing with the GIL. CPython lets
// go of it whenever the thread waits or runs Python code that does: it keeps apart what runs none.
class CriticalSection {
 public:
#ifdef Py_GIL_DISABLED
  explicit CriticalSection(PyObject* obj) { PyCriticalSection_Begin(&section_, obj); }
  ~CriticalSection() { PyCriticalSection_End(&section_); }

 private:
  PyCriticalSection section_;
#else
  explicit CriticalSection(PyObject*) {}
#endif
  CriticalSection(const CriticalSection&) = delete;
  CriticalSection& operator=(const CriticalSection&) = delete;
};

// The critical sections of two objects, which may be one and the same.
class CriticalSection2 {
 public:
#ifdef Py_GIL_DISABLED
  CriticalSection2(PyObject* a, PyObject* b) { PyCriticalSection2_Begin(&section_, a, b); }
  ~CriticalSection2() { PyCriticalSection2_End(&section_); }

 private:
  PyCriticalSection2 section_;
#else
  CriticalSection2(PyObject*, PyObject*) {}
#endif
  CriticalSection2(const CriticalSection2&) = delete;
  CriticalSection2& operator=(const CriticalSection2&) = delete;
};

#ifndef Py_BEGIN_CRITICAL_SECTION
#define Py_BEGIN_CRITICAL_SECTION(op) {
#define Py_END_CRITICAL_SECTION() }
#endif

// A lock for a few plain instructions that run no Python code; nothing with the GIL.
class ShortLock {
 public:
  constexpr ShortLock() = default;
  void lock() {
    if (kFreeThreaded) mutex_.lock();
  }
  void unlock() {
    if (kFreeThreaded) mutex_.unlock();
  }

 private:
  std::mutex mutex_;
};

// A Python object looked up on first use and kept for good. find() returns a new reference, or NULL
// with an error set; so does the whole, but borrowed.
template <typename Find>
PyObject* FindOnce(std::atomic<PyObject*>* cache, Find&& find) {
  PyObject* found = cache->load(std::memory_order_acquire);
  if (found != nullptr) return found;
  PyObject* made = find();
  if (made == nullptr) return nullptr;
  if (cache->compare_exchange_strong(found, made, std::memory_order_acq_rel)) return made;
  Py_DECREF(made);  // another thread was faster
  return found;
}

// A number that many threads change and few read: each thread has a cell of its own, or shares one
// with few others, so that no two processors pass a cache line to and fro. Changed by attached
// threads only, so with the GIL it is plain.
class SharedCount {
 public:
#ifdef Py_GIL_DISABLED
  void Add(int64_t n) { cells_[CellOfThread()].value.fetch_add(n, std::memory_order_relaxed); }
  int64_t Get() const {
    int64_t sum = 0;
    for (const Cell& cell : cells_) sum += cell.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  static constexpr size_t kCells = 64;
  struct alignas(64) Cell {
    std::atomic<int64_t> value{0};
  };
  static size_t CellOfThread() {
    static std::atomic<size_t> next{0};
    static thread_local size_t cell = next.fetch_add(1, std::memory_order_relaxed) % kCells;
    return cell;
  }
  Cell cells_[kCells];
#else
  void Add(int64_t n) { value_ += n; }
  int64_t Get() const { return value_; }

 private:
  int64_t value_ = 0;
#endif
};

}  // namespace tether_py
#endif  // TETHER_PYTHON_COMPAT_H_
