// SPDX-License-Identifier: Apache-2.0
// A TypeSchema, compiled: how its tree is built.
#include "python/schema/node.h"

#include <cstring>
#include <iterator>

#include "python/base/python_api.h"

namespace tether_py::schema {

using ffi::TypeIndex;

namespace {

constexpr const char* kOriginNames[] = {
    "Any",    "None",     "int",   "float", "bool",  "str", "bytes", "Device",   "dtype", "pointer",
    "Tensor", "Callable", "Array", "List",  "tuple", "Map", "Dict",  "Optional", "Union", "object"};

int FindOrigin(const char* name) {
  for (size_t i = 0; i < std::size(kOriginNames); ++i) {
    if (std::strcmp(kOriginNames[i], name) == 0) return static_cast<int>(i);
  }
  PyErr_Format(PyExc_ValueError, "unknown kind of converter: %s", name);
  return -1;
}

// The least number of arguments of an origin; only containers have any.
Py_ssize_t MinArgs(Origin origin, bool has_member) {
  switch (origin) {
    case Origin::kArray:
    case Origin::kList:
    case Origin::kOptional:
      return 1;
    case Origin::kMap:
    case Origin::kDict:
      return 2;
    case Origin::kObject:
      return has_member ? 1 : 0;
    default:
      return 0;
  }
}

bool CheckArgs(Origin origin, PyObject* args, PyObject* member) {
  if (args == Py_None && origin == Origin::kTuple) return true;
  if (!PyTuple_Check(args) || PyTuple_GET_SIZE(args) < MinArgs(origin, member != Py_None)) {
    PyErr_SetString(PyExc_TypeError, "_TypeConverter: args must be a tuple of converters");
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    if (Py_TYPE(PyTuple_GET_ITEM(args, i)) != types.converter) {
      PyErr_Format(PyExc_TypeError, "_TypeConverter: args[%zd] is not a converter", i);
      return false;
    }
  }
  return true;
}

}  // namespace

bool Fits(const Node* node, int32_t type_index) {
  return type_index >= TypeIndex::kTVMFFIStaticObjectBegin &&
         (type_index == node->target ||
          ffi::details::RuntimeTypeIndexMatch(type_index, node->target));
}

bool IsNative(const Node* node, int32_t index) {
  switch (node->origin) {
    case Origin::kAny:
      return index != TypeIndex::kTVMFFIDLTensorPtr;  // refused, not kept
    case Origin::kNone:
      return index == TypeIndex::kTVMFFINone;
    case Origin::kInt:
      return index == TypeIndex::kTVMFFIInt;
    case Origin::kFloat:
      return index == TypeIndex::kTVMFFIFloat;
    case Origin::kBool:
      return index == TypeIndex::kTVMFFIBool;
    case Origin::kStr:
      return index == TypeIndex::kTVMFFIStr || index == TypeIndex::kTVMFFISmallStr;
    case Origin::kBytes:
      return index == TypeIndex::kTVMFFIBytes || index == TypeIndex::kTVMFFISmallBytes;
    case Origin::kDevice:
      return index == TypeIndex::kTVMFFIDevice;
    case Origin::kDataType:
      return index == TypeIndex::kTVMFFIDataType;
    case Origin::kPointer:
      return index == TypeIndex::kTVMFFIOpaquePtr;
    case Origin::kTensor:
      return index == TypeIndex::kTVMFFITensor;
    case Origin::kCallable:
      return index == TypeIndex::kTVMFFIFunction;
    case Origin::kObject:
      return Fits(node, index);
    default:
      return false;
  }
}

PyObject* MakeNode(PyTypeObject* type, const char* origin, PyObject* hint, int32_t target,
                   PyObject* args, PyObject* member) {
  int found = FindOrigin(origin);
  if (found < 0 || !CheckArgs(static_cast<Origin>(found), args, member)) return nullptr;
  auto* node = reinterpret_cast<Node*>(type->tp_alloc(type, 0));
  if (node == nullptr) return nullptr;
  node->origin = static_cast<Origin>(found);
  node->target = target;
  node->hint = Py_NewRef(hint);
  node->args = args != Py_None ? Py_NewRef(args) : nullptr;
  node->member = member != Py_None ? Py_NewRef(member) : nullptr;
  return reinterpret_cast<PyObject*>(node);
}

}  // namespace tether_py::schema
