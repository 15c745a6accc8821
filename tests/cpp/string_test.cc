// SPDX-License-Identifier: Apache-2.0
//
// string.h: the two forms of a string, comparisons, searching, escaping, conversion.
#include <gtest/gtest.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/string.h>

#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using tether_test::ErrorText;

static_assert(sizeof(String) == 16 && sizeof(Bytes) == 16);
static_assert(sizeof(details::StringObj) == 40 && sizeof(details::BytesObj) == 40);
static_assert(!std::is_constructible_v<String, std::nullptr_t>);
static_assert(!std::is_constructible_v<String, std::string_view>);
static_assert(!std::is_convertible_v<TVMFFIByteArray, String>);
static_assert(std::is_constructible_v<String, TVMFFIByteArray>);
static_assert(std::is_convertible_v<TVMFFIByteArray, Bytes>);
static_assert(String::npos == static_cast<size_t>(-1));

template <typename T>
TVMFFIAny CellOf(const T& value) {
  return AnyView(value).CopyToTVMFFIAny();
}

// ---- the two forms

TEST(StringForm, UpToSevenBytesAreInline) {
  const char* text = "abcdefghij";
  for (size_t size = 0; size <= 10; ++size) {
    String s(text, size);
    TVMFFIAny cell = CellOf(s);
    EXPECT_EQ(s.size(), size);
    EXPECT_EQ(std::memcmp(s.data(), text, size), 0);
    EXPECT_EQ(s.data()[size], '\0') << "terminated at " << size;
    if (size <= 7) {
      EXPECT_EQ(cell.type_index, kTVMFFISmallStr);
      EXPECT_EQ(cell.small_str_len, size);
      for (size_t i = size; i < 8; ++i) EXPECT_EQ(cell.v_bytes[i], 0) << "unused bytes are zero";
    } else {
      EXPECT_EQ(cell.type_index, kTVMFFIStr);
      EXPECT_EQ(cell.zero_padding, 0u);
      auto* array = TVMFFIBytesGetByteArrayPtr(cell.v_obj);
      EXPECT_EQ(array->size, size);
      EXPECT_EQ(array->data, reinterpret_cast<char*>(cell.v_obj) + 40) << "content in place";
    }
  }
}

TEST(StringForm, BytesFollowTheSameRule) {
  EXPECT_EQ(CellOf(Bytes("1234567", 7)).type_index, kTVMFFISmallBytes);
  EXPECT_EQ(CellOf(Bytes("12345678", 8)).type_index, kTVMFFIBytes);
  EXPECT_EQ(CellOf(Bytes()).type_index, kTVMFFISmallBytes);
  EXPECT_EQ(CellOf(String()).type_index, kTVMFFISmallStr);
  EXPECT_EQ(CellOf(String()).small_str_len, 0u);
}

TEST(StringForm, CopyingConstructorsChooseByLength) {
  std::string small = "small", large = "large enough";
  EXPECT_EQ(CellOf(String(small)).type_index, kTVMFFISmallStr);
  EXPECT_EQ(CellOf(String(large)).type_index, kTVMFFIStr);
  EXPECT_EQ(CellOf(String(TVMFFIByteArray{"abc", 3})).type_index, kTVMFFISmallStr);
  EXPECT_EQ(CellOf(String("abc") + "def").type_index, kTVMFFISmallStr);
  EXPECT_EQ(CellOf(String("abcd") + "efgh").type_index, kTVMFFIStr);
  EXPECT_EQ(CellOf(String(large).substr(0, 3)).type_index, kTVMFFISmallStr);
  EXPECT_EQ(small, "small") << "the source of a copy is untouched";
}

TEST(StringForm, MovedStdStringIsAlwaysAnObject) {
  for (const char* text : {"", "abc", "a text that is longer than any small string buffer"}) {
    std::string source = text;
    String s(std::move(source));
    EXPECT_EQ(CellOf(s).type_index, kTVMFFIStr);
    EXPECT_EQ(s, text);
    EXPECT_TRUE(source.empty()) << "really moved";
  }
  std::string long_source(100, 'x');
  const char* buffer = long_source.data();
  Bytes b(std::move(long_source));
  EXPECT_EQ(CellOf(b).type_index, kTVMFFIBytes);
  EXPECT_EQ(b.data(), buffer) << "not copied";
}

