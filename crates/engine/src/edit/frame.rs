//! Frame that is being edited.

use wirestorm_base::port::has_vlan_tag;
use wirestorm_wire::checksum::{Change, repair};
use wirestorm_wire::dissect::{Class, Dissection};
use wirestorm_wire::packet::{MacAddress, arp, ethernet, ethertype, ipv4, ipv6, protocol, udp};

/// Maximum number of VLAN tags to parse.
const TAGS_MAX: usize = 16;
/// Maximum number of MPLS labels to parse.
const LABELS_MAX: usize = 32;
const TAG_LENGTH: usize = 4;
const ETHERTYPE_OFFSET: usize = ethernet::HEADER_LENGTH - 2;

/// Facts about a frame before its edits. Offsets are in bytes from the start of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameFacts {
    /// Offset of the IP header; valid only with `is_ip`.
    pub network_offset: u16,
    /// Offset of the transport header, undefined if there is none; valid only with `is_ip`.
    pub transport_offset: u16,
    /// IP protocol number of the transport header; valid only with `is_ip`.
    pub protocol: u8,
    /// Whether the frame has complete IP headers.
    pub is_ip: bool,
    /// Whether the packet is IPv6.
    pub is_ipv6: bool,
    /// Whether the frame belongs to the secondary (server) side.
    pub secondary: bool,
    /// Number of the packet in its capture; seeds the fuzzing.
    pub number: u64,
}

/// Frame in a port's buffer, its parsed headers and its pending checksum updates.
pub(super) struct Frame<'a> {
    buffer: &'a mut [u8],
    length: usize,
    original_length: usize,
    /// 0 for the primary side, 1 for the secondary.
    pub(super) side: usize,
    /// EtherType behind the Ethernet header and VLAN tags.
    ethertype: u16,
    /// Offset of the end of the Ethernet header and VLAN tags.
    link_end: usize,
    /// Protocol at offset `network`.
    pub(super) kind: Kind,
    /// Offset of the IP header or ARP packet, if there is one.
    pub(super) network: usize,
    pub(super) transport: Option<Transport>,
    /// Sum of the changes that the IPv4 header checksum covers.
    header_change: Change,
    /// Sum of the changes that the transport checksum covers.
    transport_change: Change,
    /// Whether bytes were added that the capture lacks, so the checksum must be computed anew.
    checksum_is_unknown: bool,
}

/// Protocol that a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ipv4,
    Ipv6,
    Arp,
    Other,
}

/// Transport header of which at least the beginning is present.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transport {
    pub(super) offset: usize,
    pub(super) protocol: u8,
    /// Offset of its Internet checksum within the header, if it has one.
    checksum: Option<usize>,
    has_pseudo_header: bool,
    /// Whether the pseudo header has another destination than the IPv6 header (routing header).
    is_routed: bool,
    /// Whether this is the first fragment of a packet.
    is_fragment: bool,
}

impl<'a> Frame<'a> {
    /// Wraps the frame in the first `length` bytes of `buffer`, without parsing it.
    // The frame is parsed in place and not passed on by value: reading words that were just written
    // byte by byte would cost more than everything else.
    #[inline]
    pub(super) fn new(
        buffer: &'a mut [u8],
        length: usize,
        original_length: usize,
        secondary: bool,
    ) -> Self {
        Self {
            buffer,
            length,
            original_length,
            side: usize::from(secondary),
            ethertype: 0,
            link_end: 0,
            kind: Kind::Other,
            network: 0,
            transport: None,
            header_change: Change::NONE,
            transport_change: Change::NONE,
            checksum_is_unknown: false,
        }
    }

