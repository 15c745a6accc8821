// SPDX-License-Identifier: Apache-2.0
// libbacktrace reads the debug information of all libraries of the process at once; that of an
// interpreter alone takes 40 MB and 0.1 s. It has a state for which it asks the loader what is
// mapped. In libtvm_ffi.so the linker gives it the function below instead (--wrap in
// CMakeLists.txt), which names one file, at address 0: so a state is for one file, wherever and
// however often that is mapped. In a program with the static library it is the loader that answers,
// and a state knows all.
//
// The second function that the linker replaces maps part of a file: libbacktrace does not look how
// long the file is, and the process would end where it is cut off.
#include "debug_info.h"

#include <link.h>

#include <mutex>
#include <shared_mutex>
#include <utility>

#include "locks.h"

#if TVM_FFI_USE_LIBBACKTRACE
#include <backtrace.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#endif

namespace tvm {
namespace ffi {
namespace tether {

LoadedLibraries LoadedLibraries::Now() {
  LoadedLibraries now;
  std::shared_lock<ForkGate> lock(locks.loader);
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<LoadedLibraries*>(data) = {info->dlpi_adds, info->dlpi_subs};
        return 1;
      },
      &now);
  return now;
}

LoadedFile LoadedFile::Of(uintptr_t address) {
  std::pair<uintptr_t, LoadedFile> search(address, LoadedFile());
  std::shared_lock<ForkGate> lock(locks.loader);
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& [wanted, found] = *static_cast<std::pair<uintptr_t, LoadedFile>*>(data);
        const ElfW(Phdr)* first = nullptr;
        bool contains = false;
        for (size_t i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD) continue;
          if (first == nullptr || part.p_vaddr < first->p_vaddr) first = &part;
          contains = contains || wanted - (info->dlpi_addr + part.p_vaddr) < part.p_memsz;
        }
        if (!contains) return 0;
        found.start = info->dlpi_addr + first->p_vaddr;
        found.offset = first->p_offset;
        found.size = (first->p_flags & PF_R) != 0 ? first->p_filesz : 0;
        found.base = info->dlpi_addr;
        if (info->dlpi_name != nullptr) found.name = info->dlpi_name;
        found.loaded = {info->dlpi_adds, info->dlpi_subs};
        return 1;
      },
      &search);
  return search.second;
}

