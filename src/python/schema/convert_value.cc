// SPDX-License-Identifier: Apache-2.0
// Conversion of a value to what a node declares.
#include "python/schema/convert_value.h"

#include "python/base/python_api.h"
#include "python/kinds/kinds.h"

namespace tether_py::schema {

using ffi::TypeIndex;

Outcome PackAs(const Node* node, PyObject* value, int32_t type_index, Result* result) {
  Outcome outcome = Pack(node, value, result);
  if (outcome != Outcome::kDone || result->value.type_index() == type_index) return outcome;
  return Unexpected(node, value, result);
}

ffi::ObjectRef HeldObject(PyObject* wrapper) {
  TVMFFIObject* h = HoldHandle(AsWrapper(wrapper));
  return ffi::ObjectRef(ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::Object>(h));
}

namespace {

// ---- values that stand for others ----

bool IsBuiltin(PyTypeObject* type) {
  return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyFloat_Type ||
         type == &PyBool_Type || type == &PyList_Type || type == &PyTuple_Type ||
         type == &PyDict_Type || type == &PyBytes_Type || type == Py_TYPE(Py_None);
}

// The node that messages name when a value cannot be unwrapped.
const Node* ReportingNode(const Node* node) {
  while (node->origin == Origin::kOptional) node = ArgOf(node, 0);
  return node;
}

Outcome UnwrapFailed(const Node* node, PyObject* value, Result* result) {
  node = ReportingNode(node);
  if (node->origin != Origin::kAny) return Unexpected(node, value, result);
  return Mismatch(result, {"failed to convert Any from ", Describe(value)});
}

// One step of unwrapping. kDone with *value unchanged: it stands for itself.
Outcome UnwrapOnce(const Node* node, Ref* value, Result* result) {
  PyObject* current = value->get();
  ValueKind kind;
  if (!ResolveStandIn(current, &kind)) return Outcome::kRaised;
  const char* method = kind == ValueKind::kFFIObject       ? "__tvm_ffi_object__"
                       : kind == ValueKind::kValueProtocol ? "__tvm_ffi_value__"
                       : kind == ValueKind::kConvertible   ? "asobject"
                                                           : nullptr;
  if (method == nullptr) return Outcome::kDone;
  Ref given = Ref::Steal(PyObject_CallMethod(current, method, nullptr));
  if (!given && !IsOrdinaryError()) return Outcome::kRaised;
  if (!given) PyErr_Clear();
  if (kind == ValueKind::kValueProtocol && (!given || given.get() == current)) {
    return UnwrapFailed(node, current, result);
  }
  if (!given) return Mismatch(result, {method, "() failed for ", Describe(current)});
  if (kind == ValueKind::kConvertible && !IsWrapper(given.get())) {
    return Mismatch(result,
                    {"asobject() returned ", Describe(given.get()), " for ", Describe(current)});
  }
  *value = std::move(given);
  return Outcome::kDone;
}

Outcome Unwrap(const Node* node, Ref* value, Result* result) {
  constexpr int kMaxSteps = 64;
  for (int step = 0; step <= kMaxSteps; ++step) {
    if (IsBuiltin(Py_TYPE(value->get()))) return Outcome::kDone;
    PyObject* before = value->get();
    Outcome outcome = UnwrapOnce(node, value, result);
    if (outcome != Outcome::kDone || value->get() == before) return outcome;
  }
  return Mismatch(result, {"infinite __tvm_ffi_value__ cycle detected"});
}

// ---- dispatch ----

// An alternative that the value fits exactly, else the first that accepts it. `value` is what
// Convert or ConvertCell takes.
template <typename T>
Outcome OneOf(const Node* node, const T& value, Outcome (*convert)(const Node*, T, Result*),
              Result* result) {
  for (bool exactly : {true, false}) {
    for (Py_ssize_t i = 0; i < NumArgs(node); ++i) {
      if (exactly && !FitsExactly(ArgOf(node, i), value)) continue;
      Outcome outcome = convert(ArgOf(node, i), value, result);
      if (outcome != Outcome::kMismatch) return outcome;
    }
  }
  return Outcome::kMismatch;
}

Outcome ConvertPlain(const Node* node, PyObject* value, Result* result) {
  switch (node->origin) {
    case Origin::kAny:
      return Pack(node, value, result);
    case Origin::kNone:
      return value == Py_None ? Done(nullptr, result) : Unexpected(node, value, result);
    case Origin::kInt:
      return ConvertInt(node, value, result);
    case Origin::kFloat:
      return ConvertFloat(node, value, result);
    case Origin::kBool:
      return ConvertBool(node, value, result);
    case Origin::kStr:
    case Origin::kBytes:
      return ConvertText(node, value, result);
    case Origin::kDevice:
      return ConvertDevice(node, value, result);
    case Origin::kDataType:
      return ConvertDataType(node, value, result);
    case Origin::kPointer:
      return ConvertPointer(node, value, result);
    case Origin::kTensor:
      return ConvertTensor(node, value, result);
    case Origin::kCallable:
      return ConvertCallable(node, value, result);
    case Origin::kArray:
    case Origin::kList:
    case Origin::kTuple:
      return ConvertToSequence(node, value, result);
    case Origin::kMap:
    case Origin::kDict:
      return ConvertToMap(node, value, result);
    case Origin::kOptional:
      return value == Py_None ? Done(nullptr, result) : ConvertPlain(ArgOf(node, 0), value, result);
    case Origin::kUnion: {
      Outcome outcome = OneOf<PyObject*>(node, value, ConvertPlain, result);
      return outcome != Outcome::kMismatch ? outcome : Unexpected(node, value, result);
    }
    case Origin::kObject:
      return ConvertObject(node, value, result);
  }
  return Unexpected(node, value, result);
}

// Only containers nest.
class RecursionGuard {
 public:
  explicit RecursionGuard(const Node* node)
      : entered_(node->origin >= Origin::kArray),
        ok_(!entered_ || EnterRecursion(" while converting a value")) {}
  RecursionGuard(const RecursionGuard&) = delete;
  RecursionGuard& operator=(const RecursionGuard&) = delete;
  ~RecursionGuard() {
    if (entered_ && ok_) Py_LeaveRecursiveCall();
  }
  bool ok() const { return ok_; }

