//! The result of a run of streams as people read it: at most 80 columns.

use std::fmt::{self, Display, Formatter};

use wirestorm_control::traffic::{FlowReport, PortReport, TrafficResult};

use crate::gaps::Gaps;
use crate::number::{grouped, rounded, scaled, seconds};
use crate::wrap::wrapped;

/// Shows a result.
pub(super) struct Table<'a>(pub(super) &'a TrafficResult);

/// Flows that are shown one by one; of more, the rest is one line.
const FLOWS_MAX: usize = 40;

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let result = self.0;
        let ended = if result.interrupted { "interrupted after" } else { "done in" };
        writeln!(f, "{ended} {} s", seconds(result.elapsed_s))?;
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
        for port in &result.ports {
            port_lines(f, port)?;
        }
        for note in &result.notes {
            writeln!(f, "{}", wrapped("note      ", note))?;
        }
        for error in &result.errors {
            writeln!(f, "{}", wrapped("error     ", error))?;
        }
        Ok(())
    }
}

fn flow_line(f: &mut Formatter<'_>, flow: &FlowReport) -> fmt::Result {
    let off = flow.rate_error_ppm.map_or_else(String::new, |error| format!("{:+.2}%", error / 1e4));
    writeln!(
        f,
        "{:<22} {:>14} {:>12} {:>9} {:>9} {:>8}",
        shortened(&flow.name, 22),
        grouped(flow.packets),
        rounded(flow.pps),
        scaled(flow.bps_l2),
        scaled(flow.bps_l1),
        off
    )?;
    if flow.unsent > 0 {
        writeln!(f, "{:<22} {:>14} left out because they were late", "", grouped(flow.unsent))?;
    }
    Ok(())
}

fn port_lines(f: &mut Formatter<'_>, port: &PortReport) -> fmt::Result {
    writeln!(f)?;
    writeln!(f, "port {} on {}", port.name, port.interface)?;
    if let (Some(backend), Some(why)) = (port.backend, &port.why) {
        writeln!(f, "{}", wrapped(&format!("  by {backend}: "), why))?;
        writeln!(
            f,
            "  sent      {} packets, {} pps, {}b/s L2, {}b/s L1",
            grouped(port.packets),
            rounded(port.pps),
            scaled(port.bps_l2),
            scaled(port.bps_l1)
        )?;
    }
    if port.failed + port.unsent > 0 {
        writeln!(f, "  failed    {}, unsent {}", grouped(port.failed), grouped(port.unsent))?;
    }
    if let Some(departures) = &port.departures {
        for line in Gaps(departures).to_string().lines() {
            writeln!(f, "  {line}")?;
        }
    }
    if let Some(rx) = &port.rx {
        writeln!(
            f,
            "  received  {} packets, {} pps, {}b/s L2; {} lost ({:.4}%)",
            grouped(rx.packets),
            rounded(rx.pps),
            scaled(rx.bps_l2),
            grouped(rx.lost),
            rx.loss_percent
        )?;
    }
    Ok(())
}

fn shortened(name: &str, columns: usize) -> String {
    if name.chars().count() <= columns {
        return name.to_owned();
    }
    let mut text: String = name.chars().take(columns - 2).collect();
    text.push_str("..");
    text
}
