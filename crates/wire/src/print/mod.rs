//! Human-readable packets: one line each, and hexadecimal dumps.
//!
//! For diagnosis, not for the data path: formatting takes microseconds.

mod dns;
mod hex_dump;
mod icmp;
mod tcp;

use core::fmt::{self, Formatter};
use core::net::IpAddr;

use wirestorm_base::time::{Instant, NANOSECONDS_PER_SECOND};

use crate::capture::LinkType;
use crate::dissect::{Class, Dissection, dissect};
use crate::packet::{arp, ethernet, ethertype, ipv4, ipv6, llc, mpls, protocol, udp, vlan};

pub use hex_dump::HexDump;

/// Formats a packet on one line, as `tcpdump -n -S` does. The time is UTC with nanoseconds.
///
/// ```
/// # use wirestorm_wire::capture::LinkType;
/// # use wirestorm_wire::print::Summary;
/// let mut frame = vec![
///     2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 36, 0, 1, 0, 0, 64, 17, 0, 0, 10,
///     0, 0, 1, 10, 0, 0, 2, 4, 0, 0, 9, 0, 16, 0, 0,
/// ];
/// frame.resize(60, 0);
/// let summary = Summary {
///     timestamp: wirestorm_base::time::Instant::from_nanos(1_000),
///     link_type: LinkType::EN10MB,
///     data: &frame,
///     original_length: 60,
/// };
/// assert_eq!(
///     summary.to_string(),
///     "00:00:00.000001000 IP 10.0.0.1.1024 > 10.0.0.2.9: UDP, length 8"
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    /// Time of capture or transmission, since the Unix epoch.
    pub timestamp: Instant,
    /// Link type of the bytes.
    pub link_type: LinkType,
    /// Captured bytes.
    pub data: &'a [u8],
    /// Length on the wire in bytes.
    pub original_length: u32,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_time(f, self.timestamp)?;
        let dissection = dissect(self.link_type, self.data);
        if self.link_type == LinkType::EN10MB {
            self.write_tags(f, &dissection)?;
        }
        let network = self.data.get(usize::from(dissection.network_offset)..).unwrap_or_default();
        match (dissection.ethertype, dissection.class) {
            (ethertype::IPV4, _) => write_ipv4(f, network),
            (ethertype::IPV6, _) => write_ipv6(f, network),
            (ethertype::ARP, _) => write_arp(f, network, self.length_behind(&dissection)),
            (_, Class::Invalid) => {
                write!(f, "[|{}], length {}", self.link_type, self.original_length)
            }
            _ => self.write_other(f, &dissection, network),
        }
    }
}

