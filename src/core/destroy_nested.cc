// SPDX-License-Identifier: Apache-2.0
// Long chains of objects are destroyed without a deep stack: DeleteNested (memory.h) asks here.
//
// Apart from the code that asks: compilers know that what is defined in the same file is not null.
#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/c_api.h>

#include <new>
#include <vector>

extern "C" TVM_FFI_DLL void TVMFFITetherDestroyNested(void* self, int flags,
                                                      void (*destroy)(void*, int));

namespace {

using tvm::ffi::tether::StackAddress;

struct Waiting {
  void* self;
  void (*destroy)(void*, int);
};

// What a thread is destroying, from the first checkpoint on.
struct State {
  uintptr_t outermost;            // stack address of the level that empties the list, or 0
  std::vector<Waiting>* waiting;  // lives in that level; the objects themselves stay untouched
};
thread_local State state_of_thread = {0, nullptr};

bool PutOnList(State* state, const Waiting& object) {
  try {
    state->waiting->push_back(object);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void DestroyOutermost(State* state, void* self, int flags, void (*destroy)(void*, int)) {
  std::vector<Waiting> waiting;
  *state = {StackAddress(), &waiting};
  destroy(self, flags);
  while (!waiting.empty()) {
    Waiting next = waiting.back();
    waiting.pop_back();
    next.destroy(next.self, kTVMFFIObjectDeleterFlagBitMaskBoth);
  }
  *state = {0, nullptr};
}

}  // namespace

void TVMFFITetherDestroyNested(void* self, int flags, void (*destroy)(void*, int)) {
  State* state = &state_of_thread;
  if (state->outermost == 0) return DestroyOutermost(state, self, flags, destroy);
  // Destruction may only be delayed if nothing can use the object any more.
  bool is_deep = state->outermost - StackAddress() > 32 * 1024;
  bool may_wait = is_deep && flags == kTVMFFIObjectDeleterFlagBitMaskBoth;
  if (!may_wait || !PutOnList(state, {self, destroy})) destroy(self, flags);
}
