// SPDX-License-Identifier: Apache-2.0
//
// Old binaries against our library: loads clients built with released headers (old_client.cc) into
// one process and lets objects, containers, functions, errors, weak references and tensors cross
// between them and this program, which is built with our headers. Run plain and under valgrind.
//
//   old_client_driver [--global] 0.1.9=client_a.so 0.1.12=client_b.so ours=client_c.so [gtest
//   flags]
//
// --global loads with RTLD_GLOBAL, so equal weak symbols merge between the libraries.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <tvm/ffi/big_int.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/extra/structural_mutate.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "skew_common.h"

namespace {

// NOLINTNEXTLINE(google-build-using-namespace)
using namespace tvm::ffi;
using skew::Point;
using skew::Point3;
using skew::PointObj;
using skew::Shifted;

constexpr const char* kOurs = "ours";
const char* const kLongText = "a string that needs the heap";

struct Client {
  std::string name;
  std::string path;
  void* library = nullptr;

  Function Find(const std::string& what) const {
    return Function::GetGlobalRequired("skew." + name + "." + what);
  }
  template <typename... Args>
  Any Call(const char* what, Args&&... args) const {
    return Find(what)(std::forward<Args>(args)...);
  }
  bool IsOurs() const { return name == kOurs; }
  // 0.1.13 is the one release that allocates through the registry; ours is the other.
  bool AllocatesThroughRegistry() const { return IsOurs() || name == "0.1.13"; }
  bool ModulesDisagree() const { return name == "0.1.13"; }
  // Since 0.1.14.
  bool HasMutator() const {
    return Function::GetGlobal("skew." + name + ".add_to_ints").has_value();
  }
};

std::vector<Client>& Clients() {
  static std::vector<Client> clients;
  return clients;
}

bool symbols_merge = false;

const TVMFFIObject* HeaderOf(const Any& value) {
  return details::ObjectUnsafe::GetHeader(value.cast<const Object*>());
}

uint32_t PaddingOf(const Any& value) { return HeaderOf(value)->__padding; }

// Only for objects that carry the mark.
const TVMFFIObjectAllocHeader* PrefixOf(const Any& value) {
  return reinterpret_cast<const TVMFFIObjectAllocHeader*>(HeaderOf(value)) - 1;
}

Any RaisedError() {
  TVMFFIObjectHandle error = nullptr;
  TVMFFIErrorMoveFromRaised(&error);
  return Any(details::ObjectUnsafe::ObjectPtrFromOwned<ErrorObj>(static_cast<Object*>(error)));
}

std::vector<int64_t> Flatten(const Array<int64_t>& array) { return {array.begin(), array.end()}; }

class OldClient : public testing::TestWithParam<size_t> {
 protected:
  const Client& client() const { return Clients()[GetParam()]; }
  template <typename... Args>
  Any Call(const char* what, Args&&... args) const {
    return client().Call(what, std::forward<Args>(args)...);
  }
  // An object of the client whose header starts its block: no mark from released headers, the mark
  // from ours. Where symbols merge either may have made it, but the mark never lies.
  void ExpectTruthfulPadding(const Any& value, const char* what) const {
    uint32_t padding = PaddingOf(value);
    if (symbols_merge && padding == kTVMFFIObjectAllocHeaderMark) {
      Any mine = Point(0, "", nullptr);
      EXPECT_EQ(PrefixOf(value)->delete_space, PrefixOf(mine)->delete_space) << what;
    } else {
      uint32_t mark = kTVMFFIObjectAllocHeaderMark;
      EXPECT_EQ(padding, client().IsOurs() && !symbols_merge ? mark : 0u) << what;
    }
  }
};

// ---- objects --------------------------------------------------------------------------------

TEST_P(OldClient, ReadsAndWritesObjectsOfTheOtherSide) {
  Point theirs = Call("make_point", 4, kLongText, Array<Any>({1, 2})).cast<Point>();
  EXPECT_EQ(theirs->x, 4);
  EXPECT_EQ(theirs->label, kLongText);
  EXPECT_EQ(theirs->extra.cast<Array<int64_t>>().size(), 2);
  theirs->label = "now from the driver, on the heap";
  theirs->extra = Map<String, Any>({{"k", kLongText}});
  EXPECT_EQ(Call("point_label", theirs).cast<String>(), "now from the driver, on the heap");

  Point mine(5, "mine", nullptr);
  EXPECT_EQ(Call("point_x", mine).cast<int64_t>(), 5);
  Call("point_write", mine, 6, kLongText, List<Any>({"x", kLongText}));
  EXPECT_EQ(mine->x, 6);
  EXPECT_EQ(mine->label, kLongText);
  EXPECT_EQ(mine->extra.cast<List<String>>()[1], kLongText);
}

TEST_P(OldClient, KeepsReferenceCountsExact) {
  Any theirs = Call("make_point", 1, "a", nullptr);
  EXPECT_EQ(theirs.cast<const PointObj*>()->use_count(), 1);
  EXPECT_EQ(Call("use_count", theirs).cast<int64_t>(), 2);
  Point mine(1, "a", nullptr);
  Call("hold", mine);
  EXPECT_EQ(mine.use_count(), 2);
  EXPECT_TRUE(Call("held").cast<Point>().same_as(mine));
  Call("drop");
  EXPECT_EQ(mine.use_count(), 1);
}

TEST_P(OldClient, SharesTypeKeysAndInheritance) {
  EXPECT_EQ(Call("point_type_index").cast<int32_t>(), PointObj::RuntimeTypeIndex());
  Any theirs = Call("make_point3", 3, 9);
  ASSERT_NE(theirs.as<skew::Point3Obj>(), nullptr);
  EXPECT_EQ(theirs.cast<Point>()->x, 3);
  EXPECT_EQ(theirs.as<skew::Point3Obj>()->z, 9);
  EXPECT_TRUE(Call("is_point", Point3(1, 2)).cast<bool>());
  EXPECT_TRUE(Call("is_point", Point(1, "", nullptr)).cast<bool>());
  EXPECT_FALSE(Call("is_point", Array<Any>()).cast<bool>());
}

TEST_P(OldClient, PutsHeadersAwayFromTheStartOfTheBlock) {
  Any theirs = Call("make_shifted", 11);
  EXPECT_EQ(theirs.cast<Shifted>()->value, 11);
  EXPECT_EQ(PaddingOf(theirs), 0u) << "handle - 8 is user data here, so the mark must not be set";
  Shifted mine(12);
  EXPECT_EQ(PaddingOf(mine), 0u);
  EXPECT_EQ(Call("shifted_value", mine).cast<int64_t>(), 12 + 0x5eed);
}

TEST_P(OldClient, ObjectsArriveWithATruthfulPaddingWord) {
  std::vector<std::pair<const char*, Any>> arrivals = {
      {"object", Call("make_point", 1, "a", nullptr)},
      {"derived object", Call("make_point3", 1, 2)},
      {"reflected object", Call("make_node", 1, "n")},
      {"heap string", Call("make_string", 40)},
      {"moved string", Call("make_moved_string", 3)},
      {"heap bytes", Call("make_bytes", 40)},
      {"array", Call("make_array", 3)},
      {"list", Call("make_list", 3)},
      {"small map", Call("make_map", 2)},
      {"dense map", Call("make_map", 20)},
      {"small dict", Call("make_dict", 2)},
      {"dense dict", Call("make_dict", 20)},
      {"shape", Call("make_shape", 2, 3)},
      {"moved shape", Call("make_moved_shape", 2, 3)},
      {"function", Call("make_adder", 1)},
      {"error", Call("make_error", "e")},
      {"tensor", Call("make_ramp", 4)},
  };
  for (const auto& [what, value] : arrivals) ExpectTruthfulPadding(value, what);
}

TEST_P(OldClient, OurObjectsCarryTheMarkAndKeepIt) {
  std::vector<Any> departures = {
      Point(1, "a", nullptr),
      Point3(1, 2),
      String(kLongText),
      String(std::string("abc")),
      Array<Any>({1}),
      List<Any>({1}),
      Map<Any, Any>({{1, 2}}),
      Dict<Any, Any>(),
      Shape({1, 2}),
      Function::FromPacked(skew::Adder{1}),
      Error("ValueError", "m", ""),
      skew::MakeRamp(3),
  };
  for (const Any& value : departures) {
    EXPECT_EQ(PaddingOf(value), kTVMFFIObjectAllocHeaderMark) << value.GetTypeKey();
    EXPECT_TRUE(Call("echo", value).same_as(value));
    EXPECT_EQ(PaddingOf(value), kTVMFFIObjectAllocHeaderMark) << value.GetTypeKey();
  }
}

TEST_P(OldClient, CopyingAnObjectDoesNotCopyTheMark) {
  Point mine(7, kLongText, nullptr);
  Any their_copy = Call("point_copy", mine);
  ExpectTruthfulPadding(their_copy, "copy");
  EXPECT_EQ(their_copy.cast<Point>()->label, kLongText);
  EXPECT_EQ(their_copy.cast<const PointObj*>()->use_count(), 1);

  Point theirs = Call("make_point", 8, kLongText, nullptr).cast<Point>();
  Point my_copy(make_object<PointObj>(*theirs.get()));
  EXPECT_EQ(PaddingOf(my_copy), kTVMFFIObjectAllocHeaderMark);
  EXPECT_EQ(my_copy.use_count(), 1);
}

TEST_P(OldClient, MadeObjectsWhileItWasBeingLoaded) {
  Array<Any> made = Call("made_at_load").cast<Array<Any>>();
  ASSERT_EQ(made.size(), 5);
  ExpectTruthfulPadding(made, "array made at load");
  EXPECT_EQ(made[0].cast<int>(), 1);
  EXPECT_EQ(made[2].cast<String>(), "short");
  EXPECT_EQ(made[3].cast<String>(), kLongText);
  EXPECT_EQ((made[4].cast<Map<String, int>>().at("key")), 7);
}

// ---- allocation registry --------------------------------------------------------------------

struct CountingAllocator {
  static inline std::atomic<int64_t> live{0};
  static inline std::atomic<int64_t> total{0};

