// SPDX-License-Identifier: Apache-2.0
// Device as Python sees it.
//
// Shared state:
//   device_class                lock-free; classes that were in use before are never freed.
//   device_type, create_device  set at import, constant afterwards.

#include <string_view>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/data/device.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

struct DeviceObject {
  PyObject_HEAD DLDevice device;
};

DLDevice& DeviceOf(PyObject* obj) { return reinterpret_cast<DeviceObject*>(obj)->device; }

PyTypeObject* device_type = nullptr;
// What FFI values become.
std::atomic<PyTypeObject*> device_class{nullptr};
PyObject* create_device = nullptr;

struct DeviceName {
  const char* name;
  int32_t code;
  bool can_be_asked_for;  // by name; host and managed memory only by their code
};

constexpr DeviceName kDeviceNames[] = {
    {"cpu", kDLCPU, true},
    {"cuda", kDLCUDA, true},
    {"cuda_host", kDLCUDAHost, false},
    {"cuda_managed", kDLCUDAManaged, false},
    {"opencl", kDLOpenCL, true},
    {"vulkan", kDLVulkan, true},
    {"metal", kDLMetal, true},
    {"vpi", kDLVPI, true},
    {"rocm", kDLROCM, true},
    {"rocm_host", kDLROCMHost, false},
    {"ext_dev", kDLExtDev, true},
    {"oneapi", kDLOneAPI, false},
    {"webgpu", kDLWebGPU, true},
    {"hexagon", kDLHexagon, true},
    {"maia", kDLMAIA, true},
    {"trn", kDLTrn, true},
};
constexpr DeviceName kDeviceAliases[] = {{"mps", kDLMetal, true}, {"wgpu", kDLWebGPU, true}};

const char* NameOf(int32_t code) {
  for (const DeviceName& entry : kDeviceNames) {
    if (entry.code == code) return entry.name;
  }
  return nullptr;
}

bool CodeOf(std::string_view name, int32_t* code) {
  for (const DeviceName& entry : kDeviceNames) {
    if (entry.can_be_asked_for && name == entry.name) {
      *code = entry.code;
      return true;
    }
  }
  for (const DeviceName& entry : kDeviceAliases) {
    if (name == entry.name) {
      *code = entry.code;
      return true;
    }
  }
  return false;
}

bool ToInt32(PyObject* obj, const char* what, int32_t* out) {
  long long value;
  if (!IntegerInRange(obj, INT32_MIN, INT32_MAX, what, &value)) return false;
  *out = static_cast<int32_t>(value);
  return true;
}

// "cuda", "cuda:1"; what follows a blank is ignored.
bool ParseDevice(PyObject* text, DLDevice* out, bool* has_index) {
  Py_ssize_t blank = PyUnicode_FindChar(text, ' ', 0, PyUnicode_GET_LENGTH(text), 1);
  if (blank == -2) return false;
  Ref head = blank >= 0 ? Ref::Steal(PyUnicode_Substring(text, 0, blank)) : Ref::Borrow(text);
  Ref colon = Ref::Steal(PyUnicode_FromString(":"));
  if (!head || !colon) return false;
  Ref parts = Ref::Steal(PyUnicode_Split(head.get(), colon.get(), -1));
  if (!parts) return false;
  Py_ssize_t count = PyList_GET_SIZE(parts.get());
  if (count > 2) {
    PyErr_Format(PyExc_ValueError, "Invalid device: %U", text);
    return false;
  }
  PyObject* name = PyList_GET_ITEM(parts.get(), 0);
  Py_ssize_t size;
  const char* utf8 = PyUnicode_AsUTF8AndSize(name, &size);
  int32_t code;
  if (utf8 == nullptr) PyErr_Clear();  // not text, so not the name of a device
  if (utf8 == nullptr || !CodeOf(std::string_view(utf8, static_cast<size_t>(size)), &code)) {
    PyErr_Format(PyExc_ValueError, "Unknown device: %U", name);
    return false;
  }
  out->device_type = static_cast<DLDeviceType>(code);
  out->device_id = 0;
  *has_index = count == 2;
  if (!*has_index) return true;
  PyObject* digits = PyList_GET_ITEM(parts.get(), 1);
  Ref number = Ref::Steal(PyLong_FromUnicodeObject(digits, 10));
  if (!number) {
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "Invalid device index: %U", digits);
    return false;
  }
  return ToInt32(number.get(), "device index", &out->device_id);
}

