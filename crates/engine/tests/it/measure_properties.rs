//! Measurements report exactly what an arbitrary channel did to a stream.

use proptest::prelude::*;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::{
    Distribution, MeasureOptions, MeasuredStream, N_REORDERING_MAX, PayloadCheck, Receiver,
    SequenceCounters, Signature, Tallies, Tally, find,
};

const STREAM: u32 = 3;
const FRAME_LENGTH: usize = 100;
/// Start of the bytes that all frames have in common.
const PAYLOAD: usize = 42;
/// Gap between two departures in ns.
const GAP_NS: i64 = 100;
/// Greater than any displacement and shorter than most runs.
const WINDOW: usize = 64;
/// Length of frames of other streams and of unsigned frames.
const OTHER_LENGTH: usize = 77;

/// Effect of a channel on one frame.
#[derive(Clone, Debug)]
struct Fate {
    is_lost: bool,
    /// Displacement of the frame and of each duplicate, in positions.
    places: Vec<usize>,
    corruption: Corruption,
    delay_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Corruption {
    None,
    Payload { at: usize, bits: u8 },
    Signature { bit: usize },
}

/// Arrival of a frame, as the channel knows it.
#[derive(Clone, Debug)]
struct Arrival {
    number: u64,
    delay_ns: i64,
    at: Instant,
    corruption: Corruption,
}

fn any_corruption() -> impl Strategy<Value = Corruption> {
    prop_oneof![
        20 => Just(Corruption::None),
        1 => (PAYLOAD..FRAME_LENGTH - Signature::LENGTH, 1..=u8::MAX)
            .prop_map(|(at, bits)| Corruption::Payload { at, bits }),
        1 => (0..8 * Signature::LENGTH).prop_map(|bit| Corruption::Signature { bit }),
    ]
}

/// Generates fates of frames; `often` holds the percentages of loss, duplication and displacement.
fn any_fates() -> impl Strategy<Value = Vec<Fate>> {
    let often = (0..60_u32, 0..40_u32, 0..60_u32, 1..60_usize, 1..200_usize);
    often.prop_flat_map(|(lost, repeated, displaced, distance, count)| {
        let places = (
            prop::bool::weighted(f64::from(displaced) / 100.0),
            prop::bool::weighted(f64::from(repeated) / 100.0),
            prop::collection::vec(0..distance, 4),
            1..4_usize,
        )
            .prop_map(|(is_displaced, is_repeated, distances, copies)| {
                let first = if is_displaced { distances[3] } else { 0 };
                let copies = if is_repeated { &distances[..copies] } else { &[] };
                [&[first], copies].concat()
            });
        let is_lost = prop::bool::weighted(f64::from(lost) / 100.0);
        let fate = (is_lost, places, any_corruption(), -2_000..5_000_i64).prop_map(
            |(is_lost, places, corruption, delay_ns)| Fate {
                is_lost,
                places,
                corruption,
                delay_ns,
            },
        );
        prop::collection::vec(fate, count)
    })
}

/// Returns all arrivals in order. Of two equally late copies, the later one comes second.
fn arrivals(fates: &[Fate], started: Instant) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    for (number, fate) in fates.iter().enumerate().filter(|(_, fate)| !fate.is_lost) {
        for &places in &fate.places {
            let at_ns = started.as_nanos() as i64 + number as i64 * GAP_NS + fate.delay_ns;
            let arrival = Arrival {
                number: number as u64,
                delay_ns: fate.delay_ns,
                at: Instant::from_nanos(at_ns as u64),
                corruption: fate.corruption,
            };
            arrivals.push((number + places, arrival));
        }
    }
    arrivals.sort_by_key(|(place, _)| *place);
    arrivals.into_iter().map(|(_, arrival)| arrival).collect()
}

fn template() -> Vec<u8> {
    let mut template: Vec<u8> = (0..FRAME_LENGTH as u8).map(|at| at.wrapping_mul(37)).collect();
    template[..PAYLOAD].fill(0);
    template
}

