//! Replay between two network namespaces, at full speed and at a set rate.

use std::path::Path;
use std::process::{Command, ExitCode};

use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{Lab, LabOptions, run_foreground};
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

use crate::setup::Purpose;
use crate::{Fallible, setup, workspace};

/// Duration of each run in seconds.
const SECONDS: &str = "5";

/// Exit status of a run that completed below its targets.
const SHORT_OF_ASKED: i32 = 3;

/// Replays a capture of this number of conversations.
pub(super) fn run(conversations: u32, pps: u32) -> Fallible<ExitCode> {
    if conversations == 0 {
        return Err("demo: --flows must be greater than zero".into());
    }
    setup::ensure_root("the demo")?;
    setup::ensure(&[Purpose::Build, Purpose::Lab])?;
    let wirestorm = workspace::build_wirestorm()?;

    // A veth accepts frames of the in-kernel sender only if its peer polls, which GRO enables.
    let lab = Lab::with(&LabOptions { gro: [false, true], ..LabOptions::default() })?;
    println!("link:    {} -> {}", lab.a.port(), lab.b.port());
    let scratch = Scratch::new()?;
    let sample = scratch.file("sample.pcap");
    let conversations = u64::from(conversations);
    let options = TrafficOptions { conversations, ..TrafficOptions::default() };
    let written = write_file(Traffic::new(options), Resolution::Nanoseconds, &sample)?;
    println!(
        "capture: {conversations} conversations, {} packets, {:.1} MB, {:.1} s",
        written.packets,
        written.bytes as f64 / 1e6,
        written.span as f64 / 1e9
    );

    println!("\nAt full speed:");
    replay(&wirestorm, &lab, &["--topspeed"], &sample)?;
    println!("\nAt {pps} packets a second:");
    replay(&wirestorm, &lab, &["--pps", &pps.to_string()], &sample)?;

    drop((lab, scratch));
    println!("\nThe namespaces and the capture are removed.");
    Ok(ExitCode::SUCCESS)
}

fn replay(wirestorm: &Path, lab: &Lab, pace: &[&str], capture: &Path) -> Fallible<()> {
    let mut command = Command::new(wirestorm);
    command.arg("replay").args(pace).args(["--loop", "0", "--duration", SECONDS]);
    command.args(["-K", "-i", &lab.a.port(), "--rx", &lab.b.port()]).arg(capture);
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    println!("$ wirestorm {}", arguments.join(" "));
    let status = run_foreground(&mut command)?;
    match status.code() {
        Some(0) => Ok(()),
        Some(SHORT_OF_ASKED) => {
            println!("Exit status 3: the run completed below its targets; see above.");
            Ok(())
        }
        _ => Err(format!("wirestorm replay: {status}; see above").into()),
    }
}
