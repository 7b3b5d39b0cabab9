//! Figures of runs by metric, for limits and for the JSON format.

mod services;

use serde::Serialize;
use wirestorm_control::result::{DistributionReport, HistogramReport, RunResult, TransmitReport};
use wirestorm_method::collector::CollectorFindings;
use wirestorm_method::distribution::Distribution;
use wirestorm_method::flow_exporter::FlowExporterFindings;
use wirestorm_method::method::Findings;
use wirestorm_method::mlrsearch::MlrsearchFindings;
use wirestorm_method::rfc2544::Rfc2544Findings;
use wirestorm_store::record::BenchResult;

use crate::document::{Unit, grouped, scaled};
use crate::run::{Run, RunOutput};

/// Quantity of a metric. It defines the units of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Percent.
    Percent,
    /// Nanoseconds.
    Time,
    /// Frames per second.
    FrameRate,
    /// Bits per second.
    BitRate,
    /// Number.
    Count,
}

/// A metric.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// Name in limits.
    pub name: &'static str,
    /// Quantity.
    pub quantity: Quantity,
    /// What it is.
    pub text: &'static str,
}

/// A figure: the value of a metric at one place of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Place of the run in the report.
    pub run: usize,
    /// Name of the metric.
    #[serde(serialize_with = "name")]
    pub metric: &'static Metric,
    /// Place in words, such as `64 bytes, ipv4`.
    pub place: String,
    /// Words that selectors match, such as `64` and `ipv4`.
    pub labels: Vec<String>,
    /// Value in the base unit of the quantity: percent, nanoseconds, frames/s, bit/s.
    pub value: f64,
    /// Qualification, such as `limited by the tester`.
    pub note: Option<&'static str>,
}

fn name<S: serde::Serializer>(metric: &Metric, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(metric.name)
}

/// Defines the metrics as constants and as a list.
macro_rules! metrics {
    ($($constant:ident $name:literal $quantity:ident $text:literal;)*) => {
        $(static $constant: Metric =
            Metric { name: $name, quantity: Quantity::$quantity, text: $text };)*

        /// All metrics.
        pub static METRICS: &[&Metric] = &[$(&$constant),*];
    };
}

