//! Writing of big-endian numbers to the front of a buffer.

/// A buffer and how much of it is written. What does not fit is not written: callers check the room
/// before.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Writes to the first `length_max` bytes of a buffer.
    pub(super) fn new(buffer: &'a mut [u8], length_max: usize) -> Self {
        let length = buffer.len().min(length_max);
        Self { buffer: buffer.get_mut(..length).unwrap_or_default(), at: 0 }
    }

    /// Returns the number of written bytes.
    pub(super) const fn length(&self) -> usize {
        self.at
    }

    /// Returns the number of bytes that can still be written.
    pub(super) const fn room(&self) -> usize {
        self.buffer.len() - self.at
    }

    /// Writes the last `length` bytes of a number, at most 8.
    #[inline(always)]
    pub(super) fn number(&mut self, number: u64, length: usize) {
        let length = length.min(8);
        let word = (number << (64 - 8 * length as u32).min(63)).to_be_bytes();
        let rest = self.buffer.get_mut(self.at..).unwrap_or_default();
        // Bytes behind the number are overwritten by the next one.
        if let Some(place) = rest.first_chunk_mut() {
            *place = word;
        } else if let (Some(place), Some(bytes)) = (rest.get_mut(..length), word.get(..length)) {
            place.copy_from_slice(bytes);
        }
        self.at = (self.at + length).min(self.buffer.len());
    }

    pub(super) fn u16(&mut self, number: u16) {
        self.number(number.into(), 2);
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.number(number.into(), 4);
    }

    #[inline(always)]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if let Some(place) = self.buffer.get_mut(self.at..self.at + bytes.len()) {
            place.copy_from_slice(bytes);
            self.at += bytes.len();
        }
    }

    /// Writes zeros.
    pub(super) fn zeros(&mut self, count: usize) {
        let count = count.min(self.room());
        if let Some(place) = self.buffer.get_mut(self.at..self.at + count) {
            place.fill(0);
            self.at += count;
        }
    }

    /// Writes zeros up to the next multiple of 4 bytes behind `start`.
    pub(super) fn pad(&mut self, start: usize) {
        self.zeros((self.at - start).wrapping_neg() & 3);
    }

    /// Overwrites 16 bits at an earlier place.
    pub(super) fn set_u16(&mut self, at: usize, number: usize) {
        if let Some(place) = self.buffer.get_mut(at..at + 2) {
            place.copy_from_slice(&(number as u16).to_be_bytes());
        }
    }

    /// Overwrites 32 bits at an earlier place.
    pub(super) fn set_u32(&mut self, at: usize, number: u32) {
        if let Some(place) = self.buffer.get_mut(at..at + 4) {
            place.copy_from_slice(&number.to_be_bytes());
        }
    }
}
