//! Reports of problems, and the exit status of the run.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use wirestorm_e2e::{Outcome, can_run, replay, run_command, start_command, write_capture};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab};
use wirestorm_testkit::pcap::Packet;

use super::{BOTH, both_ports, curl, emulate, host, plan, serve, stop_with_failures};

/// Waits until more than `more_than` frames have arrived.
pub(crate) fn wait_for_frames(end: &End, more_than: u64) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while end.counters().unwrap().rx_packets <= more_than {
        assert!(Instant::now() < deadline, "no frame arrives");
        std::thread::yield_now();
    }
}

/// Clients whose frames reach no host.
const BLACK_HOLE: &str = r#"
ports: [{name: clients}]
templates:
  - name: page
    client:
      tx: clients
      addresses: 10.0.0.1-10.0.0.20
      servers: 10.0.1.1
      ethernet: {dst: "02:00:00:00:00:77"}
      load: {rate: 200}
      program: [{send: "x"}, {receive: 1}]
"#;

/// Runs the clients of a plan on the first end for a short time.
fn clients(lab: &Lab, scratch: &Scratch, text: &str) -> Outcome {
    let mut command = emulate(&plan(scratch, text));
    command.args(["--port", &format!("clients={}", lab.a.port())]);
    run_command(command.args(["--duration", "300ms", "--drain-timeout", "100ms"]))
}

#[test]
fn unanswered_clients_are_a_shortfall() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let outcome = clients(&lab, &scratch, BLACK_HOLE).expect(3);
    let number = |name: &str| outcome.number(&format!("/ports/0/connections/flows/{name}"));
    assert!(number("syn_sent") >= 50, "{outcome}");
    assert_eq!(number("syn_sent"), number("active"), "{outcome}");
    assert_eq!(number("failed") + number("unfinished"), 0, "{outcome}");
    let notes = outcome.lines("/notes");
    assert!(notes.contains("page: of ") && notes.contains("no answer to their SYN"), "{notes}");
}

#[test]
fn established_flows_that_hang_are_unfinished() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    // Servers wait for one byte more than clients send, so both hang.
    let text = BOTH.replace("limit: 300", "limit: 5").replace("{receive: 100}", "{receive: 101}");
    let plan = plan(&scratch, &text);
    let outcome =
        both_ports(emulate(&plan).args(["--duration", "300ms", "--drain-timeout", "200ms"]), &lab)
            .expect(0);
    for port in [0, 1] {
        assert_eq!(
            outcome.number(&format!("/ports/{port}/connections/flows/unfinished")),
            5,
            "{outcome}"
        );
        assert_eq!(
            outcome.number(&format!("/ports/{port}/connections/flows/syn_sent")),
            0,
            "{outcome}"
        );
    }
    let notes = outcome.lines("/notes");
    assert!(notes.contains("5 were unfinished at the end, 0.2 s after"), "{notes}");
}

