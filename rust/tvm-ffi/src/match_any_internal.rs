// SPDX-License-Identifier: Apache-2.0
//! Support of `match_any!`. For generated code.
#![allow(missing_docs)]
use crate::any::AnyView;
use crate::type_traits::AnyCompatible;
use std::any::TypeId;
use std::marker::PhantomData;

/// Number of an arm.
pub type ArmId = u32;

/// Arms by type index.
pub struct LeafLookupTable {
    pattern_list_id: TypeId,
    begin: i32,
    arms: Vec<ArmId>,
}

const NO_ARM: ArmId = ArmId::MAX;

impl LeafLookupTable {
    /// The table of arms in source order; the first of equal indices wins.
    pub fn build(pattern_list_id: TypeId, type_indices: &[i32]) -> Self {
        let begin = *type_indices.iter().min().expect("match_any! has no typed arms");
        let end = *type_indices.iter().max().expect("match_any! has no typed arms");
        assert!(begin >= 64, "match_any! matches objects only");
        let mut arms = vec![NO_ARM; (end - begin) as usize + 1];
        for (arm, index) in type_indices.iter().enumerate() {
            let slot = &mut arms[(index - begin) as usize];
            if *slot == NO_ARM {
                *slot = arm as ArmId;
            }
        }
        Self { pattern_list_id, begin, arms }
    }

    /// The arm of a type; an error for the table of other patterns.
    #[allow(clippy::result_unit_err)]
    pub fn lookup(&self, pattern_list_id: TypeId, type_index: i32) -> Result<Option<ArmId>, ()> {
        if pattern_list_id != self.pattern_list_id {
            return Err(());
        }
        let arm = usize::try_from(type_index - self.begin).ok().and_then(|at| self.arms.get(at));
        Ok(arm.copied().filter(|arm| *arm != NO_ARM))
    }
}

/// The types of all arms, as nested pairs.
pub struct LeafPatternProbe<T>(PhantomData<T>);

impl<T> LeafPatternProbe<T> {
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}
impl<T> Default for LeafPatternProbe<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Nested pairs of types with exact indices.
pub trait LeafPatternList: 'static {
    const ALL_EXACT: bool;
    fn fill(out: &mut [i32]);
}
impl LeafPatternList for () {
    const ALL_EXACT: bool = true;
    fn fill(_: &mut [i32]) {}
}
impl<Head: AnyCompatible + 'static, Tail: LeafPatternList> LeafPatternList for (Head, Tail) {
    const ALL_EXACT: bool = Head::MATCH_ANY_EXACT && Tail::ALL_EXACT;
    fn fill(out: &mut [i32]) {
        if let [first, rest @ ..] = out {
            *first = Head::match_any_exact_type_index();
            Tail::fill(rest);
        }
    }
}

/// Called as `(&probe).method()`: the first implementation that fits is taken.
pub trait LeafPatternMetadata {
    fn leaf_pattern_list_id(&self) -> Option<TypeId>;
    fn fill_leaf_type_indices(&self, out: &mut [i32]);
}
impl<T: LeafPatternList> LeafPatternMetadata for LeafPatternProbe<T> {
    fn leaf_pattern_list_id(&self) -> Option<TypeId> {
        T::ALL_EXACT.then(TypeId::of::<T>)
    }
    fn fill_leaf_type_indices(&self, out: &mut [i32]) {
        T::fill(out)
    }
}
impl<T> LeafPatternMetadata for &LeafPatternProbe<T> {
    fn leaf_pattern_list_id(&self) -> Option<TypeId> {
        None
    }
    fn fill_leaf_type_indices(&self, _: &mut [i32]) {}
}

/// The type of one arm.
pub struct PatternConversionProbe<T>(PhantomData<T>);

impl<T> PatternConversionProbe<T> {
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}
impl<T> Default for PatternConversionProbe<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Called as `(&probe).try_convert(view)`: the first implementation that fits is taken.
pub trait PatternConversion<T> {
    fn try_convert(&self, view: AnyView<'_>) -> Option<T>;
}
impl<T: AnyCompatible> PatternConversion<T> for PatternConversionProbe<T> {
    fn try_convert(&self, view: AnyView<'_>) -> Option<T> {
        let data = view.raw();
        // SAFETY: the view is valid; an exact index is a check.
        unsafe {
            if T::MATCH_ANY_EXACT {
                return (data.type_index == T::match_any_exact_type_index())
                    .then(|| T::copy_from_any_view_after_check(data));
            }
            T::try_cast_from_any_view(data).ok()
        }
    }
}
impl<T> PatternConversion<T> for &PatternConversionProbe<T>
where
    for<'a> AnyView<'a>: TryInto<T>,
{
    fn try_convert(&self, view: AnyView<'_>) -> Option<T> {
        view.try_into().ok()
    }
}
