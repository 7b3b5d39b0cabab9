//! Conversion between frames and TCP segments or UDP datagrams.

use core::net::IpAddr;

use wirestorm_base::port::Segmentation;
use wirestorm_wire::checksum;
use wirestorm_wire::flow::FlowKey;
pub(crate) use wirestorm_wire::packet::network_header;
use wirestorm_wire::packet::{
    LINK_LENGTH_MAX, MacAddress, PacketError, ethernet, ethertype, icmpv4, ipv4, ipv6, protocol,
    tcp, udp, vlan,
};

use crate::icmp_error::IcmpErrorMessage;
use crate::tcp::ranges::SequenceRange;
use crate::tcp::segment::{Ecn, Outgoing};
use wirestorm_model::ip::IpSettings;

/// Offset of the EtherType or first VLAN tag, after both Ethernet addresses.
const ADDRESSES: usize = 12;

/// Bytes before the IP header: Ethernet addresses, VLAN tags, EtherType and MPLS labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkHeader {
    bytes: [u8; Self::LENGTH_MAX],
    length: u8,
    /// Number of the next hop whose address may change; 0 sends back to a peer.
    next_hop: u16,
}

impl LinkHeader {
    /// Maximum length: two VLAN tags and four MPLS labels.
    pub const LENGTH_MAX: usize = LINK_LENGTH_MAX;

    /// Wraps header bytes. Returns `None` if they are too many, or too few for Ethernet.
    pub fn new(header: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::LENGTH_MAX];
        bytes.get_mut(..header.len())?.copy_from_slice(header);
        (header.len() >= ethernet::HEADER_LENGTH).then_some(Self {
            bytes,
            length: header.len() as u8,
            next_hop: 0,
        })
    }

    /// Returns the header of answers to a frame with this header, with the Ethernet addresses
    /// swapped. Returns `None` also if the destination is a group address, because no frame comes
    /// from a group.
    pub fn answering(header: &[u8]) -> Option<Self> {
        let mut answer = Self::new(header).filter(|_| header[0] & 1 == 0)?;
        answer.bytes[..6].copy_from_slice(&header[6..ADDRESSES]);
        answer.bytes[6..ADDRESSES].copy_from_slice(&header[..6]);
        Some(answer)
    }

    /// Adds `steps` to the destination and the source address, modulo 2^48.
    pub(crate) fn with_address_offsets(mut self, steps: [u64; 2]) -> Self {
        for (address, step) in self.bytes.chunks_exact_mut(6).zip(steps) {
            let mut number = [0; 8];
            number[2..].copy_from_slice(address);
            let moved = u64::from_be_bytes(number).wrapping_add(step);
            address.copy_from_slice(&moved.to_be_bytes()[2..]);
        }
        self
    }

    /// Next hop number of an address that never changes.
    pub const FIXED: u16 = u16::MAX;

    /// Sets the number of the next hop, whose address may change later
    /// ([`set_next_hop_mac`](crate::endpoint::Endpoint::set_next_hop_mac)). Number 0 is a peer, whose
    /// address may change as well ([`set_peer_mac`](crate::endpoint::Endpoint::set_peer_mac)).
    #[must_use]
    pub fn to_next_hop(mut self, number: u16) -> Self {
        self.next_hop = number;
        self
    }

    /// Number of the next hop; 0 is a peer.
    pub(crate) fn next_hop(&self) -> u16 {
        self.next_hop
    }

    /// Destination Ethernet address.
    pub(crate) fn destination(&self) -> &[u8] {
        &self.bytes[..6]
    }

    pub(crate) fn set_destination(&mut self, destination: MacAddress) {
        self.bytes[..6].copy_from_slice(&destination.0);
    }

    /// Returns the VLAN tags, two at most.
    pub(crate) fn tags(&self) -> &[u8] {
        let (mut rest, mut length) = (&self.bytes[ADDRESSES..usize::from(self.length)], 0);
        while let [high, low, _, _, behind @ ..] = rest
            && matches!(
                u16::from_be_bytes([*high, *low]),
                ethertype::VLAN | ethertype::SERVICE_VLAN
            )
        {
            length += vlan::TAG_LENGTH;
            rest = behind;
        }
        &self.bytes[ADDRESSES..ADDRESSES + length]
    }

    /// Source Ethernet address as a number.
    pub(crate) fn source(&self) -> u64 {
        self.bytes[6..ADDRESSES].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Hashes all bytes.
    pub(crate) fn hash64(&self) -> u64 {
        // Fractional digits of pi, as in the hash of flow keys.
        let mut hash = 0x243f_6a88_85a3_08d3_u64;
        for chunk in self.as_slice().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let mixed = hash ^ u64::from_le_bytes(word);
            let product = u128::from(mixed) * u128::from(0x1319_8a2e_0370_7345_u64);
            hash = (product as u64) ^ (product >> 64) as u64;
        }
        hash
    }

    /// Length of a leading 802.1Q tag, which a port accepts on top of its MTU.
    ///
    /// A leading 802.1ad tag counts towards the MTU like any other header. Not every send path of
    /// the kernel accepts a longer frame for it (`packet_extra_vlan_len_allowed` in
    /// `net/packet/af_packet.c`).
    pub(crate) fn tag_length(&self) -> usize {
        let is_tagged = self.as_slice()[ADDRESSES..].starts_with(&ethertype::VLAN.to_be_bytes());
        if is_tagged { vlan::TAG_LENGTH } else { 0 }
    }

    /// Number of bytes by which the header reduces the room for packets: 802.1ad tags, second tags
    /// and labels.
    pub(crate) fn excess(&self) -> usize {
        self.as_slice().len() - ethernet::HEADER_LENGTH - self.tag_length()
    }

    /// Returns the header bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// A received TCP or UDP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    /// Bytes before the IP header.
    pub(crate) link: &'a [u8],
    /// Flow key, from the sender to this host.
    pub(crate) key: FlowKey,
    /// Transport header and payload, without padding of the link layer.
    pub(crate) transport: &'a [u8],
    /// ECN field of the IP header.
    pub(crate) ecn: Ecn,
}

