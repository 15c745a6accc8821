// SPDX-License-Identifier: Apache-2.0
// Reads ELF files: notes, dynamic symbols, and strings that tell releases of the interface apart.
#include "client_info.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#ifdef __ELF__
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "core/any_hooks.h"
#include "core/loaded_runtimes.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool IsInterfaceSymbol(std::string_view name) {
  if (StartsWith(name, "TVMFFI")) return !StartsWith(name, "TVMFFITesting");
  if (!StartsWith(name, "_Z")) return false;
  size_t at = name.find("N3tvm3ffi");
  if (at == std::string_view::npos) at = name.find("NK3tvm3ffi");
  return at != std::string_view::npos && at <= 4;  // _ZN, _ZNK, _ZTVN, _ZTIN, ...
}

std::string Dotted(const std::array<uint32_t, 3>& version) {
  return std::to_string(version[0]) + "." + std::to_string(version[1]) + "." +
         std::to_string(version[2]);
}

#ifdef __ELF__

// A file mapped for reading; every access is checked, because the file may be damaged.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat status {};
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      size_ = static_cast<size_t>(status.st_size);
      void* mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
      data_ = mapped != MAP_FAILED ? static_cast<const char*>(mapped) : nullptr;
    }
    close(fd);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  ~ElfFile() {
    if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
  }

  bool IsLibraryOfThisMachine() const {
    ElfW(Ehdr) header;
    return Read(0, &header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
           header.e_ident[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           header.e_ident[EI_DATA] == (IsLittleEndian() ? ELFDATA2LSB : ELFDATA2MSB) &&
           header.e_type == ET_DYN;
  }

  bool IsElf() const {
    return size_ >= SELFMAG && data_ != nullptr && std::memcmp(data_, ELFMAG, SELFMAG) == 0;
  }

  size_t size() const { return size_; }

  template <typename T>
  bool Read(size_t offset, T* out) const {
    if (data_ == nullptr || offset > size_ || size_ - offset < sizeof(T)) return false;
    std::memcpy(out, data_ + offset, sizeof(T));
    return true;
  }

  // The NUL-terminated text at an offset, empty if there is none.
  std::string_view Text(size_t offset) const {
    if (offset >= size_) return {};
    const void* end = std::memchr(data_ + offset, 0, size_ - offset);
    if (end == nullptr) return {};
    return {data_ + offset, static_cast<size_t>(static_cast<const char*>(end) - data_) - offset};
  }

  bool Contains(std::string_view text) const {
    return memmem(data_, size_, text.data(), text.size()) != nullptr;
  }

  std::vector<ElfW(Phdr)> Segments() const {
    ElfW(Ehdr) header;
    std::vector<ElfW(Phdr)> segments;
    if (!Read(0, &header) || header.e_phentsize != sizeof(ElfW(Phdr))) return segments;
    for (size_t i = 0; i < header.e_phnum; ++i) {
      ElfW(Phdr) segment;
      if (!Read(header.e_phoff + i * sizeof(segment), &segment)) break;
      segments.push_back(segment);
    }
    return segments;
  }

 private:
  static bool IsLittleEndian() {
    uint16_t one = 1;
    char first;
    std::memcpy(&first, &one, 1);
    return first == 1;
  }

  const char* data_ = nullptr;
  size_t size_ = 0;
};

class ClientReader {
 public:
  explicit ClientReader(const ElfFile& file) : file_(file), segments_(file.Segments()) {}

  ClientInfo Run(bool recognise) {
    for (const ElfW(Phdr) & segment : segments_) {
      if (segment.p_type == PT_NOTE) ReadNotes(segment);
      if (segment.p_type == PT_DYNAMIC) ReadDynamic(segment);
    }
    ReadImports();
    if (info_.note.has_value()) {
      info_.at_least = info_.at_most = Dotted(info_.note->interface_version);
    } else if (recognise && info_.IsClient()) {
      Recognise();
    }
    return std::move(info_);
  }

 private:
  // File offset of an address in the loaded image; 0 where nothing is mapped from the file.
  size_t OffsetOf(size_t address) const {
    for (const ElfW(Phdr) & segment : segments_) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz) {
        return address - segment.p_vaddr + segment.p_offset;
      }
    }
    return 0;
  }

  // One note per translation unit; the oldest header decides what the client may lack.
  void ReadNotes(const ElfW(Phdr) & segment) {
    size_t align = segment.p_align == 8 ? 8 : 4;
    size_t at = segment.p_offset;
    size_t end = at + segment.p_filesz;
    ElfW(Nhdr) header;
    while (at < end && file_.Read(at, &header)) {
      size_t name = at + sizeof(header);
      size_t description = name + (header.n_namesz + align - 1) / align * align;
      VersionNote note;
      if (header.n_type == 1 && header.n_namesz == 8 && header.n_descsz == sizeof(note) &&
          file_.Text(name) == "TVM-FFI" && file_.Read(description, &note)) {
        if (!info_.note || note.interface_version < info_.note->interface_version) {
          info_.note = note;
        }
      }
      at = description + (header.n_descsz + align - 1) / align * align;
    }
  }

  void ReadDynamic(const ElfW(Phdr) & segment) {
    std::vector<size_t> needed;
    size_t soname = 0;
    for (size_t at = 0; at + sizeof(ElfW(Dyn)) <= segment.p_filesz; at += sizeof(ElfW(Dyn))) {
      ElfW(Dyn) entry;
      if (!file_.Read(segment.p_offset + at, &entry) || entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) needed.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_SONAME) soname = entry.d_un.d_val;
      if (entry.d_tag == DT_STRTAB) strings_ = OffsetOf(entry.d_un.d_ptr);
      if (entry.d_tag == DT_SYMTAB) symbols_ = OffsetOf(entry.d_un.d_ptr);
      if (entry.d_tag == DT_HASH) hash_ = OffsetOf(entry.d_un.d_ptr);
      if (entry.d_tag == DT_GNU_HASH) gnu_hash_ = OffsetOf(entry.d_un.d_ptr);
    }
    if (strings_ == 0) return;
    for (size_t name : needed) info_.needed.emplace_back(file_.Text(strings_ + name));
    if (soname != 0) info_.soname = file_.Text(strings_ + soname);
  }

  // How many entries of the symbol table to look at. The GNU hash table covers what is defined and
  // puts everything undefined in front of it, so its first index is enough for imports.
  size_t NumSymbols() const {
    uint32_t words[2];
    if (gnu_hash_ != 0 && file_.Read(gnu_hash_, &words)) return words[1];
    if (hash_ != 0 && file_.Read(hash_, &words)) return words[1];
    return 0;
  }

  void ReadImports() {
    if (symbols_ == 0 || strings_ == 0) return;
    size_t count = NumSymbols();
    for (size_t i = 1; i < count; ++i) {
      ElfW(Sym) symbol;
      if (!file_.Read(symbols_ + i * sizeof(symbol), &symbol)) break;
      bool wanted = symbol.st_shndx == SHN_UNDEF && symbol.st_info >> 4 == STB_GLOBAL;
      if (!wanted) continue;
      std::string_view name = file_.Text(strings_ + symbol.st_name);
      if (IsInterfaceSymbol(name)) info_.imports.emplace_back(name);
    }
    std::sort(info_.imports.begin(), info_.imports.end());
  }

  bool HasText(std::string_view text) const { return file_.Contains(text); }

  // Texts that inlined header code leaves in a client, by the release that introduced or dropped
  // them (found by compiling one client with every release).
  void Recognise() {
    struct Fact {
      const char* text;
      const char* since;
    };
    static constexpr Fact kSince[] = {{"\",\"named_args\":{\"return\":[", "0.1.15"},
                                      {"N3tvm3ffi6detail", "0.1.15"},
                                      {"TVMFFIBigInt", "0.1.14"},
                                      {"__ffi_type_final__", "0.1.14"},
                                      {"ffi.EnumState", "0.1.13"},
                                      {"ffi._RegisterFFIInit", "0.1.11"},
                                      {"__ffi_new__", "0.1.10"}};
    for (const Fact& fact : kSince) {
      if (info_.at_least.empty() && HasText(fact.text)) info_.at_least = fact.since;
    }
    // Only 0.1.13 allocated through the registry; our own headers do, but leave a note.
    if (info_.Imports("TVMFFIGetCustomAllocator")) {
      info_.at_least = info_.at_most = "0.1.13";
      return;
    }
    // Every release leaves this where a class is registered; then missing strings tell as well.
    bool registers = HasText("__ffi_shallow_copy__");
    if (registers && !HasText("__ffi_new__")) {
      info_.at_most = "0.1.9";
    } else if (registers && !HasText("ffi._RegisterFFIInit")) {
      info_.at_most = "0.1.10";
    } else if (info_.Imports("_ZN3tvm3ffi4json9StringifyERKNS0_3AnyENS0_8OptionalIivEE")) {
      info_.at_most = "0.1.12";
    } else if (registers && !HasText("__ffi_type_final__")) {
      info_.at_most = "0.1.13.post3";
    } else if (HasText("N3tvm3ffi7details")) {
      info_.at_most = "0.1.14.post1";
    }
  }

  const ElfFile& file_;
  std::vector<ElfW(Phdr)> segments_;
  ClientInfo info_;
  size_t strings_ = 0;
  size_t symbols_ = 0;
  size_t hash_ = 0;
  size_t gnu_hash_ = 0;
};

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat of_a {};
  struct stat of_b {};
  return stat(a.c_str(), &of_a) == 0 && stat(b.c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

// Imports that nothing provides. C++ symbols count only if no library of the client's own could
// define them.
std::vector<std::string> MissingImports(const ClientInfo& info) {
  bool only_system = std::all_of(info.needed.begin(), info.needed.end(), [](const auto& name) {
    constexpr const char* kSystem[] = {"libtvm_ffi.so", "libstdc++.so", "libm.so",
                                       "libgcc_s.so",   "libc.so",      "libdl.so",
                                       "ld-linux",      "libpthread.so"};
    return std::any_of(std::begin(kSystem), std::end(kSystem),
                       [&](const char* known) { return StartsWith(name, known); });
  });
  void* self = dlopen(PathOfThisLibrary().c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (self == nullptr) return {};  // linked statically: the program itself decides
  std::vector<std::string> missing;
  for (const std::string& name : info.imports) {
    if (!only_system && !StartsWith(name, "TVMFFI")) continue;
    if (dlsym(self, name.c_str()) == nullptr && dlsym(RTLD_DEFAULT, name.c_str()) == nullptr) {
      missing.push_back(name);
    }
  }
  dlclose(self);
  return missing;
}

#endif  // __ELF__

std::string ThisRuntime() {
  std::string text = "this runtime implements interface ";
  text += Dotted({TVM_FFI_VERSION_MAJOR, TVM_FFI_VERSION_MINOR, TVM_FFI_VERSION_PATCH});
  text += " (tether ";
  text += Dotted(
      {TVM_FFI_TETHER_VERSION_MAJOR, TVM_FFI_TETHER_VERSION_MINOR, TVM_FFI_TETHER_VERSION_PATCH});
  return text + ")";
}

// Functions on modules exchange an Optional<Function>, and mismatches and access paths an Optional
// of objects: 16 bytes in 0.1.13 and 8 bytes before and after, under the same names.
bool UsesWideOptional(const ClientInfo& info) {
  if (info.note.has_value() || !info.Imports("TVMFFIGetCustomAllocator")) return false;
  constexpr const char* kNames[] = {
      "_ZTIN3tvm3ffi9ModuleObjE", "_ZTVN3tvm3ffi9ModuleObjE",
      "_ZN3tvm3ffi9ModuleObj11GetFunctionERKNS0_6StringEb",
      "_ZN3tvm3ffi15StructuralEqual16GetFirstMismatchERKNS0_3AnyES4_bb",
      "_ZN3tvm3ffi17VisitErrorContext15FindAccessPathsERKNS0_9ObjectRefERKS1_b"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const char* name) { return info.Imports(name); });
}

std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i != 0 ? ", " : "") + names[i];
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

