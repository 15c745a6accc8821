// SPDX-License-Identifier: Apache-2.0
//
// The binary form of object graphs: what the writer writes and the reader makes of it, and bytes
// that are wrong. Python's pickles hold it; tests/python/test_travel.py tests those.
#include <gtest/gtest.h>
#include <tvm/ffi/big_int.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/structural_equal.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "reflected_object.h"

namespace {

using namespace tether_test;

using AnyArray = Array<Any>;
using AnyList = List<Any>;
using AnyMap = Map<Any, Any>;
using AnyDict = Dict<Any, Any>;

struct Memory {
  void AllocData(DLTensor* t) { t->data = std::malloc(GetDataSize(*t) + 1); }
  void FreeData(DLTensor* t) { std::free(t->data); }
};

Tensor MakeTensor(std::vector<int64_t> shape, DLDataType dtype = {kDLUInt, 8, 1},
                  DLDevice device = {kDLCPU, 0}) {
  return Tensor::FromNDAlloc(Memory(), Shape(shape.begin(), shape.end()), dtype, device);
}

Tensor AsTensor(const std::string& bytes) {
  Tensor tensor = MakeTensor({static_cast<int64_t>(bytes.size())});
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

std::string AsBytes(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), static_cast<size_t>(tensor.numel())};
}

// What GraphWrite returns.
struct Chunk {
  Any number;
  Any bytes;
  AnyArray buffers;
  AnyArray noted;
  AnyArray outside;
};

class Writer {
 public:
  using PartFunction = uint8_t (*)(TVMFFIObject*, int32_t);
  explicit Writer(PartFunction part_of = nullptr)
      : writer_(CallGlobal("ffi.tether.GraphWriter", reinterpret_cast<int64_t>(part_of),
                           Function(nullptr))) {}
  Chunk Write(const Any& value, const AnyArray& outside = {}) {
    auto parts = CallGlobal("ffi.tether.GraphWrite", writer_, value, outside).cast<AnyArray>();
    return {parts[0], parts[1], parts[2].cast<AnyArray>(), parts[3].cast<AnyArray>(),
            parts[4].cast<AnyArray>()};
  }

 private:
  Any writer_;
};

class Reader {
 public:
  Any Read(const Chunk& chunk) {
    return At(
        CallGlobal("ffi.tether.GraphRead", reader_, chunk.bytes, chunk.buffers, chunk.outside));
  }
  Any Read(const std::string& bytes) {
    return At(CallGlobal("ffi.tether.GraphRead", reader_, AsTensor(bytes), AnyArray(), AnyArray()));
  }
  Any At(const Any& number) { return CallGlobal("ffi.tether.GraphReaderAt", reader_, number); }

 private:
  Any reader_ = CallGlobal("ffi.tether.GraphReader", Function(nullptr));
};

Any Again(const Any& value) { return Reader().Read(Writer().Write(value)); }

TEST(BinaryGraph, ValuesArriveAsTheyWere) {
  AnyArray values{nullptr,
                  true,
                  false,
                  0,
                  127,
                  128,
                  -1,
                  INT64_MAX,
                  INT64_MIN,
                  1.5,
                  String(""),
                  String("seven b"),
                  String("more than seven bytes"),
                  Bytes("\0x", 2),
                  Bytes(std::string(50, 'x')),
                  Shape({1, -2, int64_t{1} << 40}),
                  DLDataType{kDLFloat, 8, 4},
                  DLDevice{kDLCUDA, 3},
                  AnyMap{{"key", AnyList{1}}, {2, AnyDict{{"k", 2.5}}}}};
  Any loaded = Again(values);
  EXPECT_TRUE(StructuralEqual()(values, loaded));
  EXPECT_FALSE(loaded.same_as(values));
}

TEST(BinaryGraph, SharingIsKept) {
  Any shared = MakePair(1, 2);
  Any loaded = Again(AnyArray{shared, AnyList{shared}, MakeEdges(shared, shared)});
  auto parts = loaded.cast<AnyArray>();
  EXPECT_TRUE(parts[1].cast<AnyList>()[0].same_as(parts[0]));
  EXPECT_TRUE(GetField(parts[2], "v_any").same_as(parts[0]));
  EXPECT_TRUE(GetField(parts[2], "v_obj").same_as(parts[0]));
  EXPECT_EQ(GetInt(parts[0], "b"), 2);
}

