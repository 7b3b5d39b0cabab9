//! Two Linux hosts joined by `wirestorm impair`: the impairments that their programs see match the
//! counters.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use wirestorm_e2e::{Outcome, Running, can_run, run_command, start_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab, LabOptions};

const BACKENDS: [&str; 2] = ["af_xdp", "af_packet"];
const A: &str = "198.51.100.1";
const B: &str = "198.51.100.2";
const MAC_B: &str = "02:57:53:00:00:0b";

/// Two hosts, and the interfaces that a link joins.
struct Hosts {
    a: Lab,
    b: Lab,
}

impl Hosts {
    fn new() -> Self {
        Self::with([1_500, 1_500])
    }

    fn with([mtu_a, mtu_b]: [u32; 2]) -> Self {
        let lab = |mtu| Lab::with(&LabOptions { mtu, ..LabOptions::default() }).unwrap();
        let (a, b) = (lab(mtu_a), lab(mtu_b));
        // All labs use the same MAC addresses.
        b.a.namespace().ip(&[&format!("link set {} address {MAC_B}", b.a.interface())]).unwrap();
        for (end, address) in [(&a.a, A), (&b.a, B)] {
            let interface = end.interface();
            end.namespace().ip(&[&format!("addr add {address}/24 dev {interface}")]).unwrap();
        }
        Self { a, b }
    }

    /// Hosts with static neighbours, so that there is no ARP.
    fn acquainted() -> Self {
        let hosts = Self::new();
        let mac = hosts.a.a.mac().map(|byte| format!("{byte:02x}")).join(":");
        for (end, address, mac) in [(&hosts.a.a, B, MAC_B), (&hosts.b.a, A, &mac)] {
            let device = end.interface();
            let neighbour = format!("neigh replace {address} lladdr {mac} dev {device}");
            end.namespace().ip(&[&format!("{neighbour} nud permanent")]).unwrap();
        }
        hosts
    }

    /// Starts a link; returns once frames of the hosts arrive there.
    fn join(&self, arguments: &[&str]) -> Running {
        let mut command = Command::new(wirestorm());
        command.arg("impair").args([self.a.b.port(), self.b.b.port()]);
        let running = start_command(command.args(["--json", "-"]).args(arguments));
        let deadline = Instant::now() + Duration::from_secs(20);
        while ![&self.a.b, &self.b.b].into_iter().all(is_listening) {
            assert!(Instant::now() < deadline, "the link does not start");
            sleep(Duration::from_millis(10));
        }
        running
    }

    fn ping(&self, arguments: &[&str]) -> Vec<f64> {
        let output = self.a.a.command("ping").args(["-n", B]).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let time = |line: &str| line.split("time=").nth(1)?.split(' ').next()?.parse().ok();
        text.lines().filter_map(time).collect()
    }
}

