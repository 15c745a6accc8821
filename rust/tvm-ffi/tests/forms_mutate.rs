// SPDX-License-Identifier: Apache-2.0
//! Maps and mutations, form by form: permissions, markers, chains, policies, regions, errors.
// The forms are tested as users may write them.
#![allow(clippy::all)]
#![allow(dropping_copy_types, unpredictable_function_pointer_comparisons, unused_assignments)]
use std::cell::RefCell;
use std::fmt::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};
use tvm_ffi::collections::array::ArrayObj;
use tvm_ffi::object::ObjectRef;
use tvm_ffi::*;

mod golden;

type Text = std::string::String;

fn ints(items: &[i64]) -> Array<i64> {
    Array::new(items.to_vec())
}
fn nested() -> Array<Any> {
    Array::new(vec![
        Any::from(ints(&[1, 2])),
        Any::from(3i64),
        Any::from(String::from("text that is long")),
    ])
}
fn address(any: &Any) -> usize {
    match any.try_as::<ObjectRef>() {
        Some(o) => unsafe { ObjectArc::as_raw(ObjectRef::data(&o)) as usize },
        None => 0,
    }
}
fn show(any: &Any) -> Text {
    if let Some(a) = any.try_as::<Array<Any>>() {
        let items: Vec<_> = a.iter().map(|x| show(&x)).collect();
        return format!("[{}]", items.join(","));
    }
    if let Some(m) = any.try_as::<Map<Any, Any>>() {
        let mut items: Vec<_> =
            m.iter().map(|(k, v)| format!("{}:{}", show(&k), show(&v))).collect();
        items.sort();
        return format!("{{{}}}", items.join(","));
    }
    if let Some(i) = any.try_as::<i64>() {
        return format!("{i}");
    }
    if let Some(s) = any.try_as::<String>() {
        return format!("{:?}", s.as_str());
    }
    if any.try_as::<Unchanged>().is_some() {
        return "Unchanged".into();
    }
    format!("<{}>", any.type_index())
}

/// Every step of a mutation in words.
#[derive(Default)]
struct Log {
    text: Text,
}
impl Log {
    fn add(&mut self, line: Text) {
        writeln!(self.text, "{line}").unwrap();
    }
}

struct Verbose {
    log: Log,
    change: bool,
    inner_mode: Option<InplaceMode>,
    retained: Option<Any>,
}
impl StructuralMutator for Verbose {
    fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
        self.log.add(format!("mutate {} {kind:?}", show(&value.to_owned())));
        if let Some(x) = value.cast::<i64>() {
            return Ok(if self.change { Any::from(x + 1) } else { Any::from(x) });
        }
        let result = self.default_mutate_result(value, kind)?;
        self.log.add(format!("  -> unchanged {}", result.is_unchanged()));
        Ok(result.into())
    }
    fn dispatch_maybe_inplace_mutate(
        &mut self,
        value: InplaceValue<'_>,
        kind: DefRegionKind,
    ) -> Result<Any> {
        self.log.add(format!("inplace {} {kind:?}", show(&value.to_owned())));
        if let Some(x) = value.cast::<i64>() {
            return Ok(if self.change { Any::from(x + 1) } else { Any::from(x) });
        }
        if self.retained.is_some() {
            self.retained = Some(value.to_owned());
        }
        let result = match self.inner_mode {
            None => self.default_maybe_inplace_mutate_result(value, kind)?,
            Some(mode) => self.default_maybe_inplace_mutate_with_mode_result(value, kind, mode)?,
        };
        self.log.add(format!("  -> unchanged {}", result.is_unchanged()));
        Ok(result.into())
    }
}

fn transcript_mutators() -> Text {
    let mut out = Text::new();
    for change in [false, true] {
        for inner_mode in [None, Some(InplaceMode::Allow), Some(InplaceMode::Disallow)] {
            for shared in [false, true] {
                for retain in [false, true] {
                    let root = nested();
                    let keep = shared.then(|| root.clone());
                    let at = address(&Any::from(root.clone()));
                    let inner = address(&root.get(0).unwrap());
                    let mut m = Verbose {
                        log: Log::default(),
                        change,
                        inner_mode,
                        retained: retain.then(Any::new),
                    };
                    let result = structural_mutate(root, &mut m).unwrap();
                    let new_inner = Array::<Any>::try_from(result.clone()).unwrap().get(0).unwrap();
                    writeln!(
                        out,
                        "== change {change} {inner_mode:?} shared {shared} retain {retain}\n{}result {} same {} inner same {} kept {}",
                        m.log.text,
                        show(&result),
                        address(&result) == at,
                        address(&new_inner) == inner,
                        keep.map(|k| show(&Any::from(k))).unwrap_or_default(),
                    )
                    .unwrap();
                }
            }
        }
    }
    out
}

