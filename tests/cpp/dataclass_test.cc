// SPDX-License-Identifier: Apache-2.0
//
// The generated constructor, classes defined without C++ behind them, and creation by name.
#include <gtest/gtest.h>
#include <pthread.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/device.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/enum.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "reflected_object.h"

namespace {

using namespace tether_test;
namespace refl = tvm::ffi::reflection;

// ---- Generated constructor: how arguments reach fields
// ---------------------------------------------

TEST(GeneratedInit, PositionalArgumentsFollowFieldOrder) {
  Any object = Construct("testing.TestCxxAutoInitSimple", 1, 2);
  EXPECT_EQ(GetInt(object, "x"), 1);
  EXPECT_EQ(GetInt(object, "y"), 2);
}

TEST(GeneratedInit, RequiredFieldsComeBeforeDefaultedOnes) {
  // a, then d (b is hidden, c keyword-only)
  Any object = Construct("testing.TestCxxAutoInit", 1, 4, Kwargs(), "c", 3);
  EXPECT_EQ(GetInt(object, "a"), 1);
  EXPECT_EQ(GetInt(object, "b"), 42);
  EXPECT_EQ(GetInt(object, "c"), 3);
  EXPECT_EQ(GetInt(object, "d"), 4);
}

TEST(GeneratedInit, ChildTakesParentFieldsFirstWithinEachGroup) {
  Any object = Construct("testing.TestCxxAutoInitChild", 1, 2, 3, Kwargs(), "child_kw_only", 4);
  EXPECT_EQ(GetInt(object, "parent_required"), 1);
  EXPECT_EQ(GetInt(object, "child_required"), 2);
  EXPECT_EQ(GetInt(object, "parent_default"), 3);
  EXPECT_EQ(GetInt(object, "child_kw_only"), 4);
}

TEST(GeneratedInit, EveryFieldCanBeGivenByKeyword) {
  Any object = Construct("testing.TestCxxAutoInitSimple", Kwargs(), "y", 20, "x", 10);
  EXPECT_EQ(GetInt(object, "x"), 10);
  EXPECT_EQ(GetInt(object, "y"), 20);
}

TEST(GeneratedInit, KeywordOnlyFieldsHaveDefaults) {
  Any object = Construct("testing.TestCxxAutoInitKwOnlyDefaults", 1, Kwargs(), "k_required", 2);
  EXPECT_EQ(GetInt(object, "p_default"), 11);
  EXPECT_EQ(GetInt(object, "k_required"), 2);
  EXPECT_EQ(GetInt(object, "k_default"), 22);
  EXPECT_EQ(GetInt(object, "hidden"), 33);
}

TEST(GeneratedInit, HiddenFieldWithoutDefaultKeepsTheMemberInitialiser) {
  Any object = Construct("testing.TestCxxAutoInitAllInitOff");
  EXPECT_EQ(GetInt(object, "x"), 7);
  EXPECT_EQ(GetInt(object, "y"), 9);
  EXPECT_EQ(GetInt(object, "z"), 1234);
}

TEST(GeneratedInit, SentinelWithoutPairsIsNoKeyword) {
  Any object = Construct("testing.TestCxxAutoInitSimple", 1, 2, Kwargs());
  EXPECT_EQ(GetInt(object, "y"), 2);
}

TEST(GeneratedInit, ObjectsAreIndependent) {
  Any first = Construct("testing.TestCxxAutoInitSimple", 1, 2);
  Any second = Construct("testing.TestCxxAutoInitSimple", 1, 2);
  SetField(first, "x", 100);
  EXPECT_EQ(GetInt(second, "x"), 1);
}

TEST(GeneratedInit, KeywordsMayBeLongOrShortStrings) {
  Any object = Construct("testing.TestCxxInitSubset", Kwargs(), String("required_field"), 5);
  EXPECT_EQ(GetInt(object, "required_field"), 5);
  EXPECT_EQ(GetField(object, "note").cast<String>(), "default");
}

TEST(GeneratedInit, IsAnAttributeAndNotAMethod) {
  EXPECT_EQ(TypeAttr("testing.TestCxxAutoInit", "__ffi_init__").type_index(), kTVMFFIFunction);
  EXPECT_TRUE(
      Contains(ErrorText([] { refl::GetMethodInfo("testing.TestCxxAutoInit", "__ffi_init__"); }),
               "Cannot find method __ffi_init__ in testing.TestCxxAutoInit"));
  // An explicit constructor is both.
  EXPECT_EQ(TypeAttr("testing.TestIntPair", "__ffi_init__").type_index(), kTVMFFIFunction);
  EXPECT_NE(refl::GetMethodInfo("testing.TestIntPair", "__ffi_init__"), nullptr);
}

TEST(GeneratedInit, ClassCanDeclineIt) {
  EXPECT_TRUE(TypeAttr("testing.TestCxxNoAutoInit", "__ffi_init__") == nullptr);
  EXPECT_FALSE(TypeAttr("testing.TestCxxNoAutoInit", "__ffi_new__") == nullptr);
  EXPECT_FALSE(TypeAttr("testing.TestCxxNoAutoInit", "__ffi_shallow_copy__") == nullptr);
}

TEST(GeneratedInit, ReferencesAreCountedOnce) {
  Any target = Construct("testing.TestObjectBase");
  Any holder = Construct("testing.TestObjectPtrHolder", target);
  EXPECT_EQ(target.cast<ObjectRef>().use_count(), 3);  // target, holder, the cast
  EXPECT_TRUE(GetField(holder, "optional_value") == nullptr);
  holder.reset();
  EXPECT_EQ(target.cast<ObjectRef>().use_count(), 2);
}

// ---- Generated constructor: bad calls
// --------------------------------------------------------------

TEST(GeneratedInitErrors, TooManyPositionals) {
  EXPECT_EQ(ErrorText([] { Construct("testing.TestCxxAutoInitSimple", 1, 2, 3); }),
            "TypeError: testing.TestCxxAutoInitSimple.__ffi_init__() takes at most 2 positional "
            "argument(s), but 3 were given");
  EXPECT_EQ(ErrorText([] { Construct("testing.TestCxxKwOnly", 1, Kwargs(), "y", 2); }),
            "TypeError: testing.TestCxxKwOnly.__ffi_init__() takes at most 0 positional "
            "argument(s), but 1 were given");
}

TEST(GeneratedInitErrors, MissingRequired) {
  EXPECT_EQ(
      ErrorText([] { Construct("testing.TestCxxAutoInitSimple"); }),
      "TypeError: testing.TestCxxAutoInitSimple.__ffi_init__() missing required argument: 'x'");
  EXPECT_EQ(
      ErrorText([] { Construct("testing.TestCxxAutoInitSimple", Kwargs()); }),
      "TypeError: testing.TestCxxAutoInitSimple.__ffi_init__() missing required argument: 'x'");
  EXPECT_EQ(
      ErrorText([] { Construct("testing.TestCxxAutoInitSimple", 1); }),
      "TypeError: testing.TestCxxAutoInitSimple.__ffi_init__() missing required argument: 'y'");
}

TEST(GeneratedInitErrors, MissingKeywordOnly) {
  EXPECT_EQ(ErrorText([] { Construct("testing.TestCxxAutoInit", 1); }),
            "TypeError: testing.TestCxxAutoInit.__ffi_init__() missing required keyword-only "
            "argument: 'c'");
}

TEST(GeneratedInitErrors, UnknownKeyword) {
  EXPECT_EQ(
      ErrorText([] { Construct("testing.TestCxxAutoInitSimple", 1, Kwargs(), "y", 2, "zz", 3); }),
      "TypeError: testing.TestCxxAutoInitSimple.__ffi_init__() got an unexpected keyword argument "
      "'zz'");
  EXPECT_TRUE(
      Contains(ErrorText([] { Construct("testing.TestCxxAutoInitSimple", Kwargs(), "", 1); }),
               "got an unexpected keyword argument ''"));
}

TEST(GeneratedInitErrors, KeywordOfAHiddenField) {
  EXPECT_EQ(ErrorText([] { Construct("testing.TestCxxAutoInit", 1, Kwargs(), "c", 2, "b", 3); }),
            "TypeError: testing.TestCxxAutoInit.__ffi_init__() got an unexpected keyword argument "
            "'b'");
}

TEST(GeneratedInitErrors, ValueGivenTwice) {
  EXPECT_EQ(
      ErrorText([] { Construct("testing.TestCxxAutoInitSimple", 1, Kwargs(), "x", 2, "y", 3); }),
      "TypeError: testing.TestCxxAutoInitSimple.__ffi_init__() got multiple values for argument "
      "'x'");
  EXPECT_EQ(
      ErrorText([] { Construct("testing.TestCxxAutoInitSimple", 1, Kwargs(), "y", 2, "y", 3); }),
      "TypeError: testing.TestCxxAutoInitSimple.__ffi_init__() got multiple values for argument "
      "'y'");
}

TEST(GeneratedInitErrors, KeyWithoutValue) {
  EXPECT_EQ(
      ErrorText([] { Construct("testing.TestCxxAutoInitSimple", 1, Kwargs(), "y"); }),
      "TypeError: testing.TestCxxAutoInitSimple.__ffi_init__() KWARGS requires an even number of "
      "key-value arguments");
}

TEST(GeneratedInitErrors, KeyThatIsNoString) {
  EXPECT_EQ(ErrorText([] { Construct("testing.TestCxxAutoInitSimple", 1, Kwargs(), 5, 6); }),
            "TypeError: Cannot convert from type `int` to `str`");
}

TEST(GeneratedInitErrors, WrongTypeNamesClassAndField) {
  EXPECT_EQ(ErrorText([] { Construct("testing.TestCxxAutoInitSimple", 1, "text"); }),
            "TypeError: testing.TestCxxAutoInitSimple.__ffi_init__() field 'y':\n"
            "  Cannot convert from type `const char*` to `int`");
  EXPECT_EQ(ErrorText([] { Construct("testing.TestObjectPtrHolder", nullptr); }),
            "TypeError: testing.TestObjectPtrHolder.__ffi_init__() field 'value':\n"
            "  Cannot convert from type `None` to `testing.TestObjectBase`");
}

TEST(GeneratedInitErrors, WrongObjectTypeInAField) {
  EXPECT_EQ(ErrorText([] { Construct("testing.TestObjectPtrHolder", MakePair(1, 2)); }),
            "TypeError: testing.TestObjectPtrHolder.__ffi_init__() field 'value':\n"
            "  Cannot convert from type `testing.TestIntPair` to `testing.TestObjectBase`");
}

TEST(GeneratedInitErrors, SetterErrorIsTheCause) {
  try {
    Construct("testing.TestCxxAutoInitSimple", 1, "text");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    ASSERT_TRUE(error.cause_chain().has_value());
    EXPECT_EQ(error.cause_chain()->message(), "Cannot convert from type `const char*` to `int`");
    EXPECT_EQ(error.backtrace(), error.cause_chain()->backtrace());
  }
}

TEST(GeneratedInitErrors, FailedConstructionReleasesEverything) {
  Any target = Construct("testing.TestObjectBase");
  EXPECT_NE(ErrorText([&] { Construct("testing.TestObjectPtrHolder", target, 5); }), "no error");
  EXPECT_EQ(target.cast<ObjectRef>().use_count(), 2);
}

TEST(GeneratedInitErrors, UnknownTypeIndexIsAnErrorAndNoExit) {
  EXPECT_TRUE(
      Contains(ErrorText([] { CallGlobal("ffi._RegisterFFIInit", 1 << 30); }), "InternalError: "));
  EXPECT_TRUE(
      Contains(ErrorText([] { CallGlobal("ffi._RegisterFFIInit", -5); }), "InternalError: "));
}

// A class with more fields than the constructor keeps on its stack, and defaults that do not fit.
class ManyFieldsObj : public Object {
 public:
  int64_t values[40] = {};
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.dataclass.ManyFields", ManyFieldsObj, Object);
};

class BadDefaultObj : public Object {
 public:
  int64_t number = 0;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.dataclass.BadDefault", BadDefaultObj, Object);
};

class FactoryObj : public Object {
 public:
  List<Any> items;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.dataclass.Factory", FactoryObj, Object);
};

void RegisterManyFields() {
  int32_t index = ManyFieldsObj::_GetOrAllocRuntimeTypeIndex();
  TVMFFITypeMetadata metadata{};
  metadata.total_size = sizeof(ManyFieldsObj);
  metadata.creator = [](TVMFFIObjectHandle* out) -> int {
    *out = details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(make_object<ManyFieldsObj>());
    return 0;
  };
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterMetadata(index, &metadata));
  for (int i = 0; i < 40; ++i) {
    std::string name = "f" + std::to_string(i);
    TVMFFIFieldInfo field{};
    field.name = {name.data(), name.size()};
    field.flags = kTVMFFIFieldFlagBitMaskWritable;
    field.size = field.alignment = sizeof(int64_t);
    field.offset = static_cast<int64_t>(sizeof(TVMFFIObject) + sizeof(int64_t) * i);
    field.getter = reinterpret_cast<TVMFFIFieldGetter>(
        CallGlobal("ffi.MakeFieldGetter", int{kTVMFFIInt}).cast<int64_t>());
    field.setter = reinterpret_cast<void*>(+[](void* to, const TVMFFIAny* value) -> int {
      *static_cast<int64_t*>(to) = value->v_int64;
      return 0;
    });
    field.field_static_type_index = kTVMFFIInt;
    TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterField(index, &field));
  }
  CallGlobal("ffi._RegisterFFIInit", index);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<BadDefaultObj>().def_rw("number", &BadDefaultObj::number,
                                          refl::default_value(String("not a number")));
  refl::ObjectDef<FactoryObj>().def_rw(
      "items", &FactoryObj::items,
      refl::default_factory(Function::FromTyped([] { return List<Any>{1}; })));
}

