//! TRex's framing of compressed messages: magic, length of the text, zlib stream.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// First bytes of a compressed message.
const MAGIC: [u8; 4] = 0xabe8_5cea_u32.to_be_bytes();
const HEADER_BYTES: usize = 8;
/// Maximum length of a request, also after decompression. TRex accepts 999,999 bytes.
pub(super) const REQUEST_BYTES_MAX: usize = 64 << 20;

/// Text of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unpacked {
    /// The text.
    pub(super) text: Vec<u8>,
    /// Whether it was compressed. The answer is compressed if the request is.
    pub(super) is_compressed: bool,
}

/// Returns the text of a message. Like TRex, takes a message that does not decompress as text.
///
/// # Errors
/// The text is too long; the value is the length that the message claims.
pub(super) fn unpack(message: &[u8]) -> Result<Unpacked, usize> {
    let plain = || Unpacked { text: message.to_vec(), is_compressed: false };
    if message.len() > REQUEST_BYTES_MAX {
        return Err(message.len());
    }
    let Some((MAGIC, rest)) = message.split_first_chunk().map(|(head, rest)| (*head, rest)) else {
        return Ok(plain());
    };
    let Some((length, stream)) = rest.split_first_chunk() else { return Ok(plain()) };
    let length = u32::from_be_bytes(*length) as usize;
    if length > REQUEST_BYTES_MAX {
        return Err(length);
    }
    // A stream that is longer than it claims does not grow the buffer further.
    let mut text = Vec::with_capacity(length.min(stream.len().saturating_mul(16)));
    let read = ZlibDecoder::new(stream).take(length as u64 + 1).read_to_end(&mut text);
    Ok(match read {
        Ok(found) if found == length => Unpacked { text, is_compressed: true },
        _ => plain(),
    })
}

/// Returns a compressed message.
pub(super) fn pack(text: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER_BYTES + text.len() / 4);
    message.extend(MAGIC);
    message.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    let mut encoder = ZlibEncoder::new(message, Compression::fast());
    // Writing to memory does not fail.
    let _ = encoder.write_all(text);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_message_has_magic_and_length() {
        let text = b"{\"jsonrpc\": \"2.0\"}".repeat(20);
        let message = pack(&text);
        assert_eq!(&message[..4], b"\xab\xe8\x5c\xea");
        assert_eq!(message[4..8], (text.len() as u32).to_be_bytes());
        assert_eq!(unpack(&message), Ok(Unpacked { text, is_compressed: true }));
    }

    #[test]
    fn text_and_invalid_streams_stay_as_they_are() {
        let mut wrong_length = pack(b"[1, 2, 3]");
        wrong_length[7] -= 1;
        let mut cut = pack(b"[1, 2, 3]");
        cut.truncate(12);
        for message in [&b"{}"[..], b"", &MAGIC, &wrong_length, &cut] {
            let expected = Unpacked { text: message.to_vec(), is_compressed: false };
            assert_eq!(unpack(message), Ok(expected));
        }
    }

    #[test]
    fn decompression_bomb_stops_at_its_claimed_length() {
        let mut bomb = pack(&vec![0; 32 << 20]);
        assert!(bomb.len() < 1 << 20);
        bomb[4..8].copy_from_slice(&1_000_u32.to_be_bytes());
        assert!(!unpack(&bomb).unwrap().is_compressed);
        bomb[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(unpack(&bomb), Err(u32::MAX as usize));
    }
}
