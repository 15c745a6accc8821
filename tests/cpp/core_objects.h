// SPDX-License-Identifier: Apache-2.0
//
// Object classes the tests of the core headers share, one for each place the object header can be
// in:
//
//   Box      at the start of the class                  (final, counts its live instances)
//   Number   behind 32 bytes of another base            (Int in its one child slot, Float outside
//   it) Animal   behind a vtable pointer Counter  at the start, mutable
#ifndef TETHER_TESTS_CORE_OBJECTS_H_
#define TETHER_TESTS_CORE_OBJECTS_H_

#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace core_test {

using namespace tvm::ffi;  // NOLINT: only test sources include this

class BoxObj : public Object {
 public:
  int64_t value;

  explicit BoxObj(int64_t value = 0) : value(value) { ++alive; }
  BoxObj(const BoxObj& other) : Object(other), value(other.value) { ++alive; }
  ~BoxObj() { --alive; }

  static inline std::atomic<int> alive{0};

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("core_test.Box", BoxObj, Object);
};

class Box : public ObjectRef {
 public:
  explicit Box(int64_t value) { data_ = make_object<BoxObj>(value); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Box, ObjectRef, BoxObj);
};

// The same object behind a reference that is never null.
class SolidBox : public ObjectRef {
 public:
  explicit SolidBox(int64_t value) { data_ = make_object<BoxObj>(value); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(SolidBox, ObjectRef, BoxObj);
};

struct Front {
  uint64_t front[4] = {0x1111111111111111, 0x2222222222222222, 0x3333333333333333,
                       0x4444444444444444};
};

class NumberObj : public Front, public Object {
 public:
  static constexpr int _type_child_slots = 1;
  TVM_FFI_DECLARE_OBJECT_INFO("core_test.Number", NumberObj, Object);
};

class IntObj : public NumberObj {
 public:
  int64_t value;
  explicit IntObj(int64_t value = 0) : value(value) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("core_test.Int", IntObj, NumberObj);
};

class FloatObj : public NumberObj {
 public:
  double value;
  explicit FloatObj(double value = 0) : value(value) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("core_test.Float", FloatObj, NumberObj);
};

class Number : public ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Number, ObjectRef, NumberObj);
};

class Int : public Number {
 public:
  explicit Int(int64_t value) : Number(UnsafeInit{}) { data_ = make_object<IntObj>(value); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Int, Number, IntObj);
};

class Float : public Number {
 public:
  explicit Float(double value) : Number(UnsafeInit{}) { data_ = make_object<FloatObj>(value); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Float, Number, FloatObj);
};

// Objects need no virtual destructor: the deleter knows the exact class.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wnon-virtual-dtor"
#pragma clang diagnostic ignored "-Wdelete-non-abstract-non-virtual-dtor"
#endif
class AnimalObj : public Object {
 public:
  virtual std::string Sound() const { return "..."; }
  static constexpr uint32_t _type_child_slots = 2;
  TVM_FFI_DECLARE_OBJECT_INFO("core_test.Animal", AnimalObj, Object);
};

class DogObj : public AnimalObj {
 public:
  std::string name;
  explicit DogObj(std::string name) : name(std::move(name)) {}
  std::string Sound() const override { return name + " barks"; }
  static constexpr uint32_t _type_child_slots = 0;
  TVM_FFI_DECLARE_OBJECT_INFO("core_test.Dog", DogObj, AnimalObj);
};
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

class CounterObj : public Object {
 public:
  int64_t count = 0;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("core_test.Counter", CounterObj, Object);
};

class Counter : public ObjectRef {
 public:
  static Counter Make() { return Counter(make_object<CounterObj>()); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Counter, ObjectRef, CounterObj);
};

inline TVMFFIObject* HeaderOf(const Object* object) {
  return details::ObjectUnsafe::GetHeader(object);
}

}  // namespace core_test

#endif  // TETHER_TESTS_CORE_OBJECTS_H_
