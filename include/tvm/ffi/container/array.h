// SPDX-License-Identifier: Apache-2.0
// Array<T>: a sequence with value semantics. Handles share one object until one of them writes.
//
//   Array<int> a = {1, 2, 3};
//   Array<int> b = a;       // same object
//   b.push_back(4);         // b copies first; a still has three elements
//   int x = a[0];
//
// The elements live behind the object in the same block. An array that has to grow moves into a
// larger object, so the address of a handle's object changes then.
#ifndef TVM_FFI_CONTAINER_ARRAY_H_
#define TVM_FFI_CONTAINER_ARRAY_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/container_detail.h>
#include <tvm/ffi/container/seq_base.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/optional.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {

namespace tether {
struct ArrayOps;
}

class ArrayObj : public SeqBaseObj {
 public:
  static constexpr bool _type_final = true;
  static constexpr int32_t _type_index = TypeIndex::kTVMFFIArray;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC(StaticTypeKey::kTVMFFIArray, ArrayObj, Object);

  static ObjectPtr<ArrayObj> CopyFrom(int64_t cap, ArrayObj* from);
  // Leaves `from` empty.
  static ObjectPtr<ArrayObj> MoveFrom(int64_t cap, ArrayObj* from);
  static ObjectPtr<ArrayObj> CreateRepeated(int64_t n, const Any& val);

 private:
  friend struct tether::ArrayOps;
};

static_assert(sizeof(ArrayObj) == sizeof(SeqBaseObj), "elements start right behind the base");

namespace tether {

inline constexpr int64_t kInitialSeqCapacity = 4;

// Rejects a count whose byte size would not fit.
TVM_FFI_INLINE void CheckSeqCapacity(int64_t n, const char* text) {
  constexpr uint64_t kMaxCells = uint64_t{1} << 58;
  if (TVM_FFI_PREDICT_FALSE(static_cast<uint64_t>(n) > kMaxCells)) ThrowValueError(text);
}

// The parts of Array<T> that do not depend on T, compiled once.
struct ArrayOps {
  static ObjectPtr<ArrayObj> Empty(int64_t capacity) {
    CheckSeqCapacity(capacity, "cannot construct an Array of negative size");
    ObjectPtr<ArrayObj> array =
        make_inplace_array_object<ArrayObj, Any>(static_cast<size_t>(capacity));
    array->data = reinterpret_cast<char*>(array.get()) + sizeof(ArrayObj);
    array->TVMFFISeqCell::capacity = capacity;
    return array;
  }

  static ObjectPtr<ArrayObj> Copy(int64_t capacity, ArrayObj* from) {
    ObjectPtr<ArrayObj> array = Empty(capacity);
    SeqOps::AppendRange(array.get(), from->begin(), from->end());
    return array;
  }

  static ObjectPtr<ArrayObj> Move(int64_t capacity, ArrayObj* from) {
    ObjectPtr<ArrayObj> array = Empty(capacity);
    SeqOps::MoveAll(from, array.get());
    return array;
  }

  // Makes `ref` the only owner of an array with room for `extra` more elements.
  TVM_FFI_INLINE static ArrayObj* Writable(ObjectPtr<Object>* ref, int64_t extra) {
    ArrayObj* array = static_cast<ArrayObj*>(ref->get());
    if (TVM_FFI_PREDICT_TRUE(array != nullptr && array->unique() &&
                             SeqOps::Capacity(array) - SeqOps::Size(array) >= extra)) {
      return array;
    }
    return Replace(ref, extra);
  }

  TVM_FFI_NO_INLINE static ArrayObj* Replace(ObjectPtr<Object>* ref, int64_t extra) {
    ArrayObj* array = static_cast<ArrayObj*>(ref->get());
    if (array == nullptr) {
      *ref = Empty(std::max(kInitialSeqCapacity, extra));
      return static_cast<ArrayObj*>(ref->get());
    }
    int64_t capacity = SeqOps::Capacity(array);
    if (capacity - SeqOps::Size(array) < extra) {
      capacity = std::max(capacity * 2, SeqOps::Size(array) + extra);
    }
    return Recapacitate(ref, capacity);
  }

