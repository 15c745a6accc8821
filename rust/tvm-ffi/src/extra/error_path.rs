// SPDX-License-Identifier: Apache-2.0
//! The way that an error of a walk came: frames in its backtrace, and the objects in its context.
use crate::any::{Any, AnyView};
use crate::collections::List;
use crate::error::{Error, Result};
use crate::function::Function;
use crate::object::{ObjectRef, ObjectRefCore, TypeIndex};
use crate::reflection::FieldGetter;
use crate::string::String;
use crate::type_traits::type_key_of;
use tvm_ffi_sys::*;

fn with_frame(error: Error, family: &str, frame: &str) -> Error {
    // The error of the handler may be shared; it is never changed.
    let backtrace = format!("{}[native structural {family}] {frame}\n", error.backtrace());
    Error::new_with_cause_and_extra_context(
        error.kind(),
        error.message(),
        &backtrace,
        error.cause_chain().as_ref(),
        error.extra_context().as_ref(),
    )
}

/// The error came through a field.
pub(crate) fn add_field(error: Error, name: &str, family: &str) -> Error {
    with_frame(error, family, &format!("field `{name}`"))
}

/// The error came through a value.
pub(crate) fn add_object(error: Error, value: &TVMFFIAny, family: &str) -> Error {
    if value.type_index < TypeIndex::kTVMFFIStaticObjectBegin as i32 {
        return error;
    }
    let error = with_frame(error, family, &format!("object `{}`", type_key_of(value.type_index)));
    match context_of(&error, value) {
        // An error about the way must not hide the error itself.
        Ok(None) | Err(_) => error,
        Ok(Some(context)) => Error::new_with_cause_and_extra_context(
            error.kind(),
            error.message(),
            error.backtrace(),
            error.cause_chain().as_ref(),
            Some(&context),
        ),
    }
}

/// The error came out of the default descent into a value. The value is recorded here only where the caller
/// descends into another value than the one it was called with.
pub(crate) fn add_descent(error: Error, value: &TVMFFIAny, family: &str) -> Error {
    match context_of(&error, value) {
        Ok(None) => error,
        _ => add_object(error, value, family),
    }
}

/// The context with one more object, None if that is the last one already.
fn context_of(error: &Error, value: &TVMFFIAny) -> Result<Option<ObjectRef>> {
    const KEY: &str = "ffi.VisitErrorContext";
    const PATTERN: &str = "reverse_visit_pattern";
    let mut index = 0;
    // SAFETY: both pointers are valid during the call; the value is alive.
    let node = unsafe {
        let code = TVMFFITypeKeyToIndex(&TVMFFIByteArray::from_str(KEY), &mut index);
        crate::check_safe_call!(code)?;
        Any::copy_of_view(value)
    };
    let records: List<Any> = List::new();
    let mut previous = Any::new();
    if let Some(context) = error.extra_context() {
        let any = Any::from(context.clone());
        if any.type_index() == index {
            let object = ObjectRef::data(&context);
            let known: List<Any> = FieldGetter::new(index, PATTERN)?.get(&**object)?;
            previous = FieldGetter::new(index, "prev_error_context")?.get_any(&**object)?;
            if known.last().is_ok_and(|last| {
                // SAFETY: both are cells; only compared.
                unsafe { last.raw().data_union.v_ptr == node.raw().data_union.v_ptr }
            }) {
                return Ok(None);
            }
            records.extend(known.iter().collect::<Result<Vec<_>>>()?)?;
        } else {
            previous = any;
        }
    }
    records.push(node)?;
    let make: &Function = crate::cached_global_func!("ffi.MakeObjectFromPackedArgs");
    let (pattern, link) = (String::from(PATTERN), String::from("prev_error_context"));
    let type_index = index as i64;
    let made = make.call_packed(&[
        AnyView::from(&type_index),
        AnyView::from(&pattern),
        AnyView::from(&records),
        AnyView::from(&link),
        AnyView::from(&previous),
    ])?;
    made.try_into().map(Some)
}
