// SPDX-License-Identifier: Apache-2.0
//
// The mutator type, how containers are mutated, and the engine behind StructuralMap and
// StructuralMutate. The engine keeps its own stack; only hooks and callbacks that mutate parts
// themselves make it recurse.
#include <tvm/ffi/big_int.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/extra/structural_mutate.h>
#include <tvm/ffi/reflection/registry.h>

#include <thread>
#include <utility>
#include <vector>

#include "structural_common.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

using MutateResult = Expected<UnchangedOr<Any>>;

bool IsUnchanged(const Any& result) { return result.type_index() == kTVMFFIUnchanged; }
bool IsError(const Any& result) { return result.type_index() == kTVMFFIError; }

void AddFrame(const Any& error, AnyView node) {
  detail::UpdateVisitErrorContext(*detail::AnyUnsafe::TVMFFIAnyPtrFromAny(error), node);
}

// A part of an object, copied out of it and replaced by what it becomes.
struct MutatePart {
  Any value;
  const TVMFFIFieldInfo* field = nullptr;
  bool is_changed = false;
};

// Of maps keys and values, in turns.
void AppendParts(const Object* node, std::vector<MutatePart>* out) {
  ObjectLock lock(node);
  switch (KindOfNode(node->type_index())) {
    case NodeKind::kSequence:
      for (const Any& item : *static_cast<const SeqBaseObj*>(node)) out->push_back({item});
      return;
    case NodeKind::kMapping:
      for (const auto& [key, value] : *static_cast<const MapBaseObj*>(node)) {
        out->push_back({key});
        out->push_back({value});
      }
      return;
    case NodeKind::kFields:
      reflection::ForEachFieldInfo(TVMFFIGetTypeInfo(node->type_index()),
                                   [&](const TVMFFIFieldInfo* field) {
                                     if (field->flags & kTVMFFIFieldFlagBitMaskSEqHashIgnore)
                                       return;
                                     out->push_back({reflection::FieldGetter(field)(node), field});
                                   });
      return;
  }
}

// ---- new objects from changed parts ---------------------------------------------------------

Any MakeSequence(const Object* node, const MutatePart* first, const MutatePart* last) {
  const auto count = static_cast<int64_t>(last - first);
  ObjectPtr<Object> made;
  if (node->type_index() == kTVMFFIArray) {
    made = ArrayOps::Empty(count);
  } else {
    made = ListOps::Empty(count);
  }
  auto* seq = static_cast<SeqBaseObj*>(made.get());
  for (; first != last; ++first) SeqOps::Append(seq, first->value);
  return ObjectRef(std::move(made));
}

Any MakeMapping(const Object* node, const MutatePart* first, const MutatePart* last) {
  ObjectPtr<Object> made = MapOps::Copy(static_cast<const MapBaseObj*>(node));
  auto* map = static_cast<MapBaseObj*>(made.get());
  // A Dict may have been changed by a callback. Then the entries seen before count.
  bool is_same = map->size() == static_cast<size_t>(last - first) / 2;
  const MutatePart* part = first;
  if (is_same) {
    for (const auto& entry : *map) {
      if (!entry.first.same_as(part->value)) {
        is_same = false;
        break;
      }
      part += 2;
    }
  }
  if (!is_same) {
    std::vector<std::pair<Any, Any>> entries;
    for (part = first; part != last; part += 2) entries.emplace_back(part[0].value, part[1].value);
    return ObjectRef(MapOps::MakeFromRange(node->type_index(), entries.begin(), entries.end()));
  }
  part = first;
  for (auto& entry : *map) {
    if (part[1].is_changed) entry.second = part[1].value;
    part += 2;
  }
  return ObjectRef(std::move(made));
}

