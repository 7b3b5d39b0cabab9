//! `--save` and `wirestorm runs`: saved runs of real interfaces, also of one that is killed.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use wirestorm_e2e::{
    Outcome, can_run, run_command, start_command, traffic, wirestorm, write_capture,
};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::skip;

/// Runs `wirestorm runs` on a history.
fn runs(history: &Path, arguments: &[&str]) -> Outcome {
    run_command(
        Command::new(wirestorm()).arg("runs").args(arguments).arg("--runs-dir").arg(history),
    )
}

/// A command that replays from one end of the lab to the other and saves the run.
fn replay(lab: &Lab, history: &Path, capture: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(wirestorm());
    command.args(["replay", "-i", &lab.a.port(), "--rx", &lab.b.port(), "-q", "--json", "-"]);
    command.arg("--runs-dir").arg(history).args(more).arg(capture);
    command
}

/// Returns the only run that fits a name, from the list.
fn listed(history: &Path, name: &str) -> Value {
    let outcome = runs(history, &["list", "--json"]).expect(0);
    let list = outcome.result()["runs"].as_array().expect("runs").clone();
    let mut fitting = list.into_iter().filter(|run| run["name"] == name);
    let run = fitting.next().unwrap_or_else(|| panic!("no run {name}\n{outcome}"));
    assert!(fitting.next().is_none(), "{outcome}");
    run
}

/// Waits until the history has a run.
fn wait_for_record(history: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let list = || runs(history, &["list", "--json"]).expect(0);
    while list().result()["runs"].as_array().is_none_or(Vec::is_empty) {
        assert!(Instant::now() < deadline, "the run does not start");
    }
}

#[test]
fn saved_replays_are_listed_shown_compared_exported_and_deleted() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let history = scratch.file("runs");
    let capture = write_capture(&scratch, "traffic.pcap", &traffic(30, 1));
    let mut results = Vec::new();
    for (name, pps) in [("slow", "2000"), ("fast", "4000")] {
        let save = format!("--save={name}");
        let outcome = run_command(&mut replay(&lab, &history, &capture, &[&save, "--pps", pps]));
        let id = outcome.messages.split_once("saved as ").expect("an ID").1;
        let id = id.split(';').next().expect("an ID").to_owned();
        assert!(outcome.messages.contains(&format!("wirestorm runs show {id}")), "{outcome}");
        let run = listed(&history, name);
        assert_eq!((&run["id"], &run["kind"]), (&id.into(), &"replay".into()));
        assert_eq!(run["state"], "finished", "{outcome}");
        assert_eq!(run["outcome"], outcome.result()["verdict"]["outcome"], "{outcome}");
        assert_eq!(run["figure"]["value"], outcome.result()["achieved"]["pps"], "{outcome}");
        results.push(outcome.result().clone());
    }

    // The record has the result, number by number, and the facts of the run.
    let shown = runs(&history, &["show", "fast", "--json"]).expect(0);
    assert_eq!(shown.result()["result"], results[1], "{shown}");
    let record = &shown.result()["run"];
    let command: Vec<_> = record["command"].as_array().unwrap().iter().collect();
    assert_eq!(command[1], "replay", "{shown}");
    let interfaces: Vec<_> =
        record["interfaces"].as_array().unwrap().iter().map(|it| &it["interface"]).collect();
    assert_eq!(interfaces, [&lab.a.port(), &lab.b.port()], "{shown}");
    assert_eq!(record["interfaces"][0]["kind"], "veth", "{shown}");
    assert!(record["machine"]["memory_bytes"].as_u64() > Some(0), "{shown}");
    let text = runs(&history, &["show", "fast"]).expect(0).output;
    for words in ["name        fast", "done in", "received", &lab.a.port()] {
        assert!(text.contains(words), "{words}: {text}");
    }

    let compared = runs(&history, &["compare", "slow", "fast"]).expect(0).output;
    assert!(compared.contains("the noise is unknown"), "{compared}");
    assert!(compared.contains("\"replay") && compared.contains("--pps 4000"), "{compared}");
    let long: Vec<_> = compared.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(long.is_empty(), "{long:#?}");
    let compared = runs(&history, &["compare", "slow", "fast", "--json"]).expect(0);
    let sent = compared.result()["figures"].as_array().unwrap();
    let sent = sent.iter().find(|it| it["name"] == "sent").expect("the rate");
    assert_eq!(sent["a"], results[0]["achieved"]["pps"], "{compared}");
    assert_eq!(sent["b"], results[1]["achieved"]["pps"], "{compared}");
    assert_eq!(sent["noise"], "no_repetition", "{compared}");

    exports_agree(&history, &scratch, &results[0]);

    let refused = runs(&history, &["delete", "slow"]);
    refused.expect_error(2, &["--yes"]);
    runs(&history, &["delete", "slow", "--yes"]).expect(0);
    runs(&history, &["show", "slow"]).expect_error(2, &["\"slow\"", "wirestorm runs list"]);
    assert_eq!(listed(&history, "fast")["state"], "finished");
}

