// SPDX-License-Identifier: Apache-2.0
//! The exported `macro_rules!` macros.
#[doc(hidden)]
pub use paste;

/// Path of the function around the call.
///
/// ```
/// fn outer() -> &'static str { tvm_ffi::function_name!() }
/// assert!(outer().ends_with("outer"));
/// ```
#[macro_export]
macro_rules! function_name {
    () => {{
        fn f() {}
        fn type_name_of<T>(_: T) -> &'static str {
            ::std::any::type_name::<T>()
        }
        let name = type_name_of(f);
        name.strip_suffix("::f").unwrap_or(name)
    }};
}

/// A global function, looked up once per place of use.
///
/// ```
/// assert!(tvm_ffi::cached_global_func!("ffi.MapSize").call_tuple((1i64,)).is_err());
/// ```
#[macro_export]
macro_rules! cached_global_func {
    ($name:literal) => {{
        static FUNC: ::std::sync::LazyLock<$crate::Function> = ::std::sync::LazyLock::new(|| {
            $crate::Function::get_global($name)
                .unwrap_or_else(|_| panic!("global function `{}` is not registered", $name))
        });
        &*FUNC
    }};
}

/// Turns the code of a C function into a `Result`.
///
/// ```
/// assert!(tvm_ffi::check_safe_call!(0).is_ok());
/// ```
#[macro_export]
macro_rules! check_safe_call {
    ($code:expr) => {
        match $code {
            0 => ::std::result::Result::<(), $crate::error::Error>::Ok(()),
            code => ::std::result::Result::Err($crate::error::Error::of_failed_call(code)),
        }
    };
}

/// The line that a backtrace shows for the place of use.
#[doc(hidden)]
#[macro_export]
macro_rules! __backtrace_frame {
    () => {
        ::std::format!(
            "  File \"{}\", line {}, in {}\n",
            ::std::file!(),
            ::std::line!(),
            $crate::function_name!()
        )
    };
}

/// Returns an error.
///
/// ```
/// fn f(x: i64) -> tvm_ffi::Result<()> { tvm_ffi::bail!(tvm_ffi::VALUE_ERROR, "bad {x}") }
/// assert_eq!(f(1).unwrap_err().message(), "bad 1");
/// ```
#[macro_export]
macro_rules! bail {
    ($kind:expr, $fmt:expr $(, $args:expr)* $(,)?) => {
        return ::std::result::Result::Err($crate::error::Error::new(
            $kind,
            &::std::format!($fmt $(, $args)*),
            &$crate::__backtrace_frame!(),
        ))
    };
}

/// Returns an error if a condition does not hold.
///
/// ```
/// fn f(x: i64) -> tvm_ffi::Result<()> {
///     tvm_ffi::ensure!(x > 0, tvm_ffi::VALUE_ERROR, "bad {}", x);
///     Ok(())
/// }
/// assert!(f(1).is_ok() && f(0).is_err());
/// ```
#[macro_export]
macro_rules! ensure {
    ($cond:expr, $kind:expr, $fmt:expr $(, $args:expr)* $(,)?) => {
        if !$cond {
            $crate::bail!($kind, $fmt $(, $args)*);
        }
    };
}

/// Adds the place of use to the backtrace of an error.
///
/// ```
/// fn f() -> tvm_ffi::Result<()> { tvm_ffi::bail!(tvm_ffi::VALUE_ERROR, "no") }
/// fn g() -> tvm_ffi::Result<()> { tvm_ffi::attach_context!(f()) }
/// assert_eq!(g().unwrap_err().backtrace().lines().count(), 2);
/// ```
#[macro_export]
macro_rules! attach_context {
    ($result:expr) => {
        match $result {
            ::std::result::Result::Ok(value) => ::std::result::Result::Ok(value),
            ::std::result::Result::Err(error) => ::std::result::Result::Err(
                $crate::error::Error::with_appended_backtrace(error, &$crate::__backtrace_frame!()),
            ),
        }
    };
}

/// `From` between a handle and the handle of a base class. The conversion panics where it is not one.
///
/// ```
/// use tvm_ffi::*;
/// mod point {
///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
///     #[rs_class("doc.upcast.Point")]
///     pub struct PointObj {
///         base: Object,
///         pub x: i64,
///     }
///     def_object_ref!(pub Point, ObjectRef, PointObj);
/// }
/// use point::{Point, PointObj};
/// let point = Point::from(PointObj::new(Object::new(), 3));
/// let object: object::ObjectRef = (&point).into();
/// assert!(object.same_as(&point));
/// ```
#[macro_export]
macro_rules! impl_object_upcast {
    ($($source:ty => $target:ty),+ $(,)?) => {$(
        impl ::std::convert::From<$source> for $target {
            fn from(value: $source) -> Self {
                $crate::object::upcast(value)
            }
        }
        impl ::std::convert::From<&$source> for $target {
            fn from(value: &$source) -> Self {
                <$target as ::std::convert::From<$source>>::from(::std::clone::Clone::clone(value))
            }
        }
    )+};
}