Any MakeObject(const Object* node, const MutatePart* first, const MutatePart* last) {
  Expected<ObjectRef> copy = ShallowCopyOf(node);
  if (copy.is_err()) return copy.error();
  ObjectRef made = copy.value();
  for (; first != last; ++first) {
    if (!first->is_changed) continue;
    Expected<void> set = ReplaceField(made.get(), first->field, first->value);
    if (set.is_err()) return set.error();
  }
  return made;
}

Any MakeChanged(const Object* node, const MutatePart* first, const MutatePart* last) {
  switch (KindOfNode(node->type_index())) {
    case NodeKind::kSequence:
      return MakeSequence(node, first, last);
    case NodeKind::kMapping:
      return MakeMapping(node, first, last);
    case NodeKind::kFields:
      return MakeObject(node, first, last);
  }
  TVM_FFI_UNREACHABLE();
}

// ---- containers changed in place ------------------------------------------------------------

// The elements, or the values of a map, one at a time; asks anew each time how many there are.
class Slots {
 public:
  Slots() = default;
  explicit Slots(Object* container)
      : container_(container),
        is_map_(KindOfNode(container->type_index()) == NodeKind::kMapping),
        index_(is_map_ ? MapOps::FirstIndex(map()) : 0) {}

  // The slot that is next, or null at the end.
  Any* Current() const {
    if (!is_map_) {
      auto* seq = static_cast<SeqBaseObj*>(container_);
      return index_ < seq->size() ? SeqOps::Cells(seq) + index_ : nullptr;
    }
    if (index_ == MapOps::EndIndex(map()) || !MapOps::IsOccupied(map(), index_)) return nullptr;
    return &MapOps::Entry(map(), index_)->second;
  }
  void Advance() {
    if (Current() != nullptr) index_ = is_map_ ? MapOps::NextIndex(map(), index_) : index_ + 1;
  }

 private:
  MapBaseObj* map() const { return static_cast<MapBaseObj*>(container_); }

  Object* container_ = nullptr;
  bool is_map_ = false;
  uint64_t index_ = 0;
};

// ---- hooks of the containers, for mutators of clients ---------------------------------------

MutateResult LeaveUnchanged(StructuralMutatorObj*, AnyView) { return Unchanged{}; }

MutateResult MutateContainer(StructuralMutatorObj* mutator, AnyView value) {
  std::vector<MutatePart> parts;
  const auto* container = value.as<Object>();
  AppendParts(container, &parts);
  const size_t step = KindOfNode(container->type_index()) == NodeKind::kMapping ? 2 : 1;
  bool is_changed = false;
  for (size_t i = step - 1; i < parts.size(); i += step) {
    MutateResult result = mutator->MutateExpected(parts[i].value);
    if (result.is_err()) return result;
    UnchangedOr<Any> mutated = std::move(result).value();
    if (mutated.UnchangedOrSameAs(parts[i].value)) continue;
    parts[i].value = std::move(mutated).ValueUnchecked();
    parts[i].is_changed = is_changed = true;
  }
  if (!is_changed) return Unchanged{};
  return UnchangedOr<Any>(MakeChanged(container, parts.data(), parts.data() + parts.size()));
}

MutateResult MutateContainerInPlace(StructuralMutatorObj* mutator, AnyView value) {
  auto* container = const_cast<Object*>(value.as<Object>());
  for (Slots slots(container); Any* slot = slots.Current(); slots.Advance()) {
    MutateResult result = mutator->MutateExpected(*slot, InplaceMode::kAllow);
    if (result.is_err()) return result;
    if (result.type_index() == kTVMFFIUnchanged) continue;
    Any mutated = std::move(result).value().ValueUnchecked();
    if (Any* again = slots.Current()) again->swap(mutated);
  }
  return Unchanged{};
}

// ---- the engine -----------------------------------------------------------------------------

class MutateWalkObj : public StructuralMapEngineBase {
 public:
  explicit MutateWalkObj(const MutateDispatch& dispatch)
      : StructuralMapEngineBase(&kVTable), dispatch_(dispatch) {}

