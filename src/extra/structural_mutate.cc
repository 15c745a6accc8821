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

#include <algorithm>
#include <cstdlib>
#include <memory>
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

// What a value is to the engine.
enum class Shape : uint8_t { kLeaf, kArray, kList, kMapping, kFields, kHook };

Shape ShapeOfContainer(int32_t type_index) {
  if (type_index == kTVMFFIArray) return Shape::kArray;
  return type_index == kTVMFFIList ? Shape::kList : Shape::kMapping;
}

/*!
 * \brief The elements, or the values of a map, one at a time, and the container that they make.
 *
 * Made of changed parts is a new container, private until it is finished. An Array is filled as the
 * parts come. Of the others it is a copy, and from then on the parts are taken from the copy: what
 * happens to a List or a Dict after its copy was made is not seen.
 */
class Rebuild {
 public:
  Rebuild() = default;
  Rebuild(Object* node, Shape shape, bool in_place)
      : source_(node), shape_(shape), in_place_(in_place) {
    if (shape == Shape::kMapping) index_ = MapOps::FirstIndex(map());
  }

  Shape shape() const { return shape_; }
  bool in_place() const { return in_place_; }
  // Whether nobody else can change what the parts are taken from.
  bool IsPrivate() const {
    return !in_place_ && (made_ != nullptr || shape_ == Shape::kArray || shape_ == Shape::kFields ||
                          source_->type_index() == kTVMFFIMap);
  }

  // The part that is next, or null at the end. Only where it is changed in place may the container
  // have changed since the last call.
  TVM_FFI_INLINE Any* Current() const {
    if (shape_ != Shape::kMapping) {
      return index_ < seq()->size() ? SeqOps::Cells(seq()) + index_ : nullptr;
    }
    if (index_ == MapOps::EndIndex(map())) return nullptr;
    if (in_place_ && !MapOps::IsOccupied(map(), index_)) return nullptr;
    return &MapOps::Entry(map(), index_)->second;
  }

  // The part stays as it is.
  TVM_FFI_INLINE void Keep() {
    Any* part = Current();
    if (part == nullptr) return;
    if (shape_ == Shape::kArray && made_ != nullptr) SeqOps::Append(made_seq(), *part);
    Advance();
  }

  // The part becomes another value, which must be neither Unchanged nor an Error.
  TVM_FFI_INLINE void Replace(Any&& value) {
    if (shape_ == Shape::kArray && made_ != nullptr) {
      SeqOps::Append(made_seq(), std::move(value));
      ++index_;
    } else {
      ReplaceOther(std::move(value));
    }
  }

  TVM_FFI_NO_INLINE void ReplaceOther(Any value) {
    if (in_place_) {
      // The old part goes with `value`, when the index is right again.
      Any* part = Current();
      if (part == nullptr) return;
      part->swap(value);
      Advance();
      return;
    }
    is_changed_ = true;
    if (shape_ == Shape::kArray) {
      if (made_ == nullptr) {
        made_ = ArrayOps::Empty(static_cast<int64_t>(seq()->size()));
        SeqOps::AppendRange(made_seq(), seq()->begin(), seq()->begin() + index_);
      }
      SeqOps::Append(made_seq(), std::move(value));
    } else {
      MakePrivate();
      Current()->swap(value);
    }
    Advance();
  }

  // A field of a copy of the object becomes another value. The result is None or an Error.
  Any ReplaceField(const TVMFFIFieldInfo* field, const Any& value) {
    if (made_ == nullptr) {
      Expected<ObjectRef> copy = ShallowCopyOf(source_);
      if (copy.is_err()) return copy.error();
      made_ = detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(copy).value());
    }
    is_changed_ = true;
    Expected<void> set = tether::ReplaceField(made_.get(), field, value);
    return set.is_err() ? Any(set.error()) : Any();
  }

  // Copies what others could change. Runs no user code.
  void MakePrivate() {
    if (in_place_ || made_ != nullptr || shape_ == Shape::kArray || shape_ == Shape::kFields)
      return;
    ObjectLock lock(source_);
    if (shape_ == Shape::kMapping) {
      made_ = MapOps::Copy(map());
    } else {
      made_ = ListOps::Empty(static_cast<int64_t>(seq()->size()));
      SeqOps::AppendRange(made_seq(), seq()->begin(), seq()->end());
    }
    source_ = made_.get();
  }

  Any Finish() {
    if (!is_changed_) return Unchanged{};
    return ObjectRef(std::move(made_));
  }

 protected:
  TVM_FFI_INLINE void Advance() {
    index_ = shape_ == Shape::kMapping ? MapOps::NextIndex(map(), index_) : index_ + 1;
  }
  MapBaseObj* map() const { return static_cast<MapBaseObj*>(source_); }
  SeqBaseObj* seq() const { return static_cast<SeqBaseObj*>(source_); }
  SeqBaseObj* made_seq() const { return static_cast<SeqBaseObj*>(made_.get()); }

  Object* source_ = nullptr;  // where the parts are taken from
  ObjectPtr<Object> made_;
  uint64_t index_ = 0;
  Shape shape_ = Shape::kLeaf;
  bool in_place_ = false;
  bool is_changed_ = false;
};

