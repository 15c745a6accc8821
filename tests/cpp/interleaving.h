// SPDX-License-Identifier: Apache-2.0
// A deterministic scheduler: runs a few threads of a program as fibers of one thread, and explores
// every order in which their steps can be taken.
//
//   Interleaving x;
//   x.Explore(program);        // program.Reset(), .RunThread(i), .Finish(), .Hash()
//   x.failure()                // "" or the first violation, x.Trace() the schedule that led to it
//
// The code under test calls Step(address) before, and Saw(value) after, each access to shared
// state. A state is the shared memory plus, for each thread, a hash of all it saw; what it will do
// next depends on nothing else. A state reached a second time is not explored again, so the search
// ends. Every schedule is run from the start, which needs memory at the same addresses each time:
// see Arena.
#ifndef TETHER_TESTS_INTERLEAVING_H_
#define TETHER_TESTS_INTERLEAVING_H_

#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define TETHER_TESTS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TETHER_TESTS_ASAN 1
#endif
#endif
#ifdef TETHER_TESTS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tether_tests {

inline uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

inline uint64_t MixBytes(uint64_t hash, const void* data, size_t size) {
  const char* p = static_cast<const char*>(data);
  for (; size >= 8; p += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    hash = Mix(hash, word);
  }
  for (; size > 0; ++p, --size) hash = Mix(hash, static_cast<unsigned char>(*p));
  return hash;
}

// Memory that knows what is allocated and is the same in every run. Freed blocks are not used
// again, unless Revive does so on purpose, and keep their bytes.
class Arena {
 public:
  void Reset() {
    std::memset(bytes_, 0, used_);
    used_ = 0;
    num_blocks_ = 0;
  }
  void* Allocate(size_t size) {
    size = (size + 15) / 16 * 16;
    if (used_ + size > sizeof(bytes_) || num_blocks_ == kMaxBlocks) return nullptr;
    blocks_[num_blocks_++] = {used_, size, true};
    used_ += size;
    return bytes_ + used_ - size;
  }
  bool Free(void* p) { return SetLive(p, true, false); }
  bool Revive(void* p) { return SetLive(p, false, true); }
  bool IsLive(const void* p) const {
    const Block* block = Find(p);
    return block == nullptr || block->live;
  }
  size_t NumLive() const {
    size_t n = 0;
    for (size_t i = 0; i < num_blocks_; ++i) n += blocks_[i].live;
    return n;
  }
  uint64_t Hash() const {
    uint64_t hash = MixBytes(1, bytes_, used_);
    for (size_t i = 0; i < num_blocks_; ++i) hash = Mix(hash, blocks_[i].live);
    return hash;
  }

 private:
  struct Block {
    size_t begin, size;
    bool live;
  };
  const Block* Find(const void* p) const {
    const char* at = static_cast<const char*>(p);
    for (size_t i = 0; i < num_blocks_; ++i) {
      const char* begin = bytes_ + blocks_[i].begin;
      if (at >= begin && at < begin + blocks_[i].size) return &blocks_[i];
    }
    return nullptr;
  }
  bool SetLive(void* p, bool from, bool to) {
    Block* block = const_cast<Block*>(Find(p));
    if (block == nullptr || block->live != from) return false;
    block->live = to;
    return true;
  }

  static constexpr size_t kMaxBlocks = 32;
  alignas(16) char bytes_[4096] = {};
  size_t used_ = 0;
  size_t num_blocks_ = 0;
  Block blocks_[kMaxBlocks];
};