TEST(GeneratedInit, ManyFields) {
  RegisterManyFields();
  std::vector<Any> values(39);
  for (int i = 0; i < 39; ++i) values[i] = i * i;
  std::vector<AnyView> args(values.begin(), values.end());
  Any kwargs = Kwargs();
  Any last = 7;
  args.push_back(kwargs);
  args.push_back("f39");
  args.push_back(last);
  Any object;
  Function init = TypeAttr("test.dataclass.ManyFields", "__ffi_init__").cast<Function>();
  init.CallPacked(args.data(), static_cast<int32_t>(args.size()), &object);
  EXPECT_EQ(GetInt(object, "f38"), 38 * 38);
  EXPECT_EQ(GetInt(object, "f39"), 7);
  args.back() = "f39";
  args.pop_back();
  args.push_back(last);
  args.push_back("f0");
  args.push_back(last);
  EXPECT_TRUE(Contains(
      ErrorText([&] { init.CallPacked(args.data(), static_cast<int32_t>(args.size()), &object); }),
      "got multiple values for argument 'f0'"));
}

TEST(GeneratedInitErrors, DefaultOfTheWrongTypeIsReported) {
  EXPECT_EQ(ErrorText([] { Construct("test.dataclass.BadDefault"); }),
            "TypeError: test.dataclass.BadDefault.__ffi_init__() default for field 'number':\n"
            "  Cannot convert from type `ffi.String` to `int`");
  EXPECT_EQ(GetInt(Construct("test.dataclass.BadDefault", 3), "number"), 3);
}

