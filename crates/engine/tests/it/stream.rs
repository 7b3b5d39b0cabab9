//! Streams compared with a simple model: bytes and due time of every frame, for any number of
//! workers.

use proptest::prelude::*;
use wirestorm_base::departure::{CatchUp, DeparturePolicy};
use wirestorm_base::port::{
    Capabilities, FrameId, PortError, Receive, Received, Transmit, TransmitCounters,
};
use wirestorm_base::rate::{Layer, Rate};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::Signature;
use wirestorm_engine::replay::WorkerState;
use wirestorm_engine::stream::{Generator, GeneratorOptions, Share};
use wirestorm_model::stream::strategy::contents;
use wirestorm_model::stream::{
    ByteOrder, Checksum, GapDistribution, Mode, Program, PseudoHeader, Speed, Step, Stream,
    Transmission, Values, Variable, Write,
};
use wirestorm_sim::memory::{MemoryReceive, MemorySink, MemoryTransmit, WireOptions, wire};
use wirestorm_wire::checksum;

const SECOND: u64 = 1_000_000_000;

/// Sent frames with their due times in ns.
type Sent = Vec<(u64, Vec<u8>)>;

fn rate(text: &str) -> Rate {
    Rate::parse_per_second(text, 1).expect("a rate")
}

fn frames_a_second(frames: u64) -> Speed {
    Speed::Frames(rate(&frames.to_string()))
}

fn transmission(speed: Speed) -> Transmission {
    Transmission::continuous(speed)
}

fn numbers(bits: u32) -> Variable {
    let max = u128::MAX >> (128 - bits);
    Variable::new(Values::Counter { start: 0, min: 0, max, step: 1, downwards: false })
}

fn write(variable: usize, offset: usize, width: usize) -> Write {
    Write { variable, offset, width, add: 0, shift: 0, mask: u128::MAX, order: ByteOrder::Network }
}

/// Returns a stream of 60-byte frames with `id` in byte 0 and the frame number from byte 20 on.
fn numbered(id: u8, transmission: Transmission) -> Stream {
    let program =
        Program { variables: vec![numbers(32)], steps: vec![Step::Write(write(0, 20, 4))] };
    Stream {
        name: id.to_string(),
        template: vec![id; 60],
        program,
        transmission,
        is_measured: false,
        trailer: 0,
        is_marked: false,
        member: None,
    }
}

/// Returns the number in a frame of [`numbered`].
fn number(frame: &[u8]) -> u64 {
    u32::from_be_bytes(frame[20..24].try_into().expect("four bytes")).into()
}

fn options() -> GeneratorOptions {
    GeneratorOptions {
        share: Share::ALL,
        policy: DeparturePolicy::default(),
        duration_max: Duration::MAX,
        frames_max: u64::MAX,
        virtual_time: true,
        horizon: Duration::ZERO,
        first_number: 0,
    }
}

fn collect(receive: &mut MemoryReceive, sent: &mut Sent) {
    let mut batch: Vec<Received> = Vec::new();
    receive.receive(usize::MAX, &mut batch).expect("a wire in memory");
    for received in batch {
        sent.push((received.arrival.as_nanos(), receive.frame(&received).to_vec()));
        receive.release(received);
    }
}

/// Returns everything that a generator sends in virtual time.
fn run(streams: &[Stream], options: GeneratorOptions) -> Sent {
    let (mut transmit, mut receive) = wire(WireOptions { frames: 64, frame_length_max: 2_048 });
    let mut generator = Generator::new(streams, options, Instant::ZERO);
    let mut sent = Vec::new();
    loop {
        let iteration = generator.breathe(Instant::ZERO, &mut transmit).expect("a wire in memory");
        collect(&mut receive, &mut sent);
        if iteration.state == WorkerState::Done {
            let counted: u64 = generator.counters().map(|counters| counters.frames).sum();
            assert_eq!(counted, sent.len() as u64);
            return sent;
        }
    }
}

/// Returns what several workers send together, in the order of due times and contents.
fn run_shared(streams: &[Stream], workers: u64, options: &GeneratorOptions) -> Sent {
    let of_one = |index| {
        run(streams, GeneratorOptions { share: Share { index, workers }, ..options.clone() })
    };
    let mut sent: Sent = (0..workers).flat_map(of_one).collect();
    sent.sort();
    sent
}

/// Returns frame `number` of a stream, by definition.
fn frame_by_definition(
    stream: &Stream,
    index: u32,
    workers: u64,
    number: u64,
    departure: u64,
) -> Vec<u8> {
    let Program { variables, steps } = &stream.program;
    let value = |variable: usize| variables[variable].value(number, variables);
    let mut frame = stream.template.clone();
    let mut is_cleared = !stream.is_measured;
    let mut clear = |frame: &mut Vec<u8>| {
        let place = frame.len() - 18;
        if !is_cleared {
            frame[place..].fill(0);
        }
        is_cleared = true;
    };
    for step in steps {
        match step {
            Step::Write(write) => {
                let sum = value(write.variable).wrapping_add(write.add);
                let moved = if write.shift >= 0 {
                    sum << write.shift
                } else {
                    sum >> write.shift.unsigned_abs()
                };
                for place in 0..write.width {
                    let at = write.offset
                        + match write.order {
                            ByteOrder::Network => write.width - 1 - place,
                            ByteOrder::Little => place,
                        };
                    let mask = (write.mask >> (8 * place)) as u8;
                    frame[at] = frame[at] & !mask | (moved >> (8 * place)) as u8 & mask;
                }
            }
            Step::Length { variable } => {
                let length = value(*variable).clamp(14, stream.template.len() as u128);
                frame.truncate(length as usize);
            }
            Step::WriteLength { offset, less } => {
                let length = (frame.len() - less) as u16;
                frame[*offset..offset + 2].copy_from_slice(&length.to_be_bytes());
            }
            Step::Checksum(sum) => {
                clear(&mut frame);
                make_right(sum, &mut frame);
            }
            // Unit tests beside the code cover these.
            Step::WrongChecksum(sum) => panic!("{sum:?}"),
        }
    }
    clear(&mut frame);
    if stream.is_measured {
        let end = frame.last_chunk_mut().expect("room for a signature");
        let id = index * workers as u32 + (number % workers) as u32;
        *end = Signature { stream: id, sequence: number / workers, departure }.encode();
        for step in steps {
            if let Step::Checksum(sum @ Checksum::Crc32c { .. }) = step {
                make_right(sum, &mut frame);
            }
        }
    }
    frame
}

