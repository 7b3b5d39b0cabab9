//! The Internet checksum: RFC 1071 for the whole, RFC 1624 for a change.
//!
//! A *sum* is the one's complement sum of 16-bit words in network order; a *checksum* is its
//! complement, which is what headers hold. A sum never is zero unless all words are.

mod repair;

pub use repair::{Left, Outcome, Repair, repair};

/// The sum over `data`; an odd last byte is the upper half of a word.
///
/// RFC 1071 section 2: the sum does not depend on the order of bytes in words, if the result is
/// put in order, and wider words may be added if the result is folded.
#[inline]
pub fn sum(data: &[u8]) -> u16 {
    // Halves of 32 bits are added without a carry from one to the next, so the compiler can
    // add several at once. 2^32 additions fit; no packet has so many bytes.
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

/// The sum over words of 16 or 32 bits, at most 2^32 of them, that were added as numbers, each in
/// network order: the carries are added until 16 bits are left.
#[inline]
pub const fn fold(mut total: u64) -> u16 {
    // Each turn at least halves the width; four are enough for 64 bits and the carries.
    total = (total & 0xffff_ffff) + (total >> 32);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    total as u16
}

/// SCTP's checksum: CRC-32C (RFC 9260 appendix A). Headers hold it least significant byte first.
pub fn crc32c(data: &[u8]) -> u32 {
    const CASTAGNOLI: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
    CASTAGNOLI.checksum(data)
}

/// The sum over two parts, of which the first has an even number of bytes.
#[inline]
pub const fn combine(first: u16, second: u16) -> u16 {
    fold(first as u64 + second as u64)
}

/// The checksum over `data`.
#[inline]
pub fn checksum(data: &[u8]) -> u16 {
    !sum(data)
}

/// The sum over the pseudo header of TCP (RFC 9293 section 3.1) and UDP over IPv4.
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

/// The sum over the pseudo header of RFC 8200 section 8.1.
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

/// The checksum after a 16-bit word changed from `old` to `new`, RFC 1624 equation 3.
#[inline]
pub const fn update16(checksum: u16, old: u16, new: u16) -> u16 {
    Change::NONE.word16(old, new).apply(checksum)
}

/// The checksum after a 32-bit word changed from `old` to `new`.
#[inline]
pub const fn update32(checksum: u16, old: u32, new: u32) -> u16 {
    Change::NONE.word32(old, new).apply(checksum)
}

/// What changed under a checksum: collected once, applied to each checksum that covers it.
///
/// Words stand at even offsets of what the checksum covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The sum of the complements of all old words and of all new ones.
    sum: u16,
}

impl Change {
    /// No change.
    pub const NONE: Self = Self { sum: 0 };

    /// With a 16-bit word changed from `old` to `new`.
    #[inline]
    #[must_use]
    pub const fn word16(self, old: u16, new: u16) -> Self {
        Self { sum: fold(self.sum as u64 + !old as u64 + new as u64) }
    }

    /// With a 32-bit word changed from `old` to `new`.
    #[inline]
    #[must_use]
    pub const fn word32(self, old: u32, new: u32) -> Self {
        Self { sum: fold(self.sum as u64 + !old as u64 + new as u64) }
    }

    /// With the bytes `old` changed to `new`: an address of 16 bytes, for example. Both are
    /// equally long and even.
    #[inline]
    #[must_use]
    pub fn bytes(self, old: &[u8], new: &[u8]) -> Self {
        let complement = u64::from(!sum(old));
        Self { sum: fold(u64::from(self.sum) + complement + u64::from(sum(new))) }
    }

    /// The checksum after the change.
    #[inline]
    pub const fn apply(self, checksum: u16) -> u16 {
        !fold(!checksum as u64 + self.sum as u64)
    }

    /// The checksum of UDP after the change. RFC 768: zero means that there is none, and so it
    /// stays; a computed zero is sent as all ones.
    #[inline]
    pub const fn apply_udp(self, checksum: u16) -> u16 {
        match checksum {
            0 => 0,
            _ => udp_checksum(self.apply(checksum)),
        }
    }
}

/// A computed checksum as UDP sends it, RFC 768: "If the computed checksum is zero, it is
/// transmitted as all ones".
#[inline]
const fn udp_checksum(computed: u16) -> u16 {
    if computed == 0 { 0xffff } else { computed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 section 4.1, word by word.
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
    fn a_udp_checksum_is_never_changed_to_none_nor_none_to_one() {
        let change = Change::NONE.word16(0x5555, 0x3285);
        assert_eq!(change.apply_udp(0xdd2f), 0xffff);
        assert_eq!(change.apply_udp(0), 0);
    }

    proptest! {
        #[test]
        fn the_sum_is_that_of_its_words(data in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(sum(&data), sum_by_words(&data));
        }

        #[test]
        fn the_sum_of_full_words_is_that_of_its_words(length in 0..70_000_usize) {
            let data = alloc::vec![0xff; length];
            prop_assert_eq!(sum(&data), sum_by_words(&data));
        }

        #[test]
        fn parts_combine(data in prop::collection::vec(any::<u8>(), 0..99), at in 0..49_usize) {
            let (first, second) = data.split_at((at * 2).min(data.len() & !1));
            prop_assert_eq!(combine(sum(first), sum(second)), sum(&data));
        }

        #[test]
        fn a_changed_word_changes_the_checksum_as_a_full_sum_does(
            mut data in prop::collection::vec(any::<u16>(), 4..40),
            at in 0..40_usize,
            new: u32,
        ) {
            // Were all words zero, the full sum would be zero and the incremental one all ones.
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
        fn the_pseudo_headers_are_those_written_out(
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
