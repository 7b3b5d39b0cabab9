//! A port that acts as a host: `wirestorm ping` and `wirestorm capture`.

use std::process::Command;

use wirestorm_e2e::{Outcome, can_run, run_command, start_command, wirestorm};
use wirestorm_testkit::net::{Lab, LabOptions};
use wirestorm_testkit::{Scratch, tshark};

/// Addresses that the kernel at the sending end does not have.
const OWN: [&str; 4] = ["--address", "198.51.100.77/24", "--address", "2001:db8:77::77/64"];

/// A lab with a Linux host at the other end, with addresses in the same networks and one behind it.
fn lab() -> Lab {
    let options = LabOptions { ipv6: true, ..LabOptions::default() };
    let lab = Lab::with(&options).unwrap();
    let commands = [
        "addr add 198.51.100.2/24 dev veth1",
        "addr add 2001:db8:77::2/64 dev veth1 nodad",
        "link set lo up",
        "addr add 192.0.2.1/32 dev lo",
    ];
    lab.b.namespace().ip(&commands).unwrap();
    lab
}

fn ping(lab: &Lab, target: &str, more: &[&str]) -> Outcome {
    let mut command = Command::new(wirestorm());
    command.args(["ping", "--interface", &lab.a.port(), "--interval", "10ms", "--json"]);
    run_command(command.args(OWN).args(more).arg(target))
}

#[test]
fn linux_host_answers_pings() {
    if !can_run(&[]) {
        return;
    }
    let lab = lab();
    let gateway = ["--gateway", "198.51.100.2"];
    let mac = lab.b.mac().map(|byte| format!("{byte:02x}")).join(":");
    for (target, more) in
        [("198.51.100.2", &[][..]), ("2001:db8:77::2", &[]), ("192.0.2.1", &gateway)]
    {
        let outcome = ping(&lab, target, &[more, &["--count", "5", "--size", "100"]].concat());
        let outcome = outcome.expect(0);
        assert_eq!(outcome.number("/sent"), 5, "{outcome}");
        assert_eq!(outcome.number("/received"), 5, "{outcome}");
        assert_eq!(outcome.number("/duplicated"), 0, "{outcome}");
        assert_eq!(outcome.text("/next_hop"), mac);
        assert!(outcome.number("/min_ns") > 0);
    }
    // In fragments in both directions.
    for target in ["198.51.100.2", "2001:db8:77::2"] {
        let outcome = ping(&lab, target, &["--count", "3", "--size", "20000"]).expect(0);
        assert_eq!((outcome.number("/sent"), outcome.number("/received")), (3, 3), "{outcome}");
    }
}

#[test]
fn linux_host_resolves_and_pings_the_port() {
    if !can_run(&["ping"]) {
        return;
    }
    let lab = lab();
    let mut command = Command::new(wirestorm());
    command.args(["ping", "--interface", &lab.a.port(), "--interval", "50ms", "--count", "1000"]);
    let host = start_command(command.args(OWN).arg("198.51.100.2"));
    for address in ["198.51.100.77", "2001:db8:77::77"] {
        // The first request may come before the port is open.
        let arguments = ["-c", "3", "-i", "0.2", "-W", "5", address];
        let found = lab.b.command("ping").args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&found.stdout);
        assert!(found.status.success(), "{text}");
        assert!(text.contains("bytes from"), "{text}");
        let found = lab.b.command("ping").args(["-s", "20000"]).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&found.stdout);
        assert!(text.contains("20008 bytes from") && text.contains(" 0% packet loss"), "{text}");
    }
    host.signal(rustix::process::Signal::INT);
    host.wait().expect(0);
}

#[test]
fn unanswered_arp_and_missing_route_are_different_errors() {
    if !can_run(&[]) {
        return;
    }
    let lab = lab();
    ping(&lab, "198.51.100.9", &[])
        .expect_error(1, &["198.51.100.9 did not answer 3 ARP requests"]);
    ping(&lab, "192.0.2.1", &[]).expect_error(2, &["no route to 192.0.2.1", "198.51.100.77/24"]);
    let mut command = Command::new(wirestorm());
    command.args([
        "ping",
        "--interface",
        &lab.a.port(),
        "--address",
        "198.51.100.77/40",
        "192.0.2.1",
    ]);
    run_command(&mut command)
        .expect_error(2, &["--address \"198.51.100.77/40\": expected an address"]);
}

