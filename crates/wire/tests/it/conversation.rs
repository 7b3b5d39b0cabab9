//! Import of conversations: reassembly, turns, and errors for missing data.

use proptest::prelude::*;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::capture::{LinkType, RecordHeader, Records};
use wirestorm_wire::conversation::{
    Action, Conversation, ImportLimits, Imported, Importer, LimitError, Side, Transport, Turn,
};
use wirestorm_wire::fragment::Fragments;
use wirestorm_wire::packet::tcp::Flags;

use crate::common::{real_captures, run};

const CLIENT: Side = Side::Client;
const SERVER: Side = Side::Server;
/// Initial sequence numbers. The client's wraps soon.
const INITIAL: [u32; 2] = [u32::MAX - 20, 0x8000_0000];

/// Headers below a segment, and its port.
#[derive(Clone, Copy, Default)]
struct Shape {
    /// Tags and labels, from the Ethernet type to the type of the IP header.
    tags: &'static [u8],
    is_ipv6: bool,
    /// The client's port.
    port: u16,
}

const PLAIN: Shape = Shape { tags: &[8, 0], is_ipv6: false, port: 1_024 };

fn frame(shape: Shape, from: Side, protocol: u8, transport: &[u8]) -> Vec<u8> {
    let hosts = if from == CLIENT { [1, 2] } else { [2, 1] };
    let mut frame = [[2; 12].as_slice(), shape.tags].concat();
    if shape.is_ipv6 {
        frame.extend([0x60, 0, 0, 0]);
        frame.extend((transport.len() as u16).to_be_bytes());
        frame.extend([protocol, 64]);
        for host in hosts {
            frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
    } else {
        frame.extend([0x45, 0]);
        frame.extend((20 + transport.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
        for host in hosts {
            frame.extend([10, 0, 0, host]);
        }
    }
    frame.extend(transport);
    // The importer must not read Ethernet padding as data.
    frame.resize(frame.len().max(60), 0xee);
    frame
}

fn ports(shape: Shape, from: Side) -> Vec<u8> {
    let ports = if from == CLIENT { [shape.port, 80] } else { [80, shape.port] };
    ports.map(u16::to_be_bytes).concat()
}

/// Returns a segment whose bytes have offset `place` in its stream; `acknowledged` is an offset in
/// the other stream.
fn segment(
    shape: Shape,
    from: Side,
    flags: Flags,
    place: i64,
    acknowledged: i64,
    payload: &[u8],
) -> Vec<u8> {
    let number = |side: Side, place: i64| INITIAL[side as usize].wrapping_add((place + 1) as u32);
    let mut header = ports(shape, from);
    header.extend(number(from, place).to_be_bytes());
    header.extend(number(from.other(), acknowledged).to_be_bytes());
    // A header with an option of four bytes.
    header.extend([0x60, flags.0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
    frame(shape, from, 6, &[&header, payload].concat())
}

fn datagram(shape: Shape, from: Side, payload: &[u8]) -> Vec<u8> {
    let mut header = ports(shape, from);
    header.extend((8 + payload.len() as u16).to_be_bytes());
    frame(shape, from, 17, &[&header[..], &[0, 0], payload].concat())
}

/// A capture under construction, with the time of each frame in ms.
#[derive(Default)]
struct Capture(Vec<(u64, Vec<u8>)>);

impl Capture {
    /// Returns a capture with a handshake of 2 ms.
    fn connected(shape: Shape) -> Self {
        let mut capture = Self::default();
        capture.at(0, segment(shape, CLIENT, Flags::SYN, -1, -1, b""));
        capture.at(2, segment(shape, SERVER, Flags::SYN | Flags::ACK, -1, 0, b""));
        capture.at(2, segment(shape, CLIENT, Flags::ACK, 0, 0, b""));
        capture
    }

    /// Adds a frame at a time in ms.
    fn at(&mut self, ms: u64, frame: Vec<u8>) {
        self.0.push((ms, frame));
    }

    fn send_segment(&mut self, ms: u64, from: Side, place: i64, acknowledged: i64, payload: &[u8]) {
        self.at(ms, segment(PLAIN, from, Flags::ACK, place, acknowledged, payload));
    }

    fn import_within(&self, bounds: ImportLimits) -> Result<Imported, LimitError> {
        let mut importer = Importer::new(bounds);
        for (ms, frame) in &self.0 {
            let record = RecordHeader {
                timestamp: Instant::from_nanos(5 + ms * 1_000_000),
                captured_length: frame.len() as u32,
                original_length: frame.len() as u32,
                link_type: LinkType::EN10MB,
                interface: 0,
            };
            importer.take(&record, frame)?;
        }
        Ok(importer.finish())
    }

    fn import(&self) -> Imported {
        self.import_within(ImportLimits::default()).unwrap()
    }

    /// Imports the capture, which has one conversation.
    fn conversation(&self) -> Conversation {
        let [outcome] = <[_; 1]>::try_from(self.import().flows).unwrap();
        outcome.unwrap()
    }

    fn error(&self) -> String {
        let [outcome] = <[_; 1]>::try_from(self.import().flows).unwrap();
        outcome.unwrap_err().to_string()
    }
}

fn send_turn(side: Side, gap_ms: u64, bytes: &[u8]) -> Turn {
    Turn { side, gap: Duration::from_millis(gap_ms), act: Action::Send(bytes.to_vec()) }
}

fn closes(side: Side, gap_ms: u64) -> Turn {
    Turn { side, gap: Duration::from_millis(gap_ms), act: Action::Close }
}

/// Returns a capture of a request in two segments and its response; the client closes.
fn page(shape: Shape) -> Capture {
    let mut capture = Capture::connected(shape);
    let mut put = |ms, from, flags, place, acknowledged, payload| {
        capture.at(ms, segment(shape, from, flags, place, acknowledged, payload));
    };
    put(10, CLIENT, Flags::ACK, 0, 0, &b"GET "[..]);
    put(10, CLIENT, Flags::ACK | Flags::PSH, 4, 0, b"/");
    put(12, SERVER, Flags::ACK, 0, 5, b"");
    put(15, SERVER, Flags::ACK, 0, 5, b"page");
    put(16, CLIENT, Flags::ACK, 5, 4, b"");
    put(20, CLIENT, Flags::FIN | Flags::ACK, 5, 4, b"");
    put(21, SERVER, Flags::FIN | Flags::ACK, 4, 6, b"");
    put(21, CLIENT, Flags::ACK, 6, 5, b"");
    capture
}

fn turns_of_page() -> Vec<Turn> {
    vec![
        send_turn(CLIENT, 8, b"GET /"),
        send_turn(SERVER, 5, b"page"),
        closes(CLIENT, 5),
        closes(SERVER, 1),
    ]
}

#[test]
fn a_turn_ends_when_the_other_end_sends() {
    let found = page(PLAIN).conversation();
    assert_eq!(found.turns, turns_of_page());
    assert_eq!(found.transport, Transport::Tcp);
    assert_eq!(found.client, "10.0.0.1:1024".parse().unwrap());
    assert_eq!(found.server, "10.0.0.2:80".parse().unwrap());
    assert!(found.has_beginning && found.packet == 1);
}

#[test]
fn encapsulation_does_not_change_the_turns() {
    for (tags, is_ipv6) in [
        (&[0x81, 0, 0, 7, 8, 0][..], false),
        (&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 0x86, 0xdd], true),
        (&[0x88, 0x47, 0, 1, 0x20, 64, 0, 2, 0x31, 64], false),
        (&[0x86, 0xdd], true),
    ] {
        let found = page(Shape { tags, is_ipv6, port: 1_024 }).conversation();
        assert_eq!(found.turns, turns_of_page(), "{tags:x?}");
        assert_eq!(found.client.is_ipv6(), is_ipv6);
    }
    // One direction has a tag, or the capture has each frame from both sides of a router.
    let (plain, tagged) = (page(PLAIN), page(Shape { tags: &[0x81, 0, 0, 7, 8, 0], ..PLAIN }));
    let mut both = Capture::default();
    for (one, other) in plain.0.into_iter().zip(tagged.0) {
        both.0.extend([one, other]);
    }
    assert_eq!(both.conversation().turns, turns_of_page());
}

#[test]
fn retransmitted_early_and_overlapping_segments_are_reassembled() {
    let mut capture = Capture::connected(PLAIN);
    // A keepalive with one byte before any data.
    capture.send_segment(3, CLIENT, -1, 0, b"\0");
    capture.send_segment(4, CLIENT, 6, 0, b"gh");
    capture.send_segment(5, CLIENT, 2, 0, b"cd");
    capture.send_segment(6, CLIENT, 0, 0, b"ab");
    // A retransmission with more data on both sides.
    capture.send_segment(6, CLIENT, 1, 0, b"bcdef");
    capture.send_segment(6, CLIENT, 6, 0, b"ghij");
    // A zero window, a window probe that is refused, and the probed byte again.
    capture.send_segment(6, CLIENT, 10, 0, b"k");
    capture.send_segment(6, SERVER, 0, 10, b"");
    capture.send_segment(6, CLIENT, 10, 0, b"kl");
    capture.send_segment(12, CLIENT, 11, 0, b"");
    capture.send_segment(13, SERVER, 0, 12, b"yes");
    capture.send_segment(14, SERVER, -1, 12, b"");
    // The turn begins when its first segment arrives, although that arrived early.
    assert_eq!(
        capture.conversation().turns,
        [send_turn(CLIENT, 2, b"abcdefghijkl"), send_turn(SERVER, 7, b"yes")]
    );
}

/// Returns the gap in ms and the number of bytes of each turn of the server.
fn server_turns(capture: &Capture) -> Vec<(u64, usize)> {
    let turns = capture.conversation().turns;
    let of = |turn: &Turn| match &turn.act {
        Action::Send(bytes) if turn.side == SERVER => {
            Some((turn.gap.as_nanos() / 1_000_000, bytes.len()))
        }
        _ => None,
    };
    turns.iter().filter_map(of).collect()
}

#[test]
fn pauses_after_short_segments_are_the_senders() {
    // Key strokes every 25 ms. The client acknowledges every second one just before the next.
    let mut capture = Capture::connected(PLAIN);
    for key in 0..8 {
        let at = 25 + 25 * key as u64;
        capture.send_segment(at, SERVER, key, 0, b"k");
        if key % 2 == 1 {
            capture.send_segment(at + 24, CLIENT, 0, key + 1, b"");
        }
    }
    let mut expected = vec![(25, 1); 8];
    // The first gap counts from the SYN-ACK.
    expected[0] = (23, 1);
    assert_eq!(server_turns(&capture), expected);
    // Some keys are lost before the capture point, then retransmitted together.
    let mut lossy = Capture::connected(PLAIN);
    for (at, place, text) in [(25, 0, "a"), (75, 2, "c"), (100, 3, "d"), (310, 1, "bcd")] {
        lossy.send_segment(at, SERVER, place, 0, text.as_bytes());
    }
    assert_eq!(server_turns(&lossy), [(23, 1), (50, 3)]);
}

#[test]
fn pauses_after_full_segments_are_the_networks_until_an_acknowledgement_can_arrive() {
    let full = [7; 1_460];
    // Captured at the server: the acknowledgement has just arrived.
    let mut near = Capture::connected(PLAIN);
    near.send_segment(4, SERVER, 0, 0, &full);
    near.send_segment(4, SERVER, 1_460, 0, &full);
    near.send_segment(44, CLIENT, 0, 2_920, b"");
    near.send_segment(45, SERVER, 2_920, 0, &full);
    near.send_segment(85, CLIENT, 0, 4_380, b"");
    // The server paused long after the acknowledgement arrived.
    near.send_segment(185, SERVER, 4_380, 0, &full);
    near.send_segment(225, CLIENT, 0, 5_840, b"");
    assert_eq!(server_turns(&near), [(2, 4_380), (140, 1_460)]);

    // Captured at the client: an acknowledgement takes effect after 40 ms.
    let mut far = Capture::default();
    far.at(0, segment(PLAIN, CLIENT, Flags::SYN, -1, -1, b""));
    far.at(40, segment(PLAIN, SERVER, Flags::SYN | Flags::ACK, -1, 0, b""));
    far.send_segment(40, CLIENT, 0, 0, b"");
    for (at, place) in [(50, 0), (51, 1_460), (91, 2_920), (103, 4_380)] {
        far.send_segment(at, SERVER, place, 0, &full);
        far.send_segment(at, CLIENT, 0, place + 1_460, b"");
    }
    // The server paused although nothing was outstanding.
    far.send_segment(203, SERVER, 5_840, 0, &full);
    far.send_segment(203, CLIENT, 0, 7_300, b"");
    assert_eq!(server_turns(&far), [(10, 5_840), (100, 1_460)]);
}

/// Returns the server's turns for segments of 100 bytes and an option in the SYN.
fn pauses_of_segments(segment_max: Option<[u8; 4]>) -> Vec<(u64, usize)> {
    let mut capture = Capture::connected(PLAIN);
    if let Some(option) = segment_max {
        // The option of four bytes follows the fixed header.
        let (_, syn) = &mut capture.0[0];
        syn[54..58].copy_from_slice(&option);
    }
    capture.send_segment(4, SERVER, 0, 0, &[7; 100]);
    capture.send_segment(44, CLIENT, 0, 100, b"");
    capture.send_segment(45, SERVER, 100, 0, &[7; 100]);
    server_turns(&capture)
}

#[test]
fn the_mss_option_determines_full_segments() {
    assert_eq!(pauses_of_segments(Some([2, 4, 0, 100])), [(2, 200)]);
    assert_eq!(pauses_of_segments(Some([2, 4, 5, 180])), [(2, 100), (41, 100)]);
    assert_eq!(pauses_of_segments(None), [(2, 100), (41, 100)]);
    // Malformed options have no effect.
    for option in [[2, 3, 0, 100], [2, 0, 0, 100], [9, 1, 1, 1], [9, 99, 1, 1]] {
        assert_eq!(pauses_of_segments(Some(option)).len(), 2, "{option:?}");
    }
}

#[test]
fn closes_and_resets_are_turns() {
    let mut half = Capture::connected(PLAIN);
    half.at(3, segment(PLAIN, CLIENT, Flags::FIN | Flags::ACK, 0, 0, b"all"));
    half.send_segment(4, SERVER, 0, 4, b"thanks");
    half.at(6, segment(PLAIN, SERVER, Flags::FIN | Flags::ACK, 6, 4, b""));
    // Retransmitted FIN.
    half.at(7, segment(PLAIN, SERVER, Flags::FIN | Flags::ACK, 6, 4, b""));
    half.at(8, segment(PLAIN, CLIENT, Flags::RST, 4, 6, b""));
    let expected = [
        send_turn(CLIENT, 1, b"all"),
        closes(CLIENT, 0),
        send_turn(SERVER, 1, b"thanks"),
        closes(SERVER, 2),
    ];
    assert_eq!(half.conversation().turns, expected);

    let mut early = Capture::connected(PLAIN);
    early.at(3, segment(PLAIN, CLIENT, Flags::FIN | Flags::ACK, 2, 0, b"b"));
    early.send_segment(4, CLIENT, 0, 0, b"aa");
    early.send_segment(9, SERVER, 0, 4, b"");
    assert_eq!(early.conversation().turns, [send_turn(CLIENT, 1, b"aab"), closes(CLIENT, 0)]);

    let mut reset = Capture::connected(PLAIN);
    reset.send_segment(3, CLIENT, 0, 0, b"all");
    reset.at(5, segment(PLAIN, SERVER, Flags::RST | Flags::ACK, 0, 3, b""));
    reset.send_segment(9, CLIENT, 3, 0, b"more");
    let resets = Turn { side: SERVER, gap: Duration::from_millis(2), act: Action::Reset };
    assert_eq!(reset.conversation().turns, [send_turn(CLIENT, 1, b"all"), resets]);
}

#[test]
fn without_a_syn_the_first_sender_of_data_is_the_client() {
    let mut capture = Capture::default();
    // The acknowledgement shows where the client's bytes begin, although they arrive out of order.
    capture.send_segment(0, SERVER, 500, 100, b"");
    capture.send_segment(5, CLIENT, 102, 500, b"llo");
    capture.send_segment(6, CLIENT, 100, 500, b"he");
    capture.send_segment(8, SERVER, 500, 105, b"hi");
    let found = capture.conversation();
    assert_eq!(found.turns, [send_turn(CLIENT, 0, b"hello"), send_turn(SERVER, 2, b"hi")]);
    assert_eq!(found.client.port(), 1_024);
    assert!(!found.has_beginning);
}

#[test]
fn flows_are_separate_and_a_port_can_be_reused() {
    let mut capture = page(PLAIN);
    let other = page(Shape { port: 2_000, ..PLAIN });
    capture.0.splice(5..5, other.0);
    // A SYN without an answer, its retransmission, then a new connection with an answer.
    let attempt = segment(PLAIN, CLIENT, Flags::SYN, 499, -1, b"");
    capture.at(900, attempt.clone());
    capture.at(950, attempt);
    capture.0.extend(page(PLAIN).0.into_iter().map(|(ms, frame)| (ms + 1_000, frame)));
    capture.at(2_000, datagram(PLAIN, SERVER, b"hi"));
    capture.at(2_000, [&[2; 12][..], &[8, 6], &[0; 46]].concat());
    let Imported { flows, others } = capture.import();
    assert_eq!((flows.len(), others), (4, 1));
    let packets: Vec<_> = flows.iter().map(|flow| flow.as_ref().unwrap().packet).collect();
    assert_eq!(packets, [1, 6, 23, 36]);
    for flow in &flows[..3] {
        assert_eq!(flow.as_ref().unwrap().turns, turns_of_page());
    }
    let answer = flows[3].as_ref().unwrap();
    assert_eq!((answer.transport, answer.client.port()), (Transport::Udp, 80));
}

#[test]
fn each_datagram_is_a_turn() {
    let mut capture = Capture::default();
    for (ms, from, payload) in
        [(0, CLIENT, &b"a"[..]), (20, CLIENT, b""), (21, SERVER, b"c"), (21, SERVER, b"c")]
    {
        capture.at(ms, datagram(PLAIN, from, payload));
    }
    let found = capture.conversation();
    let expected = [
        send_turn(CLIENT, 0, b"a"),
        send_turn(CLIENT, 20, b""),
        send_turn(SERVER, 1, b"c"),
        send_turn(SERVER, 0, b"c"),
    ];
    assert_eq!(found.turns, expected);
}

#[test]
fn errors_name_the_packet_that_shows_missing_data() {
    let mut hole = Capture::connected(PLAIN);
    hole.send_segment(3, CLIENT, 0, 0, b"abc");
    hole.send_segment(4, CLIENT, 9, 0, b"later");
    hole.send_segment(5, CLIENT, 14, 0, b"last");
    assert_eq!(
        hole.error(),
        "packet 5 starts at byte 9 of the client's data, but the capture has only its first 3 \
         bytes: the bytes between are missing"
    );
    let mut unseen = Capture::connected(PLAIN);
    unseen.send_segment(3, SERVER, 0, 0, b"abc");
    unseen.send_segment(4, CLIENT, 0, 3, b"");
    unseen.send_segment(4, CLIENT, 0, 7, b"");
    let error = "packet 6 acknowledges 7 bytes of the server's data, but the capture has 3";
    assert_eq!(unseen.error(), error);
    let mut cut = Capture::connected(PLAIN);
    cut.send_segment(3, CLIENT, 0, 0, &[7; 100]);
    cut.0[3].1.truncate(96);
    assert_eq!(cut.error(), "packet 4 was captured with 82 of its 144 bytes: capture all");
    let mut fragment = Capture::connected(PLAIN);
    fragment.send_segment(3, CLIENT, 0, 0, &[7; 104]);
    fragment.0[3].1[20] = 0x20;
    let error = "packet 4 is a fragment of an IP packet whose other fragments are missing or \
                 contradict it: capture where packets are not fragmented";
    assert_eq!(fragment.error(), error);
    // A fragment without ports belongs to no flow.
    let mut later = fragment.0[3].1.clone();
    later[19] = 1;
    later[21] = 9;
    fragment.at(3, later.clone());
    assert_eq!((fragment.error().as_str(), fragment.import().others), (error, 1));
    // A fragment that contradicts the first one.
    later[19] = fragment.0[3].1[19];
    fragment.0[4].1 = later;
    assert_eq!((fragment.error().as_str(), fragment.import().others), (error, 0));
    // A truncated fragment is unusable.
    let mut cut = Capture::connected(PLAIN);
    cut.send_segment(3, CLIENT, 0, 0, &[7; 100]);
    cut.0[3].1[20] = 0x20;
    cut.0[3].1.truncate(96);
    assert_eq!(cut.error(), error);
    let mut bad = Capture::connected(PLAIN);
    bad.send_segment(3, CLIENT, 0, 0, b"abc");
    bad.0[3].1[46] = 0x40;
    let error = "packet 4 has a bad header: TCP: a header length of 16 bytes, expected at least 20";
    assert_eq!(bad.error(), error);
}

/// Returns the fragments of an untagged frame, as a router creates them.
fn fragments(frame: &[u8], identification: u32) -> Vec<Vec<u8>> {
    let (link, packet) = frame.split_at(14);
    let mut fragments = Fragments::of(packet, 120, identification).unwrap();
    let mut room = [0; 120];
    std::iter::from_fn(|| {
        let length = fragments.write_next(&mut room)?;
        Some([link, &room[..length]].concat())
    })
    .collect()
}

#[test]
fn fragmented_packets_are_reassembled() {
    for is_ipv6 in [false, true] {
        let tags = if is_ipv6 { &[0x86, 0xdd] } else { &[8, 0] };
        let shape = Shape { is_ipv6, tags, ..PLAIN };
        let question: Vec<u8> = (0..500).map(|place| place as u8).collect();
        let answer = vec![9; 300];
        let mut capture = Capture::default();
        let mut parts = fragments(&datagram(shape, CLIENT, &question), 1);
        parts.extend(fragments(&datagram(shape, CLIENT, &answer), 2));
        // Two packets at once, last fragments first.
        parts.into_iter().rev().for_each(|part| capture.at(3, part));
        fragments(&datagram(shape, SERVER, &answer), 1)
            .into_iter()
            .for_each(|part| capture.at(5, part));
        let conversation = capture.conversation();
        assert_eq!(
            conversation.turns,
            [
                send_turn(CLIENT, 0, &answer),
                send_turn(CLIENT, 0, &question),
                send_turn(SERVER, 2, &answer)
            ]
        );
        assert_eq!(capture.import().others, 0);
        // The missing fragment belongs to a datagram of the flow.
        capture.0.remove(2);
        assert!(capture.error().starts_with("packet 1 is a fragment of"), "{}", capture.error());
    }
}

#[test]
fn a_retransmission_replaces_a_segment_with_a_lost_fragment() {
    let text = [7; 400];
    let mut capture = Capture::connected(PLAIN);
    let mut parts = fragments(&segment(PLAIN, CLIENT, Flags::ACK, 0, 0, &text), 1);
    parts.remove(1);
    parts.into_iter().for_each(|part| capture.at(3, part));
    let again = fragments(&segment(PLAIN, CLIENT, Flags::ACK, 0, 0, &text), 2);
    again.into_iter().for_each(|part| capture.at(203, part));
    capture.send_segment(204, SERVER, 0, 400, b"thanks");
    let conversation = capture.conversation();
    assert_eq!(
        conversation.turns,
        [send_turn(CLIENT, 201, &text), send_turn(SERVER, 1, b"thanks")]
    );
}

#[test]
fn the_import_has_limits() {
    let capture = page(PLAIN);
    let error = |bounds: ImportLimits| capture.import_within(bounds).unwrap_err().to_string();
    let usual = ImportLimits::default();
    let bytes = error(ImportLimits { bytes: 70, ..usual });
    assert_eq!(bytes, "packet 5 exceeds the limit of 70 bytes of data");
    let flows = error(ImportLimits { flows: 0, ..usual });
    let expected = "packet 1 starts a new flow beyond the limit of 0 flows";
    assert_eq!(flows, expected);
    let mut early = Capture::connected(PLAIN);
    early.send_segment(3, CLIENT, 4, 0, b"a");
    early.send_segment(3, CLIENT, 6, 0, b"a");
    let error = early.import_within(ImportLimits { segments: 1, ..usual }).unwrap_err().to_string();
    let expected = "packet 5: more than 1 segments of its flow wait for an earlier one";
    assert_eq!(error, expected);
}

proptest! {
    /// The bytes do not depend on the pieces, their order and their repetition.
    #[test]
    fn a_disturbed_stream_is_reassembled(
        bytes in prop::collection::vec(any::<u8>(), 1..200),
        pieces in prop::collection::vec((any::<prop::sample::Index>(), 1..40_usize), 0..60),
    ) {
        let mut capture = Capture::connected(PLAIN);
        for (at, length) in pieces {
            let start = at.index(bytes.len());
            let end = bytes.len().min(start + length);
            capture.send_segment(3, CLIENT, start as i64, 0, &bytes[start..end]);
        }
        // Finally, send all bytes.
        for (index, piece) in bytes.chunks(7).enumerate() {
            capture.send_segment(3, CLIENT, index as i64 * 7, 0, piece);
        }
        capture.send_segment(5, SERVER, 0, bytes.len() as i64, b"");
        // The turn begins when the first byte arrives.
        let turns = capture.conversation().turns;
        let gap = turns[0].gap;
        prop_assert_eq!(turns, [Turn { gap, ..send_turn(CLIENT, 0, &bytes) }]);
    }
}

/// Returns the data of both sides of a stream according to tshark, in hexadecimal digits.
fn followed(path: &str, stream: usize) -> Option<[String; 2]> {
    let follow = format!("follow,tcp,raw,{stream}");
    let output = run("tshark", &["-n", "-q", "-r", path, "-z", &follow])?;
    let mut sides = [String::new(), String::new()];
    for line in output.lines().filter(|line| !line.is_empty()) {
        let (side, digits) = match line.strip_prefix('\t') {
            Some(digits) => (1, digits),
            None => (0, line),
        };
        if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            sides[side].push_str(digits);
        }
    }
    Some(sides)
}

#[test]
fn real_captures_have_the_data_that_tshark_follows() {
    let mut compared = 0;
    for path in real_captures().unwrap_or_default() {
        let name = path.display().to_string();
        let file = std::fs::read(&path).unwrap();
        let mut importer = Importer::new(ImportLimits::default());
        for record in Records::new(&file) {
            let (header, data) = record.unwrap();
            importer.take(&header, data).unwrap();
        }
        let flows = importer.finish().flows;
        let is_tcp = |it: &&Result<Conversation, _>| {
            it.as_ref().map_or(true, |it| it.transport == Transport::Tcp)
        };
        for (stream, flow) in flows.iter().filter(is_tcp).enumerate() {
            let Ok(flow) = flow else {
                println!("{name}, stream {stream}: {}", flow.as_ref().unwrap_err());
                continue;
            };
            let Some(expected) = followed(&name, stream) else { return };
            let mut found = [String::new(), String::new()];
            for turn in &flow.turns {
                if let Action::Send(bytes) = &turn.act {
                    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                    found[turn.side as usize].push_str(&digits);
                }
            }
            // tshark lists the first sender of data first.
            let matches =
                found == expected || [&found[1], &found[0]] == [&expected[0], &expected[1]];
            assert!(matches, "{name}, stream {stream}: {found:?} {expected:?}");
            compared += 1;
        }
    }
    println!("{compared} streams");
}
