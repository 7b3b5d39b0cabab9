//! Datagrams with a time of departure, as in TRex's add-on `latency`.

use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::Load;
use wirestorm_stack::endpoint::{Endpoint, Role, StampedTimes, Template, Transport};
use wirestorm_stack::program::{Buffer, Buffers, Contents, Instruction, Program};
use wirestorm_wire::checksum;

use super::world::{SECOND, STEP, World, client, frames, pass_by, put, server, template};

/// Magic number of TRex's servers of the first template.
const SOURCE: u32 = 0x1234_5678;

/// Bytes before the data of a datagram, over Ethernet and IPv4.
const HEADERS: usize = 14 + 20 + 8;

fn plain(instructions: Vec<Instruction>, role: Role) -> Template {
    Template { transport: Transport::Udp, ..template(instructions, role) }
}

fn stamped(instructions: Vec<Instruction>, role: Role) -> Template {
    let template = plain(instructions, role);
    Template { program: template.program.stamped(SOURCE), ..template }
}

fn send(buffers: &mut Buffers, text: &[u8], size: u32) -> Instruction {
    Instruction::SendDatagram { buffer: buffers.push(Buffer::new(text, size, &[])) }
}

fn receive(count: u64) -> Instruction {
    Instruction::ReceiveDatagrams { count, clear: true }
}

fn asking(first: &str) -> Role {
    client(first, 53, Load::Concurrent(1), Some(1))
}

fn times(endpoint: &Endpoint) -> &StampedTimes {
    endpoint.tally(0).unwrap().stamped.as_deref().unwrap()
}

/// Header of a datagram in TRex's format.
fn header(sequence: u16, micros: u32) -> Vec<u8> {
    let sequence = sequence.to_be_bytes();
    [&[0, 0], &sequence[..], &micros.to_be_bytes(), &SOURCE.to_be_bytes()].concat()
}

#[test]
fn first_sender_writes_its_time_and_the_peer_returns_it() {
    let mut buffers = Buffers::default();
    let [ask, answer] = [send(&mut buffers, b"ask", 0), send(&mut buffers, b"answer", 0)];
    let asks = vec![ask, receive(1), ask, receive(2)];
    let answers = vec![receive(1), answer, receive(1), answer, answer];
    let servers = vec![stamped(answers, server(53))];
    let mut world = World::of(vec![stamped(asks, asking("16.0.0.1"))], servers, &buffers);
    // The microseconds wrap.
    let start = (1 << 32) - 150;
    world.now = Instant::ZERO + Duration::from_micros(start);
    let end = world.now + SECOND;
    let (mut requests, mut answered) = (Vec::new(), Vec::new());
    while world.now < end {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        pass_by(&mut world.up, |frame| requests.push(frame[HEADERS..].to_vec()));
        world.now += STEP;
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        pass_by(&mut world.down, |frame| answered.push(frame[HEADERS..].to_vec()));
        world.now += STEP;
    }
    let headers = [header(0, start as u32), header(1, 50)];
    let with_header = |header: &Vec<u8>, text: &[u8]| [header, text].concat();
    assert_eq!(requests, [0, 1].map(|it| with_header(&headers[it], b"ask")));
    assert_eq!(answered, [0, 1, 1].map(|it| with_header(&headers[it], b"answer")));
    for (endpoint, count, micros) in [(&world.client, 3, 200), (&world.server, 2, 100)] {
        let times = times(endpoint);
        assert_eq!((times.times.count(), times.total_micros), (count, count * micros));
        assert_eq!(times.min, Some(Duration::from_micros(micros)));
        assert_eq!(times.times.max(), Duration::from_micros(micros));
        assert_eq!(endpoint.counters().closed, 1);
    }
    // As in TRex, the header counts as sent data.
    let (ours, theirs) = (world.client.udp(), world.server.udp());
    assert_eq!((ours.sndbyte, theirs.rcvbyte), (2 * 15, 2 * 15));
    assert_eq!((theirs.sndbyte, ours.rcvbyte), (3 * 18, 3 * 18));
}