// ---- hooks of the containers, for mutators of clients ---------------------------------------

MutateResult LeaveUnchanged(StructuralMutatorObj*, AnyView) { return Unchanged{}; }

MutateResult MutateParts(StructuralMutatorObj* mutator, AnyView value, InplaceMode mode) {
  auto* container = detail::AnyUnsafe::RawObjectPtrFromAnyViewAfterCheck(value);
  Rebuild rebuild(container, ShapeOfContainer(value.type_index()), mode == InplaceMode::kAllow);
  if (!rebuild.IsPrivate()) rebuild.MakePrivate();
  while (Any* part = rebuild.Current()) {
    MutateResult result = mutator->MutateExpected(*part, mode);
    if (result.is_err()) return result;
    Any made = detail::ExpectedUnsafe::GetData(result);
    // Changed in place, the part may be gone.
    if (IsUnchanged(made) || (mode == InplaceMode::kDisallow && made.same_as(*part))) {
      rebuild.Keep();
    } else {
      rebuild.Replace(std::move(made));
    }
  }
  return UnchangedOr<Any>(rebuild.Finish());
}

MutateResult MutateContainer(StructuralMutatorObj* mutator, AnyView value) {
  return MutateParts(mutator, value, InplaceMode::kDisallow);
}

MutateResult MutateContainerInPlace(StructuralMutatorObj* mutator, AnyView value) {
  return MutateParts(mutator, value, InplaceMode::kAllow);
}

// ---- callbacks found at run time ------------------------------------------------------------

using CallbackList = Array<Tuple<int32_t, Function>>;
using MutateList = Array<Tuple<int32_t, Function, bool>>;

// A callback in the form in which every type is compared with it.
struct DynamicCallback {
  int32_t type_index;
  Function call;
  bool takes_extra;  // the region or the mode
};
using DynamicCallbacks = std::vector<DynamicCallback>;

const DynamicCallback* FindCallback(const DynamicCallbacks& callbacks, int32_t type_index) {
  for (const DynamicCallback& callback : callbacks) {
    if (detail::RuntimeTypeIndexMatch(type_index, callback.type_index)) return &callback;
  }
  return nullptr;
}

// ---- the engine -----------------------------------------------------------------------------

enum Form : int32_t { kPre = 0, kPost = 1, kOwn = 2 };

// What keeps a value alive while user code runs.
enum class Holder : uint8_t {
  kSafe,   // something that nobody can change, or the caller of Run
  kField,  // a field of an object: user code may store another value
  kSlot,   // a container that is changed in place: likewise, and only a slot may refer to the value
};

// A value whose parts are being mutated.
struct MutateFrame {
  MutateFrame(Part&& value, Rebuild&& rebuild) noexcept
      : node(std::move(value)), parts(std::move(rebuild)) {}

  Part node;
  Rebuild parts;
  FieldCursor fields;          // of an object: the next of its fields
  Any replaced = Unchanged{};  // by a callback in pre-order
  TVMFFISEqHashKind kind = kTVMFFISEqHashKindUnsupported;
  TVMFFIDefRegionKind region = kTVMFFIDefRegionKindNone;
  TVMFFIDefRegionKind inner_region = kTVMFFIDefRegionKindNone;
  bool is_safe = true;  // whether something that nobody can change refers to the node
};

/*! \brief A stack whose frames stay where they are. */
class FrameStack {
 public:
  FrameStack() = default;
  FrameStack(const FrameStack&) = delete;
  FrameStack& operator=(const FrameStack&) = delete;
  ~FrameStack() {
    while (size_ > 0) Pop();
  }

