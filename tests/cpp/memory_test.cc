// SPDX-License-Identifier: Apache-2.0
//
// memory.h and the allocator registry: where the storage of objects comes from and goes back to.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/string.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using namespace core_test;
using details::ObjectUnsafe;
using tether_test::ErrorText;

uint32_t PaddingOf(const Object* object) { return HeaderOf(object)->__padding; }

// An allocator with a 32-byte prefix that remembers every request and every release. Current from
// construction to destruction; its blocks may be released later.
class RecordingAllocator {
 public:
  struct Request {
    size_t size;
    size_t alignment;
    int32_t type_index;
    void* context;
  };

  RecordingAllocator() {
    struct_ = new TVMFFICustomAllocator{Allocate, this};  // must outlive the process
    Kept().push_back(struct_);
    EXPECT_EQ(TVMFFISetCustomAllocator(struct_), 0);
  }
  ~RecordingAllocator() { Uninstall(); }
  void Uninstall() { EXPECT_EQ(TVMFFISetCustomAllocator(nullptr), 0); }

  TVMFFICustomAllocator* get() const { return struct_; }
  std::vector<Request> requests;
  bool fail = false;

  static inline std::map<void*, int> live;  // bodies handed out and not yet released
  static inline std::vector<void*> released;

 private:
  static constexpr size_t kPrefix = 32;

  static std::vector<TVMFFICustomAllocator*>& Kept() {
    static auto* kept = new std::vector<TVMFFICustomAllocator*>();
    return *kept;
  }
  static void* Allocate(size_t size, size_t alignment, int32_t type_index, void* context) {
    auto* self = static_cast<RecordingAllocator*>(context);
    self->requests.push_back({size, alignment, type_index, context});
    if (self->fail) return nullptr;
    char* block = static_cast<char*>(std::malloc(kPrefix + size));
    std::memset(block, 0xAB, kPrefix + size);  // contents are uninitialised
    void* body = block + kPrefix;
    ObjectUnsafe::GetObjectAllocHeaderFromPtr(body)->delete_space = DeleteSpace;
    live[body] = 1;
    return body;
  }
  static void DeleteSpace(void* body) {
    EXPECT_EQ(live.erase(body), 1u) << "released something that is not a live body";
    released.push_back(body);
    std::free(static_cast<char*>(body) - kPrefix);
  }

  TVMFFICustomAllocator* struct_;
};

// ---- the registry

TEST(AllocatorRegistry, IsNeverNull) {
  TVMFFICustomAllocator* builtin = TVMFFIGetCustomAllocator();
  ASSERT_NE(builtin, nullptr);
  ASSERT_NE(builtin->allocate, nullptr);
  {
    RecordingAllocator recording;
    EXPECT_EQ(TVMFFIGetCustomAllocator(), recording.get());
  }
  EXPECT_EQ(TVMFFIGetCustomAllocator(), builtin) << "NULL restores the built-in allocator";
}

TVMFFICustomAllocator* allocator_in_static_init = nullptr;
TVM_FFI_STATIC_INIT_BLOCK() { allocator_in_static_init = TVMFFIGetCustomAllocator(); }

TEST(AllocatorRegistry, WorksDuringStaticInitialisation) {
  EXPECT_EQ(allocator_in_static_init, TVMFFIGetCustomAllocator());
}

TEST(AllocatorRegistry, RefusesAnAllocatorThatCannotAllocate) {
  TVMFFICustomAllocator* before = TVMFFIGetCustomAllocator();
  static TVMFFICustomAllocator hollow{nullptr, nullptr};
  EXPECT_EQ(TVMFFISetCustomAllocator(&hollow), -1);
  EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "ValueError");
  EXPECT_EQ(TVMFFIGetCustomAllocator(), before);
}

