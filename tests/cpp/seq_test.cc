// SPDX-License-Identifier: Apache-2.0
//
// Array and List: layout, growth, sharing, conversions, and the global functions of both.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/rvalue_ref.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core_objects.h"
#include "reflected_object.h"

namespace {

// Holds lists of itself and of a class that is never defined: naming a container must not need its
// elements complete.
class Tree;
class NeverDefined;

}  // namespace

namespace tvm {
namespace ffi {
template <>
inline constexpr bool is_object_subclass_v<::Tree> = true;
template <>
inline constexpr bool is_object_subclass_v<::NeverDefined> = true;
}  // namespace ffi
}  // namespace tvm

namespace {

using namespace tvm::ffi;
using namespace core_test;
using tether_test::CallGlobal;
using tether_test::ErrorText;

class Tree : public Object {
 public:
  List<Arc<Tree>> children;
  List<ObjectPtr<NeverDefined>>* others = nullptr;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("seq_test.Tree", Tree, Object);
};

// The fields of a sequence as another binary reads them.
struct RawSeq {
  TVMFFIAny* data;
  int64_t size;
  int64_t capacity;
  void (*data_deleter)(void*);
};

RawSeq* RawOf(const ObjectRef& ref) {
  const char* bytes = reinterpret_cast<const char*>(ref.get());
  return reinterpret_cast<RawSeq*>(const_cast<char*>(bytes) + 24);
}

template <typename Seq>
std::vector<int> Ints(const Seq& seq) {
  std::vector<int> result;
  for (int x : seq) result.push_back(x);
  return result;
}

using V = std::vector<int>;

// ---- Layout

TEST(SeqLayout, FieldsAreWhereOtherBinariesExpectThem) {
  static_assert(sizeof(SeqBaseObj) == 56 && sizeof(ArrayObj) == 56 && sizeof(ListObj) == 56);
  static_assert(alignof(ArrayObj) == 8);
  static_assert(sizeof(Array<int>) == sizeof(ObjectPtr<Object>));
  static_assert(sizeof(List<int>) == sizeof(ObjectPtr<Object>));
  static_assert(sizeof(Array<int>::iterator) == 8 && sizeof(List<int>::reverse_iterator) == 8);

  Array<int> array = {7, 8, 9};
  RawSeq* raw = RawOf(array);
  EXPECT_EQ(array->type_index(), 71);
  EXPECT_EQ(reinterpret_cast<const char*>(raw->data),
            reinterpret_cast<const char*>(array.get()) + 56);
  EXPECT_EQ(raw->size, 3);
  EXPECT_EQ(raw->capacity, 3);
  EXPECT_EQ(raw->data_deleter, nullptr);
  EXPECT_EQ(raw->data[1].type_index, kTVMFFIInt);
  EXPECT_EQ(raw->data[1].v_int64, 8);

  List<int> list = {7, 8, 9};
  raw = RawOf(list);
  EXPECT_EQ(list->type_index(), 75);
  EXPECT_EQ(raw->size, 3);
  EXPECT_EQ(raw->capacity, 3);
  EXPECT_NE(raw->data_deleter, nullptr);
  EXPECT_EQ(raw->data[2].v_int64, 9);
}

TEST(SeqLayout, AnEmptyListHasNoBufferButADeleter) {
  List<int> list;
  EXPECT_EQ(RawOf(list)->data, nullptr);
  EXPECT_EQ(RawOf(list)->capacity, 0);
  ASSERT_NE(RawOf(list)->data_deleter, nullptr);
  RawOf(list)->data_deleter(nullptr);
  // Also when it is made without the container class.
  List<int> bare(make_object<ListObj>());
  bare.push_back(1);
  EXPECT_EQ(Ints(bare), V({1}));
}

TEST(SeqLayout, AnotherBinaryMayGrowAListWithItsOwnOperatorNew) {
  List<int> list = {1, 2};
  RawSeq* raw = RawOf(list);
  auto* buffer = static_cast<TVMFFIAny*>(::operator new(8 * sizeof(TVMFFIAny)));
  std::memcpy(buffer, raw->data, 2 * sizeof(TVMFFIAny));
  auto deleter = raw->data_deleter;
  deleter(raw->data);
  raw->data = buffer;
  raw->capacity = 8;
  list.push_back(3);
  EXPECT_EQ(RawOf(list)->data, buffer);
  for (int i = 4; i < 20; ++i) list.push_back(i);
  EXPECT_EQ(RawOf(list)->data_deleter, deleter) << "the first deleter stays";
  EXPECT_EQ(list.size(), 19u);
}

int frees = 0;
void CountingFree(void* data) {
  ++frees;
  ::operator delete(data);
}

TEST(SeqLayout, TheDeleterOfAForeignListIsKeptAndCalledForEveryBuffer) {
  frees = 0;
  {
    List<int> list = {1};
    RawOf(list)->data_deleter = CountingFree;
    list.reserve(100);
    EXPECT_EQ(frees, 1);
    EXPECT_EQ(RawOf(list)->data_deleter, &CountingFree);
  }
  EXPECT_EQ(frees, 2);
}

TEST(SeqLayout, AnArrayWithAnOutsideBufferIsReadThroughItsPointer) {
  frees = 0;
  {
    Array<Any> array;
    auto* cells = static_cast<TVMFFIAny*>(::operator new(2 * sizeof(TVMFFIAny)));
    cells[0] = details::AnyUnsafe::MoveAnyToTVMFFIAny(Any(String("a string on the heap")));
    cells[1] = details::AnyUnsafe::MoveAnyToTVMFFIAny(Any(5));
    RawSeq* raw = RawOf(array);
    *raw = RawSeq{cells, 2, 2, CountingFree};
    EXPECT_EQ(array[0].cast<String>(), "a string on the heap");
    array.push_back(1);  // moves into an array of its own
    EXPECT_EQ(array.size(), 3u);
    EXPECT_EQ(frees, 1);
  }
  EXPECT_EQ(frees, 1);
}

TEST(SeqLayout, TypeInformation) {
  static_assert(ArrayObj::_type_index == 71 && ListObj::_type_index == 75);
  static_assert(ArrayObj::_type_final && ListObj::_type_final);
  static_assert(ArrayObj::_type_depth == 1 && ListObj::_type_depth == 1);
  static_assert(!Array<int>::_type_container_is_exact && !List<int>::_type_container_is_exact);
  static_assert(!Array<int>::_type_is_nullable && !List<int>::_type_is_nullable);
  static_assert(std::is_same_v<Array<int>::ContainerType, ArrayObj>);
  static_assert(std::is_same_v<List<String>::value_type, String>);
  EXPECT_STREQ(ArrayObj::_type_key, "ffi.Array");
  EXPECT_STREQ(ListObj::_type_key, "ffi.List");
  EXPECT_EQ(TypeToFieldStaticTypeIndex<Array<int>>::value, 71);
  EXPECT_EQ(TypeToFieldStaticTypeIndex<List<int>>::value, 75);
  // The C++ base has no type of its own: every object counts as one.
  EXPECT_NE(Any(String("long enough to be an object")).as<SeqBaseObj>(), nullptr);
}

// ---- Growth

TEST(Array, GrowsByDoublingFromFour) {
  Array<int> array;
  EXPECT_EQ(array.capacity(), 4u);
  std::vector<size_t> capacities;
  for (int i = 0; i < 40; ++i) {
    array.push_back(i);
    if (capacities.empty() || capacities.back() != array.capacity()) {
      capacities.push_back(array.capacity());
    }
  }
  EXPECT_EQ(capacities, (std::vector<size_t>{4, 8, 16, 32, 64}));
}

TEST(List, GrowsByDoublingFromNothing) {
  List<int> list;
  std::vector<size_t> capacities = {list.capacity()};
  for (int i = 0; i < 20; ++i) {
    list.push_back(i);
    if (capacities.back() != list.capacity()) capacities.push_back(list.capacity());
  }
  EXPECT_EQ(capacities, (std::vector<size_t>{0, 1, 2, 4, 8, 16, 32}));
}

TEST(Array, ObjectLevelCopiesAndMoves) {
  Array<int> array = {1, 2, 3};
  ArrayObj* object = array.GetArrayObj();
  EXPECT_EQ(ErrorText([&] { ArrayObj::CopyFrom(2, object); }), "ValueError: Not enough capacity");
  EXPECT_EQ(ErrorText([&] { ArrayObj::MoveFrom(2, object); }), "RuntimeError: Not enough capacity");
  ObjectPtr<ArrayObj> copy = ArrayObj::CopyFrom(10, object);
  EXPECT_EQ(copy->size(), 3u);
  EXPECT_EQ(copy->capacity(), 10u);
  EXPECT_EQ(object->size(), 3u);
  ObjectPtr<ArrayObj> moved = ArrayObj::MoveFrom(3, object);
  EXPECT_EQ(moved->size(), 3u);
  EXPECT_EQ(object->size(), 0u);
  EXPECT_EQ(ArrayObj::CreateRepeated(3, Any(7))->at(2).cast<int>(), 7);
  EXPECT_EQ(make_object<ArrayObj>()->capacity(), 4u);
}

TEST(Array, ACountThatCannotExistIsRejected) {
  EXPECT_EQ(ErrorText([] { Array<int>(static_cast<size_t>(-1), 1); }),
            "ValueError: cannot construct an Array of negative size");
  EXPECT_EQ(ErrorText([] { List<int>(static_cast<size_t>(-1), 1); }),
            "ValueError: cannot construct a List of negative size");
}

// ---- Construction

TEST(Array, ConstructionPicksTheElementList) {
  Array<Any> from_braces({1, 2});
  EXPECT_EQ(from_braces.size(), 2u);
  Array<Any> mixed = {1, 2.5, "s", true, nullptr};
  EXPECT_EQ(mixed.size(), 5u);
  EXPECT_EQ(mixed[2].cast<String>(), "s");
  EXPECT_EQ(mixed[4], nullptr);
  EXPECT_EQ(Array<int64_t>({4, 5}).size(), 2u);
  Int one(1), two(2);
  Array<Number> bases = {one, two};
  EXPECT_EQ(bases.size(), 2u);
  Array<Array<Number>> nested = {{}, {one, two}};
  EXPECT_EQ(nested[0].size(), 0u);
  EXPECT_EQ(nested[1].size(), 2u);
  Array<int> inner = {1};
  Array<Array<int>> one_inner = {inner};
  ASSERT_EQ(one_inner.size(), 1u);
  EXPECT_TRUE(one_inner[0].same_as(inner));
  Map<String, int> map;
  EXPECT_EQ(Array<Any>{map}.size(), 1u);
  auto count = [](Array<Number> numbers) { return numbers.size(); };
  EXPECT_EQ(count({}), 0u);
  EXPECT_EQ(count({one, one}), 2u);
}

TEST(Array, ConstructsFromIteratorsVectorsAndRepetition) {
  std::vector<int> source = {1, 2, 3};
  EXPECT_EQ(Ints(Array<int>(source.begin(), source.end())), source);
  EXPECT_EQ(Array<int>(source.begin(), source.end()).capacity(), 3u);
  Array<int> implicit = source;
  EXPECT_EQ(Ints(implicit), source);
  EXPECT_EQ(Ints(Array<int>(3, 5)), V({5, 5, 5}));
  EXPECT_EQ(Ints(List<int>(size_t{2}, 5)), V({5, 5}));
  EXPECT_EQ(Ints(List<int>(source)), source);
  static_assert(is_valid_iterator_v<Any, int*> && is_valid_iterator_v<Number, const Int*>);
  static_assert(is_valid_iterator_v<Optional<Int>, Int*>);
  static_assert(!is_valid_iterator_v<int64_t, int*>);
}

TEST(Array, TheUnsafeHandleIsNullAndReadsAsEmpty) {
  Array<int> null(UnsafeInit{});
  EXPECT_FALSE(null.defined());
  EXPECT_EQ(null.size(), 0u);
  EXPECT_EQ(null.capacity(), 0u);
  EXPECT_TRUE(null.empty());
  EXPECT_EQ(ErrorText([&] { null[0]; }), "IndexError: cannot index a null array");
  EXPECT_EQ(ErrorText([&] { null.front(); }), "IndexError: cannot index a null array");
  EXPECT_EQ(ErrorText([&] { null.pop_back(); }), "RuntimeError: cannot pop_back a null array");
  Array<int> source = {1, 2};
  EXPECT_EQ(ErrorText([&] { null.insert(source.begin(), 1); }),
            "RuntimeError: cannot insert a null array");
  EXPECT_EQ(ErrorText([&] { null.erase(source.begin()); }),
            "RuntimeError: cannot erase a null array");
  null.clear();
  EXPECT_FALSE(null.defined());
  null.resize(3);
  EXPECT_EQ(null.size(), 0u);
  EXPECT_EQ(null.capacity(), 3u);
  Array<int> pushed(UnsafeInit{});
  pushed.push_back(1);
  EXPECT_EQ(pushed.capacity(), 4u);
  EXPECT_EQ(Any(Array<int>(UnsafeInit{})), nullptr);
}

TEST(List, TheUnsafeHandleIsNullAndFillsOnDemand) {
  List<int> null(UnsafeInit{});
  EXPECT_EQ(null.size(), 0u);
  EXPECT_EQ(ErrorText([&] { null[0]; }), "IndexError: cannot index a null list");
  EXPECT_EQ(ErrorText([&] { null.back(); }), "IndexError: cannot index a null list");
  EXPECT_EQ(ErrorText([&] { null.pop_back(); }), "RuntimeError: cannot pop_back a null list");
  List<int> source = {1, 2};
  EXPECT_EQ(ErrorText([&] { null.insert(source.begin(), 1); }),
            "RuntimeError: cannot insert to a null list");
  EXPECT_EQ(ErrorText([&] { null.erase(source.begin(), source.end()); }),
            "RuntimeError: cannot erase a null list");
  EXPECT_EQ(ErrorText([&] { source.resize(-1); }),
            "ValueError: cannot resize a List to negative size");
  null.clear();
  EXPECT_FALSE(null.defined());
  null.push_back(1);
  EXPECT_EQ(null.capacity(), 4u);
  List<int> reserved(UnsafeInit{});
  reserved.reserve(2);
  EXPECT_EQ(reserved.capacity(), 4u);
}

// ---- Reading

TEST(Array, IndexesAreCheckedAtBothEnds) {
  Array<int> array = {1, 2, 3};
  EXPECT_EQ(array[2], 3);
  EXPECT_EQ(array.front(), 1);
  EXPECT_EQ(array.back(), 3);
  EXPECT_EQ(ErrorText([&] { array[3]; }), "IndexError: Index 3 out of bounds 3");
  EXPECT_EQ(ErrorText([&] { array[-1]; }), "IndexError: Index -1 out of bounds 3");
  EXPECT_EQ(ErrorText([&] { array.GetArrayObj()->at(-1); }),
            "IndexError: Index -1 out of bounds 3");
  EXPECT_EQ(ErrorText([&] { array.GetArrayObj()->SetItem(-1, 1); }),
            "IndexError: Index -1 out of bounds 3");
  EXPECT_EQ(ErrorText([&] { array.Set(3, 1); }), "IndexError: Index 3 out of bounds 3");
  Array<int> empty;
  EXPECT_EQ(ErrorText([&] { empty.front(); }), "IndexError: front() on empty sequence");
  EXPECT_EQ(ErrorText([&] { empty.back(); }), "IndexError: back() on empty sequence");
  EXPECT_EQ(ErrorText([&] { empty.pop_back(); }), "IndexError: pop_back on empty sequence");
}

TEST(Array, IteratorsYieldValues) {
  Array<int> array = {1, 2, 3};
  static_assert(std::is_same_v<decltype(*array.begin()), int>);
  static_assert(std::is_same_v<decltype(Array<String>()[0]), const String>);
  static_assert(std::is_same_v<decltype(List<String>()[0]), String>);
  static_assert(std::is_same_v<std::iterator_traits<Array<int>::iterator>::iterator_category,
                               std::random_access_iterator_tag>);
  EXPECT_EQ(std::accumulate(array.begin(), array.end(), 0), 6);
  EXPECT_EQ(array.end() - array.begin(), 3);
  EXPECT_EQ(*(array.begin() + 1), 2);
  EXPECT_EQ(*(array.end() - 1), 3);
  auto it = array.begin();
  it += 2;
  EXPECT_EQ(*it, 3);
  it -= 1;
  EXPECT_EQ(*it--, 2);
  EXPECT_EQ(*it++, 1);
  EXPECT_EQ(std::find(array.begin(), array.end(), 2) - array.begin(), 1);
  V reversed;
  for (auto r = array.rbegin(); r != array.rend(); ++r) reversed.push_back(*r);
  EXPECT_EQ(reversed, V({3, 2, 1}));
  EXPECT_EQ(*(array.rbegin() + 1), 2);
  EXPECT_EQ(array.rend() - array.rbegin(), 3);
}

TEST(Array, ReadingAnElementAddsOneReference) {
  Box box(1);
  Array<Box> array = {box};
  EXPECT_EQ(box.use_count(), 2);
  {
    Box read = array[0];
    EXPECT_EQ(box.use_count(), 3);
  }
  array = Array<Box>();
  EXPECT_EQ(box.use_count(), 1);
}

// ---- Writing

TEST(Array, ASharedHandleCopiesBeforeItWrites) {
  Array<int> a = {1, 2, 3};
  Array<int> b = a;
  EXPECT_TRUE(a.same_as(b));
  b.Set(0, 9);
  EXPECT_EQ(Ints(a), V({1, 2, 3}));
  EXPECT_EQ(Ints(b), V({9, 2, 3}));
  EXPECT_EQ(b.capacity(), 3u) << "a copy keeps the capacity";
  Array<int> c = b;
  c.clear();
  EXPECT_EQ(b.size(), 3u);
  Array<int> d = b;
  d.push_back(4);
  EXPECT_EQ(Ints(b), V({9, 2, 3}));
  EXPECT_EQ(Ints(d), V({9, 2, 3, 4}));
}

TEST(Array, TheOnlyHandleWritesInPlace) {
  Array<int> array = {1, 2, 3};
  const Object* address = array.get();
  array.Set(1, 5);
  array.pop_back();
  array.push_back(6);
  EXPECT_EQ(array.get(), address);
  array.push_back(7);
  EXPECT_NE(array.get(), address) << "growth moves to another object";
  EXPECT_EQ(Ints(array), V({1, 5, 6, 7}));
}

TEST(Array, EqualSizeResizeDoesNotCopy) {
  Array<int> a = {1, 2};
  Array<int> b = a;
  b.resize(2);
  EXPECT_TRUE(a.same_as(b));
  b.reserve(1);
  EXPECT_TRUE(a.same_as(b));
  b.reserve(9);
  EXPECT_EQ(b.capacity(), 9u);
  EXPECT_EQ(a.capacity(), 2u);
  EXPECT_EQ(ErrorText([&] { a.resize(-1); }),
            "ValueError: cannot resize an Array to negative size");
  Array<Any> any = {1};
  any.resize(3);
  EXPECT_EQ(any[2], nullptr);
}

TEST(Array, AssignReusesTheStorageOfTheOnlyHandle) {
  Array<int> array = {1, 2, 3};
  const Object* address = array.get();
  V source = {7, 8};
  array.Assign(source.begin(), source.end());
  EXPECT_EQ(array.get(), address);
  EXPECT_EQ(Ints(array), source);
  V longer = {1, 2, 3, 4};
  array.Assign(longer.begin(), longer.end());
  EXPECT_EQ(array.capacity(), 4u);
  EXPECT_EQ(ErrorText([&] { array.Assign(longer.end(), longer.begin()); }),
            "ValueError: cannot construct an Array of negative size");
}

TEST(Array, AppendingAnArrayToItselfStoresTheOldOne) {
  Array<Any> any;
  any.push_back(any);
  ASSERT_EQ(any.size(), 1u);
  EXPECT_EQ(any[0].cast<Array<Any>>().size(), 0u);
  EXPECT_FALSE(any[0].cast<ObjectRef>().same_as(any));
  // The same through a reference type, where no temporary Any stands in between.
  Array<ObjectRef> refs;
  refs.push_back(refs);
  EXPECT_FALSE(refs[0].same_as(refs));
  EXPECT_EQ(refs.use_count(), 1);
}

TEST(Array, ConcatAndAgregate) {
  Array<int> a = {1, 2};
  Array<int> both = Concat(a, a);
  EXPECT_EQ(Ints(both), V({1, 2, 1, 2}));
  EXPECT_EQ(Ints(a), V({1, 2}));
  EXPECT_EQ(Ints(Concat(Array<int>(), a)), V({1, 2}));
  EXPECT_EQ(Ints(Array<int>::Agregate(0, a, 3, a)), V({0, 1, 2, 3, 1, 2}));
  EXPECT_EQ(Array<int>::CalcCapacityImpl(0, a, 3), 4u);
  EXPECT_TRUE(Array<int>::Agregate().defined());
}

TEST(Array, EditsLikeAVector) {
  std::mt19937 rng(7);
  Array<int> array;
  List<int> list;
  V model;
  for (int step = 0; step < 2000; ++step) {
    const int size = static_cast<int>(model.size());
    const int at = size == 0 ? 0 : static_cast<int>(rng() % (size + 1));
    switch (rng() % 6) {
      case 0:
        array.push_back(step), list.push_back(step), model.push_back(step);
        break;
      case 1:
        array.insert(array.begin() + at, step), list.insert(list.begin() + at, step);
        model.insert(model.begin() + at, step);
        break;
      case 2: {
        V range(rng() % 4, step);
        array.insert(array.begin() + at, range.begin(), range.end());
        list.insert(list.begin() + at, range.begin(), range.end());
        model.insert(model.begin() + at, range.begin(), range.end());
        break;
      }
      case 3:
        if (at == size) break;
        array.erase(array.begin() + at), list.erase(list.begin() + at);
        model.erase(model.begin() + at);
        break;
      case 4: {
        const int end = at + static_cast<int>(rng() % (size - at + 1));
        array.erase(array.begin() + at, array.begin() + end);
        list.erase(list.begin() + at, list.begin() + end);
        model.erase(model.begin() + at, model.begin() + end);
        break;
      }
      default:
        if (size == 0) break;
        array.pop_back(), list.pop_back(), model.pop_back();
    }
    if (model.size() > 50) array.clear(), list.clear(), model.clear();
    ASSERT_EQ(Ints(array), model);
    ASSERT_EQ(Ints(list), model);
  }
}

// ---- Map and MutateByApply

TEST(Array, MapKeepsTheObjectWhenNothingChanges) {
  Box a(1), b(2);
  Array<Box> array = {a, b};
  Array<Box> same = array.Map([](Box x) { return x; });
  EXPECT_TRUE(same.same_as(array));
  Array<Box> changed = array.Map([&](Box x) { return x.same_as(a) ? x : Box(9); });
  EXPECT_FALSE(changed.same_as(array));
  EXPECT_TRUE(changed[0].same_as(a));
  EXPECT_EQ(changed[1]->value, 9);
  Array<int> numbers = array.Map([](Box x) { return static_cast<int>(x->value); });
  EXPECT_EQ(Ints(numbers), V({1, 2}));
  EXPECT_FALSE(Array<Box>(UnsafeInit{}).Map([](Box x) { return x; }).defined());
  Array<Number> wider = Array<Int>{Int(1)}.Map([](Int x) -> Number { return x; });
  EXPECT_EQ(wider.size(), 1u);
}

TEST(Array, MutateByApplyWorksInPlaceOnTheOnlyHandle) {
  Array<Box> array = {Box(1), Box(2)};
  const Object* address = array.get();
  array.MutateByApply([](Box x) {
    EXPECT_EQ(x.use_count(), 1) << "the callee gets the only reference";
    return Box(x->value + 10);
  });
  EXPECT_EQ(array.get(), address);
  EXPECT_EQ(array[1]->value, 12);
  Array<Box> other = array;
  array.MutateByApply([](Box x) { return Box(0); });
  EXPECT_NE(array.get(), address);
  EXPECT_EQ(other[0]->value, 11);
  Array<Any> any = {1, 2};
  any.MutateByApply([](Any x) { return Any(x.cast<int>() + 1); });
  EXPECT_EQ(any[1].cast<int>(), 3);
}

TEST(Array, AThrowingMapLeaksNothing) {
  const int before = BoxObj::alive;
  {
    Array<Box> array = {Box(1), Box(2), Box(3)};
    auto fail_at_2 = [](Box x) {
      if (x->value == 2) TVM_FFI_THROW(ValueError) << "two";
      return Box(x->value * 10);
    };
    Array<Box> shared = array;
    EXPECT_EQ(ErrorText([&] { shared.Map(fail_at_2); }), "ValueError: two");
    EXPECT_EQ(array.size(), 3u);
    shared = Array<Box>();
    EXPECT_EQ(ErrorText([&] { array.MutateByApply(fail_at_2); }), "ValueError: two");
    EXPECT_FALSE(array.defined());
  }
  EXPECT_EQ(BoxObj::alive, before);
}

// ---- Object-level operations

TEST(SeqObject, EditsAndTheirErrors) {
  List<int> list = {0, 1, 2, 3, 4};
  ListObj* object = list.GetListObj();
  object->erase(1);
  EXPECT_EQ(Ints(list), V({0, 2, 3, 4}));
  object->erase(1, 3);
  EXPECT_EQ(Ints(list), V({0, 4}));
  object->insert(1, Any(9));
  EXPECT_EQ(Ints(list), V({0, 9, 4}));
  V more = {7, 8};
  object->insert(3, more.begin(), more.end());
  EXPECT_EQ(Ints(list), V({0, 9, 4, 7, 8}));
  object->Reverse();
  EXPECT_EQ(Ints(list), V({8, 7, 4, 9, 0}));
  object->resize(2);
  EXPECT_EQ(Ints(list), V({8, 7}));
  object->resize(3);
  EXPECT_EQ(object->at(2), nullptr);
  object->pop_back();
  EXPECT_EQ(object->front().cast<int>(), 8);
  EXPECT_EQ(object->back().cast<int>(), 7);

  EXPECT_EQ(ErrorText([&] { object->erase(2); }), "IndexError: Index 2 out of bounds 2");
  EXPECT_EQ(ErrorText([&] { object->erase(-1); }), "IndexError: Index -1 out of bounds 2");
  EXPECT_EQ(ErrorText([&] { object->erase(-1, 1); }),
            "IndexError: Erase range [-1, 1) out of bounds 2");
  EXPECT_EQ(ErrorText([&] { object->erase(0, 3); }),
            "IndexError: Erase range [0, 3) out of bounds 2");
  EXPECT_EQ(ErrorText([&] { object->erase(2, 1); }),
            "IndexError: Erase range [2, 1) out of bounds 2");
  object->erase(99, 99);  // nothing to erase, nothing to check
  EXPECT_EQ(ErrorText([&] { object->insert(3, Any(1)); }),
            "IndexError: Index 3 out of bounds [0, 2]");
  EXPECT_EQ(ErrorText([&] { object->insert(-1, more.begin(), more.end()); }),
            "IndexError: Index -1 out of bounds [0, 2]");
  EXPECT_EQ(ErrorText([&] { object->resize(-1); }), "ValueError: Cannot resize to negative size");
  object->clear();
  EXPECT_EQ(object->size(), 0u);
  EXPECT_EQ(object->capacity(), 5u);
  EXPECT_EQ(ErrorText([&] { object->pop_back(); }), "IndexError: pop_back on empty sequence");
}

// An object whose destructor changes a list.
class MeddlerObj : public Object {
 public:
  explicit MeddlerObj(List<Any>* victim) : victim_(victim) {}
  ~MeddlerObj() {
    if (victim_ == nullptr) return;
    sizes.push_back(victim_->size());
    victim_->push_back(7);
    victim_->push_back(8);
  }
  static inline std::vector<size_t> sizes;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("seq_test.Meddler", MeddlerObj, Object);

