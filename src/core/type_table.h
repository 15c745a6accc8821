// SPDX-License-Identifier: Apache-2.0
//
// The type table as the rest of the library sees it, beyond the C ABI.
#ifndef TETHER_CORE_TYPE_TABLE_H_
#define TETHER_CORE_TYPE_TABLE_H_

#include <tvm/ffi/c_api.h>

namespace tvm {
namespace ffi {
namespace tether {

/*!
 * \brief The record of a type whose index came from a user. Throws if there is no such type, where
 *        TVMFFIGetTypeInfo, which has no way to report it, ends the process.
 */
const TVMFFITypeInfo* RequireTypeInfo(int32_t type_index);

}  // namespace tether
}  // namespace ffi
}  // namespace tvm

#endif  // TETHER_CORE_TYPE_TABLE_H_
