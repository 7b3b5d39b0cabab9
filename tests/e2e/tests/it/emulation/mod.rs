//! Emulated clients and servers: between each other, and with nginx and curl on Linux's TCP.

mod bad_replies;
mod calls;
mod dialogues;
mod endings;
mod fast_open;
mod ftp;
mod http2;
mod latency;
mod long_frames;
mod next_hops;
mod other_hosts;
mod outages;
mod overload;
mod paths;
mod peers;
mod presets;
mod reports;
mod start_tls;
mod tags;
mod tls;
mod tunnels;
mod variables;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use wirestorm_e2e::{Outcome, Running, can_run, run_command, start_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab};

/// Size of a page with its header in bytes.
const PAGE: u64 = 20_000;

fn emulate(plan: &std::path::Path) -> Command {
    let mut command = Command::new(wirestorm());
    command.arg("emulate").arg(plan).args(["--json", "-"]);
    command
}

/// Writes a plan to a file.
fn plan(scratch: &Scratch, text: &str) -> std::path::PathBuf {
    let path = scratch.file("plan.yaml");
    fs::write(&path, text).unwrap();
    path
}

/// Starts the servers of a plan; port `servers` is the first end of the veth pair.
fn serve(lab: &Lab, scratch: &Scratch, text: &str) -> Running {
    let port = format!("servers={}", lab.a.port());
    start_command(emulate(&plan(scratch, text)).args(["--port", &port]))
}

/// Ends servers and checks that no flow failed.
#[track_caller]
fn stop(servers: Running) -> Outcome {
    let outcome = stop_with_failures(servers);
    let failures = |port: &serde_json::Value| {
        let flows = &port["connections"]["flows"];
        let count = |name: &str| flows[name].as_u64().expect("a counter of flows");
        count("failed") + count("time_wait_failed") + count("no_match")
    };
    let ports = outcome.result()["ports"].as_array().unwrap();
    assert_eq!(ports.iter().map(failures).sum::<u64>(), 0, "{outcome}");
    outcome
}

/// Same as [`stop`] for servers of which some connections may have failed.
#[track_caller]
fn stop_with_failures(servers: Running) -> Outcome {
    servers.signal(rustix::process::Signal::INT);
    let outcome = servers.wait();
    let is_short = outcome.text("/verdict/outcome") == "fell_short";
    outcome.expect(if is_short { 3 } else { 130 })
}

const BOTH: &str = r#"
ports:
  - {name: clients, addresses: 10.0.0.1/16}
  - {name: servers, addresses: 10.0.1.1/16}
templates:
  - name: page
    client:
      tx: clients
      addresses: 10.0.0.1-10.0.0.20
      servers: 10.0.1.1-10.0.1.10
      load: {rate: 1000}
      limit: 300
      program:
        - repeat: {times: 2, steps: [{send: {size: 100}}, {receive: 20000}]}
    server:
      tx: servers
      port: 80
      program:
        - repeat: {times: 2, steps: [{receive: 100}, {delay: {min: 0us, max: 2ms}}, {send: {size: 20000}}]}
"#;

fn both_ports(command: &mut Command, lab: &Lab) -> Outcome {
    command.args(["--port", &format!("clients={}", lab.a.port())]);
    command.args(["--port", &format!("servers={}", lab.b.port())]);
    run_command(command)
}

#[test]
fn both_ends_count_every_connection() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let plan = plan(&scratch, BOTH);
    for backend in ["af_xdp", "af_packet"] {
        let outcome =
            both_ports(emulate(&plan).args(["--backend", backend, "--interval", "100ms"]), &lab)
                .expect(0);
        assert_eq!(outcome.text("/schema"), "wirestorm.result/2");
        for port in [0, 1] {
            let number = |name: &str| outcome.number(&format!("/ports/{port}/{name}"));
            assert_eq!(outcome.text(&format!("/ports/{port}/backend")), backend);
            assert_eq!(number("connections/tcp/connects"), 300, "{outcome}");
            assert_eq!(number("connections/flows/closed"), 300, "{outcome}");
            assert_eq!(
                number("connections/flows/failed") + number("connections/flows/active"),
                0,
                "{outcome}"
            );
            assert_eq!(number("connections/times/connect/count"), 300);
            assert_eq!(
                number("connections/times/round_trip/count"),
                number("connections/tcp/rttupdated"),
                "{outcome}"
            );
            let received = if port == 0 { 300 * 2 * PAGE } else { 300 * 2 * 100 };
            assert_eq!(number("connections/tcp/rcvbyte"), received, "{outcome}");
            assert_eq!(number("rx/dropped") + number("tx/failed"), 0, "{outcome}");
            // 300 at 1,000 a second are 100 in each tenth of a second after the first one. A busy
            // machine shifts some to the next tenth.
            let opened = &outcome.result()["ports"][port]["connections"]["series"]["opened"];
            let opened: Vec<_> =
                opened.as_array().unwrap().iter().flat_map(|it| it.as_u64()).collect();
            assert_eq!(opened.iter().sum::<u64>(), 300, "{outcome}");
            assert!(opened.iter().filter(|it| **it > 0).count() >= 3, "{outcome}");
        }
        assert_eq!(outcome.number("/ports/0/tx/packets"), outcome.number("/ports/1/rx/packets"));
        assert_eq!(outcome.number("/ports/1/tx/packets"), outcome.number("/ports/0/rx/packets"));
    }
}

