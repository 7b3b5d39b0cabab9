//! IPv4, RFC 791 section 3.1.

use core::net::Ipv4Addr;

use super::view::{PacketError, expect_length, view};
use crate::checksum;

/// Bytes of a header without options.
pub const HEADER_LENGTH_MIN: usize = 20;

/// Where fields are, for those who change them in place.
pub mod field {
    use core::ops::Range;
    /// Version (4 bits), header length in 4 bytes (4).
    pub const VERSION_LENGTH: Range<usize> = 0..1;
    /// Differentiated services (6 bits, RFC 2474), congestion notification (2, RFC 3168).
    pub const TYPE_OF_SERVICE: Range<usize> = 1..2;
    /// Bytes of header and payload.
    pub const TOTAL_LENGTH: Range<usize> = 2..4;
    /// What fragments of one packet have in common.
    pub const IDENTIFICATION: Range<usize> = 4..6;
    /// Reserved, don't fragment, more fragments (1 bit each), offset in 8 bytes (13).
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
    /// A packet, or what was captured of it.
    Packet, check;
    /// Differentiated services and congestion notification.
    type_of_service, set_type_of_service: u8 = field::TYPE_OF_SERVICE;
    /// Bytes of header and payload, as the header says.
    total_length, set_total_length: u16 = field::TOTAL_LENGTH;
    /// What fragments of one packet have in common.
    identification, set_identification: u16 = field::IDENTIFICATION;
    /// Fragmentation flags and offset as one number.
    fragment, set_fragment: u16 = field::FRAGMENT;
    /// The time to live.
    time_to_live, set_time_to_live: u8 = field::TIME_TO_LIVE;
    /// The protocol of the payload.
    protocol, set_protocol: u8 = field::PROTOCOL;
    /// The checksum of the header, as the header says.
    checksum, set_checksum: u16 = field::CHECKSUM;
    /// The sender's address.
    source, set_source: Ipv4Addr = field::SOURCE;
    /// The receiver's address.
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
    /// Bytes of the header with its options.
    pub fn header_length(&self) -> usize {
        usize::from(self.bytes().first().copied().unwrap_or_default() & 0x0f) * 4
    }

    /// Whether routers may not fragment the packet.
    pub fn dont_fragment(&self) -> bool {
        self.fragment() & DONT_FRAGMENT != 0
    }

    /// Whether this is a fragment, and not the last.
    pub fn more_fragments(&self) -> bool {
        self.fragment() & MORE_FRAGMENTS != 0
    }

    /// Where the payload belongs in that of the whole packet, in bytes.
    pub fn fragment_offset(&self) -> u32 {
        u32::from(self.fragment() & 0x1fff) * 8
    }

    /// Whether this is a fragment, the first and the last included.
    pub fn is_fragment(&self) -> bool {
        self.more_fragments() || self.fragment_offset() != 0
    }

    /// Whether every byte that the header speaks of is there.
    pub fn is_whole(&self) -> bool {
        (self.header_length()..=self.bytes().len()).contains(&usize::from(self.total_length()))
    }

    /// The options.
    pub fn options(&self) -> &[u8] {
        self.bytes().get(HEADER_LENGTH_MIN..self.header_length()).unwrap_or_default()
    }

    /// What is there of the payload, without padding of the link layer. Where the length is
    /// zero, as captures on a segmenting sender have it, everything behind the header.
    pub fn payload(&self) -> &[u8] {
        let bytes = self.bytes();
        let end = match usize::from(self.total_length()) {
            0 => bytes.len(),
            total_length => total_length.min(bytes.len()),
        };
        bytes.get(self.header_length()..end).unwrap_or_default()
    }

    /// The checksum that the header ought to have.
    pub fn computed_checksum(&self) -> u16 {
        let header = self.bytes().get(..self.header_length()).unwrap_or_default();
        let (before, rest) = header.split_at_checked(field::CHECKSUM.start).unwrap_or_default();
        let after = rest.get(field::CHECKSUM.len()..).unwrap_or_default();
        !checksum::combine(checksum::sum(before), checksum::sum(after))
    }

    /// The sum over the pseudo header of TCP and UDP for a payload of `length` bytes.
    pub fn pseudo_header_sum(&self, length: u16) -> u16 {
        let (source, destination) = (self.source().octets(), self.destination().octets());
        checksum::pseudo_header_ipv4(source, destination, self.protocol(), length)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Makes the checksum what it ought to be.
    pub fn fill_checksum(&mut self) {
        self.set_checksum(self.computed_checksum());
    }
}
