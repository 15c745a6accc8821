// SPDX-License-Identifier: Apache-2.0
// What the setters of tensors of other libraries share.
#ifndef TETHER_PYTHON_DATA_TENSOR_ARGUMENT_H_
#define TETHER_PYTHON_DATA_TENSOR_ARGUMENT_H_

#include "python/base/python_api.h"
#include "python/convert/convert.h"

namespace tether_py {

// Takes over h, which may be NULL with an error set.
inline bool StoreTensor(TVMFFIObject* h, TVMFFIAny* out, Arguments* args) {
  if (h == nullptr) return false;
  tie::StoreObject(h, out);
  args->Keep(*out);
  return true;
}

// The stream of the first device that is not the CPU is the call's.
TVM_FFI_NO_INLINE inline void RecordStream(const DLPackExchangeAPI* api, DLDevice device,
                                           CallContext* context) {
  if (device.device_type == kDLCPU || context->device_type != -1) return;
  void* stream = nullptr;
  if (api->current_work_stream == nullptr ||
      api->current_work_stream(device.device_type, device.device_id, &stream) != 0) {
    PassOver();
    return;
  }
  context->SetStream(device, stream);
}

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_TENSOR_ARGUMENT_H_
