//! Agents that report their presence on the bus.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::protocol::{Presence, decode};
use super::{Director, TestError};

/// Time to wait for the presence of agents that have answered orders.
const PRESENCE_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval of the checks for a stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Reports that wait while one is read.
const REPORTS_MAX: usize = 4_096;

impl Director {
    /// Waits until all agents that have something to do report their presence, if the test has a
    /// time to wait.
    ///
    /// # Errors
    /// One does not report in time, or `stop` is set.
    pub(super) fn wait_for_agents(&self, stop: &AtomicBool) -> Result<(), TestError> {
        if self.wait.is_zero() {
            return Ok(());
        }
        let agents = self.used().into_iter().map(|(_, agent)| agent).collect();
        self.presences(agents, self.wait, stop).map(drop)
    }

    /// Returns the addresses of the reflectors of the far ends, from the presence of their agents.
    /// Agents that start without a reflector have none.
    pub(super) fn reflectors(
        &self,
        pairs: &BTreeSet<(usize, usize)>,
        stop: &AtomicBool,
    ) -> Result<BTreeMap<String, Vec<SocketAddr>>, TestError> {
        let agents = self.agents();
        let far = pairs.iter().filter_map(|(_, far)| agents.get(*far).cloned()).collect();
        let mut reflectors = BTreeMap::new();
        for Presence { agent, reflector, .. } in self.presences(far, PRESENCE_TIMEOUT, stop)? {
            reflectors.insert(agent, reflector);
        }
        Ok(reflectors)
    }

    /// Returns the presence of each of the agents.
    ///
    /// # Errors
    /// One does not report within `time`, or `stop` is set.
    fn presences(
        &self,
        mut missing: BTreeSet<String>,
        time: Duration,
        stop: &AtomicBool,
    ) -> Result<Vec<Presence>, TestError> {
        let reports =
            self.orders.bus.subscribe(&self.orders.site.all_agent_status(), REPORTS_MAX)?;
        let began = Instant::now();
        let mut presences = Vec::new();
        while let Some(agent) = missing.first() {
            if stop.load(Ordering::Acquire) {
                return Err(TestError::Stopped);
            }
            if began.elapsed() >= time {
                return Err(TestError::Agent {
                    agent: agent.clone(),
                    phase: "presence",
                    reason: "it does not report its presence: start `wirestorm agent`".to_owned(),
                });
            }
            // A lost connection comes back by itself, within the time or later.
            let Ok(message) = reports.recv(LOOK_INTERVAL) else { continue };
            let Ok(presence) = decode::<Presence>(&message.payload) else { continue };
            if missing.remove(&presence.agent) {
                presences.push(presence);
            }
        }
        Ok(presences)
    }
}
