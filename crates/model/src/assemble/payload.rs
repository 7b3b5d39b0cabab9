//! Payload behind the headers of a frame.

use alloc::vec::Vec;

/// Payload behind the headers of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// No payload: the packet ends with its headers. Zeros pad the frame, and no length or checksum
    /// covers them.
    Padding,
    /// Zeros.
    Zeros,
    /// Repeats these bytes.
    Pattern(Vec<u8>),
    /// Bytes that count up from this value; 0 follows 255.
    IncrementingBytes(u8),
    /// 16-bit words that count up from this value; 0 follows 65535.
    IncrementingWords(u16),
    /// These bytes, padded with zeros.
    Bytes(Vec<u8>),
}

impl Payload {
    /// Returns a payload of UTF-8 text, padded with zeros.
    pub fn text(text: &str) -> Self {
        Self::Bytes(text.into())
    }

    /// Returns the minimum length of the payload.
    pub(super) fn length_min(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// Fills `room`, which contains zeros.
    pub(super) fn write(&self, room: &mut [u8]) {
        match self {
            Self::Padding | Self::Zeros => {}
            Self::Pattern(pattern) => {
                for (byte, value) in room.iter_mut().zip(pattern.iter().cycle()) {
                    *byte = *value;
                }
            }
            Self::IncrementingBytes(start) => {
                for (index, byte) in room.iter_mut().enumerate() {
                    *byte = start.wrapping_add(index as u8);
                }
            }
            Self::IncrementingWords(start) => {
                for (index, word) in room.chunks_mut(2).enumerate() {
                    let value = start.wrapping_add(index as u16).to_be_bytes();
                    for (byte, value) in word.iter_mut().zip(value) {
                        *byte = value;
                    }
                }
            }
            Self::Bytes(bytes) => {
                for (byte, value) in room.iter_mut().zip(bytes) {
                    *byte = *value;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(payload: &Payload) -> [u8; 5] {
        let mut room = [0; 5];
        payload.write(&mut room);
        room
    }

    #[test]
    fn every_payload_kind_fills_the_frame() {
        assert_eq!(written(&Payload::Pattern([1, 2].into())), [1, 2, 1, 2, 1]);
        assert_eq!(written(&Payload::Pattern(Vec::new())), [0; 5]);
        assert_eq!(written(&Payload::IncrementingBytes(254)), [254, 255, 0, 1, 2]);
        assert_eq!(written(&Payload::IncrementingWords(0xffff)), [0xff, 0xff, 0, 0, 0]);
        assert_eq!(written(&Payload::text("abc")), *b"abc\0\0");
        assert_eq!(written(&Payload::Zeros), [0; 5]);
        assert_eq!(written(&Payload::Padding), [0; 5]);
    }
}
