// SPDX-License-Identifier: Apache-2.0
//
// any.h: borrowed and owned values, strict and converting reads, hashing and equality.
#include <gtest/gtest.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/device.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using namespace core_test;
using tether_test::Contains;
using tether_test::ErrorText;

static_assert(sizeof(Any) == 16 && sizeof(AnyView) == 16);
static_assert(std::is_trivially_copyable_v<AnyView> && std::is_standard_layout_v<AnyView>);
static_assert(std::is_standard_layout_v<Any> && !std::is_trivially_copyable_v<Any>);
static_assert(std::is_nothrow_move_constructible_v<Any>);
static_assert(std::is_same_v<tvm::Any, tvm::ffi::Any> && std::is_same_v<tvm::AnyView, AnyView>);
static_assert(!std::is_constructible_v<Any, std::string_view>);
static_assert(!std::is_constructible_v<Any, std::optional<int>>);
static_assert(!std::is_constructible_v<Any, int*>);

enum class Colour : int8_t { kRed = 1, kBlue = -2 };

TVMFFIAny CellOf(const AnyView& view) { return view.CopyToTVMFFIAny(); }

// ---- storing plain values

TEST(Any, DefaultIsNoneWithZeroPayload) {
  Any any;
  AnyView view;
  EXPECT_TRUE(any == nullptr);
  EXPECT_TRUE(view == nullptr);
  EXPECT_EQ(any.type_index(), kTVMFFINone);
  EXPECT_EQ(any.GetTypeKey(), "None");
  EXPECT_EQ(CellOf(any).v_int64, 0);
  EXPECT_EQ(CellOf(any).zero_padding, 0u);
}

TEST(Any, ComparesWithNullptrInsideTemplates) {
  // gtest compares through templates, where only an exact overload is found.
  EXPECT_EQ(Any(), nullptr);
  EXPECT_NE(Any(1), nullptr);
  EXPECT_EQ(AnyView(), nullptr);
  EXPECT_NE(AnyView(1), nullptr);
  EXPECT_EQ(ObjectPtr<BoxObj>(), nullptr);
  EXPECT_NE(make_object<BoxObj>(1), nullptr);
  EXPECT_NE(make_arc<BoxObj>(1), nullptr);
  EXPECT_EQ(Function(nullptr), nullptr);
  EXPECT_NE(Function::FromTyped([] {}), nullptr);
  EXPECT_EQ(TypedFunction<void()>(), nullptr);
  EXPECT_EQ(Optional<int>(), nullptr);
  EXPECT_NE(Optional<int>(1), nullptr);
  EXPECT_EQ(Optional<Box>(), nullptr);
  EXPECT_NE(Optional<Arc<BoxObj>>(make_arc<BoxObj>(1)), nullptr);
}

TEST(Any, PlainValuesKeepTheirKind) {
  EXPECT_EQ(Any(1).type_index(), kTVMFFIInt);
  EXPECT_EQ(Any(int64_t{1}).type_index(), kTVMFFIInt);
  EXPECT_EQ(Any(uint8_t{255}).as<int>(), 255);
  EXPECT_EQ(Any('a').as<int>(), 97);
  EXPECT_EQ(Any(true).type_index(), kTVMFFIBool);
  EXPECT_EQ(Any(1.5).type_index(), kTVMFFIFloat);
  EXPECT_EQ(Any(1.5f).as<double>(), 1.5);
  EXPECT_EQ(Any(nullptr).type_index(), kTVMFFINone);
  EXPECT_EQ(Any(Colour::kBlue).type_index(), kTVMFFIInt);
  EXPECT_EQ(Any(Colour::kBlue).as<Colour>(), Colour::kBlue);
  EXPECT_EQ(Any(Colour::kBlue).as<int>(), -2);
  int x = 0;
  EXPECT_EQ(Any(static_cast<void*>(&x)).type_index(), kTVMFFIOpaquePtr);
  EXPECT_EQ(Any(static_cast<void*>(&x)).as<void*>(), &x);
  EXPECT_EQ(Any(DLDataType{kDLFloat, 32, 1}).type_index(), kTVMFFIDataType);
  EXPECT_EQ(Any(DLDevice{kDLCUDA, 1}).type_index(), kTVMFFIDevice);
}

