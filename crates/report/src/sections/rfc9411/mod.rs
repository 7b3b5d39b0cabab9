//! RFC 9411: results, indicators, criteria and trials of each test.

mod tables;
mod trials;

use wirestorm_base::time::Duration;
use wirestorm_method::connections::LoadUnit;
use wirestorm_method::method::{Findings, Method};
use wirestorm_method::rfc9411::{Kpis, Rfc9411, Rfc9411Findings, Rfc9411Row, Test, TimeSummary};

use super::Context;
use crate::document::{Axis, Plot, Point, Section, Series, Style, Unit, grouped, scaled};

/// Findings of a run and their parameters.
type Bench<'a> = super::Bench<'a, Rfc9411, Rfc9411Findings>;

/// Returns the runs with findings of the method.
pub(crate) fn benches<'a>(context: &Context<'a>) -> Vec<Bench<'a>> {
    context.benches(|method, findings| match (method, findings) {
        (Method::Rfc9411(parameters), Findings::Rfc9411(findings)) => Some((parameters, findings)),
        _ => None,
    })
}

pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let benches = benches(context);
    let of_kind = |&(test, unit)| Group::new(context, &benches, test, unit);
    let groups = KINDS.iter().map(of_kind).filter(|group| !group.rows.is_empty());
    groups.map(|group| group.section()).collect()
}

/// Tests, with the unit of their load: the latency test has two.
const KINDS: [(Test, LoadUnit); 6] = [
    (Test::Connections, LoadUnit::ConnectionsPerSecond),
    (Test::Throughput, LoadUnit::BitsPerSecond),
    (Test::Latency, LoadUnit::ConnectionsPerSecond),
    (Test::Latency, LoadUnit::BitsPerSecond),
    (Test::Concurrent, LoadUnit::ConcurrentConnections),
    (Test::Mix, LoadUnit::BitsPerSecond),
];

/// Results of one test in all runs.
struct Group<'a> {
    context: &'a Context<'a>,
    test: Test,
    unit: LoadUnit,
    /// Results with their runs.
    rows: Vec<(usize, &'a Rfc9411Row)>,
    /// Traffic, in order of appearance.
    traffic: Vec<&'a str>,
    /// The same without the protocol, as HTTP and HTTPS share an axis.
    sizes: Vec<&'a str>,
}

/// Returns what the results of a test are.
pub(crate) const fn what(test: Test, unit: LoadUnit) -> &'static str {
    match (test, unit) {
        (Test::Connections, _) => "Connections per second",
        (Test::Throughput, _) => "Throughput",
        (Test::Latency, LoadUnit::BitsPerSecond) => "Latency at half of the throughput",
        (Test::Latency, _) => "Latency at half of the connections per second",
        (Test::Concurrent, _) => "Concurrent connections",
        (Test::Mix, _) => "Throughput with a traffic mix",
    }
}

/// Returns the unit of loads in plots and tables.
pub(crate) const fn unit(unit: LoadUnit) -> Unit {
    match unit {
        LoadUnit::ConnectionsPerSecond => Unit::PerSecond,
        LoadUnit::ConcurrentConnections => Unit::None,
        LoadUnit::BitsPerSecond => Unit::BitsPerSecond,
    }
}

/// Returns the object size of a traffic: `16 KB` for `http 16 KB`.
fn size(traffic: &str) -> &str {
    traffic.strip_prefix("http ").or_else(|| traffic.strip_prefix("https ")).unwrap_or(traffic)
}

/// Returns a load with its unit.
pub(crate) fn shown(load: u64, of: LoadUnit) -> (String, String) {
    match of {
        LoadUnit::BitsPerSecond => scaled(load as f64, Unit::BitsPerSecond),
        LoadUnit::ConnectionsPerSecond => {
            let (number, unit) = scaled(load as f64, Unit::PerSecond);
            (number, unit.replace("/s", " connections/s").trim().to_owned())
        }
        LoadUnit::ConcurrentConnections => (grouped(load), String::new()),
    }
}

