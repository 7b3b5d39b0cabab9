//! Figures of results: the numbers that lists show and comparisons compare.

use serde::{Deserialize, Serialize};
use wirestorm_control::result::{HistogramReport, Kind, PortReport, RunResult};
use wirestorm_method::collector::CollectorFindings;
use wirestorm_method::connections::LoadUnit;
use wirestorm_method::flow_exporter::FlowExporterFindings;
use wirestorm_method::method::Findings;
use wirestorm_method::mlrsearch::MlrsearchFindings;
use wirestorm_method::ndr::NdrFindings;
use wirestorm_method::rfc2544::Rfc2544Findings;
use wirestorm_method::rfc9411::Rfc9411Findings;
use wirestorm_method::y1564::Y1564Findings;

/// A number of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name, such as `sent` or `throughput ipv4 64`.
    pub name: String,
    /// Value.
    pub value: f64,
    /// Unit of the value.
    pub unit: Unit,
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Frames per second.
    FramesPerSecond,
    /// Flows per second.
    FlowsPerSecond,
    /// Connections per second.
    ConnectionsPerSecond,
    /// Bits per second.
    BitsPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds.
    Seconds,
    /// Percent.
    Percent,
    /// A number of frames, connections or others.
    Count,
}

impl Unit {
    /// All units.
    pub const ALL: [Self; 8] = [
        Self::FramesPerSecond,
        Self::FlowsPerSecond,
        Self::ConnectionsPerSecond,
        Self::BitsPerSecond,
        Self::Nanoseconds,
        Self::Seconds,
        Self::Percent,
        Self::Count,
    ];

    /// Returns the symbol of the unit; empty for a count.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::FramesPerSecond => "frames/s",
            Self::FlowsPerSecond => "flows/s",
            Self::ConnectionsPerSecond => "conn/s",
            Self::BitsPerSecond => "b/s",
            Self::Nanoseconds => "ns",
            Self::Seconds => "s",
            Self::Percent => "%",
            Self::Count => "",
        }
    }
}

/// Figures in their order.
#[derive(Default)]
struct Figures(Vec<Figure>);

impl Figures {
    fn add(&mut self, name: impl Into<String>, unit: Unit, value: impl Into<Option<f64>>) {
        // A result of a damaged file may hold anything; infinity has no JSON.
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            self.0.push(Figure { name: name.into(), value, unit });
        }
    }

    fn count(&mut self, name: impl Into<String>, count: impl Into<Option<u64>>) {
        self.add(name, Unit::Count, count.into().map(|count| count as f64));
    }

    fn nanoseconds(&mut self, name: impl Into<String>, time: impl Into<Option<u64>>) {
        self.add(name, Unit::Nanoseconds, time.into().map(|time| time as f64));
    }

    fn delays(&mut self, name: &str, quantiles: [(&str, Option<i64>); 3]) {
        for (quantile, value) in quantiles {
            let value = value.map(|value| value as f64);
            self.add(format!("{name} {quantile}"), Unit::Nanoseconds, value);
        }
    }

    fn times(&mut self, name: &str, times: &HistogramReport) {
        self.nanoseconds(format!("{name} median"), times.p50_ns);
        self.nanoseconds(format!("{name} p99"), times.p99_ns);
        self.nanoseconds(format!("{name} max"), times.max_ns);
    }
}

/// Returns the figures of a run; the first one is the key figure of lists.
pub fn of_run(result: &RunResult) -> Vec<Figure> {
    let mut figures = Figures::default();
    if result.kind == Kind::Emulation {
        for port in &result.ports {
            connections(&mut figures, port, result);
        }
    }
    let tx = &result.achieved.tx;
    figures.add("sent", Unit::FramesPerSecond, tx.rates.pps);
    figures.add("sent L2", Unit::BitsPerSecond, tx.rates.bps_l2);
    figures.count("frames sent", tx.packets);
    figures.count("frames unsent", tx.unsent);
    figures.count("frames failed", tx.failed);
    figures.count("flows", tx.flows.as_ref().map(|flows| flows.count));
    if let Some(departures) = &tx.departures {
        figures.nanoseconds("lateness max", departures.lateness_max_ns);
        figures.nanoseconds("gap error p99", departures.gap_errors.p99_ns);
    }
    for port in &result.ports {
        let Some(rx) = &port.rx else { continue };
        let name = &port.name;
        figures.count(format!("{name} received"), rx.packets);
        figures.add(format!("{name} received"), Unit::FramesPerSecond, rx.pps);
        figures.count(format!("{name} lost"), rx.lost);
        figures.add(format!("{name} lost"), Unit::Percent, rx.loss_percent);
    }
    for flow in &result.flows {
        let name = &flow.name;
        figures.add(format!("{name} sent"), Unit::FramesPerSecond, flow.rates.pps);
        figures.count(format!("{name} lost"), flow.lost);
        figures.add(format!("{name} lost"), Unit::Percent, flow.loss_percent);
        for measured in &flow.measured {
            let delay = &measured.delay;
            let name = format!("{name} on {}", measured.port);
            figures.count(format!("{name} reordered"), measured.reordered);
            let median = ("median", delay.p50_ns);
            let quantiles = [median, ("p99", delay.p99_ns), ("max", delay.max_ns)];
            figures.delays(&format!("{name} delay"), quantiles);
        }
    }
    for probe in &result.latency {
        let name = format!("{} to {}", probe.port, probe.target);
        figures.count(format!("{name} lost"), probe.lost);
        let trip = &probe.round_trip;
        let quantiles = [("median", trip.p50_ns), ("p99", trip.p99_ns), ("max", trip.max_ns)];
        figures.delays(&format!("{name} round trip"), quantiles);
    }
    for run in &result.device_runs {
        for device in &run.devices {
            figures.add(device.name.clone(), Unit::FramesPerSecond, device.tx.rates.pps);
        }
    }
    figures.0
}

