// SPDX-License-Identifier: Apache-2.0
//
// RecursiveEq, the recursive orderings, and RecursiveHash, which has to agree with RecursiveEq.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/reflection/registry.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
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

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

double NaNWithPayload(uint64_t payload) {
  uint64_t bits = 0x7ff8000000000000 | payload;
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

String HeapString(const std::string& text) { return String(std::string(text)); }
Bytes HeapBytes(const std::string& text) { return Bytes(std::string(text)); }

void ExpectEqual(const Any& lhs, const Any& rhs) {
  EXPECT_TRUE(RecursiveEq(lhs, rhs)) << lhs << " and " << rhs;
  EXPECT_TRUE(RecursiveEq(rhs, lhs)) << lhs << " and " << rhs;
  EXPECT_EQ(RecursiveHash(lhs), RecursiveHash(rhs)) << lhs << " and " << rhs;
}

void ExpectUnequal(const Any& lhs, const Any& rhs) {
  EXPECT_FALSE(RecursiveEq(lhs, rhs)) << lhs << " and " << rhs;
  EXPECT_FALSE(RecursiveEq(rhs, lhs)) << lhs << " and " << rhs;
  EXPECT_NE(RecursiveHash(lhs), RecursiveHash(rhs)) << lhs << " and " << rhs;
}

// All eight answers for an ordered pair.
void ExpectLess(const Any& lhs, const Any& rhs) {
  EXPECT_TRUE(RecursiveLt(lhs, rhs)) << lhs << " < " << rhs;
  EXPECT_TRUE(RecursiveLe(lhs, rhs)) << lhs << " < " << rhs;
  EXPECT_FALSE(RecursiveGt(lhs, rhs)) << lhs << " < " << rhs;
  EXPECT_FALSE(RecursiveGe(lhs, rhs)) << lhs << " < " << rhs;
  EXPECT_FALSE(RecursiveLt(rhs, lhs)) << lhs << " < " << rhs;
  EXPECT_FALSE(RecursiveLe(rhs, lhs)) << lhs << " < " << rhs;
  EXPECT_TRUE(RecursiveGt(rhs, lhs)) << lhs << " < " << rhs;
  EXPECT_TRUE(RecursiveGe(rhs, lhs)) << lhs << " < " << rhs;
  ExpectUnequal(lhs, rhs);
}

void ExpectOrderedEqual(const Any& lhs, const Any& rhs) {
  EXPECT_TRUE(RecursiveLe(lhs, rhs));
  EXPECT_TRUE(RecursiveGe(lhs, rhs));
  EXPECT_FALSE(RecursiveLt(lhs, rhs));
  EXPECT_FALSE(RecursiveGt(lhs, rhs));
  ExpectEqual(lhs, rhs);
}

std::string LtError(const Any& lhs, const Any& rhs) {
  return ErrorText([&] { RecursiveLt(lhs, rhs); });
}

// ---- Values
// -----------------------------------------------------------------------------------------

TEST(RecursiveCompare, IntegersBoolsFloats) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  ExpectLess(1, 2);
  ExpectLess(kMin, kMax);
  ExpectLess(-1, kMax);
  ExpectOrderedEqual(kMax, kMax);
  ExpectLess(false, true);
  ExpectLess(-kInf, -1.5);
  ExpectLess(1.5, kInf);
  ExpectOrderedEqual(0.0, -0.0);
}

TEST(RecursiveCompare, NaN) {
  ExpectEqual(kNaN, kNaN);
  ExpectEqual(kNaN, NaNWithPayload(7));
  ExpectEqual(AnyArray{kNaN}, AnyArray{-kNaN});
  EXPECT_FALSE(RecursiveEq(kNaN, 1.0));
  EXPECT_EQ(LtError(kNaN, kNaN), "TypeError: Cannot order NaN values");
  EXPECT_EQ(LtError(1.0, kNaN), "TypeError: Cannot order NaN values");
  EXPECT_EQ(LtError(AnyArray{kNaN}, AnyArray{kNaN}), "TypeError: Cannot order NaN values");
}

