// SPDX-License-Identifier: Apache-2.0
#include "loaded_runtimes.h"

#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/reflection/registry.h>

#ifdef __ELF__
#include <dlfcn.h>
#include <link.h>
#endif

#include "locks.h"

namespace tvm {
namespace ffi {
namespace tether {

bool IsRuntimeName(std::string_view path) {
  size_t slash = path.rfind('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  auto starts_with = [&](std::string_view prefix) { return path.rfind(prefix, 0) == 0; };
  return starts_with(kRuntimeName) ||
         (starts_with("libtvm_ffi-") && path.find(".so") != std::string_view::npos);
}

std::string PathOfThisLibrary() {
#ifdef __ELF__
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&TVMFFIGetVersion), &info) != 0) return info.dli_fname;
#endif
  return "";
}

std::vector<std::string> LoadedRuntimes() {
  std::vector<std::string> paths;
#ifdef __ELF__
  paths.push_back(PathOfThisLibrary());
  auto visit = [](dl_phdr_info* info, size_t, void* arg) {
    auto* paths = static_cast<std::vector<std::string>*>(arg);
    std::string path = info->dlpi_name;
    if (IsRuntimeName(path) && path != paths->front()) paths->push_back(path);
    return 0;
  };
  std::shared_lock<ForkGate> lock(locks.loader);
  dl_iterate_phdr(visit, &paths);
#endif
  return paths;
}

std::string SecondRuntimeHint() {
  std::vector<std::string> paths = LoadedRuntimes();
  if (paths.size() < 2) return "";
  return " The cause: a second runtime, " + paths[1] + ", is being loaded beside " + paths[0] +
         ". One process can have only one: remove the package that brings the other (run `python "
         "-m tvm_ffi.doctor`)";
}

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::GlobalDef().def("ffi.tether.LoadedRuntimes", [] {
    Array<String> paths;
    for (const std::string& path : LoadedRuntimes()) paths.push_back(path);
    return paths;
  });
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
