// SPDX-License-Identifier: Apache-2.0
//! Containers and tensors.
pub mod array;
pub mod list;
pub mod map;
pub mod shape;
pub mod tensor;

pub use array::Array;
pub use list::List;
pub use map::Map;
pub use shape::Shape;
pub use tensor::{CPUNDAlloc, NDAllocator, Tensor, TensorView};

/// The last part of the path of a type, for `Debug`.
pub(crate) fn short_type_name<T>() -> &'static str {
    let name = std::any::type_name::<T>();
    let end = name.find('<').unwrap_or(name.len());
    match name[..end].rfind("::") {
        Some(at) => &name[at + 2..],
        None => name,
    }
}

/// `ObjectRefCore`, `Clone` and the conversions of a handle with parameters. The strict check and the cast
/// are functions of the handle.
macro_rules! container_handle {
    ($name:ident<$($param:ident),+>, $obj:ty, [$($generics:tt)+], [$($any_generics:tt)+], $format:literal) => {
        // SAFETY: the handle is one pointer.
        unsafe impl<$($generics)+> ObjectRefCore for $name<$($param),+> {
            type ContainerType = $obj;
            fn data(this: &Self) -> &ObjectArc<$obj> {
                &this.data
            }
            fn into_data(this: Self) -> ObjectArc<$obj> {
                this.data
            }
            unsafe fn from_data(data: ObjectArc<$obj>) -> Self {
                Self { data, _phantom: PhantomData }
            }
        }
        impl<$($generics)+> Clone for $name<$($param),+> {
            fn clone(&self) -> Self {
                Self { data: self.data.clone(), _phantom: PhantomData }
            }
        }
        // SAFETY: stored as an object; the strict check looks at the type and at the elements.
        unsafe impl<$($any_generics)+> AnyCompatible for $name<$($param),+> {
            #[inline]
            unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny) {
                ref_any::copy_to_any_view(src, data)
            }
            #[inline]
            unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny) {
                ref_any::move_to_any(src, data)
            }
            unsafe fn check_any_strict(data: &TVMFFIAny) -> bool {
                Self::check_strict(data)
            }
            #[inline]
            unsafe fn copy_from_any_view_after_check(data: &TVMFFIAny) -> Self {
                ref_any::copy_from(data)
            }
            #[inline]
            unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self {
                ref_any::move_from(data)
            }
            unsafe fn try_cast_from_any_view(data: &TVMFFIAny) -> Result<Self, ()> {
                if Self::check_strict(data) {
                    return Ok(ref_any::copy_from(data));
                }
                Self::convert(data)
            }
            fn type_str() -> std::string::String {
                format!($format, $($param::element_type_str()),+)
            }
        }
        impl<'a, $($any_generics)+> TryFrom<AnyView<'a>> for $name<$($param),+> {
            type Error = Error;
            fn try_from(view: AnyView<'a>) -> Result<Self> {
                TryFromTemp::<Self>::try_from(view).map(TryFromTemp::into_value)
            }
        }
        impl<$($any_generics)+> TryFrom<Any> for $name<$($param),+> {
            type Error = Error;
            fn try_from(any: Any) -> Result<Self> {
                TryFromTemp::<Self>::try_from(any).map(TryFromTemp::into_value)
            }
        }
    };
}
pub(crate) use container_handle;

/// The elements of an array or a list object: both have one layout.
///
/// # Safety
/// `object` is an array or a list, and is not changed while the slice is used.
pub(crate) unsafe fn seq_elements<'a>(
    object: *const tvm_ffi_sys::TVMFFIObject,
) -> &'a [tvm_ffi_sys::TVMFFIAny] {
    let seq = object as *const array::ArrayObj;
    if (*seq).data.is_null() || (*seq).size <= 0 {
        return &[];
    }
    std::slice::from_raw_parts((*seq).data as *const tvm_ffi_sys::TVMFFIAny, (*seq).size as usize)
}
