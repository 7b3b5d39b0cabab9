//! What a flow begins with.

/// Bytes of the first data of a flow: where each stands, which of its bits are looked at, and what
/// they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstBytes(pub Vec<(u8, u8, u8)>);

impl FirstBytes {
    /// The most bytes that are looked at.
    pub const COUNT_MAX: usize = 8;
}
