// SPDX-License-Identifier: Apache-2.0
//
// reflection/native_function.h, typed attribute keys, and hooks of map keys in both of their forms.
#include <gtest/gtest.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/enum.h>
#include <tvm/ffi/reflection/enum_def.h>
#include <tvm/ffi/reflection/native_function.h>
#include <tvm/ffi/reflection/registry.h>

#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using tether_test::ErrorText;
namespace refl = tvm::ffi::reflection;

using Unary = refl::NativeFunctionView<int64_t(const Any&)>;

Expected<int64_t> AddOne(const Any& value) noexcept {
  TVM_FFI_RET_CHECK(value.as<int64_t>().has_value(), TypeError) << "an int is needed";
  return value.cast<int64_t>() + 1;
}
int64_t ThrowError(const Any&) { TVM_FFI_THROW(ValueError) << "thrown"; }
int64_t ThrowOther(const Any&) { throw std::runtime_error("other"); }
int64_t ThrowUnknown(const Any&) { throw 1; }
int64_t ThrowBadAlloc(const Any&) { throw std::bad_alloc(); }

static_assert(sizeof(Unary) == 16 && !std::is_default_constructible_v<Unary>);
static_assert(!std::is_constructible_v<Unary, std::nullptr_t>);
static_assert(std::is_constructible_v<Unary, const TypedFunction<int64_t(const Any&)>&>);
static_assert(std::is_constructible_v<Unary, TypedFunction<Expected<int64_t>(const Any&)>&>);
static_assert(!std::is_constructible_v<Unary, TypedFunction<int64_t(const Any&)>>);
using OwnedUnary = refl::NativeFunction<int64_t(const Any&)>;
static_assert(std::is_constructible_v<OwnedUnary, Unary> &&
              !std::is_convertible_v<Unary, OwnedUnary>);
static_assert(!std::is_constructible_v<Unary, OwnedUnary>);

TEST(NativeFunction, CallsPointersAndFunctions) {
  Unary native = Unary::FromNative<&AddOne>();
  EXPECT_EQ(native(Any(1)), 2);
  EXPECT_EQ(ErrorText([&] { native(Any("x")); }),
            "TypeError: Check failed: (value.as<int64_t>()"
            ".has_value()) is false: an int is needed");
  EXPECT_EQ(AnyView(native).type_index(), kTVMFFIOpaquePtr);

  TypedFunction<int64_t(const Any&)> function = [](const Any& value) {
    return value.cast<int64_t>() * 2;
  };
  Unary packed = function;
  EXPECT_EQ(packed(Any(4)), 8);
  EXPECT_EQ(function.packed().use_count(), 1);
  EXPECT_TRUE(packed.CallExpected(Any("x")).is_err());

  TypedFunction<int64_t(const Any&)> null;
  EXPECT_EQ(ErrorText([&] { Unary view(null); }),
            "ValueError: NativeFunctionView requires a non-null typed function");
}

TEST(NativeFunction, TurnsExceptionsIntoValues) {
  Expected<int64_t> error = Unary::FromNative<&ThrowError>().CallExpected(Any(1));
  EXPECT_EQ(error.error().kind(), "ValueError");
  Expected<int64_t> other = Unary::FromNative<&ThrowOther>().CallExpected(Any(1));
  EXPECT_EQ(other.error().kind() + other.error().message() + other.error().backtrace(),
            "InternalErrorother");
  Expected<int64_t> unknown = Unary::FromNative<&ThrowUnknown>().CallExpected(Any(1));
  EXPECT_EQ(unknown.error().kind() + unknown.error().message(),
            std::string("RuntimeError") + tether::kUnknownException);
}

TEST(NativeFunction, OutOfMemoryIsAMemoryError) {
  Expected<int64_t> error = Unary::FromNative<&ThrowBadAlloc>().CallExpected(Any(1));
  EXPECT_EQ(error.error().kind() + error.error().message(), "MemoryErrorstd::bad_alloc");
}

