// SPDX-License-Identifier: Apache-2.0
// Dormant wrappers that only full collections look at. In GIL builds only.
#ifndef TETHER_PYTHON_WRAP_HIDDEN_H_
#define TETHER_PYTHON_WRAP_HIDDEN_H_

#include "python/wrap/wrapper.h"

namespace tether_py {

// A dormant wrapper that IsHidable (drop.h). It stays visible where memory is short. Unhide, which
// is for any wrapper, is in runtime.h.
void Hide(Wrapper* w);
size_t NumHidden();
Wrapper* HiddenAt(size_t i);

// For a collection: lets it see all hidden wrappers. HideShown, at its end, hides them again, and
// those given to HideLater. One that cannot be remembered for lack of memory stays visible.
void ShowHidden();
void HideLater(Wrapper* w);
size_t NumShown();
void HideShown();
// At exit: all become visible and stay so. The last collections of CPython are not announced.
void StopHiding();

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_HIDDEN_H_