fn frame_of(arrival: &Arrival, first_number: u64, started: Instant) -> Vec<u8> {
    let departure = started.as_nanos() + arrival.number * GAP_NS as u64;
    let sequence = first_number + arrival.number;
    let mut frame = template();
    // Headers that vary from frame to frame are not compared.
    frame[..PAYLOAD].fill(arrival.number as u8);
    let signature = Signature { stream: STREAM, sequence, departure };
    frame[FRAME_LENGTH - Signature::LENGTH..].copy_from_slice(&signature.encode());
    match arrival.corruption {
        Corruption::None => {}
        Corruption::Payload { at, bits } => frame[at] ^= bits,
        Corruption::Signature { bit } => {
            frame[FRAME_LENGTH - Signature::LENGTH + bit / 8] ^= 1 << (bit % 8);
        }
    }
    frame
}

fn receiver(options: MeasureOptions) -> Receiver {
    let mut mask = [0; FRAME_LENGTH];
    mask[PAYLOAD..].fill(0xff);
    let payload = PayloadCheck::new(&template(), &mask);
    Receiver::new(vec![MeasuredStream { id: STREAM, payload, segments: None }], &options)
}

/// Computes the counters by the definitions of the RFCs, with a scan of all arrivals.
fn counters_by_definition(numbers: &[u64], times: &[Instant]) -> SequenceCounters {
    let mut counters = SequenceCounters::default();
    let mut distinct: Vec<(u64, Instant)> = Vec::new();
    for (&number, &at) in numbers.iter().zip(times) {
        if distinct.iter().any(|&(other, _)| other == number) {
            counters.duplicated += 1;
        } else {
            distinct.push((number, at));
        }
    }
    let copies = |number| numbers.iter().filter(|&&other| other == number).count();
    counters.replicated = distinct.iter().filter(|&&(number, _)| copies(number) > 1).count() as u64;
    counters.received = distinct.len() as u64;
    let highest = distinct.iter().map(|&(number, _)| number + 1).max().unwrap_or(0);
    counters.missing = highest - counters.received;
    for (i, &(number, at)) in distinct.iter().enumerate() {
        let next = distinct[..i].iter().map(|&(other, _)| other + 1).max().unwrap_or(0);
        counters.gaps += u64::from(number > next);
        // RFC 4737 section 4.2: counted from the earliest arrival with a greater number.
        let Some(j) = distinct[..i].iter().position(|&(other, _)| other > number) else {
            continue;
        };
        let extent = (i - j) as u64;
        counters.reordered += 1;
        counters.extent_sum += extent;
        counters.extent_max = counters.extent_max.max(extent);
        counters.late_time_max = counters.late_time_max.max(at.saturating_since(distinct[j].1));
        for n in 1..=N_REORDERING_MAX.min(i) {
            let is_n_reordered = distinct[i - n..i].iter().all(|&(other, _)| other > number);
            counters.n_reordered[n - 1] += u64::from(is_n_reordered);
        }
    }
    counters
}

