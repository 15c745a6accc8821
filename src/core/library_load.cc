// SPDX-License-Identifier: Apache-2.0
// What can go wrong while the static initialisers of a library run.
#include "library_load.h"

#include <tvm/ffi/any.h>
#include <tvm/ffi/reflection/registry.h>

#include <exception>

#ifndef _WIN32
#include <dlfcn.h>
#endif

namespace tvm {
namespace ffi {
namespace tether {
namespace {

// The file that `address` was loaded from, empty when it is not known.
std::string FileOf([[maybe_unused]] const void* address) {
#ifndef _WIN32
  Dl_info info;
  if (address != nullptr && dladdr(address, &info) != 0 && info.dli_fname != nullptr) {
    return info.dli_fname;
  }
#endif
  return "";
}

// Called while handling an exception from a block of static initialisation. False if this thread is
// not loading a library.
bool KeepInitError() {
  LibraryLoad* load = LibraryLoad::Current();
  if (load == nullptr) return false;
  load->Fail(CaughtError());
  return true;
}

}  // namespace

void RefuseTakenName(const char* what, std::string_view name, const void* owner) {
  const LibraryLoad* load = LibraryLoad::Current();
  if (load == nullptr) return;
  std::string file = FileOf(owner);
  TVM_FFI_THROW(RuntimeError) << "Cannot load " << load->path() << ": it registers the " << what
                              << " `" << name << "`, which is already registered"
                              << (file.empty() ? "" : " by ") << file
                              << ". A name is registered once in a process; to load a rebuilt "
                                 "library, start a new one";
}

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::GlobalDef().def("ffi.tether.KeepInitError", KeepInitError);
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
