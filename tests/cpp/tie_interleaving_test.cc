// SPDX-License-Identifier: Apache-2.0
// Every interleaving of two or three threads in the tying engine itself, with and without a GIL.
//
// The runtime below stands for CPython: counts, finalisers that resurrect, weak references, a GIL
// that user code can hand over. A scenario is one script per thread:
//
//   *D  | F  | c       thread 0 holds the wrapper and drops it, thread 1 fetches the object,
//                      thread 2 is C++ and drops the last reference of the container
//
//   Python  F fetch   B fetch borrowed   D drop   U use   M move   W use through a weak reference
//           P run the pending call
//   C++     c drop the container's reference   C the same for the second object
//           w promote a C++ weak reference, use it, drop both   n put a new object at a freed
//           address   x end the interpreter (atexit)   X the same with Python threads still running
//
// Each broken variant of the engine (Mutation) must be found by at least one scenario.
#include <gtest/gtest.h>

#include <new>

#include "../../src/tie/tie.h"
#include "interleaving.h"

namespace {

using namespace tvm::ffi::tether;
namespace details = tvm::ffi::details;
using tether_tests::Arena;
using tether_tests::Interleaving;
using tether_tests::Mix;
using tether_tests::MixBytes;

constexpr int kStrong = kTVMFFIObjectDeleterFlagBitMaskStrong;
constexpr int kWeak = kTVMFFIObjectDeleterFlagBitMaskWeak;

struct TestWrapper {
  int64_t count;
  Handle handle;
  bool finalized;  // CPython's mark: finalise only once
  bool merged;     // free-threaded: no resurrection in progress
  bool try_incref_enabled;
  int in_critical_section;
};

struct TestObject {
  TVMFFIObject header;
  int64_t destroyed;
};

enum class Kind { kPrefix, kOld };

struct Scenario {
  const char* scripts[3];
  Kind kind = Kind::kPrefix;
  bool dormant = false;      // the wrapper starts out dormant instead of in thread 0's hands
  bool two_objects = false;  // a second object with a dormant wrapper
  bool cpp_weak = false;
  bool trashcan = false;  // a dying wrapper can be parked at count 0
  bool has_del = false;   // the wrapper's type defines __del__
  bool impatient = false;
  bool garbage = false;  // the new object's maker leaves the padding word as it was

  std::string Name() const {
    std::string text = kind == Kind::kOld ? "old:" : "prefix:";
    for (const char* script : scripts) text += std::string(" ") + script;
    return text;
  }
};

// The shared state that is not in the arena. Plain data: it is reset and hashed as bytes.
struct World {
  TVMFFIObject* object[2];
  bool held[2];  // a C++ container owns a strong reference, and hands out copies
  TestWrapper* weakref;
  TestWrapper* mine[3];
  int gil;  // 0, or owner + 1
  bool pending_call;
  bool interpreter_ended;
  int python_threads;
  TestWrapper* tied;  // the wrapper that identity promises to hand out
  bool doomed;        // the shortcut promised that the object dies now
  bool moving[3];
  TestWrapper* fresh[3];  // made by this thread and not yet published
};

Arena arena;
World world;
Scenario scenario;
Interleaving* scheduler;

template <typename R>
class TieProgram;

bool IsPython(const char* script) { return std::strpbrk(script, "cCwnxX") == nullptr; }
bool InThread() { return scheduler->current() >= 0 && scheduler->current() < 3; }
bool InWrapper(const void* address, const TestWrapper* w) {
  return w != nullptr && address >= w && address < w + 1;
}
bool OnPythonThread() { return !InThread() || IsPython(scenario.scripts[scheduler->current()]); }

template <bool kFree, Mutation kBroken>
struct TestRuntime {
  using Wrapper = TestWrapper;
  using Engine = Tie<TestRuntime>;
  static constexpr bool kFreeThreaded = kFree;
  static constexpr Mutation kMutation = kBroken;
  inline static int kMaxAttempts = 0;

