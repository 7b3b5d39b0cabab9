//! The NATS back end when the server ends, hangs and comes back.

use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use wirestorm_bus::{
    BucketConfig, Bus, BusError, Change, ConnectionState, LogConfig, RecvError, Revision,
};
use wirestorm_testkit::nats::{NatsServer, free_port, require_nats_server};

use crate::{SOON, connect, wait_for};

fn wait_until_connected(bus: &Arc<dyn Bus>) {
    wait_for("the bus does not connect again", || bus.state().is_connected());
}

fn wait_until_lost(bus: &Arc<dyn Bus>) {
    wait_for("the loss is not seen", || !bus.state().is_connected());
}

#[test]
fn a_server_that_is_absent_is_told() {
    let port = free_port().unwrap();
    let error = wirestorm_bus::nats::NatsBus::connect(crate::options(port)).unwrap_err();
    assert!(matches!(error, BusError::Disconnected { .. }), "{error:?}");
    assert!(error.to_string().contains(&port.to_string()), "{error}");
}

#[test]
fn a_lost_connection_comes_back_with_its_subscriptions() {
    let Some(program) = require_nats_server() else { return };
    let mut server = NatsServer::open(&program).unwrap();
    let (bus, other) = (connect(server.port()), connect(server.port()));
    let subscription = bus.subscribe("test.a", 8).unwrap();
    let changes = bus.state_changes();
    server.kill();
    wait_until_lost(&bus);
    server.start().unwrap();
    wait_until_connected(&bus);
    wait_until_connected(&other);
    bus.flush(SOON).unwrap();
    other.publish("test.a", b"after").unwrap();
    assert_eq!(&*subscription.recv(SOON).unwrap().payload, b"after");
    let mut states = Vec::new();
    while let Ok(state) = changes.recv(Duration::from_millis(100)) {
        states.push(state.is_connected());
    }
    assert_eq!((states.first(), states.last()), (Some(&true), Some(&true)));
    assert!(states.contains(&false), "{states:?}");
}

#[test]
fn without_a_connection_calls_fail_at_once_and_nothing_is_sent_later() {
    let Some(program) = require_nats_server() else { return };
    let mut server = NatsServer::open(&program).unwrap();
    let (bus, other) = (connect(server.port()), connect(server.port()));
    let subscription = other.subscribe("test.>", 8).unwrap();
    server.kill();
    wait_until_lost(&bus);
    let started = Instant::now();
    let errors = [
        bus.publish("test.a", b"stale").unwrap_err(),
        bus.request("test.a", b"stale", SOON).unwrap_err(),
        bus.flush(SOON).unwrap_err(),
        bus.subscribe("test.b", 1).map(drop).unwrap_err(),
        bus.get("leases", "a").map(drop).unwrap_err(),
        bus.update("leases", "a", b"", Revision(1)).map(drop).unwrap_err(),
        bus.append("results", "test.result", "1", b"").map(drop).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, BusError::Disconnected { .. }), "{error:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    server.start().unwrap();
    wait_until_connected(&bus);
    wait_until_connected(&other);
    other.flush(SOON).unwrap();
    bus.publish("test.a", b"fresh").unwrap();
    assert_eq!(&*subscription.recv(SOON).unwrap().payload, b"fresh");
    assert_eq!(subscription.recv(Duration::from_millis(100)), Err(RecvError::Timeout));
}

#[test]
fn a_request_in_flight_ends_with_the_connection_and_is_sent_once() {
    let Some(program) = require_nats_server() else { return };
    let mut server = NatsServer::open(&program).unwrap();
    let (client, agent) = (connect(server.port()), connect(server.port()));
    let requests = agent.subscribe("test.rpc", 8).unwrap();
    let sender = Arc::clone(&client);
    let in_flight = thread::spawn(move || {
        let started = Instant::now();
        (sender.request("test.rpc", b"start", Duration::from_secs(60)), started.elapsed())
    });
    assert_eq!(&*requests.recv(SOON).unwrap().payload, b"start");
    server.kill();
    let (result, time) = in_flight.join().unwrap();
    assert!(matches!(result, Err(BusError::Disconnected { .. })), "{result:?}");
    assert!(time < SOON, "{time:?}");
    server.start().unwrap();
    wait_until_connected(&client);
    wait_until_connected(&agent);
    agent.flush(SOON).unwrap();
    client.flush(SOON).unwrap();
    assert_eq!(requests.recv(Duration::from_millis(300)), Err(RecvError::Timeout));
}

