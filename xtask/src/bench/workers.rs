//! Benchmark of one and two workers, each on its own queue.

use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{Lab, LabOptions};
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

use super::Settings;
use super::contender::Contender;
use super::figures::{Figures, Row, Target};
use super::link::Sink;
use crate::Fallible;

/// Number of conversations in the capture: enough for an even distribution.
const CONVERSATIONS: u64 = 5_000;

/// Packet socket only: the in-kernel sender occupies another CPU for each worker.
const CONTENDER: Contender = Contender::Wirestorm("af_packet");

pub(super) fn run(settings: &Settings) -> Fallible<Vec<Row>> {
    let scratch = Scratch::new()?;
    let capture = scratch.file("flows.pcap");
    let options = TrafficOptions { conversations: CONVERSATIONS, ..Default::default() };
    write_file(Traffic::new(options), Resolution::Microseconds, &capture)?;
    let lab = Lab::with(&LabOptions { queues: 2, ..LabOptions::default() })?;
    let _sink = Sink::Plain.prepare(&lab)?;
    let seconds = settings.seconds.to_string();
    let mut rows = [("workers 1", "1"), ("workers 2", "2")].map(|(name, workers)| {
        let options = ["-t", "-K", "--loop", "0", "--duration", &seconds, "--workers", workers];
        (row(name), options)
    });
    for _ in 0..settings.rounds {
        for (row, options) in &mut rows {
            let before = lab.b.counters()?.rx_packets;
            let outcome = CONTENDER.run(settings, &lab, options, &capture)?;
            let arrived = lab.b.counters()?.rx_packets.saturating_sub(before) as f64;
            // Count only frames that arrived.
            let delivered = (arrived / outcome.packets.max(1.0)).min(1.0);
            row.wirestorm.push(outcome.pps * delivered / 1e6);
        }
    }
    let [one, mut two] = rows.map(|(row, _)| row);
    let times = two.wirestorm.median() / one.wirestorm.median();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    two.notes.push(format!(
        "{times:.2} times one worker; the workers, which also do their receivers' work, \
         have {cpus} CPUs"
    ));
    Ok(vec![one, two])
}

fn row(name: &'static str) -> Row {
    let (wirestorm, notes) = (Figures::default(), Vec::new());
    Row { name, unit: "Mpps", wirestorm, peer: None, target: Target::Unset, notes }
}
