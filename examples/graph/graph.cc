// SPDX-License-Identifier: Apache-2.0
// A small C++ library for Python: a class with fields and methods, a factory, a callback.
#include <tvm/ffi/tvm_ffi.h>

namespace graph {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

class NodeObj : public ffi::Object {
 public:
  int64_t value;
  ffi::ObjectRef left;
  ffi::List<ffi::ObjectRef> children;

  explicit NodeObj(int64_t value) : value(value) { ++alive; }
  ~NodeObj() { --alive; }

  static inline int64_t alive = 0;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("graph.Node", NodeObj, ffi::Object);
};

class Node : public ffi::ObjectRef {
 public:
  explicit Node(int64_t value) { data_ = ffi::make_object<NodeObj>(value); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Node, ffi::ObjectRef, NodeObj);
};

// Keeps nodes alive on the C++ side only.
ffi::List<ffi::ObjectRef>* Pool() {
  static auto* pool = new ffi::List<ffi::ObjectRef>();
  return pool;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<NodeObj>()
      .def(refl::init<int64_t>())
      .def_rw("value", &NodeObj::value, "A number.")
      .def_rw("left", &NodeObj::left, "Another node, or None.")
      .def_ro("children", &NodeObj::children, "Nodes below this one.")
      .def("total", [](const NodeObj* self) {
        int64_t sum = self->value;
        for (const ffi::ObjectRef& child : self->children) sum += child.as<NodeObj>()->value;
        return sum;
      });
  refl::GlobalDef()
      .def("graph.make", [](int64_t value) { return Node(value); })
      .def("graph.alive", [] { return NodeObj::alive; })
      .def("graph.keep", [](ffi::ObjectRef node) { Pool()->push_back(node); })
      .def("graph.kept", [](int64_t i) { return (*Pool())[i]; })
      .def("graph.forget", [] { Pool()->clear(); })
      .def("graph.visit", [](const Node& node, const ffi::Function& callback) {
        callback(node);
        for (const ffi::ObjectRef& child : node->children) callback(child);
      });
}

}  // namespace graph
