// SPDX-License-Identifier: Apache-2.0
//
// libtvm_ffi_testing itself: every function and type that the tests of the frontends count on.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/device.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/enum.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "reflected_object.h"

extern "C" {
int TVMFFITestingDummyTarget();
int __tvm_ffi_testing_dll_schema_id_int(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);
int __tvm_ffi__metadata_testing_dll_schema_id_int(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);
int __tvm_ffi_testing_dll_test_add_with_docstring(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);
int __tvm_ffi__metadata_testing_dll_test_add_with_docstring(void*, const TVMFFIAny*, int32_t,
                                                            TVMFFIAny*);
int __tvm_ffi__doc_testing_dll_test_add_with_docstring(void*, const TVMFFIAny*, int32_t,
                                                       TVMFFIAny*);
}

namespace {

using namespace tether_test;
namespace refl = tvm::ffi::reflection;

struct HostAlloc {
  void AllocData(DLTensor* tensor) { tensor->data = std::malloc(GetDataSize(*tensor)); }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

Tensor MakeTensor() {
  return Tensor::FromNDAlloc(HostAlloc(), Shape({2}), DLDataType{kDLFloat, 32, 1},
                             DLDevice{kDLCPU, 0});
}

std::string Metadata(const char* name) {
  return std::string(CallGlobal("ffi.GetGlobalFuncMetadata", name).cast<String>());
}

// {"type_schema":"<escaped schema>"} as it is stored.
std::string SchemaMetadata(const std::string& schema) {
  return "{\"type_schema\":" + std::string(EscapeStringJSON(schema)) + "}";
}

std::string Callable(const std::vector<std::string>& result_and_args) {
  std::string text = "{\"type\":\"ffi.Function\",\"named_args\":{\"return\":[";
  text += result_and_args[0] + "],\"params\":[";
  for (size_t i = 1; i < result_and_args.size(); ++i) {
    if (i != 1) text += ",";
    text += result_and_args[i];
  }
  return text + "]}}";
}

std::string Simple(const std::string& name) { return "{\"type\":\"" + name + "\"}"; }

std::string Generic(const std::string& name, const std::string& args) {
  return "{\"type\":\"" + name + "\",\"args\":[" + args + "]}";
}

// ---- Functions
// ------------------------------------------------------------------------------------------

TEST(TestingLibrary, AllFunctionsExist) {
  std::set<std::string> names;
  for (const String& name : Function::ListGlobalNames()) {
    if (name.starts_with("testing.")) names.insert(name);
  }
  // 30 of them are the identities below, 8 make containers.
  EXPECT_EQ(names.size(), 64U);
}

TEST(TestingLibrary, DummyTarget) { EXPECT_EQ(TVMFFITestingDummyTarget(), 0); }

TEST(TestingFunctions, RaiseErrorNamesItselfOnceInTheBacktrace) {
  try {
    CallGlobal("testing.test_raise_error", "ValueError", "the message");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "ValueError");
    EXPECT_EQ(error.message(), "the message");
    std::string backtrace = error.backtrace();
    size_t first = backtrace.find("TestRaiseError");
    ASSERT_NE(first, std::string::npos) << backtrace;
    EXPECT_EQ(backtrace.find("TestRaiseError", first + 1), std::string::npos) << backtrace;
  }
}

TEST(TestingFunctions, AddOne) {
  EXPECT_EQ(CallGlobal("testing.add_one", 1).cast<int>(), 2);
  EXPECT_EQ(
      ErrorText([] { CallGlobal("testing.add_one", "x"); }),
      "TypeError: Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
      "Expected `int` but got `const char*`");
  EXPECT_EQ(ErrorText([] { CallGlobal("testing.add_one", 1, 2); }),
            "TypeError: Mismatched number of arguments when calling: `testing.add_one(0: int) -> "
            "int`. Expected 1 but got 2 arguments");
}

TEST(TestingFunctions, NopEchoApply) {
  EXPECT_TRUE(CallGlobal("testing.nop", 1, 2) == nullptr);
  Any pair = MakePair(1, 2);
  EXPECT_TRUE(CallGlobal("testing.echo", pair).same_as(pair));
  EXPECT_EQ(
      CallGlobal("testing.apply", Function::GetGlobalRequired("testing.add_one"), 4).cast<int>(),
      5);
}

TEST(TestingFunctions, EchoAndApplyWithoutArguments) {
  EXPECT_EQ(ErrorText([] { CallGlobal("testing.echo"); }),
            "TypeError: testing.echo expects an argument to return");
  EXPECT_EQ(ErrorText([] { CallGlobal("testing.apply"); }),
            "TypeError: testing.apply expects a function to call");
  EXPECT_EQ(ErrorText([] { CallGlobal("testing.apply", 3); }),
            "TypeError: Cannot convert from type `int` to `ffi.Function`");
}

TEST(TestingFunctions, RunCheckSignalFinishes) {
  testing::internal::CaptureStdout();
  CallGlobal("testing.run_check_signal", 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "Function finished without catching signal\n");
}

TEST(TestingFunctions, ObjectUseCountBorrows) {
  Any pair = MakePair(1, 2);
  EXPECT_EQ(CallGlobal("testing.object_use_count", pair).cast<int>(), 1);
  Any second = pair;
  EXPECT_EQ(CallGlobal("testing.object_use_count", pair).cast<int>(), 2);
}

TEST(TestingFunctions, CSymbols) {
  auto address = CallGlobal("testing.get_add_one_c_symbol").cast<int64_t>();
  auto add_one = reinterpret_cast<TVMFFISafeCallType>(address);
  EXPECT_EQ(Function::InvokeExternC(nullptr, add_one, 5).cast<int>(), 6);
  EXPECT_EQ(ErrorText([&] { Function::InvokeExternC(nullptr, add_one, "x"); }),
            "TypeError: Cannot convert from type `const char*` to `int`");
  EXPECT_EQ(ErrorText([&] { Function::InvokeExternC(nullptr, add_one); }),
            "TypeError: add_one expects 1 argument, but got 0");

  auto packed = reinterpret_cast<void (*)(void**)>(
      CallGlobal("testing.get_mlir_add_one_c_symbol").cast<int64_t>());
  void* handle = nullptr;
  TVMFFIAny arg = AnyView(7).CopyToTVMFFIAny();
  const TVMFFIAny* args = &arg;
  int32_t num_args = 1;
  TVMFFIAny result = AnyView().CopyToTVMFFIAny();
  TVMFFIAny* result_pointer = &result;
  int code = -1;
  void* slots[] = {&handle, &args, &num_args, &result_pointer, &code};
  packed(slots);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(result.v_int64, 8);
}

TEST(TestingFunctions, OptionalTensorView) {
  const char* name = "testing.optional_tensor_view_has_value";
  EXPECT_FALSE(CallGlobal(name, nullptr).cast<bool>());
  Tensor tensor = MakeTensor();
  EXPECT_TRUE(CallGlobal(name, tensor).cast<bool>());
  EXPECT_TRUE(CallGlobal(name, const_cast<DLTensor*>(tensor.GetDLTensorPtr())).cast<bool>());
  EXPECT_EQ(Metadata(name),
            SchemaMetadata(Callable({Simple("bool"), Generic("Optional", Simple("DLTensor*"))})));
}

TEST(TestingFunctions, EnumLookup) {
  Any alpha = CallGlobal("testing.enum_variant_get", "Alpha");
  EXPECT_EQ(alpha.as<EnumObj>()->_int_index, 0);
  EXPECT_TRUE(CallGlobal("testing.enum_variant_get", "Alpha").same_as(alpha));
  EXPECT_EQ(ErrorText([] { CallGlobal("testing.enum_variant_get", "missing"); }),
            "ValueError: Enum `testing.TestEnumVariant` has no instance with index missing");
}

TEST(TestingFunctions, EnumAttributes) {
  auto state = TypeAttr("testing.TestEnumVariant", "__ffi_enum__").cast<EnumState>();
  ASSERT_EQ(state->entries.size(), 2U);
  Dict<ObjectRef, Any> codes = state->attrs["code"];
  EXPECT_EQ(codes[state->entries[0]].cast<int>(), 10);
  EXPECT_EQ(codes[state->entries[1]].cast<int>(), 20);
  for (const char* attr : {"__ffi_enum_entries__", "__ffi_enum_attrs__"}) {
    TVMFFIByteArray name = refl::AsByteArray(attr);
    EXPECT_EQ(TVMFFIGetTypeAttrColumn(&name), nullptr);
  }
}

TEST(TestingFunctions, SumOfAPair) {
  EXPECT_EQ(CallGlobal("testing.TestIntPairSum", MakePair(3, 4)).cast<int>(), 7);
  EXPECT_EQ(Metadata("testing.TestIntPairSum"),
            SchemaMetadata(Callable({Simple("int"), Simple("testing.TestIntPair")})));
}

TEST(TestingFunctions, Containers) {
  Tensor t = MakeTensor();
  Tensor u = MakeTensor();
  std::string text = "float32[2]@cpu:0";
  auto repr = [&](const char* name, auto... args) {
    return std::string(ReprPrint(CallGlobal(name, args...)));
  };
  EXPECT_EQ(repr("testing.make_array_with_tensor", t), "(" + text + ",)");
  EXPECT_EQ(repr("testing.make_array_with_mixed", t, 5), "(" + text + ", 5, \"hello\")");
  EXPECT_EQ(repr("testing.make_nested_array_with_tensor", t), "((" + text + ", 42), " + text + ")");
  EXPECT_EQ(repr("testing.make_list_with_tensor", t, 6), "[" + text + ", 6]");
  EXPECT_EQ(repr("testing.make_map_with_tensor", t),
            "{\"tensor\": " + text + ", \"value\": 42, \"name\": \"test\"}");
  EXPECT_EQ(repr("testing.make_dict_with_tensor", t), "{\"tensor\": " + text + ", \"value\": 42}");
  EXPECT_EQ(repr("testing.make_empty_array_with_tensor_input", t), "()");
  EXPECT_EQ(
      repr("testing.make_nested_map_with_tensor", t, u),
      "{\"array\": (" + text + ", " + text + "), \"map\": {\"t\": " + text + "}, \"scalar\": 99}");
  Any map = CallGlobal("testing.make_nested_map_with_tensor", t, u);
  EXPECT_TRUE((map.cast<Map<String, Any>>()["array"].cast<Array<Any>>()[1].same_as(u)));
}

TEST(TestingFunctions, SystemLibrarySymbol) {
  Any library = CallGlobal("ffi.SystemLib", "testing.");
  Any function = CallGlobal("ffi.ModuleGetFunction", library, "add_one", false);
  EXPECT_EQ(function.cast<Function>()(10).cast<int>(), 11);
}

TEST(TestingFunctions, ExportedFromTheLibrary) {
  EXPECT_EQ(Function::InvokeExternC(nullptr, __tvm_ffi_testing_dll_schema_id_int, 5).cast<int>(),
            5);
  EXPECT_EQ(Function::InvokeExternC(nullptr, __tvm_ffi__metadata_testing_dll_schema_id_int)
                .cast<String>(),
            SchemaMetadata(Callable({Simple("int"), Simple("int")})));
  EXPECT_EQ(Function::InvokeExternC(nullptr, __tvm_ffi_testing_dll_test_add_with_docstring, 5, 6)
                .cast<int>(),
            11);
  EXPECT_EQ(
      Function::InvokeExternC(nullptr, __tvm_ffi__metadata_testing_dll_test_add_with_docstring)
          .cast<String>(),
      SchemaMetadata(Callable({Simple("int"), Simple("int"), Simple("int")})));
  EXPECT_EQ(
      Function::InvokeExternC(nullptr, __tvm_ffi__doc_testing_dll_test_add_with_docstring)
          .cast<String>(),
      "Add two integers and return the sum.\n\nParameters\n----------\na : int\n    First integer\n"
      "b : int\n    Second integer\n\nReturns\n-------\nresult : int\n    Sum of a and b");
}

// ---- Schemas
// ------------------------------------------------------------------------------------------

TEST(TestingSchemas, Identities) {
  const std::string integer = Simple("int");
  const std::string text = Simple("ffi.String");
  const std::string object = Simple("ffi.Object");
  const std::string function = Simple("ffi.Function");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"float", Simple("float")},
      {"bool", Simple("bool")},
      {"device", Simple("Device")},
      {"dtype", Simple("DataType")},
      {"string", text},
      {"bytes", Simple("ffi.Bytes")},
      {"func", function},
      {"func_typed", Callable({Simple("None"), integer, Simple("float"), function})},
      {"any", Simple("Any")},
      {"object", object},
      {"dltensor", Simple("DLTensor*")},
      {"tensor", Simple("ffi.Tensor")},
      {"opt_int", Generic("Optional", integer)},
      {"opt_str", Generic("Optional", text)},
      {"opt_obj", Generic("Optional", object)},
      {"arr_int", Generic("ffi.Array", integer)},
      {"arr_str", Generic("ffi.Array", text)},
      {"arr_obj", Generic("ffi.Array", object)},
      {"arr", Simple("ffi.Array")},
      {"list_int", Generic("ffi.List", integer)},
      {"list_str", Generic("ffi.List", text)},
      {"list_obj", Generic("ffi.List", object)},
      {"map_str_int", Generic("ffi.Map", text + "," + integer)},
      {"map_str_str", Generic("ffi.Map", text + "," + text)},
      {"map_str_obj", Generic("ffi.Map", text + "," + object)},
      {"map", Simple("ffi.Map")},
      {"dict_str_int", Generic("ffi.Dict", text + "," + integer)},
      {"dict_str_str", Generic("ffi.Dict", text + "," + text)},
      {"variant_int_str", Generic("Variant", integer + "," + text)},
  };
  for (const auto& [name, schema] : expected) {
    EXPECT_EQ(Metadata(("testing.schema_id_" + name).c_str()),
              SchemaMetadata(Callable({schema, schema})));
  }
  EXPECT_EQ(Metadata("testing.schema_id_int"),
            "{\"type_schema\":" + std::string(EscapeStringJSON(Callable({integer, integer}))) +
                ",\"bool_attr\":true,\"int_attr\":1,\"str_attr\":\"hello\"}");
}

