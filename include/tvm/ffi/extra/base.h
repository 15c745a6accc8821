// SPDX-License-Identifier: Apache-2.0
// Visibility of the C++ functions that libtvm_ffi exports besides its C ABI.
//
// Define TVM_FFI_EXTRA_CXX_API before including any extra header to override it, for example with
// nothing when the extra sources are compiled into the client itself.
#ifndef TVM_FFI_EXTRA_BASE_H_
#define TVM_FFI_EXTRA_BASE_H_

#include <tvm/ffi/c_api.h>

#ifndef TVM_FFI_EXTRA_CXX_API
#define TVM_FFI_EXTRA_CXX_API TVM_FFI_DLL
#endif

#endif  // TVM_FFI_EXTRA_BASE_H_