  size_t size() const { return size_; }
  MutateFrame& operator[](size_t i) const {
    return *(reinterpret_cast<MutateFrame*>(chunks_[i / kChunk]->bytes) + i % kChunk);
  }
  MutateFrame& back() const { return *top_; }

  void Push(MutateFrame&& frame) {
    if (size_ % kChunk == 0 && size_ / kChunk == chunks_.size()) {
      chunks_.push_back(std::unique_ptr<Chunk>(new Chunk));
    }
    top_ = ::new (static_cast<void*>(&(*this)[size_])) MutateFrame(std::move(frame));
    ++size_;
  }
  void Pop() {
    top_->~MutateFrame();
    --size_;
    top_ = size_ == 0 ? nullptr : &(*this)[size_ - 1];
  }

 private:
  static constexpr size_t kChunk = 32;
  struct Chunk {
    alignas(MutateFrame) unsigned char bytes[kChunk * sizeof(MutateFrame)];
  };

  std::vector<std::unique_ptr<Chunk>> chunks_;
  size_t size_ = 0;
  MutateFrame* top_ = nullptr;
};

/*!
 * \brief Runs a map or a mutation with a stack of its own.
 *
 * Frames borrow what they work on until user code is about to run: a callback, a hook, a getter.
 * Only user code can change or drop a value, so Secure() comes before all of it.
 */
class MutateWalkObj : public StructuralMapEngineBase {
 public:
  // `callbacks`, if there are some, are called instead of those behind `dispatch`.
  explicit MutateWalkObj(const MutateDispatch& dispatch, const DynamicCallbacks* callbacks)
      : StructuralMapEngineBase(&kVTable), dispatch_(dispatch), callbacks_(callbacks) {}

  // The callbacks may be gone from now on. A hook or callback may have kept the mutator.
  void End() { has_ended_ = true; }

  // The result for a value in the current region: a replacement, Unchanged or an Error. Called by
  // hooks and callbacks, too.
  Any Run(AnyView value, bool may_change) noexcept {
    const size_t floor = frames_.size();
    Any result;
    Part part = Part::Borrowed(value.CopyToTVMFFIAny());
    Step step = Enter(&part, def_region_mode_, may_change, Holder::kSafe, &result);
    while (true) {
      if (step != Step::kPushed) {
        if (frames_.size() == floor) break;
        MutateFrame& top = frames_.back();
        Accept(&top, step, &result);
      }
      step = Advance(&result);
    }
    if (step == Step::kUnchanged) return Unchanged{};
    return result;
  }

 private:
  enum class Step : uint8_t {
    kUnchanged,  // the value is done and stays as it is
    kChanged,    // the value is done, and *result is what it becomes, or an Error
    kPushed,     // a frame was pushed for the value
  };

  // What the engine asks about the type of every value.
  struct Facts {
    int32_t type_index = -1;
    Shape shape = Shape::kLeaf;
    // Whether values of the type are left alone: no callback, no parts.
    bool is_passive = false;
    bool has_callback = true;  // there may be one
    bool can_copy = true;
    const DynamicCallback* callback = nullptr;
    TVMFFISEqHashKind kind = kTVMFFISEqHashKindUnsupported;
    const TVMFFITypeInfo* type = nullptr;  // of objects with fields
  };

  // Valid until the next call, which user code may make.
  TVM_FFI_INLINE const Facts& FactsOf(int32_t type_index) {
    Facts& facts = recent_[static_cast<uint32_t>(type_index) % kRecent];
    if (TVM_FFI_PREDICT_FALSE(facts.type_index != type_index)) facts = LookUp(type_index);
    return facts;
  }

  TVM_FFI_NO_INLINE Facts LookUp(int32_t type_index) const {
    Facts facts;
    facts.type_index = type_index;
    switch (type_index) {
      case kTVMFFIStr:
      case kTVMFFIBytes:
      case kTVMFFIBigInt:
        break;
      case kTVMFFIArray:
      case kTVMFFIList:
      case kTVMFFIMap:
      case kTVMFFIDict:
        // As their hooks do, which are there for other engines.
        facts.shape = ShapeOfContainer(type_index);
        break;
      default:
        if (Hooks()[type_index] != nullptr || InplaceHooks()[type_index] != nullptr) {
          facts.shape = Shape::kHook;
        } else if (type_index >= kTVMFFIStaticObjectBegin) {
          facts.shape = Shape::kFields;
          facts.type = TVMFFIGetTypeInfo(type_index);
          facts.kind = StructuralKindOf(facts.type);
          static const reflection::TypeAttrColumn copiers(type_attr::kShallowCopy);
          facts.can_copy = copiers[type_index].type_index() == kTVMFFIFunction;
        }
    }
    if (callbacks_ != nullptr) facts.callback = FindCallback(*callbacks_, type_index);
    facts.has_callback = callbacks_ == nullptr || facts.callback != nullptr;
    facts.is_passive = facts.shape == Shape::kLeaf && !facts.has_callback;
    return facts;
  }

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
  static const reflection::TypeAttrColumn& InplaceHooks() {
    static const reflection::TypeAttrColumn hooks(type_attr::kStructuralMaybeInplaceMutate);
    return hooks;
  }