  // ---- hooks
  static bool OneThread() { return false; }
  __attribute__((noinline)) static void Step(const void* address) {
    TieProgram<TestRuntime>::Check();
    // Nobody else can see a wrapper that has not been published.
    if (InThread() && InWrapper(address, world.fresh[scheduler->current()])) return;
    scheduler->Step(__builtin_return_address(0));
    if (!arena.IsLive(address)) scheduler->Fail("use after free");
  }
  __attribute__((noinline)) static void StepWhenZero(const int* flag) {
    TieProgram<TestRuntime>::Check();
    scheduler->StepWhenZero(__builtin_return_address(0), flag);
  }
  template <typename T>
  static T Saw(T value) {
    scheduler->Saw((uint64_t)value);
    return value;
  }

  // ---- the table
  struct Mutex {
    int locked;
    void lock() {
      StepWhenZero(&locked);
      locked = 1;
    }
    void unlock() {
      Step(this);
      locked = 0;
    }
  };
  static constexpr uint32_t kChunkBits = 1;
  static constexpr uint32_t kNumChunks = 2;
  static constexpr uint32_t kNumStripes = 1;
  static constexpr size_t kLine = alignof(size_t);
  static constexpr uint32_t kBundle = 1;
  static uint32_t StripeOf(const void* /*object*/) { return 0; }
  static void* AllocateChunk(size_t bytes) { return arena.Allocate(bytes); }
  static const AdoptedTable& Table() { return AdoptedTableOf<TestRuntime>::Get(); }

  // ---- CPython
  static Handle& HandleOf(Wrapper* w) {
    if (world.interpreter_ended) scheduler->Fail("wrapper touched after the interpreter's end");
    return w->handle;
  }
  static void IncRef(Wrapper* w) {
    Step(w);
    if (kBroken != Mutation::kNoWordReference) ++w->count;
  }
  static bool TryIncRef(Wrapper* w) {
    Step(w);
    if (w->count == 0 || (kFree && !w->try_incref_enabled)) return Saw(false);
    ++w->count;
    return Saw(true);
  }
  static void EnableTryIncRef(Wrapper* w) {
    Step(w);
    w->try_incref_enabled = true;
  }
  static bool IsResurrectionOver(Wrapper* w) {
    Step(w);
    return kBroken == Mutation::kResurrectionWindow || Saw(w->merged);
  }
  static void ClearFinalized(Wrapper* w) {
    Step(w);
    if (kBroken != Mutation::kFinalizedNotCleared) w->finalized = false;
  }
  static bool IsGuarded(Wrapper*) { return false; }
  static void OnDormant(Wrapper*) {}
  static void OnActive(Wrapper*) {}
  static void OnGone(Wrapper*) {}
  static bool AttachedHere() { return OnPythonThread(); }
  static bool RequestDrain() {
    Step(&world.pending_call);
    world.pending_call = true;
    return true;
  }
  static void Relax() { scheduler->TryAgain(); }
  static void Pause(int) {
    if (scenario.impatient) return Step(nullptr);
    scheduler->TryAllAgain();
  }
  static void* AllocateSpace(size_t size) { return arena.Allocate(size); }
  static void FreeSpace(void* p) {
    if (static_cast<TiePrefix*>(p)->tie.word != 0) scheduler->Fail("I2: freed while tied");
    Free(p);
  }
  static void Free(void* p) {
    Step(p);
    if (!arena.Free(p)) scheduler->Fail("double free");
  }

  // User code runs: with the GIL, another thread may get its turn.
  static void MaySwitch() {
    if (kFree || !InThread()) return;
    ReleaseGil();
    AcquireGil();
  }
  static void AcquireGil() {
    if (kFree || !InThread()) return;
    StepWhenZero(&world.gil);
    world.gil = scheduler->current() + 1;
  }
  static void ReleaseGil() {
    if (!kFree) world.gil = 0;
  }

