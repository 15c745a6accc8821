// SPDX-License-Identifier: Apache-2.0
//! A class and functions in Rust, for the tests that load them from Python.

/// The class: a value, another object, and a callback.
mod node {
    use tvm_ffi::object::ObjectRef;
    use tvm_ffi::{def_object_ref, rs_class, Function, Object};

    #[rs_class("tied.Node")]
    pub struct NodeObj {
        base: Object,
        #[reflect(writable)]
        pub value: i64,
        #[reflect(writable)]
        pub next: Option<ObjectRef>,
        #[reflect(writable)]
        pub callback: Option<Function>,
    }
    def_object_ref!(pub Node, ObjectRef, NodeObj);
}

/// A class whose living objects are counted.
mod counted {
    use std::sync::atomic::{AtomicI64, Ordering};
    use tvm_ffi::object::ObjectRef;
    use tvm_ffi::{derive, Object, ObjectArc};

    pub static LIVE: AtomicI64 = AtomicI64::new(0);

    struct Guard;
    impl Guard {
        fn new() -> Self {
            LIVE.fetch_add(1, Ordering::Relaxed);
            Self
        }
    }
    impl Clone for Guard {
        fn clone(&self) -> Self {
            Self::new()
        }
    }
    impl Drop for Guard {
        fn drop(&mut self) {
            LIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[repr(C)]
    #[derive(derive::Object)]
    #[type_key = "tied.Counted"]
    #[type_register]
    pub struct CountedObj {
        base: Object,
        #[reflect(writable)]
        next: Option<ObjectRef>,
        guard: Guard,
    }

    #[repr(C)]
    #[derive(derive::ObjectRef, Clone)]
    pub struct Counted {
        data: ObjectArc<CountedObj>,
    }

    pub fn new(next: Option<ObjectRef>) -> Counted {
        Counted {
            data: ObjectArc::new(CountedObj { base: Object::new(), next, guard: Guard::new() }),
        }
    }
}

/// Classes that can be pickled, because they have a `Default`, and one that cannot.
mod travel {
    use tvm_ffi::object::ObjectRef;
    use tvm_ffi::{def_object_ref, derive, rs_class, Any, Array, List, Map, Object};
    use tvm_ffi::{ObjectArc, String};

    #[rs_class("tied.Part")]
    #[derive(Default)]
    pub struct PartObj {
        base: Object,
        pub name: String,
    }
    def_object_ref!(#[derive(Default)] pub Part, ObjectRef, PartObj);

    #[rs_class("tied.Parcel")]
    #[derive(Default)]
    pub struct ParcelObj {
        base: PartObj,
        pub weight: i64,
        pub small: i8,
        pub ratio: f64,
        pub is_open: bool,
        pub part: Part,
        pub object: ObjectRef,
        #[reflect(writable)]
        pub next: Option<ObjectRef>,
        pub label: Option<String>,
        pub numbers: Array<i64>,
        pub parts: Array<Part>,
        #[reflect(writable)]
        pub items: List<Any>,
        pub table: Map<String, i64>,
        #[reflect(writable)]
        pub extra: Option<ObjectRef>,
    }
    def_object_ref!(pub Parcel, Part, ParcelObj);

    #[rs_class("tied.Fixed")]
    pub struct FixedObj {
        base: Object,
        pub value: i64,
    }
    def_object_ref!(pub Fixed, ObjectRef, FixedObj);

    /// Its `Default` panics once in the reader.
    #[rs_class("tied.Grumpy")]
    pub struct GrumpyObj {
        base: Object,
        pub value: i64,
    }
    def_object_ref!(pub Grumpy, ObjectRef, GrumpyObj);
    impl Default for GrumpyObj {
        fn default() -> Self {
            panic!("no default today")
        }
    }

    /// Has a field that is not reflected: a reader gets the one of `Default`.
    #[repr(C)]
    #[derive(derive::Object, Default)]
    #[type_key = "tied.Hidden"]
    #[type_register]
    pub struct HiddenObj {
        base: Object,
        #[reflect]
        pub value: i64,
        pub cache: Vec<i64>,
    }

    #[repr(C)]
    #[derive(derive::ObjectRef, Clone)]
    pub struct Hidden {
        pub data: ObjectArc<HiddenObj>,
    }
}

use counted::Counted;
use node::{Node, NodeObj};
use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::sync::Mutex;
use travel::{Fixed, FixedObj, Grumpy, GrumpyObj, Hidden, HiddenObj, Parcel, ParcelObj};
use travel::{Part, PartObj};
use tvm_ffi::object::ObjectRef;
use tvm_ffi::*;

fn new_node(value: i64, next: Option<ObjectRef>) -> Node {
    Node::from(NodeObj::new(Object::new(), value, next, None::<Function>))
}

fn make_node(value: i64, next: Option<ObjectRef>) -> Result<Node> {
    Ok(new_node(value, next))
}

fn next_of(node: Node) -> Result<Option<ObjectRef>> {
    Ok(node.next.clone())
}

/// A Rust closure that holds an object of Python.
fn hold(value: Any) -> Result<Function> {
    Ok(Function::from_typed(move || -> Result<Any> { Ok(value.clone()) }))
}

/// Calls back into Python with an object of Rust.
fn apply(callback: Function, node: Node) -> Result<Any> {
    callback.call_tuple((&node,))
}

fn nodes(count: i64) -> Result<Array<Node>> {
    Ok((0..count).map(|value| new_node(value, None)).collect())
}

/// Makes and drops objects on threads that Python does not know.
fn churn(shared: Function, threads: i64, rounds: i64) -> Result<i64> {
    let sum = |thread: i64| -> i64 {
        let mut total = 0;
        for round in 0..rounds {
            let kept = shared.clone();
            let inner = new_node(round, None).try_cast::<ObjectRef>().ok();
            total += new_node(thread, inner).value;
            drop(kept);
        }
        total
    };
    Ok(std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|i| scope.spawn(move || sum(i))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap_or(-1)).sum()
    }))
}

