//! Parser of a frame: its flow and its payload.

use crate::capture::LinkType;
use crate::dissect::dissect;
use crate::flow::FlowKey;
use crate::packet::{PacketError, ethertype, ipv4, ipv6, protocol, tcp, udp};

/// Contents of a frame.
#[derive(Clone, Copy)]
pub(super) enum ParsedFrame<'a> {
    Packet(Packet<'a>),
    /// A fragment of a packet.
    Fragment {
        /// Fragment from its IP header on.
        bytes: &'a [u8],
        /// Flow of the packet if this fragment has the ports.
        key: Option<FlowKey>,
    },
}

/// A TCP or UDP packet.
#[derive(Clone, Copy)]
pub(super) struct Packet<'a> {
    /// Flow key of the direction, without VLAN: both sides of a router count as the same flow.
    pub(super) key: FlowKey,
    pub(super) body: Result<Body<'a>, Damage>,
}

/// Contents of a packet.
#[derive(Clone, Copy)]
pub(super) enum Body<'a> {
    Segment {
        flags: tcp::Flags,
        sequence: u32,
        acknowledgement: u32,
        /// MSS option of the sender, if present.
        segment_max: Option<u16>,
        payload: &'a [u8],
    },
    Datagram(&'a [u8]),
}

/// Reason why the contents are unusable.
#[derive(Clone, Copy)]
pub(super) enum Damage {
    Truncated {
        found: usize,
        expected: usize,
    },
    /// Some fragments of the packet are missing.
    Fragment,
    BadHeader(PacketError),
}

/// Returns the TCP or UDP packet in a frame, or its fragment; `None` for other protocols.
pub(super) fn read(link: LinkType, data: &[u8]) -> Option<ParsedFrame<'_>> {
    let found = dissect(link, data);
    let key = found.flow().filter(|key| matches!(key.protocol(), protocol::TCP | protocol::UDP))?;
    let at = usize::from(found.network_offset);
    let network = data.get(at..)?;
    // The length is zero in captures on a sender with segmentation offload.
    let (is_fragment, declared_length) = match found.ethertype {
        ethertype::IPV4 => {
            let ip = ipv4::Packet::new(network).ok()?;
            (ip.is_fragment(), usize::from(ip.total_length()))
        }
        _ => {
            let ip = ipv6::Packet::new(network).ok()?;
            let length = usize::from(ip.payload_length());
            let declared_length = if length == 0 { 0 } else { ipv6::HEADER_LENGTH + length };
            (ip.extensions()?.is_fragment, declared_length)
        }
    };
    if is_fragment {
        let has_ports = key.source_port() != 0 || key.destination_port() != 0;
        let key = has_ports.then(|| key.without_vlan());
        return Some(ParsedFrame::Fragment { bytes: network, key });
    }
    let length = if declared_length == 0 { network.len() } else { declared_length };
    let transport = usize::from(found.transport_offset).checked_sub(at)?;
    let body = if let Some(packet) = network.get(transport..length) {
        body(key.protocol(), packet).map_err(Damage::BadHeader)
    } else {
        Err(Damage::Truncated { found: network.len(), expected: length })
    };
    Some(ParsedFrame::Packet(Packet { key: key.without_vlan(), body }))
}

fn body(protocol: u8, packet: &[u8]) -> Result<Body<'_>, PacketError> {
    if protocol == protocol::UDP {
        let datagram = udp::Packet::new(packet)?;
        // The length is zero in captures on a sender with segmentation offload.
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

/// Returns the MSS option. RFC 9293 section 3.2: kind 0 ends the list, kind 1 is padding. All
/// others have a length, which includes kind and length; kind 2 is the MSS.
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