/// Reads exports of the run `slow` back.
fn exports_agree(history: &Path, scratch: &Scratch, result: &Value) {
    let csv = runs(history, &["export", "slow"]).expect(0).output;
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let [names, row] = lines.as_slice() else { panic!("{csv}") };
    let cell = |name: &str| {
        let column = names.iter().position(|it| *it == name).unwrap_or_else(|| panic!("{csv}"));
        row[column]
    };
    assert_eq!(cell("test"), "replay");
    assert_eq!(cell("offered"), result["achieved"]["packets"].to_string());
    assert_eq!(cell("received"), result["ports"][1]["rx"]["packets"].to_string());
    let json = runs(history, &["export", "slow", "--what", "histograms", "--format", "json"]);
    let json = json.expect(0);
    let buckets = json.result().as_array().expect("rows");
    assert!(!buckets.is_empty(), "{json}");
    let gaps: Vec<_> = buckets
        .iter()
        .filter(|row| {
            let text = row["path"].as_str().unwrap_or_default();
            text.starts_with("ports") && text.ends_with("rx/gaps")
        })
        .map(|row| serde_json::json!([row["lower_ns"], row["count"]]))
        .collect();
    let expected = result["ports"][1]["rx"]["gaps"]["buckets"].as_array();
    assert_eq!(Some(&gaps), expected, "all buckets, unchanged");

    let parquet = scratch.file("trials.parquet");
    let file = parquet.to_str().expect("UTF-8");
    runs(history, &["export", "slow", "-o", file]).expect(0);
    let bytes = std::fs::read(&parquet).expect("a file");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn exported_trials_are_read_by_pyarrow() {
    if !can_run(&[]) {
        return;
    }
    let Some(python) = std::env::var_os("WIRESTORM_PYTHON") else {
        skip("WIRESTORM_PYTHON names no Python with the package pyarrow");
        return;
    };
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let history = scratch.file("runs");
    let capture = write_capture(&scratch, "traffic.pcap", &traffic(30, 1));
    let run = run_command(&mut replay(&lab, &history, &capture, &["--save=slow"])).expect(0);
    let parquet = scratch.file("trials.parquet");
    let file = parquet.to_str().expect("UTF-8");
    runs(&history, &["export", "slow", "-o", file]).expect(0);
    const READ: &str = "import sys, json, pyarrow.parquet as p\n\
                        print(json.dumps(p.read_table(sys.argv[1]).to_pylist()))";
    let read = run_command(Command::new(python).args(["-c", READ, file])).expect(0);
    let offered = &run.result()["achieved"]["packets"];
    assert_eq!(&read.result()[0]["offered"], offered, "{read}");
    assert_eq!(read.result()[0]["test"], "replay", "{read}");
}

#[test]
fn killed_run_is_listed_as_died() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let history = scratch.file("runs");
    let capture = write_capture(&scratch, "traffic.pcap", &traffic(30, 1));
    let endless = ["--save=killed", "--loop", "0", "--pps", "1000"];
    let running = start_command(&mut replay(&lab, &history, &capture, &endless));
    wait_for_record(&history);
    assert_eq!(listed(&history, "killed")["state"], "running");
    runs(&history, &["delete", "killed", "--yes"])
        .expect_error(1, &["-replay is still running", "stop it"]);
    running.signal(Signal::KILL);
    let outcome = running.wait();
    assert_eq!(outcome.status.code(), None, "{outcome}");
    assert_eq!(listed(&history, "killed")["state"], "died");
    let shown = runs(&history, &["show", "killed"]).expect(0).output;
    assert!(shown.contains("died: its process ended"), "{shown}");
    runs(&history, &["delete", "killed", "--yes"]).expect(0);
}

