//! Compares the clocks of the agents of a test.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wirestorm_control::plan::test_plan::ClockSource;

use super::super::protocol::{Command, EXCHANGES_MIN, OffsetReport, Peer};
use super::agents::AgentLink;
use super::exactness::inexact;
use super::plan::{PlannedRun, segment_ns};
use super::{Director, ORDER_TIMEOUT, TestError};

/// Most time of a comparison that is exact enough. The longer it takes, the better is the drift.
const DRIFT_WAIT: Duration = Duration::from_secs(5);
/// Time of the exchanges that a comparison needs.
const FIRST_LOOK: Duration = Duration::from_millis(5 * EXCHANGES_MIN as u64);
/// Interval of the looks at a comparison.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

impl Director {
    /// Lets receivers compare their clocks with those of senders, and the first node with all
    /// others, and waits until the offsets are exact enough.
    pub(super) fn compare(&mut self, stop: &AtomicBool) -> Result<(), TestError> {
        let mut pairs: BTreeSet<(usize, usize)> =
            self.runs.iter().flat_map(PlannedRun::pairs).collect();
        pairs.extend(self.bench.iter().flat_map(|bench| bench.pairs(&self.test)));
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
        self.order_all("compare clocks", ORDER_TIMEOUT, |_| Some(Command::Report))?;
        let reflector = |link: &AgentLink| (link.agent.clone(), link.report.reflector.clone());
        let reflectors: BTreeMap<String, Vec<SocketAddr>> =
            self.links.iter().map(reflector).collect();
        let agents = self.agents();
        let source = self.test.clock.source;
        let interval_ns = self.test.clock.interval.as_nanos();
        let peers = |node: usize| -> Vec<Peer> {
            let far = pairs.iter().filter(|(near, _)| *near == node).map(|(_, far)| *far);
            far.filter_map(|far| agents.get(far))
                .map(|agent| Peer {
                    agent: agent.clone(),
                    addresses: match source {
                        ClockSource::Reference | ClockSource::Ptp => Vec::new(),
                        ClockSource::Auto | ClockSource::Stamp => {
                            reflectors.get(agent).cloned().unwrap_or_default()
                        }
                    },
                    interval_ns,
                })
                .collect()
        };
        self.order_all("compare clocks", ORDER_TIMEOUT, |link| {
            let is_compared = pairs.iter().any(|(near, far)| [*near, *far].contains(&link.node));
            is_compared.then(|| Command::Compare(peers(link.node)))
        })?;
        let error_max = self.test.clock.error_max.map(|error| error.as_nanos() as f64);
        // An error of the drift smears the delays of a segment: long segments need a better one.
        let drift_wait = Duration::from_nanos(2 * segment_ns(&self.test)).min(DRIFT_WAIT);
        let began = Instant::now();
        let all: BTreeSet<usize> = pairs.iter().flat_map(|(near, far)| [*near, *far]).collect();
        let mut asked = all.clone();
        // A look before there can be enough exchanges would only take time from them.
        self.wait(FIRST_LOOK, stop);
        loop {
            self.order_all("compare clocks", ORDER_TIMEOUT, |link| {
                asked.contains(&link.node).then_some(Command::Report)
            })?;
            let of_node = |node: usize| self.links.iter().find(|link| link.node == node);
            let inexact = pairs.iter().filter_map(|(near, far)| {
                let links = (of_node(*near)?, of_node(*far)?);
                let found = inexact(links.0, links.1, source, error_max, began.elapsed())?;
                let agents = format!("clocks of agents {} and {}", links.0.agent, links.1.agent);
                Some(([*near, *far], found.patience, format!("{agents}: {}", found.reason)))
            });
            let inexact: Vec<([usize; 2], Duration, String)> = inexact.collect();
            let left = drift_wait.saturating_sub(began.elapsed());
            if inexact.is_empty() && left.is_zero() {
                return Ok(());
            }
            if stop.load(Ordering::Acquire) {
                return Err(TestError::Stopped);
            }
            if let Some((.., message)) =
                inexact.iter().find(|(_, patience, _)| began.elapsed() >= *patience)
            {
                return Err(TestError::Clocks(message.clone()));
            }
            if inexact.is_empty() {
                asked.clone_from(&all);
                self.wait(left, stop);
            } else {
                asked = inexact.iter().flat_map(|(nodes, ..)| *nodes).collect();
                std::thread::sleep(LOOK_INTERVAL);
            }
        }
    }
}

/// Returns the offset of the clock of `far` against that of `near`, as their last reports have it;
/// `None` if the clocks are not compared.
pub(super) fn reported(near: &AgentLink, far: &AgentLink) -> Option<OffsetReport> {
    let session = |near: &AgentLink, far: &AgentLink| near.report.peers.get(&far.agent)?.offset;
    session(near, far)
        .or_else(|| Some(session(far, near)?.reversed()))
        .or_else(|| {
            let (near, far) = (near.report.ptp.as_ref()?, far.report.ptp.as_ref()?);
            let is_same = near.source.is_some() && near.source == far.source;
            Some(near.offset?.minus(far.offset?)).filter(|_| is_same)
        })
        .or_else(|| {
            let (near, far) = near.report.reference.zip(far.report.reference)?;
            let error_ns = (near.error_ns + far.error_ns) as f64;
            Some(OffsetReport {
                offset_ns: (far.offset_ns - near.offset_ns) as f64,
                half_width_ns: error_ns,
                bound_ns: error_ns,
                drift_ppm: 0.0,
            })
        })
}
