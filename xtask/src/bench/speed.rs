//! Benchmarks of frames and flows per second over a veth pair.

use std::path::Path;

use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::sample::{FixedFrames, FixedOptions, Traffic, TrafficOptions, write_file};

use super::Settings;
use super::contender::{Contender, Outcome};
use super::figures::{Figures, Row, Target};
use super::link::Sink;
use crate::Fallible;

const CONTENDERS: [Contender; 3] =
    [Contender::Tcpreplay, Contender::Wirestorm("auto"), Contender::Wirestorm("af_packet")];

/// Number of frames in a capture of one size, few enough for a processor's cache.
const FIXED_PACKETS: u64 = 1_000;

/// Number of conversations in the capture of flows, and number of passes over it.
const CONVERSATIONS: u64 = 5_000;
const PASSES: &str = "20";

/// Share of sent frames that must arrive; below it, the result has a note.
const DELIVERED_MIN: f64 = 0.999;

pub(super) fn small(settings: &Settings) -> Fallible<Vec<Row>> {
    fixed(settings, 60, ["small auto", "small af_packet"], [5.0, 1.5])
}

pub(super) fn large(settings: &Settings) -> Fallible<Vec<Row>> {
    fixed(settings, 1_500, ["large auto", "large af_packet"], [4.0, 1.0])
}

fn fixed(
    settings: &Settings,
    frame_length: usize,
    names: [&'static str; 2],
    targets: [f64; 2],
) -> Fallible<Vec<Row>> {
    let scratch = Scratch::new()?;
    let capture = scratch.file("fixed.pcap");
    let options =
        FixedOptions { frame_length, flows: 10, packets: FIXED_PACKETS, ..Default::default() };
    write_file(FixedFrames::new(options), Resolution::Microseconds, &capture)?;
    let seconds = settings.seconds.to_string();
    let options = ["-t", "-K", "--loop", "0", "--duration", &seconds];
    let [tcpreplay, auto, af_packet] =
        run_round_robin(settings, &CONTENDERS, &options, &capture, |outcome| outcome.pps / 1e6)?
            .try_into()
            .map_err(|_| "a figure for each contender")?;
    let rows = names.into_iter().zip(targets).zip([auto, af_packet]);
    Ok(rows.map(|((name, times), mine)| row(name, "Mpps", times, mine, &tcpreplay)).collect())
}

pub(super) fn flows(settings: &Settings) -> Fallible<Vec<Row>> {
    let scratch = Scratch::new()?;
    let capture = scratch.file("flows.pcap");
    let options = TrafficOptions { conversations: CONVERSATIONS, ..Default::default() };
    write_file(Traffic::new(options), Resolution::Microseconds, &capture)?;
    let options = ["-t", "-K", "--unique-ip", "--loop", PASSES];
    let contenders = [Contender::Tcpreplay, Contender::Wirestorm("auto")];
    let [tcpreplay, auto] =
        run_round_robin(settings, &contenders, &options, &capture, |outcome| {
            outcome.flows_per_second / 1e3
        })?
        .try_into()
        .map_err(|_| "a figure for each contender")?;
    let mut absolute = row("flows auto", "kflow/s", 0.0, auto.clone(), &tcpreplay);
    absolute.target = Target::AtLeast(100.0);
    Ok(vec![row("flows auto", "kflow/s", 4.0, auto, &tcpreplay), absolute])
}

/// Figures of a contender at its best sink.
#[derive(Clone, Debug)]
struct Best {
    figures: Figures,
    sink: Sink,
    notes: Vec<String>,
}

fn row(name: &'static str, unit: &'static str, times: f64, mine: Best, tcpreplay: &Best) -> Row {
    let mut notes = vec![format!(
        "best sink of wirestorm: {}, of tcpreplay: {}",
        mine.sink.name(),
        tcpreplay.sink.name()
    )];
    notes.extend(mine.notes);
    notes.extend(tcpreplay.notes.iter().map(|note| format!("tcpreplay: {note}")));
    Row {
        name,
        unit,
        wirestorm: mine.figures,
        peer: Some(tcpreplay.figures.clone()),
        target: Target::TimesPeer(times),
        notes,
    }
}

/// Runs the contenders round robin with each sink.
fn run_round_robin(
    settings: &Settings,
    contenders: &[Contender],
    options: &[&str],
    capture: &Path,
    figure: fn(&Outcome) -> f64,
) -> Fallible<Vec<Best>> {
    let lab = Lab::new()?;
    let new = |sink| Best { figures: Figures::default(), sink, notes: Vec::new() };
    let mut results = vec![Sink::ALL.map(new); contenders.len()];
    for _ in 0..settings.rounds {
        for (place, sink) in Sink::ALL.into_iter().enumerate() {
            let _sink = sink.prepare(&lab)?;
            for (contender, results) in contenders.iter().zip(&mut results) {
                let before = lab.b.counters()?.rx_packets;
                let outcome = contender.run(settings, &lab, options, capture)?;
                let arrived = lab.b.counters()?.rx_packets.saturating_sub(before) as f64;
                // Count only frames that arrived.
                let delivered = (arrived / outcome.packets.max(1.0)).min(1.0);
                let Some(best) = results.get_mut(place) else { continue };
                best.figures.push(figure(&outcome) * delivered);
                if delivered < DELIVERED_MIN {
                    let percent = delivered * 100.0;
                    best.notes.push(format!("{percent:.1} % of the sent frames arrived"));
                }
            }
        }
    }
    let best = |results: [Best; 3]| {
        results.into_iter().max_by(|a, b| a.figures.median().total_cmp(&b.figures.median()))
    };
    Ok(results.into_iter().filter_map(best).collect())
}
