// SPDX-License-Identifier: Apache-2.0
// Dict<K, V>: a shared map that remembers insertion order. Every handle sees every change.
//
//   Dict<String, int> a = {{"x", 1}};
//   Dict<String, int> b = a;
//   b.Set("y", 2);              // a.size() is 2 as well
#ifndef TVM_FFI_CONTAINER_DICT_H_
#define TVM_FFI_CONTAINER_DICT_H_

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

class DictObj : public MapBaseObj {
 public:
  static constexpr bool _type_final = true;
  static constexpr int32_t _type_index = TypeIndex::kTVMFFIDict;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC(StaticTypeKey::kTVMFFIDict, DictObj, Object);

  // A new dict with the same entries in the same order.
  static ObjectPtr<Object> ShallowCopy(const DictObj* dict) { return tether::MapOps::Copy(dict); }
};

static_assert(sizeof(DictObj) == sizeof(MapBaseObj), "the form decides what follows");

template <>
inline ObjectPtr<DictObj> make_object<DictObj>() {
  ObjectPtr<Object> dict = tether::MapOps::MakeSmall(TypeIndex::kTVMFFIDict, 0);
  return detail::ObjectUnsafe::ObjectPtrFromOwned<DictObj>(
      detail::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(dict)));
}

template <typename K, typename V,
          typename = typename std::enable_if_t<detail::storage_enabled_v<K> &&
                                               detail::storage_enabled_v<V>>>
class Dict : public ObjectRef {
 public:
  using key_type = K;
  using mapped_type = V;
  using ContainerType = DictObj;
  using iterator = tether::MapIterator<K, V, tether::SharedElement>;
  static constexpr bool _type_container_is_exact = false;
  static constexpr bool _type_is_nullable = false;

  Dict() : ObjectRef(tether::MapOps::MakeSmall(TypeIndex::kTVMFFIDict, 0)) {}
  explicit Dict(UnsafeInit tag) : ObjectRef(tag) {}
  // Adopts a dict whose entries the caller knows to fit; nothing is checked.
  explicit Dict(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {
    TVM_FFI_ICHECK_NOTNULL(data_.get());
  }
  Dict(const Dict& other) = default;
  Dict(Dict&& other) noexcept = default;
  Dict& operator=(const Dict& other) = default;
  Dict& operator=(Dict&& other) noexcept = default;

  // The handles share one dict: what is set through the wider one must still fit the other.
  template <typename KU, typename VU,
            typename = std::enable_if_t<type_subsumes_v<K, KU> && type_subsumes_v<V, VU>>>
  Dict(const Dict<KU, VU>& other)  // NOLINT(*)
      : ObjectRef(detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(other)) {}
  template <typename KU, typename VU,
            typename = std::enable_if_t<type_subsumes_v<K, KU> && type_subsumes_v<V, VU>>>
  Dict(Dict<KU, VU>&& other)  // NOLINT(*)
      : ObjectRef(detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(other))) {}
  template <typename KU, typename VU,
            typename = std::enable_if_t<type_subsumes_v<K, KU> && type_subsumes_v<V, VU>>>
  Dict& operator=(const Dict<KU, VU>& other) {
    data_ = detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(other);
    return *this;
  }
  template <typename KU, typename VU,
            typename = std::enable_if_t<type_subsumes_v<K, KU> && type_subsumes_v<V, VU>>>
  Dict& operator=(Dict<KU, VU>&& other) {
    data_ = detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(other));
    return *this;
  }

  template <typename IterType, typename = decltype(*std::declval<IterType&>())>
  Dict(IterType begin, IterType end)
      : ObjectRef(tether::MapOps::MakeFromRange(TypeIndex::kTVMFFIDict, begin, end)) {}
  Dict(std::initializer_list<std::pair<K, V>> init)  // NOLINT(*)
      : Dict(init.begin(), init.end()) {}
  template <typename Hash, typename Equal>
  Dict(const std::unordered_map<K, V, Hash, Equal>& init)  // NOLINT(*)
      : Dict(init.begin(), init.end()) {}

  V at(const K& key) const {
    const Any* value = FindValue(key);
    if (TVM_FFI_PREDICT_FALSE(value == nullptr)) tether::ThrowKeyNotInMap();
    return tether::SharedElementReader<V>::convert(*value);
  }
  V operator[](const K& key) const { return at(key); }
  std::optional<V> Get(const K& key) const {
    const Any* value = FindValue(key);
    if (value == nullptr) return std::nullopt;
    return tether::SharedElementReader<V>::convert(*value);
  }
  size_t count(const K& key) const { return FindValue(key) != nullptr ? 1 : 0; }
  size_t size() const { return data_ == nullptr ? 0 : GetDictObj()->size(); }
  bool empty() const { return size() == 0; }

  // Not on a null handle.
  iterator begin() const { return iterator(GetDictObj()->begin()); }
  iterator end() const { return iterator(GetDictObj()->end()); }
  iterator find(const K& key) const {
    return iterator(GetDictObj()->find(tether::BorrowedKey<K>(key).get()));
  }

  // The object stays where it is, also when its storage has to grow.
  void Set(const K& key, const V& value) {
    if (TVM_FFI_PREDICT_FALSE(data_ == nullptr)) {
      data_ = tether::MapOps::MakeSmall(TypeIndex::kTVMFFIDict, 0);
    }
    Any cell(value);
    tether::MapOps::SetInPlace(GetDictObj(), tether::BorrowedKey<K>(key).get(), std::move(cell));
  }
  void erase(const K& key) {
    if (data_ != nullptr) GetDictObj()->erase(tether::BorrowedKey<K>(key).get());
  }
  // Keeps the storage.
  void clear() {
    if (data_ != nullptr) GetDictObj()->clear();
  }

 private:
  DictObj* GetDictObj() const { return static_cast<DictObj*>(data_.get()); }

  TVM_FFI_INLINE const Any* FindValue(const K& key) const {
    if (TVM_FFI_PREDICT_FALSE(data_ == nullptr)) return nullptr;
    return tether::MapOps::FindValue(GetDictObj(), tether::BorrowedKey<K>(key).get());
  }
};

template <typename K, typename V>
inline constexpr bool use_default_type_traits_v<Dict<K, V>> = false;

template <typename K, typename V>
struct TypeTraits<Dict<K, V>> : public MapTypeTraitsBase<TypeTraits<Dict<K, V>>, Dict<K, V>, K, V> {
  static constexpr int32_t kPrimaryTypeIndex = TypeIndex::kTVMFFIDict;
  static constexpr int32_t kOtherTypeIndex = TypeIndex::kTVMFFIMap;
  static constexpr const char* kTypeName = "Dict";
  static constexpr const char* kStaticTypeKey = StaticTypeKey::kTVMFFIDict;
};

template <typename K, typename V, typename KU, typename VU>
inline constexpr bool type_subsumes_v<Dict<K, V>, Dict<KU, VU>> =
    type_subsumes_v<K, KU>&& type_subsumes_v<V, VU>;

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_DICT_H_