impl Summary<'_> {
    /// Returns the bytes on the wire from the network header on.
    fn length_behind(&self, dissection: &Dissection) -> u32 {
        self.original_length.saturating_sub(u32::from(dissection.network_offset))
    }

    /// Writes the VLAN tags and MPLS labels between the Ethernet header and the network header.
    fn write_tags(&self, f: &mut Formatter<'_>, dissection: &Dissection) -> fmt::Result {
        let Ok(frame) = ethernet::Frame::new(self.data) else { return Ok(()) };
        let end = usize::from(dissection.network_offset);
        let (mut at, mut kind) = (ethernet::HEADER_LENGTH, frame.ethertype());
        let mut labels = 0;
        // Each iteration advances by four bytes.
        while let Some(rest) = self.data.get(at..end).filter(|rest| !rest.is_empty()) {
            match kind {
                _ if ethertype::is_vlan(kind) => {
                    let Ok(tag) = vlan::Tag::new(rest) else { return Ok(()) };
                    write!(f, "vlan {}, p {}, ", tag.identifier(), tag.priority())?;
                    (at, kind) = (at + vlan::TAG_LENGTH, tag.ethertype());
                }
                ethertype::MPLS | ethertype::MPLS_UPSTREAM => {
                    let Ok(entry) = mpls::Entry::new(rest) else { return Ok(()) };
                    let bottom = if entry.is_bottom() { " [S]," } else { "" };
                    let (label, class) = (entry.label(), entry.traffic_class());
                    let time_to_live = entry.time_to_live();
                    f.write_str(if labels == 0 { "MPLS " } else { "" })?;
                    write!(f, "(label {label}, tc {class},{bottom} ttl {time_to_live}) ")?;
                    labels += 1;
                    if entry.is_bottom() {
                        return Ok(());
                    }
                    at += mpls::ENTRY_LENGTH;
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Writes a frame that is neither IP nor ARP.
    fn write_other(
        &self,
        f: &mut Formatter<'_>,
        dissection: &Dissection,
        network: &[u8],
    ) -> fmt::Result {
        if self.link_type == LinkType::EN10MB
            && let Ok(frame) = ethernet::Frame::new(self.data)
        {
            write!(f, "{} > {}, ", frame.source(), frame.destination())?;
        }
        let length = self.original_length;
        match (dissection.ethertype, llc::Header::new(network)) {
            (0, _) => write!(f, "{}, length {length}", self.link_type),
            (0..=ethertype::LENGTH_MAX, Ok(header)) => match header.destination() {
                llc::SPANNING_TREE => write!(f, "802.3, STP, length {length}"),
                access_point => write!(f, "802.3, LLC {access_point:#04x}, length {length}"),
            },
            (kind, _) => write!(f, "ethertype {kind:#06x}, length {length}"),
        }
    }
}

/// Writes the time of day in UTC.
fn write_time(f: &mut Formatter<'_>, timestamp: Instant) -> fmt::Result {
    let nanoseconds = timestamp.as_nanos() % NANOSECONDS_PER_SECOND;
    let seconds = timestamp.as_nanos() / NANOSECONDS_PER_SECOND % 86_400;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    write!(f, "{hours:02}:{minutes:02}:{seconds:02}.{nanoseconds:09} ")
}

fn write_arp(f: &mut Formatter<'_>, network: &[u8], length: u32) -> fmt::Result {
    let Ok(packet) = arp::Packet::new(network) else {
        return write!(f, "ARP, [|arp], length {length}");
    };
    let (sender, target) = (packet.sender_address(), packet.target_address());
    match packet.operation() {
        arp::REQUEST => write!(f, "ARP, Request who-has {target} tell {sender}, length {length}"),
        arp::REPLY => {
            write!(f, "ARP, Reply {sender} is-at {}, length {length}", packet.sender_hardware())
        }
        operation => write!(f, "ARP, operation {operation}, length {length}"),
    }
}

fn write_ipv4(f: &mut Formatter<'_>, network: &[u8]) -> fmt::Result {
    let Ok(packet) = ipv4::Packet::new(network) else { return f.write_str("IP [|ip]") };
    let length = match usize::from(packet.total_length()) {
        0 => packet.payload().len(),
        total_length => total_length.saturating_sub(packet.header_length()),
    };
    let fragment_offset = packet.fragment_offset();
    Transport {
        name: "IP",
        source: packet.source().into(),
        destination: packet.destination().into(),
        protocol: packet.protocol(),
        later_fragment: (fragment_offset != 0).then_some(fragment_offset),
        length,
        data: packet.payload(),
    }
    .write(f)
}

fn write_ipv6(f: &mut Formatter<'_>, network: &[u8]) -> fmt::Result {
    let Ok(packet) = ipv6::Packet::new(network) else { return f.write_str("IP6 [|ip6]") };
    let (source, destination) = (packet.source(), packet.destination());
    let Some(extensions) = packet.extensions() else {
        return write!(f, "IP6 {source} > {destination}: [|ip6 extension]");
    };
    let data = packet.transport(&extensions);
    let length = match usize::from(packet.payload_length()) {
        0 => data.len(),
        length => (length + ipv6::HEADER_LENGTH).saturating_sub(extensions.end),
    };
    Transport {
        name: "IP6",
        source: source.into(),
        destination: destination.into(),
        protocol: extensions.protocol,
        later_fragment: extensions.is_later_fragment.then(|| {
            let fragment = network.get(extensions.end.saturating_sub(6)..);
            let field = fragment.and_then(|bytes| bytes.first_chunk()).copied();
            u32::from(u16::from_be_bytes(field.unwrap_or_default()) & 0xfff8)
        }),
        length,
        data,
    }
    .write(f)
}

/// Payload behind an IP header and its extension headers.
struct Transport<'a> {
    name: &'static str,
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    /// Fragment offset in bytes, if this is not the first fragment.
    later_fragment: Option<u32>,
    /// Length on the wire in bytes.
    length: usize,
    /// Captured bytes.
    data: &'a [u8],
}

impl Transport<'_> {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, source, destination, protocol, length, data, .. } = self;
        if let Some(offset) = self.later_fragment {
            write!(f, "{name} {source} > {destination}: ")?;
            self.write_protocol(f)?;
            return write!(f, " fragment at {offset}, length {length}");
        }
        match data.first_chunk() {
            Some([a, b, c, d]) if protocol::has_ports(*protocol) => {
                let (from, to) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
                write!(f, "{name} {source}.{from} > {destination}.{to}: ")?;
            }
            _ => write!(f, "{name} {source} > {destination}: ")?,
        }
        match *protocol {
            protocol::TCP => tcp::write(f, data, *length),
            protocol::UDP => write_udp(f, data, *length),
            protocol::ICMP => icmp::write(f, data, *length),
            protocol::ICMPV6 => icmp::write_v6(f, data, *length),
            _ => {
                self.write_protocol(f)?;
                write!(f, ", length {length}")
            }
        }
    }

    fn write_protocol(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = match self.protocol {
            protocol::ICMP => "ICMP",
            protocol::IGMP => "IGMP",
            protocol::IPV4 => "IP",
            protocol::TCP => "TCP",
            protocol::UDP => "UDP",
            protocol::DCCP => "DCCP",
            protocol::IPV6 => "IP6",
            protocol::GRE => "GRE",
            protocol::ESP => "ESP",
            protocol::ICMPV6 => "ICMP6",
            protocol::OSPF => "OSPF",
            protocol::VRRP => "VRRP",
            protocol::SCTP => "SCTP",
            protocol::UDP_LITE => "UDP-Lite",
            number => return write!(f, "ip-proto-{number}"),
        };
        f.write_str(name)
    }
}

