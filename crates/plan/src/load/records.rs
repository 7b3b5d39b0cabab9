//! Iterates over the records of a capture.

use std::fmt::Display;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use wirestorm_wire::capture::{Decoder, RecordHeader, Step};

use crate::files::Files;

/// Bytes read at once.
const READ_BYTES: usize = 1 << 16;

/// Calls `take` for each record until it breaks. Returns the value it broke with.
///
/// # Errors
/// The file does not open or read; the message names it.
pub(super) fn for_each<B>(
    files: &dyn Files,
    path: &Path,
    mut take: impl FnMut(&RecordHeader, &[u8]) -> ControlFlow<B>,
) -> Result<Option<B>, String> {
    let name = files.name(path);
    let at_file = |reason: &dyn Display| format!("{name}: {reason}");
    let mut reader =
        files.open_capture(path).map_err(|error| format!("{name}: cannot open: {error}"))?;
    let mut decoder = Decoder::new();
    let (mut buffer, mut at, mut is_end) = (Vec::new(), 0, false);
    loop {
        match decoder.step(&buffer[at..], is_end).map_err(|error| at_file(&error))? {
            Step::Record { record, data, consumed } => {
                if let ControlFlow::Break(with) = take(&record, &buffer[at..][data]) {
                    return Ok(Some(with));
                }
                at += consumed;
            }
            Step::Skipped { consumed } => at += consumed,
            Step::NeedMore { at_least } => {
                buffer.drain(..at);
                at = 0;
                let lacking = at_least.max(READ_BYTES).saturating_sub(buffer.len());
                let mut part = reader.by_ref().take(lacking as u64);
                let read = part.read_to_end(&mut buffer).map_err(|error| at_file(&error))?;
                is_end = read < lacking;
            }
            Step::End => return Ok(None),
        }
    }
}
