// SPDX-License-Identifier: Apache-2.0
//
// dtype.h and the data type parser: names, short forms, vectors, bad text.
#include <gtest/gtest.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/function.h>

#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using tether_test::ErrorText;

DLDataType Make(int code, int bits, int lanes) {
  return DLDataType{static_cast<uint8_t>(code), static_cast<uint8_t>(bits),
                    static_cast<uint16_t>(lanes)};
}

struct Named {
  const char* text;
  DLDataType dtype;
};

TEST(DType, EveryNameRoundTrips) {
  for (const Named& n : std::vector<Named>{
           {"int8", Make(kDLInt, 8, 1)},
           {"int64", Make(kDLInt, 64, 1)},
           {"uint1", Make(kDLUInt, 1, 1)},
           {"uint32x4", Make(kDLUInt, 32, 4)},
           {"float16", Make(kDLFloat, 16, 1)},
           {"float32x32767", Make(kDLFloat, 32, 32767)},
           {"bfloat16", Make(kDLBfloat, 16, 1)},
           {"bool", Make(kDLBool, 8, 1)},
           {"boolx4", Make(kDLBool, 8, 4)},
           {"bool1", Make(kDLBool, 1, 1)},
           {"float8_e3m4", Make(kDLFloat8_e3m4, 8, 1)},
           {"float8_e4m3", Make(kDLFloat8_e4m3, 8, 1)},
           {"float8_e4m3b11fnuz", Make(kDLFloat8_e4m3b11fnuz, 8, 1)},
           {"float8_e4m3fn", Make(kDLFloat8_e4m3fn, 8, 1)},
           {"float8_e4m3fnuz", Make(kDLFloat8_e4m3fnuz, 8, 1)},
           {"float8_e5m2", Make(kDLFloat8_e5m2, 8, 1)},
           {"float8_e5m2fnuz", Make(kDLFloat8_e5m2fnuz, 8, 1)},
           {"float8_e8m0fnu", Make(kDLFloat8_e8m0fnu, 8, 1)},
           {"float8_e4m3fnx2", Make(kDLFloat8_e4m3fn, 8, 2)},
           {"float6_e2m3fn", Make(kDLFloat6_e2m3fn, 6, 1)},
           {"float6_e3m2fn", Make(kDLFloat6_e3m2fn, 6, 1)},
           {"float4_e2m1fn", Make(kDLFloat4_e2m1fn, 4, 1)},
           {"float4_e2m1fnx2", Make(kDLFloat4_e2m1fn, 4, 2)},
           {"int32xvscalex4", Make(kDLInt, 32, -4)},
           {"float32xvscalex16", Make(kDLFloat, 32, -16)},
           {"float32xvscalex32768", Make(kDLFloat, 32, -32768)},
       }) {
    EXPECT_TRUE(StringToDLDataType(n.text) == n.dtype) << n.text;
    EXPECT_EQ(DLDataTypeToString(n.dtype), n.text);
  }
}

TEST(DType, ParserHasDefaultsAndAliases) {
  for (const Named& n : std::vector<Named>{
           {"", Make(kDLOpaqueHandle, 0, 0)},
           {"void", Make(kDLOpaqueHandle, 0, 0)},
           {"handle", Make(kDLOpaqueHandle, 64, 1)},
           {"handle32x2", Make(kDLOpaqueHandle, 32, 2)},
           {"int", Make(kDLInt, 32, 1)},
           {"int0", Make(kDLInt, 32, 1)},
           {"uint", Make(kDLUInt, 32, 1)},
           {"float", Make(kDLFloat, 32, 1)},
           {"float8", Make(kDLFloat, 8, 1)},
           {"bfloat", Make(kDLBfloat, 16, 1)},
           {"bfloat8", Make(kDLBfloat, 8, 1)},
           {"intx4", Make(kDLInt, 32, 4)},
           {"i8", Make(kDLInt, 8, 1)},
           {"u16x2", Make(kDLUInt, 16, 2)},
           {"f16", Make(kDLFloat, 16, 1)},
           {"f4", Make(kDLFloat, 4, 1)},
           {"bf16", Make(kDLBfloat, 16, 1)},
           {"f8_e4m3", Make(kDLFloat8_e4m3, 8, 1)},
           {"fp8_e4m3fn", Make(kDLFloat8_e4m3fn, 8, 1)},
           {"fp6_e2m3fn", Make(kDLFloat6_e2m3fn, 6, 1)},
           {"fp4_e2m1fn", Make(kDLFloat4_e2m1fn, 4, 1)},
           {"f4_e2m1fnx2", Make(kDLFloat4_e2m1fn, 4, 2)},
           {"float4_e2m1fn_x2", Make(kDLFloat4_e2m1fn, 4, 2)},
           {"float4_e2m1fn_", Make(kDLFloat4_e2m1fn, 4, 1)},
           {"int8xvscale", Make(kDLInt, 8, 1)},
       }) {
    EXPECT_TRUE(StringToDLDataType(n.text) == n.dtype) << n.text;
  }
}

