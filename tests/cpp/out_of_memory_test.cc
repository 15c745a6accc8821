// SPDX-License-Identifier: Apache-2.0
//
// A std::bad_alloc is an error of kind MemoryError, also where nothing may be thrown, and whoever
// catches it finds everything as it was.
#include <gtest/gtest.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/extra/structural_mutate.h>
#include <tvm/ffi/extra/structural_visit.h>
#include <tvm/ffi/function.h>

#include <functional>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using tether_test::Construct;
using tether_test::ErrorText;

constexpr WalkOrder kPre = WalkOrder::kPreOrder;
constexpr WalkOrder kPost = WalkOrder::kPostOrder;
using Mutated = Expected<UnchangedOr<Any>>;
using Visited = Expected<Optional<VisitInterrupt>>;

// An allocator of objects that works `left` times and then never again.
class FailingAllocator {
 public:
  explicit FailingAllocator(int64_t left) : builtin_(TVMFFIGetCustomAllocator()), left_(left) {
    TVMFFISetCustomAllocator(&allocator_);
  }
  ~FailingAllocator() { TVMFFISetCustomAllocator(nullptr); }
  FailingAllocator(const FailingAllocator&) = delete;
  FailingAllocator& operator=(const FailingAllocator&) = delete;
  bool has_failed() const { return left_ < 0; }

 private:
  static void* Allocate(size_t size, size_t alignment, int32_t type_index, void* context) {
    auto* self = static_cast<FailingAllocator*>(context);
    if (self->left_ <= 0) {
      self->left_ = -1;
      return nullptr;
    }
    --self->left_;
    return self->builtin_->allocate(size, alignment, type_index, self->builtin_->context);
  }

  TVMFFICustomAllocator* builtin_;
  int64_t left_;
  TVMFFICustomAllocator allocator_{&Allocate, this};
};

Any Nested() {
  return Array<Any>{1, List<Any>{2, Map<Any, Any>{{3, Array<Any>{4}}}},
                    Construct("testing.TestIntPair", 5, 6)};
}

std::string KindOf(const Error& error) { return error.kind() + ": " + error.message(); }
constexpr const char* kThrown = "MemoryError: std::bad_alloc";

TEST(OutOfMemory, CallbacksThatThrowBadAlloc) {
  const Any root = Nested();
  auto walk = [](int64_t) -> Expected<WalkResult> { throw std::bad_alloc(); };
  auto visit = [](int64_t, StructuralVisitorObj*) -> Visited { throw std::bad_alloc(); };
  auto map = [](int64_t) -> Any { throw std::bad_alloc(); };
  auto mutate = [](int64_t, StructuralMutatorObj*) -> Any { throw std::bad_alloc(); };
  EXPECT_EQ(KindOf(StructuralWalkExpected<kPre>(root, walk).error()), kThrown);
  EXPECT_EQ(KindOf(StructuralVisitExpected(root, visit).error()), kThrown);
  EXPECT_EQ(KindOf(StructuralMapExpected<kPre>(root, map).error()), kThrown);
  EXPECT_EQ(KindOf(StructuralMapExpected<kPost>(root, map).error()), kThrown);
  EXPECT_EQ(KindOf(StructuralMutateExpected(root, mutate).error()), kThrown);

  auto walker =
      make_object<StructuralWalkEngine<StructuralVisitorObj, kPost, decltype(walk)>>(walk);
  EXPECT_EQ(KindOf(walker->VisitExpected(root).error()), kThrown);
  auto mapper =
      make_object<StructuralMapEngine<StructuralMapEngineBase, kPost, decltype(map)>>(map);
  EXPECT_EQ(KindOf(mapper->MutateExpected(root).error()), kThrown);
  auto mutator =
      make_object<StructuralMutateEngine<StructuralMapEngineBase, decltype(mutate)>>(mutate);
  EXPECT_EQ(KindOf(mutator->MutateExpected(root).error()), kThrown);

  // Where there is memory, the error tells the way to the value.
  Error error = StructuralMapExpected<kPre>(root, map).error();
  EXPECT_TRUE(VisitErrorContext::TryGetFromError(error).has_value());
}

TEST(OutOfMemory, OtherExceptionsKeepTheirKinds) {
  auto other = [](int64_t) -> Any { throw std::runtime_error("other"); };
  auto unknown = [](int64_t) -> Any { throw 1; };
  auto error = [](int64_t) -> Any { TVM_FFI_THROW(KeyError) << "k"; };
  const Any root = Nested();
  EXPECT_EQ(KindOf(StructuralMapExpected<kPre>(root, other).error()), "InternalError: other");
  EXPECT_EQ(KindOf(StructuralMapExpected<kPre>(root, unknown).error()),
            std::string("RuntimeError: ") + tether::kUnknownException);
  EXPECT_EQ(KindOf(StructuralMapExpected<kPre>(root, error).error()), "KeyError: k");
}

// A callback that asks for a part, and goes on when there was no memory for that.
TEST(OutOfMemory, ACallbackMayGoOn) {
  const Any inner = Array<Any>{7, 8};
  const Any root = Array<Any>{1, Array<Any>{2, inner}, 3};
  std::string failed;
  auto mutate = [&](int64_t i, StructuralMutatorObj* mutator) -> Any {
    if (i == 2) {
      FailingAllocator allocator(0);
      Mutated result = mutator->MutateExpected(inner);
      failed = KindOf(result.error());
    }
    return i + 10;
  };
  Any made = StructuralMutate(root, mutate);
  EXPECT_EQ(failed.substr(0, 11), "MemoryError");
  const Any expected = Array<Any>{11, Array<Any>{12, Array<Any>{17, 18}}, 13};
  EXPECT_TRUE(RecursiveEq(made, expected));
}

