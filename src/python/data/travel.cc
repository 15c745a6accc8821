// SPDX-License-Identifier: Apache-2.0
// What pickling needs of the interpreter.
//
// Shared state: memory_type, watch_type: set at import, constant afterwards.
#include "python/data/travel.h"

#include <tvm/ffi/container/tensor.h>

#include <algorithm>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/data/python_tensor.h"
#include "python/data/tensor.h"
#include "python/wrap/class_table.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// ---- objects with a part in Python

// As libtvm_ffi knows them (src/extra/graph_writer.cc).
enum class Part : uint8_t { kNone, kNoted, kOutside };

// Whether a class has another method than the base class, and a user wrote it.
bool Overrides(PyTypeObject* cls, const char* name) {
  PyTypeObject* base = PyType_IsSubtype(cls, types.error) ? types.error : types.object;
  Ref own = Ref::Steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(cls), name));
  Ref ours = Ref::Steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(base), name));
  if (!own || !ours) {
    PassOver();
    return false;
  }
  return own.get() != ours.get() && !PyObject_HasAttrString(own.get(), "_is_generated");
}

bool IsInDispatchTable(PyTypeObject* cls) {
  Ref module = Ref::Steal(PyImport_ImportModule("copyreg"));
  Ref table = module ? Ref::Steal(PyObject_GetAttrString(module.get(), "dispatch_table")) : Ref();
  int is = table ? PySequence_Contains(table.get(), reinterpret_cast<PyObject*>(cls)) : 0;
  if (PyErr_Occurred() != nullptr) PassOver();
  return is > 0;
}

// What a class says about pickles of its instances.
Part PartOfClass(PyTypeObject* cls) {
  if (Overrides(cls, "__reduce_ex__") || Overrides(cls, "__reduce__") || IsInDispatchTable(cls)) {
    return Part::kOutside;
  }
  bool has_state = Overrides(cls, "__getstate__") || Overrides(cls, "__setstate__");
  return has_state ? Part::kNoted : Part::kNone;
}

// An instance has another class than objects from C++ get, or room for Python state.
Part PartOfWrapper(PyTypeObject* cls, int32_t type_index) {
  if (cls != FindClassOfIndex(type_index)) return std::max(PartOfClass(cls), Part::kNoted);
  bool has_room =
      cls->tp_dictoffset != 0 || cls->tp_basicsize != static_cast<Py_ssize_t>(sizeof(Wrapper));
  return has_room ? Part::kNoted : Part::kNone;
}

// Called by the walk of a pickle, which holds the object, in a thread that is attached. Without an
// object: what all of that type have, by their class.
Part PartOf(TVMFFIObject* h, int32_t type_index) {
  if (h == nullptr) {
    PyTypeObject* cls = FindClassOfIndex(type_index);
    return cls != nullptr ? PartOfClass(cls) : Part::kNone;
  }
  tie::TieSlot* slot = Engine::FindSlot(h);
  if (slot == nullptr) return Part::kNone;
  uintptr_t word = slot->word.load(std::memory_order_acquire);
  if ((word & ~tie::kWordTags) == 0) return Part::kNone;
  if (!kFreeThreaded) {
    auto* w = reinterpret_cast<Wrapper*>(word & ~tie::kWordTags);
    return PartOfWrapper(Py_TYPE(AsObject(w)), type_index);
  }
  Ref wrapper = Ref::Steal(WrapBorrowed(h));
  if (!wrapper) PassOver();
  return wrapper ? PartOfWrapper(Py_TYPE(wrapper.get()), type_index) : Part::kNone;
}

PyObject* PartFunction(PyObject*, PyObject*) {
  return PyLong_FromVoidPtr(reinterpret_cast<void*>(&PartOf));
}

// What a class says about pickles: 0 nothing, 1 its state, 2 everything.
PyObject* PickleHooks(PyObject*, PyObject* cls) {
  if (!PyType_Check(cls)) {
    return PyErr_Format(PyExc_TypeError, "expected a class, got %s", Py_TYPE(cls)->tp_name);
  }
  return PyLong_FromLong(static_cast<long>(PartOfClass(reinterpret_cast<PyTypeObject*>(cls))));
}

// ---- the memory of a tensor as a buffer

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

// ---- pickles that fail

// Calls a function if it is dropped while an exception is on its way: what a pickler holds is, when
// pickling fails.
struct ErrorWatch {
  PyObject_HEAD PyObject* callback;
};

PyTypeObject* watch_type = nullptr;

void DeallocWatch(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Ref callback = Ref::Steal(reinterpret_cast<ErrorWatch*>(self)->callback);
  type->tp_free(self);
  Py_DECREF(type);
  if (PyErr_Occurred() == nullptr) return;
  ErrorAside aside;
  Ref result = Ref::Steal(PyObject_CallNoArgs(callback.get()));
  if (!result) PyErr_WriteUnraisable(callback.get());
}

PyType_Slot watch_slots[] = {
    {Py_tp_doc, const_cast<char*>("Calls a function if it is dropped by an exception.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocWatch)},
    {0, nullptr}};

PyType_Spec watch_spec = {"tvm_ffi.core._ErrorWatch", sizeof(ErrorWatch), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, watch_slots};

PyObject* WhenDroppedByError(PyObject*, PyObject* callback) {
  auto* watch = PyObject_New(ErrorWatch, watch_type);
  if (watch == nullptr) return nullptr;
  Py_INCREF(callback);
  watch->callback = callback;
  return reinterpret_cast<PyObject*>(watch);
}

PyMethodDef functions[] = {
    {"_part_function", Entry<PartFunction>, METH_NOARGS,
     "Address of the C function that says which part Python has in an object."},
    {"_pickle_hooks", Entry<PickleHooks>, METH_O,
     "What a class says about pickles of its instances: 0 nothing, 1 their state, 2 everything."},
    {"_when_dropped_by_error", Entry<WhenDroppedByError>, METH_O,
     "An object that calls a function if it is dropped while an exception is on its way."},
    {"_memory_of_tensor", Entry<MemoryOf>, METH_O, "The memory of a tensor, as a buffer."},
    {"_tensor_over_buffer", Entry<TensorOverBuffer>, METH_O,
     "A tensor of bytes over the memory of a buffer."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitTravel(PyObject* module) {
  memory_type = AddType(module, &memory_spec, nullptr);
  watch_type = AddType(module, &watch_spec, nullptr);
  if (memory_type == nullptr || watch_type == nullptr) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace tether_py