TEST(DType, PrintingCoversTheSpecialCases) {
  EXPECT_EQ(DLDataTypeToString(Make(kDLOpaqueHandle, 0, 0)), "");
  EXPECT_EQ(DLDataTypeToString(Make(kDLOpaqueHandle, 64, 1)), "handle");
  EXPECT_EQ(DLDataTypeToString(Make(kDLOpaqueHandle, 32, 2)), "handle");
  EXPECT_EQ(DLDataTypeToString(Make(kDLInt, 32, 0)), "int32");
  EXPECT_EQ(ErrorText([] { DLDataTypeToString(Make(kDLComplex, 64, 1)); }),
            "ValueError: DLDataType contains unknown type_code=5");
  EXPECT_EQ(ErrorText([] { DLDataTypeToString(Make(100, 64, 1)); }),
            "ValueError: DLDataType contains unknown type_code=100");
  std::ostringstream os;
  os << Make(kDLFloat, 16, 4);
  EXPECT_EQ(os.str(), "float16x4");
}

TEST(DType, ATypeWithoutANameCanBePartOfAMessage) {
  EXPECT_EQ(ErrorText([] { TVM_FFI_THROW(TypeError) << "got " << Make(kDLComplex, 64, 1); }),
            "TypeError: got dtype(code=5, bits=64, lanes=1)");
  EXPECT_EQ(ErrorText([] { TVM_FFI_THROW(TypeError) << "got " << Make(200, 8, 2); }),
            "TypeError: got dtype(code=200, bits=8, lanes=2)");
}

TEST(DType, BadTextIsAValueErrorThatQuotesIt) {
  struct Bad {
    const char* text;
    const char* message;
  };
  for (const Bad& b : std::vector<Bad>{
           {"complex64", "unknown dtype `complex64`"},
           {"fp32", "unknown dtype `fp32`"},
           {"fp8", "unknown dtype `fp8`"},
           {"i", "unknown dtype `i`"},
           {"bf", "unknown dtype `bf`"},
           {"Int32", "unknown dtype `Int32`"},
           {" int32", "unknown dtype ` int32`"},
           {"int32 ", "unknown dtype `int32 `"},
           {"int32y", "unknown dtype `int32y`"},
           {"i8q", "unknown dtype `int8q`"},
           {"float8_", "unknown float8 type `float8_`"},
           {"float8_e9m9", "unknown float8 type `float8_e9m9`"},
           {"fp8_e4m3fnq", "unknown float8 type `float8_e4m3fnq`"},
           {"float6_e1m1", "unknown float6 type `float6_e1m1`"},
           {"float4_e2m1", "unknown float4 type `float4_e2m1`"},
           {"float8_e4m3x2y", "unknown dtype `float8_e4m3x2y`"},
           {"int256", "Bits value 256 is out of range for uint8_t in dtype 'int256'"},
           {"i1000x2", "Bits value 1000 is out of range for uint8_t in dtype 'int1000x2'"},
           {"int32x",
            "Invalid lanes specification in dtype 'int32x'. Lanes must be a positive integer."},
           {"int32x0",
            "Invalid lanes specification in dtype 'int32x0'. Lanes must be a positive integer."},
           {"int32x-1",
            "Invalid lanes specification in dtype 'int32x-1'. Lanes must be a positive integer."},
           {"float8_e4m3x",
            "Invalid lanes specification in dtype 'float8_e4m3x'. Lanes must be a positive "
            "integer."},
           {"int32xvscalex",
            "Invalid lanes specification in dtype 'int32xvscalex'. Lanes must be a positive "
            "integer."},
           {"int32x65536", "Lanes value 65536 is out of range for uint16_t in dtype 'int32x65536'"},
           {"f32x32768", "Lanes value 32768 is out of range for int16_t in dtype 'float32x32768'"},
           {"int8x65535", "Lanes value 65535 is out of range for int16_t in dtype 'int8x65535'"},
           {"float8_e4m3x40000",
            "Lanes value 40000 is out of range for int16_t in dtype 'float8_e4m3x40000'"},
           {"int8xvscalex32769",
            "Lanes value -32769 is out of range for int16_t in dtype 'int8xvscalex32769'"},
           {"int4294967296",
            "Integer value in dtype string '4294967296' is out of range for uint32_t"},
           {"int32x99999999999",
            "Integer value in dtype string '99999999999' is out of range for uint32_t"},
           {"custom", "expected opening brace after 'custom' type incustom"},
           {"custom[abc", "expected closing brace after 'custom' type incustom[abc"},
           {"custom[", "expected closing brace after 'custom' type incustom["},
       }) {
    EXPECT_EQ(ErrorText([&] { StringToDLDataType(b.text); }),
              std::string("ValueError: ") + b.message);
  }
}

