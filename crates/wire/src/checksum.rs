//! The Internet checksum: RFC 1071 for the computation, RFC 1624 for updates.
//!
//! A *sum* is the one's complement sum of 16-bit words in network order. A *checksum* is its
//! complement, as headers hold it. A sum is zero only if all words are zero.

mod repair;

pub use repair::{ChecksumOutcome, Repair, UnchangedReason, repair};

/// Returns the sum over `data`; an odd last byte is the upper half of a word.
///
/// RFC 1071 section 2: the sum is independent of the byte order if the result is swapped back. It
/// may add wider words if the result is folded.
#[inline]
pub fn sum(data: &[u8]) -> u16 {
    // 32-bit halves are added to 64 bits without carries, so the compiler can vectorise. 2^32
    // additions fit; no packet is that long.
    let mut total = 0_u64;
    let (words, mut rest) = data.as_chunks::<8>();
    for word in words {
        let word = u64::from_ne_bytes(*word);
        total += (word & 0xffff_ffff) + (word >> 32);
    }
    if let Some((word, behind)) = rest.split_first_chunk() {
        total += u64::from(u32::from_ne_bytes(*word));
        rest = behind;
    }
    if let Some((word, behind)) = rest.split_first_chunk() {
        total += u64::from(u16::from_ne_bytes(*word));
        rest = behind;
    }
    if let Some(byte) = rest.first() {
        total += u64::from(u16::from_ne_bytes([*byte, 0]));
    }
    u16::from_be(fold(total))
}

/// Folds a total of at most 2^32 words of 16 or 32 bits, each in network order, into 16 bits.
#[inline]
pub const fn fold(mut total: u64) -> u16 {
    // Each step at least halves the width; four suffice for 64 bits and the carries.
    total = (total & 0xffff_ffff) + (total >> 32);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    total as u16
}

/// Returns SCTP's checksum: CRC-32C (RFC 9260 appendix A). Headers hold it in little-endian order.
pub fn crc32c(data: &[u8]) -> u32 {
    const CASTAGNOLI: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
    CASTAGNOLI.checksum(data)
}

/// Returns the sum over two parts. The first must have an even number of bytes.
#[inline]
pub const fn combine(first: u16, second: u16) -> u16 {
    fold(first as u64 + second as u64)
}

/// Returns the checksum over `data`.
#[inline]
pub fn checksum(data: &[u8]) -> u16 {
    !sum(data)
}

/// Returns the sum over the IPv4 pseudo-header of TCP (RFC 9293 section 3.1) and UDP.
#[inline]
pub const fn pseudo_header_ipv4(
    source: [u8; 4],
    destination: [u8; 4],
    protocol: u8,
    length: u16,
) -> u16 {
    let (source, destination) = (u32::from_be_bytes(source), u32::from_be_bytes(destination));
    fold(source as u64 + destination as u64 + protocol as u64 + length as u64)
}

/// Returns the sum over the IPv6 pseudo-header of RFC 8200 section 8.1.
#[inline]
pub fn pseudo_header_ipv6(
    source: [u8; 16],
    destination: [u8; 16],
    next_header: u8,
    length: u32,
) -> u16 {
    let addresses = combine(sum(&source), sum(&destination));
    fold(u64::from(addresses) + u64::from(next_header) + u64::from(length))
}

/// Returns the checksum after a 16-bit word changed from `old` to `new`, RFC 1624 equation 3.
#[inline]
pub const fn update16(checksum: u16, old: u16, new: u16) -> u16 {
    Change::NONE.word16(old, new).apply(checksum)
}

/// Returns the checksum after a 32-bit word changed from `old` to `new`.
#[inline]
pub const fn update32(checksum: u16, old: u32, new: u32) -> u16 {
    Change::NONE.word32(old, new).apply(checksum)
}

/// Changes of covered words, collected once and applied to each checksum that covers them.
///
/// The words must be at even offsets of the covered data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Sum of the complements of all old words and of all new words.
    sum: u16,
}

impl Change {
    /// No change.
    pub const NONE: Self = Self { sum: 0 };

    /// Adds the change of a 16-bit word from `old` to `new`.
    #[inline]
    #[must_use]
    pub const fn word16(self, old: u16, new: u16) -> Self {
        Self { sum: fold(self.sum as u64 + !old as u64 + new as u64) }
    }

    /// Adds the change of a 32-bit word from `old` to `new`.
    #[inline]
    #[must_use]
    pub const fn word32(self, old: u32, new: u32) -> Self {
        Self { sum: fold(self.sum as u64 + !old as u64 + new as u64) }
    }

