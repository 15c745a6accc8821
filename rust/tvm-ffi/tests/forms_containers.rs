// SPDX-License-Identifier: Apache-2.0
//! Lists, maps, big integers, optionals, tensor views, moved arguments, form by form.
// The forms are tested as users may write them.
#![allow(clippy::all)]
#![allow(dropping_copy_types, unpredictable_function_pointer_comparisons, unused_assignments)]
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::panic::{catch_unwind, AssertUnwindSafe};
use tvm_ffi::collections::list::{ListIterator, ListObj};
use tvm_ffi::collections::map::{MapItems, MapKeys, MapObj, MapValues};
use tvm_ffi::object::ObjectRef;
use tvm_ffi::tvm_ffi_sys::*;
use tvm_ffi::*;

fn message(f: impl FnOnce()) -> std::string::String {
    let payload = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    match payload.downcast_ref::<std::string::String>() {
        Some(text) => text.clone(),
        None => payload.downcast_ref::<&str>().unwrap().to_string(),
    }
}
fn list(items: &[i64]) -> List<i64> {
    items.iter().copied().collect()
}
fn all(list: &List<i64>) -> Vec<i64> {
    list.iter().map(|x| x.unwrap()).collect()
}
fn count<T: ObjectRefCore>(value: &T) -> usize {
    ObjectArc::strong_count(T::data(value))
}

#[test]
fn list_basics_and_messages() {
    let l = list(&[1, 2, 3]);
    assert_eq!(format!("{l:?}"), "List<i64>[3]");
    assert_eq!(l.len(), 3);
    assert_eq!(std::mem::size_of::<List<i64>>(), 8);
    assert_eq!(List::<i64>::type_str(), "List<int>");
    for (what, error) in [
        ("get", l.get(3).map(|_| ()).unwrap_err()),
        ("set", l.set(3, 1).unwrap_err()),
        ("insert", l.insert(4, 1).unwrap_err()),
        ("remove", l.remove(3).map(|_| ()).unwrap_err()),
        ("remove_range", l.remove_range(2, 4).unwrap_err()),
        ("remove_range", l.remove_range(2, 1).unwrap_err()),
        ("insert_many", l.insert_many(4, [1]).unwrap_err()),
    ] {
        assert_eq!(error.kind(), INDEX_ERROR);
        assert_eq!(error.message(), format!("List {what} index out of bound"));
    }
    let e = List::<i64>::new();
    assert!(e.is_empty());
    for (what, error) in [
        ("first", e.first().map(|_| ()).unwrap_err()),
        ("last", e.last().map(|_| ()).unwrap_err()),
        ("pop", e.pop().map(|_| ()).unwrap_err()),
    ] {
        assert_eq!(error.message(), format!("List {what} index out of bound"));
    }
    l.insert(0, 0).unwrap();
    l.insert(4, 9).unwrap();
    assert_eq!(all(&l), [0, 1, 2, 3, 9]);
    assert_eq!((l.first().unwrap(), l.last().unwrap()), (0, 9));
    l.truncate(100);
    l.truncate(2);
    assert_eq!(all(&l), [0, 1]);
    l.reserve(10).unwrap();
    assert_eq!(l.capacity(), 12);
    l.reserve(5).unwrap();
    assert_eq!(l.capacity(), 12);
    l.resize(4, 7).unwrap();
    l.resize(3, 7).unwrap();
    assert_eq!(all(&l), [0, 1, 7]);
    l.remove_range(0, 0).unwrap();
    l.reverse();
    assert_eq!(all(&l), [7, 1, 0]);
    let cap = l.capacity();
    l.clear();
    assert_eq!((l.len(), l.capacity()), (0, cap));
}

