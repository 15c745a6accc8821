// SPDX-License-Identifier: Apache-2.0
//
// Replacing parts of any value: elements, values of maps, reflected fields. What does not change is
// shared between the old value and the new one.
//
//   Any doubled = StructuralMap<WalkOrder::kPostOrder>(tree, [](int64_t i) { return 2 * i; });
//   Any simpler = StructuralMutate(
//       tree, [](const Add& add, StructuralMutatorObj* mutator) -> Expected<UnchangedOr<Any>> {
//         if (add->rhs == 0) return mutator->MutateExpected(add->lhs);
//         return mutator->DefaultMutateExpected(add);
//       });
//
// A map calls the first callback whose parameter fits each value, and descends itself. A mutation
// leaves the descent to the callback. Either way a result is a replacement, or Unchanged. A root
// that is moved in may be changed in place, as far as nobody else refers to it.
//
// For anything more, derive from StructuralMutatorObj. A class may register how its parts are
// replaced, as `__s_mutate__` and `__s_maybe_inplace_mutate__`.
#ifndef TVM_FFI_EXTRA_STRUCTURAL_MUTATE_H_
#define TVM_FFI_EXTRA_STRUCTURAL_MUTATE_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tuple.h>
#include <tvm/ffi/expected.h>
#include <tvm/ffi/extra/structural_visit.h>
#include <tvm/ffi/extra/visit_error_context.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/rvalue_ref.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace tvm {
namespace ffi {

/*! \brief Whether a mutation may change the value itself. */
enum class InplaceMode : int32_t { kDisallow = 0, kAllow = 1 };

/*! \brief The result of a mutation that leaves the value as it is. Not None, which replaces. */
struct Unchanged {
  TVMFFIAny CopyToTVMFFIAny() const {
    TVMFFIAny cell;
    cell.type_index = TypeIndex::kTVMFFIUnchanged;
    cell.zero_padding = 0;
    cell.v_int64 = 0;
    return cell;
  }
};

template <>
struct TypeTraits<Unchanged> : public TypeTraitsBase {
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIUnchanged;

  TVM_FFI_INLINE static void CopyToAnyView(const Unchanged& src, TVMFFIAny* result) {
    *result = src.CopyToTVMFFIAny();
  }
  TVM_FFI_INLINE static void MoveToAny(Unchanged src, TVMFFIAny* result) {
    *result = src.CopyToTVMFFIAny();
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    return src->type_index == TypeIndex::kTVMFFIUnchanged;
  }
  TVM_FFI_INLINE static Unchanged CopyFromAnyViewAfterCheck(const TVMFFIAny*) { return {}; }
  TVM_FFI_INLINE static Unchanged MoveFromAnyAfterCheck(TVMFFIAny*) { return {}; }
  TVM_FFI_INLINE static std::optional<Unchanged> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return Unchanged{};
    return std::nullopt;
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFIUnchanged; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIUnchanged); }
};

template <typename T>
class UnchangedOr;

namespace detail {
struct UnchangedOrUnsafe;
}  // namespace detail

namespace tether {

template <typename U>
inline constexpr bool is_unchanged_or_v = false;
template <typename T>
inline constexpr bool is_unchanged_or_v<UnchangedOr<T>> = true;

}  // namespace tether

/*! \brief A replacement, or Unchanged. One Any. */
template <typename T>
class UnchangedOr {
  static_assert(!std::is_base_of_v<Error, T>, "an Error cannot be a replacement");

 public:
  UnchangedOr(Unchanged marker) : data_(marker) {}   // NOLINT(*)
  UnchangedOr(T value) : data_(std::move(value)) {}  // NOLINT(*)
  template <typename U, typename Bare = std::remove_cv_t<std::remove_reference_t<U>>,
            typename = std::enable_if_t<!tether::is_expected_like_v<Bare> &&
                                        !tether::is_unchanged_or_v<Bare> &&
                                        !std::is_same_v<Bare, Unchanged> &&
                                        !std::is_same_v<Bare, T> && std::is_convertible_v<U, T>>>
  UnchangedOr(U&& value) : data_(static_cast<T>(std::forward<U>(value))) {}  // NOLINT(*)
  template <typename U,
            typename = std::enable_if_t<!std::is_same_v<U, T> &&
                                        (type_subsumes_v<T, U> || std::is_convertible_v<U, T>)>>
  UnchangedOr(UnchangedOr<U> other) : data_(Convert(std::move(other))) {}  // NOLINT(*)

  bool IsUnchanged() const noexcept { return data_.type_index() == TypeIndex::kTVMFFIUnchanged; }
  /*! \brief Whether the result is the original: the marker, or the same value. */
  bool UnchangedOrSameAs(const T& original) const {
    return IsUnchanged() || data_.same_as(Any(original));
  }

  /*! \brief The replacement, or the original. */
  T ValueOrUnchanged(const T& original) && {
    return IsUnchanged() ? original : std::move(*this).ValueUnchecked();
  }
  T ValueOrUnchanged(T&& original) && {
    return IsUnchanged() ? std::move(original) : std::move(*this).ValueUnchecked();
  }
  template <typename Self = T, typename = std::enable_if_t<std::is_same_v<Self, Any>>>
  Any ValueOrUnchanged(AnyView original) && {
    return IsUnchanged() ? Any(original) : std::move(data_);
  }
  /*! \brief The replacement, which must be there. */
  T ValueUnchecked() && { return detail::AnyUnsafe::MoveFromAnyAfterCheck<T>(std::move(data_)); }