TEST(TestingSchemas, OtherSignatures) {
  const std::string integer = Simple("int");
  const std::string none = Simple("None");
  const std::string text = Simple("ffi.String");
  const std::string ints = Generic("ffi.Array", integer);
  const std::string map = Generic("ffi.Map", text + "," + ints);
  EXPECT_EQ(Metadata("testing.schema_packed"), SchemaMetadata(Simple("ffi.Function")));
  EXPECT_EQ(Metadata("testing.schema_tensor_view_input"),
            SchemaMetadata(Callable({none, Simple("DLTensor*")})));
  EXPECT_EQ(Metadata("testing.schema_no_args"), SchemaMetadata(Callable({integer})));
  EXPECT_EQ(Metadata("testing.schema_no_return"), SchemaMetadata(Callable({none, integer})));
  EXPECT_EQ(Metadata("testing.schema_no_args_no_return"), SchemaMetadata(Callable({none})));
  EXPECT_EQ(Metadata("testing.schema_arr_map_opt"),
            SchemaMetadata(Callable({map, Generic("ffi.Array", Generic("Optional", integer)), map,
                                     Generic("Optional", text)})));
  std::string mix = Generic("Variant", integer + "," + text + "," + ints);
  EXPECT_EQ(Metadata("testing.schema_variant_mix"), SchemaMetadata(Callable({mix, mix})));
}

