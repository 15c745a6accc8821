// SPDX-License-Identifier: Apache-2.0
// The stack as text, most recent call first, one frame a line:
//
//     File "src/core/env.cc", line 40, in SetStream(...)
//
// With libbacktrace a frame has file, line and inlined callers; where it finds nothing, dladdr
// still gives the symbol. What an address means is cached until the set of loaded libraries
// changes.
#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/error.h>
#include <unistd.h>
#include <unwind.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#if TVM_FFI_USE_LIBBACKTRACE
#include <backtrace.h>
#endif

namespace tvm {
namespace ffi {
namespace {

struct Frame {
  std::string file;
  int line = 0;
  std::string symbol;
};

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

// The code that throws and calls: of no use to a reader.
bool IsExcluded(const Frame& frame) {
  if (StartsWithAny(frame.symbol, {"tvm::ffi::Function", "tvm::ffi::details::",
                                   "tvm::ffi::detail::", "tvm::ffi::tether::", "TVMFFIBacktrace",
                                   "TVMFFIErrorSetRaisedFromCStr", "__libc_", "ffi_call_"})) {
    return true;
  }
  for (const char* part :
       {"include/tvm/ffi/error.h", "include/tvm/ffi/function_detail.h",
        "include/tvm/ffi/function_details.h", "include/tvm/ffi/function.h", "include/tvm/ffi/any.h",
        "include/tvm/ffi/reflection/", "include/c++/"}) {
    if (frame.file.find(part) != std::string::npos) return true;
  }
  return frame.file.empty() &&
         (frame.symbol.empty() || StartsWithAny(frame.symbol, {"0x0", "<unknown>"}));
}

std::string Demangle(const char* symbol) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string text = status == 0 && demangled != nullptr ? demangled : symbol;
  std::free(demangled);
  return text;
}

// How many libraries the loader has mapped and unmapped; equal counts mean the same libraries.
struct LoadedLibraries {
  unsigned long long adds = 0;
  unsigned long long subs = 0;
  static LoadedLibraries Now() {
    LoadedLibraries now;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* data) {
          auto* out = static_cast<LoadedLibraries*>(data);
          out->adds = info->dlpi_adds;
          out->subs = info->dlpi_subs;
          return 1;
        },
        &now);
    return now;
  }
  bool operator!=(const LoadedLibraries& other) const {
    return adds != other.adds || subs != other.subs;
  }
};

// What an address means: several frames when calls were inlined there. A boundary is one as a
// whole, whatever was inlined into it.
struct Place {
  std::vector<Frame> frames;
  bool is_boundary = false;
  bool is_frontend = false;

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

  // Calls visit(place) for each address from the given one on, until it returns false. Returns
  // whether it reached the end.
  template <typename Visitor>
  bool Visit(const std::vector<uintptr_t>& addresses, size_t begin, const Visitor& visit) {
    std::lock_guard<std::mutex> lock(mutex_);
    LoadedLibraries now = LoadedLibraries::Now();
    if (now != loaded_) {
      loaded_ = now;
      places_.clear();
      RenewState();
    }
    for (size_t i = begin; i < addresses.size(); ++i) {
      if (!visit(Lookup(addresses[i]))) return false;
    }
    return true;
  }

 private:
  const Place& Lookup(uintptr_t address) {
    auto [it, is_new] = places_.try_emplace(address);
    Place& place = it->second;
    if (!is_new) return place;
    Resolve(address, &place.frames);
    for (const Frame& frame : place.frames) place.Classify(frame.symbol);
    // Line tables name a local function without its namespace; the symbol table does not.
    place.Classify(Symbol(address));
    return place;
  }

#if TVM_FFI_USE_LIBBACKTRACE
  // A state knows the libraries that were there when it was first used and cannot be freed, so it
  // is renewed a bounded number of times; later libraries then show symbols without lines.
  void RenewState() {
    constexpr size_t kMaxStates = 32;
    if (states_.size() >= kMaxStates) return;
    if (auto* state = backtrace_create_state(nullptr, /*threaded=*/1, IgnoreError, nullptr)) {
      states_.push_back(state);
    }
  }

  void Resolve(uintptr_t address, std::vector<Frame>* frames) {
    if (!states_.empty()) {
      backtrace_pcinfo(
          states_.back(), address,
          [](void* data, uintptr_t, const char* file, int line, const char* function) {
            if (file == nullptr && function == nullptr) return 0;
            static_cast<std::vector<Frame>*>(data)->push_back(
                {file != nullptr ? file : "", line, function != nullptr ? Demangle(function) : ""});
            return 0;
          },
          IgnoreError, frames);
    }
    if (frames->empty()) frames->emplace_back();
    Frame& outermost = frames->back();
    if (outermost.symbol.empty()) outermost.symbol = Symbol(address);
  }

  std::string Symbol(uintptr_t address) const {
    std::string name;
    if (!states_.empty()) {
      backtrace_syminfo(
          states_.back(), address,
          [](void* data, uintptr_t, const char* symbol, uintptr_t, uintptr_t) {
            if (symbol != nullptr) *static_cast<std::string*>(data) = Demangle(symbol);
          },
          IgnoreError, &name);
    }
    return name.empty() ? DynamicSymbol(address) : name;
  }

  static void IgnoreError(void*, const char*, int) {}

  std::vector<backtrace_state*> states_;
#else
  void RenewState() {}
  void Resolve(uintptr_t address, std::vector<Frame>* frames) {
    frames->push_back({"", 0, DynamicSymbol(address)});
  }
  static std::string Symbol(uintptr_t address) { return DynamicSymbol(address); }
#endif