#[test]
fn list_growth() {
    let l = List::<i64>::new();
    let deleter = List::data(&l).data_deleter;
    let mut capacities = Vec::new();
    for i in 0..100 {
        l.push(i).unwrap();
        if capacities.last() != Some(&l.capacity()) {
            capacities.push(l.capacity());
        }
    }
    assert_eq!(l.len(), 100);
    for pair in capacities.windows(2) {
        assert_eq!(pair[1], 2 * pair[0], "{capacities:?}");
    }
    assert!(deleter.is_none() || List::data(&l).data_deleter == deleter);
    let append = Function::get_global("ffi.ListAppend").unwrap();
    append.call_tuple((&l, 5i64)).unwrap();
    assert_eq!(l.get(100).unwrap(), 5);
    let l = list(&[1, 2, 3, 4]);
    let (data, deleter) = (List::data(&l).data, List::data(&l).data_deleter);
    l.reserve(4).unwrap();
    let inside = List::data(&l).data;
    l.push(1).unwrap();
    assert_eq!(List::data(&l).data, inside);
    assert_ne!(inside, data);
    assert_eq!(List::data(&l).data_deleter, deleter);
}

#[test]
fn list_counts() {
    let shape = Shape::from([1i64]);
    let l: List<Shape> = [shape.clone(), shape.clone(), shape.clone()].into_iter().collect();
    assert_eq!(count(&shape), 4);
    l.set(0, Shape::new()).unwrap();
    assert_eq!(count(&shape), 3);
    drop(l.remove(0).unwrap());
    assert_eq!(count(&shape), 3);
    l.extend([shape.clone(), shape.clone()]).unwrap();
    assert_eq!(count(&shape), 5);
    l.remove_range(1, 3).unwrap();
    assert_eq!(count(&shape), 3);
    l.truncate(1);
    assert_eq!(count(&shape), 2);
    let same = l.clone();
    l.clear();
    assert_eq!(count(&shape), 1);
    assert!(same.is_empty());
    l.resize(5, shape.clone()).unwrap();
    assert_eq!(count(&shape), 6);
    drop((l, same));
    assert_eq!(count(&shape), 1);
}

#[test]
fn list_iterators() {
    let l = list(&[1, 2, 3, 4]);
    let mut it: ListIterator<'_, i64> = l.iter();
    assert_eq!(it.size_hint(), (0, Some(4)));
    assert_eq!(it.next().unwrap().unwrap(), 1);
    l.push(5).unwrap();
    assert_eq!(it.size_hint(), (0, Some(4)));
    assert_eq!(it.next_back().unwrap().unwrap(), 5);
    l.push(6).unwrap();
    assert_eq!(it.next_back().unwrap().unwrap(), 4);
    l.truncate(3);
    assert_eq!(it.next_back().unwrap().unwrap(), 3);
    assert_eq!(it.next().unwrap().unwrap(), 2);
    assert!(it.next().is_none() && it.next_back().is_none());
    let mut seen = Vec::new();
    for x in &l {
        let x = x.unwrap();
        if x < 10 {
            l.push(x + 10).unwrap();
        }
        seen.push(x);
    }
    assert_eq!(seen, [1, 2, 3, 11, 12, 13]);
    let l = list(&[1, 2, 3]);
    let rev: Vec<_> = l.iter().rev().map(|x| x.unwrap()).collect();
    assert_eq!(rev, [3, 2, 1]);
    let mut rev = l.iter().rev();
    assert_eq!(rev.next().unwrap().unwrap(), 3);
    l.clear();
    assert!(rev.next().is_none());
    let l = list(&[0]);
    let other = l.clone();
    l.insert_many(
        0,
        (1..=3).map(|x| {
            other.push(100 + x).unwrap();
            x
        }),
    )
    .unwrap();
    assert_eq!(all(&l), [1, 2, 3, 0, 101, 102, 103]);
}

