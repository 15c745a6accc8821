// SPDX-License-Identifier: Apache-2.0
// A C++ library that calls functions it is given, in whatever language they are written.
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/string.h>
#include <tvm/ffi/tvm_ffi.h>

namespace ffi = tvm::ffi;

namespace {

// The midpoint rule.
double Integrate(const ffi::Function& f, double begin, double end, int64_t steps) {
  double width = (end - begin) / static_cast<double>(steps);
  double sum = 0;
  for (int64_t i = 0; i < steps; ++i) {
    sum += f(begin + (static_cast<double>(i) + 0.5) * width).cast<double>();
  }
  return sum * width;
}

ffi::Optional<ffi::Function> listener;

void OnEvent(ffi::Optional<ffi::Function> f) { listener = std::move(f); }

ffi::String Fire(const ffi::String& name) {
  if (!listener.has_value()) return "nobody listens";
  return (*listener)(name).cast<ffi::String>();
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(integrate, Integrate);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(on_event, OnEvent);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(fire, Fire);
