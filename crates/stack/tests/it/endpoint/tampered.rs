//! Frames that are modified or duplicated on the way.

use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::Load;
use wirestorm_model::tcp::Settings;
use wirestorm_sim::memory::{MemoryReceive, MemoryTransmit};
use wirestorm_stack::endpoint::{Endpoint, Role, Transport};
use wirestorm_stack::program::{Buffer, Buffers, Instruction};

use super::world::{SECOND, STEP, World, client, options, pass_by, server, template};

/// Offset of the TCP header after Ethernet and IPv4, and of its fields.
const TCP: usize = 34;
const SEQUENCE: usize = TCP + 4;
const OFFSET: usize = TCP + 12;
const FLAGS: usize = TCP + 13;
const CHECKSUM: usize = TCP + 16;
const URGENT: usize = TCP + 18;
/// Offset of TSval in a SYN, after the MSS and SACK-permitted options.
const TIMESTAMP: usize = TCP + 20 + 4 + 4;

/// A client that sends one request, and a server that answers and closes first, so that it stays in
/// TIME-WAIT for a minute. Checksums are not verified.
fn world(timestamps: bool) -> World {
    world_of([timestamps; 2])
}

/// Like [`world`], with different settings for client and server.
fn world_of(timestamps: [bool; 2]) -> World {
    let mut buffers = Buffers::default();
    let ask = buffers.push(Buffer::new(b"page", 0, &[]));
    let answer = buffers.push(Buffer::new(b"", 5_000, &[]));
    let receive = |bytes| Instruction::Receive { bytes, clear: false };
    let asks = [Instruction::Send { buffer: ask }, receive(5_000), Instruction::WaitForPeerClose];
    let answers = [receive(4), Instruction::Send { buffer: answer }];
    let of = |instructions: &[Instruction], role: Role, timestamps| {
        let mut template = template(instructions.to_vec(), role);
        let tcp = Settings { timestamps, time_wait_ms: 60_000, ..Settings::default() };
        template.transport = Transport::Tcp(tcp);
        template
    };
    let mut world = World::with(vec![], &buffers, &[], &[]);
    let endpoint = |template, seed| {
        let mut options = options(vec![template], &buffers, seed);
        options.verifies_checksums = false;
        Endpoint::new(options, Instant::ZERO)
    };
    let asks = of(&asks, client("16.0.0.1", 80, Load::Concurrent(1), Some(1)), timestamps[0]);
    world.client = endpoint(asks, 1);
    world.server = endpoint(of(&answers, server(80), timestamps[1]), 2);
    world
}

/// Runs for a time; `look` may modify the client's frames.
fn run(world: &mut World, span: Duration, mut look: impl FnMut(&mut [u8])) {
    let end = world.now + span;
    while world.now < end {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        pass_by(&mut world.up, &mut look);
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        world.now += STEP;
    }
}

/// Puts a frame on a wire.
fn put((transmit, _): &mut (MemoryTransmit, MemoryReceive), bytes: &[u8]) {
    let frame = transmit.take().unwrap();
    transmit.frame_mut(&frame)[..bytes.len()].copy_from_slice(bytes);
    transmit.send(frame, bytes.len(), Instant::ZERO);
    transmit.flush().unwrap();
}

fn add(frame: &mut [u8], place: usize, number: i32) {
    let field: &mut [u8; 4] = frame[place..].first_chunk_mut().unwrap();
    *field = u32::from_be_bytes(*field).wrapping_add(number.cast_unsigned()).to_be_bytes();
}

/// Returns a server in TIME-WAIT, and the SYN of its connection.
fn remembering(timestamps: bool) -> (World, Vec<u8>) {
    remembering_of([timestamps; 2])
}

/// Like [`remembering`], with different settings for client and server.
fn remembering_of(timestamps: [bool; 2]) -> (World, Vec<u8>) {
    let mut world = world_of(timestamps);
    let mut syn = Vec::new();
    run(&mut world, SECOND, |frame| {
        if frame[FLAGS] & 2 != 0 {
            syn = frame.to_vec();
        }
    });
    let (client, server) = (world.client.counters(), world.server.counters());
    assert_eq!((client.closed, server.closed, server.waiting), (1, 0, 1));
    (world, syn)
}

/// Flags of all segments that the server sends now.
fn answers(world: &mut World) -> Vec<u8> {
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    let mut batch = Vec::new();
    world.down.1.receive(64, &mut batch).unwrap();
    let flags = |received| {
        let flags = world.down.1.frame(&received)[FLAGS];
        world.down.1.release(received);
        flags
    };
    batch.into_iter().map(flags).collect()
}

