// SPDX-License-Identifier: Apache-2.0
//! What a user can get wrong without writing `unsafe`, and what other code can hand over: errors and panics
//! with a message, and never a crash.
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{BuildHasher, RandomState};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tvm_ffi::dtype::AsDLDataType;
use tvm_ffi::object::{unsafe_, ObjectRef};
use tvm_ffi::tvm_ffi_sys::*;
use tvm_ffi::*;

/// The text of a panic.
fn panic_of<T>(run: impl FnOnce() -> T) -> std::string::String {
    let Err(payload) = catch_unwind(AssertUnwindSafe(run)) else { panic!("it did not panic") };
    match payload.downcast::<std::string::String>() {
        Ok(text) => *text,
        Err(other) => other.downcast_ref::<&str>().expect("a text").to_string(),
    }
}

/// A value as C writes it.
fn value(type_index: TypeIndex, word: u64) -> Any {
    let mut cell = TVMFFIAny::new();
    cell.type_index = type_index as i32;
    cell.data_union.v_uint64 = word;
    // SAFETY: not an object.
    unsafe { Any::from_raw_ffi_any(cell) }
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

/// Thrown, and throws again when it is dropped, and what it throws does so too.
struct Bomb(usize);
impl Drop for Bomb {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
        if self.0 > 0 {
            std::panic::panic_any(Bomb(self.0 - 1));
        }
    }
}

#[test]
fn what_a_panic_throws_may_panic_when_it_is_dropped() {
    let throws = Function::from_packed(|_| std::panic::panic_any(Bomb(3)));
    let error = throws.call_packed(&[]).unwrap_err();
    assert_eq!((error.kind(), error.message()), (INTERNAL_ERROR, "panicked: unknown payload"));
    assert_eq!(DROPPED.load(Ordering::Relaxed), 4);
    // The same in a destructor that C calls.
    struct Holder;
    impl Drop for Holder {
        fn drop(&mut self) {
            std::panic::panic_any(Bomb(3));
        }
    }
    let holder = Holder;
    drop(Function::from_packed(move |_| {
        let _captured = &holder;
        Ok(Any::new())
    }));
    assert_eq!(DROPPED.load(Ordering::Relaxed), 8);
}

#[test]
fn devices_of_an_unknown_kind() {
    for kind in [0u32, 5, 6, 19, 1 << 20, u32::MAX] {
        assert_eq!(DLDeviceType::from_raw(kind), None);
        let any = value(TypeIndex::kTVMFFIDevice, u64::from(kind));
        assert_eq!(any.try_as::<DLDevice>(), None);
        assert_eq!(any.try_as::<Option<DLDevice>>(), None);
        let error = DLDevice::try_from(any.clone()).unwrap_err();
        let source = format!("Device of the unknown kind {kind}");
        let expected = format!("Cannot convert from type `{source}` to `Device`");
        assert_eq!(error.message(), expected);
        let take = Function::from_typed(|_: DLDevice| -> Result<()> { Ok(()) });
        let error = take.call_packed(&[AnyView::from(&any)]).unwrap_err();
        assert!(error.message().contains(&source), "{}", error.message());
    }
    for kind in (1..=4).chain(7..=18) {
        let known = DLDeviceType::from_raw(kind).unwrap();
        assert_eq!(known as u32, kind);
        let any = value(TypeIndex::kTVMFFIDevice, u64::from(kind) | 3 << 32);
        assert_eq!(DLDevice::try_from(any).unwrap(), DLDevice::new(known, 3));
    }
    let mut foreign = ForeignTensor::new(&mut [1f32], &[1]);
    foreign.set_device(99);
    let text = "the tensor is on a device of the unknown kind 99";
    assert_eq!(panic_of(|| foreign.tensor().device()), text);
    assert_eq!(panic_of(|| foreign.view().device()), text);
    let error = foreign.tensor().data_as_slice::<f32>().unwrap_err();
    assert_eq!(error.message(), "Tensor is not on CPU");
}

