// SPDX-License-Identifier: Apache-2.0
// Dormant wrappers that only full collections look at.
//
// Dormant wrappers of classes defined in Python would slow every collection. The ones that
// survive a collection are hidden: CPython does not know of them until a full one begins.
#include "python/wrap/hidden.h"

#include <vector>

#include "python/base/pointer_set.h"

namespace tether_py {

namespace {

// Never destroyed: wrappers die later than static objects.
// A hidden wrapper has no weak references; that field says where it is in here.
std::vector<Wrapper*>& hidden = *new std::vector<Wrapper*>();
// Tracked now, and to be hidden when the collection in progress ends.
PointerSet<Wrapper>& shown = *new PointerSet<Wrapper>();
bool is_over = false;

// An odd number is no list of weak references.
void SetPlace(Wrapper* w, size_t place) {
  w->weakrefs = reinterpret_cast<PyObject*>(2 * place + 1);
}

}  // namespace

size_t NumHidden() { return hidden.size(); }
Wrapper* HiddenAt(size_t i) { return hidden[i]; }

void HideLater(Wrapper* w) { shown.Insert(w); }
size_t NumShown() { return shown.size(); }

void ShowHidden() {
  if (!shown.Reserve(shown.size() + hidden.size())) return;
  for (Wrapper* w : hidden) {
    w->weakrefs = nullptr;
    PyObject_GC_Track(AsObject(w));
    shown.Insert(w);
  }
  hidden.clear();
}

void StopHiding() {
  ShowHidden();
  is_over = true;
}

void HideShown() {
  PointerSet<Wrapper> all;
  all.Swap(&shown);
  all.ForEach([](Wrapper* w) {
    // Somebody may have found it in gc.get_objects().
    if (w->weakrefs == nullptr && Py_REFCNT(AsObject(w)) == 1) Hide(w);
  });
}

void Hide(Wrapper* w) {
  if (is_over) return;
  try {
    hidden.push_back(w);
  } catch (const std::bad_alloc&) {  // it stays visible
    return;
  }
  SetPlace(w, hidden.size() - 1);
  PyObject_GC_UnTrack(AsObject(w));
}

void UnhideSlow(Wrapper* w) {
  if (IsHidden(w)) {
    size_t place = reinterpret_cast<uintptr_t>(w->weakrefs) / 2;
    Wrapper* last = hidden.back();
    hidden[place] = last;
    SetPlace(last, place);
    hidden.pop_back();
    w->weakrefs = nullptr;
  } else {
    shown.Erase(w);
  }
}

}  // namespace tether_py
