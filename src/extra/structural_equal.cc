// SPDX-License-Identifier: Apache-2.0
//
// StructuralEqual: compares two values side by side. Variables and DAG nodes that were found equal
// are bound to each other for the rest of the comparison: where one of them occurs again, the other
// must occur on the other side.
#include <tvm/ffi/container/tuple.h>
#include <tvm/ffi/extra/structural_equal.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "structural_common.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

using reflection::AccessPath;
using reflection::AccessPathPair;
using reflection::AccessStep;

bool EqualBits(const TVMFFIAny& lhs, const TVMFFIAny& rhs) {
  if (lhs.type_index == kTVMFFIFloat && std::isnan(lhs.v_float64)) return std::isnan(rhs.v_float64);
  return lhs.zero_padding == rhs.zero_padding && lhs.v_uint64 == rhs.v_uint64;
}

bool EqualShape(const TVMFFIShapeCell& lhs, const TVMFFIShapeCell& rhs) {
  return std::equal(lhs.data, lhs.data + lhs.size, rhs.data, rhs.data + rhs.size);
}

bool EqualTensor(const DLTensor& lhs, const DLTensor& rhs, bool skip_content) {
  if (lhs.ndim != rhs.ndim || lhs.dtype != rhs.dtype ||
      !std::equal(lhs.shape, lhs.shape + lhs.ndim, rhs.shape)) {
    return false;
  }
  if (skip_content) return true;
  HostContent left = RequireHostContent(lhs, "compare");
  HostContent right = RequireHostContent(rhs, "compare");
  return left.size == 0 || std::memcmp(left.data, right.data, left.size) == 0;
}

enum class Outcome : uint8_t { kEqual, kDiffers, kOpen };

Outcome OutcomeOf(bool equal) { return equal ? Outcome::kEqual : Outcome::kDiffers; }

// How far the comparison of two nodes is.
struct Progress {
  size_t position = 0;         // in a sequence: how many elements were entered
  FieldCursor fields;          // in an object: the fields that were entered
  MapBaseObj::iterator entry;  // in a map: the entry to come
};

// Two nodes of one type whose parts are being compared.
struct PairFrame {
  Part lhs;
  Part rhs;
  Progress progress;
  NodeKind node_kind = NodeKind::kFields;
  TVMFFISEqHashKind kind = kTVMFFISEqHashKindUnsupported;       // of the type of objects
  TVMFFIDefRegionKind region = kTVMFFIDefRegionKindNone;        // the region the pair was met in
  TVMFFIDefRegionKind inner_region = kTVMFFIDefRegionKindNone;  // what its parts inherit
  ObjectRef dict_copy;  // of a left Dict: what `entry` goes through once hooks may change the Dict
};

class StructuralComparer {
 public:
  StructuralComparer(bool map_free_vars, bool skip_tensor_content, bool trace_path)
      : root_region_(map_free_vars ? kTVMFFIDefRegionKindRecursive : kTVMFFIDefRegionKindNone),
        skip_tensor_content_(skip_tensor_content),
        trace_path_(trace_path),
        is_owning_(MayChangeAnyTime()),
        types_(Hooks()) {}

  bool Run(const Any& lhs, const Any& rhs) {
    return Compare(Part::Borrowed(lhs), Part::Borrowed(rhs), root_region_);
  }

  // After Run returned false; the steps were collected from the inside out.
  AccessPathPair MismatchPaths() const {
    return AccessPathPair(AccessPath::FromSteps(lhs_steps_.rbegin(), lhs_steps_.rend()),
                          AccessPath::FromSteps(rhs_steps_.rbegin(), rhs_steps_.rend()));
  }

  // What an `__s_equal__` hook calls for the parts of its objects.
  bool ComparePart(AnyView lhs, AnyView rhs, int kind, AnyView field_name) {
    TVMFFIDefRegionKind region = RegionAskedByHook(kind, hook_region_);
    if (Compare(Part::Owned(lhs), Part::Owned(rhs), region)) return true;
    if (trace_path_) {
      AccessStep step = AccessStep::Attr(field_name.cast<String>());
      RecordSteps(step, step);
    }
    return false;
  }

 private:
  using Binding = AddressMap<const Object*, Any>;

  // Two parts on their way from the nodes they were found in to their own turn.
  struct Next {
    Part lhs;
    Part rhs;
    TVMFFIDefRegionKind region;
    Progress progress;
  };

