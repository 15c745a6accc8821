// SPDX-License-Identifier: Apache-2.0
//! Walks and visits.
use tvm_ffi::object::ObjectRef;
use tvm_ffi::*;

#[rs_class("test.structural.Pair", s_eq_hash_kind = "TreeNode")]
pub struct PairObj {
    base: Object,
    #[reflect(seq_hash_def_pattern)]
    pub left: Option<ObjectRef>,
    pub right: i64,
    #[reflect(seq_hash_ignore)]
    pub note: i64,
}
def_object_ref!(pub Pair, ObjectRef, PairObj);

fn pair(left: impl Into<ObjectRef>, right: i64) -> Pair {
    Pair::from(PairObj::new(Object::new(), Some(left.into()), right, 99))
}

fn object<T: ObjectRefCore + AnyCompatible>(value: T) -> ObjectRef {
    value.try_cast().unwrap()
}

fn tree() -> Array<ObjectRef> {
    Array::new(vec![object(pair(object(Array::new(vec![1i64, 2])), 3)), object(Shape::new())])
}

#[test]
fn walks_in_both_orders() {
    let mut seen = Vec::new();
    structural_walk(
        &tree(),
        |x: i64| {
            seen.push(x);
            WalkResult::Advance
        },
        WalkOrder::PreOrder,
    )
    .unwrap();
    assert_eq!(seen, [1, 2, 3]);
    for (order, expected) in [(WalkOrder::PreOrder, "paiii"), (WalkOrder::PostOrder, "iiaip")] {
        let mut text = std::string::String::new();
        let shared = std::cell::RefCell::new(&mut text);
        structural_walk(
            &pair(object(Array::new(vec![1i64, 2])), 3),
            (
                |_: &PairObj| {
                    shared.borrow_mut().push('p');
                    WalkResult::Advance
                },
                |_: Array<i64>| {
                    shared.borrow_mut().push('a');
                    WalkResult::Advance
                },
                |v: &StructuralView, _: DefRegionKind| {
                    shared.borrow_mut().push(if v.type_index() == 1 { 'i' } else { '?' });
                    Ok(WalkResult::Advance)
                },
            ),
            order,
        )
        .unwrap();
        assert_eq!(text, expected);
    }
}

#[test]
fn skip_interrupt_error_panic() {
    let mut count = 0;
    let skip = |_: &PairObj| {
        count += 1;
        WalkResult::Skip
    };
    structural_walk(&tree(), skip, WalkOrder::PreOrder).unwrap();
    assert_eq!(count, 1);
    let stop = |x: i64| if x == 2 { WalkResult::interrupt_with(x) } else { WalkResult::Advance };
    let stopped = structural_walk(&tree(), stop, WalkOrder::PreOrder).unwrap().unwrap();
    assert_eq!(stopped.value.try_as::<i64>(), Some(2));
    let fail = |x: i64| -> Result<WalkResult> {
        ensure!(x != 2, VALUE_ERROR, "two");
        Ok(WalkResult::Advance)
    };
    let error = structural_walk(&tree(), fail, WalkOrder::PreOrder).unwrap_err();
    assert_eq!((error.kind(), error.message()), (VALUE_ERROR, "two"));
    let frames: Vec<_> = error.backtrace().lines().filter(|l| l.contains("native")).collect();
    assert_eq!(
        frames,
        [
            "[native structural visit] object `ffi.Array`",
            "[native structural visit] field `left`",
            "[native structural visit] object `test.structural.Pair`",
            "[native structural visit] object `ffi.Array`",
        ]
    );
    assert!(error.extra_context().is_some());
    let panics = || {
        structural_walk(&tree(), |x: i64| -> WalkResult { panic!("at {x}") }, WalkOrder::PreOrder)
    };
    let payload = std::panic::catch_unwind(panics).err().unwrap();
    assert_eq!(payload.downcast_ref::<std::string::String>().unwrap(), "at 1");
    let after = structural_walk(&tree(), |_: i64| WalkResult::Advance, WalkOrder::PreOrder);
    assert!(after.unwrap().is_none());
}

#[derive(Default)]
struct Collect {
    ints: Vec<(i64, DefRegionKind)>,
    pairs: usize,
}

#[dispatch(visit)]
impl Collect {
    fn visit_int(&mut self, x: i64, kind: DefRegionKind) {
        self.ints.push((x, kind));
    }
    fn visit_pair(&mut self, pair: &PairObj, kind: DefRegionKind) -> Result<()> {
        self.pairs += 1;
        self.visit_child(&pair.left, DefRegionKind::Pattern)?;
        self.visit_child(&pair.right, kind)?;
        Ok(())
    }
}

#[dispatch(walk)]
impl Collect {
    fn walk_int(&mut self, x: i64, kind: DefRegionKind) -> WalkResult {
        self.ints.push((x, kind));
        WalkResult::Advance
    }
    fn walk_rest(&mut self, _: &StructuralView) -> Result<WalkResult> {
        Ok(WalkResult::Advance)
    }
}

#[test]
fn generated_visitors_and_regions() {
    use DefRegionKind::{None, Pattern};
    let expected = [(1, Pattern), (2, Pattern), (3, None)];
    let mut visitor = Collect::default();
    assert!(structural_visit(&tree(), &mut visitor).unwrap().is_none());
    assert_eq!((visitor.pairs, &visitor.ints[..]), (1, &expected[..]));
    let mut walker = Collect::default();
    structural_walk(&tree(), &mut walker, WalkOrder::PostOrder).unwrap();
    assert_eq!(walker.ints, expected);
    let outside = Collect::default().visit_child(&1i64, None).err().unwrap();
    assert_eq!(outside.kind(), RUNTIME_ERROR);
}

#[test]
fn callbacks_with_state_and_policies() {
    struct Depth;
    impl ContextPolicy<Vec<usize>> for Depth {
        fn default_visit(
            &self,
            value: &StructuralView,
            visitor: &mut VisitContext<'_, Vec<usize>>,
        ) -> Result<Option<VisitInterrupt>> {
            if value.cast::<Array<Any>>().is_none() {
                return visitor.visit_children();
            }
            visitor.state_mut()[0] += 1;
            let result = visitor.visit_children();
            visitor.state_mut()[0] -= 1;
            result
        }
    }
    let callback = |_: i64, ctx: &mut VisitContext<'_, Vec<usize>>| {
        let depth = ctx.state()[0];
        ctx.state_mut().push(depth);
    };
    let mut visitor =
        VisitCallbacks::new(vec![0], callback).with_policy((Depth, DefaultContextPolicy));
    structural_visit(&tree(), &mut visitor).unwrap();
    assert_eq!(visitor.state(), &[0, 2, 2, 1]);
    structural_visit(&tree(), &mut visitor).unwrap();
    assert_eq!(visitor.into_state().len(), 7);
}
