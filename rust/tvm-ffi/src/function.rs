// SPDX-License-Identifier: Apache-2.0
//! Functions that every language can call.
use crate::any::{Any, AnyView};
use crate::derive::{Object as DeriveObject, ObjectRef as DeriveObjectRef};
use crate::error::{Error, Result, RUNTIME_ERROR, TYPE_ERROR};
use crate::function_internal::{safe_call, AsPackedCallable, TupleAsPackedArgs};
use crate::object::{Object, ObjectArc, ObjectCore, TypeIndex};
use crate::reflection::get_type_attr;
use std::ffi::c_void;
use tvm_ffi_sys::*;

/// The object behind a [`Function`].
///
/// ```
/// use tvm_ffi::*;
/// let function = Function::from_packed(|_| Ok(Any::new()));
/// assert!(function.as_node::<function::FunctionObj>().is_some());
/// ```
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.Function"]
#[type_index(TypeIndex::kTVMFFIFunction)]
pub struct FunctionObj {
    object: Object,
    cell: TVMFFIFunctionCell,
}

/// A function.
///
/// A closure that is passed to Python or C++ may be called from any thread; capture only what can be used
/// there.
///
/// ```
/// use tvm_ffi::*;
/// let add = Function::from_typed(|x: i64, y: i64| -> Result<i64> { Ok(x + y) });
/// let sum: i64 = add.call_tuple((1i64, 2i64)).unwrap().try_into().unwrap();
/// assert_eq!(sum, 3);
/// ```
#[repr(C)]
#[derive(DeriveObjectRef, Clone)]
pub struct Function {
    data: ObjectArc<FunctionObj>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ffi.Function")
    }
}

/// A closure as a function object.
#[repr(C)]
struct ClosureObj<F: 'static> {
    function: FunctionObj,
    closure: F,
}

// SAFETY: starts with a FunctionObj, and is of that type for everybody else.
unsafe impl<F: 'static> ObjectCore for ClosureObj<F> {
    const TYPE_KEY: &'static str = FunctionObj::TYPE_KEY;
    const TYPE_DEPTH: i32 = FunctionObj::TYPE_DEPTH;
    fn type_index() -> i32 {
        FunctionObj::type_index()
    }
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject {
        FunctionObj::object_header_mut(&mut this.function)
    }
}

impl Function {
    /// Calls with an array of views.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = Function::from_typed(|x: i64, y: i64| -> Result<i64> { Ok(x + y) });
    /// let sum = add.call_packed(&[AnyView::from(&1i64), AnyView::from(&2i64)]).unwrap();
    /// assert_eq!(sum.try_as::<i64>(), Some(3));
    /// ```
    #[inline]
    pub fn call_packed(&self, packed_args: &[AnyView]) -> Result<Any> {
        let mut result = Any::new();
        // SAFETY: a view is a TVMFFIAny; the callee fills the empty result.
        let code = unsafe {
            (self.data.cell.safe_call)(
                ObjectArc::as_raw(&self.data) as *mut c_void,
                packed_args.as_ptr() as *const TVMFFIAny,
                packed_args.len() as i32,
                result.as_data_ptr(),
            )
        };
        if code != 0 {
            return Err(Error::of_failed_call(code));
        }
        Ok(result)
    }

    /// Calls with a tuple of arguments.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = Function::from_typed(|x: i64, y: i64| -> Result<i64> { Ok(x + y) });
    /// assert_eq!(add.call_tuple((1i64, 2i64)).unwrap().try_as::<i64>(), Some(3));
    /// ```
    #[inline]
    pub fn call_tuple<T: TupleAsPackedArgs>(&self, tuple: T) -> Result<Any> {
        if T::LEN <= 4 {
            let mut views = [AnyView::new(); 4];
            tuple.fill_any_view(&mut views[..T::LEN]);
            self.call_packed(&views[..T::LEN])
        } else {
            let mut views = vec![AnyView::new(); T::LEN];
            tuple.fill_any_view(&mut views);
            self.call_packed(&views)
        }
    }

    /// Calls with a tuple of `LEN` arguments.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = Function::from_typed(|x: i64, y: i64| -> Result<i64> { Ok(x + y) });
    /// let sum = add.call_tuple_with_len::<2, _>((1i64, 2i64)).unwrap();
    /// assert_eq!(sum.try_as::<i64>(), Some(3));
    /// ```
    #[inline]
    pub fn call_tuple_with_len<const LEN: usize, T: TupleAsPackedArgs>(
        &self,
        tuple: T,
    ) -> Result<Any> {
        let mut views = [AnyView::new(); LEN];
        tuple.fill_any_view(&mut views);
        self.call_packed(&views)
    }

    /// The global function of a name.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let size = Function::get_global("ffi.ArraySize").unwrap();
    /// assert_eq!(size.call_tuple((Array::new(vec![1i64]),)).unwrap().try_as::<i64>(), Some(1));
    /// ```
    pub fn get_global(name: &str) -> Result<Function> {
        let mut out = std::ptr::null_mut();
        // SAFETY: the name is valid during the call; the result is null or owned.
        unsafe {
            let code = TVMFFIFunctionGetGlobal(&TVMFFIByteArray::from_str(name), &mut out);
            crate::check_safe_call!(code)?;
            if out.is_null() {
                crate::bail!(RUNTIME_ERROR, "Function {} not found", name);
            }
            Ok(Self { data: ObjectArc::from_raw(out as *const FunctionObj) })
        }
    }

