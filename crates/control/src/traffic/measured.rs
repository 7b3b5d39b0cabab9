//! Builds the measurement report of each flow from the records of all workers' streams.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use wirestorm_base::time::Instant;
use wirestorm_engine::measure::{
    Distribution, MeasureOptions, MeasuredStream, PayloadCheck, Receiver, Sequence,
    SequenceCounters, StreamRecord, StreamSummary, Tallies, Tally, ValueRecord, VlanTags,
};
use wirestorm_engine::stream::Share;
use wirestorm_model::stream::FrameBits;
use wirestorm_plan::traffic::{Flow, TrafficPlan};

use super::error::TrafficError;
use super::options::StreamOptions;
use super::workload::PortWorkload;
use crate::lifecycle::MeasuredSnapshot;
use crate::result::{MeasuredReport, SegmentReport, SeriesReport, TagReport, ValuesReport};
use crate::to_unix_ns;

/// Measured flows that arrive at a port, in the order of its receiver's records.
#[derive(Debug)]
pub(super) struct ExpectedFlows {
    /// Index of the port in the plan.
    pub(super) port: usize,
    name: String,
    /// Flows. The receiver has `workers` consecutive records for each.
    flows: Vec<ExpectedFlow>,
    workers: usize,
}

/// A measured flow.
#[derive(Clone, Copy, Debug)]
struct ExpectedFlow {
    /// Index in the plan.
    flow: usize,
    /// Whether the receiver compares the payload.
    compares: bool,
}

/// Approximate sum of the sequence windows of all records, in frames. It bounds the memory.
const WINDOWS_FRAMES: usize = 1 << 22;
const WINDOW_FRAMES_MAX: usize = 1 << 14;
/// Number of records from which each has a shorter time series.
const RECORDS_MANY: usize = 1_000;

impl ExpectedFlows {
    /// Returns the measured flows of a port; `None` if there are none.
    pub(super) fn at(
        port: usize,
        plan: &TrafficPlan,
        workloads: &[PortWorkload],
        workers: usize,
    ) -> Option<Self> {
        let is_measured = |flow: &usize| {
            let flow = &plan.flows[*flow];
            is_recognised(flow) && flow.rx_ports.contains(&port)
        };
        let expected =
            |flow: usize| ExpectedFlow { flow, compares: plan.flows[flow].payload.is_some() };
        let all = workloads.iter().flat_map(|workload| &workload.flows).copied();
        let flows: Vec<ExpectedFlow> = all.filter(is_measured).map(expected).collect();
        let name = plan.ports[port].name.clone();
        (!flows.is_empty()).then_some(Self { port, name, flows, workers })
    }

    /// Creates the receiver that measures the flows from `started` on.
    pub(super) fn receiver(
        &self,
        plan: &TrafficPlan,
        workloads: &[PortWorkload],
        started: Instant,
        options: &StreamOptions,
    ) -> Result<Receiver, TrafficError> {
        let mut streams = Vec::new();
        let (mut marked, mut counted) = (Vec::new(), Vec::new());
        for workload in workloads {
            let segments = options.segments_of(workload.port);
            for (position, (flow, stream)) in
                workload.flows.iter().zip(&workload.streams).enumerate()
            {
                if self.place_of(*flow).is_none() {
                    continue;
                }
                if segments.is_some() && !stream.is_measured {
                    return Err(TrafficError::NoSignature(stream.name.clone()));
                }
                let bits = &plan.flows[*flow].counted_bits;
                let bits: Option<Arc<[FrameBits]>> =
                    (!bits.is_empty()).then(|| bits.as_slice().into());
                let payload = plan.flows[*flow].payload;
                let payload = payload.and_then(|start| PayloadCheck::of_stream(stream, start));
                for index in 0..self.workers as u64 {
                    let share = Share { index, workers: self.workers as u64 };
                    let id = share.number(workload.numbered_from, position as u32);
                    streams.push(MeasuredStream { id, payload: payload.clone(), segments });
                    if let Some(bits) = &bits {
                        counted.push((id, Arc::clone(bits)));
                    }
                    // All workers send frames with the mark of the first one.
                    if stream.is_marked && index == 0 {
                        marked.push((id, *flow));
                    }
                }
            }
        }
        let records = streams.len();
        let measure = MeasureOptions {
            window: (WINDOWS_FRAMES / records.max(1))
                .clamp(*Sequence::WINDOWS.start(), WINDOW_FRAMES_MAX),
            intervals_max: if records < RECORDS_MANY { options.series.intervals_max } else { 32 },
            interval: options.series.interval,
            started,
            same_clock: true,
            per_vlan: options.per_vlan,
        };
        let mut receiver = Receiver::new(streams, &measure);
        for (id, flow) in marked {
            if !receiver.count_by_mark(id) {
                return Err(TrafficError::NoMark(plan.flows[flow].stream.name.clone()));
            }
        }
        for (id, bits) in counted {
            receiver.count_by_values(id, bits);
        }
        Ok(receiver)
    }