TEST(Any, LocalEnumConverts) {
  enum class Local { kOne = 1 };
  EXPECT_EQ(AnyView(Local::kOne).cast<Local>(), Local::kOne);
}

TEST(Any, UnusedPayloadBytesAreZero) {
  Any any = -1;  // leaves all bits set
  any = DLDataType{kDLInt, 8, 1};
  EXPECT_EQ(CellOf(any).v_uint64 >> 32, 0u);
  EXPECT_EQ(CellOf(any).zero_padding, 0u);
  any = -1;
  any = nullptr;
  EXPECT_EQ(CellOf(any).v_uint64, 0u);
  AnyView view = String("seven__");
  view = 1;
  EXPECT_EQ(CellOf(view).zero_padding, 0u);
  any = true;
  EXPECT_EQ(CellOf(any).v_int64, 1);
}

TEST(Any, AValueOutOfRangeIsNotNarrowed) {
  EXPECT_EQ(Any(255).cast<uint8_t>(), 255);
  EXPECT_EQ(Any(-128).cast<int8_t>(), -128);
  EXPECT_EQ(ErrorText([] { (void)Any(300).cast<uint8_t>(); }),
            "OverflowError: Integer value 300 is out of range for uint8 (0 to 255)");
  EXPECT_EQ(ErrorText([] { (void)Any(-1).cast<uint32_t>(); }),
            "OverflowError: Integer value -1 is out of range for uint32 (0 to 4294967295)");
  EXPECT_EQ(ErrorText([] { (void)Any(int64_t{1} << 40).cast<int>(); }),
            "OverflowError: Integer value 1099511627776 is out of range for int32 (-2147483648 to "
            "2147483647)");
  EXPECT_EQ(ErrorText([] { (void)Any(128).cast<Colour>(); }),
            "OverflowError: Integer value 128 is out of range for int8 (-128 to 127)");
  EXPECT_EQ(ErrorText([] { (void)Any(300).cast<Optional<uint8_t>>(); }),
            "OverflowError: Integer value 300 is out of range for uint8 (0 to 255)");
  EXPECT_EQ(Any(300).try_cast<uint8_t>(), std::nullopt);
  EXPECT_EQ(Any(300).as<uint8_t>(), std::nullopt);
  EXPECT_EQ(Any(-1).cast<uint64_t>(), ~uint64_t{0});  // 64 bits are 64 bits
}

TEST(Any, UnsignedValuesThatDoNotFitAreRefused) {
  uint64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Any(max).as<uint64_t>(), max);
  const char* expected =
      "OverflowError: Integer value 9223372036854775808 is too large to fit in int64_t. Consider "
      "explicitly casting to int64_t first if this is intentional.";
  EXPECT_EQ(ErrorText([&] { Any any = max + 1; }), expected);
  AnyView view = 5;
  EXPECT_EQ(ErrorText([&] { view = max + 1; }), expected);
  EXPECT_EQ(view.cast<int>(), 5) << "a failed assignment leaves the view";
  Any any = 5;
  EXPECT_EQ(ErrorText([&] { any = size_t{max + 1}; }), expected);
  EXPECT_EQ(any.cast<int>(), 5);
}

// ---- reading

TEST(AnyRead, AsNeverConverts) {
  EXPECT_FALSE(Any(1).as<bool>().has_value());
  EXPECT_FALSE(Any(1).as<double>().has_value());
  EXPECT_FALSE(Any(true).as<int>().has_value());
  EXPECT_FALSE(Any(1.0).as<int>().has_value());
  EXPECT_FALSE(AnyView(1).as<bool>().has_value());
  EXPECT_FALSE(Any().as<int>().has_value());
  EXPECT_FALSE(Any().as<void*>().has_value());
  EXPECT_EQ(Any(1).as<int>(), 1);
  EXPECT_TRUE(Any().as<std::nullptr_t>().has_value());
}

