// SPDX-License-Identifier: Apache-2.0
// Registration of the types that the reflection headers define: access paths and enums, and of the
// conversions into the built-in object types.
#include <tvm/ffi/enum.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/access_path.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <sstream>
#include <string>

namespace tvm {
namespace ffi {
namespace reflection {
namespace {

// fn_repr prints keys of any type the way the enclosing repr prints values.
std::string StepText(const AccessStepObj* step, const Function& fn_repr) {
  bool is_missing = step->kind >= AccessKind::kAttrMissing;
  if (step->kind == AccessKind::kAttr) {
    if (auto name = step->key.as<String>()) return "." + std::string(*name);
  }
  std::string key = fn_repr(step->key).cast<String>();
  return is_missing ? "[<missing:" + key + ">]" : "[" + key + "]";
}

String StepRepr(const AccessStepObj* step, const Function& fn_repr) {
  return StepText(step, fn_repr);
}

String PathRepr(const AccessPathObj* path, const Function& fn_repr) {
  std::string text = "<root>";
  for (const AccessStep& step : path->ToSteps()) text += StepText(step.get(), fn_repr);
  return text;
}

void RegisterAccessPath() {
  ObjectDef<AccessStepObj>(init(false))
      .def_ro("kind", &AccessStepObj::kind)
      .def_ro("key", &AccessStepObj::key)
      .def_type_attr(type_attr::kRepr, &StepRepr);
  ObjectDef<AccessPathObj>(init(false))
      .def_ro("parent", &AccessPathObj::parent)
      .def_ro("step", &AccessPathObj::step)
      .def_ro("depth", &AccessPathObj::depth)
      .def_static("_root", &AccessPath::Root)
      .def("_extend", &AccessPathObj::Extend)
      .def("_attr", &AccessPathObj::Attr)
      .def("_array_item", &AccessPathObj::ArrayItem)
      .def("_map_item", &AccessPathObj::MapItem)
      .def("_attr_missing", &AccessPathObj::AttrMissing)
      .def("_array_item_missing", &AccessPathObj::ArrayItemMissing)
      .def("_map_item_missing", &AccessPathObj::MapItemMissing)
      .def("_is_prefix_of", &AccessPathObj::IsPrefixOf)
      .def("_to_steps", &AccessPathObj::ToSteps)
      .def("_path_equal", &AccessPathObj::PathEqual)
      .def_type_attr(type_attr::kRepr, &PathRepr);
}

void RegisterEnums() {
  EnsureTypeAttrColumn(type_attr::kEnumState);
  ObjectDef<EnumStateObj>()
      .def(init<>())
      .def_ro("entries", &EnumStateObj::entries, init(false))
      .def_ro("indexes", &EnumStateObj::indexes, init(false))
      .def_ro("attrs", &EnumStateObj::attrs, init(false));
  ObjectDef<EnumObj>(init(false))
      .def_ro("_int_index", &EnumObj::_int_index, AttachFieldFlag::SEqHashIgnore())
      .def_ro("_str_index", &EnumObj::_str_index);
  // `value` is the same memory as the index it stands for.
  ObjectDef<IntEnumObj>(init(false))
      .def_ro("value", &IntEnumObj::_int_index, init(false), AttachFieldFlag::SEqHashIgnore())
      .def_convert<IntEnum>();
  ObjectDef<StrEnumObj>(init(false))
      .def_ro("value", &StrEnumObj::_str_index, init(false), AttachFieldFlag::SEqHashIgnore())
      .def_convert<StrEnum>();
}

void RegisterConversions() {
  TypeAttrDef<Object>().def_convert<ObjectRef>();
  TypeAttrDef<ffi::details::StringObj>().def_convert<String>();
  TypeAttrDef<ffi::details::BytesObj>().def_convert<Bytes>();
  TypeAttrDef<ErrorObj>().def_convert<Error>();
  TypeAttrDef<FunctionObj>().def_convert<Function>();
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  RegisterConversions();
  RegisterAccessPath();
  RegisterEnums();
}

}  // namespace reflection
}  // namespace ffi
}  // namespace tvm
