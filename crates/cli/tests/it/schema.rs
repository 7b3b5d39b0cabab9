//! Tests that results and plans validate against the published schemas.

use std::fs;
use std::process::Command;

use serde_json::Value;
use wirestorm_control::plan::test_plan::TestPlan;
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
        let wrong = errors(&validator, &result);
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

/// Folder of the published schemas.
const SCHEMAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas");

/// Documents that Wirestorm writes, and nobody else.
const RESULTS: [&str; 6] =
    ["result", "test", "clock-ptp", "clock-sources", "clock-calibration", "owping"];

/// Objects of trials that leave out what their method does not have.
const PARTIAL: [&str; 2] = [".ExportOutput", ".Y1564Row"];

#[test]
fn printed_schemas_are_the_published_ones() {
    let entries = fs::read_dir(SCHEMAS).expect("a folder").map(|it| it.expect("an entry"));
    let mut count = 0;
    for entry in entries {
        let file = entry.file_name().into_string().expect("a name");
        let document = file.split('.').nth(1).expect("a document");
        printed_schema(document);
        count += 1;
    }
    assert!(count >= 13, "{count} schemas");
}

#[test]
fn fields_of_results_are_described_and_there_and_no_other_is_allowed() {
    for document in RESULTS {
        let mut fields = 0;
        check_objects(&published_schema(document), document, &mut fields);
        assert!(fields >= 8, "{document}: {fields} fields");
    }
}

/// Checks all objects of a schema, and counts their fields.
fn check_objects(schema: &Value, path: &str, fields: &mut usize) {
    if let Value::Array(items) = schema {
        return items.iter().for_each(|item| check_objects(item, path, fields));
    }
    let Value::Object(map) = schema else { return };
    if let Some(Value::Object(properties)) = map.get("properties") {
        assert_eq!(map.get("additionalProperties"), Some(&false.into()), "{path}");
        let required = map.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        let is_complete = required == properties.len();
        assert!(is_complete || PARTIAL.iter().any(|name| path.ends_with(name)), "{path}");
        for (name, field) in properties {
            // The name of a variant has its description at the variant.
            let is_tag = field.get("const").is_some();
            let description = field["description"].as_str().unwrap_or_default();
            assert!(is_tag || !description.is_empty(), "{path}.{name} is not described");
            // A reader of the schema cannot resolve Rust links.
            assert!(!description.contains("[`"), "{path}.{name}: {description}");
            *fields += 1;
        }
    }
    for (name, value) in map {
        check_objects(value, &format!("{path}.{name}"), fields);
    }
}

/// Returns the published schema of a document.
fn published_schema(document: &str) -> Value {
    let text = fs::read(published_file(document)).expect("the published schema");
    serde_json::from_slice(&text).expect("JSON")
}

fn published_file(document: &str) -> String {
    let version = if document == "result" { 2 } else { 1 };
    format!("{SCHEMAS}/wirestorm.{document}.{version}.json")
}

/// Returns the schema of a document. Fails if the printed one differs from the published one.
fn printed_schema(document: &str) -> jsonschema::Validator {
    let wirestorm = env!("CARGO_BIN_EXE_wirestorm");
    let printed = Command::new(wirestorm).args(["schema", document]).output();
    let printed = printed.expect("the program runs").stdout;
    let published = published_file(document);
    assert!(
        printed == fs::read(&published).expect("the published schema"),
        "{published} is old: cargo run -- schema {document} >{published}"
    );
    let schema: Value = serde_json::from_slice(&printed).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}