#[test]
fn list_conversions() {
    let l = list(&[1, 2]);
    let any = Any::from(l.clone());
    assert_eq!(any.type_index(), TypeIndex::kTVMFFIList as i32);
    assert!(List::<Any>::try_from(any.clone()).unwrap().same_as(&l));
    let floats = List::<f64>::try_from(any.clone()).unwrap();
    assert!(!floats.same_as(&l));
    assert_eq!(floats.get(1).unwrap(), 2.0);
    let array = Array::<i64>::try_from(any.clone()).unwrap();
    assert_eq!(array.len(), 2);
    let back = List::<i64>::try_from(Any::from(array.clone())).unwrap();
    assert_eq!(all(&back), [1, 2]);
    assert!(any.try_as::<Array<i64>>().is_none());
    assert!(Any::from(array).try_as::<List<i64>>().is_none());
    let e = List::<String>::try_from(any.clone()).map(|_| ()).unwrap_err();
    assert_eq!(e.message(), "Cannot convert from type `ffi.List` to `List<ffi.String>`");
    assert_eq!(unsafe { TVMFFITestingDummyTarget() }, 0);
    let echo = Function::get_global("testing.echo").unwrap();
    let back: List<i64> = echo.call_tuple((&l,)).unwrap().try_into().unwrap();
    assert!(back.same_as(&l));
    let back: List<i64> = echo.call_tuple((l.clone(),)).unwrap().try_into().unwrap();
    assert!(back.same_as(&l));
    let f = Function::from_typed(|l: List<i64>| -> Result<i64> {
        l.push(3)?;
        Ok(l.len() as i64)
    });
    assert_eq!(i64::try_from(f.call_tuple((&l,)).unwrap()).unwrap(), 3);
    assert_eq!(l.len(), 3);
    let typed = into_typed_fn!(f, Fn(&List<i64>) -> Result<i64>);
    assert_eq!(typed(&l).unwrap(), 4);
    let node: &ListObj = l.as_node().unwrap();
    assert_eq!(node.size, 4);
    let objects: List<ObjectRef> =
        [ObjectRef::try_from(Any::from(l)).unwrap()].into_iter().collect();
    assert_eq!(objects.len(), 1);
}

#[test]
fn maps() {
    let m: Map<String, Any> = [
        (String::from("a"), Any::from(1i64)),
        (String::from("b"), Any::from(2i64)),
        (String::from("c"), Any::from(String::from("x"))),
    ]
    .into_iter()
    .collect();
    assert_eq!(format!("{m:?}"), "Map<String, Any>[3]");
    assert_eq!(m.size, 3);
    let items: MapItems<String, Any> = m.iter();
    assert_eq!(items.len(), 3);
    let keys: MapKeys<String> = m.keys();
    assert_eq!(keys.count(), 3);
    let values: MapValues<Any> = m.values();
    assert_eq!(values.count(), 3);
    let mut n = 0;
    for (k, v) in &m {
        assert!(k.len() == 1 && v.type_index() > 0);
        n += 1;
    }
    assert_eq!(n, 3);
    let ints = Map::<String, i64>::try_from(Any::from(m.clone())).map(|_| ()).unwrap_err();
    assert_eq!(ints.kind(), TYPE_ERROR);
    assert_eq!(ints.message(), "Cannot convert from type `ffi.Map` to `Map<ffi.String, int>`");
    let view = AnyView::from(&m);
    let raw: Map<String, i64> = {
        let cell: TVMFFIAny = unsafe { std::mem::transmute(view) };
        unsafe { Map::copy_from_any_view_after_check(&cell) }
    };
    assert_eq!(raw.get(&"a".into()).unwrap(), Some(1));
    assert!(raw.get(&"c".into()).is_err());
    assert_eq!(
        message(|| raw.values().for_each(drop)),
        "map iterator: value does not match the map's value type"
    );
    let wrong: Map<i64, Any> = {
        let cell: TVMFFIAny = unsafe { std::mem::transmute(view) };
        unsafe { Map::copy_from_any_view_after_check(&cell) }
    };
    assert_eq!(
        message(|| wrong.keys().for_each(drop)),
        "map iterator: key does not match the map's key type"
    );
    if cfg!(debug_assertions) {
        assert_eq!(
            message(|| drop(wrong.get(&1))),
            "Map lookup: key type `i64` does not match the map's stored key type"
        );
        assert!(message(|| drop(wrong.contains_key(&1))).contains("stored key type"));
    }
    let any_keys: Map<Any, Any> =
        [(Any::from(1i64), Any::from(2i64)), (Any::from(String::from("k")), Any::new())]
            .into_iter()
            .collect();
    assert_eq!(any_keys.get(&Any::from(1i64)).unwrap().unwrap().try_as::<i64>(), Some(2));
    assert!(any_keys.contains_key(&Any::from(String::from("k"))));
    assert!(any_keys.get(&Any::from(5i64)).unwrap().is_none());
    let size = Function::get_global("ffi.MapSize").unwrap();
    assert_eq!(i64::try_from(size.call_tuple((&m,)).unwrap()).unwrap(), 3);
    assert_eq!(i64::try_from(size.call_tuple((m.clone(),)).unwrap()).unwrap(), 3);
    let shape = Shape::from([1i64]);
    let objects: Map<i64, Shape> = [(1, shape.clone())].into_iter().collect();
    assert_eq!(count(&shape), 2);
    let got = objects.get(&1).unwrap().unwrap();
    assert_eq!(count(&shape), 3);
    assert!(objects.get(&2).unwrap().is_none());
    drop((got, objects));
    assert_eq!(count(&shape), 1);
    assert_eq!(std::mem::size_of::<MapObj>(), 48);
    assert!(Map::<i64, i64>::default().is_empty());
    let mut iter = Map::<i64, i64>::from_iter([(1, 2)]).iter();
    assert_eq!(iter.next(), Some((1, 2)));
    assert_eq!(iter.next(), None);
}

