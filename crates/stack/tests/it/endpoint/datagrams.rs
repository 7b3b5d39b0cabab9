//! UDP flows: their datagrams and their end.

use wirestorm_base::port::Receive;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::ip::Identification;
use wirestorm_model::load::Load;
use wirestorm_sim::memory::{WireOptions, wire};
use wirestorm_stack::endpoint::{Endpoint, Listen, Role, Template, Transport};
use wirestorm_stack::program::{Buffer, BufferId, Buffers, Contents, Instruction, Program};
use wirestorm_wire::checksum;

use super::world::{
    SECOND, STEP, World, client, frames, options, pass_by, put, rate, server, template,
};

fn datagrams(instructions: Vec<Instruction>, role: Role) -> Template {
    Template { transport: Transport::Udp, ..template(instructions, role) }
}

/// A request of 5 bytes, and a response of 1,000.
fn buffers() -> (Buffers, [BufferId; 2]) {
    let mut buffers = Buffers::default();
    let question = buffers.push(Buffer::new(b"query", 0, &[]));
    let answer = buffers.push(Buffer::new(b"answer", 1_000, &[]));
    (buffers, [question, answer])
}

fn send(buffer: BufferId) -> Instruction {
    Instruction::SendDatagram { buffer }
}

fn receive(count: u64) -> Instruction {
    Instruction::ReceiveDatagrams { count, clear: true }
}

fn once() -> Load {
    Load::Concurrent(1)
}

#[test]
fn requests_are_answered_over_both_ip_versions() {
    let (buffers, [question, answer]) = buffers();
    let asks = || vec![send(question), receive(1), send(question), receive(2)];
    let answers = || vec![receive(1), send(answer), receive(1), send(answer), send(answer)];
    let load = Load::Rate { rate: rate(100, SECOND), concurrent_max: None };
    let clients = vec![
        datagrams(asks(), client("16.0.0.1", 53, load, Some(50))),
        datagrams(asks(), client("2001:db8:1::1", 53, load, Some(50))),
    ];
    let mut world = World::of(clients, vec![datagrams(answers(), server(53))], &buffers);
    world.run(SECOND, |_, _| {});
    let [ours, theirs] = [&world.client, &world.server].map(Endpoint::udp);
    assert_eq!((ours.connects, ours.accepts, ours.closed), (100, 0, 100));
    assert_eq!((theirs.connects, theirs.accepts, theirs.closed), (0, 100, 100));
    assert_eq!((ours.sndpkt, ours.sndbyte), (200, 1_000));
    assert_eq!((theirs.rcvpkt, theirs.rcvbyte), (200, 1_000));
    assert_eq!((theirs.sndpkt, theirs.sndbyte), (300, 300_000));
    assert_eq!((ours.rcvpkt, ours.rcvbyte), (300, 300_000));
    assert_eq!(ours.keepdrops + theirs.keepdrops, 0);
    for endpoint in [&world.client, &world.server] {
        let flows = endpoint.counters();
        assert_eq!((flows.closed, flows.failed(), flows.active), (100, 0, 0));
        assert_eq!(endpoint.unmatched().malformed + endpoint.unmatched().no_flow, 0);
        assert_eq!(endpoint.times().duration.count(), 100);
    }
    // One step up, one down, and another one for the second request.
    let first_byte = world.client.times().time_to_first_byte.quantile(0.5).unwrap();
    assert!((97..=100).contains(&(first_byte.as_nanos() / 1_000)), "{first_byte:?}");
    assert!(world.client.is_done());
    assert_eq!(world.client.next(), None);
}

#[test]
fn datagram_checksum_is_never_zero() {
    // Data for which the checksum is zero, which is sent as all ones (RFC 768).
    let sums = |data: u16| {
        let mut buffers = Buffers::default();
        let buffer = buffers.push(Buffer::new(&data.to_be_bytes(), 0, &[]));
        let template = datagrams(vec![send(buffer)], client("16.0.0.1", 53, once(), Some(1)));
        let mut world = World::of(vec![template], vec![], &buffers);
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        let mut sum = 0;
        pass_by(&mut world.up, |frame| {
            let datagram = &frame[34..];
            assert_eq!(datagram.len(), 10);
            let addresses = |at: usize| frame[at..at + 4].try_into().unwrap();
            let pseudo_header = checksum::pseudo_header_ipv4(addresses(26), addresses(30), 17, 10);
            let all = checksum::combine(pseudo_header, checksum::sum(datagram));
            assert_eq!(all, 0xffff, "the checksum is valid");
            sum = u16::from_be_bytes([datagram[6], datagram[7]]);
        });
        sum
    };
    let plain = sums(0);
    assert_ne!(plain, 0);
    assert_eq!(sums(plain), 0xffff);
}

