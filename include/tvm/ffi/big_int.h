// SPDX-License-Identifier: Apache-2.0
// BigInt: an integer of any size, as a value.
//
//   BigInt a = (BigInt(1) << 200) + 7;
//   BigInt b = a * a / 3;                    // truncates as C++ does; floordiv rounds down
//   std::cout << b % 1000 << "\n";
//   int64_t small = static_cast<int64_t>(a >> 190);
//
// A BigInt is one cell of an Any. A value inside int64 is an Int in that cell; any other is a
// BigIntObj, whose words are a two's complement number, least significant first, without redundant
// sign words. There is one form for each number, so equality compares words.
#ifndef TVM_FFI_BIG_INT_H_
#define TVM_FFI_BIG_INT_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/type_traits.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {

class BigInt;

namespace detail {

// The words follow the object. The logical size may be smaller than what was allocated.
class BigIntObj : public Object {
 public:
  explicit BigIntObj(size_t size) : size_(size) {}
  BigIntObj(const BigIntObj&) = delete;  // the words would be missing
  BigIntObj& operator=(const BigIntObj&) = delete;
  size_t size() const { return size_; }
  const int64_t* data() const { return reinterpret_cast<const int64_t*>(this + 1); }
  int64_t* data() { return reinterpret_cast<int64_t*>(this + 1); }

  static constexpr int32_t _type_index = TypeIndex::kTVMFFIBigInt;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC(StaticTypeKey::kTVMFFIBigInt, BigIntObj, Object);
  static constexpr bool _type_final = true;

 private:
  friend struct BigIntUnsafe;
  size_t size_;
};
static_assert(sizeof(BigIntObj) == 32, "header, size, then the words");

struct BigIntUnsafe;

}  // namespace detail

