// SPDX-License-Identifier: Apache-2.0
// What the host environment provides to called code: streams, a tensor allocator, signal checks.
// Streams and the allocator belong to the calling thread; nothing here owns anything.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "core/static_tls.h"
#include "core/thread_end.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

struct StreamEntry {
  int32_t device_type;
  int32_t device_id;
  TVMFFIStreamHandle stream;
};

// A thread uses a handful of devices, so a scan beats any map.
class StreamTable {
 public:
  // The stream of a device, or NULL if none was set.
  TVMFFIStreamHandle* Find(int32_t device_type, int32_t device_id) {
    for (StreamEntry& entry : entries_) {
      if (entry.device_type == device_type && entry.device_id == device_id) return &entry.stream;
    }
    return nullptr;
  }
  void Add(int32_t device_type, int32_t device_id, TVMFFIStreamHandle stream) {
    if (stream != nullptr) entries_.push_back({device_type, device_id, stream});
  }

 private:
  std::vector<StreamEntry> entries_;
};

// Made by the first stream a thread sets. A plain pointer, so that reading needs no initialisation
// check, and destructors that run late find NULL instead of a destroyed table.
thread_local TETHER_STATIC_TLS StreamTable* thread_streams = nullptr;

void DropThreadStreams() { delete std::exchange(thread_streams, nullptr); }

StreamTable* MakeThreadStreams() {
  if (thread_streams == nullptr) {
    thread_streams = new StreamTable();
    ThreadEnd<DropThreadStreams>::Arm();
  }
  return thread_streams;
}

// Of a device for which this thread has not set a stream yet.
TVM_FFI_NO_INLINE int SetFirstStream(int32_t device_type, int32_t device_id,
                                     TVMFFIStreamHandle stream) {
  TVM_FFI_SAFE_CALL_BEGIN();
  if (device_type < 0 || device_id < 0) {
    TVM_FFI_THROW(ValueError) << "TVMFFIEnvSetStream: invalid device (" << device_type << ", "
                              << device_id << ")";
  }
  MakeThreadStreams()->Add(device_type, device_id, stream);
  TVM_FFI_SAFE_CALL_END();
}

thread_local TETHER_STATIC_TLS DLPackManagedTensorAllocator thread_allocator = nullptr;
std::atomic<DLPackManagedTensorAllocator> global_allocator{nullptr};

void RaiseAllocatorError(void*, const char* kind, const char* message) {
  TVMFFIErrorSetRaisedFromCStr(kind != nullptr ? kind : "RuntimeError",
                               message != nullptr ? message : "");
}

// Entry points of the interpreter, registered by its frontend.
struct InterpreterAPI {
  std::atomic<int (*)()> check_signals{nullptr};
  std::atomic<int (*)()> acquire{nullptr};
  std::atomic<void (*)(int)> release{nullptr};

  static InterpreterAPI* Global() {
    static InterpreterAPI api;
    return &api;
  }

  void Register(const char* name, void* symbol) {
    if (std::strcmp(name, "PyErr_CheckSignals") == 0) {
      check_signals = reinterpret_cast<int (*)()>(symbol);
    } else if (std::strcmp(name, "PyGILState_Ensure") == 0) {
      acquire = reinterpret_cast<int (*)()>(symbol);
    } else if (std::strcmp(name, "PyGILState_Release") == 0) {
      release = reinterpret_cast<void (*)(int)>(symbol);
    } else {
      TVM_FFI_THROW(ValueError) << "Unknown env API " << name;
    }
  }

  int CheckSignals() const {
    auto check = check_signals.load();
    if (check == nullptr) return 0;
    auto lock = acquire.load();
    auto unlock = release.load();
    if (lock == nullptr || unlock == nullptr) return check() != 0 ? -1 : 0;
    // The state is a token, not a flag: 0 means "already held" and is passed back like any other.
    int state = lock();
    int result = check();
    unlock(state);
    return result != 0 ? -1 : 0;
  }
};

}  // namespace
}  // namespace tether
}  // namespace ffi
}  // namespace tvm