TEST(GeneratedInit, FactoryMakesAFreshValueEachTime) {
  Any first = Construct("test.dataclass.Factory");
  Any second = Construct("test.dataclass.Factory");
  GetField(first, "items").cast<List<Any>>().push_back(2);
  EXPECT_EQ(GetField(first, "items").cast<List<Any>>().size(), 2U);
  EXPECT_EQ(GetField(second, "items").cast<List<Any>>().size(), 1U);
}

// ---- Creation from named values
// ----------------------------------------------------------------------

TEST(MakeObjectFromPackedArgs, ByKeyAndByIndex) {
  Any by_key = CallGlobal("ffi.MakeObjectFromPackedArgs", "testing.TestIntPair", "b", 2, "a", 1);
  EXPECT_EQ(GetInt(by_key, "a"), 1);
  EXPECT_EQ(GetInt(by_key, "b"), 2);
  int32_t index = TypeKeyToIndex("testing.TestObjectBase");
  Any by_index = CallGlobal("ffi.MakeObjectFromPackedArgs", index, "v_i64", 5);
  EXPECT_EQ(GetInt(by_index, "v_i64"), 5);
  EXPECT_EQ(GetField(by_index, "v_str").cast<String>(), "hello");
}

TEST(MakeObjectFromPackedArgs, BadInput) {
  const char* make = "ffi.MakeObjectFromPackedArgs";
  EXPECT_EQ(ErrorText([&] { CallGlobal(make, "testing.TestIntPair", "a", 1); }),
            "TypeError: Required field `b` not set in type `testing.TestIntPair`");
  EXPECT_EQ(ErrorText([&] { CallGlobal(make, "testing.TestIntPair", "a", 1, "b", 2, "c", 3); }),
            "TypeError: Type `testing.TestIntPair` does not have field `c`");
  EXPECT_TRUE(Contains(ErrorText([&] { CallGlobal(make, "testing.TestIntPair", "a"); }),
                       "InternalError: "));
  EXPECT_TRUE(Contains(ErrorText([&] { CallGlobal(make); }), "InternalError: "));
  EXPECT_TRUE(Contains(ErrorText([&] { CallGlobal(make, "no.such.Type"); }),
                       "Cannot find type `no.such.Type`"));
  EXPECT_TRUE(Contains(ErrorText([&] { CallGlobal(make, 1 << 30); }), "InternalError: "));
  EXPECT_EQ(
      ErrorText([&] { CallGlobal(make, "testing.TestNonCopyable", "value", 1); }),
      "RuntimeError: Type `testing.TestNonCopyable` does not support default constructor, as a "
      "result cannot be created via reflection");
  EXPECT_TRUE(
      Contains(ErrorText([&] { CallGlobal(make, "testing.TestIntPair", "a", "x", "b", 1); }),
               "Cannot convert from type"));
}