  static const reflection::TypeAttrColumn& Hooks() {
    static const reflection::TypeAttrColumn hooks(reflection::type_attr::kSEqual);
    return hooks;
  }

  // Leaves the stack as it was, whether it returns or throws: a hook may go on after either.
  bool Compare(Part&& lhs, Part&& rhs, TVMFFIDefRegionKind region) {
    struct Scope {
      StructuralComparer* self;
      size_t floor;
      ~Scope() {
        while (self->frames_.size() > floor) self->Pop();
      }
    } scope{this, frames_.size()};
    Next next{std::move(lhs), std::move(rhs), region, {}};
    Outcome outcome = Settle(next.lhs.cell(), next.rhs.cell(), &next.progress);
    while (true) {
      while (outcome == Outcome::kOpen) outcome = Enter(&next);
      if (outcome == Outcome::kDiffers) break;
      if (frames_.size() == scope.floor) return true;
      outcome = Advance(&next);
    }
    for (; trace_path_ && frames_.size() > scope.floor; Pop()) RecordStepOf(frames_.back());
    return false;
  }

  // Open: two values of one type, which have parts.
  TVM_FFI_INLINE Outcome CompareLeaves(const TVMFFIAny& left, const TVMFFIAny& right) const {
    if (left.type_index != right.type_index) {
      // Only the two forms of a string, or of bytes, can still be equal.
      return OutcomeOf(AnyEqual()(AnyOf(left), AnyOf(right)));
    }
    if (left.type_index < kTVMFFIStaticObjectBegin) return OutcomeOf(EqualBits(left, right));
    return CompareLargeLeaves(left, right);
  }

  Outcome CompareLargeLeaves(const TVMFFIAny& left, const TVMFFIAny& right) const {
    switch (left.type_index) {
      case kTVMFFIStr:
      case kTVMFFIBytes:
      case kTVMFFIBigInt:
        return OutcomeOf(AnyEqual()(AnyOf(left), AnyOf(right)));
      case kTVMFFIShape:
        return OutcomeOf(
            EqualShape(*TVMFFIShapeGetCellPtr(left.v_obj), *TVMFFIShapeGetCellPtr(right.v_obj)));
      case kTVMFFITensor:
        return OutcomeOf(left.v_obj == right.v_obj ||
                         EqualTensor(*TVMFFITensorGetDLTensorPtr(left.v_obj),
                                     *TVMFFITensorGetDLTensorPtr(right.v_obj),
                                     skip_tensor_content_));
      default:
        return Outcome::kOpen;
    }
  }

  // Compares leaves, and nodes as far as their parts are leaves. Most nodes of a tree are its last
  // ones; they are finished here and need neither a frame nor a count. Open: there is more to
  // compare, from *progress on.
  TVM_FFI_INLINE Outcome Settle(const TVMFFIAny& left, const TVMFFIAny& right, Progress* progress) {
    Outcome outcome = CompareLeaves(left, right);
    return outcome == Outcome::kOpen ? SettleNodes(left, right, progress) : outcome;
  }

  Outcome SettleNodes(const TVMFFIAny& left, const TVMFFIAny& right, Progress* progress) {
    switch (left.type_index) {
      case kTVMFFIArray:
      case kTVMFFIList:
        return SettleItems(SequenceOf(left), SequenceOf(right), progress);
      case kTVMFFIMap:
      case kTVMFFIDict:
        return SettleEntries(MapOf(left), MapOf(right), progress);
      default:
        return SettleFields(left, right, progress);
    }
  }

  Outcome SettleItems(const SeqBaseObj* lhs, const SeqBaseObj* rhs, Progress* progress) const {
    progress->position = 0;
    // Only a search for the place of the difference has to look inside.
    if (trace_path_) return Outcome::kOpen;
    size_t size = lhs->size();
    if (size != rhs->size()) return Outcome::kDiffers;
    const Any* left = lhs->begin();
    const Any* right = rhs->begin();
    for (size_t i = 0; i < size; ++i) {
      Outcome outcome = CompareLeaves(CellOf(left[i]), CellOf(right[i]));
      if (outcome == Outcome::kEqual) continue;
      progress->position = i;
      return outcome;
    }
    return Outcome::kEqual;
  }

