//! TCP segments: received ones, and ones to be sent.

use wirestorm_wire::checksum;
use wirestorm_wire::packet::PacketError;
use wirestorm_wire::packet::tcp::{self, Flags};

use super::ranges::SequenceRange;
use super::sequence::SequenceNumber;

/// Maximum number of SACK blocks in a segment: "the 40 bytes available for TCP options can specify
/// a maximum of 4 blocks" (RFC 2018 section 3).
pub const SACK_BLOCKS_MAX: usize = 4;

/// Option kinds (IANA).
mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NO_OPERATION: u8 = 1;
    pub(super) const MAXIMUM_SEGMENT_SIZE: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
    pub(super) const FAST_OPEN: u8 = 34;
}

/// The timestamps option, which "carries two four-byte timestamp fields" (RFC 7323 section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the latest TSval that the sender received. "The TSecr field is valid if the ACK bit
    /// is set".
    pub echo: u32,
}

/// Returns the blocks of a SACK option, eight bytes each, most recent first. RFC 2018 section 3: "A
/// SACK option that specifies n blocks will have a length of 8*n+2 bytes".
pub(super) fn sack_blocks(option: &[u8]) -> impl Iterator<Item = SequenceRange> + Clone {
    option.as_chunks::<8>().0.iter().map(|&[a, b, c, d, e, f, g, h]| {
        let number = |bytes| SequenceNumber(u32::from_be_bytes(bytes));
        SequenceRange { start: number([a, b, c, d]), end: number([e, f, g, h]) }
    })
}

/// Supported TCP options, except SACK blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size that the sender accepts, in bytes of data. RFC 9293 section 3.7.1: "If
    /// an MSS Option is not received at connection setup, TCP implementations MUST assume a default
    /// send MSS of 536 (576 - 40) for IPv4 or 1220 (1280 - 60) for IPv6".
    pub maximum_segment_size: Option<u16>,
    /// Shift of the sender's windows in bits, at most [`WINDOW_SCALE_MAX`].
    pub window_scale: Option<u8>,
    /// Whether the sender supports SACK. The option "may be sent in a SYN by a TCP that has been
    /// extended to receive (and presumably process) the SACK option" (RFC 2018 section 2).
    pub sack_permitted: bool,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// Length of the TCP Fast Open cookie in bytes; 0 requests a cookie. The cookie itself is
    /// separate. RFC 7413 section 4.1.1: "Cookie          0, or 4 to 16 bytes (Length - 2)".
    pub cookie_length: Option<u8>,
}

/// Maximum length of a TCP Fast Open cookie in bytes.
pub(crate) const COOKIE_LENGTH_MAX: usize = 16;

/// Maximum window shift: "The maximum scale exponent is limited to 14" (RFC 7323 section 2.2). A
/// larger received shift counts as 14 (section 2.3).
pub const WINDOW_SCALE_MAX: u8 = 14;

impl Options {
    /// Parses the bytes after a TCP header. Returns the options, the bytes of the SACK blocks, and
    /// the Fast Open cookie.
    ///
    /// RFC 9293 section 3.1: "ignore without error any TCP Option it does not implement", and "be
    /// prepared to handle an illegal option length (e.g., zero)". Parsing stops at an illegal
    /// length.
    #[inline]
    pub fn parse(bytes: &[u8]) -> (Self, &[u8], &[u8]) {
        // Fast path for nearly all segments. RFC 7323 appendix A: "The following layout is
        // recommended for sending options on non-<SYN> segments".
        if let [1, 1, kind::TIMESTAMPS, 10, timestamps @ ..] = bytes
            && let Ok(timestamps) = <[u8; 8]>::try_from(timestamps)
        {
            let timestamps = Some(Timestamps::parse(timestamps));
            return (Self { timestamps, ..Self::default() }, &[], &[]);
        }
        Self::parse_any(bytes)
    }

    fn parse_any(mut bytes: &[u8]) -> (Self, &[u8], &[u8]) {
        let (mut options, mut sack, mut cookie): (_, &[u8], &[u8]) = (Self::default(), &[], &[]);
        while let [kind, behind @ ..] = bytes {
            match *kind {
                kind::END => break,
                kind::NO_OPERATION => bytes = behind,
                kind => {
                    let Some((length, _)) = behind.split_first() else { break };
                    let Some((option, behind)) = bytes.split_at_checked(usize::from(*length))
                    else {
                        break;
                    };
                    // The length includes the kind and length bytes.
                    let [_, _, value @ ..] = option else { break };
                    match kind {
                        kind::SACK => sack = value,
                        kind::FAST_OPEN if is_cookie(value) => {
                            options.cookie_length = Some(value.len() as u8);
                            cookie = value;
                        }
                        kind => options.note(kind, value),
                    }
                    bytes = behind;
                }
            }
        }
        (options, sack, cookie)
    }

