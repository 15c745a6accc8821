// SPDX-License-Identifier: Apache-2.0
#include "python/wrap/class_watch.h"
#include "python/base/entry.h"

#include <mutex>
#include <unordered_map>

#include "python/wrap/upper_layers.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

namespace {

struct Watches {
  ShortLock lock;
  std::unordered_map<PyTypeObject*, PyObject*> weakrefs;  // owned
};
Watches& watches = *new Watches();  // outlives the last class

// In front of it with the GIL: a field that is read on objects of many classes asks every time.
constexpr size_t kRecent = 256;
PyTypeObject* recent[kRecent];
PyTypeObject** RecentOf(PyTypeObject* cls) {
  return &recent[(reinterpret_cast<uintptr_t>(cls) >> 5) % kRecent];
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
  auto* cls = static_cast<PyTypeObject*>(PyLong_AsVoidPtr(address));
  Ref gone;
  {
    std::lock_guard<ShortLock> guard(watches.lock);
    auto it = watches.weakrefs.find(cls);
    if (it == watches.weakrefs.end() || it->second != weakref || !IsDead(weakref)) Py_RETURN_NONE;
    gone = Ref::Steal(it->second);
    watches.weakrefs.erase(it);
  }
  if (*RecentOf(cls) == cls) *RecentOf(cls) = nullptr;
  for (auto* forget : upper_layers.forget_class) forget(cls);
  Py_RETURN_NONE;
}

PyMethodDef on_class_death = {"_on_class_death", Entry<OnClassDeath>, METH_O, nullptr};

Ref NewWatch(PyTypeObject* cls) {
  Ref address = Ref::Steal(PyLong_FromVoidPtr(cls));
  Ref callback = address ? Ref::Steal(PyCFunction_New(&on_class_death, address.get())) : Ref();
  if (!callback) return nullptr;
  return Ref::Steal(PyWeakref_NewRef(reinterpret_cast<PyObject*>(cls), callback.get()));
}

bool IsWatched(PyTypeObject* cls) {
  std::lock_guard<ShortLock> guard(watches.lock);
  auto it = watches.weakrefs.find(cls);
  return it != watches.weakrefs.end() && !IsDead(it->second);
}

}  // namespace

bool WatchClass(PyTypeObject* cls) {
  if ((cls->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return true;
  if (!kFreeThreaded && *RecentOf(cls) == cls) return true;
  // The finaliser of a garbage instance may have brought us here. CPython clears a weak reference
  // that is made now without calling anybody.
  bool may_be_garbage =
      (!kFreeThreaded || Runtime::collecting) && IsCollecting(reinterpret_cast<PyObject*>(cls));
  if (may_be_garbage || IsFinalizing()) return false;
  if (!IsWatched(cls)) {
    ErrorAside pending;
    Ref made = NewWatch(cls);
    if (!made) {
      PyErr_Clear();
      return false;
    }
    try {
      std::lock_guard<ShortLock> guard(watches.lock);
      PyObject*& place = watches.weakrefs[cls];
      // Another one may have come meanwhile; its callback finds that it is not the one in the
      // table.
      PyObject* old = place;
      place = made.release();
      made = Ref::Steal(old);
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  if (!kFreeThreaded) *RecentOf(cls) = cls;
  return true;
}

}  // namespace tether_py