 private:
  List<Any>* victim_;
};

TEST(SeqObject, AnElementMayChangeTheListWhileItIsRemoved) {
  auto meddler = [](List<Any>* list) { return Any(make_object<MeddlerObj>(list)); };
  List<Any> list;
  list.push_back(1), list.push_back(meddler(&list)), list.push_back(3);
  list.GetListObj()->erase(1);
  EXPECT_EQ(list.size(), 4u);
  EXPECT_EQ(list[1].cast<int>(), 3);
  EXPECT_EQ(list[3].cast<int>(), 8);

  List<Any> set;
  set.push_back(meddler(&set));
  set.Set(0, 5);
  EXPECT_EQ(set[0].cast<int>(), 5);
  EXPECT_EQ(set.size(), 3u);

  List<Any> range;
  for (int i = 0; i < 3; ++i) range.push_back(meddler(&range));
  range.push_back(4);
  range.GetListObj()->erase(0, 3);
  EXPECT_EQ(range[0].cast<int>(), 4);

  List<Any> popped;
  popped.push_back(meddler(&popped));
  MeddlerObj::sizes.clear();
  popped.pop_back();
  EXPECT_EQ(MeddlerObj::sizes, std::vector<size_t>({0})) << "the list was already whole";
}

struct Explosive {
  int value;
};

}  // namespace

