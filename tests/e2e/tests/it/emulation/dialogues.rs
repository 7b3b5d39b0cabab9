//! Dialogues from captures and presets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use wirestorm_e2e::{Outcome, can_run};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{CaptureOptions, Lab};
use wirestorm_testkit::pcap::{Resolution, Writer};
use wirestorm_testkit::tshark;

use super::{both_ports, curl, emulate, host, plan, serve, stop};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// Runs a plan between both ports of a lab; returns a capture of both ends.
pub(crate) fn captured(lab: &Lab, scratch: &Scratch, text: &str) -> (Outcome, PathBuf) {
    let options = CaptureOptions { filter: "tcp or udp".into(), ..CaptureOptions::default() };
    let captures = [&lab.a, &lab.b].map(|end| end.capture_with(&options).unwrap());
    // Frames of this backend pass through the kernel, where tcpdump sees them.
    let mut command = emulate(&plan(scratch, text));
    let outcome = both_ports(command.args(["--backend", "af_packet"]), lab).expect(0);
    let mut packets = Vec::new();
    for (capture, from) in captures.into_iter().zip([1, 0]) {
        let sent = outcome.number(&format!("/ports/{from}/tx/packets"));
        packets.extend(capture.finish(sent).unwrap().packets);
    }
    packets.sort_by_key(|packet| packet.time);
    let path = scratch.file("run.pcap");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = Writer::new(file, Resolution::Nanoseconds).unwrap();
    packets.iter().for_each(|packet| writer.write(packet.time, &packet.frame).unwrap());
    (outcome, path)
}

/// Data of both sides of a stream in hexadecimal digits, each byte once.
fn stream_bytes(capture: &Path, stream: usize) -> String {
    let output = Command::new("tshark")
        .args(["-n", "-q", "-z", &format!("follow,tcp,raw,{stream}"), "-r"])
        .arg(capture)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let digits = |line: &&str| line.trim().bytes().all(|byte| byte.is_ascii_hexdigit());
    // Segment boundaries may differ.
    let mut received = String::new();
    let mut last = None;
    for line in text.lines().filter(digits) {
        if last.replace(line.starts_with('\t')) != Some(line.starts_with('\t')) {
            received.push('\n');
        }
        received.push_str(line.trim());
    }
    received
}

/// For each stream of a capture: server port, duration in seconds, and port of the side that closed
/// first.
fn streams(capture: &Path) -> Vec<(u16, f64, u16)> {
    let names =
        ["tcp.stream", "tcp.srcport", "tcp.dstport", "frame.time_relative", "tcp.flags.fin"];
    let mut streams = BTreeMap::new();
    for row in tshark::fields(capture, "tcp", &names).unwrap() {
        let stream: usize = row[0].parse().unwrap();
        let ports: [u16; 2] = [&row[1], &row[2]].map(|port| port.parse().unwrap());
        let time: f64 = row[3].parse().unwrap();
        let (_, begin, end, closer) = streams.entry(stream).or_insert((ports[1], time, time, 0));
        *end = time;
        if row[4] == "True" || row[4] == "1" {
            *closer = if *closer == 0 { ports[0] } else { *closer };
        }
        assert!(*begin <= time);
    }
    streams.into_values().map(|(port, begin, end, closer)| (port, end - begin, closer)).collect()
}

