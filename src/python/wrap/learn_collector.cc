// SPDX-License-Identifier: Apache-2.0
// Which collector this is: learned at import, and checked.
#include "python/wrap/learn_collector.h"

#include <cstdlib>

#include "python/wrap/collection.h"
#include "python/wrap/edges.h"
#include "python/wrap/guard_list.h"

namespace tether_py {

visitproc subtracting_visitor = nullptr;
bool learning = false;

// Learns the visitor in a collection of young objects, then checks on a garbage cycle that the rule
// holds: a wrapper whose object C++ still has must survive, with its weak references.
bool LearnCollector() {
  Ref gc = Ref::Steal(PyImport_ImportModule("gc"));
  if (!gc) return false;
  LearnEdges();
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
