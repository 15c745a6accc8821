// SPDX-License-Identifier: Apache-2.0
// Data that only a few wrappers have.
#include "python/wrap/notes.h"

#include <mutex>
#include <new>
#include <unordered_map>

namespace tether_py {

namespace {

template <int kKind>
struct NoteTable {
  ShortLock lock;
  std::unordered_map<PyObject*, void*> notes;
};
template <int kKind>
NoteTable<kKind>& note_table = *new NoteTable<kKind>();  // outlives the last wrapper

}  // namespace

template <int kKind>
void* NotesOf<kKind>::Find(PyObject* wrapper) {
  std::lock_guard<ShortLock> guard(note_table<kKind>.lock);
  auto it = note_table<kKind>.notes.find(wrapper);
  return it != note_table<kKind>.notes.end() ? it->second : nullptr;
}

template <int kKind>
bool NotesOf<kKind>::Set(PyObject* wrapper, const void* note) {
  try {
    std::lock_guard<ShortLock> guard(note_table<kKind>.lock);
    note_table<kKind>.notes[wrapper] = const_cast<void*>(note);
    count_.store(note_table<kKind>.notes.size(), std::memory_order_relaxed);
    return true;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return false;
  }
}

template <int kKind>
void NotesOf<kKind>::Erase(PyObject* wrapper) {
  std::lock_guard<ShortLock> guard(note_table<kKind>.lock);
  note_table<kKind>.notes.erase(wrapper);
  count_.store(note_table<kKind>.notes.size(), std::memory_order_relaxed);
}

template class NotesOf<0>;
template class NotesOf<1>;

}  // namespace tether_py
