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

use counted::Counted;
use node::{Node, NodeObj};
use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::sync::Mutex;
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
