// SPDX-License-Identifier: Apache-2.0
//! Nanoseconds per operation, the best of several rounds, of both crates by turns.
//!
//! `rust-bench SIDE ROW COUNT` runs one row of one side so many times, for a tool that counts instructions.
use std::hint::black_box;
use std::time::Instant;

const COUNT: u32 = 20_000;
const ROUNDS: usize = 60;

/// Which rows run, and how often.
#[derive(Clone, Copy)]
struct Plan<'a> {
    only: Option<&'a str>,
    count: u32,
}

/// The rows of one pass.
struct Rows<'a> {
    plan: Plan<'a>,
    times: Vec<(&'static str, f64)>,
}

impl Rows<'_> {
    fn row(&mut self, name: &'static str, mut operation: impl FnMut()) {
        if self.plan.only.is_some_and(|only| only != name) {
            return;
        }
        let start = Instant::now();
        for _ in 0..self.plan.count {
            operation();
        }
        let nanoseconds = start.elapsed().as_nanos() as f64 / self.plan.count as f64;
        self.times.push((name, nanoseconds));
    }
}

/// Drops an array of the released crates. They free its memory but never release its elements, so this does
/// it for them: the row would compare a leak with work done.
fn drop_with_elements<T: ::reference::ObjectRefCore>(array: T) {
    // SAFETY: the cell of a sequence, a pointer to its values and their number, follows the header.
    unsafe {
        let header = ::reference::ObjectArc::as_raw(T::data(&array)) as *const [usize; 5];
        let (values, count) = ((*header)[3] as *mut ::reference::TVMFFIAny, (*header)[4]);
        for i in 0..count {
            drop(::reference::Any::from_raw_ffi_any(*values.add(i)));
        }
    }
    drop(array);
}

macro_rules! suite {
    ($name:ident, $drop_array:path) => {
        mod $name {
            use super::{black_box, Plan, Rows};
            use ::$name::*;

            /// One pass over all rows.
            pub fn rows(plan: Plan) -> Vec<(&'static str, f64)> {
                let add = Function::from_typed(|x: i64, y: i64| -> Result<i64> { Ok(x + y) });
                let packed = Function::from_packed(|_| Ok(Any::new()));
                let apply = Function::from_typed(|f: Function| -> Result<i64> {
                    f.call_tuple((1i64, 2i64))?.try_into()
                });
                let array = Array::new((0..64i64).map(|x| Shape::from([x])).collect());
                let map: Map<i64, i64> = (0..64).map(|x| (x, x)).collect();
                let names: Map<String, i64> =
                    (0..64).map(|x| (String::from(format!("a key of map {x}")), x)).collect();
                let name = String::from("a key of map 5");
                let any = Any::from(String::from("a string of some length"));
                let shape = Shape::from([1i64]);
                let mut rows = Rows { plan, times: Vec::new() };
                rows.row("call, no argument", || drop(black_box(packed.call_packed(&[]))));
                rows.row("call, two ints", || drop(black_box(add.call_tuple((1i64, 2i64)))));
                rows.row("callback", || drop(black_box(apply.call_tuple((&add,)))));
                rows.row("new shape", || drop(black_box(Shape::from([1i64, 2, 3]))));
                rows.row("new closure", || {
                    drop(black_box(Function::from_packed(|_| Ok(Any::new()))))
                });
                rows.row("new closure, holds an int", || {
                    let x = black_box(5i64);
                    drop(black_box(Function::from_packed(move |_| Ok(Any::from(x)))))
                });
                rows.row("new closure, holds a function", || {
                    let inner = add.clone();
                    let call = move |args: &[AnyView]| inner.call_packed(args);
                    drop(black_box(Function::from_packed(call)))
                });
                rows.row("new array of 4", || {
                    $drop_array(black_box(Array::new(vec![shape.clone(); 4])))
                });
                // Nobody may leak.
                assert_eq!(ObjectArc::strong_count(Shape::data(&shape)), 1);
                rows.row("array get", || drop(black_box(array.get(black_box(5)))));
                rows.row("array iterate", || drop(black_box(array.iter().count())));
                rows.row("map get, int", || drop(black_box(map.get(&black_box(5)))));
                rows.row("map get, string", || drop(black_box(names.get(black_box(&name)))));
                rows.row("map iterate", || drop(black_box(map.iter().count())));
                rows.row("short string", || drop(black_box(String::from(black_box("short")))));
                rows.row("long string", || {
                    drop(black_box(String::from(black_box("a string of some length"))))
                });
                rows.row("string of any", || drop(black_box(String::try_from(any.clone()))));
                rows.row("any of int and back", || {
                    drop(black_box(i64::try_from(black_box(Any::from(black_box(5i64))))))
                });
                rows.times
            }
        }
    };
}
suite!(ours, drop);
suite!(reference, super::drop_with_elements);

type Pass = fn(Plan) -> Vec<(&'static str, f64)>;

fn best(rows: Pass, into: &mut Vec<(&'static str, f64)>) {
    for (i, row) in rows(Plan { only: None, count: COUNT }).into_iter().enumerate() {
        match into.get_mut(i) {
            Some(known) => known.1 = known.1.min(row.1),
            None => into.push(row),
        }
    }
}

fn main() {
    let args: Vec<std::string::String> = std::env::args().skip(1).collect();
    if let [side, row, count] = args.as_slice() {
        let rows: Pass = if side == "ours" { ours::rows } else { reference::rows };
        let count = count.parse().expect("a number");
        rows(Plan { only: Some(row), count });
        return;
    }
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