// ---- Classes without C++ behind them
// ------------------------------------------------------------------

// Passes everything on; refuses the string "bad".
int TestConverter(void* context, const TVMFFIAny* in, TVMFFIAny* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  ++*static_cast<int*>(context);
  AnyView value = AnyView::CopyFromTVMFFIAny(*in);
  if (auto text = value.try_cast<String>()) {
    if (*text == "bad") TVM_FFI_THROW(ValueError) << "refused\nfor a reason";
  }
  *out = details::AnyUnsafe::MoveAnyToTVMFFIAny(Any(value));
  TVM_FFI_SAFE_CALL_END();
}

int g_conversions = 0;

struct PyField {
  const char* name;
  int32_t type_index;
  int64_t size;
  int64_t offset;
  int64_t flags = 0;
  const char* metadata = "";
};

// What a frontend does for `class key(parent): name: type ...`.
int32_t DefinePyClass(const char* key, const char* parent, const std::vector<PyField>& fields,
                      int total_size) {
  TVMFFIByteArray key_bytes = refl::AsByteArray(key);
  const TVMFFITypeInfo* parent_info = TVMFFIGetTypeInfo(TypeKeyToIndex(parent));
  int32_t index = TVMFFITypeGetOrAllocIndex(&key_bytes, -1, parent_info->type_depth + 1, 0, 1,
                                            parent_info->type_index);
  for (const PyField& field : fields) {
    Function setter = CallGlobal("ffi.MakeFieldSetter", field.type_index,
                                 reinterpret_cast<int64_t>(&g_conversions),
                                 reinterpret_cast<int64_t>(&TestConverter))
                          .cast<Function>();
    TVMFFIFieldInfo info{};
    info.name = refl::AsByteArray(field.name);
    info.metadata = refl::AsByteArray(field.metadata);
    info.flags =
        kTVMFFIFieldFlagBitMaskWritable | kTVMFFIFieldFlagBitSetterIsFunctionObj | field.flags;
    info.size = field.size;
    info.alignment = field.size < 8 ? field.size : 8;
    info.offset = field.offset;
    info.getter = reinterpret_cast<TVMFFIFieldGetter>(
        CallGlobal("ffi.MakeFieldGetter", field.type_index).cast<int64_t>());
    info.setter = details::ObjectUnsafe::RawObjectPtrFromObjectRef(setter);
    info.field_static_type_index = field.type_index;
    TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterField(index, &info));
  }
  CallGlobal("ffi._PyClassRegisterTypeAttrColumns", index, total_size);
  return index;
}

