// SPDX-License-Identifier: Apache-2.0
// A record of the objects that are made while it is switched on.
//
// While recording is on, another allocator is current, whose blocks begin with a Record, all of
// them in one list. To the tie these are objects of another allocator, so Python adopts them when
// it fetches them; that call is caught too, because it is made by the Python line that fetched the
// object first.
//
// Shared state, all in `recorder`:
//   the Records, `lines`, `fetched`, ...   recorder.lock. No Python code runs under it, and nothing
//                                          is freed but the Record's own block, so a recorded block
//                                          stays while the lock is held.
//   is_on, package, the usual_* and table  written by StartRecording and StopRecording, which the
//                                          package calls under a lock of its own. Any thread reads
//                                          package and usual_table without a lock: only through the
//                                          allocator and the table of the recorder, which are made
//                                          current afterwards. A second start writes the same.
#include "python/wrap/recorder.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "python/base/python_api.h"
#include "python/wrap/upper_layers.h"

namespace tether_py {

Recorder& recorder = *new Recorder();  // objects die later than static variables

namespace {

bool IsOurs(PyCodeObject* code) {
  Py_ssize_t size = 0;
  const char* name = PyUnicode_AsUTF8AndSize(code->co_filename, &size);
  if (name == nullptr) {
    PyErr_Clear();
    return false;
  }
  const std::string& package = recorder.package;
  return static_cast<size_t>(size) > package.size() &&
         std::memcmp(name, package.data(), package.size()) == 0;
}

// Reading the current line may make frame objects. Before 3.12 that can start a collection, in the
// middle of C++ code.
class NoCollection {
 public:
  NoCollection() : was_on_(PY_VERSION_HEX < 0x030C0000 && PyGC_Disable() != 0) {}
  NoCollection(const NoCollection&) = delete;
  NoCollection& operator=(const NoCollection&) = delete;
  ~NoCollection() {
    if (was_on_) PyGC_Enable();
  }

 private:
  bool was_on_;
};

// The line that is being executed, outside of this package; 0 if it cannot be known.
uint32_t CurrentLine() {
  if (!AttachedHere() || IsFinalizing() || Runtime::collecting) return 0;
  NoCollection guard;
  ErrorAside aside;
  Ref frame = Ref::Borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  Ref code;
  int number = 0;
  while (frame) {
    auto* current = reinterpret_cast<PyFrameObject*>(frame.get());
    code = Ref::Steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(current)));
    number = PyFrame_GetLineNumber(current);
    if (!IsOurs(reinterpret_cast<PyCodeObject*>(code.get()))) break;
    frame = Ref::Steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(current)));
  }
  if (!code) return 0;
  std::lock_guard<std::mutex> locked(recorder.lock);
  try {
    auto key = std::make_pair(code.get(), number);
    auto it = recorder.index_of_line.find(key);
    if (it != recorder.index_of_line.end()) return it->second;
    auto index = static_cast<uint32_t>(recorder.lines.size());
    recorder.lines.emplace_back(code, number);
    recorder.index_of_line.emplace(key, index);
    return index;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

void ForgetRecorded(void* body) {
  Record* record = RecordBefore(body);
  {
    std::lock_guard<std::mutex> locked(recorder.lock);
    record->previous->next = record->next;
    record->next->previous = record->previous;
  }
  std::free(record);
}

void* AllocateRecorded(size_t size, size_t alignment, int32_t /*type_index*/, void*) {
  if (alignment > alignof(std::max_align_t)) {
    TVMFFIErrorSetRaisedFromCStr("ValueError",
                                 "objects cannot be aligned more strictly than max_align_t");
    return nullptr;
  }
  if (size > SIZE_MAX - sizeof(Record)) throw std::bad_alloc();
  // Zeroed: until it is constructed its count says that there is nothing to see.
  void* block = std::calloc(1, sizeof(Record) + size);
  if (block == nullptr) throw std::bad_alloc();
  uint32_t line = CurrentLine();
  Record* head = &recorder.all;
  std::lock_guard<std::mutex> locked(recorder.lock);
  auto* record =
      new (block) Record{head, head->next, ++recorder.last_serial, line, {}, {&ForgetRecorded}};
  head->next->previous = record;
  head->next = record;
  return record + 1;
}

TVMFFICustomAllocator recording_allocator{AllocateRecorded, nullptr};

tie::TieSlot* AdoptRecorded(TVMFFIObject* h, const tie::TieFrontend* frontend) {
  bool has_header =
      tie::LoadPadding<tie::NoHooks>(h) == static_cast<uint32_t>(kTVMFFIObjectAllocHeaderMark);
  Record* record = has_header && RecordBefore(h)->header.delete_space == &ForgetRecorded
                       ? RecordBefore(h)
                       : nullptr;
  bool is_adopted =
      tie::FindAdopted(*recorder.usual_table, h, tie::LoadPadding<tie::NoHooks>(h)) != nullptr;
  if (record != nullptr ? record->line == 0 : !is_adopted) {
    uint32_t line = CurrentLine();
    std::lock_guard<std::mutex> locked(recorder.lock);
    if (record != nullptr) {
      record->line = line;
    } else {
      try {
        recorder.fetched[h] = {-static_cast<int64_t>(++recorder.last_serial), line};
      } catch (const std::bad_alloc&) {  // it has no line then
      }
    }
  }
  return recorder.usual_table->adopt(h, frontend);
}

}  // namespace

PyObject* StartRecording(PyObject*, PyObject* package) {
  const char* folder = PyUnicode_AsUTF8(package);
  if (folder == nullptr) return nullptr;
  if (recorder.is_on) Py_RETURN_FALSE;
  upper_layers.drop_spares();  // a spare one that is used again is not allocated again
  recorder.package = folder;
  recorder.usual_table = &Runtime::Table();
  recorder.table = *recorder.usual_table;
  recorder.table.adopt = &AdoptRecorded;
  recorder.usual_allocator = TVMFFIGetCustomAllocator();
  Runtime::adopted_table.store(&recorder.table, std::memory_order_release);
  TVMFFISetCustomAllocator(&recording_allocator);
  recorder.is_on = true;
  Py_RETURN_TRUE;
}

PyObject* StopRecording(PyObject*, PyObject*) {
  if (!recorder.is_on) Py_RETURN_FALSE;
  TVMFFISetCustomAllocator(recorder.usual_allocator);
  Runtime::adopted_table.store(recorder.usual_table, std::memory_order_release);
  recorder.is_on = false;
  std::vector<std::pair<Ref, int>> lines{{Ref(), 0}};
  {
    std::lock_guard<std::mutex> locked(recorder.lock);
    lines.swap(recorder.lines);
    recorder.index_of_line.clear();
    recorder.fetched.clear();
    for (Record* it = recorder.all.next; it != &recorder.all; it = it->next) it->line = 0;
  }
  Py_RETURN_TRUE;
}

PyObject* IsRecording(PyObject*, PyObject*) { return PyBool_FromLong(recorder.is_on); }

}  // namespace tether_py