  /*! \brief The content as a U without conversion. */
  template <typename U>
  auto as() const& {
    return data_.template as<U>();
  }
  template <typename U>
  auto as() && {
    return std::move(data_).template as<U>();
  }
  template <typename U>
  U as_or_throw() const& {
    return data_.template as_or_throw<U>();
  }
  template <typename U>
  U as_or_throw() && {
    return std::move(data_).template as_or_throw<U>();
  }

 private:
  struct FromCell {};
  UnchangedOr(FromCell, Any&& data) : data_(std::move(data)) {}

  template <typename U>
  static Any Convert(UnchangedOr<U> other) {
    if constexpr (type_subsumes_v<T, U>) {
      return std::move(other.data_);
    } else {
      if (other.IsUnchanged()) return Any(Unchanged{});
      return Any(static_cast<T>(std::move(other).ValueUnchecked()));
    }
  }

  template <typename>
  friend class UnchangedOr;
  template <typename, typename>
  friend struct TypeTraits;
  friend struct detail::UnchangedOrUnsafe;
  Any data_;
};

static_assert(sizeof(UnchangedOr<Any>) == sizeof(TVMFFIAny));

template <typename T, typename U>
inline constexpr bool type_subsumes_v<UnchangedOr<T>, UnchangedOr<U>> = type_subsumes_v<T, U>;

template <typename T>
struct TypeTraits<UnchangedOr<T>> : public TypeTraitsBase {
  using Self = UnchangedOr<T>;

  TVM_FFI_INLINE static void CopyToAnyView(const Self& src, TVMFFIAny* result) {
    *result = AnyView(src.data_).CopyToTVMFFIAny();
  }
  TVM_FFI_INLINE static void MoveToAny(Self src, TVMFFIAny* result) {
    *result = detail::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(src.data_));
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    if constexpr (std::is_same_v<T, Any>) {
      return src->type_index != TypeIndex::kTVMFFIError;
    } else {
      return src->type_index == TypeIndex::kTVMFFIUnchanged || TypeTraits<T>::CheckAnyStrict(src);
    }
  }
  TVM_FFI_INLINE static Self CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return Wrap(Any(AnyView::CopyFromTVMFFIAny(*src)));
  }
  TVM_FFI_INLINE static Self MoveFromAnyAfterCheck(TVMFFIAny* src) {
    return Wrap(detail::AnyUnsafe::MoveTVMFFIAnyToAny(src));
  }
  static std::optional<Self> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return CopyFromAnyViewAfterCheck(src);
    if constexpr (!std::is_same_v<T, Any>) {
      if (auto value = TypeTraits<T>::TryCastFromAnyView(src)) return Self(*std::move(value));
    }
    return std::nullopt;
  }
  static std::string TypeStr() { return "UnchangedOr<" + detail::Type2Str<T>::v() + ">"; }
  static std::string TypeSchema() {
    return tether::Schema("UnchangedOr", {&detail::TypeSchema<T>::v});
  }

 private:
  static Self Wrap(Any&& data) { return Self(typename Self::FromCell{}, std::move(data)); }
};

namespace detail {

/*! \brief Access to the inside of UnchangedOr. */
struct UnchangedOrUnsafe {
  template <typename T>
  TVM_FFI_INLINE static const Any& GetData(const UnchangedOr<T>& value) {
    return value.data_;
  }
  template <typename T>
  TVM_FFI_INLINE static Any MoveToAny(UnchangedOr<T>&& value) {
    return std::move(value.data_);
  }
};

}  // namespace detail

class StructuralMutatorObj;

/*! \brief The raw form of a hook: the owned result is a replacement, Unchanged or an Error. */
using FStructuralMutateABI = TVMFFIAny (*)(StructuralMutatorObj* mutator, AnyView value) noexcept;

/*! \brief The entries of `__s_mutate__` and `__s_maybe_inplace_mutate__`. */
using FStructuralMutate =
    reflection::NativeFunctionView<UnchangedOr<Any>(StructuralMutatorObj*, AnyView)>;

/*! \brief What a mutator class does; one static const instance per class. Fixed by the ABI. */
struct StructuralMutatorVTable {
  FStructuralMutateABI mutate = nullptr;
  /*! \brief May also change the object behind the value; the result may then be Unchanged. */
  FStructuralMutateABI maybe_inplace_mutate = nullptr;
  /*! \brief What was recorded for a variable; None if nothing was. */
  TVMFFIAny (*var_remap_get)(StructuralMutatorObj* mutator, AnyView var) noexcept = nullptr;
  /*! \brief Records what a variable becomes; the result is None or an Error. */
  TVMFFIAny (*var_remap_set)(StructuralMutatorObj* mutator, AnyView var,
                             AnyView mapped) noexcept = nullptr;
};

static_assert(sizeof(StructuralMutatorVTable) == 4 * sizeof(void*), "fixed by the ABI");

