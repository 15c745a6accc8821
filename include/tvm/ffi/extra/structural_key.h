// SPDX-License-Identifier: Apache-2.0
//
// A map key that compares by structure, with its hash computed once.
//
//   Map<StructuralKey, int> cache;
//   cache.Set(StructuralKey(Array<int>{1, 2}), 7);
//   cache[StructuralKey(Array<int>{1, 2})];        // 7, although the arrays are different objects
#ifndef TVM_FFI_EXTRA_STRUCTURAL_KEY_H_
#define TVM_FFI_EXTRA_STRUCTURAL_KEY_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/extra/structural_equal.h>
#include <tvm/ffi/extra/structural_hash.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace tvm {
namespace ffi {

/*! \brief A value and its structural hash. */
class StructuralKeyObj : public Object {
 public:
  Any key;
  int64_t hash_i64{0};

  StructuralKeyObj() = default;
  explicit StructuralKeyObj(Any key)
      : key(std::move(key)), hash_i64(static_cast<int64_t>(StructuralHash::Hash(this->key))) {}

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ffi.StructuralKey", StructuralKeyObj, Object);
};

static_assert(sizeof(StructuralKeyObj) == 48, "fixed by the ABI");

/*! \brief Reference to a StructuralKeyObj, never null. */
class StructuralKey : public ObjectRef {
 public:
  explicit StructuralKey(Any key) { data_ = make_object<StructuralKeyObj>(std::move(key)); }

  bool operator==(const StructuralKey& other) const {
    if (same_as(other)) return true;
    return get()->hash_i64 == other->hash_i64 && StructuralEqual::Equal(get()->key, other->key);
  }
  bool operator!=(const StructuralKey& other) const { return !(*this == other); }

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(StructuralKey, ObjectRef, StructuralKeyObj);
};

}  // namespace ffi
}  // namespace tvm

namespace std {
template <>
struct hash<::tvm::ffi::StructuralKey> {
  size_t operator()(const ::tvm::ffi::StructuralKey& key) const {
    return static_cast<size_t>(static_cast<uint64_t>(key->hash_i64));
  }
};
}  // namespace std

#endif  // TVM_FFI_EXTRA_STRUCTURAL_KEY_H_
