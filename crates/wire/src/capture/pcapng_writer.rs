//! Encoder of pcapng, draft-ietf-opsawg-pcapng.

use alloc::vec::Vec;

use wirestorm_base::time::Instant;

use super::pcapng::{BYTE_ORDER_MAGIC, block, option};
use super::{ByteOrder, EncodeError, LinkType, RECORD_LENGTH_MAX};

/// Decimal exponent of a nanosecond.
const NANOSECONDS: u8 = 9;
/// Options of an interface statistics block.
const STATISTICS_RECEIVED: u16 = 4;
const STATISTICS_DROPPED: u16 = 5;

/// Option of a packet block with the direction of the packet.
const PACKET_FLAGS: u16 = 2;

/// Direction of a packet at its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDirection {
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

impl PacketDirection {
    /// Returns the flags of a packet block (section 4.3.1).
    const fn flags(self) -> u32 {
        match self {
            Self::Inbound => 1,
            Self::Outbound => 2,
        }
    }
}

/// Encodes a pcapng file piece by piece: a section, its interfaces, then packets and statistics.
/// Timestamps are in nanoseconds. The writer holds only settings; the caller holds the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcapngWriter {
    /// Byte order of numbers.
    pub order: ByteOrder,
}

impl PcapngWriter {
    /// Creates a little-endian writer.
    pub const fn new() -> Self {
        Self { order: ByteOrder::Little }
    }

    /// Appends the header of a section of unknown length. Its interfaces are numbered from zero.
    pub fn push_section(&self, file: &mut Vec<u8>) {
        let start = self.begin(file, block::SECTION_HEADER);
        file.extend_from_slice(&self.order.u32_bytes(BYTE_ORDER_MAGIC));
        file.extend_from_slice(&self.order.u16_bytes(1));
        file.extend_from_slice(&self.order.u16_bytes(0));
        file.extend_from_slice(&self.order.u64_bytes(u64::MAX));
        self.end(file, start);
    }

    /// Appends the description of the section's next interface. A `snap_length` of zero means no
    /// limit, and an empty name means no name.
    ///
    /// # Errors
    /// If the name exceeds 65,535 bytes. Nothing is appended then.
    pub fn push_interface(
        &self,
        file: &mut Vec<u8>,
        link_type: LinkType,
        snap_length: u32,
        name: &str,
    ) -> Result<(), EncodeError> {
        if name.len() > usize::from(u16::MAX) {
            return Err(EncodeError::NameTooLong { length: name.len() });
        }
        let start = self.begin(file, block::INTERFACE_DESCRIPTION);
        // pcapng has 16-bit link types; the registry has no greater numbers.
        file.extend_from_slice(&self.order.u16_bytes(link_type.0 as u16));
        file.extend_from_slice(&[0; 2]);
        file.extend_from_slice(&self.order.u32_bytes(snap_length));
        if !name.is_empty() {
            self.push_option(file, option::NAME, name.as_bytes());
        }
        self.push_option(file, option::TIMESTAMP_RESOLUTION, &[NANOSECONDS]);
        self.push_option(file, option::END, &[]);
        self.end(file, start);
        Ok(())
    }

    /// Appends a packet with the captured bytes `data`, captured on the section's `interface`.
    ///
    /// # Errors
    /// If the lengths are invalid. Nothing is appended then.
    #[inline]
    pub fn push_record(
        &self,
        file: &mut Vec<u8>,
        interface: u32,
        timestamp: Instant,
        original_length: u32,
        data: &[u8],
    ) -> Result<(), EncodeError> {
        let start = self.begin_packet(file, interface, timestamp, original_length, data)?;
        self.end(file, start);
        Ok(())
    }

    /// Appends a packet like [`Self::push_record`], with its direction.
    ///
    /// # Errors
    /// As [`Self::push_record`].
    pub fn push_directed_record(
        &self,
        file: &mut Vec<u8>,
        interface: u32,
        timestamp: Instant,
        original_length: u32,
        data: &[u8],
        direction: PacketDirection,
    ) -> Result<(), EncodeError> {
        let start = self.begin_packet(file, interface, timestamp, original_length, data)?;
        self.push_option(file, PACKET_FLAGS, &self.order.u32_bytes(direction.flags()));
        self.push_option(file, option::END, &[]);
        self.end(file, start);
        Ok(())
    }

    /// Appends the block of a packet without options and end; returns the block's offset.
    #[inline]
    fn begin_packet(
        &self,
        file: &mut Vec<u8>,
        interface: u32,
        timestamp: Instant,
        original_length: u32,
        data: &[u8],
    ) -> Result<usize, EncodeError> {
        let length = data.len();
        if length > RECORD_LENGTH_MAX as usize {
            return Err(EncodeError::RecordTooLong { length });
        }
        if length > original_length as usize {
            return Err(EncodeError::CapturedExceedsOriginal {
                captured: length,
                original: original_length,
            });
        }
        file.reserve(36 + length);
        let start = self.begin(file, block::ENHANCED_PACKET);
        let count = timestamp.as_nanos();
        for word in [interface, (count >> 32) as u32, count as u32, length as u32, original_length]
        {
            file.extend_from_slice(&self.order.u32_bytes(word));
        }
        file.extend_from_slice(data);
        pad(file, length);
        Ok(start)
    }

    /// Appends the counters of the section's `interface` at `timestamp`.
    pub fn push_statistics(
        &self,
        file: &mut Vec<u8>,
        interface: u32,
        timestamp: Instant,
        received: u64,
        dropped: u64,
    ) {
        let start = self.begin(file, block::INTERFACE_STATISTICS);
        let count = timestamp.as_nanos();
        for word in [interface, (count >> 32) as u32, count as u32] {
            file.extend_from_slice(&self.order.u32_bytes(word));
        }
        self.push_option(file, STATISTICS_RECEIVED, &self.order.u64_bytes(received));
        self.push_option(file, STATISTICS_DROPPED, &self.order.u64_bytes(dropped));
        self.push_option(file, option::END, &[]);
        self.end(file, start);
    }

    /// Appends a block's type and a placeholder for its length; returns the block's offset.
    fn begin(&self, file: &mut Vec<u8>, kind: u32) -> usize {
        let start = file.len();
        file.extend_from_slice(&self.order.u32_bytes(kind));
        file.extend_from_slice(&[0; 4]);
        start
    }

    /// Writes the length at both ends of the block at `start`.
    fn end(&self, file: &mut Vec<u8>, start: usize) {
        let length = self.order.u32_bytes((file.len() - start + 4) as u32);
        file.extend_from_slice(&length);
        file[start + 4..start + 8].copy_from_slice(&length);
    }

    fn push_option(&self, file: &mut Vec<u8>, code: u16, value: &[u8]) {
        file.extend_from_slice(&self.order.u16_bytes(code));
        file.extend_from_slice(&self.order.u16_bytes(value.len() as u16));
        file.extend_from_slice(value);
        pad(file, value.len());
    }
}

/// Appends zeros that pad `length` bytes to a multiple of four.
fn pad(file: &mut Vec<u8>, length: usize) {
    file.extend_from_slice(&[0; 3][..length.next_multiple_of(4) - length]);
}
