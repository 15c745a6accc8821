// SPDX-License-Identifier: Apache-2.0
//
// RecursiveHash: a hash of the content of a value that agrees with RecursiveEq. Every object is
// hashed once, however often it is reached, so a graph with much sharing stays linear.
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "object_graph.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

using details::StableHashBytes;
using details::StableHashCombine;

uint64_t TypeKeyHashOf(const Object* node) {
  return TVMFFIGetTypeInfo(node->type_index())->type_key_hash;
}

uint64_t HashFloat(double value) {
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  if (value == 0.0) value = 0.0;  // -0.0 equals 0.0
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return StableHashCombine(kTVMFFIFloat, bits);
}

// Values that are not objects, and the objects without parts. False: the value has parts.
bool HashLeaf(const Any& value, uint64_t* hash) {
  const TVMFFIAny& cell = *details::AnyUnsafe::TVMFFIAnyPtrFromAny(value);
  switch (cell.type_index) {
    case kTVMFFIFloat:
      *hash = HashFloat(cell.v_float64);
      return true;
    case kTVMFFIDataType:
      *hash = StableHashCombine(kTVMFFIDataType, cell.v_dtype.code);
      *hash = StableHashCombine(*hash, cell.v_dtype.bits);
      *hash = StableHashCombine(*hash, cell.v_dtype.lanes);
      return true;
    case kTVMFFIDevice:
      *hash = StableHashCombine(kTVMFFIDevice, cell.v_device.device_type);
      *hash = StableHashCombine(*hash, cell.v_device.device_id);
      return true;
    case kTVMFFISmallStr:
      *hash = StableHashCombine(kTVMFFIStr, details::StableHashSmallStrBytes(&cell));
      return true;
    case kTVMFFISmallBytes:
      *hash = StableHashCombine(kTVMFFIBytes, details::StableHashSmallStrBytes(&cell));
      return true;
    case kTVMFFIStr:
    case kTVMFFIBytes: {
      const TVMFFIByteArray* bytes = TVMFFIBytesGetByteArrayPtr(cell.v_obj);
      *hash = StableHashCombine(cell.type_index, StableHashBytes(bytes->data, bytes->size));
      return true;
    }
    case kTVMFFIBigInt: {
      TVMFFIByteArray words = TVMFFIBigIntGetContentByteArray(&cell);
      *hash = StableHashBytes(words.data, words.size);
      return true;
    }
    case kTVMFFIShape: {
      const auto* shape = value.as<ShapeObj>();
      *hash = StableHashCombine(TypeKeyHashOf(shape), shape->size);
      for (size_t i = 0; i < shape->size; ++i) *hash = StableHashCombine(*hash, shape->data[i]);
      return true;
    }
    default:
      if (cell.type_index >= kTVMFFIStaticObjectBegin) return false;
      *hash = StableHashCombine(cell.type_index, cell.v_uint64);
      return true;
  }
}

struct Hashed {
  enum State : uint8_t { kUnseen, kActive, kDone } state = kUnseen;
  uint64_t hash = 0;
};