#[test]
fn sampled_flows_show_losses() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let impair = "impair: {delay: 10ms, loss: 3%}";
    let text = BOTH
        .replace("10.0.1.1/16}", &format!("10.0.1.1/16, {impair}}}"))
        .replace("{rate: 1000}", "{concurrent: 2}")
        .replace("limit: 300", "limit: 2")
        .replace("{size: 20000}", "{size: 600000}")
        .replace("receive: 20000", "receive: 600000");
    let plan = plan(&scratch, &text);
    let mut command = emulate(&plan);
    command.args([
        "--interval",
        "20ms",
        "--sample-flows",
        "2,template=page,port=80",
        "--drain-timeout",
        "60s",
    ]);
    let outcome = both_ports(&mut command, &lab).expect(0);
    let followed = |port: usize| {
        outcome.result()["ports"][port]["connections"]["sampled_flows"].as_array().unwrap()
    };
    assert_eq!((followed(0).len(), followed(1).len()), (2, 2), "{outcome}");
    for (ours, port) in [(followed(0), "client"), (followed(1), "server")] {
        for flow in ours {
            assert_eq!((&flow["side"], &flow["template"]), (&port.into(), &"page".into()));
            let samples = flow["samples"].as_array().unwrap();
            assert!(samples.len() > 3, "{flow}");
            let opening = if port == "client" { "SYN-SENT" } else { "SYN-RECEIVED" };
            assert_eq!(samples[0]["state"], opening, "{flow}");
            // A lost segment of the handshake prolongs the opening state to many samples.
            let open = samples.iter().find(|it| it["state"] != opening).unwrap();
            assert_eq!(open["state"], "ESTABLISHED", "{flow}");
            let last = samples.last().unwrap();
            assert!(["TIME-WAIT", "CLOSED"].contains(&last["state"].as_str().unwrap()), "{flow}");
            let bytes = |name: &str| {
                samples.iter().map(|it| it[name].as_u64().unwrap()).collect::<Vec<_>>()
            };
            let (sent, received) = (bytes("acknowledged_bytes"), bytes("received_bytes"));
            assert!(sent.is_sorted() && received.is_sorted(), "{flow}");
            let more = if port == "server" { &sent } else { &received };
            assert!(*more.last().unwrap() > 20_000, "{flow}");
            assert!(*more.last().unwrap() <= 1_200_000, "{flow}");
        }
    }
    // Flows that send most have losses, which end slow start.
    let last =
        |flow: &serde_json::Value| flow["samples"].as_array().unwrap().last().unwrap().clone();
    let servers: Vec<_> = followed(1).iter().map(last).collect();
    assert!(servers.iter().any(|it| it["retransmitted"].as_u64() > Some(0)), "{outcome}");
    assert!(servers.iter().any(|it| it["ssthresh"].is_u64()), "{outcome}");
    for sample in &servers {
        assert!((10_000..80_000).contains(&sample["rtt_us"].as_u64().unwrap()), "{sample}");
        assert!(sample["rto_us"].as_u64() >= Some(200_000), "{sample}");
    }
}

