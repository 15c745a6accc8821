// SPDX-License-Identifier: Apache-2.0
//
// Visiting the parts of any value: elements, values of maps, reflected fields.
//
//   int sum = 0;
//   StructuralWalk<WalkOrder::kPreOrder>(
//       tree,
//       [&](int64_t i) -> Expected<WalkResult> { sum += i; return WalkResult::Advance(); },
//       [&](const Block& b) -> Expected<WalkResult> { return WalkResult::Skip(); });
//
// A walk calls the first callback whose parameter fits each value. StructuralVisit leaves the
// descent to the callback. For anything more, derive from StructuralVisitorObj: its vtable decides
// what to do with a value, and DefaultVisitExpected goes on to the parts. A class may register its
// own way to do that as `__s_visit__`.
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
#include <tvm/ffi/function_detail.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/accessor.h>

#include <cstddef>
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
  static constexpr bool _type_final = true;
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
using FStructuralVisitABI = TVMFFIAny (*)(StructuralVisitorObj* visitor, AnyView value) noexcept;

/*! \brief The entry of `__s_visit__`. */
using FStructuralVisit =
    reflection::NativeFunctionView<Optional<VisitInterrupt>(StructuralVisitorObj*, AnyView)>;

/*! \brief What a visitor class does; one static const instance per class. */
struct StructuralVisitorVTable {
  FStructuralVisitABI visit = nullptr;
};

namespace tether {

/*! \brief The region the value of a field is in, inside an object that passes on `inherited`. */
inline TVMFFIDefRegionKind FieldDefRegion(const TVMFFIFieldInfo* field,
                                          TVMFFIDefRegionKind inherited) {
  if (inherited == kTVMFFIDefRegionKindPattern) return inherited;
  if (field->flags & kTVMFFIFieldFlagBitMaskSEqHashDefSimple) return kTVMFFIDefRegionKindSimple;
  if (field->flags & kTVMFFIFieldFlagBitMaskSEqHashDefPattern) return kTVMFFIDefRegionKindPattern;
  return inherited;
}

/*! \brief What an object met in `region` passes on: a simple region ends at the variable. */
inline TVMFFIDefRegionKind InnerDefRegion(TVMFFISEqHashKind kind, TVMFFIDefRegionKind region) {
  bool clamped = kind == kTVMFFISEqHashKindFreeVar && region == kTVMFFIDefRegionKindSimple;
  return clamped ? kTVMFFIDefRegionKindNone : region;
}

/*! \brief Sets a region until the end of the scope. Inside a pattern all is pattern. */
class RegionScope {
 public:
  RegionScope(TVMFFIDefRegionKind* slot, TVMFFIDefRegionKind kind) : slot_(slot), old_(*slot) {
    if (old_ != kTVMFFIDefRegionKindPattern) *slot = kind;
  }
  RegionScope(const RegionScope&) = delete;
  RegionScope& operator=(const RegionScope&) = delete;
  ~RegionScope() { *slot_ = old_; }

 private:
  TVMFFIDefRegionKind* slot_;
  TVMFFIDefRegionKind old_;
};

inline TVMFFISEqHashKind StructuralKindOf(const TVMFFITypeInfo* info) {
  return info->metadata == nullptr ? kTVMFFISEqHashKindUnsupported
                                   : info->metadata->structural_eq_hash_kind;
}

}  // namespace tether

/*! \brief Base of visitors. Derived classes need no type of their own. */
class StructuralVisitorObj : public Object {
 public:
  /*! \brief What callbacks of an engine get a pointer to; a layer may name itself. */
  using VisitorObjType = StructuralVisitorObj;
  /*! \brief What a layer passes to the callbacks of a walk besides the value. */
  using StateTupleType = std::tuple<>;

  /*! \brief Visits a value; throws what the visit failed with. */
  Optional<VisitInterrupt> Visit(AnyView value) { return VisitExpected(value).value(); }

  /*! \brief Visits a value. */
  Expected<Optional<VisitInterrupt>> VisitExpected(AnyView value) noexcept {
    return detail::ExpectedUnsafe::MoveFromTVMFFIAny<Optional<VisitInterrupt>>(
        vtable_->visit(this, value));
  }