#[test]
fn one_port_serves_tcp_and_udp() {
    let (buffers, [question, answer]) = buffers();
    let load = Load::Rate { rate: rate(100, SECOND), concurrent_max: None };
    let stream = |bytes| Instruction::Receive { bytes, clear: true };
    let write = |buffer| Instruction::Send { buffer };
    let clients = vec![
        datagrams(vec![send(question), receive(1)], client("16.0.0.1", 53, load, Some(30))),
        template(vec![write(question), stream(1_000)], client("16.0.0.1", 53, load, Some(20))),
    ];
    let servers = vec![
        template(vec![stream(5), write(answer)], server(53)),
        datagrams(vec![receive(1), send(answer)], server(53)),
    ];
    let mut world = World::of(clients, servers, &buffers);
    world.run(SECOND, |_, _| {});
    assert_eq!((world.client.udp().rcvbyte, world.client.tcp().rcvbyte), (30_000, 20_000));
    let closed = |endpoint: &Endpoint, place| endpoint.tally(place).unwrap().flows.closed;
    assert_eq!([0, 1].map(|it| closed(&world.client, it)), [30, 20]);
    assert_eq!([0, 1].map(|it| closed(&world.server, it)), [20, 30]);
}

#[test]
fn idle_flow_is_dropped() {
    let (buffers, [question, answer]) = buffers();
    let idle = |millis, receive_only| Instruction::SetIdle { millis, receive_only };
    let ticks = |count| {
        let again = [Instruction::Delay { micros: 80_000 }, send(question)];
        (0..count).flat_map(move |_| again)
    };
    let forever = receive(1_000_000);
    // Client program, whether the server answers each datagram, and the time in ms at which the
    // client drops the flow.
    let cases = [
        ("default of a second", vec![send(question), forever], false, Some(1_000)),
        ("configured timeout", vec![idle(300, false), send(question), forever], false, Some(300)),
        (
            "sent datagrams are traffic",
            [vec![idle(100, false)], ticks(5).collect(), vec![forever]].concat(),
            false,
            Some(500),
        ),
        (
            "or is not",
            [vec![idle(100, true)], ticks(5).collect(), vec![forever]].concat(),
            false,
            Some(100),
        ),
        (
            "received datagrams are traffic",
            [vec![idle(100, true)], ticks(5).collect(), vec![forever]].concat(),
            true,
            Some(500),
        ),
        (
            "a delay is no traffic",
            vec![idle(50, false), Instruction::Delay { micros: 90_000 }, send(question)],
            false,
            Some(50),
        ),
        ("never", vec![idle(0, false), send(question), forever], false, None),
    ];
    for (case, asks, is_answered, dropped) in cases {
        let client = datagrams(asks, client("16.0.0.1", 53, once(), Some(1)));
        let answers = match is_answered {
            true => vec![receive(1), send(answer), Instruction::Jump { to: 0 }],
            false => vec![receive(1_000_000)],
        };
        let mut world = World::of(vec![client], vec![datagrams(answers, server(53))], &buffers);
        let mut gone = None;
        world.run(Duration::from_secs(3), |now, client| {
            if client.counters().active == 0 && gone.is_none() {
                gone = Some(now.as_nanos() / 1_000_000);
            }
        });
        match dropped {
            Some(dropped) => {
                let gone = gone.expect(case);
                assert!((dropped..dropped + 5).contains(&gone), "{case}: {gone}");
                assert_eq!(
                    (world.client.udp().keepdrops, world.client.counters().idle_timeout),
                    (1, 1)
                );
            }
            None => assert_eq!((gone, world.client.udp().keepdrops), (None, 0), "{case}"),
        }
        assert_eq!(world.client.counters().closed, 0, "{case}");
    }
}