namespace tvm {
namespace ffi {
// Converts to Any by throwing for the value 3.
template <>
struct TypeTraits<::Explosive> : public TypeTraitsBase {
  static void CopyToAnyView(const ::Explosive& src, TVMFFIAny* result) {
    if (src.value == 3) TVM_FFI_THROW(ValueError) << "three";
    TypeTraits<int>::CopyToAnyView(src.value, result);
  }
  static void MoveToAny(::Explosive src, TVMFFIAny* result) { CopyToAnyView(src, result); }
  static bool CheckAnyStrict(const TVMFFIAny* src) { return TypeTraits<int>::CheckAnyStrict(src); }
  static ::Explosive CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return ::Explosive{TypeTraits<int>::CopyFromAnyViewAfterCheck(src)};
  }
};
}  // namespace ffi
}  // namespace tvm

namespace {

TEST(SeqObject, AThrowingElementLeavesTheSequenceAsItWas) {
  std::vector<Explosive> source = {{1}, {2}, {3}};
  List<Explosive> list;
  list.push_back(Explosive{9});
  EXPECT_EQ(ErrorText([&] { list.insert(list.begin(), source.begin(), source.end()); }),
            "ValueError: three");
  EXPECT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].value, 9);
  EXPECT_EQ(ErrorText([&] { list.push_back(Explosive{3}); }), "ValueError: three");
  EXPECT_EQ(list.size(), 1u);
  EXPECT_EQ(ErrorText([&] { Array<Explosive> array(source); }), "ValueError: three");
}

