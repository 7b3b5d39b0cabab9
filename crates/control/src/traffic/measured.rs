//! What was measured of each flow: from the records of all workers' streams to a report.

use std::collections::BTreeMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::{
    Distribution, MeasureOptions, MeasuredStream, PacketDelayVariation, PayloadCheck, Receiver,
    Sequence, SequenceCounters, Series, StreamRecord, StreamSummary, Tallies, Tally, VlanTags,
};
use wirestorm_engine::stream::Share;
use wirestorm_plan::traffic::{Flow, TrafficPlan};

use super::error::TrafficError;
use super::lane::Lane;

/// What was measured of a flow on one port.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MeasuredReport {
    /// The port's name in the plan.
    pub port: String,
    /// Frames of the flow that arrived, each counted once.
    pub received: u64,
    /// Bytes without FCS of all its arrivals, further copies included.
    pub received_bytes: u64,
    /// Frames below the last one that arrived which have not come. At the end those are lost that
    /// would have come behind it, too.
    pub missing: u64,
    /// How often frames were left out: arrivals beyond the one expected next.
    pub gaps: u64,
    /// Arrivals of a frame beyond its first one (RFC 5560).
    pub duplicated: u64,
    /// Frames that arrived after one sent later (RFC 4737 section 3.3).
    pub reordered: u64,
    /// The greatest reordering extent, in frames (RFC 4737 section 4.2).
    pub reordering_extent_max: u64,
    /// Frames that arrived after `n` that were all sent later, by n from 1 (RFC 4737 section 5);
    /// TCP takes those of n = 3 for lost.
    pub n_reordered: Vec<u64>,
    /// Arrivals so long after later ones that nobody knows whether they are late or repeats.
    pub too_late: u64,
    /// Frames whose payload was not as it was sent; none where it was not compared.
    pub corrupt: Option<u64>,
    /// Frames with the flow's signature that an earlier run had sent; counted nowhere else.
    pub stale: u64,
    /// Arrivals a second, from the first to the last.
    pub pps: f64,
    /// One-way delay.
    pub delay: DistributionReport,
    /// Packet delay variation: each delay less the least (RFC 5481 section 4.2).
    pub pdv: VariationReport,
    /// Inter-packet delay variation: each delay less that of the frame before (RFC 5481
    /// section 4.1).
    pub ipdv: DistributionReport,
    /// Interarrival jitter in nanoseconds (RFC 3550 section 6.4.1); of several workers' frames
    /// the greatest.
    pub jitter_ns: u64,
    /// What happened when.
    pub series: Option<SeriesReport>,
    /// Arrivals by the VLAN tags that they had, where that was asked for.
    pub tags: Vec<TagReport>,
}

/// What arrived of a flow under the same VLAN tags. Its frames are numbered through the whole flow,
/// so that those which arrived under other tags are missing here.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TagReport {
    /// The VLANs, the outer one first, two at most; none of frames without a tag.
    pub vlans: Vec<u16>,
    /// Arrivals, further copies included.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// Frames below the last one under these tags which have not come under them.
    pub missing: u64,
    /// How often frames were left out.
    pub gaps: u64,
    /// Arrivals of a frame beyond its first one.
    pub duplicated: u64,
    /// Frames that arrived after one sent later.
    pub reordered: u64,
    /// Arrivals more than 64 frames after later ones, which may be late or repeats.
    pub too_late: u64,
}

/// How values in nanoseconds are spread.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DistributionReport {
    /// Values counted.
    pub count: u64,
    /// The least.
    pub min_ns: Option<i64>,
    /// The mean.
    pub mean_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<i64>,
    /// 90 of 100 are at most this.
    pub p90_ns: Option<i64>,
    /// 99 of 100 are at most this.
    pub p99_ns: Option<i64>,
    /// 999 of 1,000 are at most this.
    pub p99_9_ns: Option<i64>,
    /// 9,999 of 10,000 are at most this.
    pub p99_99_ns: Option<i64>,
    /// The greatest.
    pub max_ns: Option<i64>,
    /// Start of each bucket that is not empty, and its count.
    pub buckets: Vec<(i64, u64)>,
}

/// How far delays are above the least one, in nanoseconds.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VariationReport {
    /// The mean.
    pub mean_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<i64>,
    /// 99 of 100 are at most this.
    pub p99_ns: Option<i64>,
    /// 999 of 1,000 are at most this.
    pub p99_9_ns: Option<i64>,
    /// The greatest.
    pub max_ns: Option<i64>,
}

