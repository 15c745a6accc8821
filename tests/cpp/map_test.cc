// SPDX-License-Identifier: Apache-2.0
//
// Map and Dict: hashing, layout, order, sharing, conversions, and the global functions of both.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core_objects.h"
#include "map_layout.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using namespace core_test;
using map_layout::RawMap;
using tether_test::CallGlobal;
using tether_test::ErrorText;
namespace refl = tvm::ffi::reflection;

// A key whose hash and equality go by its value, through raw function pointers.
class ByValueObj : public Object {
 public:
  int64_t value;
  explicit ByValueObj(int64_t value) : value(value) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("map_test.ByValue", ByValueObj, Object);
};

// The same through functions, which can also be told to fail.
class ByFunctionObj : public Object {
 public:
  int64_t value;
  explicit ByFunctionObj(int64_t value) : value(value) {}
  static inline int hashes_until_error = -1;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("map_test.ByFunction", ByFunctionObj, Object);
};

// Has a hook of a kind that is not allowed.
class BadHookObj : public Object {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("map_test.BadHook", BadHookObj, Object);
};

// Eight different hashes only, so that the chains are long.
int64_t HashByValue(const Any& any) { return any.as<ByValueObj>()->value % 8; }
bool EqualByValue(const Any& a, const Any& b) {
  return a.as<ByValueObj>()->value == b.as<ByValueObj>()->value;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::TypeAttrDef<ByValueObj>()
      .attr(refl::type_attr::kAnyHash, reinterpret_cast<void*>(&HashByValue))
      .attr(refl::type_attr::kAnyEqual, reinterpret_cast<void*>(&EqualByValue));
  refl::TypeAttrDef<ByFunctionObj>()
      .def(refl::type_attr::kAnyHash,
           [](const ByFunctionObj* self) {
             if (ByFunctionObj::hashes_until_error == 0) TVM_FFI_THROW(ValueError) << "no hash";
             if (ByFunctionObj::hashes_until_error > 0) --ByFunctionObj::hashes_until_error;
             return self->value;
           })
      .def(refl::type_attr::kAnyEqual,
           [](const ByFunctionObj* a, const ByFunctionObj* b) { return a->value == b->value; });
  refl::TypeAttrDef<BadHookObj>().attr(refl::type_attr::kAnyHash, 1);
}

Any HeapString(const std::string& text) {
  std::string copy = text;
  return Any(String(std::move(copy)));
}

template <typename MapRef>
std::string Order(const MapRef& map) {
  std::string text;
  for (const auto& [key, value] : map) {
    text += key;
    text += std::to_string(value) + " ";
  }
  return text;
}

template <typename MapRef>
std::string ReverseOrder(const MapRef& map) {
  std::string text;
  for (auto it = map.end(); it != map.begin();) {
    --it;
    text += (*it).first;
    text += std::to_string((*it).second) + " ";
  }
  return text;
}

// ---- Hashing

TEST(AnyHash, AgreesWithTheTestVectors) {
  AnyHash hash;
  EXPECT_EQ(hash(Any()), 0x9e3779b9u);
  EXPECT_EQ(hash(Any(0)), 0x9e3779f8u);
  EXPECT_EQ(hash(Any(1)), 0x9e3779fbu);
  EXPECT_EQ(hash(Any(-1)), 0x9e3779f9u);
  EXPECT_EQ(hash(Any(42)), 0x9e377a22u);
  EXPECT_EQ(hash(Any(true)), 0x9e377a38u);
  EXPECT_EQ(hash(Any(false)), 0x9e377a3bu);
  EXPECT_EQ(hash(Any(0.0)), 0x9e377a7au);
  EXPECT_EQ(hash(Any(-0.0)), 0x800000009e377a7au);
  EXPECT_EQ(hash(Any(1.0)), 0x3ff000009e377a7au);
  EXPECT_EQ(hash(Any(1.1)), 0x3ff1999a37d11410u);
  EXPECT_EQ(hash(Any("")), 0x9e378a48u);
  EXPECT_EQ(hash(Any("a")), 0x9e378a2bu);
  EXPECT_EQ(hash(HeapString("")), 0x9e378a48u);
  EXPECT_EQ(hash(HeapString("a")), 0x9e378a2bu);
  EXPECT_EQ(hash(Any("hello")), 0x10aa3f00eu);
  EXPECT_EQ(hash(HeapString("hello")), 0x10aa3f00eu);
  EXPECT_EQ(hash(Any("hello12")), 0x10b08520eu);
  EXPECT_EQ(hash(Any("hello123")), 0xf1085211u);
  EXPECT_EQ(hash(Any("hello, world!")), 0xefa7e208u);
  EXPECT_EQ(hash(Any(Bytes(""))), 0x9e378a0bu);
  EXPECT_EQ(hash(Any(Bytes("abc"))), 0x9e9aece8u);
  EXPECT_EQ(hash(Any(Bytes("0123456789abcdef"))), 0xab1d23f7u);
  EXPECT_EQ(hash(Any(DLDataType{2, 32, 1})), 0x9e389af9u);
  EXPECT_EQ(hash(Any(DLDevice{kDLCPU, 0})), 0x9e377b3du);
  EXPECT_EQ(hash(Any(DLDevice{kDLCUDA, 3})), 0x39e377b3au);
  EXPECT_EQ(hash(Any(reinterpret_cast<void*>(0x1234))), 0x9e378ceau);
  auto bytes = [](const char* s) { return details::StableHashBytes(s, std::strlen(s)); };
  EXPECT_EQ(bytes(""), 0u);
  EXPECT_EQ(bytes("hello"), 1819043398u);
  EXPECT_EQ(bytes("hello123"), 1389414471u);
  EXPECT_EQ(bytes("hello, world!"), 1366317120u);
  EXPECT_EQ(bytes("ffi.Array"), 614407654u);
  EXPECT_EQ(bytes("The quick brown fox jumps over the lazy dog"), 1278762651u);
  EXPECT_EQ(bytes("\xff\xfe\xfd"), 16645887u);
}

TEST(AnyHash, DoesNotDependOnAlignment) {
  const std::string text = "0123456789abcdef0123";
  std::vector<char> shifted(text.size() + 8);
  for (size_t shift = 0; shift < 8; ++shift) {
    std::memcpy(shifted.data() + shift, text.data(), text.size());
    EXPECT_EQ(details::StableHashBytes(shifted.data() + shift, text.size()),
              details::StableHashBytes(text.data(), text.size()));
  }
}

