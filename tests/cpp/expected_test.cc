// SPDX-License-Identifier: Apache-2.0
//
// expected.h: a value or the error in its place.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/expected.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

#include <string>
#include <type_traits>
#include <utility>

#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using namespace core_test;
using tether_test::ErrorText;

static_assert(sizeof(Expected<int>) == 16 && sizeof(Expected<void>) == 16 &&
              sizeof(Expected<Box>) == 16);
static_assert(!std::is_default_constructible_v<Expected<int>>);
static_assert(std::is_default_constructible_v<Expected<void>>);
static_assert(std::is_nothrow_move_constructible_v<Expected<String>>);
static_assert(std::is_same_v<decltype(Unexpected(std::declval<Error>())), Unexpected<Error>>);

Error SomeError() { return Error("ValueError", "some", ""); }

TEST(Expected, HoldsAValue) {
  Expected<int> e = 3;
  EXPECT_TRUE(e.is_ok() && e.has_value() && !e.is_err());
  EXPECT_EQ(e.value(), 3);
  EXPECT_EQ(e.type_index(), kTVMFFIInt);
  EXPECT_EQ(e.value_or(4), 3);
  EXPECT_EQ(ErrorText([&] { e.error(); }),
            "RuntimeError: Bad expected access: contains value, not error");
  EXPECT_EQ(ErrorText([&] { std::move(e).error(); }),
            "RuntimeError: Bad expected access: contains value, not error");
}

TEST(Expected, HoldsAnError) {
  Error error = SomeError();
  Expected<int> e = error;
  EXPECT_TRUE(e.is_err() && !e.is_ok() && !e.has_value());
  EXPECT_EQ(e.type_index(), kTVMFFIError);
  EXPECT_TRUE(e.error().same_as(error));
  EXPECT_EQ(e.value_or(4), 4);
  try {
    e.value();
    FAIL();
  } catch (const Error& thrown) {
    EXPECT_TRUE(thrown.same_as(error)) << "value() throws the contained error";
  }
  try {
    std::move(e).value();
    FAIL();
  } catch (const Error& thrown) {
    EXPECT_TRUE(thrown.same_as(error));
  }
}

TEST(Expected, TakesUnexpected) {
  Expected<String> e = Unexpected(SomeError());
  EXPECT_TRUE(e.is_err());
  EXPECT_EQ(e.error().message(), "some");
  Unexpected<> u(SomeError());
  EXPECT_EQ(u.error().kind(), "ValueError");
  EXPECT_EQ(std::move(u).error().kind(), "ValueError");
  const Unexpected<Error> c(SomeError());
  EXPECT_EQ(c.error().kind(), "ValueError");
}

TEST(Expected, RvalueAccessMoves) {
  Expected<Box> e = Box(1);
  Box box = std::move(e).value();
  EXPECT_TRUE(box.unique());
  Expected<Box> f = Box(2);
  EXPECT_TRUE(std::move(f).value_or(Box(3)).unique());
  Expected<Box> g = SomeError();
  EXPECT_TRUE(std::move(g).error().unique());
}

TEST(Expected, ErrorIsAnErrorEvenWhereItIsAlsoAValue) {
  Expected<ObjectRef> e = SomeError();
  EXPECT_TRUE(e.is_err());
  Expected<ObjectRef> ok = ObjectRef(Box(1));
  EXPECT_TRUE(ok.is_ok());
  Expected<Any> any = Any(SomeError());
  EXPECT_TRUE(any.is_err());
}

TEST(Expected, HoldsEveryStorableType) {
  EXPECT_EQ((Expected<Optional<int>>(Optional<int>(3)).value().value()), 3);
  Expected<Optional<int>> empty = Optional<int>(std::nullopt);
  EXPECT_TRUE(empty.is_ok());
  EXPECT_EQ(empty.type_index(), kTVMFFINone);
  EXPECT_FALSE(empty.value().has_value());
  EXPECT_EQ((Expected<Variant<int, String>>(Variant<int, String>(5)).value().get<int>()), 5);
  EXPECT_EQ((Expected<Array<int>>(Array<int>{1, 2}).value().size()), 2u);
  EXPECT_EQ((Expected<ObjectPtr<BoxObj>>(make_object<BoxObj>(3)).value()->value), 3);
  EXPECT_EQ((Expected<Arc<BoxObj>>(make_arc<BoxObj>(3)).value()->value), 3);
  EXPECT_TRUE((Expected<DLDataType>(DLDataType{kDLInt, 8, 1}).value() == DLDataType{kDLInt, 8, 1}));
}

TEST(Expected, VoidIsSuccessByDefault) {
  Expected<void> ok;
  EXPECT_TRUE(ok.is_ok());
  EXPECT_EQ(ok.type_index(), kTVMFFINone);
  ok.value();
  Expected<void> bad = SomeError();
  EXPECT_EQ(ErrorText([&] { bad.value(); }), "ValueError: some");
  EXPECT_EQ(bad.error().kind(), "ValueError");
  EXPECT_TRUE(Expected<void>(Unexpected(SomeError())).is_err());
  EXPECT_EQ(ErrorText([&] { ok.error(); }),
            "RuntimeError: Bad expected access: contains value, not error");
}

