// SPDX-License-Identifier: Apache-2.0
// List<T>: a shared, growing sequence. Every handle sees every change.
//
//   List<int> a = {1, 2};
//   List<int> b = a;
//   b.push_back(3);         // a.size() is 3 as well
//
// The object stays where it is; its elements are in a buffer of their own. Any binary may replace
// that buffer, so it always comes from the global operator new, and the deleter stored next to it
// stays the one that was there first.
#ifndef TVM_FFI_CONTAINER_LIST_H_
#define TVM_FFI_CONTAINER_LIST_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/seq_base.h>
#include <tvm/ffi/object.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <new>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {

namespace tether {

struct ListOps;

inline void FreeListBuffer(void* data) { ::operator delete(data); }

}  // namespace tether

class ListObj : public SeqBaseObj {
 public:
  static constexpr bool _type_final = true;
  static constexpr int32_t _type_index = TypeIndex::kTVMFFIList;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC(StaticTypeKey::kTVMFFIList, ListObj, Object);

  // An empty list without a buffer. The deleter is set nevertheless: code that grows the list keeps
  // it.
  ListObj() noexcept { data_deleter = tether::FreeListBuffer; }

  static ObjectPtr<ListObj> CreateRepeated(int64_t n, const Any& val);

 private:
  friend struct tether::ListOps;
};

static_assert(sizeof(ListObj) == sizeof(SeqBaseObj), "clients inline this layout");

namespace tether {

// The parts of List<T> that do not depend on T, compiled once.
struct ListOps {
  static ObjectPtr<ListObj> Empty(int64_t capacity) {
    CheckSeqCapacity(capacity, "cannot construct a List of negative size");
    ObjectPtr<ListObj> list = make_object<ListObj>();
    Reserve(list.get(), capacity);
    return list;
  }

  static void Reserve(ListObj* list, int64_t capacity) {
    if (capacity <= SeqOps::Capacity(list)) return;
    CheckSeqCapacity(capacity, "cannot construct a List of negative size");
    // This binary's operator new with the deleter that came with the list: the one allocator that
    // all binaries of a process share.
    void* buffer = ::operator new(static_cast<size_t>(capacity) * sizeof(Any));
    RelocateCells(static_cast<Any*>(buffer), list->begin(), SeqOps::Size(list));
    list->data_deleter(list->data);
    list->data = buffer;
    list->TVMFFISeqCell::capacity = capacity;
  }

  TVM_FFI_INLINE static ListObj* WithRoom(ListObj* list, int64_t extra) {
    if (TVM_FFI_PREDICT_FALSE(SeqOps::Capacity(list) - SeqOps::Size(list) < extra)) {
      Grow(list, extra);
    }
    return list;
  }

  TVM_FFI_NO_INLINE static void Grow(ListObj* list, int64_t extra) {
    Reserve(list, std::max(SeqOps::Capacity(list) * 2, SeqOps::Size(list) + extra));
  }
};

}  // namespace tether

inline ObjectPtr<ListObj> ListObj::CreateRepeated(int64_t n, const Any& val) {
  ObjectPtr<ListObj> list = tether::ListOps::Empty(n);
  for (int64_t i = 0; i < n; ++i) tether::SeqOps::Append(list.get(), Any(val));
  return list;
}

template <typename T, typename = typename std::enable_if_t<detail::storage_enabled_v<T>>>
class List : public ObjectRef {
 public:
  using value_type = T;
  using ContainerType = ListObj;
  using iterator = detail::IterAdapter<tether::SharedElementReader<T>, const Any*>;
  using reverse_iterator = detail::ReverseIterAdapter<tether::SharedElementReader<T>, const Any*>;
  static constexpr bool _type_container_is_exact = false;
  static constexpr bool _type_is_nullable = false;

