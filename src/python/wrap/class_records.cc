// SPDX-License-Identifier: Apache-2.0
// What is known of a Python class: one record per class whose instances were seen.
//
// Shared state:
//   records               by its lock, which is never held while Python code may run. A record
//                         itself: atomics.
//   recent_classes        the GIL; in a free-threaded build each thread has its own.
//   recent_classes_epoch  as recent_classes: the class_epoch for which the table was filled.
//   class_epoch           atomic; incremented for every class that died.
#include "python/wrap/class_records.h"

#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/wrap/upper_layers.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

TETHER_PER_THREAD RecentClass recent_classes[kRecentClasses];
TETHER_PER_THREAD uint64_t recent_classes_epoch;
std::atomic<uint64_t> class_epoch{0};

namespace {

struct Records {
  ShortLock lock;
  std::unordered_map<PyTypeObject*, std::unique_ptr<ClassRecord>> by_class;
};
Records& records = *new Records();  // outlives the last class

void MakeRecent(PyTypeObject* cls, ClassRecord* record) {
  if (kFreeThreaded && !AreRecentClassesCurrent()) {
    for (RecentClass& recent : recent_classes) recent = {nullptr, nullptr};
    recent_classes_epoch = class_epoch.load(std::memory_order_relaxed);
  }
  RecentClass* pair = RecentPairOf(cls);
  pair[pair[0].cls == nullptr || pair[0].cls == cls ? 0 : 1] = {cls, record};
}

void ForgetRecent(PyTypeObject* cls) {
  if (kFreeThreaded) {
    // Other threads see at their next lookup that their small table is out of date.
    class_epoch.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  RecentClass* pair = RecentPairOf(cls);
  for (int i = 0; i < 2; ++i) {
    if (pair[i].cls == cls) pair[i] = {nullptr, nullptr};
  }
}

bool IsDead(PyObject* weakref) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* target = nullptr;
  int is_alive = PyWeakref_GetRef(weakref, &target);
  Py_XDECREF(target);
  return is_alive == 0;
#else
  return PyWeakref_GET_OBJECT(weakref) == Py_None;
#endif
}

// The callback of every such weak reference; `address` is the class's. Python code can find and
// call it too, which changes nothing as long as the class lives.
PyObject* OnClassDeath(PyObject* address, PyObject* weakref) {
  if (!PyWeakref_Check(weakref) || !IsDead(weakref)) Py_RETURN_NONE;
  auto* cls = static_cast<PyTypeObject*>(PyLong_AsVoidPtr(address));
  std::unique_ptr<ClassRecord> gone;
  {
    std::lock_guard<ShortLock> guard(records.lock);
    auto it = records.by_class.find(cls);
    if (it == records.by_class.end() || it->second->weakref != weakref) Py_RETURN_NONE;
    gone = std::move(it->second);
    records.by_class.erase(it);
  }
  ForgetRecent(cls);
  upper_layers.forget_class(cls);
  Py_DECREF(gone->weakref);
  Py_RETURN_NONE;
}

PyMethodDef on_class_death = {"_on_class_death", Entry<OnClassDeath>, METH_O, nullptr};

Ref NewWatch(PyTypeObject* cls) {
  Ref address = Ref::Steal(PyLong_FromVoidPtr(cls));
  Ref callback = address ? Ref::Steal(PyCFunction_New(&on_class_death, address.get())) : Ref();
  if (!callback) return nullptr;
  return Ref::Steal(PyWeakref_NewRef(reinterpret_cast<PyObject*>(cls), callback.get()));
}

}  // namespace

TVM_FFI_NO_INLINE ClassRecord* FindRecordSlow(PyTypeObject* cls) {
  ClassRecord* record = nullptr;
  {
    std::lock_guard<ShortLock> guard(records.lock);
    auto it = records.by_class.find(cls);
    if (it == records.by_class.end()) return nullptr;
    record = it->second.get();
    // A class at the address of a dead one whose callback has not come yet.
    if (record->weakref != nullptr && IsDead(record->weakref)) return nullptr;
  }
  MakeRecent(cls, record);
  return record;
}

ClassRecord* RecordOf(PyTypeObject* cls) {
  if (ClassRecord* known = FindRecord(cls)) return known;
  Ref watch;
  if ((cls->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) {
    // The finaliser of a garbage instance may have brought us here. CPython clears a weak reference
    // that is made now without calling its callback.
    bool may_be_garbage =
        (!kFreeThreaded || Runtime::collecting) && IsCollecting(reinterpret_cast<PyObject*>(cls));
    if (may_be_garbage || IsFinalizing()) return nullptr;
    ErrorAside pending;
    watch = NewWatch(cls);
    if (!watch) {
      PyErr_Clear();
      return nullptr;
    }
  }
  ClassRecord* record;
  Ref old;  // of the class that was at this address before
  try {
    auto made = std::make_unique<ClassRecord>();
    made->setter.store(upper_layers.find_setter, std::memory_order_relaxed);
    std::lock_guard<ShortLock> guard(records.lock);
    std::unique_ptr<ClassRecord>& place = records.by_class[cls];
    bool is_other = place != nullptr && place->weakref != nullptr && IsDead(place->weakref);
    if (is_other) old = Ref::Steal(place->weakref);
    // Another thread may have come first; the callback of the second weak reference finds that it
    // is not the one in the table.
    if (place == nullptr || is_other) {
      made->weakref = watch.release();
      place = std::move(made);
    }
    record = place.get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  if (old) {
    ForgetRecent(cls);
    upper_layers.forget_class(cls);
  }
  MakeRecent(cls, record);
  return record;
}

size_t NumRecords() {
  std::lock_guard<ShortLock> guard(records.lock);
  return records.by_class.size();
}

}  // namespace tether_py
