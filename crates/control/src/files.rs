//! Files that plans name: files of this host, or files attached to the plan.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

pub use wirestorm_plan::files::{Entry, Files};

/// Files of this host. A relative path starts at the working directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostFiles;

impl Files for HostFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(path)?))
    }

    fn open_capture(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let file = File::open(path)?;
        advise_sequential(&file);
        decompressed(Box::new(file))
    }

    fn entry(&self, path: &Path) -> io::Result<Entry> {
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            let paths = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
            let mut paths = paths.collect::<io::Result<Vec<PathBuf>>>()?;
            paths.sort();
            return Ok(Entry::Directory(paths));
        }
        // Pipes and devices have no length.
        Ok(match metadata.is_file() {
            true => Entry::File { length: metadata.len() },
            false => Entry::Stream,
        })
    }

    fn output(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
}

/// Files attached to a plan from another host. Such a plan can read no other files, and write none.
#[derive(Clone, Debug, Default)]
pub struct AttachedFiles(BTreeMap<PathBuf, Attached>);

/// Content of an attached file.
#[derive(Clone, Debug)]
enum Attached {
    Bytes(Arc<[u8]>),
    /// In a file of this host.
    File(PathBuf),
}

impl AttachedFiles {
    /// Creates the files from paths and contents. Paths are normalized: `./a` and `b/../a` are `a`.
    pub fn new(files: impl IntoIterator<Item = (PathBuf, Arc<[u8]>)>) -> Self {
        let files = files.into_iter();
        Self(files.map(|(path, bytes)| (normalized(&path), Attached::Bytes(bytes))).collect())
    }

    /// As [`new`](Self::new), with the contents in files of this host: their paths in the plan, and
    /// those on this host.
    pub fn on_disk(files: impl IntoIterator<Item = (PathBuf, PathBuf)>) -> Self {
        let files = files.into_iter();
        Self(files.map(|(path, at)| (normalized(&path), Attached::File(at))).collect())
    }

    fn attached(&self, path: &Path) -> io::Result<&Attached> {
        self.0.get(&normalized(path)).ok_or_else(|| {
            let message = "not attached to the plan";
            io::Error::new(io::ErrorKind::NotFound, message)
        })
    }
}

impl Files for AttachedFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        match self.attached(path)? {
            Attached::Bytes(bytes) => Ok(Box::new(Cursor::new(Arc::clone(bytes)))),
            Attached::File(at) => HostFiles.open(at),
        }
    }

    fn open_capture(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        match self.attached(path)? {
            Attached::Bytes(_) => decompressed(self.open(path)?),
            Attached::File(at) => HostFiles.open_capture(at),
        }
    }

    fn entry(&self, path: &Path) -> io::Result<Entry> {
        let folder = normalized(path);
        let below = |file: &&PathBuf| **file != folder && file.starts_with(&folder);
        let paths: Vec<_> = self.0.keys().filter(below).cloned().collect();
        if !paths.is_empty() && !self.0.contains_key(&folder) {
            return Ok(Entry::Directory(paths));
        }
        match self.attached(path)? {
            Attached::Bytes(bytes) => Ok(Entry::File { length: bytes.len() as u64 }),
            Attached::File(at) => HostFiles.entry(at),
        }
    }

    fn output(&self, _: &Path) -> io::Result<PathBuf> {
        let message = "a plan with attached files cannot write files";
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }
}

/// Removes `.` from a path, and each `..` with the component before it, if there is one.
fn normalized(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if parts.file_name().is_some() => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

/// Compression format of a file.
#[derive(Clone, Copy)]
enum Compression {
    Gzip,
    Zstandard,
}

/// Detects the compression by the first bytes: RFC 1952 section 2.3.1, or RFC 8878 section 3.1.1,
/// where a skippable frame may come first.
fn compression(start: &[u8]) -> Option<Compression> {
    match start {
        [0x1f, 0x8b, ..] => Some(Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Some(Compression::Zstandard)
        }
        _ => None,
    }
}

/// Whether a file that starts with these bytes is compressed.
pub(crate) fn is_compressed(start: &[u8]) -> bool {
    compression(start).is_some()
}

/// Decompresses a file if it starts like a gzip or Zstandard file.
///
/// # Errors
/// Fails if the file cannot be read, or the decompressor does not start.
pub fn decompressed(mut plain: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut start = Vec::with_capacity(4);
    plain.by_ref().take(4).read_to_end(&mut start)?;
    let compression = compression(&start);
    let stream = Cursor::new(start).chain(plain);
    Ok(match compression {
        None => Box::new(stream),
        Some(Compression::Gzip) => Box::new(flate2::read::MultiGzDecoder::new(stream)),
        Some(Compression::Zstandard) => Box::new(zstd::stream::read::Decoder::new(stream)?),
    })
}

/// Doubles the kernel's read-ahead for a file.
fn advise_sequential(file: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open for the length of the call; the advice changes no data.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_SEQUENTIAL) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(files: &dyn Files, path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        files.open_capture(Path::new(path))?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn compressed_files_are_decompressed() {
        let folder = tempfile::tempdir().unwrap();
        let gzip = folder.path().join("a.pcap.gz");
        let mut encoder =
            flate2::write::GzEncoder::new(File::create(&gzip).unwrap(), Default::default());
        encoder.write_all(b"a capture").unwrap();
        encoder.finish().unwrap();
        let zstandard = folder.path().join("a.pcap.zst");
        fs::write(&zstandard, zstd::encode_all(&b"a capture"[..], 0).unwrap()).unwrap();
        for path in [gzip, zstandard] {
            assert_eq!(read(&HostFiles, path.to_str().unwrap()).unwrap(), b"a capture");
        }
    }

    #[test]
    fn files_shorter_than_a_magic_number_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let short = folder.path().join("short");
        fs::write(&short, [1, 2]).unwrap();
        assert_eq!(read(&HostFiles, short.to_str().unwrap()).unwrap(), [1, 2]);
    }

    #[test]
    fn only_attached_files_are_readable() {
        let files = AttachedFiles::new([
            ("plans/a.pcap".into(), Arc::from(*b"first")),
            ("./b/c.pcap".into(), Arc::from(*b"second")),
        ]);
        assert_eq!(read(&files, "plans/a.pcap").unwrap(), b"first");
        assert_eq!(read(&files, "plans/../b/./c.pcap").unwrap(), b"second");
        for other in ["/etc/passwd", "../etc/passwd", "plans", "c.pcap", "-"] {
            let error = read(&files, other).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{other}");
        }
        assert_eq!(files.entry(Path::new("b")).unwrap(), Entry::Directory(vec!["b/c.pcap".into()]));
        assert_eq!(files.entry(Path::new("b/c.pcap")).unwrap(), Entry::File { length: 6 });
        assert!(files.output(Path::new("out.pcap")).is_err());
    }

    #[test]
    fn attached_files_on_disk_have_their_names_in_the_plan_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("0123");
        fs::write(&at, zstd::encode_all(&b"a capture"[..], 0).unwrap()).unwrap();
        let length = fs::metadata(&at).unwrap().len();
        let files = AttachedFiles::on_disk([("caps/./a.pcap".into(), at.clone())]);
        assert_eq!(read(&files, "caps/a.pcap").unwrap(), b"a capture");
        assert_eq!(files.entry(Path::new("caps/a.pcap")).unwrap(), Entry::File { length });
        assert_eq!(
            files.entry(Path::new("caps")).unwrap(),
            Entry::Directory(vec!["caps/a.pcap".into()])
        );
        assert!(read(&files, at.to_str().unwrap()).is_err());
    }
}
