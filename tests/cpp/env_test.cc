// SPDX-License-Identifier: Apache-2.0
// extra/c_env_api.h: streams, the tensor allocator and signal checks.
#include <gtest/gtest.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace tvm::ffi;

Error Raised() { return details::MoveFromSafeCallRaised(); }

// ---- Streams ------------------------------------------------------------------------------------

void* Handle(uintptr_t value) { return reinterpret_cast<void*>(value); }

TEST(EnvStream, EachDeviceHasItsOwnAndTheOldOneIsReturned) {
  EXPECT_EQ(TVMFFIEnvGetStream(kDLCUDA, 7), nullptr);
  void* old = Handle(99);
  ASSERT_EQ(TVMFFIEnvSetStream(kDLCUDA, 7, Handle(1), &old), 0);
  EXPECT_EQ(old, nullptr);
  ASSERT_EQ(TVMFFIEnvSetStream(kDLROCM, 7, Handle(2), nullptr), 0);
  ASSERT_EQ(TVMFFIEnvSetStream(kDLCUDA, 8, Handle(3), nullptr), 0);
  EXPECT_EQ(TVMFFIEnvGetStream(kDLCUDA, 7), Handle(1));
  EXPECT_EQ(TVMFFIEnvGetStream(kDLROCM, 7), Handle(2));
  EXPECT_EQ(TVMFFIEnvGetStream(kDLCUDA, 8), Handle(3));
  ASSERT_EQ(TVMFFIEnvSetStream(kDLCUDA, 7, nullptr, &old), 0);
  EXPECT_EQ(old, Handle(1));
  EXPECT_EQ(TVMFFIEnvGetStream(kDLCUDA, 7), nullptr);
  TVMFFIEnvSetStream(kDLROCM, 7, nullptr, nullptr);
  TVMFFIEnvSetStream(kDLCUDA, 8, nullptr, nullptr);
}

TEST(EnvStream, ThreadsDoNotShareStreams) {
  ASSERT_EQ(TVMFFIEnvSetStream(kDLCUDA, 0, Handle(5), nullptr), 0);
  std::thread([] {
    EXPECT_EQ(TVMFFIEnvGetStream(kDLCUDA, 0), nullptr);
    TVMFFIEnvSetStream(kDLCUDA, 0, Handle(6), nullptr);
    EXPECT_EQ(TVMFFIEnvGetStream(kDLCUDA, 0), Handle(6));
  }).join();
  EXPECT_EQ(TVMFFIEnvGetStream(kDLCUDA, 0), Handle(5));
  TVMFFIEnvSetStream(kDLCUDA, 0, nullptr, nullptr);
}

TEST(EnvStream, BadDevicesAreValueErrorsAndReadAsUnset) {
  EXPECT_EQ(TVMFFIEnvSetStream(-1, 0, Handle(1), nullptr), -1);
  EXPECT_EQ(Raised().kind(), "ValueError");
  EXPECT_EQ(TVMFFIEnvSetStream(kDLCUDA, -1, Handle(1), nullptr), -1);
  EXPECT_EQ(Raised().kind(), "ValueError");
  EXPECT_EQ(TVMFFIEnvGetStream(-1, -1), nullptr);
  // Large numbers must not cost memory in proportion.
  int32_t big = std::numeric_limits<int32_t>::max();
  ASSERT_EQ(TVMFFIEnvSetStream(big, big, Handle(4), nullptr), 0);
  EXPECT_EQ(TVMFFIEnvGetStream(big, big), Handle(4));
  TVMFFIEnvSetStream(big, big, nullptr, nullptr);
}

// ---- Allocator ----------------------------------------------------------------------------------

int live_tensors = 0;

struct TestTensor {
  DLManagedTensorVersioned managed;
  std::vector<int64_t> shape;
  std::vector<char> data;
};

int Allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
             void (*set_error)(void*, const char*, const char*)) {
  if (prototype->ndim > 0 && prototype->shape[0] < 0) {
    set_error(error_ctx, "MemoryError", "negative extent");
    return -1;
  }
  if (prototype->ndim > 0 && prototype->shape[0] == 12345) return 7;
  if (prototype->ndim > 0 && prototype->shape[0] == 54321) return 0;
  auto* tensor = new TestTensor();
  tensor->shape.assign(prototype->shape, prototype->shape + prototype->ndim);
  size_t numel = 1;
  for (int64_t extent : tensor->shape) numel *= static_cast<size_t>(extent);
  tensor->data.resize(numel * prototype->dtype.bits / 8);
  tensor->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  tensor->managed.flags =
      prototype->dtype.code == kDLFloat4_e2m1fn ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0;
  tensor->managed.manager_ctx = tensor;
  tensor->managed.deleter = [](DLManagedTensorVersioned* self) {
    --live_tensors;
    delete static_cast<TestTensor*>(self->manager_ctx);
  };
  tensor->managed.dl_tensor = *prototype;
  tensor->managed.dl_tensor.data = tensor->data.data();
  tensor->managed.dl_tensor.shape = tensor->shape.data();
  tensor->managed.dl_tensor.strides = nullptr;
  tensor->managed.dl_tensor.byte_offset = 0;
  ++live_tensors;
  *out = &tensor->managed;
  return 0;
}

