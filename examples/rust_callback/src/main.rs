// SPDX-License-Identifier: Apache-2.0
//! Functions in Rust that C++ calls: closures as arguments, and one that C++ keeps.
//!
//! `rust_callback LIBRARY`, where LIBRARY is made from `solver.cc`.
use std::cell::Cell;
use std::rc::Rc;
use tvm_ffi::*;

fn run(path: &str) -> Result<()> {
    let library = Module::load_from_file(path)?;
    let integrate = library.get_function("integrate")?;

    // The closure counts its calls; C++ calls it on this thread.
    let calls = Rc::new(Cell::new(0));
    let counted = calls.clone();
    let square = Function::from_typed(move |x: f64| -> Result<f64> {
        counted.set(counted.get() + 1);
        Ok(x * x)
    });
    let area: f64 = integrate.call_tuple((&square, 0f64, 3f64, 300i64))?.try_into()?;
    println!("area: {area:.3}, calls: {}", calls.get());

    // An error and a panic come back through C++ as errors.
    let undefined = Function::from_typed(|x: f64| -> Result<f64> {
        ensure!(x != 0.0, ZERO_DIVISION_ERROR, "1 / {x}");
        Ok(1.0 / x)
    });
    if let Err(error) = integrate.call_tuple((&undefined, -0.5f64, 0.5f64, 1i64)) {
        println!("{}: {}", error.kind(), error.message());
    }
    let broken = Function::from_typed(|_: f64| -> Result<f64> { panic!("not implemented") });
    if let Err(error) = integrate.call_tuple((&broken, 0f64, 1f64, 1i64)) {
        println!("{}: {}", error.kind(), error.message());
    }

    // C++ keeps the function and drops it when it is replaced.
    let on_event = library.get_function("on_event")?;
    on_event.call_tuple((Function::from_typed(|name: String| -> Result<String> {
        Ok(String::from(format!("Rust saw {}", name.as_str())))
    }),))?;
    let answer: String =
        library.get_function("fire")?.call_tuple((String::from("an event"),))?.try_into()?;
    println!("{}", answer.as_str());
    on_event.call_tuple((None::<Function>,))?;
    Ok(())
}

fn main() {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: rust_callback LIBRARY");
        std::process::exit(2);
    };
    if let Err(error) = run(&path) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
