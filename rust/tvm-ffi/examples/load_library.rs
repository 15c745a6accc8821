// SPDX-License-Identifier: Apache-2.0
//! Loads a library of functions and calls one. With the Python package installed:
//!
//! ```console
//! $ cargo run --example load_library --features example
//! ```
use tvm_ffi::{into_typed_fn, Module, Result, Tensor};

fn main() -> Result<()> {
    // The build script has made it from C++; a library in Rust or C would do as well.
    let library = Module::load_from_file(concat!(env!("OUT_DIR"), "/add_one_cpu.so"))?;
    let add_one = into_typed_fn!(
        library.get_function("add_one_cpu")?,
        Fn(&Tensor, &Tensor) -> Result<()>
    );
    let x = Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0], &[4])?;
    let y = Tensor::from_slice(&[0.0f32; 4], &[4])?;
    add_one(&x, &y)?;
    println!("x: {:?}", x.data_as_slice::<f32>()?);
    println!("y: {:?}", y.data_as_slice::<f32>()?);
    Ok(())
}
