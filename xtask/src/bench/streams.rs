//! Benchmarks of template streams: into memory, to files, over a veth pair, and measured.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{Lab, LabOptions};

use super::Settings;
use super::contender::{number, output};
use super::figures::{Figures, Row, Target};
use super::instructions::{self, Event};
use super::link::Sink;
use crate::{Fallible, workspace};

/// Contents of a flow's frames: 64 bytes of UDP with FCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// All frames are equal.
    Constant,
    /// One address that counts, and the two checksums that cover it.
    Field,
    /// Nested address and port counters, as traffic generators use them.
    Tuple,
    /// Same as `Field`, with a signature.
    FieldSigned,
    /// Same as `Tuple`, with a signature.
    TupleSigned,
}

/// Writes a plan of `flows` flows on port `a`; `ends` has the lines for rate and duration.
pub(super) fn plan(scratch: &Scratch, kind: Kind, flows: u32, ends: &str) -> Fallible<PathBuf> {
    plan_of_each(scratch, kind, flows, |_| ends.to_owned())
}

/// Same as [`plan`], with lines for rate and duration of each flow.
fn plan_of_each(
    scratch: &Scratch,
    kind: Kind,
    flows: u32,
    ends: impl Fn(u32) -> String,
) -> Fallible<PathBuf> {
    let (address, port) = match kind {
        Kind::Constant => ("10.0.0.1", "1025"),
        Kind::Field | Kind::FieldSigned => ("{increment: {start: 10.0.0.1, count: 250}}", "1025"),
        Kind::Tuple | Kind::TupleSigned => (
            "{increment: {start: 10.0.0.1, count: 250}}",
            "{increment: {start: 1025, count: 64511}, after: ipv4.src}",
        ),
    };
    let metrics = matches!(kind, Kind::FieldSigned | Kind::TupleSigned);
    let mut text = "ports: [{name: a, speed: 100G}]\nflows:\n".to_owned();
    for flow in 0..flows {
        writeln!(
            text,
            "  - name: flow {flow}\n    tx: a\n    size: 64\n    metrics: {{enable: {metrics}}}\n    \
             {}\n    packet:\n      \
             - ethernet: {{src: 02:00:00:00:00:01, dst: 02:00:00:00:00:02}}\n      \
             - ipv4: {{src: {address}, dst: 192.0.2.1}}\n      \
             - udp: {{src_port: {port}, dst_port: 53}}",
            ends(flow)
        )?;
    }
    let path = scratch.file(&format!("{kind:?}-{flows}.yaml"));
    std::fs::write(&path, text)?;
    Ok(path)
}

/// Builds the command that runs a plan and prints its result.
pub(super) fn run_command(settings: &Settings, plan: &Path, port: &str, backend: &str) -> Command {
    let mut command = Command::new(&settings.wirestorm);
    command.arg("run").arg(plan).args(["--quiet", "--json", "-", "--backend", backend]);
    command.arg("--port").arg(format!("a={port}"));
    command
}

fn run(command: &mut Command) -> Fallible<Value> {
    let result = output(command)?;
    serde_json::from_str(&result)
        .map_err(|error| format!("wirestorm run --json - printed no result: {error}").into())
}

/// Millions of frames per second of run time, independent of due times.
fn mpps(result: &Value) -> Fallible<f64> {
    Ok(number(result, "/ports/0/tx/packets")? / number(result, "/times/elapsed_s")? / 1e6)
}

fn row(name: &'static str, target: Target) -> Row {
    let (wirestorm, notes) = (Figures::default(), Vec::new());
    Row { name, unit: "Mpps", wirestorm, peer: None, target, notes }
}

/// One flow into memory at full speed, against DPDK's testpmd with its null device.
pub(super) fn memory(settings: &Settings) -> Fallible<Vec<Row>> {
    let (lab, scratch) = (Lab::new()?, Scratch::new()?);
    let seconds = format!("{}s", settings.seconds);
    let mut cases = Vec::new();
    for (kind, row) in [
        (Kind::Constant, row("constant memory", Target::TimesPeer(1.0))),
        (Kind::Field, row("field memory", Target::AtLeast(35.0))),
        (Kind::Tuple, row("tuple memory", Target::AtLeast(35.0))),
        (Kind::FieldSigned, row("field signed", Target::AtLeast(20.0))),
        (Kind::TupleSigned, row("tuple signed", Target::AtLeast(20.0))),
    ] {
        cases.push((plan(&scratch, kind, 1, "rate: max")?, row));
    }
    let mut testpmd = Figures::default();
    for _ in 0..settings.rounds {
        testpmd.push(testpmd_mpps(settings.seconds)?);
        for (plan, row) in &mut cases {
            let mut command = run_command(settings, plan, &lab.a.port(), "memory");
            row.wirestorm.push(mpps(&run(command.args(["--duration", &seconds]))?)?);
        }
    }
    if let Some((_, row)) = cases.first_mut() {
        row.peer = Some(testpmd);
        row.notes.push("peer: DPDK's testpmd, txonly, on net_null with one forwarding core".into());
    }
    Ok(cases.into_iter().map(|(_, row)| row).collect())
}

