// SPDX-License-Identifier: Apache-2.0
// Records of fields, methods and type attributes: built here, stored by the type table.
//
//   tether::RegisterField<int64_t>(type_index, "x", offset, flags, "Doc.");
//   tether::RegisterMethod(type_index, "norm", 0, function, &write_schema, "Doc.");
//   tether::RegisterAttr(type_index, "__ffi_repr__", function);
//
// This runs once, when a library is loaded, and every client compiles it: cold, so that the
// compiler does not work on its speed.
#ifndef TVM_FFI_REFLECTION_RECORDS_H_
#define TVM_FFI_REFLECTION_RECORDS_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/reflection/field_type.h>
#include <tvm/ffi/reflection/info_traits.h>
#include <tvm/ffi/string.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {

namespace tether {

template <typename Trait, typename Info, typename = void>
inline constexpr bool kAppliesTo = false;
template <typename Trait, typename Info>
inline constexpr bool kAppliesTo<
    Trait, Info, std::void_t<decltype(std::declval<const Trait&>().Apply(std::declval<Info*>()))>> =
    std::is_base_of_v<reflection::InfoTrait, Trait>;

// How many parameters the extra arguments of a `def` name.
template <typename... Extra>
inline constexpr size_t kNumNamed = (std::is_same_v<std::decay_t<Extra>, reflection::arg> + ... +
                                     0);

template <typename T>
inline constexpr bool kIsCharArray =
    std::is_array_v<T>&& std::is_same_v<std::remove_cv_t<std::remove_extent_t<T>>, char>;

// One extra argument of `def*`: a string literal is the doc, a trait edits the record.
template <typename Info, typename Extra>
void ApplyExtra(Info* info, const Extra& extra) {
  if constexpr (kIsCharArray<Extra>) {
    info->doc = reflection::AsByteArray(extra);
  } else if constexpr (kAppliesTo<Extra, Info>) {
    extra.Apply(info);
  }
}

[[noreturn]] TVM_FFI_COLD_CODE inline void ThrowBadMetadata(const String& key, const Any& value) {
  TVM_FFI_LOG_AND_THROW(TypeError) << "Metadata can be only int, bool or string, but on key `"
                                   << key << "`, the type is " << value.GetTypeKey();
}

TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void AppendJSONString(std::string* out,
                                                                 const String& text) {
  String quoted = EscapeStringJSON(text);
  out->append(quoted.data(), quoted.size());
}

[[noreturn]] TVM_FFI_COLD_CODE inline void ThrowBadDefault(const reflection::arg& parameter) {
  TVM_FFI_LOG_AND_THROW(TypeError)
      << "The default of a parameter can be only None, bool, int, float or string, but that of `"
      << parameter.name << "` is " << parameter.default_value.GetTypeKey();
}

TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void AppendDefault(std::string* out,
                                                              const reflection::arg& parameter) {
  const Any& value = parameter.default_value;
  if (value == nullptr) {
    *out += "null";
  } else if (auto text = value.as<String>()) {
    AppendJSONString(out, *text);
  } else if (auto flag = value.as<bool>()) {
    *out += *flag ? "true" : "false";
  } else if (auto integer = value.as<int64_t>()) {
    *out += std::to_string(*integer);
  } else if (auto number = value.as<double>()) {
    // Not finite: as Python's json has them. Comparisons, because <cmath> is long to compile.
    if (*number - *number != 0) {
      *out += *number != *number ? "NaN" : *number < 0 ? "-Infinity" : "Infinity";
      return;
    }
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.17g", *number);
    *out += digits;
    // Would be read as an integer otherwise.
    if (std::strpbrk(digits, ".e") == nullptr) *out += ".0";
  } else {
    ThrowBadDefault(parameter);
  }
}

// The entry "parameters" of the metadata: [{"name":"x"},{"name":"y","default":2}].
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void AppendParameters(
    std::string* out, const std::vector<reflection::arg>& parameters) {
  if (parameters.empty()) return;
  *out += ",\"parameters\":";
  char separator = '[';
  for (const reflection::arg& parameter : parameters) {
    *out += separator;
    *out += "{\"name\":";
    AppendJSONString(out, parameter.name);
    if (parameter.has_default) {
      *out += ",\"default\":";
      AppendDefault(out, parameter);
    }
    *out += '}';
    separator = ',';
  }
  *out += ']';
}

TVM_FFI_COLD_CODE inline std::string MetadataToJSON(
    const std::string& schema, const reflection::_MetadataType& user_entries,
    const std::vector<reflection::arg>& parameters = {}) {
  std::string out = "{\"type_schema\":";
  AppendJSONString(&out, schema);
  AppendParameters(&out, parameters);
  for (const auto& entry : user_entries) {
    out += ',';
    AppendJSONString(&out, entry.first);
    out += ':';
    const Any& value = entry.second;
    if (auto text = value.as<String>()) {
      AppendJSONString(&out, *text);
    } else if (auto flag = value.as<bool>()) {
      out += *flag ? "true" : "false";
    } else if (auto number = value.as<int64_t>()) {
      out += std::to_string(*number);
    } else {
      ThrowBadMetadata(entry.first, value);
    }
  }
  out += '}';
  return out;
}

TVM_FFI_COLD_CODE inline void StartField(reflection::FieldInfoBuilder* info, const FieldType& type,
                                         const char* name, int64_t offset, int64_t flags) {
  info->name = reflection::AsByteArray(name);
  info->doc = info->metadata = TVMFFIByteArray{nullptr, 0};
  info->flags = flags | type.plain_flags;
  info->size = type.size;
  info->alignment = type.alignment;
  info->offset = offset;
  info->getter = type.getter;
  info->setter = reinterpret_cast<void*>(type.setter);
  info->default_value_or_factory = AnyView().CopyToTVMFFIAny();
  info->field_static_type_index = type.static_type_index;
}

TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void FinishField(reflection::FieldInfoBuilder* info,
                                                            int32_t type_index, TypeText schema) {
  std::string metadata = MetadataToJSON(schema(), info->metadata_);
  info->metadata = TVMFFIByteArray{metadata.data(), metadata.size()};
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterField(type_index, info));
}

