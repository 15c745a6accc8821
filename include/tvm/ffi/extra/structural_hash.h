// SPDX-License-Identifier: Apache-2.0
//
// Hash of a value by structure: values that StructuralEqual calls equal have equal hashes.
//
//   StructuralHash::Hash(fun_x) == StructuralHash::Hash(fun_y);   // fun(x) { x } and fun(y) { y }
//   std::unordered_map<Any, int, StructuralHash, StructuralEqual> cache;
#ifndef TVM_FFI_EXTRA_STRUCTURAL_HASH_H_
#define TVM_FFI_EXTRA_STRUCTURAL_HASH_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/extra/base.h>

#include <cstdint>

namespace tvm {
namespace ffi {

/*! \brief Structural hash; as a functor it hashes tensor content and maps no free variables. */
class StructuralHash {
 public:
  /*!
   * \brief Hash of a value; the two flags mean the same as in StructuralEqual::Equal.
   *
   * Throws TypeError for a class without structural hash, ValueError for a cyclic value.
   */
  TVM_FFI_EXTRA_CXX_API static uint64_t Hash(const Any& value, bool map_free_vars = false,
                                             bool skip_tensor_content = false);

  TVM_FFI_INLINE uint64_t operator()(const Any& value) const { return Hash(value, false, false); }
};

}  // namespace ffi
}  // namespace tvm

#endif  // TVM_FFI_EXTRA_STRUCTURAL_HASH_H_