metrics! {
    LOSS "loss" Percent
        "lost frames or probes; rfc2544: at the maximum load; y1564: FLR";
    LOST "lost" Count "lost frames or probes; rfc2544: in the latency streams";
    REORDERED "reordered" Count "frames that arrived after one sent later (RFC 4737)";
    DUPLICATED "duplicated" Count "duplicates (RFC 5560)";
    CORRUPT "corrupt" Count "frames with a changed payload";
    UNSENT "unsent" Count "frames that the generator did not send in time";
    RATE "rate" FrameRate "frames sent per second";
    RATE_L1 "rate_l1" BitRate "bit rate sent, layer 1";
    RATE_L2 "rate_l2" BitRate "bit rate sent, layer 2";
    RATE_ERROR "rate_error" Percent "difference of the rate from its target, without sign";
    MIN_DELAY "min_delay" Time "minimum delay";
    MEAN_DELAY "mean_delay" Time "mean delay; y1564: FTD";
    P50 "p50" Time "median delay";
    P90 "p90" Time "90th percentile of the delay";
    P99 "p99" Time "99th percentile of the delay";
    P99_9 "p99.9" Time "99.9th percentile of the delay";
    P99_99 "p99.99" Time "99.99th percentile of the delay";
    MAX_DELAY "max_delay" Time "maximum delay";
    PDV "pdv" Time "delay variation: 99.9th percentile minus minimum; y1564: FDV";
    JITTER "jitter" Time "interarrival jitter (RFC 3550)";
    THROUGHPUT "throughput" FrameRate
        "throughput of an interface (rfc2544), rate found (ndr), relevant lower bound (mlrsearch)";
    THROUGHPUT_L1 "throughput_l1" BitRate "the same in bit/s of layer 1";
    THROUGHPUT_L2 "throughput_l2" BitRate
        "the same in bit/s of layer 2; rfc9411: inspected throughput, both directions";
    THROUGHPUT_PERCENT "throughput_percent" Percent "the same in percent of the line rate";
    INFORMATION_RATE "information_rate" BitRate "information rate received (y1564)";
    AVAILABILITY "availability" Percent "available seconds of the performance test (y1564)";
    BACK_TO_BACK "back_to_back" Count "average longest burst without loss in frames";
    BUFFER_TIME "buffer_time" Time "corrected buffer time (RFC 9004)";
    RECOVERY "recovery" Time "mean system recovery time";
    RESET "reset" Time "reset time by frame loss (RFC 6201)";
    CONNECTIONS "connections" Count "connections and UDP flows that were closed";
    CONNECTIONS_FAILED "connections_failed" Count "failed connections and UDP flows";
    CONNECTIONS_PER_S "connections_per_s" Count
        "connections per second at the result (rfc9411), rate found (ndr)";
    TRANSACTIONS_PER_S "transactions_per_s" Count "transactions per second at the result (rfc9411)";
    CONCURRENT "concurrent" Count "mean concurrent connections at the result (rfc9411)";
    CONNECT_P50 "connect_p50" Time "median time to connect";
    CONNECT_P99 "connect_p99" Time "99th percentile of the time to connect";
    FIRST_BYTE_MEAN "first_byte_mean" Time "mean time to the first byte (TTFB, rfc9411)";
    FIRST_BYTE_P50 "first_byte_p50" Time "median time to the first byte (TTFB)";
    FIRST_BYTE_P99 "first_byte_p99" Time "99th percentile of the time to the first byte (TTFB)";
    LAST_BYTE_MEAN "last_byte_mean" Time "mean time to the last byte (TTLB, rfc9411)";
    LAST_BYTE_P50 "last_byte_p50" Time "median time to the last byte (TTLB, rfc9411)";
    LAST_BYTE_P99 "last_byte_p99" Time
        "99th percentile of the time to the last byte (TTLB, rfc9411)";
    TRANSACTION_P50 "transaction_p50" Time
        "median duration of transactions; rfc9411: response time";
    TRANSACTION_P99 "transaction_p99" Time
        "99th percentile of the duration of transactions; rfc9411: response time";
    FLOWS_LOST "flows_lost" Count "flows that an exporter did not report, at each rate";
    FLOW_LOSS "flow_loss" Percent "the same in percent of the flows sent";
    FLOW_THROUGHPUT "flow_throughput" Count "Flow Monitoring Throughput in flows/s (RFC 6645)";
    RECORD_LOSS "record_loss" Percent "records that a collector did not store, at each rate";
    RECORD_THROUGHPUT "record_throughput" Count "largest rate without loss in records/s (collector)";
}

impl Metric {
    /// Returns the metric with a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name).copied()
    }
}

impl Figure {
    /// Returns the value with its unit.
    pub fn shown(&self) -> String {
        let unit = match self.metric.quantity {
            Quantity::Percent => Some(Unit::Percent),
            Quantity::Time => Some(Unit::Nanoseconds),
            Quantity::FrameRate => Some(Unit::FramesPerSecond),
            Quantity::BitRate => Some(Unit::BitsPerSecond),
            Quantity::Count => None,
        };
        let value = match unit {
            Some(unit) => {
                let (number, unit) = scaled(self.value, unit);
                format!("{number} {unit}")
            }
            None if self.value.fract() == 0.0 => grouped(self.value.max(0.0) as u64),
            None => format!("{:.1}", self.value),
        };
        let note = self.note.map(|note| format!(" ({note})")).unwrap_or_default();
        value + &note
    }
}

/// Returns the figures of all runs.
pub fn figures(runs: &[Run]) -> Vec<Figure> {
    let of_run = |(run, it): (usize, &Run)| match &it.result {
        Some(RunOutput::Run(result)) => of_result(run, it.label(), result),
        Some(RunOutput::Bench(result)) => of_bench(run, it.label(), result),
        None => Vec::new(),
    };
    runs.iter().enumerate().flat_map(of_run).collect()
}

/// Returns the figures of a run. `run`: its place among others. `label`: its name, which all of its
/// figures have as a label.
pub fn of_result(run: usize, label: &str, result: &RunResult) -> Vec<Figure> {
    let mut figures = Figures { run, all: Vec::new() };
    figures.run(result);
    figures.labelled(label)
}

