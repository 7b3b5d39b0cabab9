//! Decoder of pcap, draft-ietf-opsawg-pcap.

use wirestorm_base::time::{Instant, NANOSECONDS_PER_SECOND};

use super::record::{RecordHeader, Step};
use super::{ByteOrder, CaptureError, Interface, LinkType, RECORD_LENGTH_MAX};

/// Length of the file header in bytes.
pub(super) const FILE_HEADER_LENGTH: usize = 24;
/// Length of a record header in bytes.
pub(super) const RECORD_HEADER_LENGTH: usize = 16;
/// Length of a record header of [`Records::Modified`]. Interface, protocol and packet type follow
/// the standard fields.
const MODIFIED_HEADER_LENGTH: usize = 24;
/// Version that all tools have written since 1998.
pub(super) const VERSION: (u16, u16) = (2, 4);

/// Unit of the fraction of a second in a pcap file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// Microseconds, which every tool reads.
    Microseconds,
    /// Nanoseconds.
    #[default]
    Nanoseconds,
}

impl Resolution {
    /// Returns the nanoseconds in one unit.
    pub(super) const fn nanoseconds(self) -> u32 {
        match self {
            Self::Microseconds => 1_000,
            Self::Nanoseconds => 1,
        }
    }
}

/// Layout of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Records {
    /// Layout since version 2.4.
    Standard,
    /// The original length precedes the captured length: versions before 2.3, and 543.0 of DG/UX.
    LengthsExchanged,
    /// Version 2.3, where both orders exist (libpcap, sf-pcap.c). The smaller value is the captured
    /// length.
    EitherOrder,
    /// Kuznetzov's variant with longer headers.
    Modified,
}

/// Offsets in the file header, behind the magic number.
pub(super) mod field {
    pub(crate) const VERSION_MAJOR: usize = 4;
    pub(crate) const VERSION_MINOR: usize = 6;
    pub(crate) const SNAP_LENGTH: usize = 16;
    /// Link type in the low 16 bits, FCS length in the high bits.
    pub(crate) const LINK: usize = 20;
}

/// Bit of the link field: the highest four bits are the FCS length in 16-bit words.
const FCS_LENGTH_PRESENT: u32 = 1 << 26;

/// A pcap file behind its file header.
#[derive(Clone, Debug)]
pub(super) struct Pcap {
    pub(super) order: ByteOrder,
    pub(super) resolution: Resolution,
    pub(super) interface: Interface,
    nanoseconds_per_unit: u32,
    records: Records,
}

impl Pcap {
    pub(super) fn new(
        header: &[u8; FILE_HEADER_LENGTH],
        order: ByteOrder,
        resolution: Resolution,
        records: Records,
    ) -> Result<Self, CaptureError> {
        let half = |offset| order.u16_at(header, offset).unwrap_or_default();
        let word = |offset| order.u32_at(header, offset).unwrap_or_default();
        let (major, minor) = (half(field::VERSION_MAJOR), half(field::VERSION_MINOR));
        let records = match (major, minor) {
            VERSION => records,
            (2, 3) if records == Records::Standard => Records::EitherOrder,
            (2, 0..=2) | (543, 0) if records == Records::Standard => Records::LengthsExchanged,
            _ => {
                let (format, offset, expected) = ("pcap", 0, "2.0 to 2.4");
                return Err(CaptureError::UnsupportedVersion {
                    format,
                    offset,
                    major,
                    minor,
                    expected,
                });
            }
        };
        let link = word(field::LINK);
        let fcs_length =
            if link & FCS_LENGTH_PRESENT == 0 { 0 } else { ((link >> 28) as u8).saturating_mul(2) };
        let interface =
            Interface::new(LinkType(link & 0xffff), word(field::SNAP_LENGTH), fcs_length);
        let nanoseconds_per_unit = resolution.nanoseconds();
        Ok(Self { order, resolution, interface, nanoseconds_per_unit, records })
    }

    /// Returns the record at the start of `input` and its end. `None` unless it has the usual
    /// layout, is valid and complete.
    #[inline]
    pub(super) fn record(&self, input: &[u8]) -> Option<(RecordHeader, usize)> {
        let header = self.header(input)?;
        let end = RECORD_HEADER_LENGTH + header.captured_length as usize;
        let sane = header.captured_length <= header.original_length.min(RECORD_LENGTH_MAX);
        let usual = matches!(self.records, Records::Standard | Records::EitherOrder);
        (usual && sane && end <= input.len()).then_some((header, end))
    }

    #[inline]
    fn header(&self, input: &[u8]) -> Option<RecordHeader> {
        let header: &[u8; RECORD_HEADER_LENGTH] = input.first_chunk()?;
        let word = |at: usize| {
            let word = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            match self.order {
                ByteOrder::Little => u32::from_le_bytes(word),
                ByteOrder::Big => u32::from_be_bytes(word),
            }
        };
        // Cannot overflow: at most 2^32 s and 2^32 us, less than 2^63 ns.
        let nanoseconds = u64::from(word(0)) * NANOSECONDS_PER_SECOND
            + u64::from(word(4)) * u64::from(self.nanoseconds_per_unit);
        Some(RecordHeader {
            timestamp: Instant::from_nanos(nanoseconds),
            captured_length: word(8),
            original_length: word(12),
            link_type: self.interface.link_type,
            interface: 0,
        })
    }

    /// Returns the header with corrected lengths, and the length of the header.
    fn header_slowly(&self, input: &[u8]) -> (Option<RecordHeader>, usize) {
        let length = match self.records {
            Records::Modified => MODIFIED_HEADER_LENGTH,
            _ => RECORD_HEADER_LENGTH,
        };
        let Some(mut header) = input.get(..length).and_then(|input| self.header(input)) else {
            return (None, length);
        };
        let (captured, original) = (&mut header.captured_length, &mut header.original_length);
        match self.records {
            Records::LengthsExchanged => core::mem::swap(captured, original),
            Records::EitherOrder if captured > original => core::mem::swap(captured, original),
            _ => {}
        }
        // Some writers give an original length below the captured length. Like other readers, use
        // the captured length then.
        *original = (*captured).max(*original);
        (Some(header), length)
    }

    /// Handles input for which [`Self::record`] returns `None`: unusual records, errors and the
    /// end.
    #[cold]
    pub(super) fn step_slow_path(
        &self,
        input: &[u8],
        end_of_input: bool,
        offset: u64,
        records: u64,
    ) -> Result<Step, CaptureError> {
        let packet = records + 1;
        let needed = match self.header_slowly(input) {
            (None, _) if input.is_empty() && end_of_input => return Ok(Step::End),
            (None, header_length) => header_length,
            (Some(record), header_length) => {
                let length = record.captured_length;
                if length > RECORD_LENGTH_MAX {
                    return Err(CaptureError::RecordTooLong { packet, offset, length });
                }
                let end = header_length + length as usize;
                if end <= input.len() {
                    return Ok(Step::Record { record, data: header_length..end, consumed: end });
                }
                end
            }
        };
        if !end_of_input {
            return Ok(Step::NeedMore { at_least: needed });
        }
        let (found, expected) = (input.len() as u64, needed as u64);
        Err(CaptureError::TruncatedRecord { packet, offset, found, expected })
    }
}