 private:
  bool entered_;
  bool ok_;
};

}  // namespace

Outcome Convert(const Node* node, PyObject* value, Result* result) {
  RecursionGuard guard(node);
  if (!guard.ok()) return Outcome::kRaised;
  if (TVM_FFI_PREDICT_TRUE(IsBuiltin(Py_TYPE(value)))) return ConvertPlain(node, value, result);
  Ref unwrapped = Ref::Borrow(value);
  Outcome outcome = Unwrap(node, &unwrapped, result);
  return outcome == Outcome::kDone ? ConvertPlain(node, unwrapped.get(), result) : outcome;
}

namespace {

ffi::ObjectRef ObjectInCell(const TVMFFIAny& cell) {
  return ffi::ObjectRef(ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::Object>(cell.v_obj));
}

Outcome ConvertCellInPlace(const Node* node, const TVMFFIAny& cell, Result* result) {
  int32_t index = cell.type_index;
  if (IsNative(node, index)) return Done(ffi::AnyView::CopyFromTVMFFIAny(cell), result);
  switch (node->origin) {
    case Origin::kArray:
    case Origin::kList:
    case Origin::kTuple:
      if (!IsSequenceIndex(index)) break;
      return ConvertSequence(node, ObjectInCell(cell),
                             index == TypeIndex::kTVMFFIList ? "List" : "Array", result);
    case Origin::kMap:
    case Origin::kDict:
      if (IsMapIndex(index)) return ConvertMap(node, ObjectInCell(cell), result);
      break;
    case Origin::kOptional:
      if (index == TypeIndex::kTVMFFINone) return Done(nullptr, result);
      return ConvertCell(ArgOf(node, 0), cell, result);
    case Origin::kUnion:
      // What is inside an opaque object is unwrapped once, before the alternatives see it.
      if (index == TypeIndex::kTVMFFIOpaquePyObject) break;
      if (Outcome outcome = OneOf<const TVMFFIAny&>(node, cell, ConvertCell, result);
          outcome != Outcome::kMismatch) {
        return outcome;
      }
      break;
    default:
      break;
  }
  Ref value = Ref::Steal(FromBorrowedAny(cell));
  return value ? Convert(node, value.get(), result) : Outcome::kRaised;
}

}  // namespace

Outcome ConvertCell(const Node* node, const TVMFFIAny& cell, Result* result) {
  RecursionGuard guard(node);
  return guard.ok() ? ConvertCellInPlace(node, cell, result) : Outcome::kRaised;
}

}  // namespace tether_py::schema
