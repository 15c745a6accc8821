// SPDX-License-Identifier: Apache-2.0
// BigInt: one form for each number, arithmetic against an independent decimal model and against
// identities, conversions, text, keys of maps.
#include <gtest/gtest.h>
#include <tvm/ffi/big_int.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>

#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace tvm::ffi;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

BigInt Parse(const std::string& text) {
  return BigInt::FromString(text.data(), text.size()).value();
}

size_t WordsOf(const BigInt& value) { return details::BigIntUnsafe::GetArrayView(value).size(); }

BigInt Random(std::mt19937_64* rng, int max_words) {
  BigInt value;
  int words = static_cast<int>((*rng)() % static_cast<uint64_t>(max_words)) + 1;
  for (int i = 0; i < words; ++i) {
    // Words of all zeros and ones find the carries.
    uint64_t kind = (*rng)() % 4;
    uint64_t word = kind == 0 ? 0 : kind == 1 ? ~uint64_t{0} : (*rng)();
    value = (value << BigInt(64)) | BigInt(word);
  }
  value = value >> BigInt(static_cast<int64_t>((*rng)() % 64));
  return (*rng)() % 2 == 0 ? value : -value;
}

TEST(BigInt, a_number_has_one_form) {
  EXPECT_TRUE(details::BigIntUnsafe::CheckInt64(BigInt(kMin)));
  EXPECT_TRUE(details::BigIntUnsafe::CheckInt64((BigInt(kMax) + 1) - 1));
  EXPECT_TRUE(details::BigIntUnsafe::CheckInt64((BigInt(1) << BigInt(300)) >> BigInt(299)));
  EXPECT_EQ(WordsOf(BigInt(std::numeric_limits<uint64_t>::max())), 2u);
  EXPECT_EQ(WordsOf(BigInt(1) << BigInt(255)), 5u);
  EXPECT_EQ(WordsOf(-(BigInt(1) << BigInt(255))), 4u);
  EXPECT_EQ(WordsOf(BigInt(kMin) - 1), 2u);
}

TEST(BigInt, text_round_trips_and_matches_known_values) {
  EXPECT_EQ((BigInt(1) << BigInt(200)).ToString(),
            "1606938044258990275541962092341162602522202993782792835301376");
  EXPECT_EQ((BigInt(kMin) * BigInt(kMin)).ToString(), "85070591730234615865843651857942052864");
  EXPECT_EQ((-(BigInt(1) << BigInt(64))).ToString(), "-18446744073709551616");
  for (const char* text :
       {"0", "7", "-7", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
        "-9223372036854775809", "10000000000000000000", "100000000000000000000000000000000000000",
        "123456789012345678901234567890123456789012345678901234567890"}) {
    EXPECT_EQ(Parse(text).ToString(), text);
  }
  EXPECT_EQ(Parse("+0007"), 7);
  for (const char* text : {"", "-", "+", "1 ", " 1", "1a", "0x1", "--1", "1.0"}) {
    EXPECT_FALSE(BigInt::FromString(text, std::string(text).size()).has_value()) << text;
  }
}

TEST(BigInt, streams_stop_at_the_first_other_character) {
  std::istringstream in("  -123456789012345678901x y");
  BigInt value;
  in >> value;
  EXPECT_EQ(value.ToString(), "-123456789012345678901");
  EXPECT_EQ(in.get(), 'x');
  in >> value;
  EXPECT_TRUE(in.fail());
  EXPECT_EQ(value.ToString(), "-123456789012345678901");
}

TEST(BigInt, identities_hold_for_random_numbers) {
  std::mt19937_64 rng(7);
  for (int i = 0; i < 4000; ++i) {
    BigInt a = Random(&rng, 9), b = Random(&rng, 6), c = Random(&rng, 4);
    EXPECT_EQ((a + b) - b, a);
    EXPECT_EQ(a - b, -(b - a));
    EXPECT_EQ((a + b) * c, a * c + b * c);
    EXPECT_EQ(a * b, b * a);
    EXPECT_EQ(~a, -a - 1);
    EXPECT_EQ((a & b) + (a | b), a + b);
    EXPECT_EQ((a ^ b), (a | b) - (a & b));
    EXPECT_EQ(Parse(a.ToString()), a);
    BigInt count(static_cast<int64_t>(rng() % 200));
    EXPECT_EQ((a << count) >> count, a);
    EXPECT_EQ(a >> count, floordiv(a, BigInt(1) << count));
    if (b) {
      EXPECT_EQ(a / b * b + a % b, a);
      EXPECT_LT(max(a % b, -(a % b)), max(b, -b));
      EXPECT_EQ(floordiv(a, b) * b + floormod(a, b), a);
      EXPECT_TRUE(!floormod(a, b) || (floormod(a, b) < 0) == (b < 0));
      EXPECT_EQ((a * b) / b, a);
    }
    EXPECT_EQ(a < b, (a - b) < 0);
    EXPECT_EQ(a == b, a.hash() == b.hash());
  }
}