struct Entries {
    log: Log,
    which: usize,
}
impl StructuralMutator for Entries {
    fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
        if let Some(x) = value.cast::<i64>() {
            return Ok(match x {
                5 => Any::from(Unchanged),
                _ => Any::from(x * 10),
            });
        }
        let Some(array) = value.cast::<Array<Any>>() else {
            return Ok(value.to_owned());
        };
        if array.len() != 1 {
            return self.default_mutate(value, kind);
        }
        let child = array.get(0)?;
        drop(array);
        let count = child.debug_strong_count();
        let result = match self.which {
            0 => self.mutate(&child, DefRegionKind::Pattern)?,
            1 => self.maybe_inplace_mutate(child, DefRegionKind::Simple)?,
            2 => self.maybe_inplace_mutate_with_mode(child, kind, InplaceMode::Disallow)?,
            3 => self.maybe_inplace_mutate_with_mode(child, kind, InplaceMode::Allow)?,
            4 => self.default_mutate(&child, kind)?,
            5 => self.mutate_result(&child, kind)?.into(),
            6 => self.default_mutate_result(&child, kind)?.into(),
            _ => self.default_mutate(&ints(&[7, 5]), kind)?,
        };
        self.log.add(format!("entry {} count {count:?} -> {}", self.which, show(&result)));
        Ok(result)
    }
}

fn transcript_entries() -> Text {
    let mut out = Text::new();
    for which in 0..8 {
        for child in [
            Any::from(4i64),
            Any::from(5i64),
            Any::from(ints(&[1, 2])),
            Any::from(ints(&[5, 5])),
            Any::new(),
            Any::from(1.5f64),
            Any::from(String::from("long enough to be heap")),
        ] {
            let mut m = Entries { log: Log::default(), which };
            let root = Array::new(vec![child.clone()]);
            let result = structural_mutate(root, &mut m).unwrap();
            writeln!(out, "{}result {} child after {}", m.log.text, show(&result), show(&child))
                .unwrap();
        }
    }
    out
}

