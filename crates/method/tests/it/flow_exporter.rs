//! The flow exporter test finds where a simulated exporter begins to lose flows.

use wirestorm_base::time::Duration;
use wirestorm_method::device::DeviceModel;
use wirestorm_method::estimate::remaining;
use wirestorm_method::flow_exporter::{FLOWS, FlowExporter, FlowExporterFindings};
use wirestorm_method::method::Method;

use crate::Counted;

fn method(searches: bool) -> FlowExporter {
    FlowExporter {
        rates: (1..=14).map(|step| step * 10_000).collect(),
        searches,
        resolution: 0.01,
        traffic: FLOWS.into(),
        frame_size: Some(64),
        trial: Duration::from_secs(20),
        idle_timeout: Duration::from_secs(5),
        active_timeout_s: None,
        cache_size: Some(100_000),
    }
}

fn run(method: &FlowExporter, flows_per_second: f64) -> (FlowExporterFindings, usize) {
    let mut device = Counted::new(DeviceModel { flows_per_second, ..DeviceModel::default() });
    let mut findings = FlowExporterFindings::default();
    method.run(&mut device, &mut findings).unwrap();
    (findings, device.trials.len())
}

#[test]
fn sweep_shows_where_loss_begins() {
    let (findings, trials) = run(&method(false), 73_000.0);
    assert_eq!(trials, 14);
    assert_eq!((findings.throughput, findings.loss_begins), (Some(70_000), Some(80_000)));
    let last = findings.points.last().unwrap();
    assert_eq!((last.sent_per_s, last.captured_per_s), (140_000.0, 73_000.0));
    assert_eq!(last.export.missing_flows, 67_000 * 20);
    // 64-byte frames hold IP packets of 46 bytes.
    assert_eq!(last.bps_ip, 140_000.0 * 46.0 * 8.0);
}

#[test]
fn search_narrows_the_place_where_loss_begins() {
    let (findings, trials) = run(&method(true), 73_456.0);
    let (lower, upper) = (findings.throughput.unwrap(), findings.loss_begins.unwrap());
    assert!(lower <= 73_456 && upper > 73_456, "{lower} {upper}");
    assert!((upper - lower) as f64 <= 0.01 * upper as f64, "{lower} {upper}");
    assert!(findings.is_searched);
    assert!(trials <= 14 + 4, "{trials}");
    assert_eq!(findings.points.len(), trials);
}

#[test]
fn exporter_above_or_below_all_rates_needs_no_search() {
    let (above, trials) = run(&method(true), 1e9);
    assert_eq!((above.throughput, above.loss_begins, trials), (Some(140_000), None, 14));
    let (below, trials) = run(&method(true), 10.0);
    assert_eq!((below.throughput, below.loss_begins, trials), (None, Some(10_000), 14));
    assert!(!above.is_searched && !below.is_searched);
}

#[test]
fn deviations_name_the_timeouts_and_the_cache() {
    assert_eq!(method(false).deviations(), [""; 0]);
    let short = FlowExporter {
        trial: Duration::from_secs(6),
        cache_size: None,
        traffic: "capture".into(),
        ..method(false)
    };
    let deviations = short.deviations();
    assert_eq!(deviations.len(), 3, "{deviations:?}");
    assert!(deviations[0].contains("twice the Idle Timeout"));
}

#[test]
fn estimate_has_the_trials_of_the_search() {
    let planned = |searches| remaining(&Method::FlowExporter(method(searches)), &[], 0.55).len();
    assert_eq!(planned(false), 14);
    // An exporter with 77,000 flows/s: from 70,000 and 80,000 to 1 %.
    assert_eq!(planned(true), 14 + 4);
}