#[test]
fn failures_count_in_an_interrupted_run() {
    if !can_run(&["curl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let servers = serve(
        &lab,
        &scratch,
        r#"
ports: [{name: servers, addresses: 198.51.100.1/24}]
templates:
  - name: strict
    server: {tx: servers, port: 80, program: [{receive: {until: "\n"}}, {expect: "EHLO\n"}]}
  - name: page
    http: {path: /, response: {body: 100}}
    server: {tx: servers, port: 81}
"#,
    );
    assert_eq!(curl(&lab.b, "198.51.100.1:81", 1).len(), 100);
    let mut command = lab.b.command("curl");
    command.args(["--silent", "--max-time", "5", "http://198.51.100.1/"]);
    assert!(!command.output().unwrap().status.success());
    let outcome = stop_with_failures(servers);
    assert_eq!(outcome.result()["interrupted"], true);
    // State at Ctrl-C: in TIME-WAIT, or already closed.
    let failed = ["failed", "time_wait_failed"]
        .map(|it| outcome.number(&format!("/ports/0/connections/flows/{it}")));
    assert_eq!(failed.iter().sum::<u64>(), 1, "{outcome}");
    assert_eq!(outcome.number("/ports/0/templates/0/failures/0/flows"), 1, "{outcome}");
}

#[test]
fn interrupted_run_does_not_report_pending_answers() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    // A long delay, so that answers to SYNs are always pending.
    let servers = "{name: servers, addresses: 10.0.1.1/16";
    let text = BOTH.replace(servers, &format!("{servers}, impair: {{delay: 50ms}}"));
    let text = text.replace("limit: 300", "limit: 1000000");
    let plan = plan(&scratch, &text);
    for (duration, signal) in [(None, Signal::INT), (Some("50s"), Signal::TERM)] {
        let mut command = emulate(&plan);
        for (port, end) in [("clients", &lab.a), ("servers", &lab.b)] {
            command.args(["--port", &format!("{port}={}", end.port())]);
        }
        command.args(["--backend", "af_packet"]);
        command.args(duration.iter().flat_map(|it| ["--duration", it]));
        let before = lab.b.counters().unwrap().rx_packets;
        let running = start_command(&mut command);
        wait_for_frames(&lab.b, before + 2_000);
        running.signal(signal);
        let outcome = running.wait().expect(130);
        assert_eq!(outcome.result()["interrupted"], true, "{outcome}");
        assert!(outcome.number("/ports/0/connections/flows/syn_sent") > 0, "{outcome}");
        assert_eq!(outcome.number("/ports/0/connections/flows/failed"), 0, "{outcome}");
        assert_eq!(outcome.lines("/notes"), "", "{outcome}");
    }
    // No answer arrived at all, and the run ends before the SYNs time out.
    let text = BLACK_HOLE.replace("program: [", "limit: 5\n      program: [");
    let mut command = emulate(&super::plan(&scratch, &text));
    command.args(["--port", &format!("clients={}", lab.a.port())]);
    let before = lab.b.counters().unwrap().rx_packets;
    let running = start_command(&mut command);
    wait_for_frames(&lab.b, before + 4);
    running.signal(Signal::INT);
    let outcome = running.wait().expect(3);
    assert!(outcome.lines("/notes").contains("no answer to their SYN"), "{outcome}");
}

#[test]
fn addresses_of_the_kernel_cause_a_warning_before_the_run() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    lab.a.namespace().ip(&["addr add 10.0.0.3/16 dev veth0"]).unwrap();
    let command_text = format!("ip -n {} addr del 10.0.0.3/16 dev veth0", lab.a.namespace().name());
    for (text, backend, expected) in [
        (BLACK_HOLE.to_owned(), "af_packet", [true, true]),
        (BLACK_HOLE.to_owned(), "af_xdp", [false, false]),
        (BLACK_HOLE.replace("10.0.0.1-10.0.0.20", "10.0.0.10"), "af_packet", [false, false]),
    ] {
        let mut command = emulate(&plan(&scratch, &text));
        command.args(["--port", &format!("clients={}", lab.a.port()), "--backend", backend]);
        let outcome = run_command(command.args(["--duration", "20ms", "--drain-timeout", "0s"]));
        let notes = outcome.lines("/notes");
        let is_shown = [outcome.messages.contains(&command_text), notes.contains(&command_text)];
        assert_eq!(is_shown, expected, "{backend}: {outcome}");
    }
}

#[test]
fn run_ended_by_an_interface_fault_is_stopped() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let plan = plan(&scratch, BLACK_HOLE);
    let document = scratch.file("result.json");
    let mut command = std::process::Command::new(wirestorm_e2e::wirestorm());
    command.arg("emulate").arg(&plan).arg("--json").arg(&document);
    command.args(["--port", &format!("clients={}", lab.a.port())]);
    let running = start_command(command.args(["--link-down-timeout", "0s"]));
    wait_for_frames(&lab.b, 10);
    lab.a.set_up(false).unwrap();
    let outcome = running.wait().expect(1);
    assert!(outcome.output.starts_with("stopped after "), "{outcome}");
    assert!(outcome.output.contains("went down; bring it up with"), "{outcome}");
    assert!(fs::read_to_string(&document).unwrap().contains("went down"), "{outcome}");
}

#[test]
fn pings_do_not_count_as_other_protocol() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    // Short pages: with long frames, a filter in the kernel selects the frames.
    let both = BOTH.replace("20000", "2000");
    let text = format!("{both}latency: [{{from: clients, to: servers, rate: 200}}]\n");
    let plan = plan(&scratch, &text);
    for backend in ["af_packet", "af_xdp"] {
        let outcome = both_ports(emulate(&plan).args(["--backend", backend]), &lab).expect(0);
        assert!(outcome.number("/latency/0/received") > 10, "{outcome}");
        for port in [0, 1] {
            let others = outcome.number(&format!("/ports/{port}/connections/flows/other_protocol"));
            assert_eq!(others, 0, "{backend}: {outcome}");
        }
    }
}