namespace tether {

// ---- numbers as arrays of words ----
//
// Signed: two's complement, at least one word. Magnitudes: unsigned, no zero word at the top, zero
// is empty. All functions take any form of their operands; results may need pruning.
namespace words {

using Magnitude = std::vector<uint64_t>;

// Signed words that somebody else owns.
struct Signed {
  const int64_t* data;
  size_t size;
  bool IsNegative() const { return data[size - 1] < 0; }
  // With infinite sign extension.
  uint64_t operator[](size_t i) const {
    return static_cast<uint64_t>(i < size ? data[i] : (IsNegative() ? -1 : 0));
  }
};

// The size without redundant sign words.
inline size_t PrunedSize(const int64_t* data, size_t size) {
  while (size > 1 && data[size - 1] == (data[size - 2] < 0 ? -1 : 0)) --size;
  return size;
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 Uint128;
#endif

struct Wide {
  uint64_t high, low;
};

inline Wide MultiplyWide(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
  auto product = static_cast<Uint128>(a) * b;
  return {static_cast<uint64_t>(product >> 64), static_cast<uint64_t>(product)};
#else
  constexpr uint64_t kLow = 0xFFFFFFFFu;
  uint64_t low = (a & kLow) * (b & kLow);
  uint64_t middle = (a >> 32) * (b & kLow) + (low >> 32);
  uint64_t other = (a & kLow) * (b >> 32) + (middle & kLow);
  return {(a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32), (other << 32) | (low & kLow)};
#endif
}

// Divides high:low by a divisor above `high`.
inline uint64_t DivideWide(uint64_t high, uint64_t low, uint64_t divisor, uint64_t* remainder) {
#ifdef __SIZEOF_INT128__
  auto value = static_cast<Uint128>(high) << 64 | low;
  auto quotient = static_cast<uint64_t>(value / divisor);
  *remainder = low - quotient * divisor;
  return quotient;
#else
  uint64_t quotient = 0;
  for (int i = 0; i < 64; ++i) {  // bit by bit
    const bool carry = high >> 63 != 0;
    high = high << 1 | low >> 63;
    low <<= 1;
    quotient <<= 1;
    if (carry || high >= divisor) {
      high -= divisor;
      quotient |= 1;
    }
  }
  *remainder = high;
  return quotient;
#endif
}

inline void Prune(Magnitude* value) {
  while (!value->empty() && value->back() == 0) value->pop_back();
}

inline Magnitude MagnitudeOf(Signed value) {
  Magnitude result(value.size);
  uint64_t carry = value.IsNegative() ? 1 : 0;
  const uint64_t flip = carry != 0 ? ~uint64_t{0} : 0;
  for (size_t i = 0; i < value.size; ++i) {
    result[i] = (static_cast<uint64_t>(value.data[i]) ^ flip) + carry;
    carry = carry != 0 && result[i] == 0 ? 1 : 0;
  }
  // The smallest negative number of its size has a magnitude with the top bit set, which still
  // fits.
  Prune(&result);
  return result;
}

inline int CompareMagnitudes(const Magnitude& a, const Magnitude& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

// value = value * factor + carry
inline void MultiplyAdd(Magnitude* value, uint64_t factor, uint64_t carry) {
  for (uint64_t& word : *value) {
    Wide product = MultiplyWide(word, factor);
    word = product.low + carry;
    carry = product.high + (word < carry ? 1 : 0);
  }
  if (carry != 0) value->push_back(carry);
}

// Divides in place and returns the remainder.
inline uint64_t DivideSmall(Magnitude* value, uint64_t divisor) {
  uint64_t remainder = 0;
  for (size_t i = value->size(); i-- > 0;) {
    (*value)[i] = DivideWide(remainder, (*value)[i], divisor, &remainder);
  }
  Prune(value);
  return remainder;
}

inline Magnitude Multiply(const Magnitude& a, const Magnitude& b) {
  Magnitude result(a.size() + b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      Wide product = MultiplyWide(a[i], b[j]);
      product.low += carry;
      product.high += product.low < carry ? 1 : 0;
      uint64_t& word = result[i + j];
      word += product.low;
      carry = product.high + (word < product.low ? 1 : 0);
    }
    result[i + b.size()] = carry;
  }
  Prune(&result);
  return result;
}

inline int LeadingZeros(uint64_t word) {
  int count = 0;
  for (; word >> 63 == 0; word <<= 1) ++count;
  return count;
}

// value << bits, with one word more; bits < 64.
inline Magnitude ShiftedUp(const Magnitude& value, int bits) {
  Magnitude result(value.size() + 1);
  for (size_t i = 0; i < value.size(); ++i) {
    result[i] |= value[i] << bits;
    if (bits != 0) result[i + 1] = value[i] >> (64 - bits);
  }
  return result;
}

// Schoolbook division: leaves the remainder in *value and returns the quotient. The divisor is not
// zero. Each digit of the quotient is estimated from the top words, at most two too large, and
// corrected by adding back.
inline Magnitude Divide(Magnitude* value, const Magnitude& divisor) {
  if (CompareMagnitudes(*value, divisor) < 0) return {};
  if (divisor.size() == 1) {
    Magnitude quotient = std::move(*value);
    uint64_t remainder = DivideSmall(&quotient, divisor[0]);
    value->assign(remainder != 0 ? 1 : 0, remainder);
    return quotient;
  }
  const int shift = LeadingZeros(divisor.back());
  Magnitude rest = ShiftedUp(*value, shift);
  Magnitude by = ShiftedUp(divisor, shift);
  by.pop_back();  // the shift moved nothing out
  const size_t n = by.size();
  Magnitude quotient(rest.size() - n);
  for (size_t at = quotient.size(); at-- > 0;) {
    uint64_t* top = rest.data() + at;  // n + 1 words
    uint64_t digit = ~uint64_t{0}, left = 0;
    bool is_exact = top[n] < by[n - 1];
    if (is_exact) {
      digit = DivideWide(top[n], top[n - 1], by[n - 1], &left);
    } else {  // equal: the estimate would not fit a word
      left = top[n - 1] + by[n - 1];
      is_exact = left >= by[n - 1];  // no carry: still to be compared
    }
    while (is_exact) {
      Wide second = MultiplyWide(digit, by[n - 2]);
      if (second.high < left || (second.high == left && second.low <= top[n - 2])) break;
      --digit;
      left += by[n - 1];
      is_exact = left >= by[n - 1];
    }
    // top -= digit * by
    uint64_t carry = 0, borrow = 0;
    for (size_t i = 0; i < n; ++i) {
      Wide product = MultiplyWide(digit, by[i]);
      product.low += carry;
      carry = product.high + (product.low < carry ? 1 : 0);
      uint64_t difference = top[i] - product.low;
      uint64_t result = difference - borrow;
      borrow = (top[i] < product.low ? 1 : 0) + (difference < borrow ? 1 : 0);
      top[i] = result;
    }
    const uint64_t last = top[n] - carry - borrow;
    const bool is_too_large = top[n] < carry || top[n] - carry < borrow;
    top[n] = last;
    if (is_too_large) {
      --digit;
      carry = 0;
      for (size_t i = 0; i < n; ++i) {
        uint64_t sum = top[i] + carry;
        carry = sum < carry ? 1 : 0;
        top[i] = sum + by[i];
        carry += top[i] < sum ? 1 : 0;
      }
      top[n] += carry;
    }
    quotient[at] = digit;
  }
  // The remainder is what is left, shifted back.
  value->assign(n, 0);
  for (size_t i = 0; i < n; ++i) {
    (*value)[i] = rest[i] >> shift;
    if (shift != 0) (*value)[i] |= rest[i + 1] << (64 - shift);
  }
  Prune(value);
  Prune(&quotient);
  return quotient;
}

}  // namespace words
}  // namespace tether

class BigInt {
 public:
  // The words of a number; valid as long as what it was taken from.
  class ArrayView {
   public:
    ArrayView(const int64_t* data, size_t size) : data_(data), size_(size) {}
    size_t size() const { return size_; }
    int64_t operator[](size_t i) const { return data_[i]; }
    const int64_t* data() const { return data_; }

