// SPDX-License-Identifier: Apache-2.0
// The stream and the tensor allocator that the arguments of a call ask for, while it runs.
#ifndef TETHER_PYTHON_CALL_CALL_ENVIRONMENT_H_
#define TETHER_PYTHON_CALL_CALL_ENVIRONMENT_H_

#include <tvm/ffi/extra/c_env_api.h>

#include "python/convert/departures.h"
#include "python/convert/errors.h"
#include "python/wrap/arguments.h"

namespace tether_py {

class CallEnvironment {
 public:
  explicit CallEnvironment(const CallContext& context) : context_(context) {}
  // Both: false with an error set.
  bool Enter() {
    if (context_.device_type != -1) {
      int code = TVMFFIEnvSetStream(context_.device_type, context_.device_id, context_.stream,
                                    &previous_stream_);
      if (code != 0) return RaiseFromCall(code) != nullptr;
    }
    if (allocator() == nullptr) return true;
    int code = TVMFFIEnvSetDLPackManagedTensorAllocator(allocator(), 0, &previous_allocator_);
    return code == 0 || RaiseFromCall(code) != nullptr;
  }
  bool Leave() {
    if (context_.device_type != -1 && previous_stream_ != context_.stream &&
        TVMFFIEnvSetStream(context_.device_type, context_.device_id, previous_stream_, nullptr)) {
      PyErr_SetString(PyExc_RuntimeError, "Failed to recover stream");
      return false;
    }
    if (allocator() != nullptr && previous_allocator_ != allocator() &&
        TVMFFIEnvSetDLPackManagedTensorAllocator(previous_allocator_, 0, nullptr)) {
      PyErr_SetString(PyExc_RuntimeError, "Failed to recover DLPack managed tensor allocator");
      return false;
    }
    return true;
  }

 private:
  DLPackManagedTensorAllocator allocator() const {
    return context_.api != nullptr ? context_.api->managed_tensor_allocator : nullptr;
  }
  const CallContext& context_;
  TVMFFIStreamHandle previous_stream_ = nullptr;
  DLPackManagedTensorAllocator previous_allocator_ = nullptr;
};

// Makes a call with tensors of a framework among its arguments. False with an error set.
template <typename Call>
bool InEnvironment(PyObject* const* args, CallArguments* converted, TVMFFIAny* result,
                   Call&& call) {
  CallEnvironment environment(*converted->context());
  if (!environment.Enter()) return false;
  int code = call();
  bool left = environment.Leave();
  if (code != 0) {
    if (!left) PyErr_Clear();  // the error of the call is more useful
    RaiseFromCall(code, args, converted->size());
    return false;
  }
  if (!left) {
    ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(result).reset();
    return false;
  }
  AfterSuccess();
  return true;
}

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_CALL_ENVIRONMENT_H_
