// SPDX-License-Identifier: Apache-2.0
// Shared libraries, and the decision when one may be unloaded.
#include <tvm/ffi/error.h>
#include <tvm/ffi/reflection/registry.h>

#include "client_info.h"
#include "core/library_load.h"
#include "core/locks.h"
#include "library.h"

#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <dlfcn.h>
#include <sys/stat.h>
#endif
#ifdef __ELF__
#include <elf.h>
#include <link.h>
#endif

#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {
namespace tether {
namespace {

// ---- Platform -----------------------------------------------------------------------------------

#ifdef _WIN32

using NativeHandle = HMODULE;

NativeHandle OpenNative(const String& path, std::string* error) {
  int length =
      MultiByteToWideChar(CP_UTF8, 0, path.data(), static_cast<int>(path.size()), nullptr, 0);
  std::wstring wide(static_cast<size_t>(length), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, path.data(), static_cast<int>(path.size()), wide.data(), length);
  NativeHandle handle = LoadLibraryW(wide.c_str());
  if (handle == nullptr) *error = "error code " + std::to_string(GetLastError());
  return handle;
}

void* FindNative(NativeHandle handle, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(handle, name));
}

void CloseNative(NativeHandle handle) { FreeLibrary(handle); }

#else

using NativeHandle = void*;

NativeHandle OpenNative(const String& path, std::string* error) {
  // RTLD_NOW: an undefined function is an error here instead of ending the process at its first
  // call.
  NativeHandle handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* text = dlerror();
    *error = text != nullptr ? text : "unknown error";
  }
  return handle;
}

void* FindNative(NativeHandle handle, const char* name) { return dlsym(handle, name); }

void CloseNative(NativeHandle handle) { dlclose(handle); }

#endif

struct Segment {
  const char* begin;
  const char* end;

  bool Contains(const void* address) const {
    auto* at = static_cast<const char*>(address);
    return begin <= at && at < end;
  }
};

// Where the library is mapped; empty if the platform does not say.
std::vector<Segment> FindSegments([[maybe_unused]] NativeHandle handle) {
  std::vector<Segment> segments;
#ifdef __ELF__
  struct Search {
    link_map* map = nullptr;
    std::vector<Segment>* out;
  } search;
  search.out = &segments;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &search.map) != 0) return segments;
  auto visit = [](dl_phdr_info* info, size_t, void* arg) {
    auto* search = static_cast<Search*>(arg);
    auto address = [info](const ElfW(Phdr) & header) {
      return reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    };
    bool found = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info->dlpi_phdr[i];
      const void* dynamic = search->map->l_ld;
      found = found || (header.p_type == PT_DYNAMIC && address(header) == dynamic);
    }
    if (!found) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info->dlpi_phdr[i];
      if (header.p_type != PT_LOAD) continue;
      search->out->push_back({address(header), address(header) + header.p_memsz});
    }
    return 1;
  };
  std::shared_lock<ForkGate> lock(locks.loader);
  dl_iterate_phdr(visit, &search);
#endif
  return segments;
}

// Size of the data symbol that begins at `address`, 0 when it is not recorded.
size_t SymbolSize([[maybe_unused]] const void* address) {
#if defined(__ELF__) && defined(__GLIBC__)
  Dl_info info;
  void* entry = nullptr;
  if (dladdr1(address, &info, &entry, RTLD_DL_SYMENT) == 0 || entry == nullptr) return 0;
  if (info.dli_saddr != address) return 0;
  return static_cast<const ElfW(Sym)*>(entry)->st_size;
#else
  return 0;
#endif
}

// ---- The library --------------------------------------------------------------------------------

class SharedLibrary final : public Library {
 public:
  SharedLibrary(NativeHandle handle, std::string name)
      : handle_(handle), name_(std::move(name)), segments_(FindSegments(handle)) {}

  ~SharedLibrary() final {
    if (!MustStayLoaded()) CloseNative(handle_);
  }

  void* FindSymbol(std::string_view role, std::string_view name) final {
    // The platform would stop at the NUL and find another symbol.
    if (name.find('\0') != std::string_view::npos) return nullptr;
    return FindNative(handle_, std::string(role).append(name).c_str());
  }

  size_t ReadableBytes(const void* address) const final {
    if (size_t size = SymbolSize(address)) return size;
    for (const Segment& segment : segments_) {
      if (segment.Contains(address)) {
        return static_cast<size_t>(segment.end - static_cast<const char*>(address));
      }
    }
    return segments_.empty() ? SIZE_MAX : 0;
  }

