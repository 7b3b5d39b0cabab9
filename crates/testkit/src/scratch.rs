//! Scratch folder for the files of one test.

use std::io;
use std::path::{Path, PathBuf};

use crate::cleanup::{self, CleanupItem};

/// A unique folder in the system's temporary directory, removed on drop.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates the folder.
    ///
    /// # Errors
    /// The error of `mkdir(2)`.
    pub fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(cleanup::unique_name());
        cleanup::register(CleanupItem::Folder(path.clone()));
        let scratch = Self { path };
        std::fs::create_dir(&scratch.path)?;
        Ok(scratch)
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        cleanup::remove(&CleanupItem::Folder(self.path.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_removes_the_folder_and_its_files() {
        let scratch = Scratch::new().unwrap();
        let file = scratch.file("a");
        std::fs::write(&file, "x").unwrap();
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }
}
