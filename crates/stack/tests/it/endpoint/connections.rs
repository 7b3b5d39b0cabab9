//! Rates and numbers of connections, and the data that they carry.

use std::num::NonZeroU16;

use wirestorm_base::histogram::Histogram;
use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::Load;
use wirestorm_model::program::{Comparison, TimeVariable, UserCounter, Variable};
use wirestorm_model::tcp::Settings;
use wirestorm_sim::memory::{MemoryReceive, MemoryTransmit, WireOptions, wire};
use wirestorm_stack::endpoint::{Endpoint, Role, Transport};
use wirestorm_stack::program::{Buffer, Buffers, Instruction};
use wirestorm_wire::checksum;
use wirestorm_wire::fragment::Fragments;

use super::world::{
    SECOND, STEP, World, client, endpoint, frames, pass_by, put, rate, server, template,
};

#[test]
fn each_template_has_an_exact_rate() {
    let roles = vec![
        client(
            "16.0.0.1",
            80,
            Load::Rate { rate: rate(1_000, SECOND), concurrent_max: None },
            None,
        ),
        client(
            "17.0.0.1",
            81,
            Load::Rate { rate: rate(7, Duration::from_secs(3)), concurrent_max: None },
            None,
        ),
        client(
            "2001:db8:1::1",
            82,
            Load::Rate { rate: rate(100, SECOND), concurrent_max: None },
            Some(50),
        ),
    ];
    let mut world = World::new(roles, 0);
    world.run(Duration::from_secs(3), |now, client| {
        let millis = now.as_nanos() / 1_000_000;
        let sevenths = now.as_nanos() * 7 / 3_000_000_000;
        let expected = 1 + millis + 1 + sevenths + (1 + millis / 10).min(50);
        assert_eq!(client.tcp().connattempt, expected, "at {now:?}");
    });
    world.assert_over(3_000 + 7 + 50);
}

#[test]
fn poisson_arrivals_have_the_rate_and_exponential_intervals() {
    let load = Load::Poisson { rate: rate(1_000, SECOND), concurrent_max: None };
    let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 0);
    let (mut before, mut in_step) = (0, [0_u64; 5]);
    world.run(Duration::from_secs(20), |_, client| {
        let connects = client.tcp().connattempt - before;
        before = client.tcp().connattempt;
        in_step[(connects as usize).min(4)] += 1;
    });
    // 20,000 with a standard deviation of 141.
    assert!((19_400..20_600).contains(&before), "{before}");
    // A step is a tenth of the mean interval: exp(-0.1) = 0.905 of the steps have no arrival,
    // 0.0905 have one and 0.0045 have two.
    let share = |count: u64| count as f64 / 200_000.0;
    assert!((0.900..0.910).contains(&share(in_step[0])), "{in_step:?}");
    assert!((0.087..0.094).contains(&share(in_step[1])), "{in_step:?}");
    assert!((0.003..0.006).contains(&share(in_step[2])), "{in_step:?}");
    world.assert_over(before);
}

#[test]
fn hold_keeps_a_constant_number_of_flows() {
    let load = Load::Concurrent(20);
    let mut world = World::new(vec![client("16.0.0.1", 80, load, Some(500))], 50_000);
    world.run(SECOND, |now, client| {
        let flows = client.counters();
        assert_eq!(flows.active - flows.waiting, 20, "at {now:?}");
    });
    let times = world.client.times();
    // Each end polls its wire once per step; the server waits for 50 ms.
    let median = |of: &Histogram| of.quantile(0.5).unwrap().as_nanos() / 1_000;
    assert_eq!(times.connect.count(), world.client.tcp().connects);
    let connect = median(&times.connect);
    assert!((97..=100).contains(&connect), "{connect}");
    let first_byte = median(&times.time_to_first_byte);
    assert!((49_000..52_000).contains(&first_byte), "{first_byte}");
    // Two samples per connection: the SYN and the request.
    assert_eq!(times.round_trip.count(), world.client.tcp().rttupdated);
    let of_syn = times.round_trip.quantile(0.1).unwrap().as_nanos() / 1_000;
    assert!((97..=100).contains(&of_syn), "{of_syn}");
    // The duration excludes TIME-WAIT, which takes 10 ms.
    let duration = median(&times.duration);
    assert!((49_000..53_000).contains(&duration), "{duration}");
    let connects = world.client.tcp().connattempt;
    // 50 ms each; the 10 ms of TIME-WAIT delay no other connection.
    assert!((390..=400).contains(&connects), "{connects}");
    world.run(SECOND, |_, _| {});
    world.assert_over(500);
}

