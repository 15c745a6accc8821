// SPDX-License-Identifier: Apache-2.0
// What the memory of an object refers to: what is learned at import.
#include "python/wrap/edges.h"

#include <tvm/ffi/function.h>

namespace tether_py {

TVMFFIObject* (*module_of_function)(TVMFFIObject* function) = nullptr;

void LearnEdges() {
  HasPythonFields(0);  // finds the column, for which there must be memory
  void* module_of = ffi::Function::GetGlobalRequired("ffi.tether.ModuleOfFunction")().cast<void*>();
  module_of_function = reinterpret_cast<decltype(module_of_function)>(module_of);
}

}  // namespace tether_py
