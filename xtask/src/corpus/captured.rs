//! Comparison of the frames of two runs, or of two capture files.

use std::collections::BTreeMap;

use super::definition::Frames;

/// Highest number of bytes of a frame in a message.
const SHOWN_BYTES: usize = 96;

/// A capture: classic pcap in either byte order, with any link type.
#[derive(Debug)]
pub(super) struct Capture<'a> {
    link_type: u32,
    /// Seconds, fraction in the file's unit, original length, captured bytes.
    packets: Vec<(u32, u32, u32, &'a [u8])>,
}

/// Whether the bytes start like a pcap file.
pub(super) fn is_capture(bytes: &[u8]) -> bool {
    order(bytes).is_some()
}

fn order(bytes: &[u8]) -> Option<fn([u8; 4]) -> u32> {
    match bytes.get(..4)? {
        [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => Some(u32::from_le_bytes),
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => Some(u32::from_be_bytes),
        _ => None,
    }
}

impl<'a> Capture<'a> {
    /// Parses a file; `None` if it is not a pcap file or is truncated.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let order = order(bytes)?;
        let word = |at: usize| Some(order(bytes.get(at..at + 4)?.try_into().ok()?));
        let (link_type, mut at, mut packets) = (word(20)?, 24, Vec::new());
        while at < bytes.len() {
            let [seconds, fraction, length, original] =
                [word(at)?, word(at + 4)?, word(at + 8)?, word(at + 12)?];
            let frame = bytes.get(at + 16..at + 16 + length as usize)?;
            packets.push((seconds, fraction, original, frame));
            at += 16 + length as usize;
        }
        Some(Self { link_type, packets })
    }

    fn frames(&self, mask: &[String]) -> Vec<Vec<u8>> {
        self.packets.iter().map(|(.., frame)| masked(frame, mask)).collect()
    }
}

/// Number of frames in a capture.
pub(super) fn count(bytes: &[u8]) -> Option<u64> {
    Capture::read(bytes).map(|capture| capture.packets.len() as u64)
}

/// Replaces the masked ranges of a frame by zeros.
fn masked(frame: &[u8], mask: &[String]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let length = frame.len();
    for range in mask {
        let place = |text: &str, empty: usize| match text.parse::<isize>() {
            Ok(place) if place < 0 => length.saturating_sub(place.unsigned_abs()),
            Ok(place) => place.unsigned_abs().min(length),
            Err(_) => empty,
        };
        let (start, end) = range.split_once("..").unwrap_or((range, ""));
        let (start, end) = (place(start, 0), place(end, length));
        if let Some(bytes) = frame.get_mut(start..end) {
            bytes.fill(0);
        }
    }
    frame
}

/// Lists the differences between two captures; empty if all compared parts are equal.
pub(super) fn compare(
    before: &[u8],
    after: &[u8],
    frames: Frames,
    are_times_compared: bool,
    mask: &[String],
) -> Vec<String> {
    if before == after || frames == Frames::None {
        return Vec::new();
    }
    let (Some(old), Some(new)) = (Capture::read(before), Capture::read(after)) else {
        return vec!["the bytes differ, and a file is not a complete capture".into()];
    };
    let mut differences = Vec::new();
    if old.link_type != new.link_type {
        differences.push(format!("link type {}, now {}", old.link_type, new.link_type));
    }
    let (count, count_now) = (old.packets.len(), new.packets.len());
    let is_as_many = match frames {
        Frames::Dialogues => true,
        Frames::Prefix => (count == 0) == (count_now == 0),
        _ => count == count_now,
    };
    if !is_as_many {
        differences.push(format!("{count} frames, now {count_now}"));
    }
    let (mut a, mut b) = (old.frames(mask), new.frames(mask));
    match frames {
        Frames::None | Frames::Count => return differences,
        Frames::Dialogues => return compare_dialogues(&a, &b),
        Frames::Ordered | Frames::Prefix => (),
        Frames::Sorted => {
            a.sort();
            b.sort();
        }
    }
    let of = a.len();
    let differing: Vec<usize> = (0..of.min(b.len())).filter(|&it| a[it] != b[it]).collect();
    if let Some(&first) = differing.first() {
        differences.push(format!(
            "{} frames of {of} differ; the first is {}:\n      {}\n      {}",
            differing.len(),
            first + 1,
            shown(&a[first], &b[first]),
            shown(&b[first], &a[first])
        ));
    }
    if are_times_compared {
        let times = |it: &Capture<'_>| {
            it.packets
                .iter()
                .map(|&(seconds, fraction, ..)| (seconds, fraction))
                .collect::<Vec<_>>()
        };
        let (a, b) = (times(&old), times(&new));
        let pairs = || a.iter().zip(&b);
        if let Some(first) = pairs().position(|(a, b)| a != b) {
            let count = pairs().filter(|(a, b)| a != b).count();
            differences.push(format!(
                "{count} times of {} differ; the first is that of frame {}: {:?}, now {:?}",
                a.len(),
                first + 1,
                a[first],
                b[first]
            ));
        }
        let original_lengths =
            |it: &Capture<'_>| it.packets.iter().map(|it| it.2).collect::<Vec<_>>();
        if original_lengths(&old) != original_lengths(&new) {
            differences.push("original lengths differ".into());
        }
        if differences.is_empty() {
            differences.push("the header of the file differs".into());
        }
    }
    differences
}

