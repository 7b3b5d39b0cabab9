//! Logical link control, IEEE 802.2, and SNAP, IEEE 802 section 9.5.

use super::view::{PacketError, expect_length, view};

/// Length of the header with a control field of one byte, in bytes.
pub const HEADER_LENGTH: usize = 3;
/// Service access point of SNAP.
pub const SNAP: u8 = 0xaa;
/// Service access point of the spanning tree protocol.
pub const SPANNING_TREE: u8 = 0x42;
/// Length of LLC and SNAP headers together, in bytes.
pub const SNAP_LENGTH: usize = 8;

mod field {
    use core::ops::Range;
    pub(super) const DESTINATION: Range<usize> = 0..1;
    pub(super) const SOURCE: Range<usize> = 1..2;
    pub(super) const CONTROL: Range<usize> = 2..3;
}

view! {
    /// The LLC header of an IEEE 802.3 frame.
    Header, check;
    /// Destination service access point.
    destination, set_destination: u8 = field::DESTINATION;
    /// Source service access point.
    source, set_source: u8 = field::SOURCE;
    /// Control field; 3 for unnumbered information.
    control, set_control: u8 = field::CONTROL;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("LLC", bytes, HEADER_LENGTH)
}

impl<T: AsRef<[u8]>> Header<T> {
    /// Returns the Ethernet type of the payload at [`SNAP_LENGTH`]. `None` unless this is SNAP with
    /// the organisation code of Ethernet (RFC 1042).
    pub fn ethertype(&self) -> Option<u16> {
        match self.bytes().first_chunk::<SNAP_LENGTH>()? {
            [SNAP, SNAP, 3, 0, 0, 0, high, low] => Some(u16::from_be_bytes([*high, *low])),
            _ => None,
        }
    }
}
