//! Templates of an exporter, and the encoding of records by them.

use alloc::vec::Vec;
use core::net::IpAddr;

use wirestorm_base::time::Instant;
use wirestorm_wire::packet::protocol;

use crate::element::{self, FieldId};
use crate::header::Version;
use crate::malformed::Malformed;
use crate::record::FlowRecord;
use crate::template::{Template, TemplateField, V5_FIELDS, VARIABLE_LENGTH};

use super::writer::Writer;

/// Longest value that an exporter writes to a field of variable length, in bytes.
const VARIABLE_VALUE_MAX: u64 = 15;

/// A template that an exporter sends, for flows of one IP version.
///
/// Fields that are not in a [`FlowRecord`] get bytes that depend on the flow alone.
#[derive(Clone, Debug)]
pub struct ExportTemplate {
    id: u16,
    is_ipv6: bool,
    fields: Vec<TemplateField>,
    values: Vec<(Value, u16)>,
    record_length_max: usize,
}

/// What a field is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Source,
    Destination,
    SourcePort,
    DestinationPort,
    IcmpTypeCode,
    Protocol,
    TypeOfService,
    Vlan,
    InputInterface,
    OutputInterface,
    TcpFlags,
    Packets,
    Bytes,
    FirstUptime,
    LastUptime,
    FirstMilliseconds,
    LastMilliseconds,
    FirstSeconds,
    LastSeconds,
    SamplingInterval,
    IpVersion,
    Zero,
    Pattern,
    VariablePattern,
}

impl ExportTemplate {
    /// Creates a template for flows over IPv6 or IPv4. [`VARIABLE_LENGTH`] is possible in IPFIX only;
    /// such a field gets 0 to 15 bytes.
    ///
    /// # Errors
    /// If `id` is less than 256, or if records would be empty or longer than 65,535 bytes.
    pub fn new(
        id: u16,
        is_ipv6: bool,
        fields: impl IntoIterator<Item = (FieldId, u16)>,
    ) -> Result<Self, Malformed> {
        let field = |(id, length)| TemplateField { id, length, is_scope: false };
        let fields: Vec<TemplateField> = fields.into_iter().map(field).collect();
        let checked = Template::new(id, fields.clone())?;
        let variable = fields.iter().filter(|field| field.length == VARIABLE_LENGTH).count();
        Ok(Self {
            id,
            is_ipv6,
            values: fields.iter().map(|field| (value(field), field.length)).collect(),
            record_length_max: usize::from(checked.record_length_min())
                + variable * VARIABLE_VALUE_MAX as usize,
            fields,
        })
    }

    /// The template for a version: addresses, ports, protocol, type of service, TCP flags, VLAN,
    /// interfaces, packets, bytes and times; 41 bytes in NetFlow v9 and 58 in IPFIX for IPv4.
    pub fn standard(version: Version, is_ipv6: bool) -> Self {
        let (id, source, destination, address) = match is_ipv6 {
            true => (257, element::SOURCE_IPV6, element::DESTINATION_IPV6, 16),
            false => (256, element::SOURCE_IPV4, element::DESTINATION_IPV4, 4),
        };
        let (first, last, flags, time, count) = match version {
            Version::Ipfix => {
                (element::FLOW_START_MILLISECONDS, element::FLOW_END_MILLISECONDS, 2, 8, 8)
            }
            _ => (element::FIRST_SWITCHED, element::LAST_SWITCHED, 1, 4, 4),
        };
        let fields = [
            (source, address),
            (destination, address),
            (element::SOURCE_PORT, 2),
            (element::DESTINATION_PORT, 2),
            (element::PROTOCOL, 1),
            (element::TYPE_OF_SERVICE, 1),
            (element::TCP_FLAGS, flags),
            (element::VLAN, 2),
            (element::INPUT_INTERFACE, 4),
            (element::OUTPUT_INTERFACE, 4),
            (element::PACKET_DELTA_COUNT, count),
            (element::OCTET_DELTA_COUNT, count),
            (first, time),
            (last, time),
        ];
        Self::built(id, is_ipv6, &fields)
    }

    /// The fixed fields of NetFlow v5.
    pub(super) fn v5() -> Self {
        Self::built(256, false, &V5_FIELDS)
    }

    fn built(id: u16, is_ipv6: bool, fields: &[(FieldId, u16)]) -> Self {
        // The fields are constant, and tests encode them.
        Self::new(id, is_ipv6, fields.iter().copied()).unwrap_or_else(|_| unreachable!())
    }

    /// Returns the identifier.
    pub const fn id(&self) -> u16 {
        self.id
    }

    /// Returns whether the template is for flows over IPv6.
    pub const fn is_ipv6(&self) -> bool {
        self.is_ipv6
    }

    /// Returns the fields.
    pub fn fields(&self) -> &[TemplateField] {
        &self.fields
    }

    /// Returns the length of the longest record in bytes.
    pub const fn record_length_max(&self) -> usize {
        self.record_length_max
    }

