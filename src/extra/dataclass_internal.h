// SPDX-License-Identifier: Apache-2.0
//
// What the two makers of `__ffi_init__` share: C++ classes (dataclass_init.cc) and classes defined
// in Python (py_class.cc).
#ifndef TETHER_EXTRA_DATACLASS_INTERNAL_H_
#define TETHER_EXTRA_DATACLASS_INTERNAL_H_

#include <tvm/ffi/function.h>
#include <tvm/ffi/object.h>

#include <functional>

namespace tvm {
namespace ffi {
namespace tether {

/*!
 * \brief Makes the constructor of a type from the fields it and its ancestors have now.
 * \param type The type.
 * \param create Makes the object whose fields are then set.
 */
Function MakeInitFunction(const TVMFFITypeInfo* type, std::function<ObjectPtr<Object>()> create);

}  // namespace tether
}  // namespace ffi
}  // namespace tvm

#endif  // TETHER_EXTRA_DATACLASS_INTERNAL_H_