  static Wrapper* NewWrapper(TVMFFIObject*) {
    Step(nullptr);
    Wrapper* w = static_cast<Wrapper*>(arena.Allocate(sizeof(Wrapper)));
    if (w == nullptr) {
      scheduler->Fail("arena is full");
      return nullptr;
    }
    w->count = 1;
    w->handle = kEmpty;
    w->merged = true;
    MaySwitch();
    if (InThread()) world.fresh[scheduler->current()] = w;
    return w;
  }

  static void DecRef(Wrapper* w) {
    Step(w);
    if (w->count <= 0) scheduler->Fail("wrapper's count below zero");
    if (--w->count > 0) return;
    if (scenario.trashcan) MaySwitch();
    if (!w->finalized && !scenario.has_del) {
      Step(w);
      w->count = 1;
      w->try_incref_enabled = w->merged = false;
      Engine::Drop(w);
      Step(w);
      w->finalized = true;
      Step(w);
      w->try_incref_enabled = w->merged = true;
      if (--w->count > 0) return;
    }
    Step(w);
    if (world.tied == w && !scenario.has_del) scheduler->Fail("P2: the tied wrapper dies");
    if (world.weakref == w) world.weakref = nullptr;
    MaySwitch();
    Engine::Discard(w);
    if (InThread()) world.fresh[scheduler->current()] = nullptr;
    if (w->count != 0) scheduler->Fail("freed wrapper is referenced");
    Free(w);
    Engine::list().Drain();
  }
};

// ---- objects --------------------------------------------------------------------------------

TestObject* Body(void* self) { return static_cast<TestObject*>(self); }

template <typename R>
void Destroy(void* self) {
  R::Step(self);
  if (Body(self)->destroyed++ != 0) scheduler->Fail("destroyed twice");
}

template <typename R>
void PrefixDeleter(void* self, int flags) {
  if (flags & kStrong) {
    Destroy<R>(self);
    if (OnPythonThread()) R::MaySwitch();
  }
  if (flags == kStrong && R::kMutation != Mutation::kNoStrongHook) {
    R::Engine::OnlyStorageIsLeft(static_cast<TVMFFIObject*>(self));
  }
  if (flags == kStrong && PrefixOf(self)->tie.word != 0) scheduler->Fail("P4: tied to a husk");
  if (flags & kWeak) PrefixOf(self)->header.delete_space(self);
  R::Step(nullptr);
}

// As some released binaries do, it uses the count word while the object is being destroyed.
template <typename R>
void OldDeleter(void* self, int flags) {
  if (flags & kStrong) {
    Destroy<R>(self);
    CountWord::Add(&Body(self)->header.combined_ref_count, 1);
    if (OnPythonThread()) R::MaySwitch();
    R::Step(self);
    CountWord::SubRelease(&Body(self)->header.combined_ref_count, 1);
  }
  if (flags & kWeak) R::Free(self);
  R::Step(nullptr);
}

template <typename R>
void InitObject(TVMFFIObject* h, Kind kind) {
  Body(h)->destroyed = 0;
  h->type_index = 128;
  h->combined_ref_count = details::kCombinedRefCountBothOne;
  h->deleter = kind == Kind::kPrefix ? PrefixDeleter<R> : OldDeleter<R>;
}

// ---- a program for the scheduler ------------------------------------------------------------

template <typename R>
class TieProgram {
 public:
  using Engine = Tie<R>;
  using Table = AdoptedTableOf<R>;

  void Reset() {
    arena.Reset();
    std::memset(static_cast<void*>(&world), 0, sizeof(world));
    new (&Engine::list()) ReclaimList<R>();
    new (&Table::state()) typename Table::State();
    R::kMaxAttempts = scenario.impatient ? 1 : 1000;
    for (const char* script : scenario.scripts) world.python_threads += IsPython(script);
    world.object[0] = NewObject();
    world.held[0] = true;
    TestWrapper* w = Fetch(0);
    world.weakref = w;
    if (scenario.cpp_weak) world.object[0]->combined_ref_count += details::kCombinedRefCountWeakOne;
    if (scenario.dormant) {
      R::DecRef(w);
    } else {
      world.mine[0] = w;
    }
    if (scenario.two_objects) {
      world.object[1] = NewObject();
      world.held[1] = true;
      R::DecRef(Fetch(1));
    }
  }