/// Returns the figures of a method, as [`of_result`].
pub fn of_bench(run: usize, label: &str, result: &BenchResult) -> Vec<Figure> {
    let mut figures = Figures { run, all: Vec::new() };
    figures.bench(result);
    figures.labelled(label)
}

/// Collects the figures of a run.
struct Figures {
    run: usize,
    all: Vec<Figure>,
}

/// Place of figures.
struct Place<'a> {
    text: String,
    labels: &'a [&'a str],
    note: Option<&'static str>,
}

impl<'a> Place<'a> {
    fn new(text: impl Into<String>, labels: &'a [&'a str]) -> Self {
        Self { text: text.into(), labels, note: None }
    }
}

impl Figures {
    fn labelled(mut self, label: &str) -> Vec<Figure> {
        for figure in &mut self.all {
            figure.labels.push(label.to_owned());
        }
        self.all
    }

    fn add(&mut self, place: &Place<'_>, metric: &'static Metric, value: f64) {
        self.all.push(Figure {
            run: self.run,
            metric,
            place: place.text.clone(),
            labels: place.labels.iter().map(|it| (*it).to_owned()).collect(),
            value,
            note: place.note,
        });
    }

    fn add_some(&mut self, place: &Place<'_>, metric: &'static Metric, value: Option<f64>) {
        if let Some(value) = value {
            self.add(place, metric, value);
        }
    }

    fn bench(&mut self, result: &BenchResult) {
        match &result.findings {
            Findings::Rfc2544(findings) => self.rfc2544(findings),
            Findings::Mlrsearch(findings) => self.mlrsearch(findings),
            Findings::FlowExporter(findings) => self.flow_exporter(findings),
            Findings::Ndr(findings) => self.ndr(findings, &result.parameters),
            Findings::Y1564(findings) => self.y1564(findings),
            Findings::Rfc9411(findings) => self.rfc9411(findings),
            Findings::Collector(findings) => self.collector(findings),
        }
    }

    fn rfc2544(&mut self, findings: &Rfc2544Findings) {
        let sized =
            |traffic: &str, size: u32| (format!("{size} bytes, {traffic}"), size.to_string());
        for row in &findings.throughput {
            let (text, size) = sized(&row.traffic, row.frame_size);
            let note = row.is_tester_limited.then_some("limited by the tester");
            let labels = [&*row.traffic, &*size];
            let place = Place { note, ..Place::new(text, &labels) };
            self.add(&place, &THROUGHPUT, row.load as f64);
            self.add(&place, &THROUGHPUT_L1, row.bps_l1);
            self.add(&place, &THROUGHPUT_L2, row.bps_l2);
            self.add(&place, &THROUGHPUT_PERCENT, row.line_rate_percent);
        }
        for row in &findings.latency {
            let (text, size) = sized(&row.traffic, row.frame_size);
            let labels = [&*row.traffic, &*size];
            let place = Place::new(text, &labels);
            self.delay(&place, &row.delay);
            self.add_some(&place, &PDV, row.pdv.map(|it| it.median_ns));
            self.add(&place, &LOST, row.lost as f64);
        }
        for row in &findings.frame_loss {
            let (text, size) = sized(&row.traffic, row.frame_size);
            let labels = [&*row.traffic, &*size];
            let place = Place::new(text, &labels);
            // The points start at the maximum load.
            self.add_some(&place, &LOSS, row.points.first().map(|point| point.loss_percent));
        }
        for row in &findings.back_to_back {
            let (text, size) = sized(&row.traffic, row.frame_size);
            let labels = [&*row.traffic, &*size];
            let place = Place::new(text, &labels);
            self.add_some(&place, &BACK_TO_BACK, row.average);
            self.add_some(&place, &BUFFER_TIME, row.corrected_buffer_s.map(|it| it * 1e9));
        }
        for row in &findings.recovery {
            let (text, size) = sized(&row.traffic, row.frame_size);
            let labels = [&*row.traffic, &*size];
            self.add_some(&Place::new(text, &labels), &RECOVERY, row.mean_s.map(|it| it * 1e9));
        }
        for row in &findings.reset {
            let (text, size) = sized(&row.traffic, row.frame_size);
            let labels = [&*row.traffic, &*size];
            self.add(&Place::new(text, &labels), &RESET, row.by_loss_s * 1e9);
        }
    }