TEST(TestingSchemas, IdentitiesReturnTheirArgument) {
  EXPECT_EQ(CallGlobal("testing.schema_id_int", 3).cast<int>(), 3);
  EXPECT_EQ(CallGlobal("testing.schema_id_device", "cuda:1").cast<DLDevice>().device_id, 1);
  EXPECT_TRUE(CallGlobal("testing.schema_id_opt_int", nullptr) == nullptr);
  EXPECT_EQ(CallGlobal("testing.schema_id_variant_int_str", "x").cast<String>(), "x");
  EXPECT_EQ(CallGlobal("testing.schema_no_args").cast<int>(), 1);
  EXPECT_TRUE(CallGlobal("testing.schema_packed", 1, 2) == nullptr);
  Any result = CallGlobal("testing.schema_arr_map_opt", Array<Any>{1, nullptr, 3},
                          Map<String, Any>{{"a", Array<Any>{5}}}, "b");
  EXPECT_EQ(ReprPrint(result), "{\"a\": (5,), \"b\": (1, 3)}");
  EXPECT_EQ(
      ErrorText([] {
        CallGlobal("testing.schema_id_arr_int", Array<Any>{1, 2.5});
      }),
      "TypeError: Mismatched type on argument #0 when calling: "
      "`testing.schema_id_arr_int(0: Array<int>) -> Array<int>`. Expected `Array<int>` but got "
      "`Array[index 1: float]`");
}

