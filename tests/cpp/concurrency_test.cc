// SPDX-License-Identifier: Apache-2.0
//
// What threads may do at the same time: share and drop references, promote weak ones, register
// types, attributes and functions while others use them. Also built with the thread sanitizer.
#include <gtest/gtest.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/string.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../src/tie/adopted_table.h"
#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using namespace core_test;

constexpr int kThreads = 4;

// Holds threads back until all have arrived, so that they really meet. Usable again and again.
class Barrier {
 public:
  explicit Barrier(int parties) : parties_(parties) {}
  void Wait() {
    int round = round_.load();
    if (arrived_.fetch_add(1) + 1 == parties_) {
      arrived_.store(0);
      round_.fetch_add(1);
      return;
    }
    while (round_.load() == round) std::this_thread::yield();
  }

 private:
  const int parties_;
  std::atomic<int> arrived_{0};
  std::atomic<int> round_{0};
};

// Runs body(thread index) on several threads at once.
template <typename Body>
void InParallel(Body body) {
  Barrier start(kThreads);
  std::vector<std::thread> pool;
  for (int i = 0; i < kThreads; ++i) {
    pool.emplace_back([&, i] {
      start.Wait();
      body(i);
    });
  }
  for (std::thread& thread : pool) thread.join();
}

// One thread calls write(n) for n = 0, 1, ... while the others call read(thread index) until it is
// done. After write(0) and after every 128th write it waits until somebody has read from beginning
// to end: of one read more than there are readers, one began after the write. So the threads meet
// however busy the machine is.
template <typename Write, typename Read>
void WriteWhileReading(int writes, Write write, Read read) {
  std::atomic<bool> done{false};
  std::atomic<int64_t> reads{0};
  InParallel([&](int i) {
    if (i == 0) {
      for (int n = 0; n < writes; ++n) {
        write(n);
        if (n % 128 != 0) continue;
        int64_t enough = reads + kThreads;
        while (reads < enough) std::this_thread::yield();
      }
      done = true;
    } else {
      do {
        read(i);
        ++reads;
      } while (!done);
    }
  });
}

TVMFFIByteArray Bytearray(const std::string& text) { return {text.data(), text.size()}; }

int32_t TypeIndexOf(const std::string& key) {
  TVMFFIByteArray bytes = Bytearray(key);
  return TVMFFITypeGetOrAllocIndex(&bytes, -1, 1, 0, 1, kTVMFFIObject);
}

// ---- references

TEST(Concurrency, SharedObjectIsDestroyedOnceByTheLastOwner) {
  int before = BoxObj::alive;
  for (int round = 0; round < 200; ++round) {
    std::vector<Box> owners(kThreads, Box(round));
    InParallel([&](int i) {
      for (int n = 0; n < 20; ++n) {
        Box copy = owners[i];
        EXPECT_EQ(copy->value, round);
      }
      owners[i] = Box();
    });
    ASSERT_EQ(BoxObj::alive, before);
  }
}

TEST(Concurrency, CountReturnsToOne) {
  Box box(1);
  Any any = box;
  InParallel([&](int) {
    std::vector<Any> copies;
    for (int n = 0; n < 2000; ++n) {
      copies.push_back(any);
      if (copies.size() > 10) copies.clear();
    }
  });
  any.reset();
  EXPECT_EQ(box.use_count(), 1);
}

TEST(Concurrency, WeakPromotionNeverSeesADeadObject) {
  int before = BoxObj::alive;
  std::atomic<int> locked{0};
  Barrier barrier(3);
  ObjectPtr<BoxObj> strong;
  WeakObjectPtr<BoxObj> weak;
  constexpr int kRounds = 3000;
  auto promote = [&] {
    for (int round = 0; round < kRounds; ++round) {
      barrier.Wait();
      if (ObjectPtr<BoxObj> promoted = weak.lock()) {
        EXPECT_EQ(promoted->value, round);
        EXPECT_GE(promoted.use_count(), 1);
        ++locked;
      }
      barrier.Wait();
    }
  };
  std::thread first(promote), second(promote);
  for (int round = 0; round < kRounds; ++round) {
    strong = make_object<BoxObj>(round);
    weak = strong;
    barrier.Wait();
    strong.reset();
    barrier.Wait();
    EXPECT_TRUE(weak.expired());
    EXPECT_EQ(BoxObj::alive, before);
  }
  first.join();
  second.join();
  EXPECT_LE(locked, 2 * kRounds);
}