    fn mlrsearch(&mut self, findings: &MlrsearchFindings) {
        for row in &findings.searches {
            for result in &row.results {
                let size = row.frame_size.to_string();
                let text = format!("{size} bytes, {}, goal {}", row.traffic, result.goal);
                let note = match (result.is_regular, row.is_tester_limited) {
                    (_, true) => Some("limited by the tester"),
                    (false, false) => Some("irregular"),
                    (true, false) => None,
                };
                let labels = [&*row.traffic, &*size, &*result.goal];
                let place = Place { note, ..Place::new(text, &labels) };
                // An irregular result without a lower bound has no throughput above 0.
                let load = result.lower.unwrap_or(0) as f64;
                let bits = |overhead: u32| load * f64::from(row.frame_size + overhead) * 8.0;
                self.add(&place, &THROUGHPUT, load);
                self.add(&place, &THROUGHPUT_L1, bits(20));
                self.add(&place, &THROUGHPUT_L2, bits(0));
                let percent = load * 100.0 / row.line_rate.max(1) as f64;
                self.add(&place, &THROUGHPUT_PERCENT, percent);
            }
        }
    }

    fn flow_exporter(&mut self, findings: &FlowExporterFindings) {
        for point in &findings.points {
            let rate = point.load.to_string();
            let labels = [&*rate];
            let note = point.is_tester_limited.then_some("limited by the tester");
            let place = Place { note, ..Place::new(format!("{rate} flows/s"), &labels) };
            let lost = point.export.sent.flows.saturating_sub(point.export.captured.flows);
            self.add(&place, &FLOWS_LOST, lost as f64);
            self.add(&place, &FLOW_LOSS, point.flow_loss_percent);
        }
        let place = Place::new("sweep", &[]);
        self.add(&place, &FLOW_THROUGHPUT, findings.throughput.unwrap_or(0) as f64);
    }

    fn collector(&mut self, findings: &CollectorFindings) {
        for point in &findings.points {
            // Without a count, the loss is unknown.
            let Some(loss_percent) = point.loss_percent else { continue };
            let rate = point.load.to_string();
            let labels = [&*rate];
            let note = point.is_tester_limited.then_some("limited by the tester");
            let place = Place { note, ..Place::new(format!("{rate} records/s"), &labels) };
            self.add(&place, &RECORD_LOSS, loss_percent);
        }
        if findings.points.iter().any(|point| point.is_lossless.is_some()) {
            let rate = findings.throughput.unwrap_or(0);
            self.add(&Place::new("sweep", &[]), &RECORD_THROUGHPUT, rate as f64);
        }
    }

    fn delay(&mut self, place: &Place<'_>, values: &Distribution) {
        if values.count == 0 {
            return;
        }
        self.add(place, &MIN_DELAY, values.min_ns as f64);
        self.add(place, &MEAN_DELAY, values.mean_ns);
        self.add(place, &MAX_DELAY, values.max_ns as f64);
        for (metric, quantile) in
            [(&P50, 0.5), (&P90, 0.9), (&P99, 0.99), (&P99_9, 0.999), (&P99_99, 0.9999)]
        {
            self.add_some(place, metric, values.quantile(quantile).map(|value| value as f64));
        }
    }

    fn delay_of_report(&mut self, place: &Place<'_>, report: &DistributionReport) {
        let signed = |value: Option<i64>| value.map(|it| it as f64);
        self.add_some(place, &MIN_DELAY, signed(report.min_ns));
        self.add_some(place, &MEAN_DELAY, report.mean_ns);
        self.add_some(place, &MAX_DELAY, signed(report.max_ns));
        self.add_some(place, &P50, signed(report.p50_ns));
        self.add_some(place, &P90, signed(report.p90_ns));
        self.add_some(place, &P99, signed(report.p99_ns));
        self.add_some(place, &P99_9, signed(report.p99_9_ns));
        self.add_some(place, &P99_99, signed(report.p99_99_ns));
    }

