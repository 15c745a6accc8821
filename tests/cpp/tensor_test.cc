// SPDX-License-Identifier: Apache-2.0
//
// Tensor and TensorView: geometry, ownership, views, DLPack exchange, and the C functions.
#include <gtest/gtest.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/extra/dtype.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using core_test::Box;
using core_test::BoxObj;
using tether_test::ErrorText;

constexpr DLDataType kFloat32 = {kDLFloat, 32, 1};
constexpr DLDevice kCpu = {kDLCPU, 0};

int blocks_alive = 0;

struct HostAlloc {
  void AllocData(DLTensor* tensor, size_t extra = 0) {
    tensor->data = std::malloc(GetDataSize(*tensor) + extra);
    ++blocks_alive;
  }
  void FreeData(DLTensor* tensor) {
    std::free(tensor->data);
    --blocks_alive;
  }
};

struct FailingAlloc {
  void AllocData(DLTensor*) { TVM_FFI_THROW(MemoryError) << "none left"; }
  void FreeData(DLTensor*) { ADD_FAILURE() << "nothing was allocated"; }
};

// Data elsewhere, at an address of the caller's choice.
struct FixedAlloc {
  void* data;
  void AllocData(DLTensor* tensor) { tensor->data = data; }
  void FreeData(DLTensor*) {}
};

Tensor Empty(ShapeView shape, DLDataType dtype = kFloat32) {
  return Tensor::FromNDAlloc(HostAlloc(), shape, dtype, kCpu);
}

std::vector<int64_t> Extents(ShapeView view) {
  return std::vector<int64_t>(view.begin(), view.end());
}

using V = std::vector<int64_t>;

DLTensor MakeDLTensor(void* data, std::vector<int64_t>* shape, std::vector<int64_t>* strides,
                      DLDataType dtype = kFloat32, DLDevice device = kCpu) {
  DLTensor tensor{};
  tensor.data = data;
  tensor.device = device;
  tensor.ndim = static_cast<int32_t>(shape->size());
  tensor.dtype = dtype;
  tensor.shape = shape->data();
  tensor.strides = strides != nullptr ? strides->data() : nullptr;
  return tensor;
}

TEST(DType, DtypeTraitNamesElementTypes) {
  using tvm_ffi::dtype_trait;
  EXPECT_EQ(dtype_trait<float>::value, (DLDataType{kDLFloat, 32, 1}));
  EXPECT_EQ(dtype_trait<double>::value, (DLDataType{kDLFloat, 64, 1}));
  EXPECT_EQ(dtype_trait<bool>::value, (DLDataType{kDLBool, 8, 1}));
  EXPECT_EQ(dtype_trait<int8_t>::value, (DLDataType{kDLInt, 8, 1}));
  EXPECT_EQ(dtype_trait<uint16_t>::value, (DLDataType{kDLUInt, 16, 1}));
  EXPECT_EQ(dtype_trait<long long>::value, (DLDataType{kDLInt, 64, 1}));
  EXPECT_EQ(dtype_trait<__half>::value, (DLDataType{kDLFloat, 16, 1}));
  EXPECT_EQ(dtype_trait<__nv_bfloat16>::value, (DLDataType{kDLBfloat, 16, 1}));
  EXPECT_EQ(dtype_trait<__nv_fp4x2_e2m1>::value, (DLDataType{kDLFloat4_e2m1fn, 4, 2}));
}

