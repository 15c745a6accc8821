// SPDX-License-Identifier: Apache-2.0
//
// extra/structural_visit.h and extra/visit_error_context.h.
#include <gtest/gtest.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/extra/structural_visit.h>
#include <tvm/ffi/extra/visit_error_context.h>
#include <tvm/ffi/reflection/registry.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using tether_test::Contains;
using tether_test::ErrorText;
namespace refl = tvm::ffi::reflection;

// ---- classes -------------------------------------------------------------------------------

class VarObj : public Object {
 public:
  String name;
  Any type;
  VarObj() = default;
  VarObj(String name, Any type) : name(std::move(name)), type(std::move(type)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindFreeVar;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.visit.Var", VarObj, Object);
};

class Var : public ObjectRef {
 public:
  explicit Var(String name, Any type = nullptr) {
    data_ = make_object<VarObj>(std::move(name), std::move(type));
  }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Var, ObjectRef, VarObj);
};

class NodeObj : public Object {
 public:
  Any a;
  Any b;
  Any hidden;
  NodeObj() = default;
  NodeObj(Any a, Any b, Any hidden) : a(std::move(a)), b(std::move(b)), hidden(std::move(hidden)) {}
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.visit.Node", NodeObj, Object);
};

class Node : public ObjectRef {
 public:
  explicit Node(Any a, Any b = nullptr, Any hidden = nullptr) {
    data_ = make_object<NodeObj>(std::move(a), std::move(b), std::move(hidden));
  }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Node, ObjectRef, NodeObj);
};

// One field per kind of region.
class FuncObj : public Object {
 public:
  Any recursive;
  Any simple;
  Any plain;
  FuncObj() = default;
  FuncObj(Any recursive, Any simple, Any plain)
      : recursive(std::move(recursive)), simple(std::move(simple)), plain(std::move(plain)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.visit.Func", FuncObj, Object);
};

ObjectRef Func(Any recursive, Any simple, Any plain) {
  return ObjectRef(make_object<FuncObj>(std::move(recursive), std::move(simple), std::move(plain)));
}

// A variable with a definition of its own inside.
class BinderVarObj : public Object {
 public:
  Any definition;
  Any plain;
  BinderVarObj() = default;
  BinderVarObj(Any definition, Any plain)
      : definition(std::move(definition)), plain(std::move(plain)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindFreeVar;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.visit.BinderVar", BinderVarObj, Object);
};

// Visits b only, through a C++ pointer; through a Function; through nonsense.
template <int kTag>
class HookObjBase : public Object {
 public:
  Any a;
  Any b;
  HookObjBase() = default;
  HookObjBase(Any a, Any b) : a(std::move(a)), b(std::move(b)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
};
class PointerHookObj : public HookObjBase<0> {
 public:
  using HookObjBase::HookObjBase;
  static TVMFFIAny Visit(StructuralVisitorObj* visitor, AnyView value) noexcept {
    const auto* self = value.as<PointerHookObj>();
    TVM_FFI_S_VISIT_MAYBE_EARLY_RETURN_WITH_ERROR_CONTEXT(visitor->VisitExpected(self->b), value);
    return details::ExpectedUnsafe::MoveToTVMFFIAny(
        Expected<Optional<VisitInterrupt>>(Optional<VisitInterrupt>(std::nullopt)));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.visit.PointerHook", PointerHookObj, Object);
};
class FunctionHookObj : public HookObjBase<1> {
 public:
  using HookObjBase::HookObjBase;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.visit.FunctionHook", FunctionHookObj, Object);
};
class BadHookObj : public HookObjBase<2> {
 public:
  using HookObjBase::HookObjBase;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.visit.BadHook", BadHookObj, Object);
};

// A field whose getter fails.
class BrokenObj : public Object {
 public:
  Any first;
  Any second;
  BrokenObj() = default;
  explicit BrokenObj(Any first) : first(std::move(first)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.visit.Broken", BrokenObj, Object);
};

int FailToGet(void*, TVMFFIAny*) {
  TVMFFIErrorSetRaisedFromCStr("ValueError", "this field cannot be read");
  return -1;
}

template <typename Obj>
ObjectRef Hooked(Any a, Any b) {
  return ObjectRef(make_object<Obj>(std::move(a), std::move(b)));
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<VarObj>()
      .def_ro("name", &VarObj::name, refl::AttachFieldFlag::SEqHashIgnore())
      .def_ro("type", &VarObj::type);
  refl::ObjectDef<NodeObj>()
      .def_rw("a", &NodeObj::a)
      .def_rw("b", &NodeObj::b)
      .def_rw("hidden", &NodeObj::hidden, refl::AttachFieldFlag::SEqHashIgnore());
  refl::ObjectDef<FuncObj>()
      .def_ro("recursive", &FuncObj::recursive, refl::AttachFieldFlag::SEqHashDefRecursive())
      .def_ro("simple", &FuncObj::simple, refl::AttachFieldFlag::SEqHashDefNonRecursive())
      .def_ro("plain", &FuncObj::plain);
  refl::ObjectDef<BinderVarObj>()
      .def_ro("definition", &BinderVarObj::definition,
              refl::AttachFieldFlag::SEqHashDefNonRecursive())
      .def_ro("plain", &BinderVarObj::plain);
  refl::ObjectDef<PointerHookObj>().def_ro("a", &PointerHookObj::a).def_ro("b", &PointerHookObj::b);
  refl::TypeAttrDef<PointerHookObj>().attr(refl::type_attr::kStructuralVisit,
                                           reinterpret_cast<void*>(&PointerHookObj::Visit));
  refl::ObjectDef<FunctionHookObj>()
      .def_ro("a", &FunctionHookObj::a)
      .def_ro("b", &FunctionHookObj::b);
  refl::TypeAttrDef<FunctionHookObj>().def(
      refl::type_attr::kStructuralVisit, [](StructuralVisitor visitor, ObjectRef value) {
        return visitor->WithDefRegionKind(kTVMFFIDefRegionKindRecursive, [&] {
          return visitor->Visit(value.as<FunctionHookObj>()->b);
        });
      });
  refl::ObjectDef<BadHookObj>().def_ro("a", &BadHookObj::a);
  refl::TypeAttrDef<BadHookObj>().attr(refl::type_attr::kStructuralVisit, String("nonsense"));
  refl::ObjectDef<BrokenObj>().def_ro("first", &BrokenObj::first);
  TVMFFIFieldInfo broken{};
  broken.name = refl::AsByteArray("second");
  broken.size = sizeof(Any);
  broken.alignment = alignof(Any);
  broken.offset = 40;
  broken.getter = FailToGet;
  broken.setter = reinterpret_cast<void*>(&FailToGet);
  broken.field_static_type_index = kTVMFFIAny;
  TVM_FFI_CHECK_SAFE_CALL(
      TVMFFITypeRegisterField(BrokenObj::_GetOrAllocRuntimeTypeIndex(), &broken));
}

// ---- a visitor that writes down what it sees -----------------------------------------------

std::string Describe(AnyView value) {
  if (auto i = value.as<int64_t>()) return std::to_string(*i);
  if (auto s = value.as<String>()) return "'" + std::string(*s) + "'";
  if (const auto* var = value.as<VarObj>()) return std::string(var->name);
  std::string key = value.GetTypeKey();
  return key.substr(key.rfind('.') + 1);
}

class TraceVisitorObj : public StructuralVisitorObj {
 public:
  std::string trace;
  int64_t stop_at = -1;
  int64_t fail_at = -1;
  bool clear_region = false;

