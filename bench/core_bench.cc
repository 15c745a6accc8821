// SPDX-License-Identifier: Apache-2.0
//
// Micro-benchmarks of the core, one source compiled twice: against our headers and library, and
// against those of the newest reference release. bench/run_core.py builds both, runs them in turns
// and compares. One iteration is what the name says; container ones do kItems steps.
//
// With BENCH_ITERATIONS=n in the environment every benchmark makes n iterations, and callgrind
// (when the program runs under it) writes what each one cost, as `name n`.
#include <benchmark/benchmark.h>
#include <tvm/ffi/tvm_ffi.h>
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

using tvm::ffi::Any;
using tvm::ffi::AnyHash;
using tvm::ffi::AnyView;
using tvm::ffi::Array;
using tvm::ffi::Function;
using tvm::ffi::make_object;
using tvm::ffi::Map;
using tvm::ffi::Object;
using tvm::ffi::ObjectPtr;
using tvm::ffi::ObjectRef;
using tvm::ffi::String;

constexpr int64_t kItems = 64;
const char* const kShortText = "key";
const char* const kLongText = "a string that does not fit into the cell";

int64_t FixedLength() {
  const char* text = std::getenv("BENCH_ITERATIONS");
  return text != nullptr ? std::atoll(text) : 0;
}

void FixLength(benchmark::internal::Benchmark* benchmark) {
  if (int64_t length = FixedLength()) benchmark->Iterations(length);
}

// Cuts callgrind's counts after each benchmark.
class CountReporter : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override {
    Cut("start");
    return true;
  }
  void ReportRuns(const std::vector<Run>& runs) override { Cut(runs[0].run_name.function_name); }

 private:
  static void Cut([[maybe_unused]] const std::string& name) {
#ifdef CALLGRIND_DUMP_STATS_AT
    std::string mark = name + " " + std::to_string(FixedLength());
    CALLGRIND_DUMP_STATS_AT(mark.c_str());
#endif
  }
};

class PairObj : public Object {
 public:
  int64_t a;
  int64_t b;
  PairObj(int64_t a, int64_t b) : a(a), b(b) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("bench.Pair", PairObj, Object);
};

void MakeObject(benchmark::State& state) {
  for (auto _ : state) {
    ObjectPtr<PairObj> pair = make_object<PairObj>(1, 2);
    benchmark::DoNotOptimize(pair);
  }
}
BENCHMARK(MakeObject)->Apply(FixLength);

// Many alive at once: the allocator cannot hand the same block back each time.
void MakeObjectBatch(benchmark::State& state) {
  std::vector<ObjectPtr<PairObj>> pairs(1024);
  for (auto _ : state) {
    for (ObjectPtr<PairObj>& pair : pairs) pair = make_object<PairObj>(1, 2);
    benchmark::DoNotOptimize(pairs.data());
  }
}
BENCHMARK(MakeObjectBatch)->Apply(FixLength);

void FunctionCall(benchmark::State& state) {
  Function add = Function::FromTyped([](int a, int b) { return a + b; });
  int i = 0;
  for (auto _ : state) {
    i = add(i, 1).cast<int>();
    benchmark::DoNotOptimize(i);
  }
}
BENCHMARK(FunctionCall)->Apply(FixLength);

void FunctionCallThroughC(benchmark::State& state) {
  Function add = Function::FromTyped([](int a, int b) { return a + b; });
  TVMFFIObjectHandle handle = const_cast<Object*>(static_cast<const Object*>(add.get()));
  TVMFFIAny args[2] = {AnyView(1).CopyToTVMFFIAny(), AnyView(2).CopyToTVMFFIAny()};
  for (auto _ : state) {
    TVMFFIAny result = AnyView(nullptr).CopyToTVMFFIAny();
    int code = TVMFFIFunctionCall(handle, args, 2, &result);
    benchmark::DoNotOptimize(code);
    benchmark::DoNotOptimize(result);
  }
}
BENCHMARK(FunctionCallThroughC)->Apply(FixLength);