TEST(TensorHelpers, DataSizePacksNarrowTypes) {
  EXPECT_EQ(GetDataSize(9, DLDataType{kDLUInt, 1, 1}), 2u);
  EXPECT_EQ(GetDataSize(9, DLDataType{kDLBool, 8, 1}), 9u);
  EXPECT_EQ(GetDataSize(2, DLDataType{kDLFloat4_e2m1fn, 4, 1}), 1u);
  EXPECT_EQ(GetDataSize(3, DLDataType{kDLFloat4_e2m1fn, 4, 2}), 3u);
  EXPECT_EQ(GetDataSize(size_t{1} << 33, kFloat32), size_t{1} << 35) << "64-bit arithmetic";
  EXPECT_EQ(GetDataSize(0, kFloat32), 0u);
  Tensor tensor = Empty({2, 3});
  EXPECT_EQ(GetDataSize(tensor), 24u);
  EXPECT_EQ(GetDataSize(TensorView(tensor)), 24u);
  EXPECT_EQ(GetDataSize(*tensor.GetDLTensorPtr()), 24u);
  EXPECT_EQ(GetDataSize(Empty({})), 4u);
}

TEST(TensorHelpers, Contiguity) {
  auto contiguous = [](std::vector<int64_t> shape, std::vector<int64_t> strides) {
    return IsContiguous(MakeDLTensor(nullptr, &shape, &strides));
  };
  EXPECT_TRUE(contiguous({2, 3}, {3, 1}));
  EXPECT_FALSE(contiguous({2, 3}, {1, 2}));
  EXPECT_TRUE(contiguous({2, 1, 3}, {3, 99, 1})) << "the stride of one element does not matter";
  EXPECT_TRUE(contiguous({2, 0, 3}, {7, 7, 7})) << "nothing is contiguous";
  EXPECT_TRUE(contiguous({}, {}));
  std::vector<int64_t> shape = {2, 3};
  EXPECT_TRUE(IsContiguous(MakeDLTensor(nullptr, &shape, nullptr)));
}

TEST(TensorHelpers, AlignmentAndDirectAddresses) {
  for (DLDeviceType direct : {kDLCPU, kDLCUDA, kDLCUDAHost, kDLCUDAManaged, kDLROCM, kDLROCMHost}) {
    EXPECT_TRUE(IsDirectAddressDevice(DLDevice{direct, 0}));
  }
  for (DLDeviceType indirect : {kDLOpenCL, kDLVulkan, kDLMetal, kDLExtDev, kDLHexagon}) {
    EXPECT_FALSE(IsDirectAddressDevice(DLDevice{indirect, 0}));
  }
  alignas(64) static char data[128];
  std::vector<int64_t> shape = {1};
  DLTensor tensor = MakeDLTensor(data + 4, &shape, nullptr);
  EXPECT_FALSE(IsAligned(tensor, 8));
  tensor.byte_offset = 4;
  EXPECT_TRUE(IsAligned(tensor, 8));
  tensor.device.device_type = kDLVulkan;
  EXPECT_FALSE(IsAligned(tensor, 8)) << "only the offset counts";
  EXPECT_TRUE(IsAligned(tensor, 4));
}

TEST(Tensor, FieldsAreWhereOtherBinariesExpectThem) {
  static_assert(sizeof(TensorObj) == 72 && sizeof(TensorView) == 48);
  static_assert(TensorObj::_type_index == 70 && TensorObj::_type_depth == 1);
  static_assert(Tensor::_type_is_nullable && Tensor::_type_container_is_exact);
  Tensor tensor = Empty({2, 3});
  const Object* object = static_cast<const ObjectRef&>(tensor).get();
  const DLTensor* interior = TVMFFITensorGetDLTensorPtr(const_cast<Object*>(object));
  EXPECT_EQ(reinterpret_cast<const char*>(interior), reinterpret_cast<const char*>(object) + 24);
  EXPECT_EQ(interior, tensor.GetDLTensorPtr());
  EXPECT_EQ(interior->ndim, 2);
  EXPECT_EQ(TypeToFieldStaticTypeIndex<Tensor>::value, 64);
}

