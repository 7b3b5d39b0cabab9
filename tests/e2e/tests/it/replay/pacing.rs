//! Pacing: counts are exact; times, from the kernel's time stamps at the peer, allow for a busy
//! machine.

use wirestorm_e2e::{Receiver, assert_same_frames, can_run, frames, replay, span, write_capture};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::Packet;
use wirestorm_testkit::sample::{FixedFrames, FixedOptions};

const MILLISECOND: u64 = 1_000_000;

/// Frames with a constant gap.
fn spaced(count: u64, gap: u64) -> Vec<Packet> {
    let options = FixedOptions { packets: count, ..FixedOptions::default() };
    let frames = FixedFrames::new(options).enumerate();
    frames
        .map(|(number, packet)| Packet {
            time: 1_700_000_000_000_000_000 + number as u64 * gap,
            frame: packet.frame,
        })
        .collect()
}

/// Number of attempts: a busy machine may delay some runs.
const ATTEMPTS_MAX: usize = 4;

struct Case {
    arguments: &'static [&'static str],
    /// Number of frames in the capture, and the gap between them in nanoseconds.
    capture: (u64, u64),
    /// Number of frames that must arrive.
    sent: u64,
    /// Expected time from the first to the last arrival in milliseconds.
    expected_ms: f64,
}

const fn case(
    arguments: &'static [&'static str],
    capture: (u64, u64),
    sent: u64,
    expected_ms: f64,
) -> Case {
    Case { arguments, capture, sent, expected_ms }
}

/// Frames of [`FixedOptions`] have 60 bytes.
const FRAME_BITS: f64 = 480.0;

const CASES: [Case; 12] = [
    case(&["--pps", "1000"], (200, 1), 200, 199.0),
    case(&["--pps", "500.5"], (100, 1), 100, 99.0 / 0.5005),
    case(&["--mbps", "0.48"], (200, 1), 200, 199.0 * FRAME_BITS / 480.0),
    case(&["--mbps-l1", "0.672"], (200, 1), 200, 199.0),
    case(&["-x", "1"], (100, 2 * MILLISECOND), 100, 198.0),
    case(&["-x", "2"], (100, 2 * MILLISECOND), 100, 99.0),
    case(&["-x", "0.5"], (100, MILLISECOND), 100, 198.0),
    case(&["--maxsleep", "20"], (11, 500 * MILLISECOND), 11, 200.0),
    case(&["--pps", "1000", "--loop", "0", "--limit", "9"], (5, 1), 9, 8.0),
    case(&["--pps", "1000", "--loop", "0", "--limit", "137"], (50, 1), 137, 136.0),
    case(&["-x", "1", "--limit", "37"], (100, 2 * MILLISECOND), 37, 72.0),
    case(&["--pps", "1000", "--pps-multi", "5"], (200, 1), 200, 195.0),
];

fn check(backend: &str) {
    check_cases(backend, &CASES);
}

fn check_cases(backend: &str, cases: &[Case]) {
    if !can_run(&["clang"]) {
        return;
    }
    for case in cases {
        let range = case.expected_ms * 0.9 - 5.0..case.expected_ms * 1.3 + 60.0;
        let mut took_ms = Vec::new();
        while !took_ms.last().is_some_and(|took_ms| range.contains(took_ms)) {
            let Case { arguments, expected_ms, .. } = case;
            assert!(
                took_ms.len() < ATTEMPTS_MAX,
                "{backend} {arguments:?}: {took_ms:?} ms, expected {expected_ms} ms"
            );
            took_ms.push(replayed_in_ms(backend, case));
        }
    }
}

/// Replays a case, compares the frames, and returns the time that they took to arrive.
fn replayed_in_ms(backend: &str, case: &Case) -> f64 {
    let Case { arguments, capture: (count, gap), sent, .. } = case;
    let scratch = Scratch::new().unwrap();
    let packets = spaced(*count, *gap);
    let path = write_capture(&scratch, "spaced.pcap", &packets);
    let lab = Lab::new().unwrap();
    let receiver = Receiver::start(&lab.b).unwrap();
    let port = lab.a.port();
    let path = path.to_str().unwrap();
    let common = ["--tolerance", "99", "--backend", backend, "-i", &port, path];
    let outcome = replay(arguments.iter().copied().chain(common)).expect(0);
    let captured = receiver.finish(*sent).unwrap();
    let what = format!("{backend} {arguments:?}");
    let expected = std::iter::repeat_with(|| frames(&packets)).flatten().take(*sent as usize);
    assert_same_frames(&what, expected, captured.frames());
    assert_eq!(outcome.number("/achieved/packets"), *sent, "{what}");
    span(&captured.packets) as f64 / 1e6
}

