// SPDX-License-Identifier: Apache-2.0
//
// Objects for tests of structural visits and of layouts.
#include <tvm/ffi/extra/structural_visit.h>
#include <tvm/ffi/reflection/registry.h>

#include <utility>

namespace tvm {
namespace ffi {
namespace tether_testing {
namespace {

// One field per kind of region.
class TestVisitRegionsObj : public Object {
 public:
  int64_t simple = 1;
  int64_t pattern = 2;
  int64_t ordinary = 3;

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestVisitRegions", TestVisitRegionsObj, Object);
};

// Visits its child in a simple region, then the number 4 outside of it.
class TestVisitHookObj : public Object {
 public:
  ObjectRef child;

  explicit TestVisitHookObj(ObjectRef child) : child(std::move(child)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestVisitHook", TestVisitHookObj, Object);
};

Expected<Optional<VisitInterrupt>> VisitChildThenFour(const StructuralVisitor& visitor,
                                                      const ObjectRef& value) {
  const ObjectRef& child = value.as<TestVisitHookObj>()->child;
  TVM_FFI_S_VISIT_MAYBE_EARLY_RETURN(visitor->WithDefRegionKind(
      kTVMFFIDefRegionKindSimple, [&] { return visitor->VisitExpected(child); }));
  return visitor->VisitExpected(4);
}

// A field that reflection does not know lies between two that it knows.
class TestCxxClassHiddenFieldObj : public Object {
 public:
  int64_t v_i64 = 0;
  int64_t hidden = 0;
  int32_t v_i32 = 0;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestCxxClassHiddenField", TestCxxClassHiddenFieldObj,
                                    Object);
};

// A vtable pointer lies in front of the header.
class TestCxxClassPolymorphicObj : public Object {
 public:
  int64_t v_i64 = 0;

  TestCxxClassPolymorphicObj() = default;
  virtual ~TestCxxClassPolymorphicObj() = default;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestCxxClassPolymorphic", TestCxxClassPolymorphicObj,
                                    Object);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = reflection;
  refl::ObjectDef<TestVisitRegionsObj>()
      .def_ro("simple", &TestVisitRegionsObj::simple, refl::AttachFieldFlag::SEqHashDefSimple())
      .def_ro("pattern", &TestVisitRegionsObj::pattern, refl::AttachFieldFlag::SEqHashDefPattern())
      .def_ro("ordinary", &TestVisitRegionsObj::ordinary);
  refl::ObjectDef<TestVisitHookObj>().def_ro("child", &TestVisitHookObj::child);
  refl::TypeAttrDef<TestVisitHookObj>().def(type_attr::kStructuralVisit.name, VisitChildThenFour);
  refl::ObjectDef<TestCxxClassHiddenFieldObj>()
      .def_rw("v_i64", &TestCxxClassHiddenFieldObj::v_i64)
      .def_rw("v_i32", &TestCxxClassHiddenFieldObj::v_i32);
  refl::ObjectDef<TestCxxClassPolymorphicObj>().def_rw("v_i64", &TestCxxClassPolymorphicObj::v_i64);
  refl::GlobalDef().def("testing.make_visit_region_graph", [](bool with_hook) -> Any {
    ObjectRef regions(make_object<TestVisitRegionsObj>());
    return with_hook ? ObjectRef(make_object<TestVisitHookObj>(std::move(regions))) : regions;
  });
}

}  // namespace
}  // namespace tether_testing
}  // namespace ffi
}  // namespace tvm
