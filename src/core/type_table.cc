// SPDX-License-Identifier: Apache-2.0
// The table of types, their reflection records and their attribute columns.
//
// Writers hold one mutex. Readers take no lock: what they get never moves, or is never freed.
// An array that must grow is replaced by a larger copy, published before the new count, and the old
// one is kept.
#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <atomic>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "any_hooks.h"
#include "library_load.h"
#include "loaded_runtimes.h"
#include "locks.h"
#include "type_table.h"

namespace tvm {
namespace ffi {
namespace {

// Appends to an array that clients read through a plain pointer and count.
template <typename T>
class PublishedArray {
 public:
  // Grows to `size` elements, new ones zero; returns the array to publish.
  T* Resize(size_t size) {
    if (size > capacity_) {
      size_t capacity = std::max<size_t>(size, capacity_ * 2);
      auto larger = std::make_unique<T[]>(capacity);
      std::copy(data(), data() + size_, larger.get());
      arrays_.push_back(std::move(larger));
      capacity_ = capacity;
    }
    size_ = std::max(size, size_);
    return data();
  }
  void RemoveLast() { --size_; }
  size_t size() const { return size_; }

 private:
  T* data() { return arrays_.empty() ? nullptr : arrays_.back().get(); }

  std::vector<std::unique_ptr<T[]>> arrays_;  // all but the last are retired
  size_t size_ = 0;
  size_t capacity_ = 0;
};

template <typename T, typename Count>
void Publish(const T** data, Count* count, const T* new_data, size_t new_count) {
  __atomic_store_n(data, new_data, __ATOMIC_RELEASE);
  __atomic_store_n(count, static_cast<Count>(new_count), __ATOMIC_RELEASE);
}

struct TypeEntry : public TVMFFITypeInfo {
  std::string key;
  std::vector<const TVMFFITypeInfo*> ancestors;
  int32_t slots = 1;      // indices reserved for this type and its children
  int32_t allocated = 1;  // of which are taken
  bool can_overflow = false;
  bool is_known = true;  // false: its library failed to load, and no lookup by key finds it
  PublishedArray<TVMFFIFieldInfo> field_array;
  PublishedArray<TVMFFIMethodInfo> method_array;
  TVMFFITypeMetadata metadata_storage{};
};

struct AttrColumn {
  TVMFFITypeAttrColumn column{nullptr, 0, 0};
  PublishedArray<TVMFFIAny> entries;
};

class TypeTable {
 public:
  static TypeTable* Global() {
    // Never destroyed: deleters look types up until the very end of the process.
    static TypeTable* table = new TypeTable();
    return table;
  }

  const TVMFFITypeInfo* Find(int32_t index) const {
    if (index < 0 || index >= kMaxTypes) return nullptr;
    const Chunk* chunk = chunks_[index / kChunkSize].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    return chunk->entries[index % kChunkSize].load(std::memory_order_acquire);
  }

  const TVMFFITypeInfo* Get(int32_t index) const {
    const TVMFFITypeInfo* info = Find(index);
    TVM_FFI_ICHECK(info != nullptr) << "Cannot find type info for type_index=" << index;
    return info;
  }

  int32_t GetOrAllocIndex(std::string_view key, int32_t static_index, int32_t depth,
                          int32_t num_child_slots, bool can_overflow, int32_t parent_index) {
    constexpr int32_t kQueryOnly = -2;
    std::lock_guard<std::mutex> lock(tether::locks.types);
    auto known = index_of_key_.find(key);
    if (known != index_of_key_.end()) return known->second;
    if (parent_index == kQueryOnly) return kQueryOnly;
    TypeEntry* parent = parent_index < 0 ? nullptr : GetEntry(parent_index);
    TypeEntry* added = Add(key, static_index, depth, num_child_slots, can_overflow, parent);
    tether::AddUndo([this, added] { Forget(added); });
    return added->type_index;
  }