   private:
    const int64_t* data_;
    size_t size_;
  };

  BigInt() noexcept { SetInt(0); }
  template <typename Int, typename = std::enable_if_t<std::is_integral_v<Int> && sizeof(Int) <= 8>>
  BigInt(Int value) {  // NOLINT(*)
    SetInt(static_cast<int64_t>(value));
    if constexpr (std::is_unsigned_v<Int> && sizeof(Int) == 8) {
      if (cell_.v_int64 < 0) *this = FromMagnitude({static_cast<uint64_t>(value)}, false);
    }
  }
  // Truncates.
  explicit BigInt(double value);
  BigInt(const BigInt& other) noexcept : cell_(other.cell_) { AddReference(); }
  BigInt(BigInt&& other) noexcept : cell_(other.cell_) { other.SetInt(0); }
  BigInt& operator=(BigInt other) noexcept {
    swap(other);
    return *this;
  }
  ~BigInt() {
    if (!IsInt()) detail::ObjectUnsafe::DecRefObjectHandle(cell_.v_obj);
  }
  void swap(BigInt& other) noexcept { std::swap(cell_, other.cell_); }
  friend void swap(BigInt& a, BigInt& b) noexcept { a.swap(b); }

  explicit operator bool() const { return !IsInt() || cell_.v_int64 != 0; }
  explicit operator int64_t() const {
    if (!IsInt()) TVM_FFI_THROW(OverflowError) << "BigInt does not fit int64_t";
    return cell_.v_int64;
  }
  // The nearest one, ties to even.
  explicit operator double() const;
  // The value if the type can hold it.
  template <typename Int, typename = std::enable_if_t<std::is_integral_v<Int> && sizeof(Int) <= 8>>
  std::optional<Int> as() const {
    if constexpr (std::is_unsigned_v<Int> && sizeof(Int) == 8) {
      tether::words::Signed value = words();
      if (value.IsNegative() || value.size > 2 || (value.size == 2 && value[1] != 0)) {
        return std::nullopt;
      }
      return static_cast<Int>(value[0]);
    } else {
      if (!IsInt() || cell_.v_int64 < static_cast<int64_t>(std::numeric_limits<Int>::min()) ||
          cell_.v_int64 > static_cast<int64_t>(std::numeric_limits<Int>::max())) {
        return std::nullopt;
      }
      return static_cast<Int>(cell_.v_int64);
    }
  }

  BigInt operator+() const { return *this; }
  BigInt operator-() const { return Sum(BigInt(), *this, true); }
  BigInt operator~() const { return Sum(BigInt(-1), *this, true); }
  BigInt& operator++() { return *this += BigInt(1); }
  BigInt& operator--() { return *this -= BigInt(1); }
  BigInt operator++(int) {
    BigInt old = *this;
    ++*this;
    return old;
  }
  BigInt operator--(int) {
    BigInt old = *this;
    --*this;
    return old;
  }

