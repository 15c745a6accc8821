// SPDX-License-Identifier: Apache-2.0
//! Lists: shared and changed in place.
use super::{container_handle, seq_elements, short_type_name};
use crate::any::{Any, AnyView, TryFromTemp};
use crate::derive::Object as DeriveObject;
use crate::error::{Error, Result, INDEX_ERROR, OVERFLOW_ERROR, TYPE_ERROR};
use crate::object::{ref_any, Object, ObjectArc, ObjectRefCore, TypeIndex};
use crate::type_traits::{AnyCompatible, ContainerElement};
use std::ffi::c_void;
use std::marker::PhantomData;
use tvm_ffi_sys::*;

/// The object behind a [`List`].
///
/// ```
/// use tvm_ffi::List;
/// let list: List<i64> = [1, 2, 3].into_iter().collect();
/// assert_eq!(tvm_ffi::ObjectRefCore::as_node::<tvm_ffi::collections::list::ListObj>(&list).unwrap().size, 3);
/// ```
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.List"]
#[type_index(TypeIndex::kTVMFFIList)]
pub struct ListObj {
    /// Header.
    pub object: Object,
    /// The elements.
    pub data: *mut c_void,
    /// Number of elements.
    pub size: i64,
    /// Number of elements that there is room for.
    pub capacity: i64,
    /// Frees `data`.
    pub data_deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// A list of values of one type. Handles share it, so changing it takes `&self`.
///
/// ```
/// use tvm_ffi::List;
/// let list: List<i64> = [1, 2].into_iter().collect();
/// let same = list.clone();
/// list.push(3).unwrap();
/// assert_eq!(same.len(), 3);
/// assert_eq!(same.pop().unwrap(), 3);
/// ```
#[repr(C)]
pub struct List<T> {
    data: ObjectArc<ListObj>,
    _phantom: PhantomData<T>,
}

container_handle!(List<T>, ListObj, [T], [T: ContainerElement], "List<{}>");

impl<T> List<T> {
    fn object(&self) -> *mut ListObj {
        // SAFETY: only the address is taken.
        unsafe { ObjectArc::as_raw(&self.data) as *mut ListObj }
    }

    /// Number of elements.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// assert_eq!(list.len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        // SAFETY: self keeps the list alive. Fields are read through the pointer because other handles
        // change them.
        unsafe { (&raw const (*self.object()).size).read() as usize }
    }

    /// Whether there is none.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// assert!(List::<i64>::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of elements that there is room for.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// assert!(list.capacity() >= 3);
    /// ```
    pub fn capacity(&self) -> usize {
        // SAFETY: as in len.
        unsafe { (&raw const (*self.object()).capacity).read() as usize }
    }

    fn cell(&self, index: usize) -> *mut TVMFFIAny {
        // SAFETY: callers stay within the capacity.
        unsafe {
            let cells = (&raw const (*self.object()).data).read() as *mut TVMFFIAny;
            cells.add(index)
        }
    }

    fn set_len(&self, len: usize) {
        // SAFETY: self keeps the list alive.
        unsafe { (&raw mut (*self.object()).size).write(len as i64) }
    }
}

fn out_of_bound(what: &str) -> Error {
    Error::new(INDEX_ERROR, &format!("List {what} index out of bound"), "")
}

impl<T: ContainerElement> List<T> {
    /// An empty list.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list = List::new();
    /// list.push(1i64).unwrap();
    /// ```
    pub fn new() -> Self {
        Self::make(&[])
    }

    fn make(views: &[AnyView]) -> Self {
        let made = crate::cached_global_func!("ffi.List").call_packed(views);
        let object = made.and_then(crate::object::ObjectRef::try_from);
        match object {
            // SAFETY: the function makes lists; the elements are Ts.
            Ok(object) => unsafe {
                let raw = ObjectArc::into_raw(ObjectRefCore::into_data(object));
                Self::from_data(ObjectArc::from_raw(raw as *const ListObj))
            },
            Err(error) => panic!("cannot make a list: {error}"),
        }
    }

