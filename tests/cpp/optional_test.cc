// SPDX-License-Identifier: Apache-2.0
//
// optional.h: the four representations and what they share.
#include <gtest/gtest.h>
#include <tvm/ffi/cast.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using namespace core_test;
using tether_test::ErrorText;

static_assert(sizeof(Optional<Box>) == 8 && sizeof(Optional<ObjectPtr<BoxObj>>) == 8);
static_assert(sizeof(Optional<Arc<BoxObj>>) == 8 && sizeof(Optional<Array<int>>) == 8);
static_assert(sizeof(Optional<int>) == 16 && sizeof(Optional<String>) == 16);
static_assert(sizeof(Optional<Optional<Box>>) == 16 && sizeof(Optional<Optional<int>>) == 16);
static_assert(sizeof(Optional<DLTensor*>) == sizeof(std::optional<DLTensor*>));
static_assert(!std::is_base_of_v<ObjectRef, Optional<Box>> &&
              !std::is_convertible_v<Optional<Box>, ObjectRef>);
static_assert(!std::is_base_of_v<ObjectRef, Optional<int>>);
static_assert(std::is_nothrow_move_constructible_v<Optional<Box>> &&
              std::is_nothrow_move_constructible_v<Optional<int>> &&
              std::is_nothrow_move_constructible_v<Optional<String>> &&
              std::is_nothrow_move_constructible_v<Optional<DLTensor*>>);
static_assert(is_optional_type_v<Optional<int>> && !is_optional_type_v<int>);
static_assert(use_object_ref_optional_v<Box> && !use_object_ref_optional_v<Optional<Box>>);
static_assert(is_object_ptr_type_v<ObjectPtr<BoxObj>> && is_arc_type_v<Arc<BoxObj>>);
static_assert(use_object_ptr_optional_v<Box> && use_object_ptr_optional_v<Arc<BoxObj>> &&
              !use_object_ptr_optional_v<int>);
static_assert(!std::is_constructible_v<Optional<String>, const char*>);
static_assert(!std::is_constructible_v<Optional<int>, std::nullptr_t>);
static_assert(std::is_constructible_v<Optional<Box>, std::nullptr_t>);
static_assert(!std::is_constructible_v<Optional<Number>, Optional<Int>> ||
              !std::is_convertible_v<Optional<Int>, Optional<Number>>);
static_assert(std::is_same_v<decltype(std::declval<Optional<Box>&>().value()), Box>);
static_assert(std::is_same_v<decltype(std::declval<Optional<int>>().value()), int>);
static_assert(
    std::is_same_v<decltype(std::declval<const Optional<DLTensor*>&>().value()), DLTensor* const&>);

template <typename O, typename T>
void EveryFormHolds(T value) {
  O empty, from_nullopt = std::nullopt;
  EXPECT_FALSE(empty.has_value());
  EXPECT_FALSE(static_cast<bool>(from_nullopt));
  EXPECT_TRUE(empty == std::nullopt);
  EXPECT_FALSE(empty != std::nullopt);
  const bool is_pointer =
      is_object_ptr_type_v<typename O::value_type> || is_arc_type_v<typename O::value_type>;
  const std::string text =
      is_pointer ? "RuntimeError: Bad optional access" : "RuntimeError: Back optional access";
  EXPECT_EQ(ErrorText([&] { empty.value(); }), text);
  EXPECT_EQ(ErrorText([&] { O().value(); }), text);
  O full = value;
  EXPECT_TRUE(full.has_value());
  EXPECT_TRUE(full != std::nullopt);
  EXPECT_TRUE(full == value);
  EXPECT_TRUE(full.value() == value);
  EXPECT_TRUE(*full == value);
  EXPECT_TRUE(full == std::optional<T>(value));
  EXPECT_TRUE(full != std::optional<T>());
  EXPECT_TRUE(empty == std::optional<T>());
  EXPECT_FALSE(empty != std::optional<T>());
  EXPECT_TRUE(empty != std::optional<T>(value));
  EXPECT_TRUE(empty != full);
  EXPECT_TRUE(empty == O());
  EXPECT_TRUE(empty.value_or(value) == value);
  O copy = full;
  EXPECT_TRUE(copy == full);
  O moved = std::move(copy);
  EXPECT_TRUE(moved == full);
  empty = value;
  EXPECT_TRUE(empty == full);
  empty = std::nullopt;
  EXPECT_FALSE(empty.has_value());
  empty = full;
  EXPECT_TRUE(empty.has_value());
  O from_std = std::optional<T>(value);
  EXPECT_TRUE(from_std == full);
  O from_empty_std = std::optional<T>();
  EXPECT_FALSE(from_empty_std.has_value());
}

