// SPDX-License-Identifier: Apache-2.0
// Names that clients use after including function.h and nothing else.
#include <tvm/ffi/function.h>

std::tuple<tvm::ffi::Function, std::function<int(int)>> UseNames() {
  std::function<int(int)> twice = [](int x) { return 2 * x; };
  return std::make_tuple(tvm::ffi::Function::FromTyped(twice), twice);
}