// ---- List

TEST(List, EveryHandleSeesEveryChange) {
  List<int> a = {1, 2};
  List<int> b = a;
  List<Any> wide = a;
  b.push_back(3);
  a.Set(0, 9);
  EXPECT_EQ(Ints(b), V({9, 2, 3}));
  EXPECT_EQ(wide.size(), 3u);
  EXPECT_TRUE(a.same_as(b));
  const Object* address = a.get();
  a.reserve(100);
  EXPECT_EQ(a.get(), address);
  EXPECT_EQ(b.capacity(), 100u);
  EXPECT_EQ(Ints(b), V({9, 2, 3}));
  a.reserve(1);
  EXPECT_EQ(b.capacity(), 100u) << "capacity never shrinks";
  b.clear();
  EXPECT_TRUE(a.empty());
  List<Any> assigned;
  assigned = a;
  EXPECT_TRUE(assigned.same_as(a));
  V source = {4, 5};
  b.Assign(source.begin(), source.end());
  EXPECT_EQ(Ints(a), source);
  EXPECT_EQ(ErrorText([&] { b.Assign(source.end(), source.begin()); }),
            "ValueError: cannot construct a List of negative size");
}

TEST(List, ElementsAreReleasedWithTheList) {
  const int before = BoxObj::alive;
  {
    List<Box> list = {Box(1), Box(2)};
    list.push_back(Box(3));
    EXPECT_EQ(BoxObj::alive, before + 3);
    list.clear();
    EXPECT_EQ(BoxObj::alive, before);
    list.push_back(Box(4));
  }
  EXPECT_EQ(BoxObj::alive, before);
}

