//! Result tables of a run of flows, at most 80 columns wide.

use std::fmt::{self, Display, Formatter};

use wirestorm_control::result::{FlowReport, MeasuredReport, PortReport, RunResult};

use crate::departure_lines::DepartureLines;
use crate::number::{grouped, rate_error, rounded, scaled, seconds, signed_nanoseconds};
use crate::report::verdict;
use crate::wrap::wrapped;

/// Displays a result as tables.
pub(crate) struct Table<'a>(pub(crate) &'a RunResult);

/// Maximum number of flows with their own line. The rest shares one line.
const FLOWS_MAX: usize = 40;
/// Maximum number of VLAN tags of a flow with their own line. The rest shares one line.
const TAGS_MAX: usize = 16;

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let result = self.0;
        let ended = if result.interrupted { "interrupted after" } else { "done in" };
        writeln!(f, "{ended} {} s", seconds(result.times.elapsed_s))?;
        writeln!(f)?;
        writeln!(
            f,
            "{:<22} {:>14} {:>12} {:>9} {:>9} {:>8}",
            "flow", "packets", "pps", "b/s L2", "b/s L1", "off"
        )?;
        for flow in result.flows.iter().take(FLOWS_MAX) {
            flow_line(f, flow)?;
        }
        if let Some(rest) = result.flows.get(FLOWS_MAX..).filter(|rest| !rest.is_empty()) {
            let packets: u64 = rest.iter().map(|flow| flow.packets).sum();
            writeln!(f, "{:<22} {:>14}", format!("{} more", rest.len()), grouped(packets))?;
        }
        measured_lines(f, &result.flows)?;
        for port in &result.ports {
            port_lines(f, port)?;
        }
        for note in &result.notes {
            writeln!(f, "{}", wrapped("note      ", note))?;
        }
        for error in &result.errors {
            writeln!(f, "{}", wrapped("error     ", error))?;
        }
        verdict(f, result)
    }
}

fn flow_line(f: &mut Formatter<'_>, flow: &FlowReport) -> fmt::Result {
    let off = flow.rate_error_ppm.map_or_else(String::new, rate_error);
    writeln!(
        f,
        "{:<22} {:>14} {:>12} {:>9} {:>9} {:>8}",
        shortened(&flow.name, 22),
        grouped(flow.packets),
        rounded(flow.rates.pps),
        scaled(flow.rates.bps_l2),
        scaled(flow.rates.bps_l1),
        off
    )?;
    if flow.unsent > 0 {
        writeln!(f, "{:<22} {:>14} skipped because they were late", "", grouped(flow.unsent))?;
    }
    Ok(())
}

/// Prints loss, order and delay of the measured flows.
fn measured_lines(f: &mut Formatter<'_>, flows: &[FlowReport]) -> fmt::Result {
    let measured = || flows.iter().filter(|flow| !flow.measured.is_empty());
    if measured().next().is_none() {
        return Ok(());
    }
    writeln!(f)?;
    writeln!(
        f,
        "{:<16} {:>13} {:>10} {:>8} {:>9} {:>9} {:>9}",
        "measured", "received", "lost", "reord.", "delay", "p99", "max"
    )?;
    for flow in measured().take(FLOWS_MAX) {
        for port in &flow.measured {
            let lost = flow.lost.filter(|_| flow.measured.len() == 1).map(grouped);
            let delay = |nanoseconds| nanoseconds_or_dash(nanoseconds);
            writeln!(
                f,
                "{:<16} {:>13} {:>10} {:>8} {:>9} {:>9} {:>9}",
                shortened(&flow.name, 16),
                grouped(port.received),
                lost.unwrap_or_else(|| format!("on {}", shortened(&port.port, 7))),
                grouped(port.reordered),
                delay(port.delay.mean_ns.map(|mean| mean.round() as i64)),
                delay(port.delay.p99_ns),
                delay(port.delay.max_ns),
            )?;
            unusual(f, port)?;
            tag_lines(f, port)?;
        }
        if let Some(lost) = flow.lost.filter(|_| flow.measured.len() > 1) {
            writeln!(f, "{:<16} {:>13} {:>10}", "", "on all", grouped(lost))?;
        }
    }
    if let Some(more) = measured().count().checked_sub(FLOWS_MAX).filter(|more| *more > 0) {
        let lost: u64 = measured().skip(FLOWS_MAX).filter_map(|flow| flow.lost).sum();
        writeln!(f, "{:<16} {:>13} {:>10}", format!("{more} more"), "", grouped(lost))?;
    }
    Ok(())
}