  // Where the mapping is not known every address counts, which only means that nothing is unloaded.
  bool Contains(const void* address) const final {
    if (address == nullptr) return false;
    for (const Segment& segment : segments_) {
      if (segment.Contains(address)) return true;
    }
    return segments_.empty();
  }

  void KeepLoaded() final {
    // Called for every object that is returned: do not write to a shared cache line each time.
    if (keep_loaded_.load(std::memory_order_relaxed)) return;
    keep_loaded_.store(true, std::memory_order_relaxed);
  }

  std::string Name() const final { return name_; }

 private:
  bool MustStayLoaded() const noexcept {
    if (keep_loaded_.load(std::memory_order_relaxed)) return true;
    try {
      return IsRegistered(*this) || HasSystemLibSymbolIn(*this);
    } catch (const std::exception&) {
      return true;
    }
  }

  NativeHandle handle_;
  std::string name_;
  std::vector<Segment> segments_;
  std::atomic<bool> keep_loaded_{false};
};

// ---- What the registries hold -------------------------------------------------------------------

bool ObjectIsFrom(const Library& library, const TVMFFIObject* object) {
  if (library.Contains(reinterpret_cast<const void*>(object->deleter))) return true;
  if (object->type_index != kTVMFFIFunction) return false;
  const auto* cell = TVMFFIFunctionGetCellPtr(const_cast<TVMFFIObject*>(object));
  return library.Contains(reinterpret_cast<const void*>(cell->safe_call)) ||
         library.Contains(cell->cpp_call);
}

bool ValueIsFrom(const Library& library, const TVMFFIAny& value) {
  if (value.type_index >= kTVMFFIStaticObjectBegin) return ObjectIsFrom(library, value.v_obj);
  return value.type_index == kTVMFFIOpaquePtr && library.Contains(value.v_ptr);
}

bool TypeIsFrom(const Library& library, const TVMFFITypeInfo* type) {
  for (int32_t i = 0; i < type->num_fields; ++i) {
    const TVMFFIFieldInfo& field = type->fields[i];
    if (library.Contains(reinterpret_cast<const void*>(field.getter))) return true;
    if (ValueIsFrom(library, field.default_value_or_factory)) return true;
  }
  for (int32_t i = 0; i < type->num_methods; ++i) {
    if (ValueIsFrom(library, type->methods[i].method)) return true;
  }
  return type->metadata != nullptr &&
         library.Contains(reinterpret_cast<const void*>(type->metadata->creator));
}

bool AttrIsFrom(const Library& library, const char* name) {
  TVMFFIByteArray bytes = reflection::AsByteArray(name);
  const TVMFFITypeAttrColumn* column = TVMFFIGetTypeAttrColumn(&bytes);
  for (int32_t i = 0; column != nullptr && i < column->size; ++i) {
    if (ValueIsFrom(library, column->data[i])) return true;
  }
  return false;
}

constexpr const char* kAttrNames[] = {
    reflection::type_attr::kNew,         reflection::type_attr::kInit,
    reflection::type_attr::kConvert,     reflection::type_attr::kConvertTypeSchema,
    reflection::type_attr::kShallowCopy, reflection::type_attr::kRepr,
    reflection::type_attr::kHash,        reflection::type_attr::kEq,
    reflection::type_attr::kCompare,     reflection::type_attr::kAnyHash,
    reflection::type_attr::kAnyEqual,    reflection::type_attr::kSHash,
    reflection::type_attr::kSEqual,      reflection::type_attr::kStructuralVisit,
    reflection::type_attr::kDataToJson,  reflection::type_attr::kDataFromJson,
    reflection::type_attr::kEnumState,
};

}  // namespace

bool IsRegistered(const Library& library) {
  for (const String& name : Function::ListGlobalNames()) {
    std::optional<Function> function = Function::GetGlobal(name);
    if (!function.has_value()) continue;
    if (ObjectIsFrom(library, details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(*function))) {
      return true;
    }
  }
  auto keys = Function::GetGlobalRequired("ffi.GetRegisteredTypeKeys")().cast<Array<String>>();
  for (const String& key : keys) {
    int32_t index = TypeKeyToIndex(std::string_view(key.data(), key.size()));
    if (TypeIsFrom(library, TVMFFIGetTypeInfo(index))) return true;
  }
  for (const char* name : kAttrNames) {
    if (AttrIsFrom(library, name)) return true;
  }
  return false;
}

