// SPDX-License-Identifier: Apache-2.0
//
// Containers with tensors inside, for frontends that translate tensors to those of a framework.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/reflection/registry.h>

namespace tvm {
namespace ffi {
namespace tether_testing {

namespace refl = reflection;

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::GlobalDef()
      .def("testing.make_array_with_tensor", [](Tensor t) { return Array<Any>{t}; })
      .def("testing.make_array_with_mixed",
           [](Tensor t, int64_t x) {
             return Array<Any>{t, x, String("hello")};
           })
      .def("testing.make_nested_array_with_tensor",
           [](Tensor t) {
             return Array<Any>{Array<Any>{t, 42}, t};
           })
      .def("testing.make_list_with_tensor",
           [](Tensor t, int64_t x) {
             return List<Any>{t, x};
           })
      .def("testing.make_map_with_tensor",
           [](Tensor t) {
             return Map<String, Any>{{"tensor", t}, {"value", 42}, {"name", String("test")}};
           })
      .def("testing.make_dict_with_tensor",
           [](Tensor t) {
             return Dict<String, Any>{{"tensor", t}, {"value", 42}};
           })
      .def("testing.make_empty_array_with_tensor_input", [](Tensor) { return Array<Any>(); })
      .def("testing.make_nested_map_with_tensor", [](Tensor t1, Tensor t2) {
        return Map<String, Any>{
            {"array", Array<Any>{t1, t2}}, {"map", Map<String, Any>{{"t", t1}}}, {"scalar", 99}};
      });
}

}  // namespace tether_testing
}  // namespace ffi
}  // namespace tvm