TEST(Tensor, AccessorsOfACompactTensor) {
  const int before = blocks_alive;
  {
    Tensor tensor = Empty({4, 3, 2});
    EXPECT_EQ(blocks_alive, before + 1);
    EXPECT_EQ(Extents(tensor.shape()), V({4, 3, 2}));
    EXPECT_EQ(Extents(tensor.strides()), V({6, 2, 1}));
    EXPECT_EQ(tensor.dtype(), kFloat32);
    EXPECT_EQ(tensor.device().device_type, kDLCPU);
    EXPECT_EQ(tensor.ndim(), 3);
    EXPECT_EQ(tensor.dim(), 3);
    EXPECT_EQ(tensor.numel(), 24);
    EXPECT_EQ(tensor.byte_offset(), 0u);
    EXPECT_TRUE(tensor.IsContiguous() && tensor.is_contiguous());
    EXPECT_TRUE(tensor.IsAligned(4));
    EXPECT_EQ(tensor.size(0), 4);
    EXPECT_EQ(tensor.size(-1), 2);
    EXPECT_EQ(tensor.stride(-3), 6);
    EXPECT_EQ(Extents(tensor.sizes()), V({4, 3, 2}));
    EXPECT_EQ(ErrorText([&] { tensor.size(3); }),
              "IndexError: Index 3 out of bounds for tensor with 3 dimensions");
    EXPECT_EQ(ErrorText([&] { tensor.stride(-4); }),
              "IndexError: Index -4 out of bounds for tensor with 3 dimensions");
    EXPECT_EQ(ErrorText([&] { Empty({}).size(0); }),
              "IndexError: Index 0 out of bounds for tensor with 0 dimensions");
    EXPECT_EQ(tensor.use_count(), 1);
    Any any = tensor;
    EXPECT_EQ(tensor.use_count(), 2);
    EXPECT_TRUE(any.cast<Tensor>().same_as(tensor));
  }
  EXPECT_EQ(blocks_alive, before);
}

TEST(Tensor, AllocatorsGetTheirExtraArgumentsAndMayFail) {
  Tensor extra = Tensor::FromNDAlloc(HostAlloc(), {2}, kFloat32, kCpu, size_t{100});
  EXPECT_NE(extra.data_ptr(), nullptr);
  EXPECT_EQ(ErrorText([] { Tensor::FromNDAlloc(FailingAlloc(), {2}, kFloat32, kCpu); }),
            "MemoryError: none left");
  Tensor strided = Tensor::FromNDAllocStrided(HostAlloc(), {2, 3}, {1, 2}, kFloat32, kCpu);
  EXPECT_EQ(Extents(strided.strides()), V({1, 2}));
  EXPECT_FALSE(strided.IsContiguous());
  EXPECT_EQ(
      ErrorText([] {
        Tensor::FromNDAllocStrided(HostAlloc(), {2, 3}, {1}, kFloat32, kCpu);
      }),
      "ValueError: Check failed: (shape.size() == strides.size()) is false: shape and strides "
      "must have the same size.");
  EXPECT_EQ(ErrorText([] {
              Tensor::FromNDAllocStrided(HostAlloc(), ShapeView(), ShapeView(), kFloat32, kCpu);
            }),
            "InternalError: Check not null: prototype.strides ");
}

TEST(Tensor, EmptyTensorsAreContiguous) {
  Tensor tensor = Empty({2, 0, 3});
  EXPECT_EQ(tensor.numel(), 0);
  EXPECT_TRUE(tensor.IsContiguous());
  EXPECT_EQ(Extents(tensor.strides()), V({0, 3, 1}));
}

TEST(Tensor, NullIsNoneAndPointersAreNoTensors) {
  Tensor null;
  EXPECT_FALSE(null.defined());
  EXPECT_EQ(Any(null), nullptr);
  EXPECT_FALSE(Any(nullptr).cast<Tensor>().defined());
  std::vector<int64_t> shape = {1};
  DLTensor raw = MakeDLTensor(nullptr, &shape, nullptr);
  EXPECT_FALSE(AnyView(&raw).try_cast<Tensor>().has_value());
  EXPECT_TRUE(tether_test::Contains(ErrorText([&] { TensorView{null}; }), "InternalError"));
}

// ---- Views