  // Puts an array of exactly `capacity`, which suffices, in the place of the old one.
  static ArrayObj* Recapacitate(ObjectPtr<Object>* ref, int64_t capacity) {
    ArrayObj* array = static_cast<ArrayObj*>(ref->get());
    *ref = array->unique() ? Move(capacity, array) : Copy(capacity, array);
    return static_cast<ArrayObj*>(ref->get());
  }
};

}  // namespace tether

inline ObjectPtr<ArrayObj> ArrayObj::CopyFrom(int64_t cap, ArrayObj* from) {
  if (TVM_FFI_PREDICT_FALSE(static_cast<int64_t>(from->size()) > cap)) {
    tether::ThrowValueError("Not enough capacity");
  }
  return tether::ArrayOps::Copy(cap, from);
}

inline ObjectPtr<ArrayObj> ArrayObj::MoveFrom(int64_t cap, ArrayObj* from) {
  if (TVM_FFI_PREDICT_FALSE(static_cast<int64_t>(from->size()) > cap)) {
    tether::ThrowRuntimeError("Not enough capacity");
  }
  return tether::ArrayOps::Move(cap, from);
}

inline ObjectPtr<ArrayObj> ArrayObj::CreateRepeated(int64_t n, const Any& val) {
  ObjectPtr<ArrayObj> array = tether::ArrayOps::Empty(n);
  for (int64_t i = 0; i < n; ++i) tether::SeqOps::Append(array.get(), Any(val));
  return array;
}

template <>
inline ObjectPtr<ArrayObj> make_object<ArrayObj>() {
  return tether::ArrayOps::Empty(tether::kInitialSeqCapacity);
}

// Whether Iter yields Ts without conversion.
template <typename T, typename IterType>
struct is_valid_iterator
    : std::bool_constant<
          std::is_same_v<
              T, std::remove_cv_t<std::remove_reference_t<decltype(*std::declval<IterType>())>>> ||
          std::is_base_of_v<
              T, std::remove_cv_t<std::remove_reference_t<decltype(*std::declval<IterType>())>>>> {
};

template <typename T, typename IterType>
struct is_valid_iterator<Optional<T>, IterType> : is_valid_iterator<T, IterType> {};

template <typename IterType>
struct is_valid_iterator<Any, IterType> : std::true_type {};

template <typename T, typename IterType>
inline constexpr bool is_valid_iterator_v = is_valid_iterator<T, IterType>::value;

template <typename T, typename = typename std::enable_if_t<detail::storage_enabled_v<T>>>
class Array : public ObjectRef {
 public:
  using value_type = T;
  using ContainerType = ArrayObj;
  using iterator = detail::IterAdapter<tether::ElementReader<T>, const Any*>;
  using reverse_iterator = detail::ReverseIterAdapter<tether::ElementReader<T>, const Any*>;
  // Being an ArrayObj says nothing about the elements.
  static constexpr bool _type_container_is_exact = false;
  static constexpr bool _type_is_nullable = false;

