//! The frames that the two hosts of a conversation exchange, with their timing.

use etherparse::{TcpHeader, TcpOptionElement};

use super::frame::{Conversation, Upper};
use super::random::Random;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;

/// Kinds of conversations with their weights; the sum is 100.
const MIX: [(Kind, u64); 8] = [
    (Kind::Https, 35),
    (Kind::Dns, 28),
    (Kind::Http, 16),
    (Kind::Quic, 10),
    (Kind::Ping, 5),
    (Kind::Ntp, 3),
    (Kind::Voice, 1),
    (Kind::Arp, 2),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Https,
    Dns,
    Http,
    Quic,
    Ping,
    Ntp,
    Voice,
    Arp,
}

impl Kind {
    pub(super) fn choose(random: &mut Random) -> Self {
        let mut ticket = random.between(0, 99);
        for (kind, weight) in MIX {
            if ticket < weight {
                return kind;
            }
            ticket -= weight;
        }
        Self::Arp
    }

    pub(super) fn server_port(self) -> u16 {
        match self {
            Self::Https | Self::Quic => 443,
            Self::Dns => 53,
            Self::Http => 80,
            Self::Ntp => 123,
            Self::Voice => 5004,
            Self::Ping | Self::Arp => 0,
        }
    }
}

/// One frame of the script.
#[derive(Clone, Debug)]
struct Step {
    /// Nanoseconds since the previous step.
    gap: u64,
    from_client: bool,
    message: Message,
}

#[derive(Clone, Debug)]
enum Message {
    Tcp { flags: Flags, payload: Payload },
    Udp(Payload),
    Echo { sequence: u16, length: usize },
    Arp,
}

#[derive(Clone, Debug)]
enum Payload {
    Written(Vec<u8>),
    /// Random bytes, generated together with the frame.
    Filler(usize),
}

impl Payload {
    const NONE: Self = Self::Filler(0);

