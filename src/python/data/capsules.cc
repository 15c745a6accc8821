// SPDX-License-Identifier: Apache-2.0
// Capsules, in which managed tensors of DLPack travel.
//
// Shared state: dlpack_name: set at import, constant afterwards. A capsule is consumed in its
// critical section.
#include "python/data/capsules.h"

#include <tvm/ffi/container/tensor.h>

#include <memory>
#include <new>

#include "python/base/locks.h"
#include "python/base/python_api.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

PyObject* dlpack_name = nullptr;

namespace {

// The deleter of what a Python object exported in a capsule may need Python. So it runs where
// Python does, and no C++ thread that drops the tensor waits for it. Tensors that come through the
// exchange API of a framework are not wrapped.
template <typename TManaged>
struct FromCapsule {
  TManaged lent;
  TManaged* original;

  explicit FromCapsule(TManaged* managed) : lent(*managed), original(managed) {
    lent.manager_ctx = this;
    lent.deleter = [](TManaged* self) {
      ReleaseWith(self->manager_ctx, [](void* context) {
        auto* self = static_cast<FromCapsule*>(context);
        ErrorAside reason;
        self->original->deleter(self->original);
        delete self;
      });
    };
  }
};

template <typename TManaged>
TVMFFIObject* ConsumeCapsule(PyObject* capsule, const char* name, const char* used_name,
                             const ImportOptions& options) {
  auto* managed = static_cast<TManaged*>(PyCapsule_GetPointer(capsule, name));
  if (managed == nullptr) return nullptr;
  std::unique_ptr<FromCapsule<TManaged>> wrapped;
  if (managed->deleter != nullptr) {
    wrapped.reset(new (std::nothrow) FromCapsule<TManaged>(managed));
    if (wrapped == nullptr) {
      PyErr_NoMemory();
      return nullptr;
    }
  }
  TVMFFIObject* h = ImportManaged(wrapped != nullptr ? &wrapped->lent : managed, options);
  if (h == nullptr) return nullptr;
  (void)wrapped.release();
  // Another consumer must not find it, nor the capsule's destructor. That one has nothing to do any
  // more, unless it has a context; JAX's would raise and clear an exception to find out.
  PyCapsule_SetName(capsule, used_name);
  if (PyCapsule_GetContext(capsule) == nullptr) PyCapsule_SetDestructor(capsule, nullptr);
  return h;
}

// Says why `obj` was not imported, after `expectation`.
void RaiseNoCapsule(PyObject* error, const char* expectation, PyObject* obj) {
  auto is = [obj](const char* name) { return PyCapsule_IsValid(obj, name) != 0; };
  if (!PyCapsule_CheckExact(obj)) {
    PyErr_Format(error, "%s, got %s", expectation, Py_TYPE(obj)->tp_name);
  } else if (is(kUsedCapsule) || is(kUsedVersionedCapsule)) {
    PyErr_Format(error, "%s: this capsule was consumed, which can be done only once", expectation);
  } else {
    const char* name = PyCapsule_GetName(obj);
    PyErr_Clear();
    PyErr_Format(error, "%s, got a capsule called '%.100s'", expectation,
                 name != nullptr ? name : "");
  }
}

template <typename TManaged>
void DropUnconsumed(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  ErrorAside unrelated;
  auto* managed = static_cast<TManaged*>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter != nullptr) managed->deleter(managed);
}

}  // namespace

TVMFFIObject* ImportCapsule(PyObject* capsule, const ImportOptions& options, PyObject* wrong_kind,
                            const char* expectation) {
  CriticalSection section(capsule);  // two threads must not consume one capsule
  if (PyCapsule_IsValid(capsule, kVersionedCapsule)) {
    return ConsumeCapsule<DLManagedTensorVersioned>(capsule, kVersionedCapsule,
                                                    kUsedVersionedCapsule, options);
  }
  if (PyCapsule_IsValid(capsule, kCapsule)) {
    return ConsumeCapsule<DLManagedTensor>(capsule, kCapsule, kUsedCapsule, options);
  }
  RaiseNoCapsule(wrong_kind, expectation, capsule);
  return nullptr;
}

TVMFFIObject* ImportFromMethod(PyObject* obj, const ImportOptions& options) {
  Ref capsule = Ref::Steal(PyObject_CallMethodNoArgs(obj, dlpack_name));
  if (!capsule) return nullptr;
  return ImportCapsule(capsule.get(), options, PyExc_ValueError,
                       "Expect __dlpack__() to return a dltensor capsule");
}

void DropCapsule(PyObject* capsule) { DropUnconsumed<DLManagedTensor>(capsule, kCapsule); }
void DropVersionedCapsule(PyObject* capsule) {
  DropUnconsumed<DLManagedTensorVersioned>(capsule, kVersionedCapsule);
}

int InitCapsules() {
  dlpack_name = PyUnicode_InternFromString("__dlpack__");
  return dlpack_name != nullptr ? 0 : -1;
}

}  // namespace tether_py
