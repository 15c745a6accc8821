// SPDX-License-Identifier: Apache-2.0
// The C++ side of run.py: frames that must not be unwound, threads that call back, threads that
// drop.
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/tvm_ffi.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

// Stands in a frame that calls Python. Its destructor before the call has returned means that the
// thread was unwound: then the process fails, with a word why.
class Canary {
 public:
  ~Canary() {
    if (returned) return;
    const char text[] = "a frame of the client was unwound\n";
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(98);
    _exit(99);
  }
  bool returned = false;
};

ffi::Any Call(const ffi::Function& callback, const ffi::Any& arg) {
  Canary canary;
  try {
    ffi::Any result = callback(arg);
    canary.returned = true;
    return result;
  } catch (const std::exception&) {
    canary.returned = true;
    throw;
  }
}

// Destructors are noexcept, and what they drop may run Python code.
void Drop(ffi::Any value) noexcept {
  Canary canary;
  value.reset();
  canary.returned = true;
}

template <typename Body>
void StartThreads(int64_t count, Body body) {
  for (int64_t i = 0; i < count; ++i) {
    std::thread([body] {
      // Until the interpreter says no.
      try {
        for (;;) body();
      } catch (const std::exception&) {
      }
    }).detach();
  }
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::GlobalDef()
      .def("exit_client.call", Call)
      .def("exit_client.drop", [](ffi::Any value) { Drop(std::move(value)); })
      .def("exit_client.check_signals",
           [] {
             Canary canary;
             for (int i = 0; i < 100; ++i) TVMFFIEnvCheckSignals();
             canary.returned = true;
           })
      .def("exit_client.start_callers",
           [](ffi::Function callback, ffi::Any arg, int64_t count) {
             StartThreads(count, [callback, arg] { Call(callback, arg); });
           })
      .def("exit_client.start_droppers", [](ffi::Function make, int64_t count) {
        StartThreads(count, [make] { Drop(make()); });
      });
}

}  // namespace
