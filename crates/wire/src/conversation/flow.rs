//! State of one flow during the import.

use alloc::vec::Vec;
use core::net::SocketAddr;

use wirestorm_base::time::{Duration, Instant};

use super::error::ConversationError;
use super::packet::{Body, Damage, Packet};
use super::pauses::PauseDetector;
use super::stream::{MissingData, Stream};
use super::{Action, Conversation, Side, Transport, Turn};
use crate::flow::FlowKey;
use crate::packet::protocol;
use crate::packet::tcp::Flags;

/// Shortest pause of one side that begins a new turn.
const PAUSE: Duration = Duration::from_micros(500);

/// MSS of Ethernet, assumed without an MSS option.
const USUAL_SEGMENT: u16 = 1_460;

/// A flow. Side 0 is the sender of its first packet, side 1 the other end.
#[derive(Debug)]
pub(super) struct Flow {
    /// Key of packets from side 0.
    key: FlowKey,
    packet: u64,
    streams: [Stream; 2],
    pauses: [PauseDetector; 2],
    /// For each side with out-of-order segments: arrival of the first one, and whether the network
    /// caused the pause before it.
    early: [Option<(Instant, bool)>; 2],
    /// Smallest MSS option of both sides.
    segment_max: Option<u16>,
    /// Bytes of all datagrams.
    datagram_bytes: usize,
    /// Side of the client, if a SYN shows it.
    client: Option<usize>,
    turns: Vec<(usize, Duration, Action)>,
    /// End of the last turn, or time of the last SYN.
    last: Option<Instant>,
    closed: [bool; 2],
    is_reset: bool,
    fault: Option<ConversationError>,
    /// TCP: first packet with missing fragments. A retransmission may have replaced it.
    fragment: Option<u64>,
}

/// Relation of a packet to a flow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketRelation {
    /// The packet belongs to the flow.
    SameFlow,
    /// The packet opens another connection between the same ends.
    NewConnection,
}

impl Flow {
    pub(super) fn new(key: FlowKey, packet: u64) -> Self {
        Self {
            key,
            packet,
            streams: Default::default(),
            pauses: Default::default(),
            early: [None; 2],
            segment_max: None,
            datagram_bytes: 0,
            client: None,
            turns: Vec::new(),
            last: None,
            closed: [false; 2],
            is_reset: false,
            fault: None,
            fragment: None,
        }
    }

    /// Returns the out-of-order segments of both sides.
    pub(super) fn early(&self) -> usize {
        self.streams.iter().map(Stream::early).sum()
    }

    /// Returns the bytes that the flow keeps.
    pub(super) fn memory(&self) -> usize {
        let of_streams: usize = self.streams.iter().map(Stream::memory).sum();
        of_streams + self.datagram_bytes + self.turns.len() * size_of::<(usize, Duration, Action)>()
    }

    /// Takes packet `number` between the ends of the flow.
    pub(super) fn take(
        &mut self,
        packet: &Packet<'_>,
        number: u64,
        now: Instant,
    ) -> PacketRelation {
        let side = usize::from(packet.key != self.key);
        let body = packet.body;
        let packet = number;
        match body {
            Err(Damage::Fragment) if self.key.protocol() == protocol::TCP => {
                self.fragment.get_or_insert(packet);
            }
            Err(damage) => {
                let fault = match damage {
                    Damage::Truncated { found, expected } => {
                        ConversationError::Truncated { packet, found, expected }
                    }
                    Damage::Fragment => ConversationError::Fragment { packet },
                    Damage::BadHeader(reason) => ConversationError::BadHeader { packet, reason },
                };
                self.fault.get_or_insert(fault);
            }
            Ok(Body::Datagram(payload)) => {
                self.datagram_bytes += payload.len();
                self.turn(side, now, Action::Send(payload.to_vec()));
            }
            Ok(Body::Segment { flags, sequence, acknowledgement, segment_max, payload }) => {
                if flags.contains(Flags::SYN) && !self.begin(side, flags, sequence, now) {
                    return PacketRelation::NewConnection;
                }
                if self.is_reset {
                    return PacketRelation::SameFlow;
                }
                if flags.contains(Flags::RST) {
                    // A reset after a FIN of the same side only speeds up the end.
                    if !self.closed[side] {
                        self.turn(side, now, Action::Reset);
                        self.is_reset = true;
                    }
                    return PacketRelation::SameFlow;
                }
                let is_syn = flags.contains(Flags::SYN);
                let first = sequence.wrapping_add(u32::from(is_syn));
                if flags.contains(Flags::ACK) {
                    let stream = &mut self.streams[1 - side];
                    let is_new = stream.acknowledge(acknowledgement, packet);
                    self.pauses[1 - side].acknowledge(now, is_new, stream.is_acknowledged());
                }
                if is_syn {
                    self.segment_max = [self.segment_max, segment_max].into_iter().flatten().min();
                    self.pauses[side].send(now, 0, USUAL_SEGMENT);
                }
                self.segment(side, first, flags, payload, packet, now);
            }
        }
        PacketRelation::SameFlow
    }

