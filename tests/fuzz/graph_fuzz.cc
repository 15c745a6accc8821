// SPDX-License-Identifier: Apache-2.0
//
// libFuzzer target for FromJSONGraph and ToJSONGraph; structural hash and equality get to see what
// came out.
//
//   clang++ -std=c++17 -g -O1 -fsanitize=fuzzer,address,undefined -DTVM_FFI_EXPORTS \
//     -DTVM_FFI_USE_LIBBACKTRACE=0 -Iinclude -Isrc tests/fuzz/graph_fuzz.cc \
//     src/core/*.cc src/extra/*.cc src/tie/*.cc src/testing/*.cc -pthread -ldl -o graph_fuzz
//   ./graph_fuzz -dict=tests/fuzz/graph.dict -max_total_time=600 work tests/fuzz/corpus/graph
//
// A document is refused with an Error or gives a value; that value, written and read again, is
// written the same way.
#include <tvm/ffi/extra/serialization.h>
#include <tvm/ffi/extra/structural_equal.h>
#include <tvm/ffi/extra/structural_hash.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace tvm::ffi;

// True if the call came back, false if it raised an Error; anything else ends the process.
template <typename F>
bool Succeeds(F&& call) {
  try {
    call();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  String error;
  json::Value document = json::Parse(String(reinterpret_cast<const char*>(data), size), &error);
  if (!error.empty()) return 0;
  Any value;
  if (!Succeeds([&] { value = FromJSONGraph(document); })) return 0;
  json::Value written;
  if (Succeeds([&] { written = ToJSONGraph(value); })) {
    json::Value again = ToJSONGraph(FromJSONGraph(written));
    if (json::Stringify(again) != json::Stringify(written)) std::abort();
  }
  uint64_t hash = 0;
  if (Succeeds([&] { hash = StructuralHash::Hash(value); })) {
    if (!StructuralEqual::Equal(value, value)) std::abort();
    if (StructuralHash::Hash(value) != hash) std::abort();
  }
  return 0;
}
