// SPDX-License-Identifier: Apache-2.0
//! Errors: a kind, a message, a backtrace, and what they were caused by.
use crate::derive::{Object as DeriveObject, ObjectRef as DeriveObjectRef};
use crate::object::{unsafe_, Object, ObjectArc, ObjectRef, ObjectRefCore, TypeIndex};
use std::ffi::c_void;
use std::fmt::{Debug, Display};
use tvm_ffi_sys::*;

/// What went wrong; the name of a Python exception.
///
/// ```
/// use tvm_ffi::*;
/// assert_eq!(VALUE_ERROR.to_string(), "ValueError");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorKind<'a>(&'a str);

impl ErrorKind<'_> {
    /// The name.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(KEY_ERROR.as_str(), "KeyError");
    /// ```
    pub fn as_str(&self) -> &str {
        self.0
    }
}

impl Display for ErrorKind<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

macro_rules! kinds {
    ($($name:ident = $text:literal),* $(,)?) => {$(
        #[doc = concat!("`", $text, "`.\n\n```\nuse tvm_ffi::*;\n")]
        #[doc = concat!("let error = Error::new(", stringify!($name), ", \"why\", \"\");\n")]
        #[doc = concat!("assert_eq!(error.kind().as_str(), \"", $text, "\");\n```")]
        pub const $name: ErrorKind<'static> = ErrorKind($text);
    )*};
}
kinds! {
    VALUE_ERROR = "ValueError",
    TYPE_ERROR = "TypeError",
    RUNTIME_ERROR = "RuntimeError",
    ATTRIBUTE_ERROR = "AttributeError",
    KEY_ERROR = "KeyError",
    INDEX_ERROR = "IndexError",
    INTERNAL_ERROR = "InternalError",
    OVERFLOW_ERROR = "OverflowError",
    ZERO_DIVISION_ERROR = "ZeroDivisionError",
}

/// Result of what can fail with an [`Error`].
///
/// ```
/// use tvm_ffi::*;
/// fn half(x: i64) -> Result<i64> {
///     ensure!(x % 2 == 0, VALUE_ERROR, "{x} is odd");
///     Ok(x / 2)
/// }
/// assert!(half(3).is_err());
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The object behind an [`Error`].
///
/// ```
/// use tvm_ffi::*;
/// let error = Error::new(VALUE_ERROR, "x", "");
/// assert!(error.as_node::<error::ErrorObj>().is_some());
/// ```
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.Error"]
#[type_index(TypeIndex::kTVMFFIError)]
pub struct ErrorObj {
    object: Object,
    cell: TVMFFIErrorCell,
}

/// An error, as it travels between languages.
///
/// ```
/// use tvm_ffi::{Error, VALUE_ERROR};
/// let error = Error::new(VALUE_ERROR, "too small", "");
/// assert_eq!(error.kind(), VALUE_ERROR);
/// assert_eq!(error.message(), "too small");
/// ```
#[derive(DeriveObjectRef, Clone)]
#[repr(C)]
pub struct Error {
    data: ObjectArc<ErrorObj>,
}

impl Error {
    /// An error without a cause.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(Error::new(KEY_ERROR, "no such key", "").kind(), KEY_ERROR);
    /// ```
    pub fn new(kind: ErrorKind<'_>, message: &str, traceback: &str) -> Self {
        Self::new_with_cause_and_extra_context(kind, message, traceback, None, None)
    }

    /// An error.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let cause = Error::new(KEY_ERROR, "no such key", "");
    /// let error = Error::new_with_cause_and_extra_context(VALUE_ERROR, "bad", "", Some(&cause), None);
    /// assert_eq!(error.cause_chain().unwrap().message(), "no such key");
    /// ```
    pub fn new_with_cause_and_extra_context(
        kind: ErrorKind<'_>,
        message: &str,
        traceback: &str,
        cause_chain: Option<&Error>,
        extra_context: Option<&ObjectRef>,
    ) -> Self {
        let mut out = std::ptr::null_mut();
        let cause = cause_chain.map_or(std::ptr::null_mut(), handle_of);
        let context = extra_context.map_or(std::ptr::null_mut(), handle_of);
        // SAFETY: all pointers are valid during the call; the result is owned.
        unsafe {
            let code = TVMFFIErrorCreateWithCauseAndExtraContext(
                &TVMFFIByteArray::from_str(kind.as_str()),
                &TVMFFIByteArray::from_str(message),
                &TVMFFIByteArray::from_str(traceback),
                cause,
                context,
                &mut out,
            );
            if code != 0 || out.is_null() {
                panic!("Failed to create error object");
            }
            Self { data: ObjectArc::from_raw(out as *const ErrorObj) }
        }
    }

