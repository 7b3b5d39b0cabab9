//! How many frames a second the generator makes, into a port that throws them away.
//!
//! ```text
//! generate none|field|tuple [STREAMS] [at-once|timed] [plain|measured] [BREATHS]
//! ```
//!
//! With a number of breaths it makes them and ends: for an instruction counter.

use std::time::Instant as Clock;
use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::port::Transmit;
use wirestorm_base::rate::*;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::stream::*;
use wirestorm_sim::memory::{MemorySink, WireOptions};
use wirestorm_wire::stream::*;

fn main() {
    let argument = |index| std::env::args().nth(index).unwrap_or_default();
    let kind = argument(1);
    let count: usize = argument(2).parse().unwrap_or(1);
    let timed = argument(3) == "timed";
    let is_measured = argument(4) == "measured";
    let breaths_max: u64 = argument(5).parse().unwrap_or(u64::MAX);
    let mut template = vec![0_u8; 60];
    template[12..14].copy_from_slice(&[8, 0]);
    template[14..34]
        .copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 16, 0, 0, 1, 48, 0, 0, 1]);
    let ip_sum = Step::Checksum(Checksum::Internet {
        offset: 24,
        start: 14,
        end: Some(34),
        pseudo_header: PseudoHeader::None,
        never_zero: false,
    });
    let counter =
        |min: u128, max: u128| Values::Counter { start: min, min, max, step: 1, downwards: false };
    let write = |variable, offset, width| {
        Step::Write(Write {
            variable,
            offset,
            width,
            add: 0,
            shift: 0,
            mask: u128::MAX,
            order: ByteOrder::Network,
        })
    };
    let program = match kind.as_str() {
        "field" => Program {
            variables: vec![Variable::new(counter(0x10000001, 0x100000fe))],
            steps: vec![write(0, 26, 4), ip_sum],
        },
        "tuple" => {
            let after = std::num::NonZeroU64::new(100000);
            Program {
                variables: vec![
                    Variable {
                        values: counter(0x10000001, 0x100000fe),
                        advance: Advance::EveryFrame,
                        restart_after: after,
                    },
                    Variable {
                        values: counter(1025, 65535),
                        advance: Advance::WhenWraps(0),
                        restart_after: None,
                    },
                ],
                steps: vec![write(0, 26, 4), write(1, 34, 2), ip_sum],
            }
        }
        _ => Program::default(),
    };
    let stream = Stream {
        name: "s".into(),
        template,
        program,
        is_measured,
        transmission: Transmission {
            mode: Mode::Continuous,
            speed: if timed {
                Speed::Frames(
                    Rate::parse_per_second(if count > 1 { "5k" } else { "100M" }, 1).unwrap(),
                )
            } else {
                Speed::Max
            },
            departures: Departures::Constant,
            start_delay: Duration::ZERO,
            self_start: true,
            start_paused: false,
            next: None,
            starts_max: 0,
        },
    };
    let streams: Vec<Stream> = (0..count)
        .map(|index| {
            let mut stream = stream.clone();
            stream.template[8..12].copy_from_slice(&(index as u32).to_be_bytes());
            stream
        })
        .collect();
    let options = GeneratorOptions {
        share: Share::ALL,
        policy: DeparturePolicy::default(),
        duration_max: Duration::MAX,
        frames_max: u64::MAX,
        virtual_time: true,
        horizon: Duration::ZERO,
        numbered_from: 0,
    };
    let mut generator = Generator::new(&streams, options, Instant::ZERO);
    let mut port = MemorySink::new(WireOptions::default());
    let (mut frames, mut breaths) = (0, 0);
    let begin = Clock::now();
    while breaths < breaths_max && (breaths_max < u64::MAX || begin.elapsed().as_secs() < 2) {
        let now = Instant::from_nanos(begin.elapsed().as_nanos() as u64);
        for _ in 0..100 {
            frames += generator.breathe(now, &mut port).unwrap().frames;
        }
        breaths += 100;
    }
    println!(
        "{kind} {count} streams: {:.1} Mpps, sent {}",
        frames as f64 / begin.elapsed().as_secs_f64() / 1e6,
        port.transmitted().sent
    );
}
