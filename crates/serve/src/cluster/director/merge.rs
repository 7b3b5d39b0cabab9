//! Results of a test: those of all agents, merged, with compared clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use wirestorm_control::result::{MeasuredReport, RunResult, merge_parts};
use wirestorm_control::sync::estimate::Timeline;
use wirestorm_control::sync::exchange::Exchange;
use wirestorm_control::sync::{Assumption, Comparison};

use super::super::protocol::Record;
use super::plan::PlannedRun;

/// What the log has of an iteration.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// Result of each run on each agent, and the start by the agent's clock.
    pub(super) results: BTreeMap<(String, String), (RunResult, Option<i64>)>,
    /// Node time minus monotonic clock of each agent in ns.
    node_offsets: BTreeMap<String, i64>,
    /// Results of runs that are over; the others are checkpoints.
    finals: BTreeSet<(String, String)>,
    /// Runs without a result: agent and run, with the error.
    pub(super) failed: BTreeMap<(String, String), String>,
    /// Exchanges of an agent with another one.
    exchanges: BTreeMap<(String, String), (SocketAddr, Vec<Exchange>)>,
}

impl Collected {
    /// Adds a record of an agent, if it is of this iteration.
    pub(super) fn add(&mut self, agent: &str, record: Record, of_iteration: u32) {
        match record {
            Record::Result { run, iteration, is_final, result, started_ns, node_offset_ns } => {
                let key = (agent.to_owned(), run);
                let is_final_known = self.finals.contains(&key);
                if iteration == of_iteration && (is_final || !is_final_known) {
                    if is_final {
                        self.finals.insert(key.clone());
                    }
                    self.node_offsets.insert(agent.to_owned(), node_offset_ns);
                    self.results.insert(key, (*result, started_ns));
                }
            }
            Record::Failed { run, iteration, error } if iteration == of_iteration => {
                self.failed.insert((agent.to_owned(), run), error);
            }
            Record::Exchanges { peer, address, iteration, exchanges, .. }
                if iteration == of_iteration =>
            {
                self.exchanges.insert((agent.to_owned(), peer), (address, exchanges));
            }
            _ => {}
        }
    }

    /// Returns whether the log has the exchanges of an agent with another one.
    pub(super) fn has_exchanges(&self, agent: &str, peer: &str) -> bool {
        self.exchanges.contains_key(&(agent.to_owned(), peer.to_owned()))
    }

    /// Returns whether the log has the outcome of a run on an agent.
    pub(super) fn has(&self, agent: &str, run: &str) -> bool {
        let key = (agent.to_owned(), run.to_owned());
        self.finals.contains(&key) || self.failed.contains_key(&key)
    }

    /// Returns whether there is no result and no failure of any run.
    pub(super) fn is_empty(&self) -> bool {
        self.results.is_empty() && self.failed.is_empty()
    }

    /// Returns the offset of the clock of `far` against that of `near` over time, and the path of the
    /// exchanges; `None` without a comparison.
    fn timeline(&self, near: &str, far: &str) -> Option<(Timeline, String)> {
        let of = |one: &str, other: &str| self.exchanges.get(&(one.to_owned(), other.to_owned()));
        if let Some((address, exchanges)) = of(near, far) {
            return Some((Timeline::new(exchanges), format!("STAMP to {address}")));
        }
        let (address, exchanges) = of(far, near)?;
        let reversed: Vec<Exchange> = exchanges.iter().map(Exchange::reversed).collect();
        Some((Timeline::new(&reversed), format!("STAMP to {address}")))
    }

    /// Returns the offset of the clock of `far` against that of `near` at a time of `near`, in ns.
    pub(super) fn offset(&self, near: &str, far: &str, at_ns: i64) -> Option<f64> {
        let at = wirestorm_control::sync::timestamp::Timestamp::from_nanos(at_ns);
        Some(self.timeline(near, far)?.0.at(at)?.offset_ns)
    }
}

/// How the clocks of a test are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockFacts {
    /// Whether all nodes have one clock.
    pub(super) one_clock: bool,
    /// Known asymmetry of the paths in ns.
    pub(super) asymmetry_ns: i64,
}

/// Merges the results of a run. `agents`: name of the agent of each node. Returns `None` without a
/// result.
pub(super) fn merge(
    run: &PlannedRun,
    agents: &[String],
    collected: &Collected,
    clocks: ClockFacts,
) -> Option<RunResult> {
    let mut parts = Vec::new();
    for node in run.parts.keys() {
        let agent = agents.get(*node)?;
        let key = (agent.clone(), run.name.clone());
        let Some((result, _)) = collected.results.get(&key) else { continue };
        let mut result = result.clone();
        for (index, flow) in result.flows.iter_mut().enumerate() {
            let Some(sender) = sender_of(run, index).filter(|sender| sender != node) else {
                continue;
            };
            let comparison = comparison(agent, agents.get(sender)?, collected, clocks);
            for measured in &mut flow.measured {
                correct(measured, comparison.as_ref());
            }
        }
        parts.push((agent.clone(), result));
    }
    let mut merged = merge_parts(&parts)?;
    for node in run.parts.keys() {
        let agent = agents.get(*node)?;
        if let Some(error) = collected.failed.get(&(agent.clone(), run.name.clone())) {
            merged.errors.push(format!("{agent}: {error}"));
        } else if !collected.has(agent, &run.name) {
            let key = (agent.clone(), run.name.clone());
            let what = match collected.results.contains_key(&key) {
                true => "incomplete: the agent was lost, and this is its last checkpoint",
                false => "incomplete: the agent was lost without a checkpoint",
            };
            merged.errors.push(format!("{agent}: {what}"));
            merged.interrupted = true;
        }
    }
    merged.verdict = wirestorm_control::result::Verdict::of(&merged);
    Some(merged)
}

fn sender_of(run: &PlannedRun, flow: usize) -> Option<usize> {
    let plan = run.streams.as_ref()?;
    let port = plan.flows.get(flow)?.tx_port;
    run.nodes_of_ports.get(port).copied().flatten()
}

fn comparison(
    receiver: &str,
    sender: &str,
    collected: &Collected,
    clocks: ClockFacts,
) -> Option<Comparison> {
    let offset = |agent: &str| collected.node_offsets.get(agent).copied();
    let node_offsets = [offset(sender)?, offset(receiver)?];
    if clocks.one_clock {
        return Some(Comparison {
            timeline: Timeline::constant(0.0, 0.0),
            node_offsets,
            asymmetry_ns: 0.0,
            method: "the nodes have one clock".to_owned(),
            assumption: Assumption::OneClock,
        });
    }
    let (timeline, method) = collected.timeline(receiver, sender)?;
    let asymmetry_ns = clocks.asymmetry_ns as f64;
    let assumption = Assumption::SymmetricPath;
    Some(Comparison { timeline, node_offsets, asymmetry_ns, method, assumption })
}

/// Computes the one-way delay of a flow from another machine. Without a comparison of the clocks the
/// delay is unknown, and the variation contains the drift, so both are left out.
fn correct(measured: &mut MeasuredReport, comparison: Option<&Comparison>) {
    measured.one_way = comparison.and_then(|comparison| comparison.one_way(&measured.segments));
    measured.delay = Default::default();
    measured.pdv = Default::default();
    if let Some(one_way) = &measured.one_way {
        measured.delay = one_way.delay.clone();
        measured.pdv = one_way.pdv.clone();
    }
    if let Some(series) = &mut measured.series {
        series.delay_mean_ns.fill(None);
        series.delay_max_ns.fill(None);
    }
}
