//! A link between a client and the server that goes down.
//!
//! It has a process of its own: the event loop of all connections lives in the network namespace of
//! the thread that made the first one.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use wirestorm_bus::nats::{NatsBus, NatsOptions};
use wirestorm_bus::subject::Site;
use wirestorm_bus::{Bus, BusError};
use wirestorm_testkit::nats::{NatsServer, require_nats_server};
use wirestorm_testkit::net::{Lab, LabOptions};
use wirestorm_testkit::require::require_root;

/// Time for what must happen.
const SOON: Duration = Duration::from_secs(20);

/// Waits until something holds.
fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < SOON, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Moves this thread into a network namespace, and those that it starts.
fn enter(namespace: &str) {
    let file = File::open(format!("/run/netns/{namespace}")).unwrap();
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
}

/// Subscribes in another namespace, without the crate; sends the lines that the server sends.
fn subscriber(namespace: &str, address: SocketAddr, subject: &str) -> Receiver<String> {
    let (sender, receiver) = channel();
    let (namespace, subject) = (namespace.to_owned(), subject.to_owned());
    thread::spawn(move || {
        enter(&namespace);
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "CONNECT {{\"verbose\":false}}\r\nSUB {subject} 1\r\n").unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            if line == "PING" {
                write!(stream, "PONG\r\n").unwrap();
            }
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[test]
fn a_cut_link_counts_as_lost_and_comes_back() {
    let Some(program) = require_nats_server().filter(|_| require_root()) else { return };
    let lab = Lab::with(&LabOptions { addresses: true, ..LabOptions::default() }).unwrap();
    let address: SocketAddr = (lab.b.ipv4(), 4222).into();
    // The event loop of the bus starts in this namespace too.
    enter(lab.a.namespace().name());
    let server =
        NatsServer::open_at(&program, address, Some(lab.b.namespace().name()), "").unwrap();
    let site = Site::new("test").unwrap();
    let url = format!("nats://{address}");
    let options = NatsOptions::new(&url, &site, "director", "d").unwrap();
    let bus = NatsBus::connect(options).unwrap();
    let requests = subscriber(lab.b.namespace().name(), address, "test.rpc");
    wait_for("no subscription", || {
        !matches!(
            bus.request("test.rpc", b"first", Duration::from_millis(50)),
            Err(BusError::NoResponder { .. })
        )
    });

    lab.a.set_up(false).unwrap();
    let cut = Instant::now();
    let request = bus.request("test.rpc", b"while cut", Duration::from_millis(300));
    assert!(matches!(request, Err(BusError::Timeout { .. })), "{request:?}");
    wait_for("the loss is not seen", || !bus.state().is_connected());
    let seen = cut.elapsed();
    assert!(seen < Duration::from_secs(8), "{seen:?}");
    let publish = bus.publish("test.rpc", b"too late");
    assert!(matches!(publish, Err(BusError::Disconnected { .. })), "{publish:?}");

    lab.a.set_up(true).unwrap();
    wait_for("the bus does not connect again", || bus.state().is_connected());
    bus.publish("test.rpc", b"after").unwrap();
    bus.flush(SOON).unwrap();
    // "while cut" may arrive late: it was sent before the loss was seen, and the kernel had it.
    let lines = || std::iter::from_fn(|| requests.recv_timeout(SOON).ok());
    let until_after: Vec<String> = lines().take_while(|line| line != "after").collect();
    assert!(until_after.iter().any(|line| line == "first"), "{until_after:?}");
    assert!(!until_after.iter().any(|line| line == "too late"), "{until_after:?}");
    drop(server);
}