constexpr const char* kPoint = "test.dataclass.PyPoint";

void DefinePoint() {
  static int32_t index = DefinePyClass(kPoint, "ffi.Object",
                                       {{"flag", kTVMFFIBool, 1, 24},
                                        {"number", kTVMFFIInt, 8, 32},
                                        {"ratio", kTVMFFIFloat, 8, 40},
                                        {"dtype", kTVMFFIDataType, 4, 48},
                                        {"device", kTVMFFIDevice, 8, 52},
                                        {"value", kTVMFFIAny, 16, 64},
                                        {"object", kTVMFFIObject, 8, 80},
                                        {"address", kTVMFFIOpaquePtr, 8, 88}},
                                       96);
  (void)index;
}

TVMFFIObject* HeaderOf(const Any& value) {
  return details::ObjectUnsafe::GetHeader(value.as<Object>());
}

TEST(PyClass, NewObjectIsAllZeros) {
  DefinePoint();
  Any object = TypeAttr(kPoint, "__ffi_new__").cast<Function>()();
  EXPECT_EQ(object.GetTypeKey(), kPoint);
  EXPECT_FALSE(GetField(object, "flag").cast<bool>());
  EXPECT_EQ(GetInt(object, "number"), 0);
  EXPECT_EQ(GetField(object, "ratio").cast<double>(), 0.0);
  EXPECT_TRUE(GetField(object, "value") == nullptr);
  EXPECT_TRUE(GetField(object, "object") == nullptr);
  EXPECT_EQ(object.cast<ObjectRef>().use_count(), 2);
}

TEST(PyClass, HeaderSaysWhereTheBlockCameFrom) {
  DefinePoint();
  Any object = TypeAttr(kPoint, "__ffi_new__").cast<Function>()();
  EXPECT_EQ(HeaderOf(object)->__padding, static_cast<uint32_t>(kTVMFFIObjectAllocHeaderMark));
  EXPECT_NE(details::ObjectUnsafe::GetObjectAllocHeaderFromPtr(HeaderOf(object))->delete_space,
            nullptr);
}

Any MakePoint(Any value, Any object) {
  DefinePoint();
  return Construct(kPoint, true, 5, 2.5, DLDataType{kDLInt, 8, 1}, DLDevice{kDLCUDA, 3}, value,
                   object, static_cast<void*>(nullptr));
}

TEST(PyClass, ConstructorSetsEveryKindOfField) {
  Any object = MakePoint(String("a long enough string"), MakePair(1, 2));
  EXPECT_TRUE(GetField(object, "flag").cast<bool>());
  EXPECT_EQ(GetInt(object, "number"), 5);
  EXPECT_EQ(GetField(object, "ratio").cast<double>(), 2.5);
  EXPECT_EQ(GetField(object, "dtype").cast<DLDataType>(), (DLDataType{kDLInt, 8, 1}));
  EXPECT_EQ(GetField(object, "device").cast<DLDevice>().device_id, 3);
  EXPECT_EQ(GetField(object, "value").cast<String>(), "a long enough string");
  EXPECT_EQ(GetField(object, "object").GetTypeKey(), "testing.TestIntPair");
  EXPECT_EQ(GetField(object, "address").cast<void*>(), nullptr);
}

TEST(PyClass, DestructionReleasesFields) {
  Any pair = MakePair(1, 2);
  Any list = List<Any>{1};
  Any object = MakePoint(list, pair);
  EXPECT_EQ(pair.cast<ObjectRef>().use_count(), 3);
  object.reset();
  EXPECT_EQ(pair.cast<ObjectRef>().use_count(), 2);
  EXPECT_EQ(list.cast<ObjectRef>().use_count(), 2);
}

TEST(PyClass, AssignmentReleasesTheOldValue) {
  Any first = MakePair(1, 2);
  Any second = MakePair(3, 4);
  Any object = MakePoint(first, first);
  SetField(object, "object", second);
  SetField(object, "value", 1);
  EXPECT_EQ(first.cast<ObjectRef>().use_count(), 2);
  EXPECT_EQ(second.cast<ObjectRef>().use_count(), 3);
}

TEST(PyClass, FailedAssignmentLeavesTheField) {
  Any object = MakePoint(1, MakePair(1, 2));
  EXPECT_EQ(ErrorText([&] { SetField(object, "number", "bad"); }),
            "ValueError: refused\nfor a reason");
  EXPECT_EQ(ErrorText([&] { SetField(object, "object", 3); }),
            "TypeError: Cannot convert from type `int` to `ffi.Object`");
  EXPECT_EQ(GetInt(object, "number"), 5);
  EXPECT_EQ(GetField(object, "object").GetTypeKey(), "testing.TestIntPair");
}

TEST(PyClass, ConstructorErrorIndentsEveryLine) {
  DefinePoint();
  EXPECT_EQ(ErrorText([] { Construct(kPoint, true, "bad"); }),
            "ValueError: test.dataclass.PyPoint.__ffi_init__() field 'number':\n"
            "  refused\n  for a reason");
}

