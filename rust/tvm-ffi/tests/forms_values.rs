// SPDX-License-Identifier: Apache-2.0
//! Values of every kind through `Any`, `AnyView`, functions and containers, form by form.
// The forms are tested as users may write them.
#![allow(clippy::all)]
#![allow(dropping_copy_types, unpredictable_function_pointer_comparisons, unused_assignments)]
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use tvm_ffi::any::TryFromTemp;
use tvm_ffi::collections::array::ArrayObj;
use tvm_ffi::collections::tensor::DLTensorExt;
use tvm_ffi::dtype::AsDLDataType;
use tvm_ffi::error::{Error as E2, ErrorKind as K2};
use tvm_ffi::function::FunctionObj;
use tvm_ffi::function_internal::{
    call_packed_callable, ArgIntoRef, AsPackedCallable, IntoArgHolder, IntoArgHolderTuple,
    TupleAsPackedArgs,
};
use tvm_ffi::object::{is_instance_of, ObjectRef};
use tvm_ffi::tvm_ffi_sys::{self, DLTensor, TVMFFIByteArray};
use tvm_ffi::*;

macro_rules! integers {
    ($($name:ident: $ty:ty = $value:expr),* $(,)?) => {$(
        #[test]
        fn $name() {
            let value: $ty = $value;
            let any = Any::from(value);
            assert_eq!(any.type_index(), TypeIndex::kTVMFFIInt as i32);
            assert_eq!(any.try_as::<$ty>(), Some(value));
            assert_eq!(<$ty>::try_from(any).unwrap(), value);
            let view = AnyView::from(&value);
            assert_eq!(view.type_index(), TypeIndex::kTVMFFIInt as i32);
            let back: $ty = view.try_into().unwrap();
            assert_eq!(back, value);
            assert_eq!(value.to_any().try_as::<$ty>(), Some(value));
        }
    )*};
}
integers! {
    int_i8: i8 = 127, int_i16: i16 = 32767, int_i32: i32 = 42, int_i64: i64 = 123456789,
    int_isize: isize = 42, int_u8: u8 = 255, int_u16: u16 = 65535, int_u32: u32 = u32::MAX,
    int_u64: u64 = u64::MAX, int_usize: usize = 42, int_min: i64 = i64::MIN, int_neg: i8 = -128,
}

#[test]
fn floats_bools_none_pointers() {
    assert_eq!(f32::try_from(Any::from(3.14f32)).unwrap(), 3.14f32);
    assert_eq!(f64::try_from(AnyView::from(&3.14f64)).unwrap(), 3.14);
    assert_eq!(f64::try_from(Any::from(2i64)).unwrap(), 2.0);
    assert_eq!(f64::try_from(Any::from(true)).unwrap(), 1.0);
    assert!(i64::try_from(Any::from(2.0f64)).is_err());
    assert_eq!(i64::try_from(Any::from(true)).unwrap(), 1);
    let int = Any::from(42i64);
    assert!(int.try_as::<bool>().is_none());
    assert!(bool::try_from(int).unwrap());
    assert!(!bool::try_from(Any::from(0i64)).unwrap());
    let e = i32::try_from(Any::new()).unwrap_err();
    assert!(e.message().contains("`None` to `int`"));
    assert_eq!(e.kind(), tvm_ffi::error::TYPE_ERROR);
    let e = Option::<i32>::try_from(Any::from(1.5f64)).unwrap_err();
    assert!(e.message().contains("`float` to `Optional<int>`"), "{}", e.message());
    let e = i64::try_from(Any::from(Error::new(VALUE_ERROR, "x", ""))).unwrap_err();
    assert!(e.message().contains("`ffi.Error` to `int`"));
    let null = Any::from(std::ptr::null_mut());
    assert_eq!(null.type_index(), TypeIndex::kTVMFFIOpaquePtr as i32);
    let p: *mut c_void = null.try_into().unwrap();
    assert!(p.is_null());
    let p: *mut c_void = Any::new().try_into().unwrap();
    assert!(p.is_null());
    let some: Option<i32> = Some(3);
    let none: Option<i32> = None;
    assert_eq!(Any::from(some).type_index(), 1);
    assert_eq!(Any::from(none).type_index(), 0);
    assert_eq!(AnyView::from(&none).type_index(), 0);
    let back: Option<i32> = AnyView::from(&some).try_into().unwrap();
    assert_eq!(back, Some(3));
    let back: Option<i32> = AnyView::new().try_into().unwrap();
    assert_eq!(back, None);
    assert_eq!(Option::<i32>::try_from(Any::from(true)).unwrap(), Some(1));
    let unit: () = Any::new().try_into().unwrap();
    assert_eq!(unit, ());
    assert_eq!(Any::from(()).type_index(), 0);
    assert!(<()>::try_from(Any::from(1)).is_err());
    let nested: Option<Option<i64>> = Any::from(5i64).try_into().unwrap();
    assert_eq!(nested, Some(Some(5)));
    assert_eq!(AnyView::default().type_index(), 0);
    assert_eq!(Any::default().type_index(), 0);
    let copy = AnyView::from(&AnyView::from(&5i64));
    assert_eq!(copy.try_as::<i64>(), Some(5));
    assert_eq!(TryFromTemp::into_value(TryFromTemp::<i64>::try_from(Any::from(1i64)).unwrap()), 1);
    assert_eq!(TryFromTemp::into_value(TryFromTemp::new(3)), 3);
    assert_eq!(<Option<i64>>::type_str(), "Optional<int>");
    assert_eq!(<*mut c_void>::type_str(), "void*");
    assert_eq!(Array::<f32>::type_str(), "Array<float>");
    assert_eq!(Array::<Any>::type_str(), "Array<Any>");
    assert_eq!(Map::<String, Any>::type_str(), "Map<ffi.String, Any>");
    assert_eq!(ObjectRef::type_str(), "ffi.Object");
}