  friend BigInt operator+(const BigInt& a, const BigInt& b) { return Sum(a, b, false); }
  friend BigInt operator-(const BigInt& a, const BigInt& b) { return Sum(a, b, true); }
  friend BigInt operator*(const BigInt& a, const BigInt& b) { return Product(a, b); }
  // Rounds towards zero; floordiv rounds down.
  friend BigInt operator/(const BigInt& a, const BigInt& b) { return DivMod(a, b).first; }
  friend BigInt operator%(const BigInt& a, const BigInt& b) { return DivMod(a, b).second; }
  friend BigInt operator&(const BigInt& a, const BigInt& b) {
    return Bitwise(a, b, [](uint64_t x, uint64_t y) { return x & y; });
  }
  friend BigInt operator|(const BigInt& a, const BigInt& b) {
    return Bitwise(a, b, [](uint64_t x, uint64_t y) { return x | y; });
  }
  friend BigInt operator^(const BigInt& a, const BigInt& b) {
    return Bitwise(a, b, [](uint64_t x, uint64_t y) { return x ^ y; });
  }
  friend BigInt operator<<(const BigInt& a, const BigInt& count) { return ShiftLeft(a, count); }
  // Rounds down.
  friend BigInt operator>>(const BigInt& a, const BigInt& count) { return ShiftRight(a, count); }

  BigInt& operator+=(const BigInt& other) { return *this = *this + other; }
  BigInt& operator-=(const BigInt& other) { return *this = *this - other; }
  BigInt& operator*=(const BigInt& other) { return *this = *this * other; }
  BigInt& operator/=(const BigInt& other) { return *this = *this / other; }
  BigInt& operator%=(const BigInt& other) { return *this = *this % other; }
  BigInt& operator&=(const BigInt& other) { return *this = *this & other; }
  BigInt& operator|=(const BigInt& other) { return *this = *this | other; }
  BigInt& operator^=(const BigInt& other) { return *this = *this ^ other; }
  BigInt& operator<<=(const BigInt& count) { return *this = *this << count; }
  BigInt& operator>>=(const BigInt& count) { return *this = *this >> count; }

  friend BigInt truncdiv(const BigInt& a, const BigInt& b) { return a / b; }
  friend BigInt truncmod(const BigInt& a, const BigInt& b) { return a % b; }
  friend BigInt floordiv(const BigInt& a, const BigInt& b) {
    auto [quotient, remainder] = DivMod(a, b);
    bool rounds_up = static_cast<bool>(remainder) && remainder.IsNegative() != b.IsNegative();
    return rounds_up ? quotient - BigInt(1) : quotient;
  }
  friend BigInt floormod(const BigInt& a, const BigInt& b) {
    BigInt remainder = a % b;
    bool is_off = static_cast<bool>(remainder) && remainder.IsNegative() != b.IsNegative();
    return is_off ? remainder + b : remainder;
  }
  friend BigInt min(const BigInt& a, const BigInt& b) { return b < a ? b : a; }
  friend BigInt max(const BigInt& a, const BigInt& b) { return a < b ? b : a; }

  friend bool operator==(const BigInt& a, const BigInt& b) { return Compare(a, b) == 0; }
  friend bool operator!=(const BigInt& a, const BigInt& b) { return Compare(a, b) != 0; }
  friend bool operator<(const BigInt& a, const BigInt& b) { return Compare(a, b) < 0; }
  friend bool operator<=(const BigInt& a, const BigInt& b) { return Compare(a, b) <= 0; }
  friend bool operator>(const BigInt& a, const BigInt& b) { return Compare(a, b) > 0; }
  friend bool operator>=(const BigInt& a, const BigInt& b) { return Compare(a, b) >= 0; }

  uint64_t hash() const {
    if (IsInt()) return cell_.v_uint64;
    tether::words::Signed value = words();
    return detail::StableHashBytes(value.data, value.size * sizeof(int64_t));
  }

  // In decimal, and back: an optional sign and digits, nothing else; nullopt for other text.
  std::string ToString() const;
  static std::optional<BigInt> FromString(const char* data, size_t size);

  friend std::ostream& operator<<(std::ostream& os, const BigInt& value) {
    return os << value.ToString();
  }
  // Stops at the first character that is no digit. Without a digit the stream fails and `value`
  // stays.
  friend std::istream& operator>>(std::istream& is, BigInt& value) { return Read(is, &value); }

 private:
  friend struct detail::BigIntUnsafe;
  template <typename, typename>
  friend struct TypeTraits;

