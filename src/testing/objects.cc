// SPDX-License-Identifier: Apache-2.0
//
// Object types that exercise fields, inheritance, copying and enums. A parent is registered before
// its children, because a generated constructor takes the inherited fields it finds.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/enum.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/reflection/enum_def.h>
#include <tvm/ffi/reflection/registry.h>

#include <utility>

namespace tvm {
namespace ffi {
namespace tether_testing {

namespace refl = reflection;

// ---- A class with an explicit constructor, and one without reflection
// --------------------------------

class TestIntPairObj : public Object {
 public:
  int64_t a = 0;
  int64_t b = 0;

  TestIntPairObj() = default;
  TestIntPairObj(int64_t a, int64_t b) : a(a), b(b) {}

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestIntPair", TestIntPairObj, Object);
};

class TestIntPair : public ObjectRef {
 public:
  int64_t Sum() const { return get()->a + get()->b; }

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TestIntPair, ObjectRef, TestIntPairObj);
};

class TestFrozenCxxObj : public Object {
 public:
  int64_t value = 0;
  String tag;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestFrozenCxx", TestFrozenCxxObj, Object);
};

// ---- Enums
// ----------------------------------------------------------------------------------------

class TestEnumVariantObj : public EnumObj {
 public:
  using EnumObj::EnumObj;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestEnumVariant", TestEnumVariantObj, EnumObj);
};

class TestEnumVariant : public Enum {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TestEnumVariant, Enum, TestEnumVariantObj);
};

class TestCxxIntEnumObj : public IntEnumObj {
 public:
  using IntEnumObj::IntEnumObj;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestCxxIntEnum", TestCxxIntEnumObj, IntEnumObj);
};

class TestCxxIntEnum : public IntEnum {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TestCxxIntEnum, IntEnum, TestCxxIntEnumObj);
};

class TestCxxStrEnumObj : public StrEnumObj {
 public:
  using StrEnumObj::StrEnumObj;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestCxxStrEnum", TestCxxStrEnumObj, StrEnumObj);
};

class TestCxxStrEnum : public StrEnum {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TestCxxStrEnum, StrEnum, TestCxxStrEnumObj);
};

class TestCxxEnumHolderObj : public Object {
 public:
  TestCxxIntEnum priority;
  TestCxxStrEnum opcode;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestCxxEnumHolder", TestCxxEnumHolderObj, Object);
};

void RegisterEnums() {
  refl::ObjectDef<TestEnumVariantObj>(refl::init(false)).def_convert<TestEnumVariant>();
  refl::EnumDef<TestEnumVariantObj>("Alpha").set_attr("code", 10);
  refl::EnumDef<TestEnumVariantObj>("Beta").set_attr("code", 20);
  refl::ObjectDef<TestCxxIntEnumObj>(refl::init(false)).def_convert<TestCxxIntEnum>();
  refl::ObjectDef<TestCxxStrEnumObj>(refl::init(false)).def_convert<TestCxxStrEnum>();
  refl::ObjectDef<TestCxxEnumHolderObj>()
      .def_rw("priority", &TestCxxEnumHolderObj::priority)
      .def_rw("opcode", &TestCxxEnumHolderObj::opcode);
}

// ---- Inheritance
// ----------------------------------------------------------------------------------

class TestObjectBase : public Object {
 public:
  int64_t v_i64 = 10;
  double v_f64 = 10.0;
  String v_str = "hello";

  int64_t AddI64(int64_t x) const { return v_i64 + x; }

  static constexpr bool _type_mutable = true;
  static constexpr uint32_t _type_child_slots = 1;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestObjectBase", TestObjectBase, Object);
};

class TestObjectDerived : public TestObjectBase {
 public:
  Map<Any, Any> v_map;
  Array<Any> v_array;

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestObjectDerived", TestObjectDerived, TestObjectBase);
};

class TestObjectPtrHolderObj : public Object {
 public:
  Arc<TestObjectBase> value;
  ObjectPtr<TestObjectBase> optional_value;

  explicit TestObjectPtrHolderObj(UnsafeInit tag) : value(tag) {}

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestObjectPtrHolder", TestObjectPtrHolderObj, Object);
};

class TestCxxClassBase : public Object {
 public:
  int64_t v_i64 = 0;
  int32_t v_i32 = 0;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestCxxClassBase", TestCxxClassBase, Object);
};

class TestCxxClassDerived : public TestCxxClassBase {
 public:
  double v_f64 = 0;
  float v_f32 = 0;

  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestCxxClassDerived", TestCxxClassDerived, TestCxxClassBase);
};

class TestCxxClassDerivedDerived : public TestCxxClassDerived {
 public:
  String v_str;
  bool v_bool = false;

  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestCxxClassDerivedDerived", TestCxxClassDerivedDerived,
                              TestCxxClassDerived);
};

