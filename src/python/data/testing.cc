// SPDX-License-Identifier: Apache-2.0
// DLTensorTestWrapper: stands for the tensor class of another framework in tests. The interface
// names it, so the extension has it. Nothing else in the frontend depends on it.
//
// Shared state: test_api: filled at import, constant afterwards.
#include "python/data/testing.h"
#include "python/base/entry.h"

#include <tvm/ffi/extra/c_env_api.h>

#include "python/base/python_api.h"
#include "python/data/own_exchange.h"
#include "python/data/tensor.h"

namespace tether_py {

namespace {

struct TestWrapper {
  PyObject_HEAD PyObject* tensor;
};

int TestToManaged(void* obj, DLManagedTensorVersioned** out) {
  PyObject* tensor = static_cast<TestWrapper*>(obj)->tensor;
  return own_exchange_api.managed_tensor_from_py_object_no_sync(tensor, out);
}

int InitTestWrapper(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"tensor", nullptr};
  PyObject* tensor;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:DLTensorTestWrapper",
                                   const_cast<char**>(names), types.tensor, &tensor)) {
    return -1;
  }
  Py_XSETREF(reinterpret_cast<TestWrapper*>(self)->tensor, Py_NewRef(tensor));
  return 0;
}

PyObject* NewTestWrapper(PyTypeObject* cls, PyObject* args, PyObject* kwargs) {
  PyObject* self = cls->tp_alloc(cls, 0);
  if (self == nullptr || InitTestWrapper(self, args, kwargs) == 0) return self;
  Py_DECREF(self);
  return nullptr;
}

void DeallocTestWrapper(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<TestWrapper*>(self)->tensor);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* TestWrapperStream(PyObject* self, PyObject*) {
  TensorUse t(reinterpret_cast<TestWrapper*>(self)->tensor);
  if (!t) return nullptr;
  return PyLong_FromVoidPtr(TVMFFIEnvGetStream(t->device.device_type, t->device.device_id));
}

PyObject* TestWrapperDevice(PyObject* self, PyObject*) {
  return PyObject_CallMethod(reinterpret_cast<TestWrapper*>(self)->tensor, "__dlpack_device__",
                             nullptr);
}

PyObject* TestWrapperDLPack(PyObject* self, PyObject* args, PyObject* kwargs) {
  Ref method = Ref::Steal(
      PyObject_GetAttrString(reinterpret_cast<TestWrapper*>(self)->tensor, "__dlpack__"));
  return method ? PyObject_Call(method.get(), args, kwargs) : nullptr;
}

PyMethodDef test_wrapper_methods[] = {
    {"__tvm_ffi_env_stream__", Entry<TestWrapperStream>, METH_NOARGS, nullptr},
    {"__dlpack_device__", Entry<TestWrapperDevice>, METH_NOARGS, nullptr},
    {"__dlpack__", EntryOfAnyKind<TestWrapperDLPack>(), METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef test_wrapper_members[] = {
    {"tensor", T_OBJECT_EX, offsetof(TestWrapper, tensor), READONLY, "The tensor inside."},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot test_wrapper_slots[] = {
    {Py_tp_doc, const_cast<char*>("Stands for the tensor class of another framework in tests.")},
    {Py_tp_new, Slot<NewTestWrapper>()},
    {Py_tp_init, Slot<InitTestWrapper>()},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocTestWrapper)},
    {Py_tp_methods, test_wrapper_methods},
    {Py_tp_members, test_wrapper_members},
    {0, nullptr}};

PyType_Spec test_wrapper_spec = {"tvm_ffi.core.DLTensorTestWrapper", sizeof(TestWrapper), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, test_wrapper_slots};

// With nothing in it that the interface does not demand.
DLPackExchangeAPI test_api;

}  // namespace

int InitTestTensor(PyObject* module) {
  test_api.header = own_exchange_api.header;
  test_api.managed_tensor_from_py_object_no_sync = TestToManaged;
  test_api.managed_tensor_to_py_object_no_sync =
      own_exchange_api.managed_tensor_to_py_object_no_sync;
  test_api.current_work_stream = own_exchange_api.current_work_stream;
  PyTypeObject* type = AddType(module, &test_wrapper_spec, nullptr);
  return type != nullptr ? PublishExchangeAPI(type, &test_api) : -1;
}

}  // namespace tether_py
