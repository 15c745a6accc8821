// SPDX-License-Identifier: Apache-2.0
// A record of the objects that are made while it is switched on (recorder.cc), for inspect.cc.
#ifndef TETHER_PYTHON_WRAP_RECORDER_H_
#define TETHER_PYTHON_WRAP_RECORDER_H_

#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/base/ref.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

struct Record {
  Record* previous;
  Record* next;
  uint64_t serial;
  uint32_t line;  // index in Recorder::lines; 0: not known
  uint32_t unused[3];
  TVMFFIObjectAllocHeader header;
};
static_assert(sizeof(Record) == 48 &&
                  offsetof(Record, header) + sizeof(TVMFFIObjectAllocHeader) == sizeof(Record),
              "the alloc header ends where the object begins, which stays aligned");

inline Record* RecordBefore(void* body) { return static_cast<Record*>(body) - 1; }
inline TVMFFIObject* BodyOf(Record* record) { return reinterpret_cast<TVMFFIObject*>(record + 1); }

struct FirstFetch {
  int64_t serial;  // negative: made before or elsewhere, and only fetched while recording was on
  uint32_t line;
};

struct Recorder {
  std::mutex lock;
  Record all{&all, &all, 0, 0, {}, {nullptr}};  // the head of a ring
  uint64_t last_serial = 0;
  bool is_on = false;
  // Objects of other allocators, by when they were fetched first. Entries stay when objects die:
  // the table of adopted objects says who is alive.
  std::unordered_map<TVMFFIObject*, FirstFetch> fetched;
  // Element 0 stands for "not known".
  std::vector<std::pair<Ref, int>> lines{{Ref(), 0}};  // code object, line number
  std::map<std::pair<PyObject*, int>, uint32_t> index_of_line;
  std::string package;  // frames of files in this folder are passed over
  TVMFFICustomAllocator* usual_allocator = nullptr;
  const tie::AdoptedTable* usual_table = nullptr;
  tie::AdoptedTable table{};
};
extern Recorder& recorder;

// For Python: switch it on, given the folder of the package; switch it off and forget the lines.
PyObject* StartRecording(PyObject*, PyObject* package);
PyObject* StopRecording(PyObject*, PyObject*);
PyObject* IsRecording(PyObject*, PyObject*);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_RECORDER_H_
