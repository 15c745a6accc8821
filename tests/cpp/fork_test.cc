// SPDX-License-Identifier: Apache-2.0
//
// A child of fork() finds every lock free, whatever other threads were doing at that moment.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#ifndef TETHER_MODULE_FIXTURE_DIR
#error "TETHER_MODULE_FIXTURE_DIR names the folder of the fixture libraries"
#endif

namespace {

using namespace tvm::ffi;

std::string RaisedKind(const std::function<void()>& fail) {
  try {
    fail();
  } catch (const Error& error) {
    return error.kind();
  }
  return "";
}

void Raise() { TVM_FFI_THROW(ValueError) << "no"; }

// Forks, and says whether the child did it in time.
bool ChildCan(const std::function<bool()>& body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Runs body again and again in threads of its own.
class Busy {
 public:
  explicit Busy(const std::function<void()>& body, int threads = 2) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, body] {
        while (!stop_.load()) body();
      });
    }
  }
  ~Busy() {
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST(Fork, AChildCanRaise) {
  Busy busy([] { RaisedKind(Raise); });
  for (int i = 0; i < 100; ++i) {
    // What is remembered of addresses is forgotten, so the threads look them up again.
    void* library = dlopen(TETHER_MODULE_FIXTURE_DIR "/pure_c.so", RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    EXPECT_EQ(RaisedKind(Raise), "ValueError");
    dlclose(library);
    ASSERT_TRUE(ChildCan([] { return RaisedKind(Raise) == "ValueError"; })) << i;
  }
}

TEST(Fork, AChildCanUseTheTables) {
  Function nothing = Function::FromTyped([] {});
  auto use = [nothing](const std::string& name) {
    Function::SetGlobal("test.fork." + name, nothing, true);
    TVMFFIByteArray key{"test.fork.Type", 14};
    int32_t index = TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, TypeIndex::kTVMFFIObject);
    TVMFFIEnvModRegisterSystemLibSymbol("test_fork", nullptr);
    return Function::GetGlobal("test.fork." + name).has_value() && index > 0;
  };
  Busy busy([use] { use("parent"); });
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(ChildCan([use] { return use("child"); })) << i;
  }
}

// fork() does not wait for code of users: in Python it has the GIL, which that may wait for.
TEST(Fork, AChildCanMakeAHandleThatAnotherThreadWasMaking) {
  static std::atomic<bool> has_begun{false};
  static std::atomic<bool> may_end{false};
  static int object = 0;
  static void* handle = nullptr;
  std::thread other([] {
    TVMFFIHandleInitOnce(&handle, [](void** result) {
      has_begun.store(true);
      while (!may_end.load()) std::this_thread::yield();
      *result = &object;
      return 0;
    });
  });
  while (!has_begun.load()) std::this_thread::yield();
  EXPECT_TRUE(ChildCan([] {
    auto init = [](void** result) {
      *result = &object;
      return 0;
    };
    return TVMFFIHandleInitOnce(&handle, init) == 0 && handle == &object;
  }));
  may_end.store(true);
  other.join();
  EXPECT_EQ(handle, &object);
}

}  // namespace
