// SPDX-License-Identifier: Apache-2.0
//
// type_traits.h: names, schemas and indices of every type, fallbacks, traits of one's own, and the
// exact text of every conversion error.
#include <gtest/gtest.h>
#include <tvm/ffi/tvm_ffi.h>

#include <cstring>
#include <memory>
#include <string>
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

enum class Colour : int { kRed };
enum Plain : uint8_t { kPlain };

// ---- the master table

template <typename T>
void ExpectTraits(const char* name, const std::string& schema, int32_t static_index,
                  int32_t runtime_index, bool storage) {
  EXPECT_TRUE(TypeTraits<T>::convert_enabled) << name;
  EXPECT_EQ(TypeTraits<T>::storage_enabled, storage) << name;
  EXPECT_EQ(TypeTraits<T>::TypeStr(), name);
  EXPECT_EQ(TypeTraits<T>::TypeSchema(), schema) << name;
  EXPECT_EQ(details::TypeSchema<const T&>::v(), schema) << name;
  EXPECT_EQ(TypeToFieldStaticTypeIndex<T>::value, static_index) << name;
  EXPECT_EQ(TypeToRuntimeTypeIndex<T>::v(), runtime_index) << name;
}

std::string S(const std::string& type) { return "{\"type\":\"" + type + "\"}"; }
std::string S(const std::string& type, const std::string& args) {
  return "{\"type\":\"" + type + "\",\"args\":[" + args + "]}";
}

TEST(MasterTable, PlainTypes) {
  ExpectTraits<std::nullptr_t>("None", S("None"), 0, 0, true);
  ExpectTraits<bool>("bool", S("bool"), 2, 2, true);
  ExpectTraits<StrictBool>("bool", S("bool"), 2, 2, true);
  ExpectTraits<int>("int", S("int"), 1, 1, true);
  ExpectTraits<int8_t>("int", S("int"), 1, 1, true);
  ExpectTraits<uint32_t>("int", S("int"), 1, 1, true);
  ExpectTraits<int64_t>("int", S("int"), 1, 1, true);
  ExpectTraits<uint64_t>("int", S("int"), 1, 1, true);
  ExpectTraits<unsigned long long>("int", S("int"), 1, 1, true);
  ExpectTraits<Colour>("int", S("int"), 1, 1, true);
  ExpectTraits<Plain>("int", S("int"), 1, 1, true);
  ExpectTraits<float>("float", S("float"), 3, 3, true);
  ExpectTraits<double>("float", S("float"), 3, 3, true);
  ExpectTraits<void*>("void*", S("void*"), 4, 4, true);
  ExpectTraits<DLDataType>("DataType", S("DataType"), 5, 5, true);
  ExpectTraits<DLDevice>("Device", S("Device"), 6, 6, true);
  ExpectTraits<DLTensor*>("DLTensor*", S("DLTensor*"), 7, 7, false);
}

TEST(MasterTable, Text) {
  ExpectTraits<String>("str", S("ffi.String"), -1, -1, true);
  ExpectTraits<Bytes>("bytes", S("ffi.Bytes"), -1, -1, true);
  ExpectTraits<const char*>("const char*", S("const char*"), -1, -1, false);
  ExpectTraits<TVMFFIByteArray*>("TVMFFIByteArray*", S("TVMFFIByteArray*"), 9, 9, false);
  ExpectTraits<std::string>("std::string", S("std::string"), -1, -1, false);
}

