use wirestorm_api::delays::FlowDelays;
use wirestorm_api::progress::{ConnectionProgress, FlowProgress, FlowReceived, PortProgress};

use super::*;

impl Traffic {
    /// Counters and rates of an interface.
    pub(crate) fn port(&self, interface: &str) -> PortLine {
        self.port_lines().remove(interface).unwrap_or_default()
    }
}

/// Counters of a run with a sender on `eth1` and a receiver on `eth2`, at a time.
pub(crate) fn progress(milliseconds: u64, frames: u64) -> Progress {
    let port = |name: &str, interface: &str| PortProgress {
        name: name.to_owned(),
        interface: interface.to_owned(),
        ..PortProgress::default()
    };
    Progress {
        elapsed_ns: milliseconds * 1_000_000,
        ports: vec![
            PortProgress {
                tx_frames: frames,
                tx_bytes: 60 * frames,
                connections: ConnectionProgress {
                    established: frames / 10,
                    active: 3,
                    ..ConnectionProgress::default()
                },
                ..port("left", "eth1")
            },
            PortProgress { rx_frames: frames, rx_bytes: 60 * frames, ..port("right", "eth2") },
        ],
        flows: vec![FlowProgress {
            name: "voice".into(),
            tx_frames: frames,
            tx_bytes: 60 * frames,
            tx_unsent: 0,
            starts: 1,
            is_paused: false,
            delays: Some(FlowDelays::new([(1_100, frames / 2), (9_000, frames / 10)])),
            received: Some(FlowReceived {
                frames: frames - frames / 100,
                bytes: 60 * frames,
                duplicated: 0,
                reordered: 0,
                delay_mean_ns: Some(2_000.0),
                delay_min_ns: Some(1_000),
                delay_max_ns: Some(9_000),
                jitter_ns: Some(150),
            }),
        }],
        worker_time_ns: milliseconds * 500_000,
        ..Progress::in_state(RunState::Running)
    }
}

#[test]
fn rate_is_that_of_the_last_second() {
    let mut traffic = Traffic::default();
    for (milliseconds, frames) in [(0, 0), (500, 100), (1_000, 600), (1_500, 1_100)] {
        traffic.add("a", progress(milliseconds, frames));
    }
    let port = traffic.port("eth1");
    assert_eq!((port.tx.frames, port.tx_frames), (1_000.0, 1_100));
    assert_eq!(port.tx.bits_l1(), 8.0 * 84.0 * 1_000.0);
    assert_eq!(port.tx.bits_l2(), 8.0 * 64.0 * 1_000.0);
    assert_eq!(traffic.port("eth2").rx.frames, 1_000.0);
    let flow = &traffic.flows()[0];
    assert_eq!(flow.tx.frames, 1_000.0);
    assert_eq!(flow.received.as_ref().unwrap().missing, 11);
    let cpu = &traffic.cpu()[0];
    assert_eq!((cpu.load, cpu.per_frame_ns), (0.5, Some(250_000.0)));
}

#[test]
fn first_counters_of_a_run_can_be_empty() {
    let mut traffic = Traffic::default();
    traffic.add("a", Progress::in_state(RunState::Running));
    traffic.add("a", progress(500, 500));
    assert_eq!(traffic.port("eth1").tx.frames, 1_000.0);
    assert_eq!(traffic.flows()[0].tx.frames, 1_000.0);
    assert_eq!(traffic.connections()[0].rate, 100.0);
}

#[test]
fn rates_end_with_the_run_and_counters_stay_until_they_are_cleared() {
    let mut traffic = Traffic::default();
    traffic.add("a", progress(0, 0));
    traffic.add("a", progress(1_000, 1_000));
    traffic.add("a", Progress { state: RunState::Finished, ..progress(2_000, 2_000) });
    let port = traffic.port("eth1");
    assert_eq!((port.tx.frames, port.tx_frames), (0.0, 2_000));
    traffic.add("b", progress(0, 0));
    traffic.add("b", progress(1_000, 500));
    assert_eq!(traffic.port("eth1").tx_frames, 2_500, "the runs of a port add up");
    traffic.clear();
    let port = traffic.port("eth1");
    assert_eq!((port.tx.frames, port.tx_frames), (500.0, 0), "the rate stays");
    traffic.add("b", progress(2_000, 900));
    assert_eq!(traffic.port("eth1").tx_frames, 400);
    assert_eq!(traffic.flows().len(), 1);
}

