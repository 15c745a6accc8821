// SPDX-License-Identifier: Apache-2.0
// The result of a conversion, and its messages.
#include "python/schema/result.h"

#include <cstring>

#include "python/base/python_api.h"
#include "python/wrap/python_hooks.h"

namespace tether_py::schema {

namespace {

TVM_FFI_NO_INLINE std::string Join(Parts parts) {
  std::string text;
  for (std::string_view part : parts) text += part;
  return text;
}

std::string QualifiedName(PyObject* value) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(value));
  return TextOf(Ref::Steal(PyObject_GetAttrString(type, "__qualname__")).get());
}

std::string TypeKeyOf(int32_t type_index) {
  const TVMFFIByteArray& key = TVMFFIGetTypeInfo(type_index)->type_key;
  return std::string(key.data, key.size);
}

// The type key of the class or, where that is not registered, of the object itself.
std::string DescribeWrapper(PyObject* value) {
  Ref info = Ref::Steal(
      PyObject_CallOneArg(hooks.type_info_of_class, reinterpret_cast<PyObject*>(Py_TYPE(value))));
  if (info && info.get() != Py_None) {
    return TextOf(Ref::Steal(PyObject_GetAttrString(info.get(), "type_key")).get());
  }
  PassOver();
  CriticalSection section(value);
  TVMFFIObject* h = Engine::Use(AsWrapper(value));
  return h != nullptr ? TypeKeyOf(h->type_index) : QualifiedName(value);
}

}  // namespace

std::string NumberText(Py_ssize_t number) { return std::to_string(number); }

std::string TextOf(PyObject* text) {
  Py_ssize_t size;
  const char* data = text != nullptr ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
  if (data == nullptr) {
    PassOver();
    return "?";
  }
  return std::string(data, static_cast<size_t>(size));
}

std::string ReprOf(PyObject* value) { return TextOf(Ref::Steal(PyObject_Repr(value)).get()); }

std::string TypeName(PyObject* value) {
  const char* name = Py_TYPE(value)->tp_name;
  const char* dot = std::strrchr(name, '.');
  return dot != nullptr ? dot + 1 : name;
}

std::string Describe(PyObject* value) {
  if (value == Py_None) return "None";
  if (PyBool_Check(value)) return "bool";
  if (PyLong_Check(value)) return "int";
  if (PyFloat_Check(value)) return "float";
  if (PyUnicode_Check(value)) return "str";
  if (PyBytes_Check(value) || PyByteArray_Check(value)) return "bytes";
  return IsWrapper(value) ? DescribeWrapper(value) : QualifiedName(value);
}

Outcome DoneOwned(TVMFFIAny value, Result* result) {
  result->value = ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(&value);
  return Outcome::kDone;
}

Outcome Mismatch(Result* result, Parts message) {
  result->message = Join(message);
  return Outcome::kMismatch;
}

Outcome Prefixed(Result* result, Parts prefix) {
  result->message.insert(0, Join(prefix));
  return Outcome::kMismatch;
}

Outcome Extended(Result* result, Parts rest) {
  result->message += Join(rest);
  return Outcome::kMismatch;
}

Outcome Unexpected(const Node* node, PyObject* value, Result* result) {
  return Mismatch(result, {"expected ", TextOf(node->hint), ", got ", Describe(value)});
}

bool IsOrdinaryError() {
  return PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_RecursionError);
}

std::string TakeErrorText() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Ref held_type = Ref::Steal(type), exc = Ref::Steal(value), tb = Ref::Steal(traceback);
  return exc ? TextOf(Ref::Steal(PyObject_Str(exc.get())).get()) : "?";
}

Outcome PackingFailed(const Node* node, PyObject* value, Result* result) {
  if (!IsOrdinaryError()) return Outcome::kRaised;
  std::string why = TakeErrorText();
  Unexpected(node, value, result);
  return Extended(result, {": ", why});
}

Outcome CallFailed(const char* what, PyObject* value, Result* result) {
  if (!IsOrdinaryError()) return Outcome::kRaised;
  std::string why = TakeErrorText();
  return Mismatch(result, {what, " failed for ", QualifiedName(value), ": ", why});
}

}  // namespace tether_py::schema