/// Reason why a frame carries no TCP segment or UDP datagram for an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DissectError {
    /// A fragment of a packet.
    Fragment,
    /// A truncated packet or a wrong checksum.
    Damaged,
    /// A TCP segment with a wrong checksum.
    BadChecksum,
    /// A TCP segment with an invalid data offset.
    BadOffset,
    /// A TCP segment that is shorter than its header.
    Short,
    /// Another protocol.
    Protocol,
}

impl DissectError {
    /// Returns `of_tcp` for TCP and `Damaged` for other protocols.
    const fn damaged(protocol: u8, of_tcp: Self) -> Self {
        if protocol == protocol::TCP { of_tcp } else { Self::Damaged }
    }
}

impl From<PacketError> for DissectError {
    /// Maps a parse error of a TCP segment.
    fn from(error: PacketError) -> Self {
        match error {
            PacketError::BadHeaderLength { .. } => Self::BadOffset,
            // The data offset is valid but points beyond the end of the segment.
            PacketError::Truncated { expected, .. } if expected > tcp::HEADER_LENGTH_MIN => {
                Self::BadOffset
            }
            _ => Self::Short,
        }
    }
}

/// Whether a frame has an IPv4 header with a wrong checksum.
///
/// Applies to frames whose transport checksum an interface completes: their sender has filled in
/// the IPv4 header checksum.
pub(crate) fn has_damaged_header(frame: &[u8]) -> bool {
    let Some((start, ethertype::IPV4)) = network_header(frame) else { return false };
    let network = frame.get(start..).unwrap_or_default();
    ipv4::Packet::new(network).is_ok_and(|it| it.checksum() != it.computed_checksum())
}

/// Parses the transport packet in a frame; with `verifies`, also checks the checksums.
#[inline(always)]
pub(crate) fn dissect(frame: &[u8], verifies: bool) -> Result<Packet<'_>, DissectError> {
    let (start, ethertype) = network_header(frame).ok_or(DissectError::Protocol)?;
    let (link, network) = frame.split_at(start);
    match ethertype {
        ethertype::IPV4 => dissect_ipv4(link, network, verifies),
        ethertype::IPV6 => dissect_ipv6(link, network, verifies),
        _ => Err(DissectError::Protocol),
    }
}

