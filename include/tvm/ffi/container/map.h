// SPDX-License-Identifier: Apache-2.0
// Map<K, V>: a map with value semantics that remembers insertion order. Handles share one object
// until one of them writes.
//
//   Map<String, int> a = {{"x", 1}, {"y", 2}};
//   Map<String, int> b = a;     // same object
//   b.Set("z", 3);              // b copies first; a still has two entries
//   for (const auto& [key, value] : b) use(key, value);
#ifndef TVM_FFI_CONTAINER_MAP_H_
#define TVM_FFI_CONTAINER_MAP_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/container_detail.h>
#include <tvm/ffi/container/map_base.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/optional.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace tvm {
namespace ffi {

class MapObj : public MapBaseObj {
 public:
  static constexpr bool _type_final = true;
  static constexpr int32_t _type_index = TypeIndex::kTVMFFIMap;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC(StaticTypeKey::kTVMFFIMap, MapObj, Object);

  // A new map with the same entries in the same order.
  static ObjectPtr<Object> ShallowCopy(const MapObj* map) { return tether::MapOps::Copy(map); }
};

static_assert(sizeof(MapObj) == sizeof(MapBaseObj), "the form decides what follows");

template <>
inline ObjectPtr<MapObj> make_object<MapObj>() {
  ObjectPtr<Object> map = tether::MapOps::MakeSmall(TypeIndex::kTVMFFIMap, 0);
  return detail::ObjectUnsafe::ObjectPtrFromOwned<MapObj>(
      detail::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(map)));
}

template <typename K, typename V,
          typename = typename std::enable_if_t<detail::storage_enabled_v<K> &&
                                               detail::storage_enabled_v<V>>>
class Map : public ObjectRef {
 public:
  using key_type = K;
  using mapped_type = V;
  using ContainerType = MapObj;
  using iterator = tether::MapIterator<K, V>;
  // Being a MapObj says nothing about the entries.
  static constexpr bool _type_container_is_exact = false;
  static constexpr bool _type_is_nullable = false;