// ---- Types
// ----------------------------------------------------------------------------------------------

struct TypeFacts {
  const char* name;
  const char* parent;
  const char* own_fields;  // separated by blanks
  bool has_creator;
  bool is_copyable;
  const char* init;  // "auto", "explicit" or ""
};

const TypeFacts kTypes[] = {
    {"TestIntPair", "ffi.Object", "a b", true, true, "explicit"},
    {"TestEnumVariant", "ffi.Enum", "", true, true, ""},
    {"TestCxxIntEnum", "ffi.IntEnum", "", true, true, ""},
    {"TestCxxStrEnum", "ffi.StrEnum", "", true, true, ""},
    {"TestObjectBase", "ffi.Object", "v_i64 v_f64 v_str", true, true, "auto"},
    {"TestObjectDerived", "testing.TestObjectBase", "v_map v_array", true, true, "auto"},
    {"TestObjectPtrHolder", "ffi.Object", "value optional_value", true, true, "auto"},
    {"TestCxxClassBase", "ffi.Object", "v_i64 v_i32", true, true, "auto"},
    {"TestCxxClassDerived", "testing.TestCxxClassBase", "v_f64 v_f32", true, true, "auto"},
    {"TestCxxClassDerivedDerived", "testing.TestCxxClassDerived", "v_str v_bool", true, true,
     "auto"},
    {"TestCxxEnumHolder", "ffi.Object", "priority opcode", true, true, "auto"},
    {"TestCxxInitSubset", "ffi.Object", "required_field optional_field note", true, true, "auto"},
    {"TestCxxKwOnly", "ffi.Object", "x y z w", true, true, "auto"},
    {"TestCxxAutoInit", "ffi.Object", "a b c d", true, true, "auto"},
    {"TestCxxAutoInitSimple", "ffi.Object", "x y", true, true, "auto"},
    {"TestCxxAutoInitAllInitOff", "ffi.Object", "x y z", true, true, "auto"},
    {"TestCxxAutoInitKwOnlyDefaults", "ffi.Object",
     "p_required p_default k_required k_default hidden", true, true, "auto"},
    {"TestCxxAutoInitParent", "ffi.Object", "parent_required parent_default", true, true, "auto"},
    {"TestCxxAutoInitChild", "testing.TestCxxAutoInitParent", "child_required child_kw_only", true,
     true, "auto"},
    {"TestCxxNoAutoInit", "ffi.Object", "x y", true, true, ""},
    {"TestDeepCopyEdges", "ffi.Object", "v_any v_obj", true, true, "auto"},
    {"TestNonCopyable", "ffi.Object", "value", false, false, "explicit"},
    {"TestUnregisteredBaseObject", "ffi.Object", "v1", false, true, "explicit"},
    {"TestUnregisteredObject", "testing.TestUnregisteredBaseObject", "v2", false, true, "explicit"},
    {"TestCompare", "ffi.Object", "key name ignored_field", true, true, "explicit"},
    {"TestHash", "ffi.Object", "key name hash_ignored", true, true, "explicit"},
    {"TestCustomHash", "ffi.Object", "key label", true, true, "explicit"},
    {"TestCustomCompare", "ffi.Object", "key label", true, true, "explicit"},
    {"TestEqWithoutHash", "ffi.Object", "key label", true, true, "explicit"},
    {"SchemaAllTypes", "ffi.Object",
     "v_bool v_int v_float v_device v_dtype v_string v_bytes v_opt_int v_opt_str v_arr_int "
     "v_arr_str "
     "v_map_str_int v_map_str_arr_int v_variant v_opt_arr_variant",
     false, true, ""},
};

