// SPDX-License-Identifier: Apache-2.0
//! Maps and mutations.
use tvm_ffi::object::ObjectRef;
use tvm_ffi::*;

#[rs_class("test.mutate.Pair", s_eq_hash_kind = "TreeNode")]
pub struct PairObj {
    base: Object,
    pub left: Any1,
    pub right: i64,
}
type Any1 = Array<i64>;
def_object_ref!(pub Pair, ObjectRef, PairObj);

fn pair(left: &[i64], right: i64) -> Pair {
    Pair::from(PairObj::new(Object::new(), Array::new(left.to_vec()), right))
}

fn ints(value: Any) -> Vec<i64> {
    Array::<i64>::try_from(value).unwrap().iter().collect()
}

fn address<T: ObjectRefCore>(value: &T) -> usize {
    unsafe { ObjectArc::as_raw(T::data(value)) as *const () as usize }
}

#[test]
fn unique_values_change_in_place_and_shared_ones_are_copied() {
    let array = Array::new(vec![1i64, 2]);
    let at = address(&array);
    let result = structural_map(array, |x: i64| x + 1, WalkOrder::PostOrder).unwrap();
    let result = Array::<i64>::try_from(result).unwrap();
    assert_eq!((address(&result), result.get(0).unwrap()), (at, 2));
    let copy = structural_map(result.clone(), |x: i64| x + 1, WalkOrder::PreOrder).unwrap();
    assert_eq!(result.iter().collect::<Vec<_>>(), [2, 3]);
    assert_eq!(ints(copy), [3, 4]);
    let same = structural_map(result.clone(), |_: i64| Unchanged, WalkOrder::PostOrder).unwrap();
    assert_eq!(address(&Array::<i64>::try_from(same).unwrap()), at);
    let plain = structural_map(4i64, |x: i64| Ok(x * 2), WalkOrder::PreOrder).unwrap();
    assert_eq!(plain.try_as::<i64>(), Some(8));
}

#[test]
fn fields_are_copied_before_they_change() {
    let before = pair(&[1, 2], 3);
    let mapped = structural_map(before.clone(), |x: i64| x * 10, WalkOrder::PostOrder).unwrap();
    let after = Pair::try_from(mapped).unwrap();
    assert_eq!((before.right, before.left.get(0).unwrap()), (3, 1));
    assert_eq!((after.right, after.left.get(1).unwrap()), (30, 20));
    let kept = structural_map(before.clone(), |x: i64| x, WalkOrder::PreOrder).unwrap();
    assert!(Pair::try_from(kept).unwrap().same_as(&before));
    let replaced = structural_map(
        Array::new(vec![before.clone()]),
        (|p: &PairObj| pair(&[], p.right + 1), |x: i64, _: DefRegionKind| x + 1),
        WalkOrder::PreOrder,
    )
    .unwrap();
    assert_eq!(Array::<Pair>::try_from(replaced).unwrap().get(0).unwrap().right, 5);
}

#[test]
fn errors_and_panics() {
    let fail = |x: i64| -> Result<i64> { bail!(VALUE_ERROR, "at {}", x) };
    let root = pair(&[1], 2);
    let error = structural_map(root.clone(), fail, WalkOrder::PostOrder).unwrap_err();
    assert_eq!(error.message(), "at 1");
    assert!(error.backtrace().contains("[native structural map] field `left`"));
    assert_eq!(root.left.get(0).unwrap(), 1);
    let panics = || {
        structural_map(
            Array::new(vec![7i64]),
            |x: i64| -> i64 { panic!("at {x}") },
            WalkOrder::PreOrder,
        )
    };
    let payload = std::panic::catch_unwind(panics).err().unwrap();
    assert_eq!(payload.downcast_ref::<std::string::String>().unwrap(), "at 7");
    let bad = |_: i64| String::from("text");
    let error = structural_map(root, bad, WalkOrder::PostOrder).unwrap_err();
    assert_eq!(error.kind(), TYPE_ERROR);
}

#[derive(Default)]
struct Double {
    seen: usize,
}

#[dispatch(mutate)]
impl Double {
    fn mutate_int(&mut self, x: i64) -> i64 {
        self.seen += 1;
        2 * x
    }
    fn mutate_pair(&mut self, value: MutateValue<'_, Pair>, mutator: &mut Mutator) -> Result<Any> {
        self.seen += 100;
        mutator.default_maybe_inplace_mutate(self, value)
    }
}

#[dispatch(map)]
impl Double {
    fn map_int(&mut self, x: i64, _kind: DefRegionKind) -> Result<i64> {
        Ok(2 * x)
    }
    fn map_rest(&mut self, _value: &StructuralView) -> Unchanged {
        Unchanged
    }
}

#[test]
fn generated_mutators() {
    let mut double = Double::default();
    let result = structural_mutate(pair(&[1, 2], 3), &mut double).unwrap();
    let result = Pair::try_from(result).unwrap();
    assert_eq!((result.right, result.left.get(1).unwrap(), double.seen), (6, 4, 103));
    assert_eq!(ints(structural_mutate(Array::new(vec![4i64]), Double::default()).unwrap()), [8]);
    let mapped = structural_map(Array::new(vec![4i64]), &mut double, WalkOrder::PostOrder);
    assert_eq!(ints(mapped.unwrap()), [8]);
}

#[test]
fn callbacks_with_state_and_policies() {
    struct Count;
    impl MutContextPolicy<i64> for Count {
        fn default_mutate(
            &self,
            value: MutateValue<'_>,
            ctx: &mut MutateContext<'_, i64>,
        ) -> Result<UnchangedOr<Any>> {
            *ctx.state_mut() += 1;
            ctx.default_maybe_inplace_mutate_result(value)
        }
    }
    let callback = |x: i64, ctx: &mut MutateContext<'_, i64>| x + *ctx.state();
    let mut mutator =
        MutateCallbacks::new(0i64, callback).with_policy((Count, DefaultMutContextPolicy));
    let root = Array::new(vec![Array::new(vec![1i64]), Array::new(vec![1i64])]);
    let result = structural_mutate(root, &mut mutator).unwrap();
    let rows = Array::<Array<i64>>::try_from(result).unwrap();
    let rows: Vec<i64> = rows.iter().map(|row| row.get(0).unwrap()).collect();
    assert_eq!((rows, *mutator.state()), (vec![3, 4], 3));
    let outside = StructuralMutator::mutate(&mut Double::default(), &1i64, DefRegionKind::None);
    assert_eq!(outside.unwrap_err().kind(), RUNTIME_ERROR);
}

#[test]
fn maps_keep_their_keys() {
    let map: Map<i64, i64> = [(1, 10), (2, 20)].into_iter().collect();
    let result = structural_map(map.clone(), |x: i64| x + 1, WalkOrder::PostOrder).unwrap();
    let result = Map::<i64, i64>::try_from(result).unwrap();
    assert_eq!((result.get(&1).unwrap(), result.get(&2).unwrap()), (Some(11), Some(21)));
    assert_eq!(map.get(&1).unwrap(), Some(10));
}
