// SPDX-License-Identifier: Apache-2.0
// String and Bytes: immutable values of one TVMFFIAny each.
//
//   String s = "abc";                       // up to 7 bytes live inside the value
//   String t = s + "-long enough for the heap";
//   std::string u = t;  bool same = (s == "abc");
//
// Up to 7 bytes are stored inline (SmallStr/SmallBytes), longer content in a counted object; a
// moved-in std::string always becomes an object that keeps it. Nothing may depend on which form a
// value has.
#ifndef TVM_FFI_STRING_H_
#define TVM_FFI_STRING_H_

#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/type_traits.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <functional>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef _MSC_VER
#define TVM_FFI_SNPRINTF _snprintf_s
#else
#define TVM_FFI_SNPRINTF snprintf
#endif

namespace tvm {
namespace ffi {

inline std::string_view ToStringView(TVMFFIByteArray bytes) {
  return std::string_view(bytes.data, bytes.size);
}

namespace detail {

class BytesObjBase : public Object, public TVMFFIByteArray {};

class BytesObj : public BytesObjBase {
 public:
  static constexpr int32_t _type_index = TypeIndex::kTVMFFIBytes;
  static constexpr bool _type_final = true;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC(StaticTypeKey::kTVMFFIBytes, BytesObj, Object);
};

class StringObj : public BytesObjBase {
 public:
  static constexpr int32_t _type_index = TypeIndex::kTVMFFIStr;
  static constexpr bool _type_final = true;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC(StaticTypeKey::kTVMFFIStr, StringObj, Object);
};

static_assert(sizeof(void*) != 8 || sizeof(StringObj) == 40, "in-place content starts at 40");

}  // namespace detail

namespace tether {

// A string object that owns a moved-in std::string.
template <typename Base>
class StdStringHolder : public Base {
 public:
  explicit StdStringHolder(std::string content) : content_(std::move(content)) {
    this->data = content_.data();
    this->size = content_.size();
  }

 private:
  std::string content_;
};

constexpr size_t kMaxSmallSize = 7;

// The payload of a small string: `size` bytes, then zeros. Overlapping reads instead of a call to
// memcpy.
TVM_FFI_INLINE uint64_t SmallWord(const char* data, size_t size) {
  uint64_t word = 0;
  if constexpr (!TVM_FFI_LITTLE_ENDIAN) {
    if (size != 0) std::memcpy(&word, data, size);
  } else if (size >= 4) {
    uint32_t first, last;
    std::memcpy(&first, data, 4);
    std::memcpy(&last, data + size - 4, 4);
    word = first | static_cast<uint64_t>(last) << (8 * (size - 4));
  } else if (size != 0) {
    auto byte = [data](size_t i) {
      return static_cast<uint64_t>(static_cast<unsigned char>(data[i])) << (8 * i);
    };
    word = byte(0) | byte(size / 2) | byte(size - 1);
  }
  return word;
}

// A String or Bytes: one owning cell. None only after a move.
template <typename Obj, int32_t kSmallIndex, int32_t kLargeIndex>
class BytesCell {
 public:
  BytesCell() { InitSmall(0); }
  BytesCell(const char* data, size_t size) {
    if (size <= kMaxSmallSize) {
      InitSmall(size);
      cell_.v_uint64 = SmallWord(data, size);
    } else {
      std::memcpy(InitSpace(size), data, size);
    }
  }
  explicit BytesCell(std::string&& content) {
    InitObject(make_object<StdStringHolder<Obj>>(std::move(content)));
  }
  BytesCell(const BytesCell& other) : cell_(CopyCell(other.cell_)) {
    if (cell_.type_index >= TypeIndex::kTVMFFIStaticObjectBegin) {
      detail::ObjectUnsafe::IncRefObjectHandle(cell_.v_obj);
    }
  }
  BytesCell(BytesCell&& other) noexcept : cell_(CopyCell(other.cell_)) { StoreNone(&other.cell_); }
  BytesCell& operator=(const BytesCell& other) {
    BytesCell(other).swap(*this);
    return *this;
  }
  BytesCell& operator=(BytesCell&& other) noexcept {
    BytesCell(std::move(other)).swap(*this);
    return *this;
  }
  ~BytesCell() {
    if (cell_.type_index >= TypeIndex::kTVMFFIStaticObjectBegin) {
      detail::ObjectUnsafe::DecRefObjectHandle(cell_.v_obj);
    }
  }
  void swap(BytesCell& other) noexcept { SwapCells(&cell_, &other.cell_); }

