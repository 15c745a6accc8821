// SPDX-License-Identifier: Apache-2.0
// Exceptions as text. No error is left set, whatever their methods do.
#include "python/convert/exception_text.h"

#include "python/base/python_api.h"
#include "python/base/ref.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

std::string Utf8OrLess(PyObject* text) {
  TVMFFIByteArray bytes;
  if (text == nullptr || !PyUnicode_Check(text)) return std::string();
  if (Utf8(text, &bytes)) return std::string(bytes.data, bytes.size);
  PassOver();  // lone surrogates
  Ref escaped = Ref::Steal(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
  if (escaped) {
    return std::string(PyBytes_AS_STRING(escaped.get()),
                       static_cast<size_t>(PyBytes_GET_SIZE(escaped.get())));
  }
  PassOver();
  return std::string();
}

PyObject* DecodeText(std::string_view text) {
  auto size = static_cast<Py_ssize_t>(text.size());
  PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), size, nullptr);
  if (decoded != nullptr || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return decoded;
  PyErr_Clear();
  // Of a copy: the error handler may be Python code, which may do anything to the error.
  Ref copy = Ref::Steal(PyBytes_FromStringAndSize(text.data(), size));
  if (!copy) return nullptr;
  return PyUnicode_DecodeUTF8(PyBytes_AS_STRING(copy.get()), size, "backslashreplace");
}

std::string KindOf(PyObject* exc) {
  PyObject* name = nullptr;
  if (PyDict_Check(hooks.error_kinds)) {
    name = PyDict_GetItemWithError(hooks.error_kinds, reinterpret_cast<PyObject*>(Py_TYPE(exc)));
  }
  PassOver();
  return name != nullptr && PyUnicode_Check(name) ? Utf8OrLess(name) : "RuntimeError";
}

std::string MessageOf(PyObject* exc) {
  Ref message = Ref::Steal(PyObject_Str(exc));
  if (message) return Utf8OrLess(message.get());
  PassOver();
  return "<exception str() failed>";
}

}  // namespace tether_py
