//! The way from a frame to a segment, and back.

use core::net::IpAddr;

use wirestorm_base::port::Segmentation;
use wirestorm_wire::checksum;
use wirestorm_wire::flow::FlowKey;
pub(crate) use wirestorm_wire::packet::network_header;
use wirestorm_wire::packet::{
    LINK_LENGTH_MAX, MacAddress, PacketError, ethernet, ethertype, icmpv4, ipv4, ipv6, protocol,
    tcp, udp, vlan,
};

use crate::icmp_error::Message;
use crate::tcp::ranges::SequenceRange;
use crate::tcp::segment::{Ecn, Outgoing};
use wirestorm_model::ip::IpSettings;

/// Where its addresses end.
const ADDRESSES: usize = 12;

/// What comes before the IP header: Ethernet addresses, VLAN tags, MPLS labels, the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkHeader {
    bytes: [u8; Self::LENGTH_MAX],
    length: u8,
    /// Which of the next hops that may move it goes to; 0: back to a peer.
    next_hop: u16,
}

impl LinkHeader {
    /// Room for two VLAN tags and four MPLS labels.
    pub const LENGTH_MAX: usize = LINK_LENGTH_MAX;

    /// The header that these bytes are; `None` where they are too many, or too few for Ethernet.
    pub fn new(header: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::LENGTH_MAX];
        bytes.get_mut(..header.len())?.copy_from_slice(header);
        (header.len() >= ethernet::HEADER_LENGTH).then_some(Self {
            bytes,
            length: header.len() as u8,
            next_hop: 0,
        })
    }

    /// The header of answers to a frame with this one: back to where it came from. `None` also
    /// where it was for a group, which nothing comes from.
    pub fn answering(header: &[u8]) -> Option<Self> {
        let mut answer = Self::new(header).filter(|_| header[0] & 1 == 0)?;
        answer.bytes[..6].copy_from_slice(&header[6..ADDRESSES]);
        answer.bytes[6..ADDRESSES].copy_from_slice(&header[..6]);
        Some(answer)
    }

    /// The same with other Ethernet addresses: so many behind its destination and its source,
    /// modulo 2^48.
    pub(crate) fn with_addresses_moved(mut self, steps: [u64; 2]) -> Self {
        for (address, step) in self.bytes.chunks_exact_mut(6).zip(steps) {
            let mut number = [0; 8];
            number[2..].copy_from_slice(address);
            let moved = u64::from_be_bytes(number).wrapping_add(step);
            address.copy_from_slice(&moved.to_be_bytes()[2..]);
        }
        self
    }

    /// The number of a next hop that never moves.
    pub const FIXED: u16 = u16::MAX;

    /// The same to a next hop that has this number, and may move
    /// ([`next_hop_moved`](crate::endpoint::Endpoint::next_hop_moved)); 0: to a peer, which may move as
    /// well ([`peer_moved`](crate::endpoint::Endpoint::peer_moved)).
    #[must_use]
    pub fn to_next_hop(mut self, number: u16) -> Self {
        self.next_hop = number;
        self
    }

    /// The number of the next hop that it goes to; 0: to a peer.
    pub(crate) fn next_hop(&self) -> u16 {
        self.next_hop
    }

    /// The Ethernet address that it goes to.
    pub(crate) fn destination(&self) -> &[u8] {
        &self.bytes[..6]
    }

    pub(crate) fn set_destination(&mut self, destination: MacAddress) {
        self.bytes[..6].copy_from_slice(&destination.0);
    }

    /// Its VLAN tags, two at most.
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

    /// The Ethernet address that it comes from, as a number.
    pub(crate) fn source(&self) -> u64 {
        self.bytes[6..ADDRESSES].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// A hash of all of it.
    pub(crate) fn hash64(&self) -> u64 {
        // Fractional digits of pi, as for keys of flows.
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

    /// Bytes of a first VLAN tag of 802.1Q, which come on top of what a port takes. One of 802.1ad is
    /// within it, as any other header is: not every way into the kernel takes a longer frame for it
    /// (`packet_extra_vlan_len_allowed` of `net/packet/af_packet.c`).
    pub(crate) fn tag_length(&self) -> usize {
        let is_tagged = self.as_slice()[ADDRESSES..].starts_with(&ethertype::VLAN.to_be_bytes());
        if is_tagged { vlan::TAG_LENGTH } else { 0 }
    }

    /// Bytes that leave so much less room for packets: tags of 802.1ad, what is behind first tags, and
    /// labels.
    pub(crate) fn excess(&self) -> usize {
        self.as_slice().len() - ethernet::HEADER_LENGTH - self.tag_length()
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// A packet of TCP or UDP as it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    /// What is before the IP header.
    pub(crate) link: &'a [u8],
    /// From the sender to us.
    pub(crate) key: FlowKey,
    /// The transport's header and what follows, without padding of the link layer.
    pub(crate) transport: &'a [u8],
    /// What it says of ECN.
    pub(crate) ecn: Ecn,
}

/// Why a frame is not for the transports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    /// A part of a packet.
    Fragment,
    /// Cut short, or a checksum is wrong.
    Damaged,
    /// A segment of TCP whose checksum is wrong.
    BadSum,
    /// A segment of TCP whose header has a length that none can have.
    BadOffset,
    /// A segment of TCP that ends before its header does.
    Short,
    /// Another protocol.
    Protocol,
}

impl Other {
    /// What is wrong with a packet, where that of TCP is told apart.
    const fn damaged(protocol: u8, of_tcp: Self) -> Self {
        if protocol == protocol::TCP { of_tcp } else { Self::Damaged }
    }
}

impl From<PacketError> for Other {
    /// What is wrong with a segment of TCP.
    fn from(error: PacketError) -> Self {
        match error {
            PacketError::BadHeaderLength { .. } => Self::BadOffset,
            // It says that it is longer than the shortest, and than what is there.
            PacketError::Truncated { expected, .. } if expected > tcp::HEADER_LENGTH_MIN => {
                Self::BadOffset
            }
            _ => Self::Short,
        }
    }
}

/// Whether the header of IPv4 is damaged in a frame whose transport's checksum need not be looked at:
/// whoever leaves that one to an interface has filled in this one.
pub(crate) fn has_damaged_header(frame: &[u8]) -> bool {
    let Some((start, ethertype::IPV4)) = network_header(frame) else { return false };
    let network = frame.get(start..).unwrap_or_default();
    ipv4::Packet::new(network).is_ok_and(|it| it.checksum() != it.computed_checksum())
}

/// What a frame is to the transports. Checksums are looked at where `verifies` says so.
#[inline(always)]
pub(crate) fn dissect(frame: &[u8], verifies: bool) -> Result<Packet<'_>, Other> {
    let (start, ethertype) = network_header(frame).ok_or(Other::Protocol)?;
    let (link, network) = frame.split_at(start);
    match ethertype {
        ethertype::IPV4 => dissect_ipv4(link, network, verifies),
        ethertype::IPV6 => dissect_ipv6(link, network, verifies),
        _ => Err(Other::Protocol),
    }
}