#if TVM_FFI_USE_LIBBACKTRACE
namespace {

// The thread whose libbacktrace is to see one file, and whether it has looked.
std::atomic<std::thread::id> reader{std::thread::id()};
bool has_looked;

// Of a call that failed: whether the next one may succeed.
bool IsTemporary(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

// Whether there are as many left as libbacktrace has open at a time: a state that could not open a
// file never does, and cannot be freed.
bool HasDescriptors() {
  constexpr int kMany = 4;
  int opened[kMany];
  int count = 0;
  while (count < kMany && (opened[count] = open("/", O_RDONLY | O_CLOEXEC)) >= 0) ++count;
  for (int i = 0; i < count; ++i) close(opened[i]);
  return count == kMany;
}

// The file that the loader mapped, open. Not always that of the name: it may have been deleted or
// replaced since, and a relative name is that of another working directory.
class MappedFile {
 public:
  explicit MappedFile(const LoadedFile& file) {
    if (!FindMapping(file.start)) return;
    const char* name = *file.name != '\0' ? file.name : "/proc/self/exe";
    if (!Open(path_.c_str(), file)) Open(name, file);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() { Close(); }

  bool IsOpen() const { return fd_ >= 0; }
  // Where it is not open: whether that may be different the next time.
  bool IsTemporary() const { return is_temporary_; }
  int fd() const { return fd_; }
  const struct stat& status() const { return status_; }

 private:
  // The kernel's list has lines such as
  //   7f0c1a000000-7f0c1a021000 r--p 00000000 fe:01 1835        /usr/lib/libm.so.6
  // without a path where no file is mapped, and with " (deleted)" after that of a file that is
  // gone.
  bool FindMapping(uintptr_t address) {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> list(std::fopen("/proc/self/maps", "re"),
                                                         std::fclose);
    if (list == nullptr) return Fail();
    Line line;
    errno = 0;
    while (getline(&line.text, &line.size, list.get()) > 0) {
      if (Parse(line.text, address)) return !path_.empty();
    }
    return Fail();
  }

  struct Line {
    char* text = nullptr;
    size_t size = 0;
    Line() = default;
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;
    ~Line() { std::free(text); }
  };

  bool Parse(char* line, uintptr_t address) {
    char* at = line;
    const uintptr_t begin = std::strtoull(at, &at, 16);
    const uintptr_t end = std::strtoull(at + 1, &at, 16);
    if (address < begin || end <= address) return false;
    for (int field = 0; field < 2; ++field) {
      at += std::strspn(at, " ");
      at += std::strcspn(at, " ");
    }
    const auto major_device = static_cast<unsigned>(std::strtoul(at, &at, 16));
    const auto minor_device = static_cast<unsigned>(std::strtoul(at + 1, &at, 16));
    device_ = makedev(major_device, minor_device);
    inode_ = std::strtoull(at, &at, 10);
    at += std::strspn(at, " ");
    path_.assign(at, std::strcspn(at, "\n"));
    return true;
  }

  bool Open(const char* path, const LoadedFile& file) {
    errno = 0;
    fd_ = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ >= 0 && fstat(fd_, &status_) == 0 && S_ISREG(status_.st_mode) && IsListed(path) &&
        BeginsLike(file)) {
      return true;
    }
    Fail();
    Close();
    return false;
  }
  // Layered file systems have one number in the list and another here.
  bool IsListed(const char* path) const {
    return (status_.st_dev == device_ && status_.st_ino == inode_) || path_ == path;
  }
  // The path alone proves nothing: with what the kernel adds to it, it may be that of another file.
  // The headers and the build ID are at the beginning.
  bool BeginsLike(const LoadedFile& file) const {
    char bytes[4096];
    const size_t size = std::min(file.size, sizeof(bytes));
    return size > 0 &&
           pread(fd_, bytes, size, static_cast<off_t>(file.offset)) == static_cast<ssize_t>(size) &&
           IsLoadedAs(bytes, file.start, size);
  }
  // Not memcmp: what is there may be variables of a program under ASan, which watches memcmp and
  // takes the gaps between them for an overflow. Volatile: or the compiler calls memcmp.
  __attribute__((no_sanitize("address"))) static bool IsLoadedAs(const char* bytes, uintptr_t start,
                                                                 size_t size) {
    const auto* loaded = reinterpret_cast<const volatile char*>(start);
    for (size_t i = 0; i < size; ++i) {
      if (bytes[i] != loaded[i]) return false;
    }
    return true;
  }
  bool Fail() {
    is_temporary_ = is_temporary_ || tether::IsTemporary(errno);
    return false;
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::string path_;
  int fd_ = -1;
  bool is_temporary_ = false;
  struct stat status_ {};
};

// What libbacktrace says about an address.
struct Answer {
  std::vector<DebugInfo::Frame>* frames = nullptr;
  std::string* symbol = nullptr;
  bool has_failed = false;
  bool is_temporary = false;  // so that it may say more the next time

  void AskFrames(backtrace_state* state, uintptr_t address) {
    auto add = [](void* self, uintptr_t, const char* file, int line, const char* function) {
      if (file == nullptr && function == nullptr) return 0;
      static_cast<Answer*>(self)->frames->push_back(
          {file != nullptr ? file : "", line, function != nullptr ? function : ""});
      return 0;
    };
    backtrace_pcinfo(state, address, add, Fail, this);
  }
  void AskSymbol(backtrace_state* state, uintptr_t address) {
    auto set = [](void* self, uintptr_t, const char* name, uintptr_t, uintptr_t) {
      auto* answer = static_cast<Answer*>(self);
      if (name != nullptr && answer->symbol != nullptr) *answer->symbol = name;
    };
    backtrace_syminfo(state, address, set, Fail, this);
  }
  static void Fail(void* self, const char*, int error) {
    auto* answer = static_cast<Answer*>(self);
    answer->has_failed = true;
    answer->is_temporary = answer->is_temporary || IsTemporary(error);
  }
};

// False if there may be more the next time.
bool Ask(backtrace_state* state, uintptr_t address, std::vector<DebugInfo::Frame>* frames,
         std::string* symbol) {
  Answer answer{frames, symbol};
  answer.AskFrames(state, address);
  answer.AskSymbol(state, address);
  return !answer.is_temporary;
}

}  // namespace
}  // namespace tether
}  // namespace ffi
}  // namespace tvm

