//! Profiles, latency traffic and topologies of TRex's stateful clients.

use std::time::Instant;

use serde_json::{Value, json};
use wirestorm_serve::TrexMode;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::require_root;

use crate::trex::{Client, PATIENCE, start};

/// A profile: a request of 4 bytes and a response of 4 bytes, between nine clients and servers.
fn profile() -> String {
    let pool = |dir: &str, first: &str, last: &str| {
        json!({
            "ip_start": first, "ip_end": last, "distribution": "seq", "dir": dir,
            "ip_offset": "1.0.0.0",
        })
    };
    let client = json!({
        "program_index": 0, "cluster": {}, "port": 80, "cps": 10,
        "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}},
    });
    json!({
        "buf_list": ["cGluZw==", "cG9uZw=="],
        "ip_gen_dist_list": [
            pool("c", "16.0.0.1", "16.0.0.9"), pool("s", "48.0.0.1", "48.0.0.9"),
        ],
        "program_list": [
            {"commands": [{"name": "tx", "buf_index": 0}, {"name": "rx", "min_bytes": 4},
                          {"name": "delay", "usec": 300_000}]},
            {"commands": [{"name": "rx", "min_bytes": 4}, {"name": "tx", "buf_index": 1}]},
        ],
        "templates": [{
            "client_template": client,
            "server_template": {"program_index": 1, "assoc": [{"port": 80}]},
        }],
    })
    .to_string()
}

/// The owner of all ports.
struct Owner {
    client: Client,
    handler: Value,
}

impl Owner {
    fn new(mut client: Client) -> Self {
        let acquire = json!({"user": "ada", "session_id": 7, "force": true});
        let handler = client.call("acquire", acquire)["handler"].clone();
        Self { client, handler }
    }

    fn owned(&self, mut parameters: Value) -> Value {
        parameters["handler"] = self.handler.clone();
        parameters
    }

    #[track_caller]
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        let parameters = self.owned(parameters);
        self.client.call(method, parameters)
    }

    #[track_caller]
    fn error(&mut self, method: &str, parameters: Value) -> String {
        let parameters = self.owned(parameters);
        self.client.error(method, parameters)
    }

    fn load(&mut self, command: &str, text: &str) {
        let fragment = json!({"fragment": text, "frag_first": true, "frag_last": true});
        self.call(command, fragment);
    }

    fn start(&mut self, more: &Value) {
        let mut start = json!({
            "duration": 1.0, "mult": 10.0, "nc": true, "latency_pps": 0, "ipv6": false,
            "client_mask": u32::MAX,
        });
        for (name, value) in more.as_object().unwrap() {
            start[name] = value.clone();
        }
        self.call("start", start);
    }

    #[track_caller]
    fn wait(&mut self, what: &str, mut is_reached: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_reached(self) {
            assert!(Instant::now() < deadline, "{what}");
        }
    }

    /// Waits until the profile has ended.
    fn wait_loaded(&mut self) {
        self.wait("the profile does not end", |owner| {
            owner.call("sync", json!({"profile_id": "sync"}))["state_profile"]["_"] == 1
        });
    }

    fn latency(&mut self, port: usize) -> Value {
        let stats = self.call("get_latency_stats", json!({}));
        stats["data"][format!("port-{port}")].clone()
    }
}

#[test]
fn latency_traffic_runs_alone_and_measures_both_directions() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Astf);
    let mut owner = Owner::new(fixture.client("ASTF"));
    let latency = json!({
        "mult": 200.0, "src_addr": "16.0.0.1", "dst_addr": "48.0.0.1",
        "dual_port_addr": "1.0.0.0", "mask": u32::MAX,
    });
    let mut wrong = latency.clone();
    wrong["dst_addr"] = "host".into();
    let error = owner.error("start_latency", wrong);
    assert_eq!(error, "invalid destination IPv4 address: 'host'");
    let inactive = owner.error("update_latency", json!({"mult": 5.0}));
    assert_eq!(inactive, "Latency is not active, can't update rate");
    owner.call("start_latency", latency.clone());
    let error = owner.error("start_latency", latency);
    assert_eq!(error, "Latency state is not idle, should stop latency first");
    owner.call("update_latency", json!({"mult": 1000.0}));
    owner.wait("no latency is measured", |owner| {
        [0, 1].into_iter().all(|port| owner.latency(port)["hist"]["cnt"].as_u64() > Some(50))
    });
    assert_eq!(owner.call("stop_latency", json!({})), json!({"stopped": true}));
    for port in [0, 1] {
        let (own, other) = (owner.latency(port), owner.latency(port ^ 1));
        assert_eq!(own["stats"]["m_pkt_ok"], other["stats"]["m_tx_pkt_ok"]);
        let errors = ["m_seq_error", "m_no_id", "m_tx_pkt_err"];
        assert!(errors.iter().all(|name| own["stats"][name] == 0), "{own}");
        assert!(own["hist"]["min_usec"].as_f64() <= own["hist"]["s_avg"].as_f64(), "{own}");
        let sent = own["stats"]["m_tx_pkt_ok"].as_u64();
        let stats = owner.client.call("get_port_stats", json!({"port_id": port}));
        assert_eq!(stats["opackets"].as_u64(), sent);
    }
    assert!(fixture.service.stop().is_empty());
}

