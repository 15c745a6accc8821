// SPDX-License-Identifier: Apache-2.0
//
// One function per kind of type schema, and one class with a field of every kind.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/device.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/registry.h>

#include <utility>

namespace tvm {
namespace ffi {
namespace tether_testing {

namespace refl = reflection;

refl::Metadata SampleMetadata() {
  return refl::Metadata{{"bool_attr", true}, {"int_attr", 1}, {"str_attr", String("hello")}};
}

template <typename T>
T Identity(T value) {
  return value;
}

class SchemaAllTypesObj : public Object {
 public:
  bool v_bool = true;
  int64_t v_int;
  double v_float;
  DLDevice v_device{kDLCPU, 0};
  DLDataType v_dtype{kDLFloat, 32, 1};
  String v_string;
  Bytes v_bytes;
  Optional<int64_t> v_opt_int;
  Optional<String> v_opt_str;
  Array<int64_t> v_arr_int;
  Array<String> v_arr_str;
  Map<String, int64_t> v_map_str_int;
  Map<String, Array<int64_t>> v_map_str_arr_int;
  Variant<String, Array<int64_t>, Map<String, int64_t>> v_variant = String("v");
  Optional<Array<Variant<int64_t, String>>> v_opt_arr_variant;

  SchemaAllTypesObj(int64_t v_int, double v_float, String v_string)
      : v_int(v_int), v_float(v_float), v_string(std::move(v_string)) {}

  int64_t AddInt(int64_t x) const { return v_int + x; }

  Array<int64_t> AppendInt(Array<int64_t> xs, int64_t y) const {
    xs.push_back(y);
    return xs;
  }

  Optional<String> MaybeConcat(Optional<String> a, Optional<String> b) const {
    if (a.has_value() && b.has_value()) return a.value() + b.value();
    return a.has_value() ? a : b;
  }

