// SPDX-License-Identifier: Apache-2.0
// The Python type _TypeConverter, and conversion for fields.
#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/exceptions.h"
#include "python/schema/convert_value.h"
#include "python/schema/schema.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

using schema::Node;
using schema::Outcome;
using schema::Result;

namespace {

// Runs a conversion; C++ exceptions become Python ones.
template <typename F>
Outcome Run(const F& convert) {
  Outcome outcome = Outcome::kRaised;
  Ref done = Ref::Steal(Guarded([&]() -> PyObject* {
    outcome = convert();
    return outcome != Outcome::kRaised ? Py_NewRef(Py_None) : nullptr;
  }));
  if (!done) outcome = Outcome::kRaised;
  return outcome;
}

PyObject* RaiseConvertError(const std::string& message) {
  Ref text = Ref::Steal(PyUnicode_DecodeUTF8(
      message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
  if (text) PyErr_SetObject(hooks.convert_error_class, text.get());
  return nullptr;
}

PyObject* ConvertMethod(PyObject* self, PyObject* value) {
  Result result;
  Outcome outcome =
      Run([&] { return schema::Convert(reinterpret_cast<Node*>(self), value, &result); });
  if (outcome == Outcome::kRaised) return nullptr;
  if (outcome == Outcome::kMismatch) return RaiseConvertError(result.message);
  return MakeCAny(std::move(result.value));
}

PyObject* NewNode(PyTypeObject* type, PyObject* py_args, PyObject* kwargs) {
  static const char* names[] = {"kind", "hint", "target", "args", "member", nullptr};
  const char* origin;
  int target;
  PyObject *hint, *args, *member = Py_None;
  if (!PyArg_ParseTupleAndKeywords(py_args, kwargs, "sUiO|O", const_cast<char**>(names), &origin,
                                   &hint, &target, &args, &member)) {
    return nullptr;
  }
  return schema::MakeNode(type, origin, hint, target, args, member);
}

int TraverseNode(PyObject* self, visitproc visit, void* arg) {
  auto* node = reinterpret_cast<Node*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(node->args);
  Py_VISIT(node->member);
  return 0;
}

void DeallocNode(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  auto* node = reinterpret_cast<Node*>(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(node->hint);
  Py_CLEAR(node->args);
  Py_CLEAR(node->member);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef node_methods[] = {{"convert", Entry<ConvertMethod>, METH_O,
                               "Convert a value, giving a CAny; raises _ConvertError."},
                              {nullptr, nullptr, 0, nullptr}};
PyType_Slot node_slots[] = {{Py_tp_doc, const_cast<char*>("A TypeSchema, compiled.")},
                            {Py_tp_new, Slot<NewNode>()},
                            {Py_tp_traverse, reinterpret_cast<void*>(TraverseNode)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(DeallocNode)},
                            {Py_tp_methods, node_methods},
                            {0, nullptr}};
PyType_Spec node_spec = {"tvm_ffi.core._TypeConverter", sizeof(Node), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, node_slots};

}  // namespace

int ConvertForField(void* converter, const TVMFFIAny* in, TVMFFIAny* out) {
  auto* node = static_cast<Node*>(converter);
  // Most values are what the field declares, and copying those needs no Python.
  if (schema::IsNative(node, in->type_index)) return TVMFFIAnyViewToOwnedAny(in, out);
  UnwindStop stop;
  GILGuard gil;
  if (!gil) {
    TVMFFIErrorSetRaisedFromCStr("RuntimeError",
                                 "a field was set while the interpreter shuts down");
    return -1;
  }
  if (schema::FitsAsIs(node, *in)) return TVMFFIAnyViewToOwnedAny(in, out);
  ErrorAside of_others;  // a destructor of C++ may set a field while an exception is on its way
  Result result;
  Outcome outcome = Run([&] { return schema::ConvertCell(node, *in, &result); });
  if (outcome == Outcome::kDone) {
    *out = ffi::details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(result.value));
    return 0;
  }
  if (outcome == Outcome::kRaised) {
    RaiseToCaller();
  } else {
    TVMFFIErrorSetRaisedFromCStr("TypeError", result.message.c_str());
  }
  return -1;
}

bool KeepsValuesOf(PyObject* converter, int32_t type_index) {
  return schema::IsNative(reinterpret_cast<Node*>(converter), type_index);
}

int InitTypeConverter(PyObject* module) {
  types.converter = AddType(module, &node_spec, nullptr);
  return types.converter != nullptr ? 0 : -1;
}

}  // namespace tether_py
