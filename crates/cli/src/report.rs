//! Results, as a document for machines and as a table.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use wirestorm_control::result::{Outcome, RunResult};

use crate::wrap::wrapped;

/// Shows why a run has not met its target; nothing of one that has.
pub(crate) fn verdict(f: &mut Formatter<'_>, result: &RunResult) -> fmt::Result {
    /// Reasons that are shown; `verdict.reasons` of `--json` has all.
    const REASONS_MAX: usize = 5;
    let what = match result.verdict.outcome {
        Outcome::FellShort => "fell short: ",
        // Errors are shown already, and the first line reports the interruption.
        Outcome::Met | Outcome::Failed | Outcome::Interrupted => return Ok(()),
    };
    let reasons = &result.verdict.reasons;
    let mut text = reasons.iter().take(REASONS_MAX).cloned().collect::<Vec<_>>().join("; ");
    if let Some(more) = reasons.len().checked_sub(REASONS_MAX).filter(|more| *more > 0) {
        text += &format!("; and {more} more reasons");
    }
    writeln!(f, "{}", wrapped("verdict   ", &format!("{what}{text}")))
}

/// Where a result goes beside standard output. It is opened before a run, so that what a run took
/// long to find out is not lost to a mistyped path.
pub(crate) struct Output {
    /// `None`: only the table is printed.
    document: Option<Document>,
}

/// Where the JSON document goes.
enum Document {
    /// To standard output, in the table's place.
    Standard,
    File(DocumentFile),
}

struct DocumentFile {
    path: PathBuf,
    file: File,
    /// Whether it was made here, and nothing is in it yet.
    is_new: bool,
}

impl Output {
    /// Opens the file of `--json`; `-` is standard output. What is in it stays until a result is
    /// written.
    pub(crate) fn open(json: Option<&Path>) -> Result<Self, String> {
        let document = match json {
            None => None,
            Some(path) if path == Path::new("-") => Some(Document::Standard),
            Some(path) => Some(Document::File(DocumentFile::open(path)?)),
        };
        Ok(Self { document })
    }

    /// Prints a result. Where its document cannot be written, its table is shown all the same.
    pub(crate) fn print(
        &mut self,
        result: &impl Serialize,
        table: impl Display,
    ) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot write the result: {error}");
        let document = match &self.document {
            None => String::new(),
            Some(_) => serde_json::to_string_pretty(result).map_err(|it| failed(it.into()))?,
        };
        let mut output = io::stdout().lock();
        let written = match &mut self.document {
            None => Ok(()),
            Some(Document::Standard) => return writeln!(output, "{document}").map_err(failed),
            Some(Document::File(file)) => file.write(&document),
        };
        write!(output, "{table}").map_err(failed)?;
        written
    }
}

impl DocumentFile {
    fn open(path: &Path) -> Result<Self, String> {
        let is_new = !path.exists();
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| {
            format!("--json {}: {error}; name a file that can be written", path.display())
        })?;
        Ok(Self { path: path.to_owned(), file, is_new })
    }

    fn write(&mut self, document: &str) -> Result<(), String> {
        let written = self.replace(document);
        written.map_err(|error| {
            format!("--json {}: the result could not be written: {error}", self.path.display())
        })
    }

    fn replace(&mut self, document: &str) -> io::Result<()> {
        self.is_new = false;
        // A pipe or a device has no length.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        writeln!(self.file, "{document}")
    }
}

impl Drop for DocumentFile {
    /// Nothing came of the run: no empty file stays.
    fn drop(&mut self) {
        if self.is_new {
            // That it is gone already is as well.
            let _ = fs::remove_file(&self.path);
        }
    }
}
