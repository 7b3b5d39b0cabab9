//! Decides the side of each packet by rules.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use wirestorm_wire::capture::LinkType;
use wirestorm_wire::dissect::Dissection;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::{MacAddress, ethertype, icmpv4, icmpv6, ipv4, ipv6, protocol, tcp};

use wirestorm_model::sides::{SideRule, SidesOptions};

use super::Side;

/// Decides sides in one pass with a bounded table of conversations.
#[derive(Debug)]
pub struct Sides {
    options: SidesOptions,
    conversations: HashTable<Conversation>,
    overflowed: u64,
}

#[derive(Debug)]
struct Conversation {
    key: FlowKey,
    /// Whether the client is the source of the key.
    source_is_client: bool,
}

/// A constant seed is sufficient: keys come from a file, and the bound on the table also limits the
/// cost of collisions.
const SEED: u64 = 0x5773_7369_6465;
/// End of the system ports, which belong to services (RFC 6335 section 6).
const SYSTEM_PORTS_END: u16 = 1024;
const DNS: u16 = 53;

/// Which end of a packet is the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Sender,
    Receiver,
}

impl Client {
    const fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

impl Sides {
    /// Creates an empty table.
    pub fn new(options: SidesOptions) -> Self {
        Self { options, conversations: HashTable::new(), overflowed: 0 }
    }

    /// Forgets all conversations before another pass; keeps the memory.
    pub fn clear(&mut self) {
        self.conversations.clear();
    }

    /// Returns the number of packets whose conversation did not fit into the table. Their client is
    /// the end with the higher port.
    pub const fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Returns the side of the packet `data`, captured on a link of type `link`.
    #[inline]
    pub fn decide(&mut self, link: LinkType, data: &[u8], dissection: &Dissection) -> Side {
        if let SideRule::SourceMac(addresses) = &self.options.rule {
            let source = source_mac(link, data);
            let is_listed = source.is_some_and(|source| addresses.contains(&source));
            return self.side_by_rule(is_listed);
        }
        let Some(key) = dissection.flow() else {
            return if self.options.non_ip_is_primary { Side::Primary } else { Side::Secondary };
        };
        let is_primary = match &self.options.rule {
            SideRule::Port(services) => {
                matches!(key.protocol(), protocol::TCP | protocol::UDP)
                    && services.iter().any(|range| range.contains(&key.destination_port()))
            }
            SideRule::SourceAddress(prefixes) => {
                let source = key.source();
                prefixes.iter().any(|prefix| prefix.contains(source))
            }
            SideRule::Auto | SideRule::First => {
                self.client(key, data, dissection) == Client::Sender
            }
            SideRule::SourceMac(_) => false,
        };
        self.side_by_rule(is_primary)
    }

    const fn side_by_rule(&self, is_primary: bool) -> Side {
        if is_primary != self.options.reverse { Side::Primary } else { Side::Secondary }
    }

    /// Returns which end of the packet is the client of its conversation.
    fn client(&mut self, key: &FlowKey, data: &[u8], dissection: &Dissection) -> Client {
        let fragment = fragment(data, dissection);
        // A later fragment has no transport header to examine.
        let is_auto = matches!(self.options.rule, SideRule::Auto) && fragment != Fragment::Later;
        let detected = if is_auto { client_by_packet(key, data, dissection) } else { None };
        let guessed = if is_auto { client_by_port(key) } else { None };
        let client = self.remember(key, detected, guessed.unwrap_or(Client::Sender));
        if fragment == Fragment::First {
            // Later fragments have no ports; they follow the first one.
            let portless = key.with_ports(0, 0);
            self.remember(&portless, Some(client), client);
        }
        client
    }

