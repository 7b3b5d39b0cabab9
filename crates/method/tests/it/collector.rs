//! The collector test finds the largest rate at which a collector stores all records.

use wirestorm_base::time::Duration;
use wirestorm_method::collector::{Collector, CollectorFindings};
use wirestorm_method::device::DeviceModel;
use wirestorm_method::estimate::remaining;
use wirestorm_method::method::{Findings, Method};
use wirestorm_method::trial::{
    CollectorOutput, OfferOutput, StepOutput, StreamSent, Trial, TrialError, TrialInput,
    TrialOutput,
};

use crate::Counted;

fn method(searches: bool) -> Collector {
    Collector {
        rates: (1..=10).map(|step| step * 100_000).collect(),
        searches,
        resolution: 0.01,
        protocol: "ipfix".into(),
        family: "ipv4".into(),
        exporters: 10,
        domains: 2,
        flows_per_stream: 0,
        datagram_length_max: 1_452,
        template_refresh: Duration::from_secs(60),
        template_refresh_datagrams: 20,
        trial: Duration::from_secs(10),
    }
}

fn run(method: &Collector, model: DeviceModel) -> (CollectorFindings, usize) {
    let mut device = Counted::new(model);
    let mut findings = CollectorFindings::default();
    method.run(&mut device, &mut findings).unwrap();
    (findings, device.trials.len())
}

#[test]
fn search_finds_the_capacity_within_the_resolution() {
    let model = DeviceModel { flows_per_second: 432_100.0, ..DeviceModel::default() };
    let (findings, trials) = run(&method(true), model);
    let (lower, upper) = (findings.throughput.unwrap(), findings.loss_begins.unwrap());
    assert!(lower <= 432_100 && upper > 432_100, "{lower} {upper}");
    assert!((upper - lower) as f64 <= 0.01 * upper as f64, "{lower} {upper}");
    assert!(findings.is_searched);
    assert_eq!(findings.points.len(), trials);
    let last = findings.points.last().unwrap();
    assert_eq!((last.sent_per_s, last.collector.stored), (1e6, Some(4_321_000)));
    assert_eq!(last.loss_percent.unwrap().round(), 57.0);
}

#[test]
fn estimate_has_the_trials_of_the_search() {
    let planned = |searches| remaining(&Method::Collector(method(searches)), &[], 0.45).len();
    assert_eq!(planned(false), 10);
    // A collector with 450,000 records/s: from 400,000 and 500,000 to 1 %.
    assert_eq!(planned(true), 15);
}

#[test]
fn rate_that_the_exporters_do_not_reach_is_no_throughput() {
    let model = DeviceModel { generator_max: 250_000.0, ..DeviceModel::default() };
    let (findings, _) = run(&method(false), model);
    assert_eq!((findings.throughput, findings.loss_begins), (Some(200_000), None));
    assert!(findings.points[2..].iter().all(|point| point.is_tester_limited));
    let warnings = findings.warnings();
    assert!(warnings[0].contains("did not reach 8 of 10 rates, first 300000"), "{warnings:?}");
}

/// Exporters whose records nobody counts. The first trial misses a tenth of the load.
#[derive(Default)]
struct Uncounted {
    trials: u32,
}

impl Trial for Uncounted {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let intended = input.offers[0].steps[0].units();
        let records = if self.trials == 0 { intended * 9 / 10 } else { intended };
        let step = StepOutput {
            intended,
            offered: records,
            received: records,
            seconds: 10.0,
            ..StepOutput::default()
        };
        let stream = StreamSent {
            exporter: 1,
            domain: 1,
            records,
            datagrams: 2,
            first_sequence: Some(2 * self.trials),
            last_sequence: Some(2 * self.trials + 1),
            ..StreamSent::default()
        };
        self.trials += 1;
        let collector =
            CollectorOutput { records, streams: vec![stream], ..CollectorOutput::default() };
        let offer = OfferOutput { steps: vec![step], ..OfferOutput::default() };
        Ok(TrialOutput {
            offers: vec![offer],
            collector: Some(collector),
            ..TrialOutput::default()
        })
    }
}

#[test]
fn streams_sum_all_trials_and_nothing_is_concluded_without_a_count() {
    let method = Collector { rates: vec![1_000, 2_000], ..method(true) };
    let mut exporters = Uncounted::default();
    let (findings, outcome) = Method::Collector(method).run(&mut exporters);
    outcome.unwrap();
    let Findings::Collector(findings) = findings else { panic!("{findings:?}") };
    // The first trial was repeated, and its records count.
    assert_eq!((findings.points.len(), exporters.trials), (2, 3));
    let [stream] = &findings.streams[..] else { panic!("{findings:?}") };
    assert_eq!((stream.records, stream.datagrams), (9_000 + 10_000 + 20_000, 6));
    assert_eq!((stream.first_sequence, stream.last_sequence), (Some(0), Some(5)));
    assert_eq!((findings.throughput, findings.loss_begins), (None, None));
    assert!(findings.points.iter().all(|point| point.is_lossless.is_none()));
    assert!(!findings.points[0].is_tester_limited && !findings.is_searched);
}
