// SPDX-License-Identifier: Apache-2.0
// reflection/overload.h: one name, several functions.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/reflection/overload.h>
#include <tvm/ffi/rvalue_ref.h>

#include <string>

namespace {

using namespace tvm::ffi;
namespace refl = tvm::ffi::reflection;

class ShapesObj : public Object {
 public:
  int64_t value = 0;
  String label;

  ShapesObj() = default;
  explicit ShapesObj(int64_t value) : value(value) {}
  ShapesObj(int64_t value, String label) : value(value), label(std::move(label)) {}

  String Kind(int64_t) { return "int"; }
  String Kind(double) { return "float"; }
  String Kind(const String&) const { return "str"; }
  int64_t Add(int64_t x) const { return value + x; }
  void Reset() { value = 0; }
  void Reset(int64_t to) { value = to; }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_overload.Shapes", ShapesObj, Object);
};

class Shapes : public ObjectRef {
 public:
  explicit Shapes(int64_t value) { data_ = make_object<ShapesObj>(value); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Shapes, ObjectRef, ShapesObj);
};

// The same two overloads in the order that hides the second.
class WideFirstObj : public Object {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_overload.WideFirst", WideFirstObj, Object);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::OverloadObjectDef<ShapesObj>("Overloaded.")
      .def(refl::init<int64_t>(), "From a value.")
      .def(refl::init<int64_t, String>(), "From a value and a label.")
      .def_rw("value", &ShapesObj::value)
      .def_ro("label", &ShapesObj::label)
      .def("kind", refl::overload_cast<int64_t>(&ShapesObj::Kind), "Of an integer.")
      .def("kind", refl::overload_cast<double>(&ShapesObj::Kind))
      .def("kind", refl::overload_cast<const String&>(&ShapesObj::Kind, refl::const_))
      .def("add", &ShapesObj::Add)
      .def("reset", refl::overload_cast<>(&ShapesObj::Reset))
      .def("reset", refl::overload_cast<int64_t>(&ShapesObj::Reset))
      .def_static("make", [](int64_t x) { return x; })
      .def_static("make", [](Any, AnyView) { return String("any"); })
      .def_static("take",
                  [](RValueRef<Array<int>> first, int64_t) { return (*std::move(first)).size(); })
      .def_static("take",
                  [](const Array<Any>& first, const String&) { return first.size() + 100; });
  refl::OverloadObjectDef<WideFirstObj>()
      .def_static("f", [](double) { return String("float"); })
      .def_static("f", [](int64_t) { return String("int"); });
}

Function Method(const char* name) { return refl::GetMethod("test_overload.Shapes", name); }

template <typename F>
Error Catch(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return Error("NoError", "nothing was thrown", "");
}

TEST(Overload, TheFirstOverloadThatAcceptsTheArgumentsIsCalled) {
  Shapes self(1);
  Function kind = Method("kind");
  EXPECT_EQ(kind(self, 1).cast<String>(), "int");
  EXPECT_EQ(kind(self, 1.5).cast<String>(), "float");
  EXPECT_EQ(kind(self, "text").cast<String>(), "str");
  EXPECT_EQ(kind(self, true).cast<String>(), "int");
}

TEST(Overload, OrderDecidesWhereConversionsOverlap) {
  Function f = refl::GetMethod("test_overload.WideFirst", "f");
  EXPECT_EQ(f(1).cast<String>(), "float");
}

TEST(Overload, ArgumentCountSelectsToo) {
  Shapes self(5);
  Function reset = Method("reset");
  reset(self, 7);
  EXPECT_EQ(self->value, 7);
  EXPECT_EQ(reset(self), nullptr);
  EXPECT_EQ(self->value, 0);
}

TEST(Overload, AnyAndAnyViewAcceptEverything) {
  Function make = Method("make");
  EXPECT_EQ(make(3).cast<int>(), 3);
  EXPECT_EQ(make(nullptr, 1.5).cast<String>(), "any");
  EXPECT_EQ(make("x", Shapes(1)).cast<String>(), "any");
}

TEST(Overload, ConstructorsShareOneFunction) {
  const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(ShapesObj::RuntimeTypeIndex());
  int inits = 0;
  for (int32_t i = 0; i < type->num_methods; ++i) {
    inits += std::string(type->methods[i].name.data, type->methods[i].name.size) == "__ffi_init__";
  }
  EXPECT_EQ(inits, 2);
  Function construct = refl::TypeAttrColumn("__ffi_init__")[type->type_index].cast<Function>();
  EXPECT_TRUE(construct.same_as(Method("__ffi_init__")));
  EXPECT_EQ(construct(4).as<ShapesObj>()->value, 4);
  EXPECT_EQ(construct(4, "four").as<ShapesObj>()->label, "four");
}

TEST(Overload, EachRegistrationKeepsItsOwnRecord) {
  const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(ShapesObj::RuntimeTypeIndex());
  std::vector<const TVMFFIMethodInfo*> kinds;
  for (int32_t i = 0; i < type->num_methods; ++i) {
    const TVMFFIMethodInfo& method = type->methods[i];
    if (std::string(method.name.data, method.name.size) == "kind") kinds.push_back(&method);
  }
  ASSERT_EQ(kinds.size(), 3u);
  EXPECT_EQ(std::string(kinds[0]->doc.data, kinds[0]->doc.size), "Of an integer.");
  EXPECT_EQ(kinds[1]->doc.size, 0u);
  std::string first(kinds[0]->metadata.data, kinds[0]->metadata.size);
  std::string second(kinds[1]->metadata.data, kinds[1]->metadata.size);
  EXPECT_NE(first.find(R"({\"type\":\"int\"})"), std::string::npos);
  EXPECT_NE(second.find(R"({\"type\":\"float\"})"), std::string::npos);
  EXPECT_EQ(kinds[0]->method.v_obj, kinds[1]->method.v_obj);
  EXPECT_EQ(kinds[0]->method.v_obj, kinds[2]->method.v_obj);
}

TEST(Overload, ASingleFunctionReportsOrdinaryArgumentErrors) {
  Shapes self(1);
  EXPECT_EQ(Catch([&] { Method("add")(self, "x"); }).message(),
            "Mismatched type on argument #1 when calling: `test_overload.Shapes.add(0: "
            "test_overload.Shapes, 1: int) -> int`. Expected `int` but got `const char*`");
  EXPECT_EQ(Catch([&] { Method("add")(self); }).message(),
            "Mismatched number of arguments when calling: `test_overload.Shapes.add(0: "
            "test_overload.Shapes, 1: int) -> int`. Expected 2 but got 1 arguments");
  EXPECT_EQ(Method("add")(self, 2).cast<int>(), 3);
}

TEST(Overload, NoMatchListsEveryOverloadWithItsReason) {
  Shapes self(1);
  Error error = Catch([&] { Method("kind")(self, nullptr); });
  EXPECT_EQ(error.kind(), "TypeError");
  EXPECT_EQ(
      error.message(),
      "No matching overload found when calling: `test_overload.Shapes.kind` with 2 arguments:\n"
      "Overload #0: Mismatched type on argument #1 when calling: `test_overload.Shapes.kind (0: "
      "test_overload.Shapes, 1: int) -> str`. Expected `int` but got `None`\n"
      "Overload #1: Mismatched type on argument #1 when calling: `test_overload.Shapes.kind (0: "
      "test_overload.Shapes, 1: float) -> str`. Expected `float` but got `None`\n"
      "Overload #2: Mismatched type on argument #1 when calling: `test_overload.Shapes.kind (0: "
      "test_overload.Shapes, 1: str) -> str`. Expected `str` but got `None`");
  EXPECT_EQ(
      Catch([&] { Method("__ffi_init__")(); }).message(),
      "No matching overload found when calling: `test_overload.Shapes.__ffi_init__` with 0 "
      "arguments:\n"
      "Overload #0: Mismatched number of arguments when calling: "
      "`test_overload.Shapes.__ffi_init__ (0: int) -> ffi.Object`. Expected 1 arguments\n"
      "Overload #1: Mismatched number of arguments when calling: "
      "`test_overload.Shapes.__ffi_init__ (0: int, 1: str) -> ffi.Object`. Expected 2 arguments");
}

TEST(Overload, AMovedArgumentSurvivesTheOverloadsThatDoNotMatch) {
  Array<int> items{1, 2, 3};
  EXPECT_EQ(Method("take")(RValueRef(Array<int>(items)), 1).cast<int>(), 3);
  EXPECT_EQ(Method("take")(RValueRef(Array<int>(items)), "x").cast<int>(), 103);
  EXPECT_EQ(Catch([&] { Method("take")(RValueRef(Array<int>(items)), nullptr); }).kind(),
            "TypeError");
  EXPECT_EQ(items.use_count(), 1);
}

TEST(Overload, FieldsAndClassDocWorkAsInObjectDef) {
  Shapes self(6);
  EXPECT_EQ(refl::FieldGetter("test_overload.Shapes", "value")(self).cast<int>(), 6);
  const TVMFFITypeMetadata* metadata = TVMFFIGetTypeInfo(ShapesObj::RuntimeTypeIndex())->metadata;
  EXPECT_EQ(std::string(metadata->doc.data, metadata->doc.size), "Overloaded.");
  EXPECT_NE(refl::TypeAttrColumn("__ffi_new__")[ShapesObj::RuntimeTypeIndex()], nullptr);
  EXPECT_NE(refl::TypeAttrColumn("__ffi_shallow_copy__")[ShapesObj::RuntimeTypeIndex()], nullptr);
}

}  // namespace
