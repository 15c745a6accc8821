// SPDX-License-Identifier: Apache-2.0
// Exceptions that left Python for C++, until it shows whether C++ keeps them.
#ifndef TETHER_PYTHON_CONVERT_DEPARTURES_H_
#define TETHER_PYTHON_CONVERT_DEPARTURES_H_

#include <tvm/ffi/object.h>

#include "python/wrap/wrapper_object.h"

namespace tether_py {

class RaisedException;

// The error leaves Python. From then on SettleDepartures looks whether C++ keeps it.
void Depart(const ffi::ObjectPtr<RaisedException>& error);
void ReserveDepartures();  // at import: the first one may come when there is no memory left

// Whether an exception left Python for C++ in this thread and is not known to have ended. A call
// that succeeds looks here, in three instructions, and then asks SettleDepartures() what C++ keeps.
__attribute__((tls_model("initial-exec"))) inline thread_local bool any_departed = false;
// `arriving`: the error that the call ends with, which is not kept.
void SettleDepartures(TVMFFIObject* arriving = nullptr);
TVM_FFI_INLINE void AfterSuccess() {
  if (TVM_FFI_PREDICT_FALSE(any_departed)) SettleDepartures();
}

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_DEPARTURES_H_
