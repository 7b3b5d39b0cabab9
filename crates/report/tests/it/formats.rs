//! Formats of reports on sample runs.

use serde_json::Value;
use wirestorm_control::result::Outcome;
use wirestorm_method::method::Findings;
use wirestorm_report::limit::Limit;
use wirestorm_report::run::{Run, RunOutput};
use wirestorm_report::{Options, Report};

use crate::sample;

fn report<'a>(runs: &'a [Run], limits: &[&str]) -> Report<'a> {
    let limits = limits.iter().map(|text| Limit::parse(text).expect("a limit")).collect();
    Report::new(runs, &Options { title: None, limits })
}

#[test]
fn html_names_what_qualifies_a_result() {
    let runs = [sample::tester_limited("a"), sample::mlrsearch("b")];
    let html = report(&runs, &[]).html();
    for expected in [
        "<title>RFC 2544 benchmark, MLRsearch (RFC 9971): lab router, router (simulated device)",
        "A simulated device took the place of interfaces",
        "limited by the tester, not by the device",
        "ipv4 64 B: the tester, not the device, limits the throughput",
        "<td class=\"problem short-text\">irregular</td>",
        "RFC 2544-compliant throughput",
        "back-to-back repetitions: 3, RFC 2544 section 26.4 requires 50",
        "Test repetitions N",
        "Definition of latency",
    ] {
        assert!(html.contains(expected), "{expected}");
    }
    // Warnings come before the first result.
    let place = |text: &str| html.find(text).expect(text);
    assert!(place("id=\"warnings\"") < place("class=\"tiles\""));
    assert!(place("class=\"tiles\"") < place("<figure"));
}

#[test]
fn delay_between_machines_has_its_error_half_of_the_round_trip_and_the_truth() {
    let runs = [sample::two_machines("a")];
    let html = report(&runs, &[]).html();
    for expected in [
        "One-way delay between machines",
        "Error (±)",
        "In any case (±)",
        "Half round trip",
        "True mean",
        "symmetric path",
        "STAMP to 10.255.1.2:862",
        "chrony on both",
        "a clock stepped",
        "forward, mean + error",
    ] {
        assert!(html.contains(expected), "{expected}");
    }
    let markdown = report(&runs, &[]).markdown();
    for (what, value) in [("Error (±)", "1,100"), ("In any case", "4,900"), ("Half round", "3,800")]
    {
        let is_row = |line: &&str| line.starts_with("| ") && line.contains(what);
        let row = markdown.lines().find(is_row).expect("a row");
        assert!(row.contains(value), "{row}");
    }
    // Without a comparison, there is no such section.
    let runs = [sample::streams("a", ["forward", "backward"])];
    assert!(!report(&runs, &[]).html().contains("One-way delay between machines"));
}

#[test]
fn html_loads_nothing_and_has_a_policy() {
    let runs = [sample::streams("a", ["voice", "video"])];
    let html = report(&runs, &[]).html();
    for loading in ["src=", "<link", "@import", "url(", "fetch("] {
        assert!(!html.contains(loading), "{loading}");
    }
    assert!(html.contains("default-src 'none'; script-src 'sha256-"));
}

#[test]
fn hostile_names_stay_text_in_all_formats() {
    let runs = [sample::hostile(), sample::hostile()];
    let report = report(&runs, &["loss>0.001%"]);
    let html = report.html();
    assert!(!html.contains("<img"), "markup of a name");
    // The data, the script, and nothing else.
    assert_eq!(html.matches("</script").count(), 2);
    let data = html.split("id=\"data\">").nth(1).expect("data");
    let data: Value =
        serde_json::from_str(data.split("</script>").next().expect("an end")).unwrap();
    let label = data["plots"][0]["series"][1]["label"].as_str().expect("a label");
    assert!(label.ends_with(sample::HOSTILE), "{label}");
    let markdown = report.markdown();
    assert!(!markdown.contains("<img") && !markdown.contains("_@all"), "{markdown}");
    assert!(!report.junit().contains("<img"));
    serde_json::from_str::<Value>(&report.json()).expect("JSON");
}

#[test]
fn markdown_tables_have_at_most_100_columns() {
    let runs = [
        sample::rfc2544("a", "router", "ipv4", 9e6),
        sample::streams("b", ["voice", "video"]),
        sample::emulation("c"),
        sample::mlrsearch("d"),
        sample::two_machines("e"),
    ];
    for runs in
        [&runs[..], &runs[..1], &runs[1..2], &runs[2..3], &runs[3..4], &runs[1..], &runs[4..]]
    {
        let markdown = report(runs, &["loss>0.001%", "p99>1s"]).markdown();
        for line in markdown.lines().filter(|line| line.starts_with('|')) {
            assert!(line.chars().count() <= 100, "{line}");
        }
        let rows = markdown.lines().filter(|line| line.starts_with("| ")).count();
        assert!(rows > 20, "{markdown}");
    }
}