TEST(Optional, EveryFormHoldsAValueOrNothing) {
  EveryFormHolds<Optional<int>>(3);
  EveryFormHolds<Optional<double>>(1.5);
  EveryFormHolds<Optional<bool>>(false);
  EveryFormHolds<Optional<String>>(String("text"));
  EveryFormHolds<Optional<String>>(String("a text on the heap"));
  EveryFormHolds<Optional<Box>>(Box(1));
  EveryFormHolds<Optional<SolidBox>>(SolidBox(1));
  EveryFormHolds<Optional<Array<int>>>(Array<int>{1, 2});
  EveryFormHolds<Optional<ObjectPtr<BoxObj>>>(make_object<BoxObj>(1));
  EveryFormHolds<Optional<Arc<BoxObj>>>(make_arc<BoxObj>(1));
  DLTensor tensor{};
  EveryFormHolds<Optional<DLTensor*>>(&tensor);
  EveryFormHolds<Optional<Optional<int>>>(Optional<int>(3));
  EveryFormHolds<Optional<Optional<Box>>>(Optional<Box>(Box(1)));
}

TEST(Optional, NullptrEmptiesTheStorableForms) {
  Optional<int> i = 1;
  EXPECT_TRUE(i != nullptr);
  i = nullptr;
  EXPECT_TRUE(i == nullptr);
  Optional<Box> b = Box(1);
  b = nullptr;
  EXPECT_TRUE(b == nullptr);
  Optional<ObjectPtr<BoxObj>> p = make_object<BoxObj>(1);
  p = nullptr;
  EXPECT_TRUE(p == nullptr);
  EXPECT_FALSE(Optional<Box>(nullptr).has_value());
  EXPECT_FALSE(Optional<Arc<BoxObj>>(nullptr).has_value());
}

TEST(Optional, RvalueAccessMovesOut) {
  Optional<Box> box = Box(1);
  Box taken = std::move(box).value();
  EXPECT_TRUE(taken.unique());
  EXPECT_FALSE(box.has_value());
  box = Box(2);
  EXPECT_TRUE((*std::move(box)).unique());
  EXPECT_FALSE(box.has_value());
  Optional<ObjectPtr<BoxObj>> ptr = make_object<BoxObj>(1);
  EXPECT_TRUE(std::move(ptr).value().unique());
  EXPECT_FALSE(ptr.has_value());
  Optional<String> text = String("a text on the heap");
  String moved = std::move(text).value();
  EXPECT_FALSE(text.has_value());
  EXPECT_EQ(moved, "a text on the heap");
}

TEST(Optional, MovedFromReadsAsEmpty) {
  Optional<Box> a = Box(1);
  Optional<Box> b = std::move(a);
  EXPECT_FALSE(a.has_value());
  Optional<String> c = String("x");
  Optional<String> d = std::move(c);
  EXPECT_FALSE(c.has_value());
  EXPECT_TRUE(b.has_value() && d.has_value());
}