TEST(RecursiveCompare, NoneIsLessThanEverything) {
  ExpectOrderedEqual(nullptr, nullptr);
  for (Any value : {Any(0), Any(false), Any(String("")), Any(AnyArray{}), MakePair(0, 0)}) {
    ExpectLess(nullptr, value);
  }
}

TEST(RecursiveCompare, StringsAcrossForms) {
  ExpectOrderedEqual(String("abc"), HeapString("abc"));
  ExpectLess(String("abc"), HeapString("abd"));
  ExpectLess(String("1234567"), String("12345678"));
  ExpectLess(String(std::string("a\0", 2)), String(std::string("a\0b", 3)));
  ExpectLess(String(""), String("a"));
  ExpectOrderedEqual(String("a long string here"), String("a long string here"));
}

TEST(RecursiveCompare, BytesAcrossForms) {
  ExpectOrderedEqual(Bytes("abc", 3), HeapBytes("abc"));
  ExpectLess(Bytes("1234567", 7), Bytes("12345678", 8));
  ExpectUnequal(Bytes("\x00", 1), Bytes("\xff", 1));
  EXPECT_FALSE(RecursiveEq(Bytes("abc", 3), String("abc")));
}

TEST(RecursiveCompare, DataTypesAndDevices) {
  ExpectLess(DLDataType{kDLInt, 32, 1}, DLDataType{kDLFloat, 16, 1});
  ExpectLess(DLDataType{kDLInt, 8, 4}, DLDataType{kDLInt, 32, 1});
  ExpectLess(DLDataType{kDLInt, 8, 1}, DLDataType{kDLInt, 8, 2});
  ExpectLess(DLDevice{kDLCPU, 5}, DLDevice{kDLCUDA, 0});
  ExpectLess(DLDevice{kDLCUDA, 0}, DLDevice{kDLCUDA, 1});
}

TEST(RecursiveCompare, OtherValuesHaveNoOrder) {
  int a = 0;
  int b = 0;
  ExpectEqual(static_cast<void*>(&a), static_cast<void*>(&a));
  EXPECT_FALSE(RecursiveEq(static_cast<void*>(&a), static_cast<void*>(&b)));
  EXPECT_EQ(LtError(static_cast<void*>(&a), static_cast<void*>(&b)),
            "TypeError: Cannot order values of type void*");
  EXPECT_TRUE(RecursiveLe(static_cast<void*>(&a), static_cast<void*>(&a)));
}

TEST(RecursiveCompare, DifferentTypesAreUnequalAndUnordered) {
  ExpectUnequal(1, true);
  ExpectUnequal(1, 1.0);
  ExpectUnequal(0, nullptr);
  ExpectUnequal(AnyArray{1}, AnyList{1});
  ExpectUnequal(AnyMap{{1, 2}}, AnyDict{{1, 2}});
  EXPECT_EQ(LtError(1, true), "TypeError: Cannot compare values of different types: int vs bool");
  EXPECT_EQ(LtError(1, 1.0), "TypeError: Cannot compare values of different types: int vs float");
  EXPECT_EQ(LtError(AnyArray{}, AnyList{}),
            "TypeError: Cannot compare values of different types: ffi.Array vs ffi.List");
  EXPECT_EQ(LtError(MakePair(1, 2), MakeEdges()),
            "TypeError: Cannot compare values of different types: testing.TestIntPair vs "
            "testing.TestDeepCopyEdges");
}

// ---- Containers
// -------------------------------------------------------------------------------------

TEST(RecursiveCompare, SequencesAreLexicographic) {
  ExpectOrderedEqual(AnyArray{1, 2}, AnyArray{1, 2});
  ExpectLess(AnyArray{1, 2}, AnyArray{1, 3});
  ExpectLess(AnyArray{1, 9}, AnyArray{2, 0});
  ExpectLess(AnyArray{1}, AnyArray{1, 0});
  ExpectLess(AnyList{}, AnyList{nullptr});
  ExpectLess(AnyArray{AnyArray{1}, 9}, AnyArray{AnyArray{1, 1}, 0});
  ExpectLess(AnyArray{1, 5, 5}, AnyArray{2});
}

