// SPDX-License-Identifier: Apache-2.0
//
// StructuralEqual: compares two values side by side. Variables and DAG nodes that were found equal
// are bound to each other for the rest of the comparison; whoever meets one of them again must meet
// the other on the other side.
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
  TVMFFIByteArray left = RequireHostContent(lhs, "compare");
  TVMFFIByteArray right = RequireHostContent(rhs, "compare");
  return left.size == 0 || std::memcmp(left.data, right.data, left.size) == 0;
}

// Two nodes of one type whose parts are being compared.
struct PairFrame {
  Part lhs;
  Part rhs;
  NodeKind node_kind = NodeKind::kFields;
  TVMFFISEqHashKind kind = kTVMFFISEqHashKindUnsupported;       // of the type of objects
  TVMFFIDefRegionKind region = kTVMFFIDefRegionKindNone;        // the region the pair was met in
  TVMFFIDefRegionKind inner_region = kTVMFFIDefRegionKindNone;  // what its parts inherit
  // How far the comparison is.
  FieldCursor fields;
  size_t position = 0;                  // in a sequence: how many elements were entered
  const MapBaseObj* entries = nullptr;  // in a map: the left one, or a copy of it
  MapBaseObj::iterator entry;           // in a map: the entry to come
};

class StructuralComparer {
 public:
  StructuralComparer(bool map_free_vars, bool skip_tensor_content, bool trace_path)
      : root_region_(map_free_vars ? kTVMFFIDefRegionKindRecursive : kTVMFFIDefRegionKindNone),
        skip_tensor_content_(skip_tensor_content),
        trace_path_(trace_path) {}

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

  // Leaves the stack as it was, whether it returns or throws: a hook may go on after either.
  bool Compare(Part&& lhs, Part&& rhs, TVMFFIDefRegionKind region) {
    struct Scope {
      StructuralComparer* self;
      size_t floor;
      ~Scope() {
        while (self->frames_.size() > floor) self->Pop();
      }
    } scope{this, frames_.size()};
    bool equal = Enter(std::move(lhs), std::move(rhs), region);
    while (equal && frames_.size() > scope.floor) equal = Advance();
    for (; trace_path_ && frames_.size() > scope.floor; Pop()) RecordStepOf(frames_.back());
    return equal;
  }

  // False: they differ. True: they are equal, or the pushed frame will tell.
  bool Enter(Part&& lhs, Part&& rhs, TVMFFIDefRegionKind region) {
    const TVMFFIAny& left = lhs.cell();
    const TVMFFIAny& right = rhs.cell();
    if (left.type_index != right.type_index) {
      // Only the two forms of a string, or of bytes, can still be equal.
      return AnyEqual()(lhs.any(), rhs.any());
    }
    if (left.type_index < kTVMFFIStaticObjectBegin) return EqualBits(left, right);
    switch (left.type_index) {
      case kTVMFFIStr:
      case kTVMFFIBytes:
        return AnyEqual()(lhs.any(), rhs.any());
      case kTVMFFIShape:
        return EqualShape(*TVMFFIShapeGetCellPtr(left.v_obj), *TVMFFIShapeGetCellPtr(right.v_obj));
      case kTVMFFITensor:
        return left.v_obj == right.v_obj ||
               EqualTensor(*TVMFFITensorGetDLTensorPtr(left.v_obj),
                           *TVMFFITensorGetDLTensorPtr(right.v_obj), skip_tensor_content_);
      case kTVMFFIArray:
      case kTVMFFIList:
        return EnterSequence(std::move(lhs), std::move(rhs), region);
      case kTVMFFIMap:
      case kTVMFFIDict:
        return EnterMap(std::move(lhs), std::move(rhs), region);
      default:
        return EnterObject(std::move(lhs), std::move(rhs), region);
    }
  }

  bool EnterSequence(Part&& lhs, Part&& rhs, TVMFFIDefRegionKind region) {
    // Only a search for the place of the difference has to look inside.
    if (!trace_path_ && SequenceOf(lhs)->size() != SequenceOf(rhs)->size()) return false;
    PairFrame& frame = Push(std::move(lhs), std::move(rhs), NodeKind::kSequence);
    frame.region = frame.inner_region = region;
    return true;
  }

  bool EnterMap(Part&& lhs, Part&& rhs, TVMFFIDefRegionKind region) {
    const MapBaseObj* entries = MapOf(lhs);
    if (!trace_path_ && entries->size() != MapOf(rhs)->size()) return false;
    if (lhs.type_index() == kTVMFFIDict) {
      // Hooks may change it, which a walk over its own entries would not survive.
      dict_copies_.push_back(ObjectRef(MapOps::Copy(entries)));
      entries = static_cast<const MapBaseObj*>(dict_copies_.back().get());
    }
    PairFrame& frame = Push(std::move(lhs), std::move(rhs), NodeKind::kMapping);
    frame.region = frame.inner_region = region;
    frame.entries = entries;
    frame.entry = entries->begin();
    return true;
  }