#[test]
fn interrupted_run_keeps_its_result() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let history = scratch.file("runs");
    let plan = scratch.file("plan.yaml");
    let text = "ports: [{name: a}, {name: b}]\nflows:\n  - {name: voice, tx: a, rx: b, size: 128, \
                rate: 1kpps, packet: [ethernet: {}, ipv4: {}, udp: {}], metrics: {enable: true}}\n";
    std::fs::write(&plan, text).unwrap();
    let mut command = Command::new(wirestorm());
    command.arg("run").arg(&plan).args(["--save", "--json", "-", "--runs-dir"]).arg(&history);
    for (name, end) in [("a", &lab.a), ("b", &lab.b)] {
        command.args(["--port", &format!("{name}={}", end.port())]);
    }
    let running = start_command(&mut command);
    wait_for_record(&history);
    running.signal(Signal::INT);
    let outcome = running.wait();
    let list = runs(&history, &["list", "--json"]).expect(0);
    let run = &list.result()["runs"][0];
    assert_eq!((&run["state"], &run["name"]), (&"interrupted".into(), &Value::Null), "{outcome}");
    let shown = runs(&history, &["show", "latest", "--json"]).expect(0);
    assert_eq!(shown.result()["run"]["files"][plan.to_str().unwrap()], text, "{shown}");
    if outcome.result().is_object() {
        assert_eq!(shown.result()["result"], *outcome.result(), "{shown}");
    }
}

#[test]
fn wrong_input_leaves_no_run() {
    let scratch = Scratch::new().unwrap();
    let history = scratch.file("runs");
    let capture = write_capture(&scratch, "traffic.pcap", &traffic(2, 1));
    let replay = |arguments: &[&str]| {
        let mut command = Command::new(wirestorm());
        command.args(["replay", "--topspeed", "--runs-dir"]).arg(&history).args(arguments);
        run_command(command.arg(&capture))
    };
    replay(&["--save", "-i", "missing0"]).expect_error(2, &["missing0"]);
    let list = runs(&history, &["list", "--json"]).expect(0);
    assert_eq!(list.result()["runs"].as_array().map(Vec::len), Some(0), "{list}");
    replay(&["--save=latest", "--backend", "memory"]).expect_error(2, &["\"latest\""]);
    replay(&["--backend", "memory"]).expect_error(2, &["--runs-dir", "--save"]);
    replay(&["--backend", "memory", "--save=m"]).expect(0);
    assert_eq!(listed(&history, "m")["state"], "finished");
    // A history that cannot be written: nothing is sent.
    std::fs::write(scratch.file("file"), "").unwrap();
    let blocked = scratch.file("file/runs");
    let mut command = Command::new(wirestorm());
    command.args(["replay", "--backend", "memory", "--save", "--runs-dir"]).arg(&blocked);
    run_command(command.arg(&capture)).expect_error(2, &["--save", "file/runs"]);
}
