// SPDX-License-Identifier: Apache-2.0
//! What the crate does without calling into C++. Runs with the library, and under Miri with a stand-in for it.
#[cfg(miri)]
mod stand_in;

use std::sync::atomic::Ordering;
use tvm_ffi::object::ObjectRef as AnyObject;
use tvm_ffi::tvm_ffi_sys::*;
use tvm_ffi::*;

mod classes {
    use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Any, Array, Object, String};

    #[rs_class("test.pure.Base", child_slots = 2)]
    pub struct BaseObj {
        base: Object,
        #[reflect(writable)]
        pub x: i64,
        pub name: String,
    }
    def_object_ref!(pub Base, ObjectRef, BaseObj);

    #[rs_class("test.pure.Leaf", final)]
    pub struct LeafObj {
        base: BaseObj,
        pub items: Array<Any>,
    }
    def_object_ref!(pub Leaf, Base, LeafObj);
}
use classes::{Base, BaseObj, Leaf, LeafObj};

const LONG: &str = "a text that is not inline";

fn leaf(x: i64) -> Leaf {
    let items = Array::new(vec![Any::from(x), Any::from(String::from(LONG))]);
    Leaf::from(LeafObj::new(BaseObj::new(Object::new(), x, LONG), items))
}

fn strong<T: ObjectRefCore>(handle: &T) -> usize {
    ObjectArc::strong_count(T::data(handle))
}

#[test]
fn counts_and_casts() {
    let one = leaf(1);
    let base = Base::from(&one);
    assert_eq!((strong(&one), base.x, base.name.as_str()), (2, 1, LONG));
    drop(one);
    let any = Any::from(base);
    assert_eq!(any.debug_strong_count(), Some(1));
    let again = any.clone();
    assert!(Shape::try_from(any).is_err());
    let back = Leaf::try_from(again).unwrap();
    assert_eq!((strong(&back), back.items.len()), (1, 2));
    assert_eq!(strong(&back.try_cast::<AnyObject>().unwrap()), 1);
}

/// The destructor runs at the last strong reference, the storage goes with the last weak one.
#[test]
fn a_weak_reference_keeps_the_storage() {
    for handle in [leaf(1).try_cast::<AnyObject>(), Shape::from([1, 2, 3]).try_cast()] {
        let arc = AnyObject::into_data(handle.unwrap());
        let header = unsafe { ObjectArc::into_raw(arc) } as *mut TVMFFIObject;
        unsafe {
            let count = &(*header).combined_ref_count;
            count.fetch_add(COMBINED_REF_COUNT_WEAK_ONE, Ordering::Relaxed);
            object::unsafe_::dec_ref(header);
            assert_eq!(
                (*header).combined_ref_count.load(Ordering::Relaxed),
                COMBINED_REF_COUNT_WEAK_ONE
            );
            (*header).deleter.unwrap()(header as *mut std::ffi::c_void, 2);
        }
    }
}

#[test]
fn texts() {
    for text in ["", "short", "1234567", "12345678", LONG] {
        let string = String::from(text);
        let copy = string.clone();
        let any = Any::from(string);
        assert_eq!(copy, text);
        assert_eq!(any.try_as::<String>().unwrap(), copy);
        assert_eq!(String::try_from(any).unwrap().as_str(), text);
        let bytes = Bytes::from(text.as_bytes());
        assert_eq!(bytes.clone().as_slice(), text.as_bytes());
    }
    let mut optional = Optional::some(String::from(LONG));
    assert_eq!(optional.clone().into_option().unwrap(), LONG);
    optional.set(None);
    assert!(optional.is_none());
}

#[test]
fn arrays_and_lists() {
    let shape = Shape::from([4i64]);
    let array = Array::new(vec![shape.clone(); 4]);
    assert_eq!((strong(&shape), array.len()), (5, 4));
    assert!(array.get(3).unwrap().same_as(&shape) && array.get(4).is_err());
    assert_eq!(array.iter().count(), 4);
    assert!(Shape::try_from(array[1]).unwrap().same_as(&shape));
    drop(array);
    assert_eq!(strong(&shape), 1);

    let list = List::new();
    for i in 0..5 {
        list.push(Shape::from([i])).unwrap();
    }
    list.insert(1, shape.clone()).unwrap();
    list.reverse();
    assert!(list.remove(4).unwrap().same_as(&shape));
    list.remove_range(1, 3).unwrap();
    list.resize(6, shape.clone()).unwrap();
    list.truncate(5);
    assert_eq!((list.len(), strong(&shape)), (5, 3));
    assert!(list.get(5).is_err() && list.insert(9, shape.clone()).is_err());
    let converted: Array<Shape> = Any::from(list.clone()).try_into().unwrap();
    list.clear();
    assert!(list.pop().is_err());
    assert_eq!(converted.len(), 5);
    drop(converted);
    assert_eq!(strong(&shape), 1);
}

