//! Compares the clocks of the agents of a test.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wirestorm_control::plan::test_plan::ClockSource;

use super::super::protocol::{Command, EXCHANGES_MIN, Peer};
use super::agents::AgentLink;
use super::plan::{PlannedRun, segment_ns};
use super::{Director, ORDER_TIMEOUT, TestError};

/// Time to wait for a comparison of clocks.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(10);
/// Most time of a comparison that is exact enough. The longer it takes, the better is the drift.
const DRIFT_WAIT: Duration = Duration::from_secs(5);
/// Interval of the looks at a comparison.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Time to wait for exchanges if references are exact enough: exchanges also show the drift.
const SESSION_WAIT: Duration = Duration::from_secs(3);

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
                        ClockSource::Reference => Vec::new(),
                        _ => reflectors.get(agent).cloned().unwrap_or_default(),
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
        let until = began + COMPARE_TIMEOUT;
        let all: BTreeSet<usize> = pairs.iter().flat_map(|(near, far)| [*near, *far]).collect();
        let mut asked = all.clone();
        loop {
            self.order_all("compare clocks", ORDER_TIMEOUT, |link| {
                asked.contains(&link.node).then_some(Command::Report)
            })?;
            let of_node = |node: usize| self.links.iter().find(|link| link.node == node);
            let inexact = pairs.iter().filter_map(|(near, far)| {
                let links = (of_node(*near)?, of_node(*far)?);
                let reason = inexact(links.0, links.1, source, error_max, began.elapsed())?;
                let agents = format!("clocks of agents {} and {}", links.0.agent, links.1.agent);
                Some(([*near, *far], format!("{agents}: {reason}")))
            });
            let inexact: Vec<([usize; 2], String)> = inexact.collect();
            let left = drift_wait.saturating_sub(began.elapsed());
            if inexact.is_empty() && left.is_zero() {
                return Ok(());
            }
            if stop.load(Ordering::Acquire) {
                return Err(TestError::Stopped);
            }
            match inexact.first() {
                Some((_, message)) if Instant::now() >= until => {
                    return Err(TestError::Clocks(message.clone()));
                }
                Some(_) => {
                    asked = inexact.iter().flat_map(|(nodes, _)| *nodes).collect();
                    std::thread::sleep(LOOK_INTERVAL);
                }
                None => {
                    asked.clone_from(&all);
                    self.wait(left, stop);
                }
            }
        }
    }
}

/// Returns why the clocks of two agents are not known exactly enough; `None` if they are.
fn inexact(
    near: &AgentLink,
    far: &AgentLink,
    source: ClockSource,
    error_max: Option<f64>,
    waited: Duration,
) -> Option<String> {
    let is_exact = |error_ns: f64| error_max.is_none_or(|most| error_ns <= most);
    let too_wide = |error_ns: f64| {
        format!(
            "the error is {error_ns:.0} ns, expected at most {:.0} ns (clock.error_max)",
            error_max.unwrap_or(0.0)
        )
    };
    let references = near.report.reference.zip(far.report.reference);
    let references = references.filter(|_| source != ClockSource::Stamp);
    let error_ns = references.map(|(near, far)| (near.error_ns + far.error_ns) as f64);
    let session = near.report.peers.get(&far.agent);
    let is_alone = source == ClockSource::Reference || session.is_none() || waited >= SESSION_WAIT;
    if is_alone && error_ns.is_some_and(is_exact) {
        return None;
    }
    if source == ClockSource::Reference {
        return Some(error_ns.map_or_else(
            || {
                let without = |link: &&AgentLink| link.report.reference.is_none();
                let agents: Vec<&str> =
                    [near, far].into_iter().filter(without).map(|it| &*it.agent).collect();
                format!(
                    "no reference with a known error on {}: look at `wirestorm clock show` there",
                    agents.join(" and ")
                )
            },
            too_wide,
        ));
    }
    let Some(session) = session else {
        return Some(format!(
            "agent {} has no reflector, and there is no reference with a known error: start it \
             without --no-reflector",
            far.agent
        ));
    };
    match session.offset.filter(|_| session.exchanges >= EXCHANGES_MIN) {
        Some(offset) if is_exact(offset.half_width_ns) => None,
        Some(offset) => Some(too_wide(offset.half_width_ns)),
        None => Some(format!(
            "{} exchanges with {}: check that UDP port {} of it is open",
            session.exchanges,
            session.address,
            session.address.port()
        )),
    }
}
