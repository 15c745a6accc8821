// SPDX-License-Identifier: Apache-2.0
//! Arrays that are not changed after they were made.
use super::{container_handle, seq_elements, short_type_name};
use crate::any::{Any, AnyView, TryFromTemp};
use crate::derive::Object as DeriveObject;
use crate::error::{Error, Result, INDEX_ERROR, TYPE_ERROR};
use crate::object::{
    ref_any, Object, ObjectArc, ObjectCoreWithExtraItems, ObjectRefCore, TypeIndex,
};
use crate::type_traits::{AnyCompatible, ContainerElement};
use std::ffi::c_void;
use std::marker::PhantomData;
use tvm_ffi_sys::*;

/// The object behind an [`Array`].
///
/// ```
/// use tvm_ffi::Array;
/// let array = Array::new(vec![1i64]);
/// assert_eq!(tvm_ffi::ObjectRefCore::as_node::<tvm_ffi::collections::array::ArrayObj>(&array).unwrap().size, 1);
/// ```
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.Array"]
#[type_index(TypeIndex::kTVMFFIArray)]
pub struct ArrayObj {
    /// Header.
    pub object: Object,
    /// The elements.
    pub data: *mut c_void,
    /// Number of elements.
    pub size: i64,
    /// Number of elements that there is room for.
    pub capacity: i64,
    /// Frees `data`; None where the elements follow the object.
    pub data_deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: C++ may shrink an array in place, but never changes its capacity.
unsafe impl ObjectCoreWithExtraItems for ArrayObj {
    type ExtraItem = TVMFFIAny;
    fn extra_items_count(this: &Self) -> usize {
        this.capacity as usize
    }
}

impl Drop for ArrayObj {
    #[inline]
    fn drop(&mut self) {
        let data = self.data as *mut TVMFFIAny;
        // SAFETY: the array owns `size` values, and the buffer if there is a deleter.
        unsafe {
            for i in 0..self.size {
                drop(Any::from_raw_ffi_any(data.add(i as usize).read()));
            }
            if let Some(deleter) = self.data_deleter {
                deleter(self.data);
            }
        }
    }
}

#[cold]
fn out_of_bound() -> Error {
    Error::new(INDEX_ERROR, "Array get index out of bound", "")
}

#[cold]
fn not_an_element<T: ContainerElement>(index: usize) -> Error {
    let message = format!("Failed to cast element at {index} to {}", T::element_type_str());
    Error::new(TYPE_ERROR, &message, "")
}

/// An array of values of one type.
///
/// ```
/// use tvm_ffi::Array;
/// let array = Array::new(vec![1i64, 2, 3]);
/// assert_eq!(array.len(), 3);
/// assert_eq!(array.get(1).unwrap(), 2);
/// assert_eq!(array.iter().sum::<i64>(), 6);
/// ```
#[repr(C)]
pub struct Array<T: ContainerElement + Clone> {
    data: ObjectArc<ArrayObj>,
    _phantom: PhantomData<T>,
}

container_handle!(
    Array<T>, ArrayObj, [T: ContainerElement + Clone], [T: ContainerElement + Clone], "Array<{}>"
);

impl<T: ContainerElement + Clone> Array<T> {
    /// An array of the items.
    ///
    /// ```
    /// use tvm_ffi::Array;
    /// assert_eq!(Array::new(vec![1i64, 2]).len(), 2);
    /// ```
    pub fn new(mut items: Vec<T>) -> Self {
        let len = items.len();
        let mut data = ObjectArc::new_with_extra_items(ArrayObj {
            object: Object::new(),
            data: std::ptr::null_mut(),
            size: 0,
            capacity: len as i64,
            data_deleter: None,
        });
        /// Where a conversion panics: the array keeps the elements it has, the other items are dropped.
        struct Moving<T> {
            object: *mut ArrayObj,
            items: *mut T,
            moved: usize,
            len: usize,
        }
        impl<T> Drop for Moving<T> {
            #[cold]
            fn drop(&mut self) {
                // SAFETY: the array and the items outlive the guard. The item that was being converted is
                // gone: the conversion had it.
                unsafe {
                    (*self.object).size = self.moved as i64;
                    for i in self.moved + 1..self.len {
                        self.items.add(i).drop_in_place();
                    }
                }
            }
        }
        // SAFETY: the block has room for the items. Nobody else drops them, because the vector is told that
        // it has none.
        unsafe {
            let object = ObjectArc::as_raw_mut(&mut data);
            let cells = object.add(1) as *mut TVMFFIAny;
            (*object).data = cells as *mut c_void;
            items.set_len(0);
            let mut moving = Moving { object, items: items.as_mut_ptr(), moved: 0, len };
            while moving.moved < len {
                let item = moving.items.add(moving.moved).read();
                let any = item.element_into_any();
                cells.add(moving.moved).write(Any::into_raw_ffi_any(any));
                moving.moved += 1;
            }
            std::mem::forget(moving);
            (*object).size = len as i64;
        }
        Self { data, _phantom: PhantomData }
    }