TEST(PyClass, ShallowCopySharesReferences) {
  Any pair = MakePair(1, 2);
  Any object = MakePoint(pair, pair);
  Any copy = TypeAttr(kPoint, "__ffi_shallow_copy__").cast<Function>()(object);
  EXPECT_FALSE(copy.same_as(object));
  EXPECT_TRUE(GetField(copy, "object").same_as(pair));
  EXPECT_EQ(pair.cast<ObjectRef>().use_count(), 6);
  EXPECT_EQ(GetInt(copy, "number"), 5);
  EXPECT_EQ(GetField(copy, "device").cast<DLDevice>().device_id, 3);
  EXPECT_EQ(HeaderOf(copy)->__padding, static_cast<uint32_t>(kTVMFFIObjectAllocHeaderMark));
  SetField(copy, "number", 6);
  EXPECT_EQ(GetInt(object, "number"), 5);
  copy.reset();
  EXPECT_EQ(pair.cast<ObjectRef>().use_count(), 4);
}

TEST(PyClass, ShallowCopyOfAnotherTypeIsRefused) {
  DefinePoint();
  EXPECT_EQ(
      ErrorText([] { TypeAttr(kPoint, "__ffi_shallow_copy__").cast<Function>()(MakePair(1, 2)); }),
      "TypeError: Expected an object of type `test.dataclass.PyPoint` but got "
      "`testing.TestIntPair`");
}

TEST(PyClass, WeakReferenceOutlivesTheFields) {
  Any pair = MakePair(1, 2);
  Any object = MakePoint(1, pair);
  auto pointer = details::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(object.cast<ObjectRef>());
  WeakObjectPtr<Object> weak(pointer);
  pointer.reset();
  object.reset();
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(pair.cast<ObjectRef>().use_count(), 2);
}

TEST(PyClass, NativeParentsKeepTheirFieldsAndMethods) {
  static int32_t index = DefinePyClass("test.dataclass.PyDerived", "testing.TestObjectBase",
                                       {{"extra", kTVMFFIAny, 16, 56}}, 72);
  Any object =
      Construct("test.dataclass.PyDerived", "more", 3, Kwargs(), "v_str", "a string on the heap");
  EXPECT_EQ(object.type_index(), index);
  EXPECT_EQ(GetInt(object, "v_i64"), 3);
  EXPECT_EQ(GetField(object, "v_f64").cast<double>(), 10.0);
  EXPECT_EQ(GetField(object, "v_str").cast<String>(), "a string on the heap");
  EXPECT_EQ(refl::GetMethod("testing.TestObjectBase", "add_i64")(object, 4).cast<int>(), 7);
  Any copy = DeepCopy(object);
  EXPECT_TRUE(RecursiveEq(object, copy));
  EXPECT_EQ(GetField(copy, "v_str").cast<String>(), "a string on the heap");
}

TEST(PyClass, NativeParentWithSmartPointersCountsExactly) {
  static int32_t index = DefinePyClass("test.dataclass.PyHolder", "testing.TestObjectPtrHolder",
                                       {{"extra", kTVMFFIBool, 1, 40}}, 48);
  (void)index;
  Any target = Construct("testing.TestObjectBase");
  auto count = [&] { return target.cast<ObjectRef>().use_count() - 1; };
  Any holder = Construct("test.dataclass.PyHolder", target, true);
  EXPECT_EQ(count(), 2);
  Any copy = TypeAttr("test.dataclass.PyHolder", "__ffi_shallow_copy__").cast<Function>()(holder);
  EXPECT_EQ(count(), 3);
  copy.reset();
  EXPECT_EQ(count(), 2);
  EXPECT_NE(ErrorText([&] { Construct("test.dataclass.PyHolder", nullptr, true); }), "no error");
  EXPECT_EQ(count(), 2);
  copy = DeepCopy(holder);
  EXPECT_FALSE(GetField(copy, "value").same_as(target));
  EXPECT_EQ(count(), 2);
  holder.reset();
  EXPECT_EQ(count(), 1);
}

TEST(PyClass, FieldsThatShareStorageAreReleasedOnce) {
  // `value` of ffi.StrEnum is `_str_index` under another name.
  static int32_t index = DefinePyClass("test.dataclass.PyStrEnum", "ffi.StrEnum", {}, 48);
  (void)index;
  String text("a string that lives on the heap");
  Any member = TypeAttr("test.dataclass.PyStrEnum", "__ffi_new__").cast<Function>()();
  SetField(member, "_str_index", text);
  Any copy = TypeAttr("test.dataclass.PyStrEnum", "__ffi_shallow_copy__").cast<Function>()(member);
  EXPECT_EQ(GetField(copy, "value").cast<String>(), text);
  Any shared = text;
  EXPECT_EQ(shared.cast<ObjectRef>().use_count(), 5);  // text, shared, member, copy, the cast
  member.reset();
  copy.reset();
  EXPECT_EQ(shared.cast<ObjectRef>().use_count(), 3);
}

// Raw pointers of a C++ parent are borrowed; Optional<object> has the same size and owns.
class PointerParentObj : public Object {
 public:
  const Object* borrowed = nullptr;
  Optional<ObjectRef> owned;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("test.dataclass.PointerParent", PointerParentObj, Object);
};

