// SPDX-License-Identifier: Apache-2.0
// What Map and Dict share: the members of their objects, the typed iterator, and the rules by which
// values convert to either.
//
//   map_layout.h   the objects in memory          map_dense.h   the hash table of large maps
//   map_ops.h      find, set, erase, copy
#ifndef TVM_FFI_CONTAINER_MAP_BASE_H_
#define TVM_FFI_CONTAINER_MAP_BASE_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/container_detail.h>
#include <tvm/ffi/container/map_layout.h>
#include <tvm/ffi/container/map_ops.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/optional.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {

namespace tether {

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowKeyNotInMap() {
  TVM_FFI_THROW(KeyError) << "key is not in Map";
}

// A lookup key that stays valid while the map it is set in may be replaced: a reference to that map
// itself is the only kind of key that could be destroyed with it.
template <typename K>
using KeyForSet = std::conditional_t<std::is_base_of_v<ObjectRef, K>, Any, BorrowedKey<K>>;

TVM_FFI_INLINE const Any& GetKey(const Any& key) { return key; }
template <typename K>
TVM_FFI_INLINE const Any& GetKey(const BorrowedKey<K>& key) {
  return key.get();
}

// The iterator of Map<K, V> and Dict<K, V>: entries by value, converted on the fly.
template <typename K, typename V, template <typename> class Reader = ElementReader>
class MapIterator {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using difference_type = int64_t;
  using value_type = const std::pair<K, V>;
  using pointer = value_type*;
  using reference = value_type;

  MapIterator() = default;
  explicit MapIterator(const MapBaseObj::iterator& iter) : iter_(iter) {}

  bool operator==(const MapIterator& other) const { return iter_ == other.iter_; }
  bool operator!=(const MapIterator& other) const { return iter_ != other.iter_; }
  pointer operator->() const = delete;
  reference operator*() const {
    const MapEntry& entry = *iter_;
    return std::pair<K, V>(Reader<K>::convert(entry.first), Reader<V>::convert(entry.second));
  }
  MapIterator& operator++() {
    ++iter_;
    return *this;
  }
  MapIterator& operator--() {
    --iter_;
    return *this;
  }
  MapIterator operator++(int) { return MapIterator(iter_++); }
  MapIterator operator--(int) { return MapIterator(iter_--); }

 private:
  MapBaseObj::iterator iter_;
};

}  // namespace tether

inline SmallMapBaseObj::~SmallMapBaseObj() { tether::MapOps::Destroy(this); }
inline DenseMapBaseObj::~DenseMapBaseObj() { tether::MapOps::Destroy(this); }

inline MapBaseObj::iterator::pointer MapBaseObj::iterator::operator->() const {
  CheckState();
  return tether::MapOps::Entry(self, index);
}

inline MapBaseObj::iterator& MapBaseObj::iterator::operator++() {
  CheckState();
  index = tether::MapOps::NextIndex(self, index);
  return *this;
}

inline MapBaseObj::iterator& MapBaseObj::iterator::operator--() {
  CheckState();
  if (tether::MapOps::IsSmall(self)) {
    index = index == 0 ? self->size_ : index - 1;
  } else {
    index = index == tether::kNoSlot ? tether::DenseTable::Load(self).tail
                                     : tether::MapOps::DenseItem(self, index)->prev;
  }
  return *this;
}

inline MapBaseObj::iterator MapBaseObj::begin() const {
  return iterator(tether::MapOps::FirstIndex(this), this);
}
inline MapBaseObj::iterator MapBaseObj::end() const {
  return iterator(tether::MapOps::EndIndex(this), this);
}
inline MapBaseObj::iterator MapBaseObj::find(const key_type& key) const {
  return iterator(tether::MapOps::FindIndex(this, key), this);
}
inline size_t MapBaseObj::count(const key_type& key) const {
  return tether::MapOps::FindValue(this, key) != nullptr ? 1 : 0;
}
inline const MapBaseObj::mapped_type& MapBaseObj::at(const key_type& key) const {
  const Any* value = tether::MapOps::FindValue(this, key);
  if (TVM_FFI_PREDICT_FALSE(value == nullptr)) tether::ThrowKeyNotInMap();
  return *value;
}
inline MapBaseObj::mapped_type& MapBaseObj::at(const key_type& key) {
  Any* value = tether::MapOps::FindValue(this, key);
  if (TVM_FFI_PREDICT_FALSE(value == nullptr)) tether::ThrowKeyNotInMap();
  return *value;
}
inline void MapBaseObj::erase(const iterator& position) {
  // A small map goes by the index alone; the default iterator means entry 0 there.
  if (position.self == nullptr && !tether::MapOps::IsSmall(this)) return;
  tether::MapOps::EraseIndex(this, position.index);
}
inline void MapBaseObj::erase(const key_type& key) { tether::MapOps::EraseKey(this, key); }
inline void MapBaseObj::clear() { tether::MapOps::Clear(this); }