  void RunThread(int i) {
    const char* script = scenario.scripts[i];
    if (!IsPython(script)) {
      for (; *script != 0; ++script) {
        scheduler->BeginTask(reinterpret_cast<uintptr_t>(script));
        RunCpp(*script);
      }
      return;
    }
    for (; *script != 0; ++script) {
      scheduler->BeginTask(reinterpret_cast<uintptr_t>(script));
      R::AcquireGil();
      RunPython(*script, &world.mine[i]);
      R::ReleaseGil();
    }
    scheduler->BeginTask(reinterpret_cast<uintptr_t>(script));
    R::AcquireGil();
    DropMine(&world.mine[i]);
    R::ReleaseGil();
    R::Step(&world.python_threads);
    --world.python_threads;
  }

  // Between any two steps: did the tie change in a way it may?
  static void Check() {
    TVMFFIObject* h = world.object[0];
    TieSlot* slot = h != nullptr && arena.IsLive(h) ? SlotOf(h) : nullptr;
    uint32_t strong = slot != nullptr ? static_cast<uint32_t>(h->combined_ref_count) : 0;
    if (world.doomed && strong > 1) scheduler->Fail("P2: revived after its wrapper was let go");
    TestWrapper* before = world.tied;
    TestWrapper* now =
        slot != nullptr ? reinterpret_cast<TestWrapper*>(slot->word.load() & ~kWordTags) : nullptr;
    world.tied = now;
    if (now == before) return;
    for (TestWrapper*& fresh : world.fresh) fresh = fresh == now ? nullptr : fresh;
    if (before == nullptr) {
      if (world.doomed) scheduler->Fail("P2: tied again after its wrapper was let go");
      return;
    }
    if (now != nullptr) return scheduler->Fail("I4: a second wrapper replaced the first");
    if (strong == 0 || Body(h)->destroyed != 0 || scenario.impatient) return;
    if (InThread() && world.moving[scheduler->current()]) return;
    if (before->count == 0) return;  // trashcan; a plain death is checked in DecRef
    if (before->handle == kEmpty && strong == 1) {
      world.doomed = true;
      return;
    }
    scheduler->Fail("P2: the tie was cut while the object lives");
  }

  // All threads are done: nothing is lost, nothing is kept.
  void Finish() {
    bool ended = world.interpreter_ended;
    if (world.pending_call && !ended) {
      world.pending_call = false;
      Engine::list().DrainRequested();
    }
    size_t waiting = arena.NumLive();
    if (!ended) Engine::list().Drain();
    if (arena.NumLive() != waiting) scheduler->Fail("a wrapper waits and no drain was asked for");
    for (int k = 0; k < 2; ++k) {
      if (world.held[k]) Engine::DropStrong(world.object[k]);
    }
    size_t chunks = 0;
    for (auto& chunk : Table::state().chunks) chunks += chunk.load() != nullptr;
    if (Table::Get().size() != 0) scheduler->Fail("adopted slot leaked");
    if (world.weakref != nullptr && !ended) scheduler->Fail("P4: weakref outlives the object");
    if (arena.NumLive() != chunks && !ended) scheduler->Fail("memory leaked");
  }

  uint64_t Hash() const {
    uint64_t hash = MixBytes(arena.Hash(), &world, sizeof(world));
    hash = MixBytes(hash, &Engine::list(), sizeof(ReclaimList<R>));
    return MixBytes(hash, &Table::state(), sizeof(typename Table::State));
  }