#[test]
fn minimum_and_maximum_latency_are_recorded() {
    let mut buffers = Buffers::default();
    let ask = send(&mut buffers, b"ask", 0);
    let pause = |micros| Instruction::Delay { micros };
    let asks = vec![ask, receive(1), ask, receive(1)];
    let answers = vec![receive(1), pause(5_000), ask, receive(1), pause(20_000), ask];
    let servers = vec![stamped(answers, server(53))];
    let mut world = World::of(vec![stamped(asks, asking("16.0.0.1"))], servers, &buffers);
    world.run(SECOND, |_, _| {});
    let times = times(&world.client);
    let (min, max) = (times.min.unwrap(), times.times.max());
    let near =
        |time: Duration, micros| (micros..micros + 2_000).contains(&(time.as_nanos() / 1_000));
    assert!(near(min, 5_000) && near(max, 20_000), "{min:?}, {max:?}");
    assert_eq!(times.total_micros, (min.as_nanos() + max.as_nanos()) / 1_000);
}

#[test]
fn datagrams_without_header_are_accepted_but_not_measured() {
    // Too short, an RTP packet, and data of a program without the add-on.
    let texts: [&[u8]; 4] = [b"", &[0; 11], &[0x80; 20], b"a question"];
    let mut buffers = Buffers::default();
    let answer = send(&mut buffers, b"answer", 0);
    for text in texts {
        let ask = send(&mut buffers, text, 0);
        let client = plain(vec![ask, receive(1)], asking("16.0.0.1"));
        let server = stamped(vec![receive(1), answer], server(53));
        let mut world = World::of(vec![client], vec![server], &buffers);
        world.run(SECOND, |_, _| {});
        let times = times(&world.server);
        assert_eq!((times.times.count(), times.total_micros, times.min), (0, 0, None));
        assert_eq!(world.server.udp().rcvbyte, text.len() as u64);
        // No client sent a time, so the answer has the server's.
        assert_eq!((world.client.udp().rcvpkt, world.client.udp().rcvbyte), (1, 12 + 6));
        assert!(world.client.tally(0).unwrap().stamped.is_none());
    }
}

/// Returns the first datagram of a flow with these instructions.
fn first_sent(buffers: &Buffers, template: Template) -> Vec<u8> {
    let mut world = World::of(vec![template], vec![], buffers);
    world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
    frames(&mut world.up.1).remove(0)
}

#[test]
fn answer_returns_the_time_of_the_last_stamped_datagram() {
    let mut buffers = Buffers::default();
    let [ask, answer] = [send(&mut buffers, b"ask", 0), send(&mut buffers, b"answer", 0)];
    let sent = first_sent(&buffers, stamped(vec![ask], asking("16.0.0.1")));
    let servers = vec![stamped(vec![receive(3), answer], server(53))];
    let mut world = World::of(vec![], servers, &buffers);
    // The last one is not TRex's, so the one before it is sent back.
    for (sequence, magic) in [(7, 0), (6, 0), (9, 0x80)] {
        let mut frame = sent.clone();
        frame[HEADERS..HEADERS + 12].copy_from_slice(&header(sequence, 0));
        frame[HEADERS] = magic;
        // No checksum.
        frame[40..42].fill(0);
        put(&mut world.up.0, &frame);
    }
    world.now += STEP;
    world.run(STEP, |_, _| {});
    let answered = frames(&mut world.down.1);
    assert_eq!(answered.len(), 1);
    assert_eq!(answered[0][HEADERS..], [&header(6, 0)[..], b"answer"].concat());
    assert_eq!((times(&world.server).times.count(), times(&world.server).total_micros), (2, 200));
}

/// Each side reads its clock when it starts to send and to receive, possibly while the other one
/// does.
#[test]
fn negative_latency_counts_as_zero() {
    let mut buffers = Buffers::default();
    let ask = send(&mut buffers, b"ask", 0);
    let servers = vec![stamped(vec![receive(2)], server(53))];
    let clients = vec![stamped(vec![ask, ask], asking("16.0.0.1"))];
    let mut world = World::of(clients, servers, &buffers);
    let received_at = Instant::ZERO + SECOND;
    let sent = received_at + Duration::from_micros(5);
    world.client.breathe(sent, &mut world.up.0, &mut world.down.1).unwrap();
    world.server.breathe(received_at, &mut world.down.0, &mut world.up.1).unwrap();
    let times = times(&world.server);
    assert_eq!((times.times.count(), times.total_micros), (2, 0));
    assert_eq!((times.min, times.times.max()), (Some(Duration::ZERO), Duration::ZERO));
}

