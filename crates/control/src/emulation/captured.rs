//! Plans with conversations out of captures.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_plan::traffic::PlanErrors;
use wirestorm_plan::trex::captures::{self, Captures};
use wirestorm_plan::trex::stateful::StatefulOptions;
use wirestorm_wire::conversation::{Bounds, Gaps, Imported, Importer};

use crate::records;

/// Reads a plan; captures in it are named from `folder`, where the plan is.
///
/// # Errors
/// All that is wrong with it, each with its path.
pub fn read_plan(text: &str, folder: &Path) -> Result<EmulationPlan, PlanErrors> {
    let load = |file: &str| conversations(folder.join(file), Gaps::AsCaptured);
    EmulationPlan::parse_with(text, load)
}

/// Reads one of TRex's profiles of captures, which lies in `folder`. The captures are looked for
/// from the present folder, from there, and from the folder above.
///
/// # Errors
/// All that is wrong with it, each with its path.
pub fn read_captures(
    text: &str,
    folder: &Path,
    options: &StatefulOptions,
) -> Result<Captures, PlanErrors> {
    captures::read(text, options, |file, gaps| conversations(find(file, folder)?, gaps))
}

/// Where a capture is that a profile names.
fn find(file: &str, folder: &Path) -> Result<PathBuf, String> {
    let above = if folder.is_absolute() { folder.parent() } else { None };
    let above = above.map_or_else(|| folder.join(".."), Path::to_owned);
    let places = [PathBuf::from(file), folder.join(file), above.join(file)];
    if let Some(found) = places.iter().find(|place| place.is_file()) {
        return Ok(found.clone());
    }
    let mut tried: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    tried.dedup();
    Err(format!("found no such capture; looked for {}", tried.join(", ")))
}

/// The conversations of a capture.
fn conversations(path: PathBuf, gaps: Gaps) -> Result<Imported, String> {
    let name = path.display().to_string();
    let mut importer = Importer::with_gaps(Bounds::default(), gaps);
    let take = |record: &_, data: &[u8]| match importer.take(record, data) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    };
    match records::for_each(path, take)? {
        Some(error) => Err(format!("{name}: {error}")),
        None => Ok(importer.finish()),
    }
}