  Map() : ObjectRef(tether::MapOps::MakeSmall(TypeIndex::kTVMFFIMap, 0)) {}
  explicit Map(UnsafeInit tag) : ObjectRef(tag) {}
  // Adopts a map whose entries the caller knows to fit; nothing is checked.
  explicit Map(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {
    TVM_FFI_ICHECK_NOTNULL(data_.get());
  }
  Map(const Map& other) = default;
  Map(Map&& other) noexcept = default;
  Map& operator=(const Map& other) = default;
  Map& operator=(Map&& other) noexcept = default;

  template <typename KU, typename VU,
            typename = std::enable_if_t<type_subsumes_v<K, KU> && type_subsumes_v<V, VU>>>
  Map(const Map<KU, VU>& other)  // NOLINT(*)
      : ObjectRef(detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(other)) {}
  template <typename KU, typename VU,
            typename = std::enable_if_t<type_subsumes_v<K, KU> && type_subsumes_v<V, VU>>>
  Map(Map<KU, VU>&& other)  // NOLINT(*)
      : ObjectRef(detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(other))) {}
  template <typename KU, typename VU,
            typename = std::enable_if_t<type_subsumes_v<K, KU> && type_subsumes_v<V, VU>>>
  Map& operator=(const Map<KU, VU>& other) {
    data_ = detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(other);
    return *this;
  }
  template <typename KU, typename VU,
            typename = std::enable_if_t<type_subsumes_v<K, KU> && type_subsumes_v<V, VU>>>
  Map& operator=(Map<KU, VU>&& other) {
    data_ = detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(other));
    return *this;
  }

  // Of equal keys the last value counts.
  template <typename IterType, typename = decltype(*std::declval<IterType&>())>
  Map(IterType begin, IterType end)
      : ObjectRef(tether::MapOps::MakeFromRange(TypeIndex::kTVMFFIMap, begin, end)) {}
  Map(std::initializer_list<std::pair<K, V>> init)  // NOLINT(*)
      : Map(init.begin(), init.end()) {}
  template <typename Hash, typename Equal>
  Map(const std::unordered_map<K, V, Hash, Equal>& init)  // NOLINT(*)
      : Map(init.begin(), init.end()) {}

  const V at(const K& key) const {
    const Any* value = FindValue(key);
    if (TVM_FFI_PREDICT_FALSE(value == nullptr)) tether::ThrowKeyNotInMap();
    return tether::ElementReader<V>::convert(*value);
  }
  const V operator[](const K& key) const { return at(key); }
  std::optional<V> Get(const K& key) const {
    const Any* value = FindValue(key);
    if (value == nullptr) return std::nullopt;
    return tether::ElementReader<V>::convert(*value);
  }
  size_t count(const K& key) const { return FindValue(key) != nullptr ? 1 : 0; }
  size_t size() const { return data_ == nullptr ? 0 : GetMapObj()->size(); }
  bool empty() const { return size() == 0; }

  // Not on a null handle.
  iterator begin() const { return iterator(GetMapObj()->begin()); }
  iterator end() const { return iterator(GetMapObj()->end()); }
  iterator find(const K& key) const {
    return iterator(GetMapObj()->find(tether::BorrowedKey<K>(key).get()));
  }

  // Key and value are taken before the map is made writable: setting a map in itself then stores
  // the old map instead of a cycle.
  void Set(const K& key, const V& value) {
    Any cell(value);
    const tether::KeyForSet<K> held(key);
    CopyOnWrite();
    tether::MapOps::SetReplacing(&data_, tether::GetKey(held), std::move(cell));
  }
  void erase(const K& key) { CopyOnWrite()->erase(tether::BorrowedKey<K>(key).get()); }
  void clear() {
    if (data_ != nullptr) data_ = tether::MapOps::MakeSmall(TypeIndex::kTVMFFIMap, 0);
  }

  MapObj* CopyOnWrite() {
    if (TVM_FFI_PREDICT_FALSE(!data_.unique())) {
      data_ = data_ == nullptr ? tether::MapOps::MakeSmall(TypeIndex::kTVMFFIMap, 0)
                               : tether::MapOps::Copy(GetMapObj());
    }
    return GetMapObj();
  }

 private:
  MapObj* GetMapObj() const { return static_cast<MapObj*>(data_.get()); }

  TVM_FFI_INLINE const Any* FindValue(const K& key) const {
    if (TVM_FFI_PREDICT_FALSE(data_ == nullptr)) return nullptr;
    return tether::MapOps::FindValue(GetMapObj(), tether::BorrowedKey<K>(key).get());
  }
};

template <typename K, typename V,
          typename = typename std::enable_if_t<detail::storage_enabled_v<K> &&
                                               detail::storage_enabled_v<V>>>
inline Map<K, V> Merge(Map<K, V> lhs, const Map<K, V>& rhs) {
  // A second handle: rhs may be the object that lhs is about to write to.
  const Map<K, V> added = rhs;
  if (!added.defined()) return lhs;
  for (const auto& entry : added) lhs.Set(entry.first, entry.second);
  return lhs;
}

template <typename K, typename V>
inline constexpr bool use_default_type_traits_v<Map<K, V>> = false;

template <typename K, typename V>
struct TypeTraits<Map<K, V>> : public MapTypeTraitsBase<TypeTraits<Map<K, V>>, Map<K, V>, K, V> {
  static constexpr int32_t kPrimaryTypeIndex = TypeIndex::kTVMFFIMap;
  static constexpr int32_t kOtherTypeIndex = TypeIndex::kTVMFFIDict;
  static constexpr const char* kTypeName = "Map";
  static constexpr const char* kStaticTypeKey = StaticTypeKey::kTVMFFIMap;
};

template <typename K, typename V, typename KU, typename VU>
inline constexpr bool type_subsumes_v<Map<K, V>, Map<KU, VU>> =
    type_subsumes_v<K, KU>&& type_subsumes_v<V, VU>;

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_MAP_H_
