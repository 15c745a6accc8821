// SPDX-License-Identifier: Apache-2.0
// What is particular to torch: lazy signs, and releases without an exchange API.
//
// Shared state: the interned names: set at import, constant afterwards.
#include <new>

#include "python/data/torch.h"

#include "python/base/python_api.h"
#include "python/data/capsules.h"
#include "python/data/tensor_argument.h"

namespace tether_py {

namespace {

PyObject* is_conj_name = nullptr;
PyObject* is_neg_name = nullptr;
PyObject* resolve_conj_name = nullptr;
PyObject* resolve_neg_name = nullptr;

// 1 or 0, or -1 with an error set.
int Ask(PyObject* obj, PyObject* method) {
  Ref answer = Ref::Steal(PyObject_CallMethodNoArgs(obj, method));
  if (!answer) return -1;
  return answer.get() == Py_False ? 0 : PyObject_IsTrue(answer.get());
}

// The function `path` of torch, such as "utils.dlpack.to_dlpack". NULL with an error set.
Ref TorchFunction(std::initializer_list<const char*> path) {
  Ref found = Ref::Steal(PyImport_ImportModule("torch"));
  for (const char* name : path) {
    if (!found) break;
    found = Ref::Steal(PyObject_GetAttrString(found.get(), name));
  }
  return found;
}

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

bool HasLazySigns(PyTypeObject* type) {
  return HasMethod(type, "is_neg") && HasMethod(type, "is_conj") &&
         HasMethod(type, "resolve_neg") && HasMethod(type, "resolve_conj");
}

Ref ResolveSigns(PyObject* obj) {
  Ref tensor = Ref::Borrow(obj);
  const struct {
    PyObject *ask, *resolve;
  } signs[] = {{is_conj_name, resolve_conj_name}, {is_neg_name, resolve_neg_name}};
  for (const auto& sign : signs) {
    int is = Ask(tensor.get(), sign.ask);
    if (is < 0) return Ref();
    if (is == 0) continue;
    tensor = Ref::Steal(PyObject_CallMethodNoArgs(tensor.get(), sign.resolve));
    if (!tensor) return Ref();
    if (!PyObject_TypeCheck(tensor.get(), Py_TYPE(obj))) {
      PyErr_Format(PyExc_TypeError, "%U() of %s returned %s", sign.resolve, Py_TYPE(obj)->tp_name,
                   Py_TYPE(tensor.get())->tp_name);
      return Ref();
    }
  }
  return tensor;
}

bool CheckNoLazySigns(PyObject* obj) {
  if (!HasLazySigns(Py_TYPE(obj))) return true;
  int conj = Ask(obj, is_conj_name);
  int neg = conj == 0 ? Ask(obj, is_neg_name) : 0;
  if (conj > 0 || neg > 0) {
    const char* what = conj > 0 ? "conj" : "neg";
    PyErr_Format(PyExc_BufferError,
                 "a tensor with the %s bit set cannot share its memory, which has other values; "
                 "use tensor.resolve_%s()",
                 what, what);
  }
  return conj == 0 && neg == 0;
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

int InitTorch() {
  is_conj_name = PyUnicode_InternFromString("is_conj");
  is_neg_name = PyUnicode_InternFromString("is_neg");
  resolve_conj_name = PyUnicode_InternFromString("resolve_conj");
  resolve_neg_name = PyUnicode_InternFromString("resolve_neg");
  bool done = is_conj_name != nullptr && is_neg_name != nullptr && resolve_conj_name != nullptr &&
              resolve_neg_name != nullptr;
  return done ? 0 : -1;
}

}  // namespace tether_py
