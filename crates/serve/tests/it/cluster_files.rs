//! Files and plans that only the director has: agents fetch them from the bus, and refuse changed ones.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wirestorm_bus::Bus;
use wirestorm_bus::cluster::PLANS;
use wirestorm_bus::nats::{NatsBus, NatsOptions};
use wirestorm_serve::cluster::{TestError, TestOutcome};
use wirestorm_testkit::nats::{NatsServer, require_nats_server};
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::require::require_root;
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

use crate::cluster::Machines;

/// Time for what must happen.
const SOON: Duration = Duration::from_secs(20);

/// A site whose director has a folder of captures: `caps/a.pcap`, `caps/below/b.pcap`, and a note.
struct Site {
    machines: Machines,
    /// Frames of each capture.
    frames: [u64; 2],
}

impl Site {
    fn new() -> Self {
        let machines = Machines::new();
        let folder = machines.scratch.file("tests");
        fs::create_dir_all(folder.join("caps/below")).unwrap();
        fs::write(folder.join("caps/README"), "where they are from").unwrap();
        let capture = |name: &str, conversations| {
            let options = TrafficOptions { conversations, ..TrafficOptions::default() };
            let path = folder.join(name);
            write_file(Traffic::new(options), Resolution::Nanoseconds, &path).unwrap().packets
        };
        let frames = [capture("caps/a.pcap", 10), capture("caps/below/b.pcap", 4)];
        Self { machines, frames }
    }

    /// Returns a test with these runs. The node `rx` has the port `right`.
    fn text(&self, runs: &str) -> String {
        let lab = &self.machines.lab;
        let (left, right) = (lab.a.port(), lab.b.port());
        format!(
            "nodes: [tx, rx]\nports:\n  - {{name: left, node: tx, interface: '{left}'}}\n  \
             - {{name: right, node: rx, interface: '{right}'}}\nclock: {{path: none}}\n\
             runs:\n{runs}"
        )
    }

    fn run(&self, id: &str, bus: &Arc<dyn Bus>, runs: &str) -> Result<TestOutcome, TestError> {
        let folder = self.machines.scratch.file("tests");
        let director = self.machines.director(id, Arc::clone(bus), &self.text(runs), folder)?;
        director.run(&AtomicBool::new(false), &mut |_| ())
    }

