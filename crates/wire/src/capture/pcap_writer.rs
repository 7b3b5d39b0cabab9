//! Encoder of pcap, draft-ietf-opsawg-pcap.

use alloc::vec::Vec;

use wirestorm_base::time::{Instant, NANOSECONDS_PER_SECOND};

use super::format::{PCAP_MICROSECONDS, PCAP_NANOSECONDS};
use super::pcap::{FILE_HEADER_LENGTH, RECORD_HEADER_LENGTH, Resolution, VERSION, field};
use super::{ByteOrder, EncodeError, LinkType, RECORD_LENGTH_MAX};

/// Encodes a pcap file piece by piece. The writer holds only settings; the caller holds the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcapWriter {
    /// Link type of the frames.
    pub link_type: LinkType,
    /// Unit of the timestamps; finer times are rounded down.
    pub resolution: Resolution,
    /// Byte order of numbers.
    pub order: ByteOrder,
    /// Longest record in bytes; longer packets are truncated. Zero means no limit.
    pub snap_length: u32,
}

impl PcapWriter {
    /// Creates a writer with nanoseconds, little-endian order and snap length
    /// [`RECORD_LENGTH_MAX`].
    pub const fn new(link_type: LinkType) -> Self {
        Self {
            link_type,
            resolution: Resolution::Nanoseconds,
            order: ByteOrder::Little,
            snap_length: RECORD_LENGTH_MAX,
        }
    }

    /// Returns the file header of 24 bytes.
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

    /// Returns the record header of 16 bytes.
    ///
    /// # Errors
    /// If the time is after 2106 or the lengths are invalid.
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

    /// Appends a packet with the captured bytes `data`, truncated to the snap length.
    ///
    /// # Errors
    /// As [`Self::record_header`]. Nothing is appended then.
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

/// Truncates a packet to a snap length.
pub(super) fn cut(data: &[u8], snap_length: u32) -> &[u8] {
    match snap_length {
        0 => data,
        snap_length => data.get(..snap_length as usize).unwrap_or(data),
    }
}
