// SPDX-License-Identifier: Apache-2.0
// How references and pointers to objects go into an Any and come out again: their TypeTraits.
//
//   Any any = Point(1, 2);                         // MoveToAny
//   std::optional<Point> p = any.as<Point>();      // CheckAnyStrict, CopyFromAnyViewAfterCheck
#ifndef TVM_FFI_OBJECT_TRAITS_H_
#define TVM_FFI_OBJECT_TRAITS_H_

#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/object_ref.h>
#include <tvm/ffi/type_traits.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

template <typename T>
struct TypeToRuntimeTypeIndex<T, std::enable_if_t<std::is_base_of_v<ObjectRef, T>>> {
  static int32_t v() { return T::ContainerType::RuntimeTypeIndex(); }
};
template <typename O>
struct TypeToRuntimeTypeIndex<ObjectPtr<O>, std::enable_if_t<tether::is_unqualified_v<O>>> {
  static int32_t v() { return O::RuntimeTypeIndex(); }
};
template <typename O>
struct TypeToRuntimeTypeIndex<Arc<O>, std::enable_if_t<tether::is_unqualified_v<O>>> {
  static int32_t v() { return O::RuntimeTypeIndex(); }
};

template <typename B, typename D>
inline constexpr bool type_subsumes_v<ObjectPtr<B>, ObjectPtr<D>> = std::is_base_of_v<B, D>;
template <typename B, typename D>
inline constexpr bool type_subsumes_v<Arc<B>, Arc<D>> = std::is_base_of_v<B, D>;
template <typename B, typename D>
inline constexpr bool type_subsumes_v<ObjectPtr<B>, Arc<D>> = std::is_base_of_v<B, D>;

namespace tether {

TVM_FFI_INLINE void StoreObject(TVMFFIObject* obj, TVMFFIAny* result) {
  result->type_index = obj->type_index;
  result->zero_padding = 0;
  TVM_FFI_CLEAR_PTR_PADDING_IN_FFI_ANY(result);
  result->v_obj = obj;
}

// A copy of a cell, part by part as cells are stored. Loaded in one piece, a cell that was just
// stored would stall the processor; and compilers keep the parts in registers.
TVM_FFI_INLINE TVMFFIAny CopyCell(const TVMFFIAny& cell) {
  TVMFFIAny copy;
  copy.type_index = cell.type_index;
  copy.zero_padding = cell.zero_padding;
  copy.v_int64 = cell.v_int64;
  return copy;
}

TVM_FFI_INLINE void SwapCells(TVMFFIAny* a, TVMFFIAny* b) {
  TVMFFIAny old = CopyCell(*a);
  *a = CopyCell(*b);
  *b = CopyCell(old);
}

TVM_FFI_INLINE void StoreNone(TVMFFIAny* result) {
  result->type_index = TypeIndex::kTVMFFINone;
  result->zero_padding = 0;
  result->v_int64 = 0;
}

TVM_FFI_INLINE void StoreObjectOrNone(TVMFFIObject* obj, TVMFFIAny* result) {
  if (obj != nullptr) {
    StoreObject(obj, result);
  } else {
    StoreNone(result);
  }
}

template <typename O>
TVM_FFI_INLINE bool HoldsInstance(const TVMFFIAny* src) {
  return src->type_index >= TypeIndex::kTVMFFIStaticObjectBegin &&
         detail::IsObjectInstance<O>(src->type_index);
}

// Takes the object out of an owning cell, which becomes None. None gives null.
TVM_FFI_INLINE Object* TakeObject(TVMFFIAny* src) {
  if (src->type_index == TypeIndex::kTVMFFINone) return nullptr;
  auto* obj = reinterpret_cast<Object*>(src->v_obj);
  StoreNone(src);
  return obj;
}

TVM_FFI_INLINE TVMFFIObject* ObjectOrNull(const TVMFFIAny* src) {
  return src->type_index == TypeIndex::kTVMFFINone ? nullptr : src->v_obj;
}

}  // namespace tether