/// `TryFrom<AnyView>` and `TryFrom<Any>` for types that are `AnyCompatible`.
///
/// ```
/// use tvm_ffi::*;
/// struct Meters(i64);
/// // SAFETY: stored as an integer.
/// unsafe impl AnyCompatible for Meters {
///     unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny) {
///         i64::copy_to_any_view(&src.0, data)
///     }
///     unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny) {
///         i64::move_to_any(src.0, data)
///     }
///     unsafe fn check_any_strict(data: &TVMFFIAny) -> bool {
///         i64::check_any_strict(data)
///     }
///     unsafe fn copy_from_any_view_after_check(data: &TVMFFIAny) -> Self {
///         Self(i64::copy_from_any_view_after_check(data))
///     }
///     unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self {
///         Self(i64::move_from_any_after_check(data))
///     }
///     unsafe fn try_cast_from_any_view(data: &TVMFFIAny) -> std::result::Result<Self, ()> {
///         i64::try_cast_from_any_view(data).map(Self)
///     }
///     fn type_str() -> std::string::String {
///         i64::type_str()
///     }
/// }
/// impl_try_from_any!(Meters);
/// assert_eq!(Meters::try_from(Any::from(3i64)).unwrap().0, 3);
/// assert!(Meters::try_from(Any::from(String::from("far"))).is_err());
/// ```
#[macro_export]
macro_rules! impl_try_from_any {
    ($($ty:ty),+ $(,)?) => {$(
        impl<'a> ::std::convert::TryFrom<$crate::any::AnyView<'a>> for $ty {
            type Error = $crate::error::Error;
            #[inline]
            fn try_from(value: $crate::any::AnyView<'a>) -> ::std::result::Result<Self, Self::Error> {
                <$crate::any::TryFromTemp<Self> as ::std::convert::TryFrom<_>>::try_from(value)
                    .map($crate::any::TryFromTemp::into_value)
            }
        }
        impl ::std::convert::TryFrom<$crate::any::Any> for $ty {
            type Error = $crate::error::Error;
            #[inline]
            fn try_from(value: $crate::any::Any) -> ::std::result::Result<Self, Self::Error> {
                <$crate::any::TryFromTemp<Self> as ::std::convert::TryFrom<_>>::try_from(value)
                    .map($crate::any::TryFromTemp::into_value)
            }
        }
    )+};
}

/// The same for a generic type with one parameter.
///
/// ```
/// use tvm_ffi::*;
/// # struct Boxed<T>(T);
/// # // SAFETY: stored as an integer.
/// # unsafe impl<T: AnyCompatible> AnyCompatible for Boxed<T> {
/// #     unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny) {
/// #         T::copy_to_any_view(&src.0, data)
/// #     }
/// #     unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny) {
/// #         T::move_to_any(src.0, data)
/// #     }
/// #     unsafe fn check_any_strict(data: &TVMFFIAny) -> bool {
/// #         T::check_any_strict(data)
/// #     }
/// #     unsafe fn copy_from_any_view_after_check(data: &TVMFFIAny) -> Self {
/// #         Self(T::copy_from_any_view_after_check(data))
/// #     }
/// #     unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self {
/// #         Self(T::move_from_any_after_check(data))
/// #     }
/// #     unsafe fn try_cast_from_any_view(data: &TVMFFIAny) -> std::result::Result<Self, ()> {
/// #         T::try_cast_from_any_view(data).map(Self)
/// #     }
/// #     fn type_str() -> std::string::String {
/// #         T::type_str()
/// #     }
/// # }
/// impl_try_from_any_for_parametric!(Boxed<T>);
/// let boxed: Boxed<i64> = Any::from(3i64).try_into().unwrap();
/// assert_eq!(boxed.0, 3);
/// ```
#[macro_export]
macro_rules! impl_try_from_any_for_parametric {
    ($name:ident<$param:ident>) => {
        impl<'a, $param: $crate::type_traits::AnyCompatible>
            ::std::convert::TryFrom<$crate::any::AnyView<'a>> for $name<$param>
        {
            type Error = $crate::error::Error;
            fn try_from(
                value: $crate::any::AnyView<'a>,
            ) -> ::std::result::Result<Self, Self::Error> {
                <$crate::any::TryFromTemp<Self> as ::std::convert::TryFrom<_>>::try_from(value)
                    .map($crate::any::TryFromTemp::into_value)
            }
        }
        impl<$param: $crate::type_traits::AnyCompatible> ::std::convert::TryFrom<$crate::any::Any>
            for $name<$param>
        {
            type Error = $crate::error::Error;
            fn try_from(value: $crate::any::Any) -> ::std::result::Result<Self, Self::Error> {
                <$crate::any::TryFromTemp<Self> as ::std::convert::TryFrom<_>>::try_from(value)
                    .map($crate::any::TryFromTemp::into_value)
            }
        }
    };
}

