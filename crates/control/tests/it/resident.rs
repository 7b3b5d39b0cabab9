//! Streams that the kernel makes by itself, compared with those that the process makes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::port::{Receive, Received, Resident, Transmit};
use wirestorm_base::rate::Rate;
use wirestorm_base::resident::ResidentOptions;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::Signature;
use wirestorm_engine::replay::WorkerState;
use wirestorm_engine::stream::{Generator, GeneratorOptions, ResidentStreams, Share};
use wirestorm_io::af_packet::{AfPacketOptions, AfPacketReceive};
use wirestorm_io::clock;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::xdp::{XdpTransmit, XdpTransmitOptions};
use wirestorm_model::stream::strategy::contents;
use wirestorm_model::stream::{
    ByteOrder, Checksum, Mode, Program, Speed, Step, Stream, Transmission, Values, Variable, Write,
};
use wirestorm_sim::memory::{WireOptions, wire};
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::require_root;

pub(crate) const FRAME_LENGTH_MAX: usize = 1_514;

fn options() -> GeneratorOptions {
    GeneratorOptions {
        share: Share::ALL,
        policy: DeparturePolicy::default(),
        duration_max: Duration::MAX,
        frames_max: u64::MAX,
        virtual_time: false,
        horizon: Duration::from_millis(1),
        first_number: 7,
    }
}

/// Opens the in-kernel sender on one end of a link, for what it sends by itself.
pub(crate) fn open_sender(lab: &Lab, resident: ResidentOptions) -> XdpTransmit {
    let from: InterfaceName = lab.a.port().parse().unwrap();
    let options = XdpTransmitOptions {
        interface: from.name().to_owned(),
        frame_length_max: FRAME_LENGTH_MAX,
        untagged_length_max: FRAME_LENGTH_MAX,
        cpu: None,
        policy: DeparturePolicy::default(),
        paced: resident.is_timed,
        store_bytes: 1 << 20,
        resident: (resident != ResidentOptions::default()).then_some(resident),
    };
    from.namespace.enter(|| XdpTransmit::open(&options)).unwrap().unwrap()
}

/// The in-kernel sender on one end of a link, and a receiver on the other.
struct Path {
    lab: Lab,
    receive: AfPacketReceive,
}

impl Path {
    fn new() -> Self {
        let lab = Lab::new().unwrap();
        lab.b.set_gro(true).unwrap();
        let to: InterfaceName = lab.b.port().parse().unwrap();
        let receive = AfPacketReceive::open(&AfPacketOptions::new(to)).unwrap();
        Self { lab, receive }
    }

    /// Opens the sender for streams.
    fn transmit(&self, streams: &[Stream]) -> XdpTransmit {
        let resident = ResidentStreams::of(streams, Share::ALL).options;
        open_sender(&self.lab, resident)
    }

    fn collect(&mut self, received: &mut Vec<Vec<u8>>) {
        let mut batch: Vec<Received> = Vec::new();
        self.receive.receive(usize::MAX, &mut batch).unwrap();
        for frame in batch {
            received.push(self.receive.frame(&frame).to_vec());
            self.receive.release(frame);
        }
    }

    /// Lets a generator send until it is done, or `is_over`, and returns what arrives.
    fn send(
        &mut self,
        generator: &mut Generator,
        port: &mut XdpTransmit,
        mut is_over: impl FnMut(&mut Generator, &mut XdpTransmit) -> bool,
    ) -> Vec<Vec<u8>> {
        let mut received = Vec::new();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(3);
        loop {
            let state = generator.breathe(clock::now(), port).unwrap().state;
            self.collect(&mut received);
            if state == WorkerState::Done || is_over(generator, port) {
                break;
            }
            assert!(std::time::Instant::now() < end, "{state:?} after 3 s");
        }
        generator.recall(port);
        let sent = |generator: &Generator| generator.counters().map(|it| it.frames).sum::<u64>();
        while port.in_flight() > 0 || (received.len() as u64) < sent(generator) {
            port.flush().unwrap();
            self.receive.wait(Duration::from_millis(1));
            self.collect(&mut received);
            assert!(
                std::time::Instant::now() < end,
                "{} of {} frames, {} in flight, {:?}",
                received.len(),
                sent(generator),
                port.in_flight(),
                port.transmitted(),
            );
        }
        received
    }
}