#[test]
fn impairments_of_ports_are_counted_and_recovered() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let impair = "impair: {delay: 10ms, loss: 2%, duplicate: 1%, corrupt: 1%, reorder: 1%/2ms}";
    let text = BOTH
        .replace("10.0.0.1/16}", &format!("10.0.0.1/16, {impair}}}"))
        .replace("10.0.1.1/16}", "10.0.1.1/16, impair: {delay: 5ms}}");
    let plan = plan(&scratch, &text);
    let outcome = both_ports(emulate(&plan).args(["--drain-timeout", "20s"]), &lab).expect(0);
    let number = |port: u8, name: &str| outcome.number(&format!("/ports/{port}/{name}"));
    for port in [0, 1] {
        assert_eq!(number(port, "connections/flows/closed"), 300, "{outcome}");
        let [entered, lost, doubled, delivered] = ["entered", "lost", "duplicated", "delivered"]
            .map(|name| number(port, &format!("impairment/{name}")));
        assert_eq!((entered - lost + doubled, number(port, "tx/packets")), (delivered, delivered));
        assert_eq!(number(port, "tx/packets"), number(1 - port, "rx/packets"), "{outcome}");
    }
    for name in ["lost", "duplicated", "corrupted", "reordered"] {
        assert!(number(0, &format!("impairment/{name}")) > 0, "{name}: {outcome}");
        assert_eq!(number(1, &format!("impairment/{name}")), 0, "{name}: {outcome}");
    }
    // A bit error in IP version or length makes the packet unrecognizable instead of damaged.
    let (damaged, corrupted) =
        (number(1, "connections/flows/malformed"), number(0, "impairment/corrupted"));
    assert!((corrupted * 8 / 10..=corrupted).contains(&damaged), "{damaged} {outcome}");
    assert_eq!(number(1, "connections/tcp/rcvbyte"), 300 * 2 * 100, "{outcome}");
    let connect = number(0, "connections/times/connect/p50_ns");
    // 15 ms, reported as the lower bound of a histogram bucket.
    assert!((14_700_000..30_000_000).contains(&connect), "{connect} ns, {outcome}");
}

#[test]
fn unanswered_connections_are_a_shortfall() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let text = BOTH.replace("port: 80", "port: 81").replace("limit: 300", "limit: 5");
    let plan = plan(&scratch, &text);
    let outcome = both_ports(&mut emulate(&plan), &lab).expect(3);
    assert_eq!(outcome.number("/ports/0/connections/flows/failed"), 5, "{outcome}");
    assert_eq!(outcome.number("/ports/1/connections/flows/no_template"), 5, "{outcome}");
}

/// Configures the other end as a Linux host in the port's network.
fn host(end: &End) {
    end.namespace().ip(&["addr add 198.51.100.2/24 dev veth1"]).unwrap();
}