fn big(text: &str) -> BigInt {
    text.parse().unwrap()
}
fn hash<T: Hash>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn big_ints() {
    let wide = big("123456789012345678901234567890");
    for x in [
        BigInt::new(),
        BigInt::from(true),
        BigInt::from(-1i8),
        BigInt::from(i64::MIN),
        BigInt::from(7usize),
        BigInt::from_words(&[]),
        BigInt::from_words(&[5, 0, 0]),
        BigInt::from_words(&[-5, -1]),
        BigInt::try_from(-3.9f64).unwrap(),
    ] {
        assert_eq!(Any::from(x.clone()).type_index(), 1);
        assert_eq!(x.words().len(), 1);
    }
    assert_eq!(BigInt::try_from(-3.9f64).unwrap(), BigInt::from(-3));
    assert_eq!(BigInt::from(u64::MAX).words(), [-1, 0]);
    assert_eq!(BigInt::from(i128::MIN).words(), [0, i64::MIN]);
    assert_eq!(BigInt::from(u128::MAX).words(), [-1, -1, 0]);
    assert_eq!(wide.clone().words().as_ptr(), wide.words().as_ptr());
    assert_eq!(Any::from(wide.clone()).type_index(), 78);
    let cell: TVMFFIAny = unsafe { std::mem::transmute(AnyView::from(&wide)) };
    let content = unsafe { TVMFFIBigIntGetContentByteArray(&cell) };
    assert_eq!(content.data as *const i64, wide.words().as_ptr());
    assert_eq!(content.size, 8 * wide.words().len());
    let mut made = Any::new();
    let words = wide.words();
    let bytes = TVMFFIByteArray::new(words.as_ptr() as *const u8, 8 * words.len());
    assert_eq!(unsafe { TVMFFIBigIntFromByteArray(&bytes, made.as_data_ptr()) }, 0);
    assert_eq!(BigInt::try_from(made).unwrap(), wide);
    assert_eq!(format!("{wide}"), "123456789012345678901234567890");
    assert_eq!(format!("{wide:?}"), "ffi.BigInt { data: 123456789012345678901234567890 }");
    assert_eq!(
        format!(
            "{:>6}|{:+}|{:06}|{:<4}|",
            BigInt::from(-42),
            BigInt::from(7),
            BigInt::from(-42),
            BigInt::from(1)
        ),
        "   -42|+7|-00042|1   |"
    );
    assert_eq!(format!("{:*^9}", BigInt::from(123)), "***123***");
    assert_eq!(hash(&big("5")), hash(&BigInt::from(5)));
    assert!(big("-99999999999999999999") < BigInt::from(i64::MIN));
    assert_eq!(
        (wide.to_i64(), wide.to_u64(), wide.to_i128()),
        (None, None, Some(123456789012345678901234567890))
    );
    assert_eq!(BigInt::from(-1).to_u64(), None);
    assert_eq!(BigInt::from(u64::MAX).to_u64(), Some(u64::MAX));
    assert_eq!(BigInt::from(u128::MAX).to_u128(), Some(u128::MAX));
    assert_eq!(BigInt::from(u128::MAX).to_i128(), None);
    assert!(BigInt::from(-1).is_negative() && BigInt::default().is_zero());
    for (text, result) in [
        ("abc", false),
        ("", false),
        ("+", false),
        ("-", false),
        ("1_0", false),
        (" 1", false),
        ("1 ", false),
        ("0x1", false),
        ("+0007", true),
        ("-0", true),
        ("--1", false),
        ("1.0", false),
        ("٣", false),
    ] {
        let parsed = text.parse::<BigInt>();
        assert_eq!(parsed.is_ok(), result, "{text}");
        if let Err(error) = parsed {
            assert_eq!(
                (error.kind(), error.message()),
                (VALUE_ERROR, "Invalid decimal string for BigInt")
            );
        }
    }
    let e = BigInt::try_from(f64::NAN).unwrap_err();
    assert_eq!((e.kind(), e.message()), (VALUE_ERROR, "Cannot convert NaN to BigInt"));
    let e = BigInt::try_from(f64::NEG_INFINITY).unwrap_err();
    assert_eq!((e.kind(), e.message()), (OVERFLOW_ERROR, "Cannot convert infinity to BigInt"));
    assert_eq!(BigInt::try_from(1e300).unwrap().to_f64().unwrap(), 1e300);
    assert_eq!(BigInt::from((1i64 << 53) + 1).to_f64().unwrap(), (1i64 << 53) as f64);
    assert_eq!(BigInt::from((1i64 << 53) + 3).to_f64().unwrap(), ((1i64 << 53) + 4) as f64);
    let max = BigInt::try_from(f64::MAX).unwrap();
    assert_eq!(max.to_f64().unwrap(), f64::MAX);
    let e = (&max * 2).to_f64().unwrap_err();
    assert_eq!((e.kind(), e.message()), (OVERFLOW_ERROR, "BigInt does not fit finite double"));
    let e = (&max + (BigInt::from(1) << 970)).to_f64().unwrap_err();
    assert_eq!(e.kind(), OVERFLOW_ERROR);
    assert_eq!((&max + ((BigInt::from(1) << 970) - 1)).to_f64().unwrap(), f64::MAX);
}