  // Begins with a value.
  Step Enter(Part* value, TVMFFIDefRegionKind region, bool may_change, Holder holder,
             Any* result) noexcept {
    const Facts& now = FactsOf(value->type_index());
    if (now.is_passive) return Step::kUnchanged;
    if (now.shape == Shape::kLeaf && dispatch_.form != kPre) {
      return CallForLeaf(now, value, region, may_change, holder, result);
    }
    if (dispatch_.form == kPost || !now.has_callback) {
      return Start(now, value, region, may_change, holder, result);
    }
    const Facts facts = now;
    const bool may_change_value = may_change && IsUniqueObject(value->view());
    // To own a value that the callback may change would forbid that.
    if (dispatch_.form == kPre || holder == Holder::kField) Hold(value, holder);
    bool matched = false;
    Any answer = Call(facts, value->view(), region, may_change_value, &matched);
    const bool is_there = holder != Holder::kSlot || IsNextPart(*value);
    if (IsError(answer)) {
      if (is_there || dispatch_.form == kPre) AddFrame(answer, value->view());
      return Become(std::move(answer), result);
    }
    if (dispatch_.form == kOwn && matched) return Become(std::move(answer), result);
    if (IsUnchanged(answer) || answer.same_as(value->any())) {
      if (holder == Holder::kSlot && is_there) value->LetGo();
      return Start(facts, value, region, may_change && is_there, holder, result);
    }
    Part made = Part::Borrowed(answer);
    Step step =
        Start(FactsOf(made.type_index()), &made, region, true, Holder::kSafe, result, &answer);
    if (step == Step::kUnchanged) return Become(std::move(answer), result);
    return step;
  }

  // A value without parts, of which nothing is left to do after the callback.
  TVM_FFI_INLINE Step CallForLeaf(const Facts& facts, Part* value, TVMFFIDefRegionKind region,
                                  bool may_change, Holder holder, Any* result) noexcept {
    const bool may_change_value = may_change && IsUniqueObject(value->view());
    Hold(value, holder);
    bool matched = false;
    *result = Call(facts, value->view(), region, may_change_value, &matched);
    if (IsUnchanged(*result)) return Step::kUnchanged;
    if (TVM_FFI_PREDICT_FALSE(IsError(*result))) AddFrame(*result, value->view());
    return Step::kChanged;
  }

  // Whether the frame on top still has the value as its next part.
  bool IsNextPart(const Part& value) const {
    const Any* part = frames_.back().parts.Current();
    return part != nullptr && part->same_as(value.any());
  }

  static void Hold(Part* value, Holder holder) {
    if (holder != Holder::kSafe) value->Own();
  }

  static Step Become(Any&& made, Any* result) {
    if (IsUnchanged(made)) return Step::kUnchanged;
    *result = std::move(made);
    return Step::kChanged;
  }

  // Default mutation of a value. A frame for it takes *replaced, which a callback put in the place
  // of another value.
  Step Start(const Facts& facts, Part* value, TVMFFIDefRegionKind region, bool may_change,
             Holder holder, Any* result, Any* replaced = nullptr) noexcept {
    Any made = Unchanged{};
    if (facts.shape == Shape::kHook) {
      const bool in_place = may_change && IsUniqueObject(value->view());
      made = CallHook(value, region, in_place, holder);
    } else if (facts.shape == Shape::kFields && IsFreeVarOrDAGNode(facts.kind) &&
               FindVar(value->view(), facts.kind, region, &made)) {
      // known already
    } else if (facts.shape != Shape::kLeaf) {
      const Step step = Descend(facts, value, region, may_change, holder, replaced, &made, result);
      if (step == Step::kPushed) return step;
    }
    return Complete(value, region, holder, std::move(made), result);
  }

