//! Compares the clocks of the agents of a test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::protocol::{Command, Peer, Presence, decode};
use super::plan::PlannedRun;
use super::{Director, ORDER_TIMEOUT, REPORT_INTERVAL, TestError};

/// Time to wait for the presence of all agents.
const PRESENCE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time to wait for a comparison of clocks, and exchanges that it needs.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(10);
const EXCHANGES_MIN: usize = 50;

impl Director {
    /// Lets receivers compare their clocks with those of senders, and the first node with all
    /// others, and waits until the offsets are exact enough.
    pub(super) fn compare(&mut self, stop: &AtomicBool) -> Result<(), TestError> {
        let mut pairs: BTreeSet<(usize, usize)> =
            self.runs.iter().flat_map(PlannedRun::pairs).collect();
        let nodes: Vec<usize> = self.links.iter().map(|link| link.node).collect();
        if let Some((reference, others)) = nodes.split_first() {
            for other in others {
                if !pairs.contains(&(*other, *reference)) {
                    pairs.insert((*reference, *other));
                }
            }
        }
        if pairs.is_empty() {
            return Ok(());
        }
        let reflectors = self.reflectors(&pairs)?;
        let agents = self.agents();
        let interval_ns = self.test.clock.interval.as_nanos();
        let peers = |node: usize| -> Vec<Peer> {
            let far = pairs.iter().filter(|(near, _)| *near == node).map(|(_, far)| *far);
            far.filter_map(|far| agents.get(far))
                .map(|agent| Peer {
                    agent: agent.clone(),
                    addresses: reflectors.get(agent).cloned().unwrap_or_default(),
                    interval_ns,
                })
                .collect()
        };
        self.order_all("compare clocks", ORDER_TIMEOUT, |link| {
            let peers = peers(link.node);
            (!peers.is_empty()).then_some(Command::Compare(peers))
        })?;
        let error_max = self.test.clock.error_max.map(|error| error.as_nanos() as f64);
        let until = Instant::now() + COMPARE_TIMEOUT;
        loop {
            self.order_all("compare clocks", ORDER_TIMEOUT, |_| Some(Command::Report))?;
            let mut missing = None;
            for link in &self.links {
                for (peer, report) in &link.report.peers {
                    let offset = report.offset.filter(|_| report.exchanges >= EXCHANGES_MIN);
                    let is_exact = offset.is_some_and(|offset| {
                        error_max.is_none_or(|error_max| offset.half_width_ns <= error_max)
                    });
                    if !is_exact {
                        missing = Some((link.agent.clone(), peer.clone(), report.clone()));
                    }
                }
            }
            let Some((near, far, report)) = missing else { return Ok(()) };
            if stop.load(Ordering::Acquire) {
                return Err(TestError::Stopped);
            }
            if Instant::now() >= until {
                let what = match report.offset {
                    None => format!(
                        "{} exchanges with {}: check that UDP port {} of it is open",
                        report.exchanges,
                        report.address,
                        report.address.port()
                    ),
                    Some(offset) => format!(
                        "the error is {:.0} ns, expected at most {:.0} ns (clock.error_max)",
                        offset.half_width_ns,
                        error_max.unwrap_or(0.0)
                    ),
                };
                return Err(TestError::Clocks(format!(
                    "clocks of agents {near} and {far}: {what}"
                )));
            }
            std::thread::sleep(REPORT_INTERVAL);
        }
    }

    /// Returns the addresses of the reflectors of the far ends, from the presence of their agents.
    fn reflectors(
        &self,
        pairs: &BTreeSet<(usize, usize)>,
    ) -> Result<BTreeMap<String, Vec<std::net::SocketAddr>>, TestError> {
        let agents = self.agents();
        let mut missing: BTreeSet<&String> =
            pairs.iter().filter_map(|(_, far)| agents.get(*far)).collect();
        let presences = self.orders.bus.subscribe(&self.orders.site.all_agent_status(), 4_096)?;
        let until = Instant::now() + PRESENCE_TIMEOUT;
        let mut reflectors = BTreeMap::new();
        while let Some(agent) = missing.first() {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(message) = presences.recv(left.max(Duration::from_millis(1))) else {
                return Err(TestError::Agent {
                    agent: (*agent).clone(),
                    phase: "presence",
                    reason: "it does not report its presence: start `wirestorm agent`".to_owned(),
                });
            };
            let Ok(presence) = decode::<Presence>(&message.payload) else { continue };
            if missing.remove(&presence.agent) {
                if presence.reflector.is_empty() {
                    let reason = "it has no reflector: start it without --no-reflector".to_owned();
                    let agent = presence.agent;
                    return Err(TestError::Agent { agent, phase: "compare clocks", reason });
                }
                reflectors.insert(presence.agent, presence.reflector);
            }
        }
        Ok(reflectors)
    }
}
