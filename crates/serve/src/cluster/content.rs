//! Files and large plans of a test in the object store of the bus.
//!
//! A content has the name of its SHA-256, and is stored in pieces, so that nobody holds all of it in
//! memory. A signed order names the contents that an agent needs. So a content that somebody changed
//! on the bus is known as such.

use std::io::{self, Read};
use std::path::Path;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

/// Bytes of a piece, which is an object.
const PIECE_BYTES: u64 = 4 << 20;
/// Largest size of all contents of a test together in bytes.
pub(super) const CONTENTS_BYTES_MAX: u64 = 1 << 30;
/// Most contents of a test: an order that names all has to fit a message.
pub(super) const CONTENTS_MAX: usize = 1_000;

/// A content of a test, as orders name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    /// SHA-256, as 64 lower-case hexadecimal digits.
    pub(super) sha256: String,
    /// Length in bytes.
    pub(super) bytes: u64,
}

/// A piece of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Name of its object.
    pub(super) object: String,
    /// Length in bytes.
    pub(super) bytes: usize,
}

impl Content {
    /// Reads a file to its end.
    ///
    /// # Errors
    /// It does not read, or is longer than all contents of a test may be.
    pub(super) fn of(mut reader: impl Read) -> io::Result<Self> {
        let mut digest = Digest::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = match reader.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            digest.update(buffer.get(..read).unwrap_or_default());
            if digest.bytes > CONTENTS_BYTES_MAX {
                return Err(io::Error::other(too_large(digest.bytes)));
            }
            if read == 0 {
                return Ok(digest.finish());
            }
        }
    }

    /// Returns the pieces in order. `test`: identifier of the test.
    pub(super) fn pieces(&self, test: &str) -> impl Iterator<Item = Piece> {
        (0..self.bytes.div_ceil(PIECE_BYTES)).map(move |number| Piece {
            object: format!("{test}.{}.{number}", self.sha256),
            bytes: (self.bytes - number * PIECE_BYTES).min(PIECE_BYTES) as usize,
        })
    }

    /// Returns whether `sha256` is one, so that it is safe as the name of a file.
    pub(super) fn has_digest(&self) -> bool {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        self.sha256.len() == 64 && self.sha256.bytes().all(is_digit)
    }
}

/// Returns an error about the size of a test's contents.
pub(super) fn too_large(bytes: u64) -> String {
    format!(
        "{bytes} bytes or more; the files and plans of a test together may have \
         {CONTENTS_BYTES_MAX}: compress captures with zstd, or use shorter ones"
    )
}

/// Checks the number and the size of all contents of a test.
///
/// # Errors
/// A message that has both values.
pub(super) fn check_all<'c>(contents: impl Iterator<Item = &'c Content>) -> Result<(), String> {
    let (mut count, mut bytes) = (0_usize, 0_u64);
    for content in contents {
        (count, bytes) = (count + 1, bytes.saturating_add(content.bytes));
    }
    if count > CONTENTS_MAX {
        return Err(format!("{count} files and plans; a test may have at most {CONTENTS_MAX}"));
    }
    if bytes > CONTENTS_BYTES_MAX { Err(too_large(bytes)) } else { Ok(()) }
}

/// SHA-256 and length of what was read so far.
pub(super) struct Digest {
    context: Context,
    bytes: u64,
}

impl Digest {
    pub(super) fn new() -> Self {
        Self { context: Context::new(&SHA256), bytes: 0 }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub(super) fn finish(self) -> Content {
        let digest = self.context.finish();
        let sha256 = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Content { sha256, bytes: self.bytes }
    }
}

/// Returns the name of a file in a plan as text, which orders need.
///
/// # Errors
/// It is not UTF-8.
pub(super) fn name_of(path: &Path) -> Result<String, String> {
    let name = path.to_str().map(str::to_owned);
    name.ok_or_else(|| format!("{}: expected a name in UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_has_its_digest_and_pieces() {
        let content = Content::of(&b"abc"[..]).unwrap();
        // FIPS 180-4, example of SHA-256.
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(content, Content { sha256: sha256.into(), bytes: 3 });
        let pieces = |bytes: u64| -> Vec<(String, usize)> {
            let content = Content { sha256: "00".into(), bytes };
            content.pieces("t1").map(|piece| (piece.object, piece.bytes)).collect()
        };
        let full = PIECE_BYTES as usize;
        assert_eq!(pieces(0), []);
        assert_eq!(pieces(PIECE_BYTES), [("t1.00.0".to_owned(), full)]);
        let two = [("t1.00.0".to_owned(), full), ("t1.00.1".to_owned(), 1)];
        assert_eq!(pieces(PIECE_BYTES + 1), two);
    }

    #[test]
    fn only_a_digest_is_a_name_of_a_file() {
        let has = |sha256: &str| Content { sha256: sha256.into(), bytes: 1 }.has_digest();
        assert!(has(&"0f".repeat(32)));
        for name in ["", "../../etc/passwd", &"0F".repeat(32), &"0f".repeat(31), &"é".repeat(32)] {
            assert!(!has(name), "{name:?}");
        }
    }

    #[test]
    fn number_and_size_of_contents_are_bounded() {
        let content = |bytes| Content { sha256: String::new(), bytes };
        let half = content(CONTENTS_BYTES_MAX / 2);
        check_all([&half, &half].into_iter()).unwrap();
        let error = check_all([&half, &half, &content(1)].into_iter()).unwrap_err();
        assert!(error.contains("1073741825 bytes") && error.contains("1073741824"), "{error}");
        let many = vec![content(0); CONTENTS_MAX + 1];
        assert!(check_all(many.iter()).unwrap_err().contains("1001 files"));
        check_all(many[1..].iter()).unwrap();
        let error = Content::of(io::repeat(1)).unwrap_err().to_string();
        assert!(error.contains("compress captures"), "{error}");
    }
}
