// SPDX-License-Identifier: Apache-2.0
//! Objects of the released crates, for the tests that load them from Python.
use tvm_ffi::*;

fn adder(y: i64) -> Result<Function> {
    Ok(Function::from_typed(move |x: i64| -> Result<i64> { Ok(x + y) }))
}

fn adders() -> Result<Array<Function>> {
    Ok(Array::new(vec![adder(1)?, adder(2)?]))
}

/// A closure that holds a function of Python.
fn hold(value: Function) -> Result<Function> {
    Ok(Function::from_packed(move |_| Ok(Any::from(value.clone()))))
}

tvm_ffi_dll_export_typed_func!(adders, adders);
tvm_ffi_dll_export_typed_func!(adder, adder);
tvm_ffi_dll_export_typed_func!(hold, hold);
