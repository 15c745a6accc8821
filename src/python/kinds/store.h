// SPDX-License-Identifier: Apache-2.0
// What the setters share: storing a value.
#ifndef TETHER_PYTHON_KINDS_STORE_H_
#define TETHER_PYTHON_KINDS_STORE_H_

#include <utility>

#include "python/base/entry.h"
#include "python/convert/convert.h"

namespace tether_py {

inline void Store(TVMFFIAny* out, int32_t index, int64_t value) {
  out->type_index = index;
  out->zero_padding = 0;
  out->v_int64 = value;
}

inline bool StoreOwned(ffi::Any value, TVMFFIAny* out, Arguments* args) {
  *out = ffi::details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(value));
  args->Keep(*out);
  return true;
}

// Runs a conversion that may throw. False with an error set.
template <typename F>
bool Try(F&& f) {
  bool done = false;
  Guarded([&]() -> PyObject* {
    done = f();
    return nullptr;
  });
  return done;
}

}  // namespace tether_py
#endif  // TETHER_PYTHON_KINDS_STORE_H_
