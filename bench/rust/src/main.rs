// SPDX-License-Identifier: Apache-2.0
//! Nanoseconds per operation, the best of several rounds, of both crates by turns.
use std::hint::black_box;
use std::time::Instant;

const COUNT: u32 = 20_000;
const ROUNDS: usize = 15;

fn time(mut operation: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..COUNT {
        operation();
    }
    start.elapsed().as_nanos() as f64 / COUNT as f64
}

macro_rules! suite {
    ($name:ident) => {
        mod $name {
            use super::{black_box, time};
            use ::$name::*;

            /// One pass over all rows.
            pub fn rows() -> Vec<(&'static str, f64)> {
                let add = Function::from_typed(|x: i64, y: i64| -> Result<i64> { Ok(x + y) });
                let packed = Function::from_packed(|_| Ok(Any::new()));
                let apply = Function::from_typed(|f: Function| -> Result<i64> {
                    f.call_tuple((1i64, 2i64))?.try_into()
                });
                let array = Array::new((0..64i64).map(|x| Shape::from([x])).collect());
                let any = Any::from(String::from("a string of some length"));
                vec![
                    ("call, no argument", time(|| drop(black_box(packed.call_packed(&[]))))),
                    ("call, two ints", time(|| drop(black_box(add.call_tuple((1i64, 2i64)))))),
                    ("callback", time(|| drop(black_box(apply.call_tuple((&add,)))))),
                    ("new shape", time(|| drop(black_box(Shape::from([1i64, 2, 3]))))),
                    ("new closure", {
                        time(|| drop(black_box(Function::from_packed(|_| Ok(Any::new())))))
                    }),
                    ("new array of 4", {
                        let shape = Shape::from([1i64]);
                        time(|| drop(black_box(Array::new(vec![shape.clone(); 4]))))
                    }),
                    ("array get", time(|| drop(black_box(array.get(black_box(5)))))),
                    ("short string", time(|| drop(black_box(String::from(black_box("short")))))),
                    ("long string", {
                        time(|| drop(black_box(String::from(black_box("a string of some length")))))
                    }),
                    ("string of any", { time(|| drop(black_box(String::try_from(any.clone())))) }),
                ]
            }
        }
    };
}
suite!(ours);
suite!(reference);

fn best(rows: fn() -> Vec<(&'static str, f64)>, into: &mut Vec<(&'static str, f64)>) {
    for (i, row) in rows().into_iter().enumerate() {
        match into.get_mut(i) {
            Some(known) => known.1 = known.1.min(row.1),
            None => into.push(row),
        }
    }
}

fn main() {
    let (mut ours_best, mut reference_best) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        best(ours::rows, &mut ours_best);
        best(reference::rows, &mut reference_best);
    }
    println!("| ns per operation | ours | released |\n|---|---|---|");
    for ((name, ours), (_, reference)) in ours_best.iter().zip(&reference_best) {
        println!("| {name} | {ours:.1} | {reference:.1} |");
    }
}
