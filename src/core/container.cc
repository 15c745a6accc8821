// SPDX-License-Identifier: Apache-2.0
// The global functions through which frontends use Array, List, Map and Dict.
//
//   Function::GetGlobalRequired("ffi.ListAppend")(list, 1);
#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstring>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kept_value.h"
#include "object_lock.h"

namespace tvm {
namespace ffi {
namespace {

// ---- Sequences

template <typename Seq>
void MakeSequence(PackedArgs args, Any* result) {
  Seq seq(UnsafeInit{});
  seq.reserve(args.size());
  for (int i = 0; i < args.size(); ++i) seq.push_back(tether::Kept(args[i]));
  *result = std::move(seq);
}

// Keys and elements may have hooks, which are user code: it can change a List or Dict, and drop the
// last reference to the container itself. Functions that run hooks therefore hold a reference.
template <typename ObjType>
ObjectPtr<ObjType> Hold(const ObjType* container) {
  return details::ObjectUnsafe::ObjectPtrFromUnowned<ObjType>(const_cast<ObjType*>(container));
}

template <typename SeqObj>
bool Contains(const SeqObj* seq, const Any& value) {
  const ObjectPtr<SeqObj> hold = Hold(seq);
  AnyEqual equal;
  // By index: an equality hook may change a List.
  for (size_t i = 0; i < seq->size(); ++i) {
    const Any item = seq->begin()[i];
    if (equal(item, value)) return true;
  }
  return false;
}

Any Pop(List<Any> list, int64_t index) {
  Any item = list.GetListObj()->at(index);
  list.GetListObj()->erase(index);
  return item;
}

void ReplaceSlice(List<Any> list, int64_t start, int64_t stop, const List<Any>& replacement) {
  // A snapshot, also because dropping the old elements may run code that changes the replacement.
  std::vector<Any> items;
  {
    tether::ObjectLock lock(replacement.get());
    items.assign(replacement.begin(), replacement.end());
  }
  ListObj* target = list.GetListObj();
  const int64_t size = tether::SeqOps::Size(target);
  if (start == stop) {
    if (items.empty()) return;
    tether::SeqOps::CheckInsertPosition(target, start);
  } else if (start < 0 || stop > size || start > stop) {
    tether::ThrowEraseRange(start, stop, size);
  }
  tether::ListOps::WithRoom(target, static_cast<int64_t>(items.size()) - (stop - start));
  tether::SeqOps::Rotate(target, start, stop, size);
  const tether::TakenCells old(target, size - (stop - start));
  target->insert(start, items.begin(), items.end());
}

// ---- Maps

template <typename MapRef>
void MakeMap(PackedArgs args, Any* result) {
  TVM_FFI_ICHECK_EQ(args.size() % 2, 0);
  MapRef map;
  for (int i = 0; i < args.size(); i += 2) {
    map.Set(tether::Kept(args[i]), tether::Kept(args[i + 1]));
  }
  *result = std::move(map);
}

// What a lookup returns for an absent key: one object that is equal to nothing else.
const Any& Missing() {
  static const Any* missing = new Any(Function::GetGlobalRequired("ffi.GetInvalidObject")());
  return *missing;
}

Any GetItem(const MapBaseObj* map, const Any& key) {
  const ObjectPtr<MapBaseObj> hold = Hold(map);
  return map->at(key);
}

Any GetItemOrMissing(const MapBaseObj* map, const Any& key) {
  const ObjectPtr<MapBaseObj> hold = Hold(map);
  const Any* value = tether::MapOps::FindValue(map, key);
  return value != nullptr ? *value : Missing();
}

int64_t Count(const MapBaseObj* map, const Any& key) {
  const ObjectPtr<MapBaseObj> hold = Hold(map);
  return static_cast<int64_t>(map->count(key));
}

// A position in a map, driven by one integer: 0 reads the key, 1 the value, anything else advances.
// It keeps the map alive and survives changes of it.
class MapCursor {
 public:
  explicit MapCursor(const MapBaseObj* map)
      : map_(MapToWalk(map)), index_(tether::MapOps::FirstIndex(map_.get())) {}

  Any operator()(int64_t command) const {
    const MapBaseObj* map = map_.get();
    const bool has_entry = tether::MapOps::IsOccupied(map, index_);
    if (command == 0 || command == 1) {
      if (!has_entry) TVM_FFI_THROW(IndexError) << "the iteration is not at an entry of the map";
      const auto* entry = tether::MapOps::Entry(map, index_);
      return command == 0 ? entry->first : entry->second;
    }
    if (has_entry) index_ = tether::MapOps::NextIndex(map, index_);
    return has_entry && tether::MapOps::IsOccupied(map, index_);
  }