#[inline(always)]
fn dissect_ipv4<'a>(
    link: &'a [u8],
    network: &'a [u8],
    verifies: bool,
) -> Result<Packet<'a>, DissectError> {
    let packet = ipv4::Packet::new(network).map_err(|_| DissectError::Damaged)?;
    if packet.is_fragment() {
        return Err(DissectError::Fragment);
    }
    // Other protocols define their own checksums.
    if !matches!(packet.protocol(), protocol::TCP | protocol::UDP) {
        return Err(DissectError::Protocol);
    }
    let (start, end) = (packet.header_length(), usize::from(packet.total_length()));
    let transport = network.get(start..end).ok_or(DissectError::Damaged)?;
    let key =
        FlowKey::ipv4(packet.source().octets(), packet.destination().octets(), packet.protocol());
    if verifies {
        let length = transport.len() as u16;
        if checksum::sum(&network[..start]) != 0xffff {
            return Err(DissectError::Damaged);
        }
        // RFC 768: a UDP datagram may have no checksum.
        let has_none = packet.protocol() == protocol::UDP && has_no_checksum(transport);
        if !has_none && !is_checksum_valid(packet.pseudo_header_sum(length), transport) {
            return Err(DissectError::damaged(packet.protocol(), DissectError::BadChecksum));
        }
    }
    let ecn = Ecn::of(packet.type_of_service());
    with_ports(Packet { link, key, transport, ecn })
}

#[inline]
fn dissect_ipv6<'a>(
    link: &'a [u8],
    network: &'a [u8],
    verifies: bool,
) -> Result<Packet<'a>, DissectError> {
    let packet = ipv6::Packet::new(network).map_err(|_| DissectError::Damaged)?;
    if !packet.is_whole() {
        return Err(DissectError::Damaged);
    }
    let extensions = packet.extensions().ok_or(DissectError::Damaged)?;
    if extensions.is_fragment {
        return Err(DissectError::Fragment);
    }
    // RFC 8200 section 4.4: discard a packet with a routing type that this host does not know. RFC
    // 5095 section 3 makes type 0 unknown.
    let is_understood = !extensions.must_discard && !extensions.is_routed;
    if !matches!(extensions.protocol, protocol::TCP | protocol::UDP) || !is_understood {
        return Err(DissectError::Protocol);
    }
    let end = ipv6::HEADER_LENGTH + usize::from(packet.payload_length());
    let transport = network.get(extensions.end..end).ok_or(DissectError::Damaged)?;
    let key =
        FlowKey::ipv6(packet.source().octets(), packet.destination().octets(), extensions.protocol);
    // RFC 8200 section 8.1: "IPv6 receivers must discard UDP packets containing a zero checksum".
    if extensions.protocol == protocol::UDP && has_no_checksum(transport) {
        return Err(DissectError::Damaged);
    }
    if verifies {
        let sum = packet.pseudo_header_sum(extensions.protocol, transport.len() as u32);
        if !is_checksum_valid(sum, transport) {
            return Err(DissectError::damaged(extensions.protocol, DissectError::BadChecksum));
        }
    }
    let ecn = Ecn::of(packet.traffic_class());
    with_ports(Packet { link, key, transport, ecn })
}

fn is_checksum_valid(pseudo_header: u16, transport: &[u8]) -> bool {
    checksum::combine(pseudo_header, checksum::sum(transport)) == 0xffff
}

/// Whether a datagram has no checksum.
fn has_no_checksum(datagram: &[u8]) -> bool {
    datagram.get(6..8) == Some(&[0, 0])
}

