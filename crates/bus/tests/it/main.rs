//! The contract of the buses, and the NATS back end against a real server.

mod connection;
mod contract;
mod permissions;

use std::sync::Arc;
use std::time::{Duration, Instant};

use wirestorm_bus::Bus;
use wirestorm_bus::nats::{NatsBus, NatsOptions};
use wirestorm_bus::subject::Site;

/// Time for what must happen.
const SOON: Duration = Duration::from_secs(20);

fn options(port: u16) -> NatsOptions {
    let site = Site::new("test").unwrap();
    NatsOptions::new(&format!("nats://127.0.0.1:{port}"), &site, "director", "test").unwrap()
}

/// Connects to a server without keys.
fn connect(port: u16) -> Arc<dyn Bus> {
    Arc::new(NatsBus::connect(options(port)).unwrap())
}

/// Waits until something holds.
fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < SOON, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
