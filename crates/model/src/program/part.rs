//! Parts of a received message.

use alloc::vec::Vec;

use wirestorm_wire::pattern::Pattern;

/// A part of the last received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// A group of the first match of a pattern; group 0 is the whole match.
    Group(Pattern, u16),
    /// The bytes between the first occurrence of the first text and the next occurrence of the
    /// second.
    Between(Vec<u8>, Vec<u8>),
    /// Bytes at a fixed offset.
    Bytes {
        /// Offset in bytes, from 0.
        offset: u32,
        /// Length in bytes.
        length: u32,
    },
}
