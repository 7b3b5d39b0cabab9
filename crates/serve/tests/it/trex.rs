//! The server for TRex's clients over its raw protocol.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wirestorm_serve::{
    ListenOption, PortOption, ServerOptions, Service, ServiceError, TrexError, TrexMode, TrexOption,
};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::require_root;
use wirestorm_testkit::zmtp::ZmtpSocket;

/// Timeout of a condition.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Fixture {
    pub(crate) service: Service,
    _scratch: Scratch,
}

fn options(lab: &Lab, scratch: &Scratch) -> ServerOptions {
    let port = |name: &str, interface: String| PortOption { name: name.to_owned(), interface };
    ServerOptions {
        ports: vec![port("a", lab.a.port()), port("b", lab.b.port())],
        directory: scratch.file("server"),
        runs_directory: scratch.file("runs"),
        captures_bytes_max: 1 << 20,
        director: None,
    }
}

pub(crate) fn start(lab: &Lab, mode: TrexMode) -> Fixture {
    let scratch = Scratch::new().unwrap();
    let trex = TrexOption { request_port: 0, event_port: 0, ..TrexOption::new(mode) };
    let listen = [ListenOption {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        tls: None,
        needs_user: false,
        owner: None,
    }];
    let service = Service::start(options(lab, &scratch), &listen, Some(trex)).unwrap();
    Fixture { service, _scratch: scratch }
}

impl Fixture {
    fn requests(&self) -> SocketAddr {
        self.service.trex_addresses().unwrap()[0]
    }

    pub(crate) fn client(&self, mode: &str) -> Client {
        let mut client = Client::connect(self.requests(), "REQ");
        let (major, minor) = if mode == "STL" { (5, 1) } else { (2, 3) };
        let sync = json!({"name": mode, "major": major, "minor": minor});
        client.api = client.call("api_sync_v2", sync)["api_h"].as_str().unwrap().to_owned();
        client
    }
}

/// A client of the requests or of the events.
pub(crate) struct Client {
    socket: ZmtpSocket,
    api: String,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, socket_type: &str) -> Self {
        Self::over(TcpStream::connect(address).unwrap(), socket_type)
    }

    /// Exchanges greetings over a connection, which the peer may have opened.
    pub(crate) fn over(stream: TcpStream, socket_type: &str) -> Self {
        Self { socket: ZmtpSocket::over(stream, socket_type).unwrap(), api: String::new() }
    }

    pub(crate) fn send(&mut self, flags: u8, body: &[u8]) {
        self.socket.send(flags, body).unwrap();
    }

    pub(crate) fn receive(&mut self) -> (u8, Vec<u8>) {
        self.socket.receive().unwrap()
    }

    fn exchange(&mut self, body: &[u8]) -> Vec<u8> {
        self.socket.exchange(body).unwrap()
    }

    fn answer(&mut self, method: &str, mut parameters: Value) -> Value {
        if !self.api.is_empty() {
            parameters["api_h"] = self.api.as_str().into();
        }
        let request = json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": parameters});
        serde_json::from_slice(&self.exchange(request.to_string().as_bytes())).unwrap()
    }

    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        let mut answer = self.answer(method, parameters);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].take()
    }

    #[track_caller]
    pub(crate) fn error(&mut self, method: &str, parameters: Value) -> String {
        let answer = self.answer(method, parameters);
        answer["error"]["specific_err"].as_str().expect("an error").to_owned()
    }

    /// Returns the types of the events until one of `last`.
    pub(crate) fn events_until(&mut self, session: u32, last: u64) -> Vec<u64> {
        let deadline = Instant::now() + PATIENCE;
        let mut found = Vec::new();
        while !found.contains(&last) {
            assert!(Instant::now() < deadline, "no event {last}: {found:?}");
            let events = self.call("get_async_events", json!({"session_id": session}));
            let events = events["data"].as_array().unwrap();
            found.extend(events.iter().map(|event| event["type"].as_u64().unwrap()));
        }
        found
    }
}

