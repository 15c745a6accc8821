// SPDX-License-Identifier: Apache-2.0
//! None of a million objects is kept. Counts blocks of Rust's allocator and destructors, not bytes or time,
//! and of this thread alone: the one that runs the tests allocates as well.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};
use tvm_ffi::*;

thread_local! {
    static BLOCKS: Cell<i64> = const { Cell::new(0) };
}
static GUARDS: AtomicI64 = AtomicI64::new(0);

struct Counting;
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.set(BLOCKS.get() + 1);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        BLOCKS.set(BLOCKS.get() - 1);
        unsafe { System.dealloc(ptr, layout) }
    }
}
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Tells whether what C++ holds is released: its memory is not counted.
struct Guard;
impl Guard {
    fn new() -> Self {
        GUARDS.fetch_add(1, Ordering::Relaxed);
        Self
    }
}
impl Drop for Guard {
    fn drop(&mut self) {
        GUARDS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A function that holds a guard.
fn guarded() -> Function {
    let guard = Guard::new();
    Function::from_typed(move |x: i64| -> Result<i64> {
        let _ = &guard;
        ensure!(x >= 0, VALUE_ERROR, "negative: {}", x);
        Ok(x)
    })
}

mod classes {
    use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Function, Object, String};

    #[rs_class("test.leaks.Node")]
    pub struct NodeObj {
        base: Object,
        #[reflect(writable)]
        pub function: Option<Function>,
        pub name: String,
    }
    def_object_ref!(pub Node, ObjectRef, NodeObj);
}
use classes::{Node, NodeObj};

fn one_of_each() {
    let function = guarded();
    let text = String::from("a text that is not inline");
    let node = Node::from(NodeObj::new(Object::new(), Some(function.clone()), text.clone()));
    let array = Array::new(vec![function.clone(), guarded()]);
    let list: List<Function> = array.iter().collect();
    list.push(guarded()).unwrap();
    drop(list.remove(0).unwrap());
    let map: Map<String, Any> =
        [(text, Any::from(array)), ("list".into(), Any::from(list))].into_iter().collect();
    let any = Any::from(node);
    // Conversions that fail, of owned values and of arguments.
    assert!(Shape::try_from(any.clone()).is_err());
    assert!(Array::<i64>::try_from(map.get(&"list".into()).unwrap().unwrap()).is_err());
    assert!(function.call_tuple((&any,)).is_err());
    assert!(function.call_tuple((-1i64,)).is_err());
    let big = BigInt::from(u64::MAX) * BigInt::from(u64::MAX);
    let tensor = Tensor::from_slice(&[1i64, 2], &[2]).unwrap();
    let holder = Function::from_packed(move |_| Ok(Any::from(tensor.clone())));
    assert_eq!(Tensor::try_from(holder.call_packed(&[]).unwrap()).unwrap().numel(), 2);
    assert_eq!(BigInt::try_from(Any::from(big.clone())).unwrap(), big);
    let moved = RValueRef::new(Shape::from([1i64, 2]));
    assert!(function.call_tuple((moved,)).is_err());
}

fn panics() {
    let guard = Guard::new();
    let bad = Function::from_typed(move |value: Shape| -> Result<()> {
        let _ = (&guard, value);
        panic!("on purpose")
    });
    assert_eq!(bad.call_tuple((Shape::new(),)).unwrap_err().kind(), INTERNAL_ERROR);
}

#[test]
fn none_of_a_million_objects_is_kept() {
    std::panic::set_hook(Box::new(|_| {}));
    // Tables that are made once.
    for _ in 0..10 {
        one_of_each();
        panics();
    }
    let blocks = BLOCKS.get();
    assert_eq!(GUARDS.load(Ordering::Relaxed), 0);
    // More than 20 objects each.
    for _ in 0..50_000 {
        one_of_each();
    }
    for _ in 0..1_000 {
        panics();
    }
    assert_eq!(GUARDS.load(Ordering::Relaxed), 0);
    assert_eq!(BLOCKS.get(), blocks);
}