/// What happened in intervals of equal length from the start of the run.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SeriesReport {
    /// How long each interval is, in seconds.
    pub interval_s: f64,
    /// Arrivals in each interval.
    pub packets: Vec<u64>,
    /// Their bytes without FCS.
    pub bytes: Vec<u64>,
    /// Frames found missing in each that have not come since.
    pub missing: Vec<u64>,
    /// The mean delay of each in nanoseconds; none where nothing arrived.
    pub delay_mean_ns: Vec<Option<f64>>,
    /// The greatest.
    pub delay_max_ns: Vec<Option<i64>>,
}

impl From<&Distribution> for DistributionReport {
    fn from(values: &Distribution) -> Self {
        Self {
            count: values.count(),
            min_ns: values.min(),
            mean_ns: values.mean(),
            p50_ns: values.quantile(0.5),
            p90_ns: values.quantile(0.9),
            p99_ns: values.quantile(0.99),
            p99_9_ns: values.quantile(0.999),
            p99_99_ns: values.quantile(0.9999),
            max_ns: values.max(),
            buckets: values.buckets().collect(),
        }
    }
}

impl From<&PacketDelayVariation> for VariationReport {
    fn from(values: &PacketDelayVariation) -> Self {
        Self {
            mean_ns: values.mean(),
            p50_ns: values.quantile(0.5),
            p99_ns: values.quantile(0.99),
            p99_9_ns: values.quantile(0.999),
            max_ns: values.max(),
        }
    }
}

impl From<&Series> for SeriesReport {
    fn from(series: &Series) -> Self {
        let intervals = series.intervals();
        Self {
            interval_s: series.length().as_secs_f64(),
            packets: intervals.iter().map(|interval| interval.frames).collect(),
            bytes: intervals.iter().map(|interval| interval.bytes).collect(),
            missing: intervals.iter().map(|interval| interval.missing).collect(),
            delay_mean_ns: intervals.iter().map(|interval| interval.delay_ns_mean()).collect(),
            delay_max_ns: intervals
                .iter()
                .map(|interval| (interval.delays > 0).then_some(interval.delay_ns_max))
                .collect(),
        }
    }
}

/// Which streams arrive at a port, in the order of its receiver's records.
#[derive(Debug)]
pub(super) struct Expected {
    /// The port's place in the plan, and its name.
    pub(super) port: usize,
    name: String,
    /// `workers` records of each, one after the other.
    flows: Vec<ExpectedFlow>,
    workers: usize,
}

/// A flow that is measured.
#[derive(Clone, Copy, Debug)]
struct ExpectedFlow {
    /// Its place in the plan.
    flow: usize,
    /// Whether its payload is compared.
    compares: bool,
}

/// Records of all flows together take about this much of what grows with the window, in frames.
const WINDOWS_FRAMES: usize = 1 << 22;
const WINDOW_FRAMES_MAX: usize = 1 << 14;
/// With so many records or more, there are fewer intervals of each.
const RECORDS_MANY: usize = 1_000;

impl Expected {
    /// What is measured at a port; none where nothing is.
    pub(super) fn at(
        port: usize,
        plan: &TrafficPlan,
        lanes: &[Lane],
        workers: usize,
    ) -> Option<Self> {
        let is_measured = |flow: &usize| {
            let flow = &plan.flows[*flow];
            is_recognised(flow) && flow.receive.contains(&port)
        };
        let expected =
            |flow: usize| ExpectedFlow { flow, compares: plan.flows[flow].payload.is_some() };
        let all = lanes.iter().flat_map(|lane| &lane.flows).copied();
        let flows: Vec<ExpectedFlow> = all.filter(is_measured).map(expected).collect();
        let name = plan.ports[port].name.clone();
        (!flows.is_empty()).then_some(Self { port, name, flows, workers })
    }

    /// What measures them, from `started` on; `by_tag`: by their VLAN tags too.
    pub(super) fn receiver(
        &self,
        plan: &TrafficPlan,
        lanes: &[Lane],
        started: Instant,
        by_tag: bool,
    ) -> Result<Receiver, TrafficError> {
        let mut streams = Vec::new();
        let mut marked = Vec::new();
        for lane in lanes {
            for (position, (flow, stream)) in lane.flows.iter().zip(&lane.streams).enumerate() {
                if self.place_of(*flow).is_none() {
                    continue;
                }
                let payload = plan.flows[*flow].payload;
                let payload = payload.and_then(|start| PayloadCheck::of_stream(stream, start));
                for index in 0..self.workers as u64 {
                    let share = Share { index, workers: self.workers as u64 };
                    let id = share.number(lane.numbered_from, position as u32);
                    streams.push(MeasuredStream { id, payload: payload.clone() });
                    // All workers send frames with the mark of the first one.
                    if stream.is_marked && index == 0 {
                        marked.push((id, *flow));
                    }
                }
            }
        }
        let records = streams.len();
        let options = MeasureOptions {
            window: (WINDOWS_FRAMES / records.max(1))
                .clamp(*Sequence::WINDOWS.start(), WINDOW_FRAMES_MAX),
            intervals_max: if records < RECORDS_MANY { 256 } else { 32 },
            interval: Duration::from_millis(10),
            started,
            same_clock: true,
            by_tag,
        };
        let mut receiver = Receiver::new(streams, &options);
        for (id, flow) in marked {
            if !receiver.count_marked(id) {
                return Err(TrafficError::NoMark(plan.flows[flow].stream.name.clone()));
            }
        }
        Ok(receiver)
    }

