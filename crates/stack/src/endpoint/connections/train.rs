//! Trains: consecutive segments that differ only in sequence number and data.
//!
//! A large transfer arrives in trains. The connection processes a train once, as with the receive
//! offload of a network interface.

use core::ops::Range;

use wirestorm_base::port::Offloads;
use wirestorm_wire::packet::tcp::Flags;
use wirestorm_wire::packet::{ipv4, ipv6, protocol, tcp};

use crate::frame::{Packet, dissect};
use crate::tcp::segment::{Ecn, Segment};

/// Longest headers of a train in bytes, with the link header. Few are longer, such as IPv6 with
/// SACK.
const HEADERS_MAX: usize = 96;

/// Headers as words, so that the processor compares many bytes at once.
type Words = [u64; HEADERS_MAX / 8];

/// Returns a mask of the bits that must be equal in all segments: headers up to `end` without
/// lengths, identification, checksums, sequence number and PSH.
fn mask(is_ipv4: bool, ip: usize, tcp: usize, end: usize) -> [u8; HEADERS_MAX] {
    let mut mask = [u8::MAX; HEADERS_MAX];
    mask[end..].fill(0);
    let mut free = |from: usize, bytes: Range<usize>| {
        mask[from + bytes.start..from + bytes.end].fill(0);
    };
    if is_ipv4 {
        // Length, identification and checksum (RFC 791 section 3.1).
        [2, 4, 10].into_iter().for_each(|place| free(ip, place..place + 2));
    } else {
        // The length (RFC 8200 section 3).
        free(ip, 4..6);
    }
    free(tcp, tcp::field::SEQUENCE);
    free(tcp, tcp::field::CHECKSUM);
    mask[tcp + tcp::field::FLAGS.start] = !Flags::PSH.0;
    mask
}

fn words(bytes: &[u8; HEADERS_MAX]) -> Words {
    let (words, _) = bytes.as_chunks::<8>();
    core::array::from_fn(|place| u64::from_ne_bytes(words[place]))
}

/// Returns the start of a frame, of the length of a mask. A shorter frame is copied to `room`,
/// padded with zeros.
#[inline]
fn start<'a>(frame: &'a [u8], room: &'a mut [u8; HEADERS_MAX]) -> &'a [u8; HEADERS_MAX] {
    match frame.first_chunk() {
        Some(start) => start,
        None => {
            *room = [0; HEADERS_MAX];
            room[..frame.len()].copy_from_slice(frame);
            room
        }
    }
}

/// Whether the checksums of a frame are correct.
#[inline(never)]
fn is_undamaged(frame: &[u8]) -> bool {
    dissect(frame, true).is_ok()
}

/// Train of segments of one flow, merged into one segment.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct Train {
    /// Slot of the flow.
    pub(in crate::endpoint) place: u32,
    pub(in crate::endpoint) segment: Segment<'static>,
    /// Headers, masked.
    headers: Words,
    mask: Words,
    is_ipv4: bool,
    /// Offsets of the IP header, the TCP header and the data.
    ip: usize,
    tcp: usize,
    data: usize,
}

impl Train {
    /// Starts a train with a segment that others are likely to follow: it has data and nothing else
    /// to process.
    #[inline]
    pub(in crate::endpoint) fn begin(
        frame: &[u8],
        place: u32,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
    ) -> Option<Self> {
        // A segment with PSH is usually the last one.
        let is_plain = segment.flags == Flags::ACK
            && segment.length > 0
            && segment.sack.is_empty()
            && segment.ecn != Ecn::CE;
        if !is_plain {
            return None;
        }
        let ip = packet.link.len();
        let network = frame.get(ip..)?;
        let tcp = ip
            + match network.first()? {
                0x45 => ipv4::HEADER_LENGTH_MIN,
                first if first >> 4 == 6 && network.get(6) == Some(&protocol::TCP) => {
                    ipv6::HEADER_LENGTH
                }
                _ => return None,
            };
        let data = tcp + packet.transport.len() - segment.length as usize;
        if data > HEADERS_MAX {
            return None;
        }
        let is_ipv4 = network.first()? >> 4 == 4;
        let mask = words(&mask(is_ipv4, ip, tcp, data));
        let mut headers = words(start(frame, &mut [0; HEADERS_MAX]));
        headers.iter_mut().zip(mask).for_each(|(word, mask)| *word &= mask);
        let segment = Segment { sack: &[], cookie: &[], ..*segment };
        Some(Self { place, segment, headers, mask, is_ipv4, ip, tcp, data })
    }

    /// Adds a frame if it contains the next segment of the train; returns whether it does.
    #[inline]
    pub(in crate::endpoint) fn takes(&mut self, frame: &[u8], offloads: Offloads) -> bool {
        let mut room = [0; HEADERS_MAX];
        let start = start(frame, &mut room);
        let compared = words(start).into_iter().zip(&self.mask).zip(&self.headers);
        let differs =
            compared.fold(0, |differs, ((word, mask), known)| differs | (word & mask) ^ known);
        // All these fields are in the headers, which are not longer than the compared part.
        let half = |place: usize| usize::from(u16::from_be_bytes([start[place], start[place + 1]]));
        let end = match self.is_ipv4 {
            true => self.ip + half(self.ip + 2),
            false => self.ip + ipv6::HEADER_LENGTH + half(self.ip + 4),
        };
        let sequence = &start[self.tcp..][tcp::field::SEQUENCE];
        let is_next = differs == 0
            && (self.data + 1..=frame.len()).contains(&end)
            && sequence == self.segment.end().0.to_be_bytes()
            && (offloads.is_verified || is_undamaged(frame));
        if is_next {
            let length = (end - self.data) as u32;
            self.segment.length += length;
            self.segment.segments = self.segment.segments.saturating_add(offloads.segments(length));
        }
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Headers, LinkHeader, write_segment};
    use crate::tcp::segment::{Options, Outgoing, Timestamps};
    use crate::tcp::sequence::SequenceNumber;
    use alloc::vec;
    use alloc::vec::Vec;
    use wirestorm_model::ip::IpSettings;
    use wirestorm_wire::checksum;
    use wirestorm_wire::flow::FlowKey;