/// Many flows with a schedule above the possible rate, against one flow.
pub(super) fn many(settings: &Settings) -> Fallible<Vec<Row>> {
    /// Sum of the flows' rates in frames per second, and frames sent for each second of a run.
    const ASKED: u32 = 100_000_000;
    const SENT: u32 = 10_000_000;
    /// Many short, alternating runs: otherwise a slowdown of the machine would distort the ratio.
    const RUNS_A_ROUND: u32 = 3;
    let (lab, scratch) = (Lab::new()?, Scratch::new()?);
    let mut cases = Vec::new();
    for (flows, row) in [
        (1, row("flows 1", Target::Unset)),
        (1_000, row("flows 1000", Target::TimesPeer(0.7))),
        (20_000, row("flows 20000", Target::TimesPeer(0.5))),
    ] {
        let packets = SENT / flows * settings.seconds;
        let ends =
            format!("rate: {}pps\n    duration: {{fixed_packets: {packets}}}", ASKED / flows);
        cases.push((plan(&scratch, Kind::Field, flows, &ends)?, row));
    }
    // From 0.5 to 1.5 times the mean rate, so that the order of flows always changes.
    let flows = 1_001;
    let of_each = |flow| {
        let permille = 500 + flow;
        let rate = ASKED / flows * permille / 1_000;
        let packets = SENT / flows * settings.seconds * permille / 1_000;
        format!("rate: {rate}pps\n    duration: {{fixed_packets: {packets}}}")
    };
    let plan = plan_of_each(&scratch, Kind::Field, flows, of_each)?;
    cases.push((plan, row("rates 1000", Target::Unset)));
    for _ in 0..settings.rounds * RUNS_A_ROUND {
        for (plan, row) in &mut cases {
            let mut command = run_command(settings, plan, &lab.a.port(), "memory");
            row.wirestorm.push(mpps(&run(&mut command)?)?);
        }
    }
    let mut rows: Vec<Row> = cases.into_iter().map(|(_, row)| row).collect();
    if let [one, many @ ..] = rows.as_mut_slice() {
        for row in many {
            row.peer = Some(one.wirestorm.clone());
            row.notes.push("peer: one flow with the same total rate".into());
        }
    }
    Ok(rows)
}

/// Receives from a wire in memory with all measurements on.
pub(super) fn receive(settings: &Settings) -> Fallible<Vec<Row>> {
    const FRAMES: u64 = 10_000_000;
    let measure = workspace::build_example("wirestorm-engine", "measure")?;
    let mut rows = [
        (1, row("receive 1", Target::AtLeast(10.0))),
        (100, row("receive 100", Target::AtLeast(10.0))),
        (1_000, row("receive 1000", Target::AtLeast(10.0))),
    ];
    for _ in 0..settings.rounds {
        for (streams, row) in &mut rows {
            let mut command = Command::new(&measure);
            let printed = output(command.args([streams.to_string(), FRAMES.to_string()]))?;
            let result: Value = serde_json::from_str(&printed)?;
            row.wirestorm.push(number(&result, "/packets")? / number(&result, "/elapsed_s")? / 1e6);
        }
    }
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// A simulation that writes to /dev/null.
pub(super) fn simulate(settings: &Settings) -> Fallible<Vec<Row>> {
    let scratch = Scratch::new()?;
    let plan = plan(&scratch, Kind::Field, 1, "rate: 10Mpps")?;
    let packets = 20_000_000 * u64::from(settings.seconds);
    let mut row = row("sim field", Target::AtLeast(36.0));
    row.notes.push("whole run time of the program".into());
    for _ in 0..settings.rounds {
        let mut command = Command::new(&settings.wirestorm);
        command.arg("sim").arg(&plan).args(["-o", "/dev/null", "-l", &packets.to_string()]);
        let began = Instant::now();
        output(&mut command)?;
        row.wirestorm.push(packets as f64 / began.elapsed().as_secs_f64() / 1e6);
    }
    Ok(vec![row])
}

/// The frames of `Kind::Field` in the syntax of trafgen.
const TRAFGEN_FRAME: &str = "{
    0x02, 0, 0, 0, 0, 0x02, 0x02, 0, 0, 0, 0, 0x01, c16(0x0800),
    0x45, 0, c16(46), c16(0), c16(0), 64, 17, csumip(14, 33),
    10, 0, 0, dinc(1, 250), 192, 0, 2, 1,
    c16(1025), c16(53), c16(26), csumudp(14, 34), fill(0, 18)
}
";