fn make_right(sum: &Checksum, frame: &mut [u8]) {
    match *sum {
        Checksum::Internet { offset, start, end, pseudo_header, never_zero } => {
            frame[offset..offset + 2].fill(0);
            let mut covered = frame[start..end.unwrap_or(frame.len())].to_vec();
            let length = covered.len() as u16;
            if length % 2 == 1 {
                covered.push(0);
            }
            if let PseudoHeader::Ipv4 { header, protocol } = pseudo_header {
                covered.extend(&frame[header + 12..header + 20]);
                covered.extend([0, protocol]);
                covered.extend(length.to_be_bytes());
            } else if let PseudoHeader::Ipv6 { header, protocol } = pseudo_header {
                covered.extend(&frame[header + 8..header + 40]);
                covered.extend([0, protocol]);
                covered.extend(length.to_be_bytes());
            }
            let mut made = checksum::checksum(&covered);
            if made == 0 && never_zero {
                made = 0xffff;
            }
            frame[offset..offset + 2].copy_from_slice(&made.to_be_bytes());
        }
        Checksum::Crc32c { offset, start } => {
            frame[offset..offset + 4].fill(0);
            let crc = checksum::crc32c(&frame[start..]);
            frame[offset..offset + 4].copy_from_slice(&crc.to_le_bytes());
        }
    }
}

/// Rate in the model.
#[derive(Clone, Copy, Debug)]
enum Pace {
    Frames(u64),
    Bits(u64),
}

impl Pace {
    fn speed(self) -> Speed {
        match self {
            Self::Frames(rate) => frames_a_second(rate),
            Self::Bits(rate) => {
                Speed::Bits(Rate::parse_per_second(&rate.to_string(), 1).unwrap(), Layer::Wire)
            }
        }
    }
}

/// Returns all frames with constant gaps that are due before `end`, by definition, sorted.
fn sent_by_definition(streams: &[(Stream, Pace)], workers: u64, end: u64) -> Sent {
    let mut sent = Sent::new();
    let mut numbers = vec![0_u64; streams.len()];
    let mut named: Vec<u32> =
        streams.iter().map(|(stream, _)| stream.transmission.self_start.into()).collect();
    for first in 0..streams.len() {
        if !streams[first].0.transmission.self_start {
            continue;
        }
        let (mut index, mut at) = (first, 0);
        loop {
            let (stream, pace) = &streams[index];
            let transmission = &stream.transmission;
            let mut limit = u64::MAX;
            let (frames, count, pause) = match transmission.mode {
                Mode::Continuous => (u64::MAX, 1, 0),
                Mode::Time { duration: lasts } => {
                    limit = lasts.as_nanos();
                    (u64::MAX, 1, 0)
                }
                Mode::Burst { frames } => (frames, 1, 0),
                Mode::Bursts { frames, count, gap } => (frames, count, gap.as_nanos()),
            };
            let begin = at + transmission.start_delay.as_nanos();
            let limit = begin.saturating_add(limit);
            // Exact: units sent times 10^9 over the rate; pauses are separate.
            let (mut units, mut pauses) = (0_u128, 0);
            let mut due = begin;
            'run: for group in 0..count {
                for place in 0..frames {
                    let (rate, per_frame) = match *pace {
                        Pace::Frames(rate) => (rate, 1),
                        Pace::Bits(rate) => {
                            let length = frame_by_definition(stream, 0, 1, numbers[index], 0).len();
                            (rate, (length as u128 + 24) * 8)
                        }
                    };
                    let past = units * u128::from(SECOND) / u128::from(rate);
                    due = begin + pauses + past as u64;
                    if due >= end.min(limit) {
                        due = limit;
                        break 'run;
                    }
                    let number = numbers[index];
                    let id = index as u32;
                    sent.push((due, frame_by_definition(stream, id, workers, number, due)));
                    numbers[index] += 1;
                    if place + 1 < frames {
                        units += per_frame;
                    }
                }
                if group + 1 < count {
                    pauses += pause;
                }
            }
            let Some(next) = transmission.next.filter(|_| due < end) else { break };
            let starts_max = streams[next].0.transmission.starts_max;
            if starts_max > 0 && named[next] >= starts_max {
                break;
            }
            named[next] += 1;
            (index, at) = (next, due);
        }
    }
    sent.sort();
    sent
}

