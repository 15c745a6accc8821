// SPDX-License-Identifier: Apache-2.0
//! Walks and visits, form by form: handlers, chains, policies, regions, errors, panics.
// The forms are tested as users may write them.
#![allow(clippy::all)]
#![allow(dropping_copy_types, unpredictable_function_pointer_comparisons, unused_assignments)]
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, AssertUnwindSafe};
use tvm_ffi::collections::array::ArrayObj;
use tvm_ffi::collections::map::MapObj;
use tvm_ffi::object::ObjectRef;
use tvm_ffi::*;

#[rs_class("test.forms_visit.Pair", s_eq_hash_kind = "TreeNode")]
pub struct PairObj {
    base: Object,
    pub left: Any2,
    pub right: i64,
}
type Any2 = Option<ObjectRef>;
def_object_ref!(pub Pair, ObjectRef, PairObj);

#[rs_class("test.forms_visit.Var", s_eq_hash_kind = "FreeVar")]
pub struct VarObj {
    base: Object,
    pub name: String,
}
def_object_ref!(pub Var, ObjectRef, VarObj);

#[rs_class("test.forms_visit.Func", s_eq_hash_kind = "TreeNode")]
pub struct FuncObj {
    base: Object,
    #[reflect(seq_hash_def_pattern)]
    pub params: Array<Var>,
    #[reflect(seq_hash_def_simple)]
    pub simple: Option<Var>,
    pub body: Option<ObjectRef>,
    #[reflect(seq_hash_ignore)]
    pub ignored: i64,
}
def_object_ref!(pub Func, ObjectRef, FuncObj);

fn var(name: &str) -> Var {
    Var::from(VarObj::new(Object::new(), name))
}
fn pair(left: Option<ObjectRef>, right: i64) -> Pair {
    Pair::from(PairObj::new(Object::new(), left, right))
}
fn ints(items: &[i64]) -> Array<i64> {
    Array::new(items.to_vec())
}
fn nested() -> Array<Array<i64>> {
    Array::new(vec![ints(&[1, 2]), ints(&[3])])
}

#[test]
fn closures_of_each_shape() {
    let mut seen = Vec::new();
    structural_walk(
        &nested(),
        |v: &StructuralView| {
            seen.push(v.type_index());
            WalkResult::Advance
        },
        WalkOrder::PreOrder,
    )
    .unwrap();
    assert_eq!(seen, [71, 71, 1, 1, 71, 1]);
    let mut seen = Vec::new();
    structural_walk(
        &nested(),
        |v: &StructuralView, kind: DefRegionKind| {
            seen.push((v.type_index(), kind));
            Ok(WalkResult::Advance)
        },
        WalkOrder::PostOrder,
    )
    .unwrap();
    assert_eq!(seen.len(), 6);
    assert_eq!(seen[5], (71, DefRegionKind::None));
    let mut sum = 0;
    structural_walk(
        &nested(),
        |x: i64| {
            sum += x;
            WalkResult::Advance
        },
        WalkOrder::PostOrder,
    )
    .unwrap();
    assert_eq!(sum, 6);
    let mut sizes = Vec::new();
    structural_walk(
        &nested(),
        |node: &ArrayObj| -> Result<WalkResult> {
            sizes.push(node.size);
            Ok(WalkResult::Advance)
        },
        WalkOrder::PreOrder,
    )
    .unwrap();
    assert_eq!(sizes, [2, 2, 1]);
    let mut count = 0;
    structural_walk(
        &nested(),
        |_: &ArrayObj, _: DefRegionKind| {
            count += 1;
            WalkResult::Skip
        },
        WalkOrder::PreOrder,
    )
    .unwrap();
    assert_eq!(count, 1);
    let mut count = 0;
    structural_walk(
        &nested(),
        |_: Array<i64>, _: DefRegionKind| {
            count += 1;
            WalkResult::Skip
        },
        WalkOrder::PreOrder,
    )
    .unwrap();
    assert_eq!(count, 2);
}

