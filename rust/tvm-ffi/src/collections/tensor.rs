// SPDX-License-Identifier: Apache-2.0
//! Tensors.
use super::shape::Shape;
use crate::any::AnyView;
use crate::derive::{Object as DeriveObject, ObjectRef as DeriveObjectRef};
use crate::dtype::{AsDLDataType, DLDataTypeExt};
use crate::error::{Error, Result, RUNTIME_ERROR, TYPE_ERROR, VALUE_ERROR};
use crate::object::{
    is_instance_of, Object, ObjectArc, ObjectCore, ObjectCoreWithExtraItems, TypeIndex,
};
use crate::type_traits::AnyCompatible;
use std::alloc::Layout;
use std::ffi::c_void;
use std::mem::{align_of, size_of};
use tvm_ffi_sys::*;

/// The object behind a [`Tensor`].
///
/// ```
/// use tvm_ffi::*;
/// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
/// assert!(tensor.as_node::<collections::tensor::TensorObj>().is_some());
/// ```
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.Tensor"]
#[type_index(TypeIndex::kTVMFFITensor)]
pub struct TensorObj {
    object: Object,
    dltensor: DLTensor,
}

/// A tensor.
///
/// ```
/// use tvm_ffi::Tensor;
/// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
/// assert_eq!(tensor.shape(), &[2, 2]);
/// assert_eq!(tensor.data_as_slice::<f32>().unwrap()[3], 4.0);
/// ```
#[repr(C)]
#[derive(DeriveObjectRef, Clone)]
pub struct Tensor {
    data: ObjectArc<TensorObj>,
}

/// Where the data of a tensor comes from.
///
/// ```
/// use tvm_ffi::*;
/// let cpu = DLDevice::new(DLDeviceType::kDLCPU, 0);
/// let dtype = DLDataType::try_from_str("float32").unwrap();
/// let tensor = Tensor::from_nd_alloc(CPUNDAlloc {}, &[2, 2], dtype, cpu);
/// assert_eq!(tensor.data_ptr() as usize % CPUNDAlloc::MIN_ALIGN, 0);
/// ```
///
/// # Safety
/// `alloc_data` gives room for the prototype, aligned to at least `MIN_ALIGN`.
pub unsafe trait NDAllocator: 'static {
    /// Alignment of the data.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(CPUNDAlloc::MIN_ALIGN, 64);
    /// ```
    const MIN_ALIGN: usize;
    /// Makes room for a tensor like the prototype.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// static MADE: AtomicUsize = AtomicUsize::new(0);
    /// struct Counted(CPUNDAlloc);
    /// // SAFETY: the data are those of `CPUNDAlloc`.
    /// unsafe impl NDAllocator for Counted {
    ///     const MIN_ALIGN: usize = CPUNDAlloc::MIN_ALIGN;
    ///     unsafe fn alloc_data(&mut self, prototype: &tvm_ffi_sys::DLTensor) -> *mut std::ffi::c_void {
    ///         MADE.fetch_add(1, Ordering::Relaxed);
    ///         self.0.alloc_data(prototype)
    ///     }
    ///     unsafe fn free_data(&mut self, tensor: &tvm_ffi_sys::DLTensor) {
    ///         MADE.fetch_sub(1, Ordering::Relaxed);
    ///         self.0.free_data(tensor)
    ///     }
    /// }
    /// let dtype = DLDataType::try_from_str("float32").unwrap();
    /// let cpu = DLDevice::new(DLDeviceType::kDLCPU, 0);
    /// let tensor = Tensor::from_nd_alloc(Counted(CPUNDAlloc {}), &[2, 2], dtype, cpu);
    /// assert_eq!((tensor.numel(), MADE.load(Ordering::Relaxed)), (4, 1));
    /// ```
    ///
    /// # Safety
    /// The prototype has a valid shape.
    unsafe fn alloc_data(&mut self, prototype: &DLTensor) -> *mut c_void;
    /// Frees the data of a tensor.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// static MADE: AtomicUsize = AtomicUsize::new(0);
    /// struct Counted(CPUNDAlloc);
    /// // SAFETY: the data are those of `CPUNDAlloc`.
    /// unsafe impl NDAllocator for Counted {
    ///     const MIN_ALIGN: usize = CPUNDAlloc::MIN_ALIGN;
    ///     unsafe fn alloc_data(&mut self, prototype: &tvm_ffi_sys::DLTensor) -> *mut std::ffi::c_void {
    ///         MADE.fetch_add(1, Ordering::Relaxed);
    ///         self.0.alloc_data(prototype)
    ///     }
    ///     unsafe fn free_data(&mut self, tensor: &tvm_ffi_sys::DLTensor) {
    ///         MADE.fetch_sub(1, Ordering::Relaxed);
    ///         self.0.free_data(tensor)
    ///     }
    /// }
    /// let dtype = DLDataType::try_from_str("float32").unwrap();
    /// let cpu = DLDevice::new(DLDeviceType::kDLCPU, 0);
    /// drop(Tensor::from_nd_alloc(Counted(CPUNDAlloc {}), &[2, 2], dtype, cpu));
    /// assert_eq!(MADE.load(Ordering::Relaxed), 0);
    /// ```
    ///
    /// # Safety
    /// The data came from this allocator, and is freed once.
    unsafe fn free_data(&mut self, tensor: &DLTensor);
}

