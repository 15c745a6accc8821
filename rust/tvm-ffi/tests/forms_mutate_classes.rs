// SPDX-License-Identifier: Apache-2.0
//! Mutation of reflected objects: copies, setters, variables, shared nodes, errors.
// The forms are tested as users may write them.
#![allow(clippy::all)]
#![allow(dropping_copy_types, unpredictable_function_pointer_comparisons, unused_assignments)]
use tvm_ffi::object::ObjectRef;
use tvm_ffi::tvm_ffi_sys::*;
use tvm_ffi::*;

#[rs_class("test.mutate_classes.Node", s_eq_hash_kind = "TreeNode")]
pub struct NodeObj {
    base: Object,
    pub value: i64,
    pub next: Option<ObjectRef>,
    #[reflect(seq_hash_ignore)]
    pub ignored: i64,
}
def_object_ref!(pub Node, ObjectRef, NodeObj);

#[rs_class("test.mutate_classes.Var", s_eq_hash_kind = "FreeVar")]
pub struct VarObj {
    base: Object,
    pub name: String,
}
def_object_ref!(pub Var, ObjectRef, VarObj);

#[rs_class("test.mutate_classes.Func", s_eq_hash_kind = "TreeNode")]
pub struct FuncObj {
    base: Object,
    #[reflect(seq_hash_def_pattern)]
    pub param: Var,
    pub body: Array<Var>,
}
def_object_ref!(pub Func, ObjectRef, FuncObj);

#[rs_class("test.mutate_classes.Dag", s_eq_hash_kind = "DAGNode")]
pub struct DagObj {
    base: Object,
    pub value: i64,
}
def_object_ref!(pub Dag, ObjectRef, DagObj);

fn node(value: i64, next: Option<ObjectRef>) -> Node {
    Node::from(NodeObj::new(Object::new(), value, next, 7))
}
fn var(name: &str) -> Var {
    Var::from(VarObj::new(Object::new(), name))
}
fn records(error: &Error) -> Vec<ObjectRef> {
    let context = error.extra_context().unwrap();
    let index = Any::from(context.clone()).type_index();
    let getter = FieldGetter::new(index, "reverse_visit_pattern").unwrap();
    let list: List<ObjectRef> = getter.get(&**ObjectRef::data(&context)).unwrap();
    list.iter().map(|x| x.unwrap()).collect()
}

#[test]
fn reflected_objects_are_copied() {
    let inner = node(2, None);
    let root = node(1, Some(inner.clone().into()));
    let kept = root.clone();
    let result = structural_map(root, |x: i64| x + 10, WalkOrder::PostOrder).unwrap();
    let new: Node = result.try_into().unwrap();
    assert!(!new.same_as(&kept));
    let new_inner = new.next.clone().unwrap().try_cast::<Node>().unwrap();
    assert_eq!((new.value, new_inner.value, new.ignored), (11, 12, 7));
    assert_eq!((kept.value, inner.value), (1, 2));
    for order in [WalkOrder::PreOrder, WalkOrder::PostOrder] {
        let same: Node =
            structural_map(kept.clone(), |x: i64| x, order).unwrap().try_into().unwrap();
        assert!(same.same_as(&kept));
        let same: Node =
            structural_map(kept.clone(), |_: i64| Unchanged, order).unwrap().try_into().unwrap();
        assert!(same.same_as(&kept));
    }
    // A unique root is copied, too.
    let unique = node(1, None);
    let address = unsafe { ObjectArc::as_raw(Node::data(&unique)) };
    let new: Node =
        structural_map(unique, |x: i64| x + 1, WalkOrder::PreOrder).unwrap().try_into().unwrap();
    assert_ne!(unsafe { ObjectArc::as_raw(Node::data(&new)) }, address);
    // A wrong type of a field.
    let e = structural_map(node(1, None), |_: i64| String::from("no int"), WalkOrder::PostOrder)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(e.kind(), TYPE_ERROR);
    // By node.
    let result = structural_map(
        kept.clone(),
        |n: &NodeObj| -> Result<Any> {
            Ok(if n.value == 2 { Any::from(node(5, None)) } else { Any::from(Unchanged) })
        },
        WalkOrder::PostOrder,
    )
    .unwrap();
    let new: Node = result.try_into().unwrap();
    assert_eq!(new.next.clone().unwrap().try_cast::<Node>().unwrap().value, 5);
}