#[test]
fn unmatched_datagrams_are_counted() {
    let (buffers, [question, _]) = buffers();
    let client = datagrams(vec![send(question)], client("16.0.0.1", 53, once(), Some(3)));
    let server = datagrams(vec![receive(1)], server(54));
    let mut world = World::of(vec![client], vec![server], &buffers);
    world.run(SECOND, |_, _| {});
    assert_eq!((world.client.udp().sndpkt, world.client.counters().closed), (3, 3));
    assert_eq!((world.server.unmatched().no_flow, world.server.udp().accepts), (3, 0));
}

#[test]
fn datagram_to_a_closed_port_gets_port_unreachable() {
    let (buffers, [question, _]) = buffers();
    for (first, longest) in [("16.0.0.1", 576), ("2001:db8:1::1", 1_280)] {
        let mut buffers = buffers.clone();
        let long = buffers.push(Buffer::new(b"", 1_400, &[]));
        for (request, length) in [(question, None), (long, Some(longest))] {
            let client =
                datagrams(vec![send(request), receive(1)], client(first, 53, once(), Some(1)));
            let mut world = World::of(vec![client], vec![datagrams(vec![], server(54))], &buffers);
            let mut answered = Vec::new();
            for _ in 0..3 {
                world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
                world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
                pass_by(&mut world.down, |frame| answered.push(frame.len() - 14));
                world.now += STEP;
            }
            // The IP header, 8 bytes of ICMP, and the packet with both of its headers.
            let short = if first.contains(':') { 40 + 8 + 40 + 8 + 5 } else { 20 + 8 + 20 + 8 + 5 };
            assert_eq!(answered, [length.unwrap_or(short)], "{first}");
            let (flows, unmatched) = (world.client.counters(), world.client.unmatched());
            assert_eq!((flows.refused, flows.failed(), flows.active), (1, 1, 0), "{first}");
            assert_eq!((unmatched.unreachable, world.server.unmatched().unreachable_sent), (1, 1));
            assert_eq!((world.server.unmatched().no_flow, unmatched.malformed), (1, 0));
        }
    }
}

#[test]
fn foreign_and_multicast_datagrams_get_no_icmp_error() {
    let (buffers, [question, _]) = buffers();
    let of_others = "48.0.1.0".parse().unwrap();
    let elsewhere = Some(AddressRange { first: of_others, count: 256 });
    let listen = Listen { addresses: elsewhere, ..Listen::at(53) };
    type Change = fn(&mut [u8]);
    let cases: [(Listen, Change); 4] = [
        (listen, |_| {}),
        (Listen::at(54), |frame| frame[0] |= 1),
        (Listen::at(54), |frame| frame[30..34].copy_from_slice(&[239, 1, 2, 3])),
        (Listen::at(54), |frame| frame[26..30].fill(0)),
    ];
    for (case, (listen, change)) in cases.into_iter().enumerate() {
        let client = datagrams(vec![send(question)], client("16.0.0.1", 53, once(), Some(1)));
        let server = datagrams(vec![], Role::Server { listen });
        let mut options = options(vec![server], &buffers, 1);
        options.verifies_checksums = false;
        let mut world = World::of(vec![client], vec![], &buffers);
        world.server = Endpoint::new(options, world.now);
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        pass_by(&mut world.up, change);
        world.run(STEP, |_, _| {});
        let unmatched = world.server.unmatched();
        let counted = [unmatched.no_flow, unmatched.foreign_mac, unmatched.martian];
        let expected = [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]][case];
        assert_eq!((counted, unmatched.unreachable_sent), (expected, 0), "case {case}");
    }
}

/// RFC 768: a source port of zero means that the sender expects no reply.
#[test]
fn datagram_from_port_zero_is_not_answered() {
    for (client_at, port) in [("16.0.0.1", 34), ("2001:db8:1::1", 54)] {
        // With and without a listener.
        for listens in [53, 54] {
            let (buffers, [question, answer]) = buffers();
            let asks = vec![send(question), receive(1)];
            let client = datagrams(asks, client(client_at, 53, once(), Some(1)));
            let answers = datagrams(vec![receive(1), send(answer)], server(listens));
            let mut options = options(vec![answers], &buffers, 1);
            options.verifies_checksums = false;
            let mut world = World::of(vec![client], vec![], &buffers);
            world.server = Endpoint::new(options, world.now);
            world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
            pass_by(&mut world.up, |frame| frame[port..port + 2].fill(0));
            world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
            assert_eq!(frames(&mut world.down.1), [[0; 0]; 0], "{client_at}, {listens}");
            let (unmatched, flows) = (world.server.unmatched(), world.server.counters());
            assert_eq!((unmatched.martian, flows.active + flows.closed), (1, 0), "{client_at}");
        }
    }
}

