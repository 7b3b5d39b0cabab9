//! Results and error messages of `wirestorm emulate` and `wirestorm sim`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::require::require_tool;

/// Two templates of one group. Each fetches pages.
const PAGES: &str = "
ports: [{name: c, addresses: 10.0.0.1/16}, {name: s, addresses: 10.0.1.1/16}]
templates:
  - name: small
    group: pages
    client: {tx: c, servers: 10.0.1.1, server_port: 81, load: {rate: 100}, limit: 50,
      program: [{send: {size: 100}}, {receive: 1000}]}
    server: {tx: s, port: 81, program: [{receive: 100}, {send: {size: 1000}}]}
  - name: large
    group: pages
    client: {tx: c, servers: 10.0.1.1, server_port: 82, load: {rate: 20}, limit: 10,
      program: [{send: {size: 200}}, {receive: 50000}]}
    server: {tx: s, port: 82, program: [{receive: 200}, {send: {size: 50000}}]}
";

/// A deadlock: the client and the server each wait for data of the other.
const HANGS: &str = "
ports: [{name: c, addresses: 10.0.0.1/16}, {name: s, addresses: 10.0.1.1/16}]
templates:
  - name: page
    client: {tx: c, servers: 10.0.1.1, load: {rate: 1}, limit: 3, program: [{receive: 5}]}
    server: {tx: s, port: 80, program: [{receive: 1}]}
";