#[test]
fn errors_name_fields() {
    let child = node(2, None);
    let root = node(1, Some(child.clone().into()));
    let fail = |x: i64| if x == 2 { Err(Error::new(VALUE_ERROR, "two", "")) } else { Ok(x) };
    for order in [WalkOrder::PreOrder, WalkOrder::PostOrder] {
        let e = structural_map(root.clone(), fail, order).map(|_| ()).unwrap_err();
        assert_eq!(
            e.backtrace(),
            "[native structural map] field `value`\n\
             [native structural map] object `test.mutate_classes.Node`\n\
             [native structural map] field `next`\n\
             [native structural map] object `test.mutate_classes.Node`\n"
        );
        let found = records(&e);
        assert_eq!(found.len(), 2);
        assert!(found[0].same_as(&child) && found[1].same_as(&root));
        let context = e.extra_context().unwrap();
        let find = Function::get_global("ffi.VisitErrorContext.FindAccessPaths").unwrap();
        let paths: Array<ObjectRef> =
            find.call_tuple((&root, &context, false)).unwrap().try_into().unwrap();
        assert_eq!(paths.len(), 1);
        let repr = Function::get_global("ffi.ReprPrint").unwrap();
        let text: String = repr.call_tuple((&paths.get(0).unwrap(),)).unwrap().try_into().unwrap();
        assert_eq!(text, "<root>.next");
    }
    let e = structural_mutate(root.clone(), |x: i64, _: &mut MutateContext<'_>| fail(x))
        .map(|_| ())
        .unwrap_err();
    assert_eq!(records(&e).len(), 2);
    // A child that goes back to the root: three records.
    let e =
        structural_mutate(root.clone(), |n: Node, c: &mut MutateContext<'_, ()>| -> Result<Any> {
            match n.value {
                2 if c.var_remap_get(c_view(&AnyView::from(&n)))?.is_some() => {
                    Err(Error::new(KEY_ERROR, "again", ""))
                }
                2 => {
                    c.var_remap_set(c_view(&AnyView::from(&n)), &Any::new())?;
                    c.default_mutate(&root)
                }
                _ => c.default_mutate(&n),
            }
        })
        .map(|_| ())
        .unwrap_err();
    assert_eq!(e.message(), "again");
    let found = records(&e);
    let values: Vec<_> = found.iter().map(|o| o.as_node::<NodeObj>().unwrap().value).collect();
    assert_eq!(values, [2, 1, 2, 1]);
}
fn c_view<'a>(view: &'a AnyView<'a>) -> &'a StructuralView {
    // SAFETY: both are one TVMFFIAny.
    unsafe { &*(view as *const AnyView<'a> as *const StructuralView) }
}

#[test]
fn variables_are_renamed_once() {
    let x = var("x");
    let free = var("free");
    let func = Func::from(FuncObj::new(
        Object::new(),
        x.clone(),
        Array::new(vec![x.clone(), free.clone(), x.clone()]),
    ));
    let rename = |name: String, kind: DefRegionKind| -> Any {
        if kind == DefRegionKind::Pattern {
            Any::from(String::from(format!("{}_new", name.as_str())))
        } else {
            Any::from(name)
        }
    };
    let new: Func =
        structural_map(func.clone(), rename, WalkOrder::PostOrder).unwrap().try_into().unwrap();
    assert_eq!(new.param.name, "x_new");
    assert!(new.body.get(0).unwrap().same_as(&new.param));
    assert!(new.body.get(2).unwrap().same_as(&new.param));
    assert!(new.body.get(1).unwrap().same_as(&free));
    // A free variable is not entered.
    let same: Var =
        structural_map(free.clone(), |_: String| String::from("y"), WalkOrder::PostOrder)
            .unwrap()
            .try_into()
            .unwrap();
    assert!(same.same_as(&free));
}

#[test]
fn shared_nodes_stay_shared() {
    let dag = Dag::from(DagObj::new(Object::new(), 1));
    let root = Array::new(vec![dag.clone(), dag.clone()]);
    let new: Array<Dag> =
        structural_map(root, |x: i64| x + 1, WalkOrder::PostOrder).unwrap().try_into().unwrap();
    assert!(new.get(0).unwrap().same_as(&new.get(1).unwrap()));
    assert_eq!((new.get(0).unwrap().value, dag.value), (2, 1));
}

#[test]
fn without_shallow_copy() {
    assert_eq!(unsafe { TVMFFITestingDummyTarget() }, 0);
    let new = Function::from_type_key_method("testing.TestNonCopyable", "__ffi_init__").unwrap();
    let object = new.call_tuple((1i64,)).unwrap();
    for result in [
        structural_map(object.clone(), |_: i64| Unchanged, WalkOrder::PostOrder),
        structural_map(object.clone(), |x: i64| x + 1, WalkOrder::PreOrder),
    ] {
        let e = result.map(|_| ()).unwrap_err();
        assert_eq!(
            (e.kind(), e.message()),
            (TYPE_ERROR, "type `testing.TestNonCopyable` cannot use reflected structural mutation because it does not define `__ffi_shallow_copy__`")
        );
    }
}

struct Shifter {
    by: i64,
}
struct Twice;
impl MutContextPolicy<Shifter> for Twice {
    fn default_mutate(
        &self,
        value: MutateValue<'_>,
        ctx: &mut MutateContext<'_, Shifter>,
    ) -> Result<UnchangedOr<Any>> {
        ctx.state_mut().by += 1;
        let result = ctx.default_maybe_inplace_mutate_result(value);
        ctx.state_mut().by -= 1;
        result
    }
}
#[dispatch(mutate, policy = Twice)]
impl Shifter {
    fn mutate_int(&mut self, x: i64) -> i64 {
        x + self.by
    }
    fn mutate_node(&mut self, n: &NodeObj, m: &mut Mutator) -> Result<Any> {
        m.default_mutate(self, &n.next)
    }
}

#[test]
fn generated_mutators_with_policy() {
    let root = Array::new(vec![Any::from(1i64), Any::from(Array::new(vec![1i64]))]);
    let result: Array<Any> =
        structural_mutate(root, &mut Shifter { by: 0 }).unwrap().try_into().unwrap();
    assert_eq!(result.get(0).unwrap().try_as::<i64>(), Some(2));
    assert_eq!(result.get(1).unwrap().try_as::<Array<i64>>().unwrap().get(0).unwrap(), 3);
    let result = structural_mutate(node(1, None), &mut Shifter { by: 0 }).unwrap();
    assert_eq!(result.type_index(), 0);
    let remap = StructuralVarRemap::default();
    let five = 5i64;
    let e = remap.get(c_view(&AnyView::from(&five))).map(|_| ()).unwrap_err();
    assert_eq!(
        (e.kind(), e.message()),
        (TYPE_ERROR, "variable-remap keys must be object-backed values")
    );
}
