// SPDX-License-Identifier: Apache-2.0
//! Integers of any size.
use crate::derive::Object as DeriveObject;
use crate::error::{Error, Result, OVERFLOW_ERROR, VALUE_ERROR, ZERO_DIVISION_ERROR};
use crate::object::{unsafe_, Object, ObjectCore, TypeIndex};
use crate::type_traits::AnyCompatible;
use std::alloc::{alloc, dealloc, Layout};
use std::cmp::Ordering;
use std::ffi::c_void;
use std::fmt::{Debug, Display};
use std::hash::{Hash, Hasher};
use std::mem::size_of;
use tvm_ffi_sys::*;

const INT: i32 = TypeIndex::kTVMFFIInt as i32;
const BIG_INT: i32 = TypeIndex::kTVMFFIBigInt as i32;

/// The object behind an integer that does not fit an `i64`, followed by its words.
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.BigInt"]
#[type_index(TypeIndex::kTVMFFIBigInt)]
#[type_final]
struct BigIntObj {
    object: Object,
    size: usize,
}

/// An integer of any size. One that fits an `i64` is stored inline.
///
/// ```
/// use tvm_ffi::BigInt;
/// let big: BigInt = "340282366920938463463374607431768211456".parse().unwrap();
/// assert_eq!(big, BigInt::from(1) << 128);
/// assert_eq!((&big - 1).to_u128(), Some(u128::MAX));
/// assert_eq!(big.to_string(), "340282366920938463463374607431768211456");
/// ```
#[repr(C)]
pub struct BigInt {
    data: TVMFFIAny,
}

fn too_large() -> Error {
    Error::new(OVERFLOW_ERROR, "BigInt allocation is too large", "")
}

/// An empty vector with room for `len` elements, or an error.
fn reserve<T>(len: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(len).map_err(|_| too_large())?;
    Ok(out)
}

/// Magnitudes: little-endian words without leading zeros.
mod magnitude {
    use super::*;

    pub fn trim(words: &mut Vec<u64>) {
        while words.last() == Some(&0) {
            words.pop();
        }
    }

    pub fn cmp(a: &[u64], b: &[u64]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
    }

    pub fn add(a: &[u64], b: &[u64]) -> Result<Vec<u64>> {
        let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
        let mut out = reserve(long.len() + 1)?;
        let mut carry = 0u128;
        for (i, &word) in long.iter().enumerate() {
            carry += word as u128 + short.get(i).copied().unwrap_or(0) as u128;
            out.push(carry as u64);
            carry >>= 64;
        }
        out.push(carry as u64);
        trim(&mut out);
        Ok(out)
    }

    /// `a - b`, where `a >= b`.
    pub fn sub(a: &[u64], b: &[u64]) -> Result<Vec<u64>> {
        let mut out = reserve(a.len())?;
        let mut borrow = false;
        for (i, &word) in a.iter().enumerate() {
            let (first, under1) = word.overflowing_sub(b.get(i).copied().unwrap_or(0));
            let (second, under2) = first.overflowing_sub(borrow as u64);
            out.push(second);
            borrow = under1 || under2;
        }
        trim(&mut out);
        Ok(out)
    }

    pub fn mul(a: &[u64], b: &[u64]) -> Result<Vec<u64>> {
        let mut out = reserve(a.len() + b.len())?;
        out.resize(a.len() + b.len(), 0);
        for (i, &x) in a.iter().enumerate() {
            let mut carry = 0u128;
            for (j, &y) in b.iter().enumerate() {
                carry += x as u128 * y as u128 + out[i + j] as u128;
                out[i + j] = carry as u64;
                carry >>= 64;
            }
            out[i + b.len()] = carry as u64;
        }
        trim(&mut out);
        Ok(out)
    }

    pub fn div_rem_small(a: &[u64], divisor: u64) -> Result<(Vec<u64>, u64)> {
        let mut quotient = reserve(a.len())?;
        quotient.extend_from_slice(a);
        let mut rest = 0u128;
        for word in quotient.iter_mut().rev() {
            let current = (rest << 64) | *word as u128;
            *word = (current / divisor as u128) as u64;
            rest = current % divisor as u128;
        }
        trim(&mut quotient);
        Ok((quotient, rest as u64))
    }

