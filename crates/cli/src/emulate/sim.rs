//! Simulation of clients and servers in virtual time.

use std::path::Path;
use std::process::ExitCode;

use wirestorm_control::emulation::{SimulationOptions, simulate};
use wirestorm_control::plan::emulation::EmulationPlan;

use super::table::Table;
use super::with_plan_path;
use crate::report::Output;
use crate::status;

/// Simulates a plan, writes its captures and prints the result of both sides.
pub(crate) fn run(
    file: &Path,
    plan: &EmulationPlan,
    options: &SimulationOptions,
    json: Option<&Path>,
) -> Result<ExitCode, String> {
    let mut output = Output::open(json)?;
    let (result, files) = simulate(plan, options).map_err(|error| with_plan_path(file, &error))?;
    let printed = output.print(&result, Table(&result));
    for file in files {
        eprintln!("{}", file.display());
    }
    if let Err(message) = printed {
        eprintln!("wirestorm: {message}");
        return Ok(ExitCode::from(status::FAILED));
    }
    Ok(ExitCode::from(result.verdict.outcome.exit_status()))
}
