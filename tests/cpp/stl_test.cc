// SPDX-License-Identifier: Apache-2.0
//
// Standard library types as values of the interface.
#include <gtest/gtest.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/stl.h>
#include <tvm/ffi/function.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using core_test::Box;
using core_test::BoxObj;
using tether_test::ErrorText;

template <typename T>
T RoundTrip(T value) {
  return Any(std::move(value)).template cast<T>();
}

TEST(Stl, EveryTypeSurvivesARoundTrip) {
  EXPECT_EQ(RoundTrip(std::vector<int>{1, 2}), std::vector<int>({1, 2}));
  EXPECT_EQ(RoundTrip(std::vector<bool>{true, false}), std::vector<bool>({true, false}));
  EXPECT_EQ(RoundTrip(std::vector<std::string>{"a", "a string that is on the heap"}),
            std::vector<std::string>({"a", "a string that is on the heap"}));
  EXPECT_EQ(RoundTrip(std::vector<std::vector<int>>{{1}, {}}),
            std::vector<std::vector<int>>({{1}, {}}));
  EXPECT_EQ(RoundTrip(std::array<int, 2>{3, 4}), (std::array<int, 2>{3, 4}));
  EXPECT_EQ(RoundTrip(std::make_tuple(1, 2.5, std::string("x"))),
            std::make_tuple(1, 2.5, std::string("x")));
  EXPECT_EQ(RoundTrip(std::make_pair(1, std::string("x"))), std::make_pair(1, std::string("x")));
  EXPECT_EQ(RoundTrip(std::map<std::string, std::pair<int, double>>{{"a", {1, 2.5}}}),
            (std::map<std::string, std::pair<int, double>>{{"a", {1, 2.5}}}));
  EXPECT_EQ(RoundTrip(std::map<std::string, int>{{"b", 1}, {"a", 2}}),
            (std::map<std::string, int>{{"a", 2}, {"b", 1}}));
  EXPECT_EQ(RoundTrip(std::unordered_map<int, std::vector<int>>{{1, {2}}}),
            (std::unordered_map<int, std::vector<int>>{{1, {2}}}));
  EXPECT_EQ(RoundTrip(std::optional<int>(5)), 5);
  EXPECT_EQ(RoundTrip(std::optional<int>()), std::nullopt);
  EXPECT_EQ(RoundTrip(std::optional(std::vector<int>{1})), std::vector<int>({1}));
  using Choice = std::variant<int, std::string, std::vector<int>>;
  EXPECT_EQ(RoundTrip(Choice(7)), Choice(7));
  EXPECT_EQ(RoundTrip(Choice(std::vector<int>{1})), Choice(std::vector<int>{1}));
  EXPECT_EQ(RoundTrip(std::function<int(int)>([](int x) { return x + 1; }))(1), 2);
}

TEST(Stl, ValuesTravelAsTheMatchingObjects) {
  EXPECT_EQ(Any(std::vector<int>{1}).type_index(), kTVMFFIArray);
  EXPECT_EQ(Any(std::array<int, 1>{1}).type_index(), kTVMFFIArray);
  EXPECT_EQ(Any(std::make_tuple(1)).type_index(), kTVMFFIArray);
  EXPECT_EQ(Any(std::make_pair(1, 2)).type_index(), kTVMFFIArray);
  EXPECT_EQ(Any(std::map<int, int>{}).type_index(), kTVMFFIMap);
  EXPECT_EQ(Any(std::unordered_map<int, int>{}).type_index(), kTVMFFIMap);
  EXPECT_EQ(Any(std::function<void()>([] {})).type_index(), kTVMFFIFunction);
  EXPECT_EQ(Any(std::function<void()>()), nullptr);
  EXPECT_EQ(Any(std::optional<int>()), nullptr);
  EXPECT_EQ(Any(std::variant<int, double>(1.5)).type_index(), kTVMFFIFloat);
  // A std::map is sorted, and so is the map it becomes.
  Map<String, int> map =
      Any(std::map<std::string, int>{{"b", 1}, {"a", 2}}).cast<Map<String, int>>();
  EXPECT_EQ((*map.begin()).first, "a");
}

