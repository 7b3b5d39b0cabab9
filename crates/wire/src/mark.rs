//! Marks in IP headers, which count frames that have no room for a signature.
//!
//! The marks are those of TRex's flow statistics. The IPv4 identification or the IPv6 flow label is
//! 0xfc00 to 0xfffe, and the lowest bit of the type of service or traffic class is set. Routers
//! change neither, and no payload is needed. A mark identifies only the stream of a frame.

use crate::checksum::{combine, sum};

/// Identification of the first mark.
pub const FIRST: u16 = 0xfc00;

/// Number of marks.
pub const COUNT: u16 = 1_023;

/// Offset of the IP header in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// An IPv4 header.
    V4(usize),
    /// An IPv6 header.
    V6(usize),
}

impl Network {
    /// Finds the IP header behind at most two VLAN tags.
    #[inline]
    pub fn find(frame: &[u8]) -> Option<Self> {
        let mut at = 12;
        for _ in 0..3 {
            let behind = at + 2;
            match frame.get(at..behind)? {
                [0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00] => at += 4,
                [0x08, 0x00] if frame.len() >= behind + 20 => return Some(Self::V4(behind)),
                [0x86, 0xdd] if frame.len() >= behind + 40 => return Some(Self::V6(behind)),
                _ => return None,
            }
        }
        None
    }

    /// Returns whether a write to bytes `start` to `end` (exclusive) of the frame would change a
    /// mark.
    pub const fn overlaps_mark(self, start: usize, end: usize) -> bool {
        let (from, to) = match self {
            // Type of service and identification, with the length between them.
            Self::V4(header) => (header + 1, header + 6),
            Self::V6(header) => (header, header + 4),
        };
        let is_length =
            matches!(self, Self::V4(header) if start >= header + 2 && end <= header + 4);
        start < to && end > from && !is_length
    }
}

/// Writes mark `number`, below [`COUNT`]. Returns whether the frame has an IP header.
pub fn write(frame: &mut [u8], number: u16) -> bool {
    let identification = u32::from(FIRST.saturating_add(number));
    set_identification(frame, |_| identification, true)
}

/// Returns the number of a frame's mark, or `None` if it has none.
#[inline]
pub fn read(frame: &[u8]) -> Option<u16> {
    let (identification, class) = match Network::find(frame)? {
        Network::V4(header) => {
            let ip: &[u8; 6] = frame.get(header..)?.first_chunk()?;
            (u32::from(u16::from_be_bytes([ip[4], ip[5]])), ip[1])
        }
        Network::V6(header) => {
            let word = u32::from_be_bytes(*frame.get(header..)?.first_chunk()?);
            (word & 0xf_ffff, (word >> 20) as u8)
        }
    };
    let number = u16::try_from(identification).ok()?.checked_sub(FIRST)?;
    (class & 1 == 1 && number < COUNT).then_some(number)
}

/// Replaces the identification or flow label in a frame's IP header by `new(old)`. If `is_counted`,
/// sets the lowest bit of the type of service. Returns whether there is a header.
pub fn set_identification(
    frame: &mut [u8],
    new: impl FnOnce(u32) -> u32,
    is_counted: bool,
) -> bool {
    let Some(network) = Network::find(frame) else { return false };
    match network {
        Network::V4(header) => {
            let ip = &mut frame[header..];
            let old = [ip[0], ip[1], ip[4], ip[5]];
            let present = u16::from_be_bytes([ip[4], ip[5]]);
            let identification = new(present.into()) as u16;
            ip[4..6].copy_from_slice(&identification.to_be_bytes());
            ip[1] |= u8::from(is_counted);
            let changed = [ip[0], ip[1], ip[4], ip[5]];
            if changed != old {
                // Updates incrementally, so that a deliberately wrong checksum stays wrong (RFC
                // 1624 equation 3).
                let before = combine(!u16::from_be_bytes([ip[10], ip[11]]), !sum(&old));
                let after = !combine(before, sum(&changed));
                ip[10..12].copy_from_slice(&after.to_be_bytes());
            }
        }
        Network::V6(header) => {
            let ip = &mut frame[header..];
            let word = u32::from_be_bytes([ip[0], ip[1], ip[2], ip[3]]);
            let label = new(word & 0xf_ffff) & 0xf_ffff;
            let word = word & !0xf_ffff | label | u32::from(is_counted) << 20;
            ip[..4].copy_from_slice(&word.to_be_bytes());
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const TAGS: [&[u8]; 3] = [&[], &[0x81, 0, 0, 7], &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7]];

    fn ipv4(tags: &[u8]) -> Vec<u8> {
        let packet = [0x45, 0, 0, 20, 0, 1, 0, 0, 64, 17, 0x66, 0xd6, 10, 0, 0, 1, 10, 0, 0, 2];
        [&[2; 12][..], tags, &[8, 0], &packet].concat()
    }

    fn ipv6(tags: &[u8]) -> Vec<u8> {
        let mut packet = [0; 40];
        packet[..4].copy_from_slice(&[0x6a, 0xb0, 0x12, 0x34]);
        [&[2; 12][..], tags, &[0x86, 0xdd], &packet].concat()
    }

    #[test]
    fn marks_round_trip_behind_tags_and_keep_checksums_valid() {
        for tags in TAGS {
            for mut frame in [ipv4(tags), ipv6(tags)] {
                assert_eq!(read(&frame), None);
                for number in [0, 1, COUNT - 1] {
                    assert!(write(&mut frame, number));
                    assert_eq!(read(&frame), Some(number));
                }
                if let Some(Network::V4(header)) = Network::find(&frame) {
                    assert_eq!(sum(&frame[header..header + 20]), 0xffff);
                }
            }
        }
    }

    #[test]
    fn a_mark_keeps_the_version_and_the_other_class_bits() {
        let mut frame = ipv6(&[]);
        write(&mut frame, 5);
        assert_eq!(frame[14..18], [0x6a, 0xb0 | 0x10, 0xfc, 0x05]);
    }

    #[test]
    fn unmarked_frames_have_no_mark() {
        let mut latency = ipv4(&[]);
        set_identification(&mut latency, |_| 0xffff, true);
        let mut unmarked = ipv4(&[]);
        set_identification(&mut unmarked, |_| 0xfc00, false);
        for frame in [&latency[..], &unmarked, &ipv4(&[])[..33], &[], &[2; 60]] {
            assert_eq!(read(frame), None);
        }
        let mut arp = [&[2; 12][..], &[8, 6], &[0; 46]].concat();
        assert!(!write(&mut arp, 0));
    }

    #[test]
    fn the_ipv4_length_is_not_part_of_a_mark() {
        let v4 = Network::V4(14);
        for (start, end, is_changed) in
            [(14, 15, false), (15, 16, true), (16, 18, false), (18, 20, true), (17, 19, true)]
        {
            assert_eq!(v4.overlaps_mark(start, end), is_changed, "{start} to {end}");
        }
        assert!(Network::V6(14).overlaps_mark(17, 18) && !Network::V6(14).overlaps_mark(18, 20));
    }
}
