// SPDX-License-Identifier: Apache-2.0
//
// Object types whose generated constructors mix required, defaulted, keyword-only and hidden
// fields. The comment at each class is the signature a frontend shows.
#include <tvm/ffi/object.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

namespace tvm {
namespace ffi {
namespace tether_testing {

namespace refl = reflection;

// (required_field)
class TestCxxInitSubsetObj : public Object {
 public:
  int64_t required_field = 0;
  int64_t optional_field = 0;
  String note;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestCxxInitSubset", TestCxxInitSubsetObj, Object);
};

// (*, x, y, z, w=100)
class TestCxxKwOnlyObj : public Object {
 public:
  int64_t x = 0;
  int64_t y = 0;
  int64_t z = 0;
  int64_t w = 0;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestCxxKwOnly", TestCxxKwOnlyObj, Object);
};

// (a, d=99, *, c)
class TestCxxAutoInitObj : public Object {
 public:
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
  int64_t d = 0;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestCxxAutoInit", TestCxxAutoInitObj, Object);
};

// (x, y)
class TestCxxAutoInitSimpleObj : public Object {
 public:
  int64_t x = 0;
  int64_t y = 0;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestCxxAutoInitSimple", TestCxxAutoInitSimpleObj, Object);
};

// ()
class TestCxxAutoInitAllInitOffObj : public Object {
 public:
  int64_t x = 0;
  int64_t y = 0;
  int64_t z = 1234;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestCxxAutoInitAllInitOff", TestCxxAutoInitAllInitOffObj,
                              Object);
};

// (p_required, p_default=11, *, k_required, k_default=22)
class TestCxxAutoInitKwOnlyDefaultsObj : public Object {
 public:
  int64_t p_required = 0;
  int64_t p_default = 0;
  int64_t k_required = 0;
  int64_t k_default = 0;
  int64_t hidden = 0;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestCxxAutoInitKwOnlyDefaults",
                              TestCxxAutoInitKwOnlyDefaultsObj, Object);
};

// (parent_required, parent_default=5)
class TestCxxAutoInitParentObj : public Object {
 public:
  int64_t parent_required = 0;
  int64_t parent_default = 0;

  static constexpr bool _type_mutable = true;
  static constexpr uint32_t _type_child_slots = 1;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestCxxAutoInitParent", TestCxxAutoInitParentObj, Object);
};

// (parent_required, child_required, parent_default=5, *, child_kw_only)
class TestCxxAutoInitChildObj : public TestCxxAutoInitParentObj {
 public:
  int64_t child_required = 0;
  int64_t child_kw_only = 0;

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestCxxAutoInitChild", TestCxxAutoInitChildObj,
                                    TestCxxAutoInitParentObj);
};

// no constructor
class TestCxxNoAutoInitObj : public Object {
 public:
  int64_t x = 0;
  int64_t y = 0;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.TestCxxNoAutoInit", TestCxxNoAutoInitObj, Object);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<TestCxxInitSubsetObj>()
      .def_rw("required_field", &TestCxxInitSubsetObj::required_field)
      .def_rw("optional_field", &TestCxxInitSubsetObj::optional_field, refl::init(false),
              refl::default_value(-1))
      .def_rw("note", &TestCxxInitSubsetObj::note, refl::default_value(String("default")),
              refl::init(false));
  refl::ObjectDef<TestCxxKwOnlyObj>()
      .def_rw("x", &TestCxxKwOnlyObj::x, refl::kw_only(true))
      .def_rw("y", &TestCxxKwOnlyObj::y, refl::kw_only(true))
      .def_rw("z", &TestCxxKwOnlyObj::z, refl::kw_only(true))
      .def_rw("w", &TestCxxKwOnlyObj::w, refl::kw_only(true), refl::default_value(100));
  refl::ObjectDef<TestCxxAutoInitObj>()
      .def_rw("a", &TestCxxAutoInitObj::a)
      .def_rw("b", &TestCxxAutoInitObj::b, refl::init(false), refl::default_value(42))
      .def_rw("c", &TestCxxAutoInitObj::c, refl::kw_only(true))
      .def_rw("d", &TestCxxAutoInitObj::d, refl::default_value(99));
  refl::ObjectDef<TestCxxAutoInitSimpleObj>()
      .def_rw("x", &TestCxxAutoInitSimpleObj::x)
      .def_rw("y", &TestCxxAutoInitSimpleObj::y);
  refl::ObjectDef<TestCxxAutoInitAllInitOffObj>()
      .def_rw("x", &TestCxxAutoInitAllInitOffObj::x, refl::init(false), refl::default_value(7))
      .def_rw("y", &TestCxxAutoInitAllInitOffObj::y, refl::init(false), refl::default_value(9))
      .def_rw("z", &TestCxxAutoInitAllInitOffObj::z, refl::init(false));
  refl::ObjectDef<TestCxxAutoInitKwOnlyDefaultsObj>()
      .def_rw("p_required", &TestCxxAutoInitKwOnlyDefaultsObj::p_required)
      .def_rw("p_default", &TestCxxAutoInitKwOnlyDefaultsObj::p_default, refl::default_value(11))
      .def_rw("k_required", &TestCxxAutoInitKwOnlyDefaultsObj::k_required, refl::kw_only(true))
      .def_rw("k_default", &TestCxxAutoInitKwOnlyDefaultsObj::k_default, refl::kw_only(true),
              refl::default_value(22))
      .def_rw("hidden", &TestCxxAutoInitKwOnlyDefaultsObj::hidden, refl::init(false),
              refl::default_value(33));
  refl::ObjectDef<TestCxxAutoInitParentObj>()
      .def_rw("parent_required", &TestCxxAutoInitParentObj::parent_required)
      .def_rw("parent_default", &TestCxxAutoInitParentObj::parent_default, refl::default_value(5));
  refl::ObjectDef<TestCxxAutoInitChildObj>()
      .def_rw("child_required", &TestCxxAutoInitChildObj::child_required)
      .def_rw("child_kw_only", &TestCxxAutoInitChildObj::child_kw_only, refl::kw_only(true));
  refl::ObjectDef<TestCxxNoAutoInitObj>(refl::init(false))
      .def_rw("x", &TestCxxNoAutoInitObj::x)
      .def_rw("y", &TestCxxNoAutoInitObj::y);
}

}  // namespace tether_testing
}  // namespace ffi
}  // namespace tvm
