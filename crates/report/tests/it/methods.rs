//! Reports of non-drop rates, Ethernet services and RFC 9411.

use wirestorm_method::method::Findings;
use wirestorm_method::y1564::Y1564Direction;
use wirestorm_report::document::{Block, Plot};
use wirestorm_report::limit::Limit;
use wirestorm_report::run::{Run, RunOutput};
use wirestorm_report::{Options, Report};

use crate::services;

fn report<'a>(runs: &'a [Run], limits: &[&str]) -> Report<'a> {
    let limits = limits.iter().map(|text| Limit::parse(text).expect("a limit")).collect();
    Report::new(runs, &Options { title: None, limits })
}

fn plot<'a>(report: &'a Report<'_>, title: &str) -> &'a Plot {
    let blocks = report.document.sections.iter().flat_map(|section| &section.blocks);
    let mut plots = blocks.filter_map(|block| match block {
        Block::Plot(plot) => Some(plot),
        _ => None,
    });
    plots.find(|plot| plot.title == title).unwrap_or_else(|| panic!("no plot {title:?}"))
}

/// Compares the number of figures of each limit, and of those that fail it.
fn judge(runs: &[Run], expected: &[(&str, usize, usize)]) {
    for &(limit, values, failing) in expected {
        let report = report(runs, &[limit]);
        let judged = &report.limits[0];
        assert_eq!((judged.values, judged.failing.len()), (values, failing), "{limit}");
    }
}

#[test]
fn ndr_plots_passed_and_failed_loads_below_and_above_the_rate_found() {
    let runs = [services::ndr("a", 9.2e6)];
    let report = report(&runs, &[]);
    let drops = plot(&report, "Drops against load");
    assert_eq!(drops.series.len(), 4);
    for series in &drops.series {
        let failed = series.points.iter().position(|it| it.is_hollow).expect("a failed load");
        let (passed, failed) = series.points.split_at(failed);
        assert!(!passed.is_empty() && failed.iter().all(|it| it.is_hollow), "{series:?}");
        assert!(passed.iter().all(|it| it.y == Some(0.0)), "{series:?}");
        assert!(failed.iter().all(|it| it.y > Some(0.0)), "{series:?}");
    }
    let rates = plot(&report, "Rate found against frame size");
    // The theoretical maximum and the rates.
    assert_eq!(rates.points(), 2 * 4);
    let html = report.html();
    for expected in ["the tester did not reach the maximum load", "NDR, ipv4 64 bytes", "1/3"] {
        assert!(html.contains(expected), "{expected}");
    }
}

#[test]
fn ndr_of_a_single_file_has_rates_but_no_trials() {
    let mut runs = [services::ndr("a", 9.2e6)];
    runs[0].trials.clear();
    let html = report(&runs, &[]).html();
    assert!(html.contains("Rates found, of each interface"));
    assert!(!html.contains("Drops against load"));
}

#[test]
fn ndr_of_connections_counts_connections() {
    let runs = [services::ndr_connections("a", 62_000.0)];
    let html = report(&runs, &[]).html();
    for expected in
        ["Rates of connections found", "Failed connections against load", "PDR, clients"]
    {
        assert!(html.contains(expected), "{expected}");
    }
    let markdown = report(&runs, &[]).markdown();
    assert!(!markdown.contains("frames/s") && !markdown.contains("pps"), "{markdown}");
    judge(&runs, &[("connections_per_s[clients]<60000", 1, 0), ("connections_per_s<70000", 1, 1)]);
    // Frames and connections have sections of their own.
    let both = [services::ndr("b", 9.2e6), services::ndr_connections("a", 62_000.0)];
    let both = report(&both, &[]);
    let titles: Vec<_> = both.document.sections.iter().map(|it| &*it.title).take(4).collect();
    let expected = [
        "Non-drop rate",
        "Drops and latency against load",
        "Rate of connections",
        "Failed connections against load",
    ];
    assert_eq!(titles, expected);
}

