// SPDX-License-Identifier: Apache-2.0
// The runtimes in this process. There should be one; a second one registers everything again.
#ifndef TETHER_CORE_LOADED_RUNTIMES_H_
#define TETHER_CORE_LOADED_RUNTIMES_H_

#include <string>
#include <string_view>
#include <vector>

namespace tvm {
namespace ffi {
namespace tether {

inline constexpr const char* kRuntimeName = "libtvm_ffi.so";

// Whether a file is called libtvm_ffi.so, or libtvm_ffi-1a2b3c.so, as packaging tools rename
// copies.
bool IsRuntimeName(std::string_view path);

// The file that this code was loaded from, empty if unknown.
std::string PathOfThisLibrary();

// Paths of the runtimes mapped into this process, this one first.
std::vector<std::string> LoadedRuntimes();

// The end of a message about something registered twice: names a second runtime if there is one.
// Empty otherwise.
std::string SecondRuntimeHint();

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_CORE_LOADED_RUNTIMES_H_
