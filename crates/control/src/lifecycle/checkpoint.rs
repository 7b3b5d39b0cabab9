//! What a run has measured so far, in the form of a result.

use std::ops::Range;

use wirestorm_base::time::Instant;

use super::load_control::Detail;
use super::snapshot::{FlowSnapshot, PortSnapshot, Snapshot};
use super::state::Supervised;
use crate::result::{
    Achieved, FlowReport, FrameRate, GroupReport, PortReport, ReceiveReport, RunResult,
    TransmitReport,
};

/// Returns the result so far; see [`super::RunHandle::checkpoint`].
pub(super) fn of_run(run: &Supervised, flows: Range<usize>, since: Instant) -> Option<RunResult> {
    let start = run.started()?;
    let snapshot = run.latest()?;
    if run.state().is_over() {
        return None;
    }
    let mut result = RunResult { interrupted: true, ..RunResult::begun(run.kind(), Some(start)) };
    let seconds = snapshot.elapsed.as_secs_f64();
    result.times.elapsed_s = seconds;
    let tx = TransmitReport::over(&snapshot.transmitted, seconds);
    result.achieved = Achieved { tx, ..Achieved::default() };
    result.latency = snapshot.latency.clone();
    result.ports = run
        .controls
        .load
        .reports(Detail::All)
        .unwrap_or_else(|| snapshot.ports.iter().map(|it| port_report(it, seconds)).collect());
    result.groups = GroupReport::of_ports(&result.ports);
    result.flows = flow_reports(run, &snapshot, flows, since);
    Some(result)
}

fn port_report(port: &PortSnapshot, seconds: f64) -> PortReport {
    let (transmitted, received) = (&port.transmitted, &port.received);
    let tx = (transmitted.sent > 0).then(|| TransmitReport::over(transmitted, seconds));
    let rx = (received.received > 0).then(|| ReceiveReport {
        packets: received.received,
        bytes: received.received_bytes,
        dropped: received.rx_dropped,
        ..ReceiveReport::default()
    });
    let (name, interface) = (port.name.clone(), port.interface.clone());
    PortReport { name, interface, tx, rx, ..PortReport::default() }
}

fn flow_reports(
    run: &Supervised,
    snapshot: &Snapshot,
    flows: Range<usize>,
    since: Instant,
) -> Vec<FlowReport> {
    let seconds = snapshot.elapsed.as_secs_f64();
    let live = run.controls.live();
    let report = |(index, flow): (usize, &FlowSnapshot)| {
        let is_asked = flow.received.is_some() && flows.contains(&index);
        let measured = live.as_ref().filter(|_| is_asked).map(|live| live.measured(index, since));
        FlowReport {
            name: flow.name.to_string(),
            packets: flow.sent.frames,
            bytes: flow.sent.bytes,
            unsent: flow.sent.unsent,
            rates: FrameRate::over(flow.sent.frames, flow.sent.bytes, seconds).into(),
            measured: measured.unwrap_or_default(),
            ..FlowReport::default()
        }
    };
    snapshot.flows.iter().enumerate().map(report).collect()
}