#[test]
fn interrupts_and_none() {
    let stop = structural_walk(
        &nested(),
        |x: i64| if x == 2 { WalkResult::interrupt_with(x * 10) } else { WalkResult::Advance },
        WalkOrder::PreOrder,
    )
    .unwrap()
    .unwrap();
    assert_eq!(i64::try_from(stop.value).unwrap(), 20);
    let stop = structural_walk(&nested(), |_: i64| WalkResult::Interrupt, WalkOrder::PostOrder)
        .unwrap()
        .unwrap();
    assert_eq!(stop.value.type_index(), TypeIndex::kTVMFFINone as i32);
    let none: Option<i64> = None;
    let mut calls = 0;
    let done = structural_walk(
        &none,
        |_: &StructuralView| {
            calls += 1;
            WalkResult::Advance
        },
        WalkOrder::PreOrder,
    );
    assert!(done.unwrap().is_none());
    assert_eq!(calls, 0);
    let stop = structural_walk(&42i64, |x: i64| WalkResult::interrupt_with(x), WalkOrder::PreOrder);
    assert_eq!(i64::try_from(stop.unwrap().unwrap().value).unwrap(), 42);
    let error = Error::new(VALUE_ERROR, "bad", "");
    let identity = Error::data(&error).clone();
    let got = structural_walk(
        &42i64,
        |_: i64| -> Result<WalkResult> { Err(error.clone()) },
        WalkOrder::PreOrder,
    )
    .map(|_| ())
    .unwrap_err();
    unsafe {
        assert_eq!(ObjectArc::as_raw(Error::data(&got)), ObjectArc::as_raw(&identity));
    }
    assert_eq!(got.backtrace(), "");
}

#[test]
fn map_values_and_not_keys() {
    let map: Map<String, i64> =
        (0..9).map(|i| (String::from(format!("key number {i}")), i)).collect();
    let mut strings = 0;
    let mut sum = 0;
    structural_walk(
        &map,
        (
            |_: String| {
                strings += 1;
                WalkResult::Advance
            },
            |x: i64| {
                sum += x;
                WalkResult::Advance
            },
        ),
        WalkOrder::PreOrder,
    )
    .unwrap();
    assert_eq!((strings, sum), (0, 36));
    let error = structural_walk(
        &map,
        |x: i64| {
            if x == 5 {
                Err(Error::new(VALUE_ERROR, "five", ""))
            } else {
                Ok(WalkResult::Advance)
            }
        },
        WalkOrder::PreOrder,
    )
    .map(|_| ())
    .unwrap_err();
    assert_eq!(error.message(), "five");
    assert_eq!(error.backtrace(), "[native structural visit] object `ffi.Map`\n");
    let stop = structural_walk(
        &map,
        |x: i64| {
            if x == 5 {
                WalkResult::interrupt_with(String::from("stop"))
            } else {
                WalkResult::Advance
            }
        },
        WalkOrder::PreOrder,
    )
    .unwrap()
    .unwrap();
    assert_eq!(String::try_from(stop.value).unwrap(), "stop");
}

#[derive(Default)]
struct Counter {
    ints: Vec<i64>,
    arrays: usize,
    others: usize,
    regions: Vec<DefRegionKind>,
}

#[dispatch(walk)]
impl Counter {
    fn walk_int(&mut self, x: i64, kind: DefRegionKind) -> WalkResult {
        self.ints.push(x);
        self.regions.push(kind);
        WalkResult::Advance
    }
    fn walk_array(&mut self, _node: &ArrayObj) -> Result<WalkResult> {
        self.arrays += 1;
        Ok(WalkResult::Advance)
    }
    fn walk_other(&mut self, _value: &StructuralView) -> WalkResult {
        self.others += 1;
        WalkResult::Advance
    }
}