class StdStringParentObj : public Object {
 public:
  std::string text;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("test.dataclass.StdStringParent", StdStringParentObj, Object);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<PointerParentObj>()
      .def_rw("borrowed", &PointerParentObj::borrowed)
      .def_rw("owned", &PointerParentObj::owned);
  refl::ObjectDef<StdStringParentObj>().def_rw("text", &StdStringParentObj::text);
}

TEST(PyClass, BorrowedPointersOfAParentAreNotReleased) {
  static int32_t index =
      DefinePyClass("test.dataclass.PyPointers", "test.dataclass.PointerParent", {}, 40);
  (void)index;
  Any target = MakePair(1, 2);
  auto count = [&] { return target.cast<ObjectRef>().use_count() - 1; };
  Any object = Construct("test.dataclass.PyPointers", target, target);
  EXPECT_EQ(count(), 2);
  Any copy = TypeAttr("test.dataclass.PyPointers", "__ffi_shallow_copy__").cast<Function>()(object);
  EXPECT_EQ(count(), 3);
  EXPECT_TRUE(GetField(copy, "borrowed").same_as(target));
  copy.reset();
  object.reset();
  EXPECT_EQ(count(), 1);
}

// Spaces, other keys and another order: whatever JSON allows.
TEST(PyClass, TheSchemaOfAFieldIsReadAsJSON) {
  constexpr const char* kKey = "test.dataclass.PySchemas";
  constexpr const char* kBorrowed =
      R"({"note": "\"type_schema\":\"{\\\"type\\\":\\\"Optional\\\"",
          "type_schema": "{ \"args\": [], \"type\" : \"ffi.Object\" }"})";
  constexpr const char* kOwned =
      R"({ "type_schema" : "{ \"args\": [{\"type\": \"ffi.Object\"}], \"type\" : \"Optional\" }" })";
  static int32_t index = DefinePyClass(kKey, "ffi.Object",
                                       {{"borrowed", kTVMFFIAny, 8, 24, 0, kBorrowed},
                                        {"owned", kTVMFFIAny, 8, 32, 0, kOwned},
                                        {"unknown", kTVMFFIAny, 8, 40, 0, "{not JSON"}},
                                       48);
  (void)index;
  Any target = MakePair(1, 2);
  auto count = [&] { return target.cast<ObjectRef>().use_count() - 1; };
  Any object = TypeAttr(kKey, "__ffi_new__").cast<Function>()();
  auto* handle = details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(target.cast<ObjectRef>());
  auto* header = details::ObjectUnsafe::GetHeader(object.as<Object>());
  auto* slots = reinterpret_cast<TVMFFIObject**>(reinterpret_cast<char*>(header) + 24);
  slots[0] = slots[1] = slots[2] = handle;
  for (int i = 0; i < 2; ++i) TVMFFIObjectIncRef(handle);
  EXPECT_EQ(count(), 3);
  object.reset();
  EXPECT_EQ(count(), 1);
}

TEST(PyClassErrors, ParentWithOtherCppMembers) {
  EXPECT_EQ(
      ErrorText([] {
        DefinePyClass("test.dataclass.PyBadParent", "test.dataclass.StdStringParent", {}, 56);
      }),
      "TypeError: Field \"text\" of type \"test.dataclass.PyBadParent\" holds a C++ object of " +
          std::to_string(sizeof(std::string)) +
          " bytes, which a Python-defined class cannot store");
}

TEST(PyClassErrors, LayoutThatDoesNotFit) {
  EXPECT_TRUE(Contains(
      ErrorText([] {
        DefinePyClass("test.dataclass.PySmall", "ffi.Object", {{"x", kTVMFFIInt, 8, 24}}, 24);
      }),
      "ValueError: Field \"x\" lies outside of type"));
  EXPECT_TRUE(
      Contains(ErrorText([] { DefinePyClass("test.dataclass.PyTiny", "ffi.Object", {}, 16); }),
               "ValueError: Type \"test.dataclass.PyTiny\" cannot have a size of 16 bytes"));
  EXPECT_TRUE(Contains(
      ErrorText([] {
        DefinePyClass("test.dataclass.PyInHeader", "ffi.Object", {{"x", kTVMFFIInt, 8, 8}}, 32);
      }),
      "ValueError: Field \"x\" lies outside of type"));
}

TEST(PyClassErrors, RegisteringTwice) {
  DefinePoint();
  EXPECT_TRUE(Contains(ErrorText([] {
                         CallGlobal("ffi._PyClassRegisterTypeAttrColumns", TypeKeyToIndex(kPoint),
                                    96);
                       }),
                       "is already registered for type index"));
  EXPECT_TRUE(
      Contains(ErrorText([] { CallGlobal("ffi._PyClassRegisterTypeAttrColumns", 1 << 30, 96); }),
               "InternalError: "));
}

TEST(PyClassErrors, UnsupportedFieldKinds) {
  EXPECT_EQ(ErrorText([] { CallGlobal("ffi.MakeFieldGetter", int{kTVMFFIRawStr}); }),
            "ValueError: Unsupported field type index for getter: 8");
  EXPECT_EQ(ErrorText([] { CallGlobal("ffi.MakeFieldGetter", -2); }),
            "ValueError: Unsupported field type index for getter: -2");
  EXPECT_EQ(ErrorText([] {
              CallGlobal("ffi.MakeFieldSetter", int{kTVMFFISmallStr}, 0,
                         reinterpret_cast<int64_t>(&TestConverter));
            }),
            "ValueError: Unsupported field type index for setter: 11");
  EXPECT_EQ(ErrorText([] { CallGlobal("ffi.MakeFieldSetter", int{kTVMFFIInt}, 0, 0); }),
            "ValueError: The address of the field converter must not be 0");
}