  bool EnterObject(Part&& lhs, Part&& rhs, TVMFFIDefRegionKind region) {
    static const reflection::TypeAttrColumn hooks(reflection::type_attr::kSEqual);
    const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(lhs.type_index());
    TVMFFISEqHashKind kind = RequireStructuralKind(type);
    const Object* left = lhs.object();
    const Object* right = rhs.object();
    // Both are about to be read, and in a large value neither is in the cache.
    Prefetch(left);
    Prefetch(right);
    switch (kind) {
      case kTVMFFISEqHashKindUniqueInstance:
        return left == right;
      case kTVMFFISEqHashKindConstTreeNode:
        if (left == right) return true;
        break;
      case kTVMFFISEqHashKindFreeVar:
      case kTVMFFISEqHashKindDAGNode:
        if (const Any* bound = lhs_to_rhs_.Find(left)) return ObjectOf(*bound) == right;
        if (rhs_to_lhs_.Find(right) != nullptr) return false;
        break;
      default:
        break;
    }
    // Bindings are only ever added, so what was equal once stays equal. Asking first keeps the
    // comparison of values with much sharing from visiting every path.
    if (lhs.IsShared() && rhs.IsShared() && equal_pairs_.Find({left, right}) != nullptr)
      return true;
    TVMFFIDefRegionKind inner = InnerDefRegion(kind, region);
    AnyView hook = hooks[type->type_index];
    if (hook != nullptr) {
      return EqualByHook(hook.cast<Function>(), &lhs, &rhs, inner) &&
             Conclude(std::move(lhs), std::move(rhs), kind, region);
    }
    PairFrame& frame = Push(std::move(lhs), std::move(rhs), NodeKind::kFields);
    frame.kind = kind;
    frame.region = region;
    frame.inner_region = inner;
    frame.fields = FieldCursor(type);
    return true;
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
    // Parts may differ although the hook calls the whole equal; they are no mismatch then.
    lhs_steps_.erase(lhs_steps_.begin() + num_steps, lhs_steps_.end());
    rhs_steps_.erase(rhs_steps_.begin() + num_steps, rhs_steps_.end());
    return true;
  }

  PairFrame& Push(Part&& lhs, Part&& rhs, NodeKind node_kind) {
    if (is_owning_) {
      lhs.Own();
      rhs.Own();
    }
    PairFrame& frame = frames_.Push();
    frame.lhs = std::move(lhs);
    frame.rhs = std::move(rhs);
    frame.node_kind = node_kind;
    if (circle_watch_.DueAt(frames_.size())) CheckNotCyclic();
    return frame;
  }

  void Pop() {
    if (frames_.back().lhs.type_index() == kTVMFFIDict) dict_copies_.pop_back();
    frames_.Pop();
  }

  // To be called before user code runs, which might drop what was only borrowed so far.
  void OwnEverything() {
    if (is_owning_) return;
    is_owning_ = true;
    for (PairFrame& frame : frames_) {
      frame.lhs.Own();
      frame.rhs.Own();
    }
  }

  // Goes on in the topmost frame until another one is pushed or this one is done; false as soon as
  // something differs. A hook may move the stack, so back() is asked for again after every Enter.
  bool Advance() {
    switch (frames_.back().node_kind) {
      case NodeKind::kSequence:
        return AdvanceSequence();
      case NodeKind::kMapping:
        return AdvanceMap();
      case NodeKind::kFields:
        return AdvanceFields();
    }
    TVM_FFI_UNREACHABLE();
  }

  bool AdvanceSequence() {
    size_t depth = frames_.size();
    while (true) {
      PairFrame& top = frames_.back();
      const SeqBaseObj* lhs = SequenceOf(top.lhs);
      const SeqBaseObj* rhs = SequenceOf(top.rhs);
      size_t index = top.position;
      if (index >= lhs->size() || index >= rhs->size()) break;
      ++top.position;
      const TVMFFIAny& left = CellOf(lhs->begin()[index]);
      const TVMFFIAny& right = CellOf(rhs->begin()[index]);
      if (left.type_index == right.type_index && left.type_index < kTVMFFIStaticObjectBegin) {
        if (!EqualBits(left, right)) return false;
        continue;
      }
      if (!Enter(Part::Borrowed(left), Part::Borrowed(right), top.inner_region)) return false;
      if (frames_.size() != depth) return true;
    }
    PairFrame& top = frames_.back();
    size_t lhs_size = SequenceOf(top.lhs)->size();
    size_t rhs_size = SequenceOf(top.rhs)->size();
    if (lhs_size == rhs_size) return Finish();
    if (trace_path_) {
      auto index = static_cast<int64_t>(std::min(lhs_size, rhs_size));
      AccessStep present = AccessStep::ArrayItem(index);
      AccessStep missing = AccessStep::ArrayItemMissing(index);
      RecordSteps(lhs_size > rhs_size ? present : missing, lhs_size > rhs_size ? missing : present);
    }
    Pop();
    return false;
  }

