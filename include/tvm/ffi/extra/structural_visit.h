// SPDX-License-Identifier: Apache-2.0
//
// Visiting the parts of any value: elements, keys and values, reflected fields.
//
//   int sum = 0;
//   StructuralWalk<WalkOrder::kPreOrder>(
//       tree,
//       [&](int64_t i) -> Expected<WalkResult> { sum += i; return WalkResult::Advance(); },
//       [&](const Block& b) -> Expected<WalkResult> { return WalkResult::Skip(); });
//
// A walk calls the first callback whose parameter fits each value. For anything more, derive from
// StructuralVisitorObj: its vtable decides what to do with a value, and DefaultVisitExpected goes
// on to the parts. A class may register its own way to do that as `__s_visit__`.
#ifndef TVM_FFI_EXTRA_STRUCTURAL_VISIT_H_
#define TVM_FFI_EXTRA_STRUCTURAL_VISIT_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/cast.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tuple.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/expected.h>
#include <tvm/ffi/extra/visit_error_context.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/function_details.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/accessor.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

/*! \brief Ends a visit early and carries a value out of it. */
class VisitInterruptObj : public Object {
 public:
  Any value;

  VisitInterruptObj() = default;
  explicit VisitInterruptObj(Any value) : value(std::move(value)) {}

  static constexpr int32_t _type_index = TypeIndex::kTVMFFIVisitInterrupt;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC("ffi.VisitInterrupt", VisitInterruptObj, Object);
};

static_assert(sizeof(VisitInterruptObj) == 40, "fixed by the ABI");

/*! \brief Reference to a VisitInterruptObj, never null. */
class VisitInterrupt : public ObjectRef {
 public:
  VisitInterrupt() : VisitInterrupt(Any()) {}
  explicit VisitInterrupt(Any value) { data_ = make_object<VisitInterruptObj>(std::move(value)); }

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(VisitInterrupt, ObjectRef, VisitInterruptObj);
};

class StructuralVisitorObj;

/*!
 * \brief Visits one value. The owned result is None to go on, a VisitInterrupt to stop, or an
 * Error.
 *
 * Also what `__s_visit__` holds as an opaque pointer, to visit the parts of a value.
 */
using FStructuralVisit = TVMFFIAny (*)(StructuralVisitorObj* visitor, AnyView value) noexcept;

/*! \brief What a visitor class does; one static const instance per class. */
struct StructuralVisitorVTable {
  FStructuralVisit visit = nullptr;
};

namespace tether {

/*! \brief The region the value of a field is in, inside an object that passes on `inherited`. */
inline TVMFFIDefRegionKind FieldDefRegion(const TVMFFIFieldInfo* field,
                                          TVMFFIDefRegionKind inherited) {
  if (field->flags & kTVMFFIFieldFlagBitMaskSEqHashDefNonRecursive) {
    return kTVMFFIDefRegionKindNonRecursive;
  }
  if (field->flags & kTVMFFIFieldFlagBitMaskSEqHashDefRecursive) {
    return kTVMFFIDefRegionKindRecursive;
  }
  return inherited;
}

/*! \brief What an object met in `region` passes on: a non-recursive region ends at the variable. */
inline TVMFFIDefRegionKind InnerDefRegion(TVMFFISEqHashKind kind, TVMFFIDefRegionKind region) {
  bool clamped = kind == kTVMFFISEqHashKindFreeVar && region == kTVMFFIDefRegionKindNonRecursive;
  return clamped ? kTVMFFIDefRegionKindNone : region;
}

}  // namespace tether

/*! \brief Base of visitors. Derived classes need no type of their own. */
class StructuralVisitorObj : public Object {
 public:
  /*! \brief Visits a value; throws what the visit failed with. */
  Optional<VisitInterrupt> Visit(AnyView value) { return VisitExpected(value).value(); }