    fn bytes(self, random: &mut Random) -> Vec<u8> {
        match self {
            Self::Written(bytes) => bytes,
            Self::Filler(length) => random.bytes(length),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flags {
    Syn,
    SynAck,
    Ack,
    PushAck,
    FinAck,
}

/// A conversation in progress.
#[derive(Debug)]
pub(super) struct Dialogue {
    conversation: Conversation,
    random: Random,
    steps: std::vec::IntoIter<Step>,
    /// Next sequence numbers of client and server.
    sequences: [u32; 2],
    /// Start values of both RFC 7323 timestamp clocks, in milliseconds.
    stamps: [u32; 2],
    started: u64,
}

impl Dialogue {
    pub(super) fn new(
        conversation: Conversation,
        kind: Kind,
        mut random: Random,
        started: u64,
    ) -> Self {
        let mut script = Script {
            round_trip: random.between(300 * MICROSECOND, 60 * MILLISECOND),
            segment_length_max: conversation.segment_length_max(),
            is_ipv6: conversation.is_ipv6(),
            random: &mut random,
            steps: Vec::new(),
        };
        match kind {
            Kind::Https => script.https(),
            Kind::Http => script.http(),
            Kind::Dns => script.dns(),
            Kind::Quic => script.quic(),
            Kind::Ping => script.ping(),
            Kind::Ntp => script.ntp(),
            Kind::Voice => script.voice(),
            Kind::Arp => script.arp(),
        }
        let steps = script.steps.into_iter();
        let sequences = [random.next() as u32, random.next() as u32];
        let stamps = [random.next() as u32, random.next() as u32];
        Self { conversation, random, steps, sequences, stamps, started }
    }

    /// Nanoseconds from the previous frame to the next; `None` at the end.
    pub(super) fn gap(&self) -> Option<u64> {
        self.steps.as_slice().first().map(|step| step.gap)
    }

    /// Builds the next frame, which leaves at `time`.
    pub(super) fn frame(&mut self, time: u64) -> Option<Vec<u8>> {
        let Step { from_client, message, .. } = self.steps.next()?;
        Some(match message {
            Message::Tcp { flags, payload } => {
                let payload = payload.bytes(&mut self.random);
                let header = self.tcp_header(time, from_client, flags, payload.len());
                self.conversation.frame(from_client, Upper::Tcp(Box::new(header)), &payload)
            }
            Message::Udp(payload) => {
                let payload = payload.bytes(&mut self.random);
                self.conversation.frame(from_client, Upper::Udp, &payload)
            }
            Message::Echo { sequence, length } => {
                let identifier = self.conversation.client.port;
                let upper = Upper::Echo { reply: !from_client, identifier, sequence };
                // A reply carries the request's data (RFC 792), so the data is not random.
                let payload: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
                self.conversation.frame(from_client, upper, &payload)
            }
            Message::Arp => self.conversation.arp(from_client),
        })
    }

    fn tcp_header(
        &mut self,
        time: u64,
        from_client: bool,
        flags: Flags,
        payload_length: usize,
    ) -> TcpHeader {
        let [sender, receiver] = if from_client { [0, 1] } else { [1, 0] };
        let elapsed = ((time - self.started) / MILLISECOND) as u32;
        let is_syn = matches!(flags, Flags::Syn | Flags::SynAck);
        let stamp = TcpOptionElement::Timestamp(
            self.stamps[sender].wrapping_add(elapsed),
            if flags == Flags::Syn { 0 } else { self.stamps[receiver].wrapping_add(elapsed) },
        );
        let mut header = TcpHeader {
            sequence_number: self.sequences[sender],
            acknowledgment_number: if flags == Flags::Syn { 0 } else { self.sequences[receiver] },
            syn: is_syn,
            ack: flags != Flags::Syn,
            psh: flags == Flags::PushAck,
            fin: flags == Flags::FinAck,
            window_size: if is_syn { 64_240 } else { 502 },
            ..TcpHeader::default()
        };
        let segment = self.conversation.segment_length_max() as u16 + 12;
        let options = [
            TcpOptionElement::MaximumSegmentSize(segment),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
            stamp.clone(),
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(7),
        ];
        let later = [TcpOptionElement::Noop, TcpOptionElement::Noop, stamp];
        let options: &[TcpOptionElement] = if is_syn { &options } else { &later };
        header.set_options(options).expect("20 bytes of options fit the 40 there are");
        let counted = payload_length as u32 + u32::from(is_syn || flags == Flags::FinAck);
        self.sequences[sender] = self.sequences[sender].wrapping_add(counted);
        header
    }
}

/// Writes the steps of one conversation.
struct Script<'a> {
    round_trip: u64,
    segment_length_max: usize,
    is_ipv6: bool,
    random: &'a mut Random,
    steps: Vec<Step>,
}

impl Script<'_> {
    fn push_step(&mut self, gap: u64, from_client: bool, message: Message) {
        self.steps.push(Step { gap, from_client, message });
    }

    fn tcp(&mut self, gap: u64, from_client: bool, flags: Flags, payload: Payload) {
        self.push_step(gap, from_client, Message::Tcp { flags, payload });
    }

    /// Time until a server's answer arrives: one round trip plus the server's work.
    fn response_time(&mut self) -> u64 {
        self.round_trip + self.random.between(20 * MICROSECOND, 30 * MILLISECOND)
    }

    fn client_delay(&mut self) -> u64 {
        self.random.between(5 * MICROSECOND, 200 * MICROSECOND)
    }

    fn handshake(&mut self) {
        self.tcp(0, true, Flags::Syn, Payload::NONE);
        self.tcp(self.round_trip, false, Flags::SynAck, Payload::NONE);
        let gap = self.client_delay();
        self.tcp(gap, true, Flags::Ack, Payload::NONE);
    }

    fn close(&mut self) {
        let (think, gap) =
            (self.random.between(MILLISECOND, 300 * MILLISECOND), self.client_delay());
        self.tcp(think, true, Flags::FinAck, Payload::NONE);
        self.tcp(self.round_trip, false, Flags::FinAck, Payload::NONE);
        self.tcp(gap, true, Flags::Ack, Payload::NONE);
    }

    /// Adds `length` bytes in full segments, of which the first are `head`. The receiver
    /// acknowledges every second segment (RFC 9293, 3.8.6.3).
    fn stream(&mut self, first_gap: u64, from_client: bool, mut head: Vec<u8>, length: usize) {
        let mut left = length.max(head.len());
        let mut gap = first_gap;
        let mut unacknowledged = 0;
        while left > 0 {
            let size = left.min(self.segment_length_max);
            left -= size;
            let payload = if head.is_empty() {
                Payload::Filler(size)
            } else {
                let mut bytes = std::mem::take(&mut head);
                let filler = self.random.bytes(size.saturating_sub(bytes.len()));
                bytes.extend_from_slice(&filler);
                Payload::Written(bytes)
            };
            let flags = if left == 0 { Flags::PushAck } else { Flags::Ack };
            self.tcp(gap, from_client, flags, payload);
            unacknowledged += 1;
            if unacknowledged == 2 || left == 0 {
                let answer = self.client_delay();
                self.tcp(answer, !from_client, Flags::Ack, Payload::NONE);
                unacknowledged = 0;
            }
            gap = self.random.between(2 * MICROSECOND, 150 * MICROSECOND);
        }
    }

    fn http(&mut self) {
        self.handshake();
        for _ in 0..self.random.between(1, 4) {
            let think = self.random.between(100 * MICROSECOND, 200 * MILLISECOND);
            let page = self.random.between(1, 9_999);
            let cookie = "0123456789abcdef".repeat(self.random.between(1, 25) as usize);
            let request = format!(
                "GET /page/{page} HTTP/1.1\r\nHost: www.example.net\r\nAccept: */*\r\n\
                 User-Agent: sample/1.0\r\nCookie: session={cookie}\r\n\r\n"
            );
            self.stream(think, true, request.into_bytes(), 0);
            let body = self.random.heavy_tail(1_500, 300_000, 1.0);
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\
                 Content-Length: {body}\r\n\r\n"
            );
            let (gap, length) = (self.response_time(), answer.len() + body as usize);
            self.stream(gap, false, answer.into_bytes(), length);
        }
        self.close();
    }