TEST(Tensor, StridedViewsFoldTheOffsetIntoDirectAddresses) {
  Tensor tensor = Empty({4, 4});
  Tensor view = tensor.as_strided({2, 2}, {4, 1}, 5);
  EXPECT_EQ(view.data_ptr(), static_cast<float*>(tensor.data_ptr()) + 5);
  EXPECT_EQ(view.byte_offset(), 0u);
  EXPECT_EQ(Extents(view.shape()), V({2, 2}));
  EXPECT_EQ(Extents(view.strides()), V({4, 1}));
  EXPECT_EQ(tensor.use_count(), 2) << "the view keeps its source alive";
  Tensor nested = view.as_strided({1}, {1}, 1);
  EXPECT_EQ(nested.data_ptr(), static_cast<float*>(tensor.data_ptr()) + 6);
  EXPECT_EQ(tensor.as_strided({2}, {1}).data_ptr(), tensor.data_ptr());
  view = Tensor();
  EXPECT_EQ(tensor.use_count(), 2) << "through the nested view";
  nested = Tensor();
  EXPECT_EQ(tensor.use_count(), 1);
  EXPECT_TRUE(tether_test::Contains(ErrorText([&] { tensor.as_strided({1}, {1}, -1); }),
                                    "InternalError: Check failed: elem_offset_as_i64 >= 0 (-1"));
  EXPECT_EQ(ErrorText([&] { tensor.as_strided(ShapeView(), ShapeView()); }),
            "InternalError: Check not null: prototype.strides ");
  EXPECT_TRUE(tether_test::Contains(ErrorText([&] {
                                      tensor.as_strided({1, 2}, {1});
                                    }),
                                    "InternalError"));
}

TEST(Tensor, ViewsOfIndirectDevicesKeepTheOffset) {
  int handle = 0;
  Tensor tensor = Tensor::FromNDAlloc(FixedAlloc{&handle}, {8}, DLDataType{kDLFloat4_e2m1fn, 4, 1},
                                      DLDevice{kDLVulkan, 0});
  Tensor view = tensor.as_strided({2}, {1}, 4);
  EXPECT_EQ(view.data_ptr(), &handle);
  EXPECT_EQ(view.byte_offset(), 2u) << "four half-byte elements";
  EXPECT_EQ(view.as_strided({1}, {1}, 2).byte_offset(), 3u);
}

TEST(TensorView, SeesTheSameGeometry) {
  static_assert(!std::is_constructible_v<TensorView, Tensor&&>);
  static_assert(!std::is_assignable_v<TensorView&, Tensor&&>);
  static_assert(std::is_convertible_v<const Tensor&, TensorView>);
  Tensor tensor = Empty({4, 3});
  TensorView view = tensor;
  EXPECT_EQ(view.data_ptr(), tensor.data_ptr());
  EXPECT_EQ(Extents(view.shape()), V({4, 3}));
  EXPECT_EQ(Extents(view.strides()), V({3, 1}));
  EXPECT_EQ(view.size(-1), 3);
  EXPECT_EQ(view.stride(0), 3);
  EXPECT_EQ(view.numel(), 12);
  EXPECT_EQ(view.ndim(), 2);
  EXPECT_EQ(view.dim(), 2);
  EXPECT_EQ(view.dtype(), kFloat32);
  EXPECT_EQ(view.device().device_id, 0);
  EXPECT_EQ(view.byte_offset(), 0u);
  EXPECT_TRUE(view.IsContiguous() && view.is_contiguous());
  EXPECT_EQ(Extents(view.sizes()), V({4, 3}));
  EXPECT_EQ(ErrorText([&] { view.size(2); }),
            "IndexError: Index 2 out of bounds for tensor with 2 dimensions");
  int64_t shape[] = {2}, strides[] = {6};
  TensorView part = view.as_strided(ShapeView(shape, 1), ShapeView(strides, 1), 1);
  EXPECT_EQ(part.data_ptr(), static_cast<float*>(tensor.data_ptr()) + 1);
  EXPECT_EQ(part.shape().data(), shape) << "the caller's arrays";
  EXPECT_TRUE(tether_test::Contains(ErrorText([&] {
                                      view.as_strided({1, 1}, {1});
                                    }),
                                    "InternalError"));
  Tensor other = Empty({1});
  view = other;
  EXPECT_EQ(view.data_ptr(), other.data_ptr());
  EXPECT_TRUE(tether_test::Contains(
      ErrorText([] { TensorView view(static_cast<const DLTensor*>(nullptr)); }), "InternalError"));
  DLTensor no_strides = *tensor.GetDLTensorPtr();
  no_strides.strides = nullptr;
  EXPECT_TRUE(tether_test::Contains(ErrorText([&] { TensorView(&no_strides).strides(); }),
                                    "InternalError"));
}