#[inline(always)]
fn dissect_ipv4<'a>(
    link: &'a [u8],
    network: &'a [u8],
    verifies: bool,
) -> Result<Packet<'a>, Other> {
    let packet = ipv4::Packet::new(network).map_err(|_| Other::Damaged)?;
    if packet.is_fragment() {
        return Err(Other::Fragment);
    }
    // Others have checksums of their own.
    if !matches!(packet.protocol(), protocol::TCP | protocol::UDP) {
        return Err(Other::Protocol);
    }
    let (start, end) = (packet.header_length(), usize::from(packet.total_length()));
    let transport = network.get(start..end).ok_or(Other::Damaged)?;
    let key =
        FlowKey::ipv4(packet.source().octets(), packet.destination().octets(), packet.protocol());
    if verifies {
        let length = transport.len() as u16;
        if checksum::sum(&network[..start]) != 0xffff {
            return Err(Other::Damaged);
        }
        // RFC 768: a datagram may have none.
        let has_none = packet.protocol() == protocol::UDP && is_without_sum(transport);
        if !has_none && !is_sum_good(packet.pseudo_header_sum(length), transport) {
            return Err(Other::damaged(packet.protocol(), Other::BadSum));
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
) -> Result<Packet<'a>, Other> {
    let packet = ipv6::Packet::new(network).map_err(|_| Other::Damaged)?;
    if !packet.is_whole() {
        return Err(Other::Damaged);
    }
    let extensions = packet.extensions().ok_or(Other::Damaged)?;
    if extensions.is_fragment {
        return Err(Other::Fragment);
    }
    // RFC 8200 section 4.4 has a packet discarded that is to be routed on in a way that a host does
    // not know, which RFC 5095 section 3 makes of type 0 as well.
    let is_understood = !extensions.is_refused && !extensions.is_routed;
    if !matches!(extensions.protocol, protocol::TCP | protocol::UDP) || !is_understood {
        return Err(Other::Protocol);
    }
    let end = ipv6::HEADER_LENGTH + usize::from(packet.payload_length());
    let transport = network.get(extensions.end..end).ok_or(Other::Damaged)?;
    let key =
        FlowKey::ipv6(packet.source().octets(), packet.destination().octets(), extensions.protocol);
    // RFC 8200 section 8.1: "IPv6 receivers must discard UDP packets containing a zero checksum".
    if extensions.protocol == protocol::UDP && is_without_sum(transport) {
        return Err(Other::Damaged);
    }
    if verifies {
        let sum = packet.pseudo_header_sum(extensions.protocol, transport.len() as u32);
        if !is_sum_good(sum, transport) {
            return Err(Other::damaged(extensions.protocol, Other::BadSum));
        }
    }
    let ecn = Ecn::of(packet.traffic_class());
    with_ports(Packet { link, key, transport, ecn })
}