#[test]
fn collector_marks_where_loss_begins() {
    let runs = [services::collector("a")];
    let report = report(&runs, &[]);
    let sent = plot(&report, "Records sent against records stored");
    let [mark] = &*sent.marks else { panic!("{:?}", sent.marks) };
    assert!((640_000.0..=647_000.0).contains(&mark.x), "{mark:?}");
    let [ideal, stored] = &*sent.series else { panic!("{:?}", sent.series) };
    assert_eq!(ideal.points.len(), 2);
    assert!(stored.points.iter().all(|it| it.y <= Some(640_001.0)), "{stored:?}");
    judge(&runs, &[("record_loss[1000000]>35%", 1, 1), ("record_throughput<630000", 1, 0)]);
}

#[test]
fn collector_without_a_count_has_no_loss() {
    let mut runs = [services::collector("a")];
    let Some(RunOutput::Bench(result)) = &mut runs[0].result else { panic!("no findings") };
    let Findings::Collector(findings) = &mut result.findings else {
        panic!("other findings");
    };
    (findings.throughput, findings.loss_begins) = (None, None);
    for point in &mut findings.points {
        (point.loss_percent, point.is_lossless, point.collector.stored) = (None, None, None);
    }
    assert!(report(&runs, &[]).html().contains("nothing counted the stored records"));
    judge(&runs, &[("record_throughput<1", 0, 0)]);
}

#[test]
fn services_mark_their_profile_and_failed_steps() {
    let runs = [services::y1564("a")];
    let report = report(&runs, &[]);
    let data = plot(&report, "data: information rate");
    let marks: Vec<_> = data.marks.iter().map(|mark| (mark.x, &*mark.label)).collect();
    assert_eq!(marks, [(10e6, "CIR 10 Mbit/s"), (15e6, "CIR + EIR 15 Mbit/s")]);
    let video = plot(&report, "video: information rate");
    let failed = video.series[1].points.iter().filter(|it| it.is_hollow).count();
    assert_eq!((video.marks.len(), failed), (1, 2));
    let over_time = plot(&report, "Information rate over time");
    assert_eq!(over_time.series.len(), 3);
    let html = report.html();
    for expected in ["FLR 6.2", "IR 14.999 Mbit/s is below the CIR", "Least availability (%)"] {
        assert!(html.contains(expected), "{expected}");
    }
}

#[test]
fn each_direction_of_a_service_is_a_row_and_a_figure() {
    let mut runs = [services::y1564("a")];
    let Some(RunOutput::Bench(result)) = &mut runs[0].result else { panic!("no method") };
    let Findings::Y1564(findings) = &mut result.findings else { panic!("no services") };
    findings.rows.truncate(1);
    let row = &mut findings.rows[0];
    for (direction, flr) in [("eth1 > eth2", 0.0), ("eth2 > eth1", 0.1)] {
        row.directions.push(Y1564Direction {
            direction: direction.to_owned(),
            flr,
            ..row.total.clone()
        });
    }
    row.total.flr = 0.05;
    let html = report(&runs, &[]).html();
    for expected in ["Direction", "eth1 &gt; eth2", "eth2 &gt; eth1"] {
        assert!(html.contains(expected), "{expected}");
    }
    // The loss of one direction is no average of both.
    judge(&runs, &[("loss>9%", 2, 1)]);
}

#[test]
fn rfc9411_shows_each_test_with_its_section() {
    let runs = [services::rfc9411("http", false), services::rfc9411("https", true)];
    let both = report(&runs, &[]);
    let found: Vec<_> =
        both.document.sections.iter().map(|it| (&*it.title, &*it.source)).take(6).collect();
    assert_eq!(
        found,
        [
            ("Connections per second", "RFC 9411 sections 7.2, 7.6"),
            ("Throughput", "RFC 9411 sections 7.3, 7.7"),
            ("Latency at half of the connections per second", "RFC 9411 sections 7.4, 7.8"),
            ("Latency at half of the throughput", "RFC 9411 sections 7.4, 7.8"),
            ("Concurrent connections", "RFC 9411 sections 7.5, 7.9"),
            ("Throughput with a traffic mix", "RFC 9411 section 7.1"),
        ]
    );
    // HTTP and HTTPS share the object sizes.
    let results = plot(&both, "Connections per second against object size");
    assert_eq!(results.x.categories, ["1 KB", "2 KB", "4 KB", "16 KB", "64 KB"]);
    // The target, and a bar for each size and run.
    assert_eq!(results.points(), 2 + 5 + 5);
    let one = report(&runs[..1], &[]);
    let loads = plot(&one, "Connections per second: loads of the trials");
    let first = &loads.series[0].points;
    // Step 1 is valid, the target is not.
    assert!(!first[0].is_hollow && first[1].is_hollow, "{first:?}");
    assert_eq!((first[0].y, first[1].y), (Some(5_000.0), Some(50_000.0)));
    let html = one.html();
    assert!(html.contains("TTLB at the result: percentiles"));
    assert!(html.contains("failed transactions &lt; 0.001 %"));
    // Its trials count connections, not frames.
    assert!(!html.contains("Trials in their order"));
}