  bool IsInt() const { return cell_.type_index == TypeIndex::kTVMFFIInt; }
  bool IsNegative() const { return words().IsNegative(); }
  void SetInt(int64_t value) {
    cell_.type_index = TypeIndex::kTVMFFIInt;
    cell_.zero_padding = 0;
    cell_.v_int64 = value;
  }
  void AddReference() {
    if (!IsInt()) detail::ObjectUnsafe::IncRefObjectHandle(cell_.v_obj);
  }
  tether::words::Signed words() const {
    if (IsInt()) return {&cell_.v_int64, 1};
    auto* object = detail::ObjectUnsafe::RawObjectPtrFromUnowned<detail::BigIntObj>(cell_.v_obj);
    return {object->data(), object->size()};
  }

  static ObjectPtr<detail::BigIntObj> NewObject(size_t size) {
    return make_inplace_array_object<detail::BigIntObj, int64_t>(size, size);
  }
  // The canonical form of an object's words.
  static BigInt FromObject(ObjectPtr<detail::BigIntObj> object);
  static BigInt FromMagnitude(const tether::words::Magnitude& value, bool is_negative);

  static BigInt Sum(const BigInt& a, const BigInt& b, bool subtracts);
  static BigInt Product(const BigInt& a, const BigInt& b);
  static std::pair<BigInt, BigInt> DivMod(const BigInt& a, const BigInt& b);
  template <typename F>
  static BigInt Bitwise(const BigInt& a, const BigInt& b, F&& f) {
    tether::words::Signed x = a.words(), y = b.words();
    ObjectPtr<detail::BigIntObj> result = NewObject(std::max(x.size, y.size));
    for (size_t i = 0; i < result->size(); ++i) {
      result->data()[i] = static_cast<int64_t>(f(x[i], y[i]));
    }
    return FromObject(std::move(result));
  }
  static void CheckShift(const BigInt& count) {
    if (count.IsNegative()) TVM_FFI_THROW(ValueError) << "Negative BigInt shift count";
  }
  static BigInt ShiftLeft(const BigInt& a, const BigInt& count);
  static BigInt ShiftRight(const BigInt& a, const BigInt& count);
  static int Compare(const BigInt& a, const BigInt& b);
  static std::istream& Read(std::istream& is, BigInt* value);

  TVMFFIAny cell_;
};

// Friends of the class, for calls with a qualified name.
BigInt truncdiv(const BigInt& a, const BigInt& b);
BigInt truncmod(const BigInt& a, const BigInt& b);
BigInt floordiv(const BigInt& a, const BigInt& b);
BigInt floormod(const BigInt& a, const BigInt& b);
BigInt min(const BigInt& a, const BigInt& b);
BigInt max(const BigInt& a, const BigInt& b);

namespace detail {

// What other parts of the library, which keep the canonical form themselves, may do.
struct BigIntUnsafe {
  static bool CheckInt64(const BigInt& value) { return value.IsInt(); }
  static int64_t GetInt64(const BigInt& value) { return value.cell_.v_int64; }
  static BigInt::ArrayView GetArrayView(const BigInt& value) {
    tether::words::Signed words = value.words();
    return {words.data, words.size};
  }
  static BigInt::ArrayView GetArrayView(const int64_t& value) { return {&value, 1}; }
  static BigInt::ArrayView GetArrayView(const ObjectPtr<BigIntObj>& object) {
    return {object->data(), object->size()};
  }
  static BigInt::ArrayView GetArrayView(const TVMFFIAny* value) {
    if (value->type_index == TypeIndex::kTVMFFIInt) return {&value->v_int64, 1};
    auto* object = ObjectUnsafe::RawObjectPtrFromUnowned<BigIntObj>(value->v_obj);
    return {object->data(), object->size()};
  }
  static int64_t* GetMutableData(const ObjectPtr<BigIntObj>& object) { return object->data(); }
  static void ShrinkSize(const ObjectPtr<BigIntObj>& object, size_t size) { object->size_ = size; }
  static BigInt Normalize(ObjectPtr<BigIntObj> object) {
    return BigInt::FromObject(std::move(object));
  }
  static std::pair<BigInt, BigInt> DivMod(const BigInt& a, const BigInt& b) {
    return BigInt::DivMod(a, b);
  }
};

namespace int_ops {

inline bool IsNegative(BigInt::ArrayView value) { return value[value.size() - 1] < 0; }
inline bool IsNormalizedZero(BigInt::ArrayView value) { return value.size() == 1 && value[0] == 0; }
inline BigInt FromView(BigInt::ArrayView value) {
  auto object = make_inplace_array_object<BigIntObj, int64_t>(value.size(), value.size());
  std::copy(value.data(), value.data() + value.size(), BigIntUnsafe::GetMutableData(object));
  return BigIntUnsafe::Normalize(std::move(object));
}
// Quotient and remainder, rounded towards zero.
inline std::pair<BigInt, BigInt> DivRemFallback(BigInt::ArrayView a, BigInt::ArrayView b) {
  return BigIntUnsafe::DivMod(FromView(a), FromView(b));
}
inline std::pair<BigInt, BigInt> DivRemFallback(BigInt::ArrayView a, int64_t b) {
  return BigIntUnsafe::DivMod(FromView(a), BigInt(b));
}

}  // namespace int_ops
}  // namespace detail

// ---- implementation ----

inline BigInt BigInt::FromObject(ObjectPtr<detail::BigIntObj> object) {
  const size_t size = tether::words::PrunedSize(object->data(), object->size());
  if (size == 1) return BigInt(object->data()[0]);
  detail::BigIntUnsafe::ShrinkSize(object, size);
  BigInt result;
  result.cell_.type_index = TypeIndex::kTVMFFIBigInt;
  result.cell_.v_obj = detail::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(object));
  return result;
}