// The writer looks up only what has several references. What it did not look up may be met again
// in a later chunk.
TEST(BinaryGraph, AnObjectWithOneReferenceIsKnownToLaterChunks) {
  Any root = AnyList{AnyList{AnyList{7}}};
  Writer writer;
  Reader reader;
  Any first = reader.Read(writer.Write(root));
  Any inner = root.cast<AnyList>()[0];
  Chunk second = writer.Write(inner);
  EXPECT_TRUE(second.bytes == nullptr);  // the chunk before has it
  EXPECT_TRUE(reader.At(second.number).same_as(first.cast<AnyList>()[0]));
  Any third = reader.Read(writer.Write(AnyArray{inner.cast<AnyList>()[0], root}));
  EXPECT_TRUE(third.cast<AnyArray>()[0].same_as(first.cast<AnyList>()[0].cast<AnyList>()[0]));
  EXPECT_TRUE(third.cast<AnyArray>()[1].same_as(first));
}

TEST(BinaryGraph, CyclesArriveAsCycles) {
  AnyList list{1};
  list.push_back(list);
  auto loaded = Again(list).cast<AnyList>();
  EXPECT_TRUE(loaded[1].same_as(loaded));
  loaded.clear();
  list.clear();

  Any edges = MakeEdges();
  SetField(edges, "v_any", AnyDict{{"back", edges}});
  Any again = Again(edges);
  EXPECT_TRUE(GetField(again, "v_any").cast<AnyDict>()["back"].same_as(again));
  SetField(again, "v_any", nullptr);
  SetField(edges, "v_any", nullptr);
}

// An Array cannot be made first and filled later. What can is put off, and its parts, which have
// one reference each, are met a second time.
TEST(BinaryGraph, CyclesThroughWhatCannotBeChanged) {
  Any edges = MakeEdges();
  AnyArray array{AnyArray{MakePair(3, 4), edges, 1}, 2};
  SetField(edges, "v_obj", AnyList{AnyArray{MakePair(5, 6)}, AnyMap{{"up", array}}});
  for (const Any& root : {Any(array), edges, array[0]}) {
    Any loaded = Again(root);
    Any found = loaded.as<AnyArray>() ? loaded : GetField(loaded, "v_obj");
    EXPECT_TRUE(
        StructuralEqual()(CallGlobal("ffi.ReprPrint", root), CallGlobal("ffi.ReprPrint", loaded)));
    while (!found.as<AnyList>()) {
      Any first = found.cast<AnyArray>()[0];
      found = first.as<AnyArray>() ? first : GetField(found.cast<AnyArray>()[1], "v_obj");
    }
    found.cast<AnyList>().clear();
  }
  GetField(edges, "v_obj").cast<AnyList>().clear();
}

TEST(BinaryGraph, AnErrorLeavesNothingBehind) {
  AnyList list{AnyArray{1}};
  Writer writer;
  AnyArray bad{list, Function::FromTyped([](int x) { return x; })};
  EXPECT_TRUE(Contains(ErrorText([&] { writer.Write(bad); }), "`ffi.Function` cannot be pickled"));
  Chunk chunk = writer.Write(list);  // as if nothing had been
  EXPECT_EQ(chunk.number.cast<int64_t>(), 1);
  EXPECT_EQ(Reader().Read(chunk).cast<AnyList>().size(), 1);
}

TEST(BinaryGraph, DepthNeedsNoStack) {
  Any loaded = Again(MakeChain(kDeep, MakeNestedArrays(kDeep, 5)));
  for (int i = 0; i < kDeep; ++i) loaded = GetField(loaded, "v_any");
  for (int i = 0; i < kDeep; ++i) loaded = loaded.cast<AnyArray>()[0];
  EXPECT_EQ(loaded.cast<int>(), 5);
}

// ---- tensors

TEST(BinaryGraph, TensorsGoBesideTheBytes) {
  Tensor tensor = MakeTensor({2, 3}, {kDLFloat, 32, 1});
  std::memset(tensor.data_ptr(), 1, 24);
  Chunk chunk = Writer().Write(AnyArray{tensor, tensor});
  ASSERT_EQ(chunk.buffers.size(), 1);
  auto loaded = Reader().Read(chunk).cast<AnyArray>();
  EXPECT_TRUE(loaded[0].same_as(loaded[1]));
  EXPECT_EQ(loaded[0].cast<Tensor>().data_ptr(), tensor.data_ptr());
  EXPECT_EQ(loaded[0].cast<Tensor>().ndim(), 2);
  EXPECT_EQ(loaded[0].cast<Tensor>().numel(), 6);
  chunk.buffers = {};
  EXPECT_TRUE(Contains(ErrorText([&] { Reader().Read(chunk); }), "memory of a tensor is missing"));
  chunk.buffers = {MakeTensor({23})};
  EXPECT_TRUE(Contains(ErrorText([&] { Reader().Read(chunk); }), "does not have its size"));
}

TEST(BinaryGraph, ATensorOnAnotherDeviceIsRefused) {
  Tensor tensor = MakeTensor({4}, {kDLFloat, 32, 1}, {kDLCUDA, 1});  // in memory of the CPU
  EXPECT_EQ(ErrorText([&] { Writer().Write(AnyArray{tensor}); }),
            "TypeError: a tensor on device 2:1 cannot be pickled: copy it to the CPU first, for "
            "example with torch.from_dlpack(x).cpu()");
}