#[test]
fn counts() {
    let s = String::from("a string on the heap");
    let any = Any::from(s);
    assert_eq!(any.debug_strong_count(), Some(1));
    let view = AnyView::from(&any);
    assert_eq!(view.debug_strong_count(), Some(1));
    let owned = Any::from(view);
    assert_eq!(view.debug_strong_count(), Some(2));
    let third = any.clone();
    assert_eq!(any.debug_strong_count(), Some(3));
    let s: String = third.try_into().unwrap();
    assert_eq!(any.debug_strong_count(), Some(3));
    let s2: String = view.try_into().unwrap();
    assert_eq!(view.debug_strong_count(), Some(4));
    let a = s.to_any();
    assert_eq!(a.debug_strong_count(), Some(5));
    drop((s, s2, owned));
    assert_eq!(a.debug_strong_count(), Some(2));
    assert_eq!(Any::from(String::from("short")).debug_strong_count(), None);
    assert_eq!(Any::from(String::from("short")).type_index(), TypeIndex::kTVMFFISmallStr as i32);
    assert_eq!(Any::from(Bytes::from(b"short")).type_index(), TypeIndex::kTVMFFISmallBytes as i32);
    assert_eq!(Any::from(Bytes::from(b"longer than it")).type_index(), 66);
    let mut raw = Any::from(5i64);
    unsafe {
        assert_eq!((*raw.as_data_ptr()).type_index, 1);
        let cell = Any::into_raw_ffi_any(raw);
        assert_eq!(Any::from_raw_ffi_any(cell).try_as::<i64>(), Some(5));
    }
    assert_eq!(std::mem::size_of::<Any>(), 16);
    assert_eq!(std::mem::size_of::<AnyView>(), 16);
}