    /// Quotient and remainder, where `b` is not zero (Knuth, algorithm D).
    pub fn div_rem(a: &[u64], b: &[u64]) -> Result<(Vec<u64>, Vec<u64>)> {
        if cmp(a, b) == Ordering::Less {
            let mut rest = reserve(a.len())?;
            rest.extend_from_slice(a);
            return Ok((Vec::new(), rest));
        }
        if let [divisor] = b {
            let (quotient, rest) = div_rem_small(a, *divisor)?;
            let mut rest = vec![rest];
            trim(&mut rest);
            return Ok((quotient, rest));
        }
        let workspace =
            |_| Error::new(OVERFLOW_ERROR, "BigInt division workspace is too large", "");
        // The top bit of the divisor is set, so that one estimate is off by two at most.
        let shift = b[b.len() - 1].leading_zeros() as usize;
        let divisor = shl(b, shift).map_err(workspace)?;
        let mut rest = shl(a, shift).map_err(workspace)?;
        rest.resize(a.len() + 1, 0);
        let n = divisor.len();
        let (top, second) = (divisor[n - 1] as u128, divisor[n - 2] as u128);
        let mut quotient = reserve(rest.len() - n).map_err(workspace)?;
        quotient.resize(rest.len() - n, 0);
        for at in (0..rest.len() - n).rev() {
            let head = ((rest[at + n] as u128) << 64) | rest[at + n - 1] as u128;
            let mut guess = head / top;
            let mut left = head % top;
            while guess >> 64 != 0 || guess * second > (left << 64 | rest[at + n - 2] as u128) {
                guess -= 1;
                left += top;
                if left >> 64 != 0 {
                    break;
                }
            }
            let (mut carry, mut borrow) = (0u128, false);
            for (i, &word) in divisor.iter().enumerate() {
                carry += guess * word as u128;
                let (first, under1) = rest[at + i].overflowing_sub(carry as u64);
                let (value, under2) = first.overflowing_sub(borrow as u64);
                rest[at + i] = value;
                borrow = under1 || under2;
                carry >>= 64;
            }
            let (first, under1) = rest[at + n].overflowing_sub(carry as u64);
            let (value, under2) = first.overflowing_sub(borrow as u64);
            rest[at + n] = value;
            if under1 || under2 {
                guess -= 1;
                let mut carry = 0u128;
                for (i, &word) in divisor.iter().enumerate() {
                    carry += rest[at + i] as u128 + word as u128;
                    rest[at + i] = carry as u64;
                    carry >>= 64;
                }
                rest[at + n] = rest[at + n].wrapping_add(carry as u64);
            }
            quotient[at] = guess as u64;
        }
        trim(&mut quotient);
        trim(&mut rest);
        Ok((quotient, shr(&rest, shift)?))
    }

    pub fn shl(a: &[u64], count: usize) -> Result<Vec<u64>> {
        let (words, bits) = (count / 64, count % 64);
        let len = a.len().checked_add(words).and_then(|len| len.checked_add(1));
        let mut out = reserve(len.ok_or_else(too_large)?)?;
        out.resize(words, 0);
        let mut carry = 0;
        for &word in a {
            out.push(word << bits | carry);
            carry = if bits == 0 { 0 } else { word >> (64 - bits) };
        }
        out.push(carry);
        trim(&mut out);
        Ok(out)
    }

    pub fn shr(a: &[u64], count: usize) -> Result<Vec<u64>> {
        let (words, bits) = (count / 64, count % 64);
        let Some(kept) = a.get(words..) else { return Ok(Vec::new()) };
        let mut out = reserve(kept.len())?;
        for (i, &word) in kept.iter().enumerate() {
            let above = kept.get(i + 1).copied().unwrap_or(0);
            out.push(word >> bits | if bits == 0 { 0 } else { above << (64 - bits) });
        }
        trim(&mut out);
        Ok(out)
    }
}