fn pace() -> impl Strategy<Value = Pace> {
    prop_oneof![
        (1_000..30_000_000_u64).prop_map(Pace::Frames),
        (1_000_000..30_000_000_000_u64).prop_map(Pace::Bits),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    let gap = (0..50_000_u64).prop_map(Duration::from_nanos);
    prop_oneof![
        2 => Just(Mode::Continuous),
        2 => (1..20_u64).prop_map(|frames| Mode::Burst { frames }),
        2 => (1..50_000_u64)
            .prop_map(|lasts| Mode::Time { duration: Duration::from_nanos(lasts) }),
        2 => (1..20_u64, 1..5_u64, gap)
            .prop_map(|(frames, count, gap)| Mode::Bursts { frames, count, gap }),
    ]
}

/// Generates one to three streams; each may name the next one, and the last one the first.
fn streams() -> impl Strategy<Value = Vec<(Stream, Pace)>> {
    let one = (contents(), pace(), mode(), 0..9_000_u64, 1..4_u32, any::<bool>());
    (prop::collection::vec(one, 1..4), any::<bool>()).prop_map(|(list, is_circle)| {
        let count = list.len();
        let stream = |(index, one)| {
            let (mut stream, pace, mode, delay, starts_max, is_short): (
                Stream,
                Pace,
                _,
                _,
                _,
                bool,
            ) = one;
            stream.transmission = Transmission {
                mode,
                start_delay: Duration::from_nanos(if is_short { 0 } else { delay }),
                self_start: !is_circle || index == 0,
                next: is_circle.then_some((index + 1) % count),
                starts_max,
                ..transmission(pace.speed())
            };
            (stream, pace)
        };
        list.into_iter().enumerate().map(stream).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn workers_together_match_the_model(streams in streams(), workers in 1..5_u64) {
        // About 300 frames of the fastest stream.
        let gaps = streams.iter().map(|(_, pace)| match *pace {
            Pace::Frames(rate) => SECOND / rate,
            Pace::Bits(rate) => SECOND * 900 / rate,
        });
        let end = 1_000 + gaps.min().expect("a stream") * 300;
        let options = GeneratorOptions { duration_max: Duration::from_nanos(end), ..options() };
        let expected = sent_by_definition(&streams, workers, end);
        let streams: Vec<Stream> = streams.into_iter().map(|(stream, _)| stream).collect();
        let sent = run_shared(&streams, workers, &options);
        prop_assert_eq!(sent.len(), expected.len());
        for (sent, expected) in sent.iter().zip(&expected) {
            prop_assert_eq!(sent, expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn workers_share_one_schedule_for_any_gaps(
        stream in contents(), pace in pace(), mode in mode(), workers in 2..5_u64, seed: u64,
        on in 1..9_000_u64, off in 0..9_000_u64, is_poisson: bool,
    ) {
        let departures = match is_poisson {
            true => GapDistribution::Poisson { seed },
            false => GapDistribution::OnOff {
                on: Duration::from_nanos(on), off: Duration::from_nanos(off),
            },
        };
        let mode = if mode == Mode::Continuous { Mode::Burst { frames: 300 } } else { mode };
        let stream = Stream {
            is_measured: false,
            trailer: 0,
            is_marked: false,
            member: None,
            transmission: Transmission { departures, mode, ..transmission(pace.speed()) },
            ..stream
        };
        let alone = run_shared(std::slice::from_ref(&stream), 1, &options());
        prop_assert_eq!(run_shared(&[stream], workers, &options()), alone);
    }
}

/// Returns what workers send together in `end` us. They run every microsecond and receive the same
/// commands at the same time.
fn played(
    stream: &Stream,
    workers: u64,
    end: u64,
    tell: impl Fn(&mut Generator, u64, Instant),
) -> Vec<(u64, u64)> {
    let sent = played_frames(stream, workers, end, tell);
    sent.iter().map(|(due, frame)| (due / 1_000, number(frame))).collect()
}

/// As [`played`]; returns the frames.
fn played_frames(
    stream: &Stream,
    workers: u64,
    end: u64,
    tell: impl Fn(&mut Generator, u64, Instant),
) -> Sent {
    let mut sent = Sent::new();
    for index in 0..workers {
        let (mut transmit, mut receive) = wire(WireOptions::default());
        let options =
            GeneratorOptions { share: Share { index, workers }, virtual_time: false, ..options() };
        let mut generator = Generator::new(std::slice::from_ref(stream), options, Instant::ZERO);
        for microsecond in 0..end {
            let now = Instant::from_nanos(microsecond * 1_000);
            tell(&mut generator, microsecond, now);
            generator.breathe(now, &mut transmit).expect("a wire in memory");
            collect(&mut receive, &mut sent);
        }
    }
    sent.sort();
    sent
}

/// Returns due times in us with frame numbers from 0.
fn counted(dues: &[u64]) -> Vec<(u64, u64)> {
    dues.iter().copied().zip(0..).collect()
}

fn every_ten_microseconds() -> Stream {
    numbered(1, transmission(frames_a_second(100_000)))
}

#[test]
fn paused_stream_resumes_with_its_next_frame() {
    for workers in 1..4 {
        let sent = played(&every_ten_microseconds(), workers, 130, |generator, at, now| match at {
            35 => generator.pause(0, now),
            36 => generator.pause(0, now),
            105 => generator.resume(0, now),
            106 => generator.resume(0, now),
            _ => {}
        });
        assert_eq!(sent, counted(&[0, 10, 20, 30, 110, 120]), "{workers} workers");
    }
}

#[test]
fn stream_that_starts_paused_waits_for_resume() {
    let mut stream = every_ten_microseconds();
    stream.transmission.start_paused = true;
    stream.transmission.start_delay = Duration::from_micros(5);
    for workers in 1..4 {
        let sent = played(&stream, workers, 90, |generator, at, now| {
            if at == 50 {
                generator.resume(0, now);
            }
        });
        assert_eq!(sent, counted(&[55, 65, 75, 85]), "{workers} workers");
    }
}

#[test]
fn virtual_time_does_not_wait_for_paused_streams() {
    let mut held = every_ten_microseconds();
    held.transmission.start_paused = true;
    let burst =
        Transmission { mode: Mode::Burst { frames: 3 }, ..transmission(frames_a_second(100_000)) };
    let sent = run(&[held, numbered(2, burst)], options());
    assert_eq!(sent.iter().map(|(due, _)| *due).collect::<Vec<_>>(), [0, 10_000, 20_000]);
}

#[test]
fn speed_change_keeps_the_phase() {
    for workers in 1..4 {
        let sent = played(&every_ten_microseconds(), workers, 112, |generator, at, now| match at {
            35 => generator.set_speed(0, frames_a_second(50_000), now),
            // Five times the planned speed.
            90 => generator.scale_speeds(5, 1, now).expect("a rate"),
            _ => {}
        });
        // At 35 us, 5 of 10 us are left: 10 of 20. At 90 us, 15 of 20 us are left: 1.5 of 2.
        let dues = [0, 10, 20, 30, 45, 65, 85, 91, 93, 95, 97, 99, 101, 103, 105, 107, 109];
        assert_eq!(sent, counted(&dues), "{workers} workers");
    }
}

#[test]
fn frames_change_and_keep_their_numbers_and_sequence() {
    let old = Stream { is_measured: true, ..every_ten_microseconds() };
    let mut new = old.clone();
    new.template = vec![2; 90];
    new.program.variables.push(Variable::new(Values::List(vec![5, 6, 7])));
    new.program.steps.push(Step::Write(write(1, 40, 1)));
    for workers in 1..4 {
        let sent = played_frames(&old, workers, 80, |generator, at, now| {
            if at == 35 {
                generator.set_frames(0, &new, now);
            }
        });
        assert_eq!(sent.len(), 8, "{workers} workers");
        for ((due, frame), number) in sent.iter().zip(0..) {
            let stream = if *due < 35_000 { &old } else { &new };
            let expected = frame_by_definition(stream, 0, workers, number, *due);
            assert_eq!(*frame, expected, "frame {number} of {workers} workers");
        }
    }
}

#[test]
fn speed_in_bits_holds_for_frames_of_another_length() {
    // 60 bytes with 24 of overhead each 10 us.
    let speed = Speed::Bits(rate("67200000"), Layer::Wire);
    let old = numbered(1, transmission(speed));
    let new = Stream { template: vec![1; 144], ..old.clone() };
    let sent = played(&old, 1, 110, |generator, at, now| {
        if at == 35 {
            generator.set_frames(0, &new, now);
        }
    });
    assert_eq!(sent, counted(&[0, 10, 20, 30, 40, 60, 80, 100]));
}

#[test]
fn speed_of_a_paused_stream_can_change() {
    for workers in 1..4 {
        let sent = played(&every_ten_microseconds(), workers, 150, |generator, at, now| match at {
            35 => generator.pause(0, now),
            50 => generator.set_speed(0, frames_a_second(50_000), now),
            100 => generator.resume(0, now),
            _ => {}
        });
        assert_eq!(sent, counted(&[0, 10, 20, 30, 110, 130]), "{workers} workers");
    }
}

#[test]
fn speed_can_change_to_and_from_top_speed() {
    let sent = played(&every_ten_microseconds(), 1, 70, |generator, at, now| match at {
        35 => generator.set_speed(0, Speed::Max, now),
        36 => generator.set_speed(0, frames_a_second(100_000), now),
        _ => {}
    });
    let paced = |from, to| sent.iter().filter(move |(due, _)| (from..to).contains(due)).count();
    // At top speed a whole breath of 256 frames leaves at once.
    assert_eq!(paced(0, 35), 4 + 256);
    assert_eq!(paced(36, 70), 4);
}

#[test]
fn restarted_stream_continues_its_numbers() {
    for workers in 1..4 {
        let sent = played(&every_ten_microseconds(), workers, 130, |generator, at, now| match at {
            35 => generator.stop(0),
            105 => generator.start(0, now),
            // The stream is already running.
            106 => generator.start(0, now),
            _ => {}
        });
        let dues = [0, 10, 20, 30, 105, 115, 125];
        if workers == 1 {
            assert_eq!(sent, counted(&dues));
        }
        // Each worker continues its own numbers.
        let (found, mut numbers): (Vec<u64>, Vec<u64>) = sent.into_iter().unzip();
        numbers.sort_unstable();
        assert_eq!((found, numbers), (dues.to_vec(), (0..7).collect()), "{workers} workers");
    }
}

#[test]
fn restarted_burst_is_complete() {
    let mut stream = every_ten_microseconds();
    stream.transmission.mode = Mode::Burst { frames: 5 };
    for workers in 1..4 {
        let sent = played(&stream, workers, 300, |generator, at, now| match at {
            25 => generator.stop(0),
            100 | 200 => generator.start(0, now),
            _ => {}
        });
        let dues = [0, 10, 20, 100, 110, 120, 130, 140, 200, 210, 220, 230, 240];
        let mut found: Vec<u64> = sent.iter().map(|(due, _)| *due).collect();
        found.sort_unstable();
        assert_eq!(found, dues, "{workers} workers");
        let mut numbers: Vec<u64> = sent.iter().map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), dues.len(), "no number twice");
    }
}

/// Returns the number of frames of a [`numbered`] stream that are due within `span`.
fn count_within(speed: Speed, span: Duration) -> u64 {
    let mut port = MemorySink::new(WireOptions::default());
    let options = GeneratorOptions { duration_max: span, ..options() };
    let streams = [numbered(1, transmission(speed))];
    let mut generator = Generator::new(&streams, options, Instant::ZERO);
    while generator.breathe(Instant::ZERO, &mut port).expect("a sink").state != WorkerState::Done {}
    port.transmitted().sent
}

#[test]
fn rate_is_exact_over_whole_seconds() {
    for frames in [1, 3, 7, 997, 333_333, 1_000_003] {
        for seconds in [1, 3] {
            let count = count_within(frames_a_second(frames), Duration::from_secs(seconds));
            assert_eq!(count, frames * seconds, "{frames} frames a second for {seconds} s");
        }
    }
    // The first frame leaves at once, so an incomplete gap counts as a frame.
    let tenth = Duration::from_millis(100);
    assert_eq!(count_within(frames_a_second(14_880_952), tenth), 1_488_096);
    let lines = [(Layer::Wire, 84), (Layer::FrameWithFcs, 64), (Layer::Frame, 60)];
    for (layer, bytes) in lines {
        let speed = Speed::Bits(rate("987654321"), layer);
        let count = 987_654_321_u64.div_ceil(bytes * 8);
        assert_eq!(count_within(speed, Duration::from_secs(1)), count, "{layer:?}");
    }
}

#[test]
fn no_window_exceeds_the_rate() {
    let options = GeneratorOptions { frames_max: 30_000, ..options() };
    let sent = run(&[numbered(1, transmission(frames_a_second(1_000_003)))], options);
    for frames in [1, 2, 3, 7, 100, 1_000, 29_999] {
        for window in sent.windows(frames + 1) {
            // Due times are truncated to whole ns.
            let span = window[frames].0 - window[0].0 + 1;
            assert!(span * 1_000_003 >= frames as u64 * SECOND, "{frames} frames in {span} ns");
        }
    }
}

#[test]
fn poisson_gaps_are_exponentially_distributed() {
    let frames = 1_000_001;
    let mut transmission = transmission(frames_a_second(1_000_000));
    transmission.departures = GapDistribution::Poisson { seed: 7 };
    let sent =
        run(&[numbered(1, transmission)], GeneratorOptions { frames_max: frames, ..options() });
    let gaps: Vec<f64> = sent.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    // Five standard errors: 0.1 % each for the mean and 0.283 % for the variance.
    assert!((mean / 1_000.0 - 1.0).abs() < 0.005, "{mean}");
    assert!((variance / 1e6 - 1.0).abs() < 0.0142, "{variance}");
    let is_longer = gaps.iter().filter(|gap| **gap >= 1_000.0).count() as f64 / gaps.len() as f64;
    assert!((is_longer - (-1.0_f64).exp()).abs() < 0.0025, "{is_longer}");
}

#[test]
fn on_off_stream_keeps_its_mean_rate() {
    let mut transmission = transmission(frames_a_second(1_000));
    transmission.departures =
        GapDistribution::OnOff { on: Duration::from_millis(10), off: Duration::from_millis(30) };
    let span = Duration::from_secs(1);
    let sent =
        run(&[numbered(1, transmission)], GeneratorOptions { duration_max: span, ..options() });
    assert_eq!(sent.len(), 1_000);
    for (due, _) in &sent {
        assert!(due % 40_000_000 < 10_000_000, "{due} is in the off time");
    }
    assert_eq!((sent[39].0, sent[40].0), (9_750_000, 40_000_000));
}

#[test]
fn each_of_many_streams_keeps_its_rate() {
    let rates: Vec<u64> = (0..500).map(|index| 1_000 + 97 * index).collect();
    let streams: Vec<Stream> =
        rates.iter().map(|&rate| numbered(1, transmission(frames_a_second(rate)))).collect();
    let options = GeneratorOptions { duration_max: Duration::from_millis(100), ..options() };
    let mut port = MemorySink::new(WireOptions::default());
    let mut generator = Generator::new(&streams, options, Instant::ZERO);
    while generator.breathe(Instant::ZERO, &mut port).expect("a sink").state != WorkerState::Done {}
    for (counters, rate) in generator.counters().zip(rates) {
        assert_eq!(counters.frames, rate.div_ceil(10), "{rate} frames a second");
        assert_eq!(counters.bytes, counters.frames * 60);
    }
}

#[test]
fn top_speed_streams_share_the_port_and_do_not_starve_scheduled_ones() {
    // 250 frames of a breath remain: 31 turns of 8 and a partial turn, which must not always be the
    // same stream's.
    let mut streams = vec![numbered(1, transmission(Speed::Max)); 8];
    streams.push(numbered(2, transmission(frames_a_second(6_000_000))));
    let options = GeneratorOptions { virtual_time: false, ..options() };
    let mut port = MemorySink::new(WireOptions::default());
    let mut generator = Generator::new(&streams, options, Instant::ZERO);
    for microsecond in 0..1_000 {
        generator.breathe(Instant::from_nanos(microsecond * 1_000), &mut port).expect("a sink");
    }
    let frames: Vec<u64> = generator.counters().map(|counters| counters.frames).collect();
    assert!((5_990..=6_000).contains(&frames[8]), "{frames:?}");
    assert_eq!(frames.iter().sum::<u64>(), 256_000, "every breath is full");
    let (least, most) = (frames[..8].iter().min(), frames[..8].iter().max());
    assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 8), "{frames:?}");
}

#[test]
fn bursts_at_top_speed_keep_their_gaps() {
    let mut transmission = transmission(Speed::Max);
    let gap = Duration::from_micros(50);
    transmission.mode = Mode::Bursts { frames: 6, count: 3, gap };
    transmission.start_delay = Duration::from_micros(10);
    for workers in 1..4 {
        let sent = played(&numbered(1, transmission), workers, 300, |generator, at, _| {
            let frames: u64 = generator.counters().map(|counters| counters.frames).sum();
            // Frames sent in the microseconds before.
            let groups = [(0, 10), (1, 60), (2, 110)].iter().filter(|(_, due)| *due < at).count();
            assert!(frames == groups as u64 * 6 / workers, "{frames} frames before {at} us");
        });
        assert_eq!(sent.len(), 18);
    }
}

#[test]
fn timed_stream_sends_what_is_due_in_its_time() {
    let lasts = Duration::from_micros(700);
    let on_off =
        GapDistribution::OnOff { on: Duration::from_micros(40), off: Duration::from_micros(60) };
    for departures in [GapDistribution::Constant, GapDistribution::Poisson { seed: 3 }, on_off] {
        let endless = Transmission { departures, ..transmission(frames_a_second(300_000)) };
        let mut timed =
            numbered(1, Transmission { mode: Mode::Time { duration: lasts }, ..endless });
        timed.transmission.next = Some(1);
        let mode = Mode::Burst { frames: 1 };
        let named = Transmission { mode, self_start: false, ..transmission(frames_a_second(1)) };
        let streams = [timed, numbered(2, named)];
        let of_time = GeneratorOptions { duration_max: lasts, ..options() };
        for workers in 1..4 {
            let mut sent = run_shared(&streams, workers, &options());
            let last = sent.pop().expect("the stream that is named last");
            assert_eq!((last.0, last.1[0]), (lasts.as_nanos(), 2), "it begins at the end");
            let expected = run_shared(&[numbered(1, endless)], workers, &of_time);
            assert!(expected.len() > 100);
            assert_eq!(sent, expected, "{departures:?}, {workers} workers");
        }
    }
}

#[test]
fn timed_stream_keeps_its_time_at_other_speeds() {
    let mut stream = every_ten_microseconds();
    stream.transmission.mode = Mode::Time { duration: Duration::from_micros(200) };
    for workers in 1..4 {
        let sent = played(&stream, workers, 300, |generator, at, now| match at {
            35 => generator.set_speed(0, frames_a_second(50_000), now),
            50 => generator.set_speed(0, frames_a_second(100_000), now),
            _ => {}
        });
        let mut dues = vec![0, 10, 20, 30, 45];
        dues.extend((57..200).step_by(10));
        assert_eq!(sent, counted(&dues), "{workers} workers");
        let sent = played(&stream, workers, 1_200, |generator, at, now| match at {
            35 => generator.set_speed(0, frames_a_second(50_000), now),
            50 => generator.pause(0, now),
            // The next frame is due after the remaining 150 us.
            150 => generator.set_speed(0, frames_a_second(1_000), now),
            160 => generator.resume(0, now),
            _ => {}
        });
        assert_eq!(sent, counted(&[0, 10, 20, 30, 45]), "{workers} workers");
    }
}

#[test]
fn timed_stream_at_top_speed_excludes_its_pauses() {
    let mode = Mode::Time { duration: Duration::from_micros(10) };
    let streams = [numbered(1, Transmission { mode, ..transmission(Speed::Max) })];
    let options = GeneratorOptions { virtual_time: false, ..options() };
    let mut port = MemorySink::new(WireOptions::default());
    let mut generator = Generator::new(&streams, options, Instant::ZERO);
    let mut busy = Vec::new();
    for microsecond in 0..40 {
        let now = Instant::from_nanos(microsecond * 1_000);
        match microsecond {
            4 => generator.pause(0, now),
            24 => generator.resume(0, now),
            _ => {}
        }
        let iteration = generator.breathe(now, &mut port).expect("a sink");
        if iteration.frames > 0 {
            busy.push(microsecond);
        }
        assert_eq!(iteration.state == WorkerState::Done, microsecond >= 30);
    }
    assert_eq!(busy, (0..4).chain(24..30).collect::<Vec<_>>());
}

#[test]
fn duration_and_frame_limits_are_exact() {
    let streams: Vec<Stream> =
        (1..4).map(|id| numbered(id, transmission(frames_a_second(10 * u64::from(id))))).collect();
    let sent = run(&streams, GeneratorOptions { frames_max: 1_000, ..options() });
    assert_eq!(sent.len(), 1_000);
    let end = Duration::from_secs(1);
    let sent = run(&streams, GeneratorOptions { duration_max: end, ..options() });
    assert_eq!(sent.len(), 60);
    assert!(sent.iter().all(|(due, _)| *due < SECOND));
    let end = Duration::from_nanos(SECOND + 1);
    let sent = run(&streams, GeneratorOptions { duration_max: end, ..options() });
    assert_eq!(sent.len(), 63, "those due at the very second are in");
}

#[test]
fn blocked_port_loses_no_frames() {
    let (mut transmit, mut receive) = wire(WireOptions { frames: 16, frame_length_max: 128 });
    let options = GeneratorOptions { frames_max: 1_000, ..options() };
    let streams = [numbered(1, transmission(frames_a_second(1_000)))];
    let mut generator = Generator::new(&streams, options, Instant::ZERO);
    let mut sent = Sent::new();
    loop {
        let iteration = generator.breathe(Instant::ZERO, &mut transmit).expect("a wire in memory");
        if iteration.state == WorkerState::Done {
            break;
        }
        assert_eq!(iteration.state, WorkerState::Blocked);
        let again = generator.breathe(Instant::ZERO, &mut transmit).expect("a wire in memory");
        assert_eq!((again.frames, again.state), (0, WorkerState::Blocked));
        collect(&mut receive, &mut sent);
    }
    collect(&mut receive, &mut sent);
    let found: Vec<(u64, u64)> = sent.iter().map(|(due, frame)| (*due, number(frame))).collect();
    let expected: Vec<(u64, u64)> = (0..1_000).map(|n| (n * 1_000_000, n)).collect();
    assert_eq!(found, expected);
}

#[test]
fn frames_leave_in_due_order_across_a_blocked_port() {
    // The port is full after 16 frames, within the first stream's turn of 20.
    let (mut transmit, mut receive) = wire(WireOptions { frames: 16, frame_length_max: 128 });
    let often = numbered(1, transmission(frames_a_second(20_000)));
    let seldom = numbered(2, transmission(frames_a_second(1_000)));
    let later = Transmission { self_start: false, ..transmission(frames_a_second(3_000)) };
    let streams = [often, seldom, numbered(3, later)];
    let options = GeneratorOptions { frames_max: 2_000, ..options() };
    let mut generator = Generator::new(&streams, options, Instant::ZERO);
    let mut sent = Sent::new();
    generator.breathe(Instant::ZERO, &mut transmit).expect("a wire in memory");
    collect(&mut receive, &mut sent);
    assert_eq!(sent.last().map(|(due, frame)| (*due, frame[0])), Some((700_000, 1)));
    // A stream that starts now is due before the next frame of the interrupted one.
    generator.start(2, Instant::from_nanos(720_000));
    loop {
        let iteration = generator.breathe(Instant::ZERO, &mut transmit).expect("a wire in memory");
        collect(&mut receive, &mut sent);
        if iteration.state == WorkerState::Done {
            break;
        }
    }
    let of =
        |id: u8, start: u64, rate: u64| (0..2_000).map(move |n| (start + n * SECOND / rate, id));
    let mut expected: Vec<(u64, u8)> =
        of(1, 0, 20_000).chain(of(2, 0, 1_000)).chain(of(3, 720_000, 3_000)).collect();
    expected.sort_unstable();
    expected.truncate(2_000);
    // The wire never reports a frame before its predecessor, so due times show the order.
    let found: Vec<(u64, u8)> = sent.iter().map(|(due, frame)| (*due, frame[0])).collect();
    assert_eq!(found, expected);
}

/// Port that does not hold departures: frames leave immediately.
struct Prompt {
    wire: MemoryTransmit,
    capabilities: Capabilities,
    now: Instant,
}

impl Transmit for Prompt {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    fn take(&mut self) -> Option<FrameId> {
        self.wire.take()
    }
    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        self.wire.frame_mut(frame)
    }
    fn send(&mut self, frame: FrameId, length: usize, _: Instant) {
        self.wire.send(frame, length, self.now);
    }
    fn release(&mut self, frame: FrameId) {
        self.wire.release(frame);
    }
    fn flush(&mut self) -> Result<(), PortError> {
        self.wire.flush()
    }
    fn in_flight(&self) -> usize {
        self.wire.in_flight()
    }
    fn transmitted(&self) -> TransmitCounters {
        self.wire.transmitted()
    }
    fn abort(&mut self) {
        self.wire.abort();
    }
}

/// Returns when the frames of two streams leave, and how many were not sent. Together they have a
/// frame due every 10 us for 10 ms. The worker runs every microsecond except from 1,030 to 4,030
/// us.
fn around_a_stall(catch_up: CatchUp) -> (Vec<u64>, u64) {
    let (wire, mut receive) = wire(WireOptions::default());
    let capabilities = Capabilities { holds_departure: false, ..*wire.capabilities() };
    let mut port = Prompt { wire, capabilities, now: Instant::ZERO };
    let start = Duration::from_micros(10);
    let streams = [(1, 10), (2, 20)].map(|(id, delay)| {
        let mut transmission = transmission(frames_a_second(50_000));
        transmission.start_delay = Duration::from_micros(delay);
        numbered(id, transmission)
    });
    let options = GeneratorOptions {
        policy: DeparturePolicy { catch_up, ..DeparturePolicy::default() },
        duration_max: Duration::from_millis(10).saturating_add(start),
        virtual_time: false,
        ..options()
    };
    let mut generator = Generator::new(&streams, options, Instant::ZERO);
    let mut sent = Sent::new();
    let mut reported = 0;
    for microsecond in (10..20_000).filter(|at| !(1_030..4_030).contains(at)) {
        port.now = Instant::from_nanos(microsecond * 1_000);
        loop {
            let iteration = generator.breathe(port.now, &mut port).expect("a wire in memory");
            reported += iteration.frames;
            if iteration.state != WorkerState::Active {
                break;
            }
        }
        collect(&mut receive, &mut sent);
    }
    let unsent = generator.counters().map(|counters| counters.unsent).sum();
    assert_eq!(generator.departures().unsent, unsent);
    assert_eq!(generator.departures().frames, sent.len() as u64);
    assert_eq!(reported, sent.len(), "breaths report what they sent");
    (sent.iter().map(|(at, _)| at / 1_000).collect(), unsent)
}

#[test]
fn strict_schedule_keeps_gaps_and_counts_skipped_frames() {
    let (sent, unsent) = around_a_stall(CatchUp::Strict);
    assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= 9));
    assert!(unsent >= 200, "2 of 3 ms are beyond the backlog");
    assert_eq!(sent.len() as u64 + unsent, 1_000);
}

