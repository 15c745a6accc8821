// SPDX-License-Identifier: Apache-2.0
// Hooks of map keys, `__any_hash__` and `__any_equal__`, that clients register as raw pointers.
#ifndef TETHER_CORE_ANY_HOOKS_H_
#define TETHER_CORE_ANY_HOOKS_H_

#include <tvm/ffi/any.h>

#include <atomic>
#include <string_view>

namespace tvm {
namespace ffi {
namespace tether {

/*!
 * \brief What the column `name` stores for a value that a client registers.
 *
 * A pointer to a hook of map keys becomes a function object: its form depends on the release the
 * client was built with, and inline code of other clients cannot know that. Functions have the same
 * form in all releases. Anything else is stored as it is.
 */
Any WithoutRawPointer(std::string_view name, Any value);

/*!
 * \brief Whether code is in a file built with headers up to 0.1.14. Set by the part of the library
 * that can read files; null: not known.
 */
using IsOldCode = bool (*)(const void* code);
extern std::atomic<IsOldCode> is_old_code;

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_CORE_ANY_HOOKS_H_
