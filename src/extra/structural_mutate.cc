// SPDX-License-Identifier: Apache-2.0
//
// The mutator type, how containers are mutated, and the engine behind StructuralMap and
// StructuralMutate. The engine keeps its own stack; only hooks and callbacks that mutate parts
// themselves make it recurse.
#include <tvm/ffi/big_int.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/endian.h>
#include <tvm/ffi/extra/structural_mutate.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
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

// Whether nobody can change which parts a container has.
bool IsFixed(int32_t type_index) { return type_index != kTVMFFIList && type_index != kTVMFFIDict; }

/*!
 * \brief The elements, or the values of a map, one at a time, and the container that they make.
 *
 * Made of changed parts is a new container, private until it is finished. An Array is filled as the
 * parts come. Of the others it is a copy, and from then on the parts are taken from the copy: what
 * happens to a List or a Dict after its copy was made is not seen.
 */
class Rebuild {
 public:
  Rebuild(Object* node, Shape shape, bool is_fixed, bool in_place)
      : source_(node), shape_(shape), in_place_(in_place), is_private_(is_fixed && !in_place) {
    if (shape == Shape::kMapping) index_ = MapOps::FirstIndex(map());
  }

  Shape shape() const { return shape_; }
  bool in_place() const { return in_place_; }
  // Whether nobody else can change what the parts are taken from.
  bool IsPrivate() const { return is_private_; }

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
    if (const Any* part = Current()) Keep(*part);
  }
  TVM_FFI_INLINE void Keep(const Any& part) {
    if (shape_ == Shape::kArray && made_ != nullptr) SeqOps::Append(made_seq(), part);
    Advance();
  }

  // The part becomes another value, which must be neither Unchanged nor an Error, and is taken.
  TVM_FFI_INLINE void Replace(Any* value) {
    if (!ReplaceInMade(value)) ReplaceOther(value);
  }

  // As Replace, if the new container is there already.
  TVM_FFI_INLINE bool ReplaceInMade(Any* value) noexcept {
    if (made_ == nullptr) return false;
    is_changed_ = true;
    if (shape_ == Shape::kArray) {
      SeqOps::Append(made_seq(), std::move(*value));
      ++index_;
    } else {
      Any old = std::move(*value);  // dropped when the index is right again
      Current()->swap(old);
      Advance();
    }
    return true;
  }

  TVM_FFI_NO_INLINE void ReplaceOther(Any* value) {
    if (in_place_) {
      Any old = std::move(*value);
      Any* part = Current();
      if (part == nullptr) return;
      part->swap(old);
      Advance();
      return;
    }
    if (shape_ == Shape::kArray) {
      made_ = ArrayOps::Empty(static_cast<int64_t>(seq()->size()));
      if (index_ != 0) SeqOps::AppendRange(made_seq(), seq()->begin(), seq()->begin() + index_);
    } else {
      MakePrivate();
    }
    ReplaceInMade(value);
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
    is_private_ = true;
  }

  Any Finish() {
    Any result = Unchanged{};
    FinishInto(&result);
    return result;
  }
  // False: nothing has changed. *result must own nothing.
  TVM_FFI_INLINE bool FinishInto(Any* result) {
    if (!is_changed_) return false;
    // The type index and the zeros behind it in one piece: whoever moves the result next would wait
    // until two pieces are stored.
    auto* cell = const_cast<TVMFFIAny*>(&CellOf(*result));
    const auto type_index = static_cast<uint64_t>(made_->type_index());
    const uint64_t head = type_index << (TVM_FFI_LITTLE_ENDIAN ? 0 : 32);
    std::memcpy(cell, &head, sizeof(head));
    cell->v_obj = detail::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(made_));
    return true;
  }

 protected:
  TVM_FFI_INLINE void Advance() {
    index_ = shape_ == Shape::kMapping ? MapOps::NextIndex(map(), index_) : index_ + 1;
  }
  MapBaseObj* map() const { return static_cast<MapBaseObj*>(source_); }
  SeqBaseObj* seq() const { return static_cast<SeqBaseObj*>(source_); }
  SeqBaseObj* made_seq() const { return static_cast<SeqBaseObj*>(made_.get()); }

  Object* source_;  // where the parts are taken from
  ObjectPtr<Object> made_;
  uint64_t index_ = 0;
  Shape shape_;
  bool in_place_;
  bool is_private_;
  bool is_changed_ = false;
};

