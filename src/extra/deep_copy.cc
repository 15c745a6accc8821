// SPDX-License-Identifier: Apache-2.0
//
// DeepCopy: a copy of a value and of everything reachable from it. One copy per source object, so
// sharing and cycles are preserved.
//
// A List, a Dict or a reflected object gets its copy before its children are looked at: a reference
// back to it finds the copy. An Array or a Map is immutable and can only be built last; a reference
// back to one still being built is left pointing at the source ("a leftover") and repaired when the
// walk is over. Such a cycle always leads through something mutable.
//
// One walk can copy several values, one after the other: what they share is copied once.
//
// The copy of a cycle is a cycle of C++ references. A frontend that can collect cycles is told of
// its members, each of which may be the only one it can see. If copying fails, the copies made so
// far drop their references to each other.
#include <tvm/ffi/enum.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/copy_tensor.h"
#include "object_graph.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

bool IsLeaf(const Any& value) {
  switch (value.type_index()) {
    case kTVMFFIStr:
    case kTVMFFIBytes:
    case kTVMFFIShape:
    case kTVMFFIBigInt:
      return true;
    default:
      return value.type_index() < kTVMFFIStaticObjectBegin || value.as<EnumObj>() != nullptr;
  }
}

ObjectRef ShallowCopy(const Any& source) {
  static const reflection::TypeAttrColumn copiers(reflection::type_attr::kShallowCopy);
  AnyView copier = copiers[source.type_index()];
  if (copier == nullptr) {
    TVM_FFI_THROW(InternalError) << "Cannot deep copy object of type \""
                                 << TypeKeyOf(source.type_index())
                                 << "\" because it is not copy-constructible";
  }
  Function copy = copier.cast<Function>();
  ObjectLock lock(ObjectOf(source), /*may_run_user_code=*/true);
  return copy(source).cast<ObjectRef>();
}

struct CopyFrame {
  size_t slot;               // the child that the copy replaces
  size_t record;             // of the node itself
  size_t lowest = SIZE_MAX;  // depth of the outermost node being copied that this one leads back to
};

class CopyWalk : public GraphWalk<CopyWalk, CopyFrame> {
 public:
  // `in_cycle`, if there is one, is called with every reflected object that is copied in a cycle.
  Any Run(const Any& root, const Function& in_cycle) {
    if (is_running_) {
      TVM_FFI_THROW(RuntimeError) << "a deep copy was used again while it was at work";
    }
    struct Running {
      CopyWalk* walk;
      ~Running() {
        walk->is_running_ = walk->has_leftovers_ = false;
        walk->frames_.clear();
        walk->children_.clear();
        walk->finished_.clear();
      }
    } running{this};
    is_running_ = true;
    first_ = records_.size();
    children_.push_back({root, nullptr});
    try {
      VisitChild(0);
      Drain(0);
      if (has_leftovers_) RepairAll();
      if (in_cycle != nullptr) {
        for (size_t i = first_; i < records_.size(); ++i) {
          const Record& record = records_[i];
          if (record.is_in_cycle && IsReflected(record.copy)) in_cycle(record.copy);
        }
      }
    } catch (...) {
      TakeApart();
      throw;
    }
    return std::move(children_[0].value);
  }

  // Replaces the child by its copy, now or when the pushed frame is left. A child that stays as it
  // is loses its field: there is nothing to write back.
  void VisitChild(size_t index) {
    Child& child = children_[index];
    if (IsLeaf(child.value)) {
      child.field = nullptr;
      return;
    }
    size_t& number = numbers_[ObjectOf(child.value)];
    if (number == 0) {
      number = records_.size() + 1;
      entered_ = ObjectOf(child.value);
      Enter(index);
      return;
    }
    Record& record = records_[number - 1];
    if (record.depth != 0) ReachesBack(record.depth);
    if (record.copy != nullptr) {
      child.value = record.copy;
    } else {
      record.is_leftover = has_leftovers_ = true;
      child.field = nullptr;
    }
  }

