// SPDX-License-Identifier: Apache-2.0
// A small C++ library for Python: a class with fields and methods, a factory, a callback.
//
// Python may pass anything anywhere. The type of a parameter or field says what is accepted: a Node
// is never None, an ObjectRef is any object or None. What Python puts into a List is looked at when
// it is taken out: cast<Node>() raises TypeError.
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

int64_t NodeObj::Total() const {
  int64_t sum = value;
  for (const ffi::Any& child : children) sum += child.cast<Node>()->value;
  return sum;
}

// Calls back for a node and its children. The callback may change the list meanwhile, so each step
// asks for the size again, and has a copy of the child it passes on.
void Visit(const Node& node, const ffi::TypedFunction<void(Node)>& callback) {
  callback(node);
  for (int64_t i = 0; i < static_cast<int64_t>(node->children.size()); ++i) {
    Node child = node->children[i].cast<Node>();
    callback(child);
  }
}

// Keeps nodes alive on the C++ side only.
ffi::List<Node>* Pool() {
  static auto* pool = new ffi::List<Node>();
  return pool;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<NodeObj>()
      .def(refl::init<int64_t>())
      .def_rw("value", &NodeObj::value, "A number.")
      .def_rw("left", &NodeObj::left, "Another node, or None.")
      .def_ro("children", &NodeObj::children, "Nodes below this one.")
      .def("total", &NodeObj::Total, "The sum of its own number and those of its children.");
  refl::GlobalDef()
      .def("graph.make", [](int64_t value) { return Node(value); })
      .def("graph.alive", [] { return NodeObj::alive.load(); })
      .def("graph.keep", [](const Node& node) { Pool()->push_back(node); })
      .def("graph.kept", [](int64_t i) { return (*Pool())[i]; })
      .def("graph.forget", [] { Pool()->clear(); })
      .def("graph.visit", Visit);
}

}  // namespace graph
