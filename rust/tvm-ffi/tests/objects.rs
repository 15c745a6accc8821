// SPDX-License-Identifier: Apache-2.0
//! Objects: counts, casts, registration, reflection, and where their memory comes from.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use tvm_ffi::derive::{Object, ObjectRef};
use tvm_ffi::object::{is_instance_of, unsafe_, ObjectRef as AnyObject};
use tvm_ffi::tvm_ffi_sys::*;
use tvm_ffi::*;

thread_local!(static LAST_FREED: Cell<usize> = const { Cell::new(0) });

struct Recording;
unsafe impl GlobalAlloc for Recording {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        let _ = LAST_FREED.try_with(|last| last.set(layout.size()));
        unsafe { System.dealloc(ptr, layout) }
    }
}
#[global_allocator]
static ALLOCATOR: Recording = Recording;

#[repr(C)]
#[derive(Object)]
#[type_key = "test.objects.Base"]
#[type_register]
#[type_child_slots = 4]
struct BaseObj {
    base: tvm_ffi::Object,
    #[reflect(writable)]
    value: i64,
    #[reflect]
    r#type: String,
    hidden: i64,
}

#[repr(C)]
#[derive(Object)]
#[type_key = "test.objects.Leaf"]
#[type_register]
#[type_final]
#[type_s_eq_hash_kind = "TreeNode"]
struct LeafObj {
    base: BaseObj,
    #[reflect]
    items: Array<String>,
}

#[repr(C)]
#[derive(ObjectRef, Clone)]
struct Base {
    data: ObjectArc<BaseObj>,
}

#[repr(C)]
#[derive(ObjectRef, Clone)]
struct Leaf {
    data: ObjectArc<LeafObj>,
}