TEST(StringForm, NothingDependsOnTheForm) {
  String inline_form("abc");
  String object_form(std::string("abc"));
  ASSERT_NE(CellOf(inline_form).type_index, CellOf(object_form).type_index);
  EXPECT_EQ(inline_form, object_form);
  EXPECT_EQ(inline_form.compare(object_form), 0);
  EXPECT_EQ(std::hash<String>()(inline_form), std::hash<String>()(object_form));
  EXPECT_EQ(AnyHash()(inline_form), AnyHash()(object_form));
  EXPECT_TRUE(AnyEqual()(inline_form, object_form));
  EXPECT_EQ(inline_form + "x", object_form + "x");
}

TEST(StringForm, MovedFromIsNone) {
  String heap("a heap string, surely"), small("abc");
  String heap_taken = std::move(heap), small_taken = std::move(small);
  EXPECT_EQ(CellOf(heap).type_index, kTVMFFINone);
  EXPECT_EQ(CellOf(small).type_index, kTVMFFINone);
  heap = "assigned again";
  EXPECT_EQ(heap, "assigned again");
  EXPECT_EQ(small_taken, "abc");
  EXPECT_EQ(heap_taken.size(), 21u);
}

TEST(StringForm, CopiesShareTheObject) {
  Any a = String("a heap string, surely");
  EXPECT_EQ(a.as<Object>()->use_count(), 1u);
  String b = a.cast<String>();
  String c = b;
  EXPECT_EQ(a.as<Object>()->use_count(), 3u);
  EXPECT_EQ(b.data(), c.data());
  c = "other";
  b = String();
  EXPECT_EQ(a.as<Object>()->use_count(), 1u);
}

// ---- values

TEST(String, AssignsFromEveryKindOfText) {
  String s = "literal";
  s = std::string("std::string rvalue");
  EXPECT_EQ(s, "std::string rvalue");
  std::string lvalue = "lvalue";
  s = lvalue;
  EXPECT_EQ(s, lvalue);
  s = "again";
  EXPECT_EQ(s, "again");
  String& self = s;
  s = self;
  EXPECT_EQ(s, "again");
  std::string back = s;
  EXPECT_EQ(back, "again");
  String t = "t";
  s.swap(t);
  EXPECT_EQ(s, "t");
}

TEST(String, KeepsEmbeddedNuls) {
  String s(std::string("a\0b", 3));
  EXPECT_EQ(s.size(), 3u);
  EXPECT_EQ(s.length(), 3u);
  EXPECT_NE(s, "a");
  EXPECT_EQ(s, std::string("a\0b", 3));
  EXPECT_EQ(s.compare("a"), 1) << "a C string stops at its NUL";
  EXPECT_EQ(s.compare(std::string("a\0c", 3)), -1);
  EXPECT_EQ(s.compare(String("a\0b", 3)), 0);
  EXPECT_EQ(s.compare(TVMFFIByteArray{"a\0b", 3}), 0);
}

TEST(String, CompareIsExactlyMinusOneZeroOne) {
  String s = "hello";
  for (auto [other, expected] :
       std::vector<std::pair<std::string, int>>{{"hello", 0},
                                                {"hallo", 1},
                                                {"hullo", -1},
                                                {"hell", 1},
                                                {"hello!", -1},
                                                {"", 1},
                                                {"a", 1},
                                                {"z", -1},
                                                {"a long text on the heap", 1},
                                                {"\xc3\xa9", -1},  // bytes have no sign
                                                {"hell\x80 and a heap", -1}}) {
    EXPECT_EQ(s.compare(other), expected) << other;
    EXPECT_EQ(s.compare(other.c_str()), expected) << other;
    EXPECT_EQ(s.compare(String(other)), expected) << other;
    EXPECT_EQ(String(other).compare(s), -expected) << other;
    EXPECT_EQ(s.compare(TVMFFIByteArray{other.data(), other.size()}), expected) << other;
  }
}

