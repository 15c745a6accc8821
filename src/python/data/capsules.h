// SPDX-License-Identifier: Apache-2.0
// Capsules, in which managed tensors of DLPack travel.
#ifndef TETHER_PYTHON_DATA_CAPSULES_H_
#define TETHER_PYTHON_DATA_CAPSULES_H_

#include "python/data/managed_tensor.h"

namespace tether_py {

extern PyObject* dlpack_name;  // "__dlpack__"

// From a capsule of either kind; `wrong_kind` is raised for anything else.
TVMFFIObject* ImportCapsule(PyObject* capsule, const ImportOptions& options, PyObject* wrong_kind,
                            const char* expectation);
// From the capsule that obj.__dlpack__() returns.
TVMFFIObject* ImportFromMethod(PyObject* obj, const ImportOptions& options);

// The names of capsules. A consumer renames the one it takes.
inline constexpr const char* kCapsule = "dltensor";
inline constexpr const char* kVersionedCapsule = "dltensor_versioned";
inline constexpr const char* kUsedCapsule = "used_dltensor";
inline constexpr const char* kUsedVersionedCapsule = "used_dltensor_versioned";
// Destructors of capsules: they free a tensor that nobody consumed.
void DropCapsule(PyObject* capsule);
void DropVersionedCapsule(PyObject* capsule);

int InitCapsules();

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_CAPSULES_H_
