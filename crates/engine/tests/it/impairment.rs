//! Impaired links count every frame, and random decisions follow the configured shares.

use proptest::prelude::*;
use wirestorm_base::rate::{Layer, Rate};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::impairment::{DelayQueueOptions, ImpairmentCounters, Link};
use wirestorm_model::impairment::{
    Bottleneck, GilbertElliott, Impairment, Jitter, Loss, Probability, Queue, Reordering,
};

const MS: u64 = 1_000_000;

fn percent(percent: f64) -> Probability {
    Probability::from_billionths((percent * 1e7) as u32).unwrap()
}

fn link(impairment: Impairment, seed: u64) -> Link {
    Link::new(impairment, seed, DelayQueueOptions::default())
}

/// Sends numbered frames at equal intervals; returns the time and content of each delivered frame.
fn carried(link: &mut Link, frames: u32, length: usize, gap: u64) -> Vec<(u64, Vec<u8>)> {
    let mut out = Vec::new();
    let mut frame = vec![0; length];
    for number in 0..frames {
        let now = Instant::from_nanos(MS + u64::from(number) * gap);
        frame[length - 4..].copy_from_slice(&number.to_be_bytes());
        empty(link, now, &mut out);
        link.enter(now, &frame);
    }
    empty(link, Instant::MAX, &mut out);
    out
}

fn empty(link: &mut Link, until: Instant, out: &mut Vec<(u64, Vec<u8>)>) {
    while let Some(at) = link.next().filter(|at| *at <= until) {
        assert_eq!(link.leave(Instant::from_nanos(at.as_nanos() - 1)), None, "not before its time");
        out.push((at.as_nanos(), link.leave(at).unwrap().to_vec()));
    }
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(*frame.last_chunk().unwrap())
}

/// Asserts that a count is within five standard deviations of its expected value.
fn assert_share(what: &str, count: u64, all: u64, share: f64) {
    let mean = all as f64 * share;
    let deviation = (mean * (1.0 - share)).sqrt();
    let distance = (count as f64 - mean).abs();
    assert!(distance <= 5.0 * deviation, "{what}: {count} of {all}, expected {mean}");
}

fn impairments() -> impl Strategy<Value = Impairment> {
    let share = || prop_oneof![Just(0), 0_u32..=1_000_000_000, 0_u32..100_000_000];
    let share = move || share().prop_map(|it| Probability::from_billionths(it).unwrap());
    let bursts = (share(), share(), share(), share())
        .prop_map(|(p, r, h, k)| Loss::GilbertElliott(GilbertElliott { p, r, h, k }));
    let loss = prop_oneof![Just(Loss::None), share().prop_map(Loss::Random), bursts];
    let queue =
        prop_oneof![(0_u32..50).prop_map(Queue::Frames), (0_u64..9_000).prop_map(Queue::Bytes)];
    let bottleneck = (1_000_000_u64..1_000_000_000, queue).prop_map(|(bits, queue)| {
        let rate = Rate::new(bits, Duration::from_secs(1)).unwrap();
        Bottleneck { rate, layer: Layer::Wire, queue }
    });
    let time = || (0..5 * MS).prop_map(Duration::from_nanos);
    let jitter = prop_oneof![
        Just(Jitter::None),
        time().prop_map(Jitter::Uniform),
        time().prop_map(Jitter::Normal)
    ];
    let reordering =
        (share(), time()).prop_map(|(share, by)| Reordering { share, extra_delay: by });
    (loss, share(), share(), proptest::option::of(bottleneck), time(), jitter, reordering).prop_map(
        |(loss, duplication, corruption, bottleneck, delay, jitter, reordering)| Impairment {
            loss,
            duplication,
            corruption,
            bottleneck,
            delay,
            jitter,
            reordering,
        },
    )
}

proptest! {
    #[test]
    fn every_frame_and_duplicate_is_counted_once(
        impairment in impairments(),
        seed in any::<u64>(),
        gaps in proptest::collection::vec((0..MS, 18_usize..1_500), 1..200),
        frames in 1_usize..100,
    ) {
        let options = DelayQueueOptions { frames, frame_length_max: 1_500 };
        let mut link = Link::new(impairment, seed, options);
        let mut now = Instant::from_nanos(1);
        let (mut held, mut bytes, mut delivered) = (0, 0, 0);
        for (gap, length) in &gaps {
            now += Duration::from_nanos(*gap);
            link.enter(now, &vec![0; *length]);
            bytes += *length as u64;
            while link.leave(now).is_some() {
                delivered += 1;
            }
            held = held.max(link.counters().held());
        }
        prop_assert!(held <= frames as u64);
        let before = link.counters().held();
        let mut rest = 0;
        while link.leave(Instant::MAX).is_some() {
            rest += 1;
        }
        let counters = link.counters();
        prop_assert_eq!(rest, before);
        prop_assert_eq!(counters.delivered, delivered + rest);
        prop_assert_eq!(counters.held(), 0);
        prop_assert_eq!((counters.entered, counters.entered_bytes), (gaps.len() as u64, bytes));
        prop_assert!(counters.lost + counters.duplicated <= counters.entered);
    }

    #[test]
    fn frames_keep_their_order_without_reordering(
        impairment in impairments(), seed in any::<u64>(), gap in 0..MS,
    ) {
        let impairment = Impairment { reordering: Reordering::default(), ..impairment };
        let mut link = link(Impairment { corruption: Probability::NONE, ..impairment }, seed);
        let out = carried(&mut link, 300, 60, gap);
        prop_assert!(out.is_sorted_by(|a, b| a.0 <= b.0 && number(&a.1) <= number(&b.1)));
        prop_assert_eq!(link.counters().reordered, 0);
    }

    #[test]
    fn same_seed_gives_the_same_result(impairment in impairments(), seed in any::<u64>(), gap in 0..MS) {
        let run = |seed| {
            let mut link = link(impairment, seed);
            (carried(&mut link, 200, 60, gap), *link.counters())
        };
        prop_assert_eq!(run(seed), run(seed));
    }
}

