//! Answers to packets of no flow: resets, ICMP errors, ARP and neighbour discovery.

mod allowance;
mod local_addresses;

use alloc::vec::Vec;
use core::net::IpAddr;

use wirestorm_base::port::Transmit;
use wirestorm_base::time::Instant;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::tcp::Flags;
use wirestorm_wire::packet::{MacAddress, ethertype};
use wirestorm_wire::prefix::Prefix;

use self::allowance::IcmpRateLimit;
use self::local_addresses::{LocalAddresses, number};
use super::common::Common;
use super::frames::room;
use super::template::Role;
use crate::echo::is_echo;
use crate::frame::{
    DissectError, Headers, LinkHeader, Packet, has_damaged_header, is_unicast, network_header,
    write_icmp_error, write_segment,
};
use crate::host::Host;
use crate::host_event::HostEvent;
use crate::icmp_error::{IcmpErrorMessage, flow_for_icmp_error, unknown_protocol};
use crate::neighbour::is_discovery;
use crate::tcp::counters::TcpCounters;
use crate::tcp::now::Now;
use crate::tcp::segment::{Options, Outgoing, Segment};
use crate::tcp::sequence::SequenceNumber;
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::ip::IpSettings;

/// Packet that an ICMP error is about.
#[derive(Clone, Copy)]
struct About<'a> {
    /// Link header of frames to its sender.
    link: &'a LinkHeader,
    key: &'a FlowKey,
    /// The packet from its IP header on.
    original: &'a [u8],
}

/// Responder to packets of no flow.
#[derive(Debug)]
pub(super) struct Responder {
    icmp_rate_limit: IcmpRateLimit,
    /// TCP counters of segments of no connection and their answers.
    pub(super) refusals: TcpCounters,
    pub(super) local_addresses: LocalAddresses,
    pub(super) blackhole: Blackhole,
    host: Host,
    pub(super) verifies_checksums: bool,
    pub(super) ignores_unmatched: bool,
}

impl Responder {
    pub(super) fn new(host: Host, blackhole: Blackhole, verifies_checksums: bool) -> Self {
        Self {
            icmp_rate_limit: IcmpRateLimit::new(),
            refusals: TcpCounters::default(),
            local_addresses: LocalAddresses::default(),
            blackhole,
            host,
            verifies_checksums,
            ignores_unmatched: false,
        }
    }

    /// See [`Endpoint::set_addresses`](crate::endpoint::Endpoint::set_addresses).
    pub(super) fn live_at(
        &mut self,
        mac: MacAddress,
        others: &[(MacAddress, u32)],
        addresses: Vec<Prefix>,
        hosts: &[AddressRange],
        common: &Common,
    ) {
        let clients = common.templates.iter().filter_map(|it| match &it.template.role {
            Role::Client { link, .. } => Some(link.sources()),
            Role::Server { .. } | Role::Accepted => None,
        });
        let ranges = [(mac, 1)].into_iter().chain(others.iter().copied());
        let ranges = ranges.map(|(mac, count)| (number(&mac.0), count));
        let local_addresses = LocalAddresses::new(clients.flatten().chain(ranges), addresses);
        let is_on_wire = mac != MacAddress::default();
        self.local_addresses =
            LocalAddresses { is_on_wire, hosts: hosts.to_vec(), ..local_addresses };
    }

    /// Counts a packet that would start a flow, but is for another MAC address.
    #[cold]
    pub(super) fn note_other(&self, common: &mut Common) {
        common.unmatched.foreign_mac += u64::from(!self.ignores_unmatched);
    }

    /// Whether a packet of no flow is for this endpoint and has valid addresses; counts it if not.
    #[cold]
    pub(super) fn is_for_us(&self, packet: &Packet<'_>, common: &mut Common) -> bool {
        if !self.local_addresses.take(packet.link) {
            self.note_other(common);
            return false;
        }
        let is_possible = self.local_addresses.are_valid(&packet.key);
        common.unmatched.martian += u64::from(!is_possible && !self.ignores_unmatched);
        is_possible
    }

    /// Whether the endpoint may refuse a flow. A shared link also delivers packets for other hosts.
    pub(super) fn may_refuse(&self, key: &FlowKey, common: &Common) -> bool {
        self.local_addresses.macs.is_empty() || self.is_address_of_ours(key.destination(), common)
    }

    /// Counts a damaged packet, which belongs to no flow.
    #[cold]
    pub(super) fn note_damage(&mut self, other: DissectError, common: &mut Common) {
        common.unmatched.malformed += 1;
        match other {
            DissectError::BadChecksum => self.refusals.rcvbadsum += 1,
            DissectError::BadOffset => self.refusals.rcvbadoff += 1,
            DissectError::Short => self.refusals.rcvshort += 1,
            DissectError::Damaged | DissectError::Fragment | DissectError::Protocol => {}
        }
    }

