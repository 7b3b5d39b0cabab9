//! SIP calls with RTP media, with SIPp at the other end.

use std::process::Stdio;
use std::time::{Duration, Instant};

use wirestorm_e2e::{can_run, run_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

use super::{KilledOnDrop, emulate, host, plan, serve, stop};

#[test]
fn sipp_answers_calls_of_emulated_clients_and_echoes_their_media() {
    if !can_run(&["sipp", "ss"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let mut command = lab.b.command("sipp");
    command.args(["-sn", "uas", "-i", "198.51.100.2", "-p", "5060", "-mp", "6000", "-rtp_echo"]);
    command.arg("-nostdin").current_dir(scratch.path()).stdout(Stdio::null());
    let _server = KilledOnDrop(command.spawn().unwrap());
    let exists = || {
        let mut sockets = lab.b.command("ss");
        let output = sockets.args(["-uHln", "sport = :5060 or sport = :6000"]).output().unwrap();
        output.stdout.iter().filter(|byte| **byte == b'\n').count() == 2
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while !exists() {
        assert!(Instant::now() < deadline, "SIPp is not there");
        std::thread::sleep(Duration::from_millis(10));
    }
    let text = r#"
ports: [{name: clients, addresses: 198.51.100.77/24}]
templates:
  - name: calls
    sip: {packets: 25}
    client: {tx: clients, servers: 198.51.100.2, load: {concurrent: 2}, limit: 6}
"#;
    let port = format!("clients={}", lab.a.port());
    let outcome = run_command(emulate(&plan(&scratch, text)).args(["--port", &port])).expect(0);
    let number = |pointer: &str| outcome.number(&format!("/ports/0/templates/{pointer}"));
    assert_eq!(outcome.number("/ports/0/connections/flows/failed"), 0, "{outcome}");
    assert_eq!((number("0/flows/closed"), number("1/flows/closed")), (6, 6), "{outcome}");
    // SIPp returns each packet.
    assert_eq!((number("1/udp/sndpkt"), number("1/udp/rcvpkt")), (6 * 25, 6 * 25), "{outcome}");
}

/// A call that plays a capture after it is answered.
const CALL: &str = r#"<?xml version="1.0"?>
<scenario name="call">
<send><![CDATA[
INVITE sip:[service]@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/UDP [local_ip]:[local_port];branch=[branch]
From: <sip:sipp@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:[service]@[remote_ip]:[remote_port]>
Call-ID: [call_id]
CSeq: 1 INVITE
Contact: <sip:sipp@[local_ip]:[local_port]>
Content-Type: application/sdp
Content-Length: [len]

v=0
o=- 1 1 IN IP4 [local_ip]
s=-
c=IN IP4 [media_ip]
t=0 0
m=audio [media_port] RTP/AVP 0
]]></send>
<recv response="100" optional="true"/>
<recv response="180" optional="true"/>
<recv response="200"/>
<send><![CDATA[
ACK sip:[service]@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/UDP [local_ip]:[local_port];branch=[branch]
From: <sip:sipp@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:[service]@[remote_ip]:[remote_port]>[peer_tag_param]
Call-ID: [call_id]
CSeq: 1 ACK
Content-Length: 0

]]></send>
<nop><action><exec play_pcap_audio="/usr/share/sip-tester/dtmf_2833_1.pcap"/></action></nop>
<pause milliseconds="2000"/>
<send><![CDATA[
BYE sip:[service]@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/UDP [local_ip]:[local_port];branch=[branch]
From: <sip:sipp@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:[service]@[remote_ip]:[remote_port]>[peer_tag_param]
Call-ID: [call_id]
CSeq: 2 BYE
Content-Length: 0

]]></send>
<recv response="200"/>
</scenario>
"#;

#[test]
fn sipp_calls_emulated_servers_and_plays_media() {
    if !can_run(&["sipp"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let text = r#"
ports: [{name: servers, addresses: 198.51.100.77/24}]
templates:
  - name: calls
    sip: {ring_time: 20ms, packets: 50}
    server: {tx: servers}
"#;
    let servers = serve(&lab, &scratch, text);
    std::fs::write(scratch.file("call.xml"), CALL).unwrap();
    let mut command = lab.b.command("sipp");
    command.args(["-sf", "call.xml", "-i", "198.51.100.2", "-mp", "6000", "-m", "1", "-nostdin"]);
    command.args(["-rtp_echo", "198.51.100.77"]).current_dir(scratch.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let outcome = stop(servers);
    let number = |pointer: &str| outcome.number(&format!("/ports/0/templates/{pointer}"));
    assert_eq!((number("0/flows/closed"), number("1/flows/closed")), (1, 1), "{outcome}");
    assert_eq!(number("1/udp/sndpkt"), 50, "{outcome}");
    // The media that it plays, and those that it echoes.
    assert!(number("1/udp/rcvpkt") > 50, "{outcome}");
}