namespace tether {

inline Expected<UnchangedOr<Any>> AdoptMutated(TVMFFIAny raw) {
  return detail::ExpectedUnsafe::MoveFromTVMFFIAny<UnchangedOr<Any>>(raw);
}

inline bool IsUniqueObject(AnyView value) {
  if (value.type_index() < TypeIndex::kTVMFFIStaticObjectBegin) return false;
  return detail::AnyUnsafe::RawObjectPtrFromAnyViewAfterCheck(value)->unique();
}

inline bool IsFreeVarOrDAGNode(TVMFFISEqHashKind kind) {
  return kind == kTVMFFISEqHashKindFreeVar || kind == kTVMFFISEqHashKindDAGNode;
}

inline Error CannotCopy() noexcept {
  return NewError("TypeError", "__ffi_shallow_copy__ must be an ffi.Function");
}

// A copy of an object that shares its fields, by `__ffi_shallow_copy__`.
inline Expected<ObjectRef> ShallowCopyOf(const Object* object) noexcept {
  static const reflection::TypeAttrColumn copiers(type_attr::kShallowCopy);
  AnyView copier = copiers[object->type_index()];
  if (copier.type_index() != TypeIndex::kTVMFFIFunction) {
    return CannotCopy();
  }
  Expected<Any> copy = copier.cast<Function>().CallExpected<Any>(object);
  if (copy.is_err()) return copy.error();
  Any made = std::move(copy).value();
  if (made.type_index() != object->type_index() || made.as<Object>() == object) {
    return NewError("TypeError",
                    "Shallow copy callback must return a distinct object with the same type as its "
                    "input");
  }
  return detail::AnyUnsafe::MoveFromAnyAfterCheck<ObjectRef>(std::move(made));
}

inline Error NoSetter(const Object* object, const TVMFFIFieldInfo* field) {
  return Error("TypeError",
               "Cannot structurally mutate field `" + std::string(ToView(field->name)) +
                   "` of type `" + object->GetTypeKey() + "` because it does not define a setter",
               "");
}

// The setter says what is wrong with the value, but not where it was to go.
inline Error WithPlace(const Error& error, const Object* object, const TVMFFIFieldInfo* field) {
  if (error.kind() != "TypeError" && error.kind() != "OverflowError") return error;
  std::string message = "field `" + std::string(ToView(field->name)) + "` of `" +
                        object->GetTypeKey() + "`: " + error.message();
  return Error(error.kind(), message, error.backtrace(), error, std::nullopt);
}

// Stores a new value in a field of a copy, read-only or not.
inline Expected<void> ReplaceField(const Object* object, const TVMFFIFieldInfo* field,
                                   const Any& value) noexcept {
  return CatchExpected<void>([&]() -> Expected<void> {
    if (field->setter == nullptr) return NoSetter(object, field);
    TVMFFIAny raw = AnyView(value).CopyToTVMFFIAny();
    if (reflection::CallFieldSetter(field, FieldAddress(object, field), &raw) != 0) {
      return WithPlace(detail::MoveFromSafeCallRaised(), object, field);
    }
    return {};
  });
}

}  // namespace tether

/*! \brief Base of mutators. Derived classes need no type of their own. */
class StructuralMutatorObj : public Object {
 public:
  /*! \brief What callbacks of an engine get a pointer to; a layer may name itself. */
  using MutatorObjType = StructuralMutatorObj;
  /*! \brief What a layer passes to the callbacks of a map besides the value. */
  using StateTupleType = std::tuple<>;

  /*! \brief Mutates a value; throws what the mutation failed with. */
  UnchangedOr<Any> Mutate(AnyView value, InplaceMode mode = InplaceMode::kDisallow) {
    return MutateExpected(value, mode).value();
  }

  /*! \brief Mutates a value, in place only if that is allowed and nobody else refers to it. */
  Expected<UnchangedOr<Any>> MutateExpected(AnyView value,
                                            InplaceMode mode = InplaceMode::kDisallow) noexcept {
    if (mode == InplaceMode::kAllow && tether::IsUniqueObject(value)) {
      return tether::AdoptMutated(vtable_->maybe_inplace_mutate(this, value));
    }
    return tether::AdoptMutated(vtable_->mutate(this, value));
  }

  /*! \brief Mutates the parts of a value, each through MutateExpected. With kAllow the caller says
   * that the value may be changed. */
  inline Expected<UnchangedOr<Any>> DefaultMutateExpected(
      AnyView value, InplaceMode mode = InplaceMode::kDisallow) noexcept;

  /*! \brief What was recorded for a variable, also the marker Unchanged; None if nothing was. */
  Expected<Any> VarRemapGetExpected(AnyView var) noexcept {
    return detail::ExpectedUnsafe::MoveFromTVMFFIAny<Any>(vtable_->var_remap_get(this, var));
  }
  /*! \brief Records what a variable becomes from here on. */
  Expected<void> VarRemapSetExpected(AnyView var, AnyView mapped) noexcept {
    return detail::ExpectedUnsafe::MoveFromTVMFFIAny<void>(
        vtable_->var_remap_set(this, var, mapped));
  }

  /*! \brief Whether the value being mutated is in a place where variables are defined. */
  TVMFFIDefRegionKind def_region_kind() const { return def_region_mode_; }

  /*! \brief The result of callback(), called with another region in force. */
  template <typename Callback>
  auto WithDefRegionKind(TVMFFIDefRegionKind kind, Callback&& callback) {
    tether::RegionScope scope(&def_region_mode_, kind);
    return std::forward<Callback>(callback)();
  }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("ffi.StructuralMutator", StructuralMutatorObj, Object);