// An integer, or a scalar of an array library.
bool IndexOf(PyObject* index, int32_t* out) {
  Ref number;
  if (PyIndex_Check(index)) {
    number = Ref::Steal(PyNumber_Index(index));
  } else if (PyObject_HasAttrString(index, "item")) {
    Ref item = Ref::Steal(PyObject_CallMethod(index, "item", nullptr));
    if (item && PyIndex_Check(item.get())) number = Ref::Steal(PyNumber_Index(item.get()));
  }
  if (!number) {
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
  DeviceOf(self) = device;
  return 0;
}

void DeallocDevice(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* GetDeviceTypeName(PyObject* self, PyObject*) {
  int32_t code = DeviceOf(self).device_type;
  const char* name = NameOf(code);
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

// A device of an unknown code can still be looked at.
PyObject* FormatDevice(PyObject* self, const char* format) {
  DLDevice device = DeviceOf(self);
  const char* name = NameOf(device.device_type);
  char number[16];
  PyOS_snprintf(number, sizeof(number), "%d", static_cast<int>(device.device_type));
  return PyUnicode_FromFormat(format, name != nullptr ? name : number, device.device_id);
}
PyObject* ReprDevice(PyObject* self) { return FormatDevice(self, "device(type='%s', index=%d)"); }
PyObject* StrDevice(PyObject* self) { return FormatDevice(self, "%s:%d"); }

PyObject* CompareDevice(PyObject* self, PyObject* other, int op) {
  if ((op != Py_EQ && op != Py_NE) || !IsDevice(other)) Py_RETURN_NOTIMPLEMENTED;
  DLDevice a = DeviceOf(self), b = DeviceOf(other);
  bool equal = a.device_type == b.device_type && a.device_id == b.device_id;
  return PyBool_FromLong(equal == (op == Py_EQ));
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
  if (self != nullptr) DeviceOf(self) = device;
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

// The two tables as dicts on the class.
int AddNameTables() {
  Ref to_name = Ref::Steal(PyDict_New());
  Ref to_code = Ref::Steal(PyDict_New());
  if (!to_name || !to_code) return -1;
  auto add = [&](const DeviceName& entry, bool is_alias) {
    Ref code = Ref::Steal(PyLong_FromLong(entry.code));
    Ref name = Ref::Steal(PyUnicode_FromString(entry.name));
    if (!code || !name) return -1;
    if (!is_alias && PyDict_SetItem(to_name.get(), code.get(), name.get()) < 0) return -1;
    if (!entry.can_be_asked_for) return 0;
    return PyDict_SetItem(to_code.get(), name.get(), code.get());
  };
  for (const DeviceName& entry : kDeviceNames) {
    if (add(entry, false) < 0) return -1;
  }
  for (const DeviceName& entry : kDeviceAliases) {
    if (add(entry, true) < 0) return -1;
  }
  auto* cls = reinterpret_cast<PyObject*>(device_type);
  if (PyObject_SetAttrString(cls, "_DEVICE_TYPE_TO_NAME", to_name.get()) < 0) return -1;
  return PyObject_SetAttrString(cls, "_DEVICE_NAME_TO_TYPE", to_code.get());
}

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
  if (device_type == nullptr || AddNameTables() < 0) return -1;
  if (PyModule_AddFunctions(module, device_functions) < 0) return -1;
  create_device = PyObject_GetAttrString(module, "_create_device_from_tuple");
  Ref done = Ref::Steal(SetClassDevice(module, reinterpret_cast<PyObject*>(device_type)));
  return create_device != nullptr && done ? 0 : -1;
}

}  // namespace tether_py
