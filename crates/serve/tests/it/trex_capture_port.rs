//! Capture ports of TRex's clients: a PAIR socket of the client, to which the server connects.

use std::net::TcpListener;
use std::time::Instant;

use serde_json::json;
use wirestorm_serve::TrexMode;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::require_root;

use crate::trex::{Client, PATIENCE, burst, start};

/// A UDP frame of 60 bytes, as the packet of `burst`.
fn frame() -> Vec<u8> {
    let mut frame = [&[0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 8, 0][..], &[0; 46]].concat();
    let ipv4 = [0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 16, 0, 0, 1, 48, 0, 0, 1];
    frame[14..34].copy_from_slice(&ipv4);
    frame
}

#[test]
fn frames_go_to_a_socket_of_the_client_and_come_from_it() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Stl);
    let mut client = fixture.client("STL");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", socket.local_addr().unwrap());
    let filtered = |endpoint: &str, filter: &str| json!({"port_id": 1, "endpoint": endpoint, "bpf_filter": filter});
    let unusable = client.error("start_capture_port", filtered("udp://127.0.0.1:5", ""));
    assert!(unusable.contains("expected tcp://HOST:PORT or ipc://PATH"), "{unusable}");
    let wrong = client.error("start_capture_port", filtered(&endpoint, "no filter"));
    assert_eq!(wrong, "BPF filter: 'no filter' is not a valid pattern");
    client.call("start_capture_port", filtered(&endpoint, "tcp"));
    let twice = client.error("start_capture_port", filtered(&endpoint, ""));
    assert!(twice.contains("Capture port is already active"), "{twice}");
    let status = client.call("get_port_status", json!({"port_id": 1}));
    assert_eq!(status["rx_info"]["capture_port"]["bpf_filter"], "tcp");
    let mut pair = Client::over(socket.accept().unwrap().0, "PAIR");

    // Received frames that match the filter, without those from before its change.
    let packet = json!({
        "binary": burst(1)["packet"]["binary"],
        "use_port_dst_mac": false, "use_port_src_mac": false,
    });
    let push = json!({"port_id": 0, "pkts": [packet], "ipg_usec": 0});
    client.call("push_pkts", push.clone());
    client.call("set_capture_port_bpf", json!({"port_id": 1, "bpf_filter": "udp"}));
    pair.send(4, b"\x04PING\x00\x64x");
    assert_eq!(pair.receive(), (4, b"\x04PONGx".to_vec()));
    client.call("push_pkts", push);
    let (flags, received) = pair.receive();
    assert_eq!((flags, &received[..14]), (0, &frame()[..14]));

    // Frames of the client leave the port.
    let capture = json!({
        "command": "start", "limit": 100, "mode": "fixed", "tx": [], "rx": [0], "filter": "udp",
    });
    client.call("capture", capture);
    pair.send(0, b"too short");
    pair.send(0, &frame());
    let deadline = Instant::now() + PATIENCE;
    while client.call("capture", json!({"command": "status"}))[0]["count"] != 1 {
        assert!(Instant::now() < deadline, "the frame does not arrive");
    }
    // A connection that ends is opened again.
    drop(pair);
    let mut again = Client::over(socket.accept().unwrap().0, "PAIR");
    again.send(0, &frame());
    while client.call("capture", json!({"command": "status"}))[0]["count"] != 2 {
        assert!(Instant::now() < deadline, "the frame does not arrive after a new connection");
    }
    client.call("stop_capture_port", json!({"port_id": 1}));
    client.call("stop_capture_port", json!({"port_id": 1}));
    let status = client.call("get_port_status", json!({"port_id": 1}));
    assert_eq!(status["rx_info"]["capture_port"], json!({"is_active": false}));
    assert!(fixture.service.stop().is_empty());
}
