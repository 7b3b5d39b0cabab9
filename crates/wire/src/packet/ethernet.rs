//! Ethernet, IEEE 802.3 section 3.

use super::MacAddress;
use super::view::{PacketError, expect_length, view};

/// Length of the header in bytes.
pub const HEADER_LENGTH: usize = 14;

mod field {
    use core::ops::Range;
    pub(super) const DESTINATION: Range<usize> = 0..6;
    pub(super) const SOURCE: Range<usize> = 6..12;
    pub(super) const ETHERTYPE: Range<usize> = 12..14;
}

view! {
    /// A frame without preamble and FCS.
    Frame, check;
    /// Destination address.
    destination, set_destination: MacAddress = field::DESTINATION;
    /// Source address.
    source, set_source: MacAddress = field::SOURCE;
    /// Ethernet type of the payload, or its length if below 0x0600.
    ethertype, set_ethertype: u16 = field::ETHERTYPE;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("Ethernet", bytes, HEADER_LENGTH)
}

impl<T: AsRef<[u8]>> Frame<T> {
    /// Returns the bytes behind the header, padding included.
    pub fn payload(&self) -> &[u8] {
        self.bytes().get(HEADER_LENGTH..).unwrap_or_default()
    }
}