TEST(AnyEqual, ComparesContentOfStringsAndBitsOfTheRest) {
  AnyEqual equal;
  EXPECT_TRUE(equal(Any("a1"), HeapString("a1")));
  EXPECT_TRUE(equal(HeapString("a1"), Any("a1")));
  EXPECT_TRUE(equal(HeapString("hello world"), HeapString("hello world")));
  EXPECT_FALSE(equal(HeapString("hello world"), HeapString("hello worle")));
  EXPECT_FALSE(equal(Any("a1"), Any(Bytes("a1"))));
  EXPECT_TRUE(equal(Any(Bytes("a1")), Any(Bytes(std::string("a1")))));
  EXPECT_FALSE(equal(Any(1), Any(true)));
  EXPECT_FALSE(equal(Any(1), Any(1.0)));
  EXPECT_FALSE(equal(Any(0.0), Any(-0.0)));
  EXPECT_TRUE(equal(Any(nullptr), Any()));
  Box box(1), other(1);
  EXPECT_TRUE(equal(Any(box), Any(box)));
  EXPECT_FALSE(equal(Any(box), Any(other)));
}

TEST(AnyHash, HooksDecideForTheirType) {
  Any a(make_object<ByValueObj>(3)), b(make_object<ByValueObj>(3)), c(make_object<ByValueObj>(4));
  EXPECT_EQ(AnyHash()(a), map_layout::Combine(static_cast<uint64_t>(a.type_index()), 3));
  EXPECT_TRUE(AnyEqual()(a, b));
  EXPECT_FALSE(AnyEqual()(a, c));
  Any f(make_object<ByFunctionObj>(5)), g(make_object<ByFunctionObj>(5));
  EXPECT_EQ(AnyHash()(f), map_layout::Combine(static_cast<uint64_t>(f.type_index()), 5));
  EXPECT_TRUE(AnyEqual()(f, g));
  Map<Any, int> map = {{a, 1}, {f, 2}};
  for (int i = 0; i < 10; ++i) map.Set(Any(make_object<ByValueObj>(100 + i)), i);
  EXPECT_EQ(map[b], 1);
  EXPECT_EQ(map[g], 2);
  EXPECT_EQ(map.count(c), 0u);
  EXPECT_EQ(tether_test::Contains(ErrorText([] { AnyHash()(Any(make_object<BadHookObj>())); }),
                                  "InternalError"),
            true);
}

// ---- Layout

TEST(MapLayout, FieldsAreWhereOtherBinariesExpectThem) {
  static_assert(sizeof(MapBaseObj) == 56 && sizeof(MapObj) == 56 && sizeof(DictObj) == 56);
  static_assert(sizeof(MapBaseObj::KVType) == 32 && sizeof(MapBaseObj::iterator) == 16);
  static_assert(sizeof(DenseMapBaseObj) == 80);
  static_assert(sizeof(Map<int, int>) == sizeof(ObjectPtr<Object>));
  static_assert(sizeof(Map<int, int>::iterator) == 16);
  static_assert(MapObj::_type_index == 72 && DictObj::_type_index == 76);
  static_assert(MapObj::_type_final && DictObj::_type_final && MapObj::_type_depth == 1);
  static_assert(!Map<int, int>::_type_container_is_exact &&
                !Dict<int, int>::_type_container_is_exact);

  Map<int, int> empty;
  RawMap raw(empty);
  EXPECT_EQ(empty->type_index(), 72);
  EXPECT_TRUE(raw.is_small() && raw.is_inline());
  EXPECT_EQ(raw.slots(), 2u);
  EXPECT_EQ(raw.deleter(), 0u);
  EXPECT_EQ((Dict<int, int>()->type_index()), 76);
  EXPECT_EQ(make_object<MapObj>()->size(), 0u);
  EXPECT_EQ(make_object<DictObj>()->type_index(), 76);

  Map<int, int> three = {{1, 1}, {2, 2}, {3, 3}};
  EXPECT_TRUE(RawMap(three).is_small());
  EXPECT_EQ(RawMap(three).slots(), 3u);
  EXPECT_EQ(RawMap(three).small_key(2).v_int64, 3);
}

TEST(MapLayout, RangesOfFourOrMoreAreDenseAtOnce) {
  auto slots_for = [](int n) {
    std::vector<std::pair<int, int>> entries;
    for (int i = 0; i < n; ++i) entries.emplace_back(i, i);
    Map<int, int> map(entries.begin(), entries.end());
    EXPECT_EQ(RawMap(map).Broken(), "");
    EXPECT_EQ(map.size(), static_cast<size_t>(n));
    return RawMap(map).is_small() ? -static_cast<int>(RawMap(map).slots())
                                  : static_cast<int>(RawMap(map).slots());
  };
  EXPECT_EQ(slots_for(0), -2);
  EXPECT_EQ(slots_for(1), -2);
  EXPECT_EQ(slots_for(2), -2);
  EXPECT_EQ(slots_for(3), -3);
  EXPECT_EQ(slots_for(4), 8);
  EXPECT_EQ(slots_for(5), 16);
  EXPECT_EQ(slots_for(8), 16);
  EXPECT_EQ(slots_for(9), 32);
  EXPECT_EQ(slots_for(16), 32);
  EXPECT_EQ(slots_for(17), 64);
  EXPECT_EQ(slots_for(32), 64);
  EXPECT_EQ(slots_for(33), 128);
  EXPECT_EQ(slots_for(100), 256);
  EXPECT_EQ(slots_for(1000), 2048);
}

TEST(MapLayout, GrowsAtTheSamePointsAsOtherBinaries) {
  Map<int, int> map;
  Dict<int, int> dict;
  std::vector<std::pair<int, uint64_t>> growth;
  uint64_t last = 0;
  for (int n = 1; n <= 1100; ++n) {
    map.Set(n - 1, n);
    dict.Set(n - 1, n);
    RawMap raw(map);
    ASSERT_EQ(raw.slots(), RawMap(dict).slots());
    if (raw.slots() != last) growth.emplace_back(n, last = raw.slots());
  }
  using Points = std::vector<std::pair<int, uint64_t>>;
  EXPECT_EQ(growth, (Points{{1, 2},
                            {3, 4},
                            {5, 8},
                            {8, 16},
                            {16, 32},
                            {32, 64},
                            {64, 128},
                            {127, 256},
                            {254, 512},
                            {506, 1024},
                            {1003, 2048}}));
  EXPECT_EQ(RawMap(map).Broken(), "");
  EXPECT_EQ(RawMap(dict).Broken(), "");
}