 private:
  static TVMFFIObject* NewObject() {
    void* body = scenario.kind == Kind::kPrefix
                     ? Engine::Allocate(sizeof(TestObject), alignof(TestObject), 64, nullptr)
                     : arena.Allocate(sizeof(TestObject));
    TVMFFIObject* h = static_cast<TVMFFIObject*>(body);
    h->__padding = scenario.kind == Kind::kPrefix ? kTVMFFIObjectAllocHeaderMark : 0;
    InitObject<R>(h, scenario.kind);
    return h;
  }

  static TieSlot* SlotOf(TVMFFIObject* h) {
    if (h->__padding == kTVMFFIObjectAllocHeaderMark) return &PrefixOf(h)->tie;
    AdoptedSlot* slot = FindAdopted<NoHooks>(Table::Get(), h, h->__padding);
    return slot == nullptr ? nullptr : &slot->tie;
  }

  // One step, as a container's own lock would make it.
  static TVMFFIObject* TakeFromContainer(int k) {
    R::Step(&world.held[k]);
    if (!R::Saw(world.held[k])) return nullptr;
    TVMFFIObject* h = world.object[k];
    CountWord::Add(&h->combined_ref_count, details::kCombinedRefCountStrongOne);
    return h;
  }

  static TestWrapper* Fetch(int k) {
    TVMFFIObject* h = TakeFromContainer(k);
    return h == nullptr ? nullptr : Engine::Fetch(h, R::NewWrapper);
  }

  // I4 and P1. Where somebody may cut the tie at any moment there is nothing to compare with.
  static void CheckCanonical(TestWrapper* w) {
    bool can_be_cut = scenario.trashcan || scenario.has_del || scenario.impatient;
    for (const char* script : scenario.scripts) can_be_cut |= std::strchr(script, 'M') != nullptr;
    Check();
    if (w != world.tied && !(R::kFreeThreaded && can_be_cut)) {
      scheduler->Fail("I4: handed out another wrapper than the tied one");
    }
    R::Step(w);
    if (w->count <= 0) scheduler->Fail("handed out a wrapper without a reference");
  }

  static void DropMine(TestWrapper** mine) {
    if (TestWrapper* w = *mine) {
      *mine = nullptr;
      R::DecRef(w);
    }
  }

  static void RunPython(char op, TestWrapper** mine) {
    switch (op) {
      case '*':
        return;
      case 'F':
      case 'B': {
        DropMine(mine);
        TVMFFIObject* h = TakeFromContainer(0);
        if (h == nullptr) return;
        if (op == 'F') {
          *mine = Engine::Fetch(h, R::NewWrapper);
        } else {
          *mine = Engine::FetchBorrowed(h, R::NewWrapper);
          Engine::DropStrong(h);
        }
        return CheckCanonical(*mine);
      }
      case 'D':
        return DropMine(mine);
      case 'U':
        return UseOrMove(*mine, false);
      case 'M':
        return UseOrMove(*mine, true);
      case 'W':
        DropMine(mine);
        R::Step(&world.weakref);
        if (world.weakref == nullptr) return;
        if (world.weakref->count == 0) return;
        if (R::kFreeThreaded && !world.weakref->try_incref_enabled) return;
        ++world.weakref->count;
        *mine = world.weakref;
        return UseOrMove(*mine, false);
      case 'P':
        R::Step(&world.pending_call);
        if (!R::Saw(world.pending_call)) return;
        world.pending_call = false;
        return Engine::list().DrainRequested();
    }
    FAIL() << "unknown step " << op;
  }

  static void UseOrMove(TestWrapper* w, bool move) {
    if (w == nullptr) return;
    Mutation loose = move ? Mutation::kMoveOutside : Mutation::kUseOutside;
    bool locks = R::kFreeThreaded && R::kMutation != loose;
    if (locks) {
      R::StepWhenZero(&w->in_critical_section);
      w->in_critical_section = 1;
    }
    TVMFFIObject* h = Engine::Use(w);
    if (h != nullptr && move) {
      bool& moving = world.moving[scheduler->current()];
      moving = true;
      h = Engine::Take(w);
      Check();
      moving = false;
    } else if (h != nullptr) {
      R::Step(h);
      if (Body(h)->destroyed != 0) scheduler->Fail("use of a destroyed object");
    }
    if (locks) {
      R::Step(w);
      w->in_critical_section = 0;
    }
    if (h != nullptr && move) Engine::DropStrong(h);
  }

