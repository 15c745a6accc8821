// SPDX-License-Identifier: Apache-2.0
// What is known of a Python class: one record per class whose instances were seen.
//
// A record borrows its class, so that no class lives longer for having been seen. A weak reference
// ends it: when the class dies, the record goes, and whatever else remembers the class by address
// is told (upper_layers.h), before the address can belong to another class.
//
// Not here: what a name means to a class (data/attribute_cache.cc, by class and name) and how many
// wrappers a class has (class_counts.h, by address, which needs no notification).
#ifndef TETHER_PYTHON_WRAP_CLASS_RECORDS_H_
#define TETHER_PYTHON_WRAP_CLASS_RECORDS_H_

#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/c_api.h>

#include <atomic>

#include "python/base/compat.h"

namespace tether_py {

class Arguments;

// Converts a value of the class it is for. False with an error set.
using Setter = bool (*)(PyObject* obj, TVMFFIAny* out, Arguments* args);

struct ClassRecord {
  PyObject* weakref;  // owned; NULL for a class that never dies
  // kinds/: how instances cross to C++. At first one that finds the right one.
  std::atomic<Setter> setter;
  // data/: how the tensors of a framework cross, once they did; or NULL.
  std::atomic<const DLPackExchangeAPI*> exchange_api{nullptr};

  Setter SetterNow() const { return setter.load(std::memory_order_relaxed); }
};

// A small table in front of all records, which answers nearly every time.
struct RecentClass {
  PyTypeObject* cls;
  ClassRecord* record;
};
// Memory per thread is scarce in a library that is loaded late.
inline constexpr size_t kRecentClasses = kFreeThreaded ? 32 : 256;
extern TETHER_PER_THREAD RecentClass recent_classes[kRecentClasses];

// Free-threaded builds: counts the classes that died. A table that was filled before the last one
// is out of date, because another class may reuse the address of the dead one.
extern std::atomic<uint64_t> class_epoch;
extern TETHER_PER_THREAD uint64_t recent_classes_epoch;
inline bool AreRecentClassesCurrent() {
  return !kFreeThreaded || recent_classes_epoch == class_epoch.load(std::memory_order_relaxed);
}
inline bool IsRecent(const RecentClass* recent, PyTypeObject* cls) {
  return recent->cls == cls && AreRecentClassesCurrent();
}

// Two classes may map to one pair; the class that came first keeps slot 0.
inline RecentClass* RecentPairOf(PyTypeObject* cls) {
  return &recent_classes[(reinterpret_cast<uintptr_t>(cls) >> 5) % (kRecentClasses / 2) * 2];
}
// The record of a class that is in the table, or NULL.
inline ClassRecord* FindRecent(PyTypeObject* cls) {
  RecentClass* pair = RecentPairOf(cls);
  if (TVM_FFI_PREDICT_TRUE(IsRecent(&pair[0], cls))) {
    if (pair[0].record == nullptr) TVM_FFI_UNREACHABLE();  // a class stands there with its record
    return pair[0].record;
  }
  return IsRecent(&pair[1], cls) ? pair[1].record : nullptr;
}

// The record of a class, or NULL. The caller has a reference to the class, or to an instance, and
// may use the record as long.
ClassRecord* FindRecordSlow(PyTypeObject* cls);
inline ClassRecord* FindRecord(PyTypeObject* cls) {
  ClassRecord* recent = FindRecent(cls);
  return recent != nullptr ? recent : FindRecordSlow(cls);
}
// The same, made if there is none. NULL if the class cannot be remembered now; no error is left
// behind. May run a collection.
ClassRecord* RecordOf(PyTypeObject* cls);
size_t NumRecords();

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_CLASS_RECORDS_H_
