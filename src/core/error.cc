// SPDX-License-Identifier: Apache-2.0
// Error objects and the slot that holds each thread's raised error.
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/string.h>

#include <cstdio>
#include <new>
#include <string>
#include <utility>

#include "thread_end.h"

namespace tvm {
namespace ffi {
namespace {

class OwnedError : public ErrorObj {
 public:
  OwnedError(std::string_view kind_text, std::string_view message_text,
             std::string_view backtrace_text)
      : kind_(kind_text), message_(message_text), backtrace_(backtrace_text) {
    kind = tether::AsBytes(kind_);
    message = tether::AsBytes(message_);
    backtrace = tether::AsBytes(backtrace_);
    update_backtrace = Update;
  }

 private:
  static void Update(TVMFFIObjectHandle handle, const TVMFFIByteArray* text, int32_t mode) {
    auto* self = static_cast<OwnedError*>(static_cast<Object*>(handle));
    std::string_view addition = ToStringView(*text);
    try {
      if (mode == kTVMFFIBacktraceUpdateModeAppend) {
        self->backtrace_.append(addition);
      } else {
        self->backtrace_.assign(addition);
      }
    } catch (const std::bad_alloc&) {  // the error is the same without these frames
    }
    self->backtrace = tether::AsBytes(self->backtrace_);
  }

  std::string kind_;
  std::string message_;
  std::string backtrace_;
};

// A plain pointer, so that it can be used as long as the thread runs.
thread_local TVMFFIObjectHandle raised = nullptr;

void DropRaised() { details::ObjectUnsafe::DecRefObjectHandle(std::exchange(raised, nullptr)); }
using RaisedEnd = tether::ThreadEnd<DropRaised>;

// Takes over `error`. The old one is released last: its destructor may raise again.
void SetRaised(TVMFFIObjectHandle error) {
  if (error != nullptr) RaisedEnd::Arm();
  details::ObjectUnsafe::DecRefObjectHandle(std::exchange(raised, error));
}

TVMFFIObjectHandle MakeError(std::string_view kind, std::string_view message,
                             std::string_view backtrace, TVMFFIObjectHandle cause_chain,
                             TVMFFIObjectHandle extra_context) {
  ObjectPtr<OwnedError> error = make_object<OwnedError>(kind, message, backtrace);
  if (cause_chain != nullptr) details::ObjectUnsafe::IncRefObjectHandle(cause_chain);
  if (extra_context != nullptr) details::ObjectUnsafe::IncRefObjectHandle(extra_context);
  error->cause_chain = cause_chain;
  error->extra_context = extra_context;
  return details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(error));
}

// Made when the library is loaded: when memory runs out it is too late. All threads share it, so
// its text stays as it is.
class OutOfMemoryError : public ErrorObj {
 public:
  OutOfMemoryError() {
    kind = tether::AsBytes("MemoryError");
    message = tether::AsBytes("out of memory");
    backtrace = tether::AsBytes("");
    update_backtrace = [](TVMFFIObjectHandle, const TVMFFIByteArray*, int32_t) {};
  }
};
TVMFFIObject* const out_of_memory = [] {
  RaisedEnd::Arm();  // early, for one of the first keys
  return details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(make_object<OutOfMemoryError>());
}();

void RaiseOutOfMemory() { TVMFFIErrorSetRaised(out_of_memory); }

}  // namespace

namespace tether {

void Raise(const char* kind, std::string_view message) noexcept {
  try {
    const TVMFFIByteArray* backtrace = TVMFFIBacktrace(nullptr, 0, nullptr, 0);
    SetRaised(MakeError(kind != nullptr ? kind : "RuntimeError", message, ToStringView(*backtrace),
                        nullptr, nullptr));
  } catch (const std::bad_alloc&) {
    RaiseOutOfMemory();
  }
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm

using namespace tvm::ffi;

void TVMFFIErrorMoveFromRaised(TVMFFIObjectHandle* result) {
  *result = std::exchange(raised, nullptr);
}

void TVMFFIErrorSetRaised(TVMFFIObjectHandle error) {
  if (error != nullptr) details::ObjectUnsafe::IncRefObjectHandle(error);
  SetRaised(error);
}

void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) {
  tether::Raise(kind, message != nullptr ? message : "");
}

void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** message_parts,
                                       int32_t num_parts) {
  try {
    std::string message;
    for (int32_t i = 0; i < num_parts; ++i) {
      if (message_parts[i] != nullptr) message += message_parts[i];
    }
    tether::Raise(kind, message);
  } catch (const std::bad_alloc&) {
    RaiseOutOfMemory();
  }
}

int TVMFFIErrorCreate(const TVMFFIByteArray* kind, const TVMFFIByteArray* message,
                      const TVMFFIByteArray* backtrace, TVMFFIObjectHandle* out) {
  return TVMFFIErrorCreateWithCauseAndExtraContext(kind, message, backtrace, nullptr, nullptr, out);
}

int TVMFFIErrorCreateWithCauseAndExtraContext(
    const TVMFFIByteArray* kind, const TVMFFIByteArray* message, const TVMFFIByteArray* backtrace,
    TVMFFIObjectHandle cause_chain, TVMFFIObjectHandle extra_context, TVMFFIObjectHandle* out) {
  TVM_FFI_LOG_EXCEPTION_CALL_BEGIN();
  try {
    *out = MakeError(ToStringView(*kind), ToStringView(*message), ToStringView(*backtrace),
                     cause_chain, extra_context);
    return 0;
  } catch (const std::bad_alloc&) {
    return -1;
  }
  TVM_FFI_LOG_EXCEPTION_CALL_END(TVMFFIErrorCreate);
}