#[test]
fn big_int_arithmetic() {
    let (a, b) = (big("-100000000000000000000"), BigInt::from(7));
    let r = a.div_rem(&b).unwrap();
    assert_eq!(&r.0 * &b + &r.1, a);
    assert!(r.1.is_negative());
    assert_eq!(a.floor_div(&b).unwrap() * 7 + a.floor_mod(&b).unwrap(), a);
    assert!(!a.floor_mod(&b).unwrap().is_negative());
    assert_eq!(a.try_div(&b).unwrap(), &a / 7);
    assert_eq!(a.try_rem(&b).unwrap(), &a % &b);
    let e = a.try_div(&BigInt::new()).unwrap_err();
    assert_eq!((e.kind(), e.message()), (ZERO_DIVISION_ERROR, "Division by zero"));
    assert!(message(|| drop(&a / 0)).contains("Division by zero"));
    assert!(message(|| drop(&a % BigInt::new())).contains("Division by zero"));
    assert!(message(|| drop(&a << -1)).contains("Negative BigInt shift count"));
    let e = a.try_shl(-1).unwrap_err();
    assert_eq!((e.kind(), e.message()), (VALUE_ERROR, "Negative BigInt shift count"));
    let e = a.try_shr(-1i64).unwrap_err();
    assert_eq!(e.message(), "Negative BigInt shift count");
    let e = a.try_shl(big("99999999999999999999999")).unwrap_err();
    assert_eq!((e.kind(), e.message()), (OVERFLOW_ERROR, "BigInt shift count is too large"));
    let e = a.try_shl(u64::MAX).unwrap_err();
    assert_eq!(e.kind(), OVERFLOW_ERROR);
    let e = a.try_shl(1usize << 62).unwrap_err();
    assert_eq!((e.kind(), e.message()), (OVERFLOW_ERROR, "BigInt allocation is too large"));
    assert_eq!(BigInt::new().try_shl(u64::MAX).unwrap(), BigInt::new());
    assert_eq!(a.try_shr(big("99999999999999999999999")).unwrap(), BigInt::from(-1));
    assert_eq!(BigInt::from(5).try_shr(u64::MAX).unwrap(), BigInt::new());
    for n in [0, 63, 64, 255, 256] {
        assert_eq!((&a << n) >> n, a);
    }
    let one = BigInt::from(1);
    assert_eq!(5 + &one, BigInt::from(6));
    assert_eq!(5 - one.clone(), BigInt::from(4));
    assert_eq!(5 * &one, BigInt::from(5));
    assert_eq!(5 / &one, BigInt::from(5));
    assert_eq!(5 % BigInt::from(3), BigInt::from(2));
    assert_eq!(5 & BigInt::from(3), BigInt::from(1));
    assert_eq!(5 | &BigInt::from(3), BigInt::from(7));
    assert_eq!(5 ^ &BigInt::from(3), BigInt::from(6));
    assert_eq!(1 << BigInt::from(100), BigInt::from(1u128 << 100));
    assert_eq!(1024 >> &BigInt::from(3), BigInt::from(128));
    assert_eq!(one.clone() + one.clone(), BigInt::from(2));
    assert_eq!(&one + one.clone(), BigInt::from(2));
    assert_eq!(one.clone() + 1, BigInt::from(2));
    assert_eq!(-&one, BigInt::from(-1));
    assert_eq!(-one.clone(), BigInt::from(-1));
    assert_eq!(!&one, BigInt::from(-2));
    assert_eq!(!one.clone(), BigInt::from(-2));
    let mut x = one.clone();
    x += 1;
    x += &one;
    x += one.clone();
    x -= 1;
    x *= 10;
    x /= 3;
    x %= 7;
    x <<= 3;
    x >>= 1;
    x |= 1;
    x &= 13;
    x ^= 2;
    assert_eq!(x, BigInt::from(((((((30 / 3) % 7) << 3) >> 1) | 1) & 13) ^ 2));
    assert_eq!(-BigInt::from(i64::MIN), BigInt::from(1u64 << 63));
    assert_eq!(BigInt::from(i64::MAX) + 1, BigInt::from(1u64 << 63));
    assert_eq!((BigInt::from(i64::MAX) + 1 - 1).words(), [i64::MAX]);
    let f = Function::from_typed(|x: BigInt| -> Result<BigInt> { Ok(x) });
    let back: BigInt = f.call_tuple((&a,)).unwrap().try_into().unwrap();
    assert_eq!(back, a);
    let back: BigInt = f.call_tuple((Some(a.clone()),)).unwrap().try_into().unwrap();
    assert_eq!(back, a);
    let e = i64::try_from(Any::from(a.clone())).unwrap_err();
    assert!(e.message().contains("ffi.BigInt"), "{}", e.message());
    assert!(Any::from(true).try_as::<BigInt>().is_none());
    assert_eq!(BigInt::try_from(Any::from(true)).unwrap(), one);
    assert_eq!(Any::from(5i64).try_as::<BigInt>(), Some(BigInt::from(5)));
    let e = BigInt::try_from(Any::from(1.5f64)).unwrap_err();
    assert!(e.message().contains("`BigInt`"), "{}", e.message());
    let array = Array::new(vec![a.clone(), one.clone()]);
    assert_eq!(array.get(0).unwrap(), a);
    let map: Map<BigInt, i64> = [(a.clone(), 1), (one.clone(), 2)].into_iter().collect();
    assert_eq!(map.get(&a).unwrap(), Some(1));
    assert_eq!(map.get(&one).unwrap(), Some(2));
    let o = Optional::some(a.clone());
    assert_eq!(o.get(), Some(a.clone()));
    assert_eq!(std::mem::size_of::<BigInt>(), 16);
    let mut seen = Vec::new();
    structural_walk(
        &Array::new(vec![Any::from(a.clone()), Any::from(3i64)]),
        |x: BigInt| {
            seen.push(x);
            WalkResult::Advance
        },
        WalkOrder::PreOrder,
    )
    .unwrap();
    assert_eq!(seen, [a, BigInt::from(3)]);
}

