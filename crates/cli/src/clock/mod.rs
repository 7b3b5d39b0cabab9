//! `wirestorm clock`: compares clocks, and never sets one.

mod calibrate;
mod ptp;
mod ptp_flags;
mod show;
mod source_flags;

use std::process::ExitCode;

use clap::{Args, Subcommand};

pub(crate) use ptp_flags::AgentPtpFlags;
pub(crate) use source_flags::SourceFlags;

/// Documents of the commands, with their formats.
pub(crate) mod document {
    pub(crate) use super::calibrate::{CalibrationDocument, SCHEMA as CALIBRATION};
    pub(crate) use super::ptp::{PtpDocument, SCHEMA as PTP};
    pub(crate) use super::show::{SCHEMA as SOURCES, SourcesDocument};
}

const EXAMPLES: &str = "\
Examples:
  wirestorm clock show
      sources that know the error of the system clock
  wirestorm clock ptp --interface eth1 --duration 30s
      offset from the best PTP master on the network
  wirestorm clock ptp --interface eth1 --role master
  wirestorm clock calibrate eth1 eth2
      errors of time stamps, with a cable between both interfaces

Wirestorm never sets a clock.";

/// Compare clocks: PTP sessions, sources and time stamps of this machine
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ClockFlags {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// Measure the offset from a PTP master, or be a master
    Ptp(ptp::PtpFlags),
    /// Measure constant errors of the time stamps of this machine
    Calibrate(calibrate::CalibrateFlags),
    /// List the sources that know the error of the system clock
    Show(show::ShowFlags),
}

/// Runs the command.
pub(crate) fn run(flags: &ClockFlags) -> ExitCode {
    match &flags.task {
        Task::Ptp(flags) => ptp::run(flags),
        Task::Calibrate(flags) => calibrate::run(flags),
        Task::Show(flags) => show::run(flags),
    }
}
