//! What a frame says: whose packet it carries, and what payload.

use crate::capture::LinkType;
use crate::dissect::dissect;
use crate::flow::FlowKey;
use crate::packet::{PacketError, ethertype, ipv4, ipv6, protocol, tcp, udp};

/// What is in a frame.
#[derive(Clone, Copy)]
pub(super) enum Found<'a> {
    Packet(Packet<'a>),
    /// A fragment of one.
    Fragment {
        /// From the IP header on.
        bytes: &'a [u8],
        /// Whose it is, where that is the first one.
        key: Option<FlowKey>,
    },
}

/// A packet of TCP or UDP.
#[derive(Clone, Copy)]
pub(super) struct Packet<'a> {
    /// Its direction, without VLAN: a frame that is seen before and behind a router is the same.
    pub(super) key: FlowKey,
    pub(super) body: Result<Body<'a>, Damage>,
}

/// What a packet carries.
#[derive(Clone, Copy)]
pub(super) enum Body<'a> {
    Segment {
        flags: tcp::Flags,
        sequence: u32,
        acknowledgement: u32,
        /// The longest segment that the sender wants to receive, where it says so.
        segment_max: Option<u16>,
        payload: &'a [u8],
    },
    Datagram(&'a [u8]),
}

/// Why what a packet carries cannot be told.
#[derive(Clone, Copy)]
pub(super) enum Damage {
    Cut {
        found: usize,
        expected: usize,
    },
    /// It came in fragments, of which some are missing.
    Fragment,
    BadHeader(PacketError),
}

/// The packet of TCP or UDP in a frame, or its part; `None`: it is of something else.
pub(super) fn read(link: LinkType, data: &[u8]) -> Option<Found<'_>> {
    let found = dissect(link, data);
    let key = found.flow().filter(|key| matches!(key.protocol(), protocol::TCP | protocol::UDP))?;
    let at = usize::from(found.network_offset);
    let network = data.get(at..)?;
    // Zero is what a segmenting sender's own capture has.
    let (is_fragment, said) = match found.ethertype {
        ethertype::IPV4 => {
            let ip = ipv4::Packet::new(network).ok()?;
            (ip.is_fragment(), usize::from(ip.total_length()))
        }
        _ => {
            let ip = ipv6::Packet::new(network).ok()?;
            let length = usize::from(ip.payload_length());
            let said = if length == 0 { 0 } else { ipv6::HEADER_LENGTH + length };
            (ip.extensions()?.is_fragment, said)
        }
    };
    if is_fragment {
        let has_ports = key.source_port() != 0 || key.destination_port() != 0;
        let key = has_ports.then(|| key.without_vlan());
        return Some(Found::Fragment { bytes: network, key });
    }
    let length = if said == 0 { network.len() } else { said };
    let transport = usize::from(found.transport_offset).checked_sub(at)?;
    let body = if let Some(packet) = network.get(transport..length) {
        body(key.protocol(), packet).map_err(Damage::BadHeader)
    } else {
        Err(Damage::Cut { found: network.len(), expected: length })
    };
    Some(Found::Packet(Packet { key: key.without_vlan(), body }))
}

fn body(protocol: u8, packet: &[u8]) -> Result<Body<'_>, PacketError> {
    if protocol == protocol::UDP {
        let datagram = udp::Packet::new(packet)?;
        // Zero is what a segmenting sender's own capture has.
        let end = if datagram.length() == 0 { packet.len() } else { datagram.length().into() };
        let payload = packet.get(udp::HEADER_LENGTH..end.min(packet.len())).unwrap_or_default();
        return Ok(Body::Datagram(payload));
    }
    let segment = tcp::Packet::new(packet)?;
    Ok(Body::Segment {
        flags: segment.flags(),
        sequence: segment.sequence(),
        acknowledgement: segment.acknowledgement(),
        segment_max: segment_max(segment.options()),
        payload: packet.get(segment.header_length()..).unwrap_or_default(),
    })
}

/// RFC 9293 section 3.2: a kind of 0 ends the list, 1 is padding, all others have a length that
/// counts kind and length too; 2 is the longest segment.
fn segment_max(mut options: &[u8]) -> Option<u16> {
    loop {
        options = match options {
            [1, rest @ ..] => rest,
            [2, 4, high, low, ..] => return Some(u16::from_be_bytes([*high, *low])),
            [kind, length, ..] if *kind > 1 && *length > 1 => {
                options.get(usize::from(*length)..)?
            }
            _ => return None,
        };
    }
}
