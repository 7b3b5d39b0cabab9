//! Tests of the reader.

use super::*;

const TEST: &str = "
name: two-hosts
nodes: [left, {name: right, agent: tokyo-3}]
ports:
  - {name: a, node: left, interface: eth1, addresses: [10.0.0.1/24]}
  - {name: b, node: right, interface: 'netns/x:veth0'}
runs:
  - streams: plan.yaml
  - {name: back, streams: {flows: []}, options: {workers: 1}}
  - replay: {captures: [x.pcap], port: a}
duration: 10s
iterations: 3
fail_if: [loss>0.1%]
clock: {interval: 10ms, asymmetry: -4ms, error_max: 1ms, bias: 2900ns}
when_agent_lost: continue
";

#[test]
fn test_is_read_with_its_defaults() {
    let test = TestPlan::parse(TEST).unwrap();
    assert_eq!(test.nodes[0], Node { name: "left".into(), agent: "left".into() });
    assert_eq!(test.nodes[1], Node { name: "right".into(), agent: "tokyo-3".into() });
    assert_eq!((test.ports[1].node, test.ports[1].interface.as_str()), (1, "netns/x:veth0"));
    let in_plans = serde_json::json!({"name": "a", "addresses": ["10.0.0.1/24"]});
    assert_eq!(test.ports[0].in_plans, in_plans);
    let names: Vec<&str> = test.runs.iter().map(|run| run.name.as_str()).collect();
    assert_eq!(names, ["run-1", "back", "run-3"]);
    assert_eq!(test.runs[0].kind, TestRunKind::Streams(PlanText::File("plan.yaml".into())));
    assert!(matches!(test.runs[2].kind, TestRunKind::Replay(_)));
    assert_eq!((test.duration, test.iterations), (Some(Duration::from_secs(10)), 3));
    assert_eq!(test.drain, Duration::from_secs(2));
    assert_eq!(test.fail_if, ["loss>0.1%"]);
    assert_eq!(test.clock.bias, Duration::from_nanos(2_900));
    assert_eq!(
        (test.clock.asymmetry_ns, test.clock.lead),
        (-4_000_000, Duration::from_millis(500))
    );
    assert_eq!(test.when_agent_lost, WhenAgentLost::Continue);
}

#[test]
fn ports_get_other_interfaces_by_their_names() {
    let mut test = TestPlan::parse(TEST).unwrap();
    test.bind("b", "eth9").unwrap();
    assert_eq!((&*test.ports[0].interface, &*test.ports[1].interface), ("eth1", "eth9"));
    assert_eq!(test.bind("c", "eth9").unwrap_err(), "found \"c\", expected one of a, b");
}

#[test]
fn benchmark_method_is_the_only_run() {
    let bench = "nodes: [left, right]
ports: [{name: a, node: left, interface: eth1}, {name: b, node: right, interface: eth2}]
runs:
  - bench: {method: rfc2544, tx: a, rx: b}
";
    let test = TestPlan::parse(bench).unwrap();
    let expected = serde_json::json!({"method": "rfc2544", "tx": "a", "rx": "b"});
    assert_eq!(test.runs[0].kind, TestRunKind::Bench(expected));
    for (more, expected) in [
        ("  - streams: x.yaml\n", "runs: found 2 runs, expected no other run"),
        ("duration: 5s\n", "duration: found \"5s\", expected none: a method has"),
        ("iterations: 2\n", "iterations: found 2, expected none"),
        ("pause: 1s\n", "pause: found \"1s\", expected none"),
    ] {
        let error = TestPlan::parse(&format!("{bench}{more}")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = TestPlan::parse(&bench.replace("{method: rfc2544, tx: a, rx: b}", "rfc2544"));
    assert!(error.unwrap_err().to_string().contains("runs[0].bench"));
}

#[test]
fn errors_name_the_path() {
    let change = |from: &str, to: &str| {
        assert!(TEST.contains(from), "{from}");
        TestPlan::parse(&TEST.replace(from, to)).unwrap_err().to_string()
    };
    for (from, to, expected) in [
        (
            "node: left",
            "node: centre",
            "ports[0].node: found \"centre\", expected one of the nodes left, right",
        ),
        ("name: b,", "name: a,", "ports[1]: found a second port \"a\""),
        ("replay: {captures: [x.pcap], port: a}", "name: x", "runs[2]: found no kind of run"),
        ("streams: plan.yaml", "{streams: x, emulate: y}", "both streams and emulate"),
        ("interval: 10ms", "interval: 10us", "clock.interval"),
        ("asymmetry: -4ms", "asymmetry: 4", "clock.asymmetry"),
        ("iterations: 3", "iterations: 0", "iterations"),
        ("when_agent_lost: continue", "when_agent_lost: wait", "abort or continue"),
        ("iterations: 3", "drain: 61s", "drain: found \"61s\", expected 0ms to 60s"),
        ("name: right,", "name: left,", "a second node \"left\""),
        ("duration: 10s", "during: 10s", "an unknown field"),
    ] {
        let error = change(from, to);
        assert!(error.contains(expected), "{error}");
    }
    let error = TestPlan::parse("nodes: []\nports: []\nruns: []\n").unwrap_err().to_string();
    for path in ["nodes", "ports", "runs"] {
        assert!(error.contains(&format!("{path}: found an empty list")), "{error}");
    }
}
