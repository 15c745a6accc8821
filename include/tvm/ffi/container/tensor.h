// SPDX-License-Identifier: Apache-2.0
// Tensor: a DLTensor with an owner; TensorView: a view of one.
//
//   struct HostAlloc {
//     void AllocData(DLTensor* t) { t->data = malloc(GetDataSize(*t)); }
//     void FreeData(DLTensor* t) { free(t->data); }
//   };
//   Tensor t = Tensor::FromNDAlloc(HostAlloc(), {2, 3}, DLDataType{kDLFloat, 32, 1}, {kDLCPU, 0});
//   t.shape();            // {2, 3}
//   t.strides();          // {3, 1}: never null unless ndim is 0
//   DLManagedTensorVersioned* exported = t.ToDLPackVersioned();
#ifndef TVM_FFI_CONTAINER_TENSOR_H_
#define TVM_FFI_CONTAINER_TENSOR_H_

#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/device.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/type_traits.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>

namespace tvm {
namespace ffi {

// Whether DLTensor::data is an address that byte offsets can be added to.
inline bool IsDirectAddressDevice(const DLDevice& device) {
  return device.device_type <= kDLCUDAHost || device.device_type == kDLCUDAManaged ||
         device.device_type == kDLROCM || device.device_type == kDLROCMHost;
}

inline bool IsContiguous(const DLTensor& arr) {
  if (arr.strides == nullptr) return true;
  for (int32_t i = 0; i < arr.ndim; ++i) {
    if (arr.shape[i] == 0) return true;
  }
  uint64_t expected = 1;
  for (int32_t i = arr.ndim; i-- > 0;) {
    // The stride of a single element is never used.
    if (arr.shape[i] == 1) continue;
    if (static_cast<uint64_t>(arr.strides[i]) != expected) return false;
    expected *= static_cast<uint64_t>(arr.shape[i]);
  }
  return true;
}

inline bool IsAligned(const DLTensor& arr, size_t alignment) {
  if (IsDirectAddressDevice(arr.device)) {
    return (reinterpret_cast<uintptr_t>(arr.data) + arr.byte_offset) % alignment == 0;
  }
  return arr.byte_offset % alignment == 0;
}

// Bytes of `numel` packed elements; types narrower than a byte share bytes.
inline size_t GetDataSize(size_t numel, DLDataType dtype) {
  const uint64_t bits = static_cast<uint64_t>(numel) * dtype.bits * dtype.lanes;
  return static_cast<size_t>((bits + 7) / 8);
}

inline size_t GetDataSize(const DLTensor& arr) {
  const int64_t numel = tether::ExtentProduct(arr.shape, static_cast<size_t>(arr.ndim));
  return GetDataSize(static_cast<size_t>(numel), arr.dtype);
}

class TensorObj : public Object, public DLTensor {
 public:
  static constexpr uint32_t _type_index = TypeIndex::kTVMFFITensor;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC(StaticTypeKey::kTVMFFITensor, TensorObj, Object);

  TensorObj() noexcept : DLTensor{} {}

  DLManagedTensor* ToDLPack() const;
  DLManagedTensorVersioned* ToDLPackVersioned() const;
};

static_assert(sizeof(void*) != 8 || sizeof(TensorObj) == 72, "clients inline this layout");

namespace tether {

// A managed struct that holds one reference to its tensor. Only the library calls this, because it
// knows which tensors are read-only.
template <typename TManaged>
TManaged* ExportTensor(const TensorObj* tensor) {
  TManaged* managed = new TManaged();
  managed->dl_tensor = *static_cast<const DLTensor*>(tensor);
  managed->manager_ctx = detail::ObjectUnsafe::GetHeader(tensor);
  managed->deleter = [](TManaged* self) {
    detail::ObjectUnsafe::DecRefObjectHandle(self->manager_ctx);
    delete self;
  };
  detail::ObjectUnsafe::IncRefObjectHandle(managed->manager_ctx);
  return managed;
}

// Owns data that an allocator object made. Shape and strides follow the object.
template <typename TNDAlloc>
class AllocatedTensorObj : public TensorObj {
 public:
  template <typename... ExtraArgs>
  AllocatedTensorObj(TNDAlloc alloc, const DLTensor& prototype, ExtraArgs&&... extra_args)
      : alloc_(std::move(alloc)) {
    *static_cast<DLTensor*>(this) = prototype;
    int64_t* extents =
        reinterpret_cast<int64_t*>(reinterpret_cast<char*>(this) + sizeof(AllocatedTensorObj));
    std::copy(prototype.shape, prototype.shape + ndim, extents);
    std::copy(prototype.strides, prototype.strides + ndim, extents + ndim);
    this->shape = extents;
    this->strides = extents + ndim;
    // Last, so that nothing is freed that was not allocated.
    alloc_.AllocData(static_cast<DLTensor*>(this), std::forward<ExtraArgs>(extra_args)...);
  }
  ~AllocatedTensorObj() { alloc_.FreeData(static_cast<DLTensor*>(this)); }