/// A burst of 100 frames of 63 bytes, which are counted.
pub(crate) fn burst(group: u32) -> Value {
    let frame =
        "AAAAAQAAAAAAAgAACABFAAAuAAEAAEARavgQAAABMAAAAQQBAAwAGgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    json!({
        "enabled": true, "self_start": true, "isg": 0.0, "flags": 0, "action_count": 0,
        "next_stream_id": -1,
        "mode": {"type": "single_burst", "total_pkts": 100, "rate": {"type": "pps", "value": 1000}},
        "packet": {"binary": frame, "meta": ""},
        "vm": {"instructions": []},
        "flow_stats": {"enabled": true, "stream_id": group, "rule_type": "stats"},
        "name": "burst",
    })
}

#[test]
fn burst_is_sent_counted_and_reported_by_events() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Stl);
    let mut client = fixture.client("STL");
    assert_eq!(client.call("get_version", json!({}))["mode"], "STL");
    let acquire = json!({"port_id": 0, "user": "ada", "session_id": 7, "force": false});
    let handler = client.call("acquire", acquire.clone());
    // Another session sees the owner, and gets the port by force alone.
    let mut other = fixture.client("STL");
    assert_eq!(other.call("get_owner", json!({"port_id": 0}))["owner"], "ada");
    let taken = json!({"port_id": 0, "user": "bob", "session_id": 8, "force": false});
    assert_eq!(other.error("acquire", taken), "port is already taken by 'ada'");
    let owned = |mut parameters: Value| {
        parameters["port_id"] = 0.into();
        parameters["handler"] = handler.clone();
        parameters
    };
    let stream = json!({"stream_id": 1, "stream": burst(5)});
    assert!(
        client.error("add_stream", json!({"port_id": 0, "handler": "x"})).contains("not owned")
    );
    client.call("add_stream", owned(stream));
    let stored = client.call("get_all_streams", json!({"port_id": 0, "profile_id": "*"}));
    assert_eq!(stored["profiles"]["_"]["1"], burst(5));
    let mul = json!({"type": "raw", "value": 1.0, "op": "abs"});
    let start = json!({"mul": mul, "duration": -1, "core_mask": u64::MAX, "force": false});
    client.call("start_traffic", owned(start));
    // Started: 10 and 0; ended by itself: 14 and 4.
    assert_eq!(client.events_until(7, 4), [10, 0, 14, 4]);
    let stats = |client: &mut Client, port: u8| {
        let stats = client.call("get_port_stats", json!({"port_id": port}));
        [&stats["opackets"], &stats["ipackets"], &stats["obytes"], &stats["ibytes"]]
            .map(|value| value.as_u64().unwrap())
    };
    assert_eq!(stats(&mut client, 0), [100, 0, 6_700, 0]);
    assert_eq!(stats(&mut client, 1), [0, 100, 0, 6_700]);
    let groups = client.call("get_pgid_stats", json!({"pgids": [5]}));
    assert_eq!(groups["flow_stats"]["5"]["tp"], json!({"0": 100, "1": 0}));
    assert_eq!(groups["flow_stats"]["5"]["rb"], json!({"0": 0, "1": 6_700}));
    let status = client.call("get_port_status", json!({"port_id": 0, "profile_id": "*"}));
    assert_eq!((&status["state"], &status["owner"]), (&json!("STREAMS"), &json!("ada")));
    client.call("release", owned(json!({})));
    assert_eq!(other.call("get_owner", json!({"port_id": 0}))["owner"], "<FREE>");
    assert!(fixture.service.stop().is_empty());
}

#[test]
fn capture_sees_pushed_frames_on_both_sides() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Stl);
    let mut client = fixture.client("STL");
    let start = json!({
        "command": "start", "limit": 100, "mode": "fixed", "tx": [0], "rx": [1], "filter": "udp",
    });
    let capture = client.call("capture", start)["capture_id"].clone();
    let binary = burst(1)["packet"]["binary"].clone();
    let packet = json!({"binary": binary, "use_port_dst_mac": false, "use_port_src_mac": false});
    let push = json!({"port_id": 0, "pkts": [packet, packet], "ipg_usec": 100.0});
    assert_eq!(client.call("push_pkts", push)["sent"], 2);
    let deadline = Instant::now() + PATIENCE;
    while client.call("capture", json!({"command": "status"}))[0]["count"] != 4 {
        assert!(Instant::now() < deadline, "the capture does not get four frames");
    }
    let stop = client.call("capture", json!({"command": "stop", "capture_id": capture}));
    assert_eq!(stop["pkt_count"], 4);
    let fetch = json!({"command": "fetch", "capture_id": capture, "pkt_limit": 50});
    let fetched = client.call("capture", fetch);
    let packets = fetched["pkts"].as_array().unwrap();
    assert!(packets.iter().all(|packet| packet["binary"] == binary), "{fetched}");
    assert_eq!(packets.iter().filter(|packet| packet["origin"] == "TX").count(), 2);
    client.call("capture", json!({"command": "remove", "capture_id": capture}));
    assert_eq!(client.call("get_port_stats", json!({"port_id": 0}))["opackets"], 2);
}

