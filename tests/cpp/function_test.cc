// SPDX-License-Identifier: Apache-2.0
//
// function.h and function_detail.h: making, calling, naming and exporting functions.
#include <gtest/gtest.h>
#include <pthread.h>

// The exported functions below carry metadata and doc.
#define TVM_FFI_DLL_EXPORT_INCLUDE_METADATA 1
#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tuple.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
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

static_assert(sizeof(Function) == 8 && sizeof(TypedFunction<int(int)>) == 8);
static_assert(sizeof(FunctionObj) == 40 && sizeof(PackedArgs) == 16);

int AddFree(int a, int b) { return a + b; }

// ---- making and calling

TEST(Function, PackedFormsReceiveTheArguments) {
  Function by_args = Function::FromPacked([](PackedArgs args, Any* rv) { *rv = args.size(); });
  EXPECT_EQ(by_args(1, "two", 3.0).cast<int>(), 3);
  EXPECT_EQ(by_args().cast<int>(), 0);
  Function by_pointer = Function::FromPacked(
      [](const AnyView* args, int32_t n, Any* rv) { *rv = args[n - 1].cast<int>(); });
  EXPECT_EQ(by_pointer(1, 2, 3).cast<int>(), 3);
  Function direct([](PackedArgs args, Any* rv) { *rv = args[0]; });
  EXPECT_EQ(direct(String("x")).cast<String>(), "x");
}

TEST(Function, UntouchedResultIsNone) {
  Function f = Function::FromPacked([](PackedArgs, Any*) {});
  EXPECT_TRUE(f(1) == nullptr);
  EXPECT_TRUE(Function::FromTyped([](int) {})(1) == nullptr);
}

TEST(Function, PackedCallableMayChangeItself) {
  Function counter = Function::FromPacked([n = 0](PackedArgs, Any* rv) mutable { *rv = ++n; });
  EXPECT_EQ(counter().cast<int>(), 1);
  EXPECT_EQ(counter().cast<int>(), 2);
  Function copy = counter;
  EXPECT_EQ(copy().cast<int>(), 3) << "copies share one callable";
}

TEST(Function, PackedArgsSliceAndFill) {
  Function f = Function::FromPacked([](PackedArgs args, Any* rv) {
    PackedArgs tail = args.Slice(1);
    PackedArgs middle = args.Slice(1, 2);
    *rv = tail.size() * 100 + middle.size() * 10 + middle[0].cast<int>();
  });
  EXPECT_EQ(f(7, 5, 6).cast<int>(), 215);
  AnyView views[3];
  String text = "borrowed text";
  PackedArgs::Fill(views, 1, text, 2.5);
  EXPECT_EQ(views[0].cast<int>(), 1);
  EXPECT_EQ(views[1].cast<String>().data(), text.data());
  EXPECT_EQ(views[2].cast<double>(), 2.5);
  Function count = Function::FromPacked([](PackedArgs args, Any* rv) { *rv = args.size(); });
  Any result;
  count.CallPacked(views, 2, &result);
  EXPECT_EQ(result.cast<int>(), 2);
  count.CallPacked(PackedArgs(views, 3), &result);
  EXPECT_EQ(result.cast<int>(), 3);
}

TEST(Function, TypedFormConvertsArguments) {
  Function f = Function::FromTyped([](int a, double b, const String& s) {
    return s + String(std::to_string(static_cast<int>(a * b)));
  });
  EXPECT_EQ(f(2, 3, "r").cast<String>(), "r6");
  EXPECT_EQ(f(true, 1.5, std::string("r")).cast<String>(), "r1");
  EXPECT_EQ(Function::FromTyped(AddFree)(1, 2).cast<int>(), 3);
  EXPECT_EQ(Function::FromTyped(&AddFree)(1, 2).cast<int>(), 3);
  std::function<int(int)> std_function = [](int x) { return -x; };
  EXPECT_EQ(Function::FromTyped(std_function)(4).cast<int>(), -4);
}

