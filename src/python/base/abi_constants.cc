// SPDX-License-Identifier: Apache-2.0
// The numbers of the C interface, for the part that is written in Python.
#include "python/base/abi_constants.h"

#include <tvm/ffi/c_api.h>

#include "python/base/python_api.h"

namespace tether_py {

namespace {

struct Constant {
  const char* name;
  long value;
};

constexpr Constant Named(const char* name, long value) { return Constant{name, value}; }

#define TETHER_CONSTANT(name) Named(#name, name)
constexpr Constant kConstants[] = {
    // Type indices.
    TETHER_CONSTANT(kTVMFFIAny),
    TETHER_CONSTANT(kTVMFFINone),
    TETHER_CONSTANT(kTVMFFIInt),
    TETHER_CONSTANT(kTVMFFIBool),
    TETHER_CONSTANT(kTVMFFIFloat),
    TETHER_CONSTANT(kTVMFFIOpaquePtr),
    TETHER_CONSTANT(kTVMFFIDataType),
    TETHER_CONSTANT(kTVMFFIDevice),
    TETHER_CONSTANT(kTVMFFIDLTensorPtr),
    TETHER_CONSTANT(kTVMFFIRawStr),
    TETHER_CONSTANT(kTVMFFIByteArrayPtr),
    TETHER_CONSTANT(kTVMFFIObjectRValueRef),
    TETHER_CONSTANT(kTVMFFISmallStr),
    TETHER_CONSTANT(kTVMFFISmallBytes),
    TETHER_CONSTANT(kTVMFFIStaticObjectBegin),
    TETHER_CONSTANT(kTVMFFIObject),
    TETHER_CONSTANT(kTVMFFIStr),
    TETHER_CONSTANT(kTVMFFIBytes),
    TETHER_CONSTANT(kTVMFFIError),
    TETHER_CONSTANT(kTVMFFIFunction),
    TETHER_CONSTANT(kTVMFFIShape),
    TETHER_CONSTANT(kTVMFFITensor),
    TETHER_CONSTANT(kTVMFFIArray),
    TETHER_CONSTANT(kTVMFFIMap),
    TETHER_CONSTANT(kTVMFFIModule),
    TETHER_CONSTANT(kTVMFFIOpaquePyObject),
    TETHER_CONSTANT(kTVMFFIList),
    TETHER_CONSTANT(kTVMFFIDict),
    TETHER_CONSTANT(kTVMFFIVisitInterrupt),
    TETHER_CONSTANT(kTVMFFIBigInt),
    TETHER_CONSTANT(kTVMFFIDynObjectBegin),
    // Flags of fields and methods.
    TETHER_CONSTANT(kTVMFFIFieldFlagBitMaskWritable),
    TETHER_CONSTANT(kTVMFFIFieldFlagBitMaskHasDefault),
    TETHER_CONSTANT(kTVMFFIFieldFlagBitMaskIsStaticMethod),
    TETHER_CONSTANT(kTVMFFIFieldFlagBitMaskSEqHashIgnore),
    TETHER_CONSTANT(kTVMFFIFieldFlagBitMaskSEqHashDefPattern),
    TETHER_CONSTANT(kTVMFFIFieldFlagBitMaskDefaultFromFactory),
    TETHER_CONSTANT(kTVMFFIFieldFlagBitMaskReprOff),
    TETHER_CONSTANT(kTVMFFIFieldFlagBitMaskCompareOff),
    TETHER_CONSTANT(kTVMFFIFieldFlagBitMaskHashOff),
    TETHER_CONSTANT(kTVMFFIFieldFlagBitMaskInitOff),
    TETHER_CONSTANT(kTVMFFIFieldFlagBitMaskKwOnly),
    TETHER_CONSTANT(kTVMFFIFieldFlagBitSetterIsFunctionObj),
    TETHER_CONSTANT(kTVMFFIFieldFlagBitMaskSEqHashDefSimple),
    // Kinds of structural comparison.
    TETHER_CONSTANT(kTVMFFISEqHashKindUnsupported),
    TETHER_CONSTANT(kTVMFFISEqHashKindTreeNode),
    TETHER_CONSTANT(kTVMFFISEqHashKindFreeVar),
    TETHER_CONSTANT(kTVMFFISEqHashKindDAGNode),
    TETHER_CONSTANT(kTVMFFISEqHashKindConstTreeNode),
    TETHER_CONSTANT(kTVMFFISEqHashKindUniqueInstance),
    TETHER_CONSTANT(kTVMFFIDefRegionKindNone),
    TETHER_CONSTANT(kTVMFFIDefRegionKindPattern),
    TETHER_CONSTANT(kTVMFFIDefRegionKindSimple),
    // Device types.
    TETHER_CONSTANT(kDLCPU),
    TETHER_CONSTANT(kDLCUDA),
    TETHER_CONSTANT(kDLCUDAHost),
    TETHER_CONSTANT(kDLOpenCL),
    TETHER_CONSTANT(kDLVulkan),
    TETHER_CONSTANT(kDLMetal),
    TETHER_CONSTANT(kDLVPI),
    TETHER_CONSTANT(kDLROCM),
    TETHER_CONSTANT(kDLROCMHost),
    TETHER_CONSTANT(kDLExtDev),
    TETHER_CONSTANT(kDLCUDAManaged),
    TETHER_CONSTANT(kDLOneAPI),
    TETHER_CONSTANT(kDLWebGPU),
    TETHER_CONSTANT(kDLHexagon),
    TETHER_CONSTANT(kDLMAIA),
    TETHER_CONSTANT(kDLTrn),
    // Type codes of elements.
    TETHER_CONSTANT(kDLInt),
    TETHER_CONSTANT(kDLUInt),
    TETHER_CONSTANT(kDLFloat),
    TETHER_CONSTANT(kDLOpaqueHandle),
    TETHER_CONSTANT(kDLBfloat),
    TETHER_CONSTANT(kDLComplex),
    TETHER_CONSTANT(kDLBool),
    TETHER_CONSTANT(kDLFloat8_e3m4),
    TETHER_CONSTANT(kDLFloat8_e4m3),
    TETHER_CONSTANT(kDLFloat8_e4m3b11fnuz),
    TETHER_CONSTANT(kDLFloat8_e4m3fn),
    TETHER_CONSTANT(kDLFloat8_e4m3fnuz),
    TETHER_CONSTANT(kDLFloat8_e5m2),
    TETHER_CONSTANT(kDLFloat8_e5m2fnuz),
    TETHER_CONSTANT(kDLFloat8_e8m0fnu),
    TETHER_CONSTANT(kDLFloat6_e2m3fn),
    TETHER_CONSTANT(kDLFloat6_e3m2fn),
    TETHER_CONSTANT(kDLFloat4_e2m1fn),
};
#undef TETHER_CONSTANT

}  // namespace

int AddABIConstants(PyObject* module) {
  Ref abi = Ref::Steal(PyModule_New("tvm_ffi.core._abi"));
  if (!abi || PyModule_SetDocString(abi.get(), "The numbers of tvm/ffi/c_api.h and dlpack.h.") < 0)
    return -1;
  for (const Constant& constant : kConstants) {
    if (PyModule_AddIntConstant(abi.get(), constant.name, constant.value) < 0) return -1;
  }
  if (PyModule_AddIntConstant(abi.get(), "sizeof_TVMFFIObject", sizeof(TVMFFIObject)) < 0 ||
      PyModule_AddIntConstant(abi.get(), "sizeof_TVMFFIAny", sizeof(TVMFFIAny)) < 0) {
    return -1;
  }
  return PyModule_AddObjectRef(module, "_abi", abi.get());
}

}  // namespace tether_py
