// SPDX-License-Identifier: Apache-2.0
// A C++ library that does what it should not; test_cpp_client.py loads it and copies of it.
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/tvm_ffi.h>

#include <cstdlib>

namespace {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

// Does not convert to a value, nor from one.
struct Moody {
  bool in_a_mood = false;
};

class ThingObj : public ffi::Object {
 public:
  int64_t x = 1;
  Moody moody;
  ThingObj() = default;
  explicit ThingObj(int64_t value) : x(value) {
    if (value < 0) throw 42;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("cpp_client.Thing", ThingObj, ffi::Object);
};

}  // namespace

template <>
inline constexpr bool tvm::ffi::use_default_type_traits_v<Moody> = false;
template <>
struct tvm::ffi::TypeTraits<Moody> : public tvm::ffi::TypeTraitsBase {
  static void CopyToAnyView(const Moody&, TVMFFIAny*) { throw 42; }
  static void MoveToAny(Moody, TVMFFIAny*) { throw 42; }
  static bool CheckAnyStrict(const TVMFFIAny*) { return false; }
  static Moody CopyFromAnyViewAfterCheck(const TVMFFIAny*) { throw 42; }
  static std::optional<Moody> TryCastFromAnyView(const TVMFFIAny*) { throw 42; }
  static std::string TypeStr() { return "Moody"; }
  static std::string TypeSchema() { return R"({"type":"Any"})"; }
};

namespace {

TVM_FFI_STATIC_INIT_BLOCK() {
  if (std::getenv("CPP_CLIENT_THROWS_WHEN_LOADED") != nullptr) throw 42;
  refl::GlobalDef()
      .def("cpp_client.throw", [](int64_t) { throw 42; })
      .def("cpp_client.call", [](const ffi::Function& f) { return f(); })
      .def("cpp_client.say_dtype",
           [](DLTensor* tensor) { TVM_FFI_THROW(ValueError) << "no " << tensor->dtype; })
      .def("cpp_client.say", [](const ffi::Any& value) { TVM_FFI_THROW(ValueError) << value; });
  refl::ObjectDef<ThingObj>()
      .def(refl::init<int64_t>())
      .def_ro("x", &ThingObj::x)
      .def_ro("moody", &ThingObj::moody)
      .def("fail", [](const ThingObj*) { throw "text"; });
}

}  // namespace
