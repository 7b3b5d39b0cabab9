//! The most important values in large type.

use wirestorm_control::result::RunResult;
use wirestorm_method::collector::CollectorFindings;
use wirestorm_method::flow_exporter::FlowExporterFindings;
use wirestorm_method::mlrsearch::MlrsearchFindings;
use wirestorm_method::ndr::{Limit, Ndr, NdrFindings};
use wirestorm_method::rfc2544::Rfc2544Findings;
use wirestorm_method::rfc9411::{Rfc9411Findings, Test};
use wirestorm_method::y1564::{Test as Service, Y1564Findings, Y1564Row};

use super::{Context, collector, flow_export, mlrsearch, ndr, plain, rfc2544, rfc9411, y1564};
use crate::document::{Tile, Unit, grouped, scaled};

/// Most tiles of a report.
const TILES_MAX: usize = 12;
/// Most rates of a search or results of a test that have a tile.
const EACH_MAX: usize = 4;

pub(super) fn tiles(context: &Context<'_>) -> Vec<Tile> {
    let mut all = Vec::new();
    for bench in rfc2544::benches(context) {
        all.extend(named(context, bench.run, of_rfc2544(bench.findings)));
    }
    for bench in mlrsearch::benches(context) {
        all.extend(named(context, bench.run, of_mlrsearch(bench.findings)));
    }
    for bench in ndr::benches(context) {
        all.extend(named(context, bench.run, of_ndr(bench.parameters, bench.findings)));
    }
    for bench in y1564::benches(context) {
        all.extend(named(context, bench.run, of_y1564(bench.findings)));
    }
    for bench in rfc9411::benches(context) {
        all.extend(named(context, bench.run, of_rfc9411(bench.findings)));
    }
    for bench in flow_export::benches(context) {
        all.extend(named(context, bench.run, of_flow_exporter(bench.findings)));
    }
    for bench in collector::benches(context) {
        all.extend(named(context, bench.run, of_collector(bench.findings)));
    }
    for (run, result) in plain::results(context) {
        all.extend(named(context, run, of_run(result)));
    }
    all.truncate(TILES_MAX);
    all
}

/// Adds the run to the labels if there are several.
fn named(context: &Context<'_>, run: usize, mut tiles: Vec<Tile>) -> Vec<Tile> {
    for tile in &mut tiles {
        tile.label = context.series(run, &tile.label);
    }
    tiles
}

fn tile(label: impl Into<String>, value: f64, unit: Unit, note: impl Into<String>) -> Tile {
    let (value, unit) = scaled(value, unit);
    Tile { label: label.into(), value, unit, note: note.into(), is_warning: false }
}

/// Returns the frame size, with the traffic if a method has several.
fn subject<'a>(all: impl IntoIterator<Item = &'a str>, traffic: &str, frame_size: u32) -> String {
    match all.into_iter().all(|it| it == traffic) {
        true => format!("{frame_size} bytes"),
        false => format!("{traffic} {frame_size} bytes"),
    }
}

fn of_rfc2544(findings: &Rfc2544Findings) -> Vec<Tile> {
    let mut tiles = Vec::new();
    let all = || findings.throughput.iter().map(|row| &*row.traffic);
    let sizes = || findings.throughput.iter().map(|row| row.frame_size);
    let (smallest, largest) = (sizes().min(), sizes().max());
    let is_end = |size: u32| Some(size) == smallest || Some(size) == largest;
    for row in findings.throughput.iter().filter(|row| is_end(row.frame_size)).take(EACH_MAX) {
        let label = format!("Throughput, {}", subject(all(), &row.traffic, row.frame_size));
        let share = format!("{:.1} % of the line rate", row.line_rate_percent);
        let mut tile = tile(label, row.load as f64, Unit::FramesPerSecond, share);
        if row.is_tester_limited {
            tile.note += ", limited by the tester";
            tile.is_warning = true;
        }
        tiles.push(tile);
    }
    if let Some(row) = findings.latency.iter().min_by_key(|row| row.frame_size) {
        let mut add = |what: &str, value: Option<wirestorm_method::rfc2544::Repeated>| {
            let label = format!("{what} latency, {}", subject(all(), &row.traffic, row.frame_size));
            let note = format!("median of {} streams", row.repetitions);
            tiles.extend(value.map(|it| tile(label, it.median_ns, Unit::Nanoseconds, note)));
        };
        add("Typical", row.typical);
        add("Worst-case", row.worst_case);
    }
    tiles
}