  template <typename... ExtraArgs>
  static ObjectPtr<TensorObj> Make(TNDAlloc alloc, const DLTensor& prototype,
                                   ExtraArgs&&... extra_args) {
    return make_inplace_array_object<AllocatedTensorObj, int64_t>(
        static_cast<size_t>(prototype.ndim) * 2, std::move(alloc), prototype,
        std::forward<ExtraArgs>(extra_args)...);
  }

 private:
  TNDAlloc alloc_;
};

// Owns an imported managed struct. Strides that it lacks follow the object.
template <typename TManaged>
class ImportedTensorObj : public TensorObj {
 public:
  explicit ImportedTensorObj(TManaged* managed, bool fill_strides) noexcept : managed_(managed) {
    *static_cast<DLTensor*>(this) = managed->dl_tensor;
    if (!fill_strides) return;
    int64_t* extents =
        reinterpret_cast<int64_t*>(reinterpret_cast<char*>(this) + sizeof(ImportedTensorObj));
    detail::FillStridesFromShape(ShapeView(shape, static_cast<size_t>(ndim)), extents);
    this->strides = extents;
  }
  ~ImportedTensorObj() {
    if (managed_->deleter != nullptr) managed_->deleter(managed_);
  }

  static ObjectPtr<TensorObj> Make(TManaged* managed) {
    const DLTensor& tensor = managed->dl_tensor;
    const bool fill_strides = tensor.strides == nullptr && tensor.ndim > 0;
    return make_inplace_array_object<ImportedTensorObj, int64_t>(
        fill_strides ? static_cast<size_t>(tensor.ndim) : 0, managed, fill_strides);
  }