  // The callbacks may be gone from now on. A hook or callback may have kept the mutator.
  void End() { has_ended_ = true; }

  // The result for a value in the current region: a replacement, Unchanged or an Error. Called by
  // hooks and callbacks, too.
  Any Run(AnyView value, bool may_change) noexcept {
    const size_t floor = frames_.size();
    Any result;
    bool is_done = Enter(value, def_region_mode_, may_change, &result);
    while (!is_done || frames_.size() > floor) {
      if (is_done) Accept(&result);
      is_done = Advance(&result);
    }
    return result;
  }

 private:
  enum Form : int32_t { kPre = 0, kPost = 1, kOwn = 2 };

  // A value whose parts are being mutated.
  struct Frame {
    // Owned if it, or what it is part of, is changed in place. Else whoever asked for it owns it:
    // the frame below, by its array or its parts, `replaced`, or the caller of Run.
    Part node;
    Any replaced = Unchanged{};  // by a callback in pre-order
    Slots slots;                 // if it is changed in place
    // Else parts_[first, last) are its parts. Those of an Array, which nobody can change while the
    // frame refers to it, are not copied: then [0, last) are its elements.
    size_t first = 0;
    size_t next = 0;
    size_t last = 0;
    Any made;  // of an Array: the new one, from the first changed element on
    TVMFFISEqHashKind kind = kTVMFFISEqHashKindUnsupported;
    TVMFFIDefRegionKind region = kTVMFFIDefRegionKindNone;
    TVMFFIDefRegionKind inner_region = kTVMFFIDefRegionKindNone;
    bool in_place = false;
    bool is_mapping = false;
    bool is_array = false;
    bool is_changed = false;

    const Any& Element(size_t i) const {
      return static_cast<const SeqBaseObj*>(node.object())->begin()[i];
    }
  };

  // What hooks and callbacks ask for. The frames belong to one thread.
  template <typename Body>
  static TVMFFIAny IfInCall(StructuralMutatorObj* raw, Body body) noexcept {
    auto* self = static_cast<MutateWalkObj*>(raw);
    const char* wrong = nullptr;
    if (self->thread_ != std::this_thread::get_id()) {
      wrong = "a StructuralMutator can be used only in the thread of the call that made it";
    } else if (self->has_ended_) {
      wrong = "a StructuralMutator can be used only until the call that made it returns";
    }
    if (TVM_FFI_PREDICT_TRUE(wrong == nullptr)) return body(self);
    return detail::AnyUnsafe::MoveAnyToTVMFFIAny(Any(Error("RuntimeError", wrong, "")));
  }
  static TVMFFIAny MutateImpl(StructuralMutatorObj* raw, AnyView value) noexcept {
    return IfInCall(raw, [&](MutateWalkObj* self) {
      return detail::AnyUnsafe::MoveAnyToTVMFFIAny(self->Run(value, false));
    });
  }
  static TVMFFIAny InplaceImpl(StructuralMutatorObj* raw, AnyView value) noexcept {
    return IfInCall(raw, [&](MutateWalkObj* self) {
      return detail::AnyUnsafe::MoveAnyToTVMFFIAny(self->Run(value, true));
    });
  }
  static TVMFFIAny GetImpl(StructuralMutatorObj* raw, AnyView var) noexcept {
    return IfInCall(raw, [&](MutateWalkObj* self) { return VarRemapGetImpl(self, var); });
  }
  static TVMFFIAny SetImpl(StructuralMutatorObj* raw, AnyView var, AnyView mapped) noexcept {
    return IfInCall(raw, [&](MutateWalkObj* self) { return VarRemapSetImpl(self, var, mapped); });
  }
  static constexpr StructuralMutatorVTable kVTable{&MutateImpl, &InplaceImpl, &GetImpl, &SetImpl};

  static const reflection::TypeAttrColumn& Hooks() {
    static const reflection::TypeAttrColumn hooks(type_attr::kStructuralMutate);
    return hooks;
  }

