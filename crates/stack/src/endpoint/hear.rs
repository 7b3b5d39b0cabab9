//! What frames mean to an endpoint.

use wirestorm_base::port::Transmit;
use wirestorm_base::time::Instant;
use wirestorm_wire::packet::protocol;
use wirestorm_wire::packet::tcp::Flags;

use super::Endpoint;
use super::burst::room;
use super::template::{Role, TemplateState};
use super::train::Train;
use crate::frame::{Headers, IpSettings, LinkHeader, Other, Packet, dissect, write_segment};
use crate::heard::Heard;
use crate::tcp::arrival::Arrival;
use crate::tcp::connection::{Connection, Now};
use crate::tcp::segment::{Options, Outgoing, Segment};
use crate::tcp::sequence::SequenceNumber;

impl Endpoint {
    #[inline]
    pub(super) fn hear(&mut self, frame: &[u8], now: Now, transmit: &mut impl Transmit) {
        let packet = match dissect(frame, self.verifies_checksums) {
            Ok(packet) => packet,
            Err(Other::Fragment) => return self.counters.fragments += 1,
            Err(Other::Damaged) => return self.counters.damaged += 1,
            Err(Other::Protocol) => return self.hear_neighbour(frame, transmit),
        };
        if packet.key.protocol() != protocol::TCP {
            self.counters.other_protocol += 1;
            return;
        }
        let Ok((segment, _)) = Segment::parse(packet.transport, packet.met_congestion) else {
            self.counters.damaged += 1;
            return;
        };
        let Some(place) = self.flows.find(&packet.key) else {
            return self.hear_of_new(&packet, &segment, now, transmit);
        };
        let Some(flow) = self.flows.get_mut(place) else { return };
        if flow.connection.gives_way_to(&segment) {
            flow.connection.give_way(&mut self.tcp);
            self.remove(place, now);
            return self.hear_of_new(&packet, &segment, now, transmit);
        }
        if flow.connection.is_established()
            && let Some(train) = Train::begin(frame, place, &packet, &segment)
        {
            self.train = Some(train);
            return;
        }
        if self.arrive(place, &segment, now).reset.is_some() {
            self.refuse(&packet, &segment, transmit);
        }
    }

    /// Segments that have come in a row reach their connection.
    #[inline]
    pub(super) fn hear_train(&mut self, now: Now) {
        if let Some(train) = self.train.take() {
            self.arrive(train.place, &train.segment, now);
        }
    }

    /// A segment reaches its connection.
    #[inline]
    fn arrive(&mut self, place: u32, segment: &Segment<'_>, now: Now) -> Arrival {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else {
            return Arrival::default();
        };
        let settings = self.templates[usize::from(flow.template)].settings(&flow.key);
        let arrival = flow.connection.arrive(segment, settings, now, &mut self.tcp);
        if arrival.is_established {
            self.times.connect.record(flow.age(now));
        }
        if arrival.data > 0 {
            flow.run.note_received(arrival.data);
            if !flow.is_answered {
                flow.is_answered = true;
                self.times.first_byte.record(flow.age(now));
            }
        }
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
        arrival
    }

    /// Anything but TCP and UDP.
    #[cold]
    fn hear_neighbour(&mut self, frame: &[u8], transmit: &mut impl Transmit) {
        let Heard::Question(answer) = self.host.hear(frame) else {
            self.counters.other_protocol += 1;
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
        let asks = segment.flags.contains(Flags::SYN)
            && !segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::RST);
        if !asks {
            self.counters.no_flow += 1;
            return self.refuse(packet, segment, transmit);
        }
        let port = packet.key.destination_port();
        let waits = |it: &TemplateState| matches!(it.template.role, Role::Server { port: at } if at == port);
        let Some(template) = self.templates.iter().position(waits) else {
            self.counters.no_template += 1;
            return self.refuse(packet, segment, transmit);
        };
        if self.flows.len() >= self.flows_max {
            self.counters.overflow += 1;
            return;
        }
        let Some(link) = LinkHeader::answering(packet.link).and_then(|it| self.links.place(it))
        else {
            return;
        };
        let initial = self.initial(&packet.key, now);
        let settings = self.templates[template].settings(&packet.key);
        let connection = Connection::accept(settings, segment, initial, now, &mut self.tcp);
        let place = self.insert(packet.key, connection, template as u16, link, now);
        self.serve(place, now, transmit);
    }

    /// Answers a segment that belongs to no connection with a reset (RFC 9293 section 3.10.7.1).
    #[cold]
    fn refuse(&mut self, packet: &Packet<'_>, segment: &Segment<'_>, transmit: &mut impl Transmit) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let Some(link) = LinkHeader::answering(packet.link) else { return };
        let Some(frame) = self.spare.pop().or_else(|| transmit.take()) else { return };
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
            last_flags: Flags(0),
            is_ecn_capable: false,
        };
        self.tcp.rst_sent += 1;
        self.tcp.sndctrl += 1;
        self.tcp.sndtotal += 1;
        let bytes = room(transmit, &frame);
        let ip = IpSettings::default();
        let headers = Headers { link: &link, key: &packet.key, ip: &ip };
        match write_segment(bytes, &headers, &outgoing, &[], |_| 0) {
            Some(length) => transmit.send(frame, length, Instant::ZERO),
            None => transmit.release(frame),
        }
    }
}