 private:
  TManaged* managed_;
};

// More than any library makes. A larger number is garbage, and the shape it counts is not read.
constexpr int32_t kMaxTensorDims = 1024;

// What makes a tensor invalid.
enum class Defect : uint8_t {
  kNone,
  kDimensions,      // an impossible number of dimensions
  kNoShape,         // dimensions without extents
  kElement,         // elements without bits
  kNegativeExtent,  // an extent below zero
  kSize,            // more bytes than fit in 63 bits
  kStrides,         // elements farther apart than that
  kNoMemory,        // elements at address 0
  kOffset,          // an offset that leads past the end of the address space
};

// The first defect of a tensor from outside. Empty tensors need no memory, and
// their strides mean nothing.
inline Defect FindDefect(const DLTensor& t) {
  if (t.ndim < 0 || t.ndim > kMaxTensorDims) return Defect::kDimensions;
  if (t.ndim > 0 && t.shape == nullptr) return Defect::kNoShape;
  // In bits, so that the size in bytes of anything that passes is exact.
  const uint64_t element = uint64_t{t.dtype.bits} * t.dtype.lanes;
  if (element == 0) return Defect::kElement;
  uint64_t size = element;
  bool is_empty = false;
  bool overflows = false;
  for (int32_t i = 0; i < t.ndim; ++i) {
    const int64_t extent = t.shape[i];
    if (extent < 0) return Defect::kNegativeExtent;
    is_empty |= extent == 0;
    overflows |= __builtin_mul_overflow(size, static_cast<uint64_t>(extent), &size);
  }
  if (is_empty) return Defect::kNone;
  if (overflows || size / 8 > INT64_MAX) return Defect::kSize;
  if (t.strides != nullptr) {
    uint64_t reach = 1;  // in elements, either way
    for (int32_t i = 0; i < t.ndim; ++i) {
      const int64_t stride = t.strides[i];
      const uint64_t step =
          stride < 0 ? uint64_t{0} - static_cast<uint64_t>(stride) : static_cast<uint64_t>(stride);
      uint64_t length;
      overflows |= __builtin_mul_overflow(step, static_cast<uint64_t>(t.shape[i] - 1), &length);
      overflows |= __builtin_add_overflow(reach, length, &reach);
    }
    overflows |= __builtin_mul_overflow(reach, element, &reach);
    if (overflows || reach / 8 > INT64_MAX) return Defect::kStrides;
  }
  if (t.data == nullptr) return Defect::kNoMemory;
  if (t.byte_offset > INT64_MAX) return Defect::kOffset;
  return Defect::kNone;
}

inline void WriteList(std::ostream& os, const int64_t* values, int32_t count) {
  os << "(";
  for (int32_t i = 0; i < count; ++i) os << (i != 0 ? ", " : "") << values[i];
  os << (count == 1 ? ",)" : ")");
}

// Says what FindDefect found. Written to a stream, which takes less code than joining strings.
inline std::string Describe(Defect defect, const DLTensor& t) {
  std::ostringstream os;
  switch (defect) {
    case Defect::kDimensions:
      os << "a tensor cannot have " << t.ndim << " dimensions";
      break;
    case Defect::kNoShape:
      os << "a tensor of " << t.ndim << " dimensions needs a shape";
      break;
    case Defect::kElement:
      os << "a tensor cannot have elements of " << int{t.dtype.bits} << " bits and "
         << t.dtype.lanes << " lanes";
      break;
    case Defect::kNegativeExtent: {
      int32_t i = 0;
      while (t.shape[i] >= 0) ++i;
      os << "extent " << i << " of a tensor's shape is negative: " << t.shape[i];
      break;
    }
    case Defect::kSize:
    case Defect::kStrides:
      os << "a tensor of shape ";
      WriteList(os, t.shape, t.ndim);
      if (defect == Defect::kStrides) {
        os << " with strides ";
        WriteList(os, t.strides, t.ndim);
      }
      os << " and " << int64_t{t.dtype.bits} * t.dtype.lanes
         << " bits per element overflows 64 bits";
      break;
    case Defect::kNoMemory:
      os << "a tensor of shape ";
      WriteList(os, t.shape, t.ndim);
      os << " has no memory: its address is 0";
      break;
    case Defect::kOffset:
      os << "the byte offset of a tensor overflows 64 bits: " << t.byte_offset;
      break;
    case Defect::kNone:
      break;
  }
  return os.str();
}

inline void CheckImport(const DLTensor& tensor, size_t require_alignment, bool require_contiguous) {
  if (const Defect defect = FindDefect(tensor); TVM_FFI_PREDICT_FALSE(defect != Defect::kNone)) {
    TVM_FFI_THROW(ValueError) << "FromDLPack: " << Describe(defect, tensor);
  }
  if (require_alignment != 0 && !IsAligned(tensor, require_alignment)) {
    TVM_FFI_THROW(RuntimeError) << "FromDLPack: Data is not aligned to " << require_alignment
                                << " bytes.";
  }
  if (require_contiguous && !IsContiguous(tensor)) {
    TVM_FFI_THROW(RuntimeError) << "FromDLPack: Tensor is not contiguous.";
  }
}

inline void CheckImport(const DLManagedTensorVersioned& managed, size_t require_alignment,
                        bool require_contiguous) {
  CheckImport(managed.dl_tensor, require_alignment, require_contiguous);
  if ((managed.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0) {
    TVM_FFI_THROW(RuntimeError) << "Subbyte type padded is not yet supported";
  }
}

TVM_FFI_INLINE int64_t DimensionAt(const DLTensor& tensor, const int64_t* extents, int64_t idx) {
  const int64_t i = idx < 0 ? idx + tensor.ndim : idx;
  if (TVM_FFI_PREDICT_FALSE(i < 0 || i >= tensor.ndim)) {
    TVM_FFI_THROW(IndexError) << "Index " << idx << " out of bounds for tensor with " << tensor.ndim
                              << " dimensions";
  }
  return extents[i];
}

inline ShapeView ShapeOf(const DLTensor& tensor) {
  return ShapeView(tensor.shape, static_cast<size_t>(tensor.ndim));
}

inline ShapeView StridesOf(const DLTensor& tensor) {
  TVM_FFI_ICHECK(tensor.strides != nullptr || tensor.ndim == 0) << "the tensor has no strides";
  return ShapeView(tensor.strides, static_cast<size_t>(tensor.ndim));
}

// The geometry of `source` after as_strided; shape and strides point at the caller's arrays.
inline DLTensor Restride(const DLTensor& source, ShapeView shape, ShapeView strides,
                         std::optional<int64_t> element_offset) {
  DLTensor result = source;
  result.ndim = static_cast<int32_t>(shape.size());
  result.shape = const_cast<int64_t*>(shape.data());
  result.strides = const_cast<int64_t*>(strides.data());
  const int64_t elem_offset_as_i64 = element_offset.value_or(0);
  TVM_FFI_ICHECK_GE(elem_offset_as_i64, 0);
  result.byte_offset += GetDataSize(static_cast<size_t>(elem_offset_as_i64), source.dtype);
  if (result.byte_offset != 0 && IsDirectAddressDevice(result.device)) {
    result.data = static_cast<char*>(result.data) + result.byte_offset;
    result.byte_offset = 0;
  }
  return result;
}

}  // namespace tether

inline DLManagedTensor* TensorObj::ToDLPack() const {
  DLManagedTensor* managed;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITensorToDLPack(detail::ObjectUnsafe::GetHeader(this), &managed));
  return managed;
}

inline DLManagedTensorVersioned* TensorObj::ToDLPackVersioned() const {
  DLManagedTensorVersioned* managed;
  TVM_FFI_CHECK_SAFE_CALL(
      TVMFFITensorToDLPackVersioned(detail::ObjectUnsafe::GetHeader(this), &managed));
  return managed;
}

class Tensor : public ObjectRef {
 public:
  using ContainerType = TensorObj;
  static constexpr bool _type_is_nullable = true;

