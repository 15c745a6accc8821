// SPDX-License-Identifier: Apache-2.0
// Exceptions as text. No error is left set, whatever their methods do.
#include "python/convert/exception_text.h"

#include <algorithm>
#include <climits>
#include <utility>
#include <vector>

#include "python/base/python_api.h"
#include "python/base/ref.h"
#include "python/convert/convert.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

namespace {

// Text as UTF-8, escaped if need be; empty where even that fails. No error is left set.
std::string Utf8OrLess(PyObject* text) {
  TVMFFIByteArray bytes;
  if (text == nullptr || !PyUnicode_Check(text)) return std::string();
  if (Utf8(text, &bytes)) return std::string(bytes.data, bytes.size);
  PyErr_Clear();  // lone surrogates
  Ref escaped = Ref::Steal(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
  if (escaped) {
    return std::string(PyBytes_AS_STRING(escaped.get()),
                       static_cast<size_t>(PyBytes_GET_SIZE(escaped.get())));
  }
  PyErr_Clear();
  return std::string();
}

// A traceback entry with this number in place of an instruction begins the frames that a text of
// `size` bytes names: what it and those behind it stand for need not be written again. Keep in step
// with _with_append_backtrace in error.py.
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
  PyErr_Clear();
  return number > 0 && number <= INT_MAX ? static_cast<int>(number) : 0;
}

}  // namespace

std::string KindOf(PyObject* exc) {
  PyObject* name = nullptr;
  if (PyDict_Check(hooks.error_kinds)) {
    name = PyDict_GetItemWithError(hooks.error_kinds, reinterpret_cast<PyObject*>(Py_TYPE(exc)));
  }
  PyErr_Clear();
  return name != nullptr && PyUnicode_Check(name) ? Utf8OrLess(name) : "RuntimeError";
}

std::string MessageOf(PyObject* exc) {
  Ref message = Ref::Steal(PyObject_Str(exc));
  if (message) return Utf8OrLess(message.get());
  PyErr_Clear();
  return "<exception str() failed>";
}

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

}  // namespace tether_py
