//! Captures that a plan names: files, directories and streams.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::{Entry, Files, is_compressed};

/// A capture to read.
#[derive(Clone, Debug)]
pub struct Input {
    files: Arc<dyn Files>,
    path: PathBuf,
    entry: Entry,
}

/// Error of opening inputs.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The input does not open.
    #[error("{input}: cannot open: {error}")]
    Open {
        /// Name of the input.
        input: String,
        /// Reason from the system.
        error: io::Error,
    },
    /// The directory has no capture.
    #[error("{0}: no capture in this directory: expected pcap or pcapng files")]
    EmptyDirectory(String),
    /// The plan names no capture.
    #[error("no capture named: give files, directories, or - for standard input")]
    Nothing,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.files.name(&self.path))
    }
}

impl Input {
    /// Opens the capture, decompressed.
    ///
    /// # Errors
    /// Returns [`InputError::Open`].
    pub fn open(&self) -> Result<Box<dyn Read + Send>, InputError> {
        let open_error = |error| InputError::Open { input: self.to_string(), error };
        self.files.open_capture(&self.path).map_err(open_error)
    }

    /// Returns the path, as the plan names it, or below a directory that the plan names.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the capture can be read only once, and may arrive slowly.
    pub fn is_stream(&self) -> bool {
        self.entry == Entry::Stream
    }

    /// Returns the length in bytes of an uncompressed file; `None` for streams, compressed and
    /// unreadable files, and files of less than 4 bytes.
    pub fn plain_length(&self) -> Option<u64> {
        let Entry::File { length } = self.entry else { return None };
        let mut start = [0; 4];
        self.files.open(&self.path).ok()?.read_exact(&mut start).ok()?;
        (!is_compressed(&start)).then_some(length)
    }
}

/// Returns the captures that paths name. A directory stands for all captures in and below it,
/// sorted by name.
///
/// # Errors
/// Fails if a path does not open, a directory has no captures, or `paths` is empty.
pub fn expand_inputs(paths: &[PathBuf], files: &Arc<dyn Files>) -> Result<Vec<Input>, InputError> {
    let mut inputs = Vec::new();
    for path in paths {
        let open_error = |error| InputError::Open { input: files.name(path), error };
        match files.entry(path).map_err(open_error)? {
            Entry::Directory(below) => {
                let before = inputs.len();
                walk(below, files, &mut inputs).map_err(open_error)?;
                if inputs.len() == before {
                    return Err(InputError::EmptyDirectory(files.name(path)));
                }
            }
            entry => {
                inputs.push(Input { files: Arc::clone(files), path: path.clone(), entry });
            }
        }
    }
    if inputs.is_empty() { Err(InputError::Nothing) } else { Ok(inputs) }
}

/// Adds the captures among `paths` and below them.
fn walk(paths: Vec<PathBuf>, files: &Arc<dyn Files>, inputs: &mut Vec<Input>) -> io::Result<()> {
    for path in paths {
        match files.entry(&path) {
            Ok(Entry::Directory(below)) => walk(below, files, inputs)?,
            Ok(entry @ Entry::File { .. }) if looks_like_capture(&**files, &path) => {
                inputs.push(Input { files: Arc::clone(files), path, entry });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a file starts like a capture or a compressed file. Other files in directories of
/// captures, such as notes and checksums, are skipped.
fn looks_like_capture(files: &dyn Files, path: &Path) -> bool {
    // pcap with microseconds and nanoseconds in both byte orders, and pcapng.
    const MAGICS: [[u8; 4]; 5] = [
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x0a, 0x0d, 0x0d, 0x0a],
    ];
    let mut start = [0; 4];
    files.open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && (MAGICS.contains(&start) || is_compressed(&start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{AttachedFiles, HostFiles};

    const PCAP_HEADER: [u8; 24] =
        [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];

    fn names(paths: &[PathBuf], files: Arc<dyn Files>) -> Vec<String> {
        let inputs = expand_inputs(paths, &files).unwrap();
        inputs.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn directory_expands_to_its_captures_sorted_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        let captures = ["a.pcap", "b/x.pcap", "c.pcap"];
        for name in captures {
            std::fs::write(folder.path().join(name), PCAP_HEADER).unwrap();
        }
        std::fs::write(folder.path().join("README"), "notes").unwrap();
        let expected = captures.map(|name| folder.path().join(name).display().to_string());
        assert_eq!(names(&[folder.path().to_owned()], Arc::new(HostFiles)), expected);

        let attached = captures.map(|name| (name.into(), Arc::from(PCAP_HEADER)));
        let attached = AttachedFiles::new(attached);
        assert_eq!(names(&["".into()], Arc::new(attached)), captures);
    }

    #[test]
    fn missing_inputs_are_named() {
        let files: Arc<dyn Files> = Arc::new(HostFiles);
        let missing = expand_inputs(&["no/such.pcap".into()], &files).unwrap_err();
        assert!(missing.to_string().starts_with("no/such.pcap: cannot open:"), "{missing}");
        let folder = tempfile::tempdir().unwrap();
        let empty = expand_inputs(&[folder.path().to_owned()], &files).unwrap_err();
        assert!(matches!(empty, InputError::EmptyDirectory(_)));
    }
}
