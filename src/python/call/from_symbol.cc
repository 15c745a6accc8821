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

// A function that keeps a Python object, which never changes: the collector may look at it. `entry`
// makes the call and tells such functions from others.
class KeepingFunction : public ffi::FunctionObj {
 public:
  KeepingFunction(TVMFFISafeCallType entry, void* symbol, PyObject* kept)
      : symbol_(symbol), kept_(Py_XNewRef(kept)) {
    safe_call = entry;
  }
  ~KeepingFunction() {
    if (kept_ != nullptr) ReleaseFromAnyThread(kept_);
  }

  // NULL for a function of another kind.
  static KeepingFunction* From(TVMFFIObject* h) {
    TVMFFISafeCallType entry = TVMFFIFunctionGetCellPtr(h)->safe_call;
    if (entry != CallC && entry != CallMLIR) return nullptr;
    return ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<KeepingFunction>(h);
  }
  PyObject* kept() const { return kept_; }

  // The symbol has the convention of this interface, and the kept object as its handle.
  static int CallC(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
    auto* self = static_cast<KeepingFunction*>(static_cast<ffi::Object*>(handle));
    return reinterpret_cast<TVMFFISafeCallType>(self->symbol_)(self->kept_, args, num_args, result);
  }
  // The packed convention of MLIR: five pointers to handle, args, count, result, code.
  static int CallMLIR(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
    auto* self = static_cast<KeepingFunction*>(static_cast<ffi::Object*>(handle));
    void* no_handle = nullptr;
    int ret_code = 0;
    void* packed[] = {&no_handle, &args, &num_args, &result, &ret_code};
    reinterpret_cast<void (*)(void**)>(self->symbol_)(packed);
    return ret_code;
  }

 private:
  void* symbol_;
  PyObject* kept_;
};

PyObject* MakeKeeping(TVMFFISafeCallType entry, void* symbol, PyObject* kept) {
  return Guarded([&] {
    auto func = ffi::make_object<KeepingFunction>(entry, symbol, kept != Py_None ? kept : nullptr);
    return FunctionFromHandle(
        ffi::details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(func)));
  });
}

}  // namespace

PyObject* KeptBy(TVMFFIObject* function) {
  KeepingFunction* keeping = KeepingFunction::From(function);
  return keeping != nullptr ? keeping->kept() : nullptr;
}

PyObject* FromExternC(PyObject*, PyObject* args, PyObject* kwargs) {
  void* symbol;
  PyObject* kept;
  if (!ParseSymbol(args, kwargs, "O|$O:__from_extern_c__", &symbol, &kept)) return nullptr;
  if (kept != Py_None) return MakeKeeping(KeepingFunction::CallC, symbol, kept);
  TVMFFIObjectHandle handle = nullptr;
  auto entry = reinterpret_cast<TVMFFISafeCallType>(symbol);
  int code = TVMFFIFunctionCreate(nullptr, entry, nullptr, &handle);
  return code == 0 ? FunctionFromHandle(handle) : RaiseFromCall(code);
}

PyObject* FromMLIR(PyObject*, PyObject* args, PyObject* kwargs) {
  void* symbol;
  PyObject* kept;
  if (!ParseSymbol(args, kwargs, "O|$O:__from_mlir_packed_safe_call__", &symbol, &kept)) {
    return nullptr;
  }
  return MakeKeeping(KeepingFunction::CallMLIR, symbol, kept);
}

}  // namespace tether_py
