// SPDX-License-Identifier: Apache-2.0
//
// Small functions that every frontend calls in its own tests: echo, apply, raise an error, plain C
// symbols to wrap, and functions exported from a library.
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/registry.h>

#include <chrono>
#include <iostream>
#include <optional>
#include <thread>

namespace tvm {
namespace ffi {
namespace tether_testing {

namespace refl = reflection;

// These two show up by name in backtraces.
TVM_FFI_NO_INLINE void TestRaiseError(String kind, String msg) {
  throw Error(kind, msg, TVMFFIBacktrace(__FILE__, __LINE__, TVM_FFI_FUNC_SIG, 0));
}

TVM_FFI_NO_INLINE void TestApply(PackedArgs args, Any* result) {
  if (args.size() == 0) TVM_FFI_THROW(TypeError) << "testing.apply expects a function to call";
  args[0].cast<Function>().CallPacked(args.Slice(1), result);
}

// What a C++ program does that keeps failures: the error of a call as a value.
Optional<Error> CatchError(Function f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

void KeepAndThrow(List<Any> kept, Function f) {
  try {
    f();
  } catch (const Error& error) {
    kept.push_back(error);
    throw;
  }
}

void CatchInThread(List<Any> kept, Function f) {
  std::optional<Error> failure;  // nothing may leave a thread
  std::thread([&] {
    try {
      kept.push_back(CatchError(f));
    } catch (...) {
      failure = tether::CaughtError();
    }
  }).join();
  if (failure.has_value()) throw *failure;
}

void Echo(PackedArgs args, Any* result) {
  if (args.size() == 0) TVM_FFI_THROW(TypeError) << "testing.echo expects an argument to return";
  *result = args[0];
}

void RunCheckSignal(int seconds) {
  for (int i = 0; i < seconds; ++i) {
    if (TVMFFIEnvCheckSignals() != 0) throw EnvErrorAlreadySet();
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  std::cout << "Function finished without catching signal" << std::endl;
}

int AddOneSafeCall(void*, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  TVM_FFI_SAFE_CALL_BEGIN();
  if (num_args != 1) {
    TVM_FFI_THROW(TypeError) << "add_one expects 1 argument, but got " << num_args;
  }
  int64_t x = AnyView::CopyFromTVMFFIAny(args[0]).cast<int64_t>();
  *result = AnyView(x + 1).CopyToTVMFFIAny();
  TVM_FFI_SAFE_CALL_END();
}

// The calling convention of compilers that pass every argument by its address.
void AddOnePackedByAddress(void** packed) {
  auto* handle = *static_cast<void**>(packed[0]);
  auto* args = *static_cast<const TVMFFIAny**>(packed[1]);
  int32_t num_args = *static_cast<int32_t*>(packed[2]);
  auto* result = *static_cast<TVMFFIAny**>(packed[3]);
  *static_cast<int*>(packed[4]) = AddOneSafeCall(handle, args, num_args, result);
}

template <typename F>
int64_t AddressOf(F* function) {
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(function));
}

int64_t IdentityInt(int64_t x) { return x; }

int AddWithDocstring(int a, int b) { return a + b; }

TVM_FFI_DLL_EXPORT_TYPED_FUNC(testing_dll_schema_id_int, IdentityInt)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(testing_dll_test_add_with_docstring, AddWithDocstring)
TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC(testing_dll_test_add_with_docstring,
                                  R"(Add two integers and return the sum.

Parameters
----------
a : int
    First integer
b : int
    Second integer

Returns
-------
result : int
    Sum of a and b)")

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::GlobalDef()
      .def("testing.test_raise_error", TestRaiseError)
      .def("testing.add_one", [](int x) { return x + 1; })
      .def(
          "testing.add_one_short", [](int x) { return x + 1; },
          refl::Metadata{{"release_gil", false}})
      .def_packed("testing.nop", [](PackedArgs, Any*) {})
      .def_packed("testing.echo", Echo)
      .def_packed("testing.apply", TestApply)
      .def("testing.catch_error", CatchError)
      .def("testing.throw_error", [](Error error) { throw error; })
      .def("testing.keep_and_throw", KeepAndThrow)
      .def("testing.catch_in_thread", CatchInThread)
      .def("testing.run_check_signal", RunCheckSignal)
      .def("testing.object_use_count",
           [](const Object* object) { return static_cast<int64_t>(object->use_count()); })
      .def("testing.get_add_one_c_symbol", [] { return AddressOf(AddOneSafeCall); })
      .def("testing.get_mlir_add_one_c_symbol", [] { return AddressOf(AddOnePackedByAddress); })
      .def("testing.optional_tensor_view_has_value",
           [](const Optional<TensorView>& tensor) { return tensor.has_value(); });
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIEnvModRegisterSystemLibSymbol(
      "__tvm_ffi_testing.add_one", reinterpret_cast<void*>(AddOneSafeCall)));
}

}  // namespace tether_testing
}  // namespace ffi
}  // namespace tvm

// Referring to it makes a linker keep the library although nothing else of it is named.
extern "C" TVM_FFI_DLL_EXPORT int TVMFFITestingDummyTarget() { return 0; }