TEST(List, NamesItsElementsBeforeTheyAreComplete) {
  ObjectPtr<Tree> root = make_object<Tree>();
  Arc<Tree> leaf = make_arc<Tree>();
  root->children.push_back(leaf);
  EXPECT_EQ(root->children[0].get(), leaf.get());
  EXPECT_EQ(leaf.use_count(), 2);
}

// ---- Conversions

TEST(SeqConversion, FittingElementsShareTheObject) {
  Array<double> doubles = {1.5, 2.5};
  Any any = doubles;
  EXPECT_EQ(doubles.use_count(), 2);
  Array<double> same = any.cast<Array<double>>();
  Array<Any> wide = any.cast<Array<Any>>();
  EXPECT_TRUE(same.same_as(doubles));
  EXPECT_TRUE(wide.same_as(doubles));
  EXPECT_EQ(doubles.use_count(), 4);
  List<Any> list = {1};
  EXPECT_TRUE(Any(list).cast<List<Any>>().same_as(list));
  EXPECT_TRUE(Any(list).cast<List<int>>().same_as(list));
  Any owner = List<int>{1};
  List<int> taken = std::move(owner).cast<List<int>>();
  EXPECT_EQ(taken.use_count(), 1);
}

TEST(SeqConversion, OtherElementsAreConvertedIntoANewObject) {
  Array<Any> mixed = {11.1, 1};
  Array<double> converted = Any(mixed).cast<Array<double>>();
  EXPECT_FALSE(converted.same_as(mixed));
  EXPECT_EQ(converted[1], 1.0);
  EXPECT_EQ(mixed[1].type_index(), kTVMFFIInt);
}

