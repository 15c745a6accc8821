// SPDX-License-Identifier: Apache-2.0
// The memory of tensors as Python buffers, and tensors over buffers.
//
// Shared state: memory_type: set at import, constant afterwards.
#include "python/data/tensor_buffer.h"

#include <tvm/ffi/container/tensor.h>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/data/python_tensor.h"
#include "python/data/tensor.h"

namespace tether_py {

namespace {

struct TensorMemory {
  PyObject_HEAD TVMFFIObject* tensor;  // held
  bool is_read_only;
};

PyTypeObject* memory_type = nullptr;

void DeallocMemory(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  TVMFFIObject* tensor = reinterpret_cast<TensorMemory*>(self)->tensor;
  type->tp_free(self);
  Py_DECREF(type);
  if (tensor != nullptr) Engine::DropStrong(tensor);
}

int GetMemory(PyObject* self, Py_buffer* view, int flags) {
  auto* memory = reinterpret_cast<TensorMemory*>(self);
  const DLTensor* tensor = TVMFFITensorGetDLTensorPtr(memory->tensor);
  auto size = static_cast<Py_ssize_t>(ffi::GetDataSize(*tensor));
  static char nothing;  // an empty tensor may have no memory
  void* data = size != 0 ? static_cast<char*>(tensor->data) + tensor->byte_offset : &nothing;
  return PyBuffer_FillInfo(view, self, data, size, memory->is_read_only ? 1 : 0, flags);
}

PyType_Slot memory_slots[] = {
    {Py_tp_doc, const_cast<char*>("The memory of a tensor on the CPU, as a buffer.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocMemory)},
    {Py_bf_getbuffer, Slot<GetMemory>()},
    {0, nullptr}};

PyType_Spec memory_spec = {"tvm_ffi.core._TensorMemory", sizeof(TensorMemory), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};

PyObject* MemoryOf(PyObject*, PyObject* obj) {
  if (!PyObject_TypeCheck(obj, types.tensor)) {
    return PyErr_Format(PyExc_TypeError, "expected a Tensor, got %s", Py_TYPE(obj)->tp_name);
  }
  TVMFFIObject* h;
  {
    TensorUse t(obj);
    if (!CanBeExported(t)) return nullptr;
    if (t->device.device_type != kDLCPU || !ffi::IsContiguous(*t)) {
      return PyErr_Format(PyExc_BufferError,
                          "only a contiguous CPU tensor can be exported as a buffer");
    }
    h = t.object();
    Engine::AddStrong(h);
  }
  auto held = ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::Object>(h);
  DLManagedTensorVersioned* managed;
  if (int code = TVMFFITensorToDLPackVersioned(h, &managed)) return RaiseFromCall(code);
  bool is_read_only = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  managed->deleter(managed);
  auto* memory = PyObject_New(TensorMemory, memory_type);
  if (memory == nullptr) return nullptr;
  memory->tensor = ffi::details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(held));
  memory->is_read_only = is_read_only;
  return reinterpret_cast<PyObject*>(memory);
}

// A tensor of bytes over the memory of any buffer without gaps, read-only if that is.
PyObject* TensorOverBuffer(PyObject*, PyObject* obj) {
  Ref owner = Ref::Steal(PyMemoryView_FromObject(obj));
  if (!owner) return nullptr;
  const Py_buffer* view = PyMemoryView_GET_BUFFER(owner.get());
  if (PyBuffer_IsContiguous(view, 'C') == 0) {
    return PyErr_Format(PyExc_BufferError, "the buffer has gaps");
  }
  int64_t extent = view->len, stride = 1;
  DLTensor prototype{};
  prototype.data = view->buf;
  prototype.device = {kDLCPU, 0};
  prototype.ndim = 1;
  prototype.dtype = {kDLUInt, 8, 1};
  prototype.shape = &extent;
  prototype.strides = &stride;
  TVMFFIObject* h = TensorOver(owner.get(), prototype);
  if (h == nullptr || view->readonly == 0) return h != nullptr ? WrapOwned(h) : nullptr;
  auto held = ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::Object>(h);
  DLManagedTensorVersioned* managed;
  if (int code = TVMFFITensorToDLPackVersioned(h, &managed)) return RaiseFromCall(code);
  managed->flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  TVMFFIObjectHandle out = nullptr;
  if (int code = TVMFFITensorFromDLPackVersioned(managed, 0, 0, &out)) {
    managed->deleter(managed);
    return RaiseFromCall(code);
  }
  return WrapOwned(static_cast<TVMFFIObject*>(out));
}

PyMethodDef buffer_functions[] = {
    {"_memory_of_tensor", Entry<MemoryOf>, METH_O, "The memory of a tensor, as a buffer."},
    {"_tensor_over_buffer", Entry<TensorOverBuffer>, METH_O,
     "A tensor of bytes over the memory of a buffer."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitTensorBuffer(PyObject* module) {
  memory_type = AddType(module, &memory_spec, nullptr);
  return memory_type != nullptr ? PyModule_AddFunctions(module, buffer_functions) : -1;
}

}  // namespace tether_py