    fn read(cell: &TVMFFIAny, index: usize) -> Result<T> {
        // SAFETY: the list owns the value.
        unsafe { T::element_read(cell) }.map_err(|()| {
            let message = format!("Failed to cast element at {index} to {}", T::element_type_str());
            Error::new(TYPE_ERROR, &message, "")
        })
    }

    fn get_as(&self, index: usize, what: &str) -> Result<T> {
        if index >= self.len() {
            return Err(out_of_bound(what));
        }
        // The value is held: a conversion may run code that changes the list.
        // SAFETY: within the length.
        let value = unsafe { Any::copy_of_view(&*self.cell(index)) };
        Self::read(value.raw(), index)
    }

    /// One element.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// assert_eq!(list.get(0).unwrap(), 1);
    /// assert!(list.get(3).is_err());
    /// ```
    pub fn get(&self, index: usize) -> Result<T> {
        self.get_as(index, "get")
    }

    /// The first element.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// assert_eq!(list.first().unwrap(), 1);
    /// ```
    pub fn first(&self) -> Result<T> {
        self.get_as(0, "first")
    }

    /// The last element.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// assert_eq!(list.last().unwrap(), 3);
    /// ```
    pub fn last(&self) -> Result<T> {
        self.get_as(self.len().wrapping_sub(1), "last")
    }

    /// Replaces one element.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// list.set(0, 5).unwrap();
    /// assert_eq!(list.get(0).unwrap(), 5);
    /// ```
    pub fn set(&self, index: usize, value: T) -> Result<()> {
        if index >= self.len() {
            return Err(out_of_bound("set"));
        }
        let new = value.element_into_any();
        // SAFETY: within the length. The old value is dropped last: that may run any code.
        let old =
            unsafe { Any::from_raw_ffi_any(self.cell(index).replace(Any::into_raw_ffi_any(new))) };
        drop(old);
        Ok(())
    }

    fn grow_to(&self, needed: usize) -> Result<()> {
        if needed <= self.capacity() {
            return Ok(());
        }
        self.reserve_exactly(needed.max(self.capacity().saturating_mul(2)))
    }

    fn reserve_exactly(&self, capacity: usize) -> Result<()> {
        let Ok(wanted) = i64::try_from(capacity) else {
            return Err(Error::new(OVERFLOW_ERROR, "the capacity of a List is too large", ""));
        };
        let mut list = TVMFFIAny::new();
        // SAFETY: the view is used while self is alive.
        unsafe {
            ref_any::copy_to_any_view(self, &mut list);
            let args = [AnyView::from_raw(list), AnyView::from(&wanted)];
            crate::cached_global_func!("ffi.ListReserve").call_packed(&args)?;
        }
        Ok(())
    }

    /// Puts `items` at `index`, which is within the length.
    fn splice_in(&self, index: usize, items: Vec<Any>) -> Result<()> {
        let (len, count) = (self.len(), items.len());
        self.grow_to(len + count)?;
        // SAFETY: there is room for all; nothing runs between the moves.
        unsafe {
            let at = self.cell(index);
            std::ptr::copy(at, at.add(count), len - index);
            for (i, item) in items.into_iter().enumerate() {
                at.add(i).write(Any::into_raw_ffi_any(item));
            }
        }
        self.set_len(len + count);
        Ok(())
    }

    /// Takes the cells from `start` to `end` out and closes the gap.
    fn splice_out(&self, start: usize, end: usize) -> Vec<Any> {
        let len = self.len();
        let mut removed = Vec::with_capacity(end - start);
        // SAFETY: within the length; each cell is moved out once.
        unsafe {
            for i in start..end {
                removed.push(Any::from_raw_ffi_any(self.cell(i).read()));
            }
            std::ptr::copy(self.cell(end), self.cell(start), len - end);
        }
        self.set_len(len - (end - start));
        removed
    }

