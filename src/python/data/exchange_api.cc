// SPDX-License-Identifier: Apache-2.0
// The exchange APIs of other frameworks: tensors in and out without a capsule.
//
// Shared state:
//   exchange_api_name  set at import, constant afterwards.
//   find               (SetTaggedContainer) set on first use, constant afterwards.
#include "python/data/exchange_api.h"

#include <tvm/ffi/container/tensor.h>

#include <cstring>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/data/python_tensor.h"
#include "python/data/tensor_argument.h"
#include "python/data/torch.h"
#include "python/data/torch_signs.h"
#include "python/wrap/class_records.h"

namespace tether_py {

PyObject* exchange_api_name = nullptr;

namespace {

// The API that is on record for a class, or NULL.
inline const DLPackExchangeAPI* FindKnownAPI(PyTypeObject* cls) {
  const ClassRecord* record = FindRecord(cls);
  return record != nullptr ? record->exchange_api.load(std::memory_order_acquire) : nullptr;
}

bool IsSameTensor(const DLTensor& a, const DLTensor& b) {
  auto address = [](const DLTensor& t) { return static_cast<char*>(t.data) + t.byte_offset; };
  size_t bytes = static_cast<size_t>(b.ndim) * sizeof(int64_t);
  return address(a) == address(b) && a.ndim == b.ndim &&
         a.device.device_type == b.device.device_type && a.device.device_id == b.device.device_id &&
         std::memcmp(&a.dtype, &b.dtype, sizeof(DLDataType)) == 0 &&
         std::memcmp(a.shape, b.shape, bytes) == 0 && a.strides != nullptr &&
         std::memcmp(a.strides, b.strides, bytes) == 0;
}

// A tensor that keeps `obj` itself alive, which spares the framework a managed tensor: that would
// keep the same tensor, and costs as much as the rest of the call.
TVMFFIObject* ImportViewByAPI(PyObject* obj, const DLPackExchangeAPI* api) {
  DLTensor view{};
  if (api->dltensor_from_py_object_no_sync(obj, &view) != 0) {
    if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_BufferError, "%s could not be exported", Py_TYPE(obj)->tp_name);
    }
    return nullptr;
  }
  if (!CheckGeometry(view)) return nullptr;
  if (view.strides == nullptr && view.ndim != 0) return ImportByAPI(obj, api, ImportOptions());
  return TensorOver(obj, view);
}

// Takes over h, which may be NULL with an error set.
TVM_FFI_INLINE bool StoreWithStream(TVMFFIObject* h, const DLPackExchangeAPI* api, TVMFFIAny* out,
                                    Arguments* args) {
  if (h == nullptr) return false;
  CallContext* context = args->MutableContext();
  context->api = api;
  RecordStream(api, TVMFFITensorGetDLTensorPtr(h)->device, context);
  return StoreTensor(h, out, args);
}

bool SetByAPI(PyObject* obj, const DLPackExchangeAPI* api, TVMFFIAny* out, Arguments* args) {
  TVMFFIObject* h = api->dltensor_from_py_object_no_sync != nullptr
                        ? ImportViewByAPI(obj, api)
                        : ImportByAPI(obj, api, ImportOptions());
  return StoreWithStream(h, api, out, args);
}

// A class that could not be remembered is asked each time. NULL with an error set.
const DLPackExchangeAPI* ClassAPI(PyObject* obj) {
  const DLPackExchangeAPI* api = FindKnownAPI(Py_TYPE(obj));
  return api != nullptr ? api : ExchangeAPIOf(reinterpret_cast<PyObject*>(Py_TYPE(obj)));
}

}  // namespace

const DLPackExchangeAPI* ParseExchangeAPI(PyObject* attribute) {
  const void* address = nullptr;
  if (PyCapsule_IsValid(attribute, "dlpack_exchange_api")) {
    address = PyCapsule_GetPointer(attribute, "dlpack_exchange_api");
  } else if (PyLong_Check(attribute)) {
    address = PyLong_AsVoidPtr(attribute);
    PyErr_Clear();
    // Nothing is in the first page, and the structure begins with a pointer's alignment.
    auto number = reinterpret_cast<uintptr_t>(address);
    if (number < 4096 || number % alignof(DLPackExchangeAPI) != 0) {
      PyErr_Format(PyExc_ValueError,
                   "Expect a dlpack_exchange_api field: a capsule or an address, got %R",
                   attribute);
      return nullptr;
    }
  }
  const auto* api = static_cast<const DLPackExchangeAPI*>(address);
  if (api == nullptr) {
    PyErr_SetString(PyExc_ValueError, "Expect a dlpack_exchange_api field");
    return nullptr;
  }
  if (!CheckVersion(api->header.version, "the exchange API")) return nullptr;
  if (api->managed_tensor_from_py_object_no_sync == nullptr) {
    PyErr_SetString(PyExc_ValueError, "the exchange API cannot export tensors");
    return nullptr;
  }
  return api;
}