/// Sizes of a `DLTensor`.
///
/// ```
/// use tvm_ffi::*;
/// use tvm_ffi::collections::tensor::DLTensorExt;
/// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
/// // SAFETY: the tensor is alive.
/// let raw = unsafe { &*TensorView::from(&tensor).as_raw() };
/// assert_eq!((raw.numel(), raw.item_size()), (3, 4));
/// ```
pub trait DLTensorExt {
    /// Number of elements.
    ///
    /// ```
    /// use tvm_ffi::{collections::tensor::DLTensorExt, Tensor, TensorView};
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// // SAFETY: the tensor is alive.
    /// assert_eq!(unsafe { &*TensorView::from(&tensor).as_raw() }.numel(), 3);
    /// ```
    fn numel(&self) -> usize;
    /// Bytes of one element.
    ///
    /// ```
    /// use tvm_ffi::{collections::tensor::DLTensorExt, Tensor, TensorView};
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// // SAFETY: the tensor is alive.
    /// assert_eq!(unsafe { &*TensorView::from(&tensor).as_raw() }.item_size(), 4);
    /// ```
    fn item_size(&self) -> usize;
}

/// `ndim` integers, none for null.
unsafe fn extents<'a>(data: *const i64, ndim: i32) -> &'a [i64] {
    if data.is_null() || ndim <= 0 {
        return &[];
    }
    std::slice::from_raw_parts(data, ndim as usize)
}

/// Number of elements; None if there cannot be so many.
fn checked_numel(tensor: &DLTensor) -> Option<usize> {
    // SAFETY: the producer of the tensor promises `ndim` extents.
    let extents = unsafe { extents(tensor.shape, tensor.ndim) };
    // In any order: one extent of zero makes it zero.
    if extents.contains(&0) {
        return Some(0);
    }
    extents.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent.try_into().ok()?))
}

/// The device of a tensor of other code.
///
/// # Panics
/// If its kind is one that this crate does not know.
fn device_of(tensor: &DLTensor) -> DLDevice {
    let kind = device_kind(tensor);
    match DLDeviceType::from_raw(kind) {
        Some(known) => DLDevice::new(known, tensor.device.device_id),
        None => panic!("the tensor is on a device of the unknown kind {kind}"),
    }
}

fn device_kind(tensor: &DLTensor) -> u32 {
    // SAFETY: the field is a number until it has been found to be a variant.
    unsafe { *(&raw const tensor.device.device_type as *const u32) }
}

impl DLTensorExt for DLTensor {
    fn numel(&self) -> usize {
        // SAFETY: the producer of the tensor promises `ndim` extents.
        unsafe { extents(self.shape, self.ndim) }.iter().map(|&extent| extent as usize).product()
    }
    fn item_size(&self) -> usize {
        (self.dtype.bits as usize * self.dtype.lanes as usize).div_ceil(8)
    }
}

/// Memory of the CPU, aligned to 64 bytes.
///
/// ```
/// use tvm_ffi::*;
/// let cpu = DLDevice::new(DLDeviceType::kDLCPU, 0);
/// let dtype = DLDataType::try_from_str("int8").unwrap();
/// assert_eq!(Tensor::from_nd_alloc(CPUNDAlloc {}, &[5], dtype, cpu).numel(), 5);
/// ```
pub struct CPUNDAlloc {}

impl CPUNDAlloc {
    fn layout(tensor: &DLTensor) -> Layout {
        // Asking for nothing is undefined, so empty tensors get one byte.
        let count = checked_numel(tensor);
        let bytes = count.and_then(|count| count.checked_mul(tensor.item_size()));
        bytes
            .map(|size| size.max(1))
            .and_then(|size| Layout::from_size_align(size, Self::MIN_ALIGN).ok())
            .expect("the tensor is too large")
    }
}

