//! Segments that arrive one behind the other and differ in numbers and data alone.
//!
//! A page comes in a row of them. The connection hears of the row once, as it would with the
//! receive offload of a network interface.

use wirestorm_wire::packet::tcp::Flags;
use wirestorm_wire::packet::{ipv4, ipv6, protocol, tcp};

use crate::frame::{HEADERS_LENGTH_MAX, LinkHeader, Packet, dissect};
use crate::tcp::segment::Segment;

/// Words of four bytes in the headers of IP and TCP.
const WORDS: usize = (HEADERS_LENGTH_MAX - LinkHeader::LENGTH_MAX) / 4;

/// Which bits of a word have to be the same in all segments.
type Mask = [u32; WORDS];

/// Headers without lengths, identification, checksums, sequence number and PSH.
const fn mask(of_ip: usize, free_of_ip: &[usize]) -> Mask {
    let mut mask = [u32::MAX; WORDS];
    let mut place = 0;
    while place < free_of_ip.len() {
        // Upper and lower half, as bytes are in the network.
        let half = u32::from_ne_bytes(if free_of_ip[place].is_multiple_of(4) {
            [0, 0, 0xff, 0xff]
        } else {
            [0xff, 0xff, 0, 0]
        });
        mask[free_of_ip[place] / 4] &= half;
        place += 1;
    }
    let tcp = of_ip / 4;
    mask[tcp + tcp::field::SEQUENCE.start / 4] = 0;
    mask[tcp + 3] = u32::from_ne_bytes([0xff, !Flags::PSH.0, 0xff, 0xff]);
    mask[tcp + 4] = u32::from_ne_bytes([0, 0, 0xff, 0xff]);
    mask
}

/// Length, identification and checksum are in bytes 2, 4 and 10 (RFC 791 section 3.1).
const MASK_IPV4: Mask = mask(ipv4::HEADER_LENGTH_MIN, &[2, 4, 10]);
/// The length is in byte 4 (RFC 8200 section 3).
const MASK_IPV6: Mask = mask(ipv6::HEADER_LENGTH, &[4]);

/// Whether the checksums of a frame are right.
#[inline(never)]
fn is_undamaged(frame: &[u8]) -> bool {
    dissect(frame, true).is_ok()
}

/// A row of segments of one flow, as one of them.
#[derive(Clone, Debug)]
pub(super) struct Train {
    /// The flow.
    pub(super) place: u32,
    pub(super) segment: Segment<'static>,
    link: LinkHeader,
    /// Of IP and TCP.
    headers: [u32; WORDS],
    headers_length: usize,
    /// Where TCP begins in them.
    tcp: usize,
}

impl Train {
    /// A row that begins with a segment of a flow, where others may follow: it has data, and
    /// nothing to say beside it.
    #[inline]
    pub(super) fn begin(
        frame: &[u8],
        place: u32,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
    ) -> Option<Self> {
        let flags = Flags(segment.flags.0 & !Flags::PSH.0);
        let is_plain = flags == Flags::ACK
            && segment.length > 0
            && segment.sack.is_empty()
            && !segment.met_congestion;
        if !is_plain {
            return None;
        }
        let network = frame.get(packet.link.len()..)?;
        let tcp = match network.first()? {
            0x45 => ipv4::HEADER_LENGTH_MIN,
            first if first >> 4 == 6 && network.get(6) == Some(&protocol::TCP) => {
                ipv6::HEADER_LENGTH
            }
            _ => return None,
        };
        let headers_length = tcp + packet.transport.len() - segment.length as usize;
        let mut headers = [0; WORDS];
        let (words, _) = network.get(..headers_length)?.as_chunks::<4>();
        for (place, word) in headers.iter_mut().zip(words) {
            *place = u32::from_ne_bytes(*word);
        }
        Some(Self {
            place,
            segment: Segment { sack: &[], ..*segment },
            link: LinkHeader::new(packet.link)?,
            headers,
            headers_length,
            tcp,
        })
    }