 protected:
  explicit StructuralMutatorObj(const StructuralMutatorVTable* vtable) : vtable_(vtable) {}
  // A copy would have the table of a derived class without its members.
  StructuralMutatorObj(const StructuralMutatorObj&) = delete;
  StructuralMutatorObj& operator=(const StructuralMutatorObj&) = delete;

  StateTupleType StateTuple() const noexcept { return {}; }

  const StructuralMutatorVTable* vtable_;
  TVMFFIDefRegionKind def_region_mode_ = kTVMFFIDefRegionKindNone;

 private:
  using Result = Expected<UnchangedOr<Any>>;
  static Result CallHook(AnyView hook, StructuralMutatorObj* self, AnyView value) noexcept {
    switch (hook.type_index()) {
      case TypeIndex::kTVMFFIOpaquePtr:
        return tether::AdoptMutated(
            reinterpret_cast<FStructuralMutateABI>(hook.cast<void*>())(self, value));
      case TypeIndex::kTVMFFIFunction:
        return hook.cast<Function>().CallExpected<UnchangedOr<Any>>(self, value);
      default:
        return tether::NewError("TypeError",
                                "__s_mutate__ must be a direct hook pointer or ffi.Function");
    }
  }
  inline Result MutateWithoutHook(AnyView value) noexcept;
  inline Result MutateFields(AnyView value, const TVMFFITypeInfo* info) noexcept;
};

static_assert(sizeof(StructuralMutatorObj) == 40, "fixed by the ABI");

/*! \brief Reference to a StructuralMutatorObj, never null. */
class StructuralMutator : public ObjectRef {
 public:
  explicit StructuralMutator(ObjectPtr<StructuralMutatorObj> data) {
    data_ = std::move(data);
    TVM_FFI_ICHECK_NOTNULL(data_.get());
  }

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(StructuralMutator, ObjectRef, StructuralMutatorObj);
};

inline Expected<UnchangedOr<Any>> StructuralMutatorObj::DefaultMutateExpected(
    AnyView value, InplaceMode mode) noexcept {
  static const reflection::TypeAttrColumn hooks(type_attr::kStructuralMutate);
  static const reflection::TypeAttrColumn inplace(type_attr::kStructuralMaybeInplaceMutate);
  AnyView hook;
  if (mode == InplaceMode::kAllow) hook = inplace[value.type_index()];
  if (hook == nullptr) hook = hooks[value.type_index()];
  Result result = hook == nullptr ? MutateWithoutHook(value) : CallHook(hook, this, value);
  tether::AddErrorContext(result, value);
  return result;
}

inline Expected<UnchangedOr<Any>> StructuralMutatorObj::MutateWithoutHook(AnyView value) noexcept {
  // A plain value is its own result, so that its type can be checked.
  if (value.type_index() < TypeIndex::kTVMFFIStaticObjectBegin) {
    return UnchangedOr<Any>(Any(value));
  }
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(value.type_index());
  const TVMFFISEqHashKind kind = tether::StructuralKindOf(info);
  if (!tether::IsFreeVarOrDAGNode(kind)) return MutateFields(value, info);

  Expected<Any> known = VarRemapGetExpected(value);
  if (known.is_err()) return known.error();
  if (known.type_index() != TypeIndex::kTVMFFINone) {
    return UnchangedOr<Any>(std::move(known).value());
  }
  const bool is_var = kind == kTVMFFISEqHashKindFreeVar;
  if (is_var && def_region_mode_ == kTVMFFIDefRegionKindNone) {
    return UnchangedOr<Any>(Unchanged{});
  }
  Result result = MutateFields(value, info);
  if (result.is_err()) return result;
  if (is_var && result.type_index() == TypeIndex::kTVMFFIUnchanged &&
      def_region_mode_ != kTVMFFIDefRegionKindPattern) {
    return result;
  }
  const Result& recorded = result;
  Expected<void> set = VarRemapSetExpected(value, detail::ExpectedUnsafe::GetData(recorded));
  if (set.is_err()) return set.error();
  return result;
}

inline Expected<UnchangedOr<Any>> StructuralMutatorObj::MutateFields(
    AnyView value, const TVMFFITypeInfo* info) noexcept {
  const Object* object = value.as<Object>();
  Expected<ObjectRef> copy = tether::ShallowCopyOf(object);
  if (copy.is_err()) return copy.error();
  ObjectRef changed = copy.value();
  const TVMFFIDefRegionKind inherited =
      tether::InnerDefRegion(tether::StructuralKindOf(info), def_region_mode_);
  bool is_changed = false;
  std::optional<Error> failure;
  reflection::ForEachFieldInfoWithEarlyStop(info, [&](const TVMFFIFieldInfo* field) {
    if (field->flags & kTVMFFIFieldFlagBitMaskSEqHashIgnore) return false;
    TVMFFIAny raw = AnyView().CopyToTVMFFIAny();
    if (field->getter(tether::FieldAddress(object, field), &raw) != 0) {
      failure = detail::MoveFromSafeCallRaised();
      return true;
    }
    Any part = detail::AnyUnsafe::MoveTVMFFIAnyToAny(&raw);
    tether::RegionScope scope(&def_region_mode_, tether::FieldDefRegion(field, inherited));
    Result result = MutateExpected(part);
    if (result.is_err()) {
      failure = std::move(result).error();
      return true;
    }
    UnchangedOr<Any> mutated = std::move(result).value();
    if (mutated.UnchangedOrSameAs(part)) return false;
    is_changed = true;
    Expected<void> set =
        tether::ReplaceField(changed.get(), field, std::move(mutated).ValueUnchecked());
    if (set.is_err()) failure = set.error();
    return failure.has_value();
  });
  if (failure.has_value()) return *std::move(failure);
  if (!is_changed) return UnchangedOr<Any>(Unchanged{});
  return UnchangedOr<Any>(Any(std::move(changed)));
}

