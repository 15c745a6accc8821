// SPDX-License-Identifier: Apache-2.0
// What the file of a client library says about itself, read without loading it.
//
//   std::optional<ClientInfo> info = ReadClientInfo("libclient.so", true);
//   if (info && info->note) ...   // built with our headers
//   CheckClient("libclient.so");  // throws if it cannot work with this runtime
#ifndef TVM_FFI_SRC_EXTRA_CLIENT_INFO_H_
#define TVM_FFI_SRC_EXTRA_CLIENT_INFO_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tvm {
namespace ffi {
namespace tether {

// The note that our c_api.h leaves in what it compiles.
struct VersionNote {
  std::array<uint32_t, 3> interface_version;
  std::array<uint32_t, 3> tether_version;
};

struct ClientInfo {
  std::string soname;
  std::vector<std::string> needed;
  // Symbols of the interface that it imports, sorted.
  std::vector<std::string> imports;
  std::optional<VersionNote> note;
  // The first and the last release whose headers can have produced it; empty if unknown.
  std::string at_least;
  std::string at_most;

  bool Imports(const char* name) const;
  // Whether it uses a runtime at all.
  bool IsClient() const { return !imports.empty() || !Runtime().empty(); }
  // The runtime it asks the dynamic linker for, such as "libtvm_ffi.so", or nothing.
  std::string Runtime() const;
  // In words, for messages: "0.1.14 (tether 0.1.0)", "0.1.11 to 0.1.12", "an unknown release".
  std::string BuiltWith() const;
};

// Nothing if the file cannot be read or is not a library of this machine. Without a note, finding
// out the release takes a search through the whole file; `recognise` asks for it.
std::optional<ClientInfo> ReadClientInfo(const std::string& path, bool recognise);

// What is missing at the end of the file of a library, in words; empty if nothing is. The loader
// does not look: the process ends when it touches what is not there.
std::string WhatIsCutOff(const std::string& path);

// Throws RuntimeError with the library, what it was built for and what to do, if loading it would
// end in a crash or in a second set of registries. Says nothing about files it cannot read.
void CheckClient(const std::string& path);

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_SRC_EXTRA_CLIENT_INFO_H_
