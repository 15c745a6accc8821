// SPDX-License-Identifier: Apache-2.0
// The name of this header up to 0.1.14.
#ifndef TVM_FFI_FUNCTION_DETAILS_H_
#define TVM_FFI_FUNCTION_DETAILS_H_

#include <tvm/ffi/function_detail.h>

#endif  // TVM_FFI_FUNCTION_DETAILS_H_
