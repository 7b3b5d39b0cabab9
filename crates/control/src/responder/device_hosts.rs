//! Hosts of emulated devices, independent of runs. Several may share an interface.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use wirestorm_base::time::Duration;
use wirestorm_io::clock;
use wirestorm_stack::Host;
use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

use super::packet_socket_host::{HostError, PacketSocketHost};
use super::ping::{PingOptions, ping};

/// A host of a device.
#[derive(Clone, Debug)]
pub struct DeviceHost {
    /// Interface.
    pub interface: String,
    /// Ethernet address.
    pub mac: MacAddress,
    /// VLAN tags, the outer first: protocol identifier, priority and VLAN ID.
    pub tags: Vec<(u16, u8, u16)>,
    /// IP addresses, each with its prefix length.
    pub addresses: Vec<Prefix>,
    /// Default gateways.
    pub gateways: Vec<IpAddr>,
}

/// Hosts that answer ARP, neighbour discovery and pings until this is dropped.
pub struct DeviceHosts {
    hosts: Vec<Arc<Mutex<PacketSocketHost>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Time that a thread holds its host. A resolution waits for it.
const LISTEN_TIME: Duration = Duration::from_millis(10);
/// Time for others to take the host.
const YIELD_TIME: StdDuration = StdDuration::from_micros(50);
/// Time between attempts while the interface is down.
const LINK_DOWN_RETRY: StdDuration = StdDuration::from_millis(20);
/// Time to wait for an echo reply.
const PING_PATIENCE: Duration = Duration::from_millis(300);
/// Payload of an echo request in bytes, as ping(8) sends.
const PING_PAYLOAD: u16 = 56;
/// Number of requests to a neighbour, about a second apart.
const TRIES: u32 = 3;

impl DeviceHosts {
    /// Opens the hosts, announces their addresses and starts a thread for each.
    ///
    /// # Errors
    /// An interface does not open, or a thread does not start.
    pub fn start(hosts: Vec<DeviceHost>) -> Result<Self, HostError> {
        let mut started = Self { hosts: Vec::new(), stop: Arc::default(), threads: Vec::new() };
        for DeviceHost { interface, mac, tags, addresses, gateways } in hosts {
            let tag = |(protocol, priority, id): (u16, u8, u16)| {
                let control = u16::from(priority) << 13 | id;
                [protocol.to_be_bytes(), control.to_be_bytes()].concat()
            };
            let tags = tags.into_iter().flat_map(tag).collect();
            let host = Host { mac, addresses, gateways, tags, ..Host::default() };
            let host = PacketSocketHost::open_host(&interface, host)?;
            started.hosts.push(Arc::new(Mutex::new(host)));
        }
        // All hosts are open, so they receive the announcements.
        for host in &started.hosts {
            host.lock().unwrap_or_else(PoisonError::into_inner).announce()?;
        }
        for host in &started.hosts {
            let (host, stop) = (Arc::clone(host), Arc::clone(&started.stop));
            let thread = std::thread::Builder::new()
                .name("device".to_owned())
                .spawn(move || answer(&host, &stop))
                .map_err(HostError::Thread)?;
            started.threads.push(thread);
        }
        Ok(started)
    }

    /// Returns the Ethernet address of a neighbour of the host at an index. Waits for its answer for
    /// about 3 s.
    ///
    /// # Errors
    /// The neighbour does not answer, or the host has no route to it.
    pub fn resolve(&self, host: usize, address: IpAddr) -> Result<MacAddress, String> {
        let host = self.hosts.get(host).ok_or("no such host")?;
        let mut host = host.lock().unwrap_or_else(PoisonError::into_inner);
        let resolved = host.resolve_while(address, |request| request.tries < TRIES);
        resolved.map(|(_, mac)| mac).map_err(|error| error.to_string())
    }

    /// Sends an echo request from the host at an index. Returns whether a reply arrives within
    /// 300 ms; finds the next hop before, as [`Self::resolve`].
    pub fn ping(&self, host: usize, target: IpAddr) -> bool {
        let Some(host) = self.hosts.get(host) else { return false };
        let mut host = host.lock().unwrap_or_else(PoisonError::into_inner);
        if host.resolve_while(target, |request| request.tries < TRIES).is_err() {
            return false;
        }
        let options = PingOptions {
            target,
            count: 1,
            interval: PING_PATIENCE,
            patience: PING_PATIENCE,
            payload: PING_PAYLOAD,
        };
        let report = ping(&mut host, &options, &AtomicBool::new(false), |_| ());
        report.is_ok_and(|report| report.received > 0)
    }
}

/// Answers until `stop` is set.
fn answer(host: &Mutex<PacketSocketHost>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let until = clock::now().saturating_add(LISTEN_TIME);
        let answered = host
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .listen(until, |_, _| ControlFlow::<()>::Continue(()));
        std::thread::sleep(if answered.is_ok() { YIELD_TIME } else { LINK_DOWN_RETRY });
    }
}

impl Drop for DeviceHosts {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The panic hook has printed a panic.
            let _ = thread.join();
        }
    }
}
