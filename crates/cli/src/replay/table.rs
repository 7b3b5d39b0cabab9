//! Result table of a replay, at most 80 columns wide.

use std::fmt::{self, Display, Formatter};

use wirestorm_control::result::{PortReport, ReceiveReport, RunResult};

use crate::departure_lines::DepartureLines;
use crate::number::{grouped, rate_error, rounded, seconds};
use crate::report::verdict;

/// Displays a result as a table.
pub(crate) struct Table<'a>(pub(crate) &'a RunResult);

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let result = self.0;
        let ended = if result.interrupted { "interrupted after" } else { "done in" };
        writeln!(f, "{ended} {} s", seconds(result.times.elapsed_s))?;
        let tx = &result.achieved.tx;
        result.ports.iter().try_for_each(|port| port_line(f, port))?;
        writeln!(f)?;
        writeln!(
            f,
            "{:<9} {:>13} {:>16} {:>11} {:>12} {:>12}",
            "", "packets", "bytes", "pps", "Mb/s L2", "Mb/s L1"
        )?;
        writeln!(
            f,
            "{:<9} {:>13} {:>16} {:>11} {:>12} {:>12}",
            "sent",
            grouped(tx.packets),
            grouped(tx.bytes),
            rounded(tx.rates.pps),
            megabits(tx.rates.bps_l2),
            megabits(tx.rates.bps_l1),
        )?;
        for (port, rx) in result.ports.iter().filter_map(|port| Some((port, port.rx.as_ref()?))) {
            writeln!(
                f,
                "{:<9} {:>13} {:>16} {:>11} {:>12}",
                "received",
                grouped(rx.packets),
                grouped(rx.bytes),
                rounded(rx.pps.unwrap_or(0.0)),
                megabits(rx.bps_l2.unwrap_or(0.0)),
            )?;
            let (lost, percent) = (rx.lost.unwrap_or(0), rx.loss_percent.unwrap_or(0.0));
            writeln!(f, "{:<9} {:>13} {:>15.4}%", "lost", grouped(lost), percent)?;
            receive_lines(f, port, rx)?;
        }
        writeln!(f)?;
        if let Some(flows) = &tx.flows {
            writeln!(
                f,
                "flows     {} ({}/s); {} flow packets, {} non-flow, {} invalid",
                grouped(flows.count),
                rounded(flows.per_second),
                grouped(flows.flow_packets),
                grouped(flows.non_flow_packets),
                grouped(flows.invalid_packets),
            )?;
        }
        writeln!(
            f,
            "frames    {} failed, {} unsent, {} truncated, {} retried",
            grouped(tx.failed),
            grouped(tx.unsent),
            grouped(tx.truncated),
            grouped(tx.retried.no_buffers + tx.retried.busy),
        )?;
        if let Some(target) = target_line(result) {
            writeln!(f, "rate      {target}")?;
        }
        if let Some(departures) = &tx.departures {
            write!(f, "{}", DepartureLines(departures, 0))?;
        }
        for note in &result.notes {
            writeln!(f, "note      {note}")?;
        }
        for error in &result.errors {
            writeln!(f, "error     {error}")?;
        }
        verdict(f, result)
    }
}

fn receive_lines(f: &mut Formatter<'_>, port: &PortReport, rx: &ReceiveReport) -> fmt::Result {
    writeln!(f)?;
    let backend = rx.backend.as_deref().unwrap_or("-");
    let reason = rx.backend_reason.as_deref().unwrap_or_default();
    writeln!(f, "received on {} by {backend}: {reason}", port.interface)?;
    for queue in &rx.queues {
        writeln!(
            f,
            "  {:<5} {:<1} {:>13} {:>16} {:>11}",
            rx.queue_kind.as_deref().unwrap_or("queue"),
            queue.queue,
            grouped(queue.packets),
            grouped(queue.bytes),
            rounded(queue.pps)
        )?;
    }
    if rx.dropped > 0 {
        writeln!(f, "  {} dropped because the receiver was full", grouped(rx.dropped))?;
    }
    if let Some(unexpected) = rx.unexpected.filter(|count| *count > 0) {
        writeln!(f, "  {} more received than sent; --verify identifies them", grouped(unexpected))?;
    }
    if let Some(verify) = &rx.verify {
        writeln!(
            f,
            "  verified  {} intact, {} reordered, {} duplicated, {} unexpected",
            grouped(verify.intact),
            grouped(verify.reordered),
            grouped(verify.duplicated),
            grouped(verify.unexpected)
        )?;
    }
    Ok(())
}

fn port_line(f: &mut Formatter<'_>, port: &PortReport) -> fmt::Result {
    let (Some(backend), Some(reason)) = (&port.backend, &port.backend_reason) else {
        return Ok(());
    };
    writeln!(f, "{} by {backend}: {reason}", port.interface)
}

fn megabits(bits_per_second: f64) -> String {
    let value = bits_per_second / 1e6;
    let integer = grouped(value as u64);
    format!("{integer}.{:02}", ((value - value.floor()) * 100.0) as u64)
}

fn target_line(result: &RunResult) -> Option<String> {
    let error = result.achieved.rate_error_ppm?;
    let (target, unit) = match (result.target.pps, result.target.bps) {
        (Some(pps), _) => (pps, "pps"),
        (_, Some(bps)) => (bps / 1e6, "Mb/s"),
        _ => return None,
    };
    let achieved = target * (1.0 + error / 1e6);
    let pauses = match result.times.paused_s {
        0.0 => String::new(),
        paused_s => format!(" without {} s of pauses", seconds(paused_s)),
    };
    Some(format!(
        "target {target:.2} {unit}, achieved {achieved:.2}{pauses} ({})",
        rate_error(error)
    ))
}
