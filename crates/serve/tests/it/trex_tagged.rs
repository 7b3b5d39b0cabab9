//! Tagged packet groups of TRex's clients.

use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wirestorm_serve::TrexMode;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::require_root;

use crate::trex::{Client, Fixture, PATIENCE, burst, start};

/// Length of a frame of [`tagged`] with FCS and without tags.
const LENGTH: u64 = 14 + 20 + 8 + 40 + 4;
/// Frames of a burst.
const BURST: u64 = 100;

fn dot1q(vlan: u16) -> Value {
    json!({"type": "Dot1Q", "value": {"vlan": vlan}})
}

fn qinq(outer: u16, inner: u16) -> Value {
    json!({"type": "QinQ", "value": {"vlans": [outer, inner]}})
}

fn with_id(mut tag: Value, number: u16) -> Value {
    tag["tag_id"] = number.into();
    tag
}

/// A stream of a group, with these VLAN tags.
fn tagged(group: u32, vlans: &[u16]) -> Value {
    let mut frame = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2];
    for vlan in vlans {
        frame.extend([0x81, 0]);
        frame.extend(vlan.to_be_bytes());
    }
    frame.extend([8, 0, 0x45, 0, 0, 68, 0, 1, 0, 0, 64, 17, 0x3a, 0xa7]);
    frame.extend([16, 0, 0, 1, 48, 0, 0, 1, 4, 1, 0, 12, 0, 48, 0, 0]);
    frame.extend([0; 40]);
    let mut stream = burst(0);
    stream["packet"]["binary"] = STANDARD.encode(frame).into();
    stream["flow_stats"] = json!({"enabled": true, "stream_id": group, "rule_type": "tpg"});
    stream
}

fn continuous(mut stream: Value) -> Value {
    let rate = json!({"type": "pps", "value": 2000});
    stream["mode"] = json!({"type": "continuous", "rate": rate});
    stream
}

/// A client with both ports.
struct Ports {
    client: Client,
    handlers: [Value; 2],
}

impl Ports {
    fn acquire(fixture: &Fixture) -> Self {
        let mut client = fixture.client("STL");
        let handlers = [0, 1].map(|port| {
            let acquire = json!({"port_id": port, "user": "ada", "session_id": 7, "force": false});
            client.call("acquire", acquire)
        });
        Self { client, handlers }
    }

    fn owned(&self, mut parameters: Value) -> Value {
        parameters["port_id"] = 0.into();
        parameters["handler"] = self.handlers[0].clone();
        parameters
    }

    /// Enables groups at port 1, in the steps of TRex's client.
    fn enable(&mut self, count: u32, tags: &[Value]) {
        let prepare = json!({
            "username": "ada", "session_id": 7, "ports": [0, 1], "rx_ports": [1],
            "num_tpgids": count, "tags": tags,
        });
        let user = || json!({"username": "ada"});
        assert_eq!(self.client.call("get_tpg_state", user()), 0);
        self.client.call("enable_tpg", prepare.clone());
        assert_eq!(self.client.call("get_tpg_state", user()), 2);
        self.client.call("enable_tpg", user());
        assert_eq!(self.client.call("get_tpg_state", user()), 3);
        let again = self.client.error("enable_tpg", prepare);
        assert!(again.contains("already enabled"), "{again}");
    }

    fn disable(&mut self) {
        let user = || json!({"username": "ada"});
        self.client.call("disable_tpg", user());
        assert_eq!(self.client.call("get_tpg_state", user()), 5);
        self.client.call("disable_tpg", user());
        assert_eq!(self.client.call("get_tpg_state", user()), 0);
    }

    fn add(&mut self, streams: &[Value]) {
        let remove = self.owned(json!({}));
        self.client.call("remove_all_streams", remove);
        for (id, stream) in (1..).zip(streams) {
            let add = self.owned(json!({"stream_id": id, "stream": stream}));
            self.client.call("add_stream", add);
        }
    }

