//! What the user named: files, directories, standard input, compressed or not.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// One capture to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// Standard input, which can be read only once.
    Standard,
}

/// Why an input cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It does not open.
    #[error("{input}: cannot open: {error}")]
    Open {
        /// What was named.
        input: String,
        /// What the system said.
        error: io::Error,
    },
    /// A directory without a capture in it.
    #[error("{}: no capture in this directory: expected pcap or pcapng files", .0.display())]
    EmptyDirectory(PathBuf),
    /// Nothing was named.
    #[error("no capture named: give files, directories, or - for standard input")]
    Nothing,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Standard => f.write_str("standard input"),
        }
    }
}

impl Input {
    /// Opens it; compressed data is decompressed on the fly.
    ///
    /// # Errors
    /// [`InputError::Open`].
    pub fn open(&self) -> Result<Box<dyn Read + Send>, InputError> {
        let open_error = |error| InputError::Open { input: self.to_string(), error };
        match self {
            Self::Standard => decompress(Box::new(io::stdin())).map_err(open_error),
            Self::File(path) => {
                let file = File::open(path).map_err(open_error)?;
                advise_sequential(&file);
                decompress(Box::new(file)).map_err(open_error)
            }
        }
    }

    /// Bytes of the file, where it is one and is not compressed.
    pub fn plain_length(&self) -> Option<u64> {
        let Self::File(path) = self else { return None };
        let mut file = File::open(path).ok()?;
        let mut start = [0; 4];
        file.read_exact(&mut start).ok()?;
        let metadata = file.metadata().ok()?;
        (metadata.is_file() && compression(&start).is_none()).then_some(metadata.len())
    }
}

/// The captures behind the names that a user gave: `-` is standard input, a directory stands for
/// the captures in it and below it, in the order of their names.
///
/// # Errors
/// A name that does not exist, a directory without captures, no name at all.
pub fn expand_inputs(names: &[PathBuf]) -> Result<Vec<Input>, InputError> {
    let mut inputs = Vec::new();
    for name in names {
        if name.as_os_str() == "-" {
            inputs.push(Input::Standard);
            continue;
        }
        let open_error = |error| InputError::Open { input: name.display().to_string(), error };
        if fs::metadata(name).map_err(open_error)?.is_dir() {
            let before = inputs.len();
            walk(name, &mut inputs).map_err(open_error)?;
            if inputs.len() == before {
                return Err(InputError::EmptyDirectory(name.clone()));
            }
        } else {
            inputs.push(Input::File(name.clone()));
        }
    }
    if inputs.is_empty() { Err(InputError::Nothing) } else { Ok(inputs) }
}

fn walk(folder: &Path, inputs: &mut Vec<Input>) -> io::Result<()> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            walk(&path, inputs)?;
        } else if looks_like_capture(&path) {
            inputs.push(Input::File(path));
        }
    }
    Ok(())
}

/// Whether a file begins as captures or compressed files do: directories of captures also hold
/// notes and checksums, which nobody means to replay.
fn looks_like_capture(path: &Path) -> bool {
    const MAGICS: [[u8; 4]; 5] = [
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x0a, 0x0d, 0x0d, 0x0a],
    ];
    let mut start = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && (MAGICS.contains(&start) || compression(&start).is_some())
}

#[derive(Clone, Copy)]
enum Compression {
    Gzip,
    Zstandard,
}

/// RFC 1952 section 2.3.1; RFC 8878 section 3.1.1 (a skippable frame may come first).
fn compression(start: &[u8]) -> Option<Compression> {
    match start {
        [0x1f, 0x8b, ..] => Some(Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Some(Compression::Zstandard)
        }
        _ => None,
    }
}

fn decompress(mut plain: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut start = Vec::with_capacity(4);
    plain.by_ref().take(4).read_to_end(&mut start)?;
    let compression = compression(&start);
    let whole = io::Cursor::new(start).chain(plain);
    Ok(match compression {
        None => Box::new(whole),
        Some(Compression::Gzip) => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        Some(Compression::Zstandard) => Box::new(zstd::stream::read::Decoder::new(whole)?),
    })
}

/// Tells the kernel to read ahead twice as far.
fn advise_sequential(file: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open for the length of the call; the advice changes no data.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_SEQUENTIAL) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const PCAP_HEADER: [u8; 24] =
        [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];

    fn read(input: &Input) -> Vec<u8> {
        let mut bytes = Vec::new();
        input.open().unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn compressed_files_read_as_what_they_hold() {
        let folder = tempfile::tempdir().unwrap();
        let gzip = folder.path().join("a.pcap.gz");
        let mut encoder =
            flate2::write::GzEncoder::new(File::create(&gzip).unwrap(), Default::default());
        encoder.write_all(&PCAP_HEADER).unwrap();
        encoder.finish().unwrap();
        let zstandard = folder.path().join("a.pcap.zst");
        fs::write(&zstandard, zstd::encode_all(&PCAP_HEADER[..], 0).unwrap()).unwrap();
        assert_eq!(read(&Input::File(gzip)), PCAP_HEADER);
        assert_eq!(read(&Input::File(zstandard)), PCAP_HEADER);
    }

    #[test]
    fn files_shorter_than_a_magic_number_read_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let short = folder.path().join("short");
        fs::write(&short, [1, 2]).unwrap();
        assert_eq!(read(&Input::File(short)), [1, 2]);
    }

    #[test]
    fn a_directory_stands_for_its_captures_in_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        for name in ["c.pcap", "a.pcap", "b/x.pcap"] {
            fs::write(folder.path().join(name), PCAP_HEADER).unwrap();
        }
        fs::write(folder.path().join("README"), "notes").unwrap();
        let inputs = expand_inputs(&[folder.path().to_owned()]).unwrap();
        let names: Vec<String> = inputs
            .iter()
            .map(|input| match input {
                Input::File(path) => {
                    path.strip_prefix(folder.path()).unwrap().display().to_string()
                }
                Input::Standard => "-".into(),
            })
            .collect();
        assert_eq!(names, ["a.pcap", "b/x.pcap", "c.pcap"]);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let missing = expand_inputs(&["no/such.pcap".into()]).unwrap_err();
        assert!(missing.to_string().starts_with("no/such.pcap: cannot open:"), "{missing}");
        let folder = tempfile::tempdir().unwrap();
        let empty = expand_inputs(&[folder.path().to_owned()]).unwrap_err();
        assert!(matches!(empty, InputError::EmptyDirectory(_)));
    }
}
