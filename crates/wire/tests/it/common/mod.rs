//! Helpers for the tests of this crate.

use std::path::{Path, PathBuf};
use std::process::Command;

use wirestorm_wire::capture::{CaptureError, Decoder, RecordHeader, Step};

/// Result of decoding a whole capture.
#[derive(Debug, PartialEq)]
pub(crate) struct Decoded {
    /// Records before the error.
    pub(crate) records: Vec<(RecordHeader, Vec<u8>)>,
    /// Error that stopped the decoder.
    pub(crate) error: Option<CaptureError>,
    /// Final position of the decoder.
    pub(crate) position: u64,
}

/// Decodes a capture in pieces whose sizes repeat `pieces`.
pub(crate) fn decode_in_pieces(file: &[u8], pieces: &[usize]) -> Decoded {
    let mut decoder = Decoder::new();
    let mut decoded = Decoded { records: Vec::new(), error: None, position: 0 };
    let (mut start, mut available) = (0, 0);
    let mut pieces = pieces.iter().cycle();
    loop {
        let input = &file[start..available];
        let end_of_input = available == file.len();
        match decoder.step(input, end_of_input) {
            Ok(Step::Record { record, data, consumed }) => {
                assert!(data.end <= consumed && consumed <= input.len());
                assert_eq!(data.len(), record.captured_length as usize);
                decoded.records.push((record, input[data].to_vec()));
                start += consumed;
            }
            Ok(Step::Skipped { consumed }) => {
                assert!(0 < consumed && consumed <= input.len());
                start += consumed;
            }
            Ok(Step::NeedMore { at_least }) => {
                assert!(!end_of_input && at_least > input.len());
                available = (available + pieces.next().unwrap()).min(file.len());
            }
            Ok(Step::End) => break,
            Err(error) => {
                // The decoder must repeat the error.
                assert_eq!(decoder.step(input, end_of_input), Err(error));
                decoded.error = Some(error);
                break;
            }
        }
        assert_eq!(decoder.position(), start as u64);
        assert_eq!(decoder.records(), decoded.records.len() as u64);
    }
    decoded.position = decoder.position();
    decoded
}

/// Decodes a complete capture.
pub(crate) fn decode(file: &[u8]) -> Decoded {
    decode_in_pieces(file, &[usize::MAX / 2])
}

/// Returns the real captures, sorted by name. Prints a message and returns `None` if there are
/// none.
pub(crate) fn real_captures() -> Option<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let Ok(entries) = std::fs::read_dir(folder) else {
        println!("skipped: shared/captures is absent");
        return None;
    };
    let mut captures: Vec<_> = entries
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pcap"))
        .collect();
    captures.sort();
    assert!(!captures.is_empty(), "shared/captures holds no pcap file");
    Some(captures)
}

/// Returns the output of a Wireshark program. Prints a message and returns `None` if it is not
/// installed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {arguments:?}: {error}");
            Some(String::from_utf8(output.stdout).expect("UTF-8"))
        }
        Err(_) => {
            println!("skipped: {program} is absent");
            None
        }
    }
}

/// A temporary folder that is removed on drop.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a folder named after `test` and this process.
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("wirestorm-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
