// SPDX-License-Identifier: Apache-2.0
// The names of devices, and devices as text.
#include "python/data/device_names.h"

#include <string_view>

#include "python/base/python_api.h"
#include "python/base/ref.h"

namespace tether_py {

namespace {

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

}  // namespace

const char* DeviceNameOf(int32_t code) {
  for (const DeviceName& entry : kDeviceNames) {
    if (entry.code == code) return entry.name;
  }
  return nullptr;
}

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

int AddDeviceNames(PyTypeObject* cls) {
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
  auto* type = reinterpret_cast<PyObject*>(cls);
  if (PyObject_SetAttrString(type, "_DEVICE_TYPE_TO_NAME", to_name.get()) < 0) return -1;
  return PyObject_SetAttrString(type, "_DEVICE_NAME_TO_TYPE", to_code.get());
}

}  // namespace tether_py
