// SPDX-License-Identifier: Apache-2.0
//
// A map read from its bytes alone, by offsets and constants of its own: what another binary does.
//
//   RawMap raw(map);
//   EXPECT_EQ(raw.Broken(), "");
//   EXPECT_EQ(raw.slots(), 8u);
#ifndef TETHER_TESTS_MAP_LAYOUT_H_
#define TETHER_TESTS_MAP_LAYOUT_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/object.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

namespace map_layout {

constexpr uint64_t kNone = ~uint64_t{0};
constexpr uint64_t kSmallBit = uint64_t{1} << 63;

inline uint64_t Combine(uint64_t key, uint64_t value) {
  return key ^ (value + 0x9e3779b9 + (key << 6) + (key >> 2));
}

inline uint64_t HashBytes(const unsigned char* data, size_t size) {
  uint64_t hash = 0;
  for (size_t at = 0; at < size; at += 8) {
    uint64_t word = 0;
    for (size_t i = 0; i < 8 && at + i < size; ++i) word |= uint64_t{data[at + i]} << (8 * i);
    hash = (hash * 1099511628211ULL + word) % 2147483647ULL;
  }
  return hash;
}

// Of types without a hash hook.
inline uint64_t Hash(const TVMFFIAny& cell) {
  if (cell.type_index == 11 || cell.type_index == 12) {
    return Combine(
        cell.type_index == 11 ? 65 : 66,
        HashBytes(reinterpret_cast<const unsigned char*>(cell.v_bytes), cell.small_str_len));
  }
  if (cell.type_index == 65 || cell.type_index == 66) {
    TVMFFIByteArray bytes;
    std::memcpy(&bytes, reinterpret_cast<const char*>(cell.v_obj) + 24, sizeof(bytes));
    return Combine(static_cast<uint64_t>(cell.type_index),
                   HashBytes(reinterpret_cast<const unsigned char*>(bytes.data), bytes.size));
  }
  return Combine(static_cast<uint64_t>(cell.type_index), cell.v_uint64);
}

inline std::vector<uint64_t> Probes() {
  std::vector<uint64_t> probes;
  for (uint64_t i = 0; i < 16; ++i) probes.push_back(i);
  for (uint64_t k = 6; k <= 72; ++k) probes.push_back(k * (k + 1) / 2);
  for (uint64_t far : {8515ULL,
                       19110ULL,
                       42778ULL,
                       96141ULL,
                       216153ULL,
                       486591ULL,
                       1092981ULL,
                       2458653ULL,
                       5532801ULL,
                       12442566ULL,
                       27993903ULL,
                       62983476ULL,
                       141717030ULL,
                       318844378ULL,
                       717352503ULL,
                       1614057336ULL,
                       3631522476ULL,
                       8170957530ULL,
                       18384510628ULL,
                       41364789378ULL,
                       93070452520ULL,
                       209408356380ULL,
                       471168559170ULL,
                       1060128894105ULL,
                       2385289465695ULL,
                       5366898840628ULL,
                       12075518705635ULL,
                       27169915244790ULL,
                       61132312065111ULL,
                       137547689707000ULL,
                       309482283181501ULL,
                       696335127828753ULL,
                       1566753995631385ULL,
                       3525196511162271ULL,
                       7931691992677701ULL,
                       17846306936293605ULL,
                       40154190677507445ULL,
                       90346928918121501ULL,
                       203280589587557251ULL,
                       457381325854679626ULL,
                       1029107982097042876ULL,
                       2315492959180353330ULL,
                       5209859154120846435ULL}) {
    probes.push_back(far);
  }
  return probes;
}

struct RawItem {
  TVMFFIAny key;
  TVMFFIAny value;
  uint64_t prev;
  uint64_t next;
};

class RawMap {
 public:
  using HashFunction = uint64_t (*)(const TVMFFIAny&);

  explicit RawMap(const void* object, HashFunction hash = Hash)
      : base_(static_cast<const char*>(object)), hash_(hash) {}
  explicit RawMap(const tvm::ffi::ObjectRef& ref, HashFunction hash = Hash)
      : RawMap(ref.get(), hash) {}