  // Begins with the parts of a value. Most nodes of a tree are its last ones: their parts are done
  // without a frame on the stack, and *made is what they make.
  Step Descend(const Facts& facts, Part* value, TVMFFIDefRegionKind region, bool may_change,
               Holder holder, Any* replaced, Any* made, Any* result) noexcept {
    auto* object = const_cast<Object*>(value->object());
    const TVMFFISEqHashKind kind = facts.kind;
    bool in_place = false;
    FieldCursor fields;
    if (facts.shape != Shape::kFields) {
      in_place = may_change && object->unique();
    } else if (facts.can_copy) {
      fields = FieldCursor(facts.type);
    } else {
      failure_ = Error("TypeError", "__ffi_shallow_copy__ must be an ffi.Function", "");
    }
    Rebuild parts(object, facts.shape, in_place);
    if (parts.shape() != Shape::kFields && !MayChangeAnyTime()) {
      const bool may_call = dispatch_.form != kPre && !in_place && holder == Holder::kSafe;
      if (DoLeaves(&parts, region, may_call, result)) {
        return Ended(&parts, kind, region, value->view(), made);
      }
    }
    MutateFrame frame(std::move(*value), std::move(parts));
    frame.fields = fields;
    frame.kind = kind;
    frame.region = region;
    frame.inner_region = InnerDefRegion(kind, region);
    frame.is_safe = holder == Holder::kSafe;
    if (in_place) frame.node.Own();
    if (MayChangeAnyTime() && failure_ == nullptr) Secure(&frame);
    bool is_local = true;
    if (replaced != nullptr) frame.replaced = std::move(*replaced);
    AdvanceIn(&frame, &is_local, result);
    if (!is_local) return Step::kPushed;
    if (replaced != nullptr) *replaced = std::move(frame.replaced);
    *value = std::move(frame.node);
    return Ended(&frame.parts, kind, region, value->view(), made);
  }

  // The parts of a container, as long as they are leaves. True: that was all of them, or a failure.
  TVM_FFI_INLINE bool DoLeaves(Rebuild* parts, TVMFFIDefRegionKind region, bool may_call,
                               Any* result) noexcept {
    while (Any* part = parts->Current()) {
      const Facts& facts = FactsOf(part->type_index());
      if (facts.is_passive) {
        parts->Keep();
        continue;
      }
      if (facts.shape != Shape::kLeaf || !may_call) return false;
      if (!parts->IsPrivate() && !Try([&] { parts->MakePrivate(); })) return true;
      Part value = Part::Borrowed(*part);
      const Step step = CallForLeaf(facts, &value, region, false, Holder::kSafe, result);
      if (step == Step::kUnchanged || result->same_as(value.any())) {
        parts->Keep();
      } else if (IsError(*result)) {
        failure_ = std::move(*result);
      } else {
        Try([&] { parts->Replace(std::move(*result)); });
      }
      if (TVM_FFI_PREDICT_FALSE(failure_ != nullptr)) return true;
    }
    return true;
  }

  // All parts are done, or there is a failure.
  Step Ended(Rebuild* parts, TVMFFISEqHashKind kind, TVMFFIDefRegionKind region, AnyView node,
             Any* made) noexcept {
    *made = failure_ != nullptr ? TakeFailure() : Finish(parts, kind, region, node);
    if (IsError(*made)) AddFrame(*made, node);
    return Step::kChanged;
  }

  Any CallHook(Part* value, TVMFFIDefRegionKind region, bool in_place, Holder holder) noexcept {
    if (!Secure() || IsStackLow()) {
      Any made = TakeFailure();
      if (made == nullptr) made = Error("ValueError", kHooksUsedUpStack, "");
      AddFrame(made, value->view());
      return made;
    }
    if (!in_place) Hold(value, holder);
    // The region is the one of the value, whatever it was for the hook that asks.
    RestoredRegion restored(&def_region_mode_, region);
    MutateResult result = DefaultMutateExpected(
        value->view(), in_place ? InplaceMode::kAllow : InplaceMode::kDisallow);
    return detail::ExpectedUnsafe::GetData(result);
  }

  // Whether it is known what becomes of a variable or of a node that may be met again.
  bool FindVar(AnyView value, TVMFFISEqHashKind kind, TVMFFIDefRegionKind region,
               Any* made) noexcept {
    Any known = detail::AnyUnsafe::MoveTVMFFIAnyRawToAny(VarRemapGetImpl(this, value));
    if (known != nullptr) {
      *made = std::move(known);
      return true;
    }
    return kind == kTVMFFISEqHashKindFreeVar && region == kTVMFFIDefRegionKindNone;
  }