  Array() : ObjectRef(tether::ArrayOps::Empty(tether::kInitialSeqCapacity)) {}
  explicit Array(UnsafeInit tag) : ObjectRef(tag) {}
  // Adopts an array whose elements the caller knows to be Ts; nothing is checked.
  explicit Array(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {
    TVM_FFI_ICHECK_NOTNULL(data_.get());
  }
  Array(const Array& other) = default;
  Array(Array&& other) noexcept = default;
  Array& operator=(const Array& other) = default;
  Array& operator=(Array&& other) noexcept = default;

  template <typename U, typename = std::enable_if_t<type_subsumes_v<T, U>>>
  Array(const Array<U>& other)  // NOLINT(*)
      : ObjectRef(detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(other)) {}
  template <typename U, typename = std::enable_if_t<type_subsumes_v<T, U>>>
  Array(Array<U>&& other)  // NOLINT(*)
      : ObjectRef(detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(other))) {}
  template <typename U, typename = std::enable_if_t<type_subsumes_v<T, U>>>
  Array& operator=(const Array<U>& other) {
    data_ = detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(other);
    return *this;
  }
  template <typename U, typename = std::enable_if_t<type_subsumes_v<T, U>>>
  Array& operator=(Array<U>&& other) {
    data_ = detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(other));
    return *this;
  }

  template <typename IterType, typename = decltype(*std::declval<IterType&>())>
  Array(IterType first, IterType last) : ObjectRef(UnsafeInit{}) {
    static_assert(is_valid_iterator_v<T, IterType>,
                  "the iterator does not yield elements of this Array");
    Assign(first, last);
  }
  Array(std::initializer_list<T> init) : ObjectRef(UnsafeInit{}) {  // NOLINT(*)
    Assign(init.begin(), init.end());
  }
  Array(const std::vector<T>& init) : ObjectRef(UnsafeInit{}) {  // NOLINT(*)
    Assign(init.begin(), init.end());
  }
  explicit Array(const size_t n, const T& val)
      : ObjectRef(ArrayObj::CreateRepeated(static_cast<int64_t>(n), Any(val))) {}

  iterator begin() const { return iterator(GetArrayObj()->begin()); }
  iterator end() const { return iterator(GetArrayObj()->end()); }
  reverse_iterator rbegin() const { return reverse_iterator(GetArrayObj()->end() - 1); }
  reverse_iterator rend() const { return reverse_iterator(GetArrayObj()->begin() - 1); }

  // By value: what is stored is an Any, so there is no T to refer to. Const because client code
  // depends on that.
  const T operator[](int64_t i) const { return Read(NotNull()->at(i)); }
  T front() const { return Read(NotNull()->front()); }
  T back() const { return Read(NotNull()->back()); }

  size_t size() const { return data_ == nullptr ? 0 : GetArrayObj()->size(); }
  size_t capacity() const { return data_ == nullptr ? 0 : GetArrayObj()->capacity(); }
  bool empty() const { return size() == 0; }

  // The element becomes an Any before the array is made writable: appending an array to itself then
  // stores the old array instead of a cycle.
  void push_back(const T& item) {
    if constexpr (std::is_arithmetic_v<T>) {
      // A number cannot refer to the array, and is written in its final place.
      tether::SeqOps::Append(tether::ArrayOps::Writable(&data_, 1), item);
    } else {
      PushCell(Any(item));
    }
  }
  template <typename... Args>
  void emplace_back(Args&&... args) {
    PushCell(Any(T(std::forward<Args>(args)...)));
  }

  // Positions are turned into indices first: making the array writable may replace its storage.
  void insert(iterator position, const T& val) {
    RequireNotNull("cannot insert a null array");
    const int64_t index = position - begin();
    Any cell(val);
    tether::ArrayOps::Writable(&data_, 1)->insert(index, std::move(cell));
  }
  template <typename IterType>
  void insert(iterator position, IterType first, IterType last) {
    static_assert(is_valid_iterator_v<T, IterType>,
                  "the iterator does not yield elements of this Array");
    if (first == last) return;
    RequireNotNull("cannot insert a null array");
    const int64_t index = position - begin();
    tether::ArrayOps::Writable(&data_, std::distance(first, last))->insert(index, first, last);
  }

  void pop_back() {
    RequireNotNull("cannot pop_back a null array");
    CopyOnWrite()->pop_back();
  }
  void erase(iterator position) {
    RequireNotNull("cannot erase a null array");
    const int64_t index = position - begin();
    CopyOnWrite()->erase(index);
  }
  void erase(iterator first, iterator last) {
    if (first == last) return;
    RequireNotNull("cannot erase a null array");
    const int64_t begin_index = first - begin();
    const int64_t end_index = last - begin();
    CopyOnWrite()->erase(begin_index, end_index);
  }

  // New elements are None, which is not a T for every T; write them before reading.
  void resize(int64_t n) {
    if (TVM_FFI_PREDICT_FALSE(n < 0)) {
      tether::ThrowValueError("cannot resize an Array to negative size");
    }
    if (data_ == nullptr) {
      data_ = tether::ArrayOps::Empty(n);
      return;
    }
    const int64_t old_size = static_cast<int64_t>(size());
    if (n == old_size) return;
    tether::ArrayOps::Writable(&data_, std::max<int64_t>(n - old_size, 0))->resize(n);
  }
  void reserve(int64_t n) {
    if (data_ == nullptr) {
      data_ = tether::ArrayOps::Empty(n);
    } else if (n > static_cast<int64_t>(capacity())) {
      tether::ArrayOps::Recapacitate(&data_, n);
    }
  }
  void clear() {
    if (data_ != nullptr) CopyOnWrite()->clear();
  }

  void Set(int64_t i, T value) { CopyOnWrite()->SetItem(i, Any(std::move(value))); }

  template <typename IterType>
  void Assign(IterType first, IterType last) {
    const int64_t n = static_cast<int64_t>(std::distance(first, last));
    if (TVM_FFI_PREDICT_FALSE(n < 0)) {
      tether::ThrowValueError("cannot construct an Array of negative size");
    }
    ArrayObj* reused = GetArrayObj();
    if (reused != nullptr && data_.unique() && tether::SeqOps::Capacity(reused) >= n) {
      tether::TakenCells old(reused, 0);
      tether::SeqOps::AppendRange(reused, first, last);
      return;
    }
    ObjectPtr<ArrayObj> fresh = tether::ArrayOps::Empty(n);
    tether::SeqOps::AppendRange(fresh.get(), first, last);
    data_ = std::move(fresh);
  }

  ArrayObj* GetArrayObj() const { return static_cast<ArrayObj*>(data_.get()); }
  ArrayObj* CopyOnWrite() { return tether::ArrayOps::Writable(&data_, 0); }

  // fmap(element) for every element. Yields the same object if nothing changed.
  template <typename F, typename U = std::invoke_result_t<F, T>>
  Array<U> Map(F fmap) const {
    return detail::ObjectUnsafe::ObjectRefFromObjectPtr<Array<U>>(MapCells<F, U>(data_, fmap));
  }

  // As `*this = Map(fmutate)`, in place if this is the only handle; fmutate then also gets the only
  // reference to each element. The handle is null after an exception.
  template <typename F, typename = std::enable_if_t<std::is_same_v<T, std::invoke_result_t<F, T>>>>
  void MutateByApply(F fmutate) {
    data_ = MapCells<F, T>(std::move(data_), fmutate);
  }

  // Concatenates elements and arrays in the order given.
  template <typename... Args>
  static Array<T> Agregate(Args... args) {
    Array<T> result(UnsafeInit{});
    result.reserve(static_cast<int64_t>(CalcCapacityImpl(args...)));
    AgregateImpl(result, args...);
    return result;
  }
  template <typename... Args>
  static size_t CalcCapacityImpl(const Args&... args) {
    return (CountOf(args) + ... + size_t{0});
  }
  template <typename... Args>
  static void AgregateImpl(Array<T>& dest, const Args&... args) {  // NOLINT(*)
    (dest.AppendPart(args), ...);
  }

 private:
  TVM_FFI_INLINE static T Read(const Any& cell) { return tether::ElementReader<T>::convert(cell); }

  TVM_FFI_INLINE const ArrayObj* NotNull() const {
    if (TVM_FFI_PREDICT_FALSE(data_ == nullptr)) {
      tether::ThrowIndexError("cannot index a null array");
    }
    return GetArrayObj();
  }
  TVM_FFI_INLINE void RequireNotNull(const char* text) const {
    if (TVM_FFI_PREDICT_FALSE(data_ == nullptr)) tether::ThrowRuntimeError(text);
  }
  TVM_FFI_INLINE void PushCell(Any&& cell) {
    tether::SeqOps::Append(tether::ArrayOps::Writable(&data_, 1), std::move(cell));
  }

  static size_t CountOf(const T&) { return 1; }
  static size_t CountOf(const Array<T>& part) { return part.size(); }
  void AppendPart(const T& part) { push_back(part); }
  void AppendPart(const Array<T>& part) {
    for (size_t i = 0; i < part.size(); ++i) push_back(part[static_cast<int64_t>(i)]);
  }

  template <typename F, typename U>
  static ObjectPtr<Object> MapCells(ObjectPtr<Object> data, F& fmap) {
    if (data == nullptr) return nullptr;
    TVM_FFI_ICHECK(data->IsInstance<ArrayObj>());
    ArrayObj* array = static_cast<ArrayObj*>(data.get());
    // A raw pointer element owns nothing that could be passed to fmap.
    if constexpr (std::is_same_v<T, U> && !std::is_pointer_v<T>) {
      if (data.unique()) {
        Any* cells = tether::SeqOps::Cells(array);
        for (size_t i = 0; i < array->size(); ++i) {
          T item = detail::AnyUnsafe::MoveFromAnyAfterCheck<T>(std::move(cells[i]));
          cells[i].reset();
          cells[i] = Any(fmap(std::move(item)));
        }
        return data;
      }
    }
    // Until something differs there may be nothing to build.
    size_t i = 0;
    Any mapped;
    if constexpr (is_valid_iterator_v<T, U*> || is_valid_iterator_v<U, T*>) {
      for (; i < array->size(); ++i) {
        mapped = Any(fmap(Read(array->begin()[i])));
        if (!mapped.same_as(array->begin()[i])) break;
      }
      if (i == array->size()) return data;
    }
    ObjectPtr<ArrayObj> result = tether::ArrayOps::Empty(static_cast<int64_t>(array->size()));
    if constexpr (is_valid_iterator_v<T, U*> || is_valid_iterator_v<U, T*>) {
      tether::SeqOps::AppendRange(result.get(), array->begin(), array->begin() + i);
      tether::SeqOps::Append(result.get(), std::move(mapped));
      ++i;
    }
    for (; i < array->size(); ++i) {
      tether::SeqOps::Append(result.get(), Any(fmap(Read(array->begin()[i]))));
    }
    return result;
  }
};