  bool IsNone() const noexcept { return cell_.type_index == TypeIndex::kTVMFFINone; }
  const char* data() const noexcept {
    return cell_.type_index < TypeIndex::kTVMFFIStaticObjectBegin
               ? cell_.v_bytes
               : TVMFFIBytesGetByteArrayPtr(cell_.v_obj)->data;
  }
  size_t size() const noexcept {
    return cell_.type_index < TypeIndex::kTVMFFIStaticObjectBegin
               ? cell_.small_str_len
               : TVMFFIBytesGetByteArrayPtr(cell_.v_obj)->size;
  }
  std::string_view view() const noexcept { return std::string_view(data(), size()); }

  // Content of `size` bytes for the caller to fill through data(); the terminating NUL is in place.
  static BytesCell WithSpace(size_t size) {
    BytesCell cell{Uninit{}};
    cell.InitSpace(size);
    return cell;
  }

  void CopyToView(TVMFFIAny* out) const { *out = CopyCell(cell_); }
  void MoveTo(TVMFFIAny* out) {
    *out = CopyCell(cell_);
    StoreNone(&cell_);
  }
  static BytesCell Copy(const TVMFFIAny* src) {
    BytesCell cell{Uninit{}};
    cell.cell_ = CopyCell(*src);
    if (src->type_index >= TypeIndex::kTVMFFIStaticObjectBegin) {
      detail::ObjectUnsafe::IncRefObjectHandle(src->v_obj);
    }
    return cell;
  }
  static BytesCell Take(TVMFFIAny* src) {
    BytesCell cell{Uninit{}};
    cell.cell_ = CopyCell(*src);
    StoreNone(src);
    return cell;
  }

 private:
  struct Uninit {};
  explicit BytesCell(Uninit) { StoreNone(&cell_); }

  char* InitSmall(size_t size) {
    cell_.type_index = kSmallIndex;
    cell_.small_str_len = static_cast<uint32_t>(size);
    cell_.v_uint64 = 0;
    return cell_.v_bytes;
  }
  void InitObject(ObjectPtr<Obj> obj) {
    cell_.type_index = kLargeIndex;
    cell_.zero_padding = 0;
    TVM_FFI_CLEAR_PTR_PADDING_IN_FFI_ANY(&cell_);
    cell_.v_obj = detail::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(obj));
  }
  char* InitSpace(size_t size) {
    if (size <= kMaxSmallSize) return InitSmall(size);
    ObjectPtr<Obj> obj = make_inplace_array_object<Obj, char>(size + 1);
    char* dst = reinterpret_cast<char*>(obj.get()) + sizeof(Obj);
    dst[size] = '\0';
    obj->data = dst;
    obj->size = size;
    InitObject(std::move(obj));
    return dst;
  }

  TVMFFIAny cell_;
};

// -1, 0 or 1: lexicographic by unsigned bytes, the shorter is less. For UTF-8 that is the order of
// code points. Builds of other headers compare signed bytes in Bytes::memncmp, and the linker may
// give us theirs.
inline int CompareBytes(const char* lhs, const char* rhs, size_t lhs_count, size_t rhs_count) {
  if (lhs == rhs && lhs_count == rhs_count) return 0;
  for (size_t i = 0, n = std::min(lhs_count, rhs_count); i < n; ++i) {
    const auto l = static_cast<unsigned char>(lhs[i]), r = static_cast<unsigned char>(rhs[i]);
    if (l != r) return l < r ? -1 : 1;
  }
  return lhs_count == rhs_count ? 0 : (lhs_count < rhs_count ? -1 : 1);
}

}  // namespace tether

class Bytes {
  using Cell =
      tether::BytesCell<detail::BytesObj, TypeIndex::kTVMFFISmallBytes, TypeIndex::kTVMFFIBytes>;