/// An element whose conversion panics: nothing is dropped twice, nothing is lost.
#[test]
fn an_array_whose_elements_panic() {
    #[derive(Clone)]
    struct Shy(Shape, bool);
    unsafe impl AnyCompatible for Shy {
        unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny) {
            Shape::copy_to_any_view(&src.0, data)
        }
        unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny) {
            assert!(!src.1, "shy");
            Shape::move_to_any(src.0, data)
        }
        unsafe fn check_any_strict(_: &TVMFFIAny) -> bool {
            false
        }
        unsafe fn copy_from_any_view_after_check(_: &TVMFFIAny) -> Self {
            unreachable!()
        }
        unsafe fn move_from_any_after_check(_: &mut TVMFFIAny) -> Self {
            unreachable!()
        }
        unsafe fn try_cast_from_any_view(_: &TVMFFIAny) -> std::result::Result<Self, ()> {
            Err(())
        }
        fn type_str() -> std::string::String {
            "Shy".to_string()
        }
    }
    let shape = Shape::from([1i64]);
    for at in 0..3 {
        let items = (0..3).map(|i| Shy(shape.clone(), i == at)).collect();
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| Array::new(items)));
        assert!(made.is_err());
        assert_eq!(strong(&shape), 1);
    }
}

#[test]
fn closures() {
    let held = leaf(7);
    let inner = held.clone();
    let add = Function::from_typed(move |x: i64, y: i64| -> Result<i64> { Ok(x + y + inner.x) });
    assert_eq!(i64::try_from(add.call_tuple((1i64, 2i64)).unwrap()).unwrap(), 10);
    assert_eq!(add.call_tuple((1i64,)).unwrap_err().message(), "Expected 2 arguments, got 1");
    assert_eq!(add.call_tuple((1i64, &held)).unwrap_err().kind(), TYPE_ERROR);
    let bad = Function::from_packed(|_| panic!("on purpose"));
    assert_eq!(bad.call_packed(&[]).unwrap_err().message(), "panicked: on purpose");
    let take = Function::from_typed(|value: RValueRef<Shape>| -> Result<i64> {
        let shape = value.into_inner();
        Ok(strong(&shape) as i64 + shape[0])
    });
    let moved = take.call_tuple((RValueRef::new(Shape::from([5i64])),)).unwrap();
    assert_eq!(i64::try_from(moved).unwrap(), 6);
    let many = Function::from_typed(
        |a: i64, b: Option<i64>, c: String, d: Shape, e: f64| -> Result<String> {
            Ok(String::from(format!("{a} {b:?} {} {d:?} {e}", c.as_str())))
        },
    );
    let text = many
        .call_tuple((1i64, None::<i64>, String::from(LONG), Shape::from([1i64]), 2i64))
        .unwrap();
    assert_eq!(String::try_from(text).unwrap(), format!("1 None {LONG} Shape[1] 2"));
    drop((add, bad, take, many));
    assert_eq!(strong(&held), 1);
}

/// A destructor that panics ends there; the object is freed.
#[test]
fn a_capture_whose_destructor_panics() {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            panic!("on purpose")
        }
    }
    let loud = Loud;
    drop(Function::from_packed(move |_| {
        let _ = &loud;
        Ok(Any::new())
    }));
}

#[test]
fn big_integers() {
    let big: BigInt = "-340282366920938463463374607431768211457".parse().unwrap();
    let square = &big * &big;
    assert_eq!(&square / &big, big);
    assert_eq!(&square % &big, BigInt::from(0));
    assert_eq!((&square >> 128) << 128, &square - (&square % (BigInt::from(1) << 128)));
    let any = Any::from(big.clone());
    assert_eq!(BigInt::try_from(any).unwrap().to_string(), big.to_string());
    assert_eq!(BigInt::try_from(Any::from(5i64)).unwrap(), BigInt::from(5));
}

#[test]
fn tensors() {
    let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    assert_eq!((tensor.shape(), tensor.strides()), (&[2, 3][..], &[3, 1][..]));
    tensor.data_as_slice_mut::<f32>().unwrap()[5] = 7.0;
    assert_eq!(tensor.clone().data_as_slice::<f32>().unwrap()[5], 7.0);
    assert!(tensor.data_as_slice::<f64>().is_err());
}

#[test]
fn threads() {
    let function = Function::from_typed(|x: i64| -> Result<i64> { Ok(x + 1) });
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for i in 0..8i64 {
                    let mine = function.clone();
                    assert_eq!(i64::try_from(mine.call_tuple((i,)).unwrap()).unwrap(), i + 1);
                    assert_eq!(leaf(i).x, i);
                }
            });
        }
    });
    assert_eq!(strong(&function), 1);
}
