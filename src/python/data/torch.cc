// SPDX-License-Identifier: Apache-2.0
// The exchange API of torch, and what stands in for it where torch has none.
//
// Shared state:
//   addon_api     lock-free; set once. Threads that race set the same.
//   is_prepared   lock-free; set once, after the work. Threads that race do it twice.
#include "python/data/torch.h"

#include <new>

#include "python/base/python_api.h"
#include "python/data/capsules.h"
#include "python/data/tensor_argument.h"
#include "python/data/torch_signs.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

std::atomic<const DLPackExchangeAPI*> addon_api{nullptr};

namespace {

// Older releases of torch take only unversioned capsules.
struct LegacyManaged {
  DLManagedTensor managed;
  DLManagedTensorVersioned* source;
};

int TorchFromManaged(DLManagedTensorVersioned* tensor, void** out) {
  auto* legacy = new (std::nothrow) LegacyManaged{{tensor->dl_tensor, nullptr, nullptr}, tensor};
  if (legacy == nullptr) {
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
    PyErr_NoMemory();
    return -1;
  }
  legacy->managed.manager_ctx = legacy;
  legacy->managed.deleter = [](DLManagedTensor* self) {
    // Torch calls this on any thread, and without the GIL.
    auto* owner = static_cast<LegacyManaged*>(self->manager_ctx);
    if (owner->source->deleter != nullptr) owner->source->deleter(owner->source);
    delete owner;
  };
  Ref capsule = Ref::Steal(PyCapsule_New(&legacy->managed, kCapsule, DropCapsule));
  if (!capsule) {
    legacy->managed.deleter(&legacy->managed);
    return -1;
  }
  Ref from_dlpack = TorchFunction({"utils", "dlpack", "from_dlpack"});
  *out = from_dlpack ? PyObject_CallOneArg(from_dlpack.get(), capsule.get()) : nullptr;
  return *out != nullptr ? 0 : -1;
}

int TorchStream(DLDeviceType, int32_t device_id, void** out) {
  Ref current = TorchFunction({"_C", "_cuda_getCurrentRawStream"});
  Ref stream = current ? Ref::Steal(PyObject_CallFunction(current.get(), "i", device_id)) : Ref();
  if (!stream) return -1;
  *out = PyLong_AsVoidPtr(stream.get());
  return PyErr_Occurred() ? -1 : 0;
}

int TorchToManaged(void*, DLManagedTensorVersioned**) {
  PyErr_SetString(PyExc_BufferError, "torch tensors are exported by to_dlpack here");
  return -1;
}

const DLPackExchangeAPI torch_api = {{{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, nullptr},
                                     nullptr,
                                     TorchToManaged,
                                     TorchFromManaged,
                                     nullptr,
                                     TorchStream};

}  // namespace

Ref TorchFunction(std::initializer_list<const char*> path) {
  Ref found = Ref::Steal(PyImport_ImportModule("torch"));
  for (const char* name : path) {
    if (!found) break;
    found = Ref::Steal(PyObject_GetAttrString(found.get(), name));
  }
  return found;
}

bool PrepareTorch(PyObject* obj) {
  static std::atomic<bool> is_prepared{false};
  if (is_prepared.load(std::memory_order_acquire) || !HasLazySigns(Py_TYPE(obj))) return true;
  int is = IsInstanceOfLoaded(obj, "torch", "Tensor");
  if (is <= 0) return is == 0;
  Ref address = Ref::Steal(PyObject_CallNoArgs(hooks.prepare_torch));
  if (!address) return false;
  if (PyLong_Check(address.get())) {
    addon_api.store(static_cast<const DLPackExchangeAPI*>(PyLong_AsVoidPtr(address.get())));
  }
  is_prepared.store(true, std::memory_order_release);
  return true;
}

bool SetTorchTensor(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Ref to_dlpack = TorchFunction({"utils", "dlpack", "to_dlpack"});
  // A torch that is too old for the methods has no such bits either.
  Ref tensor = HasLazySigns(Py_TYPE(obj)) ? ResolveSigns(obj) : Ref::Borrow(obj);
  if (!to_dlpack || !tensor) return false;
  Ref capsule = Ref::Steal(PyObject_CallOneArg(to_dlpack.get(), tensor.get()));
  if (!capsule) return false;
  TVMFFIObject* h = ImportCapsule(capsule.get(), ImportOptions(), PyExc_BufferError,
                                  "Expect torch.utils.dlpack.to_dlpack to return a capsule");
  if (!StoreTensor(h, out, args)) return false;
  CallContext* context = args->MutableContext();
  context->api = &torch_api;
  DLDevice device = TVMFFITensorGetDLTensorPtr(h)->device;
  if (device.device_type == kDLCUDA || device.device_type == kDLROCM) {
    RecordStream(&torch_api, device, context);
  }
  return true;
}

}  // namespace tether_py
