// SPDX-License-Identifier: Apache-2.0
//
// rvalue_ref.h: arguments the callee may take over.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/rvalue_ref.h>

#include <type_traits>
#include <utility>

#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using namespace core_test;
using tether_test::ErrorText;

static_assert(sizeof(RValueRef<Box>) == 8);
static_assert(!TypeTraits<RValueRef<Box>>::storage_enabled);
static_assert(std::is_same_v<decltype(RValueRef(std::declval<Box>())), RValueRef<Box>>);
static_assert(!std::is_convertible_v<Box, RValueRef<Box>>);

TEST(RValueRef, TakesTheObjectAndGivesItBack) {
  Box box(1);
  const BoxObj* raw = box.get();
  RValueRef<Box> ref(std::move(box));
  EXPECT_FALSE(box.defined());
  Box back = *std::move(ref);
  EXPECT_EQ(back.get(), raw);
  EXPECT_TRUE(back.unique());
}

TEST(RValueRef, CalleeHoldsTheOnlyReference) {
  Function f = Function::FromTyped([](RValueRef<Box> arg) {
    Box box = *std::move(arg);
    return box.use_count();
  });
  EXPECT_EQ(f(RValueRef(Box(1))).cast<int>(), 1);
  Box kept(1);
  EXPECT_EQ(f(RValueRef(Box(kept))).cast<int>(), 2);
  EXPECT_EQ(f(kept).cast<int>(), 2) << "an ordinary argument stays with the caller";
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(RValueRef, AnyParameterMovesItOut) {
  Function f = Function::FromTyped([](Any arg) { return arg.cast<const BoxObj*>()->use_count(); });
  EXPECT_EQ(f(RValueRef(Box(1))).cast<int>(), 1);
}

TEST(RValueRef, ViewParameterLeavesItWithTheCaller) {
  Function f = Function::FromTyped([](AnyView arg) { return arg.type_index(); });
  EXPECT_EQ(f(RValueRef(Box(1))).cast<int>(), kTVMFFIObjectRValueRef);
}

TEST(RValueRef, PlainReferenceParameterRefusesIt) {
  Function f = Function::FromTyped([](Box box) { return 1; });
  EXPECT_EQ(ErrorText([&] { f(RValueRef(Box(1))); }),
            "TypeError: Mismatched type on argument #0 when calling: `(0: core_test.Box) -> int`. "
            "Expected `core_test.Box` but got `ObjectRValueRef`");
}

TEST(RValueRef, MismatchNamesTheInnerType) {
  Function f = Function::FromTyped([](RValueRef<Box> box) { return 1; });
  EXPECT_EQ(
      ErrorText([&] { f(RValueRef(Int(1))); }),
      "TypeError: Mismatched type on argument #0 when calling: `(0: RValueRef<core_test.Box>) -> "
      "int`. Expected `RValueRef<core_test.Box>` but got `RValueRef<core_test.Int>`");
  EXPECT_EQ(
      ErrorText([&] { f(1); }),
      "TypeError: Mismatched type on argument #0 when calling: `(0: RValueRef<core_test.Box>) -> "
      "int`. Expected `RValueRef<core_test.Box>` but got `int`");
  Function g = Function::FromTyped([](RValueRef<Array<int>> a) { return 1; });
  EXPECT_EQ(
      ErrorText([&] {
        g(RValueRef(Array<Any>{1, 2.5}));
      }),
      "TypeError: Mismatched type on argument #0 when calling: `(0: RValueRef<Array<int>>) -> "
      "int`. Expected `RValueRef<Array<int>>` but got `RValueRef<Array[index 1: float]>`");
}

TEST(RValueRef, ConversionCopiesAndLeavesTheSlot) {
  Function f = Function::FromTyped([](RValueRef<Array<double>> a) {
    Array<double> array = *std::move(a);
    return array[0];
  });
  RValueRef<Array<int>> source(Array<int>{1, 2});
  EXPECT_EQ(f(source).cast<double>(), 1.0);
  Array<int> still_there = *std::move(source);
  EXPECT_EQ(still_there.size(), 2u);
}

TEST(RValueRef, FailedCallLosesNothing) {
  int before = BoxObj::alive;
  {
    Function f = Function::FromTyped([](RValueRef<Box> a, int b) { return 1; });
    RValueRef<Box> ref(Box(1));
    EXPECT_NE(ErrorText([&] { f(ref, "not an int"); }), "no error");
  }
  EXPECT_EQ(BoxObj::alive, before);
}

TEST(RValueRef, NotNullableReferenceCanBePassed) {
  Function f = Function::FromTyped([](const Any& any) { return any.cast<SolidBox>()->value; });
  EXPECT_EQ(f(RValueRef<SolidBox>(SolidBox(5))).cast<int>(), 5);
}

TEST(RValueRef, PlainTypeNames) {
  EXPECT_EQ(TypeTraits<RValueRef<Box>>::TypeStr(), "RValueRef<core_test.Box>");
  EXPECT_EQ(TypeTraits<RValueRef<Box>>::TypeSchema(),
            R"({"type":"ObjectRValueRef","args":[{"type":"core_test.Box"}]})");
}

}  // namespace
