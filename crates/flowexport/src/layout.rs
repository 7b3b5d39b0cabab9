//! Where a template has the well-known fields, and how they become a flow record.
//!
//! A layout is computed once per template: one step for each well-known field. A record is decoded
//! by one loop over the steps, which loads each field as a number into its slot. All branches of the
//! loop depend on the template alone, so that they are predicted.

use alloc::vec::Vec;

use wirestorm_base::time::{Duration, Instant, NANOSECONDS_PER_SECOND};
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::protocol;

use crate::element::{self, FieldId, REVERSE_ENTERPRISE};
use crate::header::Times;
use crate::reader::unsigned;
use crate::record::{Counting, FieldSet, FlowRecord};
use crate::template::{Position, TemplateField};

/// A number of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Slot {
    SourceIpv4,
    DestinationIpv4,
    SourceIpv6High,
    SourceIpv6Low,
    DestinationIpv6High,
    DestinationIpv6Low,
    IpVersion,
    SourcePort,
    DestinationPort,
    IcmpTypeCode,
    IcmpType,
    IcmpCode,
    Protocol,
    TypeOfService,
    Dscp,
    Vlan,
    InputInterface,
    OutputInterface,
    TcpFlags,
    Packets,
    Bytes,
    First,
    Last,
    Duration,
    ReverseTypeOfService,
    ReverseTcpFlags,
    ReversePackets,
    ReverseBytes,
    ReverseFirst,
    ReverseLast,
    SystemInit,
    SamplingInterval,
    PacketInterval,
    PacketSpace,
    Sampler,
}

const SLOTS: usize = Slot::Sampler as usize + 1;

impl Slot {
    const fn bit(self) -> u64 {
        1 << self as u8
    }
}

/// Unit and epoch of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeUnit {
    /// Milliseconds since the boot.
    Uptime,
    Seconds,
    Milliseconds,
    /// Seconds since 1900 and a fraction, 32 bits each.
    Ntp,
    /// Microseconds before the export time.
    MicrosecondsBefore,
}

/// Places for numbers: a power of two, so that any index can be reduced to one without a branch.
const PLACES: usize = SLOTS.next_power_of_two();

/// Numbers of a record; a slot that the template does not have is zero.
#[derive(Clone, Debug)]
pub(crate) struct Values([u64; PLACES]);

impl Values {
    pub(crate) const ZERO: Self = Self([0; PLACES]);

    #[inline(always)]
    const fn get(&self, slot: Slot) -> u64 {
        self.0[slot as usize]
    }

    #[inline(always)]
    fn set(&mut self, slot: u8, value: u64) {
        self.0[usize::from(slot) % PLACES] = value;
    }
}

/// The load of one number.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Offset in a record whose fields have fixed lengths.
    offset: u16,
    /// Number of the field, for records with fields of variable length.
    field: u16,
    /// Offset within the field: 8 for the lower half of an IPv6 address.
    within: u8,
    /// 1 to 8 bytes.
    length: u8,
    /// Bits of a word behind the number.
    shift: u8,
    slot: u8,
}

impl Step {
    /// Loads the number at `offset`; 0 beyond the end.
    #[inline(always)]
    fn number(&self, bytes: &[u8], offset: usize) -> u64 {
        let rest = bytes.get(offset..).unwrap_or_default();
        match rest.first_chunk() {
            Some(&word) => u64::from_be_bytes(word) >> (self.shift & 63),
            None => unsigned(rest.get(..usize::from(self.length)).unwrap_or_default()),
        }
    }
}

/// What an element means.
struct Meaning {
    slot: Slot,
    /// If a template has several elements for a slot, the lowest rank is used.
    rank: u8,
    unit: TimeUnit,
    counting: Counting,
}

/// The steps of a template.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    steps: Vec<Step>,
    /// Bits of the slots that are loaded.
    slots: u64,
    present: FieldSet,
    counting: Counting,
    first: TimeUnit,
    last: TimeUnit,
    reverse_first: TimeUnit,
    reverse_last: TimeUnit,
    duration_unit: Duration,
}