  Outcome SettleEntries(const MapBaseObj* lhs, const MapBaseObj* rhs, Progress* progress) const {
    progress->entry = lhs->begin();
    if (trace_path_) return Outcome::kOpen;
    if (lhs->size() != rhs->size()) return Outcome::kDiffers;
    for (MapBaseObj::iterator& entry = progress->entry; entry != lhs->end(); ++entry) {
      const auto& [key, value] = *entry;
      if (!IsLeafKey(key.type_index())) return Outcome::kOpen;
      auto it = rhs->find(key);
      if (it == rhs->end()) return Outcome::kDiffers;
      Outcome outcome = CompareLeaves(CellOf(value), CellOf(it->second));
      if (outcome != Outcome::kEqual) return outcome;
    }
    return Outcome::kEqual;
  }

  // Only objects that nothing has to be remembered about.
  Outcome SettleFields(const TVMFFIAny& left, const TVMFFIAny& right, Progress* progress) {
    const StructuralTypes::Facts& facts = types_[left.type_index];
    progress->fields = FieldCursor(facts.type);
    const Object* lhs = Part::Borrowed(left).object();
    const Object* rhs = Part::Borrowed(right).object();
    bool is_tree = facts.kind == kTVMFFISEqHashKindTreeNode ||
                   (facts.kind == kTVMFFISEqHashKindConstTreeNode && lhs != rhs);
    if (trace_path_ || facts.has_hook || !is_tree) return Outcome::kOpen;
    if (!lhs->unique() && !rhs->unique()) return Outcome::kOpen;
    while (true) {
      FieldCursor following = progress->fields;
      const TVMFFIFieldInfo* field = following.Next();
      if (field == nullptr) return Outcome::kEqual;
      Outcome outcome = CompareLeaves(Part(field, lhs).cell(), Part(field, rhs).cell());
      if (outcome != Outcome::kEqual) return outcome;
      progress->fields = following;
    }
  }

  // Other keys may be bound to others, and looking them up may call their `__any_equal__`.
  static bool IsLeafKey(int32_t type_index) {
    return type_index < kTVMFFIStaticObjectBegin || type_index == kTVMFFIStr ||
           type_index == kTVMFFIBytes || type_index == kTVMFFIBigInt;
  }

  // Compares two nodes that are still undecided. Open: a frame was pushed, and *next are the parts
  // of it to enter.
  Outcome Enter(Next* next) {
    switch (next->lhs.type_index()) {
      case kTVMFFIArray:
      case kTVMFFIList:
        Push(next, NodeKind::kSequence);
        return Advance(next);
      case kTVMFFIMap:
      case kTVMFFIDict: {
        PairFrame& frame = Push(next, NodeKind::kMapping);
        if (is_owning_) KeepEntries(&frame);
        return Advance(next);
      }
      default:
        return EnterObject(next);
    }
  }

  // Whether two sequences that are equal as far as the shorter one goes have one length.
  bool EndAlike(const SeqBaseObj* lhs, const SeqBaseObj* rhs) {
    if (lhs->size() == rhs->size()) return true;
    if (!trace_path_) return false;
    auto index = static_cast<int64_t>(std::min(lhs->size(), rhs->size()));
    AccessStep present = AccessStep::ArrayItem(index);
    AccessStep missing = AccessStep::ArrayItemMissing(index);
    bool is_longer = lhs->size() > rhs->size();
    RecordSteps(is_longer ? present : missing, is_longer ? missing : present);
    return false;
  }

  // Hooks may change a Dict, so its own entries cannot be walked while they run.
  void KeepEntries(PairFrame* frame) {
    if (frame->lhs.type_index() != kTVMFFIDict) return;
    const MapBaseObj* dict = MapOf(frame->lhs.cell());
    frame->dict_copy = ObjectRef(MapOps::Copy(dict));
    MapBaseObj::iterator entry = EntriesOf(*frame)->begin();
    for (auto it = dict->begin(); it != frame->progress.entry; ++it) ++entry;
    frame->progress.entry = entry;
  }

  const MapBaseObj* EntriesOf(const PairFrame& frame) {
    if (!frame.dict_copy.defined()) return MapOf(frame.lhs.cell());
    return static_cast<const MapBaseObj*>(frame.dict_copy.get());
  }

