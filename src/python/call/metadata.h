// SPDX-License-Identifier: Apache-2.0
// Global functions, and what is known about a function besides its code.
#ifndef TETHER_PYTHON_CALL_METADATA_H_
#define TETHER_PYTHON_CALL_METADATA_H_

#include "python/wrap/wrapper.h"

namespace tether_py {

// What FunctionWrapper says about a function:
//   origin      the name of a global function; for others (name, doc, metadata as JSON)
//   parameters  (names, defaults), two tuples of one length; MISSING where there is no default.
//               NULL if the registration does not name them.

// Sets what the registration of a method says about its function. What cannot be read says nothing.
// `takes_object`: the first parameter is the object, which has no name in the metadata.
void ApplyMetadata(PyObject* function, const TVMFFIMethodInfo& info, bool takes_object);

int InitGlobalFunctions(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_METADATA_H_
