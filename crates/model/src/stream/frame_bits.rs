//! Bits of a frame by whose values a receiver counts.

/// Successive bits of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameBits {
    /// Offset of the first bit, from the most significant bit of the first byte.
    pub bit_offset: usize,
    /// Number of bits, at most [`Self::LENGTH_MAX`].
    pub bit_length: usize,
}

impl FrameBits {
    /// Maximum number of bits.
    pub const LENGTH_MAX: usize = 128;

    /// Returns the bits as a number; `None` if the frame is too short or there are too many bits.
    ///
    /// ```
    /// use wirestorm_model::stream::FrameBits;
    ///
    /// let bits = FrameBits { bit_offset: 4, bit_length: 12 };
    /// assert_eq!(bits.read(&[0x12, 0x34]), Some(0x234));
    /// assert_eq!(bits.read(&[0x12]), None);
    /// ```
    pub fn read(self, frame: &[u8]) -> Option<u128> {
        let end = self.bit_offset.checked_add(self.bit_length)?;
        if self.bit_length == 0 || self.bit_length > Self::LENGTH_MAX {
            return None;
        }
        let bytes = frame.get(self.bit_offset / 8..end.div_ceil(8))?;
        // The first byte may have bits before the first one, and the last byte bits behind the last.
        let (first, rest) = bytes.split_first()?;
        let before = 0xff >> (self.bit_offset % 8);
        let behind = end.div_ceil(8) * 8 - end;
        let (last, middle) = match rest.split_last() {
            Some((last, middle)) => (Some(*last), middle),
            None => (None, rest),
        };
        let value = middle
            .iter()
            .fold(u128::from(first & before), |sum, byte| sum << 8 | u128::from(*byte));
        Some(match last {
            Some(last) => value << (8 - behind) | u128::from(last >> behind),
            None => value >> behind,
        })
    }
}
