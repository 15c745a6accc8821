// SPDX-License-Identifier: Apache-2.0
// Tracebacks as text and back.
#include "python/convert/traceback.h"

#include <algorithm>
#include <climits>
#include <utility>
#include <vector>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/exception_text.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

namespace {

// A traceback entry with this number in place of an instruction begins the frames that a text of
// `size` bytes names: these frames are already in the text, and are not written again.
int MarkOf(size_t size) {
  return -2 - static_cast<int>(std::min(size, static_cast<size_t>(INT_MAX - 2)));
}

int LineOf(PyTracebackObject* entry) {
  if (entry->tb_lineno > 0) return entry->tb_lineno;
  Ref line = Ref::Steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(entry), "tb_lineno"));
  int overflow = 0;
  long number = line && PyLong_Check(line.get())  // NOLINT(google-runtime-int): as Python has it
                    ? PyLong_AsLongAndOverflow(line.get(), &overflow)
                    : 0;
  PassOver();
  return number > 0 && number <= INT_MAX ? static_cast<int>(number) : 0;
}

// (frame, line) of each place that the text names. The same path through C++ gives the same text,
// so the places are cached.
Ref PlacesIn(PyObject* text) {
  Ref places = FindInDict(hooks.known_places, text);
  if (places || PyErr_Occurred()) return places;
  places = Ref::Steal(PyObject_CallOneArg(hooks.find_places, text));
  if (places && !PyTuple_Check(places.get())) {
    PyErr_Format(PyExc_TypeError, "expected a tuple, got %s", Py_TYPE(places.get())->tp_name);
    return nullptr;
  }
  return places;
}

// A traceback entry in front of `next`. Null with an error set.
Ref NewEntry(const Ref& next, PyObject* place, int instruction) {
  if (!PyTuple_Check(place) || PyTuple_GET_SIZE(place) != 2) {
    PyErr_SetString(PyExc_TypeError, "expected a frame and a line");
    return nullptr;
  }
  Ref number = Ref::Steal(PyLong_FromLong(instruction));
  if (!number) return nullptr;
  return Ref::Steal(PyObject_CallFunctionObjArgs(
      reinterpret_cast<PyObject*>(&PyTraceBack_Type), next ? next.get() : Py_None,
      PyTuple_GET_ITEM(place, 0), number.get(), PyTuple_GET_ITEM(place, 1), nullptr));
}

PyObject* TracebackText(PyObject*, PyObject* traceback) {
  return Guarded([&] {
    std::string text;
    WriteFrames(traceback, &text);
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
  });
}

PyObject* WithAppendBacktrace(PyObject*, PyObject* args) {
  PyObject *exc, *text;
  Py_ssize_t known = 0;
  TVMFFIByteArray bytes;
  if (!PyArg_ParseTuple(args, "OU|n", &exc, &text, &known)) return nullptr;
  if (!PyExceptionInstance_Check(exc)) {
    return PyErr_Format(PyExc_TypeError, "expected an exception, got %s", Py_TYPE(exc)->tp_name);
  }
  if (!Utf8(text, &bytes)) return nullptr;
  size_t before = static_cast<size_t>(std::max<Py_ssize_t>(known, 0));
  return AppendFrames(exc, text, before, bytes.size) ? Py_NewRef(exc) : nullptr;
}

PyMethodDef traceback_functions[] = {
    {"_traceback_text", Entry<TracebackText>, METH_O, "Frames as text, most recent call first."},
    {"_with_append_backtrace", Entry<WithAppendBacktrace>, METH_VARARGS,
     "Put the frames of a text, most recent call first, around the exception's traceback."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void WriteFrames(PyObject* traceback, std::string* text) {
  std::vector<Ref> entries;
  int mark = MarkOf(text->size());
  bool has_grown = false;
  for (Ref at = Ref::Borrow(traceback); at && PyTraceBack_Check(at.get()) && !has_grown;) {
    auto* entry = reinterpret_cast<PyTracebackObject*>(at.get());
    has_grown = entry->tb_lasti == mark;
    Ref next = Ref::Borrow(reinterpret_cast<PyObject*>(entry->tb_next));
    if (!has_grown) entries.push_back(std::move(at));
    at = std::move(next);
  }
  if (!has_grown) text->clear();
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    auto* entry = reinterpret_cast<PyTracebackObject*>(it->get());
    Ref code = Ref::Steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(entry->tb_frame)));
    auto* of_frame = reinterpret_cast<PyCodeObject*>(code.get());
    text->append("  File \"").append(Utf8OrLess(of_frame->co_filename)).append("\", line ");
    text->append(std::to_string(LineOf(entry))).append(", in ");
    text->append(Utf8OrLess(of_frame->co_name)).append("\n");
  }
}

bool AppendFrames(PyObject* exc, PyObject* text, size_t known, size_t size) {
  Ref places = PlacesIn(text);
  if (!places) return false;
  Ref traceback = Ref::Steal(PyException_GetTraceback(exc));
  bool is_whole = known > 0 || !traceback;
  Py_ssize_t count = PyTuple_GET_SIZE(places.get());
  if (count == 0) return true;
  for (Py_ssize_t i = 0; i < count; ++i) {
    int instruction = i == count - 1 && is_whole ? MarkOf(known + size) : -1;
    traceback = NewEntry(traceback, PyTuple_GET_ITEM(places.get(), i), instruction);
    if (!traceback) return false;
  }
  return PyException_SetTraceback(exc, traceback.get()) == 0;
}

bool IsAppendFrames(PyObject* function) {
  return PyCFunction_Check(function) &&
         PyCFunction_GetFunction(function) == Entry<WithAppendBacktrace>;
}

int InitTracebacks(PyObject* module) { return PyModule_AddFunctions(module, traceback_functions); }

}  // namespace tether_py
