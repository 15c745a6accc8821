// SPDX-License-Identifier: Apache-2.0
// Tensors going to Python and coming from it.
//
// Shared state: what a Tensor shows is read in the critical section of its wrapper (TensorUse).
#include "python/data/tensor.h"

#include "core/kept_value.h"
#include "python/base/python_api.h"
#include "python/data/exchange_api.h"
#include "python/data/own_exchange.h"
#include "python/wrap/notes.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// What C++ lends to a callback, by a wrapper with an empty handle. NULL for any other tensor.
DLTensor* ViewOf(PyObject* self) { return Notes::Get<DLTensor>(self); }

}  // namespace

// ---- going to Python

PyObject* FromTensorStrict(TVMFFIObject* h, const DLPackExchangeAPI* api) {
  if (api == nullptr || api->managed_tensor_to_py_object_no_sync == nullptr ||
      IsOwnExchangeAPI(api)) {
    return WrapOwned(h);
  }
  DLManagedTensorVersioned* managed = ExportTo(api, h);
  Engine::DropStrong(h);  // the managed tensor has a reference of its own
  if (managed == nullptr) return nullptr;
  void* out = nullptr;
  if (api->managed_tensor_to_py_object_no_sync(managed, &out) == 0 && out != nullptr) {
    return static_cast<PyObject*>(out);
  }
  if (!PyErr_Occurred()) {
    PyErr_SetString(PyExc_BufferError, "the framework could not take over the tensor");
  }
  return nullptr;
}

PyObject* FromTensor(TVMFFIObject* h, const DLPackExchangeAPI* api) {
  if (TVM_FFI_PREDICT_TRUE(api == nullptr)) return WrapOwned(h);
  Engine::AddStrong(h);
  PyObject* result = FromTensorStrict(h, api);
  if (result != nullptr) {
    Engine::DropStrong(h);
    return result;
  }
  PassOver();
  return WrapOwned(h);
}

PyObject* FromTensorView(DLTensor* tensor) {
  PyTypeObject* cls = ClassOfIndex(TypeIndex::kTVMFFITensor);
  if (cls == nullptr) return nullptr;
  if (!PyType_IsSubtype(cls, types.tensor)) cls = types.tensor;
  Wrapper* w = AllocateWrapper(cls);
  Ref view = Ref::Steal(AsObject(w));
  return view && Notes::Set(view.get(), tensor) ? view.release() : nullptr;
}

void EndView(PyObject* obj) {
  if (!PyObject_TypeCheck(obj, types.tensor)) return;
  CriticalSection section(obj);  // until whoever is looking at it has finished
  Notes::Forget(obj);
}

PyObject* FromTensorResult(DLTensor* tensor, PyObject* const* args, Arguments* converted) {
  for (int32_t i = 0; i < converted->size(); ++i) {
    const TVMFFIAny& arg = converted->data()[i];
    if (arg.type_index == TypeIndex::kTVMFFIDLTensorPtr && arg.v_ptr == tensor) {
      return Py_NewRef(args[i]);
    }
    if (arg.type_index == TypeIndex::kTVMFFITensor &&
        TVMFFITensorGetDLTensorPtr(arg.v_obj) == tensor) {
      return FromBorrowedAny(arg);
    }
  }
  return RefuseLent();
}

PyObject* RefuseLent() {
  PyErr_SetString(PyExc_ValueError, ffi::tether::kCannotKeepLent);
  return nullptr;
}

// ---- coming from Python

TensorUse::TensorUse(PyObject* self) : section_(self), tensor_(ViewOf(self)) {
  if (tensor_ != nullptr) return;
  TVMFFIObject* h = UseHandle(AsWrapper(self));
  if (TVM_FFI_PREDICT_FALSE(h == nullptr)) return;
  if (TVM_FFI_PREDICT_FALSE(h->type_index != TypeIndex::kTVMFFITensor)) {
    PyErr_Format(PyExc_TypeError, "%s object holds a `%s`", Py_TYPE(self)->tp_name,
                 TVMFFIGetTypeInfo(h->type_index)->type_key.data);
    return;
  }
  object_ = h;
  tensor_ = TVMFFITensorGetDLTensorPtr(h);
  // An allocation may start a collection, which runs Python code. A critical section is let go
  // where the thread waits for anything.
  Engine::AddStrong(h);
}

TensorUse::~TensorUse() {
  if (object_ != nullptr) Engine::DropStrong(object_);
}

bool CanBeExported(const TensorUse& t) {
  if (!t || t.object() != nullptr) return static_cast<bool>(t);
  PyErr_SetString(PyExc_BufferError,
                  "a tensor that is lent to a callback cannot be exported: its memory is only "
                  "valid during the call");
  return false;
}

bool SetTensor(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  if (DLTensor* view = ViewOf(obj)) {
    out->type_index = TypeIndex::kTVMFFIDLTensorPtr;
    out->zero_padding = 0;
    out->v_ptr = view;
    return true;
  }
  return StoreWrapper(obj, out, args);
}

}  // namespace tether_py