TEST(BigInt, estimated_digits_of_a_quotient_are_corrected) {
  // The top words are equal, the words below decide.
  BigInt one(1);
  for (int shift : {63, 64, 127, 128, 191, 192}) {
    BigInt divisor = (one << BigInt(shift + 64)) - 1;
    for (int64_t off : {-2, -1, 0, 1, 2}) {
      BigInt value = divisor * ((one << BigInt(130)) - 1) + off;
      EXPECT_EQ(value / divisor * divisor + value % divisor, value);
      EXPECT_EQ(floordiv(value, divisor), (one << BigInt(130)) - 1 - (off < 0 ? 1 : 0));
    }
  }
  EXPECT_EQ(BigInt(kMin) / BigInt(-1), BigInt(kMax) + 1);
}

TEST(BigInt, functions_have_qualified_names) {
  BigInt big = BigInt(1) << BigInt(80);
  EXPECT_EQ(tvm::ffi::floordiv(-big, BigInt(3)), tvm::ffi::truncdiv(-big, BigInt(3)) - 1);
  EXPECT_EQ(tvm::ffi::floormod(BigInt(-7), BigInt(3)), 2);
  EXPECT_EQ(tvm::ffi::truncmod(BigInt(-7), BigInt(3)), -1);
  EXPECT_EQ(tvm::ffi::min(big, -big), -big);
  EXPECT_EQ(tvm::ffi::max(big, -big), big);
}

TEST(BigInt, mistakes_are_errors) {
  EXPECT_THROW(BigInt(1) / BigInt(0), Error);
  EXPECT_THROW((BigInt(1) << BigInt(100)) % BigInt(0), Error);
  EXPECT_THROW(BigInt(1) << BigInt(-1), Error);
  EXPECT_THROW(BigInt(1) >> BigInt(-1), Error);
  EXPECT_THROW(BigInt(1) << (BigInt(1) << BigInt(70)), Error);
  EXPECT_EQ(BigInt(0) << (BigInt(1) << BigInt(70)), 0);
  EXPECT_EQ(BigInt(-5) >> (BigInt(1) << BigInt(70)), -1);
  EXPECT_THROW((void)static_cast<int64_t>(BigInt(1) << BigInt(64)), Error);
  EXPECT_THROW(BigInt{std::nan("")}, Error);
  EXPECT_THROW(BigInt{HUGE_VAL}, Error);
  EXPECT_THROW((void)static_cast<double>(BigInt(1) << BigInt(1024)), Error);
}

TEST(BigInt, doubles_round_to_the_nearest_even) {
  EXPECT_EQ(BigInt(-1e18).ToString(), "-1000000000000000000");
  EXPECT_EQ(BigInt(2.9), 2);
  EXPECT_EQ(BigInt(-2.9), -2);
  EXPECT_EQ(BigInt(std::ldexp(1.5, 100)), BigInt(3) << BigInt(99));
  BigInt base = BigInt(1) << BigInt(100);
  BigInt ulp = BigInt(1) << BigInt(48);
  EXPECT_EQ(static_cast<double>(base + (ulp >> BigInt(1))), std::ldexp(1.0, 100));
  EXPECT_EQ(static_cast<double>(base + (ulp >> BigInt(1)) + 1), std::ldexp(1.0, 100) + 0x1p48);
  EXPECT_EQ(static_cast<double>(-(base + ulp + (ulp >> BigInt(1)))),
            -(std::ldexp(1.0, 100) + 2 * 0x1p48));
  EXPECT_EQ(static_cast<double>((BigInt(1) << BigInt(1024)) - (BigInt(1) << BigInt(970)) - 1),
            std::numeric_limits<double>::max());
  std::mt19937_64 rng(3);
  for (int i = 0; i < 1000; ++i) {
    double value = std::ldexp(static_cast<double>(rng()), static_cast<int>(rng() % 900));
    EXPECT_EQ(static_cast<double>(BigInt(value)), value);
  }
}