/// A tensor whose fields other code has written.
struct ForeignTensor {
    tensor: Tensor,
    original: DLTensor,
    shape: Vec<i64>,
}

impl ForeignTensor {
    fn new(data: &mut [f32], shape: &[i64]) -> Self {
        let tensor = Tensor::from_slice(&[0f32], &[1]).unwrap();
        // SAFETY: the tensor is alive.
        let original = unsafe { (*TensorView::from(&tensor).as_raw()).clone() };
        let mut made = Self { tensor, original, shape: shape.to_vec() };
        let (extents, ndim) = (made.shape.as_mut_ptr(), shape.len() as i32);
        made.edit(|tensor| {
            tensor.data = data.as_mut_ptr() as *mut c_void;
            tensor.shape = extents;
            tensor.strides = std::ptr::null_mut();
            tensor.ndim = ndim;
        });
        made
    }
    fn edit(&mut self, change: impl FnOnce(&mut DLTensor)) {
        // SAFETY: nobody else has the tensor.
        unsafe { change(&mut *(TensorView::from(&self.tensor).as_raw() as *mut DLTensor)) }
    }
    fn set_device(&mut self, kind: u32) {
        self.edit(|tensor| {
            // SAFETY: the kind is read as a number.
            unsafe { (&raw mut tensor.device.device_type as *mut u32).write(kind) }
        });
    }
    fn tensor(&self) -> &Tensor {
        &self.tensor
    }
    fn view(&self) -> TensorView {
        TensorView::from(&self.tensor)
    }
}

impl Drop for ForeignTensor {
    fn drop(&mut self) {
        // The tensor does not own what was written into it.
        let original = self.original.clone();
        self.edit(|tensor| *tensor = original);
    }
}

