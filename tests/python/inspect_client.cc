// SPDX-License-Identifier: Apache-2.0
// A C++ library that keeps objects in every place C++ has; test_inspect.py asks who holds them.
#include <tvm/ffi/tvm_ffi.h>

#include <vector>

namespace {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

ffi::Any in_static;
thread_local ffi::Any in_thread;
std::vector<ffi::Any> in_vector;
ffi::WeakObjectPtr<ffi::Object> weak;

// One field that reflection shows, and one that it does not.
class KeeperObj : public ffi::Object {
 public:
  ffi::ObjectRef shown;
  ffi::ObjectRef secret;
  explicit KeeperObj(ffi::ObjectRef shown, ffi::ObjectRef secret)
      : shown(std::move(shown)), secret(std::move(secret)) {}
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("inspect_client.Keeper", KeeperObj, ffi::Object);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<KeeperObj>()
      .def(refl::init<ffi::ObjectRef, ffi::ObjectRef>())
      .def_rw("shown", &KeeperObj::shown);
  refl::GlobalDef()
      .def("inspect_client.set_static", [](ffi::Any value) { in_static = std::move(value); })
      .def("inspect_client.set_thread", [](ffi::Any value) { in_thread = std::move(value); })
      .def("inspect_client.push", [](ffi::Any value) { in_vector.push_back(std::move(value)); })
      .def("inspect_client.clear", [] { in_vector.clear(); })
      .def("inspect_client.set_weak",
           [](const ffi::ObjectRef& value) {
             weak = ffi::details::ObjectUnsafe::ObjectPtrFromObjectRef<ffi::Object>(value);
           })
      .def("inspect_client.clear_weak", [] { weak.reset(); })
      .def("inspect_client.capture",
           [](ffi::Any value) { return ffi::Function::FromTyped([value] { return value; }); })
      .def("inspect_client.call_with",
           [](const ffi::Function& f, const ffi::Any& value) { return f(value); });
}

}  // namespace
