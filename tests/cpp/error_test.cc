// SPDX-License-Identifier: Apache-2.0
//
// error.h: the error object, its text, the throw and check macros.
#include <gtest/gtest.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using core_test::Box;
using tether_test::Contains;
using tether_test::ErrorText;

static_assert(sizeof(Error) == 16 && sizeof(ErrorObj) == 96);
static_assert(std::is_base_of_v<std::exception, Error> && std::is_base_of_v<ObjectRef, Error>);
static_assert(std::is_nothrow_move_constructible_v<Error>);
static_assert(!Error::_type_is_nullable);
static_assert(!std::is_default_constructible_v<Error>);

TEST(ErrorLayout, ObjectPointerFollowsTheVtable) {
  Error error("ValueError", "text", "");
  void* words[2];
  std::memcpy(words, static_cast<void*>(&error), sizeof(words));
  EXPECT_EQ(words[1], details::ObjectUnsafe::RawObjectPtrFromObjectRef(error));
  auto* as_exception = static_cast<std::exception*>(&error);
  EXPECT_EQ(static_cast<void*>(as_exception), static_cast<void*>(&error));
}

TEST(Error, HoldsKindMessageAndBacktrace) {
  Error error("ValueError", "a message", "  File \"f.cc\", line 1, in g\n");
  EXPECT_EQ(error.kind(), "ValueError");
  EXPECT_EQ(error.message(), "a message");
  EXPECT_EQ(error.backtrace(), "  File \"f.cc\", line 1, in g\n");
  EXPECT_STREQ(error.what(), "a message");
  EXPECT_FALSE(error.cause_chain().has_value());
  EXPECT_FALSE(error.extra_context().has_value());
  TVMFFIByteArray bytes{"from bytes", 10};
  EXPECT_EQ(Error("K", "m", &bytes).backtrace(), "from bytes");
}

TEST(Error, KeepsEmbeddedNulsAndTerminatesEverything) {
  Error error("Kind", std::string("a\0b", 3), std::string("t\0u", 3));
  EXPECT_EQ(error.message().size(), 3u);
  EXPECT_EQ(error.backtrace().size(), 3u);
  EXPECT_EQ(error->message.data[3], '\0');
  EXPECT_EQ(error->kind.data[4], '\0');
  EXPECT_EQ(error->backtrace.data[3], '\0');
}

TEST(Error, TracebackReversesTheLines) {
  EXPECT_EQ(Error("K", "m", "test0\ntest1\ntest2\n").TracebackMostRecentCallLast(),
            "test2\ntest1\ntest0\n");
  EXPECT_EQ(Error("K", "m", "").TracebackMostRecentCallLast(), "");
  EXPECT_EQ(Error("K", "m", "a\n\n\nb\n").TracebackMostRecentCallLast(), "b\na\n");
  EXPECT_EQ(Error("K", "m", "a\nunfinished").TracebackMostRecentCallLast(), "a\n");
}

TEST(Error, FullMessagePutsItTogether) {
  EXPECT_EQ(Error("ValueError", "bad", "inner\nouter\n").FullMessage(),
            "Traceback (most recent call last):\nouter\ninner\nValueError: bad\n");
}

TEST(Error, UpdateBacktraceReplacesOrAppends) {
  Error error("K", "m", "first\n");
  TVMFFIByteArray more{"second\n", 7};
  error.UpdateBacktrace(&more, kTVMFFIBacktraceUpdateModeAppend);
  EXPECT_EQ(error.backtrace(), "first\nsecond\n");
  EXPECT_EQ(error.TracebackMostRecentCallLast(), "second\nfirst\n");
  error.UpdateBacktrace(&more, kTVMFFIBacktraceUpdateModeReplace);
  EXPECT_EQ(error.backtrace(), "second\n");
  EXPECT_EQ(error->backtrace.data[7], '\0');
}

TEST(Error, OwnsItsCauseAndContext) {
  Error cause("KeyError", "the cause", "");
  Box context(3);
  {
    Error error("ValueError", "m", "", cause, context);
    EXPECT_EQ(cause.use_count(), 2);
    EXPECT_EQ(context.use_count(), 2);
    ASSERT_TRUE(error.cause_chain().has_value());
    EXPECT_TRUE(error.cause_chain()->same_as(cause));
    EXPECT_TRUE(error.extra_context()->same_as(context));
  }
  EXPECT_EQ(cause.use_count(), 1);
  EXPECT_EQ(context.use_count(), 1);
}