TEST(AnyRead, CastConvertsNumbers) {
  EXPECT_EQ(Any(1).cast<double>(), 1.0);
  EXPECT_EQ(Any(true).cast<int>(), 1);
  EXPECT_EQ(Any(true).cast<double>(), 1.0);
  EXPECT_EQ(Any(5).cast<bool>(), true);
  EXPECT_EQ(Any(0).cast<bool>(), false);
  EXPECT_EQ(Any().cast<void*>(), nullptr);
  EXPECT_EQ(AnyView(2).cast<float>(), 2.0f);
  EXPECT_FALSE(Any(1.5).try_cast<int>().has_value());
  EXPECT_FALSE(Any(1.5).try_cast<bool>().has_value());
  EXPECT_EQ(Any(true).try_cast<StrictBool>().has_value(), true);
  EXPECT_FALSE(Any(1).try_cast<StrictBool>().has_value());
}

TEST(AnyRead, FailedCastNamesBothTypes) {
  struct Case {
    Any value;
    std::string key;
  };
  for (const Case& c : std::vector<Case>{{nullptr, "None"},
                                         {1.5, "float"},
                                         {String("abc"), "ffi.SmallStr"},
                                         {String("longer than seven"), "ffi.String"},
                                         {Bytes("a", 1), "ffi.SmallBytes"},
                                         {Box(1), "core_test.Box"},
                                         {static_cast<void*>(nullptr), "void*"}}) {
    EXPECT_EQ(ErrorText([&] { c.value.cast<int>(); }),
              "TypeError: Cannot convert from type `" + c.key + "` to `int`");
    EXPECT_EQ(ErrorText([&] { AnyView(c.value).cast<int>(); }),
              "TypeError: Cannot convert from type `" + c.key + "` to `int`");
    EXPECT_EQ(ErrorText([&] { c.value.as_or_throw<int>(); }),
              "TypeError: Cannot treat type `" + c.key + "` as type `int`");
  }
  EXPECT_EQ(ErrorText([] { AnyView("literal").cast<int>(); }),
            "TypeError: Cannot convert from type `const char*` to `int`");
}

TEST(AnyRead, NoneFailsForEveryTypeThatIsNotNullable) {
  Any none;
  auto text = [&](auto cast) { return ErrorText(cast); };
  EXPECT_EQ(text([&] { none.cast<int>(); }), "TypeError: Cannot convert from type `None` to `int`");
  EXPECT_EQ(text([&] { none.cast<bool>(); }),
            "TypeError: Cannot convert from type `None` to `bool`");
  EXPECT_EQ(text([&] { none.cast<double>(); }),
            "TypeError: Cannot convert from type `None` to `float`");
  EXPECT_EQ(text([&] { none.cast<DLDevice>(); }),
            "TypeError: Cannot convert from type `None` to `Device`");
  EXPECT_EQ(text([&] { none.cast<DLDataType>(); }),
            "TypeError: Cannot convert from type `None` to `DataType`");
  EXPECT_EQ(text([&] { none.cast<DLTensor*>(); }),
            "TypeError: Cannot convert from type `None` to `DLTensor*`");
  EXPECT_EQ(text([&] { none.cast<String>(); }),
            "TypeError: Cannot convert from type `None` to `str`");
  EXPECT_EQ(text([&] { none.cast<SolidBox>(); }),
            "TypeError: Cannot convert from type `None` to `core_test.Box`");
  EXPECT_EQ(text([&] { none.cast<Arc<BoxObj>>(); }),
            "TypeError: Cannot convert from type `None` to `core_test.Box`");
  EXPECT_EQ(text([&] { none.cast<const BoxObj*>(); }),
            "TypeError: Cannot convert from type `None` to `core_test.Box`");
  EXPECT_FALSE(none.cast<Box>().defined());
  EXPECT_TRUE(none.cast<ObjectPtr<BoxObj>>() == nullptr);
}