TEST(String, CompareFollowsChangedMemory) {
  String s = "hello, changing world";
  char* data = const_cast<char*>(s.data());
  EXPECT_EQ(s.compare(data), 0);
  data[5] = '\0';
  EXPECT_EQ(s.compare(data), 1) << "the C string now ends early, the String does not";
  EXPECT_EQ(s.compare("hello"), 1);
}

TEST(String, RelationsWorkInBothOrders) {
  String a = "apple", b = "banana";
  std::string sa = "apple", sb = "banana";
  EXPECT_TRUE(a < b && a <= b && b > a && b >= a && a != b);
  EXPECT_TRUE(a < sb && a <= sa && b > sa && b >= sb && a != sb && a == sa);
  EXPECT_TRUE(sa < b && sa <= a && sb > a && sb >= b && sa != b && sa == a);
  EXPECT_TRUE(a < "banana" && a <= "apple" && b > "apple" && b >= "banana" && a != "b" &&
              a == "apple");
  EXPECT_TRUE("apple" < b && "apple" <= a && "banana" > a && "b" != a && "apple" == a && "z" >= a);
  EXPECT_FALSE(a < a);
  EXPECT_TRUE(a <= a);
}

TEST(String, ConcatenatesWithText) {
  String s = "abc";
  EXPECT_EQ(s + String("def"), "abcdef");
  EXPECT_EQ(s + std::string("def"), "abcdef");
  EXPECT_EQ(s + "def", "abcdef");
  EXPECT_EQ("def" + s, "defabc");
  EXPECT_EQ(std::string("def") + s, "defabc");
  EXPECT_EQ(s + "", "abc");
  EXPECT_EQ(String() + String(), "");
  String long_one(std::string(100, 'x'));
  EXPECT_EQ((long_one + long_one).size(), 200u);
  EXPECT_EQ((long_one + long_one).data()[200], '\0');
}

TEST(String, AtChecksBounds) {
  String s = "abc";
  EXPECT_EQ(s.at(0), 'a');
  EXPECT_EQ(s.at(2), 'c');
  try {
    s.at(3);
    FAIL();
  } catch (const std::out_of_range& e) {
    EXPECT_STREQ(e.what(), "tvm::String index out of bounds");
  }
}

TEST(String, SubstrClampsAndChecks) {
  String s = "hello world";
  EXPECT_EQ(s.substr(), s);
  EXPECT_EQ(s.substr(6), "world");
  EXPECT_EQ(s.substr(0, 5), "hello");
  EXPECT_EQ(s.substr(6, 100), "world");
  EXPECT_EQ(s.substr(11), "");
  try {
    s.substr(12);
    FAIL();
  } catch (const std::out_of_range& e) {
    EXPECT_STREQ(e.what(), "tvm::String substr index out of bounds");
  }
}

TEST(String, FindFollowsStringView) {
  String s = "hello world, hello";
  EXPECT_EQ(s.find("hello"), 0u);
  EXPECT_EQ(s.find("hello", 1), 13u);
  EXPECT_EQ(s.find(String("world")), 6u);
  EXPECT_EQ(s.find("worldwide", 0, 5), 6u);
  EXPECT_EQ(s.find("absent"), String::npos);
  EXPECT_EQ(s.find(""), 0u);
  EXPECT_EQ(s.find("", 18), 18u);
  EXPECT_EQ(s.find("", 19), String::npos);
  EXPECT_EQ(s.find("h", 100), String::npos);
}

TEST(String, StartsAndEndsWith) {
  String s = "hello";
  EXPECT_TRUE(s.starts_with("he") && s.starts_with(String("hello")) && s.starts_with(""));
  EXPECT_TRUE(s.starts_with(std::string_view("hell")) && s.starts_with("heXX", 2));
  EXPECT_FALSE(s.starts_with("hello!") || s.starts_with("ello"));
  EXPECT_TRUE(s.ends_with("lo") && s.ends_with(String("hello")) && s.ends_with(""));
  EXPECT_TRUE(s.ends_with(std::string_view("ello")) && s.ends_with("loXX", 2));
  EXPECT_FALSE(s.ends_with("hhello") || s.ends_with("hell"));
}

