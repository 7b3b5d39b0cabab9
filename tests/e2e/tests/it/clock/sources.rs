//! Sources of the clock's error: chronyd and ptp4l.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;
use wirestorm_e2e::{Outcome, Running, can_run, run_command, start_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab, LabOptions};

use super::{Ptp4l, clock, text, until};

/// chronyd, which never sets the clock.
pub(crate) struct Chronyd {
    _process: Running,
    scratch: Scratch,
}

impl Chronyd {
    pub(crate) fn start(end: &End, configuration: &str) -> Self {
        let scratch = Scratch::new().unwrap();
        // chronyd refuses a directory that all users may read.
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o750)).unwrap();
        let file = scratch.file("chrony.conf");
        let socket = scratch.file("chronyd.sock");
        let text = format!(
            "bindcmdaddress {}\npidfile {}\ncmdport 10323\n{configuration}\n",
            socket.display(),
            scratch.file("chronyd.pid").display()
        );
        fs::write(&file, text).unwrap();
        let mut command = end.command("chronyd");
        let process = start_command(command.args(["-x", "-d", "-u", "root", "-f"]).arg(&file));
        until("the socket of chronyd", || socket.exists().then_some(()));
        Self { _process: process, scratch }
    }

    /// Starts a server on one end of a lab and a client on the other, which follows it.
    pub(crate) fn pair(lab: &Lab) -> (Self, Self) {
        let server = Self::start(&lab.b, "local stratum 8\nallow");
        let address = lab.b.ipv4().to_string();
        let client = Self::start(
            &lab.a,
            &format!("server {address} iburst minpoll 0 maxpoll 0\nport 0\nmaxdistance 16"),
        );
        until("a measurement of chronyd", || {
            (client.tracking().get(1).is_some_and(|server| *server == address)).then_some(())
        });
        (server, client)
    }

    pub(crate) fn socket(&self) -> std::path::PathBuf {
        self.scratch.file("chronyd.sock")
    }

    /// Returns the fields of chronyc's tracking report.
    fn tracking(&self) -> Vec<String> {
        let output = Command::new("chronyc")
            .args(["-n", "-c", "-h", text(&self.socket()), "tracking"])
            .output()
            .unwrap();
        let line = String::from_utf8(output.stdout).unwrap();
        line.trim().split(',').map(str::to_owned).collect()
    }
}

/// Runs `wirestorm clock show --json`.
fn show(end: &End, arguments: &[&str]) -> Outcome {
    let mut command = clock(end, &["show", "--json"]);
    let outcome = run_command(command.args(arguments));
    outcome.assert_valid("clock-sources");
    outcome
}

/// Returns the report of a kind of source.
#[track_caller]
fn source<'a>(outcome: &'a Outcome, kind: &str) -> &'a Value {
    let sources = outcome.result()["sources"].as_array().expect("a list of sources");
    sources.iter().find(|source| source["kind"] == kind).expect("a report of this kind")
}

pub(crate) fn lab() -> Lab {
    Lab::with(&LabOptions { addresses: true, ..LabOptions::default() }).unwrap()
}