#[test]
fn bounded_schedule_catches_up_one_backlog_without_loss() {
    let (sent, unsent) = around_a_stall(CatchUp::Bounded);
    assert_eq!((sent.len(), unsent), (1_000, 0));
    let burst = sent.iter().filter(|at| **at == 4_030).count();
    assert!((101..=110).contains(&burst), "{burst}: 1 ms of frames 10 us apart");
}

#[test]
fn stretched_schedule_keeps_gaps_without_loss() {
    let (sent, unsent) = around_a_stall(CatchUp::Stretch);
    assert_eq!((sent.len(), unsent), (1_000, 0));
    assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= 9));
}

#[test]
fn worker_waits_until_a_frame_is_due_if_the_port_holds_no_departures() {
    let (wire, _receive) = wire(WireOptions::default());
    let capabilities = Capabilities { holds_departure: false, ..*wire.capabilities() };
    let mut port = Prompt { wire, capabilities, now: Instant::ZERO };
    let options = GeneratorOptions {
        duration_max: Duration::from_secs(1),
        virtual_time: false,
        horizon: Duration::from_millis(20),
        ..options()
    };
    let streams = [numbered(1, transmission(frames_a_second(100)))];
    let mut generator = Generator::new(&streams, options, Instant::ZERO);
    let first = generator.breathe(Instant::ZERO, &mut port).expect("a wire in memory");
    let due = Instant::from_nanos(10_000_000);
    assert_eq!((first.frames, first.state), (1, WorkerState::Waiting(due)));
}

