//! The command-line program `wirestorm`.

// First, because the other modules use its macros.
#[macro_use]
mod printing;

mod agent;
mod backend;
mod bench;
mod bus;
mod capture;
mod clock;
mod cluster;
mod console;
mod departure_lines;
mod doctor;
mod emulate;
mod files;
mod foreground;
mod impair;
mod manual;
mod metrics;
mod number;
mod options;
mod owping;
mod ping;
mod pktgen;
mod ports;
mod remote;
mod replay;
mod report;
mod report_command;
mod runs;
mod save;
mod schema;
mod serve;
mod signals;
mod suggestions;
mod tcpreplay;
mod terminal_width;
mod test_command;
mod traffic;
mod unit;
mod wrap;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Network traffic generator: sends captures, flows and TCP clients, and measures the result
#[derive(Parser)]
#[command(name = "wirestorm", version, infer_long_args = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Replay captures on an interface
    Replay(Box<replay::flags::ReplayFlags>),
    /// Send the flows of a plan and report loss, order and delay
    Run(traffic::run::RunFlags),
    /// Send one flow that flags describe
    Send(Box<traffic::send::SendFlags>),
    /// Simulate a plan and write the frames to capture files
    Sim(traffic::sim::SimFlags),
    /// Print the first frames of each flow of a plan
    Frames(traffic::frames::FramesFlags),
    /// Emulate clients and servers over TCP, UDP, TLS and HTTP/2
    Emulate(emulate::EmulateFlags),
    /// Bridge two interfaces with loss, delay and a rate limit
    Impair(Box<impair::ImpairFlags>),
    /// Run a script for the Linux packet generator pktgen
    Pktgen(Box<pktgen::PktgenFlags>),
    /// Write a report with plots on stored runs, or check limits
    Report(report_command::ReportFlags),
    /// Print the maximum frame rate of a link speed
    LineRate(traffic::line_rate::LineRateFlags),
    /// Measure a device by RFC 2544, RFC 9971 and other methods
    Bench(Box<bench::BenchFlags>),
    /// Capture frames from an interface to a file or pipe
    Capture(capture::CaptureFlags),
    /// Ping from an interface with its own IP address
    Ping(ping::PingFlags),
    /// Compare clocks: PTP sessions, and the sources of this machine
    Clock(clock::ClockFlags),
    /// Measure the delay of each direction to another machine
    Owping(owping::OwpingFlags),
    /// List interfaces and the backend that `--backend auto` chooses
    Ports(ports::PortsFlags),
    /// Check which backends can send on an interface, and print fixes
    Doctor(doctor::DoctorFlags),
    /// List, compare, export and delete saved runs
    Runs(runs::RunsFlags),
    /// Run a test on several machines, with compared clocks
    Test(Box<test_command::TestFlags>),
    /// Execute the runs of tests on this machine
    Agent(Box<agent::AgentFlags>),
    /// Host runs for users: HTTP API, leases of ports
    Serve(Box<serve::ServeFlags>),
    /// Set up the bus that connects the machines of a test
    Cluster(cluster::ClusterFlags),
    /// Control a server with live tables and a command line
    Console(console::ConsoleFlags),
    /// Print the JSON Schema of results, plans or saved runs
    Schema(schema::SchemaFlags),
    /// Print shell completions
    Completions(manual::CompletionsFlags),
    /// Print or write manual pages
    Manual(manual::ManualFlags),
}

/// Exit statuses of commands without a verdict.
///
/// Runs with a result use [`wirestorm_control::result::Outcome::exit_status`].
pub(crate) mod status {
    /// A failure at run time.
    pub(crate) const FAILED: u8 = 1;
    /// Wrong input or usage. The command has sent nothing.
    pub(crate) const USAGE: u8 = 2;
    /// The command did less than its target, for example lost pings or dropped frames.
    pub(crate) const SHORT: u8 = 3;
    /// A signal stopped the command: 128 + SIGINT, as shells report it.
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
        Err(error) => suggestions::with_suggestions(error, &mut command, &arguments).exit(),
    };
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let subcommand = matches.subcommand().map_or(&matches, |(_, subcommand)| subcommand);
    match cli.command {
        Command::Replay(flags) => replay::run(&flags, subcommand),
        Command::Run(flags) => traffic::run::run(&flags),
        Command::Send(mut flags) => traffic::send::run(&mut flags),
        Command::Sim(flags) => traffic::sim::run(&flags),
        Command::Frames(flags) => traffic::frames::run(&flags),
        Command::Emulate(flags) => emulate::run(&flags),
        Command::Impair(flags) => impair::run(&flags),
        Command::Pktgen(flags) => pktgen::run(&flags),
        Command::Report(flags) => report_command::run(&flags),
        Command::LineRate(flags) => traffic::line_rate::run(&flags),
        Command::Bench(flags) => bench::run(&flags),
        Command::Capture(flags) => capture::run(&flags),
        Command::Ping(flags) => ping::run(&flags),
        Command::Clock(flags) => clock::run(&flags),
        Command::Test(flags) => test_command::run(&flags),
        Command::Agent(flags) => agent::run(&flags),
        Command::Owping(flags) => owping::run(&flags),
        Command::Ports(flags) => ports::run(&flags),
        Command::Doctor(flags) => doctor::run(&flags),
        Command::Runs(flags) => runs::run(&flags),
        Command::Serve(flags) => serve::run(&flags),
        Command::Cluster(flags) => cluster::run(&flags),
        Command::Console(flags) => console::run(flags),
        Command::Schema(flags) => schema::run(&flags),
        Command::Completions(flags) => manual::completions(&flags),
        Command::Manual(flags) => manual::manual(&flags),
    }
}
