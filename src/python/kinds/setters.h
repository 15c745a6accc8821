// SPDX-License-Identifier: Apache-2.0
// One setter per kind of value. Those of tensors, dtypes, devices, functions and wrappers are with
// the code for their data.
#ifndef TETHER_PYTHON_KINDS_SETTERS_H_
#define TETHER_PYTHON_KINDS_SETTERS_H_

#include "python/convert/convert.h"

namespace tether_py {

// set_scalars.cc
bool SetNone(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetBool(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetInt(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetIntegral(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetFloat(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetStr(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetBytes(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetByteArray(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetIntProtocol(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetFloatProtocol(PyObject* obj, TVMFFIAny* out, Arguments* args);

// set_containers.cc
bool SetSequence(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetDict(PyObject* obj, TVMFFIAny* out, Arguments* args);

// set_objects.cc
bool SetContainer(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetRValue(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetFFIObject(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetConvertible(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetNative(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetText(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetValueProtocol(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetException(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetOpaque(PyObject* obj, TVMFFIAny* out, Arguments* args);

// set_pointers.cc
bool SetVoidPointer(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetOpaquePointer(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetByPointerHandler(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetCudaStream(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetCudaDriverStream(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetTorchStream(PyObject* obj, TVMFFIAny* out, Arguments* args);

// core._OPAQUE_PTR_HANDLERS: from a class to what returns the address for its instances.
extern PyObject* pointer_handlers;
// Whether the exact class of a value has one: 1 or 0, or -1 with an error set.
int HasPointerHandler(PyObject* obj);

}  // namespace tether_py
#endif  // TETHER_PYTHON_KINDS_SETTERS_H_
