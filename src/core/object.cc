// SPDX-License-Identifier: Apache-2.0
// Storage and reference counts of objects: the allocator registry and the opaque object.
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/reflection/registry.h>

#include <atomic>
#include <new>

#include "block_cache.h"

namespace tvm {
namespace ffi {
namespace {

// One offset for every request, so that releasing needs nothing but the body. The alloc header is
// right before the body.
constexpr size_t kBodyOffset = alignof(std::max_align_t);
static_assert(kBodyOffset >= sizeof(TVMFFIObjectAllocHeader));

void BuiltinDeleteSpace(void* body) {
  tether::BlockCache::Release(static_cast<char*>(body) - kBodyOffset);
}

void* BuiltinAllocate(size_t size, size_t alignment, int32_t, void*) {
  if (TVM_FFI_PREDICT_FALSE(alignment > kBodyOffset)) {
    TVMFFIErrorSetRaisedFromCStr("ValueError",
                                 "objects cannot be aligned more strictly than max_align_t");
    return nullptr;
  }
  // Clients of one release use the result unchecked, so running out of memory throws.
  if (TVM_FFI_PREDICT_FALSE(size > SIZE_MAX - kBodyOffset)) throw std::bad_alloc();
  void* block = tether::BlockCache::Allocate(kBodyOffset + size);
  if (TVM_FFI_PREDICT_FALSE(block == nullptr)) throw std::bad_alloc();
  char* body = static_cast<char*>(block) + kBodyOffset;
  details::ObjectUnsafe::GetObjectAllocHeaderFromPtr(body)->delete_space = BuiltinDeleteSpace;
  return body;
}

// Both are constant-initialised: static initialisers of any library may allocate.
TVMFFICustomAllocator builtin_allocator{BuiltinAllocate, nullptr};
std::atomic<TVMFFICustomAllocator*> current_allocator{&builtin_allocator};
// Whether the current allocator is not the built-in one.
std::atomic<bool> has_registered_allocator{false};
static_assert(sizeof(has_registered_allocator) == 1, "read from Rust as one byte");

// Code that makes many objects reads the variable itself instead of calling for it.
TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::GlobalDef().def("ffi.tether.HasRegisteredAllocator",
                              [] { return static_cast<void*>(&has_registered_allocator); });
}

// Carries a pointer of the host language.
class OpaqueObject : public Object, public TVMFFIOpaqueObjectCell {
 public:
  OpaqueObject(void* opaque_handle, void (*opaque_deleter)(void*)) : deleter_(opaque_deleter) {
    handle = opaque_handle;
  }
  ~OpaqueObject() {
    if (deleter_ != nullptr) deleter_(handle);
  }

 private:
  void (*deleter_)(void*);
};

}  // namespace
}  // namespace ffi
}  // namespace tvm

using namespace tvm::ffi;

void TVMFFIGetVersion(TVMFFIVersion* out_version) {
  out_version->major = TVM_FFI_VERSION_MAJOR;
  out_version->minor = TVM_FFI_VERSION_MINOR;
  out_version->patch = TVM_FFI_VERSION_PATCH;
}

TVMFFICustomAllocator* TVMFFIGetCustomAllocator() {
  return current_allocator.load(std::memory_order_relaxed);
}

int TVMFFISetCustomAllocator(TVMFFICustomAllocator* allocator) {
  TVM_FFI_SAFE_CALL_BEGIN();
  if (allocator != nullptr) TVM_FFI_CHECK_NOTNULL(allocator->allocate, ValueError);
  if (allocator == nullptr) allocator = &builtin_allocator;
  current_allocator.store(allocator, std::memory_order_release);
  has_registered_allocator.store(allocator != &builtin_allocator, std::memory_order_release);
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFIObjectIncRef(TVMFFIObjectHandle obj) {
  details::ObjectUnsafe::IncRefObjectHandle(obj);
  return 0;
}

int TVMFFIObjectDecRef(TVMFFIObjectHandle obj) {
  TVM_FFI_SAFE_CALL_BEGIN();
  details::ObjectUnsafe::DecRefObjectHandle(obj);
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFIObjectCreateOpaque(void* handle, int32_t type_index, void (*deleter)(void* handle),
                             TVMFFIObjectHandle* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  if (type_index != TypeIndex::kTVMFFIOpaquePyObject) {
    TVM_FFI_THROW(RuntimeError) << "Only kTVMFFIOpaquePyObject is supported for now";
  }
  ObjectPtr<OpaqueObject> object = make_object<OpaqueObject>(handle, deleter);
  details::ObjectUnsafe::GetHeader(object.get())->type_index = type_index;
  *out = details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(object));
  TVM_FFI_SAFE_CALL_END();
}