TEST(Concurrency, LastWeakReferenceFreesTheStorageOnce) {
  for (int round = 0; round < 500; ++round) {
    ObjectPtr<BoxObj> strong = make_object<BoxObj>(round);
    std::vector<WeakObjectPtr<BoxObj>> weak(kThreads, WeakObjectPtr<BoxObj>(strong));
    Barrier barrier(kThreads + 1);
    std::vector<std::thread> pool;
    for (int i = 0; i < kThreads; ++i) {
      pool.emplace_back([&, i] {
        barrier.Wait();
        weak[i].reset();
      });
    }
    barrier.Wait();
    strong.reset();
    for (std::thread& thread : pool) thread.join();
  }
}

TEST(Concurrency, WhatOneOwnerWroteTheDestroyingThreadSees) {
  class NotesObj : public CounterObj {
   public:
    explicit NotesObj(int64_t* sum) : sum(sum) {}
    ~NotesObj() {
      for (int64_t note : notes) *sum += note;
    }
    int64_t notes[kThreads] = {};
    int64_t* sum;
  };
  for (int round = 0; round < 300; ++round) {
    int64_t sum = 0;
    std::vector<ObjectPtr<NotesObj>> owners(kThreads, make_object<NotesObj>(&sum));
    InParallel([&](int i) {
      owners[i]->notes[i] = i + 1;
      owners[i].reset();
    });
    ASSERT_EQ(sum, kThreads * (kThreads + 1) / 2);
  }
}

TEST(Concurrency, StringsAndContainersAreShared) {
  String text = "a text that is on the heap";
  Array<Any> array{1, text, Box(3)};
  InParallel([&](int i) {
    for (int n = 0; n < 500; ++n) {
      String copy = text;
      EXPECT_EQ(copy + std::to_string(i), "a text that is on the heap" + std::to_string(i));
      Any any = copy;
      EXPECT_EQ(AnyHash()(any), AnyHash()(text));
      Array<Any> mine = array;
      mine.push_back(i);  // copies, because others hold the array too
      EXPECT_EQ(mine.size(), 4u);
      EXPECT_EQ(array.size(), 3u);
    }
  });
  EXPECT_EQ(array.use_count(), 1);
  Any any = text;
  EXPECT_EQ(any.as<Object>()->use_count(), 3u) << "text, any and the array's element";
}

// ---- allocation

void* CountingAllocate(size_t size, size_t alignment, int32_t, void* context) {
  ++*static_cast<std::atomic<int>*>(context);
  char* block = static_cast<char*>(std::malloc(size + 32));
  void* body = block + 32;
  details::ObjectUnsafe::GetObjectAllocHeaderFromPtr(body)->delete_space = [](void* p) {
    std::free(static_cast<char*>(p) - 32);
  };
  return body;
}

TEST(Concurrency, AllocatorMayChangeWhileObjectsAreMade) {
  static std::atomic<int> allocated{0};
  static TVMFFICustomAllocator counting{CountingAllocate, &allocated};
  std::vector<std::vector<Any>> kept(kThreads);
  WriteWhileReading(
      5000, [&](int n) { TVMFFISetCustomAllocator(n % 2 == 0 ? &counting : nullptr); },
      [&](int i) {
        kept[i].push_back(Box(i));
        kept[i].push_back(String("a text that is on the heap"));
        if (kept[i].size() > 50) kept[i].clear();
      });
  TVMFFISetCustomAllocator(nullptr);
  EXPECT_GT(allocated, 0);
}

// ---- types

TEST(Concurrency, OneKeyGetsOneIndexWhoeverAsksFirst) {
  constexpr int kKeys = 200;
  std::vector<std::vector<int32_t>> seen(kThreads, std::vector<int32_t>(kKeys));
  InParallel([&](int i) {
    for (int k = 0; k < kKeys; ++k) {
      int key = i % 2 == 0 ? k : kKeys - 1 - k;
      seen[i][key] = TypeIndexOf("core_test.concurrent." + std::to_string(key));
    }
  });
  std::set<int32_t> distinct(seen[0].begin(), seen[0].end());
  EXPECT_EQ(distinct.size(), static_cast<size_t>(kKeys));
  for (int i = 1; i < kThreads; ++i) EXPECT_EQ(seen[i], seen[0]);
}