TEST(TensorView, TravelsAsAPointer) {
  Tensor tensor = Empty({5});
  TensorView view = tensor;
  AnyView any = view;
  EXPECT_EQ(any.type_index(), kTVMFFIDLTensorPtr);
  EXPECT_EQ(any.cast<TensorView>().data_ptr(), tensor.data_ptr());
  EXPECT_TRUE(any.as<TensorView>().has_value());
  EXPECT_EQ(any.cast<DLTensor*>()->ndim, 1);
  AnyView of_tensor = tensor;
  EXPECT_FALSE(of_tensor.as<TensorView>().has_value());
  EXPECT_EQ(of_tensor.cast<TensorView>().numel(), 5);
  EXPECT_EQ(of_tensor.cast<DLTensor*>(), tensor.GetDLTensorPtr());
  EXPECT_EQ(Any(tensor).cast<TensorView>().numel(), 5);
  EXPECT_EQ(Any(tensor).cast<DLTensor*>(), tensor.GetDLTensorPtr());
  EXPECT_EQ(ErrorText([] { Any(nullptr).cast<TensorView>(); }),
            "TypeError: Cannot convert from type `None` to `DLTensor*`");
  EXPECT_EQ(ErrorText([] { AnyView().cast<DLTensor*>(); }),
            "TypeError: Cannot convert from type `None` to `DLTensor*`");
  Any copied(any);
  EXPECT_EQ(copied.type_index(), kTVMFFIDLTensorPtr) << "a pointer, not owned";
  DLTensor* raw = const_cast<DLTensor*>(tensor.GetDLTensorPtr());
  EXPECT_EQ(ErrorText([&] { Any owned(raw); }),
            "RuntimeError: DLTensor* cannot be held in Any as it does not retain ownership, use "
            "Tensor instead");
  EXPECT_TRUE(tether_test::Contains(
      ErrorText([] { AnyView view(static_cast<DLTensor*>(nullptr)); }), "InternalError"));
  EXPECT_EQ(TypeTraits<TensorView>::TypeStr(), "DLTensor*");
  EXPECT_EQ(TypeTraits<TensorView>::TypeSchema(), R"({"type":"DLTensor*"})");
  EXPECT_EQ(TypeToFieldStaticTypeIndex<DLTensor*>::value, 7);
  EXPECT_EQ(TypeToFieldStaticTypeIndex<TensorView>::value, 7);
  Function f = Function::FromTyped([](TensorView v, Optional<TensorView> w) {
    return v.numel() + (w.has_value() ? w.value().numel() : 0);
  });
  EXPECT_EQ(f(tensor, view).cast<int>(), 10);
  EXPECT_EQ(f(raw, nullptr).cast<int>(), 5);
}

// ---- DLPack