TEST(RecursiveCompare, Shapes) {
  ExpectOrderedEqual(Shape({1, 2}), Shape({1, 2}));
  ExpectLess(Shape({1, 2}), Shape({1, 3}));
  ExpectLess(Shape({1}), Shape({1, 0}));
}

TEST(RecursiveCompare, MappingsIgnoreOrder) {
  ExpectOrderedEqual(AnyMap{{1, 2}, {3, 4}}, AnyMap{{3, 4}, {1, 2}});
  ExpectOrderedEqual(AnyDict{{String("a"), 1}}, AnyDict{{HeapString("a"), 1}});
  ExpectUnequal(AnyMap{{1, 2}}, AnyMap{{1, 3}});
  ExpectUnequal(AnyMap{{1, 2}}, AnyMap{{2, 2}});
  ExpectUnequal(AnyMap{{1, 2}}, AnyMap{{1, 2}, {2, 2}});
}

TEST(RecursiveCompare, MappingsHaveNoOrder) {
  const std::string expected = "TypeError: Cannot order Map/Dict values";
  EXPECT_EQ(LtError(AnyMap{{1, 2}}, AnyMap{{1, 3}}), expected);
  EXPECT_EQ(LtError(AnyMap{{1, 2}}, AnyMap{{2, 2}}), expected);
  EXPECT_EQ(LtError(AnyDict{}, AnyDict{{2, 2}}), expected);
  EXPECT_EQ(LtError(AnyArray{AnyMap{{1, AnyArray{1}}}}, AnyArray{AnyMap{{1, AnyArray{2}}}}),
            expected);
  EXPECT_EQ(LtError(AnyMap{{1, AnyArray{1}}}, AnyMap{{1, AnyArray{1, 2}}}), expected);
  // A difference before the map is reached decides.
  ExpectLess(AnyArray{1, AnyMap{{1, 1}}}, AnyArray{2, AnyMap{{1, 2}}});
}

// ---- Objects
// ----------------------------------------------------------------------------------------

TEST(RecursiveCompare, ObjectsCompareFieldByField) {
  ExpectOrderedEqual(MakePair(1, 2), MakePair(1, 2));
  ExpectLess(MakePair(1, 2), MakePair(1, 3));
  ExpectLess(MakePair(1, 9), MakePair(2, 0));
  ExpectEqual(MakeEdges(MakePair(1, 2)), MakeEdges(MakePair(1, 2)));
  ExpectLess(MakeEdges(MakePair(1, 2)), MakeEdges(MakePair(1, 3)));
}

TEST(RecursiveCompare, InheritedFieldsCount) {
  Any lhs = Construct("testing.TestCxxClassDerived", 1, 2, 3.0);
  Any rhs = Construct("testing.TestCxxClassDerived", 1, 3, 3.0);
  ExpectLess(lhs, rhs);
}

TEST(RecursiveCompare, DerivedAndParentAreDifferentTypes) {
  Any parent = Construct("testing.TestCxxClassBase", 1, 2);
  Any derived = Construct("testing.TestCxxClassDerived", 1, 2, 3.0);
  EXPECT_FALSE(RecursiveEq(parent, derived));
  EXPECT_TRUE(Contains(LtError(parent, derived), "TypeError: Cannot compare values of different"));
}

TEST(RecursiveCompare, FieldsCanBeLeftOut) {
  auto compare = [](int64_t key, const char* name, int64_t ignored) {
    return Construct("testing.TestCompare", key, name, ignored);
  };
  ExpectOrderedEqual(compare(1, "a", 1), compare(1, "a", 2));
  ExpectLess(compare(1, "a", 9), compare(1, "b", 0));
  auto hash = [](int64_t ignored) { return Construct("testing.TestHash", 1, "a", ignored); };
  EXPECT_EQ(RecursiveHash(hash(1)), RecursiveHash(hash(2)));
  EXPECT_FALSE(RecursiveEq(hash(1), hash(2)));
}

