// SPDX-License-Identifier: Apache-2.0
// The functions that tvm_ffi.inspect calls. Nothing here runs unless somebody asks for it.
#include "python/wrap/inspect.h"

#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/wrap/collector.h"
#include "python/wrap/edges.h"
#include "python/wrap/recorder.h"
#include "python/wrap/world_to_python.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

constexpr char kWorldName[] = "tvm_ffi.inspect.world";

World* WorldOf(PyObject* capsule) {
  return static_cast<World*>(PyCapsule_GetPointer(capsule, kWorldName));
}

// (objects, whether to add all that is known)
// -> (capsule that holds the objects, nodes, edges, roots, node of each of `objects`, type keys,
//     lines)
PyObject* MakeWorld(PyObject*, PyObject* args) {
  PyObject* given;
  int wants_all;
  if (!PyArg_ParseTuple(args, "O!p", &PyList_Type, &given, &wants_all)) return nullptr;
  auto world = std::make_unique<World>();
  std::vector<size_t> node_of_given;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(given); ++i) {
    PyObject* obj = PyList_GET_ITEM(given, i);
    node_of_given.push_back(IsWrapper(obj) ? world->AddWrapper(AsWrapper(obj)) : SIZE_MAX);
  }
  if (wants_all != 0) world->AddAllKnown();
  world->Walk();
  Ref nodes = Ref::Steal(world->NodesToPython());
  Ref edges = nodes ? Ref::Steal(world->EdgesToPython()) : Ref();
  Ref roots = edges ? Ref::Steal(world->RootsToPython()) : Ref();
  Ref types = roots ? Ref::Steal(world->TypesToPython()) : Ref();
  Ref lines = types ? Ref::Steal(LinesToPython()) : Ref();
  if (!lines) return nullptr;
  Ref indices = Ref::Steal(IndicesToPython(node_of_given));
  if (!indices) return nullptr;
  Ref capsule = Ref::Steal(PyCapsule_New(world.get(), kWorldName, [](PyObject* self) {
    ErrorAside aside;
    delete WorldOf(self);
  }));
  if (!capsule) return nullptr;
  (void)world.release();
  return Py_BuildValue("(OOOOOOO)", capsule.get(), nodes.get(), edges.get(), roots.get(),
                       indices.get(), types.get(), lines.get());
}

// (capsule, node) -> the wrapper that stands for a node, or None. A dormant wrapper stays dormant.
PyObject* WrapperOfNode(PyObject*, PyObject* args) {
  PyObject* capsule;
  Py_ssize_t node;
  if (!PyArg_ParseTuple(args, "On", &capsule, &node)) return nullptr;
  World* world = WorldOf(capsule);
  if (world == nullptr) return nullptr;
  if (node < 0 || static_cast<size_t>(node) >= world->nodes().size()) {
    return PyErr_Format(PyExc_IndexError, "no such object");
  }
  TVMFFIObject* h = world->nodes()[static_cast<size_t>(node)];
  if (Wrapper* w = Engine::FetchLive(h)) return AsObject(w);
  uintptr_t word = WordOf(h);
  // The object is held, so its word keeps the wrapper.
  auto* w = AsWrapper(WrapperIn(word));
  bool is_dormant = w != nullptr && (word & tie::kInactive) != 0;
  return is_dormant && Runtime::TryIncRef(w) ? AsObject(w) : Py_NewRef(Py_None);
}

