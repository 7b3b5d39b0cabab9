//! TCP sequence numbers: 32 bits that wrap around (RFC 9293 section 3.4).

use core::ops::{Add, AddAssign, Sub, SubAssign};

/// Number of an octet of a stream, or an acknowledgement of all octets before it.
///
/// "The actual sequence number space is finite, though large. This space ranges from 0 to
/// 2^32 - 1. Since the space is finite, all arithmetic dealing with sequence numbers must be
/// performed modulo 2^32" (RFC 9293 section 3.4). The order of two numbers is defined only if they
/// are less than 2^31 apart. So there is no total order, and the type does not implement `Ord`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SequenceNumber(pub u32);

const _: () = assert!(size_of::<SequenceNumber>() == 4);

impl SequenceNumber {
    /// Whether this number comes before `other`. If they are exactly 2^31 apart, each comes before
    /// the other.
    #[inline]
    pub const fn is_before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// Number of octets from `earlier` to this number; negative if this number comes first.
    #[inline]
    pub const fn distance_from(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }
}

impl Add<u32> for SequenceNumber {
    type Output = Self;

    #[inline]
    fn add(self, octets: u32) -> Self {
        Self(self.0.wrapping_add(octets))
    }
}

impl AddAssign<u32> for SequenceNumber {
    #[inline]
    fn add_assign(&mut self, octets: u32) {
        *self = *self + octets;
    }
}

impl Sub<u32> for SequenceNumber {
    type Output = Self;

    #[inline]
    fn sub(self, octets: u32) -> Self {
        Self(self.0.wrapping_sub(octets))
    }
}

impl SubAssign<u32> for SequenceNumber {
    #[inline]
    fn sub_assign(&mut self, octets: u32) {
        *self = *self - octets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_after_the_last_one() {
        let last = SequenceNumber(u32::MAX);
        assert_eq!(last + 1, SequenceNumber(0));
        assert_eq!(SequenceNumber(4) - 5, last);
        let mut number = last;
        number += 10;
        assert_eq!(number, SequenceNumber(9));
        number -= 10;
        assert_eq!(number, last);
    }

    #[test]
    fn order_holds_across_the_wrap() {
        for start in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, u32::MAX] {
            let start = SequenceNumber(start);
            assert!(!start.is_before(start));
            for octets in [1, 2, 65_535, 1 << 30, (1 << 31) - 1] {
                let later = start + octets;
                assert!(start.is_before(later), "{start:?} + {octets}");
                assert!(!later.is_before(start), "{start:?} + {octets}");
                assert_eq!(later.distance_from(start), octets as i32);
                assert_eq!(start.distance_from(later), -(octets as i32));
            }
        }
    }
}