    const FIRST: SequenceNumber = SequenceNumber(u32::MAX - 100);
    const UNVERIFIED: Offloads = Offloads { is_verified: false, segment_data: 0 };
    const VERIFIED: Offloads = Offloads { is_verified: true, segment_data: 0 };

    fn outgoing(sequence: SequenceNumber, length: u32) -> Outgoing {
        let timestamps = Some(Timestamps { value: 7, echo: 8 });
        Outgoing {
            sequence,
            acknowledgement: SequenceNumber(99),
            flags: Flags::ACK,
            window: 512,
            options: Options { timestamps, ..Options::default() },
            sack_blocks: 0,
            length,
            more: 0,
            tail: 0,
            last_flags: Flags(0),
            is_ecn_capable: true,
        }
    }

    fn key(version: u8) -> FlowKey {
        match version {
            4 => FlowKey::ipv4([10, 0, 0, 1], [10, 0, 0, 2], protocol::TCP),
            _ => FlowKey::ipv6([0xfd; 16], [0xfe; 16], protocol::TCP),
        }
        .with_ports(80, 1_024)
    }

    fn frame(version: u8, outgoing: &Outgoing) -> Vec<u8> {
        let kind = if version == 4 { [8, 0] } else { [0x86, 0xdd] };
        let link = LinkHeader::new(&[[2; 12].as_slice(), &kind].concat()).unwrap();
        let key = key(version);
        let headers = Headers {
            link: &link,
            key: &key,
            ip: &IpSettings::default(),
            identification: 0,
            cookie: &[],
        };
        let mut bytes = vec![0; 2_000];
        let fill = |data: &mut [u8]| {
            data.fill(5);
            checksum::sum(data)
        };
        let length = write_segment(&mut bytes, &headers, outgoing, &[], fill).unwrap();
        bytes.truncate(length);
        bytes
    }

    fn begin(frame: &[u8]) -> Option<Train> {
        let packet = dissect(frame, true).unwrap();
        let (segment, _) = Segment::parse(packet.transport, packet.ecn).unwrap();
        Train::begin(frame, 3, &packet, &segment)
    }

    #[test]
    fn consecutive_segments_become_one() {
        for version in [4, 6] {
            let mut train = begin(&frame(version, &outgoing(FIRST, 1_000))).unwrap();
            assert!(train.takes(&frame(version, &outgoing(FIRST + 1_000, 1_000)), UNVERIFIED));
            // The last one is shorter, has PSH, and is padded.
            let flags = Flags::ACK | Flags::PSH;
            let mut last = frame(version, &Outgoing { flags, ..outgoing(FIRST + 2_000, 7) });
            last.extend([0; 9]);
            assert!(train.takes(&last, UNVERIFIED));
            assert_eq!((train.segment.length, train.segment.segments), (2_007, 3));
            assert_eq!(train.segment.end(), FIRST + 2_007);
        }
    }

    #[test]
    fn segments_that_differ_are_not_added() {
        let next = || outgoing(FIRST + 1_000, 1_000);
        let timestamps = Some(Timestamps { value: 8, echo: 8 });
        let others = [
            outgoing(FIRST + 1_001, 1_000),
            outgoing(FIRST, 1_000),
            outgoing(FIRST + 1_000, 0),
            Outgoing { acknowledgement: SequenceNumber(100), ..next() },
            Outgoing { flags: Flags::ACK | Flags::FIN, ..next() },
            Outgoing { flags: Flags::ACK | Flags::ECE, ..next() },
            Outgoing { window: 513, ..next() },
            Outgoing { options: Options::default(), ..next() },
            Outgoing { options: Options { timestamps, ..Options::default() }, ..next() },
            Outgoing { is_ecn_capable: false, ..next() },
        ];
        for version in [4, 6] {
            let mut train = begin(&frame(version, &outgoing(FIRST, 1_000))).unwrap();
            for other in &others {
                assert!(!train.takes(&frame(version, other), VERIFIED), "{other:?}");
            }
            let good = frame(version, &next());
            for cut in [0, 13, 40, 60, good.len() - 1] {
                assert!(!train.takes(&good[..cut], VERIFIED), "cut to {cut}");
            }
            let mut of_another = good.clone();
            of_another[26] ^= 1;
            assert!(!train.takes(&of_another, VERIFIED));
            let mut elsewhere = good.clone();
            elsewhere[0] ^= 4;
            assert!(!train.takes(&elsewhere, VERIFIED));
            let mut damaged = good.clone();
            *damaged.last_mut().unwrap() ^= 1;
            assert!(!train.takes(&damaged, UNVERIFIED));
            assert_eq!(train.segment.segments, 1);
            assert!(train.takes(&good, UNVERIFIED));
        }
    }

    #[test]
    fn a_segment_with_more_than_data_starts_no_train() {
        let flags = Flags::ACK | Flags::FIN;
        for other in [
            outgoing(FIRST, 0),
            Outgoing { flags: Flags::ACK | Flags::PSH, ..outgoing(FIRST, 9) },
            Outgoing { flags, ..outgoing(FIRST, 9) },
            Outgoing { flags: Flags::ACK | Flags::CWR, ..outgoing(FIRST, 9) },
        ] {
            assert!(begin(&frame(4, &other)).is_none(), "{other:?}");
        }
    }
}