    /// Writes a record; the caller has checked the room. `boot` is the exporter's.
    #[inline]
    pub(super) fn encode(&self, flow: &FlowRecord, boot: Instant, writer: &mut Writer<'_>) {
        for &(value, length) in &self.values {
            let number = match value {
                Value::Source => {
                    address(flow.key.source(), writer);
                    continue;
                }
                Value::Destination => {
                    address(flow.key.destination(), writer);
                    continue;
                }
                Value::SourcePort if is_icmp(flow) => 0,
                Value::SourcePort => flow.key.source_port().into(),
                Value::DestinationPort if is_icmp(flow) => icmp_type_code(flow),
                Value::DestinationPort => flow.key.destination_port().into(),
                Value::IcmpTypeCode if is_icmp(flow) => icmp_type_code(flow),
                Value::Protocol => flow.key.protocol().into(),
                Value::TypeOfService => flow.type_of_service.into(),
                Value::Vlan => flow.key.vlan().into(),
                Value::InputInterface => flow.input_interface.into(),
                Value::OutputInterface => flow.output_interface.into(),
                Value::TcpFlags => flow.tcp_flags.into(),
                Value::Packets => flow.packets,
                Value::Bytes => flow.bytes,
                Value::FirstUptime => uptime_ms(flow.first, boot).into(),
                Value::LastUptime => uptime_ms(flow.last, boot).into(),
                Value::FirstMilliseconds => nanoseconds(flow.first) / 1_000_000,
                Value::LastMilliseconds => nanoseconds(flow.last) / 1_000_000,
                Value::FirstSeconds => nanoseconds(flow.first) / 1_000_000_000,
                Value::LastSeconds => nanoseconds(flow.last) / 1_000_000_000,
                Value::SamplingInterval => flow.sampling_interval.into(),
                Value::IpVersion => flow.key.version().into(),
                Value::IcmpTypeCode | Value::Zero => 0,
                Value::Pattern => {
                    pattern(flow, length.into(), writer);
                    continue;
                }
                Value::VariablePattern => {
                    let length = flow.key.hash64(1) % (VARIABLE_VALUE_MAX + 1);
                    writer.number(length, 1);
                    pattern(flow, length as usize, writer);
                    continue;
                }
            };
            if length > 8 {
                writer.zeros(usize::from(length) - 8);
            }
            writer.number(number, length.into());
        }
    }
}

fn value(field: &TemplateField) -> Value {
    match field.id {
        _ if field.length == VARIABLE_LENGTH => Value::VariablePattern,
        element::SOURCE_IPV4 if field.length == 4 => Value::Source,
        element::SOURCE_IPV6 if field.length == 16 => Value::Source,
        element::DESTINATION_IPV4 if field.length == 4 => Value::Destination,
        element::DESTINATION_IPV6 if field.length == 16 => Value::Destination,
        element::SOURCE_PORT => Value::SourcePort,
        element::DESTINATION_PORT => Value::DestinationPort,
        element::ICMP_TYPE_CODE_IPV4 | element::ICMP_TYPE_CODE_IPV6 => Value::IcmpTypeCode,
        element::PROTOCOL => Value::Protocol,
        element::TYPE_OF_SERVICE => Value::TypeOfService,
        element::VLAN | element::DOT1Q_VLAN => Value::Vlan,
        element::INPUT_INTERFACE => Value::InputInterface,
        element::OUTPUT_INTERFACE => Value::OutputInterface,
        element::TCP_FLAGS => Value::TcpFlags,
        element::PACKET_DELTA_COUNT | element::PACKET_TOTAL_COUNT => Value::Packets,
        element::OCTET_DELTA_COUNT | element::OCTET_TOTAL_COUNT => Value::Bytes,
        element::FIRST_SWITCHED => Value::FirstUptime,
        element::LAST_SWITCHED => Value::LastUptime,
        element::FLOW_START_MILLISECONDS => Value::FirstMilliseconds,
        element::FLOW_END_MILLISECONDS => Value::LastMilliseconds,
        element::FLOW_START_SECONDS => Value::FirstSeconds,
        element::FLOW_END_SECONDS => Value::LastSeconds,
        element::SAMPLING_INTERVAL => Value::SamplingInterval,
        element::IP_VERSION => Value::IpVersion,
        element::PADDING => Value::Zero,
        _ => Value::Pattern,
    }
}

#[inline(always)]
fn address(address: IpAddr, writer: &mut Writer<'_>) {
    match address {
        IpAddr::V4(address) => writer.number(address.to_bits().into(), 4),
        IpAddr::V6(address) => {
            writer.number((address.to_bits() >> 64) as u64, 8);
            writer.number(address.to_bits() as u64, 8);
        }
    }
}

const fn is_icmp(flow: &FlowRecord) -> bool {
    matches!(flow.key.protocol(), protocol::ICMP | protocol::ICMPV6)
}

/// Returns the ICMP type and code as one number.
fn icmp_type_code(flow: &FlowRecord) -> u64 {
    u64::from(flow.key.source_port()) << 8 | u64::from(flow.key.destination_port())
}

fn nanoseconds(time: Option<Instant>) -> u64 {
    time.unwrap_or_default().as_nanos()
}

/// Returns the exporter's uptime at a time, which wraps after 49 days.
pub(super) fn uptime_ms(time: Option<Instant>, boot: Instant) -> u32 {
    (time.unwrap_or(boot).saturating_since(boot).as_nanos() / 1_000_000) as u32
}

/// Writes `length` bytes that depend on the flow alone.
fn pattern(flow: &FlowRecord, length: usize, writer: &mut Writer<'_>) {
    let word = flow.key.hash64(0);
    let mut left = length;
    while left > 0 {
        writer.number(word, left.min(8));
        left -= left.min(8);
    }
}