#[test]
fn af_packet_keeps_every_kind_of_pace() {
    check("af_packet");
}

#[test]
fn af_xdp_keeps_every_kind_of_pace() {
    check("af_xdp");
}

#[test]
fn xdp_keeps_every_kind_of_pace() {
    check("xdp");
}

#[test]
fn delay_between_passes_is_kept() {
    const DELAYED: [Case; 2] = [
        case(&["-x", "1", "--loop", "3", "--loopdelay-ms", "100"], (10, MILLISECOND), 30, 227.0),
        case(&["--pps", "1000", "--loop", "3", "--loopdelay-ms", "100"], (10, 1), 30, 227.0),
    ];
    check_cases("af_packet", &DELAYED);
    check_cases("xdp", &DELAYED);
}

#[test]
fn delay_between_passes_is_kept_at_top_speed() {
    const AT_TOP_SPEED: [Case; 1] =
        [case(&["-t", "--loop", "3", "--loopdelay-ms", "100"], (10, 1), 30, 200.0)];
    for backend in ["af_packet", "af_xdp", "xdp"] {
        check_cases(backend, &AT_TOP_SPEED);
    }
}

#[test]
fn delay_between_passes_is_not_a_shortfall() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "spaced.pcap", &spaced(10, 1));
    let lab = Lab::new().unwrap();
    let port = lab.a.port();
    for rate in [["--pps", "1000"], ["--mbps", "0.48"]] {
        let passes = ["--loop", "3", "--loopdelay-ms", "100", "--tolerance", "20"];
        let target = ["-i", &port, path.to_str().unwrap()];
        // A busy machine may delay some runs of 30 ms.
        let attempts =
            (0..ATTEMPTS_MAX).map(|_| replay(rate.into_iter().chain(passes).chain(target)));
        let outcome = attempts
            .reduce(|before, next| if before.status.success() { before } else { next })
            .expect("there are attempts")
            .expect(0);
        // There is no delay after the last pass.
        assert!((outcome.decimal("/times/paused_s") - 0.2).abs() < 1e-6, "{outcome}");
        assert!(outcome.decimal("/times/elapsed_s") > 0.2, "{outcome}");
        assert!(outcome.decimal("/achieved/pps") < 200.0, "{outcome}");
    }
}

#[test]
fn short_run_at_top_speed_reports_the_time_seen_by_the_peer() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "spaced.pcap", &spaced(1500, 1));
    let lab = Lab::new().unwrap();
    // Repeat, since the first runs may be correct by chance.
    for _ in 0..5 {
        let receiver = Receiver::start(&lab.b).unwrap();
        let port = lab.a.port();
        let target = ["-t", "-K", "--backend", "xdp", "-i", &port, path.to_str().unwrap()];
        let outcome = replay(target).expect(0);
        let captured = receiver.finish(1500).unwrap();
        let (reported, seen) =
            (outcome.decimal("/times/elapsed_s"), span(&captured.packets) as f64 / 1e9);
        assert!(reported > seen / 2.0, "reported {reported} s, seen {seen} s\n{outcome}");
    }
}

#[test]
fn duration_ends_the_run() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let packets = spaced(50, 1);
    let path = write_capture(&scratch, "spaced.pcap", &packets);
    for backend in ["af_packet", "af_xdp", "xdp"] {
        let lab = Lab::new().unwrap();
        let receiver = Receiver::start(&lab.b).unwrap();
        let port = lab.a.port();
        let pace = ["--pps", "1000", "--loop", "0", "--duration", "0.3", "--tolerance", "99"];
        let target = ["--backend", backend, "-i", &port, path.to_str().unwrap()];
        let outcome = replay(pace.into_iter().chain(target)).expect(0);
        let captured = receiver.finish(outcome.number("/achieved/packets")).unwrap();
        let count = captured.packets.len() as u64;
        assert_eq!(outcome.number("/achieved/packets"), count, "{backend}");
        // A busy machine may shift the schedule, which reduces the number.
        assert!((50..=301).contains(&count), "{backend}: {count} frames");
        let took_ms = span(&captured.packets) as f64 / 1e6;
        assert!((40.0..=1_500.0).contains(&took_ms), "{backend}: {took_ms} ms");
    }
}