  // Begins with a value. True: it is done, the result is there. False: a frame was pushed.
  bool Enter(AnyView value, TVMFFIDefRegionKind region, bool may_change, Any* result) noexcept {
    if (value.type_index() < kTVMFFIStaticObjectBegin && dispatch_.form != kPre &&
        Hooks()[value.type_index()] == nullptr) {  // nothing to descend into
      bool matched = false;
      *result = Call(value, region, false, &matched);
      return true;
    }
    Any replaced = Unchanged{};
    if (dispatch_.form != kPost) {
      bool matched = false;
      Any answer = Call(value, region, may_change && IsUniqueObject(value), &matched);
      if (IsError(answer)) {
        AddFrame(answer, value);
        *result = std::move(answer);
        return true;
      }
      if (dispatch_.form == kOwn && matched) {
        *result = std::move(answer);
        return true;
      }
      if (dispatch_.form == kPre && !IsUnchanged(answer) && !AnyView(answer).same_as(value)) {
        replaced = std::move(answer);
        may_change = true;
        value = replaced;
      }
    }
    Any made = Unchanged{};
    if (!Start(value, region, may_change, &replaced, &made)) return false;
    Complete(value, region, std::move(replaced), std::move(made), result);
    return true;
  }

  // Default mutation. True: the result is in *made. False: a frame was pushed, which has *replaced.
  bool Start(AnyView value, TVMFFIDefRegionKind region, bool may_change, Any* replaced,
             Any* made) noexcept {
    const bool in_place = may_change && IsUniqueObject(value);
    switch (value.type_index()) {
      case kTVMFFIStr:
      case kTVMFFIBytes:
      case kTVMFFIBigInt:
        return true;
      case kTVMFFIArray:
      case kTVMFFIList:
      case kTVMFFIMap:
      case kTVMFFIDict:
        // As their hooks do, which are there for other engines.
        return !Push(value, kTVMFFISEqHashKindUnsupported, region, in_place, replaced, made);
      default:
        break;
    }
    static const reflection::TypeAttrColumn inplace(type_attr::kStructuralMaybeInplaceMutate);
    AnyView hook;
    if (in_place) hook = inplace[value.type_index()];
    if (hook == nullptr) hook = Hooks()[value.type_index()];
    if (hook == nullptr) return StartWithoutHook(value, region, replaced, made);
    {
      // The region is the one of the value, whatever it was for the hook that asks.
      struct Restore {
        TVMFFIDefRegionKind* slot;
        TVMFFIDefRegionKind old;
        ~Restore() { *slot = old; }
      } restore{&def_region_mode_, std::exchange(def_region_mode_, region)};
      const InplaceMode mode = in_place ? InplaceMode::kAllow : InplaceMode::kDisallow;
      if (IsStackLow()) {
        *made = Error("ValueError", kHooksUsedUpStack, "");
        AddFrame(*made, value);
      } else {
        MutateResult result = DefaultMutateExpected(value, mode);
        *made = detail::ExpectedUnsafe::GetData(result);
      }
    }
    return true;
  }

  bool StartWithoutHook(AnyView value, TVMFFIDefRegionKind region, Any* replaced,
                        Any* made) noexcept {
    if (value.type_index() < kTVMFFIStaticObjectBegin) return true;
    const TVMFFISEqHashKind kind = StructuralKindOf(TVMFFIGetTypeInfo(value.type_index()));
    if (IsFreeVarOrDAGNode(kind)) {
      Any known = detail::AnyUnsafe::MoveTVMFFIAnyRawToAny(VarRemapGetImpl(this, value));
      if (known != nullptr) {
        *made = std::move(known);
        return true;
      }
      if (kind == kTVMFFISEqHashKindFreeVar && region == kTVMFFIDefRegionKindNone) return true;
    }
    static const reflection::TypeAttrColumn copiers(type_attr::kShallowCopy);
    if (copiers[value.type_index()].type_index() != kTVMFFIFunction) {
      *made = Error("TypeError", "__ffi_shallow_copy__ must be an ffi.Function", "");
      AddFrame(*made, value);
      return true;
    }
    return !Push(value, kind, region, false, replaced, made);
  }

