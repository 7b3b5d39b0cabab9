//! Cache files of tcpprep, which list the output side of each packet of a capture.

use alloc::vec::Vec;

use super::Side;

/// tcpprep cache file, version 04.
///
/// ```text
/// 0   8  "tcpprep", 0
/// 8   4  "04", 0, 0
/// 12  8  number of packets     (big endian, as all that follows)
/// 20  2  packets in a byte: 4
/// 22  2  length of the comment
/// 24  n  comment
/// ..     2 bits for each packet, lowest first: primary, send
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheFile {
    packets: u64,
    comment: Vec<u8>,
    /// Two bits for each packet.
    marks: Vec<u8>,
}

/// Errors of a cache file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// The file is not a tcpprep cache file.
    #[error("not a tcpprep cache file: begins with {found:02x?}, expected \"tcpprep\" and a zero")]
    BadMagic {
        /// First bytes of the file.
        found: Vec<u8>,
    },
    /// The file has another version.
    #[error("tcpprep cache of version {found:?}, expected \"04\"; make it again with tcpprep 4")]
    BadVersion {
        /// Version field of the file.
        found: [char; 4],
    },
    /// The file has another number of packets in a byte.
    #[error("tcpprep cache with {found} packets in a byte, expected 4; make it again")]
    BadPacketsPerByte {
        /// Packets in a byte, from the header.
        found: u16,
    },
    /// The file is truncated.
    #[error("tcpprep cache of {found} bytes, expected {expected} for {packets} packets")]
    Truncated {
        /// Length of the file in bytes.
        found: usize,
        /// Length that the header implies.
        expected: u64,
        /// Number of packets, if the header is complete.
        packets: u64,
    },
    /// The capture has more packets than the cache.
    #[error(
        "the tcpprep cache has {packets} packets, and the capture has more; make the cache \
         from this capture"
    )]
    Exhausted {
        /// Number of packets in the cache.
        packets: u64,
    },
}

const MAGIC: [u8; 8] = *b"tcpprep\0";
const VERSION: [u8; 4] = *b"04\0\0";
const HEADER_LENGTH: usize = 24;
const PACKETS_PER_BYTE: u64 = 4;
const PRIMARY: u8 = 1;
const SEND: u8 = 2;

impl CacheFile {
    /// Parses a complete file.
    ///
    /// # Errors
    /// Returns an error if the file has another format or version, or is shorter than its header
    /// states. Bytes after the marks are ignored.
    pub fn parse(file: &[u8]) -> Result<Self, CacheError> {
        let magic = file.get(..MAGIC.len()).unwrap_or(file);
        if magic != MAGIC {
            return Err(CacheError::BadMagic { found: magic.to_vec() });
        }
        let too_short =
            |expected, packets| CacheError::Truncated { found: file.len(), expected, packets };
        let Some(header) = file.first_chunk::<HEADER_LENGTH>() else {
            return Err(too_short(HEADER_LENGTH as u64, 0));
        };
        let [_, _, _, _, _, _, _, _, version @ .., _, _, _, _, _, _, _, _, _, _, _, _] = *header;
        if version != VERSION {
            return Err(CacheError::BadVersion { found: version.map(char::from) });
        }
        let [.., a, b, c, d, e, f, g, h, i, j, k, l] = *header;
        let packets = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let packets_per_byte = u16::from_be_bytes([i, j]);
        if u64::from(packets_per_byte) != PACKETS_PER_BYTE {
            return Err(CacheError::BadPacketsPerByte { found: packets_per_byte });
        }
        let comment_length = u16::from_be_bytes([k, l]);
        let marks_length = packets.div_ceil(PACKETS_PER_BYTE);
        let marks_start = HEADER_LENGTH as u64 + u64::from(comment_length);
        let expected = marks_start.saturating_add(marks_length);
        if (file.len() as u64) < expected {
            return Err(too_short(expected, packets));
        }
        // Both offsets lie within the file, so they fit into a `usize`.
        let (start, end) = (marks_start as usize, expected as usize);
        Ok(Self {
            packets,
            comment: file.get(HEADER_LENGTH..start).unwrap_or_default().to_vec(),
            marks: file.get(start..end).unwrap_or_default().to_vec(),
        })
    }

