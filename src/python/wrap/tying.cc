// SPDX-License-Identifier: Apache-2.0
// The functions behind the Python module `tying`, and the start and end of tying.
#include "python/wrap/tying.h"

#include <tvm/ffi/function.h>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/wrap/arguments.h"
#include "python/wrap/class_counts.h"
#include "python/wrap/edges.h"
#include "python/wrap/hidden.h"
#include "python/wrap/learn_collector.h"
#include "python/wrap/object_lock.h"
#include "python/wrap/recorder.h"
#include "python/wrap/release_queue.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

namespace {

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
  size_t waiting = Engine::list().waiting() + static_cast<size_t>(CountPendingReleases());
  return Py_BuildValue("{s:L,s:L,s:n,s:n,s:O}", "live", static_cast<long long>(wrappers) - dormant,
                       "dormant", dormant, "adopted",
                       static_cast<Py_ssize_t>(Runtime::Table().size()), "waiting",
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
  StopHiding();
  Engine::list().Close();
  CloseReleaseQueue();
  Py_RETURN_NONE;
}

PyMethodDef tying_functions[] = {
    {"_keeps_its_module", Entry<PyKeepsItsModule>, METH_O,
     "Whether the collector sees that a function keeps the module it comes from."},
    {"_tie_state", Entry<TieState>, METH_O, "State of the tie of an object's wrapper."},
    {"_tie_stats", Entry<TieStats>, METH_NOARGS, "How many wrappers there are, by state."},
    {"_testing_drop_last_ref_without_thread_state", Entry<DropLastRefWithoutThreadState>,
     METH_NOARGS, "Release a Python object on a thread that may not touch Python."},
    {"_at_exit", Entry<AtExit>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

TVMFFICustomAllocator allocator{Engine::Allocate, nullptr};

}  // namespace

int InitTying(PyObject* module) {
  std::optional<ffi::Function> get_table = ffi::Function::GetGlobal("ffi.tether.AdoptedTable");
  if (!get_table.has_value()) {
    PyErr_SetString(PyExc_ImportError,
                    "the libtvm_ffi.so in this process is not the one that tether-ffi installs");
    return -1;
  }
  Runtime::adopted_table.store(static_cast<const tie::AdoptedTable*>((*get_table)().cast<void*>()));
  if (Runtime::Table().version != tie::AdoptedTable::kVersion) {
    PyErr_SetString(
        PyExc_ImportError,
        "tvm_ffi.core and libtvm_ffi come from different releases; reinstall the package");
    return -1;
  }
  if (!Runtime::Table().on_only_storage_left(&Engine::OnlyStorageIsLeft)) {
    PyErr_SetString(PyExc_ImportError, "too many frontends of libtvm_ffi in one process");
    return -1;
  }
  if (PyModule_AddFunctions(module, tying_functions) < 0) return -1;
  if (InitClassTable(module) < 0) return -1;
  if (!LearnCollector()) return -1;
  // Before anything else at exit: what threads drop from then on that are not attached is leaked.
  Ref hook = Ref::Steal(PyObject_GetAttrString(module, "_at_exit"));
  if (!hook || !CallAtExit(hook.get())) return -1;
  auto before_fork = [] { recorder.lock.lock(); };  // any thread may be inside
  auto in_parent = [] { recorder.lock.unlock(); };
  pthread_atfork(before_fork, in_parent, [] {
    recorder.lock.unlock();
    Engine::list().AfterForkInChild();
    CallArguments::ForgetOtherThreads();
    ForgetOtherThreads();
  });
  TVMFFISetCustomAllocator(&allocator);
  if (kFreeThreaded) InstallObjectLock();
  return 0;
}

}  // namespace tether_py