    /// Looks up the client of the conversation, and stores or updates it.
    fn remember(&mut self, key: &FlowKey, detected: Option<Client>, guess: Client) -> Client {
        let conversation = key.conversation();
        let is_turned = conversation != *key;
        let seen_from_key = |client: Client| if is_turned { client.other() } else { client };
        let hash = conversation.hash64(SEED);
        let is_full = self.conversations.len() >= self.options.conversations_max;
        if is_full && self.conversations.find(hash, |entry| entry.key == conversation).is_none() {
            self.overflowed += 1;
            return detected.unwrap_or_else(|| client_by_higher_port(key));
        }
        let entry = self.conversations.entry(
            hash,
            |entry| entry.key == conversation,
            |entry| entry.key.hash64(SEED),
        );
        match entry {
            Entry::Occupied(mut entry) => {
                let entry = entry.get_mut();
                if let Some(detected) = detected {
                    entry.source_is_client = seen_from_key(detected) == Client::Sender;
                }
                let client = if entry.source_is_client { Client::Sender } else { Client::Receiver };
                seen_from_key(client)
            }
            Entry::Vacant(entry) => {
                let client = detected.unwrap_or(guess);
                let source_is_client = seen_from_key(client) == Client::Sender;
                entry.insert(Conversation { key: conversation, source_is_client });
                client
            }
        }
    }
}

/// Returns the source address of an Ethernet frame.
fn source_mac(link: LinkType, data: &[u8]) -> Option<MacAddress> {
    if link != LinkType::EN10MB {
        return None;
    }
    data.get(6..)?.first_chunk().copied().map(MacAddress)
}

/// Returns the client if the packet's flags or type identify it.
fn client_by_packet(key: &FlowKey, data: &[u8], dissection: &Dissection) -> Option<Client> {
    let transport = data.get(usize::from(dissection.transport_offset)..)?;
    match key.protocol() {
        protocol::TCP => {
            let flags = tcp::Flags(*transport.get(tcp::field::FLAGS.start)?);
            match (flags.contains(tcp::Flags::SYN), flags.contains(tcp::Flags::ACK)) {
                (true, false) => Some(Client::Sender),
                (true, true) => Some(Client::Receiver),
                (false, _) => None,
            }
        }
        protocol::UDP if key.source_port() == DNS || key.destination_port() == DNS => {
            // RFC 1035 section 4.1.1: the QR bit marks a response.
            let is_answer = transport.get(8 + 2)? & 0x80 != 0;
            Some(if is_answer { Client::Receiver } else { Client::Sender })
        }
        protocol::ICMP => echo(key, icmpv4::ECHO_REQUEST, icmpv4::ECHO_REPLY),
        protocol::ICMPV6 => echo(key, icmpv6::ECHO_REQUEST, icmpv6::ECHO_REPLY),
        _ => None,
    }
}

/// Returns the client of an ICMP echo, whose key has the type as source port.
fn echo(key: &FlowKey, request: u8, reply: u8) -> Option<Client> {
    match key.source_port() {
        kind if kind == u16::from(request) => Some(Client::Sender),
        kind if kind == u16::from(reply) => Some(Client::Receiver),
        _ => None,
    }
}

/// Returns the end without a system port if the other end has one.
fn client_by_port(key: &FlowKey) -> Option<Client> {
    if !protocol::has_ports(key.protocol()) {
        return None;
    }
    let is_service = |port| (1..SYSTEM_PORTS_END).contains(&port);
    match (is_service(key.source_port()), is_service(key.destination_port())) {
        (false, true) => Some(Client::Sender),
        (true, false) => Some(Client::Receiver),
        _ => None,
    }
}

/// Returns the end with the higher port; the sender if they are equal or absent.
fn client_by_higher_port(key: &FlowKey) -> Client {
    match protocol::has_ports(key.protocol()) && key.source_port() < key.destination_port() {
        true => Client::Receiver,
        false => Client::Sender,
    }
}

/// Part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fragment {
    Whole,
    First,
    Later,
}

