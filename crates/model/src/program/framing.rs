//! Amount of received data that one step consumes.

use alloc::boxed::Box;

/// Amount of received data that one step consumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageFraming {
    /// This many bytes.
    Count(u64),
    /// All bytes up to and including a delimiter.
    Until(Delimiter),
    /// An HTTP/1 message, ended by Content-Length, the last chunk or the peer's FIN. Chunked bodies
    /// are decoded.
    Http,
    /// An HTTP/1 response to HEAD, which has no body.
    HttpHead,
    /// A reply of FTP or SMTP: one line with a three-digit code, or several lines. The first of
    /// several lines has a hyphen after its code; the last has the same code without a hyphen.
    Reply,
    /// An RTSP response. Interleaved media before it is skipped.
    Rtsp,
}

/// Bytes that end a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimiter {
    bytes: Box<[u8]>,
    /// Failure function of Knuth, Morris and Pratt.
    failure_function: Box<[u16]>,
}

impl Delimiter {
    /// Maximum length in bytes.
    pub const LENGTH_MAX: usize = 1_024;

    /// Creates a delimiter; `None` if it is empty or longer than [`Self::LENGTH_MAX`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if !(1..=Self::LENGTH_MAX).contains(&bytes.len()) {
            return None;
        }
        let mut delimiter = Self { bytes: bytes.into(), failure_function: Box::new([]) };
        let mut repeats = alloc::vec![0; bytes.len()];
        let mut matched = 0;
        for place in 1..bytes.len() {
            delimiter.failure_function = repeats.as_slice().into();
            matched = delimiter.advance(matched, bytes[place]);
            repeats[place] = matched as u16;
        }
        delimiter.failure_function = repeats.into();
        Some(delimiter)
    }

    /// Returns the length in bytes, at least 1.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of matching delimiter bytes after `byte`, if `matched` matched before it.
    pub fn advance(&self, mut matched: usize, byte: u8) -> usize {
        loop {
            if self.bytes.get(matched) == Some(&byte) {
                return matched + 1;
            }
            match matched {
                0 => return 0,
                _ => matched = self.failure_function[matched - 1].into(),
            }
        }
    }
}