#[test]
fn frames_pass_unchanged_without_impairments() {
    let mut link = link(Impairment::default(), 1);
    let out = carried(&mut link, 1_000, 60, 10);
    assert!(out.iter().enumerate().all(|(at, (time, frame))| {
        *time == MS + at as u64 * 10 && number(frame) == at as u32 && frame[..56] == [0; 56]
    }));
    let expected = ImpairmentCounters {
        entered: 1_000,
        entered_bytes: 60_000,
        delivered: 1_000,
        delivered_bytes: 60_000,
        ..ImpairmentCounters::default()
    };
    assert_eq!(*link.counters(), expected);
}

#[test]
fn measured_shares_match_the_configured_ones() {
    const FRAMES: u64 = 100_000;
    for (seed, share) in [(1, 0.1), (2, 1.0), (3, 20.0), (4, 99.5)] {
        let impairment = Impairment {
            loss: Loss::Random(percent(share)),
            duplication: percent(share),
            corruption: percent(share),
            ..Impairment::default()
        };
        let mut link = link(impairment, seed);
        let out = carried(&mut link, FRAMES as u32, 60, 10);
        let counters = *link.counters();
        let (part, left) = (share / 100.0, FRAMES - counters.lost);
        assert_share("lost", counters.lost, FRAMES, part);
        assert_share("duplicated", counters.duplicated, left, part);
        assert_share("corrupted", counters.corrupted, left + counters.duplicated, part);
        let changed = out.iter().filter(|(_, frame)| {
            let ones = |bytes: &[u8]| bytes.iter().map(|it| it.count_ones()).sum::<u32>();
            // The frame number at the end may be the damaged part, so compare only the rest.
            ones(&frame[..56]) > 0
        });
        // 42 of the 46 bytes behind the Ethernet header.
        assert_share("seen", changed.count() as u64, counters.corrupted, 42.0 / 46.0);
        assert!(out.iter().all(|(_, frame)| frame[..14] == [0; 14]), "no Ethernet header changes");
    }
}

#[test]
fn shares_of_zero_and_one_are_exact() {
    for (share, lost) in [(Probability::NONE, 0), (Probability::ALL, 10_000)] {
        let mut link = link(Impairment { loss: Loss::Random(share), ..Impairment::default() }, 9);
        carried(&mut link, 10_000, 60, 10);
        assert_eq!(link.counters().lost, lost);
    }
}

/// Returns which frames are lost.
fn losses(impairment: Impairment, seed: u64, frames: u32) -> Vec<bool> {
    let mut lost = vec![true; frames as usize];
    for (_, frame) in carried(&mut link(impairment, seed), frames, 60, 10) {
        lost[number(&frame) as usize] = false;
    }
    lost
}

#[test]
fn different_seeds_lose_different_frames() {
    let impairment = Impairment { loss: Loss::Random(percent(10.0)), ..Impairment::default() };
    let [first, other] = [1, 2].map(|seed| losses(impairment, seed, 1_000));
    assert_ne!(first, other);
    // Both lose 1 % of the frames.
    let by_both = first.iter().zip(&other).filter(|(first, other)| **first && **other).count();
    assert!((2..25).contains(&by_both), "{by_both}");
}

#[test]
fn burst_loss_matches_its_probabilities() {
    const FRAMES: u32 = 400_000;
    // Gilbert model without deliveries in the bad state: its bursts are the losses.
    let bursts = GilbertElliott {
        p: percent(1.0),
        r: percent(25.0),
        h: Probability::NONE,
        k: Probability::ALL,
    };
    let impairment = Impairment { loss: Loss::GilbertElliott(bursts), ..Impairment::default() };
    let lost = losses(impairment, 5, FRAMES);
    let count = lost.iter().filter(|it| **it).count() as f64;
    let begun = lost.windows(2).filter(|it| !it[0] && it[1]).count() as f64;
    let (share, length) = (count / f64::from(FRAMES), count / begun);
    // Successive frames are correlated, so the bounds are wider than binomial ones.
    assert!((share / (0.01 / 0.26) - 1.0).abs() < 0.06, "{share} of all frames");
    assert!((length - 4.0).abs() < 0.2, "{length} frames a burst");

    // Elliott's extension: both states deliver a part of the frames.
    let bursts = GilbertElliott { h: percent(40.0), k: percent(99.0), ..bursts };
    let impairment = Impairment { loss: Loss::GilbertElliott(bursts), ..Impairment::default() };
    let count = losses(impairment, 6, FRAMES).iter().filter(|it| **it).count() as f64;
    let expected = (0.01 / 0.26) * 0.6 + (0.25 / 0.26) * 0.01;
    assert!((count / f64::from(FRAMES) / expected - 1.0).abs() < 0.06, "{count}");
}