TEST(MapLayout, TheWorkedTable) {
  Map<int, int> map;
  for (int i = 0; i < 5; ++i) map.Set(i, i);
  {
    RawMap raw(map);
    ASSERT_EQ(raw.slots(), 8u);
    EXPECT_EQ(raw.fib_shift(), 61u);
    auto slot = [&](uint64_t s, uint8_t meta, int64_t key, uint64_t next) {
      EXPECT_EQ(raw.meta(s), meta) << s;
      EXPECT_EQ(raw.item(s).key.v_int64, key) << s;
      EXPECT_EQ(raw.item(s).next, next) << s;
    };
    slot(1, 0x02, 0, 7);
    slot(7, 0x00, 1, 2);
    slot(2, 0x00, 2, 3);
    slot(3, 0x80, 3, 4);
    slot(4, 0x00, 4, map_layout::kNone);
    EXPECT_EQ(raw.head(), 1u);
    EXPECT_EQ(raw.tail(), 4u);
    for (uint64_t s = 8; s < 16; ++s) EXPECT_EQ(raw.meta(s), 0xFF);
  }
  map.Set(5, 5);
  EXPECT_EQ(RawMap(map).item(5).key.v_int64, 3);
  EXPECT_EQ(RawMap(map).meta(1), 0x04);
  EXPECT_EQ(RawMap(map).meta(3), 0x00);
  EXPECT_EQ(RawMap(map).item(3).key.v_int64, 5);
  EXPECT_EQ(RawMap(map).tail(), 3u);
  map.erase(2);
  EXPECT_EQ(RawMap(map).meta(2), 0xFF);
  EXPECT_EQ(RawMap(map).item(7).next, 5u);
  EXPECT_EQ(RawMap(map).item(5).prev, 7u);
  map.Set(0, 9);  // stays where it is
  EXPECT_EQ(RawMap(map).head(), 1u);
  EXPECT_EQ(RawMap(map).tail(), 3u);

  Dict<String, int> dict;
  for (int i = 0; i < 8; ++i) dict.Set("k" + std::to_string(i), i);
  RawMap raw(dict);
  ASSERT_EQ(raw.slots(), 16u);
  std::vector<uint64_t> order;
  for (uint64_t s = raw.head(); s != map_layout::kNone; s = raw.item(s).next) order.push_back(s);
  EXPECT_EQ(order, (std::vector<uint64_t>{11, 14, 2, 5, 9, 12, 0, 3}));
}

TEST(MapLayout, ADictSwitchesItsStorageInPlace) {
  Dict<int, String> dict;
  Dict<int, String> alias = dict;
  const Object* address = dict.get();
  const auto deleter = HeaderOf(address)->deleter;
  for (int i = 0; i < 40; ++i) {
    dict.Set(i, "a value long enough for the heap");
    ASSERT_EQ(RawMap(dict).Broken(), "") << i;
    ASSERT_EQ(alias.size(), static_cast<size_t>(i + 1));
  }
  EXPECT_EQ(dict.get(), address);
  EXPECT_EQ(HeaderOf(address)->deleter, deleter);
  EXPECT_EQ(alias.use_count(), 2);
  EXPECT_EQ(alias[39], "a value long enough for the heap");
}

TEST(MapLayout, AMapIsReplacedWhenItGrows) {
  Map<int, int> map = {{1, 1}, {2, 2}};
  const Object* address = map.get();
  map.Set(1, 5);
  EXPECT_EQ(map.get(), address);
  map.Set(3, 3);
  EXPECT_NE(map.get(), address);
}

int foreign_frees = 0;
void ForeignFree(void* data) {
  ++foreign_frees;
  std::free(data);
}

// Writes a field of a map the way another binary would.
void Poke(const ObjectRef& map, size_t offset, uint64_t word) {
  char* base = reinterpret_cast<char*>(const_cast<Object*>(map.get()));
  std::memcpy(base + offset, &word, sizeof(word));
}

TEST(MapLayout, StorageFromAnotherBinaryIsReturnedToIt) {
  foreign_frees = 0;
  {
    Dict<String, int> dict = {{"a key that is on the heap", 1}, {"b", 2}};
    // Small, in a buffer of its own.
    void* buffer = std::malloc(64);
    std::memcpy(buffer, RawMap(dict).data(), 64);
    Poke(dict, 24, reinterpret_cast<uint64_t>(buffer));
    Poke(dict, 48, reinterpret_cast<uint64_t>(&ForeignFree));
    EXPECT_EQ(dict["b"], 2);
    dict.Set("c", 3);  // grows out of the buffer
    EXPECT_EQ(foreign_frees, 1);
    EXPECT_EQ(Order(dict), "a key that is on the heap1 b2 c3 ");
    for (int i = 0; i < 3; ++i) dict.Set(std::to_string(i), i);
    ASSERT_FALSE(RawMap(dict).is_small());
    // Dense, likewise.
    const uint64_t bytes = (RawMap(dict).slots() + 15) / 16 * 784;
    void* blocks = std::malloc(bytes);
    std::memcpy(blocks, RawMap(dict).data(), bytes);
    ::operator delete(const_cast<char*>(RawMap(dict).data()));
    Poke(dict, 24, reinterpret_cast<uint64_t>(blocks));
    Poke(dict, 48, reinterpret_cast<uint64_t>(&ForeignFree));
    EXPECT_EQ(RawMap(dict).Broken(), "");
    dict.clear();
    EXPECT_EQ(foreign_frees, 2);
    EXPECT_EQ(RawMap(dict).Broken(), "");
  }
  EXPECT_EQ(foreign_frees, 2);
}

TEST(MapLayout, SmallMapsOfOldBinariesWithFewerSlotsGrow) {
  for (uint64_t slots : {0u, 1u}) {
    Map<int, int> map;
    Poke(map, 40, slots | map_layout::kSmallBit);
    EXPECT_EQ(map.count(1), 0u);
    map.Set(1, 1);
    EXPECT_EQ(RawMap(map).slots(), slots == 0 ? 2u : 1u);
    map.Set(2, 2);
    EXPECT_EQ(RawMap(map).slots(), 2u);
    EXPECT_EQ(map.size(), 2u);
  }
}

