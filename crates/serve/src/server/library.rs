//! Plans and captures that users upload, in two directories.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use wirestorm_api::capture::Capture;
use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::plan::StoredPlan;
use wirestorm_control::files::{Entry, Files, HostFiles};

/// Longest name of a plan or a capture, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Longest plan in bytes.
pub(crate) const PLAN_BYTES_MAX: usize = 64 << 20;

/// A directory of named files.
#[derive(Debug)]
pub(super) struct Folder {
    directory: PathBuf,
    /// What the files are, for messages: `plan` or `capture`.
    what: &'static str,
    /// Maximum number of bytes of all files together.
    bytes_max: u64,
    /// Number of uploads so far, for the names of unfinished files.
    uploads: AtomicU64,
}

/// A file of a folder.
pub(super) struct Item {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) changed_unix_ns: u64,
}

impl From<Item> for Capture {
    fn from(Item { name, bytes, changed_unix_ns }: Item) -> Self {
        Self { name, bytes, uploaded_unix_ns: changed_unix_ns }
    }
}

impl From<Item> for StoredPlan {
    fn from(Item { name, bytes, changed_unix_ns }: Item) -> Self {
        Self { name, bytes, changed_unix_ns }
    }
}

impl Folder {
    /// Opens a folder; creates its directory and removes unfinished uploads.
    ///
    /// # Errors
    /// The directory cannot be created or listed.
    pub(super) fn open(directory: PathBuf, what: &'static str, bytes_max: u64) -> io::Result<Self> {
        fs::create_dir_all(&directory)?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(Self { directory, what, bytes_max, uploads: AtomicU64::new(0) })
    }

    /// Lists the files by name.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub(super) fn list(&self) -> Result<Vec<Item>, ErrorDocument> {
        let list = || {
            let mut items = Vec::new();
            for entry in fs::read_dir(&self.directory)? {
                let entry = entry?;
                let Ok(name) = entry.file_name().into_string() else { continue };
                // A file may vanish while the list is read.
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_file() && is_name(&name) {
                    items.push(item(name, &metadata));
                }
            }
            items.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(items)
        };
        list().map_err(|error| self.failed(error))
    }

    /// Returns the path of a file.
    ///
    /// # Errors
    /// The name is not valid, or there is no such file.
    pub(super) fn path(&self, name: &str) -> Result<PathBuf, ErrorDocument> {
        let path = self.directory.join(self.checked(name)?);
        match path.is_file() {
            true => Ok(path),
            false => {
                let message = format!("no {} {name:?} on the server", self.what);
                Err(ErrorDocument::new(ErrorCode::NotFound, message))
            }
        }
    }

    /// Starts to write a file. It appears with [`Upload::finish`], and replaces one of that name.
    ///
    /// # Errors
    /// The name is not valid, or the file cannot be created.
    pub(super) fn create(&self, name: &str) -> Result<Upload<'_>, ErrorDocument> {
        let path = self.directory.join(self.checked(name)?);
        let number = self.uploads.fetch_add(1, Ordering::Relaxed);
        let staging = self.directory.join(format!(".upload-{number}"));
        let file = File::create(&staging).map_err(|error| self.failed(error))?;
        let others = self.list()?.into_iter().filter(|item| item.name != name);
        let free = self.bytes_max.saturating_sub(others.map(|item| item.bytes).sum());
        Ok(Upload { folder: self, name: name.to_owned(), file, staging, path, free })
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// There is no such file, or it cannot be deleted.
    pub(super) fn delete(&self, name: &str) -> Result<(), ErrorDocument> {
        fs::remove_file(self.path(name)?).map_err(|error| self.failed(error))
    }

    fn checked<'a>(&self, name: &'a str) -> Result<&'a str, ErrorDocument> {
        if is_name(name) {
            return Ok(name);
        }
        let message = format!(
            "{} {name:?}: expected a name of 1 to {NAME_BYTES_MAX} letters, digits, dots, dashes \
             and underscores that starts with a letter or a digit",
            self.what
        );
        Err(ErrorDocument::new(ErrorCode::Invalid, message))
    }

    fn failed(&self, error: io::Error) -> ErrorDocument {
        let message = format!("{}: {error}", self.directory.display());
        ErrorDocument::new(ErrorCode::Storage, message)
    }
}

fn item(name: String, metadata: &fs::Metadata) -> Item {
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let changed_unix_ns = u64::try_from(changed.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
    Item { name, bytes: metadata.len(), changed_unix_ns }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        && name.as_bytes()[0].is_ascii_alphanumeric()
}

/// A file that is being written. Dropping it unfinished removes it.
pub(crate) struct Upload<'a> {
    folder: &'a Folder,
    name: String,
    file: File,
    staging: PathBuf,
    path: PathBuf,
    /// Bytes that the folder has room for.
    free: u64,
}

impl Upload<'_> {
    /// Appends bytes.
    ///
    /// # Errors
    /// The folder has no room, or the file cannot be written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), ErrorDocument> {
        let length = bytes.len() as u64;
        self.free = self.free.checked_sub(length).ok_or_else(|| {
            let message = format!(
                "no room for {} {:?}: all {}s together may have {} bytes; delete some",
                self.folder.what, self.name, self.folder.what, self.folder.bytes_max
            );
            ErrorDocument::new(ErrorCode::Storage, message)
        })?;
        self.file.write_all(bytes).map_err(|error| self.folder.failed(error))
    }

    /// Makes the file appear under its name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn finish(self) -> Result<Item, ErrorDocument> {
        let finish = || {
            self.file.sync_all()?;
            fs::rename(&self.staging, &self.path)?;
            fs::metadata(&self.path)
        };
        let metadata = finish().map_err(|error| self.folder.failed(error))?;
        Ok(item(self.name.clone(), &metadata))
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        // After `finish` there is none.
        let _ = fs::remove_file(&self.staging);
    }
}