/// Kills a program that does not end by itself.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fetches a page `times` times over one connection; retries until a server answers.
fn curl(end: &End, address: &str, times: usize) -> Vec<u8> {
    let mut command = end.command("curl");
    command.args(["--silent", "--show-error", "--max-time", "5"]);
    command.args(["--retry", "5", "--retry-delay", "1", "--retry-all-errors"]);
    let output = command.args(vec![format!("http://{address}/"); times]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Returns the segments that a port retransmitted, without tail loss probes: those answer a host
/// that is late, not only a loss.
fn retransmitted(outcome: &Outcome, port: usize) -> u64 {
    let count = |name: &str| outcome.number(&format!("/ports/{port}/connections/tcp/{name}"));
    count("sndrexmitpack").saturating_sub(count("tlpresends"))
}

#[test]
fn nginx_serves_emulated_clients() {
    if !can_run(&["nginx", "curl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    lab.b.namespace().ip(&["link set lo up"]).unwrap();
    let page: Vec<u8> = (0..PAGE).map(|byte| byte as u8).collect();
    fs::write(scratch.file("index.html"), &page).unwrap();
    let folder = scratch.path().display();
    let configuration = format!(
        "daemon off; user root; pid {folder}/pid; error_log {folder}/errors; events {{}}\n\
         http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; \
         fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};\n\
         server {{ listen 80; root {folder}; }} }}"
    );
    let file = scratch.file("nginx.conf");
    fs::write(&file, configuration).unwrap();
    let nginx = lab.b.command("nginx").arg("-c").arg(&file).spawn().unwrap();
    let _nginx = KilledOnDrop(nginx);
    assert_eq!(curl(&lab.b, "198.51.100.2", 1), page);

    let text = r#"
ports: [{name: clients, addresses: 198.51.100.77/24}]
templates:
  - name: page
    client:
      tx: clients
      addresses: 198.51.100.77-198.51.100.96
      servers: 198.51.100.2
      load: {concurrent: 10}
      limit: 100
      program:
        - send: "GET / HTTP/1.1\r\nHost: page\r\nConnection: close\r\n\r\n"
        - wait_for_close
"#;
    let plan = plan(&scratch, text);
    let port = format!("clients={}", lab.a.port());
    for backend in ["af_xdp", "af_packet"] {
        let mut command = emulate(&plan);
        let outcome = run_command(command.args(["--port", &port, "--backend", backend])).expect(0);
        assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 100, "{outcome}");
        assert_eq!(outcome.number("/ports/0/connections/flows/active_max"), 10, "{outcome}");
        // Each response has the page and a header of nginx.
        let received = outcome.number("/ports/0/connections/tcp/rcvbyte");
        assert!((100 * (PAGE + 100)..100 * (PAGE + 600)).contains(&received), "{outcome}");
        assert_eq!(received % 100, 0, "all pages are alike");
    }

    // Persistent responses are delimited by their length, the last one by the close.
    let text = r#"
ports: [{name: clients, addresses: 198.51.100.77/24}]
templates:
  - name: kept
    http: {host: page, requests: 6, pipeline: 2}
    client: {tx: clients, servers: 198.51.100.2, load: {concurrent: 5}, limit: 20}
  - name: lone
    http: {host: page}
    client: {tx: clients, servers: 198.51.100.2, load: {concurrent: 5}, limit: 20}
"#;
    let plan = self::plan(&scratch, text);
    let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(0);
    for (template, transactions, pages) in [(0, 20 * 3, 6), (1, 20, 1)] {
        let at = |name: &str| format!("/ports/0/templates/{template}/{name}");
        assert_eq!(outcome.text(&at("transactions/0/name")), "http");
        assert_eq!(outcome.number(&at("transactions/0/started")), transactions, "{outcome}");
        assert_eq!(outcome.number(&at("transactions/0/time/count")), transactions, "{outcome}");
        let received = outcome.number(&at("tcp/rcvbyte")) / 20;
        assert!((pages * (PAGE + 100)..pages * (PAGE + 600)).contains(&received), "{outcome}");
    }
}

#[test]
fn clients_wait_for_a_late_arp_reply() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let text = r#"
ports: [{name: clients, addresses: 198.51.100.77/24}]
templates:
  - name: page
    client:
      tx: clients
      servers: 198.51.100.2
      load: {concurrent: 1}
      limit: 1
      program: [{send: "hello"}]
"#;
    let plan = plan(&scratch, text);
    let mut command = Command::new(wirestorm());
    let port = format!("clients={}", lab.a.port());
    command.arg("emulate").arg(&plan).args(["--port", &port, "--json", "/dev/null"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut messages = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    messages.read_line(&mut line).unwrap();
    assert!(line.contains(": 198.51.100.2 does not answer ARP; retrying for 7 s more"), "{line}");
    // Now a host answers ARP, and refuses connections.
    host(&lab.b);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(3), "a connection failed");
}

#[test]
fn curl_fetches_from_an_emulated_server() {
    if !can_run(&["curl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let text = r#"
ports: [{name: servers, addresses: 198.51.100.77/24}]
templates:
  - name: page
    server:
      tx: servers
      port: 80
      program:
        - repeat:
            steps:
              - receive: 1
              - send: {text: "HTTP/1.1 200 OK\r\nContent-Length: 19958\r\n\r\n", size: 20000, fill: "wire"}
"#;
    let server = serve(&lab, &scratch, text);
    let pages = curl(&lab.b, "198.51.100.77", 3);
    assert_eq!(pages.len(), 3 * 19_958);
    assert!(pages.starts_with(b"wirewire"), "{}", String::from_utf8_lossy(&pages[..20]));
    let outcome = stop(server);
    assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 1, "{outcome}");
    assert_eq!(outcome.number("/ports/0/connections/tcp/accepts"), 1, "{outcome}");
}

#[test]
fn run_names_the_command_for_an_emulation_plan() {
    let scratch = Scratch::new().unwrap();
    let plan = plan(&scratch, BOTH);
    let outcome = run_command(Command::new(wirestorm()).arg("run").arg(&plan)).expect(2);
    assert!(outcome.messages.contains("`wirestorm emulate"), "{outcome}");
}