TEST(RecursiveCompare, FunctionsAreEqualToThemselves) {
  const Function nop = Function::GetGlobalRequired("testing.nop");
  const Function add = Function::GetGlobalRequired("testing.add_one");
  ExpectEqual(nop, nop);
  EXPECT_FALSE(RecursiveEq(nop, add));
  EXPECT_FALSE(RecursiveEq(AnyArray{nop}, AnyArray{add}));
  EXPECT_EQ(RecursiveHash(nop), RecursiveHash(add));
  EXPECT_TRUE(Contains(LtError(nop, add), "TypeError: Cannot order values of type ffi.Function"));
}

TEST(RecursiveCompare, TensorsAreEqualByTypeShapeAndElements) {
  struct HostAlloc {
    void AllocData(DLTensor* tensor) {
      tensor->data = std::malloc(GetDataSize(*tensor));
      std::memset(tensor->data, 1, GetDataSize(*tensor));
    }
    void FreeData(DLTensor* tensor) { std::free(tensor->data); }
  };
  auto make = [](const Shape& shape, DLDataType dtype) {
    return Tensor::FromNDAlloc(HostAlloc(), shape, dtype, DLDevice{kDLCPU, 0});
  };
  const DLDataType int8{kDLInt, 8, 1};
  const Tensor first = make({3}, int8);
  ExpectEqual(first, make({3}, int8));
  EXPECT_FALSE(RecursiveEq(first, make({4}, int8)));
  EXPECT_FALSE(RecursiveEq(first, make({3}, DLDataType{kDLUInt, 8, 1})));
  EXPECT_FALSE(RecursiveEq(first, make({3, 1}, int8)));
  const Tensor other = make({3}, int8);
  static_cast<int8_t*>(other.data_ptr())[2] = 2;
  EXPECT_FALSE(RecursiveEq(first, other));
  EXPECT_TRUE(Contains(LtError(first, other), "TypeError: Cannot order values of type ffi.Tensor"));
  // Three elements of four bits: what stands in the last half byte belongs to none of them.
  const DLDataType int4{kDLInt, 4, 1};
  const Tensor halves = make({3}, int4), others = make({3}, int4);
  static_cast<uint8_t*>(others.data_ptr())[1] = 0xf1;
  ExpectEqual(halves, others);
  static_cast<uint8_t*>(others.data_ptr())[1] = 0xf2;
  EXPECT_FALSE(RecursiveEq(halves, others));
}

// Nobody looks at a tensor that a client makes before it is compared.
TEST(RecursiveCompare, WrongTensorsAreEqualToThemselvesOnly) {
  struct Lender {
    void AllocData(DLTensor* tensor) { tensor->data = this; }
    void FreeData(DLTensor*) {}
  };
  auto make = [](int32_t ndim, bool has_shape) {
    Tensor made = Tensor::FromNDAlloc(Lender(), {0, 2}, DLDataType{kDLInt, 8, 1}, {kDLCPU, 0});
    auto* tensor = static_cast<TensorObj*>(const_cast<Object*>(made.operator->()));
    tensor->ndim = ndim;
    if (!has_shape) tensor->shape = nullptr;
    return made;
  };
  for (int32_t ndim : {2, -1, 1 << 30}) {
    const Tensor wrong = make(ndim, false);
    EXPECT_TRUE(RecursiveEq(wrong, wrong));
    EXPECT_FALSE(RecursiveEq(wrong, make(ndim, false)));
    EXPECT_FALSE(RecursiveEq(wrong, make(2, true)));
  }
  ExpectEqual(make(2, true), make(2, true));
}

TEST(RecursiveCompare, SameObjectIsEqualWhateverIsInIt) {
  Any value = MakeEdges(AnyMap{{1, kNaN}});
  EXPECT_TRUE(RecursiveEq(value, value));
  EXPECT_TRUE(RecursiveLe(value, value));
}