TEST(DType, ParserNeverLooksPastTheEnd) {
  const char* text = "float32x4";
  for (size_t size : {5, 7, 9}) {
    // An allocation of exactly that size: a sanitizer sees any byte more.
    std::unique_ptr<char[]> exact(new char[size]);
    std::memcpy(exact.get(), text, size);
    TVMFFIByteArray bytes{exact.get(), size};
    DLDataType out{};
    ASSERT_EQ(TVMFFIDataTypeFromString(&bytes, &out), 0);
    EXPECT_TRUE(out == StringToDLDataType(std::string(text, size)));
  }
  std::unique_ptr<char[]> custom(new char[7]);
  std::memcpy(custom.get(), "custom[", 7);
  TVMFFIByteArray bytes{custom.get(), 7};
  DLDataType out = Make(1, 2, 3);
  EXPECT_EQ(TVMFFIDataTypeFromString(&bytes, &out), -1);
  EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "ValueError");
  EXPECT_TRUE(out == Make(1, 2, 3)) << "an error leaves the output";
}

TEST(DType, CustomTypesAskTheRegisteredFunctions) {
  EXPECT_EQ(ErrorText([] { StringToDLDataType("custom[mine]16"); }),
            "ValueError: Function dtype.get_custom_type_code not found");
  EXPECT_EQ(ErrorText([] { DLDataTypeToString(Make(130, 16, 1)); }),
            "ValueError: The dtype with type_code=130 and 16 bits has no name: codes from 129 on "
            "are custom types, and the global function `dtype.get_custom_type_name`, which names "
            "them, is not registered");
  Function::SetGlobal("dtype.get_custom_type_code", Function::FromTyped([](const String& name) {
                        if (name != "mine") TVM_FFI_THROW(KeyError) << name;
                        return 130;
                      }));
  Function::SetGlobal("dtype.get_custom_type_name",
                      Function::FromTyped([](int code) { return String("mine"); }));
  EXPECT_TRUE(StringToDLDataType("custom[mine]16x2") == Make(130, 16, 2));
  EXPECT_TRUE(StringToDLDataType("custom[mine]") == Make(130, 32, 1));
  EXPECT_EQ(DLDataTypeToString(Make(130, 16, 2)), "custom[mine]x2");
  EXPECT_EQ(ErrorText([] { StringToDLDataType("custom[other]"); }), "KeyError: other");
  Function::RemoveGlobal("dtype.get_custom_type_code");
  Function::RemoveGlobal("dtype.get_custom_type_name");
}

