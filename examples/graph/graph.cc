// SPDX-License-Identifier: Apache-2.0
// A small C++ library for Python: a class with fields and methods, a factory, a callback.
//
// Python may pass anything anywhere. The type of a parameter or field says what is accepted: a Node
// is never None, an ObjectRef is any object or None. A list of anything is looked at when something
// is taken out (ChildOf). What the types do not say, such as the range of an index, is checked
// here.
#include <tvm/ffi/tvm_ffi.h>

#include <atomic>

namespace graph {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

class NodeObj : public ffi::Object {
 public:
  int64_t value;
  ffi::ObjectRef left;
  ffi::List<ffi::Any> children;

  explicit NodeObj(int64_t value) : value(value) { ++alive; }
  ~NodeObj() { --alive; }
  int64_t Total() const;

  static inline std::atomic<int64_t> alive{0};
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("graph.Node", NodeObj, ffi::Object);
};

class Node : public ffi::ObjectRef {
 public:
  explicit Node(int64_t value) { data_ = ffi::make_object<NodeObj>(value); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Node, ffi::ObjectRef, NodeObj);
};

// The i-th child; TypeError if Python put something else there.
Node ChildOf(const NodeObj* node, int64_t i) {
  ffi::Any child = node->children[i];
  if (auto found = child.as<Node>()) return *found;
  TVM_FFI_THROW(TypeError) << "children[" << i << "] of a graph.Node must be a graph.Node, got "
                           << child.GetTypeKey();
  TVM_FFI_UNREACHABLE();
}

int64_t NodeObj::Total() const {
  int64_t sum = value;
  for (size_t i = 0; i < children.size(); ++i) sum += ChildOf(this, static_cast<int64_t>(i))->value;
  return sum;
}

// Calls back for a node and its children. The callback may change the list meanwhile, so each step
// asks for the size again, and has a copy of the child it passes on.
void Visit(const Node& node, const ffi::TypedFunction<void(Node)>& callback) {
  callback(node);
  for (int64_t i = 0; i < static_cast<int64_t>(node->children.size()); ++i) {
    callback(ChildOf(node.get(), i));
  }
}

// Keeps nodes alive on the C++ side only.
ffi::List<Node>* Pool() {
  static auto* pool = new ffi::List<Node>();
  return pool;
}

Node Kept(int64_t i) {
  auto size = static_cast<int64_t>(Pool()->size());
  if (i < 0 || i >= size) {
    TVM_FFI_THROW(IndexError) << "graph.kept: index " << i << " is not below the number of nodes, "
                              << size;
  }
  return (*Pool())[i];
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<NodeObj>()
      .def(refl::init<int64_t>(), refl::arg("value"), "A node without children.")
      .def_rw("value", &NodeObj::value, "A number.")
      .def_rw("left", &NodeObj::left, "Another node, or None.")
      .def_ro("children", &NodeObj::children, "Nodes below this one.")
      .def("total", &NodeObj::Total, "The sum of its own number and those of its children.");
  refl::GlobalDef()
      .def(
          "graph.make", [](int64_t value) { return Node(value); }, refl::arg("value"),
          "Make a node.")
      .def(
          "graph.alive", [] { return NodeObj::alive.load(); }, "How many nodes there are.")
      .def(
          "graph.keep", [](const Node& node) { Pool()->push_back(node); }, refl::arg("node"),
          "Keep a node.")
      .def("graph.kept", Kept, refl::arg("index"), "A node that was kept.")
      .def(
          "graph.forget", [] { Pool()->clear(); }, "Let go of all nodes that were kept.")
      .def("graph.visit", Visit, refl::arg("node"), refl::arg("callback"),
           "Call back with a node and all below it.");
}

}  // namespace graph