  /*! \brief Visits a value. */
  Expected<Optional<VisitInterrupt>> VisitExpected(AnyView value) noexcept {
    return details::ExpectedUnsafe::MoveFromTVMFFIAny<Optional<VisitInterrupt>>(
        vtable_->visit(this, value));
  }

  /*! \brief Visits the parts of a value, each through VisitExpected. */
  inline Expected<Optional<VisitInterrupt>> DefaultVisitExpected(AnyView value) noexcept;

  /*! \brief Whether the value being visited is in a place where variables are defined. */
  TVMFFIDefRegionKind def_region_kind() const { return def_region_mode_; }

  /*! \brief The result of callback(), called with another region in force. */
  template <typename Callback>
  auto WithDefRegionKind(TVMFFIDefRegionKind kind, Callback&& callback) {
    struct Restore {
      TVMFFIDefRegionKind* slot;
      TVMFFIDefRegionKind old;
      ~Restore() { *slot = old; }
    } restore{&def_region_mode_, std::exchange(def_region_mode_, kind)};
    return std::forward<Callback>(callback)();
  }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("ffi.StructuralVisitor", StructuralVisitorObj, Object);

 protected:
  explicit StructuralVisitorObj(const StructuralVisitorVTable* vtable) : vtable_(vtable) {}

  const StructuralVisitorVTable* vtable_;
  TVMFFIDefRegionKind def_region_mode_ = kTVMFFIDefRegionKindNone;

 private:
  inline Expected<Optional<VisitInterrupt>> VisitFieldsExpected(AnyView value) noexcept;
};

static_assert(sizeof(StructuralVisitorObj) == 40, "fixed by the ABI");

/*! \brief Reference to a StructuralVisitorObj, never null. */
class StructuralVisitor : public ObjectRef {
 public:
  explicit StructuralVisitor(ObjectPtr<StructuralVisitorObj> data) { data_ = std::move(data); }

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(StructuralVisitor, ObjectRef, StructuralVisitorObj);
};

namespace details {

/*! \brief Whether a visit is over: it failed or was interrupted. */
TVM_FFI_INLINE bool StructuralVisitNeedEarlyReturn(
    const Expected<Optional<VisitInterrupt>>& expected) noexcept {
  return expected.type_index() != TypeIndex::kTVMFFINone;
}

}  // namespace details

namespace tether {

/*! \brief Adds a value to the context of a failed visit, if it is an object. */
template <typename T>
inline void AddErrorContext(const Expected<T>& expected, AnyView value) {
  if (!expected.is_err() || value.type_index() < TypeIndex::kTVMFFIStaticObjectBegin) return;
  Error error = expected.error();
  details::UpdateVisitErrorContext(error, value.cast<ObjectRef>());
}

}  // namespace tether

/*! \brief In a FStructuralVisit: returns from it if the visit of a part says so. */
#define TVM_FFI_S_VISIT_MAYBE_EARLY_RETURN(expected)                                       \
  do {                                                                                     \
    auto tvm_ffi_visit_result_ = (expected);                                               \
    if (TVM_FFI_PREDICT_FALSE(                                                             \
            ::tvm::ffi::details::StructuralVisitNeedEarlyReturn(tvm_ffi_visit_result_))) { \
      return ::tvm::ffi::details::ExpectedUnsafe::MoveToTVMFFIAny(                         \
          std::move(tvm_ffi_visit_result_));                                               \
    }                                                                                      \
  } while (false)

/*! \brief The same; an error also learns that it happened inside `value`. */
#define TVM_FFI_S_VISIT_MAYBE_EARLY_RETURN_WITH_ERROR_CONTEXT(expected, value)             \
  do {                                                                                     \
    auto tvm_ffi_visit_result_ = (expected);                                               \
    if (TVM_FFI_PREDICT_FALSE(                                                             \
            ::tvm::ffi::details::StructuralVisitNeedEarlyReturn(tvm_ffi_visit_result_))) { \
      ::tvm::ffi::tether::AddErrorContext(tvm_ffi_visit_result_, (value));                 \
      return ::tvm::ffi::details::ExpectedUnsafe::MoveToTVMFFIAny(                         \
          std::move(tvm_ffi_visit_result_));                                               \
    }                                                                                      \
  } while (false)