TEST(MapLayout, ACopyHasTheSameTable) {
  Map<int, int> map;
  for (int i = 0; i < 50; ++i) map.Set(i * 7, i);
  map.erase(14);
  Map<int, int> copy = map;
  copy.CopyOnWrite();
  RawMap a(map), b(copy);
  EXPECT_EQ(b.Broken(), "");
  ASSERT_EQ(a.slots(), b.slots());
  for (uint64_t s = 0; s < a.slots(); ++s) {
    ASSERT_EQ(a.meta(s), b.meta(s));
    if (a.meta(s) == 0xFF) continue;
    EXPECT_EQ(a.item(s).next, b.item(s).next);
    EXPECT_EQ(a.item(s).key.v_int64, b.item(s).key.v_int64);
  }
  Map<int, int> small = {{1, 1}, {2, 2}, {3, 3}};
  small.erase(1), small.erase(2);
  Map<int, int> small_copy = small;
  small_copy.CopyOnWrite();
  EXPECT_EQ(RawMap(small_copy).slots(), 2u);
}

TEST(MapLayout, ACopyOfATableInMotionIsRefused) {
  Map<int, int> map;
  for (int i = 0; i < 6; ++i) map.Set(i, i);
  RawMap raw(map);
  uint64_t empty = 0;
  while (raw.meta(empty) != 0xFF) ++empty;
  char* meta = const_cast<char*>(raw.data()) + empty;
  *meta = static_cast<char>(0xFE);
  Map<int, int> other = map;
  EXPECT_TRUE(tether_test::Contains(ErrorText([&] { other.CopyOnWrite(); }), "InternalError"));
  *meta = static_cast<char>(0xFF);
}

// ---- Order

// Insertion order after edits, for the small and the dense form.
template <typename MapRef>
void CheckOrderAfterEdits(int n) {
  auto name = [](int i) { return std::string(1, static_cast<char>('a' + i)); };
  MapRef map;
  std::vector<std::string> model;
  auto check = [&] {
    std::string text, reversed;
    for (const auto& k : model) text += k + "1 ";
    for (auto it = model.rbegin(); it != model.rend(); ++it) reversed += *it + "1 ";
    EXPECT_EQ(Order(map), text);
    EXPECT_EQ(ReverseOrder(map), reversed);
    EXPECT_EQ(RawMap(map).Broken(), "");
  };
  auto set = [&](const std::string& k) {
    map.Set(k, 1);
    model.push_back(k);
    check();
  };
  auto erase = [&](const std::string& k) {
    map.erase(k);
    model.erase(std::find(model.begin(), model.end(), k));
    check();
  };
  for (int i = 0; i < n; ++i) set(name(i));
  for (const std::string& k : {model.front(), model[model.size() / 2], model.back()}) erase(k);
  set(name(0));
  set(name(n - 1));
}

TEST(MapOrder, IsInsertionOrderAlsoAfterErasing) {
  CheckOrderAfterEdits<Map<String, int>>(17);
  CheckOrderAfterEdits<Map<String, int>>(4);
  CheckOrderAfterEdits<Dict<String, int>>(17);
  CheckOrderAfterEdits<Dict<String, int>>(4);
}

TEST(MapOrder, OverwritingKeepsThePlaceOfAKey) {
  Map<String, int> map = {{"a", 1}, {"b", 2}};
  map.Set("a", 3);
  EXPECT_EQ(Order(map), "a3 b2 ");
  map.Set("c", 1);
  map.Set("d", 1);
  map.Set("a", 4);
  EXPECT_TRUE(RawMap(map).is_small());
  EXPECT_EQ(Order(map), "a4 b2 c1 d1 ");
  map.Set("e", 1);
  EXPECT_FALSE(RawMap(map).is_small());
  map.Set("c", 9);
  EXPECT_EQ(Order(map), "a4 b2 c9 d1 e1 ");
  EXPECT_EQ(map.size(), 5u);
}

TEST(MapOrder, DuplicatesInARange) {
  Map<String, int> small = {{"a", 1}, {"a", 2}, {"a", 3}};
  EXPECT_EQ(Order(small), "a3 ");
  Map<String, int> dense = {{"a", 1}, {"b", 2}, {"a", 3}, {"c", 4}};
  EXPECT_EQ(Order(dense), "a3 b2 c4 ");
  EXPECT_FALSE(RawMap(dense).is_small());
}

// ---- Using maps

TEST(Map, ConstructionPicksTheEntryList) {
  Map<String, int> one = {{"k", 1}};
  EXPECT_EQ(one.size(), 1u);
  Map<String, String> literals = {{"k", "v"}};
  EXPECT_EQ(literals["k"], "v");
  Map<String, Any> direct({{"k", 1}});
  EXPECT_EQ(direct["k"].cast<int>(), 1);
  Box box(1);
  Map<Box, Box> refs = {{box, box}};
  EXPECT_EQ(refs.size(), 1u);
  Map<String, Array<Any>> nested = {{"a", {1, 2, 3}}};
  EXPECT_EQ(nested["a"].size(), 3u);
  auto size = [](const Map<Any, Any>& map) { return map.size(); };
  EXPECT_EQ(size({{1, "x"}, {"k", 2.5}}), 2u);
  auto dict_size = [](const Dict<Any, Any>& dict) { return dict.size(); };
  EXPECT_EQ(dict_size({{1, "x"}, {"k", 2.5}}), 2u);
  Dict<String, String> dict = {{"k", "v"}};
  EXPECT_EQ(dict.at("k"), "v");
  std::unordered_map<String, int> source = {{"x", 1}, {"y", 2}};
  Map<String, int> from_std = source;
  EXPECT_EQ(from_std.size(), 2u);
  EXPECT_EQ((Dict<String, int>(source)["y"]), 2);
}

