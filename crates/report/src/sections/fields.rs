//! Fields that the RFCs want in a report, with the section that wants them.

use std::collections::BTreeSet;

use wirestorm_base::count::pluralise;
use wirestorm_base::time::Duration;
use wirestorm_method::flow_exporter::{CAPTURE, FlowExporter, FlowPoint};
use wirestorm_method::method::{Findings, Method};
use wirestorm_method::mlrsearch::Mlrsearch;
use wirestorm_method::rfc2544::{Rfc2544, Test};

use super::Context;
use super::facts::{Facts, NOT_GIVEN};
use crate::document::{Table, Unit, grouped, scaled};
use crate::run::Run;

/// Returns a row for each field. Plain runs have none.
pub(super) fn table(context: &Context<'_>) -> Table {
    let mut facts = Facts::new(context, "Fields of the report", &["Source"]);
    for field in fields() {
        facts.add(field.name, &[field.source], |run| {
            let run = &context.runs[run];
            match &run.record.method {
                Some(Method::Rfc2544(method)) => (field.rfc2544)(method, run),
                Some(Method::Mlrsearch(method)) => (field.mlrsearch)(method, run),
                Some(Method::FlowExporter(method)) => (field.flow_exporter)(method, run),
                _ => String::new(),
            }
        });
    }
    let method = |run: usize| context.runs[run].record.method.as_ref();
    for (name, value) in super::ndr::FIELDS {
        facts.add(name, &[""], |run| match method(run) {
            Some(Method::Ndr(method)) => value(method),
            _ => String::new(),
        });
    }
    for (name, value) in super::collector::FIELDS {
        facts.add(name, &[""], |run| match method(run) {
            Some(Method::Collector(method)) => value(method),
            _ => String::new(),
        });
    }
    for (name, value) in super::y1564::FIELDS {
        facts.add(name, &["ITU-T Y.1564"], |run| match method(run) {
            Some(Method::Y1564(method)) => value(method),
            _ => String::new(),
        });
    }
    for (name, source, value) in super::rfc9411::FIELDS {
        facts.add(name, &[*source], |run| match method(run) {
            Some(Method::Rfc9411(method)) => value(method),
            _ => String::new(),
        });
    }
    // Parameters of a method without an RFC have no source.
    facts.table().without_empty_columns(true)
}

struct Field {
    name: &'static str,
    source: &'static str,
    rfc2544: fn(&Rfc2544, &Run) -> String,
    mlrsearch: fn(&Mlrsearch, &Run) -> String,
    flow_exporter: fn(&FlowExporter, &Run) -> String,
}

const fn field(
    name: &'static str,
    source: &'static str,
    rfc2544: fn(&Rfc2544, &Run) -> String,
    mlrsearch: fn(&Mlrsearch, &Run) -> String,
) -> Field {
    Field { name, source, rfc2544, mlrsearch, flow_exporter: none }
}

/// A field of RFC 6645 appendix A.
const fn flow_field(name: &'static str, value: fn(&FlowExporter, &Run) -> String) -> Field {
    let source = "RFC 6645 appendix A";
    Field { name, source, rfc2544: none, mlrsearch: none, flow_exporter: value }
}

/// The field does not apply to a method.
const fn none<M>(_: &M, _: &Run) -> String {
    String::new()
}