/// Formats the part of a frame around its first difference to another one.
fn shown(frame: &[u8], other: &[u8]) -> String {
    let differs = frame.iter().zip(other).position(|(a, b)| a != b);
    let start = differs.unwrap_or(frame.len().min(other.len())).saturating_sub(SHOWN_BYTES / 4);
    let part = frame.get(start..).unwrap_or_default();
    let part = part.get(..SHOWN_BYTES).unwrap_or(part);
    let bytes: String = part.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} bytes, from {start}: {bytes}", frame.len())
}

/// One direction of a flow: protocol, then source and destination with their ports.
type Direction = (u8, Vec<u8>, u16, Vec<u8>, u16);

/// Data of one direction of a flow.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct FlowData {
    /// For TCP, all flags that occurred except PSH, which depends on timing.
    flags: u8,
    /// For TCP, the bytes in order; for UDP, the datagrams sorted by their bytes.
    payloads: Vec<Vec<u8>>,
}

fn compare_dialogues(before: &[Vec<u8>], after: &[Vec<u8>]) -> Vec<String> {
    let (before, after) = (dialogues(before), dialogues(after));
    let mut differences = Vec::new();
    if before.len() != after.len() {
        differences.push(format!("{} sides of flows, now {}", before.len(), after.len()));
    }
    let differing =
        |(direction, data): &(&Direction, &Vec<FlowData>)| after.get(*direction) != Some(*data);
    let count = before.iter().filter(differing).count();
    if let Some((direction, data)) = before.iter().find(differing) {
        let describe = |data: Option<&Vec<FlowData>>| match data {
            None => "absent".to_owned(),
            Some(all) => all
                .iter()
                .map(|it| {
                    let bytes: usize = it.payloads.iter().map(Vec::len).sum();
                    format!("{bytes} bytes in {}, flags {:#04x}", it.payloads.len(), it.flags)
                })
                .collect::<Vec<_>>()
                .join("; "),
        };
        differences.push(format!(
            "{count} sides of {} flows differ; the first is {direction:?}: {}, now {}",
            before.len(),
            describe(Some(data)),
            describe(after.get(direction))
        ));
    }
    differences
}

fn dialogues(frames: &[Vec<u8>]) -> BTreeMap<Direction, Vec<FlowData>> {
    const PSH: u8 = 8;
    const TCP: u8 = 6;
    /// Initial sequence number of a connection, its flags, and its segments by offset.
    type Connection = (u32, u8, BTreeMap<u32, Vec<u8>>);
    let mut connections = BTreeMap::<Direction, Vec<Connection>>::new();
    let mut dialogues = BTreeMap::<Direction, Vec<FlowData>>::new();
    for frame in frames {
        let Some((direction, transport)) = transport(frame) else { continue };
        if direction.0 != TCP {
            let data = dialogues.entry(direction).or_insert_with(|| vec![FlowData::default()]);
            if let (Some(data), Some(payload)) = (data.first_mut(), transport.get(8..)) {
                data.payloads.push(payload.to_vec());
            }
            continue;
        }
        let (Some(number), Some(&flags)) = (word(transport, 4), transport.get(13)) else {
            continue;
        };
        let header = usize::from(transport.get(12).map_or(0, |byte| byte >> 4)) * 4;
        let payload = transport.get(header..).unwrap_or_default();
        let list = connections.entry(direction).or_default();
        let is_syn = flags & 2 != 0;
        // Ports may be reused: a SYN with another sequence number starts another connection.
        if list.is_empty() || is_syn && list.last().is_some_and(|it| it.0 != number) {
            list.push((number, 0, BTreeMap::new()));
        }
        if let Some((first, all, segments)) = list.last_mut() {
            *all |= flags & !PSH;
            if !payload.is_empty() {
                let place = number.wrapping_sub(*first).wrapping_add(u32::from(is_syn));
                segments.insert(place, payload.to_vec());
            }
        }
    }
    for (direction, list) in connections {
        let data = list.into_iter().map(|(_, flags, segments)| {
            let mut bytes = Vec::new();
            for (place, segment) in segments {
                let start = place.saturating_sub(1) as usize;
                // Count retransmitted bytes once.
                let known = bytes.len().saturating_sub(start);
                bytes.extend(segment.get(known..).unwrap_or_default());
            }
            FlowData { flags, payloads: vec![bytes] }
        });
        dialogues.insert(direction, data.collect());
    }
    for data in dialogues.values_mut().flatten() {
        data.payloads.sort();
    }
    dialogues
}

