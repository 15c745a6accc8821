// SPDX-License-Identifier: Apache-2.0
//
// extra/serialization.h: the document format, round trips, and documents nobody should send.
#include <gtest/gtest.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/device.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/extra/serialization.h>
#include <tvm/ffi/extra/structural_equal.h>
#include <tvm/ffi/reflection/enum_def.h>
#include <tvm/ffi/reflection/registry.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using tether_test::Contains;
using tether_test::ErrorText;
namespace refl = tvm::ffi::reflection;

// ---- classes -------------------------------------------------------------------------------

// One field of every kind of encoding.
class RecordObj : public Object {
 public:
  bool flag = false;
  int64_t number = 0;
  double real = 0;
  DLDataType dtype{kDLFloat, 32, 1};
  DLDevice device{kDLCPU, 0};
  String name;
  Optional<Bytes> bytes;
  Any anything;
  Array<Any> items;
  std::nullptr_t nothing = nullptr;
  RecordObj() = default;
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.graph.Record", RecordObj, Object);
};

class ParentObj : public Object {
 public:
  int64_t id = 0;
  Any link;
  ParentObj() = default;
  ParentObj(int64_t id, Any link) : id(id), link(std::move(link)) {}
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO("test.graph.Parent", ParentObj, Object);
};

class ChildObj : public ParentObj {
 public:
  int64_t with_default = 0;
  List<Any> from_factory;
  ChildObj() = default;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.graph.Child", ChildObj, ParentObj);
};

class HookedObj : public Object {
 public:
  int64_t value;
  explicit HookedObj(int64_t value) : value(value) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.graph.Hooked", HookedObj, Object);
};

// Made by its constructor, which takes two of its fields.
class ByConstructorObj : public Object {
 public:
  double id = 0.5;
  String name;
  int64_t more;
  ObjectRef next;
  ByConstructorObj(String name, int64_t more) : name(name), more(more + 100) {}
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.graph.ByConstructor", ByConstructorObj, Object);
};

// Its constructor takes something else.
class OtherConstructorObj : public Object {
 public:
  int64_t value;
  explicit OtherConstructorObj(double value) : value(static_cast<int64_t>(value)) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.graph.OtherConstructor", OtherConstructorObj, Object);
};

class NoCreatorObj : public Object {
 public:
  int64_t value;
  explicit NoCreatorObj(int64_t value) : value(value) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.graph.NoCreator", NoCreatorObj, Object);
};

class ColorObj : public EnumObj {
 public:
  using EnumObj::EnumObj;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.graph.Color", ColorObj, EnumObj);
};
class LevelObj : public IntEnumObj {
 public:
  using IntEnumObj::IntEnumObj;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.graph.Level", LevelObj, IntEnumObj);
};

// Accepts even numbers only, so that setting can fail.
int SetEven(void* field, const TVMFFIAny* value) {
  if (value->type_index != kTVMFFIInt || value->v_int64 % 2 != 0) {
    TVMFFIErrorSetRaisedFromCStr("ValueError", "not even");
    return -1;
  }
  *static_cast<int64_t*>(field) = value->v_int64;
  return 0;
}
int GetInt(void* field, TVMFFIAny* out) {
  *out = TVMFFIAny{};
  out->type_index = kTVMFFIInt;
  out->v_int64 = *static_cast<int64_t*>(field);
  return 0;
}

