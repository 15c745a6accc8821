// SPDX-License-Identifier: Apache-2.0
// Devices as Python values.
//
// Shared state:
//   device_class                lock-free; classes that were in use before are never freed.
//   the device of an object     written once, in its critical section, before anybody asks.
//   device_type, create_device  set at import, constant afterwards.
#include "python/data/device.h"
#include "python/base/entry.h"

#include <atomic>

#include "python/base/locks.h"
#include "python/base/python_api.h"
#include "python/data/device_names.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

struct DeviceObject {
  PyObject_HEAD DLDevice device;
  bool is_set;  // from then on nothing changes it: it may be a key
};

DLDevice& DeviceOf(PyObject* obj) { return reinterpret_cast<DeviceObject*>(obj)->device; }
bool& IsSet(PyObject* obj) { return reinterpret_cast<DeviceObject*>(obj)->is_set; }
bool IsSame(DLDevice a, DLDevice b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

PyTypeObject* device_type = nullptr;
// What FFI values become.
std::atomic<PyTypeObject*> device_class{nullptr};
PyObject* create_device = nullptr;

// An integer, or a scalar of an array library.
bool IndexOf(PyObject* index, int32_t* out) {
  Ref item = PyIndex_Check(index) ? Ref::Borrow(index)
                                  : Ref::Steal(PyObject_CallMethod(index, "item", nullptr));
  Ref number;
  if (item && PyIndex_Check(item.get())) number = Ref::Steal(PyNumber_Index(item.get()));
  if (!number) {
    // An interrupt, such as Ctrl-C, says nothing about the index.
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return false;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "Invalid device index: %S", index);
    return false;
  }
  return ToInt32(number.get(), "device index", out);
}

PyObject* NewDevice(PyTypeObject* cls, PyObject*, PyObject*) {
  PyObject* self = cls->tp_alloc(cls, 0);
  if (self != nullptr) DeviceOf(self) = DLDevice{kDLCPU, 0};
  return self;
}

int InitDeviceObject(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device_type", "index", nullptr};
  PyObject* type;
  PyObject* index = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Device", const_cast<char**>(names), &type,
                                   &index)) {
    return -1;
  }
  DLDevice device{kDLCPU, 0};
  bool has_index = false;
  if (PyUnicode_Check(type)) {
    if (!ParseDevice(type, &device, &has_index)) return -1;
  } else {
    int32_t code;
    if (!ToInt32(type, "device type", &code)) return -1;
    device.device_type = static_cast<DLDeviceType>(code);
  }
  if (!has_index && index != Py_None && !IndexOf(index, &device.device_id)) return -1;
  bool is_done;
  {
    CriticalSection section(self);
    if (!IsSet(self)) DeviceOf(self) = device;
    IsSet(self) = true;
    is_done = IsSame(device, DeviceOf(self));
  }
  if (is_done) return 0;
  PyErr_Format(PyExc_TypeError, "%R cannot become another device", self);
  return -1;
}

void DeallocDevice(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* GetDeviceTypeName(PyObject* self, PyObject*) {
  int32_t code = DeviceOf(self).device_type;
  const char* name = DeviceNameOf(code);
  if (name != nullptr) return PyUnicode_FromString(name);
  Ref key = Ref::Steal(PyLong_FromLong(code));
  if (key) PyErr_SetObject(PyExc_KeyError, key.get());
  return nullptr;
}

PyObject* GetDeviceType(PyObject* self, void*) { return GetDeviceTypeName(self, nullptr); }
PyObject* GetDeviceIndex(PyObject* self, void*) {
  return PyLong_FromLong(DeviceOf(self).device_id);
}
PyObject* GetDLPackDeviceType(PyObject* self, PyObject*) {
  return PyLong_FromLong(DeviceOf(self).device_type);
}

// A device with an unknown type code can still be printed.
PyObject* FormatDevice(PyObject* self, const char* format) {
  DLDevice device = DeviceOf(self);
  const char* name = DeviceNameOf(device.device_type);
  char number[16];
  PyOS_snprintf(number, sizeof(number), "%d", static_cast<int>(device.device_type));
  return PyUnicode_FromFormat(format, name != nullptr ? name : number, device.device_id);
}
PyObject* ReprDevice(PyObject* self) { return FormatDevice(self, "device(type='%s', index=%d)"); }
PyObject* StrDevice(PyObject* self) { return FormatDevice(self, "%s:%d"); }

PyObject* CompareDevice(PyObject* self, PyObject* other, int op) {
  if ((op != Py_EQ && op != Py_NE) || !IsDevice(other)) Py_RETURN_NOTIMPLEMENTED;
  DLDevice a = DeviceOf(self), b = DeviceOf(other);
  return PyBool_FromLong(IsSame(a, b) == (op == Py_EQ));
}

Ref DeviceTuple(DLDevice device) {
  return Ref::Steal(Py_BuildValue("(ii)", static_cast<int>(device.device_type),
                                  static_cast<int>(device.device_id)));
}

Py_hash_t HashDevice(PyObject* self) {
  Ref pair = DeviceTuple(DeviceOf(self));
  return pair ? PyObject_Hash(pair.get()) : -1;
}

PyObject* ReduceDevice(PyObject* self, PyObject*) {
  DLDevice device = DeviceOf(self);
  return Py_BuildValue("O(Oii)", create_device, Py_TYPE(self), static_cast<int>(device.device_type),
                       static_cast<int>(device.device_id));
}

PyObject* MakeDevice(PyTypeObject* cls, DLDevice device) {
  PyObject* self = cls->tp_alloc(cls, 0);
  if (self == nullptr) return nullptr;
  DeviceOf(self) = device;
  IsSet(self) = true;
  return self;
}

PyObject* CreateDeviceFromTuple(PyObject*, PyObject* args) {
  PyObject *cls, *code, *index;
  if (!PyArg_ParseTuple(args, "OOO:_create_device_from_tuple", &cls, &code, &index)) return nullptr;
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), device_type)) {
    return PyErr_Format(PyExc_TypeError, "expected a subclass of Device, got %R", cls);
  }
  int32_t type, id;
  if (!ToInt32(code, "device type", &type) || !ToInt32(index, "device index", &id)) return nullptr;
  return MakeDevice(reinterpret_cast<PyTypeObject*>(cls),
                    DLDevice{static_cast<DLDeviceType>(type), id});
}