#[test]
fn capture_contains_only_frames_that_match_the_filter() {
    if !can_run(&["tcpdump", "tshark"]) {
        return;
    }
    let lab = lab();
    let scratch = Scratch::new().unwrap();
    let path = scratch.file("out.pcapng");
    let mut command = Command::new(wirestorm());
    command.args([
        "capture",
        &lab.b.port(),
        "udp dst port 7 or vlan 9",
        "--json",
        "--packets",
        "20",
    ]);
    let capture = start_command(command.arg("--write").arg(&path));
    // Frames sent before the socket is open are not captured, so keep sending until there are
    // enough.
    let send = |more: &[&str]| {
        let mut command = Command::new(wirestorm());
        command.args(["send", "--tx", &lab.a.port(), "--rate", "200pps", "--packets", "40"]);
        start_command(command.args(["--sport", "1-40", "--quiet"]).args(more))
    };
    for more in [&["--dport", "7"][..], &["--dport", "8"], &["--dport", "8", "--vlan", "9"]] {
        send(more).wait();
    }
    let outcome = capture.wait().expect(0);
    assert_eq!(outcome.number("/packets"), 20, "{outcome}");
    assert_eq!(outcome.number("/missed"), 0);
    let count = |filter: &str| tshark::count(&path, filter).unwrap();
    assert_eq!(count("udp.dstport == 7 or vlan.id == 9"), 20);
    let mut wrong = Command::new(wirestorm());
    wrong.args(["capture", &lab.b.port(), "udp prt 7", "--write"]).arg(&path);
    run_command(&mut wrong).expect_error(2, &["filter \"udp prt 7\"", "syntax error"]);
}

#[test]
fn ports_of_a_run_answer_arp_and_resolve_their_next_hop() {
    if !can_run(&["clang", "ping"]) {
        return;
    }
    let lab = lab();
    lab.a.namespace().ip(&["addr add 203.0.113.1/24 dev veth0"]).unwrap();
    let scratch = Scratch::new().unwrap();
    let plan = scratch.file("plan.yaml");
    let text = format!(
        "
ports:
  - {{name: a, location: {}, addresses: [198.51.100.77/24, 2001:db8:77::77/64], gateway: 198.51.100.2}}
  - {{name: b, location: {}, addresses: 203.0.113.5/24}}
flows:
  - name: routed
    tx: a
    rx: b
    packet: [{{ethernet: {{src: auto, dst: auto}}}}, {{ipv4: {{src: 198.51.100.77, dst: 192.0.2.9}}}}, {{udp: {{}}}}]
    rate: 500pps
    metrics: {{enable: true}}
  - name: near
    tx: a
    rx: b
    packet: [{{ethernet: {{src: auto, dst: auto}}}}, {{ipv6: {{src: 2001:db8:77::77, dst: 2001:db8:77::2}}}}, {{udp: {{}}}}]
    rate: 100pps
    metrics: {{enable: true}}
",
        lab.a.port(),
        lab.b.port()
    );
    std::fs::write(&plan, &text).unwrap();
    let mut command = Command::new(wirestorm());
    command.arg("run").arg(&plan).args(["--duration", "3s", "--json", "-"]);
    let running = start_command(&mut command);
    // During a measurement, Linux resolves the port and gets ping replies.
    let arguments = ["-c", "2", "-i", "0.2", "-W", "5", "203.0.113.5"];
    let found = lab.a.command("ping").args(arguments).output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stdout));
    // Linux at the receiving end gets replies to its own pings.
    for address in ["198.51.100.77", "2001:db8:77::77"] {
        let found = lab.b.command("ping").args(["-c", "1", "-W", "5", address]).output().unwrap();
        assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stdout));
    }
    let outcome = running.wait();
    // The number of frames depends on the machine's load; all arrive.
    for flow in 0..2 {
        let sent = outcome.number(&format!("/flows/{flow}/packets"));
        let received = outcome.number(&format!("/flows/{flow}/measured/0/received"));
        assert!(sent > 0 && received == sent, "{outcome}");
    }
    assert_eq!(outcome.number("/flows/0/lost"), 0, "{outcome}");

    let nobody = text.replace("gateway: 198.51.100.2", "gateway: 198.51.100.200");
    std::fs::write(&plan, nobody).unwrap();
    run_command(Command::new(wirestorm()).arg("run").arg(&plan))
        .expect_error(2, &["198.51.100.200 did not answer"]);
    let no_ip =
        text.replace("{ipv4: {src: 198.51.100.77", "{vlan: {id: 7}}, {ipv4: {src: 198.51.100.77");
    std::fs::write(&plan, no_ip).unwrap();
    run_command(Command::new(wirestorm()).arg("run").arg(&plan))
        .expect_error(2, &["flows[0].packet[0].ethernet.dst: auto is the Ethernet address"]);
}