fn fragment(data: &[u8], dissection: &Dissection) -> Fragment {
    let packet = data.get(usize::from(dissection.network_offset)..).unwrap_or_default();
    let (is_fragment, is_later) = match dissection.ethertype {
        ethertype::IPV4 => ipv4::Packet::new(packet)
            .map_or((false, false), |packet| (packet.is_fragment(), packet.fragment_offset() != 0)),
        ethertype::IPV6 => ipv6::Packet::new(packet)
            .ok()
            .filter(|packet| packet.next_header() != dissection.protocol)
            .and_then(|packet| packet.extensions())
            .map_or((false, false), |found| (found.is_fragment, found.is_later_fragment)),
        _ => (false, false),
    };
    match (is_fragment, is_later) {
        (_, true) => Fragment::Later,
        (true, false) => Fragment::First,
        (false, false) => Fragment::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use wirestorm_wire::dissect::dissect;
    use wirestorm_wire::packet::MacAddress;
    use wirestorm_wire::prefix::Prefix;

    const A: [u8; 4] = [10, 0, 0, 1];
    const B: [u8; 4] = [10, 0, 0, 2];
    const SYN: u8 = 0x02;
    const ACK: u8 = 0x10;

    fn sides(rule: SideRule) -> Sides {
        sides_of(rule, 100)
    }

    fn sides_of(rule: SideRule, conversations_max: usize) -> Sides {
        Sides::new(SidesOptions {
            rule,
            reverse: false,
            non_ip_is_primary: false,
            conversations_max,
        })
    }

    fn ipv4(protocol: u8, from: [u8; 4], to: [u8; 4], fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0];
        packet.extend((20 + payload.len() as u16).to_be_bytes());
        packet.extend([0, 1]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0]);
        let link = [&[2, 0, 0, 0, 0, 2][..], &[2, 0, 0, 0, 0], &from[3..], &[8, 0]].concat();
        [&link, &packet, &from[..], &to[..], payload].concat()
    }

    fn ports(source: u16, destination: u16) -> Vec<u8> {
        [source.to_be_bytes(), destination.to_be_bytes()].concat()
    }

    fn tcp(from: ([u8; 4], u16), to: ([u8; 4], u16), flags: u8) -> Vec<u8> {
        let rest = [0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 0, 0, 0, 0, 0, 0];
        ipv4(6, from.0, to.0, 0, &[&ports(from.1, to.1)[..], &rest].concat())
    }

    fn udp(from: ([u8; 4], u16), to: ([u8; 4], u16), payload: &[u8]) -> Vec<u8> {
        let length = (8 + payload.len() as u16).to_be_bytes();
        let header = [&ports(from.1, to.1)[..], &length, &[0, 0]].concat();
        ipv4(17, from.0, to.0, 0, &[&header, payload].concat())
    }

    fn decide(sides: &mut Sides, frame: &[u8]) -> Side {
        sides.decide(LinkType::EN10MB, frame, &dissect(LinkType::EN10MB, frame))
    }

    #[test]
    fn syn_overrides_a_guess() {
        let mut sides = sides(SideRule::Auto);
        let (client, server) = ((A, 5000), (B, 6000));
        assert_eq!(decide(&mut sides, &tcp(server, client, ACK)), Side::Primary, "a guess");
        assert_eq!(decide(&mut sides, &tcp(client, server, SYN)), Side::Primary);
        assert_eq!(decide(&mut sides, &tcp(server, client, ACK)), Side::Secondary);
        assert_eq!(decide(&mut sides, &tcp(client, server, ACK)), Side::Primary);
    }

    #[test]
    fn syn_ack_identifies_the_server() {
        let mut sides = sides(SideRule::Auto);
        assert_eq!(decide(&mut sides, &tcp((A, 5000), (B, 6000), SYN | ACK)), Side::Secondary);
        assert_eq!(decide(&mut sides, &tcp((B, 6000), (A, 5000), ACK)), Side::Primary);
    }

    #[test]
    fn dns_response_comes_from_the_server() {
        let answer = [0, 7, 0x80, 0, 0, 0];
        let frame = udp((A, 53), (B, 53), &answer);
        assert_eq!(decide(&mut sides(SideRule::Auto), &frame), Side::Secondary);
        let frame = udp((A, 53), (B, 53), &[0, 7, 0x01, 0, 0, 0]);
        assert_eq!(decide(&mut sides(SideRule::Auto), &frame), Side::Primary);
        // A response without a header is decided by its port.
        let frame = udp((A, 53), (B, 4000), &[0, 7]);
        assert_eq!(decide(&mut sides(SideRule::Auto), &frame), Side::Secondary);
    }

    #[test]
    fn system_port_is_the_server_else_the_first_sender_the_client() {
        let mut sides = sides(SideRule::Auto);
        assert_eq!(decide(&mut sides, &tcp((A, 443), (B, 5000), ACK)), Side::Secondary);
        assert_eq!(decide(&mut sides, &tcp((B, 5000), (A, 443), ACK)), Side::Primary);
        assert_eq!(decide(&mut sides, &udp((A, 5004), (B, 5006), b"x")), Side::Primary);
        assert_eq!(decide(&mut sides, &udp((B, 5006), (A, 5004), b"x")), Side::Secondary);
    }

    #[test]
    fn first_rule_takes_the_first_sender_as_client() {
        let mut sides = sides(SideRule::First);
        let frame = tcp((A, 443), (B, 5000), SYN | ACK);
        assert_eq!(decide(&mut sides, &frame), Side::Primary);
        assert_eq!(decide(&mut sides, &tcp((B, 5000), (A, 443), ACK)), Side::Secondary);
        sides.clear();
        assert_eq!(decide(&mut sides, &tcp((B, 5000), (A, 443), ACK)), Side::Primary);
    }

    #[test]
    fn fragments_follow_the_first_fragment() {
        let mut sides = sides(SideRule::Auto);
        let first = ipv4(17, A, B, 0x2000, &[&ports(53, 4000)[..], &[0; 20]].concat());
        let answer = {
            let mut first = first;
            first[14 + 20 + 10] = 0x80;
            first
        };
        assert_eq!(decide(&mut sides, &answer), Side::Secondary);
        assert_eq!(decide(&mut sides, &ipv4(17, A, B, 3, &[1; 24])), Side::Secondary);
        // A later ICMP fragment must not be taken for an echo reply.
        assert_eq!(decide(&mut sides, &ipv4(1, B, A, 3, &[0; 24])), Side::Primary);
    }

    #[test]
    fn full_table_is_counted_and_takes_the_lower_port_as_server() {
        let mut sides = sides_of(SideRule::Auto, 1);
        assert_eq!(decide(&mut sides, &tcp((A, 5000), (B, 6000), SYN)), Side::Primary);
        assert_eq!(decide(&mut sides, &tcp((A, 5001), (B, 6000), ACK)), Side::Secondary);
        assert_eq!(decide(&mut sides, &tcp((B, 6000), (A, 5001), ACK)), Side::Primary);
        assert_eq!(decide(&mut sides, &tcp((A, 5001), (B, 6000), SYN)), Side::Primary);
        assert_eq!(sides.overflowed(), 3);
        assert_eq!(decide(&mut sides, &tcp((B, 6000), (A, 5000), ACK)), Side::Secondary);
        assert_eq!(sides.overflowed(), 3);
    }

    #[test]
    fn list_rules_match_and_can_be_reversed() {
        let prefix = Prefix { address: core::net::IpAddr::from(A), length: 32 };
        let rules = [
            SideRule::SourceAddress(vec![prefix]),
            SideRule::SourceMac(vec![MacAddress([2, 0, 0, 0, 0, 1])]),
            SideRule::Port(vec![443..=443, 8000..=8080]),
        ];
        for rule in rules {
            let mut plain = sides(rule.clone());
            let mut reversed =
                Sides::new(SidesOptions { reverse: true, ..sides(rule).options.clone() });
            let (there, back) = (tcp((A, 5000), (B, 8000), ACK), tcp((B, 8000), (A, 5000), ACK));
            assert_eq!(decide(&mut plain, &there), Side::Primary);
            assert_eq!(decide(&mut plain, &back), Side::Secondary);
            assert_eq!(decide(&mut reversed, &there), Side::Secondary);
            assert_eq!(decide(&mut reversed, &back), Side::Primary);
        }
    }

    #[test]
    fn non_ip_is_secondary_by_default() {
        let arp = [&[2; 12][..], &[8, 6], &[0; 28]].concat();
        for rule in [SideRule::Auto, SideRule::Port(vec![0..=1023])] {
            let mut plain = sides(rule.clone());
            let options = SidesOptions { non_ip_is_primary: true, ..sides(rule).options.clone() };
            assert_eq!(decide(&mut plain, &arp), Side::Secondary);
            assert_eq!(decide(&mut Sides::new(options), &arp), Side::Primary);
        }
    }

    #[test]
    fn mac_rule_matches_nothing_without_ethernet() {
        let frame = tcp((A, 1), (B, 2), ACK);
        let mut sides = sides(SideRule::SourceMac(vec![MacAddress([2, 0, 0, 0, 0, 1])]));
        let dissection = dissect(LinkType::RAW, &frame);
        assert_eq!(sides.decide(LinkType::RAW, &frame, &dissection), Side::Secondary);
    }
}
