// SPDX-License-Identifier: Apache-2.0
//
// Shape and ShapeView.
#include <gtest/gtest.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/function.h>

#include <cstring>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using tether_test::CallGlobal;
using tether_test::ErrorText;

std::vector<int64_t> Extents(ShapeView view) {
  return std::vector<int64_t>(view.begin(), view.end());
}

using V = std::vector<int64_t>;

TEST(Shape, FieldsAreWhereOtherBinariesExpectThem) {
  static_assert(sizeof(ShapeObj) == 40 && sizeof(ShapeView) == 16);
  static_assert(sizeof(details::ShapeObjStdImpl) == 64);
  static_assert(ShapeObj::_type_index == 69 && ShapeObj::_type_depth == 1);
  static_assert(!Shape::_type_is_nullable && Shape::_type_container_is_exact);
  static_assert(sizeof(Shape) == sizeof(ObjectPtr<Object>));
  Shape shape = {2, 3};
  const char* base = reinterpret_cast<const char*>(shape.get());
  TVMFFIShapeCell cell;
  std::memcpy(&cell, base + 24, sizeof(cell));
  EXPECT_EQ(cell.size, 2u);
  EXPECT_EQ(reinterpret_cast<const char*>(cell.data), base + 40) << "extents follow the object";
  EXPECT_EQ(cell.data[1], 3);
  EXPECT_EQ(shape->type_index(), 69);
  EXPECT_EQ(TypeToFieldStaticTypeIndex<Shape>::value, 69);
}

TEST(Shape, ConstructsFromEverySource) {
  EXPECT_EQ(Extents(Shape()), V({}));
  EXPECT_TRUE(Shape().defined());
  EXPECT_EQ(Extents(Shape({1, 2, 3})), V({1, 2, 3}));
  int64_t n = 5;
  EXPECT_EQ(Extents(Shape({n})), V({5}));
  std::vector<int64_t> source = {4, 5};
  EXPECT_EQ(Extents(Shape(source.begin(), source.end())), source);
  EXPECT_EQ(Extents(Shape(source)), source);
  const int64_t* storage = source.data();
  Shape moved(std::move(source));
  EXPECT_EQ(moved.data(), storage) << "the vector's memory is taken over";
  EXPECT_EQ(Extents(Shape(Array<int64_t>{6, 7})), V({6, 7}));
  ShapeView view = moved;
  Shape copied = view;
  EXPECT_EQ(Extents(copied), V({4, 5}));
  EXPECT_NE(copied.data(), moved.data());
  auto product = [](const Shape& shape) { return shape.Product(); };
  EXPECT_EQ(product({2, 3}), 6);
  EXPECT_EQ(product({4}), 4);
  EXPECT_EQ(product({}), 1);
}

TEST(ShapeView, LooksAtAnything) {
  EXPECT_TRUE(ShapeView().empty());
  EXPECT_EQ(ShapeView().data(), nullptr);
  int64_t raw[] = {1, 2, 3};
  ShapeView view(raw, 3);
  EXPECT_EQ(view.size(), 3u);
  EXPECT_EQ(view[1], 2);
  EXPECT_EQ(view.front(), 1);
  EXPECT_EQ(view.back(), 3);
  EXPECT_EQ(view.at(2), 3);
  EXPECT_EQ(view.Product(), 6);
  EXPECT_EQ(ShapeView().Product(), 1);
  std::initializer_list<int64_t> list = {7, 8};
  ShapeView of_list = list;
  EXPECT_EQ(of_list.data(), list.begin());
  auto product = [](ShapeView v) { return v.Product(); };
  EXPECT_EQ(product({1, 2}), 2);
}

