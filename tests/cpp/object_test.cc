// SPDX-License-Identifier: Apache-2.0
//
// object.h and cast.h: counts, owning and weak pointers, references, declared types, instance
// checks.
#include <gtest/gtest.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/cast.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>

#include <set>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using namespace core_test;
using details::ObjectUnsafe;
using tether_test::Contains;
using tether_test::ErrorText;

// ---- layout

static_assert(sizeof(Object) == 24 && alignof(Object) == 8);
static_assert(sizeof(ObjectPtr<BoxObj>) == 8 && sizeof(Arc<BoxObj>) == 8);
static_assert(sizeof(WeakObjectPtr<BoxObj>) == 8 && sizeof(ObjectRef) == 8 && sizeof(Box) == 8);
static_assert(alignof(Arc<BoxObj>) == alignof(ObjectPtr<BoxObj>));
static_assert(std::is_standard_layout_v<Arc<BoxObj>>);
static_assert(std::is_nothrow_move_constructible_v<ObjectRef>);
static_assert(std::is_nothrow_move_constructible_v<Box>);
static_assert(!std::is_polymorphic_v<Object>);
static_assert(details::kCombinedRefCountBothOne == 0x100000001ULL);
static_assert(details::kCombinedRefCountMaskUInt32 == 0xFFFFFFFFULL);

// ---- the count protocol, on a header made by hand

struct HandMade {
  TVMFFIObject header{};
  std::vector<int> flags;  // of each deleter call

  HandMade() {
    header.combined_ref_count = details::kCombinedRefCountBothOne;
    header.type_index = TypeIndex::kTVMFFIObject;
    header.deleter = [](void* self, int flags) {
      reinterpret_cast<HandMade*>(self)->flags.push_back(flags);
    };
  }
  ObjectPtr<Object> Take() { return ObjectUnsafe::ObjectPtrFromOwned<Object>(&header); }
};

TEST(RefCount, LastStrongWithoutWeakDestroysAndFreesInOneCall) {
  HandMade object;
  object.Take().reset();
  EXPECT_EQ(object.flags, std::vector<int>{3});
}

TEST(RefCount, SharedStrongReferencesDoNotCallTheDeleter) {
  HandMade object;
  ObjectPtr<Object> a = object.Take();
  ObjectPtr<Object> b = a;
  EXPECT_EQ(object.header.combined_ref_count, 0x100000002ULL);
  a.reset();
  EXPECT_TRUE(object.flags.empty());
  b.reset();
  EXPECT_EQ(object.flags, std::vector<int>{3});
}

TEST(RefCount, WeakReferenceSplitsDestructionFromRelease) {
  HandMade object;
  ObjectPtr<Object> strong = object.Take();
  WeakObjectPtr<Object> weak = strong;
  EXPECT_EQ(object.header.combined_ref_count, 0x200000001ULL);
  strong.reset();
  EXPECT_EQ(object.flags, std::vector<int>{1});
  EXPECT_EQ(object.header.combined_ref_count, 0x100000000ULL);
  weak.reset();
  EXPECT_EQ(object.flags, (std::vector<int>{1, 2}));
}

TEST(RefCount, WeakReferenceDroppedFirstLeavesOneCall) {
  HandMade object;
  ObjectPtr<Object> strong = object.Take();
  WeakObjectPtr<Object>(strong).reset();
  EXPECT_TRUE(object.flags.empty());
  strong.reset();
  EXPECT_EQ(object.flags, std::vector<int>{3});
}

TEST(RefCount, NullDeleterIsNeverCalled) {
  HandMade object;
  object.header.deleter = nullptr;
  ObjectPtr<Object> strong = object.Take();
  WeakObjectPtr<Object> weak = strong;
  strong.reset();
  EXPECT_TRUE(weak.expired());
  weak.reset();
  EXPECT_TRUE(object.flags.empty());
}

// ---- ObjectPtr

TEST(ObjectPtr, CopyAddsAReferenceAndMoveDoesNot) {
  ObjectPtr<BoxObj> a = make_object<BoxObj>(7);
  EXPECT_EQ(a.use_count(), 1);
  EXPECT_TRUE(a.unique());
  ObjectPtr<BoxObj> b = a;
  EXPECT_EQ(a.use_count(), 2);
  EXPECT_FALSE(a.unique());
  ObjectPtr<BoxObj> c = std::move(b);
  EXPECT_EQ(c.use_count(), 2);
  EXPECT_TRUE(b == nullptr);
  EXPECT_EQ(b.use_count(), 0);
  EXPECT_FALSE(b.unique());
  a.reset();
  EXPECT_TRUE(c.unique());
  EXPECT_EQ(c->value, 7);
  EXPECT_EQ((*c).value, 7);
}

TEST(ObjectPtr, NullIsFalseAndEqualToNullptr) {
  ObjectPtr<BoxObj> empty;
  ObjectPtr<BoxObj> null = nullptr;
  EXPECT_FALSE(static_cast<bool>(empty));
  EXPECT_TRUE(empty == nullptr);
  EXPECT_EQ(empty, null);
  EXPECT_EQ(empty.get(), nullptr);
  ObjectPtr<BoxObj> full = make_object<BoxObj>();
  EXPECT_TRUE(static_cast<bool>(full));
  EXPECT_TRUE(full != nullptr);
  EXPECT_NE(full, empty);
}