#[test]
fn strings_and_bytes() {
    let mut out = Vec::new();
    let bytes: Bytes = [1, 2, 3].into();
    out.push(format!("{bytes} {bytes:?}"));
    assert_eq!(Bytes::from(&[]).len(), 0);
    assert_eq!(Bytes::from(b"abc"), b"abc");
    assert_eq!(Bytes::new(), Bytes::default());
    assert!(bytes.is_empty() == false && bytes.as_slice() == [1, 2, 3]);
    assert_eq!(&bytes[..], &[1, 2, 3]);
    assert_eq!(bytes, vec![1u8, 2, 3]);
    assert_eq!(bytes, [1u8, 2, 3]);
    let s = String::from("héllo");
    out.push(format!("{s} {s:?}"));
    assert_eq!(s.len(), 6);
    assert_eq!(s, "héllo");
    assert_eq!(s, "héllo".to_string());
    assert!(s == std::string::String::from("héllo"));
    assert!(s != "x" && s.as_str() == "héllo" && s.as_bytes()[0] == b'h');
    assert_eq!(s.chars().count(), 5);
    assert!(String::from("a") < String::from("b"));
    assert!(String::from("b") > String::from("a") && String::from("a") <= String::from("a"));
    assert_eq!(String::from("a").cmp(&String::from("b")), std::cmp::Ordering::Less);
    let mut set = HashSet::new();
    set.insert(String::from("x"));
    assert!(set.contains(&String::from("x")));
    let mut map: HashMap<Bytes, i32> = HashMap::new();
    map.insert(Bytes::from(b"k"), 1);
    assert_eq!(map[&Bytes::from(b"k")], 1);
    let small = String::from("1234567");
    let big = String::from("12345678");
    assert_ne!(small.as_bytes().as_ptr(), small.clone().as_bytes().as_ptr());
    assert_eq!(big.as_bytes().as_ptr(), big.clone().as_bytes().as_ptr());
    assert_eq!(String::new(), "");
    assert!(String::default().is_empty());
    let from_owned: String = "owned".to_string().into();
    assert_eq!(from_owned, "owned");
    assert_eq!(String::from(&"ref".to_string()), "ref");
    let from_cow: String = std::borrow::Cow::Borrowed("cow").into();
    assert_eq!(from_cow, "cow");
    assert_eq!(
        out,
        ["[1, 2, 3] ffi.Bytes { data: [1, 2, 3] }", "\"héllo\" ffi.String { data: \"héllo\" }"]
    );
}

#[test]
fn raw_strings_of_c() {
    // Functions get what C passes.
    let f = Function::from_typed(|s: String| -> Result<String> { Ok(s) });
    let mut view = TVMFFIAny::new();
    let text = c"from C";
    view.type_index = TypeIndex::kTVMFFIRawStr as i32;
    view.data_union.v_c_str = text.as_ptr() as *const i8;
    let view: AnyView = unsafe { std::mem::transmute(view) };
    let back: String = f.call_packed(&[view]).unwrap().try_into().unwrap();
    assert_eq!(back, "from C");
    let owned = Any::from(view);
    assert_eq!(owned.type_index(), TypeIndex::kTVMFFISmallStr as i32);
    assert_eq!(String::try_from(view).unwrap(), "from C");
    assert!(view.try_as::<String>().is_none());
    let array = unsafe { TVMFFIByteArray::from_str("bytes!!!!") };
    assert_eq!(array.as_str(), "bytes!!!!");
    let mut view = TVMFFIAny::new();
    view.type_index = TypeIndex::kTVMFFIByteArrayPtr as i32;
    view.data_union.v_ptr = &array as *const _ as *mut c_void;
    let view: AnyView = unsafe { std::mem::transmute(view) };
    assert_eq!(Bytes::try_from(view).unwrap(), b"bytes!!!!");
    assert_eq!(Any::from(view).type_index(), TypeIndex::kTVMFFIBytes as i32);
}

#[test]
fn dtypes_devices() {
    for name in ["int32", "float32", "uint8", "bool", "float16x4", "bfloat16", "handle"] {
        let dtype = DLDataType::try_from_str(name).unwrap();
        assert_eq!(dtype.to_string(), name);
        assert_eq!(DLDataTypeExt::to_string(&dtype), name);
        let any = Any::from(dtype);
        assert_eq!(any.type_index(), TypeIndex::kTVMFFIDataType as i32);
        assert_eq!(DLDataType::try_from(any).unwrap(), dtype);
        assert_eq!(DLDataType::try_from(Any::from(String::from(name))).unwrap(), dtype);
    }
    assert!(DLDataType::try_from_str("nothing").is_err());
    assert!(DLDataType::try_from(Any::from(String::from("nothing"))).is_err());
    assert_eq!(f32::DL_DATA_TYPE, DLDataType::new(DLDataTypeCode::kDLFloat, 32, 1));
    assert_eq!(<u8 as AsDLDataType>::DL_DATA_TYPE.bits, 8);
    let device = DLDevice::new(DLDeviceType::kDLCUDA, 1);
    let back: DLDevice = Any::from(device).try_into().unwrap();
    assert_eq!(back, device);
    assert!(format!("{device:?}").contains("kDLCUDA"));
    assert!(current_stream(&DLDevice::new(DLDeviceType::kDLCPU, 0)).is_null());
}

