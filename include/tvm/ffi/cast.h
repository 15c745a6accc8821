// SPDX-License-Identifier: Apache-2.0
// From a raw object pointer back to an owner.
//
//   Point p = GetRef<Point>(point_obj);
#ifndef TVM_FFI_CAST_H_
#define TVM_FFI_CAST_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/optional.h>

#include <type_traits>

namespace tvm {
namespace ffi {

// A null pointer gives a null reference where there is one, nullopt for an Optional.
template <typename RefType, typename ObjectType>
inline RefType GetRef(const ObjectType* ptr) {
  if constexpr (is_optional_type_v<RefType>) {
    static_assert(object_ref_contains_v<typename RefType::value_type, ObjectType>,
                  "Can only cast to the ref of same container type");
    if (ptr == nullptr) return RefType(std::nullopt);
    return RefType(GetRef<typename RefType::value_type>(ptr));
  } else {
    using ContainerType = typename RefType::ContainerType;
    static_assert(object_ref_contains_v<RefType, ObjectType>,
                  "Can only cast to the ref of same container type");
    if constexpr (!RefType::_type_is_nullable) TVM_FFI_ICHECK_NOTNULL(ptr);
    const ContainerType* container = ptr;
    return detail::ObjectUnsafe::ObjectRefFromObjectPtr<RefType>(
        detail::ObjectUnsafe::ObjectPtrFromUnowned<Object>(
            const_cast<Object*>(static_cast<const Object*>(container))));
  }
}

template <typename BaseType, typename ObjectType>
inline ObjectPtr<BaseType> GetObjectPtr(ObjectType* ptr) {
  static_assert(std::is_base_of_v<BaseType, ObjectType>,
                "Can only cast to the ref of same container type");
  return detail::ObjectUnsafe::ObjectPtrFromUnowned<BaseType>(static_cast<Object*>(ptr));
}

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CAST_H_
