//! Byte order of numbers in a capture file.

/// Byte order of numbers in a capture file, usually that of the machine that wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// Returns the 16-bit number at `offset`; `None` if it exceeds `bytes`.
    pub(super) fn u16_at(self, bytes: &[u8], offset: usize) -> Option<u16> {
        let number = *bytes.get(offset..)?.first_chunk()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(number),
            Self::Big => u16::from_be_bytes(number),
        })
    }

    /// Returns the 32-bit number at `offset`; `None` if it exceeds `bytes`.
    #[inline]
    pub(super) fn u32_at(self, bytes: &[u8], offset: usize) -> Option<u32> {
        let number = *bytes.get(offset..)?.first_chunk()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(number),
            Self::Big => u32::from_be_bytes(number),
        })
    }

    /// Returns the 64-bit number at `offset`; `None` if it exceeds `bytes`.
    pub(super) fn u64_at(self, bytes: &[u8], offset: usize) -> Option<u64> {
        let number = *bytes.get(offset..)?.first_chunk()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(number),
            Self::Big => u64::from_be_bytes(number),
        })
    }

    /// Returns the bytes of a 16-bit number in this order.
    pub(super) const fn u16_bytes(self, number: u16) -> [u8; 2] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    /// Returns the bytes of a 32-bit number in this order.
    pub(super) const fn u32_bytes(self, number: u32) -> [u8; 4] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    /// Returns the bytes of a 64-bit number in this order.
    pub(super) const fn u64_bytes(self, number: u64) -> [u8; 8] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }
}
