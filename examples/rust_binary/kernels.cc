// SPDX-License-Identifier: Apache-2.0
// A C++ library that knows nothing of Rust.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/tvm_ffi.h>

#include <cmath>
#include <string>

namespace ffi = tvm::ffi;

namespace {

struct PointObj : public ffi::Object {
  int64_t x;
  int64_t y;
  PointObj(int64_t x, int64_t y) : x(x), y(y) {}
  double norm() const { return std::sqrt(static_cast<double>(x * x + y * y)); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("rust_binary.Point", PointObj, ffi::Object);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  ffi::reflection::ObjectDef<PointObj>()
      .def_ro("x", &PointObj::x)
      .def_ro("y", &PointObj::y)
      .def("norm", &PointObj::norm);
}

void AddOne(ffi::TensorView x, ffi::TensorView y) {
  if (x.numel() != y.numel()) {
    TVM_FFI_THROW(ValueError) << "x has " << x.numel() << " elements and y has " << y.numel();
  }
  const float* from = static_cast<const float*>(x.data_ptr());
  float* to = static_cast<float*>(y.data_ptr());
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] + 1;
}

ffi::Array<ffi::String> Split(const ffi::String& text) {
  ffi::Array<ffi::String> words;
  std::string word;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text.data()[i] != ' ') {
      word += text.data()[i];
    } else if (!word.empty()) {
      words.push_back(word);
      word.clear();
    }
  }
  return words;
}

ffi::ObjectRef MakePoint(int64_t x, int64_t y) {
  return ffi::ObjectRef(ffi::make_object<PointObj>(x, y));
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(add_one, AddOne);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(split, Split);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(make_point, MakePoint);