TEST(ExpectedTraits, UnwrapIntoAny) {
  EXPECT_EQ(Any(Expected<int>(3)).as<int>(), 3);
  EXPECT_EQ(Any(Expected<int>(SomeError())).type_index(), kTVMFFIError);
  EXPECT_EQ(Any(Expected<void>()).type_index(), kTVMFFINone);
  EXPECT_EQ(AnyView(Expected<int>(3)).type_index(), kTVMFFIInt);
}

TEST(ExpectedTraits, ReadBackStrictlyOrWithConversion) {
  EXPECT_EQ(Any(3).cast<Expected<int>>().value(), 3);
  EXPECT_EQ(Any(true).cast<Expected<int>>().value(), 1);
  EXPECT_TRUE(Any(SomeError()).cast<Expected<int>>().is_err());
  EXPECT_TRUE(Any(SomeError()).as<Expected<int>>().has_value());
  EXPECT_FALSE(Any(true).as<Expected<int>>().has_value());
  EXPECT_TRUE(Any().as<Expected<void>>().has_value());
  EXPECT_FALSE(Any(1).try_cast<Expected<void>>().has_value());
  EXPECT_EQ(ErrorText([] { Any(1.5).cast<Expected<int>>(); }),
            "TypeError: Cannot convert from type `float` to `Expected<int>`");
  Any dtype = DLDataType{kDLInt, 8, 1};
  EXPECT_TRUE(std::move(dtype).cast<Expected<DLDataType>>().is_ok());
  Any box = Box(1);
  EXPECT_TRUE(std::move(box).cast<Expected<Box>>().value()->value == 1);
}

TEST(ExpectedUnsafe, MovesCells) {
  Expected<Box> e = Box(1);
  EXPECT_EQ(details::ExpectedUnsafe::GetData(e).cast<Box>()->value, 1);
  EXPECT_EQ((details::ExpectedUnsafe::ValueAs<ObjectRef>(e).use_count()), 2);
  TVMFFIAny raw = details::ExpectedUnsafe::MoveToTVMFFIAny(std::move(e));
  EXPECT_EQ(raw.type_index, BoxObj::RuntimeTypeIndex());
  auto back = details::ExpectedUnsafe::MoveFromTVMFFIAny<ObjectRef>(raw);
  EXPECT_TRUE(back.is_ok());
  EXPECT_TRUE(std::move(back).value().unique());
}

// ---- functions that return or are called for Expected

TEST(ExpectedFunction, ErrorStateIsReturnedAsAValue) {
  auto halve = [](int x) -> Expected<int> {
    if (x % 2 != 0) return Unexpected(Error("ValueError", "odd", ""));
    return x / 2;
  };
  static_assert(std::is_same_v<details::FunctionInfo<decltype(halve)>::RetType, Expected<int>>);
  Function f = Function::FromTyped(halve);
  EXPECT_EQ(f(4).cast<int>(), 2);
  Any result = f(3);
  EXPECT_EQ(result.type_index(), kTVMFFIError) << "not raised";
  EXPECT_EQ(ErrorText([&] { f(3).cast<int>(); }),
            "TypeError: Cannot convert from type `ffi.Error` to `int`");
  EXPECT_EQ(f.CallExpected<int>(3).error().message(), "odd");
  EXPECT_EQ(f.CallExpected<int>(4).value(), 2);
}

TEST(CallExpected, ReturnsTheRaisedError) {
  Function f = Function::FromTyped([](int x) {
    if (x < 0) TVM_FFI_THROW(ValueError) << "negative";
    return x;
  });
  EXPECT_EQ(f.CallExpected<int>(3).value(), 3);
  EXPECT_EQ(f.CallExpected(3).value().cast<int>(), 3);
  Expected<int> failed = f.CallExpected<int>(-1);
  EXPECT_EQ(failed.error().kind(), "ValueError");
  EXPECT_EQ(failed.error().message(), "negative");
  Expected<Any> wrong_count = f.CallExpected();
  EXPECT_EQ(wrong_count.error().kind(), "TypeError");
}

TEST(CallExpected, ForeignExceptionsBecomeInternalErrors) {
  Function f = Function::FromTyped([] { throw std::runtime_error("foreign"); });
  Expected<void> result = f.CallExpected<void>();
  EXPECT_EQ(result.error().kind(), "InternalError");
  EXPECT_EQ(result.error().message(), "foreign");
}

TEST(CallExpected, MismatchedResultIsATypeError) {
  Function f = Function::FromTyped([] { return String("text"); });
  EXPECT_EQ(f.CallExpected<int>().error().kind(), "TypeError");
  EXPECT_EQ(f.CallExpected<int>().error().message(),
            "CallExpected: result type mismatch, expected int, but got ffi.SmallStr");
  EXPECT_EQ(f.CallExpected<void>().error().message(),
            "CallExpected: result type mismatch, expected void, but got ffi.SmallStr");
  EXPECT_TRUE(Function::FromTyped([] {}).CallExpected<void>().is_ok());
  Function returns_error = Function::FromTyped([] { return Error("KeyError", "k", ""); });
  EXPECT_EQ(returns_error.CallExpected<void>().error().kind(), "KeyError");
  EXPECT_EQ(returns_error.CallExpected<int>().error().kind(), "KeyError");
  EXPECT_TRUE(returns_error.CallExpected().is_err());
}

}  // namespace
