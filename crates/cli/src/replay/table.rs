//! The result as people read it: at most 80 columns.

use std::fmt::{self, Display, Formatter};

use wirestorm_control::result::{PortReport, ReceiveReport, RunResult};

use crate::gaps::Gaps;
use crate::number::{grouped, rate_error, rounded, seconds};

/// Shows a result.
pub(super) struct Table<'a>(pub(super) &'a RunResult);

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let result = self.0;
        let ended = if result.interrupted { "interrupted after" } else { "done in" };
        writeln!(f, "{ended} {} s", seconds(result.elapsed_s))?;
        for port in std::iter::once(&result.port).chain(&result.second_port) {
            port_line(f, port)?;
        }
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
            grouped(result.packets),
            grouped(result.bytes),
            rounded(result.rates.pps),
            megabits(result.rates.bps_l2),
            megabits(result.rates.bps_l1),
        )?;
        if let Some(rx) = &result.rx {
            writeln!(
                f,
                "{:<9} {:>13} {:>16} {:>11} {:>12}",
                "received",
                grouped(rx.packets),
                grouped(rx.bytes),
                rounded(rx.pps),
                megabits(rx.bps_l2),
            )?;
            writeln!(f, "{:<9} {:>13} {:>15.4}%", "lost", grouped(rx.lost), rx.loss_percent)?;
            receive_lines(f, rx)?;
        }
        writeln!(f)?;
        if let Some(flows) = &result.flows {
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
            grouped(result.failed),
            grouped(result.unsent),
            grouped(result.truncated),
            grouped(result.retried.no_buffers + result.retried.again),
        )?;
        if let Some(asked) = asked(result) {
            writeln!(f, "rate      {asked}")?;
        }
        if let Some(departures) = &result.departures {
            write!(f, "{}", Gaps(departures, 0))?;
        }
        for note in &result.notes {
            writeln!(f, "note      {note}")?;
        }
        for error in &result.errors {
            writeln!(f, "error     {error}")?;
        }
        Ok(())
    }
}

fn receive_lines(f: &mut Formatter<'_>, rx: &ReceiveReport) -> fmt::Result {
    writeln!(f)?;
    writeln!(f, "arrived on {} by {}: {}", rx.interface, rx.backend, rx.why)?;
    for queue in &rx.queues {
        writeln!(
            f,
            "  {:<5} {:<1} {:>13} {:>16} {:>11}",
            rx.queues_are,
            queue.queue,
            grouped(queue.packets),
            grouped(queue.bytes),
            rounded(queue.pps)
        )?;
    }
    if rx.missed > 0 {
        writeln!(f, "  {} more arrived that the receiver had no room for", grouped(rx.missed))?;
    }
    if rx.surplus > 0 {
        writeln!(
            f,
            "  {} more arrived than were sent; --verify tells whose they are",
            grouped(rx.surplus)
        )?;
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
    writeln!(f, "{} by {}: {}", port.interface, port.backend, port.why)
}

fn megabits(bits_per_second: f64) -> String {
    let value = bits_per_second / 1e6;
    let whole = grouped(value as u64);
    format!("{whole}.{:02}", ((value - value.floor()) * 100.0) as u64)
}

fn asked(result: &RunResult) -> Option<String> {
    let error = result.rate_error_ppm?;
    let (asked, unit) = match (result.asked.pps, result.asked.bps) {
        (Some(pps), _) => (pps, "pps"),
        (_, Some(bps)) => (bps / 1e6, "Mb/s"),
        _ => return None,
    };
    let achieved = asked * (1.0 + error / 1e6);
    let pauses = match result.paused_s {
        0.0 => String::new(),
        paused_s => format!(" without {} s of pauses", seconds(paused_s)),
    };
    Some(format!("asked {asked:.2} {unit}, achieved {achieved:.2}{pauses} ({})", rate_error(error)))
}