TEST(MasterTable, Objects) {
  int32_t box = BoxObj::RuntimeTypeIndex();
  ExpectTraits<ObjectRef>("ffi.Object", S("ffi.Object"), 64, 64, true);
  ExpectTraits<Box>("core_test.Box", S("core_test.Box"), 64, box, true);
  ExpectTraits<SolidBox>("core_test.Box", S("core_test.Box"), 64, box, true);
  ExpectTraits<ObjectPtr<BoxObj>>("core_test.Box", S("Optional", S("core_test.Box")), 64, box,
                                  true);
  ExpectTraits<Arc<BoxObj>>("core_test.Box", S("core_test.Box"), 64, box, true);
  ExpectTraits<BoxObj*>("core_test.Box", S("core_test.Box"), -1, -1, true);
  ExpectTraits<const BoxObj*>("core_test.Box", S("core_test.Box"), -1, -1, true);
  ExpectTraits<Function>("ffi.Function", S("ffi.Function"), 64, 68, true);
  ExpectTraits<Error>("ffi.Error", S("ffi.Error"), 64, 67, true);
  ExpectTraits<TypedFunction<int(bool)>>(
      "(0: bool) -> int",
      R"({"type":"ffi.Function","named_args":{"return":[{"type":"int"}],"params":[{"type":"bool"}]}})",
      68, 68, true);
}

TEST(MasterTable, Templates) {
  ExpectTraits<Optional<int>>("Optional<int>", S("Optional", S("int")), -1, -1, true);
  ExpectTraits<Optional<Box>>("Optional<core_test.Box>", S("Optional", S("core_test.Box")), -1, -1,
                              true);
  ExpectTraits<Optional<DLTensor*>>("Optional<DLTensor*>", S("Optional", S("DLTensor*")), -1, -1,
                                    false);
  ExpectTraits<Optional<ObjectPtr<BoxObj>>>(
      "Optional<core_test.Box>", S("Optional", S("Optional", S("core_test.Box"))), -1, -1, true);
  ExpectTraits<Optional<Arc<BoxObj>>>("Optional<core_test.Box>", S("Optional", S("core_test.Box")),
                                      -1, -1, true);
  ExpectTraits<Variant<int, String>>("Variant<int, str>",
                                     S("Variant", S("int") + "," + S("ffi.String")), -1, -1, true);
  ExpectTraits<Tuple<int, double>>("Tuple<int, float>", S("Tuple", S("int") + "," + S("float")), 64,
                                   71, true);
  ExpectTraits<Expected<int>>("Expected<int>", S("Expected", S("int") + "," + S("ffi.Error")), -1,
                              -1, true);
  ExpectTraits<Expected<void>>("Expected<void>", S("Expected", S("None") + "," + S("ffi.Error")),
                               -1, -1, true);
  ExpectTraits<RValueRef<Box>>("RValueRef<core_test.Box>", S("ObjectRValueRef", S("core_test.Box")),
                               -1, -1, false);
}

TEST(MasterTable, SignatureOnlyTypes) {
  EXPECT_EQ(details::TypeSchema<Any>::v(), S("Any"));
  EXPECT_EQ(details::TypeSchema<AnyView>::v(), S("Any"));
  EXPECT_EQ(details::TypeSchema<void>::v(), S("None"));
  EXPECT_EQ(TypeToFieldStaticTypeIndex<Any>::value, -1);
  EXPECT_EQ(TypeToRuntimeTypeIndex<Any>::v(), -1);
}

TEST(MasterTable, UnknownTypesAreDisabled) {
  static_assert(!TypeTraits<std::vector<void (*)()>>::convert_enabled);
  static_assert(!TypeTraits<int*>::convert_enabled && !TypeTraits<int*>::storage_enabled);
  static_assert(!TypeTraits<std::unique_ptr<int>>::convert_enabled);
  static_assert(is_integeral_enum_v<Colour> && is_integeral_enum_v<Plain> &&
                !is_integeral_enum_v<int>);
  EXPECT_EQ(TypeToFieldStaticTypeIndex<int*>::value, -1);
}