/// RFC 9293 section 3.7.1: "If an MSS Option is not received at connection setup, TCP
/// implementations MUST assume a default send MSS of 536 (576 - 40) for IPv4 or 1220 (1280 - 60)
/// for IPv6".
#[test]
fn peer_without_mss_option_gets_the_default_of_its_ip_version() {
    for (first, transport, longest) in [("16.0.0.1", 34, 590), ("2001:db8:1::1", 54, 1_294)] {
        let load = Load::Rate { rate: rate(100, SECOND), concurrent_max: None };
        let mut world = World::new(vec![client(first, 80, load, Some(5))], 0);
        let mut found = 0;
        for _ in 0..3_000 {
            world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
            pass_by(&mut world.up, |frame| {
                // Padding replaces the first option of the SYN, and the checksum is adjusted (RFC
                // 1624).
                if let Some(option) = frame.get_mut(transport + 20..transport + 24)
                    && option[..2] == [2, 4]
                {
                    let size = u16::from_be_bytes([option[2], option[3]]);
                    option.fill(1);
                    let checksum = &mut frame[transport + 16..transport + 18];
                    let before = u16::from_be_bytes([checksum[0], checksum[1]]);
                    let mut sum: u32 =
                        [!before, !0x0204, !size, 0x0101, 0x0101].map(u32::from).iter().sum();
                    while sum > 0xffff {
                        sum = (sum & 0xffff) + (sum >> 16);
                    }
                    checksum.copy_from_slice(&(!(sum as u16)).to_be_bytes());
                }
            });
            world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
            pass_by(&mut world.down, |frame| found = found.max(frame.len()));
            world.now += STEP;
        }
        assert_eq!(found, longest, "{first}");
        world.assert_over(5);
    }
}

#[test]
fn segments_fit_the_frame() {
    let roles = || {
        let load = Load::Rate { rate: rate(100, SECOND), concurrent_max: None };
        let port = |first, port| client(first, port, load, Some(5));
        vec![port("16.0.0.1", 80), port("2001:db8:1::1", 81)]
    };
    let mut world = World::new(roles(), 0);
    let mut longest = 0;
    for _ in 0..3_000 {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        pass_by(&mut world.down, |frame| longest = longest.max(frame.len()));
        world.now += STEP;
    }
    assert_eq!(longest, 1_514, "over both IP versions");
    world.assert_over(10);

    // A port that has no room even for the minimum packet that a peer may send.
    let mut world = World::new(roles(), 0);
    let options = WireOptions { frames: 16, frame_length_max: 60 };
    (world.up, world.down) = (wire(options), wire(options));
    world.run(SECOND, |_, _| {});
    assert_eq!(world.client.tcp().connects, 0);
    assert!(world.client.counters().too_long >= 10);
}