#[test]
fn datagram_without_checksum_is_accepted_over_ipv4_only() {
    for verifies in [true, false] {
        for (client_at, sum, expected) in [("16.0.0.1", 40, 1), ("2001:db8:1::1", 60, 0)] {
            let (buffers, [question, _]) = buffers();
            let client = datagrams(vec![send(question)], client(client_at, 53, once(), Some(1)));
            let mut options = options(vec![datagrams(vec![], server(53))], &buffers, 1);
            options.verifies_checksums = verifies;
            let mut world = World::of(vec![client], vec![], &buffers);
            world.server = Endpoint::new(options, world.now);
            world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
            pass_by(&mut world.up, |frame| frame[sum..sum + 2].fill(0));
            world.run(STEP, |_, _| {});
            let taken = world.server.tally(0).unwrap().udp.accepts;
            assert_eq!(taken, expected, "{client_at}, {verifies}");
        }
    }
}

#[test]
fn icmp_errors_are_rate_limited() {
    let (buffers, [question, _]) = buffers();
    let asks = vec![send(question); 200];
    let client = datagrams(asks, client("16.0.0.1", 53, once(), Some(1)));
    let mut world = World::of(vec![client], vec![datagrams(vec![], server(54))], &buffers);
    world.run(STEP, |_, _| {});
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    let mut received = 0;
    while received < 200 {
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        received = world.server.unmatched().no_flow;
    }
    assert_eq!(world.server.unmatched().unreachable_sent, 50);
}

#[test]
fn too_long_datagrams_are_counted() {
    // Headers of IPv4 and UDP and 65,507 bytes are 65,535; the length field of IPv6 excludes its
    // header.
    for (first, longest) in [("16.0.0.1", 65_507), ("2001:db8:1::1", 65_527)] {
        let mut buffers = Buffers::default();
        let sizes = [longest, longest + 1, 70_000];
        let asks = sizes.map(|size| send(buffers.push(Buffer::new(b"", size, &[]))));
        let client = datagrams(asks.to_vec(), client(first, 53, once(), Some(1)));
        let mut world = World::of(vec![client], vec![], &buffers);
        world.run(STEP, |_, _| {});
        let udp = world.client.udp();
        assert_eq!((udp.sndpkt, udp.sndbyte, udp.pkt_toobig), (1, longest.into(), 2), "{first}");
        assert_eq!(udp.fragmented, 1);
    }
}

#[test]
fn identifications_are_consecutive_over_all_datagrams() {
    let mut buffers = Buffers::default();
    // One of these datagrams leaves in fragments, and one does not leave.
    let sizes = [10, 3_000, 10, 70_000, 10];
    let asks = sizes.map(|size| send(buffers.push(Buffer::new(b"", size, &[]))));
    let mut client = datagrams(asks.to_vec(), client("16.0.0.1", 53, once(), Some(1)));
    client.ip.identification = Identification::Counting;
    let mut world = World::of(vec![client], vec![], &buffers);
    world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
    let frames = frames(&mut world.up.1);
    let numbers: Vec<_> = frames.iter().map(|it| u16::from_be_bytes([it[18], it[19]])).collect();
    let first = numbers[0];
    assert_eq!(numbers, [0, 1, 1, 1, 2, 3].map(|behind| first.wrapping_add(behind)));
}

