// SPDX-License-Identifier: Apache-2.0
// What the memory of objects of a type can refer to.
#ifndef TETHER_PYTHON_WRAP_EDGES_OF_TYPE_H_
#define TETHER_PYTHON_WRAP_EDGES_OF_TYPE_H_

#include <tvm/ffi/object.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

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
// Whether a field of one or two words that is not marked as plain declares a reference that counts.
// Throws where its schema cannot be read.
bool DeclaresReference(const TVMFFIFieldInfo& field);
// Drops what the fields of h that Python defined refer to. That may die and run Python code.
void Empty(TVMFFIObject* h);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_EDGES_OF_TYPE_H_