fn is_sum_good(pseudo_header: u16, transport: &[u8]) -> bool {
    checksum::combine(pseudo_header, checksum::sum(transport)) == 0xffff
}

/// Whether a datagram has no checksum.
fn is_without_sum(datagram: &[u8]) -> bool {
    datagram.get(6..8) == Some(&[0, 0])
}

#[inline(always)]
fn with_ports(packet: Packet<'_>) -> Result<Packet<'_>, Other> {
    // Both have their ports at the same place.
    let ports = packet.transport.first_chunk::<4>();
    let ports = ports.ok_or_else(|| Other::damaged(packet.key.protocol(), Other::Short))?;
    let [a, b, c, d] = *ports;
    let key = packet.key.with_ports(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Ok(Packet { key, ..packet })
}

/// What a segment or datagram has before its own header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers<'a> {
    pub(crate) link: &'a LinkHeader,
    /// From the peer to us.
    pub(crate) key: &'a FlowKey,
    pub(crate) ip: &'a IpSettings,
    /// Of the packet, over IPv4.
    pub(crate) identification: u16,
    /// What the option of TCP Fast Open tells, where there is one.
    pub(crate) cookie: &'a [u8],
}

/// The most bytes before a segment's data.
pub(crate) const HEADERS_LENGTH_MAX: usize =
    LinkHeader::LENGTH_MAX + ipv6::HEADER_LENGTH + tcp::HEADER_LENGTH_MAX;

/// RFC 3168 section 5: ECT(0).
const ECN_CAPABLE: u8 = 2;

/// Writes a segment that answers what came with a key, with blocks of `sack`; `fill`
/// writes its data and returns their sum. Returns the frame's length, or nothing where it does not
/// fit.
#[inline]
pub(crate) fn write_segment(
    frame: &mut [u8],
    headers: &Headers<'_>,
    outgoing: &Outgoing,
    sack: &[SequenceRange],
    fill: impl FnOnce(&mut [u8]) -> u16,
) -> Option<usize> {
    let WrittenHeaders { frame_length, head, of_head, data, pseudo_header } =
        write_headers(frame, headers, outgoing, sack)?;
    let sums = [of_head, fill(data), pseudo_header];
    let checksum = !checksum::fold(sums.into_iter().map(u64::from).sum());
    head[tcp::field::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    Some(frame_length)
}

/// As [`write_segment`], for a segment that its port cuts into those of so many bytes of data each.
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

/// A segment of which all is written but its data and its checksum.
struct WrittenHeaders<'a> {
    frame_length: usize,
    /// The header of TCP, and its sum.
    head: &'a mut [u8],
    of_head: u16,
    data: &'a mut [u8],
    /// Its sum.
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
        write_below(frame, headers, protocol::TCP, ecn, length)?;
    let (head, data) = transport.split_at_mut(header);
    let (from, to) = (key.destination_port(), key.source_port());
    let of_head = outgoing.write_header(from, to, sack, headers.cookie, head);
    Some(WrittenHeaders { frame_length, head, of_head, data, pseudo_header })
}

/// Writes a datagram that answers what came with a key, with so many bytes of data; `fill` writes
/// them and returns their sum. Returns the frame's length, or nothing where it does not fit, or is
/// too long for a packet.
pub(crate) fn write_datagram(
    frame: &mut [u8],
    headers: &Headers<'_>,
    data: u32,
    fill: impl FnOnce(&mut [u8]) -> u16,
) -> Option<usize> {
    let length = u16::try_from(data).ok()?.checked_add(udp::HEADER_LENGTH as u16)?;
    // The length of a packet of IPv4 is that with its header.
    if headers.key.version() == 4 && length > u16::MAX - ipv4::HEADER_LENGTH_MIN as u16 {
        return None;
    }
    let (frame_length, transport, pseudo_header) =
        write_below(frame, headers, protocol::UDP, 0, length.into())?;
    let (head, data) = transport.split_at_mut(udp::HEADER_LENGTH);
    let fields = [headers.key.destination_port(), headers.key.source_port(), length, 0];
    for (bytes, value) in head.as_chunks_mut().0.iter_mut().zip(fields) {
        *bytes = value.to_be_bytes();
    }
    let sums = [checksum::sum(head), fill(data), pseudo_header];
    let checksum = !checksum::fold(sums.into_iter().map(u64::from).sum());
    // RFC 768: a sum of zero is sent as all ones, since zero says that there is none.
    let checksum = if checksum == 0 { 0xffff } else { checksum };
    head[udp::field::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    Some(frame_length)
}

/// Whether a packet is from one host to one host. RFC 1122 section 3.2.2: an error "MUST NOT be sent
/// as the result of receiving" others.
pub(crate) fn is_to_one(frame: &[u8], key: &FlowKey) -> bool {
    // The lowest bit of the first byte is that of groups (IEEE 802.3 section 3.2.3).
    let is_to_group = frame.first().is_none_or(|first| first & 1 != 0);
    !is_to_group && is_one(key.source()) && is_one(key.destination())
}

/// Whether an address is one host's, as far as it tells by itself.
pub(crate) fn is_one(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(it) if it.is_broadcast());
    !address.is_multicast() && !address.is_unspecified() && !is_broadcast
}

/// Writes a message of ICMP in answer to what came with a key; `original` is its packet, as much of
/// which is sent back as may be. Returns the frame's length, or nothing where it does not fit.
pub(crate) fn write_icmp_error(
    frame: &mut [u8],
    headers: &Headers<'_>,
    message: Message,
    original: &[u8],
) -> Option<usize> {
    let is_ipv4 = headers.key.version() == 4;
    let ((kind, code), pointer) = (message.type_and_code(is_ipv4), message.pointer(is_ipv4));
    // RFC 1812 section 4.3.2.3: packets of 576 bytes at most; RFC 4443 section 3.1: those that
    // every path takes, of 1,280.
    let (protocol, room) = match is_ipv4 {
        true => (protocol::ICMP, 576 - ipv4::HEADER_LENGTH_MIN),
        false => (protocol::ICMPV6, 1_280 - ipv6::HEADER_LENGTH),
    };
    // Without padding of the link layer.
    let packet_length = match is_ipv4 {
        true => usize::from(ipv4::Packet::new(original).ok()?.total_length()),
        false => {
            let behind = ipv6::Packet::new(original).ok()?.payload_length();
            ipv6::HEADER_LENGTH + usize::from(behind)
        }
    };
    let length = room.min(icmpv4::HEADER_LENGTH + packet_length);
    let (frame_length, message, pseudo_header) = write_below(frame, headers, protocol, 0, length)?;
    let (head, quoted) = message.split_at_mut(icmpv4::HEADER_LENGTH);
    head[..4].copy_from_slice(&[kind, code, 0, 0]);
    head[4..].copy_from_slice(&pointer.to_be_bytes());
    quoted.copy_from_slice(original.get(..quoted.len())?);
    // That of IPv4 has no pseudo header.
    let pseudo_header = if is_ipv4 { 0 } else { pseudo_header };
    let checksum = !checksum::combine(checksum::sum(message), pseudo_header);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    Some(frame_length)
}

/// Writes what is before a transport's header. Returns the frame's length, room for the `length`
/// bytes of the transport, and the sum of its pseudo header; or nothing where it does not fit.
#[inline(always)]
fn write_below<'a>(
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

/// An address of IPv6; one of IPv4 as RFC 4291 section 2.5.5.2 maps it.
pub(crate) fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The bit of RFC 791 section 3.1, where a header has it.
#[inline]
fn do_not_fragment(ip: &IpSettings) -> u32 {
    u32::from(ip.dont_fragment) << 14
}

/// `fragment`: its second word.
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
    fn the_header_of_ipv4_has_a_checksum_of_its_own() {
        let mut frame = vec![0; 14 + 115];
        frame[12] = 8;
        frame[14..34].copy_from_slice(&[
            0x45, 0, 0, 115, 0, 0, 0x40, 0, 0x40, 17, 0xb8, 0x61, 192, 168, 0, 1, 192, 168, 0, 199,
        ]);
        assert!(!has_damaged_header(&frame));
        for place in 14..34 {
            frame[place] ^= 1;
            // Of another version or length it is cut short, not damaged.
            assert!(has_damaged_header(&frame) || matches!(place, 14 | 16), "{place}");
            frame[place] ^= 1;
        }
        frame[40] = 1;
        assert!(!has_damaged_header(&frame), "that is the transport's");
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        assert!(!has_damaged_header(&frame), "IPv6 has none");
        assert!(!has_damaged_header(&frame[..13]));
    }
}
