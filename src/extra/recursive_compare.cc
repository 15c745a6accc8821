// SPDX-License-Identifier: Apache-2.0
//
// RecursiveEq and the orderings RecursiveLt/Le/Gt/Ge: content against content, first difference
// decides.
//
// A pair of objects is compared once. While it is being compared, and afterwards, it counts as
// equal: any difference found anywhere ends the whole comparison, so assuming equality can never
// hide one. The exception is a user hook, which may continue after one of its questions was
// answered "different"; then everything assumed since that question is forgotten.
#include <tvm/ffi/big_int.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "object_graph.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

template <typename T>
int Sign(const T& lhs, const T& rhs) {
  return lhs < rhs ? -1 : (rhs < lhs ? 1 : 0);
}

// Orders by the first of several keys that differs.
int FirstOf(std::initializer_list<int> signs) {
  for (int sign : signs) {
    if (sign != 0) return sign;
  }
  return 0;
}

bool IsStringIndex(int32_t type_index) {
  return type_index == kTVMFFIStr || type_index == kTVMFFISmallStr;
}

bool IsBytesIndex(int32_t type_index) {
  return type_index == kTVMFFIBytes || type_index == kTVMFFISmallBytes;
}

bool IsIntegerIndex(int32_t type_index) {
  return type_index == kTVMFFIInt || type_index == kTVMFFIBigInt;
}

TVMFFIByteArray ContentOf(const Any& value) {
  const TVMFFIAny* cell = details::AnyUnsafe::TVMFFIAnyPtrFromAny(value);
  if (cell->type_index >= kTVMFFIStaticObjectBegin) return *TVMFFIBytesGetByteArrayPtr(cell->v_obj);
  return TVMFFISmallBytesGetContentByteArray(cell);
}

int CompareContent(const Any& lhs, const Any& rhs) {
  TVMFFIByteArray l = ContentOf(lhs);
  TVMFFIByteArray r = ContentOf(rhs);
  return CompareBytes(l.data, r.data, l.size, r.size);
}

int CompareShapes(const ShapeObj& lhs, const ShapeObj& rhs) {
  size_t common = std::min(lhs.size, rhs.size);
  for (size_t i = 0; i < common; ++i) {
    if (lhs.data[i] != rhs.data[i]) return Sign(lhs.data[i], rhs.data[i]);
  }
  return Sign(lhs.size, rhs.size);
}

std::vector<int64_t> StridesOf(const DLTensor& tensor) {
  if (tensor.strides != nullptr) return {tensor.strides, tensor.strides + tensor.ndim};
  std::vector<int64_t> strides(static_cast<size_t>(tensor.ndim));
  int64_t stride = 1;
  for (size_t i = strides.size(); i-- > 0; stride *= tensor.shape[i]) strides[i] = stride;
  return strides;
}

const char* DataOf(const DLTensor& tensor) {
  return static_cast<const char*>(tensor.data) + tensor.byte_offset;
}

// Whole bytes first, then the bits of the last byte that belong to an element.
bool EqualBits(const char* lhs, const char* rhs, uint64_t bits) {
  const size_t bytes = static_cast<size_t>(bits / 8);
  if (std::memcmp(lhs, rhs, bytes) != 0) return false;
  const unsigned used = (1U << bits % 8) - 1;
  return used == 0 ||
         ((static_cast<unsigned>(lhs[bytes]) ^ static_cast<unsigned>(rhs[bytes])) & used) == 0;
}

