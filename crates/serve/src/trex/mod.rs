//! TRex's RPC: JSON-RPC over ZeroMQ, so that TRex's own clients drive this server.
//!
//! ```text
//! REQ ─TCP─> listen ─> zmtp ─> compression ─> rpc: batches, errors ─> commands: table by name
//! SUB <─TCP─ listen <─ "{}" after each event                             │
//!                                                                        v
//!   Trex ── interfaces   facts and counters of the ports' interfaces   handlers: ownership,
//!        ├─ state        ports, profiles, streams, sessions, groups    streams, traffic, ...
//!        ├─ captures     packet sockets with their frames                │
//!        ├─ nodes        network namespaces behind the ports           │
//!        └─ threads      latency traffic, capture ports, ports as hosts  │
//!                                                       Server: leases and runs
//! ```
//!
//! A request of one client runs on a thread for what blocks; those of other clients run beside it.
//! No handler holds the lock of the state while it waits for a run.

mod astf;
mod attributes;
mod capture_endpoint;
mod capture_port;
mod captures;
mod commands;
mod compression;
mod counters;
mod events;
mod frame_socket;
mod fuzz;
mod general;
mod groups;
mod hdr_histogram;
mod interface;
mod listen;
mod networks;
mod nodes;
mod ownership;
mod packets;
mod pair_socket;
mod parameters;
mod port;
mod replay;
mod responder;
mod rpc;
mod streams;
mod tagged;
mod traffic;
mod transmission;
mod zmtp;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;
use tokio::sync::watch;

use crate::server::Server;
use astf::Astf;
use captures::Captures;
use counters::Rates;
use events::{Event, Sessions};
use groups::Groups;
use interface::Interface;
use nodes::Nodes;
use port::Port;
use rpc::{Answer, Execute};
use tagged::Tagged;

#[doc(hidden)]
pub use fuzz::check_trex_message;
pub(crate) use listen::TrexThread;
pub use listen::{TrexError, TrexOption};
pub use networks::{ClientNetwork, ClientNetworkError};

/// What a TRex server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrexMode {
    /// Stateless: streams.
    Stl,
    /// Advanced stateful: clients and servers.
    Astf,
}

impl TrexMode {
    /// Returns TRex's name of the mode.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stl => "STL",
            Self::Astf => "ASTF",
        }
    }
}

/// Interval at which the server compares links and leases with what it has published.
const SLOW_INTERVAL: Duration = Duration::from_millis(500);

/// A TRex server over the ports of a [`Server`].
pub(crate) struct Trex {
    server: Arc<Server>,
    mode: TrexMode,
    /// Token that clients repeat with each request.
    api_handler: String,
    started_unix_ns: u64,
    interfaces: Vec<Interface>,
    state: Mutex<State>,
    captures: Captures,
    nodes: Nodes,
    /// Changes with each event.
    wake: watch::Sender<u64>,
}

/// What requests read and change.
struct State {
    sessions: Sessions,
    ports: Vec<Port>,
    groups: Groups,
    tagged: Tagged,
    rates: Rates,
    astf: Astf,
}

impl Trex {
    fn new(server: Arc<Server>, mode: TrexMode) -> Result<Arc<Self>, TrexError> {
        let ports = server.configured_ports();
        if ports.is_empty() {
            return Err(TrexError::NoPorts);
        }
        let interfaces = ports.iter().map(|port| Interface::open(&port.name, &port.interface));
        let interfaces = interfaces.collect::<Result<Vec<_>, _>>()?;
        let ports = (0..interfaces.len()).map(|number| {
            let other = interfaces.get(number ^ 1);
            Port::new(other.map(|other| other.facts().mac))
        });
        nodes::remove_orphans();
        let state = State {
            sessions: Sessions::default(),
            ports: ports.collect(),
            groups: Groups::default(),
            tagged: Tagged::default(),
            rates: Rates::default(),
            astf: Astf::default(),
        };
        Ok(Arc::new(Self {
            nodes: Nodes::new(&interfaces),
            server,
            mode,
            api_handler: token().ok_or(TrexError::NoRandom)?,
            started_unix_ns: wirestorm_control::clock::realtime_nanos(),
            interfaces,
            state: Mutex::new(state),
            captures: Captures::default(),
            wake: watch::Sender::new(0),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues events and wakes the clients.
    fn publish(&self, state: &mut State, events: impl IntoIterator<Item = Event>) {
        let mut count = 0;
        for event in events {
            state.sessions.publish(&event);
            count += 1;
        }
        if count > 0 {
            self.wake();
        }
    }

    /// Tells the clients to ask for their events.
    fn wake(&self) {
        self.wake.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Publishes what changed without a request: traffic that ended, links, leases that other
    /// protocols took.
    fn tick(&self) {
        self.settle();
        self.sample();
        self.publish_links();
        self.publish_lost_leases();
    }
}

impl Execute for Arc<Trex> {
    fn execute(&self, method: &str, parameters: Option<&Value>) -> Option<Answer> {
        commands::execute(self, method, parameters)
    }
}

/// Returns eight random letters and digits; `None` if the system has no random numbers.
fn token() -> Option<String> {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % 62])).collect())
}

/// Returns the time in seconds that TRex's clients see: of the monotonic clock.
fn now_s() -> f64 {
    wirestorm_control::clock::now().as_nanos() as f64 / 1e9
}
