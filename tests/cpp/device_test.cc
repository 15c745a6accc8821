// SPDX-License-Identifier: Apache-2.0
//
// device.h: devices as values and as text.
#include <gtest/gtest.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/device.h>

#include <string>
#include <vector>

#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using tether_test::ErrorText;

TEST(Device, IsStoredAsAValue) {
  Any any = DLDevice{kDLCUDA, 3};
  EXPECT_EQ(any.type_index(), kTVMFFIDevice);
  ASSERT_TRUE(any.as<DLDevice>().has_value());
  EXPECT_EQ(any.as<DLDevice>()->device_type, kDLCUDA);
  EXPECT_EQ(any.as<DLDevice>()->device_id, 3);
  EXPECT_EQ(std::move(any).cast<DLDevice>().device_id, 3);
  EXPECT_FALSE(Any("cuda").as<DLDevice>().has_value());
}

TEST(Device, EveryNameConverts) {
  struct Name {
    const char* text;
    DLDeviceType type;
    int id;
  };
  for (const Name& n : std::vector<Name>{{"cpu", kDLCPU, 0},
                                         {"cuda", kDLCUDA, 0},
                                         {"cuda:1", kDLCUDA, 1},
                                         {"opencl:2", kDLOpenCL, 2},
                                         {"vulkan", kDLVulkan, 0},
                                         {"metal", kDLMetal, 0},
                                         {"mps:0", kDLMetal, 0},
                                         {"vpi", kDLVPI, 0},
                                         {"rocm:7", kDLROCM, 7},
                                         {"ext_dev", kDLExtDev, 0},
                                         {"hexagon", kDLHexagon, 0},
                                         {"wgpu", kDLWebGPU, 0},
                                         {"webgpu:4", kDLWebGPU, 4},
                                         {"maia", kDLMAIA, 0},
                                         {"trn", kDLTrn, 0},
                                         {"cuda:2147483647", kDLCUDA, 2147483647},
                                         {"cuda:007", kDLCUDA, 7},
                                         {"cuda:1 and the rest is ignored", kDLCUDA, 1},
                                         {"cpu ", kDLCPU, 0}}) {
    DLDevice device = AnyView(n.text).cast<DLDevice>();
    EXPECT_EQ(device.device_type, n.type) << n.text;
    EXPECT_EQ(device.device_id, n.id) << n.text;
    EXPECT_EQ(Any(String(n.text)).cast<DLDevice>().device_id, n.id) << n.text;
  }
}

TEST(Device, BadTextIsNotADevice) {
  for (const char* text :
       {"", " cpu", "gpu", "CPU", "cuda:", "cuda::1", "cuda:1:2", "cuda:-1", "cuda:+1", "cuda:x",
        "cuda:1x", "cuda:2147483648", ":1", "cuda1", "cuda:99999999999999999999"}) {
    EXPECT_FALSE(AnyView(text).try_cast<DLDevice>().has_value()) << text;
    EXPECT_EQ(ErrorText([&] { AnyView(text).cast<DLDevice>(); }),
              "TypeError: Cannot convert from type `const char*` to `Device`")
        << text;
  }
  EXPECT_FALSE(Any(Bytes("cpu", 3)).try_cast<DLDevice>().has_value()) << "bytes are not text";
  EXPECT_FALSE(Any(1).try_cast<DLDevice>().has_value());
}

TEST(Device, HelpersParseTheParts) {
  EXPECT_EQ(details::TryParseDLDeviceType("cuda"), kDLCUDA);
  EXPECT_FALSE(details::TryParseDLDeviceType("cudax").has_value());
  EXPECT_EQ(details::TryParseDLDeviceIndex("12"), 12);
  EXPECT_FALSE(details::TryParseDLDeviceIndex("").has_value());
  EXPECT_EQ(details::TryStringViewToDLDevice("cuda:1")->device_id, 1);
  EXPECT_EQ(TVMFFIDLDeviceFromIntPair(kDLROCM, 2).device_type, kDLROCM);
}

}  // namespace