int OtherAllocate(DLTensor*, DLManagedTensorVersioned**, void*,
                  void (*)(void*, const char*, const char*)) {
  return -1;
}

class EnvAllocator : public testing::Test {
 protected:
  void SetUp() override {
    TVMFFIEnvSetDLPackManagedTensorAllocator(nullptr, 1, &before_);
    live_tensors = 0;
  }
  void TearDown() override { TVMFFIEnvSetDLPackManagedTensorAllocator(before_, 1, nullptr); }

  DLTensor Prototype(int64_t extent, DLDataType dtype = {kDLFloat, 32, 1}) {
    shape_[0] = extent;
    shape_[1] = 3;
    DLTensor prototype{};
    prototype.device = {kDLCPU, 0};
    prototype.ndim = 2;
    prototype.dtype = dtype;
    prototype.shape = shape_;
    return prototype;
  }

  DLPackManagedTensorAllocator before_ = nullptr;
  int64_t shape_[2];
};

TEST_F(EnvAllocator, TheThreadsAllocatorWinsAndIsWhatIsGivenBack) {
  EXPECT_EQ(TVMFFIEnvGetDLPackManagedTensorAllocator(), nullptr);
  DLPackManagedTensorAllocator old = Allocate;
  ASSERT_EQ(TVMFFIEnvSetDLPackManagedTensorAllocator(OtherAllocate, 1, &old), 0);
  EXPECT_EQ(old, nullptr);
  ASSERT_EQ(TVMFFIEnvSetDLPackManagedTensorAllocator(Allocate, 0, &old), 0);
  EXPECT_EQ(old, &OtherAllocate);
  EXPECT_EQ(TVMFFIEnvGetDLPackManagedTensorAllocator(), &Allocate);
  std::thread([] {
    // Only the process-wide one is seen here, and it is not the thread's own.
    EXPECT_EQ(TVMFFIEnvGetDLPackManagedTensorAllocator(), &OtherAllocate);
    DLPackManagedTensorAllocator own = Allocate;
    TVMFFIEnvSetDLPackManagedTensorAllocator(Allocate, 0, &own);
    EXPECT_EQ(own, nullptr);
  }).join();
  ASSERT_EQ(TVMFFIEnvSetDLPackManagedTensorAllocator(nullptr, 0, nullptr), 0);
  EXPECT_EQ(TVMFFIEnvGetDLPackManagedTensorAllocator(), &OtherAllocate);
}

TEST_F(EnvAllocator, WithoutAllocatorTheErrorSaysWhatToDo) {
  DLTensor prototype = Prototype(2);
  TVMFFIObjectHandle out = nullptr;
  EXPECT_EQ(TVMFFIEnvTensorAlloc(&prototype, &out), -1);
  Error error = Raised();
  EXPECT_EQ(error.kind(), "RuntimeError");
  EXPECT_EQ(error.message(),
            "TVMFFIEnvTensorAlloc: allocator is nullptr, likely because "
            "TVMFFIEnvSetDLPackManagedTensorAllocator has not been called.");
  EXPECT_EQ(out, nullptr);
}

TEST_F(EnvAllocator, ATensorIsMadeWithStridesAndReleasedOnce) {
  TVMFFIEnvSetDLPackManagedTensorAllocator(Allocate, 0, nullptr);
  DLTensor prototype = Prototype(2);
  TVMFFIObjectHandle out = nullptr;
  ASSERT_EQ(TVMFFIEnvTensorAlloc(&prototype, &out), 0);
  EXPECT_EQ(live_tensors, 1);
  EXPECT_EQ(TVMFFIObjectGetTypeIndex(out), kTVMFFITensor);
  DLTensor* tensor = TVMFFITensorGetDLTensorPtr(out);
  ASSERT_NE(tensor->strides, nullptr);
  EXPECT_EQ(tensor->strides[0], 3);
  EXPECT_EQ(tensor->strides[1], 1);
  EXPECT_EQ(tensor->shape[0], 2);
  EXPECT_EQ(static_cast<Object*>(out)->use_count(), 1u);
  TVMFFIObjectDecRef(out);
  EXPECT_EQ(live_tensors, 0);
}

TEST_F(EnvAllocator, ErrorsOfTheAllocatorArrive) {
  TVMFFIEnvSetDLPackManagedTensorAllocator(Allocate, 0, nullptr);
  DLTensor prototype = Prototype(-1);
  TVMFFIObjectHandle out = nullptr;
  EXPECT_EQ(TVMFFIEnvTensorAlloc(&prototype, &out), -1);
  Error error = Raised();
  EXPECT_EQ(error.kind(), "MemoryError");
  EXPECT_EQ(error.message(), "negative extent");
  prototype = Prototype(12345);
  EXPECT_EQ(TVMFFIEnvTensorAlloc(&prototype, &out), 7);
  prototype = Prototype(54321);
  EXPECT_EQ(TVMFFIEnvTensorAlloc(&prototype, &out), -1);
  error = Raised();
  EXPECT_EQ(error.kind(), "RuntimeError");
  EXPECT_EQ(error.message(),
            "TVMFFIEnvTensorAlloc: failed to allocate a tensor from the allocator");
}

