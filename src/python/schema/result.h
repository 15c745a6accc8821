// SPDX-License-Identifier: Apache-2.0
// The result of a conversion: a value, a mismatch with its message, or a Python exception.
#ifndef TETHER_PYTHON_SCHEMA_RESULT_H_
#define TETHER_PYTHON_SCHEMA_RESULT_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "python/schema/node.h"

namespace tether_py::schema {

enum class Outcome : uint8_t {
  kDone,
  kMismatch,  // with a message
  kRaised,    // with a Python error set
};

struct Result {
  ffi::Any value;
  std::string message;
};

Outcome DoneOwned(TVMFFIAny value, Result* result);
inline Outcome Done(ffi::Any value, Result* result) {
  return DoneOwned(ffi::details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(value)), result);
}

// ---- mismatches and their messages ----

// A text in parts, put together.
using Parts = std::initializer_list<std::string_view>;

Outcome Mismatch(Result* result, Parts message);
// Adds to the message: in front of it where it happened, or at its end.
Outcome Prefixed(Result* result, Parts prefix);
Outcome Extended(Result* result, Parts rest);
// "expected X, got Y"
Outcome Unexpected(const Node* node, PyObject* value, Result* result);
// The pending exception as "expected X, got Y: why".
Outcome PackingFailed(const Node* node, PyObject* value, Result* result);
// The pending exception as "int() failed for Y: why".
Outcome CallFailed(const char* what, PyObject* value, Result* result);

// Whether the pending exception may be reported as a mismatch: an ordinary one, neither an
// interrupt nor a RecursionError.
bool IsOrdinaryError();
// Takes the pending exception away and returns its text.
std::string TakeErrorText();

// ---- texts; none of them leaves an error behind ----

std::string NumberText(Py_ssize_t number);
// Of a str.
std::string TextOf(PyObject* text);
std::string ReprOf(PyObject* value);
// type(value).__name__
std::string TypeName(PyObject* value);
// What messages call a value of that type.
std::string Describe(PyObject* value);

}  // namespace tether_py::schema
#endif  // TETHER_PYTHON_SCHEMA_RESULT_H_
