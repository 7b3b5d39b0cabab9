//! First bytes of a flow, which select one of several servers at a port.

/// Bytes to match in the first data of a flow: offset from 0, bit mask, and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstBytes(pub Vec<(u8, u8, u8)>);

impl FirstBytes {
    /// Maximum number of bytes.
    pub const COUNT_MAX: usize = 8;
}