    /// Adds the change of the bytes `old` to `new`, for example a 16-byte address. Both must have
    /// the same even length.
    #[inline]
    #[must_use]
    pub fn bytes(self, old: &[u8], new: &[u8]) -> Self {
        let complement = u64::from(!sum(old));
        Self { sum: fold(u64::from(self.sum) + complement + u64::from(sum(new))) }
    }

    /// Returns the checksum after the change.
    #[inline]
    pub const fn apply(self, checksum: u16) -> u16 {
        !fold(!checksum as u64 + self.sum as u64)
    }

    /// Returns the UDP checksum after the change. RFC 768: zero means no checksum, so it stays
    /// zero; a computed zero becomes all ones.
    #[inline]
    pub const fn apply_udp(self, checksum: u16) -> u16 {
        match checksum {
            0 => 0,
            _ => udp_checksum(self.apply(checksum)),
        }
    }
}

/// Converts a computed checksum to UDP's form. RFC 768: "If the computed checksum is zero, it is
/// transmitted as all ones".
#[inline]
const fn udp_checksum(computed: u16) -> u16 {
    if computed == 0 { 0xffff } else { computed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sums word by word, as in RFC 1071 section 4.1.
    fn sum_by_words(data: &[u8]) -> u16 {
        let mut total = 0_u64;
        for word in data.chunks(2) {
            let low = word.get(1).copied().unwrap_or_default();
            total += u64::from(u16::from_be_bytes([word[0], low]));
        }
        while total >> 16 != 0 {
            total = (total & 0xffff) + (total >> 16);
        }
        total as u16
    }

    #[test]
    fn the_example_of_rfc_1071_has_its_sum() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624_has_its_checksum() {
        // Section 4: "HC' = ~(~0xDD2F + ~0x5555 + 0x3285) = 0x0000", where equation 4 of
        // RFC 1141 is wrong.
        assert_eq!(update16(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn a_udp_checksum_update_never_adds_or_removes_a_checksum() {
        let change = Change::NONE.word16(0x5555, 0x3285);
        assert_eq!(change.apply_udp(0xdd2f), 0xffff);
        assert_eq!(change.apply_udp(0), 0);
    }

    proptest! {
        #[test]
        fn the_sum_equals_the_sum_of_words(data in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(sum(&data), sum_by_words(&data));
        }

        #[test]
        fn the_sum_of_all_ones_equals_the_sum_of_words(length in 0..70_000_usize) {
            let data = alloc::vec![0xff; length];
            prop_assert_eq!(sum(&data), sum_by_words(&data));
        }

        #[test]
        fn parts_combine(data in prop::collection::vec(any::<u8>(), 0..99), at in 0..49_usize) {
            let (first, second) = data.split_at((at * 2).min(data.len() & !1));
            prop_assert_eq!(combine(sum(first), sum(second)), sum(&data));
        }

        #[test]
        fn an_incremental_update_equals_a_full_computation(
            mut data in prop::collection::vec(any::<u16>(), 4..40),
            at in 0..40_usize,
            new: u32,
        ) {
            // If all words were zero, the full sum would be zero but the incremental one all ones.
            data.push(1);
            let at = at % (data.len() - 2);
            let bytes = |data: &[u16]| -> alloc::vec::Vec<u8> {
                data.iter().flat_map(|word| word.to_be_bytes()).collect()
            };
            let before = bytes(&data);
            let old = u32::from(data[at]) << 16 | u32::from(data[at + 1]);
            (data[at], data[at + 1]) = ((new >> 16) as u16, new as u16);
            let after = bytes(&data);
            let expected = checksum(&after);
            let (old16, new16) = ((old >> 16) as u16, (new >> 16) as u16);
            let twice = update16(checksum(&before), old16, new16);
            prop_assert_eq!(update16(twice, old as u16, new as u16), expected);
            prop_assert_eq!(update32(checksum(&before), old, new), expected);
            let change = Change::NONE.bytes(&old.to_be_bytes(), &new.to_be_bytes());
            prop_assert_eq!(change.apply(checksum(&before)), expected);
        }

        #[test]
        fn pseudo_header_sums_equal_the_sum_of_their_bytes(
            source: [u8; 16], destination: [u8; 16], protocol: u8, length: u32,
        ) {
            let six = [
                &source[..], &destination, &length.to_be_bytes(), &[0, 0, 0, protocol],
            ].concat();
            let found = pseudo_header_ipv6(source, destination, protocol, length);
            prop_assert_eq!(found, sum_by_words(&six));
            let (source, destination) = (&source[..4], &destination[..4]);
            let length = length as u16;
            let four = [source, destination, &[0, protocol], &length.to_be_bytes()].concat();
            let [source, destination] = [source, destination].map(|part| part.try_into().unwrap());
            let found = pseudo_header_ipv4(source, destination, protocol, length);
            prop_assert_eq!(found, sum_by_words(&four));
        }
    }
}
