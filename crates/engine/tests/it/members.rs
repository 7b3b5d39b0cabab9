//! Members of a link aggregation group share a stream.

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::port::Receive;
use wirestorm_base::rate::Rate;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::WorkerState;
use wirestorm_engine::stream::{Generator, GeneratorOptions, Share, StreamCounters};
use wirestorm_model::stream::{
    ByteOrder, Member, Mode, Program, Speed, Step, Stream, Transmission, Values, Variable, Write,
};
use wirestorm_sim::memory::{MemoryReceive, MemoryTransmit, WireOptions, wire};

const FRAMES: u64 = 300;

/// Returns a member of three: 300 frames at 1 kHz, with 30 addresses in byte 12.
fn member(index: u32, active_min: u32) -> Stream {
    let addresses = Values::List((0..30).collect());
    let write = Write {
        variable: 0,
        offset: 12,
        width: 1,
        add: 0,
        shift: 0,
        mask: 0xff,
        order: ByteOrder::Network,
    };
    let speed = Speed::Frames(Rate::new(1_000, Duration::from_secs(1)).unwrap());
    Stream {
        name: index.to_string(),
        template: vec![0; 60],
        program: Program {
            variables: vec![Variable::new(addresses)],
            steps: vec![Step::Write(write)],
        },
        transmission: Transmission {
            mode: Mode::Burst { frames: FRAMES },
            ..Transmission::continuous(speed)
        },
        is_measured: false,
        trailer: 0,
        is_marked: false,
        member: Some(Member {
            group: 0,
            index,
            active: 0b111,
            active_min,
            keys: vec![6..12, 12..14],
        }),
    }
}

struct Port {
    generator: Generator,
    transmit: MemoryTransmit,
    receive: MemoryReceive,
}

impl Port {
    fn new(stream: &Stream) -> Self {
        let options = GeneratorOptions {
            share: Share::ALL,
            policy: DeparturePolicy::default(),
            duration_max: Duration::MAX,
            frames_max: u64::MAX,
            virtual_time: false,
            horizon: Duration::ZERO,
            first_number: 0,
        };
        let (transmit, receive) = wire(WireOptions { frames: 1_024, frame_length_max: 100 });
        let generator = Generator::new(std::slice::from_ref(stream), options, Instant::ZERO);
        Self { generator, transmit, receive }
    }

    /// Sends what is due at a time. Returns the addresses of the frames, and whether it has ended.
    fn send(&mut self, ms: u64) -> (Vec<u8>, bool) {
        let now = at(ms);
        let mut addresses = Vec::new();
        loop {
            let breath = self.generator.breathe(now, &mut self.transmit).unwrap();
            let mut batch = Vec::new();
            self.receive.receive(usize::MAX, &mut batch).unwrap();
            for received in batch {
                addresses.push(self.receive.frame(&received)[12]);
                self.receive.release(received);
            }
            if breath.state != WorkerState::Active {
                return (addresses, breath.state == WorkerState::Done);
            }
        }
    }

    fn counters(&self) -> StreamCounters {
        self.generator.counters().next().unwrap()
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO.saturating_add(Duration::from_millis(ms))
}

fn ports(active_min: u32) -> [Port; 3] {
    [0, 1, 2].map(|index| Port::new(&member(index, active_min)))
}

#[test]
fn each_address_leaves_by_one_member() {
    let sent = ports(1).each_mut().map(|port| port.send(1_000));
    assert!(sent.iter().all(|(_, is_done)| *is_done));
    let total: usize = sent.iter().map(|(addresses, _)| addresses.len()).sum();
    assert_eq!(total, FRAMES as usize);
    for address in 0..30 {
        let mut counts =
            sent.each_ref().map(|(of, _)| of.iter().filter(|it| **it == address).count());
        counts.sort_unstable();
        assert_eq!(counts, [0, 0, 10], "{address}");
    }
    assert!(sent.iter().all(|(addresses, _)| addresses.len() >= 30), "all send");
}

#[test]
fn the_others_send_the_frames_of_a_member_that_is_down() {
    let mut ports = ports(2);
    let first: usize = ports.each_mut().map(|port| port.send(99).0.len()).iter().sum();
    assert_eq!(first, 100);
    ports.iter_mut().for_each(|port| port.generator.set_members_down(0, 0b010));
    let down = ports[1].counters();
    assert_eq!(ports[1].generator.pass_over(at(199)), WorkerState::Waiting(at(200)));
    let others = ports[0].send(199).0.len() + ports[2].send(199).0.len();
    assert_eq!((others, ports[1].counters()), (100, down), "no frame is lost");
    // With fewer than two members, none sends.
    ports.iter_mut().for_each(|port| port.generator.set_members(0, 0b011));
    assert!(ports.each_mut().iter_mut().all(|port| port.send(249).0.is_empty()));
    let unsent: u64 = ports.iter().map(|port| port.counters().unsent).sum();
    assert_eq!(unsent, 50);
    ports.iter_mut().for_each(|port| {
        port.generator.set_members(0, 0b111);
        port.generator.set_members_down(0, 0);
    });
    let last = ports.each_mut().map(|port| port.send(1_000));
    assert!(last.iter().all(|(addresses, is_done)| *is_done && !addresses.is_empty()));
    assert_eq!(last.iter().map(|(addresses, _)| addresses.len()).sum::<usize>(), 50);
}

#[test]
fn frames_that_are_passed_over_are_unsent() {
    let stream = Stream { member: None, ..member(0, 1) };
    let mut port = Port::new(&stream);
    assert_eq!(port.send(99).0.len(), 100);
    assert_eq!(port.generator.pass_over(at(149)), WorkerState::Waiting(at(150)));
    let (addresses, is_done) = port.send(1_000);
    assert!(is_done);
    assert_eq!(addresses.len(), 150);
    assert_eq!(addresses[0], 0, "frame 150 has address 0 of 30");
    assert_eq!((port.counters().frames, port.counters().unsent), (250, 50));
}