/// One flow with a counting field over a veth pair, against trafgen.
pub(super) fn veth(settings: &Settings) -> Fallible<Vec<Row>> {
    /// Frames that trafgen sends for each second of a run; it has no option for a duration.
    const TRAFGEN_FRAMES: u64 = 300_000;
    let (lab, scratch) = (Lab::new()?, Scratch::new()?);
    let plan = plan(&scratch, Kind::Field, 1, "rate: max")?;
    let script = scratch.file("field.trafgen");
    std::fs::write(&script, TRAFGEN_FRAME)?;
    let seconds = format!("{}s", settings.seconds);
    let mut row = row("field xdp", Target::AtLeast(3.5));
    let mut trafgen = Figures::default();
    for _ in 0..settings.rounds {
        let _sink = Sink::Xdp.prepare(&lab)?;
        let before = lab.b.counters()?.rx_packets;
        let mut command = run_command(settings, &plan, &lab.a.port(), "xdp");
        let result = run(command.args(["--duration", &seconds]))?;
        let arrived = lab.b.counters()?.rx_packets.saturating_sub(before);
        row.wirestorm.push(arrived as f64 / number(&result, "/times/elapsed_s")? / 1e6);

        let packets = TRAFGEN_FRAMES * u64::from(settings.seconds);
        let before = lab.b.counters()?.rx_packets;
        let mut command = lab.a.command("trafgen");
        command.args(["--dev", lab.a.interface(), "--conf"]).arg(&script);
        command.args(["--cpus", "1", "--num", &packets.to_string()]);
        let text = output(&mut command)?;
        let arrived = lab.b.counters()?.rx_packets.saturating_sub(before);
        let took = trafgen_seconds(&text).ok_or_else(|| format!("no time in: {text}"))?;
        trafgen.push(arrived as f64 / took / 1e6);
    }
    row.peer = Some(trafgen);
    row.notes.push("peer: Debian's trafgen; both to an XDP program that drops".into());
    Ok(vec![row])
}

/// Accuracy of several rates.
pub(super) fn rates(settings: &Settings) -> Fallible<Vec<Row>> {
    /// 100 ppm is 0.01 %.
    const ERROR_PPM_MAX: f64 = 100.0;
    let lab = Lab::with(&LabOptions { gro: [false, true], ..LabOptions::default() })?;
    let scratch = Scratch::new()?;
    let seconds = format!("{}s", settings.seconds);
    let mut rows = Vec::new();
    for (name, rate) in [
        ("rate 1k", "1kpps"),
        ("rate 10k", "10kpps"),
        ("rate 100k", "100kpps"),
        ("rate 500k", "500kpps"),
        ("rate 1M", "1Mpps"),
        ("rate 2M", "2Mpps"),
        ("rate 3M", "3Mpps"),
    ] {
        let plan = plan(&scratch, Kind::Field, 1, &format!("rate: {rate}"))?;
        let mut row = Row { unit: "ppm", ..row(name, Target::AtMost(ERROR_PPM_MAX)) };
        let quantiles = ["p50", "p90", "p99", "p99_9", "max"];
        let mut gaps = quantiles.map(|_| Figures::default());
        for _ in 0..settings.rounds {
            let _sink = Sink::Xdp.prepare(&lab)?;
            let mut command = run_command(settings, &plan, &lab.a.port(), "xdp");
            let result = run(command.args(["--duration", &seconds]))?;
            row.wirestorm.push(number(&result, "/flows/0/rate_error_ppm")?.abs());
            for (figures, name) in gaps.iter_mut().zip(quantiles) {
                let place = format!("/ports/0/tx/departures/gap_errors/{name}_ns");
                figures.push(number(&result, &place)? / 1e3);
            }
        }
        let spread = quantiles.iter().zip(&gaps);
        let spread = spread.map(|(name, gap)| format!("{name} {:.2}", gap.median()));
        row.notes.push(format!("gap errors, us: {}", spread.collect::<Vec<_>>().join(", ")));
        rows.push(row);
    }
    Ok(rows)
}

