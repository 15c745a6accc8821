// SPDX-License-Identifier: Apache-2.0
#include "python/wrap/notes.h"

#include <mutex>
#include <new>
#include <unordered_map>

namespace tether_py {

namespace {

struct NoteTable {
  ShortLock lock;
  std::unordered_map<PyObject*, void*> notes;
};
NoteTable& note_table = *new NoteTable();  // outlives the last wrapper

}  // namespace

void* Notes::Find(PyObject* wrapper) {
  std::lock_guard<ShortLock> guard(note_table.lock);
  auto it = note_table.notes.find(wrapper);
  return it != note_table.notes.end() ? it->second : nullptr;
}

bool Notes::Set(PyObject* wrapper, const void* note) {
  try {
    std::lock_guard<ShortLock> guard(note_table.lock);
    note_table.notes[wrapper] = const_cast<void*>(note);
    count_.store(note_table.notes.size(), std::memory_order_relaxed);
    return true;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return false;
  }
}

void Notes::Erase(PyObject* wrapper) {
  std::lock_guard<ShortLock> guard(note_table.lock);
  note_table.notes.erase(wrapper);
  count_.store(note_table.notes.size(), std::memory_order_relaxed);
}

}  // namespace tether_py
