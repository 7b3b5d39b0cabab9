//! What frames mean to an endpoint.

use wirestorm_base::port::{Offloads, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_wire::packet::tcp::Flags;
use wirestorm_wire::packet::{ipv4, ipv6, protocol};

use super::burst::room;
use super::executions::Place;
use super::first_data::FirstData;
use super::flow::FlowMarks;
use super::listen::Decision;
use super::template::{self, Role};
use super::times::age;
use super::train::Train;
use super::{Blackhole, Endpoint};
use crate::echo::is_echo;
use crate::frame::{Headers, LinkHeader, Other, Packet, dissect, write_segment};
use crate::heard::Heard;
use crate::ip_settings::IpSettings;
use crate::neighbour::is_discovery;
use crate::tcp::arrival::Arrival;
use crate::tcp::connection::{Connection, Now};
use crate::tcp::counters::TcpCounters;
use crate::tcp::segment::{Options, Outgoing, Segment};
use crate::tcp::sequence::SequenceNumber;

/// Bytes of a connection that are kept for a session while nobody has accepted it: no peer says so
/// much in a handshake without being answered. Who says more has none, or one that fails.
const GATHERED_MAX: u64 = 64 << 10;

impl Endpoint {
    /// A frame has arrived.
    // Inlined where frames come from though packets out of fragments are heard as well.
    #[inline(always)]
    pub(super) fn hear(
        &mut self,
        frame: &[u8],
        offloads: Offloads,
        now: Now,
        transmit: &mut impl Transmit,
    ) {
        let packet = match dissect(frame, !offloads.is_verified) {
            Ok(packet) => packet,
            Err(Other::Fragment) => return self.hear_fragment(frame, now, transmit),
            Err(Other::Protocol) => return self.hear_other(frame, now, transmit),
            Err(other) => return self.note_damage(other),
        };
        if packet.key.protocol() != protocol::TCP {
            return self.hear_datagram(frame, &packet, now, transmit);
        }
        let (mut segment, header) = match Segment::parse(packet.transport, packet.ecn) {
            Ok(parsed) => parsed,
            Err(error) => return self.note_damage(error.into()),
        };
        segment.segments = offloads.segments(segment.length);
        let Some(place) = self.flows.find(&packet.key) else {
            return self.hear_of_new(&packet, &segment, now, transmit);
        };
        let Some(flow) = self.flows.get_mut(place) else { return };
        let settings = || self.templates[usize::from(flow.template)].settings(&packet.key);
        if flow.connection.gives_way_to(&segment, settings) {
            if !self.stations.take(packet.link) {
                return self.note_other();
            }
            let tally = &mut self.templates[usize::from(flow.template)].tally;
            flow.connection.give_way(&mut tally.tcp);
            self.remove(place, now);
            return self.hear_of_new(&packet, &segment, now, transmit);
        }
        let data = &packet.transport[header..];
        let arrival = if usize::from(flow.template) >= self.templates_known {
            self.arrive_undecided(place, &segment, data, now)
        } else if flow.connection.is_established()
            // Of a train no bytes are left, and a session wants them.
            && flow.run.exchange().is_none()
            && !flow.connection.is_disturbed()
            && let Some(train) = Train::begin(frame, place, &packet, &segment)
        {
            self.train = Some(train);
            return;
        } else {
            self.arrive(place, &segment, data, now)
        };
        if arrival.is_established && segment.options.cookie_length.is_some() {
            self.learn_cookie(place, &segment);
        }
        if self.flows.get(place).is_some_and(|flow| flow.connection.is_answer_due()) {
            self.serve(place, now, transmit);
        }
        if arrival.reset.is_some() {
            self.refuse(&packet, &segment, transmit);
        }
    }

    /// A packet can belong to no flow, as something is wrong with it.
    #[cold]
    fn note_damage(&mut self, other: Other) {
        self.strays.damaged += 1;
        match other {
            Other::BadSum => self.refusals.rcvbadsum += 1,
            Other::BadOffset => self.refusals.rcvbadoff += 1,
            Other::Short => self.refusals.rcvshort += 1,
            Other::Damaged | Other::Fragment | Other::Protocol => {}
        }
    }

    /// Segments that have come in a row reach their connection.
    #[inline]
    pub(super) fn hear_train(&mut self, now: Now) {
        if let Some(train) = self.train.take() {
            self.arrive(train.place, &train.segment, &[], now);
        }
    }

    /// A segment reaches its connection, with its data for a session.
    #[inline]
    fn arrive(&mut self, place: u32, segment: &Segment<'_>, data: &[u8], now: Now) -> Arrival {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else {
            return Arrival::default();
        };
        let (template, settings, tally) = self.templates[usize::from(flow.template)].tcp(&flow.key);
        let round_trips = tally.tcp.rttupdated;
        let arrival = flow.connection.arrive(segment, settings, now, &mut tally.tcp);
        if tally.tcp.rttupdated != round_trips {
            tally.times.round_trip.record(flow.connection.timed_for(now));
        }
        if arrival.is_established {
            let after = age(flow.began_at, now);
            tally.times.connect.record(after);
            if matches!(template.role, Role::Client { .. }) {
                self.starts.note_answer(after);
            }
        }
        let mut received = arrival.data;
        if flow.run.exchange().is_some() {
            received = flow.run.hear(segment, data, &arrival, &flow.connection, now);
        }
        if received > 0 {
            flow.run.note_received(received);
            if !flow.marks.has(FlowMarks::ANSWERED) {
                flow.marks.set(FlowMarks::ANSWERED);
                tally.times.first_byte.record(age(flow.began_at, now));
            }
        }
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
        arrival
    }

    /// A segment reaches a connection of which no template is known yet: its first data says which
    /// it is. Where it is none, the connection is reset.
    #[cold]
    fn arrive_undecided(
        &mut self,
        place: u32,
        segment: &Segment<'_>,
        data: &[u8],
        now: Now,
    ) -> Arrival {
        if self.executions.counted(place).is_some() {
            return self.arrive_held(place, segment, data, now);
        }
        let Some((flow, pending)) = self.flows.get_with_queue(place) else {
            return Arrival::default();
        };
        let mut counted = TcpCounters::default();
        let (_, settings, tally) = self.templates[usize::from(flow.template)].tcp(&flow.key);
        let expected = flow.connection.expected();
        let arrival = flow.connection.arrive(segment, settings, now, &mut counted);
        if counted.rttupdated > 0 {
            tally.times.round_trip.record(flow.connection.timed_for(now));
        }
        if arrival.is_established {
            tally.times.connect.record(age(flow.began_at, now));
        }
        if arrival.data > 0 {
            flow.run.note_received(arrival.data);
            flow.marks.set(FlowMarks::ANSWERED);
        }
        let known = self.first_data.get(&place);
        let has_data = arrival.data > 0 || arrival.beyond > 0;
        let is_all = flow.connection.is_peer_done();
        let mut decision = Decision::Open;
        if known.is_none() && segment.sequence == expected {
            // Most often the first segment says it all, and nothing has to be kept.
            let data = data.get(..arrival.data as usize).unwrap_or(data);
            if !data.is_empty() {
                decision = self.servers.decide(&flow.key, data, is_all);
            }
        }
        if decision == Decision::Open && (has_data || is_all && known.is_some()) {
            let length = self.servers.bytes_max(&flow.key);
            let first = self.first_data.entry(place);
            let first = first.or_insert_with(|| FirstData::new(expected, length, now));
            first.take(segment.sequence, data);
            decision = self.servers.decide(&flow.key, first.known(&flow.connection), is_all);
        }
        match decision {
            Decision::For(template) => {
                tally.flows.active -= 1;
                tally.tcp.accepts -= 1;
                tally.tcp.rcvtotal -= 1;
                // The data may have come with what established it.
                tally.tcp.connects -= 1 - counted.connects;
                let first = self.first_data.remove(&place);
                let answered_at = first.as_ref().map_or(now, |it| it.came_at);
                if let Some(first) = first {
                    tally.tcp.take_off(&first.counted);
                    counted.merge(&first.counted);
                }
                counted.accepts += 1;
                counted.rcvtotal += 1;
                counted.connects = 1;
                flow.template = template;
                flow.run.begin_anew();
                let tally = &mut self.templates[usize::from(template)].tally;
                tally.flows.note_begin();
                tally.times.first_byte.record(age(flow.began_at, answered_at));
            }
            Decision::Nobody => {
                self.strays.no_match += 1;
                flow.connection.abort(&mut counted);
            }
            Decision::Open => {
                if let Some(first) = self.first_data.get_mut(&place) {
                    // That it is established moves by itself.
                    first.counted.merge(&TcpCounters { connects: 0, ..counted });
                }
            }
        }
        self.templates[usize::from(flow.template)].tally.tcp.merge(&counted);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
        if matches!(decision, Decision::For(_)) && self.followed.has_room() {
            self.begin_followed(Place::Tcp(place), now);
        }
        arrival
    }

    /// A segment reaches a connection that is held until somebody accepts it: what it brings is for
    /// the program that it will have.
    fn arrive_held(&mut self, place: u32, segment: &Segment<'_>, data: &[u8], now: Now) -> Arrival {
        let holder = self.flows.get(place).map_or(0, |it| usize::from(it.template));
        let before = self.templates[holder].tally.tcp;
        let arrival = self.arrive(place, segment, data, now);
        let mut since = self.templates[holder].tally.tcp;
        since.take_off(&before);
        if let Some(counted) = self.executions.counted(place) {
            counted.merge(&since);
        }
        if let Some(flow) = self.flows.get_mut(place)
            && flow.run.gathered() > GATHERED_MAX
        {
            flow.run.stop_gathering();
        }
        arrival
    }

    /// Anything but TCP and UDP.
    #[cold]
    fn hear_other(&mut self, frame: &[u8], now: Now, transmit: &mut impl Transmit) {
        if self.hear_icmp_error(frame, now) {
            return;
        }
        let Heard::Question(answer) = self.host.hear(frame) else {
            // Pings are answered, and asked, by the port as a host, beside its flows; and so are
            // questions for its Ethernet address.
            let is_hosts = is_echo(frame) || is_discovery(frame);
            if !is_hosts {
                self.strays.other_protocol += 1;
                self.refuse_protocol(frame, now, transmit);
            }
            return;
        };
        let Some(frame) = self.spare.pop().or_else(|| transmit.take()) else { return };
        match room(transmit, &frame).get_mut(..answer.len()) {
            Some(bytes) => {
                bytes.copy_from_slice(&answer);
                transmit.send(frame, answer.len(), Instant::ZERO);
            }
            None => transmit.release(frame),
        }
    }

    /// A segment that belongs to no connection.
    #[cold]
    fn hear_of_new(
        &mut self,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
        now: Now,
        transmit: &mut impl Transmit,
    ) {
        if !self.is_for_us(packet) {
            return;
        }
        let asks = segment.flags.contains(Flags::SYN)
            && !segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::RST);
        let listener = self.servers.at(&packet.key);
        let Some(template) = listener.filter(|_| asks) else {
            if asks && self.hear_expected(packet, segment, now, transmit) {
                return;
            }
            if self.leaves_strays {
                return;
            }
            let count = match asks {
                true => &mut self.strays.no_template,
                false => &mut self.strays.no_flow,
            };
            *count += 1;
            // RFC 9293 section 3.10.7.2, fourth, of who listens: "This should not be reached. Drop
            // the segment and return."
            let says_nothing = segment.flags.0 & (Flags::SYN | Flags::ACK | Flags::RST).0 == 0;
            if listener.is_some() && says_nothing {
                return;
            }
            match self.blackhole {
                Blackhole::All => return,
                Blackhole::Syn if asks => return,
                _ if !self.may_refuse(&packet.key) => return,
                _ => return self.refuse(packet, segment, transmit),
            }
        };
        if let Some(place) = self.accept(packet, segment, template, now) {
            if segment.options.cookie_length.is_some() {
                let header = packet.transport.len() - segment.length as usize;
                self.take_early(place, segment, &packet.transport[header..], now);
            }
            self.serve(place, now, transmit);
        }
    }

    /// Begins the connection of a template that a SYN asks for.
    pub(super) fn accept(
        &mut self,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
        template: u16,
        now: Now,
    ) -> Option<u32> {
        if self.is_full() {
            self.templates[usize::from(template)].tally.flows.overflow += 1;
            return None;
        }
        let link = self.way_back(packet)?;
        let excess = link.excess();
        let link = self.links.take(link);
        let initial = self.initial(&packet.key, now);
        let (_, settings, tally) = self.templates[usize::from(template)].tcp(&packet.key);
        let mut connection = Connection::accept(settings, segment, initial, now, &mut tally.tcp);
        self.paths.limit(&packet.key, &mut connection, settings);
        if excess > 0 {
            let ip = match packet.key.version() {
                4 => ipv4::HEADER_LENGTH_MIN,
                _ => ipv6::HEADER_LENGTH,
            };
            let room = template::room(self.frame_length_max.saturating_sub(excess), ip);
            connection.limit_segments(room, settings);
        }
        Some(self.insert(packet.key, connection, template, link, now))
    }

    /// What is below IP in answers to a packet that begins a flow.
    pub(super) fn way_back(&mut self, packet: &Packet<'_>) -> Option<LinkHeader> {
        let link = LinkHeader::answering(packet.link);
        // It has more tags and labels than a header has room for.
        self.strays.other_protocol += u64::from(link.is_none());
        link
    }

    /// Answers a segment that belongs to no connection with a reset (RFC 9293 section 3.10.7.1).
    #[cold]
    pub(super) fn refuse(
        &mut self,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
        transmit: &mut impl Transmit,
    ) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let Some(link) = LinkHeader::answering(packet.link) else { return };
        let Some(frame) = self.spare.pop().or_else(|| transmit.take()) else {
            self.refusals.nombuf += 1;
            return;
        };
        let acknowledges = segment.flags.contains(Flags::ACK);
        let outgoing = Outgoing {
            sequence: if acknowledges { segment.acknowledgement } else { SequenceNumber(0) },
            acknowledgement: if acknowledges { SequenceNumber(0) } else { segment.end() },
            flags: if acknowledges { Flags::RST } else { Flags::RST | Flags::ACK },
            window: 0,
            options: Options::default(),
            sack_blocks: 0,
            length: 0,
            more: 0,
            tail: 0,
            last_flags: Flags(0),
            is_ecn_capable: false,
        };
        self.refusals.rst_sent += 1;
        self.refusals.sndctrl += 1;
        self.refusals.sndtotal += 1;
        let bytes = room(transmit, &frame);
        let ip = IpSettings::default();
        let headers =
            Headers { link: &link, key: &packet.key, ip: &ip, identification: 0, cookie: &[] };
        match write_segment(bytes, &headers, &outgoing, &[], |_| 0) {
            Some(length) => transmit.send(frame, length, Instant::ZERO),
            None => transmit.release(frame),
        }
    }
}
