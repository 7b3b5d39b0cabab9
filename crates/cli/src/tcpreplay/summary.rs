//! Final statistics in tcpreplay's format, with its number formats.

use std::fmt::{self, Display, Formatter};

use wirestorm_control::result::{
    PortReport, ReceiveReport, ReplayFlows, RunResult, TransmitReport,
};

/// Summary at the end of a run.
pub(super) struct Summary<'a> {
    pub(super) result: &'a RunResult,
    /// Whether flows expire. Then the flow line also has unique and expired flows.
    pub(super) expires: bool,
}

/// The lines `Actual:` and `Rated:`.
pub(super) struct Totals {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) elapsed_s: f64,
    pub(super) bytes_per_second: f64,
    pub(super) packets_per_second: f64,
}

impl Display for Summary<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { result, expires } = self;
        Totals::of(result).fmt(f)?;
        if let Some(flows) = result.achieved.tx.flows.as_ref().filter(|flows| flows.count > 0) {
            let mut flows = flows.clone();
            if result.times.elapsed_s < 1e-6 {
                flows.per_second = 0.0;
            }
            flow_line(f, &flows, *expires)?;
        }
        let sending: Vec<_> =
            result.ports.iter().filter_map(|port| Some((port, port.tx.as_ref()?))).collect();
        for (port, tx) in &sending {
            device(f, port, tx)?;
            if sending.len() > 1 {
                device_flows(f, tx)?;
            }
        }
        let mut receiving = result.ports.iter().filter_map(|port| Some((port, port.rx.as_ref()?)));
        receiving.try_for_each(|(port, rx)| received(f, port, rx))
    }
}

impl Totals {
    /// Returns the totals of a finished run.
    pub(super) fn of(result: &RunResult) -> Self {
        Self {
            packets: result.achieved.tx.packets,
            bytes: result.achieved.tx.bytes,
            elapsed_s: result.times.elapsed_s,
            bytes_per_second: result.achieved.tx.bps_frames / 8.0,
            packets_per_second: result.achieved.tx.rates.pps,
        }
    }
}

impl Display for Totals {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // As tcpreplay, prints zero rates if no time has passed.
        let is_measured = self.elapsed_s >= 1e-6;
        let rate = |value: f64| if is_measured { value } else { 0.0 };
        let bytes = rate(self.bytes_per_second);
        let megabits = bytes * 8.0 / 1e6;
        writeln!(
            f,
            "Actual: {} packets ({} bytes) sent in {} seconds",
            self.packets,
            self.bytes,
            seconds(self.elapsed_s)
        )?;
        writeln!(
            f,
            "Rated: {} Bps, {} Mbps, {} pps",
            cut(bytes, 1),
            cut(megabits, if megabits >= 1.0 { 2 } else { 3 }),
            cut(rate(self.packets_per_second), 2)
        )
    }
}

fn flow_line(f: &mut Formatter<'_>, flows: &ReplayFlows, expires: bool) -> fmt::Result {
    write!(f, "Flows: {} flows, ", flows.count)?;
    if expires {
        let unique = flows.count.saturating_sub(flows.expired);
        write!(f, "{unique} unique, {} expired, ", flows.expired)?;
    }
    writeln!(
        f,
        "{} fps, {} unique flow packets, {} unique non-flow packets",
        cut(flows.per_second, 2),
        flows.flow_packets,
        flows.non_flow_packets
    )
}

fn device(f: &mut Formatter<'_>, port: &PortReport, tx: &TransmitReport) -> fmt::Result {
    writeln!(f, "Statistics for network device: {}", port.interface)?;
    writeln!(f, "\tSuccessful packets:        {}", tx.packets)?;
    writeln!(f, "\tFailed packets:            {}", tx.failed)?;
    writeln!(f, "\tTruncated packets:         {}", tx.truncated)?;
    writeln!(f, "\tRetried packets (ENOBUFS): {}", tx.retried.no_buffers)?;
    writeln!(f, "\tRetried packets (EAGAIN):  {}", tx.retried.busy)
}

/// Prints the flows of an interface, for runs with two interfaces.
///
/// tcpreplay itself prints the number of expired flows on the line of unique flows.
fn device_flows(f: &mut Formatter<'_>, tx: &TransmitReport) -> fmt::Result {
    let Some(flows) = &tx.flows else { return Ok(()) };
    writeln!(f, "\tFlows total:               {}", flows.count)?;
    writeln!(f, "\tFlows unique:              {}", flows.count.saturating_sub(flows.expired))?;
    writeln!(f, "\tFlows expired:             {}", flows.expired)?;
    writeln!(f, "\tFlow packets:              {}", flows.flow_packets)?;
    writeln!(f, "\tNon-flow packets:          {}", flows.non_flow_packets)?;
    writeln!(f, "\tInvalid flow packets:      {}", flows.invalid_packets)
}