TEST(AnyRead, AsOrThrowIsStrict) {
  EXPECT_EQ(Any(1).as_or_throw<int>(), 1);
  EXPECT_EQ(ErrorText([] { Any(1).as_or_throw<double>(); }),
            "TypeError: Cannot treat type `int` as type `float`");
  EXPECT_EQ(ErrorText([] { Any(true).as_or_throw<int8_t>(); }),
            "TypeError: Cannot treat type `bool` as type `int`")
      << "its value fits, its type does not";
  Any box = Box(1);
  EXPECT_EQ(ErrorText([&] { std::move(box).as_or_throw<Int>(); }),
            "TypeError: Cannot treat type `core_test.Box` as type `core_test.Int`");
  EXPECT_TRUE(box != nullptr) << "a failure leaves the source";
  EXPECT_TRUE(std::move(box).as_or_throw<Box>().unique());
  EXPECT_TRUE(box == nullptr);
  EXPECT_EQ(Any(3).as_or_throw<Any>().cast<int>(), 3);
}

TEST(AnyRead, ResultsConvertToOptional) {
  Optional<int> i = Any(1).as<int>();
  Optional<Colour> e = Any(1).try_cast<Colour>();
  Optional<Box> b = Any(Box(1)).as<Box>();
  Optional<Error> err = Any(1).as<Error>();
  Optional<DLTensor*> t = Any().try_cast<DLTensor*>();
  EXPECT_TRUE(i.has_value() && e.has_value() && b.has_value());
  EXPECT_FALSE(err.has_value() || t.has_value());
}

TEST(AnyRead, AnyIsAValidTarget) {
  Any any = 1;
  EXPECT_EQ(any.as<Any>()->cast<int>(), 1);
  EXPECT_EQ(any.try_cast<Any>()->cast<int>(), 1);
  EXPECT_EQ(std::move(any).as<Any>()->cast<int>(), 1);
  EXPECT_TRUE(any == nullptr);
}

// ---- objects

TEST(AnyObject, ViewBorrowsAndAnyOwns) {
  Box box(1);
  AnyView view = box;
  EXPECT_EQ(box.use_count(), 1);
  Any owned = view;
  EXPECT_EQ(box.use_count(), 2);
  Any copy = owned;
  EXPECT_EQ(box.use_count(), 3);
  Any moved = std::move(copy);
  EXPECT_EQ(box.use_count(), 3);
  EXPECT_TRUE(copy == nullptr);
  EXPECT_EQ(CellOf(copy).v_uint64, 0u);
  AnyView of_any = owned;
  EXPECT_EQ(box.use_count(), 3);
  Box cast = of_any.cast<Box>();
  EXPECT_EQ(box.use_count(), 4);
  EXPECT_EQ(owned.cast<const BoxObj*>(), box.get());
  EXPECT_EQ(box.use_count(), 4) << "a raw pointer borrows";
  moved.reset();
  owned = 1;
  EXPECT_EQ(box.use_count(), 2);
}

TEST(AnyObject, RawPointersAddAReferenceAndKeepTheType) {
  Box box(1);
  const BoxObj* raw = box.get();
  Any any = raw;
  EXPECT_EQ(box.use_count(), 2);
  EXPECT_TRUE(any.as<Box>().has_value());
  AnyView view = raw;
  EXPECT_EQ(box.use_count(), 2);
  EXPECT_EQ(view.type_index(), BoxObj::RuntimeTypeIndex());
  Any as_void = static_cast<void*>(const_cast<BoxObj*>(raw));
  EXPECT_EQ(box.use_count(), 2);
  EXPECT_FALSE(as_void.as<Box>().has_value());
  any.reset();
  EXPECT_EQ(box.use_count(), 1);
  Counter counter = Counter::Make();
  Any held = counter.get();
  held.cast<CounterObj*>()->count = 4;
  EXPECT_EQ(counter->count, 4);
}