TEST(ObjectPtr, AssignmentReleasesTheOldObject) {
  int before = BoxObj::alive;
  {
    ObjectPtr<BoxObj> a = make_object<BoxObj>(1);
    ObjectPtr<BoxObj> b = make_object<BoxObj>(2);
    a = b;
    EXPECT_EQ(BoxObj::alive, before + 1);
    EXPECT_EQ(a.use_count(), 2);
    a = std::move(b);
    EXPECT_EQ(a.use_count(), 1);
    ObjectPtr<BoxObj>& self = a;
    a = self;
    EXPECT_EQ(a.use_count(), 1);
    a = std::move(self);
    EXPECT_EQ(a->value, 2);
    a = nullptr;
    EXPECT_EQ(BoxObj::alive, before);
  }
  EXPECT_EQ(BoxObj::alive, before);
}

TEST(ObjectPtr, UpcastsByConstructionAndAssignment) {
  ObjectPtr<IntObj> derived = make_object<IntObj>(3);
  ObjectPtr<NumberObj> base = derived;
  EXPECT_EQ(derived.use_count(), 2);
  ObjectPtr<Object> root;
  root = base;
  EXPECT_EQ(derived.use_count(), 3);
  root = std::move(base);
  EXPECT_TRUE(base == nullptr);
  EXPECT_EQ(derived.use_count(), 2);
  EXPECT_EQ(static_cast<IntObj*>(root.get())->value, 3);
  static_assert(std::is_constructible_v<ObjectPtr<NumberObj>, ObjectPtr<IntObj>>);
  static_assert(std::is_assignable_v<ObjectPtr<NumberObj>&, ObjectPtr<IntObj>>);
}

TEST(ObjectPtr, SwapExchangesWithoutCounting) {
  ObjectPtr<BoxObj> a = make_object<BoxObj>(1);
  ObjectPtr<BoxObj> b = make_object<BoxObj>(2);
  a.swap(b);
  EXPECT_EQ(a->value, 2);
  EXPECT_EQ(b->value, 1);
  EXPECT_TRUE(a.unique() && b.unique());
}

// ---- Arc

static_assert(!std::is_default_constructible_v<Arc<BoxObj>>);
static_assert(!std::is_constructible_v<Arc<BoxObj>, std::nullptr_t>);
static_assert(!std::is_constructible_v<Arc<BoxObj>, ObjectPtr<BoxObj>>);
static_assert(!std::is_constructible_v<Arc<BoxObj>, const ObjectPtr<BoxObj>&>);
static_assert(!std::is_assignable_v<Arc<BoxObj>&, ObjectPtr<BoxObj>>);
static_assert(!std::is_assignable_v<Arc<BoxObj>&, std::nullptr_t>);
static_assert(std::is_constructible_v<Arc<NumberObj>, Arc<IntObj>>);
static_assert(std::is_assignable_v<Arc<NumberObj>&, Arc<IntObj>>);
static_assert(!std::is_constructible_v<Arc<IntObj>, Arc<NumberObj>>);
static_assert(std::is_constructible_v<ObjectPtr<NumberObj>, Arc<IntObj>>);
static_assert(std::is_assignable_v<ObjectPtr<NumberObj>&, Arc<IntObj>>);

TEST(Arc, MakeArcOwnsOneReference) {
  Arc<BoxObj> arc = make_arc<BoxObj>(5);
  EXPECT_EQ(arc.use_count(), 1);
  EXPECT_EQ(arc->value, 5);
  ObjectPtr<BoxObj> ptr = arc;
  EXPECT_EQ(arc.use_count(), 2);
  EXPECT_EQ(ptr, static_cast<const ObjectPtr<BoxObj>&>(arc));
}

TEST(Arc, MovedFromIsNull) {
  Arc<BoxObj> a = make_arc<BoxObj>(5);
  Arc<BoxObj> b = std::move(a);
  EXPECT_TRUE(a == nullptr);
  EXPECT_TRUE(b != nullptr);
  EXPECT_EQ(b.use_count(), 1);
}

TEST(Arc, UpcastShares) {
  Arc<IntObj> derived = make_arc<IntObj>(1);
  Arc<NumberObj> base = derived;
  EXPECT_EQ(derived.use_count(), 2);
  base = std::move(derived);
  EXPECT_TRUE(derived == nullptr);
  EXPECT_EQ(base.use_count(), 1);
  ObjectPtr<Object> root = std::move(base);
  EXPECT_TRUE(base == nullptr);
  EXPECT_EQ(root.use_count(), 1);
}

TEST(Arc, UnsafeInitIsNull) { EXPECT_TRUE(Arc<BoxObj>(UnsafeInit{}) == nullptr); }

// ---- WeakObjectPtr

TEST(WeakObjectPtr, LocksWhileTheObjectLives) {
  ObjectPtr<BoxObj> strong = make_object<BoxObj>(9);
  WeakObjectPtr<BoxObj> weak = strong;
  EXPECT_EQ(weak.use_count(), 1);
  EXPECT_FALSE(weak.expired());
  {
    ObjectPtr<BoxObj> locked = weak.lock();
    EXPECT_EQ(locked, strong);
    EXPECT_EQ(weak.use_count(), 2);
  }
  EXPECT_EQ(strong.use_count(), 1);
}

