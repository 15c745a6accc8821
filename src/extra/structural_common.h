// SPDX-License-Identifier: Apache-2.0
//
// What structural equality and structural hash have in common: rules they have to agree on, and the
// parts of their walks.
#ifndef TETHER_EXTRA_STRUCTURAL_COMMON_H_
#define TETHER_EXTRA_STRUCTURAL_COMMON_H_

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/structural_visit.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "core/copy_tensor.h"
#include "core/field_kind.h"
#include "object_graph.h"

namespace tvm {
namespace ffi {
namespace tether {

inline const TVMFFIAny& CellOf(const Any& value) {
  return *details::AnyUnsafe::TVMFFIAnyPtrFromAny(value);
}

/*! \brief The same bytes as an Any, which must not outlive the cell. */
inline const Any& AnyOf(const TVMFFIAny& cell) {
  static_assert(sizeof(Any) == sizeof(TVMFFIAny), "an Any is its cell");
  return reinterpret_cast<const Any&>(cell);
}

/*! \brief The hash of an integer outside int64: by value, as a map key has it. */
inline uint64_t HashBigInt(const TVMFFIAny& cell) {
  TVMFFIByteArray words = TVMFFIBigIntGetContentByteArray(&cell);
  return details::StableHashCombine(static_cast<uint64_t>(kTVMFFIBigInt),
                                    details::StableHashBytes(words.data, words.size));
}

/*! \brief How objects of a type compare; throws if the type does not say. */
inline TVMFFISEqHashKind RequireStructuralKind(const TVMFFITypeInfo* type) {
  if (type->metadata == nullptr) {
    TVM_FFI_THROW(TypeError) << "Type metadata is not set for type `" << ToView(type->type_key)
                             << "`, so StructuralHash is not supported for this type";
  }
  if (type->metadata->structural_eq_hash_kind == kTVMFFISEqHashKindUnsupported) {
    TVM_FFI_THROW(TypeError) << "_type_s_eq_hash_kind is not set for type `"
                             << ToView(type->type_key)
                             << "`, so StructuralHash is not supported for this type";
  }
  return type->metadata->structural_eq_hash_kind;
}

/*! \brief What a walk asks about the type of every object, with the answers for the last few types
 * cached. */
class StructuralTypes {
 public:
  struct Facts {
    int32_t type_index = -1;
    TVMFFISEqHashKind kind = kTVMFFISEqHashKindUnsupported;
    const TVMFFITypeInfo* type = nullptr;
    bool has_hook = false;
  };

  explicit StructuralTypes(const reflection::TypeAttrColumn& hooks) : hooks_(hooks) {}

  /*! \brief Throws if objects of the type do not compare. */
  const Facts& operator[](int32_t type_index) {
    Facts& facts = recent_[static_cast<uint32_t>(type_index) % kRecent];
    if (TVM_FFI_PREDICT_FALSE(facts.type_index != type_index)) facts = LookUp(type_index);
    return facts;
  }

  /*! \brief Not remembered: user code may replace a hook in the middle of a walk. */
  Function HookOf(const Facts& facts) const { return hooks_[facts.type_index].cast<Function>(); }

 private:
  TVM_FFI_NO_INLINE Facts LookUp(int32_t type_index) const {
    const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(type_index);
    return {type_index, RequireStructuralKind(type), type, hooks_[type_index] != nullptr};
  }