  // Puts a frame on the stack. False: that failed, and failure_ says why.
  bool Push(MutateFrame* frame) noexcept {
    return Try([&] {
      if (frames_.size() >= kMaxGraphDepth) {
        TVM_FFI_THROW(ValueError) << "StructuralMutate: the value is nested too deeply";
      }
      if (circle_watch_.DueAt(frames_.size() + 1)) CheckNotCyclic();
      frames_.Push(std::move(*frame));
    });
  }

  void CheckNotCyclic() const {
    AddressMap<const Object*, bool> on_path;
    for (size_t i = 0; i < frames_.size(); ++i) {
      bool& seen = on_path[frames_[i].node.object()];
      if (seen) {
        TVM_FFI_THROW(ValueError) << "StructuralMutate: the value contains itself (at type `"
                                  << frames_[i].node.view().GetTypeKey() << "`)";
      }
      seen = true;
    }
  }

  // Takes the topmost frame away; its node is released by the caller, when the stack is right
  // again.
  Part PopFrame() {
    Part node = std::move(frames_.back().node);
    frames_.Pop();
    secured_ = std::min(secured_, frames_.size());
    return node;
  }

  // User code may change and drop what frames refer to, from here on. False: failure_ is set.
  TVM_FFI_INLINE bool Secure(MutateFrame* local = nullptr) noexcept {
    if (TVM_FFI_PREDICT_TRUE(secured_ == frames_.size())) {
      if (local == nullptr || (local->is_safe && local->parts.IsPrivate())) return true;
    }
    return SecureAll(local);
  }

  TVM_FFI_NO_INLINE bool SecureAll(MutateFrame* local) noexcept {
    return Try([&] {
      for (; secured_ < frames_.size(); ++secured_) SecureFrame(&frames_[secured_]);
      if (local != nullptr) SecureFrame(local);
    });
  }

  // Calls body(). False: it threw, and failure_ is the error.
  template <typename Body>
  TVM_FFI_INLINE bool Try(Body body) noexcept {
    try {
      body();
      return true;
    } catch (const Error& error) {
      failure_ = error;
    } catch (const std::exception& error) {
      failure_ = Error("InternalError", error.what(), "");
    } catch (...) {
      failure_ = Error("RuntimeError", kUnknownException, "");
    }
    return false;
  }

  static void SecureFrame(MutateFrame* frame) {
    if (!frame->parts.IsPrivate()) frame->parts.MakePrivate();
    if (!frame->is_safe) frame->node.Own();
  }

  // A part of a frame is done.
  TVM_FFI_INLINE void Accept(MutateFrame* frame, Step step, Any* result) noexcept {
    if (step == Step::kChanged) {
      Change(frame, result);
    } else if (frame->parts.shape() != Shape::kFields) {
      frame->parts.Keep();
    }
  }

  TVM_FFI_NO_INLINE void Change(MutateFrame* frame, Any* result) noexcept {
    Any mutated = std::move(*result);
    if (IsError(mutated)) {
      failure_ = std::move(mutated);
      return;
    }
    Try([&] {
      if (frame->parts.shape() == Shape::kFields) {
        failure_ = frame->parts.ReplaceField(frame->fields.Last(), mutated);
      } else {
        frame->parts.Replace(std::move(mutated));
      }
    });
  }

  // Goes on with the top frame.
  Step Advance(Any* result) noexcept {
    MutateFrame& top = frames_.back();
    bool is_local = false;
    if (!AdvanceIn(&top, &is_local, result)) return Step::kPushed;
    Any made;
    Ended(&top.parts, top.kind, top.region, top.node.view(), &made);
    const TVMFFIDefRegionKind region = top.region;
    const Holder holder = top.is_safe ? Holder::kSafe : Holder::kField;
    Any replaced = std::move(top.replaced);
    Part node = PopFrame();
    const Step step = Complete(&node, region, holder, std::move(made), result);
    return step == Step::kUnchanged ? Become(std::move(replaced), result) : step;
  }

  // Takes the parts of a frame up to the end, or a failure (true), or up to one that got a frame of
  // its own (false). A frame that is local moves to the stack when it has to be there, and goes on
  // from there.
  TVM_FFI_INLINE bool AdvanceIn(MutateFrame* frame, bool* is_local, Any* result) noexcept {
    if (TVM_FFI_PREDICT_FALSE(failure_ != nullptr)) return true;
    return frame->parts.shape() == Shape::kFields ? AdvanceFields(frame, is_local, result)
                                                  : AdvanceParts(frame, is_local, result);
  }