fn transcript_maps() -> Text {
    let mut out = Text::new();
    for order in [WalkOrder::PreOrder, WalkOrder::PostOrder] {
        for case in 0..8 {
            for shared in [false, true] {
                let root = nested();
                let keep = shared.then(|| root.clone());
                let at = address(&Any::from(root.clone()));
                let inner = address(&root.get(0).unwrap());
                let log = RefCell::new(Log::default());
                let kept = RefCell::new(None);
                let result = match case {
                    0 => structural_map(root, |x: i64| x + 1, order),
                    1 => structural_map(root, |_: i64| Unchanged, order),
                    2 => structural_map(root, |x: i64| x, order),
                    3 => structural_map(
                        root,
                        |v: &StructuralView| -> Result<Any> {
                            log.borrow_mut().add(format!("see {}", show(&v.to_owned())));
                            Ok(Any::from(Unchanged))
                        },
                        order,
                    ),
                    4 => structural_map(
                        root,
                        |a: Array<i64>| -> Array<i64> {
                            log.borrow_mut().add(format!("array {}", show(&Any::from(a.clone()))));
                            a.iter().map(|x| x + 10).collect()
                        },
                        order,
                    ),
                    5 => structural_map(
                        root,
                        (
                            |a: &ArrayObj, kind: DefRegionKind| -> UnchangedOr<Any> {
                                log.borrow_mut().add(format!("node {} {kind:?}", a.size));
                                UnchangedOr::unchanged()
                            },
                            |x: i64| -> Result<i64> { Ok(x * 2) },
                        ),
                        order,
                    ),
                    6 => structural_map(
                        root,
                        (
                            |a: Array<i64>| {
                                *kept.borrow_mut() = Some(a.clone());
                                Unchanged
                            },
                            |x: i64| x * 3,
                        ),
                        order,
                    ),
                    _ => structural_map(
                        root,
                        |x: i64, _: DefRegionKind| -> Any {
                            if x == 3 {
                                Any::from(Array::new(vec![1i64, 2]))
                            } else {
                                Any::from(x + 1)
                            }
                        },
                        order,
                    ),
                };
                let result = result.unwrap();
                let new_inner = Array::<Any>::try_from(result.clone()).unwrap().get(0).unwrap();
                writeln!(
                    out,
                    "== {order:?} case {case} shared {shared}\n{}result {} same {} inner {} kept {} retained {}",
                    log.borrow().text,
                    show(&result),
                    address(&result) == at,
                    address(&new_inner) == inner,
                    keep.map(|k| show(&Any::from(k))).unwrap_or_default(),
                    kept.borrow().clone().map(|k| show(&Any::from(k))).unwrap_or_default(),
                )
                .unwrap();
            }
        }
    }
    // Maps, dicts and None.
    for unique in [true, false] {
        let map: Map<String, Any> = [
            (String::from("a"), Any::from(1i64)),
            (String::from("b"), Any::from(ints(&[5]))),
            (String::from("c"), Any::new()),
        ]
        .into_iter()
        .collect();
        let keep = (!unique).then(|| map.clone());
        let at = address(&Any::from(map.clone()));
        let mut nones = 0;
        let result = structural_map(
            map,
            (
                |x: i64| x + 1,
                |_: ()| {
                    nones += 1;
                    Any::from(0i64)
                },
                |_: String| -> Any { panic!("keys are not seen") },
            ),
            WalkOrder::PostOrder,
        )
        .unwrap();
        writeln!(
            out,
            "map {} same {} nones {nones} kept {}",
            show(&result),
            address(&result) == at,
            keep.map(|k| show(&Any::from(k))).unwrap_or_default()
        )
        .unwrap();
        let dict = Function::get_global("ffi.Dict").unwrap().call_tuple((1i64, 2i64)).unwrap();
        let keep = (!unique).then(|| dict.clone());
        let at = address(&dict);
        let result = structural_map(dict, |x: i64| x + 1, WalkOrder::PostOrder).unwrap();
        let get = Function::get_global("ffi.DictGetItem").unwrap();
        let new: i64 = get.call_tuple((&result, 1i64)).unwrap().try_into().unwrap();
        writeln!(out, "dict {new} same {} kept {}", address(&result) == at, keep.is_some())
            .unwrap();
    }
    let r = structural_map(Any::new(), |_: ()| 5i64, WalkOrder::PreOrder).unwrap();
    writeln!(out, "none {}", show(&r)).unwrap();
    let r = structural_map(5i64, |_: i64| Unchanged, WalkOrder::PreOrder).unwrap();
    writeln!(out, "root {}", show(&r)).unwrap();
    let r = structural_map(
        5i64,
        (|x: i64| if x == 5 { Any::from(ints(&[6, 7])) } else { Any::from(x + 1) },),
        WalkOrder::PreOrder,
    )
    .unwrap();
    writeln!(out, "root replaced {}", show(&r)).unwrap();
    let r = structural_map(
        String::from("a heap string here"),
        |_: &StructuralView| Unchanged,
        WalkOrder::PostOrder,
    )
    .unwrap();
    writeln!(out, "string {}", show(&r)).unwrap();
    out
}