TEST_F(EnvAllocator, ATensorThatCannotBeImportedIsGivenBack) {
  TVMFFIEnvSetDLPackManagedTensorAllocator(Allocate, 0, nullptr);
  DLTensor prototype = Prototype(2, {kDLFloat4_e2m1fn, 8, 1});
  TVMFFIObjectHandle out = nullptr;
  EXPECT_EQ(TVMFFIEnvTensorAlloc(&prototype, &out), -1);
  EXPECT_EQ(Raised().kind(), "RuntimeError");
  EXPECT_EQ(live_tensors, 0);
}

TEST_F(EnvAllocator, NullArgumentsAreValueErrors) {
  TVMFFIEnvSetDLPackManagedTensorAllocator(Allocate, 0, nullptr);
  TVMFFIObjectHandle out = nullptr;
  EXPECT_EQ(TVMFFIEnvTensorAlloc(nullptr, &out), -1);
  EXPECT_EQ(Raised().kind(), "ValueError");
  DLTensor prototype = Prototype(2);
  EXPECT_EQ(TVMFFIEnvTensorAlloc(&prototype, nullptr), -1);
  EXPECT_EQ(Raised().kind(), "ValueError");
  EXPECT_EQ(live_tensors, 0);
}

TEST_F(EnvAllocator, TheCxxHelperUsesIt) {
  TVMFFIEnvSetDLPackManagedTensorAllocator(Allocate, 0, nullptr);
  {
    Tensor tensor = Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, Shape({4, 5}),
                                         DLDataType{kDLInt, 32, 1}, DLDevice{kDLCPU, 0});
    EXPECT_EQ(tensor.shape()[1], 5);
    EXPECT_EQ(live_tensors, 1);
  }
  EXPECT_EQ(live_tensors, 0);
  EXPECT_THROW(Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, Shape({-4, 5}), DLDataType{kDLInt, 32, 1},
                                    DLDevice{kDLCPU, 0}),
               Error);
}

// ---- Signals ------------------------------------------------------------------------------------

int check_result = 0;
int lock_token = 0;
std::vector<std::string> signal_log;

int CheckSignals() {
  signal_log.push_back("check");
  return check_result;
}
int Ensure() {
  signal_log.push_back("ensure");
  return lock_token;
}
void Release(int token) { signal_log.push_back("release " + std::to_string(token)); }

TEST(EnvSignals, TheLockIsTakenAndGivenBackAroundTheCheck) {
  EXPECT_EQ(TVMFFIEnvCheckSignals(), 0);
  ASSERT_EQ(TVMFFIEnvRegisterCAPI("PyGILState_Ensure", reinterpret_cast<void*>(&Ensure)), 0);
  ASSERT_EQ(TVMFFIEnvRegisterCAPI("PyGILState_Release", reinterpret_cast<void*>(&Release)), 0);
  EXPECT_EQ(TVMFFIEnvCheckSignals(), 0);
  EXPECT_TRUE(signal_log.empty());
  ASSERT_EQ(TVMFFIEnvRegisterCAPI("PyErr_CheckSignals", reinterpret_cast<void*>(&CheckSignals)), 0);
  for (int token : {0, 1}) {
    for (int result : {0, 1, -1}) {
      signal_log.clear();
      lock_token = token;
      check_result = result;
      EXPECT_EQ(TVMFFIEnvCheckSignals(), result == 0 ? 0 : -1);
      std::vector<std::string> expected{"ensure", "check", "release " + std::to_string(token)};
      EXPECT_EQ(signal_log, expected);
      TVMFFIObjectHandle error = nullptr;
      TVMFFIErrorMoveFromRaised(&error);
      EXPECT_EQ(error, nullptr);
    }
  }
  for (const char* name : {"PyErr_CheckSignals", "PyGILState_Ensure", "PyGILState_Release"}) {
    TVMFFIEnvRegisterCAPI(name, nullptr);
  }
  EXPECT_EQ(TVMFFIEnvCheckSignals(), 0);
}

TEST(EnvSignals, UnknownEntryPointsAreValueErrors) {
  EXPECT_EQ(TVMFFIEnvRegisterCAPI("PyErr_Occurred", nullptr), -1);
  Error error = Raised();
  EXPECT_EQ(error.kind(), "ValueError");
  EXPECT_EQ(error.message(), "Unknown env API PyErr_Occurred");
  EXPECT_EQ(TVMFFIEnvRegisterCAPI(nullptr, nullptr), -1);
  EXPECT_EQ(Raised().kind(), "ValueError");
}

}  // namespace
