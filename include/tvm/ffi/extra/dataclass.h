// SPDX-License-Identifier: Apache-2.0
//
// Operations every reflected object has for free: deep copy, repr, hash and comparison, all driven
// by the fields registered with ObjectDef.
//
//   Any copy = DeepCopy(tree);                    // sharing and cycles inside the tree are kept
//   RecursiveEq(tree, copy);                      // true, compared field by field
//   RecursiveHash(tree) == RecursiveHash(copy);   // equal values have equal hashes
//   std::cout << ObjectRef(tree);                 // demo.Node(value=1, children=(...,))
//
// The walks keep their own stack, so a chain of 10^5 objects works like a short one.
#ifndef TVM_FFI_EXTRA_DATACLASS_H_
#define TVM_FFI_EXTRA_DATACLASS_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/extra/base.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/string.h>

#include <cstdint>
#include <ostream>

namespace tvm {
namespace ffi {

/*!
 * \brief Copies a value and everything reachable from it.
 *
 * Strings, bytes, shapes and enum members are returned as they are. An object reached twice is
 * copied once. Throws when an object's class cannot be copied.
 */
TVM_FFI_EXTRA_CXX_API Any DeepCopy(const Any& value);

/*!
 * \brief Text of a value: `(1, "a")` for an array, `key(field=value)` for an object.
 *
 * An object that contains itself prints `...` there. The environment variable
 * TVM_FFI_REPR_WITH_ADDR=1 adds addresses.
 */
TVM_FFI_EXTRA_CXX_API String ReprPrint(const Any& value);

/*! \brief Hash of the content, equal for values that RecursiveEq calls equal. */
TVM_FFI_EXTRA_CXX_API int64_t RecursiveHash(const Any& value);

/*! \brief Whether two values have the same types and content. They need not have an order. */
TVM_FFI_EXTRA_CXX_API bool RecursiveEq(const Any& lhs, const Any& rhs);

/*! \brief Ordering by content: first difference decides. Values without an order raise TypeError.
 */
TVM_FFI_EXTRA_CXX_API bool RecursiveLt(const Any& lhs, const Any& rhs);
TVM_FFI_EXTRA_CXX_API bool RecursiveLe(const Any& lhs, const Any& rhs);
TVM_FFI_EXTRA_CXX_API bool RecursiveGt(const Any& lhs, const Any& rhs);
TVM_FFI_EXTRA_CXX_API bool RecursiveGe(const Any& lhs, const Any& rhs);

namespace tether {

// Does not throw where the text cannot be made: what is printed is often the message of an error,
// and a second exception there would end the process.
inline std::ostream& PrintRepr(std::ostream& os, const Any& value) {
  try {
    return os << ReprPrint(value);
  } catch (const std::exception& error) {
    // The key without a copy, for which there may be no memory.
    return os << '<' << ToStringView(TVMFFIGetTypeInfo(value.type_index())->type_key)
              << ", no text: " << error.what() << '>';
  }
}

}  // namespace tether

// Streams. Types with an operator of their own (String, Shape) keep it.

inline std::ostream& operator<<(std::ostream& os, const Any& value) {
  return tether::PrintRepr(os, value);
}

inline std::ostream& operator<<(std::ostream& os, const ObjectRef& value) {
  return tether::PrintRepr(os, Any(value));
}

template <typename... V>
inline std::ostream& operator<<(std::ostream& os, const Variant<V...>& value) {
  return tether::PrintRepr(os, Any(value));
}

template <typename T>
inline std::ostream& operator<<(std::ostream& os, const Optional<T>& value) {
  return tether::PrintRepr(os, Any(value));
}

}  // namespace ffi
}  // namespace tvm

#endif  // TVM_FFI_EXTRA_DATACLASS_H_