TEST(String, SplitKeepsEmptyParts) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(String("a,b,c").Split(','), (Parts{"a", "b", "c"}));
  EXPECT_EQ(String(",a,,").Split(','), (Parts{"", "a", "", ""}));
  EXPECT_EQ(String("").Split(','), (Parts{""}));
  EXPECT_EQ(String("no delimiter").Split(','), (Parts{"no delimiter"}));
  String heap = "a string,on the heap";
  EXPECT_EQ(heap.Split(',')[1].data(), heap.data() + 9) << "views into the string";
}

TEST(String, StreamsRawBytes) {
  std::ostringstream os;
  os << String("a\0b", 3) << String(" and more");
  EXPECT_EQ(os.str(), std::string("a\0b and more", 12));
}

TEST(String, IsAKeyOfStandardMaps) {
  std::unordered_map<String, int> map;
  map["one"] = 1;
  map[String(std::string("one"))] = 2;
  map[std::string("a key on the heap")] = 3;
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(map.at("one"), 2);
  EXPECT_EQ(std::hash<String>()("abc"), std::hash<std::string_view>()("abc"));
  EXPECT_EQ(std::hash<Bytes>()(Bytes("abc", 3)), std::hash<std::string_view>()("abc"));
}

// ---- Bytes

TEST(Bytes, HoldAnyContent) {
  std::string raw("\0\xff\x80z", 4);
  Bytes b = raw;
  EXPECT_EQ(b.size(), 4u);
  EXPECT_EQ(static_cast<std::string>(b), raw);
  EXPECT_TRUE(b == raw);
  b = std::string("assigned from a string");
  EXPECT_TRUE(b == "assigned from a string");
  Bytes c;
  c.swap(b);
  EXPECT_EQ(b.size(), 0u);
  c = TVMFFIByteArray{"xy", 2};
  EXPECT_TRUE(c == "xy");
}

TEST(Bytes, MemncmpIsLexicographicAndSizeAware) {
  EXPECT_EQ(Bytes::memncmp("abc", "abc", 3, 3), 0);
  EXPECT_EQ(Bytes::memncmp("abc", "abd", 3, 3), -1);
  EXPECT_EQ(Bytes::memncmp("abd", "abc", 3, 3), 1);
  EXPECT_EQ(Bytes::memncmp("ab", "abc", 2, 3), -1);
  EXPECT_EQ(Bytes::memncmp("abc", "ab", 3, 2), 1);
  EXPECT_EQ(Bytes::memncmp("", "", 0, 0), 0);
  const char* same = "same";
  EXPECT_EQ(Bytes::memncmp(same, same, 4, 4), 0);
  EXPECT_EQ(Bytes::memncmp(same, same, 3, 4), -1);
  EXPECT_TRUE(Bytes::memequal("abc", "abc", 3, 3));
  EXPECT_FALSE(Bytes::memequal("abc", "abc", 3, 2));
  EXPECT_TRUE(Bytes::memequal(nullptr, "", 0, 0));
}

// ---- stable hashes

TEST(StableHash, HasTheValuesClientsWereCompiledWith) {
  auto hash = [](std::string_view s) { return details::StableHashBytes(s.data(), s.size()); };
  EXPECT_EQ(hash(""), 0u);
  EXPECT_EQ(hash("a"), 97u);
  EXPECT_EQ(hash("abc"), 6513249u);
  EXPECT_EQ(hash("abcd"), 1684234849u);
  EXPECT_EQ(hash("abcdefg"), 1697787691u);
  EXPECT_EQ(hash("abcdefgh"), 892481325u);
  EXPECT_EQ(hash("abcdefghi"), 1218741397u);
  EXPECT_EQ(hash("hello world"), 1085901259u);
  EXPECT_EQ(hash("\xff\xff\xff\xff\xff\xff\xff\xff"), 3u);
  EXPECT_EQ(hash("\xff\xfe\xfd"), 16645887u);
  EXPECT_EQ(hash("The quick brown fox jumps over the lazy dog"), 1278762651u);
  EXPECT_EQ(details::StableHashCombine(0, 0), 2654435769u);
  EXPECT_EQ(details::StableHashCombine(1, 2), 2654435834u);
  EXPECT_EQ(details::StableHashCombine(~uint64_t{0}, 1), 13835058052627728006u);
}

