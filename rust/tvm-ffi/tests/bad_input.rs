// SPDX-License-Identifier: Apache-2.0
//! What goes wrong is an error or a panic with a message, and never memory that is not ours.
use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use tvm_ffi::object::ObjectRef;
use tvm_ffi::tvm_ffi_sys::*;
use tvm_ffi::*;

/// One value of every kind.
fn values() -> Vec<(&'static str, Any)> {
    vec![
        ("None", Any::new()),
        ("int", Any::from(1i64)),
        ("bool", Any::from(true)),
        ("float", Any::from(1.5f64)),
        ("void*", Any::from(1 as *mut c_void)),
        ("DataType", Any::from(DLDataType::new(DLDataTypeCode::kDLInt, 8, 1))),
        ("Device", Any::from(DLDevice::new(DLDeviceType::kDLCPU, 0))),
        ("SmallStr", Any::from(String::from("short"))),
        ("ffi.String", Any::from(String::from("longer than seven"))),
        ("SmallBytes", Any::from(Bytes::from(b"short"))),
        ("ffi.Bytes", Any::from(Bytes::from(b"longer than seven"))),
        ("BigInt", Any::from(BigInt::from(u64::MAX))),
        ("ffi.Array", Any::from(Array::new(vec![Any::from(1i64), Any::from(Shape::new())]))),
        ("ffi.List", Any::from([Any::new()].into_iter().collect::<List<Any>>())),
        ("ffi.Map", Any::from(Map::<i64, i64>::from_iter([(1, 2)]))),
        ("ffi.Shape", Any::from(Shape::from([1i64]))),
        ("ffi.Tensor", Any::from(Tensor::from_slice(&[1f32], &[1]).unwrap())),
        ("ffi.Error", Any::from(Error::new(VALUE_ERROR, "x", ""))),
        ("ffi.Function", Any::from(Function::from_packed(|_| Ok(Any::new())))),
        ("Unchanged", Any::from(Unchanged)),
    ]
}

/// Every conversion of every value: from an owned value, from a view and as an argument, with one answer.
fn converts<T>(accepted: &[&str])
where
    T: AnyCompatible + TryFrom<Any, Error = Error> + 'static,
    for<'a> T: TryFrom<AnyView<'a>, Error = Error>,
{
    let take = Function::from_typed(|_: T| -> Result<()> { Ok(()) });
    for (name, value) in values() {
        let count = value.debug_strong_count();
        let expected = accepted.contains(&name);
        assert_eq!(T::try_from(value.clone()).is_ok(), expected, "{name} to {}", T::type_str());
        assert_eq!(T::try_from(AnyView::from(&value)).is_ok(), expected, "{name}");
        assert_eq!(take.call_packed(&[AnyView::from(&value)]).is_ok(), expected, "{name}");
        if !expected {
            assert!(value.try_as::<T>().is_none());
            let error = T::try_from(value.clone()).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), TYPE_ERROR);
            assert!(error.message().contains(&T::type_str()), "{}", error.message());
            let error = take.call_packed(&[AnyView::from(&value)]).map(|_| ()).unwrap_err();
            assert!(error.message().starts_with("Argument #0: "), "{}", error.message());
        }
        assert_eq!(value.debug_strong_count(), count, "{name} leaks");
    }
}

