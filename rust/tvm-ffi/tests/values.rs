// SPDX-License-Identifier: Apache-2.0
//! Values: `Any`, strings, integers, optional fields, data types.
use tvm_ffi::*;

fn round_trip<T>(value: T, index: i32)
where
    T: AnyCompatible + Clone + PartialEq + std::fmt::Debug,
    T: TryFrom<Any, Error = Error> + for<'a> TryFrom<AnyView<'a>, Error = Error>,
{
    let any = Any::from(value.clone());
    assert_eq!(any.type_index(), index);
    assert_eq!(AnyView::from(&any).try_as::<T>(), Some(value.clone()));
    assert_eq!(T::try_from(AnyView::from(&value)).unwrap(), value);
    assert_eq!(value.to_any().type_index(), index);
    assert_eq!(T::try_from(any).unwrap(), value);
}

#[test]
fn plain_values_round_trip() {
    round_trip(127i8, 1);
    round_trip(u64::MAX, 1);
    round_trip(i64::MIN, 1);
    round_trip(true, 2);
    round_trip(3.5f32, 3);
    round_trip((), 0);
    round_trip(std::ptr::null_mut::<std::ffi::c_void>(), 4);
    round_trip(DLDevice::new(DLDeviceType::kDLCUDA, 1), 6);
    round_trip(DLDataType::try_from_str("float16x4").unwrap(), 5);
    round_trip(Some(3i32), 1);
    round_trip(None::<i32>, 0);
    round_trip(String::from("1234567"), 11);
    round_trip(String::from("12345678"), 65);
    round_trip(Bytes::from(b"12345678"), 66);
    round_trip(Shape::from([1, 2]), 69);
    round_trip(Unchanged, 13);
}

#[test]
fn wrong_types_are_errors() {
    let error = i64::try_from(Any::new()).unwrap_err();
    assert_eq!(error.kind(), TYPE_ERROR);
    assert!(error.message().contains("`None` to `int`"), "{error}");
    let error = Option::<i32>::try_from(Any::from(1.5)).unwrap_err();
    assert!(error.message().contains("`float` to `Optional<int>`"), "{error}");
    assert!(String::try_from(Any::from(1)).is_err());
    assert!(Tensor::try_from(Any::from(String::from("a long string"))).is_err());
    assert!(DLDataType::try_from(Any::from(String::from("no type"))).is_err());
    assert!(Any::from(1).try_as::<bool>().is_none());
    assert!(bool::try_from(Any::from(1)).unwrap());
}

#[test]
fn counts_of_strings() {
    let text = String::from("longer than seven");
    let any = Any::from(text.clone());
    assert_eq!(any.debug_strong_count(), Some(2));
    let view = AnyView::from(&any);
    assert_eq!(view.debug_strong_count(), Some(2));
    let other = String::try_from(view).unwrap();
    assert_eq!(other.as_ptr(), text.as_ptr());
    assert_eq!(any.debug_strong_count(), Some(3));
    drop((text, other));
    assert_eq!(any.debug_strong_count(), Some(1));
    assert_eq!(Any::from(String::from("short")).debug_strong_count(), None);
    assert_eq!(
        format!("{:?} {}", String::from("a"), String::from("a")),
        "ffi.String { data: \"a\" } \"a\""
    );
}

#[test]
fn optional_is_one_value() {
    assert_eq!(std::mem::size_of::<Optional<String>>(), 16);
    assert_eq!(std::mem::size_of::<Option<Array<i64>>>(), 8);
    let mut field = Optional::some(String::from("longer than seven"));
    assert_eq!(field.as_str(), Some("longer than seven"));
    assert_eq!(field, field.clone());
    field.set(None);
    assert_eq!(format!("{field:?}"), "Optional::None");
    assert_eq!(Option::<i64>::from(Optional::some(4)), Some(4));
}

