//! Signals that end or suspend a run.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use wirestorm_e2e::{can_run, start_replay, traffic, write_capture};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab};

const PATIENCE: Duration = Duration::from_secs(10);

fn received(end: &End) -> u64 {
    end.counters().unwrap().rx_packets
}

fn wait_for_frames(end: &End, more_than: u64) {
    let deadline = Instant::now() + PATIENCE;
    while received(end) <= more_than {
        assert!(Instant::now() < deadline, "no frame arrives");
        std::thread::yield_now();
    }
}

/// Longer than the pauses of a sender on a busy machine.
const SILENCE: Duration = Duration::from_millis(500);

/// Waits until no frame arrives for that time; returns the number of frames.
fn wait_for_silence(end: &End) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    let (mut count, mut since) = (received(end), Instant::now());
    while since.elapsed() < SILENCE {
        assert!(Instant::now() < deadline, "frames go on arriving");
        let now = received(end);
        if now != count {
            (count, since) = (now, Instant::now());
        }
        std::thread::yield_now();
    }
    count
}

#[test]
fn interrupt_ends_the_run_with_a_result() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "a.pcap", &traffic(5, 1));
    for (backend, signal) in
        [("af_packet", Signal::INT), ("af_xdp", Signal::TERM), ("xdp", Signal::INT)]
    {
        let lab = Lab::new().unwrap();
        let _polling = lab.b.polling_sink().unwrap();
        let path = path.to_str().unwrap();
        let pace = ["--pps", "1000", "--loop", "0", "--backend", backend];
        let running = start_replay(pace.into_iter().chain(["-i", &lab.a.port(), path]));
        wait_for_frames(&lab.b, 20);
        running.signal(signal);
        let outcome = running.wait().expect(130);
        assert_eq!(outcome.result()["interrupted"], true, "{outcome}");
        assert_eq!(outcome.number("/achieved/packets"), received(&lab.b), "{backend}: {outcome}");
        assert_eq!(outcome.result()["errors"], serde_json::json!([]), "{backend}");
    }
}

#[test]
fn suspended_run_sends_nothing_until_it_is_continued() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "a.pcap", &traffic(5, 1));
    for backend in ["af_packet", "xdp"] {
        let lab = Lab::new().unwrap();
        let _polling = lab.b.polling_sink().unwrap();
        let path = path.to_str().unwrap();
        let pace = ["--pps", "1000", "--loop", "0", "--backend", backend];
        let running = start_replay(pace.into_iter().chain(["-i", &lab.a.port(), path]));
        wait_for_frames(&lab.b, 20);
        running.signal(Signal::USR1);
        let count = wait_for_silence(&lab.b);
        running.signal(Signal::CONT);
        wait_for_frames(&lab.b, count + 20);
        running.signal(Signal::INT);
        let outcome = running.wait().expect(130);
        // At least as long as the silence above.
        let paused = outcome.decimal("/times/paused_s");
        assert!(paused > 0.8 * SILENCE.as_secs_f64(), "{backend}: {outcome}");
        assert_eq!(outcome.number("/achieved/packets"), received(&lab.b), "{backend}: {outcome}");
    }
}