#[test]
fn a_server_that_hangs_counts_as_lost() {
    let Some(program) = require_nats_server() else { return };
    let mut server = NatsServer::open(&program).unwrap();
    let bus = connect(server.port());
    let signal = |name: &str| {
        let id = server.pid().unwrap().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    };
    // Nobody answers, also while the server has not stopped yet.
    let _requests = bus.subscribe("test.rpc", 8).unwrap();
    bus.flush(SOON).unwrap();
    signal("-STOP");
    let request = bus.request("test.rpc", b"", Duration::from_millis(300));
    assert!(matches!(request, Err(BusError::Timeout { .. })), "{request:?}");
    let stopped = Instant::now();
    wait_until_lost(&bus);
    assert!(stopped.elapsed() < Duration::from_secs(10), "{:?}", stopped.elapsed());
    signal("-CONT");
    wait_until_connected(&bus);
    bus.flush(SOON).unwrap();
    server.kill();
}

#[test]
fn what_was_acknowledged_survives_the_kill_of_the_server() {
    let Some(program) = require_nats_server() else { return };
    let mut server = NatsServer::open(&program).unwrap();
    let bus = connect(server.port());
    let log = LogConfig {
        name: "results".into(),
        pattern: "test.result.>".into(),
        age_max: None,
        bytes_max: 1 << 20,
        duplicate_window: Duration::from_secs(600),
    };
    bus.create_log(&log).unwrap();
    let bucket = BucketConfig { name: "leases".into(), time_to_live: None, bytes_max: 1 << 20 };
    bus.create_bucket(&bucket).unwrap();
    let revision = bus.create("leases", "a", b"1").unwrap();
    let watch = bus.watch("leases", ">").unwrap();
    assert!(matches!(watch.recv(SOON), Ok(Change::Put(entry)) if entry.revision == revision));
    for number in 0..20_u8 {
        bus.append("results", "test.result.a", &number.to_string(), &[number]).unwrap();
    }
    server.kill();
    wait_until_lost(&bus);
    server.start().unwrap();
    wait_until_connected(&bus);
    // The server recovers its streams after it accepts connections.
    wait_for("the log does not come back", || bus.read("results", ">", 1, 1).is_ok());
    let read = bus.read("results", ">", 1, 100).unwrap();
    let numbers: Vec<u8> = read.iter().map(|entry| entry.payload[0]).collect();
    assert_eq!(numbers, (0..20).collect::<Vec<u8>>());
    // A repeated message is known after the restart too.
    let again = bus.append("results", "test.result.a", "19", &[19]).unwrap();
    assert!(again.is_duplicate);
    let next = bus.update("leases", "a", b"2", revision).unwrap();
    assert!(next > revision);
    match watch.recv(SOON).unwrap() {
        Change::Put(entry) => assert_eq!((entry.revision, &*entry.value), (next, &b"2"[..])),
        other @ Change::Removed { .. } => panic!("{other:?}"),
    }
}

#[test]
fn the_state_has_the_known_faults_of_the_server() {
    let Some(program) = require_nats_server() else { return };
    let server = NatsServer::open(&program).unwrap();
    let bus = connect(server.port());
    let ConnectionState::Connected(found) = bus.state() else { panic!("{:?}", bus.state()) };
    let output = Command::new(&program).arg("--version").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.trim().ends_with(&format!("v{}", found.version)), "{text} {found:?}");
    let expected = wirestorm_bus::nats::advisories::of_version(&found.version);
    assert_eq!(found.advisories, expected);
    assert_eq!(expected.is_empty(), !found.version.starts_with("2.9."), "{found:?}");
}

#[test]
fn a_hundred_connections_share_one_thread() {
    let Some(program) = require_nats_server() else { return };
    let server = NatsServer::open(&program).unwrap();
    let status = |field: &str| -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let first = connect(server.port());
    let (threads, kilobytes) = (status("Threads:"), status("VmRSS:"));
    let started = Instant::now();
    let buses: Vec<Arc<dyn Bus>> = (0..100).map(|_| connect(server.port())).collect();
    let inboxes: Vec<_> = buses.iter().map(|bus| bus.subscribe("test.all", 8).unwrap()).collect();
    first.publish("test.all", b"hello").unwrap();
    for inbox in &inboxes {
        assert_eq!(&*inbox.recv(SOON).unwrap().payload, b"hello");
    }
    let (time, more) = (started.elapsed(), status("VmRSS:").saturating_sub(kilobytes));
    println!("100 connections in {time:?}, {more} kB more");
    assert_eq!(status("Threads:"), threads);
    assert!(more < 40_000, "{more} kB for 100 connections");
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    drop((buses, inboxes));
    // Each connection ends with its bus.
    wait_for("the connections stay open", || open() + 100 <= before);
}
