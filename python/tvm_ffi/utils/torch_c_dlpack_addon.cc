// SPDX-License-Identifier: Apache-2.0
// The DLPack exchange API of torch.Tensor, compiled against the headers of one release of torch by
// _build_optional_torch_c_dlpack.py. It is for releases without an API of their own, and faster
// than the API of those that have one: a tensor is read where it is, without calling torch.
//
// Every function returns 0, or -1 with a Python error set. None of them waits for a device.
#include <dlpack/dlpack.h>  // first: torch has an older copy with the same guard

#include <torch/version.h>

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/Stream.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <new>

#if TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR < 204
#error "torch 2.4 or newer is needed"
#endif

// What is used of c10/cuda/CUDAStream.h and c10/hip/HIPStream.h. Those headers need the toolkits of
// the vendors, which an environment with torch need not have. The classes hold a c10::Stream and
// nothing else, and a pointer stands for the vendor's type, so calls are the same.
#if defined(TVM_FFI_TORCH_WITH_CUDA)
namespace c10::cuda {
struct CUDAStream {
  void* stream() const;
  c10::Stream stream_;
};
CUDAStream getCurrentCUDAStream(c10::DeviceIndex device);
}  // namespace c10::cuda
#elif defined(TVM_FFI_TORCH_WITH_ROCM)
namespace c10::hip {
struct HIPStream {
  void* stream() const;
  c10::Stream stream_;
};
HIPStream getCurrentHIPStream(c10::DeviceIndex device);
}  // namespace c10::hip
#endif

namespace {

// ---- element types and devices

constexpr size_t kNumTypes = static_cast<size_t>(c10::ScalarType::NumOptions);

// By the number of the type in torch; `bits` is 0 for those that DLPack has no name for.
constexpr std::array<DLDataType, kNumTypes> MakeTypes() {
  std::array<DLDataType, kNumTypes> types{};
  auto set = [&types](c10::ScalarType type, int code, int bits, int lanes = 1) {
    types[static_cast<size_t>(type)] = {static_cast<uint8_t>(code), static_cast<uint8_t>(bits),
                                        static_cast<uint16_t>(lanes)};
  };
  using T = c10::ScalarType;
  set(T::Byte, kDLUInt, 8);
  set(T::UInt16, kDLUInt, 16);
  set(T::UInt32, kDLUInt, 32);
  set(T::UInt64, kDLUInt, 64);
  set(T::Char, kDLInt, 8);
  set(T::Short, kDLInt, 16);
  set(T::Int, kDLInt, 32);
  set(T::Long, kDLInt, 64);
  set(T::Half, kDLFloat, 16);
  set(T::Float, kDLFloat, 32);
  set(T::Double, kDLFloat, 64);
  set(T::BFloat16, kDLBfloat, 16);
  set(T::Bool, kDLBool, 8);
  set(T::ComplexHalf, kDLComplex, 32);
  set(T::ComplexFloat, kDLComplex, 64);
  set(T::ComplexDouble, kDLComplex, 128);
  set(T::Float8_e5m2, kDLFloat8_e5m2, 8);
  set(T::Float8_e5m2fnuz, kDLFloat8_e5m2fnuz, 8);
  set(T::Float8_e4m3fn, kDLFloat8_e4m3fn, 8);
  set(T::Float8_e4m3fnuz, kDLFloat8_e4m3fnuz, 8);
#if TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR >= 207
  set(T::Float8_e8m0fnu, kDLFloat8_e8m0fnu, 8);
#endif
#if TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR >= 208
  set(T::Float4_e2m1fn_x2, kDLFloat4_e2m1fn, 4, 2);
#endif
  return types;
}
constexpr std::array<DLDataType, kNumTypes> kTypes = MakeTypes();

c10::ScalarType TypeFrom(DLDataType wanted) {
  for (size_t i = 0; i < kNumTypes; ++i) {
    const DLDataType& type = kTypes[i];
    if (type.bits == wanted.bits && type.code == wanted.code && type.lanes == wanted.lanes) {
      return static_cast<c10::ScalarType>(i);
    }
  }
  TORCH_CHECK(false, "torch has no element type with code ", int{wanted.code}, ", ",
              int{wanted.bits}, " bits and ", wanted.lanes, " lanes");
}

#if defined(TVM_FFI_TORCH_WITH_ROCM)
constexpr DLDeviceType kCudaOfTorch = kDLROCM;  // torch calls its ROCm devices "cuda"
#else
constexpr DLDeviceType kCudaOfTorch = kDLCUDA;
#endif

DLDevice DeviceOf(c10::Device device) {
  auto index = static_cast<int32_t>(device.has_index() ? device.index() : 0);
  switch (device.type()) {
    case c10::DeviceType::CPU:
      return {kDLCPU, 0};
    case c10::DeviceType::CUDA:
      return {kCudaOfTorch, index};
    case c10::DeviceType::HIP:
      return {kDLROCM, index};
    case c10::DeviceType::MPS:
      return {kDLMetal, index};
    case c10::DeviceType::MAIA:
      return {kDLMAIA, index};
    case c10::DeviceType::PrivateUse1:
      return {kDLExtDev, index};
    default:
      TORCH_CHECK(false, "a tensor on ", device.str(), " cannot be exchanged");
  }
}

c10::Device DeviceFrom(DLDevice device) {
  auto index = static_cast<c10::DeviceIndex>(device.device_id);
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
    case kDLROCMHost:
      return c10::Device(c10::DeviceType::CPU);
    case kDLCUDA:
    case kDLCUDAManaged:
    case kDLROCM:
      return c10::Device(c10::DeviceType::CUDA, index);
    case kDLMetal:
      return c10::Device(c10::DeviceType::MPS, index);
    case kDLMAIA:
      return c10::Device(c10::DeviceType::MAIA, index);
    case kDLExtDev:
      return c10::Device(c10::DeviceType::PrivateUse1, index);
    default:
      TORCH_CHECK(false, "torch has no device of DLPack's type ", int{device.device_type});
  }
}