 private:
  // Where the map may change at any time, a copy: a call of this holds no lock.
  static ObjectPtr<MapBaseObj> MapToWalk(const MapBaseObj* map) {
    ObjectPtr<Object> copy;
    if (tether::MayChangeAnyTime() && map->type_index() == TypeIndex::kTVMFFIDict) {
      copy = tether::MapOps::Copy(map);
      map = static_cast<const MapBaseObj*>(copy.get());
    }
    return details::ObjectUnsafe::ObjectPtrFromUnowned<MapBaseObj>(const_cast<MapBaseObj*>(map));
  }

  ObjectPtr<MapBaseObj> map_;
  mutable uint64_t index_;
};

// ---- Opaque objects as keys
//
// Each time a Python object crosses, a new opaque object is made around it. As keys they are equal
// if they carry the same one.

int64_t HashOpaque(const Any& value) {
  TVMFFIObject* object = details::AnyUnsafe::TVMFFIAnyPtrFromAny(value)->v_obj;
  return reinterpret_cast<int64_t>(TVMFFIOpaqueObjectGetCellPtr(object)->handle);
}

bool EqualOpaque(const Any& lhs, const Any& rhs) { return HashOpaque(lhs) == HashOpaque(rhs); }

// A Function, not a raw pointer: releases differ in how they call pointers.
void RegisterKeyHook(int32_t type_index, const char* name, const Function& function) {
  TVMFFIByteArray column{name, std::strlen(name)};
  const AnyView hook(function);
  TVM_FFI_CHECK_SAFE_CALL(
      TVMFFITypeRegisterAttr(type_index, &column, reinterpret_cast<const TVMFFIAny*>(&hook)));
}

// ---- Devices

// Walks the values of nested containers in order, without recursion and each container once, so
// that neither depth nor a cycle is a problem.
class DeviceFinder {
 public:
  DLDevice Find(const Any& root) {
    if (Visit(root)) return found_;
    while (!stack_.empty()) {
      Frame& top = stack_.back();
      const Any* value = Next(&top);
      if (value == nullptr) {
        stack_.pop_back();
      } else if (Visit(*value)) {
        return found_;
      }
    }
    return DLDevice{kDLCPU, 0};
  }

 private:
  struct Frame {
    const Object* container;
    const Object* content;
    uint64_t index;
  };

  static bool IsSequence(int32_t type_index) {
    return type_index == TypeIndex::kTVMFFIArray || type_index == TypeIndex::kTVMFFIList;
  }
  static bool IsMap(int32_t type_index) {
    return type_index == TypeIndex::kTVMFFIMap || type_index == TypeIndex::kTVMFFIDict;
  }

  // The next value of a container, or null.
  static const Any* Next(Frame* frame) {
    if (IsSequence(frame->container->type_index())) {
      const auto* seq = static_cast<const SeqBaseObj*>(frame->content);
      return frame->index < seq->size() ? seq->begin() + frame->index++ : nullptr;
    }
    const auto* map = static_cast<const MapBaseObj*>(frame->content);
    if (!tether::MapOps::IsOccupied(map, frame->index)) return nullptr;
    const Any* value = &tether::MapOps::Entry(map, frame->index)->second;
    frame->index = tether::MapOps::NextIndex(map, frame->index);
    return value;
  }

  bool Visit(const Any& value) {
    const int32_t type_index = value.type_index();
    if (type_index == TypeIndex::kTVMFFITensor) {
      found_ = value.as<TensorObj>()->device;
      return found_.device_type != kDLCPU;
    }
    if (!IsSequence(type_index) && !IsMap(type_index)) return false;
    const Object* container = details::AnyUnsafe::ObjectPtrFromAnyAfterCheck(value);
    // The outermost container needs no entry unless it is met again inside itself.
    const bool is_root = stack_.empty() && seen_.empty();
    if (!is_root && !seen_.insert(container).second) return false;
    if (!stack_.empty() && stack_.front().container == container) return false;
    if (IsMap(type_index)) {
      const MapBaseObj* map = views_.Of(static_cast<const MapBaseObj*>(container));
      stack_.push_back(Frame{container, map, tether::MapOps::FirstIndex(map)});
    } else {
      stack_.push_back(Frame{container, views_.Of(static_cast<const SeqBaseObj*>(container)), 0});
    }
    return false;
  }

  DLDevice found_{kDLCPU, 0};
  tether::Views views_;
  std::vector<Frame> stack_;
  std::unordered_set<const Object*> seen_;
};

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  // Clients look these columns up once, at the first key they hash.
  refl::EnsureTypeAttrColumn(refl::type_attr::kAnyHash);
  refl::EnsureTypeAttrColumn(refl::type_attr::kAnyEqual);