TEST(PyClass, NoGlobalFunctionMakesObjectsDirectly) {
  EXPECT_FALSE(Function::GetGlobal("ffi.MakeNew").has_value());
}

// An allocator that counts, and that can be out of memory.
struct CountingAllocator {
  static inline int live = 0;
  static inline bool exhausted = false;
  static inline int32_t last_type_index = 0;
  static inline size_t last_alignment = 0;

  static void* Allocate(size_t size, size_t alignment, int32_t type_index, void*) {
    if (exhausted) return nullptr;
    last_type_index = type_index;
    last_alignment = alignment;
    ++live;
    char* block = static_cast<char*>(std::malloc(size + 16));
    std::memset(block, 0xab, size + 16);
    reinterpret_cast<TVMFFIObjectAllocHeader*>(block + 8)->delete_space = [](void* body) {
      --live;
      std::free(static_cast<char*>(body) - 16);
    };
    return block + 16;
  }
};

TEST(PyClass, InstancesComeFromTheCurrentAllocator) {
  DefinePoint();
  Function create = TypeAttr(kPoint, "__ffi_new__").cast<Function>();
  Function copy = TypeAttr(kPoint, "__ffi_shallow_copy__").cast<Function>();
  TVMFFICustomAllocator allocator{CountingAllocator::Allocate, nullptr};
  TVMFFISetCustomAllocator(&allocator);
  Any object = create();
  Any second = copy(object);
  TVMFFISetCustomAllocator(nullptr);
  EXPECT_EQ(CountingAllocator::live, 2);
  EXPECT_EQ(CountingAllocator::last_type_index, TypeKeyToIndex(kPoint));
  EXPECT_EQ(CountingAllocator::last_alignment, alignof(std::max_align_t));
  EXPECT_EQ(GetInt(second, "number"), 0);
  object.reset();
  second.reset();
  EXPECT_EQ(CountingAllocator::live, 0);
}

TEST(PyClassErrors, OutOfMemory) {
  DefinePoint();
  // Only the instance itself is refused: the error object has to come from somewhere.
  static TVMFFICustomAllocator* builtin = TVMFFIGetCustomAllocator();
  static int32_t refused_index = TypeKeyToIndex(kPoint);
  TVMFFICustomAllocator allocator{
      [](size_t size, size_t alignment, int32_t type_index, void*) -> void* {
        if (type_index == refused_index) return nullptr;
        return builtin->allocate(size, alignment, type_index, builtin->context);
      },
      nullptr};
  TVMFFISetCustomAllocator(&allocator);
  std::string text = ErrorText([] { TypeAttr(kPoint, "__ffi_new__").cast<Function>()(); });
  TVMFFISetCustomAllocator(nullptr);
  EXPECT_EQ(text, "RuntimeError: Failed to allocate 96 bytes for type test.dataclass.PyPoint");
}

TEST(PyClass, LongChainsAreDestroyed) {
  DefinePoint();
  Function create = TypeAttr(kPoint, "__ffi_new__").cast<Function>();
  Any chain;
  for (int i = 0; i < kDeep; ++i) {
    Any next = create();
    SetField(next, i % 2 == 0 ? "object" : "value", chain);
    chain = std::move(next);
  }
  chain.reset();
}

Any MakeMixedChain() {
  Any chain;
  for (int i = 0; i < kDeep; ++i) {
    switch (i % 5) {
      case 0:
        chain = Array<Any>{chain};
        break;
      case 1:
        chain = List<Any>{chain};
        break;
      case 2:
        chain = Map<Any, Any>{{1, chain}};
        break;
      case 3:
        chain = Dict<Any, Any>{{1, chain}};
        break;
      default:
        chain = MakeEdges(chain);
    }
  }
  return chain;
}

TEST(ReflectedObject, LongMixedChainsAreDestroyed) {
  Any chain = MakeMixedChain();
  chain.reset();
}

TEST(ReflectedObject, LongChainsAreDestroyedOnASmallStack) {
  Any chains[] = {MakeMixedChain(), MakeChain(kDeep), MakeNestedArrays(kDeep)};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 * 1024), 0);
  pthread_t thread;
  auto destroy = [](void* chains) -> void* {
    for (int i = 0; i < 3; ++i) static_cast<Any*>(chains)[i].reset();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, destroy, chains), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

TEST(ReflectedObject, ObjectsBelowALongChainAreReleased) {
  Any pair = MakePair(1, 2);
  Any list = MakeNestedArrays(1000, pair);
  for (int i = 0; i < 1000; ++i) list = List<Any>{list, pair};
  EXPECT_EQ(pair.cast<ObjectRef>().use_count(), 1003);
  list.reset();
  EXPECT_EQ(pair.cast<ObjectRef>().use_count(), 2);
}

}  // namespace