TEST(Function, TypedFormTakesEveryKindOfParameter) {
  EXPECT_EQ(Function::FromTyped([](const int32_t& x) { return x; })(1).cast<int>(), 1);
  EXPECT_EQ(Function::FromTyped([](const int x) { return x; })(1).cast<int>(), 1);
  EXPECT_EQ(Function::FromTyped([](Any x) { return x; })("text").cast<String>(), "text");
  EXPECT_EQ(Function::FromTyped([](const Any& x) { return x; })(2).cast<int>(), 2);
  EXPECT_EQ(Function::FromTyped([](AnyView x) { return x.type_index(); })("a").cast<int>(),
            kTVMFFIRawStr);
  EXPECT_EQ(Function::FromTyped([](const Box b) { return b->value; })(Box(4)).cast<int>(), 4);
  EXPECT_EQ(Function::FromTyped([](const BoxObj* b) { return b->value; })(Box(4)).cast<int>(), 4);
  EXPECT_EQ(Function::FromTyped([](String&& s) { return s.size(); })("abc").cast<int>(), 3);
  EXPECT_EQ(
      Function::FromTyped([](const Function f) { return f(1); })(Function::FromTyped([](int x) {
        return x + 1;
      })).cast<int>(),
      2);
  EXPECT_EQ(Function::FromTyped([](const Array<int> a) { return a.size(); })(Array<int>{1, 2})
                .cast<int>(),
            2);
}

TEST(Function, TypedFormReturnsEveryKindOfValue) {
  EXPECT_EQ(Function::FromTyped([] { return String("s"); })().cast<String>(), "s");
  EXPECT_EQ(Function::FromTyped([]() -> Any { return 3; })().cast<int>(), 3);
  EXPECT_EQ(Function::FromTyped([] { return Box(3); })().cast<Box>()->value, 3);
  EXPECT_TRUE(Function::FromTyped([] { return Function::FromTyped(AddFree); })()
                  .as<Function>()
                  .has_value());
  EXPECT_EQ(Function::FromTyped([]() -> std::string { return "x"; })().cast<String>(), "x");
  EXPECT_EQ(Function::FromTyped([]() -> const char* { return "raw"; })().cast<String>(), "raw");
}

TEST(Function, ArgumentsAreBorrowedDuringTheCall) {
  Box box(1);
  Function by_value = Function::FromTyped([](Box b) { return b.use_count(); });
  EXPECT_EQ(by_value(box).cast<int>(), 2) << "one of the caller, one of the parameter";
  Function by_view =
      Function::FromTyped([](AnyView v) { return v.cast<const BoxObj*>()->use_count(); });
  EXPECT_EQ(by_view(box).cast<int>(), 1);
  EXPECT_EQ(box.use_count(), 1);
}

