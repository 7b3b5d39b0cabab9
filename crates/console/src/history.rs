//! History of the command line, in a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Most lines of the history.
const LINES_MAX: usize = 1_000;
/// Longest file that is read, in bytes.
const BYTES_MAX: u64 = 4 << 20;

/// Lines that were executed, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    lines: Vec<String>,
    path: Option<PathBuf>,
    /// Lines in the file, which other consoles may have written too.
    lines_in_file: usize,
}

impl History {
    /// Reads the history of a file, which need not exist.
    pub(crate) fn open(path: Option<PathBuf>) -> Self {
        let text = path.as_deref().and_then(|path| read(path).ok()).unwrap_or_default();
        let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let newest = all.len().saturating_sub(LINES_MAX);
        let lines = all[newest..].iter().map(|line| (*line).to_owned()).collect();
        Self { lines, lines_in_file: all.len(), path }
    }

    /// Returns the lines, the oldest first.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Adds a line, unless it repeats the last one or begins with a space.
    ///
    /// # Errors
    /// The file cannot be written. The history continues without it.
    pub(crate) fn add(&mut self, line: &str) -> Result<(), String> {
        let is_wanted = !line.starts_with(' ') && !line.trim().is_empty();
        if !is_wanted || self.lines.last().is_some_and(|last| last == line) {
            return Ok(());
        }
        self.lines.push(line.to_owned());
        let excess = self.lines.len().saturating_sub(LINES_MAX);
        self.lines.drain(..excess);
        let Some(path) = self.path.clone() else { return Ok(()) };
        let written = match self.lines_in_file < 2 * LINES_MAX {
            true => append(&path, line).map(|()| self.lines_in_file += 1),
            false => rewrite(&path, &self.lines).map(|()| self.lines_in_file = self.lines.len()),
        };
        written.map_err(|error| {
            self.path = None;
            format!("{}: {error}; the history of this console is not saved", path.display())
        })
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Lines can hold names that are nobody else's business.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    options
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    options().append(true).open(path)?.write_all(format!("{line}\n").as_bytes())
}

fn rewrite(path: &Path, lines: &[String]) -> io::Result<()> {
    let staging = path.with_extension("new");
    let text = lines.join("\n") + "\n";
    options().write(true).truncate(true).open(&staging)?.write_all(text.as_bytes())?;
    fs::rename(&staging, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn next_console_has_the_lines_of_the_last_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/console-history");
        let mut history = History::open(Some(path.clone()));
        for line in ["ports", "ports", " secret", "", "runs"] {
            history.add(line).unwrap();
        }
        assert_eq!(history.lines(), ["ports", "runs"]);
        assert_eq!(History::open(Some(path.clone())).lines(), ["ports", "runs"]);
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn file_stays_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("console-history");
        let mut history = History::open(Some(path.clone()));
        for number in 0..3 * LINES_MAX {
            history.add(&format!("run {number}")).unwrap();
        }
        assert_eq!(history.lines().len(), LINES_MAX);
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 2 * LINES_MAX, "{lines}");
        let again = History::open(Some(path));
        assert_eq!(again.lines(), history.lines());
    }

    #[test]
    fn unwritable_file_is_reported_once() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        let mut history = History::open(Some(directory.path().join("file/console-history")));
        assert!(history.add("ports").unwrap_err().contains("console-history"));
        history.add("runs").unwrap();
        assert_eq!(history.lines(), ["ports", "runs"]);
    }
}