    fn note(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (kind::MAXIMUM_SEGMENT_SIZE, &[high, low]) => {
                self.maximum_segment_size = Some(u16::from_be_bytes([high, low]));
            }
            (kind::WINDOW_SCALE, &[shift]) => {
                self.window_scale = Some(shift.min(WINDOW_SCALE_MAX));
            }
            (kind::SACK_PERMITTED, []) => self.sack_permitted = true,
            (kind::TIMESTAMPS, value) => {
                self.timestamps = <[u8; 8]>::try_from(value).ok().map(Timestamps::parse);
            }
            _ => {}
        }
    }

    /// Length of the options in bytes, a multiple of four.
    #[inline]
    pub fn length(&self) -> usize {
        4 * usize::from(self.maximum_segment_size.is_some())
            + 4 * usize::from(self.window_scale.is_some())
            + 4 * usize::from(self.sack_permitted && self.timestamps.is_none())
            + 12 * usize::from(self.timestamps.is_some())
            + self.cookie_length.map_or(0, cookie_option_length)
    }

    /// Writes the options to the first [`Self::length`] of `bytes`, in the order and with the
    /// padding of RFC 7323 appendix A and RFC 2018 section 3.
    ///
    /// # Panics
    /// If `bytes` or `cookie` is too short.
    #[inline]
    pub fn write(&self, cookie: &[u8], bytes: &mut [u8]) {
        let mut rest = bytes;
        if let Some(size) = self.maximum_segment_size {
            let [high, low] = size.to_be_bytes();
            put(&mut rest, [kind::MAXIMUM_SEGMENT_SIZE, 4, high, low]);
        }
        if let Some(timestamps) = self.timestamps {
            // SACK-permitted replaces the padding.
            let padding = if self.sack_permitted {
                [kind::SACK_PERMITTED, 2]
            } else {
                [kind::NO_OPERATION; 2]
            };
            put(&mut rest, [padding[0], padding[1], kind::TIMESTAMPS, 10]);
            put(&mut rest, timestamps.value.to_be_bytes());
            put(&mut rest, timestamps.echo.to_be_bytes());
        } else if self.sack_permitted {
            let padding = kind::NO_OPERATION;
            put(&mut rest, [padding, padding, kind::SACK_PERMITTED, 2]);
        }
        if let Some(shift) = self.window_scale {
            put(&mut rest, [kind::NO_OPERATION, kind::WINDOW_SCALE, 3, shift]);
        }
        if let Some(length) = self.cookie_length {
            let option = &mut rest[..cookie_option_length(length)];
            option.fill(kind::NO_OPERATION);
            option[..2].copy_from_slice(&[kind::FAST_OPEN, 2 + length]);
            option[2..][..usize::from(length)].copy_from_slice(&cookie[..usize::from(length)]);
        }
    }
}

/// Whether a Fast Open option has a valid length. RFC 7413 section 4.1.1: "Options with invalid
/// Length values or without the SYN flag set MUST be ignored."
fn is_cookie(value: &[u8]) -> bool {
    value.is_empty()
        || (4..=COOKIE_LENGTH_MAX).contains(&value.len()) && value.len().is_multiple_of(2)
}

/// Length of a Fast Open option with a cookie of `cookie` bytes, including padding.
const fn cookie_option_length(cookie: u8) -> usize {
    (2 + cookie as usize).next_multiple_of(4)
}

/// Length of a SACK option with `blocks` blocks, including padding.
pub(super) const fn sack_length(blocks: usize) -> usize {
    if blocks == 0 { 0 } else { 4 + 8 * blocks }
}

fn write_sack(blocks: &[SequenceRange], bytes: &mut [u8]) {
    let mut rest = bytes;
    let padding = kind::NO_OPERATION;
    put(&mut rest, [padding, padding, kind::SACK, 2 + 8 * blocks.len() as u8]);
    for block in blocks {
        put(&mut rest, block.start.0.to_be_bytes());
        put(&mut rest, block.end.0.to_be_bytes());
    }
}

