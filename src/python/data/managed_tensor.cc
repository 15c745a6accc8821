// SPDX-License-Identifier: Apache-2.0
// Managed tensors of DLPack, as they are imported.
//
// Every import checks the geometry first and takes the memory over last, so a tensor that is
// refused still belongs to whoever offered it.
#include "python/data/managed_tensor.h"

#include <tvm/ffi/container/tensor.h>

#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/wrap/wrapper_object.h"

namespace tether_py {

bool CheckGeometrySlow(const DLTensor& t) {
  const ffi::tether::Defect defect = ffi::tether::FindDefect(t);
  if (TVM_FFI_PREDICT_TRUE(defect == ffi::tether::Defect::kNone)) return true;
  PyErr_SetString(PyExc_ValueError, ffi::tether::Describe(defect, t).c_str());
  return false;
}

bool CheckVersion(const DLPackVersion& version, const char* what) {
  if (TVM_FFI_PREDICT_TRUE(version.major == DLPACK_MAJOR_VERSION)) return true;
  PyErr_Format(PyExc_BufferError, "%s has DLPack version %u.%u; only %d.x is understood", what,
               version.major, version.minor, DLPACK_MAJOR_VERSION);
  return false;
}

TVMFFIObject* ImportManaged(DLManagedTensor* managed, const ImportOptions& options) {
  TVMFFIObjectHandle out = nullptr;
  if (!CheckGeometry(managed->dl_tensor)) return nullptr;
  int code =
      TVMFFITensorFromDLPack(managed, options.require_alignment, options.require_contiguous, &out);
  if (code != 0) RaiseFromCall(code);
  return static_cast<TVMFFIObject*>(out);
}

TVMFFIObject* ImportManaged(DLManagedTensorVersioned* managed, const ImportOptions& options) {
  TVMFFIObjectHandle out = nullptr;
  if (!CheckVersion(managed->version, "the tensor") || !CheckGeometry(managed->dl_tensor)) {
    return nullptr;
  }
  // The flag says how elements of less than a byte are stored. The C function refuses it for all.
  const uint64_t flags = managed->flags;
  if (managed->dl_tensor.dtype.bits % 8 == 0) {
    managed->flags &= ~uint64_t{DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED};
  }
  int code = TVMFFITensorFromDLPackVersioned(managed, options.require_alignment,
                                             options.require_contiguous, &out);
  if (code == 0) return static_cast<TVMFFIObject*>(out);
  managed->flags = flags;
  RaiseFromCall(code);
  return nullptr;
}

void DeleteManaged(DLManagedTensorVersioned* managed) {
  ErrorAside reason;
  if (managed->deleter != nullptr) managed->deleter(managed);
}

}  // namespace tether_py