TEST(AnyObject, RvalueCastMovesTheObjectOut) {
  Any any = Box(1);
  Box box = std::move(any).cast<Box>();
  EXPECT_TRUE(any == nullptr);
  EXPECT_TRUE(box.unique());
  any = make_object<BoxObj>(2);
  ObjectPtr<BoxObj> ptr = std::move(any).cast<ObjectPtr<BoxObj>>();
  EXPECT_TRUE(any == nullptr);
  EXPECT_TRUE(ptr.unique());
  any = make_arc<BoxObj>(3);
  Arc<BoxObj> arc = std::move(any).cast<Arc<BoxObj>>();
  EXPECT_TRUE(any == nullptr);
  EXPECT_TRUE(arc.unique());
  any = Box(4);
  std::optional<Box> as = std::move(any).as<Box>();
  EXPECT_TRUE(any == nullptr);
  EXPECT_TRUE(as->unique());
}

TEST(AnyObject, FailedRvalueReadLeavesTheSource) {
  Any any = Box(1);
  EXPECT_FALSE(std::move(any).as<Int>().has_value());
  EXPECT_TRUE(any != nullptr);
  EXPECT_NE(ErrorText([&] { std::move(any).cast<Int>(); }), "no error");
  EXPECT_EQ(any.cast<Box>()->value, 1);
}

TEST(AnyObject, RvalueCastOfPlainValuesCopies) {
  Any any = 5;
  EXPECT_EQ(std::move(any).cast<int>(), 5);
  EXPECT_EQ(any.cast<int>(), 5);
  EXPECT_EQ(std::move(any).cast<double>(), 5.0);
  EXPECT_EQ(Any(String("text")).cast<std::string>(), "text");
  EXPECT_EQ(Any(Box(7)).as<BoxObj>() == nullptr, false);
}

TEST(AnyObject, NullReferencesAreNone) {
  EXPECT_EQ(Any(Box()).type_index(), kTVMFFINone);
  EXPECT_EQ(Any(ObjectPtr<BoxObj>()).type_index(), kTVMFFINone);
  EXPECT_EQ(Any(Function(nullptr)).type_index(), kTVMFFINone);
  EXPECT_EQ(AnyView(ObjectRef()).type_index(), kTVMFFINone);
}

TEST(AnyObject, SmallStringIsNotAnObjectReference) {
  EXPECT_FALSE(Any("small").as<ObjectRef>().has_value());
  EXPECT_TRUE(Any("a string on the heap").as<ObjectRef>().has_value());
  EXPECT_EQ(Any("small").as<Object>(), nullptr);
}

TEST(AnyObject, DestructionReleases) {
  int before = BoxObj::alive;
  {
    Any any = Box(1);
    Any other = any;
    std::vector<Any> many(10, any);
    EXPECT_EQ(BoxObj::alive, before + 1);
  }
  EXPECT_EQ(BoxObj::alive, before);
}

TEST(AnyObject, SelfAssignmentIsHarmless) {
  Any any = Box(1);
  Any& self = any;
  any = self;
  EXPECT_EQ(any.cast<Box>().use_count(), 2);
  any = std::move(self);
  EXPECT_EQ(any.cast<const BoxObj*>()->value, 1);
  Any other = 2;
  any.swap(other);
  EXPECT_EQ(any.cast<int>(), 2);
}

TEST(AnyObject, SameAsComparesCells) {
  Box box(1);
  EXPECT_TRUE(Any(box).same_as(Any(box)));
  EXPECT_FALSE(Any(box).same_as(Any(Box(1))));
  EXPECT_TRUE(Any(1).same_as(Any(1)));
  EXPECT_FALSE(Any(1).same_as(Any(true)));
  EXPECT_TRUE(Any("small").same_as(Any("small")));
  EXPECT_FALSE(Any("a string on the heap").same_as(Any("a string on the heap")));
  EXPECT_TRUE(Any(box).same_as(static_cast<const ObjectRef&>(box)));
  EXPECT_FALSE(Any(1).same_as(static_cast<const ObjectRef&>(box)));
  EXPECT_TRUE(Any().same_as(ObjectRef()));
  EXPECT_FALSE(Any(box).same_as(ObjectRef()));
}

// ---- promotion