#[test]
fn header_counts_in_sizes_and_checksums() {
    // The data that fits 1,500 bytes together with a header of 12, over IPv4 and IPv6.
    for (first, unfragmented_max) in [("16.0.0.1", 1_460), ("2001:db8:1::1", 1_440)] {
        for size in [5, 6, unfragmented_max, unfragmented_max + 1, 9_000] {
            let mut buffers = Buffers::default();
            let long = send(&mut buffers, b"long", size);
            let clients = vec![stamped(vec![long, receive(1)], asking(first))];
            let servers = vec![stamped(vec![receive(1), long], server(53))];
            let mut world = World::of(clients, servers, &buffers);
            world.run(SECOND, |_, _| {});
            for endpoint in [&world.client, &world.server] {
                let (udp, unmatched) = (endpoint.udp(), endpoint.unmatched());
                let case = format!("{size} bytes from {first}");
                assert_eq!((udp.rcvpkt, udp.rcvbyte), (1, u64::from(size) + 12), "{case}");
                assert_eq!(udp.fragmented, u64::from(size > unfragmented_max), "{case}");
                assert_eq!((unmatched.malformed, endpoint.counters().closed), (0, 1), "{case}");
                assert_eq!(times(endpoint).times.count(), 1, "{case}");
            }
        }
        // With the header it is too long for any packet.
        let longest = if first.contains(':') { 65_527 } else { 65_507 };
        for (size, is_too_long) in [(longest - 12, 0), (longest - 11, 1), (u32::MAX, 1)] {
            let mut buffers = Buffers::default();
            let long = send(&mut buffers, b"", size);
            let clients = vec![stamped(vec![long], asking(first))];
            let mut world = World::of(clients, vec![], &buffers);
            world.run(STEP, |_, _| {});
            assert_eq!(world.client.udp().pkt_toobig, is_too_long, "{size} bytes from {first}");
        }
    }
}

#[test]
fn checksum_of_a_stamped_datagram_is_correct() {
    let mut buffers = Buffers::default();
    let ask = send(&mut buffers, b"odd", 0);
    let frame = first_sent(&buffers, stamped(vec![ask], asking("16.0.0.1")));
    let datagram = &frame[34..];
    let addresses = |at: usize| frame[at..at + 4].try_into().unwrap();
    let length = datagram.len() as u16;
    assert_eq!(datagram[4..6], length.to_be_bytes());
    let pseudo_header = checksum::pseudo_header_ipv4(addresses(26), addresses(30), 17, length);
    assert_eq!(checksum::combine(pseudo_header, checksum::sum(datagram)), 0xffff);
}

#[test]
fn delayed_datagram_has_its_departure_time() {
    let mut buffers = Buffers::default();
    let ask = send(&mut buffers, b"ask", 0);
    let clients = vec![stamped(vec![ask; 400], asking("16.0.0.1"))];
    let mut world = World::of(clients, vec![], &buffers);
    let mut sent: Vec<Vec<u8>> = Vec::new();
    for _ in 0..10 {
        let now = world.now;
        world.client.breathe(now, &mut world.up.0, &mut world.down.1).unwrap();
        for frame in frames(&mut world.up.1) {
            let expected = header(sent.len() as u16, (now.as_nanos() / 1_000) as u32);
            assert_eq!(frame[HEADERS..HEADERS + 12], expected);
            sent.push(frame);
        }
        world.now += STEP;
    }
    assert_eq!(sent.len(), 400);
}

#[test]
fn datagram_that_starts_the_next_flow_is_answered_with_its_time() {
    let mut buffers = Buffers::default();
    let [ask, answer] = [send(&mut buffers, b"ask", 0), send(&mut buffers, b"answer", 0)];
    let contents = Contents { examines_datagrams: true, ..Contents::default() };
    let program = Program::with_contents(vec![receive(2), answer], contents).unwrap();
    let server = Template { program: program.stamped(SOURCE), ..plain(vec![], server(53)) };
    let client = stamped([vec![ask; 6], vec![receive(3)]].concat(), asking("16.0.0.1"));
    let mut world = World::of(vec![client], vec![server], &buffers);
    world.run(SECOND, |_, _| {});
    assert_eq!((world.server.udp().accepts, times(&world.server).times.count()), (3, 6));
    // Each flow starts an iteration after the previous one; all were due at once.
    assert_eq!(times(&world.client).total_micros, 100 + 200 + 300);
}
