//! Files that plans name: captures, certificates, caches.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Resolves the paths in a plan.
///
/// A local plan reads the disk. A plan from another machine brings its files along and reads no
/// others. The crate `control` implements both.
pub trait Files: fmt::Debug + Send + Sync {
    /// Opens a file; its bytes are unchanged.
    ///
    /// # Errors
    /// The file does not exist, or may not be read.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;

    /// Opens a capture and decompresses it: gzip (RFC 1952), Zstandard (RFC 8878), or neither.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn open_capture(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;

    /// Returns what a path names.
    ///
    /// # Errors
    /// The path names nothing.
    fn entry(&self, path: &Path) -> io::Result<Entry>;

    /// Returns the path on this machine of a file that a plan writes.
    ///
    /// # Errors
    /// The plan may not write files here.
    fn output(&self, path: &Path) -> io::Result<PathBuf>;

    /// Name of a path in messages and results.
    fn name(&self, path: &Path) -> String {
        path.display().to_string()
    }
}

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file.
    File {
        /// Length in bytes.
        length: u64,
    },
    /// A stream: its length is unknown, and it can be read once.
    Stream,
    /// A directory with these paths, in order of their names.
    Directory(Vec<PathBuf>),
}

/// Refuses all files: for plans that name none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn open(&self, _: &Path) -> io::Result<Box<dyn Read + Send>> {
        Err(permission_denied())
    }

    fn open_capture(&self, _: &Path) -> io::Result<Box<dyn Read + Send>> {
        Err(permission_denied())
    }

    fn entry(&self, _: &Path) -> io::Result<Entry> {
        Err(permission_denied())
    }

    fn output(&self, _: &Path) -> io::Result<PathBuf> {
        Err(permission_denied())
    }
}

fn permission_denied() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "this plan may not use files")
}

/// Reads a whole file.
///
/// # Errors
/// As [`Files::open`], or the file does not read.
pub fn read(files: &dyn Files, path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    files.open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