TEST(BigInt, narrow_types_take_what_fits) {
  EXPECT_EQ(BigInt(200).as<uint8_t>(), 200);
  EXPECT_FALSE(BigInt(300).as<uint8_t>());
  EXPECT_FALSE(BigInt(-1).as<uint64_t>());
  BigInt large(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(large.as<uint64_t>(), std::numeric_limits<uint64_t>::max());
  EXPECT_FALSE((large + 1).as<uint64_t>());
  EXPECT_FALSE(large.as<int64_t>());
}

TEST(BigInt, copies_share_and_moves_leave_zero) {
  BigInt a = BigInt(1) << BigInt(100);
  BigInt b = a;
  EXPECT_EQ(details::BigIntUnsafe::GetArrayView(a).data(),
            details::BigIntUnsafe::GetArrayView(b).data());
  BigInt c = std::move(a);
  EXPECT_EQ(a, 0);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(b, c);
  std::swap(b, a);
  EXPECT_EQ(b, 0);
  a = *&a;
  EXPECT_EQ(a, c);
}

TEST(BigInt, an_any_holds_an_int_or_an_object) {
  Any small = BigInt(7);
  EXPECT_EQ(small.type_index(), TypeIndex::kTVMFFIInt);
  EXPECT_EQ(small.cast<int64_t>(), 7);
  Any large = BigInt(1) << BigInt(100);
  EXPECT_EQ(large.type_index(), TypeIndex::kTVMFFIBigInt);
  EXPECT_EQ(large.cast<BigInt>(), BigInt(1) << BigInt(100));
  EXPECT_EQ(Any(true).cast<BigInt>(), 1);
  EXPECT_FALSE(Any(true).as<BigInt>());
  EXPECT_FALSE(Any(1.5).try_cast<BigInt>());
  try {
    large.cast<int64_t>();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "Cannot convert from type `ffi.BigInt` to `int`");
  }
  Function echo = Function::FromTyped([](BigInt value) { return value + 1; });
  EXPECT_EQ(echo(BigInt(kMax)).cast<BigInt>(), BigInt(kMax) + 1);
}

TEST(BigInt, is_a_key_by_value) {
  Map<Any, int64_t> map;
  for (int i = 60; i < 90; ++i) map.Set(BigInt(1) << BigInt(i), i);
  EXPECT_EQ(map.size(), 30u);
  for (int i = 60; i < 90; ++i) EXPECT_EQ(map.at(BigInt(1) << BigInt(i)), i);
  EXPECT_EQ(map.count((BigInt(1) << BigInt(70)) + 1), 0u);
}

TEST(BigInt, words_of_the_C_ABI_are_pruned) {
  TVMFFIAny out;
  int64_t words[] = {5, 0, 0};
  TVMFFIByteArray bytes{reinterpret_cast<const char*>(words), sizeof(words)};
  ASSERT_EQ(TVMFFIBigIntFromByteArray(&bytes, &out), 0);
  EXPECT_EQ(out.type_index, TypeIndex::kTVMFFIInt);
  EXPECT_EQ(out.v_int64, 5);
  TVMFFIByteArray content = TVMFFIBigIntGetContentByteArray(&out);
  EXPECT_EQ(content.data, reinterpret_cast<const char*>(&out.v_int64));
  EXPECT_EQ(content.size, 8u);
  bytes = {nullptr, 0};
  ASSERT_EQ(TVMFFIBigIntFromByteArray(&bytes, &out), 0);
  EXPECT_EQ(out.v_int64, 0);
  bytes = {reinterpret_cast<const char*>(words), 7};
  EXPECT_NE(TVMFFIBigIntFromByteArray(&bytes, &out), 0);
  EXPECT_EQ(out.type_index, TypeIndex::kTVMFFINone);
  EXPECT_EQ(details::MoveFromSafeCallRaised().message(),
            "BigInt content must contain whole 64-bit words");
  int64_t wide[] = {1, 2, -1, -1};
  bytes = {reinterpret_cast<const char*>(wide), sizeof(wide)};
  ASSERT_EQ(TVMFFIBigIntFromByteArray(&bytes, &out), 0);
  Any owned = details::AnyUnsafe::MoveTVMFFIAnyToAny(&out);
  EXPECT_EQ(WordsOf(owned.cast<BigInt>()), 3u);
}

}  // namespace