  uint64_t Word(size_t offset) const {
    uint64_t word;
    std::memcpy(&word, base_ + offset, sizeof(word));
    return word;
  }
  const char* data() const { return reinterpret_cast<const char*>(Word(24)); }
  uint64_t size() const { return Word(32); }
  bool is_small() const { return (Word(40) & kSmallBit) != 0; }
  uint64_t slots() const { return Word(40) & ~kSmallBit; }
  uint64_t deleter() const { return Word(48); }
  bool is_inline() const { return data() == base_ + 56; }
  uint32_t fib_shift() const {
    uint32_t shift;
    std::memcpy(&shift, base_ + 56, sizeof(shift));
    return shift;
  }
  uint64_t head() const { return Word(64); }
  uint64_t tail() const { return Word(72); }

  uint8_t meta(uint64_t slot) const {
    return static_cast<uint8_t>(data()[slot / 16 * 784 + slot % 16]);
  }
  RawItem item(uint64_t slot) const {
    RawItem item;
    std::memcpy(&item, data() + slot / 16 * 784 + 16 + slot % 16 * 48, sizeof(item));
    return item;
  }
  TVMFFIAny small_key(uint64_t i) const {
    TVMFFIAny key;
    std::memcpy(&key, data() + 32 * i, sizeof(key));
    return key;
  }
  uint64_t home(const TVMFFIAny& key) const {
    return (11400714819323198485ULL * hash_(key)) >> fib_shift();
  }

  // The keys in insertion order.
  std::vector<TVMFFIAny> Keys() const {
    std::vector<TVMFFIAny> keys;
    if (is_small()) {
      for (uint64_t i = 0; i < size(); ++i) keys.push_back(small_key(i));
    } else {
      for (uint64_t s = head(); s != kNone; s = item(s).next) keys.push_back(item(s).key);
    }
    return keys;
  }

  // Names the first rule of the layout that does not hold; empty if all do.
  std::string Broken() const { return is_small() ? BrokenSmall() : BrokenDense(); }

 private:
  std::string BrokenSmall() const {
    if (slots() > 4) return "a small map of more than 4 slots";
    if (size() > slots()) return "more entries than slots";
    return "";
  }

  std::string BrokenDense() const {
    static const std::vector<uint64_t> probes = Probes();
    const uint64_t n = slots();
    if (n < 8 || (n & (n - 1)) != 0) return "slots is not a power of two of at least 8";
    if (fib_shift() == 0 || n != uint64_t{1} << (64 - fib_shift())) return "fib_shift";
    if (deleter() == 0) return "no deleter";
    uint64_t occupied = 0, in_chains = 0;
    for (uint64_t s = 0; s < (n + 15) / 16 * 16; ++s) {
      const uint8_t m = meta(s);
      if (m == 0xFF) continue;
      if (s >= n) return "metadata behind the last slot";
      if (m == 0xFE) return "a claimed slot at rest";
      if ((m & 0x7F) > 125) return "a step outside the probe table";
      ++occupied;
      if ((m & 0x80) != 0) continue;
      // A chain holds the keys of its first slot and nothing else.
      for (uint64_t c = s;;) {
        if (++in_chains > n) return "a chain that does not end";
        if (home(item(c).key) != s) return "a key in the chain of another home";
        const uint8_t step = meta(c) & 0x7F;
        if (step == 0) break;
        c = (c + probes[step]) & (n - 1);
        if (meta(c) == 0xFF || (meta(c) & 0x80) == 0) return "a chain that leaves its bodies";
      }
    }
    if (occupied != size()) return "size is not the number of occupied slots";
    if (in_chains != size()) return "a body outside every chain, or in two";
    uint64_t length = 0, before = kNone;
    for (uint64_t s = head(); s != kNone; before = s, s = item(s).next) {
      if (s >= n || meta(s) == 0xFF) return "the list leaves the table";
      if (item(s).prev != before) return "prev is not the slot before";
      if (++length > size()) return "the list does not end";
    }
    if (before != tail()) return "tail is not the last of the list";
    if (length != size()) return "the list misses entries";
    return "";
  }

  const char* base_;
  HashFunction hash_;
};

}  // namespace map_layout

#endif  // TETHER_TESTS_MAP_LAYOUT_H_
