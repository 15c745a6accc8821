// SPDX-License-Identifier: Apache-2.0
// Names that clients use after including any.h and nothing else.
#include <tvm/ffi/any.h>

tvm::Any UseOurNames(tvm::AnyView view) {
  tvm::ffi::String text = view.cast<tvm::ffi::String>();
  TVM_FFI_CHECK(!text.empty(), ValueError) << "empty";
  TVM_FFI_ICHECK_EQ(text.size(), 1u);
  if (text == "e") throw tvm::ffi::Error("ValueError", "e", "");
  if (text == "t") TVM_FFI_THROW(TypeError) << "t";
  return tvm::ffi::Bytes(text.data(), text.size());
}

bool UseStandardNames(std::string_view text) {
  std::ostringstream os;
  os << std::setw(3) << std::numeric_limits<int>::max();
  std::cout << os.str();
  return !text.empty() && isdigit(static_cast<unsigned char>(text[0])) != 0;
}
