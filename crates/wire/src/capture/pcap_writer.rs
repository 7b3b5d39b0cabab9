//! Encoding of pcap, draft-ietf-opsawg-pcap.

use alloc::vec::Vec;

use wirestorm_base::time::{Instant, NANOSECONDS_PER_SECOND};

use super::magic::{PCAP_MICROSECONDS, PCAP_NANOSECONDS};
use super::pcap::{FILE_HEADER_LENGTH, RECORD_HEADER_LENGTH, Resolution, VERSION, field};
use super::{ByteOrder, EncodeError, LinkType, RECORD_LENGTH_MAX};

/// Encodes a pcap file piece by piece. It holds only how the file is written, not the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcapWriter {
    /// What the frames begin with.
    pub link_type: LinkType,
    /// The unit of the time stamps; finer times are rounded down.
    pub resolution: Resolution,
    /// The order of bytes in numbers.
    pub order: ByteOrder,
    /// The most bytes kept of a packet; longer ones are cut. Zero for no limit.
    pub snap_length: u32,
}

impl PcapWriter {
    /// Nanoseconds, little-endian, [`RECORD_LENGTH_MAX`] as snap length.
    pub const fn new(link_type: LinkType) -> Self {
        Self {
            link_type,
            resolution: Resolution::Nanoseconds,
            order: ByteOrder::Little,
            snap_length: RECORD_LENGTH_MAX,
        }
    }

    /// The 24 bytes that the file begins with.
    pub fn header(&self) -> [u8; FILE_HEADER_LENGTH] {
        let magic = match self.resolution {
            Resolution::Microseconds => PCAP_MICROSECONDS,
            Resolution::Nanoseconds => PCAP_NANOSECONDS,
        };
        let mut header = [0; FILE_HEADER_LENGTH];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.order.u32_bytes(magic));
        put(field::VERSION_MAJOR, &self.order.u16_bytes(VERSION.0));
        put(field::VERSION_MINOR, &self.order.u16_bytes(VERSION.1));
        put(field::SNAP_LENGTH, &self.order.u32_bytes(self.snap_length));
        put(field::LINK, &self.order.u32_bytes(self.link_type.0));
        header
    }

    /// The 16 bytes before a record's data.
    ///
    /// # Errors
    /// Where the time is after the year 2106, or the lengths are not those of a packet.
    #[inline]
    pub fn record_header(
        &self,
        timestamp: Instant,
        captured_length: u32,
        original_length: u32,
    ) -> Result<[u8; RECORD_HEADER_LENGTH], EncodeError> {
        if captured_length > RECORD_LENGTH_MAX {
            return Err(EncodeError::RecordTooLong { length: captured_length as usize });
        }
        if captured_length > original_length {
            return Err(EncodeError::CapturedExceedsOriginal {
                captured: captured_length as usize,
                original: original_length,
            });
        }
        let seconds = timestamp.as_nanos() / NANOSECONDS_PER_SECOND;
        let fraction = (timestamp.as_nanos() % NANOSECONDS_PER_SECOND) as u32;
        let fraction = fraction / self.resolution.nanoseconds();
        let seconds =
            u32::try_from(seconds).map_err(|_| EncodeError::TimestampTooLate { seconds })?;
        let mut header = [0; RECORD_HEADER_LENGTH];
        let words = [seconds, fraction, captured_length, original_length];
        for (slot, word) in header.chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&self.order.u32_bytes(word));
        }
        Ok(header)
    }

    /// Appends the file header.
    pub fn push_header(&self, file: &mut Vec<u8>) {
        file.extend_from_slice(&self.header());
    }

    /// Appends a packet of which `data` is there, cut to the snap length.
    ///
    /// # Errors
    /// As [`Self::record_header`]; nothing is appended then.
    #[inline]
    pub fn push_record(
        &self,
        file: &mut Vec<u8>,
        timestamp: Instant,
        original_length: u32,
        data: &[u8],
    ) -> Result<(), EncodeError> {
        let data = cut(data, self.snap_length);
        let length = data.len();
        let captured = u32::try_from(length).map_err(|_| EncodeError::RecordTooLong { length })?;
        let header = self.record_header(timestamp, captured, original_length)?;
        file.reserve(header.len() + length);
        file.extend_from_slice(&header);
        file.extend_from_slice(data);
        Ok(())
    }
}

/// What of a packet is kept under a snap length.
pub(super) fn cut(data: &[u8], snap_length: u32) -> &[u8] {
    match snap_length {
        0 => data,
        snap_length => data.get(..snap_length as usize).unwrap_or(data),
    }
}
