//! Benchmarks of searches: trial seconds of MLRsearch beside those of a bisection, and the time that
//! a method needs besides its trials.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

use super::Settings;
use super::contender::{number, output};
use super::figures::{Figures, Row, Target};
use crate::Fallible;

/// Simulated devices, which the tests of MLRsearch use too (`crates/method/tests/it/mlrsearch.rs`).
const DEVICES: [(&str, &str); 6] = [
    ("1 Mpps", "frames_per_second=1e6"),
    ("10 Mpps", "frames_per_second=10e6"),
    ("123,457 frames/s", "frames_per_second=123457"),
    ("with a queue", "frames_per_second=3e6,queue=100000"),
    ("late recovery", "frames_per_second=3e6,overload_capacity=0.5,overload_s=4,pause_s=5"),
    ("hysteresis", "frames_per_second=3e6,overload_capacity=0.9,has_hysteresis=true"),
];

/// Goal {60 s, 60 s, 0, 0}: the throughput of RFC 2544 (RFC 9971 section 4.10.2).
const MLRSEARCH: [&str; 3] = ["mlrsearch", "--goal", "rfc2544"];
/// Trials of 60 s, and the same resolution of 0.5 %.
const BISECTION: [&str; 5] = ["rfc2544", "--tests", "throughput", "--resolution", "0.5"];
/// Largest time besides the trials, in percent of the time of the trials.
const OVERHEAD: Target = Target::AtMost(1.0);

/// Trial seconds on simulated devices, and the wall time of the method over them.
pub(super) fn simulated(settings: &Settings) -> Fallible<Vec<Row>> {
    let scratch = Scratch::new()?;
    let run = |method: &[&str], model: &str| {
        let mut command = command(settings, &scratch.file("history"), method);
        command.args(["--simulate", model, "--link-speed", "10G"]);
        result(&mut command)
    };
    let mut rows = Vec::new();
    let mut overhead = row("overhead simulated", "%", OVERHEAD);
    for (name, model) in DEVICES {
        let mut seconds = row(name, "s of trials", Target::AtMostPeer(0.5));
        let mut bisection = Figures::default();
        for round in 0..settings.rounds {
            let search = run(&MLRSEARCH, model)?;
            let trials_s = number(&search, "/trials_s")?;
            // The trials take no time: all of it is that of the method and of the history.
            overhead.wirestorm.push(number(&search, "/elapsed_s")? / trials_s * 100.0);
            if round == 0 {
                // Simulations are deterministic.
                seconds.wirestorm.push(trials_s);
                bisection.push(number(&run(&BISECTION, model)?, "/trials_s")?);
            }
        }
        seconds.peer = Some(bisection);
        rows.push(seconds);
    }
    if let Some(first) = rows.first_mut() {
        first.notes.push("peer: bisection of RFC 2544 with trials of 60 s, same resolution".into());
    }
    overhead.notes.push("wall time over virtual time of the trials, with the run history".into());
    rows.push(overhead);
    Ok(rows)
}

/// Wall time of a search on a veth pair besides its trials, and time of the trials besides their
/// traffic.
pub(super) fn veth(settings: &Settings) -> Fallible<Vec<Row>> {
    let (lab, scratch) = (Lab::new()?, Scratch::new()?);
    let mut overhead = row("overhead veth", "%", OVERHEAD);
    let mut waits = row("trial waits veth", "s a trial", Target::Unset);
    let mut command = command(settings, &scratch.file("history"), &MLRSEARCH);
    command.args(["--tx", &lab.a.port(), "--rx", &lab.b.port(), "--max-load", "10kpps"]);
    command.args(["--settle", "0", "--learning-wait", "0"]);
    let result = result(&mut command)?;
    let traffic_s = number(&result, "/findings/searches/0/trial_seconds")?;
    let (elapsed_s, trials_s) = (number(&result, "/elapsed_s")?, number(&result, "/trials_s")?);
    let trials = number(&result, "/trials")?;
    overhead.wirestorm.push((elapsed_s - trials_s) / trials_s * 100.0);
    overhead.notes.push(format!("{trials} trials of {traffic_s:.0} s in {elapsed_s:.1} s"));
    waits.wirestorm.push((trials_s - traffic_s) / trials);
    waits.notes.push("opens the ports; ends after 200 ms without arrivals".into());
    Ok(vec![overhead, waits])
}

fn command(settings: &Settings, history: &Path, method: &[&str]) -> Command {
    let mut command = Command::new(&settings.wirestorm);
    command.arg("bench").args(method).args(["--json", "-", "--quiet", "--frame-sizes", "64"]);
    command.arg("--runs-dir").arg(history);
    command
}

fn result(command: &mut Command) -> Fallible<Value> {
    Ok(serde_json::from_str(&output(command)?)?)
}

fn row(name: &'static str, unit: &'static str, target: Target) -> Row {
    let (wirestorm, notes) = (Figures::default(), Vec::new());
    Row { name, unit, wirestorm, peer: None, target, notes }
}