  // For a type that Python defines: throws where GetOrAllocIndex would end the process.
  int32_t AllocForPython(std::string_view key, int32_t depth, int32_t parent_index) {
    {
      std::lock_guard<std::mutex> lock(tether::locks.types);
      const TypeEntry* parent = GetEntry(parent_index);
      bool has_room = parent->can_overflow || parent->allocated < parent->slots;
      if (!has_room && index_of_key_.find(key) == index_of_key_.end()) {
        TVM_FFI_THROW(TypeError) << "type `" << parent->key << "` cannot have a subtype `" << key
                                 << "`";
      }
    }
    return GetOrAllocIndex(key, -1, depth, 0, true, parent_index);
  }

  int32_t IndexOfKey(std::string_view key) {
    std::lock_guard<std::mutex> lock(tether::locks.types);
    auto known = index_of_key_.find(key);
    TVM_FFI_ICHECK(known != index_of_key_.end()) << "Cannot find type `" << key << "`";
    return known->second;
  }

  std::vector<String> Keys() {
    std::lock_guard<std::mutex> lock(tether::locks.types);
    std::vector<String> keys;
    for (int32_t i = 0; i < next_index_; ++i) {
      const auto* entry = static_cast<const TypeEntry*>(Find(i));
      if (entry != nullptr && entry->is_known) keys.emplace_back(entry->key);
    }
    return keys;
  }

  void RegisterField(int32_t type_index, const TVMFFIFieldInfo* info) {
    Any default_value = info->flags & kTVMFFIFieldFlagBitMaskHasDefault
                            ? Any(AnyView::CopyFromTVMFFIAny(info->default_value_or_factory))
                            : Any();
    std::lock_guard<std::mutex> lock(tether::locks.types);
    TypeEntry* entry = GetEntry(type_index);
    std::string_view name = ToStringView(info->name);
    for (int32_t i = 0; i < entry->num_fields; ++i) {
      if (ToStringView(entry->fields[i].name) == name) RefuseTakenType(entry);
      TVM_FFI_ICHECK(ToStringView(entry->fields[i].name) != name)
          << "Duplicate field name \"" << name << "\" in type \"" << entry->key << "\"";
    }
    WarnIfInherited(entry, name);

    TVMFFIFieldInfo field = *info;
    field.name = Keep(info->name);
    field.doc = Keep(info->doc);
    field.metadata = Keep(info->metadata);
    field.default_value_or_factory = Keep(std::move(default_value));
    if (info->setter != nullptr && (info->flags & kTVMFFIFieldFlagBitSetterIsFunctionObj)) {
      Keep(Any(details::ObjectUnsafe::ObjectPtrFromUnowned<Object>(
          static_cast<TVMFFIObject*>(info->setter))));
    }
    size_t n = entry->field_array.size();
    TVMFFIFieldInfo* array = entry->field_array.Resize(n + 1);
    array[n] = field;
    Publish<TVMFFIFieldInfo>(&entry->fields, &entry->num_fields, array, n + 1);
    tether::AddUndo([this, entry] { DropLast(&entry->field_array, &entry->num_fields); });
  }

  void RegisterMethod(int32_t type_index, const TVMFFIMethodInfo* info) {
    Any function = AnyView::CopyFromTVMFFIAny(info->method);
    std::lock_guard<std::mutex> lock(tether::locks.types);
    TypeEntry* entry = GetEntry(type_index);
    TVMFFIMethodInfo method = *info;
    method.name = Keep(info->name);
    method.doc = Keep(info->doc);
    method.metadata = Keep(info->metadata);
    method.method = Keep(std::move(function));
    size_t n = entry->method_array.size();
    TVMFFIMethodInfo* array = entry->method_array.Resize(n + 1);
    array[n] = method;
    Publish<TVMFFIMethodInfo>(&entry->methods, &entry->num_methods, array, n + 1);
    tether::AddUndo([this, entry] { DropLast(&entry->method_array, &entry->num_methods); });
  }