    fn elements(&self) -> &[TVMFFIAny] {
        // SAFETY: self keeps the array alive.
        unsafe { seq_elements(ObjectArc::as_raw(&self.data) as *const TVMFFIObject) }
    }

    /// Number of elements.
    ///
    /// ```
    /// use tvm_ffi::Array;
    /// assert_eq!(Array::new(vec![1i64, 2]).len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.data.size as usize
    }

    /// Whether there is none.
    ///
    /// ```
    /// use tvm_ffi::Array;
    /// assert!(Array::<i64>::new(vec![]).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One element.
    ///
    /// ```
    /// use tvm_ffi::Array;
    /// let array = Array::new(vec![1i64, 2]);
    /// assert_eq!(array.get(1).unwrap(), 2);
    /// assert!(array.get(2).is_err());
    /// ```
    #[inline]
    pub fn get(&self, index: usize) -> Result<T> {
        if index >= self.len() {
            return Err(out_of_bound());
        }
        // SAFETY: the array owns the value.
        unsafe {
            let cell = &*(self.data.data as *const TVMFFIAny).add(index);
            if T::element_strict(cell) {
                return Ok(T::element_copy(cell));
            }
            T::element_cast(cell)
        }
        .map_err(|()| not_an_element::<T>(index))
    }

    /// The elements in order; ends at one that is not a `T`.
    ///
    /// ```
    /// use tvm_ffi::Array;
    /// assert_eq!(Array::new(vec![1i64, 2]).iter().sum::<i64>(), 3);
    /// ```
    pub fn iter(&self) -> ArrayIterator<'_, T> {
        ArrayIterator { cells: self.elements().iter(), _phantom: PhantomData }
    }

    unsafe fn check_strict(data: &TVMFFIAny) -> bool {
        data.type_index == TypeIndex::kTVMFFIArray as i32
            && seq_elements(data.data_union.v_obj).iter().all(|cell| T::element_strict(cell))
    }

    unsafe fn convert(data: &TVMFFIAny) -> Result<Self, ()> {
        if data.type_index != TypeIndex::kTVMFFIArray as i32
            && data.type_index != TypeIndex::kTVMFFIList as i32
        {
            return Err(());
        }
        let cells = seq_elements(data.data_union.v_obj);
        // Owned first: converting an element may run code that changes a list.
        let owned: Vec<Any> = cells.iter().map(|cell| Any::copy_of_view(cell)).collect();
        let items: Result<Vec<T>, ()> =
            owned.iter().map(|any| T::element_read(any.raw())).collect();
        Ok(Self::new(items?))
    }
}

impl<T: ContainerElement + Clone> Default for Array<T> {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl<T: ContainerElement + Clone> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        Self::new(iter.into_iter().collect())
    }
}

impl<T: ContainerElement + Clone> std::ops::Index<usize> for Array<T> {
    type Output = AnyView<'static>;
    fn index(&self, index: usize) -> &AnyView<'static> {
        let cells = self.elements();
        match cells.get(index) {
            // SAFETY: a view has the layout of the cell. It is used through a borrow of the array.
            Some(cell) => unsafe { &*(cell as *const TVMFFIAny as *const AnyView<'static>) },
            None => {
                panic!("Index out of bounds: the len is {} but the index is {index}", cells.len())
            }
        }
    }
}

impl<T: ContainerElement + Clone> std::fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array<{}>[{}]", short_type_name::<T>(), self.len())
    }
}

/// The elements of an [`Array`].
///
/// ```
/// use tvm_ffi::Array;
/// let array = Array::new(vec![1i64, 2]);
/// let mut elements = array.iter();
/// assert_eq!((elements.next(), elements.next(), elements.next()), (Some(1), Some(2), None));
/// ```
pub struct ArrayIterator<'a, T> {
    cells: std::slice::Iter<'a, TVMFFIAny>,
    _phantom: PhantomData<T>,
}

impl<T: ContainerElement> Iterator for ArrayIterator<'_, T> {
    type Item = T;
    fn next(&mut self) -> Option<T> {
        // SAFETY: the array owns the value.
        unsafe { T::element_read(self.cells.next()?).ok() }
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.cells.len()))
    }
}

impl<'a, T: ContainerElement + Clone> IntoIterator for &'a Array<T> {
    type Item = T;
    type IntoIter = ArrayIterator<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