  // Null.
  Tensor() = default;
  explicit Tensor(ObjectPtr<TensorObj> n) : ObjectRef(std::move(n)) {}
  explicit Tensor(UnsafeInit tag) : ObjectRef(tag) {}
  TVM_FFI_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(Tensor);

  // Without the byte offset.
  void* data_ptr() const { return get()->data; }
  DLDevice device() const { return get()->device; }
  int32_t ndim() const { return get()->ndim; }
  DLDataType dtype() const { return get()->dtype; }
  ShapeView shape() const { return tether::ShapeOf(*get()); }
  ShapeView strides() const { return tether::StridesOf(*get()); }
  // Negative indices count from the end.
  int64_t size(int64_t idx) const { return tether::DimensionAt(*get(), get()->shape, idx); }
  int64_t stride(int64_t idx) const { return tether::DimensionAt(*get(), get()->strides, idx); }
  int64_t numel() const { return shape().Product(); }
  uint64_t byte_offset() const { return get()->byte_offset; }
  bool IsContiguous() const { return tvm::ffi::IsContiguous(*get()); }
  bool IsAligned(size_t alignment) const { return tvm::ffi::IsAligned(*get(), alignment); }

  // Another geometry over the same data, which the result keeps alive.
  Tensor as_strided(ShapeView shape, ShapeView strides,
                    std::optional<int64_t> element_offset = std::nullopt) const {
    TVM_FFI_ICHECK(strides.data() == nullptr || strides.size() >= shape.size())
        << "there must be a stride for every extent";
    const DLTensor prototype = tether::Restride(*get(), shape, strides, element_offset);
    TVMFFIObjectHandle out;
    TVM_FFI_CHECK_SAFE_CALL(TVMFFITensorCreateUnsafeView(
        detail::ObjectUnsafe::RawObjectPtrFromObjectRef(*this), &prototype, &out));
    return FromOwnedHandle(out);
  }

  // alloc.AllocData(DLTensor*, extra...) sets `data`; alloc.FreeData(DLTensor*) releases it.
  template <typename TNDAlloc, typename... ExtraArgs>
  static Tensor FromNDAlloc(TNDAlloc alloc, ShapeView shape, DLDataType dtype, DLDevice device,
                            ExtraArgs&&... extra_args) {
    const Shape strides = Shape::StridesFromShape(shape);
    const DLTensor prototype = MakePrototype(shape, strides, dtype, device);
    return Tensor(tether::AllocatedTensorObj<TNDAlloc>::Make(
        std::move(alloc), prototype, std::forward<ExtraArgs>(extra_args)...));
  }

  template <typename TNDAlloc, typename... ExtraArgs>
  static Tensor FromNDAllocStrided(TNDAlloc alloc, ShapeView shape, ShapeView strides,
                                   DLDataType dtype, DLDevice device, ExtraArgs&&... extra_args) {
    TVM_FFI_CHECK(shape.size() == strides.size(), ValueError)
        << "shape and strides must have the same size.";
    const DLTensor prototype = MakePrototype(shape, strides, dtype, device);
    (void)TVM_FFI_ICHECK_NOTNULL(prototype.strides);
    return Tensor(tether::AllocatedTensorObj<TNDAlloc>::Make(
        std::move(alloc), prototype, std::forward<ExtraArgs>(extra_args)...));
  }