TEST(Stl, ElementsAreConverted) {
  EXPECT_EQ(Any(Array<Any>{1, true, 2.5}).cast<std::vector<double>>(),
            std::vector<double>({1, 1, 2.5}));
  EXPECT_EQ(Any(List<int>{1, 2}).cast<std::vector<int>>(), std::vector<int>({1, 2}));
  EXPECT_FALSE(Any(Array<Any>{2.5}).try_cast<std::vector<int>>().has_value());
  EXPECT_FALSE((Any(List<int>{1, 2}).try_cast<std::array<int, 2>>().has_value()));
  EXPECT_FALSE((Any(Array<int>{1, 2}).try_cast<std::array<int, 3>>().has_value()));
  EXPECT_FALSE((Any(Array<int>{1}).try_cast<std::tuple<int, int>>().has_value()));
  EXPECT_FALSE((Any(Array<int>{1}).try_cast<std::pair<int, int>>().has_value()));
  EXPECT_FALSE((Any(Array<int>{1, 2, 3}).try_cast<std::pair<int, int>>().has_value()));
  EXPECT_FALSE((Any(Dict<int, int>{{1, 1}}).try_cast<std::map<int, int>>().has_value()));
  // Keys that become equal: the first stays.
  auto collapsed = Any(Map<Any, Any>{{1, 10}, {true, 20}}).cast<std::map<int, int>>();
  EXPECT_EQ(collapsed, (std::map<int, int>{{1, 10}}));
  using Number = std::variant<int, float>;
  EXPECT_EQ(Any(1).cast<Number>().index(), 0u);
  EXPECT_EQ(Any(1.0).cast<Number>().index(), 1u);
  EXPECT_EQ((Any(1).cast<std::variant<double, int>>().index()), 0u) << "the first that converts";
}

TEST(Stl, AsNeverConverts) {
  EXPECT_TRUE(Any(Array<int>{1}).as<std::vector<int>>().has_value());
  EXPECT_FALSE(Any(Array<int>{1}).as<std::vector<double>>().has_value());
  EXPECT_FALSE(Any(List<int>{1}).as<std::vector<int>>().has_value());
  EXPECT_TRUE((Any(Array<Any>{1, "x"}).as<std::tuple<int, std::string>>().has_value()));
  EXPECT_TRUE((Any(Array<Any>{1, 2}).as<std::array<int, 2>>().has_value()));
  EXPECT_TRUE((Any(Map<Any, Any>{{1, "x"}}).as<std::map<int, std::string>>().has_value()));
  EXPECT_TRUE(Any(nullptr).as<std::optional<std::vector<int>>>().has_value());
}

TEST(Stl, Errors) {
  EXPECT_EQ(ErrorText([] {
              Any(Array<Any>{1, "x"}).cast<std::vector<int>>();
            }),
            "TypeError: Cannot convert from type `ffi.Array` to `std::vector<int>`");
  EXPECT_EQ(ErrorText([] { Any(1).cast<std::optional<std::vector<int>>>(); }),
            "TypeError: Cannot convert from type `int` to `std::optional<std::vector<int>>`");
  EXPECT_EQ(ErrorText([] { Any("s").cast<std::variant<int, double>>(); }),
            "TypeError: Cannot convert from type `ffi.SmallStr` to `std::variant<int, float>`");
  EXPECT_EQ(ErrorText([] { Any(nullptr).cast<std::function<int()>>(); }),
            "TypeError: Cannot convert from type `None` to `std::function<int()>`");
}

