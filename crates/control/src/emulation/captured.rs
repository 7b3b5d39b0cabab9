//! Plans with conversations out of captures.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_plan::traffic::PlanErrors;
use wirestorm_wire::conversation::{Bounds, Imported, Importer};

use crate::records;

/// Reads a plan; captures in it are named from `folder`, where the plan is.
///
/// # Errors
/// All that is wrong with it, each with its path.
pub fn read_plan(text: &str, folder: &Path) -> Result<EmulationPlan, PlanErrors> {
    EmulationPlan::parse_with(text, |file| conversations(folder.join(file)))
}

/// The conversations of a capture.
fn conversations(path: PathBuf) -> Result<Imported, String> {
    let name = path.display().to_string();
    let mut importer = Importer::new(Bounds::default());
    let take = |record: &_, data: &[u8]| match importer.take(record, data) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    };
    match records::for_each(path, take)? {
        Some(error) => Err(format!("{name}: {error}")),
        None => Ok(importer.finish()),
    }
}