class EvenObj : public Object {
 public:
  int64_t value = 0;
  EvenObj() = default;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.graph.Even", EvenObj, Object);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<RecordObj>()
      .def_rw("flag", &RecordObj::flag)
      .def_rw("number", &RecordObj::number)
      .def_rw("real", &RecordObj::real)
      .def_rw("dtype", &RecordObj::dtype)
      .def_rw("device", &RecordObj::device)
      .def_rw("name", &RecordObj::name)
      .def_rw("bytes", &RecordObj::bytes)
      .def_rw("anything", &RecordObj::anything, refl::AttachFieldFlag::SEqHashIgnore())
      .def_rw("items", &RecordObj::items)
      .def_rw("nothing", &RecordObj::nothing);
  refl::ObjectDef<ParentObj>().def_rw("id", &ParentObj::id).def_rw("link", &ParentObj::link);
  refl::ObjectDef<ChildObj>()
      .def_rw("with_default", &ChildObj::with_default, refl::default_value(11))
      .def_rw("from_factory", &ChildObj::from_factory,
              refl::default_factory(Function::FromTyped([] { return List<Any>{1}; })));
  refl::ObjectDef<HookedObj>();
  refl::TypeAttrDef<HookedObj>()
      .def(refl::type_attr::kDataToJson,
           [](const HookedObj* self) {
             return json::Object{{"v", self->value}};
           })
      .def(refl::type_attr::kDataFromJson, [](json::Object data) {
        return ObjectRef(make_object<HookedObj>(data.at("v").cast<int64_t>()));
      });
  refl::ObjectDef<NoCreatorObj>().def_ro("value", &NoCreatorObj::value);
  refl::ObjectDef<ByConstructorObj>()
      .def(refl::init<String, int64_t>())
      .def_ro("id", &ByConstructorObj::id)
      .def_ro("name", &ByConstructorObj::name)
      .def_ro("more", &ByConstructorObj::more)
      .def_rw("next", &ByConstructorObj::next);
  refl::ObjectDef<OtherConstructorObj>()
      .def(refl::init<double>())
      .def_ro("value", &OtherConstructorObj::value);
  refl::ObjectDef<ColorObj>(refl::init(false));
  refl::EnumDef<ColorObj>("Red");
  refl::EnumDef<ColorObj>("Green");
  refl::ObjectDef<LevelObj>(refl::init(false));
  refl::EnumDef<LevelObj>("Low", -5);
  refl::EnumDef<LevelObj>("High", 7);
  refl::ObjectDef<EvenObj>();
  TVMFFIFieldInfo even{};
  even.name = refl::AsByteArray("value");
  even.size = even.alignment = sizeof(int64_t);
  even.offset = 24;
  even.getter = GetInt;
  even.setter = reinterpret_cast<void*>(&SetEven);
  even.field_static_type_index = kTVMFFIInt;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterField(EvenObj::_GetOrAllocRuntimeTypeIndex(), &even));
}

ObjectRef Parent(int64_t id, Any link = nullptr) {
  return ObjectRef(make_object<ParentObj>(id, std::move(link)));
}

// ---- helpers -------------------------------------------------------------------------------

std::string Write(const Any& value, const Any& metadata = nullptr) {
  return json::Stringify(ToJSONGraph(value, metadata));
}

Any Read(const std::string& text) { return FromJSONGraph(json::Parse(String(text))); }

// A document with root 0 and the given nodes, comma separated.
std::string Doc(const std::string& nodes) { return R"({"root_index":0,"nodes":[)" + nodes + "]}"; }

Any RoundTrip(const Any& value) {
  std::string text = Write(value);
  Any back = Read(text);
  EXPECT_EQ(Write(back), text);
  return back;
}

// ---- writing -------------------------------------------------------------------------------

TEST(ToJSONGraph, Leaves) {
  EXPECT_EQ(Write(nullptr), Doc(R"({"type":"None"})"));
  EXPECT_EQ(Write(true), Doc(R"({"type":"bool","data":true})"));
  EXPECT_EQ(Write(-3), Doc(R"({"type":"int","data":-3})"));
  EXPECT_EQ(Write(2.0), Doc(R"({"type":"float","data":2.0})"));
  EXPECT_EQ(Write(DLDataType{kDLFloat, 32, 4}), Doc(R"({"type":"DataType","data":"float32x4"})"));
  EXPECT_EQ(Write(DLDevice{kDLCUDA, 1}), Doc(R"({"type":"Device","data":[2,1]})"));
  EXPECT_EQ(Write("short"), Doc(R"({"type":"ffi.String","data":"short"})"));
  EXPECT_EQ(Write(String("a longer string")),
            Doc(R"({"type":"ffi.String","data":"a longer string"})"));
  EXPECT_EQ(Write(Bytes("abc", 3)), Doc(R"({"type":"ffi.Bytes","data":"YWJj"})"));
  EXPECT_EQ(Write(Bytes(std::string("abcdefghij"))),
            Doc(R"({"type":"ffi.Bytes","data":"YWJjZGVmZ2hpag=="})"));
  EXPECT_EQ(Write(Shape{1, 2}), Doc(R"({"type":"ffi.Shape","data":[1,2]})"));
}