/// Instructions and allocations for each packet sent into memory.
pub(super) fn counted(settings: &Settings) -> Fallible<Vec<Row>> {
    /// Packets of the short and of the long run.
    const PACKETS: [u32; 2] = [200_000, 1_200_000];
    let (lab, scratch) = (Lab::new()?, Scratch::new()?);
    let mut rows = Vec::new();
    for (kind, flows, rate, names) in [
        (Kind::Constant, 1, "max", ["instr constant", "alloc constant"]),
        (Kind::Field, 1, "max", ["instr field", "alloc field"]),
        (Kind::Tuple, 1, "max", ["instr tuple", "alloc tuple"]),
        (Kind::FieldSigned, 1, "max", ["instr signed", "alloc signed"]),
        (Kind::Field, 1_000, "100kpps", ["instr 1000 flows", "alloc 1000 flows"]),
    ] {
        for (name, event) in names.into_iter().zip([Event::Instruction, Event::Allocation]) {
            let mut commands = Vec::new();
            for packets in PACKETS {
                let ends =
                    format!("rate: {rate}\n    duration: {{fixed_packets: {}}}", packets / flows);
                let plan = plan(&scratch, kind, flows, &ends)?;
                let plan_of_length = plan.with_extension(format!("{packets}.yaml"));
                std::fs::rename(&plan, &plan_of_length)?;
                commands.push(run_command(settings, &plan_of_length, &lab.a.port(), "memory"));
            }
            let [short, long] = <[Command; 2]>::try_from(commands).map_err(|_| "two runs")?;
            let counts = instructions::counts(event, &scratch, &[short, long], of_result)?;
            rows.push(instructions::row(name, event, counts));
        }
    }
    let measure = workspace::build_example("wirestorm-engine", "measure")?;
    for (name, event) in
        [("instr receive", Event::Instruction), ("alloc receive", Event::Allocation)]
    {
        let commands = PACKETS.map(|packets| {
            let mut command = Command::new(&measure);
            command.args(["1", &packets.to_string()]);
            if event == Event::Instruction {
                // Count only the receiving part.
                command.env("VALGRIND_OPTS", "--toggle-collect=*measured*");
            }
            command
        });
        let packets =
            |result: &str| serde_json::from_str::<Value>(result).ok()?["packets"].as_f64();
        let counts = instructions::counts(event, &scratch, &commands, packets)?;
        rows.push(instructions::row(name, event, counts));
    }
    rows.sort_by_key(|row| !row.name.starts_with("instr"));
    Ok(rows)
}

/// Parses the number of packets from a run's result.
fn of_result(result: &str) -> Option<f64> {
    let result: Value = serde_json::from_str(result).ok()?;
    result.pointer("/ports/0/tx/packets")?.as_f64()
}

/// Runs testpmd with 60-byte frames and the null device for `seconds` seconds.
fn testpmd_mpps(seconds: u32) -> Fallible<f64> {
    // SIGINT ends testpmd, after one extra second for its start.
    let limit = (seconds + 2).to_string();
    let mut command = Command::new("timeout");
    command.args(["--signal=INT", "--preserve-status", "--kill-after=5", &limit]);
    command.args(["dpdk-testpmd", "--no-pci", "--no-huge", "--no-telemetry", "-m", "256"]);
    command.args(["--vdev=net_null0,size=60", "-l", "0,1", "--", "--forward-mode=txonly"]);
    command.args(["--txpkts=60", "--total-num-mbufs=8192", "--stats-period=1"]);
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rates = testpmd_rates(&text);
    if rates.median() > 0.0 {
        return Ok(rates.median());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!("dpdk-testpmd sent nothing: {}", complaint.trim()).into())
}

/// Parses the lines `Tx-pps:     42785900          Tx-bps:            0`, one a second. Skips the
/// first, which covers the time before.
fn testpmd_rates(text: &str) -> Figures {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("Tx-pps:"));
    let rates = lines.filter_map(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    rates.skip(1).map(|rate| rate / 1e6).collect()
}

/// Parses the line `     1 sec, 234567 usec on CPU0 (300000 packets)`.
fn trafgen_seconds(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains("usec on CPU"))?;
    let mut words = line.split_whitespace();
    let seconds: f64 = words.next()?.parse().ok()?;
    let microseconds: f64 = words.nth(1)?.parse().ok()?;
    Some(seconds + microseconds / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn testpmd_rates_are_parsed_without_the_first() {
        let text = "  Tx-pps:            0          Tx-bps:            0\n\
                    Throughput (since last show)\n\
                    \x20 Rx-pps:            7          Rx-bps:            0\n\
                    \x20 Tx-pps:     42000000          Tx-bps:            0\n\
                    \x20 Tx-pps:     44000000          Tx-bps:            0\n";
        assert_eq!(testpmd_rates(text).median(), 43.0);
        assert_eq!(testpmd_rates("EAL: Error - exiting with code: 1").median(), 0.0);
    }

    #[test]
    fn trafgen_time_is_parsed() {
        let text = "      300000 packets outgoing\n\
                    \x20          1 sec, 250000 usec on CPU0 (300000 packets)\n";
        assert_eq!(trafgen_seconds(text), Some(1.25));
        assert_eq!(trafgen_seconds("Failed to open"), None);
    }
}