#[test]
fn tuple_is_reused_while_the_server_is_in_time_wait() {
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"page", 0, &[]));
    let asks = [Instruction::Send { buffer }, Instruction::WaitForPeerClose];
    // The server closes first, so it enters TIME-WAIT.
    let answers = [Instruction::Receive { bytes: 4, clear: false }];
    for timestamps in [true, false] {
        let mut role = client("16.0.0.1", 80, Load::Concurrent(1), Some(20));
        let Role::Client { tuples, .. } = &mut role else { unreachable!("it is one") };
        (tuples.clients.count, tuples.servers.count, tuples.client_ports) = (1, 1, 5_000..=5_000);
        let mut world = World::with(vec![], &buffers, &[], &[]);
        let of = |instructions: &[Instruction], role| {
            let mut template = template(instructions.to_vec(), role);
            let tcp = Settings { timestamps, time_wait_ms: 60_000, ..Settings::default() };
            template.transport = Transport::Tcp(tcp);
            template
        };
        world.client = endpoint(vec![of(&asks, role)], &buffers, 1);
        world.server = endpoint(vec![of(&answers, server(80))], &buffers, 2);
        world.run(SECOND, |_, _| {});
        let (client, server) = (world.client.counters(), world.server.counters());
        assert_eq!((client.closed, server.closed, server.active), (20, 19, 1));
        assert_eq!(world.client.tcp().rexmttimeo_syn, 0);
    }
}

#[test]
fn next_deadline_is_known() {
    let load = Load::Rate { rate: rate(10, SECOND), concurrent_max: None };
    let mut world = World::new(vec![client("16.0.0.1", 80, load, Some(3))], 0);
    assert_eq!(world.client.next(), Some(Instant::ZERO));
    assert_eq!(world.server.next(), None);
    world.run(Duration::from_millis(50), |_, _| {});
    assert_eq!(world.client.next(), Some(Instant::ZERO + Duration::from_millis(100)));
    world.assert_over(1);
    assert_eq!((world.client.next(), world.server.next()), (None, None));
}

#[test]
fn idle_connections_have_no_deadline() {
    let role = client("16.0.0.1", 80, Load::Concurrent(3), Some(3));
    let idle = [Instruction::Connect, Instruction::WaitForPeerClose];
    let mut world = World::with(vec![role], &Buffers::default(), &idle, &idle);
    world.run(Duration::from_millis(10), |_, _| {});
    assert_eq!(world.server.tcp().connects, 3);
    // The SYN timer, which would expire after a second, is off.
    assert_eq!((world.client.next(), world.server.next()), (None, None));
}

#[test]
fn programs_count_loop_and_measure_time() {
    use Instruction::*;
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"12345678", 0, &[]));
    let variable = |place| Variable::new(place).unwrap();
    let tick = |place| TimeVariable::new(place).unwrap();
    let statistic = |place| UserCounter::new(place).unwrap();
    let asks = [
        Set { variable: variable(0), value: 5 },
        SetTick { tick: tick(0) },
        // Instruction 2: five times.
        Send { buffer },
        Receive { bytes: 8, clear: true },
        Count { statistic: statistic(0), value: 10 },
        DecrementAndJump { variable: variable(0), to: 2 },
        // Instruction 6: while less than 200 ms have passed; 5 times 30 ms have passed.
        Send { buffer },
        Receive { bytes: 8, clear: true },
        Add { variable: variable(1), value: 3 },
        JumpWithin { tick: tick(0), millis: 200, to: 6 },
        JumpIf { variable: variable(1), comparison: Comparison::GreaterOrEqual, value: 6, to: 12 },
        Reset,
        CountSince { statistic: statistic(1), tick: tick(0), unit: NonZeroU16::MIN },
        CountSince { statistic: statistic(3), tick: tick(0), unit: NonZeroU16::new(10).unwrap() },
        AddTick { tick: tick(0), millis: 1_000 },
        CountSince { statistic: statistic(2), tick: tick(0), unit: NonZeroU16::MIN },
    ];
    let answers = [
        Receive { bytes: 8, clear: true },
        Delay { micros: 30_000 },
        Send { buffer },
        Jump { to: 0 },
    ];
    let role = client("16.0.0.1", 80, Load::Concurrent(1), Some(1));
    let mut world = World::with(vec![role], &buffers, &asks, &answers);
    world.run(SECOND, |_, _| {});
    let statistics = world.client.statistics();
    assert_eq!(statistics.get(statistic(0)), 50);
    // Seven times 30 ms, and up to a tick of 1 ms each.
    let took = statistics.get(statistic(1));
    assert!((210..230).contains(&took), "{took}");
    assert_eq!(statistics.get(statistic(3)), took / 10);
    assert_eq!(statistics.get(statistic(2)), 0, "the time has not come yet");
    assert_eq!(world.client.tcp().sndbyte, 7 * 8);
    // The server waits for data that never comes: its program ends, too.
    let [client, server] = [&world.client, &world.server].map(Endpoint::counters);
    assert_eq!((client.active, server.active), (0, 0));
    assert_eq!((client.closed, server.closed), (1, 1));
}

