//! What several tests of this crate need.

use std::path::{Path, PathBuf};
use std::process::Command;

use wirestorm_wire::capture::{CaptureError, Decoder, RecordHeader, Step};

/// What a whole capture came to.
#[derive(Debug, PartialEq)]
pub(crate) struct Decoded {
    /// Its records, up to the error.
    pub(crate) records: Vec<(RecordHeader, Vec<u8>)>,
    /// Why it ended early.
    pub(crate) error: Option<CaptureError>,
    /// Where the decoder stood at the end.
    pub(crate) position: u64,
}

/// Decodes a capture that comes in pieces whose sizes are `pieces`, again and again.
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
                // An error is final.
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

/// Decodes a capture that is there as a whole.
pub(crate) fn decode(file: &[u8]) -> Decoded {
    decode_in_pieces(file, &[usize::MAX / 2])
}

/// The real captures, in the order of their names; `None`, with a word, where they are absent.
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

/// What a program of Wireshark prints; `None`, with a word, where it is not installed.
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

/// A folder that is removed at the end.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// A new folder, named after `test` and this process.
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("wirestorm-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// The path of a file in it.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
