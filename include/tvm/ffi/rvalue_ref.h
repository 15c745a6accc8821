// SPDX-License-Identifier: Apache-2.0
// RValueRef: an argument the callee may take over, so that the only reference moves to it.
//
//   Function append = Function::FromTyped([](RValueRef<Array<int>> a) {
//     Array<int> mine = *std::move(a);   // unique if the caller gave up its reference
//     mine.push_back(1);                 // so this does not copy
//     return mine;
//   });
//   append(RValueRef(std::move(array)));
#ifndef TVM_FFI_RVALUE_REF_H_
#define TVM_FFI_RVALUE_REF_H_

#include <tvm/ffi/object.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

template <typename TObjRef>
class RValueRef {
  static_assert(std::is_base_of_v<ObjectRef, TObjRef>, "RValueRef moves an ObjectRef");

 public:
  using ContainerType = typename TObjRef::ContainerType;

  explicit RValueRef(TObjRef&& data)
      : data_(detail::ObjectUnsafe::ObjectPtrFromObjectRef<ContainerType>(std::move(data))) {}
  TObjRef operator*() && {
    return detail::ObjectUnsafe::ObjectRefFromObjectPtr<TObjRef>(
        ObjectPtr<Object>(std::move(data_)));
  }

 private:
  template <typename, typename>
  friend struct TypeTraits;
  // The callee empties it through a view of a const argument.
  mutable ObjectPtr<ContainerType> data_;
};

static_assert(sizeof(RValueRef<ObjectRef>) == sizeof(void*),
              "its address is the address of a pointer");

template <typename TObjRef>
struct TypeTraits<RValueRef<TObjRef>> : public TypeTraitsBase {
  static constexpr bool storage_enabled = false;

  TVM_FFI_INLINE static void CopyToAnyView(const RValueRef<TObjRef>& src, TVMFFIAny* result) {
    result->type_index = TypeIndex::kTVMFFIObjectRValueRef;
    result->zero_padding = 0;
    TVM_FFI_CLEAR_PTR_PADDING_IN_FFI_ANY(result);
    result->v_ptr = &src.data_;
  }
  static std::optional<RValueRef<TObjRef>> TryCastFromAnyView(const TVMFFIAny* src) {
    if (src->type_index != TypeIndex::kTVMFFIObjectRValueRef) return Wrap(src);
    auto** slot = static_cast<TVMFFIObject**>(src->v_ptr);
    TVMFFIAny cell;
    tether::StoreObjectOrNone(*slot, &cell);
    if (!TypeTraits<TObjRef>::CheckAnyStrict(&cell)) return Wrap(&cell);
    *slot = nullptr;
    return RValueRef<TObjRef>(TypeTraits<TObjRef>::MoveFromAnyAfterCheck(&cell));
  }
  static std::string GetMismatchTypeInfo(const TVMFFIAny* src) {
    if (src->type_index != TypeIndex::kTVMFFIObjectRValueRef) {
      return TypeTraits<TObjRef>::GetMismatchTypeInfo(src);
    }
    TVMFFIAny cell;
    tether::StoreObjectOrNone(*static_cast<TVMFFIObject**>(src->v_ptr), &cell);
    return "RValueRef<" + TypeTraits<TObjRef>::GetMismatchTypeInfo(&cell) + ">";
  }
  static std::string TypeStr() { return "RValueRef<" + TypeTraits<TObjRef>::TypeStr() + ">"; }
  static std::string TypeSchema() {
    return tether::Schema("ObjectRValueRef", {&TypeTraits<TObjRef>::TypeSchema});
  }

 private:
  // A value that stays with the caller: converted, or a new reference.
  static std::optional<RValueRef<TObjRef>> Wrap(const TVMFFIAny* src) {
    if (auto ref = TypeTraits<TObjRef>::TryCastFromAnyView(src)) {
      return RValueRef<TObjRef>(*std::move(ref));
    }
    return std::nullopt;
  }
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_RVALUE_REF_H_