#[test]
fn generated_walkers_and_chains() {
    let mut counter = Counter::default();
    structural_walk(&nested(), &mut counter, WalkOrder::PreOrder).unwrap();
    assert_eq!(counter.ints, [1, 2, 3]);
    assert_eq!((counter.arrays, counter.others), (3, 0));
    let mut first = 0;
    structural_walk(
        &nested(),
        (
            |x: i64| {
                first += x;
                WalkResult::Advance
            },
            &mut counter,
        ),
        WalkOrder::PreOrder,
    )
    .unwrap();
    assert_eq!((first, counter.ints.len(), counter.arrays), (6, 3, 6));
    // one-tuples, nested tuples
    let calls = Cell::new(0);
    let tick = || {
        calls.set(calls.get() + 1);
        WalkResult::Advance
    };
    structural_walk(&nested(), (|_: i64| tick(),), WalkOrder::PreOrder).unwrap();
    assert_eq!(calls.take(), 3);
    structural_walk(
        &nested(),
        (
            (
                |_: f64| panic!("no floats") as WalkResult,
                |_: &MapObj| -> WalkResult { panic!("no maps") },
            ),
            ((|_: i64| tick(),), |_: &StructuralView| WalkResult::Advance),
        ),
        WalkOrder::PreOrder,
    )
    .unwrap();
    assert_eq!(calls.take(), 3);
    structural_walk(
        &nested(),
        (
            |_: String| WalkResult::Advance,
            |_: Bytes| WalkResult::Advance,
            |_: f64| WalkResult::Advance,
            |_: bool| WalkResult::Advance,
            |_: Shape| WalkResult::Advance,
            |_: Function| WalkResult::Advance,
            |_: Tensor| WalkResult::Advance,
            |_: Module| WalkResult::Advance,
            |_: &MapObj| WalkResult::Advance,
            |_: DLDevice, _: DefRegionKind| WalkResult::Advance,
            |_: i64, _: DefRegionKind| tick(),
            |_: &StructuralView, _: DefRegionKind| WalkResult::Advance,
        ),
        WalkOrder::PostOrder,
    )
    .unwrap();
    assert_eq!(calls.take(), 3);
}

#[derive(Default)]
struct Tracer {
    log: Vec<std::string::String>,
}

impl StructuralVisitor for Tracer {
    fn visit(
        &mut self,
        value: &StructuralView,
        def_region_kind: DefRegionKind,
    ) -> Result<Option<VisitInterrupt>> {
        if let Some(x) = value.cast::<i64>() {
            self.log.push(format!("{x}"));
            if x == 99 {
                return Ok(Some(VisitInterrupt::with(x)));
            }
            if x == 66 {
                bail!(VALUE_ERROR, "sixty-six");
            }
            if x == 13 {
                panic!("thirteen");
            }
            return Ok(None);
        }
        if let Some(v) = value.as_node::<VarObj>() {
            self.log.push(format!("{}:{:?}", v.name.as_str(), def_region_kind));
            return Ok(None);
        }
        self.log.push(format!("<{}", value.type_index()));
        let result = self.default_visit_children(value, def_region_kind);
        self.log.push(">".into());
        result
    }
}

#[test]
fn visitors_decide_themselves() {
    let mut tracer = Tracer::default();
    assert!(structural_visit::<Array<Array<i64>>, Tracer>(&nested(), &mut tracer)
        .unwrap()
        .is_none());
    assert_eq!(tracer.log, ["<71", "<71", "1", "2", ">", "<71", "3", ">", ">"]);
    let stop = structural_visit(&ints(&[1, 99, 2]), &mut tracer).unwrap().unwrap();
    assert_eq!(i64::try_from(stop.value).unwrap(), 99);
    let error = structural_visit(&pair(Some(ints(&[66]).try_cast().unwrap()), 1), &mut tracer)
        .map(|_| ())
        .unwrap_err();
    assert_eq!((error.kind(), error.message()), (VALUE_ERROR, "sixty-six"));
    // The visitor and its call of the default descent both add a frame.
    let mut frames: Vec<&str> =
        error.backtrace().lines().filter(|line| line.starts_with("[native")).collect();
    assert_eq!(frames.len(), 5);
    frames.dedup();
    assert_eq!(
        frames,
        [
            "[native structural visit] object `ffi.Array`",
            "[native structural visit] field `left`",
            "[native structural visit] object `test.forms_visit.Pair`"
        ]
    );
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        structural_visit(&ints(&[1, 13]), &mut tracer).map(|_| ())
    }))
    .unwrap_err();
    assert_eq!(panicked.downcast_ref::<&str>(), Some(&"thirteen"));
    assert!(structural_visit(&ints(&[1, 2]), &mut tracer).unwrap().is_none());
    let error = tracer.visit_child(&1i64, DefRegionKind::None).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), RUNTIME_ERROR);
    assert_eq!(
        error.message(),
        "structural visitor helper called outside structural_visit or structural_walk"
    );
}