/// RFC 6191 section 2: a SYN that may be an old duplicate does not replace the connection.
#[test]
fn possibly_old_syn_does_not_end_time_wait() {
    const SYN_ACK: u8 = 0x12;
    const ACK: u8 = 0x10;
    // Change of the first SYN's sequence number and timestamp, and whether it opens a new
    // connection.
    let by_timestamp = [
        ((0, 0), false),
        ((1_000_000, -1), false),
        ((-1, 0), false),
        // All later segments had later timestamps.
        ((1_000_000, 1), false),
        ((-1_000_000, 1_000), true),
        ((1_000_000, 1_000), true),
    ];
    let by_number =
        [((0, 0), false), ((-1, 0), false), ((5, 0), false), ((6, 0), false), ((7, 0), true)];
    let cases = by_timestamp.map(|case| (true, case)).into_iter();
    let cases = cases.chain(by_number.map(|case| (false, case)));
    for (timestamps, ((number, timestamp), is_new)) in cases {
        let case = format!("timestamps: {timestamps}, {number} and {timestamp} beyond");
        let (mut world, mut syn) = remembering(timestamps);
        add(&mut syn, SEQUENCE, number);
        if timestamps {
            add(&mut syn, TIMESTAMP, timestamp);
        }
        put(&mut world.up, &syn);
        let (answered, counted) = (answers(&mut world), world.server.counters());
        assert_eq!(answered, [if is_new { SYN_ACK } else { ACK }], "{case}");
        assert_eq!(world.server.tcp().accepts, 1 + u64::from(is_new), "{case}");
        assert_eq!((counted.closed, counted.active), (u64::from(is_new), 1), "{case}");
        assert_eq!(counted.waiting, u64::from(!is_new), "{case}");
    }
}

/// RFC 6191 section 2: "If the previous incarnation of the connection did not use Timestamps", a
/// SYN with timestamps opens a new connection, provided that the server uses them.
#[test]
fn syn_with_timestamps_replaces_a_connection_without_them() {
    for uses in [true, false] {
        let (mut world, first) = remembering_of([false, uses]);
        let (_, mut syn) = remembering(true);
        syn[SEQUENCE..SEQUENCE + 4].copy_from_slice(&first[SEQUENCE..SEQUENCE + 4]);
        add(&mut syn, SEQUENCE, -1);
        put(&mut world.up, &syn);
        assert_eq!(answers(&mut world), [if uses { 0x12 } else { 0x10 }], "{uses}");
        assert_eq!(world.server.tcp().accepts, 1 + u64::from(uses));
    }
}

/// RFC 9293 section 3.8.5: the urgent pointer is ignored, whatever its value.
#[test]
fn urgent_data_arrives_in_line() {
    for pointer in [0_u16, 1, 4, u16::MAX] {
        let mut world = world(true);
        let mut urgent = 0;
        run(&mut world, SECOND, |frame| {
            if frame.len() > TCP + 32 {
                frame[FLAGS] |= 0x20;
                frame[URGENT..URGENT + 2].copy_from_slice(&pointer.to_be_bytes());
                urgent += 1;
            }
        });
        assert!(urgent > 0);
        assert_eq!((world.server.tcp().rcvbyte, world.client.counters().closed), (4, 1));
        assert_eq!(world.client.tcp().rcvbyte, 5_000);
    }
}

#[test]
fn invalid_segments_are_counted_by_cause() {
    let (mut world, syn) = remembering(true);
    let mut receive = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = syn.clone();
        change(&mut frame);
        put(&mut world.up, &frame);
        assert_eq!(answers(&mut world), [0_u8; 0], "a segment without ports gets no answer");
        let tcp = world.server.tcp();
        [tcp.rcvbadoff, tcp.rcvshort, tcp.rcvbadsum, world.server.unmatched().malformed]
    };
    assert_eq!(receive(&|frame| frame[OFFSET] = 0x40), [1, 0, 0, 1], "below the minimum");
    assert_eq!(receive(&|frame| frame[OFFSET] = 0xf0), [2, 0, 0, 2], "beyond the end");
    let cut = |frame: &mut Vec<u8>, bytes: usize| {
        frame.truncate(TCP + bytes);
        frame[16..18].copy_from_slice(&(20 + bytes as u16).to_be_bytes());
    };
    assert_eq!(receive(&|frame| cut(frame, 19)), [2, 1, 0, 3], "shorter than a header");
    assert_eq!(receive(&|frame| cut(frame, 3)), [2, 2, 0, 4], "shorter than the ports");

    // With checksum verification.
    let mut world = World::new(vec![], 0);
    for (damage, expected) in [(CHECKSUM, [1, 1]), (CHECKSUM - 2, [2, 2])] {
        let mut frame = syn.clone();
        frame[damage] ^= 0x80;
        put(&mut world.up, &frame);
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        let counted = [world.server.tcp().rcvbadsum, world.server.unmatched().malformed];
        assert_eq!(counted, expected);
    }
    // Damage in the IP header is attributed to no flow.
    let mut frame = syn.clone();
    frame[22] ^= 1;
    put(&mut world.up, &frame);
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    let counted = [world.server.tcp().rcvbadsum, world.server.unmatched().malformed];
    assert_eq!(counted, [2, 3]);
}

#[test]
fn reset_without_a_free_frame_is_counted() {
    const RESET: u8 = 0x14;
    let (_, mut syn) = remembering(true);
    // Nothing listens there.
    syn[TCP + 3] += 1;
    let mut world = world(true);
    let held: Vec<_> = std::iter::from_fn(|| world.down.0.take()).collect();
    put(&mut world.up, &syn);
    assert_eq!(answers(&mut world), [0_u8; 0]);
    assert_eq!((world.server.tcp().nombuf, world.server.tcp().rst_sent), (1, 0));
    held.into_iter().for_each(|frame| world.down.0.release(frame));
    put(&mut world.up, &syn);
    assert_eq!(answers(&mut world), [RESET]);
    assert_eq!((world.server.tcp().nombuf, world.server.tcp().rst_sent), (1, 1));
}