  // 16 bytes of prefix whose last word is the header, as a frontend lays it out.
  static void* Allocate(size_t size, size_t, int32_t, void*) {
    char* block = static_cast<char*>(std::malloc(size + 16));
    new (block + 8) TVMFFIObjectAllocHeader{&Release};
    ++live;
    ++total;
    return block + 16;
  }
  static void Release(void* body) {
    --live;
    std::free(static_cast<char*>(body) - 16);
  }
};

TEST_P(OldClient, ReachesTheRegistryOnlyIfItsReleaseKnowsIt) {
  TVMFFICustomAllocator counting{&CountingAllocator::Allocate, nullptr};
  CountingAllocator::total = 0;
  ASSERT_EQ(TVMFFISetCustomAllocator(&counting), 0);
  Any theirs = Call("make_point", 1, "short", nullptr);
  int64_t theirs_total = CountingAllocator::total.exchange(0);
  Any mine = Point(1, "short", nullptr);
  int64_t mine_total = CountingAllocator::total;
  ASSERT_EQ(TVMFFISetCustomAllocator(nullptr), 0);
  if (!symbols_merge) {
    EXPECT_EQ(theirs_total, client().AllocatesThroughRegistry() ? 1 : 0);
  }
  EXPECT_EQ(mine_total, 1);
  Call("hold", mine);
  mine.reset();
  theirs.reset();
  Call("drop");
  EXPECT_EQ(CountingAllocator::live, 0) << "released through the prefix they were allocated with";
}

// ---- strings --------------------------------------------------------------------------------

TEST_P(OldClient, StringsAndBytesOfEverySizeCross) {
  for (int64_t size : {0, 1, 7, 8, 9, 100}) {
    String mine(std::string(size, 's').c_str());
    Any theirs = Call("make_string", size);
    Any moved = Call("make_moved_string", size);
    EXPECT_EQ(theirs.cast<String>(), mine);
    EXPECT_EQ(moved.cast<String>(), mine);
    EXPECT_EQ(Call("string_size", mine).cast<int64_t>(), size);
    EXPECT_EQ(theirs.type_index(), size < 8 ? kTVMFFISmallStr : kTVMFFIStr);
    for (const Any& value : {Any(mine), theirs, moved}) {
      EXPECT_EQ(Call("any_hash", value).cast<int64_t>(), static_cast<int64_t>(AnyHash()(value)));
      EXPECT_TRUE(Call("any_equal", value, mine).cast<bool>());
      EXPECT_TRUE(AnyEqual()(value, mine));
    }
    EXPECT_EQ(Call("make_bytes", size).cast<Bytes>().size(), static_cast<size_t>(size));
    EXPECT_EQ(Call("bytes_size", Bytes(mine.data(), mine.size())).cast<int64_t>(), size);
  }
  EXPECT_EQ(Call("concat", "abc", kLongText).cast<String>(), String("abc") + kLongText);
}

TEST_P(OldClient, PlainValuesCrossUnchanged) {
  std::vector<Any> values = {nullptr,
                             true,
                             -1,
                             2.5,
                             static_cast<void*>(&values),
                             DLDataType{kDLFloat, 16, 4},
                             DLDevice{kDLCUDA, 3}};
  for (const Any& value : values) {
    EXPECT_TRUE(Call("echo", value).same_as(value)) << value.GetTypeKey();
    EXPECT_EQ(Call("any_hash", value).cast<int64_t>(), static_cast<int64_t>(AnyHash()(value)));
  }
}

// ---- containers -----------------------------------------------------------------------------

TEST_P(OldClient, ArraysAreReadCopiedAndGrownOnBothSides) {
  Array<Any> theirs = Call("make_array", 5).cast<Array<Any>>();
  theirs.push_back(5);
  for (int64_t i = 6; i < 40; ++i) theirs.push_back(i);
  EXPECT_EQ(Call("array_sum", theirs).cast<int64_t>(), 39 * 40 / 2);

  Array<Any> mine = {1, 2, 3};
  Array<Any> pushed = Call("array_push", mine, kLongText).cast<Array<Any>>();
  EXPECT_EQ(mine.size(), 3) << "shared arrays are copied on write";
  ASSERT_EQ(pushed.size(), 4);
  EXPECT_EQ(pushed[3].cast<String>(), kLongText);

  Array<Any> moved_in = {0};
  moved_in.reserve(100);
  const Object* address = moved_in.get();
  Array<Any> moved_out =
      Call("array_take_and_push", RValueRef(std::move(moved_in)), kLongText, 50).cast<Array<Any>>();
  EXPECT_EQ(moved_out.get(), address) << "a unique array with room is changed in place";
  EXPECT_EQ(moved_out.size(), 51);
  moved_out =
      Call("array_take_and_push", RValueRef(std::move(moved_out)), 1, 1000).cast<Array<Any>>();
  EXPECT_EQ(moved_out.size(), 1051);
}

TEST_P(OldClient, ListsMutatedAlternatelyMatchAModel) {
  for (bool mine_first : {true, false}) {
    List<Any> list = mine_first ? List<Any>() : Call("make_list", 0).cast<List<Any>>();
    std::vector<int64_t> model;
    std::mt19937 random(7);
    for (int64_t round = 0; round < 400; ++round) {
      bool by_client = random() % 2 == 0;
      int64_t at = model.empty() ? 0 : static_cast<int64_t>(random() % model.size());
      switch (model.empty() ? 0 : random() % 5) {
        case 0:
        case 1:
          by_client ? (void)Call("list_push", list, round) : list.push_back(round);
          model.push_back(round);
          break;
        case 2:
          by_client ? (void)Call("list_insert", list, at, round)
                    : (void)list.insert(list.begin() + at, Any(round));
          model.insert(model.begin() + at, round);
          break;
        case 3:
          by_client ? (void)Call("list_set", list, at, round) : list.Set(at, round);
          model[at] = round;
          break;
        default:
          by_client ? (void)Call("list_erase", list, at) : (void)list.erase(list.begin() + at);
          model.erase(model.begin() + at);
      }
    }
    Array<int64_t> seen(list.size(), 0);
    for (size_t i = 0; i < list.size(); ++i) seen.Set(i, list[i].cast<int64_t>());
    EXPECT_EQ(Flatten(seen), model);
    int64_t sum = 0;
    for (int64_t x : model) sum += x;
    EXPECT_EQ(Call("list_sum", list).cast<int64_t>(), sum);
    Call("list_clear", list);
    EXPECT_EQ(list.size(), 0);
  }
}

// Insertion-ordered model of a Dict: small dicts keep the place of an overwritten key, dense ones
// move it to the end, so only the contents are compared with the model and the order between both
// sides.
TEST_P(OldClient, DictsMutatedAlternatelyMatchAModel) {
  for (bool mine_first : {true, false}) {
    Dict<Any, Any> dict =
        mine_first ? Dict<Any, Any>() : Call("make_dict", 0).cast<Dict<Any, Any>>();
    std::map<int64_t, int64_t> model;
    std::mt19937 random(11);
    for (int64_t round = 0; round < 600; ++round) {
      bool by_client = random() % 2 == 0;
      int64_t key = static_cast<int64_t>(random() % 150);
      if (random() % 3 != 0) {
        by_client ? (void)Call("dict_set", dict, key, round) : dict.Set(key, round);
        model[key] = round;
      } else {
        by_client ? (void)Call("dict_erase", dict, key) : dict.erase(key);
        model.erase(key);
      }
    }
    std::map<int64_t, int64_t> seen;
    std::vector<int64_t> my_order;
    for (const auto& [key, value] : dict) {
      seen[key.cast<int64_t>()] = value.cast<int64_t>();
      my_order.push_back(key.cast<int64_t>());
      my_order.push_back(value.cast<int64_t>());
    }
    EXPECT_EQ(seen, model);
    EXPECT_EQ(Flatten(Call("dict_items", dict).cast<Array<int64_t>>()), my_order);
    Call("dict_clear", dict);
    EXPECT_TRUE(dict.empty());
  }
}

TEST_P(OldClient, MapsOfEverySizeAreReadAndGrownOnBothSides) {
  for (int64_t size : {0, 1, 2, 3, 4, 5, 8, 16, 33, 200}) {
    Map<Any, Any> theirs = Call("make_map", size).cast<Map<Any, Any>>();
    ASSERT_EQ(theirs.size(), static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) EXPECT_EQ(theirs.at(i).cast<int64_t>(), i * i);
    for (int64_t i = size; i < size + 40; ++i) theirs.Set(i, i * i);
    Map<Any, Any> grown =
        Call("map_take_and_fill", RValueRef(std::move(theirs)), size + 40, size + 80)
            .cast<Map<Any, Any>>();
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < size + 80; ++i) {
      expected.push_back(i);
      expected.push_back(i * i);
    }
    EXPECT_EQ(Flatten(Call("map_items", grown).cast<Array<int64_t>>()), expected);
  }
}

