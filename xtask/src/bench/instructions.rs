//! Benchmarks of instructions and allocations for each packet, counted by valgrind.
//!
//! The cost of start and end cancels out: the difference between a long and a short run is divided
//! by the difference in packets. The counts hardly depend on the load of the machine, except for
//! periodic work, such as publishing counters every 20 ms.

use std::path::Path;
use std::process::Command;

use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::sample::{FixedFrames, FixedOptions, write_file};

use super::Settings;
use super::contender::{output, parse_summary, set_variables, wirestorm_command};
use super::figures::{Figures, Row, Target};
use crate::Fallible;

/// Number of 60-byte frames in the capture that is replayed repeatedly.
const PACKETS: u64 = 1_000;
/// Number of passes in the short and in the long run.
const LOOPS: [u64; 2] = [100, 600];
/// Number of frames in the captures that are read once, 8 MB and 46 MB. The short one already
/// allocates every chunk that the reader reuses.
const STREAMED_PACKETS: [u64; 2] = [100_000, 600_000];

/// Rounding unit of allocation figures. Some allocations depend on time and thread scheduling; one
/// in a thousand packets is not caused by packets.
const ALLOCATION_PART: f64 = 1e-3;

/// Event that valgrind counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Instruction,
    Allocation,
}

/// Result of a run under valgrind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    events: f64,
    packets: f64,
}

/// Options of a replay from memory to memory.
struct Case {
    /// Names of the rows for instructions and allocations.
    names: [&'static str; 2],
    options: &'static [&'static str],
}

const CASES: [Case; 3] = [
    Case { names: ["instr plain", "alloc plain"], options: &[] },
    Case { names: ["instr --ttl", "alloc --ttl"], options: &["--ttl", "17"] },
    Case { names: ["instr --unique-ip", "alloc --unique-ip"], options: &["--unique-ip"] },
];

/// Names of the rows for a capture that is read from the file.
const STREAMED: [&str; 2] = ["instr streamed", "alloc streamed"];

pub(super) fn run(settings: &Settings) -> Fallible<Vec<Row>> {
    let scratch = Scratch::new()?;
    let capture = write(&scratch, PACKETS)?;
    let streamed = [write(&scratch, STREAMED_PACKETS[0])?, write(&scratch, STREAMED_PACKETS[1])?];
    let to_memory = |options: &[&str], capture: &Path| {
        let options = [&["--backend", "memory", "-t"], options].concat();
        wirestorm_command(settings, "memory", &options, capture)
    };
    let mut rows = Vec::new();
    for (place, event) in [Event::Instruction, Event::Allocation].into_iter().enumerate() {
        for Case { names, options } in &CASES {
            let commands = LOOPS.map(|loops| {
                to_memory(&[&["-K", "--loop", &loops.to_string()], *options].concat(), &capture)
            });
            rows.push(row(names[place], event, counts(event, &scratch, &commands, of_result)?));
        }
        let commands = streamed.each_ref().map(|capture| to_memory(&[], capture));
        let counts = counts(event, &scratch, &commands, of_result)?;
        let mut row = row(STREAMED[place], event, counts);
        row.notes.push("includes a second thread, which reads and indexes".into());
        rows.push(row);
    }
    rows.push(packet_socket(settings, &scratch, &capture)?);
    Ok(rows)
}

/// Counts the instructions of both contenders with a packet socket.
fn packet_socket(settings: &Settings, scratch: &Scratch, capture: &Path) -> Fallible<Row> {
    let lab = Lab::new()?;
    let port = lab.a.port();
    let options = |loops: u64| ["-t", "-K", "--loop", &loops.to_string()].map(str::to_owned);
    let mine = LOOPS.map(|loops| {
        let mut command = wirestorm_command(settings, &port, &["--backend", "af_packet"], capture);
        command.args(options(loops));
        command
    });
    let theirs = LOOPS.map(|loops| {
        let mut command = lab.a.command("tcpreplay");
        command.args(["-i", lab.a.interface()]).args(options(loops)).arg(capture);
        command
    });
    let event = Event::Instruction;
    let mut row = row("instr af_packet", event, counts(event, scratch, &mine, of_result)?);
    let theirs = counts(event, scratch, &theirs, |summary| Some(parse_summary(summary)?.packets))?;
    row.peer = Some([per_packet(theirs)].into_iter().collect());
    row.notes.push("counts the programs only, not the kernel".into());
    Ok(row)
}