template <typename T,
          typename = std::enable_if_t<std::is_same_v<T, Any> || TypeTraitsNoCR<T>::convert_enabled>>
inline Array<T> Concat(Array<T> lhs, const Array<T>& rhs) {
  if (rhs.empty()) return lhs;
  // A second handle: rhs may be the object that lhs is about to write to.
  const Array<T> tail = rhs;
  lhs.reserve(static_cast<int64_t>(lhs.size() + tail.size()));
  for (const auto& item : tail) lhs.push_back(item);
  return lhs;
}

template <typename T>
inline constexpr bool use_default_type_traits_v<Array<T>> = false;

template <typename T>
struct TypeTraits<Array<T>> : public SeqTypeTraitsBase<TypeTraits<Array<T>>, Array<T>, T> {
  static constexpr int32_t kPrimaryTypeIndex = TypeIndex::kTVMFFIArray;
  // Converted by copying.
  static constexpr int32_t kOtherTypeIndex = TypeIndex::kTVMFFIList;
  static constexpr const char* kTypeName = "Array";
  static constexpr const char* kStaticTypeKey = StaticTypeKey::kTVMFFIArray;
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIArray;
};

template <typename T, typename U>
inline constexpr bool type_subsumes_v<Array<T>, Array<U>> = type_subsumes_v<T, U>;

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_ARRAY_H_