TEST(RecursiveCompare, OrderLaws) {
  std::vector<Any> ascending = {AnyArray{nullptr}, AnyArray{AnyArray{}}, AnyArray{AnyArray{1}},
                                AnyArray{AnyArray{1, 2}}, AnyArray{AnyArray{2}}};
  for (size_t i = 0; i < ascending.size(); ++i) {
    ExpectOrderedEqual(ascending[i], DeepCopy(ascending[i]));
    for (size_t j = i + 1; j < ascending.size(); ++j) ExpectLess(ascending[i], ascending[j]);
  }
}

// ---- Cycles and sharing
// -------------------------------------------------------------------------------

struct CyclicLists {
  AnyList first;
  AnyList second;
  CyclicLists() {
    first.push_back(first);
    second.push_back(second);
  }
  ~CyclicLists() {
    first.clear();
    second.clear();
  }
};

TEST(RecursiveCompareCycles, EqualShapesOfCyclesAreEqual) {
  CyclicLists lists;
  ExpectEqual(lists.first, lists.second);
  AnyDict dict;
  dict.Set(1, dict);
  AnyDict other;
  other.Set(1, other);
  ExpectEqual(dict, other);
  dict.clear();
  other.clear();
}

TEST(RecursiveCompareCycles, OrderingOfCyclesIsRefused) {
  CyclicLists lists;
  EXPECT_EQ(LtError(lists.first, lists.second),
            "ValueError: RecursiveCompare: cyclic reference detected in ordering");
}

TEST(RecursiveCompareCycles, DifferenceInsideACycleIsFound) {
  CyclicLists lists;
  lists.first.push_back(1);
  lists.second.push_back(2);
  EXPECT_FALSE(RecursiveEq(lists.first, lists.second));
}

// A back pointer that owns nothing: no object on the cycle has more than one owner.
class BackPointerObj : public Object {
 public:
  const Object* parent = nullptr;
  Any child;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.compare.BackPointer", BackPointerObj, Object);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<BackPointerObj>(refl::init(false))
      .def_rw("child", &BackPointerObj::child)
      .def_rw("parent", &BackPointerObj::parent);
}

TEST(RecursiveCompareCycles, CyclesThroughBorrowedPointers) {
  Any outside = MakePair(1, 2);
  auto make = [&](int leaf) {
    auto root = make_object<BackPointerObj>();
    auto child = make_object<BackPointerObj>();
    root->parent = outside.as<Object>();
    child->parent = root.get();
    child->child = leaf;
    root->child = ObjectRef(child);
    return Any(ObjectRef(root));
  };
  Any lhs = make(1);
  Any rhs = make(1);
  ExpectEqual(lhs, rhs);
  EXPECT_TRUE(Contains(LtError(lhs, rhs), "cyclic reference"));
  EXPECT_FALSE(RecursiveEq(lhs, make(2)));
  Any copy = DeepCopy(lhs);
  EXPECT_EQ(GetField(copy, "child").as<BackPointerObj>()->parent, copy.as<Object>());
  EXPECT_EQ(ReprPrint(lhs),
            "test.compare.BackPointer(child=test.compare.BackPointer(child=1, parent=...), "
            "parent=testing.TestIntPair(a=1, b=2))");
}

TEST(RecursiveCompare, SharedGraphsStayLinear) {
  Any lhs = 1;
  Any rhs = 1;
  for (int i = 0; i < 60; ++i) {
    lhs = AnyArray{lhs, lhs};
    rhs = AnyArray{rhs, rhs};
  }
  ExpectOrderedEqual(lhs, rhs);
}

TEST(RecursiveHash, AliasingIsInvisible) {
  Any pair = MakePair(1, 2);
  ExpectEqual(AnyArray{pair, pair}, AnyArray{MakePair(1, 2), MakePair(1, 2)});
  ExpectEqual(AnyMap{{1, pair}, {2, pair}}, AnyMap{{2, MakePair(1, 2)}, {1, MakePair(1, 2)}});
}

