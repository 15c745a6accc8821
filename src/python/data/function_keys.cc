// SPDX-License-Identifier: Apache-2.0
// Functions as keys of a Map or Dict.
#include "python/data/function_keys.h"

#include <tvm/ffi/function.h>

#include <cstring>

#include "python/convert/errors.h"
#include "python/data/container_base.h"
#include "python/wrap/upper_layers.h"

namespace tether_py {

namespace {

// Each time a Python callable crosses, a new function is made around it. As keys they are equal if
// they call the same one. Others go by their address, as they do without these hooks.
int64_t HashFunction(const ffi::Any& value) {
  TVMFFIObject* function = CellOf(value).v_obj;
  PyObject* callable = upper_layers.callable_of(function);
  return callable != nullptr ? reinterpret_cast<int64_t>(callable)
                             : reinterpret_cast<int64_t>(function);
}

bool EqualFunctions(const ffi::Any& lhs, const ffi::Any& rhs) {
  return HashFunction(lhs) == HashFunction(rhs);
}

// A Function, not a raw pointer: releases differ in how they call pointers.
bool RegisterKeyHook(const char* name, const ffi::Function& function) {
  const TVMFFIByteArray column{name, strlen(name)};
  TVMFFIAny hook;
  tie::StoreObject(ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(function), &hook);
  const TVMFFITypeAttrColumn* known = TVMFFIGetTypeAttrColumn(&column);
  // Another copy of this module may have been here.
  if (ffi::tether::FindAttr(known, ffi::TypeIndex::kTVMFFIFunction) != nullptr) return true;
  const int code = TVMFFITypeRegisterAttr(ffi::TypeIndex::kTVMFFIFunction, &column, &hook);
  if (code != 0) RaiseFromCall(code);
  return code == 0;
}

}  // namespace

int RegisterFunctionKeys() {
  return RegisterKeyHook("__any_hash__", ffi::Function::FromTyped(HashFunction)) &&
                 RegisterKeyHook("__any_equal__", ffi::Function::FromTyped(EqualFunctions))
             ? 0
             : -1;
}

}  // namespace tether_py