TEST(Promotion, OwnsWhatTheViewBorrowed) {
  std::string text = "borrowed text on the heap";
  Any any;
  {
    AnyView view = text.c_str();
    any = view;
  }
  text.assign("overwritten overwritten...");
  EXPECT_EQ(any.cast<String>(), "borrowed text on the heap");
  TVMFFIByteArray bytes{"by\0es", 5};
  AnyView bytes_view = &bytes;
  EXPECT_EQ(Any(bytes_view).cast<Bytes>().size(), 5u);
}

TEST(Promotion, TakesTheObjectOutOfAnRvalueSlot) {
  Box box(1);
  TVMFFIObject* slot = details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(Box(box));
  TVMFFIAny raw{};
  raw.type_index = kTVMFFIObjectRValueRef;
  raw.v_ptr = &slot;
  AnyView view = AnyView::CopyFromTVMFFIAny(raw);
  Any taken = view;
  EXPECT_EQ(slot, nullptr);
  EXPECT_EQ(box.use_count(), 2) << "moved, not copied";
  EXPECT_EQ(taken.type_index(), BoxObj::RuntimeTypeIndex());
  EXPECT_EQ(
      ErrorText([&] { Any again = view; }),
      "InternalError: Check failed: (obj_addr[0] != nullptr) is false: RValueRef already moved");
}

TEST(Promotion, LeavesOtherCellsAlone) {
  DLTensor tensor{};
  AnyView view = &tensor;
  EXPECT_EQ(view.type_index(), kTVMFFIDLTensorPtr);
  EXPECT_EQ(Any(view).type_index(), kTVMFFIDLTensorPtr);
  EXPECT_EQ(Any(view).cast<DLTensor*>(), &tensor);
  EXPECT_EQ(Any(AnyView(1.5)).as<double>(), 1.5);
  // Storing it directly is another matter: nothing would keep the tensor.
  EXPECT_EQ(
      ErrorText([&] { Any any = &tensor; }),
      "RuntimeError: DLTensor* cannot be held in Any as it does not retain ownership, use Tensor "
      "instead");
}

// ---- the unsafe way in and out

TEST(AnyUnsafe, MovesWithoutCounting) {
  Box box(1);
  Any any = box;
  TVMFFIAny raw = details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(any));
  EXPECT_TRUE(any == nullptr);
  EXPECT_EQ(box.use_count(), 2);
  Any back = details::AnyUnsafe::MoveTVMFFIAnyToAny(&raw);
  EXPECT_EQ(raw.type_index, kTVMFFINone);
  EXPECT_EQ(box.use_count(), 2);
  EXPECT_TRUE(details::AnyUnsafe::CheckAnyStrict<Box>(back));
  EXPECT_TRUE(details::AnyUnsafe::CheckAnyStrict<Any>(back));
  EXPECT_FALSE(details::AnyUnsafe::CheckAnyStrict<int>(back));
  EXPECT_EQ(details::AnyUnsafe::ObjectPtrFromAnyAfterCheck(back),
            static_cast<const Object*>(box.get()));
  EXPECT_EQ(details::AnyUnsafe::TVMFFIAnyPtrFromAny(back)->type_index, BoxObj::RuntimeTypeIndex());
  EXPECT_EQ(details::AnyUnsafe::GetMismatchTypeInfo<int>(back), "core_test.Box");
  EXPECT_TRUE(details::AnyUnsafe::CopyFromAnyViewAfterCheck<Box>(back).same_as(box));
  EXPECT_TRUE(details::AnyUnsafe::MoveFromAnyAfterCheck<Box>(std::move(back)).same_as(box));
  EXPECT_TRUE(back == nullptr);
}

