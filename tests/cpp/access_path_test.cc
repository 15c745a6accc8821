// SPDX-License-Identifier: Apache-2.0
// reflection/access_path.h and its registration.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/reflection/access_path.h>
#include <tvm/ffi/reflection/accessor.h>

#include <string>
#include <vector>

namespace {

using namespace tvm::ffi;
using namespace tvm::ffi::reflection;

Function Method(const char* name) { return GetMethod("ffi.reflection.AccessPath", name); }

TEST(AccessPath, LayoutIsFixed) {
  EXPECT_EQ(sizeof(AccessStepObj), 48u);
  EXPECT_EQ(sizeof(AccessPathObj), 48u);
  auto offset = [](const char* key, const char* field) { return GetFieldInfo(key, field)->offset; };
  EXPECT_EQ(offset("ffi.reflection.AccessStep", "kind"), 24);
  EXPECT_EQ(offset("ffi.reflection.AccessStep", "key"), 32);
  EXPECT_EQ(offset("ffi.reflection.AccessPath", "parent"), 24);
  EXPECT_EQ(offset("ffi.reflection.AccessPath", "step"), 32);
  EXPECT_EQ(offset("ffi.reflection.AccessPath", "depth"), 40);
}

TEST(AccessPath, KindsHaveFixedNumbers) {
  EXPECT_EQ(static_cast<int>(AccessKind::kAttr), 0);
  EXPECT_EQ(static_cast<int>(AccessKind::kArrayItem), 1);
  EXPECT_EQ(static_cast<int>(AccessKind::kMapItem), 2);
  EXPECT_EQ(static_cast<int>(AccessKind::kAttrMissing), 3);
  EXPECT_EQ(static_cast<int>(AccessKind::kArrayItemMissing), 4);
  EXPECT_EQ(static_cast<int>(AccessKind::kMapItemMissing), 5);
}

TEST(AccessPath, RootIsEmpty) {
  AccessPath root = AccessPath::Root();
  EXPECT_EQ(root->depth, 0);
  EXPECT_FALSE(root->parent.has_value());
  EXPECT_FALSE(root->step.has_value());
  EXPECT_FALSE(root->GetParent().has_value());
  EXPECT_EQ(root->ToSteps().size(), 0u);
  EXPECT_TRUE(root->PathEqual(AccessPath::Root()));
}

TEST(AccessPath, ExtendingSharesThePrefix) {
  AccessPath base = AccessPath::Root()->Attr("body");
  AccessPath left = base->ArrayItem(0);
  AccessPath right = base->ArrayItem(1);
  EXPECT_TRUE(left->GetParent().value().same_as(base));
  EXPECT_TRUE(right->GetParent().value().same_as(base));
  EXPECT_EQ(left->depth, 2);
  EXPECT_FALSE(left->PathEqual(right));
}

TEST(AccessPath, StepsRoundTripFromTheRoot) {
  AccessPath path = AccessPath::Root()
                        ->Attr("a")
                        ->ArrayItem(2)
                        ->MapItem("k")
                        ->AttrMissing("b")
                        ->ArrayItemMissing(9)
                        ->MapItemMissing(3);
  Array<AccessStep> steps = path->ToSteps();
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_EQ(steps[0]->kind, AccessKind::kAttr);
  EXPECT_EQ(steps[0]->key.cast<String>(), "a");
  EXPECT_EQ(steps[1]->key.cast<int>(), 2);
  EXPECT_EQ(steps[5]->kind, AccessKind::kMapItemMissing);
  EXPECT_TRUE(AccessPath::FromSteps(steps)->PathEqual(path));
  EXPECT_TRUE(AccessPath::FromSteps(steps.begin(), steps.end())->PathEqual(path));
  std::vector<AccessStep> vector(steps.begin(), steps.end());
  EXPECT_TRUE(AccessPath::FromSteps(vector.begin(), vector.end())->PathEqual(path));
  AccessPath braced = AccessPath::FromSteps({AccessStep::Attr("a"), AccessStep::ArrayItem(2)});
  EXPECT_EQ(braced->depth, 2);
  EXPECT_TRUE(braced->IsPrefixOf(path));
}

TEST(AccessPath, StepsCompareByKindAndKey) {
  EXPECT_TRUE(AccessStep::Attr("x")->StepEqual(AccessStep::Attr("x")));
  EXPECT_TRUE(AccessStep::MapItem("a long key, not inline")
                  ->StepEqual(AccessStep::MapItem("a long key, not inline")));
  EXPECT_FALSE(AccessStep::Attr("x")->StepEqual(AccessStep::Attr("y")));
  EXPECT_FALSE(AccessStep::Attr("x")->StepEqual(AccessStep::AttrMissing("x")));
  EXPECT_FALSE(AccessStep::ArrayItem(1)->StepEqual(AccessStep::MapItem(1)));
  EXPECT_FALSE(AccessStep::MapItem(1)->StepEqual(AccessStep::MapItem(1.0)));
  EXPECT_EQ(AccessStep::MapItemMissing()->key, nullptr);
}

TEST(AccessPath, PrefixesAreOrderedByDepth) {
  AccessPath root = AccessPath::Root();
  AccessPath a = root->Attr("a");
  AccessPath ab = a->Attr("b");
  AccessPath ac = root->Attr("a")->Attr("c");
  EXPECT_TRUE(root->IsPrefixOf(ab));
  EXPECT_TRUE(a->IsPrefixOf(ab));
  EXPECT_TRUE(a->IsPrefixOf(ac));
  EXPECT_TRUE(ab->IsPrefixOf(ab));
  EXPECT_FALSE(ab->IsPrefixOf(a));
  EXPECT_FALSE(ab->IsPrefixOf(ac));
  EXPECT_FALSE(ab->PathEqual(a));
}

TEST(AccessPath, HandMadePathsWithHolesAreComparedWithoutCrashing) {
  // A step without a parent, and depths that lie: what a damaged file could contain.
  auto orphan = make_object<AccessPathObj>(std::nullopt, AccessStep::Attr("x"), 5);
  Any held = ObjectRef(orphan);
  AccessPath path = held.cast<AccessPath>();
  EXPECT_EQ(path->ToSteps().size(), 1u);
  AccessPath real =
      AccessPath::FromSteps({AccessStep::Attr("p"), AccessStep::Attr("q"), AccessStep::Attr("r"),
                             AccessStep::Attr("s"), AccessStep::Attr("x")});
  EXPECT_FALSE(path->PathEqual(real));
  EXPECT_FALSE(real->PathEqual(path));
  EXPECT_FALSE(AccessPath::Root()->Attr("x")->IsPrefixOf(path));
}

TEST(AccessPath, MethodsAreRegisteredForFrontends) {
  AccessPath root = Method("_root")().cast<AccessPath>();
  AccessPath path = Method("_attr")(root, "f").cast<AccessPath>();
  path = Method("_array_item")(path, 1).cast<AccessPath>();
  path = Method("_map_item")(path, "k").cast<AccessPath>();
  path = Method("_attr_missing")(path, "g").cast<AccessPath>();
  path = Method("_array_item_missing")(path, 2).cast<AccessPath>();
  path = Method("_map_item_missing")(path, 3).cast<AccessPath>();
  path = Method("_extend")(path, AccessStep::Attr("h")).cast<AccessPath>();
  EXPECT_EQ(path->depth, 7);
  EXPECT_TRUE(Method("_is_prefix_of")(root, path).cast<bool>());
  EXPECT_TRUE(Method("_path_equal")(path, path).cast<bool>());
  EXPECT_EQ(Method("_to_steps")(path).cast<Array<AccessStep>>().size(), 7u);
  EXPECT_TRUE(GetMethodInfo("ffi.reflection.AccessPath", "_root")->flags &
              kTVMFFIFieldFlagBitMaskIsStaticMethod);
}

TEST(AccessPath, TypesAreConstTreeNodesWithoutInit) {
  for (const char* key : {"ffi.reflection.AccessStep", "ffi.reflection.AccessPath"}) {
    const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(TypeKeyToIndex(key));
    EXPECT_EQ(type->metadata->structural_eq_hash_kind, kTVMFFISEqHashKindConstTreeNode);
    EXPECT_EQ(type->metadata->total_size, 48);
    EXPECT_NE(type->metadata->creator, nullptr);
    EXPECT_EQ(TypeAttrColumn("__ffi_init__")[type->type_index], nullptr);
    EXPECT_NE(TypeAttrColumn("__ffi_new__")[type->type_index], nullptr);
    EXPECT_NE(TypeAttrColumn("__ffi_repr__")[type->type_index], nullptr);
    EXPECT_NE(TypeAttrColumn("__ffi_shallow_copy__")[type->type_index], nullptr);
  }
}

TEST(AccessPath, ReprReadsLikeAnExpression) {
  AccessPath path = AccessPath::Root()
                        ->Attr("config")
                        ->Attr("layers")
                        ->ArrayItem(0)
                        ->MapItem("name")
                        ->AttrMissing("weights")
                        ->ArrayItemMissing(3)
                        ->MapItemMissing("bias");
  EXPECT_EQ(
      ReprPrint(path),
      R"(<root>.config.layers[0]["name"][<missing:"weights">][<missing:3>][<missing:"bias">])");
  EXPECT_EQ(ReprPrint(AccessPath::Root()), "<root>");
  EXPECT_EQ(ReprPrint(AccessStep::Attr("x")), ".x");
  EXPECT_EQ(ReprPrint(AccessStep::ArrayItem(3)), "[3]");
  EXPECT_EQ(ReprPrint(AccessStep::MapItem("k")), R"(["k"])");
  EXPECT_EQ(ReprPrint(AccessStep::MapItem(1.5)), "[1.5]");
  EXPECT_EQ(ReprPrint(AccessStep::AttrMissing("x")), R"([<missing:"x">])");
  EXPECT_EQ(ReprPrint(AccessStep::MapItemMissing(nullptr)), "[<missing:None>]");
}

TEST(AccessPath, APairHoldsTwoPaths) {
  AccessPathPair pair(AccessPath::Root()->Attr("l"), AccessPath::Root()->Attr("r"));
  EXPECT_EQ(pair.get<0>()->step.value()->key.cast<String>(), "l");
  EXPECT_EQ(pair.get<1>()->step.value()->key.cast<String>(), "r");
}

TEST(AccessPath, LongPathsAreWalkedWithoutRecursion) {
  AccessPath left = AccessPath::Root(), right = AccessPath::Root();
  for (int i = 0; i < 20000; ++i) {
    left = left->ArrayItem(i);
    right = right->ArrayItem(i);
  }
  EXPECT_TRUE(left->PathEqual(right));
  EXPECT_EQ(left->ToSteps().size(), 20000u);
  EXPECT_TRUE(left->IsPrefixOf(right->Attr("more")));
}

}  // namespace