// Objects are refused after 0, 1, 2... of them: the result is right, or an error that says so.
void FailEveryObject(const std::function<Any()>& run) {
  const Any expected = run();
  int64_t count = 0;
  while (true) {
    Any made;
    std::string failure;
    bool has_failed;
    {
      FailingAllocator allocator(count);
      try {
        made = run();
      } catch (const Error& error) {
        failure = KindOf(error);
      } catch (const std::bad_alloc&) {  // of the caller itself
        failure = kThrown;
      }
      has_failed = allocator.has_failed();
    }
    if (failure.empty()) {
      EXPECT_TRUE(RecursiveEq(made, expected)) << count;
    } else {
      EXPECT_TRUE(has_failed) << failure;
      EXPECT_EQ(failure.substr(0, 11), "MemoryError") << count;
    }
    if (!has_failed) break;
    ASSERT_LT(++count, 10000);
  }
  EXPECT_TRUE(RecursiveEq(run(), expected));
}

TEST(OutOfMemory, NoObjectIsEssential) {
  const Any root = Nested();
  auto map = [](int64_t i) { return i + 1; };
  auto mutate = [](int64_t i, StructuralMutatorObj*) { return i + 1; };
  auto walk = [](int64_t) -> Expected<WalkResult> { return WalkResult::Advance(); };
  auto visit = [](int64_t, StructuralVisitorObj*) -> Visited {
    return Optional<VisitInterrupt>(std::nullopt);
  };
  FailEveryObject([&] { return StructuralMap<kPre>(root, map); });
  FailEveryObject([&] { return StructuralMap<kPost>(root, map); });
  FailEveryObject([&] { return StructuralMutate(root, mutate); });
  FailEveryObject([&] { return Any(StructuralWalk<kPost>(root, walk)); });
  FailEveryObject([&] { return Any(StructuralVisit(root, visit)); });
  auto mapper = make_object<StructuralMapEngine<StructuralMapEngineBase, kPre, decltype(map)>>(map);
  FailEveryObject([&] { return mapper->Mutate(root).as_or_throw<Any>(); });
}

TEST(OutOfMemory, ErrorsOfFunctionsThatDoNotThrow) {
  FailingAllocator allocator(0);
  const Error ready = tether::NewError("ValueError", "text");
  EXPECT_EQ(ready.kind() + ready.message(), "MemoryErrorout of memory");
  EXPECT_TRUE(tether::NewError("KeyError", "").same_as(ready));
  EXPECT_TRUE(EnvErrorAlreadySet().same_as(ready));
  Function text = Function::GetGlobalRequired("ffi.GetGlobalFuncMetadata");
  Expected<Array<int64_t>> mismatch = text.CallExpected<Array<int64_t>>("ffi.StructuralMap");
  ASSERT_TRUE(mismatch.is_err());
  EXPECT_TRUE(mismatch.error().same_as(ready));
}

// All threads share the error that is ready for when there is no memory. It learns nothing.
TEST(OutOfMemory, TheErrorThatIsReadyKeepsNoContext) {
  const ObjectRef node = Construct("testing.TestIntPair", 1, 2).cast<ObjectRef>();
  Error ready = [] {
    FailingAllocator allocator(0);
    return tether::NewError("ValueError", "text");
  }();
  details::UpdateVisitErrorContext(ready, node);
  EXPECT_FALSE(ready.extra_context().has_value());
  EXPECT_EQ(node.use_count(), 1);

  // Another stays as it is where there is no memory for its context.
  Error error("KeyError", "text", "");
  {
    FailingAllocator allocator(0);
    details::UpdateVisitErrorContext(error, node);
    EXPECT_FALSE(error.extra_context().has_value());
  }
  details::UpdateVisitErrorContext(error, node);
  EXPECT_TRUE(error.extra_context().has_value());
}

// A text that is made in the middle of a throw expression: a second exception there ends the
// process.
TEST(OutOfMemory, ValuesInMessagesOfErrors) {
  const Any root = Nested();
  std::ostringstream text;
  {
    FailingAllocator allocator(0);
    text << root;
  }
  EXPECT_EQ(text.str(), "<ffi.Array, no text: std::bad_alloc>");
}

// A tensor that cannot be imported still belongs to whoever offered it.
TEST(OutOfMemory, ReadOnlyTensorsThatAreRefused) {
  struct Managed {
    DLManagedTensorVersioned tensor{};
    int64_t extent = 2;
    int64_t stride = 1;
    int64_t data[2] = {1, 2};
    int deleted = 0;
  } managed;
  managed.tensor.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.tensor.manager_ctx = &managed;
  managed.tensor.deleter = [](DLManagedTensorVersioned* self) {
    ++static_cast<Managed*>(self->manager_ctx)->deleted;
  };
  managed.tensor.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  managed.tensor.dl_tensor = {managed.data,    {kDLCPU, 0},     1, {kDLInt, 64, 1},
                              &managed.extent, &managed.stride, 0};
  TVMFFIObjectHandle out = nullptr;
  for (int64_t count = 0; count < 2; ++count) {
    FailingAllocator allocator(count);
    EXPECT_NE(TVMFFITensorFromDLPackVersioned(&managed.tensor, 0, 0, &out), 0);
    EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "MemoryError");
    EXPECT_EQ(managed.deleted, 0);
  }
  ASSERT_EQ(TVMFFITensorFromDLPackVersioned(&managed.tensor, 0, 0, &out), 0);
  EXPECT_EQ(managed.deleted, 0);
  TVMFFIObjectDecRef(out);
  EXPECT_EQ(managed.deleted, 1);
}

}  // namespace