// ---- hooks of the containers, for mutators of clients ---------------------------------------

MutateResult LeaveUnchanged(StructuralMutatorObj*, AnyView) { return Unchanged{}; }

MutateResult MutateParts(StructuralMutatorObj* mutator, AnyView value, InplaceMode mode) {
  auto* container = detail::AnyUnsafe::RawObjectPtrFromAnyViewAfterCheck(value);
  Rebuild rebuild(container, ShapeOfContainer(value.type_index()), IsFixed(value.type_index()),
                  mode == InplaceMode::kAllow);
  if (!rebuild.IsPrivate()) rebuild.MakePrivate();
  while (Any* part = rebuild.Current()) {
    MutateResult result = mutator->MutateExpected(*part, mode);
    if (result.is_err()) return result;
    Any made = detail::ExpectedUnsafe::GetData(result);
    // Changed in place, the part may be gone.
    if (IsUnchanged(made) || (mode == InplaceMode::kDisallow && made.same_as(*part))) {
      rebuild.Keep();
    } else {
      rebuild.Replace(&made);
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
  MutateFrame(Part&& value, Shape shape, bool is_fixed, bool in_place) noexcept
      : node(std::move(value)),
        parts(const_cast<Object*>(node.object()), shape, is_fixed, in_place) {}

  // Whether user code may run: nobody can change or drop what the frame works on.
  bool IsSecured() const { return is_safe && parts.IsPrivate(); }

  Part node;
  Rebuild parts;
  FieldCursor fields;  // of an object: the next of its fields
  TVMFFISEqHashKind kind = kTVMFFISEqHashKindUnsupported;
  TVMFFIDefRegionKind region = kTVMFFIDefRegionKindNone;
  TVMFFIDefRegionKind inner_region = kTVMFFIDefRegionKindNone;
  bool is_safe = true;          // whether something that nobody can change refers to the node
  bool is_replacement = false;  // a callback in pre-order put the node, which is owned, here
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
  bool IsFull() const { return size_ == kChunk * chunks_.size(); }
  MutateFrame& operator[](size_t i) const {
    return *(reinterpret_cast<MutateFrame*>(chunks_[i / kChunk]->bytes) + i % kChunk);
  }
  MutateFrame& back() const { return *top_; }

  void Grow() { chunks_.push_back(std::unique_ptr<Chunk>(new Chunk)); }

  // There must be room.
  template <typename... Args>
  TVM_FFI_INLINE MutateFrame* Push(Args&&... args) noexcept {
    top_ = size_ % kChunk == 0 ? &(*this)[size_] : top_ + 1;
    ++size_;
    return ::new (static_cast<void*>(top_)) MutateFrame(std::forward<Args>(args)...);
  }
  TVM_FFI_INLINE void Pop() {
    top_->~MutateFrame();
    --size_;
    if (size_ % kChunk != 0) {
      --top_;
    } else {
      top_ = size_ == 0 ? nullptr : &(*this)[size_ - 1];
    }
  }

 private:
  // Before it gives out a block of a kilobyte or more, glibc merges all the small ones it has free.
  static constexpr size_t kChunk = 8;
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
 *
 * Nothing is thrown through the frames: what may run out of memory is called by Try, and errors are
 * made by NewError.
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
    owner_kept_ = false;
    Part part = Part::Borrowed(value.CopyToTVMFFIAny());
    Step step = Enter(&part, def_region_mode_, may_change, Holder::kSafe, &result);
    while (true) {
      if (step != Step::kPushed) {
        if (frames_.size() == floor) break;
        Accept(&frames_.back(), step, &result);
      }
      MutateFrame* top = &frames_.back();
      step = top->parts.shape() == Shape::kFields ? AdvanceFields(top, &result)
                                                  : AdvanceParts(top, &result);
    }
    if (step != Step::kUnchanged) return result;
    // As in StructuralMutatorObj::MutateWithoutHook.
    const bool is_plain = value.type_index() < kTVMFFIStaticObjectBegin && !owner_kept_ &&
                          FactsOf(value.type_index()).shape == Shape::kLeaf;
    return is_plain ? Any(value) : Any(Unchanged{});
  }

 private:
  enum class Step : uint8_t {
    kUnchanged,  // the value is done and stays as it is
    kChanged,    // the value is done, and *result is what it becomes, or an Error
    kPushed,     // a frame was pushed for the value
  };

  // What is done with a value that is met.
  enum class Way : uint8_t {
    kPass,   // nothing: no callback, no parts
    kCall,   // a callback, and nothing is left to do after it
    kOpen,   // its parts, and nothing before them
    kEnter,  // anything else
  };

  // What the engine asks about the type of every value.
  struct Facts {
    int32_t type_index = -1;
    Shape shape = Shape::kLeaf;
    Way way = Way::kEnter;
    bool is_fixed = true;      // nobody can change which parts there are
    bool has_callback = true;  // there may be one
    bool can_copy = true;
    // An object without fields that cannot be copied: a tensor, a function. It is an error to meet
    // one that no callback takes.
    bool is_opaque = false;
    TVMFFISEqHashKind kind = kTVMFFISEqHashKindUnsupported;
    const DynamicCallback* callback = nullptr;
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
        facts.is_fixed = IsFixed(type_index);
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
          facts.is_opaque = !facts.can_copy && !IsFreeVarOrDAGNode(facts.kind) &&
                            FieldCursor(facts.type).Next() == nullptr;
        }
    }
    if (callbacks_ != nullptr) facts.callback = FindCallback(*callbacks_, type_index);
    facts.has_callback = callbacks_ == nullptr || facts.callback != nullptr;
    facts.way = WayOf(facts);
    return facts;
  }

  Way WayOf(const Facts& facts) const {
    const bool is_called_first = facts.has_callback && dispatch_.form != kPost;
    switch (facts.shape) {
      case Shape::kLeaf:
        if (!facts.has_callback) return Way::kPass;
        return dispatch_.form == kPre ? Way::kEnter : Way::kCall;
      case Shape::kHook:
        return Way::kEnter;
      case Shape::kFields:
        if (!facts.can_copy || IsFreeVarOrDAGNode(facts.kind)) return Way::kEnter;
        [[fallthrough]];
      default:
        return is_called_first ? Way::kEnter : Way::kOpen;
    }
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
    return detail::AnyUnsafe::MoveAnyToTVMFFIAny(Any(NewError("RuntimeError", wrong)));
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

  // What IsStackLow asks for; the thread's own variable takes time to find.
  static StackReserve ReserveOfThread() {
    (void)IsStackLow();  // looks it up
    return stack_reserve;
  }

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
    if (now.way == Way::kPass) return Step::kUnchanged;
    if (now.way == Way::kCall) {
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
    Any answer;
    Call(facts, value->view(), region, may_change_value, &matched, &answer);
    const bool is_there = holder != Holder::kSlot || IsNextPart(*value);
    if (IsError(answer)) {
      if (is_there || dispatch_.form == kPre) AddFrame(answer, value->view());
      return Become(std::move(answer), result);
    }
    if (dispatch_.form == kOwn && matched) return Become(std::move(answer), result);
    if (IsUnchanged(answer) || answer.same_as(value->any())) {
      if (holder == Holder::kSlot && is_there) value->LetGo();
      if (matched && facts.is_opaque) return Step::kUnchanged;
      return Start(facts, value, region, may_change && is_there, holder, result);
    }
    Part made = Part::Owned(std::move(answer));
    const Facts& of_made = FactsOf(made.type_index());
    if (of_made.is_opaque) return Become(made.Take(), result);
    Step step = Start(of_made, &made, region, true, Holder::kSafe, result, true);
    if (step == Step::kUnchanged) return Become(made.Take(), result);
    return step;
  }

  // A value without parts, of which nothing is left to do after the callback.
  TVM_FFI_INLINE Step CallForLeaf(const Facts& facts, Part* value, TVMFFIDefRegionKind region,
                                  bool may_change, Holder holder, Any* result) noexcept {
    const bool may_change_value = may_change && IsUniqueObject(value->view());
    Hold(value, holder);
    bool matched = false;
    Call(facts, value->view(), region, may_change_value, &matched, result);
    owner_kept_ = matched && dispatch_.form == kOwn;
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

  // Whether a value has changed at all.
  TVM_FFI_INLINE static Step Compare(const Part& value, Any* result) {
    if (!result->same_as(value.any())) return Step::kChanged;
    *result = Any();
    return Step::kUnchanged;
  }

  static Step Become(Any&& made, Any* result) {
    if (IsUnchanged(made)) return Step::kUnchanged;
    *result = std::move(made);
    return Step::kChanged;
  }

  // Default mutation of a value, which may be a replacement by a callback in pre-order.
  Step Start(const Facts& facts, Part* value, TVMFFIDefRegionKind region, bool may_change,
             Holder holder, Any* result, bool is_replacement = false) noexcept {
    Any made = Unchanged{};
    if (facts.shape == Shape::kHook) {
      const bool in_place = may_change && IsUniqueObject(value->view());
      made = CallHook(value, region, in_place, holder);
    } else if (facts.shape == Shape::kFields && IsFreeVarOrDAGNode(facts.kind) &&
               FindVar(value->view(), facts.kind, region, &made)) {
      // known already
    } else if (facts.shape != Shape::kLeaf) {
      if (CallbackDecides(facts)) {
        return Complete(value, region, holder, Step::kUnchanged, result);
      }
      if (!facts.can_copy) {
        failure_ = CannotCopy();
        AddFrame(failure_, value->view());
      } else if (Open(facts, std::move(*value), region, may_change, holder, is_replacement)) {
        return Step::kPushed;
      }
      made = TakeFailure();
    }
    return Complete(value, region, holder, Become(std::move(made), result), result);
  }

  // In post-order, an object that has nothing to descend to needs no copy if a callback takes it.
  bool CallbackDecides(const Facts& facts) const {
    return facts.is_opaque && dispatch_.form == kPost && facts.has_callback;
  }

  // Puts a frame for the parts of a value on the stack. False: that failed, and failure_ says why.
  TVM_FFI_INLINE bool Open(const Facts& facts, Part&& value, TVMFFIDefRegionKind region,
                           bool may_change, Holder holder, bool is_replacement = false) noexcept {
    const size_t depth = frames_.size();
    if (TVM_FFI_PREDICT_FALSE(frames_.IsFull()) && !Try([&] { MakeRoom(); })) {
      AddFrame(failure_, value.view());
      return false;
    }
    const bool in_place =
        may_change && facts.shape != Shape::kFields && IsUniqueObject(value.view());
    MutateFrame* frame = frames_.Push(std::move(value), facts.shape, facts.is_fixed, in_place);
    if (facts.shape == Shape::kFields) frame->fields = FieldCursor(facts.type);
    frame->kind = facts.kind;
    frame->region = region;
    frame->inner_region = InnerDefRegion(facts.kind, region);
    frame->is_safe = holder == Holder::kSafe;
    if (in_place) frame->node.Own();
    frame->is_replacement = is_replacement;
    if (secured_ == depth && frame->IsSecured()) ++secured_;
    if (MayChangeAnyTime()) Secure();
    return true;
  }

  TVM_FFI_NO_INLINE void MakeRoom() {
    const size_t depth = frames_.size();
    if (depth >= kMaxGraphDepth) {
      TVM_FFI_THROW(ValueError) << "StructuralMutate: the value is nested too deeply";
    }
    if (circle_watch_.DueAt(depth)) CheckNotCyclic();
    frames_.Grow();
  }

  Any CallHook(Part* value, TVMFFIDefRegionKind region, bool in_place, Holder holder) noexcept {
    if (!Secure() || IsStackLow()) {
      Any made = TakeFailure();
      if (made == nullptr) made = NewError("ValueError", kHooksUsedUpStack);
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
  TVM_FFI_INLINE bool Secure() noexcept {
    return TVM_FFI_PREDICT_TRUE(secured_ == frames_.size()) || SecureAll();
  }

  TVM_FFI_NO_INLINE bool SecureAll() noexcept {
    return Try([&] {
      for (; secured_ < frames_.size(); ++secured_) SecureFrame(&frames_[secured_]);
    });
  }

  // Calls body(). False: it threw, and failure_ is the error.
  template <typename Body>
  TVM_FFI_INLINE bool Try(Body body) noexcept {
    try {
      body();
      return true;
    } catch (...) {
      failure_ = CaughtError();
    }
    return false;
  }

  static void SecureFrame(MutateFrame* frame) {
    if (!frame->parts.IsPrivate()) frame->parts.MakePrivate();
    if (!frame->is_safe) frame->node.Own();
  }

  // A part of a frame is done.
  TVM_FFI_INLINE void Accept(MutateFrame* frame, Step step, Any* result) noexcept {
    const bool is_field = frame->parts.shape() == Shape::kFields;
    if (step == Step::kUnchanged) {
      if (!is_field) frame->parts.Keep();
    } else if (TVM_FFI_PREDICT_FALSE(IsError(*result))) {
      failure_ = std::move(*result);
    } else if (is_field) {
      ChangeField(frame, result);
    } else if (!frame->parts.ReplaceInMade(result)) {
      Try([&] { frame->parts.ReplaceOther(result); });
    }
  }

  void ChangeField(MutateFrame* frame, Any* result) noexcept {
    const Any mutated = std::move(*result);
    Try([&] { failure_ = frame->parts.ReplaceField(frame->fields.Last(), mutated); });
  }

  // Goes on with the top frame: up to a part that gets a frame of its own, or to the end.
  TVM_FFI_INLINE Step AdvanceParts(MutateFrame* frame, Any* result) noexcept {
    const bool in_place = frame->parts.in_place();
    const Holder holder = in_place ? Holder::kSlot : Holder::kSafe;
    const TVMFFIDefRegionKind region = frame->inner_region;
    while (TVM_FFI_PREDICT_TRUE(failure_ == nullptr)) {
      Any* part = frame->parts.Current();
      if (part == nullptr) break;
      const Facts& facts = FactsOf(part->type_index());
      if (facts.way == Way::kPass) {
        frame->parts.Keep(*part);
        continue;
      }
      if (facts.way == Way::kOpen) {
        if (Open(facts, Part::Borrowed(*part), region, in_place, holder)) return Step::kPushed;
        break;
      }
      Part value = Part::Borrowed(*part);
      Step step = Meet(facts, &value, region, in_place, holder, result);
      if (step == Step::kPushed) return step;
      if (step == Step::kChanged && !in_place) step = Compare(value, result);
      Accept(frame, step, result);
    }
    return Close(frame, result);
  }

  // As AdvanceParts, for the fields of an object.
  TVM_FFI_INLINE Step AdvanceFields(MutateFrame* frame, Any* result) noexcept {
    while (TVM_FFI_PREDICT_TRUE(failure_ == nullptr)) {
      const TVMFFIFieldInfo* field = frame->fields.Next();
      if (field == nullptr) break;
      Part value;
      if (!ReadField(frame, field, &value)) break;
      const Facts& facts = FactsOf(value.type_index());
      if (facts.way == Way::kPass) continue;
      const TVMFFIDefRegionKind region = FieldDefRegion(field, frame->inner_region);
      if (facts.way == Way::kOpen) {
        if (Open(facts, std::move(value), region, false, Holder::kField)) return Step::kPushed;
        break;
      }
      Step step = Meet(facts, &value, region, false, Holder::kField, result);
      if (step == Step::kPushed) return step;
      if (step == Step::kChanged) step = Compare(value, result);
      Accept(frame, step, result);
    }
    return Close(frame, result);
  }

  // Begins with a part that is not just opened.
  TVM_FFI_INLINE Step Meet(const Facts& facts, Part* value, TVMFFIDefRegionKind region,
                           bool may_change, Holder holder, Any* result) noexcept {
    return facts.way == Way::kCall ? CallForLeaf(facts, value, region, may_change, holder, result)
                                   : Enter(value, region, may_change, holder, result);
  }

  // All parts of the top frame are done, or there is a failure.
  TVM_FFI_INLINE Step Close(MutateFrame* frame, Any* result) noexcept {
    Step step = Step::kChanged;
    if (TVM_FFI_PREDICT_FALSE(failure_ != nullptr)) {
      *result = TakeFailure();
    } else {
      if (!frame->parts.FinishInto(result)) step = Step::kUnchanged;
      if (IsFreeVarOrDAGNode(frame->kind)) step = Remember(*frame, step, result);
    }
    if (step == Step::kChanged && IsError(*result)) AddFrame(*result, frame->node.view());
    const TVMFFIDefRegionKind region = frame->region;
    const Holder holder = frame->is_safe ? Holder::kSafe : Holder::kField;
    const bool is_replacement = frame->is_replacement;
    Part node = PopFrame();
    step = Complete(&node, region, holder, step, result);
    if (TVM_FFI_PREDICT_TRUE(step != Step::kUnchanged || !is_replacement)) return step;
    return Become(node.Take(), result);
  }

  TVM_FFI_INLINE bool ReadField(MutateFrame* frame, const TVMFFIFieldInfo* field,
                                Part* value) noexcept {
    if (TVM_FFI_PREDICT_TRUE(KindOfField(*field) != FieldKind::kGetter)) {
      value->ReadFrom(field, frame->node.object());
      return true;
    }
    return Secure() && Try([&] { value->ReadFrom(field, frame->node.object()); });
  }

  Any TakeFailure() { return std::exchange(failure_, Any()); }

  // What becomes of a variable, or of a node that may be met again.
  Step Remember(const MutateFrame& frame, Step step, Any* result) noexcept {
    const bool is_same = step == Step::kUnchanged;
    if (is_same && frame.kind == kTVMFFISEqHashKindFreeVar &&
        frame.region != kTVMFFIDefRegionKindPattern) {
      return step;
    }
    const Any made = is_same ? Any(Unchanged{}) : *result;
    Any set =
        detail::AnyUnsafe::MoveTVMFFIAnyRawToAny(VarRemapSetImpl(this, frame.node.view(), made));
    return IsError(set) ? Become(std::move(set), result) : step;
  }

  // From the result of the descent to that of the value.
  TVM_FFI_INLINE Step Complete(Part* value, TVMFFIDefRegionKind region, Holder holder, Step step,
                               Any* result) noexcept {
    if (dispatch_.form != kPost) return step;
    const bool is_same = step == Step::kUnchanged;
    if (!is_same && IsError(*result)) return step;
    const Facts& facts = FactsOf(is_same ? value->type_index() : result->type_index());
    return facts.has_callback ? CallAfter(facts, value, region, holder, is_same, result) : step;
  }

  Step CallAfter(const Facts& facts, Part* value, TVMFFIDefRegionKind region, Holder holder,
                 bool is_same, Any* result) noexcept {
    Any made = is_same ? Any() : std::move(*result);
    if (is_same) Hold(value, holder);
    const AnyView seen = is_same ? value->view() : AnyView(made);
    bool matched = false;
    Any answer;
    Call(facts, seen, region, false, &matched, &answer);
    if (!matched && is_same && facts.is_opaque && !IsError(answer)) answer = CannotCopy();
    if (IsError(answer)) AddFrame(answer, seen);
    if (answer.same_as(value->any())) return Step::kUnchanged;
    if (!IsUnchanged(answer)) return Become(std::move(answer), result);
    return is_same ? Step::kUnchanged : Become(std::move(made), result);
  }

  // What a callback makes of a value; *matched tells whether there is one. *result must own
  // nothing.
  void Call(const Facts& facts, AnyView value, TVMFFIDefRegionKind region, bool may_change,
            bool* matched, Any* result) noexcept {
    if (!Secure()) {
      *result = TakeFailure();
    } else if (dispatch_.form != kOwn) {
      Invoke(facts, value, nullptr, static_cast<int32_t>(region), matched, result);
    } else if (StackAddress() - reserve_.lowest < reserve_.size) {
      *result = NewError("ValueError", kHooksUsedUpStack);
    } else {
      RestoredRegion restored(&def_region_mode_, region);
      Invoke(facts, value, this, may_change ? 1 : 0, matched, result);
    }
  }

  TVM_FFI_INLINE void Invoke(const Facts& facts, AnyView value, StructuralMutatorObj* mutator,
                             int32_t extra, bool* matched, Any* result) noexcept {
    if (callbacks_ == nullptr) {
      *result = detail::AnyUnsafe::MoveTVMFFIAnyRawToAny(
          dispatch_.call(dispatch_.self, value, mutator, extra, matched));
      return;
    }
    *matched = true;
    const DynamicCallback& callback = *facts.callback;
    AnyView args[3] = {value};
    int32_t count = 1;
    if (mutator != nullptr) args[count++] = mutator;
    if (callback.takes_extra) args[count++] = extra;
    auto* function = const_cast<FunctionObj*>(callback.call.get());
    if (TVM_FFI_PREDICT_FALSE(function == nullptr)) {
      *result = callback.call.CallExpected<>().error();
      return;
    }
    auto* cell = const_cast<TVMFFIAny*>(&CellOf(*result));
    StoreNone(cell);
    const int code =
        function->safe_call(function, reinterpret_cast<const TVMFFIAny*>(args), count, cell);
    if (TVM_FFI_PREDICT_FALSE(code != 0)) *result = detail::MoveFromSafeCallRaised();
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
  const StackReserve reserve_ = ReserveOfThread();
  bool has_ended_ = false;
  bool owner_kept_ = false;  // a callback that owns the last leaf said what becomes of it
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