// The elements of two tensors of one shape and type, wherever their strides lead. The innermost
// axes that lie side by side in both tensors are one block; an axis along which neither tensor
// moves shows the same elements again and is left out. Elements that are not whole bytes have no
// addresses to compare.
bool EqualElements(const DLTensor& lhs, const DLTensor& rhs) {
  struct Axis {
    int64_t length, lhs_step, rhs_step;  // steps in bytes
    int64_t index;
  };
  const int64_t bits = int64_t{lhs.dtype.bits} * lhs.dtype.lanes;
  if (bits % 8 != 0) return false;
  const std::vector<int64_t> lhs_strides = StridesOf(lhs), rhs_strides = StridesOf(rhs);
  std::vector<Axis> axes;  // the innermost first
  int64_t block = bits / 8;
  for (size_t i = lhs_strides.size(); i-- > 0;) {
    const Axis axis{lhs.shape[i], lhs_strides[i] * (bits / 8), rhs_strides[i] * (bits / 8), 0};
    if (axis.length == 1 || (axis.lhs_step == 0 && axis.rhs_step == 0)) continue;
    if (axes.empty() && axis.lhs_step == block && axis.rhs_step == block) {
      block *= axis.length;
    } else {
      axes.push_back(axis);
    }
  }
  const char* left = DataOf(lhs);
  const char* right = DataOf(rhs);
  while (std::memcmp(left, right, static_cast<size_t>(block)) == 0) {
    auto axis = axes.begin();
    for (; axis != axes.end() && axis->index + 1 == axis->length; ++axis) {
      left -= axis->lhs_step * axis->index;
      right -= axis->rhs_step * axis->index;
      axis->index = 0;
    }
    if (axis == axes.end()) return true;
    ++axis->index;
    left += axis->lhs_step;
    right += axis->rhs_step;
  }
  return false;
}

// Shape, type, and elements. Those of other devices cannot be read here: they are equal if they
// are the same memory. Tensors that a client made itself never went through an import, and what is
// wrong with them is equal to nothing.
bool EqualTensors(const DLTensor& lhs, const DLTensor& rhs) {
  if (FindDefect(lhs) != Defect::kNone || FindDefect(rhs) != Defect::kNone) return false;
  if (lhs.ndim != rhs.ndim || lhs.dtype != rhs.dtype ||
      !std::equal(lhs.shape, lhs.shape + lhs.ndim, rhs.shape)) {
    return false;
  }
  if (GetDataSize(lhs) == 0) return true;
  const bool same_device = lhs.device.device_type == rhs.device.device_type &&
                           lhs.device.device_id == rhs.device.device_id;
  if (same_device && DataOf(lhs) == DataOf(rhs) && StridesOf(lhs) == StridesOf(rhs)) return true;
  if (lhs.device.device_type != kDLCPU || rhs.device.device_type != kDLCPU) return false;
  if (IsContiguous(lhs) && IsContiguous(rhs)) {
    uint64_t bits = uint64_t{lhs.dtype.bits} * lhs.dtype.lanes;
    for (int32_t i = 0; i < lhs.ndim; ++i) bits *= static_cast<uint64_t>(lhs.shape[i]);
    return EqualBits(DataOf(lhs), DataOf(rhs), bits);
  }
  return EqualElements(lhs, rhs);
}

class CompareWalk {
 public:
  // In equality mode only "zero or not" of a result means something.
  explicit CompareWalk(bool equality_only) : equality_only_(equality_only) {}

  int Run(const Any& lhs, const Any& rhs) {
    size_t floor = frames_.size();
    size_t first_pair = pairs_.size();
    size_t first_assumed = assumed_.size();
    int result;
    try {
      result = Search(lhs, rhs, floor);
      if (result != 0 && !equality_only_) CheckNoMapping(floor);
    } catch (...) {
      Rewind(floor, first_pair, first_assumed);
      throw;
    }
    if (result != 0) Rewind(floor, first_pair, first_assumed);
    return result;
  }

  // What the hooks call.
  bool PartsEqual(AnyView lhs, AnyView rhs) { return Run(Any(lhs), Any(rhs)) == 0; }
  int32_t CompareParts(AnyView lhs, AnyView rhs) { return Run(Any(lhs), Any(rhs)); }

 private:
  using Key = std::pair<const Object*, const Object*>;
  enum class PairState : uint8_t { kUnseen, kActive, kEqual };

  struct Pair {
    Any lhs;
    Any rhs;
  };

  // Two objects of one type; pairs_[next, last) are the parts still to be compared.
  struct Frame {
    Key key;
    bool is_mapping;
    bool is_remembered;
    size_t first;
    size_t next;
    size_t last;
    int tail;  // the result when all parts are equal
  };

  int Search(Any lhs, Any rhs, size_t floor) {
    int result = Visit(std::move(lhs), std::move(rhs));
    while (result == 0 && frames_.size() > floor) {
      Frame& top = frames_.back();
      if (top.next < top.last) {
        Pair& parts = pairs_[top.next++];
        result = Visit(std::move(parts.lhs), std::move(parts.rhs));
        continue;
      }
      result = top.tail;
      if (top.is_remembered) states_[top.key] = PairState::kEqual;
      pairs_.resize(top.first);
      frames_.pop_back();
    }
    return result;
  }

