// SPDX-License-Identifier: Apache-2.0
// What the wrappers of Array, List, Map and Dict share: their base class.
#include "python/data/container_base.h"

#include "python/base/python_api.h"
#include "python/data/function_keys.h"
#include "python/data/maps.h"
#include "python/data/sequences.h"

namespace tether_py {

namespace {

PyType_Slot container_slots[] = {{Py_tp_doc, const_cast<char*>("Base of the container wrappers.")},
                                 {0, nullptr}};

PyType_Spec container_spec = {"tvm_ffi.core.CContainerBase", sizeof(Wrapper), 0, kContainerFlags,
                              container_slots};

}  // namespace

int InitContainerTypes(PyObject* module) {
  types.container = AddType(module, &container_spec, types.object);
  if (types.container == nullptr) return -1;
  if (InitSequenceTypes(module) < 0 || InitMapTypes(module) < 0) return -1;
  return RegisterFunctionKeys();
}

}  // namespace tether_py