  bool AdvanceParts(MutateFrame* frame, bool* is_local, Any* result) noexcept {
    while (Any* part = frame->parts.Current()) {
      const Facts& facts = FactsOf(part->type_index());
      if (facts.is_passive) {
        frame->parts.Keep();
        continue;
      }
      if (*is_local && !CanBeDoneLocally(facts, frame, is_local)) return *is_local;
      const bool in_place = frame->parts.in_place();
      const Holder holder = in_place ? Holder::kSlot : Holder::kSafe;
      Part value = Part::Borrowed(*part);
      Step step = Enter(&value, frame->inner_region, in_place, holder, result);
      if (step == Step::kPushed) return false;
      if (!in_place && step == Step::kChanged && result->same_as(value.any())) {
        step = Step::kUnchanged;
      }
      Accept(frame, step, result);
      if (TVM_FFI_PREDICT_FALSE(failure_ != nullptr)) return true;
    }
    return true;
  }

  bool AdvanceFields(MutateFrame* frame, bool* is_local, Any* result) noexcept {
    while (const TVMFFIFieldInfo* field = frame->fields.Next()) {
      Part value;
      if (!ReadField(frame, *is_local, field, &value)) return true;
      const Facts& facts = FactsOf(value.type_index());
      if (facts.is_passive) continue;
      if (*is_local && !CanBeDoneLocally(facts, frame, is_local)) {
        if (!*is_local) frames_.back().fields.StepBack();
        return *is_local;
      }
      Step step =
          Enter(&value, FieldDefRegion(field, frame->inner_region), false, Holder::kField, result);
      if (step == Step::kPushed) return false;
      if (step == Step::kChanged && result->same_as(value.any())) step = Step::kUnchanged;
      Accept(frame, step, result);
      if (TVM_FFI_PREDICT_FALSE(failure_ != nullptr)) return true;
    }
    return true;
  }

  // Whether a part of a local frame can be done while it is local: leaves, of which nothing is left
  // to do after the callback. Else the frame moves to the stack, unless that fails.
  TVM_FFI_INLINE bool CanBeDoneLocally(const Facts& facts, MutateFrame* frame,
                                       bool* is_local) noexcept {
    if (facts.shape == Shape::kLeaf && dispatch_.form != kPre && !frame->parts.in_place()) {
      if (frame->is_safe && frame->parts.IsPrivate()) return true;
      return Secure(frame);
    }
    *is_local = !Push(frame);
    return false;
  }

  TVM_FFI_INLINE bool ReadField(MutateFrame* frame, bool is_local, const TVMFFIFieldInfo* field,
                                Part* value) noexcept {
    if (TVM_FFI_PREDICT_TRUE(KindOfField(*field) != FieldKind::kGetter)) {
      value->ReadFrom(field, frame->node.object());
      return true;
    }
    return Secure(is_local ? frame : nullptr) &&
           Try([&] { value->ReadFrom(field, frame->node.object()); });
  }

  Any TakeFailure() { return std::exchange(failure_, Any()); }

  // What the parts make of their node.
  Any Finish(Rebuild* parts, TVMFFISEqHashKind kind, TVMFFIDefRegionKind region,
             AnyView node) noexcept {
    Any made = parts->Finish();
    if (!IsFreeVarOrDAGNode(kind)) return made;
    if (kind == kTVMFFISEqHashKindFreeVar && IsUnchanged(made) &&
        region != kTVMFFIDefRegionKindPattern) {
      return made;
    }
    Any set = detail::AnyUnsafe::MoveTVMFFIAnyRawToAny(VarRemapSetImpl(this, node, made));
    return IsError(set) ? set : made;
  }

  // From the result of the descent to that of the value.
  TVM_FFI_INLINE Step Complete(Part* value, TVMFFIDefRegionKind region, Holder holder, Any made,
                               Any* result) noexcept {
    if (dispatch_.form == kPost && !IsError(made)) {
      const bool is_same = IsUnchanged(made);
      const Facts& facts = FactsOf(is_same ? value->type_index() : made.type_index());
      if (facts.has_callback) {
        Part descended = Part::Borrowed(made);
        Part* seen = is_same ? value : &descended;
        if (is_same) Hold(value, holder);
        bool matched = false;
        Any answer = Call(facts, seen->view(), region, false, &matched);
        if (IsError(answer)) AddFrame(answer, seen->view());
        if (answer.same_as(value->any())) return Step::kUnchanged;
        if (!IsUnchanged(answer)) return Become(std::move(answer), result);
      }
    }
    return Become(std::move(made), result);
  }