fn transcript_callbacks() -> Text {
    let mut out = Text::new();
    for shared in [false, true] {
        for case in 0..12 {
            let root = nested();
            let keep = shared.then(|| root.clone());
            let at = address(&Any::from(root.clone()));
            let inner = address(&root.get(0).unwrap());
            let log = RefCell::new(Log::default());
            let note = |line: Text| log.borrow_mut().add(line);
            let bump = |x: i64, c: &mut MutateContext<'_>| -> i64 {
                note(format!("int {x} {:?} {:?}", c.inplace_mode(), c.def_region_kind()));
                x + 1
            };
            let result = match case {
                0 => structural_mutate(root, bump),
                1 => structural_mutate(
                    root,
                    (
                        |v: MutateValue<'_>, c: &mut MutateContext<'_>| -> Result<Any> {
                            note(format!(
                                "value {} {:?} {:?}",
                                show(&v.as_value().to_owned()),
                                v.inplace_mode(),
                                c.inplace_mode()
                            ));
                            c.default_maybe_inplace_mutate(v)
                        },
                        bump,
                    ),
                ),
                2 => structural_mutate(
                    root,
                    (
                        bump,
                        |v: MutateValue<'_, Array<Any>>,
                         c: &mut MutateContext<'_>|
                         -> Result<UnchangedOr<Any>> {
                            note(format!(
                                "array {} {:?}",
                                show(&v.as_value().to_owned()),
                                v.inplace_mode()
                            ));
                            c.default_maybe_inplace_mutate_result(v)
                        },
                    ),
                ),
                3 => structural_mutate(
                    root,
                    (bump, |v: MutateValue<'_>, c: &mut MutateContext<'_>| {
                        c.default_mutate_with_mode(v, InplaceMode::Disallow)
                    }),
                ),
                4 => structural_mutate(
                    root,
                    (bump, |v: MutateValue<'_>, c: &mut MutateContext<'_>| {
                        c.default_mutate_with_mode_result(v.into_untyped(), InplaceMode::Allow)
                    }),
                ),
                5 => structural_mutate(
                    root,
                    (bump, |v: &StructuralView, c: &mut MutateContext<'_>| -> Result<Any> {
                        let a = c.default_mutate(v)?;
                        let b = c.default_mutate(v)?;
                        note(format!(
                            "twice {} {} distinct {}",
                            show(&a),
                            show(&b),
                            address(&a) != address(&b)
                        ));
                        Ok(a)
                    }),
                ),
                6 => structural_mutate(
                    root,
                    (bump, |a: &ArrayObj, c: &mut MutateContext<'_>| -> Result<Any> {
                        note(format!("node {} {:?}", a.size, c.inplace_mode()));
                        Ok(Any::from(Unchanged))
                    }),
                ),
                7 => structural_mutate(
                    root,
                    (bump, |a: Array<i64>, c: &mut MutateContext<'_>| -> Result<Any> {
                        if a.len() == 3 {
                            return c.default_mutate(&a);
                        }
                        let one = c.mutate(&a.get(0)?)?;
                        let two = c.mutate_with(&a.get(1)?, DefRegionKind::Simple)?;
                        let r = c.mutate_result(&a.get(0)?)?;
                        let s = c.mutate_with_result(&Unchanged, DefRegionKind::Pattern)?;
                        note(format!("{} {}", r.is_unchanged(), s.is_unchanged()));
                        c.maybe_inplace_mutate(Array::new(vec![one, two, Any::from(9i64)]))
                    }),
                ),
                8 => structural_mutate(
                    root,
                    (bump, |a: Array<i64>, c: &mut MutateContext<'_>| -> Result<Any> {
                        if a.len() == 3 {
                            return c.default_mutate(&a);
                        }
                        c.with_def_region_kind(DefRegionKind::Pattern, |c| {
                            note(format!("{:?}", c.def_region_kind()));
                            c.maybe_inplace_mutate_with(ints(&[1, 2, 3]), DefRegionKind::None)
                        })
                    }),
                ),
                9 => structural_mutate(
                    root,
                    (bump, |a: Array<i64>, c: &mut MutateContext<'_>| -> Result<Any> {
                        if a.len() == 3 {
                            return Ok(Any::from(a));
                        }
                        c.maybe_inplace_mutate_with_mode(
                            ints(&[1, 2, 3]),
                            DefRegionKind::Simple,
                            InplaceMode::Disallow,
                        )
                    }),
                ),
                10 => structural_mutate(
                    root,
                    (bump, |v: MutateValue<'_>, c: &mut MutateContext<'_>| -> Result<Any> {
                        let retained = v.to_owned();
                        let result = c.default_maybe_inplace_mutate(v)?;
                        note(format!("retained {}", show(&retained)));
                        Ok(result)
                    }),
                ),
                _ => structural_mutate(
                    root,
                    (bump, |v: MutateValue<'_>, c: &mut MutateContext<'_>| -> Result<Any> {
                        let b = MutateValue::borrowed(v.as_value());
                        note(format!("{:?}", b.inplace_mode()));
                        c.default_maybe_inplace_mutate(b)
                    }),
                ),
            };
            let result = result.unwrap();
            let new_inner = Array::<Any>::try_from(result.clone()).unwrap().get(0).unwrap();
            writeln!(
                out,
                "== case {case} shared {shared}\n{}result {} same {} inner {} kept {}",
                log.borrow().text,
                show(&result),
                address(&result) == at,
                address(&new_inner) == inner,
                keep.map(|k| show(&Any::from(k))).unwrap_or_default(),
            )
            .unwrap();
        }
    }
    out
}