unsafe extern "C" fn delete_big_int(this: *mut c_void, flags: i32) {
    // Nothing to destroy; the size stays readable until the storage goes.
    if flags & TVMFFIObjectDeleterFlagBitMask::kTVMFFIObjectDeleterFlagBitMaskWeak as i32 != 0 {
        if let Some(layout) = layout_of((*(this as *const BigIntObj)).size) {
            dealloc(this as *mut u8, layout);
        }
    }
}

fn layout_of(words: usize) -> Option<Layout> {
    let size = words.checked_mul(size_of::<i64>())?.checked_add(size_of::<BigIntObj>())?;
    Layout::from_size_align(size, std::mem::align_of::<BigIntObj>()).ok()
}

/// Words without those that only repeat the sign.
fn normal(mut words: &[i64]) -> &[i64] {
    while let [rest @ .., last] = words {
        match rest.last() {
            Some(below) if *last == *below >> 63 => words = rest,
            _ => break,
        }
    }
    words
}

impl BigInt {
    /// Zero.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert!(BigInt::new().is_zero());
    /// ```
    pub fn new() -> Self {
        Self::from(0i64)
    }

    fn inline(value: i64) -> Self {
        let mut data = TVMFFIAny::new();
        data.type_index = INT;
        data.data_union.v_int64 = value;
        Self { data }
    }

    fn is_inline(&self) -> bool {
        self.data.type_index == INT
    }

    fn try_from_words(words: &[i64]) -> Result<Self> {
        match normal(words) {
            [] => Ok(Self::new()),
            [word] => Ok(Self::inline(*word)),
            words => {
                // Not through the allocators of objects, which do not survive running out of memory.
                let layout = layout_of(words.len()).ok_or_else(too_large)?;
                // SAFETY: the layout is not empty, and has room for the words behind the object.
                unsafe {
                    let object = alloc(layout) as *mut BigIntObj;
                    if object.is_null() {
                        return Err(too_large());
                    }
                    object.write(BigIntObj { object: Object::new(), size: words.len() });
                    let header = BigIntObj::object_header_mut(&mut *object);
                    header.combined_ref_count = COMBINED_REF_COUNT_BOTH_ONE.into();
                    header.type_index = BIG_INT;
                    header.deleter = Some(delete_big_int);
                    std::ptr::copy_nonoverlapping(
                        words.as_ptr(),
                        object.add(1) as *mut i64,
                        words.len(),
                    );
                    let mut data = TVMFFIAny::new();
                    data.type_index = BIG_INT;
                    data.data_union.v_obj = object as *mut TVMFFIObject;
                    Ok(Self { data })
                }
            }
        }
    }

    /// The integer of words in two's complement, least significant first.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert_eq!(BigInt::from_words(&[0, 1]), BigInt::from(1i128 << 64));
    /// ```
    pub fn from_words(words: &[i64]) -> Self {
        Self::try_from_words(words).unwrap_or_else(|error| panic!("{}", error.message()))
    }

    /// The words in two's complement, least significant first; none only repeats the sign.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert_eq!(BigInt::from(1i128 << 64).words(), [0, 1]);
    /// ```
    pub fn words(&self) -> &[i64] {
        // SAFETY: the index says which of the two it is; the object outlives self.
        unsafe {
            if self.is_inline() {
                std::slice::from_ref(&self.data.data_union.v_int64)
            } else {
                let object = self.data.data_union.v_obj as *const BigIntObj;
                std::slice::from_raw_parts(object.add(1) as *const i64, (*object).size)
            }
        }
    }

    /// Whether the integer is below zero.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert!(BigInt::from(-1).is_negative());
    /// ```
    pub fn is_negative(&self) -> bool {
        self.words().last().is_some_and(|word| *word < 0)
    }

    /// Whether the integer is zero.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert!(!BigInt::from(-1).is_zero());
    /// ```
    pub fn is_zero(&self) -> bool {
        self.words() == [0]
    }

