// SPDX-License-Identifier: Apache-2.0
//! The way of an error through visits and mutations.
// The forms are tested as users may write them.
#![allow(clippy::all)]
#![allow(dropping_copy_types, unpredictable_function_pointer_comparisons, unused_assignments)]
use std::fmt::Write;
use tvm_ffi::collections::array::ArrayObj;
use tvm_ffi::object::ObjectRef;
use tvm_ffi::*;

mod golden;

type Text = std::string::String;
fn ints(items: &[i64]) -> Array<i64> {
    Array::new(items.to_vec())
}
fn root() -> Array<Any> {
    Array::new(vec![Any::from(ints(&[1, 2])), Any::from(3i64)])
}
fn show(any: &Any) -> Text {
    if let Some(a) = any.try_as::<Array<Any>>() {
        let items: Vec<_> = a.iter().map(|x| show(&x)).collect();
        return format!("[{}]", items.join(","));
    }
    if let Some(i) = any.try_as::<i64>() {
        return format!("{i}");
    }
    format!("<{}>", any.type_index())
}
fn fail<T>(x: i64, ok: T) -> Result<T> {
    if x == 2 {
        return Err(Error::new(VALUE_ERROR, "two", ""));
    }
    Ok(ok)
}
fn path<T>(out: &mut Text, name: &str, result: Result<T>) {
    let error = result.map(|_| ()).unwrap_err();
    let frames: Vec<_> = error
        .backtrace()
        .lines()
        .map(|l| {
            l.replace("[native structural ", "").replace("] object `ffi.", ":").replace('`', "")
        })
        .collect();
    writeln!(out, "{name}: {} {} frames {frames:?}", error.kind(), error.message()).unwrap();
    let mut context = error.extra_context();
    while let Some(current) = context.take() {
        let any = Any::from(current.clone());
        let Ok(getter) = FieldGetter::new(any.type_index(), "reverse_visit_pattern") else {
            writeln!(out, "  other {}", show(&any)).unwrap();
            break;
        };
        let records = getter.get_any(&**ObjectRef::data(&current)).unwrap();
        let size = Function::get_global("ffi.ListSize").unwrap();
        let count: i64 = size.call_tuple((&records,)).unwrap().try_into().unwrap();
        let get = Function::get_global("ffi.ListGetItem").unwrap();
        for i in 0..count {
            let item = get.call_tuple((&records, i)).unwrap();
            writeln!(out, "  record {}", show(&item)).unwrap();
        }
        let getter = FieldGetter::new(any.type_index(), "prev_error_context").unwrap();
        context = getter.get(&**ObjectRef::data(&current)).unwrap();
    }
}

