// SPDX-License-Identifier: Apache-2.0
//
// A million random operations on maps, compared with a simple model after each, and their memory
// read as another binary reads it.
//
// The model is an ordered list of entries plus what decides the form: whether the map has turned
// dense, and the slots of the small form.
#include <gtest/gtest.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core_objects.h"
#include "map_layout.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using core_test::Box;
using map_layout::RawMap;
namespace refl = tvm::ffi::reflection;

// Keys of few different hashes: long chains, and entries in each other's home slots. Hashing can be
// made to fail after a number of calls. `in_hook` runs in both hooks.
class ClusterObj : public Object {
 public:
  int64_t value;
  explicit ClusterObj(int64_t value) : value(value) {}
  static inline int64_t num_hashes = 29;
  static inline int hashes_until_error = -1;
  static inline std::function<void()> in_hook;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("map_model_test.Cluster", ClusterObj, Object);
};

int64_t HashCluster(const Any& any) {
  if (ClusterObj::hashes_until_error == 0) TVM_FFI_THROW(ValueError) << "no hash";
  if (ClusterObj::hashes_until_error > 0) --ClusterObj::hashes_until_error;
  if (ClusterObj::in_hook) ClusterObj::in_hook();
  return any.as<ClusterObj>()->value % ClusterObj::num_hashes;
}
bool EqualCluster(const Any& a, const Any& b) {
  if (ClusterObj::in_hook) ClusterObj::in_hook();
  return a.as<ClusterObj>()->value == b.as<ClusterObj>()->value;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::TypeAttrDef<ClusterObj>()
      .attr(refl::type_attr::kAnyHash, reinterpret_cast<void*>(&HashCluster))
      .attr(refl::type_attr::kAnyEqual, reinterpret_cast<void*>(&EqualCluster));
}

uint64_t RawHash(const TVMFFIAny& cell) {
  if (cell.type_index != ClusterObj::RuntimeTypeIndex()) return map_layout::Hash(cell);
  const auto* object = reinterpret_cast<const ClusterObj*>(cell.v_obj);
  return map_layout::Combine(static_cast<uint64_t>(cell.type_index),
                             static_cast<uint64_t>(object->value % ClusterObj::num_hashes));
}

// Key number i of each kind.
Any IntKey(int i) { return Any(int64_t{i} * 0x10001); }
Any StringKey(int i) {
  // Both forms of string occur, and short ones also as heap objects.
  std::string text = i % 3 == 0 ? std::to_string(i) : "a key on the heap " + std::to_string(i);
  if (i % 2 == 0) return Any(String(text));
  return Any(String(std::move(text)));
}
Any ClusterKey(int i) { return Any(make_object<ClusterObj>(i)); }
Any BoxKey(int i) {
  static std::map<int, Box> boxes;
  return boxes.try_emplace(i, Box(i)).first->second;
}
Any MixedKey(int i) {
  switch (i % 4) {
    case 0:
      return IntKey(i);
    case 1:
      return StringKey(i);
    case 2:
      return BoxKey(i);
    default:
      return Any(i * 0.5);
  }
}

class Model {
 public:
  void Set(int key, int value) {
    auto found = places_.find(key);
    if (found != places_.end()) {
      entries_[found->second].second = value;
      return;
    }
    if (!dense_ && entries_.size() == capacity_) {
      dense_ = capacity_ == 4;
      capacity_ = 4;
    }
    entries_[++last_] = {key, value};
    places_[key] = last_;
  }
  void Erase(int key) {
    auto found = places_.find(key);
    if (found == places_.end()) return;
    entries_.erase(found->second);
    places_.erase(found);
  }
  void Clear() {
    entries_.clear();
    places_.clear();
  }
  // What a Map does on clear().
  void Renew() { *this = Model(); }
  // What a copy does: a small one has no spare slots.
  void Copied() {
    if (!dense_) capacity_ = std::max<size_t>(entries_.size(), 2);
  }
  // What setting all entries of another map one by one gives.
  Model Rebuilt() const {
    Model result;
    for (const auto& entry : entries_) result.Set(entry.second.first, entry.second.second);
    return result;
  }

  const int* Find(int key) const {
    auto found = places_.find(key);
    return found == places_.end() ? nullptr : &entries_.at(found->second).second;
  }
  bool dense() const { return dense_; }
  size_t capacity() const { return capacity_; }
  size_t size() const { return entries_.size(); }
  const std::map<uint64_t, std::pair<int, int>>& entries() const { return entries_; }