TEST(NativeFunction, ReportsResultsOfAnotherType) {
  TypedFunction<int64_t(const Any&)> text = Function::FromTyped([](Any) { return String("x"); });
  EXPECT_EQ(Unary(text).CallExpected(Any(1)).error().message(), "Packed hook result type mismatch");
  TypedFunction<int64_t(const Any&)> fails =
      Function::FromTyped([](Any) -> Any { return Error("KeyError", "as a value", ""); });
  EXPECT_EQ(Unary(fails).CallExpected(Any(1)).error().kind(), "KeyError");
  refl::NativeFunctionView<bool(const Any&)> lies =
      Any(AnyView(Unary::FromNative<&AddOne>()))
          .as_or_throw<refl::NativeFunctionView<bool(const Any&)>>();
  EXPECT_EQ(lies.CallExpected(Any(1)).error().message(), "Native hook result type mismatch");
}

TEST(NativeFunction, OwnsAndRoundTrips) {
  using Owned = refl::NativeFunction<int64_t(const Any&)>;
  Owned native = Owned::FromNative<&AddOne>();
  Owned packed = TypedFunction<int64_t(const Any&)>([](const Any&) { return 7; });
  Any stored = packed;
  EXPECT_EQ(stored.cast<Owned>()(Any(1)), 7);
  EXPECT_EQ(Owned::From(native.view())(Any(1)), 2);
  EXPECT_EQ(TypeTraits<Owned>::TypeStr(), "Variant<void*, (0: Any) -> int>");
  EXPECT_FALSE(Any(nullptr).as<Owned>().has_value());
  EXPECT_FALSE(Any(static_cast<void*>(nullptr)).as<Owned>().has_value());
}

// ---- keys ----------------------------------------------------------------------------------

constexpr refl::AttrKey<int64_t> kWeight{"test_weight"};
static_assert(sizeof(kWeight) == 8 && std::is_aggregate_v<refl::AttrKey<int64_t>>);
static_assert(std::is_same_v<decltype(type_attr::kTypeFinal)::ValueType, bool>);
static_assert(
    std::is_same_v<decltype(type_attr::kHash)::ValueType,
                   TypedFunction<int64_t(const Object*, const TypedFunction<int64_t(AnyView)>&)>>);

template <int kForm>
class KeyObj : public Object {
 public:
  int64_t value = 0;
  explicit KeyObj(int64_t value) : value(value) {}
  static constexpr const char* kKeys[] = {"test.native.NewKey", "test.native.OldKey"};
  static constexpr const char* _type_key = kKeys[kForm];
  TVM_FFI_DECLARE_OBJECT_INFO_PREDEFINED_TYPE_KEY(KeyObj, Object);
};

template <int kForm>
int64_t ValueOf(const Any& key) {
  return key.as<KeyObj<kForm>>()->value;
}
template <int kForm>
bool SameValue(const Any& a, const Any& b) {
  return ValueOf<kForm>(a) == ValueOf<kForm>(b);
}

enum class Color { kRed };
class ColorObj : public EnumObj {
 public:
  using EnumObj::EnumObj;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.native.Color", ColorObj, EnumObj);
};
class EmptyEnumObj : public EnumObj {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.native.EmptyEnum", EmptyEnumObj, EnumObj);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<KeyObj<0>>(refl::init(false));
  refl::TypeAttrDef<KeyObj<0>>()
      .native_fn_attr<&ValueOf<0>>(type_attr::kAnyHash)
      .native_fn_attr<&SameValue<0>>(type_attr::kAnyEqual)
      .attr(kWeight, 3);
  refl::ObjectDef<KeyObj<1>>(refl::init(false));
  // As sources of 0.1.14 register them.
  refl::TypeAttrDef<KeyObj<1>>()
      .attr("__any_hash__", reinterpret_cast<void*>(&ValueOf<1>))
      .attr("__any_equal__", reinterpret_cast<void*>(&SameValue<1>));
  refl::ObjectDef<ColorObj>(refl::init(false));
  refl::EnumDef<ColorObj>("Red")
      .set_attr(kWeight, 9)
      .set_native_fn_attr<&AddOne>(type_attr::kAnyHash);
}