/// Returns where a document does not match a schema.
fn errors(validator: &jsonschema::Validator, document: &Value) -> Vec<String> {
    let errors = validator.iter_errors(document);
    errors.map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// A test with every key.
const TEST: &str = "
name: all-keys
nodes: [left, {name: right, agent: tokyo-3}]
ports:
  - {name: a, node: left, interface: eth1, addresses: [10.0.0.1/24], gateway: 10.0.0.2, speed: 10G}
  - {name: b, node: right, interface: 'netns/x:veth0', addresses: 10.0.0.2/24}
runs:
  - {name: file, streams: plan.yaml, options: {workers: 1, backend: af_packet, multiplier: 50%}}
  - name: inline
    streams:
      flows: [{name: f, tx: a, rx: b, rate: 1kpps, packet: [{ethernet: {}}, {ipv4: {}}, {udp: {}}]}]
  - emulate:
      templates:
        - name: pages
          http: {}
          client: {tx: a, servers: 10.0.0.2, load: {rate: 100}}
          server: {tx: b}
  - replay: {captures: [x.pcap], port: a, rx: b, rate: 10kpps, passes: 2, edits: {ttl: '64'}}
duration: 10s
iterations: 3
pause: 1s
drain: 500ms
fail_if: [loss>0.1%]
clock: {path: management, source: auto, interval: 10ms, asymmetry: -4ms, error_max: 1ms,
        bias: 2900ns, lead: 1s}
when_agent_lost: continue
";

/// Parts of [`TEST`] with a replacement that neither the schema nor the reader takes.
const WRONG_KEYS: [(&str, &str); 12] = [
    ("duration: 10s", "during: 10s"),
    ("duration: 10s", "duration: 10"),
    ("iterations: 3", "iterations: 0"),
    ("agent: tokyo-3", "agents: tokyo-3"),
    ("node: left, ", ""),
    ("{name: file, streams: plan.yaml,", "{name: file,"),
    ("replay: {captures", "replays: {captures"),
    ("fail_if: [loss>0.1%]", "fail_if: loss>0.1%"),
    ("path: management", "path: test"),
    ("asymmetry: -4ms", "asymmetry: 4"),
    ("when_agent_lost: continue", "when_agent_lost: wait"),
    ("nodes: [left, {name: right, agent: tokyo-3}]", "nodes: []"),
];

/// Parts of [`TEST`] with a replacement that the reader takes and the director refuses.
const WRONG_VALUES: [(&str, &str); 5] = [
    ("rate: 1kpps, packet", "rate: fast, packet"),
    ("load: {rate: 100}", "load: {rat: 100}"),
    ("passes: 2", "passes: two"),
    ("workers: 1", "worker: 1"),
    ("addresses: 10.0.0.2/24", "addresses: 7"),
];

#[test]
fn schema_of_tests_takes_every_key_and_no_other() {
    let validator = printed_schema("test-plan");
    let read = |text: &str| -> Value { serde_saphyr::from_str(text).expect("YAML") };
    let wrong = errors(&validator, &read(TEST));
    assert!(wrong.is_empty(), "{wrong:#?}");
    TestPlan::parse(TEST).expect("a test");
    for (from, to) in WRONG_KEYS.into_iter().chain(WRONG_VALUES) {
        assert!(TEST.contains(from), "{from}");
        let text = TEST.replace(from, to);
        assert!(!validator.is_valid(&read(&text)), "the schema takes {to}");
        let is_of_reader = WRONG_KEYS.contains(&(from, to));
        assert_eq!(TestPlan::parse(&text).is_err(), is_of_reader, "the reader, {to}");
    }
}

#[test]
fn schema_of_tests_takes_methods_with_their_parameters() {
    let validator = printed_schema("test-plan");
    let of = |bench: &str| -> Value {
        let text = format!(
            "nodes: [x]\nports: [{{name: a, node: x, interface: eth1}}]\nruns: [{{bench: {bench}}}]"
        );
        serde_saphyr::from_str(&text).expect("YAML")
    };
    for bench in [
        "{method: rfc2544, tx: a, rx: b, tests: [throughput, latency], trial: 10s, settle: '0'}",
        "{method: mlrsearch, tx: [a], rx: [b], goal: [ndr, 'final=10s,sum=30s'], frame_sizes: 64}",
        "{method: ndr, tx: a, rx: b, pdr: 0, max_latency: 1ms, max_load: 5kpps, link_speed: 10G}",
        "{method: y1564, tx: a, rx: b, services: services.yaml, tests: all, cir_steps: [50, 100]}",
        "{method: y1564, tx: a, rx: b, services: [{name: voice, cir: 2M, vlan: 100, flr: 0.1%}]}",
    ] {
        let wrong = errors(&validator, &of(bench));
        assert!(wrong.is_empty(), "{bench}: {wrong:#?}");
    }
    for bench in [
        "{method: rfc9411, tx: a, rx: b}",
        "{method: rfc2544, tx: a}",
        "{method: rfc2544, tx: a, rx: b, goal: ndr}",
        "{method: rfc2544, tx: a, rx: b, tests: reset}",
        "{method: rfc2544, tx: a, rx: b, trial: 10}",
        "{method: rfc2544, tx: a, rx: b, frame_sizes: [63]}",
        "{method: ndr, tx: a, rx: b, results: 11}",
        "{method: y1564, tx: a, rx: b}",
        "{method: y1564, tx: a, rx: b, services: [{name: voice, cri: 2M}]}",
    ] {
        assert!(!validator.is_valid(&of(bench)), "the schema takes {bench}");
    }
}

#[test]
fn example_tests_match_the_schema() {
    let validator = printed_schema("test-plan");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("an example");
        let document: Value = serde_saphyr::from_str(&text).expect("YAML");
        if document.get("nodes").is_some() {
            let wrong = errors(&validator, &document);
            assert!(wrong.is_empty(), "{}: {wrong:#?}", path.display());
            count += 1;
        }
    }
    assert!(count >= 2, "{count} tests in {folder}");
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
        let wrong = errors(&printed_schema("result"), &result);
        assert!(wrong.is_empty(), "{pace}: {wrong:#?}");
        assert_eq!(result["device_runs"][0]["devices"][0]["packets"], 50, "{pace}: {error}");
    }
}