#[test]
fn big_integers() {
    let two = BigInt::from(2);
    let wide = &two << 200;
    assert_eq!(wide.words().len(), 4);
    assert_eq!((&wide >> 200), two);
    assert_eq!(&wide * &wide, BigInt::from(1) << 402);
    assert_eq!((&wide * 3 + 1).div_rem(&wide).unwrap(), (BigInt::from(3), BigInt::from(1)));
    assert_eq!((-&wide + 1).floor_div(&wide).unwrap(), BigInt::from(-1));
    assert_eq!(BigInt::from(i64::MIN) / -1, BigInt::from(1) << 63);
    assert_eq!(BigInt::from(i64::MAX) + 1, BigInt::from(u64::MAX / 2 + 1));
    assert_eq!(wide.to_f64().unwrap(), 2f64.powi(201));
    assert_eq!(BigInt::try_from(2f64.powi(201)).unwrap(), wide);
    assert!(BigInt::try_from(f64::NAN).is_err());
    assert_eq!(format!("{:>5}|{:+}", BigInt::from(7), BigInt::from(7)), "    7|+7");
    assert!(BigInt::from(-1) < BigInt::from(0) && wide > BigInt::from(1) && -&wide < -(&two));
    assert_eq!(!&wide, -&wide - 1);
    assert_eq!((&wide | 1) & 3, BigInt::from(1));
    assert_eq!(wide.try_shl(-1).unwrap_err().message(), "Negative BigInt shift count");
    assert_eq!(
        wide.try_shl(wide.clone()).unwrap_err().message(),
        "BigInt shift count is too large"
    );
    assert_eq!(wide.try_shl(usize::MAX).unwrap_err().message(), "BigInt allocation is too large");
    assert_eq!((-&wide).try_shr(usize::MAX).unwrap(), BigInt::from(-1));
    assert_eq!(wide.try_div(&BigInt::new()).unwrap_err().kind(), ZERO_DIVISION_ERROR);
    for bad in ["", "+", "1 ", "0x1", "--1"] {
        assert!(bad.parse::<BigInt>().is_err());
    }
    let error = i64::try_from(Any::from(wide.clone())).unwrap_err();
    assert!(error.message().contains("ffi.BigInt"));
    round_trip(wide, 78);
    round_trip(BigInt::from(5), 1);
}

#[test]
fn big_integers_keep_the_laws() {
    let mut seed = 1u64;
    let mut word = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        match seed >> 61 {
            0 => 0,
            1 => -1,
            2 => i64::MIN,
            _ => (seed ^ seed >> 29) as i64,
        }
    };
    for round in 0..2000 {
        let mut number = |n: usize| BigInt::from_words(&(0..n).map(|_| word()).collect::<Vec<_>>());
        let (a, b, c) = (number(1 + round % 7), number(1 + round % 4), number(1 + round % 3));
        assert_eq!(&a + &b - &b, a);
        assert_eq!((&a + &b) * &c, &a * &c + &b * &c);
        assert_eq!(a.to_string().parse::<BigInt>().unwrap(), a);
        assert_eq!((&a & &b) + (&a | &b), &a + &b);
        if !b.is_zero() {
            let (quotient, rest) = a.div_rem(&b).unwrap();
            assert_eq!(&quotient * &b + &rest, a);
            let (rest, b_abs) = (
                if rest.is_negative() { -rest } else { rest },
                if b.is_negative() { -&b } else { b.clone() },
            );
            assert!(rest < b_abs);
            assert_eq!(a.floor_div(&b).unwrap() * &b + a.floor_mod(&b).unwrap(), a);
        }
    }
}

#[test]
fn types_are_inferred() {
    let bytes: Bytes = [1, 2, 3].into();
    assert_eq!(bytes, [1u8, 2, 3]);
    assert!(Bytes::from(&[]).is_empty());
    assert_eq!(Any::from(std::ptr::null_mut()).type_index(), 4);
    assert_eq!(format!("{bytes} {bytes:?}"), "[1, 2, 3] ffi.Bytes { data: [1, 2, 3] }");
}
