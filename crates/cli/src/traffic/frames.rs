//! `wirestorm frames`: prints the frames of a plan.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use wirestorm_control::base::time::Instant;
use wirestorm_control::plan::load::{LoadedPlan, PlanKind};
use wirestorm_control::plan::traffic::{AutoAddresses, TrafficPlan};
use wirestorm_control::traffic::{Preview, preview};
use wirestorm_control::wire::capture::LinkType;
use wirestorm_control::wire::print::{HexDump, Summary};

use super::{SPEED, of_clients, open, read_speed, usage};
use crate::status;

const EXAMPLES: &str = "\
Examples:
  wirestorm frames plan.yaml               the first 3 frames of each flow
  wirestorm frames plan.yaml --count 1 --flow web";

/// Prints the first frames of each flow of a plan, dissected and in hexadecimal.
///
/// The command sends nothing. A `*` stands for lines that repeat the line before.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FramesFlags {
    /// Plan in YAML or JSON; `-` for stdin
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// Frames to print for each flow
    #[arg(short = 'n', long, value_name = "N", default_value_t = 3)]
    count: u64,

    /// Print only this flow; repeatable
    #[arg(long, value_name = "NAME")]
    flow: Vec<String>,

    /// Speed in bit/s of ports without `speed` in the plan
    #[arg(long, value_name = "RATE", default_value = SPEED)]
    speed: String,
}

/// Runs the command.
pub(crate) fn run(flags: &FramesFlags) -> ExitCode {
    let shown = load(&flags.plan).and_then(|plan| {
        let speed = read_speed("--speed", &flags.speed)?;
        let unknown = |name: &&String| !plan.flows.iter().any(|flow| flow.stream.name == **name);
        if let Some(name) = flags.flow.iter().find(unknown) {
            return Err(format!("--flow {name:?}: the plan has no flow with this name"));
        }
        let previews = preview(&plan, flags.count, speed).map_err(|errors| errors.to_string())?;
        Ok((plan, previews))
    });
    let (plan, previews) = match shown {
        Ok(shown) => shown,
        Err(message) => return usage(message),
    };
    match print(&plan, &previews, &flags.flow) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wirestorm: cannot write the frames: {error}");
            ExitCode::from(status::FAILED)
        }
    }
}

/// Reads a plan of flows.
fn load(path: &Path) -> Result<TrafficPlan, String> {
    let file = open(path)?;
    if file.kind() == PlanKind::Emulation {
        return Err(of_clients(path));
    }
    match file.load_or(PlanKind::Streams).map_err(|error| error.to_string())? {
        LoadedPlan::Streams(plan) => Ok(plan),
        LoadedPlan::Emulation(_) => Err(of_clients(path)),
        LoadedPlan::Trex(_) => {
            let name = path.display();
            Err(format!(
                "{name}: this is a TRex profile, expected a plan of flows; to write its frames use \
                 `wirestorm sim {name} --output FILE`"
            ))
        }
    }
}

fn print(plan: &TrafficPlan, previews: &[Preview], only: &[String]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let mut before = None;
    for preview in previews {
        let name = &plan.flows[preview.flow].stream.name;
        if !only.is_empty() && !only.contains(name) {
            continue;
        }
        if before != Some(preview.flow) {
            let gap = if before.is_some() { "\n" } else { "" };
            writeln!(output, "{gap}flow {name}")?;
            write!(output, "{}", unresolved_addresses(plan.flows[preview.flow].auto_addresses))?;
            before = Some(preview.flow);
        }
        let summary = Summary {
            timestamp: Instant::from_nanos(preview.departure.as_nanos()),
            link_type: LinkType::EN10MB,
            data: &preview.frame,
            original_length: preview.frame.len() as u32,
        };
        writeln!(output, "{summary} ({} bytes without FCS)", preview.frame.len())?;
        write!(output, "{}", dump(&preview.frame))?;
    }
    Ok(())
}

/// Explains the addresses that only a run can determine, one a line.
fn unresolved_addresses(found: AutoAddresses) -> String {
    let lines = [
        (found.source, "  ethernet.src is auto: zeros here; a run uses the interface's address\n"),
        (
            found.destination,
            "  ethernet.dst is auto: zeros here; a run resolves the next hop's address\n",
        ),
    ];
    lines.into_iter().filter(|(is_open, _)| *is_open).map(|(_, line)| line).collect()
}

/// Dumps 16 bytes a line. As in hexdump, one `*` stands for all lines that repeat the line before.
fn dump(frame: &[u8]) -> String {
    let lines = HexDump(frame).to_string();
    let mut text = String::new();
    let (mut before, mut is_repeating): (&[u8], bool) = (&[], false);
    for (line, bytes) in lines.lines().zip(frame.chunks(16)) {
        let repeats = bytes == before;
        if !repeats {
            text += line;
            text.push('\n');
        } else if !is_repeating {
            text += "\t*\n";
        }
        (before, is_repeating) = (bytes, repeats);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_lines_become_one_star() {
        let mut frame = vec![0; 16 * 8 + 4];
        frame[0] = 1;
        frame[16 * 5] = 2;
        // A single repetition (0x0060) is a star too. A shorter last line never counts as a
        // repetition.
        let text = dump(&frame);
        let starts: Vec<&str> =
            text.lines().map(|line| line.trim().split(':').next().unwrap()).collect();
        assert_eq!(starts, ["0x0000", "0x0010", "*", "0x0050", "0x0060", "*", "0x0080"], "{text}");
        assert_eq!(dump(&frame[..16]).lines().count(), 1);
        assert_eq!(dump(&[]), "");
    }
}
