//! Tests of `wirestorm report`.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use wirestorm_testkit::Scratch;

/// Runs the command in a folder, which also has the run history.
fn wirestorm(scratch: &Scratch, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wirestorm"));
    command.args(arguments).current_dir(scratch.path()).env("WIRESTORM_RUNS", scratch.file("runs"));
    command.output().expect("the program runs")
}

/// Returns a folder with `bench.json`, the result of a benchmark of a simulated device.
fn with_result() -> Scratch {
    let scratch = Scratch::new().expect("a folder");
    let limits = "frames_per_second=1e6,queue=1000";
    let arguments = [
        "bench",
        "rfc2544",
        "--simulate",
        limits,
        "--link-speed",
        "10G",
        "--frame-sizes",
        "64,1518",
        "--tests",
        "throughput",
        "--json",
        "bench.json",
    ];
    let output = wirestorm(&scratch, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    scratch
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn name_of_the_output_selects_the_format() {
    let scratch = with_result();
    for (name, start) in [
        ("a.html", "<!doctype html>"),
        ("a.md", "# RFC 2544 benchmark (simulated device)"),
        ("a.xml", "<?xml"),
        ("a.json", "{"),
    ] {
        let output = wirestorm(&scratch, &["report", "bench.json", "-o", name]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = fs::read_to_string(scratch.file(name)).expect("a report");
        assert!(text.starts_with(start), "{name}: {text:.100}");
    }
    let output = wirestorm(&scratch, &["report", "bench.json", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["schema"], "wirestorm.report/1");
    let output = wirestorm(&scratch, &["report", "bench.json", "-o", "report"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("suggests no format"), "{}", stderr(&output));
}

#[test]
fn limits_set_the_exit_status_and_the_report_is_written() {
    let scratch = with_result();
    for (limit, status, message) in [
        ("throughput[64]<900kpps", 0, ""),
        ("throughput[64]>900kpps", 3, "64 bytes, ipv4 is "),
        ("throughput[9000]<1Mpps", 1, "no figure of the runs belongs to this limit"),
        ("throughput<1", 2, "expected a unit: pps, kpps, Mpps, Gpps"),
    ] {
        let _ = fs::remove_file(scratch.file("report.md"));
        let arguments = ["report", "bench.json", "-o", "report.md", "--fail-if", limit];
        let output = wirestorm(&scratch, &arguments);
        assert_eq!(output.status.code(), Some(status), "{limit}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{limit}: {}", stderr(&output));
        assert_eq!(scratch.file("report.md").exists(), status != 2, "{limit}");
    }
    // A limit without a figure is worse than one that is true.
    let both = ["--fail-if", "throughput[64]>1pps", "--fail-if", "loss[9000]>0"];
    let output = wirestorm(&scratch, &[&["report", "bench.json"][..], &both].concat());
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn limit_fails_for_a_run_without_a_result() {
    let scratch = Scratch::new().expect("a folder");
    let flags =
        ["--simulate", "frames_per_second=1e6", "--frame-sizes", "64", "--runs-dir", "runs"];
    for name in ["whole", "killed"] {
        let bench = ["bench", "ndr", "--name", name];
        let output = wirestorm(&scratch, &[&bench[..], &flags].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let runs = fs::read_dir(scratch.file("runs")).expect("a folder");
    let mut folders = runs.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>();
    folders.retain(|path| path.is_dir());
    folders.sort();
    // As after `kill -9`.
    let killed = folders.last().expect("a run");
    fs::remove_file(killed.join("result.json")).expect("a result");
    let report = |run: &str, limits: &[&str]| {
        wirestorm(&scratch, &[&["report", "whole", run, "--runs-dir", "runs"][..], limits].concat())
    };
    let limit = ["--fail-if", "throughput[64]<1pps"];
    assert_eq!(report("whole", &limit).status.code(), Some(0));
    assert_eq!(report("killed", &[]).status.code(), Some(0));
    let output = report("killed", &limit);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("has no result to judge"), "{}", stderr(&output));
}

#[test]
fn wrong_files_are_named() {
    let scratch = Scratch::new().expect("a folder");
    fs::write(scratch.file("other.json"), "{\"schema\": \"other/1\"}").expect("a file");
    for (file, message) in
        [("none.json", "none.json: no such file, and"), ("other.json", "the format is \"other/1\"")]
    {
        let output = wirestorm(&scratch, &["report", file]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}

#[test]
fn list_of_metrics_needs_no_run() {
    let scratch = Scratch::new().expect("a folder");
    let output = wirestorm(&scratch, &["report", "--list-metrics"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("p99.9 ") && text.contains("(ns, us, µs"));
}