  void CheckNoMapping(size_t floor) const {
    for (size_t i = floor; i < frames_.size(); ++i) {
      if (frames_[i].is_mapping) ThrowMappingOrder();
    }
  }

  [[noreturn]] static void ThrowMappingOrder() {
    TVM_FFI_THROW(TypeError) << "Cannot order Map/Dict values";
  }

  void Rewind(size_t floor, size_t first_pair, size_t first_assumed) {
    frames_.resize(floor);
    pairs_.resize(first_pair);
    for (; assumed_.size() > first_assumed; assumed_.pop_back()) {
      const Pair& pair = assumed_.back();
      states_[Key(ObjectOf(pair.lhs), ObjectOf(pair.rhs))] = PairState::kUnseen;
    }
  }

  // Zero also when the answer has to wait for a frame just pushed.
  int Visit(Any lhs, Any rhs) {
    int result;
    if (CompareAtOnce(lhs, rhs, &result)) return result;
    return VisitObjects(std::move(lhs), std::move(rhs));
  }

  // False for two different objects of one type, which have to be looked into.
  bool CompareAtOnce(const Any& lhs, const Any& rhs, int* result) const {
    int32_t index = lhs.type_index();
    if (index == kTVMFFINone || rhs.type_index() == kTVMFFINone) {
      *result = Sign(index != kTVMFFINone, rhs.type_index() != kTVMFFINone);
    } else if ((IsStringIndex(index) && IsStringIndex(rhs.type_index())) ||
               (IsBytesIndex(index) && IsBytesIndex(rhs.type_index()))) {
      *result = CompareContent(lhs, rhs);
    } else if (IsIntegerIndex(index) && IsIntegerIndex(rhs.type_index()) &&
               (index == kTVMFFIBigInt || rhs.type_index() == kTVMFFIBigInt)) {
      BigInt left = lhs.cast<BigInt>(), right = rhs.cast<BigInt>();
      *result = left == right ? 0 : (left < right ? -1 : 1);
    } else if (index != rhs.type_index()) {
      *result = 1;
      if (!equality_only_) ThrowDifferentTypes(index, rhs.type_index());
    } else if (index < kTVMFFIStaticObjectBegin) {
      *result = ComparePlain(lhs, rhs);
    } else if (ObjectOf(lhs) == ObjectOf(rhs)) {
      *result = 0;
    } else if (index == kTVMFFIShape) {
      *result = CompareShapes(*lhs.as<ShapeObj>(), *rhs.as<ShapeObj>());
    } else if (index < kTVMFFIStaticObjectEnd && KindOfNode(index) == NodeKind::kFields) {
      *result = CompareOpaque(lhs, rhs);
    } else {
      return false;
    }
    return true;
  }

  // Built-in types whose fields say nothing of their content: tensors, and functions, errors and
  // others, which are equal as keys or not at all.
  int CompareOpaque(const Any& lhs, const Any& rhs) const {
    const bool equal =
        lhs.type_index() == kTVMFFITensor
            ? EqualTensors(*TVMFFITensorGetDLTensorPtr(const_cast<Object*>(ObjectOf(lhs))),
                           *TVMFFITensorGetDLTensorPtr(const_cast<Object*>(ObjectOf(rhs))))
            : AnyEqual()(lhs, rhs);
    if (!equal && !equality_only_) ThrowUnordered(lhs.type_index());
    return equal ? 0 : 1;
  }

  [[noreturn]] static void ThrowUnordered(int32_t index) {
    TVM_FFI_THROW(TypeError) << "Cannot order values of type " << TypeKeyOf(index);
  }

  [[noreturn]] static void ThrowDifferentTypes(int32_t lhs, int32_t rhs) {
    TVM_FFI_THROW(TypeError) << "Cannot compare values of different types: " << TypeKeyOf(lhs)
                             << " vs " << TypeKeyOf(rhs);
  }

