//! Results of a test: those of all agents, merged, with compared clocks.

use wirestorm_control::result::{MeasuredReport, RunResult, merge_parts};
use wirestorm_control::sync::Assumption;

use super::collected::Collected;
use super::comparison::{Compared, Comparisons};
use super::plan::PlannedRun;

/// Merges the results of a run in an iteration. `agents`: name of the agent of each node. Returns
/// `None` without a result.
pub(super) fn merge(
    run: &PlannedRun,
    agents: &[String],
    collected: &Collected,
    iteration: u32,
    comparisons: &Comparisons<'_>,
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
            let compared = comparisons.of(agent, agents.get(sender)?);
            for measured in &mut flow.measured {
                correct(measured, compared.as_deref());
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

/// Computes the one-way delay of a flow from another machine. Without a comparison of the clocks the
/// delay is unknown, and the variation over the run contains the drift, so both are left out. The
/// variation within the short intervals of the time series stays.
fn correct(measured: &mut MeasuredReport, compared: Option<&Compared>) {
    measured.one_way = compared.and_then(|compared| {
        let mut report = compared.chosen.one_way(&measured.segments)?;
        report.alternatives.clone_from(&compared.alternatives);
        report.asymmetry = compared.asymmetry;
        let truth = compared.truth.as_ref().and_then(|it| it.one_way(&measured.segments));
        report.truth = truth.map(|truth| truth.delay);
        Some(report)
    });
    measured.delay = Default::default();
    measured.pdv = Default::default();
    if let Some(one_way) = &measured.one_way {
        measured.delay = one_way.delay.clone();
        measured.pdv = one_way.pdv.clone();
    }
    // Those of one clock have no offset.
    let has_one_clock = compared.is_some_and(|it| it.chosen.assumption == Assumption::OneClock);
    if let Some(series) = measured.series.as_mut().filter(|_| !has_one_clock) {
        series.remove_delays();
    }
}