#[test]
fn long_datagrams_are_fragmented() {
    // A packet of 1,500 bytes has an IPv4 header, or an IPv6 and a fragment header. It holds 1,480
    // or 1,448 bytes of a datagram, which starts with a header of 8 bytes.
    for (first, unfragmented_max, in_one) in
        [("16.0.0.1", 1_472, 1_480), ("2001:db8:1::1", 1_452, 1_448)]
    {
        for size in [unfragmented_max, unfragmented_max + 1, 20_000] {
            let mut buffers = Buffers::default();
            let buffer = buffers.push(Buffer::new(b"long", size, &[]));
            let asks = vec![send(buffer), receive(2)];
            let answers = vec![receive(1), send(buffer), send(buffer)];
            let client = datagrams(asks, client(first, 53, once(), Some(1)));
            let server = datagrams(answers, server(53));
            let mut world = World::of(vec![client], vec![server], &buffers);
            world.run(SECOND, |_, _| {});
            let case = format!("{size} bytes from {first}");
            let pieces =
                if size == unfragmented_max { 0 } else { (u64::from(size) + 8).div_ceil(in_one) };
            let is_cut = u64::from(pieces > 0);
            for (endpoint, datagrams) in [(&world.client, [1, 2]), (&world.server, [2, 1])] {
                let (udp, unmatched) = (endpoint.udp(), endpoint.unmatched());
                let [sent, received] = datagrams;
                assert_eq!((udp.sndpkt, udp.rcvpkt), (sent, received), "{case}");
                assert_eq!(udp.rcvbyte, received * u64::from(size), "{case}");
                assert_eq!(udp.fragmented, sent * is_cut, "{case}");
                assert_eq!(unmatched.fragments, received * pieces, "{case}");
                assert_eq!(unmatched.reassembled, received * is_cut, "{case}");
                assert_eq!((unmatched.malformed, endpoint.counters().closed), (0, 1), "{case}");
            }
        }
    }
}

#[test]
fn damaged_and_missing_fragments_are_counted() {
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"long", 2_000, &[]));
    let sent = || {
        let client = datagrams(vec![send(buffer)], client("16.0.0.1", 53, once(), Some(1)));
        let server = datagrams(vec![receive(1)], server(53));
        let mut world = World::of(vec![client], vec![server], &buffers);
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        let frames = frames(&mut world.up.1);
        assert_eq!(frames.len(), 2);
        (world, frames)
    };
    let (mut world, frames) = sent();
    put(&mut world.up.0, &frames[0]);
    let mut damaged = frames[1].clone();
    damaged[20] ^= 1;
    put(&mut world.up.0, &damaged);
    world.run(STEP, |_, _| {});
    assert_eq!((world.server.unmatched().fragments, world.server.unmatched().malformed), (1, 1));
    assert_eq!((world.server.unmatched().fragments_incomplete, world.server.udp().rcvpkt), (1, 0));
    // After a minute the other fragment belongs to another packet.
    world.now += Duration::from_secs(60);
    world.run(STEP, |_, _| {});
    put(&mut world.up.0, &frames[1]);
    world.run(STEP, |_, _| {});
    let unmatched = world.server.unmatched();
    assert_eq!((unmatched.fragments_incomplete, unmatched.reassembled), (2, 0));
    put(&mut world.up.0, &frames[0]);
    world.run(STEP, |_, _| {});
    let unmatched = world.server.unmatched();
    assert_eq!((unmatched.fragments_incomplete, unmatched.reassembled), (1, 1));

    // Damage in a fragmented datagram is detected after reassembly.
    let (mut world, mut frames) = sent();
    *frames[1].last_mut().unwrap() ^= 1;
    frames.iter().for_each(|frame| put(&mut world.up.0, frame));
    world.run(STEP, |_, _| {});
    let unmatched = world.server.unmatched();
    assert_eq!((unmatched.reassembled, unmatched.malformed), (1, 1));

    // Fragments that overlap with different content.
    let (mut world, frames) = sent();
    let mut other = frames[0].clone();
    other[100] ^= 1;
    for frame in [&frames[0], &other, &frames[1]] {
        put(&mut world.up.0, frame);
    }
    world.run(STEP, |_, _| {});
    let unmatched = world.server.unmatched();
    assert_eq!(
        (unmatched.fragments, unmatched.fragments_overlapping, unmatched.reassembled),
        (3, 1, 0)
    );
}

