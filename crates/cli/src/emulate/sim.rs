//! Simulation of clients and servers in virtual time.

use std::path::Path;
use std::process::ExitCode;

use wirestorm_control::emulation::{SimulationOptions, simulate};
use wirestorm_control::plan::emulation::EmulationPlan;
use wirestorm_store::record::RecordKind;

use super::table::Table;
use super::with_plan_path;
use crate::report::Output;
use crate::save::{self, Draft, SaveFlags};
use crate::status;

/// Simulates a plan, writes its captures and prints the result of both sides.
pub(crate) fn run(
    file: &Path,
    plan: &EmulationPlan,
    options: &SimulationOptions,
    json: Option<&Path>,
    save: &SaveFlags,
) -> Result<ExitCode, String> {
    let mut output = Output::open(json)?;
    let none: [String; 0] = [];
    let recording = save.start(|| Draft::new(RecordKind::Emulation, none).file(file))?;
    let (result, files) = match simulate(plan, options) {
        Ok(simulated) => simulated,
        Err(error) => {
            recording.discard();
            return Err(with_plan_path(file, &error));
        }
    };
    let saved = recording.finish(&result);
    let printed = output.print(&result, Table(&result));
    for file in files {
        eprintln!("{}", file.display());
    }
    if let Err(message) = printed {
        eprintln!("wirestorm: {message}");
        return Ok(ExitCode::from(status::FAILED));
    }
    Ok(ExitCode::from(save::status(saved, result.verdict.outcome.exit_status())))
}