/// Parses a TCP or UDP frame: its direction, and the transport header with the rest.
fn transport(frame: &[u8]) -> Option<(Direction, &[u8])> {
    let mut at = 12;
    let mut kind = half(frame, at)?;
    while matches!(kind, 0x8100 | 0x88a8) {
        at += 4;
        kind = half(frame, at)?;
    }
    let packet = frame.get(at + 2..)?;
    let (protocol, source, destination, transport) = match kind {
        0x0800 => {
            let header = usize::from(packet.first()? & 15) * 4;
            let length = usize::from(half(packet, 2)?);
            let transport = packet.get(header..length)?;
            (*packet.get(9)?, packet.get(12..16)?, packet.get(16..20)?, transport)
        }
        0x86dd => {
            let length = usize::from(half(packet, 4)?);
            let transport = packet.get(40..40 + length)?;
            (*packet.get(6)?, packet.get(8..24)?, packet.get(24..40)?, transport)
        }
        _ => return None,
    };
    let ports = (half(transport, 0)?, half(transport, 2)?);
    let is_known = matches!(protocol, 6 | 17);
    let direction = (protocol, source.to_vec(), ports.0, destination.to_vec(), ports.1);
    is_known.then_some((direction, transport))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use wirestorm_testkit::pcap::{Resolution, Writer};

    use super::*;

    fn capture(packets: &[(u64, &[u8])]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), Resolution::Nanoseconds).unwrap();
        packets.iter().for_each(|(time, frame)| writer.write(*time, frame).unwrap());
        writer.finish().unwrap()
    }

    /// A TCP segment from port 1 to port 2.
    fn segment(number: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((40 + payload.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2]);
        frame.extend(number.to_be_bytes());
        frame.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        frame.extend(payload);
        frame
    }

    fn differs(before: &[u8], after: &[u8], frames: Frames, times: bool, mask: &[&str]) -> bool {
        let mask: Vec<String> = mask.iter().map(|it| (*it).to_owned()).collect();
        !compare(before, after, frames, times, &mask).is_empty()
    }

    #[test]
    fn frames_modes_compare_as_documented() {
        let [one, two, three] = [[1_u8; 60], [2; 60], [3; 60]];
        let before = capture(&[(1, &one), (2, &two)]);
        let swapped = capture(&[(1, &two), (2, &one)]);
        assert!(!differs(&before, &before, Frames::Ordered, true, &[]));
        assert!(differs(&before, &swapped, Frames::Ordered, true, &[]));
        assert!(!differs(&before, &swapped, Frames::Sorted, false, &[]));
        let other = capture(&[(1, &one), (2, &three)]);
        assert!(differs(&before, &other, Frames::Sorted, false, &[]));
        assert!(!differs(&before, &other, Frames::Count, false, &[]));
        let later = capture(&[(1, &one), (3, &two)]);
        assert!(differs(&before, &later, Frames::Ordered, true, &[]));
        assert!(!differs(&before, &later, Frames::Ordered, false, &[]));
        let fewer = capture(&[(1, &one)]);
        assert!(!differs(&before, &fewer, Frames::Prefix, false, &[]));
        assert!(differs(&swapped, &fewer, Frames::Prefix, false, &[]));
        assert!(differs(&capture(&[]), &fewer, Frames::Prefix, false, &[]));
        assert!(differs(&before, &fewer, Frames::Count, false, &[]));
        assert!(differs(&before, &before[..before.len() - 1], Frames::Ordered, true, &[]));
    }

    #[test]
    fn masked_bytes_are_not_compared() {
        let (mut one, two) = ([1_u8; 60], [1_u8; 60]);
        one[10] = 9;
        one[59] = 9;
        let (before, after) = (capture(&[(1, &one)]), capture(&[(1, &two)]));
        assert!(!differs(&before, &after, Frames::Ordered, false, &["10..11", "-1.."]));
        assert!(differs(&before, &after, Frames::Ordered, false, &["10..11", "-2..-1"]));
    }

    #[test]
    fn dialogues_ignore_segment_boundaries() {
        let frames = |segments: &[Vec<u8>]| {
            let packets: Vec<_> = segments.iter().map(|it| (1, it.as_slice())).collect();
            capture(&packets)
        };
        let before = frames(&[segment(7, 2, b""), segment(8, 16, b"ab"), segment(10, 25, b"cd")]);
        let after = frames(&[segment(9, 2, b""), segment(10, 17, b"abcd"), segment(12, 16, b"cd")]);
        assert!(!differs(&before, &after, Frames::Dialogues, false, &[]));
        let other = frames(&[segment(9, 2, b""), segment(10, 17, b"abce")]);
        assert!(differs(&before, &other, Frames::Dialogues, false, &[]));
        let reset = frames(&[segment(9, 2, b""), segment(10, 20, b"abcd")]);
        assert!(differs(&before, &reset, Frames::Dialogues, false, &[]));
    }
}