#[test]
fn suspended_run_continues_and_ends_later() {
    const MICROSECOND: u64 = 1_000;
    let (wire, mut receive) = wire(WireOptions::default());
    let capabilities = Capabilities { holds_departure: false, ..*wire.capabilities() };
    let mut port = Prompt { wire, capabilities, now: Instant::ZERO };
    // The second stream is paused before the suspension and resumed after it.
    let streams = [
        numbered(1, transmission(frames_a_second(100_000))),
        numbered(2, transmission(frames_a_second(100_000))),
    ];
    let options = GeneratorOptions {
        duration_max: Duration::from_micros(1_000),
        virtual_time: false,
        ..options()
    };
    let mut generator = Generator::new(&streams, options, Instant::ZERO);
    let mut sent = Sent::new();
    let at = |microsecond: u64| Instant::from_nanos(microsecond * MICROSECOND);
    for microsecond in (0..9_000).filter(|at| !(305..5_305).contains(at)) {
        port.now = at(microsecond);
        match microsecond {
            205 => generator.pause(1, port.now),
            5_305 => generator.postpone(Duration::from_micros(5_000)),
            5_405 => generator.resume(1, port.now),
            _ => {}
        }
        generator.breathe(port.now, &mut port).expect("a wire in memory");
        collect(&mut receive, &mut sent);
    }
    let of = |id: u8| {
        let times = sent.iter().filter(|(_, frame)| frame[42] == id);
        times.map(|(at, _)| at / MICROSECOND).collect::<Vec<_>>()
    };
    let first: Vec<u64> = (0..31).map(|n| 10 * n).chain((531..600).map(|n| 10 * n)).collect();
    assert_eq!(of(1), first, "a gap as long as the suspension");
    // The stream skips what was due while it was paused.
    let second: Vec<u64> = (0..21).map(|n| 10 * n).chain((541..600).map(|n| 10 * n)).collect();
    assert_eq!(of(2), second);
}