    /// Takes a frame that holds the next segment of the row; returns whether it does.
    #[inline]
    pub(super) fn takes(&mut self, frame: &[u8], verifies: bool) -> bool {
        let Some((link, network)) = frame.split_at_checked(self.link.as_slice().len()) else {
            return false;
        };
        let Some((headers, behind)) = network.split_at_checked(self.headers_length) else {
            return false;
        };
        let is_ipv4 = self.tcp == ipv4::HEADER_LENGTH_MIN;
        let mask = if is_ipv4 { &MASK_IPV4 } else { &MASK_IPV6 };
        let (words, _) = headers.as_chunks::<4>();
        let differs = words.iter().zip(&self.headers).zip(mask);
        let differs = differs.fold(0, |differs, ((word, known), mask)| {
            differs | (u32::from_ne_bytes(*word) ^ known) & mask
        });
        let half =
            |place: usize| usize::from(u16::from_be_bytes([headers[place], headers[place + 1]]));
        let length = if is_ipv4 { half(2) } else { half(4) + ipv6::HEADER_LENGTH };
        let length = length.wrapping_sub(self.headers_length);
        let sequence = &headers[self.tcp..][tcp::field::SEQUENCE];
        let is_next = differs == 0
            && length.wrapping_sub(1) < behind.len()
            && sequence == self.segment.end().0.to_be_bytes()
            && link == self.link.as_slice()
            && (!verifies || is_undamaged(frame));
        if is_next {
            self.segment.length += length as u32;
            self.segment.segments += 1;
        }
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Headers, IpSettings, write_segment};
    use crate::tcp::segment::{Options, Outgoing, Timestamps};
    use crate::tcp::sequence::SequenceNumber;
    use alloc::vec;
    use alloc::vec::Vec;
    use wirestorm_wire::checksum;
    use wirestorm_wire::flow::FlowKey;

    const FIRST: SequenceNumber = SequenceNumber(u32::MAX - 100);

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
        let headers = Headers { link: &link, key: &key, ip: &IpSettings::default() };
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
        let (segment, _) = Segment::parse(packet.transport, packet.met_congestion).unwrap();
        Train::begin(frame, 3, &packet, &segment)
    }

    #[test]
    fn segments_in_a_row_are_one() {
        for version in [4, 6] {
            let mut train = begin(&frame(version, &outgoing(FIRST, 1_000))).unwrap();
            assert!(train.takes(&frame(version, &outgoing(FIRST + 1_000, 1_000)), true));
            // The last one is shorter, pushed, and padded.
            let flags = Flags::ACK | Flags::PSH;
            let mut last = frame(version, &Outgoing { flags, ..outgoing(FIRST + 2_000, 7) });
            last.extend([0; 9]);
            assert!(train.takes(&last, true));
            assert_eq!((train.segment.length, train.segment.segments), (2_007, 3));
            assert_eq!(train.segment.end(), FIRST + 2_007);
        }
    }

    #[test]
    fn what_differs_is_no_part_of_it() {
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
                assert!(!train.takes(&frame(version, other), false), "{other:?}");
            }
            let good = frame(version, &next());
            for cut in [0, 13, 40, 60, good.len() - 1] {
                assert!(!train.takes(&good[..cut], false), "cut to {cut}");
            }
            let mut of_another = good.clone();
            of_another[26] ^= 1;
            assert!(!train.takes(&of_another, false));
            let mut elsewhere = good.clone();
            elsewhere[0] ^= 4;
            assert!(!train.takes(&elsewhere, false));
            let mut damaged = good.clone();
            *damaged.last_mut().unwrap() ^= 1;
            assert!(!train.takes(&damaged, true));
            assert_eq!(train.segment.segments, 1);
            assert!(train.takes(&good, true));
        }
    }

    #[test]
    fn a_segment_that_says_more_than_data_begins_none() {
        let flags = Flags::ACK | Flags::FIN;
        for other in [
            outgoing(FIRST, 0),
            Outgoing { flags, ..outgoing(FIRST, 9) },
            Outgoing { flags: Flags::ACK | Flags::CWR, ..outgoing(FIRST, 9) },
        ] {
            assert!(begin(&frame(4, &other)).is_none(), "{other:?}");
        }
    }
}
