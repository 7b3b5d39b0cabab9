//! From what the workers of both directions counted to the result.

use wirestorm_base::histogram::Histogram;
use wirestorm_base::port::{ReceiveCounters, TransmitCounters};
use wirestorm_base::time::Duration;
use wirestorm_engine::impairment::ImpairmentCounters;

use crate::port::Choice;
use crate::result::{HistogramReport, ImpairmentReport, PortReport, ReceiveReport, TransmitReport};

/// What a direction's worker came back with.
pub(super) struct DirectionOutcome {
    pub(super) counters: ImpairmentCounters,
    pub(super) unfit: u64,
    pub(super) transmitted: TransmitCounters,
    pub(super) received: ReceiveCounters,
    pub(super) lateness: Histogram,
    pub(super) cpu: Duration,
    pub(super) error: Option<String>,
}

/// The reports of both ports; `outcomes` are those of the directions that begin at each.
pub(super) fn ports(
    names: [&str; 2],
    choices: &[Choice],
    outcomes: &[DirectionOutcome],
    elapsed: Duration,
) -> Vec<PortReport> {
    let (Some(first), Some(second)) = (outcomes.first(), outcomes.get(1)) else {
        return Vec::new();
    };
    // What leaves a port is the other direction's.
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
                dropped: arrives.received.missed,
                ..ReceiveReport::default()
            }),
            impairment: Some(leaves.impairment(names[1 - place])),
            cpu_s: Some(leaves.cpu.as_secs_f64()),
            ..PortReport::default()
        }
    };
    ports.into_iter().map(report).collect()
}

/// What was sent in so much time.
pub(super) fn transmit(transmitted: &TransmitCounters, elapsed: Duration) -> TransmitReport {
    TransmitReport {
        // What had left the link and not the port at the end is missing at the other side.
        failed: transmitted.failed + transmitted.unsent,
        unsent: 0,
        ..TransmitReport::over(transmitted, elapsed.as_secs_f64())
    }
}

impl DirectionOutcome {
    fn impairment(&self, from: &str) -> ImpairmentReport {
        ImpairmentReport {
            from: Some(from.to_owned()),
            unfit: self.unfit,
            lateness: Some(HistogramReport::new(&self.lateness)),
            ..(&self.counters).into()
        }
    }
}
