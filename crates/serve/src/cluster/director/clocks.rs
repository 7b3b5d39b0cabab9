//! Compares the clocks of the agents of a test.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::protocol::{Command, Peer};
use super::plan::PlannedRun;
use super::{Director, ORDER_TIMEOUT, REPORT_INTERVAL, TestError};

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
        let reflectors = self.reflectors(&pairs, stop)?;
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
}
