// SPDX-License-Identifier: Apache-2.0
//
// extra/structural_equal.h, structural_hash.h and structural_key.h.
#include <gtest/gtest.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/extra/structural_equal.h>
#include <tvm/ffi/extra/structural_hash.h>
#include <tvm/ffi/extra/structural_key.h>
#include <tvm/ffi/reflection/registry.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>
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
  explicit VarObj(String name, Any type = nullptr) : name(std::move(name)), type(std::move(type)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindFreeVar;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.structural.Var", VarObj, Object);
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
  Any value;
  Array<Any> children;
  String comment;
  NodeObj() = default;
  NodeObj(Any value, Array<Any> children, String comment)
      : value(std::move(value)), children(std::move(children)), comment(std::move(comment)) {}
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO("test.structural.Node", NodeObj, Object);
};

class Node : public ObjectRef {
 public:
  explicit Node(Any value, Array<Any> children = {}, String comment = "") {
    data_ = make_object<NodeObj>(std::move(value), std::move(children), std::move(comment));
  }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Node, ObjectRef, NodeObj);
};

// An object with the fields of FuncObj but one of the other kinds.
template <TVMFFISEqHashKind kind>
class KindObj : public Object {
 public:
  Any value;
  KindObj() = default;
  explicit KindObj(Any value) : value(std::move(value)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kind;
};

class DagObj : public KindObj<kTVMFFISEqHashKindDAGNode> {
 public:
  using KindObj::KindObj;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.structural.Dag", DagObj, Object);
};
class ConstObj : public KindObj<kTVMFFISEqHashKindConstTreeNode> {
 public:
  using KindObj::KindObj;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.structural.Const", ConstObj, Object);
};
class UniqueObj : public KindObj<kTVMFFISEqHashKindUniqueInstance> {
 public:
  using KindObj::KindObj;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.structural.Unique", UniqueObj, Object);
};
class UnsupportedObj : public KindObj<kTVMFFISEqHashKindUnsupported> {
 public:
  using KindObj::KindObj;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.structural.Unsupported", UnsupportedObj, Object);
};

template <typename Obj>
ObjectRef Make(Any value) {
  return ObjectRef(make_object<Obj>(std::move(value)));
}

class FuncObj : public Object {
 public:
  Array<Any> params;
  Any body;
  FuncObj() = default;
  FuncObj(Array<Any> params, Any body) : params(std::move(params)), body(std::move(body)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.structural.Func", FuncObj, Object);
};

// The same with a region that does not reach into the variables.
class SimpleFuncObj : public Object {
 public:
  Array<Any> params;
  Any body;
  SimpleFuncObj() = default;
  SimpleFuncObj(Array<Any> params, Any body) : params(std::move(params)), body(std::move(body)) {}
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.structural.SimpleFunc", SimpleFuncObj, Object);
};

// The same by hooks.
class HookFuncObj : public Object {
 public:
  Array<Any> params;
  Any body;
  String comment;
  HookFuncObj() = default;
  HookFuncObj(Array<Any> params, Any body, String comment)
      : params(std::move(params)), body(std::move(body)), comment(std::move(comment)) {}

