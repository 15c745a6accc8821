// SPDX-License-Identifier: Apache-2.0
//
// Tuple: elements, sharing, structured bindings and conversions.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/tuple.h>
#include <tvm/ffi/function.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using namespace core_test;
using tether_test::ErrorText;

TEST(Tuple, IsAnArrayOfItsElements) {
  static_assert(sizeof(Tuple<int, String>) == 8);
  static_assert(std::is_same_v<Tuple<int>::ContainerType, ArrayObj>);
  static_assert(!Tuple<int>::_type_container_is_exact && !Tuple<int>::_type_is_nullable);
  static_assert(std::is_nothrow_move_constructible_v<Tuple<int>>);
  Tuple<int, String> t(1, "one");
  EXPECT_EQ(t->type_index(), kTVMFFIArray);
  Array<Any> array = Any(t).cast<Array<Any>>();
  EXPECT_TRUE(array.same_as(t));
  EXPECT_EQ(array.size(), 2u);
  EXPECT_EQ(array.capacity(), 2u);
  EXPECT_EQ(TypeToFieldStaticTypeIndex<Tuple<int>>::value, 64);
  EXPECT_EQ(TypeToRuntimeTypeIndex<Tuple<int>>::v(), 71);
}

TEST(Tuple, ConstructsAndReadsElements) {
  Tuple<int, double> defaults;
  EXPECT_EQ(defaults.use_count(), 1);
  EXPECT_EQ(defaults.get<0>(), 0);
  EXPECT_EQ(defaults.get<1>(), 0.0);
  Tuple<int, String, Box> t(1, "x", Box(3));
  EXPECT_EQ(t.get<1>(), "x");
  EXPECT_EQ(get<2>(t)->value, 3);
  Tuple<Box> explicit_conversion(7);
  EXPECT_EQ(explicit_conversion.get<0>()->value, 7);
  EXPECT_FALSE(Tuple<int>(UnsafeInit{}).defined());
  Tuple deduced(1, String("s"));
  static_assert(std::is_same_v<decltype(deduced), Tuple<int, String>>);
  static_assert(std::tuple_size_v<Tuple<int, String>> == 2);
  static_assert(std::is_same_v<std::tuple_element_t<1, Tuple<int, String>>, String>);
  static_assert(std::is_same_v<decltype(deduced.get<1>()), String>);
  EXPECT_EQ(Any(Tuple<>()).cast<Array<Any>>().size(), 0u);
}

TEST(Tuple, SetCopiesASharedTuple) {
  Tuple<int, String> a(1, "x");
  Tuple<int, String> b = a;
  EXPECT_TRUE(a.same_as(b));
  b.Set<0>(2);
  EXPECT_EQ(a.get<0>(), 1);
  EXPECT_EQ(b.get<0>(), 2);
  const Object* address = b.operator->();
  b.Set<1>("y");
  EXPECT_EQ(b.operator->(), address) << "the only handle writes in place";
  EXPECT_EQ(b.get<1>(), "y");
}

TEST(Tuple, AnRValueGivesItsElementsAway) {
  Box box(1);
  Tuple<Box, int> t(box, 5);
  EXPECT_EQ(box.use_count(), 2);
  {
    Box copy = t.get<0>();
    EXPECT_EQ(box.use_count(), 3);
  }
  Box moved = std::move(t).get<0>();
  EXPECT_EQ(box.use_count(), 2) << "moved, not copied";
  EXPECT_FALSE(t.get<0>().defined()) << "what is left is null";
  EXPECT_EQ(std::move(t).get<1>(), 5);
  // With a second owner the element stays.
  Tuple<Box> shared(box);
  Tuple<Box> other = shared;
  Box copied = std::move(shared).get<0>();
  EXPECT_TRUE(other.get<0>().same_as(box));
}

TEST(Tuple, StructuredBindings) {
  Tuple<int, Box> t(1, Box(2));
  auto [n, box] = t;
  EXPECT_EQ(n, 1);
  EXPECT_EQ(box.use_count(), 2) << "copied from an lvalue";
  auto [m, taken] = Tuple<int, Box>(3, Box(4));
  EXPECT_EQ(m, 3);
  EXPECT_EQ(taken.use_count(), 1) << "moved out of an rvalue";
  auto [any] = Tuple<Any>(Any("x"));
  EXPECT_EQ(any.cast<String>(), "x");
}