// SAFETY: the layout is that of the tensor, both times.
unsafe impl NDAllocator for CPUNDAlloc {
    const MIN_ALIGN: usize = 64;
    unsafe fn alloc_data(&mut self, prototype: &DLTensor) -> *mut c_void {
        let layout = Self::layout(prototype);
        let data = std::alloc::alloc(layout);
        if data.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        data as *mut c_void
    }
    unsafe fn free_data(&mut self, tensor: &DLTensor) {
        std::alloc::dealloc(tensor.data as *mut u8, Self::layout(tensor))
    }
}

/// A tensor with its allocator, followed by shape and strides.
#[repr(C)]
struct AllocatedTensorObj<A: NDAllocator> {
    tensor: TensorObj,
    alloc: A,
    // Aligned, so that the integers that follow are too.
    _align: [i64; 0],
}

// SAFETY: starts with a TensorObj, and is of that type for everybody else.
unsafe impl<A: NDAllocator> ObjectCore for AllocatedTensorObj<A> {
    const TYPE_KEY: &'static str = TensorObj::TYPE_KEY;
    const TYPE_DEPTH: i32 = TensorObj::TYPE_DEPTH;
    fn type_index() -> i32 {
        TensorObj::type_index()
    }
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject {
        TensorObj::object_header_mut(&mut this.tensor)
    }
}

// SAFETY: nobody changes the rank of a tensor.
unsafe impl<A: NDAllocator> ObjectCoreWithExtraItems for AllocatedTensorObj<A> {
    type ExtraItem = i64;
    fn extra_items_count(this: &Self) -> usize {
        2 * this.tensor.dltensor.ndim as usize
    }
}

impl<A: NDAllocator> Drop for AllocatedTensorObj<A> {
    fn drop(&mut self) {
        if !self.tensor.dltensor.data.is_null() {
            // SAFETY: the data came from this allocator.
            unsafe { self.alloc.free_data(&self.tensor.dltensor) }
        }
    }
}

fn is_row_major(shape: &[i64], strides: &[i64]) -> bool {
    let mut expected = 1i64;
    shape.iter().zip(strides).rev().all(|(&extent, &stride)| {
        let fits = stride == expected;
        expected = expected.wrapping_mul(extent);
        fits
    })
}

impl Tensor {
    /// Address of the data.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// assert!(!tensor.data_ptr().is_null());
    /// ```
    pub fn data_ptr(&self) -> *const c_void {
        self.data.dltensor.data
    }
    /// Address of the data.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let mut tensor = Tensor::from_slice(&[1f32], &[1]).unwrap();
    /// assert_eq!(tensor.data_ptr_mut() as *const _, tensor.data_ptr());
    /// ```
    pub fn data_ptr_mut(&mut self) -> *mut c_void {
        self.data.dltensor.data
    }
    /// Extents.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// assert_eq!(tensor.shape(), [1, 3]);
    /// ```
    pub fn shape(&self) -> &[i64] {
        // SAFETY: the object has `ndim` extents.
        unsafe { extents(self.data.dltensor.shape, self.data.dltensor.ndim) }
    }
    /// Strides, counted in elements.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// assert_eq!(tensor.strides(), [3, 1]);
    /// ```
    pub fn strides(&self) -> &[i64] {
        // SAFETY: the object has `ndim` strides.
        unsafe { extents(self.data.dltensor.strides, self.data.dltensor.ndim) }
    }
    /// Number of dimensions.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// assert_eq!(tensor.ndim(), 2);
    /// ```
    pub fn ndim(&self) -> usize {
        self.data.dltensor.ndim as usize
    }
    /// Number of elements.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// assert_eq!(tensor.numel(), 3);
    /// ```
    pub fn numel(&self) -> usize {
        self.data.dltensor.numel()
    }
    /// Type of the elements.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// assert_eq!(DLDataTypeExt::to_string(&tensor.dtype()), "float32");
    /// ```
    pub fn dtype(&self) -> DLDataType {
        self.data.dltensor.dtype
    }
    /// Where the data is.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// assert_eq!(tensor.device().device_type, DLDeviceType::kDLCPU);
    /// ```
    ///
    /// # Panics
    /// If the device is of a kind that this crate does not know.
    pub fn device(&self) -> DLDevice {
        device_of(&self.data.dltensor)
    }
    /// Whether the elements follow each other in row-major order.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// assert!(tensor.is_contiguous());
    /// ```
    pub fn is_contiguous(&self) -> bool {
        is_row_major(self.shape(), self.strides())
    }