  void Leave(Frame& frame) {
    Record& record = records_[frame.data.record];
    size_t count = frame.last - frame.first;
    Child* parts = children_.data() + frame.first;
    switch (frame.node.type_index()) {
      case kTVMFFIArray: {
        Array<Any> copy;
        copy.reserve(static_cast<int64_t>(count));
        for (size_t i = 0; i < count; ++i) copy.push_back(parts[i].value);
        record.copy = std::move(copy);
        break;
      }
      case kTVMFFIList: {
        auto copy = record.copy.cast<List<Any>>();
        copy.reserve(static_cast<int64_t>(count));
        for (size_t i = 0; i < count; ++i) copy.push_back(parts[i].value);
        break;
      }
      case kTVMFFIMap: {
        Map<Any, Any> copy;
        for (size_t i = 0; i < count; i += 2) copy.Set(parts[i].value, parts[i + 1].value);
        record.copy = std::move(copy);
        break;
      }
      case kTVMFFIDict: {
        auto copy = record.copy.cast<Dict<Any, Any>>();
        for (size_t i = 0; i < count; i += 2) copy.Set(parts[i].value, parts[i + 1].value);
        break;
      }
      default:
        for (size_t i = 0; i < count; ++i) {
          if (parts[i].field == nullptr) continue;
          SetField(parts[i].field, ObjectOf(record.copy), parts[i].value);
        }
    }
    record.is_in_cycle = frame.data.lowest <= record.depth;
    if (frame.data.lowest < record.depth) ReachesBack(frame.data.lowest);
    record.depth = 0;
    finished_.push_back(frame.data.record);
    children_[frame.data.slot].value = record.copy;
  }

  void Abandon(const Frame&) {}

 private:
  // Owns both sides: the source too, because a getter may have made it just now.
  struct Record {
    Any source;
    Any copy;          // None while an Array or a Map is being built
    size_t depth = 0;  // in the stack of frames, while it is there
    bool is_leftover = false;
    bool is_in_cycle = false;
  };

  static bool IsReflected(const Any& value) { return value.type_index() >= kTVMFFIDynObjectBegin; }

  static void SetField(const TVMFFIFieldInfo* field, const Object* copy, const Any& value) {
    try {
      reflection::FieldSetter set(field);
      set(copy, value);
    } catch (const Error& error) {
      RethrowWithField(ToView(field->name), copy->type_index(), error);
    }
  }

  // The node on top of the stack leads to one at `depth`, which is not finished either.
  void ReachesBack(size_t depth) {
    size_t& lowest = frames_.back().data.lowest;
    lowest = std::min(lowest, depth);
  }

  // What was copied may be in cycles already, which nothing else would ever break. A reflected
  // object goes back to what it was after its shallow copy.
  void TakeApart() noexcept {
    size_t* last = entered_ != nullptr ? numbers_.Find(entered_) : nullptr;
    if (last != nullptr && *last > records_.size()) *last = 0;  // it has no record
    for (size_t i = first_; i < records_.size(); ++i) {
      const Record& record = records_[i];
      if (size_t* number = numbers_.Find(ObjectOf(record.source))) *number = 0;
      try {
        if (auto list = record.copy.as<List<Any>>()) {
          list->clear();
        } else if (auto dict = record.copy.as<Dict<Any, Any>>()) {
          dict->clear();
        } else if (IsReflected(record.copy)) {
          const Object* copy = ObjectOf(record.copy);
          reflection::ForEachFieldInfo(TVMFFIGetTypeInfo(copy->type_index()),
                                       [&](const TVMFFIFieldInfo* field) {
                                         Any value = ReadField(field, ObjectOf(record.source));
                                         reflection::FieldSetter set(field);
                                         if (!IsLeaf(value)) set(copy, value);
                                       });
        }
      } catch (...) {
        // A setter that refuses what its field had: the copy keeps what it has.
      }
    }
    records_.resize(first_);
  }

  void Enter(size_t index) {
    Any source = std::move(children_[index].value);
    Record record{source, Any()};
    switch (source.type_index()) {
      case kTVMFFIArray:
      case kTVMFFIMap:
        break;
      case kTVMFFIList:
        record.copy = List<Any>();
        break;
      case kTVMFFIDict:
        record.copy = Dict<Any, Any>();
        break;
      case kTVMFFITensor:
        record.copy = CopyTensor(*source.as<TensorObj>());
        break;
      default:
        record.copy = ShallowCopy(source);
    }
    records_.push_back(std::move(record));
    Push(std::move(source), 0, {index, records_.size() - 1});
    records_.back().depth = frames_.size();
  }

  // True, and `value` replaced, if it is a leftover.
  bool Repair(Any* value) {
    if (value->type_index() < kTVMFFIStaticObjectBegin) return false;
    const size_t* number = numbers_.Find(ObjectOf(*value));
    if (number == nullptr || *number == 0 || !records_[*number - 1].is_leftover) return false;
    *value = records_[*number - 1].copy;
    return true;
  }