    /// A reflected method of exactly this type.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert!(Function::from_type_method(64, "no_such_method").is_err());
    /// ```
    pub fn from_type_method(type_index: i32, method_name: &str) -> Result<Function> {
        // SAFETY: records of the type table are never freed.
        let info = unsafe { TVMFFIGetTypeInfo(type_index).as_ref() };
        let Some(info) = info else {
            crate::bail!(TYPE_ERROR, "Cannot find type info for type_index={}", type_index);
        };
        let key = info.type_key.as_str();
        for i in 0..info.num_methods {
            // SAFETY: the record has `num_methods` methods.
            let method = unsafe { &*info.methods.add(i as usize) };
            if method.name.as_str() != method_name {
                continue;
            }
            // SAFETY: the table owns the value.
            let view: AnyView<'static> = unsafe { AnyView::from_raw(method.method) };
            return view.try_as::<Function>().ok_or_else(|| {
                let message = format!("Method `{method_name}` of type `{key}` is not a Function");
                Error::new(TYPE_ERROR, &message, "")
            });
        }
        crate::bail!(TYPE_ERROR, "Cannot find method `{}` of type `{}`", method_name, key)
    }

    /// The same for a type key. Constructors are called `__ffi_init__`.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let root = Function::from_type_key_method("ffi.reflection.AccessPath", "_root").unwrap();
    /// assert!(root.call_tuple(()).is_ok());
    /// ```
    pub fn from_type_key_method(type_key: &str, method_name: &str) -> Result<Function> {
        let mut index = 0;
        // SAFETY: both pointers are valid during the call.
        let code =
            unsafe { TVMFFITypeKeyToIndex(&TVMFFIByteArray::from_str(type_key), &mut index) };
        crate::check_safe_call!(code)?;
        Self::from_type_method(index, method_name)
    }

    /// A type attribute that is a function.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert!(Function::from_type_attr(64, "no_such_attribute").is_err());
    /// ```
    pub fn from_type_attr(type_index: i32, attr_name: &str) -> Result<Function> {
        match get_type_attr(type_index, attr_name) {
            Some(value) => value.try_into(),
            None => crate::bail!(
                TYPE_ERROR,
                "Cannot find type attribute `{}` for type_index={}",
                attr_name,
                type_index
            ),
        }
    }

    /// Makes a function global. A name that is taken is an error.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let one = Function::from_typed(|| -> Result<i64> { Ok(1) });
    /// Function::register_global("doc.register_global", one.clone()).unwrap();
    /// assert!(Function::register_global("doc.register_global", one).is_err());
    /// ```
    pub fn register_global(name: &str, func: Function) -> Result<()> {
        // SAFETY: both are valid during the call; the table takes its own reference.
        let code = unsafe {
            TVMFFIFunctionSetGlobal(
                &TVMFFIByteArray::from_str(name),
                ObjectArc::as_raw(&func.data) as *mut c_void,
                0,
            )
        };
        crate::check_safe_call!(code)
    }

    /// A function of a closure that takes views.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let count = Function::from_packed(|args| Ok(Any::from(args.len() as i64)));
    /// assert_eq!(count.call_tuple((1i64, true)).unwrap().try_as::<i64>(), Some(2));
    /// ```
    pub fn from_packed<F>(func: F) -> Self
    where
        F: Fn(&[AnyView]) -> Result<Any> + 'static,
    {
        unsafe extern "C" fn call<F: Fn(&[AnyView]) -> Result<Any> + 'static>(
            handle: *mut c_void,
            args: *const TVMFFIAny,
            num_args: i32,
            result: *mut TVMFFIAny,
        ) -> i32 {
            let closure = &(*(handle as *const ClosureObj<F>)).closure;
            safe_call(args, num_args, result, closure)
        }
        let cell = TVMFFIFunctionCell { safe_call: call::<F>, cxx_call: std::ptr::null_mut() };
        let function = FunctionObj { object: Object::new(), cell };
        let object = ObjectArc::new_in_registry(ClosureObj { function, closure: func });
        // SAFETY: the object starts with a FunctionObj.
        unsafe {
            Self { data: ObjectArc::from_raw(ObjectArc::into_raw(object) as *const FunctionObj) }
        }
    }

    /// A function of a closure with typed parameters.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let greet = Function::from_typed(|name: String| -> Result<String> {
    ///     Ok(String::from(format!("hello, {}", name.as_str())))
    /// });
    /// assert!(greet.call_tuple((1i64,)).is_err());
    /// ```
    pub fn from_typed<F, I, O>(func: F) -> Self
    where
        F: AsPackedCallable<I, O> + 'static,
    {
        Self::from_packed(move |args: &[AnyView]| func.call_packed(args))
    }

    /// A function of C code.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// fn add(x: i64, y: i64) -> Result<i64> {
    ///     Ok(x + y)
    /// }
    /// tvm_ffi_dll_export_typed_func!(doc_from_extern_c, add);
    /// // SAFETY: the function needs no handle.
    /// let add = unsafe {
    ///     Function::from_extern_c(std::ptr::null_mut(), __tvm_ffi_doc_from_extern_c, None)
    /// };
    /// assert_eq!(add.call_tuple((1i64, 2i64)).unwrap().try_as::<i64>(), Some(3));
    /// ```
    ///
    /// # Safety
    /// `safe_call` can be called with `handle` until `deleter` has run.
    pub unsafe fn from_extern_c(
        handle: *mut c_void,
        safe_call: TVMFFISafeCallType,
        deleter: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> Self {
        let mut out = std::ptr::null_mut();
        if TVMFFIFunctionCreate(handle, safe_call, deleter, &mut out) != 0 {
            panic!("cannot create a function: {}", Error::of_failed_call(-1));
        }
        Self { data: ObjectArc::from_raw(out as *const FunctionObj) }
    }
}