TEST(Optional, ReferenceFormAnswersLikeAReference) {
  Box box(1);
  Optional<Box> optional = box;
  EXPECT_EQ(box.use_count(), 2);
  EXPECT_TRUE(optional.same_as(box));
  EXPECT_EQ(optional.get(), box.get());
  EXPECT_EQ(optional.use_count(), 2);
  EXPECT_EQ(optional->value, 1);
  EXPECT_TRUE(optional.same_as(Optional<Box>(box)));
  EXPECT_FALSE(optional.unique());
  EXPECT_FALSE(Optional<Box>(UnsafeInit{}).has_value());
  static_assert(std::is_same_v<Optional<Box>::ContainerType, BoxObj>);
  static_assert(std::is_same_v<Optional<ObjectPtr<BoxObj>>::ContainerType, BoxObj>);
  static_assert(std::is_same_v<Optional<Box>::value_type, Box>);
  EXPECT_FALSE(GetRef<Optional<Box>>(static_cast<const BoxObj*>(nullptr)).has_value());
  EXPECT_TRUE(GetRef<Optional<Box>>(box.get()).same_as(box));
}

TEST(Optional, ReadsItsContentWithoutConversion) {
  Box box(1);
  Optional<Box> reference = box;
  EXPECT_EQ(reference.as<BoxObj>(), box.get());
  EXPECT_TRUE(reference.as<ObjectRef>()->same_as(box));
  EXPECT_EQ(Optional<Box>().as<BoxObj>(), nullptr);
  Optional<int> number = 3;
  EXPECT_EQ(number.as<int64_t>(), 3);
  EXPECT_FALSE(number.as<String>().has_value());
  EXPECT_EQ(Optional<ObjectPtr<BoxObj>>(make_object<BoxObj>(2)).as<BoxObj>()->value, 2);
  // The && form moves on success, and leaves the value intact when it throws.
  EXPECT_EQ(ErrorText([&] { std::move(reference).as_or_throw<String>(); }),
            "TypeError: Cannot treat type `" + box.GetTypeKey() + "` as type `str`");
  EXPECT_TRUE(reference.has_value());
  EXPECT_TRUE(std::move(reference).as_or_throw<ObjectRef>().same_as(box));
  EXPECT_FALSE(reference.has_value());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(ErrorText([] { Optional<int>().as_or_throw<int>(); }),
            "TypeError: Cannot treat type `None` as type `int`");
}

TEST(Optional, PointerFormAnswersLikeAPointer) {
  ObjectPtr<BoxObj> ptr = make_object<BoxObj>(1);
  Optional<ObjectPtr<BoxObj>> optional = ptr;
  EXPECT_EQ(optional.get(), ptr.get());
  EXPECT_EQ(optional.use_count(), 2);
  EXPECT_FALSE(optional.unique());
  EXPECT_TRUE(optional.same_as(Optional<ObjectPtr<BoxObj>>(ptr)));
  EXPECT_FALSE(Optional<ObjectPtr<BoxObj>>(ObjectPtr<BoxObj>()).has_value()) << "null is nothing";
}

TEST(Optional, AnyFormHasStrictViews) {
  Optional<int> i = 1;
  EXPECT_EQ(i.as<int>(), 1);
  EXPECT_FALSE(i.as<bool>().has_value());
  EXPECT_TRUE(i.same_as(Optional<int>(1)));
  EXPECT_FALSE(i.same_as(Optional<int>()));
}

TEST(Optional, ComparesWithWhatTheValueComparesWith) {
  Optional<String> s = String("abc");
  EXPECT_TRUE(s == "abc");
  EXPECT_TRUE(s != "abd");
  EXPECT_TRUE(s == String("abc"));
  EXPECT_TRUE(s == std::string("abc"));
  Optional<double> d = 11.0;
  EXPECT_TRUE(d == 11);
  EXPECT_TRUE(d != 12);
  EXPECT_TRUE(Optional<double>() != 12);
  EXPECT_FALSE(Optional<double>() == 12);
}