/// A SYN to a closed port, with these errors in its checksums.
fn syn(lab: &Lab, wrong: [u16; 2]) -> Vec<u8> {
    let sum = |words: &[u8], start: u32| {
        let words = words.as_chunks::<2>().0.iter().map(|it| u32::from(u16::from_be_bytes(*it)));
        let sum: u32 = start + words.sum::<u32>();
        let folded = (sum & 0xffff) + (sum >> 16);
        !((folded & 0xffff) + (folded >> 16)) as u16
    };
    let [ip_wrong, tcp_wrong] = wrong;
    let mut ip = vec![0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0, 198, 51, 100, 9, 198, 51, 100, 1];
    let mut tcp = vec![0x10, 0, 0, 81, 0, 0, 0, 5, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0];
    let pseudo: Vec<u8> = [&ip[12..20], &[0, 6, 0, 20][..]].concat();
    let checksum = sum(&[&pseudo, &tcp[..]].concat(), 0).wrapping_add(tcp_wrong);
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    let checksum = sum(&ip, 0).wrapping_add(ip_wrong);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    [&lab.a.mac()[..], &lab.b.mac()[..], &[8, 0], &ip, &tcp].concat()
}

#[test]
fn damaged_packets_are_detected_on_virtual_interfaces() {
    if !can_run(&[]) {
        return;
    }
    let text = "
ports: [{name: servers, addresses: 198.51.100.1/24}]
templates:
  - {name: page, http: {path: /, response: {body: 100}}, server: {tx: servers}}
";
    // Packet sockets know which frames lack a checksum; for AF_XDP, `--verify-checksums` asserts
    // that all have one.
    let cases: [(&[&str], _); 3] = [
        (&["--backend", "af_packet"], [9, 4, 3]),
        (&["--backend", "af_xdp", "--verify-checksums"], [9, 4, 3]),
        (&["--backend", "af_xdp"], [0, 0, 12]),
    ];
    for (arguments, expected) in cases {
        let found = damaged_among_twelve(text, arguments);
        assert_eq!(found, expected, "{arguments:?}");
    }
}

/// Sends a server twelve segments, nine of them damaged; repeats the first until it answers.
/// Returns how many it counts as damaged, as segments with a wrong checksum, and as valid.
fn damaged_among_twelve(text: &str, arguments: &[&str]) -> [u64; 3] {
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let port = format!("servers={}", lab.a.port());
    let mut command = emulate(&plan(&scratch, text));
    let servers = start_command(command.args(["--port", &port]).args(arguments));
    // It has announced its address.
    wait_for_frames(&lab.b, 0);
    let send = |frames: Vec<Vec<u8>>| {
        let packets: Vec<_> = frames.into_iter().map(|frame| Packet { time: 0, frame }).collect();
        let capture = write_capture(&scratch, "syns.pcap", &packets);
        let port = lab.b.port();
        replay(["-t".as_ref(), "-i".as_ref(), port.as_ref(), capture.as_os_str()]).expect(0);
    };
    // It receives nothing before its port is open.
    let received_before = lab.b.counters().unwrap().rx_packets;
    let deadline = Instant::now() + Duration::from_secs(10);
    let has_answered = || {
        let until = Instant::now() + Duration::from_millis(300);
        let counted = || lab.b.counters().unwrap().rx_packets;
        std::iter::repeat_with(counted)
            .take_while(|_| Instant::now() < until)
            .any(|it| it > received_before)
    };
    send(vec![syn(&lab, [0, 0])]);
    while !has_answered() {
        assert!(Instant::now() < deadline, "it answers nothing");
        send(vec![syn(&lab, [0, 0])]);
    }
    // Send those that are answered last.
    let damaged = [vec![syn(&lab, [1, 0]); 5], vec![syn(&lab, [0, 1]); 4]].concat();
    let received_before = lab.b.counters().unwrap().rx_packets;
    send([damaged, vec![syn(&lab, [0, 0]); 2]].concat());
    wait_for_frames(&lab.b, received_before + 1);
    let outcome = stop_with_failures(servers);
    let number = |name: &str| outcome.number(&format!("/ports/0/{name}"));
    ["connections/flows/malformed", "connections/tcp/rcvbadsum", "connections/flows/no_template"]
        .map(number)
}
