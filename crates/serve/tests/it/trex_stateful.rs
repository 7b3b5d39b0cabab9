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

/// Tunnels of the clients 16.0.0.1 to 16.0.0.4, and of latency traffic.
fn tunnel_topology(is_active: bool) -> String {
    let tunnel = json!({
        "src_start": "16.0.0.1", "src_end": "16.0.0.4", "initial_teid": 100, "teid_jump": 10,
        "sport": 5000, "version": 4, "tunnel_type": 1, "src_ip": "1.1.1.11", "dst_ip": "12.2.2.2",
        "activate": is_active,
    });
    let latency = json!({"client_port_id": 0, "client_ip": "16.0.0.3", "server_ip": "48.0.0.3"});
    json!({"tunnels": [tunnel], "latency": [latency]}).to_string()
}

impl Owner {
    /// Starts counting frames; returns nothing but the numbers that [`Self::matched`] uses.
    fn count_frames(&mut self, sending: &[usize], filter: &str) -> u64 {
        let start = json!({
            "command": "start", "limit": 10, "mode": "fixed", "tx": sending, "rx": [],
            "filter": filter,
        });
        self.client.call("capture", start)["capture_id"].as_u64().unwrap()
    }

    fn matched(&mut self, capture: u64) -> u64 {
        let status = self.client.call("capture", json!({"command": "status"}));
        let captures = status.as_array().unwrap();
        let found = captures.iter().find(|it| it["id"] == capture).expect("the capture");
        found["matched"].as_u64().unwrap()
    }

    fn activate_tunnels(&mut self, activate: bool, loopback: bool) {
        let mode = json!({"tunnel_type": 1, "activate": activate, "loopback": loopback});
        self.call("activate_tunnel_mode", mode);
    }
}

#[test]
fn clients_in_tunnel_mode_use_the_tunnels_of_the_topology_and_of_updates() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Astf);
    let mut owner = Owner::new(fixture.client("ASTF"));
    let supported = owner.call("is_tunnel_supported", json!({"tunnel_type": 1}));
    assert_eq!(supported, json!({"is_tunnel_supported": true}));
    let inactive = owner.error("tunnel_topo_get", json!({}));
    assert!(inactive.starts_with("Tunnel mode has to be activated"), "{inactive}");
    owner.activate_tunnels(true, true);
    let empty = owner.call("tunnel_topo_get", json!({}));
    assert_eq!(empty["tunnel_topo_data"], r#"{"tunnels": [], "latency": []}"#);
    owner.load("tunnel_topo_fragment", &tunnel_topology(true));
    let loaded = owner.call("tunnel_topo_get", json!({}));
    assert_eq!(loaded["tunnel_topo_data"], tunnel_topology(true));
    owner.load("profile_fragment", &profile());
    let busy = json!({"tunnel_type": 1, "activate": false, "loopback": false});
    assert_eq!(owner.error("activate_tunnel_mode", busy), "The server state should be IDLE");
    let service = json!({"enabled": true});
    owner.call("service", service);
    // The inner source address begins at byte 48 of the outer packet, the TEID at byte 32.
    let begin = "udp src port 5000 and udp dst port 2152";
    let from_client =
        format!("{begin} and src host 1.1.1.11 and ip[32:4] = 110 and ip[48:4] = 0x10000002");
    let to_client =
        format!("{begin} and src host 12.2.2.2 and ip[32:4] = 110 and ip[52:4] = 0x10000002");
    let changed = "udp src port 80 or (udp dst port 2152 and not udp src port 5000 and \
                   src host 2.2.2.2 and ip[32:4] = 77 and ip[48:4] = 0x10000005)";
    let filters = [(0, from_client), (1, to_client), (0, changed.to_owned())];
    let captures = filters.map(|(port, filter)| owner.count_frames(&[port], &filter));
    let latency = owner.count_frames(&[0], &format!("{begin} and ip[32:4] = 120 and ip[45] = 1"));
    let plain = owner.count_frames(&[0, 1], "tcp or icmp");
    owner.start(&json!({"duration": 60.0, "latency_pps": 200}));
    owner.wait("no packet is in the tunnel of its client", |owner| {
        owner.matched(captures[0]) > 5 && owner.matched(captures[1]) > 5
    });
    owner.wait("no latency is measured", |owner| {
        [0, 1].into_iter().all(|port| owner.latency(port)["hist"]["cnt"].as_u64() > Some(20))
    });
    assert!(owner.matched(latency) > 10);
    assert_eq!(owner.matched(captures[2]), 0);
    // The first four of the nine clients have tunnels.
    let info = |owner: &mut Owner| {
        let clients = json!({"is_range": true, "attr": [
            {"client_start_ip": 0x1000_0004_u32, "client_end_ip": 0x1000_0005_u32},
        ]});
        owner.call("get_clients_info_start", clients);
        let info = owner.call("get_clients_info_pull", json!({}));
        let kind = |client: u32| info[client.to_string()]["tunnel_type"].clone();
        [kind(0x1000_0004), kind(0x1000_0005)]
    };
    assert_eq!(info(&mut owner), [json!("GTP"), Value::Null]);
    let mut update = json!({"tunnel_type": 1, "attr": [{
        "client_ip": 0x1000_0005_u32, "sip": "2.2.2.2", "dip": "3.3.3.3", "sport": 0, "teid": 77,
        "version": 4,
    }]});
    owner.call("update_tunnel_client", update.clone());
    owner.wait("no packet is in the changed tunnel", |owner| owner.matched(captures[2]) > 5);
    assert_eq!(info(&mut owner), [json!("GTP"), json!("GTP")]);
    update["attr"][0]["version"] = 6.into();
    (update["attr"][0]["sip"], update["attr"][0]["dip"]) = ("2001:db8::1".into(), "::2".into());
    let error = owner.error("update_tunnel_client", update);
    assert!(error.contains("need 20 bytes more"), "{error}");
    assert_eq!(owner.matched(plain), 0);
    let described = owner.call("get_dynamic_counter_desc", json!({"profile_id": "_"}));
    assert_eq!(described["data"][3]["name"], "m_err_tunnel_no_context");
    let epoch = described["epoch"].clone();
    let old = owner.call("get_dynamic_counter_values", json!({"profile_id": "_", "epoch": 0}));
    assert_eq!(old["epoch_err"], 1);
    owner.call("stop", json!({"profile_id": "_"}));
    owner.wait_loaded();
    let values =
        owner.call("get_dynamic_counter_values", json!({"profile_id": "_", "epoch": epoch}));
    for side in ["client", "server"] {
        assert!(values[side]["0"].as_u64() > Some(10) && values[side]["1"].as_u64() > Some(10));
    }
    // Clients without a tunnel send nothing.
    assert!(values["client"]["3"].as_u64() > Some(0), "{values}");
    assert!(fixture.service.stop().is_empty());
}