using tvm::ffi::tether::InterpreterAPI;

int TVMFFIEnvSetStream(int32_t device_type, int32_t device_id, TVMFFIStreamHandle stream,
                       TVMFFIStreamHandle* opt_out_original_stream) {
  auto* streams = tvm::ffi::tether::thread_streams;
  TVMFFIStreamHandle* place = streams != nullptr ? streams->Find(device_type, device_id) : nullptr;
  if (place == nullptr) {
    // The default stream, which is what a device without an entry has, is nearly always meant.
    bool is_set = stream == nullptr && device_type >= 0 && device_id >= 0;
    int code = is_set ? 0 : tvm::ffi::tether::SetFirstStream(device_type, device_id, stream);
    if (code == 0 && opt_out_original_stream != nullptr) *opt_out_original_stream = nullptr;
    return code;
  }
  if (opt_out_original_stream != nullptr) *opt_out_original_stream = *place;
  *place = stream;
  return 0;
}

TVMFFIStreamHandle TVMFFIEnvGetStream(int32_t device_type, int32_t device_id) {
  auto* streams = tvm::ffi::tether::thread_streams;
  TVMFFIStreamHandle* place = streams != nullptr ? streams->Find(device_type, device_id) : nullptr;
  return place != nullptr ? *place : nullptr;
}

int TVMFFIEnvSetDLPackManagedTensorAllocator(
    DLPackManagedTensorAllocator allocator, int write_to_global_context,
    DLPackManagedTensorAllocator* opt_out_original_allocator) {
  namespace tether = tvm::ffi::tether;
  if (opt_out_original_allocator != nullptr) *opt_out_original_allocator = tether::thread_allocator;
  if (write_to_global_context != 0) tether::global_allocator.store(allocator);
  tether::thread_allocator = allocator;
  return 0;
}

DLPackManagedTensorAllocator TVMFFIEnvGetDLPackManagedTensorAllocator() {
  namespace tether = tvm::ffi::tether;
  if (tether::thread_allocator != nullptr) return tether::thread_allocator;
  return tether::global_allocator.load();
}

int TVMFFIEnvTensorAlloc(DLTensor* prototype, TVMFFIObjectHandle* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  if (prototype == nullptr || out == nullptr) {
    TVM_FFI_THROW(ValueError) << "TVMFFIEnvTensorAlloc: prototype and out must not be NULL";
  }
  DLPackManagedTensorAllocator allocate = TVMFFIEnvGetDLPackManagedTensorAllocator();
  if (allocate == nullptr) {
    TVM_FFI_THROW(RuntimeError) << "TVMFFIEnvTensorAlloc: allocator is nullptr, likely because "
                                   "TVMFFIEnvSetDLPackManagedTensorAllocator has not been called.";
  }
  DLManagedTensorVersioned* managed = nullptr;
  int code = allocate(prototype, &managed, nullptr, tvm::ffi::tether::RaiseAllocatorError);
  if (code != 0) return code;
  if (managed == nullptr) {
    TVM_FFI_THROW(RuntimeError)
        << "TVMFFIEnvTensorAlloc: failed to allocate a tensor from the allocator";
  }
  code = TVMFFITensorFromDLPackVersioned(managed, 0, 0, out);
  if (code != 0 && managed->deleter != nullptr) managed->deleter(managed);
  return code;
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFIEnvCheckSignals() { return InterpreterAPI::Global()->CheckSignals(); }

int TVMFFIEnvRegisterCAPI(const char* name, void* symbol) {
  TVM_FFI_SAFE_CALL_BEGIN();
  if (name == nullptr) TVM_FFI_THROW(ValueError) << "TVMFFIEnvRegisterCAPI: name is NULL";
  InterpreterAPI::Global()->Register(name, symbol);
  TVM_FFI_SAFE_CALL_END();
}