TEST(StaticTypeKeys, MatchTheTable) {
  struct Key {
    int32_t index;
    const char* key;
  };
  for (const Key& k : std::vector<Key>{{0, StaticTypeKey::kTVMFFINone},
                                       {1, StaticTypeKey::kTVMFFIInt},
                                       {2, StaticTypeKey::kTVMFFIBool},
                                       {3, StaticTypeKey::kTVMFFIFloat},
                                       {4, StaticTypeKey::kTVMFFIOpaquePtr},
                                       {5, StaticTypeKey::kTVMFFIDataType},
                                       {6, StaticTypeKey::kTVMFFIDevice},
                                       {7, StaticTypeKey::kTVMFFIDLTensorPtr},
                                       {8, StaticTypeKey::kTVMFFIRawStr},
                                       {9, StaticTypeKey::kTVMFFIByteArrayPtr},
                                       {10, StaticTypeKey::kTVMFFIObjectRValueRef},
                                       {11, StaticTypeKey::kTVMFFISmallStr},
                                       {12, StaticTypeKey::kTVMFFISmallBytes},
                                       {64, StaticTypeKey::kTVMFFIObject},
                                       {65, StaticTypeKey::kTVMFFIStr},
                                       {66, StaticTypeKey::kTVMFFIBytes},
                                       {67, StaticTypeKey::kTVMFFIError},
                                       {68, StaticTypeKey::kTVMFFIFunction},
                                       {69, StaticTypeKey::kTVMFFIShape},
                                       {70, StaticTypeKey::kTVMFFITensor},
                                       {71, StaticTypeKey::kTVMFFIArray},
                                       {72, StaticTypeKey::kTVMFFIMap},
                                       {73, StaticTypeKey::kTVMFFIModule},
                                       {74, StaticTypeKey::kTVMFFIOpaquePyObject},
                                       {75, StaticTypeKey::kTVMFFIList},
                                       {76, StaticTypeKey::kTVMFFIDict},
                                       {77, StaticTypeKey::kTVMFFIVisitInterrupt}}) {
    EXPECT_EQ(TypeIndexToTypeKey(k.index), k.key);
  }
  EXPECT_STREQ(StaticTypeKey::kTVMFFIAny, "Any");
}

// ---- subsumption

static_assert(type_subsumes_v<Any, int> && type_subsumes_v<Any, Box>);
static_assert(type_subsumes_v<int, int> && !type_subsumes_v<int64_t, int>);
static_assert(!type_subsumes_v<Optional<int>, int>);
static_assert(type_subsumes_v<Number, Int> && !type_subsumes_v<Int, Number>);
static_assert(type_subsumes_v<ObjectPtr<NumberObj>, ObjectPtr<IntObj>>);
static_assert(type_subsumes_v<Arc<NumberObj>, Arc<IntObj>>);
static_assert(type_subsumes_v<ObjectPtr<NumberObj>, Arc<IntObj>>);
static_assert(!type_subsumes_v<Arc<NumberObj>, ObjectPtr<IntObj>>);
static_assert(!type_subsumes_v<ObjectPtr<IntObj>, ObjectPtr<NumberObj>>);
static_assert(type_subsumes_v<Variant<int, Number>, Int> &&
              !type_subsumes_v<Variant<int, Number>, Box>);

// ---- fallbacks and traits of one's own

// A reference that numbers, bools and text convert into.
class Prim : public ObjectRef {
 public:
  explicit Prim(int64_t value) { data_ = make_object<BoxObj>(value); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Prim, ObjectRef, BoxObj);
};

// A value type stored as a float.
struct Celsius {
  double degrees;
};

// A type that only converts from others.
struct Label {
  std::string text;
};

}  // namespace