    /// The elements of a contiguous tensor on the CPU, if they can be a slice of `T`.
    fn elements<T: AsDLDataType>(&self) -> Result<(*mut T, usize)> {
        let tensor = &self.data.dltensor;
        if device_kind(tensor) != DLDeviceType::kDLCPU as u32 {
            crate::bail!(RUNTIME_ERROR, "Tensor is not on CPU");
        }
        let Some(count) = checked_numel(tensor) else {
            crate::bail!(VALUE_ERROR, "Tensor cannot have the shape {:?}", self.shape());
        };
        if size_of::<T>() != tensor.item_size() {
            let (have, want) = (tensor.item_size(), size_of::<T>());
            crate::bail!(TYPE_ERROR, "Elements of {} bytes cannot be read as {} bytes", have, want);
        }
        if count == 0 {
            return Ok((std::ptr::NonNull::dangling().as_ptr(), 0));
        }
        if !self.is_contiguous() {
            crate::bail!(RUNTIME_ERROR, "Tensor is not contiguous");
        }
        if tensor.data.is_null() {
            crate::bail!(RUNTIME_ERROR, "Tensor has no data");
        }
        let first = tensor.data.wrapping_byte_add(tensor.byte_offset as usize) as *mut T;
        if !first.is_aligned() {
            crate::bail!(RUNTIME_ERROR, "Tensor is not aligned to {} bytes", align_of::<T>());
        }
        Ok((first, count))
    }

    /// The elements of a contiguous tensor on the CPU.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// assert_eq!(tensor.data_as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    /// assert!(tensor.data_as_slice::<f64>().is_err());
    /// ```
    pub fn data_as_slice<T: AsDLDataType>(&self) -> Result<&[T]> {
        let (have, want) = (self.dtype(), T::DL_DATA_TYPE);
        if have != want {
            let (have, want) = (DLDataTypeExt::to_string(&have), DLDataTypeExt::to_string(&want));
            crate::bail!(TYPE_ERROR, "Data type mismatch {} vs {}", have, want);
        }
        let (first, count) = self.elements()?;
        // SAFETY: the tensor has that many elements of that type.
        Ok(unsafe { std::slice::from_raw_parts(first, count) })
    }

    /// The elements, to be changed. Nobody may use the tensor in another way meanwhile; the receiver is
    /// shared, as in the other languages.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// tensor.data_as_slice_mut::<f32>().unwrap()[0] = 5.0;
    /// assert_eq!(tensor.data_as_slice::<f32>().unwrap()[0], 5.0);
    /// ```
    #[allow(clippy::mut_from_ref)]
    pub fn data_as_slice_mut<T: AsDLDataType>(&self) -> Result<&mut [T]> {
        let (have, want) = (self.dtype(), T::DL_DATA_TYPE);
        if have != want {
            let (have, want) = (DLDataTypeExt::to_string(&have), DLDataTypeExt::to_string(&want));
            crate::bail!(TYPE_ERROR, "Data type mismatch: expected {}, got {}", want, have);
        }
        let (first, count) = self.elements()?;
        // SAFETY: as above.
        Ok(unsafe { std::slice::from_raw_parts_mut(first, count) })
    }