  int ComparePlain(const Any& lhs, const Any& rhs) const {
    const TVMFFIAny& l = *details::AnyUnsafe::TVMFFIAnyPtrFromAny(lhs);
    const TVMFFIAny& r = *details::AnyUnsafe::TVMFFIAnyPtrFromAny(rhs);
    switch (l.type_index) {
      case kTVMFFIBool:
      case kTVMFFIInt:
        return Sign(l.v_int64, r.v_int64);
      case kTVMFFIFloat:
        return CompareFloats(l.v_float64, r.v_float64);
      case kTVMFFIDataType:
        return FirstOf({Sign(l.v_dtype.code, r.v_dtype.code), Sign(l.v_dtype.bits, r.v_dtype.bits),
                        Sign(l.v_dtype.lanes, r.v_dtype.lanes)});
      case kTVMFFIDevice:
        return FirstOf({Sign(l.v_device.device_type, r.v_device.device_type),
                        Sign(l.v_device.device_id, r.v_device.device_id)});
      default:
        if (l.v_uint64 == r.v_uint64) return 0;
        if (!equality_only_) ThrowUnordered(l.type_index);
        return 1;
    }
  }

  int CompareFloats(double lhs, double rhs) const {
    if (std::isnan(lhs) || std::isnan(rhs)) {
      if (equality_only_) return std::isnan(lhs) && std::isnan(rhs) ? 0 : 1;
      TVM_FFI_THROW(TypeError) << "Cannot order NaN values";
    }
    return Sign(lhs, rhs);
  }

  int VisitObjects(Any lhs, Any rhs) {
    Key key(ObjectOf(lhs), ObjectOf(rhs));
    bool has_hook = lhs.type_index() >= kTVMFFIStaticObjectEnd && HasHook(lhs.type_index());
    if (!has_hook && !IsWorthRemembering(key.first)) return Push(key, false);
    PairState& state = states_[key];
    if (state == PairState::kEqual) return 0;
    if (state == PairState::kActive) {
      if (equality_only_) return 0;
      TVM_FFI_THROW(ValueError) << "RecursiveCompare: cyclic reference detected in ordering";
    }
    state = PairState::kActive;
    // Keeps both alive as long as their addresses are remembered.
    assumed_.push_back({lhs, rhs});
    if (!has_hook) return Push(key, true);
    int result = CompareByHook(lhs, rhs);
    if (result == 0) states_[key] = PairState::kEqual;
    return result;
  }

  // An object with one owner is reached once per visit of the owner, so the owner's pair is
  // enough. Now and then any pair is remembered: a cycle may run through pointers that own nothing.
  bool IsWorthRemembering(const Object* node) const {
    constexpr uint64_t kOwnerAndWalk = 2;
    return node->use_count() > kOwnerAndWalk || frames_.size() % 64 == 0;
  }

  static const reflection::TypeAttrColumn& EqHooks() {
    static const reflection::TypeAttrColumn column(reflection::type_attr::kEq);
    return column;
  }
  static const reflection::TypeAttrColumn& CompareHooks() {
    static const reflection::TypeAttrColumn column(reflection::type_attr::kCompare);
    return column;
  }

  bool HasHook(int32_t index) const {
    return (equality_only_ && EqHooks()[index] != nullptr) || CompareHooks()[index] != nullptr;
  }

  int CompareByHook(const Any& lhs, const Any& rhs) {
    int32_t index = lhs.type_index();
    if (equality_only_ && EqHooks()[index] != nullptr) {
      Function hook = EqHooks()[index].cast<Function>();
      return on_equal_.Call<&CompareWalk::PartsEqual>(hook, lhs, rhs).cast<bool>() ? 0 : 1;
    }
    Function hook = CompareHooks()[index].cast<Function>();
    Any sign = on_compare_.Call<&CompareWalk::CompareParts>(hook, lhs, rhs);
    return Sign(sign.cast<int64_t>(), int64_t{0});
  }

