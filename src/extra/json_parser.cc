// SPDX-License-Identifier: Apache-2.0
//
// json::Parse. One pass with an explicit stack: finished values wait in values_ until the container
// they belong to is closed, which then takes them in one piece.
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {
namespace tether {
namespace {

// What a byte may be part of.
enum CharClass : uint8_t { kSpace = 1, kNumber = 2, kPlainText = 4 };

constexpr std::array<uint8_t, 256> kCharClass = [] {
  std::array<uint8_t, 256> table{};
  for (size_t c = 0x20; c < 256; ++c) table[c] |= c == '"' || c == '\\' ? 0 : kPlainText;
  for (char c : std::string_view(" \t\n\r")) table[static_cast<uint8_t>(c)] |= kSpace;
  for (char c : std::string_view("0123456789eE+-.")) table[static_cast<uint8_t>(c)] |= kNumber;
  return table;
}();

bool Is(CharClass char_class, char c) {
  return (kCharClass[static_cast<uint8_t>(c)] & char_class) != 0;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

const char* SkipDigits(const char* at, const char* last) {
  while (at != last && IsDigit(*at)) ++at;
  return at;
}

// Whether all of it is a number as JSON has them; from_chars takes more.
bool IsNumber(const char* at, const char* last) {
  if (at != last && *at == '-') ++at;
  const char* digits = at;
  at = SkipDigits(at, last);
  if (at == digits || (*digits == '0' && at != digits + 1)) return false;
  if (at != last && *at == '.') {
    digits = ++at;
    at = SkipDigits(at, last);
    if (at == digits) return false;
  }
  if (at != last && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at != last && (*at == '+' || *at == '-')) ++at;
    digits = at;
    at = SkipDigits(at, last);
    if (at == digits) return false;
  }
  return at == last;
}

// Of a number that no double holds: whether it is too close to zero, rather than too large.
bool IsTiny(const char* at, const char* last) {
  if (*at == '-') ++at;
  const char* point = SkipDigits(at, last);
  const char* end = point != last && *point == '.' ? SkipDigits(point + 1, last) : point;
  const char* leading = std::find_if(at, end, [](char c) { return IsDigit(c) && c != '0'; });
  if (end == last) return leading > point;
  const char* exponent = end + 1;
  if (*exponent == '+') ++exponent;
  int64_t power = 0;
  if (std::from_chars(exponent, last, power).ec != std::errc()) return *exponent == '-';
  return power < leading - point;
}

constexpr int8_t kNoDigit = -1;
constexpr std::array<int8_t, 256> kHexDigit = [] {
  std::array<int8_t, 256> table{};
  for (size_t c = 0; c < 256; ++c) table[c] = kNoDigit;
  for (int8_t i = 0; i < 10; ++i) table['0' + i] = i;
  for (int8_t i = 0; i < 6; ++i) table['a' + i] = table['A' + i] = static_cast<int8_t>(10 + i);
  return table;
}();

// What the letter after a backslash stands for; 0 if it is not valid, or the u of a code.
constexpr std::array<char, 256> kEscaped = [] {
  std::array<char, 256> table{};
  for (size_t c = 0; c < 256; ++c) {
    char letter = kJSONEscape[c];
    if (letter != 0 && letter != 'u') table[static_cast<uint8_t>(letter)] = static_cast<char>(c);
  }
  return table;
}();

void AppendUtf8(uint32_t code, std::string* out) {
  auto continuation = [&](int shift) {
    out->push_back(static_cast<char>(0x80 | (code >> shift & 0x3f)));
  };
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xc0 | code >> 6));
    continuation(0);
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | code >> 12));
    continuation(6);
    continuation(0);
  } else {
    out->push_back(static_cast<char>(0xf0 | code >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

// Reads key, value, key, value as pairs, moving them out.
class PairReader {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = std::pair<Any, Any>;
  using difference_type = std::ptrdiff_t;
  using pointer = value_type*;
  using reference = value_type;

  explicit PairReader(Any* key) : key_(key) {}
  value_type operator*() const { return {std::move(key_[0]), std::move(key_[1])}; }
  PairReader& operator++() {
    key_ += 2;
    return *this;
  }
  bool operator==(const PairReader& other) const { return key_ == other.key_; }
  bool operator!=(const PairReader& other) const { return key_ != other.key_; }

 private:
  Any* key_;
};

class JSONReader {
 public:
  // The text of a String ends with a NUL that is not part of it, so looking at *end_ is safe.
  explicit JSONReader(const String& text)
      : begin_(text.data()), end_(text.data() + text.size()), at_(begin_) {}

  // False: see ErrorMessage.
  bool Read(Any* result) {
    SkipSpace();
    if (!ReadValue()) return false;
    SkipSpace();
    if (at_ != end_) return Fail("Extra data", at_);
    *result = std::move(values_.back());
    return true;
  }

  String ErrorMessage() const {
    const char* line_start = begin_;
    size_t line = 1;
    for (const char* p = begin_; p != error_at_; ++p) {
      if (*p != '\n') continue;
      ++line;
      line_start = p + 1;
    }
    std::string message = error_;
    message.append(": line ").append(std::to_string(line));
    message.append(" column ").append(std::to_string(error_at_ - line_start + 1));
    message.append(" (char ").append(std::to_string(error_at_ - begin_)).append(")");
    return String(std::move(message));
  }

 private:
  struct Open {
    size_t first;  // values_ from here on belong to the container
    bool is_object;
  };

  bool Fail(const char* error, const char* at) {
    error_ = error;
    error_at_ = at;
    return false;
  }

  void SkipSpace() {
    while (Is(kSpace, *at_)) ++at_;
  }

  // Reads the value at at_, however deep, and appends it to values_.
  bool ReadValue() {
    do {
      switch (*at_) {
        case '[':
        case '{':
          if (!OpenContainer()) return false;
          continue;
        case '"':
          if (!ReadString()) return false;
          break;
        default:
          if (!ReadLiteral() && !ReadNumber()) return Fail("Expecting value", at_);
      }
      if (!FinishValue()) return false;
    } while (!open_.empty());
    return true;
  }

  // Leaves at_ where the first value must begin, unless the container is empty.
  bool OpenContainer() {
    bool is_object = *at_++ == '{';
    open_.push_back({values_.size(), is_object});
    SkipSpace();
    if (*at_ == Closer(is_object)) {
      CloseContainer();
      return FinishValue();
    }
    return !is_object || ReadKey();
  }

  // After a value: closes what ends here, then goes on to where the next value must begin.
  bool FinishValue() {
    while (!open_.empty()) {
      SkipSpace();
      bool is_object = open_.back().is_object;
      if (*at_ == Closer(is_object)) {
        CloseContainer();
        continue;
      }
      if (*at_ != ',') return Fail("Expecting ',' delimiter", at_);
      ++at_;
      SkipSpace();
      if (at_ == end_) return Fail("Syntax error near", at_);
      return !is_object || ReadKey();
    }
    return true;
  }

  static char Closer(bool is_object) { return is_object ? '}' : ']'; }

  void CloseContainer() {
    ++at_;
    Open top = open_.back();
    open_.pop_back();
    Any* first = values_.data() + top.first;
    Any* last = values_.data() + values_.size();
    Any container =
        top.is_object
            ? Any(json::Object(PairReader(first), PairReader(last)))
            : Any(json::Array(std::make_move_iterator(first), std::make_move_iterator(last)));
    values_.resize(top.first);
    values_.push_back(std::move(container));
  }

  bool ReadKey() {
    if (*at_ != '"') return Fail("Expecting property name enclosed in double quotes", at_);
    if (!ReadString()) return false;
    SkipSpace();
    if (*at_ != ':') return Fail("Expecting ':' delimiter", at_);
    ++at_;
    SkipSpace();
    return true;
  }

  bool ReadString() {
    const char* quote = at_++;
    const char* run = at_;
    SkipPlainText();
    if (*at_ == '"') {
      values_.emplace_back(String(run, static_cast<size_t>(at_++ - run)));
      return true;
    }
    buffer_.clear();
    while (*at_ != '"') {
      if (*at_ != '\\') {
        if (at_ == end_) return Fail("Unterminated string starting at", quote);
        return Fail("Invalid control character at", at_);
      }
      buffer_.append(run, at_);
      if (!ReadEscape()) return false;
      run = at_;
      SkipPlainText();
    }
    buffer_.append(run, at_++);
    values_.emplace_back(String(buffer_));
    return true;
  }

  void SkipPlainText() {
    while (Is(kPlainText, *at_)) ++at_;
  }

  bool ReadEscape() {
    ++at_;
    if (*at_ == 'u') return ReadUnicodeEscape();
    char byte = kEscaped[static_cast<uint8_t>(*at_)];
    if (byte == 0) return Fail("Invalid \\escape", at_);
    buffer_.push_back(byte);
    ++at_;
    return true;
  }

  // at_ is at the u of \uXXXX, or of the first half of a pair.
  bool ReadUnicodeEscape() {
    const char* first = at_++;
    uint32_t code;
    if (!ReadHex4(&code)) return Fail("Invalid \\uXXXX escape", first);
    if (code >= 0xd800 && code < 0xe000) {
      const char* error = "Invalid surrogate pair of \\uXXXX escapes";
      if (code >= 0xdc00 || at_[0] != '\\' || at_[1] != 'u') return Fail(error, first);
      at_ += 2;
      const char* second = at_;
      uint32_t low;
      if (!ReadHex4(&low)) return Fail("Invalid \\uXXXX escape", second);
      if (low < 0xdc00 || low >= 0xe000) return Fail(error, second);
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    AppendUtf8(code, &buffer_);
    return true;
  }

  bool ReadHex4(uint32_t* code) {
    *code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      int8_t digit = kHexDigit[static_cast<uint8_t>(*at_)];
      if (digit == kNoDigit) return false;
      *code = *code << 4 | static_cast<uint32_t>(digit);
    }
    return true;
  }

  bool ReadLiteral() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    switch (*at_) {
      case 'n':
        return Accept("null", Any(nullptr));
      case 't':
        return Accept("true", Any(true));
      case 'f':
        return Accept("false", Any(false));
      case 'N':
        return Accept("NaN", Any(std::numeric_limits<double>::quiet_NaN()));
      case 'I':
        return Accept("Infinity", Any(kInfinity));
      case '-':
        return at_[1] == 'I' && Accept("-Infinity", Any(-kInfinity));
      default:
        return false;
    }
  }

  bool Accept(std::string_view word, Any value) {
    if (std::string_view(at_, static_cast<size_t>(end_ - at_)).substr(0, word.size()) != word) {
      return false;
    }
    at_ += word.size();
    values_.push_back(std::move(value));
    return true;
  }

  // On failure at_ stays at the start, where the error is reported.
  bool ReadNumber() {
    const char* last = at_;
    bool is_integer = true;
    for (; Is(kNumber, *last); ++last) {
      is_integer &= *last != '.' && *last != 'e' && *last != 'E';
    }
    const char* first = at_;
    if (!IsNumber(first, last)) return false;
    if (is_integer) {
      int64_t integer;
      auto [stop, error] = std::from_chars(first, last, integer);
      if (error == std::errc()) return FinishNumber(last, Any(integer));
    }
    double real;
    auto [stop, error] = std::from_chars(first, last, real);
    if (error == std::errc::result_out_of_range && IsTiny(first, last)) {
      real = *first == '-' ? -0.0 : 0.0;
    } else if (error != std::errc()) {
      return false;
    }
    return FinishNumber(last, Any(real));
  }

  bool FinishNumber(const char* last, Any value) {
    values_.push_back(std::move(value));
    at_ = last;
    return true;
  }

  const char* begin_;
  const char* end_;
  const char* at_;
  std::vector<Any> values_;
  std::vector<Open> open_;
  std::string buffer_;
  const char* error_ = "";
  const char* error_at_ = nullptr;
};

}  // namespace
}  // namespace tether

namespace json {

Value Parse(const String& json_str, String* error_msg) {
  tether::JSONReader reader(json_str);
  Value result;
  if (reader.Read(&result)) {
    if (error_msg != nullptr) *error_msg = "";
    return result;
  }
  if (error_msg == nullptr) TVM_FFI_THROW(ValueError) << reader.ErrorMessage();
  *error_msg = reader.ErrorMessage();
  return nullptr;
}

}  // namespace json

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::GlobalDef().def("ffi.json.Parse",
                              [](const String& json_str) { return json::Parse(json_str); });
}

}  // namespace ffi
}  // namespace tvm
