// SPDX-License-Identifier: Apache-2.0
// Enums as objects: one shared instance per entry, looked up by integer or by name.
//
//   class ColorObj : public EnumObj { ... };           // registered with reflection::EnumDef
//   Enum red = EnumObj::_GetByStrIndex<ColorObj>("red");
//   red.same_as(EnumObj::_GetByIntIndex<ColorObj>(0));  // true
#ifndef TVM_FFI_ENUM_H_
#define TVM_FFI_ENUM_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/string.h>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

// All entries of one enum class; kept in its `__ffi_enum__` attribute.
class EnumStateObj : public Object {
 public:
  // In order of registration.
  List<ObjectRef> entries;
  // Both the integer and the string index of each entry.
  Dict<Any, ObjectRef> indexes;
  // Attribute name to entry to value.
  Dict<String, Dict<ObjectRef, Any>> attrs;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ffi.EnumState", EnumStateObj, Object);
};

class EnumState : public ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(EnumState, ObjectRef, EnumStateObj);
};

class Enum;

// Base of all enum classes.
class EnumObj : public Object {
 public:
  int64_t _int_index = 0;
  String _str_index;

  EnumObj() = default;
  EnumObj(int64_t int_index, String str_index)
      : _int_index(int_index), _str_index(std::move(str_index)) {}

  // The entry of Cls with that index; an unknown index is a ValueError.
  template <typename Cls>
  static Enum _GetByIntIndex(int64_t int_index);
  template <typename Cls>
  static Enum _GetByStrIndex(const String& str_index);
  static inline Enum _GetByIntIndex(int32_t type_index, int64_t int_index);
  static inline Enum _GetByStrIndex(int32_t type_index, const String& str_index);

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUniqueInstance;
  TVM_FFI_DECLARE_OBJECT_INFO("ffi.Enum", EnumObj, Object);
};

class Enum : public ObjectRef {
 public:
  explicit Enum(ObjectPtr<EnumObj> data) : ObjectRef(std::move(data)) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Enum, ObjectRef, EnumObj);

 protected:
  // For subclasses that are still declared nullable, as all enums were up to 0.1.14.
  Enum() = default;
};

// Base of enums whose value is their integer index.
class IntEnumObj : public EnumObj {
 public:
  using EnumObj::EnumObj;
  TVM_FFI_DECLARE_OBJECT_INFO("ffi.IntEnum", IntEnumObj, EnumObj);
};

class IntEnum : public Enum {
 public:
  explicit IntEnum(ObjectPtr<IntEnumObj> data) : Enum(std::move(data)) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(IntEnum, Enum, IntEnumObj);

 protected:
  IntEnum() = default;
};

// Base of enums whose value is their string index.
class StrEnumObj : public EnumObj {
 public:
  using EnumObj::EnumObj;
  TVM_FFI_DECLARE_OBJECT_INFO("ffi.StrEnum", StrEnumObj, EnumObj);
};

class StrEnum : public Enum {
 public:
  explicit StrEnum(ObjectPtr<StrEnumObj> data) : Enum(std::move(data)) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(StrEnum, Enum, StrEnumObj);

 protected:
  StrEnum() = default;
};

static_assert(sizeof(void*) != 8 || (sizeof(EnumStateObj) == 48 && sizeof(EnumObj) == 48 &&
                                     sizeof(IntEnumObj) == 48 && sizeof(StrEnumObj) == 48),
              "layouts are inlined in clients");

namespace tether {

template <typename Index>
[[noreturn]] TVM_FFI_COLD_CODE void ThrowNoEnumEntry(int32_t type_index, const Index& index) {
  TVM_FFI_THROW(ValueError) << "Enum `" << TypeIndexToTypeKey(type_index)
                            << "` has no instance with index " << index;
  TVM_FFI_UNREACHABLE();
}

// The state in the enum's column entry, nullptr when nothing is registered yet.
inline EnumStateObj* FindEnumState(int32_t type_index) {
  static reflection::TypeAttrColumn column(reflection::type_attr::kEnumState);
  AnyView entry = column[type_index];
  if (entry == nullptr) return nullptr;
  const EnumStateObj* state = entry.as<EnumStateObj>();
  if (state == nullptr) {
    TVM_FFI_THROW(TypeError) << "Expected `ffi.EnumState` in enum state column, but got `"
                             << entry.GetTypeKey() << "`";
  }
  return const_cast<EnumStateObj*>(state);
}

template <typename Index>
Enum FindEnumEntry(int32_t type_index, const Index& index) {
  if (const EnumStateObj* state = FindEnumState(type_index)) {
    auto it = state->indexes.find(Any(index));
    if (it != state->indexes.end()) {
      if (auto entry = Any((*it).second).template as<Enum>()) {
        return *std::move(entry);
      }
    }
  }
  ThrowNoEnumEntry(type_index, index);
}

}  // namespace tether

inline Enum EnumObj::_GetByIntIndex(int32_t type_index, int64_t int_index) {
  return tether::FindEnumEntry(type_index, int_index);
}

inline Enum EnumObj::_GetByStrIndex(int32_t type_index, const String& str_index) {
  return tether::FindEnumEntry(type_index, str_index);
}

template <typename Cls>
inline Enum EnumObj::_GetByIntIndex(int64_t int_index) {
  static_assert(std::is_base_of_v<EnumObj, Cls>, "not an enum class");
  return _GetByIntIndex(Cls::_GetOrAllocRuntimeTypeIndex(), int_index);
}

template <typename Cls>
inline Enum EnumObj::_GetByStrIndex(const String& str_index) {
  static_assert(std::is_base_of_v<EnumObj, Cls>, "not an enum class");
  return _GetByStrIndex(Cls::_GetOrAllocRuntimeTypeIndex(), str_index);
}

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_ENUM_H_
