// SPDX-License-Identifier: Apache-2.0
//! Derives, classes and their macros, form by form.
// The forms are tested as users may write them.
#![allow(clippy::all)]
#![allow(dropping_copy_types, unpredictable_function_pointer_comparisons, unused_assignments)]
use std::sync::atomic::Ordering;
use tvm_ffi::derive::Object;
use tvm_ffi::object::ObjectRef as AnyRef;
use tvm_ffi::reflection::{AccessPath, AccessStep};
use tvm_ffi::tvm_ffi_sys::*;
use tvm_ffi::*;

/// A module without imports.
mod bare {
    #[repr(C)]
    #[derive(::tvm_ffi::derive::Object)]
    #[type_key = "test.classes.Bare"]
    #[type_register]
    #[type_s_eq_hash_kind = "TreeNode"]
    pub struct BareObj {
        base: ::tvm_ffi::Object,
        #[reflect]
        pub value: i64,
        #[reflect(writable, kw_only, repr_off)]
        pub r#type: ::tvm_ffi::String,
        pub hidden: i64,
    }
    #[repr(C)]
    #[derive(::tvm_ffi::derive::ObjectRef, Clone)]
    pub struct Bare {
        pub data: ::tvm_ffi::ObjectArc<BareObj>,
    }
    impl BareObj {
        pub fn new(value: i64) -> Self {
            Self { base: ::tvm_ffi::Object::new(), value, r#type: "t".into(), hidden: 7 }
        }
    }
}

mod shadow {
    #[allow(dead_code)]
    mod tvm_ffi {
        pub struct Object;
        pub mod object {}
    }
    #[::tvm_ffi::rs_class("test.classes.Shadow", final, crate = ::tvm_ffi)]
    pub struct ShadowObj {
        base: ::tvm_ffi::Object,
        pub x: i64,
    }
    ::tvm_ffi::def_object_ref!(
        /// Documented.
        pub(crate) Shadow, ::tvm_ffi::object::ObjectRef, ShadowObj, crate = ::tvm_ffi,
    );
}

macro_rules! keyed {
    ($name:ident, $key:literal, $final:ident) => {
        #[repr(C)]
        #[derive(Object)]
        #[type_key = $key]
        #[type_register]
        #[$final]
        struct $name {
            base: tvm_ffi::Object,
        }
    };
}
keyed!(KeyedObj, "test.classes.Keyed", type_final);

#[rs_class(
    "test.classes.Root",
    s_eq_hash_kind = "TreeNode",
    child_slots = 2,
    child_slots_can_overflow = true
)]
pub struct RootObj {
    base: tvm_ffi::Object,
    pub x: i64,
    #[reflect(writable)]
    pub name: String,
}
def_object_ref!(pub Root, AnyRef, RootObj,);

#[rs_class("test.classes.Child")]
pub struct ChildObj {
    base: RootObj,
    pub y: f64,
    #[reflect(seq_hash_ignore, compare_off, hash_off)]
    items: Array<i64>,
    pub opt: Option<Root>,
}
def_object_ref!(pub Child, Root, ChildObj);
impl_object_upcast!(Child => AnyRef,);

#[rs_class("test.classes.Leaf", final)]
struct LeafObj {
    base: ChildObj,
}
def_object_ref!(Leaf, Child, LeafObj);
impl_object_upcast!(Leaf => Root, Leaf => AnyRef);

#[rs_class("test.classes.Derived")]
struct DerivedObj {
    base: CxxObj,
    z: i64,
}
#[repr(C)]
#[derive(Object, Clone)]
#[type_key = "testing.TestCxxClassBase"]
struct CxxObj {
    base: CloneObject,
    v_i64: i64,
    v_i32: i32,
}
type CloneObject = NoClone;
#[repr(C)]
struct NoClone(tvm_ffi::Object);
impl Clone for NoClone {
    fn clone(&self) -> Self {
        Self(tvm_ffi::Object::new())
    }
}
unsafe impl ObjectCore for NoClone {
    const TYPE_KEY: &'static str = "ffi.Object";
    const TYPE_DEPTH: i32 = 0;
    fn type_index() -> i32 {
        64
    }
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject {
        unsafe { tvm_ffi::Object::object_header_mut(&mut this.0) }
    }
}
impl ShallowCopy for CxxObj {
    fn shallow_copy(&self) -> Self {
        self.clone()
    }
}
def_object_ref!(Derived, AnyRef, DerivedObj);