#[test]
fn regions_of_fields() {
    let (a, b, c) = (var("a"), var("b"), var("c"));
    let body: ObjectRef = pair(Some(c.clone().into()), 3).into();
    let func = Func::from(FuncObj::new(
        Object::new(),
        Array::new(vec![a.clone()]),
        Some(b.clone()),
        Some(body),
        7,
    ));
    let mut tracer = Tracer::default();
    structural_visit(&func, &mut tracer).unwrap();
    let vars: Vec<_> = tracer.log.iter().filter(|l| l.contains(':')).cloned().collect();
    assert_eq!(vars, ["a:Pattern", "b:Simple", "c:None"]);
    assert!(!tracer.log.iter().any(|l| l == "7"));
    let mut kinds = Vec::new();
    structural_walk(
        &func,
        |v: &StructuralView, kind: DefRegionKind| {
            kinds.push((v.type_index() < 64, kind));
            WalkResult::Advance
        },
        WalkOrder::PreOrder,
    )
    .unwrap();
    use DefRegionKind::*;
    // func, params, a, a.name, b, b.name (inside a variable: None), body, c, c.name, 3
    let expected = [None, Pattern, Pattern, Pattern, Simple, None, None, None, None, None];
    assert_eq!(kinds.iter().map(|k| k.1).collect::<Vec<_>>(), expected);
}

#[derive(Default)]
struct Generated {
    vars: Vec<(std::string::String, DefRegionKind)>,
    ints: i64,
}

#[dispatch(visit)]
impl Generated {
    fn visit_var(&mut self, var: &VarObj, kind: DefRegionKind) {
        self.vars.push((var.name.to_string(), kind));
    }
    fn visit_int(&mut self, x: i64) -> Option<VisitInterrupt> {
        self.ints += x;
        (x == 99).then(|| VisitInterrupt::with("payload".to_string().len() as i64))
    }
    fn visit_pair(&mut self, pair: Pair, kind: DefRegionKind) -> Result<Option<VisitInterrupt>> {
        if let Some(stop) = self.visit_child(&pair.right, kind)? {
            return Ok(Some(stop));
        }
        self.visit_child(&pair.left, DefRegionKind::Simple)
    }
    fn visit_floats(&mut self, _: f64) -> Result<()> {
        bail!(TYPE_ERROR, "no floats")
    }
}

#[test]
fn generated_visitors() {
    let mut visitor = Generated::default();
    let root = Array::new(vec![pair(Some(var("x").into()), 5), pair(None, 6)]);
    assert!(structural_visit(&root, &mut visitor).unwrap().is_none());
    assert_eq!(visitor.ints, 11);
    assert_eq!(visitor.vars, [("\"x\"".to_string(), DefRegionKind::Simple)]);
    let stop = structural_visit(&pair(None, 99), &mut visitor).unwrap().unwrap();
    assert_eq!(i64::try_from(stop.value).unwrap(), 7);
    assert!(structural_visit(&1.5f64, &mut visitor).is_err());
}

fn plain_fn(x: i64, context: &mut VisitContext<'_, Vec<i64>>) -> Result<()> {
    context.state_mut().push(x);
    Ok(())
}

#[test]
fn callbacks_with_state() {
    let mut callbacks = VisitCallbacks::new(
        Vec::new(),
        (plain_fn, |a: &ArrayObj, context: &mut VisitContext<'_, Vec<i64>>| {
            context.state_mut().push(-a.size);
            assert_eq!(context.current().type_index(), 71);
            assert_eq!(context.def_region_kind(), DefRegionKind::None);
            let result = context.visit_children();
            context.state_mut().push(0);
            result
        }),
    );
    for _ in 0..2 {
        assert!(structural_visit(&nested(), &mut callbacks).unwrap().is_none());
        assert_eq!(callbacks.state(), &[-2, -2, 1, 2, 0, -1, 3, 0, 0]);
        callbacks.state_mut().clear();
    }
    assert!(callbacks.into_state().is_empty());
}

fn is_visitor<V: StructuralVisitor>(_: &V) {}

