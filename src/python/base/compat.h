// SPDX-License-Identifier: Apache-2.0
// What differs between CPython versions, and between GIL builds and free-threaded ones: reference
// counts, the collector, the insides of ints, strings and classes.
//
// Locks and threads differ too (locks.h, threads.h, threads.cc). Others that know a version:
// base/python_api.h (small ints), wrap/class_records.cc (weak references), wrap/recorder.cc
// (frames), call/callback.cc (calls of functions), module.cc (slots of the module). Others that
// look inside objects of CPython, numpy or torch: wrap/wrapper_memory.h (the collector's header),
// convert/traceback.cc (frames), data/numpy.cc (arrays), data/torch_signs.cc (tensors).
#ifndef TETHER_PYTHON_BASE_COMPAT_H_
#define TETHER_PYTHON_BASE_COMPAT_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>

#if PY_VERSION_HEX < 0x030A0000
#error "CPython 3.10 or newer is required"
#endif

namespace tether_py {

#ifdef Py_DEBUG
inline constexpr bool kIsDebugBuild = true;
#else
inline constexpr bool kIsDebugBuild = false;
#endif

// 1 and the attribute; 0 if there is none, without an exception being made; -1 with an error set.
inline int GetOptionalAttr(PyObject* obj, PyObject* name, PyObject** out) {
#if PY_VERSION_HEX >= 0x030D0000
  return PyObject_GetOptionalAttr(obj, name, out);
#else
  return _PyObject_LookupAttr(obj, name, out);
#endif
}

// TETHER_PER_THREAD: a cache that the GIL protects; in a free-threaded build each thread has its
// own.
#ifdef Py_GIL_DISABLED
inline constexpr bool kFreeThreaded = true;
#define TETHER_PER_THREAD __thread
#else
inline constexpr bool kFreeThreaded = false;
#define TETHER_PER_THREAD
#endif

// ---- reference counts ----

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
// count is no longer updated, so no cache line bounces between cores. The caller has a reference.
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

// Whether the collector's count of an object may be below zero for a moment. Debug builds assert
// that it is not.
inline constexpr bool kCountsMayDip = kFreeThreaded || !kIsDebugBuild;

// Runs finalize(), which may resurrect obj, as CPython would from tp_dealloc. True if obj lives on.
// In a GIL build it is done by hand: a third of the instructions, and no finalised mark is set.
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

// ---- objects ----

// PyErr_Occurred, inlined, for a thread whose state is at hand.
inline bool HasErrorSet(PyThreadState* state) {
#if PY_VERSION_HEX >= 0x030C0000
  return state->current_exception != nullptr;
#else
  return state->curexc_type != nullptr;
#endif
}

// Whether more calls of Python functions are nested than by default can be. Then somebody has set a
// higher limit, and the stack may be too small for it. From 3.14 on CPython itself looks at the
// stack.
inline bool IsNestedDeeply([[maybe_unused]] PyThreadState* state) {
#if PY_VERSION_HEX >= 0x030E0000
  int depth = 0;
#elif PY_VERSION_HEX >= 0x030C0000
  int depth = state->py_recursion_limit - state->py_recursion_remaining;
#elif PY_VERSION_HEX >= 0x030B0000
  int depth = state->recursion_limit - state->recursion_remaining;
#else
  int depth = state->recursion_depth;
#endif
  constexpr int kDefaultLimit = 1000;
  return depth > kDefaultLimit;
}

// How many 64-bit words an int needs, sign included; 0 with an error set.
inline size_t WordsOfInt(PyObject* number) {
#if PY_VERSION_HEX >= 0x030D0000
  Py_ssize_t bytes = PyLong_AsNativeBytes(number, nullptr, 0, -1);
  return bytes < 0 ? 0 : (static_cast<size_t>(bytes) + 7) / 8;
#else
  size_t bits = _PyLong_NumBits(number);
  if (bits == static_cast<size_t>(-1) && PyErr_Occurred()) return 0;
  return bits / 64 + 1;
#endif
}

// Fills `count` words, the least significant first. False with an error set.
inline bool IntToWords(PyObject* number, int64_t* words, size_t count) {
  auto size = static_cast<Py_ssize_t>(count * sizeof(int64_t));
#if PY_VERSION_HEX >= 0x030D0000
  return PyLong_AsNativeBytes(number, words, size, -1) >= 0;
#else
  return _PyLong_AsByteArray(reinterpret_cast<PyLongObject*>(number),
                             reinterpret_cast<unsigned char*>(words), static_cast<size_t>(size),
                             PY_LITTLE_ENDIAN, 1) == 0;
#endif
}

inline PyObject* IntFromWords(const char* words, size_t num_bytes) {
#if PY_VERSION_HEX >= 0x030D0000
  return PyLong_FromNativeBytes(words, num_bytes, -1);
#else
  return _PyLong_FromByteArray(reinterpret_cast<const unsigned char*>(words), num_bytes,
                               PY_LITTLE_ENDIAN, 1);
#endif
}

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

}  // namespace tether_py
#endif  // TETHER_PYTHON_BASE_COMPAT_H_