/// What the exporter reported outside the record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamFacts {
    /// Boot of the exporter, from options data.
    pub(crate) system_init: Option<Instant>,
    /// Sampling interval of all records without an own one; 0 if unknown.
    pub(crate) sampling_interval: u32,
}

/// Sampling that a record or options data reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportedSampling {
    pub(crate) sampler: Option<u64>,
    /// 0 if not reported.
    pub(crate) interval: u32,
}

impl Layout {
    /// Computes the steps for fields at `offsets`, which count for records of fixed length only.
    pub(crate) fn new(fields: &[TemplateField], offsets: &[u16]) -> Self {
        let mut layout = Self {
            steps: Vec::new(),
            slots: 0,
            present: FieldSet::EMPTY,
            counting: Counting::Delta,
            first: TimeUnit::Uptime,
            last: TimeUnit::Uptime,
            reverse_first: TimeUnit::Uptime,
            reverse_last: TimeUnit::Uptime,
            duration_unit: Duration::from_millis(1),
        };
        let mut ranks = [u8::MAX; SLOTS];
        for ((number, field), &offset) in fields.iter().enumerate().zip(offsets) {
            let Some(meaning) = meaning(field.id, field.length) else { continue };
            let Some(rank) = ranks.get_mut(meaning.slot as usize) else { continue };
            if meaning.rank < *rank {
                *rank = meaning.rank;
                layout.add(&meaning, field, number as u16, offset);
            }
        }
        layout.present = layout.present();
        layout
    }

    fn add(&mut self, meaning: &Meaning, field: &TemplateField, number: u16, offset: u16) {
        let Meaning { slot, unit, counting, .. } = *meaning;
        let length = field.length.min(8) as u8;
        let shift = 64 - 8 * length;
        self.steps.retain(|step| step.slot != slot as u8);
        let step = Step { offset, field: number, within: 0, length, shift, slot: slot as u8 };
        self.steps.push(step);
        self.slots |= slot.bit();
        let is_total = counting == Counting::Total;
        match slot {
            Slot::SourceIpv6High | Slot::DestinationIpv6High => {
                let low = Step { offset: offset + 8, within: 8, slot: slot as u8 + 1, ..step };
                self.steps.retain(|step| step.slot != low.slot);
                self.steps.push(low);
            }
            Slot::Packets | Slot::Bytes if is_total => self.counting = Counting::Total,
            Slot::Packets | Slot::Bytes => self.counting = Counting::Delta,
            Slot::First => self.first = unit,
            Slot::Last => self.last = unit,
            Slot::ReverseFirst => self.reverse_first = unit,
            Slot::ReverseLast => self.reverse_last = unit,
            Slot::Duration if field.id == element::FLOW_DURATION_MICROSECONDS => {
                self.duration_unit = Duration::from_micros(1);
            }
            Slot::Duration => self.duration_unit = Duration::from_millis(1),
            _ => {}
        }
    }

    /// Returns the fields of records; the times are added if they can be derived.
    fn present(&self) -> FieldSet {
        let ipv4 = self.has(Slot::SourceIpv4) && self.has(Slot::DestinationIpv4);
        let ipv6 = self.has(Slot::SourceIpv6High) && self.has(Slot::DestinationIpv6High);
        let ports = self.has(Slot::SourcePort) && self.has(Slot::DestinationPort);
        let icmp = self.has(Slot::IcmpTypeCode) || self.has(Slot::IcmpType);
        let service = self.has(Slot::TypeOfService) || self.has(Slot::Dscp);
        FieldSet::ADDRESSES.when(ipv4 || ipv6)
            | FieldSet::PORTS.when(ports || icmp)
            | FieldSet::PROTOCOL.when(self.has(Slot::Protocol))
            | FieldSet::TYPE_OF_SERVICE.when(service)
            | FieldSet::VLAN.when(self.has(Slot::Vlan))
            | FieldSet::INPUT_INTERFACE.when(self.has(Slot::InputInterface))
            | FieldSet::OUTPUT_INTERFACE.when(self.has(Slot::OutputInterface))
            | FieldSet::PACKETS.when(self.has(Slot::Packets))
            | FieldSet::BYTES.when(self.has(Slot::Bytes))
            | FieldSet::TCP_FLAGS.when(self.has(Slot::TcpFlags))
    }