TEST(AllocatorRegistry, MakeObjectAsksForExactlyTheBody) {
  RecordingAllocator recording;
  ObjectPtr<BoxObj> box = make_object<BoxObj>(1);
  ASSERT_EQ(recording.requests.size(), 1u);
  EXPECT_EQ(recording.requests[0].size, sizeof(BoxObj));
  EXPECT_EQ(recording.requests[0].alignment, alignof(BoxObj));
  EXPECT_EQ(recording.requests[0].type_index, BoxObj::RuntimeTypeIndex());
  EXPECT_EQ(recording.requests[0].context, &recording);
  EXPECT_EQ(RecordingAllocator::live.count(box.get()), 1u);
  BoxObj* body = box.get();
  box.reset();
  EXPECT_EQ(RecordingAllocator::released.back(), body);
  EXPECT_TRUE(RecordingAllocator::live.empty());
}

TEST(AllocatorRegistry, BodyIsTheCompleteObjectNotTheHeader) {
  RecordingAllocator recording;
  ObjectPtr<IntObj> front = make_object<IntObj>(1);
  ObjectPtr<DogObj> polymorphic = make_object<DogObj>("Rex");
  EXPECT_EQ(RecordingAllocator::live.count(front.get()), 1u);
  EXPECT_EQ(RecordingAllocator::live.count(polymorphic.get()), 1u);
  EXPECT_EQ(RecordingAllocator::live.count(HeaderOf(front.get())), 0u);
  front.reset();
  polymorphic.reset();
  EXPECT_TRUE(RecordingAllocator::live.empty()) << "delete_space is given the body";
}

TEST(AllocatorRegistry, EveryKindOfObjectGoesThroughIt) {
  RecordingAllocator recording;
  auto made = [&](auto make) {
    size_t before = recording.requests.size();
    auto value = make();
    EXPECT_GT(recording.requests.size(), before);
    return recording.requests.size() - before;
  };
  EXPECT_EQ(made([] { return String("longer than seven"); }), 1u);
  EXPECT_EQ(made([] { return String(std::string("moved")); }), 1u);
  EXPECT_EQ(made([] { return Bytes("longer than seven", 17); }), 1u);
  EXPECT_EQ(made([] { return make_arc<BoxObj>(1); }), 1u);
  EXPECT_EQ(made([] { return Function::FromTyped([](int x) { return x; }); }), 1u);
  EXPECT_EQ(made([] { return Error("ValueError", "message", ""); }), 1u);
  EXPECT_GE(made([] { return Array<int>{1, 2, 3}; }), 1u);
  EXPECT_GE(made([] { return Map<String, int>{{"a", 1}}; }), 1u);
  EXPECT_EQ(made([] { return Shape({1, 2, 3}); }), 1u);
  EXPECT_TRUE(RecordingAllocator::live.empty());
}

TEST(AllocatorRegistry, CApiObjectsGoThroughIt) {
  RecordingAllocator recording;
  TVMFFIObjectHandle opaque = nullptr;
  ASSERT_EQ(TVMFFIObjectCreateOpaque(nullptr, kTVMFFIOpaquePyObject, nullptr, &opaque), 0);
  ASSERT_EQ(recording.requests.size(), 1u);
  EXPECT_EQ(recording.requests[0].type_index, kTVMFFIObject) << "only a hint";
  EXPECT_EQ(TVMFFIObjectGetTypeIndex(opaque), kTVMFFIOpaquePyObject);
  TVMFFIObjectDecRef(opaque);
  TVMFFIByteArray text{"a text of some length", 21};
  TVMFFIAny any;
  ASSERT_EQ(TVMFFIStringFromByteArray(&text, &any), 0);
  EXPECT_EQ(recording.requests.size(), 2u);
  TVMFFIObjectDecRef(any.v_obj);
  EXPECT_TRUE(RecordingAllocator::live.empty());
}

TEST(AllocatorRegistry, BlocksReturnToTheAllocatorTheyCameFrom) {
  ObjectPtr<BoxObj> builtin_box = make_object<BoxObj>(1);
  ObjectPtr<BoxObj> recorded_box;
  {
    RecordingAllocator recording;
    recorded_box = make_object<BoxObj>(2);
    size_t released = RecordingAllocator::released.size();
    builtin_box.reset();
    EXPECT_EQ(RecordingAllocator::released.size(), released);
  }
  BoxObj* body = recorded_box.get();
  recorded_box.reset();
  EXPECT_EQ(RecordingAllocator::released.back(), body);
}