TEST(AttrKey, ReadsStrictly) {
  refl::TypeAttrColumn column(kWeight);
  EXPECT_EQ(kWeight.ValueFrom(column[KeyObj<0>::RuntimeTypeIndex()]), 3);
  EXPECT_EQ(kWeight.ValueFrom(column[KeyObj<1>::RuntimeTypeIndex()]), std::nullopt);
  EXPECT_EQ(ErrorText([] { kWeight.ValueFrom(AnyView("x")); }),
            "TypeError: Cannot treat type `const char*` as type `int`");
  // The names up to 0.1.14.
  const char* name = refl::type_attr::kAnyHash;
  EXPECT_EQ(std::string(name), "__any_hash__");
  refl::TypeAttrColumn finals(type_attr::kTypeFinal);
  EXPECT_EQ(type_attr::kTypeFinal.ValueFrom(finals[ColorObj::RuntimeTypeIndex()]), true);
  EXPECT_EQ(type_attr::kTypeFinal.ValueFrom(finals[KeyObj<0>::RuntimeTypeIndex()]), false);
  EXPECT_EQ(type_attr::kTypeFinal.ValueFrom(finals[kTVMFFIArray]), std::nullopt);
}

TEST(AttrKey, EnumsAreFoundByName) {
  EXPECT_TRUE(refl::EnumDef<ColorObj>::IsDefined("Red"));
  EXPECT_FALSE(refl::EnumDef<ColorObj>::IsDefined("red"));
  EXPECT_FALSE(refl::EnumDef<ColorObj>::IsDefined(""));
  EXPECT_FALSE(refl::EnumDef<EmptyEnumObj>::IsDefined("Red"));
  static_assert(!Enum::_type_is_nullable && !std::is_default_constructible_v<Enum>);
}

// Hooks of both forms find, replace and iterate keys, whatever their hash. 1 and 67 look like the
// result of a new hook.
template <int kForm>
void CheckKeys() {
  Map<Any, int64_t> map;
  for (int64_t value : {0, 2, 3, 66, 68, 1000}) {
    map.Set(ObjectRef(make_object<KeyObj<kForm>>(value)), value);
    map.Set(ObjectRef(make_object<KeyObj<kForm>>(value)), value * 10);
  }
  EXPECT_EQ(map.size(), 6);
  for (const auto& entry : map) EXPECT_EQ(ValueOf<kForm>(entry.first) * 10, entry.second);
  EXPECT_EQ(map.at(ObjectRef(make_object<KeyObj<kForm>>(1000))), 10000);
  EXPECT_EQ(map.count(ObjectRef(make_object<KeyObj<kForm>>(4))), 0);
}

TEST(AnyHooks, BothFormsWorkAsKeys) {
  CheckKeys<0>();
  CheckKeys<1>();
  for (int64_t value : {1, 67}) {
    Map<Any, int64_t> map{{ObjectRef(make_object<KeyObj<0>>(value)), 1}};
    EXPECT_EQ(map.count(ObjectRef(make_object<KeyObj<0>>(value))), 1);
  }
}

TEST(AnyHooks, PointersAreStoredAsFunctions) {
  refl::TypeAttrColumn hashes(type_attr::kAnyHash), equals(type_attr::kAnyEqual);
  for (int32_t index : {KeyObj<0>::RuntimeTypeIndex(), KeyObj<1>::RuntimeTypeIndex()}) {
    EXPECT_EQ(hashes[index].type_index(), kTVMFFIFunction);
    EXPECT_EQ(equals[index].type_index(), kTVMFFIFunction);
    EXPECT_EQ(ErrorText([&] { hashes[index].cast<Function>()(); }),
              "TypeError: __any_hash__ takes 1 arguments, got 0");
  }
}

}  // namespace
