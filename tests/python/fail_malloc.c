// SPDX-License-Identifier: Apache-2.0
// A library to preload: from the n-th on, allocations of the thread that asks for it fail.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* block, size_t size);

static __thread long left __attribute__((tls_model("initial-exec"))) = -1;
static __thread long failed __attribute__((tls_model("initial-exec"))) = 0;
static __thread int only_one __attribute__((tls_model("initial-exec"))) = 0;

static int Fails(void) {
  if (left < 0) return 0;
  if (left > 0) {
    --left;
    return 0;
  }
  if (only_one) left = -1;
  ++failed;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) { return Fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return Fails() ? NULL : __libc_calloc(count, size); }
void* realloc(void* block, size_t size) { return Fails() ? NULL : __libc_realloc(block, size); }

// The allocation after the next n fails, or all after the next n.
void FailAfter(long n, int one) {
  only_one = one;
  failed = 0;
  left = n;
}

// How many failed.
long FailNoMore(void) {
  left = -1;
  return failed;
}
