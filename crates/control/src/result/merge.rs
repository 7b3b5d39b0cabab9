//! Merges the results of the parts of a run on several machines.

use super::{FlowReport, PortReport, RunResult, TotalReport, TransmitReport, Verdict};

/// Merges the results of the machines that took part in a run of one plan. `parts`: name of the
/// machine, and its result.
///
/// The machine of a flow's sender counts what was sent; the others measure what arrived. Returns
/// `None` without a part. The verdict follows from the sum.
pub fn merge_parts(parts: &[(String, RunResult)]) -> Option<RunResult> {
    let (_, first) = parts.first()?;
    let mut merged = first.clone();
    let lines = |of: fn(&RunResult) -> &Vec<String>| -> Vec<String> {
        let lines = parts.iter().flat_map(|(node, result)| {
            of(result).iter().map(move |line| format!("{node}: {line}"))
        });
        lines.collect()
    };
    merged.errors = lines(|result| &result.errors);
    merged.notes = lines(|result| &result.notes);
    merged.interrupted = parts.iter().any(|(_, result)| result.interrupted);
    merged.ports = parts.iter().flat_map(|(_, result)| result.ports.clone()).collect();
    let senders = || merged.ports.iter().filter_map(|port: &PortReport| port.tx.as_ref());
    merged.achieved.tx = sum(senders());
    for (index, flow) in merged.flows.iter_mut().enumerate() {
        let of_parts = parts.iter().filter_map(|(_, result)| result.flows.get(index));
        let sender = of_parts.clone().max_by_key(|part| (part.packets, part.unsent));
        let measured: Vec<_> = of_parts.flat_map(|part| part.measured.clone()).collect();
        let total = TotalReport::of(&measured);
        *flow = FlowReport { measured, total, ..sender.cloned().unwrap_or_default() };
        if !flow.measured.is_empty() {
            let received: u64 = flow.measured.iter().map(|port| port.received).sum();
            let lost = flow.packets.saturating_sub(received);
            flow.lost = Some(lost);
            flow.loss_percent = Some(lost as f64 * 100.0 / flow.packets.max(1) as f64);
        }
    }
    merged.groups = parts.iter().flat_map(|(_, result)| result.groups.clone()).collect();
    merged.latency = parts.iter().flat_map(|(_, result)| result.latency.clone()).collect();
    let started = parts.iter().filter_map(|(_, result)| result.times.started_unix_ns).min();
    merged.times.started_unix_ns = started;
    let elapsed = parts.iter().filter(|(_, result)| result.achieved.tx.packets > 0);
    let elapsed = elapsed.map(|(_, result)| result.times.elapsed_s);
    if let Some(elapsed) = elapsed.reduce(f64::max) {
        merged.times.elapsed_s = elapsed;
    }
    merged.verdict = Verdict::of(&merged);
    Some(merged)
}

/// Returns the sum of what ports sent.
fn sum<'a>(ports: impl Iterator<Item = &'a TransmitReport>) -> TransmitReport {
    let mut sum = TransmitReport::default();
    for port in ports {
        sum.packets += port.packets;
        sum.bytes += port.bytes;
        sum.failed += port.failed;
        sum.unsent += port.unsent;
        sum.rates.pps += port.rates.pps;
        sum.rates.bps_l1 += port.rates.bps_l1;
        sum.rates.bps_l2 += port.rates.bps_l2;
        sum.bps_frames += port.bps_frames;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::{MeasuredReport, Outcome};
    use super::*;

    fn part(packets: u64, received: Option<u64>) -> RunResult {
        let measured = received.map(|received| MeasuredReport {
            port: "right".into(),
            received,
            ..MeasuredReport::default()
        });
        let measured: Vec<MeasuredReport> = measured.into_iter().collect();
        let flow = FlowReport { name: "f".into(), packets, measured, ..FlowReport::default() };
        let tx = TransmitReport { packets, ..TransmitReport::default() };
        let port = PortReport { tx: Some(tx), ..PortReport::default() };
        let mut result = RunResult { flows: vec![flow], ports: vec![port], ..RunResult::default() };
        result.achieved.tx.packets = packets;
        result.notes.push("a note".into());
        result
    }

    #[test]
    fn flow_has_what_one_machine_sent_and_another_received() {
        let parts = [("left".into(), part(100, None)), ("right".into(), part(0, Some(97)))];
        let merged = merge_parts(&parts).unwrap();
        let flow = &merged.flows[0];
        assert_eq!((flow.packets, flow.lost, flow.measured.len()), (100, Some(3), 1));
        assert_eq!(merged.achieved.tx.packets, 100);
        assert_eq!(merged.notes, ["left: a note", "right: a note"]);
        assert_eq!(merged.verdict.outcome, Outcome::FellShort);
        assert!(merge_parts(&[]).is_none());
    }

    #[test]
    fn interruption_of_one_machine_interrupts_the_run() {
        let stopped = RunResult { interrupted: true, ..part(0, Some(100)) };
        let parts = [("left".into(), part(100, None)), ("right".into(), stopped)];
        assert_eq!(merge_parts(&parts).unwrap().verdict.outcome, Outcome::Interrupted);
    }
}