fn of_mlrsearch(findings: &MlrsearchFindings) -> Vec<Tile> {
    let Some(row) = findings.searches.iter().min_by_key(|row| row.frame_size) else {
        return Vec::new();
    };
    let all = || findings.searches.iter().map(|row| &*row.traffic);
    let tile = |result: &wirestorm_method::search::mlrsearch::GoalResult| {
        let label = format!("{}, {}", result.goal, subject(all(), &row.traffic, row.frame_size));
        let lower = result.lower.unwrap_or(0) as f64;
        let mut tile = tile(label, lower, Unit::FramesPerSecond, "relevant lower bound");
        let mut qualify = |text: &str| {
            tile.note += text;
            tile.is_warning = true;
        };
        if !result.is_regular {
            qualify(", irregular");
        }
        if row.is_tester_limited {
            qualify(", limited by the tester");
        }
        tile
    };
    row.results.iter().take(4).map(tile).collect()
}

fn of_ndr(method: &Ndr, findings: &NdrFindings) -> Vec<Tile> {
    let tile = |row: &wirestorm_method::ndr::NdrRow| {
        let label = format!("{}, {}", ndr::rate_name(method), ndr::subject(row));
        let load = row.best.map_or(0.0, |best| best.load as f64);
        let share = format!("{:.1} % of the maximum rate", row.rate_percent);
        let mut tile = match ndr::is_connection_rate(method) {
            true => rate(&label, load, "connections", share),
            false => tile(label, load, Unit::FramesPerSecond, share),
        };
        if row.limit == Some(Limit::Tester) {
            tile.note += ", limited by the tester";
        }
        tile.is_warning = row.limit == Some(Limit::Tester) || row.best.is_none();
        tile
    };
    findings.rows.iter().take(EACH_MAX).map(tile).collect()
}

fn of_y1564(findings: &Y1564Findings) -> Vec<Tile> {
    let mut names: Vec<&str> = findings.rows.iter().map(|row| &*row.service).collect();
    names.sort_unstable();
    names.dedup();
    let has_passed = |name: &&&str| {
        let mut rows = findings.rows.iter().filter(|row| row.service == **name);
        rows.all(|row| row.is_passed())
    };
    let passed = names.iter().filter(has_passed).count();
    let steps = findings.rows.len();
    let failed = findings.rows.iter().filter(|row| !row.is_passed()).count();
    let services = Tile {
        label: "Services passed".to_owned(),
        value: passed.to_string(),
        unit: format!("of {}", names.len()),
        note: format!("{failed} of {steps} steps failed"),
        is_warning: failed > 0,
    };
    let worst = |value: fn(&Y1564Row) -> Option<f64>| {
        // Nothing marks the frames of a larger load that are within the CIR.
        let rows = findings.rows.iter();
        let committed = rows.filter(|row| matches!(row.test, Service::Cir | Service::Performance));
        let values = committed.filter_map(value);
        values.max_by(f64::total_cmp)
    };
    let note = "worst of all loads up to the CIR";
    let mut tiles = vec![services];
    tiles.extend(
        worst(|row| Some(row.total.flr * 100.0)).map(|it| tile("FLR", it, Unit::Percent, note)),
    );
    tiles.extend(
        worst(|row| row.total.ftd_mean_ns).map(|it| tile("FTD", it, Unit::Nanoseconds, note)),
    );
    let fdv = worst(|row| row.total.fdv_ns.map(|ns| ns as f64));
    tiles.extend(fdv.map(|it| tile("FDV", it, Unit::Nanoseconds, note)));
    tiles
}

fn of_rfc9411(findings: &Rfc9411Findings) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for test in Test::ALL {
        // The smallest object is the hardest for rates, the largest one for the throughput.
        let mut rows = findings.rows.iter().filter(|row| row.test == test);
        let row = if test == Test::Throughput { rows.next_back() } else { rows.next() };
        let Some(row) = row else { continue };
        let label = format!("{}, {}", rfc9411::what(test, row.unit), row.traffic);
        let first_byte = row.kpis.as_ref().and_then(|kpis| kpis.time_to_first_byte);
        if let (Test::Latency, Some(times)) = (test, first_byte) {
            let label = format!("Mean TTFB, {}", row.traffic);
            let note = "at half of the connections per second";
            tiles.push(tile(label, times.mean_ns, Unit::Nanoseconds, note));
            continue;
        }
        let load = row.load.unwrap_or(0) as f64;
        let (value, unit) = scaled(load, rfc9411::unit(row.unit));
        let share = load * 100.0 / row.target.max(1) as f64;
        let mut note = format!("{share:.1} % of the target");
        if row.is_tester_limited {
            note += ", limited by the tester";
        }
        let is_warning = row.is_tester_limited || !row.is_valid();
        tiles.push(Tile { label, value, unit, note, is_warning });
    }
    tiles
}

