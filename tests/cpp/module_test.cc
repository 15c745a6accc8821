// SPDX-License-Identifier: Apache-2.0
// extra/module.h: modules, shared libraries, embedded modules and the system library.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/reflection/registry.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#ifndef TETHER_MODULE_FIXTURE_DIR
#error "TETHER_MODULE_FIXTURE_DIR names the folder of the fixture libraries"
#endif

namespace {

using namespace tvm::ffi;
namespace refl = tvm::ffi::reflection;

template <typename F>
Error Catch(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return Error("NoError", "nothing was thrown", "");
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Function Global(const char* name) { return Function::GetGlobalRequired(name); }

// ---- A module made here
// ---------------------------------------------------------------------------

class TestModuleObj : public ModuleObj {
 public:
  explicit TestModuleObj(std::string name) : name_(std::move(name)) {}

  const char* kind() const final { return "test_kind"; }
  using ModuleObj::GetFunction;
  Optional<Function> GetFunction(const String& name) final {
    ++queries;
    if (name != name_) return std::nullopt;
    return Function::FromTyped([](int64_t x) { return x + 1000; });
  }
  Optional<String> GetFunctionDoc(const String& name) final {
    if (name != name_) return std::nullopt;
    return String("doc of " + name_);
  }
  Optional<String> GetFunctionMetadata(const String& name) final {
    if (name != name_) return std::nullopt;
    return String("metadata of " + name_);
  }

  std::string name_;
  int queries = 0;
};

class PlainModuleObj : public ModuleObj {
 public:
  const char* kind() const final { return "plain"; }
  Optional<Function> GetFunction(const String&) final { return std::nullopt; }
};

ObjectPtr<TestModuleObj> MakeTest(std::string name) {
  return make_object<TestModuleObj>(std::move(name));
}

TEST(Module, LayoutIsFixed) {
  EXPECT_EQ(sizeof(ModuleObj), 48u);
  auto object = MakeTest("f");
  auto* body = reinterpret_cast<char*>(static_cast<ModuleObj*>(object.get()));
  auto* header = reinterpret_cast<char*>(static_cast<Object*>(object.get()));
  EXPECT_EQ(header - body, 8);
  EXPECT_EQ(object->type_index(), kTVMFFIModule);
  const TVMFFIFieldInfo* imports = refl::GetFieldInfo("ffi.Module", "imports_");
  EXPECT_EQ(imports->offset, 24);
  EXPECT_EQ(imports->size, 8);
  EXPECT_FALSE(imports->flags & kTVMFFIFieldFlagBitMaskWritable);
  const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(kTVMFFIModule);
  EXPECT_EQ(type->metadata->total_size, 48);
  EXPECT_EQ(type->metadata->creator, nullptr);
  // Slot 0 is kind, slot 1 the property mask.
  void** vtable = *reinterpret_cast<void***>(body);
  EXPECT_STREQ(reinterpret_cast<const char* (*)(void*)>(vtable[0])(body), "test_kind");
  EXPECT_EQ(reinterpret_cast<int (*)(void*)>(vtable[1])(body), 0);
}

TEST(Module, DefaultsOfTheBaseClass) {
  Module module(make_object<PlainModuleObj>());
  EXPECT_EQ(module->GetPropertyMask(), 0);
  EXPECT_FALSE(module->ImplementsFunction("f"));
  EXPECT_FALSE(module->GetFunctionDoc("f").has_value());
  EXPECT_FALSE(module->GetFunctionMetadata("f").has_value());
  EXPECT_EQ(module->GetWriteFormats().size(), 0u);
  EXPECT_EQ(module->InspectSource(""), "");
  Error write = Catch([&] { module->WriteToFile("f", "so"); });
  EXPECT_EQ(write.kind(), "RuntimeError");
  EXPECT_EQ(write.message(), "Module[plain] does not support WriteToFile");
  Error save = Catch([&] { module->SaveToBytes(); });
  EXPECT_EQ(save.message(), "Module[plain] does not support SaveToBytes");
  EXPECT_EQ(Catch([] { Module(ObjectPtr<ModuleObj>(nullptr)); }).kind(), "InternalError");
  EXPECT_EQ(ReprPrint(module), "ffi.Module(imports_=())");
}

TEST(Module, ImportsAreAskedInOrderAndRecursively) {
  Module root(MakeTest("in_root")), left(MakeTest("shared")), right(MakeTest("shared")),
      deep(MakeTest("in_deep"));
  root->ImportModule(left);
  root->ImportModule(right);
  right->ImportModule(deep);
  EXPECT_EQ(root->imports().size(), 2u);
  EXPECT_TRUE(root->GetFunction("in_root").has_value());
  EXPECT_FALSE(root->GetFunction("in_deep", false).has_value());
  EXPECT_EQ(root->GetFunction("in_deep", true).value()(1).cast<int>(), 1001);
  EXPECT_FALSE(root->ImplementsFunction("in_deep", false));
  EXPECT_TRUE(root->ImplementsFunction("in_deep", true));
  EXPECT_EQ(root->GetFunctionDoc("in_deep", true).value(), "doc of in_deep");
  EXPECT_FALSE(root->GetFunctionDoc("in_deep", false).has_value());
  EXPECT_EQ(root->GetFunctionMetadata("in_deep", true).value(), "metadata of in_deep");
  EXPECT_FALSE(root->GetFunction("nowhere", true).has_value());
  // The first import that has it answers; the second is not asked.
  auto* right_obj = static_cast<TestModuleObj*>(right.get());
  int before = right_obj->queries;
  EXPECT_TRUE(root->GetFunction("shared", true).has_value());
  EXPECT_EQ(right_obj->queries, before);
  root->ClearImports();
  EXPECT_EQ(root->imports().size(), 0u);
  EXPECT_FALSE(root->GetFunction("in_deep", true).has_value());
}

TEST(Module, CyclesAreRefused) {
  Module a(MakeTest("a")), b(MakeTest("b")), c(MakeTest("c"));
  a->ImportModule(b);
  b->ImportModule(c);
  for (const Module& closing : {a, b, c}) {
    Error error = Catch([&] { c->ImportModule(closing); });
    EXPECT_EQ(error.kind(), "RuntimeError");
    EXPECT_EQ(error.message(), "Cyclic dependency detected during import");
  }
  EXPECT_EQ(c->imports().size(), 0u);
  // A diamond is no cycle.
  a->ImportModule(c);
  EXPECT_EQ(a->imports().size(), 2u);
}

TEST(Module, FrontendFunctionsForwardToTheModule) {
  Module root(MakeTest("f")), other(MakeTest("g"));
  EXPECT_EQ(Global("ffi.ModuleGetKind")(root).cast<String>(), "test_kind");
  EXPECT_EQ(Global("ffi.ModuleGetPropertyMask")(root).cast<int>(), 0);
  EXPECT_EQ(Global("ffi.ModuleGetWriteFormats")(root).cast<Array<String>>().size(), 0u);
  EXPECT_EQ(Global("ffi.ModuleInspectSource")(root, "").cast<String>(), "");
  Global("ffi.ModuleImportModule")(root, other);
  EXPECT_TRUE(Global("ffi.ModuleImplementsFunction")(root, "g", true).cast<bool>());
  EXPECT_FALSE(Global("ffi.ModuleImplementsFunction")(root, "g", false).cast<bool>());
  EXPECT_EQ(Global("ffi.ModuleGetFunction")(root, "g", false), nullptr);
  EXPECT_EQ(Global("ffi.ModuleGetFunction")(root, "g", true).cast<Function>()(1).cast<int>(), 1001);
  EXPECT_EQ(Global("ffi.ModuleGetFunctionDoc")(root, "g", true).cast<String>(), "doc of g");
  EXPECT_EQ(Global("ffi.ModuleGetFunctionMetadata")(root, "x", true), nullptr);
  Global("ffi.ModuleClearImports")(root);
  EXPECT_EQ(root->imports().size(), 0u);
  EXPECT_EQ(Catch([&] { Global("ffi.ModuleWriteToFile")(root, "f", "so"); }).message(),
            "Module[test_kind] does not support WriteToFile");
  EXPECT_EQ(Catch([] { Global("ffi.ModuleGetKind")(nullptr); }).kind(), "TypeError");
  EXPECT_EQ(Catch([] { Global("ffi.ModuleGetKind")(1); }).kind(), "TypeError");
}

TEST(Module, SignaturesOfTheFrontendFunctions) {
  Function metadata = Global("ffi.GetGlobalFuncMetadata");
  EXPECT_EQ(metadata("ffi.ModuleGetFunction").cast<String>(),
            R"({"type_schema":"{\"type\":\"ffi.Function\",\"named_args\":{\"return\":[)"
            R"({\"type\":\"Optional\",\"args\":[{\"type\":\"ffi.Function\"}]}],)"
            R"(\"params\":[{\"type\":\"ffi.Module\"},)"
            R"({\"type\":\"ffi.String\"},{\"type\":\"bool\"}]}}"})");
  EXPECT_EQ(metadata("ffi.SystemLib").cast<String>(),
            R"({"type_schema":"{\"type\":\"ffi.Function\"}"})");
  EXPECT_EQ(metadata("ffi.Module.load_from_file.so").cast<String>(),
            R"({"type_schema":"{\"type\":\"ffi.Function\",)"
            R"(\"named_args\":{\"return\":[{\"type\":\"ffi.Module\"}],)"
            R"(\"params\":[{\"type\":\"ffi.String\"},{\"type\":\"ffi.String\"}]}}"})");
}

TEST(Module, PinnedModulesStayAliveUntilRemoved) {
  ObjectPtr<ModuleObj> object = MakeTest("pinned");
  Global("ffi.ModuleGlobalsAdd")(Module(object));
  EXPECT_EQ(object.use_count(), 2);
  Global("ffi.ModuleGlobalsAdd")(Module(object));
  EXPECT_EQ(object.use_count(), 2);
  Global("ffi.ModuleGlobalsRemove")(Module(object));
  EXPECT_EQ(object.use_count(), 1);
  Global("ffi.ModuleGlobalsRemove")(Module(object));
  EXPECT_EQ(object.use_count(), 1);
}

// ---- Lookup from imports
// --------------------------------------------------------------------------

TEST(ModuleLookup, ImportsThenGlobalsAndTheAnswerIsKept) {
  auto object = MakeTest("own");
  Module module(object);
  auto* import = MakeTest("imported").get();
  {
    auto import_ptr = MakeTest("imported");
    import = import_ptr.get();
    module->ImportModule(Module(import_ptr));
  }
  void* context = static_cast<ModuleObj*>(object.get());
  TVMFFIObjectHandle first = nullptr, second = nullptr;
  ASSERT_EQ(TVMFFIEnvModLookupFromImports(context, "imported", &first), 0);
  int queries = import->queries;
  ASSERT_EQ(TVMFFIEnvModLookupFromImports(context, "imported", &second), 0);
  EXPECT_EQ(first, second);
  EXPECT_EQ(import->queries, queries);
  // Borrowed: kept by the module alone, also when the import goes.
  EXPECT_EQ(static_cast<Object*>(first)->use_count(), 1u);
  module->ClearImports();
  TVMFFIAny args[1] = {AnyView(1).CopyToTVMFFIAny()};
  TVMFFIAny result = AnyView().CopyToTVMFFIAny();
  ASSERT_EQ(TVMFFIFunctionCall(first, args, 1, &result), 0);
  EXPECT_EQ(result.v_int64, 1001);
  // The global table comes last, the module itself is not asked.
  ASSERT_EQ(TVMFFIEnvModLookupFromImports(context, "ffi.ModuleGetKind", &first), 0);
  EXPECT_EQ(TVMFFIEnvModLookupFromImports(context, "own", &first), -1);
  Error error = details::MoveFromSafeCallRaised();
  EXPECT_EQ(error.kind(), "RuntimeError");
  EXPECT_EQ(error.message(),
            "Cannot find function own in the imported modules or global registry.");
  EXPECT_EQ(TVMFFIEnvModLookupFromImports(nullptr, "own", &first), -1);
  EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "ValueError");
  EXPECT_EQ(TVMFFIEnvModLookupFromImports(context, nullptr, &first), -1);
  EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "ValueError");
  EXPECT_EQ(TVMFFIEnvModLookupFromImports(context, "own", nullptr), -1);
  EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "ValueError");
}

