//! Results of a test: those of all agents, merged, with compared clocks.

use wirestorm_control::result::{MeasuredReport, RunResult, merge_parts};
use wirestorm_control::sync::estimate::Timeline;
use wirestorm_control::sync::{Assumption, Comparison};

use super::collected::Collected;
use super::plan::PlannedRun;

/// How the clocks of a test are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockFacts {
    /// Whether all nodes have one clock.
    pub(super) one_clock: bool,
    /// Known asymmetry of the paths in ns.
    pub(super) asymmetry_ns: i64,
}

/// Merges the results of a run in an iteration. `agents`: name of the agent of each node. Returns
/// `None` without a result.
pub(super) fn merge(
    run: &PlannedRun,
    agents: &[String],
    collected: &Collected,
    iteration: u32,
    clocks: ClockFacts,
) -> Option<RunResult> {
    let of_agent = |agent: &str| collected.result(iteration, agent, &run.name);
    let mut parts = Vec::new();
    for node in run.parts.keys() {
        let agent = agents.get(*node)?;
        let Some(collected_run) = of_agent(agent) else { continue };
        let mut result = collected_run.result.clone();
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
    name_ports(&mut merged, run);
    for node in run.parts.keys() {
        let agent = agents.get(*node)?;
        if let Some(error) = collected.failure(iteration, agent, &run.name) {
            merged.errors.push(format!("{agent}: {error}"));
            continue;
        }
        let reached = match of_agent(agent) {
            Some(of_agent) if of_agent.is_final => continue,
            Some(of_agent) => {
                format!("its last checkpoint is of {:.1} s", of_agent.result.times.elapsed_s)
            }
            None => "it has no checkpoint".to_owned(),
        };
        merged.errors.push(format!("{agent}: incomplete: the agent was lost, and {reached}"));
        merged.interrupted = true;
    }
    merged.verdict = wirestorm_control::result::Verdict::of(&merged);
    Some(merged)
}

/// Sets the ports of flows, which a checkpoint does not have.
fn name_ports(result: &mut RunResult, run: &PlannedRun) {
    let Some(plan) = &run.streams else { return };
    for (flow, planned) in result.flows.iter_mut().zip(&plan.flows) {
        let name = |port: &usize| plan.ports.get(*port).map(|port| port.name.clone());
        flow.tx = name(&planned.tx_port).unwrap_or_default();
        flow.rx = planned.rx_ports.iter().filter_map(name).collect();
    }
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
    let node_offsets = [collected.node_offset(sender)?, collected.node_offset(receiver)?];
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