TEST_P(OldClient, MapKeysOfEveryKindAreFoundOnBothSides) {
  std::vector<Any> keys = {1,
                           true,
                           1.0,
                           "a",
                           kLongText,
                           nullptr,
                           Bytes("raw", 3),
                           DLDevice{kDLCPU, 0},
                           Point(1, "", nullptr)};
  Map<Any, Any> mine;
  Any theirs = Call("make_map", 0);
  for (size_t i = 0; i < keys.size(); ++i) {
    mine.Set(keys[i], static_cast<int64_t>(i));
    theirs = Call("map_set", theirs, keys[i], static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(Call("map_get", mine, keys[i]).cast<size_t>(), i);
    EXPECT_EQ((theirs.cast<Map<Any, Any>>().at(keys[i]).cast<size_t>()), i);
  }
  Any erased = Call("map_erase", mine, "a");
  EXPECT_EQ((erased.cast<Map<Any, Any>>().size()), keys.size() - 1);
  EXPECT_EQ(mine.size(), keys.size());
  EXPECT_THROW(Call("map_get", mine, "absent"), Error);
  EXPECT_THROW(Call("dict_get", Dict<Any, Any>(), 1), Error);
}

TEST_P(OldClient, ShapesCross) {
  EXPECT_EQ(Call("make_shape", 2, 3).cast<Shape>().Product(), 6);
  EXPECT_EQ(Call("make_moved_shape", 2, 3).cast<Shape>()[1], 3);
  EXPECT_EQ(Call("shape_product", Shape({4, 5})).cast<int64_t>(), 20);
  EXPECT_EQ(Call("shape_product", Shape(std::vector<int64_t>{4, 6})).cast<int64_t>(), 24);
}

// ---- functions and errors -------------------------------------------------------------------

TEST_P(OldClient, FunctionsAreCalledBothWays) {
  Function theirs = Call("make_adder", 10).cast<Function>();
  EXPECT_EQ(theirs(1).cast<int64_t>(), 11);
  Function mine = Function::FromPacked(skew::Adder{100});
  EXPECT_EQ(Call("apply", mine, 1).cast<int64_t>(), 101);
  EXPECT_EQ(Call("apply_typed", mine, 2).cast<int64_t>(), 102);
  EXPECT_EQ(Call("apply_through_c", mine, 3).cast<int64_t>(), 103);
  // There and back: their frame calls our function, which calls theirs.
  Function nested =
      Function::FromTyped([theirs](int64_t x) { return theirs(x).cast<int64_t>() + 1; });
  EXPECT_EQ(Call("apply", nested, 1).cast<int64_t>(), 12);
}

TEST_P(OldClient, WrongArgumentsAreTypeErrorsNamingTheFunction) {
  try {
    Call("string_size", 1);
    FAIL() << "an int is not a string";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "TypeError");
    EXPECT_NE(error.message().find("string_size"), std::string::npos) << error.message();
  }
  try {
    Call("string_size");
    FAIL() << "one argument is required";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "TypeError");
    EXPECT_NE(error.message().find("Expected 1 but got 0"), std::string::npos) << error.message();
  }
}