TEST(ToJSONGraph, ContainersReferToNodes) {
  EXPECT_EQ(Write(Array<Any>{1, 1, "a", "a", 2.0}),
            R"({"root_index":3,"nodes":[{"type":"int","data":1},{"type":"ffi.String","data":"a"},)"
            R"({"type":"float","data":2.0},{"type":"ffi.Array","data":[0,0,1,1,2]}]})");
  EXPECT_EQ(Write(Map<Any, Any>{{"a", Array<Any>{1, 2}}}),
            R"({"root_index":4,"nodes":[{"type":"ffi.String","data":"a"},)"
            R"({"type":"int","data":1},{"type":"int","data":2},)"
            R"({"type":"ffi.Array","data":[1,2]},{"type":"ffi.Map","data":[0,3]}]})");
  EXPECT_EQ(Write(List<Any>{List<Any>()}),
            R"({"root_index":1,"nodes":[{"type":"ffi.List","data":[]},)"
            R"({"type":"ffi.List","data":[0]}]})");
  EXPECT_EQ(Write(Dict<Any, Any>{{1, nullptr}}),
            R"({"root_index":2,"nodes":[{"type":"int","data":1},{"type":"None"},)"
            R"({"type":"ffi.Dict","data":[0,1]}]})");
}

TEST(ToJSONGraph, ObjectsWriteTheirFields) {
  EXPECT_EQ(Write(Parent(7, "x")), R"({"root_index":1,"nodes":[{"type":"ffi.String","data":"x"},)"
                                   R"({"type":"test.graph.Parent","data":{"id":7,"link":0}}]})");
  auto record = make_object<RecordObj>();
  record->number = 3;
  EXPECT_EQ(Write(ObjectRef(record)),
            R"({"root_index":4,"nodes":[{"type":"Device","data":[1,0]},)"
            R"({"type":"ffi.String","data":""},{"type":"None"},{"type":"ffi.Array","data":[]},)"
            R"({"type":"test.graph.Record","data":{"flag":false,"number":3,"real":0.0,)"
            R"("dtype":"float32","device":0,"name":1,"bytes":2,"anything":2,"items":3,)"
            R"("nothing":null}}]})");
  EXPECT_EQ(Write(ObjectRef(make_object<HookedObj>(4))),
            Doc(R"({"type":"test.graph.Hooked","data":{"v":4}})"));
  EXPECT_EQ(Write(EnumObj::_GetByStrIndex<ColorObj>("Green")),
            Doc(R"({"type":"test.graph.Color","data":"Green"})"));
  EXPECT_EQ(Write(EnumObj::_GetByIntIndex<LevelObj>(-5)),
            Doc(R"({"type":"test.graph.Level","data":-5})"));
}

TEST(ToJSONGraph, SharedValuesShareANode) {
  ObjectRef shared = Parent(1);
  EXPECT_EQ(Write(Array<Any>{shared, shared}),
            R"({"root_index":2,"nodes":[{"type":"None"},)"
            R"({"type":"test.graph.Parent","data":{"id":1,"link":0}},)"
            R"({"type":"ffi.Array","data":[1,1]}]})");
}