TEST(TestingTypes, AreRegisteredAsDocumented) {
  for (const TypeFacts& facts : kTypes) {
    std::string key = std::string("testing.") + facts.name;
    SCOPED_TRACE(key);
    const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(TypeKeyToIndex(key));
    const TVMFFIByteArray& parent = info->type_ancestors[info->type_depth - 1]->type_key;
    EXPECT_EQ(std::string(parent.data, parent.size), facts.parent);
    std::string fields;
    for (int i = 0; i < info->num_fields; ++i) {
      if (i != 0) fields += ' ';
      fields.append(info->fields[i].name.data, info->fields[i].name.size);
    }
    EXPECT_EQ(fields, facts.own_fields);
    ASSERT_NE(info->metadata, nullptr);
    EXPECT_EQ(info->metadata->creator != nullptr, facts.has_creator);
    auto has_attr = [&](const char* attr) { return TypeAttr(key.c_str(), attr) != nullptr; };
    EXPECT_EQ(has_attr("__ffi_new__"), facts.has_creator);
    EXPECT_EQ(has_attr("__ffi_shallow_copy__"), facts.is_copyable);
    EXPECT_EQ(has_attr("__ffi_init__"), std::string(facts.init) != "");
    bool has_method = false;
    for (int i = 0; i < info->num_methods; ++i) {
      const TVMFFIByteArray& name = info->methods[i].name;
      if (std::string(name.data, name.size) == "__ffi_init__") has_method = true;
    }
    EXPECT_EQ(has_method, std::string(facts.init) == "explicit");
  }
}