TEST_P(OldClient, ErrorsThrownThereAreCaughtHere) {
  try {
    Call("throw_error", kLongText);
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "ValueError");
    EXPECT_EQ(error.message(), kLongText);
    EXPECT_NE(error.backtrace().find("old_client.cc"), std::string::npos) << error.backtrace();
    EXPECT_STREQ(error.what(), kLongText);
  }
  EXPECT_THROW(Call("throw_std", "plain"), std::runtime_error) << "cpp_call lets it pass unchanged";
}

TEST_P(OldClient, ErrorsThrownHereAreCaughtThere) {
  Function mine = Function::FromTyped([]() { TVM_FFI_THROW(KeyError) << "from the driver"; });
  EXPECT_EQ(Call("describe", mine).cast<String>(), "KeyError: from the driver");
  Function foreign = Function::FromTyped([]() { throw std::logic_error("not an FFI error"); });
  EXPECT_EQ(Call("describe", foreign).cast<String>(), "std: not an FFI error");
  EXPECT_EQ(Call("describe", client().Find("make_ramp")).cast<String>().substr(0, 9), "TypeError");
}

TEST_P(OldClient, OneErrorObjectTravelsThroughAllFrames) {
  Error original("IndexError", "keep my identity", "");
  Function thrower = Function::FromTyped([original]() { throw original; });
  try {
    Call("apply", Function::FromTyped([&](Any) { thrower(); }), 0);
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_TRUE(error.same_as(original));
  }
}

