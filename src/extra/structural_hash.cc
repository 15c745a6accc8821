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
  HostContent content = RequireHostContent(tensor, "hash");
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
        skip_tensor_content_(skip_tensor_content),
        types_(Hooks()) {}

  uint64_t Run(const Any& root) { return Hash(Part::Borrowed(root), root_region_); }

  // What an `__s_hash__` hook calls for the parts of its object.
  int64_t HashPart(AnyView value, int64_t init, int kind) {
    uint64_t hash = Hash(Part::Owned(value), RegionAskedByHook(kind, hook_region_));
    return static_cast<int64_t>(StableHashCombine(static_cast<uint64_t>(init), hash));
  }

 private:
  static const reflection::TypeAttrColumn& Hooks() {
    static const reflection::TypeAttrColumn hooks(reflection::type_attr::kSHash);
    return hooks;
  }

  // A part that was found in a node and is to be hashed next.
  struct Next {
    Part value;
    TVMFFIDefRegionKind region;
  };

  // Leaves the stack as it was, whether it returns or throws: a hook may go on after either.
  uint64_t Hash(Part&& value, TVMFFIDefRegionKind region) {
    struct Scope {
      StructuralHasher* self;
      size_t outer_floor;
      size_t outer_entries;
      ~Scope() {
        while (self->frames_.size() > self->floor_) self->Pop();
        self->DropEntries(outer_entries);  // of a map that did not get as far as a frame
        self->floor_ = outer_floor;
      }
    } scope{this, std::exchange(floor_, frames_.size()), entries_.size()};
    uint64_t hash = 0;
    Next next{std::move(value), region};
    bool known = HashLeaf(next.value.cell(), &hash);
    while (true) {
      while (!known) known = Visit(&next, &hash);
      if (frames_.size() == floor_) return hash;
      HashFrame& top = frames_.back();
      top.hash = StableHashCombine(top.hash, hash);
      known = Advance(&next, &hash);
    }
  }

  // True: *hash is the hash of the value. False: it has parts.
  TVM_FFI_INLINE bool HashLeaf(const TVMFFIAny& cell, uint64_t* hash) const {
    if (cell.type_index < kTVMFFISmallStr) {
      *hash = HashBits(cell);
      return true;
    }
    return HashLargeLeaf(cell, hash);
  }

  bool HashLargeLeaf(const TVMFFIAny& cell, uint64_t* hash) const {
    switch (cell.type_index) {
      case kTVMFFISmallStr:
      case kTVMFFISmallBytes:
      case kTVMFFIStr:
      case kTVMFFIBytes:
        *hash = AnyHash()(AnyOf(cell));
        return true;
      case kTVMFFIBigInt:
        *hash = HashBigInt(cell);
        return true;
      case kTVMFFIShape:
        *hash = HashShape(*TVMFFIShapeGetCellPtr(cell.v_obj));
        return true;
      case kTVMFFITensor:
        *hash = HashTensor(*TVMFFITensorGetDLTensorPtr(cell.v_obj), skip_tensor_content_);
        return true;
      default:
        if (cell.type_index >= kTVMFFIStaticObjectBegin) return false;
        *hash = HashBits(cell);
        return true;
    }
  }

  // Hashes a value that has parts. True: *hash is its hash; most nodes of a tree are its last ones
  // and need no frame. False: a frame was pushed, and *next is the part of it to visit.
  bool Visit(Next* next, uint64_t* hash) {
    switch (next->value.type_index()) {
      case kTVMFFIArray:
      case kTVMFFIList:
        return VisitSequence(next, hash);
      case kTVMFFIMap:
      case kTVMFFIDict:
        return VisitMap(next, hash);
      default:
        return VisitObject(next, hash);
    }
  }

  bool VisitSequence(Next* next, uint64_t* hash) {
    static const uint64_t array_hash = TypeKeyHashOf(kTVMFFIArray);
    static const uint64_t list_hash = TypeKeyHashOf(kTVMFFIList);
    const SeqBaseObj* seq = views_.Of(static_cast<const SeqBaseObj*>(next->value.object()));
    *hash = StableHashCombine(next->value.type_index() == kTVMFFIArray ? array_hash : list_hash,
                              seq->size());
    size_t position = 0;
    if (HashItems(seq, &position, hash)) return true;
    HashFrame& frame = Push(std::move(next->value), NodeKind::kSequence);
    frame.hash = *hash;
    frame.region = frame.inner_region = next->region;
    frame.position = position;
    next->value.Borrow(CellOf(seq->begin()[position - 1]));
    return false;
  }

  // The three functions of this kind go on with the parts of a node until one has parts itself,
  // which counts as visited then; they return false.
  TVM_FFI_INLINE bool HashItems(const SeqBaseObj* seq, size_t* position, uint64_t* hash) const {
    const Any* items = seq->begin();
    size_t size = seq->size();
    uint64_t all = *hash;
    for (size_t i = *position; i < size; ++i) {
      uint64_t item_hash;
      if (!HashLeaf(CellOf(items[i]), &item_hash)) {
        *position = i + 1;
        *hash = all;
        return false;
      }
      all = StableHashCombine(all, item_hash);
    }
    *hash = all;
    return true;
  }

  bool VisitObject(Next* next, uint64_t* hash) {
    const StructuralTypes::Facts& facts = types_[next->value.type_index()];
    const Object* object = next->value.object();
    if (const uint64_t* known = done_.Find(object)) {
      *hash = *known;
      return true;
    }
    TVMFFISEqHashKind kind = facts.kind;
    TVMFFIDefRegionKind inner = InnerDefRegion(kind, next->region);
    if (TVM_FFI_PREDICT_FALSE(facts.has_hook)) {
      *hash = HashByHook(facts, &next->value, inner);
      *hash = Conclude(std::move(next->value), kind, next->region, true, *hash);
      return true;
    }
    *hash = facts.type->type_key_hash;
    FieldCursor fields(facts.type);
    Next child;
    if (HashFields(object, inner, &fields, hash, &child)) {
      *hash = Conclude(std::move(next->value), kind, next->region, IsReachableAgain(next->value),
                       *hash);
      return true;
    }
    HashFrame& frame = Push(std::move(next->value), NodeKind::kFields);
    frame.hash = *hash;
    frame.kind = kind;
    frame.region = next->region;
    frame.inner_region = inner;
    frame.fields = fields;
    *next = std::move(child);
    return false;
  }

  TVM_FFI_INLINE bool HashFields(const Object* object, TVMFFIDefRegionKind region,
                                 FieldCursor* fields, uint64_t* hash, Next* next) const {
    while (const TVMFFIFieldInfo* field = fields->Next()) {
      Part part(field, object);
      uint64_t part_hash;
      if (!HashLeaf(part.cell(), &part_hash)) {
        *next = {std::move(part), FieldDefRegion(field, region)};
        return false;
      }
      *hash = StableHashCombine(*hash, part_hash);
    }
    return true;
  }

  uint64_t HashByHook(const StructuralTypes::Facts& facts, Part* value, TVMFFIDefRegionKind inner) {
    Function hook = types_.HookOf(facts);
    auto init = static_cast<int64_t>(facts.type->type_key_hash);
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
    Any result = callback_->Call<&StructuralHasher::HashPart>(hook, value->view(), init);
    return static_cast<uint64_t>(result.cast<int64_t>());
  }

  // The entries in the order of their key hashes, so that insertion order does not matter. Keys
  // whose hash is not known yet, or not unique, have no such order and their values cannot take
  // part.
  bool VisitMap(Next* next, uint64_t* hash) {
    const MapBaseObj* map = views_.Of(static_cast<const MapBaseObj*>(next->value.object()));
    *hash = StableHashCombine(TypeKeyHashOf(next->value.type_index()), map->size());
    size_t first = entries_.size();
    for (const auto& [key, value] : *map) {
      uint64_t key_hash;
      if (!HashKey(key, &key_hash)) continue;
      entries_.push_back({key_hash, Part::Borrowed(value)});
      if (is_owning_) entries_.back().value.Own();
    }
    std::sort(entries_.begin() + static_cast<ptrdiff_t>(first), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.key_hash < b.key_hash; });
    size_t position = first;
    Next child;
    if (HashEntries(next->region, &position, hash, &child)) {
      DropEntries(first);
      return true;
    }
    HashFrame& frame = Push(std::move(next->value), NodeKind::kMapping, first);
    frame.hash = *hash;
    frame.region = frame.inner_region = next->region;
    frame.position = position;
    *next = std::move(child);
    return false;
  }

  bool HashEntries(TVMFFIDefRegionKind region, size_t* position, uint64_t* hash, Next* next) {
    while (*position < entries_.size()) {
      size_t index = (*position)++;
      uint64_t key_hash = entries_[index].key_hash;
      *hash = StableHashCombine(*hash, key_hash);
      while (*position < entries_.size() && entries_[*position].key_hash == key_hash) ++*position;
      if (*position != index + 1) continue;
      uint64_t value_hash;
      if (!HashLeaf(entries_[index].value.cell(), &value_hash)) {
        *next = {std::move(entries_[index].value), region};
        return false;
      }
      *hash = StableHashCombine(*hash, value_hash);
    }
    return true;
  }

  bool HashKey(const Any& key, uint64_t* hash) {
    int32_t type_index = key.type_index();
    if (type_index < kTVMFFIStaticObjectBegin || type_index == kTVMFFIStr ||
        type_index == kTVMFFIBytes) {
      *hash = AnyHash()(key);
      return true;
    }
    if (type_index == kTVMFFIBigInt) {
      *hash = HashBigInt(CellOf(key));
      return true;
    }
    const uint64_t* known = done_.Find(ObjectOf(key));
    if (known != nullptr) *hash = *known;
    return known != nullptr;
  }

  // One by one: dropping a value may run user code, and that may call this walk again.
  void DropEntries(size_t first) {
    while (entries_.size() > first) {
      Part value = std::move(entries_.back().value);
      entries_.pop_back();
    }
  }

  // The frame is ready for Pop before anything can throw.
  HashFrame& Push(Part&& node, NodeKind node_kind, size_t first_entry = 0) {
    if (is_owning_) node.Own();
    bool is_reachable_again = IsReachableAgain(node);
    HashFrame& frame = frames_.Push();
    frame.node = std::move(node);
    frame.node_kind = node_kind;
    frame.first_entry = first_entry;
    frame.is_reachable_again = is_reachable_again;
    if (circle_watch_.DueAt(frames_.size())) CheckNotCyclic();
    return frame;
  }

  void Pop() {
    if (frames_.back().node_kind == NodeKind::kMapping) DropEntries(frames_.back().first_entry);
    Part node = std::move(frames_.back().node);  // released when the stack is consistent again
    frames_.Pop();
  }

  // Goes on in the topmost frame. True: it is done, *hash is its hash. False: *next is the
  // part of it to visit.
  bool Advance(Next* next, uint64_t* hash) {
    next->value.LetGo();
    HashFrame& top = frames_.back();
    if (!AdvanceIn(&top, next)) return false;
    *hash = top.node_kind != NodeKind::kFields ? top.hash
                                               : Conclude(std::move(top.node), top.kind, top.region,
                                                          top.is_reachable_again, top.hash);
    Pop();
    return true;
  }

  bool AdvanceIn(HashFrame* top, Next* next) {
    switch (top->node_kind) {
      case NodeKind::kSequence: {
        const SeqBaseObj* seq = views_.Of(static_cast<const SeqBaseObj*>(top->node.object()));
        if (HashItems(seq, &top->position, &top->hash)) return true;
        next->value.Borrow(CellOf(seq->begin()[top->position - 1]));
        next->region = top->inner_region;
        return false;
      }
      case NodeKind::kMapping:
        return HashEntries(top->inner_region, &top->position, &top->hash, next);
      case NodeKind::kFields:
        return HashFields(top->node.object(), top->inner_region, &top->fields, &top->hash, next);
    }
    TVM_FFI_UNREACHABLE();
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

  // The hash of an object is computed once. Remembering it is only worth it if the walk can come
  // back: another owner leads to the object; or its only owner is a container, which is never
  // remembered, and the walk can come back to that; or a hook asked for it and may ask again.
  bool IsReachableAgain(const Part& node) {
    if (node.IsShared()) return true;
    if (frames_.size() == floor_) return is_in_hook_;
    const HashFrame& parent = frames_.back();
    return parent.node_kind != NodeKind::kFields && parent.is_reachable_again;
  }

  void Remember(Part&& node, uint64_t hash) {
    done_[node.object()] = hash;
    // Held, so that its address is not reused: a getter may have made the object just now.
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
  bool is_owning_ = MayChangeAnyTime();
  bool is_in_hook_ = false;
  size_t floor_ = 0;  // frames_ below belong to walks that wait for a hook
  TVMFFIDefRegionKind hook_region_ = kTVMFFIDefRegionKindNone;
  uint32_t free_var_count_ = 0;
  uint32_t dag_node_count_ = 0;
  StructuralTypes types_;
  Views views_;
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