/// Files of a plan from a user: uploaded captures, and no others. It records the names of those
/// that are used, and of those that are missing.
#[derive(Debug)]
pub(super) struct UploadedFiles {
    captures: Arc<Folder>,
    /// Names of captures by the names in the plan.
    renamed: BTreeMap<String, String>,
    /// Names of the captures that were asked for, by the names in the plan.
    used: Mutex<BTreeMap<String, String>>,
    missing: Mutex<BTreeSet<String>>,
}

impl UploadedFiles {
    pub(super) fn new(captures: Arc<Folder>, renamed: BTreeMap<String, String>) -> Self {
        Self { captures, renamed, used: Mutex::default(), missing: Mutex::default() }
    }

    /// Returns the names of the captures that were asked for, by the names in the plan.
    pub(super) fn used(&self) -> BTreeMap<String, String> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the names of the files that were asked for and are missing.
    pub(super) fn missing(&self) -> Vec<String> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn path(&self, path: &Path) -> io::Result<PathBuf> {
        let name = path.to_string_lossy();
        let capture = self.renamed.get(name.as_ref()).map_or(name.as_ref(), String::as_str);
        let Ok(path) = self.captures.path(capture) else {
            self.missing.lock().unwrap_or_else(PoisonError::into_inner).insert(name.into_owned());
            let message = "not on the server: upload it as a capture";
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        };
        let capture = capture.to_owned();
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(name.into_owned(), capture);
        Ok(path)
    }
}

impl Files for UploadedFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        HostFiles.open(&self.path(path)?)
    }

    fn open_capture(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        HostFiles.open_capture(&self.path(path)?)
    }

    fn entry(&self, path: &Path) -> io::Result<Entry> {
        HostFiles.entry(&self.path(path)?)
    }

    fn output(&self, _: &Path) -> io::Result<PathBuf> {
        let message = "a plan of a server cannot write files";
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(bytes_max: u64) -> (tempfile::TempDir, Arc<Folder>) {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::open(directory.path().join("captures"), "capture", bytes_max).unwrap();
        (directory, Arc::new(folder))
    }

    fn upload(folder: &Folder, name: &str, bytes: &[u8]) -> Result<Item, ErrorDocument> {
        let mut upload = folder.create(name)?;
        upload.write(bytes)?;
        upload.finish()
    }

    #[test]
    fn upload_appears_at_its_end_and_an_unfinished_one_leaves_nothing() {
        let (_directory, folder) = folder(100);
        let mut unfinished = folder.create("a.pcap").unwrap();
        unfinished.write(b"123").unwrap();
        assert!(folder.list().unwrap().is_empty());
        drop(unfinished);
        assert_eq!(fs::read_dir(&folder.directory).unwrap().count(), 0);
        assert_eq!(upload(&folder, "a.pcap", b"12345").unwrap().bytes, 5);
        assert_eq!(folder.list().unwrap()[0].name, "a.pcap");
        folder.delete("a.pcap").unwrap();
        assert_eq!(folder.delete("a.pcap").unwrap_err().code, ErrorCode::NotFound);
    }

    #[test]
    fn folder_has_a_maximum_of_bytes_and_a_replaced_file_does_not_count() {
        let (_directory, folder) = folder(10);
        upload(&folder, "a", b"12345678").unwrap();
        assert_eq!(upload(&folder, "b", b"123").err().unwrap().code, ErrorCode::Storage);
        upload(&folder, "a", b"1234567890").unwrap();
    }

    #[test]
    fn names_cannot_leave_the_folder() {
        let (_directory, folder) = folder(10);
        for name in ["", ".", "..", "../a", "a/b", ".hidden", "a\0", "-a", &"a".repeat(129)] {
            let error = folder.path(name).unwrap_err();
            assert_eq!(error.code, ErrorCode::Invalid, "{name:?}");
            assert!(folder.create(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn plan_reads_uploaded_captures_alone_and_missing_ones_are_listed() {
        let (_directory, folder) = folder(100);
        upload(&folder, "web.pcap", b"content").unwrap();
        let renamed = BTreeMap::from([("caps/http.pcap".to_owned(), "web.pcap".to_owned())]);
        let files = UploadedFiles::new(folder, renamed);
        let mut text = String::new();
        let mut read = |path: &str| -> io::Result<()> {
            text.clear();
            files.open(Path::new(path))?.read_to_string(&mut text)?;
            Ok(())
        };
        read("web.pcap").unwrap();
        read("caps/http.pcap").unwrap();
        assert!(read("/etc/passwd").is_err() && read("../users.json").is_err());
        assert_eq!(text, "");
        assert_eq!(files.missing(), ["../users.json", "/etc/passwd"]);
        let names = ["caps/http.pcap", "web.pcap"].map(|name| (name.into(), "web.pcap".into()));
        assert_eq!(files.used(), BTreeMap::from(names));
        assert!(files.output(Path::new("keys.log")).is_err());
    }
}