inline Expected<Optional<VisitInterrupt>> StructuralVisitorObj::DefaultVisitExpected(
    AnyView value) noexcept {
  using Result = Optional<VisitInterrupt>;
  static const reflection::TypeAttrColumn hooks(reflection::type_attr::kStructuralVisit);
  AnyView hook = hooks[value.type_index()];
  switch (hook.type_index()) {
    case TypeIndex::kTVMFFINone:
      if (value.type_index() < TypeIndex::kTVMFFIStaticObjectBegin) return Result(std::nullopt);
      return VisitFieldsExpected(value);
    case TypeIndex::kTVMFFIOpaquePtr: {
      auto visit = reinterpret_cast<FStructuralVisit>(hook.cast<void*>());
      return details::ExpectedUnsafe::MoveFromTVMFFIAny<Result>(visit(this, value));
    }
    case TypeIndex::kTVMFFIFunction:
      return hook.cast<Function>().CallExpected<Result>(this, value);
    default:
      return Error("TypeError", "__s_visit__ must be an opaque function pointer or ffi.Function",
                   "");
  }
}

inline Expected<Optional<VisitInterrupt>> StructuralVisitorObj::VisitFieldsExpected(
    AnyView value) noexcept {
  using Result = Expected<Optional<VisitInterrupt>>;
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(value.type_index());
  TVMFFISEqHashKind kind = info->metadata == nullptr ? kTVMFFISEqHashKindUnsupported
                                                     : info->metadata->structural_eq_hash_kind;
  TVMFFIDefRegionKind inherited = tether::InnerDefRegion(kind, def_region_mode_);
  const Object* object = value.as<Object>();
  Result result = Optional<VisitInterrupt>(std::nullopt);
  reflection::ForEachFieldInfoWithEarlyStop(info, [&](const TVMFFIFieldInfo* field) {
    if (field->flags & kTVMFFIFieldFlagBitMaskSEqHashIgnore) return false;
    TVMFFIAny raw = AnyView().CopyToTVMFFIAny();
    if (field->getter(tether::FieldAddress(object, field), &raw) != 0) {
      result = details::MoveFromSafeCallRaised();
      return true;
    }
    Any part = details::AnyUnsafe::MoveTVMFFIAnyToAny(&raw);
    result = WithDefRegionKind(tether::FieldDefRegion(field, inherited),
                               [&] { return VisitExpected(part); });
    return details::StructuralVisitNeedEarlyReturn(result);
  });
  return result;
}

/*! \brief What a walk does after a callback: go on, leave out the parts of the value, or stop. */
class WalkResult : public Variant<VisitInterrupt, int32_t> {
 public:
  using Base = Variant<VisitInterrupt, int32_t>;

  static WalkResult Advance() { return WalkResult(Base(kAdvance)); }
  static WalkResult Skip() { return WalkResult(Base(kSkip)); }
  static WalkResult Interrupt(VisitInterrupt interrupt = VisitInterrupt()) {
    return WalkResult(Base(std::move(interrupt)));
  }

  bool IsSkip() const { return as<int32_t>() == kSkip; }

 private:
  static constexpr int32_t kAdvance = 0;
  static constexpr int32_t kSkip = 1;
  explicit WalkResult(Base base) : Base(std::move(base)) {}
  friend struct TypeTraits<WalkResult>;
};

/*! \brief A VisitInterrupt or an int; None is read as Advance, so that callbacks may return
 * nothing. */
template <>
struct TypeTraits<WalkResult> : public TypeTraits<WalkResult::Base> {
  using BaseTraits = TypeTraits<WalkResult::Base>;