/// Writes four bytes to the front of `rest` and advances it.
fn put(rest: &mut &mut [u8], word: [u8; 4]) {
    let (place, behind) = core::mem::take(rest).split_at_mut(4);
    place.copy_from_slice(&word);
    *rest = behind;
}

impl Timestamps {
    fn parse([a, b, c, d, e, f, g, h]: [u8; 8]) -> Self {
        Self { value: u32::from_be_bytes([a, b, c, d]), echo: u32::from_be_bytes([e, f, g, h]) }
    }
}

/// ECN codepoint of a packet, in the lower bits of its traffic class: "two bits, making four ECN
/// codepoints, '00' to '11'" (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ecn(u8);

impl Ecn {
    /// Not-ECT: the sender does not support ECN.
    pub const NOT_ECT: Self = Self(0b00);
    /// ECT(1): the sender supports ECN.
    pub const ECT_1: Self = Self(0b01);
    /// ECT(0): the sender supports ECN; the usual codepoint.
    pub const ECT_0: Self = Self(0b10);
    /// CE: a router on the path signals congestion.
    pub const CE: Self = Self(0b11);

    /// Returns the codepoint in a traffic class or type of service.
    #[inline]
    pub const fn of(traffic_class: u8) -> Self {
        Self(traffic_class & 0b11)
    }
}

/// A received segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Sequence number of the first byte, or of SYN.
    pub sequence: SequenceNumber,
    /// Next sequence number that the sender expects; valid if [`Flags::ACK`] is set.
    pub acknowledgement: SequenceNumber,
    /// Control bits.
    pub flags: Flags,
    /// Window field, not scaled.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// Content of the SACK option, eight bytes for each block.
    pub sack: &'a [u8],
    /// Fast Open cookie of a SYN; valid if [`Options::cookie_length`] is set.
    pub cookie: &'a [u8],
    /// Length of the data in bytes.
    pub length: u32,
    /// ECN codepoint of the packet.
    pub ecn: Ecn,
    /// Number of consecutive segments that the kernel merged into this one, at least 1. They differ
    /// only in sequence numbers and data.
    pub segments: u16,
}

impl<'a> Segment<'a> {
    /// Parses a segment. Returns it with the offset of its data.
    ///
    /// # Errors
    /// If the header is truncated or its data offset is too small.
    #[inline(always)]
    pub fn parse(bytes: &'a [u8], ecn: Ecn) -> Result<(Self, usize), PacketError> {
        let packet = tcp::Packet::new(bytes)?;
        let header = packet.header_length();
        // `tcp::Packet::new` has checked that the header is complete.
        let options = bytes.get(tcp::HEADER_LENGTH_MIN..header).unwrap_or_default();
        let (options, sack, cookie) = Options::parse(options);
        let segment = Self {
            sequence: SequenceNumber(packet.sequence()),
            acknowledgement: SequenceNumber(packet.acknowledgement()),
            flags: packet.flags(),
            window: packet.window(),
            options,
            sack,
            cookie,
            length: (bytes.len() - header) as u32,
            ecn,
            segments: 1,
        };
        Ok((segment, header))
    }

    /// Length in sequence space. RFC 9293 section 3.4: "SEG.LEN = the number of octets occupied by
    /// the data in the segment (counting SYN and FIN)".
    #[inline]
    pub fn span(&self) -> u32 {
        let is_set = |flag| u32::from(self.flags.contains(flag));
        self.length + is_set(Flags::SYN) + is_set(Flags::FIN)
    }

    /// Number of merged segments if it carries data, else 0.
    #[inline]
    pub(super) fn with_data(&self) -> u64 {
        if self.length > 0 { self.segments.into() } else { 0 }
    }

    /// Sequence number of the first byte of data.
    #[inline]
    pub fn data_start(&self) -> SequenceNumber {
        self.sequence + u32::from(self.flags.contains(Flags::SYN))
    }

    /// Sequence number after the last byte or FIN.
    #[inline]
    pub fn end(&self) -> SequenceNumber {
        self.sequence + self.span()
    }
}