  TraceVisitorObj() : StructuralVisitorObj(VTable()) {}

  TVMFFIDefRegionKind mode() const { return def_region_mode_; }
  void set_mode(TVMFFIDefRegionKind mode) { def_region_mode_ = mode; }

 private:
  static const StructuralVisitorVTable* VTable() {
    static const StructuralVisitorVTable vtable{&TraceVisitorObj::VisitValue};
    return &vtable;
  }
  static TVMFFIAny VisitValue(StructuralVisitorObj* visitor, AnyView value) noexcept {
    auto* self = static_cast<TraceVisitorObj*>(visitor);
    self->trace += Describe(value) + ":" + std::to_string(self->def_region_mode_) + " ";
    if (auto i = value.as<int64_t>()) {
      if (*i == self->stop_at) return Raw(Optional<VisitInterrupt>(VisitInterrupt(*i)));
      if (*i == self->fail_at) return Raw(Error("ValueError", "asked to fail", ""));
    }
    return Raw(self->DefaultVisitExpected(value));
  }
  static TVMFFIAny Raw(Expected<Optional<VisitInterrupt>> result) {
    return details::ExpectedUnsafe::MoveToTVMFFIAny(std::move(result));
  }
};

struct Tracer {
  StructuralVisitor visitor{make_object<TraceVisitorObj>()};
  TraceVisitorObj* get() const { return static_cast<TraceVisitorObj*>(visitor.get()); }
};

std::string Trace(const Any& value) {
  Tracer tracer;
  EXPECT_FALSE(tracer.visitor->Visit(value).has_value());
  EXPECT_EQ(tracer.visitor->def_region_kind(), kTVMFFIDefRegionKindNone);
  return tracer.get()->trace;
}

// ---- visitor -------------------------------------------------------------------------------

TEST(StructuralVisitor, VisitsPartsInOrder) {
  EXPECT_EQ(Trace(1), "1:0 ");
  EXPECT_EQ(Trace(nullptr), "None:0 ");
  EXPECT_EQ(Trace(Array<Any>{1, List<Any>{2, 3}}), "Array:0 1:0 List:0 2:0 3:0 ");
  EXPECT_EQ(Trace(Map<Any, Any>{{"k", 1}, {2, 3}}), "Map:0 1:0 3:0 ");
  EXPECT_EQ(Trace(Dict<Any, Any>{{"k", 1}}), "Dict:0 1:0 ");
  EXPECT_EQ(Trace(Node(1, Node(2), 9)), "Node:0 1:0 Node:0 2:0 None:0 ");
  EXPECT_EQ(Trace(Shape{1, 2}), "Shape:0 ");
}

TEST(StructuralVisitor, FieldsSetTheRegion) {
  EXPECT_EQ(Trace(Func(1, 2, 3)), "Func:0 1:1 2:2 3:0 ");
  EXPECT_EQ(Trace(Func(Array<Any>{1}, 2, Func(3, 4, 5))),
            "Func:0 Array:1 1:1 2:2 Func:0 3:1 4:2 5:0 ");
  // Inherited regions pass through; explicit flags override them.
  EXPECT_EQ(Trace(Func(Func(1, 2, 3), Func(4, 5, 6), 0)),
            "Func:0 Func:1 1:1 2:1 3:1 Func:2 4:1 5:2 6:2 0:0 ");
}

TEST(StructuralVisitor, NonRecursiveRegionsEndAtVariables) {
  EXPECT_EQ(Trace(Func(Var("x", 1), Var("y", 2), Var("z", 3))), "Func:0 x:1 1:1 y:2 2:0 z:0 3:0 ");
  ObjectRef binder(make_object<BinderVarObj>(1, 2));
  EXPECT_EQ(Trace(Func(nullptr, binder, nullptr)), "Func:0 None:1 BinderVar:2 1:2 2:0 None:0 ");
}

TEST(StructuralVisitor, InterruptStopsAndRestoresTheRegion) {
  Tracer tracer;
  tracer.get()->stop_at = 2;
  Optional<VisitInterrupt> result = tracer.visitor->Visit(Func(Array<Any>{1, 2, 3}, 4, 5));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result.value()->value.cast<int>(), 2);
  EXPECT_EQ(tracer.get()->trace, "Func:0 Array:1 1:1 2:1 ");
  EXPECT_EQ(tracer.get()->mode(), kTVMFFIDefRegionKindNone);
}

TEST(StructuralVisitor, ErrorsAreReturnedOrThrown) {
  Tracer tracer;
  tracer.get()->fail_at = 2;
  auto expected = tracer.visitor->VisitExpected(Func(Array<Any>{1, 2, 3}, 4, 5));
  ASSERT_TRUE(expected.is_err());
  EXPECT_EQ(expected.error().message(), "asked to fail");
  EXPECT_FALSE(VisitErrorContext::TryGetFromError(expected.error()).has_value());
  EXPECT_EQ(tracer.get()->mode(), kTVMFFIDefRegionKindNone);
  EXPECT_EQ(ErrorText([&] { tracer.visitor->Visit(Array<Any>{2}); }), "ValueError: asked to fail");
}

TEST(StructuralVisitor, WithDefRegionKindRestoresAlways) {
  Tracer tracer;
  EXPECT_EQ(tracer.visitor->WithDefRegionKind(kTVMFFIDefRegionKindRecursive,
                                              [&] { return tracer.get()->mode() + 10; }),
            11);
  EXPECT_EQ(tracer.get()->mode(), kTVMFFIDefRegionKindNone);
  EXPECT_THROW(tracer.visitor->WithDefRegionKind(kTVMFFIDefRegionKindNonRecursive,
                                                 [] { throw std::runtime_error("x"); }),
               std::runtime_error);
  EXPECT_EQ(tracer.get()->mode(), kTVMFFIDefRegionKindNone);
  tracer.get()->set_mode(kTVMFFIDefRegionKindRecursive);
  EXPECT_EQ(tracer.visitor->def_region_kind(), kTVMFFIDefRegionKindRecursive);
}

TEST(StructuralVisitor, HooksDecideWhatIsVisited) {
  EXPECT_EQ(Trace(Hooked<PointerHookObj>(1, 2)), "PointerHook:0 2:0 ");
  EXPECT_EQ(Trace(Hooked<FunctionHookObj>(1, Array<Any>{2})), "FunctionHook:0 Array:1 2:1 ");
  Tracer tracer;
  EXPECT_EQ(ErrorText([&] { tracer.visitor->Visit(Hooked<BadHookObj>(1, 2)); }),
            "TypeError: __s_visit__ must be an opaque function pointer or ffi.Function");
  tracer.get()->stop_at = 2;
  EXPECT_TRUE(tracer.visitor->Visit(Hooked<PointerHookObj>(1, 2)).has_value());
  EXPECT_TRUE(tracer.visitor->Visit(Hooked<FunctionHookObj>(1, 2)).has_value());
  tracer.get()->fail_at = 3;
  ObjectRef outer = Hooked<PointerHookObj>(1, 3);
  auto failed = tracer.visitor->VisitExpected(outer);
  ASSERT_TRUE(failed.is_err());
  auto context = VisitErrorContext::TryGetFromError(failed.error());
  ASSERT_TRUE(context.has_value());
  ASSERT_EQ(context.value()->reverse_visit_pattern.size(), 1U);
  EXPECT_TRUE(context.value()->reverse_visit_pattern[0].same_as(outer));
}

TEST(StructuralVisitor, GettersMayFail) {
  Tracer tracer;
  ObjectRef broken(make_object<BrokenObj>(1));
  EXPECT_EQ(ErrorText([&] { tracer.visitor->Visit(broken); }),
            "ValueError: this field cannot be read");
  EXPECT_EQ(tracer.get()->trace, "Broken:0 1:0 ");
}

TEST(StructuralVisitor, ContainersMayChangeWhileVisited) {
  List<Any> list{1, 2, 3};
  int count = 0;
  StructuralWalk<WalkOrder::kPreOrder>(list, [&](int64_t) -> Expected<WalkResult> {
    ++count;
    list.clear();
    for (int i = 0; i < 50; ++i) list.push_back(i);
    return WalkResult::Advance();
  });
  EXPECT_EQ(count, 3);
  Dict<Any, Any> dict{{1, 2}};
  StructuralWalk<WalkOrder::kPostOrder>(dict, [&](int64_t i) -> Expected<WalkResult> {
    for (int k = 0; k < 50; ++k) dict.Set(k, i);
    return WalkResult::Advance();
  });
  EXPECT_EQ(dict.size(), 50U);
}

TEST(StructuralVisitor, GlobalFunctions) {
  Function visit = Function::GetGlobalRequired("ffi.StructuralVisitorVisit");
  Function kind = Function::GetGlobalRequired("ffi.StructuralVisitorDefRegionKind");
  Function with_kind = Function::GetGlobalRequired("ffi.StructuralVisitorWithDefRegionKind");
  Tracer tracer;
  EXPECT_EQ(visit(tracer.visitor, Array<Any>{1}), nullptr);
  EXPECT_EQ(tracer.get()->trace, "Array:0 1:0 ");
  Function ask = Function::FromTyped([&] { return kind(tracer.visitor).cast<int>() + 10; });
  EXPECT_EQ(with_kind(tracer.visitor, 2, ask).cast<int>(), 12);
  EXPECT_EQ(kind(tracer.visitor).cast<int>(), 0);
  tracer.get()->stop_at = 1;
  EXPECT_EQ(visit(tracer.visitor, 1).cast<VisitInterrupt>()->value.cast<int>(), 1);
}

TEST(VisitInterrupt, CarriesAValue) {
  EXPECT_EQ(VisitInterrupt()->value, nullptr);
  EXPECT_EQ(VisitInterrupt(Any(3))->value.cast<int>(), 3);
  Any made = Function::GetGlobalRequired("ffi.VisitInterrupt")("x");
  EXPECT_EQ(made.type_index(), TypeIndex::kTVMFFIVisitInterrupt);
  EXPECT_EQ(made.cast<VisitInterrupt>()->value.cast<String>(), "x");
  EXPECT_EQ(refl::FieldGetter("ffi.VisitInterrupt", "value")(made.as<Object>()).cast<String>(),
            "x");
}

// ---- walk ----------------------------------------------------------------------------------

template <WalkOrder order>
std::string Walk(const Any& root, const Any& skip = nullptr) {
  std::string trace;
  auto result = StructuralWalk<order>(
      root, [&](AnyView value, TVMFFIDefRegionKind kind) -> Expected<WalkResult> {
        trace += Describe(value) + ":" + std::to_string(kind) + " ";
        if (skip != nullptr && Any(value).same_as(skip)) return WalkResult::Skip();
        return WalkResult::Advance();
      });
  EXPECT_FALSE(result.has_value());
  return trace;
}

TEST(StructuralWalk, BothOrders) {
  Any root = Array<Any>{Node(1, nullptr), Map<Any, Any>{{"k", 2}}};
  EXPECT_EQ(Walk<WalkOrder::kPreOrder>(root), "Array:0 Node:0 1:0 Map:0 2:0 ");
  EXPECT_EQ(Walk<WalkOrder::kPostOrder>(root), "1:0 Node:0 2:0 Map:0 Array:0 ");
  EXPECT_EQ(Walk<WalkOrder::kPreOrder>(nullptr), "");
  EXPECT_EQ(Walk<WalkOrder::kPostOrder>(7), "7:0 ");
}

TEST(StructuralWalk, RegionsReachTheCallbacks) {
  EXPECT_EQ(Walk<WalkOrder::kPreOrder>(Func(Var("x", 1), Var("y", 2), Var("z", 3))),
            "Func:0 x:1 1:1 y:2 2:0 z:0 3:0 ");
  EXPECT_EQ(Walk<WalkOrder::kPostOrder>(Func(Var("x", 1), Var("y", 2), Var("z", 3))),
            "1:1 x:1 2:0 y:2 3:0 z:0 Func:0 ");
}

TEST(StructuralWalk, SkipLeavesOutTheParts) {
  Node inner(1);
  EXPECT_EQ(Walk<WalkOrder::kPreOrder>(Array<Any>{inner, 2}, inner), "Array:0 Node:0 2:0 ");
  EXPECT_EQ(Walk<WalkOrder::kPostOrder>(Array<Any>{inner, 2}, inner), "1:0 Node:0 2:0 Array:0 ");
}

TEST(StructuralWalk, FirstMatchingCallbackRuns) {
  std::string trace;
  auto note = [&](std::string text) -> Expected<WalkResult> {
    trace += text + " ";
    return WalkResult::Advance();
  };
  Any root = Array<Any>{1, 2.5, "tag", Node(3), true, Shape{1}};
  StructuralWalk<WalkOrder::kPreOrder>(
      root, [&](int64_t i) { return note("int" + std::to_string(i)); },
      [&](const Node&) { return note("node"); }, [&](const NodeObj*) { return note("never"); },
      [&](String s) { return note(s); },
      [&](const Any& any) { return note("any:" + any.GetTypeKey()); });
  EXPECT_EQ(trace, "any:ffi.Array int1 any:float tag node int3 any:bool any:ffi.Shape ");
  trace.clear();
  StructuralWalk<WalkOrder::kPreOrder>(root, [&](const NodeObj* n) { return note("pointer"); });
  EXPECT_EQ(trace, "pointer ");
}

TEST(StructuralWalk, InterruptEndsIt) {
  int seen = 0;
  auto result = StructuralWalk<WalkOrder::kPreOrder>(
      Array<Any>{1, Array<Any>{2, 3}, 4}, [&](int64_t i) -> Expected<WalkResult> {
        ++seen;
        if (i < 3) return WalkResult::Advance();
        return WalkResult::Interrupt(VisitInterrupt(Any(i)));
      });
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result.value()->value.cast<int>(), 3);
  EXPECT_EQ(seen, 3);
  result = StructuralWalk<WalkOrder::kPostOrder>(Array<Any>{1}, [&](const Array<Any>&) {
    return Expected<WalkResult>(WalkResult::Interrupt());
  });
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result.value()->value, nullptr);
}

std::vector<const Object*> PatternOf(const Error& error) {
  std::vector<const Object*> pattern;
  auto context = VisitErrorContext::TryGetFromError(error);
  if (!context.has_value()) return pattern;
  for (ObjectRef node : context.value()->reverse_visit_pattern) pattern.push_back(node.get());
  return pattern;
}

TEST(StructuralWalk, ErrorsCarryTheirPath) {
  Node inner(7, 1);
  Array<Any> array{1, inner};
  Node outer(array, 2);
  Map<String, Any> root{{"k", outer}};
  std::vector<const Object*> expected{inner.get(), array.get(), outer.get(), root.get()};

  auto throwing =
      StructuralWalkExpected<WalkOrder::kPreOrder>(root, [](int64_t i) -> Expected<WalkResult> {
        if (i == 7) TVM_FFI_THROW(ValueError) << "seven";
        return WalkResult::Advance();
      });
  ASSERT_TRUE(throwing.is_err());
  EXPECT_EQ(throwing.error().message(), "seven");
  EXPECT_EQ(PatternOf(throwing.error()), expected);

  auto returned = StructuralWalkExpected<WalkOrder::kPostOrder>(
      root, [](const Node&) -> Expected<WalkResult> { return Error("ValueError", "node", ""); });
  ASSERT_TRUE(returned.is_err());
  EXPECT_EQ(PatternOf(returned.error()), expected);

  auto foreign = StructuralWalkExpected<WalkOrder::kPreOrder>(
      root, [](int64_t i) -> Expected<WalkResult> { throw std::runtime_error("foreign"); });
  ASSERT_TRUE(foreign.is_err());
  EXPECT_EQ(foreign.error().kind(), "InternalError");
  EXPECT_EQ(foreign.error().message(), "foreign");

  EXPECT_EQ(ErrorText([&] {
              StructuralWalk<WalkOrder::kPreOrder>(
                  root, [](int64_t) -> Expected<WalkResult> { return Error("KeyError", "k", ""); });
            }),
            "KeyError: k");
  Array<refl::AccessPath> paths = VisitErrorContext::FindAccessPaths(
      outer, VisitErrorContext::TryGetFromError(throwing.error()).value(), true);
  ASSERT_EQ(paths.size(), 0U);  // the pattern begins at the map, which is not below `outer`
}

TEST(StructuralWalk, HooksAndGettersInsideAWalk) {
  EXPECT_EQ(Walk<WalkOrder::kPreOrder>(Array<Any>{Hooked<PointerHookObj>(1, Node(2)), 3}),
            "Array:0 PointerHook:0 Node:0 2:0 3:0 ");
  EXPECT_EQ(Walk<WalkOrder::kPostOrder>(Array<Any>{Hooked<FunctionHookObj>(1, Node(2)), 3}),
            "2:1 Node:1 FunctionHook:0 3:0 Array:0 ");
  ObjectRef broken(make_object<BrokenObj>(1));
  Array<Any> root{broken};
  auto result = StructuralWalkExpected<WalkOrder::kPreOrder>(
      root, [](int64_t) -> Expected<WalkResult> { return WalkResult::Advance(); });
  ASSERT_TRUE(result.is_err());
  EXPECT_EQ(result.error().message(), "this field cannot be read");
  EXPECT_EQ(PatternOf(result.error()), (std::vector<const Object*>{broken.get(), root.get()}));

  Node bad(7);
  ObjectRef hooked = Hooked<PointerHookObj>(1, Array<Any>{bad});
  result = StructuralWalkExpected<WalkOrder::kPreOrder>(
      Array<Any>{hooked}, [](int64_t) -> Expected<WalkResult> { return Error("E", "e", ""); });
  ASSERT_TRUE(result.is_err());
  std::vector<const Object*> pattern = PatternOf(result.error());
  ASSERT_GE(pattern.size(), 4U);
  EXPECT_EQ(pattern.front(), bad.get());
}

TEST(StructuralWalk, RuntimeForm) {
  using Entry = Tuple<int32_t, Function>;
  Function walk = Function::GetGlobalRequired("ffi.StructuralWalk");
  std::string trace;
  auto note = [&](const char* name, Any answer = nullptr) {
    return Function::FromTyped([&trace, name, answer](Any) {
      trace += std::string(name) + " ";
      return answer;
    });
  };
  auto run = [&](Any root, Array<Entry> plain, Array<Entry> with_kind, int order) {
    trace.clear();
    return walk(root, plain, with_kind, order);
  };
  Any root = Array<Any>{1, "short", "a longer string", Bytes("b", 1), Array<Any>{2.5}, nullptr};
  EXPECT_EQ(run(root,
                {Entry(kTVMFFIStr, note("str")), Entry(kTVMFFIBytes, note("bytes")),
                 Entry(kTVMFFIObject, note("object")), Entry(kTVMFFIAny, note("any"))},
                {}, 0),
            nullptr);
  EXPECT_EQ(trace, "object any str str bytes object any ");

  // Plain callbacks are asked before those with a kind, whatever their order.
  Function kinds = Function::FromTyped(
      [&](Any value, int kind) { trace += "kind" + std::to_string(kind) + " "; });
  run(Func(1, "s", 2.0), {Entry(kTVMFFIFloat, note("float"))}, {Entry(kTVMFFIAny, kinds)}, 0);
  EXPECT_EQ(trace, "kind0 kind1 kind2 float ");

  run(root, {Entry(kTVMFFIArray, note("skip", 1)), Entry(kTVMFFIAny, note("any"))}, {}, 0);
  EXPECT_EQ(trace, "skip ");
  run(Array<Any>{1}, {Entry(kTVMFFIAny, note("five", 5))}, {}, 7);
  EXPECT_EQ(trace, "five five ");
  Any stopped = run(root, {Entry(kTVMFFIAny, note("stop", VisitInterrupt(Any(9))))}, {}, 0);
  EXPECT_EQ(stopped.cast<VisitInterrupt>()->value.cast<int>(), 9);
  EXPECT_EQ(ErrorText([&] { run(1, {Entry(kTVMFFIAny, note("bad", "text"))}, {}, 0); }),
            "TypeError: CallExpected: result type mismatch, expected WalkResult, but got "
            "ffi.SmallStr");
}

TEST(StructuralWalk, DeepAndCyclicValues) {
  Any chain = 1;
  for (int i = 0; i < 50000; ++i) chain = Node(Array<Any>{chain});
  int count = 0;
  StructuralWalk<WalkOrder::kPreOrder>(chain, [&](AnyView) -> Expected<WalkResult> {
    ++count;
    return WalkResult::Advance();
  });
  EXPECT_EQ(count, 100001);

  List<Any> list;
  list.push_back(list);
  auto result = StructuralWalkExpected<WalkOrder::kPreOrder>(
      list, [&](int64_t) -> Expected<WalkResult> { return WalkResult::Advance(); });
  ASSERT_TRUE(result.is_err());
  EXPECT_TRUE(Contains(result.error().message(), "contains itself"));
  list.clear();
}

TEST(WalkResult, ConvertsFromWhatCallbacksReturn) {
  EXPECT_EQ(TypeTraits<WalkResult>::TypeStr(), "WalkResult");
  EXPECT_EQ(Any(nullptr).cast<WalkResult>().as<int32_t>(), 0);
  EXPECT_EQ(Any(1).cast<WalkResult>().as<int32_t>(), 1);
  EXPECT_TRUE(Any(VisitInterrupt()).cast<WalkResult>().as<VisitInterrupt>().has_value());
  EXPECT_EQ(WalkResult::Advance().as<int32_t>(), 0);
  EXPECT_EQ(WalkResult::Skip().as<int32_t>(), 1);
  EXPECT_FALSE(Any("x").try_cast<WalkResult>().has_value());
}

// ---- visit error context -------------------------------------------------------------------

void FailAt(const Node& node, int depth) {
  TVM_FFI_VISIT_BEGIN();
  if (depth < 0) return;
  if (depth == 0) TVM_FFI_VISIT_THROW(ValueError, node) << "failed at " << depth;
  FailAt(node->a.cast<Node>(), depth - 1);
  TVM_FFI_VISIT_END(node);
}

Expected<int> FailExpected(const Node& node) {
  TVM_FFI_VISIT_BEGIN();
  TVM_FFI_THROW(KeyError) << "no key";
  TVM_FFI_VISIT_END_RETURN_EXPECTED(node);
}

TEST(VisitErrorContext, MacrosCollectNodes) {
  Node leaf(1), middle{Any(leaf)}, root{Any(middle)};
  try {
    FailAt(root, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "ValueError");
    EXPECT_EQ(error.message(), "failed at 0");
    // The thrower names its node, and so does the function that is left.
    EXPECT_EQ(PatternOf(error),
              (std::vector<const Object*>{leaf.get(), leaf.get(), middle.get(), root.get()}));
    auto context = VisitErrorContext::TryGetFromError(error).value();
    Array<refl::AccessPath> paths = VisitErrorContext::FindAccessPaths(root, context);
    ASSERT_EQ(paths.size(), 1U);
    EXPECT_EQ(ReprPrint(paths[0]), "<root>.a.a");
  }
  Expected<int> expected = FailExpected(leaf);
  ASSERT_TRUE(expected.is_err());
  EXPECT_EQ(expected.error().kind(), "KeyError");
  EXPECT_EQ(PatternOf(expected.error()), (std::vector<const Object*>{leaf.get()}));
}

TEST(VisitErrorContext, KeepsAnEarlierContext) {
  Node node(1), other(2);
  ObjectRef before = Array<Any>{1};
  int use_count = before.use_count();
  {
    Error error("E", "m", "", std::nullopt, before);
    EXPECT_EQ(before.use_count(), use_count + 1);
    details::UpdateVisitErrorContext(error, node);
    auto context = VisitErrorContext::TryGetFromError(error).value();
    EXPECT_TRUE(context->prev_error_context.value().same_as(before));
    EXPECT_EQ(before.use_count(), use_count + 1);
    details::UpdateVisitErrorContext(error, other);
    EXPECT_EQ(PatternOf(error), (std::vector<const Object*>{node.get(), other.get()}));
  }
  EXPECT_EQ(before.use_count(), use_count);
  EXPECT_FALSE(VisitErrorContext::TryGetFromError(Error("E", "m", "")).has_value());
  VisitErrorContextObj empty;
  EXPECT_EQ(empty.reverse_visit_pattern.size(), 0U);
  EXPECT_FALSE(empty.prev_error_context.has_value());
}

VisitErrorContext ContextOf(std::vector<ObjectRef> innermost_first) {
  auto context = make_object<VisitErrorContextObj>();
  for (const ObjectRef& node : innermost_first) context->reverse_visit_pattern.push_back(node);
  return VisitErrorContext(context);
}

std::string Paths(const ObjectRef& root, std::vector<ObjectRef> innermost_first,
                  bool prefix = false) {
  std::string text;
  for (const auto& path :
       VisitErrorContext::FindAccessPaths(root, ContextOf(std::move(innermost_first)), prefix)) {
    text += std::string(ReprPrint(path)) + " ";
  }
  return text;
}

TEST(FindAccessPaths, LocatesTheInnermostNode) {
  Node leaf(1), middle(Array<Any>{0, leaf}), root(Map<Any, Any>{{"k", middle}});
  EXPECT_EQ(Paths(root, {leaf, middle, root}), "<root>.a[\"k\"].a[1] ");
  EXPECT_EQ(Paths(root, {leaf}), "<root>.a[\"k\"].a[1] ");
  EXPECT_EQ(Paths(root, {leaf, root}), "<root>.a[\"k\"].a[1] ");
  EXPECT_EQ(Paths(root, {root}), "<root> ");
  EXPECT_EQ(Paths(root, {middle, leaf}), "");
  EXPECT_EQ(Paths(root, {}), "");
  EXPECT_EQ(Paths(root, {leaf, leaf, ObjectRef(), leaf, middle}), "<root>.a[\"k\"].a[1] ");
  EXPECT_EQ(Paths(root, {leaf, Array<Any>{1}}), "");
  EXPECT_EQ(Paths(Array<Any>{root}, {root}), "");
  EXPECT_EQ(Paths(ObjectRef(), {root}), "");
}

TEST(FindAccessPaths, ReportsEveryOccurrenceInOrder) {
  Node leaf(1);
  Node root(List<Any>{leaf, 2, leaf}, Dict<Any, Any>{{"x", leaf}, {"y", nullptr}}, leaf);
  EXPECT_EQ(Paths(root, {leaf, root}), "<root>.a[0] <root>.a[2] <root>.b[\"x\"] <root>.hidden ");
  Node null_key(Map<Any, Any>{{nullptr, leaf}, {1, leaf}});
  EXPECT_EQ(Paths(null_key, {leaf}), "<root>.a[1] ");
}

TEST(FindAccessPaths, PrefixModeReportsHowFarItGot) {
  Node leaf(1), middle(leaf, Node(5)), root(Array<Any>{middle});
  Node stranger(9);
  EXPECT_EQ(Paths(root, {stranger, middle, root}), "");
  EXPECT_EQ(Paths(root, {stranger, middle, root}, true), "<root>.a[0].a <root>.a[0].b ");
  EXPECT_EQ(Paths(root, {stranger, leaf, root}, true), "<root>.a[0].a <root>.a[0].b ");
  EXPECT_EQ(Paths(root, {leaf, middle, root}, true), "<root>.a[0].a <root>.a[0].b ");
  EXPECT_EQ(Paths(root, {stranger}, true), "");
  Node lonely(1);
  EXPECT_EQ(Paths(lonely, {stranger, lonely}, true), "");
}

TEST(FindAccessPaths, SurvivesCyclesAndBrokenFields) {
  Node root(1), inner{Any(root)};
  const_cast<NodeObj*>(root.get())->b = List<Any>{inner};
  EXPECT_EQ(Paths(root, {inner, root}), "<root>.b[0] ");
  const_cast<NodeObj*>(root.get())->b = nullptr;
  ObjectRef broken(make_object<BrokenObj>(1));
  Node holder(broken, inner);
  EXPECT_EQ(Paths(holder, {inner, holder}), "<root>.b ");
  EXPECT_EQ(Paths(holder, {broken, holder}), "<root>.a ");
  auto context = make_object<VisitErrorContextObj>();
  Any list = context->reverse_visit_pattern;
  list.cast<List<Any>>().push_back(1);
  EXPECT_EQ(VisitErrorContext::FindAccessPaths(holder, VisitErrorContext(context)).size(), 0U);
}

TEST(FindAccessPaths, GlobalFunction) {
  Node leaf(1), root{Any(leaf)};
  Function find = Function::GetGlobalRequired("ffi.VisitErrorContext.FindAccessPaths");
  auto paths = find(root, ContextOf({leaf, root}), false).cast<Array<refl::AccessPath>>();
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_EQ(ReprPrint(paths[0]), "<root>.a");
}

}  // namespace
