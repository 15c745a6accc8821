// SPDX-License-Identifier: Apache-2.0
// Conversion by schema: tensors, functions, and objects of any registered type.
#include <tvm/ffi/function.h>

#include "python/base/python_api.h"
#include "python/call/callback.h"
#include "python/convert/errors.h"
#include "python/kinds/kinds.h"
#include "python/schema/convert_value.h"

namespace tether_py::schema {

using ffi::TypeIndex;

Outcome ConvertTensor(const Node* node, PyObject* value, Result* result) {
  int is = IsOfKind(value, {ValueKind::kWrapper, ValueKind::kDLPack, ValueKind::kExchangeTensor});
  if (is < 0) return PackingFailed(node, value, result);
  if (is == 0) return Unexpected(node, value, result);
  return PackAs(node, value, TypeIndex::kTVMFFITensor, result);
}

Outcome ConvertCallable(const Node* node, PyObject* value, Result* result) {
  if (!IsWrapper(value)) {
    if (!PyCallable_Check(value)) return Unexpected(node, value, result);
    ffi::Function function = MakeCallback(value);
    return function.defined() ? Done(std::move(function), result) : Outcome::kRaised;
  }
  ffi::ObjectRef object = HeldObject(value);
  if (!object.defined()) return Outcome::kRaised;
  if (object.type_index() != TypeIndex::kTVMFFIFunction) return Unexpected(node, value, result);
  return Done(std::move(object), result);
}

namespace {

// The hook by which a type accepts values that are not objects of it, or NULL.
const TVMFFIAny* ConvertHook(int32_t type_index) {
  constexpr const char kName[] = "__ffi_convert__";
  TVMFFIByteArray name{kName, sizeof(kName) - 1};
  const TVMFFITypeAttrColumn* column = TVMFFIGetTypeAttrColumn(&name);
  if (column == nullptr) return nullptr;
  int32_t i = type_index - column->begin_index;
  if (i < 0 || i >= column->size) return nullptr;
  const TVMFFIAny* hook = &column->data[i];
  return hook->type_index == TypeIndex::kTVMFFIFunction ? hook : nullptr;
}

std::string Indented(const std::string& text) {
  std::string result = "    ";
  for (char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  return result;
}

// Calls the hook of the type; its error text goes to the end of the message.
Outcome ConvertByHook(const Node* node, PyObject* value, const TVMFFIAny& hook, Result* result) {
  TVMFFIAny packed = CellIn(result->value);
  TVMFFIAny converted;
  tie::StoreNone(&converted);
  int code = TVMFFIFunctionCall(hook.v_obj, &packed, 1, &converted);
  if (code == 0) {
    result->value = ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(&converted);
    if (Fits(node, result->value.type_index())) return Outcome::kDone;
    return Unexpected(node, value, result);
  }
  RaiseFromCall(code);
  if (!IsOrdinaryError()) return Outcome::kRaised;
  std::string why = TakeErrorText();
  Unexpected(node, value, result);
  return Extended(result, {"\n  __ffi_convert__ failed:\n", Indented(why)});
}

// The member of an enum class that has this payload. A mismatch without message: no such member.
Outcome ConvertPayload(const Node* node, PyObject* value, Result* result) {
  const Node* payload_node = ArgOf(node, 0);
  Outcome outcome = Convert(payload_node, value, result);
  // For an integer out of range the message stays; any other value is just not a payload.
  bool is_range_error = payload_node->origin == Origin::kInt && PyLong_Check(value);
  if (outcome == Outcome::kMismatch && !is_range_error) result->message.clear();
  if (outcome != Outcome::kDone) return outcome;
  Ref payload = Ref::Steal(FromBorrowedAny(CellIn(result->value)));
  Ref member = payload ? Ref::Steal(PyObject_CallOneArg(node->member, payload.get())) : Ref();
  if (!member) return Outcome::kRaised;
  if (!IsWrapper(member.get())) return Outcome::kMismatch;
  ffi::ObjectRef object = HeldObject(member.get());
  if (!object.defined()) return Outcome::kRaised;
  return Done(std::move(object), result);
}

}  // namespace

Outcome ConvertObject(const Node* node, PyObject* value, Result* result) {
  if (IsWrapper(value)) {
    ffi::ObjectRef object = HeldObject(value);
    if (!object.defined()) return Outcome::kRaised;
    if (Fits(node, object.type_index())) return Done(std::move(object), result);
  } else if (node->member != nullptr) {
    Outcome outcome = ConvertPayload(node, value, result);
    if (outcome != Outcome::kMismatch || !result->message.empty()) return outcome;
  }
  Outcome outcome = Pack(node, value, result);
  if (outcome != Outcome::kDone || Fits(node, result->value.type_index())) return outcome;
  const TVMFFIAny* hook = ConvertHook(node->target);
  return hook != nullptr ? ConvertByHook(node, value, *hook, result)
                         : Unexpected(node, value, result);
}

}  // namespace tether_py::schema
