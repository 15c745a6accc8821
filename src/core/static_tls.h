// SPDX-License-Identifier: Apache-2.0
// Thread-local variables of the hottest paths, at a fixed distance from the thread pointer.
//
//   thread_local TETHER_STATIC_TLS Lists* lists = nullptr;
//
// To read any other thread-local variable of a shared library takes a function call. This takes
// static TLS, of which a library that is loaded later gets little: pointers only.
#ifndef TETHER_CORE_STATIC_TLS_H_
#define TETHER_CORE_STATIC_TLS_H_

#if defined(__GNUC__) && !defined(__APPLE__)
#define TETHER_STATIC_TLS __attribute__((tls_model("initial-exec")))
#else
#define TETHER_STATIC_TLS
#endif

#endif  // TETHER_CORE_STATIC_TLS_H_
