// SPDX-License-Identifier: Apache-2.0
// reflection/registry.h, accessor.h and creator.h: what is registered, and what is read back.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/container/tuple.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/reflection/creator.h>
#include <tvm/ffi/reflection/registry.h>

#include <limits>
#include <string>

namespace {

using namespace tvm::ffi;
namespace refl = tvm::ffi::reflection;

// ---- Classes ------------------------------------------------------------------------------------

struct PaddedBase {
  int64_t before[4] = {1, 2, 3, 4};
};

class ShiftedObj : public PaddedBase, public Object {
 public:
  int64_t first = 7;
  int32_t second = 8;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_reflection.Shifted", ShiftedObj, Object);
};

class VirtualObj : public Object {
 public:
  virtual int64_t Twice() const { return 2 * value; }
  int64_t value = 5;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_reflection.Virtual", VirtualObj, Object);
};

class PointObj : public Object {
 public:
  int64_t x = 0;
  int64_t y = 0;
  String name;

  PointObj() = default;
  PointObj(int64_t x, int64_t y) : x(x), y(y) {}
  int64_t Sum() const { return x + y; }
  int64_t Shift(int64_t by) { return x += by; }

  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO("test_reflection.Point", PointObj, Object);
};

class Point : public ObjectRef {
 public:
  Point(int64_t x, int64_t y) { data_ = make_object<PointObj>(x, y); }
  int64_t SumOfRef() const { return get()->x + get()->y; }
  int64_t ShiftOfRef(int64_t by) { return get()->x += by; }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Point, ObjectRef, PointObj);
};

class Point3Obj : public PointObj {
 public:
  int64_t z = 0;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_reflection.Point3", Point3Obj, PointObj);
};

enum class SmallEnum : uint8_t { kA = 1, kB = 200 };
enum class SignedEnum : int16_t { kMinus = -3 };
enum class WideEnum : uint64_t { kBig = 1 };

// One field of every kind that has a rule of its own.
class AllFieldsObj : public Object {
 public:
  bool f_bool = true;
  StrictBool f_strict_bool = true;
  int8_t f_i8 = -8;
  uint8_t f_u8 = 250;
  int16_t f_i16 = -16;
  uint16_t f_u16 = 65535;
  int32_t f_i32 = -32;
  uint32_t f_u32 = 4000000000u;
  int64_t f_i64 = -64;
  uint64_t f_u64 = 64;
  float f_f32 = 1.5f;
  double f_f64 = 2.5;
  long double f_f128 = 3.5;
  SmallEnum f_enum_u8 = SmallEnum::kB;
  SignedEnum f_enum_i16 = SignedEnum::kMinus;
  WideEnum f_enum_u64 = WideEnum::kBig;
  void* f_ptr = nullptr;
  DLDataType f_dtype = {kDLFloat, 32, 1};
  DLDevice f_device = {kDLCPU, 0};
  DLTensor* f_dltensor = nullptr;
  Any f_any;
  String f_string;
  Bytes f_bytes;
  Optional<int64_t> f_opt_int;
  Optional<String> f_opt_str;
  Optional<ObjectRef> f_opt_obj;
  Optional<Array<int>> f_opt_array;
  Optional<ObjectPtr<PointObj>> f_opt_ptr;
  Variant<int64_t, String> f_variant = int64_t{1};
  ObjectRef f_object;
  ObjectPtr<PointObj> f_object_ptr;
  Array<Any> f_array;
  List<Any> f_list;
  Map<Any, Any> f_map;
  Dict<Any, Any> f_dict;
  Tuple<int, int> f_tuple;
  Shape f_shape = Shape({1, 2});
  Tensor f_tensor;
  Function f_function;
  TypedFunction<int(int)> f_typed_function;
  Error f_error = Error("ValueError", "x", "");

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_reflection.AllFields", AllFieldsObj, Object);
};

class TraitsObj : public Object {
 public:
  int64_t plain = 0, no_repr = 0, no_compare = 0, no_hash = 0, no_init = 0, kw = 0, ignored = 0;
  int64_t def_rec = 0, def_nonrec = 0, with_default = 0, doc_first = 0, doc_last = 0, meta = 0;
  int64_t dropped_doc = 0;
  List<Any> made;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_reflection.Traits", TraitsObj, Object);
};

class NoDefaultObj : public Object {
 public:
  int64_t value;
  Any any;
  explicit NoDefaultObj(int64_t value) : value(value) {}
  NoDefaultObj(Any first, AnyView second) : value(second.cast<int64_t>()), any(std::move(first)) {}
  NoDefaultObj(const NoDefaultObj&) = delete;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_reflection.NoDefault", NoDefaultObj, Object);
};

class UnsafeInitObj : public Object {
 public:
  Arc<PointObj> point;
  explicit UnsafeInitObj(UnsafeInit tag) : point(tag) {}
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_reflection.UnsafeInit", UnsafeInitObj, Object);
};

class NoInitObj : public Object {
 public:
  int64_t x = 0;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_reflection.NoInit", NoInitObj, Object);
};

class BareObj : public Object {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_reflection.Bare", BareObj, Object);
};

class AttrsObj : public Object {
 public:
  int64_t Method(int64_t x) const { return x + 1; }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_reflection.Attrs", AttrsObj, Object);
};

class AttrsEarlyObj : public Object {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_reflection.AttrsEarly", AttrsEarlyObj, Object);
};

int factory_calls = 0;

int64_t FreeAdd(int64_t a, int64_t b) { return a + b; }

const char* const kVariableDoc = "not a literal";