  bool AdvanceFields() {
    size_t depth = frames_.size();
    while (true) {
      PairFrame& top = frames_.back();
      const TVMFFIFieldInfo* field = top.fields.Next();
      if (field == nullptr) return Finish();
      Part lhs(field, top.lhs.object());
      Part rhs(field, top.rhs.object());
      if (!Enter(std::move(lhs), std::move(rhs), FieldDefRegion(field, top.inner_region))) {
        return false;
      }
      if (frames_.size() != depth) return true;
    }
  }

  bool AdvanceMap() {
    size_t depth = frames_.size();
    while (true) {
      if (frames_.back().entry == frames_.back().entries->end()) return FinishMap();
      const auto& [key, value] = *frames_.back().entry;
      ++frames_.back().entry;
      Any rhs_key = Translate(key, &lhs_to_rhs_);
      // Looking an object up may call its `__any_equal__`.
      if (rhs_key.type_index() >= kTVMFFIStaticObjectBegin) OwnEverything();
      PairFrame& top = frames_.back();
      const MapBaseObj* rhs_map = MapOf(top.rhs);
      auto it = rhs_map->find(rhs_key);
      if (it == rhs_map->end()) {
        if (trace_path_) RecordSteps(AccessStep::MapItem(key), AccessStep::MapItemMissing(rhs_key));
        Pop();
        return false;
      }
      if (!Enter(Part::Borrowed(value), Part::Borrowed(it->second), top.inner_region)) return false;
      if (frames_.size() != depth) return true;
    }
  }

  // All entries of the left map have an equal partner.
  bool FinishMap() {
    const MapBaseObj* lhs_map = MapOf(frames_.back().lhs);
    const MapBaseObj* rhs_map = MapOf(frames_.back().rhs);
    if (lhs_map->size() == rhs_map->size()) return Finish();
    if (trace_path_) {
      for (const auto& entry : *rhs_map) {
        Any lhs_key = Translate(entry.first, &rhs_to_lhs_);
        if (lhs_map->find(lhs_key) != lhs_map->end()) continue;
        RecordSteps(AccessStep::MapItemMissing(lhs_key), AccessStep::MapItem(entry.first));
        break;
      }
    }
    Pop();
    return false;
  }

  // All parts of the topmost pair are equal.
  bool Finish() {
    PairFrame& top = frames_.back();
    bool equal = top.node_kind != NodeKind::kFields ||
                 Conclude(std::move(top.lhs), std::move(top.rhs), top.kind, top.region);
    Pop();
    return equal;
  }

  bool Conclude(Part&& lhs, Part&& rhs, TVMFFISEqHashKind kind, TVMFFIDefRegionKind region) {
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

  static const SeqBaseObj* SequenceOf(const Part& value) {
    return static_cast<const SeqBaseObj*>(value.object());
  }
  static const MapBaseObj* MapOf(const Part& value) {
    return static_cast<const MapBaseObj*>(value.object());
  }

  static Any Translate(const Any& key, Binding* binding) {
    if (key.type_index() < kTVMFFIStaticObjectBegin) return key;
    const Any* bound = binding->Find(ObjectOf(key));
    return bound != nullptr ? *bound : key;
  }

  void RecordSteps(AccessStep lhs, AccessStep rhs) {
    lhs_steps_.push_back(std::move(lhs));
    rhs_steps_.push_back(std::move(rhs));
  }

  // The step to the part that was entered last.
  void RecordStepOf(const PairFrame& frame) {
    switch (frame.node_kind) {
      case NodeKind::kSequence: {
        AccessStep step = AccessStep::ArrayItem(static_cast<int64_t>(frame.position) - 1);
        RecordSteps(step, step);
        return;
      }
      case NodeKind::kMapping: {
        MapBaseObj::iterator last = frame.entry;
        const Any& key = (--last)->first;
        RecordSteps(AccessStep::MapItem(key), AccessStep::MapItem(Translate(key, &lhs_to_rhs_)));
        return;
      }
      case NodeKind::kFields: {
        AccessStep step = AccessStep::Attr(String(frame.fields.Last()->name));
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
  bool is_owning_ = false;
  TVMFFIDefRegionKind hook_region_ = kTVMFFIDefRegionKindNone;
  InlineStack<PairFrame, 8> frames_;
  std::vector<ObjectRef> dict_copies_;
  // Values, not addresses: a getter may have made them just now, and their addresses must stay
  // taken.
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
