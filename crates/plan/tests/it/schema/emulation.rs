//! The schema of emulation plans, compared with the reader.

use jsonschema::Validator;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use wirestorm_plan::emulation::{EmulationPlan, schema};
use wirestorm_wire::conversation::{Action, Conversation, Imported, Side, Transport, Turn};

use super::change::{change, values};
use super::examples::examples_with;

fn validator() -> Validator {
    jsonschema::validator_for(&schema()).expect("a schema")
}

/// Reads a plan whose captures all have two flows.
fn read(document: &Value) -> Result<EmulationPlan, String> {
    let conversation = |port: u16| Conversation {
        transport: Transport::Tcp,
        client: "192.0.2.1:5000".parse().expect("an address"),
        server: format!("192.0.2.2:{port}").parse().expect("an address"),
        packet: 1,
        has_beginning: true,
        turns: vec![Turn {
            side: Side::Client,
            gap: Default::default(),
            act: Action::Send(b"hello".to_vec()),
        }],
    };
    let flows = vec![Ok(conversation(7_001)), Ok(conversation(7_002))];
    let load = |_: &str| Ok(Imported { flows: flows.clone(), others: 0 });
    EmulationPlan::parse_with(&document.to_string(), load).map_err(|errors| errors.to_string())
}

/// Returns a plan that uses every key.
fn all_words() -> Value {
    let client = |more: Value| {
        let mut client =
            json!({"tx": "c", "servers": "10.0.1.1-10.0.1.9", "load": {"concurrent": 2}});
        for (name, value) in more.as_object().expect("fields") {
            client[name] = value.clone();
        }
        client
    };
    let is_http2_dialogue = |number: usize, word: &str, settings: Value| {
        json!({
            "name": format!("{word} {number}"), word: settings, "client": client(json!({})),
            "server": {"tx": "s", "port": 2_000 + number, "vlans": [5, [5, 7]]},
        })
    };
    let devices = json!([
        {"clients": "10.0.0.5", "stride": 2, "count": 1, "vlan": 5,
            "mpls": [16, {"label": 17, "tc": 3, "ttl": 9}],
            "dst": "02:00:00:00:00:02", "src": "02:00:00:00:00:03"},
        {"clients": "10.0.0.5", "vlan": [5, 7], "next_hop": "10.0.9.1", "next_hop_source": "10.0.9.9"},
    ]);
    let steps = json!([
        "connect",
        {"send": "text"},
        {"send": {"text": "a", "size": 10, "fill": "b"}},
        {"receive": "1_0"},
        {"receive_total": 100},
        {"delay": "5ms"},
        {"delay": {"min": "1ms", "max": "2ms"}},
        {"delay": {"mean": "1ms"}},
        {"delay": {"mean": "1ms", "stddev": "1us"}},
        {"blocking": false},
        {"tos": 184},
        {"repeat": {"times": 2, "steps": [{"receive": 1}]}},
        {"label": "here"},
        {"set": {"n": 5}},
        {"add": {"n": -1}},
        {"decrement_and_jump": {"variable": "n", "to": "here"}},
        {"jump": {"to": "here", "variable": "n", "less": 1}},
        {"jump": {"to": "here", "variable": "n", "less_or_equal": 1}},
        {"jump": {"to": "here", "variable": "n", "equal": 1}},
        {"jump": {"to": "here", "variable": "n", "not_equal": 1}},
        {"jump": {"to": "here", "variable": "n", "greater_or_equal": 1}},
        {"jump": {"to": "here", "variable": "n", "greater": 1}},
        {"save_time": "t"},
        {"add_time": {"t": "1s"}},
        {"jump": {"to": "here", "within": "1s", "since": "t"}},
        {"count": {"A": 1}},
        {"count": {"D": {"since": "t"}}},
        {"select_group": "g"},
        "run_flow",
        {"jump": "here"},
        "wait_for_close",
        "reset",
    ]);
    let per_flow_payload = json!([
        {"set": {"c": {"counter": 5}}},
        {"set": {"d": {"counter": {"start": 5, "step": 2, "max": 9}}}},
        {"set": {"r": {"random": {"min": 5, "max": 9}}}},
        {"set": {"text": {"random_text": 5}}},
        {"set": {"bytes": {"random_bytes": 5}}},
        {"set": {"text": {"text": "${flow} $${"}}},
        {"send": {"hex": "00 ff", "size": 9, "fields": [
            {"offset": 2, "width": 2, "value": "bytes.length"},
        ]}},
        {"receive": {"until": ";"}},
        {"receive": {"message": "http"}},
        {"expect": "a"},
        {"expect": {"text": "${text}"}},
        {"expect": {"hex": "00"}},
        {"expect": {"contains": "a"}},
        {"expect": {"pattern": "a+"}},
        {"expect": {"text": "a", "on_failure": "leave"}},
        {"label": "leave"},
        {"extract": {"e": {"pattern": "(a)", "group": 1}}},
        {"extract": {"e": {"between": ["a", "b"]}}},
        {"extract": {"e": {"offset": 0, "length": 1}}},
        {"transaction": {"start": "all"}},
        {"transaction": {"end": "all"}},
    ]);
    let datagrams = json!([
        {"idle": "2s"},
        {"idle": {"time": "2s", "receive_only": true}},
        {"send_datagram": {"size": 9}},
        {"receive_datagrams": 1},
        {"receive_datagrams": {"count": 2, "clear": false}},
    ]);
    let tcp = json!({
        "mss": 1460, "initial_window": 10, "receive_buffer": 65536, "window_scaling": true,
        "timestamps": false, "sack": true, "rack": true, "ecn": false, "no_delay": true,
        "congestion": "cubic", "delayed_ack": "40ms", "time_wait": "1s", "keepalive": "10s",
        "keepalive_interval": "1s", "push_all": true, "send_buffer": 65536, "window_scale": 7,
        "dupack_threshold": 4, "reassembly_max": 100, "rto_initial": "1s", "rto_min": "1s",
        "rto_max": "60s", "retries": 5, "syn_retries": 3, "connect_timeout": "5s",
        "ack_after_bytes": 5000, "fast_open": true, "keepalive_probes": 3,
    });
    let tls = json!({"versions": [1.2, "1.3"], "sni": "a.test", "alpn": ["http/1.1"],
        "ciphers": ["TLS_AES_128_GCM_SHA256"], "certificate": "a.pem", "key": "b.pem",
        "ca": "c.pem", "client_certificate": "d.pem", "client_key": "e.pem", "client_ca": "f.pem",
        "resume": "30%"});
    let http = json!({
        "version": "1.1", "method": "POST", "path": "/a", "host": "a.test", "headers": {"X-A": "b", "X-N": 5},
        "body": 5, "requests": 4, "pipeline": 2, "think_time": "1ms", "reconnect": false,
        "response": {"status": 201, "headers": {"X-B": "c"}, "body": {"text": "a", "size": 9},
            "chunk": 5, "delay": {"min": "0ms", "max": "1ms"}},
    });
    let smtp = json!({"host": "a", "client_host": "b", "from": "c@d", "to": "e@f",
        "message": "text", "messages": 2, "delay": "1ms"});
    let ftp = json!({"host": "a", "user": "b", "password": "c", "rounds": 2,
        "files": ["d", {"name": "e", "size": 9}], "upload": ["f"], "list": ["NLST"],
        "data_ports": "50000-50100", "delay": "1ms"});
    let control = json!([
        {"listen": "port"},
        {"listen": {"variable": "port", "ports": "50000-50100"}},
        {"receive": {"bytes": 5}},
        {"receive": {"message": "reply"}},
        {"jump": {"to": "end", "received": {"contains": "no"}}},
        {"select_group": "data"},
        "accept_flow",
        {"start_flow": {"port": "port", "client_port": "port"}},
        "wait_flow",
        {"label": "end"},
    ]);
    let talk = json!({"packets": 3, "media_port": 6000});
    let sip =
        json!({"from": "a@b", "to": "c@d", "ring_time": "1ms", "talk_time": "1ms", "delay": "1ms"});
    let dns = json!({"name": "a.b", "type": "AAAA", "answers": 2, "queries": 3, "delay": "1ms"});
    json!({
        "latency": [
            {"from": "c", "to": "192.0.2.1", "rate": "1k"},
            {"from": "c", "to": "192.0.2.1", "protocol": "udp", "port": 7},
        ],
        "ports": [
            {"name": "c", "addresses": "10.0.0.1/16", "impair": {
                "loss": "1%", "duplicate": "1%", "corrupt": "1%", "rate": "1M-l2", "queue": 10,
                "delay": "5ms", "jitter": "1ms", "reorder": "1%/2ms",
            }},
            {"name": "s", "location": "eth1", "impair": {"burst_loss": "0.5%/30%"},
                "blackhole": "syn", "tunnels": [
                {"clients": "10.0.0.5-10.0.0.9", "teid": 7, "teid_step": 2, "src": "10.0.9.1",
                    "dst": "10.0.9.2", "source_port": 2_152},
            ]},
        ],
        "templates": [
            {
                "name": "steps", "group": "g", "transport": "tcp", "tcp": tcp,
                "ip": {"ttl": 9, "tos": "0x10", "dont_fragment": true,
                    "identification": "counting", "flow_label": "flow"},
                "client": client(json!({
                    "addresses": "10.0.0.5", "ports": "1024-2048", "server_port": 1,
                    "ethernet": {"dst": "02:00:00:00:00:01"}, "order": "round_robin", "pairing": "fixed",
                    "consecutive_flows": 4, "reuse_after": 20,
                    "devices": devices,
                    "load": "on_demand", "limit": 5,
                    "program": steps, "tcp": {"mss": 536, "ecn": "permit"},
                    "ip": {"ttl": 8, "flow_label": "0x12345"},
                })),
                "server": {
                    "tx": "s", "port": 1, "addresses": "10.0.1.1", "first_bytes": "GET",
                    "program": [], "tcp": {}, "ip": {},
                },
            },
            {
                "name": "secret", "tls": tls, "http2": false, "client": client(json!({"program": []})),
                "server": {"tx": "s", "port": 443, "program": []},
            },
            {"name": "plain", "tls": true, "client": client(json!({"program": []}))},
            {"name": "mail", "tls": true, "transactions": false, "smtp": {"start_tls": true}, "client": client(json!({}))},
            {"name": "streams", "http": {"version": 2, "requests": 4, "pipeline": 2}, "tls": true,
                "http2": {"max_concurrent_streams": 5, "initial_window_size": 65535}, "client": client(json!({}))},
            {"name": "stream", "http2": true, "client": client(json!({"program": []}))},
            {
                "name": "datagrams", "transport": "udp",
                "client": client(json!({"program": datagrams, "load": {"rate": "1k"}, "ramp_up": "5s"})),
                "server": {
                    "tx": "s", "port": 2, "program": [],
                    "first_bytes": [{"offset": 1, "mask": 15, "value": 7}],
                },
            },
            {"name": "captured", "conversation": "a.pcap", "client": client(json!({"load": {"poisson": 5, "concurrent_max": 3}})), "server": {"tx": "s"}},
            {"name": "users", "client": client(json!({
                "load": {"users": 5, "think_time": {"mean": "1s"}}, "ramp_up": "5s", "program": [],
            }))},
            {"name": "values", "client": client(json!({"program": per_flow_payload}))},
            {"name": "control", "client": client(json!({"program": control}))},
            {
                "name": "data", "group": "data", "client": client(json!({"program": []})),
                "server": {"tx": "c", "port": "on_demand", "program": []},
            },
            {"name": "steady", "client": client(json!({"load": {"throughput": "1M"}, "program": []}))},
            is_http2_dialogue(3, "conversation", json!({"file": "a", "flow": 1, "timing": "keep"})),
            is_http2_dialogue(4, "conversation", json!({"file": "a", "flow": [2], "timing": "drop", "server_delay": "1ms"})),
            is_http2_dialogue(5, "http", http),
            {"name": "others", "http": {"requests": 2, "response_bytes": 5}, "client": client(json!({}))},
            is_http2_dialogue(6, "smtp", smtp),
            is_http2_dialogue(7, "ftp", ftp),
            is_http2_dialogue(8, "rtsp", json!({"host": "a", "path": "/b", "packets": 3, "delay": "1ms"})),
            is_http2_dialogue(9, "sip", sip),
            is_http2_dialogue(12, "sip", talk),
            is_http2_dialogue(10, "rtp", json!({"packets": 3})),
            is_http2_dialogue(11, "dns", dns),
        ],
    })
}

