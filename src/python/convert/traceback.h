// SPDX-License-Identifier: Apache-2.0
// Tracebacks as text and back. A text has one frame a line, most recent call first.
#ifndef TETHER_PYTHON_CONVERT_TRACEBACK_H_
#define TETHER_PYTHON_CONVERT_TRACEBACK_H_

#include <Python.h>

#include <string>

namespace tether_py {

// Makes `text` the frames of the traceback. It comes with the text written when the exception was
// last raised, which stays if the traceback has grown from that one. Runs no Python code: a
// RecursionError must get through.
void WriteFrames(PyObject* traceback, std::string* text);

// Puts the frames that a str names around the traceback of an exception. `known`: how many bytes
// of the whole text are in the traceback already; `size`: those of this one. False with an error
// set.
bool AppendFrames(PyObject* exc, PyObject* text, size_t known, size_t size);

// Whether `function` is AppendFrames as Python has it.
bool IsAppendFrames(PyObject* function);

int InitTracebacks(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_TRACEBACK_H_
