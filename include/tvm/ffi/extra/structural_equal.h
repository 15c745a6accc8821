// SPDX-License-Identifier: Apache-2.0
//
// Equality of two values by structure: containers and reflected objects are compared part by part,
// and variables may be renamed where the class of the surrounding object says so.
//
//   StructuralEqual::Equal(fun_x, fun_y);             // fun(x) { x } and fun(y) { y }: true
//   auto diff = StructuralEqual::GetFirstMismatch(a, b);
//   if (diff) std::cout << diff.value().get<0>();     // <root>.body[1].name
//
// What a class means by equality is its _type_s_eq_hash_kind and the flags of its fields; a class
// may also register `__s_equal__`.
#ifndef TVM_FFI_EXTRA_STRUCTURAL_EQUAL_H_
#define TVM_FFI_EXTRA_STRUCTURAL_EQUAL_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/extra/base.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/access_path.h>

namespace tvm {
namespace ffi {

/*! \brief Structural equality; as a functor it compares tensor content and maps no free variables.
 */
class StructuralEqual {
 public:
  /*!
   * \brief Whether two values have the same structure.
   * \param map_free_vars Whether variables without a definition may stand for one another.
   * \param skip_tensor_content Whether tensors are compared by shape and dtype only.
   *
   * Throws TypeError for a class without structural equality, ValueError if both values are cyclic.
   */
  TVM_FFI_EXTRA_CXX_API static bool Equal(const Any& lhs, const Any& rhs,
                                          bool map_free_vars = false,
                                          bool skip_tensor_content = false);

  /*! \brief Paths to the first difference in both values, or nullopt when they are equal. */
  TVM_FFI_EXTRA_CXX_API static Optional<reflection::AccessPathPair> GetFirstMismatch(
      const Any& lhs, const Any& rhs, bool map_free_vars = false, bool skip_tensor_content = false);

  TVM_FFI_INLINE bool operator()(const Any& lhs, const Any& rhs) const {
    return Equal(lhs, rhs, false, false);
  }
};

}  // namespace ffi
}  // namespace tvm

#endif  // TVM_FFI_EXTRA_STRUCTURAL_EQUAL_H_
