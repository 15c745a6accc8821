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
  // Of an Expected that is not const, the data may be moved out.
  EXPECT_EQ(details::ExpectedUnsafe::GetData(std::as_const(e)).cast<Box>()->value, 1);
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

TEST(Expected, ConvertsValuesAndOtherExpecteds) {
  auto text = []() -> Expected<String> { return "from a literal"; };
  EXPECT_EQ(text().value(), "from a literal");
  Expected<int> number = 3;
  Expected<Any> any = number;
  EXPECT_EQ(any.value().cast<int>(), 3);
  EXPECT_EQ(Expected<double>(number).value(), 3.0);
  Expected<int> failed = Error("KeyError", "missing", "");
  EXPECT_EQ(Expected<double>(failed).error().kind(), "KeyError");
  EXPECT_TRUE(Expected<Any>(failed).error().same_as(failed.error()));
  static_assert(type_subsumes_v<Expected<Any>, Expected<int>> &&
                !type_subsumes_v<Expected<int>, Expected<Any>>);
  static_assert(!std::is_convertible_v<Expected<void>, Expected<int>>);
  static_assert(std::is_nothrow_move_constructible_v<Expected<Box>> &&
                std::is_nothrow_move_constructible_v<Unexpected<Error>>);
}

TEST(Expected, ReadsTheValueAsAnotherType) {
  Expected<Any> any = Any(Box(1));
  EXPECT_EQ(any.as_or_error<Box>().value()->value, 1);
  Error mismatch = any.as_or_error<String>().error();
  EXPECT_EQ(mismatch.kind() + ": " + mismatch.message(),
            "TypeError: Cannot treat type `" + any.value().GetTypeKey() + "` as type `str`");
  EXPECT_EQ(mismatch.backtrace(), "");
  EXPECT_TRUE(std::move(any).as_or_error<String>().is_err());
  EXPECT_EQ(any.value().cast<Box>()->value, 1);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(std::move(any).as_or_error<Box>().value()->value, 1);
  Expected<Any> failed = Error("KeyError", "missing", "");
  EXPECT_TRUE(failed.as_or_error<int>().error().same_as(failed.error()));
}

Expected<int> Checked(int value) {
  TVM_FFI_RET_CHECK(value != 0, ValueError) << "zero is " << std::hex << 255;
  if (value == 1)
    TVM_FFI_RET_CHECK_LT(value, 1, IndexError) << "one";
  else
    TVM_FFI_RET_ICHECK_NE(value, 2) << std::endl;
  return value;
}

TEST(Expected, ChecksReturnTheirError) {
  auto text = [](const Error& error) { return error.kind() + ": " + error.message(); };
  EXPECT_EQ(Checked(3).value(), 3);
  Error zero = Checked(0).error();
  EXPECT_EQ(text(zero), "ValueError: Check failed: (value != 0) is false: zero is ff");
  EXPECT_EQ(zero.backtrace().substr(0, 8), "  File \"");
  EXPECT_EQ(zero.backtrace().find('\n'), zero.backtrace().size() - 1);
  EXPECT_EQ(text(Checked(1).error()), "IndexError: Check failed: value < 1 (1 vs. 1) : one");
  EXPECT_EQ(text(Checked(2).error()), "InternalError: Check failed: value != 2 (2 vs. 2) : \n");
  auto nothing = []() -> Expected<void> { return TVM_FFI_UNEXPECTED(TypeError) << "no"; };
  EXPECT_EQ(text(nothing().error()), "TypeError: no");
  auto unexpected = []() -> Unexpected<Error> { return TVM_FFI_UNEXPECTED(TypeError) << "un"; };
  EXPECT_EQ(text(unexpected().error()), "TypeError: un");
}

}  // namespace
