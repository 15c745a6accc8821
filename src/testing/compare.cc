// SPDX-License-Identifier: Apache-2.0
//
// Object types for recursive comparison and hashing: fields left out of either, and hooks that
// replace the field walk.
#include <tvm/ffi/function.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <utility>

namespace tvm {
namespace ffi {
namespace tether_testing {

namespace refl = reflection;

class TestCompareObj : public Object {
 public:
  int64_t key = 0;
  String name;
  int64_t ignored_field = 0;

  TestCompareObj() = default;
  TestCompareObj(int64_t key, String name, int64_t ignored_field)
      : key(key), name(std::move(name)), ignored_field(ignored_field) {}

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestCompare", TestCompareObj, Object);
};

class TestHashObj : public Object {
 public:
  int64_t key = 0;
  String name;
  int64_t hash_ignored = 0;

  TestHashObj() = default;
  TestHashObj(int64_t key, String name, int64_t hash_ignored)
      : key(key), name(std::move(name)), hash_ignored(hash_ignored) {}

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestHash", TestHashObj, Object);
};

// The three classes with hooks have the same two fields.
class KeyAndLabel : public Object {
 public:
  int64_t key = 0;
  String label;

  KeyAndLabel() = default;
  KeyAndLabel(int64_t key, String label) : key(key), label(std::move(label)) {}
};

class TestCustomHashObj : public KeyAndLabel {
 public:
  using KeyAndLabel::KeyAndLabel;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestCustomHash", TestCustomHashObj, Object);
};

class TestCustomCompareObj : public KeyAndLabel {
 public:
  using KeyAndLabel::KeyAndLabel;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestCustomCompare", TestCustomCompareObj, Object);
};

class TestEqWithoutHashObj : public KeyAndLabel {
 public:
  using KeyAndLabel::KeyAndLabel;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.TestEqWithoutHash", TestEqWithoutHashObj, Object);
};

template <typename Class>
void RegisterKeyAndLabel() {
  refl::ObjectDef<Class>()
      .def(refl::init<int64_t, String>())
      .def_ro("key", &Class::key)
      .def_ro("label", &Class::label);
}

template <typename Class>
int64_t HashByKey(const Class* self, Function fn_hash) {
  return fn_hash(self->key).template cast<int64_t>();
}

template <typename Class>
bool EqualByKey(const Class* lhs, const Class* rhs, Function fn_eq) {
  return fn_eq(lhs->key, rhs->key).template cast<bool>();
}

template <typename Class>
int32_t CompareByKey(const Class* lhs, const Class* rhs, Function fn_compare) {
  return fn_compare(lhs->key, rhs->key).template cast<int32_t>();
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<TestCompareObj>()
      .def(refl::init<int64_t, String, int64_t>())
      .def_ro("key", &TestCompareObj::key)
      .def_ro("name", &TestCompareObj::name)
      .def_ro("ignored_field", &TestCompareObj::ignored_field, refl::compare(false));
  refl::ObjectDef<TestHashObj>()
      .def(refl::init<int64_t, String, int64_t>())
      .def_ro("key", &TestHashObj::key)
      .def_ro("name", &TestHashObj::name)
      .def_ro("hash_ignored", &TestHashObj::hash_ignored, refl::hash(false));

  RegisterKeyAndLabel<TestCustomHashObj>();
  refl::TypeAttrDef<TestCustomHashObj>().def(refl::type_attr::kHash, HashByKey<TestCustomHashObj>);

  RegisterKeyAndLabel<TestCustomCompareObj>();
  refl::TypeAttrDef<TestCustomCompareObj>()
      .def(refl::type_attr::kHash, HashByKey<TestCustomCompareObj>)
      .def(refl::type_attr::kEq, EqualByKey<TestCustomCompareObj>)
      .def(refl::type_attr::kCompare, CompareByKey<TestCustomCompareObj>);

  RegisterKeyAndLabel<TestEqWithoutHashObj>();
  refl::TypeAttrDef<TestEqWithoutHashObj>().def(refl::type_attr::kEq,
                                                EqualByKey<TestEqWithoutHashObj>);
}

}  // namespace tether_testing
}  // namespace ffi
}  // namespace tvm