TEST(ToJSONGraph, MetadataIsOptional) {
  EXPECT_EQ(Write(1, json::Object{{"v", 1}}),
            R"({"root_index":0,"nodes":[{"type":"int","data":1}],"metadata":{"v":1}})");
  EXPECT_EQ(Write(1, 5), R"({"root_index":0,"nodes":[{"type":"int","data":1}],"metadata":5})");
}

TEST(ToJSONGraph, RefusesWhatCannotComeBack) {
  EXPECT_EQ(ErrorText([] { ToJSONGraph(reinterpret_cast<void*>(16)); }),
            "RuntimeError: Cannot serialize type `void*`");
  EXPECT_EQ(ErrorText([] { ToJSONGraph(Array<Any>{Function::FromTyped([] {})}); }),
            "TypeError: Type `ffi.Function` does not support ToJSONGraph (no native creator or "
            "__ffi_new__ type attr)");
  EXPECT_EQ(
      ErrorText([] { ToJSONGraph(ObjectRef(make_object<NoCreatorObj>(1))); }),
      "TypeError: Type `test.graph.NoCreator` does not support ToJSONGraph (no native creator "
      "or __ffi_new__ type attr)");
}

TEST(JSONGraph, ObjectsWithoutDefaultConstructorAreMadeByTheirConstructor) {
  auto inner = make_object<ByConstructorObj>("inner", 1);
  auto outer = make_object<ByConstructorObj>("outer", 2);
  outer->id = 1.5;
  outer->next = ObjectRef(inner);
  Any read = FromJSONGraph(ToJSONGraph(ObjectRef(outer)));
  const auto* copy = read.as<ByConstructorObj>();
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->id, 1.5);
  EXPECT_EQ(copy->name, "outer");
  EXPECT_EQ(copy->more, 102);
  EXPECT_EQ(Any(copy->next).as<ByConstructorObj>()->more, 101);
  EXPECT_EQ(ErrorText([] { ToJSONGraph(ObjectRef(make_object<OtherConstructorObj>(1.0))); }),
            "TypeError: Type `test.graph.OtherConstructor` does not support ToJSONGraph (no native "
            "creator or __ffi_new__ type attr)");
}

TEST(ToJSONGraph, CyclesAreErrors) {
  List<Any> list{1};
  list.push_back(Array<Any>{list});
  const std::string in_list =
      "ValueError: Cycle detected during serialization: a List contains itself";
  EXPECT_EQ(ErrorText([&] { ToJSONGraph(list); }), in_list);
  EXPECT_EQ(ErrorText([&] { ToJSONGraph(list[1]); }), in_list);
  list.clear();
  Dict<Any, Any> dict;
  dict.Set("self", dict);
  EXPECT_EQ(ErrorText([&] { ToJSONGraph(dict); }),
            "ValueError: Cycle detected during serialization: a Dict contains itself");
  dict.clear();
  auto parent = make_object<ParentObj>(1, nullptr);
  parent->link = Array<Any>{ObjectRef(parent)};
  EXPECT_EQ(ErrorText([&] { ToJSONGraph(ObjectRef(parent)); }),
            "ValueError: Cycle detected during serialization: an object of type "
            "`test.graph.Parent` contains itself");
  parent->link = nullptr;
}

// ---- round trips ---------------------------------------------------------------------------