  // False: it failed, and *made is the error.
  bool Push(AnyView value, TVMFFISEqHashKind kind, TVMFFIDefRegionKind region, bool in_place,
            Any* replaced, Any* made) noexcept {
    const size_t first = parts_.size(), depth = frames_.size();
    try {
      if (depth >= kMaxGraphDepth) {
        TVM_FFI_THROW(ValueError) << "StructuralMutate: the value is nested too deeply";
      }
      auto* object = detail::AnyUnsafe::RawObjectPtrFromAnyViewAfterCheck(value);
      const bool is_array = !in_place && object->type_index() == kTVMFFIArray;
      const bool is_owned = in_place || (depth != 0 && frames_.back().in_place);
      Frame& frame = frames_.emplace_back();
      frame.node = is_owned ? Part::Owned(value) : Part::Borrowed(value.CopyToTVMFFIAny());
      if (in_place) frame.slots = Slots(object);
      frame.first = frame.next = frame.last = first;
      frame.kind = kind;
      frame.region = region;
      frame.inner_region = InnerDefRegion(kind, region);
      frame.in_place = in_place;
      frame.is_mapping = KindOfNode(object->type_index()) == NodeKind::kMapping;
      frame.is_array = is_array;
      if (is_array) {
        frame.next = 0;
        frame.last = static_cast<const SeqBaseObj*>(object)->size();
      } else if (!in_place) {
        AppendParts(object, &parts_);
        frames_[depth].last = parts_.size();  // a getter may have run the engine
      }
      if (circle_watch_.DueAt(frames_.size()) &&
          CircleWatch::HasRepeat(frames_, [](const Frame& f) { return f.node.object(); })) {
        TVM_FFI_THROW(ValueError) << "StructuralMutate: the value contains itself (at type `"
                                  << value.GetTypeKey() << "`)";
      }
      frames_.back().replaced = std::move(*replaced);
      return true;
    } catch (const Error& error) {
      *made = error;
    } catch (const std::exception& error) {
      *made = Error("InternalError", error.what(), "");
    } catch (...) {
      *made = Error("RuntimeError", kUnknownException, "");
    }
    // Reading fields may fail after the frame was pushed.
    if (frames_.size() > depth) frames_.pop_back();
    DropParts(first);
    AddFrame(*made, value);
    return false;
  }

  // The result of the part that the top frame waits for.
  void Accept(Any* result) noexcept {
    Frame& top = frames_.back();
    Any mutated = std::move(*result);
    if (IsError(mutated)) {
      failure_ = std::move(mutated);
      return;
    }
    if (top.in_place) {
      Slots& slots = top.slots;
      if (!IsUnchanged(mutated)) {
        // The old value goes with `mutated`, when nothing refers to the frame any more.
        if (Any* slot = slots.Current()) slot->swap(mutated);
      }
      slots.Advance();
      return;
    }
    if (top.is_array) {
      AcceptElement(&top, std::move(mutated));
      return;
    }
    MutatePart& part = parts_[top.next++];
    if (IsUnchanged(mutated) || mutated.same_as(part.value)) return;
    part.value.swap(mutated);
    part.is_changed = top.is_changed = true;
  }

