//! IPv4, RFC 791 section 3.1.

use core::net::Ipv4Addr;

use super::view::{PacketError, expect_length, view};
use crate::checksum;

/// Length of a header without options, in bytes.
pub const HEADER_LENGTH_MIN: usize = 20;

/// Byte ranges of the fields, for changes in place.
pub mod field {
    use core::ops::Range;
    /// Version (4 bits), header length in units of 4 bytes (4).
    pub const VERSION_LENGTH: Range<usize> = 0..1;
    /// Differentiated services (6 bits, RFC 2474), congestion notification (2, RFC 3168).
    pub const TYPE_OF_SERVICE: Range<usize> = 1..2;
    /// Length of header and payload.
    pub const TOTAL_LENGTH: Range<usize> = 2..4;
    /// Identification, the same in all fragments of a packet.
    pub const IDENTIFICATION: Range<usize> = 4..6;
    /// Reserved, don't fragment, more fragments (1 bit each), offset in units of 8 bytes (13).
    pub const FRAGMENT: Range<usize> = 6..8;
    /// Time to live.
    pub const TIME_TO_LIVE: Range<usize> = 8..9;
    /// Protocol of the payload.
    pub const PROTOCOL: Range<usize> = 9..10;
    /// Checksum of the header.
    pub const CHECKSUM: Range<usize> = 10..12;
    /// Source address.
    pub const SOURCE: Range<usize> = 12..16;
    /// Destination address.
    pub const DESTINATION: Range<usize> = 16..20;
}

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;

view! {
    /// A packet, possibly truncated.
    Packet, check;
    /// Differentiated services and congestion notification.
    type_of_service, set_type_of_service: u8 = field::TYPE_OF_SERVICE;
    /// Length of header and payload, from the header.
    total_length, set_total_length: u16 = field::TOTAL_LENGTH;
    /// Identification, the same in all fragments of a packet.
    identification, set_identification: u16 = field::IDENTIFICATION;
    /// Fragmentation flags and offset as one number.
    fragment, set_fragment: u16 = field::FRAGMENT;
    /// Time to live.
    time_to_live, set_time_to_live: u8 = field::TIME_TO_LIVE;
    /// Protocol of the payload.
    protocol, set_protocol: u8 = field::PROTOCOL;
    /// Header checksum, as the header states it.
    checksum, set_checksum: u16 = field::CHECKSUM;
    /// Source address.
    source, set_source: Ipv4Addr = field::SOURCE;
    /// Destination address.
    destination, set_destination: Ipv4Addr = field::DESTINATION;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    const HEADER: &str = "IPv4";
    expect_length(HEADER, bytes, HEADER_LENGTH_MIN)?;
    let first = bytes.first().copied().unwrap_or_default();
    if first >> 4 != 4 {
        return Err(PacketError::BadVersion { header: HEADER, found: first >> 4, expected: 4 });
    }
    match usize::from(first & 0x0f) * 4 {
        found if found < HEADER_LENGTH_MIN => {
            Err(PacketError::BadHeaderLength { header: HEADER, found, minimum: HEADER_LENGTH_MIN })
        }
        length => expect_length(HEADER, bytes, length),
    }
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Returns the header length, options included, in bytes.
    pub fn header_length(&self) -> usize {
        usize::from(self.bytes().first().copied().unwrap_or_default() & 0x0f) * 4
    }

    /// Returns whether the don't fragment bit is set.
    pub fn dont_fragment(&self) -> bool {
        self.fragment() & DONT_FRAGMENT != 0
    }

    /// Returns whether more fragments follow.
    pub fn more_fragments(&self) -> bool {
        self.fragment() & MORE_FRAGMENTS != 0
    }

    /// Returns the offset of the payload in that of the whole packet, in bytes.
    pub fn fragment_offset(&self) -> u32 {
        u32::from(self.fragment() & 0x1fff) * 8
    }

    /// Returns whether this is a fragment, first and last included.
    pub fn is_fragment(&self) -> bool {
        self.more_fragments() || self.fragment_offset() != 0
    }

    /// Returns whether all bytes of the total length are there.
    pub fn is_whole(&self) -> bool {
        (self.header_length()..=self.bytes().len()).contains(&usize::from(self.total_length()))
    }

    /// Returns the options.
    pub fn options(&self) -> &[u8] {
        self.bytes().get(HEADER_LENGTH_MIN..self.header_length()).unwrap_or_default()
    }

    /// Returns the captured payload without link-layer padding. If the total length is zero, as in
    /// captures on a sender with segmentation offload, returns everything behind the header.
    pub fn payload(&self) -> &[u8] {
        let bytes = self.bytes();
        let end = match usize::from(self.total_length()) {
            0 => bytes.len(),
            total_length => total_length.min(bytes.len()),
        };
        bytes.get(self.header_length()..end).unwrap_or_default()
    }

    /// Computes the header checksum.
    pub fn computed_checksum(&self) -> u16 {
        let header = self.bytes().get(..self.header_length()).unwrap_or_default();
        let (before, rest) = header.split_at_checked(field::CHECKSUM.start).unwrap_or_default();
        let after = rest.get(field::CHECKSUM.len()..).unwrap_or_default();
        !checksum::combine(checksum::sum(before), checksum::sum(after))
    }

    /// Returns the sum over the pseudo-header of TCP and UDP for a payload of `length` bytes.
    pub fn pseudo_header_sum(&self, length: u16) -> u16 {
        let (source, destination) = (self.source().octets(), self.destination().octets());
        checksum::pseudo_header_ipv4(source, destination, self.protocol(), length)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Computes and sets the header checksum.
    pub fn fill_checksum(&mut self) {
        self.set_checksum(self.computed_checksum());
    }
}