    /// Waits until no agent has files of a test.
    fn assert_no_files(&self) {
        let began = Instant::now();
        for name in ["tx", "rx"] {
            let directory = self.machines.scratch.file(name).join("contents");
            while fs::read_dir(&directory).unwrap().count() > 0 {
                assert!(began.elapsed() < SOON, "agent {name} keeps its files");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

fn replay(captures: &str) -> String {
    format!(
        "  - name: captured\n    options: {{backend: af_packet}}\n    \
         replay: {{captures: [{captures}], port: left, rate: max}}\n"
    )
}

fn sent(outcome: &TestOutcome) -> u64 {
    outcome.iterations[0].runs[0].result.as_ref().unwrap().achieved.tx.packets
}

/// SHA-256 of a file in hexadecimal digits.
fn sha256(path: &std::path::Path) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, &fs::read(path).unwrap());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn replay_of_captures_that_only_the_director_has() {
    if !require_root() {
        return;
    }
    let site = Site::new();
    let bus: Arc<dyn Bus> = Arc::new(site.machines.bus.clone());
    let _agents = ["tx", "rx"].map(|name| site.machines.agent(name, Arc::clone(&bus)));
    let [a, b] = site.frames;
    let outcome = site.run("t1", &bus, &replay("caps/a.pcap")).unwrap();
    assert_eq!((sent(&outcome), site.machines.arrived()), (a, a));
    // A directory stands for the captures in and below it.
    let outcome = site.run("t2", &bus, &replay("caps, caps/below/b.pcap")).unwrap();
    assert_eq!((sent(&outcome), site.machines.arrived()), (a + b + b, a + a + b + b));
    site.assert_no_files();
    let digest = sha256(&site.machines.scratch.file("tests/caps/a.pcap"));
    for test in ["t1", "t2"] {
        let object = format!("{test}.{digest}.0");
        assert_eq!(bus.get_object(PLANS, &object, 1 << 30).unwrap(), None, "{object}");
    }
}

#[test]
fn files_that_are_missing_or_too_large_are_named_before_anything_is_sent() {
    if !require_root() {
        return;
    }
    let site = Site::new();
    let bus: Arc<dyn Bus> = Arc::new(site.machines.bus.clone());
    let refused = |runs: &str| site.run("t1", &bus, runs).unwrap_err().to_string();
    let error = refused(&replay("caps/none.pcap"));
    let path = site.machines.scratch.file("tests/caps/none.pcap").display().to_string();
    assert!(error.contains("run captured") && error.contains(&path), "{error}");
    let huge = fs::File::create(site.machines.scratch.file("tests/huge.pcap")).unwrap();
    huge.set_len((1 << 30) + 1).unwrap();
    let error = refused(&replay("huge.pcap"));
    assert!(error.contains("huge.pcap") && error.contains("1073741825 bytes"), "{error}");
    assert!(error.contains("may have 1073741824"), "{error}");
}

#[test]
fn clients_and_servers_get_the_keys_and_plans_of_the_director() {
    if !require_root() {
        return;
    }
    let site = Site::new();
    let folder = site.machines.scratch.file("tests");
    fs::create_dir(folder.join("keys")).unwrap();
    let certified = rcgen::generate_simple_self_signed(["pages.test".to_owned()]).unwrap();
    fs::write(folder.join("keys/pages.pem"), certified.cert.pem()).unwrap();
    fs::write(folder.join("keys/pages.key"), certified.signing_key.serialize_pem()).unwrap();
    // The names in the plan start at its own folder.
    let tls = "certificate: pages.pem, key: pages.key, ca: pages.pem, sni: pages.test";
    let plan = format!(
        "ports:\n  - {{name: left, addresses: 10.9.0.1/24}}\n  \
         - {{name: right, addresses: 10.9.0.2/24}}\ntemplates:\n  - name: pages\n    \
         tls: {{{tls}}}\n    client:\n      tx: left\n      servers: 10.9.0.2\n      \
         server_port: 443\n      load: {{rate: 20}}\n      \
         program: [{{send: question}}, {{receive: 6}}]\n    server:\n      tx: right\n      \
         port: 443\n      program: [{{receive: 8}}, {{send: answer}}]\n"
    );
    fs::write(folder.join("keys/plan.yaml"), plan).unwrap();
    let bus: Arc<dyn Bus> = Arc::new(site.machines.bus.clone());
    let _agents = ["tx", "rx"].map(|name| site.machines.agent(name, Arc::clone(&bus)));
    let one_node = site.text("  - {name: web, emulate: keys/plan.yaml}\nduration: 1s\n");
    let one_node = one_node.replace("node: rx", "node: tx");
    let director = site.machines.director("t1", Arc::clone(&bus), &one_node, folder).unwrap();
    let outcome = director.run(&AtomicBool::new(false), &mut |_| ()).unwrap();
    let result = outcome.iterations[0].runs[0].result.as_ref().unwrap();
    let result = serde_json::to_value(result).unwrap();
    let templates = result["ports"][0]["templates"].as_array().unwrap();
    let handshakes = templates[0].pointer("/tls/full_handshakes").unwrap();
    assert!(handshakes.as_u64().is_some_and(|it| it > 0), "{result:#}");
    site.assert_no_files();
}

#[test]
fn capture_that_was_changed_on_the_bus_is_refused_and_named() {
    if !require_root() {
        return;
    }
    let Some(program) = require_nats_server() else { return };
    let nats = NatsServer::open(&program).unwrap();
    let connect = |role: &str, name: &str| -> Arc<dyn Bus> {
        let url = format!("nats://127.0.0.1:{}", nats.port());
        let options = NatsOptions::new(&url, &Machines::site(), role, name).unwrap();
        Arc::new(NatsBus::connect(options).unwrap())
    };
    let site = Site::new();
    let (eve, director) = (connect("director", "eve"), connect("director", "desk"));
    let _receiver = site.machines.agent("rx", connect("agent", "rx"));
    // The sender does not answer yet, so the director waits with the files on the bus.
    let orders = eve.subscribe(&Machines::site().agent_rpc("tx").unwrap(), 16).unwrap();
    let digest = sha256(&site.machines.scratch.file("tests/caps/a.pcap"));
    let outcome = std::thread::scope(|scope| {
        let test = scope.spawn(|| site.run("t1", &director, &replay("caps/a.pcap")));
        let order = orders.recv(SOON).unwrap();
        let order = String::from_utf8_lossy(&order.payload).into_owned();
        assert!(order.contains(&digest), "{order}");
        // Another capture of the same length.
        let object = format!("t1.{digest}.0");
        let mut capture = eve.get_object(PLANS, &object, 1 << 30).unwrap().unwrap().to_vec();
        *capture.last_mut().unwrap() ^= 1;
        eve.put_object(PLANS, &object, &capture).unwrap();
        let sender = site.machines.agent("tx", connect("agent", "tx"));
        drop(orders);
        let outcome = test.join().unwrap();
        drop(sender);
        outcome
    });
    let error = outcome.unwrap_err().to_string();
    let path = site.machines.scratch.file("tests/caps/a.pcap").display().to_string();
    let refused = format!("agent tx, files: {path}: the file is refused");
    assert!(error.starts_with(&refused) && error.contains(&digest), "{error}");
    assert_eq!(site.machines.noted(&digest), 1);
    assert_eq!(site.machines.arrived(), 0);
    // The changed object is gone too, and the next test works.
    assert_eq!(eve.get_object(PLANS, &format!("t1.{digest}.0"), 1 << 30).unwrap(), None);
    let _sender = site.machines.agent("tx", connect("agent", "tx"));
    let outcome = site.run("t2", &director, &replay("caps/a.pcap")).unwrap();
    assert_eq!((sent(&outcome), site.machines.arrived()), (site.frames[0], site.frames[0]));
}