/// Whether a program receives from an interface.
fn is_listening(end: &End) -> bool {
    let output = end.command("ip").args(["-d", "link", "show", end.interface()]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.contains("xdp") && text.contains("prog/") || text.contains("promiscuity 1")
}

fn ended(link: Running, status: i32) -> Outcome {
    link.signal(Signal::INT);
    link.wait().expect(status)
}

/// A counter of one direction.
fn count(outcome: &Outcome, direction: usize, name: &str) -> u64 {
    // Frames of the first direction leave through the second port.
    let port = 1 - direction;
    outcome.number(&format!("/ports/{port}/impairment/{name}"))
}

#[test]
fn ping_times_match_the_delay_of_the_link() {
    if !can_run(&["ping"]) {
        return;
    }
    let hosts = Hosts::new();
    for backend in BACKENDS {
        let link = hosts.join(&["--delay", "20ms", "--b-to-a", "delay=30ms", "--backend", backend]);
        let mut times = hosts.ping(&["-c", "20", "-i", "0.1", "-W", "5"]);
        let outcome = ended(link, 130);
        assert_eq!(outcome.text("/schema"), "wirestorm.result/2");
        times.sort_by(f64::total_cmp);
        assert_eq!(times.len(), 20, "{times:?} {outcome}");
        // The first ping also waits for ARP, which crosses the link.
        assert!(times[0] >= 50.0 && times[10] < 58.0, "{times:?} {outcome}");
        for direction in [0, 1] {
            assert_eq!(outcome.text(&format!("/ports/{direction}/backend")), backend);
            let entered = count(&outcome, direction, "entered");
            // ARP may have been resolved before.
            assert!((20..=24).contains(&entered), "pings and ARP: {outcome}");
            assert_eq!(count(&outcome, direction, "delivered"), entered, "{outcome}");
        }
    }
}

#[test]
fn lost_pings_match_the_loss_counters() {
    if !can_run(&["ping"]) {
        return;
    }
    let hosts = Hosts::acquainted();
    let link = hosts.join(&["--loss", "20%", "--b-to-a", "burst-loss=10%/40%"]);
    let answers = hosts.ping(&["-c", "300", "-i", "0.01", "-W", "2"]).len() as u64;
    let outcome = ended(link, 130);
    let numbers =
        |direction| ["entered", "lost", "delivered"].map(|it| count(&outcome, direction, it));
    let ([sent, lost, arrived], [replies, lost_back, delivered]) = (numbers(0), numbers(1));
    assert_eq!((sent, sent - lost, replies), (300, arrived, arrived), "{outcome}");
    assert_eq!((replies - lost_back, delivered), (delivered, answers), "{outcome}");
    // Five standard deviations.
    assert!((25..=95).contains(&lost) && lost_back > 10, "{outcome}");
}

/// Sends 3,000 frames through a link; returns its counters, and the frames that the receiving host
/// counted.
fn carried(hosts: &Hosts, seed: &str) -> (Vec<u64>, u64) {
    let before = hosts.b.a.counters().unwrap().rx_packets;
    let words = ["--loss", "3%", "--duplicate", "2%", "--corrupt", "1%", "--reorder", "2%/3ms"];
    let link = hosts.join(&[&words[..], &["--delay", "1ms", "--seed", seed]].concat());
    let mut send = Command::new(wirestorm());
    send.args(["send", "--tx", &hosts.a.a.port(), "--udp", "--rate", "10kpps"]);
    run_command(send.args(["--packets", "3000", "--quiet", "--json", "-"])).expect(0);
    // The last frames are still on the link.
    sleep(Duration::from_millis(100));
    let outcome = ended(link, 130);
    let names =
        ["entered", "lost", "duplicated", "corrupted", "delivered", "in_flight", "queue_dropped"];
    let counts = names.map(|name| count(&outcome, 0, name)).to_vec();
    assert_eq!(counts[0], 3_000, "{outcome}");
    assert_eq!(counts[0] - counts[1] + counts[2], counts[4], "{outcome}");
    assert!(counts[..5].iter().all(|it| *it > 10), "{outcome}");
    assert!(count(&outcome, 0, "reordered") > 10, "{outcome}");
    (counts, hosts.b.a.counters().unwrap().rx_packets - before)
}

#[test]
fn same_seed_impairs_the_same_frames() {
    if !can_run(&[]) {
        return;
    }
    let hosts = Hosts::acquainted();
    let [first, again, other] = ["7", "7", "8"].map(|seed| carried(&hosts, seed));
    assert_eq!(first.0[4], first.1, "the host received all frames of the link");
    assert_eq!(first, again);
    assert_ne!(first, other);
}

/// Python program that sends two million bytes between both kernels. Prints the seconds and whether
/// the data arrived unchanged.
const SERVER: &str = "
import hashlib, socket, time
listener = socket.create_server(('198.51.100.2', 5001))
peer, _ = listener.accept()
start, total = time.monotonic(), b''
while data := peer.recv(65536):
    total += data
same = hashlib.sha256(total).digest() == hashlib.sha256(bytes(range(250)) * 8000).digest()
print(time.monotonic() - start, same)
";
const CLIENT: &str = "
import socket, time
for _ in range(100):
    try:
        peer = socket.create_connection(('198.51.100.2', 5001))
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
peer.sendall(bytes(range(250)) * 8000)
peer.close()
";

/// Seconds that Linux's TCP takes for two million bytes, which must arrive unchanged.
fn transfer(hosts: &Hosts) -> f64 {
    let python = |end: &End, text: &str| {
        let mut command = Command::new("timeout");
        let inner = end.command("python3");
        command.arg("50").arg(inner.get_program()).args(inner.get_args()).args(["-c", text]);
        command
    };
    let server = start_command(&mut python(&hosts.b.a, SERVER));
    run_command(&mut python(&hosts.a.a, CLIENT)).expect(0);
    let outcome = server.wait().expect(0);
    let (seconds, same) = outcome.output.trim().split_once(' ').unwrap();
    assert_eq!(same, "True");
    seconds.parse().unwrap()
}

#[test]
fn linux_tcp_reaches_the_rate_of_the_link() {
    if !can_run(&["python3"]) {
        return;
    }
    let hosts = Hosts::new();
    for backend in BACKENDS {
        let words = ["--rate", "8M-l1", "--queue", "100", "--delay", "2ms", "--backend", backend];
        let link = hosts.join(&words);
        let seconds = transfer(&hosts);
        let outcome = ended(link, 130);
        // 1,448 bytes of data have 66 bytes of headers, and 24 more on the wire.
        let least = 2e6 * 1_538.0 / 1_448.0 / 1e6 - 0.1;
        assert!((least..least + 1.0).contains(&seconds), "{seconds} s, {outcome}");
    }
}

#[test]
fn linux_tcp_recovers_from_all_impairments() {
    if !can_run(&["python3"]) {
        return;
    }
    let hosts = Hosts::new();
    let words = ["--loss", "1%", "--duplicate", "1%", "--corrupt", "1%", "--reorder", "1%/2ms"];
    let link = hosts.join(&[&words[..], &["--delay", "1ms", "--jitter", "500us"]].concat());
    transfer(&hosts);
    let outcome = ended(link, 130);
    for name in ["lost", "duplicated", "corrupted", "reordered"] {
        assert!(count(&outcome, 0, name) > 0, "{name}: {outcome}");
    }
}

#[test]
fn frames_over_the_mtu_of_the_other_side_are_a_shortfall() {
    if !can_run(&["ping"]) {
        return;
    }
    let hosts = Hosts::with([3_000, 1_500]);
    let link = hosts.join(&[]);
    assert!(hosts.ping(&["-c", "5", "-i", "0.01", "-W", "1", "-s", "2000"]).is_empty());
    assert_eq!(hosts.ping(&["-c", "1", "-W", "5"]).len(), 1);
    let outcome = ended(link, 3);
    assert_eq!(count(&outcome, 0, "invalid_length"), 5, "{outcome}");
}

#[test]
fn both_ends_of_one_veth_pair_are_rejected() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new().unwrap();
    let mut command = Command::new(wirestorm());
    command.arg("impair").args([lab.a.port(), lab.b.port()]);
    run_command(command.args(["--duration", "1s"]))
        .expect_error(2, &["the two ends of one veth pair", "loop between them forever"]);
}