Map<String, Any> ToMap(const ClientInfo& info) {
  Map<String, Any> result;
  auto strings = [](const std::vector<std::string>& items) {
    Array<String> array;
    for (const std::string& item : items) array.push_back(item);
    return array;
  };
  result.Set("is_client", info.IsClient());
  result.Set("runtime", info.Runtime());
  result.Set("soname", info.soname);
  result.Set("needed", strings(info.needed));
  result.Set("imports", strings(info.imports));
  result.Set("built_with", info.BuiltWith());
  result.Set("at_least", info.at_least);
  result.Set("at_most", info.at_most);
  result.Set("by_note", info.note.has_value());
  return result;
}

}  // namespace

bool ClientInfo::Imports(const char* name) const {
  return std::binary_search(imports.begin(), imports.end(), name);
}

std::string ClientInfo::Runtime() const {
  auto found = std::find_if(needed.begin(), needed.end(), IsRuntimeName);
  return found != needed.end() ? *found : "";
}

std::string ClientInfo::BuiltWith() const {
  if (note.has_value()) {
    return Dotted(note->interface_version) + " (tether " + Dotted(note->tether_version) + ")";
  }
  if (at_least.empty() && at_most.empty()) return "an unknown release";
  if (at_most.empty()) return at_least + " or later";
  if (at_least.empty()) return at_most + " or earlier";
  return at_least == at_most ? at_least : at_least + " to " + at_most;
}

