// SPDX-License-Identifier: Apache-2.0
//
// DeepCopy: what is copied, what is shared, and how cycles come out.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/reflection/registry.h>

#include <string>
#include <vector>

#include "reflected_object.h"

namespace {

using namespace tether_test;
namespace refl = tvm::ffi::reflection;

using AnyArray = Array<Any>;
using AnyList = List<Any>;
using AnyMap = Map<Any, Any>;
using AnyDict = Dict<Any, Any>;

TEST(DeepCopy, PlainValuesAreReturned) {
  EXPECT_TRUE(DeepCopy(nullptr) == nullptr);
  EXPECT_EQ(DeepCopy(5).cast<int>(), 5);
  EXPECT_EQ(DeepCopy(2.5).cast<double>(), 2.5);
  EXPECT_TRUE(DeepCopy(true).cast<bool>());
  EXPECT_EQ(DeepCopy(String("short")).cast<String>(), "short");
}

TEST(DeepCopy, LeavesAreReturned) {
  for (Any leaf : {Any(String("a string on the heap")), Any(Bytes(std::string(20, 'x'))),
                   Any(Shape({1, 2, 3})), CallGlobal("testing.enum_variant_get", "Alpha")}) {
    EXPECT_TRUE(DeepCopy(leaf).same_as(leaf)) << leaf;
    Any copy = DeepCopy(AnyArray{leaf});
    EXPECT_TRUE(copy.cast<AnyArray>()[0].same_as(leaf)) << leaf;
  }
}

TEST(DeepCopy, ContainersAreNewEvenIfNothingInThemIs) {
  for (Any value : {Any(AnyArray{}), Any(AnyArray{1, 2}), Any(AnyList{}), Any(AnyList{1}),
                    Any(AnyMap{}), Any(AnyMap{{1, 2}}), Any(AnyDict{}), Any(AnyDict{{1, 2}})}) {
    Any copy = DeepCopy(value);
    EXPECT_FALSE(copy.same_as(value)) << value;
    EXPECT_EQ(copy.type_index(), value.type_index());
    EXPECT_TRUE(RecursiveEq(copy, value)) << value;
  }
}

TEST(DeepCopy, MapsKeepTheirOrder) {
  AnyDict dict;
  for (int i = 0; i < 100; ++i) dict.Set((i * 37) % 100, i);
  EXPECT_EQ(ReprPrint(DeepCopy(dict)), ReprPrint(dict));
  AnyMap map(dict.begin(), dict.end());
  EXPECT_EQ(ReprPrint(DeepCopy(map)), ReprPrint(map));
}

TEST(DeepCopy, NestedObjectsAreCopied) {
  Any pair = MakePair(1, 2);
  Any source = MakeEdges(AnyArray{pair}, pair);
  Any copy = DeepCopy(source);
  EXPECT_FALSE(copy.same_as(source));
  EXPECT_EQ(copy.GetTypeKey(), source.GetTypeKey());
  EXPECT_TRUE(RecursiveEq(copy, source));
  EXPECT_FALSE(GetField(copy, "v_obj").same_as(pair));
}

TEST(DeepCopy, SharingIsKept) {
  Any pair = MakePair(1, 2);
  Any source = MakeEdges(AnyArray{pair, AnyMap{{1, pair}}, AnyDict{{2, pair}}}, pair);
  Any copy = DeepCopy(source);
  Any copied = GetField(copy, "v_obj");
  auto array = GetField(copy, "v_any").cast<AnyArray>();
  EXPECT_FALSE(copied.same_as(pair));
  EXPECT_TRUE(array[0].same_as(copied));
  EXPECT_TRUE(array[1].cast<AnyMap>()[1].same_as(copied));
  EXPECT_TRUE(array[2].cast<AnyDict>()[2].same_as(copied));
}

TEST(DeepCopy, ReadOnlyFieldsAndRuntimeTypesSurvive) {
  Any target = Construct("testing.TestObjectDerived", AnyMap{{1, 2}}, AnyArray{3}, 4, 5.5, "six");
  Any source = Construct("testing.TestObjectPtrHolder", target, target);
  Any copy = DeepCopy(source);
  Any copied = GetField(copy, "value");
  EXPECT_EQ(copied.GetTypeKey(), "testing.TestObjectDerived");
  EXPECT_TRUE(RecursiveEq(copied, target));
  EXPECT_TRUE(GetField(copy, "optional_value").same_as(copied));
  EXPECT_FALSE(copied.same_as(target));
}

class SingletonObj : public Object {
 public:
  int64_t x = 3;
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUniqueInstance;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.copy.Singleton", SingletonObj, Object);
};

TEST(DeepCopy, UniqueInstancesThatAreNoEnumsAreCopied) {
  refl::ObjectDef<SingletonObj>().def_rw("x", &SingletonObj::x);
  Any source = ObjectRef(make_object<SingletonObj>());
  EXPECT_FALSE(DeepCopy(source).same_as(source));
}

TEST(DeepCopy, KeysAreCopied) {
  Any key = MakePair(1, 2);
  AnyDict source{{key, 1}};
  auto copy = DeepCopy(source).cast<AnyDict>();
  EXPECT_EQ(copy.count(key), 0U);
  EXPECT_TRUE(RecursiveEq((*copy.begin()).first, key));
}

TEST(DeepCopy, CountsAreExact) {
  Any pair = MakePair(1, 2);
  Any source = MakeEdges(AnyArray{pair}, pair);
  Any copy = DeepCopy(source);
  Any copied = GetField(copy, "v_obj");
  EXPECT_EQ(pair.cast<ObjectRef>().use_count(), 4);
  EXPECT_EQ(copied.cast<ObjectRef>().use_count(), 4);  // field, array, `copied`, the cast
}

// ---- Errors
// ---------------------------------------------------------------------------------------------

TEST(DeepCopyErrors, NotCopyable) {
  const std::string expected =
      "Cannot deep copy object of type \"testing.TestNonCopyable\" because it is not "
      "copy-constructible";
  Any value = Construct("testing.TestNonCopyable", 1);
  for (Any source : {value, Any(AnyArray{value}), Any(AnyMap{{1, value}}), MakeEdges(value)}) {
    std::string text = ErrorText([&] { DeepCopy(source); });
    EXPECT_TRUE(Contains(text, "InternalError: ")) << text;
    EXPECT_TRUE(Contains(text, expected)) << text;
  }
  EXPECT_EQ(value.cast<ObjectRef>().use_count(), 2 + 0);
}

TEST(DeepCopyErrors, FunctionsAreNotCopyable) {
  EXPECT_TRUE(Contains(ErrorText([] { DeepCopy(Function::GetGlobalRequired("testing.nop")); }),
                       "not copy-constructible"));
}

TEST(DeepCopyErrors, DepthLimit) {
  Any nested = MakeNestedArrays((1 << 20) + 1);
  EXPECT_EQ(ErrorText([&] { DeepCopy(nested); }),
            "ValueError: ObjectGraphDFS: maximum stack depth (1048576) exceeded");
}

// ---- Cycles
// ---------------------------------------------------------------------------------------------
// Each test breaks its cycles at the end, so that the leak checker stays useful.

TEST(DeepCopyCycles, ListInItself) {
  AnyList source{1};
  source.push_back(source);
  auto copy = DeepCopy(source).cast<AnyList>();
  EXPECT_FALSE(copy.same_as(source));
  EXPECT_TRUE(copy[1].same_as(copy));
  source.clear();
  copy.clear();
}

TEST(DeepCopyCycles, DictAsItsOwnValueAndKey) {
  AnyDict source;
  source.Set(1, source);
  source.Set(source, 2);
  auto copy = DeepCopy(source).cast<AnyDict>();
  EXPECT_TRUE(copy[1].same_as(copy));
  EXPECT_EQ(copy[copy].cast<int>(), 2);
  source.clear();
  copy.clear();
}

TEST(DeepCopyCycles, ObjectsReferringToEachOther) {
  Any first = MakeEdges();
  Any second = MakeEdges(first);
  SetField(first, "v_obj", second);
  Any copy = DeepCopy(first);
  Any other = GetField(copy, "v_obj");
  EXPECT_FALSE(other.same_as(second));
  EXPECT_TRUE(GetField(other, "v_any").same_as(copy));
  SetField(first, "v_obj", nullptr);
  SetField(copy, "v_obj", nullptr);
}

TEST(DeepCopyCycles, ArrayRootThroughAList) {
  AnyList list;
  AnyArray source{list, 5};
  list.push_back(source);
  auto copy = DeepCopy(source).cast<AnyArray>();
  auto copied_list = copy[0].cast<AnyList>();
  EXPECT_FALSE(copy.same_as(source));
  EXPECT_TRUE(copied_list[0].same_as(copy));
  list.clear();
  copied_list.clear();
}

TEST(DeepCopyCycles, MapRootThroughADictValueAndKey) {
  AnyDict dict;
  AnyMap source{{1, dict}};
  dict.Set(String("back"), source);
  dict.Set(source, 7);
  auto copy = DeepCopy(source).cast<AnyMap>();
  auto copied_dict = copy[1].cast<AnyDict>();
  EXPECT_TRUE(copied_dict[String("back")].same_as(copy));
  EXPECT_EQ(copied_dict[copy].cast<int>(), 7);
  EXPECT_EQ(copied_dict.count(source), 0U);
  EXPECT_EQ(copied_dict.size(), 2U);
  dict.clear();
  copied_dict.clear();
}

TEST(DeepCopyCycles, ArrayRootThroughAnObjectField) {
  Any edges = MakeEdges();
  AnyArray source{edges};
  SetField(edges, "v_any", source);
  SetField(edges, "v_obj", source);
  auto copy = DeepCopy(source).cast<AnyArray>();
  EXPECT_TRUE(GetField(copy[0], "v_any").same_as(copy));
  EXPECT_TRUE(GetField(copy[0], "v_obj").same_as(copy));
  for (Any each : {edges, copy[0]}) {
    SetField(each, "v_any", nullptr);
    SetField(each, "v_obj", nullptr);
  }
}

TEST(DeepCopyCycles, SeveralLevels) {
  AnyList list;
  AnyDict dict;
  AnyArray inner{dict, list};
  AnyMap source{{1, AnyArray{AnyArray{list}}}, {2, inner}};
  list.push_back(source);
  dict.Set(inner, source);
  auto copy = DeepCopy(source).cast<AnyMap>();
  auto copied_list = copy[1].cast<AnyArray>()[0].cast<AnyArray>()[0].cast<AnyList>();
  auto copied_inner = copy[2].cast<AnyArray>();
  auto copied_dict = copied_inner[0].cast<AnyDict>();
  EXPECT_TRUE(copied_list[0].same_as(copy));
  EXPECT_TRUE(copied_inner[1].same_as(copied_list));
  EXPECT_TRUE(copied_dict[copied_inner].same_as(copy));
  list.clear();
  dict.clear();
  copied_list.clear();
  copied_dict.clear();
}

TEST(DeepCopyCycles, BackReferenceInsideAnArrayBelowAList) {
  // root Array -> List -> Array -> root: the inner array is finished before the root is.
  AnyList list;
  AnyArray source{list};
  list.push_back(AnyArray{1, source});
  auto copy = DeepCopy(source).cast<AnyArray>();
  auto copied_list = copy[0].cast<AnyList>();
  EXPECT_TRUE(copied_list[0].cast<AnyArray>()[1].same_as(copy));
  list.clear();
  copied_list.clear();
}

TEST(DeepCopyCycles, BackReferenceInsideMapValuesAndKeysBelowAList) {
  AnyList list;
  AnyArray source{list};
  AnyMap inner{{String("v"), source}, {source, 1}, {3, 3}, {4, 4}, {5, 5}};
  list.push_back(inner);
  list.push_back(AnyMap{{inner, AnyArray{inner}}});
  auto copy = DeepCopy(source).cast<AnyArray>();
  auto copied_list = copy[0].cast<AnyList>();
  auto copied_inner = copied_list[0].cast<AnyMap>();
  EXPECT_TRUE(copied_inner[String("v")].same_as(copy));
  EXPECT_EQ(copied_inner[copy].cast<int>(), 1);
  EXPECT_EQ(copied_inner.size(), 5U);
  auto outer = copied_list[1].cast<AnyMap>();
  ASSERT_EQ(outer.count(copied_inner), 1U);
  EXPECT_TRUE(outer[copied_inner].cast<AnyArray>()[0].same_as(copied_inner));
  list.clear();
  copied_list.clear();
}

TEST(DeepCopyCycles, ListKeyThatPointsBack) {
  AnyList key;
  AnyMap source{{key, 1}};
  key.push_back(source);
  auto copy = DeepCopy(source).cast<AnyMap>();
  auto copied_key = (*copy.begin()).first.cast<AnyList>();
  EXPECT_FALSE(copied_key.same_as(key));
  EXPECT_TRUE(copied_key[0].same_as(copy));
  key.clear();
  copied_key.clear();
}

class SiblingObj : public Object {
 public:
  Array<ObjectRef> siblings;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.copy.Sibling", SiblingObj, Object);
};

TEST(DeepCopyCycles, FieldWithATypedArray) {
  // The setter checks elements, so it must never be handed a half-built array.
  refl::ObjectDef<SiblingObj>().def_rw("siblings", &SiblingObj::siblings);
  Any node = ObjectRef(make_object<SiblingObj>());
  Array<ObjectRef> source{node.cast<ObjectRef>()};
  SetField(node, "siblings", source);
  Any copy = DeepCopy(source);
  Any copied_node = copy.cast<AnyArray>()[0];
  EXPECT_TRUE(GetField(copied_node, "siblings").same_as(copy));
  SetField(node, "siblings", AnyArray{});
  SetField(copied_node, "siblings", AnyArray{});
}

// ---- Size
// -----------------------------------------------------------------------------------------------

TEST(DeepCopy, DeepChains) {
  Any chain = MakeChain(kDeep, 5);
  Any copy = DeepCopy(chain);
  EXPECT_TRUE(RecursiveEq(chain, copy));
  Any end = copy;
  int length = 0;
  for (; end.type_index() >= kTVMFFIStaticObjectBegin; ++length) end = GetField(end, "v_any");
  EXPECT_EQ(length, kDeep);
  EXPECT_EQ(end.cast<int>(), 5);
  Any nested = MakeNestedArrays(kDeep);
  EXPECT_TRUE(RecursiveEq(nested, DeepCopy(nested)));
}

TEST(DeepCopy, DeepCycleThroughAnArrayRoot) {
  Any last = MakeEdges();
  AnyArray source{MakeChain(kDeep, last)};
  SetField(last, "v_obj", source);
  auto copy = DeepCopy(source).cast<AnyArray>();
  Any end = copy[0];
  while (GetField(end, "v_any") != nullptr) end = GetField(end, "v_any");
  EXPECT_TRUE(GetField(end, "v_obj").same_as(copy));
  SetField(last, "v_obj", nullptr);
  SetField(end, "v_obj", nullptr);
}

TEST(DeepCopy, SharedGraphStaysLinear) {
  Any node = MakePair(1, 2);
  for (int i = 0; i < 60; ++i) node = AnyArray{node, node};
  Any copy = DeepCopy(node);
  auto top = copy.cast<AnyArray>();
  EXPECT_TRUE(top[0].same_as(top[1]));
}

// A field whose getter makes a new object at each call must not confuse the bookkeeping by address.
class FreshGetterObj : public Object {
 public:
  int64_t a = 1;
  int64_t b = 2;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.copy.FreshGetter", FreshGetterObj, Object);
};

int GetFresh(void* field, TVMFFIAny* result) {
  *result = details::AnyUnsafe::MoveAnyToTVMFFIAny(AnyList{*static_cast<int64_t*>(field)});
  return 0;
}

int SetFresh(void* field, const TVMFFIAny* value) {
  TVM_FFI_SAFE_CALL_BEGIN();
  auto list = AnyView::CopyFromTVMFFIAny(*value).cast<AnyList>();
  *static_cast<int64_t*>(field) = list[0].cast<int64_t>() + 100;
  TVM_FFI_SAFE_CALL_END();
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<FreshGetterObj> def;
  for (const char* name : {"a", "b"}) {
    TVMFFIFieldInfo field{};
    field.name = refl::AsByteArray(name);
    field.size = field.alignment = 8;
    field.offset = name[0] == 'a' ? 24 : 32;
    field.getter = GetFresh;
    field.setter = reinterpret_cast<void*>(&SetFresh);
    field.field_static_type_index = kTVMFFIList;
    TVM_FFI_CHECK_SAFE_CALL(
        TVMFFITypeRegisterField(FreshGetterObj::_GetOrAllocRuntimeTypeIndex(), &field));
  }
}

TEST(DeepCopy, FieldsMadeOnDemand) {
  Any source = ObjectRef(make_object<FreshGetterObj>());
  Any copy = DeepCopy(source);
  EXPECT_EQ(copy.as<FreshGetterObj>()->a, 101);
  EXPECT_EQ(copy.as<FreshGetterObj>()->b, 102);
  EXPECT_EQ(ReprPrint(source), "test.copy.FreshGetter(a=[1], b=[2])");
  std::vector<Any> many;
  for (int i = 0; i < 100; ++i) many.push_back(ObjectRef(make_object<FreshGetterObj>()));
  Any list = AnyList(many.begin(), many.end());
  EXPECT_TRUE(RecursiveEq(list, list.cast<AnyList>()));
  EXPECT_TRUE(RecursiveEq(AnyArray(many.begin(), many.end()), AnyArray(many.begin(), many.end())));
  EXPECT_EQ(RecursiveHash(many[0]), RecursiveHash(many[1]));
}

}  // namespace
