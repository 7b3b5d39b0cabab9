//! Results, as a document for machines and as a table.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

/// Prints a result: its table, and before that its JSON document to a file; for `-` the document
/// takes the table's place.
pub(crate) fn print(
    result: &impl Serialize,
    table: impl Display,
    json: Option<&Path>,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot write the result: {error}");
    let document = serde_json::to_string_pretty(result).map_err(|error| failed(error.into()))?;
    let mut output = io::stdout().lock();
    match json {
        Some(path) if path == Path::new("-") => {
            return writeln!(output, "{document}").map_err(failed);
        }
        Some(path) => {
            let written = File::create(path).and_then(|mut file| writeln!(file, "{document}"));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        None => {}
    }
    write!(output, "{table}").map_err(failed)
}