    /// Adds an element before `index`.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// list.insert(0, 5).unwrap();
    /// assert_eq!((list.len(), list.get(0).unwrap()), (4, 5));
    /// ```
    pub fn insert(&self, index: usize, value: T) -> Result<()> {
        if index > self.len() {
            return Err(out_of_bound("insert"));
        }
        self.splice_in(index, vec![value.element_into_any()])
    }

    /// Adds elements before `index`.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// list.insert_many(3, [4, 5]).unwrap();
    /// assert_eq!(list.last().unwrap(), 5);
    /// ```
    pub fn insert_many<I: IntoIterator<Item = T>>(&self, index: usize, values: I) -> Result<()> {
        // The iterator may change this list, so it ends first.
        let items: Vec<Any> = values.into_iter().map(T::element_into_any).collect();
        if index > self.len() {
            return Err(out_of_bound("insert_many"));
        }
        self.splice_in(index, items)
    }

    /// Takes an element out. One that is not a `T` stays.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// assert_eq!(list.remove(0).unwrap(), 1);
    /// assert_eq!(list.len(), 2);
    /// ```
    pub fn remove(&self, index: usize) -> Result<T> {
        let value = self.get_as(index, "remove")?;
        drop(self.splice_out(index, index + 1));
        Ok(value)
    }

    /// Takes the last element out. One that is not a `T` stays.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// assert_eq!(list.pop().unwrap(), 3);
    /// ```
    pub fn pop(&self) -> Result<T> {
        let index = self.len().wrapping_sub(1);
        let value = self.get_as(index, "pop")?;
        drop(self.splice_out(index, index + 1));
        Ok(value)
    }

    /// Drops the elements from `start` to `end`.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// list.remove_range(0, 2).unwrap();
    /// assert_eq!(list.len(), 1);
    /// ```
    pub fn remove_range(&self, start: usize, end: usize) -> Result<()> {
        if start > end || end > self.len() {
            return Err(out_of_bound("remove_range"));
        }
        drop(self.splice_out(start, end));
        Ok(())
    }

    /// Adds an element at the end.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// list.push(4).unwrap();
    /// assert_eq!(list.len(), 4);
    /// ```
    pub fn push(&self, value: T) -> Result<()> {
        let item = value.element_into_any();
        let len = self.len();
        self.grow_to(len + 1)?;
        // SAFETY: there is room for one more.
        unsafe { self.cell(len).write(Any::into_raw_ffi_any(item)) };
        self.set_len(len + 1);
        Ok(())
    }

    /// Adds elements at the end.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// list.extend([4, 5]).unwrap();
    /// assert_eq!(list.len(), 5);
    /// ```
    pub fn extend<I: IntoIterator<Item = T>>(&self, values: I) -> Result<()> {
        let items: Vec<Any> = values.into_iter().map(T::element_into_any).collect();
        self.splice_in(self.len(), items)
    }

    /// Makes the list `len` elements long.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// list.resize(5, 0).unwrap();
    /// assert_eq!(list.last().unwrap(), 0);
    /// ```
    pub fn resize(&self, len: usize, value: T) -> Result<()>
    where
        T: Clone,
    {
        if len <= self.len() {
            self.truncate(len);
            return Ok(());
        }
        let item = value.element_into_any();
        self.grow_to(len)?;
        for i in self.len()..len {
            // SAFETY: there is room; copying a value only counts a reference.
            unsafe { self.cell(i).write(Any::into_raw_ffi_any(item.clone())) };
        }
        self.set_len(len);
        Ok(())
    }

    /// Makes room for `additional` more elements.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// list.reserve(100).unwrap();
    /// assert!(list.capacity() >= 103);
    /// ```
    pub fn reserve(&self, additional: usize) -> Result<()> {
        let needed = self.len().saturating_add(additional);
        if needed <= self.capacity() {
            return Ok(());
        }
        self.reserve_exactly(needed)
    }

