//! Tests that results and plans validate against the published schemas.

use std::fs;
use std::process::Command;

use serde_json::Value;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::require::require_root;
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

#[test]
fn results_validate_against_the_printed_schema() {
    let scratch = Scratch::new().expect("a folder");
    let capture = scratch.file("sample.pcap");
    let traffic = Traffic::new(TrafficOptions { conversations: 20, ..TrafficOptions::default() });
    write_file(traffic, Resolution::Nanoseconds, &capture).expect("a capture");
    let validator = printed_schema("result");

    for arguments in [
        &["--topspeed"][..],
        &["--pps", "100000", "--loop", "2"],
        &["--mbps-l1", "100", "--limit", "5", "--unique-ip"],
        &["--multiplier", "1000000", "--no-flow-stats"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_wirestorm"))
            .args(["replay", "--backend", "memory", "--json", "-"])
            .args(arguments)
            .arg(&capture)
            .output()
            .expect("the program runs");
        let error = String::from_utf8_lossy(&output.stderr);
        let result: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|reason| panic!("{arguments:?}: {reason}: {error}"));
        let wrong: Vec<String> = validator
            .iter_errors(&result)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{arguments:?}: {wrong:#?}");

        // The schema rejects an unknown field and a missing one.
        let mut other = result.clone();
        other["surprise"] = 1.into();
        assert!(!validator.is_valid(&other));
        let mut other = result;
        other.as_object_mut().and_then(|it| it.remove("achieved")).expect("what was achieved");
        assert!(!validator.is_valid(&other));
    }
}

#[test]
fn closed_pipe_is_no_failure_for_schema() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_wirestorm"));
    let output = command.args(["schema", "plan"]).stdout(writer).output().expect("a program");
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
}

#[test]
fn printed_plan_validates_against_the_schema() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_wirestorm")).args(arguments).output();
        output.expect("the program runs").stdout
    };
    let validator = printed_schema("plan");
    let send = ["send", "--tx", "eth1", "--rx", "eth2", "--print-plan", "--rate", "1Mpps"];
    for more in [
        &["--udp", "--dport", "1024-65534", "--vlan", "5,7", "--packets", "9"][..],
        &["--tcp", "--src", "10.0.0.1-10.0.0.250", "--ip-size", "100"],
        &[
            "--icmp",
            "--dst",
            "2001:db8::1-2001:db8::9",
            "--src",
            "2001:db8::5",
            "--frame-size-without-fcs",
            "90",
        ],
    ] {
        let plan: Value = serde_json::from_slice(&run(&[&send, more].concat())).expect("JSON");
        assert!(validator.is_valid(&plan), "{more:?}: {plan:#}");
    }
}

#[test]
fn printed_api_is_the_published_one() {
    printed_schema("openapi");
}

/// Returns the schema of a document. Fails if the printed one differs from the published one.
fn printed_schema(document: &str) -> jsonschema::Validator {
    let wirestorm = env!("CARGO_BIN_EXE_wirestorm");
    let printed = Command::new(wirestorm).args(["schema", document]).output();
    let printed = printed.expect("the program runs").stdout;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas");
    let version = if document == "result" { 2 } else { 1 };
    let published = format!("{folder}/wirestorm.{document}.{version}.json");
    assert!(
        printed == fs::read(&published).expect("the published schema"),
        "{published} is old: cargo run -- schema {document} >{published}"
    );
    let schema: Value = serde_json::from_slice(&printed).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}

#[test]
fn pktgen_results_validate_against_the_schema() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().expect("a lab");
    let scratch = Scratch::new().expect("a folder");
    let settings = scratch.file("settings");
    let device = lab.a.interface();
    for pace in ["delay 0", "ratep 100000", "rate 100"] {
        let lines = [
            ("kpktgend_0", format!("add_device {device}")),
            (device, "count 50".to_owned()),
            (device, pace.to_owned()),
            ("pgctrl", "start".to_owned()),
        ];
        let text = lines.map(|(file, text)| format!("echo {text} > /proc/net/pktgen/{file}\n"));
        fs::write(&settings, text.concat()).expect("a file");
        let mut command = lab.a.command(env!("CARGO_BIN_EXE_wirestorm"));
        command.args(["pktgen", "--backend", "memory", "--json", "-"]).arg(&settings);
        let output = command.output().expect("the program runs");
        let error = String::from_utf8_lossy(&output.stderr);
        let result: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|reason| panic!("{pace}: {reason}: {error}"));
        let wrong: Vec<String> = printed_schema("result")
            .iter_errors(&result)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{pace}: {wrong:#?}");
        assert_eq!(result["device_runs"][0]["devices"][0]["packets"], 50, "{pace}: {error}");
    }
}
