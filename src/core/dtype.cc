// SPDX-License-Identifier: Apache-2.0
// Data types as text: "float16x4", "bool", "float8_e4m3fn", "custom[name]32".
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <optional>
#include <string>
#include <string_view>

namespace tvm {
namespace ffi {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Reads one data type from a bounded text; every error quotes the text after alias rewriting.
class DTypeParser {
 public:
  explicit DTypeParser(std::string_view text) : text_(ExpandAlias(text)), rest_(text_) {}

  DLDataType Parse() {
    if (text_.empty() || text_ == "void") return DLDataType{kDLOpaqueHandle, 0, 0};
    DLDataType dtype{0, 32, 1};
    // The short floats first: "float8" alone is an 8-bit plain float.
    if (ParseNarrowFloat("float8", 8, kDLFloat8_e3m4, kDLFloat8_e8m0fnu, &dtype) ||
        ParseNarrowFloat("float6", 6, kDLFloat6_e2m3fn, kDLFloat6_e3m2fn, &dtype) ||
        ParseNarrowFloat("float4", 4, kDLFloat4_e2m1fn, kDLFloat4_e2m1fn, &dtype)) {
      if (Take("x")) dtype.lanes = ParseLanes();
    } else {
      ParseBase(&dtype);
      ParseBitsAndLanes(&dtype);
    }
    if (!rest_.empty()) Unknown("dtype");
    return dtype;
  }

 private:
  static std::string ExpandAlias(std::string_view text) {
    struct Alias {
      std::string_view prefix, replacement;
      bool before_digit;
    };
    constexpr Alias kAliases[] = {{"i", "int", true},         {"u", "uint", true},
                                  {"bf", "bfloat", true},     {"fp8_", "float8_", false},
                                  {"fp6_", "float6_", false}, {"fp4_", "float4_", false},
                                  {"f", "float", true}};
    for (const Alias& alias : kAliases) {
      if (text.substr(0, alias.prefix.size()) != alias.prefix) continue;
      std::string_view tail = text.substr(alias.prefix.size());
      if (alias.before_digit && (tail.empty() || !IsDigit(tail[0]))) continue;
      return std::string(alias.replacement).append(tail);
    }
    return std::string(text);
  }

  bool Take(std::string_view prefix) {
    if (rest_.substr(0, prefix.size()) != prefix) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }

  [[noreturn]] void Unknown(const char* what) const {
    TVM_FFI_THROW(ValueError) << "unknown " << what << " `" << text_ << "`";
  }

  // A run of digits; *present is false, and the value 0, when there is none.
  uint32_t ParseNumber(bool* present) {
    size_t n = 0;
    while (n < rest_.size() && IsDigit(rest_[n])) ++n;
    std::string_view digits = rest_.substr(0, n);
    rest_.remove_prefix(n);
    *present = n != 0;
    uint64_t value = 0;
    for (char c : digits) {
      value = value * 10 + static_cast<uint64_t>(c - '0');
      if (value > UINT32_MAX) {
        TVM_FFI_THROW(ValueError) << "Integer value in dtype string '" << digits
                                  << "' is out of range for uint32_t";
      }
    }
    return static_cast<uint32_t>(value);
  }

  // Lanes are an int16 in 16 bits, negative for scalable vectors.
  uint16_t ParseLanes(bool is_scalable = false) {
    bool present;
    uint32_t lanes = ParseNumber(&present);
    if (!present || lanes == 0) {
      TVM_FFI_THROW(ValueError) << "Invalid lanes specification in dtype '" << text_
                                << "'. Lanes must be a positive integer.";
    }
    if (lanes > UINT16_MAX) {
      TVM_FFI_THROW(ValueError) << "Lanes value " << lanes
                                << " is out of range for uint16_t in dtype '" << text_ << "'";
    }
    const int value = is_scalable ? -static_cast<int>(lanes) : static_cast<int>(lanes);
    if (value < INT16_MIN || value > INT16_MAX) {
      TVM_FFI_THROW(ValueError) << "Lanes value " << value
                                << " is out of range for int16_t in dtype '" << text_ << "'";
    }
    return static_cast<uint16_t>(value);
  }