// Offset of a field of Class or of one of its bases.
template <typename Class, typename Base, typename T>
int64_t OffsetOf(T Base::*field) {
  static_assert(std::is_base_of_v<Base, Class>,
                "the field must belong to the class or a base of it");
  return reflection::GetFieldByteOffsetToObject<Class, T>(field);
}

template <typename T, typename... Extra>
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE void RegisterField(int32_t type_index, const char* name,
                                                       int64_t offset, int64_t flags,
                                                       const Extra&... extra) {
  reflection::FieldInfoBuilder info;
  StartField(&info, kFieldType<T>, name, offset, flags);
  (ApplyExtra(&info, extra), ...);
  FinishField(&info, type_index, &detail::TypeSchema<T>::v);
}

TVM_FFI_COLD_CODE inline void StartMethod(reflection::MethodInfoBuilder* info, const char* name,
                                          int64_t flags, const Function& function) {
  info->name = reflection::AsByteArray(name);
  info->doc = info->metadata = TVMFFIByteArray{nullptr, 0};
  info->flags = flags;
  info->method = AnyView(function).CopyToTVMFFIAny();
}

// type_index of a global function.
inline constexpr int32_t kNoType = -1;

TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void FinishMethod(reflection::MethodInfoBuilder* info,
                                                             int32_t type_index, TypeText schema) {
  std::string metadata = MetadataToJSON(schema(), info->metadata_, info->parameters_);
  info->metadata = TVMFFIByteArray{metadata.data(), metadata.size()};
  TVM_FFI_CHECK_SAFE_CALL(type_index == kNoType ? TVMFFIFunctionSetGlobalFromMethodInfo(info, 0)
                                                : TVMFFITypeRegisterMethod(type_index, info));
}

// Registers a method, or with kNoType a global function.
template <typename... Extra>
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE void RegisterMethod(int32_t type_index, const char* name,
                                                        int64_t flags, const Function& function,
                                                        TypeText schema, const Extra&... extra) {
  reflection::MethodInfoBuilder info;
  StartMethod(&info, name, flags, function);
  (ApplyExtra(&info, extra), ...);
  FinishMethod(&info, type_index, schema);
}

TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void RegisterAttr(int32_t type_index, const char* name,
                                                             const Any& value) {
  TVMFFIByteArray name_bytes = reflection::AsByteArray(name);
  TVMFFIAny raw = AnyView(value).CopyToTVMFFIAny();
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterAttr(type_index, &name_bytes, &raw));
}

TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline std::string QualifiedName(const char* type_key,
                                                                     const char* name) {
  std::string out = type_key;
  out += '.';
  out += name;
  return out;
}

}  // namespace tether

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_RECORDS_H_
