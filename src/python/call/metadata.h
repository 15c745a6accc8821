// SPDX-License-Identifier: Apache-2.0
// What is known about a function besides its code.
#ifndef TETHER_PYTHON_CALL_METADATA_H_
#define TETHER_PYTHON_CALL_METADATA_H_

#include <tvm/ffi/string.h>

#include "python/wrap/wrapper.h"

namespace tether_py {

// What FunctionWrapper says about a function:
//   origin      the name of a global function; for others (name, doc, metadata as JSON), and for
//               those of a module also the file, "" if there is none
//   parameters  (names, defaults), two tuples of one length; MISSING where there is no default.
//               NULL if the registration does not name them.

// Reads what a registration says about a function, a JSON object. Metadata that cannot be read is
// ignored. `takes_object`: of a method, whose first parameter has no name there.
void ReadMetadata(FunctionWrapper* w, const ffi::String& metadata, bool takes_object);
// Says where a function comes from, unless that is known.
void SetOrigin(FunctionWrapper* w, PyObject* origin);
// Sets what the registration of a type's method says about its function. Metadata that cannot be
// read is ignored.
void ApplyMetadata(PyObject* function, const TVMFFITypeInfo& type, const TVMFFIMethodInfo& info);

int InitMetadata(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_METADATA_H_
