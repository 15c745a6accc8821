// SPDX-License-Identifier: Apache-2.0
//
// StructuralHash: a hash that agrees with StructuralEqual. A bound variable counts as its number in
// order of definition, a DAG node additionally as its number in order of completion; everything
// else counts by content.
#include <tvm/ffi/extra/structural_hash.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "structural_common.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

using details::StableHashBytes;
using details::StableHashCombine;

uint64_t TypeKeyHashOf(int32_t type_index) { return TVMFFIGetTypeInfo(type_index)->type_key_hash; }

uint64_t HashBits(const TVMFFIAny& cell) {
  uint64_t bits = cell.v_uint64;
  if (cell.type_index == kTVMFFIFloat && std::isnan(cell.v_float64)) {
    double nan = std::numeric_limits<double>::quiet_NaN();
    std::memcpy(&bits, &nan, sizeof(bits));
  }
  return StableHashCombine(cell.type_index, bits);
}

uint64_t HashShape(const TVMFFIShapeCell& shape) {
  uint64_t hash = StableHashCombine(TypeKeyHashOf(kTVMFFIShape), shape.size);
  for (size_t i = 0; i < shape.size; ++i) hash = StableHashCombine(hash, shape.data[i]);
  return hash;
}

uint64_t HashTensor(const DLTensor& tensor, bool skip_content) {
  uint64_t hash = StableHashCombine(TypeKeyHashOf(kTVMFFITensor), tensor.ndim);
  for (int32_t i = 0; i < tensor.ndim; ++i) hash = StableHashCombine(hash, tensor.shape[i]);
  TVMFFIAny dtype{};
  dtype.v_dtype = tensor.dtype;
  hash = StableHashCombine(hash, dtype.v_uint64);
  if (skip_content) return hash;
  TVMFFIByteArray content = RequireHostContent(tensor, "hash");
  return StableHashCombine(hash, StableHashBytes(content.data, content.size));
}

// A node whose parts are being hashed.
struct HashFrame {
  Part node;
  uint64_t hash = 0;  // of what was seen so far
  NodeKind node_kind = NodeKind::kFields;
  bool is_reachable_again = false;
  TVMFFISEqHashKind kind = kTVMFFISEqHashKindUnsupported;       // of the type of an object
  TVMFFIDefRegionKind region = kTVMFFIDefRegionKindNone;        // the region the node was met in
  TVMFFIDefRegionKind inner_region = kTVMFFIDefRegionKindNone;  // what its parts inherit
  // How far the walk is.
  FieldCursor fields;
  size_t position = 0;     // in a sequence: the next element; in a map: the next of entries_
  size_t first_entry = 0;  // in a map: entries_ from here on belong to it
};

class StructuralHasher {
 public:
  StructuralHasher(bool map_free_vars, bool skip_tensor_content)
      : root_region_(map_free_vars ? kTVMFFIDefRegionKindRecursive : kTVMFFIDefRegionKindNone),
        skip_tensor_content_(skip_tensor_content) {}

  uint64_t Run(const Any& root) { return Hash(Part::Borrowed(root), root_region_); }

  // What an `__s_hash__` hook calls for the parts of its object.
  int64_t HashPart(AnyView value, int64_t init, int kind) {
    uint64_t hash = Hash(Part::Owned(value), RegionAskedByHook(kind, hook_region_));
    return static_cast<int64_t>(StableHashCombine(static_cast<uint64_t>(init), hash));
  }

 private:
  // Leaves the stack as it was, whether it returns or throws: a hook may go on after either.
  uint64_t Hash(Part&& value, TVMFFIDefRegionKind region) {
    struct Scope {
      StructuralHasher* self;
      size_t outer_floor;
      ~Scope() {
        while (self->frames_.size() > self->floor_) self->Pop();
        self->floor_ = outer_floor;
      }
    } scope{this, std::exchange(floor_, frames_.size())};
    uint64_t hash = 0;
    bool known = Visit(std::move(value), region, &hash);
    while (!known || frames_.size() > floor_) {
      if (known) Fold(hash);
      known = Advance(&hash);
    }
    return hash;
  }