  Outcome EnterObject(Next* next) {
    const StructuralTypes::Facts& facts = types_[next->lhs.type_index()];
    TVMFFISEqHashKind kind = facts.kind;
    const Object* left = next->lhs.object();
    const Object* right = next->rhs.object();
    switch (kind) {
      case kTVMFFISEqHashKindUniqueInstance:
        return OutcomeOf(left == right);
      case kTVMFFISEqHashKindConstTreeNode:
        if (left == right) return Outcome::kEqual;
        break;
      case kTVMFFISEqHashKindFreeVar:
      case kTVMFFISEqHashKindDAGNode:
        if (const Any* bound = lhs_to_rhs_.Find(left)) return OutcomeOf(ObjectOf(*bound) == right);
        if (rhs_to_lhs_.Find(right) != nullptr) return Outcome::kDiffers;
        break;
      default:
        break;
    }
    // Bindings are only ever added, so what was equal once stays equal. Asking first keeps the
    // comparison of values with much sharing from visiting every path.
    if (next->lhs.IsShared() && next->rhs.IsShared() &&
        equal_pairs_.Find({left, right}) != nullptr) {
      return Outcome::kEqual;
    }
    TVMFFIDefRegionKind inner = InnerDefRegion(kind, next->region);
    if (TVM_FFI_PREDICT_FALSE(facts.has_hook)) {
      return OutcomeOf(EqualByHook(types_.HookOf(facts), &next->lhs, &next->rhs, inner) &&
                       Conclude(next->lhs, next->rhs, kind, next->region));
    }
    PairFrame& frame = Push(next, NodeKind::kFields);
    frame.kind = kind;
    frame.inner_region = inner;
    return Advance(next);
  }

  bool EqualByHook(const Function& hook, Part* lhs, Part* rhs, TVMFFIDefRegionKind inner) {
    lhs->Own();
    rhs->Own();
    OwnEverything();
    if (!callback_) callback_.emplace(this);
    struct Scope {
      StructuralComparer* self;
      TVMFFIDefRegionKind outer_region;
      ~Scope() { self->hook_region_ = outer_region; }
    } scope{this, std::exchange(hook_region_, inner)};
    auto num_steps = static_cast<ptrdiff_t>(lhs_steps_.size());
    Any result = callback_->Call<&StructuralComparer::ComparePart>(hook, lhs->view(), rhs->view());
    if (!result.cast<bool>()) return false;
    // Parts may differ although the hook calls the whole equal; that is not a mismatch.
    lhs_steps_.erase(lhs_steps_.begin() + num_steps, lhs_steps_.end());
    rhs_steps_.erase(rhs_steps_.begin() + num_steps, rhs_steps_.end());
    return true;
  }

  PairFrame& Push(Next* pair, NodeKind node_kind) {
    if (is_owning_) {
      pair->lhs.Own();
      pair->rhs.Own();
    }
    PairFrame& frame = frames_.Push();
    frame.lhs = std::move(pair->lhs);
    frame.rhs = std::move(pair->rhs);
    frame.progress = pair->progress;
    frame.node_kind = node_kind;
    frame.region = frame.inner_region = pair->region;
    if (circle_watch_.DueAt(frames_.size())) CheckNotCyclic();
    return frame;
  }

  void Pop() {
    // What the frame owns is released when the stack is consistent again.
    Part lhs = std::move(frames_.back().lhs);
    Part rhs = std::move(frames_.back().rhs);
    ObjectRef dict_copy = std::move(frames_.back().dict_copy);
    frames_.Pop();
  }

  // To be called before user code runs, which might drop what was only borrowed so far.
  void OwnEverything() {
    if (is_owning_) return;
    is_owning_ = true;
    for (PairFrame& frame : frames_) {
      frame.lhs.Own();
      frame.rhs.Own();
      if (frame.node_kind == NodeKind::kMapping) KeepEntries(&frame);
    }
  }

  // Goes on in the topmost frame. Open: *next are the parts of it to enter. Equal: it is done and
  // popped.
  Outcome Advance(Next* next) {
    next->lhs.LetGo();
    next->rhs.LetGo();
    switch (frames_.back().node_kind) {
      case NodeKind::kSequence:
        return AdvanceSequence(next);
      case NodeKind::kMapping:
        return AdvanceMap(next);
      case NodeKind::kFields:
        return AdvanceFields(next);
    }
    TVM_FFI_UNREACHABLE();
  }