/*! \brief In a function that returns an Expected: returns the error of `expected`, if it is one. */
#define TVM_FFI_S_MUTATE_MAYBE_EARLY_RETURN(expected)                           \
  do {                                                                          \
    auto tvm_ffi_mutate_result_ = (expected);                                   \
    if (TVM_FFI_PREDICT_FALSE(tvm_ffi_mutate_result_.is_err())) {               \
      return ::tvm::ffi::Unexpected(std::move(tvm_ffi_mutate_result_).error()); \
    }                                                                           \
  } while (false)

#define TVM_FFI_S_MUTATE_ASSIGN_IMPL_(Type, name, expected, tmp, Convert) \
  auto tmp = (expected);                                                  \
  if (TVM_FFI_PREDICT_FALSE(tmp.is_err())) {                              \
    return ::tvm::ffi::Unexpected(std::move(tmp).error());                \
  }                                                                       \
  Convert(Type, name, tmp)

#define TVM_FFI_S_MUTATE_CHECKED_(Type, name, tmp)                                  \
  if (TVM_FFI_PREDICT_FALSE(!::tvm::ffi::tether::MutatedFits<Type>(tmp))) {         \
    return ::tvm::ffi::Unexpected(::tvm::ffi::tether::NewError(                     \
        "TypeError", "structural mutate result does not match the declared type")); \
  }                                                                                 \
  TVM_FFI_S_MUTATE_UNCHECKED_(Type, name, tmp)

#define TVM_FFI_S_MUTATE_UNCHECKED_(Type, name, tmp)                      \
  Type name = ::tvm::ffi::detail::AnyUnsafe::MoveFromAnyAfterCheck<Type>( \
      ::tvm::ffi::detail::ExpectedUnsafe::GetData(tmp))

/*! \brief Declares `name` as a Type with the value of `expected`; returns its error, or a TypeError
 * if it is another type. */
#define TVM_FFI_S_MUTATE_ASSIGN_OR_RETURN(Type, name, expected)                          \
  TVM_FFI_S_MUTATE_ASSIGN_IMPL_(Type, name, expected,                                    \
                                TVM_FFI_STR_CONCAT(tvm_ffi_mutate_result_, __COUNTER__), \
                                TVM_FFI_S_MUTATE_CHECKED_)
/*! \brief The same without the check. */
#define TVM_FFI_UNSAFE_S_MUTATE_ASSIGN_OR_RETURN(Type, name, expected)                   \
  TVM_FFI_S_MUTATE_ASSIGN_IMPL_(Type, name, expected,                                    \
                                TVM_FFI_STR_CONCAT(tvm_ffi_mutate_result_, __COUNTER__), \
                                TVM_FFI_S_MUTATE_UNCHECKED_)

namespace tether {

// Whether the value of an Expected<U> can be read as a Type.
template <typename Type, typename U>
bool MutatedFits(const Expected<U>& result) {
  if constexpr (type_subsumes_v<Type, U>) {
    return true;
  } else {
    return detail::AnyUnsafe::CheckAnyStrict<Type>(detail::ExpectedUnsafe::GetData(result));
  }
}

// What a callback returned: an Error in an Any is an error, too.
template <typename R>
Expected<Any> ToMapped(R&& result) {
  return Expected<Any>(std::forward<R>(result));
}

// Callbacks of C++ code as the runtime calls them. One record per call of a function below.
struct MutateDispatch {
  // The owned result of the first callback that takes the value; *matched is false if none does. In
  // a map `mutator` is null and `arg` is the region, else `arg` is an InplaceMode.
  TVMFFIAny (*call)(void* self, AnyView value, StructuralMutatorObj* mutator, int32_t arg,
                    bool* matched) noexcept;
  void* self;
  // 0 a map in pre-order, 1 in post-order, 2 a mutation.
  int32_t form;
};

// Runs the record over a value that it may change in place where nobody else refers to it.
inline Expected<Any> RunDispatch(Any root, MutateDispatch* dispatch) {
  static const Function run = Function::GetGlobalRequired("ffi.tether.StructuralMutate");
  if (root.type_index() < TypeIndex::kTVMFFIStaticObjectBegin) {
    return run.CallExpected<Any>(root, static_cast<void*>(dispatch));
  }
  RValueRef<ObjectRef> moved(std::move(root).cast<ObjectRef>());
  return run.CallExpected<Any>(moved, static_cast<void*>(dispatch));
}

template <typename... Callbacks>
struct MapDispatch {
  std::tuple<Callbacks&...> callbacks;