TEST(JSONGraph, RoundTripsKeepTypeAndValue) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<Any> values = {
      nullptr,
      true,
      false,
      0,
      INT64_MIN,
      INT64_MAX,
      0.5,
      -0.0,
      1e-300,
      1e300,
      inf,
      String(""),
      String("quote \" slash / \\ \n tab\t \xc3\xa9 \x01"),
      Bytes("", 0),
      Bytes(std::string("\0\xff raw", 6)),
      DLDataType{kDLBool, 8, 1},
      DLDataType{kDLInt, 32, 1},
      DLDevice{kDLCPU, 0},
      DLDevice{kDLCUDA, 3},
      Shape(),
      Shape{1, -2},
      Array<Any>(),
      Array<Any>{1, Array<Any>{2.5, nullptr}, "x"},
      List<Any>{1, List<Any>()},
      Map<Any, Any>(),
      Map<Any, Any>{{"a", 1}, {2, "b"}, {nullptr, true}, {1.5, 2}, {"z", "z"}},
      Dict<Any, Any>{{"a", Dict<Any, Any>{{1, 2}}}},
      Parent(1, Parent(2, Array<Any>{"deep"}))};
  for (const Any& value : values) {
    Any back = RoundTrip(value);
    EXPECT_TRUE(StructuralEqual()(value, back)) << Write(value);
  }
  EXPECT_TRUE(std::isnan(RoundTrip(std::nan("")).cast<double>()));
}

TEST(JSONGraph, AllFieldsComeBack) {
  auto record = make_object<RecordObj>();
  record->flag = true;
  record->number = -4;
  record->real = 2.5;
  record->dtype = DLDataType{kDLInt, 8, 2};
  record->device = DLDevice{kDLCUDA, 2};
  record->name = "name";
  record->bytes = Bytes("xyz", 3);
  record->anything = Map<Any, Any>{{"k", 1}};
  record->items = Array<Any>{1, "two"};
  Any back = RoundTrip(ObjectRef(record));
  const auto* copy = back.as<RecordObj>();
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->flag, true);
  EXPECT_EQ(copy->number, -4);
  EXPECT_EQ(copy->real, 2.5);
  EXPECT_TRUE(copy->dtype == record->dtype);
  EXPECT_EQ(copy->device.device_id, 2);
  EXPECT_EQ(copy->name, "name");
  EXPECT_EQ(copy->bytes.value().size(), 3U);
  EXPECT_EQ(copy->anything.cast<json::Object>().at("k").cast<int>(), 1);
  EXPECT_EQ(copy->items.size(), 2U);
}

TEST(JSONGraph, IdentityIsKept) {
  ObjectRef shared = Parent(1);
  List<Any> list{5};
  Any back = RoundTrip(Array<Any>{shared, shared, list, list, Parent(2, shared)});
  Array<Any> array = back.cast<Array<Any>>();
  EXPECT_TRUE(array[0].same_as(array[1]));
  EXPECT_TRUE(array[2].same_as(array[3]));
  EXPECT_TRUE(array[4].as<ParentObj>()->link.same_as(array[0]));
  EXPECT_TRUE(RoundTrip(EnumObj::_GetByStrIndex<ColorObj>("Red"))
                  .same_as(EnumObj::_GetByStrIndex<ColorObj>("Red")));
  EXPECT_TRUE(RoundTrip(EnumObj::_GetByIntIndex<LevelObj>(7))
                  .same_as(EnumObj::_GetByStrIndex<LevelObj>("High")));
  EXPECT_EQ(RoundTrip(ObjectRef(make_object<HookedObj>(4))).as<HookedObj>()->value, 4);
}

TEST(JSONGraph, LongChains) {
  constexpr int kDepth = 100000;
  Any objects = nullptr;
  Any lists = 1;
  for (int i = 0; i < kDepth; ++i) {
    objects = Parent(i, objects);
    lists = List<Any>{lists};
  }
  EXPECT_TRUE(StructuralEqual()(FromJSONGraph(ToJSONGraph(objects)), objects));
  EXPECT_TRUE(StructuralEqual()(FromJSONGraph(ToJSONGraph(lists)), lists));
}

// ---- reading -------------------------------------------------------------------------------

TEST(FromJSONGraph, NodesMayComeInAnyOrder) {
  Any value = Read(Doc(R"({"type":"ffi.Array","data":[2,1]},{"type":"int","data":1},)"
                       R"({"type":"ffi.List","data":[1,1]},{"type":"never read","data":1})"));
  Array<Any> array = value.cast<Array<Any>>();
  EXPECT_EQ(array[0].cast<List<Any>>().size(), 2U);
  EXPECT_EQ(array[1].cast<int>(), 1);
}