#[test]
fn callbacks_are_visitors() {
    let callbacks =
        VisitCallbacks::new(0i64, |x: i64, c: &mut VisitContext<'_, i64>| *c.state_mut() += x);
    is_visitor(&callbacks);
    let mut callbacks = callbacks.with_policy(DefaultContextPolicy);
    is_visitor(&callbacks);
    structural_visit(&nested(), &mut callbacks).unwrap();
    assert_eq!(*callbacks.state(), 6);
}

#[test]
fn bare_callbacks() {
    let seen = RefCell::new(Vec::new());
    structural_visit(
        &nested(),
        (
            |x: i64, _: &mut VisitContext<'_, ()>| seen.borrow_mut().push(x),
            |a: Array<i64>, c: &mut VisitContext<'_, ()>| -> Result<Option<VisitInterrupt>> {
                if a.len() == 1 {
                    return Ok(Some(VisitInterrupt::with(7i64)));
                }
                for x in &a {
                    c.visit(&x)?;
                }
                c.visit_with(&a.get(0)?, DefRegionKind::Pattern)
            },
        ),
    )
    .unwrap()
    .unwrap();
    assert_eq!(*seen.borrow(), [1, 2, 1]);
    let stop = structural_visit(
        &nested(),
        |v: &StructuralView, c: &mut VisitContext<'_, ()>| -> Option<VisitInterrupt> {
            if v.type_index() == 1 {
                return Some(VisitInterrupt::with(v.to_owned()));
            }
            c.visit_children().unwrap()
        },
    )
    .unwrap()
    .unwrap();
    assert_eq!(i64::try_from(stop.value).unwrap(), 1);
    // nested runs
    structural_visit(&nested(), |a: &ArrayObj, _: &mut VisitContext<'_, ()>| -> Result<()> {
        let inner = Cell::new(0);
        structural_visit(&ints(&[1, 2, 3]), |x: i64, _: &mut VisitContext<'_, ()>| {
            inner.set(inner.get() + x)
        })?;
        assert_eq!((inner.get(), a.size), (6, 2));
        Ok(())
    })
    .unwrap();
}

#[test]
fn callback_re_enters_itself() {
    let mut callbacks = VisitCallbacks::new(
        (0usize, 0usize, 0usize),
        |v: Array<Any>,
         c: &mut VisitContext<'_, (usize, usize, usize)>|
         -> Result<Option<VisitInterrupt>> {
            c.state_mut().0 += 1;
            c.state_mut().2 += 1;
            c.state_mut().1 = c.state().0.max(c.state().1);
            for child in &v {
                c.visit(&child)?;
            }
            c.state_mut().0 -= 1;
            Ok(None)
        },
    );
    let leaf = Array::new(vec![Any::from(1i64)]);
    let mid = Array::new(vec![Any::from(leaf.clone()), Any::from(leaf)]);
    let root = Array::new(vec![Any::from(mid)]);
    structural_visit(&root, &mut callbacks).unwrap();
    assert_eq!(callbacks.into_state(), (0, 3, 4));
}

#[test]
fn panics_resume_and_next_run_works() {
    let bad = |x: i64, _: &mut VisitContext<'_, ()>| {
        if x == 3 {
            panic!("three {x}");
        }
    };
    let payload = catch_unwind(AssertUnwindSafe(|| structural_visit(&nested(), bad).map(|_| ())))
        .unwrap_err();
    assert_eq!(payload.downcast_ref::<std::string::String>().unwrap(), "three 3");
    assert!(structural_visit(&ints(&[1, 2]), bad).unwrap().is_none());
    let payload = catch_unwind(AssertUnwindSafe(|| {
        structural_walk(
            &nested(),
            |x: i64| -> WalkResult { std::panic::panic_any(x) },
            WalkOrder::PostOrder,
        )
        .map(|_| ())
    }))
    .unwrap_err();
    assert_eq!(payload.downcast_ref::<i64>(), Some(&1));
}

struct Depth;
#[derive(Default)]
struct DepthState {
    depth: usize,
    seen: Vec<(i64, usize)>,
    descents: Vec<usize>,
}
impl ContextPolicy<DepthState> for Depth {
    fn default_visit(
        &self,
        value: &StructuralView,
        visitor: &mut VisitContext<'_, DepthState>,
    ) -> Result<Option<VisitInterrupt>> {
        let _ = value;
        visitor.state_mut().depth += 1;
        let depth = visitor.state().depth;
        visitor.state_mut().descents.push(depth);
        let result = visitor.visit_children();
        visitor.state_mut().depth -= 1;
        result
    }
}
struct Skip;
impl<S> ContextPolicy<S> for Skip {
    fn default_visit(
        &self,
        _: &StructuralView,
        _: &mut VisitContext<'_, S>,
    ) -> Result<Option<VisitInterrupt>> {
        Ok(None)
    }
}
impl WalkDispatch for DepthState {
    fn dispatch_walk(
        &mut self,
        value: &StructuralView,
        _: DefRegionKind,
    ) -> Option<Result<WalkResult>> {
        let x = value.cast::<i64>()?;
        let depth = self.depth;
        self.seen.push((x, depth));
        Some(Ok(WalkResult::Advance))
    }
}