  // "<family>_<variant>", where the variant ends at the end, at 'x', or for float4 at '_'.
  bool ParseNarrowFloat(std::string_view family, uint8_t bits, int first_code, int last_code,
                        DLDataType* dtype) {
    std::string prefix = std::string(family) + "_";
    if (!Take(prefix)) return false;
    bool underscore_ends = bits == 4;
    size_t n = 0;
    while (n < rest_.size() && rest_[n] != 'x' && !(underscore_ends && rest_[n] == '_')) ++n;
    std::string name = prefix + std::string(rest_.substr(0, n));
    for (int code = first_code; code <= last_code; ++code) {
      if (name != details::DLDataTypeCodeAsCStr(static_cast<DLDataTypeCode>(code))) continue;
      rest_.remove_prefix(n);
      if (underscore_ends) Take("_");
      *dtype = DLDataType{static_cast<uint8_t>(code), bits, 1};
      return true;
    }
    std::string what = std::string(family) + " type";
    Unknown(what.c_str());
  }

  void ParseBase(DLDataType* dtype) {
    struct Base {
      std::string_view name;
      int code;
      uint8_t bits;
    };
    constexpr Base kBases[] = {
        {"int", kDLInt, 32},     {"uint", kDLUInt, 32},           {"bool", kDLBool, 8},
        {"float", kDLFloat, 32}, {"handle", kDLOpaqueHandle, 64}, {"bfloat", kDLBfloat, 16}};
    for (const Base& base : kBases) {
      if (!Take(base.name)) continue;
      dtype->code = static_cast<uint8_t>(base.code);
      dtype->bits = base.bits;
      return;
    }
    if (!Take("custom")) Unknown("dtype");
    if (!Take("[")) {
      TVM_FFI_THROW(ValueError) << "expected opening brace after 'custom' type in" << text_;
    }
    size_t close = rest_.find(']');
    if (close == std::string_view::npos) {
      TVM_FFI_THROW(ValueError) << "expected closing brace after 'custom' type in" << text_;
    }
    String name(rest_.data(), close);
    rest_.remove_prefix(close + 1);
    dtype->code = static_cast<uint8_t>(
        Function::GetGlobalRequired("dtype.get_custom_type_code")(name).cast<int>());
  }

  void ParseBitsAndLanes(DLDataType* dtype) {
    bool present;
    uint32_t bits = ParseNumber(&present);
    if (bits > UINT8_MAX) {
      TVM_FFI_THROW(ValueError) << "Bits value " << bits
                                << " is out of range for uint8_t in dtype '" << text_ << "'";
    }
    if (bits != 0) dtype->bits = static_cast<uint8_t>(bits);
    const bool is_scalable = Take("xvscale");
    if (Take("x")) dtype->lanes = ParseLanes(is_scalable);
  }

  std::string text_;
  std::string_view rest_;
};

std::string ToText(DLDataType dtype) {
  int code = dtype.code;
  auto lanes = static_cast<int16_t>(dtype.lanes);
  if (code == kDLOpaqueHandle) return dtype.bits == 0 && dtype.lanes == 0 ? "" : "handle";
  std::string text = details::DLDataTypeCodeAsCStr(static_cast<DLDataTypeCode>(code));
  if (code >= static_cast<int>(kDLExtCustomBegin)) {
    std::optional<Function> name_of = Function::GetGlobal("dtype.get_custom_type_name");
    if (!name_of.has_value()) {
      TVM_FFI_THROW(ValueError) << "The dtype with type_code=" << code << " and " << int{dtype.bits}
                                << " bits has no name: codes from "
                                << static_cast<int>(kDLExtCustomBegin)
                                << " on are custom types, and the global function "
                                   "`dtype.get_custom_type_name`, which names them, is not "
                                   "registered";
    }
    auto name = (*name_of)(code).cast<String>();
    text += "[" + std::string(name) + "]";
  } else if (code < kDLFloat8_e3m4 && !(code == kDLBool && dtype.bits == 8)) {
    text += std::to_string(static_cast<int>(dtype.bits));
  }
  if (lanes > 1) text += "x" + std::to_string(lanes);
  if (lanes < -1) text += "xvscalex" + std::to_string(-static_cast<int>(lanes));
  return text;
}

}  // namespace
}  // namespace ffi
}  // namespace tvm

using namespace tvm::ffi;

int TVMFFIDataTypeFromString(const TVMFFIByteArray* str, DLDataType* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  *out = DTypeParser(ToStringView(*str)).Parse();
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFIDataTypeToString(const DLDataType* dtype, TVMFFIAny* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  std::string text = ToText(*dtype);
  TypeTraits<String>::MoveToAny(String(text.data(), text.size()), out);
  TVM_FFI_SAFE_CALL_END();
}