#[inline(always)]
fn with_ports(packet: Packet<'_>) -> Result<Packet<'_>, DissectError> {
    // TCP and UDP have their ports at the same offset.
    let ports = packet.transport.first_chunk::<4>();
    let ports =
        ports.ok_or_else(|| DissectError::damaged(packet.key.protocol(), DissectError::Short))?;
    let [a, b, c, d] = *ports;
    let key = packet.key.with_ports(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Ok(Packet { key, ..packet })
}

/// Values of the headers before a segment or datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers<'a> {
    pub(crate) link: &'a LinkHeader,
    /// Flow key, from the peer to this host.
    pub(crate) key: &'a FlowKey,
    pub(crate) ip: &'a IpSettings,
    /// IPv4 identification of the packet.
    pub(crate) identification: u16,
    /// Content of the TCP Fast Open option; empty without the option.
    pub(crate) cookie: &'a [u8],
}

/// Maximum number of bytes before a segment's data.
pub(crate) const HEADERS_LENGTH_MAX: usize =
    LinkHeader::LENGTH_MAX + ipv6::HEADER_LENGTH + tcp::HEADER_LENGTH_MAX;

/// RFC 3168 section 5: ECT(0).
const ECN_CAPABLE: u8 = 2;

/// Writes a segment that answers packets with `headers.key`, with the SACK blocks `sack`. `fill`
/// writes the data and returns its checksum sum. Returns the frame's length, or `None` if it does
/// not fit.
#[inline]
pub(crate) fn write_segment(
    frame: &mut [u8],
    headers: &Headers<'_>,
    outgoing: &Outgoing,
    sack: &[SequenceRange],
    fill: impl FnOnce(&mut [u8]) -> u16,
) -> Option<usize> {
    let WrittenHeaders { frame_length, head, header_sum: of_head, data, pseudo_header } =
        write_headers(frame, headers, outgoing, sack)?;
    let sums = [of_head, fill(data), pseudo_header];
    let checksum = !checksum::fold(sums.into_iter().map(u64::from).sum());
    head[tcp::field::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    Some(frame_length)
}

/// Like [`write_segment`], for a long segment that the port splits into segments of `each` bytes of
/// data.
pub(crate) fn write_long_segment(
    frame: &mut [u8],
    headers: &Headers<'_>,
    outgoing: &Outgoing,
    sack: &[SequenceRange],
    each: u32,
    fill: impl FnOnce(&mut [u8]) -> u16,
) -> Option<(usize, Segmentation)> {
    let WrittenHeaders { frame_length, head, data, pseudo_header, .. } =
        write_headers(frame, headers, outgoing, sack)?;
    head[tcp::field::CHECKSUM].copy_from_slice(&pseudo_header.to_be_bytes());
    fill(data);
    let behind = frame_length - data.len();
    let segmentation = Segmentation {
        is_ipv6: headers.key.version() == 6,
        transport: (behind - head.len()) as u16,
        headers: behind as u16,
        data: each as u16,
    };
    Some((frame_length, segmentation))
}

/// A segment that is complete except for its data and checksum.
struct WrittenHeaders<'a> {
    frame_length: usize,
    /// TCP header, and its checksum sum.
    head: &'a mut [u8],
    header_sum: u16,
    data: &'a mut [u8],
    /// Checksum sum of the pseudo header.
    pseudo_header: u16,
}

#[inline(always)]
fn write_headers<'a>(
    frame: &'a mut [u8],
    headers: &Headers<'_>,
    outgoing: &Outgoing,
    sack: &[SequenceRange],
) -> Option<WrittenHeaders<'a>> {
    let key = headers.key;
    let header = outgoing.header_length();
    let length = header + outgoing.length as usize;
    let ecn = if outgoing.is_ecn_capable { ECN_CAPABLE } else { 0 };
    let (frame_length, transport, pseudo_header) =
        write_lower_headers(frame, headers, protocol::TCP, ecn, length)?;
    let (head, data) = transport.split_at_mut(header);
    let (from, to) = (key.destination_port(), key.source_port());
    let of_head = outgoing.write_header(from, to, sack, headers.cookie, head);
    Some(WrittenHeaders { frame_length, head, header_sum: of_head, data, pseudo_header })
}

