// SPDX-License-Identifier: Apache-2.0
// Classes with methods, static methods and constructors, with and without named parameters.
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/tvm_ffi.h>

#include <string>

namespace {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

class ShapeObj : public ffi::Object {
 public:
  ffi::String label = "shape";
  int64_t count = 0;

  int64_t Count() const { return count; }
  int64_t Add(int64_t n, int64_t times) {
    count += n * times;
    return count;
  }
  ffi::Any Self() const { return ffi::GetRef<ffi::ObjectRef>(this); }
  void Fail(ffi::String text) const { TVM_FFI_THROW(ValueError) << std::string(text); }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("methods_client.Shape", ShapeObj, ffi::Object);
};

class CircleObj : public ShapeObj {
 public:
  double radius = 1.0;

  CircleObj() = default;
  CircleObj(double radius, ffi::String name) : radius(radius) { label = name; }
  double Area(double scale) const { return 3.0 * radius * radius * scale; }

  TVM_FFI_DECLARE_OBJECT_INFO("methods_client.Circle", CircleObj, ShapeObj);
};

// Its constructor takes fewer parameters than it has fields, and they have no names.
class BareObj : public ffi::Object {
 public:
  int64_t a = 0;
  int64_t b = 0;

  BareObj() = default;
  explicit BareObj(int64_t sum) : a(sum), b(sum) {}

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("methods_client.Bare", BareObj, ffi::Object);
};

// Remembers the stream that was current when it was made.
class PlacedObj : public ffi::Object {
 public:
  int64_t stream = 0;

  PlacedObj() = default;
  explicit PlacedObj(ffi::Tensor tensor) {
    DLDevice device = tensor.device();
    stream = reinterpret_cast<int64_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  }

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("methods_client.Placed", PlacedObj, ffi::Object);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<PlacedObj>().def(refl::init<ffi::Tensor>()).def_ro("stream", &PlacedObj::stream);
  refl::Metadata keeps_gil{{"release_gil", false}};
  refl::Metadata takes_class{{"class_method", true}};
  refl::ObjectDef<ShapeObj>()
      .def(refl::init<>())
      .def_rw("label", &ShapeObj::label)
      .def_rw("count", &ShapeObj::count, "How many.")
      .def("get_count", &ShapeObj::Count, "Return the count.", keeps_gil)
      .def("add", &ShapeObj::Add, refl::arg("n"), refl::arg("times", 1), "Add `n` many times.")
      .def("add_to", &ShapeObj::Add, refl::arg("self"), refl::arg("times", 1))
      .def("me", &ShapeObj::Self)
      .def("fail", &ShapeObj::Fail)
      .def("kind", [](const ShapeObj*) { return ffi::String("any shape"); })
      .def_static(
          "twice", [](int64_t n) { return 2 * n; }, refl::arg("n"), "Return twice `n`.")
      .def_static("family", [] { return ffi::String("shapes"); })
      .def_static(
          "many",
          [](ffi::Function cls, int64_t n) {
            ffi::List<ffi::Any> made;
            for (int64_t i = 0; i < n; ++i) made.push_back(cls());
            return made;
          },
          refl::arg("cls"), refl::arg("n", 2), "Make `n` of them.", takes_class);
  refl::ObjectDef<CircleObj>()
      .def(refl::init<double, ffi::String>(), refl::arg("radius"), refl::arg("name", "circle"))
      .def_rw("radius", &CircleObj::radius)
      .def("area", &CircleObj::Area, refl::arg("scale", 1.0))
      .def("kind", [](const CircleObj*) { return ffi::String("a circle"); })
      .def_static("family", [] { return ffi::String("round shapes"); });
  refl::ObjectDef<BareObj>()
      .def(refl::init<int64_t>())
      .def_ro("a", &BareObj::a)
      .def_ro("b", &BareObj::b);
  refl::GlobalDef()
      .def(
          "methods_client.join",
          [](ffi::String a, ffi::String b, bool upper, ffi::Optional<int64_t> n) {
            std::string text = std::string(a) + std::string(b);
            return ffi::String(upper ? text + "!" : n.has_value() ? text + "?" : text);
          },
          "Join two texts.", refl::arg("a"), refl::arg("b", "x"), refl::arg("upper", false),
          refl::arg("n", nullptr))
      .def("methods_client.plain", [](int64_t a, double b) { return static_cast<double>(a) + b; })
      .def_packed("methods_client.packed", [](ffi::PackedArgs args, ffi::Any* result) {
        *result = static_cast<int64_t>(args.size());
      });
}

}  // namespace