TEST(StableHash, DoesNotDependOnAlignment) {
  alignas(8) char buffer[32] = {};
  const char* text = "hello world";
  for (int offset = 0; offset < 8; ++offset) {
    std::memcpy(buffer + offset, text, 11);
    EXPECT_EQ(details::StableHashBytes(buffer + offset, 11), 1085901259u);
  }
}

TEST(StableHash, SmallStringHashesLikeItsBytes) {
  for (const char* text : {"", "a", "abc", "abcdefg"}) {
    TVMFFIAny cell = CellOf(String(text));
    EXPECT_EQ(details::StableHashSmallStrBytes(&cell),
              details::StableHashBytes(text, std::strlen(text)));
  }
}

// ---- escaping

TEST(EscapeString, JsonFollowsItsTable) {
  EXPECT_EQ(EscapeStringJSON("plain"), "\"plain\"");
  EXPECT_EQ(EscapeStringJSON("\"\\/\b\f\n\r\t"), R"("\"\\\/\b\f\n\r\t")");
  EXPECT_EQ(EscapeStringJSON(String("\x00\x01\x1f\x7f", 4)), R"("\u0000\u0001\u001f\u007f")");
  EXPECT_EQ(EscapeStringJSON("caf\xc3\xa9"), "\"caf\xc3\xa9\"") << "UTF-8 stays raw";
  EXPECT_EQ(EscapeStringJSON(""), "\"\"");
}

TEST(EscapeString, PythonFollowsItsTable) {
  EXPECT_EQ(EscapedStringPy("plain 'single' /slash/"), "\"plain 'single' /slash/\"");
  EXPECT_EQ(EscapedStringPy("\n\t\r\\\""), R"("\n\t\r\\\"")");
  EXPECT_EQ(EscapedStringPy(String("\x00\x01\x7f", 3)), R"("\x00\x01\x7f")");
  EXPECT_EQ(EscapedStringPy("\xc3\xa9"), R"("\u00e9")");
  EXPECT_EQ(EscapedStringPy("\xe2\x82\xac"), R"("\u20ac")");
  EXPECT_EQ(EscapedStringPy("\xf0\x9f\x98\x80"), R"("\U0001f600")");
}