TEST(Optional, InstantiatesForTypesWithoutComparison) {
  Optional<Bytes> bytes = Bytes("ab", 2);
  EXPECT_TRUE(bytes != std::nullopt);
  EXPECT_FALSE(Optional<Bytes>() != std::nullopt);
  EXPECT_EQ(Optional<Bytes>().value_or(std::string("default")).size(), 7u);
}

TEST(Optional, ValueOrConverts) {
  EXPECT_EQ(Optional<String>().value_or("default"), "default");
  EXPECT_EQ(Optional<String>(String("x")).value_or("default"), "x");
  EXPECT_EQ(Optional<double>().value_or(2), 2.0);
}

TEST(Optional, AssignsFromText) {
  Optional<String> s;
  s = "literal";
  EXPECT_TRUE(s == "literal");
  s = std::string("std");
  EXPECT_TRUE(s == "std");
}

TEST(Optional, NestsEngagedValues) {
  Optional<Optional<int>> outer = Optional<int>(3);
  ASSERT_TRUE(outer.has_value());
  EXPECT_EQ(outer.value().value(), 3);
  Optional<Optional<int>> collapsed = Optional<int>();
  EXPECT_FALSE(collapsed.has_value()) << "an empty inner optional is nothing";
  Optional<Optional<Box>> boxes = Optional<Box>(Box(2));
  EXPECT_EQ(boxes.value().value()->value, 2);
}

TEST(Optional, WorksInBraceListsAndLoops) {
  Box box(1);
  Array<Optional<Box>> boxes{box, std::nullopt};
  EXPECT_TRUE(boxes[0].has_value());
  EXPECT_FALSE(boxes[1].has_value());
  Array<Optional<Array<int>>> nested{Array<int>{1, 2, 3}};
  int sum = 0;
  for (int x : nested[0].value()) sum += x;
  EXPECT_EQ(sum, 6);
}

TEST(OptionalTraits, NoneIsNothingAndTheRestIsTheValue) {
  EXPECT_EQ(Any(Optional<int>()).type_index(), kTVMFFINone);
  EXPECT_EQ(Any(Optional<int>(3)).type_index(), kTVMFFIInt);
  EXPECT_EQ(AnyView(Optional<Box>()).type_index(), kTVMFFINone);
  EXPECT_EQ(Any(Optional<Box>(Box(1))).cast<Box>()->value, 1);
  EXPECT_FALSE(Any().cast<Optional<int>>().has_value());
  EXPECT_EQ(Any(true).cast<Optional<int>>().value(), 1);
  EXPECT_FALSE(Any(true).as<Optional<int>>().has_value());
  EXPECT_TRUE(Any().as<Optional<int>>().has_value());
  EXPECT_EQ(ErrorText([] { Any(1.5).cast<Optional<int>>(); }),
            "TypeError: Cannot convert from type `float` to `Optional<int>`");
  EXPECT_EQ(ErrorText([] { Any(1).cast<Optional<SolidBox>>(); }),
            "TypeError: Cannot convert from type `int` to `Optional<core_test.Box>`");
  Any any = Box(1);
  Optional<Box> moved = std::move(any).cast<Optional<Box>>();
  EXPECT_TRUE(any == nullptr);
  EXPECT_TRUE(moved.unique());
}

TEST(OptionalTraits, AreParametersOfFunctions) {
  Function f = Function::FromTyped([](Optional<int> x, Optional<String> s) -> Optional<String> {
    if (!x.has_value()) return std::nullopt;
    return s.value_or("none") + String(std::to_string(x.value()));
  });
  EXPECT_TRUE(f(nullptr, "a") == nullptr);
  EXPECT_EQ(f(1, "a").cast<String>(), "a1");
  EXPECT_EQ(f(1, nullptr).cast<String>(), "none1");
  EXPECT_EQ(ErrorText([&] { f("x", "a"); }),
            "TypeError: Mismatched type on argument #0 when calling: `(0: Optional<int>, 1: "
            "Optional<str>) -> Optional<str>`. Expected `Optional<int>` but got `const char*`");
}

}  // namespace
