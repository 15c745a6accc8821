// SPDX-License-Identifier: Apache-2.0
//
// Base64 with the standard alphabet, `=` padding and no line breaks.
//
//   Base64Encode(Bytes("hello"));      // "aGVsbG8="
//   Base64Decode(String("aGVsbG8="));  // the bytes of "hello"
#ifndef TVM_FFI_EXTRA_BASE64_H_
#define TVM_FFI_EXTRA_BASE64_H_

#include <tvm/ffi/error.h>
#include <tvm/ffi/string.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tvm {
namespace ffi {
namespace tether {

inline constexpr char kBase64Alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Six bits of every byte; 0 for those outside the alphabet.
inline constexpr std::array<uint8_t, 256> kBase64Value = [] {
  std::array<uint8_t, 256> table{};
  for (uint8_t i = 0; i < 64; ++i) table[static_cast<unsigned char>(kBase64Alphabet[i])] = i;
  return table;
}();

}  // namespace tether

/*! \brief Base64 text of some bytes. */
inline String Base64Encode(TVMFFIByteArray bytes) {
  std::string out;
  out.reserve((bytes.size + 2) / 3 * 4);
  const auto* in = reinterpret_cast<const unsigned char*>(bytes.data);
  for (size_t i = 0; i < bytes.size; i += 3) {
    size_t left = bytes.size - i;
    uint32_t word = static_cast<uint32_t>(in[i]) << 16;
    if (left > 1) word |= static_cast<uint32_t>(in[i + 1]) << 8;
    if (left > 2) word |= in[i + 2];
    out.push_back(tether::kBase64Alphabet[word >> 18]);
    out.push_back(tether::kBase64Alphabet[(word >> 12) & 63]);
    out.push_back(left > 1 ? tether::kBase64Alphabet[(word >> 6) & 63] : '=');
    out.push_back(left > 2 ? tether::kBase64Alphabet[word & 63] : '=');
  }
  return String(std::move(out));
}

/*! \brief Base64 text of some bytes. */
inline String Base64Encode(const Bytes& data) {
  return Base64Encode(TVMFFIByteArray{data.data(), data.size()});
}

/*! \brief Bytes of a Base64 text. The length must be a multiple of 4; foreign characters count as
 * 0. */
inline Bytes Base64Decode(TVMFFIByteArray bytes) {
  if (bytes.size == 0) return Bytes();
  TVM_FFI_ICHECK(bytes.size % 4 == 0) << "invalid base64 encoding";
  const auto* in = reinterpret_cast<const unsigned char*>(bytes.data);
  std::string out;
  out.reserve(bytes.size / 4 * 3);
  for (size_t i = 0; i < bytes.size; i += 4) {
    uint32_t word = 0;
    for (size_t k = 0; k < 4; ++k) word = word << 6 | tether::kBase64Value[in[i + k]];
    out.push_back(static_cast<char>(word >> 16));
    out.push_back(static_cast<char>(word >> 8 & 0xff));
    out.push_back(static_cast<char>(word & 0xff));
  }
  size_t padding = in[bytes.size - 1] != '=' ? 0 : in[bytes.size - 2] != '=' ? 1 : 2;
  out.resize(out.size() - padding);
  return Bytes(out.data(), out.size());  // short ones without an object
}

/*! \brief Bytes of a Base64 text. */
inline Bytes Base64Decode(const String& data) {
  return Base64Decode(TVMFFIByteArray{data.data(), data.size()});
}

}  // namespace ffi
}  // namespace tvm

#endif  // TVM_FFI_EXTRA_BASE64_H_