fn wirestorm(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_wirestorm");
    Command::new(program).args(arguments).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Writes a plan to a file.
fn plan(scratch: &Scratch, text: &str) -> PathBuf {
    let path = scratch.file("plan.yaml");
    fs::write(&path, text).expect("a file");
    path
}

/// Returns the result of a simulation with the full load.
fn simulated(text_of_plan: &str) -> Value {
    let scratch = Scratch::new().expect("a folder");
    let plan = plan(&scratch, text_of_plan);
    let output = wirestorm(&["sim", path(&plan), "--full", "--json", "-"]);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}

/// Returns the table of a simulation with the full load.
fn table(text_of_plan: &str, more: &[&str]) -> String {
    let scratch = Scratch::new().expect("a folder");
    let plan = plan(&scratch, text_of_plan);
    let output = wirestorm(&[&["sim", path(&plan), "--full"], more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Returns the cells of a table line, without its caption.
#[track_caller]
fn cells(table: &str, line: &str) -> Vec<String> {
    let found = table.lines().find_map(|it| it.trim_start().strip_prefix(line));
    let found = found.unwrap_or_else(|| panic!("no line {line:?} in\n{table}"));
    found.split("  ").map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// Returns the error message of a command that exits with status 2 before it runs.
#[track_caller]
fn run_and_expect_error(arguments: &[&str]) -> String {
    let output = wirestorm(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(!message.contains("panicked") && output.stdout.is_empty(), "{arguments:?}: {message}");
    message
}

#[test]
fn rates_refer_to_the_load_time() {
    let result = simulated(PAGES);
    // The loads take half a second: 50 at 100/s and 10 at 20/s. TIME-WAIT takes another half
    // second.
    let [load, elapsed] =
        ["load_duration_s", "elapsed_s"].map(|name| result["times"][name].as_f64().unwrap());
    assert!((0.44..0.52).contains(&load) && elapsed > load + 0.3, "{load} of {elapsed} s");
    let established = cells(&table(PAGES, &[]), "established per second");
    let rate: f64 = established[0].parse().expect("a number");
    assert!((110.0..=140.0).contains(&rate), "{rate}");
    let seldom = HANGS.replace("rate: 1}, limit: 3", "rate: 0.5}");
    let seldom = cells(&table(&seldom, &["--duration", "6s"]), "established per second");
    assert!(seldom[0].starts_with("0."), "{seldom:?}");
}

#[test]
fn connection_time_ends_when_both_sides_have_closed() {
    let result = simulated(PAGES);
    for port in [0, 1] {
        let times = &result["ports"][port]["connections"]["times"]["duration"];
        assert_eq!(times["count"], 60, "{times}");
        // TIME-WAIT would add half a second.
        assert!(times["max_ns"].as_u64() < Some(100_000_000), "{times}");
    }
}

#[test]
fn result_counts_the_states_of_open_flows() {
    let result = simulated(HANGS);
    for port in [0, 1] {
        let flows = &result["ports"][port]["connections"]["flows"];
        let [active, unfinished, syn_sent, time_wait] =
            ["active", "unfinished", "syn_sent", "time_wait"].map(|name| flows[name].as_u64());
        assert_eq!((active, unfinished), (Some(3), Some(3)), "{flows}");
        assert_eq!((syn_sent, time_wait), (Some(0), Some(0)), "{flows}");
        assert_eq!(result["ports"][port]["templates"][0]["flows"]["unfinished"], 3);
    }
    let notes = result["notes"].to_string();
    assert!(notes.contains("page: of 3 flows started, 3 were unfinished"), "{notes}");
    assert!(notes.contains("each side waits for the other"), "{notes}");
    assert!(!notes.contains("--drain-timeout"), "a simulation has no such option: {notes}");
    assert_eq!(cells(&table(HANGS, &[]), "unfinished"), ["3", "3"]);
    let output = table(PAGES, &[]);
    assert!(!output.contains("unfinished"), "{output}");
}

#[test]
fn series_have_the_goodput_of_both_directions() {
    let result = simulated(PAGES);
    let sum = |port: usize, name: &str| {
        let series = result["ports"][port]["connections"]["series"][name].as_array().unwrap();
        series.iter().filter_map(Value::as_f64).sum::<f64>()
    };
    let (requested, answered) = (50.0 * 100.0 + 10.0 * 200.0, 50.0 * 1_000.0 + 10.0 * 50_000.0);
    assert_eq!(sum(0, "received_bytes"), answered);
    assert_eq!(sum(1, "sent_bytes"), answered);
    assert_eq!(sum(1, "acknowledged_bytes"), answered);
    assert_eq!(sum(1, "received_bytes"), requested);
    assert!(sum(1, "sent_goodput_bps") > sum(1, "goodput_bps"));
    let table = table(PAGES, &["--interval", "100ms"]);
    assert!(cells(&table, "data sent, b/s")[1].ends_with('M'), "{table}");
    assert!(cells(&table, "data acknowledged by peers, b/s")[1].ends_with('M'), "{table}");
    assert!(table.contains("b/s out") && table.contains("b/s in"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn groups_sum_their_templates() {
    let result = simulated(PAGES);
    let groups = result["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{groups:?}");
    for (group, side, port) in [(&groups[0], "client", 0), (&groups[1], "server", 1)] {
        assert_eq!((&group["name"], &group["side"]), (&"pages".into(), &side.into()));
        assert_eq!(group["templates"], 2);
        let of_port = &result["ports"][port];
        for name in ["rcvbyte", "connects", "sndbyte"] {
            assert_eq!(group["tcp"][name], of_port["connections"]["tcp"][name], "{name}");
        }
        assert_eq!(group["flows"]["closed"], 60);
    }
    let table = table(PAGES, &[]);
    let line = table.lines().find(|line| line.starts_with("  pages: client")).expect("a group");
    let cells: Vec<_> = line.split_whitespace().skip(2).collect();
    assert_eq!(cells, ["60", "60", "0", "7,000", "550,000"]);
    // Templates without a group appear in no group.
    assert!(simulated(HANGS)["groups"].as_array().unwrap().is_empty());
}

#[test]
fn discarded_bytes_are_not_reported_as_missing() {
    let short = HANGS
        .replace("{receive: 5}", "{send: 'hi'}, {receive: {bytes: 100}}")
        .replace("{receive: 1}", "{receive: 2}, {send: 'abc'}");
    let scratch = Scratch::new().expect("a folder");
    let plan = plan(&scratch, &short);
    let output = wirestorm(&["sim", path(&plan), "--full"]);
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{table}");
    assert!(table.contains("closed before all data arrived: 3 flows"), "{table}");
    assert!(!table.contains("received  nothing"), "{table}");
}

#[test]
fn unwritable_result_fails_before_the_run_or_still_prints_the_table() {
    let scratch = Scratch::new().expect("a folder");
    let plan = plan(&scratch, PAGES);
    for command in ["sim", "emulate"] {
        let message =
            run_and_expect_error(&[command, path(&plan), "--json", "/nonexistent/x.json"]);
        assert!(message.contains("--json /nonexistent/x.json: No such file"), "{message}");
    }
    let output = wirestorm(&["sim", path(&plan), "--full", "--json", "/dev/full"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("/dev/full") && message.contains("No space left"), "{message}");
    assert!(text(&output.stdout).contains("closed by both sides"), "{}", text(&output.stdout));
}

#[test]
fn result_file_keeps_its_content_until_there_is_a_result() {
    let scratch = Scratch::new().expect("a folder");
    let alone = HANGS.lines().filter(|line| !line.contains("server: {tx")).collect::<Vec<_>>();
    let wrong = plan(&scratch, &alone.join("\n"));
    let (old, new) = (scratch.file("old.json"), scratch.file("new.json"));
    fs::write(&old, "old".repeat(10_000)).expect("a file");
    for file in [&old, &new] {
        run_and_expect_error(&["sim", path(&wrong), "--json", path(file)]);
    }
    assert_eq!(fs::read_to_string(&old).expect("a file").len(), 30_000);
    assert!(!new.exists());
    let plan = plan(&scratch, PAGES);
    for file in [&old, &new] {
        let output = wirestorm(&["sim", path(&plan), "--json", path(file)]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let written = fs::read(file).expect("a file");
        let written: Value = serde_json::from_slice(&written).expect("a document alone");
        assert_eq!(written["schema"], "wirestorm.result/2");
    }
}

#[test]
fn options_of_trex_profiles_are_rejected_for_plans() {
    let scratch = Scratch::new().expect("a folder");
    let plan = plan(&scratch, PAGES);
    for (flags, words) in [
        (&["--cc", "clients.yaml"][..], ["--cc requires ", "`devices`"]),
        (&["--ipv6"], ["--ipv6 requires ", "IPv6 addresses"]),
        (&["-t", "--size", "5"], ["--tunables requires ", "write the values into the file"]),
    ] {
        for command in ["emulate", "sim"] {
            let message = run_and_expect_error(&[&[command, path(&plan)], flags].concat());
            for word in words.iter().chain(&["plan.yaml", "TRex profile"]) {
                assert!(message.contains(word), "{word:?} is not in {message}");
            }
        }
    }
}

#[test]
fn options_of_streams_are_rejected_for_clients_and_servers() {
    let scratch = Scratch::new().expect("a folder");
    let plan = plan(&scratch, PAGES);
    for flags in [
        ["--packets", "5"],
        ["--speed", "1G"],
        ["-c", "2"],
        ["--direction", "1"],
        ["--port-id", "1"],
    ] {
        let message = run_and_expect_error(&[&["sim", path(&plan)], &flags[..]].concat());
        for word in [" requires ", "plan.yaml", "found clients and servers"] {
            assert!(message.contains(word), "{word:?} is not in {message}");
        }
    }
    let frames = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/imix.yaml");
    let message =
        run_and_expect_error(&["sim", frames, "-o", "out.pcap", "-l", "5", "--direction", "1"]);
    assert!(message.contains("requires a stateless TRex profile, found"), "{message}");
}

#[test]
fn error_in_a_client_configuration_has_its_file_name() {
    let scratch = Scratch::new().expect("a folder");
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/web-and-mail.pcap");
    let list = format!(
        "
- duration : 1.0
  generator :
          distribution : 'seq'
          clients_start : '16.0.0.1'
          clients_end   : '16.0.0.3'
          servers_start : '48.0.0.1'
          servers_end   : '48.0.0.5'
  cap_info :
     - {{name: {capture}, cps: 1, ipg: 4000, rtt: 20000, w: 1, multi_flow_enabled: true, flows_dirs: [0, 0]}}
"
    );
    let list = plan(&scratch, &list);
    let clients = scratch.file("clients.yaml");
    let group = "groups: [{ip_start: 17.0.0.1, ip_end: 17.0.0.9, initiator: {dst_mac: '02:00:00:00:00:01'}}]";
    fs::write(&clients, group).expect("a file");
    let message = run_and_expect_error(&["sim", path(&list), "--cc", path(&clients)]);
    assert!(
        message.contains("clients.yaml: no group of the clients' configuration has 16"),
        "{message}"
    );
}

#[test]
fn multiplier_must_be_greater_than_zero() {
    let scratch = Scratch::new().expect("a folder");
    let holds = HANGS.replace("{rate: 1}, limit: 3", "{concurrent: 3}");
    let plan = plan(&scratch, &holds);
    for (factor, expected) in [("1", 3), ("2", 6), ("0.1", 1)] {
        let flags = ["sim", path(&plan), "-d", "1s", "--json", "-", "-m", factor];
        let result: Value = serde_json::from_slice(&wirestorm(&flags).stdout).expect("a result");
        assert_eq!(result["ports"][0]["connections"]["flows"]["active_max"], expected, "{factor}");
    }
    for command in [&["sim"][..], &["emulate"]] {
        for factor in ["-1", "0", "50%"] {
            let message = run_and_expect_error(&[command, &[path(&plan), "-m", factor]].concat());
            let expected = format!("--multiplier \"{factor}\": expected a factor greater than 0");
            assert!(message.contains(&expected), "{message}");
        }
    }
    let frames = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/imix.yaml");
    for command in [&["sim", "-l", "1", "-o", "out.pcap"][..], &["run"]] {
        let message = run_and_expect_error(&[command, &[frames, "-m", "-1"]].concat());
        assert!(message.contains("\"-1\": expected a factor greater than 0"), "{message}");
    }
}

#[test]
fn load_time_includes_the_interval_of_the_last_connection() {
    let two = HANGS.replace("limit: 3", "limit: 2");
    let established = cells(&table(&two, &["--duration", "9s"]), "established per second");
    let rate: f64 = established[0].parse().expect("a number");
    assert!((0.99..1.01).contains(&rate), "{rate}");
}

#[test]
fn note_on_open_flows_has_the_time_of_the_end() {
    let scratch = Scratch::new().expect("a folder");
    let waits = plan(&scratch, &HANGS.replace("{receive: 5}", "{delay: 60s}"));
    let output = wirestorm(&["sim", path(&waits), "-d", "7s", "--json", "-"]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("a result");
    let notes = result["notes"].to_string();
    let expected = "when the simulation ended: up to 2 s after its duration, which is 7 s";
    assert!(notes.contains(expected), "{notes}");
}

/// Returns the connections that each template opened, and those above `--flows-max`.
fn made(output: &Output) -> (Vec<u64>, u64) {
    let result: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let templates = result["ports"][0]["templates"].as_array().expect("templates");
    let made = templates.iter().map(|it| it["flows"]["started"].as_u64().expect("a number"));
    (
        made.collect(),
        result["ports"][0]["connections"]["flows"]["flow_table_full"].as_u64().expect("a number"),
    )
}

#[test]
fn simulation_opens_no_more_connections_than_its_flags_allow() {
    let scratch = Scratch::new().expect("a folder");
    let plan = plan(&scratch, PAGES);
    let run =
        |flags: &[&str]| made(&wirestorm(&[&["sim", path(&plan), "--json", "-"], flags].concat()));
    assert_eq!(run(&[]), (vec![1, 1], 0));
    assert_eq!(run(&["--full"]), (vec![50, 10], 0));
    assert_eq!(run(&["--limit", "20"]), (vec![20, 10], 0));
    // A page takes several round trips. The next one is due in that time.
    let (made, overflow) = run(&["--full", "--rtt", "30ms", "--flows-max", "1"]);
    assert!(made.iter().sum::<u64>() < 60 && overflow > 0, "{made:?}, {overflow}");
}

#[test]
fn capture_list_with_a_limit_has_the_duration_of_the_list() {
    let scratch = Scratch::new().expect("a folder");
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/web-and-mail.pcap");
    fs::copy(capture, scratch.file("both.pcap")).expect("a copy");
    let list = "
- duration : 2.0
  generator :
          distribution : 'seq'
          clients_start : '16.0.0.1'
          clients_end   : '16.0.0.3'
          servers_start : '48.0.0.1'
          servers_end   : '48.0.0.5'
  cap_info :
     - name: both.pcap
       cps : 2.5
       ipg : 4000
       rtt : 20000
       w   : 2
       multi_flow_enabled : true
       flows_dirs : [0, 0]
";
    let list = plan(&scratch, list);
    let run = |flags: &[&str]| {
        made(&wirestorm(&[&["sim", path(&list), "--json", "-"], flags].concat())).0
    };
    assert_eq!(run(&["--limit", "1000000"]), run(&["--full"]));
    assert_eq!(run(&["--limit", "3"])[0], 3);
}

#[test]
fn options_of_clients_and_servers_are_rejected_for_streams() {
    let scratch = Scratch::new().expect("a folder");
    let frames = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/imix.yaml");
    let file = scratch.file("out.pcap");
    let sim = ["sim", frames, "-o", path(&file), "--packets", "5"];
    assert!(wirestorm(&sim).status.success());
    for flags in [
        &["--full"][..],
        &["--limit", "5"],
        &["--flows-max", "5"],
        &["--rtt", "1ms"],
        &["--interval", "1s"],
        &["--sample-flows", "5"],
        &["--seed", "2"],
        &["--json", "-"],
    ] {
        let message = run_and_expect_error(&[&sim[..], flags].concat());
        let option = format!("{} requires ", flags[0]);
        for word in [option.as_str(), "imix.yaml", "clients and servers"] {
            assert!(message.contains(word), "{word:?} is not in {message}");
        }
    }
}

#[test]
fn errors_have_the_file_the_step_and_the_expected_value() {
    let scratch = Scratch::new().expect("a folder");
    let step = "{receive: 5}";
    for (found, other, expected) in [
        (step, "{send: 'x'}, {select_group: g}", "client.program[1].select_group: found \"g\""),
        (step, "{repeat: {steps: [{idle: 1s}, {send_datagram: x}]}}", "program[0].repeat.steps[1]"),
        (step, "{sned: x}", "or one of the words connect, wait_for_close, reset"),
        ("rate: 1}", "rate: 1e30}", "more than 0 and at most 10^18"),
        ("rate: 1}", "rate: -1}", "more than 0 and at most 10^18"),
        ("- name: page", "- name: page\n    tls: {ciphers: [TLS_FOO]}", "found the cipher suite"),
    ] {
        let plan = plan(&scratch, &HANGS.replace(found, other));
        let message = run_and_expect_error(&["sim", path(&plan)]);
        assert!(message.contains(expected), "{message}");
        assert!(message.contains("plan.yaml: templates[0]"), "{message}");
    }
    let empty = plan(&scratch, "");
    let message = run_and_expect_error(&["sim", path(&empty)]);
    assert!(message.contains("`flows`") && message.contains("`templates`"), "{message}");
    let frames = "ports: [{name: a}]\nflows: [{name: f, tx: a, size: 64, rate: {pps: 1}}]\n";
    let frames = plan(&scratch, frames);
    let message = run_and_expect_error(&["emulate", path(&frames)]);
    assert!(message.contains("use `wirestorm run "), "{message}");
    // A list is a TRex profile only if it contains streams.
    let list = plan(&scratch, "[1]\n");
    let message = run_and_expect_error(&["emulate", path(&list)]);
    assert!(message.contains("found a list of 1, expected fields: ports, templates"), "{message}");
    let streams = plan(&scratch, "[{\"stream\": {}}]\n");
    let message = run_and_expect_error(&["emulate", path(&streams)]);
    assert!(message.contains("a profile of streams; use `wirestorm run "), "{message}");
}

#[test]
fn failure_causes_are_not_clipped() {
    if !require_tool("openssl") {
        return;
    }
    let scratch = Scratch::new().expect("a folder");
    // Both certificates have the same subject, so that only the signature differs.
    for name in ["own", "other"] {
        let make = format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=pages.test \
             -addext subjectAltName=DNS:pages.test -keyout {name}.key -out {name}.pem"
        );
        let mut openssl = Command::new("openssl");
        let made = openssl.args(make.split_whitespace()).current_dir(scratch.path()).output();
        assert!(made.expect("openssl runs").status.success());
    }
    let tls = "{sni: pages.test, certificate: own.pem, key: own.key, ca: other.pem}";
    let plan = plan(&scratch, &HANGS.replace("name: page", &format!("name: page\n    tls: {tls}")));
    let output = wirestorm(&["sim", path(&plan)]);
    let table = text(&output.stdout);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let cause = "failed: untrusted CA certificate 1 0";
    assert!(table.lines().any(|line| words(line) == cause), "{table}");
}

#[test]
fn only_backends_that_receive_are_offered() {
    for command in ["emulate", "impair"] {
        let help = text(&wirestorm(&[command, "--help"]).stdout);
        let backends = help.split("--backend").nth(1).expect("the option");
        let backends = backends.split("\n  -").next().unwrap_or_default();
        assert!(backends.contains("af_packet") && backends.contains("af_xdp"), "{backends}");
        assert!(!backends.contains("memory") && !backends.contains("in-kernel"), "{backends}");
    }
}

#[test]
fn load_time_of_a_short_load_is_exact() {
    // A round trip of 200 ms separates the next event from the load.
    let plan = PAGES.replace("rate: 100}", "rate: 10000}").replace("rate: 20}", "rate: 1000}");
    let scratch = Scratch::new().expect("a folder");
    let path_of_plan = self::plan(&scratch, &plan);
    let simulated = |more: &[&str]| -> Value {
        let arguments = ["sim", path(&path_of_plan), "--full", "--rtt", "200ms", "--json", "-"];
        let output = wirestorm(&[&arguments[..], more].concat());
        serde_json::from_slice(&output.stdout).expect("a result")
    };
    let result = simulated(&[]);
    let load = result["times"]["load_duration_s"].as_f64().unwrap();
    assert!((0.008_9..0.010_1).contains(&load), "the tenth of 1,000 a second: {load}");
    // The rest behind the last whole interval is too short for rates of its own.
    let elapsed = result["times"]["elapsed_s"].as_f64().unwrap();
    let interval = format!("{}us", ((elapsed * 1e6) as u64 - 100) / 4);
    let result = simulated(&["--interval", &interval]);
    for port in result["ports"].as_array().unwrap() {
        let series = &port["connections"]["series"];
        let [interval, last] =
            ["interval_s", "last_interval_s"].map(|it| series[it].as_f64().unwrap());
        assert_eq!(series["goodput_bps"].as_array().unwrap().len(), 4, "{series}");
        assert!(last > interval && last < 1.1 * interval, "{series}");
    }
}

#[test]
fn closed_output_pipe_causes_no_panic() {
    let scratch = Scratch::new().expect("a folder");
    let path_of_plan = plan(&scratch, PAGES);
    let captures = scratch.file("seen.pcap");
    let program = env!("CARGO_BIN_EXE_wirestorm");
    let mut command = Command::new(program);
    command.args(["sim", path(&path_of_plan), "--full", "--output", path(&captures)]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = command.stderr(writer).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).starts_with("done in"), "{output:?}");
}

#[test]
fn long_names_are_shortened_in_the_middle() {
    let long = PAGES
        .replace("small", "a-page-with-a-long-name-1")
        .replace("large", "a-page-with-a-long-name-2")
        .replace("group: pages", "group: pages-that-belong-together")
        .replace("name: c,", "name: clients-of-a-customer-1,")
        .replace("name: s,", "name: servers-of-a-customer-1,")
        .replace("tx: c,", "tx: clients-of-a-customer-1,")
        .replace("tx: s,", "tx: servers-of-a-customer-1,");
    let table = table(&long, &[]);
    let heads = table.lines().find(|line| line.starts_with("connections")).unwrap();
    assert!(heads.ends_with(" client..omer-1 server..omer-1"), "{heads}");
    for name in ["a-page..ame-1", "a-page..ame-2", "pages-..ether"] {
        for side in ["client", "server"] {
            let line = format!("  {name}: {side} ");
            assert!(table.lines().any(|it| it.starts_with(&line)), "{line}\n{table}");
        }
    }
}

#[test]
fn files_that_are_not_text_are_reported_by_kind() {
    let scratch = Scratch::new().expect("a folder");
    let file = scratch.file("plan");
    let refused = |bytes: &[u8]| {
        fs::write(&file, bytes).expect("a file");
        let output = wirestorm(&["emulate", path(&file)]);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    for magic in [[0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d], [0x0a, 0x0d, 0x0d, 0x0a]] {
        let error = refused(&magic);
        assert!(error.contains("plan: this is a capture; use `wirestorm replay"), "{error}");
    }
    let error = refused(b"ab\xff");
    assert!(error.contains("found invalid UTF-8 at offset 2"), "{error}");
    let output = wirestorm(&["emulate", path(scratch.path())]);
    assert!(text(&output.stderr).contains(": found a directory, expected a file"));
}

/// UDP payload counts as data too.
#[test]
fn data_rate_includes_tcp_and_udp() {
    let udp = "
ports: [{name: c, addresses: 10.0.0.1/16}, {name: s, addresses: 10.0.1.1/16}]
templates:
  - name: words
    transport: udp
    client: {tx: c, servers: 10.0.1.1, server_port: 7, load: {rate: 100}, limit: 100,
      program: [{send_datagram: {size: 1000}}, {receive_datagrams: 1}]}
    server: {tx: s, port: 7, program: [{receive_datagrams: 1}, {send_datagram: {size: 500}}]}
";
    let scratch = Scratch::new().expect("a folder");
    let output = wirestorm(&["sim", path(&plan(&scratch, udp)), "--full"]);
    let shown = text(&output.stdout);
    let line = |name: &str| shown.lines().find(|line| line.trim_start().starts_with(name));
    for name in ["data sent, b/s", "data received, b/s"] {
        let line = line(name).unwrap_or_else(|| panic!("no {name}: {shown}"));
        let numbers = line.split_once("b/s").map(|(_, numbers)| numbers.split_whitespace());
        assert!(numbers.is_some_and(|mut it| it.all(|number| number != "0")), "{line}");
    }
    assert_eq!(line("data acknowledged"), None, "{shown}");
}