TEST(SeqConversion, TheOtherKindIsAlwaysCopied) {
  List<int> list = {1, 2};
  Array<int> array = Any(list).cast<Array<int>>();
  list.push_back(3);
  EXPECT_EQ(Ints(array), V({1, 2}));
  List<Any> back = Any(array).cast<List<Any>>();
  EXPECT_EQ(back.size(), 2u);
  back.push_back(1);
  EXPECT_EQ(array.size(), 2u);
  EXPECT_TRUE(Any(List<Any>()).cast<Array<Any>>().defined());
}

TEST(SeqConversion, AsNeverConverts) {
  EXPECT_FALSE(Any(Array<Any>{1, 2.5}).as<Array<int>>().has_value());
  EXPECT_TRUE(Any(Array<Any>{1, 2}).as<Array<int>>().has_value());
  EXPECT_FALSE(Any(List<Any>{1}).as<Array<int>>().has_value());
  EXPECT_FALSE(Any(nullptr).as<Array<int>>().has_value());
  EXPECT_NE(Any(Array<int>{1}).as<ArrayObj>(), nullptr);
  EXPECT_EQ(Any(List<int>{1}).as<ArrayObj>(), nullptr);
}

TEST(SeqConversion, ErrorsNameTheFirstElementThatDoesNotFit) {
  auto cast_error = [](const Any& any, auto target) {
    using T = typename decltype(target)::type;
    return ErrorText([&] { any.cast<T>(); });
  };
  struct Ai {
    using type = Array<int>;
  };
  struct Aai {
    using type = Array<Array<int>>;
  };
  struct Li {
    using type = List<int>;
  };
  EXPECT_EQ(cast_error(Array<Any>{11.1, 1}, Ai{}),
            "TypeError: Cannot convert from type `Array[index 0: float]` to `Array<int>`");
  EXPECT_EQ(
      cast_error(Array<Any>{Array<Any>{}, Array<Any>{Int(1)}}, Aai{}),
      "TypeError: Cannot convert from type `Array[index 1: Array[index 0: core_test.Int]]` to "
      "`Array<Array<int>>`");
  EXPECT_EQ(cast_error(Array<Any>{1, "s"}, Li{}),
            "TypeError: Cannot convert from type `List[index 1: ffi.SmallStr]` to `List<int>`");
  EXPECT_EQ(cast_error(nullptr, Ai{}),
            "TypeError: Cannot convert from type `None` to `Array<int>`");
  EXPECT_EQ(cast_error(1, Ai{}), "TypeError: Cannot convert from type `int` to `Array<int>`");
}