TEST(RecursiveCompare, DeepChains) {
  Any lhs = MakeChain(kDeep, 1);
  Any rhs = MakeChain(kDeep, 1);
  ExpectOrderedEqual(lhs, rhs);
  ExpectLess(lhs, MakeChain(kDeep, 2));
  ExpectLess(MakeNestedArrays(kDeep, 1), MakeNestedArrays(kDeep, 2));
}

TEST(RecursiveCompareErrors, DepthLimit) {
  Any lhs = MakeNestedArrays((1 << 20) + 1);
  Any rhs = MakeNestedArrays((1 << 20) + 1);
  EXPECT_EQ(ErrorText([&] { RecursiveEq(lhs, rhs); }),
            "ValueError: RecursiveCompare: maximum stack depth (1048576) exceeded");
  EXPECT_EQ(ErrorText([&] { RecursiveHash(lhs); }),
            "ValueError: ObjectGraphDFS: maximum stack depth (1048576) exceeded");
}

// ---- Hash values
// ----------------------------------------------------------------------------------------

TEST(RecursiveHash, PublishedValues) {
  auto hash = [](const Any& value) { return static_cast<uint64_t>(RecursiveHash(value)); };
  EXPECT_EQ(hash(nullptr), 0x9e3779b9U);
  EXPECT_EQ(hash(42), 0x9e377a22U);
  EXPECT_EQ(hash(true), 0x9e377a38U);
  EXPECT_EQ(hash(1.5), 0x3ff800009e377a7aU);
  EXPECT_EQ(hash(kNaN), 0x7ff800009e377a7aU);
  EXPECT_EQ(hash(String("")), 0x9e378a48U);
  EXPECT_EQ(hash(String("hello")), 0x10aa3f00eU);
  EXPECT_EQ(hash(String("hello world")), 0xdef11395U);
  EXPECT_EQ(hash(HeapBytes("12345678")), 0xc2d928a7U);
  EXPECT_EQ(hash(DLDataType{kDLFloat, 32, 1}), 0xa16fbe40c6bU);
  EXPECT_EQ(hash(DLDevice{kDLCUDA, 1}), 0x28cd935c32U);
#if defined(__GLIBCXX__) && defined(__LP64__)
  EXPECT_EQ(hash(AnyArray{}), 0xe417f0b0ed7acef8U);
  EXPECT_EQ(hash(AnyArray{1, 2, 3}), 0xf25bebcb36c0931cU);
  EXPECT_EQ(hash(AnyMap{{String("a"), 1}, {String("b"), 2}}), 0x789971d58163746eU);
#endif
}

TEST(RecursiveHash, TellsSimilarValuesApart) {
  EXPECT_NE(RecursiveHash(AnyArray{1, 2}), RecursiveHash(AnyArray{2, 61}));
  EXPECT_NE(RecursiveHash(AnyArray{1, 2}), RecursiveHash(AnyArray{2, 1}));
  EXPECT_NE(RecursiveHash(AnyMap{{1, 2}, {3, 4}}), RecursiveHash(AnyMap{{1, 4}, {3, 2}}));
  EXPECT_NE(RecursiveHash(kInf), RecursiveHash(-kInf));
  EXPECT_NE(RecursiveHash(Bytes("1234567", 7)), RecursiveHash(Bytes("12345678", 8)));
}

TEST(RecursiveHash, SelfContainingDict) {
  AnyDict dict;
  dict.Set(String("self"), dict);
  EXPECT_EQ(RecursiveHash(dict), RecursiveHash(dict));
  dict.clear();
}

// ---- Hooks
// ----------------------------------------------------------------------------------------------

Any MakeKeyed(const char* type_key, int64_t key, const char* label) {
  return Construct(type_key, key, label);
}

TEST(CompareHooks, ReplaceTheFieldWalk) {
  auto make = [](int64_t key, const char* label) {
    return MakeKeyed("testing.TestCustomCompare", key, label);
  };
  ExpectOrderedEqual(make(1, "a"), make(1, "b"));
  ExpectLess(make(-7, "z"), make(1024, "a"));
  ExpectOrderedEqual(AnyMap{{1, make(1, "a")}}, AnyMap{{1, make(1, "b")}});
  ExpectLess(AnyList{make(1, "a")}, AnyList{make(2, "a")});
}