  static TVMFFIAny Call(void* self, AnyView value, StructuralMutatorObj*, int32_t region,
                        bool* matched) noexcept {
    Expected<Any> result = CatchExpected<Any>([&] {
      Expected<Any> mapped = Any(Unchanged{});
      const auto kind = static_cast<TVMFFIDefRegionKind>(region);
      *matched = std::apply(
          [&](auto&... callbacks) {
            return (CallIfFits<FirstParam<decltype(callbacks)>>(
                        value,
                        [&](auto&& arg) {
                          mapped = ToMapped(CallWithState(
                              callbacks, std::forward<decltype(arg)>(arg), std::tuple<>(), kind));
                        }) ||
                    ...);
          },
          static_cast<MapDispatch*>(self)->callbacks);
      return mapped;
    });
    return detail::ExpectedUnsafe::MoveToTVMFFIAny(std::move(result));
  }
};

// callback(value, mutator, [mode]).
template <typename Callback, typename Value, typename Mutator>
Expected<Any> CallMutator(Callback& callback, Value&& value, Mutator* mutator,  // NOLINT(*)
                          InplaceMode mode) {
  constexpr size_t kArgs = detail::FunctionInfo<std::decay_t<Callback>>::num_args;
  static_assert(kArgs == 2 || kArgs == 3,
                "a callback takes (value, mutator) or (value, mutator, InplaceMode)");
  if constexpr (kArgs == 2) {
    return ToMapped(callback(std::forward<Value>(value), mutator));
  } else {
    return ToMapped(callback(std::forward<Value>(value), mutator, mode));
  }
}

template <typename... Callbacks>
struct OwnDispatch {
  std::tuple<Callbacks&...> callbacks;

  static TVMFFIAny Call(void* self, AnyView value, StructuralMutatorObj* mutator, int32_t mode,
                        bool* matched) noexcept {
    Expected<Any> result = CatchExpected<Any>([&] {
      Expected<Any> mutated = Any(Unchanged{});
      *matched = std::apply(
          [&](auto&... callbacks) {
            return (CallIfFits<FirstParam<decltype(callbacks)>>(
                        value,
                        [&](auto&& arg) {
                          mutated = CallMutator(callbacks, std::forward<decltype(arg)>(arg),
                                                mutator, static_cast<InplaceMode>(mode));
                        }) ||
                    ...);
          },
          static_cast<OwnDispatch*>(self)->callbacks);
      return mutated;
    });
    return detail::ExpectedUnsafe::MoveToTVMFFIAny(std::move(result));
  }
};

}  // namespace tether

/*!
 * \brief The value with its parts replaced by callbacks (value, [TVMFFIDefRegionKind]).
 *
 * Each value goes to the first callback whose first parameter it matches strictly (AnyView and Any
 * match everything, None included). In pre-order a callback sees the value first and its result is
 * descended into; in post-order it sees what the descent made of the value. A callback may return
 * anything that converts to Expected<Any>; Unchanged keeps the value.
 */
template <WalkOrder order, typename... Callbacks>
inline Expected<Any> StructuralMapExpected(Any root, Callbacks&&... callbacks) noexcept {
  static_assert(sizeof...(Callbacks) > 0, "StructuralMap needs at least one callback.");
  return tether::CatchExpected<Any>([&] {
    using Dispatch = tether::MapDispatch<std::remove_reference_t<Callbacks>...>;
    Dispatch self{std::tie(callbacks...)};
    tether::MutateDispatch dispatch{&Dispatch::Call, &self, order == WalkOrder::kPreOrder ? 0 : 1};
    return tether::RunDispatch(std::move(root), &dispatch);
  });
}

/*! \brief StructuralMapExpected that throws the error. */
template <WalkOrder order, typename... Callbacks>
inline Any StructuralMap(Any root, Callbacks&&... callbacks) {
  return StructuralMapExpected<order>(std::move(root), std::forward<Callbacks>(callbacks)...)
      .value();
}

/*!
 * \brief The value as callbacks (value, mutator, [InplaceMode]) rebuild it.
 *
 * The callback that matches a value owns it and its parts; the parts of a value that matches none
 * are mutated by default.
 */
template <typename... Callbacks>
inline Expected<Any> StructuralMutateExpected(Any root, Callbacks&&... callbacks) noexcept {
  static_assert(sizeof...(Callbacks) > 0, "StructuralMutate needs at least one callback.");
  return tether::CatchExpected<Any>([&] {
    using Dispatch = tether::OwnDispatch<std::remove_reference_t<Callbacks>...>;
    Dispatch self{std::tie(callbacks...)};
    tether::MutateDispatch dispatch{&Dispatch::Call, &self, 2};
    return tether::RunDispatch(std::move(root), &dispatch);
  });
}

/*! \brief StructuralMutateExpected that throws the error. */
template <typename... Callbacks>
inline Any StructuralMutate(Any root, Callbacks&&... callbacks) {
  return StructuralMutateExpected(std::move(root), std::forward<Callbacks>(callbacks)...).value();
}

/*! \brief The root of layers that map: remembers what variables became. */
class StructuralMapEngineBase : public StructuralMutatorObj {
 public:
  explicit StructuralMapEngineBase(const StructuralMutatorVTable* vtable)
      : StructuralMutatorObj(vtable) {}