TEST(WeakObjectPtr, DoesNotKeepTheObject) {
  int before = BoxObj::alive;
  WeakObjectPtr<BoxObj> weak;
  EXPECT_TRUE(weak.expired());
  {
    ObjectPtr<BoxObj> strong = make_object<BoxObj>(9);
    weak = strong;
    EXPECT_EQ(BoxObj::alive, before + 1);
  }
  EXPECT_EQ(BoxObj::alive, before) << "the destructor runs with the last strong reference";
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(weak.use_count(), 0);
  EXPECT_TRUE(weak.lock() == nullptr);
}

TEST(WeakObjectPtr, CopiesMovesAndUpcasts) {
  ObjectPtr<IntObj> strong = make_object<IntObj>(1);
  WeakObjectPtr<IntObj> a = strong;
  WeakObjectPtr<IntObj> b = a;
  WeakObjectPtr<IntObj> c = std::move(a);
  EXPECT_TRUE(a.expired());
  EXPECT_EQ(c.lock(), strong);
  WeakObjectPtr<NumberObj> base = b;
  WeakObjectPtr<Object> root = strong;
  EXPECT_EQ(base.lock().get(), strong.get());
  EXPECT_EQ(root.lock().get(), static_cast<Object*>(strong.get()));
  root = std::move(base);
  c.swap(b);
  c.reset();
  EXPECT_TRUE(c.expired());
  WeakObjectPtr<IntObj> null = nullptr;
  EXPECT_TRUE(null.expired());
  EXPECT_EQ(strong.use_count(), 1);
}

// ---- copying objects

TEST(Object, CopyConstructedObjectStartsItsOwnCount) {
  ObjectPtr<BoxObj> a = make_object<BoxObj>(4);
  ObjectPtr<BoxObj> extra = a;
  WeakObjectPtr<BoxObj> weak = a;
  ObjectPtr<BoxObj> copy = make_object<BoxObj>(*a);
  EXPECT_EQ(copy.use_count(), 1);
  EXPECT_EQ(HeaderOf(copy.get())->combined_ref_count, details::kCombinedRefCountBothOne);
  EXPECT_EQ(copy->value, 4);
  EXPECT_EQ(a.use_count(), 2);
}

TEST(Object, AssignmentOfContentsLeavesTheHeaderAlone) {
  ObjectPtr<CounterObj> a = make_object<CounterObj>();
  ObjectPtr<CounterObj> b = make_object<CounterObj>();
  ObjectPtr<CounterObj> extra = b;
  b->count = 3;
  *a = *b;
  EXPECT_EQ(a->count, 3);
  EXPECT_EQ(a.use_count(), 1);
  EXPECT_EQ(b.use_count(), 2);
}

TEST(Object, DescribesItsType) {
  ObjectPtr<BoxObj> box = make_object<BoxObj>();
  EXPECT_EQ(box->type_index(), BoxObj::RuntimeTypeIndex());
  EXPECT_EQ(box->GetTypeKey(), "core_test.Box");
  EXPECT_EQ(box->GetTypeKeyHash(), TVMFFIGetTypeInfo(box->type_index())->type_key_hash);
  EXPECT_EQ(Object::TypeIndex2Key(TypeIndex::kTVMFFIArray), "ffi.Array");
  EXPECT_EQ(box->use_count(), 1u);
  EXPECT_TRUE(box->unique());
}

// ---- ObjectRef

TEST(ObjectRef, NullReferenceAnswersEverything) {
  ObjectRef null;
  EXPECT_FALSE(null.defined());
  EXPECT_EQ(null.get(), nullptr);
  EXPECT_EQ(null.use_count(), 0);
  EXPECT_FALSE(null.unique());
  EXPECT_EQ(null.type_index(), 0);
  EXPECT_EQ(null.GetTypeKey(), "None");
  EXPECT_EQ(null.as<BoxObj>(), nullptr);
  EXPECT_FALSE(ObjectRef(nullptr).defined());
  EXPECT_FALSE(ObjectRef(UnsafeInit{}).defined());
  EXPECT_FALSE(SolidBox(UnsafeInit{}).defined());
  static_assert(!std::is_convertible_v<std::nullptr_t, ObjectRef>);
  static_assert(!std::is_default_constructible_v<SolidBox>);
  static_assert(!std::is_constructible_v<SolidBox, ObjectPtr<BoxObj>>);
  static_assert(std::is_constructible_v<Box, ObjectPtr<BoxObj>>);
  static_assert(!std::is_convertible_v<ObjectPtr<BoxObj>, Box>);
  static_assert(Box::_type_is_nullable && !SolidBox::_type_is_nullable);
}

TEST(ObjectRef, ComparesByIdentity) {
  Box a(1), b(1);
  Box c = a;
  EXPECT_TRUE(a.same_as(c));
  EXPECT_TRUE(a == c);
  EXPECT_TRUE(a != b);
  EXPECT_NE(a < b, b < a);
  EXPECT_FALSE(a < c);
}

TEST(ObjectRef, MoveLeavesNull) {
  Box a(1);
  Box b = std::move(a);
  EXPECT_FALSE(a.defined());
  EXPECT_TRUE(b.unique());
  EXPECT_EQ(b->value, 1);
}

TEST(ObjectRef, AsObjectGivesAPointerOrNull) {
  ObjectRef ref = Int(3);
  ASSERT_NE(ref.as<IntObj>(), nullptr);
  EXPECT_EQ(ref.as<IntObj>()->value, 3);
  EXPECT_NE(ref.as<NumberObj>(), nullptr);
  EXPECT_EQ(ref.as<FloatObj>(), nullptr);
  EXPECT_EQ(ref.as<BoxObj>(), nullptr);
  EXPECT_EQ(ref.as<Object>(), ref.get());
}