#[test]
fn errors() {
    let e = E2::new(VALUE_ERROR, "message", "trace\n");
    assert_eq!(e.kind(), VALUE_ERROR);
    assert_eq!(e.kind().as_str(), "ValueError");
    assert_eq!(format!("{}", e.kind()), "ValueError");
    assert_eq!(format!("{:?}", e.kind()), "ErrorKind(\"ValueError\")");
    let kind: K2<'_> = e.kind().clone();
    assert_eq!(kind, VALUE_ERROR);
    assert_eq!(e.to_string(), "Traceback (most recent call last):\n\ntrace\nValueError: message");
    assert_eq!(format!("{e:?}"), e.to_string());
    let two = Error::new(KEY_ERROR, "m", "a\nb\n");
    assert_eq!(two.traceback_most_recent_call_last(), "\nb\na\n");
    assert_eq!(two.backtrace(), "a\nb\n");
    E2::set_raised(&e);
    let raised = Error::from_raised();
    assert_eq!(ObjectArc::strong_count(Error::data(&raised)), 2);
    assert!(raised.cause_chain().is_none() && raised.extra_context().is_none());
    for (kind, name) in [
        (ATTRIBUTE_ERROR, "AttributeError"),
        (INDEX_ERROR, "IndexError"),
        (RUNTIME_ERROR, "RuntimeError"),
        (TYPE_ERROR, "TypeError"),
        (INTERNAL_ERROR, "InternalError"),
    ] {
        assert_eq!(kind.as_str(), name);
    }
    let boxed: Box<dyn std::error::Error> = Box::new(e);
    assert!(boxed.to_string().contains("message"));
    fn question() -> Result<i64> {
        let x: i64 = Any::from(1.5f64).try_into()?;
        Ok(x)
    }
    assert!(question().is_err());
    fn ensured(x: i64) -> Result<i64> {
        ensure!(x > 0, VALUE_ERROR, "x is {x}, {}", "bad",);
        Ok(x)
    }
    assert_eq!(ensured(-1).unwrap_err().message(), "x is -1, bad");
    assert!(ensured(-1).unwrap_err().backtrace().contains("ensured"));
    assert!(check_safe_call!(0).is_ok());
}