TEST(AllocatorRegistry, WeakReferenceDelaysTheRelease) {
  RecordingAllocator recording;
  ObjectPtr<BoxObj> box = make_object<BoxObj>(1);
  WeakObjectPtr<BoxObj> weak = box;
  int alive = BoxObj::alive;
  box.reset();
  EXPECT_EQ(BoxObj::alive, alive - 1);
  EXPECT_EQ(RecordingAllocator::live.size(), 1u);
  weak.reset();
  EXPECT_TRUE(RecordingAllocator::live.empty());
}

TEST(AllocatorRegistry, AllocatorThatReturnsNullMeansBadAlloc) {
  RecordingAllocator recording;
  recording.fail = true;
  EXPECT_THROW(make_object<BoxObj>(1), std::bad_alloc);
  EXPECT_THROW(String("longer than seven"), std::bad_alloc);
  recording.fail = false;
  EXPECT_EQ(make_object<BoxObj>(1)->value, 1);
}

// ---- constructors that throw

struct Unusual {};

class FragileObj : public Object {
 public:
  explicit FragileObj(int what) {
    if (what == 1) throw std::runtime_error("runtime");
    if (what == 2) throw Unusual{};
    if (what == 3) TVM_FFI_THROW(ValueError) << "ffi";
  }
  std::string content = "content that needs to be destroyed";
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("core_test.Fragile", FragileObj, Object);
};

class FragileFrontObj : public Front, public Object {
 public:
  FragileFrontObj() { throw Unusual{}; }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("core_test.FragileFront", FragileFrontObj, Object);
};

TEST(ThrowingConstructor, PassesTheExceptionOnUnchanged) {
  EXPECT_THROW(make_object<FragileObj>(1), std::runtime_error);
  EXPECT_THROW(make_object<FragileObj>(2), Unusual);
  EXPECT_EQ(ErrorText([] { make_object<FragileObj>(3); }), "ValueError: ffi");
  EXPECT_EQ(make_object<FragileObj>(0)->content.size(), 34u);
}

TEST(ThrowingConstructor, ReturnsTheBlock) {
  RecordingAllocator recording;
  EXPECT_THROW(make_object<FragileObj>(1), std::runtime_error);
  EXPECT_THROW(make_object<FragileObj>(2), Unusual);
  EXPECT_THROW(make_object<FragileFrontObj>(), Unusual);
  EXPECT_THROW((make_inplace_array_object<FragileObj, int64_t>(10, 2)), Unusual);
  EXPECT_EQ(recording.requests.size(), 4u);
  EXPECT_TRUE(RecordingAllocator::live.empty());
}

// ---- the mark

TEST(AllocHeaderMark, HasTheAgreedValue) {
  EXPECT_EQ(static_cast<uint32_t>(kTVMFFIObjectAllocHeaderMark), 0x54494544u);
}

TEST(AllocHeaderMark, IsSetWhereTheHeaderStartsTheBlock) {
  EXPECT_EQ(PaddingOf(make_object<BoxObj>().get()), 0x54494544u);
  EXPECT_EQ(PaddingOf(make_arc<CounterObj>().get()), 0x54494544u);
  EXPECT_EQ(PaddingOf(Function::FromTyped([] {}).get()), 0x54494544u);
  EXPECT_EQ(PaddingOf(Error("ValueError", "m", "").get()), 0x54494544u);
  EXPECT_EQ(PaddingOf(Array<int>{1}.get()), 0x54494544u);
  Any text = String("longer than seven");
  EXPECT_EQ(PaddingOf(text.as<Object>()), 0x54494544u);
  Any moved = String(std::string("short"));
  EXPECT_EQ(PaddingOf(moved.as<Object>()), 0x54494544u);
}