/// Adds the connections of a port, and the transactions of its templates.
fn connections(figures: &mut Figures, port: &PortReport, result: &RunResult) {
    let Some(connections) = &port.connections else { return };
    let name = &port.name;
    let established = connections.tcp.get("connects").copied().unwrap_or(0);
    let seconds = result.times.load_duration_s.filter(|seconds| *seconds > 0.0);
    let rate = seconds.map(|seconds| established as f64 / seconds);
    figures.add(format!("{name} established"), Unit::ConnectionsPerSecond, rate);
    figures.count(format!("{name} established"), established);
    figures.count(format!("{name} failed"), connections.flows.failed);
    figures.count(format!("{name} concurrent max"), connections.flows.active_max);
    let times = &connections.times;
    figures.times(&format!("{name} connect"), &times.connect);
    figures.times(&format!("{name} first byte"), &times.time_to_first_byte);
    for template in &port.templates {
        for transaction in &template.transactions {
            let name = format!("{} {} {}", template.name, template.side, transaction.name);
            figures.count(format!("{name} started"), transaction.started);
            figures.times(&name, &transaction.time);
        }
    }
}

/// Returns the figures of a method's findings; the first one is the key figure of lists.
pub fn of_findings(findings: &Findings) -> Vec<Figure> {
    let mut figures = Figures::default();
    match findings {
        Findings::Rfc2544(findings) => rfc2544(&mut figures, findings),
        Findings::Mlrsearch(findings) => mlrsearch(&mut figures, findings),
        Findings::FlowExporter(findings) => flow_exporter(&mut figures, findings),
        Findings::Collector(findings) => collector(&mut figures, findings),
        Findings::Rfc9411(findings) => rfc9411(&mut figures, findings),
        Findings::Ndr(findings) => ndr(&mut figures, findings),
        Findings::Y1564(findings) => y1564(&mut figures, findings),
    }
    figures.0
}

fn rfc2544(figures: &mut Figures, findings: &Rfc2544Findings) {
    let name = |what: &str, traffic: &str, size: u32| format!("{what} {traffic} {size}");
    for row in &findings.throughput {
        let name = name("throughput", &row.traffic, row.frame_size);
        figures.add(name, Unit::FramesPerSecond, row.load as f64);
    }
    for row in &findings.latency {
        let name = |what: &str| name(what, &row.traffic, row.frame_size);
        figures.add(name("latency mean"), Unit::Nanoseconds, row.mean_ns);
        let median = |value: &Option<wirestorm_method::rfc2544::Repeated>| {
            value.as_ref().map(|value| value.median_ns)
        };
        figures.add(name("latency typical"), Unit::Nanoseconds, median(&row.typical));
        figures.add(name("latency worst case"), Unit::Nanoseconds, median(&row.worst_case));
        figures.add(name("pdv"), Unit::Nanoseconds, median(&row.pdv));
    }
    for row in &findings.frame_loss {
        for point in &row.points {
            let name = name("frame loss", &row.traffic, row.frame_size);
            let name = format!("{name} at {:.0} %", point.load_percent);
            figures.add(name, Unit::Percent, point.loss_percent);
        }
    }
    for row in &findings.back_to_back {
        let name = name("back-to-back", &row.traffic, row.frame_size);
        figures.add(name, Unit::Count, row.average);
    }
    for row in &findings.recovery {
        figures.add(name("recovery", &row.traffic, row.frame_size), Unit::Seconds, row.mean_s);
    }
    for row in &findings.reset {
        figures.add(name("reset", &row.traffic, row.frame_size), Unit::Seconds, row.by_loss_s);
    }
}

