// SPDX-License-Identifier: Apache-2.0
// The tying engine on one thread, against the process's own table of adopted objects: where a word
// is found, what adoption does to an object and undoes, and what no other test races on.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <thread>
#include <vector>

#include "../../src/tie/tie.h"

namespace {

using namespace tvm::ffi;
using namespace tvm::ffi::tether;

struct PlainWrapper {
  int64_t count = 1;
  Handle handle{kEmpty};
  bool finalized = false;
};

int live_wrappers = 0;

// A host language without threads. Number tells frontends apart.
template <int kNumber>
struct PlainRuntime : NoHooks {
  using Wrapper = PlainWrapper;
  static constexpr bool kFreeThreaded = false;
  static constexpr Mutation kMutation = Mutation::kNone;
  static constexpr int kMaxAttempts = 1;
  inline static bool attached = true;
  inline static int drains_requested = 0;

  static const AdoptedTable& Table() {
    static const AdoptedTable* table = static_cast<const AdoptedTable*>(
        Function::GetGlobalRequired("ffi.tether.AdoptedTable")().cast<void*>());
    return *table;
  }
  static Handle& HandleOf(Wrapper* w) { return w->handle; }
  static void IncRef(Wrapper* w) { ++w->count; }
  static bool TryIncRef(Wrapper* w) { return w->count > 0 && ++w->count; }
  static void DecRef(Wrapper* w) {
    if (--w->count > 0) return;
    if (!w->finalized) {
      w->count = 1;
      Tie<PlainRuntime>::Drop(w);
      w->finalized = true;
      if (--w->count > 0) return;
    }
    Tie<PlainRuntime>::Discard(w);
    --live_wrappers;
    delete w;
  }
  static void EnableTryIncRef(Wrapper*) {}
  static bool IsResurrectionOver(Wrapper*) { return true; }
  static void ClearFinalized(Wrapper* w) { w->finalized = false; }
  static bool IsGuarded(Wrapper*) { return guarded; }
  static void OnDormant(Wrapper*) {}
  static void OnActive(Wrapper*) {}
  static void OnGone(Wrapper*) {}
  static bool AttachedHere() { return attached; }
  static bool RequestDrain() { return ++drains_requested > 0; }
  static void Relax() { std::this_thread::yield(); }
  static void Pause(int) {}
  static void* AllocateSpace(size_t size) { return std::malloc(size); }
  static void FreeSpace(void* p) { std::free(p); }