    #[inline(always)]
    const fn has(&self, slot: Slot) -> bool {
        self.slots & slot.bit() != 0
    }

    /// Loads the numbers of the record that `bytes` begins with. More bytes behind the record make
    /// it faster.
    #[inline]
    pub(crate) fn load(&self, bytes: &[u8], values: &mut Values) {
        for step in &self.steps {
            values.set(step.slot, step.number(bytes, usize::from(step.offset)));
        }
    }

    /// Loads the numbers of a record with fields of variable length.
    #[inline]
    pub(crate) fn load_at(&self, bytes: &[u8], positions: &[Position], values: &mut Values) {
        for step in &self.steps {
            let position = positions.get(usize::from(step.field)).copied().unwrap_or_default();
            let offset = usize::from(position.offset) + usize::from(step.within);
            values.set(step.slot, step.number(bytes, offset));
        }
    }

    /// Returns whether records have a reverse direction (RFC 5103).
    #[inline]
    pub(crate) const fn is_biflow(&self) -> bool {
        self.has(Slot::ReversePackets) || self.has(Slot::ReverseBytes)
    }

    /// Returns the flow of loaded numbers.
    #[inline(always)]
    pub(crate) fn flow(&self, values: &Values, times: &Times, facts: &StreamFacts) -> FlowRecord {
        let init = self.system_init(values).or(facts.system_init);
        let mut first = self.time(Slot::First, self.first, values, times, init);
        let mut last = self.time(Slot::Last, self.last, values, times, init);
        if self.has(Slot::Duration) {
            let unit = self.duration_unit.as_nanos();
            let duration = Duration::from_nanos(values.get(Slot::Duration).saturating_mul(unit));
            last = last.or_else(|| first.map(|first| first.saturating_add(duration)));
            first = first.or_else(|| last.map(|last| last.saturating_sub(duration)));
        }
        let reported = match self.reported_sampling(values).interval {
            0 => facts.sampling_interval,
            interval => interval,
        };
        FlowRecord {
            key: self.key(values),
            packets: values.get(Slot::Packets),
            bytes: values.get(Slot::Bytes),
            first,
            last,
            input_interface: values.get(Slot::InputInterface) as u32,
            output_interface: values.get(Slot::OutputInterface) as u32,
            sampling_interval: reported,
            tcp_flags: values.get(Slot::TcpFlags) as u16,
            type_of_service: match self.has(Slot::TypeOfService) {
                true => values.get(Slot::TypeOfService) as u8,
                false => (values.get(Slot::Dscp) as u8) << 2,
            },
            is_reverse: false,
            counting: self.counting,
            present: self.present
                | FieldSet::FIRST.when(first.is_some())
                | FieldSet::LAST.when(last.is_some()),
        }
    }

