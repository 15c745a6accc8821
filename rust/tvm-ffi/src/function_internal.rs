// SPDX-License-Identifier: Apache-2.0
//! Arguments and results of functions.
use crate::any::{mismatch, Any, AnyView};
use crate::big_int::BigInt;
use crate::collections::{Array, List, Map};
use crate::error::{Error, Result, INTERNAL_ERROR, VALUE_ERROR};
use crate::object::ObjectRefCore;
use crate::rvalue_ref::RValueRef;
use crate::string::{Bytes, String};
use crate::type_traits::{AnyCompatible, ContainerElement};
use std::panic::{catch_unwind, AssertUnwindSafe};
use tvm_ffi_sys::*;

/// A parameter of a typed function.
#[doc(hidden)]
pub trait FromPackedArg: Sized {
    fn from_packed_arg(index: usize, view: AnyView<'_>) -> Result<Self>;
}

impl<T: AnyCompatible> FromPackedArg for T {
    #[inline]
    fn from_packed_arg(index: usize, view: AnyView<'_>) -> Result<Self> {
        let data = view.raw();
        // SAFETY: the view is valid, and copied only after the check.
        unsafe {
            if T::check_any_strict(data) {
                return Ok(T::copy_from_any_view_after_check(data));
            }
            T::try_cast_from_any_view(data)
                .map_err(|()| mismatch::<T>(&format!("Argument #{index}: "), data))
        }
    }
}

impl FromPackedArg for Any {
    #[inline]
    fn from_packed_arg(_: usize, view: AnyView<'_>) -> Result<Self> {
        Ok(Any::from(view))
    }
}

impl<T: ObjectRefCore + AnyCompatible> FromPackedArg for RValueRef<T> {
    fn from_packed_arg(index: usize, view: AnyView<'_>) -> Result<Self> {
        RValueRef::from_view(view, &format!("Argument #{index}: "))
    }
}

/// A Rust function whose arguments can be converted from values of the FFI.
///
/// ```
/// use tvm_ffi::*;
/// use tvm_ffi::function_internal::AsPackedCallable;
/// let add = |x: i64, y: i64| -> Result<i64> { Ok(x + y) };
/// let sum = add.call_packed(&[AnyView::from(&1i64), AnyView::from(&2i64)]).unwrap();
/// assert_eq!(sum.try_as::<i64>(), Some(3));
/// ```
pub trait AsPackedCallable<I, O> {
    /// Converts the arguments, calls, and converts the result.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// use tvm_ffi::function_internal::AsPackedCallable;
    /// let negate = |x: i64| -> Result<i64> { Ok(-x) };
    /// assert_eq!(negate.call_packed(&[AnyView::from(&1i64)]).unwrap().try_as::<i64>(), Some(-1));
    /// assert!(negate.call_packed(&[]).is_err());
    /// ```
    fn call_packed(&self, packed_args: &[AnyView]) -> Result<Any>;
}

macro_rules! callables {
    ($(($len:literal; $($param:ident $index:tt),*))*) => {$(
        impl<Fun, $($param,)* Out> AsPackedCallable<($($param,)*), Out> for Fun
        where
            Fun: Fn($($param),*) -> Result<Out> + 'static,
            $($param: FromPackedArg,)*
            Any: From<Out>,
        {
            #[inline]
            fn call_packed(&self, packed_args: &[AnyView]) -> Result<Any> {
                if packed_args.len() != $len {
                    return Err(wrong_count($len, packed_args.len()));
                }
                Ok(Any::from(self($($param::from_packed_arg($index, packed_args[$index])?),*)?))
            }
        }
    )*};
}
callables! {
    (0;)
    (1; T0 0)
    (2; T0 0, T1 1)
    (3; T0 0, T1 1, T2 2)
    (4; T0 0, T1 1, T2 2, T3 3)
    (5; T0 0, T1 1, T2 2, T3 3, T4 4)
    (6; T0 0, T1 1, T2 2, T3 3, T4 4, T5 5)
    (7; T0 0, T1 1, T2 2, T3 3, T4 4, T5 5, T6 6)
    (8; T0 0, T1 1, T2 2, T3 3, T4 4, T5 5, T6 6, T7 7)
}

#[cold]
fn wrong_count(expected: usize, got: usize) -> Error {
    Error::new(VALUE_ERROR, &format!("Expected {expected} arguments, got {got}"), "")
}

/// Calls a Rust function with values of the FFI.
///
/// ```
/// use tvm_ffi::*;
/// use tvm_ffi::function_internal::call_packed_callable;
/// let negate = |x: i64| -> Result<i64> { Ok(-x) };
/// let result = call_packed_callable(negate, &[AnyView::from(&1i64)]).unwrap();
/// assert_eq!(result.try_as::<i64>(), Some(-1));
/// ```
pub fn call_packed_callable<F, I, O>(func: F, packed_args: &[AnyView]) -> Result<Any>
where
    F: AsPackedCallable<I, O>,
{
    func.call_packed(packed_args)
}

/// The error that a panic becomes.
#[doc(hidden)]
pub fn panic_to_error(payload: Box<dyn std::any::Any + Send>) -> Error {
    let text = if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<std::string::String>() {
        text.as_str()
    } else {
        "unknown payload"
    };
    let error = Error::new(INTERNAL_ERROR, &format!("panicked: {text}"), "");
    drop_payload(payload);
    error
}

/// Drops what was thrown. It may be of any type, and its destructor may panic again, which must not reach C.
/// What goes on throwing is leaked.
pub(crate) fn drop_payload(mut payload: Box<dyn std::any::Any + Send>) {
    for _ in 0..8 {
        match catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            Ok(()) => return,
            Err(next) => payload = next,
        }
    }
    std::mem::forget(payload);
}

