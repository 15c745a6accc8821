// SPDX-License-Identifier: Apache-2.0
// The stack as text, most recent call first, one frame a line:
//
//     File "src/core/env.cc", line 40, in SetStream(...)
//
// With libbacktrace a frame has file, line and inlined callers; where it finds nothing, dladdr
// still gives the symbol. What an address means is cached until the set of loaded libraries
// changes; code that is in no library, such as that of a compiler at run time, has no name.
#include <cxxabi.h>
#include <dlfcn.h>
#include <signal.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/error.h>
#include <unistd.h>
#include <unwind.h>

#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "debug_info.h"
#include "locks.h"
#include "thread_owned.h"

namespace tvm {
namespace ffi {
namespace {

using tether::DebugInfo;
using tether::LoadedFile;
using tether::LoadedLibraries;

bool StartsWithAny(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  for (std::string_view prefix : prefixes) {
    if (text.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

// Where one language calls the other; frames beyond belong to the other's own traceback.
bool IsBoundary(std::string_view symbol) {
  return StartsWithAny(
      symbol, {"TVMFFIFunctionCall", "slot_tp_call", "object_is_not_callable", "_Py", "PyObject"});
}

// The Python frontend is a boundary too, except where it is the one that asks for the stack. A
// template of ours that was instantiated for it names it in its arguments.
bool IsFrontend(std::string_view symbol) {
  return symbol.find("tether_py::") != std::string_view::npos;
}

bool IsThrowHelper(std::string_view symbol) {
  return StartsWithAny(symbol, {"tvm::ffi::tether::"});
}

std::string_view NameIn(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// By its file: in a wheel the functions of the extension have no names.
bool IsFrontendFile(std::string_view path) {
  const std::string_view name = NameIn(path);
  const std::string_view folder = path.substr(0, path.size() - name.size());
  return StartsWithAny(name, {"core."}) && !folder.empty() &&
         NameIn(folder.substr(0, folder.size() - 1)) == "tvm_ffi";
}

// By its file: the functions with which it calls others have all sorts of names.
bool IsInterpreterFile(std::string_view path) {
  return StartsWithAny(NameIn(path), {"python3", "libpython3"});
}

// The code that throws and calls: of no use to a reader.
bool IsExcluded(std::string_view file, std::string_view symbol) {
  if (IsThrowHelper(symbol) ||
      StartsWithAny(symbol, {"tvm::ffi::Function",
                             "tvm::ffi::details::", "tvm::ffi::detail::", "TVMFFIBacktrace",
                             "TVMFFIErrorSetRaisedFromCStr", "__libc_", "ffi_call_"})) {
    return true;
  }
  constexpr std::string_view kInclude = "include/";
  for (size_t at = 0; (at = file.find(kInclude, at)) != std::string_view::npos;) {
    at += kInclude.size();
    if (StartsWithAny(file.substr(at),
                      {"tvm/ffi/error.h", "tvm/ffi/function_detail.h", "tvm/ffi/function_details.h",
                       "tvm/ffi/function.h", "tvm/ffi/any.h", "tvm/ffi/reflection/", "c++/"})) {
      return true;
    }
  }
  return file.empty() && (symbol.empty() || StartsWithAny(symbol, {"0x0", "<unknown>"}));
}

void AppendLine(std::string_view file, int line, std::string_view symbol, std::string* out) {
  char digits[16];
  const char* end = std::to_chars(digits, digits + sizeof(digits), line).ptr;
  out->append("  File \"")
      .append(file.empty() ? "<unknown>" : file)
      .append("\", line ")
      .append(digits, static_cast<size_t>(end - digits))
      .append(", in ")
      .append(symbol.empty() ? "<unknown>" : symbol)
      .append("\n");
}

std::string Demangle(const char* symbol) {
  // Without the prefix it is a name of C, though "f" could be read as the type float.
  if (std::strncmp(symbol, "_Z", 2) != 0) return symbol;
  int status = 0;
  char* demangled = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string text = status == 0 && demangled != nullptr ? demangled : symbol;
  std::free(demangled);
  return text;
}

// What the program or library is that an address is in.
struct FileKind {
  bool is_frontend = false;
  bool is_interpreter = false;

  static FileKind Of(const LoadedFile& file) {
    const std::string_view path = file.name;
    if (file.start == 0) return {};
    // The program has no name in the list.
    return {IsFrontendFile(path), path.empty() ? IsProgramInterpreter() : IsInterpreterFile(path)};
  }

 private:
  static bool IsProgramInterpreter() {
    char path[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
    return size > 0 && IsInterpreterFile(std::string_view(path, static_cast<size_t>(size)));
  }
};

// What an address means, as text. A boundary is one as a whole, whatever was inlined into it.
struct Place {
  struct Line {
    std::string text;  // empty if it is not shown
    bool is_throw_helper;
  };
  std::vector<Line> lines;  // several when calls were inlined there
  bool is_boundary = false;
  bool is_frontend = false;
  bool has_lines = true;  // false if nobody asked for them yet

  void Add(std::string_view file, int line, std::string_view symbol) {
    Line shown{"", IsThrowHelper(symbol)};
    if (!IsExcluded(file, symbol)) AppendLine(file, line, symbol, &shown.text);
    lines.push_back(std::move(shown));
    Classify(symbol);
  }
  // About: the bytes that it takes.
  size_t Size() const {
    size_t size = 4 * sizeof(Place);
    for (const Line& line : lines) size += sizeof(Line) + line.text.capacity();
    return size;
  }
  void Classify(FileKind file) {
    is_boundary = is_boundary || file.is_interpreter;
    is_frontend = is_frontend || file.is_frontend;
  }
  void Classify(std::string_view symbol) {
    is_boundary = is_boundary || IsBoundary(symbol);
    is_frontend = is_frontend || IsFrontend(symbol);
  }
};

// Turns return addresses into places.
class Symbolizer {
 public:
  // Made when the library is loaded, see the end of this namespace; earlier if a static initialiser
  // of another file throws.
  static Symbolizer* Global() {
    static Symbolizer* symbolizer = new Symbolizer();
    return symbolizer;
  }

  // The address is in a function that this thread is in. Its library stays loaded meanwhile, so
  // what is found is right for every set of libraries from `loaded` until now. A walk that does not
  // cross boundaries shows no line of one: the debug information of an interpreter, which is large,
  // is read for one that does.
  std::shared_ptr<const Place> Find(uintptr_t address, const LoadedLibraries& loaded,
                                    bool crosses) {
    {
      std::lock_guard<std::mutex> lock(tether::locks.places);
      Renew(loaded);
      auto it = places_.find(address);
      if (it != places_.end() && (it->second->has_lines || !crosses)) return it->second;
    }
    return Make(address, crosses);
  }

 private:
  static constexpr size_t kMaxSizeOfPlaces = 4 << 20;

  TVM_FFI_NO_INLINE std::shared_ptr<const Place> Make(uintptr_t address, bool crosses) {
    auto place = std::make_shared<Place>();
    const LoadedFile file = LoadedFile::Of(address);
    place->Classify(FileKind::Of(file));
    place->has_lines = crosses || !(place->is_boundary || place->is_frontend);
    if (place->has_lines && !Resolve(address, file, place.get())) return place;
    std::lock_guard<std::mutex> lock(tether::locks.places);
    size_of_places_ += place->Size();
    if (size_of_places_ > kMaxSizeOfPlaces) {
      places_.clear();
      size_of_places_ = place->Size();
    }
    places_.insert_or_assign(address, place);
    return place;
  }

  // Threads that ask with older counts and with newer ones empty it in turn, until the older walk
  // ends.
  void Renew(const LoadedLibraries& loaded) {
    if (loaded == loaded_) return;
    loaded_ = loaded;
    places_.clear();
    size_of_places_ = 0;
  }

  // False if there may be more to say the next time.
  bool Resolve(uintptr_t address, const LoadedFile& file, Place* place) {
    std::vector<DebugInfo::Frame> frames;
    std::string symbol;
    const bool is_complete = debug_info_.Find(address, file, &frames, &symbol);
    // Without a lock of ours: dladdr waits for that of the loader. Another thread may hold it and
    // wait for ours, where an initialiser of the library that it loads throws.
    symbol = symbol.empty() ? DynamicSymbol(address) : Demangle(symbol.c_str());
    if (frames.empty()) frames.emplace_back();
    for (DebugInfo::Frame& frame : frames) frame.symbol = Demangle(frame.symbol.c_str());
    if (frames.back().symbol.empty()) frames.back().symbol = symbol;
    for (const DebugInfo::Frame& frame : frames) place->Add(frame.file, frame.line, frame.symbol);
    // Line tables name a local function without its namespace; the symbol table does not.
    place->Classify(symbol);
    if (!symbol.empty() && IsExcluded("", symbol)) place->lines.back().text.clear();
    return is_complete;
  }

  static std::string DynamicSymbol(uintptr_t address) {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || info.dli_sname == nullptr)
      return "";
    return Demangle(info.dli_sname);
  }

  DebugInfo debug_info_;
  // Under locks.places.
  LoadedLibraries loaded_;
  std::unordered_map<uintptr_t, std::shared_ptr<const Place>> places_;
  size_t size_of_places_ = 0;
};

int LineLimit() {
  constexpr int kDefault = 512;
  const char* text = std::getenv("TVM_TRACEBACK_LIMIT");
  if (text == nullptr) return kDefault;
  const char* end = text + std::strlen(text);
  int limit = 0;
  const std::from_chars_result result = std::from_chars(text, end, limit);
  return result.ec == std::errc() && result.ptr == end && limit >= 0 ? limit : kDefault;
}

// Writes the stack of this thread, from the inside out. It looks at one frame at a time: most walks
// end at a boundary nearby, and the depth of the stack beyond it must not cost anything.
class StackWriter {
 public:
  StackWriter(std::string* out, bool cross_boundary) : out_(out), crosses_(cross_boundary) {}

  // The throw site as its source names it; the frame of the stack it corresponds to is left out.
  void AddSite(std::string_view file, int line, std::string_view function) {
    skips_site_ = !IsExcluded(file, function);
    if (skips_site_ && lines_left_ > 0) {
      AppendLine(file, line, function, out_);
      --lines_left_;
    }
  }

  // Frames inside the one that returns to `caller` are left out, unless it is null. In line, so
  // that there are few of them.
  TVM_FFI_INLINE void Walk(void* caller) {
    caller_ = reinterpret_cast<uintptr_t>(caller);
    _Unwind_Backtrace(
        [](_Unwind_Context* context, void* self) {
          return static_cast<StackWriter*>(self)->Visit(context) ? _URC_NO_REASON
                                                                 : _URC_END_OF_STACK;
        },
        this);
    if (is_out_of_memory_) throw std::bad_alloc();
  }

 private:
  // False at the end of the walk. No exception passes through the unwinder.
  bool Visit(_Unwind_Context* context) {
    int before_instruction = 0;
    uintptr_t ip = _Unwind_GetIPInfo(context, &before_instruction);
    if (ip == 0 || frames_left_-- == 0) return false;
    if (caller_ != 0 && ip != caller_) return true;
    caller_ = 0;
    try {
      // A return address belongs to the instruction after the call.
      const uintptr_t address = before_instruction ? ip : ip - 1;
      return Add(*Symbolizer::Global()->Find(address, loaded_, crosses_));
    } catch (const std::exception&) {
      is_out_of_memory_ = true;
      return false;
    }
  }

  bool Add(const Place& place) {
    if (leaves_frontend_ && place.is_frontend) return true;
    leaves_frontend_ = false;
    if (lines_left_ <= 0) return false;
    if (!crosses_ && (place.is_boundary || place.is_frontend)) return false;
    for (const Place::Line& line : place.lines) {
      if (skips_site_ && !line.is_throw_helper) {
        skips_site_ = false;
      } else if (!line.text.empty() && lines_left_ > 0) {
        out_->append(line.text);
        --lines_left_;
      }
    }
    return true;
  }

  std::string* out_;
  bool crosses_;
  bool skips_site_ = false;
  bool leaves_frontend_ = true;
  bool is_out_of_memory_ = false;
  uintptr_t caller_ = 0;
  int lines_left_ = LineLimit();
  int frames_left_ = 4096;
  LoadedLibraries loaded_ = LoadedLibraries::Now();
};

#if TVM_FFI_BACKTRACE_ON_SEGFAULT
void OnSegfault(int signal) {
  // Not async-signal-safe; but the process ends anyway, and the text is worth the risk.
  struct sigaction fallback {};
  fallback.sa_handler = SIG_DFL;
  sigaction(signal, &fallback, nullptr);
  std::string text = "!!!!!!! Segfault encountered !!!!!!!\n";
  StackWriter(&text, /*cross_boundary=*/true).Walk(nullptr);
  ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  (void)written;
  raise(signal);
}

__attribute__((constructor)) void InstallSegfaultHandler() {
  struct sigaction current {};
  // Leave the handler of a sanitizer or an interpreter in place.
  if (sigaction(SIGSEGV, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return;
  struct sigaction ours {};
  ours.sa_handler = OnSegfault;
  sigaction(SIGSEGV, &ours, nullptr);
}
#endif

struct TraceText {
  using Type = std::string;
};
std::string& TextOfThread() { return tether::ThreadOwned<TraceText>::Get(); }
[[maybe_unused]] const bool has_text = TextOfThread().empty();  // early, for one of the first keys

// When the library is loaded: the first error may be that memory has run out. And no thread makes
// it while another asks for it.
[[maybe_unused]] const bool has_symbolizer = Symbolizer::Global() != nullptr;

}  // namespace
}  // namespace ffi
}  // namespace tvm

using namespace tvm::ffi;

const TVMFFIByteArray* TVMFFIBacktrace(const char* filename, int lineno, const char* func,
                                       int cross_ffi_boundary) {
  static thread_local TVMFFIByteArray bytes;
  std::string& text = TextOfThread();
  text.clear();
  try {
    StackWriter writer(&text, cross_ffi_boundary != 0);
    if (filename != nullptr && func != nullptr) writer.AddSite(filename, lineno, func);
    writer.Walk(__builtin_return_address(0));
  } catch (const std::exception&) {
    text.clear();  // out of memory in the error path: an error without a backtrace
  }
  bytes = TVMFFIByteArray{text.data(), text.size()};
  return &bytes;
}