TEST_P(OldClient, ErrorsReturnThroughTheCAbiBothWays) {
  Function mine =
      Function::FromTyped([](int64_t) -> int64_t { TVM_FFI_THROW(ValueError) << "c abi"; });
  EXPECT_EQ(Call("apply_through_c", mine, 1).cast<Error>().message(), "c abi");

  Function theirs = client().Find("throw_std");
  Any text = "became internal";
  TVMFFIAny args[1] = {AnyView(text).CopyToTVMFFIAny()};
  TVMFFIAny result{};
  ASSERT_EQ(
      TVMFFIFunctionCall(const_cast<FunctionObj*>(static_cast<const FunctionObj*>(theirs.get())),
                         args, 1, &result),
      -1);
  Error raised = RaisedError().cast<Error>();
  EXPECT_EQ(raised.kind(), "InternalError");
  EXPECT_EQ(raised.message(), "became internal");
}

TEST_P(OldClient, ErrorObjectsAreReadAndExtendedByTheOtherSide) {
  Error theirs = Call("make_error", kLongText).cast<Error>();
  EXPECT_EQ(theirs.kind(), "IndexError");
  EXPECT_EQ(theirs.message(), kLongText);
  std::string line = "  File \"driver\", line 1, in here\n";
  TVMFFIByteArray text{line.data(), line.size()};
  theirs.UpdateBacktrace(&text, kTVMFFIBacktraceUpdateModeAppend);
  EXPECT_EQ(theirs.backtrace(), "  File \"x\"\n" + line);

  Error mine("MyOwnKind", "text", "first\n");
  EXPECT_EQ(Call("error_text", mine).cast<String>(), "MyOwnKind: text");
  Call("append_backtrace", mine, "second\n");
  EXPECT_EQ(mine.backtrace(), "first\nsecond\n");

  Function inner = Function::FromTyped([]() { TVM_FFI_THROW(ValueError) << "the cause"; });
  try {
    Call("wrap_error", inner);
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "wrapped");
    ASSERT_TRUE(error.cause_chain().has_value());
    EXPECT_EQ(error.cause_chain()->message(), "the cause");
  }
}

// ---- weak references and threads ------------------------------------------------------------

TEST_P(OldClient, WeakReferencesFollowObjectsOfTheOtherSide) {
  Point mine(3, kLongText, nullptr);
  Call("watch", mine);
  EXPECT_TRUE(Call("watched_alive").cast<bool>());
  EXPECT_TRUE(Call("watched").cast<Point>().same_as(mine));
  mine = Point();
  EXPECT_FALSE(Call("watched_alive").cast<bool>());
  EXPECT_FALSE(Call("watched").cast<Point>().defined());
  Call("unwatch");

  Any theirs = Call("make_point", 4, kLongText, nullptr);
  WeakObjectPtr<PointObj> weak(
      details::ObjectUnsafe::ObjectPtrFromObjectRef<PointObj>(theirs.cast<Point>()));
  EXPECT_EQ(weak.lock()->x, 4);
  Call("hold", theirs);
  theirs.reset();
  EXPECT_FALSE(weak.expired());
  Call("drop");
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(weak.lock(), nullptr);
}

TEST_P(OldClient, LastReferenceMayBeDroppedOnAnotherThread) {
  Call("hold", Point(1, kLongText, List<Any>({kLongText})));
  Call("drop_on_thread");

  Any theirs = Call("make_point", 1, kLongText, Call("make_dict", 20));
  std::thread([moved = std::move(theirs)]() mutable { moved.reset(); }).join();

  Any error = Call("make_error", "dropped elsewhere");
  std::thread([moved = std::move(error)]() mutable { moved.reset(); }).join();
}

TEST_P(OldClient, ThreadsOfBothSidesCountTheSameObject) {
  Point mine(1, kLongText, nullptr);
  Point theirs = Call("make_point", 1, kLongText, nullptr).cast<Point>();
  for (const Point& point : {mine, theirs}) {
    std::thread here([copy = Point(point)]() {
      for (int i = 0; i < 500; ++i) Any again(copy);
    });
    Call("share_between_threads", point, 2, 500);
    here.join();
  }
  EXPECT_EQ(mine.use_count(), 1);
  EXPECT_EQ(theirs.use_count(), 1);
}

// ---- tensors --------------------------------------------------------------------------------

TEST_P(OldClient, TensorsCrossDirectlyAndThroughDLPack) {
  Tensor theirs = Call("make_ramp", 5).cast<Tensor>();
  EXPECT_EQ(theirs.shape()[0], 5);
  EXPECT_EQ(theirs.strides()[0], 1);
  EXPECT_EQ(static_cast<float*>(theirs.data_ptr())[4], 4.0F);
  Tensor mine = skew::MakeRamp(5);
  EXPECT_EQ(Call("ramp_sum", mine).cast<double>(), 10.0);
  EXPECT_EQ(Call("view_length", mine).cast<int64_t>(), 5);

  Tensor imported = Tensor::FromDLPack(theirs.ToDLPack());
  EXPECT_EQ(imported.data_ptr(), theirs.data_ptr());
  EXPECT_EQ(Call("ramp_sum", imported).cast<double>(), 10.0);

  Tensor back = Call("import_dlpack", static_cast<void*>(mine.ToDLPack())).cast<Tensor>();
  EXPECT_EQ(back.data_ptr(), mine.data_ptr());
  back =
      Call("import_dlpack_versioned", static_cast<void*>(mine.ToDLPackVersioned())).cast<Tensor>();
  EXPECT_EQ(back.data_ptr(), mine.data_ptr());
  mine = Tensor();
  EXPECT_EQ(static_cast<float*>(back.data_ptr())[4], 4.0F) << "the import keeps the source alive";

  void* managed = Call("export_dlpack", back).cast<void*>();
  EXPECT_EQ(Tensor::FromDLPack(static_cast<DLManagedTensor*>(managed)).numel(), 5);
  managed = Call("export_dlpack_versioned", back).cast<void*>();
  EXPECT_EQ(Tensor::FromDLPackVersioned(static_cast<DLManagedTensorVersioned*>(managed)).numel(),
            5);
}

