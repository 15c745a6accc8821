// SPDX-License-Identifier: Apache-2.0
// The names of devices, and devices as text.
#ifndef TETHER_PYTHON_DATA_DEVICE_NAMES_H_
#define TETHER_PYTHON_DATA_DEVICE_NAMES_H_

#include <tvm/ffi/c_api.h>

#include "python/base/compat.h"

namespace tether_py {

// Of a device type; NULL if it has none.
const char* DeviceNameOf(int32_t code);
// "cuda", "cuda:1"; what follows a blank is ignored. False with an error set.
bool ParseDevice(PyObject* text, DLDevice* out, bool* has_index);
// Gives the class the tables from name to type and back, as dicts. 0, or -1 with an error set.
int AddDeviceNames(PyTypeObject* cls);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_DEVICE_NAMES_H_
