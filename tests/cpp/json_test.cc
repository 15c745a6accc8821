// SPDX-License-Identifier: Apache-2.0
//
// extra/json.h: what is accepted, where errors are reported, how values are written.
#include <gtest/gtest.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/device.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/extra/structural_equal.h>
#include <tvm/ffi/function.h>

#include <clocale>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using tether_test::ErrorText;

std::string ParseError(const std::string& text) {
  try {
    json::Parse(String(text));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "ValueError");
    return error.message();
  }
  return "";
}

std::string WriteError(const Any& value) {
  return ErrorText([&] { json::Stringify(value); });
}

std::string Rewritten(const char* text) { return json::Stringify(json::Parse(text)); }

TEST(JSON, ParsesScalarsToTheirOwnTypes) {
  EXPECT_EQ(json::Parse("null"), nullptr);
  EXPECT_EQ(json::Parse("true").as<bool>(), true);
  EXPECT_EQ(json::Parse("false").as<bool>(), false);
  EXPECT_EQ(json::Parse("42").as<int64_t>(), 42);
  EXPECT_EQ(json::Parse("-7").as<int64_t>(), -7);
  EXPECT_EQ(json::Parse("2.5").as<double>(), 2.5);
  EXPECT_EQ(json::Parse("\"hi\"").as<String>().value(), "hi");
  EXPECT_EQ(json::Parse(" \t\r\n 1 \n ").as<int64_t>(), 1);
  EXPECT_TRUE(std::isnan(json::Parse("NaN").cast<double>()));
  EXPECT_EQ(json::Parse("Infinity").as<double>(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(json::Parse("-Infinity").as<double>(), -std::numeric_limits<double>::infinity());
}

TEST(JSON, IntegersBecomeDoublesOnlyWhenTheyMust) {
  EXPECT_EQ(json::Parse("9223372036854775807").as<int64_t>(), INT64_MAX);
  EXPECT_EQ(json::Parse("-9223372036854775808").as<int64_t>(), INT64_MIN);
  EXPECT_EQ(json::Parse("9223372036854775808").as<double>(), 9223372036854775808.0);
  EXPECT_EQ(json::Parse("-9223372036854775809").as<double>(), -9223372036854775808.0);
  EXPECT_EQ(json::Parse("-0").as<int64_t>(), 0);
  EXPECT_TRUE(std::signbit(json::Parse("-0.0").cast<double>()));
  EXPECT_EQ(json::Parse("1e2").as<double>(), 100.0);
  EXPECT_EQ(json::Parse("1E+2").as<double>(), 100.0);
}

TEST(JSON, RefusesNumbersThatJSONDoesNotHave) {
  for (const char* text :
       {"01", "-01", "00", "+1", ".5", "-.5", "+.5", "1.", "-1.", "1.e5", "0x1"}) {
    EXPECT_THROW(json::Parse(text), Error) << text;
    EXPECT_THROW(json::Parse("[" + std::string(text) + "]"), Error) << text;
  }
}

TEST(JSON, NumbersTooCloseToZeroAreZero) {
  const std::string zeros(400, '0');
  for (const std::string& text :
       {std::string("1e-400"), std::string("123.456e-400"), std::string("0.001e-322"),
        std::string("1E-99999999999999999999999"), "0." + zeros + "1", "0." + zeros + "1e5",
        "1" + zeros + "e-900"}) {
    Any parsed = json::Parse(text);
    EXPECT_EQ(parsed.as<double>(), 0.0) << text;
    EXPECT_FALSE(std::signbit(parsed.cast<double>())) << text;
    EXPECT_TRUE(std::signbit(json::Parse("-" + text).cast<double>())) << text;
  }
  for (const std::string& text :
       {std::string("1e400"), std::string("1e99999999999999999999999"), "1" + zeros,
        "0." + zeros + "1e900", "1" + zeros + "e-1", std::string("0.1e400")}) {
    EXPECT_THROW(json::Parse(text), Error) << text;
  }
  EXPECT_EQ(json::Parse("0e500").as<double>(), 0.0);
  EXPECT_EQ(json::Parse("0.0e999999").as<double>(), 0.0);
}

TEST(JSON, SmallestDoublesRoundTrip) {
  for (double value : {5e-324, 2.2e-308, 1e-310, std::numeric_limits<double>::min(),
                       std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()}) {
    EXPECT_EQ(json::Parse(json::Stringify(value)).as<double>(), value);
  }
}

TEST(JSON, StringEscapes) {
  EXPECT_EQ(json::Parse(R"("\"\\\/\b\f\n\r\t")").cast<String>(), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(json::Parse(R"("\u0041\u00e9\u20ac")").cast<String>(), "A\xc3\xa9\xe2\x82\xac");
  EXPECT_EQ(json::Parse(R"("\ud83d\ude00")").cast<String>(), "\xf0\x9f\x98\x80");
  EXPECT_EQ(json::Parse(R"("\uDBFF\uDFFF")").cast<String>(), "\xf4\x8f\xbf\xbf");
  EXPECT_EQ(json::Parse(R"("a\u0000b")").cast<String>(), String("a\0b", 3));
  EXPECT_EQ(json::Parse("\"\xff\x80 raw \x7f\"").cast<String>(), "\xff\x80 raw \x7f");
  EXPECT_EQ(json::Parse(R"("x\ny\nz and a longer tail")").cast<String>(),
            "x\ny\nz and a longer tail");
}

TEST(JSON, ContainersKeepOrderAndLastDuplicate) {
  json::Array array = json::Parse("[1, [2, 3], {}, [], \"x\"]").cast<json::Array>();
  ASSERT_EQ(array.size(), 5U);
  EXPECT_EQ(array[1].cast<json::Array>()[1].as<int64_t>(), 3);
  EXPECT_EQ(array[2].cast<json::Object>().size(), 0U);
  EXPECT_EQ(array[3].cast<json::Array>().size(), 0U);

  EXPECT_EQ(Rewritten(R"({"z":1,"a":2,"m":3,"b":4,"y":5,"c":6})"),
            R"({"z":1,"a":2,"m":3,"b":4,"y":5,"c":6})");
  json::Object object = json::Parse(R"({"a":1,"b":5,"a":2})").cast<json::Object>();
  EXPECT_EQ(object.size(), 2U);
  EXPECT_EQ(object.at("a").as<int64_t>(), 2);
  json::Object many = json::Parse(R"({"a":1,"b":2,"c":3,"d":4,"e":5,"a":6})").cast<json::Object>();
  EXPECT_EQ(many.size(), 5U);
  EXPECT_EQ(many.at("a").as<int64_t>(), 6);
}

struct ErrorCase {
  std::string text;
  std::string message;
};

TEST(JSON, ErrorsNameThePlace) {
  const std::string value = "Expecting value: line ";
  const std::vector<ErrorCase> cases = {
      {"", value + "1 column 1 (char 0)"},
      {"   \t\n    ", value + "2 column 5 (char 9)"},
      {"nul", value + "1 column 1 (char 0)"},
      {"fx", value + "1 column 1 (char 0)"},
      {"tru", value + "1 column 1 (char 0)"},
      {"Nan", value + "1 column 1 (char 0)"},
      {"nan", value + "1 column 1 (char 0)"},
      {"infinity", value + "1 column 1 (char 0)"},
      {"Infinit", value + "1 column 1 (char 0)"},
      {"-Infinit", value + "1 column 1 (char 0)"},
      {"-NaN", value + "1 column 1 (char 0)"},
      {"+Infinity", value + "1 column 1 (char 0)"},
      {"123.456.789", value + "1 column 1 (char 0)"},
      {"123e+", value + "1 column 1 (char 0)"},
      {"1e", value + "1 column 1 (char 0)"},
      {"1e5.0", value + "1 column 1 (char 0)"},
      {"1+1", value + "1 column 1 (char 0)"},
      {"--1", value + "1 column 1 (char 0)"},
      {"+-1", value + "1 column 1 (char 0)"},
      {"++1", value + "1 column 1 (char 0)"},
      {"+", value + "1 column 1 (char 0)"},
      {"-", value + "1 column 1 (char 0)"},
      {".", value + "1 column 1 (char 0)"},
      {"e5", value + "1 column 1 (char 0)"},
      {"1e400", value + "1 column 1 (char 0)"},
      {"-1e400", value + "1 column 1 (char 0)"},
      {"01", value + "1 column 1 (char 0)"},
      {"+1", value + "1 column 1 (char 0)"},
      {".5", value + "1 column 1 (char 0)"},
      {"1.", value + "1 column 1 (char 0)"},
      {"'a'", value + "1 column 1 (char 0)"},
      {"\xef\xbb\xbf"
       "1",
       value + "1 column 1 (char 0)"},
      {std::string("\0", 1), value + "1 column 1 (char 0)"},
      {"/*x*/1", value + "1 column 1 (char 0)"},
      {"\f1", value + "1 column 1 (char 0)"},
      {"]", value + "1 column 1 (char 0)"},
      {"}", value + "1 column 1 (char 0)"},
      {",", value + "1 column 1 (char 0)"},
      {"[", value + "1 column 2 (char 1)"},
      {"[ ", value + "1 column 3 (char 2)"},
      {"[,1]", value + "1 column 2 (char 1)"},
      {"[1,]", value + "1 column 4 (char 3)"},
      {"[1,,2]", value + "1 column 4 (char 3)"},
      {"[+]", value + "1 column 2 (char 1)"},
      {"[nan]", value + "1 column 2 (char 1)"},
      {"{\"a\":", value + "1 column 6 (char 5)"},
      {"{\"a\": ", value + "1 column 7 (char 6)"},
      {"{\"a\":}", value + "1 column 6 (char 5)"},
      {"{\"a\":nul}", value + "1 column 6 (char 5)"},
      {"[\n\n  x]", value + "3 column 3 (char 5)"},

      {"\"abc", "Unterminated string starting at: line 1 column 1 (char 0)"},
      {"[1, \"abc", "Unterminated string starting at: line 1 column 5 (char 4)"},
      {"\"a\\nb", "Unterminated string starting at: line 1 column 1 (char 0)"},
      {"{\"a", "Unterminated string starting at: line 1 column 2 (char 1)"},
      {"\"a\x01\"", "Invalid control character at: line 1 column 3 (char 2)"},
      {"\"a\n\"", "Invalid control character at: line 1 column 3 (char 2)"},
      {"\"\\n\t\"", "Invalid control character at: line 1 column 4 (char 3)"},
      {std::string("\"a\0\"", 4), "Invalid control character at: line 1 column 3 (char 2)"},

      {"\"a\\", "Invalid \\escape: line 1 column 4 (char 3)"},
      {"\"\\x\"", "Invalid \\escape: line 1 column 3 (char 2)"},
      {"\"\\'\"", "Invalid \\escape: line 1 column 3 (char 2)"},
      {std::string("\"\\\0\"", 4), "Invalid \\escape: line 1 column 3 (char 2)"},
      {"\"\\u", "Invalid \\uXXXX escape: line 1 column 3 (char 2)"},
      {"\"\\u12\"", "Invalid \\uXXXX escape: line 1 column 3 (char 2)"},
      {"\"\\u12G4\"", "Invalid \\uXXXX escape: line 1 column 3 (char 2)"},
      {"\"hello\\uD800\\uxx\"", "Invalid \\uXXXX escape: line 1 column 15 (char 14)"},
      {"\"\\uD800\\u", "Invalid \\uXXXX escape: line 1 column 10 (char 9)"},
      {"\"\\uD800\\u1", "Invalid \\uXXXX escape: line 1 column 10 (char 9)"},
      {"\"\\uD800\"", "Invalid surrogate pair of \\uXXXX escapes: line 1 column 3 (char 2)"},
      {"\"\\uD800x\"", "Invalid surrogate pair of \\uXXXX escapes: line 1 column 3 (char 2)"},
      {"\"\\uD800\\n\"", "Invalid surrogate pair of \\uXXXX escapes: line 1 column 3 (char 2)"},
      {"\"\\uD800\\", "Invalid surrogate pair of \\uXXXX escapes: line 1 column 3 (char 2)"},
      {"\"\\uDC00\"", "Invalid surrogate pair of \\uXXXX escapes: line 1 column 3 (char 2)"},
      {"\"\\uD800\\u0041\"",
       "Invalid surrogate pair of \\uXXXX escapes: line 1 column 10 (char 9)"},
      {"\"\\ud800\\ud800\"",
       "Invalid surrogate pair of \\uXXXX escapes: line 1 column 10 (char 9)"},

      {"{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"},
      {"{ ", "Expecting property name enclosed in double quotes: line 1 column 3 (char 2)"},
      {"{,}", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"},
      {"{1:2}", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"},
      {"{]", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"},
      {"{\"a\":1,}", "Expecting property name enclosed in double quotes: line 1 column 8 (char 7)"},
      {"{\"a\"", "Expecting ':' delimiter: line 1 column 5 (char 4)"},
      {"{\"a\" ", "Expecting ':' delimiter: line 1 column 6 (char 5)"},
      {"{\"a\" 1}", "Expecting ':' delimiter: line 1 column 6 (char 5)"},
      {"{\"a\",}", "Expecting ':' delimiter: line 1 column 5 (char 4)"},
      {"[1", "Expecting ',' delimiter: line 1 column 3 (char 2)"},
      {"[1 2]", "Expecting ',' delimiter: line 1 column 4 (char 3)"},
      {"[1}", "Expecting ',' delimiter: line 1 column 3 (char 2)"},
      {"[[]", "Expecting ',' delimiter: line 1 column 4 (char 3)"},
      {"{\"a\":1", "Expecting ',' delimiter: line 1 column 7 (char 6)"},
      {"{\"a\":1]", "Expecting ',' delimiter: line 1 column 7 (char 6)"},
      {"{\"a\":1 \"b\"}", "Expecting ',' delimiter: line 1 column 8 (char 7)"},
      {"{\"a\":\n\n[1]", "Expecting ',' delimiter: line 3 column 4 (char 10)"},
      {"\n\n [1,\n2 3]", "Expecting ',' delimiter: line 4 column 3 (char 9)"},
      {"[1,", "Syntax error near: line 1 column 4 (char 3)"},
      {"[1, ", "Syntax error near: line 1 column 5 (char 4)"},
      {"{\"a\":1,", "Syntax error near: line 1 column 8 (char 7)"},
      {"{\"a\":1, ", "Syntax error near: line 1 column 9 (char 8)"},
      {"1 2", "Extra data: line 1 column 3 (char 2)"},
      {"truee", "Extra data: line 1 column 5 (char 4)"},
      {"nullnull", "Extra data: line 1 column 5 (char 4)"},
      {"0x10", "Extra data: line 1 column 2 (char 1)"},
      {"[]]", "Extra data: line 1 column 3 (char 2)"},
      {"{\"a\":1}}", "Extra data: line 1 column 8 (char 7)"},
      {"[1]//", "Extra data: line 1 column 4 (char 3)"},
      {std::string("1\0", 2), "Extra data: line 1 column 2 (char 1)"},
  };
  EXPECT_GE(cases.size(), 60U);
  for (const ErrorCase& error : cases)
    EXPECT_EQ(ParseError(error.text), error.message) << error.text;
}

TEST(JSON, ErrorsCanBeStoredInsteadOfThrown) {
  String message = "old";
  EXPECT_EQ(json::Parse("[1,]", &message), nullptr);
  EXPECT_EQ(message, "Expecting value: line 1 column 4 (char 3)");
  EXPECT_EQ(json::Parse("[1]", &message).cast<json::Array>().size(), 1U);
  EXPECT_EQ(message, "");
}

TEST(JSON, EveryPrefixOfADocumentIsAnErrorOrAValue) {
  const std::string text =
      R"([{"key": [1, -2.5e3, true, null, "a\u00e9\n\ud83d\ude00"]}, NaN, ""])";
  ASSERT_EQ(ParseError(text), "");
  for (size_t n = 0; n < text.size(); ++n) EXPECT_NE(ParseError(text.substr(0, n)), "") << n;
}

TEST(JSON, WritesScalars) {
  EXPECT_EQ(json::Stringify(nullptr), "null");
  EXPECT_EQ(json::Stringify(true), "true");
  EXPECT_EQ(json::Stringify(false), "false");
  EXPECT_EQ(json::Stringify(INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(json::Stringify(5.0), "5.0");
  EXPECT_EQ(json::Stringify(-0.0), "-0.0");
  EXPECT_EQ(json::Stringify(0.0), "0.0");
  EXPECT_EQ(json::Stringify(2.5), "2.5");
  EXPECT_EQ(json::Stringify(-7.89e-15), "-7.89e-15");
  EXPECT_EQ(json::Stringify(2e-08), "2e-08");
  EXPECT_EQ(json::Stringify(0.1), "0.10000000000000001");
  EXPECT_EQ(json::Stringify(9007199254740991.0), "9007199254740991.0");
  EXPECT_EQ(json::Stringify(9007199254740992.0), "9007199254740992.0");
  EXPECT_EQ(json::Stringify(1e16), "10000000000000000.0") << "or it is read as an integer";
  EXPECT_EQ(json::Stringify(1e300), "1.0000000000000001e+300");
  EXPECT_EQ(json::Stringify(std::nan("")), "NaN");
  EXPECT_EQ(json::Stringify(-std::numeric_limits<double>::infinity()), "-Infinity");
  EXPECT_EQ(json::Stringify(std::numeric_limits<double>::infinity()), "Infinity");
  EXPECT_EQ(json::Stringify(String("a/b\x7f\x01\"\\\b\f\n\r\t\xc3\xa9")),
            "\"a\\/b\\u007f\\u0001\\\"\\\\\\b\\f\\n\\r\\t\xc3\xa9\"");
  EXPECT_EQ(json::Stringify(String("")), "\"\"");
  EXPECT_EQ(json::Stringify(String("plain text longer than a cell")),
            "\"plain text longer than a cell\"");
}

TEST(JSON, FloatsAgreeWithPrintf) {
  uint64_t state = 88172645463325252ULL;
  for (int i = 0; i < 2000; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    double value;
    std::memcpy(&value, &state, sizeof(value));
    if (!std::isfinite(value)) continue;
    char expected[64];
    bool integral = std::fabs(value) < 9007199254740992.0 && value == std::floor(value);
    std::snprintf(expected, sizeof(expected), integral ? "%.1f" : "%.17g", value);
    if (std::strpbrk(expected, ".e") == nullptr) std::strcat(expected, ".0");
    String text = json::Stringify(value);
    EXPECT_EQ(text, expected);
    EXPECT_EQ(json::Parse(text).as<double>(), value) << "a float, not an integer";
  }
}

TEST(JSON, WritesContainers) {
  json::Object object{{"a", json::Array{1, nullptr, "x"}}, {"b", json::Object()}};
  EXPECT_EQ(json::Stringify(object), R"({"a":[1,null,"x"],"b":{}})");
  EXPECT_EQ(json::Stringify(json::Array()), "[]");
  EXPECT_EQ(json::Stringify(List<Any>{1, List<Any>{2}}), "[1,[2]]");
  EXPECT_EQ(json::Stringify(object, 2),
            "{\n  \"a\": [\n    1,\n    null,\n    \"x\"\n  ],\n  \"b\": {\n  }\n}");
  EXPECT_EQ(json::Stringify(json::Array(), 2), "[\n]");
  EXPECT_EQ(json::Stringify(json::Array{1}, 0), "[1]");
  EXPECT_EQ(json::Stringify(json::Array{1}, -1), "[\n1\n]");
}

TEST(JSON, RefusesWhatHasNoForm) {
  EXPECT_EQ(WriteError(json::Object{{1, 2}}), "ValueError: Expect key to be string, got `int`");
  EXPECT_EQ(WriteError(json::Object{{nullptr, 2}}),
            "ValueError: Expect key to be string, got `None`");
  EXPECT_EQ(WriteError(Bytes("x", 1)), "ValueError: Unsupported type: `ffi.SmallBytes`");
  EXPECT_EQ(WriteError(Dict<Any, Any>()), "ValueError: Unsupported type: `ffi.Dict`");
  EXPECT_EQ(WriteError(DLDevice{kDLCPU, 0}), "ValueError: Unsupported type: `Device`");
  EXPECT_EQ(WriteError(json::Array{1, Function::FromTyped([] {})}),
            "ValueError: Unsupported type: `ffi.Function`");
}

TEST(JSON, ListsThatContainThemselvesAreReported) {
  List<Any> list;
  list.push_back(json::Array{1, list});
  EXPECT_EQ(WriteError(list), "ValueError: Cycle detected: List contains itself");
  list.clear();

  List<Any> twice{1};
  EXPECT_EQ(json::Stringify(json::Array{twice, twice}), "[[1],[1]]");
}

TEST(JSON, RoundTripKeepsStructure) {
  for (const char* text :
       {"[]", "{}", "[[],{}]", R"({"a":{"b":{"c":[1,2,3]}},"d":"e","long key number one":-1.5})",
        R"([true,false,null,-1,1.5,"\/"])"}) {
    EXPECT_EQ(Rewritten(text), text);
    json::Value value = json::Parse(text);
    EXPECT_TRUE(StructuralEqual()(value, json::Parse(json::Stringify(value, 3))));
  }
}

TEST(JSON, NestingIsOnlyLimitedByMemory) {
  constexpr size_t kDepth = 100000;
  std::string arrays = std::string(kDepth, '[') + "1" + std::string(kDepth, ']');
  EXPECT_EQ(std::string(Rewritten(arrays.c_str())), arrays);
  std::string objects;
  for (size_t i = 0; i < kDepth; ++i) objects += "{\"k\":";
  objects += "1" + std::string(kDepth, '}');
  EXPECT_EQ(std::string(Rewritten(objects.c_str())), objects);
  EXPECT_EQ(ParseError(std::string(kDepth, '[')),
            "Expecting value: line 1 column 100001 (char 100000)");
}

TEST(JSON, DecimalPointDoesNotDependOnTheLocale) {
  std::string old = std::setlocale(LC_NUMERIC, nullptr);
  const char* comma = nullptr;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"}) {
    if (comma == nullptr) comma = std::setlocale(LC_NUMERIC, name);
  }
  if (comma == nullptr) GTEST_SKIP() << "no locale with a decimal comma is installed";
  EXPECT_EQ(json::Parse("1.5").as<double>(), 1.5);
  EXPECT_EQ(json::Stringify(1.5), "1.5");
  std::setlocale(LC_NUMERIC, old.c_str());
}

TEST(JSON, GlobalFunctions) {
  Function parse = Function::GetGlobalRequired("ffi.json.Parse");
  Function stringify = Function::GetGlobalRequired("ffi.json.Stringify");
  Any value = parse("{\"a\": [1]}");
  EXPECT_EQ(stringify(value, nullptr).cast<String>(), "{\"a\":[1]}");
  EXPECT_EQ(stringify(value, 1).cast<String>(), "{\n \"a\": [\n  1\n ]\n}");
  EXPECT_THROW(parse("{"), Error);
}

}  // namespace
