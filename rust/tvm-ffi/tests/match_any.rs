// SPDX-License-Identifier: Apache-2.0
//! `match_any!` with many arms: a table finds the arm.
use tvm_ffi::match_any_internal::{LeafLookupTable, LeafPatternMetadata, LeafPatternProbe};
use tvm_ffi::object::ObjectRef;
use tvm_ffi::*;

#[rs_class("test.match.Base", child_slots = 20)]
pub struct BaseObj {
    base: Object,
}
def_object_ref!(pub Base, ObjectRef, BaseObj);

macro_rules! leaves {
    ($($leaf:ident $obj:ident $key:literal),*) => {
        $(
            #[rs_class($key, final)]
            pub struct $obj {
                base: BaseObj,
            }
            def_object_ref!(pub $leaf, Base, $obj);
        )*
        fn all() -> Vec<(Any, &'static str)> {
            vec![$((
                Any::from($leaf::from($obj::new(BaseObj::new(Object::new())))),
                stringify!($leaf),
            )),*]
        }
        fn name(value: &Any) -> &'static str {
            match_any! { value.clone() {
                $($leaf(_) => stringify!($leaf),)*
                _ => "other",
            } }
        }
    };
}
leaves!(
    A0 A0Obj "test.match.0", A1 A1Obj "test.match.1", A2 A2Obj "test.match.2", A3 A3Obj "test.match.3",
    A4 A4Obj "test.match.4", A5 A5Obj "test.match.5", A6 A6Obj "test.match.6", A7 A7Obj "test.match.7",
    A8 A8Obj "test.match.8", A9 A9Obj "test.match.9", B0 B0Obj "test.match.10", B1 B1Obj "test.match.11",
    B2 B2Obj "test.match.12", B3 B3Obj "test.match.13", B4 B4Obj "test.match.14", B5 B5Obj "test.match.15",
    B6 B6Obj "test.match.16", B7 B7Obj "test.match.17", B8 B8Obj "test.match.18", B9 B9Obj "test.match.19"
);

#[test]
fn every_leaf_finds_its_arm() {
    for (value, expected) in all() {
        assert_eq!(name(&value), expected);
    }
    assert_eq!(name(&Any::from(Shape::new())), "other");
    assert_eq!(name(&Any::from(1)), "other");
}

#[test]
#[allow(clippy::needless_borrow)]
fn tables_and_probes() {
    let id = std::any::TypeId::of::<()>();
    let table = LeafLookupTable::build(id, &[70, 72, 70]);
    assert_eq!(table.lookup(id, 70), Ok(Some(0)));
    assert_eq!(table.lookup(id, 72), Ok(Some(1)));
    assert_eq!(
        (table.lookup(id, 71), table.lookup(id, 3), table.lookup(id, 99)),
        (Ok(None), Ok(None), Ok(None))
    );
    assert_eq!(table.lookup(std::any::TypeId::of::<i64>(), 70), Err(()));
    let exact = LeafPatternProbe::<(Module, (A0, ()))>::new();
    assert!((&exact).leaf_pattern_list_id().is_some());
    let mixed = LeafPatternProbe::<(Module, (Array<i64>, ()))>::new();
    assert!((&mixed).leaf_pattern_list_id().is_none());
}

#[test]
fn other_types_convert_by_try_from() {
    struct Long(usize);
    impl<'a> TryFrom<AnyView<'a>> for Long {
        type Error = &'static str;
        fn try_from(view: AnyView<'a>) -> std::result::Result<Self, Self::Error> {
            let text = view.try_as::<String>().ok_or("not a string")?;
            if text.len() > 10 {
                Ok(Self(text.len()))
            } else {
                Err("short")
            }
        }
    }
    let length = |text: &str| {
        match_any! { Any::from(String::from(text)) {
            Long(Long(length)) => length,
            String(text) if text.len() == 9 => 9,
            _ => 0,
        } }
    };
    assert_eq!(
        (length("a text of 19 chars."), length("nine char"), length("ten  chars")),
        (19, 9, 0)
    );
}