/// A segment to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Sequence number of the first byte, or of SYN.
    pub sequence: SequenceNumber,
    /// Next sequence number that the sender expects.
    pub acknowledgement: SequenceNumber,
    /// Control bits.
    pub flags: Flags,
    /// Window field, scaled.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// Number of blocks in the SACK option; the connection holds the blocks.
    pub sack_blocks: u8,
    /// Length of the data in bytes, starting at `sequence`.
    pub length: u32,
    /// Number of segments that follow this one. Each has the same length, starts where the previous
    /// one ends, and differs only in numbers and data.
    pub more: u16,
    /// Length of the data of one more, shorter segment after these; 0 if there is none.
    pub tail: u32,
    /// Flags of the last of these segments, in addition to `flags`.
    pub last_flags: Flags,
    /// Whether the packet carries an ECT codepoint, "to indicate that the end-points of the
    /// transport protocol are ECN-capable" (RFC 3168 section 5). Only new data does.
    pub is_ecn_capable: bool,
}

impl Outgoing {
    /// Sequence number of the first byte of data.
    #[inline]
    pub fn data_start(&self) -> SequenceNumber {
        self.sequence + u32::from(self.flags.contains(Flags::SYN))
    }

    /// Length of the header with options in bytes.
    #[inline]
    pub fn header_length(&self) -> usize {
        tcp::HEADER_LENGTH_MIN + self.options.length() + sack_length(usize::from(self.sack_blocks))
    }

    /// Number of segments: this one and those that follow.
    #[inline]
    pub(crate) fn segments(&self) -> u32 {
        1 + u32::from(self.more) + u32::from(self.tail > 0)
    }

    /// Splits the segment into `segments` segments of equal length and a tail of `tail` bytes. The
    /// length without the tail must be a multiple of `segments`.
    pub(super) fn split(&mut self, segments: u32, tail: u32) {
        let of_last = Flags(self.flags.0 & (Flags::FIN | Flags::PSH).0);
        self.flags = Flags(self.flags.0 & !of_last.0);
        self.last_flags = of_last;
        self.tail = tail;
        self.length = (self.length - tail) / segments;
        self.more = (segments - 1) as u16;
    }

    /// Writes the header with a zero checksum to the first [`Self::header_length`] of `bytes`. It
    /// uses as many blocks of `sack` and bytes of `cookie` as the segment has. Returns the checksum
    /// sum of the header.
    ///
    /// # Panics
    /// If `bytes`, `sack` or `cookie` is too short.
    #[inline]
    pub fn write_header(
        &self,
        source_port: u16,
        destination_port: u16,
        sack: &[SequenceRange],
        cookie: &[u8],
        bytes: &mut [u8],
    ) -> u16 {
        let length = self.header_length();
        let bytes = &mut bytes[..length];
        let offset = (length / 4) as u32;
        // Sum the values instead of the bytes: a wide load right after narrow stores stalls.
        let words = [
            u32::from(source_port) << 16 | u32::from(destination_port),
            self.sequence.0,
            self.acknowledgement.0,
            offset << 28 | u32::from(self.flags.0) << 16 | u32::from(self.window),
            // Checksum and urgent pointer.
            0,
        ];
        let mut sum = put_words(bytes, &words);
        let options = &mut bytes[tcp::HEADER_LENGTH_MIN..];
        if let Some(Timestamps { value, echo }) = self.options.timestamps
            && options.len() == TIMESTAMPS_LENGTH
        {
            sum += put_words(options, &[PADDED_TIMESTAMPS, value, echo]);
        } else if !options.is_empty() {
            sum += u64::from(self.write_options(sack, cookie, options));
        }
        checksum::fold(sum)
    }

    #[cold]
    fn write_options(&self, sack: &[SequenceRange], cookie: &[u8], bytes: &mut [u8]) -> u16 {
        let (options, sack_option) = bytes.split_at_mut(self.options.length());
        self.options.write(cookie, options);
        if self.sack_blocks > 0 {
            write_sack(&sack[..usize::from(self.sack_blocks)], sack_option);
        }
        checksum::sum(bytes)
    }
}

/// Length and first word of a padded timestamps option: "NOP | NOP | TSopt | 10" in RFC 7323
/// appendix A.
const TIMESTAMPS_LENGTH: usize = 12;
const PADDED_TIMESTAMPS: u32 = 0x0101_080a;

