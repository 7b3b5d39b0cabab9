//! Reads the conversations of a capture.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use wirestorm_wire::conversation::{Gaps, ImportLimits, Imported, Importer};

use super::records;
use crate::files::{Entry, Files};

/// Returns the path of a capture that a TRex profile in `folder` names: as it is, relative to the
/// folder, or relative to the folder above.
pub(super) fn find(files: &dyn Files, file: &str, folder: &Path) -> Result<PathBuf, String> {
    let above = if folder.is_absolute() { folder.parent() } else { None };
    let above = above.map_or_else(|| folder.join(".."), Path::to_owned);
    let places = [PathBuf::from(file), folder.join(file), above.join(file)];
    if let Some(found) = places.iter().find(|place| is_file(files, place)) {
        return Ok(found.clone());
    }
    let mut tried: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    tried.dedup();
    Err(format!("found no such capture; looked for {}", tried.join(", ")))
}

fn is_file(files: &dyn Files, path: &Path) -> bool {
    matches!(files.entry(path), Ok(Entry::File { .. }))
}

/// Reads the conversations of a capture. The error names the file.
pub(super) fn conversations(
    files: &dyn Files,
    path: &Path,
    gaps: Gaps,
) -> Result<Imported, String> {
    let name = files.name(path);
    let mut importer = Importer::with_gaps(ImportLimits::default(), gaps);
    let take = |record: &_, data: &[u8]| match importer.take(record, data) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    };
    match records::for_each(files, path, take)? {
        Some(error) => Err(format!("{name}: {error}")),
        None => Ok(importer.finish()),
    }
}