// Registered here so that it runs before any dynamic initialiser of this file.
TVM_FFI_STATIC_INIT_BLOCK() {
  // An attribute may come before the class itself is registered.
  refl::TypeAttrDef<AttrsEarlyObj>().attr("__test_early__", 11);
  refl::ObjectDef<AttrsEarlyObj>();

  refl::ObjectDef<ShiftedObj>()
      .def_rw("first", &ShiftedObj::first)
      .def_ro("second", &ShiftedObj::second);
  refl::ObjectDef<VirtualObj>()
      .def_rw("value", &VirtualObj::value)
      .def("twice", &VirtualObj::Twice);
  refl::ObjectDef<PointObj>("A point.")
      .def(refl::init<int64_t, int64_t>(), "Makes a point.")
      .def_rw("x", &PointObj::x, "First coordinate.")
      .def_ro("y", &PointObj::y, refl::default_value(9))
      .def_rw("name", &PointObj::name, refl::default_value("none"))
      .def("sum", &PointObj::Sum, "x + y.")
      .def("shift", &PointObj::Shift)
      .def("sum_ref", &Point::SumOfRef)
      .def("shift_ref", &Point::ShiftOfRef)
      .def("scaled", [](const PointObj* self, double by) { return by * (self->x + self->y); })
      .def_static("add", FreeAdd, refl::Metadata({{"level", 3}}))
      .def_convert<Point>();
  refl::ObjectDef<Point3Obj>().def_rw("z", &Point3Obj::z, refl::default_value(1));
  refl::ObjectDef<AllFieldsObj>()
      .def_rw("f_bool", &AllFieldsObj::f_bool)
      .def_rw("f_strict_bool", &AllFieldsObj::f_strict_bool)
      .def_rw("f_i8", &AllFieldsObj::f_i8)
      .def_rw("f_u8", &AllFieldsObj::f_u8)
      .def_rw("f_i16", &AllFieldsObj::f_i16)
      .def_rw("f_u16", &AllFieldsObj::f_u16)
      .def_rw("f_i32", &AllFieldsObj::f_i32)
      .def_rw("f_u32", &AllFieldsObj::f_u32)
      .def_rw("f_i64", &AllFieldsObj::f_i64)
      .def_rw("f_u64", &AllFieldsObj::f_u64)
      .def_rw("f_f32", &AllFieldsObj::f_f32)
      .def_rw("f_f64", &AllFieldsObj::f_f64)
      .def_rw("f_f128", &AllFieldsObj::f_f128)
      .def_rw("f_enum_u8", &AllFieldsObj::f_enum_u8)
      .def_rw("f_enum_i16", &AllFieldsObj::f_enum_i16)
      .def_rw("f_enum_u64", &AllFieldsObj::f_enum_u64)
      .def_rw("f_ptr", &AllFieldsObj::f_ptr)
      .def_rw("f_dtype", &AllFieldsObj::f_dtype)
      .def_rw("f_device", &AllFieldsObj::f_device)
      .def_ro("f_dltensor", &AllFieldsObj::f_dltensor)
      .def_rw("f_any", &AllFieldsObj::f_any)
      .def_rw("f_string", &AllFieldsObj::f_string)
      .def_rw("f_bytes", &AllFieldsObj::f_bytes)
      .def_rw("f_opt_int", &AllFieldsObj::f_opt_int)
      .def_rw("f_opt_str", &AllFieldsObj::f_opt_str)
      .def_rw("f_opt_obj", &AllFieldsObj::f_opt_obj)
      .def_rw("f_opt_array", &AllFieldsObj::f_opt_array)
      .def_rw("f_opt_ptr", &AllFieldsObj::f_opt_ptr)
      .def_rw("f_variant", &AllFieldsObj::f_variant)
      .def_rw("f_object", &AllFieldsObj::f_object)
      .def_rw("f_object_ptr", &AllFieldsObj::f_object_ptr)
      .def_rw("f_array", &AllFieldsObj::f_array)
      .def_rw("f_list", &AllFieldsObj::f_list)
      .def_rw("f_map", &AllFieldsObj::f_map)
      .def_rw("f_dict", &AllFieldsObj::f_dict)
      .def_rw("f_tuple", &AllFieldsObj::f_tuple)
      .def_rw("f_shape", &AllFieldsObj::f_shape)
      .def_rw("f_tensor", &AllFieldsObj::f_tensor)
      .def_rw("f_function", &AllFieldsObj::f_function)
      .def_rw("f_typed_function", &AllFieldsObj::f_typed_function)
      .def_rw("f_error", &AllFieldsObj::f_error);
  refl::ObjectDef<TraitsObj>()
      .def_rw("plain", &TraitsObj::plain, refl::default_value(0))
      .def_rw("no_repr", &TraitsObj::no_repr, refl::default_value(0), refl::repr(false))
      .def_rw("no_compare", &TraitsObj::no_compare, refl::default_value(0), refl::compare(false))
      .def_rw("no_hash", &TraitsObj::no_hash, refl::default_value(0), refl::hash(false))
      .def_rw("no_init", &TraitsObj::no_init, refl::default_value(0), refl::init(false))
      .def_rw("kw", &TraitsObj::kw, refl::default_value(0), refl::kw_only(true))
      .def_rw("ignored", &TraitsObj::ignored, refl::default_value(0),
              refl::AttachFieldFlag::SEqHashIgnore())
      .def_rw("def_rec", &TraitsObj::def_rec, refl::default_value(0),
              refl::AttachFieldFlag::SEqHashDefRecursive())
      .def_rw("def_nonrec", &TraitsObj::def_nonrec, refl::default_value(0),
              refl::AttachFieldFlag::SEqHashDefNonRecursive())
      .def_rw("with_default", &TraitsObj::with_default, refl::DefaultValue(42))
      .def_rw("doc_first", &TraitsObj::doc_first, "the doc", refl::default_value(1))
      .def_rw("doc_last", &TraitsObj::doc_last, refl::default_value(1), "the doc")
      .def_rw("dropped_doc", &TraitsObj::dropped_doc, refl::default_value(1), kVariableDoc)
      .def_rw("meta", &TraitsObj::meta, refl::default_value(0),
              refl::Metadata({{"flag", true}, {"count", -3}, {"text", "a\"b"}}))
      .def_rw("made", &TraitsObj::made, refl::default_factory(Function::FromTyped([]() {
                ++factory_calls;
                return List<Any>();
              })));
  refl::ObjectDef<NoDefaultObj>()
      .def(refl::init<Any, AnyView>())
      .def_ro("value", &NoDefaultObj::value)
      .def_ro("any", &NoDefaultObj::any);
  refl::ObjectDef<UnsafeInitObj>().def_rw("point", &UnsafeInitObj::point);
  refl::ObjectDef<NoInitObj>(refl::init(false)).def_rw("x", &NoInitObj::x);
  refl::ObjectDef<AttrsObj>()
      .def_type_attr("__test_value__", 5)
      .def_type_attr("__test_text__", "literal")
      .def_type_attr("__test_lambda__", [](int64_t x) { return x * 2; })
      .def_type_attr("__test_method__", &AttrsObj::Method)
      .def_type_attr("__test_free__", FreeAdd);
  refl::TypeAttrDef<AttrsObj>()
      .def("__test2_string__", String("a heap string"))
      .def("__test2_std_string__", std::string("std"))
      .def("__test2_size__", size_t{17})
      .def("__test2_flag__", true)
      .def("__test2_free__", &FreeAdd)
      .attr("__test2_pointer__", reinterpret_cast<void*>(&FreeAdd));
  refl::TypeAttrDef<AttrsObj>().def("__test3_lambda__", [](AnyView v) { return v.type_index(); });

  refl::GlobalDef()
      .def("test_reflection.add", FreeAdd, "Adds.", refl::Metadata({{"pure", true}}))
      .def_packed("test_reflection.count", [](PackedArgs args, Any* rv) { *rv = args.size(); })
      .def_method("test_reflection.point_sum", &PointObj::Sum)
      .def_method("test_reflection.ref_shift", &Point::ShiftOfRef);
}

// ---- Helpers ------------------------------------------------------------------------------------

const TVMFFITypeInfo* InfoOf(std::string_view key) {
  return TVMFFIGetTypeInfo(TypeKeyToIndex(key));
}

const TVMFFIFieldInfo& Field(const char* key, const char* name) {
  return *refl::GetFieldInfo(key, name);
}

std::string Text(const TVMFFIByteArray& bytes) { return std::string(bytes.data, bytes.size); }

std::string MetadataOf(const char* key, const char* field) {
  return Text(Field(key, field).metadata);
}

AnyView Attr(const char* name, int32_t type_index) {
  return refl::TypeAttrColumn(name)[type_index];
}

template <typename F>
Error Catch(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return Error("NoError", "nothing was thrown", "");
}

// ---- Fields -------------------------------------------------------------------------------------