inline BigInt BigInt::FromMagnitude(const tether::words::Magnitude& value, bool is_negative) {
  ObjectPtr<detail::BigIntObj> result = NewObject(value.size() + 1);  // one for the sign
  uint64_t carry = is_negative ? 1 : 0;
  const uint64_t flip = is_negative ? ~uint64_t{0} : 0;
  for (size_t i = 0; i <= value.size(); ++i) {
    uint64_t word = ((i < value.size() ? value[i] : 0) ^ flip) + carry;
    carry = carry != 0 && word == 0 ? 1 : 0;
    result->data()[i] = static_cast<int64_t>(word);
  }
  return FromObject(std::move(result));
}

inline BigInt BigInt::Sum(const BigInt& a, const BigInt& b, bool subtracts) {
  if (a.IsInt() && b.IsInt()) {
    // In unsigned words, so that overflow is defined; it happened if the sign is impossible.
    const uint64_t x = a.cell_.v_uint64, y = b.cell_.v_uint64;
    const uint64_t sum = subtracts ? x - y : x + y;
    const uint64_t overflow = subtracts ? (x ^ y) & (x ^ sum) : (x ^ sum) & (y ^ sum);
    if (overflow >> 63 == 0) return BigInt(static_cast<int64_t>(sum));
  }
  tether::words::Signed x = a.words(), y = b.words();
  ObjectPtr<detail::BigIntObj> result = NewObject(std::max(x.size, y.size) + 1);
  int64_t* out = result->data();
  const uint64_t flip = subtracts ? ~uint64_t{0} : 0;
  uint64_t carry = subtracts ? 1 : 0;
  const size_t both = std::min(x.size, y.size);
  auto add = [&](size_t i, uint64_t first, uint64_t second) {
    uint64_t sum = first + carry;
    carry = sum < carry ? 1 : 0;
    second ^= flip;
    sum += second;
    carry += sum < second ? 1 : 0;
    out[i] = static_cast<int64_t>(sum);
  };
  for (size_t i = 0; i < both; ++i) {
    add(i, static_cast<uint64_t>(x.data[i]), static_cast<uint64_t>(y.data[i]));
  }
  for (size_t i = both; i < result->size(); ++i) add(i, x[i], y[i]);
  return FromObject(std::move(result));
}

inline BigInt BigInt::Product(const BigInt& a, const BigInt& b) {
  tether::words::Signed x = a.words(), y = b.words();
  return FromMagnitude(
      tether::words::Multiply(tether::words::MagnitudeOf(x), tether::words::MagnitudeOf(y)),
      x.IsNegative() != y.IsNegative());
}