    /// The error that a C function has just raised on this thread.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// Error::set_raised(&Error::new(KEY_ERROR, "no such key", ""));
    /// assert_eq!(Error::from_raised().message(), "no such key");
    /// ```
    ///
    /// # Panics
    /// If there is none.
    pub fn from_raised() -> Self {
        let mut out = std::ptr::null_mut();
        // SAFETY: the result is null or an owned error.
        unsafe {
            TVMFFIErrorMoveFromRaised(&mut out);
            if out.is_null() {
                panic!("Calling Error::from_raised but no error was raised");
            }
            Self { data: ObjectArc::from_raw(out as *const ErrorObj) }
        }
    }

    /// The error of a C function that has failed. Where it has not said why, an error that says so.
    #[doc(hidden)]
    #[cold]
    pub fn of_failed_call(code: i32) -> Self {
        let mut out = std::ptr::null_mut();
        // SAFETY: the result is null or an owned error.
        unsafe {
            TVMFFIErrorMoveFromRaised(&mut out);
            if out.is_null() {
                let message = format!("a function failed with code {code} and without an error");
                return Self::new(RUNTIME_ERROR, &message, "");
            }
            Self { data: ObjectArc::from_raw(out as *const ErrorObj) }
        }
    }

    /// Raises the error for the C caller on this thread.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// Error::set_raised(&Error::new(KEY_ERROR, "no such key", ""));
    /// assert_eq!(Error::from_raised().kind(), KEY_ERROR);
    /// ```
    pub fn set_raised(error: &Self) {
        // SAFETY: the error is alive; the runtime takes its own reference.
        unsafe { TVMFFIErrorSetRaised(handle_of(error)) }
    }

    /// What went wrong.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(Error::new(KEY_ERROR, "x", "").kind(), KEY_ERROR);
    /// ```
    pub fn kind(&self) -> ErrorKind<'_> {
        ErrorKind(self.data.cell.kind.as_str())
    }

    /// In words.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(Error::new(KEY_ERROR, "x", "").message(), "x");
    /// ```
    pub fn message(&self) -> &str {
        self.data.cell.message.as_str()
    }

    /// The frames, most recent call first.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(Error::new(KEY_ERROR, "x", "  a frame\n").backtrace(), "  a frame\n");
    /// ```
    pub fn backtrace(&self) -> &str {
        self.data.cell.backtrace.as_str()
    }

    /// The error that led to this one.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert!(Error::new(KEY_ERROR, "x", "").cause_chain().is_none());
    /// ```
    pub fn cause_chain(&self) -> Option<Error> {
        let handle = self.data.cell.cause_chain;
        // SAFETY: null, or an error that self keeps alive.
        unsafe { owned::<ErrorObj>(handle).map(|data| Self { data }) }
    }

    /// What else is known.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert!(Error::new(KEY_ERROR, "x", "").extra_context().is_none());
    /// ```
    pub fn extra_context(&self) -> Option<ObjectRef> {
        let handle = self.data.cell.extra_context;
        // SAFETY: null, or an object that self keeps alive.
        unsafe { owned::<Object>(handle).map(|data| ObjectRef::from_data(data)) }
    }

    /// The frames, most recent call last.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let error = Error::new(KEY_ERROR, "x", "inner\nouter");
    /// assert_eq!(error.traceback_most_recent_call_last(), "outer\ninner\n");
    /// ```
    pub fn traceback_most_recent_call_last(&self) -> std::string::String {
        let mut text = std::string::String::new();
        for line in self.backtrace().split('\n').rev() {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// The error with more frames; a shared error is copied.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let error = Error::new(KEY_ERROR, "x", "inner\n");
    /// assert_eq!(Error::with_appended_backtrace(error, "outer\n").backtrace(), "inner\nouter\n");
    /// ```
    pub fn with_appended_backtrace(this: Self, backtrace: &str) -> Self {
        if ObjectArc::strong_count(&this.data) == 1 {
            // SAFETY: nobody else has the error.
            unsafe {
                (this.data.cell.update_backtrace)(
                    handle_of(&this),
                    &TVMFFIByteArray::from_str(backtrace),
                    TVMFFIBacktraceUpdateMode::kTVMFFIBacktraceUpdateModeAppend as i32,
                );
            }
            return this;
        }
        Self::new_with_cause_and_extra_context(
            this.kind(),
            this.message(),
            &format!("{}{backtrace}", this.backtrace()),
            this.cause_chain().as_ref(),
            this.extra_context().as_ref(),
        )
    }
}

fn handle_of<R: ObjectRefCore>(value: &R) -> *mut c_void {
    // SAFETY: only the address is taken.
    unsafe { ObjectArc::as_raw(R::data(value)) as *mut c_void }
}

/// A new reference to an object, None for null.
unsafe fn owned<T: crate::object::ObjectCore>(handle: *mut c_void) -> Option<ObjectArc<T>> {
    if handle.is_null() {
        return None;
    }
    unsafe_::inc_ref(handle as *mut TVMFFIObject);
    Some(ObjectArc::from_raw(handle as *const T))
}

impl Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Traceback (most recent call last):\n{}{}: {}",
            self.traceback_most_recent_call_last(),
            self.kind(),
            self.message()
        )
    }
}

impl Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