#[test]
fn recent_delay_is_the_mean_of_the_last_second() {
    let mut traffic = Traffic::default();
    traffic.add("a", progress(0, 1_000));
    let mut next = progress(1_000, 2_000);
    let received = next.flows[0].received.as_mut().unwrap();
    received.delay_mean_ns = Some(3_000.0);
    traffic.add("a", next);
    let delay = traffic.flows()[0].received.clone().unwrap().delay.unwrap();
    assert_eq!(delay.recent_ns, Some(4_000.0));
}

#[test]
fn histograms_count_from_the_time_of_clearing() {
    let mut traffic = Traffic::default();
    traffic.add("a", progress(0, 1_000));
    let counts = |traffic: &Traffic| {
        let histograms = traffic.histograms(0..1);
        assert_eq!(histograms.total, histograms.chosen[0].counts);
        histograms.total
    };
    assert_eq!(counts(&traffic), BTreeMap::from([(1_024, 500), (8_192, 100)]));
    traffic.clear();
    assert_eq!(counts(&traffic), BTreeMap::new());
    traffic.add("a", progress(1_000, 1_200));
    assert_eq!(counts(&traffic), BTreeMap::from([(1_024, 100), (8_192, 20)]));
    // The other figures cannot be taken apart.
    let received = traffic.flows()[0].received.clone().unwrap();
    let delay = received.delay.unwrap();
    assert_eq!((delay.p50_ns, delay.p99_ns), (Some(1_100.0), Some(9_000.0)));
    assert_eq!((received.frames, delay.samples), (198, 1_188));
}

#[test]
fn histograms_are_those_of_active_runs_else_of_the_newest() {
    let mut traffic = Traffic::default();
    traffic.add("old", Progress { state: RunState::Finished, ..progress(0, 100) });
    traffic.add("a", progress(0, 200));
    traffic.add("b", progress(0, 400));
    let frames = |traffic: &Traffic| traffic.histograms(0..0).total[&1_024];
    assert_eq!(frames(&traffic), 300);
    traffic.end("b", RunState::Finished);
    assert_eq!(frames(&traffic), 100);
    traffic.end("a", RunState::Finished);
    assert_eq!(frames(&traffic), 200, "b is the newest");
}

/// Counters of a run with measured flows, of which the first have delays.
pub(crate) fn measured(names: impl Iterator<Item = String>) -> Progress {
    let mut progress = progress(1_000, 100);
    let flow = progress.flows.remove(0);
    let flows = names.enumerate().map(|(index, name)| FlowProgress {
        name: name.into(),
        delays: flow.delays.clone().filter(|_| index < FlowDelays::FLOWS_MAX),
        ..flow.clone()
    });
    progress.flows = flows.collect();
    progress
}

#[test]
fn flows_without_a_histogram_are_counted() {
    let mut traffic = Traffic::default();
    traffic.add("a", measured((0..100).map(|it| format!("flow {it}"))));
    let histograms = traffic.histograms(62..1_000);
    let names: Vec<&str> = histograms.chosen.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["flow 62", "flow 63"]);
    assert_eq!((histograms.count, histograms.left_out), (64, 36));
    assert_eq!(histograms.total[&1_024], 64 * 50);
}

#[test]
fn flows_of_an_ended_run_are_not_paused() {
    let mut traffic = Traffic::default();
    let mut paused = Progress { is_paused: true, ..progress(1_000, 100) };
    paused.flows[0].is_paused = true;
    traffic.add("a", paused);
    assert!(traffic.flows()[0].is_paused);
    traffic.end("a", RunState::Interrupted);
    assert!(!traffic.flows()[0].is_paused);
}

#[test]
fn sparklines_get_a_value_each_second_and_are_bounded() {
    let mut traffic = Traffic::default();
    for second in 0..2 * HISTORY_MAX as u64 {
        traffic.add("a", progress(1_000 * second, 100 * second));
        traffic.tick();
    }
    let (tx, rx) = traffic.port_history("eth1");
    assert_eq!((tx.len(), tx.back(), rx.back()), (HISTORY_MAX, Some(&100.0), Some(&0.0)));
    assert_eq!(traffic.cpu_history("a").map(History::len), Some(HISTORY_MAX));
}

#[test]
fn number_of_ended_runs_is_bounded() {
    let mut traffic = Traffic::default();
    for number in 0..3 * ENDED_MAX {
        let ended = Progress { state: RunState::Finished, ..progress(1_000, 10) };
        traffic.add(&format!("run {number}"), ended);
    }
    assert_eq!(traffic.cpu().len(), ENDED_MAX);
    assert_eq!(traffic.cpu()[0].run, format!("run {}", 3 * ENDED_MAX - 1));
}