#[test]
fn wrong_types_in_every_conversion() {
    converts::<i64>(&["int", "bool"]);
    converts::<u8>(&["int", "bool"]);
    converts::<f64>(&["int", "bool", "float"]);
    converts::<f32>(&["int", "bool", "float"]);
    converts::<bool>(&["int", "bool"]);
    converts::<()>(&["None"]);
    converts::<*mut c_void>(&["None", "void*"]);
    converts::<DLDataType>(&["DataType"]);
    converts::<DLDevice>(&["Device"]);
    converts::<String>(&["SmallStr", "ffi.String"]);
    converts::<Bytes>(&["SmallBytes", "ffi.Bytes"]);
    converts::<BigInt>(&["int", "bool", "BigInt"]);
    converts::<Array<Any>>(&["ffi.Array", "ffi.List"]);
    converts::<Array<i64>>(&[]);
    converts::<List<Any>>(&["ffi.Array", "ffi.List"]);
    converts::<List<Shape>>(&[]);
    converts::<Map<Any, Any>>(&["ffi.Map"]);
    converts::<Map<i64, String>>(&[]);
    converts::<Shape>(&["ffi.Shape"]);
    converts::<Tensor>(&["ffi.Tensor"]);
    converts::<Error>(&["ffi.Error"]);
    converts::<Function>(&["ffi.Function"]);
    converts::<Module>(&[]);
    converts::<Unchanged>(&["Unchanged"]);
    converts::<Option<Shape>>(&["None", "ffi.Shape"]);
    converts::<ObjectRef>(&[
        "ffi.String",
        "ffi.Bytes",
        "BigInt",
        "ffi.Array",
        "ffi.List",
        "ffi.Map",
        "ffi.Shape",
        "ffi.Tensor",
        "ffi.Error",
        "ffi.Function",
    ]);
}

fn no_arguments() -> Result<i64> {
    Ok(1)
}
tvm_ffi_dll_export_typed_func!(bad_input_no_arguments, no_arguments);
fn one_argument(x: i64) -> Result<i64> {
    Ok(x)
}
tvm_ffi_dll_export_typed_func!(bad_input_one_argument, one_argument);

#[test]
fn null_from_c() {
    let null = std::ptr::null_mut();
    let mut result = TVMFFIAny::new();
    unsafe {
        assert_eq!(__tvm_ffi_bad_input_no_arguments(null, std::ptr::null(), 0, &mut result), 0);
        assert_eq!(result.data_union.v_int64, 1);
        // No argument where one is wanted, with null and with a negative count.
        for count in [0, -1] {
            let code = __tvm_ffi_bad_input_one_argument(null, std::ptr::null(), count, &mut result);
            assert_eq!(code, -1);
            assert_eq!(Error::from_raised().message(), "Expected 1 arguments, got 0");
        }
    }
    // A moved reference that is null, and one whose slot is null.
    let mut slot: *mut TVMFFIObject = std::ptr::null_mut();
    for at in [std::ptr::null_mut(), (&raw mut slot) as *mut c_void] {
        let mut cell = TVMFFIAny::new();
        cell.type_index = TypeIndex::kTVMFFIObjectRValueRef as i32;
        cell.data_union.v_ptr = at;
        let view: AnyView = unsafe { std::mem::transmute(cell) };
        let error = RValueRef::<Shape>::try_from(view).map(|_| ()).unwrap_err();
        assert!(error.message().contains("an already-moved RValueRef"));
    }
    // Bytes and text without memory.
    let empty = TVMFFIByteArray::new(std::ptr::null(), 0);
    assert_eq!(empty.as_str(), "");
    let mut cell = TVMFFIAny::new();
    cell.type_index = TypeIndex::kTVMFFIByteArrayPtr as i32;
    cell.data_union.v_ptr = &empty as *const _ as *mut c_void;
    let view: AnyView = unsafe { std::mem::transmute(cell) };
    assert!(Bytes::try_from(view).unwrap().is_empty());
}

#[test]
fn text_that_is_not_utf8() {
    let mut cell = TVMFFIAny::new();
    cell.type_index = TypeIndex::kTVMFFIRawStr as i32;
    cell.data_union.v_c_str = c"\xff\xfe".as_ptr() as *const _;
    let view: AnyView = unsafe { std::mem::transmute(cell) };
    let panic = catch_unwind(AssertUnwindSafe(|| String::try_from(view).is_ok())).unwrap_err();
    assert!(panic.downcast_ref::<std::string::String>().unwrap().contains("Invalid UTF-8"));
    // A callback reports it; nothing unwinds into C.
    let take = Function::from_typed(|text: String| -> Result<i64> { Ok(text.len() as i64) });
    let error = take.call_packed(&[view]).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), INTERNAL_ERROR);
    assert!(error.message().contains("Invalid UTF-8"));
    assert_eq!(take.call_tuple((String::from("fine"),)).unwrap().try_as::<i64>(), Some(4));
    assert!(DLDataType::try_from_str("\u{0}").is_err());
}