TEST(Concurrency, TypeRecordsAreReadWhileTypesAreAdded) {
  std::atomic<int32_t> newest{BoxObj::RuntimeTypeIndex()};
  ObjectRef number = Float(1);
  WriteWhileReading(
      2000, [&](int n) { newest = TypeIndexOf("core_test.added." + std::to_string(n)); },
      [&](int) {
        int32_t index = newest;
        const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(index);
        EXPECT_EQ(info->type_index, index);
        EXPECT_EQ(info->type_ancestors[0]->type_index, kTVMFFIObject);
        EXPECT_TRUE(number->IsInstance<NumberObj>());
        EXPECT_EQ(TypeKeyToIndex("core_test.Box"), BoxObj::RuntimeTypeIndex());
      });
}

// A template, so that each instance registers itself on first use.
template <int kWhich>
class LateObj : public Object {
 public:
  static constexpr const char* _type_key = kWhich == 0 ? "core_test.Late0" : "core_test.Late1";
  TVM_FFI_DECLARE_OBJECT_INFO_PREDEFINED_TYPE_KEY(LateObj, Object);
};

TEST(Concurrency, ClassesRegisterThemselvesOnce) {
  std::vector<int32_t> seen(kThreads);
  InParallel([&](int i) {
    seen[i] = LateObj<0>::_GetOrAllocRuntimeTypeIndex();
    EXPECT_NE(seen[i], LateObj<1>::_GetOrAllocRuntimeTypeIndex());
    EXPECT_EQ(make_object<LateObj<0>>()->type_index(), seen[i]);
  });
  for (int32_t index : seen) EXPECT_EQ(index, seen[0]);
}

TEST(Concurrency, AttributesAreReadWhileTheColumnGrows) {
  constexpr int kEntries = 3000;
  const std::string name = "core_test_concurrent_column";
  TVMFFIByteArray name_bytes = Bytearray(name);
  auto text = [](int type_index) { return String("value of type " + std::to_string(type_index)); };
  auto put = [&](int type_index) {
    String value = text(type_index);
    TVMFFIAny raw = AnyView(value).CopyToTVMFFIAny();
    EXPECT_EQ(TVMFFITypeRegisterAttr(type_index, &name_bytes, &raw), 0);
  };
  put(1);
  reflection::TypeAttrColumn column(name);
  std::atomic<int> newest{1};
  WriteWhileReading(
      kEntries,
      [&](int n) {
        put(n + 2);
        newest = n + 2;
      },
      [&](int i) {
        int present = newest;
        EXPECT_EQ(column[present].cast<String>(), text(present));
        // This one may or may not be there yet.
        AnyView ahead = column[present + i];
        if (ahead != nullptr) {
          EXPECT_EQ(ahead.cast<String>(), text(present + i));
        }
      });
}

// Hashed by a hook, while other types get hooks of their own.
class HookedObj : public Object {
 public:
  int64_t value = 7;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("core_test.Hooked", HookedObj, Object);
};

TEST(Concurrency, HashHooksAreUsedWhileOthersAreRegistered) {
  int64_t (*hash)(const Any&) = [](const Any& any) { return any.as<HookedObj>()->value; };
  const std::string name = "__any_hash__";
  auto put = [&](int32_t type_index) {
    TVMFFIByteArray bytes = Bytearray(name);
    TVMFFIAny pointer = AnyView(reinterpret_cast<void*>(hash)).CopyToTVMFFIAny();
    EXPECT_EQ(TVMFFITypeRegisterAttr(type_index, &bytes, &pointer), 0);
  };
  put(HookedObj::RuntimeTypeIndex());
  Any a = make_object<HookedObj>(), b = make_object<HookedObj>();
  Box plain(1);
  WriteWhileReading(
      2000, [&](int n) { put(TypeIndexOf("core_test.hook." + std::to_string(n))); },
      [&](int) {
        EXPECT_EQ(AnyHash()(a), AnyHash()(b));
        EXPECT_EQ(AnyHash()(plain), AnyHash()(Box(plain)));
      });
}

