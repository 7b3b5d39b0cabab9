//! `wirestorm sim`: what exactly would be sent, and when, without sending it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use wirestorm_control::base::time::Duration;
use wirestorm_control::traffic::{SimulateError, SimulateOptions, simulate};

use super::{SPEED, read_plan, read_speed, read_time, usage};
use crate::number::grouped;
use crate::status;

const EXAMPLES: &str = "\
Examples:
  wirestorm sim plan.yaml -o out.pcap --packets 1000
  wirestorm sim plan.yaml -o out.pcap --duration 10ms
  wirestorm sim plan.yaml -o /dev/stdout --packets 5 | tcpdump -nr -";

/// Writes what a plan would send, with the times at which it would leave, to capture files.
///
/// Nothing is sent, no privilege is needed, and time is simulated: the same plan gives the same
/// bytes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimFlags {
    /// The plan, in YAML or JSON; `-`: standard input.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// The capture file; with several transmitting ports, one for each with its name inserted.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Frames for each port at most.
    #[arg(short = 'l', long, value_name = "N")]
    packets: Option<u64>,

    /// Simulated time at most.
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,

    /// Bits a second of ports whose speed the plan does not say.
    #[arg(long, value_name = "RATE", default_value = SPEED)]
    speed: String,
}

/// Runs the command.
pub(crate) fn run(flags: &SimFlags) -> ExitCode {
    let plan = match read_plan(&flags.plan) {
        Ok(plan) => plan,
        Err(message) => return usage(message),
    };
    let options = match options(flags) {
        Ok(options) => options,
        Err(message) => return usage(message),
    };
    match simulate(&plan, &options) {
        Ok(simulated) => {
            for port in simulated {
                eprintln!(
                    "{}: {} frames, {} bytes in {}",
                    port.port,
                    grouped(port.packets),
                    grouped(port.bytes),
                    port.file.display()
                );
            }
            ExitCode::SUCCESS
        }
        Err(error @ SimulateError::Plan(_)) => usage(error),
        Err(error) => {
            eprintln!("wirestorm: {error}");
            ExitCode::from(status::FAILED)
        }
    }
}

fn options(flags: &SimFlags) -> Result<SimulateOptions, String> {
    let duration = match &flags.duration {
        Some(text) => read_time("--duration", text)?,
        None => Duration::MAX,
    };
    if flags.packets.is_none() && duration == Duration::MAX {
        return Err("a simulation needs an end: --packets N or --duration TIME".into());
    }
    Ok(SimulateOptions {
        output: flags.output.clone(),
        packets: flags.packets.unwrap_or(u64::MAX),
        duration,
        speed: read_speed("--speed", &flags.speed)?,
    })
}