#[test]
fn indices_and_sizes_that_overflow() {
    let array = Array::new(vec![1i64]);
    assert_eq!(array.get(usize::MAX).unwrap_err().kind(), INDEX_ERROR);
    assert!(catch_unwind(AssertUnwindSafe(|| array[usize::MAX].type_index())).is_err());
    let list: List<i64> = [1, 2].into_iter().collect();
    for error in [
        list.get(usize::MAX).map(|_| ()).unwrap_err(),
        list.set(usize::MAX, 1).unwrap_err(),
        list.insert(usize::MAX, 1).unwrap_err(),
        list.remove(usize::MAX).map(|_| ()).unwrap_err(),
        list.remove_range(0, usize::MAX).unwrap_err(),
        list.remove_range(usize::MAX, 0).unwrap_err(),
        list.insert_many(usize::MAX, [1]).unwrap_err(),
    ] {
        assert_eq!(error.kind(), INDEX_ERROR);
    }
    for huge in [usize::MAX, usize::MAX / 2, 1 << 60] {
        assert!(list.reserve(huge).is_err(), "{huge}");
        assert!(list.resize(huge, 1).is_err(), "{huge}");
    }
    assert_eq!(list.len(), 2);
    list.truncate(usize::MAX);
    assert_eq!(list.len(), 2);
    for shape in [&[i64::MAX, i64::MAX][..], &[1 << 62, 4], &[-1, -1], &[i64::MIN]] {
        assert!(Tensor::from_slice(&[1f32], shape).is_err(), "{shape:?}");
    }
    let tensor = Tensor::from_slice(&[1f32, 2.0], &[2]).unwrap();
    assert!(tensor.data_as_slice::<u64>().is_err());
}

#[test]
fn use_after_move() {
    let moved = RValueRef::new(Shape::new());
    let take = Function::from_typed(|s: RValueRef<Shape>| -> Result<()> {
        drop(s);
        Ok(())
    });
    take.call_packed(&[AnyView::from(&moved)]).unwrap();
    for _ in 0..2 {
        let error = take.call_packed(&[AnyView::from(&moved)]).map(|_| ()).unwrap_err();
        assert!(error.message().contains("already-moved"));
    }
    assert!(catch_unwind(AssertUnwindSafe(|| moved.into_inner())).is_err());
}

#[test]
fn panics_of_closures_and_destructors() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in a destructor")
        }
    }
    let bomb = Bomb;
    let function = Function::from_packed(move |_| {
        let _keep = &bomb;
        panic!("in a closure")
    });
    let error = function.call_packed(&[]).map(|_| ()).unwrap_err();
    assert_eq!((error.kind(), error.message()), (INTERNAL_ERROR, "panicked: in a closure"));
    // The destructor runs when C++ or Rust drops the last reference: it is reported and ends there.
    drop(function);
    let odd = Function::from_packed(|_| std::panic::panic_any(5));
    assert_eq!(
        odd.call_packed(&[]).map(|_| ()).unwrap_err().message(),
        "panicked: unknown payload"
    );
    // A panic between languages: Rust calls C++, which calls Rust.
    assert_eq!(unsafe { TVMFFITestingDummyTarget() }, 0);
    let apply = Function::get_global("testing.apply").unwrap();
    let error = apply.call_tuple((&odd,)).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), INTERNAL_ERROR);
}

#[test]
fn libraries_that_are_not_ours() {
    for path in ["/no/such/library.so", "/proc/self/maps", "libm.so.6"] {
        match Module::load_from_file(path) {
            Err(error) => assert!(!error.message().is_empty()),
            Ok(module) => {
                let error = module.get_function("anything").map(|_| ()).unwrap_err();
                assert!(!error.message().is_empty());
            }
        }
    }
    // A type that another level of the interface defines is not bound to something else.
    let error =
        Function::from_type_key_method("ffi.FromAnotherLevel", "x").map(|_| ()).unwrap_err();
    assert!(error.message().contains("ffi.FromAnotherLevel"));
    let panic = catch_unwind(|| cached_global_func!("ffi.from_another_level").clone());
    assert!(panic.is_err());
}