namespace {

// Libraries whose initialisers failed. They stay mapped, so opening one again runs no initialiser,
// and must fail with the same error.
class FailedLibraries {
 public:
  static void ThrowIfFailed(NativeHandle handle) {
    std::lock_guard<std::mutex> lock(locks.failed_libraries);
    auto it = errors_->find(handle);
    if (it != errors_->end()) throw it->second;
  }
  static void Add(NativeHandle handle, const Error& error) {
    std::lock_guard<std::mutex> lock(locks.failed_libraries);
    errors_->emplace(handle, error);
  }

 private:
  static inline auto* errors_ = new std::unordered_map<NativeHandle, Error>();
};

// The files of libraries as they were when they were loaded. The loader gives the same library
// again for the same path, whatever has happened to the file.
class LoadedFiles {
 public:
  struct File {
    uint64_t device, inode, size, seconds, nanoseconds;

    bool operator==(const File& other) const {
      return device == other.device && inode == other.inode && size == other.size &&
             seconds == other.seconds && nanoseconds == other.nanoseconds;
    }
  };

  // Nothing if there is no such file, or if the platform does not tell.
  static std::optional<File> FileAt([[maybe_unused]] const String& path) {
#ifdef __linux__
    struct stat status {};
    if (stat(path.c_str(), &status) == 0) {
      return File{status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size),
                  static_cast<uint64_t>(status.st_mtim.tv_sec),
                  static_cast<uint64_t>(status.st_mtim.tv_nsec)};
    }
#endif
    return std::nullopt;
  }

  // The library that is loaded from the path, or NULL.
  static NativeHandle Find([[maybe_unused]] const String& path) {
#ifdef __linux__
    NativeHandle handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) CloseNative(handle);
    return handle;
#else
    return nullptr;
#endif
  }

  static void Set(NativeHandle handle, const File& file) {
    std::lock_guard<std::mutex> lock(tether::locks.loaded_files);
    files_->insert_or_assign(handle, file);
  }

  static bool IsChanged(const String& path) {
    std::optional<File> now = FileAt(path);
    NativeHandle handle = now.has_value() ? Find(path) : nullptr;
    std::lock_guard<std::mutex> lock(tether::locks.loaded_files);
    auto it = files_->find(handle);
    return handle != nullptr && it != files_->end() && !(it->second == *now);
  }

 private:
  static inline auto* files_ = new std::unordered_map<NativeHandle, File>();
};

// Made before the library is loaded.
class NoteFile {
 public:
  explicit NoteFile(const String& path)
      : file_(LoadedFiles::Find(path) == nullptr ? LoadedFiles::FileAt(path) : std::nullopt) {}
  void Loaded(NativeHandle handle) const {
    if (file_.has_value()) LoadedFiles::Set(handle, *file_);
  }

 private:
  std::optional<LoadedFiles::File> file_;
};

}  // namespace

std::unique_ptr<Library> OpenSharedLibrary(const String& path) {
  if (std::strlen(path.c_str()) != path.size()) {
    TVM_FFI_THROW(ValueError) << "Path of a shared library contains a NUL byte: " << path.c_str();
  }
  // Before its static initialisers run, and while a missing symbol can still be an error.
  CheckClient(path);
  // A bare name is not a path: the loader looks for it elsewhere.
  std::string error =
      std::strchr(path.c_str(), '/') != nullptr ? WhatIsCutOff(path) : std::string();
  NoteFile note(path);
  LibraryLoad load(path);
  NativeHandle handle = error.empty() ? OpenNative(path, &error) : nullptr;
  try {
    load.Finish();
  } catch (const Error& failure) {
    if (handle != nullptr) FailedLibraries::Add(handle, failure);
    throw;
  }
  if (handle == nullptr) {
    TVM_FFI_THROW(InternalError) << "Failed to load dynamic shared library " << path << " "
                                 << error;
  }
  FailedLibraries::ThrowIfFailed(handle);
  note.Loaded(handle);
  return std::make_unique<SharedLibrary>(handle, path);
}

}  // namespace tether

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::GlobalDef()
      .def("ffi.Module.load_from_file.so",
           [](const String& path, const String&) {
             return tether::MakeLibraryModule(tether::OpenSharedLibrary(path));
           })
      .def("ffi.tether.IsChangedSinceLoaded",
           [](const String& path) { return tether::LoadedFiles::IsChanged(path); });
}

}  // namespace ffi
}  // namespace tvm