    fn start(&mut self) {
        let mul = json!({"type": "raw", "value": 1.0, "op": "abs"});
        let start = json!({"mul": mul, "duration": -1, "core_mask": u64::MAX, "force": true});
        let start = self.owned(start);
        self.client.call("start_traffic", start);
    }

    /// Sends bursts until their end.
    fn send(&mut self, streams: &[Value]) {
        self.add(streams);
        self.start();
        self.client.events_until(7, 4);
    }

    /// Returns the received counters of a group: those of a range of tags, and the others.
    fn stats(&mut self, group: u32, tags: std::ops::Range<u16>) -> Value {
        let request = json!({
            "port_id": 1, "tpgid": group, "min_tag": tags.start, "max_tag": tags.end,
            "unknown_tag": true, "untagged": true,
        });
        self.client.call("get_tpg_stats", request)["1"][group.to_string()].take()
    }

    fn packets(&mut self, group: u32, tag: u16) -> u64 {
        self.stats(group, tag..tag + 1)[tag.to_string()]["pkts"].as_u64().unwrap()
    }

    fn sent(&mut self, group: u32) -> Value {
        let request = json!({"port_id": 0, "tpgid": group});
        self.client.call("get_tpg_tx_stats", request)["0"][group.to_string()].take()
    }

    fn unknown(&mut self) -> Value {
        self.client.call("get_tpg_unknown_tags", json!({"port_id": 1}))["1"].take()
    }
}

fn counted(packets: u64, tags: u64, lost: [u64; 2]) -> Value {
    json!({
        "pkts": packets, "bytes": packets * (LENGTH + 4 * tags), "seq_err": lost[0],
        "seq_err_too_big": lost[1], "seq_err_too_small": 0, "dup": 0, "ooo": 0,
    })
}

