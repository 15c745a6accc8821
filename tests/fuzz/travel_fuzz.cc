// SPDX-License-Identifier: Apache-2.0
//
// libFuzzer target for the reader of binary object graphs, which is what a pickle of an object
// holds.
//
//   clang++ -std=c++17 -g -O1 -fsanitize=fuzzer,address,undefined -DTVM_FFI_EXPORTS \
//     -DTVM_FFI_USE_LIBBACKTRACE=0 -Iinclude -Isrc tests/fuzz/travel_fuzz.cc \
//     src/core/*.cc src/extra/*.cc src/tie/*.cc -pthread -ldl -o travel_fuzz
//   ./travel_fuzz -dict=tests/fuzz/travel.dict -max_total_time=600 work tests/fuzz/corpus/travel
//
// The first byte says how many buffers there are, whether the rest is two chunks of one pickle, and
// whether there is an object from outside.
// A chunk is refused with an Error or gives an object; that object,
// written and read again, is written the same way. Rings are taken apart, so that nothing leaks.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/tvm_ffi.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace {

using namespace tvm::ffi;

class NodeObj : public Object {
 public:
  Any value;
  Optional<ObjectRef> child;
  List<Any> items;
  int64_t number = 0;
  String name;

  NodeObj() = default;
  explicit NodeObj(UnsafeInit) {}
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("fuzz.Node", NodeObj, Object);
};

// Made by its constructor.
class PairObj : public Object {
 public:
  int64_t a;
  Array<Any> b;
  PairObj(int64_t a, Array<Any> b) : a(a), b(std::move(b)) {}
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("fuzz.Pair", PairObj, Object);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = reflection;
  refl::ObjectDef<NodeObj>()
      .def_rw("value", &NodeObj::value)
      .def_rw("child", &NodeObj::child)
      .def_rw("items", &NodeObj::items)
      .def_rw("number", &NodeObj::number)
      .def_rw("name", &NodeObj::name);
  refl::ObjectDef<PairObj>()
      .def(refl::init<int64_t, Array<Any>>())
      .def_rw("a", &PairObj::a)
      .def_rw("b", &PairObj::b);
}

struct Memory {
  void AllocData(DLTensor* t) { t->data = std::malloc(GetDataSize(*t) + 1); }
  void FreeData(DLTensor* t) { std::free(t->data); }
};

Tensor BytesTensor(const void* data, size_t size) {
  Tensor tensor = Tensor::FromNDAlloc(Memory(), {static_cast<int64_t>(size)},
                                      DLDataType{kDLUInt, 8, 1}, DLDevice{kDLCPU, 0});
  if (size != 0) std::memcpy(tensor.data_ptr(), data, size);
  return tensor;
}

// Empties everything that can be changed and was found from `root`: rings end.
void TakeApart(const Any& root) {
  std::vector<Any> todo{root};
  std::vector<Any> seen;
  std::unordered_set<const Object*> known;
  while (!todo.empty()) {
    Any value = std::move(todo.back());
    todo.pop_back();
    if (value.type_index() < kTVMFFIStaticObjectBegin) continue;
    if (!known.insert(value.cast<const Object*>()).second) continue;
    seen.push_back(value);
    if (auto array = value.as<Array<Any>>()) {
      for (const Any& item : *array) todo.push_back(item);
    } else if (auto list = value.as<List<Any>>()) {
      for (const Any& item : *list) todo.push_back(item);
    } else if (auto map = value.as<Map<Any, Any>>()) {
      for (const auto& [key, item] : *map) todo.insert(todo.end(), {key, item});
    } else if (auto dict = value.as<Dict<Any, Any>>()) {
      for (const auto& [key, item] : *dict) todo.insert(todo.end(), {key, item});
    } else if (const auto* node = value.as<NodeObj>()) {
      todo.insert(todo.end(), {node->value, node->child, node->items});
    } else if (const auto* pair = value.as<PairObj>()) {
      todo.push_back(pair->b);
    }
  }
  for (const Any& value : seen) {
    if (auto list = value.as<List<Any>>()) {
      list->clear();
    } else if (auto dict = value.as<Dict<Any, Any>>()) {
      dict->clear();
    } else if (auto* node = const_cast<NodeObj*>(value.as<NodeObj>())) {
      node->value = nullptr;
      node->child = std::nullopt;
      node->items = List<Any>();
    } else if (auto* pair = const_cast<PairObj*>(value.as<PairObj>())) {
      pair->b = Array<Any>();
    }
  }
}

struct Written {
  std::string bytes;
  Array<Any> buffers;
};

Written Write(const Any& value) {
  static auto make = Function::GetGlobalRequired("ffi.tether.GraphWriter");
  static auto write = Function::GetGlobalRequired("ffi.tether.GraphWrite");
  auto parts = write(make(0, Function(nullptr)), value, Array<Any>()).cast<Array<Any>>();
  auto chunk = parts[1].cast<Tensor>();
  Written written;
  written.bytes.assign(static_cast<const char*>(chunk.data_ptr()),
                       static_cast<size_t>(chunk.numel()));
  for (const Any& buffer : parts[2].cast<Array<Any>>()) {
    auto tensor = buffer.cast<Tensor>();
    written.buffers.push_back(BytesTensor(tensor.data_ptr(), GetDataSize(tensor)));
  }
  return written;
}

Any At(const Any& reader, const Any& number) {
  static auto at = Function::GetGlobalRequired("ffi.tether.GraphReaderAt");
  return at(reader, number);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto make = Function::GetGlobalRequired("ffi.tether.GraphReader");
  static auto read = Function::GetGlobalRequired("ffi.tether.GraphRead");
  static auto show = Function::GetGlobalRequired("ffi.tether.GraphReaderShowCycles");
  static Function see = Function::FromTyped([](const Any&) {});
  if (size == 0) return 0;
  size_t num_buffers = data[0] & 3;
  bool has_two_chunks = (data[0] & 4) != 0;
  ++data, --size;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t split = has_two_chunks ? text.rfind("TFG") : 0;
  if (split == text.npos) split = 0;
  Array<Any> buffers;
  for (size_t i = 0; i < num_buffers; ++i) buffers.push_back(BytesTensor("12345678", 8));
  Array<Any> outside;
  if ((data[-1] & 8) != 0) outside.push_back(List<Any>{1});
  Any reader = make(Function(nullptr));
  Any root;
  bool has_root = false;
  const size_t ends[] = {split, size};
  size_t begin = 0;
  for (size_t end : ends) {
    if (end <= begin && end != size) continue;
    try {
      Any number = read(reader, BytesTensor(data + begin, end - begin), buffers, outside);
      root = At(reader, number);
      has_root = true;
    } catch (const Error&) {
    }
    begin = end;
  }
  show(reader, see);
  if (!has_root) return 0;
  if (root.type_index() >= kTVMFFIStaticObjectBegin) {
    try {
      Written first = Write(root);
      Any second_reader = make(Function(nullptr));
      Any again =
          At(second_reader, read(second_reader, BytesTensor(first.bytes.data(), first.bytes.size()),
                                 first.buffers, Array<Any>()));
      Written second = Write(again);
      if (first.bytes != second.bytes) std::abort();
      TakeApart(again);
    } catch (const Error&) {
      // What was read may be beyond what can be written: a function without a name.
    }
  }
  TakeApart(root);
  // Also what the root does not refer to.
  for (int64_t i = 0;; ++i) {
    try {
      TakeApart(At(reader, i));
    } catch (const Error&) {
      break;
    }
  }
  return 0;
}