  Map<String, Array<int64_t>> MergeMap(Map<String, Array<int64_t>> lhs,
                                       Map<String, Array<int64_t>> rhs) const {
    for (const auto& [key, values] : rhs) {
      auto it = lhs.find(key);
      lhs.Set(key, it == lhs.end() ? values : Concat((*it).second, values));
    }
    return lhs;
  }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.SchemaAllTypes", SchemaAllTypesObj, Object);
};

class SchemaAllTypes : public ObjectRef {
 public:
  SchemaAllTypes(int64_t v_int, double v_float, String v_string) {
    data_ = make_object<SchemaAllTypesObj>(v_int, v_float, std::move(v_string));
  }

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(SchemaAllTypes, ObjectRef, SchemaAllTypesObj);
};

void RegisterClass() {
  refl::ObjectDef<SchemaAllTypesObj>()
      .def_rw("v_bool", &SchemaAllTypesObj::v_bool, "bool field", SampleMetadata())
      .def_rw("v_int", &SchemaAllTypesObj::v_int, refl::default_value(0), "int field")
      .def_rw("v_float", &SchemaAllTypesObj::v_float, refl::default_value(0.0), "float field")
      .def_rw("v_device", &SchemaAllTypesObj::v_device, "device field")
      .def_rw("v_dtype", &SchemaAllTypesObj::v_dtype, "dtype field")
      .def_rw("v_string", &SchemaAllTypesObj::v_string, refl::default_value(String("s")),
              "string field")
      .def_rw("v_bytes", &SchemaAllTypesObj::v_bytes, "bytes field")
      .def_rw("v_opt_int", &SchemaAllTypesObj::v_opt_int, "optional int")
      .def_rw("v_opt_str", &SchemaAllTypesObj::v_opt_str, "optional str")
      .def_rw("v_arr_int", &SchemaAllTypesObj::v_arr_int, "array<int>")
      .def_rw("v_arr_str", &SchemaAllTypesObj::v_arr_str, "array<str>")
      .def_rw("v_map_str_int", &SchemaAllTypesObj::v_map_str_int, "map<str,int>")
      .def_rw("v_map_str_arr_int", &SchemaAllTypesObj::v_map_str_arr_int, "map<str,array<int>>")
      .def_rw("v_variant", &SchemaAllTypesObj::v_variant, "variant<str,array<int>,map<str,int>>")
      .def_rw("v_opt_arr_variant", &SchemaAllTypesObj::v_opt_arr_variant,
              "optional<array<variant<int,str>>>")
      .def("add_int", &SchemaAllTypesObj::AddInt, "add int method", SampleMetadata())
      .def("append_int", &SchemaAllTypesObj::AppendInt, "append int to array")
      .def("maybe_concat", &SchemaAllTypesObj::MaybeConcat, "optional concat")
      .def("merge_map", &SchemaAllTypesObj::MergeMap, "merge maps")
      .def_static(
          "make_with",
          [](int64_t i, double f, String s) { return SchemaAllTypes(i, f, std::move(s)); },
          "Constructor with subset of fields");
}

Map<String, Array<int64_t>> AddPresent(Array<Optional<int64_t>> numbers,
                                       Map<String, Array<int64_t>> map, Optional<String> key) {
  if (!key.has_value()) return map;
  Array<int64_t> present;
  for (const Optional<int64_t>& number : numbers) {
    if (number.has_value()) present.push_back(number.value());
  }
  map.Set(key.value(), present);
  return map;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  RegisterClass();
  using Callback = TypedFunction<void(int64_t, float, Function)>;
  refl::GlobalDef()
      .def("testing.schema_id_int", Identity<int64_t>, SampleMetadata())
      .def("testing.schema_id_float", Identity<double>)
      .def("testing.schema_id_bool", Identity<bool>)
      .def("testing.schema_id_device", Identity<DLDevice>)
      .def("testing.schema_id_dtype", Identity<DLDataType>)
      .def("testing.schema_id_string", Identity<String>)
      .def("testing.schema_id_bytes", Identity<Bytes>)
      .def("testing.schema_id_func", Identity<Function>)
      .def("testing.schema_id_func_typed", Identity<Callback>)
      .def("testing.schema_id_any", Identity<Any>)
      .def("testing.schema_id_object", Identity<ObjectRef>)
      .def("testing.schema_id_dltensor", Identity<DLTensor*>)
      .def("testing.schema_id_tensor", Identity<Tensor>)
      .def("testing.schema_tensor_view_input", [](TensorView) {})
      .def("testing.schema_id_opt_int", Identity<Optional<int64_t>>)
      .def("testing.schema_id_opt_str", Identity<Optional<String>>)
      .def("testing.schema_id_opt_obj", Identity<Optional<ObjectRef>>)
      .def("testing.schema_id_arr_int", Identity<Array<int64_t>>)
      .def("testing.schema_id_arr_str", Identity<Array<String>>)
      .def("testing.schema_id_arr_obj", Identity<Array<ObjectRef>>)
      .def("testing.schema_id_arr", Identity<const ArrayObj*>)
      .def("testing.schema_id_list_int", Identity<List<int64_t>>)
      .def("testing.schema_id_list_str", Identity<List<String>>)
      .def("testing.schema_id_list_obj", Identity<List<ObjectRef>>)
      .def("testing.schema_id_map_str_int", Identity<Map<String, int64_t>>)
      .def("testing.schema_id_map_str_str", Identity<Map<String, String>>)
      .def("testing.schema_id_map_str_obj", Identity<Map<String, ObjectRef>>)
      .def("testing.schema_id_map", Identity<const MapObj*>)
      .def("testing.schema_id_dict_str_int", Identity<Dict<String, int64_t>>)
      .def("testing.schema_id_dict_str_str", Identity<Dict<String, String>>)
      .def("testing.schema_id_variant_int_str", Identity<Variant<int64_t, String>>)
      .def_packed("testing.schema_packed", [](PackedArgs, Any*) {})
      .def("testing.schema_arr_map_opt", AddPresent)
      .def("testing.schema_variant_mix", Identity<Variant<int64_t, String, Array<int64_t>>>,
           "variant passthrough")
      .def("testing.schema_no_args", [] { return int64_t{1}; })
      .def("testing.schema_no_return", [](int64_t) {})
      .def("testing.schema_no_args_no_return", [] {});
}

}  // namespace tether_testing
}  // namespace ffi
}  // namespace tvm