inline std::pair<BigInt, BigInt> BigInt::DivMod(const BigInt& a, const BigInt& b) {
  if (!b) TVM_FFI_THROW(ZeroDivisionError) << "Division by zero";
  if (a.IsInt() && b.IsInt() && b.cell_.v_int64 != -1) {  // the smallest int64 by -1 overflows
    return {BigInt(a.cell_.v_int64 / b.cell_.v_int64), BigInt(a.cell_.v_int64 % b.cell_.v_int64)};
  }
  tether::words::Signed x = a.words(), y = b.words();
  tether::words::Magnitude rest = tether::words::MagnitudeOf(x);
  tether::words::Magnitude quotient = tether::words::Divide(&rest, tether::words::MagnitudeOf(y));
  return {FromMagnitude(quotient, x.IsNegative() != y.IsNegative()),
          FromMagnitude(rest, x.IsNegative())};
}

inline BigInt BigInt::ShiftLeft(const BigInt& a, const BigInt& count) {
  CheckShift(count);
  if (!a) return a;
  tether::words::Signed value = a.words();
  // What cannot be allocated is refused before the sizes overflow.
  constexpr int64_t kMaxBits = std::numeric_limits<int64_t>::max() / 16;
  if (!count.IsInt() || count.cell_.v_int64 > kMaxBits) {
    TVM_FFI_THROW(OverflowError) << "BigInt shift count is too large";
  }
  const auto skip = static_cast<size_t>(count.cell_.v_int64 / 64);
  const auto bits = static_cast<int>(count.cell_.v_int64 % 64);
  ObjectPtr<detail::BigIntObj> result = NewObject(value.size + skip + 1);
  std::fill_n(result->data(), skip, 0);
  uint64_t below = 0;
  for (size_t i = 0; i <= value.size; ++i) {
    const uint64_t word = value[i];
    result->data()[skip + i] =
        static_cast<int64_t>(bits == 0 ? word : word << bits | below >> (64 - bits));
    below = word;
  }
  return FromObject(std::move(result));
}

inline BigInt BigInt::ShiftRight(const BigInt& a, const BigInt& count) {
  CheckShift(count);
  tether::words::Signed value = a.words();
  if (!count.IsInt() || static_cast<uint64_t>(count.cell_.v_int64) / 64 >= value.size) {
    return BigInt(value.IsNegative() ? -1 : 0);
  }
  const auto skip = static_cast<size_t>(count.cell_.v_int64 / 64);
  const auto bits = static_cast<int>(count.cell_.v_int64 % 64);
  ObjectPtr<detail::BigIntObj> result = NewObject(value.size - skip + 1);
  for (size_t i = 0; i < result->size(); ++i) {
    const uint64_t word = value[skip + i], above = value[skip + i + 1];
    result->data()[i] =
        static_cast<int64_t>(bits == 0 ? word : word >> bits | above << (64 - bits));
  }
  return FromObject(std::move(result));
}

