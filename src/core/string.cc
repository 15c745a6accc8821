// SPDX-License-Identifier: Apache-2.0
// Strings and bytes from foreign memory.
#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

using namespace tvm::ffi;

namespace {

template <typename T>
int FromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  tether::StoreNone(out);
  if (input->data == nullptr && input->size != 0) {
    TVM_FFI_THROW(ValueError) << "byte array of size " << input->size << " has no data";
  }
  TypeTraits<T>::MoveToAny(T(*input), out);
  TVM_FFI_SAFE_CALL_END();
}

}  // namespace

int TVMFFIStringFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out) {
  return FromByteArray<String>(input, out);
}

int TVMFFIBytesFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out) {
  return FromByteArray<Bytes>(input, out);
}
