//! Flows of UDP: what they say, and when they end.

use wirestorm_base::port::Receive;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_stack::endpoint::{Endpoint, Load, Role, Template, Transport};
use wirestorm_stack::program::{Buffer, BufferId, Buffers, Instruction};
use wirestorm_wire::checksum;

use crate::world::{SECOND, STEP, World, client, pass_by, rate, server, template};

fn datagrams(instructions: Vec<Instruction>, role: Role) -> Template {
    Template { transport: Transport::Udp, ..template(instructions, role) }
}

/// A question of 5 bytes, and an answer of 1,000.
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
    Load::Hold { flows: 1 }
}

#[test]
fn questions_are_answered_over_either_version_of_ip() {
    let (buffers, [question, answer]) = buffers();
    let asks = || vec![send(question), receive(1), send(question), receive(2)];
    let answers = || vec![receive(1), send(answer), receive(1), send(answer), send(answer)];
    let load = Load::Constant { rate: rate(100, SECOND) };
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
        assert_eq!(endpoint.strays().damaged + endpoint.strays().no_flow, 0);
        assert_eq!(endpoint.times().whole.count(), 100);
    }
    // One step up, one down, and one more for the second question.
    let first_byte = world.client.times().first_byte.quantile(0.5).unwrap();
    assert!((97..=100).contains(&(first_byte.as_nanos() / 1_000)), "{first_byte:?}");
    assert!(world.client.is_done());
    assert_eq!(world.client.next(), None);
}

#[test]
fn the_sum_of_a_datagram_is_never_left_out() {
    // Data whose sum makes that of the datagram zero, which is sent as all ones (RFC 768).
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
            assert_eq!(all, 0xffff, "a receiver finds it right");
            sum = u16::from_be_bytes([datagram[6], datagram[7]]);
        });
        sum
    };
    let plain = sums(0);
    assert_ne!(plain, 0);
    assert_eq!(sums(plain), 0xffff);
}

#[test]
fn one_port_serves_both_transports() {
    let (buffers, [question, answer]) = buffers();
    let load = Load::Constant { rate: rate(100, SECOND) };
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
fn a_flow_without_traffic_is_dropped() {
    let (buffers, [question, answer]) = buffers();
    let idle = |millis, receive_only| Instruction::SetIdle { millis, receive_only };
    let ticks = |count| {
        let again = [Instruction::Delay { micros: 80_000 }, send(question)];
        (0..count).flat_map(move |_| again)
    };
    let forever = receive(1_000_000);
    // What the client does, whether the server answers each datagram, and when the client's flow
    // is dropped, in ms.
    let cases = [
        ("a second, unless it is said", vec![send(question), forever], false, Some(1_000)),
        ("as it is said", vec![idle(300, false), send(question), forever], false, Some(300)),
        (
            "what it sends is traffic",
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
            "what arrives is",
            [vec![idle(100, true)], ticks(5).collect(), vec![forever]].concat(),
            true,
            Some(500),
        ),
        (
            "a delay is none",
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
                assert_eq!((world.client.udp().keepdrops, world.client.counters().idle), (1, 1));
            }
            None => assert_eq!((gone, world.client.udp().keepdrops), (None, 0), "{case}"),
        }
        assert_eq!(world.client.counters().closed, 0, "{case}");
    }
}

#[test]
fn a_datagram_of_nobody_is_told() {
    let (buffers, [question, _]) = buffers();
    let client = datagrams(vec![send(question)], client("16.0.0.1", 53, once(), Some(3)));
    let server = datagrams(vec![receive(1)], server(54));
    let mut world = World::of(vec![client], vec![server], &buffers);
    world.run(SECOND, |_, _| {});
    assert_eq!((world.client.udp().sndpkt, world.client.counters().closed), (3, 3));
    assert_eq!((world.server.strays().no_flow, world.server.udp().accepts), (3, 0));
}

#[test]
fn a_datagram_that_fits_no_frame_is_told() {
    let mut buffers = Buffers::default();
    // 1,514 bytes are an Ethernet, an IPv4 and a UDP header, and 1,472 of data.
    let asks = [1_472, 1_473, 70_000].map(|size| send(buffers.push(Buffer::new(b"", size, &[]))));
    let client = datagrams(asks.to_vec(), client("16.0.0.1", 53, once(), Some(1)));
    let mut world = World::of(vec![client], vec![], &buffers);
    world.run(STEP, |_, _| {});
    let udp = world.client.udp();
    assert_eq!((udp.sndpkt, udp.sndbyte, udp.pkt_toobig), (1, 1_472, 2));
}

#[test]
fn a_program_without_end_leaves_room_for_others() {
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
fn damaged_datagrams_are_told() {
    let (buffers, [question, _]) = buffers();
    let client =
        datagrams(vec![send(question)], client("16.0.0.1", 53, Load::Hold { flows: 3 }, Some(3)));
    let mut world =
        World::of(vec![client], vec![datagrams(vec![receive(1)], server(53))], &buffers);
    world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
    let mut count = 0;
    pass_by(&mut world.up, |frame| {
        // A wrong sum; none at all, and a length beyond the end; and none, and one that is less
        // than that of its header.
        let changes: &[(usize, u8)] = match count {
            0 => &[(44, 0)],
            1 => &[(40, 0), (41, 0), (39, 14)],
            _ => &[(40, 0), (41, 0), (39, 7)],
        };
        changes.iter().for_each(|&(place, value)| frame[place] = value);
        count += 1;
    });
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    assert_eq!((count, world.server.strays().damaged), (3, 3));
    assert_eq!(world.server.udp().rcvpkt, 0);
}

#[test]
fn flows_that_are_over_at_once_are_made_again_in_the_next_breath() {
    let (buffers, [question, _]) = buffers();
    let load = Load::Hold { flows: 3 };
    let client = datagrams(vec![send(question)], client("16.0.0.1", 53, load, None));
    let mut world = World::of(vec![client], vec![], &buffers);
    for breath in 1..=5 {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        assert_eq!(world.client.counters().closed, 3 * breath);
        assert_eq!(world.client.next(), Some(Instant::ZERO));
        world.now += STEP;
    }
}
