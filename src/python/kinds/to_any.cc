// SPDX-License-Identifier: Apache-2.0
// Python -> Any. The setter of a value is found once per exact type (kinds.h) and kept in the
// record of the type (class_records.h).
#include "python/kinds/to_any.h"

#include "python/base/entry.h"
#include "python/convert/convert.h"
#include "python/kinds/kinds.h"
#include "python/kinds/setters.h"

namespace tether_py {

// clang-format off
// ---- shared variables of this folder, and what protects each ----
//
// kinds.cc              constants only.
// set_pointers.cc       pointer_handlers: a dict, set once when the module is made.
// clang-format on

bool FindSetter(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  PyTypeObject* cls = Py_TYPE(obj);
  Setter setter = ResolveSetter(obj);
  if (setter == nullptr) return false;
  // Resolving, and making a record too, may run Python code, which may give the object another
  // class.
  if (Py_TYPE(obj) == cls) {
    ClassRecord* record = RecordOf(cls);
    if (record != nullptr && Py_TYPE(obj) == cls) {
      record->setter.store(setter, std::memory_order_relaxed);
    }
  }
  return setter(obj, out, args);
}

TVM_FFI_NO_INLINE bool ToAnySlow(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  const ClassRecord* record = FindRecordSlow(Py_TYPE(obj));
  return (record != nullptr ? record->SetterNow() : FindSetter)(obj, out, args);
}

namespace {

PyObject* PrintDebugInfo(PyObject*, PyObject*) {
  PySys_WriteStdout("TVMFFIPyGetArgDispatchMapSize: %zd\n", static_cast<Py_ssize_t>(NumRecords()));
  Py_RETURN_NONE;
}

PyObject* ConvertToOpaque(PyObject*, PyObject* obj) {
  Conversion args;
  TVMFFIAny view;
  if (!SetOpaque(obj, &view, &args)) return nullptr;
  // Handed out as itself, not as the value it holds.
  return WrapBorrowed(view.v_obj);
}

PyMethodDef functions[] = {{"_print_debug_info", Entry<PrintDebugInfo>, METH_NOARGS, nullptr},
                           {"_convert_to_opaque_object", Entry<ConvertToOpaque>, METH_O,
                            "An OpaquePyObject that holds the given object."},
                           {"_kind_for_convert", Entry<KindForConvert>, METH_O,
                            "The name of the kind that decides what convert() makes of a value."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitKinds(PyObject* module) {
  pointer_handlers = PyDict_New();
  if (pointer_handlers == nullptr) return -1;
  if (PyModule_AddObjectRef(module, "_OPAQUE_PTR_HANDLERS", pointer_handlers) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace tether_py
