// SPDX-License-Identifier: Apache-2.0
// Functions made from the address of a C function.
#include "python/call/from_symbol.h"

#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>

#include "python/base/entry.h"
#include "python/convert/errors.h"
#include "python/wrap/release_queue.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

namespace {

PyObject* FunctionFromHandle(TVMFFIObjectHandle handle) {
  return WrapOwned(static_cast<TVMFFIObject*>(handle));
}

// Arguments (symbol: int, *, keep_alive_object=None) of the two constructors from symbols.
bool ParseSymbol(PyObject* args, PyObject* kwargs, const char* format, void** symbol,
                 PyObject** keep_alive) {
  static const char* names[] = {"c_symbol", "keep_alive_object", nullptr};
  PyObject* address;
  *keep_alive = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names), &address,
                                   keep_alive)) {
    return false;
  }
  *symbol = PyLong_AsVoidPtr(address);
  if (*symbol == nullptr) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the symbol must not be NULL");
    return false;
  }
  return true;
}

// A function in the packed convention of MLIR: five pointers to handle, args, count, result, code.
class MLIRFunction : public ffi::FunctionObj {
 public:
  MLIRFunction(void (*symbol)(void**), PyObject* keep_alive)
      : symbol_(symbol), keep_alive_(Py_XNewRef(keep_alive)) {
    safe_call = Call;
  }
  ~MLIRFunction() {
    if (keep_alive_ != nullptr) ReleaseFromAnyThread(keep_alive_);
  }

 private:
  static int Call(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
    auto* self = static_cast<MLIRFunction*>(static_cast<ffi::Object*>(handle));
    void* no_handle = nullptr;
    int ret_code = 0;
    void* packed[] = {&no_handle, &args, &num_args, &result, &ret_code};
    self->symbol_(packed);
    return ret_code;
  }

  void (*symbol_)(void**);
  PyObject* keep_alive_;
};

}  // namespace

PyObject* FromExternC(PyObject*, PyObject* args, PyObject* kwargs) {
  void* symbol;
  PyObject* keep_alive;
  if (!ParseSymbol(args, kwargs, "O|$O:__from_extern_c__", &symbol, &keep_alive)) return nullptr;
  bool kept = keep_alive != Py_None;
  if (kept) Py_INCREF(keep_alive);
  TVMFFIObjectHandle handle = nullptr;
  int code = TVMFFIFunctionCreate(kept ? keep_alive : nullptr,
                                  reinterpret_cast<TVMFFISafeCallType>(symbol),
                                  kept ? ReleaseFromAnyThread : nullptr, &handle);
  if (code != 0) {
    if (kept) Py_DECREF(keep_alive);
    return RaiseFromCall(code);
  }
  return FunctionFromHandle(handle);
}

PyObject* FromMLIR(PyObject*, PyObject* args, PyObject* kwargs) {
  void* symbol;
  PyObject* keep_alive;
  if (!ParseSymbol(args, kwargs, "O|$O:__from_mlir_packed_safe_call__", &symbol, &keep_alive)) {
    return nullptr;
  }
  return Guarded([&] {
    auto func = ffi::make_object<MLIRFunction>(reinterpret_cast<void (*)(void**)>(symbol),
                                               keep_alive != Py_None ? keep_alive : nullptr);
    return FunctionFromHandle(
        ffi::details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(func)));
  });
}

}  // namespace tether_py
