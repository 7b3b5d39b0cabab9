//! Arbitrary frames at arbitrary times to a receiver: no panic, and each frame counts once.

use wirestorm_base::port::Transmit;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::{
    MeasureOptions, MeasuredStream, PayloadCheck, Receiver, Signature, find,
};
use wirestorm_sim::memory::{WireOptions, wire};

const STREAMS: u32 = 3;
const LENGTH_MAX: usize = 256;

/// Checks one input.
///
/// The first bytes select the measurement options. Each frame then has a length, a kind, the time
/// since the previous frame, and its bytes, with an optional signature.
pub fn run(input: &[u8]) {
    let Some(([choice, window], mut rest)) = input.split_first_chunk() else { return };
    let options = MeasureOptions {
        window: usize::from(*window) * 4,
        intervals_max: usize::from(choice & 7),
        interval: Duration::from_nanos(u64::from(choice >> 4)),
        started: Instant::from_nanos(if choice & 8 == 0 { 0 } else { 1 << 47 }),
        same_clock: window & 1 != 0,
        per_vlan: window & 2 != 0,
    };
    let payload = PayloadCheck::new(&[0x5a; 100], &[0x81; 100]);
    let stream = |id| MeasuredStream { id, payload: payload.clone(), segments: None };
    let mut receiver = Receiver::new((0..STREAMS).map(stream).collect(), &options);
    let (mut transmit, mut receive) =
        wire(WireOptions { frames: 16, frame_length_max: LENGTH_MAX });

    let mut now = 0_u64;
    let mut sent = 0;
    while let Some(([length, kind, time], behind)) = rest.split_first_chunk() {
        let (body, behind) = behind.split_at(behind.len().min(usize::from(*length)));
        rest = behind;
        now = now.saturating_add(1 << (time % 64));
        let mut frame = body.to_vec();
        if kind & 1 != 0 {
            frame.extend(signature(body, *kind).encode());
            let found = find(&frame).expect("it is at the end");
            assert_eq!(found.end, frame.len());
            frame.resize(frame.len() + usize::from(kind >> 6), 0);
        }
        frame.resize(frame.len().clamp(1, LENGTH_MAX), 0);
        let buffer = transmit.take().expect("all frames were received");
        transmit.frame_mut(&buffer)[..frame.len()].copy_from_slice(&frame);
        transmit.send(buffer, frame.len(), Instant::from_nanos(now));
        transmit.flush().expect("memory does not fail");
        receiver.receive(Instant::from_nanos(now), &mut receive).expect("memory does not fail");
        sent += 1;
    }

    let mut counted = receiver.unknown().frames + receiver.foreign().frames;
    for record in receiver.records() {
        let tallies = record.tallies();
        counted += tallies.frames + tallies.stale;
        let ordered = record.ordered().expect("nothing was merged");
        let sequence = ordered.sequence().counters();
        let arrived = sequence.received + sequence.duplicated + sequence.too_late;
        assert_eq!(arrived, tallies.frames);
        assert!(sequence.reordered <= sequence.received);
        assert!(sequence.received + sequence.missing >= ordered.sequence().next_expected());
        assert_eq!(record.delay().delays().count(), sequence.received);
        if let Some(series) = ordered.series() {
            let missing: u64 = series.intervals().iter().map(|interval| interval.missing).sum();
            assert_eq!(missing, sequence.missing);
        }
        for quantile in [0.0, 0.5, 0.999, 1.0] {
            let variation = record.delay().variation().quantile(quantile);
            assert!(variation.is_none_or(|variation| variation >= 0));
        }
    }
    assert_eq!(counted, sent);
}

/// Derives a signature from bytes, with a sequence number near others or arbitrary.
fn signature(body: &[u8], kind: u8) -> Signature {
    let mut bytes = [0; 16];
    let length = body.len().min(16);
    bytes[..length].copy_from_slice(&body[..length]);
    let value = |half: &[u8]| half.iter().fold(0_u64, |all, &byte| all << 8 | u64::from(byte));
    let (sequence, departure) = (value(&bytes[..8]), value(&bytes[8..]));
    let sequence = if kind & 2 != 0 { sequence >> 24 } else { sequence >> 56 };
    Signature { stream: u32::from(kind >> 2) % (STREAMS + 1), sequence, departure }
}