    /// Returns the reverse direction of `forward`; `None` if it has no packets and bytes.
    pub(crate) fn reverse(
        &self,
        forward: &FlowRecord,
        values: &Values,
        times: &Times,
        facts: &StreamFacts,
    ) -> Option<FlowRecord> {
        let (packets, bytes) = (values.get(Slot::ReversePackets), values.get(Slot::ReverseBytes));
        if packets == 0 && bytes == 0 {
            return None;
        }
        let init = self.system_init(values).or(facts.system_init);
        let first = self.time(Slot::ReverseFirst, self.reverse_first, values, times, init);
        let last = self.time(Slot::ReverseLast, self.reverse_last, values, times, init);
        let (first, last) = (first.or(forward.first), last.or(forward.last));
        let changed = FieldSet::PACKETS
            | FieldSet::BYTES
            | FieldSet::TCP_FLAGS
            | FieldSet::TYPE_OF_SERVICE
            | FieldSet::INPUT_INTERFACE
            | FieldSet::OUTPUT_INTERFACE;
        Some(FlowRecord {
            key: forward.key.reversed(),
            packets,
            bytes,
            first,
            last,
            input_interface: forward.output_interface,
            output_interface: forward.input_interface,
            tcp_flags: values.get(Slot::ReverseTcpFlags) as u16,
            type_of_service: values.get(Slot::ReverseTypeOfService) as u8,
            is_reverse: true,
            present: forward.present.without(changed)
                | FieldSet::PACKETS.when(self.has(Slot::ReversePackets))
                | FieldSet::BYTES.when(self.has(Slot::ReverseBytes))
                | FieldSet::TCP_FLAGS.when(self.has(Slot::ReverseTcpFlags))
                | FieldSet::TYPE_OF_SERVICE.when(self.has(Slot::ReverseTypeOfService))
                | FieldSet::INPUT_INTERFACE.when(self.has(Slot::OutputInterface))
                | FieldSet::OUTPUT_INTERFACE.when(self.has(Slot::InputInterface)),
            ..*forward
        })
    }

    /// Returns the sampling that the numbers report.
    #[inline(always)]
    pub(crate) fn reported_sampling(&self, values: &Values) -> ReportedSampling {
        let interval = match values.get(Slot::PacketInterval) {
            0 => values.get(Slot::SamplingInterval),
            // RFC 7012: `interval` packets are sampled, then `space` packets are not.
            interval => interval.saturating_add(values.get(Slot::PacketSpace)) / interval,
        };
        ReportedSampling {
            sampler: self.has(Slot::Sampler).then(|| values.get(Slot::Sampler)),
            interval: interval.min(u32::MAX.into()) as u32,
        }
    }

    /// Returns the boot of the exporter that the numbers report.
    #[inline(always)]
    pub(crate) fn system_init(&self, values: &Values) -> Option<Instant> {
        let milliseconds = values.get(Slot::SystemInit);
        self.has(Slot::SystemInit)
            .then(|| Instant::from_nanos(milliseconds.saturating_mul(1_000_000)))
    }

    #[inline(always)]
    fn key(&self, values: &Values) -> FlowKey {
        let protocol = values.get(Slot::Protocol) as u8;
        let key = if self.is_ipv6(values) {
            let bytes = |high, low| {
                let number = u128::from(values.get(high)) << 64 | u128::from(values.get(low));
                number.to_be_bytes()
            };
            let source = bytes(Slot::SourceIpv6High, Slot::SourceIpv6Low);
            let destination = bytes(Slot::DestinationIpv6High, Slot::DestinationIpv6Low);
            FlowKey::ipv6(source, destination, protocol)
        } else {
            let bytes = |slot| (values.get(slot) as u32).to_be_bytes();
            FlowKey::ipv4(bytes(Slot::SourceIpv4), bytes(Slot::DestinationIpv4), protocol)
        };
        let (source, destination) = self.ports(protocol, values);
        // The upper 4 bits of a tag are priority and drop eligibility.
        key.with_ports(source, destination).with_vlan(values.get(Slot::Vlan) as u16 & 0x0fff)
    }

    /// Returns whether the flow is over IPv6. A template with both families fills in one of them.
    #[inline(always)]
    fn is_ipv6(&self, values: &Values) -> bool {
        if !self.has(Slot::SourceIpv6High) && !self.has(Slot::DestinationIpv6High) {
            return false;
        }
        if !self.has(Slot::SourceIpv4) && !self.has(Slot::DestinationIpv4) {
            return true;
        }
        match values.get(Slot::IpVersion) {
            4 => false,
            6 => true,
            _ => values.get(Slot::SourceIpv4) | values.get(Slot::DestinationIpv4) == 0,
        }
    }