extern "C" {

// The names are the linker's: references to X go to __wrap_X, those to __real_X go to X. Weak: null
// where it was not told to.
// NOLINTBEGIN(bugprone-reserved-identifier)
__attribute__((weak)) int __real_dl_iterate_phdr(int (*visit)(dl_phdr_info*, size_t, void*),
                                                 void* data);

__attribute__((visibility("hidden"))) int __wrap_dl_iterate_phdr(int (*visit)(dl_phdr_info*, size_t,
                                                                              void*),
                                                                 void* data) {
  using namespace tvm::ffi::tether;
  if (reader.load(std::memory_order_relaxed) != std::this_thread::get_id()) {
    return __real_dl_iterate_phdr(visit, data);
  }
  has_looked = true;
  dl_phdr_info only{};
  only.dlpi_name = "";  // what the state was made for
  return visit(&only, sizeof(only), data);
}

__attribute__((weak)) int __real_backtrace_get_view(backtrace_state* state, int file, off_t offset,
                                                    uint64_t size, backtrace_error_callback fail,
                                                    void* data, struct backtrace_view* view);

__attribute__((visibility("hidden"))) int __wrap_backtrace_get_view(
    backtrace_state* state, int file, off_t offset, uint64_t size, backtrace_error_callback fail,
    void* data, struct backtrace_view* view) {
  struct stat status {};
  if (fstat(file, &status) != 0) {
    fail(data, "fstat", errno);
    return 0;
  }
  if (offset < 0 || offset > status.st_size ||
      size > static_cast<uint64_t>(status.st_size - offset)) {
    fail(data, "the file is shorter than its headers say", 0);
    return 0;
  }
  return __real_backtrace_get_view(state, file, offset, size, fail, data, view);
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"

namespace tvm {
namespace ffi {
namespace tether {

bool DebugInfo::Find(uintptr_t address, const LoadedFile& file, std::vector<Frame>* frames,
                     std::string* symbol) {
  if (file.start == 0) return true;
  std::lock_guard<std::mutex> lock(locks.debug_info);
  reads_all_ = reads_all_ || __real_dl_iterate_phdr == nullptr;
  const State state = reads_all_ ? nullptr : StateOf(file);
  if (reads_all_) return FindInAll(address, file, frames, symbol);
  if (!state.has_value()) return false;
  return *state == nullptr || Ask(*state, address - file.base, frames, symbol);
}

DebugInfo::State DebugInfo::StateOf(const LoadedFile& file) {
  // Where a library was that is unmapped there may be another. A thread whose counts are older than
  // those of another has its library from before and until now: what it adds is right.
  if (!(file.loaded == loaded_of_mapped_)) {
    loaded_of_mapped_ = file.loaded;
    mapped_.clear();
  }
  auto it = mapped_.find(file.start);
  if (it != mapped_.end()) return it->second;
  const State state = StateOfFile(file);
  if (state.has_value()) mapped_.emplace(file.start, *state);
  return state;
}

DebugInfo::State DebugInfo::StateOfFile(const LoadedFile& file) {
  MappedFile mapped(file);
  if (!mapped.IsOpen()) return mapped.IsTemporary() ? State() : nullptr;
  const struct stat& status = mapped.status();
  const FileKey key(status.st_dev, status.st_ino, status.st_size, status.st_ctim.tv_sec,
                    status.st_ctim.tv_nsec);
  auto known = states_.find(key);
  if (known != states_.end()) return known->second;
  if (num_states_ >= kMaxFiles) return nullptr;
  if (!HasDescriptors()) return {};

  // Opened when the first question is asked, here; and libbacktrace keeps the text.
  const std::string& path = paths_.emplace_back("/proc/self/fd/" + std::to_string(mapped.fd()));
  Answer answer;
  auto it = states_.emplace(key, nullptr).first;
  backtrace_state*& state = it->second;
  state = backtrace_create_state(path.c_str(), /*threaded=*/1, Answer::Fail, &answer);
  if (state != nullptr) {
    ++num_states_;
    has_looked = false;
    reader.store(std::this_thread::get_id(), std::memory_order_relaxed);
    answer.AskSymbol(state, 0);
    reader.store(std::thread::id(), std::memory_order_relaxed);
    // A libbacktrace that is a shared library asks the loader.
    reads_all_ = !has_looked && !answer.has_failed;
    if (!has_looked) state = nullptr;
  }
  if (!answer.is_temporary) return state;
  states_.erase(it);
  return {};
}

// A state knows the libraries that were there when it was first used. So it is renewed where it
// does not know an address, and a bounded number of times.
bool DebugInfo::FindInAll(uintptr_t address, const LoadedFile& file, std::vector<Frame>* frames,
                          std::string* symbol) {
  constexpr int kMaxStates = 32;
  // Where a library was that is unloaded there may be another.
  if (file.loaded.subs != loaded_of_all_.subs) state_of_all_ = nullptr;
  if (state_of_all_ != nullptr) {
    if (!Ask(state_of_all_, address, frames, symbol)) return false;
    const bool is_new = file.loaded == loaded_of_all_;
    if (is_new || !frames->empty() || !symbol->empty()) return true;
  }
  if (num_states_of_all_ >= kMaxStates) return true;
  if (!HasDescriptors()) return false;
  Answer answer;
  auto* state = backtrace_create_state(nullptr, /*threaded=*/1, Answer::Fail, &answer);
  if (state == nullptr) return !answer.is_temporary;
  ++num_states_of_all_;
  // Not kept if there are files that it could not read.
  const bool is_complete = Ask(state, address, frames, symbol);
  state_of_all_ = is_complete ? state : nullptr;
  loaded_of_all_ = file.loaded;
  return is_complete;
}

#else

bool DebugInfo::Find(uintptr_t, const LoadedFile&, std::vector<Frame>*, std::string*) {
  return true;
}

#endif

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