 protected:
  /*! \brief The last two slots of the vtables of engines. */
  static TVMFFIAny VarRemapGetImpl(StructuralMutatorObj* self, AnyView var) noexcept {
    auto* engine = static_cast<StructuralMapEngineBase*>(self);
    const Object* key = KeyOf(var);
    if (TVM_FFI_PREDICT_FALSE(key == nullptr)) {
      return detail::AnyUnsafe::MoveAnyToTVMFFIAny(Any(BadKey()));
    }
    auto it = engine->remap_.find(key);
    Any found = it == engine->remap_.end() ? Any() : it->second.second;
    return detail::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(found));
  }
  static TVMFFIAny VarRemapSetImpl(StructuralMutatorObj* self, AnyView var,
                                   AnyView mapped) noexcept {
    auto* engine = static_cast<StructuralMapEngineBase*>(self);
    Expected<Any> done = tether::CatchExpected<Any>([&]() -> Expected<Any> {
      if (KeyOf(var) == nullptr) return BadKey();
      // What was recorded before is dropped last: that may run user code.
      std::pair<Any, Any> entry(var, mapped);
      std::swap(engine->remap_[KeyOf(var)], entry);
      return Any();
    });
    return detail::ExpectedUnsafe::MoveToTVMFFIAny(std::move(done));
  }

  static Error BadKey() noexcept {
    return tether::NewError("TypeError", "Variable-remap key must be an object-backed value");
  }
  static const Object* KeyOf(AnyView var) {
    if (var.type_index() < TypeIndex::kTVMFFIStaticObjectBegin) return nullptr;
    return detail::AnyUnsafe::RawObjectPtrFromAnyViewAfterCheck(var);
  }

 private:
  // By address; the key is kept alive with its value.
  std::unordered_map<const Object*, std::pair<Any, Any>> remap_;
};

namespace tether {

// What the map engines have in common. Derived has Dispatch(value), an Expected<Any>.
template <typename Derived, typename Parent, WalkOrder order>
class MapEngineLayer : public Parent {
 public:
  template <typename... ParentArgs>
  explicit MapEngineLayer(ParentArgs&&... parent_args)
      : Parent(&kVTable, std::forward<ParentArgs>(parent_args)...) {}

 private:
  using Result = Expected<UnchangedOr<Any>>;

  static TVMFFIAny MutateImpl(StructuralMutatorObj* self, AnyView value) noexcept {
    return detail::ExpectedUnsafe::MoveToTVMFFIAny(
        static_cast<MapEngineLayer*>(self)->MapValue(value, InplaceMode::kDisallow));
  }
  static TVMFFIAny InplaceImpl(StructuralMutatorObj* self, AnyView value) noexcept {
    return detail::ExpectedUnsafe::MoveToTVMFFIAny(
        static_cast<MapEngineLayer*>(self)->MapValue(value, InplaceMode::kAllow));
  }
  static constexpr StructuralMutatorVTable kVTable{
      &MapEngineLayer::MutateImpl, &MapEngineLayer::InplaceImpl, &Parent::VarRemapGetImpl,
      &Parent::VarRemapSetImpl};

  Result MapValue(AnyView value, InplaceMode mode) noexcept {
    RecursionLimit limit(&stack_begin_);
    if (limit.IsReached()) return RecursionLimit::Reached();
    if constexpr (order == WalkOrder::kPreOrder) {
      Expected<Any> mapped = Call(value);
      if (mapped.is_err()) return mapped.error();
      Any replaced = std::move(mapped).value();
      const bool is_same =
          replaced.type_index() == TypeIndex::kTVMFFIUnchanged || AnyView(replaced).same_as(value);
      if (is_same) {
        replaced = Any(Unchanged{});
        return Parent::DefaultMutateExpected(value, mode);
      }
      Result below = Parent::DefaultMutateExpected(
          replaced, IsUniqueObject(replaced) ? InplaceMode::kAllow : InplaceMode::kDisallow);
      if (below.is_err() || below.type_index() != TypeIndex::kTVMFFIUnchanged) return below;
      return UnchangedOr<Any>(std::move(replaced));
    } else {
      Result below = Parent::DefaultMutateExpected(value, mode);
      if (below.is_err()) return below;
      Any made;
      const bool is_unchanged = below.type_index() == TypeIndex::kTVMFFIUnchanged;
      if (!is_unchanged) made = detail::ExpectedUnsafe::GetData(below);
      Expected<Any> mapped = Call(is_unchanged ? value : AnyView(made));
      if (mapped.is_err()) return mapped.error();
      Any result = std::move(mapped).value();
      if (result.type_index() != TypeIndex::kTVMFFIUnchanged) return UnchangedOr<Any>(result);
      if (is_unchanged) return UnchangedOr<Any>(Unchanged{});
      return UnchangedOr<Any>(std::move(made));
    }
  }

  Expected<Any> Call(AnyView value) noexcept {
    Expected<Any> result =
        CatchExpected<Any>([&] { return static_cast<Derived*>(this)->Dispatch(value); });
    AddErrorContext(result, value);
    return result;
  }

  uintptr_t stack_begin_ = 0;
};

}  // namespace tether

/*!
 * \brief A layer that maps. Parent is StructuralMapEngineBase or a layer derived from it, which
 * takes the vtable as its first constructor argument. Callbacks: (value, state of Parent...,
 * [kind]).
 */