namespace tvm {
namespace ffi {

template <>
struct TypeTraits<Prim>
    : public ObjectRefWithFallbackTraitsBase<Prim, StrictBool, int64_t, double, String> {
  static Prim ConvertFallbackValue(StrictBool value) { return Prim(value ? 1000 : 2000); }
  static Prim ConvertFallbackValue(int64_t value) { return Prim(value); }
  static Prim ConvertFallbackValue(double value) { return Prim(static_cast<int64_t>(value * 100)); }
  static Prim ConvertFallbackValue(String value) {
    return Prim(static_cast<int64_t>(value.size()));
  }
};

template <>
struct TypeTraits<Celsius> : public TypeTraitsBase {
  static void CopyToAnyView(const Celsius& c, TVMFFIAny* out) {
    TypeTraits<double>::CopyToAnyView(c.degrees, out);
  }
  static void MoveToAny(Celsius c, TVMFFIAny* out) { CopyToAnyView(c, out); }
  static bool CheckAnyStrict(const TVMFFIAny* src) {
    return TypeTraits<double>::CheckAnyStrict(src);
  }
  static Celsius CopyFromAnyViewAfterCheck(const TVMFFIAny* src) { return {src->v_float64}; }
  static Celsius MoveFromAnyAfterCheck(TVMFFIAny* src) { return {src->v_float64}; }
  static std::optional<Celsius> TryCastFromAnyView(const TVMFFIAny* src) {
    if (auto value = TypeTraits<double>::TryCastFromAnyView(src)) return Celsius{*value};
    return std::nullopt;
  }
  static std::string TypeStr() { return "Celsius"; }
  static std::string TypeSchema() { return R"({"type":"float"})"; }
};

template <>
struct TypeTraits<Label> : public FallbackOnlyTraitsBase<Label, StrictBool, int64_t, String> {
  static void CopyToAnyView(const Label& label, TVMFFIAny* out) {
    TypeTraits<std::string>::CopyToAnyView(label.text, out);
  }
  static void MoveToAny(Label label, TVMFFIAny* out) {
    TypeTraits<std::string>::MoveToAny(std::move(label.text), out);
  }
  static Label ConvertFallbackValue(StrictBool value) { return {value ? "yes" : "no"}; }
  static Label ConvertFallbackValue(int64_t value) { return {"#" + std::to_string(value)}; }
  static Label ConvertFallbackValue(const String& value) { return {value}; }
  static std::string TypeStr() { return "Label"; }
  static std::string TypeSchema() { return R"({"type":"Label"})"; }
};

}  // namespace ffi
}  // namespace tvm