struct Trace(&'static str);
impl<S: LogState> MutContextPolicy<S> for Trace {
    fn default_mutate(
        &self,
        value: MutateValue<'_>,
        ctx: &mut MutateContext<'_, S>,
    ) -> Result<UnchangedOr<Any>> {
        let line = format!(
            "{} enter {} {:?}/{:?} {:?}",
            self.0,
            show(&value.as_value().to_owned()),
            value.inplace_mode(),
            ctx.inplace_mode(),
            ctx.def_region_kind()
        );
        ctx.state_mut().log().add(line);
        let result = ctx.default_maybe_inplace_mutate_result(value)?;
        let line = format!("{} leave unchanged {}", self.0, result.is_unchanged());
        ctx.state_mut().log().add(line);
        Ok(result)
    }
}
trait LogState {
    fn log(&mut self) -> &mut Log;
}
impl LogState for Log {
    fn log(&mut self) -> &mut Log {
        self
    }
}
impl<T: LogState> LogState for &mut T {
    fn log(&mut self) -> &mut Log {
        (**self).log()
    }
}
impl MapDispatch for Log {
    fn dispatch_map(&mut self, value: &StructuralView, kind: DefRegionKind) -> Option<Result<Any>> {
        self.add(format!("map {} {kind:?}", show(&value.to_owned())));
        let x = value.cast::<i64>()?;
        Some(Ok(Any::from(x + 1)))
    }
}
struct InRegion(DefRegionKind);
impl<S> MutContextPolicy<S> for InRegion {
    fn default_mutate(
        &self,
        value: MutateValue<'_>,
        ctx: &mut MutateContext<'_, S>,
    ) -> Result<UnchangedOr<Any>> {
        ctx.with_def_region_kind(self.0, |ctx| ctx.default_maybe_inplace_mutate_result(value))
    }
}
struct Halt;
impl<S> MutContextPolicy<S> for Halt {
    fn default_mutate(
        &self,
        _: MutateValue<'_>,
        _: &mut MutateContext<'_, S>,
    ) -> Result<UnchangedOr<Any>> {
        Ok(UnchangedOr::unchanged())
    }
}
struct Other;
impl<S> MutContextPolicy<S> for Other {
    fn default_mutate(
        &self,
        value: MutateValue<'_>,
        ctx: &mut MutateContext<'_, S>,
    ) -> Result<UnchangedOr<Any>> {
        if value.cast::<Array<i64>>().is_some_and(|a| a.len() == 2) {
            return ctx.default_mutate_result(&ints(&[100, 200]));
        }
        ctx.default_maybe_inplace_mutate_result(value)
    }
}

fn transcript_policies() -> Text {
    let mut out = Text::new();
    for order in [WalkOrder::PreOrder, WalkOrder::PostOrder] {
        for shared in [false, true] {
            for case in 0..9 {
                let root = nested();
                let keep = shared.then(|| root.clone());
                let at = address(&Any::from(root.clone()));
                let mut log = Log::default();
                let result = match case {
                    0 => {
                        let mut m = MapWithContextPolicy::new(Log::default(), Trace("one"));
                        let r = structural_map(root, &mut m, order);
                        log = m.into_state();
                        r
                    }
                    1 => {
                        let m =
                            MapWithContextPolicy::new(&mut log, (Trace("outer"), Trace("inner")));
                        structural_map(root, m, order)
                    }
                    2 => {
                        let m = MapWithContextPolicy::new(
                            &mut log,
                            (
                                InRegion(DefRegionKind::Simple),
                                (Trace("x"), InRegion(DefRegionKind::None)),
                            ),
                        );
                        structural_map(root, m, order)
                    }
                    3 => {
                        let m = MapWithContextPolicy::new(
                            &mut log,
                            (
                                InRegion(DefRegionKind::Pattern),
                                (InRegion(DefRegionKind::None), Trace("x")),
                            ),
                        );
                        structural_map(root, m, order)
                    }
                    4 => {
                        let m = MapWithContextPolicy::new(
                            &mut log,
                            (Trace("x"), (Halt, Trace("never"))),
                        );
                        structural_map(root, m, order)
                    }
                    5 => {
                        let m =
                            MapWithContextPolicy::new(&mut log, (Trace("x"), (Other, Trace("y"))));
                        structural_map(root, m, order)
                    }
                    6 => {
                        let mut m = MutateCallbacks::new(
                            Log::default(),
                            |x: i64, c: &mut MutateContext<'_, Log>| {
                                let line = format!("callback {x} {:?}", c.inplace_mode());
                                c.state_mut().add(line);
                                x + 1
                            },
                        )
                        .with_policy((Trace("outer"), Trace("inner")));
                        let r = structural_mutate(root, &mut m);
                        log = m.into_state();
                        r
                    }
                    7 => {
                        let mut m = MutateCallbacks::new(
                            Log::default(),
                            |v: MutateValue<'_, Array<Any>>,
                             c: &mut MutateContext<'_, Log>|
                             -> Result<UnchangedOr<Any>> {
                                let line = format!("callback {:?}", v.inplace_mode());
                                c.state_mut().add(line);
                                c.default_maybe_inplace_mutate_result(v)
                            },
                        )
                        .with_policy((Trace("outer"), DefaultMutContextPolicy));
                        let r = structural_mutate(root, &mut m);
                        log = m.into_state();
                        r
                    }
                    _ => {
                        let mut m = MutateCallbacks::new(
                            Log::default(),
                            |v: &StructuralView, c: &mut MutateContext<'_, Log>| -> Result<Any> {
                                if v.type_index() == 71 {
                                    c.default_mutate(v)
                                } else {
                                    Ok(Any::from(Unchanged))
                                }
                            },
                        )
                        .with_policy(Trace("outer"));
                        let r = structural_mutate(root, &mut m);
                        log = m.into_state();
                        r
                    }
                };
                let result = result.unwrap();
                writeln!(
                    out,
                    "== {order:?} shared {shared} case {case}\n{}result {} same {} kept {}",
                    log.text,
                    show(&result),
                    address(&result) == at,
                    keep.map(|k| show(&Any::from(k))).unwrap_or_default(),
                )
                .unwrap();
            }
        }
    }
    out
}

