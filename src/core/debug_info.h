// SPDX-License-Identifier: Apache-2.0
// File, line and symbol of an address, from the debug information of the library that it is in.
#ifndef TETHER_CORE_DEBUG_INFO_H_
#define TETHER_CORE_DEBUG_INFO_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

struct backtrace_state;

namespace tvm {
namespace ffi {
namespace tether {

// How many libraries the loader has mapped and unmapped. Equal counts mean the same libraries;
// which are the later ones they do not say: of glibc, the second count falls where there are
// namespaces.
struct LoadedLibraries {
  unsigned long long adds = 0;
  unsigned long long subs = 0;

  static LoadedLibraries Now();
  bool operator==(const LoadedLibraries& other) const {
    return adds == other.adds && subs == other.subs;
  }
};

// The program or library that an address is in, as the loader lists it. dladdr would wait for the
// lock of the loader, which a thread may hold that waits for one of ours.
struct LoadedFile {
  uintptr_t start = 0;    // of what is mapped; 0 if the address is in no file
  uint64_t offset = 0;    // in the file, of what is at the start
  size_t size = 0;        // of what can be read there
  uintptr_t base = 0;     // the difference between an address and what the file says
  const char* name = "";  // lives as long as the file is mapped; empty for the program
  LoadedLibraries loaded;

  static LoadedFile Of(uintptr_t address);
};

// Reads the debug information of a file when an address in it is first asked for, and keeps it.
class DebugInfo {
 public:
  struct Frame {
    std::string file;
    int line = 0;
    std::string symbol;  // not demangled
  };

  // Frames from the inside out, several where calls were inlined, and the symbol. Either may be
  // left empty. The file stays mapped meanwhile. False if there may be more the next time, because
  // descriptors or memory have run out.
  bool Find(uintptr_t address, const LoadedFile& file, std::vector<Frame>* frames,
            std::string* symbol);

 private:
  // What is read cannot be freed. So it is kept for the next time that the file is mapped, and read
  // of no more files than this; later ones show symbols without lines.
  static constexpr size_t kMaxFiles = 256;
  // Device, inode, size and time of the last change.
  using FileKey = std::tuple<uint64_t, uint64_t, int64_t, int64_t, int64_t>;

  // NULL for a file that is not read; no value if it could not be read for now.
  using State = std::optional<backtrace_state*>;
  State StateOf(const LoadedFile& file);
  State StateOfFile(const LoadedFile& file);
  bool FindInAll(uintptr_t address, const LoadedFile& file, std::vector<Frame>* frames,
                 std::string* symbol);

  // All under locks.debug_info.
  size_t num_states_ = 0;  // that were made, also those that could not read their file
  std::deque<std::string> paths_;
  std::map<FileKey, backtrace_state*> states_;
  // By where it starts, for one set of libraries.
  std::unordered_map<uintptr_t, backtrace_state*> mapped_;
  LoadedLibraries loaded_of_mapped_;

  // Where files cannot be read one by one.
  bool reads_all_ = false;
  backtrace_state* state_of_all_ = nullptr;
  LoadedLibraries loaded_of_all_;
  int num_states_of_all_ = 0;
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_CORE_DEBUG_INFO_H_
