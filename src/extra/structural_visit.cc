// SPDX-License-Identifier: Apache-2.0
//
// The visitor types, how containers are visited, and the walk behind StructuralWalk. The walk keeps
// its own stack; only values with a `__s_visit__` of their own make it recurse.
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/extra/structural_visit.h>
#include <tvm/ffi/reflection/registry.h>

#include <thread>
#include <utility>
#include <vector>

#include "core/kept_value.h"
#include "structural_common.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

using VisitResult = Expected<Optional<VisitInterrupt>>;
using CallbackList = Array<Tuple<int32_t, Function>>;

VisitResult GoOn() { return Optional<VisitInterrupt>(std::nullopt); }

// `__s_visit__` of all containers; of maps the values only. Works on a copy, because the visitor
// may change a List or a Dict.
VisitResult VisitContainer(StructuralVisitorObj* visitor, AnyView value) {
  std::vector<Child> parts;
  const auto* container = value.as<Object>();
  AppendChildren(container, 0, &parts);
  const size_t step = KindOfNode(container->type_index()) == NodeKind::kMapping ? 2 : 1;
  for (size_t i = step - 1; i < parts.size(); i += step) {
    TVM_FFI_S_VISIT_MAYBE_EARLY_RETURN(visitor->VisitExpected(parts[i].value));
  }
  return GoOn();
}
const FStructuralVisit kVisitContainer = FStructuralVisit::FromNative<&VisitContainer>();

struct WalkFrame {
  TVMFFIDefRegionKind region;        // the region the node was met in
  TVMFFIDefRegionKind inner_region;  // what its parts inherit
};

// The engine of one call: of use in its thread, until the call returns. Then it lets go of the
// callbacks, one of which may have kept it.
class VisitorOfOneCall : public StructuralVisitorObj {
 protected:
  using StructuralVisitorObj::StructuralVisitorObj;

  // Why it cannot be used here and now, or null.
  const char* Misuse() const {
    if (thread_ != std::this_thread::get_id()) {
      return "a StructuralVisitor can be used only in the thread of the call that made it";
    }
    if (has_ended_) {
      return "a StructuralVisitor can be used only until the call that made it returns";
    }
    return nullptr;
  }

  template <typename Callbacks>
  Optional<VisitInterrupt> Ended(VisitResult result, Callbacks* callbacks) {
    has_ended_ = true;
    const Callbacks dropped = std::exchange(*callbacks, Callbacks());
    return std::move(result).value();
  }

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  bool has_ended_ = false;
};

class WalkVisitorObj : public VisitorOfOneCall, public GraphWalk<WalkVisitorObj, WalkFrame> {
 public:
  WalkVisitorObj(const CallbackList& callbacks, const CallbackList& callbacks_with_kind,
                 bool post_order)
      : VisitorOfOneCall(&kVTable), post_order_(post_order) {
    for (const auto& entry : callbacks) {
      callbacks_.push_back({entry.get<0>(), entry.get<1>(), false});
    }
    for (const auto& entry : callbacks_with_kind) {
      callbacks_.push_back({entry.get<0>(), entry.get<1>(), true});
    }
  }

  // Walks a value in the current region. Called by the user's hooks, too, for the parts of a value.
  Optional<VisitInterrupt> Run(const Any& root) {
    VisitResult result = Walk(root);
    return Ended(std::move(result), &callbacks_);
  }

  VisitResult Walk(AnyView root) noexcept {
    size_t floor = frames_.size();
    size_t num_children = children_.size();
    VisitResult result = GoOn();
    try {
      result = Enter(Any(root), def_region_mode_);
      while (!details::StructuralVisitNeedEarlyReturn(result) && frames_.size() > floor) {
        result = Advance();
      }
    } catch (...) {
      result = CaughtError();
    }
    for (; frames_.size() > floor; frames_.pop_back()) {
      AddErrorContext(result, frames_.back().node);
    }
    DropChildren(num_children);
    return result;
  }

 private:
  struct Callback {
    int32_t type_index;
    Function function;
    bool with_kind;
  };

