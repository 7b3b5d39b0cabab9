//! The in-kernel sender beside xdp-trafficgen, each with one CPU for everything.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

use super::Settings;
use super::figures::{Figures, Row, Target};
use super::link::Sink;
use super::streams::{Kind, plan, run_command};
use crate::Fallible;

/// xdp-tools' generator. docs/BENCHMARKS.md says how to build it.
const PEER: &str = "xdp-trafficgen";

/// Arrivals after which a program sends at full speed, and the time that it has for them.
const FULL_SPEED: u64 = 1_000_000;
const START_MAX: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// Ticks of the CPU times in /proc, in seconds (proc_pid_stat(5)).
const TICK_S: f64 = 0.01;

/// Cost of sending, observed from outside.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    mpps: f64,
    /// CPU time for a frame, in ns.
    cpu_ns: f64,
    /// CPU time in user space, in percent of a CPU.
    user_percent: f64,
}

/// A kind of frames: the name of its rows, options of the peer, and targets for speed and CPU time.
struct Case {
    kind: Kind,
    name: &'static str,
    peer: &'static [&'static str],
    speed: Target,
    cpu: Target,
}

const CASES: [Case; 3] = [
    Case {
        kind: Kind::Constant,
        name: "1 cpu constant",
        peer: &[],
        speed: Target::TimesPeer(1.3),
        cpu: Target::AtMostPeer(0.8),
    },
    Case {
        kind: Kind::Field,
        name: "1 cpu field",
        peer: &["-d", "1000"],
        speed: Target::TimesPeer(1.2),
        cpu: Target::Unset,
    },
    Case {
        kind: Kind::TupleSigned,
        name: "1 cpu signed",
        peer: &["-d", "1000"],
        speed: Target::TimesPeer(1.0),
        cpu: Target::Unset,
    },
];

pub(super) fn run(settings: &Settings) -> Fallible<Vec<Row>> {
    let (lab, scratch) = (Lab::new()?, Scratch::new()?);
    let _sink = Sink::Xdp.prepare(&lab)?;
    let has_peer = Command::new(PEER).arg("--version").output().is_ok();
    let mut rows = Vec::new();
    let mut user = Figures::default();
    for case in &CASES {
        let plan = plan(&scratch, case.kind, 1, "rate: max")?;
        let [mut mine, mut peers] = [const { [Figures::new(), Figures::new()] }; 2];
        for _ in 0..settings.rounds {
            let mut command = run_command(settings, &plan, &lab.a.port(), "xdp");
            command.args(["--duration", "1h"]);
            let cost = observe(settings, &lab, &command)?;
            mine[0].push(cost.mpps);
            mine[1].push(cost.cpu_ns);
            user.push(cost.user_percent);
            if has_peer {
                let mut command = lab.a.command(PEER);
                command.args(["udp", lab.a.interface(), "-t", "1"]).args(case.peer);
                let cost = observe(settings, &lab, &command)?;
                peers[0].push(cost.mpps);
                peers[1].push(cost.cpu_ns);
            }
        }
        let figures = mine.into_iter().zip(peers).zip(["Mpps", "ns CPU"]);
        for (((mine, peer), unit), target) in figures.zip([case.speed, case.cpu]) {
            let mut row = Row {
                name: case.name,
                unit,
                wirestorm: mine,
                peer: None,
                target,
                notes: Vec::new(),
            };
            match has_peer {
                true => row.peer = Some(peer),
                false => {
                    row.target = Target::Unset;
                    row.notes.push(format!("no peer: {PEER} is not installed"));
                }
            }
            rows.push(row);
        }
    }
    rows.push(Row {
        name: "1 cpu user space",
        unit: "% of CPU",
        wirestorm: user,
        peer: None,
        target: Target::AtMost(2.0),
        notes: vec!["peer of the rows above: xdp-trafficgen -t 1; arrivals count".into()],
    });
    Ok(rows)
}

/// Runs a command on CPU 0 and watches what arrives.
fn observe(settings: &Settings, lab: &Lab, command: &Command) -> Fallible<Cost> {
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", "0"]).arg(command.get_program()).args(command.get_args());
    let mut child = pinned.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let cost = watch(settings, lab, &child);
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    if cost.is_err() || interrupted.is_err() {
        child.kill()?;
    }
    child.wait()?;
    cost
}

fn watch(settings: &Settings, lab: &Lab, child: &Child) -> Fallible<Cost> {
    let (begun, first) = (Instant::now(), lab.b.counters()?.rx_packets);
    while lab.b.counters()?.rx_packets.saturating_sub(first) < FULL_SPEED {
        if begun.elapsed() > START_MAX {
            return Err(format!("process {} did not send within 10 s", child.id()).into());
        }
        std::thread::sleep(LOOK);
    }
    let read = || -> Fallible<_> {
        Ok((Instant::now(), lab.b.counters()?.rx_packets, cpu_times(child.id())?))
    };
    let (began, frames_before, [user_before, system_before]) = read()?;
    std::thread::sleep(Duration::from_secs(settings.seconds.into()));
    let (ended, frames, [user, system]) = read()?;
    let seconds = ended.duration_since(began).as_secs_f64();
    let frames = frames.saturating_sub(frames_before) as f64;
    let (user, system) = (user - user_before, system - system_before);
    if frames == 0.0 {
        return Err(format!("no frame of process {} arrived", child.id()).into());
    }
    Ok(Cost {
        mpps: frames / seconds / 1e6,
        cpu_ns: (user + system) / frames * 1e9,
        user_percent: user / seconds * 100.0,
    })
}

/// Returns the CPU times of a process in user space and in the kernel, in seconds.
fn cpu_times(process: u32) -> Fallible<[f64; 2]> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    parse_times(&text).ok_or_else(|| format!("/proc/{process}/stat has no times: {text}").into())
}

/// Parses the fields 14 and 15. The name of the program, in parentheses, may contain spaces.
fn parse_times(stat: &str) -> Option<[f64; 2]> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(|it| it.parse::<u32>().ok());
    let mut next = || Some(f64::from(fields.next()??) * TICK_S);
    Some([next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_are_parsed() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 90 0 0 0 12 345 0 0 20 0 1 0 100 0 0";
        assert_eq!(parse_times(stat), Some([0.12, 3.45]));
        assert_eq!(parse_times("7 (a) S 1"), None);
    }
}