/// Writes words in network byte order and returns their unfolded sum.
#[inline]
fn put_words<const N: usize>(bytes: &mut [u8], words: &[u32; N]) -> u64 {
    let (places, _) = bytes.as_chunks_mut::<4>();
    for (place, word) in places.iter_mut().zip(words) {
        *place = word.to_be_bytes();
    }
    words.iter().map(|word| u64::from(*word)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn number(value: u32) -> SequenceNumber {
        SequenceNumber(value)
    }

    const COOKIE: [u8; COOKIE_LENGTH_MAX] = [9; COOKIE_LENGTH_MAX];

    fn written(options: &Options) -> alloc::vec::Vec<u8> {
        let mut bytes = vec![0xee; options.length()];
        options.write(&COOKIE, &mut bytes);
        bytes
    }

    #[test]
    fn options_survive_a_round_trip() {
        let timestamps = Some(Timestamps { value: 0x0102_0304, echo: 0xfffe_fdfc });
        for options in [
            Options::default(),
            Options { timestamps, ..Options::default() },
            Options {
                maximum_segment_size: Some(1460),
                window_scale: Some(7),
                sack_permitted: true,
                timestamps,
                cookie_length: None,
            },
            Options { sack_permitted: true, window_scale: Some(0), ..Options::default() },
            Options { cookie_length: Some(0), timestamps, ..Options::default() },
            Options { cookie_length: Some(4), ..Options::default() },
            Options { cookie_length: Some(16), timestamps, ..Options::default() },
        ] {
            let bytes = written(&options);
            assert_eq!(bytes.len() % 4, 0);
            let cookie = &COOKIE[..options.cookie_length.unwrap_or(0).into()];
            assert_eq!(Options::parse(&bytes), (options, &[][..], cookie));
        }
    }

    #[test]
    fn syn_options_have_the_layout_of_linux() {
        let options = Options {
            maximum_segment_size: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1, echo: 0 }),
            cookie_length: None,
        };
        assert_eq!(
            written(&options),
            [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7]
        );
    }

    #[test]
    fn invalid_options_are_ignored() {
        // A length of 0 or 1 would loop forever; one beyond the header is truncated.
        for bytes in [&[8, 0][..], &[8, 1, 1, 1], &[8], &[2, 4, 5], &[2, 200, 1, 1]] {
            assert_eq!(Options::parse(bytes).0, Options::default(), "{bytes:?}");
        }
        let unknown = [254, 4, 1, 2, 3, 3, 99, 0];
        assert_eq!(Options::parse(&unknown).0.window_scale, Some(WINDOW_SCALE_MAX));
        // A cookie has 4 to 16 bytes, and an even number.
        for length in [2, 5, 18] {
            let bytes = [&[34, 2 + length][..], &vec![1; length.into()]].concat();
            assert_eq!(Options::parse(&bytes).0, Options::default(), "{length}");
        }
        let end = [0, 3, 3, 7];
        assert_eq!(Options::parse(&end).0, Options::default());
    }

    #[test]
    fn header_survives_a_round_trip() {
        let range = |start, end| SequenceRange { start: number(start), end: number(end) };
        let blocks = [range(10, 20), range(u32::MAX, 5), range(7, 8)];
        let timestamps = Some(Timestamps { value: 3, echo: 4 });
        for (sack_blocks, header) in [(0, 32), (1, 44), (3, 60)] {
            let outgoing = Outgoing {
                sequence: number(7),
                acknowledgement: number(9),
                flags: Flags::ACK | Flags::PSH,
                window: 512,
                options: Options { timestamps, ..Options::default() },
                sack_blocks,
                length: 5,
                more: 0,
                tail: 0,
                last_flags: Flags(0),
                is_ecn_capable: false,
            };
            let mut bytes = vec![0; outgoing.header_length() + 5];
            let sum = outgoing.write_header(1024, 80, &blocks, &[], &mut bytes);
            assert_eq!(sum, checksum::sum(&bytes[..header]));
            let (segment, data) = Segment::parse(&bytes, Ecn::NOT_ECT).unwrap();
            assert_eq!((data, segment.length, segment.end()), (header, 5, number(12)));
            assert_eq!(segment.options, outgoing.options);
            assert!(
                sack_blocks_of(&segment).eq(blocks[..usize::from(sack_blocks)].iter().copied())
            );
            assert_eq!((segment.flags, segment.window), (outgoing.flags, 512));
            assert_eq!((segment.sequence, segment.acknowledgement), (number(7), number(9)));
        }
    }

    fn sack_blocks_of(segment: &Segment<'_>) -> impl Iterator<Item = SequenceRange> {
        sack_blocks(segment.sack)
    }
}