    /// Returns the number of packets in the cache.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the comment in the file: by default the command that made it.
    pub fn comment(&self) -> &[u8] {
        self.comment.trim_ascii()
    }

    /// Returns the side of packet `number`, counted from 1; `None` beyond the last packet.
    #[inline]
    pub fn lookup(&self, number: u64) -> Option<Side> {
        let index = number.checked_sub(1).filter(|index| *index < self.packets)?;
        let byte = self.marks.get(usize::try_from(index / PACKETS_PER_BYTE).ok()?)?;
        let mark = byte >> (index % PACKETS_PER_BYTE * 2) & (PRIMARY | SEND);
        Some(match (mark & SEND != 0, mark & PRIMARY != 0) {
            (true, true) => Side::Primary,
            (true, false) => Side::Secondary,
            (false, _) => Side::Excluded,
        })
    }

    /// Returns the side of packet `number`, counted from 1.
    ///
    /// # Errors
    /// Returns an error beyond the last packet: the cache belongs to another capture.
    #[inline]
    pub fn side(&self, number: u64) -> Result<Side, CacheError> {
        self.lookup(number).ok_or(CacheError::Exhausted { packets: self.packets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn file(packets: u64, comment: &str, marks: &[u8]) -> Vec<u8> {
        [
            &b"tcpprep\0"[..],
            b"04\0\0",
            &packets.to_be_bytes(),
            &4_u16.to_be_bytes(),
            &(comment.len() as u16).to_be_bytes(),
            comment.as_bytes(),
            marks,
        ]
        .concat()
    }

    #[test]
    fn sides_are_read_from_the_lowest_bits_first() {
        let cache = CacheFile::parse(&file(5, "\nhere", &[0b00_11_10_11, 0b10])).unwrap();
        let sides: Vec<_> = (0..7).map(|number| cache.lookup(number)).collect();
        let expected = [
            None,
            Some(Side::Primary),
            Some(Side::Secondary),
            Some(Side::Primary),
            Some(Side::Excluded),
            Some(Side::Secondary),
            None,
        ];
        assert_eq!(sides, expected);
        assert_eq!(cache.comment(), b"here");
    }

    #[test]
    fn packet_beyond_the_cache_is_an_error() {
        let cache = CacheFile::parse(&file(5, "", &[0xff, 0xff])).unwrap();
        assert_eq!(cache.side(5), Ok(Side::Primary));
        let error = cache.side(6).unwrap_err().to_string();
        assert!(error.contains("has 5 packets, and the capture has more"), "{error}");
    }

    #[test]
    fn other_files_are_rejected_with_the_found_value() {
        let mut other = file(1, "", &[3]);
        other[8..12].copy_from_slice(b"03\0\0");
        let error = CacheFile::parse(&other).unwrap_err();
        assert_eq!(error, CacheError::BadVersion { found: ['0', '3', '\0', '\0'] });
        let error = CacheFile::parse(b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0").unwrap_err().to_string();
        assert!(error.contains("d4, c3, b2, a1"), "{error}");
        let mut other = file(1, "", &[3]);
        other[21] = 8;
        let error = CacheFile::parse(&other).unwrap_err();
        assert_eq!(error, CacheError::BadPacketsPerByte { found: 8 });
    }

    #[test]
    fn truncated_file_is_rejected_at_every_length() {
        let bytes = file(9, "comment", &[0xff; 3]);
        for length in 0..bytes.len() {
            assert!(CacheFile::parse(&bytes[..length]).is_err(), "{length} bytes");
        }
        let error = CacheFile::parse(&bytes[..33]).unwrap_err();
        assert_eq!(error, CacheError::Truncated { found: 33, expected: 34, packets: 9 });
        let boundless = file(u64::MAX, "", &[0xff; 3]);
        assert!(matches!(CacheFile::parse(&boundless), Err(CacheError::Truncated { .. })));
    }

    proptest! {
        #[test]
        fn parser_never_panics(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            number: u64,
        ) {
            let header = [&b"tcpprep\x0004\0\0"[..], &bytes].concat();
            for file in [&bytes, &header] {
                if let Ok(cache) = CacheFile::parse(file) {
                    let known = (1..=cache.packets()).contains(&number);
                    prop_assert_eq!(cache.lookup(number).is_some(), known);
                }
            }
        }
    }
}
