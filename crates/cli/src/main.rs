//! The command `wirestorm`.

// Before all others, which use its macros.
#[macro_use]
mod printing;

mod backend;
mod capture;
mod doctor;
mod emulate;
mod fit;
mod foreground;
mod gaps;
mod link;
mod manual;
mod number;
mod options;
mod ping;
mod pktgen;
mod ports;
mod replay;
mod report;
mod schema;
mod signals;
mod tcpreplay;
mod tips;
mod traffic;
mod wrap;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Network traffic generator: replays captures at the speed of the wire and reports what really
/// left and what arrived.
#[derive(Parser)]
#[command(name = "wirestorm", version, infer_long_args = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Replays captures onto an interface.
    Replay(Box<replay::flags::ReplayFlags>),
    /// Sends the flows of a plan, and reports what left and what arrived.
    Run(traffic::run::RunFlags),
    /// Sends one flow that is told by flags.
    Send(Box<traffic::send::SendFlags>),
    /// Writes what a plan would send, and when, to capture files.
    Sim(traffic::sim::SimFlags),
    /// Shows the first frames of each flow of a plan.
    Frames(traffic::frames::FramesFlags),
    /// Emulates the clients and servers of a plan, and reports what became of their connections.
    Emulate(emulate::EmulateFlags),
    /// Joins two interfaces by a link with loss, delay, a rate and other impairments.
    Link(Box<link::LinkFlags>),
    /// Runs a script for the kernel's packet generator, pktgen.
    Pktgen(Box<pktgen::PktgenFlags>),
    /// Shows how many frames a second a wire carries at most.
    LineRate(traffic::line_rate::LineRateFlags),
    /// Captures what arrives on an interface, with a filter, into a file or a pipe.
    Capture(capture::CaptureFlags),
    /// Pings from an interface as a host of its own.
    Ping(ping::PingFlags),
    /// Lists the interfaces, and which backend `--backend auto` would choose for each.
    Ports(ports::PortsFlags),
    /// Says what each interface can send with, what is missing, and the command that repairs it.
    Doctor(doctor::DoctorFlags),
    /// Prints the JSON Schema of a result that `--json` writes, or of plans.
    Schema(schema::SchemaFlags),
    /// Prints the completions of a shell.
    Completions(manual::CompletionsFlags),
    /// Prints the manual page of a command, or writes those of all.
    Manual(manual::ManualFlags),
}

/// Exit statuses. Those of runs that have a result follow from its verdict:
/// [`wirestorm_control::result::Outcome::exit_status`].
pub(crate) mod status {
    /// Something failed while running.
    pub(crate) const FAILED: u8 = 1;
    /// Wrong input or usage; nothing was sent.
    pub(crate) const USAGE: u8 = 2;
    /// Fewer were done than asked for.
    pub(crate) const SHORT: u8 = 3;
    /// Stopped before the end, as shells report a program that SIGINT ended.
    pub(crate) const INTERRUPTED: u8 = 130;
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if let Some(program) = arguments.next().and_then(|name| tcpreplay::Program::named(&name)) {
        return tcpreplay::run(program, arguments.collect());
    }
    let arguments = match replay::load(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("wirestorm: {message}");
            return ExitCode::from(status::USAGE);
        }
    };
    let mut command = Cli::command();
    let matches = match command.try_get_matches_from_mut(&arguments) {
        Ok(matches) => matches,
        Err(error) => tips::with_tips(error, &mut command, &arguments).exit(),
    };
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let given = matches.subcommand().map_or(&matches, |(_, given)| given);
    match cli.command {
        Command::Replay(flags) => replay::run(&flags, given),
        Command::Run(flags) => traffic::run::run(&flags),
        Command::Send(mut flags) => traffic::send::run(&mut flags),
        Command::Sim(flags) => traffic::sim::run(&flags),
        Command::Frames(flags) => traffic::frames::run(&flags),
        Command::Emulate(flags) => emulate::run(&flags),
        Command::Link(flags) => link::run(&flags),
        Command::Pktgen(flags) => pktgen::run(&flags),
        Command::LineRate(flags) => traffic::line_rate::run(&flags),
        Command::Capture(flags) => capture::run(&flags),
        Command::Ping(flags) => ping::run(&flags),
        Command::Ports(flags) => ports::run(&flags),
        Command::Doctor(flags) => doctor::run(&flags),
        Command::Schema(flags) => schema::run(&flags),
        Command::Completions(flags) => manual::completions(&flags),
        Command::Manual(flags) => manual::manual(&flags),
    }
}