// Traits of references: instance check on the container type, None for null where nullable.
template <typename TObjRef>
struct ObjectRefTypeTraitsBase : public TypeTraitsBase {
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIObject;
  using ContainerType = typename TObjRef::ContainerType;
  // A container that was moved from is null too.
  static constexpr bool kMayBeNull =
      TObjRef::_type_is_nullable || !TObjRef::_type_container_is_exact;

  TVM_FFI_INLINE static void CopyToAnyView(const TObjRef& src, TVMFFIAny* result) {
    TVMFFIObject* obj = detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(src);
    if constexpr (kMayBeNull) {
      tether::StoreObjectOrNone(obj, result);
    } else {
      tether::StoreObject(obj, result);
    }
  }
  TVM_FFI_INLINE static void MoveToAny(TObjRef src, TVMFFIAny* result) {
    TVMFFIObject* obj = detail::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(std::move(src));
    if constexpr (kMayBeNull) {
      tether::StoreObjectOrNone(obj, result);
    } else {
      tether::StoreObject(obj, result);
    }
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    if constexpr (TObjRef::_type_is_nullable) {
      if (src->type_index == TypeIndex::kTVMFFINone) return true;
    }
    return tether::HoldsInstance<ContainerType>(src);
  }
  TVM_FFI_INLINE static TObjRef CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return detail::ObjectUnsafe::ObjectRefFromObjectPtr<TObjRef>(
        detail::ObjectUnsafe::ObjectPtrFromUnowned<Object>(tether::ObjectOrNull(src)));
  }
  TVM_FFI_INLINE static TObjRef MoveFromAnyAfterCheck(TVMFFIAny* src) {
    return detail::ObjectUnsafe::ObjectRefFromObjectPtr<TObjRef>(
        detail::ObjectUnsafe::ObjectPtrFromOwned<Object>(tether::TakeObject(src)));
  }
  TVM_FFI_INLINE static std::optional<TObjRef> TryCastFromAnyView(const TVMFFIAny* src) {
    // The check of the final traits, which may accept less than this one.
    if (TypeTraits<TObjRef>::CheckAnyStrict(src)) return CopyFromAnyViewAfterCheck(src);
    return std::nullopt;
  }
  static std::string TypeStr() { return ContainerType::_type_key; }
  static std::string TypeSchema() { return tether::Schema(ContainerType::_type_key); }
};

template <typename TObjRef>
struct TypeTraits<TObjRef, std::enable_if_t<std::is_base_of_v<ObjectRef, TObjRef> &&
                                            use_default_type_traits_v<TObjRef>>>
    : public ObjectRefTypeTraitsBase<TObjRef> {};

// A reference that other values convert into, through TypeTraits<Ref>::ConvertFallbackValue.
template <typename ObjectRefType, typename... FallbackTypes>
struct ObjectRefWithFallbackTraitsBase : public ObjectRefTypeTraitsBase<ObjectRefType> {
  static std::optional<ObjectRefType> TryCastFromAnyView(const TVMFFIAny* src) {
    if (auto ref = ObjectRefTypeTraitsBase<ObjectRefType>::TryCastFromAnyView(src)) return ref;
    return tether::TryFallbacks<ObjectRefType, FallbackTypes...>(src);
  }
};

namespace tether {

// Traits of ObjectPtr<O> and Arc<O>. Nothing here needs O complete until a member is used.
template <typename Ptr, typename O, bool kNullable>
struct OwningPtrTraits : public TypeTraitsBase {
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIObject;

