// SPDX-License-Identifier: Apache-2.0
// A library that another process must load before it can read a pickle.
#include <tvm/ffi/tvm_ffi.h>

namespace {

namespace ffi = tvm::ffi;

class ThingObj : public ffi::Object {
 public:
  int64_t x = 0;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("travel.Thing", ThingObj, ffi::Object);
};

class Thing : public ffi::ObjectRef {
 public:
  explicit Thing(int64_t x) {
    auto made = ffi::make_object<ThingObj>();
    made->x = x;
    data_ = std::move(made);
  }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Thing, ffi::ObjectRef, ThingObj);
};

int64_t DoubleIt(int64_t x) { return 2 * x; }

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(double_it, DoubleIt);

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::ObjectDef<ThingObj>().def_rw("x", &ThingObj::x);
  refl::GlobalDef()
      .def("travel.make", [](int64_t x) { return Thing(x); })
      .def("travel.fail", [](ffi::String what) { TVM_FFI_THROW(ValueError) << what; });
}