#[test]
fn data_is_retransmitted_after_the_program_went_on() {
    let mut buffers = Buffers::default();
    let pieces = [b"a".as_slice(), b"bcd", b"efghijklmnopqrst"];
    let mut asks = vec![Instruction::SendBlocking { waits: false }];
    asks.extend(
        pieces.map(|piece| Instruction::Send { buffer: buffers.push(Buffer::new(piece, 0, &[])) }),
    );
    let role = client("16.0.0.1", 80, Load::Concurrent(1), Some(1));
    let mut template = template(asks, role);
    template.transport = Transport::Tcp(Settings {
        no_delay: true,
        maximum_segment_size: 9_000,
        ..Settings::default()
    });
    let answers = [Instruction::Receive { bytes: 20, clear: false }];
    let mut world = World::with(vec![], &buffers, &[], &[]);
    world.client = endpoint(vec![template], &buffers, 1);
    let server = self::template(answers.to_vec(), server(80));
    world.server = endpoint(vec![server], &buffers, 2);
    // Run the handshake up to the server's SYN-ACK; all later frames are lost.
    world.run(STEP, |_, _| {});
    let mut sent = Vec::new();
    for _ in 0..4_000 {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        let mut batch = Vec::new();
        world.up.1.receive(64, &mut batch).unwrap();
        for received in batch {
            let frame = world.up.1.frame(&received);
            // Ethernet, IPv4, and TCP with timestamps.
            let is_last = frame[47] & 1 == 1;
            sent.push((String::from_utf8(frame[66..].to_vec()).unwrap(), is_last));
            world.up.1.release(received);
        }
        world.now += STEP;
    }
    // FIN leaves with the last data, because the program waits for nothing after it.
    let expected =
        [("a", false), ("bcd", false), ("efghijklmnopqrst", true), ("abcdefghijklmnopqrst", true)];
    assert_eq!(sent, expected.map(|(data, is_last)| (data.to_owned(), is_last)));
    world.run(Duration::from_secs(2), |_, _| {});
    assert_eq!((world.server.tcp().rcvbyte, world.client.counters().closed), (20, 1));
}

/// Acts as a router that fragments packets in spite of the "don't fragment" bit.
fn truncate_in_transit((transmit, receive): &mut (MemoryTransmit, MemoryReceive), mtu: usize) {
    let mut batch = Vec::new();
    receive.receive(64, &mut batch).unwrap();
    for (identification, received) in (0..).zip(batch) {
        let bytes = receive.frame(&received).to_vec();
        let (link, packet) = bytes.split_at(14);
        let mut fragments = Fragments::of(packet, mtu, identification).unwrap();
        loop {
            let frame = transmit.take().unwrap();
            let room = transmit.frame_mut(&frame);
            room[..14].copy_from_slice(link);
            match fragments.write_next(&mut room[14..]) {
                Some(length) => transmit.send(frame, 14 + length, Instant::ZERO),
                None => {
                    transmit.release(frame);
                    break;
                }
            }
        }
        receive.release(received);
    }
    transmit.flush().unwrap();
}

#[test]
fn fragmented_segments_are_reassembled() {
    for first in ["16.0.0.1", "2001:db8:1::1"] {
        let load = Load::Concurrent(1);
        let mut world = World::new(vec![client(first, 80, load, Some(1))], 0);
        while world.server.counters().closed == 0 {
            world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
            truncate_in_transit(&mut world.up, 576);
            world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
            truncate_in_transit(&mut world.down, 576);
            world.now += STEP;
            assert!(world.now < Instant::ZERO + SECOND, "{first}: it does not end");
        }
        assert!(world.client.unmatched().reassembled >= 4, "{:?}", world.client.unmatched());
        world.assert_over(1);
    }
}

