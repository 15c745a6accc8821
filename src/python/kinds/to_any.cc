// SPDX-License-Identifier: Apache-2.0
// Python -> Any. The setter of a value is found once per exact type (kinds.h) and cached here.
#include <unordered_map>

#include "python/base/entry.h"
#include "python/convert/convert.h"
#include "python/kinds/kinds.h"
#include "python/kinds/setters.h"
#include "python/wrap/class_watch.h"

namespace tether_py {

// clang-format off
// ---- shared variables of this folder, and what protects each ----
//
// Known().by_type       Known().lock, which is never held while Python code may run. The classes
//                       are borrowed: only those that WatchClass accepts are added, and
//                       ForgetSetter removes a class before its address can be reused.
// recent_setters        the GIL; without it each thread has its own.
// recent_setters_epoch  as recent_setters: the class_epoch for which the table was filled.
// class_epoch           atomic; incremented for every class that died.
// from_any.cc           classes looked up on first use: atomic, written once (FindOnce).
// kinds.cc              constants only.
// clang-format on

namespace {

struct KnownSetters {
  ShortLock lock;
  std::unordered_map<PyTypeObject*, Setter> by_type;
};
KnownSetters& Known() {
  static auto* known = new KnownSetters();  // outlives the last class
  return *known;
}

}  // namespace

TETHER_PER_THREAD RecentSetter recent_setters[kRecentSetters];
TETHER_PER_THREAD uint64_t recent_setters_epoch;
std::atomic<uint64_t> class_epoch{0};

namespace {

// Two types may share a slot: the first one gets it, the second one gets the slot next to it.
RecentSetter* BesideRecent(RecentSetter* recent) {
  return &recent_setters[(recent - recent_setters) ^ 1];
}

// Adds the class to this thread's small table.
void MakeRecent(PyTypeObject* type, Setter setter) {
  if (kFreeThreaded && !AreRecentSettersCurrent()) {
    for (RecentSetter& recent : recent_setters) recent = {nullptr, nullptr};
    recent_setters_epoch = class_epoch.load(std::memory_order_relaxed);
  }
  RecentSetter* recent = RecentSetterOf(type);
  *(recent->type == nullptr ? recent : BesideRecent(recent)) = {type, setter};
}

TVM_FFI_NO_INLINE bool ToAnyUnknown(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  PyTypeObject* type = Py_TYPE(obj);
  Setter setter = nullptr;
  {
    std::lock_guard<ShortLock> guard(Known().lock);
    auto it = Known().by_type.find(type);
    if (it != Known().by_type.end()) setter = it->second;
  }
  if (setter != nullptr) {
    MakeRecent(type, setter);
    return setter(obj, out, args);
  }
  setter = ResolveSetter(obj);
  if (setter == nullptr) return false;
  // Resolving, and watching too, may run Python code, which may give the object another class.
  if (Py_TYPE(obj) == type && WatchClass(type) && Py_TYPE(obj) == type) {
    try {
      std::lock_guard<ShortLock> guard(Known().lock);
      Known().by_type.emplace(type, setter);
    } catch (const std::bad_alloc&) {  // it is resolved again next time
    }
    MakeRecent(type, setter);
  }
  return setter(obj, out, args);
}

}  // namespace

bool ToAnySlow(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  RecentSetter* beside = BesideRecent(RecentSetterOf(Py_TYPE(obj)));
  return TVM_FFI_PREDICT_TRUE(IsRecent(beside, Py_TYPE(obj))) ? beside->setter(obj, out, args)
                                                              : ToAnyUnknown(obj, out, args);
}

void ForgetSetter(PyTypeObject* cls) {
  {
    std::lock_guard<ShortLock> guard(Known().lock);
    Known().by_type.erase(cls);
  }
  if (kFreeThreaded) {
    // Other threads see at their next lookup that their small table is out of date.
    class_epoch.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  for (RecentSetter* recent : {RecentSetterOf(cls), BesideRecent(RecentSetterOf(cls))}) {
    if (recent->type == cls) *recent = {nullptr, nullptr};
  }
}

namespace {

PyObject* PrintDebugInfo(PyObject*, PyObject*) {
  std::lock_guard<ShortLock> guard(Known().lock);
  PySys_WriteStdout("TVMFFIPyGetArgDispatchMapSize: %zd\n",
                    static_cast<Py_ssize_t>(Known().by_type.size()));
  Py_RETURN_NONE;
}

PyObject* ConvertToOpaque(PyObject*, PyObject* obj) {
  Conversion args;
  TVMFFIAny view;
  if (!SetOpaque(obj, &view, &args)) return nullptr;
  // Handed out as itself, not as the value it holds.
  return WrapBorrowed(view.v_obj);
}

PyMethodDef functions[] = {{"_print_debug_info", Entry<PrintDebugInfo>, METH_NOARGS, nullptr},
                           {"_convert_to_opaque_object", Entry<ConvertToOpaque>, METH_O,
                            "An OpaquePyObject that holds the given object."},
                           {"_kind_for_convert", Entry<KindForConvert>, METH_O,
                            "The name of the kind that decides what convert() makes of a value."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitKinds(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace tether_py