/// Returns the tile of a rate of connections, flows or records.
fn rate(label: &str, value: f64, name: &str, note: String) -> Tile {
    let (value, unit) = scaled(value, Unit::PerSecond);
    let unit = unit.replace("/s", &format!(" {name}/s")).trim().to_owned();
    Tile { label: label.to_owned(), value, unit, note, is_warning: false }
}

/// Returns the same for a whole rate; none without a value.
fn some_rate(label: &str, value: Option<u64>, name: &str, note: &str) -> Option<Tile> {
    Some(rate(label, value? as f64, name, note.to_owned()))
}

fn of_collector(findings: &CollectorFindings) -> Vec<Tile> {
    let rate = |label, value, note| some_rate(label, value, "records", note);
    let searched = if findings.is_searched { "found by a search" } else { "of the sweep" };
    let most = findings.points.iter().map(|point| point.sent_per_s.round() as u64).max();
    let tiles = [
        rate("Largest rate without loss", findings.throughput, searched),
        rate("Loss begins", findings.loss_begins, "lowest rate with loss"),
        rate("Most sent", most, "of all rates"),
    ];
    tiles.into_iter().flatten().collect()
}

fn of_flow_exporter(findings: &FlowExporterFindings) -> Vec<Tile> {
    let rate = |label, value, note| some_rate(label, value, "flows", note);
    let searched =
        if findings.is_searched { "found by a search" } else { "largest rate without loss" };
    let mut tiles = Vec::new();
    tiles.extend(rate("Flow Monitoring Throughput", findings.throughput, searched));
    tiles.extend(rate("Loss begins", findings.loss_begins, "lowest rate with loss"));
    let most = findings.points.iter().map(|point| point.captured_per_s.round() as u64).max();
    tiles.extend(rate("Most captured", most, "of all rates"));
    tiles
}

fn of_run(result: &RunResult) -> Vec<Tile> {
    let mut tiles = Vec::new();
    let tx = &result.achieved.tx;
    if tx.packets > 0 {
        let error = result.achieved.rate_error_ppm;
        let note = error.map(|ppm| format!("{:+.3} % off the target", ppm / 1e4));
        let rate = tx.rates.pps;
        tiles.push(tile("Sent", rate, Unit::FramesPerSecond, note.unwrap_or_default()));
        let l2 = scaled(tx.rates.bps_l2, Unit::BitsPerSecond);
        let note = format!("{} {} on layer 2", l2.0, l2.1);
        tiles.push(tile("Sent, layer 1", tx.rates.bps_l1, Unit::BitsPerSecond, note));
    }
    let lost: Vec<u64> = result.flows.iter().filter_map(|flow| flow.lost).collect();
    let sent: u64 =
        result.flows.iter().filter(|it| it.lost.is_some()).map(|flow| flow.packets).sum();
    if sent > 0 {
        let lost: u64 = lost.into_iter().sum();
        let note = format!("{} of {} frames", grouped(lost), grouped(sent));
        let mut tile = tile("Loss", lost as f64 * 100.0 / sent as f64, Unit::Percent, note);
        tile.is_warning = lost > 0;
        tiles.push(tile);
    }
    let delays = result.flows.iter().flat_map(|flow| &flow.measured);
    let worst = delays.filter_map(|it| it.delay.p99_ns).max();
    if let Some(worst) = worst {
        let note = "highest of all flows";
        tiles.push(tile("Delay, 99th percentile", worst as f64, Unit::Nanoseconds, note));
    }
    let connections = || result.ports.iter().filter_map(|port| port.connections.as_ref());
    if connections().next().is_some() {
        let closed: u64 = connections().map(|it| it.flows.closed).max().unwrap_or(0);
        let failed: u64 = connections().map(|it| it.flows.failed).sum();
        let mut failures = tile("Failed connections", failed as f64, Unit::None, "both sides");
        failures.is_warning = failed > 0;
        let note = "most of a port";
        tiles.push(tile("Closed connections", closed as f64, Unit::None, note));
        tiles.push(failures);
        let connect = connections().filter_map(|it| it.times.connect.p99_ns).max();
        if let Some(connect) = connect {
            let label = "Connect, 99th percentile";
            tiles.push(tile(label, connect as f64, Unit::Nanoseconds, "highest of all ports"));
        }
    }
    tiles
}
