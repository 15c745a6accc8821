// SPDX-License-Identifier: Apache-2.0
//! Modules: libraries of functions.
use crate::derive::{Object as DeriveObject, ObjectRef as DeriveObjectRef};
use crate::error::Result;
use crate::function::Function;
use crate::object::{Object, ObjectArc, TypeIndex};
use crate::string::String;

/// The object behind a [`Module`].
///
/// ```
/// use tvm_ffi::*;
/// assert_eq!(extra::module::ModuleObj::TYPE_KEY, "ffi.Module");
/// ```
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.Module"]
#[type_index(TypeIndex::kTVMFFIModule)]
#[type_final]
pub struct ModuleObj {
    object: Object,
}

/// A library of functions.
///
/// ```no_run
/// use tvm_ffi::*;
/// # fn main() -> Result<()> {
/// let module = Module::load_from_file("add.so")?;
/// let add = module.get_function("add")?;
/// let sum: i64 = add.call_tuple((1i64, 2i64))?.try_into()?;
/// # Ok(()) }
/// ```
#[repr(C)]
#[derive(DeriveObjectRef, Clone)]
pub struct Module {
    data: ObjectArc<ModuleObj>,
}

impl Module {
    /// Loads a library.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let error = Module::load_from_file("no_such_library.so").map(|_| ()).unwrap_err();
    /// assert!(error.message().contains("no_such_library.so"));
    /// ```
    pub fn load_from_file<S: AsRef<str>>(path: S) -> Result<Module> {
        crate::cached_global_func!("ffi.ModuleLoadFromFile")
            .call_tuple((String::from(path),))?
            .try_into()
    }

    /// A function of the module or of one that it imports.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// fn sum(path: &str) -> Result<i64> {
    ///     let add = Module::load_from_file(path)?.get_function("add")?;
    ///     add.call_tuple((1i64, 2i64))?.try_into()
    /// }
    /// assert!(sum("no_such_library.so").is_err());
    /// ```
    pub fn get_function<S: AsRef<str>>(&self, name: S) -> Result<Function> {
        crate::cached_global_func!("ffi.ModuleGetFunction")
            .call_tuple((self, String::from(name), true))?
            .try_into()
    }

    /// Whether there is a function of a name.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// fn has_add(path: &str) -> Result<bool> {
    ///     Module::load_from_file(path)?.implements_function("add", false)
    /// }
    /// assert!(has_add("no_such_library.so").is_err());
    /// ```
    pub fn implements_function<S: AsRef<str>>(&self, name: S, query_imports: bool) -> Result<bool> {
        crate::cached_global_func!("ffi.ModuleImplementsFunction")
            .call_tuple((self, String::from(name), query_imports))?
            .try_into()
    }

    /// The signature of a function.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// fn metadata(path: &str) -> Result<Option<String>> {
    ///     Module::load_from_file(path)?.get_function_metadata("add", false)
    /// }
    /// assert!(metadata("no_such_library.so").is_err());
    /// ```
    pub fn get_function_metadata<S: AsRef<str>>(
        &self,
        name: S,
        query_imports: bool,
    ) -> Result<Option<String>> {
        crate::cached_global_func!("ffi.ModuleGetFunctionMetadata")
            .call_tuple((self, String::from(name), query_imports))?
            .try_into()
    }

    /// The documentation of a function.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// fn doc(path: &str) -> Result<Option<String>> {
    ///     Module::load_from_file(path)?.get_function_doc("add", false)
    /// }
    /// assert!(doc("no_such_library.so").is_err());
    /// ```
    pub fn get_function_doc<S: AsRef<str>>(
        &self,
        name: S,
        query_imports: bool,
    ) -> Result<Option<String>> {
        crate::cached_global_func!("ffi.ModuleGetFunctionDoc")
            .call_tuple((self, String::from(name), query_imports))?
            .try_into()
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ffi.Module")
    }
}