TEST(DLPack, ALegacyRoundTripSharesTheData) {
  Tensor tensor = Empty({1, 2, 3});
  DLManagedTensor* managed = tensor.ToDLPack();
  EXPECT_EQ(tensor.use_count(), 2);
  EXPECT_EQ(managed->dl_tensor.data, tensor.data_ptr());
  EXPECT_EQ(managed->dl_tensor.shape, tensor.GetDLTensorPtr()->shape) << "arrays are shared";
  EXPECT_EQ(managed->manager_ctx, static_cast<const ObjectRef&>(tensor).get());
  {
    Tensor imported = Tensor::FromDLPack(managed);
    EXPECT_EQ(imported.use_count(), 1);
    EXPECT_EQ(imported.data_ptr(), tensor.data_ptr());
    EXPECT_EQ(tensor.use_count(), 2);
  }
  EXPECT_EQ(tensor.use_count(), 1);
  managed = tensor.ToDLPack();
  managed->deleter(managed);
  EXPECT_EQ(tensor.use_count(), 1);
}

TEST(DLPack, AVersionedRoundTripSharesTheData) {
  Tensor tensor = Empty({2}, DLDataType{kDLFloat4_e2m1fn, 4, 1});
  DLManagedTensorVersioned* managed = tensor.ToDLPackVersioned();
  EXPECT_EQ(managed->version.major, 1u);
  EXPECT_EQ(managed->version.minor, 3u);
  EXPECT_EQ(managed->flags, 0u);
  EXPECT_EQ(managed->dl_tensor.dtype.code, kDLFloat4_e2m1fn);
  Tensor imported = Tensor::FromDLPackVersioned(managed);
  EXPECT_EQ(imported.data_ptr(), tensor.data_ptr());
  EXPECT_EQ(tensor.use_count(), 2);
  imported = Tensor();
  EXPECT_EQ(tensor.use_count(), 1);
}

// A managed struct of the test's own, which counts its deletions.
struct Producer {
  std::vector<int64_t> shape = {2, 3};
  std::vector<int64_t> strides;
  alignas(64) float data[8] = {};
  DLManagedTensorVersioned managed{};
  int deleted = 0;

  Producer() {
    managed.version = {1, 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) {
      ++static_cast<Producer*>(self->manager_ctx)->deleted;
    };
    managed.dl_tensor = MakeDLTensor(data, &shape, nullptr);
  }
};

TEST(DLPack, MissingStridesAreFilledIn) {
  Producer producer;
  {
    Tensor tensor = Tensor::FromDLPackVersioned(&producer.managed);
    EXPECT_EQ(Extents(tensor.strides()), V({3, 1}));
    EXPECT_EQ(tensor.shape().data(), producer.shape.data()) << "the producer's array";
    EXPECT_EQ(producer.managed.dl_tensor.strides, nullptr) << "the producer's struct is untouched";
    EXPECT_EQ(producer.deleted, 0);
  }
  EXPECT_EQ(producer.deleted, 1);
  producer.managed.deleter = nullptr;
  Tensor undeletable = Tensor::FromDLPackVersioned(&producer.managed);
  undeletable = Tensor();
  EXPECT_EQ(producer.deleted, 1);
  Producer scalar;
  scalar.managed.dl_tensor.ndim = 0;
  Tensor tensor = Tensor::FromDLPackVersioned(&scalar.managed);
  EXPECT_EQ(tensor.strides().size(), 0u);
  EXPECT_EQ(tensor.numel(), 1);
}

TEST(DLPack, ARefusedImportLeavesTheProducerItsTensor) {
  Producer producer;
  producer.managed.dl_tensor.data = producer.data + 1;
  EXPECT_EQ(ErrorText([&] { Tensor::FromDLPackVersioned(&producer.managed, 64); }),
            "RuntimeError: FromDLPack: Data is not aligned to 64 bytes.");
  producer.strides = {1, 2};
  producer.managed.dl_tensor.strides = producer.strides.data();
  EXPECT_EQ(ErrorText([&] { Tensor::FromDLPackVersioned(&producer.managed, 0, true); }),
            "RuntimeError: FromDLPack: Tensor is not contiguous.");
  producer.managed.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  EXPECT_EQ(ErrorText([&] { Tensor::FromDLPackVersioned(&producer.managed); }),
            "RuntimeError: Subbyte type padded is not yet supported");
  EXPECT_EQ(producer.deleted, 0);
  producer.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
  producer.managed.version = {9, 9};
  { Tensor accepted = Tensor::FromDLPackVersioned(&producer.managed); }
  EXPECT_EQ(producer.deleted, 1);
}