TEST(Reflection, OffsetsCountFromTheObjectHeader) {
  EXPECT_EQ(refl::GetFieldByteOffsetToObject(&PointObj::x), 24);
  EXPECT_EQ(refl::GetFieldByteOffsetToObject(&PointObj::y), 32);
  EXPECT_EQ(refl::GetFieldByteOffsetToObject(&ShiftedObj::first), 24);
  EXPECT_EQ(refl::GetFieldByteOffsetToObject(&ShiftedObj::second), 32);
  EXPECT_EQ(refl::GetFieldByteOffsetToObject(&VirtualObj::value), 24);
  EXPECT_EQ(Field("test_reflection.Shifted", "first").offset, 24);
  EXPECT_EQ(Field("test_reflection.Virtual", "value").offset, 24);
}

TEST(Reflection, FieldsOfClassesWithBytesBeforeTheHeaderAreReadAndWritten) {
  auto shifted = make_object<ShiftedObj>();
  ObjectRef ref(shifted);
  EXPECT_EQ(refl::FieldGetter("test_reflection.Shifted", "first")(ref).cast<int64_t>(), 7);
  refl::FieldSetter("test_reflection.Shifted", "first")(ref, 70);
  refl::FieldSetter("test_reflection.Shifted", "second")(ref, 80);
  EXPECT_EQ(shifted->first, 70);
  EXPECT_EQ(shifted->second, 80);
  EXPECT_EQ(shifted->before[3], 4);
  auto with_vtable = make_object<VirtualObj>();
  refl::FieldSetter("test_reflection.Virtual", "value")(ObjectRef(with_vtable), 6);
  Function twice = refl::GetMethod("test_reflection.Virtual", "twice");
  EXPECT_EQ(twice(ObjectRef(with_vtable)).cast<int64_t>(), 12);
}

TEST(Reflection, FieldRecordDescribesTheField) {
  const TVMFFIFieldInfo& x = Field("test_reflection.Point", "x");
  EXPECT_EQ(x.size, 8);
  EXPECT_EQ(x.alignment, 8);
  EXPECT_EQ(x.field_static_type_index, kTVMFFIInt);
  EXPECT_TRUE(x.flags & kTVMFFIFieldFlagBitMaskWritable);
  EXPECT_FALSE(x.flags & kTVMFFIFieldFlagBitMaskHasDefault);
  EXPECT_EQ(x.default_value_or_factory.type_index, kTVMFFINone);
  EXPECT_EQ(Text(x.doc), "First coordinate.");
  EXPECT_EQ(Text(x.metadata), R"({"type_schema":"{\"type\":\"int\"}"})");
  const TVMFFIFieldInfo& y = Field("test_reflection.Point", "y");
  EXPECT_FALSE(y.flags & kTVMFFIFieldFlagBitMaskWritable);
  EXPECT_TRUE(y.flags & kTVMFFIFieldFlagBitMaskHasDefault);
  EXPECT_EQ(AnyView::CopyFromTVMFFIAny(y.default_value_or_factory).cast<int64_t>(), 9);
  EXPECT_NE(y.setter, nullptr);
  EXPECT_EQ(y.doc.size, 0u);
  const TVMFFIFieldInfo& name = Field("test_reflection.Point", "name");
  EXPECT_EQ(AnyView::CopyFromTVMFFIAny(name.default_value_or_factory).cast<String>(), "none");
}

TEST(Reflection, EveryTraitSetsItsFlagAndNoOther) {
  const char* key = "test_reflection.Traits";
  const int64_t base = Field(key, "plain").flags;
  auto extra = [&](const char* name) { return Field(key, name).flags ^ base; };
  EXPECT_EQ(base & ~int64_t{kTVMFFIFieldFlagBitMaskPlain},
            kTVMFFIFieldFlagBitMaskWritable | kTVMFFIFieldFlagBitMaskHasDefault);
  EXPECT_EQ(extra("no_repr"), kTVMFFIFieldFlagBitMaskReprOff);
  EXPECT_EQ(extra("no_compare"), kTVMFFIFieldFlagBitMaskCompareOff);
  EXPECT_EQ(extra("no_hash"), kTVMFFIFieldFlagBitMaskHashOff);
  EXPECT_EQ(extra("no_init"), kTVMFFIFieldFlagBitMaskInitOff);
  EXPECT_EQ(extra("kw"), kTVMFFIFieldFlagBitMaskKwOnly);
  EXPECT_EQ(extra("ignored"), kTVMFFIFieldFlagBitMaskSEqHashIgnore);
  EXPECT_EQ(extra("def_rec"), kTVMFFIFieldFlagBitMaskSEqHashDefRecursive);
  EXPECT_EQ(extra("def_nonrec"), kTVMFFIFieldFlagBitMaskSEqHashDefNonRecursive);
  EXPECT_EQ(extra("made"), kTVMFFIFieldFlagBitMaskDefaultFromFactory);
}

TEST(Reflection, DocMayComeBeforeOrAfterTraitsAndMustBeALiteral) {
  const char* key = "test_reflection.Traits";
  EXPECT_EQ(Text(Field(key, "doc_first").doc), "the doc");
  EXPECT_EQ(Text(Field(key, "doc_last").doc), "the doc");
  EXPECT_EQ(Field(key, "dropped_doc").doc.size, 0u);
}

TEST(Reflection, MetadataHoldsTheSchemaThenTheUsersEntries) {
  EXPECT_EQ(MetadataOf("test_reflection.Traits", "meta"),
            R"({"type_schema":"{\"type\":\"int\"}","flag":true,"count":-3,"text":"a\"b"})");
}

TEST(Reflection, MetadataOfAnotherKindIsATypeError) {
  Error error = Catch([] {
    refl::GlobalDef().def("test_reflection.bad_metadata", FreeAdd, refl::Metadata({{"f", 1.5}}));
  });
  EXPECT_EQ(error.kind(), "TypeError");
  EXPECT_EQ(error.message(),
            "Metadata can be only int, bool or string, but on key `f`, the type is float");
  EXPECT_FALSE(Function::GetGlobal("test_reflection.bad_metadata").has_value());
}

TEST(Reflection, StaticTypeIndexFollowsTheFieldType) {
  const char* key = "test_reflection.AllFields";
  auto index = [&](const char* name) { return Field(key, name).field_static_type_index; };
  for (const char* name : {"f_i8", "f_u8", "f_i16", "f_u16", "f_i32", "f_u32", "f_i64", "f_u64",
                           "f_enum_u8", "f_enum_i16", "f_enum_u64"}) {
    EXPECT_EQ(index(name), kTVMFFIInt) << name;
  }
  EXPECT_EQ(index("f_bool"), kTVMFFIBool);
  EXPECT_EQ(index("f_strict_bool"), kTVMFFIBool);
  EXPECT_EQ(index("f_f32"), kTVMFFIFloat);
  EXPECT_EQ(index("f_f64"), kTVMFFIFloat);
  EXPECT_EQ(index("f_ptr"), kTVMFFIOpaquePtr);
  EXPECT_EQ(index("f_dtype"), kTVMFFIDataType);
  EXPECT_EQ(index("f_device"), kTVMFFIDevice);
  EXPECT_EQ(index("f_dltensor"), kTVMFFIDLTensorPtr);
  for (const char* name : {"f_any", "f_string", "f_bytes", "f_opt_int", "f_opt_str", "f_opt_obj",
                           "f_opt_array", "f_opt_ptr", "f_variant"}) {
    EXPECT_EQ(index(name), kTVMFFIAny) << name;
  }
  for (const char* name : {"f_object", "f_object_ptr", "f_map", "f_dict", "f_tuple", "f_tensor",
                           "f_function", "f_error"}) {
    EXPECT_EQ(index(name), kTVMFFIObject) << name;
  }
  EXPECT_EQ(index("f_array"), kTVMFFIArray);
  EXPECT_EQ(index("f_list"), kTVMFFIList);
  EXPECT_EQ(index("f_shape"), kTVMFFIShape);
  EXPECT_EQ(index("f_typed_function"), kTVMFFIFunction);
}