 public:
  Bytes() = default;
  Bytes(const char* data, size_t size) : cell_(data, size) {}             // NOLINT(*)
  Bytes(TVMFFIByteArray bytes) : cell_(bytes.data, bytes.size) {}         // NOLINT(*)
  Bytes(const std::string& other) : cell_(other.data(), other.size()) {}  // NOLINT(*)
  Bytes(std::string&& other) : cell_(std::move(other)) {}                 // NOLINT(*)
  TVM_FFI_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(Bytes);
  template <typename T, typename = std::enable_if_t<!std::is_same_v<std::decay_t<T>, Bytes>>>
  Bytes& operator=(T&& other) {
    Bytes(std::forward<T>(other)).swap(*this);
    return *this;
  }

  void swap(Bytes& other) noexcept { cell_.swap(other.cell_); }
  size_t size() const noexcept { return cell_.size(); }
  const char* data() const noexcept { return cell_.data(); }
  operator std::string() const { return std::string(data(), size()); }  // NOLINT(*)

  // -1, 0 or 1: see tether::CompareBytes.
  static int memncmp(const char* lhs, const char* rhs, size_t lhs_count, size_t rhs_count) {
    return tether::CompareBytes(lhs, rhs, lhs_count, rhs_count);
  }
  static bool memequal(const void* lhs, const void* rhs, size_t lhs_count, size_t rhs_count) {
    return lhs_count == rhs_count &&
           (lhs == rhs || lhs_count == 0 || std::memcmp(lhs, rhs, lhs_count) == 0);
  }

 private:
  template <typename, typename>
  friend struct TypeTraits;
  template <typename, typename>
  friend class Optional;
  explicit Bytes(Cell cell) : cell_(std::move(cell)) {}
  Cell cell_;
};

class String {
  using Cell =
      tether::BytesCell<detail::StringObj, TypeIndex::kTVMFFISmallStr, TypeIndex::kTVMFFIStr>;

 public:
  static constexpr size_t npos = static_cast<size_t>(-1);

  String(std::nullptr_t) = delete;
  String() = default;
  String(const char* other) : cell_(other, std::strlen(other)) {}          // NOLINT(*)
  String(const char* data, size_t size) : cell_(data, size) {}             // NOLINT(*)
  String(const std::string& other) : cell_(other.data(), other.size()) {}  // NOLINT(*)
  String(std::string&& other) : cell_(std::move(other)) {}                 // NOLINT(*)
  explicit String(TVMFFIByteArray bytes) : cell_(bytes.data, bytes.size) {}
  TVM_FFI_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(String);
  String& operator=(const std::string& other) {
    String(other).swap(*this);
    return *this;
  }
  String& operator=(std::string&& other) {
    String(std::move(other)).swap(*this);
    return *this;
  }
  String& operator=(const char* other) {
    String(other).swap(*this);
    return *this;
  }

  void swap(String& other) noexcept { cell_.swap(other.cell_); }
  const char* data() const noexcept { return cell_.data(); }
  const char* c_str() const noexcept { return data(); }
  size_t size() const noexcept { return cell_.size(); }
  size_t length() const noexcept { return size(); }
  bool empty() const noexcept { return size() == 0; }
  operator std::string() const { return std::string(data(), size()); }  // NOLINT(*)
  char at(size_t pos) const {
    if (pos >= size()) throw std::out_of_range("tvm::String index out of bounds");
    return data()[pos];
  }

  // -1, 0 or 1.
  int compare(const String& other) const {
    return tether::CompareBytes(data(), other.data(), size(), other.size());
  }
  int compare(const std::string& other) const {
    return tether::CompareBytes(data(), other.data(), size(), other.size());
  }
  int compare(const char* other) const {
    return tether::CompareBytes(data(), other, size(), std::strlen(other));
  }
  int compare(const TVMFFIByteArray& other) const {
    return tether::CompareBytes(data(), other.data, size(), other.size);
  }

