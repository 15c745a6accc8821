// SPDX-License-Identifier: Apache-2.0
// The class Function: what Python sees of a function besides calls.
//
// Shared state: the fields of a FunctionWrapper.
//   release_gil, origin,        set in the critical section of the wrapper (SetReleaseGil,
//     parameters                SetOrigin, SetParameters); calls read them without it
//   vectorcall, call_with_self  set with release_gil and parameters, in the same section; calls
//                               read them without it, and may find either value meanwhile
//   walks                       set once, by the thread that finds a new function by name
//                               (WrapGlobal)
//   parked                      used in the critical section of the wrapper (KeepWhatCallsUse),
//                               and when it dies
//   dict                        CPython's, as that of any object
#include "python/call/function_class.h"

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/call/from_symbol.h"
#include "python/call/function.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

PyObject* GetReleaseGil(PyObject* self, void*) {
  return PyBool_FromLong(reinterpret_cast<FunctionWrapper*>(self)->release_gil);
}

int SetReleaseGilAttribute(PyObject* self, PyObject* value, void*) {
  if (value == nullptr) {
    PyErr_SetString(PyExc_AttributeError, "release_gil cannot be deleted");
    return -1;
  }
  int flag = PyObject_IsTrue(value);
  if (flag < 0) return -1;
  SetReleaseGil(reinterpret_cast<FunctionWrapper*>(self), flag != 0);
  return 0;
}

// The closure of these is the name of the attribute.
PyObject* GetDescribed(PyObject* self, void* name) {
  const char* attribute = static_cast<const char*>(name);
  Ref set = FindInInstance(self, &reinterpret_cast<FunctionWrapper*>(self)->dict, attribute);
  if (set || PyErr_Occurred()) return set.release();
  return Describe(self, attribute);
}

int SetDescribed(PyObject* self, PyObject* value, void* name) {
  return SetInInstance(self, static_cast<const char*>(name), value);
}

PyObject* ReprFunction(PyObject* self) { return Describe(self, "__repr__"); }

PyMethodDef function_methods[] = {
    {"__from_extern_c__", EntryOfAnyKind<FromExternC>(), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "A function from the address of a C function of the safe-call convention."},
    {"__from_mlir_packed_safe_call__", EntryOfAnyKind<FromMLIR>(),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "A function from the address of a C function of MLIR's packed convention."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef function_getset[] = {
    {"release_gil", Entry<GetReleaseGil>, Entry<SetReleaseGilAttribute>,
     "Whether other Python threads run during a call; turn it off for short functions.", nullptr},
    {"__name__", Entry<GetDescribed>, Entry<SetDescribed>, nullptr, const_cast<char*>("__name__")},
    {"__qualname__", Entry<GetDescribed>, Entry<SetDescribed>, nullptr,
     const_cast<char*>("__qualname__")},
    {"__text_signature__", Entry<GetDescribed>, Entry<SetDescribed>, nullptr,
     const_cast<char*>("__text_signature__")},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef function_members[] = {
    {"_origin", T_OBJECT, offsetof(FunctionWrapper, origin), READONLY, nullptr},
    {"_parameters", T_OBJECT, offsetof(FunctionWrapper, parameters), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(FunctionWrapper, dict), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionWrapper, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot function_slots[] = {
    {Py_tp_doc, const_cast<char*>("A function that any language may have made.\n\n"
                                  ">>> import tvm_ffi\n"
                                  ">>> tvm_ffi.convert(lambda x: x + 1)(1)\n"
                                  "2\n")},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, Slot<ReprFunction>()},
    {Py_tp_methods, function_methods},
    {Py_tp_getset, function_getset},
    {Py_tp_members, function_members},
    {0, nullptr}};

PyType_Spec function_spec = {"tvm_ffi.core.Function", sizeof(FunctionWrapper), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
                             function_slots};

}  // namespace

PyObject* Describe(PyObject* described, const char* attribute) {
  return PyObject_CallFunction(hooks.describe, "Os", described, attribute);
}

int InitFunctionType(PyObject* module) {
  types.function = AddType(module, &function_spec, types.object);
  if (types.function == nullptr) return -1;
  SetClassOfIndex(TypeIndex::kTVMFFIFunction, types.function);
  return 0;
}

}  // namespace tether_py