  Outcome AdvanceSequence(Next* next) {
    PairFrame& top = frames_.back();
    const SeqBaseObj* lhs = SequenceOf(top.lhs.cell());
    const SeqBaseObj* rhs = SequenceOf(top.rhs.cell());
    const Any* left = lhs->begin();
    const Any* right = rhs->begin();
    size_t size = std::min(lhs->size(), rhs->size());
    for (size_t i = top.progress.position; i < size; ++i) {
      Outcome outcome = Settle(CellOf(left[i]), CellOf(right[i]), &next->progress);
      if (outcome == Outcome::kEqual) continue;
      top.progress.position = i + 1;
      next->lhs.Borrow(CellOf(left[i]));
      next->rhs.Borrow(CellOf(right[i]));
      next->region = top.inner_region;
      return outcome;
    }
    bool equal = EndAlike(lhs, rhs);
    Pop();
    return OutcomeOf(equal);
  }

  Outcome AdvanceFields(Next* next) {
    PairFrame& top = frames_.back();
    while (const TVMFFIFieldInfo* field = top.progress.fields.Next()) {
      Part left(field, top.lhs.object());
      Part right(field, top.rhs.object());
      Outcome outcome = Settle(left.cell(), right.cell(), &next->progress);
      if (outcome == Outcome::kEqual) continue;
      next->lhs = std::move(left);
      next->rhs = std::move(right);
      next->region = FieldDefRegion(field, top.inner_region);
      return outcome;
    }
    bool equal = Conclude(top.lhs, top.rhs, top.kind, top.region);
    Pop();
    return OutcomeOf(equal);
  }

  Outcome AdvanceMap(Next* next) {
    while (true) {
      if (frames_.back().progress.entry == EntriesOf(frames_.back())->end()) return FinishMap();
      // Looking an object up may call its `__any_equal__`.
      if (!IsLeafKey(frames_.back().progress.entry->first.type_index())) OwnEverything();
      const auto& [key, value] = *frames_.back().progress.entry;
      ++frames_.back().progress.entry;
      Any bound;
      const Any& rhs_key = Translate(key, &lhs_to_rhs_, &bound);
      const MapBaseObj* rhs_map = MapOf(frames_.back().rhs.cell());
      auto it = rhs_map->find(rhs_key);
      if (it == rhs_map->end()) {
        if (trace_path_) RecordSteps(AccessStep::MapItem(key), AccessStep::MapItemMissing(rhs_key));
        Pop();
        return Outcome::kDiffers;
      }
      Outcome outcome = Settle(CellOf(value), CellOf(it->second), &next->progress);
      if (outcome == Outcome::kEqual) continue;
      next->lhs.Borrow(CellOf(value));
      next->rhs.Borrow(CellOf(it->second));
      next->region = frames_.back().inner_region;
      return outcome;
    }
  }

  // All entries of the left map have an equal partner.
  Outcome FinishMap() {
    const MapBaseObj* lhs_map = MapOf(frames_.back().lhs.cell());
    const MapBaseObj* rhs_map = MapOf(frames_.back().rhs.cell());
    bool equal = lhs_map->size() == rhs_map->size();
    if (!equal && trace_path_) {
      OwnEverything();
      const ObjectPtr<Object> copy = MapOps::Copy(rhs_map);  // looking up may change a Dict
      for (const auto& entry : *static_cast<const MapBaseObj*>(copy.get())) {
        Any bound;
        const Any& lhs_key = Translate(entry.first, &rhs_to_lhs_, &bound);
        if (lhs_map->count(lhs_key) != 0) continue;
        RecordSteps(AccessStep::MapItemMissing(lhs_key), AccessStep::MapItem(entry.first));
        break;
      }
    }
    Pop();
    return OutcomeOf(equal);
  }

  bool Conclude(const Part& lhs, const Part& rhs, TVMFFISEqHashKind kind,
                TVMFFIDefRegionKind region) {
    const Object* left = lhs.object();
    const Object* right = rhs.object();
    switch (kind) {
      case kTVMFFISEqHashKindFreeVar:
        if (left != right && region == kTVMFFIDefRegionKindNone) return false;
        [[fallthrough]];
      case kTVMFFISEqHashKindDAGNode:
        lhs_to_rhs_[left] = rhs.any();
        rhs_to_lhs_[right] = lhs.any();
        return true;
      default:
        if (lhs.IsShared() && rhs.IsShared()) {
          equal_pairs_[{left, right}] = {lhs.any(), rhs.any()};
        }
        return true;
    }
  }

