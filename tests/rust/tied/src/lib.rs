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

use node::{Node, NodeObj};
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
