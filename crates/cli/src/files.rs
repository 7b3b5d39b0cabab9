//! Files as a command line names them: `-` is standard input.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wirestorm_control::files::{Entry, Files, HostFiles, decompressed};

/// Files of this machine, and standard input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandLineFiles;

impl CommandLineFiles {
    /// For the options of a run.
    pub(crate) fn shared() -> Arc<dyn Files> {
        Arc::new(Self)
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl Files for CommandLineFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        match is_standard_input(path) {
            true => Ok(Box::new(io::stdin())),
            false => HostFiles.open(path),
        }
    }

    fn open_capture(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        match is_standard_input(path) {
            true => decompressed(Box::new(io::stdin())),
            false => HostFiles.open_capture(path),
        }
    }

    fn entry(&self, path: &Path) -> io::Result<Entry> {
        match is_standard_input(path) {
            true => Ok(Entry::Stream),
            false => HostFiles.entry(path),
        }
    }

    fn output(&self, path: &Path) -> io::Result<PathBuf> {
        HostFiles.output(path)
    }

    fn name(&self, path: &Path) -> String {
        match is_standard_input(path) {
            true => "standard input".to_owned(),
            false => HostFiles.name(path),
        }
    }
}