TEST(Map, KeysOfEveryKind) {
  Map<Any, int> map;
  Box box(1);
  std::vector<Any> keys = {nullptr, 1,
                           true,    1.1,
                           "s",     Bytes("s"),
                           box,     DLDevice{kDLCPU, 0},
                           1.0,     "a string that is on the heap"};
  for (size_t i = 0; i < keys.size(); ++i) map.Set(keys[i], static_cast<int>(i));
  EXPECT_EQ(map.size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(map[keys[i]], static_cast<int>(i));
  EXPECT_EQ(map[HeapString("s")], 4);
  EXPECT_EQ(map.count(Box(1)), 0u);
  Map<double, int> by_double = {{1.1, 1}};
  EXPECT_TRUE(by_double.find(1.1) != by_double.end());
  Map<String, int> by_name;
  by_name.Set(std::string("n"), 5);
  EXPECT_EQ(by_name["n"], 5);
  for (char c = 'a'; c <= 'z'; ++c) by_name.Set(std::string(1, c), c);
  EXPECT_EQ(by_name.size(), 26u);
  EXPECT_EQ(by_name["q"], 'q');
}

TEST(Map, ReadingAndItsErrors) {
  Map<String, int> map = {{"a", 1}};
  EXPECT_EQ(map.at("a"), 1);
  EXPECT_EQ(ErrorText([&] { map.at("b"); }), "KeyError: key is not in Map");
  EXPECT_EQ(ErrorText([&] { map["b"]; }), "KeyError: key is not in Map");
  EXPECT_EQ(map.Get("a"), 1);
  EXPECT_EQ(map.Get("b"), std::nullopt);
  EXPECT_EQ(map.count("a"), 1u);
  EXPECT_TRUE(map.find("b") == map.end());
  Dict<String, int> dict = {{"a", 1}};
  EXPECT_EQ(ErrorText([&] { dict.at("b"); }), "KeyError: key is not in Map");
  for (int i = 0; i < 20; ++i) dict.Set(std::to_string(i), i);
  EXPECT_EQ(ErrorText([&] { dict["b"]; }), "KeyError: key is not in Map");
  static_assert(std::is_same_v<decltype(Map<int, String>().at(0)), const String>);
  static_assert(std::is_same_v<decltype(Dict<int, String>().at(0)), String>);
}

TEST(Map, TheUnsafeHandleIsNullAndReadsAsEmpty) {
  Map<int, int> null(UnsafeInit{});
  EXPECT_EQ(null.size(), 0u);
  EXPECT_TRUE(null.empty());
  EXPECT_EQ(null.count(1), 0u);
  EXPECT_EQ(null.Get(1), std::nullopt);
  EXPECT_EQ(ErrorText([&] { null.at(1); }), "KeyError: key is not in Map");
  null.clear();
  EXPECT_FALSE(null.defined());
  null.Set(1, 2);
  EXPECT_EQ(null[1], 2);
  Dict<int, int> dict(UnsafeInit{});
  dict.erase(1), dict.clear();
  EXPECT_FALSE(dict.defined());
  dict.Set(1, 2);
  EXPECT_EQ(dict[1], 2);
  Map<int, int> erased(UnsafeInit{});
  erased.erase(1);
  EXPECT_EQ(erased.size(), 0u);
}

TEST(Map, IteratorsYieldPairsByValue) {
  Map<String, int> map = {{"a", 1}, {"b", 2}};
  static_assert(std::is_same_v<decltype(*map.begin()), const std::pair<String, int>>);
  using Traits = std::iterator_traits<Map<String, int>::iterator>;
  static_assert(std::is_same_v<Traits::iterator_category, std::bidirectional_iterator_tag>);
  static_assert(std::is_same_v<Map<String, int>::key_type, String>);
  static_assert(std::is_same_v<Dict<String, int>::mapped_type, int>);
  Map<String, int>::iterator unset;
  (void)unset;
  int sum = 0;
  for (auto& [key, value] : Map<String, int>{{"x", 3}}) sum += value + static_cast<int>(key.size());
  EXPECT_EQ(sum, 4);
  std::vector<int> values;
  std::transform(map.begin(), map.end(), std::back_inserter(values),
                 [](const std::pair<String, int>& kv) { return kv.second; });
  EXPECT_EQ(values, std::vector<int>({1, 2}));
  auto it = map.end();
  EXPECT_EQ((*--it).second, 2);
  EXPECT_EQ((*it--).second, 2);
  EXPECT_EQ((*it++).second, 1);
  EXPECT_EQ(std::distance(map.begin(), map.end()), 2);
}

TEST(Map, ASharedHandleCopiesBeforeItWrites) {
  Map<String, int> a = {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}};
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    Map<String, int> b = a;
    b.erase(key);
    EXPECT_EQ(a.size(), 5u);
    EXPECT_EQ(b.size(), 4u);
    EXPECT_EQ(b.count(key), 0u);
    EXPECT_EQ(RawMap(b).Broken(), "");
  }
  Map<String, int> b = a;
  b.Set("a", 9);
  EXPECT_EQ(a["a"], 1);
  Map<String, int> c = a;
  c.erase("missing");
  EXPECT_FALSE(c.same_as(a)) << "erasing always makes the handle unique";
  Map<String, int> d = a;
  d.clear();
  EXPECT_EQ(a.size(), 5u);
  EXPECT_EQ(d.size(), 0u);
  EXPECT_TRUE(RawMap(d).is_small());
}

TEST(Map, AMapSetAsItsOwnKeyOrValueStoresTheOldOne) {
  Map<ObjectRef, ObjectRef> map;
  for (int i = 0; i < 20; ++i) map.Set(map, map);
  EXPECT_EQ(map.use_count(), 1);
  EXPECT_EQ(map.size(), 20u);
  for (const auto& [key, value] : map) EXPECT_FALSE(key.same_as(map));
}

TEST(Map, AnEntryMayBeSetFromTheTableItself) {
  Dict<Any, Any> dict;
  for (int i = 0; i < 4; ++i) dict.Set("a key on the heap " + std::to_string(i), i);
  const MapBaseObj* object = static_cast<const MapBaseObj*>(dict.get());
  dict.Set(0, String("a value on the heap"));
  // The references point into storage that growing gives up.
  const size_t before = dict.size();
  for (int i = 0; i < 30; ++i) dict.Set(object->at(0), i), dict.Set(object->begin()->first, 9);
  EXPECT_EQ(dict.size(), before + 1);
  Dict<Any, Any> small;
  for (int i = 0; i < 4; ++i) {
    small.Set(i, "value on the heap " + std::to_string(i));
    small.Set(static_cast<const MapBaseObj*>(small.get())->at(i), i);
  }
  EXPECT_EQ(small.size(), 8u);
  EXPECT_EQ(dict["a key on the heap 0"].cast<int>(), 9);
  EXPECT_EQ(RawMap(dict).Broken(), "");
}

TEST(Map, Merge) {
  Map<String, int> a = {{"x", 1}, {"y", 2}}, b = {{"y", 3}, {"z", 4}};
  Map<String, int> merged = Merge(a, b);
  EXPECT_EQ(Order(merged), "x1 y3 z4 ");
  EXPECT_EQ(Order(a), "x1 y2 ");
  EXPECT_EQ(Order(Merge(a, a)), "x1 y2 ");
}