  size_t find(const String& str, size_t pos = 0) const { return View().find(str.View(), pos); }
  size_t find(const char* str, size_t pos = 0) const { return View().find(str, pos); }
  size_t find(const char* str, size_t pos, size_t count) const {
    return View().find(str, pos, count);
  }
  String substr(size_t pos = 0, size_t count = npos) const {
    if (pos > size()) throw std::out_of_range("tvm::String substr index out of bounds");
    return String(data() + pos, std::min(count, size() - pos));
  }
  bool starts_with(const String& prefix) const { return starts_with(prefix.View()); }
  bool starts_with(std::string_view prefix) const {
    return View().substr(0, prefix.size()) == prefix;
  }
  bool starts_with(const char* prefix) const { return starts_with(std::string_view(prefix)); }
  bool starts_with(const char* prefix, size_t count) const {
    return starts_with(std::string_view(prefix, count));
  }
  bool ends_with(const String& suffix) const { return ends_with(suffix.View()); }
  bool ends_with(std::string_view suffix) const {
    return size() >= suffix.size() && View().substr(size() - suffix.size()) == suffix;
  }
  bool ends_with(const char* suffix) const { return ends_with(std::string_view(suffix)); }
  bool ends_with(const char* suffix, size_t count) const {
    return ends_with(std::string_view(suffix, count));
  }
  // Views into this string, at least one, empty ones kept.
  std::vector<std::string_view> Split(char delim) const {
    std::vector<std::string_view> parts;
    std::string_view rest = View();
    for (size_t end; (end = rest.find(delim)) != npos; rest.remove_prefix(end + 1)) {
      parts.push_back(rest.substr(0, end));
    }
    parts.push_back(rest);
    return parts;
  }

 private:
  std::string_view View() const noexcept { return cell_.view(); }

  static String Concat(std::string_view lhs, std::string_view rhs) {
    String out(Cell::WithSpace(lhs.size() + rhs.size()));
    char* dst = const_cast<char*>(out.data());
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
// GCC assumes the inline form for any size.
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wrestrict"
#endif
    if (!lhs.empty()) std::memcpy(dst, lhs.data(), lhs.size());
    if (!rhs.empty()) std::memcpy(dst + lhs.size(), rhs.data(), rhs.size());
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
    return out;
  }

  template <typename, typename>
  friend struct TypeTraits;
  template <typename, typename>
  friend class Optional;
  friend String operator+(const String& lhs, const String& rhs);
  friend String operator+(const String& lhs, const std::string& rhs);
  friend String operator+(const std::string& lhs, const String& rhs);
  friend String operator+(const String& lhs, const char* rhs);
  friend String operator+(const char* lhs, const String& rhs);
  explicit String(Cell cell) : cell_(std::move(cell)) {}
  Cell cell_;
};

static_assert(sizeof(String) == sizeof(TVMFFIAny) && sizeof(Bytes) == sizeof(TVMFFIAny),
              "String and Bytes are one value");

inline String operator+(const String& lhs, const String& rhs) {
  return String::Concat(lhs.View(), rhs.View());
}
inline String operator+(const String& lhs, const std::string& rhs) {
  return String::Concat(lhs.View(), rhs);
}
inline String operator+(const std::string& lhs, const String& rhs) {
  return String::Concat(lhs, rhs.View());
}
inline String operator+(const String& lhs, const char* rhs) {
  return String::Concat(lhs.View(), rhs);
}
inline String operator+(const char* lhs, const String& rhs) {
  return String::Concat(lhs, rhs.View());
}

#define TVM_FFI_STRING_COMPARE_(op)                                                               \
  inline bool operator op(const String& lhs, const String& rhs) { return lhs.compare(rhs) op 0; } \
  inline bool operator op(const String& lhs, const std::string& rhs) {                            \
    return lhs.compare(rhs) op 0;                                                                 \
  }                                                                                               \
  inline bool operator op(const std::string& lhs, const String& rhs) {                            \
    return 0 op rhs.compare(lhs);                                                                 \
  }                                                                                               \
  inline bool operator op(const String& lhs, const char* rhs) { return lhs.compare(rhs) op 0; }   \
  inline bool operator op(const char* lhs, const String& rhs) { return 0 op rhs.compare(lhs); }   \
  inline bool operator op(const String& lhs, std::nullptr_t) = delete;                            \
  inline bool operator op(std::nullptr_t, const String& rhs) = delete;
TVM_FFI_STRING_COMPARE_(<)
TVM_FFI_STRING_COMPARE_(>)
TVM_FFI_STRING_COMPARE_(<=)
TVM_FFI_STRING_COMPARE_(>=)
#undef TVM_FFI_STRING_COMPARE_

#define TVM_FFI_STRING_EQUAL_(op, not_)                                                     \
  inline bool operator op(const String& lhs, const String& rhs) {                           \
    return not_ Bytes::memequal(lhs.data(), rhs.data(), lhs.size(), rhs.size());            \
  }                                                                                         \
  inline bool operator op(const String& lhs, const std::string& rhs) {                      \
    return not_ Bytes::memequal(lhs.data(), rhs.data(), lhs.size(), rhs.size());            \
  }                                                                                         \
  inline bool operator op(const std::string& lhs, const String& rhs) { return rhs op lhs; } \
  inline bool operator op(const String& lhs, const char* rhs) {                             \
    return not_ Bytes::memequal(lhs.data(), rhs, lhs.size(), std::strlen(rhs));             \
  }                                                                                         \
  inline bool operator op(const char* lhs, const String& rhs) { return rhs op lhs; }        \
  inline bool operator op(const String& lhs, std::nullptr_t) = delete;                      \
  inline bool operator op(std::nullptr_t, const String& rhs) = delete;
TVM_FFI_STRING_EQUAL_(==, )
TVM_FFI_STRING_EQUAL_(!=, !)
#undef TVM_FFI_STRING_EQUAL_

inline std::ostream& operator<<(std::ostream& os, const String& str) {
  return os.write(str.data(), static_cast<std::streamsize>(str.size()));
}

namespace tether {

inline void AppendHex(std::string* out, const char* prefix, uint32_t value, int digits) {
  out->append(prefix);
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out->push_back("0123456789abcdef"[(value >> shift) & 0xF]);
  }
}

inline bool IsControl(unsigned char c) { return c < 0x20 || c == 0x7f; }

// Length of a colour or erase sequence ESC [ [0-9;]* (m|K) at the front of s, else 0.
inline size_t AnsiSequenceLength(std::string_view s) {
  if (s.size() < 3 || s[0] != '\x1b' || s[1] != '[') return 0;
  size_t i = 2;
  while (i < s.size() && ((s[i] >= '0' && s[i] <= '9') || s[i] == ';')) ++i;
  return i < s.size() && (s[i] == 'm' || s[i] == 'K') ? i + 1 : 0;
}

// Decodes a multi-byte UTF-8 sequence at the front of s; returns its length, 0 when there is none.
inline size_t DecodeUtf8(std::string_view s, uint32_t* code) {
  auto lead = static_cast<unsigned char>(s[0]);
  size_t length = (lead >> 5) == 0x6 ? 2 : (lead >> 4) == 0xE ? 3 : (lead >> 3) == 0x1E ? 4 : 0;
  if (length == 0 || s.size() < length) return 0;
  *code = lead & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    auto c = static_cast<unsigned char>(s[i]);
    if ((c >> 6) != 0x2) return 0;
    *code = (*code << 6) | (c & 0x3F);
  }
  return length;
}