fn fields() -> Vec<Field> {
    vec![
        field(
            "Tests",
            "RFC 2544 section 26",
            |method, _| method.tests.iter().map(|test| test.name()).collect::<Vec<_>>().join(", "),
            none,
        ),
        field(
            "Protocol and data streams",
            "RFC 2544 section 26.1",
            |method, _| method.traffic.join(", "),
            |method, _| method.traffic.join(", "),
        ),
        field(
            "Media",
            "RFC 2544 section 26.1",
            |it, run| media(it.link_bps, run),
            |it, run| media(it.link_bps, run),
        ),
        field(
            "Frame sizes (bytes with FCS)",
            "RFC 2544 section 9.1",
            |method, _| sizes(&method.frame_sizes),
            |method, _| sizes(&method.frame_sizes),
        ),
        field(
            "Directions",
            "RFC 2544 section 14, RFC 9971 section 4.5.4",
            |_, run| directions(run),
            |_, run| directions(run),
        ),
        field(
            "Highest rate, frame size, theoretical limit, protocol",
            "RFC 2544 section 26.1",
            |_, run| statement(run),
            none,
        ),
        field("Trial duration", "RFC 2544 section 24", |it, _| seconds(it.trial), none),
        field(
            "Trials before the final one",
            "RFC 2544 section 24",
            |method, _| seconds(method.intermediate),
            none,
        ),
        field(
            "Search resolution",
            "",
            |method, _| format!("{} % of the upper bound", method.resolution * 100.0),
            none,
        ),
        field(
            "Definition of latency",
            "RFC 2544 section 26.2, RFC 8219 section 7.2",
            |method, run| if has(method, Test::Latency) { latency(run) } else { String::new() },
            none,
        ),
        field(
            "Latency streams",
            "RFC 2544 section 26.2",
            |method, _| {
                let options = &method.latency;
                let text = format!(
                    "{} of {} at {} % of the throughput; all frames after {} are measured",
                    options.repetitions,
                    seconds(options.stream()),
                    options.load * 100.0,
                    seconds(options.warm_up),
                );
                if has(method, Test::Latency) { text } else { String::new() }
            },
            none,
        ),
        field(
            "Step of the frame loss rate",
            "RFC 2544 section 26.3",
            |method, _| match has(method, Test::FrameLoss) {
                true => format!("{} % of the maximum load", method.frame_loss_step * 100.0),
                false => String::new(),
            },
            none,
        ),
        field(
            "Test repetitions N",
            "RFC 9004 section 7",
            |method, _| back_to_back(method, method.back_to_back.repetitions.to_string()),
            none,
        ),
        field(
            "Minimum step size",
            "RFC 9004 section 7",
            |method, _| {
                back_to_back(
                    method,
                    pluralise(method.back_to_back.step, "frame", "frames").to_string(),
                )
            },
            none,
        ),
        field(
            "Maximum burst length",
            "RFC 9004 section 7",
            |method, _| {
                let seconds = seconds(method.back_to_back.burst_max);
                back_to_back(method, format!("{seconds} at the maximum load"))
            },
            none,
        ),
        field(
            "Overload, then reduced load",
            "RFC 2544 section 26.5",
            |method, _| match has(method, Test::Recovery) {
                true => {
                    let options = &method.recovery;
                    format!("{}, {}", seconds(options.overload), seconds(options.reduced))
                }
                false => String::new(),
            },
            none,
        ),
        field("Unit of loads", "RFC 9971 sections 4.3 and 4.5.2", none, |_, _| {
            "frames per second of each transmitting interface; constant load".to_owned()
        }),
        field("Max Load", "RFC 9971 section 4.6.8.1", none, |method, _| {
            method.load_max.map_or_else(|| "line rate".to_owned(), frames_per_second)
        }),
        field("Min Load", "RFC 9971 section 4.6.8.2", none, |method, _| {
            method.load_min.map_or_else(|| "1/10,000 of Max Load".to_owned(), frames_per_second)
        }),
        field("Goal Width", "RFC 9971 section 4.6.5", none, |_, _| {
            "difference of the bounds relative to the upper bound".to_owned()
        }),
        field("Trial Effective Duration", "RFC 9971 section 4.5.8", none, |_, _| {
            "equal to the Trial Duration".to_owned()
        }),
        field("Trial Loss Ratio", "RFC 9971 sections 4.5.6 and 4.9.1", none, |_, _| {
            "lost frames, and frames that the generator could not send, of the intended frames"
                .to_owned()
        }),
        field("Longest search", "", none, |method, _| seconds(method.search_max)),
    ]
    .into_iter()
    .chain(flow_fields())
    .collect()
}

fn flow_fields() -> Vec<Field> {
    vec![
        flow_field("Test case", |method, _| {
            let search = if method.searches { " and search" } else { "" };
            format!("sweep{search} of the Flow Monitoring Throughput (section 5)")
        }),
        flow_field("Traffic type", |method, _| {
            let is_capture = method.traffic == CAPTURE;
            if is_capture { "that of the capture" } else { "IPv4" }.to_owned()
        }),
        flow_field("Rates of new flows", |method, _| {
            let rates: Vec<String> = method.rates.iter().map(|rate| grouped(*rate)).collect();
            format!("{} per second", rates.join("; "))
        }),
        flow_field("Traffic generation, packets per flow", |method, _| {
            match method.traffic == CAPTURE {
                true => "a capture with new addresses in each pass".to_owned(),
                false => "one packet per flow, equidistant".to_owned(),
            }
        }),
        flow_field("Packet size", |method, _| {
            let size = method.frame_size.map(|size| format!("{size} bytes with FCS"));
            size.unwrap_or_else(|| "those of the capture".to_owned())
        }),
        flow_field("Interface type and bandwidth", |_, run| {
            let speed = run.record.interfaces.iter().filter_map(|it| it.speed_bps).max();
            speed.map_or_else(|| NOT_GIVEN.to_owned(), |speed| media(speed, run))
        }),
        flow_field("Duration of the traffic", |method, _| seconds(method.trial)),
        flow_field("Cache Size", |method, _| {
            let size = method.cache_size.map(|size| format!("{} flows", grouped(size)));
            size.unwrap_or_else(|| NOT_GIVEN.to_owned())
        }),
        flow_field("Active Timeout", |method, _| {
            let timeout = method.active_timeout_s.map(|seconds| format!("{seconds} s"));
            timeout.unwrap_or_else(|| NOT_GIVEN.to_owned())
        }),
        flow_field("Idle Timeout", |method, _| seconds(method.idle_timeout)),
        flow_field("Flow Keys", |_, run| fact(run, "flow keys")),
        flow_field("Flow Record Fields", |_, run| fact(run, "flow record fields")),
        flow_field("Observation Points and direction", |_, run| fact(run, "observation points")),
        flow_field("Flow Export Protocol", |_, run| protocols(run)),
        flow_field("Flow Export Transport Protocol", |_, _| "UDP".to_owned()),
        flow_field("Flow Export data packet size", |_, run| export_size(run)),
    ]
}