  // What a callback makes of a value; *matched tells whether there is one.
  Any Call(const Facts& facts, AnyView value, TVMFFIDefRegionKind region, bool may_change,
           bool* matched) noexcept {
    if (!Secure()) return TakeFailure();
    const bool is_map = dispatch_.form != kOwn;
    if (!is_map && IsStackLow()) return Error("ValueError", kHooksUsedUpStack, "");
    RestoredRegion restored(&def_region_mode_, is_map ? def_region_mode_ : region);
    const int32_t extra = is_map ? static_cast<int32_t>(region) : (may_change ? 1 : 0);
    StructuralMutatorObj* mutator = is_map ? nullptr : this;
    if (callbacks_ == nullptr) {
      return detail::AnyUnsafe::MoveTVMFFIAnyRawToAny(
          dispatch_.call(dispatch_.self, value, mutator, extra, matched));
    }
    *matched = true;
    const DynamicCallback& callback = *facts.callback;
    Expected<Any> result =
        is_map ? (callback.takes_extra ? callback.call.CallExpected<Any>(value, extra)
                                       : callback.call.CallExpected<Any>(value))
               : (callback.takes_extra ? callback.call.CallExpected<Any>(value, mutator, extra)
                                       : callback.call.CallExpected<Any>(value, mutator));
    return detail::ExpectedUnsafe::GetData(result);
  }

  // Another region, until the end of the scope.
  class RestoredRegion {
   public:
    RestoredRegion(TVMFFIDefRegionKind* slot, TVMFFIDefRegionKind region)
        : slot_(slot), old_(std::exchange(*slot, region)) {}
    ~RestoredRegion() { *slot_ = old_; }
    RestoredRegion(const RestoredRegion&) = delete;
    RestoredRegion& operator=(const RestoredRegion&) = delete;

   private:
    TVMFFIDefRegionKind* slot_;
    TVMFFIDefRegionKind old_;
  };

  static constexpr size_t kRecent = 16;

  MutateDispatch dispatch_;
  const DynamicCallbacks* callbacks_;
  const std::thread::id thread_ = std::this_thread::get_id();
  bool has_ended_ = false;
  FrameStack frames_;
  size_t secured_ = 0;  // frames_[0, secured_) need nothing any more before user code runs
  Any failure_;
  CircleWatch circle_watch_;
  Facts recent_[kRecent];
};

// Where the last objects on the heap die, glibc gives back all that is free there, and a program
// that maps large values has it faulted in again each time. glibc keeps more once a large block was
// freed: twice its size. A user who has set a threshold has turned that off. Done once, by programs
// that map or mutate.
bool KeepFreeMemory() {
  constexpr size_t kLarge = size_t{16} << 20;
  void* volatile large = std::malloc(kLarge);  // volatile: the compiler must not drop the pair
  std::free(large);
  return true;
}

Any RunEngine(Any root, const MutateDispatch& dispatch,
              const DynamicCallbacks* callbacks = nullptr) {
  static const bool keeps_memory = KeepFreeMemory();
  (void)keeps_memory;
  ObjectPtr<MutateWalkObj> engine = make_object<MutateWalkObj>(dispatch, callbacks);
  Any result = engine->Run(root, true);
  engine->End();
  if (IsError(result)) throw result.cast<Error>();
  return IsUnchanged(result) ? root : result;
}

Any MapWithCallbacks(Any root, const CallbackList& plain, const CallbackList& with_kind,
                     int32_t order) {
  DynamicCallbacks callbacks;
  for (const auto& entry : plain) callbacks.push_back({entry.get<0>(), entry.get<1>(), false});
  for (const auto& entry : with_kind) callbacks.push_back({entry.get<0>(), entry.get<1>(), true});
  return RunEngine(std::move(root), {nullptr, nullptr, order == 0 ? kPre : kPost}, &callbacks);
}

Any MutateWithCallbacks(Any root, const MutateList& entries) {
  DynamicCallbacks callbacks;
  for (const auto& entry : entries) {
    callbacks.push_back({entry.get<0>(), entry.get<1>(), entry.get<2>()});
  }
  return RunEngine(std::move(root), {nullptr, nullptr, kOwn}, &callbacks);
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