class HashWalk
    : public GraphWalk<HashWalk, size_t> {  // frame data: where the children's hashes begin
 public:
  uint64_t Run(const Any& root) {
    Visit(root);
    Drain(0);
    return hashes_[0];
  }

  void VisitChild(size_t index) { Visit(std::move(children_[index].value)); }

  void Leave(Frame& frame) {
    const Object* node = ObjectOf(frame.node);
    uint64_t hash = Fold(frame, TypeKeyHashOf(node));
    hashes_.resize(frame.data);
    Finish(std::move(frame.node), hash);
  }

  void Abandon(const Frame& frame) {
    seen_[ObjectOf(frame.node)].state = Hashed::kUnseen;
    hashes_.resize(frame.data);
  }

  // What a hook calls for the parts of its object.
  int64_t HashOfPart(AnyView value) {
    Nested([&] { Visit(Any(value)); });
    uint64_t hash = hashes_.back();
    hashes_.pop_back();
    return static_cast<int64_t>(hash);
  }

 private:
  // Appends one hash to hashes_, now or when the pushed frame is left.
  void Visit(Any value) {
    uint64_t hash;
    if (HashLeaf(value, &hash)) {
      hashes_.push_back(hash);
      return;
    }
    const Object* node = ObjectOf(value);
    Hashed& entry = seen_[node];
    if (entry.state != Hashed::kUnseen) {
      hashes_.push_back(entry.state == Hashed::kDone ? entry.hash : TypeKeyHashOf(node));
      return;
    }
    entry.state = Hashed::kActive;
    if (node->type_index() >= kTVMFFIStaticObjectEnd) {
      static const reflection::TypeAttrColumn hooks(reflection::type_attr::kHash);
      AnyView hook = hooks[node->type_index()];
      if (hook != nullptr) {
        HashByHook(value, hook.cast<Function>());
        return;
      }
      CheckHashable(node->type_index());
    }
    Push(std::move(value), kTVMFFIFieldFlagBitMaskHashOff | kTVMFFIFieldFlagBitMaskCompareOff,
         hashes_.size());
  }

  void HashByHook(const Any& value, const Function& hook) {
    try {
      int64_t hash = callback_.Call<&HashWalk::HashOfPart>(hook, value).cast<int64_t>();
      Finish(value, static_cast<uint64_t>(hash));
    } catch (...) {
      seen_[ObjectOf(value)].state = Hashed::kUnseen;
      throw;
    }
  }

  static void CheckHashable(int32_t type_index) {
    static const reflection::TypeAttrColumn eq_hooks(reflection::type_attr::kEq);
    static const reflection::TypeAttrColumn compare_hooks(reflection::type_attr::kCompare);
    if (eq_hooks[type_index] == nullptr && compare_hooks[type_index] == nullptr) return;
    TVM_FFI_THROW(ValueError)
        << "RecursiveHash: type '" << TypeKeyOf(type_index)
        << "' defines __ffi_eq__ or __ffi_compare__ but not __ffi_hash__. Add a __ffi_hash__ hook "
           "to "
           "maintain the invariant RecursiveEq(a,b) => RecursiveHash(a)==RecursiveHash(b).";
  }

  uint64_t Fold(const Frame& frame, uint64_t hash) {
    auto begin = hashes_.begin() + static_cast<ptrdiff_t>(frame.data);
    size_t count = hashes_.size() - frame.data;
    switch (frame.kind) {
      case NodeKind::kSequence:
        hash = StableHashCombine(hash, count);
        for (size_t i = 0; i < count; ++i) {
          hash = StableHashCombine(hash, StableHashCombine(begin[i], i));
        }
        return hash;
      case NodeKind::kMapping: {
        // Sorted, because equal maps may differ in order.
        hash = StableHashCombine(hash, count / 2);
        for (size_t i = 0; i < count / 2; ++i) {
          begin[i] = StableHashCombine(begin[2 * i], begin[2 * i + 1]);
        }
        std::sort(begin, begin + static_cast<ptrdiff_t>(count / 2));
        for (size_t i = 0; i < count / 2; ++i) hash = StableHashCombine(hash, begin[i]);
        return hash;
      }
      case NodeKind::kFields:
        for (size_t i = 0; i < count; ++i) hash = StableHashCombine(hash, begin[i]);
        return hash;
    }
    TVM_FFI_UNREACHABLE();
  }

  void Finish(Any node, uint64_t hash) {
    seen_[ObjectOf(node)] = {Hashed::kDone, hash};
    hashes_.push_back(hash);
    // A getter may have made this object just now. Held, so that its address is not reused.
    keep_alive_.push_back(std::move(node));
  }

  std::vector<uint64_t> hashes_;
  AddressMap<const Object*, Hashed> seen_;
  std::vector<Any> keep_alive_;
  HookCallback<HashWalk> callback_{this};
};

}  // namespace
}  // namespace tether

int64_t RecursiveHash(const Any& value) {
  return static_cast<int64_t>(tether::HashWalk().Run(value));
}

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::EnsureTypeAttrColumn(reflection::type_attr::kHash);
  reflection::GlobalDef().def("ffi.RecursiveHash", [](Any value) { return RecursiveHash(value); });
}

}  // namespace ffi
}  // namespace tvm