/// RFC 9293 section 3.10.5 in SYN-SENT. A program that merely ends behaves differently
/// (docs/design/stack.md).
#[test]
fn reset_in_syn_sent_answers_a_late_syn_ack_with_rst() {
    let wait = Instruction::Delay { micros: 5_000 };
    let patient = [wait];
    let impatient = [wait, Instruction::Reset];
    for (asks, forgotten) in [(&patient[..], 0), (&impatient[..], 1)] {
        let role = client("16.0.0.1", 80, Load::Concurrent(1), Some(1));
        let mut world = World::with(vec![role], &Buffers::default(), asks, &[]);
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        world.now += Duration::from_millis(10);
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        assert_eq!(world.client.counters().active, 1 - forgotten);
        // The SYN was on the way for that long.
        world.run(SECOND, |_, _| {});
        let (ours, theirs) = (world.client.counters(), world.server.counters());
        assert_eq!((ours.aborted, ours.closed), (forgotten, 1 - forgotten));
        assert_eq!((theirs.refused, theirs.closed), (forgotten, 1 - forgotten));
        assert_eq!(world.client.unmatched().no_flow, forgotten);
        assert_eq!((ours.failed(), ours.active + theirs.active), (0, 0));
    }
}

/// RFC 8201 section 4: an MTU below the IPv6 minimum is discarded. The minimum of IPv4 is 68 bytes.
/// A router older than RFC 1191 reports no MTU.
#[test]
fn too_big_errors_below_the_minimum_mtu_are_bounded() {
    // The first segment has 1,460 or 1,440 bytes, with 10 bytes of options.
    let cases = [
        ("2001:db8:1::1", 1_279, 0),
        ("2001:db8:1::1", 0, 0),
        ("2001:db8:1::1", 1_280, 1_280),
        ("16.0.0.1", 1_200, 1_200),
        ("16.0.0.1", 0, 1_492),
        ("16.0.0.1", 1, 88),
    ];
    for (first, mtu, expected) in cases {
        let is_ipv6 = first.contains(':');
        let load = Load::Concurrent(1);
        let mut world = World::new(vec![client(first, 80, load, Some(1))], 0);
        let mut lost = Vec::new();
        while lost.is_empty() {
            world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
            world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
            for frame in frames(&mut world.down.1) {
                match frame.len() > 1_000 {
                    true => lost.push(frame),
                    false => put(&mut world.down.0, &frame),
                }
            }
            world.now += STEP;
        }
        let original = &lost[0][14..];
        let mut message = [&[3, 4, 0, 0], &u32::to_be_bytes(mtu)[..], &original[..100]].concat();
        let mut sum = 0;
        let ip = if is_ipv6 {
            message[0..2].copy_from_slice(&[2, 0]);
            let [router, server] = [[0xfc; 16], original[8..24].try_into().unwrap()];
            let length = message.len() as u32;
            sum = checksum::pseudo_header_ipv6(router, server, 58, length);
            [&[0x60, 0, 0, 0, 0, length as u8, 58, 64][..], &router, &server].concat()
        } else {
            let length = (20 + message.len()) as u8;
            let ip = [0x45, 0, 0, length, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 9];
            [&ip[..], &original[12..16]].concat()
        };
        let sum = !checksum::combine(sum, checksum::sum(&message));
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let ethernet = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], &lost[0][12..14]].concat();
        put(&mut world.up.0, &[ethernet, ip, message].concat());
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        let again = frames(&mut world.down.1);
        let longest = again.iter().map(|frame| frame.len() - 14).max().unwrap_or(0);
        assert_eq!(longest, expected, "{first}: {mtu}");
        let (unmatched, tcp) = (world.server.unmatched(), world.server.tcp());
        assert_eq!(
            (unmatched.too_big, tcp.mturesent),
            (1, u64::from(expected > 0)),
            "{first}: {mtu}"
        );
        assert_eq!(unmatched.other_protocol, 0);
    }
}
