//! Builds the port reports from the counters of both directions.

use wirestorm_base::histogram::Histogram;
use wirestorm_base::port::{ReceiveCounters, TransmitCounters};
use wirestorm_base::time::Duration;
use wirestorm_engine::impairment::ImpairmentCounters;

use crate::backend::Choice;
use crate::result::{HistogramReport, ImpairmentReport, PortReport, ReceiveReport, TransmitReport};

/// Outcome of the worker of one direction.
pub(super) struct DirectionOutcome {
    pub(super) counters: ImpairmentCounters,
    pub(super) unfit: u64,
    pub(super) transmitted: TransmitCounters,
    pub(super) received: ReceiveCounters,
    pub(super) lateness: Histogram,
    pub(super) cpu: Duration,
    pub(super) error: Option<String>,
}

/// Builds the reports of both ports. `outcomes[i]` is the direction that starts at port `i`.
pub(super) fn ports(
    names: [&str; 2],
    choices: &[Choice],
    outcomes: &[DirectionOutcome],
    elapsed: Duration,
) -> Vec<PortReport> {
    let (Some(first), Some(second)) = (outcomes.first(), outcomes.get(1)) else {
        return Vec::new();
    };
    // The frames that a port sends belong to the other direction.
    let ports = [(0, first, second), (1, second, first)];
    let report = |(place, arrives, leaves): (usize, &DirectionOutcome, &DirectionOutcome)| {
        let choice = choices.get(place);
        PortReport {
            name: names[place].to_owned(),
            interface: names[place].to_owned(),
            backend: choice.map(|it| it.backend.name.into()),
            backend_reason: choice.map(|it| it.why.clone()),
            tx: Some(transmit(&leaves.transmitted, elapsed)),
            rx: Some(ReceiveReport {
                packets: arrives.received.received,
                bytes: arrives.received.received_bytes,
                dropped: arrives.received.rx_dropped,
                ..ReceiveReport::default()
            }),
            impairment: Some(leaves.impairment(names[1 - place])),
            cpu_s: Some(leaves.cpu.as_secs_f64()),
            ..PortReport::default()
        }
    };
    ports.into_iter().map(report).collect()
}

/// Builds a transmit report with rates over `elapsed`.
pub(super) fn transmit(transmitted: &TransmitCounters, elapsed: Duration) -> TransmitReport {
    TransmitReport {
        // Frames that left the link but not the port are missing at the other side.
        failed: transmitted.failed + transmitted.unsent,
        unsent: 0,
        ..TransmitReport::over(transmitted, elapsed.as_secs_f64())
    }
}

impl DirectionOutcome {
    fn impairment(&self, from: &str) -> ImpairmentReport {
        ImpairmentReport {
            from_port: Some(from.to_owned()),
            invalid_length: self.unfit,
            lateness: Some(HistogramReport::new(&self.lateness)),
            ..(&self.counters).into()
        }
    }
}