  void AcceptElement(Frame* top, Any mutated) noexcept {
    const size_t index = top->next++;
    const Any& element = top->Element(index);
    if (IsUnchanged(mutated) || mutated.same_as(element)) {
      if (top->is_changed) SeqOps::Append(MadeArray(*top), element);
      return;
    }
    if (!top->is_changed) {
      Expected<Any> made = CatchExpected<Any>([&] {
        return Expected<Any>(ObjectRef(ArrayOps::Empty(static_cast<int64_t>(top->last))));
      });
      if (made.is_err()) {
        failure_ = made.error();
        return;
      }
      top->made = std::move(made).value();
      top->is_changed = true;
      for (size_t i = 0; i < index; ++i) SeqOps::Append(MadeArray(*top), top->Element(i));
    }
    SeqOps::Append(MadeArray(*top), std::move(mutated));
  }

  static SeqBaseObj* MadeArray(const Frame& frame) {
    return const_cast<SeqBaseObj*>(static_cast<const SeqBaseObj*>(ObjectOf(frame.made)));
  }

  // Goes on with the array on top until an element needs a frame (true), or to the end or a
  // failure.
  bool AdvanceArray(Any* result) noexcept {
    while (failure_ == nullptr) {
      const Frame& top = frames_.back();  // anew: callbacks may run the engine, which moves frames
      if (top.next == top.last) return false;
      if (!Enter(top.Element(top.next), top.inner_region, false, result)) return true;
      Accept(result);
    }
    return false;
  }

  // The next part of the top frame, or its end. The result is as for Enter.
  bool Advance(Any* result) noexcept {
    Frame& top = frames_.back();
    if (failure_ == nullptr) {
      if (top.in_place) {
        if (Any* slot = top.slots.Current()) {
          return Enter(*slot, top.inner_region, true, result);
        }
      } else if (top.is_array) {
        if (AdvanceArray(result)) return false;
      } else if (top.next < top.last) {
        if (top.is_mapping) ++top.next;  // past the key
        const MutatePart& part = parts_[top.next];
        TVMFFIDefRegionKind region = top.inner_region;
        if (part.field != nullptr) region = FieldDefRegion(part.field, region);
        return Enter(part.value, region, false, result);
      }
    }
    Frame done = std::move(frames_.back());  // not `top`: frames may have moved
    frames_.pop_back();
    Any made = failure_ != nullptr ? std::exchange(failure_, Any()) : Finish(done);
    DropParts(done.first);
    if (IsError(made)) AddFrame(made, done.node.view());
    Complete(done.node.view(), done.region, std::move(done.replaced), std::move(made), result);
    return true;
  }

  // What the parts of a frame make.
  Any Finish(const Frame& done) noexcept {
    Any made = Unchanged{};
    if (done.is_array && done.is_changed) {
      made = done.made;
    } else if (done.is_changed) {
      const MutatePart* parts = parts_.data();
      const Object* node = done.node.object();
      Expected<Any> built = CatchExpected<Any>(
          [&] { return Expected<Any>(MakeChanged(node, parts + done.first, parts + done.last)); });
      made = detail::ExpectedUnsafe::GetData(built);
    }
    if (IsError(made) || !IsFreeVarOrDAGNode(done.kind)) return made;
    if (done.kind == kTVMFFISEqHashKindFreeVar && IsUnchanged(made) &&
        done.region != kTVMFFIDefRegionKindPattern) {
      return made;
    }
    Any set =
        detail::AnyUnsafe::MoveTVMFFIAnyRawToAny(VarRemapSetImpl(this, done.node.view(), made));
    return IsError(set) ? set : made;
  }

  // From the result of the descent to that of the value.
  void Complete(AnyView value, TVMFFIDefRegionKind region, Any replaced, Any made,
                Any* result) noexcept {
    if (dispatch_.form == kPost && !IsError(made)) {
      AnyView descended = IsUnchanged(made) ? value : AnyView(made);
      bool matched = false;
      Any answer = Call(descended, region, false, &matched);
      if (IsError(answer)) AddFrame(answer, descended);
      if (!IsUnchanged(answer)) made = std::move(answer);
    }
    *result = IsUnchanged(made) ? std::move(replaced) : std::move(made);
  }

