//! Agent: executes the runs of tests on this machine.
//!
//! ```text
//! bus ── order ──> thread `agent-rpc`    opens it, carries it out once, answers
//!     <─ status ── thread `agent-watch`  presence; checkpoints and results of runs
//!     <─ lease ─── thread `agent-lease`  asks the director; without an answer, runs stop
//!     <─ records ─ thread `agent-log`    results and exchanges, until the log has them
//!                  thread `ptp`          PTP session, from the start of the agent to its end
//!     ── files ──> thread `agent-fetch`  files and large plans of a test, checked by their digests
//! ```

mod clocks;
mod contents;
mod orders;
mod records;
mod test;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as StdInstant};

use wirestorm_api::port::LinkState;
use wirestorm_api::session::{Limits, Role};
use wirestorm_bus::subject::Site;
use wirestorm_bus::{Bus, BusError, RecvError};
use wirestorm_control::clock;
use wirestorm_control::result::HostFacts;
use wirestorm_control::sync::sources::SourceOptions;
use wirestorm_control::sync::{PtpMonitor, StampReflector};
use wirestorm_control::wire::prefix::Prefix;

use super::log::LogWriter;
use super::protocol::{Event, LeaseAnswer, LeaseRequest, PortPresence, Presence, decode, encode};
use crate::server::{Identity, Server};
use orders::OrderBook;
use test::CurrentTest;

/// Number of requests that wait while one is carried out.
const REQUESTS_MAX: usize = 256;
/// Interval of the checks of runs, and of the reports of the presence.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);
const PRESENCE_INTERVAL: Duration = Duration::from_secs(1);
/// Most interfaces in a presence, which has to fit a message.
const PORTS_MAX: usize = 1_000;
/// Time that an agent waits at its end until its records are in the log.
const LOG_WAIT: Duration = Duration::from_secs(5);

/// Options of an agent.
pub struct AgentOptions {
    /// Name, as in tests.
    pub name: String,
    /// Site, as in subjects.
    pub site: Site,
    /// Bus.
    pub bus: Arc<dyn Bus>,
    /// Hosts the runs.
    pub server: Arc<Server>,
    /// Public keys of the directors that the agent obeys.
    pub trusted: Vec<String>,
    /// Limits that no director can exceed.
    pub limits: Limits,
    /// Destinations of frames, which no director can override; empty for all. Only streams are possible
    /// with a limit.
    pub destinations: Vec<Prefix>,
    /// Answers requests of other agents that compare their clocks; `None` if none can.
    pub reflector: Option<StampReflector>,
    /// Addresses by which other agents reach the reflector.
    pub reflector_addresses: Vec<SocketAddr>,
    /// Where to look for a reference of this machine's clock; `None` compares clocks by the reflectors
    /// alone.
    pub references: Option<SourceOptions>,
    /// PTP session by which this machine's clock is compared; `None` without one.
    pub ptp: Option<PtpMonitor>,
    /// File of the orders that were carried out, so that none is repeated after a restart. `None`
    /// keeps them in memory.
    pub orders_file: Option<PathBuf>,
    /// Directory of the files of a test, which go with it; `None` for that of the system's temporary
    /// files.
    pub contents_directory: Option<PathBuf>,
    /// Called with a line of text for each test that begins or stops, and each refused order.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// A running agent. Dropping it stops its runs.
pub struct Agent {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// State of an agent.
struct Shared {
    name: String,
    site: Site,
    bus: Arc<dyn Bus>,
    server: Arc<Server>,
    trusted: Vec<String>,
    identity: Identity,
    reflector_addresses: Vec<SocketAddr>,
    references: Option<SourceOptions>,
    ptp: Option<PtpMonitor>,
    contents_directory: Option<PathBuf>,
    destinations: Vec<Prefix>,
    log: LogWriter,
    book: Mutex<OrderBook>,
    test: Mutex<Option<CurrentTest>>,
    /// Interfaces as they were last seen.
    ports: Mutex<Vec<PortPresence>>,
    stop: AtomicBool,
    write_line: Box<dyn Fn(&str) + Send + Sync>,
    _reflector: Option<StampReflector>,
}

impl Shared {
    fn test(&self) -> MutexGuard<'_, Option<CurrentTest>> {
        self.test.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Writes a line to the log, and publishes it as an event.
    fn note(&self, text: &str) {
        (self.write_line)(text);
        let event = Event { agent: self.name.clone(), text: text.to_owned() };
        if let Ok(subject) = self.site.agent_event(&self.name) {
            // Without a bus nobody reads it; the line is in the agent's own log.
            let _ = self.bus.publish(&subject, &encode(&event));
        }
    }
}

/// Reason why an agent does not start.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The bus refused.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A thread does not start, or the file of orders or the directory of files cannot be used.
    #[error("{0}")]
    Io(String),
}

impl Agent {
    /// Starts an agent.
    ///
    /// # Errors
    /// See [`AgentError`].
    pub fn start(options: AgentOptions) -> Result<Self, AgentError> {
        let identity = Identity {
            user: "director".into(),
            session: "".into(),
            role: Role::Operate,
            limits: Arc::new(options.limits.clone()),
        };
        Self::start_as(identity, options)
    }