    /// A tensor with data from an allocator, in row-major order and not initialised.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let cpu = DLDevice::new(DLDeviceType::kDLCPU, 0);
    /// let dtype = DLDataType::try_from_str("int64").unwrap();
    /// let tensor = Tensor::from_nd_alloc(CPUNDAlloc {}, &[2], dtype, cpu);
    /// tensor.data_as_slice_mut::<i64>().unwrap().fill(7);
    /// ```
    pub fn from_nd_alloc<A: NDAllocator>(
        alloc: A,
        shape: &[i64],
        dtype: DLDataType,
        device: DLDevice,
    ) -> Self {
        let ndim = shape.len();
        let dltensor = DLTensor {
            data: std::ptr::null_mut(),
            device,
            ndim: ndim as i32,
            dtype,
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        let mut made = ObjectArc::new_with_extra_items(AllocatedTensorObj {
            tensor: TensorObj { object: Object::new(), dltensor },
            alloc,
            _align: [],
        });
        // SAFETY: the block has room for shape and strides behind the object.
        unsafe {
            let object = ObjectArc::as_raw_mut(&mut made);
            let items = object.add(1) as *mut i64;
            std::ptr::copy_nonoverlapping(shape.as_ptr(), items, ndim);
            items.add(ndim).write_bytes(0, ndim);
            let strides = std::slice::from_raw_parts_mut(items.add(ndim), ndim);
            Shape::fill_strides_from_shape(shape, strides);
            let tensor = &mut (*object).tensor.dltensor;
            tensor.shape = items;
            tensor.strides = items.add(ndim);
            tensor.data = (*object).alloc.alloc_data(tensor);
            Self { data: ObjectArc::from_raw(ObjectArc::into_raw(made) as *const TensorObj) }
        }
    }

    /// A tensor on the CPU with a copy of the elements.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1u8, 2, 3, 4], &[2, 2]).unwrap();
    /// assert_eq!(tensor.shape(), [2, 2]);
    /// assert!(Tensor::from_slice(&[1u8], &[2]).is_err());
    /// ```
    pub fn from_slice<T: AsDLDataType>(slice: &[T], shape: &[i64]) -> Result<Self> {
        let mut count: i64 = 1;
        for &extent in shape {
            match count.checked_mul(extent).filter(|_| extent >= 0) {
                Some(product) => count = product,
                None => crate::bail!(VALUE_ERROR, "Slice length mismatch"),
            }
        }
        if count as usize != slice.len() {
            crate::bail!(VALUE_ERROR, "Slice length mismatch");
        }
        let device = DLDevice::new(DLDeviceType::kDLCPU, 0);
        let tensor = Self::from_nd_alloc(CPUNDAlloc {}, shape, T::DL_DATA_TYPE, device);
        tensor.data_as_slice_mut::<T>()?.copy_from_slice(slice);
        Ok(tensor)
    }

    /// A tensor from the allocator of the environment, which a framework has set.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let cpu = DLDevice::new(DLDeviceType::kDLCPU, 0);
    /// let dtype = DLDataType::try_from_str("int64").unwrap();
    /// // No framework has set an allocator here.
    /// assert!(Tensor::from_env_alloc(&[2], dtype, cpu).is_err());
    /// ```
    pub fn from_env_alloc(shape: &[i64], dtype: DLDataType, device: DLDevice) -> Result<Self> {
        let mut extents = shape.to_vec();
        let mut prototype = DLTensor {
            data: std::ptr::null_mut(),
            device,
            ndim: shape.len() as i32,
            dtype,
            shape: extents.as_mut_ptr(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        let mut out = std::ptr::null_mut();
        // SAFETY: the prototype is valid during the call; the result is owned.
        unsafe {
            let code = TVMFFIEnvTensorAlloc(&mut prototype, &mut out);
            crate::check_safe_call!(code)?;
            Ok(Self { data: ObjectArc::from_raw(out as *const TensorObj) })
        }
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor{:?}", self.shape())
    }
}

/// A tensor that somebody else owns: an argument of a kernel. Valid during the call.
///
/// ```
/// use tvm_ffi::*;
/// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
/// let view = TensorView::from(&tensor);
/// let rank = Function::from_typed(|x: TensorView| -> Result<i64> { Ok(x.ndim() as i64) });
/// assert_eq!(rank.call_tuple((&tensor,)).unwrap().try_as::<i64>(), Some(2));
/// assert_eq!(view.numel(), 3);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TensorView {
    tensor: *const DLTensor,
}

impl TensorView {
    /// A view of a tensor.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// let view = TensorView::from(&tensor);
    /// // SAFETY: the tensor outlives the copy.
    /// let copy = unsafe { TensorView::from_raw(view.as_raw()) };
    /// assert_eq!(copy.shape(), [1, 3]);
    /// ```
    ///
    /// # Safety
    /// The tensor outlives the view.
    ///
    /// # Panics
    /// For null.
    pub unsafe fn from_raw(tensor: *const DLTensor) -> Self {
        assert!(!tensor.is_null(), "TensorView of a null DLTensor");
        Self { tensor }
    }
    /// Address of the tensor.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// let view = TensorView::from(&tensor);
    /// assert!(!view.as_raw().is_null());
    /// ```
    pub fn as_raw(&self) -> *const DLTensor {
        self.tensor
    }
    fn get(&self) -> &DLTensor {
        // SAFETY: whoever made the view promised that the tensor outlives it.
        unsafe { &*self.tensor }
    }
    /// Address of the data.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// let view = TensorView::from(&tensor);
    /// assert_eq!(view.data_ptr() as *const _, tensor.data_ptr());
    /// ```
    pub fn data_ptr(&self) -> *mut c_void {
        self.get().data
    }
    /// Where the data is.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// let view = TensorView::from(&tensor);
    /// assert_eq!(view.device(), tensor.device());
    /// ```
    ///
    /// # Panics
    /// If the device is of a kind that this crate does not know.
    pub fn device(&self) -> DLDevice {
        device_of(self.get())
    }
    /// Type of the elements.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// let view = TensorView::from(&tensor);
    /// assert_eq!(view.dtype(), tensor.dtype());
    /// ```
    pub fn dtype(&self) -> DLDataType {
        self.get().dtype
    }
    /// Number of dimensions.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// let view = TensorView::from(&tensor);
    /// assert_eq!(view.ndim(), 2);
    /// ```
    pub fn ndim(&self) -> usize {
        self.get().ndim as usize
    }
    /// Extents.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// let view = TensorView::from(&tensor);
    /// assert_eq!(view.shape(), [1, 3]);
    /// ```
    pub fn shape(&self) -> &[i64] {
        // SAFETY: the tensor has `ndim` extents.
        unsafe { extents(self.get().shape, self.get().ndim) }
    }
    /// Number of elements.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// let view = TensorView::from(&tensor);
    /// assert_eq!(view.numel(), 3);
    /// ```
    pub fn numel(&self) -> usize {
        self.get().numel()
    }
    /// Strides, counted in elements.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// let view = TensorView::from(&tensor);
    /// assert_eq!(view.strides(), [3, 1]);
    /// ```
    ///
    /// # Panics
    /// If the tensor has none.
    pub fn strides(&self) -> &[i64] {
        let tensor = self.get();
        assert!(
            tensor.ndim == 0 || !tensor.strides.is_null(),
            "TensorView::strides of a DLTensor with null strides"
        );
        // SAFETY: the tensor has `ndim` strides.
        unsafe { extents(tensor.strides, tensor.ndim) }
    }
    /// Whether the elements follow each other in row-major order.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[1, 3]).unwrap();
    /// let view = TensorView::from(&tensor);
    /// assert!(view.is_contiguous());
    /// ```
    pub fn is_contiguous(&self) -> bool {
        if self.get().strides.is_null() || self.numel() == 0 {
            return true;
        }
        let mut expected = 1i64;
        self.shape().iter().zip(self.strides()).rev().all(|(&extent, &stride)| {
            let fits = extent == 1 || stride == expected;
            expected = expected.wrapping_mul(extent);
            fits
        })
    }
}

impl From<&Tensor> for TensorView {
    fn from(tensor: &Tensor) -> Self {
        Self { tensor: &tensor.data.dltensor }
    }
}

const DLTENSOR_PTR: i32 = TypeIndex::kTVMFFIDLTensorPtr as i32;

// SAFETY: stored as a borrowed pointer.
unsafe impl AnyCompatible for TensorView {
    unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny) {
        *data = TVMFFIAny::new();
        data.type_index = DLTENSOR_PTR;
        data.data_union.v_ptr = src.tensor as *mut c_void;
    }
    unsafe fn move_to_any(_: Self, _: &mut TVMFFIAny) {
        panic!(
            "DLTensor* cannot be held in Any as it does not retain ownership, use Tensor instead"
        )
    }
    unsafe fn check_any_strict(data: &TVMFFIAny) -> bool {
        data.type_index == DLTENSOR_PTR
    }
    unsafe fn copy_from_any_view_after_check(data: &TVMFFIAny) -> Self {
        Self::from_raw(data.data_union.v_ptr as *const DLTensor)
    }
    unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self {
        Self::copy_from_any_view_after_check(data)
    }
    unsafe fn try_cast_from_any_view(data: &TVMFFIAny) -> Result<Self, ()> {
        if data.type_index == DLTENSOR_PTR {
            return Ok(Self::copy_from_any_view_after_check(data));
        }
        let begin = TypeIndex::kTVMFFIStaticObjectBegin as i32;
        if data.type_index >= begin && is_instance_of::<TensorObj>(data.type_index) {
            let object = data.data_union.v_obj as *const TensorObj;
            return Ok(Self { tensor: &raw const (*object).dltensor });
        }
        Err(())
    }
    fn type_str() -> std::string::String {
        "DLTensor*".to_string()
    }
}

impl<'a> TryFrom<AnyView<'a>> for TensorView {
    type Error = Error;
    fn try_from(view: AnyView<'a>) -> Result<Self> {
        crate::any::convert_view(view.raw())
    }
}