    fn https(&mut self) {
        self.handshake();
        // Typical sizes of hello, certificate and finished messages; the contents are not imitated.
        for (from_client, low, high) in [(true, 280, 620), (false, 2_400, 4_800), (true, 74, 120)] {
            let gap = if from_client { self.client_delay() } else { self.response_time() };
            self.records(gap, from_client, low, high);
        }
        for _ in 0..self.random.between(1, 5) {
            let think = self.random.between(100 * MICROSECOND, 400 * MILLISECOND);
            self.records(think, true, 90, 900);
            let size = self.random.heavy_tail(1_200, 400_000, 1.0);
            let gap = self.response_time();
            self.records(gap, false, size, size);
        }
        self.close();
    }

    /// Adds TLS application data (RFC 8446, 5.1) of `low` to `high` bytes in total. A record holds
    /// at most 16,384 bytes; the rest is filler, which a dissector shows as a continuation.
    fn records(&mut self, gap: u64, from_client: bool, low: u64, high: u64) {
        let length = self.random.between(low, high) as usize;
        let mut head = vec![0x17, 3, 3];
        head.extend_from_slice(&(length.min(16_384) as u16).to_be_bytes());
        self.stream(gap, from_client, head, length + 5);
    }

    /// Adds one query and one response (RFC 1035, 4).
    fn dns(&mut self) {
        let host = self.random.between(0, 99_999);
        let label = format!("host-{host}");
        let record_type: u16 = if self.random.chance(0.3) { 28 } else { 1 };
        let mut question = vec![label.len() as u8];
        question.extend_from_slice(label.as_bytes());
        question.extend_from_slice(b"\x07example\x03net\x00");
        question.extend_from_slice(&record_type.to_be_bytes());
        question.extend_from_slice(&1_u16.to_be_bytes());
        let identifier = self.random.next() as u16;
        let answers = self.random.between(1, 4) as u16;
        let message = |flags: u16, answers: u16| {
            let mut message = Vec::new();
            for word in [identifier, flags, 1, answers, 0, 0] {
                message.extend_from_slice(&word.to_be_bytes());
            }
            message.extend_from_slice(&question);
            message
        };
        let query = message(0x0100, 0);
        let mut answer = message(0x8180, answers);
        for _ in 0..answers {
            let address = self.random.bytes(if record_type == 28 { 16 } else { 4 });
            // The name is a pointer to the question's name at offset 12.
            answer.extend_from_slice(&[0xc0, 12]);
            answer.extend_from_slice(&record_type.to_be_bytes());
            answer.extend_from_slice(&[0, 1, 0, 0, 1, 44]);
            answer.extend_from_slice(&(address.len() as u16).to_be_bytes());
            answer.extend_from_slice(&address);
        }
        self.push_step(0, true, Message::Udp(Payload::Written(query)));
        let gap = self.response_time();
        self.push_step(gap, false, Message::Udp(Payload::Written(answer)));
    }

