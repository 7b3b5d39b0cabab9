//! Sample runs: the methods on simulated devices, a simulation of clients and servers, and streams
//! with invented delays.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use wirestorm_base::histogram::Histogram;
use wirestorm_base::time::Duration;
use wirestorm_control::emulation::{Part, SimulationOptions, WatchOptions, simulate};
use wirestorm_control::files::HostFiles;
use wirestorm_control::plan::emulation::EmulationPlan;
use wirestorm_control::result::{
    ClockAlternative, ClockEvent, DepartureReport, DistributionReport, FlowReport, HistogramReport,
    HostFacts, Kind, MeasuredReport, OneWayReport, OneWaySegment, Outcome, PortReport, RunResult,
    SCHEMA, SeriesReport, Verdict,
};
use wirestorm_method::device::{DeviceModel, SimulatedDevice};
use wirestorm_method::distribution::Distribution;
use wirestorm_method::flow_exporter::{FLOWS, FlowExporter};
use wirestorm_method::method::Method;
use wirestorm_method::mlrsearch::Mlrsearch;
use wirestorm_method::rfc2544::{BackToBackOptions, Rfc2544, Test};
use wirestorm_method::search::classification::Goal;
use wirestorm_method::trial::{Trial, TrialError, TrialInput, TrialOutput};
use wirestorm_report::run::{Run, RunOutput};
use wirestorm_store::process::ProcessRecord;
use wirestorm_store::record::{
    BENCH_SCHEMA, BenchResult, DeviceRecord, InterfaceRecord, MachineRecord, RecordKind, RunRecord,
    State, TrialRecord,
};

/// Text that breaks out of markup, scripts and tables if it is not escaped.
pub(crate) const HOSTILE: &str =
    "</script><img src=x onerror=\"document.title='broken'\">|`*_@all&amp;\u{202e}'";

/// Start of the first run: 2026-11-26 22:40:00 UTC.
const START: u64 = 1_795_732_800_000_000_000;

/// Plan of the emulated clients and servers: 1 % of the segments is lost on the way to the clients.
const PLAN: &str = "
ports:
  - {name: clients, addresses: 10.0.0.1/16}
  - {name: servers, addresses: 10.0.1.1/16, impair: {loss: 1%, delay: 2ms, jitter: 500us}}
templates:
  - name: pages
    http: {path: /page, response: {body: 20000, delay: 3ms}}
    client: {tx: clients, servers: 10.0.1.1, load: {rate: 60}}
    server: {tx: servers}
";

/// A device with delays that spread and grow with the load. It records its trials.
struct Device {
    device: SimulatedDevice,
    model: DeviceModel,
    trials: Vec<TrialRecord>,
    now_s: f64,
}

impl Trial for Device {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let mut output = self.device.run(input)?;
        for (offer, output) in input.offers.iter().zip(&mut output.offers) {
            let steps = offer.steps.iter().zip(&mut output.steps);
            for (step, output) in steps.filter(|(_, output)| output.delay.is_some()) {
                let share = step.load as f64 / self.model.capacity(offer.frame_size);
                let size = f64::from(offer.frame_size.unwrap_or(64));
                let median = self.model.delay_ns as f64 + size * 1.6 + 6_000.0 * share.powi(4);
                let jitter = 1.0 + 0.01 * (self.trials.len() % 7) as f64;
                output.delay = Some(spread(median * jitter, 0.18, output.received));
            }
        }
        if let Some(output) = &mut output.connections {
            for times in [
                &mut output.time_to_first_byte,
                &mut output.time_to_last_byte,
                &mut output.response_time,
            ] {
                *times = spread(times.mean_ns, 0.3, times.count);
            }
        }
        self.trials.push(TrialRecord {
            number: self.trials.len() as u32 + 1,
            started_unix_ns: START + (self.now_s * 1e9) as u64,
            input: input.clone(),
            output: output.clone(),
            result: None,
        });
        self.now_s += output.elapsed_s + 7.0;
        Ok(output)
    }
}