fn root() -> Root {
    Root::from(RootObj::new(tvm_ffi::Object::new(), 1, "root"))
}
fn child() -> Child {
    Child::from(ChildObj::new(
        RootObj::new(tvm_ffi::Object::new(), 2, String::from("child")),
        1.5,
        vec![1i64].into_iter().collect::<Array<i64>>(),
        Some(root()),
    ))
}
fn leaf() -> Leaf {
    Leaf::from(LeafObj::new(ChildObj::new(
        RootObj::new(tvm_ffi::Object::new(), 3, "leaf"),
        2.5,
        Array::default(),
        None,
    )))
}
fn field(index: i32, name: &str) -> &'static TVMFFIFieldInfo {
    unsafe {
        let info = &*TVMFFIGetTypeInfo(index);
        (0..info.num_fields as usize)
            .map(|i| &*info.fields.add(i))
            .find(|f| f.name.as_str() == name)
            .unwrap()
    }
}

#[test]
fn classes() {
    let (c, l) = (child(), leaf());
    assert_eq!((c.x, c.y, c.name.as_str()), (2, 1.5, "child"));
    assert_eq!((l.x, l.y), (3, 2.5));
    assert_eq!(c.items.len(), 1);
    let up: Root = (&l).into();
    let up2 = Child::from(l.clone());
    assert!(up.same_as(&up2));
    assert_eq!(ObjectArc::strong_count(Leaf::data(&l)), 3);
    assert!(up.clone().try_cast::<Leaf>().is_ok());
    assert_eq!(up.as_node::<ChildObj>().unwrap().y, 2.5);
    let e = root().try_cast::<Child>().map(|_| ()).unwrap_err();
    assert!(
        e.message().contains("test.classes.Root") && e.message().contains("test.classes.Child")
    );
    let any = AnyRef::from(&c);
    assert_eq!(Any::from(any).type_index(), ChildObj::type_index());
    assert_eq!(Root::from(&up).x, 3);
    let back = Root::try_from(Any::from(l)).unwrap();
    assert_eq!(Any::from(back).type_index(), LeafObj::type_index());
    assert_eq!((RootObj::TYPE_DEPTH, ChildObj::TYPE_DEPTH, LeafObj::TYPE_DEPTH), (1, 2, 3));
    assert_eq!(ChildObj::type_index(), RootObj::type_index() + 1);
    assert!(LeafObj::TYPE_FINAL && !ChildObj::TYPE_FINAL);
    const { assert!(<Leaf as AnyCompatible>::MATCH_ANY_EXACT) };
    assert_eq!(Leaf::match_any_exact_type_index(), LeafObj::type_index());
    // Through a function and a container
    let f = Function::from_typed(|r: Root| -> Result<String> { Ok(r.name.clone()) });
    assert_eq!(String::try_from(f.call_tuple((&c,)).unwrap()).unwrap(), "child");
    let typed = into_typed_fn!(f, Fn(Root) -> Result<String>);
    assert_eq!(typed(root()).unwrap(), "root");
    assert_eq!(Array::new(vec![Root::from(&c), root()]).len(), 2);
    assert_eq!(c.opt.as_ref().unwrap().to_any().type_index(), RootObj::type_index());
}