  List() : ObjectRef(tether::ListOps::Empty(0)) {}
  explicit List(UnsafeInit tag) : ObjectRef(tag) {}
  // Adopts a list whose elements the caller knows to be Ts; nothing is checked.
  explicit List(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {
    TVM_FFI_ICHECK_NOTNULL(data_.get());
  }
  List(const List& other) = default;
  List(List&& other) noexcept = default;
  List& operator=(const List& other) = default;
  List& operator=(List&& other) noexcept = default;

  // The handles share one list: what is pushed through the wider one must still fit the other.
  template <typename U, typename = std::enable_if_t<type_subsumes_v<T, U>>>
  List(const List<U>& other)  // NOLINT(*)
      : ObjectRef(detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(other)) {}
  template <typename U, typename = std::enable_if_t<type_subsumes_v<T, U>>>
  List(List<U>&& other)  // NOLINT(*)
      : ObjectRef(detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(other))) {}
  template <typename U, typename = std::enable_if_t<type_subsumes_v<T, U>>>
  List& operator=(const List<U>& other) {
    data_ = detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(other);
    return *this;
  }
  template <typename U, typename = std::enable_if_t<type_subsumes_v<T, U>>>
  List& operator=(List<U>&& other) {
    data_ = detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(other));
    return *this;
  }

  template <typename IterType, typename = decltype(*std::declval<IterType&>())>
  List(IterType first, IterType last) : List() {
    static_assert(is_valid_iterator_v<T, IterType>,
                  "the iterator does not yield elements of this List");
    Fill(first, last);
  }
  List(std::initializer_list<T> init) : List() { Fill(init.begin(), init.end()); }  // NOLINT(*)
  List(const std::vector<T>& init) : List() { Fill(init.begin(), init.end()); }     // NOLINT(*)
  explicit List(const size_t n, const T& val)
      : ObjectRef(ListObj::CreateRepeated(static_cast<int64_t>(n), Any(val))) {}

  iterator begin() const { return iterator(GetListObj()->begin()); }
  iterator end() const { return iterator(GetListObj()->end()); }
  reverse_iterator rbegin() const { return reverse_iterator(GetListObj()->end() - 1); }
  reverse_iterator rend() const { return reverse_iterator(GetListObj()->begin() - 1); }

  T operator[](int64_t i) const { return Read(NotNull()->at(i)); }
  T front() const { return Read(NotNull()->front()); }
  T back() const { return Read(NotNull()->back()); }

  size_t size() const { return data_ == nullptr ? 0 : GetListObj()->size(); }
  size_t capacity() const { return data_ == nullptr ? 0 : GetListObj()->capacity(); }
  bool empty() const { return size() == 0; }

  void push_back(const T& item) { PushCell(Any(item)); }
  template <typename... Args>
  void emplace_back(Args&&... args) {
    PushCell(Any(T(std::forward<Args>(args)...)));
  }

  void insert(iterator position, const T& val) {
    RequireNotNull("cannot insert to a null list");
    const int64_t index = position - begin();
    Any cell(val);
    tether::ListOps::WithRoom(GetListObj(), 1)->insert(index, std::move(cell));
  }
  template <typename IterType>
  void insert(iterator position, IterType first, IterType last) {
    static_assert(is_valid_iterator_v<T, IterType>,
                  "the iterator does not yield elements of this List");
    if (first == last) return;
    RequireNotNull("cannot insert to a null list");
    const int64_t index = position - begin();
    tether::ListOps::WithRoom(GetListObj(), std::distance(first, last))->insert(index, first, last);
  }

  void pop_back() {
    RequireNotNull("cannot pop_back a null list");
    GetListObj()->pop_back();
  }
  void erase(iterator position) {
    RequireNotNull("cannot erase a null list");
    GetListObj()->erase(position - begin());
  }
  void erase(iterator first, iterator last) {
    if (first == last) return;
    RequireNotNull("cannot erase a null list");
    GetListObj()->erase(first - begin(), last - begin());
  }

  void resize(int64_t n) {
    if (TVM_FFI_PREDICT_FALSE(n < 0)) {
      tether::ThrowValueError("cannot resize a List to negative size");
    }
    ListObj* list = EnsureObject();
    const int64_t extra = n - static_cast<int64_t>(list->size());
    tether::ListOps::WithRoom(list, extra)->resize(n);
  }
  // Never shrinks, and never moves the object itself.
  void reserve(int64_t n) { tether::ListOps::Reserve(EnsureObject(), n); }
  void clear() {
    if (data_ != nullptr) GetListObj()->clear();
  }

  void Set(int64_t i, T value) { EnsureObject()->SetItem(i, Any(std::move(value))); }

  // The range must not be part of this list.
  template <typename IterType>
  void Assign(IterType first, IterType last) {
    if (TVM_FFI_PREDICT_FALSE(std::distance(first, last) < 0)) {
      tether::ThrowValueError("cannot construct a List of negative size");
    }
    tether::TakenCells old(EnsureObject(), 0);  // they die when the new ones are in their place
    Fill(first, last);
  }

  ListObj* GetListObj() const { return static_cast<ListObj*>(data_.get()); }

 private:
  // Fills an empty list.
  template <typename IterType>
  void Fill(IterType first, IterType last) {
    const int64_t n = static_cast<int64_t>(std::distance(first, last));
    if (TVM_FFI_PREDICT_FALSE(n < 0)) {
      tether::ThrowValueError("cannot construct a List of negative size");
    }
    tether::ListOps::Reserve(GetListObj(), n);
    tether::SeqOps::AppendRange(GetListObj(), first, last);
  }

  TVM_FFI_INLINE static T Read(const Any& cell) {
    return tether::SharedElementReader<T>::convert(cell);
  }

  TVM_FFI_INLINE const ListObj* NotNull() const {
    if (TVM_FFI_PREDICT_FALSE(data_ == nullptr)) {
      tether::ThrowIndexError("cannot index a null list");
    }
    return GetListObj();
  }
  TVM_FFI_INLINE void RequireNotNull(const char* text) const {
    if (TVM_FFI_PREDICT_FALSE(data_ == nullptr)) tether::ThrowRuntimeError(text);
  }
  TVM_FFI_INLINE ListObj* EnsureObject() {
    if (TVM_FFI_PREDICT_FALSE(data_ == nullptr)) {
      data_ = tether::ListOps::Empty(tether::kInitialSeqCapacity);
    }
    return GetListObj();
  }
  TVM_FFI_INLINE void PushCell(Any&& cell) {
    tether::SeqOps::Append(tether::ListOps::WithRoom(EnsureObject(), 1), std::move(cell));
  }
};

template <typename T>
inline constexpr bool use_default_type_traits_v<List<T>> = false;

template <typename T>
struct TypeTraits<List<T>> : public SeqTypeTraitsBase<TypeTraits<List<T>>, List<T>, T> {
  static constexpr int32_t kPrimaryTypeIndex = TypeIndex::kTVMFFIList;
  static constexpr int32_t kOtherTypeIndex = TypeIndex::kTVMFFIArray;
  static constexpr const char* kTypeName = "List";
  static constexpr const char* kStaticTypeKey = StaticTypeKey::kTVMFFIList;
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIList;
};

template <typename T, typename U>
inline constexpr bool type_subsumes_v<List<T>, List<U>> = type_subsumes_v<T, U>;

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_LIST_H_
