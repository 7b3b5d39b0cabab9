//! Factors of loads.

use core::num::NonZero;

/// Factor of a load: numerator and denominator.
pub(in crate::endpoint) type Scale = (NonZero<u32>, NonZero<u32>);

/// Multiplies a number by a factor and rounds it.
pub(in crate::endpoint) fn scaled(number: u64, (numerator, denominator): Scale) -> u64 {
    let (numerator, denominator) = (u128::from(numerator.get()), u128::from(denominator.get()));
    let product = u128::from(number) * numerator;
    u64::try_from((product + denominator / 2) / denominator).unwrap_or(u64::MAX)
}
