//! Sides decided packet by packet.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use wirestorm_wire::capture::LinkType;
use wirestorm_wire::dissect::Dissection;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::{MacAddress, ethertype, icmpv4, icmpv6, ipv4, ipv6, protocol, tcp};

use wirestorm_wire::sides::{SideRule, SidesOptions};

use super::Side;

/// Decides sides in one pass, in a table of fixed bound.
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

/// Any constant will do: the keys come from a file, and the bound on the table also bounds what
/// a file made to collide can cost.
const SEED: u64 = 0x5773_7369_6465;
/// Ports below are given to services (RFC 6335 section 6).
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
    /// Decides from the first packet on.
    pub fn new(options: SidesOptions) -> Self {
        Self { options, conversations: HashTable::new(), overflowed: 0 }
    }

    /// Forgets all conversations and keeps the memory: another pass begins.
    pub fn clear(&mut self) {
        self.conversations.clear();
    }

    /// Packets of conversations that could not be remembered, because the table was full. Their
    /// client is the end with the higher port.
    pub const fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// The side of the packet `data`, which was captured on a link of type `link`.
    #[inline]
    pub fn decide(&mut self, link: LinkType, data: &[u8], dissection: &Dissection) -> Side {
        if let SideRule::SourceMac(addresses) = &self.options.rule {
            let source = source_mac(link, data);
            let is_listed = source.is_some_and(|source| addresses.contains(&source));
            return self.of_rule(is_listed);
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
        self.of_rule(is_primary)
    }

    const fn of_rule(&self, is_primary: bool) -> Side {
        if is_primary != self.options.reverse { Side::Primary } else { Side::Secondary }
    }

    /// Which end of the packet is the client of its conversation.
    fn client(&mut self, key: &FlowKey, data: &[u8], dissection: &Dissection) -> Client {
        let fragment = fragment(data, dissection);
        // A later fragment has no transport header that could say anything.
        let is_auto = matches!(self.options.rule, SideRule::Auto) && fragment != Fragment::Later;
        let said = if is_auto { said_by_packet(key, data, dissection) } else { None };
        let guessed = if is_auto { guessed_by_port(key) } else { None };
        let client = self.remember(key, said, guessed.unwrap_or(Client::Sender));
        if fragment == Fragment::First {
            // The later ones have no ports, and go where the first one goes.
            let without_ports = key.with_ports(0, 0);
            self.remember(&without_ports, Some(client), client);
        }
        client
    }

    /// What the conversation's packets before, or this one, make of it.
    fn remember(&mut self, key: &FlowKey, said: Option<Client>, guess: Client) -> Client {
        let conversation = key.conversation();
        let is_turned = conversation != *key;
        let seen_from_key = |client: Client| if is_turned { client.other() } else { client };
        let hash = conversation.hash64(SEED);
        let is_full = self.conversations.len() >= self.options.conversations_max;
        if is_full && self.conversations.find(hash, |entry| entry.key == conversation).is_none() {
            self.overflowed += 1;
            return said.unwrap_or_else(|| client_without_memory(key));
        }
        let entry = self.conversations.entry(
            hash,
            |entry| entry.key == conversation,
            |entry| entry.key.hash64(SEED),
        );
        match entry {
            Entry::Occupied(mut entry) => {
                let entry = entry.get_mut();
                if let Some(said) = said {
                    entry.source_is_client = seen_from_key(said) == Client::Sender;
                }
                let client = if entry.source_is_client { Client::Sender } else { Client::Receiver };
                seen_from_key(client)
            }
            Entry::Vacant(entry) => {
                let client = said.unwrap_or(guess);
                let source_is_client = seen_from_key(client) == Client::Sender;
                entry.insert(Conversation { key: conversation, source_is_client });
                client
            }
        }
    }
}

/// The source address of an Ethernet frame.
fn source_mac(link: LinkType, data: &[u8]) -> Option<MacAddress> {
    if link != LinkType::EN10MB {
        return None;
    }
    data.get(6..)?.first_chunk().copied().map(MacAddress)
}

/// What a packet itself says of its sender.
fn said_by_packet(key: &FlowKey, data: &[u8], dissection: &Dissection) -> Option<Client> {
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
            // RFC 1035 section 4.1.1: the first bit behind the identifier tells an answer.
            let is_answer = transport.get(8 + 2)? & 0x80 != 0;
            Some(if is_answer { Client::Receiver } else { Client::Sender })
        }
        protocol::ICMP => echo(key, icmpv4::ECHO_REQUEST, icmpv4::ECHO_REPLY),
        protocol::ICMPV6 => echo(key, icmpv6::ECHO_REQUEST, icmpv6::ECHO_REPLY),
        _ => None,
    }
}

/// An echo of ICMP, whose type stands in place of the source port.
fn echo(key: &FlowKey, request: u8, reply: u8) -> Option<Client> {
    match key.source_port() {
        kind if kind == u16::from(request) => Some(Client::Sender),
        kind if kind == u16::from(reply) => Some(Client::Receiver),
        _ => None,
    }
}

/// The end that has no port of the system's services, where the other one has.
fn guessed_by_port(key: &FlowKey) -> Option<Client> {
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

/// The end with the higher port; the sender where they are equal or there are none.
fn client_without_memory(key: &FlowKey) -> Client {
    match protocol::has_ports(key.protocol()) && key.source_port() < key.destination_port() {
        true => Client::Receiver,
        false => Client::Sender,
    }
}

/// Which part of a packet this is.
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
