//! Plots of the time series of flows.

use wirestorm_control::result::{FlowReport, MeasuredReport, SeriesReport, TotalReport};
use wirestorm_report::document::{Block, Plot, Scale};
use wirestorm_report::run::{Run, RunOutput};
use wirestorm_report::{Options, Report};

use crate::sample;

const VARIATION: &str = "Delay variation over time";
const DISORDER: &str = "Reordered and duplicated frames over time";
const EXTENT: &str = "Reordering extent over time";

/// Returns the plot with this title; `None` if the report has none.
fn plot(run: &Run, title: &str) -> Option<Plot> {
    let runs = [run.clone()];
    let document = Report::new(&runs, &Options::default()).document;
    let blocks = document.sections.iter().flat_map(|section| &section.blocks);
    let mut plots = blocks.filter_map(|block| match block {
        Block::Plot(plot) => Some(plot.clone()),
        _ => None,
    });
    plots.find(|plot| plot.title == title)
}

fn labels(plot: &Plot) -> Vec<&str> {
    plot.series.iter().map(|series| &*series.label).collect()
}

fn flows(run: &mut Run) -> &mut [FlowReport] {
    let Some(RunOutput::Run(result)) = &mut run.result else { panic!("no result") };
    &mut result.flows
}

#[test]
fn plots_show_variation_reordering_and_duplicates_of_each_interval() {
    let mut run = sample::streams("a", ["voice", "video"]);
    let variation = plot(&run, VARIATION).expect("a plot");
    let expected = ["PDV", "IPDV", "jitter"];
    let expected = ["voice", "video"].map(|flow| expected.map(|what| format!("{flow}, {what}")));
    assert_eq!(labels(&variation), expected.concat());
    let series = flows(&mut run)[1].measured[0].series.clone().expect("a series");
    assert_eq!(variation.y.scale, Scale::Log);
    let pdv = &variation.series[3].points[40];
    let range = series.delay_max_ns[40].unwrap() - series.delay_min_ns[40].unwrap();
    assert_eq!((pdv.x, pdv.y), (40.0, Some(range as f64)));
    // The first flow has neither reordered nor duplicated frames.
    let disorder = plot(&run, DISORDER).expect("a plot");
    assert_eq!(labels(&disorder), ["video, reordered", "video, duplicated"]);
    let values = |place: usize| -> Vec<_> {
        disorder.series[place].points[38..46].iter().map(|point| point.y.unwrap()).collect()
    };
    assert_eq!(values(0), [0.0, 0.0, 3.0, 3.0, 3.0, 3.0, 0.0, 0.0]);
    assert_eq!(values(1), [0.0, 0.0, 2.0, 2.0, 2.0, 2.0, 0.0, 0.0]);
    let extent = plot(&run, EXTENT).expect("a plot");
    let points = &extent.series[0].points[39..45];
    let extents: Vec<_> = points.iter().map(|point| point.y.unwrap()).collect();
    assert_eq!(extents, [0.0, 2.0, 3.0, 4.0, 5.0, 0.0]);
}

#[test]
fn variation_of_zero_has_a_linear_axis() {
    let mut run = sample::streams("a", ["voice", "video"]);
    flows(&mut run)[1].measured[0].series.as_mut().expect("a series").jitter_ns[3] = Some(0);
    assert_eq!(plot(&run, VARIATION).expect("a plot").y.scale, Scale::Linear);
}

#[test]
fn results_of_earlier_versions_have_no_empty_plots() {
    let mut run = sample::streams("a", ["voice", "video"]);
    for flow in flows(&mut run) {
        let series = flow.measured[0].series.as_mut().expect("a series");
        let SeriesReport { interval_s, packets, bytes, missing, .. } = series.clone();
        let SeriesReport { delay_mean_ns, delay_max_ns, .. } = series.clone();
        let known = SeriesReport {
            interval_s,
            packets,
            bytes,
            missing,
            delay_mean_ns,
            ..Default::default()
        };
        *series = SeriesReport { delay_max_ns, ..known };
    }
    assert!(plot(&run, "Delay over time").is_some());
    for title in [VARIATION, DISORDER, EXTENT] {
        assert!(plot(&run, title).is_none(), "{title}");
    }
}

#[test]
fn variation_between_machines_has_no_drift_if_their_clocks_are_compared() {
    const BETWEEN: &str = "Delay variation between machines over time";
    let mut run = sample::two_machines("a");
    for flow in flows(&mut run) {
        flow.measured[0].series.as_mut().expect("a series").remove_delays();
    }
    let between = plot(&run, BETWEEN).expect("a plot");
    assert_eq!(labels(&between), ["forward, PDV", "backward, PDV"]);
    assert_eq!(between.series[0].points[5].y, Some(81_000.0));
    let variation = plot(&run, VARIATION).expect("a plot");
    assert!(labels(&variation).contains(&"forward, jitter"));
    assert!(!labels(&variation).contains(&"forward, PDV"));
    // Without a comparison, the variation of the raw delays is all there is.
    flows(&mut run)[0].measured[0].one_way = None;
    let variation = plot(&run, VARIATION).expect("a plot");
    assert!(labels(&variation).contains(&"forward, PDV"));
    assert_eq!(labels(&plot(&run, BETWEEN).expect("a plot")), ["backward, PDV"]);
    assert!(plot(&run, "Delay over time").is_none(), "the delays are unknown");
}

#[test]
fn flow_to_several_ports_has_a_series_of_all_ports() {
    let mut run = sample::streams("a", ["voice", "video"]);
    let flow = &mut flows(&mut run)[0];
    let left = MeasuredReport { port: "left".into(), ..flow.measured[0].clone() };
    flow.measured.push(left);
    flow.total = TotalReport::of(&flow.measured);
    let rates = plot(&run, "Received frames over time").expect("a plot");
    let expected = ["voice at right", "voice at left", "video", "voice at all ports"];
    assert_eq!(labels(&rates), expected);
    let rate = |place: usize| rates.series[place].points[10].y.unwrap();
    assert_eq!(rate(3), rate(0) + rate(1));
}
