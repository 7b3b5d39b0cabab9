//! Frames for other hosts, which a flooding Ethernet delivers as well.

use wirestorm_e2e::{can_run, start_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab, LabOptions};

use super::{both_ports, curl, emulate, host, plan, stop};

const SERVERS: &str = r#"
ports: [{name: servers, addresses: 198.51.100.1/24}]
templates:
  - name: page
    http: {path: /, response: {body: 100}}
    server: {tx: servers, port: 80}
"#;

/// curl's exit status for a timeout, and for a refused connection.
const TIMED_OUT: i32 = 28;
const REFUSED: i32 = 7;

#[test]
fn connections_to_other_hosts_are_ignored() {
    if !can_run(&["curl"]) {
        return;
    }
    for backend in ["af_packet", "af_xdp"] {
        let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
        host(&lab.b);
        let mut command = emulate(&plan(&scratch, SERVERS));
        command.args(["--port", &format!("servers={}", lab.a.port()), "--backend", backend]);
        let servers = start_command(&mut command);
        assert_eq!(curl(&lab.b, "198.51.100.1:80", 1).len(), 100);
        // A unicast address of another host, and broadcast.
        lab.b
            .namespace()
            .ip(&[
                "neigh replace 198.51.100.9 lladdr 02:00:00:00:00:99 dev veth1",
                "neigh replace 198.51.100.8 lladdr ff:ff:ff:ff:ff:ff dev veth1",
            ])
            .unwrap();
        let cases = [
            ("198.51.100.1:81", REFUSED),
            ("198.51.100.9:80", TIMED_OUT),
            ("198.51.100.9:81", TIMED_OUT),
            ("198.51.100.8:80", TIMED_OUT),
            ("198.51.100.8:81", TIMED_OUT),
        ];
        for (address, expected) in cases {
            let mut command = lab.b.command("curl");
            command.args(["--silent", "--max-time", "0.5", &format!("http://{address}/")]);
            let code = command.output().unwrap().status.code();
            assert_eq!(code, Some(expected), "{address} {backend}");
        }
        let outcome = stop(servers);
        let count = |name: &str| outcome.number(&format!("/ports/0/connections/flows/{name}"));
        assert!(count("foreign_mac") >= 4, "{outcome}");
        assert_eq!((count("no_template"), count("no_flow")), (1, 0), "{outcome}");
    }
}

/// Templates as in TRex's IPv6 profiles.
const GROUPS: &str = r#"
ports: [{name: clients}, {name: servers}]
templates:
  - name: page
    http: {response: {body: 5000}}
    client:
      tx: clients
      addresses: ff02::1-ff02::9
      servers: ff03::1-ff03::9
      load: {rate: 100}
      limit: 50
      ethernet: {dst: "{}"}
    server: {tx: servers}
"#;

#[test]
fn plan_may_use_multicast_addresses_for_clients_and_servers() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let mac = lab.b.mac().map(|byte| format!("{byte:02x}")).join(":");
    let text = GROUPS.replace("{}", &mac);
    let outcome = both_ports(&mut emulate(&plan(&scratch, &text)), &lab).expect(0);
    for port in 0..2 {
        let count = |name: &str| outcome.number(&format!("/ports/{port}/connections/flows/{name}"));
        assert_eq!((count("closed"), count("failed"), count("martian")), (50, 0, 0), "{outcome}");
    }
}

#[test]
fn pings_of_any_length_are_answered() {
    if !can_run(&["ping", "curl"]) {
        return;
    }
    let text = r#"
ports: [{name: servers, addresses: [198.51.100.1/24, "2001:db8:5::1/64"]}]
templates:
  - name: page
    http: {path: /, response: {body: 100}}
    server: {tx: servers, port: 80}
"#;
    for backend in ["af_packet", "af_xdp"] {
        let options = LabOptions { ipv6: true, ..LabOptions::default() };
        let (lab, scratch) = (Lab::with(&options).unwrap(), Scratch::new().unwrap());
        host(&lab.b);
        lab.b.namespace().ip(&["addr add 2001:db8:5::2/64 dev veth1 nodad"]).unwrap();
        let mut command = emulate(&plan(&scratch, text));
        command.args(["--port", &format!("servers={}", lab.a.port()), "--backend", backend]);
        let servers = start_command(&mut command);
        assert_eq!(curl(&lab.b, "198.51.100.1:80", 1).len(), 100);
        // Shorter than an IPv6 header, with options (-R), and in fragments.
        for address in ["198.51.100.1", "2001:db8:5::1"] {
            for length in ["0", "12", "56", "1472", "1473", "20000"] {
                assert_answers(&lab.b, &["-s", length, address], backend);
            }
        }
        assert_answers(&lab.b, &["-R", "198.51.100.1"], backend);
        stop(servers);
    }
}

/// Checks that a host answers pings.
fn assert_answers(from: &End, arguments: &[&str], what: &str) {
    let mut ping = from.command("ping");
    ping.args(["-c", "2", "-i", "0.1", "-W", "5"]).args(arguments);
    let output = ping.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(" 0% packet loss"), "{what}: {arguments:?}: {text}");
}