  void RegisterMetadata(int32_t type_index, const TVMFFITypeMetadata* metadata) {
    std::lock_guard<std::mutex> lock(tether::locks.types);
    TypeEntry* entry = GetEntry(type_index);
    if (entry->metadata != nullptr) {
      RefuseTakenType(entry);
      TVM_FFI_LOG_AND_THROW(RuntimeError)
          << "Overriding " << entry->key << ", possible causes:\n"
          << "- two ObjectDef<T>() calls for the same T \n"
          << "- when we forget to assign _type_key to ObjectRef<Y> that inherits from T\n"
          << "- another type with the same key is already registered\n"
          << "Cross check the reflection registration." << tether::SecondRuntimeHint();
    }
    entry->metadata_storage = *metadata;
    entry->metadata_storage.doc = Keep(metadata->doc);
    __atomic_store_n(&entry->metadata, &entry->metadata_storage, __ATOMIC_RELEASE);
    tether::AddUndo([entry] {
      __atomic_store_n(&entry->metadata, static_cast<TVMFFITypeMetadata*>(nullptr),
                       __ATOMIC_RELEASE);
    });
  }

  void RegisterAttr(int32_t type_index, const TVMFFIByteArray* name, const TVMFFIAny* value) {
    if (type_index < 0 || type_index >= kMaxTypes) {
      TVM_FFI_THROW(ValueError) << "Cannot register attribute `" << ToStringView(*name)
                                << "` for invalid type index " << type_index;
    }
    Any owned;
    if (type_index != TypeIndex::kTVMFFINone) {
      owned = tether::WithoutRawPointer(ToStringView(*name), AnyView::CopyFromTVMFFIAny(*value));
    }
    std::lock_guard<std::mutex> lock(tether::locks.types);
    AttrColumn* attr = EnsureColumn(ToStringView(*name));
    if (type_index == TypeIndex::kTVMFFINone) return;
    size_t size = std::max<size_t>(attr->entries.size(), static_cast<size_t>(type_index) + 1);
    TVMFFIAny* entries = attr->entries.Resize(size);
    if (entries[type_index].type_index != TypeIndex::kTVMFFINone) {
      if (Find(type_index) != nullptr) RefuseTakenType(GetEntry(type_index));
      TVM_FFI_THROW(RuntimeError) << "TypeAttr `" << ToStringView(*name)
                                  << "` is already registered for type index " << type_index
                                  << ". To update the stored value, register a mutable container "
                                     "(e.g., Dict/List) once and "
                                     "mutate it in place on subsequent calls."
                                  << tether::SecondRuntimeHint();
    }
    // Readers test the type index first, so it is written last.
    TVMFFIAny cell = Keep(std::move(owned));
    entries[type_index].zero_padding = cell.zero_padding;
    entries[type_index].v_uint64 = cell.v_uint64;
    __atomic_store_n(&entries[type_index].type_index, cell.type_index, __ATOMIC_RELEASE);
    Publish<TVMFFIAny>(&attr->column.data, &attr->column.size, entries, size);
    tether::AddUndo([attr, type_index] {
      std::lock_guard<std::mutex> lock(tether::locks.types);
      TVMFFIAny* cell = attr->entries.Resize(attr->entries.size()) + type_index;
      __atomic_store_n(&cell->type_index, static_cast<int32_t>(TypeIndex::kTVMFFINone),
                       __ATOMIC_RELEASE);
    });
  }

  const TVMFFITypeAttrColumn* FindColumn(std::string_view name) {
    std::lock_guard<std::mutex> lock(tether::locks.types);
    auto it = columns_.find(name);  // without memory: it ends the process if it throws
    return it == columns_.end() ? nullptr : &it->second->column;
  }

 private:
  static constexpr int32_t kChunkSize = 1024;
  static constexpr int32_t kMaxTypes = 4096 * kChunkSize;

  struct Chunk {
    std::atomic<TypeEntry*> entries[kChunkSize]{};
  };

