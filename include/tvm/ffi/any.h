// SPDX-License-Identifier: Apache-2.0
// Any holds any value and owns it; AnyView borrows one.
//
//   Any a = 1;                                // int
//   a = String("hello");                      // now a string
//   a.as<int>();                              // nullopt: as() never converts
//   Any(1).cast<double>();                    // 1.0: cast() converts or throws TypeError
//   if (const PointObj* p = a.as<PointObj>()) use(p->x);
#ifndef TVM_FFI_ANY_H_
#define TVM_FFI_ANY_H_

#include <tvm/ffi/c_api.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/string.h>
#include <tvm/ffi/type_traits.h>

#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

class Any;
class AnyView;

namespace detail {
struct AnyUnsafe;

// TypeStr of T, with names for the types that have no traits.
template <typename T>
struct Type2Str {
  static std::string v() { return TypeTraitsNoCR<T>::TypeStr(); }
};
template <>
struct Type2Str<Any> {
  static std::string v() { return "Any"; }
};
template <>
struct Type2Str<const Any&> : public Type2Str<Any> {};
template <>
struct Type2Str<Any&&> : public Type2Str<Any> {};
template <>
struct Type2Str<AnyView> {
  static std::string v() { return "AnyView"; }
};
template <>
struct Type2Str<const AnyView&> : public Type2Str<AnyView> {};
template <>
struct Type2Str<AnyView&&> : public Type2Str<AnyView> {};
template <>
struct Type2Str<void> {
  static std::string v() { return "void"; }
};

}  // namespace detail

