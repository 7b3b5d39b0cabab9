//! Transmission of bursts of segments.

use alloc::vec::Vec;

use wirestorm_base::port::{FrameId, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_wire::checksum;
use wirestorm_wire::packet::tcp::{self, Flags};
use wirestorm_wire::packet::{ethernet, vlan};

use super::super::frames::room;
use crate::frame::{HEADERS_LENGTH_MAX, Headers, LinkHeader, write_long_segment, write_segment};
use crate::tcp::connection::Connection;
use crate::tcp::ranges::SequenceRange;
use crate::tcp::segment::Outgoing;
use crate::tcp::sequence::SequenceNumber;

/// Maximum number of segments that a connection sends at a time.
pub(super) const BURST_MAX: u32 = 64;

/// Writes a segment and those that follow it to some of `frames`, of which there are enough, and
/// sends them. `fill` writes data from a sequence number on and returns its one's complement sum.
/// Returns the number of segments that are too long for a frame.
#[inline]
pub(super) fn send_burst(
    headers: &Headers<'_>,
    outgoing: &Outgoing,
    sack: &[SequenceRange],
    frames: &mut Vec<FrameId>,
    transmit: &mut impl Transmit,
    fill: impl Fn(SequenceNumber, &mut [u8]) -> u16,
) -> u64 {
    let Some(frame) = frames.pop() else { return 0 };
    let bytes = room(transmit, &frame);
    let mut sum = 0;
    let fill_first = |data: &mut [u8]| {
        if !data.is_empty() {
            sum = fill(outgoing.data_start(), data);
        }
        sum
    };
    let Some(length) = write_segment(bytes, headers, outgoing, sack, fill_first) else {
        frames.push(frame);
        return 1 + u64::from(outgoing.more);
    };
    if outgoing.more == 0 {
        transmit.send(frame, length, Instant::ZERO);
        return 0;
    }
    let pattern = SegmentPattern::new(&bytes[..length], outgoing, sum);
    transmit.send(frame, length, Instant::ZERO);
    let mut sequence = outgoing.sequence;
    let mut left = usize::from(outgoing.more);
    for frame in frames.drain(frames.len().saturating_sub(left)..) {
        left -= 1;
        sequence += outgoing.length;
        let flags = if left == 0 { outgoing.last_flags } else { Flags(0) };
        pattern.write(room(transmit, &frame), sequence, flags, &fill);
        transmit.send(frame, length, Instant::ZERO);
    }
    0
}

/// Longest link header with which every interface segments frames: Ethernet with one tag.
const LINK_LENGTH_MAX: usize = ethernet::HEADER_LENGTH + vlan::TAG_LENGTH;

/// Returns how many full segments fit a long frame that the port segments; 1 if it does not.
#[inline]
pub(super) fn segments_in_one(
    connection: &Connection,
    link: &LinkHeader,
    transmit: &impl Transmit,
) -> u32 {
    let Some(longest) = transmit.segmented_length_max() else { return 1 };
    if link.as_slice().len() > LINK_LENGTH_MAX {
        return 1;
    }
    let room = longest.saturating_sub(HEADERS_LENGTH_MAX) as u32;
    (room / connection.segment_size_max()).clamp(1, BURST_MAX)
}

/// Like [`send_burst`], for a port that segments: sends one long frame, the last of `frames`.
/// Returns the number of segments that are too long for it.
pub(super) fn send_long(
    headers: &Headers<'_>,
    outgoing: &Outgoing,
    sack: &[SequenceRange],
    frames: &mut Vec<FrameId>,
    transmit: &mut impl Transmit,
    fill: impl Fn(SequenceNumber, &mut [u8]) -> u16,
) -> u64 {
    let Some(frame) = frames.pop() else { return 0 };
    let whole = Outgoing {
        length: outgoing.length * (u32::from(outgoing.more) + 1) + outgoing.tail,
        flags: outgoing.flags | outgoing.last_flags,
        more: 0,
        tail: 0,
        ..*outgoing
    };
    let bytes = transmit.frame_mut(&frame);
    let fill = |data: &mut [u8]| fill(whole.sequence, data);
    let written = write_long_segment(bytes, headers, &whole, sack, outgoing.length, fill);
    let Some((length, segments)) = written else {
        frames.push(frame);
        return outgoing.segments().into();
    };
    transmit.send_segments(frame, length, &segments, Instant::ZERO);
    0
}

/// Bytes of headers that one fixed-size copy covers. Headers are rarely longer.
const COPIED: usize = 96;

/// Common part of the segments of a burst.
struct SegmentPattern {
    headers: [u8; HEADERS_LENGTH_MAX],
    headers_length: usize,
    /// Offset of the TCP header.
    tcp: usize,
    /// Bytes of data in a segment.
    length: usize,
    flags: Flags,
    /// Unfolded sum of everything except the sequence number, the data and the additional flags of
    /// the last segment.
    sum: u64,
}

impl SegmentPattern {
    /// Takes the common part from `frame`, which contains a segment. `sum_of_data` is the sum of
    /// the segment's data.
    fn new(frame: &[u8], outgoing: &Outgoing, sum_of_data: u16) -> Self {
        let length = outgoing.length as usize;
        let (written, _) = frame.split_at(frame.len() - length);
        let mut headers = [0; HEADERS_LENGTH_MAX];
        headers[..written.len()].copy_from_slice(written);
        let start = written.len() - outgoing.header_length();
        let checksum = &written[start..][tcp::field::CHECKSUM];
        let checksum = u16::from_be_bytes([checksum[0], checksum[1]]);
        // Adding the complement of a sum subtracts it.
        let sum = u64::from(!checksum) + u64::from(!sum_of_data) + u64::from(!outgoing.sequence.0);
        Self {
            headers,
            headers_length: written.len(),
            tcp: start,
            length,
            flags: outgoing.flags,
            sum,
        }
    }

    /// Writes the segment with a sequence number to a frame of at least the same length.
    #[inline]
    fn write(
        &self,
        frame: &mut [u8],
        sequence: SequenceNumber,
        flags: Flags,
        fill: &impl Fn(SequenceNumber, &mut [u8]) -> u16,
    ) {
        // A copy of constant length is a few instructions; the surplus is overwritten.
        match (frame.first_chunk_mut(), self.headers.first_chunk::<COPIED>()) {
            (Some(to), Some(from)) if self.headers_length <= COPIED => *to = *from,
            _ => frame[..self.headers_length].copy_from_slice(&self.headers[..self.headers_length]),
        }
        let (headers, data) = frame.split_at_mut(self.headers_length);
        let of_data = fill(sequence, &mut data[..self.length]);
        let sum = self.sum + u64::from(sequence.0) + u64::from(flags.0) + u64::from(of_data);
        let header = &mut headers[self.tcp..];
        header[tcp::field::SEQUENCE].copy_from_slice(&sequence.0.to_be_bytes());
        // Write the byte instead of updating it: reading what was just copied would stall.
        header[tcp::field::FLAGS][0] = (self.flags | flags).0;
        header[tcp::field::CHECKSUM].copy_from_slice(&(!checksum::fold(sum)).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::frames::fill_up;
    use super::*;
    use crate::tcp::counters::TcpCounters;
    use crate::tcp::now::Now;
    use crate::tcp::segment::{Ecn, Options, Segment, Timestamps};
    use alloc::vec;
    use wirestorm_base::port::{Capabilities, PortError, Receive, Segmentation, TransmitCounters};
    use wirestorm_model::ip::IpSettings;
    use wirestorm_model::tcp::Settings;
    use wirestorm_sim::memory::{WireOptions, wire};
    use wirestorm_wire::flow::FlowKey;
    use wirestorm_wire::packet::protocol;

    fn fill(from: SequenceNumber, data: &mut [u8]) -> u16 {
        for (place, byte) in data.iter_mut().enumerate() {
            *byte = ((from.0 as usize + place) * 31) as u8;
        }
        checksum::sum(data)
    }

    /// Returns an Ethernet header for IPv4. Tests with IPv6 use it as well; the type does not
    /// matter.
    fn link() -> LinkHeader {
        LinkHeader::new(&[[2; 12].as_slice(), &[8, 0]].concat()).unwrap()
    }

    fn keys() -> [FlowKey; 2] {
        let ipv4 = FlowKey::ipv4([10, 0, 0, 1], [10, 0, 0, 2], protocol::TCP);
        let ipv6 = FlowKey::ipv6([0xfd; 16], [0xfe; 16], protocol::TCP);
        [ipv4, ipv6].map(|key| key.with_ports(80, 1_024))
    }

    const TIMESTAMPS: Option<Timestamps> = Some(Timestamps { value: 7, echo: 8 });
    /// Shortly before the sequence numbers wrap.
    const FIRST: SequenceNumber = SequenceNumber(u32::MAX - 2_000);

    fn segment(sequence: SequenceNumber, flags: Flags, length: u32) -> Outgoing {
        Outgoing {
            sequence,
            acknowledgement: SequenceNumber(99),
            flags,
            window: 512,
            options: Options { timestamps: TIMESTAMPS, ..Options::default() },
            sack_blocks: 0,
            length,
            more: 0,
            tail: 0,
            last_flags: Flags(0),
            is_ecn_capable: true,
        }
    }

    /// Returns the frame of a segment that is sent on its own.
    fn frame_of(headers: &Headers<'_>, segment: &Outgoing) -> Vec<u8> {
        let mut frame = vec![0; 1_600];
        let of_data = |data: &mut [u8]| fill(segment.sequence, data);
        let length = write_segment(&mut frame, headers, segment, &[], of_data).unwrap();
        frame.truncate(length);
        frame
    }

    #[test]
    fn a_burst_equals_segments_sent_one_by_one() {
        let (link, keys) = (link(), keys());
        for (key, timestamps) in [(&keys[0], TIMESTAMPS), (&keys[1], TIMESTAMPS), (&keys[0], None)]
        {
            let headers = Headers {
                link: &link,
                key,
                ip: &IpSettings::default(),
                identification: 0,
                cookie: &[],
            };
            // Odd lengths.
            let single = |sequence, flags| Outgoing {
                options: Options { timestamps, ..Options::default() },
                ..segment(sequence, flags, 1_447)
            };
            let end = Flags::PSH | Flags::FIN;
            let burst = Outgoing { more: 2, last_flags: end, ..single(FIRST, Flags::ACK) };
            let (mut transmit, mut receive) =
                wire(WireOptions { frames: 8, frame_length_max: 1_600 });
            let mut frames = Vec::new();
            fill_up(&mut frames, 5, &mut transmit);
            let left = send_burst(&headers, &burst, &[], &mut frames, &mut transmit, fill);
            assert_eq!((left, frames.len()), (0, 2));
            transmit.flush().unwrap();
            let mut batch = Vec::new();
            receive.receive(8, &mut batch).unwrap();
            assert_eq!(batch.len(), 3);
            for (number, received) in (0..).zip(&batch) {
                let flags = if number == 2 { Flags::ACK | end } else { Flags::ACK };
                let expected = frame_of(&headers, &single(FIRST + number * 1_447, flags));
                assert_eq!(receive.frame(received), expected, "segment {number}");
            }
        }
    }

    /// Segments a frame as an interface does (`tcp_gso_segment` of Linux).
    fn cut(frame: &[u8], by: Segmentation) -> Vec<Vec<u8>> {
        let (headers, data) = frame.split_at(by.headers.into());
        let (below, header) = headers.split_at(by.transport.into());
        let ip = 14;
        let sequence = u32::from_be_bytes(*header[tcp::field::SEQUENCE].first_chunk().unwrap());
        let pieces = data.chunks(by.data.into()).enumerate();
        let segment = |(number, piece): (usize, &[u8])| {
            let mut cut = [below, header, piece].concat();
            let is_last = (number + 1) * usize::from(by.data) >= data.len();
            let length = header.len() + piece.len();
            let (whole, part) = ((header.len() + data.len()) as u16, length as u16);
            let tcp = usize::from(by.transport);
            let place = if by.is_ipv6 { ip + 4 } else { ip + 2 };
            let total = if by.is_ipv6 { part } else { part + 20 };
            cut[place..place + 2].copy_from_slice(&total.to_be_bytes());
            if !by.is_ipv6 {
                cut[ip + 10..ip + 12].fill(0);
                let sum = checksum::checksum(&cut[ip..ip + 20]);
                cut[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
            }
            let number = sequence.wrapping_add(number as u32 * u32::from(by.data));
            cut[tcp..][tcp::field::SEQUENCE].copy_from_slice(&number.to_be_bytes());
            if !is_last {
                cut[tcp..][tcp::field::FLAGS][0] &= !(Flags::PSH | Flags::FIN).0;
            }
            // The sum of the pseudo header, with the length of this segment instead of the total.
            let pseudo_header =
                u16::from_be_bytes(*header[tcp::field::CHECKSUM].first_chunk().unwrap());
            let sums = [pseudo_header, !whole, part].map(u64::from);
            cut[tcp..][tcp::field::CHECKSUM].fill(0);
            let sum = sums.into_iter().sum::<u64>() + u64::from(checksum::sum(&cut[tcp..]));
            cut[tcp..][tcp::field::CHECKSUM].copy_from_slice(&(!checksum::fold(sum)).to_be_bytes());
            cut
        };
        pieces.map(segment).collect()
    }

    /// Port that records the long frames it gets.
    struct Cutting<T>(T, Vec<(Vec<u8>, Segmentation)>);

    impl<T: Transmit> Transmit for Cutting<T> {
        fn capabilities(&self) -> &Capabilities {
            self.0.capabilities()
        }

        fn segmented_length_max(&self) -> Option<usize> {
            Some(20_000)
        }

        fn send_segments(
            &mut self,
            frame: FrameId,
            length: usize,
            segments: &Segmentation,
            _departure: Instant,
        ) {
            let bytes = self.0.frame_mut(&frame)[..length].to_vec();
            self.1.push((bytes, *segments));
            self.0.release(frame);
        }

        fn take(&mut self) -> Option<FrameId> {
            self.0.take()
        }

        fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
            self.0.frame_mut(frame)
        }

        fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
            self.0.send(frame, length, departure);
        }

        fn release(&mut self, frame: FrameId) {
            self.0.release(frame);
        }

        fn flush(&mut self) -> Result<(), PortError> {
            self.0.flush()
        }

        fn in_flight(&self) -> usize {
            self.0.in_flight()
        }

        fn transmitted(&self) -> TransmitCounters {
            self.0.transmitted()
        }

        fn abort(&mut self) {
            self.0.abort();
        }
    }

    #[test]
    fn a_segmented_long_frame_equals_segments_sent_one_by_one() {
        let link = link();
        for key in keys() {
            let headers = Headers {
                link: &link,
                key: &key,
                ip: &IpSettings::default(),
                identification: 0,
                cookie: &[],
            };
            let end = Flags::PSH | Flags::FIN;
            let first = segment(FIRST, Flags::ACK, 1_447);
            let long = Outgoing { more: 2, tail: 101, last_flags: end, ..first };
            let (transmit, _receive) = wire(WireOptions { frames: 8, frame_length_max: 20_000 });
            let mut transmit = Cutting(transmit, Vec::new());
            let mut frames = Vec::new();
            fill_up(&mut frames, 1, &mut transmit);
            assert_eq!(send_long(&headers, &long, &[], &mut frames, &mut transmit, fill), 0);
            assert_eq!((frames.len(), transmit.1.len()), (0, 1));
            let (frame, segments) = transmit.1.pop().unwrap();
            let cut = cut(&frame, segments);
            assert_eq!(cut.len(), 4);
            for (number, cut) in (0..).zip(&cut) {
                let (flags, length) = if number == 3 { (end, 101) } else { (Flags(0), 1_447) };
                let expected = segment(FIRST + number * 1_447, Flags::ACK | flags, length);
                assert_eq!(cut, &frame_of(&headers, &expected), "segment {number}");
            }
        }
    }

    #[test]
    fn each_segment_of_a_long_frame_has_the_sack_blocks() {
        let (link, [key, _]) = (link(), keys());
        let headers = Headers {
            link: &link,
            key: &key,
            ip: &IpSettings::default(),
            identification: 0,
            cookie: &[],
        };
        let sack = [SequenceRange { start: SequenceNumber(100), end: SequenceNumber(200) }; 3];
        let first = Outgoing { sack_blocks: 3, ..segment(FIRST, Flags::ACK, 1_400) };
        let long = Outgoing { more: 1, tail: 7, ..first };
        let (transmit, _receive) = wire(WireOptions { frames: 8, frame_length_max: 20_000 });
        let mut transmit = Cutting(transmit, Vec::new());
        let mut frames = Vec::new();
        fill_up(&mut frames, 1, &mut transmit);
        assert_eq!(send_long(&headers, &long, &sack, &mut frames, &mut transmit, fill), 0);
        let (frame, segments) = transmit.1.pop().unwrap();
        for (cut, data) in cut(&frame, segments).iter().zip([1_400, 1_400, 7]) {
            let (segment, _) = Segment::parse(&cut[34..], Ecn::NOT_ECT).unwrap();
            assert_eq!((segment.length, segment.sack.len()), (data, 24));
            assert_eq!(segment.sack[..8], [0, 0, 0, 100, 0, 0, 0, 200]);
        }
    }

    #[test]
    fn frames_with_more_than_one_tag_are_not_segmented_by_the_port() {
        let mut counters = TcpCounters::default();
        let settings = Settings::default();
        let now = Now::from_micros(0);
        let connection = Connection::connect(&settings, FIRST, now, &mut counters);
        let (transmit, _receive) = wire(WireOptions { frames: 8, frame_length_max: 1_600 });
        let cutting = Cutting(transmit, Vec::new());
        let in_one =
            |link: &[u8]| segments_in_one(&connection, &LinkHeader::new(link).unwrap(), &cutting);
        assert_eq!((in_one(&[0; 14]), in_one(&[0; 18]), in_one(&[0; 22])), (13, 13, 1));
        let link = LinkHeader::new(&[0; 14]).unwrap();
        assert_eq!(segments_in_one(&connection, &link, &cutting.0), 1);
    }

    #[test]
    fn all_segments_that_do_not_fit_are_counted() {
        let (link, [key, _]) = (link(), keys());
        let headers = Headers {
            link: &link,
            key: &key,
            ip: &IpSettings::default(),
            identification: 0,
            cookie: &[],
        };
        let first = segment(FIRST, Flags::ACK, 1_600);
        let burst = Outgoing { more: 2, last_flags: Flags::PSH, ..first };
        let (mut transmit, _receive) = wire(WireOptions { frames: 8, frame_length_max: 1_600 });
        let mut frames = Vec::new();
        fill_up(&mut frames, 3, &mut transmit);
        assert_eq!(send_burst(&headers, &burst, &[], &mut frames, &mut transmit, fill), 3);
        assert_eq!((frames.len(), transmit.in_flight()), (3, 0));
        let mut cutting = Cutting(transmit, Vec::new());
        let long = Outgoing { tail: 100, ..burst };
        assert_eq!(send_long(&headers, &long, &[], &mut frames, &mut cutting, fill), 4);
        assert_eq!((frames.len(), cutting.1.len()), (3, 0));
    }
}