fn leaf(value: i64) -> Leaf {
    let base = BaseObj { base: tvm_ffi::Object::new(), value, r#type: "a type".into(), hidden: 7 };
    let items = Array::new(vec![String::from("a longer item")]);
    Leaf { data: ObjectArc::new(LeafObj { base, items }) }
}

#[test]
fn casts_keep_the_count() {
    let any = leaf(1).try_cast::<AnyObject>().unwrap();
    let base = any.try_cast::<Base>().unwrap();
    assert_eq!(ObjectArc::strong_count(&base.data), 1);
    assert_eq!(base.as_node::<LeafObj>().unwrap().items.len(), 1);
    let error = base.clone().try_cast::<Shape>().unwrap_err();
    assert!(error.message().contains("test.objects.Leaf") && error.message().contains("ffi.Shape"));
    let leaf = base.try_cast::<Leaf>().unwrap();
    assert_eq!(ObjectArc::strong_count(&leaf.data), 1);
    assert!(is_instance_of::<BaseObj>(LeafObj::type_index()));
    assert!(!is_instance_of::<LeafObj>(BaseObj::type_index()));
    assert_eq!(LeafObj::TYPE_DEPTH, 2);
}

#[test]
fn fields_are_reflected() {
    let leaf = leaf(5);
    let index = LeafObj::type_index();
    assert_eq!(index, BaseObj::type_index() + 1);
    let value: i64 = FieldGetter::new(index, "value").unwrap().get(&*leaf.data).unwrap();
    assert_eq!(value, 5);
    let text: String = FieldGetter::new(index, "type").unwrap().get(&*leaf.data).unwrap();
    assert_eq!(text, "a type");
    assert!(FieldGetter::new(index, "hidden").is_err());
    let equal = Function::get_global("ffi.StructuralEqual").unwrap();
    let same: bool =
        equal.call_tuple((&leaf, &self::leaf(5), false, false)).unwrap().try_into().unwrap();
    let other: bool =
        equal.call_tuple((&leaf, &self::leaf(6), false, false)).unwrap().try_into().unwrap();
    assert!(same && !other);
    let copy = Function::from_type_attr(index, "__ffi_shallow_copy__").unwrap();
    let copied: Leaf = copy.call_tuple((&leaf,)).unwrap().try_into().unwrap();
    assert!(copied.data.items.same_as(&leaf.data.items) && !copied.same_as(&leaf));
    assert_eq!(copied.data.base.hidden, 7);
    assert_eq!(copy.call_tuple((Shape::new(),)).unwrap_err().kind(), TYPE_ERROR);
    unsafe {
        let info = &*TVMFFIGetTypeInfo(BaseObj::type_index());
        let field = &*info.fields;
        assert_eq!(field.metadata.as_str(), r#"{"type_schema":"{\"type\":\"int\"}"}"#);
        assert_eq!((field.flags, field.offset, field.size), (1, 24, 8));
        let setter: TVMFFIFieldSetter = std::mem::transmute(field.setter);
        let address = &leaf.data.base.value as *const i64 as *mut std::ffi::c_void;
        let bad = Any::from(String::from("x"));
        assert_eq!(setter(address, &bad as *const Any as *const TVMFFIAny), -1);
        assert!(Error::from_raised().message().contains("expected a field value of type int"));
        assert_eq!(leaf.data.base.value, 5);
    }
}

#[test]
fn a_type_that_nobody_registered() {
    #[repr(C)]
    #[derive(Object)]
    #[type_key = "test.objects.Nobody"]
    struct NobodyObj {
        base: tvm_ffi::Object,
    }
    let panic = std::panic::catch_unwind(NobodyObj::type_index).unwrap_err();
    let text = panic.downcast_ref::<std::string::String>().unwrap();
    assert!(text.contains("Type key test.objects.Nobody is not registered"), "{text}");
}

#[repr(C)]
struct ItemsObj {
    header: TVMFFIObject,
    count: u64,
}
unsafe impl ObjectCore for ItemsObj {
    const TYPE_KEY: &'static str = "ffi.Object";
    const TYPE_DEPTH: i32 = 0;
    fn type_index() -> i32 {
        64
    }
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject {
        &mut this.header
    }
}
unsafe impl ObjectCoreWithExtraItems for ItemsObj {
    type ExtraItem = u64;
    fn extra_items_count(this: &Self) -> usize {
        this.count as usize
    }
}

/// Without a frontend the block is the object alone, from Rust's allocator, freed with its exact size.
#[test]
fn without_a_frontend_rust_allocates() {
    drop(ObjectArc::new(tvm_ffi::Object::new()));
    assert_eq!(LAST_FREED.get(), 24);
    let object = ItemsObj { header: TVMFFIObject::new(), count: 3 };
    let items = ObjectArc::new_with_extra_items(object);
    unsafe {
        let header = ObjectArc::as_raw(&items) as *mut TVMFFIObject;
        assert_eq!((*header).__padding, 0);
        (*header)
            .combined_ref_count
            .fetch_add(COMBINED_REF_COUNT_WEAK_ONE, std::sync::atomic::Ordering::Relaxed);
        drop(items);
        let count = (*header).combined_ref_count.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(count, COMBINED_REF_COUNT_WEAK_ONE);
        (*header).deleter.unwrap()(header as *mut std::ffi::c_void, 2);
    }
    assert_eq!(LAST_FREED.get(), 32 + 3 * 8);
}

/// With a frontend its allocator is used, the object is marked, and the block goes back to it.
#[test]
fn with_a_frontend_its_allocator_is_used() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn free(body: *mut std::ffi::c_void) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        let block = unsafe { (body as *mut u8).sub(16) };
        unsafe { System.dealloc(block, Layout::from_size_align(16 + 4096, 16).unwrap()) }
    }
    unsafe extern "C" fn allocate(
        size: usize,
        _: usize,
        _: i32,
        _: *mut std::ffi::c_void,
    ) -> *mut std::ffi::c_void {
        assert!(size <= 4096);
        LIVE.fetch_add(1, Ordering::Relaxed);
        unsafe {
            let block = System.alloc(Layout::from_size_align(16 + 4096, 16).unwrap());
            let body = block.add(16);
            (body as *mut TVMFFIObjectAllocHeader)
                .sub(1)
                .write(TVMFFIObjectAllocHeader { delete_space: Some(free) });
            body as *mut std::ffi::c_void
        }
    }
    static mut FRONTEND: TVMFFICustomAllocator =
        TVMFFICustomAllocator { allocate: Some(allocate), context: std::ptr::null_mut() };
    // In a process of its own: the allocator is one for all threads.
    if std::env::var_os("TEST_FRONTEND").is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "with_a_frontend_its_allocator_is_used"])
            .env("TEST_FRONTEND", "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let before = leaf(1);
    assert_eq!(unsafe { TVMFFISetCustomAllocator(&raw mut FRONTEND) }, 0);
    let made = leaf(2);
    unsafe {
        let header = ObjectArc::as_raw(&made.data) as *const TVMFFIObject;
        assert_eq!((*header).__padding, OBJECT_ALLOC_HEADER_MARK);
        unsafe_::inc_ref(header as *mut TVMFFIObject);
        unsafe_::dec_ref(header as *mut TVMFFIObject);
    }
    assert!(LIVE.load(Ordering::Relaxed) >= 1);
    let live = LIVE.load(Ordering::Relaxed);
    drop(before);
    assert_eq!(LIVE.load(Ordering::Relaxed), live);
    drop(made);
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
    assert_eq!(unsafe { TVMFFISetCustomAllocator(std::ptr::null_mut()) }, 0);
}