/// Prints the received frames of each VLAN tag, with `--per-vlan`.
fn tag_lines(f: &mut Formatter<'_>, port: &MeasuredReport) -> fmt::Result {
    for tag in port.tags.iter().take(TAGS_MAX) {
        let under = match tag.vlans[..] {
            [] => "without a tag".to_owned(),
            [only] => format!("in VLAN {only}"),
            [outer, inner, ..] => format!("in VLAN {inner} within {outer}"),
        };
        writeln!(f, "{:<16} {:>13} {under}", "", grouped(tag.packets))?;
    }
    if let Some(rest) = port.tags.get(TAGS_MAX..).filter(|rest| !rest.is_empty()) {
        let packets: u64 = rest.iter().map(|tag| tag.packets).sum();
        writeln!(f, "{:<16} {:>13} under {} other tags", "", grouped(packets), rest.len())?;
    }
    Ok(())
}

/// Prints duplicates, reordering, corruption and stale frames of a flow. Skips zeros.
fn unusual(f: &mut Formatter<'_>, port: &MeasuredReport) -> fmt::Result {
    let happened = [
        (port.duplicated, "duplicated frames"),
        (port.reordering_extent_max, "maximum reordering extent (RFC 4737)"),
        (port.corrupt.unwrap_or(0), "corrupt payloads"),
        (port.too_late, "too late to distinguish reordering from duplication"),
        (port.stale, "frames of an earlier run"),
    ];
    for (count, what) in happened.iter().filter(|(count, _)| *count > 0) {
        writeln!(f, "{:<16} {:>13} {what}", "", grouped(*count))?;
    }
    Ok(())
}

fn nanoseconds_or_dash(value: Option<i64>) -> String {
    value.map_or_else(|| "-".into(), signed_nanoseconds)
}

fn port_lines(f: &mut Formatter<'_>, port: &PortReport) -> fmt::Result {
    writeln!(f)?;
    writeln!(f, "port {} on {}", port.name, port.interface)?;
    if let (Some(backend), Some(reason)) = (&port.backend, &port.backend_reason) {
        writeln!(f, "{}", wrapped(&format!("  by {backend}: "), reason))?;
    }
    if let Some(tx) = &port.tx {
        writeln!(
            f,
            "  sent      {} packets, {} pps, {}b/s L2, {}b/s L1",
            grouped(tx.packets),
            rounded(tx.rates.pps),
            scaled(tx.rates.bps_l2),
            scaled(tx.rates.bps_l1)
        )?;
        if tx.failed + tx.unsent > 0 {
            writeln!(f, "  failed    {}, unsent {}", grouped(tx.failed), grouped(tx.unsent))?;
        }
        if let Some(departures) = &tx.departures {
            write!(f, "{}", DepartureLines(departures, 2))?;
        }
    }
    let Some(rx) = &port.rx else { return Ok(()) };
    writeln!(
        f,
        "  received  {} packets, {} pps, {}b/s L2; {} lost ({:.4}%)",
        grouped(rx.packets),
        rounded(rx.pps.unwrap_or(0.0)),
        scaled(rx.bps_l2.unwrap_or(0.0)),
        grouped(rx.lost.unwrap_or(0)),
        rx.loss_percent.unwrap_or(0.0)
    )?;
    if rx.dropped > 0 {
        let dropped = grouped(rx.dropped);
        writeln!(f, "  dropped   {dropped} because the receiver was full")?;
    }
    for (count, what, reason) in [
        (rx.no_signature, "no signature", "without a signature: unmeasured or corrupt frames"),
        (rx.wrong_port, "wrong port", "frames of flows for another port"),
    ] {
        if let Some(count) = count.filter(|count| *count > 0) {
            writeln!(f, "  {what:<9} {} {reason}", grouped(count))?;
        }
    }
    Ok(())
}

/// Shortens a name to `columns` by removing its middle, because names often differ at the end.
pub(crate) fn shortened(name: &str, columns: usize) -> String {
    let characters = name.chars().count();
    if characters <= columns {
        return name.to_owned();
    }
    let shown = columns.saturating_sub(MISSING.len());
    let end = shown / 2;
    let beginning = name.chars().take(shown - end);
    beginning.chain(MISSING.chars()).chain(name.chars().skip(characters - end)).collect()
}

/// Shortens a text to `columns` by removing its end.
pub(crate) fn clipped(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(MISSING.len())).chain(MISSING.chars()).collect()
}

/// Mark for removed text.
const MISSING: &str = "..";