    fn magnitude(&self) -> Result<Vec<u64>> {
        let words = self.words();
        let mut out: Vec<u64> = reserve(words.len())?;
        if self.is_negative() {
            let mut carry = true;
            for &word in words {
                let (value, over) = (!word as u64).overflowing_add(carry as u64);
                out.push(value);
                carry = over;
            }
        } else {
            out.extend(words.iter().map(|&word| word as u64));
        }
        magnitude::trim(&mut out);
        Ok(out)
    }

    fn from_magnitude(negative: bool, magnitude: Vec<u64>) -> Result<Self> {
        let mut words: Vec<i64> = reserve(magnitude.len() + 1)?;
        let mut carry = negative;
        for &word in magnitude.iter().chain(&[0]) {
            let word = if negative { !word } else { word };
            let (value, over) = word.overflowing_add(carry as u64);
            words.push(value as i64);
            carry = over;
        }
        Self::try_from_words(&words)
    }

    /// As an `i64`, if it fits.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert_eq!(BigInt::from(u64::MAX).to_i64(), None);
    /// ```
    pub fn to_i64(&self) -> Option<i64> {
        self.is_inline().then(|| self.words()[0])
    }

    /// As a `u64`, if it fits.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert_eq!(BigInt::from(u64::MAX).to_u64(), Some(u64::MAX));
    /// ```
    pub fn to_u64(&self) -> Option<u64> {
        self.to_i128().and_then(|value| value.try_into().ok())
    }

    /// As an `i128`, if it fits.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert_eq!(BigInt::from(i128::MIN).to_i128(), Some(i128::MIN));
    /// ```
    pub fn to_i128(&self) -> Option<i128> {
        match self.words() {
            [low] => Some(*low as i128),
            [low, high] => Some((*high as i128) << 64 | (*low as u64) as i128),
            _ => None,
        }
    }

    /// As a `u128`, if it fits.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert_eq!(BigInt::from(-1).to_u128(), None);
    /// ```
    pub fn to_u128(&self) -> Option<u128> {
        match self.words() {
            [low, high, 0] => Some(((*high as u64) as u128) << 64 | (*low as u64) as u128),
            _ => self.to_i128().and_then(|value| value.try_into().ok()),
        }
    }

    /// The nearest `f64`, to even if two are as near.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert_eq!(BigInt::from(1i128 << 64).to_f64().unwrap(), 18446744073709551616.0);
    /// ```
    pub fn to_f64(&self) -> Result<f64> {
        if let Some(value) = self.to_i64() {
            return Ok(value as f64);
        }
        let magnitude = self.magnitude()?;
        let bits = magnitude.len() * 64 - magnitude[magnitude.len() - 1].leading_zeros() as usize;
        let overflow = || Error::new(OVERFLOW_ERROR, "BigInt does not fit finite double", "");
        if bits > 1024 {
            return Err(overflow());
        }
        let below = bits - 64;
        let mut top = magnitude::shr(&magnitude, below)?[0];
        // What is cut off only matters as "more than nothing".
        let (words, rest) = (below / 64, below % 64);
        let cut = magnitude[..words].iter().any(|word| *word != 0)
            || magnitude[words] & ((1u64 << rest) - 1) != 0;
        top |= cut as u64;
        let scale = f64::from_bits((below as u64 + 1023) << 52);
        let value = top as f64 * scale;
        if value.is_infinite() {
            return Err(overflow());
        }
        Ok(if self.is_negative() { -value } else { value })
    }

    /// Quotient and remainder, rounded towards zero.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// let (quotient, rest) = BigInt::from(-7).div_rem(&BigInt::from(2)).unwrap();
    /// assert_eq!((quotient, rest), (BigInt::from(-3), BigInt::from(-1)));
    /// ```
    pub fn div_rem(&self, other: &BigInt) -> Result<(BigInt, BigInt)> {
        if other.is_zero() {
            return Err(Error::new(ZERO_DIVISION_ERROR, "Division by zero", ""));
        }
        if let (Some(a), Some(b)) = (self.to_i64(), other.to_i64()) {
            if let (Some(quotient), Some(rest)) = (a.checked_div(b), a.checked_rem(b)) {
                return Ok((quotient.into(), rest.into()));
            }
        }
        let (quotient, rest) = magnitude::div_rem(&self.magnitude()?, &other.magnitude()?)?;
        let negative = self.is_negative() != other.is_negative();
        Ok((
            Self::from_magnitude(negative, quotient)?,
            Self::from_magnitude(self.is_negative(), rest)?,
        ))
    }