TEST(ObjectRef, AsReferenceSharesTheObject) {
  ObjectRef ref = Int(3);
  std::optional<Int> as_int = ref.as<Int>();
  ASSERT_TRUE(as_int.has_value());
  EXPECT_EQ((*as_int)->value, 3);
  EXPECT_EQ(ref.use_count(), 2);
  EXPECT_FALSE(ref.as<Float>().has_value());
}

TEST(ObjectRef, AsOnAnRvalueMovesOnSuccessOnly) {
  ObjectRef ref = Int(3);
  EXPECT_FALSE(std::move(ref).as<Float>().has_value());
  EXPECT_TRUE(ref.defined()) << "a failed as() leaves the source";
  std::optional<Int> taken = std::move(ref).as<Int>();
  ASSERT_TRUE(taken.has_value());
  EXPECT_FALSE(ref.defined());
  EXPECT_TRUE(taken->unique());
}

TEST(ObjectRef, NullIsANullableReferenceOfAnyType) {
  ObjectRef null;
  std::optional<Box> box = null.as<Box>();
  ASSERT_TRUE(box.has_value());
  EXPECT_FALSE(box->defined());
  EXPECT_FALSE(null.as<SolidBox>().has_value());
}

TEST(ObjectRef, AsOrThrowNamesBothTypes) {
  ObjectRef ref = Int(3);
  EXPECT_EQ(ref.as_or_throw<Int>()->value, 3);
  EXPECT_EQ(ErrorText([&] { ref.as_or_throw<Float>(); }),
            "TypeError: Cannot treat type `core_test.Int` as type `core_test.Float`");
  EXPECT_EQ(ErrorText([&] { std::move(ref).as_or_throw<Float>(); }),
            "TypeError: Cannot treat type `core_test.Int` as type `core_test.Float`");
  EXPECT_TRUE(ref.defined());
  EXPECT_TRUE(std::move(ref).as_or_throw<Int>().unique());
  EXPECT_FALSE(ref.defined());
  EXPECT_EQ(ErrorText([&] { ObjectRef().as_or_throw<SolidBox>(); }),
            "TypeError: Cannot treat type `None` as type `core_test.Box`");
  EXPECT_FALSE(ObjectRef().as_or_throw<Box>().defined());
}

TEST(ObjectRef, MethodsMacroFollowsMutability) {
  static_assert(std::is_same_v<decltype(std::declval<Box>().get()), const BoxObj*>);
  static_assert(std::is_same_v<decltype(std::declval<Counter>().get()), CounterObj*>);
  static_assert(std::is_same_v<decltype(std::declval<Box>().operator->()), const BoxObj*>);
  static_assert(std::is_same_v<Box::ContainerType, BoxObj>);
  Counter counter = Counter::Make();
  counter->count = 5;
  EXPECT_EQ(counter.get()->count, 5);
}

// A reference that only takes boxes with an even value.
class EvenBox : public ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(EvenBox, ObjectRef, BoxObj);
};

}  // namespace

template <>
struct tvm::ffi::TypeTraits<EvenBox> : public tvm::ffi::ObjectRefTypeTraitsBase<EvenBox> {
  static bool CheckAnyStrict(const TVMFFIAny* src) {
    if (!ObjectRefTypeTraitsBase<EvenBox>::CheckAnyStrict(src)) return false;
    if (src->type_index == TypeIndex::kTVMFFINone) return true;
    return details::ObjectUnsafe::RawObjectPtrFromUnowned<core_test::BoxObj>(src->v_obj)->value %
               2 ==
           0;
  }
};

