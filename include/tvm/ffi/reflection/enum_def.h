// SPDX-License-Identifier: Apache-2.0
// Registering the entries of an enum class.
//
//   TVM_FFI_STATIC_INIT_BLOCK() {
//     refl::ObjectDef<ColorObj>(refl::init(false));
//     refl::EnumDef<ColorObj>("red").set_attr("rgb", 0xff0000);
//     refl::EnumDef<ColorObj>("green").set_attr("rgb", 0x00ff00);
//   }
#ifndef TVM_FFI_REFLECTION_ENUM_DEF_H_
#define TVM_FFI_REFLECTION_ENUM_DEF_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/enum.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {
namespace tether {

inline EnumStateObj* FindOrMakeEnumState(int32_t type_index) {
  if (EnumStateObj* state = FindEnumState(type_index)) return state;
  RegisterAttr(type_index, reflection::type_attr::kEnumState,
               ObjectRef(MakeRegistered<EnumStateObj>()));
  return FindEnumState(type_index);
}

// Adds an entry to a type's enum state; nothing changes when one of the indices is taken.
inline void AddEnumEntry(EnumStateObj* state, int32_t type_index, const Enum& entry) {
  Any int_index(entry->_int_index), str_index(entry->_str_index);
  if (state->indexes.count(int_index) != 0 || state->indexes.count(str_index) != 0) {
    TVM_FFI_THROW(ValueError) << "Duplicate enum index for type `" << TypeIndexToTypeKey(type_index)
                              << "`";
  }
  state->entries.push_back(entry);
  state->indexes.Set(int_index, entry);
  state->indexes.Set(str_index, entry);
}

inline void SetEnumAttr(EnumStateObj* state, const Enum& entry, const char* name, Any value) {
  auto column = state->attrs.Get(name);
  if (column.has_value()) {
    (*column).Set(entry, value);
  } else {
    state->attrs.Set(name, Dict<ObjectRef, Any>{{entry, std::move(value)}});
  }
}

}  // namespace tether

namespace reflection {

// Registers one entry of the enum class Cls.
template <typename Cls>
class EnumDef {
 public:
  // The integer index is the number of entries so far.
  explicit EnumDef(const char* str_index) {
    static_assert(!std::is_base_of_v<IntEnumObj, Cls>, "entries of an IntEnum need their value");
    Init(static_cast<int64_t>(State()->entries.size()), str_index);
  }

  EnumDef(const char* str_index, int64_t int_index) {
    static_assert(std::is_base_of_v<IntEnumObj, Cls>, "only entries of an IntEnum take a value");
    Init(int_index, str_index);
  }

  // Whether Cls has an entry of exactly that name. Registers nothing.
  static bool IsDefined(const String& str_index) {
    const EnumStateObj* state = tether::FindEnumState(Cls::_GetOrAllocRuntimeTypeIndex());
    return state != nullptr && state->indexes.count(Any(str_index)) != 0;
  }

  // Attaches a value to the entry; a key converts it to its type.
  template <typename T, typename V>
  EnumDef& set_attr(AttrKey<T> key, V&& value) {
    tether::SetEnumAttr(State(), entry_, key.name, tether::ToAttrValue<T>(std::forward<V>(value)));
    return *this;
  }
  // Attaches a native hook: see native_function.h.
  template <auto fn, typename T>
  EnumDef& set_native_fn_attr(AttrKey<T> key) {
    tether::SetEnumAttr(State(), entry_, key.name, Any(T::template FromNative<fn>()));
    return *this;
  }
  template <typename T>
  EnumDef& set_attr(const char* name, T value) {
    tether::SetEnumAttr(State(), entry_, name, Any(std::move(value)));
    return *this;
  }

 private:
  static_assert(std::is_base_of_v<EnumObj, Cls>, "not an enum class");

  static EnumStateObj* State() {
    return tether::FindOrMakeEnumState(Cls::_GetOrAllocRuntimeTypeIndex());
  }

  void Init(int64_t int_index, const char* str_index) {
    ObjectPtr<Object> object;
    if constexpr (std::is_constructible_v<Cls, int64_t, String>) {
      object = tether::MakeRegistered<Cls>(int_index, String(str_index));
    } else {
      object = tether::MakeRegistered<Cls>();
      static_cast<Cls*>(object.get())->_int_index = int_index;
      static_cast<Cls*>(object.get())->_str_index = String(str_index);
    }
    entry_ = ffi::detail::ObjectUnsafe::ObjectRefFromObjectPtr<Enum>(std::move(object));
    tether::AddEnumEntry(State(), Cls::_GetOrAllocRuntimeTypeIndex(), entry_);
  }

  Enum entry_{UnsafeInit{}};
};

}  // namespace reflection
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_ENUM_DEF_H_