  TVM_FFI_INLINE static void CopyToAnyView(const Ptr& src, TVMFFIAny* result) {
    StoreObjectOrNone(detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectPtr<O>(src), result);
  }
  TVM_FFI_INLINE static void MoveToAny(Ptr src, TVMFFIAny* result) {
    StoreObjectOrNone(detail::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr<O>(std::move(src)),
                      result);
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    if (kNullable && src->type_index == TypeIndex::kTVMFFINone) return true;
    return HoldsInstance<O>(src);
  }
  TVM_FFI_INLINE static Ptr CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return Wrap(detail::ObjectUnsafe::ObjectPtrFromUnowned<O>(ObjectOrNull(src)));
  }
  TVM_FFI_INLINE static Ptr MoveFromAnyAfterCheck(TVMFFIAny* src) {
    return Wrap(detail::ObjectUnsafe::ObjectPtrFromOwned<O>(TakeObject(src)));
  }
  TVM_FFI_INLINE static std::optional<Ptr> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return CopyFromAnyViewAfterCheck(src);
    return std::nullopt;
  }
  static std::string TypeStr() { return O::_type_key; }
  static std::string TypeSchema() {
    return kNullable ? Schema("Optional", {&SchemaOfObject}) : SchemaOfObject();
  }

 private:
  static std::string SchemaOfObject() { return Schema(O::_type_key); }
  TVM_FFI_INLINE static Ptr Wrap(ObjectPtr<O>&& ptr) {
    if constexpr (kNullable) {
      return std::move(ptr);
    } else {
      return detail::ObjectUnsafe::ArcFromObjectPtr<O>(std::move(ptr));
    }
  }
};

// Traits of O* and const O*: a borrowed view, a new reference when stored.
template <typename Ptr, typename O>
struct RawObjectPtrTraits : public TypeTraitsBase {
  TVM_FFI_INLINE static void CopyToAnyView(const Ptr& src, TVMFFIAny* result) {
    StoreObject(detail::ObjectUnsafe::GetHeader(src), result);
  }
  TVM_FFI_INLINE static void MoveToAny(Ptr src, TVMFFIAny* result) {
    CopyToAnyView(src, result);
    detail::ObjectUnsafe::IncRefObjectHandle(result->v_obj);
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) { return HoldsInstance<O>(src); }
  TVM_FFI_INLINE static Ptr CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    if constexpr (!std::is_const_v<std::remove_pointer_t<Ptr>>) {
      static_assert(O::_type_mutable, "TObject must be mutable to enable cast from Any");
    }
    return detail::ObjectUnsafe::RawObjectPtrFromUnowned<O>(src->v_obj);
  }
  TVM_FFI_INLINE static std::optional<Ptr> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return CopyFromAnyViewAfterCheck(src);
    return std::nullopt;
  }
  static std::string TypeStr() { return O::_type_key; }
  static std::string TypeSchema() { return Schema(O::_type_key); }
};

}  // namespace tether

template <typename O>
struct TypeTraits<ObjectPtr<O>,
                  std::enable_if_t<is_object_subclass_v<O> && tether::is_unqualified_v<O>>>
    : public tether::OwningPtrTraits<ObjectPtr<O>, O, true> {};

template <typename O>
struct TypeTraits<Arc<O>, std::enable_if_t<is_object_subclass_v<O> && tether::is_unqualified_v<O>>>
    : public tether::OwningPtrTraits<Arc<O>, O, false> {};

template <typename O>
struct TypeTraits<O*, std::enable_if_t<std::is_base_of_v<Object, O>>>
    : public tether::RawObjectPtrTraits<O*, std::remove_const_t<O>> {};

template <typename RefType>
bool ObjectRef::Is() const {
  if (data_ == nullptr) return RefType::_type_is_nullable;
  TVMFFIAny cell;
  tether::StoreObject(detail::ObjectUnsafe::GetHeader(data_.get()), &cell);
  return TypeTraits<RefType>::CheckAnyStrict(&cell);
}

template <typename RefType, typename>
std::optional<RefType> ObjectRef::as() const& {
  if (!Is<RefType>()) return std::nullopt;
  return detail::ObjectUnsafe::ObjectRefFromObjectPtr<RefType>(data_);
}

template <typename RefType, typename>
std::optional<RefType> ObjectRef::as() && {
  if (!Is<RefType>()) return std::nullopt;
  return detail::ObjectUnsafe::ObjectRefFromObjectPtr<RefType>(std::move(data_));
}

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_OBJECT_TRAITS_H_
