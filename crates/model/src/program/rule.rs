//! How much of the received data one step takes.

use alloc::boxed::Box;

/// How much of the received data one step takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// This many bytes.
    Count(u64),
    /// All bytes up to these, and they.
    Until(Delimiter),
    /// An HTTP/1 message. Content-Length or the last chunk ends it, else the peer's FIN. Of a
    /// chunked body, a flow keeps only the content.
    Http,
    /// An HTTP/1 response to HEAD, which has no body.
    HttpHead,
    /// A reply of FTP or SMTP: one line with a three-digit code, or several lines. Of several, the
    /// first has a hyphen after its code, and the last has the same code without one.
    Reply,
    /// An RTSP response. Interleaved media before it is skipped.
    Rtsp,
}

/// Bytes that end a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimiter {
    bytes: Box<[u8]>,
    /// Failure function of Knuth, Morris and Pratt.
    repeats: Box<[u16]>,
}

impl Delimiter {
    /// Length in bytes, at most.
    pub const LENGTH_MAX: usize = 1_024;

    /// Returns `None` for no bytes and for more than [`Self::LENGTH_MAX`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if !(1..=Self::LENGTH_MAX).contains(&bytes.len()) {
            return None;
        }
        let mut delimiter = Self { bytes: bytes.into(), repeats: Box::new([]) };
        let mut repeats = alloc::vec![0; bytes.len()];
        let mut matched = 0;
        for place in 1..bytes.len() {
            delimiter.repeats = repeats.as_slice().into();
            matched = delimiter.step(matched, bytes[place]);
            repeats[place] = matched as u16;
        }
        delimiter.repeats = repeats.into();
        Some(delimiter)
    }

    /// Length in bytes, at least 1.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Returns how many bytes match after one more byte, if `matched` matched before it.
    pub fn step(&self, mut matched: usize, byte: u8) -> usize {
        loop {
            if self.bytes.get(matched) == Some(&byte) {
                return matched + 1;
            }
            match matched {
                0 => return 0,
                _ => matched = self.repeats[matched - 1].into(),
            }
        }
    }
}
