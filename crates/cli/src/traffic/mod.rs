//! Commands for plans of flows: `run`, `sim`, `frames`, `send` and `line-rate`.

mod control;
pub(crate) mod frames;
pub(crate) mod line_rate;
mod live;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod sim;
pub(crate) mod table;
pub(crate) mod trex;

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use wirestorm_control::base::rate::Rate;
use wirestorm_control::base::time::Duration;
use wirestorm_control::files::Files;
use wirestorm_control::plan::Multiplier;
use wirestorm_control::plan::load::{LoadError, LoadedPlan, PlanFile, PlanKind};
use wirestorm_control::plan::traffic::{PlanErrors, Port, parse_time};

pub(crate) use live::{Live, bar};
pub(crate) use table::{Table, clipped, shortened};

use crate::files::CommandLineFiles;
use crate::status;

/// Default speed of ports in `sim` and `frames`. Percentages and bit rates refer to it.
const SPEED: &str = "10G";

/// Opens the file of a plan: its kind is known then.
pub(crate) fn open(path: &Path) -> Result<PlanFile<'_>, String> {
    PlanFile::open(path, &CommandLineFiles).map_err(|error| error.to_string())
}

/// Reads a plan; one of unknown kind as `unknown`. `asked` is for TRex profiles in Python.
pub(crate) fn load(
    path: &Path,
    file: PlanFile<'_>,
    unknown: PlanKind,
    arguments: &trex::ProfileArguments<'_>,
) -> Result<LoadedPlan, String> {
    match file.load_or(unknown).map_err(|error| error.to_string())? {
        LoadedPlan::Trex(profile) => trex::run(path, profile, arguments).map(LoadedPlan::Trex),
        plan => Ok(plan),
    }
}

/// Formats the errors of a plan, one a line.
pub(crate) fn format_errors(path: &Path, errors: PlanErrors) -> String {
    LoadError::Wrong { name: CommandLineFiles.name(path), errors }.to_string()
}

/// Message for a plan of clients and servers where a plan of flows is expected.
fn of_clients(path: &Path) -> String {
    let name = path.display();
    format!("{name}: this is a plan of clients and servers; use `wirestorm emulate {name}`")
}

/// Returns the interface of each port, or `None` for ports that no `--port` binds.
pub(crate) fn bind(ports: &[Port], bindings: &[String]) -> Result<Vec<Option<String>>, String> {
    let mut interfaces: Vec<Option<String>> = vec![None; ports.len()];
    for binding in bindings {
        let Some((name, interface)) = binding.split_once('=') else {
            return Err(format!("--port {binding:?}: expected NAME=INTERFACE"));
        };
        let Some(place) = ports.iter().position(|port| port.name == name) else {
            let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
            return Err(format!("--port {binding:?}: the plan's ports are {}", names.join(", ")));
        };
        if let Some(other) = interfaces[place].replace(interface.to_owned()) {
            return Err(format!("--port {binding:?}: {name} is already bound to {other}"));
        }
    }
    Ok(interfaces)
}

/// Parses a time with its unit.
pub(crate) fn read_time(option: &str, text: &str) -> Result<Duration, String> {
    parse_time(text).ok_or_else(|| {
        format!("{option} {text:?}: expected a time with its unit, such as 30s, 500ms or 2min")
    })
}

/// Parses a speed in bits per second.
fn read_speed(option: &str, text: &str) -> Result<Rate, String> {
    Rate::parse_per_second(text, 1)
        .map_err(|error| format!("{option} {text:?}: {error}; expected bits a second, such as 10G"))
}

/// Parses a factor for the rates, or a total load of a port.
fn read_multiplier(option: &str, text: &str) -> Result<Multiplier, String> {
    Multiplier::parse(text).ok_or_else(|| {
        format!(
            "{option} {text:?}: expected a factor greater than 0, such as 2 or 0.5, or the total \
             load of a port: 50%, 10kpps, 1gbps (frames with FCS) or 1gbpsl1 (line rate)"
        )
    })
}

/// Prints a message about wrong input and returns its exit status.
pub(crate) fn usage(message: impl Display) -> ExitCode {
    eprintln!("wirestorm: {message}");
    ExitCode::from(status::USAGE)
}