struct M(usize);
impl StructuralMutator for M {
    fn dispatch_mutate(&mut self, v: &StructuralView, k: DefRegionKind) -> Result<Any> {
        if let Some(x) = v.cast::<i64>() {
            return fail(x, Any::from(x));
        }
        let Some(a) = v.cast::<Array<Any>>() else { return Ok(v.to_owned()) };
        match self.0 {
            0 => self.default_mutate(v, k),
            1 => self.default_mutate_result(v, k).map(Any::from),
            2 => {
                for x in &a {
                    self.mutate(&x, k)?;
                }
                Ok(Any::from(a))
            }
            3 => {
                for x in &a {
                    self.mutate_result(&x, k)?;
                }
                Ok(Any::from(a))
            }
            4 => {
                for x in &a {
                    self.maybe_inplace_mutate(x, k)?;
                }
                Ok(Any::from(a))
            }
            5 => {
                if a.len() == 2 {
                    return self.default_mutate(&Array::new(vec![ints(&[1, 2, 3])]), k);
                }
                self.mutate(&2i64, k)
            }
            _ => {
                self.0 += 1;
                if self.0 > 8 {
                    return self.mutate(&2i64, k);
                }
                self.default_mutate(&Array::new(vec![Any::from(a)]), k)
            }
        }
    }
}
struct I(usize);
impl StructuralMutator for I {
    fn dispatch_mutate(&mut self, v: &StructuralView, k: DefRegionKind) -> Result<Any> {
        if let Some(x) = v.cast::<i64>() {
            return fail(x, Any::from(x));
        }
        self.default_mutate(v, k)
    }
    fn dispatch_maybe_inplace_mutate(
        &mut self,
        v: InplaceValue<'_>,
        k: DefRegionKind,
    ) -> Result<Any> {
        match self.0 {
            0 => self.default_maybe_inplace_mutate(v, k),
            1 => self.default_maybe_inplace_mutate_result(v, k).map(Any::from),
            2 => self.default_maybe_inplace_mutate_with_mode(v, k, InplaceMode::Disallow),
            _ => self
                .default_maybe_inplace_mutate_with_mode_result(v, k, InplaceMode::Allow)
                .map(Any::from),
        }
    }
}
struct D(usize);
#[dispatch(mutate)]
impl D {
    fn mutate_int(&mut self, x: i64) -> Result<i64> {
        fail(x, x)
    }
    fn mutate_array(&mut self, v: MutateValue<'_, Array<Any>>, m: &mut Mutator) -> Result<Any> {
        match self.0 {
            0 => m.default_maybe_inplace_mutate(self, v),
            1 => m.default_mutate(self, v.as_value()),
            2 => {
                for x in &v.cast::<Array<Any>>().unwrap() {
                    m.mutate(self, &x)?;
                }
                Ok(v.to_owned())
            }
            3 => m.default_mutate_with_mode_result(self, v, InplaceMode::Disallow).map(Any::from),
            4 => m.default_mutate_result(self, v.as_value()).map(Any::from),
            _ => {
                for x in &v.cast::<Array<Any>>().unwrap() {
                    m.maybe_inplace_mutate(self, x)?;
                }
                Ok(v.to_owned())
            }
        }
    }
}
struct D2;
#[dispatch(mutate)]
impl D2 {
    fn mutate_int(&mut self, x: i64) -> Result<i64> {
        fail(x, x)
    }
}
struct D3(usize);
#[dispatch(mutate, policy = Through(self.0))]
impl D3 {
    fn mutate_int(&mut self, x: i64) -> Result<i64> {
        fail(x, x)
    }
}
struct Through(usize);
impl<S> MutContextPolicy<S> for Through {
    fn default_mutate(
        &self,
        v: MutateValue<'_>,
        c: &mut MutateContext<'_, S>,
    ) -> Result<UnchangedOr<Any>> {
        match self.0 {
            0 => c.default_maybe_inplace_mutate_result(v),
            1 => c.default_maybe_inplace_mutate(v).map(UnchangedOr::changed),
            2 => c.default_mutate_result(v.as_value()),
            3 => match v.cast::<Array<Any>>() {
                Some(a) => {
                    for x in &a {
                        c.mutate(&x)?;
                    }
                    Ok(UnchangedOr::unchanged())
                }
                None => Ok(UnchangedOr::unchanged()),
            },
            4 => c.with_def_region_kind(DefRegionKind::Simple, |c| {
                c.default_maybe_inplace_mutate_result(v)
            }),
            _ => match v.type_index() {
                71 => Err(Error::new(VALUE_ERROR, "policy", "")),
                _ => Ok(UnchangedOr::unchanged()),
            },
        }
    }
}
impl<S> ContextPolicy<S> for Through {
    fn default_visit(
        &self,
        v: &StructuralView,
        c: &mut VisitContext<'_, S>,
    ) -> Result<Option<VisitInterrupt>> {
        match self.0 {
            0 => c.visit_children(),
            1 => c.default_visit_children(v, DefRegionKind::Simple),
            2 => match v.cast::<Array<Any>>() {
                Some(a) => {
                    for x in &a {
                        c.visit(&x)?;
                    }
                    Ok(None)
                }
                None => Ok(None),
            },
            3 => match v.cast::<Array<Any>>() {
                Some(a) if a.len() == 2 => {
                    c.default_visit_children(&Array::new(vec![Any::from(a)]), DefRegionKind::None)
                }
                _ => c.visit_children(),
            },
            _ => match v.type_index() {
                71 => Err(Error::new(VALUE_ERROR, "policy", "")),
                _ => Ok(None),
            },
        }
    }
}
struct Map;
impl MapDispatch for Map {
    fn dispatch_map(&mut self, v: &StructuralView, _: DefRegionKind) -> Option<Result<Any>> {
        v.cast::<i64>().map(|x| fail(x, Any::from(x)))
    }
}
impl WalkDispatch for Map {
    fn dispatch_walk(
        &mut self,
        v: &StructuralView,
        _: DefRegionKind,
    ) -> Option<Result<WalkResult>> {
        v.cast::<i64>().map(|x| fail(x, WalkResult::Advance))
    }
}
struct V(usize);
impl StructuralVisitor for V {
    fn visit(&mut self, v: &StructuralView, k: DefRegionKind) -> Result<Option<VisitInterrupt>> {
        if let Some(x) = v.cast::<i64>() {
            return fail(x, None);
        }
        let Some(a) = v.cast::<Array<Any>>() else { return Ok(None) };
        match self.0 {
            0 => self.default_visit_children(v, k),
            1 => {
                for x in &a {
                    self.visit_child(&x, k)?;
                }
                Ok(None)
            }
            _ => {
                if a.len() == 2 {
                    let other = Array::new(vec![Any::from(ints(&[2, 2, 2]))]);
                    return self.visit_child(&other, k);
                }
                self.default_visit_children(v, k)
            }
        }
    }
}
struct V2(usize);
#[dispatch(visit, policy = Through(self.0))]
impl V2 {
    fn visit_int(&mut self, x: i64) -> Result<()> {
        fail(x, ())
    }
}