/// Returns what a generator sends to memory in virtual time.
fn made_by_the_process(streams: &[Stream]) -> Vec<Vec<u8>> {
    let (mut transmit, mut receive) =
        wire(WireOptions { frames: 64, frame_length_max: FRAME_LENGTH_MAX });
    let options = GeneratorOptions { virtual_time: true, ..options() };
    let mut generator = Generator::new(streams, options, Instant::ZERO);
    let (mut batch, mut made) = (Vec::new(), Vec::new());
    loop {
        let state = generator.breathe(Instant::ZERO, &mut transmit).unwrap().state;
        receive.receive(usize::MAX, &mut batch).unwrap();
        for frame in batch.drain(..) {
            made.push(receive.frame(&frame).to_vec());
            receive.release(frame);
        }
        if state == WorkerState::Done {
            return made;
        }
    }
}

/// Removes the time from the signature of a frame; the signature must be valid.
fn without_time(mut frame: Vec<u8>) -> Vec<u8> {
    let Some(end) = frame.last_chunk_mut::<{ Signature::LENGTH }>() else { return frame };
    if let Some(signature) = Signature::decode(end) {
        *end = Signature { departure: 0, ..signature }.encode();
    }
    frame
}

/// Replaces what the process alone can make: weighted and wide values, lengths that vary, checksums
/// that are not on whole words.
fn simplified(mut stream: Stream) -> Stream {
    for variable in &mut stream.program.variables {
        variable.restart_after = None;
        match &mut variable.values {
            Values::Counter { min, max, start, .. } if *min >> 64 != *max >> 64 => {
                let less = *min - 7;
                for value in [start, min, max] {
                    *value -= less;
                }
            }
            Values::Counter { .. } | Values::List(_) => {}
            Values::Random { min, max, .. } => {
                (*min, *max) = (*min, *min + (*max & u128::from(u64::MAX >> 1)));
            }
            Values::Weighted { .. } => {
                variable.values = Values::List(vec![3, u128::MAX, 1 << 64]);
            }
        }
    }
    stream.program.steps.retain(|step| match step {
        Step::Write(_) => true,
        Step::Checksum(Checksum::Internet { offset, start, .. }) => (offset - start) % 2 == 0,
        _ => false,
    });
    stream
}

/// Removes a CRC, which would cover the time in a signature.
fn without_crc(mut stream: Stream) -> Stream {
    let is_crc = |step: &Step| matches!(step, Step::Checksum(Checksum::Crc32c { .. }));
    stream.program.steps.retain(|step| !is_crc(step));
    stream
}

fn frames_per_second(rate: u64) -> Speed {
    Speed::Frames(Rate::parse_per_second(&rate.to_string(), 1).unwrap())
}