TEST(Reflection, PlainFlagsMarkExactlyTheFieldsThatAreTheirRepresentation) {
  const char* key = "test_reflection.AllFields";
  auto plain = [&](const char* name) {
    return Field(key, name).flags &
           (kTVMFFIFieldFlagBitMaskPlain | kTVMFFIFieldFlagBitMaskPlainUnsigned);
  };
  for (const char* name :
       {"f_bool",     "f_strict_bool", "f_i8",     "f_i16",      "f_i32",           "f_i64",
        "f_enum_i16", "f_f32",         "f_f64",    "f_ptr",      "f_dtype",         "f_device",
        "f_any",      "f_string",      "f_bytes",  "f_opt_int",  "f_opt_str",       "f_variant",
        "f_object",   "f_object_ptr",  "f_array",  "f_list",     "f_map",           "f_dict",
        "f_tuple",    "f_shape",       "f_tensor", "f_function", "f_typed_function"}) {
    EXPECT_EQ(plain(name), kTVMFFIFieldFlagBitMaskPlain) << name;
  }
  for (const char* name : {"f_u8", "f_u16", "f_u32", "f_enum_u8"}) {
    EXPECT_EQ(plain(name), kTVMFFIFieldFlagBitMaskPlain | kTVMFFIFieldFlagBitMaskPlainUnsigned)
        << name;
  }
  // A pointer under the static type Any; a getter that may refuse; an object pointer behind a
  // vtable.
  for (const char* name : {"f_opt_obj", "f_opt_array", "f_opt_ptr", "f_u64", "f_enum_u64", "f_f128",
                           "f_dltensor", "f_error"}) {
    EXPECT_EQ(plain(name), 0) << name;
  }
}

// Reads a field the way a frontend does that trusts the Plain flag.
Any ReadPlain(const Object* object, const TVMFFIFieldInfo& field) {
  const char* at =
      reinterpret_cast<const char*>(details::ObjectUnsafe::GetHeader(object)) + field.offset;
  bool is_unsigned = field.flags & kTVMFFIFieldFlagBitMaskPlainUnsigned;
  auto load = [at](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  switch (field.field_static_type_index) {
    case kTVMFFIBool:
      return load(bool{});
    case kTVMFFIFloat:
      return field.size == 4 ? double{load(float{})} : load(double{});
    case kTVMFFIOpaquePtr:
      return load(static_cast<void*>(nullptr));
    case kTVMFFIDataType:
      return load(DLDataType{});
    case kTVMFFIDevice:
      return load(DLDevice{});
    case kTVMFFIAny:
      return AnyView::CopyFromTVMFFIAny(load(TVMFFIAny{}));
    case kTVMFFIInt:
      switch (field.size) {
        case 1:
          return is_unsigned ? int64_t{load(uint8_t{})} : int64_t{load(int8_t{})};
        case 2:
          return is_unsigned ? int64_t{load(uint16_t{})} : int64_t{load(int16_t{})};
        case 4:
          return is_unsigned ? int64_t{load(uint32_t{})} : int64_t{load(int32_t{})};
        default:
          return load(int64_t{});
      }
    default: {
      auto* pointer = load(static_cast<TVMFFIObject*>(nullptr));
      if (pointer == nullptr) return Any();
      return ObjectRef(details::ObjectUnsafe::ObjectPtrFromUnowned<Object>(pointer));
    }
  }
}

TEST(Reflection, PlainFieldsReadTheSameThroughMemoryAndThroughTheGetter) {
  auto object = make_object<AllFieldsObj>();
  object->f_any = String("a string on the heap");
  object->f_string = "short";
  object->f_bytes = Bytes("longer than seven", 17);
  object->f_opt_int = 3;
  object->f_variant = String("a variant with text");
  object->f_object = Point(1, 2);
  object->f_object_ptr = make_object<PointObj>(3, 4);
  object->f_typed_function = [](int x) { return x; };
  const TVMFFITypeInfo* type = InfoOf("test_reflection.AllFields");
  int compared = 0;
  for (int32_t i = 0; i < type->num_fields; ++i) {
    const TVMFFIFieldInfo& field = type->fields[i];
    if (!(field.flags & kTVMFFIFieldFlagBitMaskPlain)) continue;
    Any by_getter = refl::FieldGetter(&field)(object.get());
    EXPECT_TRUE(AnyEqual()(by_getter, ReadPlain(object.get(), field))) << Text(field.name);
    ++compared;
  }
  EXPECT_EQ(compared, 33);
}

TEST(Reflection, ABadValueIsATypeErrorAndLeavesTheFieldAlone) {
  Point point(1, 2);
  refl::FieldSetter set_x("test_reflection.Point", "x");
  Error error = Catch([&] { set_x(point, "text"); });
  EXPECT_EQ(error.kind(), "TypeError");
  EXPECT_EQ(error.message(), "Cannot convert from type `const char*` to `int`");
  EXPECT_EQ(point->x, 1);
  refl::FieldSetter set_name("test_reflection.Point", "name");
  point->name = "kept";
  EXPECT_EQ(Catch([&] { set_name(point, 1); }).message(),
            "Cannot convert from type `int` to `str`");
  EXPECT_EQ(point->name, "kept");
  TVMFFIAny none = AnyView().CopyToTVMFFIAny();
  EXPECT_EQ(refl::CallFieldSetter(&Field("test_reflection.Point", "x"), &point->x, &none), -1);
  EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "TypeError");
}

TEST(Reflection, NoneIsRefusedByANonNullField) {
  auto object = make_object<UnsafeInitObj>(UnsafeInit{});
  Error error = Catch([&] {
    refl::FieldSetter("test_reflection.UnsafeInit", "point")(ObjectRef(object), nullptr);
  });
  EXPECT_EQ(error.kind(), "TypeError");
  EXPECT_NE(error.message().find("test_reflection.Point"), std::string::npos);
}

TEST(Reflection, TheSetterAlsoWritesReadOnlyFields) {
  Point point(1, 2);
  refl::FieldSetter("test_reflection.Point", "y")(point, 20);
  EXPECT_EQ(point->y, 20);
}

TEST(Reflection, GettersReturnOwnedValues) {
  auto object = make_object<AllFieldsObj>();
  object->f_object = Point(1, 2);
  refl::FieldGetter get("test_reflection.AllFields", "f_object");
  Any value = get(object);
  EXPECT_EQ(object->f_object.use_count(), 2);
  EXPECT_TRUE(value.same_as(object->f_object));
}

TEST(Reflection, AFieldThatCannotBeOwnedFailsToRead) {
  auto object = make_object<AllFieldsObj>();
  Error error =
      Catch([&] { refl::FieldGetter("test_reflection.AllFields", "f_dltensor")(object.get()); });
  EXPECT_EQ(error.kind(), "RuntimeError");
}