#[test]
fn transcripts() {
    let mut out = Text::new();
    for i in 0..7 {
        path(&mut out, &format!("mutator {i}"), structural_mutate(root(), &mut M(i)));
    }
    for i in 0..4 {
        path(&mut out, &format!("inplace {i}"), structural_mutate(root(), &mut I(i)));
    }
    for i in 0..6 {
        path(&mut out, &format!("dispatch {i}"), structural_mutate(root(), &mut D(i)));
    }
    path(&mut out, "dispatch default", structural_mutate(root(), D2));
    for i in 0..6 {
        path(&mut out, &format!("dispatch policy {i}"), structural_mutate(root(), &mut D3(i)));
        for order in [WalkOrder::PreOrder, WalkOrder::PostOrder] {
            path(
                &mut out,
                &format!("map policy {i} {order:?}"),
                structural_map(root(), MapWithContextPolicy::new(Map, Through(i)), order),
            );
            path(
                &mut out,
                &format!("map policies {i} {order:?}"),
                structural_map(
                    root(),
                    MapWithContextPolicy::new(Map, (Through(0), Through(i))),
                    order,
                ),
            );
        }
        let mut m = MutateCallbacks::new((), |x: i64, _: &mut MutateContext<'_>| fail(x, x))
            .with_policy(Through(i));
        path(&mut out, &format!("callbacks policy {i}"), structural_mutate(root(), &mut m));
        let mut m = MutateCallbacks::new((), |x: i64, _: &mut MutateContext<'_>| fail(x, x))
            .with_policy((Through(0), Through(i)));
        path(&mut out, &format!("callbacks policies {i}"), structural_mutate(root(), &mut m));
    }
    for i in 0..8 {
        let int = |x: i64, _: &mut MutateContext<'_>| fail(x, x);
        let r = structural_mutate(
            root(),
            (int, |v: MutateValue<'_, Array<Any>>, c: &mut MutateContext<'_>| -> Result<Any> {
                let a = v.cast::<Array<Any>>().unwrap();
                match i {
                    0 => c.default_maybe_inplace_mutate(v),
                    1 => c.default_mutate(v.as_value()),
                    2 => c.default_mutate_with_mode(v, InplaceMode::Disallow),
                    3 => c.mutate(&a.get(0)?),
                    4 => c.maybe_inplace_mutate(a.get(0)?),
                    5 => c.with_def_region_kind(DefRegionKind::Simple, |c| c.mutate(&2i64)),
                    6 => c.default_mutate_result(v.as_value()).map(Any::from),
                    _ => Err(Error::new(KEY_ERROR, "own", "")),
                }
            }),
        );
        path(
            &mut out,
            &format!("callbacks {i}"),
            if i == 3 || i == 4 { Err(Error::new(KEY_ERROR, "skipped", "")) } else { r },
        );
    }
    for i in 0..3 {
        path(&mut out, &format!("visitor {i}"), structural_visit(&root(), &mut V(i)));
    }
    for i in [0, 1, 2, 4] {
        path(&mut out, &format!("visit policy {i}"), structural_visit(&root(), &mut V2(i)));
        for order in [WalkOrder::PreOrder, WalkOrder::PostOrder] {
            path(
                &mut out,
                &format!("walk policy {i} {order:?}"),
                structural_walk(&root(), WalkWithContextPolicy::new(Map, Through(i)), order),
            );
            path(
                &mut out,
                &format!("walk policies {i} {order:?}"),
                structural_walk(
                    &root(),
                    WalkWithContextPolicy::new(Map, (Through(0), Through(i))),
                    order,
                ),
            );
        }
        let mut m = VisitCallbacks::new((), |x: i64, _: &mut VisitContext<'_, ()>| fail(x, ()))
            .with_policy(Through(i));
        path(&mut out, &format!("visit callbacks policy {i}"), structural_visit(&root(), &mut m));
        let mut m = VisitCallbacks::new((), |x: i64, _: &mut VisitContext<'_, ()>| fail(x, ()))
            .with_policy((Through(0), Through(i)));
        path(&mut out, &format!("visit callbacks policies {i}"), structural_visit(&root(), &mut m));
    }
    for i in 0..6 {
        let int = |x: i64, _: &mut VisitContext<'_, ()>| fail(x, ());
        let r = structural_visit(
            &root(),
            (int, |a: &ArrayObj, c: &mut VisitContext<'_, ()>| -> Result<Option<VisitInterrupt>> {
                match i {
                    0 => c.visit_children(),
                    1 => {
                        let v = c.current().to_owned();
                        c.default_visit_children(&v, DefRegionKind::None)
                    }
                    2 => c.visit(&2i64),
                    3 => c.visit_with(&2i64, DefRegionKind::Simple),
                    4 if a.size == 2 => c.visit(&ints(&[2])),
                    5 if a.size == 2 => {
                        c.default_visit_children(&Array::new(vec![ints(&[2])]), DefRegionKind::None)
                    }
                    _ => c.visit_children(),
                }
            }),
        );
        path(&mut out, &format!("visit callbacks {i}"), r);
    }
    // Existing contexts.
    let other: ObjectRef = ints(&[7]).try_cast().unwrap();
    let with_context = Error::new_with_cause_and_extra_context(
        VALUE_ERROR,
        "own",
        "frame\n",
        Some(&Error::new(KEY_ERROR, "cause", "")),
        Some(&other),
    );
    let r = structural_walk(
        &root(),
        |_: i64| -> Result<WalkResult> { Err(with_context.clone()) },
        WalkOrder::PreOrder,
    );
    let error = r.map(|_| ()).unwrap_err();
    writeln!(out, "cause {}", error.cause_chain().unwrap().message()).unwrap();
    path(&mut out, "context", Err::<(), _>(error.clone()));
    let r = structural_walk(
        &Array::new(vec![root()]),
        |a: Array<Any>| -> Result<WalkResult> {
            if a.len() == 2 {
                Err(error.clone())
            } else {
                Ok(WalkResult::Advance)
            }
        },
        WalkOrder::PreOrder,
    );
    path(&mut out, "context again", r);
    path(&mut out, "source", Err::<(), _>(error));
    golden::check("paths.txt", &out);
}