TEST(Tuple, WiderElementsShareTheObject) {
  Tuple<int, Int> narrow(1, Int(2));
  Tuple<Any, Number> wide = narrow;
  EXPECT_TRUE(wide.same_as(narrow));
  wide = narrow;
  Tuple<Any, Any> widest = std::move(wide);
  EXPECT_FALSE(wide.defined());
  EXPECT_TRUE(widest.same_as(narrow));
  static_assert(type_subsumes_v<Tuple<Any, Number>, Tuple<int, Int>>);
  static_assert(!type_subsumes_v<Tuple<Any>, Tuple<int, Int>>);
  static_assert(!std::is_convertible_v<Tuple<Number>, Tuple<Int>>);
  // One element: another tuple is converted, not wrapped, whatever its value category.
  Tuple<Int> one(Int(1));
  Tuple<Any> from_lvalue(one);
  EXPECT_TRUE(from_lvalue.same_as(one));
  Tuple<Tuple<Int>> nested(one);
  EXPECT_TRUE(nested.get<0>().same_as(one));
  Tuple<Int> copy(one);
  EXPECT_TRUE(copy.same_as(one));
}

TEST(Tuple, InsideOtherContainers) {
  Array<Tuple<String>> array = {Tuple<String>("a"), Tuple<String>("b")};
  EXPECT_EQ(array[1].get<0>(), "b");
  std::vector<Tuple<int>> vector = {Tuple<int>(1), Tuple<int>(2)};
  EXPECT_EQ(vector[1].get<0>(), 2);
}

TEST(Tuple, Conversions) {
  Tuple<int, double> t(1, 2.5);
  EXPECT_TRUE((Any(t).cast<Tuple<int, double>>().same_as(t)));
  EXPECT_TRUE((Any(t).cast<Tuple<Any, Any>>().same_as(t)));
  auto converted = Any(t).cast<Tuple<double, double>>();
  EXPECT_FALSE(converted.same_as(t));
  EXPECT_EQ(converted.get<0>(), 1.0);
  EXPECT_EQ(t.get<0>(), 1);
  EXPECT_FALSE((Any(t).as<Tuple<double, double>>().has_value()));
  EXPECT_FALSE((Any(List<Any>{1, 2.5}).try_cast<Tuple<int, double>>().has_value()));
  auto error = [](const Any& any) { return ErrorText([&] { any.cast<Tuple<int, Number>>(); }); };
  EXPECT_EQ(
      error(Array<Any>{1}),
      "TypeError: Cannot convert from type `Array[size=1]` to `Tuple<int, core_test.Number>`");
  EXPECT_EQ(error(Array<Any>{1, 2}),
            "TypeError: Cannot convert from type `Array[index 1: int]` to "
            "`Tuple<int, core_test.Number>`");
  EXPECT_EQ(error(Array<Any>{"s", 2}),
            "TypeError: Cannot convert from type `Array[index 0: ffi.SmallStr]` to "
            "`Tuple<int, core_test.Number>`");
  EXPECT_EQ(error(1),
            "TypeError: Cannot convert from type `int` to `Tuple<int, core_test.Number>`");
  EXPECT_EQ(error(nullptr),
            "TypeError: Cannot convert from type `None` to `Tuple<int, core_test.Number>`");
}

TEST(Tuple, AsArgumentAndResult) {
  Function swap = Function::FromTyped(
      [](Tuple<int, String> t) { return Tuple<String, int>(t.get<1>(), t.get<0>()); });
  auto result = swap(Tuple<int, String>(1, "x")).cast<Tuple<String, int>>();
  EXPECT_EQ(result.get<0>(), "x");
  EXPECT_EQ((TypeTraits<Tuple<int, String>>::TypeStr()), "Tuple<int, str>");
  EXPECT_EQ((TypeTraits<Tuple<int, Any>>::TypeSchema()),
            R"({"type":"Tuple","args":[{"type":"int"},{"type":"Any"}]})");
}

}  // namespace