  // What hooks ask for. The frames belong to one thread.
  static TVMFFIAny VisitImpl(StructuralVisitorObj* visitor, AnyView value) noexcept {
    auto* self = static_cast<WalkVisitorObj*>(visitor);
    if (const char* misuse = self->Misuse(); TVM_FFI_PREDICT_FALSE(misuse != nullptr)) {
      return details::ExpectedUnsafe::MoveToTVMFFIAny(
          VisitResult(NewError("RuntimeError", misuse)));
    }
    return details::ExpectedUnsafe::MoveToTVMFFIAny(self->Walk(value));
  }
  static constexpr StructuralVisitorVTable kVTable{&WalkVisitorObj::VisitImpl};

  VisitResult Enter(Any value, TVMFFIDefRegionKind region) {
    if (value == nullptr) return GoOn();
    if (!post_order_) {
      bool skip = false;
      VisitResult result = Dispatch(value, region, &skip);
      if (skip || details::StructuralVisitNeedEarlyReturn(result)) return result;
    }
    if (!HasHook(value)) {
      if (value.type_index() >= kTVMFFIStaticObjectBegin) return Descend(std::move(value), region);
      return Leave(value, region);
    }
    VisitResult result = WithDefRegionKind(region, [&]() -> VisitResult {
      if (IsStackLow()) return NewError("ValueError", kHooksUsedUpStack);
      return DefaultVisitExpected(value);
    });
    AddErrorContext(result, value);
    return details::StructuralVisitNeedEarlyReturn(result) ? result : Leave(value, region);
  }

  static bool HasHook(const Any& value) {
    static const reflection::TypeAttrColumn hooks(reflection::type_attr::kStructuralVisit);
    AnyView hook = hooks[value.type_index()];
    if (hook == nullptr) return false;
    // Containers are descended into here, which does the same without recursion.
    return hook.type_index() != kTVMFFIOpaquePtr || !hook.same_as(AnyView(kVisitContainer));
  }

  VisitResult Descend(Any value, TVMFFIDefRegionKind region) {
    const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(value.type_index());
    TVMFFISEqHashKind kind = StructuralKindOf(info);
    try {
      Push(value, kTVMFFIFieldFlagBitMaskSEqHashIgnore, {region, InnerDefRegion(kind, region)});
      CheckNotCyclic();
      return GoOn();
    } catch (...) {
      VisitResult result = CaughtError();
      AddErrorContext(result, value);
      return result;
    }
  }

  VisitResult Advance() {
    Frame& top = frames_.back();
    if (top.next < top.last) {
      if (top.kind == NodeKind::kMapping) ++top.next;  // past the key
      Child& child = children_[top.next++];
      TVMFFIDefRegionKind inherited = top.data.inner_region;
      return Enter(std::move(child.value),
                   child.field == nullptr ? inherited : FieldDefRegion(child.field, inherited));
    }
    Frame done = std::move(top);
    frames_.pop_back();
    DropChildren(done.first);
    return Leave(done.node, done.data.region);
  }

  VisitResult Leave(const Any& value, TVMFFIDefRegionKind region) {
    bool skip = false;
    return post_order_ ? Dispatch(value, region, &skip) : GoOn();
  }

  // Calls the first callback for the type of the value.
  VisitResult Dispatch(const Any& value, TVMFFIDefRegionKind region, bool* skip) {
    for (const Callback& callback : callbacks_) {
      if (!details::RuntimeTypeIndexMatch(value.type_index(), callback.type_index)) continue;
      Expected<WalkResult> result =
          callback.with_kind
              ? callback.function.CallExpected<WalkResult>(value, static_cast<int32_t>(region))
              : callback.function.CallExpected<WalkResult>(value);
      if (result.is_err()) {
        AddErrorContext(result, value);
        return result.error();
      }
      WalkResult answer = result.value();
      *skip = answer.IsSkip();
      if (auto interrupt = answer.as<VisitInterrupt>()) return Optional<VisitInterrupt>(*interrupt);
      return GoOn();
    }
    return GoOn();
  }

  void CheckNotCyclic() {
    if (!circle_watch_.DueAt(frames_.size())) return;
    if (!CircleWatch::HasRepeat(frames_, [](const Frame& f) { return ObjectOf(f.node); })) return;
    TVM_FFI_THROW(ValueError) << "StructuralWalk: the value contains itself (at type `"
                              << frames_.back().node.GetTypeKey() << "`)";
  }

  std::vector<Callback> callbacks_;
  bool post_order_;
  CircleWatch circle_watch_;
};