#[derive(Default)]
struct Dispatcher {
    log: Log,
    entry: usize,
}
#[dispatch(mutate)]
impl Dispatcher {
    fn mutate_int(&mut self, x: i64, m: &mut Mutator) -> i64 {
        self.log.add(format!("int {x} {:?} {:?}", m.inplace_mode(), m.def_region_kind()));
        x + 1
    }
    fn mutate_text(&mut self, _text: String) -> Unchanged {
        Unchanged
    }
    fn mutate_pair(&mut self, value: MutateValue<'_, Array<i64>>, m: &mut Mutator) -> Result<Any> {
        self.log.add(format!(
            "pair {} {:?}",
            show(&value.as_value().to_owned()),
            value.inplace_mode()
        ));
        match self.entry {
            0 => m.default_maybe_inplace_mutate(self, value),
            1 => m.default_maybe_inplace_mutate_result(self, value).map(Any::from),
            2 => m.default_mutate_with_mode(self, value, InplaceMode::Disallow),
            3 => m.default_mutate_with_mode_result(self, value, InplaceMode::Allow).map(Any::from),
            4 => m.default_mutate(self, value.as_value()),
            5 => m.default_mutate_result(self, value.as_value()).map(Any::from),
            6 => {
                let a = value.cast::<Array<i64>>().unwrap();
                if a.len() == 3 {
                    return m.default_mutate(self, &a);
                }
                m.maybe_inplace_mutate(self, ints(&[7, 8, 9]))
            }
            7 => {
                let a = value.cast::<Array<i64>>().unwrap();
                if a.len() == 3 {
                    return m.default_maybe_inplace_mutate(self, value);
                }
                m.maybe_inplace_mutate_with(self, ints(&[7, 8, 9]), DefRegionKind::Pattern)
            }
            8 => {
                let a = value.cast::<Array<i64>>().unwrap();
                if a.len() == 3 {
                    return m.default_maybe_inplace_mutate(self, value);
                }
                m.maybe_inplace_mutate_with_mode(
                    self,
                    ints(&[7, 8, 9]),
                    DefRegionKind::Simple,
                    InplaceMode::Disallow,
                )
            }
            9 => {
                let one = m.mutate(self, &1i64)?;
                let two = m.mutate_with(self, &2i64, DefRegionKind::Pattern)?;
                let three = m.mutate_result(self, &String::from("x"))?;
                let four = m.mutate_with_result(self, &4i64, DefRegionKind::Simple)?;
                self.log.add(format!("{} {}", three.is_unchanged(), four.is_unchanged()));
                Ok(Any::from(Array::new(vec![one, two])))
            }
            _ => unreachable!(),
        }
    }
}
fn transcript_dispatch() -> Text {
    let mut out = Text::new();
    for shared in [false, true] {
        for entry in 0..10 {
            let root = nested();
            let keep = shared.then(|| root.clone());
            let at = address(&Any::from(root.clone()));
            let mut d = Dispatcher { entry, ..Default::default() };
            let result = structural_mutate(root, &mut d).unwrap();
            writeln!(
                out,
                "== entry {entry} shared {shared}\n{}result {} same {} kept {}",
                d.log.text,
                show(&result),
                address(&result) == at,
                keep.map(|k| show(&Any::from(k))).unwrap_or_default(),
            )
            .unwrap();
        }
    }
    out
}

