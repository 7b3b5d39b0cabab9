//! GTP-U, 3GPP TS 29.281 section 5.1: users' packets in tunnels over UDP.

use super::view::{PacketError, expect_length, view};

/// Bytes of the header without its optional fields.
pub const HEADER_LENGTH_MIN: usize = 8;
/// The port of UDP that it is sent to (section 4.4.2.3).
pub const PORT: u16 = 2152;
/// Version 1 of GTP, not of GTP', and no optional field.
pub const PLAIN_FLAGS: u8 = 0x30;
/// The type of a message that is a user's packet: G-PDU (section 6.1).
pub const USER_PACKET: u8 = 255;

const VERSION_AND_PROTOCOL: u8 = 0xf0;
const EXTENDED: u8 = 0x04;
const OPTIONAL: u8 = 0x07;
/// Sequence number, N-PDU number, type of the next extension header.
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
    /// A message, or what was captured of it.
    Packet, check;
    /// The version and what optional fields there are.
    flags, set_flags: u8 = field::FLAGS;
    /// What kind of message it is.
    message_type, set_message_type: u8 = field::MESSAGE_TYPE;
    /// Bytes behind the first eight of the header, as the header says.
    length, set_length: u16 = field::LENGTH;
    /// The tunnel endpoint identifier.
    teid, set_teid: u32 = field::TEID;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("GTP-U", bytes, HEADER_LENGTH_MIN)
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Whether it is a user's packet, in the version that there is.
    pub fn is_user_packet(&self) -> bool {
        self.flags() & VERSION_AND_PROTOCOL == PLAIN_FLAGS && self.message_type() == USER_PACKET
    }

    /// The user's packet: what is behind optional fields and extension headers. `None` where it is
    /// cut short, or any of these is.
    pub fn payload(&self) -> Option<&[u8]> {
        let end = HEADER_LENGTH_MIN + usize::from(self.length());
        let message = self.bytes().get(..end)?;
        if self.flags() & OPTIONAL == 0 {
            return message.get(HEADER_LENGTH_MIN..);
        }
        // Section 5.1: all three are there as soon as one of the flags is set.
        let mut start = HEADER_LENGTH_MIN + OPTIONAL_LENGTH;
        let mut next = *message.get(start - 1)?;
        if self.flags() & EXTENDED == 0 {
            next = 0;
        }
        // Section 5.2.1: its length in units of four bytes comes first, and the type of the next one
        // last; type 0 ends the list.
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
        // What is returned lives as long as the bytes do.
        let start = Packet::new(bytes).ok()?.payload()?.as_ptr() as usize - bytes.as_ptr() as usize;
        let end = HEADER_LENGTH_MIN + usize::from(Packet::new(bytes).ok()?.length());
        bytes.get(start..end)
    }

    #[test]
    fn a_users_packet_is_behind_optional_fields_and_extension_headers() {
        let plain = [0x30, 255, 0, 2, 0, 0, 0, 7, 1, 2, 99];
        let packet = Packet::new(plain).unwrap();
        assert!(packet.is_user_packet());
        assert_eq!((packet.teid(), payload(&plain)), (7, Some(&[1, 2][..])));
        let sequenced = [0x32, 255, 0, 6, 0, 0, 0, 7, 0, 1, 0, 0x85, 1, 2];
        assert_eq!(payload(&sequenced), Some(&[1, 2][..]), "no extension header without its flag");
        let extended =
            [0x34, 255, 0, 14, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0, 9, 0xc0, 1, 8, 8, 0, 1, 2];
        assert_eq!(payload(&extended), Some(&[1, 2][..]));
    }

    #[test]
    fn what_is_cut_short_or_goes_round_has_none() {
        assert_eq!(payload(&[0x30, 255, 0, 2, 0, 0, 0, 7, 1]), None);
        assert_eq!(payload(&[0x32, 255, 0, 2, 0, 0, 0, 7, 1, 2]), None);
        let empty_extension = [0x34, 255, 0, 8, 0, 0, 0, 7, 0, 0, 0, 0x85, 0, 0, 0, 0];
        assert_eq!(payload(&empty_extension), None);
        let endless = [0x34, 255, 0, 8, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0, 0, 0x85];
        assert_eq!(payload(&endless), None);
    }

    #[test]
    fn other_versions_and_messages_are_no_users_packets() {
        let mut bytes = [0x30, 255, 0, 0, 0, 0, 0, 7];
        for (place, other) in [(0, 0x50), (0, 0x20), (1, 1)] {
            let before = bytes[place];
            bytes[place] = other;
            assert!(!Packet::new(bytes).unwrap().is_user_packet());
            bytes[place] = before;
        }
    }
}
