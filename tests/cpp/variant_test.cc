// SPDX-License-Identifier: Apache-2.0
//
// Variant: alternatives, identity and conversions.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/function.h>

#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using namespace core_test;
using tether_test::ErrorText;

TEST(Variant, IsOneCellAndTakesOnlyItsAlternatives) {
  using V = Variant<int, String>;
  static_assert(sizeof(V) == 16 && sizeof(Variant<Box, Number>) == 16);
  static_assert(!std::is_base_of_v<ObjectRef, Variant<Box>>);
  static_assert(!std::is_default_constructible_v<V>);
  static_assert(std::is_nothrow_move_constructible_v<V>);
  static_assert(!V::_type_container_is_exact);
  static_assert(!std::is_constructible_v<V, long> && !std::is_constructible_v<V, const char*>);
  static_assert(!std::is_constructible_v<V, double>);
  static_assert(std::is_constructible_v<Variant<Number, int>, Int>, "a derived reference fits");
  static_assert(V::variant_contains_v<int> && !V::variant_contains_v<double>);
  static_assert(type_subsumes_v<V, int> && type_subsumes_v<V, V> && !type_subsumes_v<V, double>);
  static_assert(std::is_convertible_v<Array<int>, Array<V>>);
}

TEST(Variant, HoldsOneValueAtATime) {
  Variant<int, String, Box> v = 1;
  EXPECT_EQ(v.as<int>(), 1);
  EXPECT_EQ(v.as<String>(), std::nullopt);
  EXPECT_EQ(v.get<int>(), 1);
  v = String("x");
  EXPECT_EQ(v.get<String>(), "x");
  EXPECT_EQ(v.GetTypeKey(), "ffi.SmallStr");
  EXPECT_EQ(ErrorText([&] { v.get<int>(); }),
            "TypeError: Cannot convert from type `ffi.SmallStr` to `int`");
  v = Box(5);
  ASSERT_NE(v.as<BoxObj>(), nullptr);
  EXPECT_EQ(v.as<BoxObj>()->value, 5);
  EXPECT_EQ(v.as<IntObj>(), nullptr);
  Variant<int, String, Box> copy = v;
  EXPECT_TRUE(copy.same_as(v));
}

TEST(Variant, AnRValueGivesItsValueAway) {
  Variant<int, Box> v = Box(1);
  Box taken = std::move(v).get<Box>();
  EXPECT_EQ(taken.use_count(), 1);
}

TEST(Variant, SameAsComparesCells) {
  using V = Variant<int, String>;
  EXPECT_TRUE(V(1).same_as(V(1)));
  EXPECT_FALSE(V(1).same_as(V(2)));
  String text("a string that is on the heap");
  EXPECT_TRUE(V(text).same_as(V(text)));
  EXPECT_FALSE(V(text).same_as(V(String("a string that is on the heap"))));
}

TEST(Variant, NullableAlternatives) {
  Variant<ObjectPtr<BoxObj>, int> v = ObjectPtr<BoxObj>(nullptr);
  EXPECT_EQ(v.get<ObjectPtr<BoxObj>>(), nullptr);
  v = make_object<BoxObj>(3);
  EXPECT_EQ(v.get<ObjectPtr<BoxObj>>()->value, 3);
  Variant<Optional<int>, String> optional = Optional<int>(std::nullopt);
  EXPECT_FALSE(optional.get<Optional<int>>().has_value());
  Variant<Arc<BoxObj>, int> arc = make_arc<BoxObj>(4);
  EXPECT_EQ(arc.get<Arc<BoxObj>>()->value, 4);
}

TEST(Variant, HashesByTheReferenceItHolds) {
  Box box(1);
  using V = Variant<Box, Number>;
  V a = box, b = Int(1);
  EXPECT_EQ(ObjectPtrHash()(a), ObjectPtrHash()(box));
  EXPECT_TRUE(ObjectPtrEqual()(a, V(box)));
  EXPECT_FALSE(ObjectPtrEqual()(a, b));
  std::unordered_set<V, ObjectPtrHash, ObjectPtrEqual> set = {a, b, a};
  EXPECT_EQ(set.size(), 2u);
}

TEST(Variant, Conversions) {
  using V = Variant<double, int>;
  EXPECT_TRUE(Any(1).cast<V>().as<int>().has_value()) << "what fits exactly is kept";
  EXPECT_TRUE(Any(1.5).cast<V>().as<double>().has_value());
  EXPECT_EQ(Any(true).cast<V>().get<double>(), 1.0) << "else the first that converts";
  EXPECT_FALSE(Any(true).as<V>().has_value());
  EXPECT_EQ(ErrorText([] { Any("s").cast<V>(); }),
            "TypeError: Cannot convert from type `ffi.SmallStr` to `Variant<float, int>`");
  Any any = Variant<int, Box>(Box(2));
  EXPECT_EQ(any.type_index(), BoxObj::RuntimeTypeIndex());
  Box box = std::move(any).cast<Variant<int, Box>>().get<Box>();
  EXPECT_EQ(box.use_count(), 1);
  Array<Any> mixed = {1, Box(1)};
  EXPECT_TRUE((Any(mixed).cast<Array<Variant<int, Box>>>().same_as(mixed)));
  Function f = Function::FromTyped([](Array<Variant<int, Int>>) {});
  EXPECT_EQ(ErrorText([&] {
              f(Array<Any>{1, 2.5});
            }),
            "TypeError: Mismatched type on argument #0 when calling: `(0: Array<Variant<int, "
            "core_test.Int>>) -> void`. Expected `Array<Variant<int, core_test.Int>>` but got "
            "`Array[index 1: float]`");
  EXPECT_EQ((TypeTraits<Variant<int, String>>::TypeSchema()),
            R"({"type":"Variant","args":[{"type":"int"},{"type":"ffi.String"}]})");
  EXPECT_EQ((TypeToFieldStaticTypeIndex<Variant<int, String>>::value), -1);
  Variant<Any, int> anything = 2.5;
  EXPECT_EQ(anything.get<Any>().cast<double>(), 2.5);
}

}  // namespace