  // With the allocator of the host framework, normally TVMFFIEnvTensorAlloc.
  static Tensor FromEnvAlloc(int (*env_alloc)(DLTensor*, TVMFFIObjectHandle*), ShapeView shape,
                             DLDataType dtype, DLDevice device) {
    DLTensor prototype = MakePrototype(shape, ShapeView(), dtype, device);
    TVMFFIObjectHandle out;
    TVM_FFI_CHECK_SAFE_CALL(env_alloc(&prototype, &out));
    return FromOwnedHandle(out);
  }

  // Takes over `tensor`, unless an error is thrown.
  static Tensor FromDLPack(DLManagedTensor* tensor, size_t require_alignment = 0,
                           bool require_contiguous = false) {
    tether::CheckImport(tensor->dl_tensor, require_alignment, require_contiguous);
    return Tensor(tether::ImportedTensorObj<DLManagedTensor>::Make(tensor));
  }
  static Tensor FromDLPackVersioned(DLManagedTensorVersioned* tensor, size_t require_alignment = 0,
                                    bool require_contiguous = false) {
    tether::CheckImport(*tensor, require_alignment, require_contiguous);
    if ((tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) {
      // The library remembers that, and says so again when the tensor is exported.
      TVMFFIObjectHandle out;
      TVM_FFI_CHECK_SAFE_CALL(TVMFFITensorFromDLPackVersioned(tensor, 0, 0, &out));
      return FromOwnedHandle(out);
    }
    return Tensor(tether::ImportedTensorObj<DLManagedTensorVersioned>::Make(tensor));
  }

  // The caller owns the result and calls its deleter.
  DLManagedTensor* ToDLPack() const { return get()->ToDLPack(); }
  DLManagedTensorVersioned* ToDLPackVersioned() const { return get()->ToDLPackVersioned(); }
  const DLTensor* GetDLTensorPtr() const { return get(); }

  // The names PyTorch uses.
  int32_t dim() { return ndim(); }
  ShapeView sizes() const { return shape(); }
  bool is_contiguous() const { return IsContiguous(); }

 protected:
  const TensorObj* get() const { return static_cast<const TensorObj*>(ObjectRef::get()); }
  TensorObj* get_mutable() const { return static_cast<TensorObj*>(ObjectRef::get_mutable()); }

 private:
  static Tensor FromOwnedHandle(TVMFFIObjectHandle handle) {
    return Tensor(
        detail::ObjectUnsafe::ObjectPtrFromOwned<TensorObj>(static_cast<TVMFFIObject*>(handle)));
  }
  static DLTensor MakePrototype(ShapeView shape, ShapeView strides, DLDataType dtype,
                                DLDevice device) {
    DLTensor prototype{};
    prototype.device = device;
    prototype.ndim = static_cast<int32_t>(shape.size());
    prototype.dtype = dtype;
    prototype.shape = const_cast<int64_t*>(shape.data());
    prototype.strides = const_cast<int64_t*>(strides.data());
    return prototype;
  }
};

// Holds the DLTensor by value; the owner of data, shape and strides must outlive the view.
class TensorView {
 public:
  TensorView(const Tensor& tensor) : tensor_(Deref(tensor)) {}  // NOLINT(*)
  TensorView(const DLTensor* tensor) {                          // NOLINT(*)
    tensor_ = *TVM_FFI_ICHECK_NOTNULL(tensor);
  }
  // A view of a temporary would dangle at once.
  TensorView(Tensor&& tensor) = delete;
  TensorView& operator=(Tensor&& tensor) = delete;
  TensorView& operator=(const Tensor& tensor) {
    tensor_ = Deref(tensor);
    return *this;
  }
  TensorView(const TensorView& other) = default;
  TensorView(TensorView&& other) = default;
  TensorView& operator=(const TensorView& other) = default;
  TensorView& operator=(TensorView&& other) = default;

  void* data_ptr() const { return tensor_.data; }
  DLDevice device() const { return tensor_.device; }
  int32_t ndim() const { return tensor_.ndim; }
  DLDataType dtype() const { return tensor_.dtype; }
  ShapeView shape() const { return tether::ShapeOf(tensor_); }
  ShapeView strides() const { return tether::StridesOf(tensor_); }
  int64_t size(int64_t idx) const { return tether::DimensionAt(tensor_, tensor_.shape, idx); }
  int64_t stride(int64_t idx) const { return tether::DimensionAt(tensor_, tensor_.strides, idx); }
  int64_t numel() const { return shape().Product(); }
  uint64_t byte_offset() const { return tensor_.byte_offset; }
  bool IsContiguous() const { return tvm::ffi::IsContiguous(tensor_); }