template <typename Parent, WalkOrder order, typename... Callbacks>
class StructuralMapEngine
    : public tether::MapEngineLayer<StructuralMapEngine<Parent, order, Callbacks...>, Parent,
                                    order> {
  using Layer =
      tether::MapEngineLayer<StructuralMapEngine<Parent, order, Callbacks...>, Parent, order>;

 public:
  template <typename... ParentArgs>
  explicit StructuralMapEngine(Callbacks... callbacks, ParentArgs&&... parent_args)
      : Layer(std::forward<ParentArgs>(parent_args)...), callbacks_(std::move(callbacks)...) {}

 private:
  friend Layer;
  Expected<Any> Dispatch(AnyView value) {
    Expected<Any> mapped = Any(Unchanged{});
    const auto state = this->StateTuple();
    const TVMFFIDefRegionKind kind = this->def_region_kind();
    std::apply(
        [&](auto&... callbacks) {
          (void)(tether::CallIfFits<tether::FirstParam<decltype(callbacks)>>(
                     value,
                     [&](auto&& arg) {
                       mapped = tether::ToMapped(tether::CallWithState(
                           callbacks, std::forward<decltype(arg)>(arg), state, kind));
                     }) ||
                 ...);
        },
        callbacks_);
    return mapped;
  }

  std::tuple<Callbacks...> callbacks_;
};

/*! \brief A layer that maps by functions found at run time: entries (type index, function),
 * searched in order, those without the kind of region first. */
template <typename Parent, WalkOrder order>
class StructuralMapDynEngine
    : public tether::MapEngineLayer<StructuralMapDynEngine<Parent, order>, Parent, order> {
  using Layer = tether::MapEngineLayer<StructuralMapDynEngine<Parent, order>, Parent, order>;

 public:
  using CallbackList = Array<Tuple<int32_t, Function>>;

  template <typename... ParentArgs>
  explicit StructuralMapDynEngine(CallbackList callbacks, CallbackList callbacks_with_kind,
                                  ParentArgs&&... parent_args)
      : Layer(std::forward<ParentArgs>(parent_args)...),
        callbacks_(std::move(callbacks)),
        callbacks_with_kind_(std::move(callbacks_with_kind)) {}

 private:
  friend Layer;
  Expected<Any> Dispatch(AnyView value) {
    for (const auto& entry : callbacks_) {
      if (!detail::RuntimeTypeIndexMatch(value.type_index(), entry.template get<0>())) continue;
      return entry.template get<1>().template CallExpected<Any>(value);
    }
    for (const auto& entry : callbacks_with_kind_) {
      if (!detail::RuntimeTypeIndexMatch(value.type_index(), entry.template get<0>())) continue;
      return entry.template get<1>().template CallExpected<Any>(
          value, static_cast<int32_t>(this->def_region_kind()));
    }
    return Any(Unchanged{});
  }

  CallbackList callbacks_;
  CallbackList callbacks_with_kind_;
};

/*! \brief A layer whose callbacks own the descent: (value, mutator, [InplaceMode]). */
template <typename Parent, typename... Callbacks>
class StructuralMutateEngine : public Parent {
 public:
  template <typename... ParentArgs>
  explicit StructuralMutateEngine(Callbacks... callbacks, ParentArgs&&... parent_args)
      : Parent(&kVTable, std::forward<ParentArgs>(parent_args)...),
        callbacks_(std::move(callbacks)...) {}

 private:
  using Result = Expected<UnchangedOr<Any>>;

  static TVMFFIAny MutateImpl(StructuralMutatorObj* self, AnyView value) noexcept {
    return detail::ExpectedUnsafe::MoveToTVMFFIAny(
        static_cast<StructuralMutateEngine*>(self)->MutateValue(value, InplaceMode::kDisallow));
  }
  static TVMFFIAny InplaceImpl(StructuralMutatorObj* self, AnyView value) noexcept {
    return detail::ExpectedUnsafe::MoveToTVMFFIAny(
        static_cast<StructuralMutateEngine*>(self)->MutateValue(value, InplaceMode::kAllow));
  }
  static constexpr StructuralMutatorVTable kVTable{
      &StructuralMutateEngine::MutateImpl, &StructuralMutateEngine::InplaceImpl,
      &Parent::VarRemapGetImpl, &Parent::VarRemapSetImpl};

  Expected<Any> MutateValue(AnyView value, InplaceMode mode) noexcept {
    tether::RecursionLimit limit(&stack_begin_);
    if (limit.IsReached()) return tether::RecursionLimit::Reached();
    bool matched = false;
    Expected<Any> result = tether::CatchExpected<Any>([&] {
      Expected<Any> mutated = Any(Unchanged{});
      auto* self = static_cast<typename Parent::MutatorObjType*>(this);
      matched = std::apply(
          [&](auto&... callbacks) {
            return (tether::CallIfFits<tether::FirstParam<decltype(callbacks)>>(
                        value,
                        [&](auto&& arg) {
                          mutated = tether::CallMutator(callbacks, std::forward<decltype(arg)>(arg),
                                                        self, mode);
                        }) ||
                    ...);
          },
          callbacks_);
      return mutated;
    });
    if (result.is_ok() && !matched) return Parent::DefaultMutateExpected(value, mode);
    tether::AddErrorContext(result, value);
    return result;
  }

  std::tuple<Callbacks...> callbacks_;
  uintptr_t stack_begin_ = 0;
};

}  // namespace ffi
}  // namespace tvm

#endif  // TVM_FFI_EXTRA_STRUCTURAL_MUTATE_H_
