//! Decoder of ERF, the Extensible Record Format of Endace's capture cards (Endace, "ERF types
//! reference guide", EDM11-01). A file contains only records, no file header.

use wirestorm_base::time::{Instant, NANOSECONDS_PER_SECOND};

use super::record::{RecordHeader, Step};
use super::{CaptureError, Interface, LinkType};

/// Length of the record header in bytes.
const HEADER_LENGTH: usize = 16;
/// Length of each extension header in bytes; its highest bit means that another one follows.
const EXTENSION_LENGTH: usize = 8;
const MORE: u8 = 0x80;
/// Offset and padding byte between the headers and an Ethernet frame.
const ETHERNET_PADDING: usize = 2;
/// Bytes of frame check sequence in the wire length: for Ethernet, and for HDLC in the cards'
/// default setup (libpcap's `ERF_FCS_BITS` is 32 too).
const FCS_LENGTH: u32 = 4;

/// Offsets in the header. The timestamp is little-endian, the lengths are big-endian.
mod field {
    /// Fraction of a second in units of 2^-32 s.
    pub(super) const FRACTION: usize = 0;
    pub(super) const SECONDS: usize = 4;
    pub(super) const KIND: usize = 8;
    /// Length of the whole record.
    pub(super) const RECORD_LENGTH: usize = 10;
    pub(super) const WIRE_LENGTH: usize = 14;
}

/// Record types.
mod kind {
    pub(super) const HDLC: [u8; 4] = [1, 10, 15, 17];
    pub(super) const ETHERNET: [u8; 4] = [2, 11, 16, 20];
    pub(super) const IPV4: u8 = 22;
    pub(super) const IPV6: u8 = 23;
    /// Metadata about the capture.
    pub(super) const META: u8 = 27;
    /// Padding between records.
    pub(super) const PAD: u8 = 48;
}

/// An ERF file at a record boundary.
#[derive(Clone, Debug)]
pub(super) struct Erf {
    pub(super) interface: Interface,
}

impl Erf {
    pub(super) const fn new() -> Self {
        Self { interface: Interface::new(LinkType::EN10MB, 0, 0) }
    }

    pub(super) fn step(
        &self,
        input: &[u8],
        end_of_input: bool,
        offset: u64,
        records: u64,
    ) -> Result<Step, CaptureError> {
        let packet = records + 1;
        if input.is_empty() && end_of_input {
            return Ok(Step::End);
        }
        let missing = |expected: usize| match end_of_input {
            false => Ok(Step::NeedMore { at_least: expected }),
            true => {
                let (found, expected) = (input.len() as u64, expected as u64);
                Err(CaptureError::TruncatedRecord { packet, offset, found, expected })
            }
        };
        let Some(header) = input.first_chunk::<HEADER_LENGTH>() else {
            return missing(HEADER_LENGTH);
        };
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let length = usize::from(half(field::RECORD_LENGTH));
        let too_short = |minimum: usize| CaptureError::RecordTooShort {
            packet,
            offset,
            length: length as u32,
            minimum: minimum as u32,
        };
        if length < HEADER_LENGTH {
            return Err(too_short(HEADER_LENGTH));
        }
        let Some(record) = input.get(..length) else { return missing(length) };
        let kind = header[field::KIND] & !MORE;
        if matches!(kind, kind::META | kind::PAD) {
            return Ok(Step::Skipped { consumed: length });
        }
        let mut start = HEADER_LENGTH;
        let mut more = header[field::KIND] & MORE;
        while more != 0 {
            let extension = record.get(start).ok_or_else(|| too_short(start + EXTENSION_LENGTH))?;
            more = extension & MORE;
            start += EXTENSION_LENGTH;
        }
        if kind::ETHERNET.contains(&kind) {
            start += ETHERNET_PADDING;
        }
        let data = record.get(start..).ok_or_else(|| too_short(start))?;
        let (link_type, fcs_length) = match kind {
            _ if kind::ETHERNET.contains(&kind) => (LinkType::EN10MB, FCS_LENGTH),
            // Cisco HDLC begins with 0x0f or 0x8f; everything else is PPP.
            _ if kind::HDLC.contains(&kind) => match data.first() {
                Some(0x0f | 0x8f) => (LinkType::C_HDLC, FCS_LENGTH),
                _ => (LinkType::PPP, FCS_LENGTH),
            },
            kind::IPV4 | kind::IPV6 => (LinkType::RAW, 0),
            _ => (LinkType::ERF, 0),
        };
        let original_length = u32::from(half(field::WIRE_LENGTH)).saturating_sub(fcs_length);
        // Records are padded to a multiple of 8 bytes.
        let captured_length = original_length.min(data.len() as u32);
        let fraction = (u64::from(word(field::FRACTION)) * NANOSECONDS_PER_SECOND) >> 32;
        let timestamp = u64::from(word(field::SECONDS)) * NANOSECONDS_PER_SECOND + fraction;
        Ok(Step::Record {
            record: RecordHeader {
                timestamp: Instant::from_nanos(timestamp),
                captured_length,
                original_length,
                link_type,
                interface: 0,
            },
            data: start..start + captured_length as usize,
            consumed: length,
        })
    }
}

/// Returns whether a file is ERF. ERF has no magic number, so the first header must be plausible: a
/// time from 2000 to 2100, a sendable record type, and lengths of a frame.
pub(super) fn is_erf(start: &[u8]) -> bool {
    const LENGTH_MAX: u16 = 9_300;
    let Some(header) = start.first_chunk::<HEADER_LENGTH>() else { return false };
    let seconds = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
    let kind = header[field::KIND] & !MORE;
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    (946_684_800..4_102_444_800).contains(&seconds)
        && (kind::ETHERNET.contains(&kind)
            || kind::HDLC.contains(&kind)
            || matches!(kind, kind::IPV4 | kind::IPV6))
        && (HEADER_LENGTH as u16..=LENGTH_MAX).contains(&half(field::RECORD_LENGTH))
        && (1..=LENGTH_MAX).contains(&half(field::WIRE_LENGTH))
}