  TypeTable() {
    using K = StaticTypeKey;
    TypeEntry* root = Add(K::kTVMFFIObject, TypeIndex::kTVMFFIObject, 0, 0, true, nullptr);
    root->metadata_storage = TVMFFITypeMetadata{
        {nullptr, 0}, nullptr, static_cast<int32_t>(sizeof(Object)), kTVMFFISEqHashKindUnsupported};
    root->metadata = &root->metadata_storage;

    const char* const kValueKeys[] = {K::kTVMFFINone,
                                      K::kTVMFFIInt,
                                      K::kTVMFFIBool,
                                      K::kTVMFFIFloat,
                                      K::kTVMFFIOpaquePtr,
                                      K::kTVMFFIDataType,
                                      K::kTVMFFIDevice,
                                      K::kTVMFFIDLTensorPtr,
                                      K::kTVMFFIRawStr,
                                      K::kTVMFFIByteArrayPtr,
                                      K::kTVMFFIObjectRValueRef,
                                      K::kTVMFFISmallStr,
                                      K::kTVMFFISmallBytes,
                                      K::kTVMFFIUnchanged};
    int32_t index = TypeIndex::kTVMFFINone;
    for (const char* key : kValueKeys) Add(key, index++, 0, 0, false, nullptr);

    const char* const kObjectKeys[] = {
        K::kTVMFFIStr,    K::kTVMFFIBytes,          K::kTVMFFIError, K::kTVMFFIFunction,
        K::kTVMFFIShape,  K::kTVMFFITensor,         K::kTVMFFIArray, K::kTVMFFIMap,
        K::kTVMFFIModule, K::kTVMFFIOpaquePyObject, K::kTVMFFIList,  K::kTVMFFIDict};
    index = TypeIndex::kTVMFFIStr;
    for (const char* key : kObjectKeys) Add(key, index++, 1, 0, false, root);
    Add(K::kTVMFFIBigInt, TypeIndex::kTVMFFIBigInt, 1, 0, false, root);

    // Clients cache the column pointer on first use, even a null one: the columns they ask for must
    // exist now.
    namespace attr = reflection::type_attr;
    const char* const kColumns[] = {attr::kNew,
                                    attr::kInit,
                                    attr::kConvert,
                                    attr::kShallowCopy,
                                    attr::kTypeFinal,
                                    attr::kRepr,
                                    attr::kHash,
                                    attr::kEq,
                                    attr::kCompare,
                                    attr::kAnyHash,
                                    attr::kAnyEqual,
                                    attr::kSHash,
                                    attr::kSEqual,
                                    attr::kStructuralVisit,
                                    attr::kStructuralMutate,
                                    attr::kStructuralMaybeInplaceMutate,
                                    attr::kDataToJson,
                                    attr::kDataFromJson,
                                    attr::kEnumState};
    for (const char* name : kColumns) {
      EnsureColumn(name);
    }
  }

  TypeEntry* GetEntry(int32_t index) {
    return const_cast<TypeEntry*>(static_cast<const TypeEntry*>(Get(index)));
  }

  int32_t ChooseIndex(std::string_view key, int32_t static_index, int32_t need, TypeEntry* parent) {
    if (static_index >= 0) {
      TVM_FFI_ICHECK_LT(static_index, TypeIndex::kTVMFFIDynObjectBegin)
          << "static index of type `" << key << "`";
      const TVMFFITypeInfo* taken = Find(static_index);
      TVM_FFI_ICHECK(taken == nullptr) << "Conflicting static index " << static_index << " between "
                                       << ToStringView(taken->type_key) << " and " << key;
      return static_index;
    }
    TVM_FFI_ICHECK(parent != nullptr) << "Type `" << key << "` needs a parent";
    if (parent->allocated + need <= parent->slots) {
      int32_t index = parent->type_index + parent->allocated;
      parent->allocated += need;
      return index;
    }
    TVM_FFI_ICHECK(parent->can_overflow)
        << "Reach maximum number of sub-classes for " << parent->key;
    TVM_FFI_ICHECK_LE(need, kMaxTypes - next_index_) << "Too many types";
    int32_t index = next_index_;
    next_index_ += need;
    return index;
  }