#[test]
fn received_frames_count_by_tag() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Stl);
    let mut ports = Ports::acquire(&fixture);
    let add = ports.owned(json!({"stream_id": 1, "stream": tagged(0, &[1])}));
    let early = ports.client.error("add_stream", add);
    assert_eq!(early, "Trying to add a TPG stream but TPG isn't enabled in this port.");
    let system = ports.client.call("get_system_info", json!({}));
    assert_eq!(system["ports"][0]["rx"]["caps"][3], "tpg");

    let tags = [qinq(1, 100), dot1q(1), dot1q(2), dot1q(3)];
    ports.enable(5, &tags);
    let status = json!({
        "enabled": true,
        "data": {
            "acquired_ports": [0, 1], "rx_ports": [1], "username": "ada", "num_tpgids": 5,
            "num_tags": 4,
        },
    });
    for whose in [json!({"username": "ada"}), json!({"port_id": 0})] {
        assert_eq!(ports.client.call("get_tpg_status", whose.clone()), status);
        let range = |mut whose: Value| {
            (whose["min_tag"], whose["max_tag"]) = (1.into(), 4.into());
            whose
        };
        assert_eq!(ports.client.call("get_tpg_tags", range(whose)), json!(&tags[1..]));
    }

    // Two numbered tags, none, and one without a number.
    let streams = [tagged(0, &[1, 100]), tagged(2, &[2]), tagged(3, &[]), tagged(4, &[9])];
    ports.send(&streams);
    let (none, one) = (counted(0, 0, [0; 2]), counted(BURST, 1, [0; 2]));
    let no_tag = json!({"pkts": 0, "bytes": 0});
    let first = ports.stats(0, 0..4);
    let two = counted(BURST, 2, [0; 2]);
    assert_eq!(first, json!({"0": two, "untagged": none, "unknown_tag": no_tag}));
    assert_eq!(ports.stats(0, 1..4)["1-3"], none);
    assert_eq!(ports.stats(2, 2..4)["2"], one);
    let untagged = counted(BURST, 0, [0; 2]);
    let plain = json!({"0-3": none, "untagged": untagged, "unknown_tag": no_tag});
    assert_eq!(ports.stats(3, 0..4), plain);
    let of_unknown = json!({"pkts": BURST, "bytes": BURST * (LENGTH + 4)});
    assert_eq!(ports.stats(4, 0..0), json!({"untagged": none, "unknown_tag": of_unknown}));
    assert_eq!(ports.unknown(), json!([{"tag": dot1q(9), "tpgid": 4}]));
    assert_eq!(ports.sent(2), of_unknown);

    // Numbers go on over runs: a repeated burst is no gap, and one under another tag is.
    ports.send(&[tagged(2, &[2])]);
    ports.send(&[tagged(2, &[3])]);
    assert_eq!(ports.stats(2, 2..3)["2"], counted(2 * BURST, 1, [0; 2]));
    assert_eq!(ports.stats(2, 3..4)["3"], counted(BURST, 1, [2 * BURST, 1]));

    let clear = json!({"port_id": 1, "tpgid": 2, "tag_list": [2, 3], "untagged": true});
    ports.client.call("clear_tpg_stats", clear);
    assert_eq!(ports.stats(2, 0..4)["0-3"], none);
    ports.client.call("clear_tpg_tx_stats", json!({"port_id": 0, "tpgid": 2}));
    assert_eq!(ports.sent(2), no_tag);
    ports.client.call("clear_tpg_unknown_tags", json!({"port_id": 1}));
    assert_eq!(ports.unknown(), json!([]));
    ports.send(&[tagged(2, &[2])]);
    assert_eq!(ports.stats(2, 2..3)["2"], counted(BURST, 1, [3 * BURST, 1]));
    assert_eq!(ports.sent(2)["pkts"], BURST);

    let release = ports.owned(json!({}));
    let kept = ports.client.error("release", release.clone());
    assert_eq!(kept, "Please disable TPG in port 0 before releasing.");
    ports.disable();
    let stats = json!({"port_id": 1, "tpgid": 0, "min_tag": 0, "max_tag": 1});
    let disabled = ports.client.error("get_tpg_stats", stats);
    assert_eq!(disabled, "Tagged Packet Group is not enabled on this port.");
    ports.client.call("release", release);
    assert!(fixture.service.stop().is_empty());
}

#[test]
fn tags_change_while_traffic_runs() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Stl);
    let mut ports = Ports::acquire(&fixture);
    ports.enable(1, &[dot1q(7), dot1q(8)]);
    ports.add(&[continuous(tagged(0, &[7]))]);
    ports.start();
    let wait = |ports: &mut Ports, tag: u16, least: u64| {
        let deadline = Instant::now() + PATIENCE;
        while ports.packets(0, tag) < least {
            assert!(Instant::now() < deadline, "tag {tag} does not count");
        }
    };
    wait(&mut ports, 0, 100);
    assert_eq!(ports.stats(0, 0..1)["0"]["seq_err"], 0);

    // VLAN 7 gets another number, where frame 0 is expected.
    let update = |ports: &mut Ports, changes: Value| {
        ports.client.call("update_tpg_tags", json!({"username": "ada", "tags": changes}));
    };
    update(&mut ports, json!([{"type": null, "tag_id": 0}, with_id(dot1q(7), 1)]));
    let before = ports.packets(0, 0);
    wait(&mut ports, 1, 100);
    assert_eq!(ports.packets(0, 0), before, "earlier frames stay with their tag");
    let moved = ports.stats(0, 1..2)["1"].take();
    assert_eq!([&moved["seq_err"], &moved["seq_err_too_big"]], [&json!(before), &json!(1)]);

    let clear = json!({
        "username": "ada", "port_id": 1, "min_tpgid": 0, "max_tpgid": 1, "tag_list": [0],
    });
    ports.client.call("clear_updated", clear);
    assert_eq!(ports.packets(0, 0), 0);
    // Without a number, the tag is unknown.
    update(&mut ports, json!([{"tag_id": 1}]));
    let known = ports.packets(0, 1);
    let deadline = Instant::now() + PATIENCE;
    while ports.stats(0, 0..0)["unknown_tag"]["pkts"] == 0 {
        assert!(Instant::now() < deadline, "the removed tag does not count as unknown");
    }
    let stop = ports.owned(json!({}));
    ports.client.call("stop_traffic", stop);
    // The last frames are on their way when sending stops.
    let sent = ports.sent(0)["pkts"].as_u64().unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let unknown = ports.stats(0, 0..0)["unknown_tag"]["pkts"].as_u64().unwrap();
        if before + known + unknown == sent {
            break;
        }
        assert!(Instant::now() < deadline, "{before} + {known} + {unknown} of {sent} frames count");
    }
    assert_eq!(ports.unknown(), json!([{"tag": dot1q(7), "tpgid": 0}]));

    // Frames from before groups are enabled do not count.
    ports.start();
    ports.disable();
    ports.enable(1, &[dot1q(7)]);
    wait(&mut ports, 0, 10);
    assert_eq!(ports.stats(0, 0..1)["0"]["seq_err"], 0);
    let stop = ports.owned(json!({}));
    ports.client.call("stop_traffic", stop);
    ports.disable();
    assert!(fixture.service.stop().is_empty());
}