// ---- errors

template <typename F>
int Guarded(F&& body) {
  try {
    body();
    return 0;
  } catch (python_error& error) {  // raised by a Python method that torch called
    error.restore();
  } catch (const c10::TypeError& error) {
    PyErr_SetString(PyExc_TypeError, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return -1;
}

// ---- from torch

const at::Tensor& Unpack(void* object) {
  auto* tensor = static_cast<PyObject*>(object);
  TORCH_CHECK_TYPE(
      PyObject_TypeCheck(tensor, reinterpret_cast<PyTypeObject*>(THPVariableClass)) != 0,
      "expected a torch.Tensor, got ", Py_TYPE(tensor)->tp_name);
  return THPVariable_Unpack(tensor);
}

// Says what is unusual about a tensor that could not be described.
[[gnu::cold]] [[noreturn]] void Refuse(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.defined(), "the tensor is not defined");
  TORCH_CHECK(tensor.layout() == c10::Layout::Strided, "a tensor with the layout ", tensor.layout(),
              " cannot be exchanged");
  TORCH_CHECK(!tensor.is_conj() && !tensor.is_neg(),
              "a tensor with the conj or neg bit set cannot share its memory, which has other "
              "values; use tensor.resolve_conj() or tensor.resolve_neg()");
  TORCH_CHECK(!tensor.is_meta(), "a tensor on meta has no memory");
  TORCH_CHECK(kTypes[static_cast<size_t>(tensor.scalar_type())].bits != 0,
              "DLPack has no name for the element type ", tensor.scalar_type());
  TORCH_CHECK(false,
              "the tensor has no memory, like those of a FakeTensorMode or of a transformation");
}

// Shape and strides stay where torch has them.
void Describe(const at::Tensor& tensor, DLTensor* out) {
  at::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  constexpr c10::DispatchKeySet kSigns({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});
  bool is_plain = tensor.defined() && impl->layout() == c10::Layout::Strided &&
                  !impl->key_set().has_any(kSigns);
  if (C10_UNLIKELY(!is_plain)) Refuse(tensor);
  c10::IntArrayRef sizes = impl->sizes();
  out->dtype = kTypes[static_cast<size_t>(c10::typeMetaToScalarType(impl->dtype()))];
  out->data = impl->mutable_data();
  bool is_empty = impl->numel() == 0;
  if (C10_UNLIKELY(out->dtype.bits == 0 || (out->data == nullptr && !is_empty))) Refuse(tensor);
  out->device = DeviceOf(impl->device());
  out->ndim = static_cast<int32_t>(sizes.size());
  out->shape = const_cast<int64_t*>(sizes.data());
  out->strides = const_cast<int64_t*>(impl->strides().data());
  out->byte_offset = 0;
}

int DLTensorFromPyObject(void* object, DLTensor* out) {
  return Guarded([&] { Describe(Unpack(object), out); });
}

// A tensor that others own a part in. Shape and strides, which may be changed in place, are behind.
struct Shared {
  at::Tensor tensor;
  DLManagedTensorVersioned managed;
};

struct DeleteShared {
  void operator()(Shared* shared) const {
    shared->~Shared();
    std::free(shared);
  }
};

DLManagedTensorVersioned* Share(const at::Tensor& tensor) {
  DLTensor view;
  Describe(tensor, &view);
  auto ndim = static_cast<size_t>(view.ndim);
  void* memory = std::malloc(sizeof(Shared) + 2 * ndim * sizeof(int64_t));
  if (memory == nullptr) throw std::bad_alloc();
  auto* shared = new (memory) Shared{tensor, {}};
  auto* extents = reinterpret_cast<int64_t*>(shared + 1);
  std::copy(view.shape, view.shape + ndim, extents);
  std::copy(view.strides, view.strides + ndim, extents + ndim);
  view.shape = extents;
  view.strides = extents + ndim;
  DLManagedTensorVersioned& managed = shared->managed;
  managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.manager_ctx = shared;
  managed.deleter = [](DLManagedTensorVersioned* self) {
    DeleteShared()(static_cast<Shared*>(self->manager_ctx));
  };
  managed.flags = 0;
  managed.dl_tensor = view;
  return &managed;
}

int ManagedTensorFromPyObject(void* object, DLManagedTensorVersioned** out) {
  return Guarded([&] { *out = Share(Unpack(object)); });
}

// ---- to torch

void DeleteManaged(void* managed) {
  auto* self = static_cast<DLManagedTensorVersioned*>(managed);
  if (self->deleter != nullptr) self->deleter(self);
}

at::Tensor TakeOver(DLManagedTensorVersioned* managed) {
  const DLTensor& t = managed->dl_tensor;
  std::unique_ptr<void, void (*)(void*)> owner(managed, DeleteManaged);
  TORCH_CHECK(managed->version.major == DLPACK_MAJOR_VERSION, "the tensor has DLPack version ",
              managed->version.major, ".", managed->version.minor, "; only ", DLPACK_MAJOR_VERSION,
              ".x is understood");
  c10::Device device = DeviceFrom(t.device);
  c10::ScalarType type = TypeFrom(t.dtype);
  c10::IntArrayRef sizes(t.shape, static_cast<size_t>(t.ndim));
  c10::SmallVector<int64_t, 8> row_major(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) {
    row_major[i - 1] = row_major[i] * std::max<int64_t>(sizes[i], 1);
  }
  c10::IntArrayRef strides =
      t.strides != nullptr ? c10::IntArrayRef(t.strides, sizes.size()) : row_major;
  auto options = c10::TensorOptions().dtype(type).device(device);
  size_t num_bytes = at::detail::computeStorageNbytes(sizes, strides, options.dtype().itemsize());
  c10::DataPtr data(static_cast<char*>(t.data) + t.byte_offset, owner.release(), DeleteManaged,
                    device);
  c10::Storage storage(c10::Storage::use_byte_size_t{}, num_bytes, std::move(data),
                       /*allocator=*/nullptr, /*resizable=*/false);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), options.computeDispatchKey(), options.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

int ManagedTensorToPyObject(DLManagedTensorVersioned* managed, void** out) {
  *out = nullptr;
  int status = Guarded([&] { *out = THPVariable_Wrap(TakeOver(managed)); });
  return *out != nullptr ? status : -1;
}

// ---- the rest

int Allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
             void (*set_error)(void*, const char*, const char*)) {
  try {
    auto options = c10::TensorOptions()
                       .dtype(TypeFrom(prototype->dtype))
                       .device(DeviceFrom(prototype->device));
    c10::IntArrayRef sizes(prototype->shape, static_cast<size_t>(prototype->ndim));
    *out = Share(at::empty(sizes, options));
    return 0;
  } catch (const c10::Error& error) {
    set_error(context, "MemoryError", error.what_without_backtrace());
  } catch (const std::exception& error) {
    set_error(context, "MemoryError", error.what());
  }
  return -1;
}

// The vendor's handle. The default stream of every device has the id 0 and no handle; for others
// torch makes the device current first, which takes longer than all the rest.
template <typename VendorStream>
[[maybe_unused]] void* HandleOf(const VendorStream& current) {
  return current.stream_.id() == 0 ? nullptr : current.stream();
}

int CurrentWorkStream(DLDeviceType type, int32_t id, void** out) {
  *out = nullptr;
  return Guarded([&] {
    if (type != kCudaOfTorch) return;
#if defined(TVM_FFI_TORCH_WITH_CUDA)
    *out = HandleOf(c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(id)));
#elif defined(TVM_FFI_TORCH_WITH_ROCM)
    *out = HandleOf(c10::hip::getCurrentHIPStream(static_cast<c10::DeviceIndex>(id)));
#endif
  });
}

DLPackExchangeAPI api = {{{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, nullptr},
                         Allocate,
                         ManagedTensorFromPyObject,
                         ManagedTensorToPyObject,
                         DLTensorFromPyObject,
                         CurrentWorkStream};

}  // namespace

extern "C" __attribute__((visibility("default"))) int64_t TorchDLPackExchangeAPIPtr() {
  return reinterpret_cast<int64_t>(&api);
}