#[test]
fn reflection_records() {
    let index = ChildObj::type_index();
    let info = unsafe { &*TVMFFIGetTypeInfo(index) };
    assert_eq!(info.num_fields, 3);
    let meta = unsafe { &*info.metadata };
    assert_eq!(meta.total_size as usize, std::mem::size_of::<ChildObj>());
    assert_eq!(meta.structural_eq_hash_kind, 1);
    assert!(meta.creator.is_none());
    let y = field(index, "y");
    assert_eq!((y.size, y.alignment), (8, 8));
    assert_eq!(y.offset as usize, std::mem::offset_of!(ChildObj, y));
    assert_eq!(y.metadata.as_str(), r#"{"type_schema":"{\"type\":\"float\"}"}"#);
    assert_eq!(y.field_static_type_index, 3);
    assert_eq!(y.flags, 0);
    let items = field(index, "items");
    assert_eq!(
        items.flags,
        (FieldFlags::SEQ_HASH_IGNORE | FieldFlags::COMPARE_OFF | FieldFlags::HASH_OFF).bits()
    );
    assert_eq!(
        items.metadata.as_str(),
        r#"{"type_schema":"{\"type\":\"ffi.Array\",\"args\":[{\"type\":\"int\"}]}"}"#
    );
    assert_eq!(items.field_static_type_index, 71);
    let opt = field(index, "opt");
    assert_eq!(
        opt.metadata.as_str(),
        r#"{"type_schema":"{\"type\":\"Optional\",\"args\":[{\"type\":\"test.classes.Root\"}]}"}"#
    );
    assert_eq!((opt.field_static_type_index, opt.size), (-1, 8));
    let name = field(RootObj::type_index(), "name");
    assert_eq!((name.flags, name.field_static_type_index, name.size), (1, -1, 16));
    let c = child();
    let get = |f: &str| FieldGetter::new(index, f).unwrap();
    assert_eq!(get("x").get::<_, i64>(&*c).unwrap(), 2);
    assert_eq!(get("name").get::<_, String>(&**Child::data(&c)).unwrap(), "child");
    let e = FieldGetter::new(index, "nothing").map(|_| ()).unwrap_err();
    assert_eq!(e.message(), "Cannot find reflected field `nothing` in type `test.classes.Child`");
    let e = get("y").get_any(&*root()).map(|_| ()).unwrap_err();
    assert_eq!(
        e.message(),
        format!(
            "Cannot read a field of type_index={index} from object type_index={}",
            RootObj::type_index()
        )
    );
    // the raw setter
    let mut text = Any::from(String::from("new name"));
    let r = root();
    unsafe {
        let at = (ObjectArc::as_raw(Root::data(&r)) as *mut u8).add(name.offset as usize);
        let setter: TVMFFIFieldSetter = std::mem::transmute(name.setter);
        assert_eq!(setter(at.cast(), text.as_data_ptr()), 0);
        assert_eq!(r.name, "new name");
        let mut wrong = Any::from(1.5f64);
        assert_eq!(setter(at.cast(), wrong.as_data_ptr()), -1);
        let e = Error::from_raised();
        assert_eq!(
            (e.kind(), e.message()),
            (TYPE_ERROR, "expected a field value of type ffi.String, got float")
        );
        assert_eq!(r.name, "new name");
    }
    // bare
    let bare = bare::BareObj::type_index();
    assert_eq!(
        field(bare, "type").flags,
        (FieldFlags::WRITABLE | FieldFlags::KW_ONLY | FieldFlags::REPR_OFF).bits()
    );
    assert_eq!(unsafe { (*TVMFFIGetTypeInfo(bare)).num_fields }, 2);
    // a registered type without reflection
    let info = unsafe { &*TVMFFIGetTypeInfo(KeyedObj::type_index()) };
    assert!(info.metadata.is_null() && info.num_fields == 0);
    assert!(get_type_attr(KeyedObj::type_index(), "__ffi_shallow_copy__").is_none());
    assert!(get_type_attr(index, "__ffi_type_final__").unwrap().try_as::<bool>() == Some(false));
    assert!(
        TypeAttrColumn::new("__ffi_type_final__")
            .unwrap()
            .get(LeafObj::type_index())
            .unwrap()
            .try_as::<bool>()
            == Some(true)
    );
    assert!(TypeAttrColumn::new("no such column at all").is_none());
    assert!(Function::from_type_method(index, "__ffi_init__").is_err());
}

#[test]
fn structural_functions_of_the_runtime() {
    let equal = Function::get_global("ffi.StructuralEqual").unwrap();
    let hash = Function::get_global("ffi.StructuralHash").unwrap();
    let eq = |a: &Root, b: &Root| -> bool {
        equal.call_tuple((a, b, false, false)).unwrap().try_into().unwrap()
    };
    assert!(eq(&root(), &root()));
    let other = Root::from(RootObj::new(tvm_ffi::Object::new(), 9, "root"));
    assert!(!eq(&root(), &other));
    let h = |a: &Root| hash.call_tuple((a, false, false)).unwrap().try_as::<i64>().unwrap();
    assert_eq!(h(&root()), h(&root()));
    assert_ne!(h(&root()), h(&other));
    let copy: Child = Function::get_global("ffi.DeepCopy")
        .unwrap()
        .call_tuple((&child(),))
        .unwrap()
        .try_into()
        .unwrap();
    assert_eq!(copy.name, "child");
    let repr: String = Function::get_global("ffi.ReprPrint")
        .unwrap()
        .call_tuple((&child(),))
        .unwrap()
        .try_into()
        .unwrap();
    assert!(repr.contains("x=2") && repr.contains("y=1.5"), "{repr}");
    let shallow =
        Function::from_type_attr(bare::BareObj::type_index(), "__ffi_shallow_copy__").unwrap();
    let b = bare::Bare { data: ObjectArc::new(bare::BareObj::new(5)) };
    let copy: bare::Bare = shallow.call_tuple((&b,)).unwrap().try_into().unwrap();
    assert_eq!((copy.data.value, copy.data.hidden), (5, 7));
    assert!(!copy.same_as(&b));
    let e = shallow.call_tuple((&root(),)).map(|_| ()).unwrap_err();
    assert_eq!(
        (e.kind(), e.message()),
        (
            TYPE_ERROR,
            "__ffi_shallow_copy__ of `test.classes.Bare` applied to a `test.classes.Root`"
        )
    );
}

#[test]
fn subtype_of_cxx() {
    assert_eq!(unsafe { TVMFFITestingDummyTarget() }, 0);
    let d = Derived::from(DerivedObj::new(
        CxxObj { base: NoClone(tvm_ffi::Object::new()), v_i64: 5, v_i32: 6 },
        7,
    ));
    let getter = FieldGetter::new(DerivedObj::type_index(), "v_i64").unwrap();
    assert_eq!(getter.get::<_, i64>(&*d.base).unwrap(), 5);
    assert_eq!((d.v_i32, d.z), (6, 7));
    assert_eq!(shadow::ShadowObj::TYPE_KEY, "test.classes.Shadow");
    let s = shadow::Shadow::from(shadow::ShadowObj::new(tvm_ffi::Object::new(), 1));
    assert_eq!(s.x, 1);
}

#[test]
fn unknown_type_keys_panic() {
    #[repr(C)]
    #[derive(Object)]
    #[type_key = "test.classes.Unregistered"]
    struct UnknownObj {
        base: tvm_ffi::Object,
    }
    let payload = std::panic::catch_unwind(UnknownObj::type_index).unwrap_err();
    let text = payload.downcast_ref::<std::string::String>().unwrap();
    assert_eq!(text, "Type key test.classes.Unregistered is not registered: load the library that defines it first, or add #[type_register] if this crate defines it");
}

#[test]
fn registration_from_threads() {
    macro_rules! types {
        ($($name:ident $key:literal),*) => {{
            $(
                #[repr(C)]
                #[derive(Object)]
                #[type_key = $key]
                #[type_register]
                struct $name { base: tvm_ffi::Object }
            )*
            let threads: Vec<fn() -> i32> = vec![$($name::type_index),*];
            let handles: Vec<_> = threads.into_iter().map(std::thread::spawn).collect();
            let mut indices: Vec<i32> = handles.into_iter().map(|h| h.join().unwrap()).collect();
            indices.sort();
            indices.dedup();
            assert_eq!(indices.len(), 8);
        }};
    }
    types!(A "test.classes.t1", B "test.classes.t2", C "test.classes.t3", D "test.classes.t4", E "test.classes.t5", F "test.classes.t6", G "test.classes.t7", H "test.classes.t8");
}

/// A const-generic type by hand.
#[repr(C)]
struct Grid<const N: usize> {
    header: TVMFFIObject,
    cells: [i64; N],
}
unsafe impl<const N: usize> ObjectCore for Grid<N> {
    const TYPE_KEY: &'static str = "ffi.Object";
    const TYPE_DEPTH: i32 = 0;
    fn type_index() -> i32 {
        TypeIndex::kTVMFFIStaticObjectBegin as i32
    }
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject {
        &mut this.header
    }
}
#[repr(C)]
struct Many {
    header: TVMFFIObject,
    count: u64,
}
unsafe impl ObjectCore for Many {
    const TYPE_KEY: &'static str = "ffi.Object";
    const TYPE_DEPTH: i32 = 0;
    fn type_index() -> i32 {
        64
    }
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject {
        &mut this.header
    }
}
unsafe impl ObjectCoreWithExtraItems for Many {
    type ExtraItem = u64;
    fn extra_items_count(this: &Self) -> usize {
        this.count as usize
    }
}

#[test]
fn objects_by_hand() {
    let grid = ObjectArc::new(Grid::<3> { header: TVMFFIObject::new(), cells: [1, 2, 3] });
    assert_eq!(grid.cells[2], 3);
    let mut many =
        ObjectArc::new_with_extra_items::<u64>(Many { header: TVMFFIObject::new(), count: 2 });
    unsafe {
        Many::extra_items_mut(&mut many).copy_from_slice(&[5, 6]);
        assert_eq!(Many::extra_items(&many), [5, 6]);
        let base = ObjectArc::as_raw(&many) as usize;
        assert_eq!(Many::extra_items(&many).as_ptr() as usize, base + std::mem::size_of::<Many>());
        let raw = ObjectArc::into_raw(many);
        (*raw).header.combined_ref_count.fetch_add(COMBINED_REF_COUNT_WEAK_ONE, Ordering::Relaxed);
        drop(ObjectArc::from_raw(raw));
        assert_eq!(
            (*raw).header.combined_ref_count.load(Ordering::Relaxed),
            COMBINED_REF_COUNT_WEAK_ONE
        );
        assert_eq!((*raw).header.type_index, 64);
        (*raw).header.deleter.unwrap()(
            raw as *mut _,
            TVMFFIObjectDeleterFlagBitMask::kTVMFFIObjectDeleterFlagBitMaskWeak as i32,
        );
    }
    let path = Function::from_type_key_method("ffi.reflection.AccessPath", "_root").unwrap();
    let root: AccessPath = path.call_tuple(()).unwrap().try_into().unwrap();
    let attr = Function::from_type_key_method("ffi.reflection.AccessPath", "_attr").unwrap();
    let attr: AccessPath = attr.call_tuple((&root, String::from("x"))).unwrap().try_into().unwrap();
    let steps = Function::from_type_key_method("ffi.reflection.AccessPath", "_to_steps").unwrap();
    let steps: Array<AccessStep> = steps.call_tuple((&attr,)).unwrap().try_into().unwrap();
    assert_eq!(steps.len(), 1);
    fn send<T: Send + Sync>() {}
    send::<Function>();
    send::<Module>();
    send::<AccessPath>();
    send::<AccessStep>();
    send::<TypeAttrColumn>();
}

struct Passing<T> {
    seen: Vec<T>,
}
#[dispatch(walk)]
impl<T> Passing<T>
where
    T: From<i64> + 'static,
{
    #[cfg(not(all()))]
    fn walk_never(&mut self, _: &NoSuchType) -> WalkResult {
        WalkResult::Advance
    }
    #[cfg(all())]
    #[allow(dead_code)]
    fn walk_int(&mut self, x: i64) -> WalkResult {
        self.seen.push(T::from(x));
        WalkResult::Advance
    }
    #[cfg_attr(all(), cfg(not(all())))]
    fn walk_all_early(&mut self, _: &tvm_ffi::StructuralView) -> WalkResult {
        WalkResult::Skip
    }
    fn walk_root(&mut self, _: &RootObj, _: DefRegionKind) -> Result<WalkResult> {
        Ok(WalkResult::Skip)
    }
    fn helper(&self) -> usize {
        self.seen.len()
    }
    fn walk_all(&mut self, _: &tvm_ffi::StructuralView) -> WalkResult {
        WalkResult::Advance
    }
}

#[test]
fn dispatch_forms() {
    let mut p = Passing::<i64> { seen: vec![] };
    structural_walk(
        &Array::new(vec![Any::from(1i64), Any::from(root())]),
        &mut p,
        WalkOrder::PreOrder,
    )
    .unwrap();
    assert_eq!((p.helper(), p.seen.as_slice()), (1, &[1i64][..]));
}

#[test]
fn match_any_forms() -> Result<()> {
    fn kind(value: Any) -> Result<i64> {
        let result = match_any! { value {
            Shape(s) if s.len() == 1 => s[0],
            Shape(_) => -1,
            Array::<i64>(a) => a.get(0)?,
            Array::<String>(_) => return Ok(-2),
            Root(r) => {
                let x = r.x;
                x
            },
            tvm_ffi::Function(f) => f.call_tuple(())?.try_into()?,
            _ => -3
        } };
        Ok(result)
    }
    assert_eq!(kind(Any::from(Shape::from([4i64])))?, 4);
    assert_eq!(kind(Any::from(Shape::from([4i64, 5])))?, -1);
    assert_eq!(kind(Any::from(Array::new(vec![8i64])))?, 8);
    assert_eq!(kind(Any::from(Array::new(vec![String::from("x")])))?, -2);
    assert_eq!(kind(Any::from(leaf()))?, 3);
    assert_eq!(kind(Any::from(Function::from_typed(|| -> Result<i64> { Ok(11) })))?, 11);
    assert_eq!(kind(Any::from(5i64))?, -3);
    assert_eq!(kind(Any::from(Map::<i64, i64>::new()))?, -3);
    let handle = leaf();
    let x = match_any! { handle { Leaf(l) => l.x, _ => 0 } };
    assert_eq!(x, 3);
    let any = Any::from(handle);
    let view = AnyView::from(&any);
    let y = match_any! { view { Leaf(l) => l.x, _ => 0, } };
    assert_eq!(y, 3);
    for i in 0..3 {
        match_any! { Any::from(Shape::from([i as i64])) {
            Shape(s) => if s[0] == 1 { break } else { continue },
            _ => unreachable!(),
        } }
    }
    let floats =
        match_any! { Any::from(Array::new(vec![1i64])) { Array::<f64>(a) => a.get(0)?, _ => 0.0 } };
    assert_eq!(floats, 1.0);
    let list: List<i64> = [1].into_iter().collect();
    let from_list = match_any! { Any::from(list) { Array::<i64>(a) => a.len(), _ => 0 } };
    assert_eq!(from_list, 1);
    Ok(())
}

#[test]
fn modules() {
    assert_eq!(unsafe { TVMFFITestingDummyTarget() }, 0);
    let module = Module::load_from_file("libtvm_ffi_testing.so").unwrap();
    let meta = module.get_function_metadata("testing_dll_schema_id_int", false).unwrap().unwrap();
    assert!(meta.contains("type_schema"));
    assert!(module.get_function_metadata("nothing", false).unwrap().is_none());
    assert!(module.get_function_doc("testing_dll_schema_id_int", false).unwrap().is_none());
    let e = module.get_function("nothing").map(|_| ()).unwrap_err();
    assert_eq!(e.message(), "Cannot convert from type `None` to `ffi.Function`");
    let system: Module =
        Function::get_global("ffi.SystemLib").unwrap().call_tuple(()).unwrap().try_into().unwrap();
    let import = Function::get_global("ffi.ModuleImportModule").unwrap();
    import.call_tuple((&system, &module)).unwrap();
    assert!(system.implements_function("testing_dll_schema_id_int", true).unwrap());
    assert!(!system
        .implements_function(String::from("testing_dll_schema_id_int").as_str(), false)
        .unwrap());
    assert!(Module::load_from_file("/no/such/file.so").is_err());
}