#[test]
fn wrong_requests_have_the_errors_of_trex() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Stl);
    let mut ports = Ports::acquire(&fixture);
    let client = &mut ports.client;
    assert!(client.error("disable_tpg", json!({"username": "ada"})).contains("is not enabled"));
    let prepare = |ports: Value, tags: Value| {
        json!({
            "username": "ada", "session_id": 7, "ports": ports, "rx_ports": [1], "num_tpgids": 2,
            "tags": tags,
        })
    };
    let foreign = client.error("enable_tpg", prepare(json!([0]), json!([])));
    assert_eq!(foreign, "Rx Ports must be acquired!");
    let twice = client.error("enable_tpg", prepare(json!([0, 1]), json!([dot1q(5), dot1q(5)])));
    assert_eq!(twice, "Vlan 5 already exists or is invalid!");
    let mut other = fixture.client("STL");
    let mut of_other = prepare(json!([0, 1]), json!([]));
    of_other["username"] = "bob".into();
    assert!(other.error("enable_tpg", of_other).contains("Port 0 is not owned by you"));

    ports.enable(2, &[dot1q(5)]);
    ports.add(&[tagged(0, &[5])]);
    for (group, expected) in
        [(0, "already in use"), (2, "maximal tpgid allowed for this port is 1")]
    {
        let add = ports.owned(json!({"stream_id": 9, "stream": tagged(group, &[5])}));
        let found = ports.client.error("add_stream", add);
        assert!(found.contains(expected), "{found}");
    }
    let stats = |port: u8, group: u32, first: u16, last: u16| json!({"port_id": port, "tpgid": group, "min_tag": first, "max_tag": last});
    for (request, expected) in [
        (stats(0, 0, 0, 1), "Port 0 is not a valid port for TPG stats."),
        (stats(1, 2, 0, 1), "tpgid 2 is bigger than the max allowed tpgid."),
        (stats(1, 0, 0, 2), "Max Tag 2 is larger than number of tags 1"),
        (
            stats(1, 0, 1, 1),
            "Min Tag can equal Max Tag iff unknown tag or untagged flags provided.",
        ),
    ] {
        assert_eq!(ports.client.error("get_tpg_stats", request), expected);
    }
    let both = json!({"username": "ada", "port_id": 0});
    assert!(ports.client.error("get_tpg_status", both).contains("only one between"));

    // A client that takes a port by force ends the groups of its owner.
    let take = json!({"port_id": 1, "user": "bob", "session_id": 8, "force": true});
    other.call("acquire", take);
    assert_eq!(other.call("get_tpg_status", json!({"port_id": 0}))["enabled"], false);
    assert!(fixture.service.stop().is_empty());
}