TEST(Error, LongCauseChainsAreKept) {
  std::optional<Error> chain;
  for (int i = 0; i < 10; ++i) {
    chain = Error("RuntimeError", std::to_string(i), "", chain, std::nullopt);
  }
  int depth = 0;
  for (std::optional<Error> e = chain; e.has_value(); e = e->cause_chain()) ++depth;
  EXPECT_EQ(depth, 10);
}

TEST(Error, CopiesShareOneObject) {
  Error a("K", "m", "");
  Error b = a;
  EXPECT_TRUE(a.same_as(b));
  EXPECT_EQ(a.use_count(), 2);
  Error c = std::move(b);
  EXPECT_FALSE(b.defined());
  EXPECT_EQ(c.message(), "m");
}

TEST(Error, TravelsThroughAny) {
  Error error("ValueError", "m", "");
  Any any = error;
  EXPECT_EQ(any.type_index(), kTVMFFIError);
  EXPECT_TRUE(any.cast<Error>().same_as(error));
  EXPECT_TRUE(any.as<Error>().has_value());
  EXPECT_NE(any.as<ErrorObj>(), nullptr);
  EXPECT_EQ(ErrorText([] { Any(nullptr).cast<Error>(); }),
            "TypeError: Cannot convert from type `None` to `ffi.Error`");
}

TEST(Error, IsCaughtAsStdException) {
  try {
    TVM_FFI_THROW(ValueError) << "text";
    FAIL();
  } catch (const std::exception& e) {
    EXPECT_STREQ(e.what(), "text");
  }
}

TEST(Error, EnvErrorAlreadySetIsAnEmptyErrorOfThatKind) {
  Error error = EnvErrorAlreadySet();
  EXPECT_EQ(error.kind(), "EnvErrorAlreadySet");
  EXPECT_EQ(error.message(), "");
  EXPECT_EQ(error.backtrace(), "");
}

// ---- throwing

void ThrowFromANamedFunction() { TVM_FFI_THROW(ValueError) << "value " << 3 << " is odd"; }

int EndsInAThrow(int x) {
  if (x > 0) return x;
  TVM_FFI_THROW(IndexError) << "not positive";
}

TEST(Throw, CarriesKindStreamedTextAndThrowSite) {
  try {
    ThrowFromANamedFunction();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "ValueError");
    EXPECT_EQ(error.message(), "value 3 is odd");
    std::string full = error.FullMessage();
    EXPECT_TRUE(Contains(full, "line ")) << full;
    EXPECT_TRUE(Contains(full, "ThrowFromANamedFunction")) << full;
    EXPECT_TRUE(Contains(full, "error_test.cc")) << full;
    EXPECT_TRUE(Contains(full, "ValueError: value 3 is odd\n")) << full;
    EXPECT_EQ(full.rfind("Traceback (most recent call last):\n", 0), 0u) << full;
  }
}

TEST(Throw, NeedsNoReturnStatement) {
  EXPECT_EQ(EndsInAThrow(2), 2);
  EXPECT_EQ(ErrorText([] { EndsInAThrow(0); }), "IndexError: not positive");
}

TEST(Throw, AnyKindWordWillDo) {
  EXPECT_EQ(ErrorText([] { TVM_FFI_THROW(MyOwnKind) << "x"; }), "MyOwnKind: x");
  EXPECT_EQ(ErrorText([] { TVM_FFI_THROW(ValueError); }), "ValueError: ");
}

TEST(Throw, LogAndThrowPrintsFirst) {
  testing::internal::CaptureStderr();
  std::string text = ErrorText([] { TVM_FFI_LOG_AND_THROW(ValueError) << "logged"; });
  std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text, "ValueError: logged");
  EXPECT_TRUE(Contains(log, "ValueError: logged")) << log;
  testing::internal::CaptureStderr();
  ErrorText([] { TVM_FFI_THROW(ValueError) << "quiet"; });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Throw, BuilderTakesCauseAndContext) {
  Error cause("KeyError", "c", "");
  Box context(1);
  try {
    details::ErrorBuilder("ValueError", std::string("bt\n"), false, cause, context).stream() << "m";
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(error.cause_chain()->same_as(cause));
    EXPECT_TRUE(error.extra_context()->same_as(context));
    EXPECT_EQ(error.backtrace(), "bt\n");
    EXPECT_EQ(error.message(), "m");
  }
}