// Takes nodes apart: lists and dicts are cleared, fields that Python defined emptied. Then lets go
// of all objects of the world.
// (capsule, [(node, strong references it must have, and references its wrapper must have)],
//  nodes to take apart)
// -> the nodes of the first list that died, or None if a count has changed
PyObject* TakeApart(PyObject*, PyObject* args) {
  PyObject* capsule;
  PyObject* expected;
  PyObject* to_break;
  if (!PyArg_ParseTuple(args, "OO!O!", &capsule, &PyList_Type, &expected, &PyList_Type,
                        &to_break)) {
    return nullptr;
  }
  World* world = WorldOf(capsule);
  if (world == nullptr) return nullptr;
  std::vector<std::pair<Py_ssize_t, ffi::WeakObjectPtr<ffi::Object>>> watched;
  auto node_at = [world](Py_ssize_t i) -> TVMFFIObject* {
    if (i >= 0 && static_cast<size_t>(i) < world->nodes().size()) {
      return world->nodes()[static_cast<size_t>(i)];
    }
    PyErr_SetString(PyExc_IndexError, "no such object");
    return nullptr;
  };
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(expected); ++i) {
    Py_ssize_t node;
    unsigned long long strong;
    Py_ssize_t of_wrapper;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(expected, i), "nKn", &node, &strong, &of_wrapper)) {
      return nullptr;
    }
    TVMFFIObject* h = node_at(node);
    if (h == nullptr) return nullptr;
    PyObject* w = WrapperIn(WordOf(h));
    if (StrongCount(h) != strong + 1 || (w != nullptr ? Py_REFCNT(w) : 0) != of_wrapper) {
      Py_RETURN_NONE;
    }
    watched.emplace_back(node, ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::Object>(h));
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(to_break); ++i) {
    Py_ssize_t node = PyLong_AsSsize_t(PyList_GET_ITEM(to_break, i));
    TVMFFIObject* h = PyErr_Occurred() == nullptr ? node_at(node) : nullptr;
    if (h == nullptr) return nullptr;
    if (h->type_index == TypeIndex::kTVMFFIList) {
      ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<ffi::ListObj>(h)->clear();
    } else if (h->type_index == TypeIndex::kTVMFFIDict) {
      ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<ffi::DictObj>(h)->clear();
    } else if (CanBeEmptied(h->type_index)) {
      Empty(h);
    }
  }
  world->LetGo();
  Ref died = Ref::Steal(PyList_New(0));
  for (auto& [node, object] : watched) {
    if (!object.expired()) continue;
    Ref number = Ref::Steal(PyLong_FromSsize_t(node));
    if (!died || !number || PyList_Append(died.get(), number.get()) < 0) return nullptr;
  }
  return died.release();
}

// Whether TakeApart can do something with objects of a type.
PyObject* CanTakeApart(PyObject*, PyObject* index) {
  long type_index = PyLong_AsLong(index);
  if (type_index == -1 && PyErr_Occurred()) return nullptr;
  return PyBool_FromLong(type_index == TypeIndex::kTVMFFIList ||
                         type_index == TypeIndex::kTVMFFIDict ||
                         CanBeEmptied(static_cast<int32_t>(type_index)));
}

// The wrappers in a list that are in use and that the collector does not know, once each.
PyObject* FindLeaves(PyObject*, PyObject* objects) {
  if (!PyList_Check(objects)) return PyErr_Format(PyExc_TypeError, "expected a list");
  Ref found = Ref::Steal(PyList_New(0));
  std::unordered_set<PyObject*> seen;
  for (Py_ssize_t i = 0; found && i < PyList_GET_SIZE(objects); ++i) {
    PyObject* obj = PyList_GET_ITEM(objects, i);
    if (!IsWrapper(obj) || IsTracked(obj) || !seen.insert(obj).second) continue;
    if (PyList_Append(found.get(), obj) < 0) return nullptr;
  }
  return found.release();
}

// What a wrapper itself refers to: its class and its Python state.
PyObject* OwnReferents(PyObject*, PyObject* obj) {
  if (!IsWrapper(obj)) return PyErr_Format(PyExc_TypeError, "expected an object of C++");
  Ref found = Ref::Steal(PyList_New(0));
  if (!found) return nullptr;
  CriticalSection section(obj);
  if (Py_TYPE(obj)->tp_traverse(obj, VisitOwnReference, found.get()) != 0) return nullptr;
  return found.release();
}

PyMethodDef inspect_functions[] = {
    {"_inspect_world", Entry<MakeWorld>, METH_VARARGS, "The C++ objects that can be found."},
    {"_inspect_leaves", Entry<FindLeaves>, METH_O, "Those wrappers that gc does not list."},
    {"_inspect_own_referents", Entry<OwnReferents>, METH_O, nullptr},
    {"_inspect_wrapper", Entry<WrapperOfNode>, METH_VARARGS, nullptr},
    {"_inspect_take_apart", Entry<TakeApart>, METH_VARARGS, "Break rings of C++ objects."},
    {"_inspect_can_take_apart", Entry<CanTakeApart>, METH_O, nullptr},
    {"_inspect_start", Entry<StartRecording>, METH_O, "Record the objects made from now on."},
    {"_inspect_stop", Entry<StopRecording>, METH_NOARGS, "Stop recording and forget the lines."},
    {"_inspect_is_recording", Entry<IsRecording>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitInspect(PyObject* module) { return PyModule_AddFunctions(module, inspect_functions); }

}  // namespace tether_py
