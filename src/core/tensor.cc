// SPDX-License-Identifier: Apache-2.0
// Shapes and tensors: the C functions that exchange them, and their global functions.
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <optional>
#include <utility>

namespace tvm {
namespace ffi {
namespace {

// The "allocator" of a view: its data belongs to another object, which it keeps alive.
struct KeepSource {
  ObjectPtr<Object> source;
  void AllocData(DLTensor*) {}
  void FreeData(DLTensor*) {}
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

ObjectPtr<TensorObj> MakeView(TVMFFIObjectHandle source, const DLTensor& prototype) {
  (void)TVM_FFI_ICHECK_NOTNULL(source);
  (void)TVM_FFI_ICHECK_NOTNULL(prototype.strides);
  TVM_FFI_CHECK(prototype.ndim >= 0, ValueError)
      << "a tensor cannot have " << prototype.ndim << " dimensions";
  KeepSource keep{
      details::ObjectUnsafe::ObjectPtrFromUnowned<Object>(static_cast<Object*>(source))};
  return tether::AllocatedTensorObj<KeepSource>::Make(std::move(keep), prototype);
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
  *out = Release(
      Tensor::FromDLPackVersioned(from, Alignment(require_alignment), require_contiguous != 0));
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFITensorToDLPack(TVMFFIObjectHandle from, DLManagedTensor** out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  *out = AsTensor(from)->ToDLPack();
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFITensorToDLPackVersioned(TVMFFIObjectHandle from, DLManagedTensorVersioned** out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  *out = AsTensor(from)->ToDLPackVersioned();
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFITensorCreateUnsafeView(TVMFFIObjectHandle source, const DLTensor* prototype,
                                 TVMFFIObjectHandle* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  *out = Release(Tensor(MakeView(source, *TVM_FFI_ICHECK_NOTNULL(prototype))));
  TVM_FFI_SAFE_CALL_END();
}
