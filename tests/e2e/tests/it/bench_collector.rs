//! `wirestorm bench collector` with nfcapd of nfdump.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use wirestorm_e2e::{Outcome, can_run, run_command, start_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

const PORT: u16 = 2_055;
/// Longest wait for nfcapd.
const PATIENCE: Duration = Duration::from_secs(30);

/// Exporters on one end of a veth pair, and nfcapd on the other.
struct Bench {
    lab: Lab,
    scratch: Scratch,
}

/// A collector, which ends with the test.
struct Nfcapd(Child);

impl Drop for Nfcapd {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bench {
    fn new() -> Self {
        let lab = Lab::new().unwrap();
        for (end, address) in [(&lab.a, "198.18.0.1/24"), (&lab.b, "198.18.0.9/24")] {
            let add = format!("address add {address} dev {}", end.interface());
            end.namespace().ip(&[&add]).unwrap();
        }
        Self { lab, scratch: Scratch::new().unwrap() }
    }

    /// Starts nfcapd with files of `seconds`, and waits until its socket is open.
    fn nfcapd(&self, folder: &Path, seconds: u32) -> Nfcapd {
        std::fs::create_dir(folder).unwrap();
        let mut command = self.lab.b.command("nfcapd");
        command.args(["-p", &PORT.to_string(), "-t", &seconds.to_string(), "-w"]).arg(folder);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let nfcapd = Nfcapd(command.spawn().unwrap());
        let deadline = Instant::now() + PATIENCE;
        let is_open = || {
            let mut sockets = self.lab.b.command("cat");
            let output = sockets.args(["/proc/net/udp", "/proc/net/udp6"]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).contains(&format!(":{PORT:04X} "))
        };
        while !is_open() {
            assert!(Instant::now() < deadline, "nfcapd does not open its socket");
            std::thread::sleep(Duration::from_millis(10));
        }
        nfcapd
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let namespace = self.lab.a.port();
        let namespace = namespace.rsplit_once(':').expect("netns/NAME:INTERFACE").0;
        let mut command = Command::new(wirestorm());
        command.args(["bench", "collector", "--json", "-", "--settle", "0"]);
        command.arg(format!("--target={namespace}:198.18.0.9:{PORT}"));
        command.arg("--runs-dir").arg(self.scratch.file("history")).args(arguments);
        command
    }
}

impl Nfcapd {
    /// Ends nfcapd, which then writes the rest of its records.
    fn finish(mut self) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::INT).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

/// Returns what nfdump prints about the records of a folder.
fn nfdump(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("nfdump").arg("-R").arg(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Records by the address of their exporter, with the source addresses of their flows.
fn stored(folder: &Path) -> BTreeMap<Ipv4Addr, Vec<Ipv4Addr>> {
    let mut stored: BTreeMap<Ipv4Addr, Vec<Ipv4Addr>> = BTreeMap::new();
    for line in nfdump(folder, &["-q", "-o", "fmt:%ra %sa"]).lines() {
        let mut addresses = line.split_whitespace().map(|text| text.parse().expect("an address"));
        let (exporter, source) = (addresses.next().unwrap(), addresses.next().unwrap());
        stored.entry(exporter).or_default().push(source);
    }
    stored
}

fn streams(outcome: &Outcome) -> Vec<Value> {
    let streams = outcome.result().pointer("/findings/streams").and_then(Value::as_array);
    streams.unwrap_or_else(|| panic!("no streams: {outcome}")).clone()
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} of {value}"))
}

#[test]
fn nfcapd_stores_exactly_the_records_of_all_exporters() {
    if !can_run(&["nfcapd", "nfdump"]) {
        return;
    }
    for protocol in ["v5", "v9", "ipfix"] {
        let bench = Bench::new();
        let interface = bench.lab.a.interface();
        for host in 2..=4 {
            let add = format!("address add 198.18.0.{host}/24 dev {interface}");
            bench.lab.a.namespace().ip(&[&add]).unwrap();
        }
        let folder = bench.scratch.file("nfcapd");
        let nfcapd = bench.nfcapd(&folder, 86_400);
        let outcome = run_command(&mut bench.command(&[
            "--protocol",
            protocol,
            "--exporters=4",
            "--domains=3",
            "--source=198.18.0.1-198.18.0.4",
            "--records-per-second=5k,20k",
            "--trial=1s",
            "--template-refresh-datagrams=10",
        ]))
        .expect(0);
        nfcapd.finish();

        let stored = stored(&folder);
        let streams = streams(&outcome);
        assert_eq!(streams.len(), 12, "{outcome}");
        let sent: u64 = streams.iter().map(|stream| number(stream, "records")).sum();
        // Two trials, and those that were repeated.
        assert!(sent >= 25_000, "{outcome}");
        assert_eq!(stored.values().map(Vec::len).sum::<usize>() as u64, sent, "{outcome}");
        let mut expected: BTreeMap<Ipv4Addr, BTreeSet<Ipv4Addr>> = BTreeMap::new();
        for (place, stream) in (0_u64..).zip(&streams) {
            let source = stream["source"].as_str().and_then(|text| text.split_once(':'));
            let source = source.and_then(|(address, _)| address.parse().ok()).expect("a source");
            // Each stream has every twelfth flow of the generator, from 10.0.0.0.
            let flow = |index| Ipv4Addr::from_bits((10 << 24) + (index * 12 + place) as u32);
            expected.entry(source).or_default().extend((0..number(stream, "records")).map(flow));
            assert_eq!(number(stream, "domain"), place % 3 + 1, "{stream}");
            assert_eq!(number(stream, "first_sequence"), 0, "{stream}");
            // What the sequence numbers count differs (RFC 3954 section 5.1, RFC 7011 section 3.1).
            let (last, datagrams) = (number(stream, "last_sequence"), number(stream, "datagrams"));
            match protocol {
                "v9" => assert_eq!(last, datagrams - 1, "{stream}"),
                _ => assert!(last < number(stream, "records") && last >= datagrams, "{stream}"),
            }
            let templates = if protocol == "v5" { 0 } else { datagrams.div_ceil(10) };
            assert_eq!(number(stream, "template_datagrams"), templates, "{stream}");
        }
        let stored: BTreeMap<_, BTreeSet<_>> = stored
            .into_iter()
            .map(|(exporter, flows)| (exporter, flows.into_iter().collect()))
            .collect();
        assert!(stored == expected, "other flows than those that were sent: {outcome}");
        let statistics = nfdump(&folder, &["-I"]);
        assert!(statistics.contains("Sequence failures: 0"), "{statistics}");
    }
}

#[test]
fn rate_where_a_collector_loses_records_is_found() {
    if !can_run(&["nfcapd", "nfdump", "nft"]) {
        return;
    }
    let bench = Bench::new();
    for line in [
        "add table ip drops",
        "add chain ip drops input { type filter hook input priority 0 ; }",
        "add rule ip drops input udp dport 2055 limit rate over 200/second burst 20 packets drop",
    ] {
        let output = bench.lab.b.command("nft").arg(line).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let folder = bench.scratch.file("nfcapd");
    // nfcapd writes a file every 2 s.
    let _nfcapd = bench.nfcapd(&folder, 2);
    // Without a file, nfdump prints a message instead of records.
    let folder = folder.display();
    let count = format!("nfdump -R {folder} -q -o fmt:%sa | grep -c '^ *10[.]' || true");
    let outcome = run_command(&mut bench.command(&[
        // 24 records in a datagram: 50, 100 and 800 datagrams a second.
        "--records-per-second=1200,2400,19200",
        "--trial=2s",
        "--quiet-time=5s",
        "--received-command",
        &count,
    ]))
    .expect(0);
    let findings = &outcome.result()["findings"];
    assert_eq!(findings["throughput"], 2_400, "{outcome}");
    assert_eq!(findings["loss_begins"], 19_200, "{outcome}");
    let points = findings["points"].as_array().unwrap();
    for point in &points[..2] {
        assert_eq!(point["collector"]["stored"], point["collector"]["records"], "{outcome}");
    }
    // 420 of 1,600 datagrams pass.
    let loss = points[2]["loss_percent"].as_f64().unwrap();
    assert!((60.0..85.0).contains(&loss), "{loss}: {outcome}");
}

#[test]
fn closed_port_and_interruption_are_reported() {
    if !can_run(&[]) {
        return;
    }
    let bench = Bench::new();
    let arguments = ["--records-per-second=1k,2k,3k", "--trial=500ms", "--name=closed"];
    let running = start_command(&mut bench.command(&arguments));
    running.wait_for_message("    2  sweep");
    running.signal(Signal::KILL);
    running.wait();
    let mut resume = Command::new(wirestorm());
    resume.args(["bench", "resume", "closed", "--runs-dir"]).arg(bench.scratch.file("history"));
    let outcome = run_command(&mut resume).expect(0);
    assert!(!outcome.messages.contains("    2  sweep"), "{outcome}");
    let result: Value = serde_json::from_str(&outcome.output).expect("the result");
    let points = result["findings"]["points"].as_array().unwrap();
    assert_eq!(points.len(), 3, "{outcome}");
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("refused datagrams"), "{outcome}");
    // A report of the run has its trials.
    let mut report = Command::new(wirestorm());
    report.args(["report", "closed", "--format", "markdown", "-o", "-", "--runs-dir"]);
    let outcome = run_command(report.arg(bench.scratch.file("history"))).expect(0);
    assert!(outcome.output.contains("closed"), "{outcome}");
}