  static constexpr size_t kRecent = 8;
  const reflection::TypeAttrColumn& hooks_;
  Facts recent_[kRecent];
};

/*! \brief The region a hook's callback works in: 0 keeps the one the hook was called in. */
inline TVMFFIDefRegionKind RegionAskedByHook(int kind, TVMFFIDefRegionKind current) {
  switch (kind) {
    case kTVMFFIDefRegionKindNone:
      return current;
    case kTVMFFIDefRegionKindPattern:
      return kTVMFFIDefRegionKindPattern;
    case kTVMFFIDefRegionKindSimple:
      return current == kTVMFFIDefRegionKindPattern ? current : kTVMFFIDefRegionKindSimple;
    default:
      TVM_FFI_THROW(ValueError) << "the def region kind of a callback is 0, 1 or 2, got " << kind;
  }
  TVM_FFI_UNREACHABLE();
}

/*! \brief The elements of a tensor in their order, without the gaps that it may have in memory. */
struct HostContent {
  const char* data;
  size_t size;
  Optional<Tensor> copy;  // where there are gaps
};

/*! \brief The elements, if they can be read here; `verb` completes the error message. */
inline HostContent RequireHostContent(const DLTensor& tensor, const char* verb) {
  TVM_FFI_ICHECK(tensor.device.device_type == kDLCPU) << "can only " << verb << " CPU tensor";
  // Tensors that a client made itself never went through an import.
  if (const Defect defect = FindDefect(tensor); defect != Defect::kNone) {
    TVM_FFI_THROW(ValueError) << "cannot " << verb << ": " << Describe(defect, tensor);
  }
  if (!IsContiguous(tensor)) {
    Tensor copy = CopyTensor(tensor);
    return {static_cast<const char*>(copy.data_ptr()), GetDataSize(tensor), copy};
  }
  return {static_cast<const char*>(tensor.data) + tensor.byte_offset, GetDataSize(tensor), {}};
}

/*!
 * \brief A value on its way through a walk, borrowed from its owner where that is possible.
 *
 * A walk only reads, so what it borrows stays where it is until user code runs. Before that, the
 * walk has to Own everything it is going to look at again. Where other threads change things
 * meanwhile (MayChangeAnyTime) it does so from the start, and looks at containers through Views.
 */
class Part {
 public:
  Part() = default;
  Part(Part&& other) noexcept
      : cell_(other.cell_), is_owned_(std::exchange(other.is_owned_, false)) {}
  Part& operator=(Part&& other) noexcept {
    std::swap(cell_, other.cell_);
    std::swap(is_owned_, other.is_owned_);
    return *this;
  }
  ~Part() {
    if (is_owned_) details::ObjectUnsafe::DecRefObjectHandle(cell_.v_obj);
  }

  static Part Borrowed(const TVMFFIAny& cell) { return Part(cell, false); }
  static Part Borrowed(const Any& value) { return Borrowed(CellOf(value)); }
  static Part Owned(Any value) {
    TVMFFIAny cell = details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(value));
    return Part(cell, cell.type_index >= kTVMFFIStaticObjectBegin);
  }

  /*! \brief The value of a field. */
  Part(const TVMFFIFieldInfo* field, const Object* object) { ReadFrom(field, object); }

  /*! \brief Becomes the value of a field. Only a new part may. */
  TVM_FFI_INLINE void ReadFrom(const TVMFFIFieldInfo* field, const Object* object) {
    if (MayChangeAnyTime()) {
      ReadLocked(field, object);
    } else {
      Read(field, object);
    }
  }

  /*! \brief Becomes another value, borrowed. Only a part that owns nothing may: letting go of a
   * value is user code, which might drop the new one. */
  void Borrow(const TVMFFIAny& cell) { cell_ = cell; }

  /*! \brief The value; the part owns nothing any more. */
  Any Take() {
    Own();
    is_owned_ = false;
    return details::AnyUnsafe::MoveTVMFFIAnyRawToAny(cell_);
  }

  /*! \brief Owns nothing any more. */
  void LetGo() {
    if (is_owned_) Part gone = std::move(*this);
  }

  void Own() {
    if (is_owned_ || cell_.type_index < kTVMFFIStaticObjectBegin) return;
    details::ObjectUnsafe::IncRefObjectHandle(cell_.v_obj);
    is_owned_ = true;
  }

  const TVMFFIAny& cell() const { return cell_; }
  int32_t type_index() const { return cell_.type_index; }
  const Object* object() const {
    return details::ObjectUnsafe::RawObjectPtrFromUnowned<Object>(cell_.v_obj);
  }
  AnyView view() const { return AnyView::CopyFromTVMFFIAny(cell_); }
  const Any& any() const { return AnyOf(cell_); }
  /*! \brief Whether anybody but one owner inside the walked value refers to the object. */
  bool IsShared() const { return object()->use_count() > (is_owned_ ? 2U : 1U); }

 private:
  Part(const TVMFFIAny& cell, bool is_owned) : cell_(cell), is_owned_(is_owned) {}