#[test]
fn tensors_that_cannot_be_slices() {
    let mut data = [1f32, 2.0, 3.0, 4.0];
    let mut foreign = ForeignTensor::new(&mut data, &[3]);
    assert_eq!(foreign.tensor().data_as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    foreign.edit(|tensor| tensor.byte_offset = 4);
    assert_eq!(foreign.tensor().data_as_slice::<f32>().unwrap(), [2.0, 3.0, 4.0]);
    foreign.edit(|tensor| tensor.byte_offset = 1);
    let error = foreign.tensor().data_as_slice_mut::<f32>().unwrap_err();
    assert_eq!(error.message(), "Tensor is not aligned to 4 bytes");
    foreign.edit(|tensor| {
        tensor.byte_offset = 0;
        tensor.data = std::ptr::null_mut();
    });
    let error = foreign.tensor().data_as_slice::<f32>().unwrap_err();
    assert_eq!(error.message(), "Tensor has no data");
    for shape in [&[-1i64][..], &[1 << 32, 1 << 32], &[i64::MAX, 3], &[i64::MIN, 2]] {
        let foreign = ForeignTensor::new(&mut data, shape);
        let error = foreign.tensor().data_as_slice::<f32>().unwrap_err();
        assert_eq!(error.message(), format!("Tensor cannot have the shape {shape:?}"));
        let make = || {
            let dtype = f32::DL_DATA_TYPE;
            let cpu = DLDevice::new(DLDeviceType::kDLCPU, 0);
            Tensor::from_nd_alloc(CPUNDAlloc {}, shape, dtype, cpu)
        };
        assert!(panic_of(make).contains("the tensor is too large"));
    }
    // Without elements there is no order that could be wrong.
    let mut empty = ForeignTensor::new(&mut data, &[0, 3]);
    let mut strides = [7i64, 7];
    empty.edit(|tensor| tensor.strides = strides.as_mut_ptr());
    assert!(empty.tensor().data_as_slice::<f32>().unwrap().is_empty());
    drop(empty);
    let empty = ForeignTensor::new(&mut data, &[0, i64::MAX, i64::MAX]);
    assert!(empty.tensor().data_as_slice::<f32>().unwrap().is_empty());
    assert!(Tensor::from_slice::<f32>(&[], &[0, i64::MAX, i64::MAX]).is_ok());

    /// A type whose author has said the wrong data type.
    #[derive(Clone, Copy, Debug)]
    #[allow(dead_code)]
    struct Large([f32; 1000]);
    impl AsDLDataType for Large {
        const DL_DATA_TYPE: DLDataType = f32::DL_DATA_TYPE;
    }
    let tensor = Tensor::from_slice(&[1f32], &[1]).unwrap();
    let error = tensor.data_as_slice::<Large>().map(|_| ()).unwrap_err();
    assert_eq!(error.message(), "Elements of 4 bytes cannot be read as 4000 bytes");
    assert!(Tensor::from_slice(&[Large([0.0; 1000])], &[1]).is_err());
}

/// A string of bytes, made by C.
fn string_of(bytes: &[u8]) -> String {
    let mut cell = TVMFFIAny::new();
    // SAFETY: both are valid during the call; the result is owned.
    unsafe {
        assert_eq!(
            TVMFFIStringFromByteArray(
                &TVMFFIByteArray::new(bytes.as_ptr(), bytes.len()),
                &mut cell
            ),
            0
        );
        Any::from_raw_ffi_any(cell).try_into().unwrap()
    }
}

#[test]
fn strings_that_are_not_utf8() {
    // A sequence that goes on behind the end, short and long; an overlong one; a surrogate; a stray byte.
    for bytes in [&b"ab\xf0"[..], b"longer than seven \xf0", b"\xc0\x80", b"\xed\xa0\x80", b"\xff"]
    {
        let text = string_of(bytes);
        assert_eq!(text.as_bytes(), bytes);
        assert_eq!(text.len(), bytes.len());
        for panic in [panic_of(|| text.as_str().len()), panic_of(|| text.chars().count())] {
            assert!(panic.starts_with("Invalid UTF-8"), "{panic}");
        }
        // What needs no text works.
        assert_eq!(text, string_of(bytes));
        assert_ne!(text, string_of(b"other"));
        assert_ne!(text, "other");
        assert!(text > string_of(b""));
        assert!(HashMap::from([(text.clone(), 1)]).contains_key(&text));
        assert!(format!("{text} {text:?}").contains('\u{fffd}'));
        let map: Map<String, i64> = [(text.clone(), 5)].into_iter().collect();
        assert_eq!(map.get(&text).unwrap(), Some(5));
        // In a callback it is an error.
        let count =
            Function::from_typed(|text: String| -> Result<i64> { Ok(text.chars().count() as i64) });
        let error = count.call_tuple((&text,)).unwrap_err();
        assert!(error.message().contains("Invalid UTF-8"));
        assert!(DLDataType::try_from(Any::from(text)).is_err());
    }
    let state = RandomState::new();
    assert_eq!(state.hash_one(String::from("ähm")), state.hash_one("ähm"));
    // An error that C raises: the text up to the bad byte.
    let raises = Function::from_packed(|_| {
        let message = c"a file called \xff";
        // SAFETY: both are C strings.
        unsafe { TVMFFIErrorSetRaisedFromCStr(c"ValueError".as_ptr() as _, message.as_ptr() as _) };
        Err(Error::from_raised())
    });
    let error = raises.call_packed(&[]).unwrap_err();
    assert_eq!((error.kind(), error.message()), (VALUE_ERROR, "a file called "));
    assert!(error.to_string().ends_with("ValueError: a file called "));
}

#[test]
fn a_short_string_with_a_wrong_length() {
    let mut cell = TVMFFIAny::new();
    cell.type_index = TypeIndex::kTVMFFISmallStr as i32;
    cell.small_str_len = u32::MAX;
    // SAFETY: not an object.
    let text = String::try_from(unsafe { Any::from_raw_ffi_any(cell) }).unwrap();
    assert_eq!(text.len(), 7);
}

unsafe extern "C" fn fails_silently(
    _: *mut c_void,
    _: *const TVMFFIAny,
    _: i32,
    _: *mut TVMFFIAny,
) -> i32 {
    -2
}

#[test]
fn a_function_that_fails_without_an_error() {
    let silent = unsafe { Function::from_extern_c(std::ptr::null_mut(), fails_silently, None) };
    for _ in 0..2 {
        let error = silent.call_packed(&[]).unwrap_err();
        assert_eq!(error.kind(), RUNTIME_ERROR);
        assert_eq!(error.message(), "a function failed with code -2 and without an error");
    }
}

mod classes {
    use tvm_ffi::object::ObjectRef;
    use tvm_ffi::{def_object_ref, impl_object_upcast, rs_class, Function, Object, String};

    #[rs_class("test.hostile.Twice")]
    pub struct FirstObj {
        base: Object,
        pub text: String,
    }
    def_object_ref!(pub First, ObjectRef, FirstObj);

    /// Has the key of another type.
    #[rs_class("test.hostile.Twice")]
    pub struct SecondObj {
        base: Object,
        pub address: u64,
        pub size: u64,
    }
    def_object_ref!(pub Second, ObjectRef, SecondObj);

    /// Has the key of a type of C++.
    #[rs_class("testing.TestObjectBase")]
    pub struct TakenObj {
        base: Object,
        pub x: u8,
    }
    def_object_ref!(pub Taken, ObjectRef, TakenObj);

    /// Is not a function.
    #[rs_class("test.hostile.Wrong")]
    pub struct WrongObj {
        base: Object,
        pub x: i64,
    }
    def_object_ref!(pub Wrong, Function, WrongObj);
    impl_object_upcast!(Wrong => super::First);

    /// Names that are keywords, fields that nobody else can see, and no field at all.
    #[rs_class("test.hostile.Names")]
    #[allow(dead_code)]
    pub struct NamesObj {
        base: Object,
        r#type: i64,
        pub(super) r#fn: String,
    }
    def_object_ref!(pub Names, ObjectRef, NamesObj);

    #[rs_class("test.hostile.Empty", final)]
    pub struct EmptyObj {
        base: NamesObj,
    }
    def_object_ref!(pub Empty, Names, EmptyObj);
}
use classes::*;

#[test]
fn a_type_key_that_is_taken() {
    let first = First::from(FirstObj::new(Object::new(), "a text"));
    for _ in 0..2 {
        let panic = panic_of(|| Second::from(SecondObj::new(Object::new(), 1, 2)));
        assert_eq!(panic, "Type key test.hostile.Twice belongs to another Rust type");
        let any = Any::from(first.clone());
        assert!(panic_of(|| Second::try_from(any)).contains("another Rust type"));
    }
    assert_eq!(first.text, "a text");
    assert_eq!(unsafe { TVMFFITestingDummyTarget() }, 0);
    for _ in 0..2 {
        let panic = panic_of(|| Taken::from(TakenObj::new(Object::new(), 1)));
        assert!(panic.contains("it is registered already, for objects of"), "{panic}");
    }
}

#[test]
fn a_base_class_that_is_none() {
    let make = || Wrong::from(WrongObj::new(Object::new(), 1));
    let text = "`ffi.Function` is not a base of `test.hostile.Wrong`";
    assert_eq!(panic_of(|| Function::from(make())), text);
    assert_eq!(panic_of(|| Function::from(&make())), text);
    assert!(panic_of(|| First::from(make())).contains("test.hostile.Twice"));
    assert_eq!(
        ObjectRef::try_from(Any::from(make())).map(|_| ()).map_err(|e| e.kind().to_string()),
        Ok(())
    );
}

#[test]
fn names_that_are_keywords() {
    let names = Names::from(NamesObj::new(Object::new(), 5, "text"));
    let index = NamesObj::type_index();
    let get = |name: &str| FieldGetter::new(index, name).unwrap().get_any(&*names).unwrap();
    assert_eq!(get("type").try_as::<i64>(), Some(5));
    assert_eq!(get("fn").try_as::<String>(), Some(String::from("text")));
    let empty = Empty::from(EmptyObj::new(NamesObj::new(Object::new(), 6, "x")));
    assert_eq!(empty.r#fn, "x");
    assert_eq!(Names::from(&empty).r#fn, "x");
    // A value that was never made an object.
    let loose = NamesObj::new(Object::new(), 1, "y");
    assert!(FieldGetter::new(index, "type").unwrap().get_any(&loose).is_err());
}

#[test]
fn calls_of_a_function_that_is_running() {
    // Recursion through the function itself.
    let own: Rc<RefCell<Option<Function>>> = Rc::default();
    let inner = own.clone();
    let sum = Function::from_typed(move |n: i64| -> Result<i64> {
        if n == 0 {
            return Ok(0);
        }
        let own = inner.borrow().clone().expect("set below");
        Ok(n + i64::try_from(own.call_tuple((n - 1,))?)?)
    });
    *own.borrow_mut() = Some(sum.clone());
    assert_eq!(i64::try_from(sum.call_tuple((100i64,)).unwrap()).unwrap(), 5050);
    // State that is borrowed already: an error, and the state is as before.
    let state = Rc::new(RefCell::new(0));
    let (held, again) = (state.clone(), own.clone());
    let twice = Function::from_typed(move |depth: i64| -> Result<i64> {
        let mut count = held.borrow_mut();
        *count += 1;
        if depth > 0 {
            let own = again.borrow().clone().expect("set below");
            own.call_tuple((depth - 1,))?;
        }
        Ok(*count)
    });
    *own.borrow_mut() = Some(twice.clone());
    let error = twice.call_tuple((1i64,)).unwrap_err();
    assert_eq!(error.kind(), INTERNAL_ERROR);
    assert_eq!(i64::try_from(twice.call_tuple((0i64,)).unwrap()).unwrap(), 2);
    *own.borrow_mut() = None;
    // A function that drops the last other handle of itself while it runs.
    let slot: Rc<Cell<Option<Function>>> = Rc::default();
    let (emptied, text) = (slot.clone(), String::from("still captured"));
    let suicide = Function::from_typed(move || -> Result<String> {
        drop(emptied.take());
        Ok(text.clone())
    });
    slot.set(Some(suicide.clone()));
    assert_eq!(String::try_from(suicide.call_tuple(()).unwrap()).unwrap(), "still captured");
}

#[test]
fn poisoned_state_is_an_error() {
    let state = std::sync::Arc::new(std::sync::Mutex::new(0));
    let shared = state.clone();
    let add = Function::from_typed(move |x: i64| -> Result<i64> {
        let Ok(mut sum) = shared.lock() else { bail!(RUNTIME_ERROR, "the sum is not complete") };
        assert!(x > 0, "only positive numbers");
        *sum += x;
        Ok(*sum)
    });
    assert_eq!(add.call_tuple((1i64,)).unwrap().try_as::<i64>(), Some(1));
    assert!(add.call_tuple((-1i64,)).unwrap_err().message().contains("only positive"));
    for _ in 0..2 {
        let error = add.call_tuple((1i64,)).unwrap_err();
        assert_eq!(error.message(), "the sum is not complete");
    }
    // A registration that has failed does not poison the next.
    assert!(panic_of(|| Taken::from(TakenObj::new(Object::new(), 1))).contains("type key"));
    assert_eq!(First::from(FirstObj::new(Object::new(), "x")).text, "x");
}

#[test]
fn what_is_forgotten_is_only_leaked() {
    let list: List<Shape> = [Shape::from([1i64])].into_iter().collect();
    let map: Map<i64, Shape> = [(1, Shape::from([2i64]))].into_iter().collect();
    // SAFETY: gives back the references that are forgotten: a memory checker would report them.
    let release = |object: *const c_void| unsafe { unsafe_::dec_ref(object as *mut TVMFFIObject) };
    let address = unsafe { ObjectArc::as_raw(List::data(&list)) as *const c_void };
    std::mem::forget(list.clone());
    release(address);
    std::mem::forget(RValueRef::new(list.clone()));
    release(address);
    list.push(Shape::new()).unwrap();
    assert_eq!((list.len(), map.len()), (2, 1));
    // An iterator that has not seen the end yet.
    let mut back = list.iter();
    back.next_back();
    list.clear();
    assert!(back.next_back().is_none());
    assert!(list.is_empty());
}

#[test]
fn closures_live_in_blocks_of_the_registry() {
    let text = String::from("a captured text");
    let captured = text.clone();
    let function = Function::from_packed(move |_| Ok(Any::from(captured.clone())));
    let weak = unsafe {
        let header = ObjectArc::as_raw(Function::data(&function)) as *mut TVMFFIObject;
        assert_eq!((*header).__padding, OBJECT_ALLOC_HEADER_MARK);
        assert!((*(header as *const TVMFFIObjectAllocHeader).sub(1)).delete_space.is_some());
        unsafe_::inc_ref(header);
        unsafe_::dec_ref(header);
        (*header).combined_ref_count.fetch_add(COMBINED_REF_COUNT_WEAK_ONE, Ordering::Relaxed);
        header
    };
    assert_eq!(Any::from(text.clone()).debug_strong_count(), Some(3));
    drop(function);
    // The capture is gone, the storage is there until the weak reference is.
    assert_eq!(Any::from(text.clone()).debug_strong_count(), Some(2));
    unsafe {
        assert_eq!((*weak).combined_ref_count.load(Ordering::Relaxed), COMBINED_REF_COUNT_WEAK_ONE);
        let delete = (*weak).deleter.unwrap();
        delete(weak as *mut c_void, 2);
    }
    // The registry does not align so much.
    #[derive(Clone, Copy)]
    #[repr(align(128))]
    struct Aligned(u8);
    let captured = Aligned(7);
    let function = Function::from_packed(move |_| {
        let captured = &captured;
        assert_eq!(captured as *const Aligned as usize % 128, 0);
        Ok(Any::from(i64::from(captured.0)))
    });
    assert_eq!(function.call_packed(&[]).unwrap().try_as::<i64>(), Some(7));
}

/// Which types may go to another thread.
mod threads {
    use super::*;

    /// `is_sent!(T)`: whether `T: Send`, and likewise for `Sync`.
    macro_rules! has {
        ($ty:ty: $bound:ident) => {{
            struct Probe<T>(std::marker::PhantomData<T>);
            #[allow(dead_code)]
            trait No {
                const YES: bool = false;
            }
            impl<T> No for Probe<T> {}
            #[allow(dead_code)]
            impl<T: $bound> Probe<T> {
                const YES: bool = true;
            }
            <Probe<$ty>>::YES
        }};
    }

    #[test]
    fn send_and_sync_only_where_true() {
        macro_rules! check {
            ($expected:literal: $($ty:ty),* $(,)?) => {$(
                assert_eq!(has!($ty: Send), $expected, "{} Send", stringify!($ty));
                assert_eq!(has!($ty: Sync), $expected, "{} Sync", stringify!($ty));
            )*};
        }
        check!(true: Function, Module, reflection::AccessPath, reflection::AccessStep, TypeAttrColumn,
               ObjectArc<Object>, Plain, DLDevice, DLDataType, FieldGetter);
        check!(false: Any, AnyView<'static>, String, Bytes, BigInt, Array<i64>, List<i64>, Map<i64, i64>,
               Shape, Tensor, TensorView, Error, RValueRef<Shape>, ObjectRef, ObjectIdentity,
               Optional<i64>, StructuralView, UnchangedOr<i64>, First, Names);
    }

    mod plain {
        use tvm_ffi::object::ObjectRef;
        use tvm_ffi::{def_object_ref, rs_class, Object};
        #[rs_class("test.hostile.Plain")]
        pub struct PlainObj {
            base: Object,
            pub x: i64,
        }
        def_object_ref!(pub Plain, ObjectRef, PlainObj);
    }
    use plain::Plain;
}
