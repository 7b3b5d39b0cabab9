//! Logical link control, IEEE 802.2, and SNAP, IEEE 802 section 9.5.

use super::view::{PacketError, expect_length, view};

/// Bytes of the header with a control field of one byte.
pub const HEADER_LENGTH: usize = 3;
/// The service access point of SNAP.
pub const SNAP: u8 = 0xaa;
/// The service access point of the spanning tree protocol.
pub const SPANNING_TREE: u8 = 0x42;
/// Bytes of LLC and SNAP together.
pub const SNAP_LENGTH: usize = 8;

mod field {
    use core::ops::Range;
    pub(super) const DESTINATION: Range<usize> = 0..1;
    pub(super) const SOURCE: Range<usize> = 1..2;
    pub(super) const CONTROL: Range<usize> = 2..3;
}

view! {
    /// What an IEEE 802.3 frame holds in place of a type.
    Header, check;
    /// The service access point of the receiver.
    destination, set_destination: u8 = field::DESTINATION;
    /// The service access point of the sender.
    source, set_source: u8 = field::SOURCE;
    /// The control field; 3 for unnumbered information.
    control, set_control: u8 = field::CONTROL;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("LLC", bytes, HEADER_LENGTH)
}

impl<T: AsRef<[u8]>> Header<T> {
    /// The Ethernet type of the payload, at [`SNAP_LENGTH`], where this is SNAP with the
    /// organisation code of Ethernet (RFC 1042).
    pub fn ethertype(&self) -> Option<u16> {
        match self.bytes().first_chunk::<SNAP_LENGTH>()? {
            [SNAP, SNAP, 3, 0, 0, 0, high, low] => Some(u16::from_be_bytes([*high, *low])),
            _ => None,
        }
    }
}
