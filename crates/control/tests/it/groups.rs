//! Reports of template groups: sums over the reports of their templates.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use wirestorm_base::time::Duration;
use wirestorm_control::emulation::{SimulationOptions, WatchOptions, simulate};
use wirestorm_control::result::RunResult;
use wirestorm_plan::emulation::EmulationPlan;

use super::simulation;

fn run(text: &str) -> RunResult {
    let plan = EmulationPlan::parse(text).unwrap_or_else(|errors| panic!("{errors}"));
    let watch = WatchOptions { interval: Duration::from_millis(100), ..WatchOptions::default() };
    let options = SimulationOptions { watch, ..simulation::options() };
    simulate(&plan, &options).unwrap().0
}

/// Templates of all kinds. `pages` has two templates with TLS and HTTP/2, one of them slower and
/// with another status. `lonely` has a single template. In `wrong`, the same step of two programs
/// fails.
const PLAN: &str = r#"
ports: [{name: c}, {name: s}]
templates:
  - name: fast
    group: pages
    http: {version: 2, requests: 2, response: {body: 5000}}
    tls: {sni: pages.test}
    client: {tx: c, addresses: 10.0.0.1, servers: 10.0.1.1, server_port: 443, load: {rate: 30}}
    server: {tx: s, port: 443}
  - name: slow
    group: pages
    http: {version: 2, requests: 3, response: {status: 404, body: 300, delay: 40ms}}
    tls: {sni: pages.test}
    client: {tx: c, addresses: 10.0.0.2, servers: 10.0.1.1, server_port: 444, load: {rate: 10}}
    server: {tx: s, port: 444}
  - name: names
    group: lonely
    dns: {}
    client: {tx: c, addresses: 10.0.0.3, servers: 10.0.1.1, load: {rate: 20}}
    server: {tx: s}
  - name: keeping
    group: kept
    http: {requests: 4}
    client: {tx: c, addresses: 10.0.0.6, servers: 10.0.1.1, server_port: 82, load: {rate: 5}}
  - name: keeping longer
    group: kept
    http: {requests: 6}
    client: {tx: c, addresses: 10.0.0.7, servers: 10.0.1.1, server_port: 82, load: {rate: 3}}
  - name: kept
    group: kept
    server:
      tx: s
      port: 82
      program:
        - receive: {message: http}
        - send: "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
        - receive: {message: http}
        - send: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        - repeat:
            steps:
              - receive: {message: http}
              - send: "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"
  - name: asking
    group: wrong
    client:
      tx: c
      addresses: 10.0.0.4
      servers: 10.0.1.1
      server_port: 80
      load: {rate: 5}
      program: [{send: ask}, {count: {A: 2}}, {receive: 2}, {expect: no}]
    server: {tx: s, port: 80, program: [{receive: 3}, {send: ok}]}
  - name: demanding
    group: wrong
    client:
      tx: c
      addresses: 10.0.0.5
      servers: 10.0.1.1
      server_port: 81
      load: {rate: 7}
      program: [{send: ask}, {count: {A: 3}}, {receive: 2}, {expect: no}]
    server: {tx: s, port: 81, program: [{receive: 3}, {send: ok}]}
"#;

/// Serialises a report without its name, group and side.
fn counters(value: &impl serde::Serialize) -> Map<String, Value> {
    let Value::Object(mut counters) = serde_json::to_value(value).unwrap() else {
        panic!("no object")
    };
    for who in ["name", "group", "side"] {
        assert!(counters.remove(who).is_some(), "no {who}");
    }
    counters
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|it| it.as_u64().unwrap()).collect()
}

fn get<'a>(value: &'a Value, name: &str, path: &str) -> &'a Value {
    value.get(name).unwrap_or_else(|| panic!("{path}: no {name}"))
}

/// Asserts that the value of a group is the sum of the values of two templates.
fn assert_sum(path: &str, group: &Value, parts: [&Value; 2]) {
    match group {
        Value::Object(members) if members.contains_key("buckets") => {
            assert_histogram(path, group, parts);
        }
        Value::Object(members) if members.contains_key("interval_s") => {
            assert_series(path, group, parts);
        }
        Value::Object(members) => {
            // The group has the same members as its parts.
            let of_parts: BTreeSet<_> =
                parts.iter().flat_map(|it| it.as_object().unwrap().keys()).collect();
            assert_eq!(members.keys().collect::<BTreeSet<_>>(), of_parts, "{path}");
            for (name, value) in members {
                let parts = parts.map(|it| it.get(name).unwrap_or(&Value::Null));
                assert_sum(&format!("{path}/{name}"), value, parts);
            }
        }
        Value::Array(members) => assert_named(path, members, parts),
        Value::Number(_) if path.ends_with("/min_ns") => {
            assert_eq!(group.as_u64(), parts.iter().filter_map(|it| it.as_u64()).min(), "{path}");
        }
        // Another test checks the mean.
        Value::Number(_) if path.ends_with("/mean_ns") => {}
        Value::Number(number) => {
            let sum: u64 = parts.iter().filter_map(|it| it.as_u64()).sum();
            assert_eq!(number.as_u64(), Some(sum), "{path}");
        }
        _ => {
            assert!(parts.contains(&group), "{path}: {group} is of none of {parts:?}");
        }
    }
}