#[test]
fn functions_and_arguments() {
    let echo = Function::get_global("testing.echo").unwrap();
    let _ = unsafe { tvm_ffi_sys::TVMFFITestingDummyTarget() };
    let any = Any::from(5i64);
    assert_eq!(echo.call_tuple((&any,)).unwrap().try_as::<i64>(), Some(5));
    assert_eq!(echo.call_tuple((any,)).unwrap().try_as::<i64>(), Some(5));
    assert_eq!(echo.call_tuple(((),)).unwrap().type_index(), 0);
    let opt = Some(5i64);
    assert_eq!(echo.call_tuple((&opt,)).unwrap().try_as::<i64>(), Some(5));
    assert_eq!(
        echo.call_tuple((DLDataType::new(DLDataTypeCode::kDLInt, 8, 1),)).unwrap().type_index(),
        5
    );
    assert_eq!(echo.call_tuple((DLDevice::new(DLDeviceType::kDLCPU, 0),)).unwrap().type_index(), 6);
    let array = Array::new(vec![1i64]);
    assert_eq!(echo.call_tuple((&array,)).unwrap().type_index(), 71);
    assert_eq!(echo.call_tuple((array,)).unwrap().type_index(), 71);
    let map: Map<i64, i64> = [(1, 2)].into_iter().collect();
    assert_eq!(echo.call_tuple((&map,)).unwrap().type_index(), 72);
    assert_eq!(echo.call_tuple_with_len::<1, _>((map,)).unwrap().type_index(), 72);
    assert_eq!(echo.call_tuple((String::from("x"),)).unwrap().type_index(), 11);
    assert_eq!(echo.call_tuple((&Bytes::from(b"x"),)).unwrap().type_index(), 12);
    assert_eq!(echo.call_tuple((1.5f32,)).unwrap().type_index(), 3);
    assert_eq!(echo.call_tuple((true,)).unwrap().type_index(), 2);
    assert_eq!(echo.call_tuple((3u8,)).unwrap().type_index(), 1);
    assert_eq!(echo.call_tuple((&echo,)).unwrap().type_index(), 68);
    assert_eq!(echo.call_packed(&[AnyView::from(&echo)]).unwrap().type_index(), 68);
    let eight = Function::from_typed(
        |a: i64, b: i64, c: i64, d: i64, e: i64, f: i64, g: i64, h: i64| -> Result<i64> {
            Ok(a + b + c + d + e + f + g + h)
        },
    );
    let sum = eight.call_tuple((1i64, 2i64, 3i64, 4i64, 5i64, 6i64, 7i64, 8i64)).unwrap();
    assert_eq!(sum.try_as::<i64>(), Some(36));
    let typed = into_typed_fn!(eight, Fn(i64, i64, i64, i64, i64, i64, i64, i64) -> Result<i64>);
    assert_eq!(typed(1, 1, 1, 1, 1, 1, 1, 1).unwrap(), 8);
    let none = Function::from_typed(|| -> Result<()> { Ok(()) });
    let none = into_typed_fn!(none, Fn() -> Result<()>);
    none().unwrap();
    let boxed: Box<dyn Fn(i32, &i32) -> Result<i32>> = {
        let f = Function::from_typed(|a: i32, b: i32| -> Result<i32> { Ok(a + b) });
        Box::new(into_typed_fn!(f, Fn(i32, &i32) -> Result<i32>))
    };
    assert_eq!(boxed(1, &2).unwrap(), 3);
    fn item(x: f32) -> Result<f32> {
        Ok(x + 1.0)
    }
    let f = Function::from_typed(item);
    assert_eq!(f.call_tuple((1i64,)).unwrap().try_as::<f64>(), Some(2.0));
    let e = f.call_tuple(()).map(|_| ()).unwrap_err();
    assert_eq!((e.kind(), e.message()), (VALUE_ERROR, "Expected 1 arguments, got 0"));
    let e = f.call_tuple((String::from("x"),)).map(|_| ()).unwrap_err();
    assert_eq!(e.kind(), TYPE_ERROR);
    let apply = Function::get_global("testing.apply").unwrap();
    let r = apply.call_tuple((&f, 1.5f64)).unwrap();
    assert_eq!(r.try_as::<f64>(), Some(2.5));
    let e = Function::get_global("no.such").map(|_| ()).unwrap_err();
    assert_eq!((e.kind(), e.message()), (RUNTIME_ERROR, "Function no.such not found"));
    Function::register_global("test.values.f", f.clone()).unwrap();
    assert!(Function::register_global("test.values.f", f.clone()).is_err());
    assert!(Function::get_global("test.values.f").unwrap().same_as(&f));
    assert!(cached_global_func!("test.values.f").same_as(&f));
    let e = Function::from_type_attr(71, "no_attr").map(|_| ()).unwrap_err();
    assert_eq!(e.message(), "Cannot find type attribute `no_attr` for type_index=71");
    let e = Function::from_type_method(71, "no_m").map(|_| ()).unwrap_err();
    assert_eq!(e.message(), "Cannot find method `no_m` of type `ffi.Array`");
    // internals
    assert_eq!(<(i64, String) as TupleAsPackedArgs>::LEN, 2);
    let held = ("text", 1i64, &[1u8, 2][..]).into_arg_holder_tuple();
    assert_eq!(held.0, "text");
    let mut views = [AnyView::new(); 3];
    held.fill_any_view(&mut views);
    assert_eq!(views[1].try_as::<i64>(), Some(1));
    assert_eq!(*(&5i64).to_ref(), 5);
    let x: &i64 = (&5i64).into_arg_holder();
    assert_eq!(*x, 5);
    let add = |x: i64| -> Result<i64> { Ok(x + 1) };
    assert_eq!(
        AsPackedCallable::call_packed(&add, &[AnyView::from(&1i64)]).unwrap().try_as::<i64>(),
        Some(2)
    );
    let r = call_packed_callable(add, &[AnyView::from(&1i64)]).unwrap();
    assert_eq!(r.try_as::<i64>(), Some(2));
    assert_eq!(std::mem::size_of::<FunctionObj>(), 40);
    let names = function_name!();
    assert!(names.ends_with("functions_and_arguments"), "{names}");
    // results
    let f = Function::from_typed(|x: Any| -> Result<Any> { Ok(x) });
    assert_eq!(f.call_tuple((1i64,)).unwrap().try_as::<i64>(), Some(1));
    let f = Function::from_typed(|x: Option<String>| -> Result<Option<String>> { Ok(x) });
    assert_eq!(f.call_tuple((None::<String>,)).unwrap().type_index(), 0);
    let f = Function::from_packed(|args: &[AnyView]| -> Result<Any> {
        ensure!(args.len() == 2, VALUE_ERROR, "got {}", args.len());
        Ok(Any::from(args.len() as i64))
    });
    assert!(f.call_packed(&[]).is_err());
    assert_eq!(f.call_tuple((1i64, 2i64)).unwrap().try_as::<i64>(), Some(2));
}

