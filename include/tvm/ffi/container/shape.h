// SPDX-License-Identifier: Apache-2.0
// Shape: an immutable tuple of int64; ShapeView: a view of one, or of any array of int64.
//
//   Shape s = {2, 3, 4};
//   ShapeView v = s;                        // valid while s lives
//   v.Product();                            // 24
//   Shape strides = Shape::StridesFromShape(s);   // {12, 4, 1}
#ifndef TVM_FFI_CONTAINER_SHAPE_H_
#define TVM_FFI_CONTAINER_SHAPE_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/type_traits.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {

namespace tether {

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowShapeIndex(size_t index,
                                                                             size_t size) {
  TVM_FFI_THROW(IndexError) << "indexing " << index << " on a Shape of size " << size;
}

// Wraps around instead of overflowing: sizes come from outside.
inline int64_t ExtentProduct(const int64_t* data, size_t size) {
  uint64_t product = 1;
  for (size_t i = 0; i < size; ++i) product *= static_cast<uint64_t>(data[i]);
  return static_cast<int64_t>(product);
}

}  // namespace tether

class ShapeView {
 public:
  ShapeView() : cell_{nullptr, 0} {}
  ShapeView(const int64_t* data, size_t size) : cell_{data, size} {}
  // A view of the list, which must outlive it.
  ShapeView(const std::initializer_list<int64_t>& other) {  // NOLINT(*)
    cell_.data = other.begin();
    cell_.size = other.size();
  }
  ShapeView(const ShapeView& other) = default;
  ShapeView& operator=(const ShapeView& other) = default;
  ShapeView(ShapeView&& other) = default;
  ShapeView& operator=(ShapeView&& other) = default;

  const int64_t* data() const { return cell_.data; }
  size_t size() const { return cell_.size; }
  bool empty() const { return cell_.size == 0; }
  const int64_t* begin() const { return cell_.data; }
  const int64_t* end() const { return cell_.data + cell_.size; }
  int64_t operator[](size_t idx) const { return cell_.data[idx]; }
  int64_t at(size_t idx) const {
    if (TVM_FFI_PREDICT_FALSE(idx >= cell_.size)) tether::ThrowShapeIndex(idx, cell_.size);
    return cell_.data[idx];
  }
  int64_t front() const { return at(0); }
  int64_t back() const { return at(cell_.size - 1); }
  int64_t Product() const { return tether::ExtentProduct(cell_.data, cell_.size); }

 private:
  TVMFFIShapeCell cell_;
};

class ShapeObj : public Object, public TVMFFIShapeCell {
 public:
  using index_type = int64_t;
  static constexpr uint32_t _type_index = TypeIndex::kTVMFFIShape;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC(StaticTypeKey::kTVMFFIShape, ShapeObj, Object);

  ShapeObj() noexcept : TVMFFIShapeCell{nullptr, 0} {}
  int64_t Product() const { return tether::ExtentProduct(data, size); }
};

static_assert(sizeof(void*) != 8 || sizeof(ShapeObj) == 40, "clients inline this layout");

namespace detail {

// A shape that took over a vector.
class ShapeObjStdImpl : public ShapeObj {
 public:
  explicit ShapeObjStdImpl(std::vector<int64_t> other) : data_container(std::move(other)) {
    this->data = data_container.data();
    this->size = data_container.size();
  }
  std::vector<int64_t> data_container;
};

// A shape of `length` extents that the caller writes through *mutable_data.
inline ObjectPtr<ShapeObj> MakeEmptyShape(size_t length, int64_t** mutable_data) {
  ObjectPtr<ShapeObj> shape = make_inplace_array_object<ShapeObj, int64_t>(length);
  auto* extents =
      reinterpret_cast<int64_t*>(reinterpret_cast<char*>(shape.get()) + sizeof(ShapeObj));
  shape->data = extents;
  shape->size = length;
  *mutable_data = extents;
  return shape;
}

template <typename IterType>
inline ObjectPtr<ShapeObj> MakeInplaceShape(IterType begin, IterType end) {
  int64_t* extents;
  ObjectPtr<ShapeObj> shape =
      MakeEmptyShape(static_cast<size_t>(std::distance(begin, end)), &extents);
  std::copy(begin, end, extents);
  return shape;
}

// Row-major compact strides, innermost 1.
inline void FillStridesFromShape(ShapeView shape, int64_t* out_strides) {
  uint64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    out_strides[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(shape[i]);
  }
}

inline ObjectPtr<ShapeObj> MakeStridesFromShape(ShapeView shape) {
  int64_t* strides;
  ObjectPtr<ShapeObj> result = MakeEmptyShape(shape.size(), &strides);
  FillStridesFromShape(shape, strides);
  return result;
}

}  // namespace detail

class Shape : public ObjectRef {
 public:
  Shape() : Shape(detail::MakeInplaceShape<const int64_t*>(nullptr, nullptr)) {}
  template <typename IterType, typename = decltype(*std::declval<IterType&>())>
  Shape(IterType begin, IterType end) : Shape(detail::MakeInplaceShape(begin, end)) {}
  Shape(Array<int64_t> shape)  // NOLINT(*)
      : Shape(detail::MakeInplaceShape(shape.begin(), shape.end())) {}
  Shape(std::initializer_list<int64_t> shape)  // NOLINT(*)
      : Shape(detail::MakeInplaceShape(shape.begin(), shape.end())) {}
  Shape(std::vector<int64_t> other)  // NOLINT(*)
      : Shape(ObjectPtr<ShapeObj>(make_object<detail::ShapeObjStdImpl>(std::move(other)))) {}
  Shape(ShapeView other)  // NOLINT(*)
      : Shape(detail::MakeInplaceShape(other.begin(), other.end())) {}

  static Shape StridesFromShape(ShapeView shape) {
    return Shape(detail::MakeStridesFromShape(shape));
  }

  operator ShapeView() const { return View(); }  // NOLINT(*)
  const int64_t* data() const { return get()->data; }
  size_t size() const { return get()->size; }
  bool empty() const { return size() == 0; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size(); }
  int64_t operator[](size_t idx) const { return data()[idx]; }
  int64_t at(size_t idx) const { return View().at(idx); }
  int64_t front() const { return View().front(); }
  int64_t back() const { return View().back(); }
  int64_t Product() const { return get()->Product(); }

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Shape, ObjectRef, ShapeObj);

 private:
  explicit Shape(ObjectPtr<ShapeObj> ptr) : ObjectRef(std::move(ptr)) {}
  ShapeView View() const { return ShapeView(data(), size()); }
};

inline std::ostream& operator<<(std::ostream& os, const Shape& shape) {
  os << '[';
  for (size_t i = 0; i < shape.size(); ++i) os << (i == 0 ? "" : ", ") << shape[i];
  return os << ']';
}

// A sequence of integers converts by copying.
template <>
struct TypeTraits<Shape> : public ObjectRefWithFallbackTraitsBase<Shape, Array<int64_t>> {
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIShape;
  static Shape ConvertFallbackValue(const Array<int64_t>& src) { return Shape(src); }
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_SHAPE_H_
