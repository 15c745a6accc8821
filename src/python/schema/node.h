// SPDX-License-Identifier: Apache-2.0
// A TypeSchema, compiled: a tree of nodes. Each node is a Python object, a _TypeConverter, and
// never changes once it is made, so any thread may read it.
#ifndef TETHER_PYTHON_SCHEMA_NODE_H_
#define TETHER_PYTHON_SCHEMA_NODE_H_

#include "python/convert/convert.h"

namespace tether_py::schema {

enum class Origin : uint8_t {
  kAny,
  kNone,
  kInt,
  kFloat,
  kBool,
  kStr,
  kBytes,
  kDevice,
  kDataType,
  kPointer,
  kTensor,
  kCallable,
  kArray,
  kList,
  kTuple,
  kMap,
  kDict,
  kOptional,
  kUnion,
  kObject,
};

struct Node {
  PyObject_HEAD Origin origin;
  int32_t target;    // kObject: the type index to reach
  PyObject* hint;    // what messages call the target
  PyObject* args;    // tuple of nodes; NULL for a tuple of any length
  PyObject* member;  // payload enums: callable from a payload, which args[0] checks, to the member
};

inline const Node* ArgOf(const Node* node, Py_ssize_t i) {
  return reinterpret_cast<Node*>(PyTuple_GET_ITEM(node->args, i));
}

inline Py_ssize_t NumArgs(const Node* node) {
  return node->args != nullptr ? PyTuple_GET_SIZE(node->args) : 0;
}

// The node of a container's part, or NULL when that part stays as it is.
inline const Node* PartNode(const Node* node, Py_ssize_t i) {
  const Node* part = ArgOf(node, i);
  return part->origin != Origin::kAny ? part : nullptr;
}

// Whether an object of that type is one of the type that a kObject node names.
bool Fits(const Node* node, int32_t type_index);
// Whether every cell with that type index fits the node without conversion.
bool IsNative(const Node* node, int32_t index);

// A new node; `args` is a tuple of nodes or None, `member` a callable or None. NULL with an error
// set.
PyObject* MakeNode(PyTypeObject* type, const char* origin, PyObject* hint, int32_t target,
                   PyObject* args, PyObject* member);

}  // namespace tether_py::schema
#endif  // TETHER_PYTHON_SCHEMA_NODE_H_