fn write_udp(f: &mut Formatter<'_>, data: &[u8], length: usize) -> fmt::Result {
    const DNS: u16 = 53;
    const MULTICAST_DNS: u16 = 5353;
    let Ok(datagram) = udp::Packet::new(data) else {
        return write!(f, "[|udp], length {length}");
    };
    let length = match usize::from(datagram.length()) {
        0 => length,
        length => length,
    };
    let length = length.saturating_sub(udp::HEADER_LENGTH);
    let ports = [datagram.source_port(), datagram.destination_port()];
    let message = ports.iter().any(|port| matches!(*port, DNS | MULTICAST_DNS));
    match dns::Question::first(datagram.payload()).filter(|_| message) {
        Some(question) => write!(f, "{question} ({length})"),
        None => write!(f, "UDP, length {length}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    fn line(link_type: LinkType, data: &[u8]) -> String {
        let original_length = data.len() as u32;
        // 2021-01-01 13:45:09.
        let timestamp = Instant::from_nanos(1_609_508_709_000_000_042);
        let line = Summary { timestamp, link_type, data, original_length }.to_string();
        line.strip_prefix("13:45:09.000000042 ").expect("the time").to_string()
    }

    fn frame(tags: &[u8], packet: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], tags, packet].concat()
    }

    const ARP: [u8; 28] =
        [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2];

    #[test]
    fn tags_and_labels_precede_the_packet() {
        let tagged = frame(&[0x88, 0xa8, 0, 9, 0x81, 0, 0xe0, 7, 8, 6], &ARP);
        assert_eq!(
            line(LinkType::EN10MB, &tagged),
            "vlan 9, p 0, vlan 7, p 7, ARP, Request who-has 10.0.0.2 tell 10.0.0.1, length 28"
        );
        let packet =
            [0x45, 0, 0, 24, 0, 1, 0, 0, 64, 47, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4];
        let labelled = frame(&[0x88, 0x47, 0, 0, 0xf2, 9, 0, 1, 0x0b, 64], &packet);
        assert_eq!(
            line(LinkType::EN10MB, &labelled),
            "MPLS (label 15, tc 1, ttl 9) (label 16, tc 5, [S], ttl 64) IP 10.0.0.1 > 10.0.0.2: GRE, length 4"
        );
    }

    #[test]
    fn other_frames_show_addresses_and_type() {
        assert_eq!(
            line(LinkType::EN10MB, &frame(&[0x88, 0xcc], &[0; 46])),
            "02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype 0x88cc, length 60"
        );
        assert_eq!(
            line(LinkType::EN10MB, &frame(&[0, 38], &[0x42, 0x42, 3, 0])),
            "02:00:00:00:00:01 > 02:00:00:00:00:02, 802.3, STP, length 18"
        );
        assert_eq!(line(LinkType::USER0, &[1, 2, 3]), "[|USER0 (147)], length 3");
    }

    #[test]
    fn later_fragments_show_their_offset() {
        let fragment =
            [0x45, 0, 0, 21, 0, 1, 0x20, 185, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xff];
        assert_eq!(
            line(LinkType::RAW, &fragment),
            "IP 10.0.0.1 > 10.0.0.2: UDP fragment at 1480, length 1"
        );
        let mut six = [0; 40].to_vec();
        (six[0], six[5], six[6]) = (0x60, 9, 44);
        six.extend([17, 0, 5, 0xc9, 0, 0, 0, 9, 0xff]);
        assert_eq!(line(LinkType::RAW, &six), "IP6 :: > ::: UDP fragment at 1480, length 1");
    }
}
