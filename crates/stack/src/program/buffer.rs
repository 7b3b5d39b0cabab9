//! Buffers that programs send.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use wirestorm_wire::checksum;

/// Identifier of a buffer in [`Buffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferId(u32);

/// Bytes to send: a prefix, then a repeated fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    bytes: Box<[u8]>,
    /// Not empty if `size` is greater than the length of `bytes`.
    fill: Box<[u8]>,
    size: u32,
    /// One's complement sum of the first 8 bytes of `bytes`, of the first 16, and so on.
    sums: Box<[u16]>,
}

/// Distance of the stored sums in bytes: the sum of a segment then reads only its last few bytes.
const STEP: usize = 8;

impl Buffer {
    /// Largest size in bytes at which the fill is stored expanded.
    const EXPANDED_MAX: u32 = 1 << 20;

    /// Largest size in bytes that a connection sends. Sequence numbers of a buffer's bytes, and of
    /// those sent before, must be comparable (RFC 9293 section 3.4).
    pub const SIZE_MAX: u32 = 1 << 30;

    /// Creates a buffer: `bytes`, then repetitions of `fill` up to `size` bytes. An empty `fill`
    /// stands for the bytes 0 to 255. A `size` below the length of `bytes` counts as that length. A
    /// connection takes at most [`Self::SIZE_MAX`] bytes.
    pub fn new(bytes: &[u8], size: u32, fill: &[u8]) -> Self {
        let counted: Vec<u8> = (0..=u8::MAX).collect();
        let fill = if fill.is_empty() { &counted } else { fill };
        let size = size.max(bytes.len() as u32);
        let mut bytes = bytes.to_vec();
        if size <= Self::EXPANDED_MAX {
            let missing = size as usize - bytes.len();
            bytes.extend(fill.iter().cycle().take(missing));
        }
        let mut sum = 0;
        let add = |step: &[u8; STEP]| {
            sum = checksum::combine(sum, checksum::sum(step));
            sum
        };
        let sums = bytes.as_chunks().0.iter().map(add).collect();
        Self { bytes: bytes.into(), fill: fill.into(), size, sums }
    }

    /// Creates consecutive buffers of at most [`Self::SIZE_MAX`] bytes with the same content as
    /// [`Self::new`].
    pub fn in_pieces(bytes: &[u8], size: u32, fill: &[u8]) -> Vec<Self> {
        let counted: Vec<u8> = (0..=u8::MAX).collect();
        let fill = if fill.is_empty() { &counted } else { fill };
        let mut pieces = vec![Self::new(bytes, size.min(Self::SIZE_MAX), fill)];
        let mut done = pieces[0].size;
        while done < size {
            let filled = done as usize - bytes.len();
            let mut fill = fill.to_vec();
            let turn = filled % fill.len();
            fill.rotate_left(turn);
            let piece = Self::new(&[], (size - done).min(Self::SIZE_MAX), &fill);
            done += piece.size;
            pieces.push(piece);
        }
        pieces
    }

    /// Returns the size in bytes.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Copies the bytes from `offset` on to `to`, and returns their one's complement sum.
    ///
    /// # Panics
    /// If `to` reaches beyond the end of the buffer.
    #[inline]
    pub fn copy(&self, offset: u32, to: &mut [u8]) -> u16 {
        let start = offset as usize;
        assert!(start + to.len() <= self.size as usize, "beyond the end of a buffer");
        match self.bytes.get(start..start + to.len()) {
            Some(bytes) => {
                to.copy_from_slice(bytes);
                self.sum(start, bytes)
            }
            None => self.copy_filled(start, to),
        }
    }

    /// Returns the one's complement sum of `bytes`, which start at `start`.
    #[inline]
    fn sum(&self, start: usize, bytes: &[u8]) -> u16 {
        if !start.is_multiple_of(STEP) {
            return checksum::sum(bytes);
        }
        let before = |place: usize| match place / STEP {
            0 => 0,
            steps => self.sums[steps - 1],
        };
        let aligned = bytes.len() - bytes.len() % STEP;
        let aligned_sum = checksum::combine(before(start + aligned), !before(start));
        match &bytes[aligned..] {
            [] => aligned_sum,
            rest => checksum::combine(aligned_sum, checksum::sum(rest)),
        }
    }