  static WalkResult CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return WalkResult(BaseTraits::CopyFromAnyViewAfterCheck(src));
  }
  static WalkResult MoveFromAnyAfterCheck(TVMFFIAny* src) {
    return WalkResult(BaseTraits::MoveFromAnyAfterCheck(src));
  }
  static std::optional<WalkResult> TryCastFromAnyView(const TVMFFIAny* src) {
    if (src->type_index == TypeIndex::kTVMFFINone) return WalkResult::Advance();
    std::optional<WalkResult::Base> base = BaseTraits::TryCastFromAnyView(src);
    if (!base.has_value()) return std::nullopt;
    return WalkResult(*std::move(base));
  }
  static std::string TypeStr() { return "WalkResult"; }
};

/*! \brief Whether a callback sees a value before or after its parts. */
enum class WalkOrder : int32_t { kPreOrder = 0, kPostOrder = 1 };

namespace tether {

// Runs the callback if the value is what it takes. False: it is not.
template <typename Callback>
inline bool CallIfMatches(Callback& callback, AnyView value, TVMFFIDefRegionKind kind,  // NOLINT(*)
                          Expected<WalkResult>* result) {
  using Info = details::FunctionInfo<std::decay_t<Callback>>;
  using Param = std::decay_t<std::tuple_element_t<0, typename Info::ArgType>>;
  static_assert(Info::num_args == 1 || Info::num_args == 2,
                "A walk callback takes (value) or (value, TVMFFIDefRegionKind).");
  auto call = [&](const auto& arg) -> Expected<WalkResult> {
    if constexpr (Info::num_args == 1) {
      return callback(arg);
    } else {
      return callback(arg, kind);
    }
  };
  if constexpr (std::is_same_v<Param, AnyView> || std::is_same_v<Param, Any>) {
    *result = call(Param(value));
  } else {
    std::optional<Param> arg = value.as<Param>();
    if (!arg.has_value()) return false;
    *result = call(*arg);
  }
  return true;
}

}  // namespace tether

/*!
 * \brief Walks a value and everything in it, except None.
 *
 * Each value goes to the first callback whose first parameter it matches strictly (AnyView and Any
 * match everything). Skip has no effect in post-order. An error comes back with a
 * VisitErrorContext.
 */
template <WalkOrder order, typename... Callbacks>
inline Expected<Optional<VisitInterrupt>> StructuralWalkExpected(
    AnyView root, Callbacks&&... callbacks) noexcept {
  static_assert(sizeof...(Callbacks) > 0, "StructuralWalk needs at least one callback.");
  using Entry = Tuple<int32_t, Function>;
  try {
    // One function that tries them all; errors pass through it like through any other function.
    auto dispatch = [&](AnyView value, int32_t kind) -> Expected<WalkResult> {
      Expected<WalkResult> result = WalkResult::Advance();
      (void)(tether::CallIfMatches(callbacks, value, static_cast<TVMFFIDefRegionKind>(kind),
                                   &result) ||
             ...);
      return result;
    };
    Array<Entry> with_kind{
        Entry(static_cast<int32_t>(TypeIndex::kTVMFFIAny), Function::FromTyped(dispatch))};
    return Function::GetGlobalRequired("ffi.StructuralWalk")
        .CallExpected<Optional<VisitInterrupt>>(root, Array<Entry>(), with_kind,
                                                static_cast<int32_t>(order));
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error("InternalError", error.what(), "");
  } catch (...) {
    return Error("RuntimeError", tether::kUnknownException, "");
  }
}

/*! \brief StructuralWalkExpected that throws the error. */
template <WalkOrder order, typename... Callbacks>
inline Optional<VisitInterrupt> StructuralWalk(AnyView root, Callbacks&&... callbacks) {
  return StructuralWalkExpected<order>(root, std::forward<Callbacks>(callbacks)...).value();
}

}  // namespace ffi
}  // namespace tvm

#endif  // TVM_FFI_EXTRA_STRUCTURAL_VISIT_H_