  // Compares the parts of two objects as far as that goes without looking into parts, and pushes
  // what is left. A difference is returned.
  int Push(Key key, bool is_remembered) {
    if (frames_.size() >= kMaxGraphDepth) {
      TVM_FFI_THROW(ValueError) << "RecursiveCompare: maximum stack depth (" << kMaxGraphDepth
                                << ") exceeded";
    }
    size_t first = pairs_.size();
    NodeKind kind = KindOfNode(key.first->type_index());
    int tail = 0;
    int result = 0;
    switch (kind) {
      case NodeKind::kSequence: {
        const SeqBaseObj* lhs = views_.Of(static_cast<const SeqBaseObj*>(key.first));
        const SeqBaseObj* rhs = views_.Of(static_cast<const SeqBaseObj*>(key.second));
        tail = Sign(lhs->size(), rhs->size());
        if (tail != 0 && equality_only_) return tail;
        size_t common = std::min(lhs->size(), rhs->size());
        for (size_t i = 0; i < common && result == 0; ++i) {
          result = AddParts(first, lhs->begin()[i], rhs->begin()[i]);
        }
        break;
      }
      case NodeKind::kMapping:
        result = AddValues(first, *views_.Of(static_cast<const MapBaseObj*>(key.first)),
                           *views_.Of(static_cast<const MapBaseObj*>(key.second)));
        if (result != 0 && !equality_only_) ThrowMappingOrder();
        break;
      case NodeKind::kFields:
        reflection::ForEachFieldInfoWithEarlyStop(
            TVMFFIGetTypeInfo(key.first->type_index()), [&](const TVMFFIFieldInfo* field) {
              if (field->flags & kTVMFFIFieldFlagBitMaskCompareOff) return false;
              result = AddParts(first, ReadField(field, key.first), ReadField(field, key.second));
              return result != 0;
            });
        break;
    }
    if (result != 0) return result;
    frames_.push_back(
        {key, kind == NodeKind::kMapping, is_remembered, first, first, pairs_.size(), tail});
    return 0;
  }

  // The first difference decides an order, so a part may only be compared at once if none before it
  // has been put off. For equality the order does not matter.
  template <typename Part>
  int AddParts(size_t first, Part&& lhs, Part&& rhs) {
    int result;
    bool in_turn = equality_only_ || pairs_.size() == first;
    if (in_turn && CompareAtOnce(lhs, rhs, &result)) return result;
    pairs_.push_back({std::forward<Part>(lhs), std::forward<Part>(rhs)});
    return 0;
  }

  // Nonzero also when the two have different keys.
  int AddValues(size_t first, const MapBaseObj& lhs, const MapBaseObj& rhs) {
    if (lhs.size() != rhs.size()) return 1;
    const ObjectPtr<Object> entries = EntriesForLookups(lhs);
    for (const auto& [key, value] : *static_cast<const MapBaseObj*>(entries.get())) {
      auto it = rhs.find(key);
      if (it == rhs.end()) return 1;
      int result = AddParts(first, value, std::as_const(it->second));
      if (result != 0) return result;
    }
    return 0;
  }

  bool equality_only_;
  Views views_;
  std::vector<Frame> frames_;
  std::vector<Pair> pairs_;
  AddressMap<Key, PairState> states_;
  std::vector<Pair> assumed_;  // in the order in which their state was first set
  HookCallback<CompareWalk> on_equal_{this};
  HookCallback<CompareWalk> on_compare_{this};
};

int Order(const Any& lhs, const Any& rhs) { return CompareWalk(false).Run(lhs, rhs); }

}  // namespace
}  // namespace tether

bool RecursiveEq(const Any& lhs, const Any& rhs) {
  return tether::CompareWalk(true).Run(lhs, rhs) == 0;
}
bool RecursiveLt(const Any& lhs, const Any& rhs) { return tether::Order(lhs, rhs) < 0; }
bool RecursiveLe(const Any& lhs, const Any& rhs) { return tether::Order(lhs, rhs) <= 0; }
bool RecursiveGt(const Any& lhs, const Any& rhs) { return tether::Order(lhs, rhs) > 0; }
bool RecursiveGe(const Any& lhs, const Any& rhs) { return tether::Order(lhs, rhs) >= 0; }

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::EnsureTypeAttrColumn(reflection::type_attr::kEq);
  reflection::EnsureTypeAttrColumn(reflection::type_attr::kCompare);
  reflection::GlobalDef()
      .def("ffi.RecursiveEq", [](Any lhs, Any rhs) { return RecursiveEq(lhs, rhs); })
      .def("ffi.RecursiveLt", [](Any lhs, Any rhs) { return RecursiveLt(lhs, rhs); })
      .def("ffi.RecursiveLe", [](Any lhs, Any rhs) { return RecursiveLe(lhs, rhs); })
      .def("ffi.RecursiveGt", [](Any lhs, Any rhs) { return RecursiveGt(lhs, rhs); })
      .def("ffi.RecursiveGe", [](Any lhs, Any rhs) { return RecursiveGe(lhs, rhs); });
}

}  // namespace ffi
}  // namespace tvm