std::optional<ClientInfo> ReadClientInfo([[maybe_unused]] const std::string& path,
                                         [[maybe_unused]] bool recognise) {
#ifdef __ELF__
  ElfFile file(path);
  if (file.IsLibraryOfThisMachine()) return ClientReader(file).Run(recognise);
#endif
  return std::nullopt;
}

std::string WhatIsCutOff([[maybe_unused]] const std::string& path) {
#ifdef __ELF__
  ElfFile file(path);
  if (!file.IsLibraryOfThisMachine()) return "";
  ElfW(Ehdr) header;
  size_t end = 0;
  std::vector<ElfW(Phdr)> segments = file.Segments();
  for (const ElfW(Phdr) & segment : segments) {
    if (segment.p_type == PT_LOAD) {
      end = std::max(end, static_cast<size_t>(segment.p_offset + segment.p_filesz));
    }
  }
  bool has_all = file.Read(0, &header) && segments.size() == header.e_phnum;
  if (has_all && end <= file.size()) return "";
  return "the file is cut off: it has " + std::to_string(file.size()) + " bytes, and its headers " +
         (has_all ? "speak of " + std::to_string(end) : "are not complete");
#else
  return "";
#endif
}

namespace {

// Why a file cannot be a client, as far as the file tells; empty if it can.
std::string WhyNotALibrary([[maybe_unused]] const std::string& path) {
#ifdef __ELF__
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::strerror(errno);
  if (!S_ISREG(status.st_mode)) return "it is not a file";
  if (access(path.c_str(), R_OK) != 0) return std::strerror(errno);
  ElfFile file(path);
  if (!file.IsElf()) return "it is not a shared library";
  if (!file.IsLibraryOfThisMachine()) return "it is not a shared library for this machine";
  return WhatIsCutOff(path);
#else
  return "";
#endif
}

}  // namespace

