//! Files of the store: written atomically, read with a bound.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StoreError;

/// Length in bytes from which a trial is compressed. Trials with histograms and time series shrink
/// to between 1/3 and 1/11; shorter ones take a block of most file systems or a few anyway.
const COMPRESSED_MIN: usize = 16 << 10;
/// zstd's default level: a trial takes less than a millisecond.
const LEVEL: i32 = 3;
/// Longest document that the store reads, after decompression.
const DOCUMENT_BYTES_MAX: u64 = 1 << 30;

/// Suffix of compressed files.
const COMPRESSED: &str = ".zst";

/// Writes a document for people to read: indented, not compressed.
pub(crate) fn write_document(path: &Path, document: &impl Serialize) -> Result<(), StoreError> {
    let mut text = serde_json::to_vec_pretty(document)
        .map_err(|error| StoreError::Json { path: path.to_owned(), error })?;
    text.push(b'\n');
    write(path, &text)
}

/// Writes a document that may be long: in one line, compressed if that saves space. A compressed
/// file has `.zst` at the end of its name. Returns the path of the file.
pub(crate) fn write_compact(path: &Path, document: &impl Serialize) -> Result<PathBuf, StoreError> {
    let text = serde_json::to_vec(document)
        .map_err(|error| StoreError::Json { path: path.to_owned(), error })?;
    if text.len() < COMPRESSED_MIN {
        return write(path, &text).map(|()| path.to_owned());
    }
    let path = with_suffix(path, COMPRESSED);
    let compressed =
        zstd::bulk::compress(&text, LEVEL).map_err(StoreError::file("compress", &path))?;
    write(&path, &compressed).map(|()| path)
}

/// Removes the compressed or the plain form of a file, after the other form was written.
pub(crate) fn remove_alternative(path: &Path, written: &Path) -> Result<(), StoreError> {
    let compressed = with_suffix(path, COMPRESSED);
    let other = if written == path { compressed.as_path() } else { path };
    match fs::remove_file(other) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::file("remove", other)(error))
        }
        _ => Ok(()),
    }
}

/// Writes a file so that readers see either no file, the old or the new one, whole, also after a
/// crash: beside its place, synchronised, renamed, and the directory synchronised.
fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let temporary = temporary(path);
    let written = || -> io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        synchronise(directory_of(path))
    };
    written().map_err(|error| {
        // The error of the write is the one to report.
        let _ = fs::remove_file(&temporary);
        StoreError::file("write", path)(error)
    })
}

/// Makes the entries of a directory durable.
pub(crate) fn synchronise(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Hidden name beside `path`, different for each process.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Reads a document, compressed or not.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    let text = read_text(path)?;
    serde_json::from_slice(&text).map_err(|error| {
        StoreError::damaged(path, format!("damaged or of another format: {error}"))
    })
}

fn read_text(path: &Path) -> Result<Vec<u8>, StoreError> {
    let file = File::open(path).map_err(StoreError::file("read", path))?;
    let mut text = Vec::new();
    if path.extension().is_some_and(|extension| extension == "zst") {
        let decoder =
            zstd::stream::read::Decoder::new(file).map_err(StoreError::file("read", path))?;
        let read = decoder.take(DOCUMENT_BYTES_MAX + 1).read_to_end(&mut text);
        read.map_err(|error| {
            StoreError::damaged(path, format!("damaged: it does not decompress: {error}"))
        })?;
    } else {
        let read = file.take(DOCUMENT_BYTES_MAX + 1).read_to_end(&mut text);
        read.map_err(StoreError::file("read", path))?;
    }
    if text.len() as u64 > DOCUMENT_BYTES_MAX {
        let reason = format!("longer than {DOCUMENT_BYTES_MAX} bytes");
        return Err(StoreError::damaged(path, reason));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_documents_are_compressed_and_equal() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("1.json");
        let short: Vec<f64> = vec![0.1, 1e300, -2.5e-9];
        write_compact(&path, &short).unwrap();
        assert_eq!(read::<Vec<f64>>(&path).unwrap(), short);
        let long: Vec<f64> = (0..20_000).map(|value| f64::from(value) / 7.0).collect();
        let path = scratch.path().join("2.json");
        write_compact(&path, &long).unwrap();
        let compressed = scratch.path().join("2.json.zst");
        assert_eq!(read::<Vec<f64>>(&compressed).unwrap(), long);
        assert!(!path.exists());
        let names: Vec<_> = fs::read_dir(scratch.path()).unwrap().collect();
        assert_eq!(names.len(), 2, "no temporary file stays: {names:?}");
    }

    #[test]
    fn damaged_file_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        for (name, content) in [("1.json", &b"[1, 2"[..]), ("2.json.zst", b"no zstd")] {
            let path = scratch.path().join(name);
            fs::write(&path, content).unwrap();
            let error = read::<Vec<u64>>(&path).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("damaged"), "{error}");
        }
    }
}