/// Returns a fact about the device that the user gave.
fn fact(run: &Run, name: &str) -> String {
    run.record.device.facts.get(name).cloned().unwrap_or_else(|| NOT_GIVEN.to_owned())
}

fn flow_points(run: &Run) -> &[FlowPoint] {
    match run.bench_result().map(|result| &result.findings) {
        Some(Findings::FlowExporter(findings)) => &findings.points,
        _ => &[],
    }
}

fn protocols(run: &Run) -> String {
    let names = flow_points(run).iter().map(|point| &*point.export.protocol);
    let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Returns the mean size of export packets.
fn export_size(run: &Run) -> String {
    let sum = |value: fn(&FlowPoint) -> u64| flow_points(run).iter().map(value).sum::<u64>();
    let bytes = sum(|point| point.export.datagram_bytes);
    let mean = bytes.checked_div(sum(|point| point.export.datagrams));
    let mean = mean.filter(|mean| *mean > 0);
    mean.map_or_else(|| NOT_GIVEN.to_owned(), |mean| format!("{mean} bytes on average"))
}

fn has(method: &Rfc2544, test: Test) -> bool {
    method.tests.contains(&test)
}

fn back_to_back(method: &Rfc2544, text: String) -> String {
    if has(method, Test::BackToBack) { text } else { String::new() }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

fn frames_per_second(load: u64) -> String {
    format!("{} frames/s", grouped(load))
}

fn sizes(sizes: &[u32]) -> String {
    sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn media(link_bps: u64, run: &Run) -> String {
    let (number, unit) = scaled(link_bps as f64, Unit::BitsPerSecond);
    let mut kinds: Vec<&str> = run.record.interfaces.iter().map(|it| &*it.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kinds = if kinds.is_empty() { String::new() } else { format!(", {}", kinds.join(", ")) };
    format!("Ethernet, {number} {unit}{kinds}")
}

/// Ports that send, from the first trial with a full result.
fn directions(run: &Run) -> String {
    let trial = run.trials.iter().find_map(|trial| trial.result.as_ref());
    let Some(result) = trial else {
        return if run.is_simulated() { "one simulated direction" } else { NOT_GIVEN }.to_owned();
    };
    let has_sent = |port: &&wirestorm_control::result::PortReport| {
        port.tx.as_ref().is_some_and(|tx| tx.packets > 0)
    };
    match result.ports.iter().filter(has_sent).count() {
        1 => "one transmitting interface".to_owned(),
        count => format!("{count} transmitting interfaces"),
    }
}

/// "The statement of performance MUST include a/ the measured maximum frame rate, b/ the size of the
/// frame used, c/ the theoretical limit of the media for that frame size, and d/ the type of
/// protocol used in the test." The size is the smallest one.
fn statement(run: &Run) -> String {
    let Some(result) = run.bench_result() else { return String::new() };
    let Findings::Rfc2544(findings) = &result.findings else { return String::new() };
    let Some(row) = findings.throughput.iter().min_by_key(|row| row.frame_size) else {
        return String::new();
    };
    let limited = if row.is_tester_limited { ", limited by the tester" } else { "" };
    format!(
        "{}, {} bytes, {}, {}{limited}",
        frames_per_second(row.load),
        row.frame_size,
        frames_per_second(row.line_rate),
        row.traffic,
    )
}

/// "The report MUST state which definition of latency (from RFC 1242) was used for this test."
fn latency(run: &Run) -> String {
    if run.is_simulated() {
        return "delay of the simulated device".to_owned();
    }
    let result = run.trials.iter().find_map(|trial| trial.result.as_ref());
    let ports = || result.iter().flat_map(|result| &result.ports);
    let tx = ports().find_map(|port| port.tx.as_ref()?.timestamp_point.clone());
    let rx = ports().find_map(|port| port.rx.as_ref()?.timestamp_point.clone());
    let places = match (tx, rx) {
        (Some(tx), Some(rx)) => format!(" (departure: {tx}; arrival: {rx})"),
        _ => String::new(),
    };
    format!(
        "one-way delay between software time stamps{places}, from before the first bit departs \
         until the frame has arrived. It includes the transmission time of the frame and exceeds \
         both definitions of RFC 1242 section 3.8 (store-and-forward, bit-forwarding)"
    )
}