fn mlrsearch(figures: &mut Figures, findings: &MlrsearchFindings) {
    for row in &findings.searches {
        for result in &row.results {
            let name = |what| format!("{what} {} {} {}", result.goal, row.traffic, row.frame_size);
            let load = |load: Option<u64>| load.map(|load| load as f64);
            let throughput = result.conditional_throughput;
            figures.add(name("conditional throughput"), Unit::FramesPerSecond, throughput);
            figures.add(name("lower bound"), Unit::FramesPerSecond, load(result.lower));
            figures.add(name("upper bound"), Unit::FramesPerSecond, load(result.upper));
        }
    }
}

fn ndr(figures: &mut Figures, findings: &NdrFindings) {
    for row in &findings.rows {
        let size = row.frame_size.map_or_else(String::new, |size| format!(" {size}"));
        let name = |what: &str| format!("{what} {}{size}", row.traffic);
        let load = row.best.map_or(0.0, |best| best.load as f64);
        figures.add(name("ndr"), Unit::FramesPerSecond, load);
        figures.add(name("drops"), Unit::Percent, row.best.map(|best| best.drop_percent));
        let latency = row.best.and_then(|best| best.latency_mean_ns);
        figures.add(name("latency mean"), Unit::Nanoseconds, latency);
    }
}

fn y1564(figures: &mut Figures, findings: &Y1564Findings) {
    let failed = findings.rows.iter().filter(|row| !row.is_passed()).count();
    figures.count("failed steps", failed as u64);
    for row in &findings.rows {
        let step = format!("{} {} {:.0} %", row.test.name(), row.service, row.load_percent);
        let name = |what: &str| format!("{what} {step} {}", row.frame_size);
        figures.add(name("ir"), Unit::BitsPerSecond, row.total.ir_bps);
        figures.add(name("flr"), Unit::Percent, row.total.flr * 100.0);
        figures.add(name("ftd mean"), Unit::Nanoseconds, row.total.ftd_mean_ns);
        figures.add(name("fdv"), Unit::Nanoseconds, row.total.fdv_ns.map(|ns| ns as f64));
        let availability = row.total.availability.map(|part| part * 100.0);
        figures.add(name("availability"), Unit::Percent, availability);
    }
}

fn collector(figures: &mut Figures, findings: &CollectorFindings) {
    let rate = |rate: Option<u64>| rate.map(|rate| rate as f64);
    figures.add("throughput", Unit::FlowsPerSecond, rate(findings.throughput));
    figures.add("loss begins", Unit::FlowsPerSecond, rate(findings.loss_begins));
    for point in &findings.points {
        let name = |what| format!("{what} at {}/s", point.load);
        figures.add(name("sent"), Unit::FlowsPerSecond, point.sent_per_s);
        figures.add(name("record loss"), Unit::Percent, point.loss_percent);
    }
}

fn flow_exporter(figures: &mut Figures, findings: &FlowExporterFindings) {
    let rate = |rate: Option<u64>| rate.map(|rate| rate as f64);
    figures.add("throughput", Unit::FlowsPerSecond, rate(findings.throughput));
    figures.add("loss begins", Unit::FlowsPerSecond, rate(findings.loss_begins));
    for point in &findings.points {
        let name = |what| format!("{what} at {}/s", point.load);
        figures.add(name("captured"), Unit::FlowsPerSecond, point.captured_per_s);
        figures.add(name("flow loss"), Unit::Percent, point.flow_loss_percent);
    }
}

fn rfc9411(figures: &mut Figures, findings: &Rfc9411Findings) {
    for row in &findings.rows {
        let subject = format!("{} {} x{}", row.section, row.traffic, row.transactions);
        let unit = match row.unit {
            LoadUnit::ConnectionsPerSecond => Unit::ConnectionsPerSecond,
            LoadUnit::ConcurrentConnections => Unit::Count,
            LoadUnit::BitsPerSecond => Unit::BitsPerSecond,
        };
        figures.add(format!("result {subject}"), unit, row.load.map(|load| load as f64));
        let Some(kpis) = &row.kpis else { continue };
        figures.add(format!("throughput {subject}"), Unit::BitsPerSecond, kpis.throughput_bps.mean);
        for (name, times) in
            [("first byte", kpis.time_to_first_byte), ("last byte", kpis.time_to_last_byte)]
        {
            let mean = times.map(|times| times.mean_ns);
            figures.add(format!("{name} {subject} mean"), Unit::Nanoseconds, mean);
        }
    }
}
