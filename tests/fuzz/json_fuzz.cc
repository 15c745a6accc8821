// SPDX-License-Identifier: Apache-2.0
//
// libFuzzer target for json::Parse and json::Stringify.
//
//   clang++ -std=c++17 -g -O1 -fsanitize=fuzzer,address,undefined -DTVM_FFI_EXPORTS \
//     -DTVM_FFI_USE_LIBBACKTRACE=0 -Iinclude -Isrc tests/fuzz/json_fuzz.cc \
//     src/core/*.cc src/extra/*.cc src/tie/*.cc -pthread -ldl -o json_fuzz
//   ./json_fuzz -dict=tests/fuzz/json.dict -max_total_time=600 work tests/fuzz/corpus/json
//
// Whatever the bytes are, the parser gives a value or an error with a place inside the text, and
// what it accepted is written and read again without change.
#include <tvm/ffi/extra/json.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using namespace tvm::ffi;

// Offset named at the end of an error message: "...: line 1 column 4 (char 3)".
size_t OffsetIn(const std::string& message) {
  size_t at = message.rfind("(char ");
  if (at == std::string::npos || message.back() != ')') std::abort();
  return std::stoull(message.substr(at + 6));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  String text(reinterpret_cast<const char*>(data), size);
  String error = "untouched";
  json::Value value = json::Parse(text, &error);
  if (!error.empty()) {
    if (OffsetIn(error) > size) std::abort();
    return 0;
  }
  String compact = json::Stringify(value);
  if (json::Stringify(json::Parse(compact)) != compact) std::abort();
  String indented = json::Stringify(value, 2);
  if (json::Stringify(json::Parse(indented)) != compact) std::abort();
  return 0;
}