// Conversion rules common to Map<K, V> and Dict<K, V>. Derived names the two kinds that are
// accepted: the primary one is shared if all entries fit already, anything else is converted into a
// new map.
template <typename Derived, typename MapRef, typename K, typename V>
struct MapTypeTraitsBase : public ObjectRefTypeTraitsBase<MapRef> {
  using Base = ObjectRefTypeTraitsBase<MapRef>;

  static bool CheckAnyStrict(const TVMFFIAny* src) {
    if (src->type_index != Derived::kPrimaryTypeIndex) return false;
    if constexpr (!std::is_same_v<K, Any> || !std::is_same_v<V, Any>) {
      for (const auto& entry : *GetMap(src)) {
        if (!detail::AnyUnsafe::CheckAnyStrict<K>(entry.first)) return false;
        if (!detail::AnyUnsafe::CheckAnyStrict<V>(entry.second)) return false;
      }
    }
    return true;
  }

  static std::optional<MapRef> TryCastFromAnyView(const TVMFFIAny* src) {
    if (!IsMap(src)) return std::nullopt;
    if (CheckAnyStrict(src)) return Base::CopyFromAnyViewAfterCheck(src);
    MapRef result;
    // Conversions and Set are user code: not over a Dict that it may change, nor one that may die.
    const ObjectPtr<Object> source = Unchanging(GetMap(src));
    for (const auto& entry : *static_cast<const MapBaseObj*>(source.get())) {
      std::optional<K> key = entry.first.template try_cast<K>();
      if (!key.has_value()) return std::nullopt;
      std::optional<V> value = entry.second.template try_cast<V>();
      if (!value.has_value()) return std::nullopt;
      result.Set(*key, *value);
    }
    return result;
  }

  TVM_FFI_COLD_CODE static std::string GetMismatchTypeInfo(const TVMFFIAny* src) {
    if (!IsMap(src)) return TypeTraitsBase::GetMismatchTypeInfo(src);
    [[maybe_unused]] const std::string_view name = Derived::kTypeName;
    if constexpr (!std::is_same_v<K, Any> || !std::is_same_v<V, Any>) {
      const ObjectPtr<Object> source = Unchanging(GetMap(src));
      for (const auto& entry : *static_cast<const MapBaseObj*>(source.get())) {
        if (Mismatches<K>(entry.first)) {
          return tether::Concat({name, "[some key is ", MismatchInfo<K>(entry.first), ", V]"});
        }
        if (Mismatches<V>(entry.second)) {
          return tether::Concat({name, "[K, some value is ", MismatchInfo<V>(entry.second), "]"});
        }
      }
    }
    TVM_FFI_THROW(InternalError) << "Cannot reach here";
    TVM_FFI_UNREACHABLE();
  }

  static std::string TypeStr() { return detail::ContainerTypeStr<K, V>(Derived::kTypeName); }
  static std::string TypeSchema() {
    return tether::Schema(Derived::kStaticTypeKey,
                          {&detail::TypeSchema<K>::v, &detail::TypeSchema<V>::v});
  }

 private:
  static bool IsMap(const TVMFFIAny* src) {
    return src->type_index == Derived::kPrimaryTypeIndex ||
           src->type_index == Derived::kOtherTypeIndex;
  }
  static const MapBaseObj* GetMap(const TVMFFIAny* src) {
    return detail::ObjectUnsafe::RawObjectPtrFromUnowned<MapBaseObj>(src->v_obj);
  }
  // The map itself, held, or a copy of a Dict: user code can change neither.
  static ObjectPtr<Object> Unchanging(const MapBaseObj* map) {
    if (map->type_index() == TypeIndex::kTVMFFIDict) return tether::MapOps::Copy(map);
    return detail::ObjectUnsafe::ObjectPtrFromUnowned<Object>(const_cast<MapBaseObj*>(map));
  }
  template <typename T>
  static bool Mismatches(const Any& item) {
    if constexpr (std::is_same_v<T, Any>) {
      return false;
    } else {
      return !item.template try_cast<T>().has_value();
    }
  }
  template <typename T>
  static std::string MismatchInfo(const Any& item) {
    if constexpr (std::is_same_v<T, Any>) {
      return std::string();
    } else {
      return detail::AnyUnsafe::GetMismatchTypeInfo<T>(item);
    }
  }
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_MAP_BASE_H_