void CheckClient([[maybe_unused]] const std::string& path) {
#ifdef __ELF__
  std::optional<ClientInfo> info = ReadClientInfo(path, false);
  if (!info.has_value()) return;
  if (IsRuntimeName(info->soname) && !IsSameFile(path, PathOfThisLibrary())) {
    TVM_FFI_THROW(RuntimeError) << "Cannot load " << path
                                << ": it is a second runtime, and one process can have only one; "
                                << ThisRuntime() << " and is " << PathOfThisLibrary();
  }
  if (!info->IsClient()) return;
  auto built_with = [&path]() {
    std::optional<ClientInfo> known = ReadClientInfo(path, true);
    return known.has_value() ? known->BuiltWith() : "an unknown release";
  };
  std::string runtime = info->Runtime();
  if (!runtime.empty() && !StartsWith(runtime, kRuntimeName)) {
    TVM_FFI_THROW(RuntimeError)
        << "Cannot load " << path << ": it was built with " << built_with()
        << " and brings its own copy of the runtime, " << runtime
        << ". Two runtimes in one process do not know each other's types and functions; "
        << ThisRuntime() << ". Install a build of it that uses the shared " << kRuntimeName
        << " (exclude that library when repairing the wheel)";
  }
  std::vector<std::string> missing = MissingImports(*info);
  if (!missing.empty()) {
    TVM_FFI_THROW(RuntimeError) << "Cannot load " << path << ": it was built with " << built_with()
                                << " and needs " << Listed(missing) << ", but " << ThisRuntime()
                                << " and does not have that. Install a newer tether-ffi, or an "
                                   "older build of that library";
  }
  if (UsesWideOptional(*info)) {
    TVM_FFI_THROW(RuntimeError)
        << "Cannot load " << path << ": it was built with " << built_with()
        << ", whose optional objects had 16 bytes where every other release has 8, and it passes "
           "them to the runtime; "
        << ThisRuntime()
        << ". Rebuild it with another release of the headers, or install such a build";
  }
#endif
}

namespace {

// Everything that can be told to be of a last release is older than 0.1.15.
bool IsBuiltBeforeNewHooks([[maybe_unused]] const void* code) {
#ifdef __ELF__
  Dl_info place;
  if (dladdr(code, &place) == 0 || place.dli_fname == nullptr) return false;
  std::optional<ClientInfo> info = ReadClientInfo(place.dli_fname, true);
  return info.has_value() && !info->note.has_value() && !info->at_most.empty();
#else
  return false;
#endif
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  is_old_code.store(&IsBuiltBeforeNewHooks, std::memory_order_release);
  reflection::GlobalDef()
      .def("ffi.tether.ClientInfo",
           [](const String& path) -> Any {
             std::optional<ClientInfo> info = ReadClientInfo(path, true);
             return info.has_value() ? Any(ToMap(*info)) : Any(nullptr);
           })
      .def("ffi.tether.WhyNotALibrary",
           [](const String& path) { return String(WhyNotALibrary(path)); })
      .def("ffi.tether.CheckClient", [](const String& path) { CheckClient(path); });
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