TEST(TestingTypes, FrozenClassHasAKeyAndNothingElse) {
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(TypeKeyToIndex("testing.TestFrozenCxx"));
  EXPECT_EQ(info->num_fields, 0);
  EXPECT_EQ(info->metadata, nullptr);
}

TEST(TestingTypes, LayoutsThatFrontendsExtend) {
  EXPECT_EQ(refl::GetFieldInfo("testing.TestObjectBase", "v_i64")->offset, 24);
  EXPECT_EQ(refl::GetFieldInfo("testing.TestObjectBase", "v_f64")->offset, 32);
  EXPECT_EQ(refl::GetFieldInfo("testing.TestObjectBase", "v_str")->offset, 40);
  const TVMFFIFieldInfo* last = refl::GetFieldInfo("testing.TestCxxClassBase", "v_i32");
  EXPECT_EQ(last->offset + last->size, 36);
}

std::string DocOf(const TVMFFIByteArray& doc) { return std::string(doc.data, doc.size); }

TEST(TestingTypes, Docs) {
  auto field_doc = [](const char* key, const char* field) {
    return DocOf(refl::GetFieldInfo(key, field)->doc);
  };
  auto method_doc = [](const char* key, const char* method) {
    return DocOf(refl::GetMethodInfo(key, method)->doc);
  };
  EXPECT_EQ(field_doc("testing.TestIntPair", "a"), "Field `a`");
  EXPECT_EQ(field_doc("testing.TestIntPair", "b"), "Field `b`");
  EXPECT_EQ(method_doc("testing.TestIntPair", "sum"), "Method to compute sum of a and b");
  EXPECT_EQ(field_doc("testing.TestObjectBase", "v_i64"), "i64 field");
  EXPECT_EQ(field_doc("testing.TestObjectBase", "v_f64"), "");
  EXPECT_EQ(method_doc("testing.TestObjectBase", "add_i64"), "add_i64 method");
  EXPECT_EQ(method_doc("testing.TestUnregisteredObject", "__ffi_init__"),
            "Constructor of TestUnregisteredObject");
  EXPECT_EQ(method_doc("testing.TestUnregisteredBaseObject", "get_v1_plus_one"),
            "Get (v1 + 1) from TestUnregisteredBaseObject");
  EXPECT_EQ(field_doc("testing.SchemaAllTypes", "v_opt_arr_variant"),
            "optional<array<variant<int,str>>>");
  EXPECT_EQ(method_doc("testing.SchemaAllTypes", "make_with"), "Constructor with subset of fields");
}

TEST(TestingTypes, WritableFlags) {
  auto writable = [](const char* key, const char* field) {
    return (refl::GetFieldInfo(key, field)->flags & kTVMFFIFieldFlagBitMaskWritable) != 0;
  };
  EXPECT_FALSE(writable("testing.TestIntPair", "a"));
  EXPECT_TRUE(writable("testing.TestObjectBase", "v_i64"));
  EXPECT_FALSE(writable("testing.TestObjectBase", "v_f64"));
  EXPECT_TRUE(writable("testing.SchemaAllTypes", "v_variant"));
}

TEST(TestingTypes, MethodsWork) {
  EXPECT_EQ(refl::GetMethod("testing.TestIntPair", "sum")(MakePair(1, 2)).cast<int>(), 3);
  EXPECT_EQ(
      refl::GetMethod("testing.TestObjectBase", "add_i64")(Construct("testing.TestObjectBase"), 5)
          .cast<int>(),
      15);
  Any unregistered = CallGlobal("testing.make_unregistered_object");
  EXPECT_EQ(refl::GetMethod("testing.TestUnregisteredBaseObject", "get_v1_plus_one")(unregistered)
                .cast<int>(),
            42);
  EXPECT_EQ(refl::GetMethod("testing.TestUnregisteredObject", "get_v2_plus_two")(unregistered)
                .cast<int>(),
            44);
}