void RegisterHierarchies() {
  refl::ObjectDef<TestObjectBase>()
      .def_rw("v_i64", &TestObjectBase::v_i64, refl::default_value(10), "i64 field")
      .def_ro("v_f64", &TestObjectBase::v_f64, refl::default_value(10.0))
      .def_rw("v_str", &TestObjectBase::v_str, refl::default_value(String("hello")))
      .def("add_i64", &TestObjectBase::AddI64, "add_i64 method");
  refl::ObjectDef<TestObjectDerived>()
      .def_rw("v_map", &TestObjectDerived::v_map)
      .def_rw("v_array", &TestObjectDerived::v_array);
  refl::ObjectDef<TestObjectPtrHolderObj>()
      .def_rw("value", &TestObjectPtrHolderObj::value)
      .def_rw("optional_value", &TestObjectPtrHolderObj::optional_value,
              refl::default_value(nullptr));
  refl::ObjectDef<TestCxxClassBase>()
      .def_rw("v_i64", &TestCxxClassBase::v_i64, refl::repr(false))
      .def_rw("v_i32", &TestCxxClassBase::v_i32, refl::repr(false));
  refl::ObjectDef<TestCxxClassDerived>()
      .def_rw("v_f64", &TestCxxClassDerived::v_f64)
      .def_rw("v_f32", &TestCxxClassDerived::v_f32, refl::default_value(8.0));
  refl::ObjectDef<TestCxxClassDerivedDerived>()
      .def_rw("v_str", &TestCxxClassDerivedDerived::v_str, refl::default_value(String("default")))
      .def_rw("v_bool", &TestCxxClassDerivedDerived::v_bool);
}

// ---- Copying, and types a frontend has no class for
// -----------------------------------------------------

class TestDeepCopyEdgesObj : public Object {
 public:
  Any v_any;
  ObjectRef v_obj;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestDeepCopyEdges", TestDeepCopyEdgesObj, Object);
};

class TestNonCopyableObj : public Object {
 public:
  int64_t value;

  explicit TestNonCopyableObj(int64_t value) : value(value) {}
  TestNonCopyableObj(const TestNonCopyableObj&) = delete;
  TestNonCopyableObj& operator=(const TestNonCopyableObj&) = delete;

  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestNonCopyable", TestNonCopyableObj, Object);
};

class TestUnregisteredBaseObject : public Object {
 public:
  int64_t v1;

  explicit TestUnregisteredBaseObject(int64_t v1) : v1(v1) {}
  int64_t GetV1PlusOne() const { return v1 + 1; }

  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestUnregisteredBaseObject", TestUnregisteredBaseObject,
                              Object);
};

class TestUnregisteredObject : public TestUnregisteredBaseObject {
 public:
  int64_t v2;

  TestUnregisteredObject(int64_t v1, int64_t v2) : TestUnregisteredBaseObject(v1), v2(v2) {}
  int64_t GetV2PlusTwo() const { return v2 + 2; }

  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestUnregisteredObject", TestUnregisteredObject,
                              TestUnregisteredBaseObject);
};

void RegisterEdgeCases() {
  refl::ObjectDef<TestDeepCopyEdgesObj>()
      .def_rw("v_any", &TestDeepCopyEdgesObj::v_any)
      .def_rw("v_obj", &TestDeepCopyEdgesObj::v_obj);
  refl::ObjectDef<TestNonCopyableObj>()
      .def(refl::init<int64_t>())
      .def_ro("value", &TestNonCopyableObj::value);
  refl::ObjectDef<TestUnregisteredBaseObject>()
      .def(refl::init<int64_t>(), "Constructor of TestUnregisteredBaseObject")
      .def_ro("v1", &TestUnregisteredBaseObject::v1)
      .def("get_v1_plus_one", &TestUnregisteredBaseObject::GetV1PlusOne,
           "Get (v1 + 1) from TestUnregisteredBaseObject");
  refl::ObjectDef<TestUnregisteredObject>()
      .def(refl::init<int64_t, int64_t>(), "Constructor of TestUnregisteredObject")
      .def_ro("v2", &TestUnregisteredObject::v2)
      .def("get_v2_plus_two", &TestUnregisteredObject::GetV2PlusTwo,
           "Get (v2 + 2) from TestUnregisteredObject");
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<TestIntPairObj>()
      .def(refl::init<int64_t, int64_t>())
      .def_ro("a", &TestIntPairObj::a, "Field `a`")
      .def_ro("b", &TestIntPairObj::b, "Field `b`")
      .def("sum", &TestIntPair::Sum, "Method to compute sum of a and b")
      .def_convert<TestIntPair>();
  TestFrozenCxxObj::_GetOrAllocRuntimeTypeIndex();
  RegisterEnums();
  RegisterHierarchies();
  RegisterEdgeCases();
  refl::GlobalDef()
      .def_method("testing.TestIntPairSum", &TestIntPair::Sum, "Get sum of the pair")
      .def("testing.make_unregistered_object",
           [] { return ObjectRef(make_object<TestUnregisteredObject>(41, 42)); })
      .def("testing.enum_variant_get",
           [](String name) { return EnumObj::_GetByStrIndex<TestEnumVariantObj>(name); });
}

}  // namespace tether_testing
}  // namespace ffi
}  // namespace tvm