#[test]
fn policies_compose() {
    let root = Array::new(vec![
        Any::from(1i64),
        Any::from(Array::new(vec![Any::from(2i64), Any::from(3i64)])),
        Any::from(4i64),
    ]);
    let mut callbacks = VisitCallbacks::new(
        DepthState::default(),
        |x: i64, c: &mut VisitContext<'_, DepthState>| {
            let depth = c.state().depth;
            c.state_mut().seen.push((x, depth));
        },
    )
    .with_policy((Depth, DefaultContextPolicy));
    structural_visit(&root, &mut callbacks).unwrap();
    assert_eq!(callbacks.state().seen, [(1, 1), (2, 2), (3, 2), (4, 1)]);
    assert_eq!(callbacks.state().descents, [1, 2]);
    let mut walk = WalkWithContextPolicy::new(DepthState::default(), (Depth, DefaultContextPolicy));
    structural_walk(&root, &mut walk, WalkOrder::PreOrder).unwrap();
    assert_eq!(walk.state().seen, [(1, 1), (2, 2), (3, 2), (4, 1)]);
    assert_eq!(walk.state().descents, [1, 2, 2, 3, 3, 2]);
    walk.state_mut().seen.clear();
    structural_walk(&root, walk, WalkOrder::PostOrder).unwrap();
    let mut walk = WalkWithContextPolicy::new(DepthState::default(), (Depth, (Skip, Depth)));
    structural_walk(&root, &mut walk, WalkOrder::PreOrder).unwrap();
    let state = walk.into_state();
    assert_eq!((state.seen.len(), state.descents.len()), (0, 1));
    let mut own = DepthState::default();
    let mut walk = WalkWithContextPolicy::new(&mut own, Skip);
    structural_walk(&root, &mut walk, WalkOrder::PreOrder).unwrap();
}

struct Region(DefRegionKind);
impl<S> ContextPolicy<S> for Region {
    fn default_visit(
        &self,
        value: &StructuralView,
        visitor: &mut VisitContext<'_, S>,
    ) -> Result<Option<VisitInterrupt>> {
        visitor.default_visit_children(value, self.0)
    }
}

#[test]
fn policies_set_regions() {
    let seen = |outer: DefRegionKind, inner: DefRegionKind| {
        let mut callbacks = VisitCallbacks::new(
            Vec::new(),
            |_: i64, c: &mut VisitContext<'_, Vec<DefRegionKind>>| {
                let kind = c.def_region_kind();
                c.state_mut().push(kind);
            },
        )
        .with_policy((Region(outer), Region(inner)));
        structural_visit(&nested(), &mut callbacks).unwrap();
        callbacks.into_state()
    };
    use DefRegionKind::*;
    assert_eq!(seen(None, None), [None, None, None]);
    assert_eq!(seen(Simple, None), [None, None, None]);
    assert_eq!(seen(Simple, Simple), [Simple, Simple, Simple]);
    assert_eq!(seen(Simple, Pattern), [Pattern, Pattern, Pattern]);
    assert_eq!(seen(Pattern, None), [Pattern, Pattern, Pattern]);
}

struct Retarget;
impl<S> ContextPolicy<S> for Retarget {
    fn default_visit(
        &self,
        value: &StructuralView,
        visitor: &mut VisitContext<'_, S>,
    ) -> Result<Option<VisitInterrupt>> {
        if let Some(p) = value.cast::<Pair>() {
            let kind = visitor.def_region_kind();
            return visitor.default_visit_children(&p.left, kind);
        }
        visitor.visit_children()
    }
}

#[test]
fn policies_retarget() {
    let root = pair(Some(ints(&[1, 2]).try_cast().unwrap()), 50);
    for order in [WalkOrder::PreOrder, WalkOrder::PostOrder] {
        let mut walk = WalkWithContextPolicy::new(Counter::default(), Retarget);
        structural_walk(&root, &mut walk, order).unwrap();
        assert_eq!(walk.state().ints, [1, 2]);
        assert_eq!((walk.state().arrays, walk.state().others), (0, 1));
        let mut walk = WalkWithContextPolicy::new(Counter::default(), Retarget);
        structural_walk(&pair(None, 50), &mut walk, order).unwrap();
        assert!(walk.state().ints.is_empty());
    }
}