 private:
  std::map<uint64_t, std::pair<int, int>> entries_;  // by time of insertion
  std::map<int, uint64_t> places_;
  uint64_t last_ = 0;
  size_t capacity_ = 2;  // of the small form
  bool dense_ = false;
};

// One map under test with its model.
template <typename MapRef>
class Subject {
 public:
  Subject(Any (*make_key)(int), int num_keys, uint32_t seed)
      : rng_(seed), check_every_(1 + num_keys / 10) {
    for (int i = 0; i < num_keys; ++i) keys_.push_back(make_key(i));
    // A second, equal but not identical key for each, where that is possible.
    for (int i = 0; i < num_keys; ++i) other_keys_.push_back(make_key(i));
  }

  void Run(int num_operations) {
    // Waves of growing and shrinking, so that all sizes up to the number of keys occur.
    for (int i = 0; i < num_operations && !::testing::Test::HasFatalFailure(); ++i) {
      if (i % 4096 == 0) set_share_ = 20 + static_cast<int>(rng_() % 60);
      Step(i);
      if (i % check_every_ == 0) CheckAll();
    }
    CheckAll();
  }

 private:
  static constexpr bool kIsDict = std::is_same_v<typename MapRef::ContainerType, DictObj>;

  void Step(int i) {
    const int key = static_cast<int>(rng_() % keys_.size());
    const int roll = static_cast<int>(rng_() % 100);
    if (roll < set_share_) {
      map_.Set(keys_[key], i);
      model_.Set(key, i);
    } else if (roll < 90) {
      map_.erase(other_keys_[key]);
      model_.Erase(key);
    } else if (rng_() % 200 == 0) {
      Rare(static_cast<int>(rng_() % 4));
    }
    ASSERT_EQ(map_.size(), model_.size());
    const int* expected = model_.Find(key);
    std::optional<int> found = map_.Get(other_keys_[key]);
    ASSERT_EQ(found.has_value(), expected != nullptr);
    if (expected != nullptr) {
      ASSERT_EQ(*found, *expected);
    }
  }

  void Rare(int what) {
    if (what == 0) {
      map_.clear();
      kIsDict ? model_.Clear() : model_.Renew();
    } else if (what == 1) {
      // To the other kind and back: a new map, entries in order.
      using Other = std::conditional_t<kIsDict, Map<Any, int>, Dict<Any, int>>;
      map_ = Any(Any(map_).cast<Other>()).template cast<MapRef>();
      model_ = model_.Rebuilt();
    } else if constexpr (!kIsDict) {
      // A second handle keeps what it saw.
      MapRef before = map_;
      const Model model_before = model_;
      map_.CopyOnWrite();
      model_.Copied();
      map_.Set(keys_[0], -1);
      model_.Set(0, -1);
      CheckOrder(before, model_before);
    }
  }

  void CheckAll() {
    ASSERT_EQ(RawMap(map_, RawHash).Broken(), "");
    ASSERT_EQ(RawMap(map_).is_small(), !model_.dense());
    if (!model_.dense()) {
      ASSERT_EQ(RawMap(map_).slots(), model_.capacity());
    }
    ASSERT_EQ(map_->type_index(), kIsDict ? 76 : 72);
    CheckOrder(map_, model_);
  }

  void CheckOrder(const MapRef& map, const Model& model) {
    auto expected = model.entries().begin();
    for (const auto& [key, value] : map) {
      ASSERT_TRUE(AnyEqual()(key, keys_[expected->second.first]));
      ASSERT_EQ(value, expected->second.second);
      ++expected;
    }
    ASSERT_TRUE(expected == model.entries().end());
    auto it = map.end();
    for (auto back = model.entries().rbegin(); back != model.entries().rend(); ++back) {
      ASSERT_EQ((*--it).second, back->second.second);
    }
  }

  std::mt19937 rng_;
  int check_every_;  // operations between two looks at everything
  std::vector<Any> keys_;
  std::vector<Any> other_keys_;
  MapRef map_;
  Model model_;
  int set_share_ = 50;
};

// Every combination runs this many operations; with 5 kinds of key, 5 sizes and 2 kinds of map that
// is a million in all.
constexpr int kOperations = 20000;

template <typename MapRef>
void RunAll(Any (*make_key)(int)) {
  static uint32_t seed = 1;
  for (int num_keys : {3, 6, 20, 300, 3000}) {
    SCOPED_TRACE("keys: " + std::to_string(num_keys));
    Subject<MapRef>(make_key, num_keys, seed++).Run(kOperations);
  }
}