TEST(ShapeView, CheckedAccessNamesIndexAndSize) {
  ShapeView empty;
  Shape shape = {1, 2};
  EXPECT_EQ(ErrorText([&] { shape.at(2); }), "IndexError: indexing 2 on a Shape of size 2");
  EXPECT_EQ(ErrorText([&] { ShapeView(shape).at(5); }),
            "IndexError: indexing 5 on a Shape of size 2");
  EXPECT_EQ(ErrorText([&] { empty.front(); }), "IndexError: indexing 0 on a Shape of size 0");
  EXPECT_EQ(ErrorText([&] { empty.back(); }),
            "IndexError: indexing 18446744073709551615 on a Shape of size 0");
  EXPECT_EQ(ErrorText([&] { Shape().back(); }),
            "IndexError: indexing 18446744073709551615 on a Shape of size 0");
}

TEST(Shape, Accessors) {
  Shape shape = {2, 3, 4};
  EXPECT_EQ(shape.size(), 3u);
  EXPECT_FALSE(shape.empty());
  EXPECT_EQ(shape[2], 4);
  EXPECT_EQ(shape.front(), 2);
  EXPECT_EQ(shape.back(), 4);
  EXPECT_EQ(shape->Product(), 24);
  EXPECT_EQ(shape.end() - shape.begin(), 3);
  static_assert(std::is_same_v<ShapeObj::index_type, int64_t>);
  std::ostringstream os;
  os << shape << Shape() << Shape({5});
  EXPECT_EQ(os.str(), "[2, 3, 4][][5]");
}

TEST(Shape, CompactStrides) {
  EXPECT_EQ(Extents(Shape::StridesFromShape({2, 3, 4})), V({12, 4, 1}));
  EXPECT_EQ(Extents(Shape::StridesFromShape({2, 0, 3})), V({0, 3, 1}));
  EXPECT_EQ(Extents(Shape::StridesFromShape({})), V({}));
  EXPECT_EQ(Extents(Shape::StridesFromShape({7})), V({1}));
}

TEST(Shape, ConvertsFromSequencesOfIntegers) {
  Shape shape = {1, 2};
  Any any = shape;
  EXPECT_TRUE(any.cast<Shape>().same_as(shape));
  EXPECT_EQ(shape.use_count(), 2);
  EXPECT_EQ(Extents(Any(Array<Any>{1, true}).cast<Shape>()), V({1, 1}));
  EXPECT_EQ(Extents(Any(List<Any>{3, 4}).cast<Shape>()), V({3, 4}));
  EXPECT_FALSE(Any(Array<Any>{1}).as<Shape>().has_value());
  EXPECT_EQ(ErrorText([] {
              Any(Array<Any>{1, 2.5}).cast<Shape>();
            }),
            "TypeError: Cannot convert from type `ffi.Array` to `ffi.Shape`");
  EXPECT_EQ(ErrorText([] { Any(nullptr).cast<Shape>(); }),
            "TypeError: Cannot convert from type `None` to `ffi.Shape`");
  EXPECT_FALSE(any.try_cast<Array<int64_t>>().has_value());
  Function f = Function::FromTyped([](Shape s) { return s.Product(); });
  EXPECT_EQ(f(Array<int64_t>{2, 5}).cast<int>(), 10);
}

TEST(Shape, TheGlobalFunctionTakesIntegers) {
  EXPECT_EQ(Extents(CallGlobal("ffi.Shape", 1, true, 3).cast<Shape>()), V({1, 1, 3}));
  EXPECT_EQ(CallGlobal("ffi.Shape").cast<Shape>().size(), 0u);
  EXPECT_EQ(ErrorText([] { CallGlobal("ffi.Shape", 1, 2.5); }),
            "ValueError: Expect shape to take list of int arguments");
}

TEST(Shape, AShapeWithoutDataReadsAsEmpty) {
  // Other languages make these.
  ObjectPtr<ShapeObj> bare = make_object<ShapeObj>();
  Shape shape = Any(bare).cast<Shape>();
  EXPECT_EQ(shape.data(), nullptr);
  EXPECT_TRUE(shape.empty());
  EXPECT_EQ(shape.Product(), 1);
  EXPECT_EQ(Shape(ShapeView(shape)).size(), 0u);
}

}  // namespace