    /// Answers a segment that belongs to no connection with a reset (RFC 9293 section 3.10.7.1).
    #[cold]
    pub(super) fn refuse(
        &mut self,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
        transmit: &mut impl Transmit,
        common: &mut Common,
    ) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let Some(link) = LinkHeader::answering(packet.link) else { return };
        let Some(frame) = common.spare.pop().or_else(|| transmit.take()) else {
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

    /// Handles a packet of neither TCP nor UDP.
    #[cold]
    pub(super) fn answer_other(
        &mut self,
        frame: &[u8],
        now: Now,
        transmit: &mut impl Transmit,
        common: &mut Common,
    ) {
        let HostEvent::Reply(answer) = self.host.handle_frame(frame) else {
            // The port's host answers and sends pings and neighbour discovery beside the flows.
            let is_hosts = is_echo(frame) || is_discovery(frame);
            if !is_hosts {
                common.unmatched.other_protocol += 1;
                self.refuse_protocol(frame, now, transmit, common);
            }
            return;
        };
        let Some(frame) = common.spare.pop().or_else(|| transmit.take()) else { return };
        match room(transmit, &frame).get_mut(..answer.len()) {
            Some(bytes) => {
                bytes.copy_from_slice(&answer);
                transmit.send(frame, answer.len(), Instant::ZERO);
            }
            None => transmit.release(frame),
        }
    }

    /// Sends ICMP port unreachable to the sender of a datagram of no flow.
    ///
    /// RFC 1122 section 4.1.3.1: "If a datagram arrives addressed to a UDP port for which there is
    /// no pending LISTEN call, UDP SHOULD send an ICMP Port Unreachable message."
    #[cold]
    pub(super) fn refuse_datagram(
        &mut self,
        frame: &[u8],
        packet: &Packet<'_>,
        now: Now,
        transmit: &mut impl Transmit,
        common: &mut Common,
    ) {
        if self.blackhole == Blackhole::All || !is_unicast(frame, &packet.key) {
            return;
        }
        let Some(link) = LinkHeader::answering(packet.link) else { return };
        let original = &frame[packet.link.len()..];
        let message = IcmpErrorMessage::PortUnreachable;
        let about = About { link: &link, key: &packet.key, original };
        if self.send_icmp_error(message, &about, now, transmit, common) {
            common.unmatched.unreachable_sent += 1;
        }
    }

    /// Sends an ICMP error to the sender of a packet of an unknown protocol.
    ///
    /// RFC 1122 section 3.2.2.1: "A host SHOULD generate Destination Unreachable messages with
    /// code: 2 (Protocol Unreachable), when the designated transport protocol is not supported".
    /// RFC 8200 section 4, for an unknown "Next Header value in the current header": the node
    /// "should discard the packet and send an ICMP Parameter Problem message to the source".
    #[cold]
    pub(super) fn refuse_protocol(
        &mut self,
        frame: &[u8],
        now: Now,
        transmit: &mut impl Transmit,
        common: &mut Common,
    ) {
        let Some((start, ethertype::IPV4 | ethertype::IPV6)) = network_header(frame) else {
            return;
        };
        let (link, original) = frame.split_at(start);
        let Some((key, message)) = unknown_protocol(original) else { return };
        let is_damaged = self.verifies_checksums && has_damaged_header(frame);
        let is_for_us = self.local_addresses.take(link) && self.local_addresses.are_valid(&key);
        if self.ignores_unmatched
            || self.blackhole == Blackhole::All
            || is_damaged
            || !is_for_us
            || !is_unicast(frame, &key)
        {
            return;
        }
        let Some(link) = LinkHeader::answering(link) else { return };
        let about = About { link: &link, key: &key, original };
        if self.send_icmp_error(message, &about, now, transmit, common) {
            common.unmatched.unreachable_sent += 1;
        }
    }

    /// Sends ICMP time exceeded to the senders of packets whose reassembly timed out.
    ///
    /// RFC 1122 section 3.3.2: "If this timeout expires, the partially-reassembled datagram MUST be
    /// discarded and an ICMP Time Exceeded message sent to the source host (if fragment zero has
    /// been received)." RFC 8200 section 4.5 requires the same for IPv6.
    #[cold]
    pub(super) fn send_time_exceeded(
        &mut self,
        now: Now,
        transmit: &mut impl Transmit,
        common: &mut Common,
    ) {
        for packet in common.pieces.take_late() {
            let Some((link, original)) = packet.tag.zip(packet.first_fragment()) else { continue };
            let key = packet.contiguous.as_deref().and_then(flow_for_icmp_error);
            let Some(key) = key.filter(|key| is_unicast(link.as_slice(), key)) else { continue };
            let message = IcmpErrorMessage::ReassemblyTimeExceeded;
            let about = About { link: &link, key: &key, original: &original };
            if !self.ignores_unmatched
                && self.send_icmp_error(message, &about, now, transmit, common)
            {
                common.unmatched.time_exceeded_sent += 1;
            }
        }
    }

    /// Sends an ICMP error to the sender of a packet for one of our addresses; returns whether it
    /// was sent.
    fn send_icmp_error(
        &mut self,
        message: IcmpErrorMessage,
        about: &About<'_>,
        now: Now,
        transmit: &mut impl Transmit,
        common: &mut Common,
    ) -> bool {
        let About { link, key, original } = *about;
        if !self.is_address_of_ours(key.destination(), common) || !self.icmp_rate_limit.take(now) {
            return false;
        }
        let Some(answer) = common.spare.pop().or_else(|| transmit.take()) else { return false };
        let headers =
            Headers { link, key, ip: &IpSettings::default(), identification: 0, cookie: &[] };
        match write_icmp_error(room(transmit, &answer), &headers, message, original) {
            Some(length) => {
                transmit.send(answer, length, Instant::ZERO);
                true
            }
            None => {
                transmit.release(answer);
                false
            }
        }
    }

    /// Whether an address belongs to the port, or to a client or server of the endpoint. A shared
    /// link also delivers packets for other hosts.
    pub(super) fn is_address_of_ours(&self, address: IpAddr, common: &Common) -> bool {
        let of_port = self.local_addresses.addresses.iter().any(|prefix| prefix.address == address);
        of_port
            || common.templates[..common.templates_known].iter().any(|it| match &it.template.role {
                Role::Client { tuples, .. } => tuples.clients.contains(address),
                Role::Server { listen } => listen.addresses.is_none_or(|it| it.contains(address)),
                Role::Accepted => false,
            })
    }
}