/// Asserts that transactions and failures with equal names are merged and all others are present.
fn assert_named(path: &str, group: &[Value], parts: [&Value; 2]) {
    let name = |it: &Value| it.get("name").or(it.get("step")).cloned().unwrap_or_default();
    let of_parts = parts.iter().filter_map(|it| it.as_array()).flatten().map(name);
    let of_parts: BTreeSet<_> = of_parts.map(|it| it.to_string()).collect();
    assert_eq!(group.len(), of_parts.len(), "{path}");
    for sum in group {
        let of = |part: &Value| {
            let found = part.as_array().and_then(|it| it.iter().find(|it| name(it) == name(sum)));
            found.cloned().unwrap_or_default()
        };
        let [first, second] = parts.map(of);
        for (member, value) in sum.as_object().unwrap() {
            let path = format!("{path}/{member}");
            let parts = [&first, &second].map(|it| it.get(member).unwrap_or(&Value::Null));
            // The group keeps the offset of the first part.
            match member.as_str() {
                "offset" => assert_eq!(value, parts[0], "{path}"),
                _ => assert_sum(&path, value, parts),
            }
        }
    }
}

fn assert_histogram(path: &str, group: &Value, parts: [&Value; 2]) {
    let buckets = |it: &Value| -> Vec<(u64, u64)> {
        let pairs = get(it, "buckets", path).as_array().unwrap().iter().map(numbers);
        pairs.map(|pair| (pair[0], pair[1])).collect()
    };
    let mut sum = std::collections::BTreeMap::<u64, u64>::new();
    for (start, count) in parts.iter().flat_map(|it| buckets(it)) {
        *sum.entry(start).or_default() += count;
    }
    assert_eq!(buckets(group), sum.into_iter().collect::<Vec<_>>(), "{path}");
    let of = |it: &Value, name: &str| get(it, name, path).as_u64().unwrap_or(0);
    assert_eq!(of(group, "count"), parts.iter().map(|it| of(it, "count")).sum::<u64>(), "{path}");
    let greatest = parts.iter().map(|it| of(it, "max_ns")).max();
    assert_eq!(Some(of(group, "max_ns")), greatest, "{path}");
}

fn assert_series(path: &str, group: &Value, parts: [&Value; 2]) {
    for (name, value) in group.as_object().unwrap() {
        let parts = parts.map(|it| get(it, name, path));
        match value {
            Value::Array(values) => {
                let all = parts.map(|it| it.as_array().unwrap());
                assert!(values.len() > 1, "{path}/{name}");
                assert!(all.iter().all(|it| it.len() == values.len()), "{path}/{name}");
                for (place, value) in values.iter().enumerate() {
                    let sum = all.map(|it| it[place].as_f64().unwrap()).iter().sum::<f64>();
                    let apart = (value.as_f64().unwrap() - sum).abs();
                    assert!(apart <= sum * 1e-9, "{path}/{name}[{place}]: {value} is not {sum}");
                }
            }
            _ => assert_eq!([value, value], parts, "{path}/{name}"),
        }
    }
}

#[test]
fn group_report_is_the_sum_of_its_templates() {
    let result = run(PLAN);
    let templates = || result.ports.iter().flat_map(|port| &port.templates);
    assert_eq!(result.groups.len(), 8, "two sides of four");
    for group in &result.groups {
        let who = format!("{} {}", group.sum.name, group.sum.side);
        let of = |it: &&_| {
            let it: &wirestorm_control::result::TemplateReport = it;
            it.group.as_ref() == Some(&group.sum.name) && it.side == group.sum.side
        };
        let parts: Vec<_> = templates().filter(of).map(counters).collect();
        let mut sum = counters(group);
        assert_eq!(sum.remove("templates"), Some(parts.len().into()), "{who}");
        match parts.as_slice() {
            [one] => assert_eq!(sum, *one, "{who}"),
            [first, second] => {
                let [first, second] = [first, second].map(|it| Value::Object(it.clone()));
                assert_sum(&who, &Value::Object(sum), [&first, &second]);
            }
            _ => panic!("{who}: {} templates", parts.len()),
        }
    }
}

#[test]
fn group_sums_have_the_expected_counts() {
    let result = run(PLAN);
    let group = |name: &str, side: &str| {
        let mut groups = result.groups.iter().map(|it| &it.sum);
        groups.find(|it| it.name == name && it.side == side).unwrap()
    };
    let pages = group("pages", "client");
    let tls = pages.tls.as_ref().unwrap();
    assert_eq!((tls.full_handshakes + tls.resumed_handshakes, tls.handshake.count), (40, 40));
    let http2 = pages.http2.as_ref().unwrap();
    assert_eq!((http2.requests, http2.responses["2xx"], http2.responses["4xx"]), (90, 60, 30));
    assert_eq!(pages.series.opened.iter().sum::<u64>(), 40);
    assert!(pages.flows["active_max"] >= 2);
    let lonely = group("lonely", "server");
    assert_eq!((lonely.udp["accepts"], lonely.times.time_to_first_byte.count), (20, 20));
    let persistent = group("kept", "client").http1.as_ref().unwrap();
    let classes = ["2xx", "4xx", "5xx"].map(|it| persistent.responses[it]);
    assert_eq!(classes, [5 + 3, 5 + 3, 2 * 5 + 4 * 3]);
    assert_eq!(group("kept", "server").http1.as_ref().unwrap().requests, 4 * 5 + 6 * 3);
    let wrong = group("wrong", "client");
    assert_eq!(wrong.counters["A"], 2 * 5 + 3 * 7);
    let [failure] = &wrong.failures[..] else { panic!("{:?}", wrong.failures) };
    assert_eq!((failure.flows, failure.found.as_str()), (12, "ok"));
    assert_eq!(wrong.series.failed.iter().sum::<u64>(), 12);
}