  RegisterKeyHook(TypeIndex::kTVMFFIOpaquePyObject, refl::type_attr::kAnyHash,
                  Function::FromTyped(HashOpaque));
  RegisterKeyHook(TypeIndex::kTVMFFIOpaquePyObject, refl::type_attr::kAnyEqual,
                  Function::FromTyped(EqualOpaque));

  refl::TypeAttrDef<ArrayObj>().def_convert<Array<Any>>();
  refl::TypeAttrDef<ListObj>().def_convert<List<Any>>();
  refl::TypeAttrDef<MapObj>().def_convert<Map<Any, Any>>();
  refl::TypeAttrDef<DictObj>().def_convert<Dict<Any, Any>>();

  refl::GlobalDef()
      .def_packed("ffi.Array", MakeSequence<Array<Any>>)
      .def("ffi.ArrayGetItem",
           [](const ArrayObj* array, int64_t index) -> Any { return array->at(index); })
      .def("ffi.ArraySize",
           [](const ArrayObj* array) { return static_cast<int64_t>(array->size()); })
      .def("ffi.ArrayContains", Contains<ArrayObj>)
      .def_packed("ffi.List", MakeSequence<List<Any>>)
      .def("ffi.ListGetItem",
           [](const ListObj* list, int64_t index) -> Any { return list->at(index); })
      .def("ffi.ListSize", [](const ListObj* list) { return static_cast<int64_t>(list->size()); })
      .def("ffi.ListContains", Contains<ListObj>)
      .def("ffi.ListSetItem", [](List<Any> list, int64_t index,
                                 const AnyView& value) { list.Set(index, tether::Kept(value)); })
      .def("ffi.ListAppend",
           [](List<Any> list, const AnyView& value) { list.push_back(tether::Kept(value)); })
      .def("ffi.ListInsert",
           [](List<Any> list, int64_t index, const AnyView& value) {
             Any kept = tether::Kept(value);
             tether::ListOps::WithRoom(list.GetListObj(), 1)->insert(index, std::move(kept));
           })
      .def("ffi.ListPop", Pop)
      .def("ffi.ListErase", [](List<Any> list, int64_t index) { list.GetListObj()->erase(index); })
      .def("ffi.ListEraseRange", [](List<Any> list, int64_t start,
                                    int64_t stop) { list.GetListObj()->erase(start, stop); })
      .def("ffi.ListReplaceSlice", ReplaceSlice)
      .def("ffi.ListReserve",
           [](List<Any> list, int64_t capacity) {
             tether::ListOps::Reserve(list.GetListObj(), capacity);
           })
      .def("ffi.ListReverse", [](List<Any> list) { list.GetListObj()->Reverse(); })
      .def("ffi.ListClear", [](List<Any> list) { list.clear(); });

  refl::GlobalDef()
      .def_packed("ffi.Map", MakeMap<Map<Any, Any>>)
      .def("ffi.MapSize", [](const MapObj* map) { return static_cast<int64_t>(map->size()); })
      .def("ffi.MapGetItem", [](const MapObj* map, const Any& key) { return GetItem(map, key); })
      .def("ffi.MapCount", [](const MapObj* map, const Any& key) { return Count(map, key); })
      .def("ffi.MapGetItemOrMissing",
           [](const MapObj* map, const Any& key) { return GetItemOrMissing(map, key); })
      .def("ffi.MapForwardIterFunctor",
           [](const MapObj* map) { return Function::FromTyped(MapCursor(map)); })
      .def_packed("ffi.Dict", MakeMap<Dict<Any, Any>>)
      .def("ffi.DictSize", [](const DictObj* dict) { return static_cast<int64_t>(dict->size()); })
      .def("ffi.DictGetItem",
           [](const DictObj* dict, const Any& key) { return GetItem(dict, key); })
      .def("ffi.DictCount", [](const DictObj* dict, const Any& key) { return Count(dict, key); })
      .def("ffi.DictGetItemOrMissing",
           [](const DictObj* dict, const Any& key) { return GetItemOrMissing(dict, key); })
      .def("ffi.DictForwardIterFunctor",
           [](const DictObj* dict) { return Function::FromTyped(MapCursor(dict)); })
      .def("ffi.DictSetItem",
           [](Dict<Any, Any> dict, const AnyView& key, const AnyView& value) {
             dict.Set(tether::Kept(key), tether::Kept(value));
           })
      .def("ffi.DictErase", [](Dict<Any, Any> dict, const Any& key) { dict.erase(key); })
      .def("ffi.DictClear", [](Dict<Any, Any> dict) { dict.clear(); });

  refl::GlobalDef().def("ffi.ContainerFindFirstNonCPUDevice",
                        [](const Any& value) { return DeviceFinder().Find(value); });
}

}  // namespace
}  // namespace ffi
}  // namespace tvm