// The letter JSON writes after a backslash for a byte, u for those written as a code; 0 for those
// that stand for themselves.
inline constexpr std::array<char, 256> kJSONEscape = [] {
  std::array<char, 256> table{};
  for (size_t c = 0; c < 0x20; ++c) table[c] = 'u';
  table[0x7f] = 'u';
  constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  for (size_t i = 0; i < kBytes.size(); ++i) table[static_cast<size_t>(kBytes[i])] = kLetters[i];
  return table;
}();

// Appends a JSON string literal.
inline void AppendJSONString(std::string_view text, std::string* out) {
  auto letter_of = [](char c) { return kJSONEscape[static_cast<unsigned char>(c)]; };
  const char* end = text.data() + text.size();
  out->push_back('"');
  for (const char* run = text.data(); run != end;) {
    const char* stop = run;
    while (stop != end && letter_of(*stop) == 0) ++stop;
    out->append(run, static_cast<size_t>(stop - run));
    for (; stop != end && letter_of(*stop) != 0; ++stop) {
      if (letter_of(*stop) == 'u') {
        AppendHex(out, "\\u", static_cast<unsigned char>(*stop), 4);
        continue;
      }
      char escape[] = {'\\', letter_of(*stop)};
      out->append(escape, sizeof(escape));
    }
    run = stop;
  }
  out->push_back('"');
}

}  // namespace tether

// A JSON string literal.
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline String EscapeStringJSON(const String& value) {
  std::string out;
  tether::AppendJSONString(std::string_view(value.data(), value.size()), &out);
  return String(std::move(out));
}

[[deprecated("use EscapeStringJSON")]] inline String EscapeString(const String& value) {
  return EscapeStringJSON(value);
}