TEST(DLPack, AReadOnlyTensorStaysOne) {
  Producer producer;
  producer.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
  auto flags_of = [](const Tensor& tensor) {
    DLManagedTensorVersioned* managed = tensor.ToDLPackVersioned();
    const uint64_t flags = managed->flags;
    managed->deleter(managed);
    return flags;
  };
  {
    Tensor tensor = Tensor::FromDLPackVersioned(&producer.managed);
    EXPECT_EQ(tensor.data_ptr(), producer.managed.dl_tensor.data);
    EXPECT_EQ(flags_of(tensor), DLPACK_FLAG_BITMASK_READ_ONLY);
    Tensor view = tensor.as_strided({1}, {1});
    EXPECT_EQ(flags_of(view), DLPACK_FLAG_BITMASK_READ_ONLY);
    EXPECT_EQ(flags_of(view.as_strided({1}, {1})), DLPACK_FLAG_BITMASK_READ_ONLY);
    EXPECT_NE(ErrorText([&] { view.ToDLPack(); }).find("BufferError: a read-only tensor"),
              std::string::npos);
    EXPECT_EQ(flags_of(DeepCopy(view).cast<Tensor>()), 0u) << "a copy may be written";
    Tensor again = Tensor::FromDLPackVersioned(view.ToDLPackVersioned());
    EXPECT_EQ(flags_of(again), DLPACK_FLAG_BITMASK_READ_ONLY);
  }
  EXPECT_EQ(producer.deleted, 1);
}

TEST(DLPack, TheHeaderMatchesTheStandard) {
  static_assert(DLPACK_MAJOR_VERSION == 1 && DLPACK_MINOR_VERSION == 3);
  static_assert(sizeof(DLManagedTensor) == 64 && sizeof(DLManagedTensorVersioned) == 80);
  static_assert(sizeof(DLPackExchangeAPI) == 56 && sizeof(DLPackExchangeAPIHeader) == 16);
  static_assert(kDLTrn == 18 && kDLMAIA == 17 && kDLExtDev == 12 && kDLVulkan == 7);
  static_assert(kDLFloat8_e3m4 == 7 && kDLFloat4_e2m1fn == 17 && kDLBool == 6);
  DLDataType dtype = kFloat32;
  EXPECT_TRUE(dtype.code == kDLFloat);
  EXPECT_EQ(offsetof(DLPackExchangeAPI, current_work_stream), 48u);
}

// ---- C functions

Tensor Adopt(TVMFFIObjectHandle handle) {
  return Tensor(
      details::ObjectUnsafe::ObjectPtrFromOwned<TensorObj>(static_cast<TVMFFIObject*>(handle)));
}

TEST(TensorC, ExchangeFunctions) {
  Tensor tensor = Empty({2, 2});
  TVMFFIObjectHandle handle = details::ObjectUnsafe::RawObjectPtrFromObjectRef(tensor);
  DLManagedTensor* legacy = nullptr;
  DLManagedTensorVersioned* versioned = nullptr;
  TVMFFIObjectHandle out = nullptr;
  ASSERT_EQ(TVMFFITensorToDLPack(handle, &legacy), 0);
  ASSERT_EQ(TVMFFITensorFromDLPack(legacy, 4, 1, &out), 0);
  EXPECT_EQ(Adopt(out).data_ptr(), tensor.data_ptr());
  ASSERT_EQ(TVMFFITensorToDLPackVersioned(handle, &versioned), 0);
  ASSERT_EQ(TVMFFITensorFromDLPackVersioned(versioned, 0, 0, &out), 0);
  EXPECT_EQ(Adopt(out).data_ptr(), tensor.data_ptr());
  EXPECT_EQ(tensor.use_count(), 1);
}

