// SPDX-License-Identifier: Apache-2.0
// Values across the boundary: Python -> Any (arguments), Any -> Python (results), exceptions both
// ways.
#ifndef TETHER_PYTHON_CONVERT_H_
#define TETHER_PYTHON_CONVERT_H_

#include "wrapper.h"

#include <tvm/ffi/any.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

#include <memory>
#include <vector>

namespace tether_py {

// ---- Python -> Any
// ------------------------------------------------------------------------------------

// Arguments of one call as borrowed values, and what must live until it returns.
class Arguments {
 public:
  Arguments() = default;
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  ~Arguments() {
    if (TVM_FFI_PREDICT_FALSE(holds_something_)) LetGo();
  }

  // False with an error set.
  bool Reserve(Py_ssize_t n) { return TVM_FFI_PREDICT_TRUE(n <= capacity_) || ReserveMore(n); }
  bool Add(PyObject* arg);
  bool AddAll(PyObject* const* args, Py_ssize_t n);
  TVMFFIAny* data() { return data_; }
  int32_t size() const { return size_; }

  // For conversions: keep a value or a Python object until the call is over.
  void Keep(TVMFFIAny owned);
  void Keep(Ref obj);
  // A slot the callee may take `w`'s object from; what it leaves goes back to `w`. NULL with an
  // error set.
  TVMFFIObject** MoveOut(Wrapper* w);

 private:
  struct Moved {
    TVMFFIObject* object;
    Ref wrapper;
  };
  bool ReserveMore(Py_ssize_t n);
  void LetGo();

  static constexpr int32_t kInline = 8;
  TVMFFIAny inline_[kInline];
  TVMFFIAny* data_ = inline_;
  int32_t capacity_ = kInline;
  int32_t size_ = 0;
  bool holds_something_ = false;  // anything below
  bool has_kept_value_ = false;
  TVMFFIAny kept_value_;  // the first kept value needs no allocation
  std::vector<TVMFFIAny>* more_values_ = nullptr;
  std::vector<Ref>* kept_objects_ = nullptr;
  std::vector<std::unique_ptr<Moved>>* moved_ = nullptr;
};

// One borrowed value; temporaries go to `args`. False with an error set.
bool ToAny(PyObject* obj, TVMFFIAny* out, Arguments* args);

// The same, with the most frequent kind of argument handled in line.
inline bool ToAnyInline(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  int64_t value;
  if (!PyLong_CheckExact(obj) || !LoadCompactInt(obj, &value)) return ToAny(obj, out, args);
  out->type_index = ffi::TypeIndex::kTVMFFIInt;
  out->zero_padding = 0;
  out->v_int64 = value;
  return true;
}

inline bool Arguments::Add(PyObject* arg) {
  if (TVM_FFI_PREDICT_FALSE(!ToAnyInline(arg, &data_[size_], this))) return false;
  ++size_;
  return true;
}

inline bool Arguments::AddAll(PyObject* const* args, Py_ssize_t n) {
  if (!Reserve(n)) return false;
  TVMFFIAny* out = data_;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (TVM_FFI_PREDICT_FALSE(!ToAnyInline(args[i], out + i, this))) return false;
  }
  size_ = static_cast<int32_t>(n);
  return true;
}

// One owned value. False with an error set.
bool ToOwnedAny(PyObject* obj, ffi::Any* out);

// ---- Any -> Python
// ------------------------------------------------------------------------------------

// Everything that has a conversion of its own; the inline functions below come first.
PyObject* FromOwnedAnySlow(const TVMFFIAny& value);
PyObject* FromBorrowedAnySlow(const TVMFFIAny& value);

// Takes over an owned value. NULL with an error set.
inline PyObject* FromOwnedAny(const TVMFFIAny& value) {
  if (value.type_index >= ffi::TypeIndex::kTVMFFIDynObjectBegin) return WrapOwned(value.v_obj);
  if (value.type_index == ffi::TypeIndex::kTVMFFIInt) return PyLong_FromLongLong(value.v_int64);
  return FromOwnedAnySlow(value);
}
// A value somebody else owns: arguments of a callback, elements of a container.
inline PyObject* FromBorrowedAny(const TVMFFIAny& value) {
  if (value.type_index >= ffi::TypeIndex::kTVMFFIDynObjectBegin) return WrapBorrowed(value.v_obj);
  if (value.type_index == ffi::TypeIndex::kTVMFFIInt) return PyLong_FromLongLong(value.v_int64);
  return FromBorrowedAnySlow(value);
}

// ---- functions
// ----------------------------------------------------------------------------------------

void InitFunctionWrapper(FunctionWrapper* w);
// The Python callable inside a function made by this frontend, borrowed, or NULL.
PyObject* CallableOf(TVMFFIObject* function);
// A function object around a Python callable. NULL object with an error set.
ffi::Function MakeCallback(PyObject* callable);
PyObject* InitHandleByConstructor(PyObject* self, PyObject* const* args, Py_ssize_t nargs);

// ---- errors
// -------------------------------------------------------------------------------------------

// Raises in Python what a failed call left behind. Always returns NULL.
PyObject* RaiseFromCall(int code);
// The pending Python exception as an FFI error, which is then raised in this thread's slot.
void RaiseToCaller();
// An FFI error for an exception object. Null with a Python error set.
ffi::Optional<ffi::Error> ErrorFromException(PyObject* exc, bool with_native_frames);
// Runs f, turning C++ exceptions into Python ones.
template <typename F>
PyObject* Guarded(F&& f) {
  try {
    return f();
  } catch (const ffi::Error& error) {
    TVMFFIErrorSetRaised(ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(error));
    return RaiseFromCall(-1);
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

int InitFunctionType(PyObject* module);
int InitErrorType(PyObject* module);
int InitFieldTypes(PyObject* module);
int InitContainerTypes(PyObject* module);
int InitReflection(PyObject* module);
int InitPyClass(PyObject* module);

// A type of the module deriving from `base`. Borrowed by types.*, owned by the module.
PyTypeObject* AddType(PyObject* module, PyType_Spec* spec, PyTypeObject* base);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_H_