  const SeqBaseObj* SequenceOf(const TVMFFIAny& cell) {
    return views_.Of(static_cast<const SeqBaseObj*>(Part::Borrowed(cell).object()));
  }
  const MapBaseObj* MapOf(const TVMFFIAny& cell) {
    return views_.Of(static_cast<const MapBaseObj*>(Part::Borrowed(cell).object()));
  }

  // The key's partner on the other side, if it has one; *bound keeps that alive.
  static const Any& Translate(const Any& key, Binding* binding, Any* bound) {
    if (key.type_index() < kTVMFFIStaticObjectBegin) return key;
    const Any* found = binding->Find(ObjectOf(key));
    if (found == nullptr) return key;
    *bound = *found;
    return *bound;
  }

  void RecordSteps(AccessStep lhs, AccessStep rhs) {
    lhs_steps_.push_back(std::move(lhs));
    rhs_steps_.push_back(std::move(rhs));
  }

  // The step to the part that was entered last.
  void RecordStepOf(const PairFrame& frame) {
    switch (frame.node_kind) {
      case NodeKind::kSequence: {
        AccessStep step = AccessStep::ArrayItem(static_cast<int64_t>(frame.progress.position) - 1);
        RecordSteps(step, step);
        return;
      }
      case NodeKind::kMapping: {
        MapBaseObj::iterator last = frame.progress.entry;
        const Any& key = (--last)->first;
        Any bound;
        RecordSteps(AccessStep::MapItem(key),
                    AccessStep::MapItem(Translate(key, &lhs_to_rhs_, &bound)));
        return;
      }
      case NodeKind::kFields: {
        AccessStep step = AccessStep::Attr(String(frame.progress.fields.Last()->name));
        RecordSteps(step, step);
        return;
      }
    }
  }

  // If only one side is cyclic the other one ends the comparison.
  TVM_FFI_NO_INLINE void CheckNotCyclic() {
    auto lhs_of = [](const PairFrame& frame) { return frame.lhs.object(); };
    auto rhs_of = [](const PairFrame& frame) { return frame.rhs.object(); };
    if (!CircleWatch::HasRepeat(frames_, lhs_of) || !CircleWatch::HasRepeat(frames_, rhs_of))
      return;
    TVM_FFI_THROW(ValueError) << "StructuralEqual: both values contain themselves (at type `"
                              << TypeKeyOf(frames_.back().lhs.type_index()) << "`)";
  }

  TVMFFIDefRegionKind root_region_;
  bool skip_tensor_content_;
  bool trace_path_;
  bool is_owning_;
  TVMFFIDefRegionKind hook_region_ = kTVMFFIDefRegionKindNone;
  StructuralTypes types_;
  Views views_;
  InlineStack<PairFrame, 8> frames_;
  // Values, not addresses: a getter may have made them just now, and they are held so that their
  // addresses are not reused.
  Binding lhs_to_rhs_;
  Binding rhs_to_lhs_;
  AddressMap<std::pair<const Object*, const Object*>, std::pair<Any, Any>> equal_pairs_;
  std::vector<AccessStep> lhs_steps_;
  std::vector<AccessStep> rhs_steps_;
  CircleWatch circle_watch_;
  std::optional<HookCallback<StructuralComparer>> callback_;
};

}  // namespace
}  // namespace tether

bool StructuralEqual::Equal(const Any& lhs, const Any& rhs, bool map_free_vars,
                            bool skip_tensor_content) {
  return tether::StructuralComparer(map_free_vars, skip_tensor_content, false).Run(lhs, rhs);
}

Optional<reflection::AccessPathPair> StructuralEqual::GetFirstMismatch(const Any& lhs,
                                                                       const Any& rhs,
                                                                       bool map_free_vars,
                                                                       bool skip_tensor_content) {
  tether::StructuralComparer comparer(map_free_vars, skip_tensor_content, true);
  if (comparer.Run(lhs, rhs)) return std::nullopt;
  return comparer.MismatchPaths();
}

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::EnsureTypeAttrColumn(reflection::type_attr::kSEqual);
  reflection::GlobalDef()
      .def("ffi.StructuralEqual", StructuralEqual::Equal)
      .def("ffi.GetFirstStructuralMismatch", StructuralEqual::GetFirstMismatch);
}

}  // namespace ffi
}  // namespace tvm
