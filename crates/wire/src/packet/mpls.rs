//! MPLS label stack entry, RFC 3032 section 2.1.

use super::view::{PacketError, expect_length, view};

/// Length of an entry in bytes.
pub const ENTRY_LENGTH: usize = 4;

mod field {
    use core::ops::Range;
    /// Label (20 bits), traffic class (3), bottom of stack (1), time to live (8).
    pub(super) const ENTRY: Range<usize> = 0..4;
    pub(super) const TIME_TO_LIVE: Range<usize> = 3..4;
}

view! {
    /// A label stack entry.
    Entry, check;
    /// All fields as one number.
    entry, set_entry: u32 = field::ENTRY;
    /// Time to live.
    time_to_live, set_time_to_live: u8 = field::TIME_TO_LIVE;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("MPLS label", bytes, ENTRY_LENGTH)
}

impl<T: AsRef<[u8]>> Entry<T> {
    /// Returns the label, 20 bits.
    pub fn label(&self) -> u32 {
        self.entry() >> 12
    }

    /// Returns the traffic class of RFC 5462, 0 to 7.
    pub fn traffic_class(&self) -> u8 {
        (self.entry() >> 9) as u8 & 7
    }

    /// Returns whether this is the bottom of the stack.
    pub fn is_bottom(&self) -> bool {
        self.entry() & 0x100 != 0
    }

    /// Returns the bytes behind this entry.
    pub fn payload(&self) -> &[u8] {
        self.bytes().get(ENTRY_LENGTH..).unwrap_or_default()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Entry<T> {
    /// Sets the label; only the lower 20 bits count.
    pub fn set_label(&mut self, label: u32) {
        self.set_entry(self.entry() & 0xfff | label << 12);
    }

    /// Sets whether this is the bottom of the stack.
    pub fn set_bottom(&mut self, bottom: bool) {
        self.set_entry(self.entry() & !0x100 | u32::from(bottom) << 8);
    }
}