// ---- reflection, exported functions, modules ------------------------------------------------

TEST_P(OldClient, ReflectedFieldsAndMethodsWorkThroughTheCAbi) {
  Any node = Call("make_node", 5, kLongText);
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(node.type_index());
  ASSERT_EQ(std::string(info->type_key.data, info->type_key.size),
            "skew." + client().name + ".Node");
  ASSERT_EQ(info->num_fields, 7);
  ASSERT_NE(info->metadata, nullptr);

  char* base = const_cast<char*>(reinterpret_cast<const char*>(HeaderOf(node)));
  std::map<std::string, const TVMFFIFieldInfo*> fields;
  for (int i = 0; i < info->num_fields; ++i) {
    fields[std::string(info->fields[i].name.data, info->fields[i].name.size)] = &info->fields[i];
  }
  auto get = [&](const char* name) {
    TVMFFIAny out{};
    EXPECT_EQ(fields.at(name)->getter(base + fields.at(name)->offset, &out), 0);
    return details::AnyUnsafe::MoveTVMFFIAnyToAny(&out);
  };
  auto set = [&](const char* name, const Any& value) {
    TVMFFIAny view = AnyView(value).CopyToTVMFFIAny();
    auto setter = reinterpret_cast<TVMFFIFieldSetter>(fields.at(name)->setter);
    return setter(base + fields.at(name)->offset, &view);
  };
  EXPECT_EQ(get("value").cast<int64_t>(), 5);
  EXPECT_EQ(get("weight").cast<double>(), 0.5);
  EXPECT_EQ(get("name").cast<String>(), kLongText);
  EXPECT_EQ(get("children").cast<List<Any>>().size(), 0);
  EXPECT_EQ(fields["value"]->offset, 24);
  EXPECT_EQ(fields["value"]->flags & kTVMFFIFieldFlagBitMaskWritable,
            kTVMFFIFieldFlagBitMaskWritable);
  EXPECT_EQ(fields["name"]->flags & kTVMFFIFieldFlagBitMaskWritable, 0);
  EXPECT_EQ(std::string(fields["value"]->doc.data, fields["value"]->doc.size), "the number");

  EXPECT_EQ(set("value", 6), 0);
  EXPECT_EQ(set("payload", Point(1, kLongText, nullptr)), 0);
  EXPECT_EQ(get("value").cast<int64_t>(), 6);
  EXPECT_EQ(get("payload").cast<Point>()->label, kLongText);
  EXPECT_EQ(set("value", "not a number"), -1);
  EXPECT_EQ(RaisedError().cast<Error>().kind(), "TypeError");
  EXPECT_EQ(get("value").cast<int64_t>(), 6);

  std::string key = "skew." + client().name + ".Node";
  EXPECT_EQ(reflection::GetMethod(key, "total")(node, 4).cast<int64_t>(), 10);
  Any made = reflection::GetMethod(key, "__ffi_init__")(9, "made");
  EXPECT_EQ(made.type_index(), node.type_index());
  EXPECT_EQ(reflection::FieldGetter(key, "name")(made.cast<ObjectRef>()).cast<String>(), "made");
}

TEST_P(OldClient, ShallowCopyAttributeCopiesAnObject) {
  Any node = Call("make_node", 5, kLongText);
  AnyView copier = reflection::TypeAttrColumn("__ffi_shallow_copy__")[node.type_index()];
  Any copy = copier.cast<Function>()(node);
  EXPECT_EQ(copy.type_index(), node.type_index());
  EXPECT_FALSE(copy.same_as(node));
  EXPECT_EQ(copy.cast<const Object*>()->use_count(), 1);
  ExpectTruthfulPadding(copy, "shallow copy");
}

TEST_P(OldClient, ExportedSymbolIsCallable) {
  auto symbol = reinterpret_cast<TVMFFISafeCallType>(dlsym(client().library, "__tvm_ffi_skew_add"));
  ASSERT_NE(symbol, nullptr);
  EXPECT_EQ(Function::InvokeExternC(nullptr, symbol, 2, 3).cast<int64_t>(), 5);
  try {
    Function::InvokeExternC(nullptr, symbol, 2, -3);
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "b is negative: -3");
  }
  Module library = Module::LoadFromFile(client().path);
  EXPECT_EQ(library->GetFunction("skew_add", false).value()(4, 5).cast<int64_t>(), 9);
  EXPECT_FALSE(library->GetFunction("no_such_function", false).has_value());
}

TEST_P(OldClient, ModulesWrittenThereAreUsableHere) {
  if (client().ModulesDisagree()) {
    GTEST_SKIP() << "0.1.13 returns functions from modules in 16 bytes, every other release in 8";
  }
  Module module = Call("make_module").cast<Module>();
  EXPECT_STREQ(module->kind(), "skew_client");
  EXPECT_EQ(module->GetFunction("triple", true).value()(5).cast<int64_t>(), 15);
  EXPECT_FALSE(module->GetFunction("other", true).has_value());
  EXPECT_EQ(Call("module_call", module, "triple", 6).cast<int64_t>(), 18);
  EXPECT_EQ(PaddingOf(module), 0u) << "a vtable pointer precedes the header";
  Module library = Module::LoadFromFile(client().path);
  library->ImportModule(module);
  EXPECT_EQ(Call("module_call", library, "triple", 7).cast<int64_t>(), 21);
}

