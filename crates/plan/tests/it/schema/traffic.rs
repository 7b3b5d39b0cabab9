//! The schema of traffic plans, compared with the reader.

use jsonschema::Validator;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use wirestorm_plan::traffic::{TrafficPlan, schema};

use super::change::{change, values};
use super::examples::examples_with;

fn validator() -> Validator {
    jsonschema::validator_for(&schema()).expect("a schema")
}

fn examples() -> Vec<(String, Value)> {
    let mut examples = examples_with("flows");
    examples.push(("all forms".to_owned(), all_forms()));
    examples
}

/// Returns a plan that uses every form of every key.
fn all_forms() -> Value {
    let address = |form: Value| json!({"ipv4": {"src": form}});
    let packet = |item: Value| json!([{"ethernet": null}, item, {"udp": {}}]);
    let flow = |number: usize, packet: Value, more: Value| {
        let mut flow = json!({"name": format!("f{number}"), "tx": "a", "packet": packet});
        for (name, value) in more.as_object().expect("fields") {
            flow[name] = value.clone();
        }
        flow
    };
    let fields = [
        address(json!("auto")),
        address(json!("0x0a000001")),
        address(json!({"value": "10.0.0.1"})),
        address(json!({"values": ["10.0.0.1", "10.0.0.2"]})),
        address(json!({"increment": {"start": "10.0.0.1", "step": "0.0.1.0", "count": 9}})),
        address(json!({"decrement": {"step": 2}})),
        address(json!({"random": {"min": "10.0.0.1", "max": "10.0.0.9", "seed": 1, "count": 3}})),
        address(json!({"weighted": [["10.0.0.1", 1], ["10.0.0.2", 2]]})),
        address(json!({"weighted": {"choices": [["10.0.0.1", 1]], "seed": 4}})),
        json!({"ipv4": {"header_checksum": "bad", "time_to_live": "0b11", "total_length": "1_0",
            "options": [{"router_alert": null}, {"custom": {"type": 7, "value": "00:ff"}}]}}),
        json!({"ipv4": {"identification": {"increment": {"count": 2}},
            "src": {"increment": {"count": 2}, "after": "ipv4.identification"}}}),
    ];
    let more = [
        json!({"rate": "10Gbps-l2", "size": "imix", "rx": "b"}),
        json!({"rate": {"percentage": 12.5}, "size": {"fixed": 100}, "rx": ["a", "b"]}),
        json!({"rate": "33.3 %", "size": {"frame": "60"}, "duration": "1.5 min"}),
        json!({"rate": "max", "size": {"ip": 200}, "duration": {"fixed_seconds": 0.5}}),
        json!({"rate": {"bps_l2": "10M"}, "duration": {"burst": {"bursts": 0, "inter_burst_gap": "1us"}}}),
        json!({"size": {"increment": {"start": 100, "end": 200, "step": 2}}, "metrics": {}}),
        json!({"size": {"random": {"min": 100, "max": 200, "seed": 7}}, "start": "paused"}),
        json!({"size": {"weight_pairs": {"predefined": "tcp_imix"}}, "inter_departure": "poisson"}),
        json!({"size": {"weight_pairs": {"custom": [{"size": 99, "weight": 2}]}}}),
        json!({"inter_departure": {"on_off": {"on": "1ms", "off": "0s"}}, "start_delay": "1h"}),
        json!({"duration": {"fixed_packets": 1}, "next": {"flow": "f0", "times": 2},
            "inter_departure": {"poisson": {"seed": 3}}, "metrics": {"enable": true}}),
    ];
    let mut flows: Vec<_> = fields
        .into_iter()
        .zip(more)
        .enumerate()
        .map(|(number, (item, more))| flow(number, packet(item), more))
        .collect();
    for payload in [
        json!("zeros"),
        json!({"fixed": "aa bb"}),
        json!({"bytes": "aa:bb"}),
        json!({"text": "x"}),
        json!({"increment_byte": 1}),
        json!({"increment_word": 2}),
        json!({"zeros": true}),
    ] {
        let headers = json!([{"ethernet": {}}, {"payload": payload}]);
        flows.push(flow(flows.len(), headers, json!({})));
    }
    let capture = json!([{"capture": {"file": "f", "number": 2, "fields": {
        "ipv4.src": {"random": {}}, "udp[0].checksum": "bad", "bytes[50..52]": "0xffff"}}}]);
    flows.push(flow(flows.len(), capture, json!({"size": 90})));
    json!({
        "ports": [{"name": "a", "location": "netns/x:eth0", "speed": "2.5G"},
            {"name": "b", "speed": 1000}],
        "flows": flows,
    })
}