// The engine behind ffi.StructuralVisit: the first callback for the type of a value owns the
// descent. None is not shown to callbacks.
class VisitCallbacksObj : public VisitorOfOneCall {
 public:
  explicit VisitCallbacksObj(CallbackList callbacks)
      : VisitorOfOneCall(&kVTable), callbacks_(std::move(callbacks)) {}

  Optional<VisitInterrupt> Run(const Any& root) {
    VisitResult result = VisitExpected(root);
    return Ended(std::move(result), &callbacks_);
  }

 private:
  static TVMFFIAny VisitImpl(StructuralVisitorObj* visitor, AnyView value) noexcept {
    auto* self = static_cast<VisitCallbacksObj*>(visitor);
    const char* misuse = self->Misuse();
    VisitResult result = misuse != nullptr ? VisitResult(NewError("RuntimeError", misuse))
                         : IsStackLow()    ? VisitResult(NewError("ValueError", kHooksUsedUpStack))
                                           : self->Dispatch(value);
    AddErrorContext(result, value);
    return details::ExpectedUnsafe::MoveToTVMFFIAny(std::move(result));
  }
  static constexpr StructuralVisitorVTable kVTable{&VisitCallbacksObj::VisitImpl};

  VisitResult Dispatch(AnyView value) noexcept {
    if (value == nullptr) return GoOn();
    return CatchExpected<Optional<VisitInterrupt>>([&]() -> VisitResult {
      for (const auto& entry : callbacks_) {
        if (!details::RuntimeTypeIndexMatch(value.type_index(), entry.get<0>())) continue;
        return entry.get<1>().CallExpected<Optional<VisitInterrupt>>(
            value, static_cast<const StructuralVisitorObj*>(this));
      }
      return DefaultVisitExpected(value);
    });
  }

  CallbackList callbacks_;
};

Optional<VisitInterrupt> StructuralWalkWithCallbacks(const Any& root, const CallbackList& callbacks,
                                                     const CallbackList& callbacks_with_kind,
                                                     int32_t order) {
  ObjectPtr<WalkVisitorObj> walk = make_object<WalkVisitorObj>(
      callbacks, callbacks_with_kind, order != static_cast<int32_t>(WalkOrder::kPreOrder));
  return walk->Run(root);
}

template <typename ContainerObj>
void RegisterContainerVisit() {
  reflection::TypeAttrDef<ContainerObj>().template native_fn_attr<&VisitContainer>(
      type_attr::kStructuralVisit);
}

}  // namespace
}  // namespace tether

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = reflection;
  tether::RegisterContainerVisit<ArrayObj>();
  tether::RegisterContainerVisit<ListObj>();
  tether::RegisterContainerVisit<MapObj>();
  tether::RegisterContainerVisit<DictObj>();
  refl::ObjectDef<VisitInterruptObj>(refl::init(false))
      .def_ro("value", &VisitInterruptObj::value, refl::default_value(Any(nullptr)));
  // NOLINTNEXTLINE(bugprone-unused-raii): the constructor registers the type
  refl::ObjectDef<StructuralVisitorObj>(refl::init(false));
  refl::GlobalDef()
      .def("ffi.VisitInterrupt",
           [](const AnyView& value) { return VisitInterrupt(tether::Kept(value)); })
      .def("ffi.StructuralVisitorVisit",
           [](const StructuralVisitor& visitor, const Any& value) { return visitor->Visit(value); })
      .def("ffi.StructuralVisitorDefRegionKind",
           [](const StructuralVisitor& visitor) {
             return static_cast<int32_t>(visitor->def_region_kind());
           })
      .def("ffi.StructuralVisitorWithDefRegionKind",
           [](const StructuralVisitor& visitor, int32_t kind, const Function& callback) {
             return visitor->WithDefRegionKind(static_cast<TVMFFIDefRegionKind>(kind),
                                               [&] { return callback(); });
           })
      .def("ffi.StructuralVisitorDefaultVisit",
           [](const StructuralVisitor& visitor, const Any& value) {
             return visitor->DefaultVisitExpected(value).value();
           })
      .def("ffi.StructuralVisit",
           [](const Any& root, tether::CallbackList callbacks) {
             auto visit = make_object<tether::VisitCallbacksObj>(std::move(callbacks));
             return visit->Run(root);
           })
      .def("ffi.StructuralWalk", tether::StructuralWalkWithCallbacks);
}

}  // namespace ffi
}  // namespace tvm