    /// Parses the headers; with `looks_inside` also those behind the Ethernet header and VLAN tags.
    /// Returns whether the link headers are complete and lead to a known type.
    #[inline]
    pub(super) fn locate(&mut self, facts: FrameFacts, looks_inside: bool) -> bool {
        let is_whole = self.find_link_end().is_some();
        if !is_whole || !facts.is_ip && self.ethertype < ethertype::TYPE_MIN {
            return false;
        }
        if looks_inside && facts.is_ip {
            self.find_ip(facts);
        } else if looks_inside && self.ethertype == ethertype::ARP {
            self.find_arp();
        }
        true
    }

    #[inline]
    fn find_link_end(&mut self) -> Option<()> {
        let mut at = ethernet::HEADER_LENGTH;
        let mut kind = self.u16_at(ETHERTYPE_OFFSET)?;
        for _ in 0..TAGS_MAX {
            if !ethertype::is_vlan(kind) {
                break;
            }
            kind = self.u16_at(at + 2)?;
            at += TAG_LENGTH;
        }
        (self.link_end, self.ethertype) = (at, kind);
        Some(())
    }

    #[inline]
    fn find_ip(&mut self, facts: FrameFacts) {
        let network = usize::from(facts.network_offset);
        let transport = usize::from(facts.transport_offset);
        let Some(bytes) = self.buffer.get(network..self.length) else { return };
        let (kind, has_transport, is_routed, is_fragment) = if facts.is_ipv6 {
            let Ok(packet) = ipv6::Packet::new(bytes) else { return };
            // Most packets have no extension headers, so nothing needs to be parsed.
            let is_plain = transport == network + ipv6::HEADER_LENGTH
                && packet.next_header() == facts.protocol;
            let extensions = if is_plain { None } else { packet.extensions() };
            match extensions {
                _ if is_plain => (Kind::Ipv6, true, false, false),
                Some(found) => {
                    let has_transport =
                        !found.is_later_fragment && network + found.end == transport;
                    (Kind::Ipv6, has_transport, found.is_routed, found.is_fragment)
                }
                None => (Kind::Ipv6, false, false, false),
            }
        } else {
            let Ok(packet) = ipv4::Packet::new(bytes) else { return };
            let has_transport =
                packet.fragment_offset() == 0 && network + packet.header_length() == transport;
            (Kind::Ipv4, has_transport, false, packet.more_fragments())
        };
        (self.kind, self.network) = (kind, network);
        if has_transport {
            let (checksum, covers_pseudo_header) = checksum_field(facts.protocol, kind);
            self.transport = Some(Transport {
                offset: transport,
                protocol: facts.protocol,
                checksum,
                has_pseudo_header: covers_pseudo_header,
                is_routed,
                is_fragment,
            });
        }
    }

    fn find_arp(&mut self) {
        let bytes = self.buffer.get(self.link_end..self.length).unwrap_or_default();
        if arp::Packet::new(bytes).is_ok_and(|packet| packet.protocol() == ethertype::IPV4) {
            (self.kind, self.network) = (Kind::Arp, self.link_end);
        }
    }

    /// Returns the length of the frame in bytes.
    #[inline]
    pub(super) const fn length(&self) -> usize {
        self.length
    }

    /// Returns the length of the frame on the wire in bytes.
    #[inline]
    pub(super) const fn original_length(&self) -> usize {
        self.original_length
    }