#[test]
fn threads_register_and_count() {
    let function = Function::from_typed(|x: i64| -> Result<i64> { Ok(x + 1) });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for i in 0..1000i64 {
                    let mine = function.clone();
                    assert_eq!(i64::try_from(mine.call_tuple((i,)).unwrap()).unwrap(), i + 1);
                    assert_eq!(leaf(i).data.base.value, i);
                }
            });
        }
    });
}

mod classes {
    use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object, String};

    #[rs_class("test.objects.Point", child_slots = 2)]
    pub struct PointObj {
        base: Object,
        #[reflect(writable)]
        pub x: i64,
        pub name: String,
    }
    def_object_ref!(pub Point, ObjectRef, PointObj);

    #[rs_class("test.objects.Point3", final, s_eq_hash_kind = "TreeNode")]
    pub struct Point3Obj {
        base: PointObj,
        #[reflect(repr_off)]
        pub z: f64,
    }
    def_object_ref!(pub Point3, Point, Point3Obj);
}

#[test]
fn classes() {
    use classes::*;
    let base = PointObj::new(tvm_ffi::Object::new(), 1, "p");
    let point = Point3::from(Point3Obj::new(base, 2.0));
    assert_eq!((point.x, point.z, point.name.as_str()), (1, 2.0, "p"));
    let up = Point::from(&point);
    assert!(up.same_as(&point) && up.as_node::<Point3Obj>().is_some());
    assert!(AnyObject::from(up).try_cast::<Point3>().is_ok());
    let text: String = Function::get_global("ffi.ReprPrint")
        .unwrap()
        .call_tuple((&point,))
        .unwrap()
        .try_into()
        .unwrap();
    assert!(text.contains("x=1") && !text.contains("z="), "{text}");
    let deep: Point3 = Function::get_global("ffi.DeepCopy")
        .unwrap()
        .call_tuple((&point,))
        .unwrap()
        .try_into()
        .unwrap();
    assert!(!deep.same_as(&point) && deep.z == 2.0);
}

