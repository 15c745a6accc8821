// SPDX-License-Identifier: Apache-2.0
// The module made from a library, its functions, and the modules embedded in it.
//
// Who keeps the library loaded: its module does, every function obtained from the module keeps the
// module, and a library that has returned an object, raised an error of its own or registered
// something is never unloaded, because the deleter may be code of the library. Objects that
// leave it another way, say appended to a list argument, are not noticed: keep the module then.
#include "library.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/reflection/registry.h>

#include <utility>
#include <vector>

namespace tvm {
namespace ffi {
namespace tether {
namespace {

class LibraryModuleObj final : public ModuleObj {
 public:
  explicit LibraryModuleObj(std::unique_ptr<Library> library) : library_(std::move(library)) {}

  const char* kind() const final { return "library"; }
  int GetPropertyMask() const final { return Module::kBinarySerializable | Module::kRunnable; }
  Optional<Function> GetFunction(const String& name) final;
  bool ImplementsFunction(const String& name) final {
    return Find(symbol::tvm_ffi_symbol_prefix, name) != nullptr;
  }
  Optional<String> GetFunctionDoc(const String& name) final {
    return CallTextGetter(symbol::tvm_ffi_doc_prefix, name);
  }
  Optional<String> GetFunctionMetadata(const String& name) final {
    return CallTextGetter(symbol::tvm_ffi_metadata_prefix, name);
  }

  Library* library() const { return library_.get(); }

 private:
  TVMFFISafeCallType Find(const char* role, const String& name) {
    void* address = library_->FindSymbol(role, std::string_view(name.data(), name.size()));
    return reinterpret_cast<TVMFFISafeCallType>(address);
  }

  Optional<String> CallTextGetter(const char* role, const String& name) {
    TVMFFISafeCallType getter = Find(role, name);
    if (getter == nullptr) return std::nullopt;
    // Copied, because a heap string made by the library must not outlive it.
    String text = Function::InvokeExternC(nullptr, getter).cast<String>();
    return String(text.data(), text.size());
  }

  std::unique_ptr<Library> library_;
};

// A function of a library. It has no C++ entry, so an error passes as a code and is not thrown
// here.
class LibraryFunctionObj final : public FunctionObj {
 public:
  LibraryFunctionObj(ObjectPtr<LibraryModuleObj> module, TVMFFISafeCallType symbol)
      : module_(std::move(module)), symbol_(symbol) {
    safe_call = Call;
    cpp_call = nullptr;
  }

  // The module that `function` keeps, if it is one of these, else NULL.
  static TVMFFIObject* ModuleOf(TVMFFIObject* function) {
    if (TVMFFIFunctionGetCellPtr(function)->safe_call != Call) return nullptr;
    auto* self = details::ObjectUnsafe::RawObjectPtrFromUnowned<LibraryFunctionObj>(function);
    return details::ObjectUnsafe::GetHeader(self->module_.get());
  }

 private:
  static int Call(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
    auto* function = details::ObjectUnsafe::RawObjectPtrFromUnowned<LibraryFunctionObj>(
        static_cast<TVMFFIObject*>(self));
    int code = function->symbol_(nullptr, args, num_args, result);
    if (TVM_FFI_PREDICT_FALSE(code != 0)) {
      function->NoteRaised();
    } else if (result->type_index >= kTVMFFIStaticObjectBegin) {
      function->module_->library()->KeepLoaded();
    }
    return code;
  }

  // An error made by the library's own code may be kept longer than the library.
  void NoteRaised() const {
    TVMFFIObjectHandle error = nullptr;
    TVMFFIErrorMoveFromRaised(&error);
    if (error == nullptr) return;
    Library* library = module_->library();
    auto* deleter = reinterpret_cast<void*>(static_cast<TVMFFIObject*>(error)->deleter);
    auto* update = reinterpret_cast<void*>(TVMFFIErrorGetCellPtr(error)->update_backtrace);
    if (library->Contains(deleter) || library->Contains(update)) library->KeepLoaded();
    TVMFFIErrorSetRaised(error);
    TVMFFIObjectDecRef(error);
  }

