//! Decoding of pcap, draft-ietf-opsawg-pcap.

use wirestorm_base::time::{Instant, NANOSECONDS_PER_SECOND};

use super::record::{RecordHeader, Step};
use super::{ByteOrder, CaptureError, Interface, LinkType, RECORD_LENGTH_MAX};

/// Bytes before the first record.
pub(super) const FILE_HEADER_LENGTH: usize = 24;
/// Bytes before the data of each record.
pub(super) const RECORD_HEADER_LENGTH: usize = 16;
/// The version that everyone has written since 1998.
pub(super) const VERSION: (u16, u16) = (2, 4);

/// The unit of the fraction of a second in a pcap file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// Millionths, which every tool reads.
    Microseconds,
    /// Thousand-millionths.
    #[default]
    Nanoseconds,
}

impl Resolution {
    /// Nanoseconds in one unit.
    pub(super) const fn nanoseconds(self) -> u32 {
        match self {
            Self::Microseconds => 1_000,
            Self::Nanoseconds => 1,
        }
    }
}

/// Offsets in the file header; the magic number is before them.
pub(super) mod field {
    pub(crate) const VERSION_MAJOR: usize = 4;
    pub(crate) const VERSION_MINOR: usize = 6;
    pub(crate) const SNAP_LENGTH: usize = 16;
    /// The link type in the low 16 bits, the FCS length in the high ones.
    pub(crate) const LINK: usize = 20;
}

/// In the link field: whether the highest four bits are the FCS length in 16-bit words.
const FCS_LENGTH_PRESENT: u32 = 1 << 26;

/// A pcap file behind its header.
#[derive(Clone, Debug)]
pub(super) struct Pcap {
    pub(super) order: ByteOrder,
    pub(super) resolution: Resolution,
    pub(super) interface: Interface,
    nanoseconds_per_unit: u32,
}

impl Pcap {
    pub(super) fn new(
        header: &[u8; FILE_HEADER_LENGTH],
        order: ByteOrder,
        resolution: Resolution,
    ) -> Result<Self, CaptureError> {
        let half = |offset| order.u16_at(header, offset).unwrap_or_default();
        let word = |offset| order.u32_at(header, offset).unwrap_or_default();
        let (major, minor) = (half(field::VERSION_MAJOR), half(field::VERSION_MINOR));
        if (major, minor) != VERSION {
            let expected = "2.4";
            let format = "pcap";
            return Err(CaptureError::UnsupportedVersion {
                format,
                offset: 0,
                major,
                minor,
                expected,
            });
        }
        let link = word(field::LINK);
        let fcs_length =
            if link & FCS_LENGTH_PRESENT == 0 { 0 } else { ((link >> 28) as u8).saturating_mul(2) };
        let interface =
            Interface::new(LinkType(link & 0xffff), word(field::SNAP_LENGTH), fcs_length);
        Ok(Self { order, resolution, interface, nanoseconds_per_unit: resolution.nanoseconds() })
    }

    /// The record that `input` begins with and where it ends, if it is sane and all there.
    #[inline]
    pub(super) fn record(&self, input: &[u8]) -> Option<(RecordHeader, usize)> {
        let header = self.header(input)?;
        let end = RECORD_HEADER_LENGTH + header.captured_length as usize;
        let sane = header.captured_length <= header.original_length.min(RECORD_LENGTH_MAX);
        (sane && end <= input.len()).then_some((header, end))
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
        // The greatest sum is 2^32 s and 2^32 us, which is less than 2^63 ns.
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

    /// Says why [`Self::record`] found nothing.
    #[cold]
    pub(super) fn step_slowly(
        &self,
        input: &[u8],
        end_of_input: bool,
        offset: u64,
        records: u64,
    ) -> Result<Step, CaptureError> {
        let packet = records + 1;
        let needed = match self.header(input) {
            None if input.is_empty() && end_of_input => return Ok(Step::End),
            None => RECORD_HEADER_LENGTH,
            Some(record) => {
                let (captured, original) = (record.captured_length, record.original_length);
                if captured > RECORD_LENGTH_MAX {
                    return Err(CaptureError::RecordTooLong { packet, offset, length: captured });
                }
                if captured > original {
                    return Err(CaptureError::CapturedExceedsOriginal {
                        packet,
                        offset,
                        captured,
                        original,
                    });
                }
                RECORD_HEADER_LENGTH + captured as usize
            }
        };
        if !end_of_input {
            return Ok(Step::NeedMore { at_least: needed });
        }
        let (found, expected) = (input.len() as u64, needed as u64);
        Err(CaptureError::TruncatedRecord { packet, offset, found, expected })
    }
}