#[test]
fn signature_has_the_current_time_without_due_time() {
    let (mut transmit, mut receive) = wire(WireOptions::default());
    let mut stream = numbered(0, transmission(Speed::Max));
    stream.is_measured = true;
    stream.transmission.mode = Mode::Burst { frames: 3 };
    let now = Instant::from_nanos(123_456_789_012);
    let options = GeneratorOptions { first_number: 9, ..options() };
    let mut generator = Generator::new(&[stream.clone(), stream], options, now);
    while generator.breathe(now, &mut transmit).expect("a wire").state != WorkerState::Done {}
    let mut sent = Sent::new();
    collect(&mut receive, &mut sent);
    let mut found: Vec<Vec<u8>> = sent.iter().map(|(_, frame)| frame[42..].to_vec()).collect();
    found.sort();
    let expected = (9..11).flat_map(|id| {
        (0..3).map(move |sequence| {
            Signature { stream: id, sequence, departure: now.as_nanos() }.encode().to_vec()
        })
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn no_frame_waits_in_the_port_beside_top_speed_streams() {
    let (mut transmit, mut receive) = wire(WireOptions::default());
    let paced = numbered(1, transmission(frames_a_second(100_000)));
    let at_once = numbered(2, transmission(Speed::Max));
    let options = GeneratorOptions {
        virtual_time: false,
        horizon: Duration::from_millis(1),
        duration_max: Duration::from_millis(1),
        ..options()
    };
    let mut generator = Generator::new(&[paced, at_once], options, Instant::ZERO);
    let mut ahead = 0;
    for microsecond in 0..1_000 {
        let now = Instant::from_nanos(microsecond * 1_000);
        generator.breathe(now, &mut transmit).expect("a wire in memory");
        let mut sent = Sent::new();
        collect(&mut receive, &mut sent);
        // The wire returns the departure time that it received.
        ahead += sent.iter().filter(|(departure, _)| *departure > 0).count();
    }
    let frames: Vec<u64> = generator.counters().map(|counters| counters.frames).collect();
    assert_eq!(ahead, 0);
    assert!((99..=100).contains(&frames[0]), "{frames:?}: one every 10 us");
    assert!(frames[1] > 10_000, "{frames:?}: all the rest");
}

#[test]
fn speed_change_applies_after_frames_passed_ahead() {
    let (mut transmit, mut receive) = wire(WireOptions::default());
    let horizon = Duration::from_millis(20);
    let options = GeneratorOptions { virtual_time: false, horizon, ..options() };
    let stream = numbered(1, transmission(frames_a_second(10_000)));
    let mut generator = Generator::new(&[stream], options, Instant::ZERO);
    let mut sent = Sent::new();
    for millisecond in 0..1_000 {
        let now = Instant::from_nanos(millisecond * 1_000_000);
        if millisecond == 500 {
            generator.set_speed(0, frames_a_second(10), now);
        }
        generator.breathe(now, &mut transmit).expect("a wire in memory");
        collect(&mut receive, &mut sent);
    }
    let before = sent.iter().filter(|(departure, _)| *departure < 520_000_000).count();
    assert!((5_180..=5_201).contains(&before), "{before}: the old speed, and the horizon");
    let after = sent.len() - before;
    assert!((4..=6).contains(&after), "{after} in half a second, at 10 a second");
}