#[test]
fn option_errors_are_reported() {
    let link = |arguments: &[&str]| {
        run_command(Command::new(wirestorm()).args(["impair", "lo", "lo"]).args(arguments))
    };
    link(&["--loss", "5"]).expect_error(2, &["--loss: found \"5\"", "such as 1%"]);
    link(&["--a-to-b", "los=5%"]).expect_error(2, &["--a-to-b: found \"los\"", "burst_loss"]);
    link(&["--queue", "10"]).expect_error(2, &["a queue without a rate"]);
    link(&["--duration", "5"]).expect_error(2, &["--duration", "30s"]);
    link(&[]).expect_error(2, &["lo"]);
}

/// A TCP counter of a host's kernel, by name.
fn counted(end: &End, name: &str) -> u64 {
    let output = end.command("cat").arg("/proc/net/netstat").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split(' ').zip(values.split(' '));
    pairs.find(|(known, _)| *known == name).unwrap().1.parse().unwrap()
}

/// A server that receives a request with a body, and responds with 100,000 bytes.
const TAKES_AND_GIVES: &str = r#"
ports: [{name: servers, addresses: 198.51.100.77/24}]
templates:
  - name: t
    server:
      tx: servers
      port: 80
      program:
        - receive: {message: http}
        - send: "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
        - send: {size: 100000}
"#;

#[test]
fn host_and_emulated_server_exchange_duplicate_sacks() {
    if !can_run(&["curl"]) {
        return;
    }
    const CONNECTIONS: u64 = 5;
    let (hosts, scratch) = (Hosts::new(), Scratch::new().unwrap());
    let (plan, body) = (scratch.file("plan.yaml"), scratch.file("body"));
    std::fs::write(&plan, TAKES_AND_GIVES).unwrap();
    std::fs::write(&body, [7; 100_000]).unwrap();
    let link = hosts.join(&["--delay", "1ms", "--duplicate", "30%"]);
    let mut server = Command::new(wirestorm());
    let port = format!("servers={}", hosts.b.a.port());
    let server =
        start_command(server.arg("emulate").arg(plan).args(["--json", "-", "--port", &port]));
    let host = &hosts.a.a;
    for _ in 0..CONNECTIONS {
        let mut curl = host.command("curl");
        curl.args(["-sS", "--retry-connrefused", "--retry", "20", "--retry-delay", "1"]);
        curl.args(["--max-time", "20", "-H", "Expect:", "http://198.51.100.77/"]);
        let output =
            curl.arg("--data-binary").arg(format!("@{}", body.display())).output().unwrap();
        assert!(output.status.success() && output.stdout.len() == 100_000, "{output:?}");
    }
    server.signal(Signal::INT);
    let served = server.wait().expect(130);
    let duplicated = ended(link, 130);
    let number = |name: &str| served.number(&format!("/ports/0/{name}"));
    // D-SACKs that the host received from ours, and those that it sent.
    let (received_blocks, sent_blocks) =
        (counted(host, "TCPDSACKRecv"), counted(host, "TCPDSACKOldSent"));
    assert!(
        received_blocks >= CONNECTIONS && sent_blocks >= CONNECTIONS,
        "{received_blocks} {sent_blocks} {served} {duplicated}"
    );
    // The link duplicates acknowledgements too.
    assert!(
        received_blocks <= 2 * number("connections/tcp/sack_send_blocks"),
        "{received_blocks} {served}"
    );
    assert_eq!(
        (number("connections/flows/failed"), number("connections/tcp/accepts")),
        (0, CONNECTIONS),
        "{served}"
    );
    assert_eq!(number("connections/tcp/rcvbyte") / 100_000, CONNECTIONS, "{served}");
    // There is no loss, so there are almost no retransmissions.
    assert!(number("connections/tcp/sndrexmitpack") <= 5, "{served}");
}
