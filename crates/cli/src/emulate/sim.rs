//! Clients and servers in virtual time.

use std::path::Path;
use std::process::ExitCode;

use wirestorm_control::emulation::{SimulationOptions, simulate};
use wirestorm_control::plan::emulation::EmulationPlan;

use super::exit_status;
use super::table::Table;
use crate::report;

/// Simulates a plan, and tells what both sides counted.
pub(crate) fn run(
    plan: &EmulationPlan,
    options: &SimulationOptions,
    json: Option<&Path>,
) -> Result<ExitCode, String> {
    let (result, files) = simulate(plan, options).map_err(|error| error.to_string())?;
    report::print(&result, Table(&result), json)?;
    for file in files {
        eprintln!("{}", file.display());
    }
    Ok(ExitCode::from(exit_status(&result)))
}