TEST(CompareHooks, HashHookAlone) {
  Any lhs = MakeKeyed("testing.TestCustomHash", 1, "a");
  Any rhs = MakeKeyed("testing.TestCustomHash", 1, "b");
  EXPECT_EQ(RecursiveHash(lhs), RecursiveHash(rhs));
  EXPECT_EQ(RecursiveHash(lhs), RecursiveHash(1));
  EXPECT_EQ(RecursiveHash(AnyDict{{1, AnyList{lhs}}}), RecursiveHash(AnyDict{{1, AnyList{rhs}}}));
}

TEST(CompareHooks, EqHookDoesNotOrder) {
  auto make = [](int64_t key, const char* label) {
    return MakeKeyed("testing.TestEqWithoutHash", key, label);
  };
  EXPECT_TRUE(RecursiveEq(make(1, "alpha"), make(1, "beta")));
  EXPECT_FALSE(RecursiveEq(make(1, "alpha"), make(2, "alpha")));
  EXPECT_TRUE(RecursiveLt(make(1, "alpha"), make(1, "beta")));
}

TEST(CompareHooks, EqWithoutHashIsNotHashable) {
  Any value = MakeKeyed("testing.TestEqWithoutHash", 1, "a");
  for (Any each : {value, Any(AnyArray{value})}) {
    EXPECT_EQ(
        ErrorText([&] { RecursiveHash(each); }),
        "ValueError: RecursiveHash: type 'testing.TestEqWithoutHash' defines __ffi_eq__ or "
        "__ffi_compare__ but not __ffi_hash__. Add a __ffi_hash__ hook to maintain the invariant "
        "RecursiveEq(a,b) => RecursiveHash(a)==RecursiveHash(b).");
  }
}

// Equal unless both parts are equal: a hook that turns a "different" into an "equal".
class ContraryObj : public Object {
 public:
  Any part;
  Any other;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.compare.Contrary", ContraryObj, Object);
};

// Only ordered, through its part; hashes through its part too.
class OrderedObj : public Object {
 public:
  Any part;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.compare.Ordered", OrderedObj, Object);
};

class BrokenHookObj : public Object {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.compare.BrokenHook", BrokenHookObj, Object);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<ContraryObj>()
      .def_rw("part", &ContraryObj::part)
      .def_rw("other", &ContraryObj::other, refl::default_value(nullptr));
  refl::TypeAttrDef<ContraryObj>().def(
      refl::type_attr::kEq, [](const ContraryObj* lhs, const ContraryObj* rhs, Function fn_eq) {
        if (fn_eq(lhs->part, rhs->part).cast<bool>()) return false;
        return fn_eq(lhs->other, rhs->other).cast<bool>();
      });
  refl::ObjectDef<OrderedObj>().def_rw("part", &OrderedObj::part);
  refl::TypeAttrDef<OrderedObj>()
      .def(refl::type_attr::kCompare,
           [](const OrderedObj* lhs, const OrderedObj* rhs, Function fn_cmp) {
             return fn_cmp(lhs->part, rhs->part).cast<int32_t>();
           })
      .def(refl::type_attr::kHash, [](const OrderedObj* self, Function fn_hash) {
        return fn_hash(self->part).cast<int64_t>();
      });
  refl::ObjectDef<BrokenHookObj> broken;
  refl::TypeAttrDef<BrokenHookObj>()
      .def(refl::type_attr::kEq,
           [](const BrokenHookObj*, const BrokenHookObj*, Function) { return String("maybe"); })
      .def(refl::type_attr::kCompare,
           [](const BrokenHookObj*, const BrokenHookObj*, Function) -> int {
             TVM_FFI_THROW(ValueError) << "no comparison";
           })
      .def(refl::type_attr::kHash, [](const BrokenHookObj*, Function) { return String("#"); });
}

Any MakeOrdered(Any part) { return Construct("test.compare.Ordered", part); }
Any MakeContrary(Any part, Any other = Any()) {
  return Construct("test.compare.Contrary", part, other);
}

