//! Tests of the store with real files, processes and crashes.

mod crash;
mod damage;
mod index;
mod records;
mod runs;

use std::path::Path;

use serde::Serialize;
use wirestorm_base::histogram::Histogram;
use wirestorm_base::time::Duration;
use wirestorm_control::result::{
    DepartureReport, FlowReport, HistogramReport, Kind, MeasuredReport, PortReport, RunResult,
    SCHEMA, SeriesReport,
};
use wirestorm_method::distribution::Distribution;
use wirestorm_method::trial::{
    Length, Offer, OfferOutput, Step, StepOutput, TrialInput, TrialOutput,
};
use wirestorm_store::record::{RecordKind, RunRecord, TrialRecord};
use wirestorm_store::{RunWriter, Store};

/// Pseudorandom numbers (xorshift64*), reproducible from the seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn record(name: Option<&str>) -> RunRecord {
    let command = ["wirestorm", "replay", "a.pcap"].map(str::to_owned).to_vec();
    let mut record = RunRecord::new(RecordKind::Replay, command);
    record.name = name.map(str::to_owned);
    record
}

fn create(store: &Store, name: Option<&str>) -> RunWriter {
    store.create(record(name)).expect("a run")
}

fn histogram(random: &mut Random) -> HistogramReport {
    let mut histogram = Histogram::new();
    for _ in 0..400 {
        histogram.record(Duration::from_nanos(1_000 + random.below(5_000_000)));
    }
    HistogramReport::new(&histogram)
}

/// A trial with the result of one measured flow: histograms of departures and delays, a time series.
fn trial(number: u32) -> TrialRecord {
    let mut random = Random(u64::from(number) + 0x9e37_79b9);
    let buckets: Vec<(i64, u64)> =
        (0..300).map(|bucket| (bucket * 1_000 - 5_000, random.below(1 << 40))).collect();
    let delay = Distribution {
        count: buckets.iter().map(|(_, count)| count).sum(),
        min_ns: -5_000,
        mean_ns: random.next() as f64 / 3.0e12,
        max_ns: 294_123,
        buckets: buckets.clone(),
    };
    let mut measured = MeasuredReport { port: "right".into(), ..MeasuredReport::default() };
    measured.delay.count = delay.count;
    measured.delay.mean_ns = Some(delay.mean_ns);
    measured.delay.buckets = buckets;
    measured.series = Some(SeriesReport {
        interval_s: 0.1,
        packets: (0..64).map(|_| random.next()).collect(),
        delay_mean_ns: (0..64).map(|_| Some(random.next() as f64 / 7.0e15)).collect(),
        ..SeriesReport::default()
    });
    let mut port = PortReport { name: "left".into(), ..PortReport::default() };
    let mut tx = wirestorm_control::result::TransmitReport::default();
    tx.rates.pps = random.next() as f64 / 1.0e13;
    tx.departures = Some(DepartureReport {
        timestamp_point: "driver".into(),
        start_delay_ns: 1,
        schedule_shift_ns: 0,
        recovered_ns: 0,
        lateness_max_ns: random.below(1 << 30),
        gaps: histogram(&mut random),
        gap_errors: histogram(&mut random),
    });
    port.tx = Some(tx);
    let flow =
        FlowReport { name: "ipv4".into(), measured: vec![measured], ..FlowReport::default() };
    let result = RunResult {
        schema: SCHEMA.into(),
        kind: Kind::Streams,
        ports: vec![port],
        flows: vec![flow],
        ..RunResult::default()
    };
    let load = 1_000 + u64::from(number % 5);
    let length = Length::Time(Duration::from_secs(60));
    let step = StepOutput {
        intended: load * 60,
        offered: load * 60,
        received: load * 60 - u64::from(number % 3),
        seconds: 59.999_999_123,
        delay: Some(delay),
        ..StepOutput::default()
    };
    TrialRecord {
        number,
        started_unix_ns: 1_795_000_000_000_000_000 + u64::from(number),
        input: TrialInput {
            test: "throughput".into(),
            offers: vec![Offer {
                traffic: "ipv4".into(),
                frame_size: Some(64),
                steps: vec![Step { load, length }],
            }],
            reset_after_s: None,
            counts_seconds: false,
            connections: None,
        },
        output: TrialOutput {
            offers: vec![OfferOutput { steps: vec![step], ..OfferOutput::default() }],
            elapsed_s: 62.25,
            notes: vec!["a note".into()],
            ..TrialOutput::default()
        },
        result: Some(Box::new(result)),
    }
}

fn text(document: &impl Serialize) -> String {
    serde_json::to_string(document).expect("JSON")
}

fn open(directory: &Path) -> Store {
    let store = Store::open(directory).expect("a store");
    assert!(store.warnings().is_empty(), "{:?}", store.warnings());
    store
}
