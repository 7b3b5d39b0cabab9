//! Frames of one conversation, with correct lengths and checksums.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{
    ArpHardwareId, ArpOperation, ArpPacket, EtherType, IpHeaders, IpNumber, Ipv4Header, Ipv6Header,
    PacketBuilder, TcpHeader, VlanId,
};

/// Minimum length of a frame without FCS; shorter frames are padded with zeros.
pub(super) const FRAME_LENGTH_MIN: usize = 60;

const ETHERNET_HEADER_BYTES: usize = 14;
const UDP_HEADER_BYTES: usize = 8;
const IPV4_HEADER_BYTES: usize = 20;

/// Bytes of headers before the payload of UDP over IPv4 without VLAN.
pub(super) const UDP_IPV4_HEADERS_BYTES: usize =
    ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) mac: [u8; 6],
    pub(super) address: IpAddr,
    pub(super) port: u16,
}

/// The two hosts of a conversation.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    pub(super) client: Host,
    pub(super) server: Host,
    pub(super) vlan: Option<u16>,
}

/// Protocol above IP.
#[derive(Clone, Debug)]
pub(super) enum Upper {
    Tcp(Box<TcpHeader>),
    Udp,
    Echo { reply: bool, identifier: u16, sequence: u16 },
}

impl Conversation {
    pub(super) fn is_ipv6(&self) -> bool {
        self.client.address.is_ipv6()
    }

    /// Returns the longest TCP payload for an MTU of 1500 bytes with the timestamps option.
    pub(super) fn segment_length_max(&self) -> usize {
        if self.is_ipv6() { 1428 } else { 1448 }
    }

    /// Builds a frame from or to the client.
    pub(super) fn frame(&self, from_client: bool, upper: Upper, payload: &[u8]) -> Vec<u8> {
        let (from, to) =
            if from_client { (self.client, self.server) } else { (self.server, self.client) };
        let hops = if from_client { 64 } else { 57 };
        let headers = match (from.address, to.address) {
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let header = Ipv6Header {
                    hop_limit: hops,
                    source: from.octets(),
                    destination: to.octets(),
                    ..Ipv6Header::default()
                };
                IpHeaders::Ipv6(header, Default::default())
            }
            (from, to) => {
                let header = Ipv4Header {
                    time_to_live: hops,
                    protocol: IpNumber::UDP,
                    dont_fragment: true,
                    source: ipv4(from).octets(),
                    destination: ipv4(to).octets(),
                    ..Ipv4Header::default()
                };
                IpHeaders::Ipv4(header, Default::default())
            }
        };
        let is_ipv6 = self.is_ipv6();
        let ethernet = PacketBuilder::ethernet2(from.mac, to.mac);
        let ip = match self.vlan.and_then(|vlan| VlanId::try_new(vlan).ok()) {
            Some(vlan) => ethernet.single_vlan(vlan).ip(headers),
            None => ethernet.ip(headers),
        };
        let mut frame = Vec::with_capacity(payload.len() + 100);
        let written = match upper {
            Upper::Tcp(mut header) => {
                (header.source_port, header.destination_port) = (from.port, to.port);
                ip.tcp_header(*header).write_to_vec(&mut frame, payload)
            }
            Upper::Udp => ip.udp(from.port, to.port).write_to_vec(&mut frame, payload),
            Upper::Echo { reply, identifier, sequence } => match (is_ipv6, reply) {
                (false, false) => {
                    ip.icmpv4_echo_request(identifier, sequence).write_to_vec(&mut frame, payload)
                }
                (false, true) => {
                    ip.icmpv4_echo_reply(identifier, sequence).write_to_vec(&mut frame, payload)
                }
                (true, false) => {
                    ip.icmpv6_echo_request(identifier, sequence).write_to_vec(&mut frame, payload)
                }
                (true, true) => {
                    ip.icmpv6_echo_reply(identifier, sequence).write_to_vec(&mut frame, payload)
                }
            },
        };
        written.expect("a payload that fits one frame has all its lengths in range");
        padded(frame)
    }

    /// Builds the client's ARP request for the server's MAC address, or the server's reply.
    pub(super) fn arp(&self, from_client: bool) -> Vec<u8> {
        let [client, server] = [self.client, self.server];
        let (from, to) = if from_client { (client, server) } else { (server, client) };
        let (operation, destination, target_mac) = if from_client {
            (ArpOperation::REQUEST, [0xff; 6], [0; 6])
        } else {
            (ArpOperation::REPLY, to.mac, to.mac)
        };
        let packet = ArpPacket::new(
            ArpHardwareId::ETHERNET,
            EtherType::IPV4,
            operation,
            &from.mac,
            &ipv4(from.address).octets(),
            &target_mac,
            &ipv4(to.address).octets(),
        )
        .expect("the four addresses have the lengths of Ethernet and IPv4");
        let mut frame = Vec::with_capacity(FRAME_LENGTH_MIN);
        let ethernet = PacketBuilder::ethernet2(from.mac, destination);
        ethernet.arp(packet).write_to_vec(&mut frame).expect("ARP has no length that can overflow");
        padded(frame)
    }
}

fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    if frame.len() < FRAME_LENGTH_MIN {
        frame.resize(FRAME_LENGTH_MIN, 0);
    }
    frame
}

fn ipv4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

/// Returns the address `number` places after the first.
pub(super) fn nth_ipv4(first: Ipv4Addr, number: u32) -> IpAddr {
    Ipv4Addr::from(u32::from(first).wrapping_add(number)).into()
}

/// Returns the address `number` places after the first.
pub(super) fn nth_ipv6(first: Ipv6Addr, number: u32) -> IpAddr {
    Ipv6Addr::from(u128::from(first).wrapping_add(u128::from(number))).into()
}