TEST(MapModel, MapWithIntKeys) { RunAll<Map<Any, int>>(IntKey); }
TEST(MapModel, MapWithStringKeys) { RunAll<Map<Any, int>>(StringKey); }
TEST(MapModel, MapWithObjectKeys) { RunAll<Map<Any, int>>(BoxKey); }
TEST(MapModel, MapWithKeysThatCollide) { RunAll<Map<Any, int>>(ClusterKey); }
TEST(MapModel, MapWithMixedKeys) { RunAll<Map<Any, int>>(MixedKey); }
TEST(MapModel, DictWithIntKeys) { RunAll<Dict<Any, int>>(IntKey); }
TEST(MapModel, DictWithStringKeys) { RunAll<Dict<Any, int>>(StringKey); }
TEST(MapModel, DictWithObjectKeys) { RunAll<Dict<Any, int>>(BoxKey); }
TEST(MapModel, DictWithKeysThatCollide) { RunAll<Dict<Any, int>>(ClusterKey); }
TEST(MapModel, DictWithMixedKeys) { RunAll<Dict<Any, int>>(MixedKey); }

// In a nearly full table entries have to be moved out of the way of a new key, and that may fail
// half way. Growing then fails too, because the hash of a key does: nothing may have changed.
TEST(MapModel, AFailedInsertionIntoANearlyFullTableChangesNothing) {
  int failures = 0;
  for (int start = 0; start < 60; ++start) {
    ClusterObj::num_hashes = 40 + start * 7;
    Dict<Any, int> dict;
    for (int i = 0; i < 520; ++i) {
      const Any key = ClusterKey(start * 100000 + i);
      RawMap raw(dict, RawHash);
      if (!raw.is_small() && raw.size() * 100 > raw.slots() * 80) {
        const std::vector<TVMFFIAny> before = raw.Keys();
        // One hash for the new key, one for a key that moves to a larger table.
        ClusterObj::hashes_until_error = 2;
        const std::string error = tether_test::ErrorText([&] { dict.Set(key, i); });
        ClusterObj::hashes_until_error = -1;
        ASSERT_EQ(raw.Broken(), "") << start << " " << i;
        if (error == "no error") continue;
        ASSERT_EQ(error, "ValueError: no hash");
        ++failures;
        const std::vector<TVMFFIAny> after = raw.Keys();
        ASSERT_EQ(before.size(), after.size());
        for (size_t k = 0; k < before.size(); ++k) ASSERT_EQ(before[k].v_obj, after[k].v_obj);
      }
      dict.Set(key, i);
    }
    ASSERT_EQ(dict.size(), 520u);
    for (int i = 0; i < 520; ++i) ASSERT_EQ(dict[ClusterKey(start * 100000 + i)], i);
  }
  ClusterObj::num_hashes = 29;
  EXPECT_GT(failures, 100);
}

// ---- Hooks that change the dict being searched

// Random operations on a dict whose keys' hooks run random operations on the same dict, three deep,
// and fail now and then. Every operation is right at the moment it ends, or raises and does
// nothing.
class Meddling {
 public:
  Meddling(int num_keys, int one_in, uint32_t seed)
      : rng_(seed), num_keys_(num_keys), one_in_(one_in) {
    ClusterObj::in_hook = [this] { Meddle(); };
  }
  ~Meddling() { ClusterObj::in_hook = nullptr; }

  void Run(int num_operations) {
    for (int i = 0; i < num_operations && !::testing::Test::HasFatalFailure(); ++i) {
      if (i % 512 == 0) set_share_ = 20 + static_cast<int>(rng_() % 60);
      try {
        Operate();
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), "ValueError") << error.what();
      }
      ASSERT_EQ(RawMap(dict_, RawHash).Broken(), "");
      Check();
    }
  }
  int num_changes() const { return num_changes_; }
  int num_given_up() const { return num_given_up_; }

 private:
  void Meddle() {
    if (depth_ == 3 || rng_() % one_in_ != 0) return;
    if (rng_() % 50 == 0) TVM_FFI_THROW(ValueError) << "a hook fails";
    ++depth_;
    struct Leave {
      int* depth;
      ~Leave() { --*depth; }
    } leave{&depth_};
    ++num_changes_;
    Operate();
  }

  void Operate() {
    const int key = static_cast<int>(rng_() % num_keys_);
    const int roll = static_cast<int>(rng_() % 100);
    const int value = ++time_;
    try {
      if (roll < set_share_) {
        dict_.Set(ClusterKey(key), value);
        model_.Set(key, value);
      } else if (roll < 80) {
        dict_.erase(ClusterKey(key));
        model_.Erase(key);
      } else if (roll < 98) {
        std::optional<int> found = dict_.Get(ClusterKey(key));
        const int* expected = model_.Find(key);
        ASSERT_EQ(found.has_value(), expected != nullptr);
        if (expected != nullptr) {
          ASSERT_EQ(*found, *expected);
        }
      } else {
        dict_.clear();
        model_.Clear();
      }
    } catch (const Error& error) {
      if (error.kind() != "RuntimeError") throw;
      ++num_given_up_;
    }
  }

  void Check() const {
    ASSERT_EQ(dict_.size(), model_.size());
    auto expected = model_.entries().begin();
    for (const auto& [key, value] : dict_) {
      ASSERT_EQ(key.as<ClusterObj>()->value, expected->second.first);
      ASSERT_EQ(value, expected->second.second);
      ++expected;
    }
  }

  std::mt19937 rng_;
  int num_keys_;
  int one_in_;
  int depth_ = 0;
  int time_ = 0;
  int set_share_ = 50;
  int num_changes_ = 0;
  int num_given_up_ = 0;
  Dict<Any, int> dict_;
  Model model_;
};