  void Fold(uint64_t hash) { frames_.back().hash = StableHashCombine(frames_.back().hash, hash); }

  // True: *hash is the hash of the value. False: the pushed frame will tell.
  bool Visit(Part&& value, TVMFFIDefRegionKind region, uint64_t* hash) {
    const TVMFFIAny& cell = value.cell();
    switch (cell.type_index) {
      case kTVMFFISmallStr:
      case kTVMFFISmallBytes:
      case kTVMFFIStr:
      case kTVMFFIBytes:
        *hash = AnyHash()(value.any());
        return true;
      case kTVMFFIShape:
        *hash = HashShape(*TVMFFIShapeGetCellPtr(cell.v_obj));
        return true;
      case kTVMFFITensor:
        *hash = HashTensor(*TVMFFITensorGetDLTensorPtr(cell.v_obj), skip_tensor_content_);
        return true;
      case kTVMFFIArray:
      case kTVMFFIList:
        EnterSequence(std::move(value), region);
        return false;
      case kTVMFFIMap:
      case kTVMFFIDict:
        EnterMap(std::move(value), region);
        return false;
      default:
        if (cell.type_index >= kTVMFFIStaticObjectBegin) {
          return VisitObject(std::move(value), region, hash);
        }
        *hash = HashBits(cell);
        return true;
    }
  }

  bool VisitObject(Part&& value, TVMFFIDefRegionKind region, uint64_t* hash) {
    static const reflection::TypeAttrColumn hooks(reflection::type_attr::kSHash);
    const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(value.type_index());
    TVMFFISEqHashKind kind = RequireStructuralKind(type);
    if (const uint64_t* known = done_.Find(value.object())) {
      *hash = *known;
      return true;
    }
    TVMFFIDefRegionKind inner = InnerDefRegion(kind, region);
    AnyView hook = hooks[type->type_index];
    if (hook != nullptr) {
      *hash = HashByHook(hook.cast<Function>(), &value, type->type_key_hash, inner);
      *hash = Conclude(std::move(value), kind, region, true, *hash);
      return true;
    }
    HashFrame& frame = Push(std::move(value), NodeKind::kFields);
    frame.hash = type->type_key_hash;
    frame.kind = kind;
    frame.region = region;
    frame.inner_region = inner;
    frame.fields = FieldCursor(type);
    return false;
  }

  uint64_t HashByHook(const Function& hook, Part* value, uint64_t init, TVMFFIDefRegionKind inner) {
    value->Own();
    OwnEverything();
    if (!callback_) callback_.emplace(this);
    struct Scope {
      StructuralHasher* self;
      TVMFFIDefRegionKind outer_region;
      bool was_in_hook;
      ~Scope() {
        self->hook_region_ = outer_region;
        self->is_in_hook_ = was_in_hook;
      }
    } scope{this, std::exchange(hook_region_, inner), std::exchange(is_in_hook_, true)};
    Any result = callback_->Call<&StructuralHasher::HashPart>(hook, value->view(),
                                                              static_cast<int64_t>(init));
    return static_cast<uint64_t>(result.cast<int64_t>());
  }

  void EnterSequence(Part&& node, TVMFFIDefRegionKind region) {
    uint64_t hash = StableHashCombine(TypeKeyHashOf(node.type_index()),
                                      static_cast<const SeqBaseObj*>(node.object())->size());
    HashFrame& frame = Push(std::move(node), NodeKind::kSequence);
    frame.hash = hash;
    frame.region = frame.inner_region = region;
  }

