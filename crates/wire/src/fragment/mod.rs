//! IP fragmentation: reading, reassembly and creation of fragments.
//!
//! RFC 791 section 3.2 and RFC 815 for IPv4, RFC 8200 section 4.5 for IPv6.

mod fragmentation;
mod reassembly;

use core::net::IpAddr;

pub use fragmentation::Fragments;
pub use reassembly::{DropReason, DroppedPacket, Reassembler, ReassemblyLimits, Taken};

use crate::packet::ipv6_extension::{
    EXTENSION_HEADERS_MAX, FRAGMENT_HEADER_LENGTH, extension_length, is_extension,
};
use crate::packet::{ipv4, ipv6, protocol};

/// Longest packet in bytes: the IPv4 total length, or the IPv6 payload length.
pub const PACKET_LENGTH_MAX: usize = u16::MAX as usize;

/// Unit of fragment offsets in bytes. All fragments but the last have a multiple of it.
const UNIT: usize = 8;

/// Returns whether a packet, from its IP header on, is a complete fragment.
pub fn is_fragment(packet: &[u8]) -> bool {
    Fragment::read(packet).is_some()
}

/// Congestion experienced: both ECN bits (RFC 3168 section 5).
const ECN_CE: u8 = 3;

/// Fields that all fragments of a packet share and that identify the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    source: IpAddr,
    destination: IpAddr,
    identification: u32,
    /// Protocol of IPv4; 0 for IPv6, where it does not identify the packet.
    protocol: u8,
}

/// One fragment.
#[derive(Clone, Copy, Debug)]
struct Fragment<'a> {
    key: Key,
    /// Bytes before the data, without the IPv6 fragment header.
    header: &'a [u8],
    /// Offset in `header` of the field that names the next header, and the protocol of the data.
    next_header: (usize, u8),
    /// Offset of the data in that of the whole packet, in bytes.
    start: usize,
    has_more: bool,
    is_ce_marked: bool,
    data: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// Reads a fragment, from its IP header on. `None` if it is a whole packet or truncated.
    fn read(packet: &'a [u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::read_ipv4(packet),
            6 => Self::read_ipv6(packet),
            _ => None,
        }
    }

    fn read_ipv4(bytes: &'a [u8]) -> Option<Self> {
        let packet = ipv4::Packet::new(bytes).ok()?;
        if !packet.is_fragment() || !packet.is_whole() {
            return None;
        }
        let (header, rest) = bytes.split_at_checked(packet.header_length())?;
        Some(Self {
            key: Key {
                source: packet.source().into(),
                destination: packet.destination().into(),
                identification: packet.identification().into(),
                protocol: packet.protocol(),
            },
            header,
            next_header: (ipv4::field::PROTOCOL.start, packet.protocol()),
            start: packet.fragment_offset() as usize,
            has_more: packet.more_fragments(),
            is_ce_marked: packet.type_of_service() & ECN_CE == ECN_CE,
            data: rest.get(..usize::from(packet.total_length()) - header.len())?,
        })
    }

    fn read_ipv6(bytes: &'a [u8]) -> Option<Self> {
        let packet = ipv6::Packet::new(bytes).ok()?;
        if !packet.is_whole() {
            return None;
        }
        let bytes = bytes.get(..ipv6::HEADER_LENGTH + usize::from(packet.payload_length()))?;
        let mut kind = packet.next_header();
        let (mut named_at, mut at) = (ipv6::field::NEXT_HEADER.start, ipv6::HEADER_LENGTH);
        for _ in 0..EXTENSION_HEADERS_MAX {
            if kind == protocol::FRAGMENT || !is_extension(kind) {
                break;
            }
            let &[next, length] = bytes.get(at..)?.first_chunk()?;
            named_at = at;
            at += extension_length(kind, length);
            kind = next;
        }
        if kind != protocol::FRAGMENT {
            return None;
        }
        let (header, rest) = bytes.split_at_checked(at)?;
        let (fragment, data) = rest.split_first_chunk::<FRAGMENT_HEADER_LENGTH>()?;
        let &[next, _, high, low, a, b, c, d] = fragment;
        let place = u16::from_be_bytes([high, low]);
        let (start, has_more) = (usize::from(place & 0xfff8), place & 1 != 0);
        // RFC 6946: an atomic fragment is a whole packet.
        (start > 0 || has_more).then_some(Self {
            key: Key {
                source: packet.source().into(),
                destination: packet.destination().into(),
                identification: u32::from_be_bytes([a, b, c, d]),
                protocol: 0,
            },
            header,
            next_header: (named_at, next),
            start,
            has_more,
            is_ce_marked: packet.traffic_class() & ECN_CE == ECN_CE,
            data,
        })
    }

    /// Returns the offset behind its data in that of the whole packet.
    fn end(&self) -> usize {
        self.start + self.data.len()
    }

    /// Returns whether the fragment can be part of a packet.
    ///
    /// RFC 8200 section 4.5: two kinds of fragments "must be discarded". One is not the last and
    /// has a length that is no multiple of 8. The other ends beyond the longest packet.
    fn is_possible(&self) -> bool {
        let is_of_units = !self.has_more || self.data.len().is_multiple_of(UNIT);
        let of_header = if self.key.source.is_ipv4() { 0 } else { ipv6::HEADER_LENGTH };
        let length = self.header.len() - of_header + self.end();
        is_of_units && !self.data.is_empty() && length <= PACKET_LENGTH_MAX
    }
}