namespace {

TEST(ObjectRef, AsHonoursTheTraitsOfTheTarget) {
  EXPECT_TRUE(ObjectRef(Box(2)).as<EvenBox>().has_value());
  EXPECT_FALSE(ObjectRef(Box(3)).as<EvenBox>().has_value());
  EXPECT_FALSE(Any(Box(3)).as<EvenBox>().has_value());
  EXPECT_FALSE(Any(Box(3)).try_cast<EvenBox>().has_value());
  EXPECT_TRUE(Any(Box(2)).try_cast<EvenBox>().has_value());
}

TEST(ObjectPtrHash, AgreesForEveryKindOfOwner) {
  Box box(1);
  ObjectPtr<BoxObj> ptr = ObjectUnsafe::ObjectPtrFromObjectRef<BoxObj>(box);
  Variant<Box, Int> variant = box;
  ObjectPtrHash hash;
  EXPECT_EQ(hash(box), hash(ptr));
  EXPECT_EQ(hash(box), hash(variant));
  EXPECT_EQ(hash(box), std::hash<Object*>()(ptr.get()));
  ObjectPtrEqual equal;
  EXPECT_TRUE(equal(box, Box(box)));
  EXPECT_FALSE(equal(box, Box(1)));
  EXPECT_TRUE(equal(ptr, ptr));
  EXPECT_TRUE(equal(variant, Variant<Box, Int>(box)));
  EXPECT_FALSE(equal(variant, Variant<Box, Int>(Int(1))));
  std::unordered_set<ObjectRef, ObjectPtrHash, ObjectPtrEqual> set{box, box, Box(1)};
  EXPECT_EQ(set.size(), 2u);
}

// ---- declared types

TEST(DeclaredType, RootAndStaticTypesHaveFixedIndices) {
  EXPECT_EQ(Object::RuntimeTypeIndex(), 64);
  EXPECT_EQ(Object::_GetOrAllocRuntimeTypeIndex(), 64);
  EXPECT_STREQ(Object::_type_key, "ffi.Object");
  EXPECT_EQ(Object::_type_depth, 0);
  EXPECT_EQ(details::StringObj::RuntimeTypeIndex(), 65);
  EXPECT_EQ(details::StringObj::_GetOrAllocRuntimeTypeIndex(), 65);
  EXPECT_EQ(details::StringObj::_type_depth, 1);
  EXPECT_TRUE(details::StringObj::_type_final);
  EXPECT_FALSE(ErrorObj::_type_final);
}

TEST(DeclaredType, DynamicTypesComeAfterTheStaticOnes) {
  EXPECT_GE(BoxObj::RuntimeTypeIndex(), TypeIndex::kTVMFFIDynObjectBegin);
  EXPECT_EQ(BoxObj::_type_index, BoxObj::RuntimeTypeIndex());
  EXPECT_EQ(BoxObj::_GetOrAllocRuntimeTypeIndex(), BoxObj::RuntimeTypeIndex());
  EXPECT_STREQ(BoxObj::_type_key, "core_test.Box");
  EXPECT_EQ(BoxObj::_type_depth, 1);
  EXPECT_EQ(IntObj::_type_depth, 2);
  EXPECT_EQ(TypeKeyToIndex("core_test.Int"), IntObj::RuntimeTypeIndex());
}

TEST(DeclaredType, AncestorsLeadFromTheRootToTheParent) {
  const TypeInfo* info = TVMFFIGetTypeInfo(IntObj::RuntimeTypeIndex());
  ASSERT_EQ(info->type_depth, 2);
  EXPECT_EQ(info->type_ancestors[0]->type_index, TypeIndex::kTVMFFIObject);
  EXPECT_EQ(info->type_ancestors[1]->type_index, NumberObj::RuntimeTypeIndex());
  EXPECT_EQ(info->type_ancestors[1], TVMFFIGetTypeInfo(NumberObj::RuntimeTypeIndex()));
}

TEST(DeclaredType, ParentWithOneSlotTakesTwoChildren) {
  int32_t begin = NumberObj::RuntimeTypeIndex();
  std::set<int32_t> children = {IntObj::RuntimeTypeIndex(), FloatObj::RuntimeTypeIndex()};
  EXPECT_EQ(children.size(), 2u);
  EXPECT_EQ(children.count(begin + 1), 1u) << "one child is in the reserved slot";
  EXPECT_GT(*children.begin(), begin);
  ObjectRef i = Int(1), f = Float(2);
  for (const ObjectRef& number : {i, f}) {
    EXPECT_TRUE(number->IsInstance<NumberObj>());
    EXPECT_TRUE(number->IsInstance<Object>());
    EXPECT_FALSE(number->IsInstance<BoxObj>());
  }
  EXPECT_TRUE(i->IsInstance<IntObj>());
  EXPECT_FALSE(i->IsInstance<FloatObj>());
  EXPECT_TRUE(f->IsInstance<FloatObj>());
  EXPECT_FALSE(Box(1)->IsInstance<NumberObj>());
}

// Two levels of slots, and a parent that may not overflow.
class PlantObj : public Object {
 public:
  static constexpr int _type_child_slots = 3;
  static constexpr bool _type_child_slots_can_overflow = false;
  TVM_FFI_DECLARE_OBJECT_INFO("core_test.Plant", PlantObj, Object);
};
class TreeObj : public PlantObj {
 public:
  static constexpr int _type_child_slots = 1;
  TVM_FFI_DECLARE_OBJECT_INFO("core_test.Tree", TreeObj, PlantObj);
};
class OakObj : public TreeObj {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("core_test.Oak", OakObj, TreeObj);
};
class MossObj : public PlantObj {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("core_test.Moss", MossObj, PlantObj);
};

TEST(DeclaredType, ReservedRangesNest) {
  int32_t plant = PlantObj::RuntimeTypeIndex();
  int32_t tree = TreeObj::RuntimeTypeIndex();
  EXPECT_GT(tree, plant);
  EXPECT_LE(tree + 1, plant + 3);
  EXPECT_EQ(OakObj::RuntimeTypeIndex(), tree + 1);
  EXPECT_GT(MossObj::RuntimeTypeIndex(), plant);
  EXPECT_LE(MossObj::RuntimeTypeIndex(), plant + 3);
  ObjectPtr<OakObj> oak = make_object<OakObj>();
  EXPECT_TRUE(oak->IsInstance<TreeObj>());
  EXPECT_TRUE(oak->IsInstance<PlantObj>());
  ObjectPtr<MossObj> moss = make_object<MossObj>();
  EXPECT_TRUE(moss->IsInstance<PlantObj>());
  EXPECT_FALSE(moss->IsInstance<TreeObj>());
  EXPECT_EQ(TVMFFIGetTypeInfo(OakObj::RuntimeTypeIndex())->type_depth, 3);
}

// The macro inside a base template, the key in the derived class.
template <typename Derived>
class NamedBase : public Object {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_PREDEFINED_TYPE_KEY(Derived, Object);
};
class NamedAObj : public NamedBase<NamedAObj> {
 public:
  static constexpr const char* _type_key = "core_test.NamedA";
};
class NamedBObj : public NamedBase<NamedBObj> {
 public:
  static constexpr const char* _type_key = "core_test.NamedB";
};

TEST(DeclaredType, MacroWorksInACuriouslyRecurringBase) {
  EXPECT_NE(NamedAObj::RuntimeTypeIndex(), NamedBObj::RuntimeTypeIndex());
  EXPECT_EQ(make_object<NamedAObj>()->GetTypeKey(), "core_test.NamedA");
  EXPECT_EQ(make_object<NamedBObj>()->GetTypeKey(), "core_test.NamedB");
  EXPECT_FALSE(make_object<NamedAObj>()->IsInstance<NamedBObj>());
}

int32_t box_index_in_static_init = 0;
ObjectPtr<BoxObj>* box_made_in_static_init = nullptr;
TVM_FFI_STATIC_INIT_BLOCK() {
  box_index_in_static_init = BoxObj::RuntimeTypeIndex();
  box_made_in_static_init = new ObjectPtr<BoxObj>(make_object<BoxObj>(11));
}
int second_block_ran = 0;
TVM_FFI_STATIC_INIT_BLOCK() { second_block_ran = 1; }

TEST(DeclaredType, IsUsableInStaticInitBlocks) {
  EXPECT_EQ(box_index_in_static_init, BoxObj::RuntimeTypeIndex());
  EXPECT_TRUE((*box_made_in_static_init)->IsInstance<BoxObj>());
  EXPECT_EQ((*box_made_in_static_init)->value, 11);
  EXPECT_EQ(second_block_ran, 1);
}

TEST(InstanceCheck, RuntimeMatchCoversValuesStringsAndObjects) {
  using details::RuntimeTypeIndexMatch;
  int32_t number = NumberObj::RuntimeTypeIndex();
  int32_t i = IntObj::RuntimeTypeIndex(), f = FloatObj::RuntimeTypeIndex();
  struct Case {
    int32_t actual, target;
    bool match;
  };
  for (const Case& c : std::vector<Case>{
           {1, 1, true},           {1, 2, false},       {1, -1, true},       {i, -1, true},
           {11, 65, true},         {65, 65, true},      {12, 65, false},     {12, 66, true},
           {11, 66, false},        {71, 65, false},     {64, 64, true},      {65, 64, true},
           {i, 64, true},          {1, 64, false},      {11, 64, false},     {i, number, true},
           {f, number, true},      {number, i, false},  {i, f, false},       {f, i, false},
           {number, number, true}, {65, number, false}, {number, 71, false}, {1, number, false}}) {
    EXPECT_EQ(RuntimeTypeIndexMatch(c.actual, c.target), c.match) << c.actual << " " << c.target;
  }
}

// ---- types registered elsewhere

class KnownElsewhereObj : public Object {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_LOOKUP("core_test.Number", 1)
};
class NowhereObj : public Object {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_LOOKUP("core_test.NeverRegistered", 1)
};
class NowhereChildObj : public NowhereObj {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_LOOKUP("core_test.NeverRegisteredChild", 2)
};
static_assert(KnownElsewhereObj::_type_depth == 1 && KnownElsewhereObj::_type_mutable);
static_assert(!KnownElsewhereObj::_type_final && KnownElsewhereObj::_type_child_slots == 0);
static_assert(std::is_same_v<decltype(NowhereObj::_type_child_slots), const uint32_t>);
static_assert(NowhereChildObj::_type_depth == 2 && NowhereObj::_type_child_slots_can_overflow);

template <typename T, typename = void>
constexpr bool has_runtime_type_info = false;
template <typename T>
constexpr bool has_runtime_type_info<T, std::void_t<decltype(&T::RuntimeTypeInfo)>> = true;
static_assert(!has_runtime_type_info<Object> && !has_runtime_type_info<NowhereObj> &&
              !has_runtime_type_info<BoxObj>);

TEST(LookupType, FindsTheRegisteredIndexAndNeverRegisters) {
  EXPECT_EQ(KnownElsewhereObj::RuntimeTypeIndex(), NumberObj::RuntimeTypeIndex());
  EXPECT_TRUE(ObjectRef(Int(1))->IsInstance<KnownElsewhereObj>());
  std::string text = ErrorText([] { NowhereObj::RuntimeTypeIndex(); });
  EXPECT_TRUE(Contains(text, "InternalError: ")) << text;
  EXPECT_TRUE(Contains(text, "Cannot find type `core_test.NeverRegistered`")) << text;
  text = ErrorText([] { NowhereObj::RuntimeTypeIndex(); });
  EXPECT_TRUE(Contains(text, "Cannot find type")) << "a failure is not remembered as success";
  text = ErrorText([] { TypeKeyToIndex("core_test.NeverRegistered"); });
  EXPECT_TRUE(Contains(text, "Cannot find type")) << "looking up must not register";
}

}  // namespace