#[test]
fn client_that_misbehaves_harms_no_other() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Stl);
    let mut good = fixture.client("STL");
    // Another protocol, an endless frame, a client that vanishes in the middle of a message.
    let mut web = TcpStream::connect(fixture.requests()).unwrap();
    web.write_all(&[b'G'; 64]).unwrap();
    let mut huge = TcpStream::connect(fixture.requests()).unwrap();
    let _client = Client::over(huge.try_clone().unwrap(), "REQ");
    let head = [&[2_u8][..], &u64::MAX.to_be_bytes()].concat();
    huge.write_all(&head).unwrap();
    assert_eq!(huge.read(&mut [0; 1]).unwrap(), 0, "the connection ends");
    let mut gone = Client::connect(fixture.requests(), "REQ");
    gone.send(1, b"");
    drop(gone);
    // Garbage has an answer, and the connection goes on.
    let garbage: Value = serde_json::from_slice(&good.exchange(b"{")).unwrap();
    assert_eq!(garbage["error"]["code"], -32700);
    assert_eq!(
        good.error("get_port_status", json!({"port_id": 9})),
        "invalid port id - should be: 0 1"
    );
    // A heartbeat of ZeroMQ.
    good.send(4, b"\x04PING\x00\x64abc");
    assert_eq!(good.receive(), (4, b"\x04PONGabc".to_vec()));
    good.call("ping", json!({}));
    // The events are triggers alone.
    let mut events = Client::connect(fixture.service.trex_addresses().unwrap()[1], "SUB");
    events.send(0, b"\x01");
    good.call("publish_now", json!({"key": 1, "baseline": false}));
    assert_eq!(events.receive(), (0, b"{}".to_vec()));
}

#[test]
fn stateful_server_answers_the_connect_sequence() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Astf);
    let mut client = fixture.client("ASTF");
    let desc = client.call("get_counter_desc", json!({"profile_id": "_"}));
    assert_eq!(desc["data"].as_array().unwrap().len(), 140);
    let values = client.call("get_total_counter_values", json!({"profile_id": "_"}));
    assert_eq!(values["client"]["0"], 0);
    let sync = client.call("sync", json!({"profile_id": "sync"}));
    assert_eq!(sync, json!({"epoch": 0, "state": 0, "state_profile": {"_": 0}}));
    let acquire = json!({"user": "ada", "session_id": 7, "force": true});
    let owner = client.call("acquire", acquire);
    let handler = &owner["handler"];
    assert_eq!(owner["ports"].as_object().unwrap().len(), 2);
    let fragment = json!({
        "handler": handler, "fragment": "{}", "frag_first": true, "frag_last": true,
    });
    client.call("profile_fragment", fragment);
    let start = json!({
        "handler": handler, "duration": 1, "mult": 1, "nc": true, "latency_pps": 0,
        "ipv6": false, "client_mask": u32::MAX,
    });
    client.events_until(7, 60);
    client.call("start", start);
    // An empty profile fails while it is parsed: back to loaded, with an error.
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline);
        let events = client.call("get_async_events", json!({"session_id": 7}));
        let events = events["data"].as_array().unwrap().clone();
        if let Some(event) = events.iter().find(|event| event["data"]["error"].is_string()) {
            assert_eq!(event["data"]["state"], 1);
            break;
        }
    }
    client.call("release", json!({"handler": handler}));
}

#[test]
fn address_that_others_reach_needs_their_networks() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let scratch = Scratch::new().unwrap();
    let trex = TrexOption { address: "0.0.0.0".parse().unwrap(), ..TrexOption::new(TrexMode::Stl) };
    let started = Service::start(options(&lab, &scratch), &[], Some(trex));
    assert!(matches!(started, Err(ServiceError::Trex(TrexError::NeedsClients(_)))));
}