#[test]
fn tiles_name_the_traffic_if_there_are_several() {
    let mut runs = [sample::rfc2544("a", "router", "ipv4", 9.2e6)];
    let labels = |runs: &[Run]| {
        let tiles = &report(runs, &[]).document.tiles;
        tiles.iter().map(|tile| tile.label.clone()).collect::<Vec<_>>()
    };
    assert_eq!(labels(&runs)[..2], ["Throughput, 64 bytes", "Throughput, 1518 bytes"]);
    let Some(RunOutput::Bench(result)) = &mut runs[0].result else { panic!("no method") };
    let Findings::Rfc2544(findings) = &mut result.findings else { panic!("another method") };
    findings.throughput.truncate(1);
    findings.throughput.push(findings.throughput[0].clone());
    findings.throughput[1].traffic = "ipv6".to_owned();
    assert_eq!(labels(&runs)[..2], ["Throughput, ipv4 64 bytes", "Throughput, ipv6 64 bytes"]);
}

#[test]
fn junit_has_a_case_for_each_limit_and_group_of_trials() {
    let mut runs = [sample::rfc2544("a", "router", "ipv4", 9.2e6)];
    let limits = ["throughput[64]<5Mpps", "p50>1us", "lost[9000]>0"];
    let junit = report(&runs, &limits).junit();
    let count = |text: &str| junit.matches(text).count();
    // Six tests, the reset at one of seven sizes, the method, three limits.
    assert_eq!(count("<testcase "), 5 * 7 + 1 + 1 + 3);
    assert!(
        junit.contains(
            "<testcase name=\"throughput ipv4 64 bytes\" classname=\"a\" time=\"600.000\""
        )
    );
    assert!(
        junit.contains("<testcase name=\"throughput[64]&lt;5Mpps\" classname=\"limits: RFC 2544")
    );
    assert!(junit.contains("<failure type=\"limit\" message=\"a: 64 bytes, ipv4 is "), "{junit}");
    assert_eq!(count("<error type=\"no value\""), 1);
    runs[0].result = None;
    assert!(report(&runs, &[]).junit().contains("<error type=\"no result\""));
}

#[test]
fn limits_find_the_figures_of_each_kind_of_run() {
    let runs = [
        sample::rfc2544("bench", "router", "ipv4", 9.2e6),
        sample::streams("streams", ["voice", "video"]),
        sample::emulation("pages"),
        sample::mlrsearch("goals"),
    ];
    for (limit, values, failing) in [
        ("throughput[64,bench]<9Mpps", 1, 0),
        ("throughput_percent[1518,bench]<99%", 1, 1),
        ("throughput[84,ndr,ipv6]>1Mpps", 1, 1),
        ("loss[voice]>0", 1, 0),
        ("loss[video]>10ppm", 1, 1),
        ("reordered[video]>=12", 1, 1),
        ("p99.9[bench,1518]>1us", 1, 1),
        ("rate_error[streams]>1%", 3, 0),
        ("connections_failed>0", 2, 0),
        ("connect_p50[clients]>1s", 1, 0),
        ("buffer_time[64]>1ns", 1, 1),
    ] {
        let report = report(&runs, &[limit]);
        let judged = &report.limits[0];
        assert_eq!((judged.values, judged.failing.len()), (values, failing), "{limit}");
        assert_eq!(judged.has_passed(), failing == 0, "{limit}");
    }
}

#[test]
fn verdict_of_a_run_is_a_warning_and_a_failed_case() {
    let runs = [sample::streams("a", ["voice", "video"])];
    let Some(RunOutput::Run(result)) = &runs[0].result else { panic!("a result") };
    assert_eq!(result.verdict.outcome, Outcome::FellShort);
    let report = report(&runs, &[]);
    assert!(
        report.document.warnings[0].text.starts_with("Fell short: flow video: 185 frames lost")
    );
    assert!(report.junit().contains("<failure type=\"fell short\" message=\"flow video: 185"));
}

#[test]
fn sweep_of_a_flow_exporter_shows_where_loss_begins() {
    let runs = [sample::flow_export("exporter")];
    let report = report(&runs, &["flows_lost[80000]>0", "flow_loss[100000]<18%"]);
    let html = report.html();
    for expected in [
        "loss begins: 81.",
        "5 flows/s per Mbit/s at 10 Gbit/s",
        "Flow Monitoring Throughput",
        "limited by the tester",
        "500,000 flows",
    ] {
        assert!(html.contains(expected), "{expected}");
    }
    assert!(report.limits.iter().all(|judged| judged.has_passed()), "{:?}", report.limits);
}
