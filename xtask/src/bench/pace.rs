//! Benchmarks of rate accuracy.

use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{Lab, LabOptions};
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::sample::{FixedFrames, FixedOptions, write_file};

use super::Settings;
use super::contender::{number, wirestorm};
use super::figures::{Figures, Row, Target};
use crate::Fallible;

const SECONDS: &str = "20";
/// 10 ppm is 0.001 %.
const AVERAGE_ERROR_PPM_MAX: f64 = 10.0;
const MEDIAN_GAP_ERROR_US_MAX: f64 = 2.0;

pub(super) fn pps(settings: &Settings) -> Fallible<Vec<Row>> {
    pace(settings, ["pps average", "pps gap"], 60, ["--pps", "100000"])
}

pub(super) fn bps(settings: &Settings) -> Fallible<Vec<Row>> {
    pace(settings, ["bps average", "bps gap"], 1_500, ["--mbps", "7000"])
}

fn pace(
    settings: &Settings,
    names: [&'static str; 2],
    frame_length: usize,
    rate: [&str; 2],
) -> Fallible<Vec<Row>> {
    let lab = Lab::with(&LabOptions { gro: [false, true], ..LabOptions::default() })?;
    let scratch = Scratch::new()?;
    let capture = scratch.file("fixed.pcap");
    let options = FixedOptions { frame_length, packets: 1_000, ..FixedOptions::default() };
    write_file(FixedFrames::new(options), Resolution::Microseconds, &capture)?;
    let mut options = vec!["-K", "--loop", "0", "--duration", SECONDS];
    options.extend(rate);
    let quantiles = ["p50", "p99", "p99_9", "max"];
    let (mut averages, mut unsent) = (Figures::default(), 0.0);
    let mut gaps = quantiles.map(|_| Figures::default());
    for _ in 0..settings.rounds {
        let result = wirestorm(settings, &lab.a.port(), &options, &capture)?;
        averages.push(number(&result, "/achieved/rate_error_ppm")?.abs());
        unsent += number(&result, "/achieved/unsent")?;
        for (figures, name) in gaps.iter_mut().zip(quantiles) {
            let place = format!("/achieved/departures/gap_errors/{name}_ns");
            figures.push(number(&result, &place)? / 1e3);
        }
    }
    let [median, p99, p99_9, max] = gaps;
    let row = |name, unit, figures: Figures, target: f64, note: String| Row {
        name,
        unit,
        wirestorm: figures,
        peer: None,
        target: Target::AtMost(target),
        notes: vec![note],
    };
    let spread = format!(
        "99 %: {:.2} us, 99.9 %: {:.2} us, all: {:.0} us",
        p99.median(),
        p99_9.median(),
        max.median()
    );
    let [average_name, gap_name] = names;
    Ok(vec![
        row(average_name, "ppm", averages, AVERAGE_ERROR_PPM_MAX, format!("unsent: {unsent}")),
        row(gap_name, "us", median, MEDIAN_GAP_ERROR_US_MAX, spread),
    ])
}
