//! Flow samples of sFlow version 5.

use core::net::IpAddr;

use wirestorm_wire::packet::{ethernet, ethertype, ipv4, ipv6, protocol, tcp, udp, vlan};

use crate::record::FlowRecord;
use crate::sflow::{format, header_protocol};

use super::writer::Writer;

/// Longest header of a sampled packet: Ethernet, VLAN tag, IPv6, TCP; padded to 4 bytes.
const HEADER_LENGTH_MAX: usize = 80;
/// Bytes of a sample before the header of the packet.
const FIXED_LENGTH: usize = 8 + 32 + 8 + 16;
/// Longest sample in bytes.
pub(super) const SAMPLE_LENGTH_MAX: usize = FIXED_LENGTH + HEADER_LENGTH_MAX;
/// Bytes of a frame beside the IP packet: Ethernet header and FCS.
const FRAME_OVERHEAD: usize = ethernet::HEADER_LENGTH + 4;

/// Writes a sample of one packet of a flow, whose length is the mean; the caller has checked the
/// room. One of `interval` packets is sampled, and this is sample number `number`.
pub(super) fn encode_sample(
    flow: &FlowRecord,
    number: u32,
    interval: u32,
    writer: &mut Writer<'_>,
) {
    let has_tag = flow.key.vlan() != 0;
    let transport = match flow.key.protocol() {
        protocol::TCP => tcp::HEADER_LENGTH_MIN,
        _ => udp::HEADER_LENGTH,
    };
    let network = match flow.key.version() {
        4 => ipv4::HEADER_LENGTH_MIN,
        _ => ipv6::HEADER_LENGTH,
    };
    let link = ethernet::HEADER_LENGTH + if has_tag { vlan::TAG_LENGTH } else { 0 };
    let header_length = link + network + transport;
    let padded_length = header_length.next_multiple_of(4);
    let mean = flow.bytes.checked_div(flow.packets).unwrap_or_default().min(65_535) as usize;
    let packet_length = mean.max(network + transport);
    let frame_length = packet_length + FRAME_OVERHEAD + link - ethernet::HEADER_LENGTH;

    let record_length = 16 + padded_length;
    writer.u32(format::FLOW_SAMPLE);
    writer.u32((32 + 8 + record_length) as u32);
    writer.u32(number);
    writer.u32(flow.input_interface & 0x00ff_ffff);
    writer.u32(interval);
    writer.u32(number.wrapping_mul(interval));
    writer.u32(0);
    writer.u32(flow.input_interface & 0x3fff_ffff);
    writer.u32(flow.output_interface & 0x3fff_ffff);
    writer.u32(1);
    writer.u32(format::SAMPLED_HEADER);
    writer.u32(record_length as u32);
    writer.u32(header_protocol::ETHERNET);
    writer.u32(frame_length as u32);
    // The FCS.
    writer.u32(4);
    writer.u32(header_length as u32);
    let start = writer.length();
    headers(flow, packet_length, writer);
    writer.zeros(padded_length - (writer.length() - start));
}

fn headers(flow: &FlowRecord, packet_length: usize, writer: &mut Writer<'_>) {
    let key = &flow.key;
    let is_ipv4 = key.version() == 4;
    writer.bytes(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    if key.vlan() != 0 {
        writer.u16(ethertype::VLAN);
        writer.u16(key.vlan());
    }
    writer.u16(if is_ipv4 { ethertype::IPV4 } else { ethertype::IPV6 });
    match (key.source(), key.destination()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = [0; ipv4::HEADER_LENGTH_MIN];
            header[0] = 0x45;
            if let Ok(mut packet) = ipv4::Packet::new(&mut header[..]) {
                packet.set_type_of_service(flow.type_of_service);
                packet.set_total_length(packet_length as u16);
                packet.set_time_to_live(64);
                packet.set_protocol(key.protocol());
                packet.set_source(source);
                packet.set_destination(destination);
                packet.fill_checksum();
            }
            writer.bytes(&header);
        }
        (source, destination) => {
            writer.u32(0x6000_0000 | u32::from(flow.type_of_service) << 20);
            writer.u16((packet_length - ipv6::HEADER_LENGTH) as u16);
            writer.bytes(&[key.protocol(), 64]);
            for address in [source, destination] {
                if let IpAddr::V6(address) = address {
                    writer.bytes(&address.octets());
                }
            }
        }
    }
    writer.u16(key.source_port());
    writer.u16(key.destination_port());
    if key.protocol() == protocol::TCP {
        // Sequence and acknowledgement number, header length, flags, window, checksum, urgent
        // pointer.
        writer.bytes(&[0, 0, 0, 1, 0, 0, 0, 1, 0x50, flow.tcp_flags as u8, 255, 255, 0, 0, 0, 0]);
    } else {
        let network = if is_ipv4 { ipv4::HEADER_LENGTH_MIN } else { ipv6::HEADER_LENGTH };
        writer.u16((packet_length - network) as u16);
        writer.u16(0);
    }
}