impl<'a> Group<'a> {
    fn new(context: &'a Context<'a>, benches: &[Bench<'a>], test: Test, unit: LoadUnit) -> Self {
        let all =
            benches.iter().flat_map(|bench| bench.findings.rows.iter().map(|row| (bench.run, row)));
        let rows: Vec<_> = all.filter(|(_, row)| row.test == test && row.unit == unit).collect();
        let traffic = super::rfc2544::traffic(rows.iter().map(|(_, row)| &*row.traffic));
        let sizes = super::rfc2544::traffic(traffic.iter().map(|name| size(name)));
        Self { context, test, unit, rows, traffic, sizes }
    }

    fn section(&self) -> Section {
        let mut numbers: Vec<&str> = self.rows.iter().map(|(_, row)| &*row.section).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let plural = if numbers.len() > 1 { "sections" } else { "section" };
        let source = format!("RFC 9411 {plural} {}", numbers.join(", "));
        let mut section = Section::new(what(self.test, self.unit), &source);
        section.text(match self.test {
            Test::Latency => {
                "TTFB and TTLB count from the SYN to the first and last byte of the first \
                 transaction of a connection. Response times are those of later transactions. \
                 Hollow marks are invalid or limited by the tester."
            }
            _ => {
                "The result is the largest load that met the validation criteria. Throughput is \
                 layer 2 with FCS, both directions. Hollow marks are invalid or limited by the \
                 tester."
            }
        });
        section.plot(if self.test == Test::Latency { self.latencies() } else { self.results() });
        section.plot(self.loads());
        section.plot(self.over_time());
        self.percentiles().into_iter().for_each(|plot| section.plot(plot));
        section.table(self.result_table());
        section.table(self.count_table());
        section.table(self.rate_table());
        section.table(self.time_table());
        section.table(self.criteria_table());
        section.table(self.trial_table());
        section
    }

    fn axis(&self) -> Axis {
        let names = self.sizes.iter().map(|name| (*name).to_owned()).collect();
        Axis::categories("Object size", names)
    }

    fn place(&self, traffic: &str) -> f64 {
        self.sizes.iter().position(|name| *name == size(traffic)).unwrap_or(0) as f64
    }

    /// Runs of the results, in order.
    fn runs(&self) -> Vec<usize> {
        let mut runs: Vec<usize> = self.rows.iter().map(|(run, _)| *run).collect();
        runs.dedup();
        runs
    }

    /// Result, smallest invalid load and target of each object size.
    fn results(&self) -> Plot {
        let title = format!("{} against object size", what(self.test, self.unit));
        let load = Axis::linear(what(self.test, self.unit), unit(self.unit));
        let mut plot = Plot::new(&title, self.axis(), load);
        plot.summary = "Largest valid load of each traffic, beside the target".into();
        plot.hollow = "invalid or limited by the tester";
        let mut targets: Vec<u64> = self.rows.iter().map(|(_, row)| row.target).collect();
        targets.sort_unstable();
        targets.dedup();
        for target in targets {
            let (number, unit) = shown(target, self.unit);
            let label = format!("target {number} {unit}");
            let mut series = Series::new(label.trim(), None, Style::Reference);
            let last = self.sizes.len().saturating_sub(1) as f64;
            // Beyond the bars at both ends.
            series.points = [-0.5, last + 0.5].map(|x| Point::new(x, target as f64)).to_vec();
            plot.series(series);
        }
        for run in self.runs() {
            let label = self.context.series(run, "result");
            let mut series = Series::new(label, Some(run), Style::Bars);
            for (_, row) in self.rows.iter().filter(|(it, _)| *it == run) {
                let is_hollow = row.is_tester_limited || !row.is_valid();
                let load = row.load.unwrap_or(0) as f64;
                let point = Point::new(self.place(&row.traffic), load);
                series.points.push(Point { is_hollow, ..point });
            }
            plot.series(series);
        }
        plot
    }

    /// Mean times of each object size.
    fn latencies(&self) -> Plot {
        let title = format!("{}: means", what(self.test, self.unit));
        let time = Axis::linear("Mean time", Unit::Nanoseconds);
        let mut plot = Plot::new(&title, self.axis(), time);
        plot.summary = "Mean TTFB, TTLB and response time of each object size".into();
        for run in self.runs() {
            for (name, of) in TIMES {
                let label = self.context.series(run, name);
                let mut series = Series::new(label, Some(run), Style::Line);
                for (_, row) in self.rows.iter().filter(|(it, _)| *it == run) {
                    if let Some(times) = row.kpis.as_ref().and_then(of) {
                        series.point(self.place(&row.traffic), times.mean_ns);
                    }
                }
                plot.series(series);
            }
        }
        plot
    }
}

/// Times of a trial with their names.
type Times = (&'static str, fn(&Kpis) -> Option<TimeSummary>);
const TIMES: [Times; 3] = [
    ("TTFB", |kpis| kpis.time_to_first_byte),
    ("TTLB", |kpis| kpis.time_to_last_byte),
    ("response time", |kpis| kpis.response_time),
];

/// Fields of the report: name, section of RFC 9411, value.
type Field = (&'static str, &'static str, fn(&Rfc9411) -> String);
pub(super) const FIELDS: &[Field] = &[
    ("Tests", "RFC 9411 section 7", |method| {
        method.tests.iter().map(|test| test.name()).collect::<Vec<_>>().join(", ")
    }),
    ("Target objectives", "RFC 9411 section 7", targets),
    ("Initial load", "RFC 9411 section 7", |method| {
        format!("{} of the target", percent(method.initial))
    }),
    ("Object sizes", "RFC 9411 section 7", |method| {
        let sizes = method.object_sizes.as_ref();
        let sizes = sizes.map(|sizes| {
            let sizes: Vec<_> = sizes.iter().map(|&size| grouped(size.into())).collect();
            format!("{} bytes", sizes.join("; "))
        });
        sizes.unwrap_or_else(|| "those of the RFC".to_owned())
    }),
    ("Traffic mix", "RFC 9411 section 7.1", |method| {
        let of_class = |class: &wirestorm_method::rfc9411::MixClass| {
            let protocol = if class.tls.is_some() { "HTTPS" } else { "HTTP" };
            let objects = class.objects.len();
            let bytes = class.objects.iter().map(|&size| u64::from(size)).sum();
            format!(
                "{} ({protocol}): {} in {objects} objects of {} bytes together",
                class.name,
                percent(class.share),
                grouped(bytes),
            )
        };
        method.mix.iter().map(of_class).collect::<Vec<_>>().join("; ")
    }),
    ("Phases: init, ramp up, sustain", "RFC 9411 section 4.3.4", |method| {
        let search = match method.search_sustain < method.sustain {
            true => format!(" ({} in a search)", seconds(method.search_sustain)),
            false => String::new(),
        };
        let [init, ramp_up, sustain] = [method.init, method.ramp_up, method.sustain].map(seconds);
        format!("{init}, {ramp_up}, {sustain}{search}")
    }),
    ("TLS version, cipher suite", "RFC 9411 section 4.3.1.4", |method| {
        let tls = method
            .tls
            .as_ref()
            .map(|tls| format!("{}, {}; full handshakes, no resumption", tls.version, tls.cipher));
        tls.unwrap_or_else(|| "HTTP without TLS".to_owned())
    }),
    ("Client addresses", "", |method| method.clients.join(", ")),
    ("Server addresses", "", |method| method.servers.join(", ")),
    ("Validation criteria", "RFC 9411 section 7", |method| {
        let limits = &method.criteria;
        format!(
            "failed transactions < {}, unexpected RST < {}, deviation of the rate < {}, deviation \
             of concurrent connections < {}",
            percent(limits.failed),
            percent(limits.resets),
            percent(limits.rate_deviation),
            percent(limits.concurrent_deviation),
        )
    }),
    ("Resolution of a search", "", |method| {
        format!("{} of the upper bound", percent(method.resolution))
    }),
];

fn targets(method: &Rfc9411) -> String {
    let of = method.targets;
    let all = [
        (of.connections_per_s, LoadUnit::ConnectionsPerSecond, ""),
        (of.throughput_bps, LoadUnit::BitsPerSecond, ""),
        (of.concurrent, LoadUnit::ConcurrentConnections, "concurrent connections"),
    ];
    let text = |(target, unit, more): (Option<u64>, LoadUnit, &str)| {
        let (number, unit) = shown(target?, unit);
        Some(format!("{number} {unit}{more}"))
    };
    all.into_iter().filter_map(text).collect::<Vec<_>>().join(", ")
}

fn percent(fraction: f64) -> String {
    format!("{} %", (fraction * 1e8).round() / 1e6)
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