  static Wrapper* New(TVMFFIObject*) {
    ++live_wrappers;
    return new PlainWrapper;
  }
  inline static bool guarded = false;
};

using A = PlainRuntime<1>;
using B = PlainRuntime<2>;
using TieA = Tie<A>;
using TieB = Tie<B>;

// An object as a binary of another release makes it: bare, its own deleter.
struct OldObject {
  TVMFFIObject header;
  int* deaths;
};
void OldDeleter(void* self, int flags) {
  OldObject* object = static_cast<OldObject*>(self);
  if (flags & kTVMFFIObjectDeleterFlagBitMaskStrong) ++*object->deaths;
  if (flags & kTVMFFIObjectDeleterFlagBitMaskWeak) std::free(self);
}
TVMFFIObject* InitOld(void* at, int* deaths, void (*deleter)(void*, int) = OldDeleter) {
  OldObject* object = static_cast<OldObject*>(at);
  std::memset(static_cast<void*>(object), 0, sizeof(*object));
  object->header.combined_ref_count = details::kCombinedRefCountBothOne;
  object->header.type_index = 128;
  object->header.deleter = deleter;
  object->deaths = deaths;
  return &object->header;
}
// Out of line: seeing the size, the compiler warns of the read that only marked objects get.
__attribute__((noinline)) TVMFFIObject* NewOld(int* deaths) {
  return InitOld(std::malloc(sizeof(OldObject)), deaths);
}

uint32_t StrongCount(TVMFFIObject* h) { return static_cast<uint32_t>(h->combined_ref_count); }

class TieTest : public ::testing::Test {
 protected:
  void SetUp() override { adopted_before_ = A::Table().size(); }
  void TearDown() override {
    EXPECT_EQ(live_wrappers, 0);
    EXPECT_EQ(A::Table().size(), adopted_before_);
  }
  size_t adopted_before_ = 0;
};

TEST_F(TieTest, AnOldObjectKeepsItsWrapperAndIsGivenBackAsItWas) {
  int deaths = 0;
  TVMFFIObject* h = NewOld(&deaths);
  TieA::AddStrong(h);
  PlainWrapper* w = TieA::Fetch(h, A::New);
  EXPECT_EQ(h->__padding & kAdoptedMark, kAdoptedMark);
  EXPECT_NE(h->deleter, OldDeleter);
  EXPECT_EQ(StrongCount(h), 2u);
  A::DecRef(w);
  EXPECT_EQ(StrongCount(h), 1u);
  EXPECT_TRUE(IsDormant(w->handle));
  EXPECT_EQ(TieA::FetchBorrowed(h, A::New), w);
  EXPECT_EQ(StrongCount(h), 2u);
  A::DecRef(w);
  TieA::DropStrong(h);
  EXPECT_EQ(deaths, 1);
}

TEST_F(TieTest, NothingBeforeAnOldObjectIsTouched) {
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* pages = mmap(nullptr, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  void* second = static_cast<char*>(pages) + page;
  ASSERT_EQ(mprotect(second, page, PROT_READ | PROT_WRITE), 0);
  int deaths = 0;
  TVMFFIObject* h = InitOld(second, &deaths, [](void* self, int flags) {
    if (flags & kTVMFFIObjectDeleterFlagBitMaskStrong) ++*static_cast<OldObject*>(self)->deaths;
  });
  TieA::AddStrong(h);
  PlainWrapper* w = TieA::Fetch(h, A::New);
  A::DecRef(w);
  TieA::DropStrong(h);
  EXPECT_EQ(deaths, 1);
  munmap(pages, 2 * page);
}

TEST_F(TieTest, GarbageInThePaddingWordIsNotBelieved) {
  for (uint32_t garbage : {0x80000000u, 0x80000001u, 0xFFFFFFFFu, 0xDEADBEEFu, 1u}) {
    int deaths = 0;
    TVMFFIObject* h = NewOld(&deaths);
    h->__padding = garbage;
    EXPECT_EQ(TieA::FindSlot(h), nullptr);
    PlainWrapper* w = TieA::Fetch(h, A::New);
    EXPECT_NE(TieA::FindSlot(h), nullptr);
    A::DecRef(w);
    EXPECT_EQ(deaths, 1);
  }
}

TEST_F(TieTest, AnObjectWithoutADeleterGivesItsSlotBack) {
  OldObject storage;
  int deaths = 0;
  TVMFFIObject* h = InitOld(&storage, &deaths, nullptr);
  for (int i = 0; i < 3; ++i) {
    h->combined_ref_count = details::kCombinedRefCountBothOne;
    TieA::AddStrong(h);
    PlainWrapper* w = TieA::Fetch(h, A::New);
    A::DecRef(w);
    TieA::DropStrong(h);
    EXPECT_EQ(h->deleter, nullptr);
    EXPECT_EQ(h->__padding, 0u);
  }
}

TEST_F(TieTest, AByteCopyOfAnAdoptedObjectIsNotTied) {
  int deaths = 0;
  TVMFFIObject* h = NewOld(&deaths);
  PlainWrapper* w = TieA::Fetch(h, A::New);
  OldObject copy;
  std::memcpy(static_cast<void*>(&copy), h, sizeof(copy));
  copy.header.combined_ref_count = details::kCombinedRefCountBothOne;
  EXPECT_EQ(TieA::FindOrAdopt(&copy.header), nullptr);
  PlainWrapper* untied = TieA::Fetch(&copy.header, A::New);
  EXPECT_NE(untied, w);
  A::DecRef(untied);
  EXPECT_EQ(deaths, 0);
  A::DecRef(w);
  EXPECT_EQ(deaths, 1);
}

TEST_F(TieTest, ASecondFrontendLeavesAnAdoptedObjectAlone) {
  int deaths = 0;
  TVMFFIObject* h = NewOld(&deaths);
  TieA::AddStrong(h);
  PlainWrapper* a = TieA::Fetch(h, A::New);
  PlainWrapper* b = TieB::Fetch(h, B::New);
  EXPECT_NE(a, b);
  EXPECT_EQ(TieB::FindSlot(h), nullptr);
  EXPECT_EQ(ObjectOf(b->handle), h);
  B::DecRef(b);
  A::DecRef(a);
  EXPECT_EQ(deaths, 1);
}

TEST_F(TieTest, ThePrefixOfAnotherFrontendIsAdopted) {
  static TVMFFICustomAllocator allocator{TieB::Allocate, nullptr};
  TVMFFISetCustomAllocator(&allocator);
  Array<int> array{1, 2, 3};
  TVMFFISetCustomAllocator(nullptr);
  TVMFFIObject* h = details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(array);
  EXPECT_EQ(TieB::FindSlot(h), &PrefixOf(h)->tie);
  EXPECT_EQ(TieA::FindSlot(h), nullptr);
  TieB::AddStrong(h);
  PlainWrapper* b = TieB::Fetch(h, B::New);
  TieA::AddStrong(h);
  PlainWrapper* a = TieA::Fetch(h, A::New);
  EXPECT_NE(h->__padding, static_cast<uint32_t>(kTVMFFIObjectAllocHeaderMark));
  B::DecRef(b);
  A::DecRef(a);
  EXPECT_EQ(live_wrappers, 1);
  array = Array<int>();
}

TEST_F(TieTest, BuiltInStorageIsAdoptedThePrefixIsNot) {
  Array<int> builtin{1};
  static TVMFFICustomAllocator allocator{TieA::Allocate, nullptr};
  TVMFFISetCustomAllocator(&allocator);
  Array<int> own{1};
  TVMFFISetCustomAllocator(nullptr);
  size_t before = A::Table().size();
  for (Array<int>* array : {&builtin, &own}) {
    TVMFFIObject* h = details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(*array);
    PlainWrapper* w = TieA::FetchBorrowed(h, A::New);
    A::DecRef(w);
    EXPECT_EQ(TieA::FetchBorrowed(h, A::New), w);
    A::DecRef(w);
  }
  EXPECT_EQ(A::Table().size(), before + 1);
}

TEST_F(TieTest, RebindMovesTheTieAndRefusesDeadWrappers) {
  int deaths = 0;
  TVMFFIObject* h = NewOld(&deaths);
  PlainWrapper* from = TieA::Fetch(h, A::New);
  PlainWrapper* to = A::New(nullptr);
  EXPECT_TRUE(TieA::Rebind(from, to));
  EXPECT_EQ(TieA::Use(from), nullptr);
  EXPECT_EQ(TieA::Use(to), h);
  EXPECT_EQ(TieA::FetchBorrowed(h, A::New), to);
  A::DecRef(to);
  EXPECT_FALSE(TieA::Rebind(to, to));
  from->handle = kGone;
  EXPECT_FALSE(TieA::Rebind(to, from));
  A::DecRef(from);
  A::DecRef(to);
  EXPECT_EQ(deaths, 1);
}

TEST_F(TieTest, AttachToAnObjectThatHasAWrapperDoesNotReplaceIt) {
  int deaths = 0;
  TVMFFIObject* h = NewOld(&deaths);
  TieA::AddStrong(h);
  PlainWrapper* first = TieA::Fetch(h, A::New);
  PlainWrapper* second = A::New(nullptr);
  EXPECT_FALSE(TieA::Attach(second, h, TieA::FindOrAdopt(h)));
  EXPECT_EQ(TieA::FetchBorrowed(h, A::New), first);
  A::DecRef(first);
  A::DecRef(second);
  A::DecRef(first);
  EXPECT_EQ(deaths, 1);
}

TEST_F(TieTest, AFailedAllocationGivesTheReferenceBack) {
  int deaths = 0;
  TVMFFIObject* h = NewOld(&deaths);
  EXPECT_EQ(TieA::Fetch(h, [](TVMFFIObject*) -> PlainWrapper* { return nullptr; }), nullptr);
  EXPECT_EQ(deaths, 1);
}

TEST_F(TieTest, TheCollectorsFinaliserHandsOffOnlyWhatIsShared) {
  int deaths = 0;
  TVMFFIObject* h = NewOld(&deaths);
  PlainWrapper* w = TieA::Fetch(h, A::New);
  w->finalized = true;
  TieA::DropFromCollector(w);  // sole owner: left alone
  EXPECT_FALSE(w->finalized);
  EXPECT_TRUE(IsUsable(w->handle));
  TieA::AddStrong(h);
  A::guarded = true;
  TieA::DropFromCollector(w);
  EXPECT_TRUE(IsUsable(w->handle));
  A::guarded = false;
  TieA::DropFromCollector(w);
  EXPECT_TRUE(IsDormant(w->handle));
  EXPECT_EQ(w->count, 2);
  EXPECT_EQ(TieA::Use(w), h);
  EXPECT_EQ(w->count, 1);
  TieA::DropStrong(h);
  A::DecRef(w);
  EXPECT_EQ(deaths, 1);
}

TEST_F(TieTest, OffThreadDeathsWaitForADrainAndAskForItOnce) {
  int deaths = 0, asked = A::drains_requested;
  A::attached = false;
  for (int i = 0; i < 5; ++i) {
    TVMFFIObject* h = NewOld(&deaths);
    TieA::AddStrong(h);
    A::DecRef(TieA::Fetch(h, A::New));
    TieA::DropStrong(h);
    // Fetch drains first: wrappers of earlier rounds are gone.
    EXPECT_EQ(live_wrappers, 1);
  }
  EXPECT_EQ(deaths, 5);
  EXPECT_EQ(A::drains_requested, asked + 1);
  A::attached = true;
  TieA::list().DrainRequested();
}

TEST_F(TieTest, OverAlignedStorageIsRefused) {
  EXPECT_EQ(TieA::Allocate(64, 64, 64, nullptr), nullptr);
  TVMFFIObjectHandle error = nullptr;
  TVMFFIErrorMoveFromRaised(&error);
  ASSERT_NE(error, nullptr);
  TVMFFIObjectDecRef(error);
  EXPECT_THROW(TieA::Allocate(SIZE_MAX - 8, 8, 64, nullptr), std::bad_alloc);
}

// The locks of the table must be free in a child, whoever held it at the moment of fork().
TEST_F(TieTest, AForkedChildCanAdopt) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    int deaths = 0;
    while (!stop.load()) {
      TVMFFIObject* h = NewOld(&deaths);
      TieB::FindOrAdopt(h);
      TVMFFIObjectDecRef(h);
    }
  });
  for (int i = 0; i < 50; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      // Volatile, or the compiler warns of the prefix it sees missing and FindSlot does not touch.
      OldObject* volatile storage = new OldObject;
      int deaths = 0;
      _exit(TieB::FindOrAdopt(InitOld(storage, &deaths, nullptr)) != nullptr ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  stop.store(true);
  busy.join();
}

TEST_F(TieTest, ChurnUsesSlotsAgain) {
  constexpr uint32_t kObjects = 10000, kRounds = 30;
  // Every stripe may have begun a chunk.
  constexpr uint32_t kMostSlots = kObjects + 32 * 4096;
  static_assert(kMostSlots < kObjects * kRounds);
  int deaths = 0;
  std::vector<TVMFFIObject*> objects;
  for (uint32_t round = 0; round < kRounds; ++round) {
    for (uint32_t i = 0; i < kObjects; ++i) {
      TVMFFIObject* h = NewOld(&deaths);
      TieA::AddStrong(h);
      A::DecRef(TieA::Fetch(h, A::New));
      EXPECT_LT(h->__padding & ~kAdoptedMark, kMostSlots);
      objects.push_back(h);
    }
    for (TVMFFIObject* h : objects) TieA::DropStrong(h);
    objects.clear();
  }
  EXPECT_EQ(deaths, static_cast<int>(kObjects * kRounds));
}

// A table that is full with 128 objects, and whose stripe the test chooses.
struct SmallTable : NoHooks {
  static constexpr uint32_t kChunkBits = 4;
  static constexpr uint32_t kNumChunks = 8;
  static constexpr uint32_t kNumStripes = 2;
  static constexpr size_t kLine = 64;
  static constexpr uint32_t kBundle = 4;
  static constexpr Mutation kMutation = Mutation::kNone;
  using Mutex = std::mutex;
  inline static uint32_t stripe = 0;
  inline static void* blocks[kNumChunks] = {};
  static uint32_t StripeOf(const void* /*object*/) { return stripe; }
  static void* AllocateChunk(size_t bytes) {
    void* block = std::calloc(1, bytes);
    return *std::find(std::begin(blocks), std::end(blocks), nullptr) = block;
  }
};

TEST(AdoptedTable, FreeSlotsMoveToTheStripeThatNeedsThem) {
  static constexpr TieFrontend kFrontend{[](TieSlot*) -> void* { return nullptr; }, [](void*) {}};
  const AdoptedTable& table = AdoptedTableOf<SmallTable>::Get();
  int deaths = 0;
  for (int round = 0; round < 4; ++round) {
    SmallTable::stripe = round % 2;
    std::vector<TVMFFIObject*> objects;
    std::set<uint32_t> numbers;
    for (int i = 0; i < 100; ++i) {
      objects.push_back(NewOld(&deaths));
      ASSERT_NE(table.adopt(objects.back(), &kFrontend), nullptr) << "round " << round << ", " << i;
      numbers.insert(objects.back()->__padding);
    }
    EXPECT_EQ(numbers.size(), 100u);
    EXPECT_EQ(table.size(), 100u);
    for (TVMFFIObject* h : objects) TVMFFIObjectDecRef(h);
    EXPECT_EQ(table.size(), 0u);
  }
  EXPECT_EQ(deaths, 400);
}

TEST(AdoptedTable, AFullTableSaysSoAndRecovers) {
  static constexpr TieFrontend kFrontend{[](TieSlot*) -> void* { return nullptr; }, [](void*) {}};
  const AdoptedTable& table = AdoptedTableOf<SmallTable>::Get();
  int deaths = 0;
  std::vector<TVMFFIObject*> objects;
  TieSlot* slot = nullptr;
  do {
    ASSERT_LE(objects.size(), 128u);
    objects.push_back(NewOld(&deaths));
    slot = table.adopt(objects.back(), &kFrontend);
  } while (slot != nullptr);
  EXPECT_EQ(objects.back()->__padding, 0u);
  EXPECT_EQ(table.size(), objects.size() - 1);
  TVMFFIObjectDecRef(objects.front());
  EXPECT_NE(table.adopt(objects.back(), &kFrontend), nullptr);
  for (size_t i = 1; i < objects.size(); ++i) TVMFFIObjectDecRef(objects[i]);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(deaths, static_cast<int>(objects.size()));
}

}  // namespace
