// SPDX-License-Identifier: Apache-2.0
//! Arguments that are moved to the callee.
use crate::any::{convert_view, AnyView};
use crate::error::{Error, Result, TYPE_ERROR};
use crate::object::{unsafe_, ObjectRefCore};
use crate::type_traits::AnyCompatible;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use tvm_ffi_sys::TVMFFITypeIndex as TypeIndex;
use tvm_ffi_sys::*;

/// An object argument that the callee may take over.
///
/// ```
/// use tvm_ffi::*;
/// let count = Function::from_typed(|a: RValueRef<Array<i64>>| -> Result<i64> {
///     Ok(Any::from(a.into_inner()).debug_strong_count().unwrap() as i64)
/// });
/// let moved = RValueRef::new(Array::new(vec![1i64]));
/// assert_eq!(i64::try_from(count.call_tuple((moved,)).unwrap()).unwrap(), 1);
/// ```
pub struct RValueRef<T: ObjectRefCore + AnyCompatible> {
    // The callee takes the reference through the address of this slot, and leaves null.
    slot: UnsafeCell<*mut TVMFFIObject>,
    _phantom: PhantomData<T>,
}

impl<T: ObjectRefCore + AnyCompatible> RValueRef<T> {
    /// Wraps a handle.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(RValueRef::new(Shape::from([1i64])).into_inner().as_slice(), [1]);
    /// ```
    pub fn new(value: T) -> Self {
        let mut data = TVMFFIAny::new();
        // SAFETY: the cell owned nothing; handles are stored as objects.
        let object = unsafe {
            T::move_to_any(value, &mut data);
            data.data_union.v_obj
        };
        Self { slot: UnsafeCell::new(object), _phantom: PhantomData }
    }

    /// Takes the handle out.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let shape = Shape::new();
    /// assert!(RValueRef::new(shape.clone()).into_inner().same_as(&shape));
    /// ```
    ///
    /// # Panics
    /// If it has been moved.
    pub fn into_inner(self) -> T {
        // SAFETY: the type is not Sync, so nobody else uses the slot.
        unsafe {
            let object = std::mem::replace(&mut *self.slot.get(), std::ptr::null_mut());
            assert!(!object.is_null(), "RValueRef has already been moved");
            let mut data = owned(object);
            T::move_from_any_after_check(&mut data)
        }
    }

    pub(crate) fn from_view(view: AnyView<'_>, prefix: &str) -> Result<Self> {
        let data = view.raw();
        let fail = |source: &str| {
            let message =
                format!("{prefix}Cannot convert from `{source}` to `RValueRef<{}>`", T::type_str());
            Err(Error::new(TYPE_ERROR, &message, ""))
        };
        if data.type_index != TypeIndex::kTVMFFIObjectRValueRef as i32 {
            return match convert_view::<T>(data) {
                Ok(value) => Ok(Self::new(value)),
                Err(_) => fail(&T::get_mismatch_type_info(data)),
            };
        }
        // SAFETY: the payload is the address of a slot of the caller, which owns one reference.
        unsafe {
            let slot = data.data_union.v_ptr as *mut *mut TVMFFIObject;
            if slot.is_null() || (*slot).is_null() {
                return fail("an already-moved RValueRef");
            }
            let mut object = owned(*slot);
            if T::check_any_strict(&object) {
                *slot = std::ptr::null_mut();
                return Ok(Self::new(T::move_from_any_after_check(&mut object)));
            }
            match T::try_cast_from_any_view(&object) {
                Ok(value) => Ok(Self::new(value)),
                Err(()) => fail("RValueRef with an incompatible object type"),
            }
        }
    }
}

/// The cell of an object.
unsafe fn owned(object: *mut TVMFFIObject) -> TVMFFIAny {
    let mut data = TVMFFIAny::new();
    data.type_index = (*object).type_index;
    data.data_union.v_obj = object;
    data
}

impl<T: ObjectRefCore + AnyCompatible> Drop for RValueRef<T> {
    fn drop(&mut self) {
        let object = *self.slot.get_mut();
        if !object.is_null() {
            // SAFETY: the slot owns one reference.
            unsafe { unsafe_::dec_ref(object) }
        }
    }
}

impl<T: ObjectRefCore + AnyCompatible> From<T> for RValueRef<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<'a, T: ObjectRefCore + AnyCompatible> From<&'a RValueRef<T>> for AnyView<'a> {
    fn from(value: &'a RValueRef<T>) -> Self {
        let mut data = TVMFFIAny::new();
        data.type_index = TypeIndex::kTVMFFIObjectRValueRef as i32;
        data.data_union.v_ptr = value.slot.get() as *mut _;
        // SAFETY: the slot lives as long as the view.
        unsafe { AnyView::from_raw(data) }
    }
}

impl<'a, T: ObjectRefCore + AnyCompatible> TryFrom<AnyView<'a>> for RValueRef<T> {
    type Error = Error;
    fn try_from(view: AnyView<'a>) -> Result<Self> {
        Self::from_view(view, "")
    }
}
