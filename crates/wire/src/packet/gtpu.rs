//! GTP-U, 3GPP TS 29.281 section 5.1: user packets in tunnels over UDP.

use super::view::{PacketError, expect_length, view};

/// Length of the header without optional fields, in bytes.
pub const HEADER_LENGTH_MIN: usize = 8;
/// UDP destination port (section 4.4.2.3).
pub const PORT: u16 = 2152;
/// Flags for GTP version 1 (not GTP') without optional fields.
pub const PLAIN_FLAGS: u8 = 0x30;
/// Message type of a user packet: G-PDU (section 6.1).
pub const G_PDU: u8 = 255;

const VERSION_AND_PROTOCOL: u8 = 0xf0;
const EXTENDED: u8 = 0x04;
const OPTIONAL: u8 = 0x07;
/// Length of sequence number, N-PDU number and next extension header type.
const OPTIONAL_LENGTH: usize = 4;

mod field {
    use core::ops::Range;
    /// Version (3 bits), protocol type (1), spare (1), extension, sequence and N-PDU flags.
    pub(super) const FLAGS: Range<usize> = 0..1;
    pub(super) const MESSAGE_TYPE: Range<usize> = 1..2;
    pub(super) const LENGTH: Range<usize> = 2..4;
    pub(super) const TEID: Range<usize> = 4..8;
}

view! {
    /// A message, possibly truncated.
    Packet, check;
    /// Version, and flags of the optional fields.
    flags, set_flags: u8 = field::FLAGS;
    /// Message type.
    message_type, set_message_type: u8 = field::MESSAGE_TYPE;
    /// Bytes behind the first eight, from the header.
    length, set_length: u16 = field::LENGTH;
    /// Tunnel endpoint identifier.
    teid, set_teid: u32 = field::TEID;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("GTP-U", bytes, HEADER_LENGTH_MIN)
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Returns whether this is a user packet of GTP version 1.
    pub fn is_g_pdu(&self) -> bool {
        self.flags() & VERSION_AND_PROTOCOL == PLAIN_FLAGS && self.message_type() == G_PDU
    }

    /// Returns the user packet behind optional fields and extension headers. `None` if any of these
    /// is truncated.
    pub fn payload(&self) -> Option<&[u8]> {
        let end = HEADER_LENGTH_MIN + usize::from(self.length());
        let message = self.bytes().get(..end)?;
        if self.flags() & OPTIONAL == 0 {
            return message.get(HEADER_LENGTH_MIN..);
        }
        // Section 5.1: all three fields are present if one of the flags is set.
        let mut start = HEADER_LENGTH_MIN + OPTIONAL_LENGTH;
        let mut next = *message.get(start - 1)?;
        if self.flags() & EXTENDED == 0 {
            next = 0;
        }
        // Section 5.2.1: an extension header begins with its length in units of four bytes. It ends
        // with the type of the next one; type 0 ends the list.
        while next != 0 {
            let length = usize::from(*message.get(start)?) * 4;
            if length == 0 {
                return None;
            }
            start += length;
            next = *message.get(start - 1)?;
        }
        message.get(start..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(bytes: &[u8]) -> Option<&[u8]> {
        // `Packet::payload` borrows from the local view, so derive the range in `bytes` instead.
        let start = Packet::new(bytes).ok()?.payload()?.as_ptr() as usize - bytes.as_ptr() as usize;
        let end = HEADER_LENGTH_MIN + usize::from(Packet::new(bytes).ok()?.length());
        bytes.get(start..end)
    }

    #[test]
    fn a_user_packet_follows_optional_fields_and_extension_headers() {
        let plain = [0x30, 255, 0, 2, 0, 0, 0, 7, 1, 2, 99];
        let packet = Packet::new(plain).unwrap();
        assert!(packet.is_g_pdu());
        assert_eq!((packet.teid(), payload(&plain)), (7, Some(&[1, 2][..])));
        let sequenced = [0x32, 255, 0, 6, 0, 0, 0, 7, 0, 1, 0, 0x85, 1, 2];
        assert_eq!(payload(&sequenced), Some(&[1, 2][..]), "no extension header without its flag");
        let extended =
            [0x34, 255, 0, 14, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0, 9, 0xc0, 1, 8, 8, 0, 1, 2];
        assert_eq!(payload(&extended), Some(&[1, 2][..]));
    }

    #[test]
    fn truncated_or_endless_headers_have_no_payload() {
        assert_eq!(payload(&[0x30, 255, 0, 2, 0, 0, 0, 7, 1]), None);
        assert_eq!(payload(&[0x32, 255, 0, 2, 0, 0, 0, 7, 1, 2]), None);
        let empty_extension = [0x34, 255, 0, 8, 0, 0, 0, 7, 0, 0, 0, 0x85, 0, 0, 0, 0];
        assert_eq!(payload(&empty_extension), None);
        let endless = [0x34, 255, 0, 8, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0, 0, 0x85];
        assert_eq!(payload(&endless), None);
    }

    #[test]
    fn other_versions_and_message_types_are_not_user_packets() {
        let mut bytes = [0x30, 255, 0, 0, 0, 0, 0, 7];
        for (place, other) in [(0, 0x50), (0, 0x20), (1, 1)] {
            let before = bytes[place];
            bytes[place] = other;
            assert!(!Packet::new(bytes).unwrap().is_g_pdu());
            bytes[place] = before;
        }
    }
}
