// SPDX-License-Identifier: Apache-2.0
/*!
 * \file tvm_ffi_python_helpers.h
 * \brief For libraries that use the Python C API beside the FFI. Empty where Python.h is not found.
 *
 *   int Solve(PyObject* progress) {
 *     tvm::ffi::python::DetachedThread others_may_run;
 *     while (Step()) {
 *       tvm::ffi::python::AttachedThread here;
 *       tvm::ffi::python::CheckSignals();   // Ctrl-C leaves through the FFI as KeyboardInterrupt
 *       PyObject_CallNoArgs(progress);
 *     }
 *   }
 */
#ifndef TVM_FFI_PYTHON_HELPERS_H_
#define TVM_FFI_PYTHON_HELPERS_H_

#if defined(__has_include) && __has_include(<Python.h>)
#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <tvm/ffi/error.h>

namespace tvm {
namespace ffi {
namespace python {

/*! \brief Attaches the calling thread to the interpreter for as long as it lives. */
class AttachedThread {
 public:
  AttachedThread() : state_(PyGILState_Ensure()) {}
  ~AttachedThread() { PyGILState_Release(state_); }
  AttachedThread(const AttachedThread&) = delete;
  AttachedThread& operator=(const AttachedThread&) = delete;

 private:
  PyGILState_STATE state_;
};

/*! \brief Detaches the calling thread, which must be attached, for as long as it lives. */
class DetachedThread {
 public:
  DetachedThread() : state_(PyEval_SaveThread()) {}
  ~DetachedThread() { PyEval_RestoreThread(state_); }
  DetachedThread(const DetachedThread&) = delete;
  DetachedThread& operator=(const DetachedThread&) = delete;

 private:
  PyThreadState* state_;
};

/*! \brief Throws what Python takes for its pending exception if a signal handler raised one. */
inline void CheckSignals() {
  if (PyErr_CheckSignals() != 0) throw EnvErrorAlreadySet();
}

}  // namespace python
}  // namespace ffi
}  // namespace tvm
#endif  // __has_include(<Python.h>)
#endif  // TVM_FFI_PYTHON_HELPERS_H_
