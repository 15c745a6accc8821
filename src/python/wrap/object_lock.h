// SPDX-License-Identifier: Apache-2.0
// Looking at objects that other threads change.
#ifndef TETHER_PYTHON_WRAP_OBJECT_LOCK_H_
#define TETHER_PYTHON_WRAP_OBJECT_LOCK_H_

#include <optional>

#include "python/wrap/wrapper.h"

namespace tether_py {

// Free-threaded builds: while this lives no other Python thread changes the object, which the
// caller keeps alive. Copy what is of interest, with references, and end it before any Python code
// may run; where that is not possible, the lock is given up while such code waits.
//
// The critical section of an object's wrapper is its lock. Where nobody uses the wrapper, or there
// is none, the tie word is: no wrapper is made for every object that a walk of C++ meets.
class LookAtObject {
 public:
  explicit LookAtObject(TVMFFIObject* h, bool may_run_user_code = false) {
    if (kFreeThreaded) Enter(h, may_run_user_code);
  }
  ~LookAtObject() {
    if (kFreeThreaded) Leave();
  }
  LookAtObject(const LookAtObject&) = delete;
  LookAtObject& operator=(const LookAtObject&) = delete;

 private:
  void Enter(TVMFFIObject* h, bool may_run_user_code);
  void Leave();

  Wrapper* wrapper_ = nullptr;
  Engine::Kept kept_;
  std::optional<CriticalSection> section_;
};

// At import of a free-threaded build: walks of the library lock in the same way.
void InstallObjectLock();

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_OBJECT_LOCK_H_