  Any Call(AnyView value, TVMFFIDefRegionKind region, bool may_change, bool* matched) noexcept {
    if (dispatch_.form != kOwn) {
      return detail::AnyUnsafe::MoveTVMFFIAnyRawToAny(
          dispatch_.call(dispatch_.self, value, nullptr, region, matched));
    }
    if (IsStackLow()) return Error("ValueError", kHooksUsedUpStack, "");
    struct Restore {
      TVMFFIDefRegionKind* slot;
      TVMFFIDefRegionKind old;
      ~Restore() { *slot = old; }
    } restore{&def_region_mode_, std::exchange(def_region_mode_, region)};
    return detail::AnyUnsafe::MoveTVMFFIAnyRawToAny(
        dispatch_.call(dispatch_.self, value, this, may_change ? 1 : 0, matched));
  }

  // One by one: dropping a part may run user code, and that may call this engine again.
  void DropParts(size_t first) {
    while (parts_.size() > first) {
      Any gone = std::move(parts_.back().value);
      parts_.pop_back();
    }
  }

  MutateDispatch dispatch_;
  const std::thread::id thread_ = std::this_thread::get_id();
  bool has_ended_ = false;
  std::vector<Frame> frames_;
  std::vector<MutatePart> parts_;
  Any failure_;
  CircleWatch circle_watch_;
};

Any RunEngine(Any root, const MutateDispatch& dispatch) {
  ObjectPtr<MutateWalkObj> engine = make_object<MutateWalkObj>(dispatch);
  Any result = engine->Run(root, true);
  engine->End();
  if (IsError(result)) throw result.cast<Error>();
  return IsUnchanged(result) ? root : result;
}

// ---- callbacks found at run time ------------------------------------------------------------

using CallbackList = Array<Tuple<int32_t, Function>>;
using MutateList = Array<Tuple<int32_t, Function, bool>>;

// A callback in the form in which every value is compared with it.
struct DynamicCallback {
  int32_t type_index;
  Function call;
  bool takes_extra;  // the region or the mode
};
using DynamicCallbacks = std::vector<DynamicCallback>;

const DynamicCallback* FindCallback(const DynamicCallbacks& callbacks, AnyView value) {
  for (const DynamicCallback& callback : callbacks) {
    if (detail::RuntimeTypeIndexMatch(value.type_index(), callback.type_index)) return &callback;
  }
  return nullptr;
}

TVMFFIAny ToRaw(Expected<Any> result) {
  return detail::ExpectedUnsafe::MoveToTVMFFIAny(std::move(result));
}

TVMFFIAny CallForMap(void* callbacks, AnyView value, StructuralMutatorObj*, int32_t region,
                     bool* matched) noexcept {
  const auto* found = FindCallback(*static_cast<DynamicCallbacks*>(callbacks), value);
  *matched = found != nullptr;
  if (found == nullptr) return Unchanged{}.CopyToTVMFFIAny();
  if (found->takes_extra) return ToRaw(found->call.CallExpected<Any>(value, region));
  return ToRaw(found->call.CallExpected<Any>(value));
}

TVMFFIAny CallForMutate(void* callbacks, AnyView value, StructuralMutatorObj* mutator, int32_t mode,
                        bool* matched) noexcept {
  const auto* found = FindCallback(*static_cast<DynamicCallbacks*>(callbacks), value);
  *matched = found != nullptr;
  if (found == nullptr) return Unchanged{}.CopyToTVMFFIAny();
  if (found->takes_extra) return ToRaw(found->call.CallExpected<Any>(value, mutator, mode));
  return ToRaw(found->call.CallExpected<Any>(value, mutator));
}

Any MapWithCallbacks(Any root, const CallbackList& plain, const CallbackList& with_kind,
                     int32_t order) {
  DynamicCallbacks callbacks;
  for (const auto& entry : plain) callbacks.push_back({entry.get<0>(), entry.get<1>(), false});
  for (const auto& entry : with_kind) callbacks.push_back({entry.get<0>(), entry.get<1>(), true});
  return RunEngine(std::move(root), {&CallForMap, &callbacks, order == 0 ? 0 : 1});
}