TEST(CompareHooks, CompareHookServesEquality) {
  ExpectOrderedEqual(MakeOrdered(1), MakeOrdered(1));
  ExpectLess(MakeOrdered(1), MakeOrdered(2));
  // Unorderable parts are merely unequal when only equality is asked.
  EXPECT_FALSE(RecursiveEq(MakeOrdered(1), MakeOrdered(String("x"))));
  EXPECT_TRUE(Contains(LtError(MakeOrdered(1), MakeOrdered(String("x"))), "TypeError: "));
  EXPECT_TRUE(RecursiveEq(MakeOrdered(AnyMap{{1, 1}}), MakeOrdered(AnyMap{{1, 1}})));
}

TEST(CompareHooks, CyclesThroughHooks) {
  Any first = MakeOrdered(nullptr);
  Any second = MakeOrdered(nullptr);
  SetField(first, "part", AnyList{first});
  SetField(second, "part", AnyList{second});
  ExpectEqual(first, second);
  EXPECT_TRUE(Contains(LtError(first, second), "cyclic reference"));
  SetField(first, "part", nullptr);
  SetField(second, "part", nullptr);
}

TEST(CompareHooks, RefutedAssumptionsAreForgotten) {
  // Comparing the parts assumes the two lists equal, finds `back` equal on that ground, and then
  // meets the difference. `other` asks about the same `back` again.
  auto make = [](int difference) {
    AnyList list;
    Any back = AnyArray{list};
    list.push_back(back);
    list.push_back(difference);
    return MakeContrary(list, back);
  };
  Any lhs = make(1);
  Any rhs = make(2);
  EXPECT_FALSE(RecursiveEq(lhs, rhs));
  for (const Any& each : {lhs, rhs}) GetField(each, "part").cast<AnyList>().clear();
}

TEST(CompareHooks, BadResults) {
  Any lhs = Construct("test.compare.BrokenHook");
  Any rhs = Construct("test.compare.BrokenHook");
  EXPECT_EQ(ErrorText([&] { RecursiveEq(lhs, rhs); }),
            "TypeError: Cannot convert from type `ffi.SmallStr` to `bool`");
  EXPECT_EQ(LtError(AnyArray{lhs}, AnyArray{rhs}), "ValueError: no comparison");
  EXPECT_EQ(ErrorText([&] { RecursiveHash(lhs); }),
            "TypeError: Cannot convert from type `ffi.SmallStr` to `int`");
}

TEST(CompareHooks, NestingHasALimit) {
  Any lhs = 1;
  Any rhs = 1;
  auto nest = [&](int levels) {
    for (int i = 0; i < levels; ++i) {
      lhs = MakeOrdered(lhs);
      rhs = MakeOrdered(rhs);
    }
  };
  nest(100);
  ExpectOrderedEqual(lhs, rhs);
  nest(kDeep);
  for (auto call : {+[](const Any&l, const Any&r) { (void)RecursiveEq(l, r); },
                    +[](const Any&l, const Any&) { (void)RecursiveHash(l); }}) {
    EXPECT_TRUE(Contains(ErrorText([&] { call(lhs, rhs); }),
                         "ValueError: type attribute hooks are nested too deeply"));
  }
}

TEST(RecursiveCompare, GlobalFunctions) {
  EXPECT_TRUE(CallGlobal("ffi.RecursiveEq", AnyArray{1}, AnyArray{1}).cast<bool>());
  EXPECT_TRUE(CallGlobal("ffi.RecursiveLt", 1, 2).cast<bool>());
  EXPECT_TRUE(CallGlobal("ffi.RecursiveLe", 2, 2).cast<bool>());
  EXPECT_FALSE(CallGlobal("ffi.RecursiveGt", 1, 2).cast<bool>());
  EXPECT_FALSE(CallGlobal("ffi.RecursiveGe", 1, 2).cast<bool>());
  EXPECT_EQ(CallGlobal("ffi.RecursiveHash", 42).cast<int64_t>(), 0x9e377a22);
}

}  // namespace