// A Python string literal that shows terminal colours and non-ASCII text as escapes.
inline String EscapedStringPy(const String& value) {
  std::string out = "\"";
  std::string_view rest(value.data(), value.size());
  while (!rest.empty()) {
    size_t taken = 1;
    auto c = static_cast<unsigned char>(rest[0]);
    uint32_t code = 0;
    if (size_t ansi = tether::AnsiSequenceLength(rest)) {
      out.append("\\x1b").append(rest.substr(1, ansi - 1));
      taken = ansi;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\\' || c == '"') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x80 && !tether::IsControl(c)) {
      out += static_cast<char>(c);
    } else if (size_t length = tether::DecodeUtf8(rest, &code)) {
      if (length == 4) {
        tether::AppendHex(&out, "\\U", code, 8);
      } else {
        tether::AppendHex(&out, "\\u", code, 4);
      }
      taken = length;
    } else {
      tether::AppendHex(&out, "\\x", c, 2);
    }
    rest.remove_prefix(taken);
  }
  return String(out += '"');
}

namespace tether {

// Traits of String and Bytes: either form of the cell, and the borrowed form that converts into it.
template <typename Self, typename T, int32_t kSmallIndex, int32_t kLargeIndex, int32_t kRawIndex>
struct BytesTraits : public TypeTraitsBase {
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    return src->type_index == kSmallIndex || src->type_index == kLargeIndex;
  }
  TVM_FFI_INLINE static std::optional<T> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return Self::CopyFromAnyViewAfterCheck(src);
    if (src->type_index == kRawIndex) return Self::FromRaw(src);
    return std::nullopt;
  }
};

}  // namespace tether

template <>
struct TypeTraits<String>
    : public tether::BytesTraits<TypeTraits<String>, String, TypeIndex::kTVMFFISmallStr,
                                 TypeIndex::kTVMFFIStr, TypeIndex::kTVMFFIRawStr> {
  TVM_FFI_INLINE static void CopyToAnyView(const String& src, TVMFFIAny* result) {
    src.cell_.CopyToView(result);
  }
  TVM_FFI_INLINE static void MoveToAny(String src, TVMFFIAny* result) { src.cell_.MoveTo(result); }
  TVM_FFI_INLINE static String CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return String(String::Cell::Copy(src));
  }
  TVM_FFI_INLINE static String MoveFromAnyAfterCheck(TVMFFIAny* src) {
    return String(String::Cell::Take(src));
  }
  TVM_FFI_INLINE static String FromRaw(const TVMFFIAny* src) { return String(src->v_c_str); }
  static std::string TypeStr() { return "str"; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIStr); }
};

template <>
struct TypeTraits<Bytes>
    : public tether::BytesTraits<TypeTraits<Bytes>, Bytes, TypeIndex::kTVMFFISmallBytes,
                                 TypeIndex::kTVMFFIBytes, TypeIndex::kTVMFFIByteArrayPtr> {
  TVM_FFI_INLINE static void CopyToAnyView(const Bytes& src, TVMFFIAny* result) {
    src.cell_.CopyToView(result);
  }
  TVM_FFI_INLINE static void MoveToAny(Bytes src, TVMFFIAny* result) { src.cell_.MoveTo(result); }
  TVM_FFI_INLINE static Bytes CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return Bytes(Bytes::Cell::Copy(src));
  }
  TVM_FFI_INLINE static Bytes MoveFromAnyAfterCheck(TVMFFIAny* src) {
    return Bytes(Bytes::Cell::Take(src));
  }
  TVM_FFI_INLINE static Bytes FromRaw(const TVMFFIAny* src) {
    return Bytes(*static_cast<TVMFFIByteArray*>(src->v_ptr));
  }
  static std::string TypeStr() { return "bytes"; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIBytes); }
};

// A literal: borrowed in a view, copied into a String when stored.
template <size_t N>
struct TypeTraits<char[N]> : public TypeTraitsBase {
  static constexpr bool storage_enabled = false;
  TVM_FFI_INLINE static void CopyToAnyView(const char (&src)[N], TVMFFIAny* result) {
    result->type_index = TypeIndex::kTVMFFIRawStr;
    result->zero_padding = 0;
    TVM_FFI_CLEAR_PTR_PADDING_IN_FFI_ANY(result);
    result->v_c_str = src;
  }
  TVM_FFI_INLINE static void MoveToAny(const char (&src)[N], TVMFFIAny* result) {
    TypeTraits<String>::MoveToAny(String(src), result);
  }
};