// ---- values that are younger than the client ------------------------------------------------

TEST_P(OldClient, HandsOnAndFindsIntegersItDoesNotKnow) {
  auto big = [] { return Any((BigInt(1) << BigInt(100)) + BigInt(7)); };
  Any value = big();
  EXPECT_TRUE(Call("echo", value).same_as(value));
  EXPECT_EQ(HeaderOf(value)->combined_ref_count & 0xFFFFFFFF, 1u);
  Any map = Call("map_set", Map<Any, Any>({{1, 2}}), value, "big");
  EXPECT_EQ(Call("map_get", map, big()).cast<String>(), "big") << "equal by value";
  EXPECT_EQ((map.cast<Map<Any, Any>>().at(big()).cast<String>()), "big");
  Any keys = Call("map_of_keys", Array<Any>({value, big(), 5, BigInt(1) << BigInt(99)}));
  EXPECT_EQ((keys.cast<Map<Any, Any>>().size()), 3u);
  EXPECT_EQ(Call("key_count", keys, big()).cast<int64_t>(), 1);
  Function use = Function::FromTyped([&]() { Call("make_node", value, "n"); });
  EXPECT_EQ(Call("describe", use).cast<String>().substr(0, 9), "TypeError") << "not an int64";
  Call("hold", big());
  Call("drop_on_thread");
}

// Objects of clients that know nothing of it are mapped by their fields.
TEST_P(OldClient, ObjectsAreMapped) {
  Array<Any> kept = {"text"};
  Any engine = Call("make_engine", 3, Array<Any>({4, kept}));
  Any mapped;
  try {
    mapped = StructuralMap<WalkOrder::kPostOrder>(engine, [](int64_t i) { return -i; });
  } catch (const Error& error) {
    // The first releases do not register how an object is copied.
    EXPECT_EQ(std::string(error.message()), "__ffi_shallow_copy__ must be an ffi.Function");
    EXPECT_EQ(client().name, "0.1.9");
    return;
  }
  std::string key = "skew." + client().name + ".Machine";
  reflection::FieldGetter power(key, "power"), part(key, "part");
  EXPECT_EQ(mapped.type_index(), engine.type_index());
  EXPECT_EQ(power(mapped.cast<ObjectRef>()).cast<int64_t>(), -3);
  EXPECT_EQ(power(engine.cast<ObjectRef>()).cast<int64_t>(), 3);
  Array<Any> parts = part(mapped.cast<ObjectRef>()).cast<Array<Any>>();
  EXPECT_EQ(parts[0].cast<int64_t>(), -4);
  EXPECT_TRUE(parts[1].same_as(kept)) << "unchanged parts stay";
  EXPECT_EQ(part(engine.cast<ObjectRef>()).cast<Array<Any>>()[0].cast<int64_t>(), 4);
  EXPECT_EQ(reflection::GetMethod(key, "describe")(mapped).cast<String>(),
            "engine " + client().name);
}

