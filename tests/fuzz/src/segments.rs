//! Arbitrary segments, calls and times for a connection, and arbitrary frames for an endpoint.
//! There must be no panic; windows and states are valid, and counters agree.

use std::net::IpAddr;

use wirestorm_base::port::{Receive, Received, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::ip::IpSettings;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_model::tcp::Algorithm;
use wirestorm_model::tcp::{EcnMode, Settings};
use wirestorm_sim::memory::{WireOptions, wire};
use wirestorm_stack::Host;
use wirestorm_stack::endpoint::{
    Endpoint, EndpointOptions, LinkHeader, Listen, MatchByte, Role, Template, Transport, Tuples,
};
use wirestorm_stack::program::{Buffer, Buffers, Instruction, Program};
use wirestorm_stack::tcp::connection::{Connection, State};
use wirestorm_stack::tcp::counters::TcpCounters;
use wirestorm_stack::tcp::now::Now;
use wirestorm_stack::tcp::ranges::SequenceRange;
use wirestorm_stack::tcp::segment::{Ecn, SACK_BLOCKS_MAX, Segment};
use wirestorm_stack::tcp::sequence::SequenceNumber;

/// Highest number of departures at one time; more means an endless loop.
const DEPARTURES_MAX: usize = 1 << 16;
const FRAME_LENGTH_MAX: usize = 2_048;

/// Checks one input.
///
/// The first byte selects connection or endpoint and some settings; the second selects more TCP
/// settings.
pub fn run(input: &[u8]) {
    let [whom, choice, rest @ ..] = input else { return };
    let is_on = |bit: u8| choice & 1 << bit != 0;
    let settings = Settings {
        maximum_segment_size: if is_on(0) { 1_460 } else { 10 },
        receive_buffer: if is_on(1) { 1 << 20 } else { 4_000 },
        window_scaling: is_on(2),
        timestamps: is_on(3),
        sack: is_on(4),
        rack: whom & 4 == 0,
        ecn: match (is_on(5), whom & 16 == 0) {
            (true, true) => EcnMode::Offer,
            (true, false) => EcnMode::Accept,
            (false, _) => EcnMode::Never,
        },
        reassembly_max: if whom & 16 == 0 { 256 } else { 2 },
        send_buffer: if whom & 32 == 0 { u32::MAX } else { 2_000 },
        ack_after_bytes: if whom & 32 == 0 { 0 } else { 3_000 },
        dupack_threshold: if whom & 64 == 0 { 3 } else { 1 },
        open_timeout_ms: if whom & 64 == 0 { 0 } else { 2_500 },
        window_shift: (whom & 128 != 0).then_some(11),
        congestion: match (is_on(6), whom & 8 == 0) {
            (true, true) => Algorithm::Cubic,
            (true, false) => Algorithm::Bbr,
            (false, _) => Algorithm::NewReno,
        },
        keepalive_ms: if is_on(7) { 1_000 } else { 0 },
        ..Settings::default()
    };
    if whom & 1 == 0 {
        talk(settings, whom & 2 == 0, rest);
    } else {
        serve(settings, rest);
    }
}

/// A connection with its clock and counters.
struct Talk {
    settings: Settings,
    connection: Connection,
    counters: TcpCounters,
    /// Time in microseconds.
    at: u64,
    /// Bytes queued by the program, and bytes received in order.
    queued: u64,
    received: u64,
    is_closed: bool,
    segments: u64,
}

fn talk(settings: Settings, is_active: bool, mut rest: &[u8]) {
    let mut counters = TcpCounters::default();
    let ours = SequenceNumber(u32::MAX - 2_000);
    let now = Now::from_micros(0);
    let connection = if is_active {
        Connection::connect(&settings, ours, now, &mut counters)
    } else {
        let length = rest.first().copied().unwrap_or(0);
        let header = take(&mut rest, usize::from(length));
        let Ok((syn, _)) = Segment::parse(header, Ecn::NOT_ECT) else { return };
        Connection::accept(&settings, &syn, ours, now, &mut counters)
    };
    let mut talk = Talk {
        settings,
        connection,
        counters,
        at: 0,
        queued: 0,
        received: 0,
        is_closed: false,
        segments: 0,
    };
    // Sequence numbers near those of the connection reach more code. The first byte of a step
    // selects its kind, the second its length.
    let mut theirs = SequenceNumber(0);
    talk.transmit();
    while let Some(([kind, value], behind)) = rest.split_first_chunk() {
        rest = behind;
        match kind % 8 {
            0 => talk.pass(u64::from(*value) * 1_000),
            1 => talk.pass(u64::from(*value) * 1_000_000),
            2 if !talk.is_closed && talk.queued < u64::from(Connection::BACKLOG_MAX) => {
                let bytes = u32::from(*value) << (kind >> 4);
                talk.connection.queue(bytes, &mut talk.counters);
                talk.queued += u64::from(bytes);
            }
            3 if *value < 16 => {
                talk.connection.close();
                talk.is_closed = true;
            }
            4 if *value < 4 => talk.connection.abort(&mut talk.counters),
            _ => {
                let mut bytes = take(&mut rest, usize::from(*value)).to_vec();
                if kind & 16 != 0 && bytes.len() >= 20 {
                    // Make the numbers relative to the current state of both ends.
                    let at = |place: usize| {
                        SequenceNumber(u32::from(u16::from_be_bytes([
                            bytes[place + 2],
                            bytes[place + 3],
                        ])))
                    };
                    let sequence = theirs + at(4).0;
                    let acknowledgement = talk.connection.unacknowledged() + at(8).0;
                    bytes[4..8].copy_from_slice(&sequence.0.to_be_bytes());
                    bytes[8..12].copy_from_slice(&acknowledgement.0.to_be_bytes());
                }
                theirs = talk.arrive(&bytes, kind >> 5).unwrap_or(theirs);
            }
        }
        talk.transmit();
        talk.check();
    }
}

impl Talk {
    fn now(&self) -> Now {
        Now::from_micros(self.at)
    }

    fn pass(&mut self, micros: u64) {
        self.at += micros;
        let now = self.now();
        self.connection.handle_timeout(&self.settings, now, &mut self.counters);
    }

    /// Passes a segment to the connection; returns the sequence number that follows it.
    fn arrive(&mut self, bytes: &[u8], traffic_class: u8) -> Option<SequenceNumber> {
        let (segment, _) = Segment::parse(bytes, Ecn::of(traffic_class)).ok()?;
        let now = self.now();
        let unacknowledged = self.connection.unacknowledged();
        let was_over = self.connection.is_over();
        let arrival =
            self.connection.handle_segment(&segment, &self.settings, now, &mut self.counters);
        self.segments += 1;
        self.received += u64::from(arrival.data);
        assert!(!was_over || arrival == Default::default(), "a closed connection ignores segments");
        let moved = self.connection.unacknowledged().distance_from(unacknowledged);
        assert!(moved >= 0, "acknowledged data stays acknowledged");
        assert!(arrival.acknowledged <= moved.unsigned_abs());
        Some(segment.end())
    }

    fn transmit(&mut self) {
        let now = self.now();
        let mut sent = 0;
        while let Some(outgoing) =
            self.connection.poll_transmit(&self.settings, now, &mut self.counters)
        {
            let mut bytes = [0; 60];
            let mut sack = [SequenceRange::default(); SACK_BLOCKS_MAX];
            self.connection.sack_blocks(&mut sack);
            outgoing.write_header(1, 2, &sack, &[], &mut bytes);
            assert!(outgoing.length <= u32::from(self.settings.maximum_segment_size));
            let end = outgoing.sequence + outgoing.length;
            assert!(end.distance_from(self.connection.queued()) <= 1, "more than was queued");
            sent += 1;
            assert!(sent < DEPARTURES_MAX, "endless transmission");
        }
        if let Some(at) = self.connection.deadline(&self.settings, now) {
            // A deadline may have passed without a call of `expire`.
            self.connection.handle_timeout(&self.settings, now, &mut self.counters);
            let next = self.connection.deadline(&self.settings, now);
            let is_over = |at: u32| at.wrapping_sub(now.millis).cast_signed() <= 0;
            assert!(!next.is_some_and(is_over), "deadline {at} stays due");
        }
    }

    fn check(&self) {
        let (connection, counters) = (&self.connection, &self.counters);
        assert_eq!(connection.end().is_some(), connection.state() == State::Closed);
        // The segment that opened it and all later ones.
        assert_eq!(counters.rcvtotal, counters.accepts + self.segments);
        assert_eq!(counters.rcvbyte, self.received);
        assert_eq!(counters.sndbyte, self.queued);
        assert!(counters.sndbyte_ok <= self.queued);
        assert!(counters.rcvackbyte <= self.queued);
        assert_eq!(counters.connattempt + counters.accepts, 1);
        assert!(counters.connects <= 1);
        assert_eq!(counters.closed, u64::from(connection.state() == State::Closed));
        assert!(counters.drops + counters.conndrops <= counters.closed);
    }
}

/// An endpoint that connects and listens.
fn serve(tcp: Settings, mut rest: &[u8]) {
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"hello", 5_000, &[]));
    let range = |first: [u8; 4]| AddressRange { first: IpAddr::from(first), count: 1 };
    let tuples = Tuples {
        clients: range([16, 0, 0, 1]),
        order: ClientOrder::RoundRobin,
        servers: range([48, 0, 0, 1]),
        pairing: Pairing::RoundRobin,
        server_port: 80,
        client_ports: 1_024..=1_025,
        consecutive_flows: 1,
        reuse_after: None,
    };
    let ethernet = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let link = LinkHeader::new(&ethernet).expect("an Ethernet header").into();
    let template = |transport, role| Template {
        program: Program::new([
            Instruction::Send { buffer },
            Instruction::SendDatagram { buffer },
            Instruction::Receive { bytes: 100, clear: true },
            Instruction::ReceiveDatagrams { count: 2, clear: true },
        ])
        .expect("a program within its bounds"),
        transport,
        ip: IpSettings::default(),
        sessions: None,
        expects_resets: false,
        role,
    };
    let bytes = vec![MatchByte { offset: 1, mask: 0xf0, value: 0x40 }];
    let looking = Listen { first_bytes: bytes, ..Listen::at(81) };
    let tcp = Transport::Tcp(tcp);
    let options = EndpointOptions {
        templates: vec![
            template(
                tcp,
                Role::Client {
                    tuples,
                    link,
                    load: Load::OnDemand,
                    ramp: Duration::ZERO,
                    limit: None,
                },
            ),
            template(tcp, Role::Server { listen: Listen::at(80) }),
            template(tcp, Role::Server { listen: looking.clone() }),
            template(Transport::Udp, Role::Server { listen: Listen::at(80) }),
            template(Transport::Udp, Role::Server { listen: looking }),
        ],
        groups: Vec::new(),
        buffers,
        frame_length_max: FRAME_LENGTH_MAX,
        flows_max: 4,
        host: Host::default(),
        seed: 1,
        blackhole: Blackhole::None,
        verifies_checksums: false,
    };
    let memory = WireOptions { frames: 64, frame_length_max: FRAME_LENGTH_MAX };
    let (mut to_peer, mut at_peer) = wire(memory);
    let (mut to_us, mut at_us) = wire(memory);
    let mut now = Instant::ZERO;
    let mut endpoint = Endpoint::new(options, now);
    let mut batch = Vec::new();
    let (mut received, mut made) = (0, 0);
    while let Some(([kind, value], behind)) = rest.split_first_chunk() {
        rest = behind;
        now += Duration::from_millis(u64::from(kind >> 3) * 10);
        if kind & 7 == 0 {
            made += u64::from(endpoint.connect(0, now, &mut to_peer));
        } else {
            let frame = take(&mut rest, usize::from(*value));
            if !frame.is_empty() {
                let id = to_us.take().expect("all frames were received");
                to_us.frame_mut(&id)[..frame.len()].copy_from_slice(frame);
                to_us.send(id, frame.len(), now);
                to_us.flush().expect("memory does not fail");
                received += 1;
            }
        }
        endpoint.breathe(now, &mut to_peer, &mut at_us).expect("memory does not fail");
        drain(&mut at_peer, &mut batch);
        let (flows, tcp, udp) = (endpoint.counters(), endpoint.tcp(), endpoint.udp());
        assert!(flows.active <= flows.active_max && flows.active_max <= 4, "{flows:?}");
        assert_eq!((tcp.connattempt, flows.started), (made, made));
        let begun = made + tcp.accepts + udp.accepts;
        assert_eq!(begun, flows.active + flows.closed + flows.failed(), "{flows:?}");
        let unmatched = endpoint.unmatched();
        let apart = unmatched.no_flow
            + unmatched.no_template
            + unmatched.fragments
            + unmatched.malformed
            + unmatched.other_protocol;
        let taken = tcp.rcvtotal + udp.rcvpkt;
        // Reassembled packets count in addition to their fragments.
        let received = received + unmatched.reassembled;
        assert!(apart + taken <= received, "a frame counts once: {unmatched:?} {tcp:?} {udp:?}");
    }
}

/// Receives at the peer's side of the wire: each frame is valid.
fn drain(receive: &mut impl Receive, batch: &mut Vec<Received>) {
    receive.receive(64, batch).expect("memory does not fail");
    for received in batch.drain(..) {
        assert!(receive.frame(&received).len() >= 14);
        receive.release(received);
    }
}

/// Removes up to `length` bytes from the front.
fn take<'a>(rest: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (front, behind) = rest.split_at(length.min(rest.len()));
    *rest = behind;
    front
}
