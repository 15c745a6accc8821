// SPDX-License-Identifier: Apache-2.0
// A function for every language of the interface, in C11. All such functions have one signature:
// they get an array of tagged values, write a tagged result, and return 0, or set an error and
// return -1.
#include <tvm/ffi/c_api.h>

// Tensors arrive as a DLTensor, or as an object with one behind its header.
static const DLTensor* AsTensor(const TVMFFIAny* value) {
  if (value->type_index == kTVMFFIDLTensorPtr) return (const DLTensor*)value->v_ptr;
  if (value->type_index != kTVMFFITensor) return 0;
  return (const DLTensor*)((const char*)value->v_obj + sizeof(TVMFFIObject));
}

static int IsVector(const DLTensor* t) {
  return t && t->ndim == 1 && t->device.device_type == kDLCPU && t->dtype.code == kDLFloat &&
         t->dtype.bits == 32 && t->dtype.lanes == 1 && (!t->strides || t->strides[0] == 1);
}

// The prefix makes it a function of the module: module.add_one(x, y).
TVM_FFI_DLL_EXPORT int __tvm_ffi_add_one(void* self, const TVMFFIAny* args, int32_t num_args,
                                         TVMFFIAny* result) {
  (void)self;
  if (num_args != 2) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "add_one takes two arguments");
    return -1;
  }
  const DLTensor* x = AsTensor(&args[0]);
  const DLTensor* y = AsTensor(&args[1]);
  if (!IsVector(x) || !IsVector(y)) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "expected contiguous vectors of float32 on the CPU");
    return -1;
  }
  if (x->shape[0] != y->shape[0]) {
    TVMFFIErrorSetRaisedFromCStr("ValueError", "the vectors differ in length");
    return -1;
  }
  const float* from = (const float*)((const char*)x->data + x->byte_offset);
  float* to = (float*)((char*)y->data + y->byte_offset);
  for (int64_t i = 0; i < x->shape[0]; ++i) to[i] = from[i] + 1;
  result->type_index = kTVMFFINone;
  result->zero_padding = 0;
  result->v_int64 = 0;
  return 0;
}
