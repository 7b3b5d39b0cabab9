//! IPv6, RFC 8200 section 3.

use core::net::Ipv6Addr;

use super::ipv6_extension::{Extensions, walk_extensions};
use super::view::{PacketError, expect_length, view};
use crate::checksum;

/// Length of the header without extension headers, in bytes.
pub const HEADER_LENGTH: usize = 40;

/// Byte ranges of the fields, for changes in place.
pub mod field {
    use core::ops::Range;
    /// Version (4 bits), traffic class (8), flow label (20).
    pub const VERSION_CLASS_LABEL: Range<usize> = 0..4;
    /// Length of everything behind the header.
    pub const PAYLOAD_LENGTH: Range<usize> = 4..6;
    /// Next header.
    pub const NEXT_HEADER: Range<usize> = 6..7;
    /// Hop limit.
    pub const HOP_LIMIT: Range<usize> = 7..8;
    /// Source address.
    pub const SOURCE: Range<usize> = 8..24;
    /// Destination address.
    pub const DESTINATION: Range<usize> = 24..40;
}

view! {
    /// A packet, possibly truncated.
    Packet, check;
    /// Version, traffic class and flow label as one number.
    version_class_label, set_version_class_label: u32 = field::VERSION_CLASS_LABEL;
    /// Length of everything behind the header, from the header.
    payload_length, set_payload_length: u16 = field::PAYLOAD_LENGTH;
    /// Next header: an extension header or the payload's protocol.
    next_header, set_next_header: u8 = field::NEXT_HEADER;
    /// Hop limit.
    hop_limit, set_hop_limit: u8 = field::HOP_LIMIT;
    /// Source address.
    source, set_source: Ipv6Addr = field::SOURCE;
    /// Destination address, or the next segment if there is a routing header.
    destination, set_destination: Ipv6Addr = field::DESTINATION;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("IPv6", bytes, HEADER_LENGTH)?;
    match bytes.first().copied().unwrap_or_default() >> 4 {
        6 => Ok(()),
        found => Err(PacketError::BadVersion { header: "IPv6", found, expected: 6 }),
    }
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Returns differentiated services and congestion notification.
    pub fn traffic_class(&self) -> u8 {
        (self.version_class_label() >> 20) as u8
    }

    /// Returns the flow label.
    pub fn flow_label(&self) -> u32 {
        self.version_class_label() & 0x000f_ffff
    }

    /// Returns whether all bytes of the payload length are there. Always false for a jumbogram (RFC
    /// 2675), whose length is zero.
    pub fn is_whole(&self) -> bool {
        let length = usize::from(self.payload_length());
        length != 0 && HEADER_LENGTH + length <= self.bytes().len()
    }

    /// Returns the captured header, extension headers and payload without link-layer padding. If
    /// the payload length is zero, returns everything.
    fn packet(&self) -> &[u8] {
        let bytes = self.bytes();
        match usize::from(self.payload_length()) {
            0 => bytes,
            length => bytes.get(..HEADER_LENGTH + length).unwrap_or(bytes),
        }
    }

    /// Returns the end of the extension headers and the protocol behind; `None` if they are
    /// truncated.
    pub fn extensions(&self) -> Option<Extensions> {
        walk_extensions(self.packet(), HEADER_LENGTH, self.next_header())
    }

    /// Returns the captured bytes behind the header, extension headers included.
    pub fn payload(&self) -> &[u8] {
        self.packet().get(HEADER_LENGTH..).unwrap_or_default()
    }

    /// Returns the captured bytes behind `extensions`.
    pub fn transport(&self, extensions: &Extensions) -> &[u8] {
        self.packet().get(extensions.end..).unwrap_or_default()
    }

    /// Returns the sum over the pseudo-header of TCP, UDP and ICMPv6 (section 8.1) for a payload of
    /// `length` bytes.
    pub fn pseudo_header_sum(&self, protocol: u8, length: u32) -> u16 {
        let (source, destination) = (self.source().octets(), self.destination().octets());
        checksum::pseudo_header_ipv6(source, destination, protocol, length)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Sets differentiated services and congestion notification.
    pub fn set_traffic_class(&mut self, traffic_class: u8) {
        let others = self.version_class_label() & 0xf00f_ffff;
        self.set_version_class_label(others | u32::from(traffic_class) << 20);
    }

    /// Sets the flow label; only the lower 20 bits count.
    pub fn set_flow_label(&mut self, flow_label: u32) {
        let others = self.version_class_label() & 0xfff0_0000;
        self.set_version_class_label(others | flow_label & 0x000f_ffff);
    }
}