  ObjectPtr<LibraryModuleObj> module_;
  TVMFFISafeCallType symbol_;
};

Optional<Function> LibraryModuleObj::GetFunction(const String& name) {
  TVMFFISafeCallType symbol = Find(symbol::tvm_ffi_symbol_prefix, name);
  if (symbol == nullptr) return std::nullopt;
  auto self =
      details::ObjectUnsafe::ObjectPtrFromUnowned<LibraryModuleObj>(static_cast<Object*>(this));
  return Function(ObjectPtr<FunctionObj>(make_object<LibraryFunctionObj>(std::move(self), symbol)));
}

// Frontends with a garbage collector see through a function to its module: the address of a
// TVMFFIObject* (*)(TVMFFIObject* function).
TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::GlobalDef().def("ffi.tether.ModuleOfFunction", []() {
    return reinterpret_cast<void*>(&LibraryFunctionObj::ModuleOf);
  });
}

// ---- Embedded modules ---------------------------------------------------------------------------
//
// u64 size, then `size` bytes: vector<u64> indptr, vector<u64> children, and for each module its
// kind and, unless the kind is `_lib`, its bytes. All little endian; vectors and strings begin with
// their length. Nothing of it is trusted: a library may be damaged or built by a faulty exporter.

constexpr std::string_view kSelfKind = "_lib";

class EmbeddedReader {
 public:
  EmbeddedReader(const Library& library, const char* data) : library_(library), data_(data) {
    size_ = sizeof(uint64_t);
    size_t readable = library.ReadableBytes(data);
    if (readable < size_) Fail("no room for its size");
    uint64_t size = ReadU64("size");
    if (size > readable - sizeof(uint64_t)) {
      Fail("its size " + std::to_string(size) + " exceeds the symbol");
    }
    size_ += static_cast<size_t>(size);
  }

