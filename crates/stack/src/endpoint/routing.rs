//! Routing of received frames: to a flow, to a server, or to the responder.

use wirestorm_base::port::{Offloads, Receive, Received, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::fragment::Taken;
use wirestorm_wire::packet::tcp::Flags;
use wirestorm_wire::packet::{ipv4, protocol, udp};

use super::Endpoint;
use super::common::Common;
use super::connections::Train;
use super::events::FlowSlot;
use super::transports::Transports;
use crate::frame::{DissectError, LinkHeader, Packet, dissect, has_damaged_header, network_header};
use crate::icmp_error::{Cause, IcmpError};
use crate::tcp::now::Now;
use crate::tcp::receive::SegmentOutcome;
use crate::tcp::segment::Segment;
use crate::tcp::sequence::SequenceNumber;

impl Endpoint {
    /// Processes a received frame.
    // Inlined into the receive loop, although reassembled packets call it as well.
    #[inline(always)]
    pub(super) fn receive(
        &mut self,
        frame: &[u8],
        offloads: Offloads,
        now: Now,
        transmit: &mut impl Transmit,
    ) {
        let packet = match dissect(frame, !offloads.is_verified) {
            Ok(packet) => packet,
            Err(DissectError::Fragment) => return self.receive_fragment(frame, now, transmit),
            Err(DissectError::Protocol) => return self.receive_other(frame, now, transmit),
            Err(other) => return self.responder.note_damage(other, &mut self.flows.common),
        };
        if packet.key.protocol() != protocol::TCP {
            return self.receive_datagram(frame, &packet, now, transmit);
        }
        let (mut segment, header) = match Segment::parse(packet.transport, packet.ecn) {
            Ok(parsed) => parsed,
            Err(error) => return self.responder.note_damage(error.into(), &mut self.flows.common),
        };
        segment.segments = offloads.segments(segment.length);
        let Some(place) = self.flows.connections.flows.find(&packet.key) else {
            return self.receive_unmatched_segment(&packet, &segment, now, transmit);
        };
        let Some(flow) = self.flows.connections.flows.get_mut(place) else { return };
        let settings =
            || self.flows.common.templates[usize::from(flow.template)].settings(&packet.key);
        if flow.connection.may_be_replaced_by(&segment, settings) {
            if !self.responder.local_addresses.take(packet.link) {
                return self.responder.note_other(&mut self.flows.common);
            }
            let tally = &mut self.flows.common.templates[usize::from(flow.template)].tally;
            flow.connection.end_time_wait(&mut tally.tcp);
            let Transports { common, connections, .. } = &mut self.flows;
            connections.remove(place, now, common);
            self.executions.settle(&mut self.flows);
            return self.receive_unmatched_segment(&packet, &segment, now, transmit);
        }
        let data = &packet.transport[header..];
        let arrival = if usize::from(flow.template) >= self.flows.common.templates_known {
            self.arrive_without_template(place, &segment, data, now)
        } else if flow.connection.is_established()
            // A train keeps no data, which a session needs.
            && flow.run.exchange().is_none()
            && !flow.connection.has_reordering()
            && let Some(train) = Train::begin(frame, place, &packet, &segment)
        {
            self.flows.connections.train = Some(train);
            return;
        } else {
            self.arrive(place, &segment, data, now)
        };
        if arrival.is_established && segment.options.cookie_length.is_some() {
            self.flows.connections.learn_cookie(place, &segment, &mut self.flows.common);
        }
        if self
            .flows
            .connections
            .flows
            .get(place)
            .is_some_and(|flow| flow.connection.is_answer_due())
        {
            self.executions.serve(FlowSlot::Tcp(place), &mut self.flows, now, transmit);
        }
        if arrival.reset.is_some() {
            self.responder.refuse(&packet, &segment, transmit, &mut self.flows.common);
        }
    }

    /// Passes the segments of the current train to their connection.
    #[inline]
    pub(super) fn flush_train(&mut self, now: Now) {
        let Transports { common, connections, .. } = &mut self.flows;
        connections.receive_train(now, common, &mut self.loads.starts);
    }

    /// Passes a segment, with its data for a session, to its connection.
    #[inline]
    fn arrive(
        &mut self,
        place: u32,
        segment: &Segment<'_>,
        data: &[u8],
        now: Now,
    ) -> SegmentOutcome {
        let Transports { common, connections, .. } = &mut self.flows;
        connections.arrive(place, segment, data, now, common, &mut self.loads.starts)
    }

    /// Passes a segment to a held connection, or to one without a known template.
    #[cold]
    fn arrive_without_template(
        &mut self,
        place: u32,
        segment: &Segment<'_>,
        data: &[u8],
        now: Now,
    ) -> SegmentOutcome {
        if self.executions.counted(place).is_some() {
            let starts = &mut self.loads.starts;
            return self.executions.arrive_held(place, segment, data, now, &mut self.flows, starts);
        }
        let Transports { common, connections, .. } = &mut self.flows;
        connections.arrive_undecided(place, segment, data, now, common)
    }

    /// Handles a packet of neither TCP nor UDP.
    #[cold]
    fn receive_other(&mut self, frame: &[u8], now: Now, transmit: &mut impl Transmit) {
        if !self.receive_icmp_error(frame, now) {
            self.responder.answer_other(frame, now, transmit, &mut self.flows.common);
        }
    }

    /// Handles a segment of no connection.
    #[cold]
    fn receive_unmatched_segment(
        &mut self,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
        now: Now,
        transmit: &mut impl Transmit,
    ) {
        if !self.responder.is_for_us(packet, &mut self.flows.common) {
            return;
        }
        let asks = segment.flags.contains(Flags::SYN)
            && !segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::RST);
        let listener = self.flows.common.servers.at(&packet.key);
        let Some(template) = listener.filter(|_| asks) else {
            if asks
                && self.executions.accept_expected(&mut self.flows, packet, segment, now, transmit)
            {
                return;
            }
            if self.responder.ignores_unmatched {
                return;
            }
            let count = match asks {
                true => &mut self.flows.common.unmatched.no_template,
                false => &mut self.flows.common.unmatched.no_flow,
            };
            *count += 1;
            // RFC 9293 section 3.10.7.2, state LISTEN, fourth: "This should not be reached. Drop
            // the segment and return."
            let has_no_control_flag =
                segment.flags.0 & (Flags::SYN | Flags::ACK | Flags::RST).0 == 0;
            if listener.is_some() && has_no_control_flag {
                return;
            }
            match self.responder.blackhole {
                Blackhole::All => return,
                Blackhole::Syn if asks => return,
                _ if !self.responder.may_refuse(&packet.key, &self.flows.common) => return,
                _ => {
                    return self.responder.refuse(
                        packet,
                        segment,
                        transmit,
                        &mut self.flows.common,
                    );
                }
            }
        };
        let Transports { common, connections, .. } = &mut self.flows;
        if let Some(place) = connections.accept(packet, segment, template, now, common) {
            if segment.options.cookie_length.is_some() {
                let header = packet.transport.len() - segment.length as usize;
                let data = &packet.transport[header..];
                connections.take_early(place, segment, data, now, common);
            }
            self.executions.serve(FlowSlot::Tcp(place), &mut self.flows, now, transmit);
        }
    }

    /// Processes a received datagram.
    #[inline(never)]
    fn receive_datagram(
        &mut self,
        frame: &[u8],
        packet: &Packet<'_>,
        now: Now,
        transmit: &mut impl Transmit,
    ) {
        let datagram = udp::Packet::new(packet.transport).ok().filter(|it| {
            (udp::HEADER_LENGTH..=packet.transport.len()).contains(&it.length().into())
        });
        let Some(datagram) = datagram else { return self.flows.common.unmatched.malformed += 1 };
        let data = datagram.payload();
        let place = match self.flows.datagrams.flows.find(&packet.key) {
            Some(place) => place,
            None => {
                if !self.responder.is_for_us(packet, &mut self.flows.common) {
                    return;
                }
                let Some(template) = self.flows.common.servers.with_data(&packet.key, data) else {
                    if !self.responder.ignores_unmatched {
                        self.flows.common.unmatched.no_flow += 1;
                        let common = &mut self.flows.common;
                        self.responder.refuse_datagram(frame, packet, now, transmit, common);
                    }
                    return;
                };
                let Transports { common, datagrams, .. } = &mut self.flows;
                let accepted = datagrams.accept(packet, template, now, common);
                let Some(place) = accepted else { return };
                place
            }
        };
        let Transports { common, datagrams, .. } = &mut self.flows;
        datagrams.arrive(place, data, now, common);
    }

    /// Handles an ICMP error, and returns whether the frame is one.
    #[cold]
    fn receive_icmp_error(&mut self, frame: &[u8], now: Now) -> bool {
        let Some(error) = IcmpError::read(frame) else { return false };
        let IcmpError { key, sequence, cause } = error;
        match cause {
            Cause::TooBig { mtu } => {
                self.flows.common.unmatched.too_big += 1;
                if error.is_credible() {
                    self.shorten(&key, sequence, mtu, now);
                }
                return true;
            }
            Cause::Refused | Cause::Unreachable => self.flows.common.unmatched.unreachable += 1,
        }
        let Transports { common, connections, datagrams } = &mut self.flows;
        if key.protocol() == protocol::UDP {
            datagrams.receive_unreachable(&key, cause, now, common);
        } else {
            connections.receive_unreachable(&key, sequence, cause, common);
        }
        self.executions.settle(&mut self.flows);
        true
    }

    /// Shortens the packets of a flow after one exceeded the path MTU.
    fn shorten(&mut self, key: &FlowKey, number: SequenceNumber, mtu: u16, now: Now) {
        let Transports { common, connections, datagrams } = &mut self.flows;
        if key.protocol() != protocol::UDP {
            connections.shorten(key, number, mtu, now, common);
        } else if datagrams.flows.find(key).is_some() {
            common.paths.note(key.source(), mtu);
        }
    }

    /// Handles a fragment; processes the packet once it is complete.
    #[cold]
    #[inline(never)]
    fn receive_fragment(&mut self, frame: &[u8], now: Now, transmit: &mut impl Transmit) {
        let Some((start, _)) = network_header(frame) else { return };
        let (link, network) = frame.split_at(start);
        let is_damaged = |it: ipv4::Packet<&[u8]>| it.checksum() != it.computed_checksum();
        if self.responder.verifies_checksums && ipv4::Packet::new(network).is_ok_and(is_damaged) {
            return self.flows.common.unmatched.malformed += 1;
        }
        let time = Instant::from_nanos(now.micros * 1_000);
        let sender = if self.responder.local_addresses.take(link) {
            LinkHeader::answering(link)
        } else {
            None
        };
        let Common { unmatched, pieces, .. } = &mut self.flows.common;
        match pieces.take(network, sender, time, unmatched) {
            Taken::Incomplete => unmatched.fragments += 1,
            Taken::Invalid => unmatched.malformed += 1,
            Taken::Complete(packet) => {
                unmatched.fragments += 1;
                unmatched.reassembled += 1;
                let is_verified = !self.responder.verifies_checksums;
                let offloads = Offloads { is_verified, ..Offloads::default() };
                self.receive(&[link, &packet].concat(), offloads, now, transmit);
            }
        }
    }

    pub(super) fn reset_for(
        &mut self,
        received: &Received,
        transmit: &mut impl Transmit,
        receive: &impl Receive,
    ) {
        let frame = receive.frame(received);
        let is_verified = received.offloads.is_verified || !self.responder.verifies_checksums;
        if self.responder.verifies_checksums
            && received.offloads.is_verified
            && has_damaged_header(frame)
        {
            return;
        }
        let Ok(packet) = dissect(frame, !is_verified) else { return };
        if packet.key.protocol() != protocol::TCP
            || !self.flows.connections.flows.contains(&packet.key)
        {
            return;
        }
        let Ok((segment, _)) = Segment::parse(packet.transport, packet.ecn) else { return };
        if segment.flags.contains(Flags::ACK) {
            self.responder.refuse(&packet, &segment, transmit, &mut self.flows.common);
        }
    }
}
