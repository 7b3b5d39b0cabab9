//! The agents of a test: their leases, and orders to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wirestorm_bus::cluster::LEASES;
use wirestorm_bus::nats::Key;
use wirestorm_bus::subject::Site;
use wirestorm_bus::{Bus, BusError, Revision};

use super::super::protocol::{Answer, Command, Order, Report, SignedOrder, decode, encode};
use super::TestError;

/// Attempts to send an order. An agent carries it out once, whatever arrives how often.
const ATTEMPTS: u32 = 3;

/// What all orders of a director have in common.
#[derive(Debug)]
pub(super) struct Orders {
    pub(super) bus: Arc<dyn Bus>,
    pub(super) site: Site,
    pub(super) key: Key,
    pub(super) director: String,
    pub(super) test: String,
    /// Time of the last order.
    pub(super) issued_unix_ns: AtomicU64,
}

impl Orders {
    /// Returns the time of the next order: now, and later than all others.
    fn issue(&self) -> u64 {
        let now = wirestorm_control::clock::realtime_nanos();
        let later = |last: u64| Some(now.max(last + 1));
        let last = self.issued_unix_ns.fetch_update(Ordering::AcqRel, Ordering::Acquire, later);
        now.max(last.unwrap_or(0) + 1)
    }
}

/// Does the same with all agents at once, so that one that does not answer delays no other one.
/// Returns the outcomes in the order of the agents.
pub(super) fn each<A: Send, T: Send>(
    agents: impl Iterator<Item = A>,
    work: impl Fn(A) -> T + Sync,
) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = agents.map(|agent| scope.spawn(move || work(agent))).collect();
        // A panic has been reported by its thread.
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

/// An agent of a test.
#[derive(Debug)]
pub(super) struct AgentLink {
    /// Node of the test.
    pub(super) node: usize,
    pub(super) agent: String,
    /// Fencing token.
    pub(super) fence: u64,
    /// Revision of the lease.
    revision: Revision,
    /// Number of the last order.
    number: u64,
    /// Last report.
    pub(super) report: Report,
    /// Time of the last report.
    pub(super) seen: Instant,
    /// Why the agent is lost; `None` if it is not.
    pub(super) lost: Option<String>,
}

impl AgentLink {
    /// Takes the lease of an agent.
    ///
    /// # Errors
    /// Another test has it.
    pub(super) fn acquire(orders: &Orders, node: usize, agent: &str) -> Result<Self, TestError> {
        let failed =
            |reason: String| TestError::Agent { agent: agent.to_owned(), phase: "lease", reason };
        let mut attempt = 1;
        let revision = loop {
            match orders.bus.create(LEASES, agent, orders.test.as_bytes()) {
                Ok(revision) => break revision,
                Err(BusError::Conflict { .. }) => {
                    let entry = orders.bus.get(LEASES, agent).ok().flatten();
                    let holder = match entry {
                        // The answer to an earlier attempt was lost.
                        Some(entry) if *entry.value == *orders.test.as_bytes() => {
                            break entry.revision;
                        }
                        Some(entry) => {
                            format!("test {}", String::from_utf8_lossy(&entry.value))
                        }
                        None => "another test".to_owned(),
                    };
                    return Err(failed(format!(
                        "it belongs to {holder}: wait for its end, or stop it"
                    )));
                }
                Err(BusError::Timeout { .. }) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(failed(error.to_string())),
            }
        };
        Ok(Self {
            node,
            agent: agent.to_owned(),
            fence: revision.0,
            revision,
            number: 0,
            report: Report::default(),
            seen: Instant::now(),
            lost: None,
        })
    }

    /// Renews the lease. A lease that expired while the bus was away is taken again; the fencing token
    /// of the orders stays.
    ///
    /// # Errors
    /// The test that has taken the lease meanwhile.
    pub(super) fn renew(&mut self, orders: &Orders) -> Result<(), String> {
        let value = orders.test.as_bytes();
        match orders.bus.update(LEASES, &self.agent, value, self.revision) {
            Ok(revision) => self.revision = revision,
            Err(BusError::Conflict { .. }) => {
                if let Ok(revision) = orders.bus.create(LEASES, &self.agent, value) {
                    self.revision = revision;
                } else if let Ok(Some(entry)) = orders.bus.get(LEASES, &self.agent)
                    && *entry.value != *value
                {
                    return Err(String::from_utf8_lossy(&entry.value).into_owned());
                }
            }
            // The bus is away; agents hold out for the time of their lease.
            Err(_) => {}
        }
        Ok(())
    }

    /// Asks for a report, once.
    ///
    /// # Errors
    /// The agent does not answer.
    pub(super) fn look(&mut self, orders: &Orders, timeout: Duration) -> Result<(), TestError> {
        self.send(orders, "run", Command::Report, timeout, 1)
    }

    /// Gives the lease back. If the bus is away, it expires.
    pub(super) fn release(&mut self, orders: &Orders) {
        let _ = orders.bus.delete(LEASES, &self.agent, self.revision);
    }

    /// Sends an order and waits for the answer. `phase` names it in errors.
    ///
    /// # Errors
    /// The agent refuses, or does not answer.
    pub(super) fn order(
        &mut self,
        orders: &Orders,
        phase: &'static str,
        command: Command,
        timeout: Duration,
    ) -> Result<(), TestError> {
        self.send(orders, phase, command, timeout, ATTEMPTS)
    }

    fn send(
        &mut self,
        orders: &Orders,
        phase: &'static str,
        command: Command,
        timeout: Duration,
        attempts: u32,
    ) -> Result<(), TestError> {
        let failed = |reason: String| TestError::Agent { agent: self.agent.clone(), phase, reason };
        self.number += 1;
        let order = Order {
            agent: self.agent.clone(),
            director: orders.director.clone(),
            test: orders.test.clone(),
            fence: self.fence,
            number: self.number,
            issued_unix_ns: orders.issue(),
            command,
        };
        let bus_failed = |error: BusError| failed(error.to_string());
        let subject = orders.site.agent_rpc(&self.agent).map_err(bus_failed)?;
        let payload = encode(&SignedOrder::new(&order, &orders.key).map_err(bus_failed)?);
        let mut attempt = 1;
        let answer = loop {
            match orders.bus.request(&subject, &payload, timeout) {
                Ok(answer) => break answer,
                Err(BusError::NoResponder { .. }) => {
                    let reason =
                        "there is no agent of this name on the bus: start `wirestorm agent`";
                    return Err(failed(reason.to_owned()));
                }
                Err(error) if attempt == attempts => return Err(failed(error.to_string())),
                Err(_) => attempt += 1,
            }
        };
        match decode(&answer).map_err(failed)? {
            Answer::Done(report) => {
                self.report = *report;
                Ok(())
            }
            Answer::Refused { reason } => Err(failed(reason)),
        }
    }
}