TEST(TestingTypes, Converters) {
  auto convert = [](const char* key, AnyView value) {
    return TypeAttr(key, "__ffi_convert__").cast<Function>()(value);
  };
  Any pair = MakePair(1, 2);
  EXPECT_TRUE(convert("testing.TestIntPair", pair).same_as(pair));
  EXPECT_EQ(ErrorText([&] { convert("testing.TestIntPair", 5); }),
            "TypeError: Cannot cast from `int` to `testing.TestIntPair`");
  EXPECT_FALSE(TypeAttr("testing.TestEnumVariant", "__ffi_convert__") == nullptr);
  EXPECT_TRUE(TypeAttr("testing.TestObjectBase", "__ffi_convert__") == nullptr);
}

TEST(TestingTypes, SchemaAllTypes) {
  const char* key = "testing.SchemaAllTypes";
  Any object = refl::GetMethod(key, "make_with")(3, 1.5, "text");
  EXPECT_EQ(ReprPrint(object),
            "testing.SchemaAllTypes(v_bool=True, v_int=3, v_float=1.5, v_device=cpu:0, "
            "v_dtype=float32, v_string=\"text\", v_bytes=b\"\", v_opt_int=None, v_opt_str=None, "
            "v_arr_int=(), v_arr_str=(), v_map_str_int={}, v_map_str_arr_int={}, v_variant=\"v\", "
            "v_opt_arr_variant=None)");
  EXPECT_EQ(refl::GetMethod(key, "add_int")(object, 4).cast<int>(), 7);
  EXPECT_EQ(ReprPrint(refl::GetMethod(key, "append_int")(object, Array<Any>{1}, 2)), "(1, 2)");
  Function concat = refl::GetMethod(key, "maybe_concat");
  EXPECT_EQ(concat(object, "a", "b").cast<String>(), "ab");
  EXPECT_EQ(concat(object, nullptr, "b").cast<String>(), "b");
  EXPECT_EQ(concat(object, "a", nullptr).cast<String>(), "a");
  EXPECT_TRUE(concat(object, nullptr, nullptr) == nullptr);
  using Ints = Map<String, Array<int64_t>>;
  Any merged = refl::GetMethod(key, "merge_map")(object, Ints{{"a", {1}}, {"b", {2}}},
                                                 Ints{{"b", {3}}, {"c", {4}}});
  EXPECT_TRUE(RecursiveEq(merged, Ints{{"a", {1}}, {"b", {2, 3}}, {"c", {4}}}));
  EXPECT_EQ(
      ErrorText([&] { SetField(object, "v_variant", 1.5); }),
      "TypeError: Cannot convert from type `float` to `Variant<str, Array<int>, Map<str, int>>`");
  const TVMFFIMethodInfo* make_with = refl::GetMethodInfo(key, "make_with");
  EXPECT_NE(make_with->flags & kTVMFFIFieldFlagBitMaskIsStaticMethod, 0);
  EXPECT_TRUE(Contains(DocOf(make_with->metadata), R"(\"type\":\"testing.SchemaAllTypes\")"));
  EXPECT_TRUE(Contains(DocOf(refl::GetFieldInfo(key, "v_bool")->metadata),
                       "\"bool_attr\":true,\"int_attr\":1,\"str_attr\":\"hello\"}"));
}

TEST(TestingTypes, FieldsRejectWrongTypesAndStayAsTheyWere) {
  Any holder = Construct("testing.TestObjectPtrHolder", Construct("testing.TestObjectBase"));
  Any before = GetField(holder, "value");
  EXPECT_EQ(ErrorText([&] { SetField(holder, "value", nullptr); }),
            "TypeError: Cannot convert from type `None` to `testing.TestObjectBase`");
  EXPECT_EQ(
      ErrorText([&] { SetField(holder, "value", MakePair(1, 2)); }),
      "TypeError: Cannot convert from type `testing.TestIntPair` to `testing.TestObjectBase`");
  EXPECT_TRUE(GetField(holder, "value").same_as(before));
  EXPECT_EQ(before.cast<ObjectRef>().use_count(), 3);
}

}  // namespace