TEST(SeqConversion, ErrorsOfArguments) {
  Function f = Function::FromTyped([](Array<int>) {});
  EXPECT_EQ(ErrorText([&] {
              f(Array<Any>{1, 2.5});
            }),
            "TypeError: Mismatched type on argument #0 when calling: `(0: Array<int>) -> void`. "
            "Expected `Array<int>` but got `Array[index 1: float]`");
  Function g = Function::FromTyped([](RValueRef<Array<int>>) {});
  EXPECT_EQ(
      ErrorText([&] {
        g(RValueRef(Array<Any>{1, 2.5}));
      }),
      "TypeError: Mismatched type on argument #0 when calling: `(0: RValueRef<Array<int>>) -> "
      "void`. Expected `RValueRef<Array<int>>` but got `RValueRef<Array[index 1: float]>`");
}

TEST(SeqConversion, AnRValueArgumentStaysUnique) {
  Array<int> array = {1, 2};
  const Object* address = array.get();
  Function f = Function::FromTyped([&](RValueRef<Array<int>> ref) {
    Array<int> owned = *std::move(ref);
    owned.Set(0, 5);
    EXPECT_EQ(owned.get(), address) << "written in place";
    return owned;
  });
  Array<int> result = f(RValueRef(std::move(array))).cast<Array<int>>();
  EXPECT_EQ(result.get(), address);
  EXPECT_FALSE(array.defined());
}

TEST(SeqConversion, NamesAndSchemas) {
  EXPECT_EQ(TypeTraits<Array<int>>::TypeStr(), "Array<int>");
  EXPECT_EQ(TypeTraits<List<Any>>::TypeStr(), "List<Any>");
  EXPECT_EQ(TypeTraits<Array<List<String>>>::TypeStr(), "Array<List<str>>");
  EXPECT_EQ(TypeTraits<Array<int>>::TypeSchema(),
            R"({"type":"ffi.Array","args":[{"type":"int"}]})");
  EXPECT_EQ(TypeTraits<List<Arc<NumberObj>>>::TypeSchema(),
            R"({"type":"ffi.List","args":[{"type":"core_test.Number"}]})");
  EXPECT_EQ(
      TypeTraits<List<ObjectPtr<NumberObj>>>::TypeSchema(),
      R"({"type":"ffi.List","args":[{"type":"Optional","args":[{"type":"core_test.Number"}]}]})");
  EXPECT_EQ(TypeTraits<Array<const NumberObj*>>::TypeSchema(),
            R"({"type":"ffi.Array","args":[{"type":"core_test.Number"}]})");
}

TEST(SeqConversion, WiderElementTypesShareNarrowerOnesAtCompileTime) {
  static_assert(type_subsumes_v<Array<Any>, Array<int>> &&
                !type_subsumes_v<Array<int>, Array<Any>>);
  static_assert(type_subsumes_v<Array<Number>, Array<Int>>);
  static_assert(type_subsumes_v<Array<ObjectPtr<NumberObj>>, Array<ObjectPtr<IntObj>>>);
  static_assert(type_subsumes_v<Array<ObjectPtr<NumberObj>>, Array<Arc<IntObj>>>);
  static_assert(!type_subsumes_v<Array<Arc<NumberObj>>, Array<ObjectPtr<IntObj>>>);
  static_assert(std::is_convertible_v<List<Int>, List<Number>>);
  static_assert(!std::is_convertible_v<List<Number>, List<Int>>);
  static_assert(!std::is_constructible_v<Array<Arc<NumberObj>>, Array<ObjectPtr<NumberObj>>>);
  Array<Int> ints = {Int(1)};
  Array<Number> numbers = ints;
  EXPECT_TRUE(numbers.same_as(ints));
  numbers = std::move(ints);
  EXPECT_FALSE(ints.defined());
  EXPECT_EQ(numbers.use_count(), 1);
}

TEST(SeqConversion, OwningPointersAsElements) {
  ObjectPtr<IntObj> one = make_object<IntObj>(1);
  Array<ObjectPtr<IntObj>> pointers = {one, nullptr};
  EXPECT_EQ(pointers[0]->value, 1);
  EXPECT_EQ(pointers[1], nullptr);
  EXPECT_TRUE(Any(pointers).cast<Array<ObjectPtr<NumberObj>>>().same_as(pointers));
  EXPECT_FALSE(Any(pointers).try_cast<Array<Arc<IntObj>>>().has_value()) << "None is no Arc";
  pointers.pop_back();
  EXPECT_TRUE(Any(pointers).cast<Array<Arc<IntObj>>>().same_as(pointers));
}

TEST(SeqConversion, RawPointersAsElementsAreOwnedByTheContainer) {
  const int before = BoxObj::alive;
  {
    Array<const BoxObj*> array;
    {
      Box box(3);
      array.push_back(box.get());
      EXPECT_EQ(box.use_count(), 2);
    }
    EXPECT_EQ(array[0]->value, 3);
    List<const BoxObj*> list = Any(array).cast<List<const BoxObj*>>();
    EXPECT_EQ(list[0], array[0]);
  }
  EXPECT_EQ(BoxObj::alive, before);
}

// ---- Global functions

TEST(SeqGlobals, ArrayFunctions) {
  Array<Any> array = CallGlobal("ffi.Array", 1, "two", nullptr).cast<Array<Any>>();
  EXPECT_EQ(array.capacity(), 3u);
  EXPECT_EQ(CallGlobal("ffi.ArraySize", array).cast<int>(), 3);
  EXPECT_EQ(CallGlobal("ffi.ArrayGetItem", array, 1).cast<String>(), "two");
  EXPECT_EQ(ErrorText([&] { CallGlobal("ffi.ArrayGetItem", array, -1); }),
            "IndexError: Index -1 out of bounds 3");
  EXPECT_TRUE(CallGlobal("ffi.ArrayContains", array, 1).cast<bool>());
  EXPECT_TRUE(CallGlobal("ffi.ArrayContains", array, String("two")).cast<bool>());
  EXPECT_FALSE(CallGlobal("ffi.ArrayContains", array, true).cast<bool>());
  EXPECT_FALSE(CallGlobal("ffi.ArrayContains", Array<Any>(), 1).cast<bool>());
  EXPECT_EQ(
      ErrorText([&] { CallGlobal("ffi.ArrayGetItem", List<Any>{1}, 0); }),
      "TypeError: Mismatched type on argument #0 when calling: `ffi.ArrayGetItem(0: ffi.Array, "
      "1: int) -> Any`. Expected `ffi.Array` but got `ffi.List`");
}