PyObject* SetClassDevice(PyObject* module, PyObject* cls) {
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), device_type)) {
    return PyErr_Format(PyExc_TypeError, "expected a subclass of Device, got %R", cls);
  }
  device_class.store(reinterpret_cast<PyTypeObject*>(Py_NewRef(cls)));
  if (PyModule_AddObjectRef(module, "_CLASS_DEVICE", cls) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef device_methods[] = {
    {"dlpack_device_type", Entry<GetDLPackDeviceType>, METH_NOARGS,
     "The device type as DLPack's number."},
    {"__device_type_name__", Entry<GetDeviceTypeName>, METH_NOARGS, "The device type as text."},
    {"__reduce__", Entry<ReduceDevice>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef device_getset[] = {
    {"type", Entry<GetDeviceType>, nullptr, "The device type as text, such as 'cuda'.", nullptr},
    {"index", Entry<GetDeviceIndex>, nullptr, "Which of the devices of this type.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot device_slots[] = {
    {Py_tp_doc,
     const_cast<char*>("Where a tensor lives: a device type and which of its devices.\n\n"
                       ">>> from tvm_ffi import Device\n"
                       ">>> Device(\"cuda:1\")\n"
                       "device(type='cuda', index=1)\n"
                       ">>> Device(\"cuda\", 1) == Device(\"cuda:1\"), str(Device(\"cpu\"))\n"
                       "(True, 'cpu:0')\n")},
    {Py_tp_new, Slot<NewDevice>()},
    {Py_tp_init, Slot<InitDeviceObject>()},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocDevice)},
    {Py_tp_repr, Slot<ReprDevice>()},
    {Py_tp_str, Slot<StrDevice>()},
    {Py_tp_hash, Slot<HashDevice>()},
    {Py_tp_richcompare, Slot<CompareDevice>()},
    {Py_tp_methods, device_methods},
    {Py_tp_getset, device_getset},
    {0, nullptr}};

PyType_Spec device_spec = {"tvm_ffi.core.Device", sizeof(DeviceObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, device_slots};

PyMethodDef device_functions[] = {
    {"_create_device_from_tuple", Entry<CreateDeviceFromTuple>, METH_VARARGS,
     "A device of the given class from its two numbers."},
    {"_set_class_device", Entry<SetClassDevice>, METH_O,
     "Choose the class of devices that come from C++."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool ParseDeviceNumbers(PyObject* type, PyObject* id, int32_t* type_out, int32_t* id_out) {
  return ToInt32(type, "device type", type_out) && ToInt32(id, "device index", id_out);
}

bool IsDevice(PyObject* obj) { return PyObject_TypeCheck(obj, device_type); }

PyObject* DeviceClass() { return reinterpret_cast<PyObject*>(device_class.load()); }

PyObject* FromDevice(DLDevice device) { return MakeDevice(device_class.load(), device); }

bool SetDevice(PyObject* obj, TVMFFIAny* out, Arguments*) {
  out->type_index = TypeIndex::kTVMFFIDevice;
  out->zero_padding = 0;
  out->v_device = DeviceOf(obj);
  return true;
}

bool SetDeviceProtocol(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Ref pair = Ref::Steal(PyObject_CallMethod(obj, "__dlpack_device__", nullptr));
  if (!pair) return false;
  if (!PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) {
    PyErr_Format(PyExc_TypeError, "__dlpack_device__() of %s must return a tuple of two, got %R",
                 Py_TYPE(obj)->tp_name, pair.get());
    return false;
  }
  int32_t type, id;
  if (!ParseDeviceNumbers(PyTuple_GET_ITEM(pair.get(), 0), PyTuple_GET_ITEM(pair.get(), 1), &type,
                          &id)) {
    return false;
  }
  out->type_index = TypeIndex::kTVMFFIDevice;
  out->zero_padding = 0;
  out->v_device = DLDevice{static_cast<DLDeviceType>(type), id};
  return true;
}

int InitDevice(PyObject* module) {
  device_type = AddType(module, &device_spec, nullptr);
  if (device_type == nullptr || AddDeviceNames(device_type) < 0) return -1;
  if (PyModule_AddFunctions(module, device_functions) < 0) return -1;
  create_device = PyObject_GetAttrString(module, "_create_device_from_tuple");
  Ref done = Ref::Steal(SetClassDevice(module, reinterpret_cast<PyObject*>(device_type)));
  return create_device != nullptr && done ? 0 : -1;
}

}  // namespace tether_py
