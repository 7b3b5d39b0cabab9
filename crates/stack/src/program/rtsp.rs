//! RTSP responses (RFC 2326), with interleaved media.

use alloc::vec::Vec;

use super::reading::{Reading, Taken};
use crate::http1;

/// Progress of a response.
#[derive(Clone, Debug, Default)]
pub(super) struct Rtsp {
    part: Part,
    head: Vec<u8>,
}

/// Expected element of the stream.
#[derive(Clone, Copy, Debug, Default)]
enum Part {
    /// Response or interleaved media.
    #[default]
    Start,
    /// Header of interleaved media: bytes left, and the length so far.
    Prefix {
        left: u8,
        length: u16,
    },
    /// Bytes of media left.
    Media(u16),
    Head,
    /// Bytes of the body left.
    Body(u64),
}

impl Rtsp {
    /// Consumes the bytes that belong to the response. Returns their number and the progress.
    pub(super) fn read(&mut self, bytes: &[u8], taken: &mut Taken) -> (usize, Reading) {
        let mut done = 0;
        while let Some((&first, _)) = bytes[done..].split_first() {
            let rest = &bytes[done..];
            let up_to = |left: u64| rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match self.part {
                // Section 10.12: "an ASCII dollar sign (24 hexadecimal), followed by a one-byte
                // channel identifier, followed by the length of the encapsulated binary data as a
                // binary, two-byte integer in network byte order."
                Part::Start if first == b'$' => {
                    self.part = Part::Prefix { left: 3, length: 0 };
                    done += 1;
                }
                Part::Start if matches!(first, b'\r' | b'\n') => done += 1,
                Part::Start => self.part = Part::Head,
                Part::Prefix { left, length } => {
                    // The length follows the channel.
                    let length = if left < 3 { length << 8 | u16::from(first) } else { 0 };
                    self.part = match left {
                        1 => Part::Media(length),
                        _ => Part::Prefix { left: left - 1, length },
                    };
                    done += 1;
                }
                Part::Media(0) => self.part = Part::Start,
                Part::Media(left) => {
                    let length = up_to(left.into());
                    self.part = Part::Media(left - length as u16);
                    done += length;
                }
                Part::Head => {
                    let end = rest.iter().position(|byte| *byte == b'\n');
                    let length = end.map_or(rest.len(), |end| end + 1);
                    self.head.extend_from_slice(&rest[..length]);
                    done += length;
                    match self.end_line(taken) {
                        Reading::Unfinished => {}
                        reading => return (done, reading),
                    }
                }
                Part::Body(left) => {
                    let length = up_to(left);
                    taken.add(&rest[..length]);
                    done += length;
                    self.part = Part::Body(left - length as u64);
                    if left == length as u64 {
                        return (done, Reading::Done);
                    }
                }
            }
        }
        (done, Reading::Unfinished)
    }

    /// Processes the header received so far.
    fn end_line(&mut self, taken: &mut Taken) -> Reading {
        const BEGIN: &[u8] = b"RTSP/1.";
        let is_line = self.head.ends_with(b"\n");
        let is_other = is_line && !self.head.starts_with(BEGIN);
        if is_other || self.head.len() > http1::LINE_MAX {
            taken.add(&self.head);
            return Reading::Wrong;
        }
        if !self.head.ends_with(b"\n\r\n") && !self.head.ends_with(b"\n\n") {
            return Reading::Unfinished;
        }
        let head = core::mem::take(&mut self.head);
        taken.add(&head);
        // The status code follows the version and a space.
        let is_interim = head.get(BEGIN.len() + 2) == Some(&b'1');
        let fields = http1::lines(&head).skip(1).filter_map(http1::field);
        let mut lengths = fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"content-length"));
        // RFC 2326 section 12.14: without one "a length of zero is assumed".
        let length = match lengths.next() {
            None => Some(0),
            Some((_, value)) => http1::number(value, 10),
        };
        match length {
            None => Reading::Wrong,
            Some(_) if is_interim => {
                taken.clear();
                self.part = Part::Start;
                Reading::Unfinished
            }
            Some(0) => Reading::Done,
            Some(length) => {
                self.part = Part::Body(length);
                Reading::Unfinished
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_ends_at_its_length_and_media_are_skipped() {
        let media = b"$\x00\x00\x05RTSP/$\x01\x00\x00";
        let response = b"RTSP/1.0 200 OK\r\nCSeq: 1\r\ncontent-length: 4\r\n\r\nv=0\n";
        let bare = b"RTSP/1.0 454 Session Not Found\nCSeq: 2\n\n";
        let interim = b"RTSP/1.0 100 Continue\r\n\r\n";
        for (input, expected) in [
            ([&media[..], response, b"$next"].concat(), (Reading::Done, &response[..], 5)),
            ([&interim[..], media, bare].concat(), (Reading::Done, bare, 0)),
            (response[..20].to_vec(), (Reading::Unfinished, b"", 0)),
            (b"HTTP/1.1 200 OK\r\n".to_vec(), (Reading::Wrong, b"HTTP/1.1 200 OK\r\n", 0)),
            (
                b"RTSP/1.0 200 OK\nContent-Length: x\n\n".to_vec(),
                (Reading::Wrong, b"RTSP/1.0 200 OK\nContent-Length: x\n\n", 0),
            ),
        ] {
            for step in 1..=input.len() {
                let (mut response, mut taken) = (Rtsp::default(), Taken::default());
                let (mut place, mut reading) = (0, Reading::Unfinished);
                while place < input.len() && reading == Reading::Unfinished {
                    let part = &input[place..input.len().min(place + step)];
                    let (length, now) = response.read(part, &mut taken);
                    place += length;
                    reading = now;
                }
                let (reading_expected, text, left) = expected;
                assert_eq!(reading, reading_expected, "{input:?} by {step}");
                assert_eq!((&taken.bytes[..], input.len() - place), (text, left), "by {step}");
            }
        }
    }
}