  /*! \brief Visits the parts of a value, each through VisitExpected. */
  inline Expected<Optional<VisitInterrupt>> DefaultVisitExpected(AnyView value) noexcept;

  /*! \brief Whether the value being visited is in a place where variables are defined. */
  TVMFFIDefRegionKind def_region_kind() const { return def_region_mode_; }

  /*! \brief The result of callback(), called with another region in force. */
  template <typename Callback>
  auto WithDefRegionKind(TVMFFIDefRegionKind kind, Callback&& callback) {
    tether::RegionScope scope(&def_region_mode_, kind);
    return std::forward<Callback>(callback)();
  }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("ffi.StructuralVisitor", StructuralVisitorObj, Object);

 protected:
  explicit StructuralVisitorObj(const StructuralVisitorVTable* vtable) : vtable_(vtable) {}
  // A copy would have the table of a derived class without its members.
  StructuralVisitorObj(const StructuralVisitorObj&) = delete;
  StructuralVisitorObj& operator=(const StructuralVisitorObj&) = delete;

  StateTupleType StateTuple() const noexcept { return {}; }

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

namespace detail {

/*! \brief Whether a visit is over: it failed or was interrupted. */
TVM_FFI_INLINE bool StructuralVisitNeedEarlyReturn(
    const Expected<Optional<VisitInterrupt>>& expected) noexcept {
  return expected.type_index() != TypeIndex::kTVMFFINone;
}
TVM_FFI_INLINE bool StructuralVisitNeedEarlyReturn(
    const Optional<VisitInterrupt>& result) noexcept {
  return result.has_value();
}

}  // namespace detail

namespace tether {

/*! \brief Adds a value to the context of a failed visit, if it is an object. */
template <typename T>
inline void AddErrorContext(const Expected<T>& expected, AnyView value) noexcept {
  if (!expected.is_err() || value.type_index() < TypeIndex::kTVMFFIStaticObjectBegin) return;
  Error error = expected.error();
  ObjectRef node = value.cast<ObjectRef>();
  // Hooks compiled with releases up to 0.1.14 may have added it already.
  if (Optional<VisitErrorContext> context = VisitErrorContext::TryGetFromError(error)) {
    const List<ObjectRef>& nodes = context.value()->reverse_visit_pattern;
    if (!nodes.empty() && nodes.back().same_as(node)) return;
  }
  detail::UpdateVisitErrorContext(error, node);
}

}  // namespace tether

/*! \brief In a function that returns an Optional<VisitInterrupt> or an Expected of it: returns from
 * it if the visit of a part says so. */
#define TVM_FFI_S_VISIT_MAYBE_EARLY_RETURN(expected)                                      \
  do {                                                                                    \
    auto tvm_ffi_visit_result_ = (expected);                                              \
    if (TVM_FFI_PREDICT_FALSE(                                                            \
            ::tvm::ffi::detail::StructuralVisitNeedEarlyReturn(tvm_ffi_visit_result_))) { \
      return tvm_ffi_visit_result_;                                                       \
    }                                                                                     \
  } while (false)

/*! \brief For hooks in the raw form that sources up to 0.1.14 have: an error also learns that it
 * happened inside `value`. */
#define TVM_FFI_S_VISIT_MAYBE_EARLY_RETURN_WITH_ERROR_CONTEXT(expected, value)            \
  do {                                                                                    \
    auto tvm_ffi_visit_result_ = (expected);                                              \
    if (TVM_FFI_PREDICT_FALSE(                                                            \
            ::tvm::ffi::detail::StructuralVisitNeedEarlyReturn(tvm_ffi_visit_result_))) { \
      ::tvm::ffi::tether::AddErrorContext(tvm_ffi_visit_result_, (value));                \
      return ::tvm::ffi::detail::ExpectedUnsafe::MoveToTVMFFIAny(                         \
          std::move(tvm_ffi_visit_result_));                                              \
    }                                                                                     \
  } while (false)

inline Expected<Optional<VisitInterrupt>> StructuralVisitorObj::DefaultVisitExpected(
    AnyView value) noexcept {
  using Result = Optional<VisitInterrupt>;
  static const reflection::TypeAttrColumn hooks(type_attr::kStructuralVisit);
  AnyView hook = hooks[value.type_index()];
  switch (hook.type_index()) {
    case TypeIndex::kTVMFFINone:
      if (value.type_index() < TypeIndex::kTVMFFIStaticObjectBegin) return Result(std::nullopt);
      return VisitFieldsExpected(value);
    case TypeIndex::kTVMFFIOpaquePtr: {
      auto visit = reinterpret_cast<FStructuralVisitABI>(hook.cast<void*>());
      return detail::ExpectedUnsafe::MoveFromTVMFFIAny<Result>(visit(this, value));
    }
    case TypeIndex::kTVMFFIFunction:
      return hook.cast<Function>().CallExpected<Result>(this, value);
    default:
      return tether::NewError("TypeError",
                              "__s_visit__ must be an opaque function pointer or ffi.Function");
  }
}

inline Expected<Optional<VisitInterrupt>> StructuralVisitorObj::VisitFieldsExpected(
    AnyView value) noexcept {
  using Result = Expected<Optional<VisitInterrupt>>;
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(value.type_index());
  TVMFFIDefRegionKind inherited =
      tether::InnerDefRegion(tether::StructuralKindOf(info), def_region_mode_);
  const Object* object = value.as<Object>();
  Result result = Optional<VisitInterrupt>(std::nullopt);
  reflection::ForEachFieldInfoWithEarlyStop(info, [&](const TVMFFIFieldInfo* field) {
    if (field->flags & kTVMFFIFieldFlagBitMaskSEqHashIgnore) return false;
    TVMFFIAny raw = AnyView().CopyToTVMFFIAny();
    if (field->getter(tether::FieldAddress(object, field), &raw) != 0) {
      result = detail::MoveFromSafeCallRaised();
      return true;
    }
    Any part = detail::AnyUnsafe::MoveTVMFFIAnyToAny(&raw);
    tether::RegionScope scope(&def_region_mode_, tether::FieldDefRegion(field, inherited));
    result = VisitExpected(part);
    return detail::StructuralVisitNeedEarlyReturn(result);
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

// Native recursion of engines that clients compile. The limit suits threads with small stacks, too.
class RecursionLimit {
 public:
  explicit RecursionLimit(uintptr_t* begin) : begin_(begin), is_first_(*begin == 0) {
    if (is_first_) *begin = StackAddress();
  }
  RecursionLimit(const RecursionLimit&) = delete;
  RecursionLimit& operator=(const RecursionLimit&) = delete;
  ~RecursionLimit() {
    if (is_first_) *begin_ = 0;
  }
  bool IsReached() const { return *begin_ - StackAddress() > kMaxStack; }
  static Error Reached() noexcept {
    return NewError("ValueError", "the value is nested too deeply for an engine that recurses");
  }

 private:
  static constexpr uintptr_t kMaxStack = 2 * 1024 * 1024;
  uintptr_t* begin_;
  bool is_first_;
};

// Runs `call` with the value as a Param if the value is one. False: it is not.
template <typename Param, typename Call>
bool CallIfFits(AnyView value, Call&& call) {
  if constexpr (std::is_same_v<Param, AnyView> || std::is_same_v<Param, Any>) {
    call(Param(value));
  } else {
    std::optional<Param> arg = value.as<Param>();
    if (!arg.has_value()) return false;
    call(*std::move(arg));
  }
  return true;
}

template <typename Callback>
using FirstParam = std::decay_t<
    std::tuple_element_t<0, typename detail::FunctionInfo<std::decay_t<Callback>>::ArgType>>;

// callback(value, state..., [kind]).
template <typename Callback, typename Value, typename State>
auto CallWithState(Callback& callback, Value&& value, const State& state,  // NOLINT(*)
                   TVMFFIDefRegionKind kind) {
  constexpr size_t kArgs = detail::FunctionInfo<std::decay_t<Callback>>::num_args;
  constexpr size_t kState = std::tuple_size_v<State>;
  static_assert(kArgs == kState + 1 || kArgs == kState + 2,
                "a callback takes (value, state...) or (value, state..., TVMFFIDefRegionKind)");
  return std::apply(
      [&](const auto&... entries) {
        if constexpr (kArgs == kState + 1) {
          return callback(std::forward<Value>(value), entries...);
        } else {
          return callback(std::forward<Value>(value), entries..., kind);
        }
      },
      state);
}

// Runs the callback if the value is what it takes. False: it is not.
template <typename Callback, typename State>
inline bool CallIfMatches(Callback& callback, AnyView value, const State& state,  // NOLINT(*)
                          TVMFFIDefRegionKind kind, Expected<WalkResult>* result) {
  return CallIfFits<FirstParam<Callback>>(value, [&](auto&& arg) {
    *result = Expected<WalkResult>(CallWithState(callback, arg, state, kind));
  });
}

// Calls code that may throw, where only a value can be returned.
template <typename R, typename Call>
Expected<R> CatchExpected(Call&& call) noexcept {
  try {
    return call();
  } catch (...) {
    return CaughtError();
  }
}

}  // namespace tether

/*!
 * \brief A layer that walks: callbacks see every value, before or after its parts.
 *
 * Parent is StructuralVisitorObj or a layer derived from it, which takes the vtable as its first
 * constructor argument. A callback is called as (value, state of Parent..., [kind]).
 */
template <typename Parent, WalkOrder order, typename... Callbacks>
class StructuralWalkEngine : public Parent {
 public:
  template <typename... ParentArgs>
  explicit StructuralWalkEngine(Callbacks... callbacks, ParentArgs&&... parent_args)
      : Parent(&kVTable, std::forward<ParentArgs>(parent_args)...),
        callbacks_(std::move(callbacks)...) {}

 private:
  using Result = Expected<Optional<VisitInterrupt>>;

  static TVMFFIAny VisitImpl(StructuralVisitorObj* self, AnyView value) noexcept {
    return detail::ExpectedUnsafe::MoveToTVMFFIAny(
        static_cast<StructuralWalkEngine*>(self)->WalkValue(value));
  }
  static constexpr StructuralVisitorVTable kVTable{&StructuralWalkEngine::VisitImpl};

  Result WalkValue(AnyView value) noexcept {
    if (value == nullptr) return Optional<VisitInterrupt>(std::nullopt);
    tether::RecursionLimit limit(&stack_begin_);
    Result result = limit.IsReached() ? Result(tether::RecursionLimit::Reached()) : Both(value);
    tether::AddErrorContext(result, value);
    return result;
  }

  Result Both(AnyView value) noexcept {
    bool skip = false;
    if constexpr (order == WalkOrder::kPreOrder) {
      Result result = Dispatch(value, &skip);
      if (skip || detail::StructuralVisitNeedEarlyReturn(result)) return result;
      return Parent::DefaultVisitExpected(value);
    } else {
      Result result = Parent::DefaultVisitExpected(value);
      if (detail::StructuralVisitNeedEarlyReturn(result)) return result;
      return Dispatch(value, &skip);
    }
  }

  Result Dispatch(AnyView value, bool* skip) noexcept {
    Expected<WalkResult> answer = tether::CatchExpected<WalkResult>([&] {
      Expected<WalkResult> result = WalkResult::Advance();
      const auto state = this->StateTuple();
      std::apply(
          [&](auto&... callbacks) {
            (void)(tether::CallIfMatches(callbacks, value, state, this->def_region_kind(),
                                         &result) ||
                   ...);
          },
          callbacks_);
      return result;
    });
    if (answer.is_err()) return answer.error();
    WalkResult walk = answer.value();
    *skip = walk.IsSkip();
    if (auto interrupt = walk.template as<VisitInterrupt>()) {
      return Optional<VisitInterrupt>(*interrupt);
    }
    return Optional<VisitInterrupt>(std::nullopt);
  }

  std::tuple<Callbacks...> callbacks_;
  uintptr_t stack_begin_ = 0;
};

/*!
 * \brief A layer whose callbacks own the descent: (value, visitor) -> Expected<Optional<
 * VisitInterrupt>>. The parts of a value that no callback takes are visited by Parent. None is not
 * shown to callbacks.
 */
template <typename Parent, typename... Callbacks>
class StructuralVisitEngine : public Parent {
 public:
  template <typename... ParentArgs>
  explicit StructuralVisitEngine(Callbacks... callbacks, ParentArgs&&... parent_args)
      : Parent(&kVTable, std::forward<ParentArgs>(parent_args)...),
        callbacks_(std::move(callbacks)...) {}

 private:
  using Result = Expected<Optional<VisitInterrupt>>;

  static TVMFFIAny VisitImpl(StructuralVisitorObj* self, AnyView value) noexcept {
    return detail::ExpectedUnsafe::MoveToTVMFFIAny(
        static_cast<StructuralVisitEngine*>(self)->VisitValue(value));
  }
  static constexpr StructuralVisitorVTable kVTable{&StructuralVisitEngine::VisitImpl};

  Result VisitValue(AnyView value) noexcept {
    if (value == nullptr) return Optional<VisitInterrupt>(std::nullopt);
    tether::RecursionLimit limit(&stack_begin_);
    Result result = limit.IsReached() ? Result(tether::RecursionLimit::Reached()) : Dispatch(value);
    tether::AddErrorContext(result, value);
    return result;
  }

  Result Dispatch(AnyView value) noexcept {
    return tether::CatchExpected<Optional<VisitInterrupt>>([&]() -> Result {
      Result result = Optional<VisitInterrupt>(std::nullopt);
      auto* self = static_cast<typename Parent::VisitorObjType*>(this);
      bool matched = std::apply(
          [&](auto&... callbacks) {
            return (tether::CallIfFits<tether::FirstParam<decltype(callbacks)>>(
                        value, [&](auto&& arg) { result = Result(callbacks(arg, self)); }) ||
                    ...);
          },
          callbacks_);
      return matched ? result : Parent::DefaultVisitExpected(value);
    });
  }

  std::tuple<Callbacks...> callbacks_;
  uintptr_t stack_begin_ = 0;
};

/*! \brief Visits a value by callbacks (value, visitor), each of which owns the descent. */
template <typename... Callbacks>
inline Expected<Optional<VisitInterrupt>> StructuralVisitExpected(
    AnyView root, Callbacks&&... callbacks) noexcept {
  static_assert(sizeof...(Callbacks) > 0, "StructuralVisit needs at least one callback.");
  using Engine = StructuralVisitEngine<StructuralVisitorObj, std::decay_t<Callbacks>...>;
  return tether::CatchExpected<Optional<VisitInterrupt>>([&] {
    return make_object<Engine>(std::forward<Callbacks>(callbacks)...)->VisitExpected(root);
  });
}

/*! \brief StructuralVisitExpected that throws the error. */
template <typename... Callbacks>
inline Optional<VisitInterrupt> StructuralVisit(AnyView root, Callbacks&&... callbacks) {
  return StructuralVisitExpected(root, std::forward<Callbacks>(callbacks)...).value();
}

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
  return tether::CatchExpected<Optional<VisitInterrupt>>([&] {
    // One function that tries them all; errors pass through it like through any other function.
    auto dispatch = [&](AnyView value, int32_t kind) -> Expected<WalkResult> {
      Expected<WalkResult> result = WalkResult::Advance();
      (void)(tether::CallIfMatches(callbacks, value, std::tuple<>(),
                                   static_cast<TVMFFIDefRegionKind>(kind), &result) ||
             ...);
      return result;
    };
    Array<Entry> with_kind{
        Entry(static_cast<int32_t>(TypeIndex::kTVMFFIAny), Function::FromTyped(dispatch))};
    return Function::GetGlobalRequired("ffi.StructuralWalk")
        .CallExpected<Optional<VisitInterrupt>>(root, Array<Entry>(), with_kind,
                                                static_cast<int32_t>(order));
  });
}

/*! \brief StructuralWalkExpected that throws the error. */
template <WalkOrder order, typename... Callbacks>
inline Optional<VisitInterrupt> StructuralWalk(AnyView root, Callbacks&&... callbacks) {
  return StructuralWalkExpected<order>(root, std::forward<Callbacks>(callbacks)...).value();
}

}  // namespace ffi
}  // namespace tvm

#endif  // TVM_FFI_EXTRA_STRUCTURAL_VISIT_H_
