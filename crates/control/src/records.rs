//! The packets of a capture file, one after the other.

use std::fmt::Display;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::PathBuf;

use wirestorm_wire::capture::{Decoder, RecordHeader, Step};

use crate::replay::Input;

/// How much of a capture is read at once.
const READ_BYTES: usize = 1 << 16;

/// Hands on the packets of a file, until one breaks. Returns what it broke with.
///
/// # Errors
/// Where the file cannot be read, with its name.
pub(crate) fn for_each<B>(
    path: PathBuf,
    mut take: impl FnMut(&RecordHeader, &[u8]) -> ControlFlow<B>,
) -> Result<Option<B>, String> {
    let name = path.display().to_string();
    let at_file = |reason: &dyn Display| format!("{name}: {reason}");
    let mut reader = Input::File(path).open().map_err(|error| error.to_string())?;
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