TEST(Reflection, AnUnsignedFieldAboveInt64IsAnOverflowError) {
  auto object = make_object<AllFieldsObj>();
  object->f_u64 = std::numeric_limits<uint64_t>::max();
  Error error =
      Catch([&] { refl::FieldGetter("test_reflection.AllFields", "f_u64")(object.get()); });
  EXPECT_EQ(error.kind(), "OverflowError");
}

TEST(Reflection, FieldNamesMatchExactly) {
  EXPECT_EQ(Text(refl::GetFieldInfo("test_reflection.Point", "name")->name), "name");
  for (const char* wrong : {"nam", "names", "", "x ", "X"}) {
    Error error = Catch([&] { refl::GetFieldInfo("test_reflection.Point", wrong); });
    EXPECT_EQ(error.kind(), "RuntimeError");
    EXPECT_EQ(error.message(),
              std::string("Cannot find field  `") + wrong + "` in test_reflection.Point");
  }
  // Inherited fields belong to the parent's record.
  EXPECT_EQ(Catch([] { refl::GetFieldInfo("test_reflection.Point3", "x"); }).kind(),
            "RuntimeError");
}

TEST(Reflection, UnknownTypeIsNamed) {
  Error error = Catch([] { refl::GetFieldInfo("test_reflection.Nothing", "x"); });
  EXPECT_EQ(error.kind(), "InternalError");
  EXPECT_NE(error.message().find("Cannot find type `test_reflection.Nothing`"), std::string::npos);
}

TEST(Reflection, DuplicateFieldsAndClassesAreRefused) {
  Error twice = Catch([] { refl::ObjectDef<PointObj>(); });
  EXPECT_EQ(twice.kind(), "RuntimeError");
  EXPECT_EQ(twice.message().find("Overriding test_reflection.Point, possible causes:"), 0u);
  TVMFFIFieldInfo copy = Field("test_reflection.Point", "x");
  EXPECT_EQ(TVMFFITypeRegisterField(PointObj::RuntimeTypeIndex(), &copy), -1);
  Error field = details::MoveFromSafeCallRaised();
  EXPECT_NE(field.message().find(R"(Duplicate field name "x" in type "test_reflection.Point")"),
            std::string::npos);
}

TEST(Reflection, FieldWalkGoesFromTheOldestAncestorToTheTypeItself) {
  const TVMFFITypeInfo* type = InfoOf("test_reflection.Point3");
  std::string seen;
  refl::ForEachFieldInfo(type,
                         [&](const TVMFFIFieldInfo* info) { seen += Text(info->name) + " "; });
  EXPECT_EQ(seen, "x y name z ");
  seen.clear();
  bool stopped = refl::ForEachFieldInfoWithEarlyStop(type, [&](const TVMFFIFieldInfo* info) {
    seen += Text(info->name) + " ";
    return Text(info->name) == "y";
  });
  EXPECT_TRUE(stopped);
  EXPECT_EQ(seen, "x y ");
  EXPECT_FALSE(
      refl::ForEachFieldInfoWithEarlyStop(type, [](const TVMFFIFieldInfo*) { return false; }));
}

TEST(Reflection, AFunctionSetterIsCalledWithTheFieldAddress) {
  Point point(1, 2);
  int calls = 0;
  Function setter = Function::FromTyped([&](void* address, int64_t value) {
    ++calls;
    *static_cast<int64_t*>(address) = value * 10;
  });
  TVMFFIFieldInfo info = Field("test_reflection.Point", "x");
  info.flags |= kTVMFFIFieldFlagBitSetterIsFunctionObj;
  info.setter = details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(setter);
  refl::FieldSetter set(&info);
  set(point, 5);
  EXPECT_EQ(point->x, 50);
  EXPECT_EQ(Catch([&] { set(point, "bad"); }).kind(), "TypeError");
  EXPECT_EQ(point->x, 50);
  EXPECT_EQ(calls, 1);
}

// ---- Methods and functions
// ------------------------------------------------------------------------

TEST(Reflection, MethodsTakeTheirObjectFirst) {
  Point point(1, 2);
  EXPECT_EQ(refl::GetMethod("test_reflection.Point", "sum")(point).cast<int64_t>(), 3);
  EXPECT_EQ(refl::GetMethod("test_reflection.Point", "shift")(point, 10).cast<int64_t>(), 11);
  EXPECT_EQ(refl::GetMethod("test_reflection.Point", "sum_ref")(point).cast<int64_t>(), 13);
  EXPECT_EQ(refl::GetMethod("test_reflection.Point", "shift_ref")(point, 1).cast<int64_t>(), 12);
  EXPECT_EQ(refl::GetMethod("test_reflection.Point", "scaled")(point, 2).cast<double>(), 28.0);
  EXPECT_EQ(refl::GetMethod("test_reflection.Point", "add")(3, 4).cast<int64_t>(), 7);
}

TEST(Reflection, MethodRecordDescribesTheMethod) {
  const TVMFFIMethodInfo* sum = refl::GetMethodInfo("test_reflection.Point", "sum");
  EXPECT_EQ(Text(sum->doc), "x + y.");
  EXPECT_EQ(sum->flags, 0);
  EXPECT_EQ(Text(sum->metadata), R"({"type_schema":"{\"type\":\"ffi.Function\",)"
                                 R"(\"named_args\":{\"return\":[{\"type\":\"int\"}],)"
                                 R"(\"params\":[{\"type\":\"test_reflection.Point\"}]}}"})");
  const TVMFFIMethodInfo* add = refl::GetMethodInfo("test_reflection.Point", "add");
  EXPECT_EQ(add->flags, kTVMFFIFieldFlagBitMaskIsStaticMethod);
  EXPECT_NE(Text(add->metadata).find(",\"level\":3}"), std::string::npos);
  Error error = Catch([] { refl::GetMethodInfo("test_reflection.Point", "nothing"); });
  EXPECT_EQ(error.message(), "Cannot find method nothing in test_reflection.Point");
}

TEST(Reflection, ErrorsOfMethodsNameTheMethod) {
  Function sum = refl::GetMethod("test_reflection.Point", "sum");
  EXPECT_EQ(Catch([&] { sum(1); }).message(),
            "Mismatched type on argument #0 when calling: `test_reflection.Point.sum(0: "
            "test_reflection.Point) -> int`. Expected `test_reflection.Point` but got `int`");
  Function shift = refl::GetMethod("test_reflection.Point", "shift");
  EXPECT_EQ(Catch([&] { shift(Point(1, 2)); }).message(),
            "Mismatched number of arguments when calling: `test_reflection.Point.shift(0: "
            "test_reflection.Point, 1: int) -> int`. Expected 2 but got 1 arguments");
}

TEST(Reflection, NamedParametersStandInTheMetadata) {
  auto join = [](String, Optional<String>, bool, int64_t, double, double) { return 0; };
  refl::GlobalDef().def("test_reflection.named", join, "Six.", refl::arg("plain"),
                        refl::arg("none", nullptr), refl::arg("flag", true), refl::arg("whole", -7),
                        refl::arg("real", 2.0),
                        refl::arg("big", std::numeric_limits<double>::infinity()));
  Function metadata = Function::GetGlobalRequired("ffi.GetGlobalFuncMetadata");
  std::string text = metadata("test_reflection.named").cast<String>();
  EXPECT_NE(text.find(R"("parameters":[{"name":"plain"},{"name":"none","default":null},)"
                      R"({"name":"flag","default":true},{"name":"whole","default":-7},)"
                      R"({"name":"real","default":2.0},{"name":"big","default":Infinity}])"),
            std::string::npos)
      << text;
  // The function itself takes positions only.
  EXPECT_EQ(Function::GetGlobalRequired("test_reflection.named")("a", "b", true, 1, 2.0, 3.0)
                .cast<int64_t>(),
            0);
}