Any MutateWithCallbacks(Any root, const MutateList& entries) {
  DynamicCallbacks callbacks;
  for (const auto& entry : entries) {
    callbacks.push_back({entry.get<0>(), entry.get<1>(), entry.get<2>()});
  }
  return RunEngine(std::move(root), {&CallForMutate, &callbacks, 2});
}

Any ValueOr(MutateResult result, const Any& original) {
  return std::move(result).value().ValueOrUnchanged(original);
}

template <typename ContainerObj>
void RegisterContainerMutate() {
  reflection::TypeAttrDef<ContainerObj>()
      .template native_fn_attr<&MutateContainer>(type_attr::kStructuralMutate)
      .template native_fn_attr<&MutateContainerInPlace>(type_attr::kStructuralMaybeInplaceMutate);
}

template <typename LeafObj>
void RegisterLeafMutate() {
  reflection::TypeAttrDef<LeafObj>()
      .template native_fn_attr<&LeaveUnchanged>(type_attr::kStructuralMutate)
      .template native_fn_attr<&LeaveUnchanged>(type_attr::kStructuralMaybeInplaceMutate);
}

}  // namespace
}  // namespace tether

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = reflection;
  tether::RegisterContainerMutate<ArrayObj>();
  tether::RegisterContainerMutate<ListObj>();
  tether::RegisterContainerMutate<MapObj>();
  tether::RegisterContainerMutate<DictObj>();
  tether::RegisterLeafMutate<detail::StringObj>();
  tether::RegisterLeafMutate<detail::BytesObj>();
  tether::RegisterLeafMutate<detail::BigIntObj>();
  // NOLINTNEXTLINE(bugprone-unused-raii): the constructor registers the type
  refl::ObjectDef<StructuralMutatorObj>(refl::init(false));
  refl::GlobalDef()
      .def("ffi.StructuralMap", tether::MapWithCallbacks)
      .def("ffi.StructuralMutate", tether::MutateWithCallbacks)
      .def("ffi.tether.StructuralMutate",
           [](Any root, void* dispatch) {
             if (dispatch == nullptr) TVM_FFI_THROW(ValueError) << "the callbacks are missing";
             return tether::RunEngine(std::move(root),
                                      *static_cast<tether::MutateDispatch*>(dispatch));
           })
      .def("ffi.StructuralMutatorMutate",
           [](const StructuralMutator& mutator, const Any& value) {
             return tether::ValueOr(mutator->MutateExpected(value), value);
           })
      .def("ffi.StructuralMutatorDefaultMutate",
           [](const StructuralMutator& mutator, const Any& value) {
             return tether::ValueOr(mutator->DefaultMutateExpected(value), value);
           })
      .def("ffi.StructuralMutatorVarRemapGet",
           [](const StructuralMutator& mutator, const Any& var) {
             // The marker has no form in other languages: a variable that stays is itself.
             Any mapped = mutator->VarRemapGetExpected(var).value();
             return tether::IsUnchanged(mapped) ? var : mapped;
           })
      .def("ffi.StructuralMutatorVarRemapSet",
           [](const StructuralMutator& mutator, const Any& var, const Any& mapped) {
             mutator->VarRemapSetExpected(var, mapped).value();
           })
      .def("ffi.StructuralMutatorDefRegionKind",
           [](const StructuralMutator& mutator) {
             return static_cast<int32_t>(mutator->def_region_kind());
           })
      .def("ffi.StructuralMutatorWithDefRegionKind",
           [](const StructuralMutator& mutator, int32_t kind, const Function& callback) {
             return mutator->WithDefRegionKind(static_cast<TVMFFIDefRegionKind>(kind),
                                               [&] { return callback(); });
           });
}

}  // namespace ffi
}  // namespace tvm
