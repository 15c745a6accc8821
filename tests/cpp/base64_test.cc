// SPDX-License-Identifier: Apache-2.0
//
// extra/base64.h: published vectors, every length, and what is not Base64.
#include <gtest/gtest.h>
#include <tvm/ffi/extra/base64.h>

#include <string>
#include <utility>
#include <vector>

namespace {

using namespace tvm::ffi;

TEST(Base64, MatchesPublishedVectors) {
  const std::vector<std::pair<std::string, std::string>> vectors = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"hello world", "aGVsbG8gd29ybGQ="},
      {std::string("\x00\xff\xfe\xfb", 4), "AP/++w=="}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(Base64Encode(Bytes(bytes)), text);
    EXPECT_EQ(std::string(Base64Decode(String(text))), bytes);
    EXPECT_EQ(Base64Encode(TVMFFIByteArray{bytes.data(), bytes.size()}), text);
    EXPECT_EQ(std::string(Base64Decode(TVMFFIByteArray{text.data(), text.size()})), bytes);
  }
}

TEST(Base64, RoundTripsEveryLengthAndByte) {
  std::string bytes;
  for (int i = 0; i < 600; ++i) {
    String text = Base64Encode(Bytes(bytes));
    EXPECT_EQ(text.size(), (bytes.size() + 2) / 3 * 4);
    EXPECT_EQ(std::string(Base64Decode(text)), bytes);
    bytes.push_back(static_cast<char>(i * 7));
  }
}

TEST(Base64, RejectsLengthsThatAreNoMultipleOfFour) {
  for (const char* text : {"A", "AB", "ABC", "ABCDE", "Zg=", "====="}) {
    try {
      Base64Decode(String(text));
      ADD_FAILURE() << "accepted " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "InternalError");
      EXPECT_NE(error.message().find("invalid base64 encoding"), std::string::npos);
    }
  }
}

TEST(Base64, ForeignBytesCountAsZero) {
  EXPECT_EQ(std::string(Base64Decode(String("ab!="))), std::string(Base64Decode(String("abA="))));
  EXPECT_EQ(std::string(Base64Decode(String("\xff\x80\x00 "
                                            "A",
                                            4))),
            std::string(3, '\0'));
  EXPECT_EQ(std::string(Base64Decode(String("===="))), std::string(1, '\0'));
}

}  // namespace