TEST(Function, InplaceCallableIsOwned) {
  struct Accumulator {
    std::shared_ptr<int> alive;
    int sum = 0;
    explicit Accumulator(std::shared_ptr<int> alive) : alive(std::move(alive)) {}
    void operator()(const AnyView* args, int32_t n, Any* rv) {
      for (int i = 0; i < n; ++i) sum += args[i].cast<int>();
      *rv = sum;
    }
  };
  auto alive = std::make_shared<int>(0);
  {
    auto [f, callable] = Function::FromPackedInplace<Accumulator>(alive);
    EXPECT_EQ(f(1, 2, 3).cast<int>(), 6);
    EXPECT_EQ(callable->sum, 6);
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(Function, NullFunctionComparesWithNullptr) {
  Function null = nullptr;
  EXPECT_TRUE(null == nullptr);
  EXPECT_FALSE(null != nullptr);
  EXPECT_FALSE(null.defined());
  Function f = Function::FromTyped(AddFree);
  EXPECT_TRUE(f != nullptr);
  EXPECT_TRUE(f.unique());
  Function moved = std::move(f);
  EXPECT_TRUE(f == nullptr);
}

// ---- exceptions of other classes

TEST(SafeCall, AnythingThatIsThrownBecomesAnError) {
  Function f = Function::FromTyped([](int kind) {
    if (kind == 0) throw 42;
    if (kind == 1) throw "text";
    throw std::string("text");
  });
  for (int kind = 0; kind < 3; ++kind) {
    Expected<Any> result = f.CallExpected(kind);
    ASSERT_TRUE(result.is_err());
    EXPECT_EQ(result.error().kind(), "RuntimeError");
    EXPECT_EQ(result.error().message(), "an exception was thrown that is not a std::exception");
  }
}

TEST(SafeCall, AThreadMayEndItselfInACall) {
  static bool destroyed = false;
  struct Local {
    ~Local() { destroyed = true; }
  };
  Function f = Function::FromTyped([] {
    Local local;
    pthread_exit(nullptr);
  });
  std::thread([&] { (void)f.CallExpected(); }).join();
  EXPECT_TRUE(destroyed);
}

// ---- extern C

int ExternAddOne(void*, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  TVM_FFI_SAFE_CALL_BEGIN();
  TVM_FFI_CHECK_EQ(num_args, 1, TypeError);
  TypeTraits<int64_t>::MoveToAny(args[0].v_int64 + 1, result);
  TVM_FFI_SAFE_CALL_END();
}

TEST(ExternC, HandleLessFunctionReceivesItself) {
  static void* seen = nullptr;
  Function f = Function::FromExternC(
      nullptr,
      [](void* handle, const TVMFFIAny*, int32_t, TVMFFIAny*) {
        seen = handle;
        return 0;
      },
      nullptr);
  f();
  EXPECT_EQ(seen, details::ObjectUnsafe::RawObjectPtrFromObjectRef(f));
  EXPECT_EQ(f->cpp_call, nullptr);
}

TEST(ExternC, ContextIsPassedAndDeletedOnce) {
  struct Context {
    int base;
    int* deleted;
  };
  int deleted = 0;
  {
    Function f = Function::FromExternC(
        new Context{10, &deleted},
        [](void* self, const TVMFFIAny* args, int32_t, TVMFFIAny* result) {
          result->type_index = kTVMFFIInt;
          result->v_int64 = static_cast<Context*>(self)->base + args[0].v_int64;
          return 0;
        },
        [](void* self) {
          ++*static_cast<Context*>(self)->deleted;
          delete static_cast<Context*>(self);
        });
    Function copy = f;
    EXPECT_EQ(copy(5).cast<int>(), 15);
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(ExternC, InvokeCallsTheEntryDirectly) {
  EXPECT_EQ(Function::InvokeExternC(nullptr, ExternAddOne, 41).cast<int>(), 42);
  EXPECT_EQ(ErrorText([] { Function::InvokeExternC(nullptr, ExternAddOne); }),
            "TypeError: Check failed: num_args == 1 (0 vs. 1) : ");
}

// ---- errors

TEST(FunctionError, WrongCountNamesTheSignature) {
  Function f = Function::FromTyped([](int) { return 1; });
  EXPECT_EQ(
      ErrorText([&] { f(); }),
      "TypeError: Mismatched number of arguments when calling: `(0: int) -> int`. Expected 1 but "
      "got 0 arguments");
  Function named = Function::FromTyped(
      [](const Int& a, int b, AnyView c) { return Function(nullptr); }, "fpass_and_return");
  EXPECT_EQ(
      ErrorText([&] { named(); }),
      "TypeError: Mismatched number of arguments when calling: `fpass_and_return(0: core_test.Int, "
      "1: int, 2: AnyView) -> ffi.Function`. Expected 3 but got 0 arguments");
  EXPECT_EQ(
      ErrorText([&] { Function::FromTyped([] {})(1, 2); }),
      "TypeError: Mismatched number of arguments when calling: `() -> void`. Expected 0 but got 2 "
      "arguments");
}

TEST(FunctionError, WrongTypeNamesArgumentAndSignature) {
  Function f = Function::FromTyped([](int) { return 1; });
  EXPECT_EQ(
      ErrorText([&] { f(1.5); }),
      "TypeError: Mismatched type on argument #0 when calling: `(0: int) -> int`. Expected `int` "
      "but got `float`");
  Function named = Function::FromTyped([](int, String, Any) {}, "named");
  EXPECT_EQ(
      ErrorText([&] { named(1, 2, 3); }),
      "TypeError: Mismatched type on argument #1 when calling: `named(0: int, 1: str, 2: Any) -> "
      "void`. Expected `str` but got `int`");
  Function containers = Function::FromTyped([](Array<Variant<int, Int>> a) { return 1; });
  EXPECT_EQ(ErrorText([&] {
              containers(Array<Any>{1, 2.5});
            }),
            "TypeError: Mismatched type on argument #0 when calling: `(0: Array<Variant<int, "
            "core_test.Int>>) -> int`. Expected `Array<Variant<int, core_test.Int>>` but got "
            "`Array[index 1: float]`");
  Function tuple = Function::FromTyped([](Tuple<int, Int> t) { return 1; });
  EXPECT_EQ(
      ErrorText([&] { tuple(Array<Any>{1}); }),
      "TypeError: Mismatched type on argument #0 when calling: `(0: Tuple<int, core_test.Int>) -> "
      "int`. Expected `Tuple<int, core_test.Int>` but got `Array[size=1]`");
}

TEST(FunctionError, SameErrorObjectPassesThroughNestedCalls) {
  Error original("ValueError", "inner", "");
  Function inner = Function::FromTyped([original] { throw original; });
  // Through C++ calls, and through a C entry that sees only the raised slot.
  Function outer = Function::FromTyped([inner] { inner(); });
  struct Self {
    Function f;
  } self{outer};
  Function c_outer = Function::FromExternC(
      &self,
      [](void* handle, const TVMFFIAny* args, int32_t n, TVMFFIAny* result) {
        Function& f = static_cast<Self*>(handle)->f;
        return TVMFFIFunctionCall(details::ObjectUnsafe::RawObjectPtrFromObjectRef(f),
                                  const_cast<TVMFFIAny*>(args), n, result);
      },
      nullptr);
  for (const Function& f : {outer, c_outer}) {
    try {
      f();
      FAIL();
    } catch (const Error& error) {
      EXPECT_TRUE(error.same_as(original));
    }
  }
}

TEST(FunctionError, ForeignExceptionsPassDirectCallsUnchanged) {
  Function f = Function::FromTyped([] { throw std::runtime_error("foreign"); });
  EXPECT_THROW(f(), std::runtime_error);
  TVMFFIAny result{};
  EXPECT_EQ(
      TVMFFIFunctionCall(details::ObjectUnsafe::RawObjectPtrFromObjectRef(f), nullptr, 0, &result),
      -1);
  Error error = details::MoveFromSafeCallRaised();
  EXPECT_EQ(error.kind() + ": " + error.message(), "InternalError: foreign");
}

TEST(FunctionError, SafeCallChecksTheResultCell) {
  Function f = Function::FromTyped([] { return 1; });
  Box box(1);
  TVMFFIAny result = AnyView(box).CopyToTVMFFIAny();
  EXPECT_EQ(
      TVMFFIFunctionCall(details::ObjectUnsafe::RawObjectPtrFromObjectRef(f), nullptr, 0, &result),
      -1);
  Error error = details::MoveFromSafeCallRaised();
  EXPECT_EQ(error.kind(), "InternalError");
  EXPECT_TRUE(Contains(error.message(), "Check failed: result->type_index < ")) << error.message();
  EXPECT_TRUE(Contains(error.message(), " vs. 64) : ")) << error.message();
  EXPECT_EQ(box.use_count(), 1);
}

// ---- signatures

struct Functor {
  int operator()(const String&, double) const { return 0; }
};
struct MutableFunctor {
  void operator()(Any) {}
};

TEST(FunctionInfo, SpellsSignatures) {
  using details::FunctionInfo;
  EXPECT_EQ(FunctionInfo<int(int, const String&)>::Sig(), "(0: int, 1: str) -> int");
  EXPECT_EQ(FunctionInfo<void()>::Sig(), "() -> void");
  EXPECT_EQ(FunctionInfo<Functor>::Sig(), "(0: str, 1: float) -> int");
  EXPECT_EQ(FunctionInfo<MutableFunctor>::Sig(), "(0: Any) -> void");
  EXPECT_EQ(FunctionInfo<Any (*)(AnyView, const Any&)>::Sig(), "(0: AnyView, 1: Any) -> Any");
  EXPECT_EQ(FunctionInfo<decltype(&BoxObj::use_count)>::Sig(), "(0: ffi.Object) -> int");
  EXPECT_EQ(FunctionInfo<bool(TypedFunction<int(int)>)>::Sig(), "(0: (0: int) -> int) -> bool");
  static_assert(FunctionInfo<int(int, int)>::num_args == 2);
  static_assert(std::is_same_v<FunctionInfo<Functor>::ArgType, std::tuple<const String&, double>>);
}

TEST(FunctionInfo, SpellsSchemas) {
  using details::FunctionInfo;
  EXPECT_EQ(FunctionInfo<int(int, const String&)>::TypeSchema(),
            R"({"type":"ffi.Function","named_args":{"return":[{"type":"int"}],)"
            R"("params":[{"type":"int"},{"type":"ffi.String"}]}})");
  EXPECT_EQ(FunctionInfo<void(Any, AnyView)>::TypeSchema(),
            R"({"type":"ffi.Function","named_args":{"return":[{"type":"None"}],)"
            R"("params":[{"type":"Any"},{"type":"Any"}]}})");
  EXPECT_EQ(FunctionInfo<Functor>::TypeSchema(),
            R"({"type":"ffi.Function","named_args":{"return":[{"type":"int"}],)"
            R"("params":[{"type":"ffi.String"},{"type":"float"}]}})");
  EXPECT_EQ(FunctionInfo<int()>::TypeSchema(),
            R"({"type":"ffi.Function","named_args":{"return":[{"type":"int"}],"params":[]}})");
}

TEST(FunctionInfo, KnowsWhatItCanUnpack) {
  using details::ArgSupported;
  using details::FunctionInfo;
  using details::RetSupported;
  static_assert(ArgSupported<int> && ArgSupported<const int&> && ArgSupported<int&&>);
  static_assert(ArgSupported<Any> && ArgSupported<const AnyView&>);
  static_assert(!ArgSupported<int&> && !ArgSupported<Any&>);
  static_assert(!ArgSupported<std::vector<std::unique_ptr<int>>>);
  static_assert(RetSupported<void> && RetSupported<Any> && RetSupported<Box>);
  static_assert(!RetSupported<int&> && !RetSupported<std::unique_ptr<int>>);
  static_assert(FunctionInfo<int(int)>::unpacked_supported);
  static_assert(!FunctionInfo<int(int&)>::unpacked_supported);
}

// ---- the global table

TEST(GlobalFunction, IsFoundByEveryKindOfName) {
  Function::SetGlobal("core_test.global", Function::FromTyped(AddFree));
  EXPECT_TRUE(Function::GetGlobal("core_test.global").has_value());
  EXPECT_TRUE(Function::GetGlobal(std::string("core_test.global")).has_value());
  EXPECT_TRUE(Function::GetGlobal(String("core_test.global")).has_value());
  EXPECT_TRUE(Function::GetGlobal(std::string_view("core_test.global!", 16)).has_value());
  EXPECT_EQ(Function::GetGlobalRequired("core_test.global")(1, 2).cast<int>(), 3);
  EXPECT_EQ(Function::GetGlobalRequired(std::string("core_test.global"))(1, 2).cast<int>(), 3);
  EXPECT_EQ(Function::GetGlobalRequired(String("core_test.global"))(1, 2).cast<int>(), 3);
  Function::RemoveGlobal("core_test.global");
  EXPECT_FALSE(Function::GetGlobal("core_test.global").has_value());
}

TEST(GlobalFunction, MissingNameIsAbsentOrAnError) {
  EXPECT_FALSE(Function::GetGlobal("core_test.missing").has_value());
  EXPECT_EQ(ErrorText([] { Function::GetGlobalRequired("core_test.missing"); }),
            "ValueError: Function core_test.missing not found");
}

TEST(GlobalFunction, OverrideMustBeAskedFor) {
  Function first = Function::FromTyped([] { return 1; });
  Function::SetGlobal("core_test.twice", first);
  EXPECT_EQ(first.use_count(), 2);
  EXPECT_EQ(ErrorText([] {
              Function::SetGlobal("core_test.twice", Function::FromTyped([] { return 2; }));
            }),
            "RuntimeError: Global Function `core_test.twice` is already registered");
  EXPECT_EQ(Function::GetGlobalRequired("core_test.twice")().cast<int>(), 1);
  Function::SetGlobal("core_test.twice", Function::FromTyped([] { return 2; }), true);
  EXPECT_EQ(first.use_count(), 1) << "the replaced function is released";
  EXPECT_EQ(Function::GetGlobalRequired("core_test.twice")().cast<int>(), 2);
  Function::RemoveGlobal("core_test.twice");
}

TEST(GlobalFunction, NamesAreListedInOrderOfRegistration) {
  Function::SetGlobal("core_test.list_b", Function::FromTyped(AddFree));
  Function::SetGlobal("core_test.list_a", Function::FromTyped(AddFree));
  std::vector<String> names = Function::ListGlobalNames();
  auto b = std::find(names.begin(), names.end(), String("core_test.list_b"));
  auto a = std::find(names.begin(), names.end(), String("core_test.list_a"));
  ASSERT_NE(a, names.end());
  EXPECT_LT(b - names.begin(), a - names.begin());
  Function::RemoveGlobal("core_test.list_a");
  Function::RemoveGlobal("core_test.list_b");
  names = Function::ListGlobalNames();
  EXPECT_EQ(std::find(names.begin(), names.end(), String("core_test.list_a")), names.end());
}

TEST(GlobalFunction, RemoveSaysWhetherThereWasOne) {
  Function remove = Function::GetGlobalRequired("ffi.FunctionRemoveGlobal");
  Function::SetGlobal("core_test.removed", Function::FromTyped(AddFree));
  EXPECT_EQ(remove("core_test.removed").cast<bool>(), true);
  EXPECT_EQ(remove("core_test.removed").cast<bool>(), false);
}

TEST(GlobalFunction, BuiltinsDoWhatTheySay) {
  using tether_test::CallGlobal;
  EXPECT_EQ(CallGlobal("ffi.String", "x").cast<String>(), "x");
  EXPECT_EQ(CallGlobal("ffi.Bytes", Bytes("x", 1)).cast<Bytes>().size(), 1u);
  ObjectRef missing = CallGlobal("ffi.GetInvalidObject").cast<ObjectRef>();
  ObjectRef kwargs = CallGlobal("ffi.GetKwargsObject").cast<ObjectRef>();
  EXPECT_TRUE(missing.same_as(CallGlobal("ffi.GetInvalidObject").cast<ObjectRef>()));
  EXPECT_FALSE(missing.same_as(kwargs));
  EXPECT_EQ(missing.GetTypeKey(), "ffi.Object");
  Function f =
      CallGlobal("ffi.FunctionFromExternC", nullptr, reinterpret_cast<void*>(ExternAddOne), nullptr)
          .cast<Function>();
  EXPECT_EQ(f(1).cast<int>(), 2);
  EXPECT_EQ(ErrorText([] { CallGlobal("ffi.GetGlobalFuncMetadata", "core_test.missing"); }),
            "RuntimeError: Global Function is not found: core_test.missing");
}

// ---- TypedFunction

TEST(TypedFunction, CallsWithItsSignature) {
  TypedFunction<int(int, int)> add = AddFree;
  int three = add(1, 2);
  EXPECT_EQ(three, 3);
  TypedFunction<void(int)> nothing;
  EXPECT_TRUE(nothing == nullptr);
  int seen = 0;
  nothing = [&seen](int x) { seen = x; };
  EXPECT_TRUE(nothing != nullptr);
  nothing(5);
  EXPECT_EQ(seen, 5);
  TypedFunction<Any(Any)> identity = [](Any x) { return x; };
  EXPECT_EQ(identity(3).cast<int>(), 3);
  TypedFunction<int(int)> null = nullptr;
  EXPECT_TRUE(null == nullptr);
}

TEST(TypedFunction, ConvertsToAndFromFunction) {
  Function f = Function::FromTyped(AddFree);
  TypedFunction<int(int, int)> typed = f;
  EXPECT_EQ(f.use_count(), 2);
  Function back = typed;
  EXPECT_TRUE(back.same_as(f));
  EXPECT_TRUE(typed.packed().same_as(f));
  Function moved = std::move(typed).packed();
  EXPECT_TRUE(typed == nullptr);
  // A Function is also callable as std::function<void(...)>; it must not be wrapped again.
  TypedFunction<void(int, int)> no_result = f;
  EXPECT_TRUE(no_result.packed().same_as(f));
  TypedFunction<Any(int, int)> any_result = Function(f);
  EXPECT_TRUE(any_result.packed().same_as(f));
  no_result = f;
  EXPECT_TRUE(no_result.packed().same_as(f));
}

TEST(TypedFunction, ErrorsFollowTheWrappedCallable) {
  TypedFunction<int(double)> typed([](int x) { return x; }, "narrow");
  EXPECT_EQ(
      ErrorText([&] { typed(1.5); }),
      "TypeError: Mismatched type on argument #0 when calling: `narrow(0: int) -> int`. Expected "
      "`int` but got `float`");
  TypedFunction<int()> wrong = Function::FromTyped([] { return String("s"); });
  EXPECT_EQ(
      ErrorText([&] { wrong(); }),
      "TypeError: Mismatched type of the result when calling back: `() -> int`. Expected `int` "
      "but got `ffi.SmallStr`");
}

TEST(TypedFunction, AnArgumentOutOfRangeIsNotNarrowed) {
  Function take = Function::FromTyped([](uint8_t x) { return x; }, "take");
  EXPECT_EQ(take(255).cast<int>(), 255);
  EXPECT_EQ(ErrorText([&] { take(256); }),
            "OverflowError: Overflow on argument #0 when calling: `take(0: int) -> int`. Integer "
            "value 256 is out of range for uint8 (0 to 255)");
}

TEST(TypedFunction, TravelsThroughAny) {
  TypedFunction<int(int)> typed = [](int x) { return x * 2; };
  Any any = typed;
  EXPECT_EQ(any.type_index(), kTVMFFIFunction);
  EXPECT_EQ((any.cast<TypedFunction<int(int)>>()(4)), 8);
  EXPECT_TRUE((any.as<TypedFunction<int(int)>>().has_value()));
  EXPECT_TRUE((Any().cast<TypedFunction<int(int)>>() == nullptr)) << "None converts to null";
  EXPECT_FALSE((Any().as<TypedFunction<int(int)>>().has_value()));
  Any moved = std::move(typed);
  EXPECT_TRUE(typed == nullptr);
  EXPECT_EQ((TypeTraits<TypedFunction<int(String)>>::TypeStr()), "(0: str) -> int");
  EXPECT_EQ((TypedFunction<int(String)>::TypeSchema()),
            R"({"type":"ffi.Function","named_args":{"return":[{"type":"int"}],)"
            R"("params":[{"type":"ffi.String"}]}})");
  EXPECT_EQ(ErrorText([] { Any(1).cast<TypedFunction<int(int)>>(); }),
            "TypeError: Cannot convert from type `int` to `(0: int) -> int`");
}

TEST(TypedFunction, IsAParameterOfFunctions) {
  Function apply = Function::FromTyped([](TypedFunction<int(int)> f, int x) { return f(x); });
  EXPECT_EQ(apply(TypedFunction<int(int)>([](int x) { return x + 10; }), 1).cast<int>(), 11);
  EXPECT_EQ(apply(Function::FromTyped([](int x) { return x + 20; }), 1).cast<int>(), 21);
}

TEST(TypeKeyToIndex, FindsOrThrows) {
  EXPECT_EQ(TypeKeyToIndex("ffi.Array"), kTVMFFIArray);
  EXPECT_TRUE(Contains(ErrorText([] { TypeKeyToIndex("core_test.unknown"); }),
                       "Cannot find type `core_test.unknown`"));
}

// ---- exported functions

int ExportedAdd(int a, int b) { return a + b; }
constexpr auto exported_length = [](const String& s) { return static_cast<int64_t>(s.size()); };
void ExportedThrow() { TVM_FFI_THROW(ValueError) << "exported"; }

TVM_FFI_DLL_EXPORT_TYPED_FUNC(core_test_add, ExportedAdd)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(core_test_length, exported_length);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(core_test_throw, ExportedThrow);
TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC(core_test_add, "Adds two integers.");

Any CallExported(TVMFFISafeCallType entry) { return Function::InvokeExternC(nullptr, entry); }

TEST(ExportedFunction, IsCallableAsACEntry) {
  EXPECT_EQ(Function::InvokeExternC(nullptr, __tvm_ffi_core_test_add, 1, 2).cast<int>(), 3);
  EXPECT_EQ(Function::InvokeExternC(nullptr, __tvm_ffi_core_test_length, "abc").cast<int>(), 3);
  Function f = Function::FromExternC(nullptr, __tvm_ffi_core_test_add, nullptr);
  EXPECT_EQ(f(3, 4).cast<int>(), 7);
}

TEST(ExportedFunction, ErrorsNameTheExport) {
  EXPECT_EQ(
      ErrorText([] { Function::InvokeExternC(nullptr, __tvm_ffi_core_test_add, 1); }),
      "TypeError: Mismatched number of arguments when calling: `core_test_add(0: int, 1: int) -> "
      "int`. Expected 2 but got 1 arguments");
  EXPECT_EQ(
      ErrorText([] { Function::InvokeExternC(nullptr, __tvm_ffi_core_test_add, 1, "x"); }),
      "TypeError: Mismatched type on argument #1 when calling: `core_test_add(0: int, 1: int) -> "
      "int`. Expected `int` but got `const char*`");
  EXPECT_EQ(ErrorText([] { CallExported(__tvm_ffi_core_test_throw); }), "ValueError: exported");
}

TEST(ExportedFunction, CarriesMetadataAndDoc) {
  EXPECT_EQ(CallExported(__tvm_ffi__metadata_core_test_add).cast<String>(),
            R"({"type_schema":"{\"type\":\"ffi.Function\",)"
            R"(\"named_args\":{\"return\":[{\"type\":\"int\"}],)"
            R"(\"params\":[{\"type\":\"int\"},{\"type\":\"int\"}]}}"})");
  EXPECT_EQ(CallExported(__tvm_ffi__doc_core_test_add).cast<String>(), "Adds two integers.");
}

}  // namespace

// A client that only knows the symbol redeclares it.
extern "C" int __tvm_ffi_core_test_add(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);

namespace {

TEST(ExportedFunction, CanBeRedeclared) {
  TVMFFISafeCallType entry = ::__tvm_ffi_core_test_add;
  EXPECT_EQ(Function::InvokeExternC(nullptr, entry, 5, 6).cast<int>(), 11);
}

// ---- the testing library's exports

}  // namespace

extern "C" int __tvm_ffi_testing_dll_schema_id_int(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);
extern "C" int __tvm_ffi__metadata_testing_dll_schema_id_int(void*, const TVMFFIAny*, int32_t,
                                                             TVMFFIAny*);
extern "C" int __tvm_ffi__doc_testing_dll_test_add_with_docstring(void*, const TVMFFIAny*, int32_t,
                                                                  TVMFFIAny*);
extern "C" int TVMFFITestingDummyTarget();

namespace {

TEST(TestingLibrary, ExportsWhatFrontendsRelyOn) {
  EXPECT_EQ(TVMFFITestingDummyTarget(), 0);
  EXPECT_EQ(Function::InvokeExternC(nullptr, __tvm_ffi_testing_dll_schema_id_int, 9).cast<int>(),
            9);
  EXPECT_EQ(CallExported(__tvm_ffi__metadata_testing_dll_schema_id_int).cast<String>(),
            R"({"type_schema":"{\"type\":\"ffi.Function\",)"
            R"(\"named_args\":{\"return\":[{\"type\":\"int\"}],)"
            R"(\"params\":[{\"type\":\"int\"}]}}"})");
  EXPECT_FALSE(
      CallExported(__tvm_ffi__doc_testing_dll_test_add_with_docstring).cast<String>().empty());
}

}  // namespace