  TypeEntry* Add(std::string_view key, int32_t static_index, int32_t depth, int32_t num_child_slots,
                 bool can_overflow, TypeEntry* parent) {
    TVM_FFI_ICHECK(num_child_slots >= 0 && num_child_slots < kMaxTypes)
        << "Invalid number of child slots for type `" << key << "`";
    int32_t parent_depth = parent == nullptr ? -1 : parent->type_depth;
    TVM_FFI_ICHECK(depth == 0 || depth == parent_depth + 1)
        << "Type `" << key << "` has depth " << depth << " under a parent of depth "
        << parent_depth;
    int32_t index = ChooseIndex(key, static_index, num_child_slots + 1, parent);
    TVM_FFI_ICHECK(parent == nullptr || index > parent->type_index)
        << "Type `" << key << "` must come after its parent";

    auto entry = std::make_unique<TypeEntry>();
    static_cast<TVMFFITypeInfo&>(*entry) = TVMFFITypeInfo{};
    entry->key = std::string(key);
    entry->slots = num_child_slots + 1;
    entry->can_overflow = can_overflow && (parent == nullptr || parent->can_overflow);
    if (parent != nullptr) {
      entry->ancestors = parent->ancestors;
      entry->ancestors.push_back(parent);
    }
    entry->type_index = index;
    entry->type_depth = static_cast<int32_t>(entry->ancestors.size());
    entry->type_key = TVMFFIByteArray{entry->key.c_str(), entry->key.size()};
    entry->type_key_hash = std::hash<std::string_view>()(entry->key);
    entry->type_ancestors = entry->ancestors.data();

    std::atomic<Chunk*>& chunk = chunks_[index / kChunkSize];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      chunk.store(new Chunk(), std::memory_order_release);
    }
    TypeEntry* added = entry.release();
    chunk.load(std::memory_order_relaxed)
        ->entries[index % kChunkSize]
        .store(added, std::memory_order_release);
    index_of_key_.emplace(added->key, index);
    return added;
  }

  // ---- Undoing the registrations of a library that failed to load (library_load.h)

  void Forget(TypeEntry* entry) {
    std::lock_guard<std::mutex> lock(tether::locks.types);
    index_of_key_.erase(entry->key);
    entry->is_known = false;
  }

  template <typename T>
  void DropLast(PublishedArray<T>* array, int32_t* count) {
    std::lock_guard<std::mutex> lock(tether::locks.types);
    array->RemoveLast();
    __atomic_store_n(count, static_cast<int32_t>(array->size()), __ATOMIC_RELEASE);
  }

  // An address in the library that registered the type, or NULL.
  static const void* OwnerOf(const TypeEntry* entry) {
    if (entry->metadata != nullptr && entry->metadata->creator != nullptr) {
      return reinterpret_cast<const void*>(entry->metadata->creator);
    }
    if (entry->num_fields > 0) return reinterpret_cast<const void*>(entry->fields[0].getter);
    if (entry->num_methods == 0) return nullptr;
    const TVMFFIAny& method = entry->methods[0].method;
    if (method.type_index != TypeIndex::kTVMFFIFunction) return nullptr;
    return reinterpret_cast<const void*>(TVMFFIFunctionGetCellPtr(method.v_obj)->safe_call);
  }
  static void RefuseTakenType(const TypeEntry* entry) {
    tether::RefuseTakenName("type", entry->key, OwnerOf(entry));
  }

  AttrColumn* EnsureColumn(std::string_view name) {
    std::unique_ptr<AttrColumn>& column = columns_[std::string(name)];
    if (column == nullptr) column = std::make_unique<AttrColumn>();
    return column.get();
  }

  static void WarnIfInherited(const TypeEntry* entry, std::string_view name) {
    for (const TVMFFITypeInfo* ancestor : entry->ancestors) {
      for (int32_t i = 0; i < ancestor->num_fields; ++i) {
        if (ToStringView(ancestor->fields[i].name) != name) continue;
        std::fprintf(stderr,
                     "[WARNING] Field \"%.*s\" in type \"%s\" duplicates an ancestor field in "
                     "\"%s\". Child types should not re-register inherited fields.\n",
                     static_cast<int>(name.size()), name.data(), entry->key.c_str(),
                     ancestor->type_key.data);
      }
    }
  }

  // Copies that live as long as the process.
  TVMFFIByteArray Keep(const TVMFFIByteArray& bytes) {
    if (bytes.size == 0) return TVMFFIByteArray{nullptr, 0};
    const std::string& kept = kept_strings_.emplace_back(bytes.data, bytes.size);
    return TVMFFIByteArray{kept.c_str(), kept.size()};
  }
  TVMFFIAny Keep(Any value) {
    return *details::AnyUnsafe::TVMFFIAnyPtrFromAny(kept_values_.emplace_back(std::move(value)));
  }