#[test]
fn arrays() {
    let a = Array::new(vec![1i64, 2, 3]);
    assert_eq!(format!("{a:?}"), "Array<i64>[3]");
    assert_eq!(format!("{:?}", Array::new(vec![String::from("x")])), "Array<String>[1]");
    let b: Array<i64> = (0..3).collect();
    assert_eq!(b.len(), 3);
    let mut sum = 0;
    for x in &a {
        sum += x;
    }
    assert_eq!(sum, 6);
    let e = a.get(3).unwrap_err();
    assert_eq!((e.kind(), e.message()), (INDEX_ERROR, "Array get index out of bound"));
    let panic = std::panic::catch_unwind(|| {
        let a = Array::new(vec![1i64]);
        let _ = a[5];
    })
    .unwrap_err();
    assert_eq!(
        panic.downcast_ref::<std::string::String>().unwrap(),
        "Index out of bounds: the len is 1 but the index is 5"
    );
    assert_eq!(Array::data(&a).size, 3);
    assert_eq!(Array::data(&a).capacity, 3);
    assert!(Array::data(&a).data_deleter.is_none());
    assert_eq!(std::mem::size_of::<ArrayObj>(), 56);
    let size = Function::get_global("ffi.ArraySize").unwrap();
    assert_eq!(size.call_tuple((&a,)).unwrap().try_as::<i64>(), Some(3));
    let wide = Array::<Any>::try_from(Any::from(a.clone())).unwrap();
    assert!(wide.same_as(&a));
    let shapes = Any::from(Array::new(vec![Shape::from(vec![1, 2])]));
    assert!(Array::<Tensor>::try_from(shapes.clone()).is_err());
    assert_eq!(Array::<Shape>::try_from(shapes).unwrap().get(0).unwrap().as_slice(), &[1, 2]);
    let new =
        into_typed_fn!(Function::get_global("ffi.String").unwrap(), Fn(String) -> Result<String>);
    assert_eq!(new("hello".into()).unwrap(), "hello");
    let new =
        into_typed_fn!(Function::get_global("ffi.Bytes").unwrap(), Fn(Bytes) -> Result<Bytes>);
    assert_eq!(new([1, 2, 3].into()).unwrap(), [1, 2, 3]);
    let f: Array<Function> = Array::new(vec![Function::from_typed(|| -> Result<i64> { Ok(1) })]);
    assert_eq!(f.get(0).unwrap().call_tuple(()).unwrap().try_as::<i64>(), Some(1));
    assert!(!a.is_empty() && Array::<f64>::default().is_empty());
    assert_eq!(a.iter().map(|x| x * 2).collect::<Vec<_>>(), [2, 4, 6]);
}

