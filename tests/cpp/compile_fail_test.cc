// SPDX-License-Identifier: Apache-2.0
//
// Mistakes the compiler must catch, with a message that says what to do. All snippets are compiled
// in one go; a compiler that stops at the first would hide the others, so every message is looked
// for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

// Everything the snippets need; compiles by itself.
const char* const kPreamble = R"(
#include <tvm/ffi/tvm_ffi.h>
using namespace tvm::ffi;

class WideObj : public Object {
 public:
  alignas(64) char payload[64];
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("fail.Wide", WideObj, Object);
};
class FinalObj : public Object {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("fail.Final", FinalObj, Object);
};
class SlotsObj : public Object {
 public:
  static constexpr int _type_child_slots = 2;
  TVM_FFI_DECLARE_OBJECT_INFO("fail.Slots", SlotsObj, Object);
};
struct NotAnObject {};
struct NotConvertible {};
struct alignas(16) WideElement { char bytes[16]; };
)";

struct Mistake {
  const char* snippet;
  const char* message;
};

const std::vector<Mistake>& Mistakes() {
  static const auto* mistakes = new std::vector<Mistake>{
      {"void OverAligned() { make_object<WideObj>(); }",
       "objects cannot be aligned more strictly than std::max_align_t"},
      {"void NotObject() { make_object<NotAnObject>(); }",
       "make_object can only be used to create Object"},
      {"void Elements() { make_inplace_array_object<FinalObj, WideElement>(1); }",
       "element alignment constraint"},
      {"class ChildOfFinalObj : public FinalObj { public: "
       "TVM_FFI_DECLARE_OBJECT_INFO_FINAL(\"fail.Child\", ChildOfFinalObj, FinalObj); };",
       "ParentType marked as final"},
      {"class GreedyObj : public SlotsObj { public: static constexpr int _type_child_slots = 2; "
       "TVM_FFI_DECLARE_OBJECT_INFO(\"fail.Greedy\", GreedyObj, SlotsObj); };",
       "Need to set _type_child_slots when parent specifies it."},
      {"void Unrelated(ObjectPtr<FinalObj> p) { ObjectPtr<SlotsObj> q(p); }",
       "can only assign of child class ObjectPtr to parent"},
      {"void Immutable(Any a) { a.cast<FinalObj*>(); }",
       "TObject must be mutable to enable cast from Any"},
      {"void Packed() { Function::FromPacked([](int) {}); }",
       "tvm::ffi::Function::FromPacked requires input function signature to match packed func "
       "format"},
      {"void Typed() { Function::FromTyped([](int& x) {}); }",
       "The function signature do not support unpacked"},
      {"Expected<Error>* expected_error(Expected<Error> e) { return nullptr; }",
       "Expected<Error> is not allowed. Use Error directly."},
      {"void ConstVoid() { (void)sizeof(Expected<const void>); }",
       "Expected with a cv-qualified void success type is not allowed. Use Expected<void>."},
      {"void Unexpect() { (void)sizeof(Unexpected<int>); }",
       "Unexpected<E> requires E to be Error or a subclass of Error."},
      {"void Alternatives() { (void)sizeof(Variant<int, NotConvertible>); }",
       "All types used in Variant<...> must be compatible with Any"},
      {"struct Falls {}; template <> struct tvm::ffi::TypeTraits<Falls> : "
       "FallbackOnlyTraitsBase<Falls, bool> { static Falls ConvertFallbackValue(bool) { return {}; "
       "} };"
       " void Fall(AnyView v) { v.try_cast<Falls>(); }",
       "tvm::ffi::StrictBool"},
      {"void Ptr(SlotsObj* p) { GetObjectPtr<FinalObj>(p); }",
       "Can only cast to the ref of same container type"},
      {"bool Null(const String& s) { return s == nullptr; }", "deleted"},
  };
  return *mistakes;
}

// Runs the compiler over a program; returns what it printed.
std::string Compile(const std::string& program, int* status) {
  char path[] = "/tmp/compile_fail_XXXXXX.cc";
  int file = mkstemps(path, 3);
  EXPECT_GE(file, 0);
  close(file);
  std::ofstream(path) << program;
#if defined(__clang__)
  const char* all_errors = " -ferror-limit=0";
#else
  const char* all_errors = "";
#endif
  std::string command = std::string(TETHER_TEST_CXX) + " -std=c++17 -fsyntax-only -w" + all_errors +
                        " -I" + TETHER_TEST_INCLUDE + " " + path + " 2>&1";
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "cannot run " + command;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) output.append(buffer, n);
  *status = pclose(pipe);
  unlink(path);
  return output;
}

TEST(CompileFail, PreambleCompiles) {
  int status = -1;
  std::string output = Compile(kPreamble, &status);
  EXPECT_EQ(status, 0) << output;
}

TEST(CompileFail, EveryMistakeIsNamed) {
  std::string program = kPreamble;
  for (const Mistake& mistake : Mistakes()) program.append(mistake.snippet).append("\n");
  int status = 0;
  std::string output = Compile(program, &status);
  EXPECT_NE(status, 0);
  for (const Mistake& mistake : Mistakes()) {
    EXPECT_NE(output.find(mistake.message), std::string::npos)
        << mistake.snippet << "\nwithout: " << mistake.message;
  }
}

}  // namespace