#[test]
fn profile_with_latency_samples_single_flows_and_ends_without_established_ones() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Astf);
    let mut owner = Owner::new(fixture.client("ASTF"));
    owner.load("profile_fragment", &profile());
    owner.start(&json!({"latency_pps": 500, "dump_interval": 0.05, "nc": false}));
    let mut flows = Value::Null;
    owner.wait("no flow is sampled", |owner| {
        flows = owner.call("get_flow_info", json!({"profile_id": "_", "index": 0}));
        flows[0].as_object().is_some_and(|sample| sample.len() > 1)
    });
    let sample = flows[0].as_object().unwrap();
    let (ends, info) = sample.iter().find(|(name, _)| *name != "index").unwrap();
    assert!(ends.contains("16.0.0.") && ends.contains("48.0.0."), "{ends}");
    assert!(info["snd_mss"].as_u64() > Some(500), "{info}");
    owner.wait_loaded();
    let counters = owner.call("get_counter_values", json!({"profile_id": "_"}));
    assert!(counters["client"].is_object());
    // The latency traffic of a profile ends with it.
    assert!(owner.latency(1)["stats"]["m_pkt_ok"].as_u64() > Some(100));
    let inactive = owner.error("update_latency", json!({"mult": 5.0}));
    assert_eq!(inactive, "Latency is not active, can't update rate");
    // Servers listen at another port, so that the run ends after the time for the first flow.
    let mut refused: Value = serde_json::from_str(&profile()).unwrap();
    refused["templates"][0]["client_template"]["port"] = 81.into();
    owner.load("profile_fragment", &refused.to_string());
    owner.start(&json!({"duration": 60.0, "e_duration": 0.3}));
    let begun = Instant::now();
    owner.wait_loaded();
    assert!(begun.elapsed().as_secs() < 40);
    assert!(fixture.service.stop().is_empty());
}

#[test]
fn clients_of_a_topology_use_its_gateways() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Astf);
    let mut owner = Owner::new(fixture.client("ASTF"));
    let vif = json!({
        "trex_port": 0, "sub_if": 1, "src_mac": "02:00:00:00:00:11", "src_ipv4": "",
        "src_ipv6": "", "vlan": 0,
    });
    let status = owner.client.call("get_port_status", json!({"port_id": 1}));
    let server = status["attr"]["layer_cfg"]["ether"]["src"].clone();
    let gw = |number: u32, first: &str, last: &str| {
        json!({
            "trex_port": 0, "sub_if": number, "src_start": first, "src_end": last, "dst": server,
            "dst_mac": server,
        })
    };
    let wrong = json!({"vifs": [vif], "gws": [gw(2, "16.0.0.1", "16.0.0.1")]}).to_string();
    let fragment = json!({"fragment": wrong, "frag_first": true, "frag_last": true});
    let error = owner.error("topo_fragment", fragment);
    assert_eq!(error, "Topology parsing error: GW has sub_if '2' which is missing");
    let gws = [gw(1, "16.0.0.1", "16.0.0.4"), gw(0, "16.0.0.5", "16.0.0.9")];
    owner.load("topo_fragment", &json!({"vifs": [vif], "gws": gws}).to_string());
    let loaded = owner.client.call("topo_get", json!({}));
    assert_eq!(loaded["topo_data"]["gws"].as_array().unwrap().len(), 2);
    let mut capture = |filter: &str| {
        let start = json!({
            "command": "start", "limit": 10, "mode": "fixed", "tx": [0], "rx": [],
            "filter": filter,
        });
        owner.client.call("capture", start)["capture_id"].clone()
    };
    capture("ether src 02:00:00:00:00:11 and ip src 16.0.0.1");
    capture("ether src 02:00:00:00:00:11 and ip src 16.0.0.5");
    owner.load("profile_fragment", &profile());
    owner.call("set_ignored_ips", json!({"ip_list": ["10.0.0.1"]}));
    owner.start(&json!({"nc": false}));
    owner.wait_loaded();
    let status = owner.client.call("capture", json!({"command": "status"}));
    assert!(status[0]["matched"].as_u64() > Some(1), "{status}");
    assert_eq!(status[1]["matched"], 0);
    owner.call("topo_clear", json!({}));
    let cleared = owner.client.call("topo_get", json!({}));
    assert_eq!(cleared, json!({"topo_data": {"vifs": null, "gws": null}}));
    assert!(fixture.service.stop().is_empty());
}