/// `IntoArgHolder` for types that are passed as they are.
///
/// ```
/// use tvm_ffi::*;
/// # struct Meters(i64);
/// # // SAFETY: stored as an integer.
/// # unsafe impl AnyCompatible for Meters {
/// #     unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny) {
/// #         i64::copy_to_any_view(&src.0, data)
/// #     }
/// #     unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny) {
/// #         i64::move_to_any(src.0, data)
/// #     }
/// #     unsafe fn check_any_strict(data: &TVMFFIAny) -> bool {
/// #         i64::check_any_strict(data)
/// #     }
/// #     unsafe fn copy_from_any_view_after_check(data: &TVMFFIAny) -> Self {
/// #         Self(i64::copy_from_any_view_after_check(data))
/// #     }
/// #     unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self {
/// #         Self(i64::move_from_any_after_check(data))
/// #     }
/// #     unsafe fn try_cast_from_any_view(data: &TVMFFIAny) -> std::result::Result<Self, ()> {
/// #         i64::try_cast_from_any_view(data).map(Self)
/// #     }
/// #     fn type_str() -> std::string::String {
/// #         i64::type_str()
/// #     }
/// # }
/// impl_into_arg_holder_default!(Meters);
/// impl_arg_into_ref!(Meters);
/// let half = Function::from_typed(|x: i64| -> Result<i64> { Ok(x / 2) });
/// assert_eq!(half.call_tuple((Meters(8),)).unwrap().try_as::<i64>(), Some(4));
/// ```
#[macro_export]
macro_rules! impl_into_arg_holder_default {
    ($($ty:ty),+ $(,)?) => {$(
        impl $crate::function_internal::IntoArgHolder for $ty {
            type Target = $ty;
            #[inline]
            fn into_arg_holder(self) -> Self::Target {
                self
            }
        }
        impl<'a> $crate::function_internal::IntoArgHolder for &'a $ty {
            type Target = &'a $ty;
            #[inline]
            fn into_arg_holder(self) -> Self::Target {
                self
            }
        }
    )+};
}

/// `ArgIntoRef` for types that are passed as they are.
///
/// ```
/// use tvm_ffi::*;
/// # struct Meters(i64);
/// # // SAFETY: stored as an integer.
/// # unsafe impl AnyCompatible for Meters {
/// #     unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny) {
/// #         i64::copy_to_any_view(&src.0, data)
/// #     }
/// #     unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny) {
/// #         i64::move_to_any(src.0, data)
/// #     }
/// #     unsafe fn check_any_strict(data: &TVMFFIAny) -> bool {
/// #         i64::check_any_strict(data)
/// #     }
/// #     unsafe fn copy_from_any_view_after_check(data: &TVMFFIAny) -> Self {
/// #         Self(i64::copy_from_any_view_after_check(data))
/// #     }
/// #     unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self {
/// #         Self(i64::move_from_any_after_check(data))
/// #     }
/// #     unsafe fn try_cast_from_any_view(data: &TVMFFIAny) -> std::result::Result<Self, ()> {
/// #         i64::try_cast_from_any_view(data).map(Self)
/// #     }
/// #     fn type_str() -> std::string::String {
/// #         i64::type_str()
/// #     }
/// # }
/// impl_arg_into_ref!(Meters);
/// use tvm_ffi::function_internal::ArgIntoRef;
/// assert_eq!((&Meters(3)).to_ref().0, 3);
/// ```
#[macro_export]
macro_rules! impl_arg_into_ref {
    ($($ty:ty),+ $(,)?) => {$(
        impl $crate::function_internal::ArgIntoRef for $ty {
            type Target = $ty;
            #[inline]
            fn to_ref(&self) -> &Self::Target {
                self
            }
        }
        impl<'a> $crate::function_internal::ArgIntoRef for &'a $ty {
            type Target = $ty;
            #[inline]
            fn to_ref(&self) -> &Self::Target {
                self
            }
        }
    )+};
}