    /// Returns the index of a flow of the plan in `flows`; `None` if it is not measured here.
    pub(super) fn place_of(&self, flow: usize) -> Option<usize> {
        self.flows.iter().position(|expected| expected.flow == flow)
    }

    /// Returns the report of each flow, with its index in the plan.
    pub(super) fn reports(&self, receiver: &Receiver) -> Vec<(usize, MeasuredReport)> {
        let flows = self.flows.iter().enumerate();
        flows
            .map(|(place, expected)| (expected.flow, self.report(place, receiver, Instant::ZERO)))
            .collect()
    }

    /// Returns the report of the flow at index `place`, without segments that ended before `since`.
    pub(super) fn report(
        &self,
        place: usize,
        receiver: &Receiver,
        since: Instant,
    ) -> MeasuredReport {
        let records = self.records(place);
        let mut values: BTreeMap<&[u128], ValueRecord> = BTreeMap::new();
        for (key, record) in records.clone().flat_map(|record| receiver.values(record)) {
            match values.get_mut(key) {
                Some(sum) => sum.merge(record),
                None => drop(values.insert(key, *record)),
            }
        }
        let summary = StreamSummary::new(&receiver.records()[records]);
        let mut report = measured_report(&self.name, &summary, self.flows[place].compares);
        report.tags = self.tags(place, receiver);
        let segments =
            receiver.records()[self.records(place)].iter().flat_map(StreamRecord::segments);
        let segments = segments.filter(|segment| segment.end >= since);
        report.segments = segments.map(SegmentReport::from).collect();
        report.values = values.iter().map(values_report).collect();
        report
    }

    /// Returns the counters by VLAN tag of the flow at index `place`.
    pub(super) fn tags(&self, place: usize, receiver: &Receiver) -> Vec<TagReport> {
        let mut tags: BTreeMap<VlanTags, (Tally, SequenceCounters)> = BTreeMap::new();
        for (key, record) in self.records(place).flat_map(|record| receiver.tags(record)) {
            let (arrived, counters) = tags.entry(key).or_default();
            arrived.merge(record.arrived());
            counters.add(record.counters());
        }
        tags.iter().map(tag_report).collect()
    }

    /// Returns the progress of each flow, with its index in the plan.
    pub(super) fn received(&self, receiver: &Receiver) -> Vec<(usize, MeasuredSnapshot)> {
        let flows = self.flows.iter().enumerate();
        let received = flows.map(|(place, expected)| {
            let records = &receiver.records()[self.records(place)];
            (expected.flow, snapshot(records))
        });
        received.collect()
    }

    /// Returns the delays of the measured ones among some flows, by index in the plan.
    pub(super) fn delays(
        &self,
        receiver: &Receiver,
        flows: &[usize],
    ) -> Vec<(usize, Distribution)> {
        let delays = flows.iter().filter_map(|&flow| {
            let mut records = receiver.records()[self.records(self.place_of(flow)?)].iter();
            let mut sum = records.next()?.delay().delays().clone();
            records.for_each(|record| sum.merge(record.delay().delays()));
            Some((flow, sum))
        });
        delays.collect()
    }

    /// Ends the comparison of the payload of flows, by index in the plan.
    pub(super) fn stop_comparing(&self, receiver: &mut Receiver, flows: &[usize]) {
        for place in flows.iter().filter_map(|flow| self.place_of(*flow)) {
            self.records(place).for_each(|record| receiver.stop_comparing(record));
        }
    }

    fn records(&self, place: usize) -> Range<usize> {
        place * self.workers..(place + 1) * self.workers
    }
}

fn tag_report((tags, (arrived, counters)): (&VlanTags, &(Tally, SequenceCounters))) -> TagReport {
    TagReport {
        vlans: match *tags {
            VlanTags::None => Vec::new(),
            VlanTags::One(only) => vec![only],
            VlanTags::Two(outer, inner) => vec![outer, inner],
        },
        packets: arrived.frames,
        bytes: arrived.bytes,
        missing: counters.missing,
        gaps: counters.gaps,
        duplicated: counters.duplicated,
        reordered: counters.reordered,
        too_late: counters.too_late,
    }
}

