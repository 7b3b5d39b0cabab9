//! Output of results: a JSON document and a table.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use wirestorm_control::result::{Outcome, RunResult};

use crate::wrap::wrapped;

/// Prints why a run missed its target. Prints nothing for a run that met it.
pub(crate) fn verdict(f: &mut Formatter<'_>, result: &RunResult) -> fmt::Result {
    /// Reasons shown at most; `verdict.reasons` of `--json` has all of them.
    const REASONS_MAX: usize = 5;
    let what = match result.verdict.outcome {
        Outcome::FellShort => "fell short: ",
        // The table lists errors already, and its first line reports an interruption.
        Outcome::Met | Outcome::Failed | Outcome::Interrupted => return Ok(()),
    };
    let reasons = &result.verdict.reasons;
    let mut text = reasons.iter().take(REASONS_MAX).cloned().collect::<Vec<_>>().join("; ");
    if let Some(more) = reasons.len().checked_sub(REASONS_MAX).filter(|more| *more > 0) {
        text += &format!("; and {more} more reasons");
    }
    writeln!(f, "{}", wrapped("verdict   ", &format!("{what}{text}")))
}

/// Destination of a result.
///
/// A command opens it before the run, so that a wrong path does not lose the result of a long run.
pub(crate) struct Output {
    /// `None` if the command prints only the table.
    document: Option<Document>,
}

/// Destination of the JSON document.
enum Document {
    /// Standard output, instead of the table.
    Standard,
    File(DocumentFile),
}

struct DocumentFile {
    path: PathBuf,
    file: File,
    /// Whether this process created the file and has written nothing to it yet.
    is_new: bool,
}

impl Output {
    /// Opens the file of `--json`; `-` is standard output.
    ///
    /// An existing file keeps its content until [`Output::print`] replaces it.
    pub(crate) fn open(json: Option<&Path>) -> Result<Self, String> {
        let document = match json {
            None => None,
            Some(path) if path == Path::new("-") => Some(Document::Standard),
            Some(path) => Some(Document::File(DocumentFile::open(path)?)),
        };
        Ok(Self { document })
    }

    /// Prints a result. If the document cannot be written, prints the table anyway.
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
            format!("--json {}: {error}; specify a file that is writable", path.display())
        })?;
        Ok(Self { path: path.to_owned(), file, is_new })
    }

    fn write(&mut self, document: &str) -> Result<(), String> {
        let written = self.replace(document);
        written.map_err(|error| {
            format!("--json {}: cannot write the result: {error}", self.path.display())
        })
    }

    fn replace(&mut self, document: &str) -> io::Result<()> {
        self.is_new = false;
        // A pipe or a device has no length to truncate.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        writeln!(self.file, "{document}")
    }
}

impl Drop for DocumentFile {
    /// Removes the new file if the run had no result, so that no empty file remains.
    fn drop(&mut self) {
        if self.is_new {
            // The file may be gone already, which is fine.
            let _ = fs::remove_file(&self.path);
        }
    }
}
