//! Signature of 18 bytes that identifies a measured frame.
//!
//! | |bytes | content ||
//! | --- | --- |
//! | 0-1 | magic, 0x5753 |
//! | 2-4 | stream number |
//! | 5-9 | sequence number in the stream, modulo 2^40 |
//! | 10-15 | departure in ns, modulo 2^48 (78 hours) |
//! | 16-17 | value that makes the one's complement sum of all nine words 0xffff |
//!
//! This sum is zero in every RFC 1071 checksum, wherever the signature begins. So no checksum must
//! be corrected when the departure is stamped, and the sum also protects the signature.

use wirestorm_wire::capture::LinkType;
use wirestorm_wire::dissect::dissect;
use wirestorm_wire::packet::ethertype;

const MAGIC: u64 = 0x5753;

/// Bytes at the end of a frame to search if the signature is not at its usual place.
const SEARCHED: usize = 64;

/// Content of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Stream number, below 2^24.
    pub stream: u32,
    /// Sequence number in the stream from 0, modulo 2^40.
    pub sequence: u64,
    /// Departure in ns of the sender's clock, modulo 2^48.
    pub departure: u64,
}

impl Signature {
    /// Length of a signature in bytes.
    pub const LENGTH: usize = 18;
    /// Bits of a stream number.
    pub const STREAM_BITS: u32 = 24;
    /// Bits of a sequence number.
    pub const SEQUENCE_BITS: u32 = 40;
    /// Bits of a departure.
    pub const DEPARTURE_BITS: u32 = 48;

    /// Returns the bytes at the end of a frame. Values that are too wide for their field lose their
    /// upper bits.
    #[inline]
    pub fn encode(self) -> [u8; Self::LENGTH] {
        let stream = u64::from(self.stream) & low_bits(Self::STREAM_BITS);
        let sequence = self.sequence & low_bits(Self::SEQUENCE_BITS);
        let first = MAGIC << 48 | stream << 24 | sequence >> 16;
        let second = sequence << 48 | self.departure & low_bits(Self::DEPARTURE_BITS);
        // 16-bit words may be added as parts of wider ones (RFC 1071 section 2).
        let (mut sum, carry) = first.overflowing_add(second);
        sum = (sum & 0xffff_ffff) + (sum >> 32) + u64::from(carry);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&first.to_be_bytes());
        bytes[8..16].copy_from_slice(&second.to_be_bytes());
        bytes[16..].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        bytes
    }

    /// Parses a signature if magic and sum are correct. These are 32 bits, so one position in 2^32
    /// of random traffic looks like a signature.
    #[inline]
    pub fn decode(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let (first, rest) = bytes.split_first_chunk()?;
        let (second, rest) = rest.split_first_chunk()?;
        let (first, second) = (u64::from_be_bytes(*first), u64::from_be_bytes(*second));
        let neutraliser = u16::from_be_bytes(*rest.first_chunk()?);
        if first >> 48 != MAGIC || sum_modulo(first, second, neutraliser) != 0 {
            return None;
        }
        Some(Self {
            stream: (first >> 24 & low_bits(Self::STREAM_BITS)) as u32,
            sequence: (first & low_bits(24)) << 16 | second >> 48,
            departure: second & low_bits(Self::DEPARTURE_BITS),
        })
    }
}

/// Returns the sum of all words modulo 0xffff, which equals addition with end-around carry. The
/// magic is not zero, so a result of 0 means a sum of 0xffff.
#[inline]
const fn sum_modulo(first: u64, second: u64, neutraliser: u16) -> u64 {
    const HALF: u64 = 0xffff_ffff;
    let halves = (first >> 32) + (first & HALF) + (second >> 32) + (second & HALF);
    (halves + neutraliser as u64) % 0xffff
}

const fn low_bits(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// Signature and its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundSignature {
    /// Content of the signature.
    pub signature: Signature,
    /// Offset in the frame behind the signature.
    pub end: usize,
}

/// Finds the signature of a frame without FCS.
///
/// Usually it is in the last bytes, whatever headers were added or removed before it. If the frame
/// has padding or a trailer, it is at the end of the outermost IP packet. Otherwise the last 64
/// bytes are searched, for an IP packet that was padded before a tunnel wrapped it and for frames
/// that are not IP. The last fragment of a fragmented frame has the signature. An ICMP error that
/// quotes a complete frame has the signature of that frame.
#[inline]
pub fn find(frame: &[u8]) -> Option<FoundSignature> {
    match frame.last_chunk().and_then(Signature::decode) {
        Some(signature) => Some(FoundSignature { signature, end: frame.len() }),
        None => find_inside(frame),
    }
}

#[inline(never)]
fn find_inside(frame: &[u8]) -> Option<FoundSignature> {
    let at_end = |end: usize| {
        let signature = Signature::decode(frame.get(..end)?.last_chunk()?)?;
        Some(FoundSignature { signature, end })
    };
    let searched = frame.len().saturating_sub(SEARCHED) + Signature::LENGTH..frame.len();
    network_end(frame).and_then(at_end).or_else(|| searched.rev().find_map(at_end))
}

