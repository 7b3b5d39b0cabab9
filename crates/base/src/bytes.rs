//! Reading of big-endian numbers from the front of bytes.

/// The bytes of a message that are not read yet.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the unread bytes.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Reads the next `length` bytes; `None` if there are fewer.
    pub fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Reads the next `N` bytes; `None` if there are fewer.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    /// Reads a byte; `None` if there is none.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    /// Reads a signed byte; `None` if there is none.
    pub fn i8(&mut self) -> Option<i8> {
        self.array().map(i8::from_be_bytes)
    }

    /// Reads a number of two bytes; `None` if there is none.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads a signed number of two bytes; `None` if there is none.
    pub fn i16(&mut self) -> Option<i16> {
        self.array().map(i16::from_be_bytes)
    }

    /// Reads a number of four bytes; `None` if there is none.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a signed number of eight bytes; `None` if there is none.
    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_big_endian_and_an_end_is_none() {
        let mut reader = Reader::new(&[1, 0xff, 0, 2, 0xff, 0xfe, 9]);
        assert_eq!((reader.u8(), reader.i8()), (Some(1), Some(-1)));
        assert_eq!((reader.u16(), reader.i16()), (Some(2), Some(-2)));
        assert_eq!((reader.u32(), reader.i64(), reader.bytes(2)), (None, None, None));
        assert_eq!(reader.rest(), [9]);
        assert_eq!(reader.array(), Some([9]));
        assert_eq!(reader.u8(), None);
    }
}