TEST(EscapeString, PythonKeepsColourSequences) {
  EXPECT_EQ(EscapedStringPy("\x1b[31mred\x1b[0m"), R"("\x1b[31mred\x1b[0m")");
  EXPECT_EQ(EscapedStringPy("\x1b[1;32m\x1b[K\x1b[m"), R"("\x1b[1;32m\x1b[K\x1b[m")");
  EXPECT_EQ(EscapedStringPy("\x1b[2J"), R"("\x1b[2J")") << "other finals follow the normal rules";
  EXPECT_EQ(EscapedStringPy("\x1b[3"), R"("\x1b[3")");
  EXPECT_EQ(EscapedStringPy("\x1b"), R"("\x1b")");
}

TEST(EscapeString, PythonEscapesBrokenUtf8ByteByByte) {
  EXPECT_EQ(EscapedStringPy("\xc3"), R"("\xc3")");
  EXPECT_EQ(EscapedStringPy("\xc3(x"), R"("\xc3(x")");
  EXPECT_EQ(EscapedStringPy("\xe2\x82"), R"("\xe2\x82")");
  EXPECT_EQ(EscapedStringPy("\xe2\x28\xa1"), R"("\xe2(\xa1")");
  EXPECT_EQ(EscapedStringPy("\x80z"), R"("\x80z")");
  EXPECT_EQ(EscapedStringPy("\xf0\x9f\x98"), R"("\xf0\x9f\x98")");
  EXPECT_EQ(EscapedStringPy("\xff"), R"("\xff")");
}

// ---- conversion

TEST(StringConversion, LiteralIsBorrowedInAViewAndOwnedInAny) {
  AnyView view = "text";
  EXPECT_EQ(view.type_index(), kTVMFFIRawStr);
  EXPECT_FALSE(view.as<String>().has_value());
  EXPECT_EQ(view.cast<String>(), "text");
  EXPECT_STREQ(view.cast<const char*>(), "text");
  EXPECT_EQ(Any("short").type_index(), kTVMFFISmallStr);
  EXPECT_EQ(Any("longer than seven").type_index(), kTVMFFIStr);
  EXPECT_EQ(Any(std::string("short")).type_index(), kTVMFFIStr);
  EXPECT_EQ(Any(view).type_index(), kTVMFFISmallStr);
}

TEST(StringConversion, ByteArrayIsBorrowedInAViewAndOwnedInAny) {
  TVMFFIByteArray bytes{"a\0b", 3};
  AnyView view = &bytes;
  EXPECT_EQ(view.type_index(), kTVMFFIByteArrayPtr);
  EXPECT_EQ(view.cast<TVMFFIByteArray*>(), &bytes);
  EXPECT_EQ(view.cast<Bytes>().size(), 3u);
  EXPECT_EQ(Any(view).type_index(), kTVMFFISmallBytes);
  EXPECT_EQ(Any(&bytes).cast<Bytes>().size(), 3u);
}

TEST(StringConversion, StdStringTakesEveryText) {
  TVMFFIByteArray raw{"ba", 2};
  EXPECT_EQ(AnyView("lit").cast<std::string>(), "lit");
  EXPECT_EQ(AnyView(&raw).cast<std::string>(), "ba");
  EXPECT_EQ(Any(Bytes("by", 2)).cast<std::string>(), "by");
  EXPECT_EQ(Any(Bytes("bytes on the heap", 17)).cast<std::string>(), "bytes on the heap");
  EXPECT_EQ(Any(String("st")).cast<std::string>(), "st");
  EXPECT_EQ(Any(String("string on the heap")).cast<std::string>(), "string on the heap");
  EXPECT_FALSE(Any(1).try_cast<std::string>().has_value());
  std::string with_nul("a\0b", 3);
  EXPECT_EQ(AnyView(with_nul).cast<std::string>(), "a") << "a view is a C string";
  EXPECT_EQ(Any(with_nul).cast<std::string>(), with_nul);
}

TEST(StringConversion, StringAndBytesDoNotMix) {
  EXPECT_EQ(ErrorText([] { Any(Bytes("by", 2)).cast<String>(); }),
            "TypeError: Cannot convert from type `ffi.SmallBytes` to `str`");
  EXPECT_EQ(ErrorText([] { Any(String("longer than seven")).cast<Bytes>(); }),
            "TypeError: Cannot convert from type `ffi.String` to `bytes`");
  EXPECT_EQ(ErrorText([] { AnyView("lit").cast<Bytes>(); }),
            "TypeError: Cannot convert from type `const char*` to `bytes`");
  EXPECT_EQ(ErrorText([] { Any(String("st")).cast<const char*>(); }),
            "TypeError: Cannot convert from type `ffi.SmallStr` to `const char*`");
}

TEST(StringConversion, NullPointersAreRefused) {
  const char* null_text = nullptr;
  EXPECT_EQ(ErrorText([&] { (void)AnyView(null_text); }), "InternalError: Check not null: src ");
  EXPECT_EQ(ErrorText([&] { Any any = null_text; }), "InternalError: Check not null: src ");
  TVMFFIByteArray* null_bytes = nullptr;
  EXPECT_EQ(ErrorText([&] { (void)AnyView(null_bytes); }), "InternalError: Check not null: src ");
}

TEST(StringConversion, MovesOutOfAny) {
  Any any = String("a string on the heap");
  String s = std::move(any).cast<String>();
  EXPECT_TRUE(any == nullptr);
  Any again = s;
  EXPECT_EQ(again.as<Object>()->use_count(), 2u);
  Any small = "abc";
  EXPECT_EQ(std::move(small).cast<String>(), "abc");
}

TEST(StringConversion, ToStringViewSeesTheBytes) {
  EXPECT_EQ(ToStringView(TVMFFIByteArray{"a\0b", 3}), std::string_view("a\0b", 3));
}

}  // namespace