    fn copy_filled(&self, start: usize, to: &mut [u8]) -> u16 {
        let literal = self.bytes.get(start..).unwrap_or_default();
        let (first, rest) = to.split_at_mut(literal.len());
        first.copy_from_slice(literal);
        let mut place = (start + literal.len() - self.bytes.len()) % self.fill.len();
        for byte in rest {
            *byte = self.fill[place];
            place = if place + 1 == self.fill.len() { 0 } else { place + 1 };
        }
        checksum::sum(to)
    }
}

/// All buffers of the programs of a run.
#[derive(Clone, Debug, Default)]
pub struct Buffers(Vec<Buffer>);

impl Buffers {
    /// Adds a buffer.
    pub fn push(&mut self, buffer: Buffer) -> BufferId {
        self.0.push(buffer);
        BufferId(self.0.len() as u32 - 1)
    }

    /// Returns an identifier of no buffer, for a flow that has not sent yet.
    pub(crate) const fn nothing(&self) -> BufferId {
        BufferId(u32::MAX)
    }

    /// Returns the size of the largest buffer in bytes.
    pub fn size_max(&self) -> u32 {
        self.0.iter().map(Buffer::size).max().unwrap_or(0)
    }

    /// Returns the buffer with an identifier.
    ///
    /// # Panics
    /// If this collection has no such buffer.
    #[inline]
    pub fn get(&self, id: BufferId) -> &Buffer {
        &self.0[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_returns_any_part_and_its_sum() {
        let literal: Vec<u8> = (0..50).map(|byte: u8| byte.wrapping_mul(37)).collect();
        for size in [50, 75, 1_000, Buffer::EXPANDED_MAX + 5] {
            let buffer = Buffer::new(&literal, size, &[1, 2, 3]);
            assert_eq!(buffer.size(), size);
            let byte = |place: usize| match literal.get(place) {
                Some(byte) => *byte,
                None => [1, 2, 3][(place - literal.len()) % 3],
            };
            for start in (0..50).chain([size as usize - 40]) {
                for length in 0..40.min(size as usize - start) {
                    let mut copied = vec![0; length];
                    let sum = buffer.copy(start as u32, &mut copied);
                    let expected: Vec<u8> = (start..start + length).map(byte).collect();
                    assert_eq!(copied, expected, "{length} from {start}");
                    assert_eq!(sum % 0xffff, checksum::sum(&copied) % 0xffff);
                }
            }
        }
    }
    #[test]
    fn pieces_equal_the_whole_buffer() {
        let literal: Vec<u8> = (0..50).map(|byte: u8| byte.wrapping_mul(37)).collect();
        for fill in [&[][..], &[1, 2, 3, 4, 5, 6, 7]] {
            let size = u32::MAX;
            let pieces = Buffer::in_pieces(&literal, size, fill);
            let sizes: Vec<u32> = pieces.iter().map(Buffer::size).collect();
            assert_eq!(sizes, [1 << 30, 1 << 30, 1 << 30, (1 << 30) - 1]);
            let reference = Buffer::new(&literal, size, fill);
            let [mut expected, mut copied] = [[0; 100]; 2];
            for (piece, buffer) in pieces.iter().enumerate() {
                for start in [0, buffer.size() - 100] {
                    reference.copy(piece as u32 * Buffer::SIZE_MAX + start, &mut expected);
                    buffer.copy(start, &mut copied);
                    assert_eq!(copied, expected, "{start} of {piece}");
                }
            }
        }
        let one = Buffer::in_pieces(&literal, 60, &[]);
        assert_eq!(one, [Buffer::new(&literal, 60, &[])]);
    }
}