void AnyCopyInt(benchmark::State& state) {
  Any value = 42;
  for (auto _ : state) {
    benchmark::DoNotOptimize(value);  // or a compiler copies the constant instead
    Any copy = value;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(AnyCopyInt)->Apply(FixLength);

// A value that was just made is copied in halves: a load of all 16 bytes would wait for the stores.
void AnyMakeAndCopyInt(benchmark::State& state) {
  int64_t number = 42;
  for (auto _ : state) {
    benchmark::DoNotOptimize(number);
    Any value = number;
    benchmark::DoNotOptimize(value);
    Any copy = value;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(AnyMakeAndCopyInt)->Apply(FixLength);

void AnyCopyObject(benchmark::State& state) {
  Any value = ObjectRef(make_object<PairObj>(1, 2));
  for (auto _ : state) {
    benchmark::DoNotOptimize(value);
    Any copy = value;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(AnyCopyObject)->Apply(FixLength);

void ArrayPush(benchmark::State& state) {
  for (auto _ : state) {
    Array<int64_t> array;
    for (int64_t i = 0; i < kItems; ++i) array.push_back(i);
    benchmark::DoNotOptimize(array);
  }
}
BENCHMARK(ArrayPush)->Apply(FixLength);

void ArrayIndex(benchmark::State& state) {
  Array<int64_t> array;
  for (int64_t i = 0; i < kItems; ++i) array.push_back(i);
  for (auto _ : state) {
    int64_t sum = 0;
    for (int64_t i = 0; i < kItems; ++i) sum += array[i];
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(ArrayIndex)->Apply(FixLength);

void ArrayIndexObject(benchmark::State& state) {
  Array<ObjectRef> array;
  for (int64_t i = 0; i < kItems; ++i) array.push_back(ObjectRef(make_object<PairObj>(i, i)));
  for (auto _ : state) {
    for (int64_t i = 0; i < kItems; ++i) benchmark::DoNotOptimize(array[i].get());
  }
}
BENCHMARK(ArrayIndexObject)->Apply(FixLength);

std::vector<String> Keys() {
  std::vector<String> keys;
  for (int64_t i = 0; i < kItems; ++i) keys.push_back(String("parameter_" + std::to_string(i)));
  return keys;
}

void MapInsertInt(benchmark::State& state) {
  for (auto _ : state) {
    Map<int64_t, int64_t> map;
    for (int64_t i = 0; i < kItems; ++i) map.Set(i, i);
    benchmark::DoNotOptimize(map);
  }
}
BENCHMARK(MapInsertInt)->Apply(FixLength);

void MapInsertString(benchmark::State& state) {
  std::vector<String> keys = Keys();
  for (auto _ : state) {
    Map<String, int64_t> map;
    for (int64_t i = 0; i < kItems; ++i) map.Set(keys[i], i);
    benchmark::DoNotOptimize(map);
  }
}
BENCHMARK(MapInsertString)->Apply(FixLength);

void MapLookupInt(benchmark::State& state) {
  Map<int64_t, int64_t> map;
  for (int64_t i = 0; i < kItems; ++i) map.Set(i, i);
  for (auto _ : state) {
    int64_t sum = 0;
    for (int64_t i = 0; i < kItems; ++i) sum += map[i];
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(MapLookupInt)->Apply(FixLength);

void MapLookupString(benchmark::State& state) {
  std::vector<String> keys = Keys();
  Map<String, int64_t> map;
  for (int64_t i = 0; i < kItems; ++i) map.Set(keys[i], i);
  for (auto _ : state) {
    int64_t sum = 0;
    for (const String& key : keys) sum += map[key];
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(MapLookupString)->Apply(FixLength);

void MapLookupSmall(benchmark::State& state) {
  Map<String, int64_t> map = {{"alpha", 1}, {"beta", 2}, {"gamma", 3}};
  String key = "gamma";
  for (auto _ : state) benchmark::DoNotOptimize(map[key]);
}
BENCHMARK(MapLookupSmall)->Apply(FixLength);

void StringConstruct(benchmark::State& state, const char* text) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(text);
    String string(text);
    benchmark::DoNotOptimize(string);
  }
}
BENCHMARK_CAPTURE(StringConstruct, small, kShortText)->Apply(FixLength);
BENCHMARK_CAPTURE(StringConstruct, heap, kLongText)->Apply(FixLength);

void StringHash(benchmark::State& state, const char* text) {
  Any string = String(text);
  for (auto _ : state) {
    benchmark::DoNotOptimize(string);
    benchmark::DoNotOptimize(AnyHash()(string));
  }
}
BENCHMARK_CAPTURE(StringHash, small, kShortText)->Apply(FixLength);
BENCHMARK_CAPTURE(StringHash, heap, kLongText)->Apply(FixLength);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (FixedLength() == 0) {
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }
  CountReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
}
