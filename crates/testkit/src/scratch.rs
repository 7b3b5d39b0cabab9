//! A folder for the files of one test.

use std::io;
use std::path::{Path, PathBuf};

use crate::leftovers::{self, Leftover};

/// A folder of its own under the system's temporary directory, removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes the folder.
    ///
    /// # Errors
    /// What the system said.
    pub fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(leftovers::unique_name());
        leftovers::register(Leftover::Folder(path.clone()));
        let scratch = Self { path };
        std::fs::create_dir(&scratch.path)?;
        Ok(scratch)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        leftovers::remove(&Leftover::Folder(self.path.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_and_its_files_go_with_the_value() {
        let scratch = Scratch::new().unwrap();
        let file = scratch.file("a");
        std::fs::write(&file, "x").unwrap();
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }
}