INSTANTIATE_TEST_SUITE_P(Releases, OldClient, testing::Range(size_t{0}, Clients().size()),
                         [](const testing::TestParamInfo<size_t>& info) {
                           std::string name = "v" + Clients()[info.param].name;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

// ---- every client with every other ----------------------------------------------------------

TEST(ClientPairs, ObjectsMadeByOneAreChangedByTheOther) {
  for (const Client& maker : Clients()) {
    for (const Client& user : Clients()) {
      SCOPED_TRACE(maker.name + " -> " + user.name);
      Any point = maker.Call("make_point", 1, kLongText, maker.Call("make_array", 3));
      user.Call("point_write", point, 2, user.Call("make_string", 30), user.Call("make_map", 9));
      EXPECT_EQ(maker.Call("string_size", maker.Call("point_label", point)).cast<int64_t>(), 30);
      EXPECT_EQ(maker.Call("map_get", maker.Call("point_extra", point), 8).cast<int64_t>(), 64);

      Any list = maker.Call("make_list", 3);
      for (int64_t i = 3; i < 50; ++i) user.Call("list_push", list, i);
      EXPECT_EQ(maker.Call("list_sum", list).cast<int64_t>(), 49 * 50 / 2);

      Any dict = maker.Call("make_dict", 3);
      for (int64_t i = 3; i < 50; ++i) user.Call("dict_set", dict, i, i * i);
      for (int64_t i = 0; i < 50; i += 2) maker.Call("dict_erase", dict, i);
      EXPECT_EQ(user.Call("dict_items", dict).cast<Array<Any>>().size(), 50);

      Any adder = maker.Call("make_adder", 5);
      EXPECT_EQ(user.Call("apply", adder, 1).cast<int64_t>(), 6);
      EXPECT_EQ(user.Call("apply_through_c", adder, 2).cast<int64_t>(), 7);
      EXPECT_EQ(user.Call("describe", maker.Find("make_adder")).cast<String>().substr(0, 9),
                "TypeError");
      EXPECT_EQ(user.Call("ramp_sum", maker.Call("make_ramp", 4)).cast<double>(), 6.0);
      user.Call("hold", maker.Call("make_point", 1, kLongText, maker.Call("make_error", "e")));
      user.Call("drop_on_thread");
    }
  }
}

// Hooks of both forms, called by the inline code of every release. 1 and 67 are the values that an
// old hash has in common with the result of a new hook.
TEST(ClientPairs, KeysOfOneAreHashedByTheOther) {
  const std::vector<int64_t> values = {0, 1, 2, 3, 66, 67, 68, 1000, int64_t{1} << 40};
  for (const Client& maker : Clients()) {
    for (const Client& user : Clients()) {
      SCOPED_TRACE(maker.name + " -> " + user.name);
      Array<Any> keys, again;
      for (int64_t value : values) {
        keys.push_back(maker.Call("make_key", value));
        again.push_back(maker.Call("make_key", value));
      }
      for (const Any& key : Array<Any>(again)) keys.push_back(key);
      Any map = user.Call("map_of_keys", keys);
      EXPECT_EQ((map.cast<Map<Any, Any>>().size()), values.size());
      for (const Any& key : again) {
        EXPECT_EQ(user.Call("key_count", map, key).cast<int64_t>(), 1);
        EXPECT_EQ(maker.Call("key_count", map, key).cast<int64_t>(), 1);
        EXPECT_EQ((map.cast<Map<Any, Any>>().count(key)), 1);
      }
      EXPECT_EQ(user.Call("key_count", map, maker.Call("make_key", 5)).cast<int64_t>(), 0);
      Array<Any> in_order = user.Call("keys_in_order", map).cast<Array<Any>>();
      ASSERT_EQ(in_order.size(), values.size());
      for (size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(in_order[i].same_as(keys[i]));
      keys.push_back(maker.Call("make_key", -1));  // a small map would only compare it
      Function use = Function::FromTyped([&]() { user.Call("map_of_keys", keys); });
      EXPECT_EQ(user.Call("describe", use).cast<String>(),
                "ValueError: a bad key of " + maker.name);
    }
  }
}

// The engine is the inline code of one release, the hook that of another; only the table of the
// mutator crosses.
TEST(ClientPairs, MutatorsOfOneDriveHooksOfTheOther) {
  for (const Client& maker : Clients()) {
    if (!maker.HasMutator()) continue;
    for (const Client& user : Clients()) {
      if (!user.HasMutator()) continue;
      SCOPED_TRACE(maker.name + " -> " + user.name);
      Any inner = user.Call("make_pair", 10, kLongText);
      Any rest = user.Call("make_pair", kLongText, nullptr);
      Any pair = maker.Call("make_pair", Array<Any>({1, inner, Map<Any, Any>({{1, 2}})}), rest);
      Any made = user.Call("add_to_ints", pair, 5);
      Array<Any> parts = maker.Call("pair_first", made).cast<Array<Any>>();
      EXPECT_EQ(parts[0].cast<int64_t>(), 6);
      EXPECT_EQ(user.Call("pair_first", parts[1]).cast<int64_t>(), 15);
      EXPECT_EQ((parts[2].cast<Map<Any, Any>>().at(1).cast<int64_t>()), 7);
      EXPECT_TRUE(maker.Call("pair_second", made).same_as(rest)) << "unchanged parts stay";
      EXPECT_EQ(user.Call("pair_first", inner).cast<int64_t>(), 10) << "the root was shared";
      EXPECT_TRUE(user.Call("add_to_ints", rest, 5).same_as(rest));
      // The same by the engine of the library.
      using Link = Tuple<int64_t, Function>;
      Function twice = Function::FromTyped([](int64_t i) { return 2 * i; });
      Array<Link> plain = {Link(static_cast<int64_t>(kTVMFFIInt), twice)};
      Any by_library =
          Function::GetGlobalRequired("ffi.StructuralMap")(pair, plain, Array<Link>(), 1);
      Array<Any> doubled = maker.Call("pair_first", by_library).cast<Array<Any>>();
      EXPECT_EQ(user.Call("pair_first", doubled[1]).cast<int64_t>(), 20);
      Any bad = maker.Call("make_pair", 1, user.Call("make_pair", 2, -1));
      Function use = Function::FromTyped([&]() { user.Call("add_to_ints", bad, 5); });
      EXPECT_EQ(maker.Call("describe", use).cast<String>(),
                "ValueError: a bad number for " + user.name);
    }
  }
}

TEST(ClientPairs, BigIntegersOfOneAreUsedByTheOther) {
  for (const Client& maker : Clients()) {
    if (!maker.HasMutator()) continue;
    for (const Client& user : Clients()) {
      SCOPED_TRACE(maker.name + " -> " + user.name);
      Any power = maker.Call("power_of_two", 200), again = maker.Call("power_of_two", 200);
      EXPECT_EQ(power.cast<BigInt>(), BigInt(1) << BigInt(200));
      Any keys = user.Call("map_of_keys", Array<Any>({power, again}));
      EXPECT_EQ((keys.cast<Map<Any, Any>>().size()), 1u);
      EXPECT_EQ(user.Call("key_count", keys, again).cast<int64_t>(), 1);
      if (!user.HasMutator()) continue;
      Any sum = user.Call("big_sum", power, user.Call("power_of_two", 200));
      EXPECT_EQ(sum.cast<BigInt>(), BigInt(1) << BigInt(201));
      Any small = user.Call("big_sum", power, maker.Call("big_product", power, -1));
      EXPECT_EQ(small.type_index(), kTVMFFIInt) << "what fits is an int for both";
      EXPECT_EQ(small.cast<int64_t>(), 0);
    }
  }
}

int LoadClients(int argc, char** argv) {
  int flags = RTLD_NOW | RTLD_LOCAL;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    size_t equals = argument.find('=');
    if (argument == "--merged") {
      symbols_merge = true;
      flags = RTLD_NOW | RTLD_GLOBAL;
    } else if (argument.rfind("--", 0) != 0 && equals != std::string::npos) {
      Clients().push_back({argument.substr(0, equals), argument.substr(equals + 1)});
    }
  }
  for (Client& client : Clients()) {
    client.library = dlopen(client.path.c_str(), flags);
    if (client.library == nullptr) {
      std::fprintf(stderr, "cannot load client %s: %s\n", client.name.c_str(), dlerror());
      return 1;
    }
  }
  if (Clients().empty()) {
    std::fprintf(stderr, "usage: %s [--merged] NAME=PATH...\n", argv[0]);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (int status = LoadClients(argc, argv)) return status;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