    /// Where a flow of the plan stands among these; none where it is not measured here.
    pub(super) fn place_of(&self, flow: usize) -> Option<usize> {
        self.flows.iter().position(|expected| expected.flow == flow)
    }

    /// What was measured of each flow, by its place in the plan.
    pub(super) fn reports(&self, receiver: &Receiver) -> Vec<(usize, MeasuredReport)> {
        let flows = self.flows.iter().enumerate();
        flows.map(|(place, expected)| (expected.flow, self.report(place, receiver))).collect()
    }

    /// What was measured of the flow at `place` among these.
    pub(super) fn report(&self, place: usize, receiver: &Receiver) -> MeasuredReport {
        let records = self.records(place);
        let mut tags: BTreeMap<VlanTags, (Tally, SequenceCounters)> = BTreeMap::new();
        for (key, record) in records.clone().flat_map(|record| receiver.tags(record)) {
            let (arrived, counters) = tags.entry(key).or_default();
            arrived.merge(record.arrived());
            counters.add(record.counters());
        }
        let summary = StreamSummary::new(&receiver.records()[records]);
        let mut report = MeasuredReport::new(&self.name, &summary, self.flows[place].compares);
        report.tags = tags.iter().map(TagReport::from).collect();
        report
    }

    /// How far the measurement of each flow has come, by its place in the plan.
    pub(super) fn received(&self, receiver: &Receiver) -> Vec<(usize, Received)> {
        let flows = self.flows.iter().enumerate();
        let received = flows.map(|(place, expected)| {
            let records = &receiver.records()[self.records(place)];
            (expected.flow, Received::of(records))
        });
        received.collect()
    }

    fn records(&self, place: usize) -> Range<usize> {
        place * self.workers..(place + 1) * self.workers
    }
}

impl From<(&VlanTags, &(Tally, SequenceCounters))> for TagReport {
    fn from((tags, (arrived, counters)): (&VlanTags, &(Tally, SequenceCounters))) -> Self {
        Self {
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
}

/// Whether frames of a flow are recognised where they arrive.
pub(super) fn is_recognised(flow: &Flow) -> bool {
    flow.stream.is_measured || flow.stream.is_marked
}

/// What has arrived of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Received {
    /// Frames, each counted once.
    pub frames: u64,
    /// Bytes without FCS of all arrivals, further copies included.
    pub bytes: u64,
    /// Further copies of them.
    pub duplicated: u64,
    /// Those that arrived after one sent later.
    pub reordered: u64,
    /// Their mean delay in nanoseconds; none of nothing.
    pub delay_mean_ns: Option<f64>,
}

impl Received {
    fn of(records: &[StreamRecord]) -> Self {
        let mut received = Self::default();
        for record in records {
            let counters = record.ordered().map(|ordered| *ordered.sequence().counters());
            let &Tallies { frames, bytes, .. } = record.tallies();
            // Of what is only counted, nobody knows which frames are repeats.
            let frames = counters.map_or(frames, |counters| counters.received);
            let SequenceCounters { duplicated, reordered, .. } = counters.unwrap_or_default();
            let delay_mean_ns = record.delay().delays().mean();
            received.add(&Self { frames, bytes, duplicated, reordered, delay_mean_ns });
        }
        received
    }

    /// Adds what arrived of another part, or at another port.
    pub(super) fn add(&mut self, other: &Self) {
        let sum = |part: &Self| part.delay_mean_ns.unwrap_or(0.0) * part.frames as f64;
        let delays = sum(self) + sum(other);
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.delay_mean_ns = (self.frames > 0).then(|| delays / self.frames as f64);
    }
}

impl MeasuredReport {
    fn new(port: &str, summary: &StreamSummary, compares: bool) -> Self {
        let tallies = &summary.tallies;
        let counters = summary.sequence.unwrap_or_default();
        let span = tallies.first.zip(tallies.last);
        let span_s = span.map_or(0.0, |(first, last)| last.saturating_since(first).as_secs_f64());
        Self {
            port: port.to_owned(),
            received: summary.sequence.map_or(tallies.frames, |it| it.received),
            received_bytes: tallies.bytes,
            missing: counters.missing,
            gaps: counters.gaps,
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
            tags: Vec::new(),
        }
    }
}