#[test]
fn loss_does_not_depend_on_other_impairments() {
    let loss = Loss::Random(percent(5.0));
    let alone = losses(Impairment { loss, ..Impairment::default() }, 3, 5_000);
    let delayed = Impairment {
        loss,
        delay: Duration::from_millis(5),
        jitter: Jitter::Normal(Duration::from_millis(2)),
        reordering: Reordering { share: percent(10.0), extra_delay: Duration::from_millis(1) },
        duplication: percent(10.0),
        ..Impairment::default()
    };
    assert_eq!(alone, losses(delayed, 3, 5_000));
    assert_ne!(alone, losses(delayed, 4, 5_000));
}

#[test]
fn bottleneck_serialises_frames_and_drops_on_a_full_queue() {
    let rate = Rate::new(8_000_000, Duration::from_secs(1)).unwrap();
    for queue in [Queue::Frames(3), Queue::Bytes(3_500)] {
        let bottleneck = Some(Bottleneck { rate, layer: Layer::Frame, queue });
        let mut link = link(Impairment { bottleneck, ..Impairment::default() }, 1);
        // Twice ten frames of a millisecond each at once: one is sent, three wait, six are dropped.
        for burst in [1, 51] {
            for number in 0..10 {
                let mut frame = [0; 1_000];
                frame[999] = number;
                link.enter(Instant::from_nanos(burst * MS), &frame);
            }
            let mut out = Vec::new();
            empty(&mut link, Instant::MAX, &mut out);
            let times: Vec<_> = out.iter().map(|it| (it.0 / MS - burst, number(&it.1))).collect();
            assert_eq!(times, [(1, 0), (2, 1), (3, 2), (4, 3)], "{queue:?}");
        }
        assert_eq!(link.counters().queue_dropped, 12);
    }
    // Layer 1 counts 24 more bytes.
    let bottleneck = Some(Bottleneck { rate, layer: Layer::Wire, queue: Queue::default() });
    let mut link = link(Impairment { bottleneck, ..Impairment::default() }, 1);
    assert_eq!(carried(&mut link, 1, 976, 0)[0].0, 2 * MS);
}

#[test]
fn jitter_matches_its_distribution() {
    let delay = Duration::from_millis(10);
    for (jitter, deviation, most) in [
        (Jitter::None, 0.0, 0),
        (Jitter::Uniform(Duration::from_millis(3)), 3.0 / 3_f64.sqrt(), 3 * MS),
        (Jitter::Normal(Duration::from_millis(1)), 1.0, 6 * MS),
    ] {
        let mut link = link(Impairment { delay, jitter, ..Impairment::default() }, 8);
        // The gaps are so large that no frame waits for the one ahead.
        let out = carried(&mut link, 20_000, 60, 20 * MS);
        let shifts: Vec<f64> = out
            .iter()
            .map(|(time, frame)| {
                let due = (MS + u64::from(number(frame)) * 20 * MS + 10 * MS) as f64;
                assert!((*time as f64 - due).abs() <= most as f64, "{jitter:?}");
                (*time as f64 - due) / 1e6
            })
            .collect();
        let count = shifts.len() as f64;
        let mean = shifts.iter().sum::<f64>() / count;
        let spread = (shifts.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count).sqrt();
        assert!(mean.abs() <= 5.0 * deviation / count.sqrt(), "{jitter:?}: a mean of {mean} ms");
        assert!((spread - deviation).abs() <= 0.03 * deviation, "{jitter:?}: {spread} ms");
    }
}

#[test]
fn reordered_frames_are_overtaken() {
    let reordering = Reordering { share: percent(2.0), extra_delay: Duration::from_micros(35) };
    let mut link = link(Impairment { reordering, ..Impairment::default() }, 4);
    let out = carried(&mut link, 10_000, 60, 10_000);
    assert_eq!(out.len(), 10_000);
    let late = out.iter().filter(|(time, frame)| {
        let shift = time - MS - u64::from(number(frame)) * 10_000;
        assert!(shift == 0 || shift == 35_000);
        shift > 0
    });
    let late = late.count() as u64;
    assert_share("late", late, 10_000, 0.02);
    // All late frames except those with only late frames behind them.
    let reordered = link.counters().reordered;
    assert!(reordered <= late && late - reordered < 5, "{reordered} of {late}");
    let behind = out.windows(2).filter(|it| number(&it[0].1) > number(&it[1].1)).count();
    assert!(behind as u64 <= reordered);
}
