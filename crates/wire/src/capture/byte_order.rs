//! The order of bytes in the numbers of a capture file.

/// The order of bytes in the numbers of a capture file: that of the machine that wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The 16-bit number at `offset`; `None` where it is not all inside `bytes`.
    pub(super) fn u16_at(self, bytes: &[u8], offset: usize) -> Option<u16> {
        let number = *bytes.get(offset..)?.first_chunk()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(number),
            Self::Big => u16::from_be_bytes(number),
        })
    }

    /// The 32-bit number at `offset`; `None` where it is not all inside `bytes`.
    #[inline]
    pub(super) fn u32_at(self, bytes: &[u8], offset: usize) -> Option<u32> {
        let number = *bytes.get(offset..)?.first_chunk()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(number),
            Self::Big => u32::from_be_bytes(number),
        })
    }

    /// The 64-bit number at `offset`; `None` where it is not all inside `bytes`.
    pub(super) fn u64_at(self, bytes: &[u8], offset: usize) -> Option<u64> {
        let number = *bytes.get(offset..)?.first_chunk()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(number),
            Self::Big => u64::from_be_bytes(number),
        })
    }

    /// A 16-bit number as the file holds it.
    pub(super) const fn u16_bytes(self, number: u16) -> [u8; 2] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    /// A 32-bit number as the file holds it.
    pub(super) const fn u32_bytes(self, number: u32) -> [u8; 4] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    /// A 64-bit number as the file holds it.
    pub(super) const fn u64_bytes(self, number: u64) -> [u8; 8] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }
}