    #[inline(always)]
    fn ports(&self, protocol: u8, values: &Values) -> (u16, u16) {
        let source = values.get(Slot::SourcePort) as u16;
        let destination = values.get(Slot::DestinationPort) as u16;
        match protocol {
            protocol::ICMP | protocol::ICMPV6 => {
                let (kind, code) = (values.get(Slot::IcmpType), values.get(Slot::IcmpCode));
                if self.has(Slot::IcmpType) {
                    return (kind as u16, code as u16);
                }
                // NetFlow v5 has type and code in the destination port, and so have many exporters
                // of v9 and IPFIX.
                let both = match values.get(Slot::IcmpTypeCode) as u16 {
                    0 => destination,
                    both => both,
                };
                (both >> 8, both & 0xff)
            }
            _ => (source, destination),
        }
    }

    #[inline(always)]
    fn time(
        &self,
        slot: Slot,
        unit: TimeUnit,
        values: &Values,
        times: &Times,
        init: Option<Instant>,
    ) -> Option<Instant> {
        if !self.has(slot) {
            return None;
        }
        let value = values.get(slot);
        match unit {
            TimeUnit::Uptime => match (times.uptime_ms, times.export) {
                (Some(uptime_ms), Some(export)) => {
                    // The uptime wraps after 49 days, also between a packet and its export.
                    let age_ms = uptime_ms.wrapping_sub(value as u32) as i32;
                    let span = Duration::from_millis(age_ms.unsigned_abs().into());
                    Some(match age_ms < 0 {
                        true => export.saturating_add(span),
                        false => export.saturating_sub(span),
                    })
                }
                _ => init.map(|init| init.saturating_add(Duration::from_millis(value))),
            },
            TimeUnit::Seconds => {
                Some(Instant::from_nanos(value.saturating_mul(NANOSECONDS_PER_SECOND)))
            }
            TimeUnit::Milliseconds => Some(Instant::from_nanos(value.saturating_mul(1_000_000))),
            TimeUnit::Ntp => Some(ntp(value)),
            TimeUnit::MicrosecondsBefore => {
                times.export.map(|export| export.saturating_sub(Duration::from_micros(value)))
            }
        }
    }
}

/// Converts the NTP format (RFC 7011 section 6.1.9): seconds since 1900 and a binary fraction.
fn ntp(value: u64) -> Instant {
    /// Seconds from 1900 to 1970.
    const OFFSET: u64 = 2_208_988_800;
    let seconds = value >> 32;
    // The seconds wrap in 2036; flows of an earlier era than 1970 do not exist.
    let seconds = if seconds < OFFSET { seconds + (1 << 32) } else { seconds } - OFFSET;
    let fraction = ((value & 0xffff_ffff) * NANOSECONDS_PER_SECOND) >> 32;
    Instant::from_nanos(seconds * NANOSECONDS_PER_SECOND + fraction)
}