#[test]
#[allow(clippy::needless_return)]
fn match_by_type() {
    use classes::*;
    fn name(value: &Any) -> std::string::String {
        match_any! { value.clone() {
            Point3(p) if p.z > 5.0 => format!("far {}", p.z),
            Point(p) => format!("point {}", p.x),
            Array::<i64>(a) => format!("{} ints", a.len()),
            Shape(_) => return "a shape".to_string(),
            _ => "other".to_string(),
        } }
    }
    let point = |x: i64, z: f64| {
        Any::from(Point3::from(Point3Obj::new(PointObj::new(tvm_ffi::Object::new(), x, ""), z)))
    };
    assert_eq!(name(&point(1, 9.0)), "far 9");
    assert_eq!(name(&point(1, 2.0)), "point 1");
    assert_eq!(name(&Any::from(Array::new(vec![1i64]))), "1 ints");
    assert_eq!(name(&Any::from(Shape::new())), "a shape");
    assert_eq!(name(&Any::from(4)), "other");
}

mod made_by_name {
    use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Array, Object, String};

    #[rs_class("test.objects.Plain")]
    #[derive(Default)]
    pub struct PlainObj {
        base: Object,
        pub name: String,
    }
    def_object_ref!(#[derive(Default)] pub Plain, ObjectRef, PlainObj);

    #[rs_class("test.objects.Whole")]
    #[derive(Default)]
    pub struct WholeObj {
        base: PlainObj,
        pub part: Plain,
        pub numbers: Array<i64>,
    }
    def_object_ref!(pub Whole, Plain, WholeObj);
}

#[test]
fn a_class_with_a_default_can_be_made_by_its_fields() {
    use made_by_name::{Plain, Whole, WholeObj};
    let index = WholeObj::type_index();
    let creator = unsafe { (*(*TVMFFIGetTypeInfo(index)).metadata).creator };
    assert!(creator.is_some());
    let make = Function::get_global("ffi.MakeObjectFromPackedArgs").unwrap();
    let key = String::from("test.objects.Whole");
    let name = (String::from("name"), String::from("it"));
    let numbers = (String::from("numbers"), Array::new(vec![1i64, 2]));
    let part = (String::from("part"), Plain::default());
    let made = make.call_tuple((&key, &name.0, &name.1, &numbers.0, &numbers.1, &part.0, &part.1));
    let made: Whole = made.unwrap().try_into().unwrap();
    assert_eq!((made.name.as_str(), made.numbers.len()), ("it", 2));
    assert!(made.part.same_as(&part.1));
    let missing = make.call_tuple((&key, &name.0, &name.1)).err().unwrap();
    assert!(missing.message().contains("`part` not set"), "{}", missing.message());
    let wrong = make.call_tuple((&key, &name.0, &1i64, &numbers.0, &numbers.1, &part.0, &part.1));
    assert!(wrong.err().unwrap().message().contains("ffi.String"));
}

#[test]
fn a_class_without_a_default_has_no_creator() {
    let metadata = unsafe { (*TVMFFIGetTypeInfo(BaseObj::type_index())).metadata };
    assert!(unsafe { (*metadata).creator.is_none() });
}

#[repr(C)]
#[derive(Object)]
#[type_key = "test.objects.Link"]
#[type_register]
struct LinkObj {
    base: tvm_ffi::Object,
    next: Option<ObjectArc<LinkObj>>,
    counted: std::rc::Rc<Cell<usize>>,
}

impl Drop for LinkObj {
    fn drop(&mut self) {
        self.counted.set(self.counted.get() + 1);
    }
}

#[test]
fn a_long_chain_is_dropped_without_a_deep_stack() {
    const LENGTH: usize = 300_000;
    let counted = std::rc::Rc::new(Cell::new(0));
    for _ in 0..2 {
        let mut head = None;
        for _ in 0..LENGTH {
            let link =
                LinkObj { base: tvm_ffi::Object::new(), next: head, counted: counted.clone() };
            head = Some(ObjectArc::new(link));
        }
        assert_eq!(counted.replace(0), 0);
        drop(head);
        assert_eq!(counted.replace(0), LENGTH);
    }
    assert_eq!(std::rc::Rc::strong_count(&counted), 1);
}
