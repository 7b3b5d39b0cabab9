//! Agents that report their presence on the bus.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::protocol::Presence;
use super::{Director, TestError};

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
        let mut missing: BTreeSet<String> =
            self.used().into_iter().map(|(_, agent)| agent).collect();
        let site = &self.orders.site;
        let reports = self.orders.bus.subscribe(&site.all_agent_status(), REPORTS_MAX)?;
        let began = Instant::now();
        while let Some(agent) = missing.first() {
            if stop.load(Ordering::Acquire) {
                return Err(TestError::Stopped);
            }
            if began.elapsed() >= self.wait {
                return Err(TestError::Agent {
                    agent: agent.clone(),
                    phase: "presence",
                    reason: "it does not report its presence: start `wirestorm agent`".to_owned(),
                });
            }
            // A lost connection comes back by itself, within the time or later.
            let Ok(message) = reports.recv(LOOK_INTERVAL) else { continue };
            if let Some(presence) = Presence::read(&message, site) {
                missing.remove(&presence.agent);
            }
        }
        Ok(())
    }
}