    /// Takes a SYN; returns `false` if it opens another connection.
    fn begin(&mut self, side: usize, flags: Flags, sequence: u32, now: Instant) -> bool {
        let answers = flags.contains(Flags::ACK);
        let is_new = self.turns.is_empty() && self.streams[1 - side].delivered() == 0;
        if !self.streams[side].begin(sequence) {
            if answers {
                // A stray SYN-ACK: its sequence number is useless.
                return true;
            }
            if !is_new || self.streams[1 - side].early() > 0 {
                return false;
            }
            // The earlier SYN had no answer, and the client retries with a new number.
            self.streams = Default::default();
            self.pauses = Default::default();
            self.streams[side].begin(sequence);
        }
        self.client.get_or_insert(if answers { 1 - side } else { side });
        if is_new {
            self.last = Some(now);
        }
        true
    }

    fn segment(
        &mut self,
        side: usize,
        first: u32,
        flags: Flags,
        payload: &[u8],
        packet: u64,
        now: Instant,
    ) {
        let stream = &mut self.streams[side];
        let mut new = Vec::new();
        if flags.contains(Flags::FIN) {
            stream.finish(first.wrapping_add(payload.len() as u32));
        }
        let has_new = stream.take(first, payload, packet, &mut new);
        let is_over = stream.is_complete();
        if has_new {
            let is_of_network = self.pauses[side].is_network_pause(now, &self.pauses[1 - side]);
            let full = self.segment_max.unwrap_or(USUAL_SEGMENT);
            self.pauses[side].send(now, payload.len(), full);
            self.early[side].get_or_insert((now, is_of_network));
        }
        if !new.is_empty() {
            // A segment lost before the capture point and retransmitted is no pause of the sender.
            let (since, is_of_network) = self.early[side].take().unwrap_or((now, false));
            let pause = self.last.map_or(Duration::ZERO, |last| since.saturating_since(last));
            match self.turns.last_mut() {
                Some((last, _, Action::Send(bytes)))
                    if *last == side && (is_of_network || pause < PAUSE) =>
                {
                    bytes.append(&mut new);
                }
                _ => self.turns.push((side, pause, Action::Send(new))),
            }
            self.last = self.last.max(Some(now));
        }
        if is_over && !self.closed[side] {
            self.closed[side] = true;
            self.turn(side, now, Action::Close);
        }
    }

    fn turn(&mut self, side: usize, now: Instant, act: Action) {
        let gap = self.last.map_or(Duration::ZERO, |last| now.saturating_since(last));
        self.turns.push((side, gap, act));
        self.last = self.last.max(Some(now));
    }

    /// Returns the conversation or its error.
    pub(super) fn finish(self) -> Result<Conversation, ConversationError> {
        let is_tcp = self.key.protocol() == protocol::TCP;
        let first_sender = || {
            let spoken = self.turns.iter().find(|(_, _, act)| matches!(act, Action::Send(_)));
            spoken.map_or(0, |(side, ..)| *side)
        };
        let client = self.client.unwrap_or_else(first_sender);
        let side = |index: usize| if index == client { Side::Client } else { Side::Server };
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let has_all = self.streams.iter().all(|stream| stream.missing_data().is_none());
        if let Some(packet) = self.fragment
            && !(has_all && self.streams.iter().any(|stream| stream.delivered() > 0))
        {
            return Err(ConversationError::Fragment { packet });
        }
        for (index, stream) in self.streams.iter().enumerate() {
            let (from, has) =
                (if index == client { "the client" } else { "the server" }, stream.delivered());
            match stream.missing_data() {
                Some(MissingData::Hole { packet, found }) => {
                    return Err(ConversationError::MissingData {
                        packet,
                        from,
                        found,
                        captured: has,
                    });
                }
                Some(MissingData::Unseen { packet, found }) => {
                    return Err(ConversationError::UncapturedData { packet, from, found, has });
                }
                None => {}
            }
        }
        let key = if client == 0 { self.key } else { self.key.reversed() };
        Ok(Conversation {
            transport: if is_tcp { Transport::Tcp } else { Transport::Udp },
            client: SocketAddr::new(key.source(), key.source_port()),
            server: SocketAddr::new(key.destination(), key.destination_port()),
            packet: self.packet,
            has_beginning: !is_tcp || self.client.is_some(),
            turns: self
                .turns
                .into_iter()
                .map(|(index, gap, act)| Turn { side: side(index), gap, act })
                .collect(),
        })
    }
}
