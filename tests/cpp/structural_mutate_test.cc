// SPDX-License-Identifier: Apache-2.0
//
// extra/structural_mutate.h: maps and mutations of values.
#include <gtest/gtest.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/extra/structural_equal.h>
#include <tvm/ffi/extra/structural_key.h>
#include <tvm/ffi/extra/structural_mutate.h>
#include <tvm/ffi/reflection/registry.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using tether_test::ErrorText;
namespace refl = tvm::ffi::reflection;
constexpr WalkOrder kPre = WalkOrder::kPreOrder;
constexpr WalkOrder kPost = WalkOrder::kPostOrder;
using Mutated = Expected<UnchangedOr<Any>>;

// ---- classes -------------------------------------------------------------------------------

class VarObj : public Object {
 public:
  String name;
  Any type;
  VarObj() = default;
  VarObj(String name, Any type) : name(std::move(name)), type(std::move(type)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindFreeVar;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.mutate.Var", VarObj, Object);
};

class PairObj : public Object {
 public:
  Any a;
  Any b;
  PairObj() = default;
  PairObj(Any a, Any b) : a(std::move(a)), b(std::move(b)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.mutate.Pair", PairObj, Object);
};

class SharedObj : public Object {
 public:
  Any a;
  SharedObj() = default;
  explicit SharedObj(Any a) : a(std::move(a)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindDAGNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.mutate.Shared", SharedObj, Object);
};

class FuncObj : public Object {
 public:
  Any pattern;
  Any simple;
  Any body;
  FuncObj() = default;
  FuncObj(Any pattern, Any simple, Any body)
      : pattern(std::move(pattern)), simple(std::move(simple)), body(std::move(body)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.mutate.Func", FuncObj, Object);
};

class NoCopyObj : public Object {
 public:
  Any a;
  NoCopyObj() = default;
  NoCopyObj(const NoCopyObj&) = delete;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.mutate.NoCopy", NoCopyObj, Object);
};

class HookObj : public Object {
 public:
  Any a;
  HookObj() = default;
  explicit HookObj(Any a) : a(std::move(a)) {}
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.mutate.Hook", HookObj, Object);
};

template <typename Obj, typename... Args>
ObjectRef Make(Args&&... args) {
  return ObjectRef(make_object<Obj>(std::forward<Args>(args)...));
}

Mutated MutateHook(StructuralMutatorObj* mutator, AnyView value) {
  const auto* hook = value.as<HookObj>();
  TVM_FFI_S_MUTATE_ASSIGN_OR_RETURN(UnchangedOr<Any>, a, mutator->MutateExpected(hook->a));
  if (a.UnchangedOrSameAs(hook->a)) return Unchanged{};
  return Any(Make<HookObj>(std::move(a).ValueUnchecked()));
}
Mutated MutateHookInPlace(StructuralMutatorObj* mutator, AnyView value) {
  auto* hook = const_cast<HookObj*>(value.as<HookObj>());
  TVM_FFI_S_MUTATE_ASSIGN_OR_RETURN(UnchangedOr<Any>, a,
                                    mutator->MutateExpected(hook->a, InplaceMode::kAllow));
  hook->a = std::move(a).ValueOrUnchanged(hook->a);
  return Unchanged{};
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<VarObj>()
      .def_ro("name", &VarObj::name, refl::AttachFieldFlag::SEqHashIgnore())
      .def_ro("type", &VarObj::type);
  refl::ObjectDef<PairObj>().def_ro("a", &PairObj::a).def_ro("b", &PairObj::b);
  refl::ObjectDef<SharedObj>().def_ro("a", &SharedObj::a);
  refl::ObjectDef<FuncObj>()
      .def_ro("pattern", &FuncObj::pattern, refl::AttachFieldFlag::SEqHashDefPattern())
      .def_ro("simple", &FuncObj::simple, refl::AttachFieldFlag::SEqHashDefSimple())
      .def_ro("body", &FuncObj::body);
  refl::ObjectDef<NoCopyObj>(refl::init(false)).def_ro("a", &NoCopyObj::a);
  refl::ObjectDef<HookObj>().def_ro("a", &HookObj::a);
  refl::TypeAttrDef<HookObj>()
      .native_fn_attr<&MutateHook>(type_attr::kStructuralMutate)
      .native_fn_attr<&MutateHookInPlace>(type_attr::kStructuralMaybeInplaceMutate);
}

int64_t Double(int64_t i) { return 2 * i; }

bool Same(const Any& a, const Any& b) { return StructuralEqual::Equal(a, b); }

// A map, as other languages call it.
Any CallMap(const Any& root, int32_t type_index, Function callback) {
  using Callbacks = Array<Tuple<int32_t, Function>>;
  static const Function map = Function::GetGlobalRequired("ffi.StructuralMap");
  Tuple<int32_t, Function> entry(type_index, std::move(callback));
  return map(root, Callbacks{entry}, Callbacks(), 1);
}

int64_t UsesOf(const Any& value) { return value.as<Object>()->use_count(); }

// ---- results -------------------------------------------------------------------------------

TEST(UnchangedOr, HoldsTheMarkerOrAValue) {
  UnchangedOr<String> none = Unchanged{};
  EXPECT_TRUE(none.IsUnchanged());
  EXPECT_EQ(std::move(none).ValueOrUnchanged(String("kept")), "kept");
  UnchangedOr<Any> some = UnchangedOr<String>(String("new"));
  EXPECT_FALSE(some.IsUnchanged());
  EXPECT_EQ(some.as<String>(), "new");
  EXPECT_EQ(std::move(some).ValueOrUnchanged(AnyView(1)).cast<String>(), "new");
  EXPECT_EQ(Any(Unchanged{}).type_index(), kTVMFFIUnchanged);
  EXPECT_EQ(Any(Unchanged{}).GetTypeKey(), "ffi.Unchanged");
  EXPECT_TRUE(Any(nullptr).as<UnchangedOr<Any>>().has_value());
  EXPECT_FALSE(Any(Error("E", "", "")).as<UnchangedOr<Any>>().has_value());
  EXPECT_FALSE(Any(1).as<UnchangedOr<String>>().has_value());
  EXPECT_EQ(TypeTraits<UnchangedOr<int>>::TypeSchema(),
            "{\"type\":\"UnchangedOr\",\"args\":[{\"type\":\"int\"}]}");
}

// ---- maps ----------------------------------------------------------------------------------

TEST(StructuralMap, ReplacesPartsAndSharesTheRest) {
  ObjectRef kept = Make<PairObj>(Any("x"), Any("y"));
  Any root = Array<Any>{1, kept, Map<String, Any>{{"k", 2}}, List<Any>{3}, Dict<Any, Any>{{4, 5}}};
  Any made = StructuralMap<kPost>(root, Double);
  Any expected =
      Array<Any>{2, kept, Map<String, Any>{{"k", 4}}, List<Any>{6}, Dict<Any, Any>{{4, 10}}};
  EXPECT_TRUE(Same(made, expected));
  EXPECT_TRUE(made.cast<Array<Any>>()[1].same_as(kept));
  EXPECT_EQ(root.cast<Array<Any>>()[0].cast<int>(), 1);
  EXPECT_TRUE(Same(StructuralMap<kPre>(root, Double), expected));
  Any same = StructuralMap<kPost>(root, [](int64_t i) { return i; });
  EXPECT_TRUE(same.same_as(root));
}

TEST(StructuralMap, OrderDecidesWhatACallbackSees) {
  Any root = Array<Any>{Array<Any>{1}};
  auto wrap = [](const Array<Any>& a) { return Array<Any>{a}; };
  std::vector<size_t> seen;
  StructuralMap<kPre>(root, [&](const Array<Any>& a) -> Expected<Any> {
    seen.push_back(a.size());
    return seen.size() == 1 ? Any(Array<Any>{1, 2}) : Any(Unchanged{});
  });
  EXPECT_EQ(seen, (std::vector<size_t>{1}));
  Any post = StructuralMap<kPost>(root, wrap);
  EXPECT_TRUE(Same(post, Array<Any>{Array<Any>{Array<Any>{Array<Any>{1}}}}));
}

TEST(StructuralMap, NoneReplacesAndIsOffered) {
  Any made = StructuralMap<kPost>(
      Array<Any>{nullptr, 1}, [](std::nullptr_t) { return 7; },
      [](int64_t) { return Any(nullptr); });
  EXPECT_TRUE(Same(made, Array<Any>{7, nullptr}));
}

TEST(StructuralMap, ChangesInPlaceWhatNobodyElseSees) {
  Array<Any> inner{1};
  const Object* inner_address = inner.get();
  Array<Any> outer{std::move(inner), String("a string that is not small")};
  const Object* address = outer.get();
  Any made = StructuralMap<kPost>(std::move(outer), Double);
  EXPECT_EQ(made.as<ArrayObj>(), address);
  EXPECT_EQ(made.cast<Array<Any>>()[0].as<ArrayObj>(), inner_address);
  EXPECT_TRUE(Same(made, Array<Any>{Array<Any>{2}, String("a string that is not small")}));
  // A shared parent forbids it below as well.
  Any shared = made;
  Any copy = StructuralMap<kPost>(std::move(made), Double);
  EXPECT_NE(copy.as<ArrayObj>(), address);
  EXPECT_TRUE(Same(shared, Array<Any>{Array<Any>{2}, String("a string that is not small")}));
  // So does a weak reference.
  Map<String, Any> map{{"a", 1}};
  WeakObjectPtr<Object> weak = details::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(map);
  const Object* map_address = map.get();
  EXPECT_FALSE(map.unique());
  EXPECT_EQ(map.use_count(), 1);
  EXPECT_NE(StructuralMap<kPost>(std::move(map), Double).as<Object>(), map_address);
}

TEST(StructuralMap, VariablesAreReplacedConsistently) {
  ObjectRef x = Make<VarObj>(String("x"), Any(1));
  ObjectRef y = Make<VarObj>(String("y"), Any("unchanged"));
  ObjectRef free = Make<VarObj>(String("f"), Any(1));
  ObjectRef func = Make<FuncObj>(Any(Array<Any>{x}), Any(y), Any(Array<Any>{x, y, free}));
  Any made = StructuralMap<kPost>(func, Double);
  const auto* result = made.as<FuncObj>();
  ASSERT_NE(result, nullptr);
  ObjectRef new_x = result->pattern.cast<Array<ObjectRef>>()[0];
  EXPECT_EQ(new_x.as<VarObj>()->type.cast<int>(), 2);
  Array<ObjectRef> body = result->body.cast<Array<ObjectRef>>();
  EXPECT_TRUE(body[0].same_as(new_x));
  EXPECT_TRUE(body[1].same_as(y));
  EXPECT_TRUE(body[2].same_as(free));  // a use without a definition
}

TEST(StructuralMap, SharedNodesAreDescendedOnce) {
  ObjectRef shared = Make<SharedObj>(Any(1));
  int calls = 0;
  Any made = StructuralMap<kPost>(Array<Any>{shared, shared}, [&](int64_t i) {
    ++calls;
    return i + 1;
  });
  Array<Any> result = made.cast<Array<Any>>();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(result[0].same_as(result[1]));
  EXPECT_FALSE(result[0].same_as(shared));
}

TEST(StructuralMap, PassesTheRegion) {
  ObjectRef inner = Make<FuncObj>(Any(2), Any(3), Any(4));
  std::vector<std::pair<int64_t, int>> seen;
  StructuralMap<kPost>(Make<FuncObj>(Any(inner), Any(5), Any(6)),
                       [&](int64_t i, TVMFFIDefRegionKind kind) {
                         seen.emplace_back(i, kind);
                         return i;
                       });
  // A pattern absorbs what is inside it.
  EXPECT_EQ(seen, (std::vector<std::pair<int64_t, int>>{{2, 1}, {3, 1}, {4, 1}, {5, 2}, {6, 0}}));
}

TEST(StructuralMap, ErrorsNameEachNodeOnce) {
  ObjectRef bad = Make<PairObj>(Any("x"), Any("bad"));
  Array<Any> list{bad};
  ObjectRef root = Make<PairObj>(Any(1), Any(list));
  auto fail = [](const String& s) -> Expected<Any> {
    if (s == "bad") return Error("ValueError", "bad string", "");
    return s;
  };
  for (bool pre : {true, false}) {
    Expected<Any> result =
        pre ? StructuralMapExpected<kPre>(root, fail) : StructuralMapExpected<kPost>(root, fail);
    ASSERT_TRUE(result.is_err());
    Optional<VisitErrorContext> context = VisitErrorContext::TryGetFromError(result.error());
    ASSERT_TRUE(context.has_value());
    List<ObjectRef> nodes = context.value()->reverse_visit_pattern;
    ASSERT_EQ(nodes.size(), 3);
    EXPECT_TRUE(nodes[0].same_as(bad) && nodes[1].same_as(list) && nodes[2].same_as(root));
  }
  EXPECT_EQ(root.as<PairObj>()->a.cast<int>(), 1);
  EXPECT_EQ(ErrorText([&] {
              StructuralMap<kPost>(root, [](int64_t) -> int { throw std::runtime_error("r"); });
            }),
            "InternalError: r");
}

TEST(StructuralMap, WhatCannotBeCopiedFails) {
  EXPECT_EQ(ErrorText([] { StructuralMap<kPost>(Make<NoCopyObj>(), Double); }),
            "TypeError: __ffi_shallow_copy__ must be an ffi.Function");
  Function f = Function::FromTyped([] {});
  EXPECT_EQ(ErrorText([&] { StructuralMap<kPost>(Array<Any>{f}, Double); }),
            "TypeError: __ffi_shallow_copy__ must be an ffi.Function");
  Any made = StructuralMap<kPre>(Array<Any>{f}, [](const Function&) { return 1; });
  EXPECT_TRUE(Same(made, Array<Any>{1}));
}

TEST(StructuralMap, CallbacksReplaceWhatHasNoParts) {
  Function f = Function::FromTyped([] {});
  auto to_one = [](const Function&) { return 1; };
  auto keep = [](const Function&) { return Unchanged{}; };
  EXPECT_TRUE(Same(StructuralMap<kPost>(Array<Any>{f, 2}, to_one), Array<Any>{1, 2}));
  EXPECT_TRUE(Same(StructuralMap<kPost>(f, to_one), 1));
  Array<Any> root = {f, Shape({1, 2})};
  EXPECT_EQ(ErrorText([&] { StructuralMap<kPost>(root, keep); }),
            "TypeError: __ffi_shallow_copy__ must be an ffi.Function");
  auto keep_shape = [](const Shape& shape) { return shape; };
  EXPECT_TRUE(StructuralMap<kPost>(root, keep, keep_shape).same_as(root));
  EXPECT_TRUE(StructuralMap<kPre>(root, keep, keep_shape).same_as(root));
  EXPECT_TRUE(Same(StructuralMap<kPre>(1, [](int64_t i) { return Shape({i}); }), Shape({1})));
}

TEST(StructuralMap, KeysAreHashedAgain) {
  StructuralKey key(Array<Any>{1, "a"});
  for (bool pre : {true, false}) {
    Any made = pre ? StructuralMap<kPre>(key, Double) : StructuralMap<kPost>(key, Double);
    StructuralKey expected(Array<Any>{2, "a"});
    EXPECT_TRUE(made.cast<StructuralKey>() == expected);
    EXPECT_EQ(made.as<StructuralKeyObj>()->hash_i64, expected->hash_i64);
  }
  Any same = StructuralMap<kPost>(key, [](const String&) { return Unchanged{}; });
  EXPECT_TRUE(same.same_as(key));
  EXPECT_EQ(key->hash_i64, StructuralKey(Array<Any>{1, "a"})->hash_i64);
}

TEST(StructuralMap, HooksDriveTheEngine) {
  ObjectRef hook = Make<HookObj>(Any(Array<Any>{1}));
  Any made = StructuralMap<kPost>(hook, Double);
  EXPECT_FALSE(made.same_as(hook));
  EXPECT_TRUE(Same(made.as<HookObj>()->a, Array<Any>{2}));
  const Object* address = hook.get();
  made = Any();
  Any in_place = StructuralMap<kPost>(std::move(hook), Double);
  EXPECT_EQ(in_place.as<HookObj>(), address);
  EXPECT_TRUE(Same(in_place.as<HookObj>()->a, Array<Any>{2}));
}

TEST(StructuralMap, DeepAndCyclicValues) {
  constexpr int kDepth = 100000;
  Any chain = 1;
  for (int i = 0; i < kDepth; ++i) chain = Any(Make<PairObj>(std::move(chain), Any(nullptr)));
  for (int i = 0; i < kDepth; ++i) chain = Any(List<Any>{std::move(chain)});
  Any made = StructuralMap<kPost>(chain, Double);
  for (int i = 0; i < kDepth; ++i) made = Any(made.cast<List<Any>>()[0]);
  for (int i = 0; i < kDepth; ++i) made = Any(made.as<PairObj>()->a);
  EXPECT_EQ(made.cast<int>(), 2);
  made = StructuralMap<kPre>(std::move(chain), Double);
  EXPECT_TRUE(made.as<ListObj>() != nullptr);

  List<Any> cycle;
  cycle.push_back(cycle);
  EXPECT_EQ(ErrorText([&] { StructuralMap<kPost>(cycle, Double); }),
            "ValueError: StructuralMutate: the value contains itself (at type `ffi.List`)");
  cycle.clear();
}

TEST(StructuralMap, EveryDepthComesBackWhole) {
  // Parts before and behind the one that is descended into, kept and changed, in all containers.
  Any value = 1;
  Any expected = 2;
  for (int depth = 0; depth < 70; ++depth) {
    Any kept = String("a string that is not small");
    switch (depth % 5) {
      case 0:
        value = Array<Any>{kept, value, depth, kept};
        expected = Array<Any>{kept, expected, 2 * depth, kept};
        break;
      case 1:
        value = List<Any>{kept, value, depth};
        expected = List<Any>{kept, expected, 2 * depth};
        break;
      case 2:
        value = Map<Any, Any>{{1, kept}, {2, value}, {3, depth}};
        expected = Map<Any, Any>{{1, kept}, {2, expected}, {3, 2 * depth}};
        break;
      case 3:
        value = Dict<Any, Any>{{1, kept}, {2, value}, {3, depth}};
        expected = Dict<Any, Any>{{1, kept}, {2, expected}, {3, 2 * depth}};
        break;
      default:
        value = Make<PairObj>(value, Any(depth));
        expected = Make<PairObj>(expected, Any(2 * depth));
    }
    ASSERT_TRUE(Same(StructuralMap<kPost>(value, Double), expected)) << depth;
    ASSERT_TRUE(Same(StructuralMap<kPre>(value, Double), expected)) << depth;
    Function twice = Function::FromTyped(Double);
    ASSERT_TRUE(Same(CallMap(value, TypeIndex::kTVMFFIInt, twice), expected)) << depth;
  }
}

TEST(StructuralMap, LeavesNoReferenceBehind) {
  Any text = String("a string that is not small");
  Array<Any> root{text, Array<Any>{text}, Map<Any, Any>{{1, text}}, Make<PairObj>(text, Any(1))};
  const int64_t uses = UsesOf(text);
  // What comes back as it was is no change.
  auto same = [](String s) { return s; };
  EXPECT_TRUE(StructuralMap<kPost>(root, same).same_as(root));
  EXPECT_TRUE(StructuralMap<kPre>(root, same).same_as(root));
  Function function = Function::FromTyped(same);
  EXPECT_TRUE(CallMap(root, TypeIndex::kTVMFFIStr, function).same_as(root));
  EXPECT_EQ(UsesOf(text), uses);
  EXPECT_EQ(root.use_count(), 1);
  // What takes the place of the parts, too.
  Any other = String("another string that is not small");
  Function replace = Function::FromTyped([&](const String&) { return other; });
  Any made = CallMap(root, TypeIndex::kTVMFFIStr, replace);
  EXPECT_EQ(UsesOf(text), uses);
  EXPECT_EQ(UsesOf(other), 5);
  made = nullptr;
  EXPECT_EQ(UsesOf(other), 1);
}

TEST(StructuralMap, AReplacementThatStaysIsHandedOn) {
  Array<Any> other{String("a string that is not small")};
  auto replace = [&](const Map<Any, Any>&) { return other; };
  Any root = Array<Any>{Map<Any, Any>{{1, 2}}};
  Any made = StructuralMap<kPre>(root, replace);
  EXPECT_TRUE(made.cast<Array<Any>>()[0].same_as(other));
  EXPECT_EQ(other.use_count(), 2);
  made = nullptr;
  EXPECT_EQ(other.use_count(), 1);
  // One that nobody else has is changed in place.
  const Object* address = nullptr;
  made = StructuralMap<kPre>(
      root,
      [&](const Map<Any, Any>&) {
        Array<Any> fresh{1, 2};
        address = fresh.get();
        return fresh;
      },
      Double);
  EXPECT_EQ(made.cast<Array<Any>>()[0].as<ArrayObj>(), address);
  EXPECT_TRUE(Same(made, Array<Any>{Array<Any>{2, 4}}));
}

TEST(StructuralMap, ANullFunctionIsAnError) {
  EXPECT_EQ(ErrorText([] { CallMap(Array<Any>{1}, TypeIndex::kTVMFFIInt, Function()); }),
            "TypeError: a null ffi.Function (None) cannot be called");
}

// ---- mutations -----------------------------------------------------------------------------

TEST(StructuralMutate, TheCallbackOwnsTheDescent) {
  Any root = Array<Any>{1, Make<PairObj>(Any(2), Any(3)), List<Any>{4}};
  Any made = StructuralMutate(
      root, [](int64_t i, StructuralMutatorObj*) { return i * 10; },
      [](const List<Any>&, StructuralMutatorObj*) { return Unchanged{}; },
      [](const PairObj* pair, StructuralMutatorObj* mutator) -> Mutated {
        TVM_FFI_S_MUTATE_ASSIGN_OR_RETURN(UnchangedOr<Any>, a, mutator->MutateExpected(pair->a));
        return Any(Make<PairObj>(std::move(a).ValueOrUnchanged(pair->a), pair->b));
      });
  EXPECT_TRUE(Same(made, Array<Any>{10, Make<PairObj>(Any(20), Any(3)), List<Any>{4}}));
}

TEST(StructuralMutate, TellsWhetherTheValueMayChange) {
  std::vector<InplaceMode> modes;
  auto note = [&](const List<Any>& list, StructuralMutatorObj* mutator,
                  InplaceMode mode) -> Mutated {
    modes.push_back(mode);
    return mutator->DefaultMutateExpected(list, mode);
  };
  Any root = List<Any>{List<Any>{1}};
  StructuralMutate(root, note);
  EXPECT_EQ(modes, (std::vector<InplaceMode>{InplaceMode::kDisallow, InplaceMode::kDisallow}));
  modes.clear();
  StructuralMutate(std::move(root), note);
  EXPECT_EQ(modes, (std::vector<InplaceMode>{InplaceMode::kAllow, InplaceMode::kAllow}));
}

TEST(StructuralMutate, RemembersVariables) {
  ObjectRef x = Make<VarObj>(String("x"), Any(nullptr));
  Any made =
      StructuralMutate(Array<Any>{1, x}, [&](int64_t i, StructuralMutatorObj* mutator) -> Mutated {
        EXPECT_EQ(mutator->VarRemapGetExpected(x).value(), nullptr);
        EXPECT_EQ(mutator->VarRemapSetExpected(AnyView(3), AnyView(4)).error().message(),
                  "Variable-remap key must be an object-backed value");
        EXPECT_EQ(mutator->VarRemapGetExpected(AnyView(3)).error().kind(), "TypeError");
        TVM_FFI_S_MUTATE_MAYBE_EARLY_RETURN(mutator->VarRemapSetExpected(x, String("new")));
        return Any(i);
      });
  EXPECT_TRUE(Same(made, Array<Any>{1, String("new")}));
}

TEST(StructuralMutate, WrongTypesAreReported) {
  auto wrong = [](const PairObj* pair, StructuralMutatorObj* mutator) -> Mutated {
    TVM_FFI_S_MUTATE_ASSIGN_OR_RETURN(String, a, mutator->MutateExpected(pair->a));
    return Any(a);
  };
  EXPECT_EQ(ErrorText([&] { StructuralMutate(Make<PairObj>(Any(1), Any(2)), wrong); }),
            "TypeError: structural mutate result does not match the declared type");
}

// ---- engines of clients --------------------------------------------------------------------

class ScaleLayer : public StructuralMapEngineBase {
 public:
  using StateTupleType = std::tuple<int64_t>;
  ScaleLayer(const StructuralMutatorVTable* vtable, int64_t scale)
      : StructuralMapEngineBase(vtable), scale_(scale) {}