    /// Starts an agent whose runs belong to a user of the server. The limits are those of the user.
    ///
    /// # Errors
    /// See [`AgentError`].
    pub(crate) fn start_as(identity: Identity, options: AgentOptions) -> Result<Self, AgentError> {
        let AgentOptions { name, site, bus, server, trusted, .. } = options;
        if let Some(directory) = &options.contents_directory {
            contents::clear(directory)
                .map_err(|error| AgentError::Io(format!("{}: {error}", directory.display())))?;
        }
        let requests = bus.subscribe(&site.agent_rpc(&name)?, REQUESTS_MAX)?;
        let thread = |error: io::Error| AgentError::Io(format!("cannot start a thread: {error}"));
        let shared = Arc::new(Shared {
            log: LogWriter::start(Arc::clone(&bus)).map_err(thread)?,
            book: Mutex::new(OrderBook::open(options.orders_file).map_err(AgentError::Io)?),
            name,
            site,
            bus,
            server,
            trusted,
            identity,
            reflector_addresses: options.reflector_addresses,
            references: options.references,
            ptp: options.ptp,
            contents_directory: options.contents_directory,
            destinations: options.destinations,
            test: Mutex::default(),
            ports: Mutex::default(),
            stop: AtomicBool::new(false),
            write_line: options.log,
            _reflector: options.reflector,
        });
        let mut agent = Self { shared: Arc::clone(&shared), threads: Vec::new() };
        let rpc = Arc::clone(&shared);
        let serve = move || loop {
            match requests.recv(WATCH_INTERVAL) {
                Ok(message) => {
                    let answer = rpc.carry_out(&message.payload);
                    // If the director is gone, nobody needs the answer.
                    let _ = rpc.bus.respond(&message, &encode(&answer));
                }
                Err(RecvError::Timeout) => {}
                Err(RecvError::Closed) => return,
            }
            if rpc.is_stopped() {
                return;
            }
        };
        agent.spawn("agent-rpc", serve).map_err(thread)?;
        let watch = Arc::clone(&shared);
        agent.spawn("agent-watch", move || watch.watch()).map_err(thread)?;
        agent.spawn("agent-lease", move || shared.renew_leases()).map_err(thread)?;
        Ok(agent)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(std::thread::Builder::new().name(name.into()).spawn(work)?);
        Ok(())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // A panic has been reported by the thread itself.
            let _ = thread.join();
        }
        if let Some(test) = &*self.shared.test() {
            test.stop("the agent ended");
        }
        self.shared.log_ended_runs(Some(LOG_WAIT));
        self.shared.log.wait(LOG_WAIT);
    }
}

impl Shared {
    /// Publishes the presence, and writes the results of ended runs to the log.
    fn watch(&self) {
        let mut published: Option<StdInstant> = None;
        while !self.is_stopped() {
            self.log_ended_runs(None);
            self.log_checkpoints();
            let error = self.test().as_ref().and_then(CurrentTest::take_fetch_error);
            let changes = self.ptp.iter().flat_map(PtpMonitor::take_changes);
            for text in error.into_iter().chain(changes) {
                self.note(&text);
            }
            self.server.tick();
            if published.is_none_or(|at| at.elapsed() >= PRESENCE_INTERVAL) {
                published = Some(StdInstant::now());
                if let Ok(subject) = self.site.agent_status(&self.name) {
                    // Without a bus nobody sees it; the next one follows soon.
                    let _ = self.bus.publish(&subject, &encode(&self.presence()));
                }
            }
            std::thread::sleep(WATCH_INTERVAL);
        }
    }

    fn presence(&self) -> Presence {
        Presence {
            agent: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: HostFacts::read().name,
            reflector: self.reflector_addresses.clone(),
            interfaces: self.identity.limits.ports.clone().unwrap_or_default(),
            ports: self.ports(),
            test: self.test().as_ref().map(|test| test.name.clone()),
        }
    }

    /// Returns the interfaces that the agent lends. It does not ask the kernel while a run is active,
    /// which the requests could disturb.
    fn ports(&self) -> Vec<PortPresence> {
        let mut known = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.test().as_ref().is_some_and(CurrentTest::has_active_runs) {
            let missing = |name: &String| PortPresence {
                interface: name.clone(),
                link: LinkState::Missing,
                speed_bps: None,
            };
            let port = |name: &String| {
                self.server.port(&self.identity, name).map_or_else(|_| missing(name), Into::into)
            };
            // Those that are named may be in other namespaces.
            *known = match &self.identity.limits.ports {
                Some(names) => names.iter().take(PORTS_MAX).map(port).collect(),
                None => self.server.ports().into_iter().take(PORTS_MAX).map(Into::into).collect(),
            };
        }
        known.clone()
    }

    /// Asks the director for a new lease at each third of the lease time. A lease lasts from the
    /// request on, so a late answer does not extend it.
    fn renew_leases(&self) {
        while !self.is_stopped() {
            let lease = self.test().as_ref().and_then(|test| {
                let lease = test.lease().filter(|_| test.has_active_runs())?;
                Some((lease, test.name.clone(), test.fence))
            });
            let Some((lease, test, fence)) = lease else {
                std::thread::sleep(WATCH_INTERVAL);
                continue;
            };
            let third = Duration::from_nanos(lease.as_nanos() / 3);
            let (asked, asked_std) = (clock::now(), StdInstant::now());
            let request = LeaseRequest { agent: self.name.clone(), fence };
            let answer = self.site.director_lease(&test).and_then(|subject| {
                self.bus.request(&subject, &encode(&request), third.max(WATCH_INTERVAL))
            });
            let answer = answer.map_err(|error| error.to_string());
            let granted =
                answer.and_then(|bytes| decode::<LeaseAnswer>(&bytes)).map(|it| it.granted);
            let stopped = match self.test().as_mut().filter(|it| it.name == test) {
                Some(current) => current.renewed(granted, asked),
                None => None,
            };
            if let Some(reason) = stopped {
                self.note(&format!("stopped test {test}: {reason}"));
            }
            std::thread::sleep(third.saturating_sub(asked_std.elapsed()).max(WATCH_INTERVAL / 5));
        }
    }
}