TEST(Type2Str, NamesTypesWithoutTraits) {
  EXPECT_EQ(details::Type2Str<Any>::v(), "Any");
  EXPECT_EQ(details::Type2Str<const Any&>::v(), "Any");
  EXPECT_EQ(details::Type2Str<Any&&>::v(), "Any");
  EXPECT_EQ(details::Type2Str<AnyView>::v(), "AnyView");
  EXPECT_EQ(details::Type2Str<const AnyView&>::v(), "AnyView");
  EXPECT_EQ(details::Type2Str<AnyView&&>::v(), "AnyView");
  EXPECT_EQ(details::Type2Str<void>::v(), "void");
  EXPECT_EQ(details::Type2Str<const int&>::v(), "int");
  EXPECT_EQ(details::Type2Str<const Box&>::v(), "core_test.Box");
}

// ---- hash and equality

TEST(AnyHash, HasTheValuesClientsWereCompiledWith) {
  AnyHash hash;
  EXPECT_EQ(hash(nullptr), 2654435769u);
  EXPECT_EQ(hash(1), 2654435835u);
  EXPECT_EQ(hash(-1), 2654435833u);
  EXPECT_EQ(hash(true), 2654435896u);
  EXPECT_EQ(hash(1.0), 4607182421454453370u);
  EXPECT_EQ(hash("a1"), 2654452523u);
  EXPECT_EQ(hash(std::string("a1")), 2654452523u);
  EXPECT_EQ(hash(Bytes("a1", 2)), 2654452712u);
  EXPECT_EQ(hash(Bytes(std::string("a1"))), 2654452712u);
  EXPECT_EQ(hash("hello world"), 3740341141u);
  EXPECT_EQ(hash(""), 2654440008u);
  EXPECT_EQ(hash(DLDataType{kDLFloat, 32, 1}), 2654509817u);
  EXPECT_EQ(hash(DLDevice{kDLCUDA, 1}), 6949403450u);
}

TEST(AnyHash, ObjectsHashByIdentity) {
  Box box(1);
  EXPECT_EQ(AnyHash()(box), AnyHash()(Box(box)));
  EXPECT_NE(AnyHash()(box), AnyHash()(Box(1)));
  EXPECT_TRUE(AnyEqual()(box, Box(box)));
  EXPECT_FALSE(AnyEqual()(box, Box(1)));
}

TEST(AnyEqual, ComparesBitsWithinAType) {
  AnyEqual equal;
  EXPECT_TRUE(equal(1, 1));
  EXPECT_FALSE(equal(1, 2));
  EXPECT_FALSE(equal(1, true));
  EXPECT_FALSE(equal(1, 1.0));
  EXPECT_FALSE(equal(0.0, -0.0));
  double nan = std::nan("");
  EXPECT_TRUE(equal(nan, nan));
  EXPECT_TRUE(equal(nullptr, nullptr));
  EXPECT_FALSE(equal(nullptr, 0));
}

TEST(AnyEqual, ComparesContentOfStringsAndBytes) {
  AnyEqual equal;
  EXPECT_TRUE(equal("abc", std::string("abc")));
  EXPECT_TRUE(equal(std::string("abc"), "abc"));
  EXPECT_TRUE(equal("a string on the heap", "a string on the heap"));
  EXPECT_FALSE(equal("a string on the heap", "a string on the heaP"));
  EXPECT_TRUE(equal(Bytes("abc", 3), Bytes(std::string("abc"))));
  EXPECT_FALSE(equal("abc", Bytes("abc", 3)));
  EXPECT_FALSE(equal(std::string("abc"), Bytes(std::string("abc"))));
  EXPECT_FALSE(equal("abc", "abd"));
}

// Objects that compare by value, by C++ pointer and by function.
template <int kWhich>
class ByValueObj : public Object {
 public:
  int64_t value;
  explicit ByValueObj(int64_t value) : value(value) {}
  static constexpr const char* _type_key = kWhich == 0   ? "core_test.ByPointer"
                                           : kWhich == 1 ? "core_test.ByFunction"
                                                         : "core_test.Broken";
  TVM_FFI_DECLARE_OBJECT_INFO_PREDEFINED_TYPE_KEY(ByValueObj, Object);
};

void RegisterHook(int32_t type_index, const char* name, const AnyView& value) {
  TVMFFIByteArray name_bytes{name, std::strlen(name)};
  TVMFFIAny raw = value.CopyToTVMFFIAny();
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterAttr(type_index, &name_bytes, &raw));
}