fn make_counted(next: Option<ObjectRef>) -> Result<Counted> {
    Ok(counted::new(next))
}

fn many_counted(count: i64) -> Result<Array<Counted>> {
    Ok((0..count).map(|_| counted::new(None)).collect())
}

fn live_counted() -> Result<i64> {
    Ok(counted::LIVE.load(Ordering::Relaxed))
}

/// A closure can be sent to another thread.
static STASH: Mutex<Option<Function>> = Mutex::new(None);

fn stash(function: Function) -> Result<()> {
    *STASH.lock().unwrap_or_else(|error| error.into_inner()) = Some(function);
    Ok(())
}

/// Drops what was stashed on a thread that Python does not know, and waits for the thread.
#[no_mangle]
pub extern "C" fn tied_drop_stash() {
    let dropping = std::thread::spawn(|| {
        let stashed = STASH.lock().unwrap_or_else(|error| error.into_inner()).take();
        drop(stashed);
    });
    let _ = dropping.join();
}

thread_local! {
    /// Objects that were made before Python was there.
    static EARLY: RefCell<Option<(Node, Function)>> = const { RefCell::new(None) };
}

/// A node that leads to another, and a function that holds the node.
#[no_mangle]
pub extern "C" fn tied_make_early() {
    let node = new_node(7, new_node(8, None).try_cast().ok());
    let held = node.clone();
    let function = Function::from_typed(move || -> Result<Node> { Ok(held.clone()) });
    EARLY.with(|early| *early.borrow_mut() = Some((node, function)));
}

fn early_node() -> Result<Option<Node>> {
    Ok(EARLY.with(|early| early.borrow().as_ref().map(|(node, _)| node.clone())))
}

fn early_function() -> Result<Option<Function>> {
    Ok(EARLY.with(|early| early.borrow().as_ref().map(|(_, function)| function.clone())))
}

fn drop_early() -> Result<()> {
    drop(EARLY.with(|early| early.borrow_mut().take()));
    Ok(())
}

fn make_part(name: String) -> Result<Part> {
    Ok(Part::from(PartObj::new(Object::new(), name)))
}

fn make_parcel(name: String, part: Part, object: ObjectRef) -> Result<Parcel> {
    let base = PartObj::new(Object::new(), name);
    let parts: Array<Part> = [part.clone(), part.clone()].into_iter().collect();
    let table: Map<String, i64> = [(String::from("one"), 1)].into_iter().collect();
    let numbers: Array<i64> = (0..3).collect();
    let label = Some(String::from("a label of more than seven bytes"));
    let none = None::<ObjectRef>;
    Ok(Parcel::from(ParcelObj::new(
        base,
        1 << 40,
        -5,
        0.25,
        true,
        part,
        object,
        none,
        label,
        numbers,
        parts,
        List::new(),
        table,
        None::<ObjectRef>,
    )))
}

fn make_fixed(value: i64) -> Result<Fixed> {
    Ok(Fixed::from(FixedObj::new(Object::new(), value)))
}

fn make_grumpy(value: i64) -> Result<Grumpy> {
    Ok(Grumpy::from(GrumpyObj::new(Object::new(), value)))
}

fn make_hidden(value: i64) -> Result<Hidden> {
    let mut hidden = HiddenObj::default();
    hidden.value = value;
    hidden.cache = vec![value; 3];
    Ok(Hidden { data: ObjectArc::new(hidden) })
}

fn cache_of(hidden: Hidden) -> Result<Array<i64>> {
    Ok(hidden.data.cache.iter().copied().collect())
}

fn fail(message: String) -> Result<()> {
    bail!(VALUE_ERROR, "{}", message.as_str())
}

fn explode() -> Result<()> {
    panic!("from Rust")
}

fn greet(name: String) -> Result<String> {
    Ok(String::from(format!("hello, {}", name.as_str())))
}

tvm_ffi_dll_export_typed_func!(make_node, make_node);
tvm_ffi_dll_export_typed_func!(next_of, next_of);
tvm_ffi_dll_export_typed_func!(hold, hold);
tvm_ffi_dll_export_typed_func!(apply, apply);
tvm_ffi_dll_export_typed_func!(nodes, nodes);
tvm_ffi_dll_export_typed_func!(churn, churn);
tvm_ffi_dll_export_typed_func!(fail, fail);
tvm_ffi_dll_export_typed_func!(explode, explode);
tvm_ffi_dll_export_typed_func!(greet, greet);
tvm_ffi_dll_export_typed_func!(make_counted, make_counted);
tvm_ffi_dll_export_typed_func!(many_counted, many_counted);
tvm_ffi_dll_export_typed_func!(live_counted, live_counted);
tvm_ffi_dll_export_typed_func!(stash, stash);
tvm_ffi_dll_export_typed_func!(early_node, early_node);
tvm_ffi_dll_export_typed_func!(early_function, early_function);
tvm_ffi_dll_export_typed_func!(drop_early, drop_early);
tvm_ffi_dll_export_typed_func!(make_part, make_part);
tvm_ffi_dll_export_typed_func!(make_parcel, make_parcel);
tvm_ffi_dll_export_typed_func!(make_fixed, make_fixed);
tvm_ffi_dll_export_typed_func!(make_grumpy, make_grumpy);
tvm_ffi_dll_export_typed_func!(make_hidden, make_hidden);
tvm_ffi_dll_export_typed_func!(cache_of, cache_of);
