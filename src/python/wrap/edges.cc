// SPDX-License-Identifier: Apache-2.0
// What the memory of an object refers to: fields that do not say what they hold in memory.
//
// Clients compiled against older headers do not mark fields as plain. What such a field declares
// tells a reference that counts from anything else in three cases:
//   8 bytes, static type of an object   raw pointers have no static type, standard containers are
//                                       larger
//   8 bytes, Optional of an object      std::optional of a reference has 16 bytes
//   16 bytes, Any
// Other fields are not read: std::optional and std::variant share schemas with types of ours that
// have another layout.
#include "python/wrap/edges.h"

#include <tvm/ffi/function.h>

#include <mutex>
#include <new>
#include <unordered_map>

namespace tether_py {

TVMFFIObject* (*module_of_function)(TVMFFIObject* function) = nullptr;

namespace {

// Answers of DeclaresReference by the address of the metadata, which stays.
struct KnownFields {
  std::unordered_map<const void*, bool> answers;
  ShortLock lock;  // a traversal while other threads run may ask
};
KnownFields& known_fields = *new KnownFields();

}  // namespace

bool OwnsObject(const TVMFFIFieldInfo& field) {
  bool is_pointer = field.size == sizeof(void*);
  if (field.field_static_type_index >= ffi::TypeIndex::kTVMFFIObject) return is_pointer;
  bool is_cell = is_pointer || field.size == sizeof(TVMFFIAny);
  if (field.field_static_type_index != ffi::TypeIndex::kTVMFFIAny || !is_cell) return false;
  {
    std::lock_guard<ShortLock> guard(known_fields.lock);
    auto it = known_fields.answers.find(field.metadata.data);
    if (it != known_fields.answers.end()) return it->second;
  }
  bool answer = false;
  try {
    answer = DeclaresReference(field);
  } catch (const std::bad_alloc&) {
    return false;
  } catch (const std::exception&) {  // no schema that we can read
  }
  // Out of memory is not an answer to cache. An uncached "yes" might become a "no" for the
  // next visitor, which has to see what this one saw.
  try {
    std::lock_guard<ShortLock> guard(known_fields.lock);
    return known_fields.answers.emplace(field.metadata.data, answer).first->second;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void LearnEdges() {
  HasPythonFields(0);  // finds the column, for which there must be memory
  void* module_of = ffi::Function::GetGlobalRequired("ffi.tether.ModuleOfFunction")().cast<void*>();
  module_of_function = reinterpret_cast<decltype(module_of_function)>(module_of);
}

}  // namespace tether_py
