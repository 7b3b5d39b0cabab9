//! Receive statistics in the layout of pktgen's receive side (pgrx): for each CPU, then totals.

use std::fmt::{self, Display, Formatter};

use wirestorm_control::result::{PortReport, ReceiveReport};

use crate::wrap::wrapped;

/// Displays the receive statistics of a port.
pub(super) struct ReceiveTable<'a> {
    pub(super) port: &'a PortReport,
    pub(super) rx: &'a ReceiveReport,
    /// Whether a script has sent frames, so that the loss is known.
    pub(super) has_script: bool,
}

impl Display for ReceiveTable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rx = self.rx;
        let backend = rx.backend.as_deref().unwrap_or("-");
        let head = format!("RECEPTION STATISTICS of {} by {backend}: ", self.port.interface);
        let reason = rx.backend_reason.as_deref().unwrap_or_default();
        writeln!(f, "{}", wrapped(&head, reason))?;
        let each = if rx.queue_kind.as_deref() == Some("cpu") { "CPU" } else { "QUEUE" };
        writeln!(f, "PER-{each} Stats")?;
        for queue in &rx.queues {
            writeln!(f, "{each} {}:", queue.queue)?;
            lines(f, queue.packets, queue.bytes, queue.elapsed_s, queue.pps)?;
        }
        writeln!(f, "Global Statistics")?;
        let (elapsed_s, pps) = (rx.elapsed_s.unwrap_or(0.0), rx.pps.unwrap_or(0.0));
        lines(f, rx.packets, rx.bytes, elapsed_s, pps)?;
        if self.has_script {
            let (lost, percent) = (rx.lost.unwrap_or(0), rx.loss_percent.unwrap_or(0.0));
            writeln!(f, "    Lost: {lost} ({percent:.4}%)")?;
        }
        if rx.dropped > 0 {
            writeln!(f, "    Missed: {} dropped because the receiver was full", rx.dropped)?;
        }
        match &rx.error {
            Some(error) => writeln!(f, "{}", wrapped("error: ", error)),
            None => Ok(()),
        }
    }
}

/// Prints packets, bytes and rates. As in pktgen, bit rates count frames without FCS.
fn lines(f: &mut Formatter<'_>, packets: u64, bytes: u64, elapsed_s: f64, pps: f64) -> fmt::Result {
    let bits = pps * bytes as f64 / packets.max(1) as f64 * 8.0;
    writeln!(f, "    Rx packets: {packets}  Rx bytes: {bytes}")?;
    writeln!(f, "    Work time: {:.0} us", elapsed_s * 1e6)?;
    writeln!(f, "    Rate: {pps:.0}pps {:.0}Mb/s ({bits:.0}bps)", (bits / 1e6).floor())
}
