// SPDX-License-Identifier: Apache-2.0
// How a collection begins and ends.
#include "python/wrap/collection.h"
#include "python/base/entry.h"

#include <cstring>
#include <vector>

#include "python/base/python_api.h"
#include "python/wrap/arguments.h"
#include "python/wrap/guard_list.h"
#include "python/wrap/hidden.h"
#include "python/wrap/upper_layers.h"

namespace tether_py {

// Never destroyed: wrappers die later than static objects.
Collection& collection = *new Collection();
Patience patience;

namespace {

// A wrapper without object that every collection visits, and finds alive: so the pass after the
// subtracting one is noticed even if all other wrappers are garbage.
PyObject* sentinel = nullptr;

YoungRings young_rings;

// How many wrappers may become dormant before a collection visits them. CPython collects sooner,
// except where it decides that enough was collected recently (3.14).
constexpr int64_t kMaxDormant = 10000;
bool wants_full = false;
PyObject* gc_module = nullptr;

// Whether CPython may start collections by itself.
bool IsAutomatic() {
  if (!PyGC_IsEnabled()) return false;
  Ref thresholds = Ref::Steal(PyObject_CallMethod(gc_module, "get_threshold", nullptr));
  PyObject* first = thresholds ? PyTuple_GetItem(thresholds.get(), 0) : nullptr;
  bool answer = first != nullptr && PyObject_IsTrue(first) == 1;
  if (PyErr_Occurred()) PyErr_Clear();
  return answer;
}

long Number(PyObject* info, const char* key) {
  PyObject* number = PyDict_GetItemString(info, key);
  return number != nullptr && PyLong_Check(number) ? PyLong_AsLong(number) : 0;
}

void BeginCollection(PyObject* info) {
  upper_layers.forget_unused_frames();
  MarkCollecting();
  // Free-threaded builds have no generations.
  collection.is_full = kFreeThreaded || Number(info, "generation") >= 2;
  if (kFreeThreaded) return;
  PyObject_GC_UnTrack(sentinel);
  PyObject_GC_Track(sentinel);  // in the youngest generation, if there are generations
  if (!collection.is_full || CallArguments::IsAnyElsewhere()) return;
  patience.Begin();
  ShowHidden();
}

void EndCollection(PyObject* info) {
  ReleaseGuards();
  size_t looked_at = NumShown();
  PointerSet<TVMFFIObject> pins;
  pins.Swap(&collection.pins);
  pins.ForEach([](TVMFFIObject* h) { Engine::DropStrong(h); });
  size_t num_hidden = NumHidden();
  HideShown();
  size_t survived = NumHidden() - num_hidden;
  collection.owners.Clear();
  collection.read.Clear();
  std::vector<TVMFFIObject*>().swap(collection.pending);
  collection.is_out_of_memory = false;
  EndCounting();
  bool judged_all = collection.is_full && collection.is_quiet;
  collection.is_subtracting = collection.is_quiet = false;
  collection.is_full = true;
  Runtime::collecting = false;
  bool has_run = collection.has_run;
  collection.has_run = false;
  if (kFreeThreaded || uses_rule_b || !has_run) return;
  Runtime::dormant_limit = counters.dormant.Get() + kMaxDormant;
  wants_full = false;
  if (judged_all) return patience.End(static_cast<size_t>(Number(info, "collected")));
  patience.AddHidden(survived);
  young_rings.End(looked_at, survived);
  wants_full = patience.IsOver();
  if (wants_full) Runtime::dormant_limit = INT64_MIN;
}

PyObject* OnCollection(PyObject*, PyObject* args) {
  const char* phase;
  PyObject* info;
  if (!PyArg_ParseTuple(args, "sO!", &phase, &PyDict_Type, &info)) return nullptr;
  bool begins = std::strcmp(phase, "start") == 0;
  Runtime::guarding.Set(uses_rule_b && begins);
  begins ? BeginCollection(info) : EndCollection(info);
  Py_RETURN_NONE;
}

PyMethodDef on_collection = {"_on_collection", Entry<OnCollection>, METH_VARARGS, nullptr};

}  // namespace

bool WatchCollections(PyObject* gc) {
  sentinel = types.object->tp_alloc(types.object, 0);  // not counted as a wrapper
  if (sentinel == nullptr) return false;
  new (&AsWrapper(sentinel)->handle) tie::Handle(tie::kEmpty);
  gc_module = Py_NewRef(gc);
  Runtime::dormant_limit = kMaxDormant;
  Ref callback = Ref::Steal(PyCFunction_New(&on_collection, nullptr));
  Ref callbacks = Ref::Steal(PyObject_GetAttrString(gc, "callbacks"));
  return callback && callbacks && PyList_Append(callbacks.get(), callback.get()) == 0;
}

void MarkCollecting() {
  collection.thread = PyThreadState_Get();
  Runtime::collecting = true;
}

// Only now are other threads certain to be stopped where there is no GIL.
void BeginPass(bool subtracts) {
  collection.is_subtracting = subtracts;
  if (!subtracts) return;
  collection.has_run = true;
  collection.owners.Clear();
  collection.read.Clear();
  collection.is_out_of_memory = false;
  collection.is_quiet = !CallArguments::IsAnyElsewhere();
}

void EndCounting() { collection.added.clear(); }

void CollectNow() {
  bool is_full = wants_full;
  wants_full = false;  // if nothing comes of it, the next collection asks again
  Runtime::dormant_limit = counters.dormant.Get() + kMaxDormant;
  ErrorAside aside;
  if (Runtime::collecting || CallArguments::IsAnyElsewhere() || !IsAutomatic()) return;
  Ref done = Ref::Steal(PyObject_CallMethod(gc_module, "collect", "i", is_full ? 2 : 0));
  if (!done) PyErr_WriteUnraisable(gc_module);
}

void HideAtOnce(Wrapper* w) {
  patience.AddHidden(1);
  Hide(w);
}

}  // namespace tether_py
