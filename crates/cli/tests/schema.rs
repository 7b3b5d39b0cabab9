//! Real results keep to the published schema.

use std::fs;
use std::process::Command;

use serde_json::Value;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

#[test]
fn results_keep_to_the_schema_that_is_printed() {
    let scratch = Scratch::new().expect("a folder");
    let capture = scratch.file("sample.pcap");
    let traffic = Traffic::new(TrafficOptions { conversations: 20, ..TrafficOptions::default() });
    write_file(traffic, Resolution::Nanoseconds, &capture).expect("a capture");
    let printed = Command::new(env!("CARGO_BIN_EXE_wirestorm")).arg("schema").output();
    let printed = printed.expect("the program runs").stdout;
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/wirestorm.result.1.json");
    assert_eq!(printed, fs::read(published).expect("the published schema"));
    let schema: Value = serde_json::from_slice(&printed).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");

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

        // The schema would notice a field that it does not know, and one that is missing.
        let mut other = result.clone();
        other["surprise"] = 1.into();
        assert!(!validator.is_valid(&other));
        let mut other = result;
        other.as_object_mut().and_then(|it| it.remove("packets")).expect("a count of packets");
        assert!(!validator.is_valid(&other));
    }
}

#[test]
fn a_plan_that_is_printed_keeps_to_the_schema_of_plans() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_wirestorm")).args(arguments).output();
        output.expect("the program runs").stdout
    };
    let printed = run(&["schema", "plan"]);
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/wirestorm.plan.1.json");
    assert_eq!(printed, fs::read(published).expect("the published schema"));
    let schema: Value = serde_json::from_slice(&printed).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let send = ["send", "--tx", "eth1", "--rx", "eth2", "--print-plan", "--rate", "1Mpps"];
    for more in [
        &["--udp", "--dport", "1024-65534", "--vlan", "5,7", "--packets", "9"][..],
        &["--tcp", "--src", "10.0.0.1-10.0.0.250", "--ip-length", "100"],
        &["--icmp", "--dst", "2001:db8::1-2001:db8::9", "--src", "2001:db8::5", "--frame", "90"],
    ] {
        let plan: Value = serde_json::from_slice(&run(&[&send, more].concat())).expect("JSON");
        assert!(validator.is_valid(&plan), "{more:?}: {plan:#}");
    }
}