/// Reads a plan whose captures all hold one UDP datagram.
fn read(document: &Value) -> Result<TrafficPlan, String> {
    let mut frame = vec![0; 80];
    frame[12] = 8;
    frame[14] = 0x45;
    frame[17] = 66;
    frame[23] = 17;
    frame[39] = 46;
    frame[41] = 1;
    let load = |_: &str, _| Ok(frame.clone());
    TrafficPlan::parse_with(&document.to_string(), load).map_err(|errors| errors.to_string())
}

#[test]
fn examples_match_the_schema() {
    let validator = validator();
    let examples = examples();
    assert!(examples.len() >= 9);
    for (name, document) in examples {
        let wrong: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        read(&document).unwrap_or_else(|errors| panic!("{name}: {errors}"));
    }
}

#[test]
fn the_reader_refuses_what_the_schema_refuses() {
    let good =
        json!({"name": "f", "tx": "a", "packet": [{"ethernet": {}}, {"ipv4": {}}, {"udp": {}}]});
    let cases = [
        ("/flows/0/colour", json!("red")),
        ("/ports/0/colour", json!("red")),
        ("/colour", json!("red")),
        ("/flows/0/packet", json!([])),
        ("/flows/0/packet/1", json!({"ipv5": {}})),
        ("/flows/0/packet/1", json!({"ipv4": {}, "udp": {}})),
        ("/flows/0/packet/1", json!({})),
        ("/flows/0/packet/1/ipv4/srcc", json!("1.2.3.4")),
        ("/flows/0/packet/1/ipv4/src", json!("1.2.3")),
        ("/flows/0/packet/1/ipv4/src", json!(7)),
        ("/flows/0/packet/1/ipv4/src", json!("bad")),
        ("/flows/0/packet/1/ipv4/time_to_live", json!(256)),
        ("/flows/0/packet/1/ipv4/time_to_live", json!("+5")),
        ("/flows/0/packet/1/ipv4/src", json!({"values": []})),
        ("/flows/0/packet/1/ipv4/src", json!({"after": "x.y"})),
        ("/flows/0/packet/1/ipv4/src", json!({"value": "1.2.3.4", "random": {}})),
        ("/flows/0/packet/1/ipv4/src", json!({"value": "1.2.3.4", "mask": "0.0.0.1"})),
        ("/flows/0/packet/1/ipv4/src", json!({"random": {}, "shift": 128})),
        ("/flows/0/packet/1/ipv4/src", json!({"random": {}, "restart_after": 0})),
        ("/flows/0/packet/2", json!({"custom": {"bytes": "01", "bytes[0]": 1}})),
        ("/flows/0/packet/1/ipv4/src", json!({"weighted": [["1.2.3.4"]]})),
        ("/flows/0/packet/1/ipv4/src", json!({"increment": {"strat": "1.2.3.4"}})),
        ("/flows/0/packet/1/ipv4/src", json!({"random": {"seed": -1}})),
        ("/flows/0/packet/1/ipv4/options", json!([{"record": {}}])),
        ("/flows/0/packet/1/ipv4/options", json!([{"router_alert": {"colour": 1}}])),
        ("/flows/0/packet/2", json!({"payload": "ones"})),
        ("/flows/0/packet/2", json!({"payload": {"fixed": "xx"}})),
        ("/flows/0/packet", json!([{"payload": {"zeros": {"surprise": null}}}])),
        ("/flows/0/packet", json!([{"capture": {"number": 1}}])),
        ("/flows/0/packet", json!([{"capture": {"file": "f", "number": 0}}])),
        ("/flows/0/packet", json!([{"capture": {"file": "f", "fields": {"ipv4.colour": 1}}}])),
        ("/flows/0/packet", json!([{"capture": {"file": "f", "fields": {"bytes[1]": 1}}}])),
        ("/flows/0/size", json!(10)),
        ("/flows/0/size", json!("imx")),
        ("/flows/0/size", json!({"increment": {"start": 64}})),
        ("/flows/0/rate", json!("10G")),
        ("/flows/0/rate", json!(7)),
        ("/flows/0/rate", json!({"pps": 1, "bps": 2})),
        ("/flows/0/duration", json!(5)),
        ("/flows/0/duration", json!({"fixed_packets": 0})),
        ("/flows/0/duration", json!({"burst": {"inter_burst_gap": 5}})),
        ("/flows/0/departures", json!("bursty")),
        ("/flows/0/departures", json!({"on_off": {"on": "1ms"}})),
        ("/flows/0/start", json!("later")),
        ("/flows/0/start_delay", json!(1)),
        ("/flows/0/next", json!({"times": 2})),
        ("/flows/0/metrics", json!({"enable": "maybe"})),
        ("/flows/0/metrics", json!(true)),
        ("/flows/0/rx", json!(1)),
        ("/ports/0/speed", json!("fast")),
        ("/ports/0/name", json!(null)),
        ("/ports", json!({})),
    ];
    let validator = validator();
    let plan = json!({"ports": [{"name": "a"}], "flows": [good]});
    assert!(validator.is_valid(&plan) && read(&plan).is_ok());
    for (pointer, value) in cases {
        let mut bad = plan.clone();
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        match bad.pointer_mut(parent).expect("a parent") {
            Value::Array(items) => items[name.parse::<usize>().expect("an index")] = value.clone(),
            parent => parent[name] = value.clone(),
        }
        assert!(!validator.is_valid(&bad), "the schema takes {pointer}: {value}");
        assert!(read(&bad).is_err(), "the reader takes {pointer}: {value}");
    }
    for missing in ["/ports", "/flows", "/flows/0/name", "/flows/0/tx", "/flows/0/packet"] {
        let mut bad = plan.clone();
        let (parent, name) = missing.rsplit_once('/').expect("a pointer");
        bad.pointer_mut(parent).and_then(Value::as_object_mut).and_then(|it| it.remove(name));
        assert!(!validator.is_valid(&bad) && read(&bad).is_err(), "{missing}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_schema_accepts_what_the_reader_accepts(
        example in any::<Index>(),
        changes in prop::collection::vec((any::<Index>(), 0..3_u8, values()), 1..3),
    ) {
        thread_local!(static PREPARED: (Vec<(String, Value)>, Validator) = (examples(), validator()));
        let outcome = PREPARED.with(|(examples, validator)| {
            let (_, mut document) = example.get(examples).clone();
            // Keep one flow, so that an error in another one does not hide the change.
            if let Some(flows) = document["flows"].as_array_mut() {
                let one = flows.swap_remove(example.index(flows.len()));
                *flows = vec![one];
            }
            let is_unknown = changes.iter().any(|(_, how, _)| *how == 2);
            for (at, how, value) in &changes {
                change(&mut document, *at, *how, value);
            }
            let (is_valid, read) = (validator.is_valid(&document), read(&document));
            (is_valid || read.is_err(), is_unknown && document.to_string().contains("surprise") && (is_valid || read.is_ok()), document.to_string())
        });
        let (agree, takes_unknown, document) = outcome;
        prop_assert!(agree, "the reader takes what the schema refuses: {}", document);
        prop_assert!(!takes_unknown, "an unknown field is taken: {}", document);
    }
}