TEST(MapObject, ErasingByPosition) {
  Map<String, int> map = {{"a", 1}, {"b", 2}, {"c", 3}};
  MapObj* object = map.CopyOnWrite();
  object->erase(object->find(Any("b")));
  EXPECT_EQ(Order(map), "a1 c3 ");
  object->erase(object->end());
  EXPECT_EQ(map.size(), 2u);
  object->erase(MapBaseObj::iterator());  // a small map goes by the index, which is 0
  EXPECT_EQ(Order(map), "c3 ");
  for (int i = 0; i < 20; ++i) map.Set(std::to_string(i), i);
  object = map.CopyOnWrite();
  object->erase(object->end());
  object->erase(MapBaseObj::iterator());
  EXPECT_EQ(map.size(), 21u);
  object->erase(object->begin());
  EXPECT_EQ(map.count("c"), 0u);
  object->at(Any("3")) = 33;
  EXPECT_EQ(map["3"], 33);
  const MapObj* readonly = object;
  EXPECT_EQ(readonly->at(Any("4")).cast<int>(), 4);
  EXPECT_EQ(ErrorText([&] { object->at(Any("zz")); }), "KeyError: key is not in Map");
}

TEST(MapObject, AnEmptiedDenseMapStaysDense) {
  Map<int, int> map;
  for (int i = 0; i < 17; ++i) map.Set(i, i);
  for (int i = 0; i < 17; ++i) map.erase(i);
  EXPECT_FALSE(RawMap(map).is_small());
  EXPECT_EQ(RawMap(map).slots(), 32u);
  EXPECT_TRUE(map.begin() == map.end());
  EXPECT_EQ(RawMap(map).Broken(), "");
  map.Set(5, 5);
  EXPECT_EQ(map[5], 5);
  Dict<int, int> dict;
  for (int i = 0; i < 17; ++i) dict.Set(i, i);
  dict.clear();
  EXPECT_EQ(RawMap(dict).slots(), 32u);
  EXPECT_TRUE(dict.begin() == dict.end());
  EXPECT_EQ(RawMap(dict).Broken(), "");
  Dict<int, int> small = {{1, 1}, {2, 2}};
  small.clear();
  EXPECT_EQ(RawMap(small).slots(), 2u);
}

TEST(Dict, EveryHandleSeesEveryChange) {
  Dict<int, int> a;
  Dict<int, int> b = a;
  Dict<Any, Any> wide = a;
  for (int i = 0; i < 100; ++i) a.Set(i, i * i);
  EXPECT_EQ(b.size(), 100u);
  EXPECT_EQ(wide[99].cast<int>(), 9801);
  b.erase(50);
  b.erase(1000);
  EXPECT_EQ(a.count(50), 0u);
  EXPECT_EQ(a.Get(50), std::nullopt);
  int n = 0;
  for (const auto& [key, value] : a) {
    EXPECT_EQ(value, key * key);
    ++n;
  }
  EXPECT_EQ(n, 99);
  EXPECT_TRUE(a.find(7) != a.end());
  a.clear();
  EXPECT_TRUE(b.empty());
}

TEST(MapObject, EntriesAreReleasedWithTheMap) {
  const int before = BoxObj::alive;
  for (int n : {1, 3, 4, 5, 40}) {
    Map<int, Box> map;
    Dict<Box, Box> dict;
    for (int i = 0; i < n; ++i) {
      map.Set(i, Box(i));
      dict.Set(Box(i), Box(i));
    }
    EXPECT_EQ(BoxObj::alive, before + 3 * n);
    map.erase(0);
    map.Set(n - 1, Box(0));
    dict.clear();
    Map<int, Box> copy = map;
    copy.Set(-1, Box(1));
  }
  EXPECT_EQ(BoxObj::alive, before);
}