struct SelfPolicy {
    skip: bool,
    ints: Vec<i64>,
}
struct MaybeSkip(bool);
impl ContextPolicy<SelfPolicy> for MaybeSkip {
    fn default_visit(
        &self,
        _: &StructuralView,
        visitor: &mut VisitContext<'_, SelfPolicy>,
    ) -> Result<Option<VisitInterrupt>> {
        visitor.state_mut().ints.push(-1);
        if self.0 {
            return Ok(None);
        }
        visitor.visit_children()
    }
}
#[dispatch(visit, policy = MaybeSkip(self.skip))]
impl SelfPolicy {
    fn visit_int(&mut self, x: i64) {
        self.ints.push(x);
    }
}

#[test]
fn generated_visitors_with_policy() {
    let mut visitor = SelfPolicy { skip: false, ints: vec![] };
    structural_visit(&nested(), &mut visitor).unwrap();
    assert_eq!(visitor.ints, [-1, -1, 1, 2, -1, 3]);
    visitor = SelfPolicy { skip: true, ints: vec![] };
    structural_visit(&nested(), &mut visitor).unwrap();
    assert_eq!(visitor.ints, [-1]);
}

#[test]
fn error_context_records_the_way() {
    let child = pair(None, 1);
    let root = pair(Some(child.clone().into()), 2);
    let error = structural_walk(
        &root,
        |x: i64| {
            if x == 1 {
                Err(Error::new(VALUE_ERROR, "one", ""))
            } else {
                Ok(WalkResult::Advance)
            }
        },
        WalkOrder::PreOrder,
    )
    .map(|_| ())
    .unwrap_err();
    let context = error.extra_context().unwrap();
    let index = Any::from(context.clone()).type_index();
    let records: List<ObjectRef> = FieldGetter::new(index, "reverse_visit_pattern")
        .unwrap()
        .get(&**ObjectRef::data(&context))
        .unwrap();
    assert_eq!(records.len(), 2);
    assert!(records.get(0).unwrap().same_as(&child));
    assert!(records.get(1).unwrap().same_as(&root));
    assert_eq!(
        error.backtrace(),
        "[native structural visit] field `right`\n\
         [native structural visit] object `test.forms_visit.Pair`\n\
         [native structural visit] field `left`\n\
         [native structural visit] object `test.forms_visit.Pair`\n"
    );
    let paths = Function::get_global("ffi.VisitErrorContext.FindAccessPaths").unwrap();
    let found: Array<Any> = paths.call_tuple((&root, &context, false)).unwrap().try_into().unwrap();
    assert_eq!(found.len(), 1);
    let repr = Function::get_global("ffi.ReprPrint").unwrap();
    let text: String = repr.call_tuple((&found.get(0).unwrap(),)).unwrap().try_into().unwrap();
    assert_eq!(text, "<root>.left");
    // A handler of the child itself fails.
    let error = structural_walk(
        &root,
        |p: &PairObj| {
            if p.right == 1 {
                Err(Error::new(VALUE_ERROR, "one", ""))
            } else {
                Ok(WalkResult::Advance)
            }
        },
        WalkOrder::PostOrder,
    )
    .map(|_| ())
    .unwrap_err();
    let context = error.extra_context().unwrap();
    let records: List<ObjectRef> = FieldGetter::new(index, "reverse_visit_pattern")
        .unwrap()
        .get(&**ObjectRef::data(&context))
        .unwrap();
    assert_eq!(records.len(), 2);
}

#[test]
fn views_of_region_graph() {
    let _ = unsafe { tvm_ffi_sys::TVMFFITestingDummyTarget() };
    let make = Function::get_global("testing.make_visit_region_graph").unwrap();
    for flag in [false, true] {
        let root = make.call_tuple((flag,)).unwrap();
        let mut seen = Vec::new();
        structural_walk(
            &root,
            |v: &StructuralView, kind: DefRegionKind| {
                seen.push((v.type_index(), kind));
                WalkResult::Advance
            },
            WalkOrder::PreOrder,
        )
        .unwrap();
        let kinds: Vec<_> = seen.iter().map(|s| s.1 as i32).collect();
        println!("{flag} {kinds:?}");
        assert!(seen.len() > 1);
    }
}