/// Returns the end of the outermost IP packet.
fn network_end(frame: &[u8]) -> Option<usize> {
    let dissection = dissect(LinkType::EN10MB, frame);
    let offset = usize::from(dissection.network_offset);
    let half = |at: usize| {
        let bytes = frame.get(offset + at..)?.first_chunk()?;
        Some(usize::from(u16::from_be_bytes(*bytes)))
    };
    match dissection.ethertype {
        ethertype::IPV4 => Some(offset + half(2)?),
        ethertype::IPV6 => Some(offset + 40 + half(4)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use wirestorm_wire::checksum;

    const SIGNATURE: Signature =
        Signature { stream: 0x12_3456, sequence: 0x78_9abc_def0, departure: 0x1234_5678_9abc };

    /// Returns an Ethernet frame with `tags`, which end in an EtherType, and a UDP datagram over
    /// IPv4 that ends in the signature.
    fn frame(tags: &[u8]) -> Vec<u8> {
        let mut packet =
            [0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2].to_vec();
        packet.extend([4, 0, 0, 53, 0, 26, 0, 0]);
        packet.extend(SIGNATURE.encode());
        [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], tags, &packet].concat()
    }

    #[test]
    fn fields_match_the_layout() {
        let bytes = SIGNATURE.encode();
        let fields = [0x57, 0x53, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x12, 0x34];
        assert_eq!(bytes[..12], fields);
        assert_eq!(bytes[12..16], [0x56, 0x78, 0x9a, 0xbc]);
    }

    #[test]
    fn signature_does_not_change_checksums_at_even_and_odd_offsets() {
        for departure in [0, 1, 0xffff, 0xffff_ffff_ffff, 0xa8ac_0000_0000, SIGNATURE.departure] {
            for stream in 0..2_000 {
                let bytes = Signature { stream, sequence: 7, departure }.encode();
                assert_eq!(checksum::sum(&bytes), 0xffff);
                assert_eq!(Signature::decode(&bytes).map(|found| found.stream), Some(stream));
                let behind = |signature: &[u8]| checksum::sum(&[&[1, 2, 3], signature].concat());
                assert_eq!(behind(&bytes), behind(&[0; Signature::LENGTH]));
            }
        }
    }

    #[test]
    fn every_bit_error_is_detected() {
        let bytes = SIGNATURE.encode();
        assert_eq!(Signature::decode(&bytes), Some(SIGNATURE));
        for bit in 0..8 * Signature::LENGTH {
            let mut wrong = bytes;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Signature::decode(&wrong), None, "bit {bit}");
        }
    }

    #[test]
    fn both_zeros_of_the_neutraliser_are_valid() {
        // Stream number for which the sum of the other words alone is 0xffff.
        let stream = (0..1 << 16).find(|&stream| {
            Signature { stream, sequence: 0, departure: 0 }.encode()[16..] == [0, 0]
                || Signature { stream, sequence: 0, departure: 0 }.encode()[16..] == [0xff, 0xff]
        });
        let mut bytes = Signature { stream: stream.unwrap(), sequence: 0, departure: 0 }.encode();
        for zero in [0, 0xff] {
            bytes[16..].fill(zero);
            assert!(Signature::decode(&bytes).is_some());
        }
    }

    #[test]
    fn signature_is_found_after_headers_change() {
        let vxlan = [&[8, 0, 0, 0, 0, 0, 5, 0][..], &frame(&[8, 0])].concat();
        let mut outer =
            [0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 1, 0, 2].to_vec();
        outer[3] = (28 + vxlan.len()) as u8;
        outer.extend([0x12, 0xb5, 0x12, 0xb5, 0, 8 + vxlan.len() as u8, 0, 0]);
        let tunnel = [&[2; 12][..], &[8, 0], &outer, &vxlan].concat();
        for wrapped in [
            frame(&[8, 0]),
            frame(&[0x81, 0, 0, 7, 8, 0]),
            frame(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7, 8, 0]),
            frame(&[0x88, 0x47, 0, 1, 1, 64]),
            tunnel,
        ] {
            let end = wrapped.len();
            assert_eq!(find(&wrapped), Some(FoundSignature { signature: SIGNATURE, end }));
            // A trailer longer than the searched part.
            let padded = [&wrapped[..], &[0x57; 200]].concat();
            assert_eq!(
                find(&padded),
                Some(FoundSignature { signature: SIGNATURE, end }),
                "{wrapped:02x?}"
            );
        }
    }

    #[test]
    fn signature_is_found_before_padding() {
        let end = frame(&[8, 0]).len();
        for trailer in 0..=SEARCHED - Signature::LENGTH {
            // Local experimental EtherType: the end of its packet is unknown.
            let padded = [frame(&[0x88, 0xb5]), [0; SEARCHED][..trailer].to_vec()].concat();
            assert_eq!(
                find(&padded),
                Some(FoundSignature { signature: SIGNATURE, end }),
                "{trailer}"
            );
        }
        assert_eq!(find(&[frame(&[0x88, 0xb5]), [0; 47].to_vec()].concat()), None);
    }

    #[test]
    fn frames_without_signature_have_none() {
        for length in 0..200 {
            assert_eq!(find(&[0x57, 0x53].repeat(100)[..length]), None);
            assert_eq!(find(&[0; 200][..length]), None);
        }
        let plain = frame(&[8, 0]);
        assert_eq!(find(&plain[..plain.len() - 1]), None, "truncated");
    }

    proptest! {
        #[test]
        fn signature_does_not_change_any_checksum(
            stream: u32, sequence: u64, departure: u64,
            data in prop::collection::vec(any::<u8>(), 19..80), at: prop::sample::Index,
        ) {
            let mut signed = data;
            signed.push(1);
            let at = at.index(signed.len() - Signature::LENGTH);
            let end = signed[at..].first_chunk_mut().expect("it was placed so");
            *end = Signature { stream, sequence, departure }.encode();
            prop_assert_eq!(checksum::sum(end), 0xffff);
            let mut without = signed.clone();
            without[at..at + Signature::LENGTH].fill(0);
            prop_assert_eq!(checksum::sum(&signed), checksum::sum(&without));
        }
    }
}
