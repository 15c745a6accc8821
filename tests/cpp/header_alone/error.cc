// SPDX-License-Identifier: Apache-2.0
// Names that clients use after including error.h and nothing else.
#include <tvm/ffi/error.h>

std::string UseStandardNames(const char* text) {
  void* block = malloc(8);
  std::memcpy(block, text, strcmp(text, "") == 0 ? 0 : 1);
  free(block);
  std::unique_ptr<int> pointer(new int(1));
  std::vector<std::optional<std::string>> parts;
  std::ostringstream os;
  os << *pointer << parts.size();
  std::cout << os.str();
  static_assert(std::is_same_v<std::size_t, size_t>);
  return std::string(text);
}

tvm::ffi::ObjectPtr<tvm::ffi::ErrorObj> UseOurNames() {
  return tvm::ffi::make_object<tvm::ffi::ErrorObj>();
}