    /// Quotient, rounded towards zero.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert!(BigInt::from(1).try_div(&BigInt::new()).is_err());
    /// ```
    pub fn try_div(&self, other: &BigInt) -> Result<BigInt> {
        Ok(self.div_rem(other)?.0)
    }

    /// Remainder with the sign of `self`.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert_eq!(BigInt::from(-7).try_rem(&BigInt::from(2)).unwrap(), BigInt::from(-1));
    /// ```
    pub fn try_rem(&self, other: &BigInt) -> Result<BigInt> {
        Ok(self.div_rem(other)?.1)
    }

    fn floor_div_mod(&self, other: &BigInt) -> Result<(BigInt, BigInt)> {
        let (quotient, rest) = self.div_rem(other)?;
        if !rest.is_zero() && rest.is_negative() != other.is_negative() {
            return Ok((sub(&quotient, &BigInt::from(1))?, add(&rest, other)?));
        }
        Ok((quotient, rest))
    }

    /// Quotient, rounded down.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert_eq!(BigInt::from(-7).floor_div(&BigInt::from(2)).unwrap(), BigInt::from(-4));
    /// ```
    pub fn floor_div(&self, other: &BigInt) -> Result<BigInt> {
        Ok(self.floor_div_mod(other)?.0)
    }

    /// Remainder with the sign of `other`.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert_eq!(BigInt::from(-7).floor_mod(&BigInt::from(2)).unwrap(), BigInt::from(1));
    /// ```
    pub fn floor_mod(&self, other: &BigInt) -> Result<BigInt> {
        Ok(self.floor_div_mod(other)?.1)
    }

    fn check_count(count: &BigInt) -> Result<()> {
        if count.is_negative() {
            return Err(Error::new(VALUE_ERROR, "Negative BigInt shift count", ""));
        }
        Ok(())
    }

    /// `self` times a power of two.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert_eq!(BigInt::from(1).try_shl(64).unwrap().words(), [0, 1]);
    /// ```
    pub fn try_shl<C: Into<BigInt>>(&self, count: C) -> Result<BigInt> {
        let count = count.into();
        Self::check_count(&count)?;
        if self.is_zero() {
            return Ok(Self::new());
        }
        match count.to_u64().and_then(|count| usize::try_from(count).ok()) {
            Some(count) => {
                Self::from_magnitude(self.is_negative(), magnitude::shl(&self.magnitude()?, count)?)
            }
            None => Err(Error::new(OVERFLOW_ERROR, "BigInt shift count is too large", "")),
        }
    }

    /// `self` divided by a power of two, rounded down.
    ///
    /// ```
    /// use tvm_ffi::BigInt;
    /// assert_eq!(BigInt::from(-1).try_shr(1000).unwrap(), BigInt::from(-1));
    /// ```
    pub fn try_shr<C: Into<BigInt>>(&self, count: C) -> Result<BigInt> {
        let count = count.into();
        Self::check_count(&count)?;
        let words = self.words();
        let sign = words[words.len() - 1] >> 63;
        let count = count.to_u64().and_then(|count| usize::try_from(count).ok());
        let Some(kept) = count.and_then(|count| words.get(count / 64..)).filter(|k| !k.is_empty())
        else {
            return Ok(Self::inline(sign));
        };
        let bits = count.unwrap_or(0) % 64;
        let mut out = reserve(kept.len())?;
        for (i, &word) in kept.iter().enumerate() {
            let above = kept.get(i + 1).copied().unwrap_or(sign);
            out.push(match bits {
                0 => word,
                _ => ((word as u64) >> bits | (above as u64) << (64 - bits)) as i64,
            });
        }
        Self::try_from_words(&out)
    }
}