  TensorView as_strided(ShapeView shape, ShapeView strides,
                        std::optional<int64_t> element_offset = std::nullopt) const {
    TVM_FFI_ICHECK_EQ(shape.size(), strides.size());
    const DLTensor result = tether::Restride(tensor_, shape, strides, element_offset);
    return TensorView(&result);
  }

  int32_t dim() { return ndim(); }
  ShapeView sizes() const { return shape(); }
  bool is_contiguous() const { return IsContiguous(); }

 private:
  static const DLTensor& Deref(const Tensor& tensor) {
    TVM_FFI_ICHECK(tensor.defined()) << "cannot view an undefined Tensor";
    return *tensor.GetDLTensorPtr();
  }

  DLTensor tensor_;
  friend struct TypeTraits<TensorView>;
};

static_assert(sizeof(TensorView) == sizeof(DLTensor), "clients inline this layout");

inline size_t GetDataSize(const Tensor& tensor) { return GetDataSize(*tensor.GetDLTensorPtr()); }
inline size_t GetDataSize(const TensorView& tensor) {
  return GetDataSize(static_cast<size_t>(tensor.numel()), tensor.dtype());
}

namespace tether {

TVM_FFI_INLINE void StoreDLTensorPtr(const DLTensor* tensor, TVMFFIAny* result) {
  result->type_index = TypeIndex::kTVMFFIDLTensorPtr;
  result->zero_padding = 0;
  TVM_FFI_CLEAR_PTR_PADDING_IN_FFI_ANY(result);
  result->v_ptr = const_cast<DLTensor*>(tensor);
}

// The DLTensor behind a pointer or inside a Tensor object, or null.
TVM_FFI_INLINE DLTensor* FindDLTensor(const TVMFFIAny* src) {
  if (src->type_index == TypeIndex::kTVMFFIDLTensorPtr) return static_cast<DLTensor*>(src->v_ptr);
  if (src->type_index == TypeIndex::kTVMFFITensor) return TVMFFITensorGetDLTensorPtr(src->v_obj);
  return nullptr;
}

}  // namespace tether

// A borrowed pointer, also into a Tensor object.
template <>
struct TypeTraits<DLTensor*> : public TypeTraitsBase {
  static constexpr bool storage_enabled = false;
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIDLTensorPtr;

  TVM_FFI_INLINE static void CopyToAnyView(DLTensor* src, TVMFFIAny* result) {
    (void)TVM_FFI_ICHECK_NOTNULL(src);
    tether::StoreDLTensorPtr(src, result);
  }
  // Not marked as never returning: the callers that store a value would warn about dead code.
  static void MoveToAny(DLTensor*, TVMFFIAny*) {
    TVM_FFI_THROW(RuntimeError) << "DLTensor* cannot be held in Any as it does not retain "
                                   "ownership, use Tensor instead";
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    return src->type_index == TypeIndex::kTVMFFIDLTensorPtr;
  }
  TVM_FFI_INLINE static DLTensor* CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return static_cast<DLTensor*>(src->v_ptr);
  }
  TVM_FFI_INLINE static std::optional<DLTensor*> TryCastFromAnyView(const TVMFFIAny* src) {
    if (DLTensor* tensor = tether::FindDLTensor(src)) return tensor;
    return std::nullopt;
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFIDLTensorPtr; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIDLTensorPtr); }
};

// Passed as a pointer to the view's own DLTensor; there is no owning form.
template <>
struct TypeTraits<TensorView> : public TypeTraitsBase {
  static constexpr bool storage_enabled = false;
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIDLTensorPtr;

  TVM_FFI_INLINE static void CopyToAnyView(const TensorView& src, TVMFFIAny* result) {
    tether::StoreDLTensorPtr(&src.tensor_, result);
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    return src->type_index == TypeIndex::kTVMFFIDLTensorPtr;
  }
  TVM_FFI_INLINE static TensorView CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return TensorView(static_cast<const DLTensor*>(src->v_ptr));
  }
  TVM_FFI_INLINE static std::optional<TensorView> TryCastFromAnyView(const TVMFFIAny* src) {
    if (const DLTensor* tensor = tether::FindDLTensor(src)) return TensorView(tensor);
    return std::nullopt;
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFIDLTensorPtr; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIDLTensorPtr); }
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_TENSOR_H_