class Interleaving {
 public:
  // The program's threads call this; every call is a point where another thread may take over.
  // `site` tells the places in a thread apart that have seen the same values.
  void Step(const void* site) {
    if (current_ < 0) return;
    fibers_[current_].seen_before = fibers_[current_].seen;
    Saw(reinterpret_cast<uintptr_t>(site));
    if (current_ < num_threads_) Reschedule();
  }
  void Saw(uint64_t value) {
    if (current_ >= 0) fibers_[current_].seen = Mix(fibers_[current_].seen, value);
  }
  // A step that can be taken only while *flag is 0: it will be 0 when this returns.
  void StepWhenZero(const void* site, const int* flag) {
    if (current_ >= 0 && current_ < num_threads_) {
      fibers_[current_].flag = flag;
      Step(site);
    } else if (*flag != 0) {
      Fail("waits although it is alone");
    }
  }
  // The last step found that it has to be tried again when another thread has changed something.
  // What it saw does not matter: the thread is where it was before that step.
  void TryAgain() {
    if (!CanWait()) return;
    Fiber& self = fibers_[current_];
    self.seen = self.seen_before;
    self.wait_since = self.resumed_at;
    self.waits = true;
    Reschedule();
  }
  // The same for a longer piece of code, of which a thread runs only one between two calls of
  // BeginTask.
  void TryAllAgain() {
    if (!CanWait()) return;
    Fiber& self = fibers_[current_];
    self.seen = self.retry_seen = self.retries++ == 0 ? self.seen : self.retry_seen;
    self.wait_since = self.task_since;
    self.waits = true;
    Reschedule();
    self.task_since = self.resumed_at;
  }
  // From here on the thread depends on `position` and on shared state only.
  void BeginTask(uint64_t position) {
    Fiber& self = fibers_[current_];
    self.seen = position;
    self.retries = 0;
    self.task_since = self.resumed_at;
  }
  // Ends this run, and the search. The thread does not come back, so it must own no memory here.
  void Fail(const char* what) {
    if (failure_.empty()) failure_ = what;
    if (current_ >= 0) SwitchTo(kScheduler);
  }

  // 0, 1, ... in a thread, num_threads in Finish, negative in Reset.
  int current() const { return current_; }
  const std::string& failure() const { return failure_; }
  size_t num_states() const { return visited_.size(); }
  size_t num_runs() const { return num_runs_; }
  std::string Trace() const {
    std::string text;
    for (int thread : trace_) text += static_cast<char>('0' + thread);
    return text;
  }

  template <typename Program>
  void Explore(Program& program, int num_threads) {
    program_ = &program;
    run_thread_ = [](void* p, int i) { static_cast<Program*>(p)->RunThread(i); };
    finish_ = [](void* p) { static_cast<Program*>(p)->Finish(); };
    hash_memory_ = [](void* p) { return static_cast<Program*>(p)->Hash(); };
    num_threads_ = num_threads;
    do {
      ++num_runs_;
      program.Reset();
      RunOnce();
    } while (failure_.empty() && NextSchedule());
  }

 private:
  static constexpr int kMaxThreads = 4;  // the last one runs Finish
  static constexpr int kScheduler = -1;
  static constexpr size_t kStackSize = 128 * 1024;

  struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    void* fake_stack = nullptr;
    uint64_t seen = 0;         // all it depends on
    uint64_t seen_before = 0;  // the same before its last step
    uint64_t resumed_at = 0;   // when its last step began
    uint64_t changed_at = 0;   // when a step of it last changed memory
    uint64_t wait_since = 0;   // waits: for a change after this
    uint64_t task_since = 0;
    const int* flag = nullptr;  // its next step has to wait until this is 0
    bool waits = false;
    bool done = false;
    int retries = 0;
    uint64_t retry_seen = 0;
  };
  struct Choice {
    int options[kMaxThreads];
    int num_options, taken;
  };

  void RunOnce() {
    for (int i = 0; i <= num_threads_; ++i) Start(i);
    depth_ = 0;
    clock_ = 0;
    memory_ = hash_memory_(program_);
    trace_.clear();
    int first = PickNext();
    if (first != kScheduler) SwitchTo(first);
    if (pruned_ || !failure_.empty()) return;
    for (int i = 0; i < num_threads_; ++i) {
      if (!fibers_[i].done) return Fail("a thread waits for ever");
    }
    SwitchTo(num_threads_);
  }

  bool CanWait() {
    if (current_ >= 0 && current_ < num_threads_) return true;
    Fail("waits although it is alone");
    return false;
  }

  // A thread is between two steps: let the one go on whose turn it is in this schedule.
  void Reschedule() {
    uint64_t memory = hash_memory_(program_);
    if (memory != memory_) {
      memory_ = memory;
      fibers_[current_].changed_at = clock_;
    }
    int next = PickNext();
    if (next != current_) SwitchTo(next);
  }

  int PickNext() {
    Choice choice = Enabled();
    pruned_ = false;
    if (choice.num_options == 0) return kScheduler;
    int next = choice.options[0];
    if (choice.num_options > 1) {
      if (depth_ == schedule_.size()) {
        pruned_ = !visited_.insert(HashState()).second;
        if (pruned_) return kScheduler;
        schedule_.push_back(choice);
      }
      next = schedule_[depth_].options[schedule_[depth_].taken];
      ++depth_;
    }
    trace_.push_back(next);
    fibers_[next].waits = false;
    fibers_[next].flag = nullptr;
    fibers_[next].resumed_at = ++clock_;
    return next;
  }

  bool NextSchedule() {
    schedule_.resize(depth_);
    while (!schedule_.empty()) {
      Choice& last = schedule_.back();
      if (++last.taken < last.num_options) return true;
      schedule_.pop_back();
    }
    return false;
  }

  Choice Enabled() {
    Choice choice{};
    for (int i = 0; i < num_threads_; ++i) {
      const Fiber& fiber = fibers_[i];
      if (fiber.done || (fiber.waits && !WasWoken(i))) continue;
      if (fiber.flag != nullptr && *fiber.flag != 0) continue;
      choice.options[choice.num_options++] = i;
    }
    return choice;
  }
  bool WasWoken(int i) const {
    for (int k = 0; k < num_threads_; ++k) {
      if (k != i && fibers_[k].changed_at > fibers_[i].wait_since) return true;
    }
    return false;
  }

  uint64_t HashState() {
    uint64_t hash = memory_;
    for (int i = 0; i < num_threads_; ++i) {
      const Fiber& fiber = fibers_[i];
      uint64_t state = fiber.done ? 2 : fiber.waits ? 3 + WasWoken(i) : 1;
      hash = Mix(Mix(hash, fiber.seen), state);
    }
    return hash;
  }

  void Start(int i) {
    Fiber& fiber = fibers_[i];
    fiber.stack.resize(kStackSize);
#ifdef TETHER_TESTS_ASAN
    // Frames of an abandoned run have left their red zones behind.
    ASAN_UNPOISON_MEMORY_REGION(fiber.stack.data(), kStackSize);
#endif
    fiber.fake_stack = nullptr;
    fiber.seen = fiber.seen_before = fiber.changed_at = fiber.resumed_at = fiber.task_since = 0;
    fiber.flag = nullptr;
    fiber.waits = fiber.done = false;
    fiber.retries = 0;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = kStackSize;
    fiber.context.uc_link = nullptr;
    running_ = this;
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(&Main), 1, i);
  }

  static void Main(int i) {
    Interleaving* self = running_;
    self->FinishSwitch(nullptr);
    if (i == self->num_threads_) {
      self->finish_(self->program_);
      self->SwitchTo(kScheduler);
    }
    self->run_thread_(self->program_, i);
    self->fibers_[i].done = true;
    self->Reschedule();
  }

  void SwitchTo(int next) {
    int self = current_;
    current_ = next;
#ifdef TETHER_TESTS_ASAN
    void** save = self < 0 ? &fake_stack_ : &fibers_[self].fake_stack;
    if (next < 0) {
      __sanitizer_start_switch_fiber(save, scheduler_stack_, scheduler_stack_size_);
    } else {
      __sanitizer_start_switch_fiber(save, fibers_[next].stack.data(), kStackSize);
    }
#endif
    swapcontext(self < 0 ? &context_ : &fibers_[self].context,
                next < 0 ? &context_ : &fibers_[next].context);
    FinishSwitch(self < 0 ? fake_stack_ : fibers_[self].fake_stack);
  }
  void FinishSwitch(void* fake_stack) {
#ifdef TETHER_TESTS_ASAN
    const void* bottom = nullptr;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &bottom, &size);
    // The first switch of all comes from the scheduler.
    if (scheduler_stack_ == nullptr) {
      scheduler_stack_ = bottom;
      scheduler_stack_size_ = size;
    }
#else
    (void)fake_stack;
#endif
  }

  inline static Interleaving* running_ = nullptr;

  void* program_ = nullptr;
  void (*run_thread_)(void*, int) = nullptr;
  void (*finish_)(void*) = nullptr;
  uint64_t (*hash_memory_)(void*) = nullptr;
  int num_threads_ = 0;

  int current_ = kScheduler;
  Fiber fibers_[kMaxThreads];
  ucontext_t context_;
  void* fake_stack_ = nullptr;
  [[maybe_unused]] const void* scheduler_stack_ = nullptr;
  [[maybe_unused]] size_t scheduler_stack_size_ = 0;

  uint64_t clock_ = 0;
  uint64_t memory_ = 0;  // hash of the shared state after the last step
  bool pruned_ = false;
  std::vector<Choice> schedule_;
  size_t depth_ = 0;
  std::vector<int> trace_;
  std::unordered_set<uint64_t> visited_;
  std::string failure_;
  size_t num_runs_ = 0;
};

}  // namespace tether_tests
#endif  // TETHER_TESTS_INTERLEAVING_H_