/// Runs the body of a C function: errors and panics are raised for the caller.
///
/// # Safety
/// The arguments are those of a call through the C interface.
#[doc(hidden)]
#[inline]
pub unsafe fn safe_call(
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
    body: impl FnOnce(&[AnyView]) -> Result<Any>,
) -> i32 {
    let packed: &[AnyView] = if args.is_null() || num_args <= 0 {
        &[]
    } else {
        std::slice::from_raw_parts(args as *const AnyView, num_args as usize)
    };
    match catch_unwind(AssertUnwindSafe(|| body(packed))) {
        Ok(Ok(value)) => {
            result.write(Any::into_raw_ffi_any(value));
            0
        }
        Ok(Err(error)) => raise(&error),
        Err(payload) => raise(&panic_to_error(payload)),
    }
}

#[cold]
pub(crate) fn raise(error: &Error) -> i32 {
    Error::set_raised(error);
    -1
}

/// What is kept alive while an argument is passed.
///
/// ```
/// use tvm_ffi::*;
/// use tvm_ffi::function_internal::IntoArgHolder;
/// assert_eq!("text".into_arg_holder(), String::from("text"));
/// ```
pub trait IntoArgHolder {
    /// Type of what is kept.
    type Target;
    /// Converts the argument.
    ///
    /// ```
    /// use tvm_ffi::{function_internal::IntoArgHolder, Bytes};
    /// let bytes: &[u8] = b"abc";
    /// assert_eq!(bytes.into_arg_holder(), Bytes::from(bytes));
    /// ```
    fn into_arg_holder(self) -> Self::Target;
}

/// The value inside an argument that is passed by value or by reference.
///
/// ```
/// use tvm_ffi::*;
/// use tvm_ffi::function_internal::ArgIntoRef;
/// assert_eq!((&1i64).to_ref(), 1i64.to_ref());
/// ```
pub trait ArgIntoRef {
    /// Type of the value.
    type Target;
    /// The value.
    ///
    /// ```
    /// use tvm_ffi::function_internal::ArgIntoRef;
    /// assert_eq!(*2.5f64.to_ref(), 2.5);
    /// ```
    fn to_ref(&self) -> &Self::Target;
}

/// What a view can be made of.
#[doc(hidden)]
pub trait PackedArg {
    fn as_packed_arg(&self) -> AnyView<'_>;
}
impl<T: AnyCompatible> PackedArg for T {
    #[inline]
    fn as_packed_arg(&self) -> AnyView<'_> {
        AnyView::from(self)
    }
}
impl PackedArg for Any {
    #[inline]
    fn as_packed_arg(&self) -> AnyView<'_> {
        AnyView::from(self)
    }
}
impl<T: ObjectRefCore + AnyCompatible> PackedArg for RValueRef<T> {
    #[inline]
    fn as_packed_arg(&self) -> AnyView<'_> {
        AnyView::from(self)
    }
}

macro_rules! own_arguments {
    ($($ty:ty),* $(,)?) => {
        crate::impl_into_arg_holder_default!($($ty),*);
        crate::impl_arg_into_ref!($($ty),*);
    };
}
own_arguments!(
    (),
    bool,
    i8,
    i16,
    i32,
    i64,
    isize,
    u8,
    u16,
    u32,
    u64,
    usize,
    f32,
    f64,
    String,
    Bytes,
    BigInt,
    Any,
    DLDataType,
    DLDevice,
    *mut std::ffi::c_void,
);

