// SPDX-License-Identifier: Apache-2.0
//! A class and two functions for Python.
use tvm_ffi::*;

mod counter {
    use tvm_ffi::object::ObjectRef;
    use tvm_ffi::{def_object_ref, rs_class, Map, Object, String};

    // `Default` is what a reader of a pickle begins with.
    #[rs_class("rust_wheel.Counter")]
    #[derive(Default)]
    pub struct CounterObj {
        base: Object,
        pub words: i64,
        pub counts: Map<String, i64>,
    }
    def_object_ref!(pub Counter, ObjectRef, CounterObj);
}
use counter::{Counter, CounterObj};

fn count_words(text: String) -> Result<Counter> {
    let mut counts = std::collections::BTreeMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_lowercase()).or_insert(0i64) += 1;
    }
    let words = counts.values().sum();
    let counts: Map<String, i64> = counts.into_iter().map(|(word, n)| (word.into(), n)).collect();
    Ok(Counter::from(CounterObj::new(Object::new(), words, counts)))
}

fn scale(x: Tensor, factor: f32) -> Result<()> {
    ensure!(factor.is_finite(), VALUE_ERROR, "the factor is {factor}");
    for value in x.data_as_slice_mut::<f32>()? {
        *value *= factor;
    }
    Ok(())
}

tvm_ffi_dll_export_typed_func!(count_words, count_words);
tvm_ffi_dll_export_typed_func!(scale, scale);