// Names a container of itself while incomplete; the specialisation vouches for the base.
class LinkedElsewhereObj;
template <>
inline constexpr bool tvm::ffi::is_object_subclass_v<LinkedElsewhereObj> = true;
class LinkedElsewhereObj : public tvm::ffi::Object {
 public:
  static_assert(tvm::ffi::TypeTraits<tvm::ffi::Arc<LinkedElsewhereObj>>::storage_enabled);
  static_assert(tvm::ffi::TypeTraits<tvm::ffi::ObjectPtr<LinkedElsewhereObj>>::storage_enabled);
  tvm::ffi::List<tvm::ffi::Arc<LinkedElsewhereObj>> children;
  tvm::ffi::List<tvm::ffi::ObjectPtr<LinkedElsewhereObj>> optional_children;
  TVM_FFI_DECLARE_OBJECT_INFO("core_test.LinkedElsewhere", LinkedElsewhereObj, tvm::ffi::Object);
};

namespace {

TEST(IncompleteType, CanHoldListsOfItself) {
  ObjectPtr<LinkedElsewhereObj> root = make_object<LinkedElsewhereObj>();
  root->children.push_back(make_arc<LinkedElsewhereObj>());
  root->optional_children.push_back(nullptr);
  EXPECT_EQ(root->children.size(), 1u);
  EXPECT_EQ(root->children[0].use_count(), 2);
  EXPECT_TRUE(root->optional_children[0] == nullptr);
}

// ---- where the header is

TEST(HeaderPosition, FollowsTheBasesInFront) {
  EXPECT_EQ(ObjectUnsafe::GetObjectOffsetToSubclass<BoxObj>(), 0);
  EXPECT_EQ(ObjectUnsafe::GetObjectOffsetToSubclass<NumberObj>(), 32);
  EXPECT_EQ(ObjectUnsafe::GetObjectOffsetToSubclass<IntObj>(), 32);
  EXPECT_EQ(ObjectUnsafe::GetObjectOffsetToSubclass<AnimalObj>(), 8);
  EXPECT_EQ(ObjectUnsafe::GetObjectOffsetToSubclass<DogObj>(), 8);
}

TEST(HeaderPosition, DataInFrontSurvivesEveryConversion) {
  ObjectPtr<IntObj> i = make_object<IntObj>(42);
  Any any = i;
  EXPECT_EQ(any.as<IntObj>(), i.get());
  EXPECT_EQ(any.cast<const NumberObj*>(), i.get());
  EXPECT_EQ(any.cast<ObjectPtr<NumberObj>>().get(), i.get());
  EXPECT_EQ(any.cast<Int>().get(), i.get());
  ObjectRef ref = any.cast<ObjectRef>();
  EXPECT_EQ(ref.as<IntObj>(), i.get());
  EXPECT_EQ(static_cast<const void*>(HeaderOf(i.get())), static_cast<const void*>(ref.get()));
  EXPECT_EQ(reinterpret_cast<char*>(HeaderOf(i.get())) - reinterpret_cast<char*>(i.get()), 32);
  EXPECT_EQ(i->front[3], 0x4444444444444444u);
  EXPECT_EQ(ref.as<IntObj>()->value, 42);
}

TEST(HeaderPosition, VirtualFunctionsAreReachedThroughAnyBase) {
  ObjectPtr<DogObj> dog = make_object<DogObj>("a dog whose name does not fit inline");
  Any any = dog;
  EXPECT_EQ(any.as<AnimalObj>()->Sound(), "a dog whose name does not fit inline barks");
  ObjectPtr<Object> root = dog;
  dog.reset();
  any.reset();
  EXPECT_EQ(static_cast<AnimalObj*>(root.get())->Sound(),
            "a dog whose name does not fit inline barks");
  EXPECT_TRUE(root.unique());
}

// A data base in front of a class that already derives from Object.
struct Label {
  std::string label = "a label that is long enough to be on the heap";
};
class LabelledObj : public Label, public CounterObj {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("core_test.Labelled", LabelledObj, CounterObj);
};

TEST(HeaderPosition, BaseInFrontOfADerivedClassIsDestroyedAndFreed) {
  EXPECT_EQ(ObjectUnsafe::GetObjectOffsetToSubclass<LabelledObj>(),
            static_cast<int64_t>(sizeof(Label)));
  ObjectRef ref(make_object<LabelledObj>());
  EXPECT_EQ(ref.as<LabelledObj>()->label.size(), 45u);
  EXPECT_EQ(ref.as<CounterObj>()->count, 0);
  WeakObjectPtr<Object> weak = ObjectUnsafe::ObjectPtrFromObjectRef<Object>(ref);
  ref = ObjectRef();
  EXPECT_TRUE(weak.expired());
}

// ---- ObjectUnsafe

TEST(ObjectUnsafe, OwnedStealsAndUnownedAdds) {
  Box box(1);
  Object* raw = ObjectUnsafe::RawObjectPtrFromObjectRef(box);
  ObjectPtr<BoxObj> added = ObjectUnsafe::ObjectPtrFromUnowned<BoxObj>(raw);
  EXPECT_EQ(box.use_count(), 2);
  TVMFFIObject* released = ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(added));
  EXPECT_EQ(box.use_count(), 2);
  EXPECT_TRUE(added == nullptr);
  ObjectPtr<BoxObj> stolen = ObjectUnsafe::ObjectPtrFromOwned<BoxObj>(released);
  EXPECT_EQ(box.use_count(), 2);
  stolen.reset();
  EXPECT_EQ(box.use_count(), 1);
  TVMFFIObjectHandle handle = raw;
  ObjectUnsafe::IncRefObjectHandle(handle);
  stolen = ObjectUnsafe::ObjectPtrFromOwned<BoxObj>(static_cast<Object*>(handle));
  EXPECT_EQ(box.use_count(), 2);
  ObjectUnsafe::DecRefObjectHandle(nullptr);
}