/// Exports a function under the name by which a module finds it.
///
/// ```
/// fn add_one(x: i64) -> tvm_ffi::Result<i64> { Ok(x + 1) }
/// tvm_ffi::tvm_ffi_dll_export_typed_func!(add_one, add_one);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! tvm_ffi_dll_export_typed_func {
    ($name:ident, $func:expr) => {
        $crate::macros::paste::paste! {
            /// Entry point for the FFI.
            ///
            /// # Safety
            /// Called with the arguments of the C interface.
            #[no_mangle]
            pub unsafe extern "C" fn [<__tvm_ffi_ $name>](
                _handle: *mut ::std::ffi::c_void,
                args: *const $crate::tvm_ffi_sys::TVMFFIAny,
                num_args: i32,
                result: *mut $crate::tvm_ffi_sys::TVMFFIAny,
            ) -> i32 {
                unsafe {
                    $crate::function_internal::safe_call(args, num_args, result, |packed| {
                        $crate::function_internal::call_packed_callable($func, packed)
                    })
                }
            }
        }
    };
}

/// A closure with types that calls a [`crate::Function`].
///
/// ```
/// use tvm_ffi::*;
/// let func = Function::from_typed(|x: i32, y: i32| -> Result<i32> { Ok(x + y) });
/// let add = into_typed_fn!(func, Fn(i32, &i32) -> Result<i32>);
/// assert_eq!(add(1, &2).unwrap(), 3);
/// ```
#[macro_export]
macro_rules! into_typed_fn {
    ($f:expr, $trait:ident() -> $ret:ty) => {{
        let func = $f;
        #[allow(clippy::needless_question_mark)]
        let call = move || -> $ret { Ok(func.call_tuple_with_len::<0, _>(())?.try_into()?) };
        call
    }};
    ($f:expr, $trait:ident($t0:ty $(,)?) -> $ret:ty) => {
        $crate::__typed_fn!($f, $ret, 1, a0: $t0)
    };
    ($f:expr, $trait:ident($t0:ty, $t1:ty $(,)?) -> $ret:ty) => {
        $crate::__typed_fn!($f, $ret, 2, a0: $t0, a1: $t1)
    };
    ($f:expr, $trait:ident($t0:ty, $t1:ty, $t2:ty $(,)?) -> $ret:ty) => {
        $crate::__typed_fn!($f, $ret, 3, a0: $t0, a1: $t1, a2: $t2)
    };
    ($f:expr, $trait:ident($t0:ty, $t1:ty, $t2:ty, $t3:ty $(,)?) -> $ret:ty) => {
        $crate::__typed_fn!($f, $ret, 4, a0: $t0, a1: $t1, a2: $t2, a3: $t3)
    };
    ($f:expr, $trait:ident($t0:ty, $t1:ty, $t2:ty, $t3:ty, $t4:ty $(,)?) -> $ret:ty) => {
        $crate::__typed_fn!($f, $ret, 5, a0: $t0, a1: $t1, a2: $t2, a3: $t3, a4: $t4)
    };
    ($f:expr, $trait:ident($t0:ty, $t1:ty, $t2:ty, $t3:ty, $t4:ty, $t5:ty $(,)?) -> $ret:ty) => {
        $crate::__typed_fn!($f, $ret, 6, a0: $t0, a1: $t1, a2: $t2, a3: $t3, a4: $t4, a5: $t5)
    };
    ($f:expr, $trait:ident($t0:ty, $t1:ty, $t2:ty, $t3:ty, $t4:ty, $t5:ty, $t6:ty $(,)?) -> $ret:ty) => {
        $crate::__typed_fn!($f, $ret, 7, a0: $t0, a1: $t1, a2: $t2, a3: $t3, a4: $t4, a5: $t5, a6: $t6)
    };
    ($f:expr, $trait:ident($t0:ty, $t1:ty, $t2:ty, $t3:ty, $t4:ty, $t5:ty, $t6:ty, $t7:ty $(,)?) -> $ret:ty) => {
        $crate::__typed_fn!(
            $f, $ret, 8, a0: $t0, a1: $t1, a2: $t2, a3: $t3, a4: $t4, a5: $t5, a6: $t6, a7: $t7
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __typed_fn {
    ($f:expr, $ret:ty, $len:literal, $($arg:ident: $ty:ty),+) => {{
        let func = $f;
        #[allow(clippy::needless_question_mark)]
        let call = move |$($arg: $ty),+| -> $ret {
            let held = ($($crate::function_internal::IntoArgHolder::into_arg_holder($arg),)+);
            Ok(func.call_tuple_with_len::<$len, _>(held)?.try_into()?)
        };
        call
    }};
}