fn values_report((values, record): (&&[u128], &ValueRecord)) -> ValuesReport {
    let Tally { frames, bytes } = record.arrived;
    ValuesReport {
        values: values.iter().map(|value| format!("{value:#x}")).collect(),
        packets: frames,
        bytes,
        first_unix_ns: to_unix_ns(record.first),
        last_unix_ns: to_unix_ns(record.last),
        delay_min_ns: record.delay_min_ns,
        delay_mean_ns: record.delay_sum_ns as f64 / frames.max(1) as f64,
        delay_max_ns: record.delay_max_ns,
    }
}

/// Returns whether receivers recognise the frames of a flow, by signature or by mark.
pub(super) fn is_recognised(flow: &Flow) -> bool {
    flow.stream.is_measured || flow.stream.is_marked
}

/// Returns the progress of a flow from its records.
fn snapshot(records: &[StreamRecord]) -> MeasuredSnapshot {
    let mut sum = MeasuredSnapshot::default();
    for record in records {
        let counters = record.ordered().map(|ordered| *ordered.sequence().counters());
        let &Tallies { frames, bytes, first, last, .. } = record.tallies();
        // Marked frames have no sequence numbers, so duplicates are unknown.
        let frames = counters.map_or(frames, |counters| counters.received);
        let SequenceCounters { duplicated, reordered, .. } = counters.unwrap_or_default();
        let delays = record.delay().delays();
        let part = MeasuredSnapshot {
            frames,
            bytes,
            duplicated,
            reordered,
            delay_mean_ns: delays.mean(),
            delay_min_ns: delays.min(),
            delay_max_ns: delays.max(),
            jitter_ns: record.ordered().map(|ordered| ordered.jitter().nanoseconds()),
            arrivals: first.zip(last),
        };
        add(&mut sum, &part);
    }
    sum
}

/// Adds the counts of another part of the flow, or of another port.
pub(super) fn add(sum: &mut MeasuredSnapshot, other: &MeasuredSnapshot) {
    sum.delay_mean_ns = match (sum.delay_mean_ns, other.delay_mean_ns) {
        (Some(mine), Some(theirs)) => {
            let (frames, others) = (sum.frames as f64, other.frames as f64);
            Some((mine * frames + theirs * others) / (frames + others).max(1.0))
        }
        (mine, theirs) => mine.or(theirs),
    };
    let least = [sum.delay_min_ns, other.delay_min_ns].into_iter().flatten().min();
    sum.delay_min_ns = least;
    sum.delay_max_ns = sum.delay_max_ns.max(other.delay_max_ns);
    sum.jitter_ns = sum.jitter_ns.max(other.jitter_ns);
    sum.arrivals = match (sum.arrivals, other.arrivals) {
        (Some(mine), Some(theirs)) => Some((mine.0.min(theirs.0), mine.1.max(theirs.1))),
        (mine, theirs) => mine.or(theirs),
    };
    sum.frames += other.frames;
    sum.bytes += other.bytes;
    sum.duplicated += other.duplicated;
    sum.reordered += other.reordered;
}

fn measured_report(port: &str, summary: &StreamSummary, compares: bool) -> MeasuredReport {
    let tallies = &summary.tallies;
    let counters = summary.sequence.unwrap_or_default();
    let span = tallies.first.zip(tallies.last);
    let span_s = span.map_or(0.0, |(first, last)| last.saturating_since(first).as_secs_f64());
    MeasuredReport {
        port: port.to_owned(),
        received: summary.sequence.map_or(tallies.frames, |it| it.received),
        received_bytes: tallies.bytes,
        missing: counters.missing,
        gaps: counters.gaps,
        gap_max_s: summary.gaps.last.map(|_| summary.gaps.longest.as_secs_f64()),
        last_gap_s: summary
            .gaps
            .last
            .zip(tallies.first)
            .map(|(last, first)| last.saturating_since(first).as_secs_f64()),
        duplicated: counters.duplicated,
        reordered: counters.reordered,
        reordering_extent_max: counters.extent_max,
        n_reordered: counters.n_reordered.to_vec(),
        too_late: counters.too_late,
        corrupt: compares.then_some(tallies.corrupt),
        stale: tallies.stale,
        pps: if span_s > 0.0 { tallies.frames.saturating_sub(1) as f64 / span_s } else { 0.0 },
        delay: summary.delay.delays().into(),
        pdv: summary.delay.variation().into(),
        ipdv: (&summary.ipdv).into(),
        jitter_ns: summary.jitter_ns,
        series: summary.series.as_ref().map(SeriesReport::from),
        one_way: None,
        segments: Vec::new(),
        tags: Vec::new(),
        values: Vec::new(),
    }
}