#[test]
fn tensors_and_shapes() {
    let t = Tensor::from_slice(&[1.0f32; 24], &[2, 3, 4]).unwrap();
    assert_eq!(t.strides(), [12, 4, 1]);
    assert_eq!((t.ndim(), t.numel(), t.is_contiguous()), (3, 24, true));
    assert_eq!(t.dtype(), f32::DL_DATA_TYPE);
    assert_eq!(t.device(), DLDevice::new(DLDeviceType::kDLCPU, 0));
    assert_eq!(t.data_as_slice::<f32>().unwrap().len(), 24);
    let e = t.data_as_slice::<i32>().unwrap_err();
    assert_eq!(
        (e.kind(), e.message()),
        (TYPE_ERROR, "Data type mismatch \"float32\" vs \"int32\"")
    );
    let e = t.data_as_slice_mut::<i32>().unwrap_err();
    assert_eq!(e.message(), "Data type mismatch: expected \"int32\", got \"float32\"");
    let e = Tensor::from_slice(&[1.0f32; 3], &[2]).map(|_| ()).unwrap_err();
    assert_eq!((e.kind(), e.message()), (VALUE_ERROR, "Slice length mismatch"));
    let mut m = t.clone();
    assert_eq!(m.data_ptr_mut() as *const c_void, t.data_ptr());
    let raw = Tensor::from_nd_alloc(CPUNDAlloc {}, &[2, 2], i64::DL_DATA_TYPE, t.device());
    assert_eq!(raw.data_ptr() as usize % 64, 0);
    let back: Tensor = Any::from(raw.clone()).try_into().unwrap();
    assert!(back.same_as(&raw));
    let mut shape = [2i64, 3];
    let dl = DLTensor {
        data: std::ptr::null_mut(),
        device: t.device(),
        ndim: 2,
        dtype: DLDataType::new(DLDataTypeCode::kDLFloat, 4, 2),
        shape: shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    assert_eq!((dl.numel(), dl.item_size()), (6, 1));
    let s = Shape::from(vec![1i64, 2]);
    let s2 = Shape::from([1i64, 3]);
    assert!(s < s2 && s != s2 && s[1] == 2 && s.len() == 2);
    let mut strides = [0; 2];
    Shape::fill_strides_from_shape([3i64, 4], &mut strides);
    assert_eq!(strides, [4, 1]);
    let s3: Shape = AnyView::from(&s).try_into().unwrap();
    assert!(s3 == s);
    assert_eq!(Any::from(s).type_index(), 69);
}
#[test]
fn objects() {
    assert!(is_instance_of::<Object>(71) && !is_instance_of::<ArrayObj>(64));
    assert!(!is_instance_of::<Object>(3));
    let o = ObjectArc::new(Object::new());
    assert_eq!((ObjectArc::strong_count(&o), ObjectArc::weak_count(&o)), (1, 1));
    assert_eq!(std::mem::size_of::<Option<ObjectArc<Object>>>(), 8);
    let a = Array::new(vec![1i64]);
    let r: ObjectRef = a.clone().try_cast().unwrap();
    assert!(r.same_as(&a));
    assert_eq!(r.as_node::<ArrayObj>().unwrap().size, 1);
    assert!(r.as_node::<FunctionObj>().is_none());
    let e = r.try_cast::<Function>().map(|_| ()).unwrap_err();
    assert!(e.message().contains("ffi.Array") && e.message().contains("ffi.Function"));
    let e = a.try_cast::<Array<f32>>().map(|_| ()).unwrap_err();
    assert_eq!(e.kind(), TYPE_ERROR);
    let id = ObjectIdentity::of(&Shape::new());
    assert!(format!("{id:?}").starts_with("ObjectIdentity("));
    let mut set = HashMap::new();
    set.insert(id.clone(), 1);
    assert_eq!(set[&id], 1);
    let shape = Shape::new();
    let same = Shape::from(&shape);
    assert!(same.same_as(&shape));
}