TVMFFIObject* ImportByAPI(PyObject* obj, const DLPackExchangeAPI* api,
                          const ImportOptions& options) {
  DLManagedTensorVersioned* managed = nullptr;
  if (api->managed_tensor_from_py_object_no_sync(obj, &managed) != 0 || managed == nullptr) {
    if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_BufferError, "%s could not be exported", Py_TYPE(obj)->tp_name);
    }
    return nullptr;
  }
  TVMFFIObject* h = ImportManaged(managed, options);
  if (h == nullptr) DeleteManaged(managed);
  return h;
}

const DLPackExchangeAPI* ExchangeAPIOf(PyObject* cls) {
  Ref attribute = Ref::Steal(PyObject_GetAttr(cls, exchange_api_name));
  return attribute ? ParseExchangeAPI(attribute.get()) : nullptr;
}

bool LearnExchangeAPI(PyTypeObject* cls) {
  if (FindKnownAPI(cls) != nullptr) return true;
  const DLPackExchangeAPI* api = ExchangeAPIOf(reinterpret_cast<PyObject*>(cls));
  if (api == nullptr) return false;
  ClassRecord* record = RecordOf(cls);
  if (record != nullptr) record->exchange_api.store(api, std::memory_order_release);
  return true;
}

bool UsesAddon(PyTypeObject* cls) {
  const DLPackExchangeAPI* api = FindKnownAPI(cls);
  return api != nullptr && api == addon_api.load(std::memory_order_acquire);
}

bool SetByExchangeAPI(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  const DLPackExchangeAPI* api = ClassAPI(obj);
  return api != nullptr && SetByAPI(obj, api, out, args);
}

bool SetByAddon(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  const DLPackExchangeAPI* api = addon_api.load(std::memory_order_relaxed);
  DLTensor view;
  if (TVM_FFI_PREDICT_FALSE(api->dltensor_from_py_object_no_sync(obj, &view) != 0)) {
    PassOver();
    return SetWithLazySigns(obj, out, args);  // raises the error again if it is another reason
  }
  return StoreWithStream(TensorOver(obj, view), api, out, args);
}

bool SetWithSignBits(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return MayHaveSigns(obj) ? SetWithLazySigns(obj, out, args) : SetByExchangeAPI(obj, out, args);
}

bool SetWithLazySigns(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Ref tensor = ResolveSigns(obj);
  return tensor && SetByExchangeAPI(tensor.get(), out, args);
}

bool SetTaggedContainer(PyObject* obj, const DLPackExchangeAPI* tag, TVMFFIAny* out,
                        Arguments* args) {
  if (!StoreWrapper(obj, out, args)) return false;
  CallContext* context = args->MutableContext();
  if (context->api == nullptr) context->api = tag;
  if (context->device_type != -1 || tag->current_work_stream == nullptr) return true;
  Ref done = Ref::Steal(Guarded([&]() -> PyObject* {
    static const auto find = ffi::Function::GetGlobalRequired("ffi.ContainerFindFirstNonCPUDevice");
    // The framework may be Python code, which may move the object out of its wrapper. It is not
    // among the call's arguments yet.
    if (!kFreeThreaded) args->Hold(out->v_obj);
    ffi::Any found = find(ffi::AnyView::CopyFromTVMFFIAny(*out));
    if (auto device = found.as<DLDevice>()) RecordStream(tag, *device, context);
    return Py_NewRef(Py_None);
  }));
  return static_cast<bool>(done);
}

DLManagedTensorVersioned* ExportTo(const DLPackExchangeAPI* api, TVMFFIObject* h) {
  DLManagedTensorVersioned* managed = nullptr;
  PyObject* owner = MemoryOwnerOf(h);
  if (owner != nullptr && FindKnownAPI(Py_TYPE(owner)) == api) {
    int code = api->managed_tensor_from_py_object_no_sync(owner, &managed);
    if (code == 0 && IsSameTensor(managed->dl_tensor, *TVMFFITensorGetDLTensorPtr(h))) {
      return managed;
    }
    if (code == 0) DeleteManaged(managed);  // changed in place since
    PassOver();
  }
  if (int code = TVMFFITensorToDLPackVersioned(h, &managed)) {
    RaiseFromCall(code);
    return nullptr;
  }
  // Not every framework has read-only tensors, and torch silently ignores the flag.
  if (TVM_FFI_PREDICT_FALSE((managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0)) {
    DeleteManaged(managed);
    PyErr_SetString(PyExc_BufferError,
                    "a read-only tensor cannot be converted to a framework tensor");
    return nullptr;
  }
  return managed;
}

int InitExchangeAPIs() {
  exchange_api_name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  return exchange_api_name != nullptr ? 0 : -1;
}

}  // namespace tether_py