TEST(AnyHook, PointersReplaceHashAndEquality) {
  using Obj = ByValueObj<0>;
  int64_t (*hash)(const Any&) = [](const Any& a) { return a.as<Obj>()->value * 31; };
  bool (*equal)(const Any&, const Any&) = [](const Any& a, const Any& b) {
    return a.as<Obj>()->value == b.as<Obj>()->value;
  };
  RegisterHook(Obj::RuntimeTypeIndex(), "__any_hash__", reinterpret_cast<void*>(hash));
  RegisterHook(Obj::RuntimeTypeIndex(), "__any_equal__", reinterpret_cast<void*>(equal));
  Any a = make_object<Obj>(3), b = make_object<Obj>(3), c = make_object<Obj>(4);
  EXPECT_EQ(AnyHash()(a), AnyHash()(b));
  EXPECT_EQ(AnyHash()(a), details::StableHashCombine(static_cast<uint64_t>(a.type_index()), 93));
  EXPECT_TRUE(AnyEqual()(a, b));
  EXPECT_FALSE(AnyEqual()(a, c));
  EXPECT_FALSE(AnyEqual()(a, Box(3)));
}

TEST(AnyHook, FunctionsReplaceHashAndEquality) {
  using Obj = ByValueObj<1>;
  RegisterHook(Obj::RuntimeTypeIndex(), "__any_hash__",
               Function::FromTyped([](const Any& a) { return a.as<Obj>()->value; }));
  // Without a C++ entry, so that the hook goes through the C call.
  Function equal = Function::FromExternC(
      nullptr,
      [](void*, const TVMFFIAny* args, int32_t, TVMFFIAny* result) -> int {
        TVM_FFI_SAFE_CALL_BEGIN();
        auto value = [&](int i) { return AnyView::CopyFromTVMFFIAny(args[i]).as<Obj>()->value; };
        if (value(0) == 666) TVM_FFI_THROW(ValueError) << "evil";
        TypeTraits<bool>::MoveToAny(value(0) == value(1), result);
        TVM_FFI_SAFE_CALL_END();
      },
      nullptr);
  RegisterHook(Obj::RuntimeTypeIndex(), "__any_equal__", equal);
  Any a = make_object<Obj>(3), b = make_object<Obj>(3), c = make_object<Obj>(4);
  EXPECT_EQ(AnyHash()(a), AnyHash()(b));
  EXPECT_TRUE(AnyEqual()(a, b));
  EXPECT_FALSE(AnyEqual()(a, c));
  Any evil = make_object<Obj>(666);
  EXPECT_EQ(ErrorText([&] { AnyEqual()(evil, a); }), "ValueError: evil");
}

TEST(AnyHook, WrongResultIsAnError) {
  using Obj = ByValueObj<2>;
  RegisterHook(Obj::RuntimeTypeIndex(), "__any_hash__",
               Function::FromTyped([](AnyView) { return String("not a number"); }));
  RegisterHook(Obj::RuntimeTypeIndex(), "__any_equal__",
               Function::FromTyped([](AnyView, AnyView) { return 1; }));
  Any a = make_object<Obj>(1), b = make_object<Obj>(1);
  const std::string of_key = ", but that of `" + a.GetTypeKey() + "` returned `";
  EXPECT_EQ(ErrorText([&] { AnyHash()(a); }),
            "InternalError: __any_hash__ must return int" + of_key + "ffi.String`");
  EXPECT_EQ(ErrorText([&] { AnyEqual()(a, b); }),
            "InternalError: __any_equal__ must return bool" + of_key + "int`");
}

TEST(AnyHash, ColumnsExistBeforeAnyClientAsks) {
  for (const char* name : {"__any_hash__", "__any_equal__"}) {
    TVMFFIByteArray bytes{name, std::strlen(name)};
    EXPECT_NE(TVMFFIGetTypeAttrColumn(&bytes), nullptr) << name;
  }
}

}  // namespace
