//! What was measured of a run's flows so far.

use std::sync::Arc;

use super::measured::Expected;
use crate::lifecycle::MeasuredSnapshot;
use crate::receive::Measuring;
use crate::result::MeasuredReport;

/// Answers what was measured of a run's flows while it goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveMeasurement {
    ends: Arc<[LiveEnd]>,
}

#[derive(Debug)]
struct LiveEnd {
    streams: Arc<Expected>,
    measuring: Measuring,
}

impl LiveMeasurement {
    pub(super) fn new(ends: impl IntoIterator<Item = (Arc<Expected>, Measuring)>) -> Self {
        let end = |(streams, measuring)| LiveEnd { streams, measuring };
        Self { ends: ends.into_iter().map(end).collect() }
    }

    /// How far the measurement has come at each end, by the places of port and flow in the plan;
    /// nothing of ends that receive no more.
    pub(super) fn received(&self) -> Vec<((usize, usize), MeasuredSnapshot)> {
        let at = |end: &LiveEnd| {
            let (port, streams) = (end.streams.port, Arc::clone(&end.streams));
            let received = end.measuring.ask(move |receiver| streams.received(receiver));
            received.unwrap_or_default().into_iter().map(move |(flow, it)| ((port, flow), it))
        };
        self.ends.iter().flat_map(at).collect()
    }

    /// What was measured of a flow so far, by its place in the plan, on each port where it should
    /// arrive. Nothing of one that is not measured, or where that has ended: then it is in the
    /// run's result.
    ///
    /// The thread that receives tells it, and fetches no frames while it does so: 10 to 100
    /// microseconds, more with thousands of VLAN tags.
    pub(super) fn measured(&self, flow: usize) -> Vec<MeasuredReport> {
        let at = |end: &LiveEnd| {
            let place = end.streams.place_of(flow)?;
            let streams = Arc::clone(&end.streams);
            end.measuring.ask(move |receiver| streams.report(place, receiver))
        };
        self.ends.iter().filter_map(at).collect()
    }
}