fn examples() -> Vec<(String, Value)> {
    let mut examples = examples_with("templates");
    examples.push(("all words".to_owned(), all_words()));
    examples
}

#[test]
fn examples_match_the_schema() {
    let validator = validator();
    for (name, document) in examples() {
        read(&document).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        let wrong: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    }
}

#[test]
fn the_test_plan_uses_every_key_of_the_schema() {
    fn words(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    found.extend(properties.keys().cloned());
                }
                map.values().for_each(|value| words(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| words(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    words(&schema(), &mut found);
    assert!(found.len() > 100, "{}", found.len());
    let plan = all_words().to_string();
    // Keys of ports, and counter names, do not occur in the test plan.
    let elsewhere = ["speed", "gateway", "B", "C"];
    for word in found.iter().filter(|word| !elsewhere.contains(&word.as_str())) {
        assert!(plan.contains(&format!("\"{word}\":")), "{word}");
    }
}

#[test]
fn the_reader_refuses_what_the_schema_refuses() {
    let plan = json!({
        "ports": [{"name": "c", "addresses": "10.0.0.1/24"}],
        "templates": [{
            "name": "t",
            "client": {"tx": "c", "servers": "10.0.1.1", "load": {"rate": 1},
                "program": [{"send": "a"}]},
        }],
    });
    let validator = validator();
    assert!(validator.is_valid(&plan) && read(&plan).is_ok());
    for (pointer, value) in [
        ("/colour", json!("red")),
        ("/templates", json!([])),
        ("/templates/0/colour", json!("red")),
        ("/templates/0/transport", json!("sctp")),
        ("/templates/0/client", json!(null)),
        ("/templates/0/client/servers", json!("host.test")),
        ("/templates/0/client/ports", json!("1024-")),
        ("/templates/0/client/server_port", json!(0)),
        ("/templates/0/client/load", json!("often")),
        ("/templates/0/client/load", json!({"rate": 1, "concurrent": 1})),
        ("/templates/0/client/load", json!({"rate": 1, "concurrent_max": 0})),
        ("/templates/0/client/load", json!({"concurrent": 1, "concurrent_max": 1})),
        ("/templates/0/client/load", json!({"concurrent": 0})),
        ("/templates/0/client/program", json!("a")),
        ("/templates/0/client/program/0", json!("close")),
        ("/templates/0/client/program/0", json!({"sent": "a"})),
        ("/templates/0/client/program/0", json!({"send": {"bytes": 5}})),
        ("/templates/0/client/program/0", json!({"send": {"hex": "0"}})),
        (
            "/templates/0/client/program/0",
            json!({"send": {"text": "a", "fields": [{"offset": 0}]}}),
        ),
        ("/templates/0/client/program/0", json!({"set": {"a": {"random": {}}}})),
        ("/templates/0/client/program/0", json!({"receive": {"message": "line"}})),
        ("/templates/0/client/program/0", json!({"expect": {"is": "a"}})),
        ("/templates/0/client/program/0", json!({"transaction": "a"})),
        ("/templates/0/client/program/0", json!({"receive": 0})),
        ("/templates/0/client/program/0", json!({"delay": 5})),
        ("/templates/0/client/program/0", json!({"delay": {"min": "1ms"}})),
        ("/templates/0/client/program/0", json!({"repeat": {"steps": []}})),
        ("/templates/0/client/program/0", json!({"count": {"E": 1}})),
        ("/templates/0/client/program/0", json!({"set": {}})),
        ("/templates/0/tcp", json!({"mss": 1})),
        ("/templates/0/tcp", json!({"congestion": "vegas"})),
        ("/templates/0/tcp", json!({"ecn": "always"})),
        ("/templates/0/tcp", json!({"window_scale": 15})),
        ("/templates/0/tcp", json!({"keepalive_probes": 0})),
        ("/templates/0/ip", json!({"ttl": 0})),
        ("/templates/0/ip", json!({"identification": 5})),
        ("/templates/0/ip", json!({"flow_label": 1 << 20})),
        ("/ports/0/blackhole", json!("some")),
        ("/templates/0/http", json!({"response": {"status": 100}})),
        ("/templates/0/http", json!({"path": "a b"})),
        ("/templates/0/dns", json!({"type": "MX"})),
        ("/templates/0/conversation", json!({"flow": 1})),
        ("/templates/0/conversation", json!({"file": "a", "timing": "fast"})),
    ] {
        let mut bad = plan.clone();
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        match bad.pointer_mut(parent).expect("a parent") {
            Value::Array(items) => items[name.parse::<usize>().expect("an index")] = value.clone(),
            parent => parent[name] = value.clone(),
        }
        assert!(!validator.is_valid(&bad), "the schema takes {pointer}: {value}");
        assert!(read(&bad).is_err(), "the reader takes {pointer}: {value}");
    }
    for missing in ["/ports", "/templates", "/templates/0/name", "/templates/0/client/load"] {
        let mut bad = plan.clone();
        let (parent, name) = missing.rsplit_once('/').expect("a pointer");
        bad.pointer_mut(parent).and_then(Value::as_object_mut).and_then(|it| it.remove(name));
        assert!(!validator.is_valid(&bad) && read(&bad).is_err(), "{missing}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 10_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_schema_accepts_what_the_reader_accepts(
        example in any::<Index>(),
        changes in prop::collection::vec((any::<Index>(), 0..3_u8, values()), 1..3),
    ) {
        thread_local!(static PREPARED: (Vec<(String, Value)>, Validator) = (examples(), validator()));
        let (agree, document) = PREPARED.with(|(examples, validator)| {
            let (_, mut document) = example.get(examples).clone();
            // Keep one template, so that an error in another one does not hide the change.
            if let Some(templates) = document["templates"].as_array_mut() {
                let one = templates.swap_remove(example.index(templates.len()));
                *templates = vec![one];
            }
            for (at, how, value) in &changes {
                change(&mut document, *at, *how, value);
            }
            (validator.is_valid(&document) || read(&document).is_err(), document.to_string())
        });
        prop_assert!(agree, "the reader takes what the schema refuses: {}", document);
    }
}