fn add(a: &BigInt, b: &BigInt) -> Result<BigInt> {
    if let (Some(x), Some(y)) = (a.to_i64(), b.to_i64()) {
        return Ok(BigInt::from(x as i128 + y as i128));
    }
    let (x, y) = (a.magnitude()?, b.magnitude()?);
    if a.is_negative() == b.is_negative() {
        return BigInt::from_magnitude(a.is_negative(), magnitude::add(&x, &y)?);
    }
    match magnitude::cmp(&x, &y) {
        Ordering::Less => BigInt::from_magnitude(b.is_negative(), magnitude::sub(&y, &x)?),
        _ => BigInt::from_magnitude(a.is_negative(), magnitude::sub(&x, &y)?),
    }
}

fn negate(a: &BigInt) -> Result<BigInt> {
    match a.to_i64() {
        Some(value) => Ok(BigInt::from(-(value as i128))),
        None => BigInt::from_magnitude(!a.is_negative(), a.magnitude()?),
    }
}

fn sub(a: &BigInt, b: &BigInt) -> Result<BigInt> {
    if let (Some(x), Some(y)) = (a.to_i64(), b.to_i64()) {
        return Ok(BigInt::from(x as i128 - y as i128));
    }
    add(a, &negate(b)?)
}

fn mul(a: &BigInt, b: &BigInt) -> Result<BigInt> {
    if let (Some(x), Some(y)) = (a.to_i64(), b.to_i64()) {
        return Ok(BigInt::from(x as i128 * y as i128));
    }
    let negative = a.is_negative() != b.is_negative();
    BigInt::from_magnitude(negative, magnitude::mul(&a.magnitude()?, &b.magnitude()?)?)
}

fn bitwise(a: &BigInt, b: &BigInt, op: fn(i64, i64) -> i64) -> Result<BigInt> {
    let (x, y) = (a.words(), b.words());
    let len = x.len().max(y.len());
    let word =
        |words: &[i64], i: usize| words.get(i).copied().unwrap_or(words[words.len() - 1] >> 63);
    let mut out = reserve(len)?;
    out.extend((0..len).map(|i| op(word(x, i), word(y, i))));
    BigInt::try_from_words(&out)
}

fn bit_and(a: &BigInt, b: &BigInt) -> Result<BigInt> {
    bitwise(a, b, |x, y| x & y)
}
fn bit_or(a: &BigInt, b: &BigInt) -> Result<BigInt> {
    bitwise(a, b, |x, y| x | y)
}
fn bit_xor(a: &BigInt, b: &BigInt) -> Result<BigInt> {
    bitwise(a, b, |x, y| x ^ y)
}
fn shl(a: &BigInt, b: &BigInt) -> Result<BigInt> {
    a.try_shl(b.clone())
}
fn shr(a: &BigInt, b: &BigInt) -> Result<BigInt> {
    a.try_shr(b.clone())
}

/// Operators have no way to fail but to panic.
fn unwrap(result: Result<BigInt>) -> BigInt {
    result.unwrap_or_else(|error| panic!("{}", error.message()))
}

macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident = $func:path;)*) => {$(
        operators!(@pair $trait $method $func, BigInt, BigInt, |a, b| (&a, &b));
        operators!(@pair $trait $method $func, BigInt, &BigInt, |a, b| (&a, b));
        operators!(@pair $trait $method $func, &BigInt, BigInt, |a, b| (a, &b));
        operators!(@pair $trait $method $func, &BigInt, &BigInt, |a, b| (a, b));
        operators!(@pair $trait $method $func, BigInt, i64, |a, b| (&a, &BigInt::from(b)));
        operators!(@pair $trait $method $func, &BigInt, i64, |a, b| (a, &BigInt::from(b)));
        operators!(@pair $trait $method $func, i64, BigInt, |a, b| (&BigInt::from(a), &b));
        operators!(@pair $trait $method $func, i64, &BigInt, |a, b| (&BigInt::from(a), b));
        impl std::ops::$assign<&BigInt> for BigInt {
            fn $assign_method(&mut self, other: &BigInt) {
                *self = unwrap($func(self, other));
            }
        }
        impl std::ops::$assign<BigInt> for BigInt {
            fn $assign_method(&mut self, other: BigInt) {
                *self = unwrap($func(self, &other));
            }
        }
        impl std::ops::$assign<i64> for BigInt {
            fn $assign_method(&mut self, other: i64) {
                *self = unwrap($func(self, &BigInt::from(other)));
            }
        }
    )*};
    (@pair $trait:ident $method:ident $func:path, $left:ty, $right:ty,
     |$a:ident, $b:ident| ($x:expr, $y:expr)) => {
        impl std::ops::$trait<$right> for $left {
            type Output = BigInt;
            fn $method(self, other: $right) -> BigInt {
                let ($a, $b) = (self, other);
                unwrap($func($x, $y))
            }
        }
    };
}
operators! {
    Add add AddAssign add_assign = add;
    Sub sub SubAssign sub_assign = sub;
    Mul mul MulAssign mul_assign = mul;
    Div div DivAssign div_assign = BigInt::try_div;
    Rem rem RemAssign rem_assign = BigInt::try_rem;
    BitAnd bitand BitAndAssign bitand_assign = bit_and;
    BitOr bitor BitOrAssign bitor_assign = bit_or;
    BitXor bitxor BitXorAssign bitxor_assign = bit_xor;
    Shl shl ShlAssign shl_assign = shl;
    Shr shr ShrAssign shr_assign = shr;
}

impl std::ops::Neg for &BigInt {
    type Output = BigInt;
    fn neg(self) -> BigInt {
        unwrap(negate(self))
    }
}
impl std::ops::Neg for BigInt {
    type Output = BigInt;
    fn neg(self) -> BigInt {
        -&self
    }
}
impl std::ops::Not for &BigInt {
    type Output = BigInt;
    fn not(self) -> BigInt {
        unwrap(bitwise(self, &BigInt::new(), |x, _| !x))
    }
}
impl std::ops::Not for BigInt {
    type Output = BigInt;
    fn not(self) -> BigInt {
        !&self
    }
}

macro_rules! from_small {
    ($($ty:ty),*) => {$(
        impl From<$ty> for BigInt {
            fn from(value: $ty) -> Self {
                Self::inline(value as i64)
            }
        }
    )*};
}
from_small!(bool, i8, i16, i32, i64, isize, u8, u16, u32);

macro_rules! from_large {
    ($($ty:ty),*) => {$(
        impl From<$ty> for BigInt {
            fn from(value: $ty) -> Self {
                Self::from(value as i128)
            }
        }
    )*};
}
from_large!(u64, usize);

impl From<i128> for BigInt {
    fn from(value: i128) -> Self {
        match i64::try_from(value) {
            Ok(value) => Self::inline(value),
            Err(_) => Self::from_words(&[value as i64, (value >> 64) as i64]),
        }
    }
}
impl From<u128> for BigInt {
    fn from(value: u128) -> Self {
        Self::from_words(&[value as i64, (value >> 64) as i64, 0])
    }
}

impl TryFrom<f64> for BigInt {
    type Error = Error;
    fn try_from(value: f64) -> Result<Self> {
        if value.is_nan() {
            return Err(Error::new(VALUE_ERROR, "Cannot convert NaN to BigInt", ""));
        }
        if value.is_infinite() {
            return Err(Error::new(OVERFLOW_ERROR, "Cannot convert infinity to BigInt", ""));
        }
        let bits = value.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as i32 - 1075;
        let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
        let magnitude = match exponent {
            ..=-53 => Vec::new(),
            -52..=-1 => vec![mantissa >> -exponent],
            _ => magnitude::shl(&[mantissa], exponent as usize)?,
        };
        Self::from_magnitude(value < 0.0, magnitude)
    }
}

const CHUNK: u64 = 10_000_000_000_000_000_000;
const CHUNK_DIGITS: usize = 19;