#[test]
fn bound_of_chronyd_is_that_of_chronyc() {
    if !can_run(&["chronyd", "chronyc"]) {
        return;
    }
    let lab = lab();
    let (server, client) = Chronyd::pair(&lab);
    let address = lab.b.ipv4().to_string();
    let socket = client.socket();
    // The dispersion grows with time, so chronyc is asked before and after.
    let before = chronyc_bound(&client);
    let outcome = show(&lab.a, &["--chrony", text(&socket)]).expect(0);
    let after = chronyc_bound(&client);
    let report = source(&outcome, "chrony");
    let bound = report["bound_ns"].as_f64().unwrap();
    // A measurement in between may change it, by a part of it.
    let (low, high) = (before.min(after) * 0.5, before.max(after) * 2.0);
    assert!((low..=high).contains(&bound), "{before} {after}\n{outcome}");
    assert_eq!(report["reference"], format!("{address}, stratum 9"));
    assert_eq!(report["is_independent"], true);
    assert_eq!(report["problem"], Value::Null, "{outcome}");
    // Both ends have the same clock.
    assert!(report["offset_ns"].as_i64().unwrap().abs() <= bound as i64, "{outcome}");
    assert_eq!(outcome.result()["sources"][0]["kind"], "chrony", "{outcome}");
    assert_eq!(outcome.number("/chosen"), 0);
    // Over UDP, as without access to the socket.
    let outcome = show(&lab.a, &["--chrony", "/nonexistent", "--chrony-port", "10323"]).expect(0);
    assert_eq!(source(&outcome, "chrony")["name"], "127.0.0.1:10323", "{outcome}");
    // The server has no reference.
    let socket = server.socket();
    let outcome = show(&lab.b, &["--chrony", text(&socket)]).expect(3);
    let problem = source(&outcome, "chrony")["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("local stratum"), "{outcome}");
    assert!(outcome.result()["chosen"].is_null(), "{outcome}");
}

/// Returns the bound in ns by chronyc's report, in its format without units.
fn chronyc_bound(daemon: &Chronyd) -> f64 {
    let fields = daemon.tracking();
    let seconds = |position: usize| fields[position].parse::<f64>().unwrap();
    // Offset, root delay and root dispersion.
    (seconds(4).abs() + seconds(10) / 2.0 + seconds(11)) * 1e9
}

#[test]
fn ptp4l_is_asked_over_its_socket() {
    if !can_run(&["ptp4l", "pmc"]) {
        return;
    }
    let lab = lab();
    let master = Ptp4l::start(&lab.a, "L2", ["clockAccuracy 0x22", "", ""]);
    let slave = Ptp4l::start(&lab.b, "L2", ["slaveOnly 1", "", ""]);
    slave.offset_median();
    let delay = slave.field("CURRENT_DATA_SET", "meanPathDelay").unwrap();
    let outcome = show(&lab.b, &["--ptp4l", "/nonexistent", "--ptp4l", text(&slave.socket)]);
    let outcome = outcome.expect(0);
    let report = source(&outcome, "ptp4l");
    assert_eq!(report["reference"], "grandmaster 025753.fffe.000000", "{outcome}");
    let number = |name: &str| report[name].as_i64().unwrap();
    // Offset and path delay, and 250 ns for the grandmaster (0x22).
    let own = number("bound_ns") - 250 - number("offset_ns").abs();
    let delay: f64 = delay.parse().unwrap();
    assert!((own as f64) < delay * 3.0 + 20_000.0 && own > 0, "{delay}\n{outcome}");
    assert_eq!(outcome.result()["sources"][0]["kind"], "ptp4l", "{outcome}");
    // The master itself follows nobody.
    let outcome = show(&lab.a, &["--ptp4l", text(&master.socket)]).expect(3);
    assert_eq!(source(&outcome, "ptp4l")["problem"], "ptp4l has no master", "{outcome}");
    // Another domain gets no answer.
    let arguments = ["--ptp4l", text(&slave.socket), "--domain", "7"];
    let outcome = show(&lab.b, &arguments).expect(3);
    let problem = source(&outcome, "ptp4l")["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("does not answer"), "{outcome}");
}

#[test]
fn machine_without_sources_gets_reasons_and_advice() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new().unwrap();
    let nowhere = ["--chrony", "/nonexistent", "--ptp4l", "/nonexistent"];
    let outcome = run_command(clock(&lab.a, &["show"]).args(nowhere));
    let text = &outcome.output;
    assert!(text.contains("chronyd does not answer: /nonexistent"), "{outcome}");
    assert!(text.contains("ptp4l does not answer: /nonexistent"), "{outcome}");
    assert!(text.contains("chosen: "), "{outcome}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{outcome}");
    show(&lab.a, &nowhere);
    run_command(clock(&lab.a, &["show"]).args(["--phc-error", "40"]))
        .expect_error(2, &["--phc-error", "40us"]);
}