    fn run(&mut self, result: &RunResult) {
        let all = ["all"];
        let place = Place::new("all ports", &all);
        self.sent(&place, &result.achieved.tx, result.achieved.rate_error_ppm);
        for port in &result.ports {
            let labels = [&*port.name];
            let place = Place::new(format!("port {}", port.name), &labels);
            if let Some(tx) = &port.tx {
                self.sent(&place, tx, None);
            }
            if let Some(rx) = &port.rx {
                self.add_some(&place, &LOSS, rx.loss_percent);
                self.add_some(&place, &LOST, rx.lost.map(|it| it as f64));
                if let Some(verify) = &rx.verify {
                    self.add(&place, &REORDERED, verify.reordered as f64);
                    self.add(&place, &DUPLICATED, verify.duplicated as f64);
                }
            }
            if let Some(connections) = &port.connections {
                self.add(&place, &CONNECTIONS, connections.flows.closed as f64);
                self.add(&place, &CONNECTIONS_FAILED, connections.flows.failed as f64);
                let times = &connections.times;
                self.times(&place, [&CONNECT_P50, &CONNECT_P99], &times.connect);
                self.times(&place, [&FIRST_BYTE_P50, &FIRST_BYTE_P99], &times.time_to_first_byte);
            }
            for template in &port.templates {
                for transaction in &template.transactions {
                    let labels = [&*port.name, &*template.name, &*transaction.name];
                    let text = format!("{} {}", template.name, transaction.name);
                    let metrics = [&TRANSACTION_P50, &TRANSACTION_P99];
                    self.times(&Place::new(text, &labels), metrics, &transaction.time);
                }
            }
        }
        for flow in &result.flows {
            let labels = [&*flow.name];
            let place = Place::new(format!("flow {}", flow.name), &labels);
            self.add(&place, &RATE, flow.rates.pps);
            self.add(&place, &RATE_L1, flow.rates.bps_l1);
            self.add(&place, &RATE_L2, flow.rates.bps_l2);
            self.add_some(&place, &RATE_ERROR, flow.rate_error_ppm.map(|it| it.abs() / 1e4));
            self.add_some(&place, &LOSS, flow.loss_percent);
            self.add_some(&place, &LOST, flow.lost.map(|it| it as f64));
            self.add(&place, &UNSENT, flow.unsent as f64);
            for measured in &flow.measured {
                let labels = [&*flow.name, &*measured.port];
                let text = format!("flow {} at {}", flow.name, measured.port);
                let place = Place::new(text, &labels);
                self.add(&place, &REORDERED, measured.reordered as f64);
                self.add(&place, &DUPLICATED, measured.duplicated as f64);
                self.add_some(&place, &CORRUPT, measured.corrupt.map(|it| it as f64));
                self.delay_of_report(&place, &measured.delay);
                if measured.delay.count > 0 {
                    self.add_some(&place, &PDV, measured.pdv.p99_9_ns.map(|it| it as f64));
                    self.add(&place, &JITTER, measured.jitter_ns as f64);
                }
            }
        }
        for probe in &result.latency {
            let labels = [&*probe.port, &*probe.target, "probe"];
            let place = Place::new(format!("probes {} to {}", probe.port, probe.target), &labels);
            self.add(&place, &LOST, probe.lost as f64);
            self.add(&place, &LOSS, probe.lost as f64 * 100.0 / probe.sent.max(1) as f64);
            self.delay_of_report(&place, &probe.round_trip);
        }
    }

    fn sent(&mut self, place: &Place<'_>, tx: &TransmitReport, error_ppm: Option<f64>) {
        self.add(place, &RATE, tx.rates.pps);
        self.add(place, &RATE_L1, tx.rates.bps_l1);
        self.add(place, &RATE_L2, tx.rates.bps_l2);
        self.add(place, &UNSENT, tx.unsent as f64);
        self.add_some(place, &RATE_ERROR, error_ppm.map(|it| it.abs() / 1e4));
    }

    fn times(
        &mut self,
        place: &Place<'_>,
        [median, p99]: [&'static Metric; 2],
        report: &HistogramReport,
    ) {
        self.add_some(place, median, report.p50_ns.map(|it| it as f64));
        self.add_some(place, p99, report.p99_ns.map(|it| it as f64));
    }
}
