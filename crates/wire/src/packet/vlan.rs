//! VLAN tag of IEEE 802.1Q section 9.6, also the service tag of 802.1ad.

use super::view::{PacketError, expect_length, view};

/// Length of the tag in bytes.
pub const TAG_LENGTH: usize = 4;
/// Greatest VLAN identifier; 0 marks a priority tag, 4095 is reserved.
pub const IDENTIFIER_MAX: u16 = 4094;

mod field {
    use core::ops::Range;
    /// Priority (3 bits), drop eligible indicator (1), identifier (12).
    pub(super) const CONTROL: Range<usize> = 0..2;
    pub(super) const ETHERTYPE: Range<usize> = 2..4;
}

view! {
    /// A tag without its own Ethernet type: control information and the type of the payload.
    Tag, check;
    /// Priority, drop eligible indicator and identifier as one number.
    control, set_control: u16 = field::CONTROL;
    /// Ethernet type of the payload.
    ethertype, set_ethertype: u16 = field::ETHERTYPE;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("VLAN tag", bytes, TAG_LENGTH)
}

impl<T: AsRef<[u8]>> Tag<T> {
    /// Returns the VLAN identifier.
    pub fn identifier(&self) -> u16 {
        self.control() & 0x0fff
    }

    /// Returns the priority, 0 to 7.
    pub fn priority(&self) -> u8 {
        (self.control() >> 13) as u8
    }

    /// Returns the drop eligible indicator; before 2011 the canonical format indicator.
    pub fn drop_eligible(&self) -> bool {
        self.control() & 0x1000 != 0
    }

    /// Returns the bytes behind the tag.
    pub fn payload(&self) -> &[u8] {
        self.bytes().get(TAG_LENGTH..).unwrap_or_default()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Tag<T> {
    /// Sets the VLAN identifier; only the lower 12 bits count.
    pub fn set_identifier(&mut self, identifier: u16) {
        self.set_control(self.control() & 0xf000 | identifier & 0x0fff);
    }

    /// Sets the priority; only the lower 3 bits count.
    pub fn set_priority(&mut self, priority: u8) {
        self.set_control(self.control() & 0x1fff | u16::from(priority & 7) << 13);
    }

    /// Sets the drop eligible indicator.
    pub fn set_drop_eligible(&mut self, drop_eligible: bool) {
        self.set_control(self.control() & 0xefff | u16::from(drop_eligible) << 12);
    }
}
