//! From what the workers of both directions counted to the result.

use wirestorm_base::histogram::Histogram;
use wirestorm_base::port::{ReceiveCounters, TransmitCounters};
use wirestorm_base::rate::Layer;
use wirestorm_base::time::Duration;
use wirestorm_engine::impairment::ImpairmentCounters;

use crate::port::Choice;
use crate::result::{
    FrameRate, HistogramReport, ImpairmentReport, PortReport, ReceiveReport, TransmitReport,
};

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
    let rate = FrameRate::over(transmitted.sent, transmitted.sent_bytes, elapsed.as_secs_f64());
    TransmitReport {
        packets: transmitted.sent,
        bytes: transmitted.sent_bytes,
        rates: rate.into(),
        bps_frames: rate.bits_per_second(Layer::Frame),
        // What had left the link and not the port at the end is missing at the other side.
        failed: transmitted.failed + transmitted.unsent,
        ..TransmitReport::default()
    }
}

impl DirectionOutcome {
    fn impairment(&self, from: &str) -> ImpairmentReport {
        let counters = &self.counters;
        ImpairmentReport {
            from: Some(from.to_owned()),
            entered: counters.entered,
            entered_bytes: counters.entered_bytes,
            lost: counters.lost,
            duplicated: counters.duplicated,
            corrupted: counters.corrupted,
            queue_dropped: counters.queue_dropped,
            no_room: counters.no_room,
            delivered: counters.delivered,
            delivered_bytes: counters.delivered_bytes,
            reordered: counters.reordered,
            held: counters.held(),
            unfit: self.unfit,
            lateness: Some(HistogramReport::new(&self.lateness)),
        }
    }
}
