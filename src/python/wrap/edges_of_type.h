// SPDX-License-Identifier: Apache-2.0
// What the memory of objects of a type can refer to.
#ifndef TETHER_PYTHON_WRAP_EDGES_OF_TYPE_H_
#define TETHER_PYTHON_WRAP_EDGES_OF_TYPE_H_

#include <tvm/ffi/object.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tether_py {

// As far as the collector knows. Learned when first asked, and asked whenever a wrapper becomes
// dormant.
enum class EdgesOfType : uint8_t {
  kUnknown,
  kByPython,  // fields that Python defined: they may be emptied to break a ring of garbage
  kOther,
  kNone,  // every field is a plain value: a number, text, a shape
};
inline constexpr size_t kMaxLearned = 1 << 14;
extern std::atomic<EdgesOfType> edges_of_type[kMaxLearned];
EdgesOfType LearnEdgesOfType(int32_t type_index);
inline EdgesOfType FindEdgesOfType(int32_t type_index) {
  if (TVM_FFI_PREDICT_FALSE(static_cast<size_t>(type_index) >= kMaxLearned)) {
    return EdgesOfType::kOther;
  }
  EdgesOfType answer = edges_of_type[type_index].load(std::memory_order_relaxed);
  bool is_known = answer != EdgesOfType::kUnknown;
  return TVM_FFI_PREDICT_TRUE(is_known) ? answer : LearnEdgesOfType(type_index);
}
// Whether the fields of a type that Python defines are registered.
bool HasPythonFields(int32_t type_index);
// Whether a ring through objects of the type can be broken by emptying their fields.
inline bool CanBeEmptied(int32_t type_index) {
  return FindEdgesOfType(type_index) == EdgesOfType::kByPython;
}
// Drops what the fields of h that Python defined refer to. That may die and run Python code.
void Empty(TVMFFIObject* h);

// A field whose memory owns the object that it refers to: one pointer or one TVMFFIAny.
struct OwningField {
  int64_t offset;
  int64_t size;
  const TVMFFIFieldInfo* info;
};

// Those of a type and its ancestors, learned when first asked: the collector reads them for every
// object that it visits. Constant, and never freed.
struct OwningFields {
  const TVMFFITypeInfo* type;
  int32_t num_registered;  // fields of the type itself, then: it may have got more
  std::vector<OwningField> all;
  const OwningFields* before;  // what was learned earlier, which others may be reading

  bool IsUpToDate() const { return type->num_fields == num_registered; }
};

// By type index, in blocks that come into being when one of their types is asked for. Types beyond,
// after four million others, have none.
inline constexpr size_t kFieldsInBlock = 1 << 12;
inline constexpr size_t kNumFieldsBlocks = 1 << 10;
struct OwningFieldsBlock {
  std::atomic<const OwningFields*> of[kFieldsInBlock];
};
extern std::atomic<OwningFieldsBlock*> owning_fields[kNumFieldsBlocks];

// Never NULL; of no fields where memory is short. Does not throw.
const OwningFields* LearnOwningFields(int32_t type_index);
inline const OwningFields* FindOwningFields(int32_t type_index) {
  auto i = static_cast<size_t>(type_index);
  OwningFieldsBlock* block = TVM_FFI_PREDICT_TRUE(i / kFieldsInBlock < kNumFieldsBlocks)
                                 ? owning_fields[i / kFieldsInBlock].load(std::memory_order_acquire)
                                 : nullptr;
  const OwningFields* fields =
      block != nullptr ? block->of[i % kFieldsInBlock].load(std::memory_order_acquire) : nullptr;
  bool is_known = fields != nullptr && fields->IsUpToDate();
  return TVM_FFI_PREDICT_TRUE(is_known) ? fields : LearnOwningFields(type_index);
}

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_EDGES_OF_TYPE_H_