    /// Drops what is behind the first `len` elements.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// list.truncate(1);
    /// assert_eq!(list.len(), 1);
    /// ```
    pub fn truncate(&self, len: usize) {
        while self.len() > len {
            let last = self.len() - 1;
            self.set_len(last);
            // SAFETY: the cell was the last element, and no longer belongs to the list.
            drop(unsafe { Any::from_raw_ffi_any(self.cell(last).read()) });
        }
    }

    /// Drops all elements and keeps the room.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// list.clear();
    /// assert!(list.is_empty());
    /// ```
    pub fn clear(&self) {
        self.truncate(0)
    }

    /// Turns the order around.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// list.reverse();
    /// assert_eq!(list.get(0).unwrap(), 3);
    /// ```
    pub fn reverse(&self) {
        let len = self.len();
        for i in 0..len / 2 {
            // SAFETY: both are within the length.
            unsafe { std::ptr::swap(self.cell(i), self.cell(len - 1 - i)) }
        }
    }

    /// The elements; the list may change meanwhile.
    ///
    /// ```
    /// use tvm_ffi::List;
    /// let list: List<i64> = [1, 2, 3].into_iter().collect();
    /// let doubled: Vec<i64> = list.iter().map(|x| x.unwrap() * 2).collect();
    /// assert_eq!(doubled, [2, 4, 6]);
    /// ```
    pub fn iter(&self) -> ListIterator<'_, T> {
        ListIterator { list: self, front: 0, back: None }
    }

    unsafe fn check_strict(data: &TVMFFIAny) -> bool {
        data.type_index == TypeIndex::kTVMFFIList as i32
            && seq_elements(data.data_union.v_obj).iter().all(|cell| T::element_strict(cell))
    }

    unsafe fn convert(data: &TVMFFIAny) -> Result<Self, ()> {
        if data.type_index != TypeIndex::kTVMFFIArray as i32
            && data.type_index != TypeIndex::kTVMFFIList as i32
        {
            return Err(());
        }
        let cells = seq_elements(data.data_union.v_obj);
        let owned: Vec<Any> = cells.iter().map(|cell| Any::copy_of_view(cell)).collect();
        let items: Result<Vec<T>, ()> =
            owned.iter().map(|any| T::element_read(any.raw())).collect();
        Ok(items?.into_iter().collect())
    }
}

impl<T: ContainerElement> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ContainerElement> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        let items: Vec<Any> = iter.into_iter().map(T::element_into_any).collect();
        let views: Vec<AnyView> = items.iter().map(AnyView::from).collect();
        Self::make(&views)
    }
}

impl<T> std::fmt::Debug for List<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "List<{}>[{}]", short_type_name::<T>(), self.len())
    }
}

/// The elements of a [`List`]. The length is read at every step; the first step from the back fixes the end.
///
/// ```
/// use tvm_ffi::List;
/// let list: List<i64> = [1, 2, 3].into_iter().collect();
/// assert_eq!(list.iter().next_back().unwrap().unwrap(), 3);
/// ```
pub struct ListIterator<'a, T> {
    list: &'a List<T>,
    front: usize,
    back: Option<usize>,
}

impl<T: ContainerElement> ListIterator<'_, T> {
    fn end(&self) -> usize {
        let len = self.list.len();
        self.back.map_or(len, |back| back.min(len))
    }
}

impl<T: ContainerElement> Iterator for ListIterator<'_, T> {
    type Item = Result<T>;
    fn next(&mut self) -> Option<Result<T>> {
        if self.front >= self.end() {
            return None;
        }
        self.front += 1;
        Some(self.list.get(self.front - 1))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.end().saturating_sub(self.front)))
    }
}

impl<T: ContainerElement> DoubleEndedIterator for ListIterator<'_, T> {
    fn next_back(&mut self) -> Option<Result<T>> {
        let end = self.end();
        if self.front >= end {
            return None;
        }
        self.back = Some(end - 1);
        Some(self.list.get(end - 1))
    }
}

impl<'a, T: ContainerElement> IntoIterator for &'a List<T> {
    type Item = Result<T>;
    type IntoIter = ListIterator<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
