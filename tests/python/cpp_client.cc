// SPDX-License-Identifier: Apache-2.0
// A C++ library that does what it should not; test_cpp_client.py loads it and copies of it.
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/extra/stl.h>
#include <tvm/ffi/tvm_ffi.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

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

// Fields whose old values may run Python code when they die.
class FieldsObj : public ffi::Object {
 public:
  using Map = std::map<std::string, ffi::Any>;
  Map map;
  std::unordered_map<std::string, ffi::Any> hashed;
  std::optional<Map> maybe;
  std::pair<int64_t, Map> pair;
  std::vector<Map> maps;
  std::vector<ffi::Any> vector;
  std::function<ffi::Any(ffi::Any)> function;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("cpp_client.Fields", FieldsObj, ffi::Object);
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

void Fail() { TVM_FFI_THROW(ValueError) << "no"; }

// Raises errors in its destructor, and looks whether they are written into memory that is not
// theirs.
struct Unwilling {
  bool in_use = false;
  ~Unwilling() {
    std::vector<std::string> mine;
    for (size_t size = 64; size < 4096; size += 16)
      mine.insert(mine.end(), 8, std::string(size, 'A'));
    for (int i = 0; i < 3; ++i) {
      try {
        Fail();
      } catch (const ffi::Error& error) {
        if (error.message() != "no") std::_Exit(4);
      }
    }
    for (const std::string& text : mine) {
      if (text.find_first_not_of('A') != std::string::npos) std::_Exit(3);
    }
  }
};

// Of a static variable, which dies at the end of the process, and of one of a thread. Both are made
// before the first error of their thread, so they die after what belongs to it.
void FailInDestructors() {
  static Unwilling at_exit;
  at_exit.in_use = true;
  std::thread([] {
    thread_local Unwilling at_end;
    at_end.in_use = true;
    try {
      Fail();
    } catch (const ffi::Error&) {
    }
  }).join();
  Fail();
}

// A function as the headers of older releases compile it: it lets out what it does not catch.
int Escaping(void*, const TVMFFIAny* args, int32_t, TVMFFIAny*) {
  switch (args[0].v_int64) {
    case 0:
      throw 42;
    case 1:
      throw std::bad_alloc();
    case 2:
      throw std::length_error("too long");
    default:
      throw ffi::Error("ValueError", "no", "");
  }
}

ffi::Function MakeEscaping() {
  TVMFFIObjectHandle made = nullptr;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIFunctionCreate(nullptr, Escaping, nullptr, &made));
  return ffi::details::ObjectUnsafe::ObjectRefFromObjectPtr<ffi::Function>(
      ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::Object>(
          static_cast<TVMFFIObject*>(made)));
}

TVM_FFI_STATIC_INIT_BLOCK() {
  if (std::getenv("CPP_CLIENT_THROWS_WHEN_LOADED") != nullptr) throw 42;
  refl::GlobalDef()
      .def("cpp_client.throw", [](int64_t) { throw 42; })
      .def("cpp_client.escaping", MakeEscaping)
      .def("cpp_client.fail_in_destructors", FailInDestructors)
      .def("cpp_client.call", [](const ffi::Function& f) { return f(); })
      .def("cpp_client.say_dtype",
           [](DLTensor* tensor) { TVM_FFI_THROW(ValueError) << "no " << tensor->dtype; })
      .def("cpp_client.say", [](const ffi::Any& value) { TVM_FFI_THROW(ValueError) << value; });
  refl::ObjectDef<FieldsObj>()
      .def(refl::init<>())
      .def_rw("map", &FieldsObj::map)
      .def_rw("hashed", &FieldsObj::hashed)
      .def_rw("maybe", &FieldsObj::maybe)
      .def_rw("pair", &FieldsObj::pair)
      .def_rw("maps", &FieldsObj::maps)
      .def_rw("vector", &FieldsObj::vector)
      .def_rw("function", &FieldsObj::function);
  refl::ObjectDef<ThingObj>()
      .def(refl::init<int64_t>())
      .def_ro("x", &ThingObj::x)
      .def_ro("moody", &ThingObj::moody)
      .def("fail", [](const ThingObj*) { throw "text"; });
}

}  // namespace