#[test]
fn kernel_makes_the_frames_that_the_process_makes() {
    if !require_root() {
        return;
    }
    let path = RefCell::new(Path::new());
    let (of_kernel, of_all) = (Cell::new(0), Cell::new(0));
    let stream = (contents(), 20_000..300_000_u64, 1..60_u64, 0..50_000_u64);
    let is_simple = prop::bool::weighted(0.8);
    let streams = (prop::collection::vec(stream, 1..4), any::<bool>(), is_simple);
    let config =
        Config { cases: 100, max_shrink_iters: 40, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&streams, |(streams, is_timed, is_simple)| {
        let complete = |(stream, rate, frames, delay): (Stream, _, _, _)| Stream {
            transmission: Transmission {
                mode: Mode::Burst { frames },
                start_delay: Duration::from_nanos(if is_timed { delay } else { 0 }),
                ..Transmission::continuous(match is_timed {
                    true => frames_per_second(rate),
                    false => Speed::Max,
                })
            },
            ..match is_simple {
                true => simplified(stream),
                false if stream.is_measured => without_crc(stream),
                false => stream,
            }
        };
        let streams: Vec<Stream> = streams.into_iter().map(complete).collect();
        let resident = ResidentStreams::of(&streams, Share::ALL).options.streams;
        of_kernel.set(of_kernel.get() + resident);
        of_all.set(of_all.get() + streams.len());
        let mut path = path.borrow_mut();
        let mut port = path.transmit(&streams);
        let start = clock::now().saturating_add(Duration::from_millis(2));
        let mut generator = Generator::new(&streams, options(), start);
        let received = path.send(&mut generator, &mut port, |_, _| false);
        let mut received: Vec<_> = received.into_iter().map(without_time).collect();
        let made = made_by_the_process(&streams);
        let mut made: Vec<_> = made.into_iter().map(without_time).collect();
        if !is_timed || resident < streams.len() {
            // The order between streams is free.
            received.sort();
            made.sort();
        }
        prop_assert_eq!(received.len(), made.len());
        for (number, (received, made)) in received.iter().zip(&made).enumerate() {
            prop_assert_eq!(received, made, "frame {}", number);
        }
        Ok(())
    });
    outcome.unwrap();
    let (resident, all) = (of_kernel.get(), of_all.get());
    assert!(resident > all / 2, "the kernel makes {resident} of {all} streams");
}

/// A stream of 60-byte frames that are numbered from byte 20 on.
fn numbered(rate: u64) -> Stream {
    let number =
        Values::Counter { start: 0, min: 0, max: u128::from(u32::MAX), step: 1, downwards: false };
    let write = Write {
        variable: 0,
        offset: 20,
        width: 4,
        add: 0,
        shift: 0,
        mask: u128::MAX,
        order: ByteOrder::Network,
    };
    Stream {
        name: "numbered".into(),
        template: vec![0x5a; 60],
        program: Program {
            variables: vec![Variable::new(number)],
            steps: vec![Step::Write(write)],
        },
        transmission: Transmission::continuous(frames_per_second(rate)),
        is_measured: false,
        trailer: 0,
        is_marked: false,
        member: None,
    }
}

#[test]
fn commands_take_streams_back_and_no_frame_is_lost_or_sent_twice() {
    if !require_root() {
        return;
    }
    let mut path = Path::new();
    let streams = [numbered(50_000), numbered(20_000)];
    let mut port = path.transmit(&streams);
    let start = clock::now().saturating_add(Duration::from_millis(2));
    let mut generator = Generator::new(&streams, options(), start);
    let mut commands = 0;
    let received = path.send(&mut generator, &mut port, |generator, port| {
        let now = clock::now();
        generator.observe(port);
        let sent = generator.counters().next().unwrap().frames;
        if sent < 500 * (commands + 1) {
            return false;
        }
        assert!(Resident::sending(port) > 0, "the kernel sends after command {commands}");
        generator.recall(port);
        match commands {
            0 => generator.set_speed(0, frames_per_second(100_000), now),
            1 => generator.pause(1, now),
            2 => generator.resume(1, now),
            3 => generator.set_frames(0, &numbered(100_000), now),
            4 => generator.stop(1),
            _ => {}
        }
        commands += 1;
        commands > 6
    });
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    for frame in &received {
        *numbers.entry(u32::from_be_bytes(frame[20..24].try_into().unwrap())).or_default() += 1;
    }
    let counters: Vec<_> = generator.counters().map(|it| it.frames as u32).collect();
    let expected = |number: u32| u32::from(number < counters[0]) + u32::from(number < counters[1]);
    for (number, times) in &numbers {
        assert_eq!(*times, expected(*number), "{number} of {counters:?}");
    }
    assert_eq!(numbers.len(), counters[0] as usize);
    assert_eq!(port.transmitted().sent, u64::from(counters[0] + counters[1]));
}