  // The entries in the order of their key hashes, so that insertion order does not matter. Keys
  // whose hash is not known yet, or not unique, have no such order and their values cannot take
  // part.
  void EnterMap(Part&& node, TVMFFIDefRegionKind region) {
    const auto* map = static_cast<const MapBaseObj*>(node.object());
    uint64_t hash = StableHashCombine(TypeKeyHashOf(node.type_index()), map->size());
    HashFrame& frame = Push(std::move(node), NodeKind::kMapping);
    frame.hash = hash;
    frame.region = frame.inner_region = region;
    frame.first_entry = frame.position = entries_.size();
    for (const auto& [key, value] : *map) {
      uint64_t key_hash;
      if (!HashKey(key, &key_hash)) continue;
      entries_.push_back({key_hash, Part::Borrowed(value)});
      if (is_owning_) entries_.back().value.Own();
    }
    std::sort(entries_.begin() + static_cast<ptrdiff_t>(frame.first_entry), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.key_hash < b.key_hash; });
  }

  bool HashKey(const Any& key, uint64_t* hash) {
    int32_t type_index = key.type_index();
    if (type_index < kTVMFFIStaticObjectBegin || type_index == kTVMFFIStr ||
        type_index == kTVMFFIBytes) {
      *hash = AnyHash()(key);
      return true;
    }
    const uint64_t* known = done_.Find(ObjectOf(key));
    if (known != nullptr) *hash = *known;
    return known != nullptr;
  }

  HashFrame& Push(Part&& node, NodeKind node_kind) {
    if (is_owning_) node.Own();
    bool is_reachable_again = IsReachableAgain(node);
    HashFrame& frame = frames_.Push();
    frame.node = std::move(node);
    frame.node_kind = node_kind;
    frame.is_reachable_again = is_reachable_again;
    if (circle_watch_.DueAt(frames_.size())) CheckNotCyclic();
    return frame;
  }

  void Pop() {
    if (frames_.back().node_kind == NodeKind::kMapping) {
      entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(frames_.back().first_entry),
                     entries_.end());
    }
    frames_.Pop();
  }

  // Goes on in the topmost frame. True: it is done, *hash is its hash. False: another one was
  // pushed. A hook may move the stack, so back() is asked for again after every Visit.
  bool Advance(uint64_t* hash) {
    switch (frames_.back().node_kind) {
      case NodeKind::kSequence:
        return AdvanceSequence(hash);
      case NodeKind::kMapping:
        return AdvanceMap(hash);
      case NodeKind::kFields:
        return AdvanceFields(hash);
    }
    TVM_FFI_UNREACHABLE();
  }

  bool AdvanceSequence(uint64_t* hash) {
    while (true) {
      HashFrame& top = frames_.back();
      const auto* seq = static_cast<const SeqBaseObj*>(top.node.object());
      if (top.position >= seq->size()) break;
      Part item = Part::Borrowed(seq->begin()[top.position++]);
      if (!Visit(std::move(item), top.inner_region, hash)) return false;
      Fold(*hash);
    }
    *hash = frames_.back().hash;
    Pop();
    return true;
  }

  bool AdvanceFields(uint64_t* hash) {
    while (true) {
      HashFrame& top = frames_.back();
      const TVMFFIFieldInfo* field = top.fields.Next();
      if (field == nullptr) break;
      Part part(field, top.node.object());
      if (!Visit(std::move(part), FieldDefRegion(field, top.inner_region), hash)) return false;
      Fold(*hash);
    }
    HashFrame& top = frames_.back();
    *hash = Conclude(std::move(top.node), top.kind, top.region, top.is_reachable_again, top.hash);
    Pop();
    return true;
  }

  bool AdvanceMap(uint64_t* hash) {
    while (frames_.back().position < entries_.size()) {
      HashFrame& top = frames_.back();
      size_t index = top.position;
      uint64_t key_hash = entries_[index].key_hash;
      Fold(key_hash);
      for (++top.position; top.position < entries_.size(); ++top.position) {
        if (entries_[top.position].key_hash != key_hash) break;
      }
      if (top.position != index + 1) continue;
      Part value = std::move(entries_[index].value);
      if (!Visit(std::move(value), top.inner_region, hash)) return false;
      Fold(*hash);
    }
    *hash = frames_.back().hash;
    Pop();
    return true;
  }

  uint64_t Conclude(Part&& node, TVMFFISEqHashKind kind, TVMFFIDefRegionKind region,
                    bool is_reachable_again, uint64_t hash) {
    const Object* object = node.object();
    if (kind == kTVMFFISEqHashKindFreeVar) {
      hash = region != kTVMFFIDefRegionKindNone ? StableHashCombine(hash, free_var_count_++)
                                                : reinterpret_cast<uintptr_t>(object);
    } else if (kind == kTVMFFISEqHashKindDAGNode) {
      hash = StableHashCombine(hash, dag_node_count_++);
    }
    if (is_reachable_again) Remember(std::move(node), hash);
    return hash;
  }

  // The hash of an object is computed once. Remembering it is only worth the while if the walk can
  // come back: another owner leads to the object; or its only owner is a container, which is never
  // remembered, and the walk can come back to that; or a hook asked for it and may ask again.
  bool IsReachableAgain(const Part& node) {
    if (node.IsShared()) return true;
    if (frames_.size() == floor_) return is_in_hook_;
    const HashFrame& parent = frames_.back();
    return parent.node_kind != NodeKind::kFields && parent.is_reachable_again;
  }

  void Remember(Part&& node, uint64_t hash) {
    done_[node.object()] = hash;
    // The address must stay taken: the object may be one that a getter made just now.
    if (is_owning_) node.Own();
    kept_.push_back(std::move(node));
  }

  // To be called before user code runs, which might drop what was only borrowed so far.
  void OwnEverything() {
    if (is_owning_) return;
    is_owning_ = true;
    for (HashFrame& frame : frames_) frame.node.Own();
    for (Entry& entry : entries_) entry.value.Own();
    for (Part& node : kept_) node.Own();
  }

  TVM_FFI_NO_INLINE void CheckNotCyclic() {
    auto object_of = [](const HashFrame& frame) { return frame.node.object(); };
    if (!CircleWatch::HasRepeat(frames_, object_of)) return;
    TVM_FFI_THROW(ValueError) << "StructuralHash: the value contains itself (at type `"
                              << TypeKeyOf(frames_.back().node.type_index()) << "`)";
  }

  struct Entry {
    uint64_t key_hash;
    Part value;
  };

  TVMFFIDefRegionKind root_region_;
  bool skip_tensor_content_;
  bool is_owning_ = false;
  bool is_in_hook_ = false;
  size_t floor_ = 0;  // frames_ below belong to walks that wait for a hook
  TVMFFIDefRegionKind hook_region_ = kTVMFFIDefRegionKindNone;
  uint32_t free_var_count_ = 0;
  uint32_t dag_node_count_ = 0;
  InlineStack<HashFrame, 8> frames_;
  std::vector<Entry> entries_;
  AddressMap<const Object*, uint64_t> done_;
  std::vector<Part> kept_;  // the keys of done_
  CircleWatch circle_watch_;
  std::optional<HookCallback<StructuralHasher>> callback_;
};

}  // namespace
}  // namespace tether

uint64_t StructuralHash::Hash(const Any& value, bool map_free_vars, bool skip_tensor_content) {
  return tether::StructuralHasher(map_free_vars, skip_tensor_content).Run(value);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::EnsureTypeAttrColumn(reflection::type_attr::kSHash);
  reflection::GlobalDef().def("ffi.StructuralHash", [](const Any& value, bool map_free_vars,
                                                       bool skip_tensor_content) {
    return static_cast<int64_t>(StructuralHash::Hash(value, map_free_vars, skip_tensor_content));
  });
}

}  // namespace ffi
}  // namespace tvm
