// SPDX-License-Identifier: Apache-2.0
// The fields of all types.
//
// Shared state:
//   all_fields         by its lock. Fields are added and never removed.
//   Field::last_class  lock-free, only in GIL builds; forgotten when the class dies
//                      (class_records.h).
//   Field, the rest    constant once FieldOfType has returned it, except that while the type is
//                      being registered plain_write may still turn true, and convert_element,
//                      element_class, is_pointer and kind may still be set. A reader may see either
//                      value.
#include "python/data/fields.h"

#include <map>
#include <mutex>

#include "python/base/compat.h"

namespace tether_py {

namespace {

struct AllFields {
  ShortLock lock;
  std::map<std::pair<int32_t, int32_t>, Field*> by_place;  // type index, number of the field
  const Field* first = nullptr;
};
AllFields& all_fields = *new AllFields();  // outlives the last class

}  // namespace

Field* FieldOfType(const TVMFFITypeInfo* type, int32_t i, bool keeps_plain_values) {
  std::lock_guard<ShortLock> guard(all_fields.lock);
  Field*& field = all_fields.by_place[{type->type_index, i}];
  if (field != nullptr) {
    if (keeps_plain_values) field->plain_write = true;
    return field;
  }
  const TVMFFIFieldInfo& info = type->fields[i];
  constexpr int64_t kMask = kTVMFFIFieldFlagBitMaskPlain | kTVMFFIFieldFlagBitSetterIsFunctionObj;
  FieldKind kind = ffi::tether::KindOfField(info);
  bool by_c_function =
      info.setter != nullptr && (info.flags & kTVMFFIFieldFlagBitSetterIsFunctionObj) == 0;
  field = new Field{info,
                    type->type_index,
                    std::string(info.name.data, info.name.size),
                    std::string(type->type_key.data, type->type_key.size),
                    kind,
                    keeps_plain_values || (info.flags & kMask) == kTVMFFIFieldFlagBitMaskPlain,
                    kind == FieldKind::kObject && by_c_function,
                    {nullptr},
                    all_fields.first};
  all_fields.first = field;
  return field;
}

void ForgetInFields(PyTypeObject* cls) {
  std::lock_guard<ShortLock> guard(all_fields.lock);
  for (const Field* field = all_fields.first; field != nullptr; field = field->next) {
    if (field->last_class.load(std::memory_order_relaxed) == cls) {
      field->last_class.store(nullptr, std::memory_order_relaxed);
    }
  }
}

}  // namespace tether_py
