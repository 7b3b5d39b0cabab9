//! Samples of sFlow version 5 (sflow.org, "sFlow Version 5", section 5.3).

use wirestorm_wire::capture::LinkType;
use wirestorm_wire::dissect::dissect;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::{ipv4, ipv6, protocol, tcp};

use wirestorm_base::bytes::Reader;

use crate::reader::opaque;
use crate::record::{Counting, FieldSet, FlowRecord};

/// Formats of samples and of their records, with enterprise 0.
pub(crate) mod format {
    pub(crate) const FLOW_SAMPLE: u32 = 1;
    pub(crate) const COUNTER_SAMPLE: u32 = 2;
    pub(crate) const FLOW_SAMPLE_EXPANDED: u32 = 3;
    pub(crate) const COUNTER_SAMPLE_EXPANDED: u32 = 4;

    pub(crate) const SAMPLED_HEADER: u32 = 1;
    pub(crate) const SAMPLED_IPV4: u32 = 3;
    pub(crate) const SAMPLED_IPV6: u32 = 4;
    pub(crate) const EXTENDED_SWITCH: u32 = 1001;
}

/// Protocols of sampled headers.
pub(crate) mod header_protocol {
    pub(crate) const ETHERNET: u32 = 1;
    pub(crate) const IPV4: u32 = 11;
    pub(crate) const IPV6: u32 = 12;
}

/// Bytes of a sample's format and length.
pub(crate) const SAMPLE_HEADER_LENGTH: usize = 8;

/// A flow sample.
#[derive(Debug)]
pub(crate) struct FlowSample<'a> {
    /// Type and index of the data source, such as an interface.
    pub(crate) data_source: (u32, u32),
    /// Packets that could not be sampled, since the agent's start.
    pub(crate) drops: u32,
    /// The sampled packet, unless its content is of another kind or not IP.
    pub(crate) flow: Option<FlowRecord>,
    /// First bytes of the sampled packet; empty if there are none.
    pub(crate) header: &'a [u8],
}

impl<'a> FlowSample<'a> {
    /// Parses the body of a flow sample, or an expanded one; `None` if it is truncated.
    pub(crate) fn parse(body: &'a [u8], is_expanded: bool) -> Option<Self> {
        let mut reader = Reader::new(body);
        let _sequence = reader.u32()?;
        let data_source = match is_expanded {
            true => (reader.u32()?, reader.u32()?),
            false => split(reader.u32()?, 24),
        };
        let sampling_rate = reader.u32()?;
        let _pool = reader.u32()?;
        let drops = reader.u32()?;
        let mut interface = || match is_expanded {
            true => Some((reader.u32()?, reader.u32()?)),
            false => Some(split(reader.u32()?, 30)),
        };
        // Formats other than 0 are discarded packets and several interfaces.
        let index = |(format, index)| if format == 0 { index } else { 0 };
        let input_interface = index(interface()?);
        let output_interface = index(interface()?);

        let records = reader.u32()?;
        let (mut content, mut vlan, mut header) = (None, None, &[][..]);
        for _ in 0..records {
            let format = reader.u32()?;
            let mut record = Reader::new(opaque(&mut reader)?);
            match format {
                format::SAMPLED_HEADER => {
                    let protocol = record.u32()?;
                    let frame_length = record.u32()?;
                    let _stripped = record.u32()?;
                    header = opaque(&mut record)?;
                    content = sampled_header(protocol, frame_length, header).or(content);
                }
                format::SAMPLED_IPV4 => content = content.or(sampled_ip(record, false)?),
                format::SAMPLED_IPV6 => content = content.or(sampled_ip(record, true)?),
                format::EXTENDED_SWITCH => vlan = Some(record.u32()? as u16),
                _ => {}
            }
        }
        let flow = content.map(|mut flow| {
            if let Some(vlan) = vlan.filter(|_| flow.key.vlan() == 0) {
                flow.key = flow.key.with_vlan(vlan & 0x0fff);
                flow.present |= FieldSet::VLAN;
            }
            FlowRecord {
                input_interface,
                output_interface,
                sampling_interval: sampling_rate,
                present: flow.present | FieldSet::INPUT_INTERFACE | FieldSet::OUTPUT_INTERFACE,
                ..flow
            }
        });
        Some(Self { data_source, drops, flow, header })
    }
}

/// Splits a number of 32 bits above its lowest `bits`.
const fn split(number: u32, bits: u32) -> (u32, u32) {
    (number >> bits, number & ((1 << bits) - 1))
}

/// Returns the flow of a sampled packet by its first bytes.
fn sampled_header(protocol: u32, frame_length: u32, header: &[u8]) -> Option<FlowRecord> {
    let link = match protocol {
        header_protocol::ETHERNET => LinkType::EN10MB,
        header_protocol::IPV4 | header_protocol::IPV6 => LinkType::RAW,
        _ => return None,
    };
    let dissection = dissect(link, header);
    let key = *dissection.flow()?;
    let network = header.get(usize::from(dissection.network_offset)..)?;
    let type_of_service = match key.version() {
        4 => ipv4::Packet::new(network).ok()?.type_of_service(),
        _ => ipv6::Packet::new(network).ok()?.traffic_class(),
    };
    let transport = header.get(usize::from(dissection.transport_offset)..)?;
    let flags = (key.protocol() == protocol::TCP)
        .then(|| tcp::Packet::new(transport).ok().map(|segment| segment.flags().0))
        .flatten();
    Some(packet(key, frame_length, type_of_service, flags))
}

/// Returns the flow of a packet whose agent reports the fields instead of the bytes; `None` if it is
/// truncated.
fn sampled_ip(mut record: Reader<'_>, is_ipv6: bool) -> Option<Option<FlowRecord>> {
    let length = record.u32()?;
    let protocol = record.u32()? as u8;
    let key = match is_ipv6 {
        true => FlowKey::ipv6(record.array()?, record.array()?, protocol),
        false => FlowKey::ipv4(record.array()?, record.array()?, protocol),
    };
    let key = key.with_ports(record.u32()? as u16, record.u32()? as u16);
    let flags = record.u32()? as u8;
    let type_of_service = record.u32()? as u8;
    let flags = (protocol == protocol::TCP).then_some(flags);
    Some(Some(packet(key, length, type_of_service, flags)))
}

fn packet(key: FlowKey, length: u32, type_of_service: u8, flags: Option<u8>) -> FlowRecord {
    FlowRecord {
        key,
        packets: 1,
        bytes: length.into(),
        first: None,
        last: None,
        input_interface: 0,
        output_interface: 0,
        sampling_interval: 0,
        tcp_flags: flags.unwrap_or_default().into(),
        type_of_service,
        is_reverse: false,
        counting: Counting::Delta,
        present: FieldSet::ADDRESSES
            | FieldSet::PORTS
            | FieldSet::PROTOCOL
            | FieldSet::TYPE_OF_SERVICE
            | FieldSet::VLAN.when(key.vlan() != 0)
            | FieldSet::PACKETS
            | FieldSet::BYTES
            | FieldSet::TCP_FLAGS.when(flags.is_some()),
    }
}