/// Writes a datagram that answers packets with `headers.key`, with `data` bytes of data. `fill`
/// writes the data and returns its checksum sum. Returns the frame's length, or `None` if it does
/// not fit the buffer or an IP packet.
pub(crate) fn write_datagram(
    frame: &mut [u8],
    headers: &Headers<'_>,
    data: u32,
    fill: impl FnOnce(&mut [u8]) -> u16,
) -> Option<usize> {
    let length = u16::try_from(data).ok()?.checked_add(udp::HEADER_LENGTH as u16)?;
    // The total length field of IPv4 includes the header.
    if headers.key.version() == 4 && length > u16::MAX - ipv4::HEADER_LENGTH_MIN as u16 {
        return None;
    }
    let (frame_length, transport, pseudo_header) =
        write_lower_headers(frame, headers, protocol::UDP, 0, length.into())?;
    let (head, data) = transport.split_at_mut(udp::HEADER_LENGTH);
    let fields = [headers.key.destination_port(), headers.key.source_port(), length, 0];
    for (bytes, value) in head.as_chunks_mut().0.iter_mut().zip(fields) {
        *bytes = value.to_be_bytes();
    }
    let sums = [checksum::sum(head), fill(data), pseudo_header];
    let checksum = !checksum::fold(sums.into_iter().map(u64::from).sum());
    // RFC 768: a sum of zero is sent as all ones, since zero means "no checksum".
    let checksum = if checksum == 0 { 0xffff } else { checksum };
    head[udp::field::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    Some(frame_length)
}

/// Whether a packet goes from one host to one host.
///
/// RFC 1122 section 3.2.2: an error "MUST NOT be sent as the result of receiving" any other packet.
pub(crate) fn is_unicast(frame: &[u8], key: &FlowKey) -> bool {
    // The lowest bit of the first byte marks a group address (IEEE 802.3 section 3.2.3).
    let is_to_group = frame.first().is_none_or(|first| first & 1 != 0);
    !is_to_group && is_unicast_address(key.source()) && is_unicast_address(key.destination())
}

/// Whether an address can belong to a single host. It does not detect subnet broadcast addresses.
pub(crate) fn is_unicast_address(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(it) if it.is_broadcast());
    !address.is_multicast() && !address.is_unspecified() && !is_broadcast
}

/// Writes an ICMP error for a packet with `headers.key`. `original` is that packet; the error
/// quotes as much of it as allowed. Returns the frame's length, or `None` if it does not fit.
pub(crate) fn write_icmp_error(
    frame: &mut [u8],
    headers: &Headers<'_>,
    message: IcmpErrorMessage,
    original: &[u8],
) -> Option<usize> {
    let is_ipv4 = headers.key.version() == 4;
    let ((kind, code), pointer) = (message.type_and_code(is_ipv4), message.pointer(is_ipv4));
    // RFC 1812 section 4.3.2.3 allows 576 bytes. RFC 4443 section 3.1 allows the minimum MTU of
    // IPv6, 1,280 bytes.
    let (protocol, room) = match is_ipv4 {
        true => (protocol::ICMP, 576 - ipv4::HEADER_LENGTH_MIN),
        false => (protocol::ICMPV6, 1_280 - ipv6::HEADER_LENGTH),
    };
    // Length of the packet without padding of the link layer.
    let packet_length = match is_ipv4 {
        true => usize::from(ipv4::Packet::new(original).ok()?.total_length()),
        false => {
            let behind = ipv6::Packet::new(original).ok()?.payload_length();
            ipv6::HEADER_LENGTH + usize::from(behind)
        }
    };
    let length = room.min(icmpv4::HEADER_LENGTH + packet_length);
    let (frame_length, message, pseudo_header) =
        write_lower_headers(frame, headers, protocol, 0, length)?;
    let (head, quoted) = message.split_at_mut(icmpv4::HEADER_LENGTH);
    head[..4].copy_from_slice(&[kind, code, 0, 0]);
    head[4..].copy_from_slice(&pointer.to_be_bytes());
    quoted.copy_from_slice(original.get(..quoted.len())?);
    // The ICMPv4 checksum covers no pseudo header.
    let pseudo_header = if is_ipv4 { 0 } else { pseudo_header };
    let checksum = !checksum::combine(checksum::sum(message), pseudo_header);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    Some(frame_length)
}