  static void RunCpp(char op) {
    TVMFFIObject* h = world.object[op == 'C'];
    switch (op) {
      case 'c':
      case 'C':
        R::Step(&world.held[op == 'C']);
        world.held[op == 'C'] = false;
        return Engine::DropStrong(h);
      case 'w':
        R::Step(h);
        // (A count that the deleter scribbles on is not for us to read.)
        if (!R::Saw(Body(h)->destroyed) && R::Saw(static_cast<uint32_t>(h->combined_ref_count))) {
          CountWord::Add(&h->combined_ref_count, 1);
          R::Step(h);
          if (Body(h)->destroyed) scheduler->Fail("promoted a destroyed object");
          Engine::DropStrong(h);
        }
        R::Step(h);
        return DropWeak(h);
      case 'n':
        // Blocks until the address is free, as an allocator would hand it out only then.
        for (R::Step(nullptr); arena.IsLive(h); R::Step(nullptr)) R::Relax();
        arena.Revive(h);
        if (!scenario.garbage) h->__padding = 0;
        InitObject<R>(h, Kind::kOld);
        world.doomed = false;
        world.held[0] = true;
        return;
      case 'x':
        R::StepWhenZero(&world.python_threads);
        Engine::list().Close();
        R::Step(&world.interpreter_ended);
        world.interpreter_ended = true;
        return;
      case 'X':
        R::AcquireGil();
        Engine::list().Close();
        R::ReleaseGil();
        R::StepWhenZero(&world.python_threads);
        world.interpreter_ended = true;
        return;
    }
    FAIL() << "unknown step " << op;
  }
};

template <bool kFree, Mutation kBroken = Mutation::kNone>
std::string Explore(const Scenario& s) {
  scenario = s;
  Interleaving interleaving;
  scheduler = &interleaving;
  TieProgram<TestRuntime<kFree, kBroken>> program;
  interleaving.Explore(program, 3);
  if (kBroken == Mutation::kNone) {
    ::testing::Test::RecordProperty(s.Name(), static_cast<int>(interleaving.num_states()));
    if (getenv("TETHER_TESTS_VERBOSE") != nullptr) {
      printf("%s %-28s %8zu states %8zu runs\n", kFree ? "ft " : "gil", s.Name().c_str(),
             interleaving.num_states(), interleaving.num_runs());
    }
  }
  if (interleaving.failure().empty()) return "";
  return s.Name() + ": " + interleaving.failure() + " (schedule " + interleaving.Trace() + ")";
}

Scenario Make(const char* a, const char* b, const char* c) {
  Scenario s{};
  s.scripts[0] = a;
  s.scripts[1] = b;
  s.scripts[2] = c;
  return s;
}

template <bool kFree>
void ExploreBothKinds(Scenario s) {
  for (Kind kind : {Kind::kPrefix, Kind::kOld}) {
    s.kind = kind;
    EXPECT_EQ(Explore<kFree>(s), "");
  }
}

template <typename T>
class TieInterleaving : public ::testing::Test {
 protected:
  static constexpr bool kFree = T::value;
};
struct BuildNames {
  template <typename T>
  static std::string GetName(int) {
    return T::value ? "FreeThreaded" : "Gil";
  }
};
using Builds = ::testing::Types<std::false_type, std::true_type>;
TYPED_TEST_SUITE(TieInterleaving, Builds, BuildNames);

TYPED_TEST(TieInterleaving, DropAgainstFetchAndCppDrop) {
  ExploreBothKinds<TestFixture::kFree>(Make("*D", "F", "c"));
  ExploreBothKinds<TestFixture::kFree>(Make("*DF", "FU", "c"));
  ExploreBothKinds<TestFixture::kFree>(Make("*DB", "B", "c"));
}

TYPED_TEST(TieInterleaving, FirstFetchRaces) {
  Scenario s = Make("*MF", "FU", "c");
  ExploreBothKinds<TestFixture::kFree>(s);
}

TYPED_TEST(TieInterleaving, WeakUseAgainstEverything) {
  ExploreBothKinds<TestFixture::kFree>(Make("*D", "W", "c"));
  Scenario s = Make("W", "W", "c");
  s.dormant = true;
  ExploreBothKinds<TestFixture::kFree>(s);
  s = Make("WD", "F", "c");
  s.dormant = true;
  ExploreBothKinds<TestFixture::kFree>(s);
}

TYPED_TEST(TieInterleaving, MoveAgainstUseAndDrop) {
  ExploreBothKinds<TestFixture::kFree>(Make("*M", "FU", "c"));
  ExploreBothKinds<TestFixture::kFree>(Make("*U", "FM", "c"));
  Scenario s = Make("WM", "W", "c");
  s.dormant = true;
  ExploreBothKinds<TestFixture::kFree>(s);
}

TYPED_TEST(TieInterleaving, CppWeakReferences) {
  for (const char* python : {"*D", "*DF", "*DW"}) {
    Scenario s = Make(python, "c", "w");
    s.cpp_weak = true;
    ExploreBothKinds<TestFixture::kFree>(s);
  }
}

TYPED_TEST(TieInterleaving, TrashcanParksAWrapperAtCountZero) {
  Scenario s = Make("*D", "FD", "F");
  s.trashcan = true;
  ExploreBothKinds<TestFixture::kFree>(s);
  s = Make("*D", "FD", "c");
  s.trashcan = true;
  s.impatient = true;
  ExploreBothKinds<TestFixture::kFree>(s);
}

TYPED_TEST(TieInterleaving, TypesWithDelDieAtTheLastReference) {
  Scenario s = Make("*D", "FD", "c");
  s.has_del = true;
  ExploreBothKinds<TestFixture::kFree>(s);
}

TYPED_TEST(TieInterleaving, FetchGivesUpOnAStuckResurrection) {
  Scenario s = Make("*D", "FW", "c");
  s.impatient = true;
  ExploreBothKinds<TestFixture::kFree>(s);
}

TYPED_TEST(TieInterleaving, AdoptionAtAnAddressUsedBefore) {
  for (bool garbage : {false, true}) {
    for (const char* python : {"*DF", "*DFW"}) {
      Scenario s = Make(python, "c", "nc");
      s.kind = Kind::kOld;
      s.garbage = garbage;
      EXPECT_EQ(Explore<TestFixture::kFree>(s), "");
    }
    Scenario s = Make("F", "F", "cn");
    s.dormant = true;
    s.kind = Kind::kOld;
    s.garbage = garbage;
    EXPECT_EQ(Explore<TestFixture::kFree>(s), "");
  }
}

TYPED_TEST(TieInterleaving, ReclaimListLosesNothing) {
  Scenario s = Make("PP", "c", "C");
  s.dormant = s.two_objects = true;
  ExploreBothKinds<TestFixture::kFree>(s);
  s = Make("PW", "F", "cC");
  s.dormant = s.two_objects = true;
  ExploreBothKinds<TestFixture::kFree>(s);
}

TYPED_TEST(TieInterleaving, InterpreterEndsUnderCppThreads) {
  ExploreBothKinds<TestFixture::kFree>(Make("*D", "c", "x"));
  Scenario s = Make("x", "c", "C");
  s.dormant = s.two_objects = true;
  EXPECT_EQ(Explore<TestFixture::kFree>(s), "");
}

TYPED_TEST(TieInterleaving, InterpreterEndsUnderPythonThreads) {
  for (const char* python : {"W", "F", "WF"}) {
    Scenario s = Make(python, "c", "X");
    s.dormant = true;
    ExploreBothKinds<TestFixture::kFree>(s);
  }
  ExploreBothKinds<TestFixture::kFree>(Make("*DW", "c", "X"));
}

// ---- broken engines must be found out -------------------------------------------------------

Scenario Dormant(Scenario s) {
  s.dormant = true;
  return s;
}
Scenario Old(Scenario s) {
  s.kind = Kind::kOld;
  return s;
}
Scenario CppWeak(Scenario s) {
  s.cpp_weak = true;
  return s;
}
Scenario Garbage(Scenario s) {
  s.garbage = true;
  return s;
}
Scenario Trashcan(Scenario s) {
  s.trashcan = true;
  return s;
}
Scenario TwoObjects(Scenario s) {
  s.two_objects = true;
  return s;
}

#define EXPECT_FOUND(free_threaded, mutation, s)                                         \
  do {                                                                                   \
    std::string found = Explore<free_threaded, Mutation::mutation>(s);                   \
    EXPECT_NE(found, "") << #mutation " was not noticed";                                \
    EXPECT_EQ(Explore<free_threaded>(s), "") << "the scenario fails without " #mutation; \
    if (getenv("TETHER_TESTS_VERBOSE") != nullptr) {                                     \
      printf("%-22s %s\n", #mutation, found.c_str());                                    \
    }                                                                                    \
  } while (0)

TEST(TieMutations, HandOff) {
  EXPECT_FOUND(false, kLetGoFirst, Make("*D", "F", "c"));
  EXPECT_FOUND(false, kNoWordReference, Make("*D", "F", "c"));
  EXPECT_FOUND(false, kShortcutIgnoresWeak, CppWeak(Make("*D", "c", "w")));
  EXPECT_FOUND(false, kFinalizedNotCleared, Make("*DFDF", "", "c"));
  EXPECT_FOUND(false, kNoMineCheck, Trashcan(Make("*D", "F", "")));
}

TEST(TieMutations, Handle) {
  EXPECT_FOUND(false, kNoHandleLock, Dormant(Make("W", "", "c")));
  EXPECT_FOUND(false, kHandleNotEmptied, Dormant(Make("W", "", "c")));
  EXPECT_FOUND(false, kPromoteBlindly, Dormant(Make("W", "", "c")));
}

TEST(TieMutations, Fetch) {
  EXPECT_FOUND(false, kBlindPublish, Make("*MF", "FU", "c"));
  EXPECT_FOUND(true, kBlindPublish, Make("*MF", "FU", "c"));
  EXPECT_FOUND(true, kTryIncRefOutside, Make("*D", "F", "c"));
  EXPECT_FOUND(true, kResurrectionWindow, Make("*D", "FDF", "c"));
  EXPECT_FOUND(true, kUseOutside, Make("*M", "FU", "c"));
  EXPECT_FOUND(true, kMoveOutside, Make("*M", "FU", "c"));
}

TEST(TieMutations, StrongPhase) {
  EXPECT_FOUND(false, kNoStrongHook, CppWeak(Dormant(Make("", "c", "w"))));
}

TEST(TieMutations, AdoptedSlots) {
  EXPECT_FOUND(false, kSlotAfterDeleter, Old(Garbage(Make("*DF", "c", "nc"))));
  EXPECT_FOUND(false, kNoStrongHook, Old(CppWeak(Dormant(Make("W", "c", "w")))));
}

TEST(TieMutations, ReclaimList) {
  EXPECT_FOUND(false, kDrainMidway, Dormant(TwoObjects(Make("F", "F", "C"))));
  EXPECT_FOUND(false, kRequestedAfterPop, Dormant(TwoObjects(Make("P", "c", "C"))));
  EXPECT_FOUND(false, kNoShutdownGate, Dormant(Make("", "c", "x")));
  EXPECT_FOUND(true, kNoReaderGate, Dormant(Make("W", "c", "X")));
}

}  // namespace
