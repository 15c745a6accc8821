// SPDX-License-Identifier: Apache-2.0
//
// Classes that every binary of the old-binary tests compiles from the same source: the driver
// against our headers, each client against the headers of one release. They have one type key and
// one mangled name on purpose, so the dynamic linker may let one binary run another's copy of their
// inline code.
#ifndef TETHER_TESTS_SKEW_COMMON_H_
#define TETHER_TESTS_SKEW_COMMON_H_

#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/tvm_ffi.h>

#include <cstdlib>
#include <utility>

namespace skew {

class PointObj : public tvm::ffi::Object {
 public:
  int64_t x = 0;
  tvm::ffi::String label;
  tvm::ffi::Any extra;

  PointObj() = default;
  PointObj(int64_t x, tvm::ffi::String label, tvm::ffi::Any extra)
      : x(x), label(std::move(label)), extra(std::move(extra)) {}

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("skew.Point", PointObj, tvm::ffi::Object);
};

class Point : public tvm::ffi::ObjectRef {
 public:
  Point(int64_t x, tvm::ffi::String label, tvm::ffi::Any extra) {
    data_ = tvm::ffi::make_object<PointObj>(x, std::move(label), std::move(extra));
  }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Point, tvm::ffi::ObjectRef, PointObj);
};

class Point3Obj : public PointObj {
 public:
  int64_t z = 0;

  Point3Obj(int64_t x, int64_t z) : PointObj(x, "point3", nullptr), z(z) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("skew.Point3", Point3Obj, PointObj);
};

class Point3 : public Point {
 public:
  Point3(int64_t x, int64_t z) : Point(tvm::ffi::make_object<Point3Obj>(x, z)) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Point3, Point, Point3Obj);
};

// An object whose header is not at the start of its block: one word of data base in front.
struct Prologue {
  int64_t word = 0x5eed;
};

class ShiftedObj : public Prologue, public tvm::ffi::Object {
 public:
  int64_t value = 0;

  explicit ShiftedObj(int64_t value) : value(value) {}
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("skew.Shifted", ShiftedObj, tvm::ffi::Object);
};

class Shifted : public tvm::ffi::ObjectRef {
 public:
  explicit Shifted(int64_t value) { data_ = tvm::ffi::make_object<ShiftedObj>(value); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Shifted, tvm::ffi::ObjectRef, ShiftedObj);
};

// A callable with external linkage: its function object has the same name in every binary.
struct Adder {
  int64_t step;
  void operator()(tvm::ffi::PackedArgs args, tvm::ffi::Any* result) const {
    *result = args[0].cast<int64_t>() + step;
  }
};

struct CpuAlloc {
  void AllocData(DLTensor* tensor) { tensor->data = std::malloc(tvm::ffi::GetDataSize(*tensor)); }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

// float32 tensor of the given length holding 0, 1, 2, ...
inline tvm::ffi::Tensor MakeRamp(int64_t length) {
  tvm::ffi::Tensor ramp = tvm::ffi::Tensor::FromNDAlloc(
      CpuAlloc(), tvm::ffi::Shape({length}), DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCPU, 0});
  for (int64_t i = 0; i < length; ++i) {
    static_cast<float*>(ramp.data_ptr())[i] = static_cast<float>(i);
  }
  return ramp;
}

}  // namespace skew

#endif  // TETHER_TESTS_SKEW_COMMON_H_