  static std::string DynamicSymbol(uintptr_t address) {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || info.dli_sname == nullptr)
      return "";
    return Demangle(info.dli_sname);
  }

  std::mutex mutex_;
  LoadedLibraries loaded_;
  std::unordered_map<uintptr_t, Place> places_;
};

// Addresses inside the innermost `limit` calls on this thread's stack, innermost first. Frames
// inside the one that returns to `caller` are left out, unless it is null.
std::vector<uintptr_t> WalkStack(void* caller, size_t limit) {
  struct Walk {
    std::vector<uintptr_t> addresses;
    uintptr_t caller;
    size_t limit;
  } walk{{}, reinterpret_cast<uintptr_t>(caller), limit};
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* data) {
        auto* out = static_cast<Walk*>(data);
        int before_instruction = 0;
        uintptr_t ip = _Unwind_GetIPInfo(context, &before_instruction);
        if (ip == 0) return _URC_END_OF_STACK;
        if (ip == out->caller) out->addresses.clear();
        // A return address belongs to the instruction after the call.
        out->addresses.push_back(before_instruction ? ip : ip - 1);
        return out->addresses.size() < out->limit ? _URC_NO_REASON : _URC_END_OF_STACK;
      },
      &walk);
  return std::move(walk.addresses);
}

int LineLimit() {
  constexpr int kDefault = 512;
  const char* text = std::getenv("TVM_TRACEBACK_LIMIT");
  if (text == nullptr) return kDefault;
  const char* end = text + std::strlen(text);
  int limit = 0;
  const std::from_chars_result result = std::from_chars(text, end, limit);
  return result.ec == std::errc() && result.ptr == end && limit >= 0 ? limit : kDefault;
}

// Collects lines up to the limit.
class Text {
 public:
  bool Full() const { return lines_ >= limit_; }
  void Add(const Frame& frame) {
    if (Full()) return;
    out_.append("  File \"")
        .append(frame.file.empty() ? "<unknown>" : frame.file)
        .append("\", line ")
        .append(std::to_string(frame.line))
        .append(", in ")
        .append(frame.symbol.empty() ? "<unknown>" : frame.symbol)
        .append("\n");
    ++lines_;
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
  int lines_ = 0;
  int limit_ = LineLimit();
};

bool IsThrowHelper(const Frame& frame) {
  return StartsWithAny(frame.symbol, {"tvm::ffi::tether::"});
}

// `first` is the throw site as its source names it; the walked frame it corresponds to is left out.
std::string Collect(const Frame* first, void* caller, bool cross_boundary) {
  Text text;
  bool skip_site = first != nullptr && !IsExcluded(*first);
  if (skip_site) text.Add(*first);
  bool is_leaving_frontend = true;
  auto add = [&](const Place& place) {
    if (is_leaving_frontend && place.is_frontend) return true;
    is_leaving_frontend = false;
    if (text.Full()) return false;
    if (!cross_boundary && (place.is_boundary || place.is_frontend)) return false;
    for (const Frame& frame : place.frames) {
      if (skip_site && !IsThrowHelper(frame)) {
        skip_site = false;
      } else if (!IsExcluded(frame)) {
        text.Add(frame);
      }
    }
    return true;
  };
  // Most walks end at a boundary nearby; the depth of the stack beyond it must not cost anything.
  constexpr size_t kMaxFrames = 4096;
  size_t done = 0;
  for (size_t limit = 64; limit <= kMaxFrames; limit *= 8) {
    std::vector<uintptr_t> addresses = WalkStack(caller, limit);
    if (!Symbolizer::Global()->Visit(addresses, done, add) || addresses.size() < limit) break;
    done = addresses.size();
  }
  return text.Take();
}

#if TVM_FFI_BACKTRACE_ON_SEGFAULT
void OnSegfault(int signal) {
  // Not async-signal-safe; but the process ends anyway, and the text is worth the risk.
  struct sigaction fallback {};
  fallback.sa_handler = SIG_DFL;
  sigaction(signal, &fallback, nullptr);
  std::string text = "!!!!!!! Segfault encountered !!!!!!!\n" + Collect(nullptr, nullptr, true);
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

std::string& TextOfThread() {
  static thread_local std::string text;
  return text;
}
// Once, when the library is loaded: to register a destructor for a thread needs memory, and the C
// library ends the process where there is none. The first error may be that memory has run out.
[[maybe_unused]] const bool has_text = TextOfThread().empty();

// For the same reason; and no thread makes it while another asks for it.
[[maybe_unused]] const bool has_symbolizer = Symbolizer::Global() != nullptr;

}  // namespace
}  // namespace ffi
}  // namespace tvm

using namespace tvm::ffi;

const TVMFFIByteArray* TVMFFIBacktrace(const char* filename, int lineno, const char* func,
                                       int cross_ffi_boundary) {
  static thread_local TVMFFIByteArray bytes;
  std::string& text = TextOfThread();
  try {
    Frame site{filename != nullptr ? filename : "", lineno, func != nullptr ? func : ""};
    bool has_site = filename != nullptr && func != nullptr;
    text =
        Collect(has_site ? &site : nullptr, __builtin_return_address(0), cross_ffi_boundary != 0);
  } catch (const std::exception&) {
    text.clear();  // out of memory in the error path: an error without a backtrace
  }
  bytes = TVMFFIByteArray{text.data(), text.size()};
  return &bytes;
}
