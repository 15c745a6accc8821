// SPDX-License-Identifier: Apache-2.0
// A library whose static initialisers run because load_module opened it in this thread.
//
// An exception in a static initialiser ends the process. While a library is loaded, a registration
// that fails is therefore kept as the error of the load, and everything the library registers
// after it is ignored; when its initialisers are done, what it registered before is undone. The
// library stays mapped, because its objects may be in use, but nothing refers to it by name.
#ifndef TETHER_CORE_LIBRARY_LOAD_H_
#define TETHER_CORE_LIBRARY_LOAD_H_

#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {
namespace tether {

class LibraryLoad {
 public:
  explicit LibraryLoad(std::string path) : path_(std::move(path)), outer_(current_) {
    current_ = this;
  }
  LibraryLoad(const LibraryLoad&) = delete;
  LibraryLoad& operator=(const LibraryLoad&) = delete;
  ~LibraryLoad() { Leave(); }

  // NULL if this thread is not loading a library.
  static LibraryLoad* Current() { return current_; }

  const std::string& path() const { return path_; }
  bool failed() const { return error_.has_value(); }
  // The first failure is the one to report.
  void Fail(Error error) {
    if (!failed()) error_ = std::move(error);
  }
  // How to undo a registration that was just made.
  void AddUndo(std::function<void()> undo) { undo_.push_back(std::move(undo)); }

  // After the initialisers. Throws if one of them failed.
  void Finish() {
    Leave();
    if (!failed()) return;
    for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) (*undo)();
    throw *error_;
  }

 private:
  void Leave() {
    if (current_ == this) current_ = outer_;
  }

  static inline thread_local LibraryLoad* current_ = nullptr;
  std::string path_;
  LibraryLoad* outer_;
  std::optional<Error> error_;
  std::vector<std::function<void()>> undo_;
};

// Runs one registration, of a C function that returns a code.
template <typename F>
int Register(F&& registration) {
  TVM_FFI_SAFE_CALL_BEGIN();
  LibraryLoad* load = LibraryLoad::Current();
  if (load == nullptr) {
    registration();
  } else if (!load->failed()) {
    try {
      registration();
    } catch (const Error& error) {
      load->Fail(error);
    }
  }
  TVM_FFI_SAFE_CALL_END();
}

inline void AddUndo(std::function<void()> undo) {
  if (LibraryLoad* load = LibraryLoad::Current()) load->AddUndo(std::move(undo));
}

// Throws, while a library is loaded, for a name that is taken; `owner` is an address in the library
// that has it, or NULL.
void RefuseTakenName(const char* what, std::string_view name, const void* owner);

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_CORE_LIBRARY_LOAD_H_