/// Prints the receive statistics of `--rx`, which tcpreplay does not have.
fn received(f: &mut Formatter<'_>, port: &PortReport, rx: &ReceiveReport) -> fmt::Result {
    writeln!(f, "Statistics for receiving device: {}", port.interface)?;
    writeln!(f, "\tReceived packets:          {}", rx.packets)?;
    writeln!(f, "\tReceived bytes:            {}", rx.bytes)?;
    writeln!(f, "\tLost packets:              {}", rx.lost.unwrap_or(0))?;
    if let Some(verify) = &rx.verify {
        writeln!(f, "\tIntact packets:            {}", verify.intact)?;
        writeln!(f, "\tReordered packets:         {}", verify.reordered)?;
        writeln!(f, "\tDuplicated packets:        {}", verify.duplicated)?;
        writeln!(f, "\tUnexpected packets:        {}", verify.unexpected)?;
    }
    Ok(())
}

/// Formats seconds: two decimals from one second on, six below. Truncates like tcpreplay.
fn seconds(value: f64) -> String {
    let microseconds = (value * 1e6).round().max(0.0) as u64;
    let (seconds, part) = (microseconds / 1_000_000, microseconds % 1_000_000);
    if seconds > 0 { format!("{seconds}.{:02}", part / 10_000) } else { format!("0.{part:06}") }
}

/// Truncates to `decimals` decimals, as tcpreplay's integer arithmetic does.
fn cut(value: f64, decimals: u32) -> String {
    let unit = 10_u64.pow(decimals);
    // Adds a thousandth of the last digit, so that 100000 computed as 99999.9999999 stays 100000.
    let scaled = (value.max(0.0) * unit as f64 + 1e-3).floor() as u64;
    format!("{}.{:0width$}", scaled / unit, scaled % unit, width = decimals as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(packets: u64, bytes: u64, elapsed_s: f64) -> String {
        Totals {
            packets,
            bytes,
            elapsed_s,
            bytes_per_second: bytes as f64 / elapsed_s,
            packets_per_second: packets as f64 / elapsed_s,
        }
        .to_string()
    }

    /// The expected lines are the output of tcpreplay 4.4.3 for these numbers.
    #[test]
    fn totals_match_tcpreplays_output() {
        assert_eq!(
            totals(2, 170, 0.000_037),
            "Actual: 2 packets (170 bytes) sent in 0.000037 seconds\n\
             Rated: 4594594.5 Bps, 36.75 Mbps, 54054.05 pps\n"
        );
        assert_eq!(
            totals(2, 170, 0.011_133),
            "Actual: 2 packets (170 bytes) sent in 0.011133 seconds\n\
             Rated: 15269.9 Bps, 0.122 Mbps, 179.64 pps\n"
        );
        assert_eq!(
            totals(365_049, 31_029_157, 1.0),
            "Actual: 365049 packets (31029157 bytes) sent in 1.00 seconds\n\
             Rated: 31029157.0 Bps, 248.23 Mbps, 365049.00 pps\n"
        );
    }

    #[test]
    fn seconds_are_truncated_not_rounded() {
        assert_eq!(seconds(3.256_749), "3.25");
        assert_eq!(seconds(0.999_999), "0.999999");
        assert_eq!(seconds(0.0), "0.000000");
        assert_eq!(seconds(60.0), "60.00");
    }

    #[test]
    fn truncation_keeps_whole_numbers() {
        assert_eq!(cut(99_999.999_999_9, 2), "100000.00");
        assert_eq!(cut(0.0, 3), "0.000");
        assert_eq!(cut(f64::NAN, 1), "0.0");
    }

    #[test]
    fn flow_line_with_expiry_has_unique_and_expired_flows() {
        struct Line(bool);
        impl Display for Line {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                let flows = ReplayFlows {
                    count: 47,
                    per_second: 14.4339,
                    expired: 3,
                    flow_packets: 176,
                    non_flow_packets: 2,
                    invalid_packets: 1,
                };
                flow_line(f, &flows, self.0)
            }
        }
        assert_eq!(
            Line(false).to_string(),
            "Flows: 47 flows, 14.43 fps, 176 unique flow packets, 2 unique non-flow packets\n"
        );
        assert_eq!(
            Line(true).to_string(),
            "Flows: 47 flows, 44 unique, 3 expired, 14.43 fps, 176 unique flow packets, \
             2 unique non-flow packets\n"
        );
    }
}
