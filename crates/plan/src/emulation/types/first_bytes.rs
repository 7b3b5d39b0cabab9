//! Bytes that tell servers at one port apart.

/// Bytes of the first data of a flow: offset, mask of the bits that count, and their value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstBytes(pub Vec<(u8, u8, u8)>);

impl FirstBytes {
    /// Number of bytes, at most.
    pub const COUNT_MAX: usize = 8;
}