    /// Adds datagrams with QUIC's short header and typical sizes; the contents cannot be decrypted.
    fn quic(&mut self) {
        let datagrams = self.random.heavy_tail(4, 150, 1.1);
        let mut gap = 0;
        for number in 0..datagrams {
            let from_client = number == 0 || self.random.chance(0.25);
            let length = match (number, from_client) {
                (0 | 1, _) => 1_200,
                (_, true) => self.random.between(30, 120),
                (_, false) => self.random.between(1_000, 1_350),
            };
            let mut payload = self.random.bytes(length as usize);
            // First byte of the short header, then a connection ID. A leading zero keeps dissectors
            // from decoding the datagram as an ISO transport protocol.
            payload[0] = 0x40 | (payload[0] & 0x3f);
            payload[1] = 0;
            self.push_step(gap, from_client, Message::Udp(Payload::Written(payload)));
            gap = self.random.between(10 * MICROSECOND, 3 * MILLISECOND);
            if number == 0 {
                gap += self.round_trip;
            }
        }
    }

    fn ping(&mut self) {
        let length =
            *[56, 56, 56, 32, 1_400].get(self.random.between(0, 4) as usize).unwrap_or(&56);
        for sequence in 1..=self.random.between(1, 4) as u16 {
            let gap = if sequence == 1 { 0 } else { 1_000 * MILLISECOND - self.round_trip };
            self.push_step(gap, true, Message::Echo { sequence, length });
            self.push_step(self.round_trip, false, Message::Echo { sequence, length });
        }
    }

    /// Adds a version 4 request and response in client and server mode (RFC 5905, 7.3).
    fn ntp(&mut self) {
        for (gap, from_client, first) in [(0, true, 0x23), (self.round_trip, false, 0x24)] {
            let mut message = vec![0; 48];
            message[0] = first;
            message[40..].copy_from_slice(&self.random.bytes(8));
            self.push_step(gap, from_client, Message::Udp(Payload::Written(message)));
        }
    }

    /// Adds RTP in both directions with 20 ms of G.711 a packet (RFC 3550, 5.1).
    fn voice(&mut self) {
        let sources = [self.random.next() as u32, self.random.next() as u32];
        for number in 0..self.random.between(20, 120) {
            for (from_client, source) in [true, false].into_iter().zip(sources) {
                let mut message = vec![0x80, 0];
                message.extend_from_slice(&(number as u16).to_be_bytes());
                message.extend_from_slice(&(number as u32 * 160).to_be_bytes());
                message.extend_from_slice(&source.to_be_bytes());
                message.resize(12 + 160, 0xff);
                let gap = if from_client { 17 * MILLISECOND } else { 3 * MILLISECOND };
                self.push_step(gap, from_client, Message::Udp(Payload::Written(message)));
            }
        }
    }

    fn arp(&mut self) {
        debug_assert!(!self.is_ipv6, "ARP is of IPv4");
        self.push_step(0, true, Message::Arp);
        let gap = self.client_delay();
        self.push_step(gap, false, Message::Arp);
    }
}