TEST(ObjectUnsafe, ConvertsBetweenReferencesAndPointers) {
  Box box(1);
  ObjectPtr<Object> ptr = ObjectUnsafe::ObjectPtrFromObjectRef<Object>(box);
  EXPECT_EQ(box.use_count(), 2);
  Box again = ObjectUnsafe::ObjectRefFromObjectPtr<Box>(ptr);
  EXPECT_EQ(box.use_count(), 3);
  Box moved = ObjectUnsafe::ObjectRefFromObjectPtr<Box>(std::move(ptr));
  EXPECT_EQ(box.use_count(), 3);
  EXPECT_TRUE(ptr == nullptr);
  ObjectPtr<BoxObj> from_rvalue = ObjectUnsafe::ObjectPtrFromObjectRef<BoxObj>(std::move(again));
  EXPECT_FALSE(again.defined());
  EXPECT_EQ(box.use_count(), 3);
  EXPECT_EQ(ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(box),
            ObjectUnsafe::TVMFFIObjectPtrFromObjectPtr(from_rvalue));
  TVMFFIObject* owned = ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(std::move(moved));
  EXPECT_FALSE(moved.defined());
  EXPECT_EQ(ObjectUnsafe::RawObjectPtrFromUnowned<BoxObj>(owned)->value, 1);
  ObjectUnsafe::DecRefObjectHandle(owned);
  EXPECT_EQ(box.use_count(), 2);
  Arc<BoxObj> arc = ObjectUnsafe::ArcFromObjectPtr<BoxObj>(std::move(from_rvalue));
  EXPECT_EQ(arc.use_count(), 2);
}