TEST(ModuleLookup, ThreadsThatRaceGetTheSameFunction) {
  Module module(MakeTest("own"));
  for (int i = 0; i < 20; ++i) module->ImportModule(Module(MakeTest("f" + std::to_string(i))));
  void* context = module.get();
  std::vector<std::vector<TVMFFIObjectHandle>> seen(4, std::vector<TVMFFIObjectHandle>(20));
  std::vector<std::thread> threads;
  for (auto& handles : seen) {
    threads.emplace_back([&handles, context] {
      for (int i = 0; i < 20; ++i) {
        TVMFFIEnvModLookupFromImports(context, ("f" + std::to_string(i)).c_str(), &handles[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& handles : seen) EXPECT_EQ(handles, seen[0]);
  EXPECT_NE(seen[0][0], nullptr);
}

// ---- Shared libraries
// -----------------------------------------------------------------------------

std::string Fixture(const char* name) {
  return std::string(TETHER_MODULE_FIXTURE_DIR) + "/" + name + ".so";
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

// A file of its own, because the loader would recognise a path it has open already.
class TempFile {
 public:
  explicit TempFile(const std::string& content, const char* suffix = ".so") {
    static int count = 0;
    const char* dir = std::getenv("TMPDIR");
    path_ = std::string(dir != nullptr ? dir : "/tmp") + "/tether_module_" +
            std::to_string(getpid()) + "_" + std::to_string(count++) + suffix;
    std::ofstream(path_, std::ios::binary) << content;
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool IsLoaded(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

TEST(LibraryModule, FunctionsMetadataAndDocs) {
  Module module = Module::LoadFromFile(Fixture("plain"));
  EXPECT_STREQ(module->kind(), "library");
  EXPECT_EQ(module->GetPropertyMask(), Module::kBinarySerializable | Module::kRunnable);
  EXPECT_EQ(module->GetFunction("add_one").value()(41).cast<int>(), 42);
  EXPECT_TRUE(module->ImplementsFunction("add_one"));
  EXPECT_FALSE(module->ImplementsFunction("add_two"));
  EXPECT_FALSE(module->GetFunction("add_two").has_value());
  EXPECT_FALSE(module->GetFunction("").has_value());
  EXPECT_FALSE(module->GetFunction(String("add_one\0x", 9)).has_value());
  EXPECT_EQ(module->GetFunctionDoc("add_one").value(), "Adds one to an integer.");
  EXPECT_FALSE(module->GetFunctionDoc("fail").has_value());
  EXPECT_EQ(module->GetFunctionMetadata("add_one").value(),
            R"({"type_schema":"{\"type\":\"ffi.Function\",)"
            R"(\"named_args\":{\"return\":[{\"type\":\"int\"}],)"
            R"(\"params\":[{\"type\":\"int\"}]}}"})");
  EXPECT_FALSE(module->GetFunctionMetadata("nothing").has_value());
  // Each request makes a function object of its own.
  EXPECT_FALSE(
      module->GetFunction("add_one").value().same_as(module->GetFunction("add_one").value()));
}

TEST(LibraryModule, ErrorsOfTheFunctionArrive) {
  Module module = Module::LoadFromFile(Fixture("plain"));
  Error error = Catch([&] { module->GetFunction("fail").value()("KeyError", "which key"); });
  EXPECT_EQ(error.kind(), "KeyError");
  EXPECT_EQ(error.message(), "which key");
  EXPECT_EQ(Catch([&] { module->GetFunction("add_one").value()("x"); }).message(),
            "Mismatched type on argument #0 when calling: `add_one(0: int) -> int`. Expected `int` "
            "but got `const char*`");
}

TEST(LibraryModule, ACLibraryIsCalledWithANullHandle) {
  Module module = Module::LoadFromFile(Fixture("pure_c"));
  EXPECT_EQ(module->GetFunction("double_it").value()(21).cast<int>(), 42);
  EXPECT_EQ(module->GetFunction("leaves_result_alone").value()(1, 2), nullptr);
  EXPECT_TRUE(module->GetFunction("is_null_handle").value()().cast<bool>());
  Error error = Catch([&] { module->GetFunction("double_it").value()(1.5); });
  EXPECT_EQ(error.kind(), "TypeError");
  EXPECT_EQ(error.message(), "double_it expects one int");
  // Its metadata getter returns a bool.
  EXPECT_EQ(Catch([&] { module->GetFunctionMetadata("double_it"); }).kind(), "TypeError");
}

TEST(LibraryModule, TheCLoaderPathAcceptsRawAndSmallStrings) {
  TVMFFIObjectHandle load = nullptr, get = nullptr;
  TVMFFIByteArray load_name = refl::AsByteArray("ffi.Module.load_from_file.so");
  TVMFFIByteArray get_name = refl::AsByteArray("ffi.ModuleGetFunction");
  ASSERT_EQ(TVMFFIFunctionGetGlobal(&load_name, &load), 0);
  ASSERT_EQ(TVMFFIFunctionGetGlobal(&get_name, &get), 0);
  std::string path = Fixture("pure_c");
  TVMFFIAny args[3] = {}, module = {}, function = {}, result = {};
  args[0].type_index = kTVMFFIRawStr;
  args[0].v_c_str = path.c_str();
  args[1].type_index = kTVMFFISmallStr;
  ASSERT_EQ(TVMFFIFunctionCall(load, args, 2, &module), 0);
  args[0] = module;
  args[1].type_index = kTVMFFIRawStr;
  args[1].v_c_str = "double_it";
  args[2].type_index = kTVMFFIBool;
  ASSERT_EQ(TVMFFIFunctionCall(get, args, 3, &function), 0);
  args[0] = TVMFFIAny{};
  args[0].type_index = kTVMFFIInt;
  args[0].v_int64 = 4;
  ASSERT_EQ(TVMFFIFunctionCall(function.v_obj, args, 1, &result), 0);
  EXPECT_EQ(result.v_int64, 8);
  for (TVMFFIObjectHandle handle : {load, get, static_cast<TVMFFIObjectHandle>(module.v_obj),
                                    static_cast<TVMFFIObjectHandle>(function.v_obj)}) {
    TVMFFIObjectDecRef(handle);
  }
}

TEST(LibraryModule, AFunctionKeepsItsLibraryLoaded) {
  TempFile file(ReadFile(Fixture("pure_c")));
  Optional<Function> function;
  {
    Module module = Module::LoadFromFile(file.path());
    function = module->GetFunction("double_it");
    EXPECT_EQ(module.use_count(), 2);
  }
  EXPECT_TRUE(IsLoaded(file.path()));
  EXPECT_EQ(function.value()(5).cast<int>(), 10);
  function = std::nullopt;
  EXPECT_FALSE(IsLoaded(file.path()));
}

TEST(LibraryModule, ALibraryThatNothingDependsOnIsUnloaded) {
  for (const char* name : {"pure_c", "plain"}) {
    TempFile file(ReadFile(Fixture(name)));
    {
      Module module = Module::LoadFromFile(file.path());
      EXPECT_TRUE(IsLoaded(file.path()));
    }
    EXPECT_FALSE(IsLoaded(file.path())) << name;
  }
}

TEST(LibraryModule, AnObjectMadeByTheLibraryOutlivesItsModule) {
  TempFile file(ReadFile(Fixture("plain")));
  Any made;
  {
    Module module = Module::LoadFromFile(file.path());
    made = module->GetFunction("make_array").value()(3);
  }
  EXPECT_TRUE(IsLoaded(file.path()));
  EXPECT_EQ(made.cast<Array<int64_t>>().size(), 3u);
  made.reset();  // its deleter is code of the library
}

TEST(LibraryModule, AnErrorRaisedInTheLibraryOutlivesItsModule) {
  TempFile file(ReadFile(Fixture("plain")));
  Any made_by_runtime, made_by_library;
  {
    Module module = Module::LoadFromFile(file.path());
    made_by_runtime =
        Catch([&] { module->GetFunction("fail").value()("KeyError", "long message"); });
  }
  EXPECT_EQ(made_by_runtime.cast<Error>().message(), "long message");
  EXPECT_FALSE(IsLoaded(file.path()));
  {
    Module module = Module::LoadFromFile(file.path());
    made_by_library = Catch([&] { module->GetFunction("fail_own").value()(); });
  }
  EXPECT_TRUE(IsLoaded(file.path()));
  EXPECT_EQ(made_by_library.cast<Error>().message(), "made in the library");
  made_by_library.reset();  // its deleter is code of the library
}

TEST(LibraryModule, ALibraryThatRegisteredFunctionsStaysLoaded) {
  TempFile file(ReadFile(Fixture("registers")));
  { Module module = Module::LoadFromFile(file.path()); }
  EXPECT_TRUE(IsLoaded(file.path()));
  EXPECT_EQ(Global("test_module.from_library")(4).cast<int>(), 12);
  Function::RemoveGlobal("test_module.from_library");
}

TEST(LibraryModule, ContextIsTheModuleObjectAndImportsAreReachableFromInside) {
  Module module = Module::LoadFromFile(Fixture("plain"));
  void* context = module->GetFunction("library_context").value()().cast<void*>();
  EXPECT_EQ(context, static_cast<void*>(module.get()));
  Function call = module->GetFunction("call_imported").value();
  Error error = Catch([&] { call("test_module.helper", 1); });
  EXPECT_EQ(error.message(),
            "Cannot find function test_module.helper in the imported modules or global registry.");
  module->ImportModule(Module(MakeTest("test_module.helper")));
  EXPECT_EQ(call("test_module.helper", 1).cast<int>(), 1001);
  Function handle = module->GetFunction("imported_handle").value();
  EXPECT_EQ(handle("test_module.helper").cast<void*>(), handle("test_module.helper").cast<void*>());
}

TEST(LibraryModule, ContextSymbolsAreWrittenAtLoadAndTheLastOneWins) {
  int first = 0, second = 0;
  ASSERT_EQ(TVMFFIEnvModRegisterContextSymbol("test_module_context_symbol", &first), 0);
  ASSERT_EQ(TVMFFIEnvModRegisterContextSymbol("test_module_context_symbol", &second), 0);
  ASSERT_EQ(TVMFFIEnvModRegisterContextSymbol("test_module_absent_symbol", &second), 0);
  TempFile file(ReadFile(Fixture("plain")));
  Module module = Module::LoadFromFile(file.path());
  EXPECT_EQ(module->GetFunction("context_symbol").value()().cast<void*>(), &second);
  std::vector<void*> seen;
  Module::VisitContextSymbols([&](String name, void* address) {
    if (name == "test_module_context_symbol") seen.push_back(address);
  });
  EXPECT_EQ(seen, (std::vector<void*>{&first, &second}));
  EXPECT_EQ(TVMFFIEnvModRegisterContextSymbol(nullptr, &first), -1);
  EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "ValueError");
  // Leave an address behind that stays valid.
  static void* final_value = nullptr;
  TVMFFIEnvModRegisterContextSymbol("test_module_context_symbol", &final_value);
}

TEST(LoadFromFile, ThePathSelectsTheLoader) {
  Error no_format = Catch([] { Module::LoadFromFile("no_extension"); });
  EXPECT_EQ(no_format.kind(), "RuntimeError");
  EXPECT_EQ(no_format.message(), "Failed to get file format from no_extension");
  EXPECT_EQ(Catch([] { Module::LoadFromFile(""); }).message(), "Failed to get file format from ");
  Error unknown = Catch([] { Global("ffi.ModuleLoadFromFile")("lib.tether_test"); });
  EXPECT_EQ(unknown.kind(), "RuntimeError");
  EXPECT_EQ(
      unknown.message().find("Loader for `.tether_test` files is not registered, resolved to "
                             "(ffi.Module.load_from_file.tether_test) in the global registry."),
      0u);
  refl::GlobalDef().def("ffi.Module.load_from_file.test_loader",
                        [](const String& path, const String& format) {
                          return Module(MakeTest(std::string(path) + "|" + std::string(format)));
                        });
  Module module = Module::LoadFromFile("dir.d/lib.test_loader");
  EXPECT_TRUE(module->ImplementsFunction("dir.d/lib.test_loader|test_loader"));
  refl::GlobalDef().def("ffi.Module.load_from_file.test_bad_loader",
                        [](const String&, const String&) { return 1; });
  EXPECT_EQ(Catch([] { Module::LoadFromFile("x.test_bad_loader"); }).kind(), "TypeError");
  for (const char* alias : {".dll", ".dylib", ".dso"}) {
    TempFile file(ReadFile(Fixture("pure_c")), alias);
    EXPECT_STREQ(Module::LoadFromFile(file.path())->kind(), "library") << alias;
  }
}

TEST(LoadFromFile, FilesThatAreNotLibrariesAreErrorsThatNameThem) {
  const std::string good = ReadFile(Fixture("pure_c"));
  ASSERT_GT(good.size(), 64u);
  auto with_byte = [&](size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    return bytes;
  };
  auto with_word = [&](size_t at, const std::string& value) {
    std::string bytes = good;
    return bytes.replace(at, value.size(), value);
  };
  std::vector<std::string> images = {
      "",
      "x",
      "not a library, just text that goes on for more than sixty-four bytes, as a header would",
      good.substr(0, 4),
      good.substr(0, 16),
      good.substr(0, 52),
      good.substr(0, 63),
      with_byte(0, 'X'),                                          // magic
      with_byte(4, 1),                                            // 32-bit
      with_byte(4, 9),                                            // no class
      with_byte(5, 2),                                            // big endian
      with_byte(6, 9),                                            // version
      with_byte(16, 1),                                           // relocatable object
      with_byte(16, 9),                                           // no type
      with_word(18, std::string("\x7f\x7f", 2)),                  // machine
      with_word(54, std::string("\x01\x00", 2)),                  // size of a program header
      with_word(56, std::string("\x00\x00", 2)),                  // no program header
      with_word(32, std::string("\xff\xff\xff\x7f\0\0\0\0", 8)),  // program headers past the end
  };
  for (size_t i = 0; i < images.size(); ++i) {
    TempFile file(images[i]);
    Error error = Catch([&] { Module::LoadFromFile(file.path()); });
    EXPECT_EQ(error.kind(), "InternalError") << i;
    EXPECT_TRUE(
        Contains(error.message(), "Failed to load dynamic shared library " + file.path() + " "))
        << i << ": " << error.message();
  }
  Error missing = Catch([] { Module::LoadFromFile("/nonexistent/dir/lib.so"); });
  EXPECT_EQ(missing.kind(), "InternalError");
  EXPECT_TRUE(Contains(missing.message(),
                       "Failed to load dynamic shared library /nonexistent/dir/lib.so "));
  EXPECT_TRUE(Contains(missing.message(), "No such file"));
  std::string dir = std::string("/tmp/tether_module_dir_") + std::to_string(getpid()) + ".so";
  ASSERT_EQ(mkdir(dir.c_str(), 0700), 0);
  EXPECT_EQ(Catch([&] { Module::LoadFromFile(dir); }).kind(), "InternalError");
  rmdir(dir.c_str());
  EXPECT_EQ(
      Catch([] { Global("ffi.Module.load_from_file.so")(String("lib.so\0.so", 10), "so"); }).kind(),
      "ValueError");
}

// ---- Embedded modules
// ------------------------------------------------------------------------------

std::string U64(uint64_t value) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string Vec(const std::vector<uint64_t>& items) {
  std::string out = U64(items.size());
  for (uint64_t item : items) out += U64(item);
  return out;
}

std::string Str(const std::string& text) { return U64(text.size()) + text; }

std::string Blob(const std::string& payload) { return U64(payload.size()) + payload; }

const uint64_t kHuge = ~uint64_t{0};

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::GlobalDef()
      .def("ffi.Module.load_from_bytes.test_module",
           [](const Bytes& bytes) {
             return Module(MakeTest(std::string(bytes.data(), bytes.size())));
           })
      .def("ffi.Module.load_from_bytes.test_not_a_module", [](const Bytes&) { return 5; })
      .def("ffi.Module.load_from_bytes.test_throws", [](const Bytes&) -> Module {
        TVM_FFI_THROW(ValueError) << "the loader refused";
        TVM_FFI_UNREACHABLE();
      });
}

// `_lib` is the root and imports a, which imports b, and b directly.
std::string GoodPayload() {
  return Vec({0, 2, 3, 3}) + Vec({1, 2, 2}) + Str("_lib") + Str("test_module") + Str("a") +
         Str("test_module") + Str("b");
}

// ---- Static initialisers that fail

// A copy of the library that does something else when it is loaded.
std::string Registers(const std::string& what) {
  std::string image = ReadFile(Fixture("registers"));
  std::string text = what + std::string(32 - what.size(), '\0');
  size_t at = image.find("WHAT TO DO WHEN LOADED");
  EXPECT_NE(at, std::string::npos);
  return image.replace(at, text.size(), text);
}

bool IsGlobal(const std::string& name) { return Function::GetGlobal(name).has_value(); }

TEST(LibraryLoad, ATypeOfAnotherLibraryIsRefusedAndTheFirstKeepsWorking) {
  TempFile first(Registers("class one"));
  TempFile second(Registers("class two"));
  Module module = Module::LoadFromFile(first.path());
  int32_t index = TypeKeyToIndex("test_module.Thing");
  int32_t methods = TVMFFIGetTypeInfo(index)->num_methods;
  for (int i = 0; i < 2; ++i) {
    Error error = Catch([&] { Module::LoadFromFile(second.path()); });
    EXPECT_EQ(error.kind(), "RuntimeError");
    for (const std::string& part :
         {std::string("test_module.Thing"), first.path(), second.path()}) {
      EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
    }
  }
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(index);
  EXPECT_EQ(info->num_methods, methods);
  EXPECT_EQ(info->num_fields, 1);
  // What the second one registered before it failed is gone again.
  EXPECT_TRUE(IsGlobal("test_module.class one"));
  EXPECT_FALSE(IsGlobal("test_module.class two"));
  TVMFFIObjectHandle thing = nullptr;
  ASSERT_EQ(info->metadata->creator(&thing), 0);
  TVMFFIObjectDecRef(thing);
}

TEST(LibraryLoad, AnExceptionInAStaticInitialiserIsTheErrorOfTheLoad) {
  TempFile number(Registers("throw number"));
  Error unknown = Catch([&] { Module::LoadFromFile(number.path()); });
  EXPECT_EQ(unknown.kind(), "RuntimeError");
  EXPECT_EQ(unknown.message(), "an exception was thrown that is not a std::exception");
  TempFile thrower(Registers("throw error"));
  Error known = Catch([&] { Module::LoadFromFile(thrower.path()); });
  EXPECT_EQ(known.kind(), "ValueError");
  EXPECT_EQ(known.message(), "not today");
}

// A copy of the fixture library with other embedded modules.
class PatchedLibrary {
 public:
  explicit PatchedLibrary(const std::string& blob) : file_(Patch(blob)) {}
  Module Load() const { return Module::LoadFromFile(file_.path()); }
  const std::string& path() const { return file_.path(); }

 private:
  static std::string Patch(const std::string& blob) {
    std::string image = ReadFile(Fixture("embedded"));
    size_t at = image.find("PLACEHOLDER OF THE EMBEDDED MODULES");
    EXPECT_NE(at, std::string::npos);
    EXPECT_LE(blob.size(), 2048u);
    return image.replace(at, blob.size(), blob);
  }
  TempFile file_;
};

// Loads the blob through the system library, under a prefix of its own.
Module LoadInSystemLib(const std::string& blob) {
  static std::deque<std::string> blobs;  // stay registered for ever
  static int count = 0;
  blobs.push_back(blob);
  std::string prefix = "test_blob_" + std::to_string(count++) + ".";
  std::string name = prefix + symbol::tvm_ffi_library_bin;
  EXPECT_EQ(TVMFFIEnvModRegisterSystemLibSymbol(name.c_str(), blobs.back().data()), 0);
  return Global("ffi.SystemLib")(prefix).cast<Module>();
}

TEST(EmbeddedModules, TheGraphIsRebuilt) {
  PatchedLibrary library(Blob(GoodPayload()));
  Module root = library.Load();
  EXPECT_STREQ(root->kind(), "library");
  EXPECT_EQ(root->GetFunction("answer").value()().cast<int>(), 42);
  ASSERT_EQ(root->imports().size(), 2u);
  Module a = root->imports()[0].cast<Module>();
  Module b = root->imports()[1].cast<Module>();
  EXPECT_TRUE(a->ImplementsFunction("a"));
  EXPECT_TRUE(b->ImplementsFunction("b"));
  ASSERT_EQ(a->imports().size(), 1u);
  EXPECT_TRUE(a->imports()[0].cast<Module>().same_as(b));
  EXPECT_EQ(root->GetFunction("library_context").value()().cast<void*>(),
            static_cast<void*>(root.get()));
}

TEST(EmbeddedModules, TheLibraryNeedNotBeTheRoot) {
  PatchedLibrary library(
      Blob(Vec({0, 1, 1}) + Vec({1}) + Str("test_module") + Str("root") + Str("_lib")));
  Module root = library.Load();
  EXPECT_STREQ(root->kind(), "test_kind");
  Module self = root->imports()[0].cast<Module>();
  EXPECT_EQ(root->GetFunction("answer", true).value()().cast<int>(), 42);
  EXPECT_EQ(self->GetFunction("library_context").value()().cast<void*>(),
            static_cast<void*>(self.get()));
}

TEST(EmbeddedModules, TheLibraryNeedNotBePartOfTheGraph) {
  PatchedLibrary library(Blob(Vec({0, 0}) + Vec({}) + Str("test_module") + Str("alone")));
  Module root = library.Load();
  EXPECT_TRUE(root->ImplementsFunction("alone"));
  EXPECT_FALSE(IsLoaded(library.path()));
}

TEST(EmbeddedModules, EmptyStringsAreStrings) {
  Module root = LoadInSystemLib(Blob(Vec({0, 0}) + Vec({}) + Str("test_module") + Str("")));
  EXPECT_TRUE(root->ImplementsFunction(""));
}

TEST(EmbeddedModules, LoadersAreNamedWhenMissingAndTheirErrorsPass) {
  auto payload = [](const char* kind) { return Vec({0, 0}) + Vec({}) + Str(kind) + Str("x"); };
  Error missing = Catch([&] { LoadInSystemLib(Blob(payload("test_unknown"))); });
  EXPECT_EQ(missing.kind(), "RuntimeError");
  EXPECT_EQ(missing.message(),
            "Library binary was created using {test_unknown} but a loader of that name is not "
            "registered. Make sure to have runtime that registers "
            "ffi.Module.load_from_bytes.test_unknown");
  EXPECT_EQ(Catch([&] { LoadInSystemLib(Blob(payload(""))); }).kind(), "RuntimeError");
  EXPECT_EQ(Catch([&] { LoadInSystemLib(Blob(payload("test_not_a_module"))); }).kind(),
            "TypeError");
  EXPECT_EQ(Catch([&] { LoadInSystemLib(Blob(payload("test_throws"))); }).message(),
            "the loader refused");
}

TEST(EmbeddedModules, EveryTruncationIsAnError) {
  const std::string payload = GoodPayload();
  LoadInSystemLib(Blob(payload));
  for (size_t length = 0; length < payload.size(); ++length) {
    Error error = Catch([&] { LoadInSystemLib(Blob(payload.substr(0, length))); });
    EXPECT_EQ(error.kind(), "InternalError") << length;
    EXPECT_TRUE(Contains(error.message(), "Malformed embedded modules in ")) << error.message();
  }
}

struct BadPayload {
  const char* why;
  std::string payload;
};

std::vector<BadPayload> BadPayloads() {
  const std::string one = Str("test_module") + Str("x");
  return {
      {"ends inside the import ranges", ""},
      {"ends inside the import ranges", U64(1)},
      {"ends inside the import ranges", U64(kHuge)},
      {"ends inside the import ranges", U64(uint64_t{1} << 61) + U64(0)},
      {"ends inside the import ranges", U64(uint64_t{1} << 63) + U64(0)},
      {"ends inside the imports", Vec({0, 0})},
      {"ends inside the imports", Vec({0, 0}) + U64(1)},
      {"ends inside the imports", Vec({0, 0}) + U64(kHuge)},
      {"ends inside the imports", Vec({0, 0}) + U64((uint64_t{1} << 61) + 1) + U64(0)},
      {"no module", Vec({}) + Vec({})},
      {"no module", Vec({0}) + Vec({})},
      {"no module", Vec({0}) + Vec({}) + one},
      {"do not begin at 0", Vec({1, 1}) + Vec({0}) + one},
      {"do not begin at 0", Vec({kHuge, kHuge}) + Vec({}) + one},
      {"decrease", Vec({0, 1, 0}) + Vec({1}) + one + one},
      {"decrease", Vec({0, kHuge, 0}) + Vec({}) + one + one},
      {"end at 1 of 0", Vec({0, 1}) + Vec({}) + one},
      {"end at 0 of 1", Vec({0, 0}) + Vec({0}) + one},
      {"end at 18446744073709551615 of 0", Vec({0, kHuge}) + Vec({}) + one},
      {"end at 2 of 1", Vec({0, 2}) + Vec({0}) + one},
      {"import of module 1 of 1", Vec({0, 1}) + Vec({1}) + one},
      {"import of module 18446744073709551615 of 1", Vec({0, 1}) + Vec({kHuge}) + one},
      {"import of module 2 of 2", Vec({0, 1, 1}) + Vec({2}) + one + one},
      {"import each other", Vec({0, 1}) + Vec({0}) + one},
      {"import each other", Vec({0, 1}) + Vec({0}) + Str("_lib")},
      {"import each other", Vec({0, 1, 2}) + Vec({1, 0}) + one + one},
      {"import each other", Vec({0, 1, 2, 3}) + Vec({1, 2, 0}) + one + one + one},
      {"import each other", Vec({0, 1, 2, 3}) + Vec({1, 2, 1}) + one + one + one},
      {"ends inside a module kind", Vec({0, 0}) + Vec({})},
      {"ends inside a module kind", Vec({0, 0}) + Vec({}) + "short"},
      {"ends inside a module kind", Vec({0, 0}) + Vec({}) + U64(5) + "four"},
      {"ends inside a module kind", Vec({0, 0}) + Vec({}) + U64(kHuge) + "_lib"},
      {"ends inside a module kind", Vec({0, 0, 0}) + Vec({}) + one},
      {"ends inside a module", Vec({0, 0}) + Vec({}) + Str("test_module")},
      {"ends inside a module", Vec({0, 0}) + Vec({}) + Str("test_module") + U64(2) + "x"},
      {"ends inside a module", Vec({0, 0}) + Vec({}) + Str("test_module") + U64(kHuge)},
      {"ends inside a module", Vec({0, 0}) + Vec({}) + Str("_libx")},
      {"ends inside a module", Vec({0, 0}) + Vec({}) + Str(std::string("_lib\0", 5))},
      {"more than one `_lib`", Vec({0, 0, 0}) + Vec({}) + Str("_lib") + Str("_lib")},
      {"1 bytes follow", Vec({0, 0}) + Vec({}) + Str("_lib") + "x"},
      {"8 bytes follow", Vec({0, 0}) + Vec({}) + Str("_lib") + U64(0)},
      {"bytes follow", Vec({0, 0}) + Vec({}) + one + one},
  };
}

TEST(EmbeddedModules, BadPayloadsAreErrorsThatSayWhy) {
  std::vector<BadPayload> cases = BadPayloads();
  EXPECT_GE(cases.size(), 40u);
  for (size_t i = 0; i < cases.size(); ++i) {
    Error error = Catch([&] { LoadInSystemLib(Blob(cases[i].payload)); });
    EXPECT_EQ(error.kind(), "InternalError") << i;
    EXPECT_TRUE(Contains(error.message(), "Malformed embedded modules in the system library"));
    EXPECT_TRUE(Contains(error.message(), cases[i].why)) << i << ": " << error.message();
  }
}

TEST(EmbeddedModules, BadPayloadsInALibraryLeaveItUnloaded) {
  for (const BadPayload& bad : BadPayloads()) {
    PatchedLibrary library(Blob(bad.payload));
    Error error = Catch([&] { library.Load(); });
    EXPECT_EQ(error.kind(), "InternalError");
    EXPECT_TRUE(Contains(error.message(), library.path())) << error.message();
    EXPECT_FALSE(IsLoaded(library.path()));
  }
}

TEST(EmbeddedModules, ASizeBeyondTheSymbolIsAnErrorNotACrash) {
  for (uint64_t size : {uint64_t{2041}, uint64_t{4096}, uint64_t{1} << 32, kHuge, kHuge - 7}) {
    PatchedLibrary library(U64(size) + GoodPayload());
    Error error = Catch([&] { library.Load(); });
    EXPECT_EQ(error.kind(), "InternalError") << size;
    EXPECT_TRUE(Contains(error.message(), "exceeds the symbol")) << error.message();
  }
  // The placeholder itself read as a size.
  TempFile file(ReadFile(Fixture("embedded")));
  EXPECT_EQ(Catch([&] { Module::LoadFromFile(file.path()); }).kind(), "InternalError");
}

TEST(EmbeddedModules, AnySingleByteFlipLoadsOrRaises) {
  const std::string good = Blob(GoodPayload());
  int errors = 0, loads = 0;
  for (size_t i = 8; i < good.size(); ++i) {
    for (unsigned char mask : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ mask);
      try {
        LoadInSystemLib(bad);
        ++loads;
      } catch (const Error& error) {
        EXPECT_TRUE(error.kind() == "InternalError" || error.kind() == "RuntimeError")
            << error.kind();
        ++errors;
      }
    }
  }
  EXPECT_GT(errors, 200);
  // Changing the content of module `a` or `b` is not visible to the loader.
  EXPECT_GE(loads, 6);
}

// ---- System library
// -------------------------------------------------------------------------------

int SafeAdd(void*, const TVMFFIAny* args, int32_t, TVMFFIAny* result) {
  *result = AnyView(args[0].v_int64 + 7).CopyToTVMFFIAny();
  return 0;
}

int SafeSub(void*, const TVMFFIAny* args, int32_t, TVMFFIAny* result) {
  *result = AnyView(args[0].v_int64 - 7).CopyToTVMFFIAny();
  return 0;
}

void RegisterSymbol(const char* name, TVMFFISafeCallType function) {
  ASSERT_EQ(TVMFFIEnvModRegisterSystemLibSymbol(name, reinterpret_cast<void*>(function)), 0);
}

TEST(SystemLib, ThePrefixIsTriedFirst) {
  RegisterSymbol("__tvm_ffi_test_sys.f", SafeAdd);
  RegisterSymbol("__tvm_ffi_test_sys_plain", SafeSub);
  Module all = Global("ffi.SystemLib")().cast<Module>();
  EXPECT_STREQ(all->kind(), "library");
  EXPECT_EQ(all->GetFunction("test_sys.f").value()(1).cast<int>(), 8);
  EXPECT_EQ(all->GetFunction("test_sys_plain").value()(1).cast<int>(), -6);
  EXPECT_FALSE(all->GetFunction("f").has_value());
  Module prefixed = Global("ffi.SystemLib")("test_sys.").cast<Module>();
  EXPECT_EQ(prefixed->GetFunction("f").value()(1).cast<int>(), 8);
  EXPECT_EQ(prefixed->GetFunction("test_sys_plain").value()(1).cast<int>(), -6);
  EXPECT_FALSE(prefixed->GetFunction("g").has_value());
  RegisterSymbol("__tvm_ffi_test_sys.test_sys_plain", SafeAdd);
  EXPECT_EQ(prefixed->GetFunction("test_sys_plain").value()(1).cast<int>(), 8);
  EXPECT_FALSE(all->GetFunctionMetadata("test_sys.f").has_value());
}

TEST(SystemLib, OneModulePerPrefix) {
  Function system_lib = Global("ffi.SystemLib");
  EXPECT_TRUE(system_lib().cast<Module>().same_as(system_lib("").cast<Module>()));
  EXPECT_TRUE(system_lib("p.").cast<Module>().same_as(system_lib("p.").cast<Module>()));
  EXPECT_FALSE(system_lib("p.").cast<Module>().same_as(system_lib().cast<Module>()));
}

TEST(SystemLib, ASecondAddressReplacesTheFirstWithAWarning) {
  RegisterSymbol("__tvm_ffi_test_sys_replaced", SafeAdd);
  testing::internal::CaptureStderr();
  RegisterSymbol("__tvm_ffi_test_sys_replaced", SafeAdd);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  RegisterSymbol("__tvm_ffi_test_sys_replaced", SafeSub);
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(),
                       "Warning:SystemLib symbol __tvm_ffi_test_sys_replaced get overriden to a "
                       "different address "));
  Module all = Global("ffi.SystemLib")().cast<Module>();
  EXPECT_EQ(all->GetFunction("test_sys_replaced").value()(1).cast<int>(), -6);
}

TEST(SystemLib, BadArgumentsAreErrors) {
  Function system_lib = Global("ffi.SystemLib");
  EXPECT_EQ(Catch([&] { system_lib(1); }).kind(), "TypeError");
  EXPECT_EQ(Catch([&] { system_lib("a", "b"); }).kind(), "TypeError");
  EXPECT_EQ(TVMFFIEnvModRegisterSystemLibSymbol(nullptr, nullptr), -1);
  EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "ValueError");
}

}  // namespace