TEST(AllocHeaderMark, IsNotSetWhereSomethingElseIsInFront) {
  EXPECT_EQ(PaddingOf(make_object<NumberObj>().get()), 0u);
  EXPECT_EQ(PaddingOf(make_object<IntObj>(1).get()), 0u);
  EXPECT_EQ(PaddingOf(make_object<AnimalObj>().get()), 0u);
  EXPECT_EQ(PaddingOf(make_object<DogObj>("Rex").get()), 0u);
}

TEST(AllocHeaderMark, IsNotSetOutsideTheRegistry) {
  BoxObj on_the_stack(1);
  EXPECT_EQ(PaddingOf(&on_the_stack), 0u);
  ObjectPtr<BoxObj> box = make_object<BoxObj>(1);
  BoxObj copy_on_the_stack(*box);
  EXPECT_EQ(PaddingOf(&copy_on_the_stack), 0u) << "a copy is another block";
  CounterObj assigned;
  assigned = *make_object<CounterObj>();
  EXPECT_EQ(PaddingOf(&assigned), 0u);
}

TEST(AllocHeaderMark, CopyOfAnyObjectIsMarkedByItsOwnBlock) {
  ObjectPtr<BoxObj> box = make_object<BoxObj>(1);
  EXPECT_EQ(PaddingOf(make_object<BoxObj>(*box).get()), 0x54494544u);
  HeaderOf(box.get())->__padding = 0x80000007;  // as if adopted
  EXPECT_EQ(PaddingOf(make_object<BoxObj>(*box).get()), 0x54494544u);
  ObjectPtr<IntObj> front = make_object<IntObj>(1);
  HeaderOf(front.get())->__padding = 0x80000007;
  EXPECT_EQ(PaddingOf(make_object<IntObj>(*front).get()), 0u);
  BoxObj on_the_stack(3);
  EXPECT_EQ(PaddingOf(make_object<BoxObj>(on_the_stack).get()), 0x54494544u);
  HeaderOf(box.get())->__padding = 0;
}

TEST(AllocHeaderMark, MarkedObjectsHaveAHeaderThatReleasesThem) {
  ObjectPtr<BoxObj> box = make_object<BoxObj>(1);
  ASSERT_EQ(PaddingOf(box.get()), 0x54494544u);
  TVMFFIObjectAllocHeader* header = ObjectUnsafe::GetObjectAllocHeaderFromPtr(box.get());
  EXPECT_EQ(reinterpret_cast<char*>(box.get()) - reinterpret_cast<char*>(header), 8);
  EXPECT_NE(header->delete_space, nullptr);
  void* direct = TVMFFIGetCustomAllocator()->allocate(8, 8, 64, nullptr);
  EXPECT_EQ(header->delete_space, ObjectUnsafe::GetObjectAllocHeaderFromPtr(direct)->delete_space);
  ObjectUnsafe::GetObjectAllocHeaderFromPtr(direct)->delete_space(direct);
}

// ---- the built-in allocator

TEST(BuiltinAllocator, KeepsOneBodyOffsetForEveryAlignment) {
  TVMFFICustomAllocator* builtin = TVMFFIGetCustomAllocator();
  for (size_t alignment : {1, 2, 4, 8, 16}) {
    for (size_t size : {1, 24, 40, 1000}) {
      auto* body = static_cast<char*>(builtin->allocate(size, alignment, 64, builtin->context));
      ASSERT_NE(body, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(body) % alignof(std::max_align_t), 0u);
#if defined(__GLIBC__)
      char* block = body - alignof(std::max_align_t);
      EXPECT_GE(malloc_usable_size(block), alignof(std::max_align_t) + size);
#endif
      std::memset(body, 0xCD, size);
      ObjectUnsafe::GetObjectAllocHeaderFromPtr(body)->delete_space(body);
    }
  }
}