// ---- what the frontend has a part in

TEST(BinaryGraph, NotedObjectsAreNamed) {
  Any pair = MakePair(1, 2);
  static TVMFFIObject* noted;
  noted = details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(pair.cast<ObjectRef>());
  Writer writer([](TVMFFIObject* object, int32_t) -> uint8_t { return object == noted ? 1 : 0; });
  Chunk chunk = writer.Write(AnyArray{MakePair(3, 4), pair, pair});
  ASSERT_EQ(chunk.noted.size(), 2);
  EXPECT_TRUE(chunk.noted[1].same_as(pair));
  Reader reader;
  Any loaded = reader.Read(chunk);
  EXPECT_TRUE(reader.At(chunk.noted[0]).same_as(loaded.cast<AnyArray>()[1]));
}

TEST(BinaryGraph, ObjectsOfTheFrontendComeFromOutside) {
  static const int32_t type_index = TypeKeyToIndex("testing.TestIntPair");
  Writer writer([](TVMFFIObject* object, int32_t index) -> uint8_t {
    return object == nullptr && index == type_index ? 2 : 0;
  });
  Any pair = MakePair(1, 2), other = MakePair(3, 4);
  AnyArray root{pair, AnyList{other, pair}, MakeEdges(other)};
  Chunk chunk = writer.Write(root);
  EXPECT_TRUE(chunk.number == nullptr);  // these first
  ASSERT_EQ(chunk.outside.size(), 2);
  chunk = writer.Write(root, chunk.outside);
  ASSERT_EQ(chunk.outside.size(), 2);
  Any first = MakePair(5, 6), second = MakePair(7, 8);
  chunk.outside = {first, second};
  auto loaded = Reader().Read(chunk).cast<AnyArray>();
  EXPECT_TRUE(loaded[0].same_as(first));
  EXPECT_TRUE(loaded[1].cast<AnyList>()[0].same_as(second));
  EXPECT_TRUE(loaded[1].cast<AnyList>()[1].same_as(first));
  EXPECT_TRUE(GetField(loaded[2], "v_any").same_as(second));
  for (const AnyArray& wrong : {AnyArray{first}, AnyArray{first, second, first}}) {
    chunk.outside = wrong;
    EXPECT_TRUE(Contains(ErrorText([&] { Reader().Read(chunk); }), "outside"));
  }
  // The root is written, whatever the frontend says of it.
  EXPECT_EQ(GetInt(Reader().Read(Writer().Write(pair)), "a"), 1);
  chunk = writer.Write(other);
  EXPECT_FALSE(chunk.number == nullptr);
}

// ---- wrong bytes

std::string Example() {
  Any edges = MakeEdges(MakePair(1, -5), AnyList{String("more than seven bytes"), 2.5, nullptr});
  SetField(edges, "v_any", AnyArray{edges, AnyMap{{"k", Shape({1, 2})}}, true, Bytes("b", 1)});
  std::string bytes = AsBytes(Writer().Write(edges).bytes.cast<Tensor>());
  SetField(edges, "v_any", nullptr);
  return bytes;
}

// Wrong bytes may describe a ring, which nobody frees. The fuzz target takes rings apart, and looks
// for leaks.
void ReadAndDrop(const std::string& bytes) {
#ifdef __SANITIZE_ADDRESS__
  __lsan::ScopedDisabler rings_stay;
#endif
  Reader reader;
  try {
    Any loaded = reader.Read(bytes);
    if (loaded.GetTypeKey() == "testing.TestDeepCopyEdges") SetField(loaded, "v_any", nullptr);
  } catch (const Error&) {
  }
}

TEST(BinaryGraph, EveryPrefixIsRefused) {
  std::string bytes = Example();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(ErrorText([&] { Reader().Read(bytes.substr(0, size)); }), "no error") << size;
  }
  EXPECT_NE(ErrorText([&] { Reader().Read(bytes + "x"); }), "no error");
}

TEST(BinaryGraph, EveryByteCanBeWrong) {
  std::string bytes = Example();
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(value);
      ReadAndDrop(damaged);
    }
  }
}

TEST(BinaryGraph, ALaterVersionSaysSo) {
  std::string bytes = Example();
  bytes[3] = 9;
  EXPECT_TRUE(
      Contains(ErrorText([&] { Reader().Read(bytes); }), "its version is 9, and this library"));
}

TEST(BinaryGraph, AChunkWithoutTheOneBefore) {
  Writer writer;
  AnyList list{AnyArray{1}};
  writer.Write(list);
  Chunk second = writer.Write(AnyArray{list});
  EXPECT_TRUE(Contains(ErrorText([&] { Reader().Read(second); }), "the part before this one"));
}

}  // namespace
