//! Who cannot be reached: what others say of it, and what is said to them.

use core::net::IpAddr;

use wirestorm_base::port::Transmit;
use wirestorm_base::time::Instant;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::{ethertype, protocol};

use super::burst::room;
use super::template::Role;
use super::{Blackhole, Endpoint};
use crate::frame::{
    Headers, LinkHeader, Packet, has_damaged_header, is_to_one, network_header, write_icmp_error,
};
use crate::icmp_error::{Cause, IcmpError, Message, unknown_protocol};
use crate::ip_settings::IpSettings;
use crate::tcp::connection::Now;

/// How often it may be said that nobody waits at a port, or speaks a protocol. RFC 4443 section 2.4: "an IPv6 node MUST
/// limit the rate of ICMPv6 error messages it originates", RFC 1812 section 4.3.2.8 says the same
/// of IPv4. Both are those of Linux (`icmp_msgs_per_sec` and `icmp_msgs_burst`).
const MESSAGES_PER_SECOND: u32 = 1_000;
const MESSAGES_AT_ONCE: u32 = 50;

/// How many messages may be sent now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    left: u32,
    /// When it grew last, in ms.
    at: u32,
}

impl Allowance {
    pub(super) const fn new() -> Self {
        Self { left: MESSAGES_AT_ONCE, at: 0 }
    }

    /// Takes one, where there is any.
    fn take(&mut self, now: Now) -> bool {
        const MILLIS_PER_MESSAGE: u32 = 1_000 / MESSAGES_PER_SECOND;
        let grown = now.millis.wrapping_sub(self.at) / MILLIS_PER_MESSAGE;
        self.left = self.left.saturating_add(grown).min(MESSAGES_AT_ONCE);
        self.at = now.millis;
        let has_any = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_any
    }
}

impl Endpoint {
    /// Whether a frame says that a packet did not arrive, which then is heard.
    #[cold]
    pub(super) fn hear_icmp_error(&mut self, frame: &[u8], now: Now) -> bool {
        let Some(error) = IcmpError::read(frame) else { return false };
        let IcmpError { key, sequence, cause } = error;
        match cause {
            Cause::TooBig { mtu } => {
                self.strays.too_big += 1;
                if error.is_credible() {
                    self.shorten(&key, sequence, mtu, now);
                }
                return true;
            }
            Cause::Refused | Cause::Unreachable => self.strays.unreachable += 1,
        }
        if key.protocol() == protocol::UDP {
            // RFC 1122 section 4.1.3.3: "UDP MUST pass to the application layer all ICMP error
            // messages". Nobody is there to hear more, so the flow is over.
            if let Some(place) = self.datagrams.find(&key) {
                self.fail_datagrams(place, cause, now);
            }
            return true;
        }
        let Some(place) = self.flows.find(&key) else { return true };
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return true };
        let (.., tally) = self.templates[usize::from(flow.template)].tcp(&flow.key);
        let is_refused = cause == Cause::Refused;
        if flow.connection.hear_unreachable(sequence, is_refused, &mut tally.tcp)
            && !flow.is_pending
        {
            flow.is_pending = true;
            pending.push_back(place);
        }
        true
    }

    /// Tells the sender of a datagram that nobody waits for it.
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
    ) {
        if self.blackhole == Blackhole::All || !is_to_one(frame, &packet.key) {
            return;
        }
        let Some(link) = LinkHeader::answering(packet.link) else { return };
        let original = &frame[packet.link.len()..];
        let message = Message::PortUnreachable;
        if self.tell(message, &link, &packet.key, original, now, transmit) {
            self.strays.unreachable_sent += 1;
        }
    }

    /// Tells the sender of a packet that nobody speaks the protocol that it is of.
    ///
    /// RFC 1122 section 3.2.2.1: "A host SHOULD generate Destination Unreachable messages with code:
    /// 2 (Protocol Unreachable), when the designated transport protocol is not supported". RFC 8200
    /// section 4, where a "Next Header value in the current header is unrecognized by the node": it
    /// "should discard the packet and send an ICMP Parameter Problem message to the source".
    #[cold]
    pub(super) fn refuse_protocol(&mut self, frame: &[u8], now: Now, transmit: &mut impl Transmit) {
        let Some((start, ethertype::IPV4 | ethertype::IPV6)) = network_header(frame) else {
            return;
        };
        let (link, original) = frame.split_at(start);
        let Some((key, message)) = unknown_protocol(original) else { return };
        let is_damaged = self.verifies_checksums && has_damaged_header(frame);
        let is_for_us = self.stations.take(link) && self.stations.are_possible(&key);
        if self.leaves_strays
            || self.blackhole == Blackhole::All
            || is_damaged
            || !is_for_us
            || !is_to_one(frame, &key)
        {
            return;
        }
        let Some(link) = LinkHeader::answering(link) else { return };
        if self.tell(message, &link, &key, original, now, transmit) {
            self.strays.unreachable_sent += 1;
        }
    }

    /// Sends a message of ICMP to where a packet came from that was sent to one of ours, and `link`
    /// leads; returns whether it left.
    pub(super) fn tell(
        &mut self,
        message: Message,
        link: &LinkHeader,
        key: &FlowKey,
        original: &[u8],
        now: Now,
        transmit: &mut impl Transmit,
    ) -> bool {
        if !self.is_address_of_ours(key.destination()) || !self.allowance.take(now) {
            return false;
        }
        let Some(answer) = self.spare.pop().or_else(|| transmit.take()) else { return false };
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

    /// Whether an address is the port's, or that of any of the clients and servers here: what others on the same
    /// link are sent may be seen as well.
    pub(super) fn is_address_of_ours(&self, address: IpAddr) -> bool {
        let of_port = self.stations.addresses.iter().any(|own| own.address == address);
        of_port
            || self.templates[..self.templates_known].iter().any(|it| match &it.template.role {
                Role::Client { tuples, .. } => tuples.clients.contains(address),
                Role::Server { listen } => listen.addresses.is_none_or(|it| it.contains(address)),
                Role::Accepted => false,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_so_many_at_once_and_in_a_second() {
        let mut allowance = Allowance::new();
        let mut taken = |millis: u64| {
            let now = Now::from_micros(millis * 1_000);
            (0..200).filter(|_| allowance.take(now)).count()
        };
        assert_eq!([taken(5), taken(5), taken(6), taken(16), taken(5_000)], [50, 0, 1, 10, 50]);
        let in_a_second: usize = (5_001..=6_000).map(taken).sum();
        assert_eq!(in_a_second, 1_000);
    }
}