TEST(FromJSONGraph, AbsentFieldsTakeDefaults) {
  Any value = Read(Doc(R"({"type":"test.graph.Child","data":{"id":3,"link":1,"unknown":[]}},)"
                       R"({"type":"None"})"));
  const auto* child = value.as<ChildObj>();
  ASSERT_NE(child, nullptr);
  EXPECT_EQ(child->id, 3);
  EXPECT_EQ(child->with_default, 11);
  EXPECT_EQ(child->from_factory.size(), 1U);
  EXPECT_EQ(Read(Doc(R"({"type":"ffi.VisitInterrupt","data":{}})")).GetTypeKey(),
            "ffi.VisitInterrupt");
}

TEST(FromJSONGraph, NumbersConvert) {
  EXPECT_EQ(Read(Doc(R"({"type":"int","data":true})")).as<int64_t>(), 1);
  EXPECT_EQ(Read(Doc(R"({"type":"bool","data":1})")).as<bool>(), true);
  EXPECT_EQ(Read(Doc(R"({"type":"float","data":1})")).as<double>(), 1.0);
  EXPECT_EQ(Read(Doc(R"({"type":"None","data":5})")), nullptr);
}

struct BadDocument {
  std::string text;
  std::string error;  // part of "Kind: message"
};

TEST(FromJSONGraph, MalformedDocumentsAreErrors) {
  const std::string invalid = "ValueError: Invalid JSON Object Graph";
  const std::string no_key = "KeyError: Invalid JSON Object Graph: node 0 has no key ";
  const std::string bad_index = invalid + ": invalid node index ";
  auto parent = [](const char* data) {
    return Doc(std::string(R"({"type":"test.graph.Parent","data":)") + data +
               R"(},{"type":"None"})");
  };
  auto node = [](const char* type, const char* data) {
    return Doc(std::string("{\"type\":\"") + type + "\",\"data\":" + data + "}");
  };
  const std::vector<BadDocument> documents = {
      {"null", invalid + ", expected an object"},
      {"1", invalid + ", expected an object"},
      {"\"x\"", invalid + ", expected an object"},
      {"[]", invalid + ", expected an object"},
      {"{}", invalid + ", expected `root_index` integer field"},
      {R"({"nodes":[]})", invalid + ", expected `root_index` integer field"},
      {R"({"root_index":"0","nodes":[]})", invalid + ", expected `root_index` integer field"},
      {R"({"root_index":true,"nodes":[]})", invalid + ", expected `root_index` integer field"},
      {R"({"root_index":0.0,"nodes":[]})", invalid + ", expected `root_index` integer field"},
      {R"({"root_index":0})", invalid + ", expected `nodes` array field"},
      {R"({"root_index":0,"nodes":{}})", invalid + ", expected `nodes` array field"},
      {R"({"root_index":0,"nodes":null})", invalid + ", expected `nodes` array field"},
      {R"({"root_index":0,"nodes":[]})", bad_index + "0"},
      {R"({"root_index":-1,"nodes":[{"type":"None"}]})", bad_index + "-1"},
      {R"({"root_index":1,"nodes":[{"type":"None"}]})", bad_index + "1"},
      {R"({"root_index":9223372036854775807,"nodes":[{"type":"None"}]})",
       bad_index + "9223372036854775807"},
      {Doc("1"), "node 0: Cannot convert from type `int` to `Map<Any, Any>`"},
      {Doc("null"), "node 0: Cannot convert from type `None`"},
      {Doc("[]"), "node 0: Cannot convert from type `ffi.Array`"},
      {Doc("{}"), no_key + "`type`"},
      {Doc(R"({"data":1})"), no_key + "`type`"},
      {Doc(R"({"type":1})"), "node 0: Cannot convert from type `int` to `str`"},
      {Doc(R"({"type":"no.such.type"})"), "Cannot find type `no.such.type`"},
      {Doc(R"({"type":""})"), "Cannot find type ``"},
      {Doc(R"({"type":"int"})"), no_key + "`data`"},
      {node("int", "\"x\""), "TypeError: Cannot convert from type `ffi.SmallStr` to `int`"},
      {node("int", "1.5"), "TypeError: Cannot convert from type `float` to `int`"},
      {node("int", "null"), "TypeError: Cannot convert from type `None` to `int`"},
      {node("bool", "\"x\""), "TypeError: Cannot convert from type `ffi.SmallStr` to `bool`"},
      {node("float", "\"x\""), "TypeError: Cannot convert from type `ffi.SmallStr` to `float`"},
      {node("DataType", "\"zzz\""), "ValueError: unknown dtype `zzz`"},
      {node("DataType", "5"), "TypeError: Cannot convert from type `int` to `str`"},
      {node("Device", "[1]"), "Device data must be an array of [device_type, device_id], got 1"},
      {node("Device", "[1,2,3]"), "[device_type, device_id], got 3 element(s)"},
      {node("Device", "\"cpu\""), "TypeError: Cannot convert from type `ffi.SmallStr`"},
      {node("Device", "[\"a\",0]"),
       "TypeError: Cannot convert from type `Array[index 0: ffi.SmallStr]` to `Array<int>`"},
      {node("Device", "[1,4294967296]"), "ValueError: Invalid JSON Object Graph: Device data out"},
      {node("ffi.String", "5"), "TypeError: Cannot convert from type `int` to `str`"},
      {node("ffi.Bytes", "\"abc\""), "invalid base64 encoding"},
      {node("ffi.Bytes", "5"), "TypeError: Cannot convert from type `int` to `str`"},
      {node("ffi.Array", "5"), "TypeError: Cannot convert from type `int` to `Array<Any>`"},
      {node("ffi.Array", "[\"a\"]"), "TypeError: Cannot convert from type `ffi.SmallStr` to `int`"},
      {node("ffi.Array", "[1.0]"), "TypeError: Cannot convert from type `float` to `int`"},
      {node("ffi.Array", "[7]"), bad_index + "7"},
      {node("ffi.Array", "[-1]"), bad_index + "-1"},
      {Doc(R"({"type":"ffi.Array"})"), no_key + "`data`"},
      {node("ffi.List", "{}"), "TypeError: Cannot convert from type `ffi.Map` to `Array<Any>`"},
      {Doc(R"({"type":"ffi.Map","data":[1]},{"type":"None"})"),
       "Map/Dict data must contain an even number of [key, value] entries, got 1"},
      {Doc(R"({"type":"ffi.Dict","data":[1,1,1]},{"type":"None"})"),
       "Map/Dict data must contain an even number of [key, value] entries, got 3"},
      {Doc(R"({"type":"ffi.Map","data":[1,9]},{"type":"None"})"), bad_index + "9"},
      {node("ffi.Shape", "[\"x\"]"), "`Array[index 0: ffi.SmallStr]` to `Array<int>`"},
      {node("ffi.Shape", "[1.5]"), "`Array[index 0: float]` to `Array<int>`"},
      {node("ffi.Shape", "5"), "TypeError: Cannot convert from type `int` to `Array<int>`"},
      {node("ffi.Array", "[0]"), invalid + ": node 0 contains itself"},
      {Doc(R"({"type":"ffi.Map","data":[1,2]},{"type":"None"},{"type":"ffi.List","data":[1,0]})"),
       invalid + ": node 0 contains itself"},
      {parent(R"({"id":1,"link":0})"), invalid + ": node 0 contains itself"},
      {node("ffi.Function", "{}"), "RuntimeError: Type `ffi.Function` does not support"},
      {node("ffi.Tensor", "{}"), "RuntimeError: Type `ffi.Tensor` does not support"},
      {node("ffi.Object", "{}"), "RuntimeError: Type `ffi.Object` does not support"},
      {node("ffi.Error", "{}"), "RuntimeError: Type `ffi.Error` does not support"},
      {node("ffi.Module", "{}"), "RuntimeError: Type `ffi.Module` does not support"},
      {node("ffi.OpaquePyObject", "{}"), "RuntimeError: Type `ffi.OpaquePyObject` does not"},
      {node("void*", "5"), "RuntimeError: Type `void*` does not support"},
      {node("ffi.SmallStr", "\"a\""), "RuntimeError: Type `ffi.SmallStr` does not support"},
      {node("test.graph.NoCreator", "{}"), "RuntimeError: Type `test.graph.NoCreator` does not"},
      {parent("5"), "TypeError: Cannot convert from type `int` to `Map<Any, Any>`"},
      {parent("[]"), "TypeError: Cannot convert from type `ffi.Array` to `Map<Any, Any>`"},
      {parent("{}"), "TypeError: Required field `id` not set in type `test.graph.Parent`"},
      {parent(R"({"id":1})"),
       "TypeError: Required field `link` not set in type `test.graph.Parent`"},
      {parent(R"({"id":"x","link":1})"),
       "TypeError: Field `id` of type `test.graph.Parent`: Cannot convert from type "
       "`ffi.SmallStr` to `int`"},
      {parent(R"({"id":null,"link":1})"), "Field `id` of type `test.graph.Parent`"},
      {parent(R"({"id":1,"link":"x"})"), "TypeError: Field `link` of type `test.graph.Parent`"},
      {parent(R"({"id":1,"link":99})"),
       "ValueError: Field `link` of type `test.graph.Parent`: Invalid JSON Object Graph: invalid "
       "node index 99"},
      {Doc(R"({"type":"test.graph.Child","data":{"id":1,"link":1,"from_factory":1}},)"
           R"({"type":"int","data":3})"),
       "TypeError: Field `from_factory` of type `test.graph.Child`"},
      {node("test.graph.Even", R"({"value":3})"),
       "ValueError: Field `value` of type `test.graph.Even`: not even"},
      {node("test.graph.Color", "\"Blue\""),
       "ValueError: Enum `test.graph.Color` has no instance with index Blue"},
      {node("test.graph.Color", "0"), "TypeError: Cannot convert from type `int` to `str`"},
      {node("test.graph.Level", "8"), "ValueError: Enum `test.graph.Level` has no instance"},
      {node("test.graph.Level", "\"Low\""), "TypeError: Cannot convert from type"},
      {node("test.graph.Hooked", "{}"), "KeyError: key is not in Map"},
      {node("test.graph.Hooked", "5"), "TypeError"},
  };
  EXPECT_GE(documents.size(), 40U);
  for (const BadDocument& document : documents) {
    std::string error = ErrorText([&] { Read(document.text); });
    EXPECT_TRUE(Contains(error, document.error)) << document.text << "\n gave " << error;
  }
}

TEST(JSONGraph, GlobalFunctions) {
  Function to_graph = Function::GetGlobalRequired("ffi.ToJSONGraph");
  Function to_string = Function::GetGlobalRequired("ffi.ToJSONGraphString");
  Function from_graph = Function::GetGlobalRequired("ffi.FromJSONGraph");
  Function from_string = Function::GetGlobalRequired("ffi.FromJSONGraphString");
  EXPECT_EQ(from_graph(to_graph(5, nullptr)).cast<int>(), 5);
  EXPECT_EQ(to_string(5, nullptr).cast<String>(), Doc(R"({"type":"int","data":5})"));
  EXPECT_EQ(from_string(to_string("x", 1)).cast<String>(), "x");
  EXPECT_TRUE(Contains(ErrorText([&] { from_string(""); }), "ValueError: Expecting value"));
  EXPECT_TRUE(Contains(ErrorText([&] { to_string(5); }), "TypeError: Mismatched number"));
}

}  // namespace