/// Returns log-normal delays, with a second mode of interrupted ones.
fn spread(median_ns: f64, sigma: f64, count: u64) -> Distribution {
    let mut buckets: BTreeMap<i64, u64> = BTreeMap::new();
    let mut add = |median: f64, sigma: f64, count: f64| {
        const STEP: f64 = 0.05;
        for place in -60..=110 {
            let z = f64::from(place) * STEP;
            let share = (-z * z / 2.0).exp() / (std::f64::consts::TAU).sqrt() * STEP;
            let part = (share * count).round() as u64;
            if part > 0 {
                *buckets.entry((median * (z * sigma).exp()) as i64).or_default() += part;
            }
        }
    };
    add(median_ns, sigma, count as f64 * 0.999);
    add(median_ns * 6.0, sigma * 1.5, count as f64 * 0.001);
    let count = buckets.values().sum::<u64>();
    let sum: f64 = buckets.iter().map(|(value, part)| *value as f64 * *part as f64).sum();
    Distribution {
        count,
        min_ns: buckets.keys().next().copied().unwrap_or(0),
        mean_ns: sum / count.max(1) as f64,
        max_ns: buckets.keys().next_back().copied().unwrap_or(0),
        buckets: buckets.into_iter().collect(),
    }
}

/// Runs a method on a device.
pub(crate) fn bench(id: &str, device: &str, method: Method, model: &DeviceModel) -> Run {
    let model = model.clone();
    let mut trial = Device {
        device: SimulatedDevice::new(model.clone()),
        model,
        trials: Vec::new(),
        now_s: 0.0,
    };
    let (findings, outcome) = method.run(&mut trial);
    outcome.expect("a simulation does not fail");
    let elapsed_s = trial.now_s;
    let result = BenchResult {
        schema: BENCH_SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        deviations: method.deviations(),
        parameters: method.clone(),
        warnings: findings.warnings(),
        findings,
        verdict: Verdict::default(),
        trials: trial.trials.len() as u32,
        trials_s: trial.trials.iter().map(|trial| trial.output.elapsed_s).sum(),
        elapsed_s,
        is_simulated: true,
    };
    let command = ["wirestorm", "bench", method.name(), "--simulate", "router.yaml"];
    let mut record = record(id, RecordKind::Bench);
    record.command = command.map(str::to_owned).to_vec();
    record.device = DeviceRecord {
        name: device.to_owned(),
        facts: [("firmware", "4.2.1"), ("ports", "2 x 10GBASE-SR")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    };
    record.method = Some(method);
    record.ended_unix_ns = Some(START + (elapsed_s * 1e9) as u64);
    Run { record, trials: trial.trials, result: Some(RunOutput::Bench(Box::new(result))) }
}

fn record(id: &str, kind: RecordKind) -> RunRecord {
    let mut record = RunRecord::new(kind, Vec::new());
    record.id = id.to_owned();
    record.state = State::Finished;
    record.version = "0.1.0".to_owned();
    record.host = HostFacts {
        name: "lab-7".to_owned(),
        kernel: "6.18.2".to_owned(),
        architecture: "x86_64".to_owned(),
        cpus: 8,
    };
    record.process = ProcessRecord::default();
    record.machine = MachineRecord {
        cpu_model: "AMD EPYC 9354P".to_owned(),
        cpus_isolated: "2-7".to_owned(),
        cpu_governor: "performance".to_owned(),
        clock_source: "tsc".to_owned(),
        memory_bytes: 64 << 30,
        operating_system: "Debian GNU/Linux 13".to_owned(),
        ..MachineRecord::default()
    };
    record.interfaces = ["enp1s0f0", "enp1s0f1"]
        .map(|interface| InterfaceRecord {
            interface: interface.to_owned(),
            kind: "physical".to_owned(),
            driver: "ice".to_owned(),
            driver_version: "6.18.2".to_owned(),
            firmware: "4.60".to_owned(),
            mtu: 1500,
            speed_bps: Some(10_000_000_000),
            transmit_queues: 4,
            receive_queues: 4,
            ..InterfaceRecord::default()
        })
        .to_vec();
    record.started_unix_ns = START;
    record
}

/// RFC 2544 on a router, with few repetitions.
pub(crate) fn rfc2544(id: &str, device: &str, traffic: &str, frames_per_second: f64) -> Run {
    let model = DeviceModel {
        frames_per_second,
        bits_per_second: 9.92e9,
        queue: 4_000,
        noise: 0.02,
        noise_frames: 3,
        reset_s: 11.5,
        delay_ns: 8_000,
        generator_max: 13.9e6,
        ..DeviceModel::default()
    };
    bench(id, device, Method::Rfc2544(method(traffic)), &model)
}

/// RFC 2544 on a router that is faster than the tester at 64 bytes.
pub(crate) fn tester_limited(id: &str) -> Run {
    let model = DeviceModel { generator_max: 12e6, ..DeviceModel::default() };
    bench(id, "router", Method::Rfc2544(method("ipv4")), &model)
}

fn method(traffic: &str) -> Rfc2544 {
    Rfc2544 {
        tests: Test::ALL.to_vec(),
        traffic: vec![traffic.to_owned()],
        back_to_back: BackToBackOptions { repetitions: 3, ..BackToBackOptions::default() },
        ..Rfc2544::default()
    }
}

/// MLRsearch with three goals on a device with noise. The search of one size ends early, so that it
/// has irregular results.
pub(crate) fn mlrsearch(id: &str) -> Run {
    let goal = |name| Goal::preset(name).expect("a goal");
    let method = Mlrsearch {
        goals: vec![goal("rfc2544"), goal("ndr"), goal("pdr")],
        traffic: vec!["ipv4".to_owned(), "ipv6".to_owned()],
        frame_sizes: vec![64, 256, 512, 1518],
        link_bps: 10_000_000_000,
        load_max: None,
        load_min: None,
        search_max: Duration::from_secs(600),
    };
    let model = DeviceModel {
        frames_per_second: 7.4e6,
        noise: 0.25,
        noise_frames: 4_000,
        delay_ns: 9_000,
        ..DeviceModel::default()
    };
    bench(id, "lab router", Method::Mlrsearch(method), &model)
}

/// Streams between two ports, with loss in the middle of the run.
pub(crate) fn streams(id: &str, flow_names: [&str; 2]) -> Run {
    let mut result = RunResult {
        schema: SCHEMA.into(),
        version: "0.1.0".into(),
        kind: Kind::Streams,
        plan: vec!["measured.yaml".to_owned()],
        ..RunResult::default()
    };
    result.times.elapsed_s = 60.0;
    result.times.started_unix_ns = Some(START);
    let mut left = PortReport { name: "left".into(), interface: "enp1s0f0".into(), ..port() };
    let right = PortReport { name: "right".into(), interface: "enp1s0f1".into(), ..port() };
    for (number, name) in flow_names.into_iter().enumerate() {
        let flow = flow(name, number as u64);
        let tx = left.tx.get_or_insert_default();
        tx.packets += flow.packets;
        tx.rates.pps += flow.rates.pps;
        tx.rates.bps_l1 += flow.rates.bps_l1;
        tx.rates.bps_l2 += flow.rates.bps_l2;
        result.flows.push(flow);
    }
    let mut gaps = Histogram::new();
    let mut errors = Histogram::new();
    for place in 0..200_000_u64 {
        let error =
            (place * 7_919 % 97) * (place * 104_729 % 13) + (place % 9_973 == 0) as u64 * 240_000;
        gaps.record(Duration::from_nanos(5_000 - 600 + error));
        errors.record(Duration::from_nanos(error.abs_diff(600)));
    }
    left.tx.get_or_insert_default().departures = Some(DepartureReport {
        timestamp_point: "xdp program".into(),
        start_delay_ns: 1_200,
        schedule_shift_ns: 0,
        recovered_ns: 0,
        lateness_max_ns: 240_000,
        gaps: HistogramReport::new(&gaps),
        gap_errors: HistogramReport::new(&errors),
    });
    result.achieved.tx = left.tx.clone().unwrap_or_default();
    result.achieved.tx.departures = None;
    result.achieved.rate_error_ppm = Some(1.4);
    result.ports = vec![left, right];
    let lost: u64 = result.flows.iter().filter_map(|flow| flow.lost).sum();
    if lost > 0 {
        let reasons = vec![format!("flow {}: {lost} frames lost", flow_names[1])];
        result.verdict = Verdict { outcome: Outcome::FellShort, reasons };
    }
    let mut record = record(id, RecordKind::Streams);
    record.device.name = "lab router".to_owned();
    Run { record, trials: Vec::new(), result: Some(RunOutput::Run(Box::new(result))) }
}

/// Streams between two machines, whose clocks were compared. The truth is known.
pub(crate) fn two_machines(id: &str) -> Run {
    let mut run = streams(id, ["forward", "backward"]);
    let Some(RunOutput::Run(result)) = &mut run.result else { return run };
    for (number, flow) in result.flows.iter_mut().enumerate() {
        for measured in &mut flow.measured {
            let delay = measured.delay.clone();
            let mean_ns = delay.mean_ns.unwrap_or(0.0);
            let segment = |second: u32| OneWaySegment {
                at_s: f64::from(second),
                count: 100_000,
                min_ns: 9_000,
                mean_ns: mean_ns + f64::from(second % 7) * 200.0,
                max_ns: 90_000,
                half_width_ns: 1_100.0,
            };
            measured.one_way = Some(OneWayReport {
                truth: Some(DistributionReport { mean_ns: Some(mean_ns - 400.0), ..delay.clone() }),
                delay,
                half_width_ns: 1_100.0,
                bound_ns: Some(4_900.0),
                assumption: "symmetric path".into(),
                method: "STAMP to 10.255.1.2:862".to_owned(),
                alternatives: vec![ClockAlternative {
                    method: "chrony on both".to_owned(),
                    assumption: "independent".into(),
                    half_width_ns: 310_000.0,
                    bound_ns: 310_000.0,
                    difference_ns: -21_000.0,
                }],
                half_round_trip_ns: Some(3_800.0),
                drift_ppm: 50.012,
                impossible: number as u64,
                events: vec![ClockEvent {
                    at_s: 30.0,
                    kind: "clock_step".into(),
                    offset_ns: 1_000_000_000,
                    ..ClockEvent::default()
                }],
                series: (0..60).map(segment).collect(),
                ..OneWayReport::default()
            });
        }
    }
    run
}

fn port() -> PortReport {
    PortReport { backend: Some("xdp".into()), ..PortReport::default() }
}

fn flow(name: &str, number: u64) -> FlowReport {
    const SECONDS: u64 = 60;
    let rate = 120_000 - number * 40_000;
    let packets = rate * SECONDS;
    let missing: Vec<u64> = (0..SECONDS)
        .map(|second| if number == 1 && (28..33).contains(&second) { 37 } else { 0 })
        .collect();
    let lost: u64 = missing.iter().sum();
    let delay = spread(14_000.0 + 5_000.0 * number as f64, 0.12, packets - lost);
    let wave = |second: u64| 1.0 + 0.08 * (second as f64 / 6.0).sin();
    let median = 14_000.0 + 5_000.0 * number as f64;
    let minimum = |second: u64| (median * 0.6 * wave(second)) as i64;
    let maximum = |second: u64| (median * 5.0 * wave(second * 7)) as i64;
    // The second flow has disorder for four seconds.
    let disorder = |count: u64| -> Vec<u64> {
        let is_in = |second| number == 1 && (40..44).contains(&second);
        (0..SECONDS).map(|second| if is_in(second) { count } else { 0 }).collect()
    };
    let reordered = disorder(3);
    let extent = |(second, &count): (u64, &u64)| (count > 0).then_some(2 + second % 4);
    let measured = MeasuredReport {
        port: "right".to_owned(),
        received: packets - lost,
        missing: lost,
        duplicated: number * 8,
        reordered: number * 12,
        reordering_extent_max: number * 5,
        pps: rate as f64,
        pdv: wirestorm_control::result::VariationReport {
            mean_ns: Some(3_100.0),
            p50_ns: Some(2_900),
            p99_ns: Some(9_000),
            p99_9_ns: Some(44_000),
            max_ns: Some(160_000),
        },
        delay: report(&delay),
        jitter_ns: 640,
        series: Some(SeriesReport {
            interval_s: 1.0,
            packets: missing
                .iter()
                .zip(disorder(2))
                .map(|(lost, more)| rate - lost + more)
                .collect(),
            bytes: vec![rate * 60; SECONDS as usize],
            received: missing.iter().map(|missing| rate - missing).collect(),
            duplicated: disorder(2),
            reordering_extent_max: (0..SECONDS).zip(&reordered).map(extent).collect(),
            reordered,
            delay_min_ns: (0..SECONDS).map(|second| Some(minimum(second))).collect(),
            delay_mean_ns: (0..SECONDS).map(|second| Some(median * wave(second))).collect(),
            delay_max_ns: (0..SECONDS).map(|second| Some(maximum(second))).collect(),
            pdv_max_ns: (0..SECONDS).map(|it| Some(maximum(it) - minimum(it))).collect(),
            ipdv_count: vec![rate; SECONDS as usize],
            ipdv_mean_ns: (0..SECONDS).map(|second| Some(900.0 * wave(second * 3))).collect(),
            ipdv_max_ns: (0..SECONDS).map(|second| Some(maximum(second) as u64 / 2)).collect(),
            jitter_ns: (0..SECONDS).map(|it| Some((640.0 * wave(it * 5)) as u64)).collect(),
            missing,
        }),
        ..MeasuredReport::default()
    };
    let bits = |size: u64| (rate * size * 8) as f64;
    FlowReport {
        name: name.to_owned(),
        tx: "left".to_owned(),
        rx: vec!["right".to_owned()],
        packets,
        bytes: packets * 60,
        rates: wirestorm_control::result::Rates {
            pps: rate as f64,
            bps_l1: bits(84),
            bps_l2: bits(64),
        },
        target_pps: Some(rate as f64),
        rate_error_ppm: Some(1.4),
        lost: Some(lost),
        loss_percent: Some(lost as f64 * 100.0 / packets as f64),
        measured: vec![measured],
        ..FlowReport::default()
    }
}

fn report(values: &Distribution) -> DistributionReport {
    DistributionReport {
        count: values.count,
        min_ns: Some(values.min_ns),
        mean_ns: Some(values.mean_ns),
        p50_ns: values.quantile(0.5),
        p90_ns: values.quantile(0.9),
        p99_ns: values.quantile(0.99),
        p99_9_ns: values.quantile(0.999),
        p99_99_ns: values.quantile(0.9999),
        max_ns: Some(values.max_ns),
        buckets: values.buckets.clone(),
    }
}

/// Clients and servers in virtual time.
pub(crate) fn emulation(id: &str) -> Run {
    let plan = EmulationPlan::parse(PLAN).unwrap_or_else(|error| panic!("{error}"));
    let options = SimulationOptions {
        folder: PathBuf::new(),
        files: Arc::new(HostFiles),
        output: None,
        part: Part::Full,
        limit: None,
        duration: Duration::from_secs(20),
        drain_timeout: Duration::from_secs(2),
        watch: WatchOptions { interval: Duration::from_millis(500), ..WatchOptions::default() },
        round_trip: Duration::from_micros(20),
        flows_max: 10_000,
        seed: 1,
    };
    let (result, _) = simulate(&plan, &options).unwrap_or_else(|error| panic!("{error}"));
    let mut record = record(id, RecordKind::Emulation);
    record.interfaces.clear();
    Run { record, trials: Vec::new(), result: Some(RunOutput::Run(Box::new(result))) }
}

/// A run with hostile names everywhere.
pub(crate) fn hostile() -> Run {
    let mut run = rfc2544(HOSTILE, HOSTILE, HOSTILE, 6e6);
    run.record.name = Some(HOSTILE.to_owned());
    run.record.command = vec!["wirestorm".to_owned(), HOSTILE.to_owned()];
    run.record.error = Some(HOSTILE.to_owned());
    run.record.files.insert(HOSTILE.to_owned(), HOSTILE.to_owned());
    run.record.device.facts.insert(HOSTILE.to_owned(), HOSTILE.to_owned());
    if let Some(RunOutput::Bench(result)) = &mut run.result {
        result.warnings.push(HOSTILE.to_owned());
        result.deviations.push(HOSTILE.to_owned());
        let reasons = vec![HOSTILE.to_owned()];
        result.verdict = Verdict { outcome: Outcome::FellShort, reasons };
    }
    run
}

/// The sweep of a flow exporter that captures up to 80,000 flows/s.
pub(crate) fn flow_export(id: &str) -> Run {
    let method = FlowExporter {
        rates: (1..=14).map(|step| step * 10_000).collect(),
        searches: true,
        resolution: 0.01,
        traffic: FLOWS.to_owned(),
        frame_size: Some(64),
        trial: Duration::from_secs(60),
        idle_timeout: Duration::from_secs(15),
        active_timeout_s: Some(120.0),
        cache_size: Some(500_000),
    };
    let model = DeviceModel {
        flows_per_second: 81_500.0,
        generator_max: 135_000.0,
        ..DeviceModel::default()
    };
    bench(id, "lab exporter", Method::FlowExporter(method), &model)
}