// An object whose destructor changes a dict.
class MeddlerObj : public Object {
 public:
  MeddlerObj(Dict<Any, Any>* victim, int id) : victim_(victim), id_(id) {}
  ~MeddlerObj() {
    for (int i = 0; i < 10; ++i) victim_->Set(id_ * 100 + i, i);
    victim_->erase(id_ * 100);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("map_test.Meddler", MeddlerObj, Object);

 private:
  Dict<Any, Any>* victim_;
  int id_;
};

TEST(MapObject, AnEntryMayChangeTheDictWhileItIsRemoved) {
  for (int n : {1, 2, 4, 30}) {
    Dict<Any, Any> dict;
    for (int i = 0; i < n; ++i) dict.Set(i, make_object<MeddlerObj>(&dict, i + 1));
    dict.Set(0, 0);  // overwrites the first
    EXPECT_EQ(RawMap(dict).Broken(), "");
    EXPECT_EQ(dict[0].cast<int>(), 0);
    if (n > 1) dict.erase(1);
    EXPECT_EQ(RawMap(dict).Broken(), "");
    dict.clear();
    EXPECT_EQ(RawMap(dict).Broken(), "");
    EXPECT_EQ(dict.count(2), 0u);
  }
}

// Stores an entry when it dies.
class LateObj : public Object {
 public:
  LateObj(Dict<Any, Any>* dict, int id) : dict_(dict), id_(id) {}
  ~LateObj() { dict_->Set("late " + std::to_string(id_), id_); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("map_test.Late", LateObj, Object);

 private:
  Dict<Any, Any>* dict_;
  int id_;
};

TEST(MapObject, WhatADestructorStoresWhileADictIsClearedStays) {
  for (int n : {1, 2, 3, 4, 5, 30}) {
    Dict<Any, Any> dict;
    for (int i = 0; i < n; ++i) dict.Set(i, make_object<LateObj>(&dict, i));
    dict.clear();
    EXPECT_EQ(dict.size(), static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) EXPECT_EQ(dict["late " + std::to_string(i)].cast<int>(), i);
    EXPECT_EQ(RawMap(dict).Broken(), "");
  }
}

TEST(MapObject, AThrowingHookLeavesTheMapUsable) {
  auto key = [](int64_t i) { return Any(make_object<ByFunctionObj>(i)); };
  ByFunctionObj::hashes_until_error = -1;
  Map<Any, int> map;
  int n = 0;
  // Fill until the next insertion would grow the table, which hashes every key again.
  for (uint64_t slots = 0; n < 20 || slots == RawMap(map).slots(); ++n) {
    map.Set(key(n), n);
    Map<Any, int> trial = map;
    trial.Set(key(n + 1), 0);
    slots = RawMap(trial).slots();
  }
  int fail_at = 0;
  for (;; ++fail_at) {
    ByFunctionObj::hashes_until_error = fail_at;
    const std::string error = ErrorText([&] { map.Set(key(n), n); });
    ByFunctionObj::hashes_until_error = -1;
    if (error == "no error") break;
    ASSERT_EQ(error, "ValueError: no hash");
    ASSERT_EQ(map.size(), static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) ASSERT_EQ(map[key(i)], i);
  }
  EXPECT_GT(fail_at, n) << "every key was hashed";
  EXPECT_EQ(map.size(), static_cast<size_t>(n + 1));

  Dict<Any, int> dict;
  for (int i = 0; i < 4; ++i) dict.Set(key(i), i);  // small: no hashing yet
  for (int fail_at = 0; fail_at < 4; ++fail_at) {
    ByFunctionObj::hashes_until_error = fail_at;
    EXPECT_EQ(ErrorText([&] { dict.Set(key(9), 9); }), "ValueError: no hash") << fail_at;
    ByFunctionObj::hashes_until_error = -1;
    EXPECT_TRUE(RawMap(dict).is_small());
    EXPECT_EQ(dict.size(), 4u);
  }
}

TEST(MapObject, KeysOfFewHashesFormLongChains) {
  Map<Any, int> map;
  for (int i = 0; i < 300; ++i) map.Set(Any(make_object<ByValueObj>(i)), i);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(map[Any(make_object<ByValueObj>(i))], i);
  for (int i = 0; i < 300; i += 2) map.erase(Any(make_object<ByValueObj>(i)));
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(map.count(Any(make_object<ByValueObj>(i))), static_cast<size_t>(i % 2));
  }
}

// ---- Conversions

TEST(MapConversion, FittingEntriesShareTheObject) {
  Map<Any, Any> map = {{1, 2}, {2, 2.5}};
  EXPECT_TRUE((Any(map).cast<Map<Any, Any>>().same_as(map)));
  auto int_keys = Any(map).cast<Map<int, Any>>();
  EXPECT_TRUE(int_keys.same_as(map));
  auto doubles = Any(map).cast<Map<int, double>>();
  EXPECT_FALSE(doubles.same_as(map));
  EXPECT_EQ(doubles.use_count(), 1);
  EXPECT_EQ(doubles[1], 2.0);
  EXPECT_EQ((Any(map).cast<Map<Any, double>>().use_count()), 1);
  Dict<int, int> dict = {{1, 1}};
  EXPECT_TRUE((Any(dict).cast<Dict<int, int>>().same_as(dict)));
  EXPECT_TRUE((Any(dict).cast<Dict<Any, Any>>().same_as(dict)));
}

TEST(MapConversion, TheOtherKindIsAlwaysCopied) {
  Dict<int, int> dict;
  for (int i = 0; i < 10; ++i) dict.Set(9 - i, i);
  Map<int, int> map = Any(dict).cast<Map<int, int>>();
  dict.Set(100, 100);
  EXPECT_EQ(map.size(), 10u);
  EXPECT_EQ((*map.begin()).first, 9) << "order is kept";
  Dict<Any, Any> back = Any(map).cast<Dict<Any, Any>>();
  EXPECT_EQ(back.size(), 10u);
  EXPECT_EQ((Any(Map<int, int>()).cast<Dict<int, int>>().size()), 0u);
  EXPECT_EQ((Any(Dict<int, int>()).cast<Map<Any, Any>>().size()), 0u);
  EXPECT_FALSE((Any(dict).as<Map<int, int>>().has_value()));
}

TEST(MapConversion, ErrorsNameTheFirstEntryThatDoesNotFit) {
  auto error = [](const Any& any) { return ErrorText([&] { any.cast<Map<int, int>>(); }); };
  EXPECT_EQ(error(Map<Any, Any>{{1, 2.5}}),
            "TypeError: Cannot convert from type `Map[K, some value is float]` to `Map<int, int>`");
  EXPECT_EQ(error(Map<Any, Any>{{1, 1}, {"k", 2.5}}),
            "TypeError: Cannot convert from type `Map[some key is ffi.SmallStr, V]` to "
            "`Map<int, int>`");
  EXPECT_EQ(error(nullptr), "TypeError: Cannot convert from type `None` to `Map<int, int>`");
  EXPECT_EQ(error(Array<int>()),
            "TypeError: Cannot convert from type `ffi.Array` to `Map<int, int>`");
  Any ints = Map<Any, Any>{{1, 2}};
  EXPECT_EQ(ErrorText([&] { ints.cast<Map<Number, double>>(); }),
            "TypeError: Cannot convert from type `Map[some key is int, V]` to "
            "`Map<core_test.Number, float>`");
  EXPECT_EQ(ErrorText([&] { ints.cast<Dict<String, double>>(); }),
            "TypeError: Cannot convert from type `Dict[some key is int, V]` to "
            "`Dict<str, float>`");
}

TEST(MapConversion, NamesSchemasAndSubsumption) {
  EXPECT_EQ((TypeTraits<Map<String, Any>>::TypeStr()), "Map<str, Any>");
  EXPECT_EQ((TypeTraits<Dict<int, Array<int>>>::TypeStr()), "Dict<int, Array<int>>");
  EXPECT_EQ((TypeTraits<Map<String, int>>::TypeSchema()),
            R"({"type":"ffi.Map","args":[{"type":"ffi.String"},{"type":"int"}]})");
  EXPECT_EQ((TypeTraits<Dict<Any, Any>>::TypeSchema()),
            R"({"type":"ffi.Dict","args":[{"type":"Any"},{"type":"Any"}]})");
  EXPECT_EQ((TypeToFieldStaticTypeIndex<Map<int, int>>::value), 64);
  EXPECT_EQ((TypeToFieldStaticTypeIndex<Dict<int, int>>::value), 64);
  static_assert(type_subsumes_v<Map<Any, Number>, Map<int, Int>>);
  static_assert(!type_subsumes_v<Map<Any, Int>, Map<Any, Number>>);
  static_assert(std::is_convertible_v<Dict<int, Int>, Dict<int, Number>>);
  static_assert(!std::is_convertible_v<Dict<int, Number>, Dict<int, Int>>);
  Map<int, Int> narrow = {{1, Int(1)}};
  Map<Any, Number> wide = narrow;
  EXPECT_TRUE(wide.same_as(narrow));
}

TEST(MapConversion, PointersAsKeysAndValues) {
  ObjectPtr<IntObj> one = make_object<IntObj>(1);
  Map<ObjectPtr<IntObj>, ObjectPtr<NumberObj>> map = {{one, nullptr}, {nullptr, one}};
  EXPECT_EQ(map[one], nullptr);
  EXPECT_EQ(map[nullptr].get(), one.get());
  EXPECT_FALSE((Any(map).try_cast<Map<Arc<IntObj>, Any>>().has_value()));
  Dict<String, const IntObj*> raw = {{"one", one.get()}};
  EXPECT_EQ(raw["one"]->value, 1);
  Dict<Arc<IntObj>, int> arcs;
  Arc<IntObj> arc = make_arc<IntObj>(2);
  arcs.Set(arc, 5);
  EXPECT_EQ(arcs[arc], 5);
}

// ---- Global functions

TEST(MapGlobals, MapFunctions) {
  Map<Any, Any> map = CallGlobal("ffi.Map", "a", 1, "b", 2, "a", 3).cast<Map<Any, Any>>();
  EXPECT_EQ(CallGlobal("ffi.MapSize", map).cast<int>(), 2);
  EXPECT_EQ(CallGlobal("ffi.MapGetItem", map, "a").cast<int>(), 3);
  EXPECT_EQ(CallGlobal("ffi.MapCount", map, "b").cast<int>(), 1);
  EXPECT_EQ(CallGlobal("ffi.MapCount", map, "c").cast<int>(), 0);
  EXPECT_EQ(ErrorText([&] { CallGlobal("ffi.MapGetItem", map, "c"); }),
            "KeyError: key is not in Map");
  Any missing = CallGlobal("ffi.MapGetItemOrMissing", map, "c");
  EXPECT_TRUE(missing.same_as(CallGlobal("ffi.GetInvalidObject")));
  EXPECT_EQ(CallGlobal("ffi.MapGetItemOrMissing", map, "b").cast<int>(), 2);
  EXPECT_EQ(CallGlobal("ffi.MapSize", CallGlobal("ffi.Map")).cast<int>(), 0);
  EXPECT_EQ(ErrorText([&] { CallGlobal("ffi.Map", 1); }),
            "InternalError: Check failed: args.size() % 2 == 0 (1 vs. 0) : ");
  EXPECT_TRUE(tether_test::Contains(ErrorText([&] { CallGlobal("ffi.MapSize", Dict<int, int>()); }),
                                    "Expected `ffi.Map` but got `ffi.Dict`"));
}

TEST(MapGlobals, DictFunctions) {
  Dict<Any, Any> dict = CallGlobal("ffi.Dict", "a", 1).cast<Dict<Any, Any>>();
  CallGlobal("ffi.DictSetItem", dict, "b", 2);
  EXPECT_EQ(CallGlobal("ffi.DictSize", dict).cast<int>(), 2);
  EXPECT_EQ(CallGlobal("ffi.DictGetItem", dict, "b").cast<int>(), 2);
  EXPECT_EQ(CallGlobal("ffi.DictCount", dict, "b").cast<int>(), 1);
  CallGlobal("ffi.DictErase", dict, "b");
  CallGlobal("ffi.DictErase", dict, "b");
  EXPECT_EQ(dict.size(), 1u);
  EXPECT_TRUE(CallGlobal("ffi.DictGetItemOrMissing", dict, "b")
                  .same_as(CallGlobal("ffi.GetInvalidObject")));
  EXPECT_EQ(ErrorText([&] { CallGlobal("ffi.DictGetItem", dict, "b"); }),
            "KeyError: key is not in Map");
  CallGlobal("ffi.DictClear", dict);
  EXPECT_TRUE(dict.empty());
}

TEST(MapGlobals, TheIterationFunctorWalksInOrder) {
  for (int n : {1, 3, 20}) {
    Dict<int, int> dict;
    for (int i = 0; i < n; ++i) dict.Set(i, i * 10);
    Function next = CallGlobal("ffi.DictForwardIterFunctor", dict).cast<Function>();
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(next(0).cast<int>(), i);
      EXPECT_EQ(next(1).cast<int>(), i * 10);
      EXPECT_EQ(next(2).cast<bool>(), i + 1 < n);
    }
    EXPECT_FALSE(next(2).cast<bool>());
    EXPECT_TRUE(tether_test::Contains(ErrorText([&] { next(0); }), "IndexError"));
  }
  Function empty = CallGlobal("ffi.MapForwardIterFunctor", Map<int, int>()).cast<Function>();
  EXPECT_FALSE(empty(2).cast<bool>());
}

