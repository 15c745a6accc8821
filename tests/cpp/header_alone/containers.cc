// SPDX-License-Identifier: Apache-2.0
// Names that clients use after including the container headers and nothing else.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>

size_t UseNames(const tvm::ffi::Array<int>& array,
                const tvm::ffi::Map<tvm::ffi::String, int>& map) {
  std::vector<int> values(array.begin(), array.end());
  std::unordered_map<std::string, int> copy;
  for (const auto& [key, value] : map) copy[key] = value;
  return static_cast<size_t>(std::find(values.begin(), values.end(), 1) - values.begin()) +
         copy.size();
}