/// Returns the meaning of an element with a field of `length` bytes; `None` for elements that are
/// not well-known and for lengths that they cannot have.
fn meaning(id: FieldId, length: u16) -> Option<Meaning> {
    let is_reverse = id.enterprise == REVERSE_ENTERPRISE;
    if id.enterprise != 0 && !is_reverse {
        return None;
    }
    let slot = |slot| Meaning { slot, rank: 0, unit: TimeUnit::Uptime, counting: Counting::Delta };
    let ranked = |name, rank| Meaning { rank, ..slot(name) };
    let total = |name| Meaning { counting: Counting::Total, ..ranked(name, 1) };
    let time = |name, rank, unit| Meaning { unit, ..ranked(name, rank) };
    let (first, last) = match is_reverse {
        true => (Slot::ReverseFirst, Slot::ReverseLast),
        false => (Slot::First, Slot::Last),
    };
    let reversible = match FieldId::iana(id.number) {
        element::FLOW_START_NANOSECONDS => Some(time(first, 0, TimeUnit::Ntp)),
        element::FLOW_END_NANOSECONDS => Some(time(last, 0, TimeUnit::Ntp)),
        element::FLOW_START_MICROSECONDS => Some(time(first, 1, TimeUnit::Ntp)),
        element::FLOW_END_MICROSECONDS => Some(time(last, 1, TimeUnit::Ntp)),
        element::FLOW_START_DELTA_MICROSECONDS => {
            Some(time(first, 2, TimeUnit::MicrosecondsBefore))
        }
        element::FLOW_END_DELTA_MICROSECONDS => Some(time(last, 2, TimeUnit::MicrosecondsBefore)),
        element::FLOW_START_MILLISECONDS => Some(time(first, 3, TimeUnit::Milliseconds)),
        element::FLOW_END_MILLISECONDS => Some(time(last, 3, TimeUnit::Milliseconds)),
        element::FIRST_SWITCHED => Some(time(first, 4, TimeUnit::Uptime)),
        element::LAST_SWITCHED => Some(time(last, 4, TimeUnit::Uptime)),
        element::FLOW_START_SECONDS => Some(time(first, 5, TimeUnit::Seconds)),
        element::FLOW_END_SECONDS => Some(time(last, 5, TimeUnit::Seconds)),
        _ => None,
    };
    let meaning = match (is_reverse, FieldId::iana(id.number)) {
        _ if reversible.is_some() => reversible?,
        (true, element::PACKET_DELTA_COUNT) => slot(Slot::ReversePackets),
        (true, element::OCTET_DELTA_COUNT) => slot(Slot::ReverseBytes),
        (true, element::PACKET_TOTAL_COUNT) => ranked(Slot::ReversePackets, 1),
        (true, element::OCTET_TOTAL_COUNT) => ranked(Slot::ReverseBytes, 1),
        (true, element::TCP_FLAGS) => slot(Slot::ReverseTcpFlags),
        (true, element::TYPE_OF_SERVICE) => slot(Slot::ReverseTypeOfService),
        (true, _) => return None,
        (_, element::SOURCE_IPV4) => slot(Slot::SourceIpv4),
        (_, element::DESTINATION_IPV4) => slot(Slot::DestinationIpv4),
        (_, element::SOURCE_IPV6) => slot(Slot::SourceIpv6High),
        (_, element::DESTINATION_IPV6) => slot(Slot::DestinationIpv6High),
        (_, element::IP_VERSION) => slot(Slot::IpVersion),
        (_, element::SOURCE_PORT) => slot(Slot::SourcePort),
        (_, element::UDP_SOURCE_PORT | element::TCP_SOURCE_PORT) => ranked(Slot::SourcePort, 1),
        (_, element::DESTINATION_PORT) => slot(Slot::DestinationPort),
        (_, element::UDP_DESTINATION_PORT | element::TCP_DESTINATION_PORT) => {
            ranked(Slot::DestinationPort, 1)
        }
        (_, element::ICMP_TYPE_CODE_IPV4 | element::ICMP_TYPE_CODE_IPV6) => {
            slot(Slot::IcmpTypeCode)
        }
        (_, element::ICMP_TYPE_IPV4 | element::ICMP_TYPE_IPV6) => slot(Slot::IcmpType),
        (_, element::ICMP_CODE_IPV4 | element::ICMP_CODE_IPV6) => slot(Slot::IcmpCode),
        (_, element::PROTOCOL) => slot(Slot::Protocol),
        (_, element::TYPE_OF_SERVICE) => slot(Slot::TypeOfService),
        (_, element::DSCP) => slot(Slot::Dscp),
        (_, element::VLAN) => slot(Slot::Vlan),
        (_, element::DOT1Q_VLAN) => ranked(Slot::Vlan, 1),
        (_, element::INPUT_INTERFACE) => slot(Slot::InputInterface),
        (_, element::OUTPUT_INTERFACE) => slot(Slot::OutputInterface),
        (_, element::TCP_FLAGS) => slot(Slot::TcpFlags),
        (_, element::PACKET_DELTA_COUNT) => slot(Slot::Packets),
        (_, element::OCTET_DELTA_COUNT) => slot(Slot::Bytes),
        (_, element::PACKET_TOTAL_COUNT) => total(Slot::Packets),
        (_, element::OCTET_TOTAL_COUNT) => total(Slot::Bytes),
        (_, element::INITIATOR_PACKETS) => ranked(Slot::Packets, 2),
        (_, element::INITIATOR_OCTETS) => ranked(Slot::Bytes, 2),
        (_, element::RESPONDER_PACKETS) => ranked(Slot::ReversePackets, 2),
        (_, element::RESPONDER_OCTETS) => ranked(Slot::ReverseBytes, 2),
        (_, element::POST_PACKET_DELTA_COUNT) => ranked(Slot::Packets, 3),
        (_, element::POST_OCTET_DELTA_COUNT) => ranked(Slot::Bytes, 3),
        (_, element::FLOW_DURATION_MILLISECONDS) => ranked(Slot::Duration, 1),
        (_, element::FLOW_DURATION_MICROSECONDS) => slot(Slot::Duration),
        (_, element::SYSTEM_INIT_MILLISECONDS) => slot(Slot::SystemInit),
        (_, element::SAMPLING_INTERVAL) => slot(Slot::SamplingInterval),
        (_, element::SAMPLER_RANDOM_INTERVAL) => ranked(Slot::SamplingInterval, 1),
        (_, element::SAMPLING_PACKET_INTERVAL) => slot(Slot::PacketInterval),
        (_, element::SAMPLING_PACKET_SPACE) => slot(Slot::PacketSpace),
        (_, element::SAMPLER_ID) => slot(Slot::Sampler),
        (_, element::SELECTOR) => ranked(Slot::Sampler, 1),
        _ => return None,
    };
    let is_possible = match meaning.slot {
        Slot::SourceIpv4 | Slot::DestinationIpv4 => length == 4,
        Slot::SourceIpv6High | Slot::DestinationIpv6High => length == 16,
        // RFC 7011 section 6.2 allows numbers to be shorter than their type.
        _ => (1..=8).contains(&length),
    };
    is_possible.then_some(meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ntp_times_of_both_eras_become_times_since_1970() {
        let half = 0x8000_0000;
        assert_eq!(ntp(2_208_988_800 << 32 | half), Instant::from_nanos(500_000_000));
        // 7 February 2036, 06:28:16 UTC: the first second of the next era.
        assert_eq!(ntp(0), Instant::from_nanos(2_085_978_496 * NANOSECONDS_PER_SECOND));
    }

    #[test]
    fn a_number_at_the_end_of_the_bytes_is_the_same_as_within() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        for length in 1..=8 {
            let field = TemplateField { id: element::OCTET_DELTA_COUNT, length, is_scope: false };
            let layout = Layout::new(&[field], &[0]);
            let [step] = layout.steps[..] else { panic!("one field") };
            for offset in 0..=bytes.len() - usize::from(length) {
                let expected = unsigned(&bytes[offset..offset + usize::from(length)]);
                assert_eq!(step.number(&bytes, offset), expected, "{length} at {offset}");
            }
            assert_eq!(step.number(&bytes, 13), 0);
        }
    }

    #[test]
    fn a_delta_count_is_preferred_to_a_total_in_any_order() {
        let field = |id| TemplateField { id, length: 4, is_scope: false };
        let delta = field(element::PACKET_DELTA_COUNT);
        let total = field(element::PACKET_TOTAL_COUNT);
        for (fields, bytes) in
            [([delta, total], [0, 0, 0, 1, 0, 0, 0, 9]), ([total, delta], [0, 0, 0, 9, 0, 0, 0, 1])]
        {
            let layout = Layout::new(&fields, &[0, 4]);
            let mut values = Values::ZERO;
            layout.load(&bytes, &mut values);
            let flow = layout.flow(&values, &Times::default(), &StreamFacts::default());
            assert_eq!((flow.packets, flow.counting), (1, Counting::Delta));
        }
    }
}
