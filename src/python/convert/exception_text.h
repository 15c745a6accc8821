// SPDX-License-Identifier: Apache-2.0
// What an exception says of itself: its kind and message, as text.
#ifndef TETHER_PYTHON_CONVERT_EXCEPTION_TEXT_H_
#define TETHER_PYTHON_CONVERT_EXCEPTION_TEXT_H_

#include <Python.h>

#include <string>
#include <string_view>

namespace tether_py {

// The kind an exception class crosses as: exact matches only, everything else is a RuntimeError.
std::string KindOf(PyObject* exc);
std::string MessageOf(PyObject* exc);

// Text as UTF-8, escaped if need be; empty where even that fails. No error is left set.
std::string Utf8OrLess(PyObject* text);
// And back: what is not UTF-8 is escaped. NULL with an error set.
PyObject* DecodeText(std::string_view text);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_EXCEPTION_TEXT_H_
