// SPDX-License-Identifier: Apache-2.0
// A C++ library whose objects call Python when they die; test_pending_exceptions.py loads it.
#include <dlfcn.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/tvm_ffi.h>

#include <csignal>
#include <memory>

namespace {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

// A function that calls at_end() when it dies, and passes over what that throws.
template <typename F>
ffi::Function Guard(F at_end) {
  std::shared_ptr<void> guard(nullptr, [at_end](void*) {
    try {
      at_end();
    } catch (...) {
    }
  });
  return ffi::Function::FromTyped([guard] {});
}

// An error of a binary from before errors had causes and contexts, and what lies behind it.
struct ShortErrorObj : public ffi::Object {
  TVMFFIByteArray kind{"ValueError", 10}, message{"short", 5}, backtrace{"", 0};
  void (*update_backtrace)(TVMFFIObjectHandle, const TVMFFIByteArray*,
                           int32_t) = [](TVMFFIObjectHandle, const TVMFFIByteArray*, int32_t) {};
  uintptr_t behind[2] = {0x11, 0x11};
  static int32_t RuntimeTypeIndex() { return ffi::TypeIndex::kTVMFFIError; }
};

// The current_work_stream of a framework in which Ctrl-C arrives.
int InterruptedStream(int32_t, int32_t, void**) {
  auto set_error = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "PyErr_SetNone"));
  set_error(*static_cast<void**>(dlsym(RTLD_DEFAULT, "PyExc_KeyboardInterrupt")));
  return -1;
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::GlobalDef()
      .def("destructor_client.call_at_end",
           [](const ffi::Function& f) { return Guard([f] { f(); }); })
      .def("destructor_client.set_at_end",
           [](const ffi::ObjectRef& obj, const ffi::String& field, const ffi::Any& value) {
             return Guard([obj, field, value] {
               refl::FieldSetter(obj->GetTypeKey(), field.c_str())(obj, value);
             });
           })
      .def("destructor_client.check_signals_at_end",
           [] {
             return Guard([] {
               std::raise(SIGUSR1);
               TVMFFIEnvCheckSignals();
             });
           })
      .def("destructor_client.short_error",
           [] { return ffi::ObjectRef(ffi::make_object<ShortErrorObj>()); })
      .def("destructor_client.interrupted_stream",
           [] { return reinterpret_cast<int64_t>(InterruptedStream); });
}