TEST(BuiltinAllocator, ReleasedBlocksServeOnlyWhatFits) {
  TVMFFICustomAllocator* builtin = TVMFFIGetCustomAllocator();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::pair<char*, size_t>> bodies;
    for (size_t size = 1; size < 700; ++size) {
      const size_t asked = round % 2 == 0 ? size : 700 - size;
      auto* body = static_cast<char*>(builtin->allocate(asked, 16, 64, builtin->context));
      ASSERT_NE(body, nullptr);
      std::memset(body, static_cast<int>(asked % 251), asked);
      bodies.emplace_back(body, asked);
    }
    for (auto [body, size] : bodies) {
      const auto wrong = [size = size](char c) {
        return static_cast<unsigned char>(c) != size % 251;
      };
      ASSERT_TRUE(std::none_of(body, body + size, wrong)) << "two blocks overlap";
      ObjectUnsafe::GetObjectAllocHeaderFromPtr(body)->delete_space(body);
    }
  }
}

TEST(BuiltinAllocator, ManyReleasedBlocksAreUsedAgain) {
  // More than a thread keeps, so that most go back to malloc.
  for (int round = 0; round < 3; ++round) {
    std::vector<Array<Any>> arrays;
    for (int64_t i = 0; i < 20000; ++i) arrays.push_back(Array<Any>{i, Array<Any>{i}});
    for (int64_t i = 0; i < 20000; ++i) {
      ASSERT_EQ(arrays[i][0].cast<int64_t>(), i);
      ASSERT_EQ(arrays[i][1].cast<Array<int64_t>>()[0], i);
    }
  }
}

TEST(BuiltinAllocator, ReportsAnAlignmentItCannotServe) {
  TVMFFICustomAllocator* builtin = TVMFFIGetCustomAllocator();
  EXPECT_EQ(builtin->allocate(64, 32, 64, builtin->context), nullptr);
  Error error = details::MoveFromSafeCallRaised();
  EXPECT_EQ(error.kind(), "ValueError");
  EXPECT_EQ(error.message(), "objects cannot be aligned more strictly than max_align_t");
}

TEST(BuiltinAllocator, ThrowsForSizesThatCannotExist) {
  TVMFFICustomAllocator* builtin = TVMFFIGetCustomAllocator();
  EXPECT_THROW(builtin->allocate(SIZE_MAX - 4, 8, 64, builtin->context), std::bad_alloc);
}

// ---- objects with elements behind them

class RowObj : public Object {
 public:
  int64_t size;
  explicit RowObj(int64_t size) : size(size) {}
  int32_t* begin() {
    return reinterpret_cast<int32_t*>(reinterpret_cast<char*>(this) + sizeof(RowObj));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("core_test.Row", RowObj, Object);
};

TEST(InplaceArray, ElementsFollowTheObject) {
  RecordingAllocator recording;
  ObjectPtr<RowObj> row = make_inplace_array_object<RowObj, int32_t>(5, 5);
  EXPECT_EQ(row->size, 5);
  EXPECT_EQ(row->type_index(), RowObj::RuntimeTypeIndex());
  for (int i = 0; i < 5; ++i) row->begin()[i] = i * i;
  EXPECT_EQ(row->begin()[4], 16);
  ASSERT_EQ(recording.requests.size(), 1u);
  EXPECT_EQ(recording.requests[0].size, sizeof(RowObj) + 24)
      << "rounded up to the object's alignment";
  EXPECT_EQ(PaddingOf(row.get()), 0x54494544u);
  row.reset();
  EXPECT_TRUE(RecordingAllocator::live.empty());
}

TEST(InplaceArray, MayBeEmpty) {
  ObjectPtr<RowObj> row = make_inplace_array_object<RowObj, int32_t>(0, 0);
  EXPECT_EQ(row->size, 0);
}

TEST(InplaceArray, RefusesASizeThatOverflows) {
  EXPECT_THROW((make_inplace_array_object<RowObj, int32_t>(SIZE_MAX / 2, 0)), std::bad_alloc);
  EXPECT_THROW((make_inplace_array_object<RowObj, int32_t>(SIZE_MAX, 0)), std::bad_alloc);
}

TEST(AlignedAlloc, PairsWithAlignedFree) {
  for (size_t align : {size_t{8}, size_t{16}, size_t{64}, size_t{4096}}) {
    void* p = details::AlignedAlloc(100, align);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % align, 0u);
    std::memset(p, 0, 100);
    details::AlignedFree(p);
  }
}

}  // namespace