TEST(MapGlobals, TheIterationFunctorSurvivesItsMap) {
  Function next;
  {
    Dict<int, String> dict;
    for (int i = 0; i < 4; ++i) dict.Set(i, "a value long enough for the heap");
    next = CallGlobal("ffi.DictForwardIterFunctor", dict).cast<Function>();
    next(2), next(2), next(2);
    for (int i = 4; i < 100; ++i) dict.Set(i, "more");  // its storage changes form twice
    ErrorText([&] { next(0); });
    dict.clear();
  }
  EXPECT_FALSE(next(2).cast<bool>());
  EXPECT_TRUE(tether_test::Contains(ErrorText([&] { next(1); }), "IndexError"));
}

TEST(MapGlobals, FindFirstNonCPUDeviceSearchesValuesInOrder) {
  auto tensor = [](DLDeviceType type, int id) {
    struct Alloc {
      void AllocData(DLTensor* t) { t->data = nullptr; }
      void FreeData(DLTensor*) {}
    };
    return Tensor::FromNDAlloc(Alloc(), {1}, DLDataType{kDLFloat, 32, 1}, DLDevice{type, id});
  };
  auto find = [](const Any& value) {
    DLDevice d = CallGlobal("ffi.ContainerFindFirstNonCPUDevice", value).cast<DLDevice>();
    return std::make_pair(static_cast<int>(d.device_type), static_cast<int>(d.device_id));
  };
  Tensor cpu = tensor(kDLCPU, 0), cuda1 = tensor(kDLCUDA, 1), cuda2 = tensor(kDLCUDA, 2);
  using P = std::pair<int, int>;
  EXPECT_EQ(find(1), P(1, 0));
  EXPECT_EQ(find(cuda1), P(2, 1));
  EXPECT_EQ(find(cpu), P(1, 0));
  EXPECT_EQ(find(Array<Any>{cpu, Array<Any>{1, cuda2}, cuda1}), P(2, 2));
  EXPECT_EQ(find(List<Any>{Dict<Any, Any>{{"x", cpu}}, Map<Any, Any>{{"y", cuda1}}}), P(2, 1));
  EXPECT_EQ(find(Map<Any, Any>{{cuda1, cpu}}), P(1, 0)) << "keys are not searched";
  List<Any> cycle;
  cycle.push_back(cycle), cycle.push_back(cuda2);
  EXPECT_EQ(find(cycle), P(2, 2));
  Dict<Any, Any> inner;
  inner.Set(1, inner);
  EXPECT_EQ(find(Array<Any>{inner, inner}), P(1, 0));
  cycle.clear(), inner.clear();
}

}  // namespace