// ---- compile-time facts

static_assert(is_object_subclass_v<BoxObj> && !is_object_subclass_v<int> &&
              !is_object_subclass_v<void>);
static_assert(!TypeTraits<ObjectPtr<int>>::convert_enabled &&
              !TypeTraits<Arc<int>>::storage_enabled);
static_assert(!TypeTraits<ObjectPtr<const BoxObj>>::convert_enabled);
static_assert(!TypeTraits<Arc<const BoxObj>>::convert_enabled);
static_assert(details::is_qualified_object_v<const BoxObj> &&
              details::is_qualified_object_v<BoxObj&>);
static_assert(!details::is_qualified_object_v<BoxObj> &&
              !details::is_qualified_object_v<const int>);
static_assert(object_ref_contains_v<Number, IntObj> && !object_ref_contains_v<Int, NumberObj>);
static_assert(object_ref_contains_v<ObjectRef, BoxObj> &&
              object_ref_contains_is_enabled_v<ObjectRef, BoxObj> &&
              !object_ref_contains_is_enabled_v<Optional<Box>, BoxObj>);

template <typename Ref, typename Obj, typename = void>
constexpr bool contains_is_defined = false;
template <typename Ref, typename Obj>
constexpr bool
    contains_is_defined<Ref, Obj, std::void_t<decltype(object_ref_contains_v<Ref, Obj>)>> = true;
static_assert(contains_is_defined<Box, BoxObj>);
static_assert(!contains_is_defined<int, BoxObj> && !contains_is_defined<Box, int>);

// A reference that takes two unrelated objects and says so.
class BoxOrCounter : public ObjectRef {
 public:
  [[maybe_unused]] static constexpr bool _type_container_is_exact = false;
  using ObjectRef::ObjectRef;
};

}  // namespace

template <typename Obj>
inline constexpr bool tvm::ffi::object_ref_contains_v<
    BoxOrCounter, Obj, std::enable_if_t<std::is_base_of_v<tvm::ffi::Object, Obj>>> =
    std::is_same_v<Obj, core_test::BoxObj> || std::is_same_v<Obj, core_test::CounterObj>;

namespace {

static_assert(object_ref_contains_v<BoxOrCounter, BoxObj>);
static_assert(object_ref_contains_v<BoxOrCounter, CounterObj>);
static_assert(!object_ref_contains_v<BoxOrCounter, IntObj>);

// ---- cast.h

TEST(Cast, GetRefAddsAReference) {
  ObjectPtr<IntObj> i = make_object<IntObj>(1);
  Number number = GetRef<Number>(i.get());
  EXPECT_EQ(i.use_count(), 2);
  EXPECT_EQ(number.get(), i.get());
  Optional<Int> optional = GetRef<Optional<Int>>(i.get());
  EXPECT_EQ(i.use_count(), 3);
  EXPECT_TRUE(optional.has_value());
  BoxOrCounter either = GetRef<BoxOrCounter>(Box(3).get());
  EXPECT_TRUE(either.unique());
}

TEST(Cast, GetRefOfNullIsNullWhereThatIsAllowed) {
  EXPECT_FALSE(GetRef<Box>(static_cast<BoxObj*>(nullptr)).defined());
  EXPECT_FALSE(GetRef<Optional<Int>>(static_cast<IntObj*>(nullptr)).has_value());
  std::string text = ErrorText([] { GetRef<Number>(static_cast<IntObj*>(nullptr)); });
  EXPECT_TRUE(Contains(text, "InternalError: Check not null")) << text;
}

TEST(Cast, GetObjectPtrAddsAReference) {
  ObjectPtr<IntObj> i = make_object<IntObj>(1);
  ObjectPtr<NumberObj> base = GetObjectPtr<NumberObj>(i.get());
  EXPECT_EQ(base.get(), i.get());
  EXPECT_EQ(i.use_count(), 2);
  EXPECT_TRUE(GetObjectPtr<Object>(static_cast<IntObj*>(nullptr)) == nullptr);
}

}  // namespace