TEST(Throw, BacktraceNamesTheCallers) {
  struct Outer {
    __attribute__((noinline)) static void OuterCallerOfTheThrow() {
      ThrowFromANamedFunction();
      asm volatile("");  // keeps this a call, not a jump
    }
  };
  try {
    Outer::OuterCallerOfTheThrow();
    FAIL();
  } catch (const Error& error) {
    size_t inner = error.backtrace().find("ThrowFromANamedFunction");
    ASSERT_NE(inner, std::string::npos);
    EXPECT_EQ(error.backtrace().find("ThrowFromANamedFunction", inner + 1), std::string::npos)
        << "the throw site is listed once\n"
        << error.backtrace();
    EXPECT_FALSE(Contains(error.backtrace(), "ErrorBuilder")) << error.backtrace();
  }
}

// ---- checks

TEST(Check, PrefixNamesTheCondition) {
  int x = 1;
  EXPECT_EQ(ErrorText([&] { TVM_FFI_CHECK(x == 2, ValueError) << "x is " << x; }),
            "ValueError: Check failed: (x == 2) is false: x is 1");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_ICHECK(x == 2); }),
            "InternalError: Check failed: (x == 2) is false: ");
  EXPECT_NO_THROW(TVM_FFI_CHECK(x == 1, ValueError) << "fine");
}

TEST(Check, ComparisonsShowBothValues) {
  int x = 1, y = 2;
  EXPECT_EQ(ErrorText([&] { TVM_FFI_CHECK_EQ(x, y, ValueError) << "!"; }),
            "ValueError: Check failed: x == y (1 vs. 2) : !");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_CHECK_GT(x, y, IndexError); }),
            "IndexError: Check failed: x > y (1 vs. 2) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_CHECK_GE(x, y, KeyError); }),
            "KeyError: Check failed: x >= y (1 vs. 2) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_CHECK_LT(y, x, TypeError); }),
            "TypeError: Check failed: y < x (2 vs. 1) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_CHECK_LE(y, x, TypeError); }),
            "TypeError: Check failed: y <= x (2 vs. 1) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_CHECK_NE(x, 1, TypeError); }),
            "TypeError: Check failed: x != 1 (1 vs. 1) : ");
}

TEST(Check, InternalFormsRaiseInternalError) {
  int x = 1;
  EXPECT_EQ(ErrorText([&] { TVM_FFI_ICHECK_EQ(x, 2); }),
            "InternalError: Check failed: x == 2 (1 vs. 2) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_ICHECK_NE(x, 1) << "m"; }),
            "InternalError: Check failed: x != 1 (1 vs. 1) : m");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_ICHECK_LT(x, 1); }),
            "InternalError: Check failed: x < 1 (1 vs. 1) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_ICHECK_GT(x, 1); }),
            "InternalError: Check failed: x > 1 (1 vs. 1) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_ICHECK_LE(x, 0); }),
            "InternalError: Check failed: x <= 0 (1 vs. 0) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_ICHECK_GE(x, 2); }),
            "InternalError: Check failed: x >= 2 (1 vs. 2) : ");
}

TEST(Check, OperandsAreEvaluatedOnce) {
  int calls = 0;
  auto next = [&] { return ++calls; };
  TVM_FFI_CHECK_EQ(next(), 1, ValueError);
  EXPECT_EQ(calls, 1);
  EXPECT_NE(ErrorText([&] { TVM_FFI_CHECK_EQ(next(), 1, ValueError); }), "no error");
  EXPECT_EQ(calls, 2);
}

TEST(Check, ComparesMixedTypes) {
  size_t size = 3;
  int n = 3;
  TVM_FFI_CHECK_EQ(size, n, ValueError);
  TVM_FFI_CHECK_LE(n, size, ValueError);
  TVM_FFI_CHECK_EQ(String("abc"), std::string("abc"), ValueError);
  TVM_FFI_CHECK_EQ(String("abc"), "abc", ValueError);
  EXPECT_EQ(ErrorText([] { TVM_FFI_CHECK_EQ(String("a"), std::string("b"), ValueError); }),
            "ValueError: Check failed: String(\"a\") == std::string(\"b\") (a vs. b) : ");
}

TEST(Check, WorksInUnbracedIfElse) {
  int x = 1;
  bool reached = false;
  if (x == 1) {
    TVM_FFI_CHECK(x > 0, ValueError);
  } else {
    reached = true;
  }
  EXPECT_FALSE(reached);
}

TEST(Check, NotNullIsAnExpressionOfItsOperand) {
  int value = 5;
  int* pointer = &value;
  EXPECT_EQ(*TVM_FFI_CHECK_NOTNULL(pointer, ValueError), 5);
  static_assert(std::is_same_v<std::decay_t<decltype(TVM_FFI_ICHECK_NOTNULL(pointer))>, int*>);
  (void)TVM_FFI_ICHECK_NOTNULL(pointer);
  pointer = nullptr;
  EXPECT_EQ(ErrorText([&] { (void)TVM_FFI_CHECK_NOTNULL(pointer, ValueError); }),
            "ValueError: Check not null: pointer ");
  EXPECT_EQ(ErrorText([&] { (void)TVM_FFI_ICHECK_NOTNULL(pointer); }),
            "InternalError: Check not null: pointer ");
}

