//! Measurement of flows while the run continues.

use std::collections::BTreeMap;
use std::sync::Arc;

use wirestorm_base::time::Instant;
use wirestorm_engine::measure::Distribution;

use super::measured::ExpectedFlows;
use crate::lifecycle::{LiveQuery, MeasuredSnapshot};
use crate::receive::MeasurementQuery;
use crate::result::{MeasuredReport, TagReport};

/// Queries the measurement of flows during a run.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveMeasurement {
    ends: Arc<[LiveEnd]>,
}

#[derive(Debug)]
struct LiveEnd {
    streams: Arc<ExpectedFlows>,
    measuring: MeasurementQuery,
}

impl LiveMeasurement {
    pub(super) fn new(
        ends: impl IntoIterator<Item = (Arc<ExpectedFlows>, MeasurementQuery)>,
    ) -> Self {
        let end = |(streams, measuring)| LiveEnd { streams, measuring };
        Self { ends: ends.into_iter().map(end).collect() }
    }

    /// Returns the progress of the measurement at each receiver, by the indices of port and flow in
    /// the plan. Skips receivers that have ended.
    pub(super) fn received(&self) -> Vec<((usize, usize), MeasuredSnapshot)> {
        let at = |end: &LiveEnd| {
            let (port, streams) = (end.streams.port, Arc::clone(&end.streams));
            let received = end.measuring.ask(move |receiver| streams.received(receiver));
            received.unwrap_or_default().into_iter().map(move |(flow, it)| ((port, flow), it))
        };
        self.ends.iter().flat_map(at).collect()
    }
}

impl LiveQuery for LiveMeasurement {
    /// Returns the measurement of a flow so far at each receiving port, by index in the plan. Empty
    /// if the flow is not measured or receiving has ended; the result contains the measurement
    /// then.
    ///
    /// The receiver thread prepares the answer. It fetches no frames for 10 to 100 microseconds, or
    /// longer with thousands of VLAN tags.
    fn measured(&self, flow: usize, since: Instant) -> Vec<MeasuredReport> {
        let at = |end: &LiveEnd| {
            let place = end.streams.place_of(flow)?;
            let streams = Arc::clone(&end.streams);
            end.measuring.ask(move |receiver| streams.report(place, receiver, since))
        };
        self.ends.iter().filter_map(at).collect()
    }

    /// The receiver thread copies the distributions: 1 to 20 KiB for each flow and worker.
    fn delays(&self, flows: &[usize]) -> BTreeMap<usize, Distribution> {
        let mut sums: BTreeMap<usize, Distribution> = BTreeMap::new();
        for end in &*self.ends {
            let (streams, flows) = (Arc::clone(&end.streams), flows.to_vec());
            let delays = end.measuring.ask(move |receiver| streams.delays(receiver, &flows));
            for (flow, delays) in delays.unwrap_or_default() {
                sums.entry(flow).or_default().merge(&delays);
            }
        }
        sums
    }

    fn stop_comparing(&self, flows: &[usize]) {
        for end in &*self.ends {
            let (streams, flows) = (Arc::clone(&end.streams), flows.to_vec());
            end.measuring.ask(move |receiver| streams.stop_comparing(receiver, &flows));
        }
    }

    fn tags(&self, flows: &[usize]) -> Vec<Vec<TagReport>> {
        let mut tags = vec![Vec::new(); flows.len()];
        for end in &*self.ends {
            let streams = Arc::clone(&end.streams);
            let places: Vec<_> = flows.iter().map(|flow| streams.place_of(*flow)).collect();
            let answer = end.measuring.ask(move |receiver| {
                let tags = |place| streams.tags(place, receiver);
                places
                    .into_iter()
                    .map(|place| place.map_or_else(Vec::new, tags))
                    .collect::<Vec<_>>()
            });
            for (all, found) in tags.iter_mut().zip(answer.into_iter().flatten()) {
                all.extend(found);
            }
        }
        tags
    }
}