  std::atomic<Chunk*> chunks_[kMaxTypes / kChunkSize]{};
  int32_t next_index_ = TypeIndex::kTVMFFIDynObjectBegin;
  std::unordered_map<std::string_view, int32_t> index_of_key_;  // keys live in the entries
  std::map<std::string, std::unique_ptr<AttrColumn>, std::less<>> columns_;
  std::deque<std::string> kept_strings_;
  std::deque<Any> kept_values_;
};

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = reflection;
  refl::GlobalDef().def("ffi.GetRegisteredTypeKeys", [] {
    std::vector<String> keys = TypeTable::Global()->Keys();
    return Array<String>(keys.begin(), keys.end());
  });
  refl::GlobalDef().def(
      "ffi.tether.AllocTypeIndex", [](const String& key, int32_t depth, int32_t parent) {
        return TypeTable::Global()->AllocForPython({key.data(), key.size()}, depth, parent);
      });
}

}  // namespace

const TVMFFITypeInfo* tether::RequireTypeInfo(int32_t type_index) {
  return TypeTable::Global()->Get(type_index);
}

}  // namespace ffi
}  // namespace tvm

using namespace tvm::ffi;

int32_t TVMFFITypeGetOrAllocIndex(const TVMFFIByteArray* type_key, int32_t static_type_index,
                                  int32_t type_depth, int32_t num_child_slots,
                                  int32_t child_slots_can_overflow, int32_t parent_type_index) {
  TVM_FFI_LOG_EXCEPTION_CALL_BEGIN();
  tether::LibraryLoad* load = tether::LibraryLoad::Current();
  try {
    return TypeTable::Global()->GetOrAllocIndex(ToStringView(*type_key), static_type_index,
                                                type_depth, num_child_slots,
                                                child_slots_can_overflow != 0, parent_type_index);
  } catch (const Error& error) {
    if (load == nullptr) throw;
    load->Fail(error);
    return TypeIndex::kTVMFFIObject;  // its library failed to load and makes no objects
  }
  TVM_FFI_LOG_EXCEPTION_CALL_END(TVMFFITypeGetOrAllocIndex);
}

const TVMFFITypeInfo* TVMFFIGetTypeInfo(int32_t type_index) {
  TVM_FFI_LOG_EXCEPTION_CALL_BEGIN();
  return TypeTable::Global()->Get(type_index);
  TVM_FFI_LOG_EXCEPTION_CALL_END(TVMFFIGetTypeInfo);
}

int TVMFFITypeKeyToIndex(const TVMFFIByteArray* type_key, int32_t* out_tindex) {
  TVM_FFI_SAFE_CALL_BEGIN();
  *out_tindex = TypeTable::Global()->IndexOfKey(ToStringView(*type_key));
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFITypeRegisterField(int32_t type_index, const TVMFFIFieldInfo* info) {
  return tether::Register([&] { TypeTable::Global()->RegisterField(type_index, info); });
}

int TVMFFITypeRegisterMethod(int32_t type_index, const TVMFFIMethodInfo* info) {
  return tether::Register([&] { TypeTable::Global()->RegisterMethod(type_index, info); });
}

int TVMFFITypeRegisterMetadata(int32_t type_index, const TVMFFITypeMetadata* metadata) {
  return tether::Register([&] { TypeTable::Global()->RegisterMetadata(type_index, metadata); });
}

int TVMFFITypeRegisterAttr(int32_t type_index, const TVMFFIByteArray* attr_name,
                           const TVMFFIAny* attr_value) {
  return tether::Register(
      [&] { TypeTable::Global()->RegisterAttr(type_index, attr_name, attr_value); });
}

const TVMFFITypeAttrColumn* TVMFFIGetTypeAttrColumn(const TVMFFIByteArray* attr_name) {
  TVM_FFI_LOG_EXCEPTION_CALL_BEGIN();
  return TypeTable::Global()->FindColumn(ToStringView(*attr_name));
  TVM_FFI_LOG_EXCEPTION_CALL_END(TVMFFIGetTypeAttrColumn);
}