/// Writes the link and IP headers. Returns the frame's length, the `length` bytes for the
/// transport, and the checksum sum of its pseudo header. Returns `None` if it does not fit.
#[inline(always)]
fn write_lower_headers<'a>(
    frame: &'a mut [u8],
    headers: &Headers<'_>,
    protocol: u8,
    ecn: u8,
    length: usize,
) -> Option<(usize, &'a mut [u8], u16)> {
    let Headers { link, key, ip, identification, .. } = headers;
    let link = link.as_slice();
    let ip_header = match key.version() {
        4 => ipv4::HEADER_LENGTH_MIN,
        _ => ipv6::HEADER_LENGTH,
    };
    let frame = frame.get_mut(..link.len() + ip_header + length)?;
    let frame_length = frame.len();
    frame[..link.len()].copy_from_slice(link);
    let (header, transport) = frame[link.len()..].split_at_mut(ip_header);
    let traffic_class = ip.traffic_class & 0xfc | ecn;
    let pseudo_header = match (key.destination(), key.source()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let (from, to) = (from.octets(), to.octets());
            let fragment = u32::from(*identification) << 16 | do_not_fragment(ip);
            let bytes =
                ipv4_header([from, to], protocol, length, fragment, ip.hop_limit, traffic_class);
            header.copy_from_slice(&bytes);
            checksum::pseudo_header_ipv4(from, to, protocol, length as u16)
        }
        (from, to) => {
            let (from, to) = (octets(from), octets(to));
            let class = u32::from(traffic_class) << 20;
            let label = ip.flow_label.of(key);
            header[..4].copy_from_slice(&(6 << 28 | class | label).to_be_bytes());
            header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            header[6..8].copy_from_slice(&[protocol, ip.hop_limit]);
            header[8..24].copy_from_slice(&from);
            header[24..40].copy_from_slice(&to);
            checksum::pseudo_header_ipv6(from, to, protocol, length as u32)
        }
    };
    Some((frame_length, transport, pseudo_header))
}

/// Returns the octets of an IPv6 address; maps IPv4 addresses as in RFC 4291 section 2.5.5.2.
pub(crate) fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// Returns the "don't fragment" bit of RFC 791 section 3.1 if the settings ask for it.
#[inline]
fn do_not_fragment(ip: &IpSettings) -> u32 {
    u32::from(ip.dont_fragment) << 14
}

/// Builds an IPv4 header; `fragment` is its second word.
#[inline]
fn ipv4_header(
    [from, to]: [[u8; 4]; 2],
    protocol: u8,
    length: usize,
    fragment: u32,
    hop_limit: u8,
    traffic_class: u8,
) -> [u8; ipv4::HEADER_LENGTH_MIN] {
    const VERSION_AND_LENGTH: u32 = 0x45;
    let length = (ipv4::HEADER_LENGTH_MIN + length) as u32 & 0xffff;
    let mut words = [
        VERSION_AND_LENGTH << 24 | u32::from(traffic_class) << 16 | length,
        fragment,
        u32::from(hop_limit) << 24 | u32::from(protocol) << 16,
        u32::from_be_bytes(from),
        u32::from_be_bytes(to),
    ];
    let checksum = !checksum::fold(words.iter().map(|word| u64::from(*word)).sum());
    words[2] |= u32::from(checksum);
    let mut header = [0; ipv4::HEADER_LENGTH_MIN];
    for (bytes, word) in header.as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = word.to_be_bytes();
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn ipv4_header_checksum_detects_damage() {
        let mut frame = vec![0; 14 + 115];
        frame[12] = 8;
        frame[14..34].copy_from_slice(&[
            0x45, 0, 0, 115, 0, 0, 0x40, 0, 0x40, 17, 0xb8, 0x61, 192, 168, 0, 1, 192, 168, 0, 199,
        ]);
        assert!(!has_damaged_header(&frame));
        for place in 14..34 {
            frame[place] ^= 1;
            // A wrong version or length makes the header truncated, not damaged.
            assert!(has_damaged_header(&frame) || matches!(place, 14 | 16), "{place}");
            frame[place] ^= 1;
        }
        frame[40] = 1;
        assert!(!has_damaged_header(&frame), "byte of the transport");
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        assert!(!has_damaged_header(&frame), "IPv6 has no header checksum");
        assert!(!has_damaged_header(&frame[..13]));
    }
}
