// SPDX-License-Identifier: Apache-2.0
// References that C++ holds to Python objects, given back on any thread.
#ifndef TETHER_PYTHON_WRAP_RELEASE_QUEUE_H_
#define TETHER_PYTHON_WRAP_RELEASE_QUEUE_H_

#include "python/base/compat.h"

namespace tether_py {

// Releases `what` from any thread: now if this thread is attached, else on the next attached one.
void ReleaseWith(void* what, void (*release)(void*));
// A reference to a Python object.
void ReleaseFromAnyThread(void* obj);
void DrainReleases();

// How many wait for a thread that may release them.
int64_t CountPendingReleases();
// At exit: releases what waits; from then on what threads drop that are not attached is leaked.
void CloseReleaseQueue();

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_RELEASE_QUEUE_H_