namespace {

TEST(Fallback, ReferenceComesFirstThenEachTypeInOrder) {
  Box box(7);
  EXPECT_EQ(Any(box).cast<Prim>().get(), box.get());
  EXPECT_EQ(Any(true).cast<Prim>()->value, 1000);
  EXPECT_EQ(Any(3).cast<Prim>()->value, 3);
  EXPECT_EQ(Any(1.5).cast<Prim>()->value, 150);
  EXPECT_EQ(Any("text").cast<Prim>()->value, 4);
  EXPECT_EQ(AnyView("text").cast<Prim>()->value, 4);
  EXPECT_EQ(AnyView(false).cast<Prim>()->value, 2000);
  EXPECT_FALSE(Any(3).as<Prim>().has_value()) << "a strict read does not convert";
  EXPECT_EQ(ErrorText([] { Any().cast<Prim>(); }),
            "TypeError: Cannot convert from type `None` to `core_test.Box`");
}

TEST(Fallback, WorksForParameters) {
  Function f = Function::FromTyped([](const Prim& p) { return p->value; });
  EXPECT_EQ(f(true).cast<int>(), 1000);
  EXPECT_EQ(f(5).cast<int>(), 5);
  EXPECT_EQ(f("abc").cast<int>(), 3);
  EXPECT_EQ(f(Box(8)).cast<int>(), 8);
  Function g = Function::FromTyped([](RValueRef<Prim> p) { return 1; });
  EXPECT_EQ(g(5).cast<int>(), 1);
}

TEST(Fallback, OnlyTypeIsNeverStored) {
  static_assert(TypeTraits<Label>::convert_enabled && !TypeTraits<Label>::storage_enabled);
  EXPECT_EQ(Any(true).cast<Label>().text, "yes");
  EXPECT_EQ(Any(5).cast<Label>().text, "#5");
  EXPECT_EQ(AnyView("x").cast<Label>().text, "x");
  EXPECT_EQ(Any(Label{"stored as a string"}).cast<String>(), "stored as a string");
  EXPECT_EQ(ErrorText([] { Any(1.5).cast<Label>(); }),
            "TypeError: Cannot convert from type `float` to `Label`");
}

TEST(OwnTraits, MakeATypeAFirstClassValue) {
  EXPECT_EQ(Any(Celsius{21.5}).cast<Celsius>().degrees, 21.5);
  EXPECT_EQ(Any(20).cast<Celsius>().degrees, 20.0);
  Function f = Function::FromTyped([](Celsius c) { return Celsius{c.degrees + 1}; });
  EXPECT_EQ(f(1).cast<Celsius>().degrees, 2.0);
  EXPECT_EQ((Array<Celsius>{{1.0}, {2.0}}[1].degrees), 2.0);
  EXPECT_TRUE(Optional<Celsius>(Celsius{3.0}).has_value());
  EXPECT_EQ((details::FunctionInfo<Celsius(Celsius)>::Sig()), "(0: Celsius) -> Celsius");
}

// ---- the error catalogue

TEST(ErrorCatalogue, ConversionErrors) {
  EXPECT_EQ(ErrorText([] { Any(1.5).cast<int>(); }),
            "TypeError: Cannot convert from type `float` to `int`");  // M1
  EXPECT_EQ(ErrorText([] { Any(1.5).as_or_throw<int>(); }),
            "TypeError: Cannot treat type `float` as type `int`");  // M2
  Function f = Function::FromTyped([](int) { return 1; }, "f");
  EXPECT_EQ(
      ErrorText([&] { f("x"); }),  // M3
      "TypeError: Mismatched type on argument #0 when calling: `f(0: int) -> int`. Expected `int` "
      "but got `const char*`");
  EXPECT_EQ(
      ErrorText([&] { f(1, 2); }),  // M4
      "TypeError: Mismatched number of arguments when calling: `f(0: int) -> int`. Expected 1 but "
      "got 2 arguments");
  EXPECT_EQ(
      ErrorText([] { Any any = ~uint64_t{0}; }),  // M5
      "OverflowError: Integer value 18446744073709551615 is too large to fit in int64_t. Consider "
      "explicitly casting to int64_t first if this is intentional.");
  EXPECT_EQ(ErrorText([] { Any any = static_cast<const char*>(nullptr); }),  // M6
            "InternalError: Check not null: src ");
}

TEST(ErrorCatalogue, AccessErrors) {
  Function take = Function::FromTyped([](Any a, Any b) {});
  RValueRef<Box> once(Box(1));
  EXPECT_EQ(
      ErrorText([&] { take(once, once); }),  // M7
      "InternalError: Check failed: (obj_addr[0] != nullptr) is false: RValueRef already moved");
  EXPECT_EQ(ErrorText([] { Optional<int>().value(); }),
            "RuntimeError: Back optional access");        // M8
  EXPECT_EQ(ErrorText([] { Expected<int>(1).error(); }),  // M9
            "RuntimeError: Bad expected access: contains value, not error");
  Function text = Function::FromTyped([] { return String("a text on the heap"); });
  EXPECT_EQ(text.CallExpected<int>().error().message(),  // M10
            "CallExpected: result type mismatch, expected int, but got ffi.String");
}

TEST(ErrorCatalogue, RegistryErrors) {
  EXPECT_EQ(ErrorText([] { Function::GetGlobalRequired("core_test.none"); }),  // M11
            "ValueError: Function core_test.none not found");
  EXPECT_EQ(
      ErrorText([] { Function::SetGlobal("ffi.String", Function::FromTyped([] {})); }),  // M12
      "RuntimeError: Global Function `ffi.String` is already registered");
  std::string text = ErrorText([] { TypeKeyToIndex("core_test.none"); });  // M13
  EXPECT_EQ(text.rfind("InternalError: Check failed: ", 0), 0u) << text;
  EXPECT_TRUE(Contains(text, ": Cannot find type `core_test.none`")) << text;
  EXPECT_EQ(Function::FromTyped([] { throw std::runtime_error("what"); })
                .CallExpected<void>()
                .error()
                .message(),  // M14
            "what");
  DLTensor tensor{};
  EXPECT_EQ(
      ErrorText([&] { Any any = &tensor; }),  // M15
      "RuntimeError: DLTensor* cannot be held in Any as it does not retain ownership, use Tensor "
      "instead");
  EXPECT_EQ(ErrorText([] { EnumObj::_GetByIntIndex<EnumObj>(3); }),  // M16
            "ValueError: Enum `ffi.Enum` has no instance with index 3");
}

TEST(ErrorCatalogue, DataTypeErrors) {
  auto text = [](const char* dtype) { return ErrorText([&] { StringToDLDataType(dtype); }); };
  EXPECT_EQ(text("fl"), "ValueError: unknown dtype `fl`");  // M17
  EXPECT_EQ(text("f8_x"), "ValueError: unknown float8 type `float8_x`");
  EXPECT_EQ(text("f6_y"), "ValueError: unknown float6 type `float6_y`");
  EXPECT_EQ(text("f4_z"), "ValueError: unknown float4 type `float4_z`");
  EXPECT_EQ(text("int300"),  // M18
            "ValueError: Bits value 300 is out of range for uint8_t in dtype 'int300'");
  EXPECT_EQ(text("int8x0"),  // M19
            "ValueError: Invalid lanes specification in dtype 'int8x0'. Lanes must be a positive "
            "integer.");
  EXPECT_EQ(text("int8x70000"),  // M20
            "ValueError: Lanes value 70000 is out of range for uint16_t in dtype 'int8x70000'");
  EXPECT_EQ(text("int5000000000"),  // M21
            "ValueError: Integer value in dtype string '5000000000' is out of range for uint32_t");
}

// ---- small helpers

TEST(ForEach, VisitsInOrder) {
  std::vector<std::string> seen;
  details::for_each(
      [&](size_t i, auto&& value) {
        std::ostringstream os;
        os << i << ":" << value;
        seen.push_back(os.str());
      },
      1, "two", 3.5);
  EXPECT_EQ(seen, (std::vector<std::string>{"0:1", "1:two", "2:3.5"}));
}

TEST(Endian, ByteSwapReversesEachElement) {
  uint32_t words[2] = {0x01020304, 0xA0B0C0D0};
  ByteSwap(words, 4, 2);
  EXPECT_EQ(words[0], 0x04030201u);
  EXPECT_EQ(words[1], 0xD0C0B0A0u);
  uint8_t bytes[3] = {1, 2, 3};
  ByteSwap(bytes, 1, 3);
  EXPECT_EQ(bytes[0], 1);
  ByteSwap(bytes, 3, 1);
  EXPECT_EQ(bytes[0], 3);
  ByteSwap(nullptr, 8, 0);
  static_assert(TVM_FFI_IO_NO_ENDIAN_SWAP == (TVM_FFI_LITTLE_ENDIAN == 1));
}

TEST(Macros, HelpersBehave) {
  EXPECT_TRUE(TVM_FFI_PREDICT_TRUE(1 < 2));
  EXPECT_FALSE(TVM_FFI_PREDICT_FALSE(nullptr));
  int TVM_FFI_STR_CONCAT(joined_, 1) = 5;
  EXPECT_EQ(joined_1, 5);
  TVM_FFI_UNSAFE_ASSUME(joined_1 == 5);
  EXPECT_NE(std::strstr(TVM_FFI_FUNC_SIG, "HelpersBehave"), nullptr);
}

}  // namespace