TEST(Concurrency, FieldRecordsAreReadWhileFieldsAreAdded) {
  constexpr int kFields = 300;
  int32_t type = TypeIndexOf("core_test.concurrent_fields");
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(type);
  WriteWhileReading(
      kFields,
      [&](int n) {
        std::string name = "field" + std::to_string(n);
        TVMFFIFieldInfo field{};
        field.name = Bytearray(name);
        field.offset = n;
        EXPECT_EQ(TVMFFITypeRegisterField(type, &field), 0);
      },
      [&](int) {
        // The count is published after the array, so read in that order.
        int32_t count = __atomic_load_n(&info->num_fields, __ATOMIC_ACQUIRE);
        const TVMFFIFieldInfo* fields = __atomic_load_n(&info->fields, __ATOMIC_ACQUIRE);
        for (int32_t n = 0; n < count; ++n) {
          EXPECT_EQ(fields[n].offset, n);
          EXPECT_EQ(std::string(fields[n].name.data, fields[n].name.size),
                    "field" + std::to_string(n));
        }
      });
  EXPECT_EQ(info->num_fields, kFields);
}

// ---- functions

TEST(Concurrency, GlobalFunctionsAreCalledWhileTheyAreReplacedAndRemoved) {
  const char* name = "core_test.concurrent.function";
  std::atomic<int> alive{0};
  struct Token {
    std::atomic<int>* alive;
    explicit Token(std::atomic<int>* alive) : alive(alive) { ++*alive; }
    Token(const Token& other) : alive(other.alive) { ++*alive; }
    ~Token() { --*alive; }
  };
  auto make = [&](int n) {
    return Function::FromTyped([n, token = Token(&alive)](int x) { return x + n - n; });
  };
  std::atomic<int> calls{0};
  WriteWhileReading(
      5000, [&](int n) { Function::SetGlobal(name, make(n), true); },
      [&](int i) {
        if (std::optional<Function> f = Function::GetGlobal(name)) {
          EXPECT_EQ((*f)(i).cast<int>(), i);
          ++calls;
        }
        if (i == 1) {
          Function::RemoveGlobal(name);
          std::this_thread::yield();
        }
      });
  Function::RemoveGlobal(name);
  EXPECT_EQ(alive, 0) << "every replaced function was released";
  EXPECT_GT(calls, 0);
}

TEST(Concurrency, OnlyOneRegistrationOfANameWins) {
  for (int round = 0; round < 100; ++round) {
    std::string name = "core_test.race." + std::to_string(round);
    std::atomic<int> wins{0}, losses{0};
    InParallel([&](int i) {
      Function f = Function::FromTyped([i] { return i; });
      TVMFFIByteArray bytes = Bytearray(name);
      int code =
          TVMFFIFunctionSetGlobal(&bytes, details::ObjectUnsafe::RawObjectPtrFromObjectRef(f), 0);
      if (code == 0) {
        ++wins;
      } else {
        EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "RuntimeError");
        ++losses;
      }
    });
    EXPECT_EQ(wins, 1);
    EXPECT_EQ(losses, kThreads - 1);
    Function::RemoveGlobal(name);
  }
}

TEST(Concurrency, NamesAreListedWhileFunctionsComeAndGo) {
  InParallel([&](int i) {
    std::string name = "core_test.listed." + std::to_string(i);
    for (int n = 0; n < 50; ++n) {
      Function::SetGlobal(name, Function::FromTyped([] {}));
      std::vector<String> names = Function::ListGlobalNames();
      EXPECT_NE(std::find(names.begin(), names.end(), String(name)), names.end());
      Function::RemoveGlobal(name);
    }
  });
}

TEST(Concurrency, OneFunctionIsCalledFromEverywhere) {
  std::atomic<int64_t> sum{0};
  Function add = Function::FromTyped([&sum](int64_t x, const String& s) {
    sum += x;
    return s;
  });
  InParallel([&](int i) {
    for (int n = 0; n < 1000; ++n) EXPECT_EQ(add(i, "text on the heap").cast<String>().size(), 16u);
  });
  EXPECT_EQ(sum, 1000 * (kThreads * (kThreads - 1) / 2));
}

// ---- errors

