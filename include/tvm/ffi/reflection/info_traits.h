// SPDX-License-Identifier: Apache-2.0
// The extra arguments of `def_ro`, `def_rw` and `def`: defaults, flags and metadata.
//
//   refl::ObjectDef<PointObj>()
//       .def_rw("x", &PointObj::x, refl::default_value(0), refl::kw_only(true))
//       .def_ro("cache", &PointObj::cache, refl::init(false), refl::repr(false))
//       .def("norm", &PointObj::Norm, refl::Metadata{{"unit", "m"}})
//       .def("scale", &PointObj::Scale, refl::arg("factor"), refl::arg("origin", 0));
#ifndef TVM_FFI_REFLECTION_INFO_TRAITS_H_
#define TVM_FFI_REFLECTION_INFO_TRAITS_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {

namespace reflection {

using _MetadataType = std::vector<std::pair<String, Any>>;

// A field record being built, with the user's metadata still as values.
struct FieldInfoBuilder : public TVMFFIFieldInfo {
  _MetadataType metadata_;
};

class arg;

// A method or global function record being built.
struct MethodInfoBuilder : public TVMFFIMethodInfo {
  _MetadataType metadata_;
  std::vector<arg> parameters_;
};

// Base of the extra arguments of `def*`: `Apply(builder*)` edits the record. A trait that has no
// `Apply` for a kind of record is ignored there.
struct InfoTrait {};

// Adds entries to the metadata; values are integers, booleans or strings.
class Metadata : public InfoTrait {
 public:
  Metadata(std::initializer_list<std::pair<String, Any>> dict) : dict_(dict) {}

  void Apply(FieldInfoBuilder* info) const { AppendTo(&info->metadata_); }
  void Apply(MethodInfoBuilder* info) const { AppendTo(&info->metadata_); }

 private:
  void AppendTo(_MetadataType* out) const { out->insert(out->end(), dict_.begin(), dict_.end()); }

  _MetadataType dict_;
};

// The name of a parameter, and the value that frontends pass when none is given: None, a boolean, a
// number or a string. Name every parameter, in order, but not the object of a method.
class arg : public InfoTrait {
 public:
  explicit arg(String name) : name(std::move(name)) {}
  arg(String name, Any default_value)
      : name(std::move(name)), default_value(std::move(default_value)), has_default(true) {}

  void Apply(MethodInfoBuilder* info) const { info->parameters_.push_back(*this); }

  String name;
  Any default_value;
  bool has_default = false;
};

// The value a field takes when none is given.
class DefaultValue : public InfoTrait {
 public:
  explicit DefaultValue(Any value) : value_(std::move(value)) {}

  void Apply(TVMFFIFieldInfo* info) const {
    info->default_value_or_factory = AnyView(value_).CopyToTVMFFIAny();
    info->flags |= kTVMFFIFieldFlagBitMaskHasDefault;
  }

 private:
  Any value_;
};

// A function without arguments that makes a new default for each object.
class DefaultFactory : public InfoTrait {
 public:
  explicit DefaultFactory(Function factory) : factory_(std::move(factory)) {}

  void Apply(TVMFFIFieldInfo* info) const {
    info->default_value_or_factory = AnyView(factory_).CopyToTVMFFIAny();
    info->flags |= kTVMFFIFieldFlagBitMaskHasDefault | kTVMFFIFieldFlagBitMaskDefaultFromFactory;
  }

 private:
  Function factory_;
};

class default_value : public DefaultValue {
 public:
  using DefaultValue::DefaultValue;
};

class default_factory : public DefaultFactory {
 public:
  using DefaultFactory::DefaultFactory;
};

// Sets a bit of TVMFFIFieldFlagBitMask.
class AttachFieldFlag : public InfoTrait {
 public:
  explicit AttachFieldFlag(int32_t flag) : flag_(flag) {}

  // The field defines variables, and so does everything below it.
  static AttachFieldFlag SEqHashDefPattern() {
    return AttachFieldFlag(kTVMFFIFieldFlagBitMaskSEqHashDefPattern);
  }
  // The field defines variables, what they refer to does not.
  static AttachFieldFlag SEqHashDefSimple() {
    return AttachFieldFlag(kTVMFFIFieldFlagBitMaskSEqHashDefSimple);
  }
  // The names of the two up to 0.1.13.
  static AttachFieldFlag SEqHashDefRecursive() { return SEqHashDefPattern(); }
  static AttachFieldFlag SEqHashDefNonRecursive() { return SEqHashDefSimple(); }
  // Structural equality and hashing skip the field.
  static AttachFieldFlag SEqHashIgnore() {
    return AttachFieldFlag(kTVMFFIFieldFlagBitMaskSEqHashIgnore);
  }

  void Apply(TVMFFIFieldInfo* info) const { info->flags |= flag_; }

 private:
  int32_t flag_;
};

// `repr(false)`: not shown in the repr.
class repr : public InfoTrait {
 public:
  explicit repr(bool show) : show_(show) {}
  void Apply(TVMFFIFieldInfo* info) const {
    if (!show_) info->flags |= kTVMFFIFieldFlagBitMaskReprOff;
  }

 private:
  bool show_;
};

// `compare(false)`: not part of recursive comparison.
class compare : public InfoTrait {
 public:
  explicit compare(bool enable) : enable_(enable) {}
  void Apply(TVMFFIFieldInfo* info) const {
    if (!enable_) info->flags |= kTVMFFIFieldFlagBitMaskCompareOff;
  }

 private:
  bool enable_;
};

// `hash(false)`: not part of recursive hashing.
class hash : public InfoTrait {
 public:
  explicit hash(bool enable) : enable_(enable) {}
  void Apply(TVMFFIFieldInfo* info) const {
    if (!enable_) info->flags |= kTVMFFIFieldFlagBitMaskHashOff;
  }

 private:
  bool enable_;
};

// `kw_only(true)`: a keyword-only parameter of the generated constructor.
class kw_only : public InfoTrait {
 public:
  explicit kw_only(bool enable) : enable_(enable) {}
  void Apply(TVMFFIFieldInfo* info) const {
    if (enable_) info->flags |= kTVMFFIFieldFlagBitMaskKwOnly;
  }

 private:
  bool enable_;
};

// `init<Args...>()` given to ObjectDef::def registers the constructor from Args. `init(false)` on
// a field keeps it out of the generated constructor; on the class, none is generated.
template <typename... Args>
struct init : public InfoTrait {
  init() = default;
  explicit init(bool enable) : enabled(enable) {}

  void Apply(TVMFFIFieldInfo* info) const {
    if (!enabled) info->flags |= kTVMFFIFieldFlagBitMaskInitOff;
  }

  bool enabled = true;
};

init(bool)->init<>;

}  // namespace reflection

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_INFO_TRAITS_H_