/// Writes a capture of `packets` frames; returns its path.
fn write(scratch: &Scratch, packets: u64) -> Fallible<std::path::PathBuf> {
    let capture = scratch.file(&format!("{packets}.pcap"));
    let options = FixedOptions { flows: 10, packets, ..FixedOptions::default() };
    write_file(FixedFrames::new(options), Resolution::Microseconds, &capture)?;
    Ok(capture)
}

/// Counts events of the short and the long run. `packets` parses the number of sent packets from a
/// command's output.
pub(super) fn counts(
    event: Event,
    scratch: &Scratch,
    commands: &[Command; 2],
    packets: fn(&str) -> Option<f64>,
) -> Fallible<[Count; 2]> {
    let count = |command| count(event, scratch, command, packets);
    Ok([count(&commands[0])?, count(&commands[1])?])
}

fn count(
    event: Event,
    scratch: &Scratch,
    command: &Command,
    packets: fn(&str) -> Option<f64>,
) -> Fallible<Count> {
    let log = scratch.file("valgrind.log");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(match event {
        Event::Instruction => ["--tool=callgrind", "--callgrind-out-file=/dev/null"],
        Event::Allocation => ["--tool=memcheck", "--leak-check=no"],
    });
    // Follow ip netns exec, which executes the program.
    valgrind.arg("--trace-children=yes").arg(format!("--log-file={}", log.display()));
    valgrind.arg(command.get_program()).args(command.get_args()).envs(set_variables(command));
    let printed = output(&mut valgrind)?;
    let packets = packets(&printed).ok_or_else(|| format!("no packets in: {printed}"))?;
    let text = std::fs::read_to_string(&log)?;
    let events = parse_log(event, &text).ok_or_else(|| format!("valgrind has no count: {text}"))?;
    Ok(Count { events, packets })
}

/// Parses `==1== Collected : 123` of callgrind, or `==1==   total heap usage: 1,234 allocs, ...` of
/// memcheck.
fn parse_log(event: Event, log: &str) -> Option<f64> {
    let label = match event {
        Event::Instruction => "Collected :",
        Event::Allocation => "total heap usage:",
    };
    let (_, rest) = log.lines().rev().find_map(|line| line.split_once(label))?;
    rest.split_whitespace().next()?.replace(',', "").parse().ok()
}

/// Parses the number of packets from wirestorm's result.
fn of_result(result: &str) -> Option<f64> {
    serde_json::from_str::<serde_json::Value>(result).ok()?.pointer("/achieved/packets")?.as_f64()
}

fn per_packet([short, long]: [Count; 2]) -> f64 {
    (long.events - short.events) / (long.packets - short.packets).max(1.0)
}

pub(super) fn row(name: &'static str, event: Event, counts: [Count; 2]) -> Row {
    let figure = per_packet(counts);
    let mut row = Row {
        name,
        unit: "a packet",
        wirestorm: Figures::default(),
        peer: None,
        target: Target::Unset,
        notes: Vec::new(),
    };
    match event {
        Event::Instruction => row.wirestorm.push(figure),
        Event::Allocation => {
            row.wirestorm.push((figure.max(0.0) / ALLOCATION_PART).round() * ALLOCATION_PART);
            row.target = Target::AtMost(0.0);
            let [short, long] = counts;
            row.notes.push(format!(
                "{:+} allocations for {:+} packets",
                long.events - short.events,
                long.packets - short.packets
            ));
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valgrind_output_is_parsed() {
        let log = "==1== Events    : Ir\n==1== Collected : 11178620\n==1== \n\
                   ==1== I   refs:      11,178,620\n";
        assert_eq!(parse_log(Event::Instruction, log), Some(11_178_620.0));
        let log = "==1==     in use at exit: 2,472 bytes in 30 blocks\n\
                   ==1==   total heap usage: 1,302 allocs, 1,272 frees, 6,374,192 bytes allocated\n";
        assert_eq!(parse_log(Event::Allocation, log), Some(1_302.0));
        assert_eq!(parse_log(Event::Allocation, "==1== Memcheck, a memory error detector\n"), None);
    }

    #[test]
    fn constant_cost_cancels_out() {
        let run = |packets: f64| Count { events: 1e6 + 400.0 * packets, packets };
        assert_eq!(per_packet([run(1e5), run(6e5)]), 400.0);
    }

    #[test]
    fn only_allocations_per_packet_exceed_the_target() {
        let counts =
            |events| [Count { events: 1_000.0, packets: 1e5 }, Count { events, packets: 6e5 }];
        assert!(row("stray", Event::Allocation, counts(1_040.0)).is_met());
        assert!(!row("one in 100", Event::Allocation, counts(6_000.0)).is_met());
    }
}
