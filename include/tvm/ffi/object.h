// SPDX-License-Identifier: Apache-2.0
// Objects, their reference counts, and the pointers and references that own them.
//
//   class PointObj : public Object {
//    public:
//     int64_t x, y;
//     PointObj(int64_t x, int64_t y) : x(x), y(y) {}
//     TVM_FFI_DECLARE_OBJECT_INFO_FINAL("demo.Point", PointObj, Object);
//   };
//   class Point : public ObjectRef {
//    public:
//     Point(int64_t x, int64_t y) { data_ = make_object<PointObj>(x, y); }
//     TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Point, ObjectRef, PointObj);
//   };
//   Point p(1, 2);        // p->x == 1, p.use_count() == 1
//
// A handle is always the address of the Object base. That need not be the start of the block: a
// class may have a vtable or other bases in front, so go from Object* to T* by static_cast only.
//
// This header brings all of it: counts (ref_count.h), pointers (object_ptr.h), references
// (object_ref.h) and their way into an Any (object_traits.h). Below are the macros that declare
// classes.
#ifndef TVM_FFI_OBJECT_H_
#define TVM_FFI_OBJECT_H_

#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/object_ptr.h>
#include <tvm/ffi/object_ref.h>
#include <tvm/ffi/object_traits.h>
#include <tvm/ffi/type_traits.h>

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

namespace tether {

// The one registration behind the declaration macros below.
template <typename Class, typename Parent>
int32_t RegisterClass(int32_t static_type_index) {
  static_assert(!Parent::_type_final, "ParentType marked as final");
  static_assert(static_cast<int64_t>(Class::_type_child_slots) == 0 ||
                    static_cast<int64_t>(Parent::_type_child_slots) == 0 ||
                    static_cast<int64_t>(Class::_type_child_slots) <
                        static_cast<int64_t>(Parent::_type_child_slots),
                "Need to set _type_child_slots when parent specifies it.");
  static_assert(!Parent::_type_s_eq_hash_subclass_kind_fixed ||
                    Class::_type_s_eq_hash_kind == Parent::_type_s_eq_hash_kind,
                "the parent fixes _type_s_eq_hash_kind for its subclasses");
  TVMFFIByteArray key{Class::_type_key, std::char_traits<char>::length(Class::_type_key)};
  return TVMFFITypeGetOrAllocIndex(
      &key, static_type_index, Class::_type_depth, static_cast<int32_t>(Class::_type_child_slots),
      Class::_type_child_slots_can_overflow, Parent::_GetOrAllocRuntimeTypeIndex());
}

}  // namespace tether

// For a class that defines `static constexpr int32_t _type_index` itself.
#define TVM_FFI_DECLARE_OBJECT_INFO_STATIC(TypeKey, TypeName, ParentType)               \
  static constexpr int32_t _type_depth = ParentType::_type_depth + 1;                   \
  static int32_t _GetOrAllocRuntimeTypeIndex() {                                        \
    [[maybe_unused]] static int32_t tindex =                                            \
        ::tvm::ffi::tether::RegisterClass<TypeName, ParentType>(TypeName::_type_index); \
    return TypeName::_type_index;                                                       \
  }                                                                                     \
  static int32_t RuntimeTypeIndex() noexcept { return TypeName::_type_index; }          \
  static constexpr const char* _type_key = TypeKey

// For a class that defines `_type_key` itself; the index is allocated when the library is loaded.
// _type_index is still 0 in a static-init block that runs before it is initialised: then ask the
// table.
#define TVM_FFI_DECLARE_OBJECT_INFO_PREDEFINED_TYPE_KEY(TypeName, ParentType)            \
  static constexpr int32_t _type_depth = ParentType::_type_depth + 1;                    \
  static int32_t _GetOrAllocRuntimeTypeIndex() {                                         \
    static int32_t tindex = ::tvm::ffi::tether::RegisterClass<TypeName, ParentType>(-1); \
    return tindex;                                                                       \
  }                                                                                      \
  static int32_t RuntimeTypeIndex() noexcept {                                           \
    int32_t known = TypeName::_type_index;                                               \
    return TVM_FFI_PREDICT_TRUE(known != 0) ? known : _GetOrAllocRuntimeTypeIndex();     \
  }                                                                                      \
  static inline const int32_t _type_index = _GetOrAllocRuntimeTypeIndex()

#define TVM_FFI_DECLARE_OBJECT_INFO(TypeKey, TypeName, ParentType) \
  static constexpr const char* _type_key = TypeKey;                \
  TVM_FFI_DECLARE_OBJECT_INFO_PREDEFINED_TYPE_KEY(TypeName, ParentType)

#define TVM_FFI_DECLARE_OBJECT_INFO_FINAL(TypeKey, TypeName, ParentType) \
  [[maybe_unused]] static constexpr int _type_child_slots = 0;           \
  [[maybe_unused]] static constexpr bool _type_final = true;             \
  TVM_FFI_DECLARE_OBJECT_INFO(TypeKey, TypeName, ParentType)

#define TVM_FFI_OBJECT_REF_COMMON_(TypeName, ParentType, ObjectName, Nullable)             \
  explicit TypeName(::tvm::ffi::UnsafeInit tag) : ParentType(tag) {}                       \
  TVM_FFI_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(TypeName);                                   \
  using TVMFFIPointee_ =                                                                   \
      std::conditional_t<ObjectName::_type_mutable, ObjectName, const ObjectName>;         \
  TVMFFIPointee_* operator->() const { return static_cast<TVMFFIPointee_*>(data_.get()); } \
  TVMFFIPointee_* get() const { return operator->(); }                                     \
  [[maybe_unused]] static constexpr bool _type_is_nullable = Nullable;                     \
  using ContainerType = ObjectName

#define TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TypeName, ParentType, ObjectName)   \
  TypeName() = default;                                                                \
  explicit TypeName(::tvm::ffi::ObjectPtr<ObjectName> n) : ParentType(std::move(n)) {} \
  TVM_FFI_OBJECT_REF_COMMON_(TypeName, ParentType, ObjectName, true)

#define TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(TypeName, ParentType, ObjectName) \
  TVM_FFI_OBJECT_REF_COMMON_(TypeName, ParentType, ObjectName, false)

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_OBJECT_H_