#[test]
fn latency_traffic_passes_the_tunnels_of_a_run_that_nothing_else_shares() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Astf);
    let mut owner = Owner::new(fixture.client("ASTF"));
    owner.activate_tunnels(true, true);
    let mut topology: Value = serde_json::from_str(&tunnel_topology(true)).unwrap();
    topology["tunnels"][0]["version"] = 6.into();
    topology["tunnels"][0]["src_ip"] = "2001:db8::1".into();
    topology["tunnels"][0]["dst_ip"] = "2001:db8::2".into();
    owner.load("tunnel_topo_fragment", &topology.to_string());
    owner.load("profile_fragment", &profile());
    owner.start(&json!({"duration": 60.0, "latency_pps": 200}));
    owner.wait("no latency is measured", |owner| {
        [0, 1].into_iter().all(|port| owner.latency(port)["hist"]["cnt"].as_u64() > Some(50))
    });
    owner.call("stop", json!({"profile_id": "_"}));
    owner.wait_loaded();
    for port in [0, 1] {
        owner.wait("latency packets are lost", |owner| {
            let (own, other) = (owner.latency(port), owner.latency(port ^ 1));
            own["stats"]["m_pkt_ok"] == other["stats"]["m_tx_pkt_ok"]
        });
        assert_eq!(owner.latency(port)["stats"]["m_seq_error"], 0);
    }
    assert!(fixture.service.stop().is_empty());
}

#[test]
fn inactive_tunnel_contexts_keep_their_clients_off_and_servers_send_plain_packets() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Astf);
    let mut owner = Owner::new(fixture.client("ASTF"));
    owner.activate_tunnels(true, false);
    let mut wrong: Value = serde_json::from_str(&tunnel_topology(true)).unwrap();
    wrong["latency"][0]["client_ip"] = "16.0.0.9".into();
    let fragment = json!({"fragment": wrong.to_string(), "frag_first": true, "frag_last": true});
    let error = owner.error("tunnel_topo_fragment", fragment);
    let expected = "Tunnel Topology parsing error: no tunnel context for the client_ip: 16.0.0.9";
    assert_eq!(error, expected);
    owner.load("profile_fragment", &profile());
    owner.start(&json!({"latency_pps": 10, "duration": 60.0}));
    // Latency traffic needs a client in a tunnel.
    owner.wait_loaded();
    owner.load("tunnel_topo_fragment", &tunnel_topology(false));
    owner.call("service", json!({"enabled": true}));
    let tunnelled = owner.count_frames(&[0], "udp dst port 2152");
    owner.start(&json!({"duration": 60.0}));
    let clients = |on: bool| {
        let range = json!({"client_start_ip": 0x1000_0001_u32, "client_end_ip": 0x1000_0004_u32});
        json!({"is_enable": on, "is_range": true, "attr": [range]})
    };
    let epoch = owner.call("get_dynamic_counter_desc", json!({"is_sum": true}))["epoch"].clone();
    owner.wait("no other client tries to connect", |owner| {
        let values = owner.call("get_total_dynamic_counter_values", json!({"epoch": epoch}));
        values["client"]["3"].as_u64() > Some(20)
    });
    assert_eq!(owner.matched(tunnelled), 0);
    owner.call("enable_disable_client", clients(true));
    owner.wait("no client works", |owner| owner.matched(tunnelled) > 5);
    owner.call("stop", json!({"profile_id": "_"}));
    owner.wait_loaded();
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