TEST(Concurrency, EachThreadHasItsOwnRaisedError) {
  InParallel([&](int i) {
    std::string mine = "error of thread " + std::to_string(i);
    for (int n = 0; n < 100; ++n) {
      TVMFFIErrorSetRaisedFromCStr("ValueError", mine.c_str());
      std::this_thread::yield();
      EXPECT_EQ(details::MoveFromSafeCallRaised().message(), mine);
    }
    // Left behind on purpose: released when the thread ends.
    TVMFFIErrorSetRaisedFromCStr("ValueError", mine.c_str());
  });
  TVMFFIObjectHandle handle = nullptr;
  TVMFFIErrorMoveFromRaised(&handle);
  EXPECT_EQ(handle, nullptr);
}

TEST(Concurrency, ErrorsAreThrownAndTracedEverywhere) {
  Error shared("KeyError", "shared", "");
  Function raise = Function::FromTyped([&](int i) {
    if (i % 2 == 0) throw shared;
    TVM_FFI_THROW(ValueError) << "thread " << i;
  });
  InParallel([&](int i) {
    for (int n = 0; n < 50; ++n) {
      Expected<void> result = raise.CallExpected<void>(i);
      EXPECT_EQ(result.error().kind(), i % 2 == 0 ? "KeyError" : "ValueError");
    }
  });
  EXPECT_EQ(shared.use_count(), 1);
}

// ---- handles made once

std::atomic<int> inits{0};
std::atomic<int> deinits{0};
int made_object = 0;

TEST(Concurrency, InitOnceRunsOnceForAll) {
  for (int round = 0; round < 100; ++round) {
    inits = deinits = 0;
    void* handle = nullptr;
    InParallel([&](int) {
      int code = TVMFFIHandleInitOnce(&handle, [](void** result) {
        ++inits;
        std::this_thread::yield();
        *result = &made_object;
        return 0;
      });
      EXPECT_EQ(code, 0);
      EXPECT_EQ(__atomic_load_n(&handle, __ATOMIC_ACQUIRE), &made_object);
    });
    EXPECT_EQ(inits, 1);
    InParallel([&](int) {
      int code = TVMFFIHandleDeinitOnce(&handle, [](void* made) {
        ++deinits;
        return made == &made_object ? 0 : -1;
      });
      EXPECT_EQ(code, 0);
    });
    EXPECT_EQ(deinits, 1);
    EXPECT_EQ(handle, nullptr);
  }
}

// Objects that one thread adopts and another lets die, and one object that all adopt at once.
TEST(Concurrency, AdoptedObjectsHaveASlotEachWhoeverLetsThemDie) {
  static constexpr tether::TieFrontend kFrontend{[](tether::TieSlot*) -> void* { return nullptr; },
                                                 [](void*) {}};
  using Old = TVMFFIObject;
  auto make = [] {
    Old* object = static_cast<Old*>(std::calloc(1, sizeof(Old)));
    object->combined_ref_count = details::kCombinedRefCountBothOne;
    object->type_index = 128;
    object->deleter = [](void* self, int flags) {
      if (flags & kTVMFFIObjectDeleterFlagBitMaskWeak) std::free(self);
    };
    return object;
  };
  const auto* table = static_cast<const tether::AdoptedTable*>(
      Function::GetGlobalRequired("ffi.tether.AdoptedTable")().cast<void*>());
  size_t before = table->size();
  constexpr size_t kObjects = 2000;
  std::vector<Old*> objects[kThreads];
  for (int round = 0; round < 10; ++round) {
    Old* common = make();
    tether::TieSlot* slots[kThreads];
    InParallel([&](int i) {
      slots[i] = table->adopt(common, &kFrontend);
      for (size_t k = 0; k < kObjects; ++k) {
        objects[i].push_back(make());
        EXPECT_NE(table->adopt(objects[i].back(), &kFrontend), nullptr);
      }
    });
    EXPECT_EQ(std::count(slots, slots + kThreads, slots[0]), kThreads);
    EXPECT_EQ(table->size(), before + kThreads * kObjects + 1);
    std::set<uint32_t> numbers{common->__padding};
    for (const std::vector<Old*>& some : objects) {
      for (Old* object : some) numbers.insert(object->__padding);
    }
    EXPECT_EQ(numbers.size(), kThreads * kObjects + 1);
    InParallel([&](int i) {
      std::vector<Old*>& neighbours = objects[(i + 1) % kThreads];
      for (Old* object : neighbours) TVMFFIObjectDecRef(object);
      neighbours.clear();
    });
    TVMFFIObjectDecRef(common);
    EXPECT_EQ(table->size(), before);
  }
}

}  // namespace