TEST(Reflection, ADefaultThatCannotBeWrittenIsRefused) {
  Error error = Catch([] {
    refl::GlobalDef().def(
        "test_reflection.bad_default", [](Any) { return 0; }, refl::arg("x", Array<int64_t>{1}));
  });
  EXPECT_EQ(error.kind(), "TypeError");
  EXPECT_NE(error.message().find("that of `x` is ffi.Array"), std::string::npos) << error.message();
  EXPECT_FALSE(Function::GetGlobal("test_reflection.bad_default").has_value());
}

TEST(Reflection, GlobalFunctionsCarryNameSchemaAndMetadata) {
  Function metadata = Function::GetGlobalRequired("ffi.GetGlobalFuncMetadata");
  EXPECT_EQ(metadata("test_reflection.add").cast<String>(),
            R"({"type_schema":"{\"type\":\"ffi.Function\",)"
            R"(\"named_args\":{\"return\":[{\"type\":\"int\"}],)"
            R"(\"params\":[{\"type\":\"int\"},{\"type\":\"int\"}]}}","pure":true})");
  EXPECT_EQ(metadata("test_reflection.count").cast<String>(),
            R"({"type_schema":"{\"type\":\"ffi.Function\"}"})");
  EXPECT_EQ(Function::GetGlobalRequired("test_reflection.count")(1, 2, 3).cast<int>(), 3);
  Point point(5, 6);
  EXPECT_EQ(Function::GetGlobalRequired("test_reflection.point_sum")(point).cast<int>(), 11);
  Function::GetGlobalRequired("test_reflection.ref_shift")(point, 1);
  EXPECT_EQ(point->x, 6);
  Error error = Catch([] { Function::GetGlobalRequired("test_reflection.add")(1, "x"); });
  EXPECT_EQ(error.message(),
            "Mismatched type on argument #1 when calling: `test_reflection.add(0: int, 1: int) -> "
            "int`. Expected `int` but got `const char*`");
}

TEST(Reflection, AGlobalFunctionCannotBeRegisteredTwice) {
  Error error = Catch([] { refl::GlobalDef().def("test_reflection.add", FreeAdd); });
  EXPECT_EQ(error.kind(), "RuntimeError");
  EXPECT_EQ(error.message().find(
                "Global Function `test_reflection.add` is already registered, possible causes:"),
            0u);
}

// ---- Classes ------------------------------------------------------------------------------------

TEST(Reflection, ClassMetadataDescribesTheClass) {
  const TVMFFITypeMetadata* point = InfoOf("test_reflection.Point")->metadata;
  ASSERT_NE(point, nullptr);
  EXPECT_EQ(point->total_size, static_cast<int32_t>(sizeof(PointObj)));
  EXPECT_EQ(point->structural_eq_hash_kind, kTVMFFISEqHashKindTreeNode);
  EXPECT_EQ(Text(point->doc), "A point.");
  EXPECT_NE(point->creator, nullptr);
  EXPECT_EQ(InfoOf("test_reflection.NoDefault")->metadata->creator, nullptr);
  EXPECT_NE(InfoOf("test_reflection.UnsafeInit")->metadata->creator, nullptr);
}

TEST(Reflection, AnExplicitInitIsAMethodAndAnAttribute) {
  const TVMFFIMethodInfo* method = refl::GetMethodInfo("test_reflection.Point", "__ffi_init__");
  EXPECT_EQ(method->flags, kTVMFFIFieldFlagBitMaskIsStaticMethod);
  EXPECT_EQ(Text(method->doc), "Makes a point.");
  EXPECT_EQ(Text(method->metadata), R"({"type_schema":"{\"type\":\"ffi.Function\",)"
                                    R"(\"named_args\":{\"return\":[{\"type\":\"ffi.Object\"}],)"
                                    R"(\"params\":[{\"type\":\"int\"},{\"type\":\"int\"}]}}"})");
  AnyView attr = Attr("__ffi_init__", PointObj::RuntimeTypeIndex());
  EXPECT_TRUE(Any(attr).same_as(Any(AnyView::CopyFromTVMFFIAny(method->method))));
  Point made = attr.cast<Function>()(3, 4).cast<Point>();
  EXPECT_EQ(made->x, 3);
  EXPECT_EQ(made->y, 4);
  EXPECT_EQ(made.use_count(), 1);
}

TEST(Reflection, ConstructorsMayTakeAnyAndAnyView) {
  Function construct = refl::GetMethod("test_reflection.NoDefault", "__ffi_init__");
  Any made = construct("kept", 12);
  EXPECT_EQ(made.as<NoDefaultObj>()->value, 12);
  EXPECT_EQ(made.as<NoDefaultObj>()->any.cast<String>(), "kept");
}

TEST(Reflection, StandardAttributesAreNotMethods) {
  const TVMFFITypeInfo* type = InfoOf("test_reflection.Point3");
  EXPECT_EQ(type->num_methods, 0);
  int32_t index = type->type_index;
  EXPECT_EQ(Attr("__ffi_new__", index).type_index(), kTVMFFIFunction);
  EXPECT_EQ(Attr("__ffi_shallow_copy__", index).type_index(), kTVMFFIFunction);
  EXPECT_EQ(Attr("__ffi_init__", index).type_index(), kTVMFFIFunction);
  EXPECT_EQ(Attr("__ffi_init__", NoInitObj::RuntimeTypeIndex()), nullptr);
  EXPECT_NE(Attr("__ffi_new__", NoInitObj::RuntimeTypeIndex()), nullptr);
  EXPECT_EQ(Attr("__ffi_new__", NoDefaultObj::RuntimeTypeIndex()), nullptr);
  EXPECT_EQ(Attr("__ffi_shallow_copy__", NoDefaultObj::RuntimeTypeIndex()), nullptr);
}

TEST(Reflection, ShallowCopySharesChildrenAndChecksItsArgument) {
  auto source = make_object<AllFieldsObj>();
  source->f_object = Point(1, 2);
  Function copy = Attr("__ffi_shallow_copy__", AllFieldsObj::RuntimeTypeIndex()).cast<Function>();
  Any copied = copy(ObjectRef(source));
  const auto* copied_obj = copied.as<AllFieldsObj>();
  ASSERT_NE(copied_obj, nullptr);
  EXPECT_NE(copied_obj, source.get());
  EXPECT_TRUE(copied_obj->f_object.same_as(source->f_object));
  EXPECT_EQ(source->f_object.use_count(), 2);
  EXPECT_EQ(copied_obj->use_count(), 1u);
  Error error = Catch([&] { copy(Point(1, 2)); });
  EXPECT_EQ(error.kind(), "TypeError");
  EXPECT_NE(
      error.message().find("Expected `test_reflection.AllFields` but got `test_reflection.Point`"),
      std::string::npos);
  EXPECT_EQ(Catch([&] { copy(1); }).kind(), "TypeError");
  EXPECT_EQ(Catch([&] { copy(); }).kind(), "TypeError");
}