TEST(Check, DebugFormsAreEvaluatedInDebugBuildsOnly) {
  int calls = 0;
  auto fails = [&] {
    ++calls;
    return false;
  };
  int value = 1;
  int* pointer = &value;
  EXPECT_EQ(TVM_FFI_DCHECK_NOTNULL(pointer), &value);
#ifdef NDEBUG
  EXPECT_NO_THROW(TVM_FFI_DCHECK(fails()) << "not evaluated");
  EXPECT_NO_THROW(TVM_FFI_DCHECK_EQ(value, 2));
  EXPECT_EQ(calls, 0);
#else
  EXPECT_EQ(ErrorText([&] { TVM_FFI_DCHECK(fails()) << "evaluated"; }),
            "InternalError: Check failed: (fails()) is false: evaluated");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(ErrorText([&] { TVM_FFI_DCHECK_EQ(value, 2); }),
            "InternalError: Check failed: value == 2 (1 vs. 2) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_DCHECK_LT(value, 1); }),
            "InternalError: Check failed: value < 1 (1 vs. 1) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_DCHECK_GT(value, 1); }),
            "InternalError: Check failed: value > 1 (1 vs. 1) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_DCHECK_LE(value, 0); }),
            "InternalError: Check failed: value <= 0 (1 vs. 0) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_DCHECK_GE(value, 2); }),
            "InternalError: Check failed: value >= 2 (1 vs. 2) : ");
  EXPECT_EQ(ErrorText([&] { TVM_FFI_DCHECK_NE(value, 1); }),
            "InternalError: Check failed: value != 1 (1 vs. 1) : ");
#endif
}

// ---- crossing the C boundary

int SafeThatThrows(int what) {
  TVM_FFI_SAFE_CALL_BEGIN();
  if (what == 1) TVM_FFI_THROW(KeyError) << "inside";
  if (what == 2) throw std::runtime_error("foreign");
  TVM_FFI_SAFE_CALL_END();
}

TEST(SafeCall, TranslatesExceptionsIntoTheRaisedError) {
  EXPECT_EQ(SafeThatThrows(0), 0);
  EXPECT_EQ(SafeThatThrows(1), -1);
  EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "KeyError");
  EXPECT_EQ(SafeThatThrows(2), -1);
  Error error = details::MoveFromSafeCallRaised();
  EXPECT_EQ(error.kind(), "InternalError");
  EXPECT_EQ(error.message(), "foreign");
  EXPECT_EQ(error.backtrace(), "");
}

TEST(SafeCall, CheckSafeCallRethrowsTheSameError) {
  Error original("ValueError", "m", "");
  int calls = 0;
  auto failing = [&] {
    ++calls;
    details::SetSafeCallRaised(original);
    return -1;
  };
  try {
    TVM_FFI_CHECK_SAFE_CALL(failing());
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(error.same_as(original));
  }
  EXPECT_EQ(calls, 1);
  TVM_FFI_CHECK_SAFE_CALL(SafeThatThrows(0));
}

TEST(SafeCall, FailureWithAnEmptySlotIsTheHostsError) {
  TVMFFIErrorSetRaised(nullptr);
  EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "EnvErrorAlreadySet");
  EXPECT_EQ(ErrorText([] { TVM_FFI_CHECK_SAFE_CALL(-2); }), "EnvErrorAlreadySet: ");
}

// Raises when it dies: late in a thread, and nobody asks for its error.
struct RaisesAtEnd {
  ObjectRef context = Box(1);
  ~RaisesAtEnd() { details::SetSafeCallRaised(Error("ValueError", "late", "", {}, context)); }
};

TEST(SafeCall, AThreadDropsTheErrorThatItLeaves) {
  const int alive = core_test::BoxObj::alive.load();
  std::thread([] { details::SetSafeCallRaised(Error("ValueError", "m", "", {}, Box(1))); }).join();
  EXPECT_EQ(core_test::BoxObj::alive.load(), alive);
  std::thread([] {
    thread_local RaisesAtEnd last;
    EXPECT_TRUE(last.context.defined());
    details::SetSafeCallRaised(Error("ValueError", "m", "", {}, Box(1)));
  }).join();
  EXPECT_EQ(core_test::BoxObj::alive.load(), alive);
}

}  // namespace
