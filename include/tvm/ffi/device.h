// SPDX-License-Identifier: Apache-2.0
// DLDevice as a value, and its text form: "cuda:1", "cpu".
#ifndef TVM_FFI_DEVICE_H_
#define TVM_FFI_DEVICE_H_

#include <dlpack/dlpack.h>
#include <tvm/ffi/string.h>
#include <tvm/ffi/type_traits.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace tvm {
namespace ffi {
namespace detail {

inline std::optional<DLDeviceType> TryParseDLDeviceType(std::string_view name) {
  struct Entry {
    std::string_view name;
    DLDeviceType type;
  };
  constexpr Entry kNames[] = {{"cpu", kDLCPU},         {"cuda", kDLCUDA},   {"opencl", kDLOpenCL},
                              {"vulkan", kDLVulkan},   {"metal", kDLMetal}, {"mps", kDLMetal},
                              {"vpi", kDLVPI},         {"rocm", kDLROCM},   {"ext_dev", kDLExtDev},
                              {"hexagon", kDLHexagon}, {"wgpu", kDLWebGPU}, {"webgpu", kDLWebGPU},
                              {"maia", kDLMAIA},       {"trn", kDLTrn}};
  for (const Entry& entry : kNames) {
    if (entry.name == name) return entry.type;
  }
  return std::nullopt;
}

inline std::optional<int32_t> TryParseDLDeviceIndex(std::string_view digits) {
  if (digits.empty()) return std::nullopt;
  int64_t index = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    index = index * 10 + (c - '0');
    if (index > std::numeric_limits<int32_t>::max()) return std::nullopt;
  }
  return static_cast<int32_t>(index);
}

// "name" or "name:index", up to the first space.
inline std::optional<DLDevice> TryStringViewToDLDevice(std::string_view text) {
  text = text.substr(0, text.find(' '));
  size_t colon = text.find(':');
  std::optional<DLDeviceType> type = TryParseDLDeviceType(text.substr(0, colon));
  if (!type) return std::nullopt;
  if (colon == std::string_view::npos) return DLDevice{*type, 0};
  std::optional<int32_t> index = TryParseDLDeviceIndex(text.substr(colon + 1));
  if (!index) return std::nullopt;
  return DLDevice{*type, *index};
}

}  // namespace detail

template <>
struct TypeTraits<DLDevice>
    : public tether::PayloadTraits<TypeTraits<DLDevice>, DLDevice, TypeIndex::kTVMFFIDevice> {
  TVM_FFI_INLINE static void Store(const DLDevice& src, TVMFFIAny* result) {
    result->v_device = src;
  }
  TVM_FFI_INLINE static DLDevice Load(const TVMFFIAny* src) { return src->v_device; }
  static std::optional<DLDevice> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return Load(src);
    if (auto text = TypeTraits<String>::TryCastFromAnyView(src)) {
      return detail::TryStringViewToDLDevice(std::string_view(text->data(), text->size()));
    }
    return std::nullopt;
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFIDevice; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIDevice); }
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_DEVICE_H_