    /// Returns `N` bytes at `at`; `None` if the frame is too short.
    #[inline]
    pub(super) fn bytes_at<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.buffer.get(..self.length)?.get(at..)?.first_chunk().copied()
    }

    /// Returns the big-endian number at `at`.
    #[inline]
    pub(super) fn u16_at(&self, at: usize) -> Option<u16> {
        self.bytes_at(at).map(u16::from_be_bytes)
    }

    /// Returns the Ethernet address at `at`.
    #[inline]
    pub(super) fn mac_at(&self, at: usize) -> Option<MacAddress> {
        self.bytes_at(at).map(MacAddress)
    }

    /// Returns the bytes from `start` to `end`; empty if the frame is too short.
    #[inline]
    pub(super) fn slice(&self, start: usize, end: usize) -> &[u8] {
        self.buffer.get(..self.length).and_then(|all| all.get(start..end)).unwrap_or_default()
    }

    /// Writes `bytes` at `at`; does nothing if they do not fit into the frame.
    #[inline]
    pub(super) fn write<const N: usize>(&mut self, at: usize, bytes: &[u8; N]) {
        let frame = self.buffer.get_mut(..self.length).unwrap_or_default();
        if let Some(place) = frame.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = *bytes;
        }
    }

    /// Inserts a VLAN tag before all others; does nothing if the buffer is full.
    pub(super) fn push_tag(&mut self, ethertype: u16, control: u16) {
        let length = self.length + TAG_LENGTH;
        if length > self.buffer.len() {
            return;
        }
        self.buffer.copy_within(ETHERTYPE_OFFSET..self.length, ETHERTYPE_OFFSET + TAG_LENGTH);
        self.length = length;
        self.original_length += TAG_LENGTH;
        self.write(ETHERTYPE_OFFSET, &ethertype.to_be_bytes());
        self.write(ETHERTYPE_OFFSET + 2, &control.to_be_bytes());
        self.link_end += TAG_LENGTH;
        self.network += TAG_LENGTH;
        if let Some(transport) = &mut self.transport {
            transport.offset += TAG_LENGTH;
        }
    }

    /// Removes the outermost VLAN tag; returns whether there was one.
    pub(super) fn pop_tag(&mut self) -> bool {
        if self.link_end < ethernet::HEADER_LENGTH + TAG_LENGTH {
            return false;
        }
        self.buffer.copy_within(ETHERTYPE_OFFSET + TAG_LENGTH..self.length, ETHERTYPE_OFFSET);
        self.length -= TAG_LENGTH;
        self.original_length = self.original_length.saturating_sub(TAG_LENGTH);
        self.link_end -= TAG_LENGTH;
        self.network = self.network.saturating_sub(TAG_LENGTH);
        if let Some(transport) = &mut self.transport {
            transport.offset = transport.offset.saturating_sub(TAG_LENGTH);
        }
        true
    }

    /// Returns the offsets of the control information (TCI) of the outermost and innermost tag.
    pub(super) fn tags(&self) -> Option<(usize, usize)> {
        (self.link_end > ethernet::HEADER_LENGTH)
            .then_some((ethernet::HEADER_LENGTH, self.link_end - TAG_LENGTH))
    }

    /// Returns the offset of an Ethernet header inside an MPLS stack (RFC 4448): behind a control
    /// word whose first 16 bits are zero, or without one.
    pub(super) fn inner_ethernet(&self) -> Option<usize> {
        if !matches!(self.ethertype, ethertype::MPLS | ethertype::MPLS_UPSTREAM) {
            return None;
        }
        let mut at = self.link_end;
        for _ in 0..LABELS_MAX {
            let [_, _, third, _] = self.bytes_at(at)?;
            at += 4;
            if third & 1 != 0 {
                break;
            }
        }
        let [first, second] = self.bytes_at(at)?;
        if matches!(first >> 4, 4 | 6) {
            return None;
        }
        let behind_control_word = (first == 0 && second == 0).then_some(at + 4);
        [behind_control_word, Some(at)].into_iter().flatten().find(|start| {
            let end = start + ethernet::HEADER_LENGTH;
            self.u16_at(end - 2).is_some_and(|kind| {
                let room = self.length.saturating_sub(end);
                ethertype::is_vlan(kind)
                    || matches!(kind, ethertype::IPV4 | ethertype::IPV6 | ethertype::ARP)
                    || (3..=ethertype::LENGTH_MAX).contains(&kind) && usize::from(kind) <= room
            })
        })
    }

    /// Returns the end of the IP packet; link-layer padding follows it.
    pub(super) fn packet_end(&self) -> usize {
        match self.stated_length() {
            0 => self.length,
            stated => self.length.min(self.network + stated),
        }
    }

    /// Returns the length of the IP packet as its header states it; 0 if it states none, as in
    /// captures on a sender with segmentation offload.
    pub(super) fn stated_length(&self) -> usize {
        let field = |at| usize::from(self.u16_at(self.network + at).unwrap_or_default());
        match self.kind {
            Kind::Ipv4 => field(ipv4::field::TOTAL_LENGTH.start),
            Kind::Ipv6 => match field(ipv6::field::PAYLOAD_LENGTH.start) {
                0 => 0,
                length => ipv6::HEADER_LENGTH + length,
            },
            Kind::Arp | Kind::Other => 0,
        }
    }

    /// Returns the minimum length of the IP header.
    pub(super) const fn network_header_length_min(&self) -> usize {
        match self.kind {
            Kind::Ipv4 => ipv4::HEADER_LENGTH_MIN,
            Kind::Ipv6 => ipv6::HEADER_LENGTH,
            Kind::Arp | Kind::Other => 0,
        }
    }

    /// Changes a word of the IPv4 header and updates its checksum.
    #[inline]
    pub(super) fn set_header_word(&mut self, at: usize, new: u16) {
        let at = self.network + at;
        if let Some(old) = self.u16_at(at).filter(|old| *old != new) {
            self.write(at, &new.to_be_bytes());
            self.header_change = self.header_change.word16(old, new);
        }
    }

    /// Changes an address of `N` bytes and updates the checksums that cover it.
    #[inline]
    pub(super) fn set_address<const N: usize>(
        &mut self,
        at: usize,
        new: [u8; N],
        is_destination: bool,
    ) {
        let at = self.network + at;
        let Some(old) = self.bytes_at(at).filter(|old| *old != new) else { return };
        self.write(at, &new);
        let change = |before: Change| before.bytes(&old, &new);
        self.header_change = change(self.header_change);
        if let Some(transport) = self.transport
            && transport.has_pseudo_header
            && !(is_destination && transport.is_routed)
        {
            self.transport_change = change(self.transport_change);
        }
    }

    /// Changes bytes at an even offset `at` from the transport header and updates the checksum.
    #[inline]
    pub(super) fn set_transport_bytes<const N: usize>(&mut self, at: usize, new: [u8; N]) {
        let Some(offset) = self.transport.map(|transport| transport.offset + at) else { return };
        let Some(old) = self.bytes_at(offset).filter(|old| *old != new) else { return };
        self.write(offset, &new);
        self.transport_change = self.transport_change.bytes(&old, &new);
    }

    /// Changes bytes at any offset of the frame within the packet and updates the checksum. Changes
    /// at most [`OVERWRITE_MAX`] bytes.
    pub(super) fn overwrite(&mut self, start: usize, new: &[u8]) {
        let Some(transport) = self.transport else { return };
        let end = (start + new.len().min(OVERWRITE_MAX)).min(self.packet_end());
        // Start at a checksum word. An odd last byte is the upper half of a word in any case.
        let first = start - (start.saturating_sub(transport.offset) & 1);
        let mut before = [0; OVERWRITE_MAX + 1];
        let old = self.slice(first, end);
        let Some(before) = before.get_mut(..old.len()) else { return };
        before.copy_from_slice(old);
        let place = self.buffer.get_mut(start..end).unwrap_or_default();
        for (byte, new) in place.iter_mut().zip(new) {
            *byte = *new;
        }
        let after = self.slice(first, end);
        if *before != *after {
            self.transport_change = self.transport_change.bytes(before, after);
        }
    }

    /// Shortens the frame to at most `length` bytes and leaves the headers as they are.
    pub(super) fn shorten(&mut self, length: usize) {
        self.length = self.length.min(length);
        self.original_length = self.length;
    }

    /// Cuts the frame to an MTU plus the Ethernet header and one VLAN tag; all tags stay.
    pub(super) fn cut_to_mtu(&mut self, mtu: usize) {
        let has_tag = has_vlan_tag(self.slice(0, self.length));
        let header = ethernet::HEADER_LENGTH + if has_tag { TAG_LENGTH } else { 0 };
        self.cut(header.saturating_add(mtu).max(self.link_end));
    }

    /// Cuts the frame to `length` bytes, and the IP packet with it.
    fn cut(&mut self, length: usize) {
        let old_length = self.length;
        self.original_length = self.original_length.min(length);
        if old_length <= length {
            return;
        }
        let stated = self.stated_length();
        let old_end = self.network + stated;
        let room = length.saturating_sub(self.network);
        if !matches!(self.kind, Kind::Ipv4 | Kind::Ipv6) {
            self.length = length;
            return;
        }
        if room < self.network_header_length_min() {
            // The IP header is incomplete, so later edits must not touch it.
            (self.length, self.kind, self.transport) = (length, Kind::Other, None);
            return;
        }
        if stated != 0 && stated <= room {
            // Only padding was removed.
            self.length = length;
            return;
        }
        if stated == 0 || old_end > old_length {
            self.length = length;
            self.set_packet_length(room);
            self.checksum_is_unknown = true;
            return;
        }
        self.subtract_from_checksum(length, old_end);
        self.length = length;
        self.set_packet_length(room);
    }

    /// Subtracts the removed bytes from `start` to `end` from the transport checksum.
    fn subtract_from_checksum(&mut self, start: usize, end: usize) {
        let Some(transport) = self.transport else { return };
        // The UDP checksum ends at the UDP length.
        let end = match transport.protocol {
            protocol::UDP => {
                let at = transport.offset + udp::field::LENGTH.start;
                let length = self.u16_at(at).unwrap_or_default();
                end.min(transport.offset + usize::from(length))
            }
            _ => end,
        };
        let start = start.max(transport.offset);
        let gone = wirestorm_wire::checksum::sum(self.slice(start, end));
        // RFC 1071 section 2: the sum of bytes at odd offsets is byte-swapped.
        let gone = if (start - transport.offset) & 1 == 0 { gone } else { gone.swap_bytes() };
        self.transport_change = self.transport_change.word16(gone, 0);
    }

    /// Sets the IP packet length to `length` bytes, and reduces the UDP length if it exceeds that.
    pub(super) fn set_packet_length(&mut self, length: usize) {
        let stated = self.stated_length();
        let Ok(field) = u16::try_from(length) else { return };
        match self.kind {
            Kind::Ipv4 => self.set_header_word(ipv4::field::TOTAL_LENGTH.start, field),
            Kind::Ipv6 => {
                let field = field.saturating_sub(ipv6::HEADER_LENGTH as u16);
                let at = self.network + ipv6::field::PAYLOAD_LENGTH.start;
                self.write(at, &field.to_be_bytes());
            }
            Kind::Arp | Kind::Other => return,
        }
        let Some(transport) = self.transport.filter(|transport| !transport.is_fragment) else {
            return;
        };
        let before = transport.offset.saturating_sub(self.network);
        let new = length.saturating_sub(before) as u16;
        if transport.protocol == protocol::UDP {
            self.shorten_datagram(transport.offset, new);
        } else if transport.has_pseudo_header {
            let old = stated.saturating_sub(before) as u16;
            self.transport_change = self.transport_change.word16(old, new);
        }
    }

    /// Reduces the UDP length, which the checksum covers twice: in the header and the pseudo
    /// header.
    fn shorten_datagram(&mut self, offset: usize, length: u16) {
        let at = offset + udp::field::LENGTH.start;
        if let Some(old) = self.u16_at(at).filter(|old| *old > length) {
            self.write(at, &length.to_be_bytes());
            self.transport_change = self.transport_change.word16(old, length).word16(old, length);
        }
    }

    /// Pads the frame with zeros to its length on the wire, as far as the buffer permits.
    pub(super) fn pad(&mut self) {
        let length = self.original_length.min(self.buffer.len());
        if let Some(missing) = self.buffer.get_mut(self.length..length) {
            missing.fill(0);
            let stated = self.stated_length();
            self.checksum_is_unknown |= stated == 0 || self.network + stated > self.length;
            self.length = length;
        }
    }

    /// Reduces the IP length to the length of the frame if it is longer.
    pub(super) fn shorten_packet_to_frame(&mut self) {
        let room = self.length.saturating_sub(self.network);
        let stated = self.stated_length();
        if room >= self.network_header_length_min() && (stated == 0 || stated > room) {
            self.set_packet_length(room);
            self.checksum_is_unknown = true;
        }
    }

    /// Increases the IP length to the length of the frame, unless the rest may be padding.
    pub(super) fn extend_packet_to_frame(&mut self) {
        /// Minimum Ethernet payload (IEEE 802.3 section 4A.4.2).
        const ETHERNET_PAYLOAD_MIN: usize = 46;
        let room = self.length.saturating_sub(self.network);
        let stated = self.stated_length();
        if stated != 0 && stated < room && room > ETHERNET_PAYLOAD_MIN {
            self.set_packet_length(room);
            self.checksum_is_unknown = true;
        }
    }

    /// Updates the checksums by the changes, or computes all anew with `fix_all`.
    pub(super) fn finish(&mut self, fix_all: bool) {
        if fix_all || self.checksum_is_unknown {
            self.repair();
            return;
        }
        if self.kind == Kind::Ipv4 && self.header_change != Change::NONE {
            let at = self.network + ipv4::field::CHECKSUM.start;
            if let Some(old) = self.u16_at(at) {
                self.write(at, &self.header_change.apply(old).to_be_bytes());
            }
        }
        if self.transport_change != Change::NONE {
            self.finish_transport();
        }
    }

    fn finish_transport(&mut self) {
        let Some(transport) = self.transport else { return };
        let Some(field) = transport.checksum else { return };
        let at = transport.offset + field;
        if at + 2 > self.packet_end() {
            return;
        }
        let Some(old) = self.u16_at(at) else { return };
        let new = match transport.protocol {
            // UDP-Lite treats zero as UDP does (RFC 3828 section 3.1).
            protocol::UDP | protocol::UDP_LITE => self.transport_change.apply_udp(old),
            _ => self.transport_change.apply(old),
        };
        self.write(at, &new.to_be_bytes());
    }

    fn repair(&mut self) {
        let ethertype = match self.kind {
            Kind::Ipv4 => ethertype::IPV4,
            Kind::Ipv6 => ethertype::IPV6,
            Kind::Arp | Kind::Other => return,
        };
        let Ok(network_offset) = u16::try_from(self.network) else { return };
        let place = Dissection {
            network_offset,
            ethertype,
            transport_offset: 0,
            protocol: 0,
            class: Class::Invalid,
        };
        repair(self.buffer.get_mut(..self.length).unwrap_or_default(), &place);
    }
}

/// Maximum number of bytes that [`Frame::overwrite`] changes.
pub(super) const OVERWRITE_MAX: usize = 16;

/// Returns the checksum offset of a protocol, and whether it covers the pseudo header.
const fn checksum_field(protocol: u8, kind: Kind) -> (Option<usize>, bool) {
    match (protocol, kind) {
        (protocol::TCP, _) => (Some(16), true),
        (protocol::UDP | protocol::UDP_LITE | protocol::DCCP, _) => (Some(6), true),
        (protocol::ICMPV6, Kind::Ipv6) => (Some(2), true),
        (protocol::ICMP | protocol::IGMP, Kind::Ipv4) => (Some(2), false),
        _ => (None, false),
    }
}