  uint64_t ReadU64(const char* what) {
    if (remaining() < sizeof(uint64_t)) FailTruncated(what);
    uint64_t value = 0;
    for (int i = 7; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(data_[at_ + i]);
    at_ += sizeof(uint64_t);
    return value;
  }

  std::vector<uint64_t> ReadVector(const char* what) {
    uint64_t count = ReadU64(what);
    if (count > remaining() / sizeof(uint64_t)) FailTruncated(what);
    std::vector<uint64_t> items(static_cast<size_t>(count));
    for (uint64_t& item : items) item = ReadU64(what);
    return items;
  }

  std::string_view ReadBytes(const char* what) {
    uint64_t length = ReadU64(what);
    if (length > remaining()) FailTruncated(what);
    std::string_view bytes(data_ + at_, static_cast<size_t>(length));
    at_ += bytes.size();
    return bytes;
  }

  size_t remaining() const { return size_ - at_; }

  [[noreturn]] void Fail(const std::string& why) const {
    TVM_FFI_THROW(InternalError) << "Malformed embedded modules in " << library_.Name() << ": "
                                 << why;
  }

 private:
  [[noreturn]] void FailTruncated(const char* what) const {
    Fail(std::string("ends inside ") + what);
  }

  const Library& library_;
  const char* data_;
  size_t size_ = 0;
  size_t at_ = 0;
};

struct EmbeddedModule {
  std::string_view kind;
  std::string_view bytes;
};

// Module i imports children[indptr[i]] up to children[indptr[i + 1]].
struct EmbeddedModules {
  std::vector<uint64_t> indptr;
  std::vector<uint64_t> children;
  std::vector<EmbeddedModule> modules;
};

void CheckImports(const EmbeddedReader& reader, const EmbeddedModules& parsed) {
  const std::vector<uint64_t>& indptr = parsed.indptr;
  if (indptr.front() != 0) reader.Fail("the import ranges do not begin at 0");
  for (size_t i = 1; i < indptr.size(); ++i) {
    if (indptr[i] < indptr[i - 1]) reader.Fail("the import ranges decrease");
  }
  if (indptr.back() != parsed.children.size()) {
    reader.Fail("the import ranges end at " + std::to_string(indptr.back()) + " of " +
                std::to_string(parsed.children.size()) + " imports");
  }
  for (uint64_t child : parsed.children) {
    if (child >= indptr.size() - 1) {
      reader.Fail("import of module " + std::to_string(child) + " of " +
                  std::to_string(indptr.size() - 1));
    }
  }
}

// Removes modules that no remaining one imports, until none or only a cycle is left.
void CheckNoCycle(const EmbeddedReader& reader, const EmbeddedModules& parsed) {
  size_t count = parsed.modules.size();
  std::vector<size_t> importers(count, 0);
  for (uint64_t child : parsed.children) ++importers[child];
  std::vector<size_t> free_modules;
  for (size_t i = 0; i < count; ++i) {
    if (importers[i] == 0) free_modules.push_back(i);
  }
  size_t removed = 0;
  for (; removed < free_modules.size(); ++removed) {
    size_t module = free_modules[removed];
    for (uint64_t i = parsed.indptr[module]; i < parsed.indptr[module + 1]; ++i) {
      if (--importers[parsed.children[i]] == 0) free_modules.push_back(parsed.children[i]);
    }
  }
  if (removed != count) reader.Fail("modules import each other");
}

EmbeddedModules ParseEmbedded(const Library& library, const char* data) {
  EmbeddedReader reader(library, data);
  EmbeddedModules parsed;
  parsed.indptr = reader.ReadVector("the import ranges");
  parsed.children = reader.ReadVector("the imports");
  if (parsed.indptr.size() < 2) reader.Fail("it has no module");
  CheckImports(reader, parsed);
  size_t num_self = 0;
  for (size_t i = 0; i + 1 < parsed.indptr.size(); ++i) {
    EmbeddedModule module;
    module.kind = reader.ReadBytes("a module kind");
    if (module.kind == kSelfKind) {
      ++num_self;
    } else {
      module.bytes = reader.ReadBytes("a module");
    }
    parsed.modules.push_back(module);
  }
  if (num_self > 1) reader.Fail("it has more than one `_lib`");
  if (reader.remaining() != 0) {
    reader.Fail(std::to_string(reader.remaining()) + " bytes follow the last module");
  }
  CheckNoCycle(reader, parsed);
  return parsed;
}

Module LoadFromBytes(const EmbeddedModule& module) {
  std::string kind(module.kind);
  std::optional<Function> load = Function::GetGlobal("ffi.Module.load_from_bytes." + kind);
  if (!load.has_value()) {
    TVM_FFI_THROW(RuntimeError) << "Library binary was created using {" << kind
                                << "} but a loader of that name is not registered. Make sure to "
                                   "have runtime that registers "
                                   "ffi.Module.load_from_bytes."
                                << kind;
  }
  return (*load)(Bytes(module.bytes.data(), module.bytes.size())).cast<Module>();
}

Module LoadEmbedded(const Library& library, const char* data, const Module& self) {
  EmbeddedModules parsed = ParseEmbedded(library, data);
  std::vector<Module> modules;
  for (const EmbeddedModule& module : parsed.modules) {
    modules.push_back(module.kind == kSelfKind ? self : LoadFromBytes(module));
  }
  for (size_t i = 0; i < modules.size(); ++i) {
    Array<Any>* imports = ModuleObj::InternalUnsafe::Imports(modules[i].get());
    for (uint64_t child = parsed.indptr[i]; child < parsed.indptr[i + 1]; ++child) {
      imports->push_back(modules[parsed.children[child]]);
    }
  }
  return modules[0];
}

}  // namespace

Module MakeLibraryModule(std::unique_ptr<Library> owned_library) {
  Library* library = owned_library.get();
  auto object = make_object<LibraryModuleObj>(std::move(owned_library));
  Module self(object);
  auto* embedded = static_cast<const char*>(library->FindSymbol("", symbol::tvm_ffi_library_bin));
  auto* context = static_cast<void**>(library->FindSymbol("", symbol::tvm_ffi_library_ctx));
  Module::VisitContextSymbols([library](const String& name, void* address) {
    void* slot = library->FindSymbol("", std::string_view(name.data(), name.size()));
    if (slot != nullptr) *static_cast<void**>(slot) = address;
  });
  Module root = embedded != nullptr ? LoadEmbedded(*library, embedded, self) : self;
  // Generated code hands this pointer back as it is: the C++ object, not its header.
  if (context != nullptr) *context = static_cast<ModuleObj*>(object.get());
  return root;
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