  bool SEqual(const HookFuncObj* other,
              TypedFunction<bool(AnyView, AnyView, bool, AnyView)> cmp) const {
    if (!cmp(params, other->params, true, "params")) return false;
    return cmp(body, other->body, false, "body");
  }
  int64_t SHash(int64_t init, TypedFunction<int64_t(AnyView, int64_t, bool)> hash) const {
    return hash(body, hash(params, init, true), false);
  }

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.structural.HookFunc", HookFuncObj, Object);
};

ObjectRef Func(Array<Any> params, Any body) {
  return ObjectRef(make_object<FuncObj>(std::move(params), std::move(body)));
}
ObjectRef SimpleFunc(Array<Any> params, Any body) {
  return ObjectRef(make_object<SimpleFuncObj>(std::move(params), std::move(body)));
}
ObjectRef HookFunc(Array<Any> params, Any body, String comment = "") {
  return ObjectRef(
      make_object<HookFuncObj>(std::move(params), std::move(body), std::move(comment)));
}

// Hooks that do something special; filled in by the tests.
class PluggableObj : public KindObj<kTVMFFISEqHashKindTreeNode> {
 public:
  using KindObj::KindObj;
  static Function equal;
  static Function hash;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.structural.Pluggable", PluggableObj, Object);
};
Function PluggableObj::equal{nullptr};
Function PluggableObj::hash{nullptr};

class ParentFieldObj : public NodeObj {
 public:
  int64_t extra = 0;
  ParentFieldObj() = default;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.structural.ParentField", ParentFieldObj, NodeObj);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<VarObj>()
      .def_ro("name", &VarObj::name, refl::AttachFieldFlag::SEqHashIgnore())
      .def_ro("type", &VarObj::type);
  refl::ObjectDef<NodeObj>()
      .def_rw("value", &NodeObj::value)
      .def_rw("children", &NodeObj::children)
      .def_rw("comment", &NodeObj::comment, refl::AttachFieldFlag::SEqHashIgnore());
  refl::ObjectDef<ParentFieldObj>().def_rw("extra", &ParentFieldObj::extra);
  refl::ObjectDef<DagObj>().def_ro("value", &DagObj::value);
  refl::ObjectDef<ConstObj>().def_ro("value", &ConstObj::value);
  refl::ObjectDef<UniqueObj>().def_ro("value", &UniqueObj::value);
  refl::ObjectDef<UnsupportedObj>().def_ro("value", &UnsupportedObj::value);
  refl::ObjectDef<FuncObj>()
      .def_ro("params", &FuncObj::params, refl::AttachFieldFlag::SEqHashDefRecursive())
      .def_ro("body", &FuncObj::body);
  refl::ObjectDef<SimpleFuncObj>()
      .def_ro("params", &SimpleFuncObj::params, refl::AttachFieldFlag::SEqHashDefNonRecursive())
      .def_ro("body", &SimpleFuncObj::body);
  refl::ObjectDef<HookFuncObj>()
      .def_ro("params", &HookFuncObj::params)
      .def_ro("body", &HookFuncObj::body)
      .def_ro("comment", &HookFuncObj::comment);
  refl::TypeAttrDef<HookFuncObj>()
      .def(refl::type_attr::kSEqual, &HookFuncObj::SEqual)
      .def(refl::type_attr::kSHash, &HookFuncObj::SHash);
  refl::ObjectDef<PluggableObj>().def_ro("value", &PluggableObj::value);
  refl::TypeAttrDef<PluggableObj>()
      .def(refl::type_attr::kSEqual,
           [](ObjectRef lhs, ObjectRef rhs, Function callback) {
             return PluggableObj::equal(lhs, rhs, callback);
           })
      .def(refl::type_attr::kSHash, [](ObjectRef self, int64_t init, Function callback) {
        return PluggableObj::hash(self, init, callback);
      });
}

// ---- helpers -------------------------------------------------------------------------------

struct Allocator {
  void AllocData(DLTensor* tensor) { tensor->data = std::malloc(GetDataSize(*tensor) + 1); }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

Tensor MakeTensor(const std::vector<int32_t>& values, int64_t rows) {
  auto columns = static_cast<int64_t>(values.size()) / rows;
  Tensor tensor = Tensor::FromNDAlloc(Allocator(), Shape({rows, columns}),
                                      DLDataType{kDLInt, 32, 1}, DLDevice{kDLCPU, 0});
  std::memcpy(tensor.data_ptr(), values.data(), values.size() * sizeof(int32_t));
  return tensor;
}

bool Equal(const Any& lhs, const Any& rhs, bool map_free_vars = false) {
  bool equal = StructuralEqual::Equal(lhs, rhs, map_free_vars);
  // Every comparison of this file checks these properties on the way.
  EXPECT_EQ(StructuralEqual::Equal(rhs, lhs, map_free_vars), equal);
  EXPECT_EQ(!StructuralEqual::GetFirstMismatch(lhs, rhs, map_free_vars).has_value(), equal);
  if (equal) {
    EXPECT_EQ(StructuralHash::Hash(lhs, map_free_vars), StructuralHash::Hash(rhs, map_free_vars));
  }
  return equal;
}

std::string Mismatch(const Any& lhs, const Any& rhs, bool map_free_vars = false) {
  auto paths = StructuralEqual::GetFirstMismatch(lhs, rhs, map_free_vars);
  if (!paths.has_value()) return "equal";
  return std::string(ReprPrint(paths.value().get<0>())) + " | " +
         std::string(ReprPrint(paths.value().get<1>()));
}

String HeapString(const char* text) { return String(std::string(text)); }

// ---- leaves --------------------------------------------------------------------------------

TEST(StructuralHash, PublishedValues) {
  EXPECT_EQ(StructuralHash()(nullptr), 0x9e3779b9U);
  EXPECT_EQ(StructuralHash()(42), 0x9e377a22U);
  EXPECT_EQ(StructuralHash()(true), 0x9e377a38U);
  EXPECT_EQ(StructuralHash()(1.5), 0x3ff800009e377a7aU);
  EXPECT_EQ(StructuralHash()(std::nan("")), 0x7ff800009e377a7aU);
  EXPECT_EQ(StructuralHash()(-std::nan("7")), 0x7ff800009e377a7aU);
  EXPECT_EQ(StructuralHash()(String("")), 0x9e378a48U);
  EXPECT_EQ(StructuralHash()(String("hello")), 0x10aa3f00eU);
  EXPECT_EQ(StructuralHash()(HeapString("hello")), 0x10aa3f00eU);
  EXPECT_EQ(StructuralHash()(String("hello world")), 0xdef11395U);
  EXPECT_EQ(StructuralHash()(Bytes("12345678", 8)), 0xc2d928a7U);
  EXPECT_EQ(StructuralHash()(DLDataType{kDLFloat, 32, 1}), 0x9e389af9U);
  EXPECT_EQ(StructuralHash()(DLDevice{kDLCUDA, 1}), 0x19e377b3aU);
}

TEST(StructuralHash, PublishedContainerValues) {
  if (TVMFFIGetTypeInfo(kTVMFFIArray)->type_key_hash != 0x811300c104284401U) {
    GTEST_SKIP() << "the published values are for 64-bit libstdc++";
  }
  EXPECT_EQ(StructuralHash()(Array<Any>()), 0xe417f0b0ed7acef8U);
  EXPECT_EQ(StructuralHash()(Array<int>{1, 2, 3}), 0xf246b05b325c12f0U);
  EXPECT_EQ(StructuralHash()(Map<String, int>{{"a", 1}, {"b", 2}}), 0x7465eb6f00690069U);
  EXPECT_EQ(StructuralHash()(Map<String, int>{{"b", 2}, {"a", 1}}), 0x7465eb6f00690069U);
}

TEST(StructuralEqual, ScalarsCompareByTypeAndBits) {
  EXPECT_TRUE(Equal(nullptr, nullptr));
  EXPECT_TRUE(Equal(1, 1));
  EXPECT_FALSE(Equal(1, 2));
  EXPECT_FALSE(Equal(1, true));
  EXPECT_FALSE(Equal(1, 1.0));
  EXPECT_FALSE(Equal(nullptr, 0));
  EXPECT_TRUE(Equal(std::nan("1"), -std::nan("2")));
  EXPECT_FALSE(Equal(std::nan(""), 1.0));
  EXPECT_FALSE(Equal(0.0, -0.0));
  EXPECT_TRUE(Equal(DLDevice{kDLCUDA, 1}, DLDevice{kDLCUDA, 1}));
  EXPECT_FALSE(Equal(DLDevice{kDLCUDA, 1}, DLDevice{kDLCUDA, 2}));
  EXPECT_TRUE(Equal(DLDataType{kDLInt, 8, 1}, DLDataType{kDLInt, 8, 1}));
  EXPECT_FALSE(Equal(DLDataType{kDLInt, 8, 1}, DLDataType{kDLInt, 8, 2}));
}

TEST(StructuralEqual, BothFormsOfTextAreTheSame) {
  EXPECT_TRUE(Equal(String("abc"), HeapString("abc")));
  EXPECT_FALSE(Equal(String("abc"), HeapString("abd")));
  EXPECT_TRUE(Equal(Bytes("abc", 3), Bytes(std::string("abc"))));
  EXPECT_FALSE(Equal(String("abc"), Bytes("abc", 3)));
  EXPECT_TRUE(Equal(String("a longer string"), String("a longer string")));
  EXPECT_FALSE(Equal(String("a longer string"), String("a longer strinG")));
  EXPECT_FALSE(Equal(String("a longer string"), String("short")));
}

// ---- containers ----------------------------------------------------------------------------

TEST(StructuralEqual, Sequences) {
  EXPECT_TRUE(Equal(Array<Any>{1, "x", Array<Any>{2.5}}, Array<Any>{1, "x", Array<Any>{2.5}}));
  EXPECT_FALSE(Equal(Array<Any>{1, 2}, Array<Any>{1, 3}));
  EXPECT_FALSE(Equal(Array<Any>{1, 2}, Array<Any>{1}));
  EXPECT_FALSE(Equal(Array<Any>{1}, List<Any>{1}));
  EXPECT_TRUE(Equal(List<Any>{1, List<Any>()}, List<Any>{1, List<Any>()}));
  EXPECT_TRUE(Equal(Shape{1, 2}, Shape{1, 2}));
  EXPECT_FALSE(Equal(Shape{1, 2}, Shape{1, 2, 3}));
  EXPECT_FALSE(Equal(Shape{1, 2}, Shape{1, 3}));
  EXPECT_TRUE(Equal(Shape(), Shape()));
}

TEST(StructuralEqual, MapsIgnoreOrder) {
  using M = Map<Any, Any>;
  EXPECT_TRUE(Equal(M{{"a", 1}, {"b", 2}}, M{{"b", 2}, {"a", 1}}));
  EXPECT_FALSE(Equal(M{{"a", 1}, {"b", 2}}, M{{"a", 1}, {"b", 3}}));
  EXPECT_FALSE(Equal(M{{"a", 1}}, M{{"b", 1}}));
  EXPECT_FALSE(Equal(M{{"a", 1}}, M{{"a", 1}, {"b", 1}}));
  EXPECT_FALSE(Equal(M{{"a", 1}}, Dict<Any, Any>{{"a", 1}}));
  EXPECT_NE(StructuralHash()(M{{"a", 1}}), StructuralHash()(Dict<Any, Any>{{"a", 1}}));
  EXPECT_TRUE(Equal(Dict<Any, Any>{{1, 2}, {3, 4}}, Dict<Any, Any>{{3, 4}, {1, 2}}));
  M large_a, large_b;
  for (int i = 0; i < 200; ++i) {
    large_a.Set(i, i);
    large_b.Set(199 - i, 199 - i);
  }
  EXPECT_TRUE(Equal(large_a, large_b));
  large_b.Set(7, 8);
  EXPECT_FALSE(Equal(large_a, large_b));
  EXPECT_NE(StructuralHash()(large_a), StructuralHash()(large_b));
}

TEST(StructuralHash, MapKeysTakePartOnceTheirHashIsKnown) {
  Node key(1);
  using M = Map<Any, Any>;
  auto hash = [](const Any& value) { return StructuralHash::Hash(value); };
  EXPECT_EQ(hash(M{{key, 1}}), hash(M{{key, 2}}));
  EXPECT_NE(hash(Array<Any>{key, M{{key, 1}}}), hash(Array<Any>{key, M{{key, 2}}}));
  Array<Any> array{1};
  EXPECT_EQ(hash(Array<Any>{array, M{{array, 1}}}), hash(Array<Any>{array, M{{array, 2}}}));
}

TEST(StructuralEqual, TensorsCompareShapeTypeAndContent) {
  Tensor a = MakeTensor({1, 2, 3, 4}, 2);
  EXPECT_TRUE(Equal(a, MakeTensor({1, 2, 3, 4}, 2)));
  EXPECT_FALSE(Equal(a, MakeTensor({1, 2, 3, 5}, 2)));
  EXPECT_FALSE(Equal(a, MakeTensor({1, 2, 3, 4}, 1)));
  EXPECT_TRUE(StructuralEqual::Equal(a, MakeTensor({1, 2, 3, 5}, 2), false, true));
  EXPECT_FALSE(StructuralEqual::Equal(a, MakeTensor({1, 2, 3, 4}, 1), false, true));
  EXPECT_EQ(StructuralHash::Hash(a, false, true),
            StructuralHash::Hash(MakeTensor({1, 2, 3, 5}, 2), false, true));
  EXPECT_NE(StructuralHash::Hash(a), StructuralHash::Hash(MakeTensor({1, 2, 3, 5}, 2)));
}

TEST(StructuralEqual, TensorContentMustBeReadableHereAndMayHaveGaps) {
  auto on_gpu = [] {
    struct NoData {
      void AllocData(DLTensor* tensor) { tensor->data = nullptr; }
      void FreeData(DLTensor*) {}
    };
    return Tensor::FromNDAlloc(NoData(), Shape({2}), DLDataType{kDLInt, 32, 1},
                               DLDevice{kDLCUDA, 0});
  };
  Tensor gpu = on_gpu();
  EXPECT_TRUE(StructuralEqual::Equal(gpu, gpu));
  EXPECT_TRUE(StructuralEqual::Equal(gpu, on_gpu(), false, true));
  std::string error = ErrorText([&] { StructuralEqual::Equal(gpu, on_gpu()); });
  EXPECT_TRUE(Contains(error, "InternalError") && Contains(error, "can only compare CPU tensor"))
      << error;
  error = ErrorText([&] { StructuralHash::Hash(gpu); });
  EXPECT_TRUE(Contains(error, "InternalError") && Contains(error, "CPU tensor")) << error;

  Tensor matrix = MakeTensor({1, 2, 3, 4}, 2);
  std::vector<int64_t> shape{2, 1}, strides{2, 1};
  Tensor column = matrix.as_strided(ShapeView(shape.data(), 2), ShapeView(strides.data(), 2));
  Tensor same = MakeTensor({1, 3}, 2);
  EXPECT_TRUE(StructuralEqual::Equal(column, same));
  EXPECT_FALSE(StructuralEqual::Equal(column, MakeTensor({1, 2}, 2)));
  EXPECT_EQ(StructuralHash::Hash(column), StructuralHash::Hash(same));
}

// ---- kinds ---------------------------------------------------------------------------------

TEST(StructuralEqual, TreeNodesCompareFieldsExceptIgnoredOnes) {
  EXPECT_TRUE(Equal(Node(1, {Node(2)}, "left"), Node(1, {Node(2)}, "right")));
  EXPECT_FALSE(Equal(Node(1, {Node(2)}), Node(1, {Node(3)})));
  EXPECT_FALSE(Equal(Node(1), Func({}, 1)));
  Node shared(5);
  EXPECT_TRUE(Equal(Array<Any>{shared, shared}, Array<Any>{Node(5), Node(5)}));
  EXPECT_FALSE(Equal(Node(Any(nullptr)), Node(Any(0))));
}

TEST(StructuralEqual, InheritedFieldsCount) {
  auto make = [](int64_t value, int64_t extra) {
    ObjectPtr<ParentFieldObj> node = make_object<ParentFieldObj>();
    node->value = value;
    node->extra = extra;
    return ObjectRef(node);
  };
  EXPECT_TRUE(Equal(make(1, 2), make(1, 2)));
  EXPECT_EQ(Mismatch(make(1, 2), make(3, 2)), "<root>.value | <root>.value");
  EXPECT_EQ(Mismatch(make(1, 2), make(1, 3)), "<root>.extra | <root>.extra");
}

TEST(StructuralEqual, FreeVariablesAreThemselvesUnlessMapped) {
  Var x("x"), y("y");
  EXPECT_TRUE(Equal(x, x));
  EXPECT_FALSE(Equal(x, y));
  EXPECT_NE(StructuralHash::Hash(x), StructuralHash::Hash(y));
  EXPECT_TRUE(Equal(x, y, true));
  EXPECT_TRUE(Equal(Array<Any>{x, x}, Array<Any>{y, y}, true));
  EXPECT_FALSE(Equal(Array<Any>{x, x}, Array<Any>{x, y}, true));
  EXPECT_FALSE(Equal(Array<Any>{x, y}, Array<Any>{y, y}, true));
  EXPECT_TRUE(Equal(Array<Any>{x, y, x}, Array<Any>{y, x, y}, true));
  EXPECT_FALSE(Equal(Array<Any>{x, y, x}, Array<Any>{y, x, x}, true));
  EXPECT_FALSE(Equal(Var("x", 1), Var("x", 2), true));
}

TEST(StructuralEqual, DefinitionsBindVariables) {
  Var x("x"), y("y"), z("z");
  EXPECT_TRUE(Equal(Func({x}, Array<Any>{1, x}), Func({y}, Array<Any>{1, y})));
  EXPECT_TRUE(Equal(Func({x, y}, Array<Any>{y, x}), Func({y, x}, Array<Any>{x, y})));
  EXPECT_FALSE(Equal(Func({x, y}, Array<Any>{x, y}), Func({x, y}, Array<Any>{y, x})));
  EXPECT_FALSE(Equal(Func({x}, Array<Any>{x, z}), Func({y}, Array<Any>{y, y})));
  EXPECT_TRUE(Equal(Func({x}, Array<Any>{x, z}), Func({y}, Array<Any>{y, z})));
  EXPECT_FALSE(Equal(Func({x}, x), Func({y}, z)));
  // Once bound, a variable stands for its partner everywhere.
  EXPECT_FALSE(Equal(Array<Any>{Func({x}, x), x}, Array<Any>{Func({y}, y), x}));
  EXPECT_TRUE(Equal(Array<Any>{Func({x}, x), x}, Array<Any>{Func({y}, y), y}));
}

TEST(StructuralEqual, NonRecursiveRegionsEndAtTheVariable) {
  Var n("n"), m("m");
  auto in_type = [](const Var& size) { return Var("v", Array<Any>{size}); };
  // A recursive region also binds what the variable's own fields mention.
  EXPECT_TRUE(Equal(Func({in_type(n)}, 1), Func({in_type(m)}, 1)));
  EXPECT_FALSE(Equal(SimpleFunc({in_type(n)}, 1), SimpleFunc({in_type(m)}, 1)));
  EXPECT_TRUE(Equal(SimpleFunc({in_type(n)}, 1), SimpleFunc({in_type(n)}, 1)));
  EXPECT_TRUE(Equal(SimpleFunc({n}, n), SimpleFunc({m}, m)));
}

TEST(StructuralEqual, DagNodesKeepSharing) {
  ObjectRef s = Make<DagObj>(1), t = Make<DagObj>(1);
  EXPECT_TRUE(Equal(Array<Any>{s, s}, Array<Any>{t, t}));
  EXPECT_FALSE(Equal(Array<Any>{s, s}, Array<Any>{s, t}));
  EXPECT_NE(StructuralHash::Hash(Array<Any>{s, s}), StructuralHash::Hash(Array<Any>{s, t}));
  EXPECT_FALSE(Equal(Array<Any>{s, t}, Array<Any>{s, s}));
  EXPECT_FALSE(Equal(Make<DagObj>(1), Make<DagObj>(2)));
  // Reached twice through a shared container, although it has one owner only.
  Array<Any> holder{Make<DagObj>(1)};
  EXPECT_TRUE(Equal(Array<Any>{holder, holder}, Array<Any>{Array<Any>{s}, Array<Any>{s}}));
  Array<Any> nested{Array<Any>{Node(Any(Make<DagObj>(1)))}};
  EXPECT_TRUE(Equal(Array<Any>{nested, nested}, Array<Any>{Array<Any>{Array<Any>{Node(Any(s))}},
                                                           Array<Any>{Array<Any>{Node(Any(s))}}}));
}

TEST(StructuralEqual, ConstAndUniqueKinds) {
  ObjectRef c = Make<ConstObj>(1);
  EXPECT_TRUE(Equal(c, c));
  EXPECT_TRUE(Equal(c, Make<ConstObj>(1)));
  EXPECT_FALSE(Equal(c, Make<ConstObj>(2)));
  ObjectRef u = Make<UniqueObj>(1);
  EXPECT_TRUE(Equal(u, u));
  EXPECT_FALSE(Equal(u, Make<UniqueObj>(1)));
  EXPECT_EQ(StructuralHash::Hash(u), StructuralHash::Hash(Make<UniqueObj>(1)));
}

TEST(StructuralEqual, TypesWithoutStructureAreErrors) {
  ObjectRef object = Make<UnsupportedObj>(1);
  const std::string no_kind =
      "TypeError: _type_s_eq_hash_kind is not set for type `test.structural.Unsupported`, so "
      "StructuralHash is not supported for this type";
  EXPECT_EQ(ErrorText([&] { StructuralEqual::Equal(object, object); }), no_kind);
  EXPECT_EQ(ErrorText([&] { StructuralHash::Hash(object); }), no_kind);
  Function function = Function::FromTyped([] {});
  const std::string no_metadata =
      "TypeError: Type metadata is not set for type `ffi.Function`, so StructuralHash is not "
      "supported for this type";
  EXPECT_EQ(ErrorText([&] { StructuralEqual::Equal(Array<Any>{function}, Array<Any>{function}); }),
            no_metadata);
  EXPECT_EQ(ErrorText([&] { StructuralHash::Hash(Array<Any>{function}); }), no_metadata);
  EXPECT_FALSE(StructuralEqual::Equal(function, 1));
}

// ---- hooks ---------------------------------------------------------------------------------

TEST(StructuralHooks, ReplaceTheFieldWalk) {
  Var x("x"), y("y");
  EXPECT_TRUE(Equal(HookFunc({x}, Array<Any>{x, 1}, "a"), HookFunc({y}, Array<Any>{y, 1}, "b")));
  EXPECT_FALSE(Equal(HookFunc({x}, Array<Any>{x, 1}), HookFunc({y}, Array<Any>{x, 1})));
  EXPECT_EQ(Mismatch(HookFunc({x}, Array<Any>{x, 1}), HookFunc({y}, Array<Any>{y, 2})),
            "<root>.body[1] | <root>.body[1]");
  EXPECT_TRUE(Equal(HookFunc({x}, HookFunc({y}, Array<Any>{x, y})),
                    HookFunc({y}, HookFunc({x}, Array<Any>{y, x}))));
}

TEST(StructuralHooks, ZeroKeepsTheRegionOfTheHook) {
  Var x("x"), y("y");
  // Inside params (a definition) the nested hook object inherits the region for its body.
  EXPECT_TRUE(Equal(HookFunc({HookFunc({}, x)}, x), HookFunc({HookFunc({}, y)}, y)));
  EXPECT_FALSE(Equal(HookFunc({}, HookFunc({}, x)), HookFunc({}, HookFunc({}, y))));
}

TEST(StructuralHooks, MayCallTheWholeEqualAlthoughPartsDiffer) {
  PluggableObj::equal = Function::FromTyped([](ObjectRef lhs, ObjectRef rhs, Function callback) {
    EXPECT_FALSE(callback(Array<Any>{1}, Array<Any>{2}, 0, "part").cast<bool>());
    return true;
  });
  EXPECT_EQ(Mismatch(Array<Any>{Make<PluggableObj>(1), 1}, Array<Any>{Make<PluggableObj>(1), 2}),
            "<root>[1] | <root>[1]");
  PluggableObj::equal = nullptr;
}

TEST(StructuralHooks, MayCatchErrorsOfTheirParts) {
  PluggableObj::equal = Function::FromTyped([](ObjectRef lhs, ObjectRef rhs, Function callback) {
    Any deep = Array<Any>{Array<Any>{Make<UnsupportedObj>(1)}};
    EXPECT_THROW(callback(deep, deep, 0, "part"), Error);
    return callback(Node(1, {Node(2)}), Node(1, {Node(2)}), 0, "rest").cast<bool>();
  });
  PluggableObj::hash = Function::FromTyped([](ObjectRef self, int64_t init, Function callback) {
    Any deep = Array<Any>{Map<Any, Any>{{"k", Array<Any>{1, Make<UnsupportedObj>(1)}}}};
    EXPECT_THROW(callback(deep, init, 0), Error);
    return callback(Node(1, {Node(2)}), init, 0).cast<int64_t>();
  });
  Array<Any> value{1, Array<Any>{Make<PluggableObj>(1)}, 3};
  Array<Any> other{1, Array<Any>{Make<PluggableObj>(1)}, 3};
  EXPECT_TRUE(Equal(value, other));
  PluggableObj::equal = PluggableObj::hash = nullptr;
}

TEST(StructuralHooks, MayAskForAPartTwice) {
  PluggableObj::hash = Function::FromTyped([](ObjectRef self, int64_t init, Function callback) {
    Any part = self.as<PluggableObj>()->value;
    int64_t first = callback(part, init, 1).cast<int64_t>();
    EXPECT_EQ(callback(part, init, 1).cast<int64_t>(), first);
    return first;
  });
  StructuralHash::Hash(Make<PluggableObj>(Array<Any>{Var("x"), Make<DagObj>(1)}));
  PluggableObj::hash = nullptr;
}

TEST(StructuralHooks, MayTearDownWhatIsBeingWalked) {
  List<Any> lists[2];
  Dict<Any, Any> dicts[2];
  auto fill = [&] {
    for (int i = 0; i < 2; ++i) {
      lists[i] = List<Any>{Node(1, {Node(Any(Make<PluggableObj>(1))), 2}), 3};
      dicts[i] = Dict<Any, Any>{{"k", Array<Any>{Make<PluggableObj>(1), Node(2)}}, {"l", 2}};
    }
  };
  auto tear_down = [&] {
    for (int i = 0; i < 2; ++i) {
      if (lists[i].size() != 0) {
        const auto* node = lists[i][0].as<NodeObj>();
        const_cast<NodeObj*>(node)->children = Array<Any>();
      }
      lists[i].clear();
      dicts[i].clear();
    }
  };
  PluggableObj::equal = Function::FromTyped([&](ObjectRef, ObjectRef, Function) {
    tear_down();
    return true;
  });
  PluggableObj::hash = Function::FromTyped([&](ObjectRef, int64_t init, Function) {
    tear_down();
    return init;
  });
  fill();
  EXPECT_TRUE(StructuralEqual::Equal(lists[0], lists[1]));
  fill();
  EXPECT_FALSE(StructuralEqual::Equal(dicts[0], dicts[1]));
  fill();
  EXPECT_TRUE(StructuralEqual::GetFirstMismatch(dicts[0], dicts[1]).has_value());
  fill();
  StructuralHash::Hash(lists[0]);
  fill();
  StructuralHash::Hash(dicts[0]);
  PluggableObj::equal = PluggableObj::hash = nullptr;
}

TEST(StructuralHooks, BadKindsAndLateCallsAreErrors) {
  Function kept;
  PluggableObj::equal = Function::FromTyped([&](ObjectRef lhs, ObjectRef rhs, Function callback) {
    kept = callback;
    return callback(1, 1, 7, "x").cast<bool>();
  });
  std::string error =
      ErrorText([] { StructuralEqual::Equal(Make<PluggableObj>(1), Make<PluggableObj>(1)); });
  EXPECT_TRUE(Contains(error, "ValueError") && Contains(error, "got 7")) << error;
  error = ErrorText([&] { kept(1, 1, 0, "x"); });
  EXPECT_TRUE(Contains(error, "RuntimeError")) << error;
  PluggableObj::equal = nullptr;
}

// ---- paths ---------------------------------------------------------------------------------

TEST(StructuralMismatch, PathsLeadToTheFirstDifference) {
  using M = Map<Any, Any>;
  EXPECT_EQ(Mismatch(1, 1), "equal");
  EXPECT_EQ(Mismatch(1, 2), "<root> | <root>");
  EXPECT_EQ(Mismatch(M{}, Dict<Any, Any>{}), "<root> | <root>");
  EXPECT_EQ(Mismatch(Array<Any>{1, 2, 3}, Array<Any>{1, 5}), "<root>[1] | <root>[1]");
  EXPECT_EQ(Mismatch(Array<Any>{1, 2, 3}, Array<Any>{1, 2}), "<root>[2] | <root>[<missing:2>]");
  EXPECT_EQ(Mismatch(Array<Any>{1}, Array<Any>{1, 2, 3}), "<root>[<missing:1>] | <root>[1]");
  EXPECT_EQ(Mismatch(M{{"a", 1}, {"b", 2}}, M{{"a", 1}}),
            "<root>[\"b\"] | <root>[<missing:\"b\">]");
  EXPECT_EQ(Mismatch(M{{"a", 1}}, M{{"a", 1}, {"b", 2}}),
            "<root>[<missing:\"b\">] | <root>[\"b\"]");
  EXPECT_EQ(Mismatch(M{{"a", 1}, {"b", 2}}, M{{"a", 1}, {"c", 2}}),
            "<root>[\"b\"] | <root>[<missing:\"b\">]");
  EXPECT_EQ(Mismatch(M{{"a", 1}}, M{{"a", 3}, {"b", 2}}), "<root>[\"a\"] | <root>[\"a\"]");
  EXPECT_EQ(Mismatch(Node(1, {M{{"k", Array<Any>{1, Node(2)}}}}),
                     Node(1, {M{{"k", Array<Any>{1, Node(3)}}}})),
            "<root>.children[0][\"k\"][1].value | <root>.children[0][\"k\"][1].value");
  EXPECT_EQ(Mismatch(Shape{1, 2}, Shape{1, 3}), "<root> | <root>");
}

TEST(StructuralMismatch, MapKeysAreTranslated) {
  Var x("x"), y("y");
  using M = Map<Any, Any>;
  EXPECT_TRUE(Equal(Array<Any>{x, M{{x, 1}}}, Array<Any>{y, M{{y, 1}}}, true));
  auto paths =
      StructuralEqual::GetFirstMismatch(Array<Any>{x, M{{x, 1}}}, Array<Any>{y, M{{y, 2}}}, true);
  ASSERT_TRUE(paths.has_value());
  Array<refl::AccessStep> lhs = paths.value().get<0>()->ToSteps();
  Array<refl::AccessStep> rhs = paths.value().get<1>()->ToSteps();
  ASSERT_EQ(lhs.size(), 2U);
  EXPECT_TRUE(lhs[1]->key.same_as(x));
  EXPECT_TRUE(rhs[1]->key.same_as(y));

  paths = StructuralEqual::GetFirstMismatch(Array<Any>{x, M{}}, Array<Any>{y, M{{y, 1}}}, true);
  ASSERT_TRUE(paths.has_value());
  lhs = paths.value().get<0>()->ToSteps();
  EXPECT_EQ(lhs[1]->kind, refl::AccessKind::kMapItemMissing);
  EXPECT_TRUE(lhs[1]->key.same_as(x));
}

// ---- size, depth, cycles -------------------------------------------------------------------

TEST(StructuralDepth, LongChains) {
  constexpr int kDepth = 100000;
  auto arrays = [] {
    Any value = 1;
    for (int i = 0; i < kDepth; ++i) value = Array<Any>{value};
    return value;
  };
  auto nodes = [](int leaf) {
    Any value = leaf;
    for (int i = 0; i < kDepth; ++i) value = Node(value);
    return value;
  };
  Any a = arrays(), b = arrays();
  EXPECT_TRUE(Equal(a, b));
  Any c = nodes(1), d = nodes(1), e = nodes(2);
  EXPECT_TRUE(Equal(c, d));
  EXPECT_FALSE(StructuralEqual::Equal(c, e));
  auto paths = StructuralEqual::GetFirstMismatch(c, e);
  ASSERT_TRUE(paths.has_value());
  EXPECT_EQ(paths.value().get<0>()->depth, kDepth);
}

TEST(StructuralDepth, SharingDoesNotMultiplyTheWork) {
  auto diamond = [] {
    Any value = Node(1);
    for (int i = 0; i < 60; ++i) value = Node(i, {value, value});
    return value;
  };
  EXPECT_TRUE(Equal(diamond(), diamond()));
}

TEST(StructuralDepth, CyclesAreErrors) {
  auto cyclic_list = [](int length) {
    List<Any> first{0}, list = first;
    for (int i = 1; i < length; ++i) {
      List<Any> next{i};
      list.push_back(next);
      list = next;
    }
    list.push_back(first);
    return first;
  };
  List<Any> a = cyclic_list(1), b = cyclic_list(1), c = cyclic_list(3000);
  std::string error = ErrorText([&] { StructuralHash::Hash(a); });
  EXPECT_TRUE(Contains(error, "ValueError") && Contains(error, "contains itself")) << error;
  error = ErrorText([&] { StructuralEqual::Equal(a, b); });
  EXPECT_TRUE(Contains(error, "ValueError") && Contains(error, "themselves")) << error;
  error = ErrorText([&] { StructuralHash::Hash(c); });
  EXPECT_TRUE(Contains(error, "ValueError")) << error;
  EXPECT_FALSE(StructuralEqual::Equal(a, List<Any>{0, List<Any>{0}}));
  for (List<Any> list : {a, b, c}) list.clear();

  Node node(1);
  const_cast<NodeObj*>(node.get())->children.push_back(node);
  error = ErrorText([&] { StructuralHash::Hash(node); });
  EXPECT_TRUE(Contains(error, "ValueError")) << error;
  const_cast<NodeObj*>(node.get())->children.clear();

  // Copy-on-write keeps an array from containing itself.
  Array<Any> array;
  array.push_back(array);
  EXPECT_TRUE(Equal(array, Array<Any>{Array<Any>()}));
}

// ---- keys and globals ----------------------------------------------------------------------

TEST(StructuralKey, FindsEntriesByStructure) {
  StructuralKey a(Array<Any>{1, "x"}), b(Array<Any>{1, "x"}), c(Array<Any>{2});
  EXPECT_TRUE(a == a);
  EXPECT_TRUE(a == b);
  EXPECT_TRUE(a != c);
  EXPECT_EQ(static_cast<uint64_t>(a->hash_i64), StructuralHash::Hash(a->key));
  EXPECT_EQ(std::hash<StructuralKey>()(a), StructuralHash::Hash(a->key));

  Map<StructuralKey, int> map{{a, 1}, {b, 2}, {c, 3}};
  EXPECT_EQ(map.size(), 2U);
  EXPECT_EQ(map[StructuralKey(Array<Any>{1, "x"})], 2);
  Dict<Any, Any> dict;
  for (int i = 0; i < 20; ++i) dict.Set(StructuralKey(Array<Any>{i % 10}), i);
  EXPECT_EQ(dict.size(), 10U);
  EXPECT_EQ(dict.at(StructuralKey(Array<Any>{3})).cast<int>(), 13);
  std::unordered_map<StructuralKey, int> std_map{{a, 1}};
  EXPECT_EQ(std_map.count(b), 1U);
}

TEST(StructuralKey, DefaultConstructedHasNoHash) {
  StructuralKeyObj on_stack;
  EXPECT_EQ(on_stack.hash_i64, 0);
  EXPECT_EQ(on_stack.key, nullptr);
}

TEST(StructuralKey, ComparesTensorContent) {
  StructuralKey a(MakeTensor({1, 2}, 1)), b(MakeTensor({1, 2}, 1)), c(MakeTensor({1, 3}, 1));
  EXPECT_TRUE(a == b);
  EXPECT_FALSE(a == c);
}

TEST(StructuralGlobals, AreRegistered) {
  Function equal = Function::GetGlobalRequired("ffi.StructuralEqual");
  Function hash = Function::GetGlobalRequired("ffi.StructuralHash");
  Function mismatch = Function::GetGlobalRequired("ffi.GetFirstStructuralMismatch");
  Function make_key = Function::GetGlobalRequired("ffi.StructuralKey");
  Function equal_keys = Function::GetGlobalRequired("ffi.StructuralKeyEqual");
  EXPECT_TRUE(equal(Array<Any>{1}, Array<Any>{1}, false, false).cast<bool>());
  EXPECT_EQ(static_cast<uint64_t>(hash(1.5, false, false).cast<int64_t>()), 0x3ff800009e377a7aU);
  EXPECT_EQ(mismatch(1, 1, false, false), nullptr);
  EXPECT_EQ((mismatch(1, 2, false, false).cast<Tuple<refl::AccessPath, refl::AccessPath>>())
                .get<0>()
                ->depth,
            0);
  EXPECT_TRUE(equal_keys(make_key(Shape{1}), make_key(Shape{1})).cast<bool>());
  EXPECT_FALSE(equal_keys(make_key(Shape{1}), make_key(Shape{2})).cast<bool>());
  std::string error = ErrorText([&] { equal_keys(1, make_key(1)); });
  EXPECT_TRUE(Contains(error, "InternalError")) << error;
}

TEST(StructuralGlobals, FunctorsFitUnorderedMap) {
  std::unordered_map<Any, int, StructuralHash, StructuralEqual> map;
  map[Array<Any>{1, 2}] = 3;
  map[Array<Any>{1, 2}] = 4;
  EXPECT_EQ(map.size(), 1U);
}

}  // namespace
