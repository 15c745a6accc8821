// SPDX-License-Identifier: Apache-2.0
//! Functions, errors, moved arguments, modules, streams.
use tvm_ffi::tvm_ffi_sys::*;
use tvm_ffi::*;

fn add_one(x: i64) -> Result<i64> {
    Ok(x + 1)
}
fn fails() -> Result<()> {
    panic!("on purpose")
}
tvm_ffi_dll_export_typed_func!(test_add_one, add_one);
tvm_ffi_dll_export_typed_func!(test_fails, fails);

#[test]
fn typed_functions_check_their_arguments() {
    assert_eq!(unsafe { TVMFFITestingDummyTarget() }, 0);
    let add = Function::from_typed(|x: i64, y: f64| -> Result<f64> { Ok(x as f64 + y) });
    assert_eq!(f64::try_from(add.call_tuple((1i64, 2i64)).unwrap()).unwrap(), 3.0);
    assert_eq!(add.call_tuple((1i64,)).unwrap_err().message(), "Expected 2 arguments, got 1");
    let error = add.call_tuple((1i64, String::from("x"))).unwrap_err();
    assert_eq!(error.message(), "Argument #1: Cannot convert from type `ffi.SmallStr` to `float`");
    let typed = into_typed_fn!(add, Fn(i64, f64) -> Result<f64>);
    assert_eq!(typed(1, 1.5).unwrap(), 2.5);
    let echo = Function::get_global("testing.echo").unwrap();
    let text = into_typed_fn!(echo.clone(), Fn(&str) -> Result<String>);
    assert_eq!(text("hello").unwrap(), "hello");
    let bytes = into_typed_fn!(echo, Fn(&[u8]) -> Result<Bytes>);
    assert_eq!(bytes(b"hello").unwrap(), b"hello");
    assert!(Function::get_global("no such function").is_err());
}

#[test]
fn panics_become_errors() {
    let bad = Function::from_typed(|| -> Result<()> { panic!("said {}", 1) });
    for _ in 0..2 {
        let error = bad.call_tuple(()).unwrap_err();
        assert_eq!((error.kind(), error.message()), (INTERNAL_ERROR, "panicked: said 1"));
    }
    let exported =
        unsafe { Function::from_extern_c(std::ptr::null_mut(), __tvm_ffi_test_fails, None) };
    assert_eq!(exported.call_tuple(()).unwrap_err().message(), "panicked: on purpose");
    let exported =
        unsafe { Function::from_extern_c(std::ptr::null_mut(), __tvm_ffi_test_add_one, None) };
    assert_eq!(i64::try_from(exported.call_tuple((1i64,)).unwrap()).unwrap(), 2);
}

/// C may pass null where there is nothing.
#[test]
fn null_arguments_and_results() {
    let mut result = TVMFFIAny::new();
    let code =
        unsafe { __tvm_ffi_test_fails(std::ptr::null_mut(), std::ptr::null(), 0, &mut result) };
    assert_eq!(code, -1);
    assert_eq!(Error::from_raised().kind(), INTERNAL_ERROR);
}

#[test]
fn errors_keep_cause_and_frames() {
    fn inner() -> Result<()> {
        bail!(VALUE_ERROR, "number {}", 3)
    }
    fn outer() -> Result<()> {
        attach_context!(inner())
    }
    let error = outer().unwrap_err();
    assert!(error.backtrace().contains("inner") && error.backtrace().contains("outer"));
    assert!(error.to_string().ends_with("ValueError: number 3"));
    let caused = Error::new_with_cause_and_extra_context(
        RUNTIME_ERROR,
        "outer",
        "",
        Some(&error),
        Some(&Shape::new().try_cast().unwrap()),
    );
    let shared = caused.clone();
    let longer = Error::with_appended_backtrace(caused, "frame\n");
    assert_eq!(longer.cause_chain().unwrap().message(), "number 3");
    assert!(longer.extra_context().is_some());
    assert_eq!((shared.backtrace(), longer.backtrace()), ("", "frame\n"));
    Error::set_raised(&error);
    assert_eq!(Error::from_raised().message(), "number 3");
    assert_eq!(Any::from(error.clone()).debug_strong_count(), Some(4));
}

#[test]
fn moved_arguments() {
    let count = Function::from_typed(|a: RValueRef<Array<i64>>| -> Result<i64> {
        Ok(Any::from(a.into_inner()).debug_strong_count().unwrap() as i64)
    });
    let array = Array::new(vec![1i64]);
    assert_eq!(i64::try_from(count.call_tuple((&array,)).unwrap()).unwrap(), 2);
    assert_eq!(i64::try_from(count.call_tuple((RValueRef::new(array),)).unwrap()).unwrap(), 1);
    let error = count.call_tuple((RValueRef::new(Shape::new()),)).unwrap_err();
    assert_eq!(
        error.message(),
        "Argument #0: Cannot convert from `RValueRef with an incompatible object type` to \
         `RValueRef<Array<int>>`"
    );
}

#[test]
fn modules_and_methods() {
    assert_eq!(unsafe { TVMFFITestingDummyTarget() }, 0);
    let module = Module::load_from_file("libtvm_ffi_testing.so").unwrap();
    assert!(module.implements_function("testing_dll_schema_id_int", false).unwrap());
    assert!(!module.implements_function("nothing", true).unwrap());
    assert!(module.get_function("nothing").is_err());
    assert!(module
        .get_function_doc("testing_dll_test_add_with_docstring", false)
        .unwrap()
        .is_some());
    let new = Function::from_type_key_method("testing.TestIntPair", "__ffi_init__").unwrap();
    let pair = new.call_tuple((1i64, 2i64)).unwrap();
    let sum = Function::from_type_key_method("testing.TestIntPair", "sum").unwrap();
    assert_eq!(i64::try_from(sum.call_tuple((&pair,)).unwrap()).unwrap(), 3);
    let error = Function::from_type_key_method("no.such.Type", "sum").unwrap_err();
    assert!(error.message().contains("no.such.Type"));
    let error = Function::from_type_key_method("testing.TestIntPair", "nothing").unwrap_err();
    assert!(error.message().contains("nothing") && error.message().contains("testing.TestIntPair"));
}

#[test]
fn streams_are_restored() {
    let cpu = DLDevice::new(DLDeviceType::kDLCPU, 0);
    let stream = 0x40 as TVMFFIStreamHandle;
    let seen = unsafe { with_stream(&cpu, stream, || Ok(current_stream(&cpu))) }.unwrap();
    assert_eq!(seen, stream);
    let failed: Result<()> = unsafe { with_stream(&cpu, stream, || bail!(VALUE_ERROR, "no")) };
    assert!(failed.is_err());
    let panicked = std::panic::catch_unwind(|| unsafe {
        let _ = with_stream(&cpu, stream, || -> Result<()> { panic!() });
    });
    assert!(panicked.is_err());
    assert!(current_stream(&cpu).is_null());
}
