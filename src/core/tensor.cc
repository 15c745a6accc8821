// SPDX-License-Identifier: Apache-2.0
// Shapes and tensors: the C functions that exchange them, and their global functions.
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>

#include "locks.h"

namespace tvm {
namespace ffi {
namespace {

// The tensors whose memory must not be written. A tensor has no room for that flag, and
// clients know its layout, so it is kept here. Only views are ever in it: see KeepSource.
class ReadOnlyTensors {
 public:
  static ReadOnlyTensors* Global() {
    static auto* tensors = new ReadOnlyTensors();  // tensors may outlive static objects
    return tensors;
  }
  void Add(const DLTensor* tensor) {
    std::lock_guard<std::mutex> lock(tether::locks.read_only_tensors);
    tensors_.insert(tensor);
    count_.store(tensors_.size(), std::memory_order_release);
  }
  void Remove(const DLTensor* tensor) {
    std::lock_guard<std::mutex> lock(tether::locks.read_only_tensors);
    tensors_.erase(tensor);
    count_.store(tensors_.size(), std::memory_order_release);
  }
  bool Has(const DLTensor* tensor) {
    // Most programs have none, and pay for this check only.
    if (count_.load(std::memory_order_acquire) == 0) return false;
    std::lock_guard<std::mutex> lock(tether::locks.read_only_tensors);
    return tensors_.count(tensor) != 0;
  }

 private:
  std::unordered_set<const DLTensor*> tensors_;
  std::atomic<size_t> count_{0};
};

bool IsReadOnly(const DLTensor* tensor) { return ReadOnlyTensors::Global()->Has(tensor); }

// The "allocator" of a view: its data belongs to another object, which it keeps alive.
struct KeepSource {
  ObjectPtr<Object> source;
  bool read_only;
  void AllocData(DLTensor* tensor) {
    if (read_only) ReadOnlyTensors::Global()->Add(tensor);
  }
  void FreeData(DLTensor* tensor) {
    if (read_only) ReadOnlyTensors::Global()->Remove(tensor);
  }
};

const TensorObj* AsTensor(TVMFFIObjectHandle handle) {
  const Object* object = static_cast<const Object*>(TVM_FFI_ICHECK_NOTNULL(handle));
  if (!object->IsInstance<TensorObj>()) {
    TVM_FFI_THROW(TypeError) << "Expected `ffi.Tensor` but got `" << object->GetTypeKey() << "`";
  }
  return static_cast<const TensorObj*>(object);
}

TVMFFIObjectHandle Release(Tensor tensor) {
  return details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(std::move(tensor));
}

Tensor MakeView(ObjectPtr<Object> source, const DLTensor& prototype, bool read_only) {
  return Tensor(tether::AllocatedTensorObj<KeepSource>::Make(
      KeepSource{std::move(source), read_only}, prototype));
}

// A view of a read-only tensor is read-only.
Tensor MakeView(TVMFFIObjectHandle handle, const DLTensor& prototype) {
  (void)TVM_FFI_ICHECK_NOTNULL(handle);
  (void)TVM_FFI_ICHECK_NOTNULL(prototype.strides);
  TVM_FFI_CHECK(prototype.ndim >= 0, ValueError)
      << "a tensor cannot have " << prototype.ndim << " dimensions";
  auto source = details::ObjectUnsafe::ObjectPtrFromUnowned<Object>(static_cast<Object*>(handle));
  const TensorObj* tensor =
      source->IsInstance<TensorObj>() ? static_cast<const TensorObj*>(source.get()) : nullptr;
  return MakeView(std::move(source), prototype, tensor != nullptr && IsReadOnly(tensor));
}

// A tensor that is refused still belongs to whoever offered it: until the import is complete,
// nothing that dies may delete it.
class NotYetTaken {
 public:
  explicit NotYetTaken(DLManagedTensorVersioned* managed)
      : managed_(managed), deleter_(std::exchange(managed->deleter, nullptr)) {}
  ~NotYetTaken() { managed_->deleter = deleter_; }
  NotYetTaken(const NotYetTaken&) = delete;
  NotYetTaken& operator=(const NotYetTaken&) = delete;

 private:
  DLManagedTensorVersioned* managed_;
  decltype(DLManagedTensorVersioned::deleter) deleter_;
};

Tensor Import(DLManagedTensorVersioned* managed) {
  NotYetTaken guard(managed);
  Tensor tensor(tether::ImportedTensorObj<DLManagedTensorVersioned>::Make(managed));
  if ((managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) == 0) return tensor;
  const DLTensor& prototype = *tensor.GetDLTensorPtr();
  return MakeView(details::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(tensor)),
                  prototype, true);
}

size_t Alignment(int32_t require_alignment) {
  TVM_FFI_CHECK(require_alignment >= 0, ValueError)
      << "FromDLPack: alignment cannot be " << require_alignment;
  return static_cast<size_t>(require_alignment);
}

void MakeShape(PackedArgs args, Any* result) {
  int64_t* extents;
  ObjectPtr<ShapeObj> shape = details::MakeEmptyShape(static_cast<size_t>(args.size()), &extents);
  for (int i = 0; i < args.size(); ++i) {
    std::optional<int64_t> extent = args[i].try_cast<int64_t>();
    if (!extent.has_value()) {
      TVM_FFI_THROW(ValueError) << "Expect shape to take list of int arguments";
    }
    extents[i] = *extent;
  }
  *result = Any(std::move(shape));
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::TypeAttrDef<ShapeObj>().def_convert<Shape>();
  refl::TypeAttrDef<TensorObj>().def_convert<Tensor>();
  refl::GlobalDef().def_packed("ffi.Shape", MakeShape);
}

}  // namespace
}  // namespace ffi
}  // namespace tvm

using namespace tvm::ffi;

int TVMFFITensorFromDLPack(DLManagedTensor* from, int32_t require_alignment,
                           int32_t require_contiguous, TVMFFIObjectHandle* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  (void)TVM_FFI_ICHECK_NOTNULL(from);
  *out = Release(Tensor::FromDLPack(from, Alignment(require_alignment), require_contiguous != 0));
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFITensorFromDLPackVersioned(DLManagedTensorVersioned* from, int32_t require_alignment,
                                    int32_t require_contiguous, TVMFFIObjectHandle* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  (void)TVM_FFI_ICHECK_NOTNULL(from);
  tether::CheckImport(*from, Alignment(require_alignment), require_contiguous != 0);
  *out = Release(Import(from));
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFITensorToDLPack(TVMFFIObjectHandle from, DLManagedTensor** out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  const TensorObj* tensor = AsTensor(from);
  if (IsReadOnly(tensor)) {
    TVM_FFI_THROW(BufferError)
        << "a read-only tensor cannot be exported without a version, which has no way to say that "
           "it is read-only; ask for max_version=(1, 0) or for a copy";
  }
  *out = tether::ExportTensor<DLManagedTensor>(tensor);
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFITensorToDLPackVersioned(TVMFFIObjectHandle from, DLManagedTensorVersioned** out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  const TensorObj* tensor = AsTensor(from);
  auto* managed = tether::ExportTensor<DLManagedTensorVersioned>(tensor);
  managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->flags = IsReadOnly(tensor) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  *out = managed;
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFITensorCreateUnsafeView(TVMFFIObjectHandle source, const DLTensor* prototype,
                                 TVMFFIObjectHandle* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  *out = Release(MakeView(source, *TVM_FFI_ICHECK_NOTNULL(prototype)));
  TVM_FFI_SAFE_CALL_END();
}