TEST(DType, AbbreviationIsShort) {
  EXPECT_EQ(DTypeAbbrev(Make(kDLInt, 32, 4)), "i32x4");
  EXPECT_EQ(DTypeAbbrev(Make(kDLUInt, 8, 1)), "u8");
  EXPECT_EQ(DTypeAbbrev(Make(kDLFloat, 16, 1)), "f16");
  EXPECT_EQ(DTypeAbbrev(Make(kDLBfloat, 16, 1)), "bf16");
  EXPECT_EQ(DTypeAbbrev(Make(kDLBool, 8, 1)), "bool");
  EXPECT_EQ(DTypeAbbrev(Make(kDLBool, 8, 4)), "boolx4");
  EXPECT_EQ(DTypeAbbrev(Make(kDLBool, 1, 1)), "bool1");
  EXPECT_EQ(DTypeAbbrev(Make(kDLFloat8_e4m3fn, 8, 2)), "f8_e4m3fnx2");
  EXPECT_EQ(DTypeAbbrev(Make(kDLFloat6_e2m3fn, 6, 1)), "f6_e2m3fn");
  EXPECT_EQ(DTypeAbbrev(Make(kDLFloat4_e2m1fn, 4, 1)), "f4_e2m1fn");
  EXPECT_EQ(DTypeAbbrev(Make(kDLFloat, 32, -4)), "f32xvscalex4");
  EXPECT_EQ(DTypeAbbrev(Make(kDLOpaqueHandle, 0, 0)), "void");
  EXPECT_EQ(DTypeAbbrev(Make(kDLOpaqueHandle, 64, 1)), "handle");
}

TEST(DType, AbbreviationParsesBack) {
  for (const char* text : {"i32x4", "u8", "f16", "bf16", "bool", "boolx4", "f8_e4m3fnx2",
                           "f6_e2m3fn", "f4_e2m1fn", "f32xvscalex4", "void"}) {
    EXPECT_EQ(DTypeAbbrev(StringToDLDataType(text)), text);
  }
}

TEST(DType, Predicates) {
  EXPECT_TRUE(DTypeIsFloat(Make(kDLFloat, 32, 1)) && DTypeIsFloat(Make(kDLBfloat, 16, 1)) &&
              DTypeIsFloat(Make(kDLFloat8_e3m4, 8, 1)) &&
              DTypeIsFloat(Make(kDLFloat4_e2m1fn, 4, 1)));
  EXPECT_FALSE(DTypeIsFloat(Make(kDLInt, 32, 1)) || DTypeIsFloat(Make(kDLBool, 8, 1)));
  EXPECT_TRUE(DTypeIsInt(Make(kDLInt, 32, 1)) && DTypeIsInt(Make(kDLUInt, 8, 1)));
  EXPECT_FALSE(DTypeIsInt(Make(kDLBool, 8, 1)) || DTypeIsInt(Make(kDLFloat, 8, 1)));
  EXPECT_TRUE(DTypeIsBool(Make(kDLBool, 8, 1)));
  EXPECT_FALSE(DTypeIsBool(Make(kDLUInt, 1, 1)));
}

TEST(DType, ConvertsFromEveryText) {
  DLDataType f32 = Make(kDLFloat, 32, 1);
  TVMFFIByteArray raw{"float32", 7};
  EXPECT_TRUE(AnyView("float32").cast<DLDataType>() == f32);
  EXPECT_TRUE(AnyView(&raw).cast<DLDataType>() == f32);
  EXPECT_TRUE(Any(String("float32")).cast<DLDataType>() == f32);
  EXPECT_TRUE(Any(Bytes("float32", 7)).cast<DLDataType>() == f32);
  EXPECT_TRUE(Any(f32).cast<DLDataType>() == f32);
  EXPECT_TRUE(Any(f32).as<DLDataType>().has_value());
  EXPECT_FALSE(Any("float32").as<DLDataType>().has_value());
  EXPECT_FALSE(Any(1).try_cast<DLDataType>().has_value());
  EXPECT_EQ(ErrorText([] { AnyView("nonsense").try_cast<DLDataType>(); }),
            "ValueError: unknown dtype `nonsense`");
  Any any = f32;
  EXPECT_TRUE(std::move(any).cast<DLDataType>() == f32);
}

TEST(DType, EnumeratorsCompareWithTheCode) {
  DLDataType dtype = Make(kDLFloat, 32, 1);
  EXPECT_TRUE(dtype.code == kDLFloat);
  EXPECT_EQ(dtype, Make(kDLFloat, 32, 1));
  EXPECT_NE(dtype, Make(kDLFloat, 16, 1));
  EXPECT_TRUE(dtype != Make(kDLFloat, 16, 1));
  EXPECT_EQ(static_cast<int>(kDLExtCustomBegin), 129);
  EXPECT_STREQ(details::DLDataTypeCodeAsCStr(static_cast<DLDataTypeCode>(200)), "custom");
}

}  // namespace
