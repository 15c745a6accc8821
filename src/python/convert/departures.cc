// SPDX-License-Identifier: Apache-2.0
// Exceptions that left Python for C++, until it shows whether C++ keeps them.
//
// An exception in flight keeps its frames: a debugger at the caller wants to see them. Whether C++
// passes it on or keeps it shows when control is back in the Python frame that called C++: an error
// that is then still alive was kept, and lets its frames go.
//
// Shared state: any_departed, the departures: of one thread each.
#include "python/convert/departures.h"

#include <tvm/ffi/memory.h>

#include <new>
#include <vector>

#include "core/thread_owned.h"
#include "python/base/ref.h"
#include "python/convert/raised_exception.h"

namespace tether_py {

namespace {

struct Departure {
  RaisedException* address;
  ffi::WeakObjectPtr<RaisedException> error;
  const void* frame;  // only compared
};
// Of this thread, in the order in which they left Python.
struct Departures {
  using Type = std::vector<Departure>;
};
std::vector<Departure>& OfThread() { return ffi::tether::ThreadOwned<Departures>::Get(); }

Ref CurrentFrame() {
  return Ref::Steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
}

// Whether `frame` waits for a call in which the current one runs.
bool IsWaiting(const void* frame) {
  Ref at = CurrentFrame();
  while (at) {
    at = Ref::Steal(
        reinterpret_cast<PyObject*>(PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(at.get()))));
    if (at.get() == frame) return true;
  }
  return false;
}

}  // namespace

void ReserveDepartures() { OfThread().reserve(4); }

void Depart(const ffi::ObjectPtr<RaisedException>& error) {
  Ref frame = CurrentFrame();
  // A thread of C++ has no caller to show them to.
  if (!frame) return error->LetFramesGo();
  try {
    std::vector<Departure>& departures = OfThread();
    while (!departures.empty() && departures.back().error.expired()) departures.pop_back();
    departures.push_back({error.get(), ffi::WeakObjectPtr<RaisedException>(error), frame.get()});
    any_departed = true;
  } catch (const std::bad_alloc&) {
    error->LetFramesGo();
  }
}

// Only after Depart in this thread.
void SettleDepartures(TVMFFIObject* arriving) {
  std::vector<Departure>& departures = OfThread();
  auto is_arriving = [&](const Departure& departure) {
    return arriving != nullptr && departure.address == RaisedException::Of(arriving);
  };
  // Locals that die may run code that calls C++ and changes the list.
  while (!departures.empty()) {
    if (!departures.back().error.expired() && !is_arriving(departures.back())) {
      if (IsWaiting(departures.back().frame)) break;
      ffi::ObjectPtr<RaisedException> kept = departures.back().error.lock();
      departures.pop_back();
      if (kept != nullptr) kept->LetFramesGo();
    } else {
      departures.pop_back();
    }
  }
  any_departed = !departures.empty();
}

}  // namespace tether_py