/// Delivers some of the two fragments of a client's datagram, changed. Returns the packets that the
/// server sends within a minute, and the first fragment.
fn answers_to_parts(
    first: &str,
    arriving: &[usize],
    change: impl Fn(&mut [u8]),
) -> (Vec<Vec<u8>>, Vec<u8>, World) {
    const LINK: usize = 14;
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"long", 2_000, &[]));
    let client = datagrams(vec![send(buffer)], client(first, 53, once(), Some(1)));
    let server = datagrams(vec![receive(1)], server(53));
    let mut world = World::of(vec![client], vec![server], &buffers);
    world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
    let mut sent = frames(&mut world.up.1);
    assert_eq!(sent.len(), 2);
    for frame in &mut sent {
        change(frame);
    }
    arriving.iter().for_each(|which| put(&mut world.up.0, &sent[*which]));
    let mut answered = Vec::new();
    let mut due = Instant::ZERO;
    for _ in 0..2 {
        world.server.breathe(due, &mut world.down.0, &mut world.up.1).unwrap();
        answered.extend(frames(&mut world.down.1));
        // There is no answer before a minute has passed, which is the endpoint's next deadline.
        if due == Instant::ZERO {
            assert_eq!(answered.len(), 0);
            due = world.server.next().unwrap_or(Instant::ZERO + Duration::from_secs(60));
            assert_eq!(due, Instant::ZERO + Duration::from_secs(60));
        }
    }
    let cut = |frame: &[u8]| frame[LINK..].to_vec();
    (answered.iter().map(|frame| cut(frame)).collect(), cut(&sent[0]), world)
}

#[test]
fn incomplete_reassembly_sends_time_exceeded() {
    // The IP header, 8 bytes of ICMP, and as much of the fragment as fits into 576 or 1,280 bytes.
    for (first, ip, longest, kind) in [("16.0.0.1", 20, 576, 11), ("2001:db8:1::1", 40, 1_280, 3)] {
        let (answered, fragment, world) = answers_to_parts(first, &[0], |_| {});
        let [answer] = &answered[..] else { panic!("{first}: {answered:?}") };
        assert_eq!(answer.len(), longest, "{first}");
        let (header, message) = answer.split_at(ip);
        assert_eq!(message[..2], [kind, 1], "{first}");
        assert_eq!(message[4..8], [0; 4], "{first}");
        assert_eq!(message[8..], fragment[..longest - ip - 8], "{first}");
        let sum = match first.contains(':') {
            false => 0,
            true => checksum::pseudo_header_ipv6(
                header[8..24].try_into().unwrap(),
                header[24..40].try_into().unwrap(),
                58,
                message.len() as u32,
            ),
        };
        assert_eq!(checksum::combine(sum, checksum::sum(message)), 0xffff, "{first}");
        let (from, to) = if ip == 20 { (12..16, 16..20) } else { (8..24, 24..40) };
        assert_eq!(header[from.clone()], fragment[to.clone()]);
        assert_eq!(header[to], fragment[from]);
        let unmatched = world.server.unmatched();
        assert_eq!(
            (unmatched.time_exceeded_sent, unmatched.fragments_incomplete),
            (1, 1),
            "{first}"
        );
    }
}

#[test]
fn no_time_exceeded_without_the_first_fragment_or_for_foreign_packets() {
    fn mend(frame: &mut [u8]) {
        frame[24..26].fill(0);
        let sum = checksum::checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    type Change = fn(&mut [u8]);
    let changes: [(&[usize], Change); 4] = [
        (&[1], |_| {}),
        // To an Ethernet group, and to an IP group.
        (&[0], |frame| frame[0] |= 1),
        (&[0], |frame| {
            frame[30..34].copy_from_slice(&[239, 1, 2, 3]);
            mend(frame);
        }),
        // An ICMP error.
        (&[0], |frame| {
            (frame[23], frame[34]) = (1, 3);
            mend(frame);
        }),
    ];
    for (case, (arriving, change)) in changes.into_iter().enumerate() {
        let (answered, _, world) = answers_to_parts("16.0.0.1", arriving, change);
        let unmatched = world.server.unmatched();
        assert_eq!((answered.len(), unmatched.fragments_incomplete), (0, 1), "case {case}");
        assert_eq!((unmatched.time_exceeded_sent, unmatched.malformed), (0, 0), "case {case}");
    }
}

#[test]
fn datagram_leaves_only_if_there_are_frames_for_all_fragments() {
    // 32 frames exist; each datagram needs 14 of them.
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"", 20_000, &[]));
    let asking =
        |times| datagrams(vec![send(buffer); times], client("16.0.0.1", 53, once(), Some(1)));
    let server = datagrams(vec![receive(5)], server(53));
    let mut world = World::of(vec![asking(5)], vec![server], &buffers);
    world.up = wire(WireOptions { frames: 32, frame_length_max: 1_514 });
    world.run(SECOND, |_, _| {});
    assert_eq!((world.client.udp().sndpkt, world.client.udp().pkt_toobig), (5, 0));
    assert_eq!((world.server.udp().rcvpkt, world.server.unmatched().fragments), (5, 70));
    // 12 frames are never enough.
    let mut world = World::of(vec![asking(1)], vec![], &buffers);
    world.up = wire(WireOptions { frames: 12, frame_length_max: 1_514 });
    world.run(SECOND, |_, _| {});
    assert_eq!((world.client.udp().sndpkt, world.client.udp().pkt_toobig), (0, 1));
}