#[test]
fn optionals() {
    macro_rules! scalar {
        ($($ty:ty = $v:expr),*) => {$(
            let mut o: Optional<$ty> = Optional::some($v);
            assert!(o.has_value() && !o.is_none());
            assert_eq!(o.get(), Some($v));
            assert_eq!(o.clone(), o);
            assert_eq!(std::mem::size_of_val(&o), 16);
            o.set(None);
            assert!(o == Optional::none() && o == Optional::default());
            assert_eq!(o.into_option(), None);
        )*};
    }
    scalar!(
        bool = true,
        i8 = 1,
        i16 = 2,
        i32 = 3,
        i64 = 4,
        isize = 5,
        u8 = 6,
        u16 = 7,
        u32 = 8,
        u64 = 9,
        usize = 10,
        f32 = 1.5,
        f64 = 2.5
    );
    let s: Optional<String> = Some(String::from("a longer string")).into();
    assert_eq!(s.as_str(), Some("a longer string"));
    let back: Option<String> = s.clone().into();
    assert_eq!(back.unwrap(), "a longer string");
    assert_eq!(format!("{s:?}"), "Optional::Some(ffi.String { data: \"a longer string\" })");
    assert_eq!(format!("{:?}", Optional::<i64>::none()), "Optional::None");
    let nested: Optional<Option<i64>> = Optional::some(Some(1));
    assert_eq!(nested.get(), Some(Some(1)));
    assert_eq!(std::mem::size_of::<Option<Array<i64>>>(), 8);
    assert_eq!(std::mem::align_of::<Optional<i64>>(), std::mem::align_of::<TVMFFIAny>());
    let bytes: [u8; 16] = unsafe { std::mem::transmute(Optional::<String>::none()) };
    assert_eq!(bytes, [0; 16]);
    fn needs<T: OptionalCompatible>() {}
    needs::<Bytes>();
    needs::<DLDevice>();
    needs::<DLDataType>();
    needs::<*mut std::ffi::c_void>();
}

