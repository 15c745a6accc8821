// SPDX-License-Identifier: Apache-2.0
// What was found of the C++ objects, as lists and tuples for tvm_ffi.inspect.
#include "python/wrap/world_to_python.h"

#include <mutex>
#include <unordered_set>

#include "python/wrap/edge_text.h"

namespace tether_py {

namespace {

// The list of make(i) for i below n.
template <typename F>
PyObject* ListOf(size_t n, F&& make) {
  Ref list = Ref::Steal(PyList_New(static_cast<Py_ssize_t>(n)));
  for (size_t i = 0; list && i < n; ++i) {
    PyObject* item = make(i);
    if (item == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list.release();
}

PyObject* Text(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

Py_ssize_t IndexOf(size_t node) { return node == SIZE_MAX ? -1 : static_cast<Py_ssize_t>(node); }

}  // namespace

FirstFetch World::FirstFetchOf(TVMFFIObject* h, bool is_adopted) const {
  auto record = records_.find(h);
  if (record != records_.end()) return record->second;
  if (!is_adopted) return {0, 0};
  std::lock_guard<std::mutex> locked(recorder.lock);
  auto fetched = recorder.fetched.find(h);
  return fetched != recorder.fetched.end() ? fetched->second : FirstFetch{0, 0};
}

// (address, type index, strong, weak, wrapper's id or 0, its class, state, its references,
//  references held by calls in progress, is an argument, adopted, serial of its record, line)
PyObject* World::NodeToPython(size_t i) const {
  TVMFFIObject* h = nodes_[i];
  uint64_t combined = CombinedCount(h);
  auto strong = static_cast<long long>(combined & ffi::details::kCombinedRefCountMaskUInt32) - 1;
  auto weak = static_cast<long long>(combined >> 32) - 1;
  uintptr_t word = WordOf(h);
  PyObject* w = WrapperIn(word);
  const char* state = w == nullptr ? "" : (word & tie::kInactive) != 0 ? "dormant" : "active";
  PyObject* cls = w != nullptr ? reinterpret_cast<PyObject*>(Py_TYPE(w)) : Py_None;
  bool is_adopted =
      tie::FindAdopted(Runtime::Table(), h, tie::LoadPadding<tie::NoHooks>(h)) != nullptr;
  FirstFetch first = FirstFetchOf(h, is_adopted);
  auto call = in_calls_.find(h);
  InCalls in_call = call != in_calls_.end() ? call->second : InCalls{};
  return Py_BuildValue("(KiLLKOsnLOOLI)", reinterpret_cast<unsigned long long>(h), h->type_index,
                       strong, weak, reinterpret_cast<unsigned long long>(w), cls, state,
                       w != nullptr ? Py_REFCNT(w) : 0, in_call.held,
                       in_call.is_argument ? Py_True : Py_False, is_adopted ? Py_True : Py_False,
                       static_cast<long long>(first.serial), first.line);
}

PyObject* World::NodesToPython() const {
  return ListOf(nodes_.size(), [this](size_t i) { return NodeToPython(i); });
}

// (from, to or -1, Python object or None, place)
PyObject* World::EdgesToPython() const {
  return ListOf(edges_.size(), [this](size_t i) -> PyObject* {
    const Edge& edge = edges_[i];
    Ref place = Ref::Steal(Text(edge.place));
    if (!place) return nullptr;
    PyObject* object = edge.object ? edge.object.get() : Py_None;
    return Py_BuildValue("(nnOO)", IndexOf(edge.from), IndexOf(edge.to), object, place.get());
  });
}

PyObject* World::RootsToPython() const {
  return ListOf(roots_.size(), [this](size_t i) -> PyObject* {
    Ref name = Ref::Steal(Text(roots_[i].name));
    return name ? Py_BuildValue("(nO)", IndexOf(roots_[i].node), name.get()) : nullptr;
  });
}

// Type keys by type index.
PyObject* World::TypesToPython() const {
  Ref types = Ref::Steal(PyDict_New());
  if (!types) return nullptr;
  std::unordered_set<int32_t> seen;
  for (TVMFFIObject* h : nodes_) {
    if (!seen.insert(h->type_index).second) continue;
    Ref index = Ref::Steal(PyLong_FromLong(h->type_index));
    Ref key = Ref::Steal(Text(TypeKey(h->type_index)));
    if (!index || !key || PyDict_SetItem(types.get(), index.get(), key.get()) < 0) return nullptr;
  }
  return types.release();
}

PyObject* LinesToPython() {
  std::vector<std::pair<Ref, int>> lines;
  {
    std::lock_guard<std::mutex> locked(recorder.lock);
    lines = recorder.lines;
  }
  return ListOf(lines.size(), [&lines](size_t i) -> PyObject* {
    auto* code = reinterpret_cast<PyCodeObject*>(lines[i].first.get());
    if (code == nullptr) return Py_NewRef(Py_None);
    return Py_BuildValue("(OiO)", code->co_filename, lines[i].second, code->co_name);
  });
}

PyObject* IndicesToPython(const std::vector<size_t>& nodes) {
  return ListOf(nodes.size(), [&nodes](size_t i) { return PyLong_FromSsize_t(IndexOf(nodes[i])); });
}

}  // namespace tether_py
