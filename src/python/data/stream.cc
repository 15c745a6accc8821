// SPDX-License-Identifier: Apache-2.0
// The stream that is current on a device.
//
// Shared state: none; libtvm_ffi keeps the streams, each thread its own.
#include "python/data/stream.h"
#include "python/base/entry.h"

#include <tvm/ffi/extra/c_env_api.h>

#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/data/device.h"

namespace tether_py {

namespace {

PyObject* EnvSetCurrentStream(PyObject*, PyObject* args) {
  PyObject *type, *id, *stream;
  if (!PyArg_ParseTuple(args, "OOO:_env_set_current_stream", &type, &id, &stream)) return nullptr;
  int32_t device_type, device_id;
  if (!ParseDeviceNumbers(type, id, &device_type, &device_id)) return nullptr;
  if (!PyIndex_Check(stream)) {
    return PyErr_Format(PyExc_TypeError, "an integer is required as stream, got %s",
                        Py_TYPE(stream)->tp_name);
  }
  Ref address = Ref::Steal(PyNumber_Index(stream));
  if (!address) return nullptr;
  size_t value = PyLong_AsSize_t(address.get());
  if (value == static_cast<size_t>(-1) && PyErr_Occurred()) {
    PyErr_Clear();
    Ref text = TextOfInt(address.get());
    if (text) PyErr_Format(PyExc_OverflowError, "stream %U is not an address", text.get());
    return nullptr;
  }
  TVMFFIStreamHandle previous = nullptr;
  int code = TVMFFIEnvSetStream(device_type, device_id, reinterpret_cast<void*>(value), &previous);
  return code == 0 ? PyLong_FromVoidPtr(previous) : RaiseFromCall(code);
}

PyObject* EnvGetCurrentStream(PyObject*, PyObject* args) {
  PyObject *type, *id;
  if (!PyArg_ParseTuple(args, "OO:_env_get_current_stream", &type, &id)) return nullptr;
  int32_t device_type, device_id;
  if (!ParseDeviceNumbers(type, id, &device_type, &device_id)) return nullptr;
  return PyLong_FromVoidPtr(TVMFFIEnvGetStream(device_type, device_id));
}

PyMethodDef stream_functions[] = {
    {"_env_set_current_stream", Entry<EnvSetCurrentStream>, METH_VARARGS,
     "Make a stream current on a device, in this thread; returns the one before."},
    {"_env_get_current_stream", Entry<EnvGetCurrentStream>, METH_VARARGS,
     "The stream that is current on a device, in this thread; 0 when there is none."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitStreams(PyObject* module) { return PyModule_AddFunctions(module, stream_functions); }

}  // namespace tether_py