fn assert_is(distribution: &Distribution, values: &[i64]) {
    assert_eq!(distribution.count(), values.len() as u64);
    assert_eq!(distribution.min(), values.iter().copied().min());
    assert_eq!(distribution.max(), values.iter().copied().max());
    let mean = values.iter().sum::<i64>() as f64 / values.len() as f64;
    assert!(values.is_empty() || (distribution.mean().unwrap() - mean).abs() < 1e-6);
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    for quantile in [0.5, 0.9, 0.99, 0.999, 0.9999] {
        let rank = (quantile * sorted.len() as f64).ceil() as usize;
        let Some(&truth) = sorted.get(rank.wrapping_sub(1)) else { continue };
        let found = distribution.quantile(quantile).unwrap();
        assert!((found - truth).abs() <= truth.abs() / 62 + 1, "{quantile}: {found}, {truth}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reports_match_any_channel(
        fates in any_fates(),
        first_number in prop::sample::select(vec![0, 1 << 20, (1_u64 << 40) - 100]),
        started_ns in prop::sample::select(vec![1_000_000_u64, (1 << 48) - 10_000, 5 << 48]),
        others in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..20),
        shift in 0..40_usize,
        trailer in 0..40_usize,
    ) {
        let started = Instant::from_nanos(started_ns);
        // The first arrival may be before the start by the receiver's clock.
        let mut receiver = receiver(MeasureOptions {
            window: WINDOW,
            intervals_max: 8,
            interval: Duration::from_nanos(700),
            started,
            same_clock: true,
            per_vlan: false,
        });
        // An earlier frame in order sets the sequence number before the test starts.
        if first_number > 0 {
            let before = Arrival {
                number: 0, delay_ns: 0, at: started, corruption: Corruption::None,
            };
            let frame = frame_of(&before, first_number - 1, started);
            receiver.note(&frame, FRAME_LENGTH, started);
        }
        let arrivals = arrivals(&fates, started);
        let mut unknown = Tally::default();
        let mut foreign = Tally::default();
        for (place, arrival) in arrivals.iter().enumerate() {
            for (_, has_signature) in others.iter().filter(|(index, _)| {
                index.index(arrivals.len()) == place
            }) {
                let mut other = [0x55; OTHER_LENGTH];
                let tally = if *has_signature { &mut foreign } else { &mut unknown };
                if *has_signature {
                    let signature = Signature { stream: STREAM + 1, sequence: 9, departure: 9 };
                    other[OTHER_LENGTH - Signature::LENGTH..].copy_from_slice(&signature.encode());
                }
                tally.frames += 1;
                tally.bytes += OTHER_LENGTH as u64;
                receiver.note(&other, OTHER_LENGTH, arrival.at);
            }
            // Every frame gets the same additional headers and padding.
            let frame = frame_of(arrival, first_number, started);
            let frame = [vec![0x81; shift], frame, vec![0; trailer]].concat();
            receiver.note(&frame, frame.len(), arrival.at);
            if matches!(arrival.corruption, Corruption::Signature { .. }) {
                unknown.frames += 1;
                unknown.bytes += frame.len() as u64;
            }
        }

        let known: Vec<_> = arrivals
            .iter()
            .filter(|arrival| !matches!(arrival.corruption, Corruption::Signature { .. }))
            .collect();
        let record = &receiver.records()[0];
        let ordered = record.ordered().unwrap();
        let lead = u64::from(first_number > 0);

        // Each frame counts in its own tally.
        let is_corrupt = |arrival: &&&Arrival| {
            matches!(arrival.corruption, Corruption::Payload { .. })
        };
        prop_assert_eq!(*record.tallies(), Tallies {
            frames: known.len() as u64 + lead,
            bytes: known.len() as u64 * (FRAME_LENGTH + shift + trailer) as u64
                + lead * FRAME_LENGTH as u64,
            corrupt: known.iter().filter(is_corrupt).count() as u64,
            stale: 0,
            first: if lead > 0 { Some(started) } else { known.first().map(|first| first.at) },
            last: known.last().map(|last| last.at).or((lead > 0).then_some(started)),
        });
        prop_assert_eq!(receiver.unknown(), unknown);
        prop_assert_eq!(receiver.foreign(), foreign);

        // Loss, duplication and reordering.
        let mut numbers: Vec<_> = known.iter().map(|arrival| arrival.number + lead).collect();
        let mut times: Vec<_> = known.iter().map(|arrival| arrival.at).collect();
        if lead > 0 {
            numbers.insert(0, 0);
            times.insert(0, started);
        }
        let expected = counters_by_definition(&numbers, &times);
        let found = *ordered.sequence().counters();
        let skipped_before = if lead > 0 { first_number - 1 } else { 0 };
        prop_assert_eq!(found, SequenceCounters {
            missing: expected.missing + skipped_before,
            gaps: expected.gaps + u64::from(skipped_before > 0),
            ..expected
        });
        let lost = fates.iter().filter(|fate| {
            fate.is_lost || matches!(fate.corruption, Corruption::Signature { .. })
        });
        let sent = fates.len() as u64 + first_number;
        prop_assert_eq!(found.lost(sent), lost.count() as u64 + skipped_before);

        // Delays of first arrivals.
        let mut delays = vec![None; fates.len()];
        let mut in_order = if lead > 0 { vec![0] } else { vec![] };
        for arrival in &known {
            let delay = &mut delays[arrival.number as usize];
            if delay.replace(arrival.delay_ns).is_none() {
                in_order.push(arrival.delay_ns);
            }
        }
        assert_is(record.delay().delays(), &in_order);
        let min = in_order.iter().copied().min();
        let spread = in_order.iter().copied().max().zip(min).map(|(max, min)| max - min);
        prop_assert_eq!(record.delay().variation().max(), spread);
        let mut in_sequence = if lead > 0 { vec![Some(0)] } else { vec![] };
        in_sequence.extend(&delays);
        let ipdv: Vec<_> = in_sequence
            .windows(2)
            .filter_map(|pair| pair[0].zip(pair[1]))
            .map(|(before, after)| after - before)
            .collect();
        assert_is(ordered.ipdv(), &ipdv);

        // The intervals together count all frames.
        let intervals = ordered.series().unwrap().intervals();
        let frames: u64 = intervals.iter().map(|interval| interval.frames).sum();
        let missing: u64 = intervals.iter().map(|interval| interval.missing).sum();
        let with_delay: u64 = intervals.iter().map(|interval| interval.delays).sum();
        prop_assert_eq!(frames, record.tallies().frames);
        prop_assert_eq!(missing, found.missing);
        prop_assert_eq!(with_delay, found.received);

        // Each interval counts what arrived in it.
        let length = ordered.series().unwrap().length().as_nanos();
        let place = |at: Instant| (at.saturating_since(started).as_nanos() / length) as usize;
        let mut expected = vec![(0, 0, 0, 0, 0, 0); intervals.len()];
        let mut distinct: Vec<u64> = Vec::new();
        for (&number, &at) in numbers.iter().zip(&times) {
            let (duplicated, reordered, extent_max, ipdvs, ipdv_sum, ipdv_max) =
                &mut expected[place(at)];
            if distinct.contains(&number) {
                *duplicated += 1;
                continue;
            }
            if let Some(first) = distinct.iter().position(|&other| other > number) {
                *reordered += 1;
                *extent_max = (distinct.len() - first).max(*extent_max);
            }
            let delay = |number: u64| in_sequence[number as usize].expect("it arrived");
            for pair in [number.wrapping_sub(1), number] {
                let other = if pair == number { number + 1 } else { pair };
                if distinct.contains(&other) {
                    let ipdv = delay(pair + 1).abs_diff(delay(pair));
                    *ipdvs += 1;
                    *ipdv_sum += u128::from(ipdv);
                    *ipdv_max = ipdv.max(*ipdv_max);
                }
            }
            distinct.push(number);
        }
        let found: Vec<_> = intervals
            .iter()
            .map(|it| {
                let extent_max = it.extent_max as usize;
                (it.duplicated, it.reordered, extent_max, it.ipdvs, it.ipdv_ns_sum, it.ipdv_ns_max)
            })
            .collect();
        prop_assert_eq!(found, expected);
        let jitter = intervals.iter().map(|it| it.jitter_ns_max).max().unwrap_or(0);
        prop_assert!(jitter >= ordered.jitter().nanoseconds());
    }

    #[test]
    fn receiver_never_panics(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
        signatures in prop::collection::vec(any::<(u8, u64, u64, u64)>(), 0..40),
        same_clock in any::<bool>(),
        window in 0..5_000_usize,
    ) {
        let started = Instant::from_nanos(1 << 40);
        let interval = Duration::ZERO;
        let mut receiver =
            receiver(MeasureOptions { window, intervals_max: 3, interval, started, same_clock, per_vlan: false });
        for frame in &frames {
            receiver.note(frame, frame.len(), started);
        }
        for (stream, sequence, departure, at) in signatures {
            let stream = u32::from(stream % 5);
            let bytes = Signature { stream, sequence, departure }.encode();
            receiver.note(&bytes, bytes.len(), Instant::from_nanos(at));
        }
        let record = &receiver.records()[0];
        let counters = record.ordered().unwrap().sequence().counters();
        let accounted = counters.received + counters.duplicated + counters.too_late;
        prop_assert_eq!(accounted, record.tallies().frames);
        let tallies = record.tallies();
        let all = tallies.frames + tallies.stale + receiver.unknown().frames;
        prop_assert!(all + receiver.foreign().frames >= frames.len() as u64);
    }

    #[test]
    fn signature_is_found_behind_any_headers_and_before_a_short_trailer(
        stream in 0..1_u32 << 24,
        sequence in 0..1_u64 << 40,
        departure in 0..1_u64 << 48,
        headers in prop::collection::vec(any::<u8>(), 0..300),
        trailer in 0..=64 - Signature::LENGTH,
    ) {
        let signature = Signature { stream, sequence, departure };
        let frame = [&headers[..], &signature.encode(), &vec![0; trailer]].concat();
        let found = find(&frame).expect("a signature");
        prop_assert_eq!((found.signature, found.end), (signature, frame.len() - trailer));
    }
}