macro_rules! generic_arguments {
    ($([$($param:ident: $bound:path),*] $ty:ty),* $(,)?) => {$(
        impl<$($param: $bound),*> IntoArgHolder for $ty {
            type Target = $ty;
            #[inline]
            fn into_arg_holder(self) -> Self::Target {
                self
            }
        }
        impl<'a, $($param: $bound),*> IntoArgHolder for &'a $ty {
            type Target = &'a $ty;
            #[inline]
            fn into_arg_holder(self) -> Self::Target {
                self
            }
        }
        impl<$($param: $bound),*> ArgIntoRef for $ty {
            type Target = $ty;
            #[inline]
            fn to_ref(&self) -> &Self::Target {
                self
            }
        }
        impl<$($param: $bound),*> ArgIntoRef for &$ty {
            type Target = $ty;
            #[inline]
            fn to_ref(&self) -> &Self::Target {
                self
            }
        }
    )*};
}
/// `ContainerElement + Clone`, as one bound.
#[doc(hidden)]
pub trait ArrayElement: ContainerElement + Clone {}
impl<T: ContainerElement + Clone> ArrayElement for T {}
generic_arguments!(
    [T: AnyCompatible] Option<T>,
    [T: ArrayElement] Array<T>,
    [T: ContainerElement] List<T>,
    [K: ContainerElement, V: ContainerElement] Map<K, V>,
);

impl<T: ObjectRefCore + AnyCompatible> IntoArgHolder for RValueRef<T> {
    type Target = RValueRef<T>;
    fn into_arg_holder(self) -> Self::Target {
        self
    }
}
impl<T: ObjectRefCore + AnyCompatible> ArgIntoRef for RValueRef<T> {
    type Target = RValueRef<T>;
    fn to_ref(&self) -> &Self::Target {
        self
    }
}
impl IntoArgHolder for &str {
    type Target = String;
    fn into_arg_holder(self) -> String {
        String::from(self)
    }
}
impl IntoArgHolder for &[u8] {
    type Target = Bytes;
    fn into_arg_holder(self) -> Bytes {
        Bytes::from(self)
    }
}

/// [`IntoArgHolder`] for each member of a tuple.
///
/// ```
/// use tvm_ffi::*;
/// use tvm_ffi::function_internal::IntoArgHolderTuple;
/// assert_eq!((1i64, "x").into_arg_holder_tuple(), (1i64, String::from("x")));
/// ```
pub trait IntoArgHolderTuple {
    /// Tuple of what is kept.
    type Target;
    /// Converts each member.
    ///
    /// ```
    /// use tvm_ffi::{function_internal::IntoArgHolderTuple, String};
    /// assert_eq!((true, "x").into_arg_holder_tuple(), (true, String::from("x")));
    /// ```
    fn into_arg_holder_tuple(self) -> Self::Target;
}

/// A tuple of arguments.
///
/// ```
/// use tvm_ffi::*;
/// use tvm_ffi::function_internal::TupleAsPackedArgs;
/// let arguments = (1i64, true);
/// let mut views = [AnyView::new(); 2];
/// arguments.fill_any_view(&mut views);
/// assert_eq!(views[1].try_as::<bool>(), Some(true));
/// ```
pub trait TupleAsPackedArgs {
    /// Number of arguments.
    ///
    /// ```
    /// use tvm_ffi::function_internal::TupleAsPackedArgs;
    /// assert_eq!(<(i64, bool) as TupleAsPackedArgs>::LEN, 2);
    /// ```
    const LEN: usize;
    /// Writes a view of each argument.
    ///
    /// ```
    /// use tvm_ffi::{function_internal::TupleAsPackedArgs, AnyView};
    /// let mut views = [AnyView::new(); 1];
    /// (7i64,).fill_any_view(&mut views);
    /// assert_eq!(views[0].try_as::<i64>(), Some(7));
    /// ```
    fn fill_any_view<'a>(&'a self, any_view: &mut [AnyView<'a>]);
}

macro_rules! tuples {
    ($(($len:literal; $($param:ident $index:tt),*))*) => {$(
        impl<$($param: IntoArgHolder),*> IntoArgHolderTuple for ($($param,)*) {
            type Target = ($($param::Target,)*);
            #[allow(clippy::unused_unit)]
            fn into_arg_holder_tuple(self) -> Self::Target {
                ($(self.$index.into_arg_holder(),)*)
            }
        }
        impl<$($param: ArgIntoRef),*> TupleAsPackedArgs for ($($param,)*)
        where
            $($param::Target: PackedArg,)*
        {
            const LEN: usize = $len;
            #[inline]
            fn fill_any_view<'a>(&'a self, _any_view: &mut [AnyView<'a>]) {
                $(_any_view[$index] = self.$index.to_ref().as_packed_arg();)*
            }
        }
    )*};
}
tuples! {
    (0;)
    (1; T0 0)
    (2; T0 0, T1 1)
    (3; T0 0, T1 1, T2 2)
    (4; T0 0, T1 1, T2 2, T3 3)
    (5; T0 0, T1 1, T2 2, T3 3, T4 4)
    (6; T0 0, T1 1, T2 2, T3 3, T4 4, T5 5)
    (7; T0 0, T1 1, T2 2, T3 3, T4 4, T5 5, T6 6)
    (8; T0 0, T1 1, T2 2, T3 3, T4 4, T5 5, T6 6, T7 7)
}