  TVM_FFI_INLINE void Read(const TVMFFIFieldInfo* field, const Object* object) {
    void* address = FieldAddress(object, field);
    switch (KindOfField(*field)) {
      case FieldKind::kAny:
        cell_ = *static_cast<const TVMFFIAny*>(address);
        return;
      case FieldKind::kInt64:
        cell_.type_index = kTVMFFIInt;
        cell_.v_int64 = *static_cast<const int64_t*>(address);
        return;
      case FieldKind::kObject:
        cell_.v_obj = *static_cast<TVMFFIObject* const*>(address);
        if (cell_.v_obj != nullptr) cell_.type_index = cell_.v_obj->type_index;
        return;
      default:
        TVM_FFI_CHECK_SAFE_CALL(field->getter(address, &cell_));
        is_owned_ = cell_.type_index >= kTVMFFIStaticObjectBegin;
    }
  }

  TVM_FFI_NO_INLINE void ReadLocked(const TVMFFIFieldInfo* field, const Object* object) {
    ObjectLock lock(object);
    Read(field, object);
    Own();
  }

  TVMFFIAny cell_{};
  bool is_owned_ = false;
};

/*! \brief The fields of a type that take part, ancestors first, one at a time. */
class FieldCursor {
 public:
  FieldCursor() = default;
  explicit FieldCursor(const TVMFFITypeInfo* type) : type_(type) {}

  /*! \brief The next field, or null. */
  const TVMFFIFieldInfo* Next() {
    for (;; ++level_, index_ = 0) {
      const TVMFFITypeInfo* owner = Owner();
      while (index_ < owner->num_fields) {
        const TVMFFIFieldInfo* field = owner->fields + index_++;
        if ((field->flags & kTVMFFIFieldFlagBitMaskSEqHashIgnore) == 0) return field;
      }
      if (owner == type_) return nullptr;
    }
  }

  /*! \brief What Next returned last. */
  const TVMFFIFieldInfo* Last() const { return Owner()->fields + index_ - 1; }

 private:
  const TVMFFITypeInfo* Owner() const {
    return level_ < type_->type_depth ? type_->type_ancestors[level_] : type_;
  }

  const TVMFFITypeInfo* type_ = nullptr;
  int32_t level_ = 1;  // level 0 is ffi.Object, which has no fields
  int32_t index_ = 0;
};

/*! \brief A stack that needs no heap while it is low. References are valid until the next Push. */
template <typename T, size_t kInline>
class InlineStack {
 public:
  InlineStack() = default;
  InlineStack(const InlineStack&) = delete;
  InlineStack& operator=(const InlineStack&) = delete;
  ~InlineStack() {
    while (size_ > 0) Pop();
    if (!IsInline()) std::allocator<T>().deallocate(data_, capacity_);
  }

  size_t size() const { return size_; }
  T& back() { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  T& Push() {
    if (size_ == capacity_) Grow();
    T* slot = ::new (data_ + size_) T();
    ++size_;
    return *slot;
  }

  void Pop() { data_[--size_].~T(); }

 private:
  bool IsInline() const { return data_ == reinterpret_cast<const T*>(inline_); }

  TVM_FFI_NO_INLINE void Grow() {
    T* larger = std::allocator<T>().allocate(2 * capacity_);
    for (size_t i = 0; i < size_; ++i) {
      ::new (larger + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    if (!IsInline()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = larger;
    capacity_ *= 2;
  }

  alignas(T) unsigned char inline_[kInline * sizeof(T)];
  T* data_ = reinterpret_cast<T*>(inline_);
  size_t size_ = 0;
  size_t capacity_ = kInline;
};

/*!
 * \brief Detects that a walk goes through a cycle.
 *
 * Such a walk only ever goes deeper. Looking through the stack each time its depth has doubled
 * costs a constant per level, and nothing at all for shallow values.
 */
class CircleWatch {
 public:
  bool DueAt(size_t depth) {
    if (TVM_FFI_PREDICT_TRUE(depth < next_look_)) return false;
    next_look_ = 2 * depth;
    return true;
  }

  /*! \brief Whether one object occurs twice on the stack. */
  template <typename Frames, typename ObjectOfFrame>
  static bool HasRepeat(const Frames& frames, ObjectOfFrame object_of) {
    AddressMap<const Object*, bool> on_path;
    for (const auto& frame : frames) {
      bool& seen = on_path[object_of(frame)];
      if (seen) return true;
      seen = true;
    }
    return false;
  }

 private:
  size_t next_look_ = 1024;
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm

#endif  // TETHER_EXTRA_STRUCTURAL_COMMON_H_