#[test]
fn tensor_views() {
    let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let view = TensorView::from(&tensor);
    assert_eq!((view.ndim(), view.shape(), view.strides()), (2, &[2i64, 3][..], &[3i64, 1][..]));
    assert_eq!((view.numel(), view.is_contiguous()), (6, true));
    assert_eq!((view.dtype(), view.device()), (tensor.dtype(), tensor.device()));
    let copy = view;
    assert_eq!(copy.as_raw(), view.as_raw());
    assert!(format!("{view:?}").contains("TensorView"));
    let f = Function::from_typed(|v: TensorView| -> Result<i64> { Ok(v.numel() as i64) });
    assert_eq!(i64::try_from(f.call_packed(&[AnyView::from(&view)]).unwrap()).unwrap(), 6);
    assert_eq!(i64::try_from(f.call_tuple((&tensor,)).unwrap()).unwrap(), 6);
    let e = f.call_tuple((1i64,)).map(|_| ()).unwrap_err();
    assert!(e.message().contains("DLTensor*"), "{}", e.message());
    let mut shape = [2i64, 1];
    let mut strides = [1i64, 77];
    let mut dl = DLTensor {
        data: std::ptr::null_mut(),
        device: tensor.device(),
        ndim: 2,
        dtype: tensor.dtype(),
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    assert!(unsafe { TensorView::from_raw(&dl) }.is_contiguous());
    strides[0] = 5;
    assert!(!unsafe { TensorView::from_raw(&dl) }.is_contiguous());
    shape[0] = 0;
    assert!(unsafe { TensorView::from_raw(&dl) }.is_contiguous());
    dl.strides = std::ptr::null_mut();
    let view = unsafe { TensorView::from_raw(&dl) };
    assert!(view.is_contiguous());
    assert_eq!(
        message(|| drop(view.strides().len())),
        "TensorView::strides of a DLTensor with null strides"
    );
    assert_eq!(
        message(|| drop(unsafe { TensorView::from_raw(std::ptr::null()) })),
        "TensorView of a null DLTensor"
    );
    assert_eq!(
        message(|| drop(Any::from(view))),
        "DLTensor* cannot be held in Any as it does not retain ownership, use Tensor instead"
    );
    assert!(AnyView::from(&view).try_as::<TensorView>().is_some());
    assert!(AnyView::from(&tensor).try_as::<TensorView>().is_none());
    assert!(TensorView::try_from(AnyView::from(&tensor)).is_ok());
}

#[test]
fn moved_arguments() {
    let take = Function::from_typed(|a: RValueRef<Array<i64>>| -> Result<i64> {
        let array = a.into_inner();
        Ok(count(&array) as i64)
    });
    let array = Array::new(vec![1i64]);
    assert_eq!(i64::try_from(take.call_tuple((&array,)).unwrap()).unwrap(), 2);
    assert_eq!(count(&array), 1);
    let moved: RValueRef<Array<i64>> = array.into();
    assert_eq!(i64::try_from(take.call_packed(&[AnyView::from(&moved)]).unwrap()).unwrap(), 1);
    let e = take.call_packed(&[AnyView::from(&moved)]).map(|_| ()).unwrap_err();
    assert_eq!(
        (e.kind(), e.message()),
        (TYPE_ERROR, "Argument #0: Cannot convert from `an already-moved RValueRef` to `RValueRef<Array<int>>`")
    );
    assert_eq!(message(|| drop(moved.into_inner())), "RValueRef has already been moved");
    let e = take.call_tuple((1i64,)).map(|_| ()).unwrap_err();
    assert_eq!(e.message(), "Argument #0: Cannot convert from `int` to `RValueRef<Array<int>>`");
    let floats = RValueRef::new(Array::new(vec![1.5f64]));
    let e = take.call_packed(&[AnyView::from(&floats)]).map(|_| ()).unwrap_err();
    assert!(e.message().contains("RValueRef with an incompatible object type"));
    assert_eq!(count(&floats.into_inner()), 1);
    let view = RValueRef::<Shape>::try_from(AnyView::from(&1i64)).map(|_| ()).unwrap_err();
    assert_eq!(view.message(), "Cannot convert from `int` to `RValueRef<ffi.Shape>`");
}