TEST(Stl, NamesSchemasAndStorage) {
  EXPECT_EQ((TypeTraits<std::array<int, 3>>::TypeStr()), "std::array<int, 3>");
  EXPECT_EQ((TypeTraits<std::tuple<int, Any>>::TypeStr()), "std::tuple<int, Any>");
  EXPECT_EQ((TypeTraits<std::pair<int, Any>>::TypeStr()), "std::pair<int, Any>");
  EXPECT_EQ((TypeTraits<std::unordered_map<int, std::string>>::TypeStr()),
            "std::unordered_map<int, std::string>");
  EXPECT_EQ((TypeTraits<std::function<int(double, std::string)>>::TypeStr()),
            "std::function<int(float, std::string)>");
  EXPECT_EQ((TypeTraits<std::function<void()>>::TypeStr()), "std::function<void()>");
  const std::string i = R"({"type":"int"})", f = R"({"type":"float"})";
  EXPECT_EQ((TypeTraits<std::vector<int>>::TypeSchema()),
            R"({"type":"std::vector","args":[)" + i + "]}");
  EXPECT_EQ((TypeTraits<std::array<int, 3>>::TypeSchema()),
            R"({"type":"std::array","args":[)" + i + ",3]}");
  EXPECT_EQ((TypeTraits<std::tuple<int, double>>::TypeSchema()),
            R"({"type":"std::tuple","args":[)" + i + ", " + f + "]}");
  EXPECT_EQ((TypeTraits<std::pair<int, double>>::TypeSchema()),
            (TypeTraits<std::tuple<int, double>>::TypeSchema()));
  EXPECT_EQ((TypeTraits<std::map<int, double>>::TypeSchema()),
            R"({"type":"std::map","args":[)" + i + "," + f + "]}");
  EXPECT_EQ((TypeTraits<std::optional<int>>::TypeSchema()),
            R"({"type":"std::optional","args":[)" + i + "]}");
  EXPECT_EQ((TypeTraits<std::variant<int, double>>::TypeSchema()),
            R"({"type":"std::variant","args":[)" + i + ", " + f + "]}");
  EXPECT_EQ((TypeTraits<std::function<int(int, double)>>::TypeSchema()),
            R"({"type":"std::function","named_args":{"return":[)" + i + R"(],"params":[)" + i +
                ", " + f + "]}}");
  static_assert(!TypeTraits<std::vector<int>>::storage_enabled);
  static_assert(!TypeTraits<std::map<int, int>>::storage_enabled);
  static_assert(TypeTraits<std::optional<int>>::storage_enabled);
  static_assert(TypeTraits<std::variant<int>>::storage_enabled);
  static_assert(TypeToFieldStaticTypeIndex<std::vector<int>>::value == 71);
  static_assert(TypeToFieldStaticTypeIndex<std::map<int, int>>::value == 72);
  static_assert(TypeToFieldStaticTypeIndex<std::function<void()>>::value == 68);
  static_assert(TypeToFieldStaticTypeIndex<std::optional<int>>::value == -1);
}

TEST(Stl, ArgumentsAndResultsOfFunctions) {
  Function f = Function::FromTyped(
      [](std::optional<std::vector<std::array<int, 2>>> pairs) -> std::optional<std::vector<int>> {
        if (!pairs.has_value()) return std::nullopt;
        std::vector<int> sums;
        for (const auto& pair : *pairs) sums.push_back(pair[0] + pair[1]);
        return sums;
      });
  EXPECT_EQ(f(Array<Any>{Array<int>{1, 2}, Array<int>{3, 4}}).cast<std::vector<int>>(),
            std::vector<int>({3, 7}));
  EXPECT_EQ(f(nullptr), nullptr);
  EXPECT_TRUE(tether_test::Contains(ErrorText([&] { f(Array<Any>{Array<int>{1}}); }), "TypeError"));
}

TEST(Stl, ContainersMayBePassedToACallAndNothingLeaks) {
  const int before = BoxObj::alive;
  {
    Function size = Function::FromTyped([](Array<Any> a) { return static_cast<int>(a.size()); });
    std::vector<Box> boxes = {Box(1), Box(2)};
    EXPECT_EQ(size(boxes).cast<int>(), 2);
    EXPECT_EQ(size(std::vector<Box>{Box(3)}).cast<int>(), 1);
    EXPECT_EQ(size(std::optional<std::vector<Box>>(boxes)).cast<int>(), 2);
    EXPECT_EQ(boxes[0].use_count(), 1);
    EXPECT_EQ(size.CallExpected<int>(boxes).value(), 2);
    Function call = Function::FromTyped([](TypedFunction<int(int)> g, int x) { return g(x); });
    EXPECT_EQ(call(std::function<int(int)>([](int x) { return -x; }), 4).cast<int>(), -4);
  }
  EXPECT_EQ(BoxObj::alive, before);
}

TEST(Stl, AStdFunctionTakesAndGivesContainers) {
  Function doubled =
      Function::FromTyped([](Array<int> a) { return a.Map([](int x) { return 2 * x; }); });
  auto f = Any(doubled).cast<std::function<std::vector<int>(std::vector<int>)>>();
  EXPECT_EQ(f({1, 2}), std::vector<int>({2, 4}));
  auto wrong = Any(doubled).cast<std::function<int(int)>>();
  EXPECT_TRUE(tether_test::Contains(ErrorText([&] { wrong(1); }), "TypeError"))
      << "signatures are checked when called";
}

}  // namespace