TEST(Reflection, NewMakesAnObjectWithOneReference) {
  Function create = Attr("__ffi_new__", PointObj::RuntimeTypeIndex()).cast<Function>();
  Any made = create();
  EXPECT_EQ(made.as<PointObj>()->use_count(), 1u);
  EXPECT_EQ(made.type_index(), PointObj::RuntimeTypeIndex());
}

TEST(Reflection, ADefinitionThatFailsHalfWayReportsItsOwnError) {
  // `sum` exists already, but as a method names may repeat; the class itself may not.
  Error error = Catch([] { refl::ObjectDef<NoInitObj>().def_rw("x", &NoInitObj::x); });
  EXPECT_EQ(error.message().find("Overriding test_reflection.NoInit"), 0u);
}

// ---- Type attributes
// ------------------------------------------------------------------------------

TEST(TypeAttr, ValuesAreStoredAsTheyAreAndCallablesAsFunctions) {
  int32_t index = AttrsObj::RuntimeTypeIndex();
  EXPECT_EQ(Attr("__test_value__", index).cast<int>(), 5);
  EXPECT_EQ(Attr("__test_text__", index).cast<String>(), "literal");
  EXPECT_EQ(Attr("__test_lambda__", index).cast<Function>()(4).cast<int>(), 8);
  Any self(make_object<AttrsObj>());
  EXPECT_EQ(Attr("__test_method__", index).cast<Function>()(self, 4).cast<int>(), 5);
  EXPECT_EQ(Attr("__test_free__", index).cast<Function>()(4, 5).cast<int>(), 9);
  EXPECT_EQ(Attr("__test2_string__", index).cast<String>(), "a heap string");
  EXPECT_EQ(Attr("__test2_std_string__", index).cast<String>(), "std");
  EXPECT_EQ(Attr("__test2_size__", index).cast<int>(), 17);
  EXPECT_EQ(Attr("__test2_flag__", index).type_index(), kTVMFFIBool);
  EXPECT_EQ(Attr("__test2_free__", index).cast<Function>()(1, 2).cast<int>(), 3);
  EXPECT_EQ(Attr("__test2_pointer__", index).cast<void*>(), reinterpret_cast<void*>(&FreeAdd));
  EXPECT_EQ(Attr("__test3_lambda__", index).cast<Function>()(1).cast<int>(), kTVMFFIInt);
}

TEST(TypeAttr, FunctionsAreNamedAfterTypeAndAttribute) {
  Function f = Attr("__test_lambda__", AttrsObj::RuntimeTypeIndex()).cast<Function>();
  EXPECT_EQ(
      Catch([&] { f("x"); }).message(),
      "Mismatched type on argument #0 when calling: `test_reflection.Attrs.__test_lambda__(0: "
      "int) -> int`. Expected `int` but got `const char*`");
}

TEST(TypeAttr, AnAttributeIsNoneForOtherTypesAndOutsideTheColumn) {
  refl::TypeAttrColumn column("__test_value__");
  EXPECT_EQ(column[PointObj::RuntimeTypeIndex()], nullptr);
  EXPECT_EQ(column[-5], nullptr);
  EXPECT_EQ(column[std::numeric_limits<int32_t>::min()], nullptr);
  EXPECT_EQ(column[std::numeric_limits<int32_t>::max()], nullptr);
  // Not inherited.
  EXPECT_EQ(refl::TypeAttrColumn("__ffi_convert__")[Point3Obj::RuntimeTypeIndex()], nullptr);
}

TEST(TypeAttr, AttributesMayComeBeforeTheClass) {
  EXPECT_EQ(Attr("__test_early__", AttrsEarlyObj::RuntimeTypeIndex()).cast<int>(), 11);
  EXPECT_NE(InfoOf("test_reflection.AttrsEarly")->metadata, nullptr);
}

TEST(TypeAttr, AnAttributeIsSetOnce) {
  Error error = Catch([] { refl::TypeAttrDef<AttrsObj>().attr("__test_value__", 6); });
  EXPECT_EQ(error.kind(), "RuntimeError");
  EXPECT_EQ(error.message(),
            "TypeAttr `__test_value__` is already registered for type index " +
                std::to_string(AttrsObj::RuntimeTypeIndex()) +
                ". To update the stored value, register a mutable container (e.g., Dict/List) once "
                "and mutate it in place on subsequent calls.");
  EXPECT_EQ(Attr("__test_value__", AttrsObj::RuntimeTypeIndex()).cast<int>(), 5);
}

TEST(TypeAttr, UnknownColumnsAreAnErrorUntilEnsured) {
  Error error = Catch([] { refl::TypeAttrColumn("__test_nothing__"); });
  EXPECT_EQ(error.kind(), "RuntimeError");
  EXPECT_EQ(error.message(), "Cannot find type attribute __test_nothing__");
  refl::EnsureTypeAttrColumn("__test_ensured__");
  refl::EnsureTypeAttrColumn("__test_ensured__");
  EXPECT_EQ(refl::TypeAttrColumn("__test_ensured__")[AttrsObj::RuntimeTypeIndex()], nullptr);
  TVMFFIByteArray name = refl::AsByteArray("__metadata__");
  EXPECT_EQ(TVMFFIGetTypeAttrColumn(&name), nullptr);
}

TEST(TypeAttr, TheColumnsOfTheRuntimeExistFromTheStart) {
  namespace attr = refl::type_attr;
  const char* const names[] = {attr::kNew,
                               attr::kInit,
                               attr::kConvert,
                               attr::kShallowCopy,
                               attr::kTypeFinal,
                               attr::kRepr,
                               attr::kHash,
                               attr::kEq,
                               attr::kCompare,
                               attr::kAnyHash,
                               attr::kAnyEqual,
                               attr::kSHash,
                               attr::kSEqual,
                               attr::kStructuralVisit,
                               attr::kStructuralMutate,
                               attr::kStructuralMaybeInplaceMutate,
                               attr::kDataToJson,
                               attr::kDataFromJson,
                               attr::kEnumState};
  for (const char* name : names) {
    TVMFFIByteArray bytes = refl::AsByteArray(name);
    const TVMFFITypeAttrColumn* column = TVMFFIGetTypeAttrColumn(&bytes);
    ASSERT_NE(column, nullptr) << name;
    EXPECT_EQ(column->begin_index, 0) << name;
  }
}

TEST(TypeAttr, ConvertAcceptsWhatTheReferenceAcceptsAndNamesTheRest) {
  Function convert = Attr("__ffi_convert__", PointObj::RuntimeTypeIndex()).cast<Function>();
  Point point(1, 2);
  EXPECT_TRUE(convert(point).cast<Point>().same_as(point));
  Error error = Catch([&] { convert(1.5); });
  EXPECT_EQ(error.kind(), "TypeError");
  EXPECT_EQ(error.message(), "Cannot cast from `float` to `test_reflection.Point`");
  EXPECT_EQ(Catch([&] { convert(nullptr); }).message(),
            "Cannot cast from `None` to `test_reflection.Point`");
}