  // In the order of completion, so that what an Array or a Map holds is repaired before it is. Only
  // then come the mutable ones, which may hold anything.
  void RepairAll() {
    for (size_t i : finished_) {
      if (records_[i].copy.type_index() == kTVMFFIArray) RepairItems(records_[i].copy);
      if (records_[i].copy.type_index() == kTVMFFIMap) RepairMap(i);
    }
    for (size_t i : finished_) {
      Any copy = records_[i].copy;
      switch (copy.type_index()) {
        case kTVMFFIArray:
        case kTVMFFIMap:
          break;
        case kTVMFFIList:
          RepairItems(copy);
          break;
        case kTVMFFIDict:
          RepairDict(copy.cast<Dict<Any, Any>>());
          break;
        default:
          RepairFields(ObjectOf(copy));
      }
    }
    Repair(&children_[0].value);
  }

  // Arrays are changed in place, too: only this walk has seen them yet.
  void RepairItems(const Any& copy) {
    auto* seq = static_cast<SeqBaseObj*>(const_cast<Object*>(ObjectOf(copy)));
    for (int64_t i = 0; i < static_cast<int64_t>(seq->size()); ++i) {
      Any item = (*seq)[i];
      if (Repair(&item)) seq->SetItem(i, std::move(item));
    }
  }

  // The entries of a mapping, repaired; false if there was nothing to do.
  bool RepairedEntries(const Any& copy, std::vector<std::pair<Any, Any>>* entries) {
    bool changed = false;
    for (const auto& [key, value] : *static_cast<const MapBaseObj*>(ObjectOf(copy))) {
      entries->emplace_back(key, value);
      changed |= Repair(&entries->back().first);
      changed |= Repair(&entries->back().second);
    }
    return changed;
  }

  // A changed key moves its entry, so the map is built again and the first attempt becomes a
  // leftover.
  void RepairMap(size_t index) {
    std::vector<std::pair<Any, Any>> entries;
    if (!RepairedEntries(records_[index].copy, &entries)) return;
    Map<Any, Any> rebuilt;
    for (const auto& [key, value] : entries) rebuilt.Set(key, value);
    Record attempt{records_[index].copy, rebuilt};
    attempt.is_leftover = true;
    records_[index].copy = rebuilt;
    numbers_[ObjectOf(attempt.source)] = records_.size() + 1;
    records_.push_back(std::move(attempt));
  }

  void RepairDict(Dict<Any, Any> copy) {
    std::vector<std::pair<Any, Any>> entries;
    if (!RepairedEntries(copy, &entries)) return;
    copy.clear();
    for (const auto& [key, value] : entries) copy.Set(key, value);
  }

  void RepairFields(const Object* copy) {
    reflection::ForEachFieldInfo(TVMFFIGetTypeInfo(copy->type_index()),
                                 [&](const TVMFFIFieldInfo* field) {
                                   Any value = reflection::FieldGetter(field)(copy);
                                   if (Repair(&value)) SetField(field, copy, value);
                                 });
  }

  std::vector<Record> records_;
  AddressMap<const Object*, size_t> numbers_;  // position in records_ plus one
  std::vector<size_t> finished_;
  bool has_leftovers_ = false;
  bool is_running_ = false;
  size_t first_ = 0;                 // in records_, of this run
  const Object* entered_ = nullptr;  // the last one that got a number
};

/*! \brief Copies several values that share parts. */
class DeepCopierObj : public Object {
 public:
  CopyWalk walk;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ffi.tether.DeepCopier", DeepCopierObj, Object);
};

class DeepCopier : public ObjectRef {
 public:
  explicit DeepCopier(ObjectPtr<DeepCopierObj> data) : ObjectRef(std::move(data)) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(DeepCopier, ObjectRef, DeepCopierObj);
};

}  // namespace
}  // namespace tether

Any DeepCopy(const Any& value) {
  return tether::IsLeaf(value) ? value : tether::CopyWalk().Run(value, Function(nullptr));
}

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::EnsureTypeAttrColumn(reflection::type_attr::kShallowCopy);
  reflection::GlobalDef()
      .def("ffi.DeepCopy", [](Any value) { return DeepCopy(value); })
      .def("ffi.tether.DeepCopier",
           [] { return tether::DeepCopier(make_object<tether::DeepCopierObj>()); })
      .def("ffi.DeepCopyTogether",
           [](const tether::DeepCopier& copier, const Any& value, const Function& in_cycle) {
             if (tether::IsLeaf(value)) return value;
             return const_cast<tether::DeepCopierObj*>(copier.get())->walk.Run(value, in_cycle);
           })
      .def("ffi.DeepCopyTellingCycles", [](Any value, Function in_cycle) {
        return tether::IsLeaf(value) ? value : tether::CopyWalk().Run(value, in_cycle);
      });
}

}  // namespace ffi
}  // namespace tvm
