// SPDX-License-Identifier: Apache-2.0
// The objects behind Map and Dict: what is where in memory. Nothing here may change.
//
// A map is the object header followed by four words. Bit 63 of `slots_` tells which form it has:
//
//   small   at most 4 entries, side by side in insertion order, found by comparing
//   dense   a hash table of 2^k slots in blocks of 16: one metadata byte and one item per slot.
//           Items are linked in insertion order; a metadata byte says
//             0xFF            empty
//             0xFE            claimed, only while an entry is being moved
//             0jjjjjjj        first entry of a chain, in the home slot of all keys of that chain
//             1jjjjjjj        another entry of a chain
//           and j leads to the chain's next slot: (i + kProbe[j]) mod slots, j == 0 ends the chain.
//
// Any binary may read and, by the rules of Map and Dict, write these fields. Entries move as bytes.
#ifndef TVM_FFI_CONTAINER_MAP_LAYOUT_H_
#define TVM_FFI_CONTAINER_MAP_LAYOUT_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

// Non-zero: iterators notice that their map was changed. Changes layouts, for debugging only.
#ifndef TVM_FFI_DEBUG_WITH_ABI_CHANGE
#define TVM_FFI_DEBUG_WITH_ABI_CHANGE 0
#endif

namespace tvm {
namespace ffi {

namespace tether {
struct MapOps;
struct DenseTable;
}  // namespace tether

class MapBaseObj : public Object {
 public:
  using key_type = Any;
  using mapped_type = Any;
  using KVType = std::pair<Any, Any>;
  // The same bytes without ownership.
  struct KVRawStorageType {
    TVMFFIAny first;
    TVMFFIAny second;
  };
  static_assert(sizeof(KVType) == 32 && sizeof(KVRawStorageType) == 32, "one entry is two cells");
  static_assert(std::is_standard_layout_v<KVType>, "key first, then value");

  // Walks in insertion order. Owns nothing; a change of the map may invalidate it.
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using difference_type = int64_t;
    using value_type = KVType;
    using pointer = KVType*;
    using reference = KVType&;

    iterator() = default;
    bool operator==(const iterator& other) const {
      return index == other.index && self == other.self;
    }
    bool operator!=(const iterator& other) const { return !(*this == other); }
    pointer operator->() const;
    reference operator*() const { return *operator->(); }
    iterator& operator++();
    iterator& operator--();
    iterator operator++(int) {
      iterator copy = *this;
      ++*this;
      return copy;
    }
    iterator operator--(int) {
      iterator copy = *this;
      --*this;
      return copy;
    }

   private:
    friend class MapBaseObj;
    friend struct tether::MapOps;
#if TVM_FFI_DEBUG_WITH_ABI_CHANGE
    iterator(uint64_t index, const MapBaseObj* self)
        : state_marker(self->state_marker), index(index), self(self) {}
    void CheckState() const {
      if (state_marker != self->state_marker) {
        TVM_FFI_THROW(InternalError) << "Concurrent modification of the Map";
      }
    }
    uint64_t state_marker = 0;
#else
    iterator(uint64_t index, const MapBaseObj* self) : index(index), self(self) {}
    void CheckState() const {}
#endif
    uint64_t index = 0;
    const MapBaseObj* self = nullptr;
  };

  MapBaseObj(const MapBaseObj&) = delete;
  MapBaseObj& operator=(const MapBaseObj&) = delete;

  size_t size() const { return size_; }
  size_t count(const key_type& key) const;
  const mapped_type& at(const key_type& key) const;
  mapped_type& at(const key_type& key);
  iterator begin() const;
  iterator end() const;
  iterator find(const key_type& key) const;
  void erase(const iterator& position);
  void erase(const key_type& key);
  void clear();

 protected:
  MapBaseObj() noexcept {}

#if TVM_FFI_DEBUG_WITH_ABI_CHANGE
  uint64_t state_marker = 0;
#endif
  void* data_ = nullptr;
  uint64_t size_ = 0;
  uint64_t slots_ = 0;
  void (*data_deleter_)(void*) = nullptr;

 private:
  friend struct tether::MapOps;
  friend struct tether::DenseTable;
};

// A map allocated with room for its entries in the same block. A Dict may later switch to another
// storage, also to the dense form, whose three extra fields then are where the first entries were.
class SmallMapBaseObj : public MapBaseObj {
 public:
  SmallMapBaseObj() noexcept {}
  ~SmallMapBaseObj();
};

// A map allocated with the fields of the dense form.
class DenseMapBaseObj : public MapBaseObj {
 public:
  DenseMapBaseObj() noexcept {}
  ~DenseMapBaseObj();

 private:
  friend struct tether::DenseTable;

  uint32_t fib_shift_ = 63;
  uint64_t iter_list_head_ = ~uint64_t{0};
  uint64_t iter_list_tail_ = ~uint64_t{0};
};

#if !TVM_FFI_DEBUG_WITH_ABI_CHANGE
static_assert(sizeof(void*) != 8 || (sizeof(MapBaseObj) == 56 && sizeof(SmallMapBaseObj) == 56 &&
                                     sizeof(DenseMapBaseObj) == 80),
              "clients inline this layout");
static_assert(sizeof(MapBaseObj::iterator) == 16, "clients inline this layout");
#endif

// Maps are made by Map, Dict and the functions below, in one of the two forms.
template <>
inline ObjectPtr<MapBaseObj> make_object<MapBaseObj>() = delete;

namespace tether {

using MapEntry = MapBaseObj::KVType;

inline constexpr uint64_t kNoSlot = ~uint64_t{0};
inline constexpr uint64_t kSmallMapTag = uint64_t{1} << 63;
inline constexpr uint64_t kInitialSmallSlots = 2;
inline constexpr uint64_t kMaxSmallSlots = 4;
inline constexpr uint64_t kMinDenseSlots = 8;

// Entries never carry more than their bytes, so they can be moved without running any code.
TVM_FFI_INLINE void RelocateEntries(MapEntry* to, const MapEntry* from, uint64_t n) {
  std::memmove(static_cast<void*>(to), static_cast<const void*>(from), n * sizeof(MapEntry));
}

struct MapItem {
  MapEntry data;
  uint64_t prev;
  uint64_t next;
};

struct MapBlock {
  static constexpr uint64_t kSlots = 16;
  uint8_t meta[kSlots];
  alignas(MapItem) unsigned char items[kSlots * sizeof(MapItem)];
};
static_assert(sizeof(MapItem) == 48 && sizeof(MapBlock) == 784, "clients inline this layout");

inline void FreeMapBuffer(void* data) { ::operator delete(data); }

struct MapBufferDeleter {
  void operator()(void* data) const { FreeMapBuffer(data); }
};
using MapBuffer = std::unique_ptr<void, MapBufferDeleter>;

}  // namespace tether

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_MAP_LAYOUT_H_
