//! Captures of TRex's clients whose frames go to a ZeroMQ socket of the client.

use std::net::TcpListener;
use std::time::Instant;

use serde_json::{Value, json};
use wirestorm_control::wire::capture::Records;
use wirestorm_serve::TrexMode;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::require_root;

use crate::trex::{Client, PATIENCE, burst, start};

fn start_of(endpoint: &str, limit: u32) -> Value {
    json!({
        "command": "start", "limit": limit, "mode": "fixed", "tx": [0], "rx": [1],
        "filter": "udp", "endpoint": endpoint, "snaplen": 40,
    })
}

/// Sends a packet from port 0.
fn push(client: &mut Client) {
    let packet = json!({
        "binary": burst(1)["packet"]["binary"],
        "use_port_dst_mac": false, "use_port_src_mac": false,
    });
    client.call("push_pkts", json!({"port_id": 0, "pkts": [packet], "ipg_usec": 0}));
}

fn status(client: &mut Client) -> Value {
    client.call("capture", json!({"command": "status"}))[0].take()
}

fn wait_for(client: &mut Client, field: &str, value: u64) {
    let deadline = Instant::now() + PATIENCE;
    while status(client)[field] != value {
        assert!(Instant::now() < deadline, "{field} is not {value}: {}", status(client));
    }
}

/// Returns the captured and original length of each packet of a file.
fn lengths(file: &[u8]) -> Vec<(usize, u32)> {
    let records = Records::new(file).map(Result::unwrap);
    records.map(|(header, data)| (data.len(), header.original_length)).collect()
}

#[test]
fn frames_of_a_capture_go_to_a_socket_of_the_client() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Stl);
    let mut client = fixture.client("STL");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", socket.local_addr().unwrap());
    for (wrong, expected) in [
        ("file:///x.pcap", "this server writes no files"),
        ("udp://127.0.0.1:5", "expected tcp://HOST:PORT or ipc://PATH"),
        ("tcp://127.0.0.1:5?erf", "expected pcap or pcapng"),
        ("ipc:///nowhere/socket", "ipc socket '/nowhere/socket' does not exist"),
    ] {
        let found = client.error("capture", start_of(wrong, 0));
        assert!(found.contains(expected), "{found}");
    }

    for (option, format, header_bytes) in [("", "pcap", 24), ("?pcapng", "pcapng", 0)] {
        let started = client.call("capture", start_of(&format!("{endpoint}{option}"), 3));
        // Frames from before the connection wait.
        push(&mut client);
        wait_for(&mut client, "count", 2);
        let mut pair = Client::over(socket.accept().unwrap().0, "PAIR");
        let (flags, mut file) = pair.receive();
        assert_eq!(flags, 0);
        assert!(file.len() == header_bytes || format == "pcapng");
        assert_eq!(lengths(&file), [], "the first message is the header alone");
        file.extend(pair.receive().1);
        assert_eq!(lengths(&file), [(40, 63); 2], "sent by port 0, received by port 1");
        assert_eq!(status(&mut client)["fetched"], 2);

        // The third frame reaches the limit; the client gets it before the capture has stopped.
        push(&mut client);
        wait_for(&mut client, "matched", 4);
        let number = json!({"command": "stop", "capture_id": started["capture_id"]});
        let stopped = client.call("capture", number);
        assert_eq!(stopped, json!({"pkt_count": 0, "endpoint": endpoint}));
        file.extend(pair.receive().1);
        assert_eq!(lengths(&file), [(40, 63); 3]);
        let found = status(&mut client);
        let fields = ["state", "count", "bytes", "limit", "snaplen", "format", "endpoint"];
        let expected = json!(["STOPPED", 3, 189, 3, 40, format, endpoint]);
        assert_eq!(json!(fields.map(|name| &found[name])), expected);
        let remove = json!({"command": "remove", "capture_id": started["capture_id"]});
        client.call("capture", remove);
    }
    assert!(fixture.service.stop().is_empty());
}