template <>
struct TypeTraits<const char*> : public TypeTraitsBase {
  static constexpr bool storage_enabled = false;
  TVM_FFI_INLINE static void CopyToAnyView(const char* src, TVMFFIAny* result) {
    TVM_FFI_ICHECK_NOTNULL(src);
    result->type_index = TypeIndex::kTVMFFIRawStr;
    result->zero_padding = 0;
    TVM_FFI_CLEAR_PTR_PADDING_IN_FFI_ANY(result);
    result->v_c_str = src;
  }
  TVM_FFI_INLINE static void MoveToAny(const char* src, TVMFFIAny* result) {
    TVM_FFI_ICHECK_NOTNULL(src);
    TypeTraits<String>::MoveToAny(String(src), result);
  }
  TVM_FFI_INLINE static std::optional<const char*> TryCastFromAnyView(const TVMFFIAny* src) {
    if (src->type_index == TypeIndex::kTVMFFIRawStr) return src->v_c_str;
    return std::nullopt;
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFIRawStr; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIRawStr); }
};

template <>
struct TypeTraits<TVMFFIByteArray*> : public TypeTraitsBase {
  static constexpr bool storage_enabled = false;
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIByteArrayPtr;
  TVM_FFI_INLINE static void CopyToAnyView(TVMFFIByteArray* src, TVMFFIAny* result) {
    TVM_FFI_ICHECK_NOTNULL(src);
    result->type_index = TypeIndex::kTVMFFIByteArrayPtr;
    result->zero_padding = 0;
    TVM_FFI_CLEAR_PTR_PADDING_IN_FFI_ANY(result);
    result->v_ptr = src;
  }
  TVM_FFI_INLINE static void MoveToAny(TVMFFIByteArray* src, TVMFFIAny* result) {
    TVM_FFI_ICHECK_NOTNULL(src);
    TypeTraits<Bytes>::MoveToAny(Bytes(*src), result);
  }
  TVM_FFI_INLINE static std::optional<TVMFFIByteArray*> TryCastFromAnyView(const TVMFFIAny* src) {
    if (src->type_index != TypeIndex::kTVMFFIByteArrayPtr) return std::nullopt;
    return static_cast<TVMFFIByteArray*>(src->v_ptr);
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFIByteArrayPtr; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIByteArrayPtr); }
};

// Any text or bytes converts into a std::string; as a view it is a C string and ends at the first
// NUL.
template <>
struct TypeTraits<std::string>
    : public FallbackOnlyTraitsBase<std::string, const char*, TVMFFIByteArray*, Bytes, String> {
  TVM_FFI_INLINE static void CopyToAnyView(const std::string& src, TVMFFIAny* result) {
    TypeTraits<const char*>::CopyToAnyView(src.c_str(), result);
  }
  TVM_FFI_INLINE static void MoveToAny(std::string src, TVMFFIAny* result) {
    TypeTraits<String>::MoveToAny(String(std::move(src)), result);
  }
  static std::string TypeStr() { return "std::string"; }
  static std::string TypeSchema() { return tether::Schema("std::string"); }

  static std::string ConvertFallbackValue(const char* src) { return std::string(src); }
  static std::string ConvertFallbackValue(TVMFFIByteArray* src) {
    return std::string(src->data, src->size);
  }
  static std::string ConvertFallbackValue(const Bytes& src) { return src; }
  static std::string ConvertFallbackValue(const String& src) { return src; }
};

}  // namespace ffi
}  // namespace tvm

namespace std {
template <>
struct hash<::tvm::ffi::Bytes> {
  size_t operator()(const ::tvm::ffi::Bytes& bytes) const {
    return std::hash<std::string_view>()(std::string_view(bytes.data(), bytes.size()));
  }
};
template <>
struct hash<::tvm::ffi::String> {
  size_t operator()(const ::tvm::ffi::String& str) const {
    return std::hash<std::string_view>()(std::string_view(str.data(), str.size()));
  }
};
}  // namespace std
#endif  // TVM_FFI_STRING_H_
