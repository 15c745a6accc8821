// SPDX-License-Identifier: Apache-2.0
// What an exception says of itself: its kind, message and frames, as text.
#ifndef TETHER_PYTHON_CONVERT_EXCEPTION_TEXT_H_
#define TETHER_PYTHON_CONVERT_EXCEPTION_TEXT_H_

#include <Python.h>

#include <string>

namespace tether_py {

// The kind an exception class crosses as: exact matches only, everything else is a RuntimeError.
std::string KindOf(PyObject* exc);
std::string MessageOf(PyObject* exc);

// Makes `text` the frames of the traceback, most recent call first. It comes with the text written
// when the exception was last raised, which stays if the traceback has grown from that one. Runs no
// Python code: a RecursionError must get through.
void WriteFrames(PyObject* traceback, std::string* text);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_EXCEPTION_TEXT_H_