fn transcript_errors() -> Text {
    let mut out = Text::new();
    let mut run = |name: &str, result: Result<Any>| {
        let error = result.map(|_| ()).unwrap_err();
        writeln!(out, "{name}: {} {}\n{}", error.kind(), error.message(), error.backtrace())
            .unwrap();
        if let Some(context) = error.extra_context() {
            let any = Any::from(context.clone());
            let getter = FieldGetter::new(any.type_index(), "reverse_visit_pattern").unwrap();
            let records = getter.get_any(&**ObjectRef::data(&context)).unwrap();
            let size = Function::get_global("ffi.ListSize").unwrap();
            let count: i64 = size.call_tuple((&records,)).unwrap().try_into().unwrap();
            let get = Function::get_global("ffi.ListGetItem").unwrap();
            for i in 0..count {
                let item = get.call_tuple((&records, i)).unwrap();
                writeln!(out, "  record {}", show(&item)).unwrap();
            }
        }
    };
    let fail = |x: i64| -> Result<i64> {
        if x == 2 {
            return Err(Error::new(VALUE_ERROR, "two", "own frame\n"));
        }
        Ok(x + 1)
    };
    for order in [WalkOrder::PreOrder, WalkOrder::PostOrder] {
        run("map", structural_map(nested(), fail, order));
        run("inline", structural_map(2i64, fail, order));
        run(
            "array handler",
            structural_map(
                nested(),
                |_: Array<i64>| -> Result<Any> { Err(Error::new(KEY_ERROR, "a", "")) },
                order,
            ),
        );
        run(
            "replacement",
            structural_map(
                nested(),
                (
                    |a: Array<i64>| -> Result<Any> {
                        if a.len() == 2 {
                            return Ok(Any::from(ints(&[1, 1, 2])));
                        }
                        Ok(Any::from(Unchanged))
                    },
                    fail,
                ),
                order,
            ),
        );
        run(
            "rebuilt",
            structural_map(
                nested(),
                (
                    |a: Array<i64>| -> Result<Any> {
                        Err(Error::new(KEY_ERROR, &show(&Any::from(a)), ""))
                    },
                    |x: i64| x + 5,
                ),
                order,
            ),
        );
    }
    run("mutate", structural_mutate(nested(), |x: i64, _: &mut MutateContext<'_>| fail(x)));
    run(
        "nested call",
        structural_mutate(
            nested(),
            (
                |x: i64, _: &mut MutateContext<'_>| fail(x),
                |a: Array<i64>, c: &mut MutateContext<'_>| -> Result<Any> { c.mutate(&a.get(1)?) },
            ),
        ),
    );
    run(
        "default of another",
        structural_mutate(
            nested(),
            (
                |x: i64, _: &mut MutateContext<'_>| fail(x),
                |a: Array<i64>, c: &mut MutateContext<'_>| -> Result<Any> {
                    if a.len() == 3 {
                        return c.mutate(&2i64);
                    }
                    c.default_mutate(&Array::new(vec![Any::from(ints(&[1, 2, 3]))]))
                },
            ),
        ),
    );
    struct Policy;
    impl<S> MutContextPolicy<S> for Policy {
        fn default_mutate(
            &self,
            _: MutateValue<'_>,
            _: &mut MutateContext<'_, S>,
        ) -> Result<UnchangedOr<Any>> {
            Err(Error::new(RUNTIME_ERROR, "policy", ""))
        }
    }
    let mut log = Log::default();
    run(
        "policy",
        structural_map(nested(), MapWithContextPolicy::new(&mut log, Policy), WalkOrder::PreOrder),
    );
    out
}

fn transcript_panics() -> Text {
    let mut out = Text::new();
    for order in [WalkOrder::PreOrder, WalkOrder::PostOrder] {
        let payload = catch_unwind(AssertUnwindSafe(|| {
            structural_map(
                nested(),
                |x: i64| -> i64 {
                    if x == 2 {
                        panic!("at {x}")
                    } else {
                        x
                    }
                },
                order,
            )
            .map(|_| ())
        }))
        .unwrap_err();
        writeln!(out, "{:?}", payload.downcast_ref::<Text>()).unwrap();
    }
    let result = structural_map(nested(), |x: i64| x + 1, WalkOrder::PostOrder).unwrap();
    writeln!(out, "{}", show(&result)).unwrap();
    let mut m = Verbose { log: Log::default(), change: true, inner_mode: None, retained: None };
    for error in [
        m.mutate(&1i64, DefRegionKind::None).map(|_| ()).unwrap_err(),
        m.default_mutate(&1i64, DefRegionKind::None).map(|_| ()).unwrap_err(),
    ] {
        writeln!(out, "{} {}", error.kind(), error.message()).unwrap();
    }
    out
}

/// By value, by two kinds of reference, inside tuples.
struct Stateless;
#[dispatch(mutate)]
impl Stateless {
    fn mutate_int(&mut self, x: i64) -> i64 {
        x * 2
    }
}
#[derive(Default)]
struct Mapper {
    kinds: Vec<DefRegionKind>,
}
#[dispatch(map)]
impl Mapper {
    fn map_int(&mut self, x: i64, kind: DefRegionKind) -> Result<i64> {
        self.kinds.push(kind);
        Ok(x + 100)
    }
    fn map_rest(&mut self, _: &StructuralView) -> Unchanged {
        Unchanged
    }
}

fn transcript_forms() -> Text {
    let mut out = Text::new();
    let mut say = |r: Result<Any>| writeln!(out, "{}", show(&r.unwrap())).unwrap();
    say(structural_mutate(nested(), Stateless));
    say(structural_mutate(nested(), &mut Stateless));
    let mut mapper = Mapper::default();
    say(structural_map(nested(), &mut mapper, WalkOrder::PreOrder));
    say(structural_map(nested(), (|x: i64| x - 1, &mut mapper), WalkOrder::PostOrder));
    say(structural_map(nested(), ((|x: f64| x,), (&mut mapper,)), WalkOrder::PostOrder));
    let tuple = (|x: i64| x + 1000, |_: String| Unchanged);
    let mut chain = tuple.into_mapper();
    say(structural_map(nested(), &mut chain, WalkOrder::PostOrder));
    let policy =
        MapWithContextPolicy::new((|x: i64| x + 1,).into_mapper(), DefaultMutContextPolicy);
    say(structural_map(nested(), policy, WalkOrder::PostOrder));
    let policy = MapWithContextPolicy::new(&mut mapper, DefaultMutContextPolicy);
    say(structural_map(nested(), policy, WalkOrder::PostOrder));
    let mut policy =
        MapWithContextPolicy::new((&mut mapper).into_mapper(), DefaultMutContextPolicy);
    say(structural_map(nested(), &mut policy, WalkOrder::PreOrder));
    let mut callbacks = MutateCallbacks::new(0i64, |x: i64, c: &mut MutateContext<'_, i64>| {
        *c.state_mut() += x;
        x + *c.state()
    });
    say(structural_mutate(nested(), &mut callbacks));
    say(structural_mutate(nested(), &mut callbacks));
    is_mutator(&callbacks);
    let state = callbacks.into_state();
    writeln!(out, "{state} {:?}", mapper.kinds).unwrap();
    let r = structural_mutate::<Array<Any>, Verbose>(
        nested(),
        &mut Verbose { log: Log::default(), change: true, inner_mode: None, retained: None },
    );
    writeln!(out, "{}", show(&r.unwrap())).unwrap();
    out
}
fn is_mutator<M: StructuralMutator>(_: &M) {}

#[test]
fn transcripts() {
    let _ = unsafe { tvm_ffi_sys::TVMFFITestingDummyTarget() };
    let all: [(&str, fn() -> Text); 9] = [
        ("mutators", transcript_mutators),
        ("entries", transcript_entries),
        ("maps", transcript_maps),
        ("callbacks", transcript_callbacks),
        ("policies", transcript_policies),
        ("dispatch", transcript_dispatch),
        ("errors", transcript_errors),
        ("panics", transcript_panics),
        ("forms", transcript_forms),
    ];
    let mut text = Text::new();
    for (name, make) in all {
        writeln!(text, "#### {name}\n{}", make()).unwrap();
    }
    golden::check("mutate.txt", &text);
}