TEST(SeqGlobals, ListFunctions) {
  List<Any> list = CallGlobal("ffi.List", 1, 2).cast<List<Any>>();
  CallGlobal("ffi.ListAppend", list, 3);
  CallGlobal("ffi.ListInsert", list, 0, 0);
  EXPECT_EQ(CallGlobal("ffi.ListSize", list).cast<int>(), 4);
  CallGlobal("ffi.ListSetItem", list, 1, "x");
  EXPECT_EQ(CallGlobal("ffi.ListGetItem", list, 1).cast<String>(), "x");
  EXPECT_TRUE(CallGlobal("ffi.ListContains", list, "x").cast<bool>());
  EXPECT_EQ(CallGlobal("ffi.ListPop", list, 1).cast<String>(), "x");
  CallGlobal("ffi.ListReverse", list);
  EXPECT_EQ(list[0].cast<int>(), 3);
  CallGlobal("ffi.ListErase", list, 0);
  EXPECT_EQ(list.size(), 2u);
  CallGlobal("ffi.ListEraseRange", list, 1, 2);
  EXPECT_EQ(list.size(), 1u);
  EXPECT_EQ(ErrorText([&] { CallGlobal("ffi.ListSetItem", list, 1, 0); }),
            "IndexError: Index 1 out of bounds 1");
  EXPECT_EQ(ErrorText([&] { CallGlobal("ffi.ListInsert", list, 2, 0); }),
            "IndexError: Index 2 out of bounds [0, 1]");
  EXPECT_EQ(ErrorText([&] { CallGlobal("ffi.ListPop", list, -1); }),
            "IndexError: Index -1 out of bounds 1");
  EXPECT_EQ(ErrorText([&] { CallGlobal("ffi.ListEraseRange", list, 0, 2); }),
            "IndexError: Erase range [0, 2) out of bounds 1");
  CallGlobal("ffi.ListClear", list);
  EXPECT_TRUE(list.empty());
}

TEST(SeqGlobals, ReplacingASliceWithTheListItself) {
  auto ints = [](std::initializer_list<int> values) { return List<int>(values); };
  List<int> list = ints({1, 2, 3});
  CallGlobal("ffi.ListReplaceSlice", list, 1, 2, list);
  EXPECT_EQ(Ints(list), V({1, 1, 2, 3, 3}));
  CallGlobal("ffi.ListReplaceSlice", list, 0, 5, ints({7}));
  EXPECT_EQ(Ints(list), V({7}));
  CallGlobal("ffi.ListReplaceSlice", list, 1, 1, ints({8, 9}));
  EXPECT_EQ(Ints(list), V({7, 8, 9}));
  EXPECT_EQ(ErrorText([&] { CallGlobal("ffi.ListReplaceSlice", list, 9, 9, ints({1})); }),
            "IndexError: Index 9 out of bounds [0, 3]");
  CallGlobal("ffi.ListReplaceSlice", list, 9, 9, ints({}));
  EXPECT_EQ(Ints(list), V({7, 8, 9}));
}

TEST(SeqGlobals, ASiblingArgumentIsCopiedAndTheChangeLost) {
  Array<int> array = {1};
  CallGlobal("ffi.ListAppend", array, 2);
  EXPECT_EQ(array.size(), 1u);
}

TEST(SeqGlobals, TheConvertAttributeTurnsSiblingsIntoTheType) {
  Function to_list = tether_test::TypeAttr("ffi.List", "__ffi_convert__").cast<Function>();
  EXPECT_EQ(to_list(Array<int>{1, 2}).type_index(), kTVMFFIList);
  Function to_array = tether_test::TypeAttr("ffi.Array", "__ffi_convert__").cast<Function>();
  EXPECT_EQ(to_array(List<int>{1, 2}).type_index(), kTVMFFIArray);
}

// Appends to a list when it dies.
class LateItemObj : public Object {
 public:
  LateItemObj(List<Any>* list, int id) : list_(list), id_(id) {}
  ~LateItemObj() { list_->push_back(id_); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("seq_test.LateItem", LateItemObj, Object);

 private:
  List<Any>* list_;
  int id_;
};

TEST(List, WhatADestructorAppendsDuringARemovalStays) {
  for (int n : {1, 2, 8, 9, 50}) {
    const auto filled = [n](List<Any>* list) {
      for (int i = 0; i < n; ++i) list->push_back(make_object<LateItemObj>(list, i));
    };
    const auto check = [n](const List<Any>& list, size_t first) {
      // One for each that died, whatever the order.
      ASSERT_EQ(list.size(), first + static_cast<size_t>(n));
      std::vector<int> ids;
      for (size_t i = first; i < list.size(); ++i) ids.push_back(list[i].cast<int>());
      std::sort(ids.begin(), ids.end());
      for (int i = 0; i < n; ++i) EXPECT_EQ(ids[i], i);
    };
    List<Any> cleared, erased, resized, assigned, popped;
    filled(&cleared);
    cleared.clear();
    check(cleared, 0);
    filled(&erased);
    erased.erase(erased.begin(), erased.begin() + n);
    check(erased, 0);
    filled(&resized);
    resized.resize(0);
    check(resized, 0);
    filled(&assigned);
    const std::vector<Any> other(100, Any(-1));
    assigned.Assign(other.begin(), other.end());
    check(assigned, 100);
    filled(&popped);
    for (int i = 0; i < n; ++i) popped.erase(popped.begin());
    check(popped, 0);
  }
}

// ---- what others put into a list ----

TEST(List, AnElementOfAnotherTypeIsAnErrorWhenItIsRead) {
  List<Any> any{String("a"), 1, 300};
  List<String> strings(details::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(any));
  List<double> doubles(details::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(any));
  List<uint8_t> bytes(details::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(any));
  EXPECT_EQ(strings[0], "a");
  EXPECT_EQ(doubles[1], 1.0);  // converted
  const std::string text = "TypeError: Mismatched type of an element in a container. Expected ";
  EXPECT_EQ(ErrorText([&] { (void)strings[1]; }), text + "`str` but got `int`");
  EXPECT_EQ(ErrorText([&] { (void)bytes[2]; }),
            text + "`int` but got `int 300 is out of range for uint8 (0 to 255)`");
  EXPECT_EQ(ErrorText([&] {
              for (const String& item : strings) (void)item;
            }),
            text + "`str` but got `int`");
}

}  // namespace