#[test]
fn limits_find_the_figures_of_each_method() {
    judge(
        &[services::ndr("a", 9.2e6)],
        &[
            ("throughput[64]<9Mpps", 1, 0),
            ("throughput_l1<9Gbps", 4, 1),
            ("throughput_percent[1518]>91%", 1, 1),
            ("loss>0", 4, 0),
            ("max_delay>100us", 4, 4),
        ],
    );
    judge(
        &[services::y1564("a")],
        &[
            ("information_rate[data,eir]<14.9Mbps", 2, 0),
            ("loss[performance]>0.1%", 3, 1),
            ("mean_delay[voice,cir]>1ms", 4, 0),
            ("pdv[voice,performance]>1ms", 1, 1),
            ("availability<99.9%", 3, 0),
        ],
    );
    judge(
        &[services::rfc9411("a", false)],
        &[
            ("connections_per_s[connections]<41000", 5, 1),
            ("connections_per_s[7.2,\"http 1 KB\"]<41000", 1, 0),
            ("transactions_per_s[throughput]<1000", 5, 0),
            ("throughput_l2[mix]<6Gbps", 1, 0),
            ("concurrent[concurrent]<770000", 1, 0),
            ("first_byte_p99[latency]>1ms", 6, 6),
            ("last_byte_mean[latency,\"bit/s\"]>1s", 3, 0),
            ("transaction_p50[throughput]>1ms", 5, 0),
        ],
    );
}

#[test]
fn test_without_a_valid_load_has_a_result_of_zero() {
    let mut runs = [services::rfc9411("a", false)];
    let Some(wirestorm_report::run::RunOutput::Bench(result)) = &mut runs[0].result else {
        panic!("a result");
    };
    let wirestorm_method::method::Findings::Rfc9411(findings) = &mut result.findings else {
        panic!("findings");
    };
    findings.rows[0].load = None;
    findings.rows[0].kpis = None;
    judge(&runs, &[("connections_per_s[\"http 1 KB\",connections]<=0", 1, 1)]);
    let report = report(&runs, &[]);
    assert!(report.html().contains("no valid load"));
    assert!(report.junit().contains("<failure type=\"criteria\""));
}

#[test]
fn junit_cases_have_different_names_and_the_time_of_their_trials() {
    for run in [services::ndr("a", 9.2e6), services::y1564("b"), services::rfc9411("c", false)] {
        let (trials, runs) = (run.trials.clone(), [run]);
        let junit = report(&runs, &[]).junit();
        let attribute = |line: &str, name: &str| {
            let rest = line.split(&format!(" {name}=\"")).nth(1)?;
            Some(rest.split('"').next()?.to_owned())
        };
        let cases: Vec<&str> = junit.lines().filter(|line| line.contains("<testcase ")).collect();
        let mut names: Vec<_> = cases.iter().filter_map(|line| attribute(line, "name")).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{names:#?}");
        // The case of the method is the last one and has the elapsed time of the run.
        let times = cases[..count - 1].iter().filter_map(|line| attribute(line, "time"));
        let sum: f64 = times.map(|time| time.parse::<f64>().expect("a time")).sum();
        let expected: f64 = trials.iter().map(|trial| trial.output.elapsed_s).sum();
        assert!((sum - expected).abs() < 0.1, "{sum} instead of {expected}: {junit}");
    }
}