namespace tether {

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowCannotConvert(
    const std::string& actual, const std::string& target) {
  TVM_FFI_THROW(TypeError) << "Cannot convert from type `" << actual << "` to `" << target << "`";
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowCannotTreat(
    const std::string& actual, const std::string& target) {
  TVM_FFI_THROW(TypeError) << "Cannot treat type `" << actual << "` as type `" << target << "`";
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowOutOfRange(
    const std::string& text) {
  TVM_FFI_THROW(OverflowError) << "Integer value " << text;
  TVM_FFI_UNREACHABLE();
}

template <typename T>
[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE void ThrowBadCast(const TVMFFIAny* src) {
  if constexpr (is_narrow_integer_v<T>) {
    if (IsIntOrBool(src)) ThrowOutOfRange(OutOfRangeText<T>(src->v_int64));
  }
  ThrowCannotConvert(TypeTraits<T>::GetMismatchTypeInfo(src), TypeTraits<T>::TypeStr());
}

template <typename T>
[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE void ThrowBadAs(const TVMFFIAny* src) {
  ThrowCannotTreat(TypeTraits<T>::GetMismatchTypeInfo(src), TypeTraits<T>::TypeStr());
}

template <typename T>
inline constexpr bool convertible_v = TypeTraits<T>::convert_enabled;
template <typename T>
inline constexpr bool storable_or_any_v = TypeTraits<T>::storage_enabled || std::is_same_v<T, Any>;
template <typename T>
inline constexpr bool convertible_or_any_v = convertible_v<T> || std::is_same_v<T, Any>;

}  // namespace tether

// A borrowed value, which must outlive the view. Passed by value, in registers.
class AnyView {
 public:
  AnyView() { tether::StoreNone(&data_); }
  template <typename T, typename = std::enable_if_t<TypeTraits<T>::convert_enabled>>
  AnyView(const T& other) {  // NOLINT(*)
    TypeTraits<T>::CopyToAnyView(other, &data_);
  }
  template <typename T, typename = std::enable_if_t<TypeTraits<T>::convert_enabled>>
  TVM_FFI_INLINE AnyView& operator=(const T& other) {
    TypeTraits<T>::CopyToAnyView(other, &data_);
    return *this;
  }

  void reset() { tether::StoreNone(&data_); }
  void swap(AnyView& other) noexcept { std::swap(data_, other.data_); }
  int32_t type_index() const noexcept { return data_.type_index; }
  std::string GetTypeKey() const { return TypeIndexToTypeKey(data_.type_index); }
  bool operator==(std::nullptr_t) const noexcept {
    return data_.type_index == TypeIndex::kTVMFFINone;
  }
  bool operator!=(std::nullptr_t) const noexcept {
    return data_.type_index != TypeIndex::kTVMFFINone;
  }
  TVMFFIAny CopyToTVMFFIAny() const { return tether::CopyCell(data_); }
  static AnyView CopyFromTVMFFIAny(TVMFFIAny data) {
    AnyView view;
    view.data_ = tether::CopyCell(data);
    return view;
  }

  bool same_as(const AnyView& other) const noexcept {
    return data_.type_index == other.data_.type_index &&
           data_.zero_padding == other.data_.zero_padding && data_.v_int64 == other.data_.v_int64;
  }

  // Without conversion.
  template <typename T, typename = std::enable_if_t<tether::convertible_v<T>>>
  TVM_FFI_INLINE std::optional<T> as() const {
    if (TypeTraits<T>::CheckAnyStrict(&data_))
      return TypeTraits<T>::CopyFromAnyViewAfterCheck(&data_);
    return std::nullopt;
  }
  template <typename T, typename = std::enable_if_t<std::is_base_of_v<Object, T>>>
  TVM_FFI_INLINE const T* as() const {
    if (!tether::HoldsInstance<T>(&data_)) return nullptr;
    return detail::ObjectUnsafe::RawObjectPtrFromUnowned<T>(data_.v_obj);
  }
  // as<T>() or a TypeError.
  template <typename T, typename = std::enable_if_t<tether::convertible_or_any_v<T>>>
  TVM_FFI_INLINE T as_or_throw() const;
  // With conversion.
  template <typename T, typename = std::enable_if_t<tether::convertible_v<T>>>
  TVM_FFI_INLINE std::optional<T> try_cast() const {
    return TypeTraits<T>::TryCastFromAnyView(&data_);
  }
  template <typename T, typename = std::enable_if_t<tether::convertible_v<T>>>
  TVM_FFI_INLINE T cast() const {
    std::optional<T> value = TypeTraits<T>::TryCastFromAnyView(&data_);
    if (TVM_FFI_PREDICT_FALSE(!value.has_value())) tether::ThrowBadCast<T>(&data_);
    return *std::move(value);
  }

 private:
  friend class Any;
  friend struct detail::AnyUnsafe;
  TVMFFIAny data_;
};

static_assert(sizeof(AnyView) == sizeof(TVMFFIAny));
static_assert(std::is_trivially_copyable_v<AnyView> && std::is_standard_layout_v<AnyView>,
              "views travel in registers like the C struct");

namespace tether {

// The kinds of view that do not own by being copied.
TVM_FFI_NO_INLINE inline void PromoteBorrowed(TVMFFIAny* data) {
  switch (data->type_index) {
    case TypeIndex::kTVMFFIRawStr:
      TypeTraits<String>::MoveToAny(String(data->v_c_str), data);
      break;
    case TypeIndex::kTVMFFIByteArrayPtr:
      TypeTraits<Bytes>::MoveToAny(Bytes(*static_cast<TVMFFIByteArray*>(data->v_ptr)), data);
      break;
    case TypeIndex::kTVMFFIObjectRValueRef: {
      auto** obj_addr = static_cast<TVMFFIObject**>(data->v_ptr);
      TVM_FFI_ICHECK(obj_addr[0] != nullptr) << "RValueRef already moved";
      StoreObject(std::exchange(obj_addr[0], nullptr), data);
      break;
    }
  }
}

}  // namespace tether

namespace detail {

// Turns a copy of a view into an owned value in place.
TVM_FFI_INLINE void InplaceConvertAnyViewToAny(TVMFFIAny* data) {
  if (data->type_index >= TypeIndex::kTVMFFIStaticObjectBegin) {
    ObjectUnsafe::IncRefObjectHandle(data->v_obj);
  } else if (TVM_FFI_PREDICT_FALSE(data->type_index >= TypeIndex::kTVMFFIRawStr)) {
    tether::PromoteBorrowed(data);
  }
}

}  // namespace detail

// An owned value.
class Any {
 public:
  Any() { tether::StoreNone(&data_); }
  ~Any() { Release(); }
  Any(const Any& other) : data_(tether::CopyCell(other.data_)) {
    if (data_.type_index >= TypeIndex::kTVMFFIStaticObjectBegin) {
      detail::ObjectUnsafe::IncRefObjectHandle(data_.v_obj);
    }
  }
  Any(Any&& other) noexcept : data_(tether::CopyCell(other.data_)) {
    tether::StoreNone(&other.data_);
  }
  Any(const AnyView& other) : data_(tether::CopyCell(other.data_)) {  // NOLINT(*)
    detail::InplaceConvertAnyViewToAny(&data_);
  }
  template <typename T, typename = std::enable_if_t<TypeTraits<T>::convert_enabled>>
  Any(T other) {  // NOLINT(*)
    TypeTraits<T>::MoveToAny(std::move(other), &data_);
  }

  TVM_FFI_INLINE Any& operator=(const Any& other) {
    Any(other).swap(*this);
    return *this;
  }
  TVM_FFI_INLINE Any& operator=(Any&& other) noexcept {
    Any(std::move(other)).swap(*this);
    return *this;
  }
  TVM_FFI_INLINE Any& operator=(const AnyView& other) {
    Any(other).swap(*this);
    return *this;
  }
  template <typename T, typename = std::enable_if_t<TypeTraits<T>::convert_enabled>>
  TVM_FFI_INLINE Any& operator=(T other) {
    if constexpr (std::is_arithmetic_v<T>) {
      // Written in its final place: moving a value just stored in parts stalls the processor.
      AnyView view = other;
      TVMFFIAny old = tether::CopyCell(data_);
      data_ = tether::CopyCell(view.data_);
      if (old.type_index >= TypeIndex::kTVMFFIStaticObjectBegin) {
        detail::ObjectUnsafe::DecRefObjectHandle(old.v_obj);
      }
    } else {
      Any(std::move(other)).swap(*this);
    }
    return *this;
  }

  TVM_FFI_INLINE void reset() { Any().swap(*this); }
  TVM_FFI_INLINE void swap(Any& other) noexcept { tether::SwapCells(&data_, &other.data_); }
  TVM_FFI_INLINE operator AnyView() const {
    return AnyView::CopyFromTVMFFIAny(data_);
  }  // NOLINT(*)
  int32_t type_index() const noexcept { return data_.type_index; }
  std::string GetTypeKey() const { return TypeIndexToTypeKey(data_.type_index); }
  bool operator==(std::nullptr_t) const noexcept {
    return data_.type_index == TypeIndex::kTVMFFINone;
  }
  bool operator!=(std::nullptr_t) const noexcept {
    return data_.type_index != TypeIndex::kTVMFFINone;
  }
  bool same_as(const Any& other) const noexcept {
    return data_.type_index == other.data_.type_index &&
           data_.zero_padding == other.data_.zero_padding && data_.v_int64 == other.data_.v_int64;
  }
  bool same_as(const ObjectRef& other) const noexcept {
    TVMFFIObject* obj = detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(other);
    if (obj == nullptr) return data_.type_index == TypeIndex::kTVMFFINone;
    return data_.type_index >= TypeIndex::kTVMFFIStaticObjectBegin && data_.v_obj == obj;
  }

  // Without conversion. The && form moves the value out, on success only.
  template <typename T, typename = std::enable_if_t<tether::storable_or_any_v<T>>>
  TVM_FFI_INLINE std::optional<T> as() && {
    if constexpr (std::is_same_v<T, Any>) {
      return std::move(*this);
    } else {
      if (!TypeTraits<T>::CheckAnyStrict(&data_)) return std::nullopt;
      return Take<T>();
    }
  }
  template <typename T, typename = std::enable_if_t<tether::convertible_or_any_v<T>>>
  TVM_FFI_INLINE std::optional<T> as() const& {
    if constexpr (std::is_same_v<T, Any>) {
      return *this;
    } else {
      if (!TypeTraits<T>::CheckAnyStrict(&data_)) return std::nullopt;
      return TypeTraits<T>::CopyFromAnyViewAfterCheck(&data_);
    }
  }
  template <typename T, typename = std::enable_if_t<std::is_base_of_v<Object, T>>>
  TVM_FFI_INLINE const T* as() const& {
    if (!tether::HoldsInstance<T>(&data_)) return nullptr;
    return detail::ObjectUnsafe::RawObjectPtrFromUnowned<T>(data_.v_obj);
  }

  template <typename T, typename = std::enable_if_t<tether::convertible_or_any_v<T>>>
  TVM_FFI_INLINE T as_or_throw() const& {
    if constexpr (std::is_same_v<T, Any>) {
      return *this;
    } else {
      return AnyView(*this).template as_or_throw<T>();
    }
  }
  template <typename T, typename = std::enable_if_t<tether::storable_or_any_v<T>>>
  TVM_FFI_INLINE T as_or_throw() && {
    if constexpr (std::is_same_v<T, Any>) {
      return std::move(*this);
    } else {
      if (TVM_FFI_PREDICT_FALSE(!TypeTraits<T>::CheckAnyStrict(&data_))) {
        tether::ThrowBadAs<T>(&data_);
      }
      return Take<T>();
    }
  }

  // With conversion.
  template <typename T, typename = std::enable_if_t<tether::convertible_v<T>>>
  TVM_FFI_INLINE T cast() const& {
    std::optional<T> value = TypeTraits<T>::TryCastFromAnyView(&data_);
    if (TVM_FFI_PREDICT_FALSE(!value.has_value())) tether::ThrowBadCast<T>(&data_);
    return *std::move(value);
  }
  template <typename T, typename = std::enable_if_t<TypeTraits<T>::storage_enabled>>
  TVM_FFI_INLINE T cast() && {
    if (TVM_FFI_PREDICT_TRUE(TypeTraits<T>::CheckAnyStrict(&data_))) return Take<T>();
    return static_cast<const Any&>(*this).template cast<T>();
  }
  template <typename T, typename = std::enable_if_t<tether::convertible_or_any_v<T>>>
  TVM_FFI_INLINE std::optional<T> try_cast() const {
    if constexpr (std::is_same_v<T, Any>) {
      return *this;
    } else {
      return TypeTraits<T>::TryCastFromAnyView(&data_);
    }
  }

 private:
  template <typename T>
  TVM_FFI_INLINE T Take() {
    return TypeTraits<T>::MoveFromAnyAfterCheck(&data_);
  }
  TVM_FFI_INLINE void Release() {
    if (data_.type_index >= TypeIndex::kTVMFFIStaticObjectBegin) {
      detail::ObjectUnsafe::DecRefObjectHandle(data_.v_obj);
    }
  }

  friend struct detail::AnyUnsafe;
  TVMFFIAny data_;
};

static_assert(sizeof(Any) == sizeof(TVMFFIAny));

template <typename T, typename>
TVM_FFI_INLINE T AnyView::as_or_throw() const {
  if constexpr (std::is_same_v<T, Any>) {
    return Any(*this);
  } else {
    if (TVM_FFI_PREDICT_FALSE(!TypeTraits<T>::CheckAnyStrict(&data_))) {
      tether::ThrowBadAs<T>(&data_);
    }
    return TypeTraits<T>::CopyFromAnyViewAfterCheck(&data_);
  }
}

template <typename Source>
inline constexpr bool type_subsumes_v<Any, Source> = true;

namespace detail {

// Access to the inside of Any, for containers and bindings.
struct AnyUnsafe : public ObjectUnsafe {
  TVM_FFI_INLINE static TVMFFIAny MoveAnyToTVMFFIAny(Any&& any) {
    TVMFFIAny data = tether::CopyCell(any.data_);
    tether::StoreNone(&any.data_);
    return data;
  }
  TVM_FFI_INLINE static Any MoveTVMFFIAnyToAny(TVMFFIAny* data) {
    Any any;
    any.data_ = tether::CopyCell(*data);
    tether::StoreNone(data);
    return any;
  }
  // Adopts what the cell owns.
  TVM_FFI_INLINE static Any MoveTVMFFIAnyRawToAny(TVMFFIAny data) {
    Any any;
    any.data_ = tether::CopyCell(data);
    return any;
  }
  template <typename T>
  TVM_FFI_INLINE static bool CheckAnyViewStrict(const AnyView& ref) {
    if constexpr (std::is_same_v<T, Any> || std::is_same_v<T, AnyView>) {
      return true;
    } else {
      return TypeTraits<T>::CheckAnyStrict(&ref.data_);
    }
  }
  template <typename T = Object>
  TVM_FFI_INLINE static T* RawObjectPtrFromAnyAfterCheck(const Any& ref) {
    return RawObjectPtrFromUnowned<T>(ref.data_.v_obj);
  }
  template <typename T = Object>
  TVM_FFI_INLINE static T* RawObjectPtrFromAnyViewAfterCheck(const AnyView& ref) {
    return RawObjectPtrFromUnowned<T>(ref.data_.v_obj);
  }
  template <typename T>
  TVM_FFI_INLINE static bool CheckAnyStrict(const Any& ref) {
    if constexpr (std::is_same_v<T, Any>) {
      return true;
    } else {
      return TypeTraits<T>::CheckAnyStrict(&ref.data_);
    }
  }
  template <typename T>
  TVM_FFI_INLINE static T CopyFromAnyViewAfterCheck(const Any& ref) {
    if constexpr (std::is_same_v<T, Any>) {
      return ref;
    } else {
      return TypeTraits<T>::CopyFromAnyViewAfterCheck(&ref.data_);
    }
  }
  template <typename T>
  TVM_FFI_INLINE static T MoveFromAnyAfterCheck(Any&& ref) {
    if constexpr (std::is_same_v<T, Any>) {
      return std::move(ref);
    } else {
      return TypeTraits<T>::MoveFromAnyAfterCheck(&ref.data_);
    }
  }
  TVM_FFI_INLINE static Object* ObjectPtrFromAnyAfterCheck(const Any& ref) {
    return reinterpret_cast<Object*>(ref.data_.v_obj);
  }
  TVM_FFI_INLINE static const TVMFFIAny* TVMFFIAnyPtrFromAny(const Any& ref) { return &ref.data_; }
  template <typename T>
  static std::string GetMismatchTypeInfo(const Any& ref) {
    return TypeTraits<T>::GetMismatchTypeInfo(&ref.data_);
  }
};

}  // namespace detail

// uint64_t lives in the signed payload, so a value that does not fit is an error.
template <>
struct TypeTraits<uint64_t> : public tether::IntegerTraits<TypeTraits<uint64_t>, uint64_t> {
  TVM_FFI_INLINE static void CopyToAnyView(const uint64_t& src, TVMFFIAny* result) {
    if (TVM_FFI_PREDICT_FALSE(src > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))) {
      ThrowOverflow(src);
    }
    tether::IntegerTraits<TypeTraits<uint64_t>, uint64_t>::CopyToAnyView(src, result);
  }
  TVM_FFI_INLINE static void MoveToAny(uint64_t src, TVMFFIAny* result) {
    CopyToAnyView(src, result);
  }

 private:
  [[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE static void ThrowOverflow(uint64_t src) {
    TVM_FFI_THROW(OverflowError)
        << "Integer value " << src
        << " is too large to fit in int64_t. Consider explicitly casting to int64_t first if this "
           "is intentional.";
  }
};

template <typename RefType, typename>
RefType ObjectRef::as_or_throw() const& {
  return Any(*this).as_or_throw<RefType>();
}

template <typename RefType, typename>
RefType ObjectRef::as_or_throw() && {
  if (!Is<RefType>()) return static_cast<const ObjectRef&>(*this).as_or_throw<RefType>();
  return detail::ObjectUnsafe::ObjectRefFromObjectPtr<RefType>(std::move(data_));
}

class FunctionObj;

namespace tether {

// The column of a hook that types may register. Looked up once: the runtime makes both before any
// client runs and never moves them.
inline const TVMFFITypeAttrColumn* AnyHashColumn() {
  static const TVMFFITypeAttrColumn* column = [] {
    TVMFFIByteArray name{"__any_hash__", 12};
    return TVMFFIGetTypeAttrColumn(&name);
  }();
  return column;
}
inline const TVMFFITypeAttrColumn* AnyEqualColumn() {
  static const TVMFFITypeAttrColumn* column = [] {
    TVMFFIByteArray name{"__any_equal__", 13};
    return TVMFFIGetTypeAttrColumn(&name);
  }();
  return column;
}

template <typename T>
TVM_FFI_INLINE T LoadAcquire(const T* p) {
#if defined(_MSC_VER)
  return *static_cast<const volatile T*>(p);
#else
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}

// The type's entry, or null when it has none. A column may grow meanwhile: the runtime publishes
// `data` before `size`, and the payload of an entry before its type index.
TVM_FFI_INLINE const TVMFFIAny* FindAttr(const TVMFFITypeAttrColumn* column, int32_t type_index) {
  if (column == nullptr) return nullptr;
  int64_t offset = static_cast<int64_t>(type_index) - column->begin_index;
  if (offset < 0 || offset >= LoadAcquire(&column->size)) return nullptr;
  const TVMFFIAny* entry = LoadAcquire(&column->data) + offset;
  return LoadAcquire(&entry->type_index) == TypeIndex::kTVMFFINone ? nullptr : entry;
}

// Calls a hook that is a function object; any.h comes before function.h, so by its cell.
inline Any CallHook(const TVMFFIAny* hook, const char* column, const AnyView* args,
                    int32_t num_args) {
  TVM_FFI_ICHECK_EQ(hook->type_index, TypeIndex::kTVMFFIFunction)
      << "entry of `" << column << "` must be a function or a function pointer";
  TVMFFIFunctionCell* cell = TVMFFIFunctionGetCellPtr(hook->v_obj);
  Any result;
  if (cell->cpp_call != nullptr) {
    using FCall = void (*)(const FunctionObj*, const AnyView*, int32_t, Any*);
    auto* function = reinterpret_cast<const FunctionObj*>(hook->v_obj);
    reinterpret_cast<FCall>(cell->cpp_call)(function, args, num_args, &result);
  } else if (cell->safe_call(hook->v_obj, reinterpret_cast<const TVMFFIAny*>(args), num_args,
                             reinterpret_cast<TVMFFIAny*>(&result)) != 0) {
    throw detail::MoveFromSafeCallRaised();
  }
  return result;
}

// Hooks as raw pointers have two forms and nothing that tells which: up to 0.1.14 they return the
// plain result, since then a TVMFFIAny that owns the result or an Error. Both are called as the new
// form. On the machines below an old result is then in the first eight bytes, and only in the low
// one of them if it is a bool. A bool is never 2, the index of Bool; a hash may be 1, the index of
// Int: src/core/any_hooks.cc, which wraps all hooks that are registered as pointers, asks the file.
#if defined(_WIN32)
inline constexpr bool kOldHookIsRecognised = false;
#else
inline constexpr bool kOldHookIsRecognised = true;
#endif

TVM_FFI_INLINE uint64_t FirstWord(const TVMFFIAny& cell) {
  return static_cast<uint64_t>(static_cast<uint32_t>(cell.type_index)) |
         static_cast<uint64_t>(cell.zero_padding) << 32;
}

[[noreturn]] TVM_FFI_COLD_CODE inline void ThrowOwnedError(TVMFFIAny cell) {
  throw detail::ObjectUnsafe::ObjectRefFromObjectPtr<Error>(
      detail::ObjectUnsafe::ObjectPtrFromOwned<Object>(cell.v_obj));
}

inline uint64_t CallOldHash(void* hook, const Any& value) {
  return static_cast<uint64_t>(reinterpret_cast<int64_t (*)(const Any&)>(hook)(value));
}

inline uint64_t CallHashPointer(void* hook, const Any& value) {
  TVM_FFI_ICHECK_NOTNULL(hook);
  TVMFFIAny result = reinterpret_cast<TVMFFIAny (*)(const Any&)>(hook)(value);
  uint64_t first = FirstWord(result);
  if (first == TypeIndex::kTVMFFIInt) return result.v_uint64;
  if (first == TypeIndex::kTVMFFIError) ThrowOwnedError(result);
  TVM_FFI_ICHECK(kOldHookIsRecognised) << "__any_hash__ must return int";
  return first;
}

inline bool CallEqualPointer(void* hook, const Any& lhs, const Any& rhs) {
  TVM_FFI_ICHECK_NOTNULL(hook);
  TVMFFIAny result = reinterpret_cast<TVMFFIAny (*)(const Any&, const Any&)>(hook)(lhs, rhs);
  uint64_t first = FirstWord(result);
  if (first == TypeIndex::kTVMFFIBool) return result.v_int64 != 0;
  if (first == TypeIndex::kTVMFFIError) ThrowOwnedError(result);
  TVM_FFI_ICHECK(kOldHookIsRecognised) << "__any_equal__ must return bool";
  return (first & 0xff) != 0;
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowHookResult(const char* hook,
                                                                             const Any& key,
                                                                             const char* expected,
                                                                             const Any& result) {
  TVM_FFI_THROW(InternalError) << hook << " must return " << expected << ", but that of `"
                               << key.GetTypeKey() << "` returned `"
                               << TypeTraits<int64_t>::GetMismatchTypeInfo(
                                      detail::AnyUnsafe::TVMFFIAnyPtrFromAny(result))
                               << "`";
  TVM_FFI_UNREACHABLE();
}

TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline uint64_t CallHashHook(const TVMFFIAny* hook,
                                                                 const Any& value) {
  if (hook->type_index == TypeIndex::kTVMFFIOpaquePtr) return CallHashPointer(hook->v_ptr, value);
  AnyView args[] = {value};
  Any result = CallHook(hook, "__any_hash__", args, 1);
  const TVMFFIAny* hash = detail::AnyUnsafe::TVMFFIAnyPtrFromAny(result);
  if (hash->type_index == TypeIndex::kTVMFFIInt) return hash->v_uint64;
  if (hash->type_index == TypeIndex::kTVMFFIBigInt) {
    uint64_t lowest;  // of its words; Python's hashes may have more than 64 bits
    std::memcpy(&lowest, TVMFFIBigIntGetContentByteArray(hash).data, sizeof(lowest));
    return lowest;
  }
  ThrowHookResult("__any_hash__", value, "int", result);
}

TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline bool CallEqualHook(const TVMFFIAny* hook, const Any& lhs,
                                                              const Any& rhs) {
  if (hook->type_index == TypeIndex::kTVMFFIOpaquePtr) {
    return CallEqualPointer(hook->v_ptr, lhs, rhs);
  }
  AnyView args[] = {lhs, rhs};
  Any result = CallHook(hook, "__any_equal__", args, 2);
  if (result.type_index() != TypeIndex::kTVMFFIBool) {
    ThrowHookResult("__any_equal__", lhs, "bool", result);
  }
  return detail::AnyUnsafe::TVMFFIAnyPtrFromAny(result)->v_int64 != 0;
}

// Content of a string or bytes in either form.
TVM_FFI_INLINE TVMFFIByteArray ContentOf(const TVMFFIAny* value) {
  return value->type_index < TypeIndex::kTVMFFIStaticObjectBegin
             ? TVMFFISmallBytesGetContentByteArray(value)
             : *TVMFFIBytesGetByteArrayPtr(value->v_obj);
}

TVM_FFI_INLINE bool SameContent(const TVMFFIAny* lhs, const TVMFFIAny* rhs) {
  TVMFFIByteArray a = ContentOf(lhs), b = ContentOf(rhs);
  return Bytes::memequal(a.data, b.data, a.size, b.size);
}

// The hash of a key, by content for strings and bytes. A hash hook is not called but put into
// *hook, and the result then means nothing: hooks are user code, and the caller may have to
// prepare for them.
TVM_FFI_INLINE uint64_t HashUnlessHook(const Any& src, const TVMFFIAny** hook) {
  const TVMFFIAny* value = detail::AnyUnsafe::TVMFFIAnyPtrFromAny(src);
  int32_t index = value->type_index;
  if (index == TypeIndex::kTVMFFISmallStr || index == TypeIndex::kTVMFFISmallBytes) {
    constexpr int32_t kToLarge = TypeIndex::kTVMFFIStr - TypeIndex::kTVMFFISmallStr;
    return detail::StableHashCombine(static_cast<uint64_t>(index + kToLarge),
                                     detail::StableHashSmallStrBytes(value));
  }
  auto key = static_cast<uint64_t>(static_cast<int64_t>(index));
  if (index == TypeIndex::kTVMFFIStr || index == TypeIndex::kTVMFFIBytes) {
    const TVMFFIByteArray* bytes = TVMFFIBytesGetByteArrayPtr(value->v_obj);
    return detail::StableHashCombine(key, detail::StableHashBytes(bytes->data, bytes->size));
  }
  if (index >= TypeIndex::kTVMFFIStaticObjectBegin) *hook = FindAttr(AnyHashColumn(), index);
  return detail::StableHashCombine(key, value->v_uint64);
}

// Whether two keys are equal. If an equality hook has to decide that, it is put into *hook, not
// called, and the result is false.
TVM_FFI_INLINE bool EqualUnlessHook(const Any& lhs, const Any& rhs, const TVMFFIAny** hook) {
  if (lhs.same_as(rhs)) return true;
  const TVMFFIAny* a = detail::AnyUnsafe::TVMFFIAnyPtrFromAny(lhs);
  const TVMFFIAny* b = detail::AnyUnsafe::TVMFFIAnyPtrFromAny(rhs);
  if (a->type_index != b->type_index) {
    int32_t low = a->type_index < b->type_index ? a->type_index : b->type_index;
    int32_t high = a->type_index < b->type_index ? b->type_index : a->type_index;
    bool two_forms = (low == TypeIndex::kTVMFFISmallStr && high == TypeIndex::kTVMFFIStr) ||
                     (low == TypeIndex::kTVMFFISmallBytes && high == TypeIndex::kTVMFFIBytes);
    return two_forms && SameContent(a, b);
  }
  if (a->type_index < TypeIndex::kTVMFFIStaticObjectBegin) return false;
  if (a->type_index == TypeIndex::kTVMFFIStr || a->type_index == TypeIndex::kTVMFFIBytes) {
    return SameContent(a, b);
  }
  *hook = FindAttr(AnyEqualColumn(), a->type_index);
  return false;
}

}  // namespace tether

// Hash of a value as a map key: by content for strings and bytes, by identity for objects without a
// hook.
struct AnyHash {
  uint64_t operator()(const Any& src) const {
    const TVMFFIAny* hook = nullptr;
    const uint64_t hash = tether::HashUnlessHook(src, &hook);
    if (hook == nullptr) return hash;
    return detail::StableHashCombine(static_cast<uint64_t>(src.type_index()),
                                     tether::CallHashHook(hook, src));
  }
};

// Equality to go with AnyHash: 1, true and 1.0 differ; a small and a heap string may be equal.
struct AnyEqual {
  bool operator()(const Any& lhs, const Any& rhs) const {
    const TVMFFIAny* hook = nullptr;
    return tether::EqualUnlessHook(lhs, rhs, &hook) ||
           (hook != nullptr && tether::CallEqualHook(hook, lhs, rhs));
  }
};

}  // namespace ffi

using ffi::Any;
using ffi::AnyView;

}  // namespace tvm
#endif  // TVM_FFI_ANY_H_