TEST(TensorC, ErrorsAreRaisedAndNothingIsTaken) {
  Producer producer;
  producer.managed.dl_tensor.data = producer.data + 1;
  TVMFFIObjectHandle out = nullptr;
  EXPECT_EQ(TVMFFITensorFromDLPackVersioned(&producer.managed, 64, 0, &out), -1);
  Error error = details::MoveFromSafeCallRaised();
  EXPECT_EQ(error.kind(), "RuntimeError");
  EXPECT_EQ(error.message(), "FromDLPack: Data is not aligned to 64 bytes.");
  EXPECT_EQ(producer.deleted, 0);
  Box box(1);
  DLManagedTensor* legacy = nullptr;
  EXPECT_EQ(TVMFFITensorToDLPack(details::ObjectUnsafe::RawObjectPtrFromObjectRef(box), &legacy),
            -1);
  EXPECT_EQ(details::MoveFromSafeCallRaised().kind(), "TypeError");
}

TEST(TensorC, AnUnsafeViewKeepsAnyObjectAlive) {
  const int before = BoxObj::alive;
  Tensor view;
  float data[6] = {};
  {
    Box owner(1);
    std::vector<int64_t> shape = {3, 2}, strides = {2, 1};
    DLTensor prototype = MakeDLTensor(data, &shape, &strides);
    prototype.byte_offset = 4;
    TVMFFIObjectHandle out = nullptr;
    ASSERT_EQ(TVMFFITensorCreateUnsafeView(details::ObjectUnsafe::RawObjectPtrFromObjectRef(owner),
                                           &prototype, &out),
              0);
    view = Adopt(out);
    EXPECT_NE(view.shape().data(), shape.data()) << "shape and strides are copies";
    EXPECT_EQ(owner.use_count(), 2);
    prototype.strides = nullptr;
    EXPECT_EQ(TVMFFITensorCreateUnsafeView(details::ObjectUnsafe::RawObjectPtrFromObjectRef(owner),
                                           &prototype, &out),
              -1);
    EXPECT_EQ(details::MoveFromSafeCallRaised().message(), "Check not null: prototype.strides ");
  }
  EXPECT_EQ(BoxObj::alive, before + 1);
  EXPECT_EQ(Extents(view.shape()), V({3, 2}));
  EXPECT_EQ(view.byte_offset(), 4u);
  EXPECT_EQ(view.data_ptr(), data);
  view = Tensor();
  EXPECT_EQ(BoxObj::alive, before);
}

// ---- Allocation by the host framework

int EnvAllocate(DLTensor* prototype, DLManagedTensorVersioned** out, void*,
                void (*)(void*, const char*, const char*)) {
  Tensor tensor =
      Empty(ShapeView(prototype->shape, static_cast<size_t>(prototype->ndim)), prototype->dtype);
  *out = tensor.ToDLPackVersioned();
  return 0;
}

int EnvFail(DLTensor*, DLManagedTensorVersioned**, void* context,
            void (*set_error)(void*, const char*, const char*)) {
  set_error(context, "MemoryError", "the host has none");
  return -1;
}

TEST(Tensor, AllocatesThroughTheEnvironment) {
  DLPackManagedTensorAllocator original = nullptr;
  TVMFFIEnvSetDLPackManagedTensorAllocator(EnvAllocate, 0, &original);
  Tensor tensor = Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, {2, 3}, kFloat32, kCpu);
  EXPECT_EQ(tensor.use_count(), 1);
  EXPECT_EQ(Extents(tensor.shape()), V({2, 3}));
  EXPECT_EQ(Extents(tensor.strides()), V({3, 1}));
  TVMFFIEnvSetDLPackManagedTensorAllocator(EnvFail, 0, nullptr);
  EXPECT_EQ(ErrorText([] {
              Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, {2, 3}, kFloat32, kCpu);
            }),
            "MemoryError: the host has none");
  TVMFFIEnvSetDLPackManagedTensorAllocator(original, 0, nullptr);
}

}  // namespace
