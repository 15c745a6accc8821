// SPDX-License-Identifier: Apache-2.0
// What the files for Array and List share.
#ifndef TETHER_PYTHON_DATA_SEQUENCES_H_
#define TETHER_PYTHON_DATA_SEQUENCES_H_

#include "python/data/container_base.h"

namespace tether_py {

// The elements behind a wrapper of Array or List, to be used in its critical section. NULL with an
// error set.
inline TVMFFISeqCell* UseSeq(PyObject* self) {
  TVMFFIObject* h = UseAs(self, ffi::TypeIndex::kTVMFFIArray, ffi::TypeIndex::kTVMFFIList);
  return h != nullptr ? reinterpret_cast<TVMFFISeqCell*>(h + 1) : nullptr;
}

// Always returns NULL.
inline PyObject* IndexError(Py_ssize_t size, Py_ssize_t index) {
  return PyErr_Format(PyExc_IndexError, "Index out of range. size: %zd, got index %zd", size,
                      index);
}

// Array(iterable) and List(iterable). A failure leaves an empty object.
PyObject* SeqFill(PyObject* self, PyObject* items, bool is_list);

int InitSequenceTypes(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_SEQUENCES_H_