TEST(MapModel, HooksMayChangeTheDictBeingSearched) {
  uint32_t seed = 1;
  for (int64_t num_hashes : {1, 3, 29}) {
    for (int num_keys : {3, 6, 20, 100}) {
      for (int one_in : {2, 10, 50}) {
        SCOPED_TRACE("hashes: " + std::to_string(num_hashes) +
                     ", keys: " + std::to_string(num_keys) + ", one in " + std::to_string(one_in));
        ClusterObj::num_hashes = num_hashes;
        Meddling meddling(num_keys, one_in, seed++);
        meddling.Run(one_in == 2 ? 100 : 500);
        EXPECT_GT(meddling.num_changes(), 5);
      }
    }
  }
  ClusterObj::num_hashes = 29;
}

TEST(MapModel, ADictThatChangesInEverySearchIsARuntimeError) {
  for (int n : {2, 30}) {
    Dict<Any, int> dict;
    for (int i = 0; i < n; ++i) dict.Set(ClusterKey(i * 29), i);
    // Every time, another key of the same hash takes the place of the first.
    int next = n;
    ClusterObj::in_hook = [&] {
      const std::function<void()> hook = ClusterObj::in_hook;
      ClusterObj::in_hook = nullptr;
      dict.erase((*dict.begin()).first);
      dict.Set(ClusterKey(29 * next++), 0);
      ClusterObj::in_hook = hook;
    };
    const Any absent = ClusterKey(-29);
    for (const auto& [name, operation] : std::vector<std::pair<const char*, std::function<void()>>>{
             {"find", [&] { dict.count(absent); }},
             {"set", [&] { dict.Set(absent, 1); }},
             {"erase", [&] { dict.erase(absent); }}}) {
      const std::string error = tether_test::ErrorText(operation);
      EXPECT_EQ(error.rfind("RuntimeError: Dict changed during `" + std::string(name) + "`", 0), 0u)
          << error;
      EXPECT_EQ(RawMap(dict, RawHash).Broken(), "");
    }
    ClusterObj::in_hook = nullptr;
    EXPECT_EQ(dict.count(absent), 0u);
  }
}

TEST(MapModel, AMapThatAHookGetsHoldOfIsNotChangedUnderIt) {
  for (int n : {2, 30}) {
    Map<Any, int> map, seen;
    for (int i = 0; i < n; ++i) map.Set(ClusterKey(i), i);
    ClusterObj::in_hook = [&] { seen = map; };
    const std::string error = tether_test::ErrorText([&] { map.Set(ClusterKey(n - 1), -1); });
    ClusterObj::in_hook = nullptr;
    EXPECT_EQ(error.rfind("RuntimeError: Map changed during `set`", 0), 0u) << error;
    EXPECT_TRUE(seen.same_as(map));
    EXPECT_EQ(seen[ClusterKey(n - 1)], n - 1);
  }
}

TEST(MapModel, ADictMayChangeWhileItIsConverted) {
  for (int n : {3, 30}) {
    Dict<Any, Any> dict;
    for (int i = 0; i < n; ++i) dict.Set(ClusterKey(i), i);
    ClusterObj::in_hook = [&] {
      ClusterObj::in_hook = nullptr;
      dict.clear();
    };
    auto converted = Any(dict).cast<Map<Any, double>>();
    ClusterObj::in_hook = nullptr;
    EXPECT_EQ(converted.size(), static_cast<size_t>(n));
    EXPECT_EQ(dict.size(), 0u);
  }
}

}  // namespace