TEST(TypeAttr, BuiltInTypesConvert) {
  for (int32_t index :
       {kTVMFFIObject, kTVMFFIStr, kTVMFFIBytes, kTVMFFIError, kTVMFFIFunction, kTVMFFIShape,
        kTVMFFITensor, kTVMFFIArray, kTVMFFIMap, kTVMFFIList, kTVMFFIDict}) {
    EXPECT_EQ(Attr("__ffi_convert__", index).type_index(), kTVMFFIFunction) << index;
  }
  EXPECT_EQ(Attr("__ffi_convert__", kTVMFFIModule), nullptr);
  EXPECT_EQ(Attr("__ffi_convert__", kTVMFFIOpaquePyObject), nullptr);
  Function to_string = Attr("__ffi_convert__", kTVMFFIStr).cast<Function>();
  EXPECT_EQ(to_string("text").cast<String>(), "text");
  EXPECT_EQ(Catch([&] { to_string(1); }).message(), "Cannot cast from `int` to `str`");
}

// ---- Creation -----------------------------------------------------------------------------------

TEST(ObjectCreator, GivenFieldsAreSetAndOthersTakeTheirDefault) {
  refl::ObjectCreator create("test_reflection.Point");
  Any made = create(Map<String, Any>{{"x", 5}});
  const auto* point = made.as<PointObj>();
  EXPECT_EQ(point->x, 5);
  EXPECT_EQ(point->y, 9);
  EXPECT_EQ(point->name, "none");
  EXPECT_EQ(point->use_count(), 1u);
  Any other = create(Map<String, Any>{{"x", 1}, {"y", 2}, {"name", "given"}});
  EXPECT_EQ(other.as<PointObj>()->y, 2);
  EXPECT_EQ(other.as<PointObj>()->name, "given");
}

TEST(ObjectCreator, InheritedFieldsCount) {
  refl::ObjectCreator create("test_reflection.Point3");
  Any made = create(Map<String, Any>{{"x", 5}, {"z", 7}});
  EXPECT_EQ(made.as<Point3Obj>()->x, 5);
  EXPECT_EQ(made.as<Point3Obj>()->z, 7);
  EXPECT_EQ(Catch([&] {
              create(Map<String, Any>{{"z", 7}});
            }).message(),
            "Required field `x` not set in type `test_reflection.Point3`");
}

TEST(ObjectCreator, MissingUnknownAndBadFieldsAreTypeErrors) {
  refl::ObjectCreator create("test_reflection.Point");
  Error missing = Catch([&] { create(Map<String, Any>()); });
  EXPECT_EQ(missing.kind(), "TypeError");
  EXPECT_EQ(missing.message(), "Required field `x` not set in type `test_reflection.Point`");
  Error unknown = Catch([&] { create(Map<String, Any>{{"x", 1}, {"w", 2}}); });
  EXPECT_EQ(unknown.kind(), "TypeError");
  EXPECT_EQ(unknown.message(), "Type `test_reflection.Point` does not have field `w`");
  Error bad = Catch([&] { create(Map<String, Any>{{"x", "one"}}); });
  EXPECT_EQ(bad.kind(), "TypeError");
  EXPECT_NE(bad.message().find("Cannot convert from type"), std::string::npos);
}

TEST(ObjectCreator, FactoriesMakeAFreshValueOnlyWhereNoneIsGiven) {
  refl::ObjectCreator create("test_reflection.Traits");
  factory_calls = 0;
  Any first = create(Map<String, Any>());
  Any second = create(Map<String, Any>());
  EXPECT_EQ(factory_calls, 2);
  EXPECT_FALSE(first.as<TraitsObj>()->made.same_as(second.as<TraitsObj>()->made));
  EXPECT_EQ(first.as<TraitsObj>()->with_default, 42);
  Any third = create(Map<String, Any>{{"made", List<Any>{1}}});
  EXPECT_EQ(factory_calls, 2);
  EXPECT_EQ(third.as<TraitsObj>()->made.size(), 1u);
}

TEST(ObjectCreator, TypesWithoutACreatorAreRefused) {
  Error error = Catch([] { refl::ObjectCreator("test_reflection.NoDefault"); });
  EXPECT_EQ(error.kind(), "RuntimeError");
  EXPECT_EQ(error.message(),
            "Type `test_reflection.NoDefault` does not support default constructor, as a result "
            "cannot be created via reflection");
  const TVMFFITypeInfo* no_default = InfoOf("test_reflection.NoDefault");
  EXPECT_FALSE(HasCreator(no_default));
  EXPECT_EQ(Catch([&] { CreateEmptyObject(no_default); }).message(),
            "Type `test_reflection.NoDefault` does not support reflection creation (no native "
            "creator or __ffi_new__ type attr)");
  // Not registered at all: no metadata, no attribute.
  BareObj::_GetOrAllocRuntimeTypeIndex();
  EXPECT_FALSE(HasCreator(InfoOf("test_reflection.Bare")));
  EXPECT_EQ(Catch([] { refl::ObjectCreator("test_reflection.Bare"); }).kind(), "RuntimeError");
}

TEST(ObjectCreator, TheNewAttributeServesTypesWithoutNativeCreator) {
  TVMFFIByteArray key = refl::AsByteArray("test_reflection.Foreign");
  int32_t index = TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, kTVMFFIObject);
  EXPECT_FALSE(HasCreator(TVMFFIGetTypeInfo(index)));
  Function make = Function::FromTyped([index]() {
    auto object = make_object<Object>();
    details::ObjectUnsafe::GetHeader(object.get())->type_index = index;
    return ObjectRef(object);
  });
  Any owned(make);
  TVMFFIAny raw = AnyView(owned).CopyToTVMFFIAny();
  TVMFFIByteArray attr = refl::AsByteArray(refl::type_attr::kNew);
  ASSERT_EQ(TVMFFITypeRegisterAttr(index, &attr, &raw), 0);
  EXPECT_TRUE(HasCreator(TVMFFIGetTypeInfo(index)));
  EXPECT_EQ(CreateEmptyObject(TVMFFIGetTypeInfo(index))->type_index(), index);
}

TEST(SetFieldToDefault, ADefaultOfTheWrongTypeIsReported) {
  Point point(1, 2);
  TVMFFIFieldInfo info = Field("test_reflection.Point", "x");
  Any text("text");
  info.default_value_or_factory = AnyView(text).CopyToTVMFFIAny();
  EXPECT_EQ(Catch([&] { refl::SetFieldToDefault(&info, &point->x); }).kind(), "TypeError");
  EXPECT_EQ(point->x, 1);
}

// ---- overload_cast
// --------------------------------------------------------------------------------

int Pick(int) { return 1; }
int Pick(int, double) { return 2; }
[[maybe_unused]] int Pick(String, int) { return 3; }

struct Picks {
  int M(int) { return 1; }
  int M(double) const { return 2; }
  int M(String, int) const { return 3; }
};

template <auto kFunc>
int CallConstant() {
  return kFunc(0);
}

TEST(OverloadCast, PicksByLeadingParametersAndConstness) {
  EXPECT_EQ(refl::overload_cast<int>(&Pick)(0), 1);
  EXPECT_EQ((refl::overload_cast<int, double>(&Pick)(0, 0.0)), 2);
  EXPECT_EQ(refl::overload_cast<String>(&Pick)(String("x"), 0), 3);
  EXPECT_EQ(CallConstant<refl::overload_cast<int>(&Pick)>(), 1);
  Picks picks;
  EXPECT_EQ((picks.*refl::overload_cast<int>(&Picks::M))(0), 1);
  EXPECT_EQ((picks.*refl::overload_cast<double>(&Picks::M, refl::const_))(0), 2);
  EXPECT_EQ((picks.*refl::overload_cast<String>(&Picks::M, refl::const_))(String("x"), 0), 3);
}

}  // namespace