#[test]
fn dialogues_of_a_capture_are_replayed() {
    if !can_run(&["tshark"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let original = Path::new(EXAMPLES).join("web-and-mail.pcap");
    let example = Path::new(EXAMPLES).join("conversation.yaml");
    let text = std::fs::read_to_string(example).unwrap();
    let text = text.replace("load: {rate: 50}", "load: {rate: 50}\n      limit: 6");
    for timing in ["keep", "drop"] {
        let text = text.replace("web-and-mail.pcap", original.to_str().unwrap());
        let text = text.replace("timing: keep", &format!("timing: {timing}"));
        let (outcome, capture) = captured(&lab, &scratch, &text);
        for port in [0, 1] {
            assert_eq!(
                outcome.number(&format!("/ports/{port}/connections/flows/closed")),
                6,
                "{outcome}"
            );
        }
        let streams = streams(&capture);
        let ports: Vec<_> = streams.iter().map(|stream| stream.0).collect();
        assert_eq!(ports.iter().filter(|port| **port == 110).count(), 3, "{ports:?}");
        for (stream, (port, seconds, closer)) in streams.iter().enumerate() {
            // In the capture the page is the first stream, and the mail the second one.
            let expected = stream_bytes(&original, usize::from(*port == 110));
            assert!(expected.lines().count() > 2, "{expected}");
            assert_eq!(stream_bytes(&capture, stream), expected, "port {port}");
            // The client closes the page's connection, the server that of the mail.
            assert_eq!(*closer == 110, *port == 110, "port {port}");
            let least = if *port == 110 { 0.110 } else { 0.025 };
            assert!(timing == "drop" || *seconds > least, "port {port}: {seconds} s");
        }
    }
}

/// A TRex profile that plays the same capture.
const CAPTURES: &str = "
- duration : 0.9
  generator :
          distribution : \"seq\"
          clients_start : \"16.0.0.1\"
          clients_end   : \"16.0.0.4\"
          servers_start : \"48.0.0.1\"
          servers_end   : \"48.0.0.9\"
  vlan : { enable : 1, vlan0 : 100, vlan1 : 200 }
  cap_ipg : true
  cap_info :
     - name: cap2/both.pcap
       cps : 4.0
       w   : 1
       plugin_id : 1
";

#[test]
fn profile_plays_its_captures_for_its_duration() {
    if !can_run(&["tshark"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let original = Path::new(EXAMPLES).join("web-and-mail.pcap");
    std::fs::create_dir(scratch.file("cap2")).unwrap();
    std::fs::copy(&original, scratch.file("cap2/both.pcap")).unwrap();
    let (outcome, capture) = captured(&lab, &scratch, CAPTURES);
    for port in [0, 1] {
        assert_eq!(
            outcome.number(&format!("/ports/{port}/connections/flows/closed")),
            8,
            "{outcome}"
        );
    }
    let streams = streams(&capture);
    assert_eq!(streams.iter().filter(|stream| stream.0 == 110).count(), 4, "{streams:?}");
    for (stream, (port, seconds, _)) in streams.iter().enumerate() {
        let expected = stream_bytes(&original, usize::from(*port == 110));
        assert_eq!(stream_bytes(&capture, stream), expected, "port {port}");
        assert!(*seconds > if *port == 110 { 0.110 } else { 0.025 }, "port {port}: {seconds} s");
    }
    // Both directions of a connection are in the VLAN of its client.
    let names = ["ip.src", "ip.dst", "vlan.id"];
    for row in tshark::fields(&capture, "tcp", &names).unwrap() {
        let client = if row[0].starts_with("16.") { &row[0] } else { &row[1] };
        let is_odd = client.ends_with('1') || client.ends_with('3');
        assert_eq!(row[2], if is_odd { "200" } else { "100" }, "{row:?}");
    }
}

#[test]
fn profile_simulation_accepts_options_of_the_trex_simulator() {
    if !can_run(&["tshark"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    std::fs::copy(Path::new(EXAMPLES).join("web-and-mail.pcap"), scratch.file("both.pcap"))
        .unwrap();
    let profile = scratch.file("profile.yaml");
    std::fs::write(&profile, CAPTURES.replace("cap2/", "")).unwrap();
    let sim = |words: &[&str], output: &str| {
        let mut command = Command::new(wirestorm_e2e::wirestorm());
        command.arg("sim").arg(&profile).args(words).arg(scratch.file(output));
        let outcome = wirestorm_e2e::run_command(&mut command).expect(0);
        let (name, _) = output.split_once('.').unwrap();
        for port in ["clients", "servers"] {
            let file = scratch.file(&format!("{name}.{port}.pcap"));
            assert!(file.is_file() && outcome.messages.contains(&*file.to_string_lossy()));
        }
        scratch.file(&format!("{name}.clients.pcap"))
    };
    // One of each, all within 0.9 s at 4 a second, and within 2 s.
    for (words, output, flows) in [
        (["--pcap", "-o"].as_slice(), "one.pcap", 2),
        (&["--full", "--pcap", "-o"], "all.pcap", 8),
        (&["--full", "-d", "2", "-m", "0.5", "--pcap"], "two.pcap", 8),
    ] {
        assert_eq!(streams(&sim(words, output)).len(), flows, "{words:?}");
    }
}

#[test]
fn half_closed_side_still_receives() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let text = r#"
ports:
  - {name: clients, addresses: 10.0.0.1/16}
  - {name: servers, addresses: 10.0.1.1/16}
templates:
  - name: half
    client: {tx: clients, servers: 10.0.1.1, load: {concurrent: 5}, limit: 20, program: [{send: all}]}
    server:
      tx: servers
      port: 80
      program: [{receive: 3}, wait_for_close, {send: {size: 5000}}]
"#;
    let outcome = both_ports(&mut emulate(&plan(&scratch, text)), &lab).expect(0);
    assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 20, "{outcome}");
    assert_eq!(outcome.number("/ports/0/connections/tcp/rcvbyte"), 20 * 5_000, "{outcome}");
}

#[test]
fn truncated_capture_is_an_error_with_a_location() {
    let scratch = Scratch::new().unwrap();
    let mut capture = std::fs::read(Path::new(EXAMPLES).join("web-and-mail.pcap")).unwrap();
    // Truncated in the middle of a packet.
    capture.truncate(3_000);
    std::fs::write(scratch.file("cut.pcap"), capture).unwrap();
    let text =
        "ports: [{name: s}]\ntemplates: [{name: t, conversation: cut.pcap, server: {tx: s}}]";
    let outcome = wirestorm_e2e::run_command(&mut emulate(&plan(&scratch, text))).expect(2);
    let messages = outcome.messages.clone();
    assert!(messages.contains("plan.yaml: templates[0].conversation: "), "{messages}");
    assert!(messages.contains("cut.pcap: packet 9 "), "{messages}");
}

/// All protocol presets between our clients and servers.
const PROTOCOLS: &str = r#"
ports:
  - {name: clients, addresses: 10.0.0.1/16}
  - {name: servers, addresses: 10.0.1.1/16}
templates:
  - name: pages
    http: {requests: 4, pipeline: 2, headers: {Accept-Language: en}, response: {body: 20000, delay: 1ms}}
    client: &clients {tx: clients, servers: 10.0.1.1, load: {concurrent: 2}, limit: 3}
    server: &servers {tx: servers}
  - name: chunks
    http: {method: POST, body: {text: "a=", size: 3000, fill: b}, response: {body: {text: "<p>", size: 5000, fill: "x"}, chunk: 1000}}
    client: *clients
    server: {tx: servers, port: 8080}
  - {name: mail, smtp: {messages: 2, message: 3000}, client: *clients, server: *servers}
  - {name: files, ftp: {files: [a, b]}, client: *clients, server: *servers}
  - {name: media, rtsp: {packets: 5}, client: *clients, server: *servers}
  - {name: calls, sip: {ring_time: 5ms, packets: 7, media_port: 6000}, client: *clients, server: *servers}
  - {name: voice, rtp: {packets: 5}, client: *clients, server: *servers}
  - {name: names, dns: {type: AAAA, answers: 3, queries: 2}, client: *clients, server: *servers}
"#;

#[test]
fn tshark_recognizes_all_presets() {
    if !can_run(&["tshark"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let (outcome, capture) = captured(&lab, &scratch, PROTOCOLS);
    assert_eq!(outcome.number("/ports/0/connections/flows/failed"), 0, "{outcome}");
    let count = |filter: &str| tshark::count(&capture, filter).unwrap();
    assert_eq!(count("_ws.malformed || _ws.expert.severity == error"), 0);
    for (filter, expected) in [
        ("http.request.method == GET && http.accept_language == \"en\"", 3 * 2),
        ("http.request.method == POST && http.content_length == 3000", 3),
        ("http.transfer_encoding == chunked && http.file_data", 3),
        ("smtp.req.command == DATA", 3 * 2),
        ("imf.subject", 3 * 2),
        ("smtp.response.code == 221", 3),
        ("ftp.request.command == SIZE", 3 * 2),
        ("ftp.response.code == 221", 3),
        ("rtsp.method == PLAY", 3),
        ("sip.Method == INVITE && sdp", 3),
        ("sip.Status-Code == 200 && sip.CSeq.method == BYE", 3),
        ("dns.flags.response == 1 && dns.count.answers == 3 && dns.aaaa", 3 * 2),
        // Media streams announced by calls.
        ("rtp && (udp.dstport == 6000 || udp.srcport == 6000)", 3 * 2 * 7),
        ("udp.dstport == 5004", 3 * 5),
    ] {
        assert_eq!(count(filter), expected, "{filter}");
    }
}

#[test]
fn curl_uses_server_presets() {
    if !can_run(&["curl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let text = r#"
ports: [{name: servers, addresses: 198.51.100.77/24}]
templates:
  - name: kept
    http: {requests: 9, response: {body: {size: 20000, fill: wire}}}
    server: {tx: servers}
  - name: chunks
    http: {response: {status: 404, body: {size: 5000, fill: storm}, chunk: 777}}
    server: {tx: servers, port: 8080}
  - name: mail
    smtp: {}
    server: {tx: servers}
"#;
    let server = serve(&lab, &scratch, text);
    assert_eq!(curl(&lab.b, "198.51.100.77", 3), b"wire".repeat(3 * 5_000));
    assert_eq!(curl(&lab.b, "198.51.100.77:8080", 1), b"storm".repeat(1_000));
    // HTTP/1.0 clients do not support chunked encoding.
    let mut command = lab.b.command("curl");
    command.args(["--silent", "--include", "--max-time", "9", "--http1.0"]);
    let output = command.arg("http://198.51.100.77:8080").output().unwrap();
    let (head, body) = output.stdout.split_at(output.stdout.len() - 5_000);
    let head = String::from_utf8_lossy(head).to_lowercase();
    assert_eq!(body, b"storm".repeat(1_000));
    assert!(head.contains("\r\ncontent-length: 5000\r\n"), "{head}");
    assert!(!head.contains("transfer-encoding") && head.contains("connection: close"), "{head}");
    let message = scratch.file("message");
    std::fs::write(&message, "Subject: Hello\r\n\r\nHello\r\n").unwrap();
    let mut command = lab.b.command("curl");
    command.args(["--silent", "--show-error", "--max-time", "9", "--url", "smtp://198.51.100.77"]);
    command.args(["--mail-from", "a@example.net", "--mail-rcpt", "b@example.net", "--upload-file"]);
    let output = command.arg(&message).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome = stop(server);
    assert_eq!(outcome.number("/ports/0/connections/tcp/accepts"), 4, "{outcome}");
    assert_eq!(outcome.number("/ports/0/connections/flows/failed"), 0, "{outcome}");
}
