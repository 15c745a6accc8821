// SPDX-License-Identifier: Apache-2.0
// Operators registered as methods: built by test_operators.py.
#include <tvm/ffi/tvm_ffi.h>

#include <cmath>

namespace {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

// A class with every kind of operator.
class VecObj : public ffi::Object {
 public:
  double x, y;
  VecObj(double x, double y) : x(x), y(y) {}
  static constexpr bool _type_mutable = true;
  static constexpr int32_t _type_child_slots = 4;
  TVM_FFI_DECLARE_OBJECT_INFO("test_operators.Vec", VecObj, ffi::Object);
};

class Vec : public ffi::ObjectRef {
 public:
  Vec(double x, double y) { data_ = ffi::make_object<VecObj>(x, y); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Vec, ffi::ObjectRef, VecObj);
};

// A child that overrides one of them.
class LoudObj : public VecObj {
 public:
  LoudObj(double x, double y) : VecObj(x, y) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_operators.Loud", LoudObj, VecObj);
};

// __eq__ alone.
class OnlyEqObj : public ffi::Object {
 public:
  int64_t value;
  explicit OnlyEqObj(int64_t value) : value(value) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_operators.OnlyEq", OnlyEqObj, ffi::Object);
};

// Names that the metaclass of wrappers has as well.
class NamesObj : public ffi::Object {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_operators.Names", NamesObj, ffi::Object);
};

ffi::String Text(const VecObj* v) {
  return "<" + std::to_string(static_cast<int>(v->x)) + ", " +
         std::to_string(static_cast<int>(v->y)) + ">";
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<VecObj>()
      .def(refl::init<double, double>())
      .def_rw("x", &VecObj::x)
      .def_rw("y", &VecObj::y)
      .def("__eq__", [](const VecObj* a, Vec b) { return a->x == b->x && a->y == b->y; })
      .def("__lt__", [](const VecObj* a, Vec b) { return a->x < b->x; })
      .def("__hash__", [](const VecObj* a) { return static_cast<int64_t>(a->x * 31 + a->y); })
      .def("__repr__", Text)
      .def("__str__", [](const VecObj* a) { return ffi::String("vec ") + Text(a); })
      .def("__call__", [](const VecObj* a, double k) { return Vec(a->x * k, a->y * k); })
      .def("__add__", [](const VecObj* a, Vec b) { return Vec(a->x + b->x, a->y + b->y); })
      .def("__neg__", [](const VecObj* a) { return Vec(-a->x, -a->y); })
      .def("__bool__", [](const VecObj* a) { return a->x != 0 || a->y != 0; })
      .def("__abs__", [](const VecObj* a) { return std::hypot(a->x, a->y); })
      .def("__len__", [](const VecObj*) { return 2; })
      .def("__contains__", [](const VecObj* a, double v) { return a->x == v || a->y == v; })
      .def("__getitem__", [](const VecObj* a, int64_t i) {
        if (i != 0 && i != 1) TVM_FFI_THROW(IndexError) << "a Vec has two elements";
        return i == 0 ? a->x : a->y;
      });
  refl::ObjectDef<LoudObj>()
      .def(refl::init<double, double>())
      .def("__repr__", [](const LoudObj* a) { return Text(a) + "!"; });
  refl::ObjectDef<OnlyEqObj>()
      .def(refl::init<int64_t>())
      .def("__eq__", [](const OnlyEqObj* a, int64_t b) { return a->value == b; });
  refl::GlobalDef().def("test_operators.make", [](double x, double y) { return Vec(x, y); });
  refl::ObjectDef<NamesObj>()
      .def(refl::init<>())
      .def("register", [](const NamesObj*) { return 1; })
      .def("mro", [](const NamesObj*) { return 2; });
}

}  // namespace