inline int BigInt::Compare(const BigInt& a, const BigInt& b) {
  tether::words::Signed x = a.words(), y = b.words();
  if (x.IsNegative() != y.IsNegative()) return x.IsNegative() ? -1 : 1;
  // A number of more words is farther from zero.
  if (x.size != y.size) return (x.size < y.size) != x.IsNegative() ? -1 : 1;
  for (size_t i = x.size; i-- > 0;) {
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}

inline BigInt::BigInt(double value) {
  SetInt(0);
  if (std::isnan(value)) TVM_FFI_THROW(ValueError) << "Cannot convert NaN to BigInt";
  if (std::isinf(value)) TVM_FFI_THROW(OverflowError) << "Cannot convert infinity to BigInt";
  int exponent;
  double fraction = std::frexp(std::trunc(value), &exponent);  // fraction * 2^exponent
  BigInt mantissa(static_cast<int64_t>(std::ldexp(fraction, 53)));
  *this = exponent >= 53 ? mantissa << BigInt(exponent - 53)
                         : BigInt(static_cast<int64_t>(std::trunc(value)));
}

inline BigInt::operator double() const {
  if (IsInt()) return static_cast<double>(cell_.v_int64);
  tether::words::Magnitude value = tether::words::MagnitudeOf(words());
  const int zeros = tether::words::LeadingZeros(value.back());
  // The top 64 bits, the lowest of which also says whether there is anything below them. Rounding
  // these to the 53 bits of a double rounds the number.
  const size_t top = value.size() - 1;
  uint64_t bits = value[top] << zeros;
  bool has_rest = false;
  if (zeros != 0 && top > 0) {
    bits |= value[top - 1] >> (64 - zeros);
    has_rest = value[top - 1] << zeros != 0;
  } else if (top > 0) {
    has_rest = value[top - 1] != 0;
  }
  for (size_t i = 0; !has_rest && i + 1 < top; ++i) has_rest = value[i] != 0;
  if (has_rest) bits |= 1;
  const uint64_t exponent = static_cast<uint64_t>(top) * 64 - static_cast<uint64_t>(zeros);
  double result = exponent > 2048
                      ? HUGE_VAL
                      : std::ldexp(static_cast<double>(bits), static_cast<int>(exponent));
  if (std::isinf(result)) TVM_FFI_THROW(OverflowError) << "BigInt does not fit finite double";
  return IsNegative() ? -result : result;
}

inline std::string BigInt::ToString() const {
  if (IsInt()) return std::to_string(cell_.v_int64);
  constexpr uint64_t kChunk = 10000000000000000000u;  // 10^19, the largest in a word
  constexpr int kDigits = 19;
  tether::words::Magnitude value = tether::words::MagnitudeOf(words());
  std::string reversed;
  while (!value.empty()) {
    uint64_t chunk = tether::words::DivideSmall(&value, kChunk);
    for (int i = 0; i < kDigits && (chunk != 0 || !value.empty()); ++i, chunk /= 10) {
      reversed.push_back(static_cast<char>('0' + chunk % 10));
    }
  }
  if (IsNegative()) reversed.push_back('-');
  return std::string(reversed.rbegin(), reversed.rend());
}

inline std::optional<BigInt> BigInt::FromString(const char* data, size_t size) {
  size_t at = size > 0 && (data[0] == '-' || data[0] == '+') ? 1 : 0;
  if (at == size) return std::nullopt;
  tether::words::Magnitude value;
  while (at < size) {
    uint64_t chunk = 0, scale = 1;
    for (int i = 0; i < 19 && at < size; ++i, ++at, scale *= 10) {
      if (data[at] < '0' || data[at] > '9') return std::nullopt;
      chunk = chunk * 10 + static_cast<uint64_t>(data[at] - '0');
    }
    tether::words::MultiplyAdd(&value, scale, chunk);
  }
  return FromMagnitude(value, data[0] == '-');
}

inline std::istream& BigInt::Read(std::istream& is, BigInt* value) {
  std::istream::sentry ready(is);
  if (!ready) return is;
  std::string text;
  auto peek = [&is] { return is.peek(); };
  if (peek() == '-' || peek() == '+') text.push_back(static_cast<char>(is.get()));
  while (peek() >= '0' && peek() <= '9') text.push_back(static_cast<char>(is.get()));
  if (std::optional<BigInt> parsed = FromString(text.data(), text.size())) {
    *value = *std::move(parsed);
  } else {
    is.setstate(std::ios::failbit);
  }
  return is;
}

template <>
inline constexpr bool use_default_type_traits_v<BigInt> = false;

// An Int or a BigInt in an Any; booleans convert, floats do not.
template <>
struct TypeTraits<BigInt> : public TypeTraitsBase {
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIAny;

  static void CopyToAnyView(const BigInt& src, TVMFFIAny* result) { *result = src.cell_; }
  static void MoveToAny(BigInt src, TVMFFIAny* result) {
    *result = src.cell_;
    src.SetInt(0);
  }
  static bool CheckAnyStrict(const TVMFFIAny* src) {
    return src->type_index == TypeIndex::kTVMFFIInt || src->type_index == TypeIndex::kTVMFFIBigInt;
  }
  static BigInt CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    BigInt result;
    result.cell_ = *src;
    result.AddReference();
    return result;
  }
  static BigInt MoveFromAnyAfterCheck(TVMFFIAny* src) {
    BigInt result;
    result.cell_ = *src;
    src->type_index = TypeIndex::kTVMFFINone;
    src->zero_padding = 0;
    src->v_int64 = 0;
    return result;
  }
  static std::optional<BigInt> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return CopyFromAnyViewAfterCheck(src);
    if (src->type_index == TypeIndex::kTVMFFIBool) return BigInt(src->v_int64);
    return std::nullopt;
  }
  static std::string TypeStr() { return "BigInt"; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIBigInt); }
};

}  // namespace ffi
}  // namespace tvm

template <>
struct std::hash<tvm::ffi::BigInt> {
  size_t operator()(const tvm::ffi::BigInt& value) const {
    return static_cast<size_t>(value.hash());
  }
};
#endif  // TVM_FFI_BIG_INT_H_