#[test]
fn endless_program_leaves_time_for_other_flows() {
    let (buffers, [question, _]) = buffers();
    let storm = vec![send(question), Instruction::Jump { to: 0 }];
    let clients = vec![
        datagrams(storm, client("16.0.0.1", 53, once(), Some(1))),
        datagrams(vec![send(question)], client("17.0.0.1", 54, once(), Some(1))),
    ];
    let mut world = World::of(clients, vec![], &buffers);
    for _ in 0..100 {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        let mut batch = Vec::new();
        world.up.1.receive(1_000, &mut batch).unwrap();
        batch.into_iter().for_each(|received| world.up.1.release(received));
        world.now += STEP;
    }
    assert!(world.client.udp().sndpkt > 10_000);
    assert_eq!(world.client.tally(1).unwrap().flows.closed, 1);
}

#[test]
fn damaged_datagrams_are_counted() {
    let (buffers, [question, _]) = buffers();
    let client =
        datagrams(vec![send(question)], client("16.0.0.1", 53, Load::Concurrent(3), Some(3)));
    let mut world =
        World::of(vec![client], vec![datagrams(vec![receive(1)], server(53))], &buffers);
    world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
    let mut count = 0;
    pass_by(&mut world.up, |frame| {
        // A wrong checksum; no checksum and a length beyond the end; no checksum and a length below
        // that of the header.
        let changes: &[(usize, u8)] = match count {
            0 => &[(44, 0)],
            1 => &[(40, 0), (41, 0), (39, 14)],
            _ => &[(40, 0), (41, 0), (39, 7)],
        };
        changes.iter().for_each(|&(place, value)| frame[place] = value);
        count += 1;
    });
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    assert_eq!((count, world.server.unmatched().malformed), (3, 3));
    assert_eq!(world.server.udp().rcvpkt, 0);
}

#[test]
fn flows_that_end_at_once_are_replaced_in_the_next_iteration() {
    let (buffers, [question, _]) = buffers();
    let load = Load::Concurrent(3);
    let client = datagrams(vec![send(question)], client("16.0.0.1", 53, load, None));
    let mut world = World::of(vec![client], vec![], &buffers);
    for iteration in 1..=5 {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        assert_eq!(world.client.counters().closed, 3 * iteration);
        assert_eq!(world.client.next(), Some(Instant::ZERO));
        world.now += STEP;
    }
}

#[test]
fn extra_datagrams_start_the_next_flow() {
    let (buffers, [question, answer]) = buffers();
    let asks: Vec<_> = [send(question); 6].into_iter().chain([receive(3)]).collect();
    let keep = Instruction::ReceiveDatagrams { count: 2, clear: false };
    // A flow that leaves a datagram in its buffer would find it again forever.
    for (begin, accepts) in [(vec![receive(2)], 3), (vec![keep], 1), (vec![], 1)] {
        let answers: Vec<_> = begin.into_iter().chain([send(answer)]).collect();
        let contents = Contents { examines_datagrams: true, ..Contents::default() };
        let program = Program::with_contents(answers, contents).unwrap();
        let server = Template { program, ..datagrams(vec![], server(53)) };
        let client = datagrams(asks.clone(), client("16.0.0.1", 53, once(), Some(1)));
        let mut world = World::of(vec![client], vec![server], &buffers);
        world.run(SECOND, |_, _| {});
        let udp = world.server.udp();
        assert_eq!((udp.accepts, udp.closed), (accepts, accepts));
        assert_eq!((udp.rcvpkt, udp.sndpkt), (6, accepts));
    }
}
