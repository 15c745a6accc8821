// SPDX-License-Identifier: Apache-2.0
// The storage that Array and List share, and the rules by which values convert to either.
//
// A sequence is the object header followed by a TVMFFISeqCell: `data` points at `capacity` cells,
// of which the first `size` are constructed. Any binary may read and, by the rules of Array and
// List, write these fields, so they are valid whenever user code can run. Element destructors are
// user code: every removal takes all its elements out, finishes the change, and only then drops
// them, so that what a destructor stores in the sequence stays. Equality hooks and conversions are
// user code too: a loop that runs them holds the element and reads size and data again each time.
#ifndef TVM_FFI_CONTAINER_SEQ_BASE_H_
#define TVM_FFI_CONTAINER_SEQ_BASE_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/container_detail.h>
#include <tvm/ffi/object.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

class SeqBaseObj;

namespace tether {

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowIndex(int64_t index,
                                                                        int64_t size) {
  TVM_FFI_THROW(IndexError) << "Index " << index << " out of bounds " << size;
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowInsertPosition(int64_t index,
                                                                                 int64_t size) {
  TVM_FFI_THROW(IndexError) << "Index " << index << " out of bounds [0, " << size << "]";
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowEraseRange(int64_t first,
                                                                             int64_t last,
                                                                             int64_t size) {
  TVM_FFI_THROW(IndexError) << "Erase range [" << first << ", " << last << ") out of bounds "
                            << size;
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowIndexError(const char* text) {
  TVM_FFI_THROW(IndexError) << text;
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowValueError(const char* text) {
  TVM_FFI_THROW(ValueError) << text;
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowRuntimeError(const char* text) {
  TVM_FFI_THROW(RuntimeError) << text;
}

// Moves n cells as bytes; the source is afterwards raw memory and the ranges may overlap.
TVM_FFI_INLINE void RelocateCells(Any* to, const Any* from, int64_t n) {
  if (n == 0) return;  // both may be null then
  std::memmove(static_cast<void*>(to), static_cast<const void*>(from),
               static_cast<size_t>(n) * sizeof(Any));
}

// The elements of a sequence from `size` on, taken out of it, and dropped at the end of the scope,
// the last one first.
class TakenCells {
 public:
  TakenCells(SeqBaseObj* seq, int64_t size);
  TakenCells(const TakenCells&) = delete;
  TakenCells& operator=(const TakenCells&) = delete;
  ~TakenCells() {
    for (Any* cell = Cells() + n_; n_ > 0; --n_) (--cell)->~Any();
  }

 private:
  static constexpr int64_t kFew = 8;
  struct Cell {
    alignas(Any) unsigned char bytes[sizeof(Any)];
  };

  Any* Cells() { return reinterpret_cast<Any*>(many_ != nullptr ? many_.get() : few_); }

  int64_t n_ = 0;
  std::unique_ptr<Cell[]> many_;
  Cell few_[kFew];
};

// The operations on raw storage that the sequence types are written in.
struct SeqOps {
  TVM_FFI_INLINE static void CheckIndex(const SeqBaseObj* seq, int64_t i);
  TVM_FFI_INLINE static void CheckInsertPosition(const SeqBaseObj* seq, int64_t i);
  TVM_FFI_INLINE static Any* Cells(SeqBaseObj* seq);
  TVM_FFI_INLINE static int64_t Size(const SeqBaseObj* seq);
  TVM_FFI_INLINE static int64_t Capacity(const SeqBaseObj* seq);
  // Appends into spare capacity.
  template <typename T>
  TVM_FFI_INLINE static void Append(SeqBaseObj* seq, T&& value);
  template <typename Iter>
  static void AppendRange(SeqBaseObj* seq, Iter first, Iter last);
  // std::rotate on the cells as plain values.
  static void Rotate(SeqBaseObj* seq, int64_t first, int64_t middle, int64_t last);
  // Moves the elements of `from` behind those of `to`, which has room, and leaves `from` empty.
  static void MoveAll(SeqBaseObj* from, SeqBaseObj* to);
};

}  // namespace tether

class SeqBaseObj : public Object, protected TVMFFISeqCell {
 public:
  SeqBaseObj() noexcept : TVMFFISeqCell{nullptr, 0, 0, nullptr} {}
  SeqBaseObj(const SeqBaseObj&) = delete;
  SeqBaseObj& operator=(const SeqBaseObj&) = delete;

  ~SeqBaseObj() {
    Any* cells = tether::SeqOps::Cells(this);
    const int64_t n = TVMFFISeqCell::size;
    TVMFFISeqCell::size = 0;
    for (int64_t i = 0; i < n; ++i) cells[i].~Any();
    if (data_deleter != nullptr) data_deleter(data);
  }

  size_t size() const { return static_cast<size_t>(TVMFFISeqCell::size); }
  size_t capacity() const { return static_cast<size_t>(TVMFFISeqCell::capacity); }
  bool empty() const { return TVMFFISeqCell::size == 0; }

  const Any& at(int64_t i) const {
    tether::SeqOps::CheckIndex(this, i);
    return begin()[i];
  }
  const Any& operator[](int64_t i) const { return at(i); }
  const Any& front() const {
    if (TVM_FFI_PREDICT_FALSE(empty())) tether::ThrowIndexError("front() on empty sequence");
    return *begin();
  }
  const Any& back() const {
    if (TVM_FFI_PREDICT_FALSE(empty())) tether::ThrowIndexError("back() on empty sequence");
    return end()[-1];
  }

  const Any* begin() const { return static_cast<const Any*>(data); }
  const Any* end() const { return begin() + TVMFFISeqCell::size; }

  void clear() { tether::TakenCells removed(this, 0); }

  void SetItem(int64_t i, Any item) {
    tether::SeqOps::CheckIndex(this, i);
    // The old value is dropped with `item`, after the sequence is consistent again.
    tether::SeqOps::Cells(this)[i].swap(item);
  }

  // The index is not checked.
  void SetItemAfterCheck(int64_t i, Any item) { tether::SeqOps::Cells(this)[i].swap(item); }

  // Constructs the cells from `idx` on, which must be within the capacity and behind the size. The
  // size stays as it is.
  template <typename Iter>
  SeqBaseObj* InitRange(int64_t idx, Iter first, Iter last) {
    Any* cell = tether::SeqOps::Cells(this) + idx;
    for (; first != last; ++first, ++cell) new (static_cast<void*>(cell)) Any(*first);
    return this;
  }

  void pop_back() {
    if (TVM_FFI_PREDICT_FALSE(empty())) tether::ThrowIndexError("pop_back on empty sequence");
    Any last = std::move(tether::SeqOps::Cells(this)[TVMFFISeqCell::size - 1]);
    --TVMFFISeqCell::size;
  }

  void erase(int64_t i) {
    tether::SeqOps::CheckIndex(this, i);
    Any* cell = tether::SeqOps::Cells(this) + i;
    Any removed = std::move(*cell);
    --TVMFFISeqCell::size;
    tether::RelocateCells(cell, cell + 1, TVMFFISeqCell::size - i);
  }

  void erase(int64_t first, int64_t last) {
    if (first == last) return;
    const int64_t n = TVMFFISeqCell::size;
    if (TVM_FFI_PREDICT_FALSE(first < 0 || last > n || first > last)) {
      tether::ThrowEraseRange(first, last, n);
    }
    tether::SeqOps::Rotate(this, first, last, n);
    tether::TakenCells removed(this, n - (last - first));
  }

  // The capacity must suffice for this and the other growing operations.
  void insert(int64_t i, Any item) {
    tether::SeqOps::CheckInsertPosition(this, i);
    Any* cell = tether::SeqOps::Cells(this) + i;
    tether::RelocateCells(cell + 1, cell, TVMFFISeqCell::size - i);
    new (static_cast<void*>(cell)) Any(std::move(item));
    ++TVMFFISeqCell::size;
  }

  template <typename Iter>
  void insert(int64_t i, Iter first, Iter last) {
    if (first == last) return;
    tether::SeqOps::CheckInsertPosition(this, i);
    const int64_t n = TVMFFISeqCell::size;
    tether::SeqOps::AppendRange(this, first, last);
    tether::SeqOps::Rotate(this, i, n, TVMFFISeqCell::size);
  }

  void Reverse() {
    TVMFFIAny* cells = static_cast<TVMFFIAny*>(data);
    std::reverse(cells, cells + TVMFFISeqCell::size);
  }

  void resize(int64_t n) {
    if (TVM_FFI_PREDICT_FALSE(n < 0)) tether::ThrowValueError("Cannot resize to negative size");
    while (TVMFFISeqCell::size < n) tether::SeqOps::Append(this, Any());
    tether::TakenCells removed(this, n);
  }

 private:
  friend struct tether::SeqOps;
  friend class tether::TakenCells;
};

static_assert(sizeof(void*) != 8 || sizeof(SeqBaseObj) == 56, "clients inline this layout");

namespace tether {

TVM_FFI_INLINE Any* SeqOps::Cells(SeqBaseObj* seq) { return static_cast<Any*>(seq->data); }

TVM_FFI_INLINE int64_t SeqOps::Size(const SeqBaseObj* seq) { return seq->TVMFFISeqCell::size; }

TVM_FFI_INLINE int64_t SeqOps::Capacity(const SeqBaseObj* seq) {
  return seq->TVMFFISeqCell::capacity;
}

TVM_FFI_INLINE void SeqOps::CheckIndex(const SeqBaseObj* seq, int64_t i) {
  // One comparison for both ends: a negative index is a huge unsigned one.
  if (TVM_FFI_PREDICT_FALSE(static_cast<uint64_t>(i) >= static_cast<uint64_t>(Size(seq)))) {
    ThrowIndex(i, Size(seq));
  }
}

TVM_FFI_INLINE void SeqOps::CheckInsertPosition(const SeqBaseObj* seq, int64_t i) {
  if (TVM_FFI_PREDICT_FALSE(i < 0 || i > Size(seq))) ThrowInsertPosition(i, Size(seq));
}

template <typename T>
TVM_FFI_INLINE void SeqOps::Append(SeqBaseObj* seq, T&& value) {
  new (static_cast<void*>(Cells(seq) + Size(seq))) Any(std::forward<T>(value));
  ++seq->TVMFFISeqCell::size;
}

template <typename Iter>
void SeqOps::AppendRange(SeqBaseObj* seq, Iter first, Iter last) {
  const int64_t old_size = Size(seq);
  try {
    for (; first != last; ++first) Append(seq, Any(*first));
  } catch (...) {
    TakenCells added(seq, old_size);
    throw;
  }
}

inline TakenCells::TakenCells(SeqBaseObj* seq, int64_t size) {
  const int64_t n = SeqOps::Size(seq) - size;
  if (n <= 0) return;
  const Any* cells = SeqOps::Cells(seq) + size;
  const auto owns = [](const Any& cell) {
    return cell.type_index() >= TypeIndex::kTVMFFIStaticObjectBegin;
  };
  if (std::any_of(cells, cells + n, owns)) {
    if (n > kFew) many_.reset(new Cell[static_cast<size_t>(n)]);
    RelocateCells(Cells(), cells, n);
    n_ = n;
  }
  seq->TVMFFISeqCell::size = size;
}

inline void SeqOps::Rotate(SeqBaseObj* seq, int64_t first, int64_t middle, int64_t last) {
  TVMFFIAny* cells = static_cast<TVMFFIAny*>(seq->data);
  std::rotate(cells + first, cells + middle, cells + last);
}

inline void SeqOps::MoveAll(SeqBaseObj* from, SeqBaseObj* to) {
  RelocateCells(Cells(to) + Size(to), Cells(from), Size(from));
  to->TVMFFISeqCell::size += Size(from);
  from->TVMFFISeqCell::size = 0;
}

}  // namespace tether

// Conversion rules common to Array<T> and List<T>. Derived names the two kinds that are accepted:
// the primary one is shared if all elements fit already, anything else is converted into a new
// sequence.
template <typename Derived, typename SeqRef, typename T>
struct SeqTypeTraitsBase : public ObjectRefTypeTraitsBase<SeqRef> {
  using Base = ObjectRefTypeTraitsBase<SeqRef>;

  static bool CheckAnyStrict(const TVMFFIAny* src) {
    if (src->type_index != Derived::kPrimaryTypeIndex) return false;
    if constexpr (!std::is_same_v<T, Any>) {
      const SeqBaseObj* seq = GetSeq(src);
      for (const Any& item : *seq) {
        if (!detail::AnyUnsafe::CheckAnyStrict<T>(item)) return false;
      }
    }
    return true;
  }

  static std::optional<SeqRef> TryCastFromAnyView(const TVMFFIAny* src) {
    if (!IsSequence(src)) return std::nullopt;
    if (CheckAnyStrict(src)) return Base::CopyFromAnyViewAfterCheck(src);
    const SeqBaseObj* seq = GetSeq(src);
    const ObjectPtr<Object> hold = Hold(seq);
    SeqRef result{UnsafeInit{}};
    result.reserve(static_cast<int64_t>(seq->size()));
    for (size_t i = 0; i < seq->size(); ++i) {
      const Any cell = seq->begin()[i];
      std::optional<T> item = cell.template try_cast<T>();
      if (!item.has_value()) return std::nullopt;
      result.emplace_back(*std::move(item));
    }
    return result;
  }

  TVM_FFI_COLD_CODE static std::string GetMismatchTypeInfo(const TVMFFIAny* src) {
    if (!IsSequence(src)) return TypeTraitsBase::GetMismatchTypeInfo(src);
    if constexpr (!std::is_same_v<T, Any>) {
      const SeqBaseObj* seq = GetSeq(src);
      const ObjectPtr<Object> hold = Hold(seq);
      for (size_t i = 0; i < seq->size(); ++i) {
        const Any item = seq->begin()[i];
        if (item.template try_cast<T>().has_value()) continue;
        return tether::Concat({Derived::kTypeName, "[index ", std::to_string(i), ": ",
                               detail::AnyUnsafe::GetMismatchTypeInfo<T>(item), "]"});
      }
    }
    TVM_FFI_THROW(InternalError) << "Cannot reach here";
    TVM_FFI_UNREACHABLE();
  }

  static std::string TypeStr() { return detail::ContainerTypeStr<T>(Derived::kTypeName); }
  static std::string TypeSchema() {
    return tether::Schema(Derived::kStaticTypeKey, {&detail::TypeSchema<T>::v});
  }

 private:
  static bool IsSequence(const TVMFFIAny* src) {
    return src->type_index == Derived::kPrimaryTypeIndex ||
           src->type_index == Derived::kOtherTypeIndex;
  }
  static const SeqBaseObj* GetSeq(const TVMFFIAny* src) {
    return detail::ObjectUnsafe::RawObjectPtrFromUnowned<SeqBaseObj>(src->v_obj);
  }
  static ObjectPtr<Object> Hold(const SeqBaseObj* seq) {
    return detail::ObjectUnsafe::ObjectPtrFromUnowned<Object>(const_cast<SeqBaseObj*>(seq));
  }
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_SEQ_BASE_H_