 protected:
  StateTupleType StateTuple() const noexcept { return {scale_}; }

 private:
  int64_t scale_;
};

TEST(StructuralEngines, LayersPassTheirState) {
  auto scale = [](int64_t i, int64_t by) { return i * by; };
  Any root = Array<Any>{1, Make<PairObj>(Any(2), Any(3))};
  Any expected = Array<Any>{10, Make<PairObj>(Any(20), Any(30))};
  auto pre = make_object<StructuralMapEngine<ScaleLayer, kPre, decltype(scale)>>(scale, 10);
  EXPECT_TRUE(Same(pre->Mutate(root).as_or_throw<Any>(), expected));
  auto post = make_object<StructuralMapEngine<ScaleLayer, kPost, decltype(scale)>>(scale, 10);
  EXPECT_TRUE(Same(post->Mutate(root).as_or_throw<Any>(), expected));
}

TEST(StructuralEngines, WorkLikeTheFunctions) {
  using Entry = Tuple<int32_t, Function>;
  Array<Entry> entries{Entry(static_cast<int32_t>(kTVMFFIInt), Function::FromTyped(Double))};
  auto dynamic =
      make_object<StructuralMapDynEngine<StructuralMapEngineBase, kPost>>(entries, Array<Entry>());
  ObjectRef x = Make<VarObj>(String("x"), Any(1));
  Any func = Make<FuncObj>(Any(x), Any(nullptr), Any(x));
  Any made = dynamic->Mutate(func).as_or_throw<Any>();
  EXPECT_TRUE(made.as<FuncObj>()->pattern.same_as(made.as<FuncObj>()->body));
  auto own = [](int64_t i, StructuralMutatorObj*, InplaceMode) { return i + 1; };
  auto mutate = make_object<StructuralMutateEngine<StructuralMapEngineBase, decltype(own)>>(own);
  EXPECT_TRUE(Same(mutate->Mutate(Array<Any>{1}).as_or_throw<Any>(), Array<Any>{2}));

  Any chain = 1;
  for (int i = 0; i < 100000; ++i) chain = Any(List<Any>{std::move(chain)});
  Mutated deep = dynamic->MutateExpected(chain);
  EXPECT_EQ(deep.error().kind(), "ValueError");
}

TEST(StructuralEngines, WalkAndVisit) {
  class Layer : public StructuralVisitorObj {
   public:
    using StateTupleType = std::tuple<int>;
    Layer(const StructuralVisitorVTable* vtable, int state)
        : StructuralVisitorObj(vtable), state_(state) {}

   protected:
    StateTupleType StateTuple() const noexcept { return {state_}; }

   private:
    int state_;
  };
  int64_t sum = 0;
  auto add = [&](int64_t i, int by, TVMFFIDefRegionKind) -> Expected<WalkResult> {
    sum += i * by;
    return WalkResult::Advance();
  };
  Any root = Array<Any>{1, Map<Any, Any>{{100, 2}}};
  auto walk = make_object<StructuralWalkEngine<Layer, kPost, decltype(add)>>(add, 10);
  EXPECT_FALSE(walk->Visit(root).has_value());
  EXPECT_EQ(sum, 30);

  sum = 0;
  auto stop = StructuralVisit(
      root,
      [&](int64_t i, StructuralVisitorObj*) -> Expected<Optional<VisitInterrupt>> {
        sum += i;
        return std::nullopt;
      },
      [&](const Map<Any, Any>&, StructuralVisitorObj*) -> Expected<Optional<VisitInterrupt>> {
        return VisitInterrupt(Any(5));
      });
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(stop.value()->value.cast<int>(), 5);
}

TEST(StructuralMutate, PlainValuesAreTheirOwnResult) {
  std::vector<std::string> results;
  auto note = [&](const Array<Any>& parts, StructuralMutatorObj* mutator) -> Mutated {
    for (const Any& part : parts) {
      for (const Mutated& result :
           {mutator->MutateExpected(part), mutator->DefaultMutateExpected(part)}) {
        results.push_back(detail::ExpectedUnsafe::GetData(result).GetTypeKey());
      }
    }
    return Unchanged{};
  };
  auto keep = [](double, StructuralMutatorObj*) -> Mutated { return Unchanged{}; };
  StructuralMutate(Array<Any>{1, String("s"), nullptr, String("longer than seven"), 1.5}, note,
                   keep);
  EXPECT_EQ(results,
            (std::vector<std::string>{"int", "int", "ffi.SmallStr", "ffi.SmallStr", "None", "None",
                                      "ffi.Unchanged", "ffi.Unchanged", "ffi.Unchanged", "float"}));
}

TEST(StructuralVisit, DoesNotShowNone) {
  std::vector<std::string> seen;
  auto note = [&](AnyView value,
                  StructuralVisitorObj* visitor) -> Expected<Optional<VisitInterrupt>> {
    seen.push_back(value.GetTypeKey());
    return visitor->DefaultVisitExpected(value);
  };
  StructuralVisit(Any(), note);
  StructuralVisit(Array<Any>{nullptr, Map<Any, Any>{{1, nullptr}}, 2}, note);
  EXPECT_EQ(seen, (std::vector<std::string>{"ffi.Array", "ffi.Map", "int"}));
}

}  // namespace
