// SPDX-License-Identifier: Apache-2.0
//! A program in Rust that uses a C++ library: functions, a tensor, an object with a field.
//!
//! `rust_binary LIBRARY`, where LIBRARY is made from `kernels.cc`.
use tvm_ffi::object::ObjectRef;
use tvm_ffi::*;

fn run(path: &str) -> Result<()> {
    let library = Module::load_from_file(path)?;

    let add_one =
        into_typed_fn!(library.get_function("add_one")?, Fn(&Tensor, &Tensor) -> Result<()>);
    let x = Tensor::from_slice(&[0f32, 1.0, 2.0, 3.0], &[4])?;
    let y = Tensor::from_slice(&[0f32; 4], &[4])?;
    add_one(&x, &y)?;
    println!("x: {:?}", x.data_as_slice::<f32>()?);
    println!("y: {:?}", y.data_as_slice::<f32>()?);

    let words = into_typed_fn!(library.get_function("split")?, Fn(&str) -> Result<Array<String>>);
    let words = words("objects of C++ in Rust")?;
    println!("{} words, the last is {}", words.len(), words.get(words.len() - 1)?);

    let point = library.get_function("make_point")?.call_tuple((3i64, 4i64))?;
    let point = ObjectRef::try_from(point)?;
    let norm = Function::from_type_key_method("rust_binary.Point", "norm")?;
    println!("norm: {}", f64::try_from(norm.call_tuple((&point,))?)?);

    // An exception of C++ is an error of Rust.
    if let Err(error) = add_one(&x, &Tensor::from_slice(&[0f32], &[1])?) {
        println!("{}: {}", error.kind(), error.message());
    }
    Ok(())
}

fn main() {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: rust_binary LIBRARY");
        std::process::exit(2);
    };
    if let Err(error) = run(&path) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
