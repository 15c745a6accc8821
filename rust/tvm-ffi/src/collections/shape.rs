// SPDX-License-Identifier: Apache-2.0
//! Shapes: arrays of integers.
use crate::derive::{Object as DeriveObject, ObjectRef as DeriveObjectRef};
use crate::object::{Object, ObjectArc, ObjectCoreWithExtraItems, TypeIndex};
use std::cmp::Ordering;
use tvm_ffi_sys::TVMFFIShapeCell;

/// The object behind a [`Shape`].
///
/// ```
/// use tvm_ffi::Shape;
/// assert!(tvm_ffi::ObjectRefCore::as_node::<tvm_ffi::collections::shape::ShapeObj>(&Shape::new()).is_some());
/// ```
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.Shape"]
#[type_index(TypeIndex::kTVMFFIShape)]
pub struct ShapeObj {
    object: Object,
    data: TVMFFIShapeCell,
}

// SAFETY: the size never changes.
unsafe impl ObjectCoreWithExtraItems for ShapeObj {
    type ExtraItem = i64;
    fn extra_items_count(this: &Self) -> usize {
        this.data.size
    }
}

/// The extents of a tensor.
///
/// ```
/// let shape = tvm_ffi::Shape::from([2i64, 3]);
/// assert_eq!(shape.as_slice(), &[2, 3]);
/// ```
#[repr(C)]
#[derive(DeriveObjectRef, Clone)]
pub struct Shape {
    data: ObjectArc<ShapeObj>,
}

impl Shape {
    /// No extents.
    ///
    /// ```
    /// use tvm_ffi::Shape;
    /// assert!(Shape::new().is_empty());
    /// ```
    pub fn new() -> Self {
        Self::from([])
    }

    /// The extents.
    ///
    /// ```
    /// use tvm_ffi::Shape;
    /// assert_eq!(Shape::from([2i64, 3]).as_slice(), [2, 3]);
    /// ```
    pub fn as_slice(&self) -> &[i64] {
        let cell = &self.data.data;
        if cell.data.is_null() {
            return &[];
        }
        // SAFETY: the object has `size` extents.
        unsafe { std::slice::from_raw_parts(cell.data, cell.size) }
    }

    /// The strides of a tensor in row-major order.
    ///
    /// ```
    /// use tvm_ffi::Shape;
    /// let mut strides = [0; 2];
    /// Shape::fill_strides_from_shape([2, 3], &mut strides);
    /// assert_eq!(strides, [3, 1]);
    /// ```
    pub fn fill_strides_from_shape<T: AsRef<[i64]>>(shape: T, strides: &mut [i64]) {
        let mut stride = 1i64;
        for (extent, out) in shape.as_ref().iter().zip(strides.iter_mut()).rev() {
            *out = stride;
            // A shape that overflows has no memory behind it, so its strides do not matter.
            stride = i64::wrapping_mul(stride, *extent);
        }
    }
}

impl Default for Shape {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: AsRef<[i64]>> From<T> for Shape {
    #[inline]
    fn from(value: T) -> Self {
        let extents = value.as_ref();
        let cell = TVMFFIShapeCell { data: std::ptr::null(), size: extents.len() };
        let mut data =
            ObjectArc::new_with_extra_items(ShapeObj { object: Object::new(), data: cell });
        // SAFETY: the block has room for the extents.
        unsafe {
            let object = ObjectArc::as_raw_mut(&mut data);
            let items = object.add(1) as *mut i64;
            std::ptr::copy_nonoverlapping(extents.as_ptr(), items, extents.len());
            (*object).data.data = items;
        }
        Self { data }
    }
}

impl std::ops::Deref for Shape {
    type Target = [i64];
    fn deref(&self) -> &[i64] {
        self.as_slice()
    }
}
impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}
impl Eq for Shape {}
impl PartialOrd for Shape {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Shape {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}
impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shape{:?}", self.as_slice())
    }
}
