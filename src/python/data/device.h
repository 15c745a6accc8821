// SPDX-License-Identifier: Apache-2.0
// Devices as Python values.
#ifndef TETHER_PYTHON_DATA_DEVICE_H_
#define TETHER_PYTHON_DATA_DEVICE_H_

#include "python/convert/convert.h"

namespace tether_py {

int InitDevice(PyObject* module);
// The class of devices that come from C++, borrowed.
PyObject* DeviceClass();
PyObject* FromDevice(DLDevice device);
bool IsDevice(PyObject* obj);
bool SetDevice(PyObject* obj, TVMFFIAny* out, Arguments* args);
// The type and the index of a device, as numbers. False with an error set.
bool ParseDeviceNumbers(PyObject* type, PyObject* id, int32_t* type_out, int32_t* id_out);
// By __dlpack_device__().
bool SetDeviceProtocol(PyObject* obj, TVMFFIAny* out, Arguments* args);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_DEVICE_H_