impl std::str::FromStr for BigInt {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let invalid = || Error::new(VALUE_ERROR, "Invalid decimal string for BigInt", "");
        let (negative, digits) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(invalid());
        }
        let mut words: Vec<u64> = Vec::new();
        let (first, chunks) = digits.split_at(digits.len() % CHUNK_DIGITS);
        for chunk in std::iter::once(first).chain(chunks.chunks(CHUNK_DIGITS)) {
            let mut carry = chunk.iter().fold(0, |n, digit| n * 10 + (digit - b'0') as u64) as u128;
            for word in words.iter_mut() {
                carry += *word as u128 * CHUNK as u128;
                *word = carry as u64;
                carry >>= 64;
            }
            if carry != 0 {
                words.push(carry as u64);
            }
        }
        Self::from_magnitude(negative, words)
    }
}

fn decimal(value: &BigInt) -> Result<std::string::String> {
    let mut words = value.magnitude()?;
    let mut chunks = Vec::new();
    while !words.is_empty() {
        let (quotient, rest) = magnitude::div_rem_small(&words, CHUNK)?;
        chunks.push(rest);
        words = quotient;
    }
    let Some(top) = chunks.pop() else { return Ok("0".to_string()) };
    let mut text = top.to_string();
    for chunk in chunks.iter().rev() {
        text.push_str(&format!("{chunk:0width$}", width = CHUNK_DIGITS));
    }
    Ok(text)
}

impl Display for BigInt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = decimal(self).map_err(|_| std::fmt::Error)?;
        f.pad_integral(!self.is_negative(), "", &text)
    }
}
impl Debug for BigInt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ffi.BigInt {{ data: {self} }}")
    }
}
impl Default for BigInt {
    fn default() -> Self {
        Self::new()
    }
}
impl Clone for BigInt {
    fn clone(&self) -> Self {
        if !self.is_inline() {
            // SAFETY: self keeps the object alive.
            unsafe { unsafe_::inc_ref(self.data.data_union.v_obj) }
        }
        Self { data: self.data }
    }
}
impl Drop for BigInt {
    fn drop(&mut self) {
        if !self.is_inline() {
            // SAFETY: self owns one reference.
            unsafe { unsafe_::dec_ref(self.data.data_union.v_obj) }
        }
    }
}
impl PartialEq for BigInt {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}
impl Eq for BigInt {}
impl PartialOrd for BigInt {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for BigInt {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.words(), other.words());
        let negative = self.is_negative();
        if negative != other.is_negative() {
            return other.is_negative().cmp(&negative);
        }
        if a.len() != b.len() {
            let longer = a.len().cmp(&b.len());
            return if negative { longer.reverse() } else { longer };
        }
        // Equal signs and lengths: two's complement compares like unsigned words.
        a.iter().rev().map(|&w| w as u64).cmp(b.iter().rev().map(|&w| w as u64))
    }
}
impl Hash for BigInt {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words().hash(state)
    }
}

// SAFETY: the cell is the value.
unsafe impl AnyCompatible for BigInt {
    unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny) {
        *data = src.data;
    }
    unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny) {
        *data = std::mem::ManuallyDrop::new(src).data;
    }
    unsafe fn check_any_strict(data: &TVMFFIAny) -> bool {
        data.type_index == INT || data.type_index == BIG_INT
    }
    unsafe fn copy_from_any_view_after_check(data: &TVMFFIAny) -> Self {
        if data.type_index != INT {
            unsafe_::inc_ref(data.data_union.v_obj);
        }
        Self { data: *data }
    }
    unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self {
        Self { data: std::mem::replace(data, TVMFFIAny::new()) }
    }
    unsafe fn try_cast_from_any_view(data: &TVMFFIAny) -> Result<Self, ()> {
        if Self::check_any_strict(data) {
            return Ok(Self::copy_from_any_view_after_check(data));
        }
        if data.type_index == TypeIndex::kTVMFFIBool as i32 {
            return Ok(Self::inline(data.data_union.v_int64));
        }
        Err(())
    }
    fn type_str() -> std::string::String {
        "BigInt".to_string()
    }
}
crate::impl_try_from_any!(BigInt);
